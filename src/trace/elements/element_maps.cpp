// Which elements of operands each element of a result is made of, for ops on small arrays.
#include "element_maps.hpp"

namespace vt::detail {

namespace small_arrays {

std::int64_t position(const Shape& shape, const Vec<std::int64_t>& index) {
  std::int64_t p = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) p = p * shape[i] + index[i];
  return p;
}

std::int64_t distance(const Shape& shape, int axis) {
  std::int64_t n = 1;
  for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) n *= shape[d];
  return n;
}

// The indices' leading axes are those of the element that are no window's.
std::int64_t first_of_vector(const Shape& indices, const Vec<std::int64_t>& leading) {
  std::int64_t row = 0;
  for (std::size_t d = 0; d < leading.size(); ++d) row = row * indices[d] + leading[d];
  return row * indices.back();
}

}  // namespace small_arrays

Vec<std::int64_t> index_of_element(const Shape& shape, std::int64_t n) {
  Vec<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = n % shape[d];
    n /= shape[d];
  }
  return index;
}

Vec<std::int64_t> source_elements(const GraphBody& g, const Equation& e) {
  const Shape &to = g.aval(e.outputs[0]).shape, &from = g.aval(e.inputs[0]).shape;
  const std::int64_t count = to.elements();
  Vec<std::int64_t> sources, source(from.size()), index(to.size());
  sources.reserve(count);
  const auto advance = [&] {
    for (std::size_t d = to.size(); d-- > 0; index[d] = 0)
      if (++index[d] < to[d]) return;
  };
  for (std::int64_t n = 0; n < count; ++n, advance()) {
    bool inside = true;
    switch (e.op) {
      case Op::transpose:
        for (std::size_t d = 0; d < to.size(); ++d)
          source[e.as<PermutationParams>().permutation[d]] = index[d];
        break;
      case Op::broadcast_in_dim:
        for (std::size_t d = 0; d < from.size(); ++d) {
          const std::int64_t i = index[e.as<BroadcastParams>().axes[d]];
          source[d] = from[d] == 1 ? 0 : i;
        }
        break;
      case Op::slice: {
        const auto& p = e.as<SliceParams>();
        for (std::size_t d = 0; d < from.size(); ++d)
          source[d] = p.start[d] + index[d] * p.stride[d];
        break;
      }
      case Op::rev:
        for (std::size_t d = 0; d < from.size(); ++d)
          source[d] = e.as<AxesParams>().axes.contains(static_cast<int>(d)) ? from[d] - 1 - index[d]
                                                                            : index[d];
        break;
      case Op::pad: {
        const auto& p = e.as<PadParams>();
        for (std::size_t d = 0; d < from.size(); ++d) {
          const std::int64_t moved = index[d] - p.low[d], step = p.interior[d] + 1;
          source[d] = moved / step;
          inside = inside && moved >= 0 && moved % step == 0 && source[d] < from[d];
        }
        break;
      }
      default: break;
    }
    if (e.op == Op::reshape) sources.push_back(n);
    else sources.push_back(inside ? small_arrays::position(from, source) : -1);
  }
  return sources;
}

Vec<std::int64_t> reduced_elements(const Shape& shape, const Axes& axes) {
  Vec<std::int64_t> all;
  for (std::int64_t k = 0, n = shape.elements(); k < n; ++k) {
    const Vec<std::int64_t> index = index_of_element(shape, k);
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (!axes.contains(static_cast<int>(d))) place = place * shape[d] + index[d];
    all.push_back(place);
  }
  return all;
}

AxisRuns::AxisRuns(const Shape& shape, int axis)
    : length(shape[axis]), step(small_arrays::distance(shape, axis)) {
  count = length == 0 ? 0 : shape.elements() / length;
}

RunningOp::RunningOp(Op cumulative, DType d, std::int64_t length) : dtype(d) {
  op = cumulative == Op::cumsum    ? Op::add
       : cumulative == Op::cumprod ? Op::mul
       : cumulative == Op::cummax  ? Op::max
                                   : Op::min;
  if (is_float(d) && length > 2 && (op == Op::add || op == Op::mul)) dtype = DType::f64;
  compensated = d == DType::f64 && length > 2 && op == Op::add;
}
bool RunningOp::has_code(Op cumulative, DType d) {
  return cumulative != Op::cumlogsumexp && !is_complex(d);
}

