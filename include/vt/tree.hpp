// Trees: any nesting of Tensors, numbers, standard containers, plain structs and classes that list
// their members, as arguments and results of transformed functions.
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

/// Makes a class of yours a tree. Specialise it with `of`, which gives references to the members
/// that vt shall see, private ones where it is a friend, and, for paths and files, their `names`:
///
///     template <>
///     struct vt::TreeMembers<Pose> {
///       static auto of(auto& p) { return std::tie(p.rotation, p.translation); }
///       static constexpr std::array names{"rotation", "translation"};
///     };
///
/// A class that you may change says the same by a list of its own:
///
///     static constexpr auto tree_members = std::tuple(&Pose::rotation_, &Pose::translation_);
///
/// Members that are in no list are copied with the object; they select no compiled program.
template <class T>
struct TreeMembers {};

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
[[noreturn]] void refuse_unlike(const char* function, const std::string& path, CallSite where);
[[noreturn]] void refuse_leaves(const char* function, std::size_t wanted, std::size_t given,
                                CallSite where);
/// Throws: Error(tree) unless trees are built alike. Their numbers may differ.
template <class T, class Other>
void check_alike(const char* function, const T& tree, const Other& other, CallSite where) {
  if constexpr (std::is_same_v<T, Other>) {
    if (const auto path = first_difference<false>(tree, other))
      refuse_unlike(function, *path, where);
  }
  const std::size_t wanted = count_leaves(tree), given = count_leaves(other);
  if (wanted != given) refuse_leaves(function, wanted, given, where);
}

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
    (check_alike("vt::tree_map", tree, rest, where), ...);
    T result = copied(tree);
    const Vec<std::vector<Tensor>> others{tree_leaves(rest)...};
    std::size_t i = 0;
    auto apply_at = [&]<std::size_t... K>(Tensor& t, std::index_sequence<K...>) {
      t = f(t, others[K][i]...);
    };
    for_each_leaf(result, [&](Tensor& t) {
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
/// Throws: Error(tree) if the trees are not built alike: another size, key or alternative.
VT_WITH_LINE([[nodiscard]] auto, tree_map, detail::tree_map_at)

/// The path to each Tensor of a tree, in the order of tree_leaves: "layers[1].weights",
/// "[\"key\"]". Members by their names, elements by their numbers, what maps hold by its keys. A
/// Tensor alone has the path "".
/// Source: JAX `tree_util.tree_leaves_with_path`.
template <class T>
[[nodiscard]] std::vector<std::string> tree_paths(const T& tree) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_paths", Check);
  std::vector<std::string> paths;
  if constexpr (Check::holds)
    for (const std::string& path : detail::leaf_paths(tree))
      paths.push_back(path.substr(path.starts_with('.') ? 1 : 0));
  return paths;
}

namespace detail {
std::string tree_text(std::span<const Tensor> leaves, std::span<const std::string> paths);
}
/// The Tensors of a tree, each behind its path, a line or more for each: "weights[1]: [1. 2.]
/// f64[2]".
template <class T>
[[nodiscard]] std::string tree_str(const T& tree) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_str", Check);
  if constexpr (!Check::holds) return {};
  else return detail::tree_text(tree_leaves(tree), tree_paths(tree));
}

// --- trees as lists and as vectors ---------------------------------------------------------------

/// How a tree is built, and its numbers, without its Tensors: what tree_flatten gives.
template <class T>
class TreeStructure {
 public:
  explicit TreeStructure(const T& tree)
      : like_(detail::hollow(tree)), size_(detail::count_leaves(tree)) {}
  std::size_t size() const { return size_; }  ///< the number of Tensors
  std::vector<std::string> paths() const { return tree_paths(like_); }
  /// The tree with these Tensors.
  /// Throws: Error(tree) unless there are size() of them.
  T unflatten(std::span<const Tensor> leaves, CallSite where = CallSite::here()) const {
    if (leaves.size() != size_)
      detail::refuse_leaves("vt::tree_unflatten", size_, leaves.size(), where);
    return detail::with_leaves(like_, leaves);
  }

 private:
  T like_;
  std::size_t size_;
};

/// → pair(the Tensors of a tree, how it is built): `auto [leaves, structure] =
/// vt::tree_flatten(tree)`.
/// Source: JAX `tree.flatten`.
template <class T>
[[nodiscard]] auto tree_flatten(const T& tree) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_flatten", Check);
  if constexpr (!Check::holds) return detail::RefusedPair();
  else return std::pair(tree_leaves(tree), TreeStructure<T>(tree));
}

