// Rewrite rules of arithmetic, logic, comparisons, selections and conversions: identities that hold
// bit for bit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "simplify.hpp"
#include "value_range.hpp"

namespace vt::detail::simplification {

namespace arithmetic {

bool is_zero(const Pass& p, Var v, bool negative) {
  const Scalar* s = p.full_value(v);
  if (!s || !s->is_value(0)) return false;
  if (p.assumes_finite()) return true;
  return !is_float(s->dtype) || __builtin_signbit(s->real) == negative;
}

/// Is no element of `v` −0.0? (Then adding +0.0 changes nothing.)
bool never_negative_zero(const Pass& p, Var v, int depth = 4) {
  const Equation* e = p.def(v);
  if (!e) return false;
  if (is_complex(p.dtype(v))) return false;
  if (const Scalar* s = p.full_value(v)) return !(s->is_value(0) && __builtin_signbit(s->real));
  if (depth == 0) return false;
  switch (e->op) {
    case Op::abs:
    case Op::exp:
    case Op::exp2:
    case Op::sigmoid:
    case Op::iota:
    case Op::cumsum:
    case Op::reduce_sum: return true;
    case Op::convert: return !is_float(p.dtype(e->inputs[0]));
    case Op::integer_pow: return e->as<IntegerPowParams>().exponent % 2 == 0;
    case Op::mul: return e->inputs[0] == e->inputs[1];
    // A sum is −0.0 only if both terms are.
    case Op::add:
      return never_negative_zero(p, e->inputs[0], depth - 1) ||
             never_negative_zero(p, e->inputs[1], depth - 1);
    case Op::broadcast_in_dim:
    case Op::reshape:
    case Op::transpose:
    case Op::slice:
    case Op::rev: return never_negative_zero(p, e->inputs[0], depth - 1);
    default: return false;
  }
}

/// 1 / c if that is a power of two that the dtype holds, so that x / c = x · (1 / c) exactly.
std::optional<double> exact_reciprocal(const Scalar& c) {
  if (!is_float(c.dtype)) return std::nullopt;
  int exponent = 0;
  if (!__builtin_isfinite(c.real) || std::fabs(std::frexp(c.real, &exponent)) != 0.5)
    return std::nullopt;
  const Scalar reciprocal = Scalar(1.0 / c.real).converted(c.dtype);
  if (!__builtin_isfinite(reciprocal.real) || reciprocal.real * c.real != 1.0) return std::nullopt;
  return reciprocal.real;
}

Var add(Pass& p, const Candidate& c) {
  const bool real = is_float(c.aval.dtype);
  for (std::size_t i : {0u, 1u}) {
    const Var x = c.in(i), y = c.in(1 - i);
    if (is_zero(p, y, real) || (is_zero(p, y, false) && never_negative_zero(p, x))) return x;
    if (const Equation* n = p.def(y, Op::neg)) return p.emit(Op::sub, {x, n->inputs[0]});
  }
  return Pass::none;
}

Var sub(Pass& p, const Candidate& c) {
  const Var x = c.in(0), y = c.in(1);
  const bool real = is_float(c.aval.dtype);
  if (is_zero(p, y, false) || (is_zero(p, y, true) && never_negative_zero(p, x))) return x;
  if (is_zero(p, x, real)) return p.emit(Op::neg, {y});
  if (!real && x == y) return p.full_like(0, c.aval);
  if (const Equation* n = p.def(y, Op::neg)) return p.emit(Op::add, {x, n->inputs[0]});
  return Pass::none;
}

Var mul(Pass& p, const Candidate& c) {
  const bool real = is_float(c.aval.dtype);
  for (std::size_t i : {0u, 1u}) {
    const Var x = c.in(i), y = c.in(1 - i);
    if (p.is_full_of(y, 1)) return x;
    if (!is_unsigned(c.aval.dtype) && p.is_full_of(y, -1)) return p.emit(Op::neg, {x});
    if ((!real || p.assumes_finite()) && p.is_full_of(y, 0)) return p.full_like(0, c.aval);
    const Equation* n = p.def(x, Op::neg);
    if (!n || is_unsigned(c.aval.dtype)) continue;
    const Var inner = n->inputs[0];
    if (const Scalar* s = p.full_value(y))
      return p.emit(Op::mul, {inner, p.emit(Op::neg, {p.full(*s, p.aval(y))})});
    if (const Equation* m = p.def(y, Op::neg)) return p.emit(Op::mul, {inner, m->inputs[0]});
  }
  return Pass::none;
}

Var div(Pass& p, const Candidate& c) {
  const Var x = c.in(0), y = c.in(1);
  if (p.is_full_of(y, 1)) return x;
  if (is_float(c.aval.dtype) && p.assumes_finite() && p.is_full_of(x, 0))
    return p.full_like(0, c.aval);
  if (!is_unsigned(c.aval.dtype) && p.is_full_of(y, -1)) return p.emit(Op::neg, {x});
  if (const Scalar* s = p.full_value(y))
    if (const auto reciprocal = exact_reciprocal(*s))
      return p.emit(Op::mul, {x, p.full_like(*reciprocal, p.aval(y))});
  return Pass::none;
}

Var rem(Pass& p, const Candidate& c) {
  if (is_float(c.aval.dtype)) return Pass::none;
  if (p.is_full_of(c.in(1), 1)) return p.full_like(0, c.aval);
  // An index that is in range already.
  const auto x = range_of(p, c.in(0)), y = range_of(p, c.in(1));
  if (x && y && x->low >= 0 && x->high < y->low) return c.in(0);
  return Pass::none;
}

Var pow(Pass& p, const Candidate& c) {
  const Scalar* s = p.full_value(c.in(1));
  if (!s) return Pass::none;
  constexpr int most_multiplied = 16;
  const double exponent = s->to_double();
  if (exponent != std::trunc(exponent) || std::fabs(exponent) > most_multiplied) return Pass::none;
  const Var base = c.in(0);
  return p.emit(Op::integer_pow, make_params(IntegerPowParams{static_cast<int>(exponent)}), {base});
}

Var integer_pow(Pass& p, const Candidate& c) {
  const int n = c.as<IntegerPowParams>().exponent;
  if (n == 0) return p.full_like(1, c.aval);  // of NaN too, as C's pow
  if (n == 1) return c.in();
  if (const Equation* e = p.def(c.in(), Op::neg); e && n % 2 == 0 && !is_unsigned(c.aval.dtype))
    return p.emit(c.op, c.params, {e->inputs[0]});
  if (const Equation* e = p.def(c.in(), Op::abs);
      e && n % 2 == 0 && !is_complex(p.dtype(e->inputs[0])))
    return p.emit(c.op, c.params, {e->inputs[0]});
  return Pass::none;
}

/// max and min.
Var extremum(Pass& p, const Candidate& c) {
  const bool greatest = c.op == Op::max;
  if (c.in(0) == c.in(1)) return c.in(0);
  for (std::size_t i : {0u, 1u}) {
    const Var x = c.in(i), y = c.in(1 - i);
    if (is_float(c.aval.dtype)) {
      if (p.is_full_of(y, greatest ? -std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::infinity()))
        return x;
      continue;
    }
    const auto rx = range_of(p, x), ry = range_of(p, y);
    if (rx && ry && (greatest ? rx->low >= ry->high : rx->high <= ry->low)) return x;
  }
  return Pass::none;
}

Var compare(Pass& p, const Candidate& c) {
  const Var x = c.in(0), y = c.in(1);
  if (is_float(p.dtype(x))) return Pass::none;
  const auto always = [&](bool truth) { return p.full(Scalar(truth), c.aval); };
  if (x == y) return always(c.op == Op::eq || c.op == Op::le || c.op == Op::ge);
  if (is_bool(p.dtype(x)) && (c.op == Op::eq || c.op == Op::ne)) {
    for (std::size_t i : {0u, 1u})
      if (const Scalar* s = p.full_value(c.in(1 - i))) {
        const Var b = c.in(i);
        return (s->integer != 0) == (c.op == Op::eq) ? b : p.emit(Op::not_, {b});
      }
    return Pass::none;
  }
  const auto a = range_of(p, x), b = range_of(p, y);
  if (!a || !b) return Pass::none;
  const bool below = a->high<b->low, above = a->low> b->high, not_above = a->high <= b->low,
             not_below = a->low >= b->high;
  switch (c.op) {
    case Op::eq: return below || above ? always(false) : Pass::none;
    case Op::ne: return below || above ? always(true) : Pass::none;
    case Op::lt: return below ? always(true) : not_below ? always(false) : Pass::none;
    case Op::le: return not_above ? always(true) : above ? always(false) : Pass::none;
    case Op::gt: return above ? always(true) : not_above ? always(false) : Pass::none;
    default: return not_below ? always(true) : below ? always(false) : Pass::none;
  }
}

/// Every bit set; for bool: true.
bool is_all_ones(const Pass& p, Var v) {
  const Scalar* s = p.full_value(v);
  if (!s) return false;
  if (is_bool(s->dtype)) return s->integer != 0;
  if (is_signed_int(s->dtype)) return s->integer == -1;
  return s->natural == (~std::uint64_t{0} >> (64 - 8 * size_of(s->dtype)));
}

Var bits(Pass& p, const Candidate& c) {
  if (c.in(0) == c.in(1)) return c.op == Op::xor_ ? p.full_like(0, c.aval) : c.in(0);
  for (std::size_t i : {0u, 1u}) {
    const Var x = c.in(i), y = c.in(1 - i);
    if (p.is_full_of(y, 0)) return c.op == Op::and_ ? y : x;
    if (is_all_ones(p, y))
      return c.op == Op::and_ ? x : c.op == Op::or_ ? y : p.emit(Op::not_, {x});
  }
  return Pass::none;
}

Var not_(Pass& p, const Candidate& c) {
  const Equation* e = p.def(c.in());
  if (!e) return Pass::none;
  switch (e->op) {
    case Op::not_: return e->inputs[0];
    case Op::eq: return p.emit(Op::ne, e->inputs);
    case Op::ne: return p.emit(Op::eq, e->inputs);
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: {
      if (is_float(p.dtype(e->inputs[0]))) return Pass::none;  // both are false of NaN
      const Op opposite = e->op == Op::lt   ? Op::ge
                          : e->op == Op::le ? Op::gt
                          : e->op == Op::gt ? Op::le
                                            : Op::lt;
      return p.emit(opposite, e->inputs);
    }
    default: return Pass::none;
  }
}

Var select(Pass& p, const Candidate& c) {
  const Var condition = c.in(0), yes = c.in(1), no = c.in(2);
  if (const Scalar* s = p.full_value(condition)) return s->integer ? yes : no;
  if (yes == no) return yes;
  if (const Equation* e = p.def(condition, Op::not_))
    return p.emit(Op::select, {e->inputs[0], no, yes});
  if (is_bool(c.aval.dtype)) {
    const Scalar *y = p.full_value(yes), *n = p.full_value(no);
    if (y && n && y->integer && !n->integer) return condition;
    if (y && n && !y->integer && n->integer) return p.emit(Op::not_, {condition});
  }
  // The same condition asked twice.
  if (const Equation* e = p.def(yes, Op::select); e && e->inputs[0] == condition)
    return p.emit(Op::select, {condition, e->inputs[1], no});
  if (const Equation* e = p.def(no, Op::select); e && e->inputs[0] == condition)
    return p.emit(Op::select, {condition, yes, e->inputs[2]});
  return select_of_updates(p, c);
}

// --- conversions ---------------------------------------------------------------------------------

/// Bits of precision of a float dtype, the leading one included.
int precision(DType d) {
  return d == DType::f64 ? 53 : d == DType::f32 ? 24 : d == DType::f16 ? 11 : 8;
}
/// Bits an integer's magnitude needs.
int magnitude_bits(DType d) {
  return is_bool(d) ? 1 : static_cast<int>(8 * size_of(d)) - (is_signed_int(d) ? 1 : 0);
}

/// Does every value of `from` survive a conversion to `to`?
bool is_exact(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_bool(to)) return false;
  if (is_float(from))
    return is_float(to) && size_of(to) > size_of(from) && to != DType::f16 && to != DType::bf16;
  // What fits in the precision is in range too; the least signed number needs one bit.
  if (is_float(to)) return magnitude_bits(from) <= precision(to);
  if (is_signed_int(from) && is_unsigned(to)) return false;
  return magnitude_bits(from) <= magnitude_bits(to);
}

/// convert(convert(x, middle), last) = convert(x, last)?
bool skips_middle(DType first, DType middle, DType last) {
  if (!is_exact(first, middle)) return false;
  // A float saturates where an integer wraps.
  if (is_float(middle) && !is_float(first) && is_int(last)) return is_exact(first, last);
  return true;
}

Var convert(Pass& p, const Candidate& c) {
  const DType to = c.aval.dtype, from = p.dtype(c.in());
  if (to == from) return c.in();
  const Equation* e = p.def(c.in());
  if (!e) return Pass::none;
  if (e->op == Op::convert && !is_complex(p.dtype(e->inputs[0])) &&
      skips_middle(p.dtype(e->inputs[0]), from, to)) {
    if (p.dtype(e->inputs[0]) == to) return e->inputs[0];
    return p.emit(Op::convert, c.params, {e->inputs[0]});
  }
  if (e->op == Op::iota && is_int(from) && !is_bool(to)) {
    // An index that fits is the same number in the other dtype.
    const auto& iota = e->as<IotaParams>();
    const std::int64_t extent = iota.aval.shape[iota.axis];
    const int bits =
        std::min({is_float(to) ? precision(to) : magnitude_bits(to), magnitude_bits(from), 62});
    if (extent <= (std::int64_t{1} << bits))
      return p.emit(Op::iota,
                    make_params(IotaParams{Aval(to, iota.aval.shape, c.aval.weak), iota.axis}), {});
  }
  return Pass::none;
}

Var bitcast(Pass& p, const Candidate& c) {
  if (c.aval.dtype == p.dtype(c.in())) return c.in();
  if (const Equation* e = p.def(c.in(), Op::bitcast))
    return p.emit(Op::bitcast, c.params, {e->inputs[0]});
  return Pass::none;
}

Var reduce_precision(Pass& p, const Candidate& c) {
  const auto& given = c.as<PrecisionParams>();
  const int exponent = c.aval.dtype == DType::f64 ? 11 : c.aval.dtype == DType::f16 ? 5 : 8;
  if (given.exponent_bits >= exponent && given.mantissa_bits >= precision(c.aval.dtype) - 1)
    return c.in();
  if (const Equation* e = p.def(c.in(), Op::reduce_precision); e && equal(e->params, c.params))
    return c.in();
  return Pass::none;
}

/// Ops that change nothing when they are done twice, or after another op.
Var repeated(Pass& p, const Candidate& c) {
  if ((c.op == Op::stop_gradient || c.op == Op::meeting) && p.for_running()) return c.in();
  const Equation* e = p.def(c.in());
  if (!e) return Pass::none;
  const auto rounds = [](Op op) {
    return op == Op::floor || op == Op::ceil || op == Op::round || op == Op::trunc;
  };
  switch (c.op) {
    case Op::neg: return e->op == Op::neg ? e->inputs[0] : Pass::none;
    case Op::abs:
      if (e->op == Op::abs) return c.in();
      if (e->op == Op::neg && !is_unsigned(c.aval.dtype)) return p.emit(Op::abs, {e->inputs[0]});
      return Pass::none;
    case Op::sign:
    case Op::stop_gradient: return e->op == c.op ? c.in() : Pass::none;
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: return rounds(e->op) ? c.in() : Pass::none;
    default: return Pass::none;
  }
}

}  // namespace arithmetic

