// A plugin that uses vt, of a program that does not: see plugin_host.cpp.
#include <vt/vt.hpp>

namespace {
vt::Tensor kept;
}

extern "C" double plugin_work(int n) {
  const auto f = vt::jit([n](vt::Tensor x) { return vt::sum(vt::tanh(x) * (0.5 * n)); });
  kept = f(vt::ones({300000}));
  return kept.item<double>();
}
