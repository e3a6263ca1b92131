// The builder's arithmetic: every operation for every dtype with vt's semantics, selections, and
// reductions over the SIMD lanes of a vector.
#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include <bit>
#include <limits>

#include <vt/error.hpp>

namespace vt::detail::cpu {

namespace ir_ops {
bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
}  // namespace ir_ops

// ---- add, sub, mul and friends ------------------------------------------------------------------

Value IrBuilder::add(Value a, Value b) {
  expect_same("add", a, b);
  if (is_float(a.dtype))
    return finish(wrap(llvm_.BuildFAdd(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes),
                  a.dtype);
  if (is_bool(a.dtype)) return bit_or(a, b);
  return wrap(llvm_.BuildAdd(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::sub(Value a, Value b) {
  expect_same("sub", a, b);
  if (is_float(a.dtype))
    return finish(wrap(llvm_.BuildFSub(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes),
                  a.dtype);
  if (is_bool(a.dtype)) return bit_xor(a, b);
  return wrap(llvm_.BuildSub(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::mul(Value a, Value b) {
  expect_same("mul", a, b);
  if (is_float(a.dtype))
    return finish(wrap(llvm_.BuildFMul(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes),
                  a.dtype);
  if (is_bool(a.dtype)) return bit_and(a, b);
  return wrap(llvm_.BuildMul(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::div(Value a, Value b) {
  expect_same("div", a, b);
  if (is_float(a.dtype))
    return finish(wrap(llvm_.BuildFDiv(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes),
                  a.dtype);
  return divide_ints(a, b, false);
}

Value IrBuilder::rem(Value a, Value b) {
  expect_same("rem", a, b);
  if (is_float(a.dtype)) fault("rem (math::fmod is the float one)", a, b);
  return divide_ints(a, b, true);
}

// A divisor of 0 or -1 is replaced by 1 before the division, which LLVM leaves undefined for them.
// Then the remainder a - (a/1)·1 = 0 is already right, and the quotient is corrected by selects.
// All of it folds for constant divisors.
Value IrBuilder::divide_ints(Value a, Value b, bool remainder) {
  const DType d = a.dtype;
  const int simd_lanes = a.simd_lanes;
  if (is_bool(d)) return remainder ? integer(d, 0, simd_lanes) : bit_and(a, b);
  const Value one = integer(d, 1, simd_lanes), zero = integer(d, 0, simd_lanes);
  const Value is_zero = compare(Compare::eq, b, zero);
  const bool is_signed = is_signed_int(d);
  const Value is_minus_one =
      is_signed ? compare(Compare::eq, b, integer(d, -1, simd_lanes)) : Value{};
  const Value safe = select(is_signed ? bit_or(is_zero, is_minus_one) : is_zero, one, b);
  Value q;
  if (simd_lanes == 1 || size_of(d) == 8 || is_constant(safe)) {
    if (remainder && simd_lanes == 1 && !is_constant(safe))
      return wrap(is_signed ? llvm_.BuildSRem(builder_, a.ref, safe.ref, "")
                            : llvm_.BuildURem(builder_, a.ref, safe.ref, ""),
                  d, simd_lanes);
    q = wrap(is_signed ? llvm_.BuildSDiv(builder_, a.ref, safe.ref, "")
                       : llvm_.BuildUDiv(builder_, a.ref, safe.ref, ""),
             d, simd_lanes);
  } else {
    // CPUs divide vectors of floats, not of integers. The quotient of two 16-bit (32-bit) integers
    // is at least 2^-17 (2^-33) in relative terms below the next integer, so f32 (f64) division
    // cannot round up to it.
    const DType f = size_of(d) <= 2 ? DType::f32 : DType::f64;
    const DType wide = size_of(d) <= 2 ? DType::i32 : d;
    const auto to_float = [&](Value x) { return convert(convert(x, wide), f); };
    const Value ratio = div(to_float(a), to_float(safe));
    LLVMTypeRef type = register_type(wide, simd_lanes);
    LLVMValueRef truncated = is_signed_int(wide) ? llvm_.BuildFPToSI(builder_, ratio.ref, type, "")
                                                 : llvm_.BuildFPToUI(builder_, ratio.ref, type, "");
    q = convert(wrap(truncated, wide, simd_lanes), d);
  }
  if (remainder) return sub(a, mul(q, safe));
  if (is_signed) q = select(is_minus_one, neg(a), q);
  return select(is_zero, zero, q);
}

// select(b > a, b, a) is one instruction, and already gives a when a is NaN; only b needs a look.
// The first selection is one instruction, which gives `a` if either is NaN. A NaN of its own for
// that of `b`: were it `b`, LLVM would join the conditions, and a chain of maxima would wait for
// two comparisons each.
Value IrBuilder::max(Value a, Value b) {
  expect_same("max", a, b);
  const Value larger = select(compare(Compare::gt, b, a), b, a);
  return is_float(a.dtype)
             ? select(is_nan(b),
                      real(b.dtype, std::numeric_limits<double>::quiet_NaN(), b.simd_lanes), larger)
             : larger;
}

Value IrBuilder::min(Value a, Value b) {
  expect_same("min", a, b);
  const Value smaller = select(compare(Compare::lt, b, a), b, a);
  return is_float(a.dtype)
             ? select(is_nan(b),
                      real(b.dtype, std::numeric_limits<double>::quiet_NaN(), b.simd_lanes),
                      smaller)
             : smaller;
}

Value IrBuilder::fma(Value a, Value b, Value c) {
  expect_same("fma", a, b);
  expect_same("fma", a, c);
  if (!is_float(a.dtype)) return add(mul(a, b), c);
  return finish(
      wrap(intrinsic("llvm.fma", {register_type(a.dtype, a.simd_lanes)}, {a.ref, b.ref, c.ref}),
           a.dtype, a.simd_lanes),
      a.dtype);
}

Value IrBuilder::mul_add(Value a, Value b, Value c) {
  return target_.fma ? fma(a, b, c) : add(mul(a, b), c);
}

Value IrBuilder::dot_groups(Value sums, Value a, Value b) {
  const bool bytes = sums.dtype == DType::i32;
  const std::string name = (bytes ? "llvm.x86.avx512.vpdpbusd." : "llvm.x86.avx512bf16.dpbf16ps.") +
                           std::to_string(sums.simd_lanes * 32);
  const auto operand = [&](Value x) {
    return bytes ? x.ref
                 : llvm_.BuildBitCast(
                       builder_, x.ref,
                       vector_of(llvm_.BFloatTypeInContext(context_), 2 * sums.simd_lanes), "");
  };
  return wrap(intrinsic(name.c_str(), {}, {sums.ref, operand(a), operand(b)}), sums.dtype,
              sums.simd_lanes);
}

Value IrBuilder::neg(Value a) {
  if (is_float(a.dtype)) return wrap(llvm_.BuildFNeg(builder_, a.ref, ""), a.dtype, a.simd_lanes);
  if (is_bool(a.dtype)) return a;
  return wrap(llvm_.BuildNeg(builder_, a.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::float_unary(const char* name, Value a) {
  if (!is_float(a.dtype)) return a;
  return finish(
      wrap(intrinsic(name, {register_type(a.dtype, a.simd_lanes)}, {a.ref}), a.dtype, a.simd_lanes),
      a.dtype);
}

Value IrBuilder::abs(Value a) {
  if (is_float(a.dtype))
    return wrap(intrinsic("llvm.fabs", {register_type(a.dtype, a.simd_lanes)}, {a.ref}), a.dtype,
                a.simd_lanes);
  if (!is_signed_int(a.dtype)) return a;
  return wrap(intrinsic("llvm.abs", {register_type(a.dtype, a.simd_lanes)},
                        {a.ref, llvm_.ConstInt(int_type(1), 0, 0)}),
              a.dtype, a.simd_lanes);
}

Value IrBuilder::sign(Value a) {
  const Value zero = zero_like(a), one = integer(a.dtype, 1, a.simd_lanes);
  if (is_bool(a.dtype)) return a;
  if (is_float(a.dtype)) {
    const Value nonzero = wrap(llvm_.BuildFCmp(builder_, LLVMRealONE, a.ref, zero.ref, ""),
                               DType::bool_, a.simd_lanes);
    return select(nonzero, copysign(one, a), a);
  }
  const Value positive = select(compare(Compare::ne, a, zero), one, zero);
  return is_signed_int(a.dtype)
             ? select(compare(Compare::lt, a, zero), integer(a.dtype, -1, a.simd_lanes), positive)
             : positive;
}

Value IrBuilder::sqrt(Value a) {
  if (!is_float(a.dtype)) fault("sqrt", a, {});
  return float_unary("llvm.sqrt", a);
}

// Without SSE4.1 the rounding intrinsics become a call per SIMD lane; adding and taking away 2^23
// (2^52) rounds to even.
Value IrBuilder::round_even(Value a) {
  if (target_.sse41 || !is_float(a.dtype)) return float_unary("llvm.roundeven", a);
  const DType d = ir_ops::is_half(a.dtype) ? DType::f32 : a.dtype;
  const Value x = wrap(a.ref, d, a.simd_lanes),
              big = real(d, d == DType::f64 ? 0x1p52 : 0x1p23, a.simd_lanes), magnitude = abs(x);
  const Value rounded = copysign(sub(add(magnitude, big), big), x);
  const Value result = select(compare(Compare::lt, magnitude, big), rounded, x);
  return wrap(result.ref, a.dtype, a.simd_lanes);
}

Value IrBuilder::floor(Value a) {
  if (target_.sse41 || !is_float(a.dtype)) return float_unary("llvm.floor", a);
  const Value r = round_even(a);
  return copysign(select(compare(Compare::gt, r, a), sub(r, integer(a.dtype, 1, a.simd_lanes)), r),
                  a);
}

Value IrBuilder::ceil(Value a) {
  if (target_.sse41 || !is_float(a.dtype)) return float_unary("llvm.ceil", a);
  const Value r = round_even(a);
  return copysign(select(compare(Compare::lt, r, a), add(r, integer(a.dtype, 1, a.simd_lanes)), r),
                  a);
}

Value IrBuilder::trunc(Value a) {
  if (target_.sse41 || !is_float(a.dtype)) return float_unary("llvm.trunc", a);
  return copysign(floor(abs(a)), a);
}

Value IrBuilder::copysign(Value magnitude, Value sign) {
  expect_same("copysign", magnitude, sign);
  return wrap(intrinsic("llvm.copysign", {register_type(sign.dtype, sign.simd_lanes)},
                        {magnitude.ref, sign.ref}),
              sign.dtype, sign.simd_lanes);
}

// ---- bits ---------------------------------------------------------------------------------------

Value IrBuilder::bit_and(Value a, Value b) {
  expect_same("bit_and", a, b);
  return wrap(llvm_.BuildAnd(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::bit_or(Value a, Value b) {
  expect_same("bit_or", a, b);
  return wrap(llvm_.BuildOr(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::bit_xor(Value a, Value b) {
  expect_same("bit_xor", a, b);
  return wrap(llvm_.BuildXor(builder_, a.ref, b.ref, ""), a.dtype, a.simd_lanes);
}

Value IrBuilder::bit_not(Value a) {
  return wrap(llvm_.BuildNot(builder_, a.ref, ""), a.dtype, a.simd_lanes);
}

// LLVM's shifts are undefined from the width on: select what vt defines there.
Value IrBuilder::shift_guarded(Value a, Value amount, LLVMValueRef shifted, Value beyond) {
  const Value width =
      integer(a.dtype, static_cast<std::int64_t>(size_of(a.dtype)) * 8, a.simd_lanes);
  const Value within = wrap(llvm_.BuildICmp(builder_, LLVMIntULT, amount.ref, width.ref, ""),
                            DType::bool_, a.simd_lanes);
  return select(within, wrap(shifted, a.dtype, a.simd_lanes), beyond);
}

Value IrBuilder::shift_left(Value a, Value amount) {
  expect_same("shift_left", a, amount);
  if (is_bool(a.dtype)) return bit_and(a, bit_not(amount));
  return shift_guarded(a, amount, llvm_.BuildShl(builder_, a.ref, amount.ref, ""), zero_like(a));
}

Value IrBuilder::shift_right_logical(Value a, Value amount) {
  expect_same("shift_right_logical", a, amount);
  if (is_bool(a.dtype)) return bit_and(a, bit_not(amount));
  return shift_guarded(a, amount, llvm_.BuildLShr(builder_, a.ref, amount.ref, ""), zero_like(a));
}

Value IrBuilder::shift_right_arithmetic(Value a, Value amount) {
  expect_same("shift_right_arithmetic", a, amount);
  if (is_bool(a.dtype)) return bit_and(a, bit_not(amount));
  const Value last =
      integer(a.dtype, static_cast<std::int64_t>(size_of(a.dtype)) * 8 - 1, a.simd_lanes);
  // Of unsigned dtypes too it copies the top bit: the op says arithmetic, and the bits decide.
  const Value fill = wrap(llvm_.BuildAShr(builder_, a.ref, last.ref, ""), a.dtype, a.simd_lanes);
  return shift_guarded(a, amount, llvm_.BuildAShr(builder_, a.ref, amount.ref, ""), fill);
}

Value IrBuilder::popcount(Value a) {
  if (is_bool(a.dtype)) return a;
  return wrap(intrinsic("llvm.ctpop", {register_type(a.dtype, a.simd_lanes)}, {a.ref}), a.dtype,
              a.simd_lanes);
}

Value IrBuilder::clz(Value a) {
  if (is_bool(a.dtype)) return bit_not(a);
  return wrap(intrinsic("llvm.ctlz", {register_type(a.dtype, a.simd_lanes)},
                        {a.ref, llvm_.ConstInt(int_type(1), 0, 0)}),
              a.dtype, a.simd_lanes);
}

// ---- comparisons and selections -----------------------------------------------------------------

Value IrBuilder::compare(Compare op, Value a, Value b) {
  expect_same("compare", a, b);
  const auto k = static_cast<std::size_t>(op);
  if (is_float(a.dtype) && !a.pointer) {
    constexpr LLVMRealPredicate table[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                           LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
    return wrap(llvm_.BuildFCmp(builder_, table[k], a.ref, b.ref, ""), DType::bool_, a.simd_lanes);
  }
  constexpr LLVMIntPredicate with_sign[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                            LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
  constexpr LLVMIntPredicate without[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                          LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
  const LLVMIntPredicate p = is_signed_int(a.dtype) && !a.pointer ? with_sign[k] : without[k];
  return wrap(llvm_.BuildICmp(builder_, p, a.ref, b.ref, ""), DType::bool_, a.simd_lanes);
}

Value IrBuilder::select(Value mask, Value on_true, Value on_false) {
  expect_same("select", on_true, on_false);
  if (mask.dtype != DType::bool_ || (mask.simd_lanes != 1 && mask.simd_lanes != on_true.simd_lanes))
    fault("select", mask, on_true);
  if (mask.simd_lanes == 1 && is_constant(mask)) return is_zero(mask) ? on_false : on_true;
  Value r = on_true;
  // At level 0 LLVM 19 reads a number that only this wants together with the choice where AVX has
  // that: as a whole vector, beyond the end of the array. Frozen, it is loaded by itself.
  const bool apart =
      target_.vector_bytes == 32 && r.simd_lanes == 1 && is_float(r.dtype) && !r.pointer;
  choices_ += r.simd_lanes == 1;
  r.ref = llvm_.BuildSelect(
      builder_, mask.ref, apart ? llvm_.BuildFreeze(builder_, r.ref, "") : r.ref, on_false.ref, "");
  if (on_true.buffer != on_false.buffer) r.buffer = -1;
  return r;
}

Value IrBuilder::is_nan(Value a) {
  if (!is_float(a.dtype)) return boolean(false, a.simd_lanes);
  return wrap(llvm_.BuildFCmp(builder_, LLVMRealUNO, a.ref, a.ref, ""), DType::bool_, a.simd_lanes);
}

Value IrBuilder::is_inf(Value a) {
  if (!is_float(a.dtype)) return boolean(false, a.simd_lanes);
  return compare(Compare::eq, abs(a),
                 real(a.dtype, std::numeric_limits<double>::infinity(), a.simd_lanes));
}

Value IrBuilder::is_finite(Value a) {
  if (!is_float(a.dtype)) return boolean(true, a.simd_lanes);
  return compare(Compare::lt, abs(a),
                 real(a.dtype, std::numeric_limits<double>::infinity(), a.simd_lanes));
}

Value IrBuilder::any(Value mask) {
  if (mask.dtype != DType::bool_) fault("any", mask, {});
  if (mask.simd_lanes == 1) return mask;
  LLVMTypeRef bits = int_type(mask.simd_lanes);
  return wrap(llvm_.BuildICmp(builder_, LLVMIntNE, llvm_.BuildBitCast(builder_, mask.ref, bits, ""),
                              llvm_.ConstNull(bits), ""),
              DType::bool_, 1);
}

Value IrBuilder::all(Value mask) { return bit_not(any(bit_not(mask))); }

Value IrBuilder::mask_bits(Value mask) {
  if (mask.dtype != DType::bool_ || mask.simd_lanes > 64) fault("mask_bits", mask, {});
  LLVMValueRef bits = llvm_.BuildBitCast(builder_, mask.ref, int_type(mask.simd_lanes), "");
  if (mask.simd_lanes < 64) bits = llvm_.BuildZExt(builder_, bits, int_type(64), "");
  return wrap(bits, DType::i64, 1);
}

// ---- reductions ---------------------------------------------------------------------------------

Value IrBuilder::combine(Op op, Value a, Value b) {
  switch (op) {
    case Op::add: return add(a, b);
    case Op::mul: return mul(a, b);
    case Op::max: return max(a, b);
    case Op::min: return min(a, b);
    case Op::and_: return bit_and(a, b);
    case Op::or_: return bit_or(a, b);
    case Op::xor_: return bit_xor(a, b);
    default: fault("combine", a, b);
  }
}

Value IrBuilder::identity(Op op, DType d, int simd_lanes) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const int bits = is_bool(d) ? 1 : static_cast<int>(size_of(d)) * 8;
  const std::int64_t largest = is_bool(d) ? 1
                               : is_signed_int(d)
                                   ? static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1)
                                   : -1;
  const std::int64_t least =
      is_signed_int(d) ? static_cast<std::int64_t>(~std::uint64_t{0} << (bits - 1)) : 0;
  switch (op) {
    case Op::mul: return integer(d, 1, simd_lanes);
    case Op::max: return is_float(d) ? real(d, -inf, simd_lanes) : integer(d, least, simd_lanes);
    case Op::min: return is_float(d) ? real(d, inf, simd_lanes) : integer(d, largest, simd_lanes);
    case Op::and_: return integer(d, -1, simd_lanes);
    // A float sum starts from +0 like NumPy's, though -0 would be the strictly neutral element.
    default: return integer(d, 0, simd_lanes);
  }
}

Value IrBuilder::reduce_simd_lanes(Op op, Value x) {
  if (x.simd_lanes > 1 && !std::has_single_bit(static_cast<unsigned>(x.simd_lanes))) {
    const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(x.simd_lanes)));
    const Value low = slice_simd_lanes(x, 0, p), high = slice_simd_lanes(x, p, x.simd_lanes - p);
    x = combine(op, low, concat_simd_lanes(high, identity(op, x.dtype, p - high.simd_lanes)));
  }
  while (x.simd_lanes > 1) {
    const int half = x.simd_lanes / 2;
    x = combine(op, slice_simd_lanes(x, 0, half), slice_simd_lanes(x, half, half));
  }
  return x;
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
