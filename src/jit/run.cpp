// run_graph: runs a Graph once, as lazy evaluation does; programs are kept by the structure of
// their Graph. run_program: runs what was compiled.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../trace/base/locks.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/ir/collectives.hpp"
#include "../trace/ir/executable.hpp"
#include "../trace/processes/collective.hpp"
#include "../trace/record/node.hpp"
#include "../trace/record/thread_state.hpp"
#include "call_list.hpp"
#include "cpu/runtime/compiler.hpp"
#include "cpu/runtime/host_program.hpp"
#include "services/counters.hpp"
#include "services/executables.hpp"
#include "worth_compiling.hpp"

namespace vt::detail {

namespace lazy_programs {

/// The lazy Graphs seen so far. A Graph is compiled when it is large, when its loops run long, or
/// when it is seen for the second time.
struct Seen {
  GraphBody graph;
  Device device;
  LongMutex<> mutex;
  std::shared_ptr<Executable> executable;
};
using Alike = SmallVec<std::shared_ptr<Seen>, 1>;
struct Cache {
  static constexpr std::size_t most_programs = 1024;
  Mutex mutex;
  RecentMap<std::size_t, Alike> seen{most_programs};
};
Cache& cache() {
  // never destroyed: values may be asked for while the process ends
  static Cache* const cache = new Cache;
  return *cache;
}

/// The Graph's entry; `known`: was there one?
std::shared_ptr<Seen> entry_of(const GraphBody& graph, Device device, bool& known) {
  const std::size_t hash = hash_of(graph);
  Vec<Alike> gone;  // until the lock has gone
  const std::lock_guard lock(cache().mutex);
  Alike* alike = cache().seen.find(hash);
  if (alike)
    for (const std::shared_ptr<Seen>& candidate : *alike)
      if (candidate->device == device && equal(candidate->graph, graph)) {
        known = true;
        return candidate;
      }
  auto entry = std::make_shared<Seen>();
  entry->graph = graph;
  entry->device = device;
  if (!alike) alike = cache().seen.emplace(hash, {}, gone);
  alike->push_back(entry);
  return entry;
}

Vec<BufferRef> run(const GraphBody& graph, std::span<const BufferRef> inputs, bool at_first_sight) {
  Vec<Device> places;
  for (const BufferRef& b : inputs) places.push_back(b->device);
  const Device device = device_of(graph, places);
  const bool on_host = device.kind == Device::Kind::cpu;
  // Passes put exchanges together: all processes must run the same program, whoever sees the Graph
  // for the first time.
  const bool alike = communicates(graph);
  if (on_host && !host_compiles()) return interpreted(graph, inputs);
  // A list of calls differs from minibatch to minibatch, and is as soon planned as found again.
  if (on_host && !alike && suits_call_list(graph))
    return CallList(simplify(graph, SimplifyFor::running)).run(inputs);
  bool known = false;
  const std::shared_ptr<Seen> entry = entry_of(graph, device, known);
  if (on_host && !known && !alike) {
    const bool may_interpret = !host_must_compile() && is_little_work(graph) &&
                               !(at_first_sight && rounds_in_its_own_way(graph));
    if (std::optional<GraphBody> calls = as_batched_calls(graph, may_interpret)) {
      const auto list = std::make_shared<CallList>(std::move(*calls));
      if (!is_worth_compiling(graph)) {
        const std::lock_guard lock(entry->mutex);
        entry->executable = list;
      }
      return list->run(inputs);
    }
    if (may_interpret)
      if (std::optional<Vec<BufferRef>> results = interpreted_soon(graph, inputs))
        return std::move(*results);
  }
  std::shared_ptr<Executable> executable;
  {
    std::lock_guard lock(entry->mutex);
    if (entry->executable) count(counters().program_hits);
    else entry->executable = compile_graph(entry->graph, device);
    executable = entry->executable;
  }
  return executable->run(inputs);
}

/// What `run` gives; as the process ends the interpreter does what needs code that is not there,
/// unless it has begun something that must not happen twice.
template <class F>
Vec<BufferRef> or_interpreted(const GraphBody& graph, std::span<const BufferRef> inputs,
                              bool may_repeat, const F& run) {
  try {
    if (!communicates(graph)) return run();
    Vec<BufferRef> results;
    run_collectives(graph, [&] { results = run(); });
    return results;
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "vt: there is no memory left to run it", thread_state().where);
  } catch (const Error& e) {
    if (!stopped_by_end(e) || !may_repeat || keeps_order(graph)) throw;
  }
  return interpreted(graph, inputs);
}

}  // namespace lazy_programs

std::string code_of_process() {
  std::string text = host_compiles() ? cpu::target_key() : "interpreter";
  if (default_device().kind == Device::Kind::cuda) {  // those of a host are of one kind
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    text += formatted("|cuda {}", host);
  }
  // What else changes the order of additions.
  for (const char* name : {"VT_BACKEND", "VT_LANES", "VT_AUTOBATCH", "VT_TF32", "VT_CUDA_LOOPS",
                           "VT_CUBLAS_LIBRARY", "VT_CUFFT_LIBRARY", "VT_CUSOLVER_LIBRARY"}) {
    const char* const value = std::getenv(name);
    text += formatted("|{}", value ? value : "");
  }
  return text;
}

Vec<BufferRef> run_graph(const GraphBody& graph, std::span<const BufferRef> inputs,
                         bool at_first_sight) {
  const Busy busy;
  return lazy_programs::or_interpreted(
      graph, inputs, true, [&] { return lazy_programs::run(graph, inputs, at_first_sight); });
}

Vec<BufferRef> run_program(Executable& program, const GraphBody& graph,
                           std::span<const BufferRef> inputs) {
  return lazy_programs::or_interpreted(graph, inputs, program.overwritten().empty(),
                                       [&] { return program.run(inputs); });
}

void drop_lazy_programs() {
  lazy_programs::Cache& cache = lazy_programs::cache();
  Vec<lazy_programs::Alike> gone;  // until the lock has gone
  const std::lock_guard lock(cache.mutex);
  gone = cache.seen.take_all();
}

}  // namespace vt::detail
