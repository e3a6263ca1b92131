// Finds axes along which elements are independent, and rewrites equations without such an axis.
#include "lane_form.hpp"

#include <algorithm>
#include <memory>

#include "../../trace/ir/axis_map.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

namespace lane_forms {

std::int64_t before(const Shape& s, int axis) {
  std::int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= s[d];
  return n;
}

/// Where axis `a` of operand `k` is in the results; −1: elements that differ along it meet, or its
/// index is changed.
int through(const GraphBody& g, const Equation& e, std::size_t k, int a) {
  const Shape &from = g.aval(e.inputs[k]).shape, &to = g.aval(e.outputs[0]).shape;
  const std::int64_t extent = from[a];
  const auto same = [&](int b) { return b >= 0 && b < to.rank() && to[b] == extent ? b : -1; };
  if (is_elementwise(e.op)) return from == to ? a : -1;
  switch (e.op) {
    case Op::reshape:
      for (int b = 0; b < to.rank(); ++b)
        if (to[b] == extent && before(to, b) == before(from, a)) return b;
      return -1;
    case Op::transpose: {
      const Axes& p = e.as<PermutationParams>().permutation;
      return static_cast<int>(std::find(p.begin(), p.end(), a) - p.begin());
    }
    case Op::broadcast_in_dim: return same(e.as<BroadcastParams>().axes[a]);
    case Op::concatenate: return e.as<AxisParams>().axis == a ? -1 : a;
    case Op::rev: return e.as<AxesParams>().axes.contains(a) ? -1 : a;
    case Op::slice: return e.as<SliceParams>().stride[a] == 1 ? same(a) : -1;
    case Op::pad: {
      const auto& p = e.as<PadParams>();
      const std::size_t d = a;
      return p.low[d] == 0 && p.high[d] == 0 && p.interior[d] == 0 ? a : -1;
    }
    case Op::dot_general: {
      const auto& p = e.as<DotParams>();
      const Axes &contract = k == 0 ? p.lhs_contract : p.rhs_contract,
                 &batch = k == 0 ? p.lhs_batch : p.rhs_batch;
      if (contract.contains(a)) return -1;
      if (batch.contains(a))
        return static_cast<int>(std::find(batch.begin(), batch.end(), a) - batch.begin());
      const Axes free = free_axes(from.rank(), contract, batch);
      const int place = static_cast<int>(batch.size()) +
                        static_cast<int>(std::find(free.begin(), free.end(), a) - free.begin());
      return k == 0 ? place
                    : to.rank() - static_cast<int>(free.size()) + place -
                          static_cast<int>(batch.size());
    }
    case Op::gather: {  // of the same table for all
      const auto& p = e.as<GatherParams>();
      if (k == 0 || a == from.rank() - 1 || p.indices_batching_dims.contains(a)) return -1;
      int leading = -1;
      for (int b = 0; b < to.rank(); ++b)
        if (!p.offset_dims.contains(b) && ++leading == a) return b;
      return -1;
    }
    case Op::cond:
    case Op::while_:
    case Op::fused_region: return lanes_of(e) && lanes_of(e)->mapped[k] && a == 0 ? 0 : -1;
    default: break;
  }
  if (family_of(e.op) == Family::cumulative) return e.as<CumulativeParams>().axis == a ? -1 : a;
  if (const Axes axes = reduced_axes(e); !axes.empty()) {
    if (axes.contains(a)) return -1;
    return a -
           static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](int r) { return r < a; }));
  }
  return -1;
}

Shape without(Shape s, int axis) {
  s.erase(s.begin() + axis);
  return s;
}
/// Axis numbers once `axis` is gone; `axis` itself goes.
Axes without(const Axes& all, int axis) {
  Axes left;
  for (int a : all)
    if (a != axis) left.push_back(a - (axis >= 0 && a > axis));
  return left;
}

}  // namespace lane_forms

Axes reduced_axes(const Equation& e) {
  if (e.op == Op::argmax || e.op == Op::argmin) return Axes(e.as<ArgParams>().axis);
  return is_reduction(e.op) ? e.as<AxesParams>().axes : Axes();
}

LaneAxes::LaneAxes(const GraphBody& g) : graph_(&g) {
  for (const Aval& a : g.avals) {
    first_.push_back(static_cast<int>(parent_.size()));
    for (int d = 0; d < a.shape.rank(); ++d) parent_.push_back(static_cast<int>(parent_.size()));
  }
  for (const Equation& e : g.equations)
    for (std::size_t k = 0; k < e.inputs.size() && !e.outputs.empty(); ++k)
      for (int a = 0; a < g.aval(e.inputs[k]).shape.rank(); ++a) {
        const int b = lane_forms::through(g, e, k, a);
        for (Var v : e.outputs)
          if (b >= 0) join(e.inputs[k], a, v, b);
      }
}

int LaneAxes::class_of(Var v, int axis) {
  std::size_t n = node(v, axis);
  while (parent_[n] != static_cast<int>(n)) {
    parent_[n] = parent_[parent_[n]];
    n = static_cast<std::size_t>(parent_[n]);
  }
  return static_cast<int>(n);
}

