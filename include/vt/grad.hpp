// Derivatives: jvp, linearize, vjp, grad, value_and_grad, jacobians and hessian.
#pragma once

#include <array>

#include <vt/detail/tree_function.hpp>

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

namespace detail {

template <std::size_t K, std::size_t... Wanted>
inline constexpr bool one_of = ((K == Wanted) || ...);

/// A float or complex number given where the function takes a Tensor is differentiated as one.
template <class F, std::size_t I, class Arguments>
struct LiftedArgument;
template <class F, std::size_t I, class... A>
struct LiftedArgument<F, I, std::tuple<A...>> {
  using Own = std::tuple_element_t<I, std::tuple<A...>>;
  template <std::size_t... K>
  static constexpr bool takes_tensor(std::index_sequence<K...>) {
    return is_callable<F&, const std::conditional_t<K == I, Tensor, A>&...>;
  }
  static constexpr bool lift() {
    if constexpr (std::is_floating_point_v<Own> || ComplexElement<Own>)
      return takes_tensor(std::index_sequence_for<A...>{});
    else return false;
  }
  using type = std::conditional_t<lift(), Tensor, Own>;
};

/// The argument list with the arguments `I…` lifted.
template <std::size_t... Wanted, class F, class... A>
auto lift(F&, const std::tuple<A...>& arguments) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple<
        typename std::conditional_t<one_of<K, Wanted...>, LiftedArgument<F, K, std::tuple<A...>>,
                                    std::type_identity<A>>::type...>(std::get<K>(arguments)...);
  }(std::index_sequence_for<A...>{});
}

/// The types of the arguments with the arguments `I…` lifted.
template <class F, class Indices, class... A>
struct LiftedArguments;
template <class F, std::size_t... Wanted, class... A>
struct LiftedArguments<F, std::index_sequence<Wanted...>, A...> {
  template <std::size_t... K>
  static auto choose(std::index_sequence<K...>) -> std::tuple<
      typename std::conditional_t<one_of<K, Wanted...>, LiftedArgument<F, K, std::tuple<A...>>,
                                  std::type_identity<A>>::type...>;
  using type = decltype(choose(std::index_sequence_for<A...>{}));
};

using Mask = SmallVec<bool, 16>;
/// Which leaves belong to the arguments `I…`.
template <std::size_t... Wanted, class... A>
Mask wanted_leaves(const std::tuple<A...>& arguments) {
  Mask mask;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    ((mask.resize(mask.size() + count_leaves(std::get<K>(arguments)), one_of<K, Wanted...>)), ...);
  }(std::index_sequence_for<A...>{});
  return mask;
}

inline std::vector<Tensor> chosen(std::span<const Tensor> leaves, const Mask& mask) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (mask[i]) out.push_back(leaves[i]);
  return out;
}

/// Where the leaves of argument W begin among those of the arguments `Wanted…`, which lie in the
/// order of the arguments.
template <std::size_t W, std::size_t... Wanted, class... A>
std::size_t leaves_before(const std::tuple<A...>& arguments) {
  return ((Wanted < W ? count_leaves(std::get<Wanted>(arguments)) : 0) + ...);
}
/// The arguments `I…` with `leaves`, their numbers zero: one bare tree, or a tuple of several.
template <std::size_t... Wanted, class... A>
auto rebuild_wanted(const std::tuple<A...>& arguments, std::span<const Tensor> leaves) {
  auto one = [&](auto tree, std::size_t before) {
    const Tensor* next = leaves.data() + before;
    assign_leaves(tree, next);
    zero_numbers(tree);
    return tree;
  };
  if constexpr (sizeof...(Wanted) == 1) return one((std::get<Wanted>(arguments), ...), 0);
  else
    return std::tuple{
        one(std::get<Wanted>(arguments), leaves_before<Wanted, Wanted...>(arguments))...};
}
/// The places of the leaves of such a tuple among those of the arguments.
template <std::size_t... Wanted, class... A>
Vec<std::size_t> wanted_order(const std::tuple<A...>& arguments) {
  Vec<std::size_t> order;
  const auto append = [&](std::size_t before, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) order.push_back(before + i);
  };
  (append(leaves_before<Wanted, Wanted...>(arguments), count_leaves(std::get<Wanted>(arguments))),
   ...);
  return order;
}
template <class... A>
auto rebuild_all(const std::tuple<A...>& arguments, std::span<const Tensor> leaves) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return rebuild_wanted<K...>(arguments, leaves);
  }(std::index_sequence_for<A...>{});
}
template <class F, class... A>
auto lift_all(F& f, const std::tuple<A...>& arguments) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return lift<K...>(f, arguments);
  }(std::index_sequence_for<A...>{});
}

