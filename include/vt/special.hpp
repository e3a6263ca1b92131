// Special functions: in vt::special all of them, under SciPy's names; in vt those of NumPy and
// jax.lax. Formulas and special values are SciPy's.
#pragma once

#include <utility>

#include <vt/ops.hpp>

// All are element-wise on floats (integers become f32, f16 and bf16 are computed in f32 and
// rounded), broadcast, and have derivatives of any order. f64 results are within 8 units in the
// last place, f32 within 4, where nothing else is said.

namespace vt {

/// The n-th derivative of digamma: (−1)ⁿ⁺¹ n! ζ(n + 1, x); n = 0, 1, …, else NaN.
[[nodiscard]] Tensor polygamma(Operand n, Operand x);
/// Hurwitz' ζ(s, q) = Σ (q + k)^−s over k ≥ 0. NaN for s < 1, as in SciPy and JAX, ∞ at its poles;
/// where q < 0 is not an integer, s must be one.
/// Source: Euler and Maclaurin's summation.
[[nodiscard]] Tensor zeta(Operand s, Operand q);
/// The regularised incomplete gamma functions P(a, x) = γ(a, x)/Γ(a) and Q = 1 − P. NaN for a < 0
/// or x < 0. Within 24 units in the last place for every a, in the tails too; so is betainc for a
/// and b from 0.25 to 2000 (smaller ones lose digits near the end beside them: 1.8e-10 at the worst
/// seen).
/// Source: the series, the continued fraction and the small-argument forms of DLMF 8.7, 8.9, 8.19;
/// from a = 2500 on Temme's uniform expansion (1979; DLMF 8.12), which takes no longer for larger
/// a.
[[nodiscard]] Tensor igamma(Operand a, Operand x);
[[nodiscard]] Tensor igammac(Operand a, Operand x);
/// The regularised incomplete beta function I_x(a, b). NaN outside 0 ≤ x ≤ 1, a, b ≥ 0. Near x =
/// a/(a + b) it takes time like √a, and its relative error grows as slowly: 10⁻¹³ at a = b = 10⁸,
/// 10⁻⁷ at 10²⁰.
/// Source: the continued fraction of DLMF 8.17.22.
[[nodiscard]] Tensor betainc(Operand a, Operand b, Operand x);
/// The derivative by `a` of a sample x of the gamma distribution: −(∂P/∂a)/(∂P/∂x). Source:
/// Figurnov, Mohamed, Mnih 2018, Implicit reparameterization gradients.
[[nodiscard]] Tensor random_gamma_grad(Operand a, Operand x);
[[nodiscard]] Tensor bessel_i0e(Operand x);  ///< exp(−|x|)·I₀(x)
[[nodiscard]] Tensor bessel_i1e(Operand x);
[[nodiscard]] Tensor sinc(Operand x);  ///< sin(πx)/(πx); NaN at ±∞, as in NumPy

namespace special {

// --- those that vt has too -----------------------------------------------------------------------

using vt::betainc, vt::digamma, vt::erf, vt::erfc, vt::log_softmax, vt::logsumexp, vt::polygamma,
    vt::sinc, vt::softmax, vt::zeta;
[[nodiscard]] inline Tensor erfinv(Operand x) { return erf_inv(std::move(x)); }
[[nodiscard]] inline Tensor expit(Operand x) { return sigmoid(std::move(x)); }
[[nodiscard]] inline Tensor gammainc(Operand a, Operand x) {
  return igamma(std::move(a), std::move(x));
}
[[nodiscard]] inline Tensor gammaincc(Operand a, Operand x) {
  return igammac(std::move(a), std::move(x));
}
[[nodiscard]] inline Tensor gammaln(Operand x) { return lgamma(std::move(x)); }
[[nodiscard]] inline Tensor i0e(Operand x) { return bessel_i0e(std::move(x)); }
[[nodiscard]] inline Tensor i1e(Operand x) { return bessel_i1e(std::move(x)); }

// --- gamma ---------------------------------------------------------------------------------------

[[nodiscard]] Tensor gamma(Operand x);  ///< Γ; ±∞ at ±0, NaN at the negative integers
/// The logarithm of the multivariate gamma function of dimension d ≥ 1.
[[nodiscard]] Tensor multigammaln(Operand a, Param<int> d);
[[nodiscard]] Tensor factorial(Operand n);  ///< Γ(n + 1); 0 for n < 0
[[nodiscard]] Tensor gammasgn(Operand x);   ///< the sign of Γ; NaN at the negative integers
/// Pochhammer's symbol Γ(a + m) / Γ(a), with its limits where a or a + m is a pole of Γ. Within 24
/// units in the last place, whatever the operands' signs are.
[[nodiscard]] Tensor poch(Operand a, Operand m);
/// Γ(n + 1) / (Γ(k + 1) Γ(n − k + 1)), exact where n, k and the result are integers below 2^50; NaN
/// for negative integers n. Within 24 units in the last place for real n and k, of any sign and k >
/// n too, unless n − k + 1 is rounded onto a pole, and as long as 1/B(n − k + 1, k + 1), which is
/// about nᵏ⁺¹ for large n, is below 10³⁰⁸.
[[nodiscard]] Tensor binom(Operand n, Operand k);
/// Riemann's ζ(s) for all real s: ζ(s, 1) from its pole at 1 on, where it is ∞; below by a
/// polynomial and by reflection. Its zeros at −2, −4, … are exact, as ζ(0) = −½ is; NaN at −∞.
/// Within 24 units in the last place.
/// Source: SciPy `special.zeta` with one argument.
[[nodiscard]] Tensor zeta(Operand s);

/// Γ(a) Γ(b) / Γ(a + b); NaN at negative integers. Within 24 units in the last place; betaln within
/// as many of the larger of the result and the logarithm of 1 + |a| + |b|.
[[nodiscard]] Tensor beta(Operand a, Operand b);
[[nodiscard]] Tensor betaln(Operand a, Operand b);  ///< log |beta(a, b)|

// --- error functions and the normal distribution -------------------------------------------------

[[nodiscard]] Tensor erfcx(Operand x);    ///< exp(x²)·erfc(x)
[[nodiscard]] Tensor erfcinv(Operand q);  ///< the inverse of erfc, with all digits of its tail at 0
[[nodiscard]] Tensor ndtr(Operand x);     ///< the distribution function of the normal distribution
[[nodiscard]] Tensor log_ndtr(Operand x);  ///< its logarithm, with all digits of both tails
[[nodiscard]] Tensor ndtri(Operand p);     ///< its inverse
[[nodiscard]] Tensor logit(Operand x);     ///< log(x / (1 − x)), the inverse of expit
[[nodiscard]] Tensor dawsn(Operand x);     ///< exp(−x²) ∫₀ˣ exp(t²) dt

// --- Bessel functions ----------------------------------------------------------------------------
// J and Y are within 8 units in the last place of the larger of the result and the smaller of 1 and
// √(2/πx).

[[nodiscard]] Tensor i0(Operand x);  ///< modified, of the first kind
[[nodiscard]] Tensor i1(Operand x);
[[nodiscard]] Tensor j0(Operand x);  ///< of the first kind
[[nodiscard]] Tensor j1(Operand x);
[[nodiscard]] Tensor k0(Operand x);  ///< modified, of the second kind: ∞ at 0, NaN below
[[nodiscard]] Tensor k1(Operand x);
[[nodiscard]] Tensor k0e(Operand x);  ///< exp(x)·K₀(x)
[[nodiscard]] Tensor k1e(Operand x);
[[nodiscard]] Tensor y0(Operand x);  ///< of the second kind: −∞ at 0, NaN below
[[nodiscard]] Tensor y1(Operand x);

// --- integrals -----------------------------------------------------------------------------------

[[nodiscard]] Tensor expi(Operand x);  ///< Ei(x) = −∫₋ₓ^∞ exp(−t)/t dt
[[nodiscard]] Tensor exp1(Operand x);  ///< E₁(x) = ∫ₓ^∞ exp(−t)/t dt; NaN below 0
/// Eₙ(x) = ∫₁^∞ exp(−xt)/tⁿ dt for whole n ≥ 0, else NaN, as is x < 0. Within 16 units in the last
/// place. No derivative by n.
[[nodiscard]] Tensor expn(Operand n, Operand x);
/// S(x) = ∫₀ˣ sin(½πt²) dt and C(x) = ∫₀ˣ cos(½πt²) dt.
[[nodiscard]] std::pair<Tensor, Tensor> fresnel(Operand x);
/// Si(x) = ∫₀ˣ sin(t)/t dt, and Ci(x) = γ + log|x| + ∫₀ˣ (cos(t) − 1)/t dt, which is −∞ at 0.
/// Ci within 16 units in the last place of the larger of the result and min(1, √(2/πx)).
[[nodiscard]] std::pair<Tensor, Tensor> sici(Operand x);
[[nodiscard]] Tensor spence(Operand x);  ///< −∫₁ˣ log(t)/(t − 1) dt = Li₂(1 − x)

// --- entropy and others --------------------------------------------------------------------------

[[nodiscard]] Tensor entr(Operand x);  ///< −x·log(x); 0 at 0, −∞ below
/// x·log(x / y); 0 where x is 0 and y ≥ 0; ∞ where either is below 0, or y alone is 0.
[[nodiscard]] Tensor rel_entr(Operand x, Operand y);
[[nodiscard]] Tensor kl_div(Operand x, Operand y);  ///< rel_entr(x, y) − x + y
[[nodiscard]] Tensor xlogy(Operand x, Operand y);   ///< x·log(y), 0 where x is 0 (unless y is NaN)
/// X·log(1 + y), 0 where x is 0 (unless y is NaN)
[[nodiscard]] Tensor xlog1py(Operand x, Operand y);

}  // namespace special
}  // namespace vt
