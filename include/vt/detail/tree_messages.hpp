// What compilers say of a call of a transform that cannot be: an argument or result that is no
// tree, arguments that the function does not take.
#pragma once

#include <vt/detail/tree_kinds.hpp>

namespace vt::detail {

/// What keeps a call of a transform from being compiled: an argument or a result that is no tree;
/// an argument that the function wants to change, or cannot take; where a certain function is
/// wanted, its parameters or the type of its result; what solves an equation; a container of
/// numbers where the function takes something else.
enum class CallFault {
  none,
  refused,
  argument,
  result,
  reference,
  arguments,
  parameters,
  type,
  solver,
  numbers
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
                name ": an argument or result holds an Eigen matrix, or the function "             \
                     "returns one: hold and return a vt::Tensor, vt::tensor(matrix)");             \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::pointer>,                        \
                name ": an argument or result is or holds a pointer, which is no tree:"            \
                     " hold the value or a std::shared_ptr, or list what it points "               \
                     "to (vt::TreeMembers), or capture it in the function");                       \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::set>,                            \
                name ": an argument or result is or holds a set, which is no tree: use"            \
                     " std::vector or std::map");                                                  \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::unordered_keys>,                 \
                name ": an argument or result is or holds an unordered map whose keys "            \
                     "have no operator<, by which its values are ordered: give them "              \
                     "one, or use std::vector");                                                   \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::many_fields>,                    \
                name ": an argument or result is or holds a struct with more than 20 "             \
                     "fields (each element of a C array is one): nest structs, or "                \
                     "list its members, template <> struct vt::TreeMembers<Name> { "               \
                     "static auto of(auto& x) { return std::tie(x.a, x.b); } };");                 \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::c_array>,                        \
                name ": an argument or result is or holds a struct with a C array as a"            \
                     " member: use std::array, or list its members, template <> "                  \
                     "struct vt::TreeMembers<Name> { static auto of(auto& x) { "                   \
                     "return std::tie(x.a, x.b); } };");                                           \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::base>,                           \
                name ": an argument or result is or holds a struct with a base class: "            \
                     "list its members, template <> struct vt::TreeMembers<Name> { "               \
                     "static auto of(auto& x) { return std::tie(x.a, x.b); } };");                 \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::polymorphic>,                    \
                name ": an argument or result is or holds a std::shared_ptr to a class"            \
                     " with virtual functions, which may point to another class: "                 \
                     "give it virtual std::shared_ptr<Base> clone() const and "                    \
                     "virtual std::vector<vt::Tensor*> tree_members() and pass a "                 \
                     "std::shared_ptr<Base>, or hold a std::variant");                             \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::inherited>,                      \
                name ": an argument or result is or holds a class whose list "                     \
                     "tree_members is that of its base, and which has more members: "              \
                     "give it a list of its own, std::tuple_cat(Base::tree_members, "              \
                     "std::tuple(&Derived::x))");                                                  \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::list>,                           \
                name ": the list of an argument's or result's members must be "                    \
                     "std::tie(...) of them, pointers to them as "                                 \
                     "std::tuple(&Class::member, ...), or a "                                      \
                     "std::vector<vt::Tensor*>; vt::TreeMembers::names, if there, "                \
                     "has a name for each");                                                       \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::reference>,                      \
                name ": an argument or result holds a reference, a std::span or a bit-"            \
                     "field, which is no tree: hold the value (copies of a "                       \
                     "vt::Tensor share its memory)");                                              \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::constant>,                       \
                name ": an argument or result holds a const vt::Tensor or a const container of "   \
                     "them, in whose place others are put: leave const off, also behind "          \
                     "tree_members()");                                                            \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::recursive>,                      \
                name ": an argument or result holds a struct that is a part of itself: use a "     \
                     "std::vector<vt::Tensor>, with indices for the structure");                   \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::uncopyable>,                     \
                name ": an argument or result is or holds a class that cannot be "                 \
                     "copied, as one with a std::unique_ptr or a std::mutex: use "                 \
                     "std::shared_ptr, leave that member out, or capture the object "              \
                     "in the function");                                                           \
  static_assert(::vt::detail::is_tree<typename Check::Culprit, Check::fault,                       \
                    Check::tree_fault != ::vt::detail::TreeFault::other>,                          \
                name ": an argument or result is or holds what is no tree. Trees are "             \
                     "vt::Tensor, numbers, enums, strings, std::pair, tuple, array, "              \
                     "vector, map, unordered_map, optional, variant, shared_ptr and "              \
                     "structs of them with public members only. A class with constructors or "     \
                     "private members lists its members behind them, public: static constexpr "    \
                     "auto tree_members = std::tuple(&Name::a, &Name::b); or, from outside, "      \
                     "template <> struct vt::TreeMembers<Name> { static auto of(auto& x) { "       \
                     "return std::tie(x.a, x.b); } }; Capture other values in the function");      \
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

}  // namespace vt::detail
