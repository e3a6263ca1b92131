// JitCache: the compiled programs of one jitted function, found by the signature of a call.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../trace/base/locks.hpp"
#include "../trace/base/machine_level.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/ir/collectives.hpp"
#include "../trace/ir/executable.hpp"
#include "../trace/processes/collective.hpp"
#include "../trace/record/devices.hpp"
#include "../trace/record/literals.hpp"
#include "../trace/record/named_axes.hpp"
#include "../trace/record/nan_watch.hpp"
#include "../trace/record/node.hpp"
#include "../trace/record/signature_changes.hpp"
#include "../trace/record/thread_state.hpp"
#include "captured_numbers.hpp"
#include "row_families.hpp"

namespace vt::detail {

// Everything a call of a known signature needs.
struct JitCache::Entry : std::enable_shared_from_this<JitCache::Entry> {
  std::string fixed;  ///< StaticKey::bytes
  Vec<Aval> arguments;
  GraphRef graph;
  WatchedGraph
      program_graph;  ///< that the executable was made of: with numbers for captured arrays
  std::vector<Tensor> captured;
  Vec<BufferRef> captured_values;  ///< but for those that are numbers in the code
  // Null when the trace captured tracers or used a named axis: such a program is good for one call
  // only. Null as well as long as all calls were inside of other traces.
  std::shared_ptr<Executable> executable;
  Device device;
  bool assume_finite = false;  ///< it was recorded so
  DType default_dtype = f32;   ///< likewise
  std::shared_ptr<void> kept;
  // variables: inputs behind the arguments, and results of those that are updated
  Vec<OwnState> states;
  MetNumbers met;
  bool shares_program = false;   ///< with calls of other numbers of rows
  Vec<std::size_t> input_bytes;  ///< of arguments and captured values
  /// Runs on what arguments and captured values hold, and nothing else.
  bool runs_alone() const {
    return executable && executable->runs_into() && states.empty() && met.empty() &&
           device.kind == Device::Kind::cpu;
  }

  /// What the program reads, in order: arguments, states, what was captured.
  SmallVec<BufferRef, 8> inputs(std::span<const Tensor> arguments, CallSite where) const {
    SmallVec<BufferRef, 8> all;
    all.reserve(arguments.size() + captured_values.size());
    for (const Tensor& t : arguments) all.push_back(buffer_of(t, where));
    for (const OwnState& s : states) all.push_back(buffer_of(read_state(s.variable, where), where));
    all.append(captured_values.begin(), captured_values.end());
    return all;
  }
  void compile(std::span<const Tensor> arguments, const std::optional<Device>& wanted,
               std::span<const char> donated, RowFamilies& families, const std::string& family,
               CallSite);
};

namespace jit_program {

void append_aval(std::string& key, const Tensor& t) {
  const Aval& a = aval_of(t);
  const unsigned char head[3] = {static_cast<unsigned char>(a.dtype),
                                 static_cast<unsigned char>(a.weak),
                                 static_cast<unsigned char>(a.shape.size())};
  key.append(reinterpret_cast<const char*>(head), sizeof head);
  key.append(reinterpret_cast<const char*>(a.shape.data()), a.shape.size() * sizeof(std::int64_t));
}

// The host, which is the rule, adds nothing.
void append_device(std::string& key, Device d) {
  if (d.kind == Device::Kind::cpu) return;
  key += 'd';
  key.append(reinterpret_cast<const char*>(&d.index), sizeof d.index);
}

Vec<Device> places_of(std::span<const Tensor> arguments) {
  Vec<Device> places;
  for (const Tensor& t : arguments) places.push_back(t.device());
  return places;
}

// Of a call that runs at once: where the arguments are decides where it runs.
std::string key_of(const StaticKey& static_key, std::span<const Tensor> arguments,
                   const std::optional<Device>& device) {
  std::string key = static_key.bytes;
  for (const Tensor& t : arguments) {
    append_aval(key, t);
    if (!device) append_device(key, t.device());
  }
  if (!device) append_device(key, default_device());
  return key;
}

}  // namespace jit_program

void JitCache::Entry::compile(std::span<const Tensor> arguments,
                              const std::optional<Device>& wanted, std::span<const char> donated,
                              RowFamilies& families, const std::string& family, CallSite where) {
  for (const Tensor& t : captured) captured_values.push_back(buffer_of(t, where));
  const WhereScope line(where);  // what messages name where an equation knows no line
  device = wanted ? *wanted : device_of(*graph, jit_program::places_of(arguments));
  captured_values = brought(captured_values, device);
  const bool here = device.kind == Device::Kind::cpu;
  program_graph.graph = graph;
  if (watches_nans()) program_graph = watched(graph);
  if (here && donated.empty() && states.empty() && program_graph.sinks.empty())
    executable = families.program(family, *graph, arguments.size());
  shares_program = executable != nullptr;
  if (here && !executable && !captured_values.empty())
    program_graph.graph = std::make_shared<const GraphBody>(
        with_captured_numbers(*program_graph.graph, captured_values));
  const GraphBody& own = *program_graph.graph;
  for (Var v : own.inputs) input_bytes.push_back(own.aval(v).bytes());
  if (!executable) executable = compile_graph(own, device, donated);
}

struct JitCache::State {
  State(std::optional<Device> d, std::size_t most, bool finite)
      : programs(most), device(d), assume_finite(finite) {}

