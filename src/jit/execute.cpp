// run_graph and compile_graph: what the rest of vt calls to have a Graph run. Chooses between
// compiled programs and the interpreter, and keeps programs by the structure of their Graph.
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../trace/base/environment.hpp"
#include "../trace/base/hash_map.hpp"
#include "../trace/base/locks.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/base/timeline.hpp"
#include "../trace/base/warnings.hpp"
#include "../trace/ir/effects.hpp"
#include "../trace/ir/executable.hpp"
#include "../trace/record/batching.hpp"
#include "../trace/record/devices.hpp"
#include "../trace/record/node.hpp"
#include "../trace/record/thread_state.hpp"
#include "call_list.hpp"
#include "cpu/runtime/program.hpp"
#include "cpu/runtime/row_program.hpp"
#include "passes/lower_complex.hpp"
#include "passes/passes.hpp"
#include "services/background.hpp"
#include "services/counters.hpp"
#include "services/executables.hpp"
#include "services/machine_limits.hpp"
#include "services/planning.hpp"

namespace vt::detail {

namespace execution {

Vec<BufferRef> interpreted(const GraphBody& graph, std::span<const BufferRef> inputs) {
  const Span span("run", "interpreter");
  count(counters().interpreter_steps, graph.equations.size());
  return interpret(graph, inputs);
}

class InterpretedGraph : public Executable {
 public:
  explicit InterpretedGraph(GraphBody graph) : graph_(std::move(graph)) {}
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override {
    return interpreted(graph_, inputs);
  }
  void report(Report& report, int depth) const override {
    ReportStep all;
    all.depth = depth;
    all.title = "interpreter: " + std::to_string(graph_.equations.size()) + " equations";
    all.nest = to_text(graph_);
    all.graph = &graph_;
    report.push_back(std::move(all));
  }
  Memory memory() const override { return interpreted_memory(graph_); }

 private:
  GraphBody graph_;
};

// A Graph that only the host can run, between values on a device.
class HostDetour : public Executable {
 public:
  HostDetour(std::shared_ptr<Executable> host, Device device)
      : host_(std::move(host)), device_(device) {}
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override {
    count(counters().host_steps);
    return brought(host_->run(brought(inputs, vt::cpu())), device_);
  }
  void report(Report& report, int depth) const override {
    ReportStep head;
    head.depth = depth;
    head.title = "on the host, between copies from and to the device";
    report.push_back(std::move(head));
    host_->report(report, depth + 1);
  }
  Memory memory() const override { return host_->memory(); }

