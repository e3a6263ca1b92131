// The loops of perf/control and perf/native as one writes them in plain C++; compiled with -O2 for
// any machine, nothing of vt included.
#pragma once

#include <cstdint>

namespace plain {

/// `trips` steps of an oscillator with a cubic force, from place x and momentum 0.5, ten operations
/// each; the sum of what it ends with.
double oscillate(double x, std::int64_t trips);
/// Its derivative by x, carried along in the same loop.
double oscillate_derivative(double x, std::int64_t trips);

/// An LSTM of `width` on rows of `width` numbers: weights of the input and of the state [width,
/// 4·width], bias [4·width].
struct Lstm {
  int width;
  const double *of_input, *of_state, *bias;
};
/// One sequence of `steps` rows, each `stride` numbers after the one before; writes the last
/// output, returns the sum of the squares of all.
double lstm(const Lstm&, const float* xs, std::int64_t stride, int steps, double* last);

/// A planar quadrotor: one step of a Runge–Kutta method from `x` [6] under `u` [2], and the cost of
/// `rounds` of them, as perf/native/small.cpp has them.
void quadrotor_step(const double* x, const double* u, double* end);
double quadrotor_cost(const double* x, const double* controls, int rounds);

/// The sum of t₀ = x, tᵢ = sin tᵢ₋₁ over n elements of a table.
double chain(double x, int n);
/// The sum of a table of n elements where those with x > 0 have been set to x².
double chosen(const double* x, int n);
/// The soft edit distance of n × n costs.
double soft_edit(const double* costs, int n);

}  // namespace plain
