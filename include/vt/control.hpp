// Control flow as equations: cond, switch_, while_loop, fori_loop, scan, map, associative_scan.
// Unlike C++ `if` and `while`, they may depend on values that are not known when the function is
// recorded, and under vmap each lane goes its own way.
#pragma once

#include <array>

#include <vt/detail/tree_function.hpp>
#include <vt/ops.hpp>

namespace vt {

/// Options of while_loop and fori_loop.
struct WhileOptions {
  /// States of the loop that reverse mode keeps, to start again from; 0: from 64 to 16, by the size
  /// of a state. A loop of more iterations is run again from one kept state to the next: once more
  /// up to the square of that number, at most three times up to its cube. Memory is used for states
  /// of iterations that happen, three times that number at most.
  Param<std::int64_t> checkpoint = 0;
};
/// Options of scan.
struct ScanOptions {
  /// needed only when there are no sequences
  std::optional<Param<std::int64_t>> length = std::nullopt;
  /// from the last element to the first; results lie as the sequences do
  bool reverse = false;
  Param<std::int64_t> unroll = 1;  ///< elements per iteration of the loop
};
/// Options of map.
struct MapOptions {
  Param<std::int64_t> batch_size = 0;  ///< elements at a time, vectorized by vmap; 0: one by one
};
/// Options of associative_scan.
struct AssociativeScanOptions {
  Param<int> axis = 0;
  bool reverse = false;
};

namespace detail {

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

/// A tree with other leaves.
template <class T>
T with_leaves(T tree, std::span<const Tensor> leaves) {
  const Tensor* next = leaves.data();
  assign_leaves(tree, next);
  return tree;
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
    const std::string path = leaf_path(tree, leaf);
    return path.empty() ? std::string(alone) : what + (" " + path);
  };
}
template <class T>
LeafName carry_names(const T& carry) {
  return leaf_names("carry", "the carry", carry);
}

/// Throws: `what`, a tree, must not differ from the one before it, but does at `path`.
[[noreturn]] void refuse_structure(const ControlCall&, const char* must, const char* what,
                                   const std::string& path);

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
  if (const auto path = first_difference(tree, next)) refuse_structure(call, must, what, *path);
  return tree_leaves(next);
}
template <class Carry, class T>
std::vector<Tensor> next_carry(const Carry& carry, const T& given, const ControlCall& call) {
  return kept_structure(carry, given, "the body must keep the carry's structure", "carry", call);
}

}  // namespace detail

/// on_true(operands…) if `predicate`, else on_false(operands…): only one of them runs. Both are
/// recorded, and must give trees of Tensors of the same shapes and dtypes (weak numbers adopt the
/// other's dtype); the result has the type of on_true's. What the functions capture is an operand
/// too.
/// Shapes: predicate bool[] (a number counts as true unless it is 0). Under vmap a predicate per
/// lane sends each lane through its own branch, in values, errors and derivatives alike.
/// Throws: Error if the predicate is no scalar or the results differ in structure, shape or dtype.
/// Source: JAX `lax.cond`.
template <class OnTrue, class OnFalse, class... A>
auto cond(Operand predicate, OnTrue on_true, OnFalse on_false, const A&... operands) {
  using Check = detail::FirstOf<detail::CallCheck<OnTrue, detail::Owned<A>...>,
                                detail::CallCheck<OnFalse, detail::Owned<A>...>>;
  VT_ASSERT_CALL("vt::cond", Check);
  if constexpr (!Check::holds) {
    return detail::Refused();
  } else {
    using Result = detail::LiftedTree<detail::ResultOf<OnTrue, detail::Owned<A>...>>;
    using Other = detail::LiftedTree<detail::ResultOf<OnFalse, detail::Owned<A>...>>;
    constexpr bool alike = std::is_convertible_v<Other, Result>;
    static_assert(detail::same_type<Other, Result, alike>,
                  "vt::cond: on_true and on_false return different types: both must return the "
                  "same one; numbers count as vt::Tensor");
    if constexpr (!alike) {
      return detail::Refused();
    } else {
      const auto own = detail::own(operands...);
      std::optional<Result> result;
      const detail::ControlCall call{.name = "vt::cond",
                                     .where = predicate.where,
                                     .result_name = detail::branch_names(result)};
      const auto out = detail::cond_flat(
          predicate.tensor, detail::branch_function(on_true, own, result, call),
          detail::branch_function(on_false, own, result, call), tree_leaves(own), call);
      return detail::with_leaves(std::move(*result), out);
    }
  }
}

