// Special functions. Those that SciPy has stand in vt::special under SciPy's names as well;
// formulas and special values are SciPy's.
#pragma once

#include <utility>

#include <vt/ops.hpp>

namespace vt {

// All are element-wise on floats (integers become f32, f16 and bf16 are computed in f32 and
// rounded), broadcast, and have derivatives of any order. f64 results are within 8 units in the
// last place, f32 within 4, where nothing else is said.

// --- gamma ---------------------------------------------------------------------------------------

Tensor gamma(Operand x);  ///< Γ; ±∞ at ±0, NaN at the negative integers
/// The n-th derivative of digamma: (−1)ⁿ⁺¹ n! ζ(n + 1, x); n = 0, 1, …, else NaN.
Tensor polygamma(Operand n, Operand x);
Tensor trigamma(Operand x);  ///< polygamma(1, x)
/// The logarithm of the multivariate gamma function of dimension d ≥ 1.
Tensor multigammaln(Operand a, Param<int> d);
Tensor factorial(Operand n);  ///< Γ(n + 1); 0 for n < 0
Tensor gammasgn(Operand x);   ///< the sign of Γ; NaN at the negative integers
/// Pochhammer's symbol Γ(a + m) / Γ(a), with its limits where a or a + m is a pole of Γ. Within 24
/// units in the last place, whatever the operands' signs are.
Tensor poch(Operand a, Operand m);
/// Γ(n + 1) / (Γ(k + 1) Γ(n − k + 1)), exact where n, k and the result are integers below 2^50; NaN
/// for negative integers n. Within 24 units in the last place for real n and k, of any sign and k >
/// n too, unless n − k + 1 is rounded onto a pole, and as long as 1/B(n − k + 1, k + 1), which is
/// about nᵏ⁺¹ for large n, is below 10³⁰⁸.
Tensor binom(Operand n, Operand k);
/// Hurwitz' ζ(s, q) = Σ (q + k)^−s over k ≥ 0. NaN for s < 1, as in SciPy and JAX, ∞ at its poles;
/// where q < 0 is not an integer, s must be one.
/// Source: Euler and Maclaurin's summation.
Tensor zeta(Operand s, Operand q);
/// Riemann's ζ(s) for all real s: ζ(s, 1) from its pole at 1 on, where it is ∞; below by a
/// polynomial and by reflection. Its zeros at −2, −4, … are exact, as ζ(0) = −½ is; NaN at −∞.
/// Within 24 units in the last place.
/// Source: SciPy `special.zeta` with one argument.
Tensor zeta(Operand s);

/// Γ(a) Γ(b) / Γ(a + b); NaN at negative integers. Within 24 units in the last place; betaln within
/// as many of the larger of the result and the logarithm of 1 + |a| + |b|.
Tensor beta(Operand a, Operand b);
Tensor betaln(Operand a, Operand b);  ///< log |beta(a, b)|
/// The regularised incomplete gamma functions P(a, x) = γ(a, x)/Γ(a) and Q = 1 − P. NaN for a < 0
/// or x < 0. Within 24 units in the last place for every a, in the tails too; so is betainc for a
/// and b from 0.25 to 2000 (smaller ones lose digits near the end beside them: 1.8e-10 at the worst
/// seen).
/// Source: the series, the continued fraction and the small-argument forms of DLMF 8.7, 8.9, 8.19;
/// from a = 2500 on Temme's uniform expansion (1979; DLMF 8.12), which takes no longer for larger
/// a.
Tensor igamma(Operand a, Operand x);
Tensor igammac(Operand a, Operand x);
/// The derivative by `a` of a sample x of the gamma distribution: −(∂P/∂a)/(∂P/∂x). Source:
/// Figurnov, Mohamed, Mnih 2018, Implicit reparameterization gradients.
Tensor random_gamma_grad(Operand a, Operand x);
/// The regularised incomplete beta function I_x(a, b). NaN outside 0 ≤ x ≤ 1, a, b ≥ 0. Near x =
/// a/(a + b) it takes time like √a, and its relative error grows as slowly: 10⁻¹³ at a = b = 10⁸,
/// 10⁻⁷ at 10²⁰.
/// Source: the continued fraction of DLMF 8.17.22.
Tensor betainc(Operand a, Operand b, Operand x);

// --- error functions and the normal distribution -------------------------------------------------

Tensor erfcx(Operand x);     ///< exp(x²)·erfc(x)
Tensor erfc_inv(Operand q);  ///< the inverse of erfc, with all digits of its tail at 0
Tensor ndtr(Operand x);      ///< the distribution function of the normal distribution
Tensor log_ndtr(Operand x);  ///< its logarithm, with all digits of both tails
Tensor ndtri(Operand p);     ///< its inverse
Tensor dawsn(Operand x);     ///< exp(−x²) ∫₀ˣ exp(t²) dt

// --- Bessel functions ----------------------------------------------------------------------------
// J and Y are within 8 units in the last place of the larger of the result and the smaller of 1 and
// √(2/πx).

Tensor bessel_i0(Operand x);  ///< modified, of the first kind
Tensor bessel_i1(Operand x);
Tensor bessel_i0e(Operand x);  ///< exp(−|x|)·I₀(x)
Tensor bessel_i1e(Operand x);
Tensor bessel_j0(Operand x);  ///< of the first kind
Tensor bessel_j1(Operand x);
Tensor bessel_k0(Operand x);  ///< modified, of the second kind: ∞ at 0, NaN below
Tensor bessel_k1(Operand x);
Tensor bessel_k0e(Operand x);  ///< exp(x)·K₀(x)
Tensor bessel_k1e(Operand x);
Tensor bessel_y0(Operand x);  ///< of the second kind: −∞ at 0, NaN below
Tensor bessel_y1(Operand x);

// --- integrals -----------------------------------------------------------------------------------

Tensor expi(Operand x);  ///< Ei(x) = −∫₋ₓ^∞ exp(−t)/t dt
Tensor exp1(Operand x);  ///< E₁(x) = ∫ₓ^∞ exp(−t)/t dt; NaN below 0
/// Eₙ(x) = ∫₁^∞ exp(−xt)/tⁿ dt for whole n ≥ 0, else NaN, as is x < 0. Within 16 units in the last
/// place. No derivative by n.
Tensor expn(Operand n, Operand x);
Tensor fresnel_sin(Operand x);                 ///< S(x) = ∫₀ˣ sin(½πt²) dt
Tensor fresnel_cos(Operand x);                 ///< C(x) = ∫₀ˣ cos(½πt²) dt
std::pair<Tensor, Tensor> fresnel(Operand x);  ///< S and C
/// Si(x) = ∫₀ˣ sin(t)/t dt, and Ci(x) = γ + log|x| + ∫₀ˣ (cos(t) − 1)/t dt, which is −∞ at 0.
/// Ci within 16 units in the last place of the larger of the result and min(1, √(2/πx)).
std::pair<Tensor, Tensor> sici(Operand x);
Tensor spence(Operand x);  ///< −∫₁ˣ log(t)/(t − 1) dt = Li₂(1 − x)

// --- entropy and others --------------------------------------------------------------------------

Tensor xdivy(Operand x, Operand y);  ///< x / y, and 0 where x is 0 (unless y is NaN)
Tensor entr(Operand x);              ///< −x·log(x); 0 at 0, −∞ below
/// x·log(x / y); 0 where x is 0 and y ≥ 0; ∞ where either is below 0, or y alone is 0.
Tensor rel_entr(Operand x, Operand y);
Tensor kl_div(Operand x, Operand y);  ///< rel_entr(x, y) − x + y
Tensor sinc(Operand x);               ///< sin(πx)/(πx); NaN at ±∞, as in NumPy

/// The names of SciPy and jax.scipy.special.
namespace special {

using vt::beta, vt::betainc, vt::betaln, vt::dawsn, vt::digamma, vt::entr, vt::erf, vt::erfc,
    vt::binom, vt::erfcx, vt::exp1, vt::expi, vt::expn, vt::factorial, vt::fresnel, vt::gamma,
    vt::gammasgn, vt::kl_div, vt::log_ndtr, vt::log_softmax, vt::logit, vt::logsumexp,
    vt::multigammaln, vt::ndtr, vt::ndtri, vt::poch, vt::polygamma, vt::rel_entr, vt::sici,
    vt::sinc, vt::softmax, vt::spence, vt::xdivy, vt::xlog1py, vt::xlogy, vt::zeta;
inline Tensor erfinv(Operand x) { return erf_inv(std::move(x)); }
inline Tensor erfcinv(Operand x) { return erfc_inv(std::move(x)); }
inline Tensor expit(Operand x) { return sigmoid(std::move(x)); }
inline Tensor gammainc(Operand a, Operand x) { return igamma(std::move(a), std::move(x)); }
inline Tensor gammaincc(Operand a, Operand x) { return igammac(std::move(a), std::move(x)); }
inline Tensor gammaln(Operand x) { return lgamma(std::move(x)); }
inline Tensor i0(Operand x) { return bessel_i0(std::move(x)); }
inline Tensor i1(Operand x) { return bessel_i1(std::move(x)); }
inline Tensor i0e(Operand x) { return bessel_i0e(std::move(x)); }
inline Tensor i1e(Operand x) { return bessel_i1e(std::move(x)); }
inline Tensor j0(Operand x) { return bessel_j0(std::move(x)); }
inline Tensor j1(Operand x) { return bessel_j1(std::move(x)); }
inline Tensor k0(Operand x) { return bessel_k0(std::move(x)); }
inline Tensor k1(Operand x) { return bessel_k1(std::move(x)); }
inline Tensor k0e(Operand x) { return bessel_k0e(std::move(x)); }
inline Tensor k1e(Operand x) { return bessel_k1e(std::move(x)); }
inline Tensor y0(Operand x) { return bessel_y0(std::move(x)); }
inline Tensor y1(Operand x) { return bessel_y1(std::move(x)); }

}  // namespace special
}  // namespace vt