/// The tree of this structure that holds `leaves`.
/// Throws: Error(tree) unless there are as many as the structure has.
/// Source: JAX `tree.unflatten`.
template <class T>
[[nodiscard]] T tree_unflatten(const TreeStructure<T>& structure, std::span<const Tensor> leaves,
                               CallSite where = CallSite::here()) {
  return structure.unflatten(leaves, where);
}

/// The number of elements of all Tensors of a tree together.
template <class T>
[[nodiscard]] std::int64_t tree_size(const T& tree) {
  std::int64_t n = 0;
  for (const Tensor& t : tree_leaves(tree)) n += t.size();
  return n;
}

namespace detail {
/// The dtypes and shapes of the leaves that one vector is made of.
using RavelParts = Vec<std::pair<DType, Shape>>;
Tensor ravel_leaves(std::span<const Tensor> leaves, RavelParts& parts, CallSite where);
std::vector<Tensor> unravel_leaves(const Tensor& vector, const RavelParts& parts, CallSite where);
Tensor dot_of_leaves(std::span<const Tensor> a, std::span<const Tensor> b, CallSite where);
Tensor norm_of_leaves(std::span<const Tensor> leaves, CallSite where);
std::vector<Tensor> zeros_like_leaves(std::span<const Tensor> leaves, CallSite where);
std::vector<Tensor> axpy_of_leaves(const Operand& a, std::span<const Tensor> x,
                                   std::span<const Tensor> y, CallSite where);
}  // namespace detail

/// The way back from ravel_tree: a tree with the numbers of a vector.
template <class T>
class Unravel {
 public:
  Unravel(const T& tree, detail::RavelParts parts)
      : like_(detail::hollow(tree)), parts_(std::move(parts)) {}
  /// Each Tensor has the shape and the dtype that it had.
  /// Shapes: vector: [n], n = tree_size of the tree.
  /// Throws: Error(shape) for another.
  T operator()(const Tensor& vector, CallSite where = CallSite::here()) const {
    return detail::with_leaves(like_, detail::unravel_leaves(vector, parts_, where));
  }

 private:
  T like_;
  detail::RavelParts parts_;
};

/// → pair(all Tensors of a tree as one vector, the function from such a vector to the tree): what
/// optimisers of other libraries want. `auto [x, unravel] = vt::ravel_tree(tree)`. dtype: that to
/// which those of the Tensors promote.
/// Shapes: [n], n = tree_size(tree).
/// Source: JAX `flatten_util.ravel_pytree`.
template <class T>
[[nodiscard]] auto ravel_tree(const T& tree, CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::ravel_tree", Check);
  if constexpr (!Check::holds) {
    return std::pair<detail::Refused, detail::Refused>();
  } else {
    detail::RavelParts parts;
    Tensor vector = detail::ravel_leaves(tree_leaves(tree), parts, where);
    return std::pair(std::move(vector), Unravel<T>(tree, std::move(parts)));
  }
}

// --- trees as elements of a vector space ---------------------------------------------------------

/// Σ conj(a)·b over all elements of two trees that are built alike, as a scalar.
/// Throws: Error(tree) if they are not; Error(shape) where two Tensors differ.
/// Source: Optax `tree.vdot`.
template <class T>
[[nodiscard]] Tensor tree_dot(const T& a, const T& b, CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::tree_dot", Check);
  if constexpr (!Check::holds) {
    return detail::Refused();
  } else {
    detail::check_alike("vt::tree_dot", a, b, where);
    return detail::dot_of_leaves(tree_leaves(a), tree_leaves(b), where);
  }
}

/// √(Σ |x|²) over all elements of a tree, as a scalar. Its derivative at 0 is 0.
/// Source: Optax `tree.norm`.
template <class T>
[[nodiscard]] Tensor tree_norm(const T& tree, CallSite where = CallSite::here()) {
  return detail::norm_of_leaves(tree_leaves(tree), where);
}

/// The tree with zeros in place of its Tensors. Its numbers stay.
template <class T>
[[nodiscard]] T tree_zeros_like(const T& tree, CallSite where = CallSite::here()) {
  return detail::with_leaves(tree, detail::zeros_like_leaves(tree_leaves(tree), where));
}

/// a·x + y, Tensor by Tensor, of two trees that are built alike; numbers are those of `y`.
/// Shapes: a: a scalar, or what broadcasts with each Tensor.
/// Throws: Error(tree) if they are not built alike.
template <class T>
[[nodiscard]] T tree_axpy(const Operand& a, const T& x, const T& y,
                          CallSite where = CallSite::here()) {
  detail::check_alike("vt::tree_axpy", x, y, where);
  return detail::with_leaves(y, detail::axpy_of_leaves(a, tree_leaves(x), tree_leaves(y), where));
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
