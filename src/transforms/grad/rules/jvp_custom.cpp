// jvp rules of functions with rules of their own (custom_jvp, custom_vjp) and of callbacks.
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/effects.hpp"
#include "../build.hpp"
#include "../jvp.hpp"
#include "../linear_call.hpp"
#include "../linearize.hpp"
#include "../transpose.hpp"

namespace vt::detail::jvp_rules {

namespace structure_parts {

inline void need_count(const char* what, const CustomRule& rule, std::size_t got,
                       std::size_t wanted, CallSite where) {
  if (got == wanted) return;
  fail(ErrorKind::tree,
       rule.name + ": the " + what + " gives " + std::to_string(got) + " Tensors, not " +
           std::to_string(wanted),
       where);
}

/// A Tensor that a user's rule returned, as `wanted` must be: rank-0 weak numbers adopt its dtype,
/// anything else is an error.
inline Tensor checked(const char* what, const CustomRule& rule, const Tensor& got,
                      const Aval& wanted, std::size_t i, CallSite where) {
  if (!got.defined())
    fail(
        ErrorKind::tree,
        rule.name + ": the " + std::string(what) + " leaves result " + std::to_string(i) + " empty",
        where);
  const Aval& a = aval_of(got);
  Tensor t = got;
  if (a.weak && a.shape.rank() == 0)
    t = grad_build::broadcast_along(grad_build::convert_to(t, wanted.dtype), wanted.shape);
  if (t.shape() != wanted.shape || t.dtype() != wanted.dtype)
    fail(ErrorKind::shape,
         rule.name + ": the " + what + " gives " + a.str() + " for result " + std::to_string(i) +
             ", which must be " + wanted.str(),
         where);
  return t;
}

/// Custom rules see the explicit operands only; a derivative through what the function captured
/// would be lost.
inline void refuse_captured(const JvpCall& c) {
  const auto& p = c.as<CallParams>();
  for (std::size_t i = static_cast<std::size_t>(p.explicit_operands); i < c.t.size(); ++i)
    if (c.has(i))
      fail(ErrorKind::transform,
           p.rule->name + ": the function captures " + aval_of(c.x[i]).str() +
               ", with respect to which it is being differentiated; pass it as an argument",
           c.equation.where);
}

inline std::vector<Tensor> concatenated(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

inline Vec<Aval> avals_of(std::span<const Tensor> tensors) {
  Vec<Aval> avals;
  for (const Tensor& t : tensors) avals.push_back(t.defined() ? aval_of(t) : Aval());
  return avals;
}

/// Undefined Tensors become zeros like their patterns.
inline std::vector<Tensor> instantiated(std::span<const Tensor> tensors,
                                        std::span<const Aval> avals) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    all.push_back(tensors[i].defined() ? tensors[i]
                                       : grad_build::zeros(Aval(avals[i].dtype, avals[i].shape)));
  return all;
}

}  // namespace structure_parts

using namespace structure_parts;

// The equations of the body, differentiated where the call stands. A custom batch rule does not
// survive this: it speaks of the function, not of its derivative; the body's own ops carry the
// derivative through vmap.
void inlined(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  JvpResult r = jvp_graph(*c.as<CallParams>().body, c.x, c.t, c.mode);
  results = std::move(r.primals);
  tangents = std::move(r.tangents);
}

void custom_jvp(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const auto& p = c.as<CallParams>();
  refuse_captured(c);
  const std::size_t explicit_count = p.explicit_operands;
  const std::span<const Tensor> primals = c.x.first(explicit_count);
  const std::vector<Tensor> given = instantiated(c.t.first(explicit_count), avals_of(primals));
  const std::size_t n = p.body->outputs.size();
  std::vector<Tensor> out;
  {
    WhereScope own_lines(CallSite{});
    out = p.rule->jvp(concatenated(primals, given));
  }
  need_count("jvp rule", *p.rule, out.size(), 2 * n, c.equation.where);
  for (std::size_t i = 0; i < n; ++i) {
    const Aval& wanted = p.body->aval(p.body->outputs[i]);
    results.push_back(checked("jvp rule", *p.rule, out[i], wanted, i, c.equation.where));
    if (is_inexact(wanted.dtype))
      tangents[i] = checked("jvp rule's tangent", *p.rule, out[n + i], wanted, i, c.equation.where);
  }
}

namespace structure_parts {

/// Cotangents of the results → cotangents of the explicit operands, by the user's backward
/// function.
inline std::vector<Tensor> run_backward(const CustomRule& rule, std::span<const Tensor> residuals,
                                        std::span<const Tensor> cotangents,
                                        std::span<const Aval> results,
                                        std::span<const Aval> operands, CallSite where) {
  const std::vector<Tensor> given = instantiated(cotangents, results);
  std::vector<Tensor> out;
  {
    WhereScope own_lines(CallSite{});
    out = rule.backward(concatenated(residuals, given));
  }
  need_count("backward function", rule, out.size(), operands.size(), where);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = is_inexact(operands[i].dtype)
                 ? checked("backward function", rule, out[i], operands[i], i, where)
                 : Tensor();
  return out;
}

/// Tangents of the operands → tangents of the results: the backward function is linear, so its
/// transpose is the derivative.
inline std::vector<Tensor> transposed_backward(const CustomRule& rule,
                                               std::span<const Tensor> residuals,
                                               std::span<const Tensor> tangents,
                                               std::span<const Aval> results,
                                               std::span<const Aval> operands, CallSite where) {
  RecordingScope scope({.kind = ScopeKind::linear, .transform = "vt::custom_vjp"});
  std::vector<Tensor> cotangents;
  std::size_t linear = 0;
  for (const Aval& a : results) {
    cotangents.push_back(is_inexact(a.dtype) ? scope.input(Aval(a.dtype, a.shape)) : Tensor());
    linear += is_inexact(a.dtype);
  }
  const std::vector<Tensor> backward =
      run_backward(rule, residuals, cotangents, results, operands, where);
  std::vector<Tensor> numbers, number_tangents;
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (!backward[i].defined() || !tangents[i].defined()) continue;
    numbers.push_back(backward[i]);
    number_tangents.push_back(tangents[i]);
  }
  cotangents.clear();
  const Recorded recorded = scope.finish(numbers);
  const std::vector<Tensor> pulled =
      transpose_graph(recorded.graph, linear, recorded.captured, number_tangents);
  std::vector<Tensor> all;
  std::size_t next = 0;
  for (const Aval& a : results) all.push_back(is_inexact(a.dtype) ? pulled[next++] : Tensor());
  return all;
}

}  // namespace structure_parts