/// Arguments given as a tuple, or one argument alone.
template <class T>
auto as_arguments(const T& t) {
  if constexpr (is_tuple<T>) return t;
  else return std::tuple<T>(t);
}

template <class Result, class... A>
GradCall grad_call(const CallTrees<Result, A...>& g, const Mask& wanted, const char* transform,
                   CallSite where) {
  return {.arguments = g.leaves(),
          .wanted = {wanted.data(), wanted.size()},
          .argument_name = g.argument_names(),
          .result_name = g.result_names(),
          .transform = transform,
          .where = where};
}

template <std::size_t... I>
inline constexpr bool are_different = true;
template <std::size_t I, std::size_t... More>
inline constexpr bool are_different<I, More...> = ((I != More) && ...) && are_different<More...>;

/// What is taken: a gradient (of the first of a pair), blocks, or derivatives by all arguments.
enum class Derivative { gradient, gradient_with_aux, blocks, by_all };
enum class GradFault { none, call, no_argument, twice, numbers, all_numbers, result, pair, value };
template <GradFault what, class T = void>
struct GradFaultOf {
  static constexpr GradFault fault = what;
  static constexpr bool holds = what == GradFault::none;
  using Culprit = T;
};
template <class Result>
constexpr auto check_gradient() {
  if constexpr (std::is_same_v<Result, Tensor>) return GradFaultOf<GradFault::none>();
  else return GradFaultOf<GradFault::value, Result>();
}
/// Why a function of Arguments cannot be differentiated by those of the numbers `I…`.
template <Derivative what, class Result, class Arguments, std::size_t... I>
constexpr auto check_derivative() {
  if constexpr (!((I < std::tuple_size_v<Arguments>) && ...))
    return GradFaultOf<GradFault::no_argument, Arguments>();
  else if constexpr (!are_different<I...>) return GradFaultOf<GradFault::twice, Arguments>();
  else if constexpr (!(holds_tensor<std::tuple_element_t<I, Arguments>>() && ...))
    return GradFaultOf<GradFault::numbers, Arguments>();
  else if constexpr (what == Derivative::by_all && !holds_tensor<Arguments>())
    return GradFaultOf<GradFault::all_numbers, Arguments>();
  else if constexpr (what == Derivative::gradient) return check_gradient<Result>();
  else if constexpr (what != Derivative::gradient_with_aux)
    return GradFaultOf<holds_tensor<Result>() ? GradFault::none : GradFault::result, Result>();
  else if constexpr (!is_two<Result>) return GradFaultOf<GradFault::pair, Result>();
  else return check_gradient<std::tuple_element_t<0, Result>>();
}
template <Derivative what, class F, class... A, std::size_t... I>
constexpr auto check_derivative_of(std::type_identity<std::tuple<A...>>,
                                   std::index_sequence<I...>) {
  if constexpr (!CallCheck<F, A...>::holds) return GradFaultOf<GradFault::call>();
  else return check_derivative<what, ResultOf<F, A...>, std::tuple<A...>, I...>();
}
template <Derivative what, class F, class Arguments, std::size_t... I>
struct GradCheck : decltype(check_derivative_of<what, F>(std::type_identity<Arguments>(),
                                                         std::index_sequence<I...>())) {
  using Call = CallCheckOf<F, Arguments>;
};
/// For the messages of compilers, which show what the first parameter is.
template <class Culprit, bool holds>
inline constexpr bool is_differentiable = holds;
/// As VT_ASSERT_CALL, to which it comes.
// clang-format off
#define VT_ASSERT_GRAD(name, Check)                                                              \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::no_argument>,                       \
                name ": there is no argument of that number: they are counted from 0");          \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::twice>,                             \
                name ": the number of an argument is given twice");                              \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::numbers>,                           \
                name ": an argument to differentiate by holds no vt::Tensor, and numbers are "   \
                     "constants: make the parameter a vt::Tensor, for which a bare number like " \
                     "3.0 may be given: [](vt::Tensor a) { ... }");                              \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::all_numbers>,                       \
                name ": no argument holds a vt::Tensor, and numbers are constants: make the "    \
                     "parameter a vt::Tensor, for which a bare number like 3.0 may be given");   \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::result>,                            \
                name ": the function's result holds no vt::Tensor, and numbers are constants: "  \
                     "return a vt::Tensor, computed from the arguments");                        \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::pair>,                              \
                name ": with vt::has_aux the function must return std::pair(value, aux)");       \
  static_assert(::vt::detail::is_differentiable<typename Check::Culprit,                         \
                    Check::fault != ::vt::detail::GradFault::value>,                             \
                name ": the function must return one scalar vt::Tensor to be differentiated: "   \
                     "what comes besides is aux, std::pair(value, aux) with vt::has_aux; of "    \
                     "several results take vt::jacobian")