void LaneAxes::join(Var a, int axis, Var b, int other) {
  if (graph_->aval(a).shape[axis] != graph_->aval(b).shape[other]) return;
  parent_[class_of(a, axis)] = class_of(b, other);
}

void LaneAxes::choose(int of_class) {
  axis_.assign(graph_->avals.size(), -1);
  ambiguous_.assign(graph_->avals.size(), false);
  for (std::size_t v = 0; v < graph_->avals.size(); ++v)
    for (int d = 0; d < graph_->avals[v].shape.rank(); ++d)
      if (class_of(static_cast<Var>(v), d) == of_class) {
        if (axis_[v] >= 0) ambiguous_[v] = true;
        else axis_[v] = d;
      }
}

Aval LaneAxes::aval(Var v) const {
  const Aval& a = graph_->aval(v);
  return axis(v) < 0 ? a : Aval(a.dtype, lane_forms::without(a.shape, axis(v)));
}

std::optional<Equation> LaneAxes::equation(const Equation& e) const {
  using lane_forms::without;
  const int b = axis(e.outputs[0]);
  for (Var v : e.outputs)
    if (axis(v) != b || ambiguous(v)) return std::nullopt;
  bool from_lanes = family_of(e.op) == Family::leaf || e.op == Op::broadcast_in_dim;
  for (std::size_t k = 0; k < e.inputs.size(); ++k) {
    const int a = axis(e.inputs[k]);
    from_lanes = from_lanes || a >= 0;
    if (ambiguous(e.inputs[k]) || (a >= 0 && (b < 0 || lane_forms::through(*graph_, e, k, a) != b)))
      return std::nullopt;
  }
  if (b < 0) return e;
  // where lanes are put together: a concatenation, a slice of a longer axis
  if (!from_lanes) return std::nullopt;
  if (is_elementwise(e.op)) return e;
  Equation lane = e;
  const int a = e.inputs.empty() ? -1 : axis(e.inputs[0]);
  const auto of_one_lane = [&](auto p) -> std::optional<Equation> {
    if (!p.lanes || b != 0) return std::nullopt;
    for (std::size_t k = 0; k < e.inputs.size(); ++k)
      if (p.lanes.mapped[k] != (axis(e.inputs[k]) == 0)) return std::nullopt;
    p.lanes = {};
    lane.params = make_params(std::move(p));
    return lane;
  };
  switch (e.op) {
    case Op::full: {
      FullParams p = e.as<FullParams>();
      p.aval.shape = without(p.aval.shape, b);
      lane.params = make_params(std::move(p));
      return lane;
    }
    case Op::iota: {
      IotaParams p = e.as<IotaParams>();
      if (p.axis == b) return std::nullopt;
      p.axis -= p.axis > b;
      p.aval.shape = without(p.aval.shape, b);
      lane.params = make_params(std::move(p));
      return lane;
    }
    case Op::reshape:
      lane.params = make_params(ShapeParams{without(e.as<ShapeParams>().shape, b)});
      return lane;
    case Op::transpose:
      lane.params =
          make_params(PermutationParams{without(e.as<PermutationParams>().permutation, a)});
      return lane;
    case Op::broadcast_in_dim: {
      BroadcastParams p = e.as<BroadcastParams>();
      if (a < 0 && p.axes.contains(b)) return std::nullopt;  // an axis of one element, broadcast
      lane.params = make_params(BroadcastParams{without(p.shape, b), without(p.axes, b)});
      return lane;
    }
    case Op::concatenate: {
      const int along = e.as<AxisParams>().axis;
      if (along == b || any_of(e.inputs, [&](Var v) { return axis(v) != b; })) return std::nullopt;
      lane.params = make_params(AxisParams{along - (along > b)});
      return lane;
    }
    case Op::rev:
      lane.params = make_params(AxesParams{without(e.as<AxesParams>().axes, b)});
      return lane;
    case Op::slice: {
      const auto& p = e.as<SliceParams>();
      lane.params =
          make_params(SliceParams{without(p.start, b), without(p.limit, b), without(p.stride, b)});
      return lane;
    }
    case Op::pad: {
      const auto& p = e.as<PadParams>();
      lane.params =
          make_params(PadParams{without(p.low, b), without(p.high, b), without(p.interior, b)});
      return lane;
    }
    case Op::dot_general: {
      DotParams p = e.as<DotParams>();
      const int c = axis(e.inputs[1]);
      p.lhs_contract = without(p.lhs_contract, a);
      p.rhs_contract = without(p.rhs_contract, c);
      p.lhs_batch = without(p.lhs_batch, a);
      p.rhs_batch = without(p.rhs_batch, c);
      if (p.lhs_batch.size() != p.rhs_batch.size()) return std::nullopt;
      lane.params = make_params(std::move(p));
      return lane;
    }
    case Op::gather: {
      GatherParams p = e.as<GatherParams>();
      p.offset_dims = without(p.offset_dims, b);
      p.indices_batching_dims = without(p.indices_batching_dims, axis(e.inputs[1]));
      lane.params = make_params(std::move(p));
      return lane;
    }
    case Op::cond: return of_one_lane(e.as<CondParams>());
    case Op::while_: return of_one_lane(e.as<WhileParams>());
    case Op::fused_region: return of_one_lane(e.as<RegionParams>());
    default: break;
  }
  if (family_of(e.op) == Family::cumulative) {
    CumulativeParams p = e.as<CumulativeParams>();
    p.axis -= p.axis > b;
    lane.params = make_params(std::move(p));
    return lane;
  }
  if (e.op == Op::argmax || e.op == Op::argmin) {
    ArgParams p = e.as<ArgParams>();
    p.axis -= p.axis > a;
    lane.params = make_params(std::move(p));
    return lane;
  }
  if (!is_reduction(e.op)) return std::nullopt;
  lane.params = make_params(AxesParams{without(e.as<AxesParams>().axes, a)});
  return lane;
}