/// The function number `index` of the tuple, applied to the operands; an index out of range is
/// clamped. What holds of cond's operands, branches, results and errors holds here.
/// Shapes: index: any integer dtype, scalar.
/// Source: JAX `lax.switch`.
template <class... Branches, class... A>
auto switch_(Operand index, std::tuple<Branches...> branches, const A&... operands) {
  static_assert(sizeof...(Branches) > 0, "vt::switch_: the tuple holds no functions");
  using Check = detail::FirstOf<detail::CallCheck<Branches, detail::Owned<A>...>...>;
  VT_ASSERT_CALL("vt::switch_", Check);
  if constexpr (!Check::holds || sizeof...(Branches) == 0) {
    return detail::Refused();
  } else {
    using Results =
        std::tuple<detail::LiftedTree<detail::ResultOf<Branches, detail::Owned<A>...>>...>;
    using Result = std::tuple_element_t<0, Results>;
    constexpr bool alike =
        (std::is_convertible_v<detail::LiftedTree<detail::ResultOf<Branches, detail::Owned<A>...>>,
                               Result> &&
         ...);
    static_assert(detail::same_type<Results, Result, alike>,
                  "vt::switch_: the functions return different types: all must return the same "
                  "one; numbers count as vt::Tensor");
    if constexpr (!alike) {
      return detail::Refused();
    } else {
      const auto own = detail::own(operands...);
      std::optional<Result> result;
      const detail::ControlCall call{
          .name = "vt::switch_", .where = index.where, .result_name = detail::branch_names(result)};
      Vec<detail::FlatFunction> flat;
      std::apply(
          [&](auto&... f) { (flat.push_back(detail::branch_function(f, own, result, call)), ...); },
          branches);
      const auto out = detail::switch_flat(index.tensor, flat, tree_leaves(own), call);
      return detail::with_leaves(std::move(*result), out);
    }
  }
}
// Internal: functions that stand in no tuple are refused with a message.
template <class First, class... More>
  requires(!detail::is_tuple<First>)
auto switch_(Operand, const First&, const More&...) {
  static_assert(detail::is_tuple<First>,
                "vt::switch_: the functions stand in a tuple: vt::switch_(index, std::tuple(f, g), "
                "operands...)");
  return detail::Refused();
}

