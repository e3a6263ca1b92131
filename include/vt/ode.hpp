// Initial value problems of ordinary differential equations: odeint, its methods, options, events
// and what it gives.
#pragma once

#include <initializer_list>
#include <vector>

#include <vt/control.hpp>
#include <vt/solution.hpp>

namespace vt {

/// The method of odeint.
enum class OdeMethod : std::uint8_t {
  rk4,      ///< the classical Runge–Kutta method of order 4, with a fixed step
  dopri5,   ///< Dormand–Prince 5(4), for problems that are not stiff
  tsit5,    ///< Tsitouras 5(4), as dopri5, with smaller errors
  rodas5p,  ///< Rosenbrock method of order 5(4), for stiff problems; uses the Jacobian
};

/// Tolerances: one for all of y, `1e-8`; one for each Tensor of the tree, `{1e-8, 1e-6}`; each may
/// be a Tensor that broadcasts to that of y, for tolerances of single elements.
class OdeTolerance {
 public:
  /// By the dtype of y.
  OdeTolerance() = default;
  template <Number T>
  OdeTolerance(T all) : parts_{Tensor(all)} {}
  OdeTolerance(Tensor all) : parts_{std::move(all)} {}
  OdeTolerance(std::initializer_list<Tensor> each) : parts_(each) {}
  OdeTolerance(std::vector<Tensor> each) : parts_(std::move(each)) {}
  /// None, one, or one for each Tensor of y.
  [[nodiscard]] const std::vector<Tensor>& parts() const { return parts_; }

 private:
  std::vector<Tensor> parts_;
};

/// Which events count, and which one ends the integration.
struct OdeEventOptions {
  /// 1: only where the function rises through 0 along the integration, also backward in time; −1:
  /// only where it falls; 0: both
  Param<int> direction = 0;
  /// the integration ends at the stop_at-th event; 0: events are only counted
  Param<std::int64_t> stop_at = 1;
};

/// Options of odeint.
struct OdeOptions {
  OdeMethod method = OdeMethod::tsit5;
  /// Start and end of the integration; t1 < t0 goes backward in time. Scalars; Tensors may differ
  /// between lanes, and the solution has derivatives with respect to them.
  Tensor t0 = 0.0, t1 = 1.0;
  /// Times, [m], at which y is saved as `ys`, by dense output: sorted from t0 to t1, both of which
  /// are allowed. What differs from t0 or t1 by rounding counts as that.
  Tensor save_at = {};
  /// A step is accepted if the root mean square of error / (atol + rtol · max(|y|, |y_new|)) over
  /// all elements of y is at most 1. Defaults: 1e-6 and 1e-9 in f64, 1e-4 and 1e-6 in f32. A
  /// smaller rtol than 50 ulp of 1 (rodas5p: 1,000) counts as that.
  OdeTolerance rtol = {}, atol = {};
  /// Length of the first step, of rk4 of every step; 0: chosen (not for rk4).
  Tensor first_step = 0.0;
  /// Bounds of the length of a step. 0: 10 ulp of t for h_min, none for h_max.
  Param<double> h_min = 0, h_max = 0;
  Param<std::int64_t> max_steps = 100'000;  ///< tried steps, accepted or not
  OdeEventOptions event = {};
  /// How many states reverse mode keeps in memory; 0: chosen by their size, see WhileOptions.
  Param<std::int64_t> checkpoint = 0;
};

/// The result of odeint. y, t, ys, event_t and event_y have derivatives. Under vmap each lane has
/// its own of everything.
template <class Y>
struct OdeSolution {
  Y y;                 ///< at the time t
  Tensor t;            ///< t1, or where the integration ended before: float[]
  Y ys;                ///< at the times save_at, each Tensor [m, …]; NaN where not reached
  Tensor saved;        ///< number of rows of ys that were reached: i64[]
  Tensor event_t;      ///< the time of the last event, NaN if there was none: float[]
  Y event_y;           ///< y at that time
  Tensor events;       ///< number of events: i64[]
  Tensor iterations;   ///< accepted steps: i64[]
  Tensor rejected;     ///< rejected steps: i64[]
  Tensor evaluations;  ///< calls of f, without Jacobians: i64[]
  Tensor converged;    ///< t1, or the event that ends the integration, was reached: bool[]
  Tensor reason;       ///< number of the StopReason: i32[]
};

namespace detail {

/// f: (t, y…) → the leaves of dy/dt; event: (t, y…) → a scalar, or empty. Gives the leaves of y, of
/// ys and of event_y, then t, saved, event_t, events, iterations, rejected, evaluations, converged,
/// reason.
std::vector<Tensor> odeint_flat(const FlatFunction& f, const FlatFunction& event,
                                std::span<const Tensor> y0, const OdeOptions&, const ControlCall&);

/// Is F a function of a time and a tree like T that gives such a tree?
template <class F, class T>
struct SlopeCheck : GivenCheck<GivenBy<F, Tensor, LiftedTree<T>>, LiftedTree<T>> {};
/// Is G a function of a time and a tree like T that gives a number?
template <class G, class T>
constexpr auto check_event() {
  using Check = GivenCheck<GivenBy<G, Tensor, LiftedTree<T>>, Tensor>;
  if constexpr (Check::fault == CallFault::parameters || Check::fault == CallFault::type)
    return CallFaultOf<CallFault::solver>();
  else return Check();
}
template <class G, class T>
struct EventCheck : decltype(check_event<G, T>()) {};

/// The assertions on what odeint is given, besides VT_ASSERT_CALL.
// clang-format off
#define VT_ASSERT_ODE(Check)                                                                       \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::parameters> &&                  \
                    ::vt::detail::fits<Check, ::vt::detail::CallFault::type>,                      \
                "vt::odeint: the function must take the time and a tree like y0 and return "       \
                "dy/dt, a tree like y0: write [&](vt::Tensor t, vt::Tensor y) { return -y; }");    \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::solver>,                        \
                "vt::odeint: an event must take the time and a tree like y0 and return one "       \
                "number: write [](vt::Tensor t, vt::Tensor y) { return y[0]; }")
