// An LSTM written for one sequence whose length is data: vmap runs it on sequences of different
// lengths, each until its own end, and the Jacobian of the last state follows each of them back.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

constexpr int width = 4, features = 3, longest = 12;

struct Weights {
  vt::Tensor of_input, of_state, bias;
};
using State = std::pair<vt::Tensor, vt::Tensor>;  // output, memory

State cell(const Weights& w, const State& s, vt::Tensor x) {
  const std::vector<vt::Tensor> gates =
      vt::split(vt::matmul(x, w.of_input) + vt::matmul(s.first, w.of_state) + w.bias, 4);
  const vt::Tensor memory =
      vt::sigmoid(gates[0]) * s.second + vt::sigmoid(gates[1]) * vt::tanh(gates[2]);
  return {vt::sigmoid(gates[3]) * vt::tanh(memory), memory};
}

/// The output after the first `length` rows of `xs`.
vt::Tensor last_output(Weights w, vt::Tensor start, vt::Tensor xs, vt::Tensor length) {
  const auto end = vt::while_loop(
      [&](vt::Tensor t, const State&) { return t < length; },
      [&](vt::Tensor t, const State& s) { return std::pair(t + 1, cell(w, s, xs[t])); },
      std::pair(0, State(start, vt::zeros({width}, vt::f64))));
  return end.second.first;
}

int main() {
  auto [k1, k2, k3, k4] = vt::random::split<4>(vt::random::key(7));
  const Weights w{0.5 * vt::random::normal(k1, {features, 4 * width}, vt::f64),
                  0.5 * vt::random::normal(k2, {width, 4 * width}, vt::f64),
                  vt::zeros({4 * width}, vt::f64)};
  const vt::Tensor lengths = vt::random::randint(k3, {6}, 0, longest + 1),
                   xs = vt::random::normal(k4, {6, longest, features}, vt::f64);
  const vt::Tensor start = vt::full({width}, 0.1, vt::f64);
  std::cout << "lengths " << lengths << '\n';

  const auto outputs = vt::vmap(last_output, {.in_axes = {vt::unmapped, vt::unmapped, 0, 0}});
  const auto jacobians =
      vt::vmap(vt::jacrev<1, 2>(last_output), {.in_axes = {vt::unmapped, vt::unmapped, 0, 0}});
  const vt::Tensor all = outputs(w, start, xs, lengths);
  const auto [by_start, by_inputs] = jacobians(w, start, xs, lengths);

  // The loop: one sequence after the other, cut to its length, with a C++ loop over the rows.
  const std::vector<int> rows = lengths.to_vector<int>();
  std::vector<vt::Tensor> expected, expected_by_start;
  int failures = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const vt::Tensor x = xs[static_cast<int>(i)];
    const auto unrolled = [&](vt::Tensor from) {
      State s(from, vt::zeros({width}, vt::f64));
      for (int t = 0; t < rows[i]; ++t) s = cell(w, s, x[t]);
      return s.first;
    };
    expected.push_back(unrolled(start));
    expected_by_start.push_back(vt::jacfwd(unrolled)(start));
    // Nothing depends on what comes after the end.
    const vt::Tensor after =
        vt::moveaxis(by_inputs[static_cast<int>(i)], 1, 0)[vt::slice(rows[i], longest)];
    failures += vt::any(after != 0.0).item<bool>();
  }
  if (failures) std::cout << "rows after the end have an influence\n";
  failures += support::check("outputs and the loop", all, vt::stack(expected), 1e-12);
  failures += support::check("Jacobians and those of unrolled cells", by_start,
                             vt::stack(expected_by_start), 1e-12);
  return failures;
}
