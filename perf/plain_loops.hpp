// The loops of perf/control as one writes them in plain C++; compiled with -O2 for any machine,
// nothing of vt included.
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

}  // namespace plain
