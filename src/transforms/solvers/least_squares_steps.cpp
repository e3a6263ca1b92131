// The steps of least_squares: Levenberg and Marquardt's method as a loop, which evaluates the
// residuals and their Jacobian once for each step that is tried.
#include <cmath>

#include <vt/control.hpp>
#include <vt/linalg.hpp>

#include "fit_problem.hpp"
#include "solver_numbers.hpp"

namespace vt::detail::fitting {

using namespace solver_parts;

// The scale of a parameter is the greatest square of its column of J so far, but never more than so
// many times what it is now: a start where a column was enormous does not hold it for ever.
constexpr double memory = 1e8;
// A step that damping of so many times a column's square made short does not tell of convergence.
constexpr double most_damped = 100;
constexpr double good_enough = 1e-4;  // of what the model said, to accept a step
// A step within this part of what the model said does without acceleration next time.
constexpr double as_said = 0.25;
constexpr double most_curved = 1.5;  // Transtrum and Sethna's α
constexpr double rescue = 1e-3;      // where Gauss–Newton begins to damp

/// What a step is computed from: JᵀJ [n, n] and Jᵀr [n]; or the triangle of J [k, n] and Qᵀr [k].
struct System {
  Tensor matrix, right;
};

/// The system at one place with its damping.
class Damped {
 public:
  Damped(const Problem& p, const System& s, const Tensor& scale, const Tensor& damping,
         const std::optional<Tensor>& held)
      : p_(p), unit_(1.0 / vt::sqrt(scale)) {
    const Tensor one = vt::eye(p.n, p.dtype);
    Tensor rest = one * damping;
    if (held) {  // a row of its own, without an effect on the others
      unit_ = vt::where(*held, p.number(0), unit_);
      rest = rest + vt::diag(held->astype(p.dtype));
    }
    if (p.options.method == LeastSquaresMethod::normal_equations) {
      const Tensor scaled =
          s.matrix * vt::expand_dims(unit_, Axes{0}) * vt::expand_dims(unit_, Axes{1});
      factor_ = vt::linalg::cholesky(scaled + rest);
    } else {
      if (held) rest = vt::where(vt::expand_dims(*held, Axes{0}), one, vt::sqrt(damping) * one);
      else rest = vt::sqrt(damping) * one;
      const vt::linalg::QrResult qr =
          vt::linalg::qr(vt::concatenate({s.matrix * vt::expand_dims(unit_, Axes{0}), rest}, 0));
      orthogonal_ = grad_build::slice_axis(qr.q, 0, 0, s.matrix.shape()[0]);
      factor_ = qr.r;
    }
  }
  /// The half of the solution of the system: its square is what the linear model gains.
  Tensor half(const System& s) const {
    if (p_.options.method == LeastSquaresMethod::normal_equations) return half_of_gradient(s.right);
    return -vt::matmul(s.right, orthogonal_);
  }
  /// The same with Jᵀr given.
  Tensor half_of_gradient(const Tensor& gradient) const {
    const bool lower = p_.options.method == LeastSquaresMethod::normal_equations;
    return vt::linalg::solve_triangular(factor_, -(gradient * unit_), lower ? 0 : 1, lower);
  }
  /// In units of the scale.
  Tensor whole(const Tensor& half) const {
    return p_.options.method == LeastSquaresMethod::normal_equations
               ? vt::linalg::solve_triangular(factor_, half, 1, true)
               : vt::linalg::solve_triangular(factor_, half, 0, false);
  }
  const Tensor& unit() const { return unit_; }

