// Batch rules of linear algebra: the lanes are one more axis in front; if the matrix is shared,
// they are more right sides.
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

BatchedList linalg(const BatchCall& c) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(c.mapped(i)
                           ? lanes::moved(c.operands[i].value, *c.operands[i].axis, 0, c.where())
                           : c.broadcast(i, 0));
  BatchedList results;
  for (Tensor& t : emit_all(c.equation.op, c.equation.params, operands, c.where()))
    results.push_back({std::move(t), 0});
  return results;
}

BatchedList linear_systems(const BatchCall& c) {
  const std::size_t last = c.operands.size() - 1;
  for (std::size_t i = 0; i < last; ++i)
    if (c.mapped(i)) return linalg(c);
  // One matrix for all lanes: their right sides stand side by side.
  const Shape& lane = c.operand_aval(last).shape;
  const int columns = lane.rank() - 1;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < last; ++i) operands.push_back(c.operands[i].value);
  const Tensor apart =
      lanes::moved(c.operands[last].value, *c.operands[last].axis, columns, c.where());
  Shape together = lane;
  together.back() *= c.lanes;
  operands.push_back(emit(Op::reshape, make_params(ShapeParams{together}), {apart}, c.where()));
  const Tensor solved = emit(c.equation.op, c.equation.params, operands, c.where());
  return {Batched{emit(Op::reshape, make_params(ShapeParams{apart.shape()}), {solved}, c.where()),
                  columns}};
}

}  // namespace vt::detail::batch_rules