  SharedMutex mutex;
  RecentMap<std::string, std::shared_ptr<const Entry>> programs;
  /// Some of `programs` that run alone, which are found without a text of the signature. The first
  /// is null if there are none.
  std::array<std::atomic<const Entry*>, 4> recent{};
  std::atomic<unsigned> next_recent{0};
  SignatureChanges changes;
  RowFamilies families;
  std::optional<Device> device;
  bool assume_finite;

  /// Do calls of this thread assume it?
  bool assumes_finite() const { return assume_finite || thread_state().assume_finite; }
  std::string key_of(const StaticKey& static_key, std::span<const Tensor> arguments) const {
    const NanWatch& watch = thread_state().nan_watch;
    return jit_program::key_of(static_key, arguments, device) + (assumes_finite() ? "f" : "") +
           (thread_state().default_dtype == f64 ? "w" : "") +
           (!watch.on          ? ""
            : watch.infinities ? "i"
                               : "n");
  }
  /// Null if there is none for this signature.
  std::shared_ptr<const Entry> program(const std::string& key) {
    std::shared_lock lock(mutex);
    const std::shared_ptr<const Entry>* const found = programs.find(key);
    if (!found) return nullptr;
    if ((*found)->runs_alone()) note(**found);
    return *found;
  }
  /// Where `programs` changes, with its lock.
  void forget_recent() {
    for (auto& r : recent) r.store(nullptr, std::memory_order_relaxed);
    next_recent.store(0, std::memory_order_relaxed);
  }

