// Rewrite rules of the ops that rearrange elements: reshape, transpose, broadcast_in_dim,
// concatenate, pad, rev.
#include <algorithm>

#include "../ir/axis_map.hpp"
#include "simplify.hpp"

namespace vt::detail::simplification {

namespace rearranging {

/// view(f(… view(x) …)) = f(… view(view(x)) …) for a chain of element-wise ops between two
/// transposes or two reshapes, in which every op has one operand that is no scalar and nobody else
/// looks at what is in between. One view fewer.
Var meet_through_elementwise(Pass& p, const Candidate& c) {
  constexpr std::size_t longest_chain = 8;
  SmallVec<const Equation*, longest_chain> chain;
  Var v = c.in();
  for (;;) {
    const Equation* e = p.def(v);
    if (!e || !p.used_once(v)) return Pass::none;
    if (e->op == c.op) break;
    if (!is_elementwise(e->op) || chain.size() == longest_chain) return Pass::none;
    Var next = Pass::none;
    for (Var in : e->inputs) {
      if (p.shape(in).empty()) continue;
      if (next != Pass::none) return Pass::none;
      next = in;
    }
    if (next == Pass::none) return Pass::none;
    chain.push_back(e);
    v = next;
  }
  Var now = p.emit(c.op, c.params, {v});
  for (auto e = chain.rbegin(); e != chain.rend(); ++e) {
    SmallVec<Var, 3> inputs;
    for (Var in : (*e)->inputs) inputs.push_back(p.shape(in).empty() ? in : now);
    now = p.emit((*e)->op, (*e)->params, inputs);
  }
  return now;
}

/// An iota with other axes around its own.
Var iota(Pass& p, const Candidate& c, int axis) {
  if (c.aval.shape[axis] == 1) return p.full_like(0, c.aval);
  return p.emit(Op::iota, make_params(IotaParams{c.aval, axis}), {});
}

// --- reshape -------------------------------------------------------------------------------------

Var reshape(Pass& p, const Candidate& c) {
  const Var x = c.in();
  const Shape &from = p.shape(x), &to = c.aval.shape;
  if (from == to) return x;
  const Equation* e = p.def(x);
  if (!e) return Pass::none;
  switch (e->op) {
    case Op::reshape: return p.reshape(e->inputs[0], to);
    case Op::constant:
      return p.emit(Op::constant,
                    make_params(ConstantParams{e->as<ConstantParams>().buffer, c.aval}), {});
    case Op::iota: {
      const auto map = unit_axis_map(from, to);
      if (!map) return Pass::none;
      const int axis = (*map)[e->as<IotaParams>().axis];
      return axis < 0 ? p.full_like(0, c.aval) : iota(p, c, axis);
    }
    case Op::broadcast_in_dim: {
      const Var inner = e->inputs[0];
      if (p.shape(inner).empty()) return inner;
      const auto map = unit_axis_map(from, to);
      if (!map) return Pass::none;
      const Axes& axes = e->as<BroadcastParams>().axes;
      Axes kept;
      Shape kept_shape;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const int axis = (*map)[axes[k]];
        if (axis < 0) continue;  // a unit axis in the operand as well
        kept.push_back(axis);
        kept_shape.push_back(p.shape(inner)[k]);
      }
      return p.broadcast(p.reshape(inner, kept_shape), to, kept);
    }
    default: return meet_through_elementwise(p, c);
  }
}

// --- transpose -----------------------------------------------------------------------------------

/// The transpose of a product that only exchanges the operands' free axes is the product of the
/// exchanged operands.
Var exchanged_product(Pass& p, const Equation& dot, const Axes& permutation) {
  const auto& d = dot.as<DotParams>();
  const Var a = dot.inputs[0], b = dot.inputs[1];
  const int batch = static_cast<int>(d.lhs_batch.size());
  const int a_free = p.shape(a).rank() - batch - static_cast<int>(d.lhs_contract.size());
  const int rank = static_cast<int>(permutation.size());
  for (int i = 0; i < rank; ++i) {
    const int b_free = rank - batch - a_free;
    const int wanted = i < batch ? i : i < batch + b_free ? i + a_free : i - b_free;
    if (permutation[i] != wanted) return Pass::none;
  }
  return p.emit(
      Op::dot_general,
      make_params(DotParams{d.rhs_contract, d.lhs_contract, d.rhs_batch, d.lhs_batch, d.dtype}),
      {b, a});
}

Var transpose(Pass& p, const Candidate& c) {
  const Axes& permutation = c.as<PermutationParams>().permutation;
  const Var x = c.in();
  const Shape& from = p.shape(x);
  if (is_identity(permutation)) return x;
  // Moving axes of size 1 moves no element.
  Axes long_axes;
  for (int axis : permutation)
    if (from[axis] != 1) long_axes.push_back(axis);
  if (is_increasing(long_axes) || c.aval.elements() == 0) return p.reshape(x, c.aval.shape);
  const Equation* e = p.def(x);
  if (!e) return Pass::none;
  switch (e->op) {
    case Op::transpose: {
      return p.transpose(e->inputs[0],
                         composed(e->as<PermutationParams>().permutation, permutation));
    }
    case Op::iota: return iota(p, c, inverse(permutation)[e->as<IotaParams>().axis]);
    case Op::broadcast_in_dim: {
      const Axes place = inverse(permutation), &axes = e->as<BroadcastParams>().axes;
      Axes moved;
      for (int axis : axes) moved.push_back(place[axis]);
      const Axes order = sorting_permutation(moved);
      insertion_sort(moved);
      return p.broadcast(p.transpose(e->inputs[0], order), c.aval.shape, moved);
    }
    case Op::conv_general: {  // where the features stay last, they are stored there at once
      ConvParams conv = e->as<ConvParams>();
      if (!p.used_once(x) || permutation.back() != static_cast<int>(permutation.size()) - 1)
        return Pass::none;
      conv.order = conv.order.empty() ? permutation : composed(conv.order, permutation);
      return p.emit(Op::conv_general, make_params(std::move(conv)), {e->inputs[0], e->inputs[1]});
    }
    case Op::dot_general:
      return p.used_once(x) ? exchanged_product(p, *e, permutation) : Pass::none;
    default: return meet_through_elementwise(p, c);
  }
}

// --- broadcast_in_dim ----------------------------------------------------------------------------

Var broadcast(Pass& p, const Candidate& c) {
  const Axes& axes = c.as<BroadcastParams>().axes;
  const Shape& to = c.aval.shape;
  const Var x = c.in();
  const Shape& from = p.shape(x);
  if (from == to) return x;
  // Nothing is repeated, only axes of size 1 come in.
  if (from.elements() == to.elements()) return p.reshape(x, to);
  const Equation* e = p.def(x);
  if (!e) return Pass::none;
  if (e->op == Op::broadcast_in_dim) {
    Axes both;
    for (int axis : e->as<BroadcastParams>().axes) both.push_back(axes[axis]);
    return p.broadcast(e->inputs[0], to, both);
  }
  if (e->op == Op::reshape) {
    const auto map = unit_axis_map(p.shape(e->inputs[0]), from);
    if (!map || map->contains(-1)) return Pass::none;
    Axes both;
    for (int axis : *map) both.push_back(axes[axis]);
    return p.broadcast(e->inputs[0], to, both);
  }
  if (e->op == Op::iota) {
    const int axis = e->as<IotaParams>().axis;
    // (An iota of one element is a full.)
    if (from[axis] == to[axes[axis]]) return iota(p, c, axes[axis]);
  }
  return Pass::none;
}

// --- concatenate ---------------------------------------------------------------------------------

/// One operand for two neighbours that lie side by side in a third value, or that hold one number;
/// or none.
Var joined(Pass& p, Var a, Var b, int axis) {
  const Equation *e = p.def(a), *f = p.def(b);
  if (!e || !f || e->op != f->op) return Pass::none;
  const std::size_t along = axis;
  if (e->op == Op::full) {
    const auto &one = e->as<FullParams>(), &other = f->as<FullParams>();
    if (!(one.value == other.value) || one.unset != other.unset) return Pass::none;
    Aval whole = p.aval(a);
    whole.shape[along] += p.shape(b)[along];
    return p.full(*e, whole);
  }
  if (e->op != Op::slice || e->inputs[0] != f->inputs[0]) return Pass::none;
  const auto &s = e->as<SliceParams>(), &t = f->as<SliceParams>();
  for (std::size_t i = 0; i < s.start.size(); ++i) {
    const bool fits =
        i == along
            ? s.stride[i] == t.stride[i] && t.start[i] == s.start[i] + s.stride[i] * p.shape(a)[i]
            : s.start[i] == t.start[i] && s.limit[i] == t.limit[i] && s.stride[i] == t.stride[i];
    if (!fits) return Pass::none;
  }
  Shape limit = s.limit;
  limit[along] = t.limit[along];
  return p.slice(e->inputs[0], s.start, limit, s.stride);
}

Var concatenate(Pass& p, const Candidate& c) {
  const int axis = c.as<AxisParams>().axis;
  if (c.inputs.size() == 1) return c.in();
  SmallVec<Var, 8> parts;
  bool changed = false;
  const auto append = [&](Var v) {
    if (p.shape(v)[axis] == 0) {
      changed = true;
      return;
    }
    if (!parts.empty())
      if (const Var both = joined(p, parts.back(), v, axis); both != Pass::none) {
        parts.back() = both;
        changed = true;
        return;
      }
    parts.push_back(v);
  };
  for (Var v : c.inputs) {
    const Equation* e = p.def(v, Op::concatenate);
    if (e && e->as<AxisParams>().axis == axis && p.used_once(v)) {
      changed = true;
      for (Var inner : e->inputs) append(inner);
    } else {
      append(v);
    }
  }
  if (!changed) return Pass::none;
  if (parts.empty()) return c.in();  // all were empty
  return p.emit(Op::concatenate, c.params, parts);
}

// --- pad and rev ---------------------------------------------------------------------------------

/// Is no entry negative?
bool only_adds(const PadParams& p) {
  return all_of(p.low, [](auto n) { return n >= 0; }) &&
         all_of(p.high, [](auto n) { return n >= 0; });
}

Var pad(Pass& p, const Candidate& c) {
  const auto& params = c.as<PadParams>();
  const Var x = c.in(0), value = c.in(1);
  const Shape& from = p.shape(x);
  if (p.aval(x).elements() == 0) return value;
  const Scalar *all = p.full_value(x), *edge = p.full_value(value);
  if (all && edge && *all == *edge) return p.full(*all, c.aval);

  bool gaps = false, nothing = true, crops_only = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    gaps = gaps || (params.interior[i] != 0 && from[i] > 1);
    nothing = nothing && params.low[i] == 0 && params.high[i] == 0;
    crops_only = crops_only && params.low[i] <= 0 && params.high[i] <= 0;
  }
  if (gaps) return Pass::none;
  if (nothing) return x;
  if (crops_only) {
    Shape start, limit;
    for (std::size_t i = 0; i < from.size(); ++i) {
      start.push_back(-params.low[i]);
      limit.push_back(from[i] + params.high[i]);
    }
    return p.slice(x, start, limit, Shape::filled(from.size(), 1));
  }
  const Equation* e = p.def(x, Op::pad);
  if (e && only_adds(params)) {
    const auto& inner = e->as<PadParams>();
    const Scalar* inner_edge = p.full_value(e->inputs[1]);
    const bool same_edge = e->inputs[1] == value || (edge && inner_edge && *edge == *inner_edge);
    if (same_edge && only_adds(inner)) {
      PadParams both = inner;
      for (std::size_t i = 0; i < from.size(); ++i) {
        both.low[i] += params.low[i];
        both.high[i] += params.high[i];
      }
      return p.emit(Op::pad, make_params(std::move(both)), {e->inputs[0], value});
    }
  }
  return Pass::none;
}