namespace structure_parts {

/// Of an equation that knows its derivatives itself.
inline void own_derivative(const JvpCall& c, std::vector<Tensor>& results,
                           std::vector<Tensor>& tangents) {
  const auto& p = c.as<CallParams>();
  const std::size_t count = p.explicit_operands;
  const std::span<const Tensor> x = c.x.first(count), t = c.t.first(count);
  if (c.mode == JvpMode::forward) {
    const std::vector<Tensor> out = p.rule->own->forward(x, t);
    const auto middle = out.begin() + static_cast<std::ptrdiff_t>(c.equation.outputs.size());
    results.assign(out.begin(), middle);
    tangents.assign(middle, out.end());
    return;
  }
  Vec<bool> wanted;
  for (const Tensor& tangent : t) wanted.push_back(tangent.defined());
  Linearization l = p.rule->own->linearize(x, wanted);
  results = std::move(l.results);
  const Vec<Aval> avals = avals_of({results.data(), l.tangents});
  tangents =
      emit_linear_call({p.rule->name, std::move(l.push), std::move(l.pull), std::move(l.residuals)},
                       t, avals, c.equation.where);
  tangents.resize(results.size());
}

}  // namespace structure_parts

void custom_vjp(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const auto& p = c.as<CallParams>();
  if (p.rule->own) return own_derivative(c, results, tangents);
  refuse_captured(c);
  const std::size_t explicit_count = p.explicit_operands;
  const std::span<const Tensor> primals = c.x.first(explicit_count),
                                given = c.t.first(explicit_count);
  const CallSite where = c.equation.where;
  Vec<Aval> wanted, operands = avals_of(primals);
  for (Var v : p.body->outputs) wanted.push_back(p.body->aval(v));

  std::vector<Tensor> out;
  {
    WhereScope own_lines(CallSite{});
    out = p.rule->forward(primals);
  }
  if (out.size() < wanted.size())
    need_count("forward function", *p.rule, out.size(), wanted.size(), where);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    results.push_back(checked("forward function", *p.rule, out[i], wanted[i], i, where));
  std::vector<Tensor> residuals(out.begin() + static_cast<std::ptrdiff_t>(wanted.size()),
                                out.end());

  auto push = [rule = p.rule, wanted, operands, where](std::span<const Tensor> saved,
                                                       std::span<const Tensor> in) {
    return transposed_backward(*rule, saved, in, wanted, operands, where);
  };
  if (c.mode == JvpMode::forward) {
    tangents = push(residuals, given);
    return;
  }
  auto pull = [rule = p.rule, wanted, operands, where](std::span<const Tensor> saved,
                                                       std::span<const Tensor> in) {
    return run_backward(*rule, saved, in, wanted, operands, where);
  };
  tangents =
      emit_linear_call({p.rule->name, push, pull, std::move(residuals)}, given, wanted, where);
}

// Nobody knows what the host does. Results that are no numbers have no derivative anyway.
void callback(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>&) {
  const auto& p = c.as<CallbackParams>();
  for (const Aval& a : p.results)
    if (is_inexact(a.dtype))
      fail(ErrorKind::transform,
           p.function->name +
               " has no derivative; use vt::stop_gradient on its arguments, or give it a rule with "
               "vt::custom_jvp or vt::custom_vjp",
           c.equation.where);
  const SmallVec<Tensor, 1> out = emit_all(Op::callback, c.equation.params, c.x, c.equation.where);
  results.assign(out.begin(), out.end());
}

}  // namespace vt::detail::jvp_rules