 private:
  const Problem& p_;
  Tensor unit_, factor_, orthogonal_;
};

System system_of(const Problem& p, const Tensor& jacobian, const Tensor& residuals) {
  if (p.options.method == LeastSquaresMethod::normal_equations) {
    const Tensor transposed = vt::transpose(jacobian);
    return {vt::matmul(transposed, jacobian), vt::matmul(transposed, residuals)};
  }
  const vt::linalg::QrResult qr = vt::linalg::qr(jacobian);
  return {qr.r, vt::matmul(residuals, qr.q)};
}
Tensor gradient_of(const Problem& p, const System& s) {
  return p.options.method == LeastSquaresMethod::normal_equations ? s.right
                                                                  : vt::matmul(s.right, s.matrix);
}
/// The squares of J's columns.
Tensor squares_of(const Problem& p, const System& s) {
  return p.options.method == LeastSquaresMethod::normal_equations ? vt::diagonal(s.matrix)
                                                                  : vt::sum(s.matrix * s.matrix, 0);
}

/// What the loop carries.
struct State {
  Tensor runs, evaluations;  ///< i64[]
  Tensor reason;             ///< i32[], negative while it goes on
  Tensor damping, growth;    ///< float[]; by which factor the next bad step raises it
  Tensor rejected;           ///< bool[]: the last step was not accepted
  Tensor good;               ///< bool[]: the last step was as the model said, or there was none
  Tensor usable;             ///< bool[]: the trial is one
  Tensor undamped;           ///< bool[]: so short a step, if it is, tells of convergence
  Tensor short_step;         ///< bool[]: the trial is within xtol
  Tensor value, gain;        ///< float[]; what the model says of the trial
  Tensor scale, step;        ///< [n]; from the point to the trial
  System system;
  std::vector<Tensor> point, trial;

  static constexpr std::size_t numbers = 16;
  std::vector<Tensor> all() const {
    std::vector<Tensor> out{runs,  evaluations, reason,        damping,     growth, rejected,
                            good,  usable,      undamped,      short_step,  value,  gain,
                            scale, step,        system.matrix, system.right};
    out.insert(out.end(), point.begin(), point.end());
    out.insert(out.end(), trial.begin(), trial.end());
    return out;
  }
  static State of(std::span<const Tensor> c) {
    const std::span<const Tensor> points = c.subspan(numbers);
    const std::size_t half = points.size() / 2;
    return {c[0],
            c[1],
            c[2],
            c[3],
            c[4],
            c[5],
            c[6],
            c[7],
            c[8],
            c[9],
            c[10],
            c[11],
            c[12],
            c[13],
            {c[14], c[15]},
            {points.begin(), points.begin() + static_cast<std::ptrdiff_t>(half)},
            {points.begin() + static_cast<std::ptrdiff_t>(half), points.end()}};
  }
};

Tensor same(std::span<const Tensor> a, std::span<const Tensor> b) {
  Tensor all;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor leaf = vt::all(a[i] == b[i]);
    all = all.defined() ? all & leaf : leaf;
  }
  return all;
}

struct Tolerances {
  double f, x, g;
  Tolerances(const LeastSquaresOptions& o, DType precision) {
    const bool wide = precision == f64;
    f = o.ftol ? double(*o.ftol) : wide ? 1e-18 : 1e-9;
    x = o.xtol ? double(*o.xtol) : wide ? 1e-10 : 1e-5;
    g = o.gtol ? double(*o.gtol) : wide ? 1e-12 : 1e-5;
  }
};

class Steps {
 public:
  explicit Steps(const Problem& problem)
      : p(problem), tolerance(p.options, p.precision), epsilon(step_at(p.precision, 1)) {}

  State begin(std::span<const Tensor> start) const {
    State s;
    s.runs = s.evaluations = count(0);
    s.reason = reason_number(going_on);
    s.damping = p.number(p.options.damping);
    s.growth = p.number(2);
    s.rejected = s.good = s.undamped = s.short_step = flag(false);
    s.usable = flag(true);
    s.value = s.gain = p.number(0);
    s.scale = s.step = p.zeros();
    const bool normal = p.options.method == LeastSquaresMethod::normal_equations;
    const std::int64_t rows = normal ? p.n : std::min(p.m, p.n);
    s.system = {grad_build::zeros(Aval(p.dtype, Shape{rows, p.n})),
                grad_build::zeros(Aval(p.dtype, Shape{rows}))};
    s.point = s.trial = projected(start);
    return s;
  }

  /// Evaluates the trial, takes or leaves it, and finds the next.
  State next(const State& now) const {
    State s = judged(now);
    propose(s);
    s.runs = now.runs + 1;
    const Tensor enough = s.runs > std::int64_t(p.options.max_iterations);
    end(s, enough, StopReason::max_iterations);
    return s;
  }

 private:
  const Problem& p;
  const Tolerances tolerance;
  const double epsilon;

  std::vector<Tensor> projected(std::span<const Tensor> point) const {
    std::vector<Tensor> out(point.begin(), point.end());
    if (p.lower) out[0] = vt::maximum(out[0], *p.lower);
    if (p.upper) out[0] = vt::minimum(out[0], *p.upper);
    if (p.free && !p.moved_by_user()) out[0] = vt::where(*p.free, out[0], point[0]);
    return out;
  }
  static void end(State& s, const Tensor& when, StopReason why) {
    s.reason = ended(s.reason, when, why);
  }
  static Tensor length(const Tensor& v) { return vt::sqrt(dot(v, v)); }

