// Rewrite rules of slices: they move towards what they read, and vanish where they read everything.
#include <algorithm>

#include "../ir/axis_map.hpp"
#include "simplify.hpp"
#include "value_range.hpp"

namespace vt::detail::simplification {

namespace slicing {

/// limit as small as the number of elements allows; stride 1 where one element is taken.
SliceParams canonical(const SliceParams& s, const Shape& result) {
  SliceParams c = s;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] <= 1) c.stride[i] = 1;
    c.limit[i] = result[i] == 0 ? s.start[i] : s.start[i] + (result[i] - 1) * c.stride[i] + 1;
  }
  return c;
}

Var of_slice(Pass& p, const SliceParams& outer, const Shape& result, const Equation& e) {
  SliceParams both = e.as<SliceParams>();
  for (std::size_t i = 0; i < result.size(); ++i) {
    both.start[i] += outer.start[i] * both.stride[i];
    both.stride[i] *= outer.stride[i];
    both.limit[i] =
        result[i] == 0 ? both.start[i] : both.start[i] + (result[i] - 1) * both.stride[i] + 1;
    // A start behind the last element, which only an empty slice can have.
    const std::int64_t extent = p.shape(e.inputs[0])[i];
    if (both.start[i] > extent) both.start[i] = both.limit[i] = extent;
  }
  return p.slice(e.inputs[0], both.start, both.limit, both.stride);
}

Var of_broadcast(Pass& p, const SliceParams& s, const Shape& result, const Equation& e) {
  const Var inner = e.inputs[0];
  const Axes& axes = e.as<BroadcastParams>().axes;
  Shape start, limit, stride;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::size_t axis = axes[k];
    const bool broadcasted = p.shape(inner)[k] != p.shape(e.outputs[0])[axis];
    start.push_back(broadcasted ? 0 : s.start[axis]);
    limit.push_back(broadcasted ? 1 : s.limit[axis]);
    stride.push_back(broadcasted ? 1 : s.stride[axis]);
  }
  return p.broadcast(p.slice(inner, start, limit, stride), result, axes);
}

Var of_transpose(Pass& p, const SliceParams& s, const Equation& e) {
  const Axes& permutation = e.as<PermutationParams>().permutation;
  const Axes place = inverse(permutation);
  return p.transpose(
      p.slice(e.inputs[0], picked(s.start, place), picked(s.limit, place), picked(s.stride, place)),
      permutation);
}

Var of_reshape(Pass& p, const SliceParams& s, const Shape& result, const Equation& e) {
  const Var inner = e.inputs[0];
  const auto map = unit_axis_map(p.shape(inner), p.shape(e.outputs[0]));
  if (!map || result.elements() == 0) return Pass::none;
  Shape start, limit, stride;
  for (int axis : *map) {
    start.push_back(axis < 0 ? 0 : s.start[axis]);
    limit.push_back(axis < 0 ? 1 : s.limit[axis]);
    stride.push_back(axis < 0 ? 1 : s.stride[axis]);
  }
  return p.reshape(p.slice(inner, start, limit, stride), result);
}

Var of_concatenate(Pass& p, const SliceParams& s, const Shape& result, const Equation& e) {
  const std::size_t axis = e.as<AxisParams>().axis;
  if (result.elements() == 0) return Pass::none;
  std::int64_t offset = 0;
  for (Var part : e.inputs) {
    const std::int64_t extent = p.shape(part)[axis];
    if (s.start[axis] >= offset && s.limit[axis] <= offset + extent) {
      SliceParams inner = s;
      inner.start[axis] -= offset;
      inner.limit[axis] -= offset;
      return p.slice(part, inner.start, inner.limit, inner.stride);
    }
    offset += extent;
  }
  return Pass::none;
}

Var of_pad(Pass& p, const SliceParams& s, const Shape& result, const Equation& e) {
  const auto& pad = e.as<PadParams>();
  const Var inner = e.inputs[0];
  const Shape& extents = p.shape(inner);
  if (result.elements() == 0) return Pass::none;
  bool inside = true, outside = false;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (pad.interior[i] != 0 && extents[i] > 1) return Pass::none;
    const std::int64_t first = std::max<std::int64_t>(pad.low[i], 0),
                       last = pad.low[i] + extents[i];
    inside = inside && s.start[i] >= first && s.limit[i] <= last;
    outside = outside || s.limit[i] <= first || s.start[i] >= last;
  }
  if (outside) return e.inputs[1];
  if (!inside) return Pass::none;
  SliceParams moved = s;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    moved.start[i] -= pad.low[i];
    moved.limit[i] -= pad.low[i];
  }
  return p.slice(inner, moved.start, moved.limit, moved.stride);
}

