// A whole Graph as one of its lanes sees it, and back.
#include "one_lane.hpp"

#include <algorithm>
#include <utility>

#include "lane_form.hpp"

namespace vt::detail {

std::optional<OneLane> one_lane(const GraphBody& g, std::int64_t fewest) {
  const auto leading = [&](Var v) { return g.aval(v).shape.rank() == 0 ? 0 : g.aval(v).shape[0]; };
  if (g.outputs.empty() || leading(g.outputs[0]) < fewest) return std::nullopt;
  LaneAxes axes(g);
  axes.choose(axes.class_of(g.outputs[0], 0));
  if (any_of(g.outputs, [&](Var v) { return axes.axis(v) != 0; }) ||
      any_of(g.inputs, [&](Var v) { return axes.axis(v) > 0; }))
    return std::nullopt;
  std::optional<GraphBody> graph = axes.one_lane();
  if (!graph) return std::nullopt;
  OneLane one{std::move(*graph), leading(g.outputs[0]), Vec<bool>(g.avals.size())};
  for (std::size_t v = 0; v < g.avals.size(); ++v)
    one.mapped[v] = axes.axis(static_cast<Var>(v)) >= 0;
  return one;
}

GraphBody for_all_lanes(const OneLane& one, const GraphBody& regions) {
  GraphBody all = regions;
  const auto with_lanes = [&](Var v) {
    Aval& a = all.avals[v];
    a.shape.insert(a.shape.begin(), one.lanes);
  };
  Vec<bool> mapped(all.avals.size());
  for (std::size_t i = 0; i < all.inputs.size(); ++i) {
    if (!one.mapped[one.graph.inputs[i]]) continue;
    mapped[all.inputs[i]] = true;
    with_lanes(all.inputs[i]);
  }
  for (Equation& e : all.equations) {
    if (e.op != Op::fused_region) continue;
    RegionParams p = e.as<RegionParams>();
    p.lanes.count = one.lanes;
    for (Var v : e.inputs) p.lanes.mapped.push_back(mapped[v]);
    for (Var v : e.outputs) {
      mapped[v] = true;
      with_lanes(v);
    }
    e.params = make_params(std::move(p));
  }
  return all;
}

}  // namespace vt::detail