  State judged(const State& now) const {
    State s = now;
    const Tensor first = now.runs == 0;
    const Linearized at = p.linearized(now.trial, least_row);
    const System system = system_of(p, at.jacobian, at.residuals);
    const Tensor finite = vt::isfinite(at.value) & vt::all(vt::isfinite(system.matrix)) &
                          vt::all(vt::isfinite(system.right));
    // The gain; of values that differ too little it is taken from the slopes at both ends.
    const Tensor before = gradient_of(p, now.system), gradient = gradient_of(p, system);
    Tensor gain = now.value - at.value;
    gain = vt::where(vt::abs(gain) <= std::sqrt(epsilon) * now.value,
                     -0.5 * dot(before + gradient, now.step), gain);
    const Tensor some = now.gain > 0.0;
    const Tensor ratio =
        vt::where(some, gain / vt::where(some, now.gain, p.number(1)), p.number(-1));
    const Tensor accepted = now.usable & finite & (first | (ratio > good_enough)),
                 moved = accepted & !first;
    s.evaluations = now.evaluations + 1;
    s.point = chosen(accepted, now.trial, now.point);
    s.system = {vt::where(accepted, system.matrix, now.system.matrix),
                vt::where(accepted, system.right, now.system.right)};
    s.value = vt::where(accepted, at.value, now.value);
    const Tensor squares = squares_of(p, system);
    const Tensor kept =
        vt::where(squares > 0.0, vt::minimum(now.scale, memory * squares), now.scale);
    s.scale = vt::where(accepted, vt::maximum(kept, squares), now.scale);
    s.scale = vt::where(s.scale > 0.0, s.scale, vt::ones_like(s.scale));
    const Tensor good_before = !now.rejected;
    s.good = accepted & (first | (good_before & (vt::abs(ratio - 1.0) <= as_said)));
    s.rejected = !accepted;
    damp(s, now, ratio, accepted, moved);

    end(s, first & !accepted, StopReason::not_finite);
    end(s, accepted & (at.value == 0.0), StopReason::gtol);  // nothing is less
    if (tolerance.g > 0) {
      Tensor small =
          vt::abs(gradient) <= tolerance.g * vt::sqrt(squares) * vt::sqrt(2.0 * at.value);
      if (p.bounded()) small = small | *p.held(s.point[0], gradient);
      end(s, accepted & vt::all(small), StopReason::gtol);
    }
    if (tolerance.f > 0) {
      const Tensor most = tolerance.f * now.value;
      end(s, moved & now.undamped & (now.gain <= most) & (gain <= most), StopReason::ftol);
    }
    // Also where rounding alone keeps so short a step from lowering the value.
    if (tolerance.x > 0)
      end(s, finite & (now.runs > 0) & now.usable & now.undamped & now.short_step,
          StopReason::xtol);
    end(s, s.damping > 1 / (epsilon * epsilon), StopReason::small_step);
    return s;
  }

  /// Nielsen's rule.
  void damp(State& s, const State& now, const Tensor& ratio, const Tensor& accepted,
            const Tensor& moved) const {
    const bool newton = p.options.damping == 0.0;
    const Tensor raised =
        newton ? vt::maximum(now.damping * now.growth, p.number(rescue)) : now.damping * now.growth;
    const Tensor off = 2.0 * ratio - 1.0;
    Tensor lowered = now.damping * vt::maximum(1.0 - off * off * off, p.number(1.0 / 3));
    if (newton) lowered = vt::where(lowered < rescue / 1000, p.number(0), lowered);
    else lowered = vt::maximum(lowered, p.number(epsilon / 256));
    s.damping = vt::where(accepted, vt::where(moved, lowered, now.damping), raised);
    s.growth = vt::where(accepted, p.number(2), 2.0 * now.growth);
  }

