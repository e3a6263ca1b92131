// Initial value problems of ordinary differential equations: odeint, its methods, options, events
// and what it gives.
#pragma once

#include <initializer_list>
#include <vector>

#include <vt/control.hpp>
#include <vt/solution.hpp>

namespace vt {

/// How steps are made.
enum class OdeMethod : std::uint8_t {
  rk4,      ///< the classical method of order 4, in steps of one size
  dopri5,   ///< Dormand and Prince 5(4), for problems that are not stiff
  tsit5,    ///< Tsitouras 5(4), as dopri5, with smaller errors
  rodas5p,  ///< Steinebach's Rosenbrock method of order 5(4), for stiff problems; with Jacobians
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

/// What counts as an event, and what happens then.
struct OdeEventOptions {
  Param<int> direction =
      0;  ///< 1: only where the function rises through 0; −1: only where it falls
  Param<std::int64_t> stop_at =
      1;  ///< the integration ends at that event; 0: events are only counted
};

/// Options of odeint.
struct OdeOptions {
  OdeMethod method = OdeMethod::tsit5;
  /// From this time to that one, which may be the earlier. Scalars; Tensors may differ between
  /// lanes, and the solution is differentiable by them.
  Tensor t0 = 0.0, t1 = 1.0;
  /// Times, [m], at which y is wanted as well, in the order in which they are reached. What differs
  /// from t0 or t1 by rounding counts as that.
  Tensor save_at = {};
  /// A step is accepted if the root of the mean of (error / (atol + rtol · max(|y|, |y_new|)))²
  /// over all elements of y is at most 1. Not given: 1e-6 and 1e-9 in f64, 1e-4 and 1e-6 in f32.
  /// The least value of an error is what rounding makes of it, and that of rtol 50 ulp of 1 (of
  /// rodas5p 1,000).
  OdeTolerance rtol = {}, atol = {};
  /// The first step, a positive number; of rk4 every step. 0: it is chosen (rk4 needs one).
  Tensor first_step = 0.0;
  /// Bounds of the steps. 0: for h_min 10 ulp of t, for h_max none.
  Param<double> h_min = 0, h_max = 0;
  Param<std::int64_t> max_steps =
      100'000;  ///< steps that are tried at most, with those that are rejected
  OdeEventOptions event = {};
  /// States that reverse mode keeps, see WhileOptions.
  Param<std::int64_t> checkpoint = 0;
};

/// What odeint gives. y, t, ys, event_t and event_y have derivatives. Under vmap each lane has its
/// own.
template <class Y>
struct OdeSolution {
  Y y;                 ///< at the time t
  Tensor t;            ///< t1, or where the integration ended: float[]
  Y ys;                ///< at the times save_at, each Tensor [m, …]; NaN where t was not reached
  Tensor saved;        ///< how many of these are there: i64[]
  Tensor event_t;      ///< the time of the last event, NaN if there was none: float[]
  Y event_y;           ///< y at that time
  Tensor events;       ///< how many there were: i64[]
  Tensor iterations;   ///< steps that were accepted: i64[]
  Tensor rejected;     ///< steps that were not: i64[]
  Tensor evaluations;  ///< calls of f: i64[]
  Tensor converged;    ///< the end of the time, or the event that ends, was reached: bool[]
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
                          "the function must give a tree like y0", "leaf", call);
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

/// The solution of dy/dt = f(t, y), y(t0) = y0. y0: a tree of floats; f gives such a tree, and may
/// capture Tensors. Steps are chosen by a PI controller, and as far as they are chosen they are not
/// differentiated: the solution is, in both modes and to any order, by y0, t0, t1 and what f
/// captures. A trial that is not finite is rejected and a smaller step tried. `reason` says how it
/// ended: `end`; `event`; `max_iterations` after max_steps; `small_step` if a step of h_min is
/// rejected (of rk4, if a step is not finite); `not_finite` if y0, f(t0, y0), t0 or t1 is not.
/// Under vmap each lane takes its own steps, and the same ones beside any others.
/// Shapes: f: (t: float[], tree like y0) → tree like y0. t has the dtype to which those of y0
/// promote, f32 for f16 and bf16.
/// Throws: Error (dtype) unless y0 holds real floats; (shape), (dtype) or (tree) if f gives other
/// than that, or options are no scalars; (value) if options are out of range, or save_at, where it
/// is known, is not in order between t0 and t1. Of times that are known only when the program
/// runs, those outside give NaN.
/// Source: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4 to II.6;
/// Dormand and Prince 1980; Tsitouras 2011; Steinebach 2023.
template <class F, class T>
[[nodiscard]] auto odeint(F f, const T& y0, const OdeOptions& options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::SlopeCheck<F, T>>;
  VT_ASSERT_CALL("vt::odeint", Check);
  VT_ASSERT_ODE(Check);
  if constexpr (!Check::holds) return OdeSolution<detail::Refused>();
  else return detail::odeint_on_tree(f, static_cast<std::nullptr_t*>(nullptr), y0, options, where);
}
/// The same with an event: where event(t, y), a number, reaches 0 from one side. Each accepted step
/// at whose ends the function has different signs is searched, by the polynomial that lies between
/// them, to 4 ulp of the step; two events within a step are not seen. Event times, and y at them,
/// are differentiable by the implicit function theorem.
template <class F, class T, class G>
  requires(!std::is_same_v<G, CallSite>)
[[nodiscard]] auto odeint(F f, const T& y0, const OdeOptions& options, G event,
                          CallSite where = CallSite::here()) {
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::SlopeCheck<F, T>, detail::EventCheck<G, T>>;
  VT_ASSERT_CALL("vt::odeint", Check);
  VT_ASSERT_ODE(Check);
  if constexpr (!Check::holds) return OdeSolution<detail::Refused>();
  else return detail::odeint_on_tree(f, &event, y0, options, where);
}

}  // namespace vt
