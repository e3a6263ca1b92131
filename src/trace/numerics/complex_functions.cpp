// Complex functions that <complex> lacks, and arithmetic without Annex G's repairs of infinities.
#include "complex_functions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace vt::detail::complex_functions {

C add(C a, C b) { return {a.real() + b.real(), a.imag() + b.imag()}; }
C sub(C a, C b) { return {a.real() - b.real(), a.imag() - b.imag()}; }
C mul(C a, C b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

C product(C a, C b) { return a == C(1) ? b : mul(a, b); }

namespace complex_scales {

/// A power of two that brings numbers as large as the larger part to where squares, sums and ratios
/// of them are normal numbers.
double scale_of(C z) {
  constexpr double edge = 0x1p500;
  const double size = std::fmax(std::fabs(z.real()), std::fabs(z.imag()));
  return size > edge ? 1 / edge : size < 1 / edge ? edge : 1;
}
C scaled(C z, double factor) { return {z.real() * factor, z.imag() * factor}; }

}  // namespace complex_scales

C div(C a, C b) {
  using namespace complex_scales;
  if (b == C(0)) return {a.real() / 0.0, a.imag() / 0.0};
  const double above = scale_of(a), below = scale_of(b), back = below * (1 / above);
  a = scaled(a, above);
  b = scaled(b, below);
  const bool real_is_larger = std::fabs(b.real()) >= std::fabs(b.imag());
  const double large = real_is_larger ? b.real() : b.imag(),
               small = real_is_larger ? b.imag() : b.real();
  const double x = real_is_larger ? a.real() : a.imag(), y = real_is_larger ? a.imag() : -a.real();
  // a / b = (x + i·y) / (large + i·small), where parts have changed places by a factor of −i above
  // and below; the imaginary part of the divisor has then changed its sign as well.
  const double ratio = small / large, scale = large + small * ratio;
  if (real_is_larger) return {(x + y * ratio) / scale * back, (y - x * ratio) / scale * back};
  return {(x - y * ratio) / scale * back, (y + x * ratio) / scale * back};
}

C pow(C a, C b) {
  if (a == C(0)) {
    if (b == C(0)) return 1;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return b.real() > 0 ? C(0) : C(nan, nan);
  }
  return std::exp(mul(b, std::log(a)));
}

C integer_pow(C a, int n) {
  // The inverse comes first: where it fits, its power is 0 no sooner than the result is.
  if (n < 0) a = div(1, a);
  C power = 1;
  bool first = true;
  for (unsigned k = n < 0 ? 0u - static_cast<unsigned>(n) : static_cast<unsigned>(n); k != 0;
       k >>= 1) {
    if (k & 1u) {
      power = first ? a : mul(power, a);
      first = false;
    }
    if (k > 1) a = mul(a, a);
  }
  return power;
}

C sign(C z) {
  z = complex_scales::scaled(z, complex_scales::scale_of(z));
  const double magnitude = std::hypot(z.real(), z.imag());
  return magnitude == 0 ? z : C(z.real() / magnitude, z.imag() / magnitude);
}

C exp2(C z) {
  const double angle = z.imag() * std::numbers::ln2;
  if (!__builtin_isfinite(z.real())) return std::exp(C(z.real(), angle));
  const double whole = std::nearbyint(std::fmin(std::fmax(z.real(), -4000), 4000));
  const C e = std::exp(C((z.real() - whole) * std::numbers::ln2, angle));
  return {std::ldexp(e.real(), static_cast<int>(whole)),
          std::ldexp(e.imag(), static_cast<int>(whole))};
}
C log2(C z) {
  const C l = std::log(z);
  return {l.real() / std::numbers::ln2, l.imag() / std::numbers::ln2};
}

C log1p(C z) {
  // |1 + z|² − 1, whose terms may cancel.
  const long double x = z.real(), y = z.imag(), excess = x * (2 + x) + y * y;
  if (!(std::fabs(excess) < 0.5L)) return std::log(C(1 + z.real(), z.imag()));
  return {static_cast<double>(std::log1p(excess) / 2), std::atan2(z.imag(), 1 + z.real())};
}

C expm1(C z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const C e = std::exp(z);
  if (!(std::fabs(z.real()) < 40) || !__builtin_isfinite(z.imag())) return {e.real() - 1, e.imag()};
  const double half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, e.imag()};
}

C rsqrt(C z) { return div(1, std::sqrt(z)); }

C sigmoid(C z) {
  const C e = std::exp(z.real() < 0 ? z : -z), whole(1 + e.real(), e.imag());
  return z.real() < 0 ? div(e, whole) : div(1, whole);
}

}  // namespace vt::detail::complex_functions