 private:
  void note(const Entry& entry) {
    for (auto& r : recent)
      if (r.load(std::memory_order_relaxed) == &entry) return;
    const unsigned next = next_recent.fetch_add(1, std::memory_order_relaxed);
    recent[next % recent.size()].store(&entry, std::memory_order_relaxed);
  }
};

namespace jit_program {

/// The memory of a value that is there and lies on the host; null: it is not so.
inline const BufferRef* host_buffer(const Tensor& t) {
  if (!t.defined() || node_of(t)->level > 0 || !node_of(t)->ready.load(std::memory_order_acquire))
    return nullptr;
  const BufferRef& b = node_of(t)->buffers[output_of(t)];
  return b->device.kind == Device::Kind::cpu && !b->donated.file ? &b : nullptr;
}

/// The memory of a value of this type that nobody else holds; null: there is none.
void* own_memory(const Tensor& t, const Aval& wanted) {
  const BufferRef* b = host_buffer(t);
  if (!b || node_of(t)->references.load(std::memory_order_acquire) != 1 ||
      (*b)->references.load(std::memory_order_acquire) != 1 || (*b)->capacity == 0)
    return nullptr;
  const Aval& a = aval_of(t);
  return a.dtype == wanted.dtype && a.weak == wanted.weak && a.shape == wanted.shape ? (*b)->data
                                                                                     : nullptr;
}

/// Kernels may write results of so many bytes past the caches, which wants aligned memory.
constexpr std::size_t large = std::size_t{1} << 16;

BufferRef copy_of(const Buffer& b, const char* what) {
  BufferRef copy = allocate(b.bytes, what);
  if (b.bytes) std::memcpy(copy->data, b.data, b.bytes);
  return copy;
}

// The values of donated arguments are their nodes' no more, and whoever else holds one that is
// written over keeps it: the program gets a copy.
void take_donated(std::span<const Tensor> arguments, std::span<const char> donated,
                  std::span<BufferRef> inputs, std::span<const std::size_t> overwritten,
                  CallSite where) {
  for (std::size_t i = 0; i < donated.size(); ++i)
    for (std::size_t j = 0; donated[i] && j < arguments.size(); ++j)
      if (j != i && node_of(arguments[j]) == node_of(arguments[i]) &&
          output_of(arguments[j]) == output_of(arguments[i]))
        fail(ErrorKind::value,
             formatted(
                 "vt::jit: {} is donated, and is another argument too (leaves {} and {}): pass "
                 "a copy",
                 aval_of(arguments[i]).str(), i, j),
             where);
  for (std::size_t i = 0; i < donated.size(); ++i)
    if (donated[i]) donate(arguments[i], where);
  for (const std::size_t i : overwritten) {
    BufferRef& b = inputs[i];
    if (b->device.kind == Device::Kind::cuda) {
      b = sole_on_device(std::move(b));
      continue;
    }
    if (b->references.load() == 1 && b->capacity > 0) continue;
    b = copy_of(*b, "a donated argument that others hold");
  }
}

}  // namespace jit_program

void check_donated(const std::vector<int>& donate, std::size_t arguments, CallSite where) {
  for (int position : donate)
    if (position < 0 || static_cast<std::size_t>(position) >= arguments)
      fail(ErrorKind::value,
           formatted("vt::jit: donate names argument {}, counted from 0, but this call has only {}",
                     position, arguments),
           where);
}

JitCache::JitCache(std::optional<Device> device, int programs, bool assume_finite, CallSite where) {
  if (programs < 1)
    fail(ErrorKind::value, formatted("vt::jit: programs is {}; at least 1 is kept", programs),
         where);
  state_ = std::make_unique<State>(device, static_cast<std::size_t>(programs), assume_finite);
}
JitCache::~JitCache() = default;

namespace jit_program {

/// While it lives: is a function referred to whose recording had begun before?
class References {
 public:
  References()
      : before_(std::exchange(state().lowest_reference, std::numeric_limits<std::size_t>::max())),
        recorded_(state().functions.size()) {}
  ~References() { state().lowest_reference = std::min(state().lowest_reference, before_); }
  References(const References&) = delete;
  References& operator=(const References&) = delete;
  bool outside() const { return state().lowest_reference < recorded_; }

