// What the transform templates share: running a user's function on flat lists of Tensors and
// rebuilding its trees.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/parameters.hpp>
#include <vt/tree.hpp>

namespace vt::detail {

/// How an argument is kept: by value, "abc" as const char*, what a span leads to as a vector, what
/// is Eigen's as a Tensor.
template <class A>
struct OwnedAs {
  using type = std::decay_t<const A>;
};
template <class T, std::size_t N>
struct OwnedAs<std::span<T, N>> {
  using type = std::vector<std::remove_cv_t<T>>;
};
template <EigenObject M>
struct OwnedAs<M> {
  using type = Tensor;
};
template <class A>
using Owned = typename OwnedAs<A>::type;
template <class A>
Owned<A> owned(const A& argument) {
  if constexpr (is_span<A>) return Owned<A>(argument.begin(), argument.end());
  else if constexpr (std::is_array_v<A>) return argument;
  else if constexpr (EigenObject<A>) return tensor(argument);
  else return copied(argument);
}

template <class F, class... A>
using ResultOf = std::decay_t<std::invoke_result_t<F&, const A&...>>;

/// An argument list as owned trees.
template <class... A>
std::tuple<Owned<A>...> own(const A&... arguments) {
  return std::tuple<Owned<A>...>(owned(arguments)...);
}

/// The member of the object, or of what a pointer or std::reference_wrapper leads to; called with
/// the arguments if it is a function.
template <class Class, class Member, class Object, class... A>
decltype(auto) call_member(Member Class::* member, Object&& object, A&&... arguments) {
  if constexpr (!std::is_base_of_v<Class, std::remove_cvref_t<Object>>) {
    if constexpr (requires { *object; })
      return call_member(member, *object, static_cast<A&&>(arguments)...);
    else return call_member(member, object.get(), static_cast<A&&>(arguments)...);
  } else if constexpr (std::is_function_v<Member>) {
    return (static_cast<Object&&>(object).*member)(static_cast<A&&>(arguments)...);
  } else {
    return (static_cast<Object&&>(object).*member);
  }
}

/// f(arguments…). Without std::invoke and std::forward, each of which is a function more to compile
/// for each user's function, and <functional> an eighth of the time to include vt.
template <class F, class... A>
[[gnu::always_inline]] inline auto call(F& f, A&&... arguments) -> std::invoke_result_t<F&, A...> {
  if constexpr (std::is_member_pointer_v<std::remove_const_t<F>>)
    return call_member(f, static_cast<A&&>(arguments)...);
  else return f(static_cast<A&&>(arguments)...);
}

/// What keeps f(arguments…), f given trees of the types A, from being transformed.
template <class F, class... A>
constexpr auto check_call() {
  if constexpr (!TreesCheck<A...>::holds) return TreesCheck<A...>();
  else if constexpr (is_callable<F&, const A&...>) return ResultCheck<ResultOf<F, A...>>();
  else if constexpr (is_callable<F&, A&...> || is_callable<F&, A...>)
    return CallFaultOf<CallFault::reference>();
  else return CallFaultOf<CallFault::arguments>();
}
template <class F, class... A>
struct CallCheck : decltype(check_call<F, A...>()) {};
template <class F, class Arguments>
struct CallCheckOf;
template <class F, class... A>
struct CallCheckOf<F, std::tuple<A...>> : CallCheck<F, A...> {};

/// f, a function of trees that gives a bare number, giving a Tensor.
template <class F>
struct NumberAsTensor {
  F& f;
  template <class... A>
  Tensor operator()(const A&... arguments) const {
    return Tensor(call(f, arguments...));
  }
};

/// Stands for the result of a call that is not possible.
struct NotCallable {};
template <class F, class... A>
constexpr auto given_by() {
  if constexpr (is_callable<F&, const A&...>) return std::type_identity<ResultOf<F, A...>>();
  else return std::type_identity<NotCallable>();
}
template <class F, class... A>
using GivenBy = typename decltype(given_by<F, A...>())::type;

/// A user's function as a transform keeps it: called through const, so that
/// `const auto g = vt::grad(f)` works for every f.
template <class F>
class Callable {
 public:
  explicit Callable(F f) : f_(std::move(f)) {}
  template <class... A>
    requires is_callable<F&, A...>
  auto operator()(A&&... arguments) const -> std::invoke_result_t<F&, A...> {
    return call(f_, static_cast<A&&>(arguments)...);
  }

 private:
  mutable F f_;  // a mutable lambda stays one
};

/// The trees of a call: its arguments, and the last result. What does not depend on the function
/// stands here, so that it is compiled once for all functions from A… to Result.
template <class Result, class... A>
class CallTrees {
 public:
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::tuple<A...>& arguments() const { return arguments_; }

  /// The last result's tree holding `leaves`.
  Result rebuild(std::span<const Tensor> leaves) {
    return with_leaves(std::move(*result_), leaves);
  }
  const Result& last() const { return *result_; }

  LeafName argument_names() const {
    return [this](std::size_t leaf) {
      const std::vector<std::string> names = vt::detail::argument_names(arguments_);
      return leaf < names.size() ? names[leaf] : std::string("argument ?");
    };
  }
  LeafName result_names() const {
    return [this](std::size_t leaf) {
      return result_ ? result_name(leaf, *result_) : "result " + std::to_string(leaf);
    };
  }

 protected:
  explicit CallTrees(const std::tuple<A...>& arguments) : arguments_(arguments) {
    std::apply([&](const auto&... a) { (append_leaves(a, leaves_), ...); }, arguments_);
  }
  /// The arguments' trees holding `leaves`.
  std::tuple<A...> filled_with(std::span<const Tensor> leaves) const {
    return with_leaves(arguments_, leaves);
  }
  /// Remembers the result; its leaves.
  std::vector<Tensor> keep(Result&& result) {
    // The function may give a pointer to what others hold.
    if constexpr (copies_share<Result>) result_.emplace(copied(result));
    else result_.emplace(std::move(result));
    std::vector<Tensor> outputs;
    append_leaves(*result_, outputs);
    return outputs;
  }

 private:
  std::tuple<A...> arguments_;
  std::vector<Tensor> leaves_;
  std::optional<Result> result_;
};

/// A user's function with the trees of one argument list: callable on flat leaves; remembers the
/// tree of its last result.
template <class F, class... A>
class TreeFunction : public CallTrees<ResultOf<F, A...>, A...> {
 public:
  using Result = ResultOf<F, A...>;

  TreeFunction(F& f, const std::tuple<A...>& arguments)
      : CallTrees<Result, A...>(arguments), f_(f) {}

  std::vector<Tensor> operator()(std::span<const Tensor> leaves) {
    return on(this->filled_with(leaves), std::index_sequence_for<A...>{});
  }
  /// This as a FlatFunction; valid while this lives.
  FlatFunction flat() {
    return [this](std::span<const Tensor> leaves) { return (*this)(leaves); };
  }

 private:
  template <std::size_t... K>
  std::vector<Tensor> on(const std::tuple<A...>& arguments, std::index_sequence<K...>) {
    return this->keep(Result(call(f_, std::get<K>(arguments)...)));  // f may return a reference
  }

  F& f_;
};

template <class F, class... A>
TreeFunction<F, A...> tree_function(F& f, const std::tuple<A...>& arguments) {
  return TreeFunction<F, A...>(f, arguments);
}

}  // namespace vt::detail
