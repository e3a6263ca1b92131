// The table of inner functions with their references,
// and the measure of error in units in the last place.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <limits>

#include "src/jit/cpu/math/math.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt_test {

/// by_mirrored: for x < 0 the unit is that of the larger of f(x), f(1 - x) and 1: near f's zeros
/// there, relative accuracy would need the zeros' positions to twice double precision.
enum class Measure { relative, by_mirrored };

struct MathFunction {
  const char* name;
  int arity;
  vt::detail::cpu::Value (*emit)(vt::detail::cpu::IrBuilder&, vt::detail::cpu::Value,
                                 vt::detail::cpu::Value);
  /// good to f64: enough to judge f32; may be null
  double (*approximate)(double, double);
  void (*exact)(mpfr_ptr out, mpfr_srcptr x, mpfr_srcptr y);  ///< to the precision of `out`
  Measure f64_measure = Measure::relative;
};

namespace math_reference {

inline void sigmoid(mpfr_ptr out, mpfr_srcptr x) {
  // 1 + exp(-x) needs as many bits as exp(-x) is small.
  mpfr_t e;
  mpfr_init2(e, mpfr_get_prec(out) + 1200);
  mpfr_neg(e, x, MPFR_RNDN);
  mpfr_exp(e, e, MPFR_RNDN);
  mpfr_add_ui(e, e, 1, MPFR_RNDN);
  mpfr_ui_div(out, 1, e, MPFR_RNDN);
  mpfr_clear(e);
}

// of -0 it is -inf, as 1/sqrt(-0); mpfr_rec_sqrt says +inf
inline void rsqrt(mpfr_ptr out, mpfr_srcptr x) {
  mpfr_sqrt(out, x, MPFR_RNDN);
  mpfr_ui_div(out, 1, out, MPFR_RNDN);
}

inline void lgamma(mpfr_ptr out, mpfr_srcptr x) {
  int sign = 0;
  mpfr_lgamma(out, &sign, x, MPFR_RNDN);
}

/// Newton on erf, or on erfc where erf is nearly 1, from a double's start; each step doubles the
/// digits.
inline void erf_inv(mpfr_ptr out, mpfr_srcptr x) {
  const double start = mpfr_get_d(x, MPFR_RNDN);
  if (mpfr_zero_p(x) || !(std::fabs(start) < 1)) {
    if (std::fabs(start) == 1) mpfr_set_inf(out, start > 0 ? 1 : -1);
    else if (mpfr_zero_p(x)) mpfr_set(out, x, MPFR_RNDN);
    else mpfr_set_nan(out);
    return;
  }
  mpfr_t y, e, d, a;
  mpfr_inits2(mpfr_get_prec(out) + 60, y, e, d, a, nullptr);
  mpfr_abs(a, x, MPFR_RNDN);
  mpfr_ui_sub(a, 1, a, MPFR_RNDN);  // 1 - |x|
  const double w = -std::log((1 - std::fabs(start)) * (1 + std::fabs(start)));
  mpfr_set_d(y, w < 1 ? std::fabs(start) * 0.886 : 0.8 * std::sqrt(w), MPFR_RNDN);
  if (w < 1e-6) {
    mpfr_const_pi(y, MPFR_RNDN);
    mpfr_sqrt(y, y, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    mpfr_abs(y, y, MPFR_RNDN);
  }
  for (int step = 0; step < 60; ++step) {
    if (w < 1) {  // erf(y) - |x|
      mpfr_erf(e, y, MPFR_RNDN);
      mpfr_abs(d, x, MPFR_RNDN);
      mpfr_sub(e, e, d, MPFR_RNDN);
    } else {  // (1 - |x|) - erfc(y)
      mpfr_erfc(e, y, MPFR_RNDN);
      mpfr_sub(e, a, e, MPFR_RNDN);
    }
    mpfr_sqr(d, y, MPFR_RNDN);
    mpfr_exp(d, d, MPFR_RNDN);
    mpfr_mul(e, e, d, MPFR_RNDN);
    mpfr_const_pi(d, MPFR_RNDN);
    mpfr_sqrt(d, d, MPFR_RNDN);
    mpfr_div_ui(d, d, 2, MPFR_RNDN);
    mpfr_mul(e, e, d, MPFR_RNDN);
    mpfr_mul(d, e, y, MPFR_RNDN);  // Halley
    mpfr_add_ui(d, d, 1, MPFR_RNDN);
    mpfr_div(e, e, d, MPFR_RNDN);
    mpfr_sub(y, y, e, MPFR_RNDN);
    if (mpfr_zero_p(e) || mpfr_get_exp(e) < mpfr_get_exp(y) - mpfr_get_prec(out)) break;
  }
  mpfr_copysign(out, y, x, MPFR_RNDN);
  mpfr_clears(y, e, d, a, nullptr);
}

inline void digamma(mpfr_ptr out, mpfr_srcptr x) {
  // mpfr_digamma says NaN; the limit from x's side
  if (mpfr_zero_p(x)) mpfr_set_inf(out, mpfr_signbit(x) ? 1 : -1);
  else mpfr_digamma(out, x, MPFR_RNDN);
}

inline double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

}  // namespace math_reference

#define VT_TEST_UNARY(fn, mpfr_fn)                                                       \
  {#fn, 1,                                                                               \
   [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) { \
     return vt::detail::cpu::math::fn(b, x);                                             \
   },                                                                                    \
   [](double x, double) { return std::fn(x); },                                          \
   [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { mpfr_fn(r, x, MPFR_RNDN); }}
#define VT_TEST_BINARY(fn, mpfr_fn)                                                        \
  {#fn, 2,                                                                                 \
   [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value y) { \
     return vt::detail::cpu::math::fn(b, x, y);                                            \
   },                                                                                      \
   [](double x, double y) { return std::fn(x, y); },                                       \
   [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) { mpfr_fn(r, x, y, MPFR_RNDN); }}

inline const MathFunction math_functions[] = {
    VT_TEST_UNARY(exp, mpfr_exp),
    VT_TEST_UNARY(exp2, mpfr_exp2),
    VT_TEST_UNARY(expm1, mpfr_expm1),
    VT_TEST_UNARY(log, mpfr_log),
    VT_TEST_UNARY(log2, mpfr_log2),
    VT_TEST_UNARY(log1p, mpfr_log1p),
    VT_TEST_UNARY(sin, mpfr_sin),
    VT_TEST_UNARY(cos, mpfr_cos),
    VT_TEST_UNARY(tan, mpfr_tan),
    VT_TEST_UNARY(asin, mpfr_asin),
    VT_TEST_UNARY(acos, mpfr_acos),
    VT_TEST_UNARY(atan, mpfr_atan),
    VT_TEST_UNARY(sinh, mpfr_sinh),
    VT_TEST_UNARY(cosh, mpfr_cosh),
    VT_TEST_UNARY(tanh, mpfr_tanh),
    VT_TEST_UNARY(asinh, mpfr_asinh),
    VT_TEST_UNARY(acosh, mpfr_acosh),
    VT_TEST_UNARY(atanh, mpfr_atanh),
    VT_TEST_UNARY(erf, mpfr_erf),
    VT_TEST_UNARY(erfc, mpfr_erfc),
    VT_TEST_UNARY(cbrt, mpfr_cbrt),
    VT_TEST_BINARY(pow, mpfr_pow),
    VT_TEST_BINARY(atan2, mpfr_atan2),
    VT_TEST_BINARY(fmod, mpfr_fmod),
    {"sigmoid", 1,
     [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) {
       return vt::detail::cpu::math::sigmoid(b, x);
     },
     [](double x, double) { return math_reference::sigmoid(x); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::sigmoid(r, x); }},
    {"rsqrt", 1,
     [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) {
       return vt::detail::cpu::math::rsqrt(b, x);
     },
     [](double x, double) { return 1 / std::sqrt(x); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::rsqrt(r, x); }},
    {"lgamma", 1,
     [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) {
       return vt::detail::cpu::math::lgamma(b, x);
     },
     [](double x, double) { return std::lgamma(x); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::lgamma(r, x); },
     Measure::by_mirrored},
    {"digamma", 1,
     [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) {
       return vt::detail::cpu::math::digamma(b, x);
     },
     nullptr, [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::digamma(r, x); },
     Measure::by_mirrored},
    {"erf_inv", 1,
     [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) {
       return vt::detail::cpu::math::erf_inv(b, x);
     },
     nullptr, [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::erf_inv(r, x); }},
};

#undef VT_TEST_UNARY
#undef VT_TEST_BINARY

/// |got - want| in units in the last place of `want` in the format of T; infinite where one is NaN
/// and the other is not. An overflow counts as the next power of two, so that rounding to infinity
/// just above the largest number is no error.
template <class T>
double ulps(T got, long double want) {
  using L = std::numeric_limits<T>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (std::isinf(want))
    return static_cast<long double>(got) == want ? 0 : std::numeric_limits<double>::infinity();
  const long double beyond = std::ldexp(1.0L, L::max_exponent);
  const long double g = std::isinf(got) ? std::copysign(beyond, static_cast<long double>(got))
                                        : static_cast<long double>(got);
  if (std::fabs(want) > beyond) want = std::copysign(beyond, want);
  int e = 0;
  std::frexp(want, &e);
  const long double unit = std::ldexp(1.0L, std::max(e, L::min_exponent) - L::digits);
  return static_cast<double>(std::fabs(g - want) / unit);
}

}  // namespace vt_test

#endif
