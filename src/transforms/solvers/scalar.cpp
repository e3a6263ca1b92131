// Roots in a bracket and minima in an interval of functions of one number: each a loop that
// evaluates the function once in each iteration, the ends too.
#include <cmath>

#include <vt/control.hpp>
#include <vt/minimize.hpp>
#include <vt/solvers.hpp>

#include "../../trace/record/scope.hpp"
#include "solver_numbers.hpp"

namespace vt::detail {

namespace scalar_parts {

using namespace solver_parts;

/// The function, recorded once, and what its solvers know of it.
class NumberFunction {
 public:
  NumberFunction(const FlatFunction& f, std::initializer_list<std::pair<const char*, Tensor>> ends,
                 const BracketOptions& options, const ControlCall& given)
      : call(given) {
    if (options.xtol) check_number(call, "xtol", *options.xtol, 0, "at least 0");
    if (options.rtol) check_number(call, "rtol", *options.rtol, 0, "at least 0");
    if (options.max_iterations < 1)
      refuse(ErrorKind::value, call,
             formatted("max_iterations is {}; it must be at least 1",
                       std::int64_t(options.max_iterations)));
    bool first = true;
    for (const auto& [name, end] : ends) {
      if (!end.defined()) refuse(ErrorKind::value, call, formatted("{} is an empty Tensor", name));
      if (end.rank() != 0)
        refuse(ErrorKind::shape, call,
               formatted("{} is {}; it must be a scalar: for many at once write a vt::vmap", name,
                         aval_of(end).str()));
      if (end.dtype() != f32 && end.dtype() != f64)
        refuse(ErrorKind::dtype, call,
               formatted("{} is {}; it must be f32 or f64: {}", name, aval_of(end).str(),
                         instead_of(end.dtype())));
      dtype = first ? end.dtype() : promote(dtype, end.dtype());
      first = false;
    }
    const Aval number(dtype, Shape{});
    const FlatFunction checked = [&](std::span<const Tensor> x) {
      const Tensor y = f(x)[0];
      if (!y.defined()) refuse(ErrorKind::tree, call, "the function gives an empty Tensor");
      if (y.rank() != 0)
        refuse(ErrorKind::shape, call,
               formatted("the function gives {} where a scalar is needed", aval_of(y).str()));
      if (!is_float(y.dtype()))
        refuse(ErrorKind::dtype, call,
               formatted("the function gives {} where a real float is needed", aval_of(y).str()));
      precision = aval_of(y).weak ? dtype : promote(y.dtype(), y.dtype());
      return std::vector<Tensor>{cast(y, dtype, call.where)};
    };
    recorded_ = record(checked, {&number, 1},
                       {.kind = ScopeKind::branch, .transform = call.name, .where = call.where});
    if (dtype != f64 || precision != f64) precision = f32;
  }
  NumberFunction(const NumberFunction&) = delete;
  NumberFunction& operator=(const NumberFunction&) = delete;

  const ControlCall& call;
  DType dtype, precision;

  Tensor operator()(const Tensor& x) const {
    return replay(recorded_.graph, joined({&x, 1}, recorded_.captured))[0];
  }
  Tensor slope(const Tensor& x) const {
    static constexpr bool wanted[] = {true};
    const FlatFunction f = [&](std::span<const Tensor> at) {
      return std::vector<Tensor>{(*this)(at[0])};
    };
    GradCall g;
    g.arguments = {&x, 1};
    g.wanted = wanted;
    g.transform = call.name;
    g.where = call.where;
    const Tensor one = number(1);
    return jvp_flat(f, g, {&one, 1}).tangents[0];
  }
  Tensor number(double value) const { return grad_build::scalar(dtype, value); }
  Tensor end(const Tensor& given) const { return cast(given, dtype, call.where); }

 private:
  Recorded recorded_;
};

/// A point and the value there.
struct Place {
  Tensor x, f;
};
Place chosen(const Tensor& which, const Place& a, const Place& b) {
  return {vt::where(which, a.x, b.x), vt::where(which, a.f, b.f)};
}
/// From what the root or the minimum has behind it: value, runs and reason.
SolutionFlat solution(std::span<const Tensor> found, const Tensor& value, std::int64_t first) {
  SolutionFlat out;
  out.x = {found[0]};
  out.value = value;
  out.evaluations = found[1];
  out.iterations = vt::maximum(found[1] - first, count(0));
  out.reason = found[2];
  out.converged = below(out.reason, StopReason::max_iterations);
  return out;
}

// --- roots ---------------------------------------------------------------------------------------

struct RootState {
  Tensor runs, reason, trial;
  Place last, best, other;  ///< the root lies between best and other
  Tensor before, step;      ///< the last two steps, as Brent counts them

