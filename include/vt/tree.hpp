// Trees: any nesting of Tensors, numbers, standard containers and plain structs, as arguments and
// results of transformed functions.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/aggregate.hpp>
#include <vt/detail/function.hpp>
#include <vt/detail/with_line.hpp>
#include <vt/small_vec.hpp>
#include <vt/tensor.hpp>

namespace vt {

namespace detail {

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_two = is_pair<T>;
template <class A, class B>
inline constexpr bool is_two<std::tuple<A, B>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class K, class V, class C, class A>
inline constexpr bool is_map<std::map<K, V, C, A>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// An argument that is passed on as it is, of any type.
template <class T>
struct ByReference {
  const T* of;
};
template <class T>
inline constexpr bool is_by_reference = false;
template <class T>
inline constexpr bool is_by_reference<ByReference<T>> = true;

/// Values that pass through a transform unchanged and key the cache of compiled programs.
template <class T>
inline constexpr bool is_static =
    is_by_reference<T> || Number<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*> ||
    std::is_same_v<T, Shape> || std::is_same_v<T, Axes> || std::is_same_v<T, Device> ||
    std::is_same_v<T, std::nullopt_t>;

template <class T>
inline constexpr bool is_product = is_tuple<T> || is_pair<T> || is_array<T>;
template <class T>
inline constexpr bool is_plain_struct =
    std::is_aggregate_v<T> && !std::is_union_v<T> && !is_array<T> && !is_static<T>;

/// Stands for the result of a call that an assertion has refused, so that no other error follows:
/// a Tensor, or whatever else is wanted.
struct Refused : Tensor {
  template <class T>
    requires(!std::is_convertible_v<const Tensor&, T>)
  operator T() const;
  template <class... A>
  Refused operator()(const A&...) const;
};
using RefusedPair = std::pair<Refused, Refused>;  ///< of a call whose result is a pair
// Operators beside anything, as an Eigen matrix: with the conversion many others would fit.
// clang-format off
#define VT_REFUSED_OPERATOR(op)                                                                    \
  template <class T>                                                                               \
  Refused operator op(const Refused&, const T&);                                                   \
  template <class T>                                                                               \
    requires(!std::is_same_v<T, Refused>)                                                          \
  Refused operator op(const T&, const Refused&);
// clang-format on
VT_REFUSED_OPERATOR(+)
VT_REFUSED_OPERATOR(-)
VT_REFUSED_OPERATOR(*)
VT_REFUSED_OPERATOR(/)
VT_REFUSED_OPERATOR(==)
VT_REFUSED_OPERATOR(!=)
VT_REFUSED_OPERATOR(<)
VT_REFUSED_OPERATOR(<=)
VT_REFUSED_OPERATOR(>)
VT_REFUSED_OPERATOR(>=)
#undef VT_REFUSED_OPERATOR
Refused operator-(const Refused&);
template <class T>
T& operator+=(T&, const Refused&);
template <class T>
T& operator-=(T&, const Refused&);
template <class T>
T& operator*=(T&, const Refused&);
template <class T>
T& operator/=(T&, const Refused&);

template <class T>
inline constexpr bool is_pointer_like = std::is_pointer_v<T> || std::is_member_pointer_v<T>;
template <class T>
inline constexpr bool is_pointer_like<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_pointer_like<std::weak_ptr<T>> = true;
template <class T, class D>
inline constexpr bool is_pointer_like<std::unique_ptr<T, D>> = true;

/// Is T a tree, or what keeps it from being one? `Culprit` is the type of the part that is none.
template <class T>
struct TreeCheck;
template <TreeFault what, class T>
struct Fault {
  static constexpr TreeFault fault = what;
  using Culprit = T;
};
/// The check of a part. One that has begun and is not done yet is a part of itself.
template <class T, bool done = requires { TreeCheck<T>::fault; }>
struct PartCheck : TreeCheck<T> {};
template <class T>
struct PartCheck<T, false> : Fault<TreeFault::recursive, T> {};
template <class... T>
struct FirstFault : Fault<TreeFault::none, void> {};
template <class T, class... Rest>
struct FirstFault<T, Rest...>
    : std::conditional_t<PartCheck<T>::fault != TreeFault::none, std::type_identity<PartCheck<T>>,
                         std::type_identity<FirstFault<Rest...>>>::type {};

/// A field of a struct. It may be const if it holds no Tensor: others are put in their place.
template <class T>
struct Field;
template <class T>
struct TreeCheck<Field<T>> : PartCheck<T> {};
template <class T>
constexpr bool holds_tensor();
template <class T>
constexpr auto check_const_field() {
  if constexpr (PartCheck<T>::fault != TreeFault::none) return PartCheck<T>();
  else if constexpr (holds_tensor<T>()) return Fault<TreeFault::constant, const T>();
  else return Fault<TreeFault::none, void>();
}
template <class T>
struct TreeCheck<Field<const T>> : decltype(check_const_field<T>()) {};
template <class T>
struct FaultOfFields;
template <class... T>
struct FaultOfFields<std::tuple<T&...>> : FirstFault<Field<T>...> {};

template <class T>
constexpr auto check_tree() {
  if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
    return Fault<TreeFault::none, void>();
  } else if constexpr (std::is_same_v<T, Refused>) {
    return Fault<TreeFault::refused, T>();
  } else if constexpr (std::is_void_v<T>) {
    return Fault<TreeFault::is_void, T>();
  } else if constexpr (std::is_reference_v<T>) {
    return Fault<TreeFault::reference, T>();
  } else if constexpr (std::is_const_v<T>) {
    return Fault<TreeFault::constant, T>();
  } else if constexpr (is_array<T> || is_optional<T>) {
    return PartCheck<typename T::value_type>();
  } else if constexpr (is_product<T>) {
    return []<template <class...> class Product, class... E>(std::type_identity<Product<E...>>) {
      return FirstFault<E...>();
    }(std::type_identity<T>());
  } else if constexpr (is_vector<T>) {
    if constexpr (std::is_same_v<typename T::value_type, bool>)
      return Fault<TreeFault::vector_bool, T>();
    else return PartCheck<typename T::value_type>();
  } else if constexpr (is_map<T>) {
    return FirstFault<typename T::key_type, typename T::mapped_type>();
  } else if constexpr (is_pointer_like<T>) {
    return Fault<TreeFault::pointer, T>();
  } else if constexpr (requires { T::RowsAtCompileTime; }) {
    return Fault<TreeFault::eigen, T>();
  } else if constexpr (requires { typename T::key_type; }) {
    return Fault<TreeFault::unordered, T>();
  } else if constexpr (is_plain_struct<T>) {
    constexpr TreeFault fault = struct_fault<T>();
    if constexpr (fault != TreeFault::none) return Fault<fault, T>();
    else if constexpr (std::is_empty_v<T>) return Fault<TreeFault::none, void>();
    else if constexpr (has_reference<T>(std::make_index_sequence<field_count<T>()>()))
      return Fault<TreeFault::reference, T>();
    else return FaultOfFields<decltype(fields_of(std::declval<T&>()))>();
  } else {
    return Fault<TreeFault::other, T>();
  }
}
template <class T>
struct TreeCheck : decltype(check_tree<T>()) {};

/// What keeps a call of a transform from being compiled: an argument or a result that is no tree;
/// an argument that the function wants to change, or cannot take; where a certain function is
/// wanted, its parameters or the type of its result; what solves an equation.
enum class CallFault {
  none,
  refused,
  argument,
  result,
  reference,
  arguments,
  parameters,
  type,
  solver
};
template <CallFault what, class Part = FirstFault<>>
struct CallFaultOf {
  static constexpr CallFault fault = what;
  static constexpr bool holds = what == CallFault::none;
  static constexpr TreeFault tree_fault = Part::fault;
  using Culprit = typename Part::Culprit;
};
template <class Part, CallFault place>
constexpr auto tree_fault_of() {
  if constexpr (Part::fault == TreeFault::none) return CallFaultOf<CallFault::none>();
  else if constexpr (Part::fault == TreeFault::refused) return CallFaultOf<CallFault::refused>();
  else return CallFaultOf<place, Part>();
}
/// Are these trees?
template <class... T>
struct TreesCheck : decltype(tree_fault_of<FirstFault<T...>, CallFault::argument>()) {};
template <class T>
struct ResultCheck : decltype(tree_fault_of<FirstFault<T>, CallFault::result>()) {};
/// The first of some checks that does not hold.
template <class... Check>
struct FirstOf : CallFaultOf<CallFault::none> {};
template <class Check, class... Rest>
struct FirstOf<Check, Rest...> : std::conditional_t<!Check::holds, std::type_identity<Check>,
                                                    std::type_identity<FirstOf<Rest...>>>::type {};

/// For the messages of compilers, which show what the first parameters are.
template <class Culprit, CallFault place, bool holds>
inline constexpr bool is_tree = holds;
template <class Given, class Wanted, bool holds>
inline constexpr bool same_type = holds;
template <class Check, CallFault never>
inline constexpr bool fits = Check::fault != never;

/// The assertions on a call, a message for each thing that can be wrong. Nothing of the call may be
/// compiled unless Check::holds. There is no macro inside, as compilers show each on the way.
// clang-format off
#define VT_ASSERT_CALL(name, Check)                                                                \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::is_void>,                        \
                name ": a function returns nothing: return its results, std::tuple<>() for none"); \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::eigen>,                          \
                name ": an argument or result is or holds an Eigen matrix, which is no tree: "     \
                     "pass vt::from_eigen(matrix), return a vt::Tensor; see vt/eigen.hpp");        \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::pointer>,                        \
                name ": an argument or result is or holds a pointer, which is no tree: pass "      \
                     "what it points to, or capture it in the function");                          \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::unordered>,                      \
                name ": an argument or result is or holds an unordered map or a set, which is "    \
                     "no tree: use std::map or std::vector");                                      \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::vector_bool>,                    \
                name ": an argument or result is or holds a std::vector<bool>, which is no "       \
                     "tree: use std::vector<int>");                                                \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::many_fields>,                    \
                name ": an argument or result is or holds a struct with more than 20 fields "      \
                     "(each element of a C array is one): nest structs, or use std::array, "       \
                     "std::vector or std::map");                                                   \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::c_array>,                        \
                name ": an argument or result is or holds a struct with a C array as a member: "   \
                     "use std::array");                                                            \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::base>,                           \
                name ": an argument or result is or holds a struct with a base class, which is "   \
                     "no tree: make the base a member");                                           \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::reference>,                      \
                name ": an argument or result holds a reference or a bit-field, which is no tree: "\
                     "hold the value (copies of a vt::Tensor share its memory)");                  \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::constant>,                       \
                name ": an argument or result holds a const vt::Tensor or a const container of "   \
                     "them, in whose place others are put: leave const off");                      \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::recursive>,                      \
                name ": an argument or result holds a struct that is a part of itself: use a "     \
                     "std::vector<vt::Tensor>, with indices for the structure");                   \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::uncopyable>,                     \
                name ": an argument or result is or holds a struct that cannot be copied, as one " \
                     "with a std::unique_ptr or a std::mutex: leave that member out, or capture "  \
                     "the struct in the function");                                                \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::other>,                          \
                name ": an argument or result is or holds what is no tree. Trees are "             \
                     "vt::Tensor, numbers, enums, strings, std::pair, tuple, array, vector, "      \
                     "map, optional and structs of them with public members only, without "        \
                     "constructors. Capture other values in the function");                        \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::reference>,                     \
                name ": the function takes a reference that may change its argument: take it by "  \
                     "value or as const&, and return changes");                                    \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::arguments>,                     \
                name ": the function cannot be called with these arguments: compare their "        \
                     "number and their types, which stand in the lines around this one, with "     \
                     "its parameters. Numbers convert to vt::Tensor, containers do not: "          \
                     "vt::tensor(values)")