 private:
  static ThreadState& state() { return thread_state(); }
  std::size_t before_, recorded_;
};

}  // namespace jit_program

std::shared_ptr<const JitCache::Entry> JitCache::entry(std::span<const Tensor> arguments,
                                                       const StaticKey& static_key,
                                                       const FlatFunction& f,
                                                       FunctionRef<std::shared_ptr<void>()> keep,
                                                       bool& traced, std::span<const char> donated,
                                                       CallSite where) {
  // inside another jit: its equations are taken over, and compiled with the rest
  traced = thread_state().floor > 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value, "vt::jit: argument leaf " + std::to_string(i) + " is an empty Tensor",
           where);
    traced = traced || is_tracer(arguments[i]);
  }
  std::string key = state_->key_of(static_key, arguments);
  if (thread_state().named_axes > 0) key += mesh_key();

  std::shared_ptr<const Entry> program = state_->program(key);
  if (program && (traced || program->executable)) return program;
  auto fresh = program ? std::make_shared<Entry>(*program) : std::make_shared<Entry>();
  bool reusable = true;
  if (!program) {
    Vec<Aval> avals;
    for (const Tensor& t : arguments) avals.push_back(aval_of(t));
    fresh->fixed = static_key.bytes;
    fresh->arguments = avals;
    fresh->assume_finite = state_->assumes_finite();
    fresh->default_dtype = thread_state().default_dtype;
    const AssumeFinite finite(fresh->assume_finite);
    const OuterAxes axes;
    const jit_program::References references;
    Recorded recorded =
        record(with_states(f, fresh->states), avals,
               {.kind = ScopeKind::jit, .transform = "vt::jit", .stateful = true, .where = where});
    fresh->kept = keep();
    fresh->graph = std::make_shared<const GraphBody>(simplify(recorded.graph));
    debug_check(*fresh->graph, "simplify");
    fresh->captured = std::move(recorded.captured);
    fresh->met = std::move(recorded.met);
    // Not what refers to a function that is being recorded.
    reusable = !axes.used_lanes() && !references.outside();
    for (const Tensor& t : fresh->captured) reusable = reusable && !is_tracer(t);
    if (reusable && state_->device) require_usable(*state_->device, "vt::jit", where);
  }
  if (!reusable) return fresh;
  // Inside of another trace its equations are compiled with the rest; a program of its own is for
  // calls from outside.
  if (!traced)
    fresh->compile(arguments, state_->device, donated, state_->families,
                   static_key.bytes + (fresh->assume_finite ? "f" : "") +
                       (fresh->default_dtype == f64 ? "w" : ""),
                   where);
  Vec<std::shared_ptr<const Entry>> gone;  // until the lock has gone
  const std::unique_lock lock(state_->mutex);
  if (!traced && !fresh->shares_program)
    state_->changes.add("vt::jit", "compiles a program", arguments, static_key, where);
  state_->forget_recent();
  std::shared_ptr<const Entry>& kept = *state_->programs.emplace(std::move(key), fresh, gone);
  // Another thread may have been first; its program is as good.
  if (!traced && !kept->executable) gone.push_back(std::exchange(kept, std::move(fresh)));
  return kept;
}

namespace jit_program {

/// What a program reads, as it is before it runs: copies of what it writes over.
Vec<BufferRef> kept_inputs(const Executable& program, std::span<const BufferRef> inputs) {
  Vec<BufferRef> kept(inputs.begin(), inputs.end());
  for (const std::size_t i : program.overwritten()) {
    const BufferRef host = on_host(kept[i]);
    BufferRef copy = allocate(host->bytes, "vt::DebugNans");
    if (host->bytes) std::memcpy(copy->data, host->data, host->bytes);
    copy->not_finite = kept[i]->not_finite;
    kept[i] = std::move(copy);
  }
  return kept;
}
std::string input_name(std::size_t i, std::size_t arguments, const StaticKey& key, CallSite where) {
  const std::string line = at(where);
  const std::string of = " of the function jitted" + (line.empty() ? line : line.substr(1));
  if (i >= arguments) return "a value captured or a variable" + of;
  NamedParts parts;
  if (key.describe && key.arguments) key.describe(key.arguments, parts);
  return (i < parts.leaves.size() ? parts.leaves[i] : "argument " + std::to_string(i)) + of;
}

}  // namespace jit_program

