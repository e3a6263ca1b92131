// Control flow as equations: cond, switch_, while_loop, fori_loop, scan, map, associative_scan.
// Unlike C++ `if` and `while`, they may depend on values that are not known when the function is
// recorded, and under vmap each lane goes its own way.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/detail/control.hpp>
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
  constexpr bool functions = !detail::is_value<OnTrue> && !detail::is_value<OnFalse>;
  static_assert(
      functions,
      "vt::cond takes functions: vt::cond(predicate, [](vt::Tensor x) { return x; }, "
      "[](vt::Tensor x) { return -x; }, x); of two values take vt::where(predicate, a, b)");
  using Check =
      detail::CheckedNext<functions,
                          detail::FirstOf<detail::CallCheck<OnTrue, detail::Owned<A>...>,
                                          detail::CallCheck<OnFalse, detail::Owned<A>...>>>;
  VT_ASSERT_CALL("vt::cond", Check);
  if constexpr (!functions || !Check::holds) {
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
/// The same of functions of one type, as std::function, whose number may be known only when the
/// program runs.
/// Throws: Error (value) if there is none.
template <class F, class... A>
auto switch_(Operand index, const std::vector<F>& branches, const A&... operands) {
  using Check = detail::CallCheck<const F, detail::Owned<A>...>;
  VT_ASSERT_CALL("vt::switch_", Check);
  if constexpr (!Check::holds) {
    return detail::Refused();
  } else {
    using Result = detail::LiftedTree<detail::ResultOf<const F, detail::Owned<A>...>>;
    if (branches.empty())
      detail::fail(ErrorKind::value, "vt::switch_: the vector holds no functions", index.where);
    const auto own = detail::own(operands...);
    std::optional<Result> result;
    const detail::ControlCall call{
        .name = "vt::switch_", .where = index.where, .result_name = detail::branch_names(result)};
    Vec<detail::FlatFunction> flat;
    for (const F& f : branches) flat.push_back(detail::branch_function(f, own, result, call));
    const auto out = detail::switch_flat(index.tensor, flat, tree_leaves(own), call);
    return detail::with_leaves(std::move(*result), out);
  }
}
// Internal: functions that stand in no tuple are refused with a message.
template <class First, class... More>
  requires(!detail::is_tuple<First> && !detail::is_vector<First>)
auto switch_(Operand, const First&, const More&...) {
  static_assert(detail::is_tuple<First>,
                "vt::switch_: the functions stand in a tuple or a vector: vt::switch_(index, "
                "std::tuple(f, g), operands...)");
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
  constexpr bool functions = !detail::is_value<Condition> && !detail::is_value<Body>;
  static_assert(functions,
                "vt::while_loop: the functions come first: vt::while_loop(condition, body, init)");
  using Start = detail::CheckedNext<functions, detail::TreesCheck<T>>;
  VT_ASSERT_CALL("vt::while_loop", Start);
  if constexpr (!functions || !Start::holds) {
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
  constexpr bool function = !detail::is_value<Body>;
  static_assert(
      counts && function,
      "vt::fori_loop takes two bounds, integers or scalar Tensors, then the body, then the "
      "carry: vt::fori_loop(lower, upper, body, init)");
  using Start = detail::CheckedNext<counts && function, detail::TreesCheck<T>>;
  VT_ASSERT_CALL("vt::fori_loop", Start);
  if constexpr (!counts || !function || !Start::holds) {
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
  constexpr bool function = !detail::is_value<Body>;
  static_assert(function, "vt::scan: the body comes first: vt::scan(body, init, xs)");
  using Start = detail::CheckedNext<function, detail::TreesCheck<T, Xs>>;
  VT_ASSERT_CALL("vt::scan", Start);
  if constexpr (!function || !Start::holds) {
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
  constexpr bool function = !detail::is_value<F>;
  static_assert(function, "vt::map: the function comes first: vt::map(f, xs)");
  using Check = detail::CheckedNext<function, detail::CallCheck<F, Xs>>;
  VT_ASSERT_CALL("vt::map", Check);
  if constexpr (!function || !Check::holds) {
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
[[nodiscard]] auto associative_scan(F op, const T& elements, AssociativeScanOptions options = {},
                                    CallSite where = CallSite::here()) {
  constexpr bool function = !detail::is_value<F>;
  static_assert(
      function,
      "vt::associative_scan: the function comes first: vt::associative_scan(op, elements)");
  using Start = detail::CheckedNext<function, detail::TreesCheck<T>>;
  VT_ASSERT_CALL("vt::associative_scan", Start);
  if constexpr (!function || !Start::holds) {
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
