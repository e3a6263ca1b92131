// minimize: what is minimised, messages about what does not fit, and the solution with its
// derivatives, which come from the condition that the gradient is 0.
#include <cmath>

#include <vt/solvers.hpp>

#include "../distributed/outside.hpp"
#include "objective.hpp"

namespace vt::detail {

namespace minimizing {

using namespace solver_parts;

Objective::Objective(const FlatFunction& f, std::span<const Tensor> guess,
                     const MinimizeOptions& given, const FitCall& fit)
    : options(given), call(fit.call) {
  if (options.ftol) check_number(call, "ftol", *options.ftol, 0, "at least 0, which is off");
  if (options.gtol) check_number(call, "gtol", *options.gtol, 0, "at least 0, which is off");
  check_number(call, "xtol", options.xtol, 0, "at least 0, which is off");
  check_number(call, "max_iterations", static_cast<double>(std::int64_t(options.max_iterations)), 1,
               "at least 1");
  check_number(call, "history", static_cast<double>(std::int64_t(options.history)), 1,
               "at least 1");
  if (!(options.initial_step > 0) || !std::isfinite(options.initial_step))
    refuse(
        ErrorKind::value, call,
        formatted("initial_step is {}; it must be a number above 0", double(options.initial_step)));
  if (guess.empty()) refuse(ErrorKind::tree, call, "the guess holds no Tensor");
  const auto named = [&](std::size_t i) {
    return fit.paths[i].empty() ? "the parameter" : "parameter " + fit.paths[i];
  };
  Vec<Aval> avals;
  n = 0;
  for (std::size_t i = 0; i < guess.size(); ++i) {
    const Tensor& t = guess[i];
    if (!t.defined()) refuse(ErrorKind::value, call, named(i) + " of the guess is an empty Tensor");
    if (t.dtype() != f32 && t.dtype() != f64)
      refuse(ErrorKind::dtype, call,
             formatted("{} of the guess is {}; parameters are f32 or f64: {}", named(i),
                       aval_of(t).str(), instead_of(t.dtype())));
    avals.emplace_back(t.dtype(), t.shape());
    n += t.size();
    dtype = i ? promote(dtype, t.dtype()) : t.dtype();
    guess_.push_back(cast(t, t.dtype(), call.where));
  }
  if (n == 0) refuse(ErrorKind::shape, call, "the guess has no elements");
  precision = f64;
  for (const Aval& a : avals)
    if (a.dtype != f64) precision = f32;
  const FlatFunction checked = [&](std::span<const Tensor> leaves) {
    const Tensor y = f(leaves)[0];
    if (!y.defined()) refuse(ErrorKind::tree, call, "the function gives an empty Tensor");
    if (y.rank() != 0)
      refuse(ErrorKind::shape, call,
             formatted("the function gives {}; what is minimised is a scalar: write vt::sum or "
                       "vt::mean of it",
                       aval_of(y).str()));
    if (!is_float(y.dtype()))
      refuse(ErrorKind::dtype, call,
             formatted("the function gives {} where a real float is needed", aval_of(y).str()));
    if (y.dtype() != f64 && !aval_of(y).weak) precision = f32;
    return std::vector<Tensor>{cast(y, dtype, call.where)};
  };
  recorded_ = record(checked, avals,
                     {.kind = ScopeKind::branch, .transform = call.name, .where = call.where});
  const bool wide = precision == f64;
  ftol = options.ftol ? double(*options.ftol) : wide ? 1e-18 : 1e-9;
  gtol = options.gtol ? double(*options.gtol) : wide ? 1e-8 : 1e-4;
  xtol = options.xtol;
}

double Objective::epsilon() const { return step_at(precision, 1); }
Tensor Objective::point_of(std::span<const Tensor> leaves) const {
  return grad_build::convert_to(raveled(leaves), dtype);
}
std::vector<Tensor> Objective::leaves_of(const Tensor& point) const {
  return unraveled(point, guess_);
}
Tensor Objective::value(const Tensor& point) const {
  return replay(recorded_.graph, joined(leaves_of(point), recorded_.captured))[0];
}

/// What `point` alone is differentiated by.
GradCall by_point(const Tensor& point, const ControlCall& call) {
  static constexpr bool wanted[] = {true};
  GradCall g;
  g.arguments = {&point, 1};
  g.wanted = wanted;
  g.transform = call.name;
  g.where = call.where;
  return g;
}
Objective::WithGradient Objective::with_gradient(const Tensor& point) const {
  const FlatFunction f = [&](std::span<const Tensor> x) {
    return std::vector<Tensor>{value(x[0])};
  };
  try {
    GradFlat both = value_and_grad_flat(f, by_point(point, call));
    return {both.outputs[0], both.gradients[0]};
  } catch (const Error&) {  // what has no reverse mode has forward mode
    JacobianFlat both = jacobian_flat(f, by_point(point, call), JacobianMode::forward, 0);
    return {both.outputs[0], both.blocks[0][0]};
  }
}
Tensor Objective::hessian(const Tensor& point) const {
  const FlatFunction slope = [&](std::span<const Tensor> x) {
    return std::vector<Tensor>{with_gradient(x[0]).gradient};
  };
  return jacobian_flat(slope, by_point(point, call), JacobianMode::forward, 0).blocks[0][0];
}

}  // namespace minimizing

SolutionFlat minimize_flat(const FlatFunction& f, std::span<const Tensor> guess,
                           const MinimizeOptions& options, const FitCall& fit) {
  using namespace minimizing;
  const UserLine line(fit.call.where);
  const Objective objective(f, guess, options, fit);
  need_whole(f, guess, fit.call.name, fit.call.where);
  std::vector<Tensor> own;
  for (const Tensor& t : guess) own.push_back(cast(t, t.dtype(), fit.call.where));
  const Tensor start = objective.point_of(own);
  const std::vector<Tensor> found = root_flat(
      [&](std::span<const Tensor> x) {
        return std::vector<Tensor>{objective.with_gradient(x[0]).gradient};
      },
      {&start, 1},
      [&](const FlatFunction&, std::span<const Tensor> from) {
        return options.method == MinimizeMethod::l_bfgs ? l_bfgs(objective, from[0])
                                                        : newton(objective, from[0]);
      },
      {}, fit.call.name, fit.call.where);
  SolutionFlat out;
  out.x = objective.leaves_of(found[0]);
  out.value = objective.value(found[0]);
  out.iterations = found[1];
  out.evaluations = found[2];
  out.reason = found[3];
  out.converged = below(out.reason, StopReason::max_iterations);
  return out;
}

}  // namespace vt::detail
