// Plain loops that perf/control is timed beside and checked against.
#include "plain_loops.hpp"

#include <cmath>
#include <vector>

namespace plain {

double oscillate(double x, std::int64_t trips) {
  double p = 0.5, s = 0;
  for (std::int64_t i = 0; i < trips; ++i) {
    p = p - 0.01 * (x + 0.1 * x * x * x);
    x = x + 0.01 * p;
    s = s + x * p;
  }
  return x + p + s;
}

double oscillate_derivative(double x, std::int64_t trips) {
  double p = 0.5, dx = 1, dp = 0, ds = 0;
  for (std::int64_t i = 0; i < trips; ++i) {
    dp = dp - 0.01 * (1 + 0.3 * x * x) * dx;
    p = p - 0.01 * (x + 0.1 * x * x * x);
    dx = dx + 0.01 * dp;
    x = x + 0.01 * p;
    ds = ds + (dx * p + x * dp);
  }
  return dx + dp + ds;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double lstm(const Lstm& net, const float* xs, std::int64_t stride, int steps, double* last) {
  const int width = net.width, gates = 4 * width;
  std::vector<double> g(gates), memory(width);
  double squares = 0;
  for (int j = 0; j < width; ++j) last[j] = 0;
  for (int t = 0; t < steps; ++t) {
    for (int j = 0; j < gates; ++j) g[j] = net.bias[j];
    for (int k = 0; k < width; ++k) {
      const double x = xs[t * stride + k], h = last[k];
      const double *wx = net.of_input + k * gates, *wh = net.of_state + k * gates;
      for (int j = 0; j < gates; ++j) g[j] += x * wx[j] + h * wh[j];
    }
    for (int j = 0; j < width; ++j) {
      memory[j] = sigmoid(g[j]) * memory[j] + sigmoid(g[j + width]) * std::tanh(g[j + 2 * width]);
      last[j] = sigmoid(g[j + 3 * width]) * std::tanh(memory[j]);
      squares += last[j] * last[j];
    }
  }
  return squares;
}

}  // namespace plain
