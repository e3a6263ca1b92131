// The functions of CUDA's math library that C does not have, in double precision: for kernels that
// run in the emulator.
#include <cmath>
#include <limits>

#include "emulator.hpp"

namespace emulator {

namespace {

// of p below 1/2; a few digits, which Newton's steps complete
double normal_quantile_start(double p) {
  const double t = std::sqrt(-2.0 * std::log(p));
  return -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
}

// The x with erfc(x) = y, for y in (0, 1]: Halley's steps on the logarithm, so that tiny y work as
// well.
double erfc_inverse(double y) {
  if (y == 1.0) return 0.0;
  double x = -normal_quantile_start(y / 2) / std::sqrt(2.0);
  for (int i = 0; i < 4; ++i) {
    const double value = std::erfc(x);
    if (value <= 0.0) break;
    const double step = (value - y) / (-2.0 / std::sqrt(M_PI) * std::exp(-x * x));
    x -= step / (1.0 + x * step);
  }
  return x;
}

double erf_inverse(double y) {
  if (std::fabs(y) == 1.0) return std::copysign(std::numeric_limits<double>::infinity(), y);
  if (!(std::fabs(y) < 1.0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(y) > 0.5) return std::copysign(erfc_inverse(1.0 - std::fabs(y)), y);
  double x = y * (std::sqrt(M_PI) / 2);
  for (int i = 0; i < 6; ++i) {
    const double step = (std::erf(x) - y) / (2.0 / std::sqrt(M_PI) * std::exp(-x * x));
    x -= step / (1.0 + x * step);
  }
  return x;
}

double scaled_erfc(double x) {
  if (x < 25.0) return std::exp(x * x) * std::erfc(x);
  const double r = 1.0 / (x * x);
  return (1.0 - r * (0.5 - r * (0.75 - r * 1.875))) / (x * std::sqrt(M_PI));
}

// The sum of its power series; all terms are positive.
double bessel_i(int order, double x) {
  const double quarter = x * x / 4, magnitude = std::fabs(x);
  if (magnitude > 700.0)
    return std::numeric_limits<double>::infinity() * (order == 1 && x < 0 ? -1 : 1);
  double term = order == 0 ? 1.0 : x / 2, sum = term;
  for (int k = 1; k < 2000; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-18) break;
  }
  return sum;
}

}  // namespace

double special_function(int function, double x) {
  switch (function) {
    case 0: return erf_inverse(x);
    case 1:
      if (x == 0.0) return std::numeric_limits<double>::infinity();
      if (x == 2.0) return -std::numeric_limits<double>::infinity();
      if (!(x > 0.0 && x < 2.0)) return std::numeric_limits<double>::quiet_NaN();
      return x <= 1.0 ? erfc_inverse(x) : -erfc_inverse(2.0 - x);
    case 2: return 0.5 * std::erfc(-x / std::sqrt(2.0));
    case 3:
      return x <= 0.5 ? -std::sqrt(2.0) * special_function(1, 2.0 * x)
                      : std::sqrt(2.0) * special_function(1, 2.0 * (1.0 - x));
    case 4: return scaled_erfc(x);
    case 5: return bessel_i(0, x);
    case 6: return bessel_i(1, x);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace emulator
