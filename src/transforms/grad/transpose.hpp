// Transposition of linear Graphs: the backward walk, and what a rule of it sees.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/node.hpp"

namespace vt::detail {

/// The transpose of `graph` as a linear function of its first `linear` inputs, applied to
/// `cotangents` (one per output) in the current scope. `rest`: the values of the other inputs.
/// Undefined Tensors are zeros, in cotangents and results. `sums`: what the results are added to,
/// one per linear input, or none.
std::vector<Tensor> transpose_graph(const GraphBody& graph, std::size_t linear,
                                    std::span<const Tensor> rest,
                                    std::span<const Tensor> cotangents,
                                    std::span<const Tensor> sums = {});

/// Runs `graph` with the first inputs being `tangents` (undefined: zero), without computing what is
/// zero.
std::vector<Tensor> push_graph(const GraphBody& graph, std::span<const Tensor> tangents,
                               std::span<const Tensor> rest);

/// One linear equation, as its transpose rule sees it.
struct TransposeCall {
  const Equation& equation;
  const GraphBody& graph;
  std::span<const Tensor> x;        ///< operands; undefined where the operand is linear
  std::span<const Tensor> results;  ///< cotangents of the results; at least one is defined
  std::span<Tensor> cotangents;     ///< of the operands, to fill in where they are linear

  bool linear(std::size_t i) const { return !x[i].defined(); }
  const Tensor& ct() const { return results[0]; }
  const Aval& operand(std::size_t i) const { return graph.aval(equation.inputs[i]); }
  const Shape& shape(std::size_t i) const { return operand(i).shape; }
  template <class P>
  [[gnu::always_inline]] const P& as() const {
    return equation.as<P>();
  }
};

struct TransposeRule {
  using Function = void (*)(const TransposeCall&);
  Function rule = nullptr;
  constexpr TransposeRule() = default;
  template <class F>
    requires std::is_convertible_v<F, Function>
  constexpr TransposeRule(F f) : rule(f) {}
};
/// The named refusal: the op is not linear in any operand.
inline constexpr TransposeRule not_linear{};

/// The rule of an op; without a function if it is linear in no operand.
const TransposeRule& transpose_rule(Op);

namespace transpose_rules {

// rules/transpose_index.cpp
void reduce_sum(const TransposeCall&);
void cumsum(const TransposeCall&);
void reshape(const TransposeCall&);
void transpose(const TransposeCall&);
void broadcast_in_dim(const TransposeCall&);
void concatenate(const TransposeCall&);
void pad(const TransposeCall&);
void rev(const TransposeCall&);
void slice(const TransposeCall&);
void dynamic_update_slice(const TransposeCall&);
void scatter(const TransposeCall&);
void scatter_add(const TransposeCall&);
void scatter_mul(const TransposeCall&);
void rows(const TransposeCall&);
void rows_add(const TransposeCall&);
void fft(const TransposeCall&);
// rules/products.cpp
void dot_general(const TransposeCall&);
// rules/transpose_window.cpp
void windows(const TransposeCall&);
void overlap_add(const TransposeCall&);
void conv_general(const TransposeCall&);
// rules/linalg.cpp
void triangular_solve(const TransposeCall&);
void solve(const TransposeCall&);
void tridiagonal_solve(const TransposeCall&);
// call_rules.cpp
void called(const TransposeCall&);
void batched_call(const TransposeCall&);
void recursive_call(const TransposeCall&);
// rules/jvp_control.cpp
void control(const TransposeCall&);
/// Throws: the equation depends on a tangent in a way that has no transpose.
[[noreturn]] void refuse(const TransposeCall&);

}  // namespace transpose_rules
}  // namespace vt::detail