// clang-format on

/// Are these tangents of such arguments?
template <class Tangents, class Arguments>
inline constexpr bool are_tangents = false;
template <class... T, class... A>
  requires(sizeof...(T) == sizeof...(A))
inline constexpr bool are_tangents<std::tuple<T...>, std::tuple<A...>> =
    TreesCheck<T...>::holds && (std::is_convertible_v<T, A> && ...);

/// Arguments of these types that are not differentiated and are no trees, as sentences that own
/// their words, are passed by reference.
template <class A, bool wanted>
inline constexpr bool passes_by_reference = !wanted && !TreesCheck<Owned<A>>::holds;
template <class Indices, class... A>
inline constexpr bool any_by_reference = false;
template <std::size_t... I, class... A>
inline constexpr bool any_by_reference<std::index_sequence<I...>, A...> =
    []<std::size_t... K>(std::index_sequence<K...>) {
      return (passes_by_reference<A, one_of<K, I...>> || ...);
    }(std::index_sequence_for<A...>());
template <bool by_reference, class A>
decltype(auto) passed(const A& argument) {
  if constexpr (by_reference) return ByReference<A>{&argument};
  else return (argument);
}
template <class A>
const A& argument_of(const A& argument) {
  return argument;
}
template <class A>
const A& argument_of(const ByReference<A>& argument) {
  return *argument.of;
}
/// f of what the arguments refer to.
template <class F>
class Dereferencing {
 public:
  explicit Dereferencing(const F& f) : f_(f) {}
  template <class... A>
  auto operator()(const A&... arguments) const
      -> std::invoke_result_t<const F&, decltype(argument_of(arguments))...> {
    return call(f_, argument_of(arguments)...);
  }

 private:
  const F& f_;
};

/// `transformed(g)(arguments…)`, where g is f with such arguments passed by reference.
template <std::size_t... I, class F, class Transform, class... A>
auto with_references(const F& f, const Transform& transformed, const A&... arguments) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return transformed(Dereferencing<F>(f))(
        passed<passes_by_reference<A, one_of<K, I...>>>(arguments)...);
  }(std::index_sequence_for<A...>());
}

/// The value and gradients of `f`, a function with these trees: the same code for all functions of
/// the same types.
template <bool value_too, bool aux, std::size_t... I, class Result, class... A>
auto value_and_gradient(const FlatFunction& f, CallTrees<Result, A...>& g,
                        const GradOptions& options, const char* transform, CallSite where) {
  const Mask wanted = wanted_leaves<I...>(g.arguments());
  GradCall call = grad_call(g, wanted, transform, where);
  call.holomorphic = options.holomorphic;
  GradFlat flat = value_and_grad_flat(f, call);
  auto gradient = rebuild_wanted<I...>(g.arguments(), flat.gradients);
  Result result = g.rebuild(flat.outputs);
  if constexpr (aux) {
    if constexpr (value_too)
      return std::pair(std::pair(std::get<0>(result), std::get<1>(result)), std::move(gradient));
    else return std::pair(std::move(gradient), std::get<1>(result));
  } else {
    if constexpr (value_too) return std::pair(std::move(result), std::move(gradient));
    else return gradient;
  }
}

