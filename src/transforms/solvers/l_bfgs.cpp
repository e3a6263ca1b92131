// minimize by L-BFGS: one loop, whose iterations each evaluate value and gradient once. The line
// search is a part of the loop's state.
#include <algorithm>
#include <cmath>

#include <vt/control.hpp>
#include <vt/linalg.hpp>

#include "objective.hpp"

namespace vt::detail::minimizing {

using namespace solver_parts;

// Wolfe's conditions: how much of what the slope says the value has to fall by, and how much of
// the slope may be left.
constexpr double fall = 1e-4, rest_of_slope = 0.9;
// Values that differ by less than so many rounding errors of theirs are not compared: they are
// sums.
constexpr double noise = 100;
// A whole step of fewer rounding errors of the parameters is none.
constexpr double least_step = 4;
constexpr std::int64_t most_tries = 40;  // of one line search
constexpr std::int64_t bisect_from =
    8;  // tries after which intervals are halved and slopes may rise

/// A place on the line: step, value and slope there.
struct OnLine {
  Tensor step, value, slope;
};
OnLine chosen(const Tensor& which, const OnLine& a, const OnLine& b) {
  return {vt::where(which, a.step, b.step), vt::where(which, a.value, b.value),
          vt::where(which, a.slope, b.slope)};
}

/// The last pairs of steps s and changes of the gradient y, and their products, the newest first.
struct History {
  Tensor pairs;    ///< of (s, y): [m, 2, n]
  Tensor size;     ///< how many there are: i32[]; what is behind them has no meaning
  Tensor lower;    ///< sᵢ·yⱼ where yⱼ is not older than sᵢ: [m, m]
  Tensor changes;  ///< yᵢ·yⱼ: [m, m]
  Tensor scale;    ///< of the gradient, where nothing else is known
};

struct State {
  Tensor runs, steps, reason;
  Tensor point, gradient, direction;  ///< [n]
  OnLine start;                       ///< its step is 0
  OnLine low, high;  ///< the best on the line, and the other end: infinite where there is none
  Tensor step;       ///< the trial
  Tensor tries;      ///< in this line search
  Tensor forced;     ///< the trial is taken as it is
  History history;

  std::vector<Tensor> all() const {
    return {runs,         steps,         reason,
            point,        gradient,      direction,
            start.value,  start.slope,   low.step,
            low.value,    low.slope,     high.step,
            high.value,   high.slope,    step,
            tries,        forced,        history.pairs,
            history.size, history.lower, history.changes,
            history.scale};
  }
  static State of(std::span<const Tensor> c, const Tensor& zero) {
    return {c[0],
            c[1],
            c[2],
            c[3],
            c[4],
            c[5],
            {zero, c[6], c[7]},
            {c[8], c[9], c[10]},
            {c[11], c[12], c[13]},
            c[14],
            c[15],
            c[16],
            {c[17], c[18], c[19], c[20], c[21]}};
  }
};

class LineSteps {
 public:
  explicit LineSteps(const Objective& f)
      : f_(f), m_(std::min<std::int64_t>(f.options.history, f.n + 2)) {}

  State begin(const Tensor& start) const {
    const Tensor zero = f_.number(0);
    State s;
    s.runs = s.steps = s.tries = count(0);
    s.reason = reason_number(going_on);
    s.point = start;
    s.gradient = s.direction = f_.zeros(f_.n);
    s.start = s.low = s.high = {zero, zero, zero};
    s.step = zero;
    s.forced = flag(false);
    const Tensor none = full_tensor(Scalar(std::int64_t{0}).converted(i32), Aval(i32, Shape{}));
    s.history = {grad_build::zeros(Aval(f_.dtype, Shape{m_, 2, f_.n})), none, vt::eye(m_, f_.dtype),
                 grad_build::zeros(Aval(f_.dtype, Shape{m_, m_})), f_.number(1)};
    return s;
  }

