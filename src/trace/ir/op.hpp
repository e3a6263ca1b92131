// The closed set of primitive ops: the Op enum and its definition table (name, arity,
// family, linearity).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace vt::detail {

// clang-format off
enum class Op : std::uint8_t {
  // leaves
  input, constant, full, iota,
  // element-wise, one operand
  neg, abs, sign, floor, ceil, round, trunc, exp, exp2, expm1, log, log1p, log2, sqrt, rsqrt, cbrt,
  sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, sigmoid,
  erf, erfc, erf_inv, lgamma, digamma,
  gamma, erfcx, erfc_inv, ndtr, log_ndtr, dawsn, expi, spence, fresnel_sin, fresnel_cos,
  bessel_i0e, bessel_i1e, bessel_k0e, bessel_k1e, bessel_j0, bessel_j1, bessel_y0, bessel_y1,
  real, imag, conj, is_finite, is_nan, is_inf, integer_pow, not_, popcount, clz,
  convert, bitcast, reduce_precision, stop_gradient, meeting,
  // element-wise, two operands
  add, sub, mul, div, rem, pow, max, min, atan2, nextafter, zeta, eq, ne, lt, le, gt, ge,
  and_, or_, xor_, shift_left, shift_right_logical, shift_right_arithmetic,
  threefry, complex,
  // choose
  select,
  // reduce
  reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_any, reduce_all, argmax, argmin, reduce,
  // scan along an axis
  cumsum, cumprod, cummax, cummin, cumlogsumexp,
  // order along an axis
  sort,
  // shape
  reshape, transpose, broadcast_in_dim, concatenate, pad, rev,
  // index
  slice, dynamic_slice, dynamic_update_slice, gather,
  scatter, scatter_add, scatter_mul, scatter_min, scatter_max,
  // rows of several arrays
  rows, rows_add,
  // windows
  windows, overlap_add,
  // contract
  dot_general, conv_general,
  // spectral
  fft,
  // linear algebra, over the last two axes
  cholesky, triangular_solve, lu, solve, qr, eigh, svd, eig, tridiagonal_solve,
  // collective: between the lanes of a named axis
  psum, pmax, pmin, all_gather, all_to_all, ppermute,
  // structure: equations that own a sub-graph
  call, batched_call, recursive_call, custom_jvp, custom_vjp, custom_vmap, checkpoint, cond,
  while_, scan,
  fused_region,
  // effect: what happens besides results; callback has results, the others have none
  debug_print, check, callback,
  count_
};
// clang-format on
inline constexpr int op_count = static_cast<int>(Op::count_);

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
  /// in all operands jointly (add, concatenate, pad …), over the reals: real, imag and conj are
  /// linear too
  linear,
  bilinear,  ///< in each of two operands alone (mul, dot_general, conv_general)
  first,     ///< in the first operand only (div, gather …)
  last,      ///< in the last operand only (the right sides of linear systems)
};

struct OpInfo {
  Op op;
  std::string_view name;
  int arity;  ///< −1: any number
  Family family;
  Linearity linearity;
};

/// A dense table indexed by Op, built from rows in any order; `has` tells which rows exist.
template <class Row>
struct RuleTable {
  std::array<Row, op_count> rows{};
  std::array<bool, op_count> has{};
  constexpr const Row& operator[](Op op) const { return rows[static_cast<std::size_t>(op)]; }
};

template <class Row>
consteval RuleTable<Row> rule_table(std::initializer_list<std::pair<Op, Row>> rows) {
  RuleTable<Row> table;
  for (const auto& [op, row] : rows) {
    if (table.has[static_cast<std::size_t>(op)]) throw "two rows for one op";
    table.rows[static_cast<std::size_t>(op)] = row;
    table.has[static_cast<std::size_t>(op)] = true;
  }
  return table;
}

/// The first op without a row, or Op::count_. Use:
/// static_assert(RuleMissingFor<first_without_rule(table)>::ok).
template <class Row>
consteval Op first_without_rule(const RuleTable<Row>& table) {
  for (int i = 0; i < op_count; ++i)
    if (!table.has[static_cast<std::size_t>(i)]) return static_cast<Op>(i);
  return Op::count_;
}
template <Op op>
struct RuleMissingFor {
  static constexpr bool ok = op == Op::count_;
};