/// value_and_grad, and grad as its second half.
template <bool value_too, bool aux, std::size_t... I, class F>
auto gradient_function(F f, GradOptions options, const char* transform, CallSite where) {
  return [f = Callable(std::move(f)), options, transform,
          where]<class... A>(const A&... arguments) {
    if constexpr (any_by_reference<std::index_sequence<I...>, A...>) {
      const auto transformed = [&](auto g) {
        return gradient_function<value_too, aux, I...>(std::move(g), options, transform, where);
      };
      return with_references<I...>(f, transformed, arguments...);
    } else {
      using Arguments = typename LiftedArguments<F, std::index_sequence<I...>, Owned<A>...>::type;
      using Check =
          GradCheck<aux ? Derivative::gradient_with_aux : Derivative::gradient, F, Arguments, I...>;
      using Call = typename Check::Call;
      VT_ASSERT_CALL("vt::grad, vt::value_and_grad", Call);
      VT_ASSERT_GRAD("vt::grad, vt::value_and_grad", Check);
      if constexpr (!Check::holds) {
        using Gradient = std::conditional_t<sizeof...(I) == 1, Refused,
                                            std::tuple<std::enable_if_t<(I + 1 > 0), Refused>...>>;
        return std::conditional_t<value_too, std::pair<Refused, Gradient>, Gradient>();
      } else {
        auto g = tree_function(f, lift<I...>(f, own(arguments...)));
        return value_and_gradient<value_too, aux, I...>(g.flat(), g, options, transform, where);
      }
    }
  };
}

/// The blocks of a Jacobian of `f`, a function with these trees.
template <std::size_t... I, class Result, class... A>
auto jacobian_blocks(const FlatFunction& f, CallTrees<Result, A...>& g,
                     const JacobianOptions& options, JacobianMode mode, const char* transform,
                     CallSite where, bool by_example) {
  const Mask wanted = wanted_leaves<I...>(g.arguments());
  GradCall call = grad_call(g, wanted, transform, where);
  call.holomorphic = options.holomorphic;
  call.memory_limit = options.memory_limit;
  JacobianFlat flat = jacobian_flat(f, call, mode == JacobianMode::automatic ? options.mode : mode,
                                    options.chunk, by_example);
  std::size_t row = 0;
  using Columns = decltype(rebuild_wanted<I...>(g.arguments(), {}));
  auto make = [&]() -> Columns { return rebuild_wanted<I...>(g.arguments(), flat.blocks[row++]); };
  return replace_leaves<Columns>(g.last(), make);
}

template <JacobianMode mode, std::size_t... I, class F>
auto jacobian_function(F f, JacobianOptions options, const char* transform, CallSite where,
                       bool by_example = false) {
  return [f = Callable(std::move(f)), options, transform, where,
          by_example]<class... A>(const A&... arguments) {
    if constexpr (any_by_reference<std::index_sequence<I...>, A...>) {
      const auto transformed = [&](auto g) {
        return jacobian_function<mode, I...>(std::move(g), options, transform, where, by_example);
      };
      return with_references<I...>(f, transformed, arguments...);
    } else {
      using Arguments = typename LiftedArguments<F, std::index_sequence<I...>, Owned<A>...>::type;
      using Check = GradCheck<Derivative::blocks, F, Arguments, I...>;
      using Call = typename Check::Call;
      VT_ASSERT_CALL("vt::jacobian, vt::jacfwd, vt::jacrev, vt::batch_jacobian", Call);
      VT_ASSERT_GRAD("vt::jacobian, vt::jacfwd, vt::jacrev, vt::batch_jacobian", Check);
      if constexpr (!Check::holds) {
        return Refused();
      } else {
        auto g = tree_function(f, lift<I...>(f, own(arguments...)));
        return jacobian_blocks<I...>(g.flat(), g, options, mode, transform, where, by_example);
      }
    }
  };
}

}  // namespace detail

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
auto grad(F f, GradOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::gradient_function<false, false, 0>(std::move(f), options, "vt::grad", where);
  else
    return detail::gradient_function<false, false, I...>(std::move(f), options, "vt::grad", where);
}
/// Of a function that returns std::pair(value, aux): → pair(gradient, aux).
template <std::size_t... I, class F>
auto grad(F f, HasAux, GradOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::gradient_function<false, true, 0>(std::move(f), options, "vt::grad", where);
  else
    return detail::gradient_function<false, true, I...>(std::move(f), options, "vt::grad", where);
}
/// → pair(value, gradient); with vt::has_aux pair(pair(value, aux), gradient). Otherwise as grad.
template <std::size_t... I, class F>
auto value_and_grad(F f, GradOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::gradient_function<true, false, 0>(std::move(f), options, "vt::value_and_grad",
                                                     where);
  else
    return detail::gradient_function<true, false, I...>(std::move(f), options, "vt::value_and_grad",
                                                        where);
}
template <std::size_t... I, class F>
auto value_and_grad(F f, HasAux, GradOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::gradient_function<true, true, 0>(std::move(f), options, "vt::value_and_grad",
                                                    where);
  else
    return detail::gradient_function<true, true, I...>(std::move(f), options, "vt::value_and_grad",
                                                       where);
}