/// Of complex numbers: what neither signed zeros nor infinities can tell apart.
Var on_complex(Pass& p, const Candidate& c) {
  const Equation* e = c.inputs.empty() ? nullptr : p.def(c.in());
  switch (c.op) {
    case Op::select: return arithmetic::select(p, c);
    case Op::convert: return c.aval.dtype == p.dtype(c.in()) ? c.in() : Pass::none;
    case Op::bitcast: return arithmetic::bitcast(p, c);
    case Op::integer_pow: return c.as<IntegerPowParams>().exponent == 1 ? c.in() : Pass::none;
    case Op::meeting:
    case Op::stop_gradient: return arithmetic::repeated(p, c);
    case Op::neg:
    case Op::conj: return e && e->op == c.op ? e->inputs[0] : Pass::none;
    case Op::real:
    case Op::imag:
      if (e && e->op == Op::complex) {
        const Var part = e->inputs[c.op == Op::real ? 0 : 1];
        return p.shape(part) == c.aval.shape ? part : p.broadcast(part, c.aval.shape, {});
      }
      if (e && e->op == Op::conj) {
        const Var part = p.emit(c.op, {e->inputs[0]});
        return c.op == Op::real ? part : p.emit(Op::neg, {part});
      }
      return Pass::none;
    case Op::complex: {
      const Equation *re = p.def(c.in(0), Op::real), *im = p.def(c.in(1), Op::imag);
      return re && im && re->inputs[0] == im->inputs[0] ? re->inputs[0] : Pass::none;
    }
    default: return Pass::none;
  }
}

