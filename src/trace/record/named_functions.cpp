// FunctionCache: records named functions, once per signature; recursive ones as often as it takes
// to find their result types.
#include <algorithm>
#include <limits>
#include <memory>

#include <vt/detail/message.hpp>

#include "../base/locks.hpp"
#include "../base/recent_map.hpp"
#include "../ir/effects.hpp"
#include "literals.hpp"
#include "named_axes.hpp"
#include "recursion.hpp"
#include "signature_changes.hpp"
#include "state.hpp"
#include "thread_state.hpp"

namespace vt::detail {

namespace named_functions {

/// One signature.
struct Entry {
  std::string static_bytes;    ///< of the signature
  bool assume_finite = false;  ///< it was recorded so
  DType default_dtype = f32;   ///< likewise
  std::string mesh;            ///< likewise: see mesh_key
  Vec<Aval> arguments;
  DerivedFunction called;  ///< of the arguments, the variables, and what is captured
  Vec<OwnState> states;
  MetNumbers met;
  std::shared_ptr<void> kept;
  RecursionParams recursive;  ///< if it calls itself
};
using EntryRef = std::shared_ptr<const Entry>;

bool is_alive(const Tensor& t) {
  const Node* n = node_of(t);
  const ThreadState& state = thread_state();
  return n->level == 0 ||
         (n->level <= state.scopes.size() && state.scopes[n->level - 1u].id == n->scope);
}
bool same_tensor(const Tensor& a, const Tensor& b) {
  return node_of(a) == node_of(b) && output_of(a) == output_of(b);
}

std::string mesh_here() { return thread_state().named_axes > 0 ? mesh_key() : std::string(); }

/// Is this the signature of a call?
bool fits(const Entry& entry, std::span<const Tensor> arguments, const StaticKey& key) {
  if (arguments.size() != entry.arguments.size() || key.bytes != entry.static_bytes ||
      entry.assume_finite != thread_state().assume_finite ||
      entry.default_dtype != thread_state().default_dtype || entry.mesh != mesh_here())
    return false;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].defined() || aval_of(arguments[i]) != entry.arguments[i]) return false;
  return true;
}

void append_aval(std::string& key, const Aval& a) {
  for (int part : {static_cast<int>(a.dtype), static_cast<int>(a.weak), a.shape.rank()})
    key += static_cast<char>(part);
  key.append(reinterpret_cast<const char*>(a.shape.data()), a.shape.size() * sizeof a.shape[0]);
}

/// Arguments, what the variables hold (or what changes nothing in those that only accumulate), and
/// what is captured.
std::vector<Tensor> operands_of(std::span<const Tensor> arguments, const Entry& entry,
                                CallSite where) {
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  for (const OwnState& s : entry.states)
    operands.push_back(s.updated && accumulates(s.kind) ? neutral(s.kind, s.variable->aval)
                                                        : read_state(s.variable, where));
  return operands;
}

}  // namespace named_functions

/// A function that is being recorded.
struct FunctionRecording {
  const void* cache;
  const std::string& key;
  std::int64_t elements;  ///< of the arguments together
  bool told = false;      ///< … of an error inside that they grow
  /// what the last recording found; unknown until there was one
  named_functions::Entry assumed = {};
  bool known = false;
  bool referenced = false;  ///< it calls itself
  /// the outermost recording that was referred to
  std::size_t lowest = std::numeric_limits<std::size_t>::max();
  std::shared_ptr<RecursiveFamily> family = std::make_shared<RecursiveFamily>();
  /// Functions that call this one: what was recorded of them holds for this recording only.
  Vec<std::pair<std::pair<const void*, std::string>, named_functions::EntryRef>> inner = {};

  FunctionRecording(const void* c, const std::string& k, std::span<const Tensor> arguments)
      : cache(c), key(k), elements(0) {
    for (const Tensor& t : arguments)
      if (__builtin_add_overflow(elements, aval_of(t).elements(), &elements))
        elements = std::numeric_limits<std::int64_t>::max();
    thread_state().functions.push_back(this);
    loop = std::exchange(thread_state().loop, nullptr);
  }
  ~FunctionRecording() {
    thread_state().functions.pop_back();
    thread_state().loop = loop;
  }
  FunctionRecording(const FunctionRecording&) = delete;
  FunctionRecording& operator=(const FunctionRecording&) = delete;

 private:
  LoopTypes* loop;
};

struct FunctionCache::State {
  std::string name;
  const char* kind;
  std::optional<int> max_depth;
  Mutex mutex;
  RecentMap<std::string, named_functions::EntryRef> entries{256};
  named_functions::EntryRef last;  ///< the one of them that was used last
  SignatureChanges changes;

