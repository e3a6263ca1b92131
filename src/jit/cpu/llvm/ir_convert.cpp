// The builder's conversions: between all pairs of dtypes, bit casts, and the 16-bit float formats.
#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>

#include <vt/error.hpp>

namespace vt::detail::cpu {

namespace ir_conversions {
bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
}  // namespace ir_conversions

Value IrBuilder::convert(Value a, DType to) {
  using ir_conversions::is_half;
  const DType from = a.dtype;
  const int simd_lanes = a.simd_lanes;
  if (a.pointer) fault("convert", a, {});
  if (from == to) return a;
  if (to == DType::bool_) return compare(Compare::ne, a, zero_like(a));
  if (from == DType::bool_)
    return select(a, integer(to, 1, simd_lanes), integer(to, 0, simd_lanes));
  if (!is_float(from) && !is_float(to)) {
    LLVMTypeRef type = register_type(to, simd_lanes);
    const std::size_t before = size_of(from), after = size_of(to);
    if (after == before) return wrap(a.ref, to, simd_lanes);
    if (after < before) return wrap(llvm_.BuildTrunc(builder_, a.ref, type, ""), to, simd_lanes);
    return wrap(is_signed_int(from) ? llvm_.BuildSExt(builder_, a.ref, type, "")
                                    : llvm_.BuildZExt(builder_, a.ref, type, ""),
                to, simd_lanes);
  }
  // From a wide number to a 16-bit float there must be one rounding, not one to f32 and another:
  // the first goes to odd.
  if (is_half(to) && (from == DType::f64 || (!is_float(from) && size_of(from) >= 4)))
    return finish(wrap(round_to_odd(from == DType::f64 ? a : double_to_odd(a)).ref, to, simd_lanes),
                  to);
  if (!is_float(from)) {
    LLVMTypeRef type = register_type(to, simd_lanes);  // to 16-bit floats: exact in f32 first
    LLVMValueRef made = is_signed_int(from) ? llvm_.BuildSIToFP(builder_, a.ref, type, "")
                                            : llvm_.BuildUIToFP(builder_, a.ref, type, "");
    return finish(wrap(made, to, simd_lanes), to);
  }
  if (!is_float(to)) return float_to_int(a, to);
  const bool narrow_from = from != DType::f64, narrow_to = to != DType::f64;
  if (narrow_from && narrow_to) return finish(wrap(a.ref, to, simd_lanes), to);
  if (narrow_from)
    return wrap(llvm_.BuildFPExt(builder_, a.ref, register_type(to, simd_lanes), ""), to,
                simd_lanes);
  return finish(
      wrap(llvm_.BuildFPTrunc(builder_, a.ref, register_type(to, simd_lanes), ""), to, simd_lanes),
      to);
}

// f64 → f32, where a number between two floats becomes the one whose last bit is 1: rounding that
// to fewer bits gives what rounding the f64 at once would have given.
Value IrBuilder::round_to_odd(Value a) {
  const int simd_lanes = a.simd_lanes;
  const Value nearest = convert(a, DType::f32), back = convert(nearest, DType::f64);
  const Value bits = bitcast(nearest, DType::u32), one = integer(DType::u32, 1, simd_lanes);
  const Value moved =
      select(compare(Compare::gt, abs(back), abs(a)), sub(bits, one), add(bits, one));
  const Value even = compare(Compare::eq, bit_and(bits, one), integer(DType::u32, 0, simd_lanes));
  const Value between = bit_and(bit_not(is_nan(a)), compare(Compare::ne, back, a));
  return bitcast(select(bit_and(even, between), moved, bits), DType::f32);
}

// An integer as a double that lost no bit which a later rounding to 16 bits must see: from 2^53 on
// the 11 bits that do not fit are replaced by one that says whether any was set.
Value IrBuilder::double_to_odd(Value a) {
  if (size_of(a.dtype) < 8) return convert(a, DType::f64);
  const int simd_lanes = a.simd_lanes;
  const auto c = [&](std::int64_t x) { return integer(DType::u64, x, simd_lanes); };
  const bool has_sign = is_signed_int(a.dtype);
  const Value negative =
      has_sign ? compare(Compare::lt, a, zero_like(a)) : boolean(false, simd_lanes);
  const Value m = convert(has_sign ? abs(a) : a, DType::u64);
  const Value sticky = select(compare(Compare::ne, bit_and(m, c(0x7ff)), c(0)), c(0x800), c(0));
  const Value cut = bit_or(bit_and(m, c(~std::int64_t{0x7ff})), sticky);
  const Value magnitude =
      convert(select(compare(Compare::ge, m, c(std::int64_t{1} << 53)), cut, m), DType::f64);
  return select(negative, neg(magnitude), magnitude);
}

// LLVM's saturating conversions fall apart into scalars on x86; clamping first keeps the plain ones
// defined and vectors whole.
Value IrBuilder::float_to_int(Value a, DType to) {
  const DType f = a.dtype == DType::f64 ? DType::f64 : DType::f32;
  const int simd_lanes = a.simd_lanes, bits = static_cast<int>(size_of(to)) * 8;
  const bool has_sign = is_signed_int(to);
  const Value x = wrap(a.ref, f, simd_lanes);
  const double least = has_sign ? -std::ldexp(1.0, bits - 1) : 0.0,
               beyond = std::ldexp(1.0, has_sign ? bits - 1 : bits);
  // NaN becomes `low`
  const Value low = real(f, least, simd_lanes),
              above = select(compare(Compare::gt, x, low), x, low);
  const auto converted = [&](Value v, DType d) {
    LLVMTypeRef type = register_type(d, simd_lanes);
    return wrap(is_signed_int(d) ? llvm_.BuildFPToSI(builder_, v.ref, type, "")
                                 : llvm_.BuildFPToUI(builder_, v.ref, type, ""),
                d, simd_lanes);
  };
  Value r;
  if (bits < 32) {  // both limits are exact in f32, and the way leads over i32
    const Value high = real(f, beyond - 1, simd_lanes);
    r = convert(converted(select(compare(Compare::lt, above, high), above, high), DType::i32), to);
  } else {
    const Value over = compare(Compare::ge, above, real(f, beyond, simd_lanes));
    const Value inside = converted(select(over, real(f, 0, simd_lanes), above), to);
    r = select(over,
               bit_xor(integer(to, -1, simd_lanes),
                       has_sign ? integer(to, std::int64_t{-1} << (bits - 1), simd_lanes)
                                : integer(to, 0, simd_lanes)),
               inside);
  }
  return has_sign ? select(is_nan(x), integer(to, 0, simd_lanes), r) : r;
}

Value IrBuilder::bitcast(Value a, DType to) {
  using ir_conversions::is_half;
  if (a.pointer || size_of(a.dtype) != size_of(to)) fault("bitcast", a, {.dtype = to});
  if (a.dtype == to) return a;
  if (a.dtype == DType::bool_ || to == DType::bool_) return convert(a, to);
  if (is_half(a.dtype)) a = half_bits(a);
  if (is_half(to)) return from_half_bits(wrap(a.ref, DType::u16, a.simd_lanes), to);
  if (is_float(a.dtype) == is_float(to)) return wrap(a.ref, to, a.simd_lanes);
  return wrap(llvm_.BuildBitCast(builder_, a.ref, register_type(to, a.simd_lanes), ""), to,
              a.simd_lanes);
}

// LLVM would call a function for f32 ↔ f16 where there is no instruction, and spends 176
// instructions on f32 → bf16; AVX512-BF16's own conversion flushes subnormals. So both are spelled
// out on integers, but for f16 with F16C.

Value IrBuilder::from_half_bits(Value bits, DType d) {
  const int simd_lanes = bits.simd_lanes;
  if (d == DType::f16 && target_.f16c) {
    LLVMTypeRef half = vector_of(llvm_.HalfTypeInContext(context_), simd_lanes);
    LLVMTypeRef single = register_type(DType::f32, simd_lanes);
    LLVMValueRef wide =
        llvm_.BuildFPExt(builder_, llvm_.BuildBitCast(builder_, bits.ref, half, ""), single, "");
    // Unfenced, a comparison with a constant would become one of f16, for which there is no
    // instruction: a call for each lane.
    Value result = wrap(intrinsic("llvm.arithmetic.fence", {single}, {wide}), d, simd_lanes);
    result.half = bits.ref;
    result.half_of = result.ref;
    return result;
  }
  const auto c = [&](std::int64_t x) { return integer(DType::u32, x, simd_lanes); };
  const Value h = convert(bits, DType::u32);
  if (d == DType::bf16) return wrap(bitcast(shift_left(h, c(16)), DType::f32).ref, d, simd_lanes);
  const Value sign = shift_left(bit_and(h, c(0x8000)), c(16)), magnitude = bit_and(h, c(0x7fff));
  const Value moved = shift_left(magnitude, c(13));
  // As an f32 the moved bits are the number times 2^-112, subnormals included; infinities and NaNs
  // need the full exponent.
  const Value scaled =
      bitcast(mul(bitcast(moved, DType::f32), real(DType::f32, 0x1p112, simd_lanes)), DType::u32);
  const Value special = compare(Compare::ge, magnitude, c(0x7c00));
  Value result =
      bitcast(bit_or(select(special, bit_or(moved, c(0x7f800000)), scaled), sign), DType::f32);
  result.dtype = d;
  result.half = bits.ref;
  result.half_of = result.ref;
  return result;
}

Value IrBuilder::half_bits(Value x) {
  const int simd_lanes = x.simd_lanes;
  const auto c = [&](std::int64_t v) { return integer(DType::u32, v, simd_lanes); };
  const Value f = wrap(x.ref, DType::f32, simd_lanes);
  if (x.dtype == DType::bf16)  // already rounded: the lower half is 0
    return convert(shift_right_logical(bitcast(f, DType::u32), c(16)), DType::u16);
  // rounded once, when it was made
  if (x.half && x.half_of == x.ref) return wrap(x.half, DType::u16, simd_lanes);
  if (target_.f16c) {
    LLVMTypeRef half = vector_of(llvm_.HalfTypeInContext(context_), simd_lanes);
    LLVMValueRef narrow = llvm_.BuildFPTrunc(builder_, f.ref, half, "");
    return wrap(llvm_.BuildBitCast(builder_, narrow, int_type(16, simd_lanes), ""), DType::u16,
                simd_lanes);
  }
  const Value bits = bitcast(f, DType::u32), magnitude = bit_and(bits, c(0x7fffffff));
  const Value sign = shift_right_logical(bit_and(bits, c(0x80000000)), c(16));
  // Normal: round the 13 lost bits to even and move the exponent's bias from 127 to 15.
  const Value odd = bit_and(shift_right_logical(magnitude, c(13)), c(1));
  const Value normal =
      shift_right_logical(sub(add(magnitude, add(odd, c(0xfff))), c(0x38000000)), c(13));
  // Subnormal: adding 0.5, whose last place is f16's least subnormal, lets the adder round.
  const Value half = real(DType::f32, 0.5, simd_lanes);
  const Value tiny = sub(bitcast(add(bitcast(magnitude, DType::f32), half), DType::u32),
                         bitcast(half, DType::u32));
  const Value nan = bit_or(c(0x7e00), bit_and(shift_right_logical(magnitude, c(13)), c(0x3ff)));
  Value result = select(compare(Compare::lt, magnitude, c(0x38800000)), tiny, normal);
  result = select(compare(Compare::ge, magnitude, c(0x477ff000)), c(0x7c00), result);
  result = select(compare(Compare::gt, magnitude, c(0x7f800000)), nan, result);
  return convert(bit_or(result, sign), DType::u16);
}

Value IrBuilder::finish(Value x, DType d) {
  const int simd_lanes = x.simd_lanes;
  if (d == DType::f16) return from_half_bits(half_bits(wrap(x.ref, d, simd_lanes)), d);
  if (d == DType::bf16) {
    const auto c = [&](std::int64_t v) { return integer(DType::u32, v, simd_lanes); };
    const Value f = wrap(x.ref, DType::f32, simd_lanes), bits = bitcast(f, DType::u32);
    const Value odd = bit_and(shift_right_logical(bits, c(16)), c(1));
    const Value rounded = add(bits, add(odd, c(0x7fff)));
    const Value kept =
        bit_and(select(is_nan(f), bit_or(bits, c(0x400000)), rounded), c(0xffff0000));
    return wrap(bitcast(kept, DType::f32).ref, d, simd_lanes);
  }
  x.dtype = d;
  return x;
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
