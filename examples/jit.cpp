// jit: records a function once per signature and runs it as compiled code from then on.
#include <vt/vt.hpp>

#include <cstdio>

#include "support/check.hpp"

int main() {
  int recorded = 0;
  auto wave = [&](vt::Tensor x, int harmonics) {
    ++recorded;  // runs while recording only
    vt::Tensor sum = vt::zeros_like(x);
    for (int k = 1; k <= harmonics; ++k) sum = sum + vt::sin(k * x) / k;
    return sum;
  };
  const auto fast = vt::jit(wave);
  const vt::Tensor x = vt::linspace(0.0, 6.0, 100000).eval();

  const vt::Tensor first = fast(x, 8);
  for (int i = 0; i < 10; ++i) fast(x, 8).eval();
  std::printf("recorded %d time for 11 calls of one signature\n", recorded);
  int failures = recorded == 1 ? 0 : 1;
  fast(x, 4).eval();  // another static argument: a new signature
  fast(x.astype(vt::f64), 4).eval();
  failures += recorded == 3 ? 0 : 1;
  failures += support::check("jit and the plain function", first, wave(x, 8), 1e-4);

  const double compiled = support::median_ms([&] { fast(x, 8).eval(); }, 20);
  std::vector<float> by_hand(x.size());
  const double loop = support::median_ms([&] {
    const std::span<const float> in = x.data<float>();
    for (std::size_t i = 0; i < in.size(); ++i) {
      float sum = 0;
      for (int k = 1; k <= 8; ++k) sum += std::sin(k * in[i]) / k;
      by_hand[i] = sum;
    }
  });
  failures += support::check("jit and a plain C++ loop", first, vt::tensor(by_hand), 1e-4);
  std::printf("100,000 elements: %.3f ms compiled, %.3f ms as a plain C++ loop\n", compiled, loop);
  return failures;
}