/// carry = init; while (condition(carry)) carry = body(carry). The carry keeps its structure,
/// shapes and dtypes; numbers in `init` become Tensors, which adopt the dtype that the body gives
/// them. Functions may take the parts of a tuple as parameters. Reverse-differentiable whatever the
/// number of iterations: some states on the way are kept, see WhileOptions. Under vmap each lane
/// stops by its own condition and keeps its value from then on.
/// Shapes: condition(carry) → bool[] (a number counts as true unless it is 0).
/// Throws: Error if the condition is no scalar, or the body changes the structure, a shape or a
/// dtype.
/// Source: JAX `lax.while_loop`, which has no reverse mode.
template <class Condition, class Body, class T>
auto while_loop(Condition condition, Body body, const T& init, WhileOptions options = {},
                CallSite where = CallSite::here()) {
  using Start = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::while_loop", Start);
  if constexpr (!Start::holds) {
    return detail::Refused();
  } else {
    using Carry = detail::LiftedTree<T>;
    using Holds = detail::GivenByCarry<Condition, Carry>;
    using Test = detail::GivenCheck<Holds, Tensor>;
    static_assert(detail::fits<Test, detail::CallFault::parameters>,
                  "vt::while_loop: the condition cannot be called with the carry: write [](Carry "
                  "carry) { return carry < 3; }; numbers of the carry are vt::Tensor, the parts of "
                  "a tuple may be parameters of their own");
    constexpr bool tests = Test::holds || Test::fault == detail::CallFault::parameters ||
                           Test::fault == detail::CallFault::refused;
    static_assert(detail::same_type<Holds, Tensor, tests>,
                  "vt::while_loop: the condition must return a scalar vt::Tensor or a bool");
    if constexpr (!Test::holds) {
      return detail::Refused();
    } else {
      using Next = detail::GivenByCarry<Body, Carry>;
      using Iteration = detail::GivenCheck<Next, Carry>;
      VT_ASSERT_CALL("vt::while_loop", Iteration);
      static_assert(detail::fits<Iteration, detail::CallFault::parameters>,
                    "vt::while_loop: the body cannot be called with the carry: write [](Carry "
                    "carry) { return carry; }; numbers of the carry are vt::Tensor, the parts of a "
                    "tuple may be parameters of their own");
      static_assert(
          detail::same_type<Next, Carry, detail::fits<Iteration, detail::CallFault::type>>,
          "vt::while_loop: the body returns another type than that of the carry: return "
          "the next carry, of the type of the initial one");
      if constexpr (!Iteration::holds) {
        return detail::Refused();
      } else {
        const Carry carry = detail::lifted(init);
        const detail::ControlCall call{
            .name = "vt::while_loop", .where = where, .carry_name = detail::carry_names(carry)};
        const detail::FlatFunction flat_condition = [&](std::span<const Tensor> leaves) {
          const Carry now = detail::with_leaves(carry, leaves);
          return std::vector<Tensor>{Tensor(detail::call_on_carry(condition, now))};
        };
        const detail::FlatFunction flat_body = [&](std::span<const Tensor> leaves) {
          const Carry now = detail::with_leaves(carry, leaves);
          return detail::next_carry(carry, detail::call_on_carry(body, now), call);
        };
        return detail::with_leaves(carry, detail::while_flat(flat_condition, flat_body,
                                                             tree_leaves(carry), options, call));
      }
    }
  }
}

/// carry = init; for i = lower … upper − 1: carry = body(i, carry). Bounds that are C++ integers
/// make a scan, others a while_loop.
/// Shapes: i: scalar, i32 if the bounds fit (the bounds' own dtype if they are Tensors).
/// Source: JAX `lax.fori_loop`.
template <class Lower, class Upper, class Body, class T>
auto fori_loop(const Lower& lower, const Upper& upper, Body body, const T& init,
               WhileOptions options = {}, CallSite where = CallSite::here()) {
  constexpr bool counts = std::is_constructible_v<Tensor, const Lower&> &&
                          std::is_constructible_v<Tensor, const Upper&>;
  static_assert(counts, "vt::fori_loop: the bounds must be integers: numbers or scalar Tensors");
  using Start = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::fori_loop", Start);
  if constexpr (!counts || !Start::holds) {
    return detail::Refused();
  } else {
    using Carry = detail::LiftedTree<T>;
    using Next = detail::GivenByCarry<const detail::IterationOf<Body>, Carry>;
    using Iteration = detail::GivenCheck<Next, Carry>;
    VT_ASSERT_CALL("vt::fori_loop", Iteration);
    static_assert(detail::fits<Iteration, detail::CallFault::parameters>,
                  "vt::fori_loop: the body cannot be called with the index and the carry: write "
                  "[](vt::Tensor i, Carry carry) { return carry; }; numbers of the carry are "
                  "vt::Tensor, the parts of a tuple may be parameters of their own");
    static_assert(detail::same_type<Next, Carry, detail::fits<Iteration, detail::CallFault::type>>,
                  "vt::fori_loop: the body returns another type than that of the carry: return the "
                  "next carry, of the type of the initial one");
    if constexpr (!Iteration::holds) {
      return detail::Refused();
    } else {
      const Carry carry = detail::lifted(init);
      const detail::ControlCall call{
          .name = "vt::fori_loop", .where = where, .carry_name = detail::carry_names(carry)};
      const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
        const Carry now = detail::with_leaves(carry, leaves.subspan(1));
        const detail::IterationOf<Body> iteration{body, leaves[0]};
        return detail::next_carry(carry, detail::call_on_carry(iteration, now), call);
      };
      if constexpr (std::is_integral_v<Lower> && std::is_integral_v<Upper>)
        return detail::with_leaves(carry, detail::fori_flat(static_cast<std::int64_t>(lower),
                                                            static_cast<std::int64_t>(upper), flat,
                                                            tree_leaves(carry), call));
      else
        return detail::with_leaves(carry, detail::fori_flat(Tensor(lower), Tensor(upper), flat,
                                                            tree_leaves(carry), options, call));
    }
  }
}