  std::vector<Tensor> all() const {
    return {runs, reason, trial, last.x, last.f, best.x, best.f, other.x, other.f, before, step};
  }
  static RootState of(std::span<const Tensor> c) {
    return {c[0], c[1], c[2], {c[3], c[4]}, {c[5], c[6]}, {c[7], c[8]}, c[9], c[10]};
  }
};

class RootSteps {
 public:
  RootSteps(const NumberFunction& f, const Tensor& b, RootMethod method,
            const BracketOptions& options)
      : f_(f), b_(b), method_(method), most_(options.max_iterations) {
    const double unit = step_at(f.precision, 1);
    xtol_ = options.xtol ? double(*options.xtol) : f.precision == f64 ? 2e-12 : 1e-6;
    rtol_ = options.rtol ? double(*options.rtol) : 4 * unit;
  }

  RootState begin(const Tensor& a) const {
    const Tensor zero = f_.number(0);
    return {count(0), reason_number(going_on), a, {zero, zero}, {zero, zero}, {zero, zero}, zero,
            zero};
  }
  RootState next(const RootState& now) const {
    RootState s = now;
    const Place here{now.trial, f_(now.trial)};
    const Tensor first = now.runs == 0, second = now.runs == 1, usable = !vt::isnan(here.f);
    s.runs = now.runs + 1;
    s.last = chosen(usable, now.best, now.last);
    s.best = chosen(usable | first, here, now.best);
    s.reason = ended(s.reason, (now.runs <= 1) & !usable, StopReason::not_finite);
    s.reason = ended(s.reason, first & (here.f == 0.0), StopReason::tolerance);

    const Tensor crossed = usable & !first & vt::not_equal(s.last.f < 0.0, s.best.f < 0.0);
    s.reason =
        ended(s.reason, second & !crossed & vt::not_equal(s.best.f, 0.0), StopReason::no_bracket);
    s.other = chosen(crossed | second, s.last, now.other);
    const Tensor whole = s.best.x - s.last.x;
    s.step = vt::where(crossed, whole, now.step);
    s.before = vt::where(crossed, whole, now.before);
    const Tensor exchange = usable & !first & (vt::abs(s.other.f) < vt::abs(s.best.f));
    const Place best = s.best;
    s.last = chosen(exchange, best, s.last);
    s.best = chosen(exchange, s.other, s.best);
    s.other = chosen(exchange, best, s.other);

    const Tensor least = 0.5 * (xtol_ + rtol_ * vt::abs(s.best.x));
    const Tensor half = 0.5 * s.other.x - 0.5 * s.best.x;
    const Tensor there = usable & !first & ((s.best.f == 0.0) | (vt::abs(half) < least));
    s.reason = ended(s.reason, there, StopReason::tolerance);
    Tensor step = half;
    if (method_ == RootMethod::brent) {
      const Tensor tried = interpolated(s);
      const Tensor good =
          (vt::abs(s.before) > least) & (vt::abs(s.best.f) < vt::abs(s.last.f)) &
          vt::isfinite(s.last.f) & vt::isfinite(s.other.f) &
          (2.0 * vt::abs(tried) < vt::minimum(vt::abs(s.before), 3.0 * vt::abs(half) - least));
      s.before = vt::where(usable, vt::where(good, s.step, half), s.before);
      s.step = vt::where(usable, vt::where(good, tried, half), s.step);
      step = vt::where(vt::abs(s.step) > least, s.step, vt::where(half > 0.0, least, -least));
    }
    // Where the value is NaN, half the way from the best point.
    const Tensor shorter = 0.5 * (now.trial - s.best.x);
    step = vt::where(usable, step, shorter);
    const Tensor trial = vt::where(first, b_, s.best.x + step);
    const Tensor stuck = vt::logical_not(usable | (vt::abs(shorter) > least));
    s.reason = ended(s.reason, stuck | ((trial == s.best.x) & !first), StopReason::small_step);
    s.reason = ended(s.reason, s.runs - 2 >= most_, StopReason::max_iterations);
    s.trial = trial;
    return s;
  }

 private:
  const NumberFunction& f_;
  Tensor b_;
  RootMethod method_;
  std::int64_t most_;
  double xtol_, rtol_;

