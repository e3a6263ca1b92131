// Batch rule of sort: lanes are further rows; keys that all lanes share are sorted once.
#include <limits>

#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace order_batch {

/// Mapped `x` read along `axis` (one lane's numbering) at `places`, which all lanes share.
Batched read_along(const Batched& x, const Tensor& places, int axis, CallSite where) {
  const int rank = places.rank();
  GatherParams p;
  p.offset_dims = Axes{*x.axis};
  p.collapsed_slice_dims = p.start_index_map = Axes{lanes::shifted(axis, *x.axis)};
  for (int a = 0; a < rank; ++a) {
    if (a == axis) continue;
    p.operand_batching_dims.push_back(lanes::shifted(a, *x.axis));
    p.indices_batching_dims.push_back(a);
  }
  p.slice_sizes = Shape::filled(x.value.shape().size(), 1);
  p.slice_sizes[*x.axis] = x.value.shape()[*x.axis];
  const Tensor vectors =
      emit(Op::reshape, make_params(ShapeParams{lanes::inserted(places.shape(), rank, 1)}),
           {places}, where);
  return {emit(Op::gather, make_params(std::move(p)), {x.value, vectors}, where), x.axis};
}

/// No key is mapped: the order is the same for all lanes.
BatchedList shared_order(const BatchCall& c) {
  const auto& p = c.as<SortParams>();
  const Shape& shape = c.operand_aval(0).shape;
  const std::int64_t n = shape[p.axis];
  std::vector<Tensor> operands;
  for (const Batched& x : c.operands)
    if (!x.axis) operands.push_back(x.value);
  const DType index = n > std::numeric_limits<std::int32_t>::max() ? DType::i64 : DType::i32;
  operands.push_back(
      emit(Op::iota, make_params(IotaParams{Aval(index, shape), p.axis}), {}, c.where()));
  const SmallVec<Tensor, 1> sorted = emit_all(Op::sort, c.equation.params, operands, c.where());
  BatchedList results;
  std::size_t next = 0;
  for (const Batched& x : c.operands) {
    if (x.axis) results.push_back(read_along(x, sorted.back(), p.axis, c.where()));
    else results.push_back({sorted[next++], std::nullopt});
  }
  return results;
}

}  // namespace order_batch

BatchedList sort(const BatchCall& c) {
  SortParams p = c.as<SortParams>();
  std::optional<int> axis;
  for (int k = 0; k < p.keys && !axis; ++k) axis = c.operands[k].axis;
  if (!axis) return order_batch::shared_order(c);
  p.axis = lanes::shifted(p.axis, *axis);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(
        c.mapped(i) ? lanes::moved(c.operands[i].value, *c.operands[i].axis, *axis, c.where())
                    : c.broadcast(i, *axis));
  BatchedList results;
  for (Tensor& t : emit_all(Op::sort, make_params(p), operands, c.where()))
    results.push_back({std::move(t), *axis});
  return results;
}

}  // namespace vt::detail::batch_rules