// clang-format on

/// The assertion for what no transform has checked; here it is made once for each type.
template <class T>
constexpr bool is_tree_type() {
  using Check = TreesCheck<T>;
  VT_ASSERT_CALL("vt", Check);
  return Check::holds;
}

/// Calls `visit(child, name)` for each child of an inner node of a tree; names are ".2", "[3]"
/// and "[\"key\"]".
template <class T, class Visit>
void for_each_child(T& tree, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (is_product<Plain>) {
    std::size_t i = 0;
    std::apply(
        [&](auto&... child) {
          (visit(child, [n = i++] { return "[" + std::to_string(n) + "]"; }), ...);
        },
        tree);
  } else if constexpr (is_vector<Plain>) {
    for (std::size_t i = 0; i < tree.size(); ++i)
      visit(tree[i], [i] { return "[" + std::to_string(i) + "]"; });
  } else if constexpr (is_map<Plain>) {
    for (auto& [key, child] : tree)
      visit(child, [&name = key] {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(name)>>)
          return "[" + std::to_string(name) + "]";
        else if constexpr (std::is_convertible_v<decltype(name), std::string>)
          return "[\"" + std::string(name) + "\"]";
        else return std::string("[…]");
      });
  } else if constexpr (is_optional<Plain>) {
    if (tree) visit(*tree, [] { return std::string(); });
  } else if constexpr (is_plain_struct<Plain>) {
    std::size_t i = 0;
    if constexpr (!std::is_empty_v<Plain>) {
      if constexpr (is_tree_type<Plain>()) {
        const auto name = [](std::size_t n) {
          return "." +
                 field_name(field_texts<Plain>(std::make_index_sequence<field_count<Plain>()>())[n],
                            n);
        };
        std::apply(
            [&](auto&... child) { (visit(child, [&name, n = i++] { return name(n); }), ...); },
            fields_of(tree));
      }
    }
  } else {
    static_cast<void>(is_tree_type<Plain>());
  }
}

