// Minima of functions, of any tree and of one number, and roots of functions of one number:
// minimize, brent, golden, bisect and brentq.
#pragma once

#include <optional>

#include <vt/solution.hpp>

namespace vt {

/// How minimize finds its way.
enum class MinimizeMethod : std::uint8_t {
  l_bfgs,  ///< from the last gradients: for any number of parameters
  newton,  ///< with the second derivative, an [n, n] matrix, in a trust region: for few parameters
};
/// Options of minimize. A tolerance of 0 is off; where a comment has two values, the first is for
/// f64, the second where a parameter or the function is f32. All are judged on accepted steps only.
struct MinimizeOptions {
  MinimizeMethod method = MinimizeMethod::l_bfgs;
  /// ends when half the slope along the next step, which is what a whole step should gain, and what
  /// it did gain are at most ftol times the value; 1e-18, 1e-9
  std::optional<Param<double>> ftol = std::nullopt;
  /// ends when no parameter changes by more than xtol times the greatest parameter
  Param<double> xtol = 0.0;
  /// ends when no element of the gradient is greater than gtol in magnitude; 1e-8, 1e-4
  std::optional<Param<double>> gtol = std::nullopt;
  Param<std::int64_t> max_iterations = 10000;  ///< steps that are accepted
  /// how many steps l_bfgs remembers, but no more than there are parameters, and two
  Param<std::int64_t> history = 6;
  /// l_bfgs: the first step is at most so long, and no longer than the gradient; newton: the first
  /// radius of the trust region
  Param<double> initial_step = 1.0;
};

/// Options of bisect, brentq, golden and brent. They end when x is known to ± (xtol + rtol |x|).
struct BracketOptions {
  /// roots: 2e-12, 1e-6 of f32; minima: 1e-11, 1e-6
  std::optional<Param<double>> xtol = std::nullopt;
  /// roots: 4 times the distance from 1 to the next number; minima: the root of that distance,
  /// as f differs by less than its rounding errors nearer to the minimum
  std::optional<Param<double>> rtol = std::nullopt;
  Param<std::int64_t> max_iterations = 2000;
};

namespace detail {

enum class RootMethod : std::uint8_t { halves, brent };
enum class IntervalMethod : std::uint8_t { golden, brent };
/// `f`: one scalar → one scalar.
SolutionFlat bracketed_root(const FlatFunction& f, const Tensor& a, const Tensor& b, RootMethod,
                            const BracketOptions&, const ControlCall&);
/// `middle` may be empty: then there is only an interval.
SolutionFlat interval_minimum(const FlatFunction& f, const Tensor& a, const Tensor& middle,
                              const Tensor& b, IntervalMethod, const BracketOptions&,
                              const ControlCall&);

SolutionFlat minimize_flat(const FlatFunction& f, std::span<const Tensor> guess,
                           const MinimizeOptions&, const FitCall&);

/// Is F a function of one Tensor that gives one?
template <class F>
struct NumberCheck : GivenCheck<GivenBy<F, Tensor>, Tensor> {};
template <class F>
FlatFunction on_number(F& f) {
  return [&f](std::span<const Tensor> x) { return std::vector<Tensor>{Tensor(call(f, x[0]))}; };
}
/// What a solver with a function of a number gives: solve(f on flat leaves).
template <class F, class Solve>
Solution<Tensor> number_solution([[maybe_unused]] F& f, [[maybe_unused]] const Solve& solve) {
  if constexpr (!NumberCheck<F>::holds) return {};
  else return solution_of(Tensor(), solve(on_number(f)));
}
// clang-format off
#define VT_ASSERT_NUMBER(name)                                                                     \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::parameters> &&                  \
                    ::vt::detail::fits<Check, ::vt::detail::CallFault::type>,                      \
                name ": the function must take one vt::Tensor and return one: write "              \
                     "[&](vt::Tensor x) { return vt::cos(x) - x; }");                              \
  VT_ASSERT_CALL(name, Check)
// clang-format on

}  // namespace detail

/// The parameters x where f is least, from a guess: a local minimum, if f has several. A step is
/// accepted if it fulfils the strong conditions of Wolfe (l_bfgs) or is as good as the quadratic
/// model says (newton). A trial that is not finite is a step that is too long. Never throws for not
/// converging: the solution says why it ended; iterations are the accepted steps, evaluations those
/// of value and gradient together. Under vmap each lane ends on its own, and no lane waits for the
/// line search of another.
/// x is differentiable by what f captures, in both modes and to any order, by the condition that
/// the gradient is 0; so is the value. The matrix of second derivatives is built for that. By the
/// guess x is constant. Where a lane did not converge the derivative is that of the x at which the
/// gradient stays what it is.
/// Shapes: guess: a tree of f32 or f64; f gives a scalar.
/// Throws: Error (value) for a negative tolerance, a limit or a history below 1, an initial step
/// that is not above 0; Error (shape, dtype) if f gives no real scalar.
/// Source: Nocedal and Wright 2006, Numerical Optimization, chapters 3, 4 and 7; Byrd, Nocedal and
/// Schnabel 1994 for the products of pairs; Hager and Zhang 2005 for values that differ too little
/// to be compared; Moré and Sorensen 1983 for the step in a region.
template <class F, class T>
[[nodiscard]] auto minimize(F f, const T& guess, MinimizeOptions options = {},
                            CallSite where = CallSite::here()) {
  using Tree = detail::LiftedTree<T>;
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::GivenCheck<detail::GivenBy<F, Tree>, Tensor>>;
  static_assert(detail::fits<Check, detail::CallFault::parameters> &&
                    detail::fits<Check, detail::CallFault::type>,
                "vt::minimize: the function must take a tree like the guess and return one "
                "vt::Tensor: write [&](vt::Tensor x) { return vt::sum(x * x); }");
  VT_ASSERT_CALL("vt::minimize", Check);
  if constexpr (!Check::holds) {
    return Solution<detail::Refused>();
  } else {
    const Tree own = detail::lifted(guess);
    const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
      return std::vector<Tensor>{Tensor(detail::call(f, detail::with_leaves(own, leaves)))};
    };
    return detail::solution_of(own, detail::minimize_flat(flat, tree_leaves(own), options,
                                                          {{.name = "vt::minimize", .where = where},
                                                           detail::leaf_paths(own)}));
  }
}