std::vector<Tensor> JitCache::call(std::span<const Tensor> arguments, const StaticKey& static_key,
                                   const FlatFunction& f, FunctionRef<std::shared_ptr<void>()> keep,
                                   std::shared_ptr<void>& kept, CallSite where,
                                   std::span<const char> donated) {
  const Busy busy;
  bool traced = false;
  const std::shared_ptr<const Entry> program =
      entry(arguments, static_key, f, keep, traced, donated, where);
  // Variables as the scopes around see them: what lanes add is no new value yet. And what f says of
  // numbers that are too large for what they meet.
  if ((!program->states.empty() && (traced || !program->executable || current_level() > 0)) ||
      have_misfit(arguments, program->met)) {
    std::vector<Tensor> results = f(arguments);
    kept = keep();
    return results;
  }
  kept = program->kept;
  if (traced || !program->executable) {
    std::vector<Tensor> operands(arguments.begin(), arguments.end());
    operands.insert(operands.end(), program->captured.begin(), program->captured.end());
    return replay(*program->graph, operands);
  }
  Turns::Variables updated_here;
  for (const OwnState& s : program->states)
    if (s.updated) updated_here.push_back(s.variable.get());
  const Turns turns(std::move(updated_here));
  SmallVec<BufferRef, 8> inputs = program->inputs(arguments, where);
  // Variables may have been updated elsewhere.
  if (state_->device || !program->states.empty())
    for (BufferRef& b : inputs) b = moved(b, program->device);
  Vec<BufferRef> kept_inputs;  // of a run that DebugNans may have to look at again
  if (watches_nans())
    kept_inputs = jit_program::kept_inputs(*program->executable, {inputs.data(), inputs.size()});
  if (!donated.empty())
    jit_program::take_donated(arguments, donated, {inputs.data(), inputs.size()},
                              program->executable->overwritten(), where);
  const WatchedGraph& graph = program->program_graph;
  const auto name = [&](std::size_t i) {
    return jit_program::input_name(i, arguments.size(), static_key, where);
  };
  Vec<BufferRef> outputs;
  try {
    outputs = run_program(*program->executable, *graph.graph, {inputs.data(), inputs.size()});
  } catch (const Error& e) {
    const std::string told = watches_nans() ? told_inside(graph, kept_inputs, name) : std::string();
    if (told.empty()) throw;
    throw Error(e.kind(), e.what() + told);
  }
  if (watches_nans()) {
    keep_not_finite(graph, kept_inputs, outputs, name);
    refuse_inside(graph, kept_inputs, outputs, where);
    outputs.resize(program->graph->outputs.size());
  }
  std::vector<Tensor> results;
  results.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(made_at(
        where,
        from_buffer(std::move(outputs[i]), program->graph->aval(program->graph->outputs[i]))));
  const std::size_t updated =
      count_if(program->states, [](const OwnState& s) { return s.updated; });
  std::size_t next = results.size() - updated;
  for (const OwnState& s : program->states)
    if (s.updated) update_state({s.variable, Update::assign, results[next++], s.where});
  results.resize(results.size() - updated);
  return results;
}

std::shared_ptr<const JitCache::Entry> JitCache::known(std::span<const Tensor* const> arguments,
                                                       const StaticKey& key,
                                                       SmallVec<const void*, 16>& inputs) const {
  clear_upper_halves();
  if (!state_->recent[0].load(std::memory_order_relaxed) || thread_state().floor > 0 ||
      watches_nans() || default_device().kind != Device::Kind::cpu)
    return nullptr;
  const bool finite = state_->assumes_finite();
  const DType default_dtype = thread_state().default_dtype;
  const auto is_of = [&](const Entry& e) {
    if (arguments.size() != e.arguments.size() || key.bytes != e.fixed ||
        e.assume_finite != finite || e.default_dtype != default_dtype)
      return false;
    inputs.clear();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const BufferRef* const buffer = jit_program::host_buffer(*arguments[i]);
      if (!buffer) return false;
      inputs.push_back((*buffer)->data);
      const Aval &given = aval_of(*arguments[i]), &wanted = e.arguments[i];
      if (given.dtype != wanted.dtype || given.weak != wanted.weak || given.shape != wanted.shape)
        return false;
    }
    for (const BufferRef& b : e.captured_values) inputs.push_back(b->data);
    return true;
  };
  const std::shared_lock lock(state_->mutex);
  for (const std::atomic<const Entry*>& recent : state_->recent)
    if (const Entry* e = recent.load(std::memory_order_relaxed); e && is_of(*e))
      return e->shared_from_this();
  return nullptr;
}

