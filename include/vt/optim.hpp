// Nonlinear least squares and curve fits, with derivatives by the implicit function theorem, not
// through the iterations.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vt/solution.hpp>
#include <vt/vmap.hpp>

namespace vt {

/// How much a residual r counts, as a function ρ of z = (r / loss_scale)². What is minimised is the
/// sum of ½ loss_scale² ρ(z).
/// Source: SciPy `optimize.least_squares`.
enum class Loss : std::uint8_t {
  linear,   ///< z: the sum of squares
  huber,    ///< z up to 1, then 2 √z − 1
  cauchy,   ///< log(1 + z)
  soft_l1,  ///< 2 √(1 + z) − 2
};
/// How least_squares solves the linear system of a step. J is the Jacobian of the residuals.
enum class LeastSquaresMethod : std::uint8_t {
  normal_equations,  ///< a Cholesky factor of JᵀJ, each column of J scaled to length 1: fast
  qr,                ///< QR of J: for columns of J that are nearly linearly dependent
};

/// A value for each element of the parameters: one number for all, or a tree like the parameters,
/// whose leaves broadcast to theirs.
class PerParameter {
 public:
  template <class T>
    requires(!std::is_same_v<T, PerParameter> && detail::TreesCheck<T>::holds)
  PerParameter(const T& values) {
    const auto tree = detail::lifted(values);
    leaves_ = tree_leaves(tree);
    paths_ = detail::leaf_paths(tree);
  }
  /// The Tensors of the tree, and the path to each.
  [[nodiscard]] const std::vector<Tensor>& leaves() const { return leaves_; }
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<Tensor> leaves_;
  std::vector<std::string> paths_;
};

/// Options of least_squares. It stops at the first tolerance that is met; 0 turns one off. A
/// default depends on the precision: f32 if parameters or residuals are f32. Only accepted steps
/// are judged, by xtol also those that rounding keeps from lowering the value; and by ftol and xtol
/// only those that are not short because of much damping.
struct LeastSquaresOptions {
  /// stop when a step lowers the value, as predicted and in fact, by at most ftol · value; 1e-18 in
  /// f64, 1e-9 in f32
  std::optional<Param<double>> ftol = std::nullopt;
  /// stop when a step changes each parameter by at most xtol · |parameter|, or so little that the
  /// residuals change by at most xtol · ‖r‖; 1e-10 in f64, 1e-5 in f32
  std::optional<Param<double>> xtol = std::nullopt;
  /// stop when the cosine of the angle between r and each column of J is at most gtol; parameters
  /// that a bound holds do not count; 1e-12 in f64, 1e-5 in f32
  std::optional<Param<double>> gtol = std::nullopt;
  Param<std::int64_t> max_iterations = 2000;  ///< tried steps, accepted or not
  Loss loss = Loss::linear;
  /// in units of the residuals: much smaller ones count as squares, larger ones less
  Param<double> loss_scale = 1.0;
  std::optional<PerParameter> lower = std::nullopt;  ///< bounds; no trial lies outside
  std::optional<PerParameter> upper = std::nullopt;
  std::optional<PerParameter> fixed = std::nullopt;  ///< bools; true: stays at the guess
  LeastSquaresMethod method = LeastSquaresMethod::normal_equations;
  /// of the first step, relative to the squared lengths of J's columns; 0: Gauss–Newton, which
  /// damps only after a rejected step
  Param<double> damping = 1e-3;
  /// geodesic acceleration: where the last step was not as the linear model said, a second
  /// derivative of the residuals along the step corrects it
  bool acceleration = true;
};

/// Options of curve_fit.
struct CurveFitOptions {
  /// standard deviations of y: a number, or of the shape of y; not given: 1
  std::optional<Tensor> sigma = std::nullopt;
  /// true: sigma is in the units of y, and the covariance follows from it alone. false: only the
  /// ratios of sigma count, and the covariance is scaled by the reduced χ² of the fit
  bool absolute_sigma = false;
  LeastSquaresOptions solver = {};
};

/// What curve_fit gives. Under vmap each lane has its own.
template <class T>
struct CurveFit {
  T x;                 ///< the parameters
  T standard_errors;   ///< of each, √ of the covariance's diagonal
  Tensor covariance;   ///< float[n, n], parameters in the order of tree_leaves; 0 of fixed ones
  Tensor value;        ///< the minimised sum, half of χ² without a loss: float[]
  Tensor iterations;   ///< tried steps: i64[]
  Tensor evaluations;  ///< of the model at all points, with derivatives: i64[]
  Tensor converged;    ///< bool[]
  /// number of the StopReason: i32[]; singular if the solver converged, but the points do not
  /// determine all parameters
  Tensor reason;
};

namespace detail {

struct FitFlat : SolutionFlat {
  // of curve_fit
  std::vector<Tensor> standard_errors = {};
  Tensor covariance = {};
};
/// `plus`: (x…, delta) → x…, delta being a vector of `dimension` elements; may be empty.
FitFlat least_squares_flat(const FlatFunction& residuals, std::span<const Tensor> guess,
                           const FlatFunction& plus, std::int64_t dimension,
                           const LeastSquaresOptions&, const FitCall&);
/// `model`: parameters → what y should be.
FitFlat curve_fit_flat(const FlatFunction& model, const Tensor& y, std::span<const Tensor> guess,
                       const CurveFitOptions&, const FitCall&);
/// The model at a point. An Error in it says besides what the model was given.
Tensor model_at(std::span<const Tensor> parameters, std::span<const Tensor> point,
                FunctionRef<Tensor()> model);
/// Throws Error(shape) unless axis 0 of all leaves is as long as that of y.
void check_points(std::span<const Tensor> x, const Tensor& y, const FitCall&);

/// Is F a function of trees A… that gives a tree, for instance any number of residuals?
template <class F, class... A>
constexpr auto check_model() {
  using Given = GivenBy<F, A...>;
  if constexpr (std::is_same_v<Given, NotCallable>) return CallFaultOf<CallFault::parameters>();
  else return ResultCheck<LiftedTree<Given>>();
}
template <class F, class... A>
struct ModelCheck : decltype(check_model<F, A...>()) {};

/// A function of trees like `like` on flat leaves, which gives any tree.
template <class F, class T>
FlatFunction on_parameters(F& f, const T& like) {
  return [&f, &like](std::span<const Tensor> leaves) {
    return tree_leaves(lifted(call(f, with_leaves(like, leaves))));
  };
}
}  // namespace detail

/// Nonlinear least squares by the method of Levenberg and Marquardt: parameters x that minimise
/// ½ Σ r², r being all elements of residuals(x); with options.loss the sum that Loss describes. A
/// local minimum, if there are several. It does not throw for not converging: see `converged` and
/// `reason`. `iterations` are tried steps; `evaluations` are those of residuals and Jacobian
/// together, and those of the acceleration. Under vmap each lane ends on its own, and takes the
/// steps that it takes alone, up to rounding errors in sums.
/// Derivative: of x and value with respect to what residuals and bounds capture and to fixed
/// elements of the guess, in both modes and to any order, by the implicit function theorem for "the
/// gradient is 0". The [n, n] matrix of second derivatives is built for that; where it is singular,
/// derivatives are NaN or arbitrary. With respect to the rest of the guess x is constant. Where a
/// lane did not converge, the gradient counts as held at the value that it has there.
/// Shapes: guess: a tree of f32 or f64; residuals gives a tree of floats of any shapes.
/// Throws: Error (value) for a negative tolerance, an iteration limit below 1, a lower bound above
/// an upper one where both are known; Error (shape, tree) for bounds that do not fit the guess.
/// Source: Nielsen 1999, Damping Parameter in Marquardt's Method; Moré 1978 for the scaling;
/// Transtrum and Sethna 2012, Improvements to the Levenberg–Marquardt Algorithm, for the
/// acceleration; Hager and Zhang 2005 for values that differ too little to be compared.
template <class F, class T>
[[nodiscard]] auto least_squares(F residuals, const T& guess, LeastSquaresOptions options = {},
                                 CallSite where = CallSite::here()) {
  using Tree = detail::LiftedTree<T>;
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::UnlessNumbers<detail::ModelCheck<F, Tree>, T>>;
  static_assert(detail::fits<Check, detail::CallFault::parameters>,
                "vt::least_squares: the residuals must take a tree like the guess: write "
                "[&](vt::Tensor x) { return model(x) - y; }");
  VT_ASSERT_NO_NUMBERS("vt::least_squares", "the guess", Check);
  VT_ASSERT_CALL("vt::least_squares", Check);
  if constexpr (!Check::holds) {
    return Solution<detail::Refused>();
  } else {
    const Tree own = detail::lifted(guess);
    return detail::solution_of(
        own, detail::least_squares_flat(
                 detail::on_parameters(residuals, own), tree_leaves(own), {}, 0, options,
                 {{.name = "vt::least_squares", .where = where}, detail::leaf_paths(own)}));
  }
}
template <class F, class N>
auto least_squares(F, std::initializer_list<N>, LeastSquaresOptions = {}) {
  static_assert(!sizeof(N),
                "vt: the guess is a vt::Tensor or a tree of them: "
                "vt::least_squares(f, vt::tensor({1.0, 2.0}))");
}
/// The same for parameters on a manifold, such as poses: plus(x, delta) is x moved by delta, a
/// vector of `dimension` elements, and plus(x, 0) is x. Steps are found in delta, and J is the
/// derivative by delta at 0. options.fixed is then a mask of delta, bool[dimension]. There are no
/// bounds.
/// Throws: Error (value) if there are bounds; Error (tree, shape) if plus does not give a tree like
/// x.
template <class F, class T, class Plus>
  requires(!std::is_same_v<Plus, LeastSquaresOptions>)
[[nodiscard]] auto least_squares(F residuals, const T& guess, Plus plus,
                                 Param<std::int64_t> dimension, LeastSquaresOptions options = {},
                                 CallSite where = CallSite::here()) {
  using Tree = detail::LiftedTree<T>;
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::UnlessNumbers<detail::ModelCheck<F, Tree>, T>>;
  using Next = detail::CheckedNext<Check::holds,
                                   detail::GivenCheck<detail::GivenBy<Plus, Tree, Tensor>, Tree>>;
  static_assert(detail::fits<Check, detail::CallFault::parameters>,
                "vt::least_squares: the residuals must take a tree like the guess: write "
                "[&](Pose x) { return model(x) - y; }");
  static_assert(detail::fits<Next, detail::CallFault::parameters> &&
                    detail::fits<Next, detail::CallFault::type>,
                "vt::least_squares: plus must take a tree like the guess and a vt::Tensor, and "
                "return one like the guess: write [](Pose x, vt::Tensor delta) { return x; }");
  VT_ASSERT_NO_NUMBERS("vt::least_squares", "the guess", Check);
  VT_ASSERT_CALL("vt::least_squares", Check);
  if constexpr (!Check::holds || !Next::holds) {
    return Solution<detail::Refused>();
  } else {
    const Tree own = detail::lifted(guess);
    const detail::ControlCall call{.name = "vt::least_squares", .where = where};
    const detail::FlatFunction moved = [&](std::span<const Tensor> in) {
      const std::size_t n = in.size() - 1;
      return detail::kept_structure(own, plus(detail::with_leaves(own, in.first(n)), in[n]),
                                    "plus must give a tree like the guess", "result", call);
    };
    return detail::solution_of(
        own,
        detail::least_squares_flat(detail::on_parameters(residuals, own), tree_leaves(own), moved,
                                   dimension, options, {call, detail::leaf_paths(own)}));
  }
}

/// Fits y ≈ model(parameters, x) by least_squares with the residuals (model − y) / sigma, and gives
/// the covariance and standard errors of the parameters. The model is written for one point: x, a
/// tree, and y hold the points along axis 0. Derivatives are those of least_squares. The covariance
/// is (JᵀJ)⁻¹ of the free parameters, those that are not fixed (one at a bound counts as free), J
/// being that of the residuals at the solution. Unless options.absolute_sigma it is multiplied by
/// the reduced χ², 2 value / (number of elements of y − number of free parameters). Where it does
/// not exist, because J is singular or y has no more elements than there are free parameters, all
/// of it is infinite, and the reason is singular. Shapes: y [m, …], model of one point […]. Throws:
/// Error (shape) if x or the model do not fit y; Error (value) as least_squares. Source: SciPy
/// `optimize.curve_fit`.
template <class Model, class X, class T>
[[nodiscard]] auto curve_fit(Model model, const X& x, const Tensor& y, const T& guess,
                             CurveFitOptions options = {}, CallSite where = CallSite::here()) {
  using Tree = detail::LiftedTree<T>;
  using Check = detail::FirstOf<
      detail::TreesCheck<X, T>,
      detail::UnlessNumbers<detail::ModelCheck<Model, Tree, detail::Owned<X>>, X, T>>;
  using Given = detail::GivenBy<Model, Tree, detail::Owned<X>>;
  static_assert(detail::fits<Check, detail::CallFault::parameters>,
                "vt::curve_fit: the model must take a tree like the guess and one point: write "
                "[](vt::Tensor parameters, vt::Tensor x) { return y; }");
  VT_ASSERT_NO_NUMBERS("vt::curve_fit", "x or the guess", Check);
  VT_ASSERT_CALL("vt::curve_fit", Check);
  constexpr bool one = !Check::holds || std::is_same_v<detail::LiftedTree<Given>, Tensor>;
  static_assert(detail::same_type<Given, Tensor, one>,
                "vt::curve_fit: the model must return one vt::Tensor: of several measurements of a "
                "point make one with vt::stack or vt::concatenate");
  if constexpr (!Check::holds || !one) {
    return CurveFit<detail::Refused>();
  } else {
    const Tree own = detail::lifted(guess);
    const auto points = detail::owned(x);
    const detail::FitCall fit{{.name = "vt::curve_fit", .where = where}, detail::leaf_paths(own)};
    detail::check_points(tree_leaves(points), y, fit);
    const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
      const Tree parameters = detail::with_leaves(own, leaves);
      const auto of_point = [&](const auto& point) {
        return detail::model_at(leaves, tree_leaves(point),
                                [&] { return Tensor(detail::call(model, parameters, point)); });
      };
      return std::vector<Tensor>{vmap(of_point, {}, where)(points)};
    };
    detail::FitFlat found = detail::curve_fit_flat(flat, y, tree_leaves(own), options, fit);
    return CurveFit<Tree>{detail::with_leaves(own, found.x),
                          detail::with_leaves(own, found.standard_errors),
                          found.covariance,
                          found.value,
                          found.iterations,
                          found.evaluations,
                          found.converged,
                          found.reason};
  }
}

}  // namespace vt
