// jit(f).memory(…): what it says before anything ran is what the allocator then counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/base/buffer.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

// The most that was asked of the allocator during one call, beyond the arguments.
template <class F, class... A>
std::uint64_t measured(const F& f, const A&... arguments) {
  static_cast<void>(f(arguments...));  // traces, compiles, makes what is kept
  std::uint64_t most = 0;
  for (int i = 0; i < 3; ++i) {  // how many threads are awake in time differs
    const std::uint64_t before = vt::detail::pool_use().asked;
    vt::detail::reset_pool_peak();
    const auto kept = f(arguments...);
    most = std::max<std::uint64_t>(most, vt::detail::pool_use().asked_peak - before);
  }
  return most;
}

// What is planned before the first run is no less than what is measured, and `more` times that at
// most.
template <class F, class... A>
void check(const char* what, double more, const F& f, const A&... arguments) {
  const auto jitted = vt::jit(f);
  const vt::Memory plan = jitted.memory(arguments...);
  const std::uint64_t used = measured(jitted, arguments...);
  EXPECT_GE(plan.results + plan.scratch, used) << what << "\n" << plan.str();
  // With several threads it differs how many of them are there in time.
  if (has_compiler() && vt::num_threads() == 1) {
    EXPECT_LE(static_cast<double>(plan.results + plan.scratch), more * static_cast<double>(used))
        << what << "\n"
        << plan.str();
  }
  std::uint64_t given = 0;
  ((given += static_cast<std::uint64_t>(arguments.size()) * vt::size_of(arguments.dtype())), ...);
  EXPECT_EQ(plan.inputs, given) << what;
  EXPECT_EQ(plan.peak(), plan.inputs + plan.constants + plan.results + plan.scratch) << what;
}

class MemoryPlanThreads : public testing::TestWithParam<int> {
 protected:
  MemoryPlanThreads() { vt::set_num_threads(GetParam()); }
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << "large arrays; the interpreter has a test of its own";
  }
  ~MemoryPlanThreads() override { vt::set_num_threads(before_); }
  const int before_ = vt::num_threads();
};
INSTANTIATE_TEST_SUITE_P(Counts, MemoryPlanThreads, testing::Values(1, 2, 5));

constexpr double close = 1.04;

TEST_P(MemoryPlanThreads, ElementsAndProducts) {
  const Tensor x = (vt::ones({300, 1000}) * 0.5).eval(), w = (vt::ones({1000, 1000}) * 0.01).eval(),
               square = vt::ones({512, 512}).eval();
  check("chain", close, [](Tensor a) { return vt::sin(vt::exp(a) * 2.0) + a; }, square);
  check("softmax", close, [](Tensor a) { return vt::softmax(a, 1); }, square);
  check("softmax of columns", close, [](Tensor a) { return vt::softmax(a, 0); }, square);
  check("product", close, [](Tensor a, Tensor b) { return vt::tanh(vt::matmul(a, b)); }, x, w);
  check(
      "products", close,
      [](Tensor a, Tensor b) { return vt::matmul(vt::matmul(vt::matmul(a, b), b), b); }, x, w);
  check(
      "product and rows", close,
      [](Tensor a, Tensor b) { return vt::softmax(vt::matmul(a, b), 1); }, x, w);
  check("turned", close, [](Tensor a, Tensor b) { return vt::matmul(a, vt::transpose(b)); }, x, w);
  check(
      "few rows", close, [](Tensor a, Tensor b) { return vt::matmul(a, vt::transpose(b)); },
      vt::ones({8, 64}).eval(), vt::ones({64, 64}).eval());
  check(
      "batches", close, [](Tensor a) { return vt::matmul(a, a); }, vt::ones({8, 300, 300}).eval());
  check(
      "16 bits", close, [](Tensor a, Tensor b) { return vt::matmul(a, b); },
      x.astype(vt::DType::bf16).eval(), w.astype(vt::DType::bf16).eval());
  check(
      "reduction", close,
      [](Tensor a, Tensor b) { return vt::sum(vt::cumsum(vt::matmul(a, b), 0) * a); }, x, w);
  check(
      "gradient of a network", close,
      [](Tensor a, Tensor b) {
        return vt::grad([&](Tensor v) {
          return vt::sum(vt::square(vt::matmul(vt::tanh(vt::matmul(a, v)), v)));
        })(b);
      },
      x, w);
}

