// Owns the list of inner functions: vector code for exp, log, sin, …, emitted inline, for any
// number of SIMD lanes.
//
// Each takes and returns a Value of a float dtype. f32 results are within 2 ulp of the true value,
// f64 within 4 (measured by tests/cpu/cpu_math_test.cpp and perf/accuracy); f16 and bf16 are
// computed in f32 and rounded. Zeros, infinities, NaN and subnormals as C and IEEE say. SIMD lanes
// do not influence each other: a value gives the same bits in any of them beside any neighbours.
#pragma once

#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::math {

// math/exp.cpp
Value exp(IrBuilder& b, Value x);
Value exp2(IrBuilder& b, Value x);
Value expm1(IrBuilder& b, Value x);
Value sinh(IrBuilder& b, Value x);
Value cosh(IrBuilder& b, Value x);
Value tanh(IrBuilder& b, Value x);
Value sigmoid(IrBuilder& b, Value x);  ///< 1 / (1 + exp(-x))

// math/log.cpp
Value log(IrBuilder& b, Value x);
Value log2(IrBuilder& b, Value x);
Value log1p(IrBuilder& b, Value x);
Value asinh(IrBuilder& b, Value x);
Value acosh(IrBuilder& b, Value x);
Value atanh(IrBuilder& b, Value x);
Value pow(IrBuilder& b, Value x, Value y);
/// xⁿ, or its inverse, to nearly all bits whatever n ≥ 1 is; of f64 only.
Value long_power(IrBuilder& b, Value x, unsigned n, bool inverted);

// math/trig.cpp
Value sin(IrBuilder& b, Value x);
Value cos(IrBuilder& b, Value x);
Value tan(IrBuilder& b, Value x);
Value asin(IrBuilder& b, Value x);
Value acos(IrBuilder& b, Value x);
Value atan(IrBuilder& b, Value x);
Value atan2(IrBuilder& b, Value y, Value x);

// math/special.cpp
Value erf(IrBuilder& b, Value x);
Value erfc(IrBuilder& b, Value x);
Value cbrt(IrBuilder& b, Value x);
Value rsqrt(IrBuilder& b, Value x);          ///< 1 / sqrt(x)
Value fmod(IrBuilder& b, Value x, Value y);  ///< C's fmod, exact; of integers IrBuilder::rem
Value nextafter(IrBuilder& b, Value x, Value y);

// math/gamma.cpp. For negative x the f64 error of the first two is within 4 ulp of the larger of
// f(x), f(1 - x) and 1: near the zeros there, relative accuracy would need the zeros' positions to
// twice the precision.
Value lgamma(IrBuilder& b, Value x);   ///< log |Γ(x)|
Value digamma(IrBuilder& b, Value x);  ///< Γ'(x) / Γ(x); NaN at the negative integers, ∓inf at ±0
Value erf_inv(IrBuilder& b, Value x);  ///< ±inf at ±1, NaN beyond

// math/families.cpp: those of src/trace/numerics/special_math.hpp, within 8 ulp in f64
Value gamma(IrBuilder& b, Value x);
Value erfcx(IrBuilder& b, Value x);
Value erfc_inv(IrBuilder& b, Value x);
Value ndtr(IrBuilder& b, Value x);
Value log_ndtr(IrBuilder& b, Value x);
Value dawsn(IrBuilder& b, Value x);
Value expi(IrBuilder& b, Value x);
Value spence(IrBuilder& b, Value x);
Value fresnel_sin(IrBuilder& b, Value x);
Value fresnel_cos(IrBuilder& b, Value x);
Value bessel_i0e(IrBuilder& b, Value x);
Value bessel_i1e(IrBuilder& b, Value x);
Value bessel_k0e(IrBuilder& b, Value x);
Value bessel_k1e(IrBuilder& b, Value x);
Value bessel_j0(IrBuilder& b, Value x);
Value bessel_j1(IrBuilder& b, Value x);
Value bessel_y0(IrBuilder& b, Value x);
Value bessel_y1(IrBuilder& b, Value x);
Value zeta(IrBuilder& b, Value s, Value q);

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
