// What the transform templates share: running a user's function on flat lists of Tensors and rebuilding its trees.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/entry_points.hpp>
#include <vt/tree.hpp>

namespace vt::detail {

/// How an argument is kept: by value, "abc" as const char*.
template <class A>
using Owned = std::decay_t<const A>;

template <class F, class... A>
using ResultOf = std::decay_t<std::invoke_result_t<F&, const A&...>>;

/// An argument list as owned trees.
template <class... A>
std::tuple<Owned<A>...> own(const A&... arguments) {
  return std::tuple<Owned<A>...>(arguments...);
}

/// A user's function as a transform keeps it: called through const, so that `const auto g = vt::grad(f)` works for every f.
template <class F>
class Callable {
 public:
  explicit Callable(F f) : f_(std::move(f)) {}
  template <class... A>
  auto operator()(A&&... arguments) const -> std::invoke_result_t<F&, A...> {
    return std::invoke(f_, std::forward<A>(arguments)...);
  }

 private:
  mutable F f_;  // a mutable lambda stays one
};

/// A user's function with the trees of one argument list: callable on flat leaves; remembers the tree of its last result.
template <class F, class... A>
class TreeFunction {
 public:
  using Result = ResultOf<F, A...>;
  static_assert(!std::is_void_v<Result>, "vt: a transformed function must return its results");

  TreeFunction(F& f, const std::tuple<A...>& arguments) : f_(f), arguments_(arguments), leaves_(tree_leaves_of_arguments()) {}

  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::tuple<A...>& arguments() const { return arguments_; }

  std::vector<Tensor> operator()(std::span<const Tensor> leaves) {
    std::tuple<A...> arguments = arguments_;
    const Tensor* next = leaves.data();
    std::apply([&](auto&... a) { (assign_leaves(a, next), ...); }, arguments);
    result_.emplace(std::apply(f_, std::as_const(arguments)));
    std::vector<Tensor> outputs;
    append_leaves(*result_, outputs);
    return outputs;
  }
  /// This as a FlatFunction; valid while this lives.
  FlatFunction flat() {
    return [this](std::span<const Tensor> leaves) { return (*this)(leaves); };
  }

  /// The last result's tree holding `leaves`.
  Result rebuild(std::span<const Tensor> leaves) {
    Result result = std::move(*result_);
    const Tensor* next = leaves.data();
    assign_leaves(result, next);
    return result;
  }
  const Result& last() const { return *result_; }

  LeafName argument_names() const {
    return [this](std::size_t leaf) { return argument_name(leaf, arguments_); };
  }
  LeafName result_names() const {
    return [this](std::size_t leaf) { return result_ ? result_name(leaf, *result_) : "result " + std::to_string(leaf); };
  }

 private:
  std::vector<Tensor> tree_leaves_of_arguments() const {
    std::vector<Tensor> leaves;
    std::apply([&](const auto&... a) { (append_leaves(a, leaves), ...); }, arguments_);
    return leaves;
  }

  F& f_;
  std::tuple<A...> arguments_;
  std::vector<Tensor> leaves_;
  std::optional<Result> result_;
};

template <class F, class... A>
TreeFunction<F, A...> tree_function(F& f, const std::tuple<A...>& arguments) {
  return TreeFunction<F, A...>(f, arguments);
}

}  // namespace vt::detail