Tensor network(Tensor images, Tensor first, Tensor second) {
  Tensor h = vt::relu(vt::conv2d(images, first, {.padding = "SAME"}));
  h = vt::max_pool(h, {.window = {2, 2}, .strides = {2, 2}});
  return vt::mean(vt::square(vt::relu(vt::conv2d(h, second, {.padding = "SAME"}))));
}

TEST_P(MemoryPlanThreads, Convolutions) {
  const Tensor images = vt::ones({12, 32, 32, 3}).eval(),
               first = (vt::ones({3, 3, 3, 16}) * 0.1).eval(),
               second = (vt::ones({3, 3, 16, 32}) * 0.1).eval();
  check("network", close, network, images, first, second);
  check(
      "its gradient", close,
      [](Tensor i, Tensor a, Tensor b) { return vt::grad<1, 2>(network)(i, a, b); }, images, first,
      second);
  const auto conv = [](Tensor x, Tensor k) { return vt::conv2d(x, k, {.padding = "SAME"}); };
  check("one image", close, conv, vt::ones({1, 64, 64, 16}).eval(), second);
  check("16 bits", close, conv, vt::ones({2, 32, 32, 16}, vt::DType::bf16).eval(),
        second.astype(vt::DType::bf16).eval());
  check("small images", close, conv, vt::ones({64, 3, 3, 64}).eval(),
        vt::ones({3, 3, 64, 64}).eval());
  check(
      "large filter", close, [](Tensor x, Tensor k) { return vt::conv2d(x, k); },
      vt::ones({2, 8, 8, 16}).eval(), vt::ones({7, 7, 16, 128}).eval());
}

TEST_P(MemoryPlanThreads, Loops) {
  const Tensor x = vt::ones({200, 500}).eval(), w = (vt::ones({500, 500}) * 0.001).eval(),
               square = vt::ones({512, 512}).eval();
  const Tensor rows = vt::ones({64, 128}).eval(), v = (vt::ones({128, 128}) * 0.01).eval(),
               sequence = vt::ones({20, 64, 128}).eval();
  const auto times = [](Tensor b) {
    return [=](Tensor, Tensor s) { return vt::tanh(vt::matmul(s, b)); };
  };
  check(
      "fori_loop", close, [&](Tensor a, Tensor b) { return vt::fori_loop(0, 5, times(b), a); }, x,
      w);
  check(
      "element-wise", close,
      [](Tensor a) {
        return vt::fori_loop(0, 5, [](Tensor, Tensor s) { return vt::tanh(s) + 1.0; }, a);
      },
      square);
  check(
      "of its own", close,
      [](Tensor a) {
        return vt::fori_loop(
                   0, 5, [](Tensor, Tensor s) { return vt::tanh(s) + 1.0; }, vt::cumsum(a, 0)) *
               2.0;
      },
      square);
  check(
      "nested", close,
      [&](Tensor a, Tensor b) {
        return vt::fori_loop(
            0, 3, [&](Tensor, Tensor s) { return vt::fori_loop(0, 3, times(b), s) + 1.0; }, a);
      },
      x, w);
  check(
      "while_loop", 1.1,
      [](Tensor a, Tensor b) {
        return vt::while_loop([](Tensor s) { return vt::sum(s) < 1e9; },
                              [&](Tensor s) { return vt::matmul(s, b) + 1e5; }, a);
      },
      x, w);
  check(
      "cond", close,
      [](Tensor a, Tensor b) {
        return vt::cond(
            vt::sum(a) > 0.0, [&] { return vt::matmul(vt::matmul(a, b), b); }, [&] { return a; });
      },
      x, w);
  const auto cell = [](Tensor b) {
    return [=](Tensor c, Tensor s) {
      const Tensor next = vt::tanh(vt::matmul(c, b) + s);
      return std::pair(next, next);
    };
  };
  check(
      "scan", close, [&](Tensor a, Tensor b, Tensor s) { return vt::scan(cell(b), a, s); }, rows, v,
      sequence);
  check(
      "its gradient", close,
      [&](Tensor a, Tensor b, Tensor s) {
        return vt::grad([&](Tensor m) { return vt::sum(vt::scan(cell(m), a, s).second); })(b);
      },
      rows, v, sequence);
  // How lanes part is not known before.
  const Tensor lanes = (vt::arange(1000) * 0.01).eval();
  check(
      "lanes of a while", 2.5,
      [](Tensor a) {
        return vt::vmap([](Tensor s) {
          return vt::while_loop([](Tensor y) { return vt::sum(y) < 100.0; },
                                [](Tensor y) { return vt::sin(y) * y + y + 1.0; },
                                s * vt::ones({40}));
        })(a);
      },
      lanes);
  check(
      "lanes of a cond", 2.5,
      [](Tensor a) {
        return vt::vmap([](Tensor s) {
          return vt::cond(
              s > 5.0, [&] { return vt::cumsum(s * vt::ones({400})); },
              [&] { return s * vt::ones({400}); });
        })(a);
      },
      lanes);
}