/// For each element x along axis 0 of the sequences: (carry, y) = body(carry, x). → pair(last
/// carry, ys stacked along axis 0). `xs` is a tree of Tensors of one length, or std::nullopt with
/// options.length; body(carry) is then enough. A body that has no y returns std::pair(carry,
/// std::nullopt). A carry of several parts is a std::pair, a tuple or a struct: of a pair or a
/// tuple the body may take the parts as parameters, and returns std::pair(std::pair(a, b), y).
/// Throws: Error if the sequences differ in length, or the body changes the carry's structure, a
/// shape or a dtype.
/// Source: JAX `lax.scan`.
template <class Body, class T, class Xs>
auto scan(Body body, const T& init, const Xs& xs, ScanOptions options = {},
          CallSite where = CallSite::here()) {
  using Start = detail::TreesCheck<T, Xs>;
  VT_ASSERT_CALL("vt::scan", Start);
  if constexpr (!Start::holds) {
    return detail::RefusedPair();
  } else {
    using Carry = detail::LiftedTree<T>;
    using Pair = detail::GivenByScan<Body, Carry, Xs>;
    constexpr bool called = !std::is_same_v<Pair, detail::NotCallable>;
    static_assert(called,
                  "vt::scan: the body cannot be called with the carry and an element of the "
                  "sequences: write [](Carry carry, vt::Tensor x) { return std::pair(carry, y); }; "
                  "numbers of the carry are vt::Tensor, sequences of numbers are "
                  "vt::tensor(values), the parts of a tuple may be parameters of their own");
    static_assert(!called || detail::is_two<Pair>,
                  "vt::scan: the body must return pair(carry, y): std::pair(carry, y), or "
                  "std::pair(carry, std::nullopt) without results");
    if constexpr (!called || !detail::is_two<Pair>) {
      return detail::RefusedPair();
    } else {
      using Next = std::tuple_element_t<0, Pair>;
      using Results = std::tuple_element_t<1, Pair>;
      using Iteration =
          detail::FirstOf<detail::GivenCheck<Next, Carry>, detail::ResultCheck<Results>>;
      VT_ASSERT_CALL("vt::scan", Iteration);
      static_assert(
          detail::same_type<Next, Carry, detail::fits<Iteration, detail::CallFault::type>>,
          "vt::scan: the first of the pair that the body returns is of another type than "
          "the carry: return std::pair(carry, y), the next carry of the type of the "
          "initial one");
      if constexpr (!Iteration::holds) {
        return detail::RefusedPair();
      } else {
        using Ys = detail::LiftedTree<Results>;
        const Carry carry = detail::lifted(init);
        const std::size_t carries = detail::count_leaves(carry);
        const auto run = [&](std::span<const Tensor> leaves) -> Pair {
          const Carry now = detail::with_leaves(carry, leaves.first(carries));
          if constexpr (std::is_same_v<Xs, std::nullopt_t>) {
            if constexpr (!std::is_same_v<detail::GivenByCarry<Body, Carry>, detail::NotCallable>)
              return detail::call_on_carry(body, now);
            else return detail::call_on_carry(body, now, std::nullopt);
          } else {
            const Xs x = detail::with_leaves(xs, leaves.subspan(carries));
            return detail::call_on_carry(body, now, x);
          }
        };
        std::optional<std::pair<Carry, Ys>> result;
        const detail::ControlCall call{.name = "vt::scan",
                                       .where = where,
                                       .carry_name = detail::carry_names(carry),
                                       .sequence_name = detail::leaf_names("xs", "xs", xs)};
        const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
          const Pair both = run(leaves);
          std::vector<Tensor> out = detail::next_carry(carry, std::get<0>(both), call);
          result.emplace(carry, detail::lifted(std::get<1>(both)));
          detail::append_leaves(result->second, out);
          return out;
        };
        const std::vector<Tensor> out =
            detail::scan_flat(flat, tree_leaves(carry), tree_leaves(xs), options, call);
        return detail::with_leaves(std::move(*result), out);
      }
    }
  }
}