namespace lane_forms {

constexpr std::int64_t fewest = 4;
// Sequences are read a vector at a time, each iteration from another place: those that no cache
// holds come faster as whole rows.
constexpr std::size_t longest_row = std::size_t{1} << 16;  // bytes

std::optional<LaneForm> of_class(LaneAxes& lanes, int number, const GraphBody& alone,
                                 const GraphBody& body, const ScanParams& p,
                                 const Vec<bool>& in_frame) {
  lanes.choose(number);
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  const Equation& e = alone.equations[0];
  LaneForm form;
  form.lane = alone;
  auto one = std::make_shared<GraphBody>();
  one->inputs = body.inputs;
  one->outputs = body.outputs;
  for (std::size_t v = 0; v < body.avals.size(); ++v) {
    one->avals.push_back(lanes.aval(static_cast<Var>(v)));
    if (!form.in_registers(one->avals.back()) && !in_frame[v]) return std::nullopt;
  }
  for (const Equation& inner : body.equations) {
    if (inner.outputs.empty()) return std::nullopt;
    const std::optional<Equation> lane = lanes.equation(inner);
    if (!lane) return std::nullopt;
    one->equations.push_back(*lane);
  }
  // Where the lanes are outside: elements of sequences and of what is given iteration by iteration
  // lie one axis further in.
  const auto place = [&](Var inner, Var outer, bool stacked) {
    const int axis = lanes.axis(inner);
    if (lanes.ambiguous(inner)) return false;
    form.axes.push_back(axis < 0 ? -1 : axis + stacked);
    if (axis < 0) return true;
    const Shape& shape = alone.aval(outer).shape;
    form.count = shape[axis + stacked];
    form.lane.avals[outer].shape = without(shape, axis + stacked);
    return !stacked || body.aval(inner).bytes() <= longest_row;
  };
  for (std::size_t i = 0; i < e.inputs.size(); ++i)
    if (!place(body.inputs[i], e.inputs[i], i >= carries && i < looped)) return std::nullopt;
  for (std::size_t k = 0; k < e.outputs.size(); ++k)
    if (!place(body.outputs[k], e.outputs[k], k >= carries)) return std::nullopt;
  for (std::size_t i = 0; i < carries; ++i)
    if (lanes.axis(body.inputs[i]) != lanes.axis(body.outputs[i])) return std::nullopt;
  ScanParams q = p;
  q.body = std::move(one);
  form.lane.equations[0].params = make_params(std::move(q));
  return form;
}

}  // namespace lane_forms

std::optional<LaneForm> lanes_of_scan(const GraphBody& alone, const RegisterLimits& limits) {
  const auto& p = alone.equations[0].as<ScanParams>();
  const GraphBody& body = *p.body;
  LaneAxes lanes(body);
  for (int i = 0; i < p.carries; ++i) {
    const Var in = body.inputs[i], out = body.outputs[i];
    for (int a = 0; a < body.aval(in).shape.rank(); ++a) lanes.join(in, a, out, a);
  }
  // The class with the most lanes.
  Vec<std::pair<std::int64_t, int>> candidates;
  for (int i = 0; i < p.carries; ++i) {
    const Var v = body.inputs[i];
    for (int a = 0; a < body.aval(v).shape.rank(); ++a) {
      const std::pair<std::int64_t, int> c{body.aval(v).shape[a], lanes.class_of(v, a)};
      if (c.first >= lane_forms::fewest &&
          std::find(candidates.begin(), candidates.end(), c) == candidates.end())
        candidates.push_back(c);
    }
  }
  const Vec<bool> in_frame =
      limits.of_unset > 0 ? unset_arrays(body) : Vec<bool>(body.avals.size());
  insertion_sort(candidates, [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& [count, number] : candidates)
    if (std::optional<LaneForm> form =
            lane_forms::of_class(lanes, number, alone, body, p, in_frame);
        form && fits_registers(*form, 0, limits))
      return form;
  return std::nullopt;
}

}  // namespace vt::detail
