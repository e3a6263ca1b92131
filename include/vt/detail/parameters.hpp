// The parameters that a function spells out, and how its transforms take arguments by them: numbers
// and data for a Tensor, braces for a container.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <vt/tensor.hpp>

namespace vt::detail {

// --- numbers and data for Tensors ----------------------------------------------------------------

/// A parameter that is not spelled out.
struct AnyParameter;
template <class... P>
struct ParameterList {};
template <class R, class C, bool N, class... P>
ParameterList<P...> parameters_of(R (C::*)(P...) noexcept(N));
template <class R, class C, bool N, class... P>
ParameterList<P...> parameters_of(R (C::*)(P...) const noexcept(N));

/// The parameters of a function, if it spells them out: one with `auto` among them has none here.
template <class F>
struct Parameters {
  using type = ParameterList<>;
};
template <class F>
  requires requires { parameters_of(&F::operator()); }
struct Parameters<F> {
  using type = decltype(parameters_of(&F::operator()));
};
template <class R, bool N, class... P>
struct Parameters<R (*)(P...) noexcept(N)> {
  using type = ParameterList<P...>;
};
template <class... P, std::size_t... K>
auto parameters_for(ParameterList<P...> list, std::index_sequence<K...>) {
  if constexpr (sizeof...(P) == sizeof...(K)) return list;
  else return ParameterList<std::conditional_t<(K + 1 > 0), AnyParameter, void>...>();
}
/// A parameter of f for each of so many arguments.
template <class F, std::size_t count>
using ParametersFor =
    decltype(parameters_for(typename Parameters<F>::type(), std::make_index_sequence<count>()));

template <class P>
inline constexpr bool is_tensor_parameter = std::is_same_v<std::remove_cvref_t<P>, Tensor>;
/// Numbers in a container, or in a view of several axes.
template <class A>
constexpr bool holds_elements() {
  if constexpr (StridedView<A>) return true;
  else if constexpr (Nested<A>) return Element<InnermostOf<A>>;
  else return false;
}
/// Is such an argument data for a Tensor? Eigen's are always, others where the parameter is one.
template <class P, class A>
inline constexpr bool is_data_for =
    EigenObject<A> || (is_tensor_parameter<P> && holds_elements<A>());
template <class... P, class... A>
constexpr bool numbers_among(ParameterList<P...>, std::type_identity<A>...) {
  return ((Number<A> && is_tensor_parameter<P>) || ...);
}
template <class... P, class... A>
constexpr bool data_among(ParameterList<P...>, std::type_identity<A>...) {
  return (is_data_for<P, A> || ...);
}
/// Is there a number among the arguments that f takes as a Tensor? It is one like others, then: its
/// value is not static.
template <class F, class... A>
inline constexpr bool number_for_tensor =
    numbers_among(ParametersFor<F, sizeof...(A)>(), std::type_identity<A>()...);
/// Are there data among the arguments that become a Tensor?
template <class F, class... A>
inline constexpr bool data_for_tensor =
    data_among(ParametersFor<F, sizeof...(A)>(), std::type_identity<A>()...);

/// What becomes of arguments for Tensors. Only a call that has read all of them when it returns may
/// read data where they lie.
enum class Taking {
  data,          ///< data are copied
  all,           ///< data are copied, numbers are Tensors
  all_in_place,  ///< data that lie in the order of a Tensor's are not copied
};
template <Taking how, class P, class A>
decltype(auto) taken_as(const A& argument, CallSite where) {
  if constexpr (how != Taking::data && Number<A> && is_tensor_parameter<P>) {
    return number_argument(Scalar(argument));
  } else if constexpr (!is_data_for<P, A>) {
    return (argument);
  } else if constexpr (how != Taking::all_in_place) {
    return tensor(argument, std::nullopt, where);
  } else if constexpr (EigenObject<A>) {
    static_assert(EigenAccess<A>::is_included,
                  "vt: Eigen matrices as Tensors: #include <vt/eigen.hpp>");
    return EigenAccess<A>::borrowed(argument, where);
  } else if constexpr (StridedView<A>) {
    return from_view(argument, false, where);
  } else if constexpr (ContiguousOf<A, InnermostOf<A>>) {
    const std::span<const InnermostOf<A>> all(argument);
    return borrow(all, Shape{all.size()}, where);
  } else {
    return tensor(argument, std::nullopt, where);
  }
}
template <Taking how, class Use, class... P, class... A>
auto with_taken(ParameterList<P...>, CallSite where, const Use& use, const A&... arguments) {
  return use(taken_as<how, P>(arguments, where)...);
}
/// use(arguments…), where those that F takes as Tensors are Tensors.
template <class F, Taking how = Taking::all, class Use, class... A>
auto with_tensors(CallSite where, const Use& use, const A&... arguments) {
  return with_taken<how>(ParametersFor<F, sizeof...(A)>(), where, use, arguments...);
}

// --- braces --------------------------------------------------------------------------------------

/// No argument makes one.
struct Nothing {
  Nothing() = delete;
  Nothing(const Nothing&) = delete;
};
/// A base of the callable `Own`, whose call is a template: the call with these types. Braces have
/// none of their own and are taken as what the parameter says, so that `vt::jit(f)({x, y})` is a
/// call with a std::vector if f takes one.
template <class Own, class List>
struct CallByParameters {  // of no list: no call
  void operator()(Nothing) const = delete;
};
template <class Own, class P, class... Rest>
struct CallByParameters<Own, ParameterList<P, Rest...>> {
  auto operator()(const std::remove_cvref_t<P>& first,
                  const std::remove_cvref_t<Rest>&... rest) const {
    return static_cast<const Own&>(*this)
        .template operator()<std::remove_cvref_t<P>, std::remove_cvref_t<Rest>...>(first, rest...);
  }
};

/// What a transform makes of F: the lambda `Call`, also by F's parameters, and of data.
template <class F, class Call>
struct Transformed : Call, CallByParameters<Transformed<F, Call>, typename Parameters<F>::type> {
  explicit Transformed(Call call) : Call(std::move(call)) {}
  template <class... A>
  auto operator()(const A&... arguments) const {
    if constexpr (data_for_tensor<F, A...>)
      return with_tensors<F, Taking::data>(CallSite(), static_cast<const Call&>(*this),
                                           arguments...);
    else return Call::operator()(arguments...);
  }
  using CallByParameters<Transformed, typename Parameters<F>::type>::operator();
};
template <class F, class Call>
struct Parameters<Transformed<F, Call>> : Parameters<F> {};
template <class F, class Call>
Transformed<F, Call> transformed(Call call) {
  return Transformed<F, Call>(std::move(call));
}

}  // namespace vt::detail