/// The Jacobian: for each result Tensor of shape [m…] and argument Tensor of shape [n…] a block
/// [m…, n…]; the result's tree with each Tensor replaced by the argument's tree. Forward or
/// reverse, whichever needs fewer passes. Without `holomorphic` complex arguments need reverse mode
/// and real results (rows are gradients), complex results forward mode and real arguments. An entry
/// whose argument element does not reach its result element is 0, whatever lies between; every
/// other 0 is a number, which gives NaN beside infinity.
template <std::size_t... I, class F>
auto jacobian(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::jacobian_function<detail::JacobianMode::automatic, 0>(std::move(f), options,
                                                                         "vt::jacobian", where);
  else
    return detail::jacobian_function<detail::JacobianMode::automatic, I...>(std::move(f), options,
                                                                            "vt::jacobian", where);
}
/// The same, always forward (a pass per element of the arguments), always reverse (a pass per
/// element of the results).
template <std::size_t... I, class F>
auto jacfwd(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::jacobian_function<detail::JacobianMode::forward, 0>(std::move(f), options,
                                                                       "vt::jacfwd", where);
  else
    return detail::jacobian_function<detail::JacobianMode::forward, I...>(std::move(f), options,
                                                                          "vt::jacfwd", where);
}
template <std::size_t... I, class F>
auto jacrev(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0)
    return detail::jacobian_function<detail::JacobianMode::reverse, 0>(std::move(f), options,
                                                                       "vt::jacrev", where);
  else
    return detail::jacobian_function<detail::JacobianMode::reverse, I...>(std::move(f), options,
                                                                          "vt::jacrev", where);
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
auto batch_jacobian(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  constexpr auto mode = detail::JacobianMode::automatic;
  if constexpr (sizeof...(I) == 0)
    return detail::jacobian_function<mode, 0>(std::move(f), options, "vt::batch_jacobian", where,
                                              true);
  else
    return detail::jacobian_function<mode, I...>(std::move(f), options, "vt::batch_jacobian", where,
                                                 true);
}

/// Second derivatives: for results [m…] and arguments [a…], [b…] blocks [m…, a…, b…], as the
/// Jacobian of the Jacobian.
template <std::size_t... I, class F>
auto hessian(F f, JacobianOptions options = {}, CallSite where = CallSite::here()) {
  if constexpr (sizeof...(I) == 0) {
    return hessian<0>(std::move(f), options, where);
  } else {
    return [f = detail::Callable(std::move(f)), options, where]<class... A>(const A&... arguments) {
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
    };
  }
}

/// → pair(f's value at `primals`, its derivative along `tangents`): forward mode. Both are trees of
/// the same structure, several arguments a std::tuple.
/// Throws: Error (tree) if the structures differ.
/// Source: JAX `jvp`.
template <class F, class P, class T>
auto jvp(F f, const P& primals, const T& tangents, CallSite where = CallSite::here()) {
  using Arguments = decltype(detail::lift_all(f, detail::as_arguments(primals)));
  using Tangents = decltype(detail::lift_all(f, detail::as_arguments(tangents)));
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
    auto g = detail::tree_function(f, detail::lift_all(f, detail::as_arguments(primals)));
    detail::Mask wanted(g.leaves().size(), true);
    const auto given = detail::lift_all(f, detail::as_arguments(tangents));
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
    auto tangent = value;
    detail::zero_numbers(tangent);
    const Tensor* next = flat.tangents.data();
    detail::assign_leaves(tangent, next);
    return std::pair(std::move(value), std::move(tangent));
  }
}