/// Calls `f(tensor)` for each Tensor of the tree, in order.
template <class T, class F>
void for_each_leaf(T& tree, F&& f) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Tensor>) f(tree);
  else if constexpr (!is_static<Plain>)
    for_each_child(tree, [&](auto& child, auto&&) { for_each_leaf(child, f); });
}

template <class T>
std::size_t count_leaves(const T& tree) {
  std::size_t n = 0;
  for_each_leaf(tree, [&](const Tensor&) { ++n; });
  return n;
}

template <class T>
void append_leaves(const T& tree, std::vector<Tensor>& leaves) {
  for_each_leaf(tree, [&](const Tensor& t) { leaves.push_back(t); });
}

/// Can there be a Tensor in a T, a tree?
template <class T>
constexpr bool holds_tensor() {
  if constexpr (std::is_same_v<T, Tensor>) return true;
  else if constexpr (is_static<T>) return false;
  else if constexpr (is_map<T>) return holds_tensor<typename T::mapped_type>();
  else if constexpr (is_vector<T> || is_array<T> || is_optional<T>)
    return holds_tensor<typename T::value_type>();
  else if constexpr (is_product<T>)
    return []<template <class...> class Product, class... E>(std::type_identity<Product<E...>>) {
      return (holds_tensor<E>() || ...);
    }(std::type_identity<T>());
  else if constexpr (std::is_empty_v<T>) return false;
  else
    return []<class... E>(std::type_identity<std::tuple<E&...>>) {
      return (holds_tensor<std::remove_const_t<E>>() || ...);
    }(std::type_identity<decltype(fields_of(std::declval<T&>()))>());
}
/// Sets the numbers of a tree of derivatives, which are constants, to zero.
template <class T>
void zero_numbers(T& tree) {
  if constexpr (Number<T>) tree = T();
  else if constexpr (!std::is_same_v<std::remove_const_t<T>, Tensor> &&
                     !is_static<std::remove_const_t<T>>)
    for_each_child(tree, [](auto& child, auto&&) { zero_numbers(child); });
}

