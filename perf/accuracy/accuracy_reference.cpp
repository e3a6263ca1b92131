// The references of perf/accuracy; compiled so that GCC calls glibc's vector functions (libmvec)
// for the loops below.
#include "accuracy_reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace perf {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

#define VT_REFERENCE(function, wide_function)                                             \
  {#function,                                                                             \
   [](const float* x, const float*, double* out, std::int64_t n) {                        \
     for (std::int64_t i = 0; i < n; ++i) out[i] = ::function(static_cast<double>(x[i])); \
   },                                                                                     \
   [](long double x, long double) { return ::wide_function(x); }}
#define VT_REFERENCE_2(function, wide_function)                                   \
  {#function,                                                                     \
   [](const float* x, const float* y, double* out, std::int64_t n) {              \
     for (std::int64_t i = 0; i < n; ++i)                                         \
       out[i] = ::function(static_cast<double>(x[i]), static_cast<double>(y[i])); \
   },                                                                             \
   [](long double x, long double y) { return ::wide_function(x, y); }}

void sigmoid(const float* x, const float*, double* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double e = ::exp(-::fabs(static_cast<double>(x[i])));
    out[i] = (x[i] < 0 ? e : 1.0) / (1.0 + e);
  }
}
void rsqrt(const float* x, const float*, double* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = 1.0 / ::sqrt(static_cast<double>(x[i]));
}

const Reference references[] = {
    VT_REFERENCE(exp, expl),
    VT_REFERENCE(exp2, exp2l),
    VT_REFERENCE(expm1, expm1l),
    VT_REFERENCE(log, logl),
    VT_REFERENCE(log2, log2l),
    VT_REFERENCE(log10, log10l),
    VT_REFERENCE(log1p, log1pl),
    VT_REFERENCE(sin, sinl),
    VT_REFERENCE(cos, cosl),
    VT_REFERENCE(tan, tanl),
    VT_REFERENCE(asin, asinl),
    VT_REFERENCE(acos, acosl),
    VT_REFERENCE(atan, atanl),
    VT_REFERENCE(sinh, sinhl),
    VT_REFERENCE(cosh, coshl),
    VT_REFERENCE(tanh, tanhl),
    VT_REFERENCE(asinh, asinhl),
    VT_REFERENCE(acosh, acoshl),
    VT_REFERENCE(atanh, atanhl),
    VT_REFERENCE(erf, erfl),
    VT_REFERENCE(erfc, erfcl),
    VT_REFERENCE(cbrt, cbrtl),
    VT_REFERENCE(sqrt, sqrtl),
    VT_REFERENCE_2(pow, powl),
    VT_REFERENCE_2(atan2, atan2l),
    VT_REFERENCE_2(hypot, hypotl),
    VT_REFERENCE_2(fmod, fmodl),
    {"sigmoid", sigmoid,
     [](long double x, long double) {
       const long double e = ::expl(-::fabsl(x));
       return (x < 0 ? e : 1.0L) / (1.0L + e);
     }},
    {"rsqrt", rsqrt, [](long double x, long double) { return 1.0L / ::sqrtl(x); }},
    {"nextafter",
     [](const float* x, const float* y, double* out, std::int64_t n) {
       for (std::int64_t i = 0; i < n; ++i) out[i] = ::nextafterf(x[i], y[i]);
     },
     nullptr},
};

#undef VT_REFERENCE
#undef VT_REFERENCE_2

/// What the spacing does not say: NaN, infinities and the signs of zeros; −1 where it does.
double special_error(float got, long double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) == std::isnan(got) ? 0 : infinity;
  if (got == 0 && exact == 0) return std::signbit(got) == std::signbit(exact) ? 0 : infinity;
  if (got == 0 && std::signbit(got) != std::signbit(exact)) return infinity;
  if (std::isinf(exact)) return static_cast<long double>(got) == exact ? 0 : infinity;
  return -1;
}

// One float beside the largest finite one is an error of one unit, whichever side is infinite.
constexpr double beyond = 0x1p128;

}  // namespace

Reference reference_of(const char* name) {
  for (const Reference& r : references)
    if (std::strcmp(r.name, name) == 0) return r;
  return {name, nullptr, nullptr};
}

double ulp_error(float got, long double exact) {
  if (const double special = special_error(got, exact); special >= 0) return special;
  const long double g = std::clamp<long double>(got, -beyond, beyond),
                    e = std::clamp<long double>(exact, -beyond, beyond);
  int exponent = 0;
  std::frexp(e, &exponent);
  return static_cast<double>(std::ldexp(std::fabs(g - e), -std::clamp(exponent - 24, -149, 104)));
}

void ulp_errors(const float* got, const double* exact, double* error, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = std::min(std::max(static_cast<double>(got[i]), -beyond), beyond),
                 e = std::min(std::max(exact[i], -beyond), beyond);
    // One over the spacing, by bits: 2^-23 of the power of two below, but within the format's
    // exponents.
    const std::int64_t exponent = (std::bit_cast<std::int64_t>(e) >> 52) & 0x7ff;
    const std::int64_t spacing =
        std::min<std::int64_t>(std::max<std::int64_t>(exponent, 1023 - 126), 1023 + 127) - 23;
    error[i] = std::fabs(g - e) * std::bit_cast<double>((2046 - spacing) << 52);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    if (got[i] != 0 && std::fabs(got[i]) < infinity && std::fabs(exact[i]) < infinity) continue;
    if (const double special = special_error(got[i], exact[i]); special >= 0) error[i] = special;
  }
}

}  // namespace perf
