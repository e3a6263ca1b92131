// Rewrite rules of gather and scatter whose indices only count: they become slices, or vanish. And
// of a choice between an array and what updates make of it.
#include <algorithm>
#include <cstring>
#include <optional>

#include "../base/convert.hpp"
#include "../ir/axis_map.hpp"
#include "simplify.hpp"
#include "value_range.hpp"

namespace vt::detail::simplification {

namespace counting {

/// What gather and scatter have in common. `moved` is gather's result or scatter's updates.
struct Addressing {
  Var operand, indices;
  Shape window;  ///< extent along each operand axis
  const Axes &window_dims, &absent, &map, &operand_batching, &indices_batching;
  IndexMode mode;
  const Shape& moved;
};

/// The elements that are read or written: one strided box of the operand, each element once.
struct Box {
  Shape start, limit, stride;
  Axes reversed;  ///< operand axes along which the box is walked backwards
  /// per operand axis: the axis of `moved` that runs along it; −1: one element
  Axes moved_axis;
  bool out_of_range = false;  ///< nothing is read (all zero) or written
};

/// A small constant of index vectors as start + step · position, component k.
std::optional<Affine> affine_constant(const Pass& p, Var v, std::int64_t component) {
  constexpr std::int64_t most_elements = 1 << 16;
  const auto& params = p.def(v)->as<ConstantParams>();
  const Shape& shape = params.aval.shape;
  if (params.aval.elements() == 0 || params.aval.elements() > most_elements ||
      params.buffer->device.kind != Device::Kind::cpu)
    return std::nullopt;
  const std::size_t size = size_of(params.aval.dtype);
  const auto value = [&](std::int64_t position) {
    const Scalar s = load_scalar(params.aval.dtype, params.buffer->as<const char>() +
                                                        static_cast<std::size_t>(position) * size);
    return is_unsigned(s.dtype) ? static_cast<std::int64_t>(s.natural) : s.integer;
  };
  const std::int64_t components = shape.back(), count = params.aval.elements() / components;
  Affine a{value(component), 0, -1};
  std::int64_t inner = 1, axis_inner = 1;
  for (int axis = shape.rank() - 2; axis >= 0; inner *= shape[axis], --axis) {
    if (shape[axis] < 2) continue;
    const std::int64_t step = value(inner * components + component) - a.start;
    if (step == 0) continue;
    if (a.step != 0) return std::nullopt;
    a = {a.start, step, axis};
    axis_inner = inner;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t along = a.axis < 0 ? 0 : i / axis_inner % shape[a.axis];
    if (value(i * components + component) != a.start + a.step * along) return std::nullopt;
  }
  return a;
}

/// Component k of the index vectors, if it counts along one of their leading axes or is the same
/// everywhere.
std::optional<Affine> component_of(const Pass& p, Var indices, std::int64_t k) {
  const int last = p.shape(indices).rank() - 1;
  if (const Equation* e = p.def(indices, Op::concatenate); e && e->as<AxisParams>().axis == last) {
    for (Var part : e->inputs) {
      const std::int64_t extent = p.shape(part)[last];
      if (k < extent) return component_of(p, part, k);
      k -= extent;
    }
    return std::nullopt;
  }
  if (p.def(indices, Op::constant)) return affine_constant(p, indices, k);
  auto a = affine_of(p, indices);
  if (a && a->axis == last) a = Affine{a->start + a->step * k, 0, -1};
  return a;
}

std::optional<Box> box_of(const Pass& p, const Addressing& g) {
  const Shape &operand = p.shape(g.operand), &indices = p.shape(g.indices);
  Axes leading;  // per leading axis of the indices: its axis in `moved`
  for (int axis = 0; axis < g.moved.rank(); ++axis)
    if (!g.window_dims.contains(axis)) leading.push_back(axis);

  Box box;
  box.start = Shape::filled(operand.size(), 0);
  box.limit = g.window;
  box.stride = Shape::filled(operand.size(), 1);
  box.moved_axis.resize(operand.size(), -1);
  std::size_t next_window = 0;
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (!g.absent.contains(axis) && !g.operand_batching.contains(axis))
      box.moved_axis[axis] = g.window_dims[next_window++];

  Axes used;  // leading axes that some operand axis follows
  for (std::size_t k = 0; k < g.operand_batching.size(); ++k) {
    const std::size_t axis = g.operand_batching[k];
    box.limit[axis] = operand[axis];
    box.moved_axis[axis] = leading[g.indices_batching[k]];
    used.push_back(g.indices_batching[k]);
  }
  for (std::size_t k = 0; k < g.map.size(); ++k) {
    const std::size_t axis = g.map[k];
    const auto a = component_of(p, g.indices, static_cast<std::int64_t>(k));
    if (!a) return std::nullopt;
    const std::int64_t last = operand[axis] - g.window[axis];
    if (last < 0) return std::nullopt;
    if (a->step == 0) {
      if (g.mode == IndexMode::fill && (a->start < 0 || a->start > last)) box.out_of_range = true;
      box.start[axis] = std::clamp<std::int64_t>(a->start, 0, last);
      box.limit[axis] = box.start[axis] + g.window[axis];
      continue;
    }
    const std::int64_t steps = indices[a->axis] - 1, end = a->start + steps * a->step;
    if (g.window[axis] != 1 || used.contains(a->axis)) return std::nullopt;
    if (std::min(a->start, end) < 0 || std::max(a->start, end) > last) return std::nullopt;
    used.push_back(a->axis);
    box.start[axis] = std::min(a->start, end);
    box.limit[axis] = std::max(a->start, end) + 1;
    box.stride[axis] = std::abs(a->step);
    if (a->step < 0) box.reversed.push_back(static_cast<int>(axis));
    box.moved_axis[axis] = leading[a->axis];
  }
  insertion_sort(box.reversed);
  return box;
}

/// Does every axis of `moved` longer than 1 run along an axis of the operand? (Else elements are
/// met several times.)
bool meets_each_once(const Box& box, const Shape& moved) {
  for (int axis = 0; axis < moved.rank(); ++axis)
    if (moved[axis] != 1 && !box.moved_axis.contains(axis)) return false;
  return true;
}

Var reversed(Pass& p, Var v, const Axes& axes) {
  return p.emit(Op::rev, make_params(AxesParams{axes}), {v});
}

}  // namespace counting

Var simplify_gather(Pass& p, const Candidate& c) {
  const auto& g = c.as<GatherParams>();
  if (c.aval.elements() == 0) return p.full_like(0, c.aval);
  if (const Scalar* s = p.full_value(c.in()); s && g.mode == IndexMode::clip)
    return p.full(*s, c.aval);
  const auto box = counting::box_of(
      p, {c.in(0), c.in(1), g.slice_sizes, g.offset_dims, g.collapsed_slice_dims, g.start_index_map,
          g.operand_batching_dims, g.indices_batching_dims, g.mode, c.aval.shape});
  if (!box) return Pass::none;
  if (box->out_of_range) return p.full_like(0, c.aval);
  const Var read =
      counting::reversed(p, p.slice(c.in(), box->start, box->limit, box->stride), box->reversed);
  // Axes of one element that the result lacks go, the others move to their places.
  Axes targets;
  Shape kept;
  for (std::size_t i = 0; i < box->moved_axis.size(); ++i) {
    if (box->moved_axis[i] < 0) continue;
    targets.push_back(box->moved_axis[i]);
    kept.push_back(p.shape(read)[i]);
  }
  const Axes order = sorting_permutation(targets);
  insertion_sort(targets);
  return p.broadcast(p.transpose(p.reshape(read, kept), order), c.aval.shape, targets);
}

Var simplify_scatter(Pass& p, const Candidate& c) {
  const auto& s = c.as<ScatterParams>();
  const Var operand = c.in(0), updates = c.in(2);
  const Shape& shape = c.aval.shape;
  if (p.aval(updates).elements() == 0 || c.aval.elements() == 0) return operand;
  if (c.op == Op::scatter && p.are_alike(operand, updates)) return operand;

  Shape window;
  std::size_t next_window = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool absent =
        s.inserted_window_dims.contains(axis) || s.operand_batching_dims.contains(axis);
    window.push_back(absent ? 1 : p.shape(updates)[s.update_window_dims[next_window++]]);
  }
  const Shape& moved = p.shape(updates);
  const auto box =
      counting::box_of(p, {operand, c.in(1), window, s.update_window_dims, s.inserted_window_dims,
                           s.scatter_dims_to_operand_dims, s.operand_batching_dims,
                           s.indices_batching_dims, s.mode, moved});
  if (!box || !counting::meets_each_once(*box, moved)) return Pass::none;
  if (box->out_of_range) return operand;