 private:
  std::shared_ptr<Executable> host_;
  Device device_;
};

enum class Choice { automatic, interpreter, cpu };

Choice choice() {
  static const Choice made = [] {
    const std::string_view name = backend_from_environment();
    return name == "interpreter" ? Choice::interpreter
           : name == "cpu"       ? Choice::cpu
                                 : Choice::automatic;
  }();
  return made;
}

const Backend* backend() {
  if (choice() == Choice::interpreter) return nullptr;
  static const Backend* const chosen = [] {
    std::string reason;
    const Backend* b = cpu_backend(&reason);
    if (!b)
      warn_once("vt runs on its interpreter, which is slow, as LLVM cannot be used: " + reason);
    return b;
  }();
  if (!chosen) count(counters().llvm_unavailable);
  return process_ends() ? nullptr : chosen;
}

// The process ends, and something is not compiled yet.
bool stopped_by_end(const Error& e) { return e.kind() == ErrorKind::backend && process_ends(); }

// A fault of the compiler, or a lack of what it needs, must not take the user's program down: the
// interpreter gives the same results.
std::shared_ptr<Executable> interpreted_instead(const GraphBody& graph, const std::string& why) {
  warn_once("a Graph could not be compiled and is interpreted: " + why);
  return std::make_shared<InterpretedGraph>(graph);
}

// Batched calls as equations that kernels are made of.
GraphBody without_batched_calls(const GraphBody& graph) {
  return simplify(lower_batched_calls(graph), SimplifyFor::running);
}

/// Those of bodies as well, each body once.
std::size_t equations_in(const GraphBody& g, HashMap<const GraphBody*, bool>& counted) {
  std::size_t count = g.equations.size();
  for (const Equation& e : g.equations)
    for (const GraphRef& body : bodies_of(e.params))
      if (counted.emplace(body.get(), true).fresh) count += equations_in(*body, counted);
  return count;
}

std::shared_ptr<Executable> program_of(const GraphBody& graph, const Backend& b,
                                       const OwnedInputs& owned) {
  const auto begin = std::chrono::steady_clock::now();
  auto made = std::make_shared<Program>(graph, b, owned);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (taken.count() > 1) {
    HashMap<const GraphBody*, bool> counted;
    warn_once(formatted("compiling {} equations took {:.1f} s (VT_TRACE shows what of them){}",
                        equations_in(graph, counted), taken.count(), at(thread_state().where)));
  }
  return made;
}

std::shared_ptr<Executable> compile(const GraphBody& graph, const Backend& b,
                                    std::span<const char> donated = {}) {
  if (suits_call_list(graph)) return std::make_shared<CallList>(graph, b);
  if (has_batched_calls(graph)) return compile(without_batched_calls(graph), b, donated);
  OwnedInputs owned{Vec<char>(donated.begin(), donated.end()), graph.outputs.size()};
  std::string lack;
  // given back where memory ends: to tell of that takes some, and so does the interpreter
  std::unique_ptr<char[]> spare(new (std::nothrow) char[1 << 20]);
  try {
    if (has_complex(graph)) {
      const auto real = lower_complex(graph);
      if (!real) return std::make_shared<InterpretedGraph>(graph);
      return program_of(*real, b, owned);
    }
    return program_of(graph, b, owned);
  } catch (const Error& e) {
    if (stopped_by_end(e)) return std::make_shared<InterpretedGraph>(graph);
    if (choice() == Choice::cpu || e.kind() != ErrorKind::backend) throw;
    return interpreted_instead(graph, e.what());
  } catch (const std::bad_alloc&) {
    spare = {};
    lack = "vt: there is no memory to compile it";
  } catch (const std::system_error& e) {
    lack = std::string("vt: the system refuses what compiling takes: ") + e.what();
  }
  if (choice() == Choice::cpu) fail(ErrorKind::memory, lack, thread_state().where);
  return interpreted_instead(graph, lack);
}

// Products for one element of a convolution's result.
std::int64_t places_of(const Equation& e, const Shape& filter) {
  const ConvParams& p = e.as<ConvParams>();
  std::int64_t n = 1;
  for (const Axes* axes : {&p.rhs_window, &p.dot.rhs_contract})
    for (int axis : *axes) n *= filter[axis];
  return n;
}

// About the number of element operations, to tell what is worth compiling at first sight.
std::uint64_t work_of(const GraphBody& graph) {
  std::uint64_t work = 0;
  for (const Equation& e : graph.equations) {
    std::uint64_t n = 0;
    for (Var v : e.outputs) n = std::max(n, static_cast<std::uint64_t>(graph.aval(v).elements()));
    for (Var v : e.inputs) n = std::max(n, static_cast<std::uint64_t>(graph.aval(v).elements()));
    if (e.op == Op::dot_general)
      for (int axis : e.as<DotParams>().lhs_contract)
        n *= static_cast<std::uint64_t>(graph.aval(e.inputs[0]).shape[axis]);
    if (e.op == Op::conv_general)
      n = static_cast<std::uint64_t>(graph.aval(e.outputs[0]).elements()) *
          static_cast<std::uint64_t>(
              std::max<std::int64_t>(places_of(e, graph.aval(e.inputs[1]).shape), 1));
    if (family_of(e.op) == Family::linalg)
      n = static_cast<std::uint64_t>(linalg_spec(graph, e).operations() *
                                     std::max<std::int64_t>(linalg_spec(graph, e).batch, 1));
    if (e.op == Op::fft)
      n = static_cast<std::uint64_t>(
          fft_spec(e.as<FftParams>(), graph.aval(e.inputs[0])).operations());
    if (e.op == Op::sort) n *= 64;  // the interpreter compares, the program counts digits
    work += n;
  }
  return work;
}

// Whether the interpreter rounds some result in another way than programs do. Both move, compare
// and choose alike, compute with integers, and round single operations as IEEE 754 says.
bool rounds_in_its_own_way(const GraphBody& graph) {
  constexpr Op exact[] = {Op::real,    Op::imag, Op::conj, Op::complex, Op::neg,
                          Op::convert, Op::max,  Op::min,  Op::bitcast, Op::stop_gradient};
  constexpr Op rounded_alike[] = {Op::add,   Op::sub,  Op::mul,   Op::div,   Op::abs, Op::sign,
                                  Op::floor, Op::ceil, Op::round, Op::trunc, Op::sqrt};
  const auto among = [](auto& list, Op op) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  return any_of(graph.equations, [&](const Equation& e) {
    if (any_of(bodies_of(e.params), [](const GraphRef& b) { return rounds_in_its_own_way(*b); }))
      return true;
    if (e.inputs.empty() || e.outputs.empty()) return false;
    const DType in = graph.aval(e.inputs[0]).dtype, out = graph.aval(e.outputs[0]).dtype;
    if (!is_float(out) && !is_complex(out)) return false;
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
        return !among(exact, e.op) &&
               !((in == DType::f32 || in == DType::f64) && among(rounded_alike, e.op));
      case Family::reduce: return e.op == Op::reduce_sum || e.op == Op::reduce_prod;
      case Family::window:
      case Family::contract:
      case Family::spectral:
      case Family::linalg: return true;
      default: return false;
    }
  });
}

constexpr std::uint64_t large = 1 << 18;

// A Graph of so many equations may be one of many small ones that are alike.
constexpr std::size_t many_equations = 1024;
// About the seconds that an equation takes the interpreter, beside its work.
constexpr double seconds_to_interpret = 1.5e-6, seconds_of_work = 1e-9;
// … and the compiler, which takes longer for each in a longer Graph: 2,700 took 0.27 s, 8,400 took
// 3.4 s.
double seconds_to_compile(double equations) { return 50e-6 * equations * (1 + equations / 1500); }
// A program of one Graph moves small values in registers, where batches have them in memory; but
// one of more equations takes seconds to compile.
constexpr std::size_t small_bytes = 256, most_worth_compiling = 4096;

bool batches_graphs() {
  static const bool made = autobatch_from_environment() != "off";
  return made;
}
/// A list of batched calls, where the Graph is one of many small equations and that is faster.
std::shared_ptr<Executable> batched(const GraphBody& graph, const Backend& b, bool interpreted) {
  if (graph.equations.size() < many_equations || !batches_graphs()) return nullptr;
  const auto count = static_cast<double>(graph.equations.size());
  const std::optional<GraphBody> calls =
      batch_alike(graph, interpreted ? count * seconds_to_interpret +
                                           static_cast<double>(work_of(graph)) * seconds_of_work
                                     : seconds_to_compile(count));
  if (!calls || !suits_call_list(*calls)) return nullptr;
  return std::make_shared<CallList>(simplify(*calls, SimplifyFor::running), b);
}
bool is_worth_compiling(const GraphBody& graph) {
  if (graph.equations.size() > most_worth_compiling) return false;
  std::size_t bytes = 0;
  for (const Equation& e : graph.equations)
    for (Var v : e.outputs) bytes += graph.aval(v).bytes();
  return bytes < small_bytes * graph.equations.size();
}
constexpr std::int64_t steps_worth_compiling = 1 << 17;  // some tens of milliseconds

// Nothing where loops take so long that the Graph had better be compiled. It then begins again, so
// what has effects is not given up.
std::optional<Vec<BufferRef>> interpreted_soon(const GraphBody& graph,
                                               std::span<const BufferRef> inputs) {
  if (has_effects(graph)) return interpreted(graph, inputs);
  const InterpreterBudget budget(steps_worth_compiling);
  try {
    return interpreted(graph, inputs);
  } catch (const InterpreterBudget::Exceeded&) {
    return std::nullopt;
  }
}
constexpr std::size_t most_programs = 1024;

// Complex values as pairs of real ones, which are the same bytes, for a device's program; on the
// host what has no such form.
std::shared_ptr<Executable> compile_for_device(const GraphBody& graph, int device,
                                               std::span<const char> donated = {}) {
  if (has_batched_calls(graph))
    return compile_for_device(without_batched_calls(graph), device, donated);
  if (!has_complex(graph)) return cuda_executable(graph, device, donated);
  if (const auto real = lower_complex(graph)) return cuda_executable(*real, device, donated);
  return std::make_shared<HostDetour>(host_executable(graph), vt::cuda(device));
}

// The lazy Graphs seen so far. A Graph is compiled when it is large, when its loops run long, or
// when it is seen for the second time.
struct Seen {
  GraphBody graph;
  Device device;
  LongMutex<> mutex;
  std::shared_ptr<Executable> executable;
};
struct ProgramCache {
  Mutex mutex;
  RecentMap<std::size_t, SmallVec<std::shared_ptr<Seen>, 1>> seen{most_programs};
};
ProgramCache& program_cache() {
  // never destroyed: values may be asked for while the process ends
  static ProgramCache* const cache = new ProgramCache;
  return *cache;
}

}  // namespace execution

