// One step of odeint: a trial by the method, its error, and the size of the next.
#include "ode_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <vt/linalg.hpp>

#include "../../trace/ops/support/operands.hpp"
#include "../grad/build.hpp"
#include "../grad/jvp.hpp"
#include "../vmap/batch.hpp"
#include "ode_tableaus.hpp"

namespace vt::detail::ode {

namespace step_parts {

// The controller of Hairer, Nørsett and Wanner II.4 for errors of order 5: the next step is longer
// by 0.9 · error^−0.17 · (the error before)^0.04, within these bounds.
constexpr double by_error = 0.17, by_error_before = 0.04;
constexpr double shortest = 0.2, longest = 10, least_error = 1e-4;

Tensor count(std::int64_t n) { return full_tensor(Scalar(n), Aval(i64, Shape{})); }
Tensor reason(StopReason r) {
  return full_tensor(Scalar(static_cast<std::int32_t>(r)), Aval(i32, Shape{}));
}
Tensor number(const Problem& p, double x) { return grad_build::scalar(p.dtype, x); }
double epsilon(const Problem& p) {
  return p.dtype == f64 ? std::numeric_limits<double>::epsilon() : step_at(p.dtype, 1.0);
}
/// Of the error of a step, relative to y.
double rounding(const Problem& p) {
  return (p.method == OdeMethod::rodas5p ? 200 : 10) * epsilon(p);
}

/// Σ factors[j] · terms[j]; undefined where all factors are 0.
template <class Factors>
Tensor combined(const Factors& factors, std::span<const Tensor> terms) {
  Tensor sum;
  for (std::size_t j = 0; j < std::min(factors.size(), terms.size()); ++j) {
    if (factors[j] == 0) continue;
    const Tensor term = factors[j] == 1 ? terms[j] : terms[j] * factors[j];
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}
Tensor is_finite(const Tensor& x) { return vt::all(vt::isfinite(x)); }
/// The mean of (x / scale)², x an error or a slope at y.
Tensor mean_square(const Tensor& x, const Tensor& scale) {
  return vt::sum(vt::square(x * (1.0 / scale))) *
         (1.0 / static_cast<double>(std::max<std::int64_t>(x.size(), 1)));
}
/// The least positive number that there is use for.
double tiny(const Problem& p) { return p.dtype == f64 ? 1e-300 : 1e-36; }
/// What errors are measured by.
Tensor scale_at(const Problem& p, const Tensor& magnitude) {
  const Tensor scale = p.atol + vt::maximum(p.rtol, number(p, 5 * rounding(p))) * magnitude;
  const std::optional<double> atol = known_number(p.atol);
  return atol && *atol > 0 ? scale : vt::maximum(scale, number(p, tiny(p)));
}

/// The square of an error's norm. What rounding alone can make of the error is its least value, so
/// that steps do not follow rounding: a way back that runs steps again must take the same.
Tensor judged(const Problem& p, const Tensor& error, const Tensor& y, const Tensor& y_new) {
  const Tensor magnitude = vt::stop_gradient(vt::maximum(vt::abs(y), vt::abs(y_new)));
  const Tensor least = magnitude * rounding(p);
  return mean_square(vt::maximum(vt::abs(vt::stop_gradient(error)), least), scale_at(p, magnitude));
}

/// The smallest step at t.
Tensor smallest(const Problem& p, const Tensor& t) {
  const double least = std::max(p.h_min, tiny(p));
  return vt::maximum(vt::abs(t) * (10 * epsilon(p)), number(p, least));
}
Tensor bounded(const Problem& p, const Tensor& h, const Tensor& t) {
  const Tensor above = vt::maximum(h, smallest(p, t));
  return p.h_max > 0 ? vt::minimum(above, number(p, p.h_max)) : above;
}

/// What a method makes of a step of size h, with its sign, from t to t_new.
struct Trial {
  Tensor y, slope;
  Tensor square;  ///< of the error's norm; NaN where the trial is of no use
  Tensor change;
  std::vector<Tensor> r;  ///< as in Between
};

Trial explicit_trial(const Problem& p, const RungeKutta& method, const State& s, const Tensor& h,
                     const Tensor& t_new) {
  std::vector<Tensor> k{s.slope};
  Trial out;
  for (std::size_t i = 1; i < method.a.size(); ++i) {
    const Tensor change = combined(method.a[i], k) * h;
    const Tensor y = s.y + change;
    k.push_back(p.f(method.c[i] == 1 ? t_new : s.t + h * method.c[i], y));
    if (i + 1 == method.a.size()) {
      out.y = y;
      out.change = change;
    }
  }
  out.slope = k.back();
  if (method.error.empty()) {
    out.square = vt::where(is_finite(out.y) & is_finite(out.slope), 0.0,
                           std::numeric_limits<double>::quiet_NaN());
  } else {
    out.square = judged(p, combined(method.error, k) * h, s.y, out.y);
  }
  // With the slopes at both ends: r₀ + θ r₁ is the cubic polynomial; θ² (1 − θ)² m adds
  // θ (1 − θ) (θ m − θ² m).
  const Tensor bend = s.slope * h - out.change, other = out.change - out.slope * h - bend;
  out.r = {bend, other};
  if (!method.between.empty()) {
    const Tensor more = combined(method.between, k) * h;
    out.r = {bend, other + more, -more};
  }
  return out;
}

/// ∂f/∂y and ∂f/∂t; the second is undefined where f is not seen to depend on t.
struct Slopes {
  Tensor by_y, by_t;
};
Slopes slopes_at(const Problem& p, const Tensor& t, const Tensor& y) {
  std::vector<Tensor> primals{t, y};
  primals.insert(primals.end(), p.captured.begin(), p.captured.end());
  const auto along = [&](const Tensor& of_t, const Tensor& of_y) {
    std::vector<Tensor> directions{of_t, of_y};
    directions.resize(primals.size());
    return jvp_graph(*p.graph, primals, directions).tangents[0];
  };
  Slopes out;
  out.by_t = along(number(p, 1), {});
  const std::int64_t n = y.size();
  const Tensor basis = vt::eye(n, p.dtype);
  const Batched rows{basis, 0};
  const Batched columns = batch_function(
      [&](std::span<const Tensor> v) {
        const Tensor column = along({}, v[0]);
        return std::vector<Tensor>{column.defined() ? column : grad_build::zeros_like(y)};
      },
      std::span<const Batched>(&rows, 1), n, "vt::odeint")[0];
  out.by_y = columns.value;
  if (!columns.axis) out.by_y = grad_build::in_dim(out.by_y, Shape{n, n}, Axes{0});
  else if (*columns.axis == 0) out.by_y = grad_build::permuted(out.by_y, Axes{1, 0});
  return out;
}

Trial rosenbrock_trial(const Problem& p, const Rosenbrock& method, const State& s, const Tensor& h,
                       const Tensor& t_new) {
  const Slopes slopes = slopes_at(p, s.t, s.y);
  // One decomposition serves all stages: equal equations are merged.
  const Tensor matrix = vt::eye(s.y.size(), p.dtype) * (1.0 / (h * method.gamma)) - slopes.by_y;
  std::vector<Tensor> k;
  for (std::size_t i = 0; i < method.alpha.size(); ++i) {
    Tensor at = s.t;
    if (method.alpha[i] == 1) at = t_new;
    else if (method.alpha[i] != 0) at = s.t + h * method.alpha[i];
    Tensor right = p.f(at, i == 0 ? s.y : s.y + combined(method.a[i], k));
    if (i > 0) right = right + combined(method.c[i], k) / h;
    if (slopes.by_t.defined() && method.gamma_sum[i] != 0)
      right = right + slopes.by_t * (h * method.gamma_sum[i]);
    k.push_back(vt::linalg::solve(matrix, right));
  }
  Trial out;
  out.change = combined(method.b, k);
  out.y = s.y + out.change;
  out.square = judged(p, k.back(), s.y, out.y);
  for (const auto& factor : method.between) out.r.push_back(combined(factor, k));
  return out;
}

Trial tried(const Problem& p, const State& s, const Tensor& h, const Tensor& t_new) {
  switch (p.method) {
    case OdeMethod::rk4: return explicit_trial(p, classical(), s, h, t_new);
    case OdeMethod::dopri5: return explicit_trial(p, dormand_prince(), s, h, t_new);
    case OdeMethod::tsit5: return explicit_trial(p, tsitouras(), s, h, t_new);
    default: return rosenbrock_trial(p, rodas5p(), s, h, t_new);
  }
}
struct Judged {
  Tensor accepted;
  Trial trial;
};
/// A trial through whose steps derivatives go only where it is accepted: slopes that are NaN would
/// make NaN of cotangents that are 0. It is written twice, without derivatives first; what both
/// have in common is computed once.
Judged judged_trial(const Problem& p, const State& s, const Tensor& h, const Tensor& t_new) {
  const auto through = [&](const auto& as) {
    Problem problem = p;
    for (Tensor& t : problem.captured)
      if (is_inexact(t.dtype())) t = as(t);
    State state = s;
    state.t = as(s.t);
    state.y = as(s.y);
    if (p.carries_slope()) state.slope = as(s.slope);
    return tried(problem, state, as(h), as(t_new));
  };
  const Trial plain = through([](const Tensor& x) { return vt::stop_gradient(x); });
  const Tensor good = (plain.square <= 1.0) & is_finite(plain.y);
  return {good, through([&](const Tensor& x) { return vt::where(good, x, vt::stop_gradient(x)); })};
}

}  // namespace step_parts

Tensor Problem::f(const Tensor& t, const Tensor& y) const {
  std::vector<Tensor> operands{t, y};
  operands.insert(operands.end(), captured.begin(), captured.end());
  return replay(*graph, operands)[0];
}

std::vector<Tensor> State::leaves() const {
  std::vector<Tensor> all{t, y, h, log_error, growth, accepted, rejected, status};
  if (slope.defined()) all.push_back(slope);
  return all;
}
State::State(const Problem& p, std::span<const Tensor> l)
    : t(l[0]),
      y(l[1]),
      h(l[2]),
      log_error(l[3]),
      growth(l[4]),
      accepted(l[5]),
      rejected(l[6]),
      status(l[7]) {
  if (p.carries_slope()) slope = l[8];
}

Tensor Between::at(const Tensor& theta) const {
  Tensor inner = r.back();
  for (std::size_t i = r.size() - 1; i-- > 0;) inner = r[i] + theta * inner;
  return y + theta * (change + (1.0 - theta) * inner);
}
std::vector<Tensor> Between::leaves() const {
  std::vector<Tensor> all{t, h, y, change};
  all.insert(all.end(), r.begin(), r.end());
  return all;
}
Between Between::from(std::span<const Tensor> l) {
  return {l[0], l[1], l[2], l[3], {l.begin() + 4, l.end()}};
}
Between before_steps(const Problem& p, const Tensor& y0) {
  return {p.t0, step_parts::number(p, 1), y0, p.f(p.t0, y0),
          std::vector<Tensor>(p.method == OdeMethod::rk4 ? 2 : 3, grad_build::zeros_like(y0))};
}

State begin(const Problem& p, const Tensor& y0) {
  using namespace step_parts;
  State s;
  const Tensor slope = p.f(p.t0, y0);
  // Where there is nothing to integrate, y still has derivatives by both ends.
  const Tensor at_end = p.t0 == p.t1;
  s.t = vt::where(at_end, p.t1, p.t0);
  s.y = vt::where(at_end, y0 + (p.t1 - p.t0) * vt::where(at_end, slope, number(p, 0)), y0);
  if (p.carries_slope()) s.slope = slope;
  const Tensor length = vt::stop_gradient(vt::abs(p.t1 - p.t0));
  Tensor h = p.first_step;
  if (!h.defined()) {
    // Hairer, Nørsett and Wanner II.4: by the sizes of y, of its slope, and of the slope's change
    // over a first guess.
    const Tensor y = vt::stop_gradient(y0), k = vt::stop_gradient(slope),
                 scale = vt::stop_gradient(scale_at(p, vt::abs(y0)));
    const Tensor size = vt::sqrt(mean_square(y, scale)), speed = vt::sqrt(mean_square(k, scale));
    const Tensor guess = vt::minimum(
        vt::where((size < 1e-5) | (speed < 1e-5), number(p, 1e-6), 0.01 * size / speed), length);
    const Tensor moved =
        p.f(vt::stop_gradient(p.t0) + p.direction * guess, y + p.direction * guess * k);
    const Tensor bend = vt::sqrt(mean_square(vt::stop_gradient(moved) - k, scale)) / guess;
    const Tensor fastest = vt::maximum(speed, bend);
    const Tensor by_bend = vt::where(fastest <= 1e-15, vt::maximum(number(p, 1e-6), guess * 1e-3),
                                     vt::pow(0.01 / fastest, 1.0 / 6));
    const Tensor chosen = vt::minimum(100.0 * guess, by_bend);
    // Where f is not finite at the guess, nothing is known but that it was too far.
    h = vt::where(vt::isfinite(chosen) & (chosen > 0), chosen, 0.01 * guess);
    h = vt::where(vt::isfinite(h), h, number(p, 1e-6));
    // What stands in front of a loop is compiled in other forms for few lanes than for many: of the
    // first step no rounding of theirs shall be left.
    h = vt::reduce_precision(h, p.dtype == f64 ? 11 : 8, 12);
  }
  s.h = vt::stop_gradient(bounded(p, h, p.t0));
  s.log_error = number(p, std::log(least_error));
  s.growth = number(p, std::log(longest));
  s.accepted = s.rejected = count(0);
  const Tensor finite = is_finite(y0) & is_finite(slope) & vt::isfinite(p.t0) & vt::isfinite(p.t1);
  s.status = vt::where(finite,
                       vt::where(length > 0, full_tensor(Scalar(running), Aval(i32, Shape{})),
                                 reason(StopReason::end)),
                       reason(StopReason::not_finite));
  return s;
}

Step step(const Problem& p, const State& s) {
  using namespace step_parts;
  // The last step ends at t1 itself; a step that would end just before it is stretched.
  const Tensor remaining = vt::stop_gradient(vt::abs(p.t1 - s.t));
  Tensor last = s.h * 1.01 >= remaining;
  if (p.h_max > 0) last = last & (remaining <= number(p, p.h_max * (1 + 100 * epsilon(p))));
  const Tensor t_new = vt::where(last, p.t1, s.t + p.direction * s.h);
  const Tensor h = vt::where(last, p.t1 - s.t, p.direction * s.h);
  const Tensor tried = vt::where(last, remaining, s.h);

  const Judged judged = judged_trial(p, s, h, t_new);
  const Tensor& accepted = judged.accepted;
  const Trial& trial = judged.trial;
  const Tensor square = vt::stop_gradient(trial.square);

  Step out;
  out.accepted = accepted;
  State& next = out.next;
  const auto choose = [&](const Tensor& if_accepted, const Tensor& otherwise) {
    return vt::where(accepted, if_accepted, otherwise);
  };
  next.t = choose(t_new, s.t);
  next.y = choose(trial.y, s.y);
  if (p.carries_slope()) next.slope = choose(trial.slope, s.slope);
  const Tensor least = smallest(p, s.t);
  Tensor too_small = !accepted;
  if (p.method == OdeMethod::rk4) {
    next.h = s.h;
    next.log_error = s.log_error;
    next.growth = s.growth;
  } else {
    const Tensor log_error = 0.5 * vt::log(square);
    const Tensor factor =
        std::log(0.9) - by_error * log_error + choose(by_error_before * s.log_error, 0.0);
    const Tensor by =
        vt::where(log_error == log_error,
                  vt::clip(factor, std::log(shortest), choose(s.growth, 0.0)), std::log(shortest));
    next.h = bounded(p, tried * vt::exp(by), vt::stop_gradient(next.t));
    next.log_error = choose(vt::maximum(log_error, std::log(least_error)), s.log_error);
    next.growth = choose(number(p, std::log(longest)), number(p, 0.0));
    too_small = too_small & (tried <= least);
  }
  next.accepted = s.accepted + accepted.astype(i64);
  next.rejected = s.rejected + (!accepted).astype(i64);
  next.status = vt::where(accepted & last, reason(StopReason::end),
                          vt::where(too_small, reason(StopReason::small_step),
                                    vt::where(next.accepted + next.rejected >= p.max_steps,
                                              reason(StopReason::max_iterations), s.status)));
  out.between = {s.t, h, s.y, trial.change, trial.r};
  return out;
}

std::int64_t calls_to_begin(const Problem& p) { return p.first_step.defined() ? 1 : 2; }
std::int64_t calls_of_step(const Problem& p) {
  switch (p.method) {
    case OdeMethod::rk4: return 4;
    case OdeMethod::rodas5p: return 8;
    default: return 6;
  }
}

}  // namespace vt::detail::ode
