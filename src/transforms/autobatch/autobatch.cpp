// autobatch: recording a function, and emitting it as batched calls.
#include <chrono>
#include <utility>

#include <vt/autobatch.hpp>
#include <vt/small_vec.hpp>

#include "../../trace/base/timeline.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"
#include "emit.hpp"
#include "nodes.hpp"
#include "schedule.hpp"

namespace vt {

namespace detail {

namespace autobatching {

struct ThreadStats {
  BatchStats last;
  bool least = false;
};
ThreadStats& thread_stats() {
  static thread_local ThreadStats stats;
  return stats;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace autobatching

std::vector<Tensor> autobatch_flat(FunctionRef<std::vector<Tensor>()> f,
                                   const AutobatchOptions& options, CallSite where) {
  using namespace autobatching;
  BatchStats stats;
  double last = seconds();
  const auto lap = [&] {
    const double now = seconds();
    return now - std::exchange(last, now);
  };
  Vec<StateUpdate> updates;
  const FlatFunction loud = [&](std::span<const Tensor>) { return f(); };
  Recorded recorded =
      record(with_updates(loud, updates), {},
             {.kind = ScopeKind::branch, .transform = "vt::autobatch", .where = where});
  stats.record_seconds = lap();
  const Span span("transform", "autobatch");
  const NodeGraph nodes = find_nodes(recorded.graph);
  NodeSchedule schedule = schedule_nodes(nodes, options.strategy);
  stats.nodes = nodes.nodes.size();
  stats.groups = schedule.groups();
  stats.signatures = nodes.signatures.size();
  stats.schedule_seconds = lap();
  if (thread_stats().least) stats.least = least_groups(nodes);
  lap();
  std::vector<Tensor> results =
      emit_schedule(recorded.graph, nodes, std::move(schedule), recorded.captured, stats);
  stats.emit_seconds = lap();
  const std::size_t own = results.size() - updates.size();
  apply_updates(updates, std::span<const Tensor>(results).subspan(own));
  results.resize(own);
  thread_stats().last = std::move(stats);
  return results;
}

}  // namespace detail

BatchStats batch_stats() { return detail::autobatching::thread_stats().last; }
void measure_least_groups(bool wanted) { detail::autobatching::thread_stats().least = wanted; }

}  // namespace vt