/// A copy of a text that stays for as long as the process: who keeps a tree cannot know how long
/// the caller keeps what it points to.
std::string_view lasting_text(std::string_view text);
/// Points the texts that a tree does not hold itself at lasting copies.
template <class T>
void keep_texts(T& tree) {
  if constexpr (std::is_same_v<T, const char*>) {
    if (tree) tree = lasting_text(tree).data();
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    tree = lasting_text(tree);
  } else if constexpr (!std::is_same_v<T, Tensor> && !is_static<T>) {
    for_each_child(tree, [](auto& child, auto&&) { keep_texts(child); });
  }
}
/// The tree without its Tensors, safe to keep after recording and after the call.
template <class T>
T hollow(T tree) {
  for_each_leaf(tree, [](Tensor& t) { t = Tensor(); });
  keep_texts(tree);
  return tree;
}

/// Puts the leaves starting at `*next` in place of the tree's Tensors.
template <class T>
void assign_leaves(T& tree, const Tensor*& next) {
  for_each_leaf(tree, [&](Tensor& t) { t = *next++; });
}

/// The path of leaf `wanted` inside the tree, like ".weights[2]".
template <class T>
std::string leaf_path(const T& tree, std::size_t& wanted) {
  if constexpr (std::is_same_v<T, Tensor>) {
    --wanted;  // wraps to "found" when it was 0
    return "";
  } else if constexpr (is_static<T>) {
    return "";
  } else {
    std::string found;
    bool done = false;
    for_each_child(tree, [&](const auto& child, auto&& name) {
      if (done) return;
      const std::string below = leaf_path(child, wanted);
      if (wanted == static_cast<std::size_t>(-1)) {
        found = name() + below;
        done = true;
      }
    });
    return found;
  }
}