consteval RuleTable<OpInfo> op_infos() {
  RuleTable<OpInfo> t;
  auto row = [&](Op op, std::string_view name, int arity, Family family,
                 Linearity linearity = Linearity::none) {
    if (t.has[static_cast<std::size_t>(op)]) throw "two rows for one op";
    t.rows[static_cast<std::size_t>(op)] = {op, name, arity, family, linearity};
    t.has[static_cast<std::size_t>(op)] = true;
  };
  using enum Family;
  using enum Linearity;
  row(Op::input, "input", 0, leaf);
  row(Op::constant, "constant", 0, leaf);
  row(Op::full, "full", 0, leaf);
  row(Op::iota, "iota", 0, leaf);
  row(Op::neg, "neg", 1, unary, linear);
  row(Op::abs, "abs", 1, unary);
  row(Op::sign, "sign", 1, unary);
  row(Op::floor, "floor", 1, unary);
  row(Op::ceil, "ceil", 1, unary);
  row(Op::round, "round", 1, unary);
  row(Op::trunc, "trunc", 1, unary);
  row(Op::exp, "exp", 1, unary);
  row(Op::exp2, "exp2", 1, unary);
  row(Op::expm1, "expm1", 1, unary);
  row(Op::log, "log", 1, unary);
  row(Op::log1p, "log1p", 1, unary);
  row(Op::log2, "log2", 1, unary);
  row(Op::sqrt, "sqrt", 1, unary);
  row(Op::rsqrt, "rsqrt", 1, unary);
  row(Op::cbrt, "cbrt", 1, unary);
  row(Op::sin, "sin", 1, unary);
  row(Op::cos, "cos", 1, unary);
  row(Op::tan, "tan", 1, unary);
  row(Op::asin, "asin", 1, unary);
  row(Op::acos, "acos", 1, unary);
  row(Op::atan, "atan", 1, unary);
  row(Op::sinh, "sinh", 1, unary);
  row(Op::cosh, "cosh", 1, unary);
  row(Op::tanh, "tanh", 1, unary);
  row(Op::asinh, "asinh", 1, unary);
  row(Op::acosh, "acosh", 1, unary);
  row(Op::atanh, "atanh", 1, unary);
  row(Op::sigmoid, "sigmoid", 1, unary);
  row(Op::erf, "erf", 1, unary);
  row(Op::erfc, "erfc", 1, unary);
  row(Op::erf_inv, "erf_inv", 1, unary);
  row(Op::lgamma, "lgamma", 1, unary);
  row(Op::digamma, "digamma", 1, unary);
  row(Op::gamma, "gamma", 1, unary);
  row(Op::erfcx, "erfcx", 1, unary);
  row(Op::erfc_inv, "erfc_inv", 1, unary);
  row(Op::ndtr, "ndtr", 1, unary);
  row(Op::log_ndtr, "log_ndtr", 1, unary);
  row(Op::dawsn, "dawsn", 1, unary);
  row(Op::expi, "expi", 1, unary);
  row(Op::spence, "spence", 1, unary);
  row(Op::fresnel_sin, "fresnel_sin", 1, unary);
  row(Op::fresnel_cos, "fresnel_cos", 1, unary);
  row(Op::bessel_i0e, "bessel_i0e", 1, unary);
  row(Op::bessel_i1e, "bessel_i1e", 1, unary);
  row(Op::bessel_k0e, "bessel_k0e", 1, unary);
  row(Op::bessel_k1e, "bessel_k1e", 1, unary);
  row(Op::bessel_j0, "bessel_j0", 1, unary);
  row(Op::bessel_j1, "bessel_j1", 1, unary);
  row(Op::bessel_y0, "bessel_y0", 1, unary);
  row(Op::bessel_y1, "bessel_y1", 1, unary);
  row(Op::real, "real", 1, unary, linear);
  row(Op::imag, "imag", 1, unary, linear);
  row(Op::conj, "conj", 1, unary, linear);
  row(Op::is_finite, "is_finite", 1, unary);
  row(Op::is_nan, "is_nan", 1, unary);
  row(Op::is_inf, "is_inf", 1, unary);
  row(Op::integer_pow, "integer_pow", 1, unary);
  row(Op::not_, "not", 1, unary);
  row(Op::popcount, "popcount", 1, unary);
  row(Op::clz, "clz", 1, unary);
  row(Op::convert, "convert", 1, unary, linear);
  row(Op::bitcast, "bitcast", 1, unary);
  row(Op::reduce_precision, "reduce_precision", 1, unary, linear);
  row(Op::stop_gradient, "stop_gradient", 1, unary);
  row(Op::meeting, "meeting", 1, unary, linear);
  row(Op::add, "add", 2, binary, linear);
  row(Op::sub, "sub", 2, binary, linear);
  row(Op::mul, "mul", 2, binary, bilinear);
  row(Op::div, "div", 2, binary, first);
  row(Op::rem, "rem", 2, binary);
  row(Op::pow, "pow", 2, binary);
  row(Op::max, "max", 2, binary);
  row(Op::min, "min", 2, binary);
  row(Op::atan2, "atan2", 2, binary);
  row(Op::nextafter, "nextafter", 2, binary);
  row(Op::zeta, "zeta", 2, binary);
  row(Op::eq, "eq", 2, binary);
  row(Op::ne, "ne", 2, binary);
  row(Op::lt, "lt", 2, binary);
  row(Op::le, "le", 2, binary);
  row(Op::gt, "gt", 2, binary);
  row(Op::ge, "ge", 2, binary);
  row(Op::and_, "and", 2, binary);
  row(Op::or_, "or", 2, binary);
  row(Op::xor_, "xor", 2, binary);
  row(Op::shift_left, "shift_left", 2, binary);
  row(Op::shift_right_logical, "shift_right_logical", 2, binary);
  row(Op::shift_right_arithmetic, "shift_right_arithmetic", 2, binary);
  row(Op::threefry, "threefry", 2, binary);              // key, counter
  row(Op::complex, "complex", 2, binary, linear);        // real part, imaginary part
  row(Op::select, "select", 3, Family::select, linear);  // in its last two operands
  row(Op::reduce_sum, "reduce_sum", 1, Family::reduce, linear);
  row(Op::reduce_prod, "reduce_prod", 1, Family::reduce);
  row(Op::reduce_max, "reduce_max", 1, Family::reduce);
  row(Op::reduce_min, "reduce_min", 1, Family::reduce);
  row(Op::reduce_any, "reduce_any", 1, Family::reduce);
  row(Op::reduce_all, "reduce_all", 1, Family::reduce);
  row(Op::argmax, "argmax", 1, Family::reduce);
  row(Op::argmin, "argmin", 1, Family::reduce);
  row(Op::reduce, "reduce", -1, Family::reduce);
  row(Op::cumsum, "cumsum", 1, cumulative, linear);
  row(Op::cumprod, "cumprod", 1, cumulative);
  row(Op::cummax, "cummax", 1, cumulative);
  row(Op::cummin, "cummin", 1, cumulative);
  row(Op::cumlogsumexp, "cumlogsumexp", 1, cumulative);
  row(Op::sort, "sort", -1, order);
  row(Op::reshape, "reshape", 1, shape, linear);
  row(Op::transpose, "transpose", 1, shape, linear);
  row(Op::broadcast_in_dim, "broadcast_in_dim", 1, shape, linear);
  row(Op::concatenate, "concatenate", -1, shape, linear);
  row(Op::pad, "pad", 2, shape, linear);
  row(Op::rev, "rev", 1, shape, linear);
  row(Op::slice, "slice", 1, index, linear);
  row(Op::dynamic_slice, "dynamic_slice", -1, index, first);
  // in operand and update
  row(Op::dynamic_update_slice, "dynamic_update_slice", -1, index, linear);
  row(Op::gather, "gather", 2, index, first);
  row(Op::scatter, "scatter", 3, index, linear);  // in operand and updates
  row(Op::scatter_add, "scatter_add", 3, index, linear);
  row(Op::scatter_mul, "scatter_mul", 3, index);
  row(Op::scatter_min, "scatter_min", 3, index);
  row(Op::scatter_max, "scatter_max", 3, index);
  row(Op::rows, "rows", -1, Family::rows, linear);
  row(Op::rows_add, "rows_add", 1, Family::rows, linear);
  row(Op::windows, "windows", 1, window, linear);
  row(Op::overlap_add, "overlap_add", 1, window, linear);
  row(Op::dot_general, "dot_general", 2, contract, bilinear);
  row(Op::conv_general, "conv_general", 2, contract, bilinear);
  row(Op::fft, "fft", 1, spectral, linear);
  row(Op::cholesky, "cholesky", 1, linalg);
  row(Op::triangular_solve, "triangular_solve", 2, linalg, last);
  row(Op::lu, "lu", 1, linalg);
  row(Op::solve, "solve", -1, linalg, last);
  row(Op::qr, "qr", 1, linalg);
  row(Op::eigh, "eigh", 1, linalg);
  row(Op::svd, "svd", 1, linalg);
  row(Op::eig, "eig", 1, linalg);
  row(Op::tridiagonal_solve, "tridiagonal_solve", 4, linalg, last);
  row(Op::psum, "psum", 1, collective, linear);
  row(Op::pmax, "pmax", 1, collective);
  row(Op::pmin, "pmin", 1, collective);
  row(Op::all_gather, "all_gather", 1, collective, linear);
  row(Op::all_to_all, "all_to_all", 1, collective, linear);
  row(Op::ppermute, "ppermute", 1, collective, linear);
  row(Op::call, "call", -1, structure);
  row(Op::batched_call, "batched_call", -1, structure);
  row(Op::recursive_call, "recursive_call", -1, structure);
  row(Op::custom_jvp, "custom_jvp", -1, structure);
  row(Op::custom_vjp, "custom_vjp", -1, structure);
  row(Op::custom_vmap, "custom_vmap", -1, structure);
  row(Op::checkpoint, "checkpoint", -1, structure);
  row(Op::cond, "cond", -1, structure);
  row(Op::while_, "while", -1, structure);
  row(Op::scan, "scan", -1, structure);
  row(Op::fused_region, "fused_region", -1, structure);
  row(Op::debug_print, "debug_print", -1, effect);
  row(Op::check, "check", -1, effect);
  row(Op::callback, "callback", -1, effect);
  return t;
}
inline constexpr auto op_table = op_infos();
static_assert(RuleMissingFor<first_without_rule(op_table)>::ok);

