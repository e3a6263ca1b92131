// least_squares and curve_fit: the solution of a fit with its derivatives, which come from the
// condition that the gradient is 0, and its covariance.
#include <algorithm>
#include <limits>

#include <vt/linalg.hpp>
#include <vt/solvers.hpp>

#include "../distributed/outside.hpp"
#include "fit_problem.hpp"
#include "solver_numbers.hpp"

namespace vt::detail {

namespace fitting {

using namespace solver_parts;

/// What is 0 at the solution, as a function of delta from a point near it.
Tensor condition(const Problem& p, std::span<const Tensor> near, const Tensor& delta) {
  const std::vector<Tensor> point = p.moved(near, delta);
  Tensor zero = p.gradient(point);
  if (p.moved_by_user()) return p.free ? vt::where(*p.free, zero, delta) : zero;
  const Tensor x = point[0];
  if (p.bounded()) {
    const Tensor at = vt::stop_gradient(x), slope = vt::stop_gradient(zero);
    if (p.lower) zero = vt::where((at <= *p.lower) & (slope > 0.0), x - *p.lower, zero);
    if (p.upper) zero = vt::where((at >= *p.upper) & (slope < 0.0), x - *p.upper, zero);
  }
  if (p.free) zero = vt::where(*p.free, zero, x - p.point_of(p.guess())[0]);
  return zero;
}

Fitted fitted(const Problem& p) {
  // First where it is, without a derivative; then the move from there, 0, with its own.
  const std::vector<Tensor> guess = p.point_of(p.guess());
  const std::vector<Tensor> found = root_flat(
      [](std::span<const Tensor> x) { return std::vector<Tensor>(x.begin(), x.end()); }, guess,
      [&](const FlatFunction&, std::span<const Tensor> start) { return steps(p, start); }, {},
      p.call.name, p.call.where);
  std::vector<Tensor> near;
  for (std::size_t i = 0; i < guess.size(); ++i) near.push_back(vt::stop_gradient(found[i]));
  const Tensor zeros = p.zeros();
  const std::vector<Tensor> delta = root_flat(
      [&](std::span<const Tensor> d) { return std::vector<Tensor>{condition(p, near, d[0])}; },
      {&zeros, 1},
      [](const FlatFunction&, std::span<const Tensor> d) {
        return std::vector<Tensor>(d.begin(), d.end());
      },
      {}, p.call.name, p.call.where);
  const std::size_t k = guess.size();
  return {p.moved(near, delta[0]), found[k], found[k + 1], found[k + 2]};
}

FitFlat result_of(const Problem& p, const Fitted& f) {
  FitFlat out;
  out.x = p.leaves_of(f.point);
  out.value = p.value(p.residuals(f.point));
  out.iterations = f.iterations;
  out.evaluations = f.evaluations;
  out.converged = below(f.reason, StopReason::max_iterations);
  out.reason = f.reason;
  return out;
}

}  // namespace fitting

FitFlat least_squares_flat(const FlatFunction& residuals, std::span<const Tensor> guess,
                           const FlatFunction& plus, std::int64_t dimension,
                           const LeastSquaresOptions& options, const FitCall& fit) {
  const UserLine line(fit.call.where);
  const fitting::Problem p(residuals, guess, plus, dimension, options, fit);
  need_whole(residuals, guess, fit.call.name, fit.call.where);
  return fitting::result_of(p, fitting::fitted(p));
}

void check_points(std::span<const Tensor> x, const Tensor& y, const FitCall& fit) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::shape, std::string(fit.call.name) + ": " + what, fit.call.where);
  };
  if (!y.defined() || y.rank() == 0)
    refuse("y holds the points along axis 0, but is " +
           (y.defined() ? aval_of(y).str() : std::string("an empty Tensor")));
  for (const Tensor& t : x)
    if (!t.defined() || t.rank() == 0 || t.shape()[0] != y.shape()[0])
      refuse(formatted("x and y hold the points along axis 0, but a leaf of x is {} and y is {}",
                       t.defined() ? aval_of(t).str() : std::string("an empty Tensor"),
                       aval_of(y).str()));
}

Tensor model_at(std::span<const Tensor> parameters, std::span<const Tensor> point,
                FunctionRef<Tensor()> model) {
  try {
    return model();
  } catch (const Error& e) {
    const auto names = [](std::span<const Tensor> leaves) {
      std::string all;
      for (const Tensor& t : leaves) all += (all.empty() ? "" : ", ") + aval_of(t).str();
      return all;
    };
    throw Error(e.kind(), formatted("{}; in the model of vt::curve_fit, which is given the "
                                    "parameters first, {}, and then one point, {}",
                                    e.what(), names(parameters), names(point)));
  }
}

