// Plain loops that perf/control and perf/native are timed beside and checked against.
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

static void motion(const double* x, const double* u, double* slope) {
  const double thrust = u[0] + u[1];
  slope[0] = x[3], slope[1] = x[4], slope[2] = x[5];
  slope[3] = -thrust * std::sin(x[2]) / 0.8;
  slope[4] = thrust * std::cos(x[2]) / 0.8 - 9.81;
  slope[5] = (u[0] - u[1]) * 0.25 / 0.02;
}

void quadrotor_step(const double* x, const double* u, double* end) {
  constexpr double h = 0.05, part[3] = {h / 2, h / 2, h};
  double slopes[4][6], y[6];
  motion(x, u, slopes[0]);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 6; ++i) y[i] = x[i] + part[k] * slopes[k][i];
    motion(y, u, slopes[k + 1]);
  }
  for (int i = 0; i < 6; ++i)
    end[i] = x[i] + h / 6 * (slopes[0][i] + 2 * slopes[1][i] + 2 * slopes[2][i] + slopes[3][i]);
}

double quadrotor_cost(const double* x, const double* controls, int rounds) {
  double state[6], next[6], sum = 0;
  for (int i = 0; i < 6; ++i) state[i] = x[i];
  for (int k = 0; k < rounds; ++k) {
    const double* u = controls + 2 * k;
    quadrotor_step(state, u, next);
    for (int i = 0; i < 6; ++i) state[i] = next[i], sum += next[i] * next[i];
    sum += 0.1 * (u[0] * u[0] + u[1] * u[1]);
  }
  return sum;
}

double chain(double x, int n) {
  std::vector<double> t(n);
  t[0] = x;
  for (int i = 1; i < n; ++i) t[i] = std::sin(t[i - 1]);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += t[i];
  return sum;
}

double chosen(const double* x, int n) {
  std::vector<double> t(n);
  for (int i = 0; i < n; ++i)
    if (x[i] > 0) t[i] = x[i] * x[i];
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += t[i];
  return sum;
}

double soft_edit(const double* costs, int n) {
  std::vector<double> d((n + 1) * (n + 1));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const double a = d[i * (n + 1) + j] + costs[i * n + j], b = d[(i + 1) * (n + 1) + j] + 1,
                   c = d[i * (n + 1) + j + 1] + 1;
      d[(i + 1) * (n + 1) + j + 1] = -std::log(std::exp(-a) + std::exp(-b) + std::exp(-c));
    }
  return d[n * (n + 1) + n];
}

}  // namespace plain