constexpr std::string_view name_of(Op op) { return op_table[op].name; }
constexpr Family family_of(Op op) { return op_table[op].family; }
constexpr bool is_elementwise(Op op) {
  return family_of(op) == Family::unary || family_of(op) == Family::binary ||
         family_of(op) == Family::select;
}
/// Equations that decide which of their sub-graphs run, and how often.
constexpr bool is_control(Op op) { return op == Op::cond || op == Op::while_ || op == Op::scan; }
/// Equations that may become one function, with their sub-graphs inside.
constexpr bool may_be_register_kernel(Op op) { return is_control(op) || op == Op::fused_region; }
/// Works between the lanes of a named axis; vmap resolves it, nothing ever runs it.
constexpr bool is_collective(Op op) { return family_of(op) == Family::collective; }
constexpr bool is_comparison(Op op) { return op >= Op::eq && op <= Op::ge; }

constexpr bool is_scatter(Op op) { return op >= Op::scatter && op <= Op::scatter_max; }
/// What a scatter makes of an element and an update; Op::scatter itself overwrites.
constexpr Op combination_of(Op scatter) {
  return scatter == Op::scatter_add   ? Op::add
         : scatter == Op::scatter_mul ? Op::mul
         : scatter == Op::scatter_min ? Op::min
         : scatter == Op::scatter_max ? Op::max
                                      : Op::scatter;
}
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
};
inline constexpr RuleTable<Reduction> reduction_facts = rule_table<Reduction>({
    {Op::reduce_sum, {Op::add, Neutral::zero}},
    {Op::reduce_prod, {Op::mul, Neutral::one}},
    {Op::reduce_max, {Op::max, Neutral::least}},
    {Op::reduce_min, {Op::min, Neutral::greatest}},
    {Op::reduce_any, {Op::or_, Neutral::zero}},
    {Op::reduce_all, {Op::and_, Neutral::one}},
});
/// The first op of the table above without a row in this one, or Op::count_. Use as
/// first_without_rule.
template <class Row>
consteval Op first_reduction_without_rule(const RuleTable<Row>& table) {
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
/// Where the accumulator of 16-bit floats is an f32.
constexpr bool accumulates_wide(Op reduction) {
  return reduction == Op::reduce_sum || reduction == Op::reduce_prod;
}

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