/// The paths of all leaves, in order.
template <class T>
void append_leaf_paths(Vec<std::string>& paths, const std::string& path, const T& tree) {
  if constexpr (std::is_same_v<T, Tensor>) {
    paths.push_back(path);
  } else if constexpr (!is_static<T>) {
    for_each_child(tree, [&](const auto& child, auto&& name) {
      append_leaf_paths(paths, path + name(), child);
    });
  }
}

/// Names for the leaves of an argument list: "argument 1 [0].bias".
template <class... T>
std::string argument_name(std::size_t leaf, const std::tuple<T...>& arguments) {
  std::string name = "argument ?";
  std::size_t index = 0, before = 0;
  std::apply(
      [&](const auto&... argument) {
        [[maybe_unused]] auto one = [&](const auto& tree) {
          const std::size_t n = count_leaves(tree);
          if (leaf >= before && leaf < before + n) {
            std::size_t wanted = leaf - before;
            const std::string path = leaf_path(tree, wanted);
            name = "argument " + std::to_string(index) + (path.empty() ? "" : " " + path);
          }
          before += n;
          ++index;
        };
        (one(argument), ...);
      },
      arguments);
  return name;
}
template <class T>
std::string result_name(std::size_t leaf, const T& result) {
  std::size_t wanted = leaf;
  const std::string path = leaf_path(result, wanted);
  return path.empty() ? "the result" : "result " + path;
}

// --- static parts, as bytes ----------------------------------------------------------------------

template <class T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void append_text(std::string& key, std::string_view text) {
  append_bytes(key, text.size());
  key.append(text);
}

/// Appends what is static about a tree: numbers, strings, sizes and keys of containers; no Tensors.
template <class T>
void append_static(std::string& key, const T& tree) {
  if constexpr (std::is_same_v<T, Tensor>) {
  } else if constexpr (Number<T> || std::is_enum_v<T>) {
    append_bytes(key, tree);
  } else if constexpr (std::is_same_v<T, Shape> || std::is_same_v<T, Axes>) {
    append_text(key, tree.str());
  } else if constexpr (std::is_same_v<T, Device>) {
    append_bytes(key, tree.kind);
    append_bytes(key, tree.index);
  } else if constexpr (std::is_same_v<T, std::nullopt_t>) {
  } else if constexpr (std::is_same_v<T, const char*>) {
    append_bytes(key, tree != nullptr);
    if (tree) append_text(key, tree);
  } else if constexpr (is_static<T>) {
    append_text(key, tree);
  } else {
    if constexpr (is_vector<T> || is_map<T>) append_bytes(key, tree.size());
    if constexpr (is_optional<T>) append_bytes(key, tree.has_value());
    if constexpr (is_map<T>)
      for (const auto& [k, child] : tree) append_static(key, k);
    for_each_child(tree, [&](const auto& child, auto&&) { append_static(key, child); });
  }
}

