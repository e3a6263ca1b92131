// Running results of reductions and cumulative ops: what a sum, product, extremum or log-sum-exp has seen so far.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "convert.hpp"
#include "scalar_math.hpp"

namespace vt::detail::accumulate {

/// Neumaier's compensated sum: as good as summing in twice the precision. Infinities and NaN come out as in a plain sum.
class CompensatedSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

template <class T>
struct Sum {
  void add(T x) {
    if constexpr (is_real_type<T>) state.add(static_cast<double>(x));
    else state = scalar_math::add(state, x);
  }
  T value() const {
    if constexpr (is_real_type<T>) return from_double<T>(state.value());
    else return state;
  }
  std::conditional_t<is_real_type<T>, CompensatedSum, T> state{};
};

template <class T>
struct Prod {
  using State = std::conditional_t<is_real_type<T>, double, T>;
  void add(T x) { state = scalar_math::mul(state, static_cast<State>(x)); }
  T value() const {
    if constexpr (is_real_type<T>) return from_double<T>(state);
    else return state;
  }
  State state{1};
};

template <class T>
struct Max {
  static constexpr bool of_bools = true;
  using State = scalar_math::Working<T>;
  void add(T x) { state = scalar_math::max(state, static_cast<State>(x)); }
  T value() const { return T(state); }
  State state = is_real_type<T> ? -std::numeric_limits<State>::infinity() : std::numeric_limits<State>::lowest();
};

template <class T>
struct Min {
  static constexpr bool of_bools = true;
  using State = scalar_math::Working<T>;
  void add(T x) { state = scalar_math::min(state, static_cast<State>(x)); }
  T value() const { return T(state); }
  State state = is_real_type<T> ? std::numeric_limits<State>::infinity() : std::numeric_limits<State>::max();
};

/// log Σ exp(x), scaled by the greatest x so far so that nothing overflows.
template <class T>
struct LogSumExp {
  void add(T element) {
    const auto x = static_cast<double>(element);
    if (std::isnan(x)) greatest = x;
    if (std::isnan(greatest) || x == -std::numeric_limits<double>::infinity()) return;
    if (x == greatest) scaled += 1;  // also ∞ after ∞, whose difference is NaN
    else if (x < greatest) scaled += std::exp(x - greatest);
    else {
      scaled = scaled * std::exp(greatest - x) + 1;
      greatest = x;
    }
  }
  T value() const { return from_double<T>(greatest + std::log(scaled)); }
  double greatest = -std::numeric_limits<double>::infinity(), scaled = 0;
};

}  // namespace vt::detail::accumulate