TEST_P(MemoryPlanThreads, SortsAndTransforms) {
  const Tensor x = vt::ones({300, 1000}).eval(), line = vt::ones({1 << 20}).eval(),
               square = vt::ones({512, 512}).eval();
  check("integers", close, [](Tensor a) { return vt::sort(a, 0); }, vt::arange(1000000).eval());
  check("rows", 1.1, [](Tensor a) { return vt::sort(a, 1) + a; }, x);
  check("columns", 1.1, [](Tensor a) { return vt::sort(a, 0); }, square);
  // values with −0 or NaN would take so much
  check("one row", 1.7, [](Tensor a) { return vt::sort(a, 0); }, line);
  check("places", close, [](Tensor a) { return vt::argsort(a, 0); }, line);
  check("the first", 1.1, [](Tensor a) { return vt::top_k(a, 10); }, line);
  check("fft", close, [](Tensor a) { return vt::real(vt::fft::fft(a)); }, square);
  check(
      "irfftn of rfftn", close, [](Tensor a) { return vt::fft::irfftn(vt::fft::rfftn(a) * 2.0); },
      square);
  check(
      "prime length", close, [](Tensor a) { return vt::abs(vt::fft::fft(a)); },
      vt::ones({10007}).eval());
  check(
      "odd real length", 1.1, [](Tensor a) { return vt::fft::irfft(vt::fft::rfft(a), 999); },
      vt::ones({100, 999}).eval());
  check("long", close, [](Tensor a) { return vt::abs(vt::fft::fft(a)); }, line);
  check(
      "small matrices", close, [](Tensor a) { return vt::linalg::cholesky(a); },
      (vt::ones({103, 8, 8}) * 0.01 + vt::eye(8) * 3.0).eval());
  // Others work in memory that the allocator of arrays does not count: at least the copies in f64.
  const Tensor matrix = (vt::eye(200) * 4.0 + 0.01).eval();
  check("solve", 20, [](Tensor a) { return vt::linalg::solve(a, a); }, matrix);
  if (has_compiler()) {
    EXPECT_GE(vt::jit([](Tensor a) { return vt::linalg::solve(a, a); }).memory(matrix).scratch,
              3u * 200 * 200 * 8);
  }
}

