// Minima of functions, of any tree and of one number, and roots of functions of one number:
// minimize, brent, golden, bisect and brentq.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include <vt/solution.hpp>

namespace vt {

/// The method of minimize.
enum class MinimizeMethod : std::uint8_t {
  l_bfgs,  ///< L-BFGS: needs gradients, for any number of parameters
  newton,  ///< Newton's method in a trust region: with the Hessian, for few parameters
};
/// Options of minimize. It stops at the first tolerance that is met; 0 turns one off. A default
/// depends on the precision: f32 if a parameter or the function is f32. Only accepted steps are
/// judged.
struct MinimizeOptions {
  MinimizeMethod method = MinimizeMethod::l_bfgs;
  /// stop when a step lowers the value, as predicted and in fact, by at most ftol · |value|; the
  /// prediction of l_bfgs is half the slope along the step; 1e-18 in f64, 1e-9 in f32
  std::optional<Param<double>> ftol = std::nullopt;
  /// stop when no parameter changes by more than xtol · (greatest |parameter|)
  Param<double> xtol = 0.0;
  /// stop when no element of the gradient is greater than gtol in magnitude; 1e-8 in f64, 1e-4 in
  /// f32
  std::optional<Param<double>> gtol = std::nullopt;
  Param<std::int64_t> max_iterations = 10000;  ///< accepted steps
  /// how many steps l_bfgs remembers; at most n + 2 for n parameters
  Param<std::int64_t> history = 6;
  /// in units of the parameters. l_bfgs: the first step is no longer than this and than the
  /// gradient; newton: the first radius of the trust region
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

/// Parameters x that minimise f, from a guess: a local minimum, if there are several. A step is
/// accepted if it fulfils the strong Wolfe conditions (l_bfgs) or lowers the value about as much as
/// the quadratic model predicts (newton). A trial that is not finite is rejected as too long. It
/// does not throw for not converging: see `converged` and `reason`. `iterations` are accepted
/// steps; `evaluations` are those of value and gradient together. Under vmap each lane ends on its
/// own, and no lane waits for the line search of another.
/// Derivative: of x and value with respect to what f captures, in both modes and to any order, by
/// the implicit function theorem for "the gradient is 0". The [n, n] matrix of second derivatives
/// is built for that; where it is singular, derivatives are NaN or arbitrary. With respect to the
/// guess x is constant. Where a lane did not converge, the gradient counts as held at the value
/// that it has there.
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
  using Check = detail::FirstOf<
      detail::TreesCheck<T>,
      detail::UnlessNumbers<detail::GivenCheck<detail::GivenBy<F, Tree>, Tensor>, T>>;
  static_assert(detail::fits<Check, detail::CallFault::parameters> &&
                    detail::fits<Check, detail::CallFault::type>,
                "vt::minimize: the function must take a tree like the guess and return one "
                "vt::Tensor: write [&](vt::Tensor x) { return vt::sum(x * x); }");
  VT_ASSERT_NO_NUMBERS("vt::minimize", "the guess", Check);
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

template <class F, class N>
auto minimize(F, std::initializer_list<N>, MinimizeOptions = {}) {
  static_assert(!sizeof(N),
                "vt: the guess is a vt::Tensor or a tree of them: "
                "vt::minimize(f, vt::tensor({1.0, 2.0}))");
}
template <class F, class T, std::same_as<MinimizeMethod> M>
auto minimize(F, const T&, M) {
  static_assert(!sizeof(M),
                "vt: options have names: "
                "vt::minimize(f, guess, {.method = vt::MinimizeMethod::newton})");
}

/// A root: x between a and b with f(x) = 0, by bisection. f(a) and f(b) must differ in sign; else
/// the reason is no_bracket and x the end with the smaller |f|. `value` is |f(x)|; `iterations` are
/// evaluations without those at the ends. An infinite f(x) counts by its sign; where f(x) is NaN,
/// the next trial is nearer to the end with the smaller |f|. It does not throw for not converging.
/// Under vmap each lane ends on its own. x has derivatives with respect to what f captures, in both
/// modes and to any order, by ∂x = −∂f / f′(x); with respect to a and b it is constant.
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
/// The same by Brent's method: secant steps and inverse quadratic interpolation, and bisection
/// where these do not converge fast enough.
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

/// A minimum: x between a and b where f is least, by golden-section search. A local one, if there
/// are several; it may lie at an end, though f is not evaluated there. NaN counts as infinite; if
/// the first value is not finite, the reason is not_finite. `iterations` are evaluations without
/// the first. It does not throw for not converging. Under vmap each lane ends on its own. x and
/// value have derivatives with respect to what f captures, in both modes and to any order, by f′(x)
/// = 0; a minimum at an end moves with the end.
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
/// The same from a bracket: `middle` lies between a and b, and f is smaller there than at both. f
/// is evaluated at all three. Else the reason is no_bracket, and x the best of the three.
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
/// As golden, by Brent's method: the minimum of a parabola through the last points, and golden
/// sections where these steps do not become shorter.
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
/// The same from a bracket, as golden.
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
