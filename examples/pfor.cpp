// pfor: a loop body over an index, run for all indices at once.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  constexpr int n = 6;
  const vt::Tensor signal = vt::sin(0.7 * vt::arange(n + 2).astype(vt::f32));
  // The body reads what it likes at i, and at indices computed from i.
  auto body = [&](vt::Tensor i) {
    return 0.25f * signal[i] + 0.5f * signal[i + 1] + 0.25f * signal[i + 2];
  };
  const vt::Tensor smooth = vt::pfor(body, n);
  std::cout << "smoothed " << smooth << '\n';

  std::vector<vt::Tensor> one_by_one;
  for (int i = 0; i < n; ++i) one_by_one.push_back(body(vt::tensor(i)));
  int failures = support::check("pfor and the loop", smooth, vt::stack(one_by_one));

  // A body may itself use any transform: here a gradient per index.
  auto slope = [&](vt::Tensor i) {
    return vt::grad([&](vt::Tensor x) { return vt::square(x) * signal[i]; })(signal[i]);
  };
  failures += support::check("pfor of grad", vt::pfor(slope, n),
                             2.0f * vt::square(signal[vt::slice(0, n)]));
  return failures;
}
