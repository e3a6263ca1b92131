// Numbers written in C++ that became Tensors: whether a dtype can hold them, and which dtypes bare
// integers have met.
#include "literals.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "thread_state.hpp"

namespace vt::detail {

bool integer_fits(const Scalar& value, DType dtype, Literal as) {
  if (!is_int(dtype) || !is_int(value.dtype) || value.dtype == dtype) return true;
  const auto bits = static_cast<int>(8 * size_of(dtype));
  if (!is_unsigned(value.dtype) && value.integer < 0)
    return (!is_unsigned(dtype) || as == Literal::bits) && value.integer >= std::int64_t{-1}
                                                                                << (bits - 1);
  const bool full_range = is_unsigned(dtype) || as == Literal::bits;
  return value.natural >> (full_range ? bits - 1 : bits - 2) <= 1;
}
std::string integer_text(const Scalar& value) {
  return is_unsigned(value.dtype) ? formatted("{}", value.natural) : formatted("{}", value.integer);
}

namespace literals {

// What a weak Tensor that holds one number for all lanes is made of.
const Node* source_of(const Tensor& t) {
  const Node* n = node_of(t);
  while (n->op == Op::broadcast_in_dim && !n->inputs.empty()) n = node_of(n->inputs[0]);
  return n;
}

void note_met(const Node* n, DType dtype, Literal as) {
  ThreadState& state = thread_state();
  if (n->op != Op::input || !is_int(n->avals[0].dtype) || !is_int(dtype)) return;
  if (n->level == 0 || n->level > state.scopes.size() || state.scopes[n->level - 1u].id != n->scope)
    return;
  ScopeState& scope = state.scopes[n->level - 1u];
  const auto at = std::find_if(scope.inputs.begin(), scope.inputs.end(),
                               [&](const Tensor& input) { return node_of(input) == n; });
  const MetNumber met{static_cast<std::size_t>(at - scope.inputs.begin()), dtype, as};
  if (at != scope.inputs.end() &&
      std::find(scope.met.begin(), scope.met.end(), met) == scope.met.end())
    scope.met.push_back(met);
}

}  // namespace literals

const Scalar* literal_of(const Tensor& t) {
  if (!node_of(t)->avals[0].weak) return nullptr;
  const Node* n = literals::source_of(t);
  return n->op == Op::full ? &n->params->as<FullParams>().value : nullptr;
}

bool have_misfit(std::span<const Tensor> arguments, const MetNumbers& met) {
  return any_of(met, [&](const MetNumber& m) {
    return misfit(arguments[m.argument], m.dtype, m.as) != nullptr;
  });
}

const Scalar* misfit(const Tensor& t, DType dtype, Literal as) {
  if (node_of(t)->avals[0].weak) literals::note_met(literals::source_of(t), dtype, as);
  const Scalar* number = literal_of(t);
  return !number || integer_fits(*number, dtype, as) ? nullptr : number;
}

}  // namespace vt::detail