// clang-format on

/// `event`: a function, or null.
template <class F, class T, class G>
auto odeint_on_tree(F& f, G* event, const T& y0, const OdeOptions& options, CallSite where) {
  using Y = LiftedTree<T>;
  const Y own = lifted(y0);
  const ControlCall call{
      .name = "vt::odeint", .where = where, .carry_name = leaf_names("y", "y", own)};
  const FlatFunction slope = [&](std::span<const Tensor> in) {
    return kept_structure(own, f(in[0], with_leaves(own, in.subspan(1))),
                          "the function must give a tree like y0", "result", call);
  };
  FlatFunction flat_event;
  if constexpr (!std::is_same_v<G, std::nullptr_t>)
    flat_event = [&](std::span<const Tensor> in) {
      return std::vector<Tensor>{Tensor((*event)(in[0], with_leaves(own, in.subspan(1))))};
    };
  const std::vector<Tensor> out = odeint_flat(slope, flat_event, tree_leaves(own), options, call);
  const std::span<const Tensor> all(out);
  const std::size_t n = count_leaves(own);
  const Tensor* const rest = out.data() + 3 * n;
  return OdeSolution<Y>{with_leaves(own, all.first(n)),
                        rest[0],
                        with_leaves(own, all.subspan(n, n)),
                        rest[1],
                        rest[2],
                        with_leaves(own, all.subspan(2 * n, n)),
                        rest[3],
                        rest[4],
                        rest[5],
                        rest[6],
                        rest[7],
                        rest[8]};
}

}  // namespace detail

/// Integrates dy/dt = f(t, y) from y(t0) = y0 to t1. y0 is a tree of floats; f gives such a tree,
/// and may capture Tensors, the parameters. A PI controller chooses the steps; a trial that is not
/// finite is rejected and a smaller step tried. It does not throw for not reaching t1: `reason` is
/// `end` or `event`; `max_iterations` after max_steps; `small_step` if a step of h_min is rejected
/// (rk4: if a step is not finite); `not_finite` if y0, f(t0, y0), t0 or t1 is not. Under vmap each
/// lane takes its own steps, and the same ones beside any others.
/// Derivative: that of the steps that were taken (discretise-then-optimise), with respect to y0,
/// t0, t1, save_at and what f captures, in both modes and to any order. The choice of steps is not
/// differentiated.
/// Shapes: f: (t: float[], tree like y0) → tree like y0. t has the dtype to which those of y0
/// promote, f32 for f16 and bf16.
/// Throws: Error (dtype) unless y0 holds real floats; (shape), (dtype) or (tree) if f gives other
/// than that, or options are no scalars; (value) if options are out of range, or save_at, where it
/// is known, is not in order between t0 and t1. Of times that are known only when the program runs,
/// those outside give NaN.
/// Source: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4 to II.6;
/// Dormand and Prince 1980; Tsitouras 2011; Steinebach 2023.
template <class F, class T>
[[nodiscard]] auto odeint(F f, const T& y0, const OdeOptions& options = {},
                          CallSite where = CallSite::here()) {
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::UnlessNumbers<detail::SlopeCheck<F, T>, T>>;
  VT_ASSERT_CALL("vt::odeint", Check);
  VT_ASSERT_NO_NUMBERS("vt::odeint", "y0", Check);
  VT_ASSERT_ODE(Check);
  if constexpr (!Check::holds) return OdeSolution<detail::Refused>();
  else return detail::odeint_on_tree(f, static_cast<std::nullptr_t*>(nullptr), y0, options, where);
}
template <class F, class N>
auto odeint(F, std::initializer_list<N>, const OdeOptions& = {}) {
  static_assert(!sizeof(N),
                "vt: y0 is a vt::Tensor or a tree of them: "
                "vt::odeint(f, vt::tensor({1.0, 2.0}))");
}
/// The same with events: where event(t, y), a scalar, reaches 0. An event is found in an accepted
/// step at whose ends the scalar has different signs, on the dense output, to 4 ulp of the step.
/// Two events within one step are not seen: h_max bounds the step. Event times, and y at them, have
/// derivatives by the implicit function theorem.
template <class F, class T, class G>
  requires(!std::is_same_v<G, CallSite>)
[[nodiscard]] auto odeint(F f, const T& y0, const OdeOptions& options, G event,
                          CallSite where = CallSite::here()) {
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::UnlessNumbers<detail::SlopeCheck<F, T>, T>,
                      detail::EventCheck<G, T>>;
  VT_ASSERT_CALL("vt::odeint", Check);
  VT_ASSERT_NO_NUMBERS("vt::odeint", "y0", Check);
  VT_ASSERT_ODE(Check);
  if constexpr (!Check::holds) return OdeSolution<detail::Refused>();
  else return detail::odeint_on_tree(f, &event, y0, options, where);
}

}  // namespace vt
