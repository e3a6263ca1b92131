// How trees are taken apart and put together: their leaves, paths, copies and differences.
#pragma once

#include <cstdint>
#include <cstring>
#include <typeinfo>

#include <vt/detail/message.hpp>
#include <vt/detail/tree_messages.hpp>

namespace vt::detail {

// --- walking through a tree ----------------------------------------------------------------------

struct ByPointee {
  template <class K>
  bool operator()(const K* a, const K* b) const {
    return *a < *b;
  }
};
/// visit(value, key) for what a map holds, by its keys.
template <class Map, class Visit>
void for_each_by_key(Map& map, Visit&& visit) {
  if constexpr (is_ordered_map<std::remove_const_t<Map>>) {
    for (auto& [key, value] : map) visit(value, key);
  } else {
    std::map<const typename Map::key_type*, decltype(&map.begin()->second), ByPointee> sorted;
    for (auto& [key, value] : map) sorted.emplace(&key, &value);
    for (const auto& [key, value] : sorted) visit(*value, *key);
  }
}

template <class K>
std::string key_name(const K& key) {
  if constexpr (std::is_convertible_v<const K&, std::string>)
    return "[\"" + std::string(key) + "\"]";
  else if constexpr (std::is_same_v<K, std::string_view>) return "[\"" + std::string(key) + "\"]";
  else if constexpr (std::is_arithmetic_v<K>) return "[" + formatted("{}", key) + "]";
  else if constexpr (std::is_enum_v<K>)
    return "[" + formatted("{}", static_cast<std::int64_t>(key)) + "]";
  else return "[…]";
}
inline std::string index_name(std::size_t index) { return "[" + std::to_string(index) + "]"; }

/// The name of member `index` of a class that lists its members.
template <class T>
std::string listed_name(std::size_t index) {
  if constexpr (requires { TreeMembers<T>::names; }) {
    return "." + std::string(TreeMembers<T>::names[index]);
  } else if constexpr (listing<T>() == Listing::pointers) {
    constexpr std::size_t n = std::tuple_size_v<std::remove_cvref_t<decltype(T::tree_members)>>;
    return "." + field_name(pointer_texts<T>(std::make_index_sequence<n>())[index], index);
  } else {
    return index_name(index);
  }
}

/// use(std::in_place_index<i>, value) for the alternative that a variant holds, if it holds one.
template <class V, class Use>
void at_alternative(V& variant, Use&& use) {
  const auto at = [&]<std::size_t I>(std::in_place_index_t<I> index) {
    if (variant.index() == I) use(index, *get_if<I>(&variant));
  };
  []<class... E>(Types<E...>, const auto& each) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (each(std::in_place_index<I>), ...);
    }(std::index_sequence_for<E...>());
  }(part_types<std::remove_const_t<V>>(), at);
}