  /// To where the line through the best and the last point, or, where the other one is a third
  /// point, the inverse parabola is 0.
  static Tensor interpolated(const RootState& s) {
    const Tensor line = -s.best.f * (s.best.x - s.last.x) / (s.best.f - s.last.f);
    const Tensor to_last = (s.last.f - s.best.f) / (s.last.x - s.best.x),
                 to_other = (s.other.f - s.best.f) / (s.other.x - s.best.x);
    const Tensor curve = -s.best.f * (s.other.f * to_other - s.last.f * to_last) /
                         (to_other * to_last * (s.other.f - s.last.f));
    return vt::where(s.last.x == s.other.x, line, curve);
  }
};

// --- minima --------------------------------------------------------------------------------------

struct MinimumState {
  Tensor runs, reason, trial, low, high;
  Place best, second, third;
  Tensor before, step;  ///< the last two steps

  std::vector<Tensor> all() const {
    return {runs,     reason,   trial,   low,     high,   best.x, best.f,
            second.x, second.f, third.x, third.f, before, step};
  }
  static MinimumState of(std::span<const Tensor> c) {
    return {c[0], c[1], c[2], c[3], c[4], {c[5], c[6]}, {c[7], c[8]}, {c[9], c[10]}, c[11], c[12]};
  }
};

const double golden_part = 0.5 * (3 - std::sqrt(5.0));

class MinimumSteps {
 public:
  MinimumSteps(const NumberFunction& f, const Tensor& low, const Tensor& high, bool bracket,
               IntervalMethod method, const BracketOptions& options)
      : f_(f),
        low_(low),
        high_(high),
        bracket_(bracket),
        method_(method),
        most_(options.max_iterations) {
    const double unit = step_at(f.precision, 1);
    xtol_ = options.xtol ? double(*options.xtol) : f.precision == f64 ? 1e-11 : 1e-6;
    rtol_ = options.rtol ? double(*options.rtol) : std::sqrt(unit);
  }
  /// Evaluations before the first trial.
  std::int64_t first() const { return bracket_ ? 3 : 1; }
  Tensor least_step(const Tensor& x) const { return xtol_ + rtol_ * vt::abs(x); }

  MinimumState begin(const Tensor& start) const {
    const Tensor zero = f_.number(0);
    return {count(0),     reason_number(going_on),
            start,        low_,
            high_,        {zero, zero},
            {zero, zero}, {zero, zero},
            zero,         zero};
  }
  MinimumState next(const MinimumState& now) const {
    MinimumState s = now;
    const Tensor value = f_(now.trial), infinite = f_.number(HUGE_VAL);
    const Place here{now.trial, vt::where(vt::isnan(value), infinite, value)};
    const Tensor start = now.runs == 0;
    s.runs = now.runs + 1;
    s.reason = ended(s.reason, start & !vt::isfinite(value), StopReason::not_finite);
    s.reason = ended(s.reason, here.f == -infinite, StopReason::not_finite);
    // Which ends does the value move?
    const Tensor lower = here.f <= now.best.f, right = now.trial >= now.best.x;
    Tensor inner = !start;
    if (bracket_) {
      inner = now.runs > 2;
      const Tensor no_bracket = vt::logical_not(start | inner | (here.f > now.best.f));
      s.reason = ended(s.reason, no_bracket, StopReason::no_bracket);
    }
    const Tensor end = vt::where(lower, now.best.x, now.trial), raises_low = lower ^ !right;
    s.low = vt::where(inner & raises_low, end, now.low);
    s.high = vt::where(inner & !raises_low, end, now.high);
    // The best three.
    const Tensor next_second = ((here.f <= now.second.f) | (now.second.x == now.best.x)) & !lower,
                 next_third = ((here.f <= now.third.f) | (now.third.x == now.best.x) |
                               (now.third.x == now.second.x)) &
                              !(lower | next_second);
    s.best = chosen(lower | start, here, now.best);
    s.second = chosen(start | next_second, here, chosen(lower, now.best, now.second));
    s.third = chosen(start | next_third, here, chosen(lower | next_second, now.second, now.third));

    const Tensor x = s.best.x, middle = 0.5 * s.low + 0.5 * s.high;
    const Tensor least = least_step(x), twice = 2.0 * least;
    const Tensor ready = bracket_ ? now.runs >= 2 : flag(true);
    s.reason = ended(s.reason, ready & (vt::abs(x - middle) <= twice - 0.5 * (s.high - s.low)),
                     StopReason::tolerance);
    const Tensor larger = vt::where(x < middle, s.high, s.low) - x;
    Tensor step = golden_part * larger, before = larger;
    if (method_ == IntervalMethod::brent) {
      const Tensor r = (x - s.second.x) * (s.best.f - s.third.f),
                   q = (x - s.third.x) * (s.best.f - s.second.f);
      const Tensor over = (x - s.third.x) * q - (x - s.second.x) * r, under = 2.0 * (r - q);
      const Tensor parabola = over / under, at = x + parabola;
      const Tensor good = (vt::abs(now.before) > least) &
                          (vt::abs(parabola) < 0.5 * vt::abs(now.before)) & (at > s.low) &
                          (at < s.high);
      const Tensor near_end = (at - s.low < twice) | (s.high - at < twice);
      const Tensor kept = vt::where(near_end, vt::where(middle >= x, least, -least), parabola);
      step = vt::where(good, kept, step);
      before = vt::where(good, now.step, before);
    }
    s.step = vt::where(ready, step, now.step);
    s.before = vt::where(ready, before, now.before);
    const Tensor far =
        vt::where(vt::abs(step) >= least, step, vt::where(step > 0.0, least, -least));
    Tensor trial = x + far;
    if (bracket_) trial = vt::where(start, low_, vt::where(now.runs == 1, high_, trial));
    s.reason = ended(s.reason, ready & (trial == x), StopReason::small_step);
    s.reason = ended(s.reason, s.runs - first() >= most_, StopReason::max_iterations);
    s.trial = trial;
    return s;
  }