  [[noreturn]] void refuse(ErrorKind error, const std::string& what, CallSite where) const {
    fail(error, formatted("{}: {} {}", kind, name, what), user_line(where));
  }
  std::string key_of(std::span<const Tensor> arguments, const StaticKey&, CallSite where) const;
  /// The recording for these arguments, if it is there.
  named_functions::EntryRef found(const std::string& key);
  named_functions::EntryRef recorded(std::span<const Tensor> arguments, const StaticKey&,
                                     const std::string& key, FlatFunctionRef f,
                                     FunctionRef<std::shared_ptr<void>()> keep, CallSite where);
  /// Throws `e` again, or says of which recursion it is that its arguments grow.
  [[noreturn]] void refuse_growth(const Error& e, const FunctionRecording&,
                                  const named_functions::Entry&) const;
  /// Of a recording in which the function calls itself: is it what the calls in it took it for? If
  /// not, they take it for what it is now.
  bool is_settled(Recorded&, const named_functions::Entry& made, bool lanes_of_one,
                  FunctionRecording&, CallSite where) const;
};

FunctionCache::FunctionCache(std::string name, const char* kind, std::optional<int> max_depth,
                             CallSite where)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->kind = kind;
  state_->max_depth = max_depth;
  if (state_->name.empty())
    fail(ErrorKind::value, formatted("{}: the name is empty", kind), user_line(where));
  if (max_depth && *max_depth < 1)
    state_->refuse(ErrorKind::value,
                   formatted("is given max_depth {}, which must be at least 1", *max_depth), where);
}
FunctionCache::~FunctionCache() = default;

void FunctionCache::defined_twice(CallSite where) const {
  state_->refuse(ErrorKind::value, "has been defined already", where);
}
void FunctionCache::undefined(CallSite where) const {
  state_->refuse(ErrorKind::value, "is called, but has not been defined", where);
}

namespace named_functions {

constexpr int most_recordings = 8;

using Results = SmallVec<Tensor, 4>;
Results as_results(const std::vector<Tensor>& all) { return {all.begin(), all.end()}; }

/// The call of a function inside of its own recording.
Results refer(std::size_t at, std::span<const Tensor> arguments, std::shared_ptr<void>& kept,
              CallSite where) {
  ThreadState& state = thread_state();
  FunctionRecording& r = *state.functions[at];
  r.referenced = true;
  state.lowest_reference = std::min(state.lowest_reference, at);
  for (std::size_t k = at; k < state.functions.size(); ++k)
    state.functions[k]->lowest = std::min(state.functions[k]->lowest, at);
  if (!r.known) throw UnknownResult{at, where};
  kept = r.assumed.kept;
  std::vector<Tensor> operands = operands_of(arguments, r.assumed, where);
  const std::vector<Tensor>& captured = r.assumed.called.captured;
  operands.insert(operands.end(), captured.begin(), captured.end());
  return as_results(emit_recursive(r.assumed.recursive, operands, where));
}

/// How many recordings of a function stand inside of each other, the innermost and those around it
/// that have fewer elements each.
std::size_t growing_calls(const void* cache) {
  std::size_t count = 0;
  std::int64_t inside = 0;
  const Vec<FunctionRecording*>& all = thread_state().functions;
  for (std::size_t k = all.size(); k-- > 0;) {
    if (all[k]->cache != cache) continue;
    if (count > 0 && all[k]->elements >= inside) break;
    inside = all[k]->elements;
    ++count;
  }
  return count;
}

/// Puts the captured inputs of a Graph in the order of `wanted`.
void order_captured(Recorded& r, std::span<const Tensor> wanted) {
  const std::size_t own = r.graph.inputs.size() - r.captured.size();
  const Vec<Var> old = r.graph.inputs;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (same_tensor(wanted[i], r.captured[k])) r.graph.inputs[own + i] = old[own + k];
  r.captured.assign(wanted.begin(), wanted.end());
}

/// Is this recording what the calls in it took it for?
bool is_as_assumed(const Recorded& r, const Vec<OwnState>& states,
                   const FunctionRecording& recording) {
  const Entry& assumed = recording.assumed;
  if (!recording.known || r.captured.size() != assumed.called.captured.size() ||
      states.size() != assumed.states.size())
    return false;
  const RecursiveFunction& f = *assumed.recursive.function;
  if (r.graph.outputs.size() != f.outputs.size() || has_effects(r.graph) != f.effects) return false;
  for (std::size_t i = 0; i < f.outputs.size(); ++i)
    if (r.graph.aval(r.graph.outputs[i]) != f.outputs[i]) return false;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].variable != assumed.states[i].variable) return false;
  return all_of(r.captured, [&](const Tensor& t) {
    return any_of(assumed.called.captured, [&](const Tensor& u) { return same_tensor(t, u); });
  });
}

}  // namespace named_functions

