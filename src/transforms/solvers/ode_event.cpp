// Events of odeint: the step in which one lies, and where in it.
#include "ode_event.hpp"

#include <limits>

#include "../../trace/ops/support/operands.hpp"
#include "../grad/build.hpp"
#include "../grad/jvp.hpp"

namespace vt::detail::ode {

namespace event_parts {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<Tensor> stopped(std::span<const Tensor> all) {
  std::vector<Tensor> out;
  for (const Tensor& t : all) out.push_back(vt::stop_gradient(t));
  return out;
}
Between stopped(const Between& b) { return Between::from(stopped(b.leaves())); }
Tensor value(const EventSearch& e, std::span<const Tensor> captured, const Tensor& t,
             const Tensor& y) {
  std::vector<Tensor> operands{t, y};
  operands.insert(operands.end(), captured.begin(), captured.end());
  return replay(e.function.graph, operands)[0];
}
/// The function within a step.
Tensor value_in(const EventSearch& e, std::span<const Tensor> captured, const Between& b,
                const Tensor& theta) {
  return value(e, captured, b.t + theta * b.h, b.at(theta));
}

/// The first place in the step, to 4 ulp of 1, at which the function has the sign that it has at
/// its end: by the secant, in whose place every third time the middle is taken; the value at the
/// end that stays is halved (Dowell and Jarratt 1971, the Illinois method).
Tensor found(const Problem& p, const EventSearch& e, const Between& moving, const Tensor& at_start,
             const Tensor& at_end, const ControlCall& call) {
  const Between b = stopped(moving);
  const std::vector<Tensor> captured = stopped(e.function.captured);
  const double width = 4 * step_at(p.dtype, 1.0);
  const auto number = [&](double x) { return grad_build::scalar(p.dtype, x); };
  const std::vector<Tensor> init{number(0), number(1), at_start, at_end,
                                 full_tensor(Scalar(std::int32_t{0}), Aval(i32, Shape{}))};
  const std::vector<Tensor> out = while_flat(
      [&](std::span<const Tensor> c) {
        return std::vector<Tensor>{(c[1] - c[0] > width) & (c[3] != 0.0)};
      },
      [&](std::span<const Tensor> c) {
        const Tensor low = c[0], high = c[1], at_low = c[2], at_high = c[3], turn = c[4];
        const Tensor secant = high - at_high * ((high - low) / (at_high - at_low)),
                     middle = 0.5 * (low + high);
        const Tensor inside = (secant > low) & (secant < high) & (turn < 2);
        const Tensor theta = vt::where(inside, secant, middle);
        const Tensor here = value_in(e, captured, b, theta);
        // Signs are compared, as products could be 0.
        const Tensor behind = (here == 0.0) | ((here > 0.0) == (at_end > 0.0));
        return std::vector<Tensor>{
            vt::where(behind, low, theta), vt::where(behind, theta, high),
            vt::where(behind, vt::where(inside, 0.5 * at_low, at_low), here),
            vt::where(behind, here, vt::where(inside, 0.5 * at_high, at_high)),
            vt::where(turn < 2, turn + 1, 0 * turn)};
      },
      init, {.checkpoint = 1}, call);
  return vt::stop_gradient(out[1]);
}

/// theta, where the function is 0, with the derivatives of the implicit function theorem: those of
/// two steps of Newton's method, which are right up to the third order.
Tensor with_derivatives(const Problem& p, const EventSearch& e, const Between& b,
                        const Tensor& theta) {
  const Aval avals[] = {Aval(p.dtype, Shape{})};
  const Recorded within = record(
      [&](std::span<const Tensor> x) {
        return std::vector<Tensor>{value_in(e, e.function.captured, b, x[0])};
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::odeint"});
  Tensor at = theta;
  for (int i = 0; i < 2; ++i) {
    std::vector<Tensor> operands{at}, directions{grad_build::scalar(p.dtype, 1)};
    operands.insert(operands.end(), within.captured.begin(), within.captured.end());
    directions.resize(operands.size());
    const JvpResult r = jvp_graph(within.graph, operands, directions);
    if (!r.tangents[0].defined()) return theta;
    const Tensor rise = r.tangents[0];
    at = at - r.primals[0] / vt::where(rise == 0.0, vt::ones_like(rise), rise);
  }
  return theta + (at - vt::stop_gradient(at));
}

}  // namespace event_parts

Events begin(const Problem& p, const EventSearch& e, const State& s) {
  using namespace event_parts;
  const Tensor nothing = grad_build::scalar(p.dtype, nan);
  return {value(e, stopped(e.function.captured), vt::stop_gradient(s.t), vt::stop_gradient(s.y)),
          full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{})), nothing,
          vt::full(s.y.shape(), nan, p.dtype)};
}

Events after(const Problem& p, const EventSearch& e, const Events& before, Step& made,
             const ControlCall& call) {
  using namespace event_parts;
  State& next = made.next;
  const Tensor here =
      value(e, stopped(e.function.captured), vt::stop_gradient(next.t), vt::stop_gradient(next.y));
  // 0 counts to where the function comes to; what begins at 0 comes from nowhere.
  const Tensor rises = (before.value < 0.0) & (here >= 0.0),
               falls = (before.value > 0.0) & (here <= 0.0);
  const int direction = e.options.direction;
  const Tensor crossed = made.accepted & (direction > 0   ? rises
                                          : direction < 0 ? falls
                                                          : rises | falls);
  const std::vector<Tensor> at = cond_flat(
      crossed,
      [&](std::span<const Tensor>) {
        const Tensor theta = with_derivatives(p, e, made.between,
                                              found(p, e, made.between, before.value, here, call));
        return std::vector<Tensor>{made.between.t + theta * made.between.h, made.between.at(theta)};
      },
      [&](std::span<const Tensor>) { return std::vector<Tensor>{before.t, before.y}; }, {}, call);
  Events out{vt::where(made.accepted, here, before.value), before.count + crossed.astype(i64),
             at[0], at[1]};
  if (const std::int64_t stop_at = e.options.stop_at; stop_at > 0) {
    const Tensor ends = crossed & (out.count == stop_at);
    next.t = vt::where(ends, out.t, next.t);
    next.y = vt::where(ends, out.y, next.y);
    next.status = vt::where(
        ends, full_tensor(Scalar(static_cast<std::int32_t>(StopReason::event)), Aval(i32, Shape{})),
        next.status);
  }
  return out;
}

}  // namespace vt::detail::ode
