// Called functions: keeping what transforms make of them.
#include "called.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "../ir/effects.hpp"
#include "thread_state.hpp"

namespace vt::detail {

DerivedFunction derived_of(Recorded&& r) {
  return {std::make_shared<const GraphBody>(std::move(r.graph)), std::move(r.captured)};
}

DerivedRef derive(const CallParams& p, const DerivedKey& key, FunctionRef<DerivedFunction()> make) {
  if (p.function) {
    const std::lock_guard lock(p.function->mutex);
    for (const auto& [known, derived] : p.function->derived)
      if (known == key) return derived;
  }
  auto made = std::make_shared<DerivedFunction>(make());
  if (p.function && !made->function) {
    std::string name = p.function->name;
    if (!key.transform().empty()) name.append(".").append(key.transform());
    made->function = called_function(std::move(name));
  }
  prepare_calls(*made);
  const bool kept = none_of(made->captured, [](const Tensor& t) { return is_tracer(t); });
  if (!p.function || !kept) return made;
  const std::lock_guard lock(p.function->mutex);
  // They are told apart by the number of lanes, too, of which there may be ever others.
  constexpr std::size_t most_derived = 64;
  if (p.function->derived.size() >= most_derived)
    p.function->derived.erase(p.function->derived.begin());
  p.function->derived.emplace_back(key, made);
  return made;
}

void prepare_calls(DerivedFunction& f) {
  const GraphBody& g = *f.body;
  Vec<Aval> results;
  results.reserve(g.outputs.size());
  for (Var v : g.outputs) results.push_back(g.aval(v));
  f.params =
      make_params(CallParams{f.body, nullptr, static_cast<int>(g.inputs.size() - f.captured.size()),
                             f.function, ResultAvals::shared(std::move(results))});
}

CallResults emit_call(const DerivedFunction& f, std::span<const Tensor> operands, CallSite where) {
  if (f.body->outputs.empty() && !has_effects(*f.body)) return {};
  const auto place = [&](std::span<const Tensor> all) {
    const CallSite line = user_line(where);
    Node* n = place_node(Op::call, f.params, all, level_for(Op::call, f.params, all, line), line);
    n->avals = f.params->as<CallParams>().results;
    CallResults results(adopted(n));
    if (n->at_once) run_at_once(n, line);
    return results;
  };
  if (f.captured.empty()) return place(operands);
  Borrowed all;
  all.reserve(operands.size() + f.captured.size());
  for (const Tensor& t : operands) all.add(t);
  for (const Tensor& t : f.captured) all.add(t);
  return place(all);
}

}  // namespace vt::detail