  State next(const State& now) const {
    State s = now;
    const Tensor trial = now.point + now.step * now.direction;
    const Objective::WithGradient at = f_.with_gradient(trial);
    const OnLine here{now.step, at.value, dot(at.gradient, now.direction)};
    const Tensor steepest = vt::max(vt::abs(at.gradient));
    const Tensor finite = vt::isfinite(at.value) & vt::isfinite(steepest);
    const Tensor first = now.runs == 0;
    s.runs = now.runs + 1;

    // Is the trial good enough? Values that differ too little to be compared leave it to slopes.
    const Tensor falls = at.value <= now.start.value + fall * now.step * now.start.slope;
    const Tensor size = vt::abs(now.start.value);
    const Tensor near = (at.value <= now.start.value + noise * f_.epsilon() * size) &
                        (here.slope <= (2 * fall - 1) * now.start.slope);
    const Tensor enough = finite & (falls | near);
    // At a kink no slope is small: there what lies beyond it is taken.
    const Tensor level = (vt::abs(here.slope) <= -rest_of_slope * now.start.slope) |
                         ((now.tries >= bisect_from) & (here.slope > 0.0));
    const Tensor accepted = (finite & (first | now.forced)) | (enough & level),
                 moved = accepted & !first;
    s.steps = now.steps + moved.astype(i64);

    // Why to end.
    s.reason = ended(s.reason, first & !finite, StopReason::not_finite);
    s.reason = ended(s.reason, accepted & (steepest <= f_.gtol), StopReason::gtol);
    if (f_.ftol > 0)
      s.reason = ended(s.reason,
                       moved & (-0.5 * now.start.slope <= f_.ftol * size) &
                           (now.start.value - at.value <= f_.ftol * size),
                       StopReason::ftol);
    if (f_.xtol > 0)
      s.reason = ended(
          s.reason,
          moved & (now.step * vt::max(vt::abs(now.direction)) <= f_.xtol * vt::max(vt::abs(trial))),
          StopReason::xtol);
    s.reason = ended(s.reason, s.steps >= std::int64_t(f_.options.max_iterations),
                     StopReason::max_iterations);

    search(s, now, here, enough, near);
    // A line on which nothing is found is left: where its best place is better than the start, for
    // that, else for the steepest descent, and if that was the line, for good.
    const Tensor width = vt::abs(s.step - s.low.step) * vt::max(vt::abs(now.direction));
    const Tensor spent = ((s.tries >= most_tries) |
                          !(width > f_.epsilon() / 2 * vt::max(vt::abs(now.point))) | now.forced) &
                         !accepted;
    const Tensor better = (s.low.step > 0.0) & (s.low.value < now.start.value) & !now.forced;
    const Tensor stuck = spent & !better;
    const Tensor known = now.history.size > 0;
    const Tensor still =
        vt::max(vt::abs(now.direction)) <= least_step * f_.epsilon() * vt::max(vt::abs(now.point));
    s.reason = ended(s.reason, stuck & known & still, StopReason::xtol);
    s.reason = ended(s.reason, stuck & !known, StopReason::small_step);
    s.forced = spent & better;
    s.step = vt::where(s.forced, s.low.step, s.step);
    turn(s, now, trial, at, accepted, moved, stuck);
    return s;
  }

 private:
  const Objective& f_;
  std::int64_t m_;

  /// The interval of the line search, and the next trial in it, if this one is not accepted.
  void search(State& s, const State& now, const OnLine& here, const Tensor& enough,
              const Tensor& near) const {
    const Tensor worse = vt::logical_not(enough & ((here.value < now.low.value) | near));
    const Tensor behind =
        vt::where(here.slope >= 0.0, here.step >= now.low.step, here.step <= now.low.step);
    s.high = chosen(worse, here, chosen(behind, now.low, now.high));
    s.low = chosen(worse, now.low, here);
    s.tries = now.tries + 1;
    const Tensor inside = vt::isfinite(s.high.step);
    // Within it, where the cubic is least that has these values and slopes.
    const Tensor width = s.high.step - s.low.step;
    const Tensor bend = s.low.slope + s.high.slope - 3.0 * (s.high.value - s.low.value) / width;
    const Tensor root = vt::sqrt(bend * bend - s.low.slope * s.high.slope) *
                        vt::where(width > 0.0, f_.number(1), f_.number(-1));
    const Tensor part =
        1.0 - (s.high.slope + root - bend) / (s.high.slope - s.low.slope + 2.0 * root);
    const Tensor usable = (part > 0.0) & (part < 1.0) & (s.tries < bisect_from);
    const Tensor within =
        s.low.step +
        width * vt::where(usable, vt::clip(part, f_.number(0.1), f_.number(0.9)), f_.number(0.5));
    // Beyond it, where the slope would be 0 if it went on as it does.
    const Tensor last = here.step - now.low.step;
    const Tensor far = last * here.slope / (now.low.slope - here.slope);
    const Tensor beyond =
        here.step + vt::where(far > 0.0, vt::clip(far, 1.1 * last, 4.0 * last), 4.0 * last);
    s.step = vt::where(inside, within, beyond);
  }

