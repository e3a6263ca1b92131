// Called functions: keeping what transforms make of them.
#include "called.hpp"

#include <algorithm>
#include <memory>

#include "../ir/effects.hpp"

namespace vt::detail {

DerivedFunction derived_of(Recorded&& r) {
  return {std::make_shared<const GraphBody>(std::move(r.graph)), std::move(r.captured)};
}

DerivedRef derive(const CallParams& p, const DerivedKey& key, FunctionRef<DerivedFunction()> make) {
  const std::string text = key.str();
  if (p.function) {
    const std::lock_guard lock(p.function->mutex);
    for (const auto& [known, derived] : p.function->derived)
      if (known == text) return derived;
  }
  auto made = std::make_shared<DerivedFunction>(make());
  if (!p.function) return made;
  if (!made->function)
    made->function =
        called_function(p.function->name + (key.transform().empty() ? "" : "." + key.transform()));
  const bool kept = none_of(made->captured, [](const Tensor& t) { return is_tracer(t); });
  if (!kept) return made;
  const std::lock_guard lock(p.function->mutex);
  // They are told apart by the number of lanes, too, of which there may be ever others.
  constexpr std::size_t most_derived = 64;
  if (p.function->derived.size() >= most_derived)
    p.function->derived.erase(p.function->derived.begin());
  p.function->derived.emplace_back(text, made);
  return made;
}

SmallVec<Tensor, 1> emit_call(const DerivedFunction& f, std::vector<Tensor> operands,
                              CallSite where) {
  const auto own = static_cast<int>(operands.size());
  operands.insert(operands.end(), f.captured.begin(), f.captured.end());
  if (f.body->outputs.empty() && !has_effects(*f.body)) return {};
  return emit_all(Op::call, make_params(CallParams{f.body, nullptr, own, f.function}), operands,
                  where);
}

}  // namespace vt::detail