 private:
  const NumberFunction& f_;
  Tensor low_, high_;
  bool bracket_;
  IntervalMethod method_;
  std::int64_t most_;
  double xtol_, rtol_;
};

/// Repeats `next` while there is no reason to end.
template <class State, class Steps>
State repeated(const Steps& steps, const State& start, const ControlCall& call) {
  return State::of(while_flat(
      [&](std::span<const Tensor> c) {
        return std::vector<Tensor>{State::of(c).reason == going_on};
      },
      [&](std::span<const Tensor> c) { return steps.next(State::of(c)).all(); }, start.all(), {},
      call));
}

}  // namespace scalar_parts

SolutionFlat bracketed_root(const FlatFunction& f, const Tensor& a, const Tensor& b,
                            RootMethod method, const BracketOptions& options,
                            const ControlCall& call) {
  using namespace scalar_parts;
  const UserLine line(call.where);
  const NumberFunction function(f, {{"a", a}, {"b", b}}, options, call);
  const Tensor low = function.end(a), high = function.end(b);
  const std::vector<Tensor> found = root_flat(
      [&](std::span<const Tensor> x) { return std::vector<Tensor>{function(x[0])}; }, {&low, 1},
      [&](const FlatFunction&, std::span<const Tensor> start) {
        const RootSteps steps(function, high, method, options);
        const RootState last = repeated(steps, steps.begin(start[0]), call);
        // A root at a is found before b is looked at.
        return std::vector<Tensor>{last.best.x, last.runs, last.reason, vt::abs(last.best.f)};
      },
      {}, call.name, call.where);
  return solution(found, found[3], 2);
}

SolutionFlat interval_minimum(const FlatFunction& f, const Tensor& a, const Tensor& middle,
                              const Tensor& b, IntervalMethod method, const BracketOptions& options,
                              const ControlCall& call) {
  using namespace scalar_parts;
  const UserLine line(call.where);
  const bool bracket = middle.defined();
  const NumberFunction function(f, {{"a", a}, {"b", b}, {"the middle", bracket ? middle : a}},
                                options, call);
  const Tensor low = vt::minimum(function.end(a), function.end(b)),
               high = vt::maximum(function.end(a), function.end(b));
  const MinimumSteps steps(function, low, high, bracket, method, options);
  // The slope is 0 in the interval; at its ends it leads out.
  const FlatFunction condition = [&](std::span<const Tensor> x) {
    const Tensor slope = function.slope(x[0]), at = vt::stop_gradient(x[0]),
                 rise = vt::stop_gradient(slope), near = 3.0 * steps.least_step(at);
    return std::vector<Tensor>{
        vt::where((rise > 0.0) & (at - low <= near), x[0] - low,
                  vt::where((rise < 0.0) & (high - at <= near), x[0] - high, slope))};
  };
  const Tensor start = bracket ? function.end(middle) : low + golden_part * (high - low);
  const std::vector<Tensor> found = root_flat(
      condition, {&start, 1},
      [&](const FlatFunction&, std::span<const Tensor> from) {
        const MinimumState last = repeated(steps, steps.begin(from[0]), call);
        return std::vector<Tensor>{last.best.x, last.runs, last.reason};
      },
      {}, call.name, call.where);
  return solution(found, function(found[0]), steps.first());
}

}  // namespace vt::detail
