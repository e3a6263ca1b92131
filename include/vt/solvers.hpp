// Solvers that are differentiated through the equation they solve, not through their iterations:
// linear_solve with cg and bicgstab; root with newton and fixed_point.
#pragma once

#include <vt/control.hpp>
#include <vt/custom.hpp>
#include <vt/solution.hpp>

namespace vt {

/// Options of cg, bicgstab, newton and fixed_point, each of which says what they mean for it.
struct IterationOptions {
  double tolerance = 0;             ///< 0: 1e-10 in f64, 1e-5 in f32
  std::int64_t max_iterations = 0;  ///< 0: a number that suits the method
};

namespace detail {

/// (matrix-vector product, right-hand side) → solution.
using FlatSolve =
    Function<std::vector<Tensor>(const FlatFunction& matvec, std::span<const Tensor> b)>;
/// (function, initial guess) → where it is zero; behind that may come numbers that say how it was
/// found, which have no derivative.
using FlatRootFinder =
    Function<std::vector<Tensor>(const FlatFunction& f, std::span<const Tensor> x)>;
/// What the transposed matrix is: another one, the same, or the conjugate.
enum class Transposed : std::uint8_t { other, same, conjugate };
/// `transpose_solve` is for another one, and may be empty: then the solution has no reverse mode.
std::vector<Tensor> linear_solve_flat(const FlatFunction& matvec, std::span<const Tensor> b,
                                      const FlatSolve& solve, const FlatSolve& transpose_solve,
                                      Transposed transposed, const char* name, CallSite);
std::vector<Tensor> root_flat(const FlatFunction& f, std::span<const Tensor> guess,
                              const FlatRootFinder& solve, const FlatSolve& tangent_solve,
                              const char* name, CallSite);
/// `preconditioner` may be empty.
FlatSolve cg_solver(const FlatFunction& preconditioner, const IterationOptions&, CallSite);
FlatSolve bicgstab_solver(const IterationOptions&, CallSite);
/// As linear_solve_flat, from solvers that report: they give x, then what report_of takes. They may
/// outlive the call.
SolutionFlat linear_report_flat(const FlatFunction& matvec, std::span<const Tensor> b,
                                const FlatSolve& solve, const FlatSolve& transpose_solve,
                                Transposed transposed, const char* name, CallSite);
/// Throws Error(value) unless the limits are positive, or 0.
void check_limits(const IterationOptions&, const char* name, CallSite);
/// All solvers give x, then what report_of takes.
FlatRootFinder newton_solver(const IterationOptions&, CallSite);
/// Repeats f(x) + x, that is the function whose fixed point is looked for.
FlatRootFinder repetition_solver(const IterationOptions&, CallSite);

/// A function of a tree like `like`, which gives such a tree, on flat leaves.
template <class F, class T>
FlatFunction on_leaves_of(F& f, const T& like, const ControlCall& call) {
  return [&f, &like, call](std::span<const Tensor> leaves) {
    return kept_structure(like, f(with_leaves(like, leaves)),
                          "the function must give a tree like its argument", "result", call);
  };
}
/// The function that a solver gets: on trees, by a flat one.
template <class T>
struct FunctionOfTrees {
  const FlatFunction& flat;
  const T& like;
  T operator()(const T& x) const { return with_leaves(like, flat(tree_leaves(x))); }
};
/// solve(function, tree), where that function takes and gives trees. It may outlive the call.
template <class Solve, class T>
auto solver_on_leaves(const Solve& solve, const T& like, const ControlCall& call) {
  return [solve = Callable(solve), like = hollow(like), call](const FlatFunction& f,
                                                              std::span<const Tensor> leaves) {
    return kept_structure(like, solve(FunctionOfTrees<T>{f, like}, with_leaves(like, leaves)),
                          "the solution must be a tree like the other side", "solution", call);
  };
}

/// A function of trees like `like` on flat leaves, which may outlive the call.
template <class F, class T>
FlatFunction kept_on_leaves(const F& f, const T& like, const ControlCall& call) {
  return [f = Callable(f), like = hollow(like), call](std::span<const Tensor> leaves) {
    return kept_structure(like, f(with_leaves(like, leaves)),
                          "the function must give a tree like its argument", "result", call);
  };
}
/// The change that f makes, which is 0 at its fixed point.
inline FlatFunction change_by(const FlatFunction& f) {
  return [f](std::span<const Tensor> x) {
    std::vector<Tensor> out = f(x);
    // Another shape is refused where it is looked at.
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i].defined() && out[i].shape() == x[i].shape()) out[i] = out[i] - x[i];
    return out;
  };
}
/// The first n of what a solver gives, which are x.
inline std::vector<Tensor> only_x(std::vector<Tensor> found, std::size_t n) {
  found.resize(n);
  return found;
}