namespace jit_program {

/// Null where there is no memory: the usual call tells of it.
BufferRef allocate_if_there(std::size_t bytes) {
  try {
    return allocate(bytes, "a result");
  } catch (const Error&) {
    return {};
  }
}

bool overlaps(const void* a, std::size_t bytes, const void* b, std::size_t others) {
  const auto p = reinterpret_cast<std::uintptr_t>(a), q = reinterpret_cast<std::uintptr_t>(b);
  return p < q + others && q < p + bytes;
}
void run_into(Executable& program, const GraphBody& graph, std::span<const void* const> inputs,
              std::span<void* const> results) {
  if (!communicates(graph)) return program.run_into(inputs, results);
  run_collectives(graph, [&] { program.run_into(inputs, results); });
}
/// Does a value lie where a result is written?
bool overlaps(const Buffer& b, const ResultPlace& p) {
  return !p.tensor && b.device.kind == Device::Kind::cpu &&
         overlaps(b.data, b.bytes, p.memory, p.elements * size_of(p.dtype));
}

}  // namespace jit_program

bool JitCache::call_known(std::span<const Tensor* const> arguments, const StaticKey& key,
                          KnownResults& results, CallSite where) {
  const Busy busy;
  SmallVec<const void*, 16> inputs;
  std::shared_ptr<const Entry> program = known(arguments, key, inputs);
  if (!program) return false;
  SmallVec<void*, 8> memory;
  const GraphBody& g = *program->graph;
  for (Var v : g.outputs) {
    const Aval& aval = g.aval(v);
    BufferRef buffer = jit_program::allocate_if_there(aval.bytes());
    if (!buffer) {
      results.tensors.clear();
      return false;
    }
    memory.push_back(buffer->data);
    results.tensors.push_back(made_at(where, from_buffer(std::move(buffer), aval)));
  }
  jit_program::run_into(*program->executable, g, inputs, memory);
  const void* const kept = program->kept.get();
  results.kept = std::shared_ptr<const void>(std::move(program), kept);
  return true;
}

bool JitCache::call_known(std::span<const Tensor* const> arguments, const StaticKey& key,
                          std::span<const ResultPlace> places, CallSite where) {
  const Busy busy;
  SmallVec<const void*, 16> inputs;
  const std::shared_ptr<const Entry> program = known(arguments, key, inputs);
  if (!program) return false;
  const GraphBody& g = *program->graph;
  if (places.size() != g.outputs.size()) return false;  // bring() says so
  // Results that may not be written where they belong, as arguments or results before them lie
  // there, or that have memory of their own so far.
  struct Elsewhere {
    std::size_t place;
    BufferRef buffer;
    Tensor tensor;
  };
  SmallVec<Elsewhere, 4> elsewhere;
  SmallVec<void*, 8> memory;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ResultPlace& p = places[i];
    const Aval& aval = g.aval(g.outputs[i]);
    void* own = p.memory;
    if (p.tensor) own = jit_program::own_memory(*p.tensor, aval);
    else if (p.dtype != aval.dtype || p.elements != aval.elements()) return false;
    const std::size_t bytes = aval.bytes();
    bool apart =
        own && (bytes < jit_program::large || reinterpret_cast<std::uintptr_t>(own) % 64 == 0);
    for (std::size_t k = 0; k < inputs.size() && apart; ++k)
      apart = !jit_program::overlaps(own, bytes, inputs[k], program->input_bytes[k]);
    for (std::size_t k = 0; k < i && apart; ++k)
      apart = !jit_program::overlaps(own, bytes, places[k].tensor ? memory[k] : places[k].memory,
                                     g.aval(g.outputs[k]).bytes());
    if (!apart) {
      BufferRef buffer = jit_program::allocate_if_there(bytes);
      if (!buffer) return false;
      own = buffer->data;
      Tensor tensor = p.tensor ? made_at(where, from_buffer(buffer, aval)) : Tensor();
      elsewhere.push_back({i, std::move(buffer), std::move(tensor)});
    }
    memory.push_back(own);
  }
  jit_program::run_into(*program->executable, g, inputs, memory);
  for (Elsewhere& e : elsewhere) {
    const ResultPlace& p = places[e.place];
    if (p.tensor) *p.tensor = std::move(e.tensor);
    else if (e.buffer->bytes) std::memcpy(p.memory, e.buffer->data, e.buffer->bytes);
  }
  return true;
}

