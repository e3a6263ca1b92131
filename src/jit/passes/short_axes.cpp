// Reductions and broadcasts over long axes and short last ones with other axes in between, as the
// channels of a group in group norm: in two steps, long axes first for sums, short ones first for
// broadcasts. SIMD lanes can then go along all last axes as one.

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/axis_map.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace short_axes {

// of the longest vectors; the same for all, as it shapes reductions
constexpr std::int64_t simd_lanes = 16;
constexpr std::int64_t worth_two = 32;  // iterations along the long axes

/// Which of the axes that `over` names are last, of so few elements that SIMD lanes along them
/// alone would be idle, behind others that it does not name, and these behind long ones that it
/// does. None: leave them as they are.
Axes short_ones(const Shape& shape, const Axes& over) {
  int first = shape.rank();
  std::int64_t inner = 1, kept = 1, outer = 1;
  while (first > 0 && (over.contains(first - 1) || shape[first - 1] == 1)) inner *= shape[--first];
  int axis = first;
  for (; axis > 0 && (!over.contains(axis - 1) || shape[axis - 1] == 1); --axis)
    kept *= shape[axis - 1];
  for (; axis > 0; --axis)
    if (over.contains(axis - 1)) outer *= shape[axis - 1];
  const std::int64_t whole = (inner + simd_lanes - 1) / simd_lanes * simd_lanes;
  if (inner < 2 || inner * 5 > whole * 4 || kept < 2 || outer < worth_two) return {};
  Axes last;
  for (int a = first; a < shape.rank(); ++a)
    if (over.contains(a)) last.push_back(a);
  return last;
}

bool goes_in_two(const GraphBody& graph, const Equation& e) {
  if (!is_reduction(e.op)) return false;
  const DType d = graph.aval(e.inputs[0]).dtype;
  // what is between would be rounded
  if (e.op == Op::reduce_sum) return d != DType::f16 && d != DType::bf16;
  return reduction_facts[e.op].idempotent;
}

/// Over the long axes, then over the short ones of what is left.
bool split_reduction(GraphBody& result, const Equation& e) {
  const Aval operand = result.aval(e.inputs[0]);
  const Axes& over = e.as<AxesParams>().axes;
  const Axes last = short_ones(operand.shape, over);
  if (last.empty()) return false;
  Axes first, then;
  Shape between;
  for (int a = 0; a < operand.shape.rank(); ++a) {
    if (over.contains(a) && !last.contains(a)) {
      first.push_back(a);
      continue;
    }
    if (last.contains(a)) then.push_back(between.rank());
    between.push_back(operand.shape[a]);
  }
  Equation rows = e, rest = e;
  rows.outputs[0] = rest.inputs[0] = result.fresh(Aval(operand.dtype, between));
  rows.params = make_params(AxesParams{first});
  rest.params = make_params(AxesParams{then});
  result.equations.push_back(std::move(rows));
  result.equations.push_back(std::move(rest));
  return true;
}

/// Along the short axes, then over the long ones.
bool split_broadcast(GraphBody& result, const Equation& e) {
  const Aval operand = result.aval(e.inputs[0]);
  const BroadcastParams& p = e.as<BroadcastParams>();
  Shape own = Shape::filled(p.shape.rank(), 0);  // 0: not there
  Axes over;
  for (std::size_t i = 0; i < p.axes.size(); ++i) own[p.axes[i]] = operand.shape[i];
  for (int a = 0; a < p.shape.rank(); ++a)
    if (p.shape[a] != 1 && own[a] < 2) over.push_back(a);
  const Axes last = short_ones(p.shape, over);
  if (last.empty()) return false;
  BroadcastParams along, across{p.shape, {}};
  for (int a = 0; a < p.shape.rank(); ++a) {
    if (own[a] > 0) along.axes.push_back(along.shape.rank());
    if (own[a] == 0 && !last.contains(a)) continue;
    across.axes.push_back(a);
    along.shape.push_back(last.contains(a) ? p.shape[a] : own[a]);
  }
  Equation row = e, all = e;
  row.outputs[0] = all.inputs[0] = result.fresh(Aval(operand.dtype, along.shape));
  row.params = make_params(std::move(along));
  all.params = make_params(std::move(across));
  result.equations.push_back(std::move(row));
  result.equations.push_back(std::move(all));
  return true;
}

}  // namespace short_axes

GraphBody split_short_axes(GraphBody graph) {
  auto equations = std::move(graph.equations);
  graph.equations.clear();
  for (Equation& e : equations) {
    const bool split = e.op == Op::broadcast_in_dim ? short_axes::split_broadcast(graph, e)
                                                    : short_axes::goes_in_two(graph, e) &&
                                                          short_axes::split_reduction(graph, e);
    if (!split) graph.equations.push_back(std::move(e));
  }
  return graph;
}

}  // namespace vt::detail