FitFlat curve_fit_flat(const FlatFunction& model, const Tensor& y, std::span<const Tensor> guess,
                       const CurveFitOptions& options, const FitCall& fit) {
  using namespace fitting;
  const UserLine line(fit.call.where);
  const auto refuse = [&](ErrorKind kind, const std::string& what) {
    fail(kind, std::string(fit.call.name) + ": " + what, fit.call.where);
  };
  if (options.sigma) {
    const Tensor& sigma = *options.sigma;
    if (!sigma.defined()) refuse(ErrorKind::value, "sigma is an empty Tensor");
    if (sigma.rank() > 0 && sigma.shape() != y.shape())
      refuse(ErrorKind::shape,
             formatted("sigma is {}; it must be a number or of the shape of y, {}",
                       aval_of(sigma).str(), aval_of(y).str()));
  }
  const FlatFunction residuals = [&](std::span<const Tensor> parameters) {
    const Tensor given = model(parameters)[0];
    if (given.shape() != y.shape())
      refuse(ErrorKind::shape, formatted("the model gives {} at all points where y is {}",
                                         aval_of(given).str(), aval_of(y).str()));
    Tensor r = given - y;
    if (options.sigma) r = r / *options.sigma;
    return std::vector<Tensor>{r};
  };
  const Problem p(residuals, guess, {}, 0, options.solver, fit);
  need_whole(residuals, guess, fit.call.name, fit.call.where);
  const Fitted f = fitted(p);
  FitFlat out = result_of(p, f);

  // (JᵀJ)⁻¹ = R⁻¹ R⁻ᵀ of J with columns of length 1.
  const Linearized at = p.linearized(f.point, 0);
  const Tensor one = vt::eye(p.n, p.dtype);
  Tensor lengths = vt::sqrt(vt::sum(at.jacobian * at.jacobian, 0));
  Tensor parameters = p.number(static_cast<double>(p.n)), jacobian = at.jacobian;
  if (p.free) {
    lengths = vt::where(*p.free, lengths, p.number(1));
    parameters = vt::sum(p.free->astype(p.dtype));
  }
  const Tensor points = p.number(static_cast<double>(p.m));
  const Tensor some = vt::where(lengths > 0.0, lengths, p.number(1));
  jacobian = jacobian / vt::expand_dims(some, Axes{0});
  if (p.free)  // rows for what has none
    jacobian = vt::concatenate({jacobian, vt::where(*p.free, p.number(0), one)}, 0);
  else if (p.m < p.n)
    jacobian =
        vt::concatenate({jacobian, grad_build::zeros(Aval(p.dtype, Shape{p.n - p.m, p.n}))}, 0);
  const Tensor r = vt::linalg::qr(jacobian).r;
  const Tensor values = vt::linalg::svdvals(vt::stop_gradient(r));
  const double least = step_at(p.precision, 1) * static_cast<double>(std::max(p.m, p.n));
  Tensor regular = vt::min(values) > least * vt::max(values);
  if (!options.absolute_sigma) regular = regular & (points > parameters);
  const Tensor inverse = vt::linalg::solve_triangular(vt::where(regular, r, one), one);
  Tensor covariance = vt::matmul(inverse, vt::transpose(inverse)) /
                      (vt::expand_dims(some, Axes{0}) * vt::expand_dims(some, Axes{1}));
  if (!options.absolute_sigma)
    covariance = covariance * (2.0 * out.value / vt::maximum(points - parameters, p.number(1)));
  const Tensor infinite = p.number(std::numeric_limits<double>::infinity());
  covariance = vt::where(regular, covariance, infinite);
  if (p.free)
    covariance = vt::where(vt::expand_dims(*p.free, Axes{0}) & vt::expand_dims(*p.free, Axes{1}),
                           covariance, p.number(0));
  const Tensor variances = vt::diagonal(covariance), positive = variances > 0.0;
  const Tensor errors =  // √ has no derivative at 0
      vt::where(positive, vt::sqrt(vt::where(positive, variances, p.number(1))), variances);
  out.standard_errors = p.leaves_of(std::vector<Tensor>{errors});
  out.covariance = covariance;
  out.reason = vt::where(out.converged & !regular, Tensor(static_cast<int>(StopReason::singular)),
                         out.reason);
  out.converged = out.converged & regular;
  return out;
}

}  // namespace vt::detail