void bring(std::span<const Tensor> results, std::span<const ResultPlace> places, CallSite where) {
  if (results.size() != places.size())
    fail(ErrorKind::shape,
         formatted("vt::Jitted::into: the function gives {} Tensors, places: {}", results.size(),
                   places.size()),
         where);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ResultPlace& p = places[i];
    if (p.tensor || (p.dtype == results[i].dtype() && p.elements == results[i].size())) continue;
    fail(p.dtype == results[i].dtype() ? ErrorKind::shape : ErrorKind::dtype,
         formatted("vt::Jitted::into: result {} is {}, its place has {} elements of {}", i,
                   aval_of(results[i]).str(), p.elements, name_of(p.dtype)),
         where);
  }
  // All values are there, and lie where nothing is written, before the first of them is: results
  // may be arguments, and lie in the places of others. What is assigned is the caller's memory no
  // more.
  SmallVec<Tensor, 4> values(results.begin(), results.end());
  SmallVec<BufferRef, 4> buffers(results.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto is_written = [&](const ResultPlace& p) {
      return jit_program::overlaps(*buffers[i], p);
    };
    if (!places[i].tensor) {
      buffers[i] = value_of(values[i], where, "vt::Jitted::into");
      if (any_of(places.first(i), is_written))
        buffers[i] = jit_program::copy_of(*buffers[i], "a result");
    } else if (!is_tracer(values[i])) {
      buffers[i] = buffer_of(values[i], where, "vt::Jitted::into");
      if (buffers[i]->device.kind != Device::Kind::cpu) continue;
      if (buffers[i]->capacity > 0 && !any_of(places, is_written)) continue;
      buffers[i] = jit_program::copy_of(*buffers[i], "a result");
      values[i] = made_at(where, from_buffer(buffers[i], aval_of(values[i])));
    }
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ResultPlace& p = places[i];
    if (p.tensor) *p.tensor = std::move(values[i]);
    else if (p.elements > 0) std::memmove(p.memory, buffers[i]->data, buffers[i]->bytes);
  }
}

std::string JitCache::explain_page(std::span<const Tensor> arguments, const StaticKey& static_key,
                                   const FlatFunction& f, CallSite where) const {
  const std::shared_ptr<const Entry> program =
      state_->program(state_->key_of(static_key, arguments));
  if (!program || !program->executable) return "";
  Vec<LoggedGraph> graphs;
  {
    struct Logged {
      explicit Logged(Vec<LoggedGraph>* log) { graph_log() = log; }
      ~Logged() { graph_log() = nullptr; }
    } logged(&graphs);
    Vec<Aval> avals;
    for (const Tensor& t : arguments) avals.push_back(aval_of(t));
    Vec<OwnState> states;
    const AssumeFinite finite(program->assume_finite);
    record(with_states(f, states), avals,
           {.kind = ScopeKind::jit, .transform = "vt::jit", .stateful = true, .where = where});
  }
  graphs.push_back({"simplified", to_text(*program->graph, true)});
  const Vec<BufferRef> inputs = brought(program->inputs(arguments, where), program->device);
  return detail::explain_page(*program->executable, inputs, !keeps_order(*program->graph), graphs,
                              where);
}

std::string JitCache::explain(std::span<const Tensor> arguments, const StaticKey& static_key,
                              bool steps) const {
  const std::shared_ptr<const Entry> program =
      state_->program(state_->key_of(static_key, arguments));
  if (!program || !program->executable) return "";
  return steps ? program->executable->explain_steps() : program->executable->explain();
}

Memory JitCache::memory(std::span<const Tensor> arguments, const StaticKey& static_key,
                        const FlatFunction& f, FunctionRef<std::shared_ptr<void>()> keep,
                        CallSite where, std::span<const char> donated) {
  bool traced = false;
  const std::shared_ptr<const Entry> program =
      entry(arguments, static_key, f, keep, traced, donated, where);
  if (traced || !program->executable)
    fail(ErrorKind::value,
         "vt::jit: memory(…) inside another transform, or of a function that captures a value of "
         "one, has no program of its own to tell of; "
         "ask it outside",
         where);
  return program->executable->memory();
}

}  // namespace vt::detail