Var simplify_arithmetic(Pass& p, const Candidate& c) {
  if (is_complex(c.aval.dtype)) return on_complex(p, c);
  for (Var v : c.inputs)
    if (is_complex(p.dtype(v))) return on_complex(p, c);
  switch (c.op) {
    case Op::add: return arithmetic::add(p, c);
    case Op::sub: return arithmetic::sub(p, c);
    case Op::mul: return arithmetic::mul(p, c);
    case Op::div: return arithmetic::div(p, c);
    case Op::rem: return arithmetic::rem(p, c);
    case Op::pow: return arithmetic::pow(p, c);
    case Op::integer_pow: return arithmetic::integer_pow(p, c);
    case Op::max:
    case Op::min: return arithmetic::extremum(p, c);
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: return arithmetic::compare(p, c);
    case Op::and_:
    case Op::or_:
    case Op::xor_: return arithmetic::bits(p, c);
    case Op::shift_left:
    case Op::shift_right_logical:
    case Op::shift_right_arithmetic: return p.is_full_of(c.in(1), 0) ? c.in(0) : Pass::none;
    case Op::not_: return arithmetic::not_(p, c);
    case Op::select: return arithmetic::select(p, c);
    case Op::convert: return arithmetic::convert(p, c);
    case Op::bitcast: return arithmetic::bitcast(p, c);
    case Op::reduce_precision: return arithmetic::reduce_precision(p, c);
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::meeting:
    case Op::stop_gradient:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: return arithmetic::repeated(p, c);
    default: return Pass::none;
  }
}

}  // namespace vt::detail::simplification
