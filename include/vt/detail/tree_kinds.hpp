// Which types are trees, and what keeps the others from being one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/aggregate.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/tensor.hpp>

namespace vt {

template <class T>
struct TreeMembers;

}  // namespace vt

namespace vt::detail {

// --- kinds of types ------------------------------------------------------------------------------

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
inline constexpr bool is_span = false;
template <class T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class A>
inline constexpr bool is_vector<std::vector<bool, A>> = false;  // static, as a number is
template <class T>
inline constexpr bool is_bits = false;
template <class A>
inline constexpr bool is_bits<std::vector<bool, A>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_shared = false;
template <class T>
inline constexpr bool is_shared<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_ordered_map = false;
template <class K, class V, class C, class A>
inline constexpr bool is_ordered_map<std::map<K, V, C, A>> = true;
// Told by what they have, as most programs do without their headers.
template <class T>
inline constexpr bool is_unordered_map = false;
template <template <class...> class M, class K, class V, class H, class E, class A>
inline constexpr bool is_unordered_map<M<K, V, H, E, A>> = requires {
  typename M<K, V, H, E, A>::mapped_type;
  typename M<K, V, H, E, A>::hasher;
};
template <class T>
inline constexpr bool is_map = is_ordered_map<T> || is_unordered_map<T>;
template <class T>
inline constexpr bool is_variant = requires(const T& v) {
  { v.valueless_by_exception() } -> std::same_as<bool>;
  v.index();
};
template <class T>
inline constexpr bool is_pointer_like = std::is_pointer_v<T> || std::is_member_pointer_v<T>;
template <class T>
inline constexpr bool is_pointer_like<std::weak_ptr<T>> = true;
template <class T, class D>
inline constexpr bool is_pointer_like<std::unique_ptr<T, D>> = true;

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
    std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*> || is_bits<T> ||
    std::is_same_v<T, Shape> || std::is_same_v<T, Axes> || std::is_same_v<T, Device> ||
    std::is_same_v<T, std::nullopt_t>;

template <class T>
inline constexpr bool is_product = is_tuple<T> || is_pair<T> || is_array<T>;

// --- classes that list their members -------------------------------------------------------------

/// How a class tells its members: by TreeMembers, by pointers to them, by a function of its own.
enum class Listing { none, specialised, pointers, function };
template <class T>
constexpr Listing listing() {
  if constexpr (requires(T& v) { TreeMembers<T>::of(v); }) return Listing::specialised;
  else if constexpr (!std::is_class_v<T>) return Listing::none;
  else if constexpr (requires(T& v) { v.tree_members(); }) return Listing::function;
  else if constexpr (requires {
                       std::tuple_size<std::remove_cvref_t<decltype(T::tree_members)>>::value;
                     })
    return Listing::pointers;
  else return Listing::none;
}
template <class T>
inline constexpr bool is_listed = listing<T>() != Listing::none;
template <class T>
inline constexpr bool is_plain_struct =
    !is_listed<T> && std::is_aggregate_v<T> && !std::is_union_v<T> && !is_array<T> && !is_static<T>;

/// Throws: Error(tree) if one of them is null.
std::vector<Tensor*> checked_members(std::vector<Tensor*> list);
template <class List>
constexpr List checked_members(List list) {
  return list;
}
/// What the list of a T gives: references as a tuple, or a std::vector<Tensor*>. A list need be
/// written for objects that may change only.
template <class T>
constexpr auto listed_members(const T& v) {
  T& object = const_cast<T&>(v);
  if constexpr (listing<T>() == Listing::specialised)
    return checked_members(TreeMembers<T>::of(object));
  else if constexpr (listing<T>() == Listing::function)
    return checked_members(object.tree_members());
  else return std::apply([&](auto... m) { return std::tie(object.*m...); }, T::tree_members);
}
template <class T>
using MemberList = decltype(listed_members(std::declval<const T&>()));
/// Does T tell the number of its members, which are Tensors, while it runs?
template <class T>
constexpr bool counts_members() {
  if constexpr (is_listed<T>) return std::is_same_v<MemberList<T>, std::vector<Tensor*>>;
  else return false;
}
template <class T>
inline constexpr bool has_counted_members = counts_members<T>();
template <class List>
inline constexpr bool are_references = std::is_same_v<List, std::vector<Tensor*>>;
template <class... E>
inline constexpr bool are_references<std::tuple<E...>> = (std::is_lvalue_reference_v<E> && ...);

template <class M>
struct MemberOf;
template <class Member, class Class>
struct MemberOf<Member Class::*> {
  using type = Class;
};
/// Has T only the list of a base, and members besides?
template <class T>
constexpr bool inherits_list() {
  if constexpr (listing<T>() == Listing::pointers) {
    using List = std::remove_cvref_t<decltype(T::tree_members)>;
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return sizeof...(K) > 0 &&
             ((sizeof(T) > sizeof(typename MemberOf<std::tuple_element_t<K, List>>::type)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<List>>());
  } else if constexpr (listing<T>() == Listing::function && requires { &T::tree_members; }) {
    return sizeof(T) > sizeof(typename MemberOf<decltype(&T::tree_members)>::type);
  } else {
    return false;
  }
}
/// Are there names for exactly what the list has?
template <class T>
constexpr bool names_fit() {
  if constexpr (!requires { TreeMembers<T>::names; }) return true;
  else if constexpr (requires { std::tuple_size<MemberList<T>>::value; })
    return std::size(TreeMembers<T>::names) == std::tuple_size_v<MemberList<T>>;
  else return false;
}

// --- the types of the parts ----------------------------------------------------------------------

template <class... T>
struct Types {};
template <class T>
constexpr auto part_types() {
  if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
    return Types<>();
  } else if constexpr (is_listed<T>) {
    if constexpr (has_counted_members<T>) return Types<Tensor>();
    else
      return []<class... E>(std::type_identity<std::tuple<E&...>>) {
        return Types<E...>();
      }(std::type_identity<MemberList<T>>());
  } else if constexpr (is_array<T> || is_vector<T> || is_optional<T> || is_span<T>) {
    return Types<typename T::value_type>();
  } else if constexpr (is_shared<T>) {
    return Types<std::remove_const_t<typename T::element_type>>();
  } else if constexpr (is_map<T>) {
    return Types<typename T::mapped_type>();
  } else if constexpr (is_product<T> || is_variant<T>) {
    return []<template <class...> class Product, class... E>(std::type_identity<Product<E...>>) {
      return Types<E...>();
    }(std::type_identity<T>());
  } else if constexpr (std::is_bounded_array_v<T>) {
    return Types<std::remove_extent_t<T>>();
  } else if constexpr (std::is_empty_v<T>) {
    return Types<>();
  } else {
    return []<class... E>(std::type_identity<std::tuple<E&...>>) {
      return Types<E...>();
    }(std::type_identity<decltype(fields_of(std::declval<T&>()))>());
  }
}
/// Is a T, a tree, or one of its parts a type for which Kind::is holds?
template <class Kind, class T>
constexpr bool has_part() {
  using Plain = std::remove_const_t<T>;
  if constexpr (Kind::template is<Plain>) return true;
  else
    return
        []<class... E>(Types<E...>) { return (has_part<Kind, E>() || ...); }(part_types<Plain>());
}
struct IsTensor {
  template <class T>
  static constexpr bool is = std::is_same_v<T, Tensor>;
};
/// Can there be a Tensor in a T, a tree?
template <class T>
constexpr bool holds_tensor() {
  return has_part<IsTensor, T>();
}

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

// --- what is no tree -----------------------------------------------------------------------------

/// Is T a tree, or what keeps it from being one? `Culprit` is the type of the part that is none.
template <class T>
struct TreeCheck;
template <TreeFault what, class T>
struct Fault {
  static constexpr TreeFault fault = what;
  using Culprit = T;
};
using NoFault = Fault<TreeFault::none, void>;
/// The check of a part. One that has begun and is not done yet is a part of itself.
template <class T, bool done = requires { TreeCheck<T>::fault; }>
struct PartCheck : TreeCheck<T> {};
template <class T>
struct PartCheck<T, false> : Fault<TreeFault::recursive, T> {};
template <class... T>
struct FirstFault : NoFault {};
template <class T, class... Rest>
struct FirstFault<T, Rest...>
    : std::conditional_t<PartCheck<T>::fault != TreeFault::none, std::type_identity<PartCheck<T>>,
                         std::type_identity<FirstFault<Rest...>>>::type {};

/// A member of a class. It may be const if it holds no Tensor: others are put in their place.
template <class T>
struct Field;
template <class T>
struct TreeCheck<Field<T>> : PartCheck<T> {};
template <class T>
constexpr auto check_const_field() {
  if constexpr (PartCheck<T>::fault != TreeFault::none) return PartCheck<T>();
  else if constexpr (holds_tensor<T>()) return Fault<TreeFault::constant, const T>();
  else return NoFault();
}
template <class T>
struct TreeCheck<Field<const T>> : decltype(check_const_field<T>()) {};
/// A class of which there is always a copy to be had, as that of a pointer.
template <class T>
struct Pointee;

template <class E>
PartCheck<E> parts_check(Types<E>);
template <class... E>
FirstFault<E...> parts_check(Types<E...>);
template <class... E>
FirstFault<Field<E>...> fields_check(Types<E...>);

template <class T>
constexpr auto check_members() {
  if constexpr (!are_references<MemberList<T>> || !names_fit<T>())
    return Fault<TreeFault::list, T>();
  else if constexpr (inherits_list<T>()) return Fault<TreeFault::inherited, T>();
  else return decltype(fields_check(part_types<T>()))();
}
/// A class with virtual functions may be another one than its pointer says, whose copy it makes
/// itself.
template <class T>
inline constexpr bool copies_itself = requires(const T& v) { std::shared_ptr<T>(v.clone()); };
template <class T>
constexpr auto check_pointee() {
  if constexpr (std::is_polymorphic_v<T> && !std::is_final_v<T>) {
    if constexpr (!is_listed<T> || !copies_itself<T>) return Fault<TreeFault::polymorphic, T>();
    else return check_members<T>();
  } else {
    return PartCheck<T>();
  }
}
template <class T>
struct TreeCheck<Pointee<T>> : decltype(check_pointee<T>()) {};

template <class T>
constexpr auto check_tree() {
  if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
    return NoFault();
  } else if constexpr (std::is_same_v<T, Refused>) {
    return Fault<TreeFault::refused, T>();
  } else if constexpr (std::is_void_v<T>) {
    return Fault<TreeFault::is_void, T>();
  } else if constexpr (std::is_reference_v<T> || is_span<T>) {
    return Fault<TreeFault::reference, T>();
  } else if constexpr (std::is_const_v<T>) {
    return Fault<TreeFault::constant, T>();
  } else if constexpr (is_listed<T>) {
    if constexpr (!std::is_copy_constructible_v<T>) return Fault<TreeFault::uncopyable, T>();
    else return check_members<T>();
  } else if constexpr (is_shared<T>) {
    return PartCheck<Pointee<std::remove_const_t<typename T::element_type>>>();
  } else if constexpr (is_pointer_like<T>) {
    return Fault<TreeFault::pointer, T>();
  } else if constexpr (requires { T::RowsAtCompileTime; }) {
    return Fault<TreeFault::eigen, T>();
  } else if constexpr (is_map<T>) {
    if constexpr (!requires(const typename T::key_type& k) { k < k; })
      return Fault<TreeFault::unordered_keys, T>();
    else return FirstFault<typename T::key_type, typename T::mapped_type>();
  } else if constexpr (requires { typename T::key_type; }) {
    return Fault<TreeFault::set, T>();
  } else if constexpr (is_array<T> || is_vector<T> || is_optional<T> || is_product<T> ||
                       is_variant<T> || std::is_bounded_array_v<T>) {
    return decltype(parts_check(part_types<T>()))();
  } else if constexpr (is_plain_struct<T>) {
    constexpr TreeFault fault = struct_fault<T>();
    if constexpr (fault != TreeFault::none) return Fault<fault, T>();
    else if constexpr (std::is_empty_v<T>) return NoFault();
    else if constexpr (has_reference<T>(std::make_index_sequence<field_count<T>()>()))
      return Fault<TreeFault::reference, T>();
    else return decltype(fields_check(part_types<T>()))();
  } else {
    return Fault<TreeFault::other, T>();
  }
}
template <class T>
struct TreeCheck : decltype(check_tree<T>()) {};

}  // namespace vt::detail