  Shape extents;
  bool everything = true, gaps = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    extents.push_back((box->limit[i] - box->start[i] + box->stride[i] - 1) / box->stride[i]);
    everything = everything && extents[i] == shape[i];
    gaps = gaps || (box->stride[i] != 1 && extents[i] > 1);
  }
  const Scalar* background = p.full_value(operand);
  if (!everything && !background && gaps) return Pass::none;

  // The updates in the order of the operand's axes: used ones first, then (of size 1) the others,
  // which the reshape drops.
  Axes order;
  for (int axis : box->moved_axis)
    if (axis >= 0) order.push_back(axis);
  for (int axis = 0; axis < moved.rank(); ++axis)
    if (!order.contains(axis)) order.push_back(axis);
  Var now = counting::reversed(p, p.reshape(p.transpose(updates, order), extents), box->reversed);

  if (c.op != Op::scatter) {
    now =
        p.emit(combination_of(c.op), {p.slice(operand, box->start, box->limit, box->stride), now});
  }
  if (everything) return now;
  if (background) {
    PadParams pad;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t interior = extents[i] > 1 ? box->stride[i] - 1 : 0;
      pad.low.push_back(box->start[i]);
      pad.interior.push_back(interior);
      pad.high.push_back(shape[i] - box->start[i] - extents[i] - (extents[i] - 1) * interior);
    }
    return p.emit(Op::pad, make_params(std::move(pad)),
                  {now, p.full(*background, Aval(c.aval.dtype, Shape{}))});
  }
  SmallVec<Var, 8> inputs{operand, now};
  for (std::size_t i = 0; i < shape.size(); ++i)
    inputs.push_back(p.full(Scalar(box->start[i]), Aval(DType::i64, Shape{})));
  return p.emit(Op::dynamic_update_slice, ParamsRef{}, inputs);
}

