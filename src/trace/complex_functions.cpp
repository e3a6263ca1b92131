// Complex functions that <complex> lacks, and arithmetic without Annex G's repairs of infinities.
#include "complex_functions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace vt::detail::complex_functions {

C add(C a, C b) { return {a.real() + b.real(), a.imag() + b.imag()}; }
C sub(C a, C b) { return {a.real() - b.real(), a.imag() - b.imag()}; }
C mul(C a, C b) { return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()}; }

C div(C a, C b) {
  const bool real_is_larger = std::fabs(b.real()) >= std::fabs(b.imag());
  const double large = real_is_larger ? b.real() : b.imag(), small = real_is_larger ? b.imag() : b.real();
  const double x = real_is_larger ? a.real() : a.imag(), y = real_is_larger ? a.imag() : -a.real();
  if (large == 0) return {a.real() / std::fabs(large), a.imag() / std::fabs(large)};
  // a / b = (x + i·y) / (large + i·small), where parts have changed places by a factor of −i above and below; the imaginary part of
  // the divisor has then changed its sign as well.
  const double ratio = small / large, scale = large + small * ratio;
  if (real_is_larger) return {(x + y * ratio) / scale, (y - x * ratio) / scale};
  return {(x - y * ratio) / scale, (y + x * ratio) / scale};
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
  for (unsigned k = n < 0 ? 0u - static_cast<unsigned>(n) : static_cast<unsigned>(n); k != 0; k >>= 1) {
    if (k & 1u) {
      power = first ? a : mul(power, a);
      first = false;
    }
    if (k > 1) a = mul(a, a);
  }
  return power;
}

C sign(C z) {
  const double magnitude = std::hypot(z.real(), z.imag());
  return magnitude == 0 ? C(0) : C(z.real() / magnitude, z.imag() / magnitude);
}

C exp2(C z) { return std::exp(C(z.real() * std::numbers::ln2, z.imag() * std::numbers::ln2)); }
C log2(C z) {
  const C l = std::log(z);
  return {l.real() / std::numbers::ln2, l.imag() / std::numbers::ln2};
}

C log1p(C z) {
  constexpr double far = 0x1p30;
  const double x = z.real(), y = z.imag();
  if (!(std::fabs(x) < far && std::fabs(y) < far)) return std::log(C(1 + x, y));
  // |1 + z|² − 1, whose terms may cancel.
  const long double lx = x, ly = y, excess = lx * (2 + lx) + ly * ly;
  return {static_cast<double>(std::log1p(excess) / 2), std::atan2(y, 1 + x)};
}

C expm1(C z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const double half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}

C rsqrt(C z) { return div(1, std::sqrt(z)); }

C sigmoid(C z) {
  const C e = std::exp(z.real() < 0 ? z : -z), whole(1 + e.real(), e.imag());
  return z.real() < 0 ? div(e, whole) : div(1, whole);
}

}  // namespace vt::detail::complex_functions