Device device_of(const GraphBody& graph, std::span<const Device> given) {
  const Device fallback = default_device();
  const bool movable = fallback.kind == Device::Kind::cuda;  // then what is on the host follows
  Vec<std::pair<Device, Var>> places(graph.avals.size(), {Device{}, -1});
  std::optional<Device> found;
  bool several = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Device d = given[i];
    const Var v = graph.inputs[i];
    if (d.kind == Device::Kind::cpu && (movable || graph.aval(v).shape.empty())) continue;
    places[v] = {d, v};
    several = several || (found && !(*found == d));
    if (!found) found = d;
  }
  if (!several) return found.value_or(fallback);
  for (const Equation& e : graph.equations) {
    std::pair<Device, Var> first{Device{}, -1};
    for (Var in : e.inputs) {
      const auto& here = places[in];
      if (here.second < 0) continue;
      if (first.second >= 0 && !(first.first == here.first))
        fail(ErrorKind::backend,
             formatted("vt::{}: operands lie on different devices: {} on {}, {} on {}; bring them "
                       "together with .to(device)",
                       name_of(e.op), graph.aval(first.second).str(), text_of(first.first),
                       graph.aval(here.second).str(), text_of(here.first)),
             e.where);
      if (first.second < 0) first = here;
    }
    for (Var out : e.outputs) places[out] = {first.first, first.second < 0 ? -1 : out};
  }
  fail(ErrorKind::backend,
       "vt: values that are computed together lie on different devices; bring them together with "
       ".to(device)",
       thread_state().where);
}