Var rev(Pass& p, const Candidate& c) {
  const Axes& axes = c.as<AxesParams>().axes;
  const Var x = c.in();
  const Shape& shape = p.shape(x);
  const Equation* e = p.def(x);
  Axes left;
  for (int axis : axes)
    if (shape[axis] > 1) left.push_back(axis);
  if (left.empty()) return x;
  const auto emit = [&](Var v, Axes which) {
    return p.emit(Op::rev, make_params(AxesParams{std::move(which)}), {v});
  };
  if (e && e->op == Op::rev) {
    const Axes& inner = e->as<AxesParams>().axes;
    Axes either;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (left.contains(axis) != inner.contains(axis)) either.push_back(axis);
    return emit(e->inputs[0], either);
  }
  if (e && e->op == Op::broadcast_in_dim) {
    // Along an axis of equal elements there is nothing to turn iteration.
    const auto& params = e->as<BroadcastParams>();
    Axes inner;
    for (std::size_t k = 0; k < params.axes.size(); ++k)
      if (left.contains(params.axes[k])) inner.push_back(static_cast<int>(k));
    return p.emit(Op::broadcast_in_dim, e->params, {emit(e->inputs[0], inner)});
  }
  return left.size() < axes.size() ? emit(x, left) : Pass::none;
}

}  // namespace rearranging

Var simplify_shape(Pass& p, const Candidate& c) {
  if (c.op != Op::concatenate && c.op != Op::pad)
    if (const Equation* e = p.def(c.in(), Op::full)) return p.full(*e, c.aval);
  switch (c.op) {
    case Op::reshape: return rearranging::reshape(p, c);
    case Op::transpose: return rearranging::transpose(p, c);
    case Op::broadcast_in_dim: return rearranging::broadcast(p, c);
    case Op::concatenate: return rearranging::concatenate(p, c);
    case Op::pad: return rearranging::pad(p, c);
    case Op::rev: return rearranging::rev(p, c);
    default: return Pass::none;
  }
}

}  // namespace vt::detail::simplification
