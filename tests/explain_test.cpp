// vt::explain: the text names what ran, and asking changes nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <vt/vt.hpp>

namespace {

using vt::Tensor;

bool on_interpreter() {
  const char* backend = std::getenv("VT_BACKEND");
  vt::jit([](Tensor x) { return vt::sin(x) * 2.0; })(vt::ones({64})).eval();
  return (backend && std::string(backend) == "interpreter") || vt::stats().llvm_unavailable > 0;
}

TEST(Explain, names_kernels_and_what_they_fused) {
  const auto f = vt::jit([](Tensor x, Tensor w) { return vt::sum(vt::tanh(vt::matmul(x, w)) * 2.0, 0); });
  const std::string text = vt::explain(f)(vt::ones({64, 32}), vt::ones({32, 16}));
  EXPECT_NE(text.find("tanh"), std::string::npos) << text;
  EXPECT_NE(text.find(on_interpreter() ? "interpreter" : "kernel"), std::string::npos) << text;
}

TEST(Explain, a_plain_function_is_compiled_for_it) {
  EXPECT_FALSE(vt::explain([](Tensor x) { return x + 1.0; })(vt::ones({3})).empty());
}

TEST(Explain, another_signature_is_not_known) {
  const auto f = vt::jit([](Tensor x, int n) { return x * static_cast<double>(n); });
  f(vt::ones({3}), 2);
  EXPECT_FALSE(f.explain(vt::ones({3}), 2).empty());
  EXPECT_TRUE(f.explain(vt::ones({3}), 3).empty());
  EXPECT_TRUE(f.explain(vt::ones({4}), 2).empty());
}

}  // namespace