/// f of each element along axis 0 of the tree `xs`, the results stacked: a loop, unlike vmap, which
/// needs memory for all at once.
/// Source: JAX `lax.map`.
template <class F, class Xs>
auto map(F f, const Xs& xs, MapOptions options = {}, CallSite where = CallSite::here()) {
  using Check = detail::CallCheck<F, Xs>;
  VT_ASSERT_CALL("vt::map", Check);
  if constexpr (!Check::holds) {
    return detail::Refused();
  } else {
    std::optional<detail::LiftedTree<detail::ResultOf<F, Xs>>> result;
    const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
      const Xs x = detail::with_leaves(xs, leaves);
      result.emplace(detail::lifted(f(x)));
      return tree_leaves(*result);
    };
    const auto out = detail::map_flat(
        flat, tree_leaves(xs), options,
        {.name = "vt::map", .where = where, .sequence_name = detail::leaf_names("xs", "xs", xs)});
    return detail::with_leaves(std::move(*result), out);
  }
}

/// All prefixes of `elements` along an axis combined by `op`, an associative function of two
/// elements: x₀, op(x₀, x₁), … in O(log n) vectorized steps. With `reverse`, from the end: …,
/// op(xₙ, xₙ₋₁), xₙ.
/// Throws: Error if the elements differ in length along the axis, or op does not give an element.
/// Source: JAX `lax.associative_scan`, after Blelloch 1990, Prefix Sums and Their Applications;
/// `op` is written for one element here.
template <class F, class T>
auto associative_scan(F op, const T& elements, AssociativeScanOptions options = {},
                      CallSite where = CallSite::here()) {
  using Start = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::associative_scan", Start);
  if constexpr (!Start::holds) {
    return detail::Refused();
  } else {
    using Tree = detail::LiftedTree<T>;
    using Both = detail::GivenBy<F, Tree, Tree>;
    using Check = detail::GivenCheck<Both, Tree>;
    VT_ASSERT_CALL("vt::associative_scan", Check);
    static_assert(detail::fits<Check, detail::CallFault::parameters>,
                  "vt::associative_scan: the function cannot be called with two elements: write "
                  "[](Element a, Element b) { return a + b; }, Element of the type of the "
                  "elements");
    static_assert(detail::same_type<Both, Tree, detail::fits<Check, detail::CallFault::type>>,
                  "vt::associative_scan: the function returns another type than that of the "
                  "elements: two elements combined are one");
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      const Tree own = detail::lifted(elements);
      const detail::ControlCall call{
          .name = "vt::associative_scan",
          .where = where,
          .sequence_name = detail::leaf_names("elements", "the elements", own)};
      const detail::FlatFunction flat = [&](std::span<const Tensor> leaves) {
        const std::size_t n = leaves.size() / 2;
        const Tree a = detail::with_leaves(own, leaves.first(n)),
                   b = detail::with_leaves(own, leaves.subspan(n));
        return detail::kept_structure(own, op(a, b),
                                      "the function must give an element of the same structure",
                                      "element", call);
      };
      return detail::with_leaves(
          own, detail::associative_scan_flat(flat, tree_leaves(own), options, call));
    }
  }
}

}  // namespace vt
