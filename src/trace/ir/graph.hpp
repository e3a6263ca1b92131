// The IR: equations, GraphBody, the jaxpr-like list of them, and what can be asked of one.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/graph.hpp>

#include "../base/recycled.hpp"
#include "aval.hpp"
#include "op.hpp"
#include "params.hpp"

namespace vt::detail {

using Var = std::int32_t;  ///< index into GraphBody::avals

struct Equation {
  Op op = Op::input;
  /// JitOptions::assume_finite: elements known to be 0 when code is made are left out of sums and
  /// products, also beside infinity and NaN, and whatever the sign of the zero.
  bool assume_finite = false;
  CallSite where;  ///< the user's call
  ParamsRef params;
  SmallVec<Var, 3> inputs;
  SmallVec<Var, 1> outputs;

  Equation() {}  // not defaulted: emplace_back() would clear the storage of the lists as well
  template <class P>
  [[gnu::always_inline]] const P& as() const {
    return params->as<P>();
  }
};

/// The lanes of a cond, while or fused_region in which each lane goes its own way; none of others.
inline const Lanes* lanes_of(const Equation& e) {
  const Lanes* lanes = e.op == Op::cond           ? &e.as<CondParams>().lanes
                       : e.op == Op::while_       ? &e.as<WhileParams>().lanes
                       : e.op == Op::fused_region ? &e.as<RegionParams>().lanes
                                                  : nullptr;
  return lanes && *lanes ? lanes : nullptr;
}

/// What a loop repeats, how many of its operands it carries, and how many more are a scan's
/// sequences; nothing and 0 of what is no loop.
inline GraphRef loop_body(const Equation& e) {
  return e.op == Op::while_ ? e.as<WhileParams>().body
         : e.op == Op::scan ? e.as<ScanParams>().body
                            : GraphRef();
}
inline std::size_t carries_of(const Equation& e) {
  return static_cast<std::size_t>(e.op == Op::while_ ? e.as<WhileParams>().carries
                                  : e.op == Op::scan ? e.as<ScanParams>().carries
                                                     : 0);
}
inline std::size_t sequences_of(const Equation& e) {
  return e.op == Op::scan ? static_cast<std::size_t>(e.as<ScanParams>().sequences) : 0;
}

/// What has been found out about a Graph. A copy may be about to change: nothing is known of it.
struct GraphFacts {
  mutable std::atomic<signed char> effects{-1};       ///< does it have any? −1: nobody has asked
  mutable std::atomic<signed char> communicates{-1};  ///< likewise, see communicates()
  mutable std::atomic<std::int64_t> ranks{-1};        ///< likewise, see ranks_of()
  /// Would simplify leave it as it is?
  mutable std::atomic<bool> simple_to_transform{false}, simple_to_run{false};
  GraphFacts() = default;
  GraphFacts(const GraphFacts&) {}
  GraphFacts& operator=(const GraphFacts&) {
    effects.store(-1, std::memory_order_relaxed);
    communicates.store(-1, std::memory_order_relaxed);
    ranks.store(-1, std::memory_order_relaxed);
    simple_to_transform.store(false, std::memory_order_relaxed);
    simple_to_run.store(false, std::memory_order_relaxed);
    return *this;
  }
};

/// A function as a list of equations in single assignment form. Every Var is an input or the output
/// of one equation.
struct GraphBody {
  RecycledVec<Aval> avals;
  Vec<Var> inputs;
  RecycledVec<Equation> equations;
  Vec<Var> outputs;
  GraphFacts facts;

  const Aval& aval(Var v) const { return avals[v]; }
  Var fresh(const Aval& a) {
    avals.push_back(a);
    return static_cast<Var>(avals.size() - 1);
  }
};

/// "sin", with the parameters as the printer shows them: "reduce_sum[axes=(0,)]".
std::string describe(Op, const ParamsRef&);
/// Stable text of a Graph; `lines` adds the user's file (base name) and line to each equation,
/// `input_names` what the first inputs are.
std::string to_text(const GraphBody&, bool lines = false,
                    std::span<const std::string> input_names = {});
std::string to_dot_text(const GraphBody&, std::span<const std::string> input_names = {});

/// Throws Error naming the first fault: a Var used before it is defined, a shape that its rule does
/// not give … Shows the equations around it. Bodies that are `known` to be well formed are not gone
/// into.
void check_graph(const GraphBody&, const char* after, std::span<const GraphBody* const> known = {});
/// check_graph in debug builds, nothing in release ones.
inline void debug_check([[maybe_unused]] const GraphBody& g, [[maybe_unused]] const char* after,
                        [[maybe_unused]] std::span<const GraphBody* const> known = {}) {
#ifndef NDEBUG
  check_graph(g, after, known);
#endif
}

/// Shapes and dtypes of the results of `op`; throws Error with the op, the operands and the user's
/// line if they do not fit.
SmallVec<Aval, 1> infer(Op, const ParamsRef&, std::span<const Aval* const> operands, CallSite);

/// Memory whose elements are written before they are read. Two such equations are never one: loops
/// write into the memory of each.
inline bool is_unset(Op op, const ParamsRef& params) {
  return op == Op::full && params->as<FullParams>().unset;
}
inline bool is_unset(const Equation& e) { return is_unset(e.op, e.params); }

/// What a simplified Graph is for. `running`: it is not transformed any more, so that custom rules
/// and stop_gradient have done their work; their bodies take their place. (A checkpoint stays:
/// merged with the rest, nothing would be computed anew.)
enum class SimplifyFor : std::uint8_t { transforming, running };
/// Dead code, common sub-expressions, constant folding and algebra. Same function, fewer equations.
GraphBody simplify(const GraphBody&, SimplifyFor = SimplifyFor::transforming);
/// The same Graph, in which what several equal equations compute is computed by the first of them.
/// Derivatives of each would be computed apart, which no later pass could put together again.
GraphBody without_repeats(GraphBody);

/// Structural hash and equality (call sites left out), for caches.
std::size_t hash_of(const GraphBody&);
bool equal(const GraphBody&, const GraphBody&);

}  // namespace vt::detail
