// Plain aggregates as tuples, without a macro: how many fields a struct has, references to them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace vt::detail {

/// Stands for a value of any type while fields are counted; never converted at run time.
template <class Aggregate>
struct AnyField {
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Aggregate>)
  constexpr operator T&() const&& noexcept;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Aggregate>)
  constexpr operator T&&() const&& noexcept;
};

template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField<T>{})...}; };
}

inline constexpr std::size_t most_fields = 20;

template <class T, std::size_t N = most_fields>
constexpr std::size_t field_count() {
  if constexpr (takes_fields<T>(std::make_index_sequence<N>{})) return N;
  else if constexpr (N == 0) return 0;
  else return field_count<T, N - 1>();
}

template <class T, std::size_t... I, std::size_t... J>
constexpr bool takes_pair_between(std::index_sequence<I...>, std::index_sequence<J...>) {
  return requires {
    T{(static_cast<void>(I), AnyField<T>{})...,
      {AnyField<T>{}, AnyField<T>{}},
      (static_cast<void>(J), AnyField<T>{})...};
  };
}

/// Is a field among the N counted ones a C array? Each of its elements was then counted as a field.
template <class T, std::size_t N>
constexpr bool has_c_array() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return ((takes_pair_between<T>(std::make_index_sequence<I>{}, std::index_sequence<>{}) &&
             !takes_pair_between<T>(std::make_index_sequence<I>{},
                                    std::make_index_sequence<N - I - 1>{})) ||
            ...);
  }(std::make_index_sequence<N>{});
}

/// As AnyField, but only for base classes.
template <class Aggregate>
struct AnyBase {
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Aggregate> &&
             std::is_base_of_v<std::remove_cvref_t<T>, Aggregate>)
  constexpr operator T&() const&& noexcept;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Aggregate> &&
             std::is_base_of_v<std::remove_cvref_t<T>, Aggregate>)
  constexpr operator T&&() const&& noexcept;
};
/// Has this aggregate a base class? That comes first in a list of values.
template <class T, std::size_t N>
constexpr bool has_base() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return requires { T{AnyBase<T>{}, (static_cast<void>(I), AnyField<T>{})...}; };
  }(std::make_index_sequence<N - 1>{});
}

/// What keeps a type from being a tree.
enum class TreeFault {
  none,
  refused,
  is_void,
  eigen,
  pointer,
  polymorphic,
  set,
  unordered_keys,
  many_fields,
  c_array,
  base,
  inherited,
  list,
  reference,
  constant,
  recursive,
  uncopyable,
  other
};
/// What keeps an aggregate from being taken apart.
template <class T>
constexpr TreeFault struct_fault() {
  if constexpr (std::is_empty_v<T>) return TreeFault::none;
  // fields would be counted wrongly
  else if constexpr (!std::is_copy_constructible_v<T>) return TreeFault::uncopyable;
  else if constexpr (takes_fields<T>(std::make_index_sequence<most_fields + 1>{}))
    return TreeFault::many_fields;
  else if constexpr (field_count<T>() == 0) return TreeFault::other;
  else if constexpr (has_base<T, field_count<T>()>()) return TreeFault::base;
  else if constexpr (has_c_array<T, field_count<T>()>()) return TreeFault::c_array;
  else return TreeFault::none;
}

/// References to the fields of an aggregate, as a tuple. A wrong count does not compile.
template <class T>
constexpr auto fields_of(T& v) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (n == 1) { auto& [a] = v; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = v; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = v; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = v; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = v; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = v; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = v;
    return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = v;
    return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = v;
    return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else if constexpr (n == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  else if constexpr (n == 17) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r); }
  else if constexpr (n == 18) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s); }
  else if constexpr (n == 19) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u); }
  // clang-format on
}

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
/// A T that nowhere is: only the addresses of its fields are looked at, while compiling.
template <class T>
struct Unborn {
  const T value;
};
template <class T>
extern const Unborn<T> unborn;

template <class T>
struct FieldAddress {
  T address;
};
template <class T>
FieldAddress(T) -> FieldAddress<T>;
template <auto...>
struct Addresses;
/// A text that ends with the field's name, closing brackets and what else g++ knows.
template <auto field>
constexpr const char* field_text() {
  return __PRETTY_FUNCTION__;
}
/// Is a field of T a reference? Then it has no address while T is nowhere; a bit-field never has.
template <class T, std::size_t... I>
constexpr bool has_reference(std::index_sequence<I...>) {
  return !requires {
    typename Addresses<FieldAddress{&std::get<I>(fields_of(unborn<T>.value))}...>;
  };
}
/// Such texts of all fields of T, in order.
template <class T, std::size_t... I>
const char* const* field_texts(std::index_sequence<I...>) {
  static constexpr const char* texts[] = {
      field_text<FieldAddress{&std::get<I>(fields_of(unborn<T>.value))}>()...};
  return texts;
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif
/// The same of the members that T lists by pointers.
template <class T, std::size_t... I>
const char* const* pointer_texts(std::index_sequence<I...>) {
  static constexpr const char* texts[] = {
      field_text<FieldAddress{std::get<I>(T::tree_members)}>()..., nullptr};
  return texts;
}
/// The name at the end of such a text; "fieldN" where it tells none.
std::string field_name(const char* text, std::size_t index);

}  // namespace vt::detail
