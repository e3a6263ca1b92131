// Tensors and compiled functions that live as long as the process: they go after the first thread's
// own objects, and still work until then.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include <vt/vt.hpp>

namespace {

struct Kept {
  std::vector<std::function<double()>> functions;
  std::vector<vt::Tensor> tensors;
  bool on_host = false;
  ~Kept() {
    if (!on_host) return;  // a device's driver has shut down by then; Tensors only go
    for (const auto& f : functions)
      // the test has long passed: only this, or a fault, can fail it
      if (f() != 14.0) std::abort();
  }
};
Kept kept;  // made before main, so destroyed after all that main's thread made

// Nothing is given back before the end: the first to come back then must not find its list gone.
TEST(StaticLifetime, WhatIsKeptWorksAndGoesInPeace) {
  kept.on_host = vt::default_device() == vt::cpu();
  for (int n : {3, 40, 64}) {
    const vt::Tensor x = (vt::eye(n, vt::f64) * 7.0).eval(), b = vt::ones({n, 1}, vt::f64).eval();
    const auto solve = vt::jit([b](vt::Tensor m) { return vt::linalg::solve(m, b) * 98.0; });
    kept.functions.push_back([=] { return vt::mean(solve(x)).item<double>(); });
    kept.tensors.push_back(solve(x) + 1.0);  // never computed
  }
  // What runs then has run before: LLVM itself may be gone.
  for (const auto& f : kept.functions)
    for (int again = 0; again < 3; ++again) EXPECT_EQ(f(), 14.0);
}

}  // namespace
