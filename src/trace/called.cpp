// Called functions: keeping what transforms make of them; and FunctionCache, which records the functions that users name.
#include "called.hpp"

#include <algorithm>
#include <unordered_map>

#include "effects.hpp"
#include "named_axes.hpp"
#include "promote.hpp"
#include "state.hpp"
#include "thread_state.hpp"

namespace vt::detail {

CalledRef called_function(std::string name) {
  auto f = new_shared<CalledFunction>();
  f->name = std::move(name);
  return f;
}

DerivedFunction derived_of(Recorded&& r) { return {new_shared<const GraphBody>(std::move(r.graph)), std::move(r.captured)}; }

DerivedRef derive(const CallParams& p, const DerivedKey& key, FunctionRef<DerivedFunction()> make) {
  const std::string text = key.str();
  if (p.function) {
    const std::lock_guard lock(p.function->mutex);
    for (const auto& [known, derived] : p.function->derived)
      if (known == text) return derived;
  }
  auto made = new_shared<DerivedFunction>(make());
  if (!p.function) return made;
  if (!made->function) made->function = called_function(p.function->name + (key.transform().empty() ? "" : "." + key.transform()));
  const bool kept = none_of(made->captured, [](const Tensor& t) { return is_tracer(t); });
  if (!kept) return made;
  const std::lock_guard lock(p.function->mutex);
  p.function->derived.emplace_back(text, made);
  return made;
}

SmallVec<Tensor, 1> emit_call(const DerivedFunction& f, std::vector<Tensor> operands, Where where) {
  const auto own = static_cast<int>(operands.size());
  operands.insert(operands.end(), f.captured.begin(), f.captured.end());
  if (f.body->outputs.empty() && !has_effects(*f.body)) return {};
  return emit_all(Op::call, make_params(CallParams{f.body, nullptr, own, f.function}), operands, where);
}

// --- functions that users name ---------------------------------------------------------------------------------------

namespace named_functions {

/// One signature.
struct Entry {
  GraphRef body;  ///< of the arguments, the variables, and what is captured
  CalledRef function;
  std::vector<Tensor> captured;
  Vec<OwnState> states;
  std::shared_ptr<void> kept;
};

bool is_alive(const Tensor& t) {
  const Node* n = t.node();
  const ThreadState& state = thread_state();
  return n->level == 0 || (n->level <= state.scopes.size() && state.scopes[n->level - 1u].id == n->scope);
}

void append_aval(std::string& key, const Aval& a) {
  key += a.str();
  key += a.weak ? '~' : ';';
}

}  // namespace named_functions

struct FunctionCache::State {
  std::string name;
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const named_functions::Entry>> entries;
};

FunctionCache::FunctionCache(std::string name, Where where) : state_(new_box<State>()) {
  if (name.empty()) fail(ErrorKind::value, "vt::function: the name is empty", user_line(where));
  state_->name = std::move(name);
}
FunctionCache::~FunctionCache() = default;

std::vector<Tensor> FunctionCache::call(std::span<const Tensor> arguments, const StaticKey& static_key, const FlatFunction& f,
                                        FunctionRef<std::shared_ptr<void>()> keep, std::shared_ptr<void>& kept, Where given_where) {
  using namespace named_functions;
  const Where where = user_line(given_where);
  std::string key = static_key;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value, "vt::function: argument leaf " + std::to_string(i) + " of " + state_->name + " is an empty Tensor", where);
    append_aval(key, aval_of(arguments[i]));
  }
  std::shared_ptr<const Entry> entry;
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->entries.find(key); found != state_->entries.end()) entry = found->second;
  }
  // What was captured in a trace that has ended cannot be captured again.
  if (entry && !all_of(entry->captured, is_alive)) entry = nullptr;
  if (!entry) {
    Vec<Aval> avals;
    for (const Tensor& t : arguments) avals.push_back(aval_of(t));
    const OuterAxes axes;
    auto fresh = new_shared<Entry>();
    Recorded r = record(with_states(f, fresh->states), avals, {.kind = ScopeKind::branch, .transform = "vt::function", .stateful = true});
    fresh->kept = keep();
    fresh->body = new_shared<const GraphBody>(std::move(r.graph));
    fresh->captured = std::move(r.captured);
    fresh->function = called_function(state_->name);
    entry = fresh;
    if (!axes.used()) {  // lanes that have a name are those of one vmap
      const std::lock_guard lock(state_->mutex);
      state_->entries[key] = entry;
    }
  }
  kept = entry->kept;
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  for (const OwnState& s : entry->states)
    operands.push_back(s.updated && accumulates(s.kind) ? neutral(s.kind, s.variable->aval) : read_state(s.variable, where));
  const SmallVec<Tensor, 1> made = emit_call({entry->body, entry->captured, entry->function}, std::move(operands), where);
  std::vector<Tensor> results(made.begin(), made.end());
  const auto updated = count_if(entry->states, [](const OwnState& s) { return s.updated; });
  std::size_t next = results.size() - static_cast<std::size_t>(updated);
  for (const OwnState& s : entry->states)
    if (s.updated) update_state({s.variable, s.kind, results[next++], s.where});
  results.resize(results.size() - static_cast<std::size_t>(updated));
  return results;
}

}  // namespace vt::detail