namespace detail {

/// May these be given for parameters of the types A…, or does the last one say where the call is?
template <class Given, class... A>
inline constexpr bool may_be_tangents = false;
template <class... T, class... A>
  requires(sizeof...(T) == sizeof...(A))
inline constexpr bool may_be_tangents<std::tuple<T...>, A...> =
    (std::is_convertible_v<const T&, A> && ...);

/// A derivative as a function of tangents, one like each argument.
template <class Value, class... A>
class Push {
 public:
  Push(LinearMap map, Value value) : map_(std::move(map)), value_(std::move(value)) {}
  Value operator()(const A&... tangents, CallSite where = CallSite::here()) const {
    std::vector<Tensor> leaves;
    (append_leaves(tangents, leaves), ...);
    Value result = value_;
    const std::vector<Tensor> out = map_.push(leaves, where);
    const Tensor* next = out.data();
    assign_leaves(result, next);
    return result;
  }
  template <class... T>
    requires(!may_be_tangents<std::tuple<T...>, A...> && !(std::is_same_v<T, CallSite> || ...))
  Refused operator()(const T&...) const {
    static_assert(same_type < std::tuple<T...>, std::tuple<A...>,
                  sizeof...(T) == 0 && sizeof...(A) == 0 >,
                  "vt::linearize: the derivative takes a tangent for each argument of the "
                  "function, a tree like it");
    return Refused();
  }

 private:
  LinearMap map_;
  Value value_;
};

template <class F, class... A>
auto linearize_at(CallSite where, F f, const A&... arguments) {
  return [&]<class... L>(const std::tuple<L...>& lifted) {
    using Check = GradCheck<Derivative::by_all, F, std::tuple<L...>>;
    using Call = typename Check::Call;
    VT_ASSERT_CALL("vt::linearize", Call);
    VT_ASSERT_GRAD("vt::linearize", Check);
    if constexpr (!Check::holds) {
      return RefusedPair();
    } else {
      auto g = tree_function(f, lifted);
      Mask wanted(g.leaves().size(), true);
      LinearizedFlat flat = linearize_flat(g.flat(), grad_call(g, wanted, "vt::linearize", where));
      auto value = g.rebuild(flat.outputs);
      Push<decltype(value), L...> push(std::move(flat.map), value);
      return std::pair(std::move(value), std::move(push));
    }
  }(lift_all(f, own(arguments...)));
}

template <class F, class... A>
auto vjp_at(CallSite where, F f, const A&... arguments) {
  using Check = GradCheck<Derivative::by_all, F, decltype(lift_all(f, own(arguments...)))>;
  using Call = typename Check::Call;
  VT_ASSERT_CALL("vt::vjp", Call);
  VT_ASSERT_GRAD("vt::vjp", Check);
  if constexpr (!Check::holds) {
    return RefusedPair();
  } else {
    auto g = tree_function(f, lift_all(f, own(arguments...)));
    Mask wanted(g.leaves().size(), true);
    LinearizedFlat flat = linearize_flat(g.flat(), grad_call(g, wanted, "vt::vjp", where));
    auto value = g.rebuild(flat.outputs);
    using Value = decltype(value);
    auto pull = [map = std::move(flat.map), like = g.arguments()]<class C>(
                    const C& cotangent, CallSite line = CallSite::here()) {
      constexpr bool fitting = TreesCheck<C>::holds && std::is_convertible_v<C, Value>;
      static_assert(same_type<C, Value, fitting>,
                    "vt::vjp: the cotangent must be a tree like the function's result");
      if constexpr (!fitting) {
        return Refused();
      } else {
        std::vector<Tensor> leaves;
        if constexpr (Number<C>) leaves.push_back(Tensor(cotangent));
        else append_leaves(cotangent, leaves);
        return rebuild_all(like, map.pull(leaves, line));
      }
    };
    return std::pair(std::move(value), std::move(pull));
  }
}

}  // namespace detail

/// → pair(f's value there, its derivative there as a function of tangents, one per argument).
/// Source: JAX `linearize`.
VT_WITH_LINE(linearize, detail::linearize_at)

/// → pair(f's value there, a function from a cotangent of the value to the cotangents of the
/// arguments): reverse mode. One argument's cotangent is bare, several are a std::tuple.
/// Source: JAX `vjp`.
VT_WITH_LINE(vjp, detail::vjp_at)

}  // namespace vt