/// slice(f(x, scalars)) = f(slice(x), scalars): less work, if nobody else wants the rest.
Var of_elementwise(Pass& p, const Candidate& c, const Equation& e) {
  if (!p.used_once(c.in())) return Pass::none;
  std::size_t long_operands = 0;
  for (Var v : e.inputs) long_operands += p.shape(v).empty() ? 0 : 1;
  if (long_operands != 1) return Pass::none;
  SmallVec<Var, 3> inputs;
  for (Var v : e.inputs)
    inputs.push_back(p.shape(v).empty() ? v : p.emit(Op::slice, c.params, {v}));
  return p.emit(e.op, e.params, inputs);
}

/// Rows are sorted independently, and some places of the order are found faster than all: if nobody
/// reads the others.
Var of_sort(Pass& p, const SliceParams& s, const Shape& result, Var x, const Equation& e) {
  SortParams sort = e.as<SortParams>();
  const std::size_t axis = sort.axis;
  if (!p.used_once(x) || s.stride[axis] != 1) return Pass::none;
  std::size_t position = 0;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    if (e.outputs[i] == x) position = i;
    else if (!p.unused(e.outputs[i])) return Pass::none;
  }
  const Shape& extents = p.shape(e.inputs[0]);
  SliceParams rows = s;
  rows.start[axis] = 0;
  rows.limit[axis] = extents[axis];
  SmallVec<Var, 4> inputs;
  for (Var v : e.inputs) inputs.push_back(p.slice(v, rows.start, rows.limit, rows.stride));
  sort.start += s.start[axis];
  sort.limit = sort.start + result[axis];
  return p.emit_all(Op::sort, make_params(sort), {inputs.data(), inputs.size()})[position];
}

Var slice(Pass& p, const Candidate& c) {
  const Var x = c.in();
  const Shape& result = c.aval.shape;
  if (result == p.shape(x)) return x;
  if (const Scalar* s = p.full_value(x)) return p.full(*s, c.aval);
  const auto& given = c.as<SliceParams>();
  const SliceParams s = canonical(given, result);
  if (!(s == given)) return p.slice(x, s.start, s.limit, s.stride);
  const Equation* e = p.def(x);
  if (!e) return Pass::none;
  switch (e->op) {
    case Op::slice: return of_slice(p, s, result, *e);
    case Op::broadcast_in_dim: return of_broadcast(p, s, result, *e);
    case Op::transpose: return p.used_once(x) ? of_transpose(p, s, *e) : Pass::none;
    case Op::reshape: return of_reshape(p, s, result, *e);
    case Op::concatenate: return of_concatenate(p, s, result, *e);
    case Op::pad: return of_pad(p, s, result, *e);
    case Op::sort: return of_sort(p, s, result, x, *e);
    case Op::iota: {
      const std::size_t axis = e->as<IotaParams>().axis;
      if (s.start[axis] != 0 || s.stride[axis] != 1) return Pass::none;
      return p.emit(Op::iota, make_params(IotaParams{c.aval, e->as<IotaParams>().axis}), {});
    }
    default: return is_elementwise(e->op) ? of_elementwise(p, c, *e) : Pass::none;
  }
}

// --- dynamic slices ------------------------------------------------------------------------------

Var dynamic_slice(Pass& p, const Candidate& c) {
  const Var x = c.in();
  const Shape &from = p.shape(x), &sizes = c.aval.shape;
  if (sizes == from) return x;  // wherever it starts, it is moved inside
  if (const Scalar* s = p.full_value(x); s && !p.is_any_number(x)) return p.full(*s, c.aval);
  Shape start, limit;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::int64_t first = 0;
    if (sizes[i] != from[i]) {
      const auto known = affine_of(p, c.in(1 + i));
      if (!known || known->step != 0) return Pass::none;
      first = std::clamp<std::int64_t>(known->start, 0, from[i] - sizes[i]);
    }
    start.push_back(first);
    limit.push_back(first + sizes[i]);
  }
  return p.slice(x, start, limit, Shape::filled(from.size(), 1));
}

Var dynamic_update_slice(Pass& p, const Candidate& c) {
  const Var x = c.in(0), update = c.in(1);
  if (p.shape(update) == p.shape(x)) return update;
  return p.aval(update).elements() == 0 || p.are_alike(x, update) ? x : Pass::none;
}

}  // namespace slicing

Var simplify_index(Pass& p, const Candidate& c) {
  switch (c.op) {
    case Op::slice: return slicing::slice(p, c);
    case Op::dynamic_slice: return slicing::dynamic_slice(p, c);
    case Op::dynamic_update_slice: return slicing::dynamic_update_slice(p, c);
    case Op::gather: return simplify_gather(p, c);
    default: return simplify_scatter(p, c);
  }
}

}  // namespace vt::detail::simplification
