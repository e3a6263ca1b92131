// jit(f).memory(…): what it says before anything ran is what the allocator then counts.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/buffer.hpp"

namespace {

using vt::Tensor;

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

// Blocks are rounded up; each allocation by less than this.
constexpr std::uint64_t slack = 64 * 1024;

// What the allocator counts at most during one call, beyond the arguments.
template <class F, class... A>
std::uint64_t measured(const F& f, const A&... arguments) {
  f(arguments...);  // traces, compiles, makes what is kept
  const std::uint64_t before = vt::detail::pool_use().in_use;
  vt::detail::reset_pool_peak();
  const auto kept = f(arguments...);
  return vt::detail::pool_use().peak - before;
}

TEST(MemoryPlan, IsWhatARunTakes) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter's estimate has a test of its own";
  const Tensor x = vt::ones({300, 1000}).eval(), w = (vt::ones({1000, 1000}) * 0.01).eval();
  const auto check = [&](const auto& f, const std::string& what) {
    const vt::Memory plan = f.memory(x, w);
    const std::uint64_t used = measured(f, x, w);
    EXPECT_EQ(plan.inputs, (300u * 1000 + 1000 * 1000) * 4) << what;
    EXPECT_GE(plan.results + plan.scratch + slack, used) << what << "\n" << plan.str();
    EXPECT_LE(plan.results + plan.scratch, used + slack) << what << "\n" << plan.str();
    EXPECT_EQ(plan.peak(), plan.inputs + plan.constants + plan.results + plan.scratch);
  };
  check(vt::jit([](Tensor a, Tensor b) { return vt::tanh(vt::matmul(a, b)); }), "one product");
  check(vt::jit([](Tensor a, Tensor b) { return vt::matmul(vt::matmul(vt::matmul(a, b), b), b); }), "a chain of products");
  check(vt::jit([](Tensor a, Tensor b) { return vt::sum(vt::cumsum(vt::matmul(a, b), 0) * a); }), "a reduction");
  check(vt::jit(
            [](Tensor a, Tensor b) { return vt::grad([&](Tensor v) { return vt::sum(vt::square(vt::matmul(vt::tanh(vt::matmul(a, v)), v))); })(b); }),
        "a gradient");
  check(vt::jit([](Tensor a, Tensor) { return vt::sort(a, 1) + a; }), "a sort");
}

TEST(MemoryPlan, RunsNothing) {
  const auto f = vt::jit([](Tensor x) { return vt::exp(x) * 2.0; });
  const Tensor x = vt::ones({1000}).eval();
  vt::reset_stats();
  const vt::Memory m = f.memory(x);
  EXPECT_EQ(vt::stats().programs_run, 0u);
  EXPECT_EQ(vt::stats().interpreter_steps, 0u);
  EXPECT_EQ(m.inputs, 4000u);
  EXPECT_EQ(m.results, 4000u);
  EXPECT_EQ(f(x)[3].item<float>(), 2 * std::exp(1.0f));
}

TEST(MemoryPlan, LoopsCountTheirBodies) {
  const Tensor x = vt::ones({200, 500}).eval(), w = (vt::ones({500, 500}) * 0.001).eval();
  const auto check = [&](const auto& f, const std::string& what) {
    const vt::Memory plan = f.memory(x, w);
    const std::uint64_t used = measured(f, x, w);
    EXPECT_GE(plan.results + plan.scratch + slack, used) << what << "\n" << plan.str();
    EXPECT_LE(plan.results + plan.scratch, 3 * used + slack) << what << "\n" << plan.str();
  };
  check(vt::jit([](Tensor a, Tensor b) { return vt::fori_loop(0, 5, [&](Tensor, Tensor s) { return vt::tanh(vt::matmul(s, b)); }, a); }),
        "fori_loop");
  check(vt::jit([](Tensor a, Tensor b) {
          return vt::while_loop([](Tensor s) { return vt::sum(s) < 1e9; }, [&](Tensor s) { return vt::matmul(s, b) + 1e5; }, a);
        }),
        "while_loop");
  check(vt::jit([](Tensor a, Tensor b) { return vt::cond(vt::sum(a) > 0.0, [&] { return vt::matmul(vt::matmul(a, b), b); }, [&] { return a; }); }),
        "cond");
}

TEST(MemoryPlan, ValuesHaveLinesAndPlaces) {
  const auto f = vt::jit([](Tensor x, Tensor y) { return vt::sum(vt::cumsum(vt::matmul(x, y), 0) * 2.0, 0); });
  const int line = __LINE__ - 1;
  const vt::Memory m = f.memory(vt::ones({64, 128}), vt::ones({128, 256}));
  ASSERT_GE(m.values.size(), 3u);
  EXPECT_EQ(m.values[0].what, "f32[128,256]");
  EXPECT_EQ(m.values[0].place, "input");
  for (std::size_t i = 1; i < m.values.size(); ++i) EXPECT_GE(m.values[i - 1].bytes, m.values[i].bytes);
  bool product = false, result = false;
  for (const vt::Memory::Value& v : m.values) {
    if (v.what.find("dot_general f32[64,256]") == 0) product = v.where.line == line && v.bytes == 64 * 256 * 4;
    if (v.what.find("f32[256]") != std::string::npos && v.place == "result") result = v.bytes == 1024;
    EXPECT_LE(v.from, v.until);
  }
  EXPECT_TRUE(product) << m.str();
  EXPECT_TRUE(result) << m.str();
  EXPECT_EQ(m.str().find(std::to_string(m.peak()) + " bytes at most: inputs "), 0u) << m.str();
}

TEST(MemoryPlan, InsideATransformIsAnError) {
  const auto f = vt::jit([](Tensor x) { return x * 2.0; });
  try {
    vt::vmap([&](Tensor x) {
      static_cast<void>(f.memory(x));
      return x;
    })(vt::ones({3}));
    FAIL() << "nothing was thrown";
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("vt::jit: memory(…) inside another transform"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("memory_plan_test.cpp"), std::string::npos) << e.what();
  }
}

}  // namespace