SmallProduct::SmallProduct(const GraphBody& g, const Equation& e) {
  const auto& p = e.as<DotParams>();
  const Shape &lhs = g.aval(e.inputs[0]).shape, &rhs = g.aval(e.inputs[1]).shape;
  const auto axis = [&](int of_lhs, int of_rhs) {
    return Axis{of_lhs >= 0 ? lhs[of_lhs] : rhs[of_rhs],
                of_lhs >= 0 ? small_arrays::distance(lhs, of_lhs) : 0,
                of_rhs >= 0 ? small_arrays::distance(rhs, of_rhs) : 0};
  };
  for (std::size_t k = 0; k < p.lhs_batch.size(); ++k)
    outer_.push_back(axis(p.lhs_batch[k], p.rhs_batch[k]));
  for (int d = 0; d < lhs.rank(); ++d)
    if (!p.lhs_batch.contains(d) && !p.lhs_contract.contains(d)) outer_.push_back(axis(d, -1));
  for (int d = 0; d < rhs.rank(); ++d)
    if (!p.rhs_batch.contains(d) && !p.rhs_contract.contains(d)) outer_.push_back(axis(-1, d));
  for (std::size_t k = 0; k < p.lhs_contract.size(); ++k)
    inner_.push_back(axis(p.lhs_contract[k], p.rhs_contract[k]));
  for (const Axis& x : inner_) terms_ *= x.extent;
}

void SmallProduct::add(const Vec<Axis>& axes, std::int64_t k, Factors& at) {
  for (std::size_t d = axes.size(); d-- > 0;) {
    const std::int64_t i = k % axes[d].extent;
    k /= axes[d].extent;
    at.lhs += i * axes[d].of_lhs;
    at.rhs += i * axes[d].of_rhs;
  }
}

SmallProduct::Factors SmallProduct::at(std::int64_t n, std::int64_t t) const {
  Factors at{0, 0};
  add(outer_, n, at);
  add(inner_, t, at);
  return at;
}

IndexedElement gathered_element(const GraphBody& g, const Equation& e, std::int64_t n) {
  const auto& p = e.as<GatherParams>();
  const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape,
              &out = g.aval(e.outputs[0]).shape;
  const Vec<std::int64_t> index = index_of_element(out, n);
  Vec<std::int64_t> leading, in_window;
  for (std::size_t d = 0; d < out.size(); ++d)
    (p.offset_dims.contains(static_cast<int>(d)) ? in_window : leading).push_back(index[d]);
  IndexedElement r{
      small_arrays::first_of_vector(indices, leading), Vec<std::int64_t>(shape.size(), -1), {}, {}};
  std::size_t next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!p.collapsed_slice_dims.contains(axis) && !p.operand_batching_dims.contains(axis))
      r.fixed[axis] = in_window[next++];
  for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
    r.fixed[p.operand_batching_dims[k]] = leading[p.indices_batching_dims[k]];
  for (int axis : p.start_index_map) {
    r.moved.push_back(axis);
    r.at_most.push_back(shape[axis] - p.slice_sizes[axis]);
  }
  return r;
}

IndexedElement scattered_element(const GraphBody& g, const Equation& e, std::int64_t n) {
  const auto& p = e.as<ScatterParams>();
  const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape,
              &updates = g.aval(e.inputs[2]).shape;
  const Vec<std::int64_t> index = index_of_element(updates, n);
  Vec<std::int64_t> leading;
  for (std::size_t d = 0; d < updates.size(); ++d)
    if (!p.update_window_dims.contains(static_cast<int>(d))) leading.push_back(index[d]);
  IndexedElement r{
      small_arrays::first_of_vector(indices, leading), Vec<std::int64_t>(shape.size(), -1), {}, {}};
  Shape sizes = Shape::filled(shape.size(), 1);
  std::size_t next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (p.inserted_window_dims.contains(axis) || p.operand_batching_dims.contains(axis)) continue;
    const std::size_t from = p.update_window_dims[next++];
    r.fixed[axis] = index[from];
    sizes[axis] = updates[from];
  }
  for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
    r.fixed[p.operand_batching_dims[k]] = leading[p.indices_batching_dims[k]];
  for (int axis : p.scatter_dims_to_operand_dims) {
    r.moved.push_back(axis);
    r.at_most.push_back(shape[axis] - sizes[axis]);
  }
  return r;
}

}  // namespace vt::detail