TEST(MemoryPlan, Interpreted) {
  const Tensor x = vt::ones({30, 40}).eval(), w = (vt::ones({40, 40}) * 0.01).eval();
  check("chain", close, [](Tensor a) { return vt::sin(vt::exp(a) * 2.0) + a; }, x);
  check(
      "products", close,
      [](Tensor a, Tensor b) { return vt::matmul(vt::matmul(vt::tanh(vt::matmul(a, b)), b), b); },
      x, w);
  check(
      "fori_loop", close,
      [](Tensor a, Tensor b) {
        return vt::fori_loop(0, 5, [&](Tensor, Tensor s) { return vt::tanh(vt::matmul(s, b)); }, a);
      },
      x, w);
  check("fft", close, [](Tensor a) { return vt::real(vt::fft::fft(a)); }, x);
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

TEST(MemoryPlan, ValuesHaveLinesAndPlaces) {
  const auto f =
      vt::jit([](Tensor x, Tensor y) { return vt::sum(vt::cumsum(vt::matmul(x, y), 0) * 2.0, 0); });
  const int line = __LINE__ - 1;
  const vt::Memory m = f.memory(vt::ones({64, 128}), vt::ones({128, 256}));
  ASSERT_GE(m.values.size(), 3u);
  for (std::size_t i = 1; i < m.values.size(); ++i)
    EXPECT_GE(m.values[i - 1].bytes, m.values[i].bytes);
  bool product = false, result = false, input = false;
  for (const vt::Memory::Value& v : m.values) {
    if (v.what.find("dot_general f32[64,256]") == 0)
      product = v.where.line == line && v.bytes == 64 * 256 * 4;
    if (v.what.find("f32[256]") != std::string::npos && v.place == "result")
      result = v.bytes == 1024;
    input = input || (v.what == "f32[128,256]" && v.place == "input" && v.bytes == 128 * 256 * 4);
    EXPECT_LE(v.from, v.until);
  }
  EXPECT_TRUE(product) << m.str();
  EXPECT_TRUE(result) << m.str();
  EXPECT_TRUE(input) << m.str();
  EXPECT_EQ(m.str().find(std::to_string(m.peak()) + " bytes at most: inputs "), 0u) << m.str();
}

// How many values like the result of `shape` outlive the step that makes them.
int kept(const vt::Memory& m, const std::string& type) {
  int count = 0;
  for (const vt::Memory::Value& v : m.values)
    count += v.what.size() > type.size() && v.what.ends_with(type) && v.place != "input" &&
             v.place != "result" && v.until > v.from;
  return count;
}

// What runs take beside their results is taken on several threads, too.
TEST(MemoryPlan, AnyLimitIsAnErrorWithTheLineOrNoneOnThreads) {
  if (!has_compiler()) GTEST_SKIP() << "of compiled steps";
  const int threads = vt::num_threads();
  vt::set_num_threads(2);
  const Tensor a = vt_test::random_tensor(vt::f32, {4, 400, 400}, 1).eval(),
               b = vt_test::random_tensor(vt::f32, {4, 400, 400}, 2).eval();
  const auto product = [](Tensor x, Tensor y) { return vt::matmul(x, y); };
  const auto attention = [](Tensor x, Tensor y) {
    return vt::matmul(vt::softmax(vt::matmul(x, vt::matrix_transpose(y))), y);
  };
  const auto rows = [](Tensor x, Tensor y) { return vt::linalg::solve(x, vt::sort(y, 1)); };
  const auto expect_either = [&](const auto& f, const char* what) {
    const auto fast = vt::jit(f);
    fast(a, b).eval();
    const Tensor expected = fast(a, b).eval();
    int failed = 0, worked = 0;
    for (std::size_t room = 0; room <= (std::size_t{16} << 20); room += std::size_t{1} << 19) {
      vt::detail::trim_pool();
      vt::detail::set_memory_limit(vt::detail::pool_use().in_use + room);
      try {
        const Tensor result = fast(a, b).eval();
        vt::detail::set_memory_limit(0);
        vt_test::expect_close(result, expected, vt_test::exact, what);
        ++worked;
      } catch (const vt::Error& e) {
        vt::detail::set_memory_limit(0);
        EXPECT_EQ(e.kind(), vt::ErrorKind::memory) << e.what();
        EXPECT_NE(std::string(e.what()).find("at memory_plan_test.cpp:"), std::string::npos)
            << e.what();
        ++failed;
      }
    }
    EXPECT_GT(failed, 4) << what;
    EXPECT_GT(worked, 0) << what;
  };
  expect_either(product, "product");
  expect_either(attention, "attention");
  expect_either(rows, "solve and sort");
  vt::set_num_threads(threads);
}

TEST(MemoryPlan, GradientsKeepOnlyWhatIsDear) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter keeps each value";
  const Tensor x = (vt::ones({256, 512}) * 0.5).eval(), w = (vt::ones({512, 512}) * 0.01).eval();
  // Element-wise functions and their derivatives are one kernel: nothing is kept.
  const auto f =
      vt::jit(vt::grad([](Tensor a) { return vt::sum(vt::exp(vt::tanh(a) * 2.0) * vt::sin(a)); }));
  const vt::Memory alone = f.memory(x);
  EXPECT_EQ(alone.scratch, 0u) << alone.str();
  f(x).eval();
  vt::reset_stats();
  f(x).eval();
  EXPECT_EQ(vt::stats().launches, 1u);
  EXPECT_EQ(vt::stats().bytes, 2u * 256 * 512 * 4);
  // Behind a product the backward pass reads what was made of it: one array, from which cheap
  // derivatives are made again.
  const auto layer = [&](auto activation) {
    return vt::jit([=](Tensor a, Tensor b) {
      return vt::grad([&](Tensor v) { return vt::sum(vt::square(activation(vt::matmul(a, v)))); })(
          b);
    });
  };
  const auto expect_one = [&](const auto& g, const char* what) {
    const vt::Memory m = g.memory(x, w);
    EXPECT_EQ(kept(m, "f32[256,512]"), 1) << what << "\n" << m.str();
    static_cast<void>(g(x, w));
    vt::reset_stats();
    g(x, w).eval();
    EXPECT_EQ(vt::stats().launches, 0u) << what;  // both passes run on rows of the product
    EXPECT_EQ(vt::stats().product_epilogues, 1u) << what;
  };
  expect_one(layer([](Tensor a) { return vt::tanh(a); }), "tanh");
  expect_one(layer([](Tensor a) { return vt::relu(a); }), "relu");
  expect_one(layer([](Tensor a) { return a * a * 0.5 + a; }), "polynomial");
  // Two layers: the second needs the first one's result and what its derivative is made of.
  const auto two = vt::jit([](Tensor a, Tensor b) {
    return vt::grad([&](Tensor v) {
      const auto act = [](Tensor h) { return h * h * 0.5 + h; };
      return vt::sum(vt::square(act(vt::matmul(act(vt::matmul(a, v)), v))));
    })(b);
  });
  const vt::Memory m = two.memory(x, w);
  EXPECT_LE(kept(m, "f32[256,512]"), 4) << m.str();
}

