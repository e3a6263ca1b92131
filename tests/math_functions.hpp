// The table of inner functions with their references, and the measure of error in units in the last place.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <limits>

#include "src/jit/cpu/math.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt_test {

struct MathFunction {
  const char* name;
  int arity;
  vt::detail::cpu::Value (*emit)(vt::detail::cpu::IrBuilder&, vt::detail::cpu::Value, vt::detail::cpu::Value);
  double (*approximate)(double, double);                                ///< good to f64: enough to judge f32
  void (*exact)(mpfr_ptr out, mpfr_srcptr x, mpfr_srcptr y);           ///< to the precision of `out`
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

inline void rsqrt(mpfr_ptr out, mpfr_srcptr x) {  // of -0 it is -inf, as 1/sqrt(-0); mpfr_rec_sqrt says +inf
  mpfr_sqrt(out, x, MPFR_RNDN);
  mpfr_ui_div(out, 1, out, MPFR_RNDN);
}

inline double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

}  // namespace math_reference

#define VT_TEST_UNARY(fn, mpfr_fn)                                                                                          \
  {#fn, 1, [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) { return vt::detail::cpu::math::fn(b, x); }, \
   [](double x, double) { return std::fn(x); }, [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { mpfr_fn(r, x, MPFR_RNDN); }}
#define VT_TEST_BINARY(fn, mpfr_fn)                                                                                         \
  {#fn, 2, [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value y) { return vt::detail::cpu::math::fn(b, x, y); }, \
   [](double x, double y) { return std::fn(x, y); },                                                                          \
   [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) { mpfr_fn(r, x, y, MPFR_RNDN); }}

inline const MathFunction math_functions[] = {
    VT_TEST_UNARY(exp, mpfr_exp),     VT_TEST_UNARY(exp2, mpfr_exp2),   VT_TEST_UNARY(expm1, mpfr_expm1), VT_TEST_UNARY(log, mpfr_log),
    VT_TEST_UNARY(log2, mpfr_log2),   VT_TEST_UNARY(log1p, mpfr_log1p), VT_TEST_UNARY(sin, mpfr_sin),     VT_TEST_UNARY(cos, mpfr_cos),
    VT_TEST_UNARY(tan, mpfr_tan),     VT_TEST_UNARY(asin, mpfr_asin),   VT_TEST_UNARY(acos, mpfr_acos),   VT_TEST_UNARY(atan, mpfr_atan),
    VT_TEST_UNARY(sinh, mpfr_sinh),   VT_TEST_UNARY(cosh, mpfr_cosh),   VT_TEST_UNARY(tanh, mpfr_tanh),   VT_TEST_UNARY(asinh, mpfr_asinh),
    VT_TEST_UNARY(acosh, mpfr_acosh), VT_TEST_UNARY(atanh, mpfr_atanh), VT_TEST_UNARY(erf, mpfr_erf),     VT_TEST_UNARY(erfc, mpfr_erfc),
    VT_TEST_UNARY(cbrt, mpfr_cbrt),   VT_TEST_BINARY(pow, mpfr_pow),    VT_TEST_BINARY(atan2, mpfr_atan2), VT_TEST_BINARY(fmod, mpfr_fmod),
    {"sigmoid", 1, [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) { return vt::detail::cpu::math::sigmoid(b, x); },
     [](double x, double) { return math_reference::sigmoid(x); }, [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::sigmoid(r, x); }},
    {"rsqrt", 1, [](vt::detail::cpu::IrBuilder& b, vt::detail::cpu::Value x, vt::detail::cpu::Value) { return vt::detail::cpu::math::rsqrt(b, x); },
     [](double x, double) { return 1 / std::sqrt(x); }, [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { math_reference::rsqrt(r, x); }},
};

#undef VT_TEST_UNARY
#undef VT_TEST_BINARY

/// |got - want| in units in the last place of `want` in the format of T; infinite where one is NaN and the other is not.
/// An overflow counts as the next power of two, so that rounding to infinity just above the largest number is no error.
template <class T>
double ulps(T got, long double want) {
  using L = std::numeric_limits<T>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (std::isinf(want)) return static_cast<long double>(got) == want ? 0 : std::numeric_limits<double>::infinity();
  const long double beyond = std::ldexp(1.0L, L::max_exponent);
  const long double g = std::isinf(got) ? std::copysign(beyond, static_cast<long double>(got)) : static_cast<long double>(got);
  if (std::fabs(want) > beyond) want = std::copysign(beyond, want);
  int e = 0;
  std::frexp(want, &e);
  const long double unit = std::ldexp(1.0L, std::max(e, L::min_exponent) - L::digits);
  return static_cast<double>(std::fabs(g - want) / unit);
}

}  // namespace vt_test

#endif
