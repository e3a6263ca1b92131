// What is differentiated in perf/native and by its peers: each function once, for any scalar.
// A problem has a name, the number of inputs and outputs, `lanes` (so many at once are timed too;
// 0: none), where it is evaluated, and its value. `second`: the derivative is the Hessian.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace problems {

/// Expressions without values, which nothing can branch on.
template <class T>
inline constexpr bool symbolic = false;

struct Problem {
  static constexpr int outputs = 1, lanes = 0;
  static constexpr bool second = false;
};

struct LogSumExp : Problem {
  static constexpr const char* name = "logsumexp";
  static constexpr int inputs = 1000;
  static double start(int i) { return 3 * std::sin(i + 1.0); }
  template <class T>
  static void value(const T* x, T* y) {
    using std::exp, std::log;
    int first = 0;
    if constexpr (!symbolic<T>)
      for (int i = 1; i < inputs; ++i)
        if (x[i] > x[first]) first = i;
    const T most = x[first];
    T sum(0.0);
    for (int i = 0; i < inputs; ++i) sum += exp(x[i] - most);
    y[0] = most + log(sum);
  }
};

/// How far from where it was seen a camera of 11 parameters sees a point, times a weight.
struct BundleBlock : Problem {
  static constexpr const char* name = "bundle_block";
  static constexpr int inputs = 15, outputs = 2, lanes = 10'000;
  static constexpr double seen[2] = {0.3, -0.2};
  static double start(int i) {
    // rotation, centre, focal length, principal point, distortion; point; weight
    constexpr double x[inputs] = {0.1,  -0.2, 0.3,   0.5, 0.4, -3.0, 1.2, 0.01,
                                  0.02, 0.03, -0.01, 0.7, 0.9, 1.1,  0.8};
    return x[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::cos, std::sin, std::sqrt;
    const T v[3] = {T(x[11] - x[3]), T(x[12] - x[4]), T(x[13] - x[5])};
    T p[3];
    const T squared = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    const auto about = [&] {
      const T angle = sqrt(squared), s = sin(angle), c = cos(angle);
      const T a[3] = {T(x[0] / angle), T(x[1] / angle), T(x[2] / angle)};
      const T along = (a[0] * v[0] + a[1] * v[1] + a[2] * v[2]) * (1.0 - c);
      for (int i = 0, j = 1, k = 2; i < 3; ++i, j = (j + 1) % 3, k = (k + 1) % 3)
        p[i] = v[i] * c + (a[j] * v[k] - a[k] * v[j]) * s + a[i] * along;
    };
    if constexpr (symbolic<T>) about();
    else if (squared != 0.0) about();
    else
      for (int i = 0, j = 1, k = 2; i < 3; ++i, j = (j + 1) % 3, k = (k + 1) % 3)
        p[i] = v[i] + (x[j] * v[k] - x[k] * v[j]);
    const T a = p[0] / p[2], b = p[1] / p[2], r = a * a + b * b;
    const T scale = x[6] * (1.0 + x[9] * r + x[10] * r * r);
    y[0] = x[14] * (scale * a + x[7] - seen[0]);
    y[1] = x[14] * (scale * b + x[8] - seen[1]);
  }
};

/// Prey and predators after 100 steps of Runge and Kutta, by where they start and four rates.
struct LotkaVolterra : Problem {
  static constexpr const char* name = "lotka_volterra";
  static constexpr int inputs = 6, outputs = 2, lanes = 1000, steps = 100;
  static constexpr double h = 0.05;
  static double start(int i) {
    constexpr double x[inputs] = {1.0, 0.8, 1.5, 1.0, 3.0, 1.1};
    return x[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    const auto slope = [&](const T* u, T* d) {
      const T meet = u[0] * u[1];
      d[0] = x[2] * u[0] - x[3] * meet;
      d[1] = x[5] * meet - x[4] * u[1];
    };
    T u[2] = {x[0], x[1]}, d[4][2], v[2];
    for (int n = 0; n < steps; ++n) {
      slope(u, d[0]);
      for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 2; ++i) v[i] = u[i] + (k == 2 ? h : h / 2) * d[k][i];
        slope(v, d[k + 1]);
      }
      for (int i = 0; i < 2; ++i)
        u[i] += h / 6 * (d[0][i] + 2.0 * d[1][i] + 2.0 * d[2][i] + d[3][i]);
    }
    y[0] = u[0], y[1] = u[1];
  }
};

using All = std::tuple<LogSumExp, BundleBlock, LotkaVolterra>;

template <class P>
constexpr int derivatives = P::inputs * (P::second ? P::inputs : P::outputs);

/// Where lane `lane` is evaluated.
template <class P>
std::vector<double> start(int lane = 0) {
  std::vector<double> x(P::inputs);
  for (int i = 0; i < P::inputs; ++i) x[i] = P::start(i) * (1 + 1e-3 * std::sin(1.0 * lane));
  return x;
}

inline void expect(const std::string& what, double actual, double expected, double tolerance) {
  if (std::abs(actual - expected) <= tolerance * (1 + std::abs(expected))) return;
  std::fprintf(stderr, "%s: %.17g, but plain C++ gives %.17g\n", what.c_str(), actual, expected);
  std::exit(1);
}

/// Compares the value `y` and the derivative `d` [outputs, inputs] with plain C++, the latter along
/// some directions by differences.
template <class P>
void check(const std::string& who, const std::vector<double>& x, const double* y, const double* d) {
  const std::string of = std::string(P::name) + " by " + who;
  std::vector<double> middle(P::outputs), up(P::outputs), down(P::outputs);
  P::template value<double>(x.data(), middle.data());
  for (int i = 0; y && i < P::outputs; ++i) expect("value of " + of, y[i], middle[i], 1e-9);
  for (int direction = 1; d && direction <= 3; ++direction) {
    const double h = P::second ? 1e-4 : 1e-5;
    std::vector<double> along(P::inputs), at = x;
    for (int i = 0; i < P::inputs; ++i) along[i] = std::sin(direction * (i + 1.0));
    for (int i = 0; i < P::inputs; ++i) at[i] = x[i] + h * along[i];
    P::template value<double>(at.data(), up.data());
    for (int i = 0; i < P::inputs; ++i) at[i] = x[i] - h * along[i];
    P::template value<double>(at.data(), down.data());
    for (int row = 0; row < P::outputs; ++row) {
      double sum = 0;
      for (int i = 0; i < P::inputs; ++i)
        if constexpr (P::second)
          for (int j = 0; j < P::inputs; ++j) sum += along[i] * d[i * P::inputs + j] * along[j];
        else sum += d[row * P::inputs + i] * along[i];
      expect("derivative of " + of, sum,
             P::second ? (up[row] - 2 * middle[row] + down[row]) / (h * h)
                       : (up[row] - down[row]) / (2 * h),
             P::second ? 1e-5 : 1e-6);
    }
  }
}

}  // namespace problems