std::string FunctionCache::State::key_of(std::span<const Tensor> arguments,
                                         const StaticKey& static_key, CallSite where) const {
  std::string key = static_key.bytes;
  key += thread_state().assume_finite ? 'f' : ' ';
  key += thread_state().default_dtype == f64 ? 'w' : ' ';
  key += named_functions::mesh_here();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value,
           formatted("{}: argument leaf {} of {} is an empty Tensor", kind, i, name), where);
    named_functions::append_aval(key, aval_of(arguments[i]));
  }
  return key;
}

named_functions::EntryRef FunctionCache::State::found(const std::string& key) {
  {
    const std::lock_guard lock(mutex);
    if (const named_functions::EntryRef* const entry = entries.find(key)) return last = *entry;
  }
  ThreadState& state = thread_state();
  for (std::size_t k = 0; k < state.functions.size(); ++k)
    for (const auto& [owner, entry] : state.functions[k]->inner)
      if (owner.first == this && owner.second == key) {
        for (std::size_t j = k; j < state.functions.size(); ++j)
          state.functions[j]->lowest = std::min(state.functions[j]->lowest, k);
        state.lowest_reference = std::min(state.lowest_reference, k);
        return entry;
      }
  return nullptr;
}

void FunctionCache::State::refuse_growth(const Error& e, const FunctionRecording& recording,
                                         const named_functions::Entry& entry) const {
  // Shapes that grow end in one that is too large for anything.
  constexpr std::int64_t huge = 1 << 20;
  constexpr std::size_t few = 3;
  const std::size_t calls = named_functions::growing_calls(this);
  if (e.kind() != ErrorKind::shape || recording.told || recording.elements < huge || calls < few)
    throw;
  for (FunctionRecording* around : thread_state().functions) around->told = true;
  const Aval& largest =
      *std::max_element(entry.arguments.begin(), entry.arguments.end(),
                        [](auto& x, auto& y) { return x.elements() < y.elements(); });
  fail(ErrorKind::transform,
       formatted("{}: {} calls itself with arguments of larger shapes each time, and each shape is "
                 "recorded anew, which has no end; keep the shapes the same. {} calls deep, with "
                 "{}, {}",
                 kind, name, calls, largest.str(), e.what()),
       {});
}

bool FunctionCache::State::is_settled(Recorded& r, const named_functions::Entry& made,
                                      bool lanes_of_one, FunctionRecording& recording,
                                      CallSite where) const {
  close_values(r);  // those made inside are others in each recording
  if (lanes_of_one)
    refuse(ErrorKind::transform,
           "calls itself, so that neither lanes nor processes of a named axis can meet in it",
           where);
  for (const OwnState& s : made.states)
    if (s.updated)
      refuse(ErrorKind::transform,
             formatted("calls itself, so that it may not update {}; return the value instead",
                       s.variable->name),
             s.where);
  if (named_functions::is_as_assumed(r, made.states, recording)) return true;
  named_functions::Entry& assumed = recording.assumed;
  if (!assumed.recursive.function) {
    RecursiveFunction& function = recording.family->add(name);
    if (max_depth) function.max_depth = *max_depth;
    assumed.recursive.function = &function;
  }
  RecursiveFunction& function = *recording.family->functions[0];
  function.outputs.clear();
  for (Var v : r.graph.outputs) function.outputs.push_back(r.graph.aval(v));
  function.effects = has_effects(r.graph);
  assumed.kept = made.kept;
  assumed.states = made.states;
  assumed.called.captured = r.captured;
  recording.known = true;
  return false;
}

