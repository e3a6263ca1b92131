// Running results of reductions and scans in a wide type (double, int64, uint64): sum, product,
// extremum or log-sum-exp so far.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "scalar_math.hpp"

namespace vt::detail::accumulate {

/// Integers: modulo 2⁶⁴, whose low bits are right for every narrower dtype.
template <class W>
class Sum {
 public:
  void add(W x) { sum_ = scalar_math::add(sum_, x); }
  W value() const { return sum_; }

 private:
  W sum_ = 0;
};

/// Neumaier's compensated sum: as good as summing in twice the precision. Infinities and NaN come
/// out as in a plain sum.
template <>
class Sum<double> {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return __builtin_isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

template <class W>
class Prod {
 public:
  void add(W x) { product_ = scalar_math::mul(product_, x); }
  W value() const { return product_; }

 private:
  W product_ = 1;
};

template <class W>
class Max {
 public:
  void add(W x) { greatest_ = scalar_math::max(greatest_, x); }
  W value() const { return greatest_; }

 private:
  W greatest_ = std::is_floating_point_v<W> ? -std::numeric_limits<W>::infinity()
                                            : std::numeric_limits<W>::lowest();
};

template <class W>
class Min {
 public:
  void add(W x) { least_ = scalar_math::min(least_, x); }
  W value() const { return least_; }

 private:
  W least_ = std::is_floating_point_v<W> ? std::numeric_limits<W>::infinity()
                                         : std::numeric_limits<W>::max();
};

/// log Σ exp(x), scaled by the greatest x so far so that nothing overflows.
class LogSumExp {
 public:
  void add(double x) {
    if (__builtin_isnan(x)) greatest_ = x;
    if (__builtin_isnan(greatest_) || x == -std::numeric_limits<double>::infinity()) return;
    if (x == greatest_) scaled_ += 1;  // also ∞ after ∞, whose difference is NaN
    else if (x < greatest_) scaled_ += std::exp(x - greatest_);
    else {
      scaled_ = scaled_ * std::exp(greatest_ - x) + 1;
      greatest_ = x;
    }
  }
  double value() const { return greatest_ + std::log(scaled_); }

 private:
  double greatest_ = -std::numeric_limits<double>::infinity(), scaled_ = 0;
};

}  // namespace vt::detail::accumulate
