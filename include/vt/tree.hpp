// Trees: any nesting of Tensors, numbers, standard containers and plain structs, as arguments and
// results of transformed functions.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/detail/trees.hpp>
#include <vt/detail/with_line.hpp>

namespace vt {

/// All Tensors of a tree, in order: struct members and tuple elements as written, maps by key.
template <class T>
[[nodiscard]] std::vector<Tensor> tree_leaves(const T& tree) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_leaves", Check);
  std::vector<Tensor> leaves;
  if constexpr (Check::holds) detail::append_leaves(tree, leaves);
  return leaves;
}

namespace detail {
template <class>
using TensorFor = Tensor;
template <class F, class T, class... Rest>
auto tree_map_at(CallSite where, F f, const T& tree, const Rest&... rest) {
  using Check = TreesCheck<T, Rest...>;
  VT_ASSERT_CALL("vt::tree_map", Check);
  constexpr bool fitting = !Check::holds || gives<Tensor, F&, Tensor&, const TensorFor<Rest>&...>;
  static_assert(fitting,
                "vt::tree_map: the function takes a vt::Tensor of each tree and returns a "
                "vt::Tensor: vt::tree_map([](vt::Tensor a, vt::Tensor b) { return a + b; }, tree, "
                "like_it)");
  if constexpr (!Check::holds || !fitting) {
    return Refused();
  } else {
    T result = tree;
    const Vec<std::vector<Tensor>> others{tree_leaves(rest)...};
    const std::size_t n = detail::count_leaves(tree);
    for (const auto& other : others)
      if (other.size() != n)
        detail::fail(ErrorKind::tree,
                     "vt::tree_map: trees of " + std::to_string(n) + " and " +
                         std::to_string(other.size()) + " leaves",
                     where);
    std::size_t i = 0;
    auto apply_at = [&]<std::size_t... K>(Tensor& t, std::index_sequence<K...>) {
      t = f(t, others[K][i]...);
    };
    detail::for_each_leaf(result, [&](Tensor& t) {
      apply_at(t, std::index_sequence_for<Rest...>{});
      ++i;
    });
    return result;
  }
}
}  // namespace detail

/// Applies `f` to corresponding Tensors of trees of one structure; the result is a tree like the
/// first.
/// Source: JAX `tree.map`.
/// Throws: Error if the trees have different numbers of leaves.
VT_WITH_LINE([[nodiscard]] auto, tree_map, detail::tree_map_at)

namespace detail {
std::string tree_text(std::span<const Tensor> leaves,
                      FunctionRef<std::string(std::size_t)> path_of);
}
/// The Tensors of a tree, each behind its path, a line or more for each: "weights[1]: [1. 2.]
/// f64[2]".
template <class T>
[[nodiscard]] std::string tree_str(const T& tree) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_str", Check);
  if constexpr (!Check::holds) return {};
  else
    return detail::tree_text(tree_leaves(tree),
                             [&](std::size_t leaf) { return detail::leaf_path(tree, leaf); });
}

namespace detail {
void evaluate_leaves(std::span<const Tensor> leaves, CallSite where);
template <class T>
T eval_at(CallSite where, T tree) {
  using Check = TreesCheck<T>;
  VT_ASSERT_CALL("vt::eval", Check);
  if constexpr (Check::holds) evaluate_leaves(tree_leaves(tree), where);
  return tree;
}
template <class... T>
  requires(sizeof...(T) > 1)
std::tuple<T...> eval_at(CallSite where, T... trees) {
  return eval_at(where, std::tuple<T...>(std::move(trees)...));
}
}  // namespace detail

/// Computes all Tensors of the trees at once, as one program that shares what they share; returns
/// the tree, of several a std::tuple. Tensors may be empty.
/// Throws: Error(tracer) under a transform, where values are not known.
VT_WITH_LINE(auto, eval, detail::eval_at)

}  // namespace vt
