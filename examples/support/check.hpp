// What the examples share: comparing a transformed result with a loop's, and timing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include <vt/vt.hpp>

namespace support {

/// The largest difference relative to 1 + |expected|; infinite where the sizes differ.
inline double difference(const vt::Tensor& actual, const vt::Tensor& expected) {
  if (actual.shape() != expected.shape()) return INFINITY;
  const auto a = actual.to_vector<double>(), e = expected.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - e[i]) / (1.0 + std::abs(e[i]));
    worst = d <= worst ? worst : d;  // NaN counts as a difference
  }
  return worst;
}

/// Says whether `actual` equals `expected` up to `tolerance`; returns the program's exit code.
inline int check(const char* what, const vt::Tensor& actual, const vt::Tensor& expected,
                 double tolerance = 1e-5) {
  const double worst = difference(actual, expected);
  const bool good = worst <= tolerance;
  std::printf("%s: %s (largest difference %.1e)\n", what, good ? "equal" : "DIFFERENT", worst);
  return good ? 0 : 1;
}

/// Median wall time of `repetitions` calls, in milliseconds; one call before them is not counted.
template <class F>
double median_ms(F f, int repetitions = 5) {
  f();
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

}  // namespace support