/// A tree like `side`, of the leaves that solve(side, call) gives; solve is not compiled unless the
/// check holds.
template <class Check, class T, class Solve>
auto solved([[maybe_unused]] const T& side, [[maybe_unused]] const ControlCall& call,
            [[maybe_unused]] const Solve& solve) {
  if constexpr (!Check::holds) {
    return Refused();
  } else {
    const auto own = lifted(side);
    return with_leaves(own, solve(own, call));
  }
}

/// The same with a report: solve(side, call) gives all of it.
template <class Check, class T, class Solve>
auto reported([[maybe_unused]] const T& side, [[maybe_unused]] const ControlCall& call,
              [[maybe_unused]] const Solve& solve) {
  if constexpr (!Check::holds) {
    return Solution<Refused>();
  } else {
    const auto own = lifted(side);
    return solution_of(own, solve(own, call));
  }
}

/// Is F a function from trees like T to such trees?
template <class F, class T>
struct EquationCheck : GivenCheck<GivenBy<F, LiftedTree<T>>, LiftedTree<T>> {};
/// Can F solve such an equation?
template <class F, class T>
constexpr auto check_solve() {
  using Check =
      GivenCheck<GivenBy<F, FunctionOfTrees<LiftedTree<T>>, LiftedTree<T>>, LiftedTree<T>>;
  if constexpr (Check::fault == CallFault::parameters || Check::fault == CallFault::type)
    return CallFaultOf<CallFault::solver>();
  else return Check();
}
template <class F, class T>
struct SolveCheck : decltype(check_solve<F, T>()) {};

/// The assertions on what a solver is given, besides VT_ASSERT_CALL.
// clang-format off
#define VT_ASSERT_SOLVER(name, Check)                                                              \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::parameters> &&                  \
                    ::vt::detail::fits<Check, ::vt::detail::CallFault::type>,                      \
                name ": the function must take a tree like the second argument and return one "    \
                     "like it: write [&](vt::Tensor x) { return ...; }, for a matrix A "           \
                     "[&](vt::Tensor x) { return vt::matmul(A, x); }");                            \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::solver>,                        \
                name ": a solver must take the function and a tree like the second argument and "  \
                     "return one like it: write [](auto f, vt::Tensor b) { return x; }")
// clang-format on

}  // namespace detail

