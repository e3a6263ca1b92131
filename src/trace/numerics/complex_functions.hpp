// Functions of one complex double that <complex> lacks, or has in another sense: plain products,
// scaled quotients, sign, sigmoid …
#pragma once

#include <complex>

namespace vt::detail::complex_functions {

using C = std::complex<double>;

C add(C a, C b);
C sub(C a, C b);
/// (ac − bd, ad + bc), as NumPy and JAX: infinities with NaN beside them are not repaired.
C mul(C a, C b);
/// A product so far and its next factor: b if a is 1, which as 1 + 0i would make NaN of a finite
/// part beside an infinity.
C product(C a, C b);
/// Smith's quotient of operands that are scaled, so that nothing overflows or vanishes on the way.
/// Each part of `a` over a zero divisor is divided by zero by itself.
C div(C a, C b);
/// exp(b · log a); 0⁰ = 1, and 0 to a power with a positive real part is 0, to any other NaN.
C pow(C a, C b);
C integer_pow(C a, int n);
/// z / |z|; 0 of 0.
C sign(C z);
/// The angle, im · ln 2, is rounded.
C exp2(C z);
C log2(C z);
/// Accurate for small z, and where |1 + z| is near 1.
C log1p(C z);
C expm1(C z);
C rsqrt(C z);
C sigmoid(C z);

}  // namespace vt::detail::complex_functions