Vec<BufferRef> brought(std::span<const BufferRef> inputs, Device device) {
  Vec<BufferRef> there;
  for (const BufferRef& b : inputs) there.push_back(moved(b, device));
  return there;
}

namespace execution {
Vec<Device> places_of(std::span<const BufferRef> inputs) {
  Vec<Device> places;
  for (const BufferRef& b : inputs) places.push_back(b->device);
  return places;
}
}  // namespace execution

std::shared_ptr<Executable> host_executable(const GraphBody& graph) {
  const Backend* b = execution::backend();
  if (!b) return std::make_shared<execution::InterpretedGraph>(graph);
  return execution::compile(simplify(graph, SimplifyFor::running), *b);
}

std::shared_ptr<const RowProgram> row_program(GraphRef one, Vec<bool> mapped) {
  const Backend* b = execution::backend();
  if (!b) return nullptr;
  try {
    return std::make_shared<const RowProgram>(std::move(one), std::move(mapped), *b,
                                              RowBody::block);
  } catch (const Error& e) {
    if (!execution::stopped_by_end(e)) throw;
    return nullptr;
  }
}

namespace execution {
Vec<BufferRef> run_lazy(const GraphBody& graph, std::span<const BufferRef> inputs,
                        bool at_first_sight) {
  const Device device = device_of(graph, places_of(inputs));
  const bool on_host = device.kind == Device::Kind::cpu;
  const Backend* b = on_host ? backend() : nullptr;
  if (on_host && !b) return interpreted(graph, inputs);
  // A list of calls differs from minibatch to minibatch, and is as soon planned as found again.
  if (on_host && suits_call_list(graph))
    return CallList(simplify(graph, SimplifyFor::running), *b).run(inputs);
  ProgramCache& cache = program_cache();
  const std::size_t hash = hash_of(graph);
  std::shared_ptr<Seen> entry;
  bool known = false;
  Vec<SmallVec<std::shared_ptr<Seen>, 1>> gone;
  {
    std::lock_guard lock(cache.mutex);
    SmallVec<std::shared_ptr<Seen>, 1>* alike = cache.seen.find(hash);
    if (alike)
      for (const std::shared_ptr<Seen>& candidate : *alike)
        if (!entry && candidate->device == device && equal(candidate->graph, graph))
          entry = candidate;
    known = entry != nullptr;
    if (!known) {
      entry = std::make_shared<Seen>();
      entry->graph = graph;
      entry->device = device;
      if (!alike) alike = cache.seen.emplace(hash, {}, gone);
      alike->push_back(entry);
    }
  }
  gone.clear();
  const bool may_interpret = on_host && choice() != Choice::cpu && work_of(graph) < large &&
                             !(at_first_sight && rounds_in_its_own_way(graph));
  if (on_host && !known) {
    if (std::shared_ptr<Executable> list = batched(graph, *b, may_interpret)) {
      if (!is_worth_compiling(graph)) {
        const std::lock_guard lock(entry->mutex);
        entry->executable = list;
      }
      return list->run(inputs);
    }
  }
  if (!known && may_interpret)
    if (std::optional<Vec<BufferRef>> results = interpreted_soon(graph, inputs))
      return std::move(*results);
  std::shared_ptr<Executable> executable;
  {
    std::lock_guard lock(entry->mutex);
    if (entry->executable) count(counters().program_hits);
    else entry->executable = compile_graph(entry->graph, device);
    executable = entry->executable;
  }
  return executable->run(inputs);
}
}  // namespace execution