  /// Finds the next trial.
  void propose(State& s) const {
    const Tensor gradient = gradient_of(p, s.system);
    std::optional<Tensor> held;
    if (p.bounded()) held = p.held(s.point[0], gradient);
    const Damped system(p, s.system, s.scale, s.damping, held);
    const Tensor half = system.half(s.system), units = system.whole(half);
    Tensor step = units * system.unit();
    const Tensor length_of_step = dot(units, units);
    Tensor usable = vt::all(vt::isfinite(step));
    step = vt::where(usable, step, p.zeros());
    // The linear model gains ½ |half|² + ½ damping |units|² by the step.
    Tensor gain = 0.5 * dot(half, half) + 0.5 * s.damping * length_of_step;
    Tensor whole = step;
    if (p.options.acceleration) {
      const Tensor bent = usable & !s.good & (s.reason < 0);
      const Tensor bend = accelerated(s, system, step, bent);
      const Tensor fits = 4.0 * dot(bend, bend) <= most_curved * most_curved * length_of_step;
      usable = usable & (fits | !bent);
      whole = vt::where(fits, step + 0.5 * (bend * system.unit()), step);
      s.evaluations = s.evaluations + bent.astype(i64);
    }
    s.trial = p.moved(s.point, whole);
    if (p.bounded()) {
      s.trial = projected(s.trial);
      whole = s.trial[0] - s.point[0];
      // The model along the part of the step that is left.
      const Tensor linear = projected(p.moved(s.point, step))[0] - s.point[0];
      const Tensor product = vt::matmul(s.system.matrix, linear);
      const Tensor square = p.options.method == LeastSquaresMethod::normal_equations
                                ? dot(product, linear)
                                : dot(product, product);
      gain = -dot(gradient, linear) - 0.5 * square;
    } else if (!p.moved_by_user()) {
      whole = s.trial[0] - s.point[0];
    }
    s.trial = chosen(usable, s.trial, s.point);
    const Tensor still = same(s.trial, s.point);
    end(s, usable & still & s.rejected, StopReason::small_step);
    end(s, usable & still, StopReason::xtol);
    s.step = whole;
    s.gain = gain;
    s.usable = usable;
    const Tensor squares = squares_of(p, s.system);
    Tensor light = (s.damping * s.scale <= most_damped * squares) | (squares == 0.0);
    if (held) light = light | *held;
    s.undamped = vt::all(light);
    s.short_step = is_short(s, squares == 0.0);
  }
  /// Is the step within xtol? `idle`: parameters that change nothing.
  Tensor is_short(const State& s, const Tensor& idle) const {
    // What the step and the parameters change in the residuals, by the linear model.
    const Tensor lengths = vt::sqrt(s.scale), change = lengths * vt::abs(s.step);
    Tensor most = p.number(1);
    if (p.moved_by_user()) {
      for (const Tensor& t : s.trial) most = vt::maximum(most, vt::max(vt::abs(t)).astype(p.dtype));
    } else {
      most = vt::abs(s.trial[0]);
    }
    const Tensor own = lengths * most, sum = length(vt::where(idle, p.number(0), own));
    const Tensor bound = tolerance.x * vt::maximum(own, vt::sqrt(2.0 * s.value));
    // What is less than the rounding errors of all together can become no smaller.
    return vt::all((change <= vt::maximum(bound, epsilon * sum)) | idle);
  }

  /// Transtrum and Sethna's acceleration, in units of the scale, where it is wanted: else 0.
  Tensor accelerated(const State& s, const Damped& system, const Tensor& step,
                     const Tensor& wanted) const {
    std::vector<Tensor> operands(s.point);
    operands.push_back(step);
    const Tensor right = cond_flat(
        wanted,
        [&](std::span<const Tensor> in) {
          const std::span<const Tensor> point = in.first(in.size() - 1);
          return std::vector<Tensor>{p.curvature(point, in.back())};
        },
        [&](std::span<const Tensor>) { return std::vector<Tensor>{p.zeros()}; }, operands,
        p.call)[0];
    return system.whole(system.half_of_gradient(right));
  }
};

std::vector<Tensor> steps(const Problem& p, std::span<const Tensor> start) {
  const Steps method(p);
  const State last = State::of(while_flat(
      [&](std::span<const Tensor> c) {
        return std::vector<Tensor>{State::of(c).reason == going_on};
      },
      [&](std::span<const Tensor> c) { return method.next(State::of(c)).all(); },
      method.begin(start).all(), {}, p.call));
  std::vector<Tensor> result = last.point;
  result.push_back(last.runs - 1);
  result.push_back(last.evaluations);
  result.push_back(last.reason);
  return result;
}

}  // namespace vt::detail::fitting
