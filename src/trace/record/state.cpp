// State: the logs of scopes, reading through them, and the Variable that users hold.
#include "state.hpp"

#include <algorithm>
#include <limits>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "scope.hpp"
#include "thread_state.hpp"

namespace vt::detail {

Op op_of(Update u) {
  return u == Update::add   ? Op::add
         : u == Update::mul ? Op::mul
         : u == Update::max ? Op::max
                            : Op::min;
}
Tensor combined(Update u, const Tensor& a, const Tensor& b, CallSite where) {
  return emit(op_of(u), {}, {a, b}, where);
}
Scalar neutral(Update u, DType dtype) {
  const double end = std::numeric_limits<double>::infinity();
  const double value = u == Update::add ? 0 : u == Update::mul ? 1 : u == Update::max ? -end : end;
  return is_bool(dtype) ? Scalar(u == Update::min) : Scalar(value).converted(dtype);
}
Tensor neutral(Update u, const Aval& a) {
  return full_tensor(neutral(u, a.dtype), Aval(a.dtype, a.shape));
}
Tensor repeated_update(Update u, const Tensor& value, std::int64_t count, CallSite where) {
  if (count == 0) return neutral(u, aval_of(value));
  if (count == 1 || u == Update::max || u == Update::min) return value;
  Shape shape{count};
  shape.append(value.shape().begin(), value.shape().end());
  Axes axes = Axes::first(value.rank());
  for (int& axis : axes) ++axis;
  const Tensor all =
      emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {value}, where);
  return emit(u == Update::add ? Op::reduce_sum : Op::reduce_prod, make_params(AxesParams{Axes{0}}),
              {all}, where);
}

namespace state_logs {

/// The scope that updates go to: the innermost but for linear ones, which hold tangents only. −1:
/// outside of all.
int own_scope(const ThreadState& state) {
  int k = static_cast<int>(state.scopes.size()) - 1;
  while (k >= 0 && state.scopes[k].kind == ScopeKind::linear) --k;
  return k;
}
ScopeState& scope(int k) { return thread_state().scopes[k]; }

StateEntry* find(ScopeState& scope, const VariableRef& variable) {
  for (StateEntry& e : scope.states)
    if (e.variable == variable) return &e;
  return nullptr;
}
/// Does scope k take this variable's value as an input?
bool owns(int k, const VariableRef& variable) {
  return scope(k).stateful && (scope(k).kind != ScopeKind::vmap || variable->stream);
}
/// A scope with states of its own gets an input with the first touch.
StateEntry& entry(int k, const VariableRef& variable, CallSite where) {
  if (StateEntry* e = find(scope(k), variable)) return *e;
  StateEntry fresh;
  fresh.variable = variable;
  fresh.where = where;
  if (owns(k, variable)) {
    Node* n = place_node(Op::input, {}, {}, k + 1, where);
    n->avals.emplace(variable->aval);
    fresh.input = adopted(n);
    scope(k).inputs.push_back(fresh.input);
  }
  scope(k).states.push_back(std::move(fresh));
  return scope(k).states.back();
}

Tensor read_from(int k, const VariableRef& variable, CallSite where);

/// The value behind the log of scope k. `start`: before it.
Tensor folded(const StateEntry& e, Tensor start, CallSite where) {
  for (const StateUpdate& u : e.log)
    start = accumulates(u.kind) ? combined(u.kind, start, u.value, where) : u.value;
  return start;
}
Tensor start_of(int k, StateEntry& e, CallSite where) {
  e.read = true;
  return e.input.defined() ? e.input : read_from(k - 1, e.variable, where);
}

Tensor read_from(int k, const VariableRef& variable, CallSite where) {
  for (; k >= 0; --k) {
    StateEntry* e = owns(k, variable) ? &entry(k, variable, where) : find(scope(k), variable);
    if (!e || (e->log.empty() && !e->input.defined())) continue;
    if (e->log.empty()) return start_of(k, *e, where);
    const bool known = !accumulates(e->log[0].kind);
    if (known && e->log.size() == 1) return e->log[0].value;
    if (scope(k).kind == ScopeKind::vmap)
      fail(ErrorKind::transform,
           formatted(
               "vt::Variable: {} is read under {} behind an update{}, which is not done before "
               "all lanes have come by; read it before, or outside",
               variable->name, scope(k).transform, at(e->log.back().where)),
           where);
    const StateUpdate last = e->log.back();
    Tensor start;
    if (!known) start = start_of(k, *e, where);
    e = find(scope(k), variable);
    Tensor value = folded(*e, start, where);
    if (k == own_scope(thread_state())) e->log = {{variable, Update::assign, value, last.where}};
    return value;
  }
  std::lock_guard lock(variable->mutex);
  return variable->value;
}

}  // namespace state_logs

