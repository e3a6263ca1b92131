// Linear calls: making, running and transposing them.
#include "linear_call.hpp"

#include <memory>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "build.hpp"

namespace vt::detail {

namespace linear_calls {

/// Only for the shapes of the results. Nothing ever runs it: push_linear_call and pull_linear_call
/// know better.
inline GraphRef shapes_only(std::span<const Tensor> operands, std::span<const Aval> results) {
  auto body = std::make_shared<GraphBody>();
  for (const Tensor& t : operands) body->inputs.push_back(body->fresh(aval_of(t)));
  for (const Aval& a : results) {
    const Var v = body->fresh(a);
    Equation e;
    e.op = Op::full;
    e.params = make_params(FullParams{Scalar(0.0).converted(a.dtype), a});
    e.outputs.push_back(v);
    body->equations.push_back(std::move(e));
    body->outputs.push_back(v);
  }
  return body;
}

inline std::span<const Tensor> residuals_of(const CallParams& p, std::span<const Tensor> operands) {
  return operands.subspan(p.explicit_operands);
}
inline std::vector<Tensor> joined(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace linear_calls

std::vector<Tensor> emit_linear_call(LinearCall call, std::span<const Tensor> tangents,
                                     std::span<const Aval> results, CallSite where) {
  Vec<bool> given;
  std::vector<Tensor> operands;
  for (const Tensor& t : tangents) {
    given.push_back(t.defined());
    if (t.defined()) operands.push_back(t);
  }
  Vec<Aval> floats;
  for (const Aval& a : results)
    if (is_inexact(a.dtype)) floats.emplace_back(a.dtype, a.shape);
  Vec<bool> is_number;
  for (const Aval& a : results) is_number.push_back(is_inexact(a.dtype));

  const std::size_t linear = operands.size(), residuals = call.residuals.size();
  operands.insert(operands.end(), call.residuals.begin(), call.residuals.end());
  auto rule = std::make_shared<CustomRule>();
  rule->name = std::move(call.name);
  // Operands that were zero here stay zero, and results that are no numbers stay out.
  rule->forward = [push = std::move(call.push), given, is_number,
                   linear](std::span<const Tensor> all) {
    std::vector<Tensor> in;
    std::size_t next = 0;
    for (bool g : given) in.push_back(g ? all[next++] : Tensor());
    std::vector<Tensor> out = push(all.subspan(linear), in), kept;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (is_number[i]) kept.push_back(std::move(out[i]));
    return kept;
  };
  rule->backward = [pull = std::move(call.pull), given, is_number,
                    residuals](std::span<const Tensor> all) {
    std::vector<Tensor> in;
    std::size_t next = residuals;
    for (bool n : is_number) in.push_back(n ? all[next++] : Tensor());
    std::vector<Tensor> out = pull(all.first(residuals), in), kept;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (given[i]) kept.push_back(std::move(out[i]));
    return kept;
  };
  CallParams p;
  p.body = linear_calls::shapes_only(operands, floats);
  p.rule = std::move(rule);
  p.explicit_operands = static_cast<int>(linear);
  std::vector<Tensor> all(results.size());
  if (floats.empty()) return all;
  const SmallVec<Tensor, 1> made = emit_all(Op::call, make_params(std::move(p)), operands, where);
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_number[i]) all[i] = made[next++];
  return all;
}

bool is_linear_call(const Equation& e) { return e.op == Op::call && e.as<CallParams>().rule; }

std::vector<Tensor> push_linear_call(const Equation& e, std::span<const Tensor> operands) {
  return e.as<CallParams>().rule->forward(operands);
}

std::vector<Tensor> pull_linear_call(const Equation& e, std::span<const Tensor> operands,
                                     std::span<const Tensor> cotangents) {
  const auto& p = e.as<CallParams>();
  return p.rule->backward(
      linear_calls::joined(linear_calls::residuals_of(p, operands), cotangents));
}

}  // namespace vt::detail