/// Calls visit(child, name) for each child of an inner node of a tree. name() is ".weights", "[3]"
/// or "[\"key\"]", and nothing where there is but one child.
template <class T, class Visit>
void for_each_child(T& tree, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (is_listed<Plain>) {
    auto members = listed_members<Plain>(tree);
    if constexpr (has_counted_members<Plain>) {
      for (std::size_t i = 0; i < members.size(); ++i)
        visit(*members[i], [i] { return listed_name<Plain>(i); });
    } else {
      std::size_t i = 0;
      std::apply(
          [&](auto&... child) { (visit(child, [n = i++] { return listed_name<Plain>(n); }), ...); },
          members);
    }
  } else if constexpr (is_product<Plain>) {
    std::size_t i = 0;
    std::apply([&](auto&... child) { (visit(child, [n = i++] { return index_name(n); }), ...); },
               tree);
  } else if constexpr (is_vector<Plain> || is_span<Plain> || std::is_bounded_array_v<Plain>) {
    std::size_t i = 0;
    for (auto& child : tree) visit(child, [n = i++] { return index_name(n); });
  } else if constexpr (is_map<Plain>) {
    for_each_by_key(tree, [&](auto& child, const auto& key) {
      visit(child, [&key] { return key_name(key); });
    });
  } else if constexpr (is_optional<Plain>) {
    if (tree) visit(*tree, [] { return std::string(); });
  } else if constexpr (is_shared<Plain>) {
    using Pointed = std::remove_const_t<typename Plain::element_type>;
    if (tree) visit(const_cast<Pointed&>(*tree), [] { return std::string(); });
  } else if constexpr (is_variant<Plain>) {
    at_alternative(tree, [&](auto&, auto& child) { visit(child, [] { return std::string(); }); });
  } else if constexpr (is_plain_struct<Plain>) {
    if constexpr (!std::is_empty_v<Plain>) {
      if constexpr (is_tree_type<Plain>()) {
        const auto name = [](std::size_t n) {
          return "." +
                 field_name(field_texts<Plain>(std::make_index_sequence<field_count<Plain>()>())[n],
                            n);
        };
        std::size_t i = 0;
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

/// Sets the numbers of a tree of derivatives, which are constants, to zero.
template <class T>
void zero_numbers(T& tree) {
  if constexpr (Number<T>) tree = T();
  else if constexpr (!std::is_same_v<std::remove_const_t<T>, Tensor> &&
                     !is_static<std::remove_const_t<T>>)
    for_each_child(tree, [](auto& child, auto&&) { zero_numbers(child); });
}

/// Puts the leaves starting at `*next` in place of the tree's Tensors.
template <class T>
void assign_leaves(T& tree, const Tensor*& next) {
  for_each_leaf(tree, [&](Tensor& t) { t = *next++; });
}

// --- copies --------------------------------------------------------------------------------------

struct IsShared {
  template <class T>
  static constexpr bool is = is_shared<T>;
};
/// Classes whose copies may share their members with them, for all that vt knows.
struct IsListedByCode {
  template <class T>
  static constexpr bool is =
      listing<T>() == Listing::specialised || listing<T>() == Listing::function;
};
/// May a copy of a T share Tensors with it?
template <class T>
inline constexpr bool copies_share = has_part<IsShared, T>() || has_part<IsListedByCode, T>();
/// `given`: what the class of that name has given as its clone, by name; "": nothing.
[[noreturn]] void refuse_clone(const char* wanted, const char* given);
/// An object of the same class, as it makes it itself. Throws: Error(tree) if it makes another.
template <class Class>
std::shared_ptr<Class> cloned(const Class& object) {
  std::shared_ptr<Class> copy(object.clone());
#ifdef __cpp_rtti
  const Class* const made = copy.get();
  if (!made) refuse_clone(typeid(object).name(), "");
  if (typeid(object) != typeid(*made)) refuse_clone(typeid(object).name(), typeid(*made).name());
#else
  if (!copy) refuse_clone("", "");
#endif
  return copy;
}
/// Gives a copy of a tree objects of its own in place of those that its pointers share.
template <class T>
void unshare(T& tree) {
  if constexpr (has_part<IsShared, T>()) {
    if constexpr (is_shared<T>) {
      using Pointed = std::remove_const_t<typename T::element_type>;
      if (!tree) return;
      if constexpr (std::is_polymorphic_v<Pointed> && !std::is_final_v<Pointed>)
        tree = cloned<Pointed>(*tree);
      else tree = std::make_shared<Pointed>(*tree);
    }
    for_each_child(tree, [](auto& child, auto&&) { unshare(child); });
  }
}
[[noreturn]] void refuse_shared_copy(const std::string& path);
template <class T>
std::vector<std::string> leaf_paths(const T& tree);
/// A copy in whose Tensors others may be put: it has objects of its own where pointers lead.
/// Throws: Error(tree) where a class copies itself without its Tensors.
template <class T>
T copied(const T& tree) {
  T copy = tree;
  unshare(copy);
  if constexpr (has_part<IsListedByCode, T>()) {
    SmallVec<const Tensor*, 8> leaves;
    for_each_leaf(tree, [&](const Tensor& t) { leaves.push_back(&t); });
    std::size_t i = 0;
    for_each_leaf(copy, [&](const Tensor& t) {
      if (i < leaves.size() && leaves[i] == &t) refuse_shared_copy(leaf_paths(tree)[i]);
      ++i;
    });
  }
  return copy;
}

/// The tree with the leaves from `*next` on.
template <class T>
T filled(T tree, const Tensor*& next) {
  unshare(tree);
  assign_leaves(tree, next);
  return tree;
}
template <class T>
T with_leaves(T tree, std::span<const Tensor> leaves) {
  const Tensor* next = leaves.data();
  return filled(std::move(tree), next);
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
T hollow(const T& tree) {
  T copy = copied(tree);
  for_each_leaf(copy, [](Tensor& t) { t = Tensor(); });
  keep_texts(copy);
  return copy;
}

// --- paths ---------------------------------------------------------------------------------------

/// The paths of all leaves, in order, like ".weights[2]".
template <class T>
void append_leaf_paths(std::vector<std::string>& paths, const std::string& path, const T& tree) {
  if constexpr (std::is_same_v<T, Tensor>) {
    paths.push_back(path);
  } else if constexpr (!is_static<T>) {
    for_each_child(tree, [&](const auto& child, auto&& name) {
      append_leaf_paths(paths, path + name(), child);
    });
  }
}

template <class T>
std::vector<std::string> leaf_paths(const T& tree) {
  std::vector<std::string> paths;
  append_leaf_paths(paths, "", tree);
  return paths;
}

/// Names for the leaves of an argument list: "argument 1 [0].bias".
template <class... T>
std::vector<std::string> argument_names(const std::tuple<T...>& arguments) {
  std::vector<std::string> names;
  std::size_t index = 0;
  const auto append = [&](const auto& tree) {
    const std::size_t before = names.size();
    append_leaf_paths(names, "", tree);
    const std::string argument = "argument " + std::to_string(index++);
    for (std::size_t i = before; i < names.size(); ++i)
      names[i] = argument + (names[i].empty() ? "" : " ") + names[i];
  };
  std::apply([&](const auto&... argument) { (append(argument), ...); }, arguments);
  return names;
}
template <class T>
std::string result_name(std::size_t leaf, const T& result) {
  const std::vector<std::string> paths = leaf_paths(result);
  return leaf < paths.size() && !paths[leaf].empty() ? "result " + paths[leaf] : "the result";
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
template <class T>
void append_static(std::string& key, const T& tree);

/// Appends a static value.
template <class T>
void append_value(std::string& key, const T& value) {
  if constexpr (Number<T> || std::is_enum_v<T>) {
    append_bytes(key, value);
  } else if constexpr (std::is_same_v<T, Shape> || std::is_same_v<T, Axes>) {
    append_text(key, value.str());
  } else if constexpr (std::is_same_v<T, Device>) {
    append_bytes(key, value.kind);
    append_bytes(key, value.index);
  } else if constexpr (std::is_same_v<T, const char*>) {
    append_bytes(key, value != nullptr);
    if (value) append_text(key, value);
  } else if constexpr (is_bits<T>) {
    append_bytes(key, value.size());
    for (const bool b : value) key += static_cast<char>(b);
  } else if constexpr (!std::is_same_v<T, std::nullopt_t>) {
    append_text(key, value);
  }
}
/// Appends what is static about an inner node itself: a size, a key, which alternative it is.
template <class T>
void append_structure(std::string& key, const T& tree) {
  if constexpr (is_listed<T>) {
    if constexpr (has_counted_members<T>) append_bytes(key, listed_members<T>(tree).size());
  } else if constexpr (is_vector<T> || is_span<T> || is_map<T>) {
    append_bytes(key, tree.size());
  } else if constexpr (is_optional<T>) {
    append_bytes(key, tree.has_value());
  } else if constexpr (is_variant<T>) {
    append_bytes(key, tree.index());
  } else if constexpr (is_shared<T>) {
    append_bytes(key, tree != nullptr);
#ifdef __cpp_rtti
    if constexpr (std::is_polymorphic_v<typename T::element_type>)
      if (const auto* object = tree.get()) append_text(key, typeid(*object).name());
#endif
  }
  if constexpr (is_map<T>)
    for_each_by_key(tree, [&](const auto&, const auto& k) { append_static(key, k); });
}
/// Appends what is static about a tree: numbers, strings, sizes and keys of containers; no Tensors.
template <class T>
void append_static(std::string& key, const T& tree) {
  if constexpr (std::is_same_v<T, Tensor>) {
  } else if constexpr (is_static<T>) {
    append_value(key, tree);
  } else {
    append_structure(key, tree);
    for_each_child(tree, [&](const auto& child, auto&&) { append_static(key, child); });
  }
}

/// What is static about a tree, part by part with the path to each; without its `values` only how
/// it is built.
template <bool values = true, class T>
void append_parts(Vec<std::pair<std::string, std::string>>& parts, const std::string& path,
                  const T& tree) {
  if constexpr (!std::is_same_v<T, Tensor>) {
    std::string own;
    if constexpr (!is_static<T>) append_structure(own, tree);
    else if constexpr (values) append_value(own, tree);
    parts.emplace_back(path, std::move(own));
    if constexpr (!is_static<T>)
      for_each_child(tree, [&](const auto& child, auto&& name) {
        append_parts<values>(parts, path + name(), child);
      });
  }
}
/// The path to the first place where trees of one type differ in more than the values of their
/// Tensors: in a size, a key, with `values` in a number.
template <bool values = true, class T>
std::optional<std::string> first_difference(const T& a, const T& b) {
  Vec<std::pair<std::string, std::string>> of_a, of_b;
  append_parts<values>(of_a, "", a);
  append_parts<values>(of_b, "", b);
  for (std::size_t i = 0; i < of_a.size() && i < of_b.size(); ++i)
    if (of_a[i].second != of_b[i].second) return of_a[i].first;
  return std::nullopt;
}

// --- trees of trees ------------------------------------------------------------------------------

/// The type of a tree whose Tensors are replaced by `Leaf` (classes become tuples of their
/// members).
template <class T, class Leaf>
struct Replaced {
  static auto choose() {
    if constexpr (std::is_same_v<T, Tensor>) return std::type_identity<Leaf>{};
    else if constexpr (is_static<T>) return std::type_identity<T>{};
    else if constexpr (has_counted_members<T>) return std::type_identity<std::vector<Leaf>>{};
    else if constexpr (is_variant<T>)
      return []<template <class...> class V, class... E>(std::type_identity<V<E...>>) {
        return std::type_identity<V<typename Replaced<E, Leaf>::type...>>{};
      }(std::type_identity<T>{});
    else
      return []<class... E>(Types<E...>) {
        return std::type_identity<
            std::tuple<typename Replaced<std::remove_const_t<E>, Leaf>::type...>>{};
      }(part_types<T>());
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
template <template <class...> class Map, class K, class V, class H, class E, class A, class Leaf>
  requires is_unordered_map<Map<K, V, H, E, A>>
struct Replaced<Map<K, V, H, E, A>, Leaf> {
  using type = Map<K, typename Replaced<V, Leaf>::type, H, E>;
};
template <class T, class Leaf>
struct Replaced<std::shared_ptr<T>, Leaf> {
  using type = std::shared_ptr<typename Replaced<std::remove_const_t<T>, Leaf>::type>;
};
template <class T, std::size_t N, class Leaf>
struct Replaced<T[N], Leaf> {
  using type = std::array<typename Replaced<T, Leaf>::type, N>;
};
template <class T, class Leaf>
struct Replaced<std::optional<T>, Leaf> {
  using type = std::optional<typename Replaced<T, Leaf>::type>;
};

[[noreturn]] void refuse_valueless();
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
    for_each_by_key(tree, [&](const auto& child, const auto& key) {
      r.emplace(key, replace_leaves<Leaf>(child, make));
    });
    return r;
  } else if constexpr (is_optional<T>) {
    return tree ? Result(replace_leaves<Leaf>(*tree, make)) : Result();
  } else if constexpr (is_shared<T>) {
    using Pointed = typename Result::element_type;
    return tree ? std::make_shared<Pointed>(replace_leaves<Leaf>(*tree, make)) : nullptr;
  } else if constexpr (is_variant<T>) {
    std::optional<Result> r;
    at_alternative(tree, [&](auto index, const auto& child) {
      r.emplace(index, replace_leaves<Leaf>(child, make));
    });
    if (!r) refuse_valueless();
    return std::move(*r);
  } else if constexpr (std::is_bounded_array_v<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Result{replace_leaves<Leaf>(tree[I], make)...};
    }(std::make_index_sequence<std::extent_v<T>>());
  } else if constexpr (has_counted_members<T>) {
    Result r;
    for (const Tensor* t : listed_members<T>(tree)) r.push_back(replace_leaves<Leaf>(*t, make));
    return r;
  } else {
    // Braced initialisation evaluates in order, as leaf order needs.
    auto build = [&](const auto&... child) { return Result{replace_leaves<Leaf>(child, make)...}; };
    if constexpr (is_product<T>) return std::apply(build, tree);
    else if constexpr (is_listed<T>) return std::apply(build, listed_members<T>(tree));
    else return std::apply(build, fields_of(tree));
  }
}

}  // namespace vt::detail
