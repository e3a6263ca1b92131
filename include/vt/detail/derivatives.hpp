// What the derivatives share: which arguments are differentiated, checks with their messages, and
// how a gradient, a Jacobian and a linear map are rebuilt as trees. The structs of options are
// those of vt/grad.hpp.
#pragma once

#include <array>

#include <vt/detail/tree_function.hpp>
#include <vt/detail/with_line.hpp>

namespace vt::detail {

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
  auto one = [&](const auto& argument, std::size_t before) {
    auto tree = with_leaves(argument, leaves.subspan(before));
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

/// Arguments of F, given as a tuple or one alone, with data for its Tensors as Tensors.
template <class F, class T>
auto as_arguments(const T& t) {
  const auto all = [](const auto&... arguments) {
    return with_tensors<F, Taking::data>(
        CallSite(), [](const auto&... taken) { return own(taken...); }, arguments...);
  };
  if constexpr (is_tuple<T>) return std::apply(all, t);
  else return all(t);
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
enum class GradFault {
  none,
  call,
  no_argument,
  twice,
  integers,
  numbers,
  all_numbers,
  result,
  pair,
  value
};
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
  else if constexpr (((std::is_integral_v<std::tuple_element_t<I, Arguments>>) || ...))
    return GradFaultOf<GradFault::integers, Arguments>();
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
                    Check::fault != ::vt::detail::GradFault::integers>,                          \
                name ": an argument to differentiate by is an integer, which has no "            \
                     "derivative: write 2.0, not 2");                                            \
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
template <bool value_too, bool aux, std::size_t... I, class Options, class Result, class... A>
auto value_and_gradient(const FlatFunction& f, CallTrees<Result, A...>& g, const Options& options,
                        const char* transform, CallSite where) {
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

/// The arguments that are differentiated: the first if none is named.
template <std::size_t... I>
using Wanted =
    std::conditional_t<sizeof...(I) == 0, std::index_sequence<0>, std::index_sequence<I...>>;

/// value_and_grad, and grad as its second half.
template <bool value_too, bool aux, std::size_t... I, class F, class Options>
auto gradient_function(std::index_sequence<I...> wanted, F f, Options options,
                       const char* transform, CallSite where) {
  return transformed<F>([f = Callable(std::move(f)), wanted, options, transform,
                         where]<class... A>(const A&... arguments) {
    if constexpr (any_by_reference<std::index_sequence<I...>, A...>) {
      const auto transformed = [&](auto g) {
        return gradient_function<value_too, aux>(wanted, std::move(g), options, transform, where);
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
  });
}

/// The blocks of a Jacobian of `f`, a function with these trees.
template <std::size_t... I, class Options, class Result, class... A>
auto jacobian_blocks(const FlatFunction& f, CallTrees<Result, A...>& g, const Options& options,
                     JacobianMode mode, const char* transform, CallSite where, bool by_example) {
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

template <JacobianMode mode, std::size_t... I, class F, class Options>
auto jacobian_function(std::index_sequence<I...> wanted, F f, Options options,
                       const char* transform, CallSite where, bool by_example = false) {
  return transformed<F>([f = Callable(std::move(f)), wanted, options, transform, where,
                         by_example]<class... A>(const A&... arguments) {
    if constexpr (any_by_reference<std::index_sequence<I...>, A...>) {
      const auto transformed = [&](auto g) {
        return jacobian_function<mode>(wanted, std::move(g), options, transform, where, by_example);
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
  });
}

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
  Push(LinearMap map, Value value, const std::tuple<A...>& arguments)
      : map_(std::move(map)), value_(std::move(value)), like_(hollow(arguments)) {}
  Value operator()(const A&... tangents, CallSite where = CallSite::here()) const {
    std::apply(
        [&](const A&... like) { (check_alike("vt::linearize", like, tangents, where), ...); },
        like_);
    std::vector<Tensor> leaves;
    (append_leaves(tangents, leaves), ...);
    return with_leaves(value_, map_.push(leaves, where));
  }
  template <class... T>
    requires(!may_be_tangents<std::tuple<T...>, A...> && !(std::is_same_v<T, CallSite> || ...))
  auto operator()(const T&... tangents) const {
    using Parameters =
        decltype(parameters_for(ParameterList<A...>(), std::index_sequence_for<T...>()));
    if constexpr (data_among(Parameters(), std::type_identity<T>()...)) {
      const auto push = [this]<class... Taken>(const Taken&... taken) {
        if constexpr (may_be_tangents<std::tuple<Taken...>, A...>)
          return (*this)(taken..., CallSite());
        else return (*this)(taken...);
      };
      return with_taken<Taking::data>(Parameters(), CallSite(), push, tangents...);
    } else {
      static_assert(same_type < std::tuple<T...>, std::tuple<A...>,
                    sizeof...(T) == 0 && sizeof...(A) == 0 >,
                    "vt::linearize: the derivative takes a tangent for each argument of the "
                    "function, a tree like it");
      return Refused();
    }
  }

 private:
  LinearMap map_;
  Value value_;
  std::tuple<A...> like_;  ///< the arguments, without their Tensors
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
      Push<decltype(value), L...> push(std::move(flat.map), value, lifted);
      return std::pair(std::move(value), std::move(push));
    }
  }(lift_all(f, as_arguments<F>(std::tie(arguments...))));
}

template <class F, class... A>
auto vjp_at(CallSite where, F f, const A&... arguments) {
  using Arguments = decltype(lift_all(f, as_arguments<F>(std::tie(arguments...))));
  using Check = GradCheck<Derivative::by_all, F, Arguments>;
  using Call = typename Check::Call;
  VT_ASSERT_CALL("vt::vjp", Call);
  VT_ASSERT_GRAD("vt::vjp", Check);
  if constexpr (!Check::holds) {
    return RefusedPair();
  } else {
    auto g = tree_function(f, lift_all(f, as_arguments<F>(std::tie(arguments...))));
    Mask wanted(g.leaves().size(), true);
    LinearizedFlat flat = linearize_flat(g.flat(), grad_call(g, wanted, "vt::vjp", where));
    auto value = g.rebuild(flat.outputs);
    using Value = decltype(value);
    auto pull = [map = std::move(flat.map), like = g.arguments(), result = hollow(value)](
                    const auto& given, CallSite line = CallSite::here()) {
      const auto& cotangent = taken_as<Taking::data, Value>(given, line);
      using C = std::remove_cvref_t<decltype(cotangent)>;
      constexpr bool fitting = TreesCheck<C>::holds && std::is_convertible_v<C, Value>;
      static_assert(same_type<C, Value, fitting>,
                    "vt::vjp: the cotangent must be a tree like the function's result");
      if constexpr (!fitting) {
        return Refused();
      } else {
        std::vector<Tensor> leaves;
        if constexpr (std::is_same_v<C, Value>) check_alike("vt::vjp", result, cotangent, line);
        if constexpr (Number<C>) leaves.push_back(Tensor(cotangent));
        else append_leaves(cotangent, leaves);
        return rebuild_all(like, map.pull(leaves, line));
      }
    };
    return std::pair(std::move(value), std::move(pull));
  }
}

}  // namespace vt::detail
