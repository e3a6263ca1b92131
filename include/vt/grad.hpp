// Derivatives: jvp, linearize, vjp, grad, value_and_grad, jacobians and hessian.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/detail/derivatives.hpp>

namespace vt {

/// The type of vt::has_aux.
struct HasAux {
  constexpr explicit HasAux(int) {}
};
/// Says that the function returns pair(value, other): `other` is handed back, not differentiated.
inline constexpr HasAux has_aux{0};

/// In which direction a Jacobian is computed.
using JacobianMode = detail::JacobianMode;
/// Options of grad and value_and_grad.
struct GradOptions {
  /// a complex function of complex arguments with one complex derivative, not two real ones
  bool holomorphic = false;
};
/// Options of jacobian, jacfwd, jacrev, batch_jacobian and hessian.
struct JacobianOptions {
  /// rows (reverse) or columns (forward) at a time; 0: all
  Param<std::int64_t> chunk = 0;
  /// bytes; 0: none. `chunk` is chosen so that arguments, results and the intermediate values of
  /// one chunk stay below it
  Param<std::int64_t> memory_limit = 0;
  /// a complex function of complex arguments with one complex derivative, not two real ones
  bool holomorphic = false;
  /// of jacobian and batch_jacobian: whichever needs fewer passes
  JacobianMode mode = JacobianMode::automatic;
};

/// The gradient of a scalar function with respect to arguments `I…` (the first if none is given): a
/// tree like the argument; a std::tuple of them for several. An argument to differentiate by must
/// hold a Tensor. A bare floating-point number counts as one if the parameter is a Tensor or
/// `auto`. Numbers inside structs and containers are constants: the gradient has 0 in their place.
/// So it is in all derivatives below. Arguments that are not differentiated may be of any type: one
/// that is no tree, as a class with private members or a std::unique_ptr, is passed by reference,
/// and Tensors in it are constants. Of a real function of complex z = x + iy the gradient is
/// ∂f/∂x − i·∂f/∂y, so that f decreases along minus its conjugate; of a complex function of complex
/// numbers, with `{.holomorphic = true}`, the complex derivative.
/// Throws: Error if the value is not a float scalar (a complex one, if holomorphic), or an argument
/// has a leaf that is not a float or complex Tensor.
template <std::size_t... I, class F>
[[nodiscard]] auto grad(F f, GradOptions options = {}, CallSite where = CallSite::here()) {
  return detail::gradient_function<false, false>(detail::Wanted<I...>(), std::move(f), options,
                                                 "vt::grad", where);
}
/// Of a function that returns std::pair(value, aux): → pair(gradient, aux).
template <std::size_t... I, class F>
[[nodiscard]] auto grad(F f, HasAux, GradOptions options = {}, CallSite where = CallSite::here()) {
  return detail::gradient_function<false, true>(detail::Wanted<I...>(), std::move(f), options,
                                                "vt::grad", where);
}
// Which argument is said between the angle brackets.
template <class F, Number N>
detail::Refused grad(F, N) {
  static_assert(!sizeof(F),
                "vt: arguments are told in angle brackets: vt::grad<1>(f), and "
                "vt::grad<0, 1>(f) for both of two");
  return {};
}
/// → pair(value, gradient); with vt::has_aux pair(pair(value, aux), gradient). Otherwise as grad.
template <std::size_t... I, class F>
[[nodiscard]] auto value_and_grad(F f, GradOptions options = {},
                                  CallSite where = CallSite::here()) {
  return detail::gradient_function<true, false>(detail::Wanted<I...>(), std::move(f), options,
                                                "vt::value_and_grad", where);
}
template <std::size_t... I, class F>
[[nodiscard]] auto value_and_grad(F f, HasAux, GradOptions options = {},
                                  CallSite where = CallSite::here()) {
  return detail::gradient_function<true, true>(detail::Wanted<I...>(), std::move(f), options,
                                               "vt::value_and_grad", where);
}
template <class F, Number N>
auto value_and_grad(F, N) {
  static_assert(!sizeof(F), "vt: arguments are told in angle brackets: vt::value_and_grad<1>(f)");
  return [](const auto&...) { return detail::RefusedPair(); };
}

/// The Jacobian: for each result Tensor of shape [m…] and argument Tensor of shape [n…] a block
/// [m…, n…]; the result's tree with each Tensor replaced by the argument's tree. Forward or
/// reverse, whichever needs fewer passes. Without `holomorphic` complex arguments need reverse mode
/// and real results (rows are gradients), complex results forward mode and real arguments. An entry
/// whose argument element does not reach its result element is 0, whatever lies between; every
/// other 0 is a number, which gives NaN beside infinity.
template <std::size_t... I, class F>
[[nodiscard]] auto jacobian(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  return detail::jacobian_function<detail::JacobianMode::automatic>(
      detail::Wanted<I...>(), std::move(f), options, "vt::jacobian", where);
}
template <class F, Number N>
detail::Refused jacobian(F, N) {
  static_assert(!sizeof(F), "vt: arguments are told in angle brackets: vt::jacobian<1>(f)");
  return {};
}
/// The same, always forward (a pass per element of the arguments), always reverse (a pass per
/// element of the results).
template <std::size_t... I, class F>
[[nodiscard]] auto jacfwd(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  return detail::jacobian_function<detail::JacobianMode::forward>(
      detail::Wanted<I...>(), std::move(f), options, "vt::jacfwd", where);
}
template <std::size_t... I, class F>
[[nodiscard]] auto jacrev(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  return detail::jacobian_function<detail::JacobianMode::reverse>(
      detail::Wanted<I...>(), std::move(f), options, "vt::jacrev", where);
}

/// The Jacobians of all examples at once, of a function that works on each of them alone: y[b, …]
/// depends on x[b, …] only, axis 0 holding the examples. As many passes as one example needs, since
/// one pass serves all of them. Where examples do depend on each other the result is the sum over
/// them, silently.
/// Shapes: results [b, m…], arguments [b, n…] → [b, m…, n…], in trees as jacobian's. What is not
/// differentiated may have any shape.
/// Throws: Error if an argument or a result has no axis 0 or another number of examples there.
/// For a function of one example use vmap(jacobian(f)).
/// Source: TensorFlow `GradientTape.batch_jacobian`.
template <std::size_t... I, class F>
[[nodiscard]] auto batch_jacobian(F f, JacobianOptions options = {},
                                  CallSite where = CallSite::here()) {
  constexpr auto mode = detail::JacobianMode::automatic;
  return detail::jacobian_function<mode>(detail::Wanted<I...>(), std::move(f), options,
                                         "vt::batch_jacobian", where, true);
}

/// Second derivatives: for results [m…] and arguments [a…], [b…] blocks [m…, a…, b…], as the
/// Jacobian of the Jacobian.
template <std::size_t... I, class F>
[[nodiscard]] auto hessian(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0) {
    return hessian<0>(std::move(f), options, where);
  } else {
    return detail::transformed<F>(
        [f = detail::Callable(std::move(f)), options, where]<class... A>(const A&... arguments) {
          if constexpr (detail::any_by_reference<std::index_sequence<I...>, A...>) {
            const auto transformed = [&](auto g) {
              return hessian<I...>(std::move(g), options, where);
            };
            return detail::with_references<I...>(f, transformed, arguments...);
          } else {
            using Arguments = typename detail::LiftedArguments<F, std::index_sequence<I...>,
                                                               detail::Owned<A>...>::type;
            using Check = detail::GradCheck<detail::Derivative::blocks, F, Arguments, I...>;
            using Call = typename Check::Call;
            VT_ASSERT_CALL("vt::hessian", Call);
            VT_ASSERT_GRAD("vt::hessian", Check);
            if constexpr (!Check::holds) {
              return detail::Refused();
            } else {
              auto g = detail::tree_function(f, detail::lift<I...>(f, detail::own(arguments...)));
              const detail::Mask wanted = detail::wanted_leaves<I...>(g.arguments());
              detail::GradCall call = detail::grad_call(g, wanted, "vt::hessian", where);
              call.holomorphic = options.holomorphic;
              call.memory_limit = options.memory_limit;
              const auto blocks = detail::hessian_flat(g.flat(), call, options.chunk);
              using Columns = decltype(detail::rebuild_wanted<I...>(g.arguments(), {}));
              const Vec<std::size_t> order = detail::wanted_order<I...>(g.arguments());
              std::size_t out = 0;
              auto rows = [&] {
                const auto& of_output = blocks[out++];
                std::size_t row = 0;
                auto columns = [&]() -> Columns {
                  return detail::rebuild_wanted<I...>(g.arguments(), of_output[order[row++]]);
                };
                const Columns like =
                    detail::rebuild_wanted<I...>(g.arguments(), detail::chosen(g.leaves(), wanted));
                return detail::replace_leaves<Columns>(like, columns);
              };
              using Rows = decltype(rows());
              return detail::replace_leaves<Rows>(g.last(), rows);
            }
          }
        });
  }
}
template <class F, Number N>
detail::Refused hessian(F, N) {
  static_assert(!sizeof(F), "vt: arguments are told in angle brackets: vt::hessian<1>(f)");
  return {};
}

