// minimize by Newton's method in a trust region: one loop, whose iterations each evaluate value,
// gradient and second derivative once. The step is the best of the quadratic model in the region.
#include <cmath>

#include <vt/control.hpp>
#include <vt/linalg.hpp>

#include "objective.hpp"

namespace vt::detail::minimizing {

using namespace solver_parts;

constexpr double good_enough = 1e-4;            // of what the model said, to accept a step
constexpr double shrinks = 0.25, grows = 0.75;  // at which such ratios the region does
constexpr std::int64_t rounds = 30;             // for the damping that makes a step so long

struct Region {
  Tensor runs, steps, reason;
  Tensor point, gradient, step;  ///< [n]; the trial is point + step
  Tensor hessian;                ///< [n, n]
  Tensor value, radius, gain;    ///< what the model says of the trial

  std::vector<Tensor> all() const {
    return {runs, steps, reason, point, gradient, step, hessian, value, radius, gain};
  }
  static Region of(std::span<const Tensor> c) {
    return {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]};
  }
};

class RegionSteps {
 public:
  explicit RegionSteps(const Objective& f) : f_(f) {}

  Region begin(const Tensor& start) const {
    Region s;
    s.runs = s.steps = count(0);
    s.reason = reason_number(going_on);
    s.point = start;
    s.gradient = s.step = f_.zeros(f_.n);
    s.hessian = grad_build::zeros(Aval(f_.dtype, Shape{f_.n, f_.n}));
    s.value = s.gain = f_.number(0);
    s.radius = f_.number(f_.options.initial_step);
    return s;
  }

  Region next(const Region& now) const {
    Region s = now;
    const Tensor trial = now.point + now.step;
    const Objective::WithGradient at = f_.with_gradient(trial);
    const Tensor hessian = f_.hessian(trial);
    const Tensor steepest = vt::max(vt::abs(at.gradient));
    const Tensor finite =
        vt::isfinite(at.value) & vt::isfinite(steepest) & vt::all(vt::isfinite(hessian));
    const Tensor first = now.runs == 0;
    s.runs = now.runs + 1;
    // The gain; of values that differ too little it is taken from the slopes at both ends.
    Tensor gain = now.value - at.value;
    gain = vt::where(vt::abs(gain) <= std::sqrt(f_.epsilon()) * vt::abs(now.value),
                     -0.5 * dot(now.gradient + at.gradient, now.step), gain);
    const Tensor some = now.gain > 0.0;
    const Tensor ratio =
        vt::where(some & finite, gain / vt::where(some, now.gain, f_.number(1)), f_.number(-1));
    const Tensor accepted = finite & (first | (ratio > good_enough)), moved = accepted & !first;
    s.steps = now.steps + moved.astype(i64);
    s.point = vt::where(accepted, trial, now.point);
    s.value = vt::where(accepted, at.value, now.value);
    s.gradient = vt::where(accepted, at.gradient, now.gradient);
    s.hessian = vt::where(accepted, hessian, now.hessian);
    const Tensor length = vt::sqrt(dot(now.step, now.step));
    const Tensor wider = (ratio > grows) & (length > 0.8 * now.radius);
    s.radius = vt::where(ratio < shrinks, shrinks * length,
                         vt::where(wider, 2.0 * now.radius, now.radius));
    s.radius = vt::where(first, now.radius, s.radius);

    s.reason = ended(s.reason, first & !finite, StopReason::not_finite);
    s.reason = ended(s.reason, accepted & (steepest <= f_.gtol), StopReason::gtol);
    if (f_.ftol > 0) {
      const Tensor most = f_.ftol * vt::abs(now.value);
      s.reason =
          ended(s.reason, moved & (length < 0.8 * now.radius) & (now.gain <= most) & (gain <= most),
                StopReason::ftol);
    }
    const Tensor greatest = vt::max(vt::abs(s.point));
    if (f_.xtol > 0)
      s.reason = ended(s.reason, moved & (vt::max(vt::abs(now.step)) <= f_.xtol * greatest),
                       StopReason::xtol);
    s.reason = ended(s.reason, s.steps >= std::int64_t(f_.options.max_iterations),
                     StopReason::max_iterations);
    propose(s);
    s.reason = ended(s.reason, vt::all(s.point + s.step == s.point), StopReason::small_step);
    return s;
  }