/// x between a and b with f(x) = 0, by halving the interval; f(a) and f(b) must differ in sign,
/// else the reason is no_bracket and x the end where |f| is less. value is |f(x)|, iterations the
/// evaluations but for those at the ends. An infinite f(x) counts by its sign; where f(x) is NaN,
/// the next trial is nearer to the end with the lesser |f|. Never throws for not converging. Under
/// vmap each lane ends on its own. x is differentiable by what f captures, in both modes and to any
/// order, by ∂x = −∂f / f′(x); by a and b it is constant.
/// Shapes: a, b: f32[] or f64[]; f gives a scalar.
/// Throws: Error (dtype, shape) for another a, b or result of f; Error (value) for a negative
/// tolerance or an iteration limit below 1.
/// Source: SciPy `optimize.bisect`.
template <class F>
[[nodiscard]] auto bisect(F f, const Tensor& a, const Tensor& b, BracketOptions options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::bisect");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::bracketed_root(flat, a, b, detail::RootMethod::halves, options,
                                  {.name = "vt::bisect", .where = where});
  });
}
/// The same by Brent's method, which goes where a line or an inverse parabola through the last
/// points is zero as long as that converges faster than halving.
/// Source: Brent 1973, Algorithms for Minimization Without Derivatives, chapter 4; SciPy
/// `optimize.brentq`.
template <class F>
[[nodiscard]] auto brentq(F f, const Tensor& a, const Tensor& b, BracketOptions options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::brentq");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::bracketed_root(flat, a, b, detail::RootMethod::brent, options,
                                  {.name = "vt::brentq", .where = where});
  });
}

/// x between a and b where f is least, by golden sections of the interval: a local minimum, if f
/// has several; it may be one of the ends, which are not evaluated. Values that are NaN count as
/// infinite; a first one that is not finite ends with not_finite. iterations are the evaluations
/// but for the first. Never throws for not converging. Under vmap each lane ends on its own. x is
/// differentiable by what f captures, in both modes and to any order, by f′(x) = 0, and so is
/// value; a minimum at an end moves with the end.
/// Shapes: a, b: f32[] or f64[]; f gives a scalar.
/// Throws: Error (dtype, shape) for another a, b or result of f; Error (value) for a negative
/// tolerance or an iteration limit below 1.
/// Source: Kiefer 1953; SciPy `optimize.golden`.
template <class F>
[[nodiscard]] auto golden(F f, const Tensor& a, const Tensor& b, BracketOptions options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::golden");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::interval_minimum(flat, a, {}, b, detail::IntervalMethod::golden, options,
                                    {.name = "vt::golden", .where = where});
  });
}
/// The same from a bracket: a point between a and b where f is less than at both, which are
/// evaluated too; else the reason is no_bracket and x the best so far.
template <class F, std::convertible_to<Tensor> Middle>
[[nodiscard]] auto golden(F f, const Tensor& a, const Middle& middle, const Tensor& b,
                          BracketOptions options = {}, CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::golden");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::interval_minimum(flat, a, middle, b, detail::IntervalMethod::golden, options,
                                    {.name = "vt::golden", .where = where});
  });
}
/// As golden, by Brent's method, which goes where a parabola through the last points is least as
/// long as its steps become shorter.
/// Source: Brent 1973, Algorithms for Minimization Without Derivatives, chapter 5; SciPy
/// `optimize.fminbound`.
template <class F>
[[nodiscard]] auto brent(F f, const Tensor& a, const Tensor& b, BracketOptions options = {},
                         CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::brent");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::interval_minimum(flat, a, {}, b, detail::IntervalMethod::brent, options,
                                    {.name = "vt::brent", .where = where});
  });
}
/// The same from a bracket, as golden's.
/// Source: SciPy `optimize.brent`.
template <class F, std::convertible_to<Tensor> Middle>
[[nodiscard]] auto brent(F f, const Tensor& a, const Middle& middle, const Tensor& b,
                         BracketOptions options = {}, CallSite where = CallSite::here()) {
  using Check = detail::NumberCheck<F>;
  VT_ASSERT_NUMBER("vt::brent");
  return detail::number_solution(f, [&](const auto& flat) {
    return detail::interval_minimum(flat, a, middle, b, detail::IntervalMethod::brent, options,
                                    {.name = "vt::brent", .where = where});
  });
}

}  // namespace vt