TEST(MemoryPlan, ChainsReuseBuffers) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter keeps each value";
  const Tensor x = vt::ones({256, 512}).eval();
  const std::uint64_t bytes = 256 * 512 * 4;
  const auto sums = [](Tensor a) {
    return vt::cumsum(vt::cumsum(vt::cumsum(vt::cumsum(vt::cumsum(a, 0), 1), 0), 1), 0);
  };
  EXPECT_EQ(vt::jit(sums).memory(x).scratch, 0u);  // all in the result's memory
  EXPECT_LE(vt::jit([&](Tensor a) { return vt::sum(sums(a)); }).memory(x).scratch, bytes + 4096);
  const auto updates = vt::jit([](Tensor a) {
    for (int i = 0; i < 4; ++i)
      a = vt::dynamic_update_slice(a, vt::ones({1, 512}) * static_cast<double>(i), {i, 0});
    return vt::sum(a);
  });
  EXPECT_LE(updates.memory(x).scratch, bytes + 16384) << updates.memory(x).str();
  // All states of a loop are one array, beside what it began with.
  const auto loop = vt::jit([](Tensor a) {
    return vt::fori_loop(
        0, 8, [](Tensor, Tensor s) { return vt::tanh(s) + 1.0; }, vt::cumsum(a, 0));
  });
  EXPECT_LE(loop.memory(x).results + loop.memory(x).scratch, 2 * bytes + bytes / 4)
      << loop.memory(x).str();
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
    EXPECT_NE(std::string(e.what()).find("vt::jit: memory(…) inside another transform"),
              std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("memory_plan_test.cpp"), std::string::npos) << e.what();
  }
}

}  // namespace