/// x with matvec(x) = b, found by `solve(matvec, b)`, your own function. Derivatives do not go
/// through solve: they come from the equation, in both modes and to any order, with respect to b
/// and what matvec captures. Reverse mode solves the transposed system by `transpose_solve(vecmat,
/// b)`, where vecmat multiplies by the transposed matrix. b: a tree; matvec: a linear function of
/// such trees.
/// Throws: Error if the trees or shapes differ, or if matvec is found not to be linear: its
/// derivative depends on its argument, or a number is added. A captured Tensor that is added is not
/// found: it may be zero.
/// Source: JAX `lax.custom_linear_solve`.
template <class MatVec, class T, class Solve, class TransposeSolve>
[[nodiscard]] auto linear_solve(MatVec matvec, const T& b, Solve solve,
                                TransposeSolve transpose_solve, CallSite where = CallSite::here()) {
  using Check =
      detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>,
                      detail::SolveCheck<Solve, T>, detail::SolveCheck<TransposeSolve, T>>;
  VT_ASSERT_CALL("vt::linear_solve", Check);
  VT_ASSERT_SOLVER("vt::linear_solve", Check);
  return detail::solved<Check>(
      b, {.name = "vt::linear_solve", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_solve_flat(detail::on_leaves_of(matvec, own, call), tree_leaves(own),
                                         detail::solver_on_leaves(solve, own, call),
                                         detail::solver_on_leaves(transpose_solve, own, call),
                                         detail::Transposed::other, call.name, call.where);
      });
}
/// Options of linear_solve without transpose_solve.
struct LinearSolveOptions {
  /// matvec is its own transpose (a Hermitian one of complex numbers is not), so that `solve`
  /// serves reverse mode too; else there is none
  bool symmetric = false;
};
/// The same without a solver of the transposed system: reverse mode then works only if the options
/// say that matvec is symmetric.
template <class MatVec, class T, class Solve>
[[nodiscard]] auto linear_solve(MatVec matvec, const T& b, Solve solve,
                                LinearSolveOptions options = {},
                                CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>,
                                detail::SolveCheck<Solve, T>>;
  VT_ASSERT_CALL("vt::linear_solve", Check);
  VT_ASSERT_SOLVER("vt::linear_solve", Check);
  return detail::solved<Check>(
      b, {.name = "vt::linear_solve", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_solve_flat(
            detail::on_leaves_of(matvec, own, call), tree_leaves(own),
            detail::solver_on_leaves(solve, own, call), {},
            options.symmetric ? detail::Transposed::same : detail::Transposed::other, call.name,
            call.where);
      });
}

/// x with matvec(x) = b by conjugate gradients, from x = 0, for a symmetric (Hermitian) positive
/// definite matrix. Stops when ‖b − matvec(x)‖ ≤ tolerance · ‖b‖, or after max_iterations (10 times
/// the number of unknowns). b: a tree of floats. Derivatives and Errors are those of linear_solve.
/// Under vmap each lane ends on its own.
/// Source: Hestenes and Stiefel 1952; JAX `scipy.sparse.linalg.cg`.
template <class MatVec, class T>
[[nodiscard]] auto cg(MatVec matvec, const T& b, IterationOptions options = {},
                      CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>>;
  VT_ASSERT_CALL("vt::cg", Check);
  VT_ASSERT_SOLVER("vt::cg", Check);
  return detail::solved<Check>(
      b, {.name = "vt::cg", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_solve_flat(detail::on_leaves_of(matvec, own, call), tree_leaves(own),
                                         detail::cg_solver({}, options, where), {},
                                         detail::Transposed::conjugate, call.name, call.where);
      });
}
/// The same with a preconditioner: a function that approximates the inverse of matvec, symmetric
/// and positive definite too.
template <class MatVec, class T, class Preconditioner>
  requires(!std::is_same_v<Preconditioner, IterationOptions> &&
           !std::is_same_v<Preconditioner, WithReport>)
