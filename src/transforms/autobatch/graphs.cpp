// Graphs that were recorded without autobatch: which of them are worth its work.
#include <algorithm>
#include <utility>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/record/batching.hpp"
#include "../../trace/record/scope.hpp"
#include "emit.hpp"
#include "nodes.hpp"
#include "schedule.hpp"

namespace vt::detail {

namespace graph_batching {

// So many nodes a kind and a batch there are at least, on average.
constexpr std::size_t least_alike = 8;
// A kind of node that has not run before is compiled; a batch is a call.
constexpr double seconds_to_compile = 10e-3, seconds_of_batch = 3e-6;
// What Graphs of the same lines of a program had in common goes for all that follow.
constexpr std::uint64_t all_of_these = 1;
// The rows of a batch lie side by side, and live until all of them have been read.
constexpr std::size_t most_bytes_of_batch = 256 << 20;

/// Equations on the longest path.
std::size_t depth_of(const GraphBody& g) {
  Vec<std::int32_t> depth(g.avals.size(), 0);
  std::int32_t most = 0;
  for (const Equation& e : g.equations) {
    std::int32_t before = 0;
    for (Var v : e.inputs) before = std::max(before, depth[v]);
    for (Var v : e.outputs) depth[v] = before + 1;
    most = std::max(most, before + 1);
  }
  return most;
}

std::size_t most_bytes(const autobatching::NodeGraph& nodes,
                       const autobatching::NodeSchedule& schedule) {
  std::size_t most = 0;
  for (std::size_t k = 0; k < schedule.groups(); ++k) {
    const auto group = schedule.group(k);
    std::size_t row = 0, rows = 0;
    for (std::int32_t e : nodes.equations_of(group[0]))
      for (Var v : nodes.equation(e).outputs) row += nodes.graph.aval(v).bytes();
    for (std::int32_t n : group) rows += static_cast<std::size_t>(nodes.rows_of_node(n));
    most = std::max(most, row * rows);
  }
  return most;
}

}  // namespace graph_batching

std::optional<GraphBody> batch_alike(const GraphBody& graph, double seconds) {
  using namespace autobatching;
  using namespace graph_batching;
  // Most chains are told without more work.
  if (keeps_order(graph) || graph.equations.size() < 2 * depth_of(graph)) return std::nullopt;
  const NodeGraph nodes = find_nodes(graph, {.program = all_of_these});
  if (nodes.recorded < least_alike * nodes.signatures.size()) return std::nullopt;
  NodeSchedule schedule = schedule_nodes(nodes, Batching::agenda);
  if (nodes.recorded < least_alike * schedule.groups() ||
      graph.outputs.size() * least_alike > nodes.recorded)
    return std::nullopt;
  const double batched = seconds_to_compile * static_cast<double>(new_functions(nodes)) +
                         seconds_of_batch * static_cast<double>(schedule.groups());
  if (batched > seconds || most_bytes(nodes, schedule) > most_bytes_of_batch) return std::nullopt;
  Vec<Aval> avals;
  for (Var v : graph.inputs) avals.push_back(graph.aval(v));
  BatchStats stats;
  return closed(record(
      [&](std::span<const Tensor> tracers) {
        return emit_schedule(nodes, std::move(schedule), tracers, stats);
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::autobatch"}));
}

}  // namespace vt::detail