Vec<BufferRef> run_graph(const GraphBody& graph, std::span<const BufferRef> inputs,
                         bool at_first_sight) {
  const Busy busy;
  try {
    return execution::run_lazy(graph, inputs, at_first_sight);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "vt: there is no memory left to run it", thread_state().where);
  } catch (const Error& e) {
    if (!execution::stopped_by_end(e) || has_effects(graph)) throw;
  }
  return execution::interpreted(graph, inputs);
}

Vec<BufferRef> run_program(Executable& program, const GraphBody& graph,
                           std::span<const BufferRef> inputs) {
  try {
    return program.run(inputs);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "vt: there is no memory left to run it", thread_state().where);
  } catch (const Error& e) {
    if (!execution::stopped_by_end(e) || has_effects(graph) || !program.overwritten().empty())
      throw;
  }
  return execution::interpreted(graph, inputs);
}

void drop_lazy_programs() {
  execution::ProgramCache& cache = execution::program_cache();
  Vec<SmallVec<std::shared_ptr<execution::Seen>, 1>> gone;
  const std::lock_guard lock(cache.mutex);
  gone = cache.seen.take_all();
}

MachineLimits machine_limits(bool again) {
  const Backend* b = execution::backend();
  return b ? b->limits(again) : MachineLimits();
}

Memory plan_graph(const GraphBody& graph) {
  const GraphBody simple = simplify(graph, SimplifyFor::running);
  const Backend* b = execution::backend();
  if (!b) return interpreted_memory(simple);
  const Planning only;
  Memory m = execution::compile(simple, *b)->memory();
  // Where little is to be done the first run is interpreted.
  if (execution::choice() != execution::Choice::cpu &&
      execution::work_of(graph) < execution::large) {
    Memory first = interpreted_memory(graph);
    if (first.scratch > m.scratch) {
      m.scratch = first.scratch;
      m.values = std::move(first.values);  // they tell why
    }
  }
  return m;
}

std::shared_ptr<Executable> compile_graph(GraphBody graph, Device device,
                                          std::span<const char> donated) {
  const Busy busy;
  GraphBody simple = simplify(graph, SimplifyFor::running);
  if (device.kind == Device::Kind::cuda)
    return execution::compile_for_device(simple, device.index, donated);
  const Backend* b = execution::backend();
  if (!b) return std::make_shared<execution::InterpretedGraph>(std::move(simple));
  return execution::compile(simple, *b, donated);
}

}  // namespace vt::detail