[[nodiscard]] auto cg(MatVec matvec, const T& b, Preconditioner preconditioner,
                      IterationOptions options = {}, CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>,
                                detail::EquationCheck<Preconditioner, T>>;
  VT_ASSERT_CALL("vt::cg", Check);
  VT_ASSERT_SOLVER("vt::cg", Check);
  return detail::solved<Check>(
      b, {.name = "vt::cg", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_solve_flat(
            detail::on_leaves_of(matvec, own, call), tree_leaves(own),
            detail::cg_solver(detail::on_leaves_of(preconditioner, own, call), options, where), {},
            detail::Transposed::conjugate, call.name, call.where);
      });
}
/// The same with a report. `value` is the norm of the residual, as the method updates it;
/// `evaluations` are products with the matrix. `reason` is not_finite if b is not finite.
template <class MatVec, class T>
[[nodiscard]] auto cg(MatVec matvec, const T& b, WithReport, IterationOptions options = {},
                      CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>>;
  VT_ASSERT_CALL("vt::cg", Check);
  VT_ASSERT_SOLVER("vt::cg", Check);
  return detail::reported<Check>(
      b, {.name = "vt::cg", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_report_flat(detail::on_leaves_of(matvec, own, call), tree_leaves(own),
                                          detail::cg_solver({}, options, where), {},
                                          detail::Transposed::conjugate, call.name, call.where);
      });
}
/// The same with a preconditioner and a report.
template <class MatVec, class T, class Preconditioner>
[[nodiscard]] auto cg(MatVec matvec, const T& b, Preconditioner preconditioner, WithReport,
                      IterationOptions options = {}, CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>,
                                detail::EquationCheck<Preconditioner, T>>;
  VT_ASSERT_CALL("vt::cg", Check);
  VT_ASSERT_SOLVER("vt::cg", Check);
  return detail::reported<Check>(
      b, {.name = "vt::cg", .where = where}, [&](const auto& own, const auto& call) {
        return detail::linear_report_flat(
            detail::on_leaves_of(matvec, own, call), tree_leaves(own),
            detail::cg_solver(detail::kept_on_leaves(preconditioner, own, call), options, where),
            {}, detail::Transposed::conjugate, call.name, call.where);
      });
}
/// The same for any regular matrix, by stabilized biconjugate gradients. It breaks down where a
/// residual r is orthogonal to matvec(r), as with the zero block of a saddle point: then x stays as
/// it is until the last iteration. Use linear_solve with a solver of your own for such systems.
/// Source: van der Vorst 1992; JAX `scipy.sparse.linalg.bicgstab`.
template <class MatVec, class T>
[[nodiscard]] auto bicgstab(MatVec matvec, const T& b, IterationOptions options = {},
                            CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>>;
  VT_ASSERT_CALL("vt::bicgstab", Check);
  VT_ASSERT_SOLVER("vt::bicgstab", Check);
  return detail::solved<Check>(
      b, {.name = "vt::bicgstab", .where = where}, [&](const auto& own, const auto& call) {
        const detail::FlatSolve solve = detail::bicgstab_solver(options, where);
        return detail::linear_solve_flat(detail::on_leaves_of(matvec, own, call), tree_leaves(own),
                                         solve, solve, detail::Transposed::other, call.name,
                                         call.where);
      });
}
/// The same with a report, as cg.
template <class MatVec, class T>
[[nodiscard]] auto bicgstab(MatVec matvec, const T& b, WithReport, IterationOptions options = {},
                            CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<MatVec, T>>;
  VT_ASSERT_CALL("vt::bicgstab", Check);
  VT_ASSERT_SOLVER("vt::bicgstab", Check);
  return detail::reported<Check>(
      b, {.name = "vt::bicgstab", .where = where}, [&](const auto& own, const auto& call) {
        const detail::FlatSolve solve = detail::bicgstab_solver(options, where);
        return detail::linear_report_flat(detail::on_leaves_of(matvec, own, call), tree_leaves(own),
                                          solve, solve, detail::Transposed::other, call.name,
                                          call.where);
      });
}

/// x with f(x) = 0, found by `solve(f, guess)`, your own function. Derivatives do not go through
/// solve: they come from the implicit function theorem, ∂x = −(∂f/∂x)⁻¹ ∂f, with respect to what f
/// captures; with respect to the guess x is constant. The [n, n] matrix ∂f/∂x is built for that.
/// guess: a tree of floats; f gives such a tree.
/// Source: JAX `lax.custom_root`.
template <class F, class T, class Solve>
[[nodiscard]] auto root(F f, const T& guess, Solve solve, CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>,
                                detail::SolveCheck<Solve, T>>;
  VT_ASSERT_CALL("vt::root", Check);
  VT_ASSERT_SOLVER("vt::root", Check);
  return detail::solved<Check>(
      guess, {.name = "vt::root", .where = where}, [&](const auto& own, const auto& call) {
        return detail::root_flat(detail::on_leaves_of(f, own, call), tree_leaves(own),
                                 detail::solver_on_leaves(solve, own, call), {}, call.name,
                                 call.where);
      });
}
/// The same without that matrix: tangent_solve(product, b) gives v with product(v) = b, where
/// product(v) = ∂f/∂x · v. It must be linear in b.
template <class F, class T, class Solve, class TangentSolve>
  requires(!std::is_same_v<TangentSolve, CallSite>)