 private:
  const Objective& f_;

  /// The step that makes g·p + ½ p·H p least for |p| ≤ radius, and what it gains.
  void propose(Region& s) const {
    // Near a minimum that is mostly a whole step, for which a Cholesky factor is enough.
    const Tensor whole =
        -vt::linalg::cho_solve({vt::linalg::cholesky(s.hessian), true}, s.gradient);
    const Tensor inside = vt::all(vt::isfinite(whole)) & (dot(whole, whole) <= s.radius * s.radius);
    const std::vector<Tensor> best = cond_flat(
        inside, [&](auto) { return std::vector<Tensor>{whole, -0.5 * dot(s.gradient, whole)}; },
        [&](auto) { return bounded(s); }, {}, f_.call);
    s.step = best[0];
    s.gain = best[1];
  }
  /// The same by the eigenvalues: where there are negative ones, or the whole step is too long.
  std::vector<Tensor> bounded(const Region& s) const {
    const vt::linalg::EighResult eigen = vt::linalg::eigh(s.hessian);
    const Tensor& values = eigen.eigenvalues;
    const Tensor slopes = vt::matmul(s.gradient, eigen.eigenvectors);
    const Tensor lowest = vt::min(values), radius = s.radius;
    const Tensor greatest = vt::max(vt::abs(values)), least = f_.epsilon() * greatest;
    const auto step_by = [&](const Tensor& damping) {
      const Tensor sum = values + damping;
      const Tensor some = sum > 0.0;
      return vt::where(some, -slopes / vt::where(some, sum, f_.number(1)), f_.number(0));
    };
    const auto length = [](const Tensor& v) { return vt::sqrt(dot(v, v)); };
    // The damping with which the step is as long as the radius.
    const Tensor low = vt::maximum(-lowest, f_.number(0)),
                 high = vt::maximum(low, length(slopes) / radius - lowest);
    std::vector<Tensor> span{low, high, 0.5 * low + 0.5 * high};
    span = fori_flat(
        0, rounds,
        [&](std::span<const Tensor> c) {
          const Tensor damping = c[3], sum = values + damping, p = step_by(damping);
          const Tensor size = length(p), longer = size > radius;
          const Tensor below_it = vt::where(longer, damping, c[1]),
                       above_it = vt::where(longer, c[2], damping);
          // Newton's method on 1/|p| − 1/radius, which is nearly a line.
          const Tensor bend = vt::sum(vt::where(sum > 0.0, p * p / sum, f_.number(0)));
          const Tensor newton = damping + (size / radius - 1.0) * size * size / bend;
          const Tensor fits = (newton > below_it) & (newton < above_it);
          return std::vector<Tensor>{below_it, above_it,
                                     vt::where(fits, newton, 0.5 * below_it + 0.5 * above_it)};
        },
        span, f_.call);
    Tensor step = step_by(span[2]);
    // Where the gradient has nothing along the lowest curvature, the rest of the way goes there.
    const Tensor left = vt::maximum(radius * radius - dot(step, step), f_.number(0));
    const Tensor hard = (lowest <= least) & (left > 0.1 * radius * radius);
    const Tensor side = vt::where(slopes > 0.0, f_.number(-1), f_.number(1));
    const Tensor at_lowest = grad_build::index_along(i32, Shape{f_.n}, 0) == 0;
    step = vt::where(hard & at_lowest, step + side * vt::sqrt(left), step);
    return {vt::matmul(eigen.eigenvectors, step),
            -dot(slopes, step) - 0.5 * dot(values * step, step)};
  }
};

std::vector<Tensor> newton(const Objective& f, const Tensor& start) {
  const RegionSteps method(f);
  const Region last = Region::of(while_flat(
      [&](std::span<const Tensor> c) {
        return std::vector<Tensor>{Region::of(c).reason == going_on};
      },
      [&](std::span<const Tensor> c) { return method.next(Region::of(c)).all(); },
      method.begin(start).all(), {}, f.call));
  return {last.point, last.steps, last.runs, last.reason};
}

}  // namespace vt::detail::minimizing