namespace updates {

Var written(const Equation& e) { return e.inputs[written_operand(e.op)]; }

/// Is `v` made of `of` by updates alone?
bool made_of(const Pass& p, Var v, Var of) {
  constexpr int most = 8;
  for (int k = 0; k < most && v != of; ++k) {
    const Equation* e = p.def(v);
    if (!e || !is_update(e->op)) return false;
    v = e->inputs[0];
  }
  return v == of;
}

/// The condition for what an update writes, if it is one for the whole array, or one for each
/// element of the scatter's batch.
std::optional<Var> condition_of_writes(Pass& p, Var condition, const Equation& update) {
  const Shape& shape = p.shape(written(update));
  Var value = condition;
  const Equation* const spread = p.def(condition, Op::broadcast_in_dim);
  if (spread) value = spread->inputs[0];
  if (p.shape(value).empty())
    return condition == value ? condition : p.broadcast(value, shape, Axes());
  if (!spread || update.op == Op::dynamic_update_slice) return std::nullopt;
  const auto& s = update.as<ScatterParams>();
  const Axes& axes = spread->as<BroadcastParams>().axes;
  Axes of_updates;  // that are no part of windows, in the order of the indices' axes
  for (int d = 0; d < shape.rank(); ++d)
    if (!s.update_window_dims.contains(d)) of_updates.push_back(d);
  Axes to;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto* const batch =
        std::find(s.operand_batching_dims.begin(), s.operand_batching_dims.end(), axes[a]);
    if (batch == s.operand_batching_dims.end()) return std::nullopt;
    const int of_indices = s.indices_batching_dims[batch - s.operand_batching_dims.begin()];
    to.push_back(of_updates[of_indices]);
    if (p.shape(value)[a] != shape[to.back()]) return std::nullopt;
  }
  if (!std::is_sorted(to.begin(), to.end())) return std::nullopt;
  return p.broadcast(value, shape, to);
}

/// What an array holds where an update would write.
Var read_there(Pass& p, const Equation& update, Var array) {
  SmallVec<Var, 6> operands(update.inputs.begin(), update.inputs.end());
  operands[0] = array;
  if (update.op == Op::dynamic_update_slice) {
    operands.erase(operands.begin() + 1);
    return p.emit(Op::dynamic_slice, make_params(ShapeParams{p.shape(update.inputs[1])}), operands);
  }
  GatherParams g = gather_of(update.as<ScatterParams>(), p.shape(array), p.shape(written(update)));
  operands.pop_back();
  return p.emit(Op::gather, make_params(std::move(g)), operands);
}

}  // namespace updates

Var select_of_updates(Pass& p, const Candidate& c) {
  using namespace updates;
  const Var condition = c.in(0);
  for (const bool on_true : {true, false}) {
    const Var updated = c.in(on_true ? 1 : 2), plain = c.in(on_true ? 2 : 1);
    if (updated == plain || p.shape(updated) != c.aval.shape || p.shape(plain) != c.aval.shape ||
        !made_of(p, updated, plain))
      continue;
    const Equation update = *p.def(updated);
    const bool combines = update.op != Op::dynamic_update_slice && update.op != Op::scatter;
    if (combines && !is_one_update(update.as<ScatterParams>(), p.shape(update.inputs[1]))) continue;
    if (2 * p.aval(written(update)).elements() > c.aval.elements()) continue;
    const std::optional<Var> chosen = condition_of_writes(p, condition, update);
    if (!chosen) continue;
    const auto select = [&](Var which, Var then, Var otherwise) {
      return on_true ? p.emit(Op::select, {which, then, otherwise})
                     : p.emit(Op::select, {which, otherwise, then});
    };
    const Var array =
        update.inputs[0] == plain ? plain : select(condition, update.inputs[0], plain);
    const Var old = read_there(p, update, array);
    Var now = written(update);
    if (combines) {
      now = p.emit(combination_of(update.op), {old, now});
    }
    SmallVec<Var, 6> operands(update.inputs.begin(), update.inputs.end());
    operands[0] = array;
    operands[written_operand(update.op)] = select(*chosen, now, old);
    return p.emit(combines ? Op::scatter : update.op, update.params, operands);
  }
  return Pass::none;
}

}  // namespace vt::detail::simplification