[[nodiscard]] auto root(F f, const T& guess, Solve solve, TangentSolve tangent_solve,
                        CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>,
                                detail::SolveCheck<Solve, T>, detail::SolveCheck<TangentSolve, T>>;
  VT_ASSERT_CALL("vt::root", Check);
  VT_ASSERT_SOLVER("vt::root", Check);
  return detail::solved<Check>(
      guess, {.name = "vt::root", .where = where}, [&](const auto& own, const auto& call) {
        return detail::root_flat(detail::on_leaves_of(f, own, call), tree_leaves(own),
                                 detail::solver_on_leaves(solve, own, call),
                                 detail::solver_on_leaves(tangent_solve, own, call), call.name,
                                 call.where);
      });
}
/// x with f(x) = 0 by Newton's method with whole steps (no line search). Stops when no element of
/// f(x) is greater than `tolerance` in magnitude, or after max_iterations (50). Each iteration
/// solves with the whole Jacobian. Gives the last x where it does not converge, and NaN once the
/// Jacobian is singular. Derivatives as root.
template <class F, class T>
[[nodiscard]] auto newton(F f, const T& guess, IterationOptions options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>>;
  VT_ASSERT_CALL("vt::newton", Check);
  VT_ASSERT_SOLVER("vt::newton", Check);
  return detail::solved<Check>(
      guess, {.name = "vt::newton", .where = where}, [&](const auto& own, const auto& call) {
        const std::vector<Tensor> start = tree_leaves(own);
        return detail::only_x(
            detail::root_flat(detail::on_leaves_of(f, own, call), start,
                              detail::newton_solver(options, where), {}, call.name, call.where),
            start.size());
      });
}
/// The same with a report. `value` is ‖f(x)‖. `reason` is not_finite if f(guess) is not finite.
template <class F, class T>
[[nodiscard]] auto newton(F f, const T& guess, WithReport, IterationOptions options = {},
                          CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>>;
  VT_ASSERT_CALL("vt::newton", Check);
  VT_ASSERT_SOLVER("vt::newton", Check);
  return detail::reported<Check>(
      guess, {.name = "vt::newton", .where = where}, [&](const auto& own, const auto& call) {
        const std::vector<Tensor> start = tree_leaves(own);
        return detail::report_of(
            detail::root_flat(detail::on_leaves_of(f, own, call), start,
                              detail::newton_solver(options, where), {}, call.name, call.where),
            start.size());
      });
}
/// x with f(x) = x, by x ← f(x). Stops when no element changes by more than `tolerance`, or after
/// max_iterations (1000). Derivatives as root.
template <class F, class T>
[[nodiscard]] auto fixed_point(F f, const T& guess, IterationOptions options = {},
                               CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>>;
  VT_ASSERT_CALL("vt::fixed_point", Check);
  VT_ASSERT_SOLVER("vt::fixed_point", Check);
  return detail::solved<Check>(
      guess, {.name = "vt::fixed_point", .where = where}, [&](const auto& own, const auto& call) {
        const std::vector<Tensor> start = tree_leaves(own);
        return detail::only_x(
            detail::root_flat(detail::change_by(detail::on_leaves_of(f, own, call)), start,
                              detail::repetition_solver(options, where), {}, call.name, call.where),
            start.size());
      });
}
/// The same with a report. `value` is ‖f(x) − x‖. `reason` is not_finite if f(guess) is not finite.
template <class F, class T>
[[nodiscard]] auto fixed_point(F f, const T& guess, WithReport, IterationOptions options = {},
                               CallSite where = CallSite::here()) {
  using Check = detail::FirstOf<detail::TreesCheck<T>, detail::EquationCheck<F, T>>;
  VT_ASSERT_CALL("vt::fixed_point", Check);
  VT_ASSERT_SOLVER("vt::fixed_point", Check);
  return detail::reported<Check>(
      guess, {.name = "vt::fixed_point", .where = where}, [&](const auto& own, const auto& call) {
        const std::vector<Tensor> start = tree_leaves(own);
        return detail::report_of(
            detail::root_flat(detail::change_by(detail::on_leaves_of(f, own, call)), start,
                              detail::repetition_solver(options, where), {}, call.name, call.where),
            start.size());
      });
}

}  // namespace vt