  /// The next direction, from what the last pairs say of the second derivative, if the trial is
  /// accepted; the steepest descent if `stuck`.
  void turn(State& s, const State& now, const Tensor& trial, const Objective::WithGradient& at,
            const Tensor& accepted, const Tensor& moved, const Tensor& stuck) const {
    const History& old = now.history;
    const Tensor change = at.gradient - now.gradient, step = now.step * now.direction;
    const Tensor product = dot(step, change), square = dot(change, change);
    const Tensor kept = moved & (product > f_.epsilon() * square * old.scale);
    s.point = vt::where(accepted, trial, now.point);
    s.gradient = vt::where(accepted, at.gradient, now.gradient);

    History& h = s.history;
    const auto part = [](const Tensor& x, int axis, std::int64_t from, std::int64_t to) {
      return grad_build::slice_axis(x, axis, from, to);
    };
    const auto first_rows = [&](const Tensor& x) { return part(x, 0, 0, m_ - 1); };
    Tensor shifted = vt::expand_dims(vt::stack({step, change}), Axes{0});
    if (m_ > 1) shifted = vt::concatenate({shifted, first_rows(old.pairs)}, 0);
    h.pairs = vt::where(kept, shifted, old.pairs);
    const Tensor size = vt::where(kept, vt::minimum(old.size + 1, std::int64_t{m_}), old.size);
    const Tensor flat = vt::reshape(h.pairs, Shape{2 * m_, f_.n});
    const Tensor products =
        vt::reshape(vt::matmul(flat, vt::stack({change, s.gradient}, 1)), Shape{m_, 4});
    const Tensor there = grad_build::index_along(i32, Shape{m_, 4}, 0) < size;
    const Tensor by = vt::where(there, products, f_.number(0));
    const auto column = [&](std::int64_t k) { return part(by, 1, k, k + 1); };
    const auto bordered = [&](const Tensor& first, const Tensor& row, const Tensor& rest) {
      if (m_ == 1) return first;
      const Tensor inner = part(first_rows(rest), 1, 0, m_ - 1);
      return vt::concatenate({first, vt::concatenate({row, inner}, 0)}, 1);
    };
    const Tensor others = vt::transpose(part(column(2), 0, m_ > 1 ? 1 : 0, m_));
    h.lower = vt::where(kept, bordered(column(0), vt::zeros_like(others), old.lower), old.lower);
    h.changes = vt::where(kept, bordered(column(2), others, old.changes), old.changes);
    h.scale = vt::where(kept, product / vt::where(kept, square, f_.number(1)), old.scale);

    // The two recursions over the pairs, in terms of their products.
    const Tensor by_steps = vt::reshape(column(1), Shape{m_}),
                 by_changes = vt::reshape(column(3), Shape{m_});
    const Tensor first = vt::linalg::solve_triangular(h.lower, by_steps, 0, true);
    const Tensor middle = h.scale * (by_changes - vt::matmul(h.changes, first));
    const Tensor second =
        vt::linalg::solve_triangular(h.lower, vt::diagonal(h.lower) * first - middle, 1, true);
    const Tensor weights = vt::stack({-second, h.scale * first}, 1);
    Tensor direction = vt::matmul(vt::reshape(weights, Shape{2 * m_}), flat) - h.scale * s.gradient;
    Tensor slope = dot(direction, s.gradient);
    const Tensor fresh = stuck | (accepted & !((size > 0) & (slope < 0.0)));
    const Tensor steep = dot(s.gradient, s.gradient), chosen_now = accepted | stuck;
    direction = vt::where(fresh, -s.gradient, direction);
    slope = vt::where(fresh, -steep, slope);
    // Without a history the next pair is the first.
    h.size = vt::where(fresh, 0 * size, size);
    h.scale = vt::where(fresh, f_.number(1), h.scale);

    const Tensor zero = f_.number(0), infinite = f_.number(HUGE_VAL);
    s.direction = vt::where(chosen_now, direction, now.direction);
    s.start.value = vt::where(accepted, at.value, now.start.value);
    s.start.slope = vt::where(chosen_now, slope, now.start.slope);
    s.low = chosen(chosen_now, {zero, s.start.value, s.start.slope}, s.low);
    s.high = chosen(chosen_now, {infinite, zero, zero}, s.high);
    s.tries = vt::where(chosen_now, count(0), s.tries);
    const double longest = f_.options.initial_step;
    const Tensor full =
        vt::where(fresh, vt::minimum(longest / vt::sqrt(steep), f_.number(1)), f_.number(1));
    s.step = vt::where(chosen_now, full, s.step);
    s.forced = s.forced & !chosen_now;
  }
};

std::vector<Tensor> l_bfgs(const Objective& f, const Tensor& start) {
  const LineSteps method(f);
  const Tensor zero = f.number(0);
  const State last = State::of(
      while_flat(
          [&](std::span<const Tensor> c) {
            return std::vector<Tensor>{State::of(c, c[6]).reason == going_on};
          },
          [&](std::span<const Tensor> c) { return method.next(State::of(c, f.number(0))).all(); },
          method.begin(start).all(), {}, f.call),
      zero);
  return {last.point, last.steps, last.runs, last.reason};
}

}  // namespace vt::detail::minimizing