Turns::Turns(Variables variables) : held_(std::move(variables)) {
  insertion_sort(held_);  // one order for all threads, so that none waits for another in a circle
  for (void* v : held_) static_cast<VariableState*>(v)->turn.lock();
}
Turns::~Turns() {
  for (void* v : held_) static_cast<VariableState*>(v)->turn.unlock();
}

Tensor read_state(const VariableRef& variable, CallSite where) {
  return state_logs::read_from(static_cast<int>(thread_state().scopes.size()) - 1, variable, where);
}

void update_state(const StateUpdate& u) {
  using namespace state_logs;
  const int k = own_scope(thread_state());
  if (k < 0) {
    const Turns turn({u.variable.get()});
    Tensor old;
    {
      std::lock_guard lock(u.variable->mutex);
      old = u.variable->value;
    }
    const Tensor value = accumulates(u.kind) ? combined(u.kind, old, u.value, u.where) : u.value;
    value_of(value, u.where);  // an error here leaves the old value
    std::lock_guard lock(u.variable->mutex);
    u.variable->value = value;
    return;
  }
  StateEntry& e = entry(k, u.variable, u.where);
  if (!accumulates(u.kind)) e.log.clear();
  const bool joins =
      !e.log.empty() && (e.log.back().kind == u.kind ||
                         (!accumulates(e.log.back().kind) && scope(k).kind != ScopeKind::vmap));
  if (!joins) {
    e.log.push_back(u);
    return;
  }
  e.log.back().value = combined(u.kind, e.log.back().value, u.value, u.where);
  e.log.back().where = u.where;
}

Vec<StateUpdate> take_updates(bool single) {
  using namespace state_logs;
  const int k = static_cast<int>(thread_state().scopes.size()) - 1;
  Vec<StateUpdate> updates;
  for (std::size_t i = 0; i < scope(k).states.size(); ++i) {
    StateEntry* e = &scope(k).states[i];
    if (single && e->log.size() > 1) {
      const VariableRef variable = e->variable;
      const CallSite where = e->log.back().where;
      read_from(k, variable, where);  // leaves one assignment
      e = find(scope(k), variable);
    }
    updates.append(e->log.begin(), e->log.end());
    e->log.clear();
  }
  return updates;
}

void apply_updates(std::span<const StateUpdate> updates, std::span<const Tensor> values) {
  for (std::size_t i = 0; i < updates.size(); ++i)
    update_state({updates[i].variable, updates[i].kind, values[i], updates[i].where});
}

FlatFunction with_updates(const FlatFunction& f, Vec<StateUpdate>& updates,
                          Vec<LaneStream>* streams) {
  return [&f, &updates, streams](std::span<const Tensor> arguments) {
    std::vector<Tensor> out = f(arguments);
    const bool lanes = thread_state().scopes.back().kind == ScopeKind::vmap;
    if (streams)
      for (StateEntry& e : thread_state().scopes.back().states) {
        if (!e.input.defined()) continue;
        streams->push_back({e.variable, e.where});
        e.log.clear();
      }
    updates = take_updates(!lanes);
    for (StateUpdate& u : updates) out.push_back(std::exchange(u.value, Tensor()));
    return out;
  };
}

FlatFunction with_states(const FlatFunction& f, Vec<OwnState>& states) {
  return [&f, &states](std::span<const Tensor> arguments) {
    std::vector<Tensor> out = f(arguments);
    states.clear();
    for (StateEntry& e : thread_state().scopes.back().states) {
      OwnState s{e.variable, e.read, !e.log.empty(), Update::assign, {}};
      if (s.updated) {
        s.where = e.log.back().where;
        if (e.log.size() == 1 && !e.read) s.kind = e.log[0].kind;
        out.push_back(state_logs::folded(e, e.input, s.where));
        e.log.clear();
      }
      states.push_back(std::move(s));
    }
    return out;
  };
}

void refuse_updates(const char* what) {
  for (const StateEntry& e : thread_state().scopes.back().states)
    if (!e.log.empty())
      fail(ErrorKind::transform,
           formatted(
               "{}: the function updates {}, which cannot be done here; return the value instead",
               what, e.variable->name),
           e.log.back().where);
}

}  // namespace vt::detail