named_functions::EntryRef FunctionCache::State::recorded(std::span<const Tensor> arguments,
                                                         const StaticKey& static_key,
                                                         const std::string& key, FlatFunctionRef f,
                                                         FunctionRef<std::shared_ptr<void>()> keep,
                                                         CallSite where) {
  using namespace named_functions;
  ThreadState& state = thread_state();
  const std::size_t depth = state.functions.size();
  // The function's scope, and those of a branch and of what it calls in there.
  if (const std::string fault = too_deep(3); !fault.empty())
    refuse(ErrorKind::transform,
           formatted("is recorded inside of {} others, nested {}; if they call themselves with "
                     "arguments of other types each time, such a recursion has no end",
                     depth, fault),
           where);
  FunctionRecording recording(this, key, arguments);
  auto fresh = std::make_shared<Entry>();
  fresh->static_bytes = static_key.bytes;
  fresh->assume_finite = state.assume_finite;
  fresh->default_dtype = state.default_dtype;
  fresh->mesh = mesh_here();
  for (const Tensor& t : arguments) fresh->arguments.push_back(aval_of(t));
  const FlatFunction flat = [f](std::span<const Tensor> tracers) { return f(tracers); };
  Recorded r;
  bool lanes_of_one = false;
  for (int iteration = 0;; ++iteration) {
    recording.referenced = false;
    recording.lowest = std::numeric_limits<std::size_t>::max();
    recording.inner.clear();
    fresh->states.clear();
    const OuterAxes axes;
    try {
      r = record(with_states(flat, fresh->states), fresh->arguments,
                 {.kind = ScopeKind::branch, .transform = kind, .stateful = true});
    } catch (const UnknownResult& u) {
      if (u.recording != depth) throw;
      refuse(ErrorKind::transform,
             "calls itself whatever its arguments are; a branch of vt::cond must end the recursion",
             u.where);
    } catch (const Error& e) {
      refuse_growth(e, recording, *fresh);
    }
    fresh->kept = keep();
    lanes_of_one = axes.used();
    if (!recording.referenced || is_settled(r, *fresh, lanes_of_one, recording, where)) break;
    if (iteration == most_recordings)
      refuse(ErrorKind::dtype,
             "gives results of other types than its calls inside; convert them with astype", where);
  }
  fresh->called.function = called_function(name);
  if (recording.referenced) {
    order_captured(r, recording.assumed.called.captured);
    RecursiveFunction& made = *recording.family->functions[0];
    for (Var v : r.graph.inputs) made.inputs.push_back(r.graph.aval(v));
    finish_recursive(made, std::move(r.graph));
    fresh->called.body = made.body;
    fresh->recursive = {&made, recording.family};
  } else {
    fresh->called.body = std::make_shared<const GraphBody>(std::move(r.graph));
  }
  fresh->called.captured = std::move(r.captured);
  prepare_calls(fresh->called);
  fresh->met = std::move(r.met);
  const EntryRef entry = fresh;
  if (recording.lowest < depth) {
    state.functions[recording.lowest]->inner.push_back({{this, key}, entry});
  } else if (!lanes_of_one) {  // lanes that have a name are those of one vmap
    Vec<EntryRef> gone;        // until the lock has gone
    const std::lock_guard lock(mutex);
    changes.add(kind + (" " + name), "is recorded anew", arguments, static_key, where);
    EntryRef& kept_entry = *entries.emplace(key, entry, gone);
    if (kept_entry != entry) gone.push_back(std::exchange(kept_entry, entry));
    gone.push_back(std::exchange(last, entry));
  }
  return entry;
}

namespace named_functions {

/// The call of a function that has been recorded.
Results emit_recorded(const Entry& entry, std::span<const Tensor> arguments, CallSite where) {
  std::vector<Tensor> with_states;
  if (!entry.states.empty()) {
    with_states = operands_of(arguments, entry, where);
    arguments = with_states;
  }
  if (entry.recursive.function) {
    std::vector<Tensor> operands(arguments.begin(), arguments.end());
    operands.insert(operands.end(), entry.called.captured.begin(), entry.called.captured.end());
    return as_results(emit_recursive(entry.recursive, operands, where));
  }
  const CallResults made = emit_call(entry.called, arguments, where);
  const std::size_t updated = count_if(entry.states, [](const OwnState& s) { return s.updated; });
  Results results;
  results.reserve(made.size());
  std::size_t next = 0;
  while (next + updated < made.size()) results.push_back(made[next++]);
  for (const OwnState& s : entry.states)
    if (s.updated) update_state({s.variable, s.kind, made[next++], s.where});
  return results;
}

}  // namespace named_functions

SmallVec<Tensor, 4> FunctionCache::call(std::span<const Tensor> arguments,
                                        const StaticKey& static_key, FlatFunctionRef f,
                                        FunctionRef<std::shared_ptr<void>()> keep,
                                        std::shared_ptr<void>& kept, CallSite given_where) {
  using namespace named_functions;
  State& own = *state_;
  const CallSite where = user_line(given_where);
  const Vec<FunctionRecording*>& open = thread_state().functions;
  EntryRef entry;
  if (!any_of(open, [&](const FunctionRecording* r) { return r->cache == &own; })) {
    const std::lock_guard lock(own.mutex);
    if (own.last && named_functions::fits(*own.last, arguments, static_key) &&
        all_of(own.last->called.captured, is_alive))
      entry = own.last;
  }
  if (!entry) {
    const std::string key = own.key_of(arguments, static_key, where);
    for (std::size_t k = 0; k < open.size(); ++k)
      if (open[k]->cache == &own && open[k]->key == key) return refer(k, arguments, kept, where);
    entry = own.found(key);
    // What was captured in a trace that has ended cannot be captured again.
    if (!entry || !all_of(entry->called.captured, is_alive))
      entry = own.recorded(arguments, static_key, key, f, keep, where);
  }
  if (have_misfit(arguments, entry->met)) {  // f says what that means
    Results results = as_results(f(arguments));
    kept = keep();
    return results;
  }
  kept = entry->kept;
  return emit_recorded(*entry, arguments, where);
}

}  // namespace vt::detail
