// The closed set of primitive ops: one entry per op with its family, operands, linearity, dtypes
// and cost. Tables of other files hold what differs from what follows from these.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include <vt/dtype.hpp>

namespace vt::detail {

enum class Family : std::uint8_t {
  leaf,
  unary,
  binary,
  select,
  reduce,
  cumulative,
  order,
  shape,
  index,
  rows,
  window,
  contract,
  spectral,
  linalg,
  collective,
  structure,
  effect
};

/// In which operands an op is linear (its derivative is itself applied to the tangents).
enum class Linearity : std::uint8_t {
  none,
  zero,  ///< its derivative is 0, or it has none (floor, comparisons, what ints are made of)
  /// in all operands jointly (add, concatenate, pad …), over the reals: real, imag and conj are
  /// linear too
  linear,
  bilinear,  ///< in each of two operands alone (mul, dot_general, conv_general)
  first,     ///< in the first operand only (div, gather …)
  last,      ///< in the last operand only (the right sides of linear systems)
};

/// Sets of dtypes, a bit per DType.
namespace dtype_sets {
constexpr std::uint32_t set_of(bool (*holds)(DType)) {
  std::uint32_t bits = 0;
  for (int i = 0; i < dtype_count; ++i)
    if (holds(static_cast<DType>(i))) bits |= 1u << i;
  return bits;
}
inline constexpr std::uint32_t any = (1u << dtype_count) - 1;
inline constexpr std::uint32_t bools = set_of(is_bool);
inline constexpr std::uint32_t ints = set_of(is_int);
inline constexpr std::uint32_t floats = set_of(is_float);
inline constexpr std::uint32_t complexes = set_of(is_complex);
inline constexpr std::uint32_t inexact = floats | complexes;
inline constexpr std::uint32_t reals = ints | floats;
inline constexpr std::uint32_t numbers = reals | complexes;
inline constexpr std::uint32_t ordered = any & ~complexes;
inline constexpr std::uint32_t bits_and_bools = ints | bools;
inline constexpr std::uint32_t words64 = 1u << static_cast<int>(DType::u64);
inline constexpr std::uint32_t wide =
    1u << static_cast<int>(DType::f32) | 1u << static_cast<int>(DType::f64);
inline constexpr std::uint32_t wide_inexact = wide | complexes;
}  // namespace dtype_sets

// One entry per op: enumerator, family, number of operands (−1: any number), linearity, dtypes of
// its operands, cost of an element (beside 1 for an addition; cost_model.hpp).
// clang-format off
#define VT_OPS(op)                                                                             \
  /* leaves */                                                                                 \
  op(input, leaf, 0, zero, any, 1)                                                             \
  op(constant, leaf, 0, zero, any, 1)                                                          \
  op(full, leaf, 0, zero, any, 0)                                                              \
  op(iota, leaf, 0, zero, reals, 1)                                                            \
  /* element-wise, one operand */                                                              \
  op(neg, unary, 1, linear, numbers, 1)                                                        \
  op(abs, unary, 1, none, numbers, 1)                                                          \
  op(sign, unary, 1, none, numbers, 3)                                                         \
  op(floor, unary, 1, zero, floats, 1)                                                         \
  op(ceil, unary, 1, zero, floats, 1)                                                          \
  op(round, unary, 1, zero, floats, 1)                                                         \
  op(trunc, unary, 1, zero, floats, 1)                                                         \
  op(exp, unary, 1, none, inexact, 15)                                                         \
  op(exp2, unary, 1, none, inexact, 15)                                                        \
  op(expm1, unary, 1, none, inexact, 15)                                                       \
  op(log, unary, 1, none, inexact, 15)                                                         \
  op(log1p, unary, 1, none, inexact, 15)                                                       \
  op(log2, unary, 1, none, inexact, 15)                                                        \
  op(sqrt, unary, 1, none, inexact, 6)                                                         \
  op(rsqrt, unary, 1, none, inexact, 6)                                                        \
  op(cbrt, unary, 1, none, floats, 25)                                                         \
  op(sin, unary, 1, none, inexact, 25)                                                         \
  op(cos, unary, 1, none, inexact, 25)                                                         \
  op(tan, unary, 1, none, inexact, 25)                                                         \
  op(asin, unary, 1, none, inexact, 25)                                                        \
  op(acos, unary, 1, none, inexact, 25)                                                        \
  op(atan, unary, 1, none, inexact, 25)                                                        \
  op(sinh, unary, 1, none, inexact, 25)                                                        \
  op(cosh, unary, 1, none, inexact, 25)                                                        \
  op(tanh, unary, 1, none, inexact, 15)                                                        \
  op(asinh, unary, 1, none, inexact, 25)                                                       \
  op(acosh, unary, 1, none, inexact, 25)                                                       \
  op(atanh, unary, 1, none, inexact, 25)                                                       \
  op(sigmoid, unary, 1, none, inexact, 15)                                                     \
  op(erf, unary, 1, none, floats, 25)                                                          \
  op(erfc, unary, 1, none, floats, 25)                                                         \
  op(erf_inv, unary, 1, none, floats, 25)                                                      \
  op(lgamma, unary, 1, none, floats, 60)                                                       \
  op(digamma, unary, 1, none, floats, 60)                                                      \
  op(gamma, unary, 1, none, floats, 120)                                                       \
  op(erfcx, unary, 1, none, floats, 120)                                                       \
  op(erfc_inv, unary, 1, none, floats, 120)                                                    \
  op(ndtr, unary, 1, none, floats, 120)                                                        \
  op(log_ndtr, unary, 1, none, floats, 120)                                                    \
  op(dawsn, unary, 1, none, floats, 120)                                                       \
  op(expi, unary, 1, none, floats, 120)                                                        \
  op(spence, unary, 1, none, floats, 120)                                                      \
  op(fresnel_sin, unary, 1, none, floats, 120)                                                 \
  op(fresnel_cos, unary, 1, none, floats, 120)                                                 \
  op(bessel_i0e, unary, 1, none, floats, 120)                                                  \
  op(bessel_i1e, unary, 1, none, floats, 120)                                                  \
  op(bessel_k0e, unary, 1, none, floats, 120)                                                  \
  op(bessel_k1e, unary, 1, none, floats, 120)                                                  \
  op(bessel_j0, unary, 1, none, floats, 120)                                                   \
  op(bessel_j1, unary, 1, none, floats, 120)                                                   \
  op(bessel_y0, unary, 1, none, floats, 120)                                                   \
  op(bessel_y1, unary, 1, none, floats, 120)                                                   \
  op(real, unary, 1, linear, complexes, 1)                                                     \
  op(imag, unary, 1, linear, complexes, 1)                                                     \
  op(conj, unary, 1, linear, complexes, 1)                                                     \
  op(is_finite, unary, 1, zero, inexact, 1)                                                    \
  op(is_nan, unary, 1, zero, inexact, 1)                                                       \
  op(is_inf, unary, 1, zero, inexact, 1)                                                       \
  op(integer_pow, unary, 1, none, numbers, 1)                                                  \
  op(not_, unary, 1, zero, bits_and_bools, 1)                                                  \
  op(popcount, unary, 1, zero, ints, 1)                                                        \
  op(clz, unary, 1, zero, ints, 1)                                                             \
  op(convert, unary, 1, linear, any, 1)                                                        \
  op(bitcast, unary, 1, zero, any, 1)                                                          \
  op(reduce_precision, unary, 1, linear, floats, 1)                                            \
  op(stop_gradient, unary, 1, zero, any, 0)                                                    \
  op(meeting, unary, 1, linear, any, 1)                                                        \
  /* element-wise, two operands */                                                             \
  op(add, binary, 2, linear, numbers, 1)                                                       \
  op(sub, binary, 2, linear, numbers, 1)                                                       \
  op(mul, binary, 2, bilinear, numbers, 1)                                                     \
  op(div, binary, 2, first, numbers, 4)                                                        \
  op(rem, binary, 2, none, reals, 20)                                                          \
  op(pow, binary, 2, none, numbers, 60)                                                        \
  op(max, binary, 2, none, ordered, 3)                                                         \
  op(min, binary, 2, none, ordered, 3)                                                         \
  op(atan2, binary, 2, none, floats, 25)                                                       \
  op(nextafter, binary, 2, none, floats, 3)                                                    \
  op(zeta, binary, 2, none, floats, 120)                                                       \
  op(eq, binary, 2, zero, any, 1)                                                              \
  op(ne, binary, 2, zero, any, 1)                                                              \
  op(lt, binary, 2, zero, ordered, 1)                                                          \
  op(le, binary, 2, zero, ordered, 1)                                                          \
  op(gt, binary, 2, zero, ordered, 1)                                                          \
  op(ge, binary, 2, zero, ordered, 1)                                                          \
  op(and_, binary, 2, zero, bits_and_bools, 1)                                                 \
  op(or_, binary, 2, zero, bits_and_bools, 1)                                                  \
  op(xor_, binary, 2, zero, bits_and_bools, 1)                                                 \
  op(shift_left, binary, 2, zero, ints, 1)                                                     \
  op(shift_right_logical, binary, 2, zero, ints, 1)                                            \
  op(shift_right_arithmetic, binary, 2, zero, ints, 1)                                         \
  op(threefry, binary, 2, zero, words64, 60)                                                   \
  op(complex, binary, 2, linear, wide, 1)                                                      \
  /* choose */                                                                                 \
  op(select, select, 3, linear, any, 1)                                                        \
  /* reduce */                                                                                 \
  op(reduce_sum, reduce, 1, linear, numbers, 1)                                                \
  op(reduce_prod, reduce, 1, none, numbers, 1)                                                 \
  op(reduce_max, reduce, 1, none, ordered, 1)                                                  \
  op(reduce_min, reduce, 1, none, ordered, 1)                                                  \
  op(reduce_any, reduce, 1, zero, bools, 1)                                                    \
  op(reduce_all, reduce, 1, zero, bools, 1)                                                    \
  op(argmax, reduce, 1, zero, ordered, 1)                                                      \
  op(argmin, reduce, 1, zero, ordered, 1)                                                      \
  op(reduce, reduce, -1, none, any, 1)                                                         \
  /* scan along an axis */                                                                     \
  op(cumsum, cumulative, 1, linear, numbers, 1)                                                \
  op(cumprod, cumulative, 1, none, numbers, 1)                                                 \
  op(cummax, cumulative, 1, none, ordered, 1)                                                  \
  op(cummin, cumulative, 1, none, ordered, 1)                                                  \
  op(cumlogsumexp, cumulative, 1, none, floats, 1)                                             \
  /* order along an axis */                                                                    \
  op(sort, order, -1, none, any, 1)                                                            \
  /* shape */                                                                                  \
  op(reshape, shape, 1, linear, any, 0)                                                        \
  op(transpose, shape, 1, linear, any, 0)                                                      \
  op(broadcast_in_dim, shape, 1, linear, any, 0)                                               \
  op(concatenate, shape, -1, linear, any, 2)                                                   \
  op(pad, shape, 2, linear, any, 2)                                                            \
  op(rev, shape, 1, linear, any, 0)                                                            \
  /* index */                                                                                  \
  op(slice, index, 1, linear, any, 0)                                                          \
  op(dynamic_slice, index, -1, first, any, 2)                                                  \
  op(dynamic_update_slice, index, -1, linear, any, 2)                                          \
  op(gather, index, 2, first, any, 2)                                                          \
  op(scatter, index, 3, linear, any, 1)                                                        \
  op(scatter_add, index, 3, linear, numbers, 1)                                                \
  op(scatter_mul, index, 3, none, numbers, 1)                                                  \
  op(scatter_min, index, 3, none, ordered, 1)                                                  \
  op(scatter_max, index, 3, none, ordered, 1)                                                  \
  /* rows of several arrays */                                                                 \
  op(rows, rows, -1, linear, any, 1)                                                           \
  op(rows_add, rows, 1, linear, numbers, 1)                                                    \
  /* windows */                                                                                \
  op(windows, window, 1, linear, any, 0)                                                       \
  op(overlap_add, window, 1, linear, numbers, 2)                                               \
  /* contract */                                                                               \
  op(dot_general, contract, 2, bilinear, numbers, 1)                                           \
  op(conv_general, contract, 2, bilinear, numbers, 1)                                          \
  /* spectral */                                                                               \
  op(fft, spectral, 1, linear, wide_inexact, 1)                                                \
  /* linear algebra, over the last two axes */                                                 \
  op(cholesky, linalg, 1, none, wide_inexact, 1)                                               \
  op(triangular_solve, linalg, 2, last, wide_inexact, 1)                                       \
  op(lu, linalg, 1, none, wide_inexact, 1)                                                     \
  op(solve, linalg, -1, last, wide_inexact, 1)                                                 \
  op(qr, linalg, 1, none, wide_inexact, 1)                                                     \
  op(eigh, linalg, 1, none, wide_inexact, 1)                                                   \
  op(svd, linalg, 1, none, wide_inexact, 1)                                                    \
  op(eig, linalg, 1, none, wide_inexact, 1)                                                    \
  op(tridiagonal_solve, linalg, 4, last, wide_inexact, 1)                                      \
  /* collective: between the lanes of a named axis */                                          \
  op(psum, collective, 1, linear, numbers, 1)                                                  \
  op(pmax, collective, 1, none, ordered, 1)                                                    \
  op(pmin, collective, 1, none, ordered, 1)                                                    \
  op(all_gather, collective, 1, linear, any, 1)                                                \
  op(all_to_all, collective, 1, linear, any, 1)                                                \
  op(ppermute, collective, 1, linear, any, 1)                                                  \
  op(spread, collective, 1, linear, any, 0)                                                    \
  op(axis_index, collective, 0, zero, any, 1)                                                  \
  /* structure: equations that own a sub-graph */                                              \
  op(call, structure, -1, none, any, 1)                                                        \
  op(batched_call, structure, -1, none, any, 1)                                                \
  op(recursive_call, structure, -1, none, any, 1)                                              \
  op(custom_jvp, structure, -1, none, any, 1)                                                  \
  op(custom_vjp, structure, -1, none, any, 1)                                                  \
  op(custom_vmap, structure, -1, none, any, 1)                                                 \
  op(checkpoint, structure, -1, none, any, 1)                                                  \
  op(cond, structure, -1, none, any, 1)                                                        \
  op(while_, structure, -1, none, any, 1)                                                      \
  op(scan, structure, -1, none, any, 1)                                                        \
  op(fused_region, structure, -1, none, any, 1)                                                \
  /* effect: what happens besides results; callback has results, the others have none */       \
  op(debug_print, effect, -1, zero, any, 1)                                                    \
  op(check, effect, -1, zero, any, 1)                                                          \
  op(callback, effect, -1, none, any, 1)
// clang-format on
enum class Op : std::uint8_t {
#define VT_OP_NAME(op, ...) op,
  VT_OPS(VT_OP_NAME)
#undef VT_OP_NAME
      count_
};
inline constexpr int op_count = static_cast<int>(Op::count_);

/// Its enumerator's, without the underscore behind words of C++; null-terminated.
struct OpName {
  char text[24] = {};
  constexpr OpName() = default;
  constexpr OpName(const char* enumerator) {
    for (int i = 0; enumerator[i]; ++i)
      if (enumerator[i] != '_' || enumerator[i + 1]) text[i] = enumerator[i];
  }
};
struct OpInfo {
  OpName name;
  Family family;
  int arity;  ///< −1: any number
  Linearity linearity;
  std::uint32_t dtypes;  ///< bit per DType
  int cost;
};

/// A dense table indexed by Op, built from entries in any order; `has` tells which there are.
template <class Rule>
struct RuleTable {
  std::array<Rule, op_count> rules{};
  std::array<bool, op_count> has{};
  constexpr const Rule& operator[](Op op) const { return rules[static_cast<std::size_t>(op)]; }
};

template <class Rule>
consteval RuleTable<Rule> rule_table(std::initializer_list<std::pair<Op, Rule>> entries) {
  RuleTable<Rule> table;
  for (const auto& [op, rule] : entries) {
    if (table.has[static_cast<std::size_t>(op)]) throw "two entries for one op";
    table.rules[static_cast<std::size_t>(op)] = rule;
    table.has[static_cast<std::size_t>(op)] = true;
  }
  return table;
}

/// The first op without an entry, or Op::count_. Use:
/// static_assert(RuleMissingFor<first_without_rule(table)>::ok).
template <class Rule>
consteval Op first_without_rule(const RuleTable<Rule>& table) {
  for (int i = 0; i < op_count; ++i)
    if (!table.has[static_cast<std::size_t>(i)]) return static_cast<Op>(i);
  return Op::count_;
}
template <Op op>
struct RuleMissingFor {
  static_assert(op == Op::count_, "a table of rules has no entry for this op");
  static constexpr bool ok = true;
};

inline constexpr RuleTable<OpInfo> op_table = rule_table<OpInfo>({
#define VT_OP_INFO(op, family, arity, linearity, dtypes, cost) \
  {Op::op, {#op, Family::family, arity, Linearity::linearity, dtype_sets::dtypes, cost}},
    VT_OPS(VT_OP_INFO)
#undef VT_OP_INFO
});

/// The entries of `table`, and for each other op what `rule_of` makes of its facts: none where that
/// is std::nullopt.
template <class Rule>
consteval RuleTable<Rule> with_defaults(RuleTable<Rule> table,
                                        std::optional<Rule> (*rule_of)(const OpInfo&)) {
  for (int i = 0; i < op_count; ++i) {
    if (table.has[i]) continue;
    const std::optional<Rule> rule = rule_of(op_table.rules[i]);
    if (rule) table.rules[i] = *rule;
    table.has[i] = rule.has_value();
  }
  return table;
}

constexpr std::string_view name_of(Op op) { return op_table[op].name.text; }
constexpr Family family_of(Op op) { return op_table[op].family; }
constexpr bool is_elementwise(Op op) {
  return family_of(op) == Family::unary || family_of(op) == Family::binary ||
         family_of(op) == Family::select;
}
/// As first_without_rule, of element-wise ops.
template <class Rule>
consteval Op first_elementwise_without_rule(const RuleTable<Rule>& table) {
  for (int i = 0; i < op_count; ++i)
    if (is_elementwise(static_cast<Op>(i)) && !table.has[i]) return static_cast<Op>(i);
  return Op::count_;
}
/// Equations that decide which of their sub-graphs run, and how often.
constexpr bool is_control(Op op) { return op == Op::cond || op == Op::while_ || op == Op::scan; }
/// Equations that may become one function, with their sub-graphs inside.
constexpr bool may_be_register_kernel(Op op) { return is_control(op) || op == Op::fused_region; }
/// Works between the lanes of a named axis, and vmap resolves it; or between the processes of a
/// mesh.
constexpr bool is_collective(Op op) { return family_of(op) == Family::collective; }
constexpr bool is_comparison(Op op) {
  return op == Op::eq || op == Op::ne || op == Op::lt || op == Op::le || op == Op::gt ||
         op == Op::ge;
}

/// What a scatter makes of an element and an update, Op::scatter where it overwrites; of other ops
/// Op::count_.
constexpr Op combination_of(Op op) {
  switch (op) {
    case Op::scatter: return Op::scatter;
    case Op::scatter_add: return Op::add;
    case Op::scatter_mul: return Op::mul;
    case Op::scatter_min: return Op::min;
    case Op::scatter_max: return Op::max;
    default: return Op::count_;
  }
}
constexpr bool is_scatter(Op op) { return combination_of(op) != Op::count_; }
/// Gives operand 0 with some elements overwritten.
constexpr bool is_update(Op op) { return op == Op::dynamic_update_slice || is_scatter(op); }
/// Which operand of an update is written.
constexpr std::size_t written_operand(Op update) {
  return update == Op::dynamic_update_slice ? 1 : 2;
}

/// What a reduction begins with: 0, 1, or the number that no element lies beyond (of floats −∞ or
/// ∞). For bools the first two are false and true.
enum class Neutral : std::uint8_t { zero, one, least, greatest };
/// A reduction by an op of two elements, which does nothing to the other with the neutral one.
struct Reduction {
  Op combine = Op::count_;
  Neutral neutral = Neutral::zero;
  bool idempotent = false;  ///< taking an element twice changes nothing
};
inline constexpr RuleTable<Reduction> reduction_facts = rule_table<Reduction>({
    {Op::reduce_sum, {Op::add, Neutral::zero, false}},
    {Op::reduce_prod, {Op::mul, Neutral::one, false}},
    {Op::reduce_max, {Op::max, Neutral::least, true}},
    {Op::reduce_min, {Op::min, Neutral::greatest, true}},
    {Op::reduce_any, {Op::or_, Neutral::zero, true}},
    {Op::reduce_all, {Op::and_, Neutral::one, true}},
});
/// Whether the op is one of them, whose parameters are AxesParams.
constexpr bool is_reduction(Op op) { return reduction_facts.has[static_cast<std::size_t>(op)]; }
/// The first op of the table above without an entry in this one, or Op::count_. Use as
/// first_without_rule.
template <class Rule>
consteval Op first_reduction_without_rule(const RuleTable<Rule>& table) {
  for (int i = 0; i < op_count; ++i)
    if (reduction_facts.has[static_cast<std::size_t>(i)] && !table.has[static_cast<std::size_t>(i)])
      return static_cast<Op>(i);
  return Op::count_;
}
/// The first reduction that is missing there; those of positions and by the user's functions are
/// none of it.
consteval Op first_missing_reduction() {
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (family_of(op) == Family::reduce && op != Op::argmax && op != Op::argmin &&
        op != Op::reduce && !reduction_facts.has[static_cast<std::size_t>(i)])
      return op;
  }
  return Op::count_;
}
static_assert(RuleMissingFor<first_missing_reduction()>::ok);
/// Where the accumulator of 16-bit floats is an f32: what is rounded may be so once only.
constexpr bool accumulates_wide(Op reduction) { return !reduction_facts[reduction].idempotent; }

/// The comparison that says the same of its operands exchanged; other ops stay as they are.
constexpr Op mirrored(Op op) {
  switch (op) {
    case Op::lt: return Op::gt;
    case Op::le: return Op::ge;
    case Op::gt: return Op::lt;
    case Op::ge: return Op::le;
    default: return op;
  }
}

}  // namespace vt::detail
