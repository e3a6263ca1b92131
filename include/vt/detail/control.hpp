// What the control-flow functions share: carries with numbers as Tensors, checks of what a body
// gives, names of leaves for messages, and the entry points on flat lists of Tensors.
#pragma once

#include <array>

#include <vt/detail/tree_function.hpp>
#include <vt/ops.hpp>

namespace vt {
struct AssociativeScanOptions;
struct MapOptions;
struct ScanOptions;
struct WhileOptions;
}  // namespace vt

namespace vt::detail {

/// The tree type with numbers as Tensors: what is carried by a loop must be able to change.
template <class T>
struct Lifted {
  using type = std::conditional_t<Number<T>, Tensor, T>;
};
template <class... T>
struct Lifted<std::tuple<T...>> {
  using type = std::tuple<typename Lifted<T>::type...>;
};
template <class A, class B>
struct Lifted<std::pair<A, B>> {
  using type = std::pair<typename Lifted<A>::type, typename Lifted<B>::type>;
};
template <class T, std::size_t N>
struct Lifted<std::array<T, N>> {
  using type = std::array<typename Lifted<T>::type, N>;
};
template <class T, class A>
struct Lifted<std::vector<T, A>> {
  using type = std::vector<typename Lifted<T>::type>;
};
template <class K, class V, class C, class A>
struct Lifted<std::map<K, V, C, A>> {
  using type = std::map<K, typename Lifted<V>::type, C>;
};
template <class T>
struct Lifted<std::optional<T>> {
  using type = std::optional<typename Lifted<T>::type>;
};
template <class T>
using LiftedTree = typename Lifted<std::decay_t<T>>::type;

template <class T>
LiftedTree<T> lifted(const T& tree) {
  using Result = LiftedTree<T>;
  if constexpr (std::is_same_v<Result, T>) {
    return tree;
  } else if constexpr (Number<T>) {
    return Tensor(tree);
  } else if constexpr (is_vector<T>) {
    Result r;
    for (const auto& child : tree) r.push_back(lifted(child));
    return r;
  } else if constexpr (is_map<T>) {
    Result r;
    for (const auto& [key, child] : tree) r.emplace(key, lifted(child));
    return r;
  } else if constexpr (is_optional<T>) {
    return tree ? Result(lifted(*tree)) : Result();
  } else {
    return std::apply([](const auto&... child) { return Result{lifted(child)...}; }, tree);
  }
}

/// A value, as stands in the place of a function where the arguments of a call are in another
/// order.
template <class T>
inline constexpr bool is_value =
    std::is_same_v<T, Tensor> || Number<T> || is_vector<T> || is_map<T> || is_product<T>;
/// What is to be looked at next: nothing, where a value stands in the place of a function.
template <bool functions, class Check>
using CheckedNext = std::conditional_t<functions, Check, CallFaultOf<CallFault::none>>;

/// What f(carry, more…) gives, or f(parts…, more…); NotCallable if neither is possible.
template <class F, class Carry, class... More>
constexpr auto given_by_carry() {
  if constexpr (is_callable<F&, const Carry&, const More&...>)
    return std::type_identity<ResultOf<F, Carry, More...>>();
  else if constexpr (is_product<Carry>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::type_identity<GivenBy<F, std::tuple_element_t<I, Carry>..., More...>>();
    }(std::make_index_sequence<std::tuple_size_v<Carry>>());
  else return std::type_identity<NotCallable>();
}
template <class F, class Carry, class... More>
using GivenByCarry = typename decltype(given_by_carry<F, Carry, More...>())::type;
/// f with the index in front: as a function of the carry it is one like others.
template <class F>
struct IterationOf {
  F& f;
  const Tensor& index;
  template <class... Part>
    requires is_callable<F&, const Tensor&, const Part&...>
  auto operator()(const Part&... part) const
      -> std::invoke_result_t<F&, const Tensor&, const Part&...> {
    return f(index, part...);
  }
};

/// The same for scan's body, which need not take elements where there are none.
template <class F, class Carry, class Xs>
constexpr auto given_by_scan() {
  if constexpr (std::is_same_v<Xs, std::nullopt_t> &&
                !std::is_same_v<GivenByCarry<F, Carry>, NotCallable>)
    return std::type_identity<GivenByCarry<F, Carry>>();
  else return std::type_identity<GivenByCarry<F, Carry, Xs>>();
}
template <class F, class Carry, class Xs>
using GivenByScan = typename decltype(given_by_scan<F, Carry, Xs>())::type;

/// Is what a function gave a tree, of the type that is wanted?
template <class Given, class Wanted>
constexpr auto check_given() {
  if constexpr (std::is_same_v<Given, NotCallable>) return CallFaultOf<CallFault::parameters>();
  else if constexpr (!ResultCheck<Given>::holds) return ResultCheck<Given>();
  else if constexpr (!std::is_convertible_v<LiftedTree<Given>, Wanted>)
    return CallFaultOf<CallFault::type>();
  else return CallFaultOf<CallFault::none>();
}
template <class Given, class Wanted>
struct GivenCheck : decltype(check_given<Given, Wanted>()) {};

/// f(carry, more…); a tuple or pair may be taken apart by f's parameters.
template <class F, class Carry, class... More>
decltype(auto) call_on_carry(F& f, const Carry& carry, const More&... more) {
  if constexpr (is_callable<F&, const Carry&, const More&...>) {
    return f(carry, more...);
  } else {
    return std::apply([&](const auto&... part) -> decltype(auto) { return f(part..., more...); },
                      carry);
  }
}

/// What a control-flow call says of itself in messages.
struct ControlCall {
  const char* name;
  CallSite where;
  LeafName carry_name = {}, result_name = {}, sequence_name = {};
  LeafName branch_name = {};  ///< of function i
};
/// `alone`: the name of a tree that is one Tensor.
template <class T>
LeafName leaf_names(const char* what, const char* alone, const T& tree) {
  return [=, &tree](std::size_t leaf) {
    const std::vector<std::string> paths = leaf_paths(tree);
    return paths[leaf].empty() ? std::string(alone) : what + (" " + paths[leaf]);
  };
}
template <class T>
LeafName carry_names(const T& carry) {
  return leaf_names("carry", "the carry", carry);
}

/// Throws: `what`, a tree, must not differ from the one before it, but does at `path`. `sizes`: the
/// numbers of leaves that are needed and given.
[[noreturn]] void refuse_structure(const ControlCall&, const char* must, const char* what,
                                   const std::string& path,
                                   std::pair<std::size_t, std::size_t> sizes = {});

// On flat lists of Tensors; src/trace/ops/control.cpp and, for the last two,
// src/transforms/control.cpp.
/// branches[index](operands…), the index clamped.
std::vector<Tensor> switch_flat(const Tensor& index, std::span<const FlatFunction> branches,
                                std::span<const Tensor> operands, const ControlCall&);
std::vector<Tensor> cond_flat(const Tensor& predicate, const FlatFunction& on_true,
                              const FlatFunction& on_false, std::span<const Tensor> operands,
                              const ControlCall&);
std::vector<Tensor> while_flat(const FlatFunction& condition, const FlatFunction& body,
                               std::span<const Tensor> init, const WhileOptions&,
                               const ControlCall&);
/// body: (carry…, x…) → (carry…, y…). Gives the last carries, then the ys.
std::vector<Tensor> scan_flat(const FlatFunction& body, std::span<const Tensor> init,
                              std::span<const Tensor> xs, const ScanOptions&, const ControlCall&);
/// body: (i, carry…) → carry….
std::vector<Tensor> fori_flat(std::int64_t lower, std::int64_t upper, const FlatFunction& body,
                              std::span<const Tensor> init, const ControlCall&);
std::vector<Tensor> fori_flat(const Tensor& lower, const Tensor& upper, const FlatFunction& body,
                              std::span<const Tensor> init, const WhileOptions&,
                              const ControlCall&);
std::vector<Tensor> map_flat(const FlatFunction& f, std::span<const Tensor> xs, const MapOptions&,
                             const ControlCall&);
std::vector<Tensor> associative_scan_flat(const FlatFunction& op, std::span<const Tensor> elements,
                                          const AssociativeScanOptions&, const ControlCall&);

/// A branch on flat leaves; the first one to run leaves the tree of its result in `result`, which
/// the others must match.
template <class Result, class F, class Operands>
FlatFunction branch_function(F& f, const Operands& operands, std::optional<Result>& result,
                             const ControlCall& call) {
  return [&](std::span<const Tensor> leaves) {
    const Operands now = with_leaves(operands, leaves);
    const Result out = lifted(std::apply(f, now));
    if (!result) result.emplace(out);
    else if (const auto path = first_difference(*result, out))
      refuse_structure(call, "the functions must give trees of one structure", "result", *path);
    return tree_leaves(out);
  };
}
/// The names of the leaves of a result that is not known yet.
template <class Result>
LeafName branch_names(const std::optional<Result>& result) {
  return [&result](std::size_t leaf) {
    return result ? result_name(leaf, *result) : "result " + std::to_string(leaf);
  };
}

/// The leaves of what a function made of a tree, whose structure it must keep.
template <class Tree, class T>
std::vector<Tensor> kept_structure(const Tree& tree, const T& given, const char* must,
                                   const char* what, const ControlCall& call) {
  const Tree next = lifted(given);
  if (const auto path = first_difference(tree, next))
    refuse_structure(call, must, what, *path, {count_leaves(tree), count_leaves(next)});
  return tree_leaves(next);
}
template <class Carry, class T>
std::vector<Tensor> next_carry(const Carry& carry, const T& given, const ControlCall& call) {
  return kept_structure(carry, given, "the body must keep the carry's structure", "carry", call);
}

}  // namespace vt::detail
