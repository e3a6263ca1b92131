// Finds axes along which elements are independent, and rewrites equations without such an axis.
#include "lane_form.hpp"

#include <algorithm>
#include <memory>

#include "../../trace/ir/axis_map.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

namespace lane_forms {

Shape without(Shape s, int axis) {
  s.erase(s.begin() + axis);
  return s;
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
        const int b = axis_in_result(g, e, k, a);
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

RecycledVec<Aval> LaneAxes::avals() const {
  RecycledVec<Aval> all;
  for (std::size_t v = 0; v < graph_->avals.size(); ++v) all.push_back(aval(static_cast<Var>(v)));
  return all;
}

std::optional<Equation> LaneAxes::equation(const Equation& e) const {
  const int b = axis(e.outputs[0]);
  for (Var v : e.outputs)
    if (axis(v) != b || ambiguous(v)) return std::nullopt;
  SmallVec<int, 4> of_operands;
  for (Var v : e.inputs) {
    if (ambiguous(v) || (b < 0 && axis(v) >= 0)) return std::nullopt;
    of_operands.push_back(axis(v));
  }
  Equation lane = e;
  if (b < 0) return lane;
  std::optional<ParamsRef> params =
      without_axis(*graph_, e, b, {of_operands.data(), of_operands.size()});
  if (!params) return std::nullopt;
  lane.params = std::move(*params);
  return lane;
}

std::optional<GraphBody> LaneAxes::one_lane() const {
  GraphBody one;
  one.avals = avals();
  one.inputs = graph_->inputs;
  one.outputs = graph_->outputs;
  for (const Equation& e : graph_->equations) {
    std::optional<Equation> lane = e.outputs.empty() ? std::nullopt : equation(e);
    if (!lane) return std::nullopt;
    one.equations.push_back(std::move(*lane));
  }
  return one;
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
  std::optional<GraphBody> one = lanes.one_lane();
  if (!one) return std::nullopt;
  for (std::size_t v = 0; v < one->avals.size(); ++v)
    if (!form.in_registers(one->avals[v]) && !in_frame[v]) return std::nullopt;
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
  q.body = std::make_shared<const GraphBody>(std::move(*one));
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
