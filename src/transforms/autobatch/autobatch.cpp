// autobatch: recording a function, and emitting it as batched calls.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <vt/autobatch.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "../../trace/base/timeline.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"
#include "emit.hpp"
#include "kinds.hpp"
#include "looks.hpp"
#include "nodes.hpp"
#include "schedule.hpp"

namespace vt {

namespace detail {

namespace autobatching {

struct ThreadStats {
  BatchStats last;
  KindCounts kinds;
  std::uint64_t compiled_before = 0;
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
  KindCounts kinds;
  const std::uint64_t compiled_before = vt::stats().kernels_compiled;
  double last = seconds();
  const auto lap = [&] {
    const double now = seconds();
    return now - std::exchange(last, now);
  };
  Vec<StateUpdate> updates;
  const FlatFunction loud = [&](std::span<const Tensor>) { return f(); };
  BatchLooks looks(options.strategy, where, stats, kinds);
  std::vector<Tensor> results;
  std::optional<Recorded> recorded;
  Delta rest;
  {
    const WhereScope own_lines(CallSite{});
    const std::string line = timeline_wanted() ? json_line(where) : "";
    const Span span("record", "vt::autobatch", line);
    RecordingScope scope(
        {.kind = ScopeKind::batch, .transform = "vt::autobatch", .where = where, .looks = &looks});
    results = with_updates(loud, updates)({});
    check_results(results);
    // Derivatives need all that was recorded, also what has been computed.
    if (stats.looks > 0 && current_level() == 1) rest = looks.rest(results);
    else recorded = scope.finish(results);
  }
  stats.record_seconds = lap() - looks.seconds;
  const auto settle = [&] {
    const std::size_t own = results.size() - updates.size();
    apply_updates(updates, std::span<const Tensor>(results).subspan(own));
    results.resize(own);
    thread_stats().last = std::move(stats);
    thread_stats().kinds = std::move(kinds);
    thread_stats().compiled_before = compiled_before;
  };
  if (!recorded) {
    results = looks.finish(std::move(rest), results);
    settle();
    return results;
  }
  const Span span("transform", "autobatch");
  const NodeGraph nodes = find_nodes(std::move(recorded->graph), looks.joining());
  NodeSchedule schedule = schedule_nodes(nodes, options.strategy);
  stats.nodes += nodes.recorded;
  stats.cells += nodes.nodes.size();
  stats.groups += schedule.groups();
  stats.signatures += nodes.signatures.size();
  kinds.add(nodes, schedule);
  stats.schedule_seconds += lap();
  if (thread_stats().least) stats.least = least_groups(nodes);
  lap();
  results = emit_schedule(nodes, std::move(schedule), recorded->captured, stats);
  stats.emit_seconds += lap();
  settle();
  return results;
}

}  // namespace detail

BatchStats batch_stats() {
  const detail::autobatching::ThreadStats& all = detail::autobatching::thread_stats();
  BatchStats stats = all.last;
  stats.kinds = all.kinds.list();
  const std::uint64_t compiled = vt::stats().kernels_compiled;  // less, where they were reset
  stats.kernels_compiled = compiled - std::min(compiled, all.compiled_before);
  return stats;
}
void measure_least_groups(bool wanted) { detail::autobatching::thread_stats().least = wanted; }

}  // namespace vt