/// What is static about a tree, part by part with the path to each.
template <class T>
void append_parts(Vec<std::pair<std::string, std::string>>& parts, const std::string& path,
                  const T& tree) {
  if constexpr (!std::is_same_v<T, Tensor>) {
    std::string own;
    if constexpr (is_static<T>) append_static(own, tree);
    if constexpr (is_vector<T>) append_bytes(own, tree.size());
    if constexpr (is_optional<T>) append_bytes(own, tree.has_value());
    if constexpr (is_map<T>)
      for (const auto& [key, child] : tree) append_static(own, key);
    parts.emplace_back(path, std::move(own));
    if constexpr (!is_static<T>)
      for_each_child(
          tree, [&](const auto& child, auto&& name) { append_parts(parts, path + name(), child); });
  }
}
/// The path to the first place where trees of one type differ in more than the values of their
/// Tensors: in a size, a key, a number.
template <class T>
std::optional<std::string> first_difference(const T& a, const T& b) {
  Vec<std::pair<std::string, std::string>> of_a, of_b;
  append_parts(of_a, "", a);
  append_parts(of_b, "", b);
  for (std::size_t i = 0; i < of_a.size() && i < of_b.size(); ++i)
    if (of_a[i].second != of_b[i].second) return of_a[i].first;
  return std::nullopt;
}

// --- trees of trees ------------------------------------------------------------------------------

/// The type of a tree whose Tensors are replaced by `Leaf` (structs become tuples of their fields).
template <class T, class Leaf>
struct Replaced {
  static auto of_fields() {
    using Fields = decltype(fields_of(std::declval<T&>()));
    return []<class... F>(std::type_identity<std::tuple<F&...>>) {
      return std::type_identity<
          std::tuple<typename Replaced<std::remove_cvref_t<F>, Leaf>::type...>>{};
    }(std::type_identity<Fields>{});
  }
  static auto choose() {
    if constexpr (std::is_same_v<T, Tensor>) return std::type_identity<Leaf>{};
    else if constexpr (is_static<T>) return std::type_identity<T>{};
    else return of_fields();
  }
  using type = typename decltype(choose())::type;
};
template <class... T, class Leaf>
struct Replaced<std::tuple<T...>, Leaf> {
  using type = std::tuple<typename Replaced<T, Leaf>::type...>;
};
template <class A, class B, class Leaf>
struct Replaced<std::pair<A, B>, Leaf> {
  using type = std::pair<typename Replaced<A, Leaf>::type, typename Replaced<B, Leaf>::type>;
};
template <class T, std::size_t N, class Leaf>
struct Replaced<std::array<T, N>, Leaf> {
  using type = std::array<typename Replaced<T, Leaf>::type, N>;
};
template <class T, class A, class Leaf>
struct Replaced<std::vector<T, A>, Leaf> {
  using type = std::vector<typename Replaced<T, Leaf>::type>;
};
template <class K, class V, class C, class A, class Leaf>
struct Replaced<std::map<K, V, C, A>, Leaf> {
  using type = std::map<K, typename Replaced<V, Leaf>::type, C>;
};
template <class T, class Leaf>
struct Replaced<std::optional<T>, Leaf> {
  using type = std::optional<typename Replaced<T, Leaf>::type>;
};

/// The tree with each Tensor replaced by `make()`, called in leaf order, and its numbers by zero.
template <class Leaf, class T, class Make>
typename Replaced<T, Leaf>::type replace_leaves(const T& tree, Make& make) {
  using Result = typename Replaced<T, Leaf>::type;
  if constexpr (std::is_same_v<T, Tensor>) {
    return make();
  } else if constexpr (Number<T>) {
    return T();
  } else if constexpr (is_static<T>) {
    return tree;
  } else if constexpr (is_vector<T>) {
    Result r;
    r.reserve(tree.size());
    for (const auto& child : tree) r.push_back(replace_leaves<Leaf>(child, make));
    return r;
  } else if constexpr (is_map<T>) {
    Result r;
    for (const auto& [key, child] : tree) r.emplace(key, replace_leaves<Leaf>(child, make));
    return r;
  } else if constexpr (is_optional<T>) {
    return tree ? Result(replace_leaves<Leaf>(*tree, make)) : Result();
  } else {
    // Braced initialisation evaluates in order, as leaf order needs.
    auto build = [&](const auto&... child) { return Result{replace_leaves<Leaf>(child, make)...}; };
    if constexpr (is_product<T>) return std::apply(build, tree);
    else return std::apply(build, fields_of(tree));
  }
}

}  // namespace detail

/// All Tensors of a tree, in order: struct members and tuple elements as written, maps by key.
template <class T>
std::vector<Tensor> tree_leaves(const T& tree) {
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
VT_WITH_LINE(tree_map, detail::tree_map_at)

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
VT_WITH_LINE(eval, detail::eval_at)

}  // namespace vt
