// The table of batch rules: for every op, how its equation is written for all lanes at once.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "batch.hpp"

namespace vt::detail {

/// Unmapped values that one walk has repeated for the lanes already, by Var: a bias used a hundred
/// times is repeated once.
struct Broadcasts {
  struct Entry {
    int axis = -1;
    Tensor value;
  };
  Vec<Entry> by_var;
};

/// One equation being batched: at least one operand is mapped, and there is at least one lane, but
/// where it works over `axis`.
struct BatchCall {
  const GraphBody& graph;
  const Equation& equation;
  std::span<const Batched> operands;
  std::int64_t lanes;
  Broadcasts& broadcasts;
  LaneAxis axis{};

  template <class P>
  [[gnu::always_inline]] const P& as() const {
    return equation.as<P>();
  }
  CallSite where() const { return equation.where; }
  /// What one lane sees.
  const Aval& operand_aval(std::size_t i) const { return graph.aval(equation.inputs[i]); }
  const Aval& result_aval(std::size_t i = 0) const { return graph.aval(equation.outputs[i]); }
  bool mapped(std::size_t i) const { return operands[i].axis.has_value(); }
  /// Unmapped operand i with its lanes at `axis`.
  Tensor broadcast(std::size_t i, int axis) const;
};

using BatchRule = BatchedList (*)(const BatchCall&);

namespace batch_rules {

BatchedList never_mapped(const BatchCall&);  ///< leaves have no operands, so the walk replays them
BatchedList elementwise(const BatchCall&);
BatchedList comparison(const BatchCall&);
BatchedList convert(const BatchCall&);
BatchedList select(const BatchCall&);
BatchedList reduce_axes(const BatchCall&);
BatchedList arg_extreme(const BatchCall&);
BatchedList reduce(const BatchCall&);
BatchedList cumulative(const BatchCall&);
BatchedList sort(const BatchCall&);
BatchedList reshape(const BatchCall&);
BatchedList transpose(const BatchCall&);
BatchedList broadcast_in_dim(const BatchCall&);
BatchedList concatenate(const BatchCall&);
BatchedList pad(const BatchCall&);
BatchedList rev(const BatchCall&);
BatchedList slice(const BatchCall&);
BatchedList dynamic_slice(const BatchCall&);
BatchedList dynamic_update_slice(const BatchCall&);
BatchedList gather(const BatchCall&);
BatchedList scatter(const BatchCall&);
BatchedList rows(const BatchCall&);
BatchedList rows_add(const BatchCall&);
BatchedList windows(const BatchCall&);
BatchedList overlap_add(const BatchCall&);
BatchedList dot_general(const BatchCall&);
BatchedList conv_general(const BatchCall&);
BatchedList fft(const BatchCall&);
BatchedList linalg(const BatchCall&);
BatchedList linear_systems(const BatchCall&);
BatchedList collective(const BatchCall&);
BatchedList call(const BatchCall&);
BatchedList batched_call(const BatchCall&);
/// A batched call whose lanes go different ways.
BatchedList lane_call(const BatchCall&);
BatchedList recursive_call(const BatchCall&);
BatchedList custom_jvp(const BatchCall&);
BatchedList custom_vjp(const BatchCall&);
BatchedList custom_vmap(const BatchCall&);
BatchedList cond(const BatchCall&);
BatchedList while_loop(const BatchCall&);
BatchedList fused_region(const BatchCall&);
BatchedList scan(const BatchCall&);
BatchedList debug_print(const BatchCall&);
BatchedList check(const BatchCall&);
BatchedList callback(const BatchCall&);
/// Tells in vt::warnings() that an equation, called `name` there, runs once per lane, or throws
/// where the user does not want that.
void cannot_vectorize(const BatchCall&, const std::string& name, const std::string& why);

constexpr std::optional<BatchRule> rule_of_family(const OpInfo& op) {
  switch (op.family) {
    case Family::leaf: return never_mapped;
    case Family::unary:
    case Family::binary: return elementwise;
    case Family::reduce: return reduce_axes;
    case Family::cumulative: return cumulative;
    case Family::linalg: return linalg;
    case Family::collective: return collective;
    default: return std::nullopt;
  }
}

inline constexpr auto own_rules = rule_table<BatchRule>({
    {Op::eq, comparison},
    {Op::ne, comparison},
    {Op::lt, comparison},
    {Op::le, comparison},
    {Op::gt, comparison},
    {Op::ge, comparison},
    {Op::convert, convert},
    {Op::select, select},
    {Op::argmax, arg_extreme},
    {Op::argmin, arg_extreme},
    {Op::reduce, reduce},
    {Op::sort, sort},
    {Op::reshape, reshape},
    {Op::transpose, transpose},
    {Op::broadcast_in_dim, broadcast_in_dim},
    {Op::concatenate, concatenate},
    {Op::pad, pad},
    {Op::rev, rev},
    {Op::slice, slice},
    {Op::dynamic_slice, dynamic_slice},
    {Op::dynamic_update_slice, dynamic_update_slice},
    {Op::gather, gather},
    {Op::scatter, scatter},
    {Op::scatter_add, scatter},
    {Op::scatter_mul, scatter},
    {Op::scatter_min, scatter},
    {Op::scatter_max, scatter},
    {Op::rows, rows},
    {Op::rows_add, rows_add},
    {Op::windows, windows},
    {Op::overlap_add, overlap_add},
    {Op::dot_general, dot_general},
    {Op::conv_general, conv_general},
    {Op::fft, fft},
    {Op::triangular_solve, linear_systems},
    {Op::solve, linear_systems},
    {Op::tridiagonal_solve, linear_systems},
    {Op::call, call},
    {Op::batched_call, batched_call},
    {Op::recursive_call, recursive_call},
    {Op::custom_jvp, custom_jvp},
    {Op::custom_vjp, custom_vjp},
    {Op::custom_vmap, custom_vmap},
    {Op::checkpoint, call},
    {Op::cond, cond},
    {Op::while_, while_loop},
    {Op::fused_region, fused_region},
    {Op::scan, scan},
    {Op::debug_print, debug_print},
    {Op::check, check},
    {Op::callback, callback},
});
inline constexpr auto table = with_defaults(own_rules, rule_of_family);
static_assert(RuleMissingFor<first_without_rule(table)>::ok);

}  // namespace batch_rules

}  // namespace vt::detail
