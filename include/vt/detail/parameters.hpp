// The parameters that a function spells out, and how its transforms take arguments by them: a
// number for a Tensor, braces for a container.
#pragma once

#include <type_traits>
#include <utility>

#include <vt/tensor.hpp>

namespace vt::detail {

// --- numbers for Tensors -------------------------------------------------------------------------

template <class... P>
struct ParameterList {
  /// Is one of these arguments a number, and its parameter a Tensor?
  template <class... A>
  static constexpr bool number_for_tensor() {
    if constexpr (sizeof...(A) == sizeof...(P))
      return ((Number<A> && std::is_same_v<std::remove_cvref_t<P>, Tensor>) || ...);
    else return false;
  }
};
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
/// Is there a number among the arguments that f takes as a Tensor? It is one like others, then: its
/// value is not static.
template <class F, class... A>
inline constexpr bool number_for_tensor = Parameters<F>::type::template number_for_tensor<A...>();

template <class P, class A>
decltype(auto) taken_as(const A& argument) {
  if constexpr (Number<A> && std::is_same_v<std::remove_cvref_t<P>, Tensor>)
    return number_argument(Scalar(argument));
  else return (argument);
}
/// use(arguments…), those numbers as Tensors.
template <class Use, class... P, class... A>
auto with_tensors(ParameterList<P...>, const Use& use, const A&... arguments) {
  return use(taken_as<P>(arguments)...);
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

/// What a transform makes of F: the lambda `Call`, also by F's parameters.
template <class F, class Call>
struct Transformed : Call, CallByParameters<Transformed<F, Call>, typename Parameters<F>::type> {
  explicit Transformed(Call call) : Call(std::move(call)) {}
  using Call::operator();
  using CallByParameters<Transformed, typename Parameters<F>::type>::operator();
};
template <class F, class Call>
struct Parameters<Transformed<F, Call>> : Parameters<F> {};
template <class F, class Call>
Transformed<F, Call> transformed(Call call) {
  return Transformed<F, Call>(std::move(call));
}

}  // namespace vt::detail
