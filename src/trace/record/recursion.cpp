// Recursive functions: what transforms make of them, without cycles of ownership; and how deep they
// may run.
#include "recursion.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/message.hpp>

#include "../base/locks.hpp"
#include "../ir/effects.hpp"
#include "../ir/printer.hpp"
#include "node.hpp"
#include "thread_state.hpp"
#include "without_effects.hpp"

namespace vt::detail {

namespace recursion {

/// Members of families come and go under it. Recursive, as deriving one function derives those that
/// it calls.
LongMutex<std::recursive_mutex>& mutex() {
  static LongMutex<std::recursive_mutex> m;
  return m;
}

bool owns(const GraphBody& g, const void* family) {
  return has_equation(g, [&](const Equation& e) {
    return e.op == Op::recursive_call && e.as<RecursionParams>().owner.get() == family;
  });
}

/// Equations that refer to the family no longer own it.
void disown(GraphBody& g, const void* family) {
  for (Equation& e : g.equations) {
    if (e.op == Op::recursive_call) {
      if (e.as<RecursionParams>().owner.get() == family)
        e.params = make_params(RecursionParams{e.as<RecursionParams>().function});
      continue;
    }
    if (family_of(e.op) != Family::structure) continue;
    Vec<GraphRef> bodies = bodies_of(e.params);
    bool changed = false;
    for (GraphRef& body : bodies) {
      if (!owns(*body, family)) continue;
      auto own = std::make_shared<GraphBody>(*body);
      disown(*own, family);
      body = std::move(own);
      changed = true;
    }
    if (changed) e.params = with_bodies(e.params, bodies);
  }
}

/// Takes back what was derived since there were `count` functions.
void forget(RecursiveFamily& family, std::size_t count) {
  const auto is_dead = [&](const RecursiveFunction* f) {
    return std::any_of(family.functions.begin() + static_cast<std::ptrdiff_t>(count),
                       family.functions.end(), [&](const auto& dead) { return dead.get() == f; });
  };
  for (const auto& f : family.functions)
    erase_if(f->derived, [&](const auto& entry) { return is_dead(entry.second); });
  family.functions.resize(count);
}

}  // namespace recursion

void finish_recursive(RecursiveFunction& f, GraphBody&& body) {
  if (recursion::owns(body, f.family)) recursion::disown(body, f.family);
  f.body = std::make_shared<const GraphBody>(std::move(body));
}

RecursionParams derive_recursive(const RecursionParams& p, const DerivedKey& key, Vec<Aval> outputs,
                                 bool effects, FunctionRef<Recorded()> make) {
  const std::lock_guard lock(recursion::mutex());
  auto& source = const_cast<RecursiveFunction&>(*p.function);  // the lock is held
  for (const auto& [known, made] : source.derived)
    if (known == key) return {made, p.owner};
  if (!source.body)
    fail(
        ErrorKind::transform,
        formatted("vt::Recursive: {} is transformed (vt::{}) inside of itself, before all of it is "
                  "known; transform it where it is called from outside",
                  source.name, key.transform()),
        thread_state().where);
  RecursiveFamily& family = *source.family;
  const std::size_t before = family.functions.size();
  // In real numbers it is the user's own.
  RecursiveFunction& made = family.add(
      key.transform() == "real" ? source.name : source.name + "." + std::string(key.transform()));
  made.users = source.users;
  made.max_depth = source.max_depth;
  made.effects = effects;
  made.remembers = source.remembers || key.transform() == "pull";
  made.outputs = std::move(outputs);
  source.derived.emplace_back(key, &made);
  try {
    finish_recursive(made, closed(make()));
  } catch (...) {
    recursion::forget(family, before);
    throw;
  }
  for (Var v : made.body->inputs) made.inputs.push_back(made.body->aval(v));
  return {&made, p.owner};
}

std::vector<Tensor> emit_recursive(const RecursionParams& p, std::span<const Tensor> operands,
                                   CallSite where) {
  const SmallVec<Tensor, 1> out = emit_all(Op::recursive_call, make_params(p), operands, where);
  return {out.begin(), out.end()};
}

RecursionParams without_effects(const RecursionParams& p) {
  if (!p.function->effects) return p;
  Vec<Aval> outputs = p.function->outputs;
  return derive_recursive(p, DerivedKey("quiet"), std::move(outputs), false,
                          [&] { return Recorded{*without_effects(p.function->body)}; });
}

// --- depth ---------------------------------------------------------------------------------------

RecursionGuard::RecursionGuard(const RecursiveFunction& f, std::span<const BufferRef> operands,
                               CallSite where)
    : function_(f) {
  ThreadState& state = thread_state();
  const auto start = [&] {
    return recursion_start(&f, [&](std::size_t i) { return operands[i]->data; });
  };
  if (state.recursion >= f.max_depth) fail_too_deep(f.users->name, state.recursion, start(), where);
  if (stack_left() < stack_to_record) {
    if (InterpreterBudget::exists())
      throw InterpreterBudget::Exceeded();  // compiled code takes less
    fail_stack_too_small(f.users->name, state.recursion, start(), where);
  }
  if (state.recursion++ > 0) return;
  state.outermost_recursion = this;
  for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 4); ++i)
    numbers_.push_back(f.inputs[i].shape.rank() == 0 ? operands[i] : BufferRef());
}
RecursionGuard::~RecursionGuard() {
  ThreadState& state = thread_state();
  if (--state.recursion == 0) state.outermost_recursion = nullptr;
}

std::string recursion_start(const RecursiveFunction* f,
                            FunctionRef<const void*(std::size_t)> data) {
  const ThreadState& state = thread_state();
  const std::span<const std::int64_t> lane{state.lane.begin(), state.lane.size()};
  // Behind the arguments of the user's function derivatives take tangents.
  const auto text = [&](const RecursiveFunction& begun, FunctionRef<const void*(std::size_t)> of) {
    const std::size_t count = std::min(begun.inputs.size(), begun.users->inputs.size());
    return printer::lane_text(lane, {begun.inputs.begin(), count}, of);
  };
  const RecursionGuard* const first = state.outermost_recursion;
  if (!first) return f ? text(*f, data) : printer::lane_text(lane);
  return text(first->function_, [&](std::size_t i) { return first->numbers_[i]->data; });
}

}  // namespace vt::detail