/// → tuple(f's value, its gradient, its Hessian), of a scalar function: what Newton's method asks
/// for. What they share is computed once under jit. Otherwise as grad and hessian.
template <std::size_t... I, class F>
[[nodiscard]] auto value_grad_hessian(F f, JacobianOptions options = {},
                                      CallSite where = CallSite::here()) {
  return detail::transformed<F>(
      [first = value_and_grad<I...>(f, GradOptions{.holomorphic = options.holomorphic}, where),
       second = hessian<I...>(f, options, where)](const auto&... arguments) {
        auto [value, gradient] = first(arguments...);
        return std::tuple(std::move(value), std::move(gradient), second(arguments...));
      });
}

/// → pair(f's value at `primals`, its derivative along `tangents`): forward mode. Both are trees of
/// the same structure, several arguments a std::tuple.
/// Throws: Error (tree) if the structures differ.
/// Source: JAX `jvp`.
template <class F, class P, class T>
[[nodiscard]] auto jvp(F f, const P& primals, const T& tangents,
                       CallSite where = CallSite::here()) {
  using Arguments = decltype(detail::lift_all(f, detail::as_arguments<F>(primals)));
  using Tangents = decltype(detail::lift_all(f, detail::as_arguments<F>(tangents)));
  using Check = detail::GradCheck<detail::Derivative::by_all, F, Arguments>;
  using Call = typename Check::Call;
  VT_ASSERT_CALL("vt::jvp, which takes several arguments as one std::tuple", Call);
  VT_ASSERT_GRAD("vt::jvp", Check);
  constexpr bool fitting = !Check::holds || detail::are_tangents<Tangents, Arguments>;
  static_assert(detail::same_type<Tangents, Arguments, fitting>,
                "vt::jvp: the tangents must be trees like the primals: one for each argument, "
                "several as a std::tuple");
  if constexpr (!Check::holds || !fitting) {
    return detail::RefusedPair();
  } else {
    auto g = detail::tree_function(f, detail::lift_all(f, detail::as_arguments<F>(primals)));
    detail::Mask wanted(g.leaves().size(), true);
    const auto given = detail::lift_all(f, detail::as_arguments<F>(tangents));
    if constexpr (std::is_same_v<Arguments, Tangents>)
      detail::check_alike("vt::jvp", g.arguments(), given, where);
    std::vector<Tensor> directions;
    std::apply([&](const auto&... t) { (detail::append_leaves(t, directions), ...); }, given);
    if (directions.size() != g.leaves().size())
      detail::fail(ErrorKind::tree,
                   "vt::jvp: " + std::to_string(g.leaves().size()) + " primal leaves but " +
                       std::to_string(directions.size()) + " tangent leaves",
                   where);
    detail::JvpFlat flat =
        detail::jvp_flat(g.flat(), detail::grad_call(g, wanted, "vt::jvp", where), directions);
    auto value = g.rebuild(flat.outputs);
    auto tangent = detail::with_leaves(value, flat.tangents);
    detail::zero_numbers(tangent);
    return std::pair(std::move(value), std::move(tangent));
  }
}

/// → pair(f's value there, its derivative there as a function of tangents, one per argument).
/// Source: JAX `linearize`.
VT_WITH_LINE([[nodiscard]] auto, linearize, detail::linearize_at)

/// → pair(f's value there, a function from a cotangent of the value to the cotangents of the
/// arguments): reverse mode. One argument's cotangent is bare, several are a std::tuple.
/// Source: JAX `vjp`.
VT_WITH_LINE([[nodiscard]] auto, vjp, detail::vjp_at)

}  // namespace vt
