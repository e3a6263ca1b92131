// Deep nesting: what is nested more deeply than the thread's stack holds is an error with the
// user's line, and what is not costs time in proportion to its depth.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "support/property.hpp"

namespace {

using vt::Tensor;

/// Runs `f` on a thread with a stack of so many KiB.
void on_stack(std::size_t kib, const std::function<void()>& f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kib * 1024), 0);
  pthread_t thread;
  const auto run = [](void* of) -> void* {
    (*static_cast<const std::function<void()>*>(of))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&f)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

constexpr std::size_t much = 64 * 1024;  // for builds of all kinds

using Nest = Tensor (*)(int depth, Tensor x);
Tensor leaf(const Tensor& x) { return vt::sin(x) * 0.5; }

Tensor nested_cond(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const auto deeper = [&](Tensor y) { return nested_cond(depth - 1, y) + 1.0; };
  return vt::cond(x > 0.0, deeper, [](Tensor y) { return y * 2.0; }, x);
}
Tensor nested_switch(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const auto deeper = [&](Tensor y) { return nested_switch(depth - 1, y) + 1.0; };
  return vt::switch_((x * 0.0).astype(vt::i32),
                     std::make_tuple(deeper, [](Tensor y) { return y * 2.0; }), x);
}
Tensor nested_while(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  return vt::while_loop([](Tensor y) { return y < 1.0; },
                        [&](Tensor y) { return nested_while(depth - 1, y) + 2.0; }, x);
}
Tensor nested_fori(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  return vt::fori_loop(0, 1, [&](Tensor, Tensor y) { return nested_fori(depth - 1, y) + 1.0; }, x);
}
Tensor nested_iterations(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const Tensor n = (x > 0.0).astype(vt::i32);
  return vt::fori_loop(
      n * 0, n, [&](Tensor, Tensor y) { return nested_iterations(depth - 1, y) + 1.0; }, x);
}
Tensor nested_scan(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const auto step = [&](Tensor c, Tensor one) {
    return std::pair(nested_scan(depth - 1, c) + one, c);
  };
  return vt::scan(step, x, vt::ones({1}, vt::f64)).first;
}
Tensor nested_checkpoint(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  return vt::checkpoint([&](Tensor y) { return nested_checkpoint(depth - 1, y) + 1.0; })(x);
}
Tensor nested_rule(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const auto rule = [](Tensor y, Tensor dy) { return std::pair(y, dy); };
  return vt::custom_jvp([&](Tensor y) { return nested_rule(depth - 1, y) + 1.0; }, rule)(x);
}
Tensor nested_jit(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  return vt::jit([&](Tensor y) { return nested_jit(depth - 1, y) + 1.0; })(x);
}
Tensor nested_function(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  return vt::function("level" + std::to_string(depth),
                      [&](Tensor y) { return nested_function(depth - 1, y) + 1.0; })(x);
}
Tensor nested_vmap(int depth, Tensor x) {
  if (depth == 0) return leaf(x);
  const auto lane = [&](Tensor y) { return nested_vmap(depth - 1, x) + y; };
  return vt::mean(vt::vmap(lane)(vt::ones({2}, vt::f64)));
}

const std::map<std::string, Nest> nests = {
    {"cond", nested_cond},         {"switch", nested_switch},
    {"while", nested_while},       {"fori", nested_fori},
    {"rounds", nested_iterations}, {"scan", nested_scan},
    {"rule", nested_rule},         {"checkpoint", nested_checkpoint},
    {"jit", nested_jit},           {"function", nested_function},
    {"vmap", nested_vmap},
};
double at_half(const std::string& name, int depth) {
  return leaf(vt::tensor(0.5)).item<double>() + (name == "while" ? 2 : 1) * depth;
}

TEST(Nesting, TooDeepIsAnError) {
  for (const std::size_t kib : {1024, 8192})
    for (const auto& [name, nest] : nests) {
      SCOPED_TRACE(name + ", a stack of " + std::to_string(kib) + " KiB");
      on_stack(kib, [&, nest = nest, name = name] {
        try {
          vt::jit([&](Tensor x) { return nest(5000, x); })(vt::tensor(0.5));
          FAIL() << "5,000 levels were recorded";
        } catch (const vt::Error& e) {
          const std::string message = e.what();
          const bool says = message.find("nested") != std::string::npos;
          const bool endless = message.find("such a recursion has no end") != std::string::npos;
          EXPECT_TRUE(says || (name == "function" && endless)) << message;
          EXPECT_NE(message.find("nesting_test.cpp:"), std::string::npos)
              << "no line in: " << message;
        }
      });
    }
}

TEST(Nesting, SmallStacksHoldSomeLevels) {
  for (const auto& [name, nest] : nests) {
    SCOPED_TRACE(name);
    on_stack(1024, [&, nest = nest, name = name] {
      const auto f = [&](Tensor x) { return nest(16, x); };
      EXPECT_NEAR(vt::jit(f)(vt::tensor(0.5)).item<double>(), at_half(name, 16), 1e-9);
    });
  }
}

TEST(Nesting, HundredsOfLevels) {
  for (const auto& [name, nest] : nests) {
    SCOPED_TRACE(name);
    on_stack(much, [&, nest = nest, name = name] {
      const auto f = [&](Tensor x) { return nest(600, x); };
      EXPECT_NEAR(vt::jit(f)(vt::tensor(0.5)).item<double>(), at_half(name, 600), 1e-9);
    });
  }
}

// Each level's program was simplified with all levels inside of it, so that twice as many levels
// took four times as long.
TEST(Nesting, TimeGrowsWithTheDepth) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what a sanitizer takes for each allocation is most of the time";
#endif
  for (const char* name : {"cond", "switch", "while", "rounds"}) {
    SCOPED_TRACE(name);
    on_stack(much, [&, nest = nests.at(name)] {
      // Of the processors: on a busy machine the clock on the wall measures the others.
      const auto processor = [] {
        timespec t = {};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
      };
      const auto time = [&](int depth, double& least) {
        const double begin = processor();
        vt::jit([&](Tensor x) { return nest(depth, x); })(vt::tensor(0.5)).eval();
        vt::wait_compiled();
        least = std::min(least, processor() - begin);
      };
      double few = 1e9, many = 1e9, first = 1e9;
      time(60, first);  // what is made once
      for (int i = 0; i < 3; ++i)
        time(60, few), time(300, many);  // in turn: a slow moment of the machine meets both
      // Five times as deep takes ten to twelve times as long; by the square it would be 25.
      EXPECT_LT(many, 18 * few) << "300 levels: " << many << " s, 60 levels: " << few << " s";
    });
  }
}

// Recorded where there is room for them, levels may be met on a thread that has none.
TEST(Nesting, OtherThreads) {
  for (const char* name : {"cond", "while", "rounds"}) {
    SCOPED_TRACE(name);
    const Nest nest = nests.at(name);
    auto f = vt::function("deep", [&](Tensor x) { return nest(600, x); });
    auto compiled = vt::jit([&](Tensor x) { return f(x); });
    on_stack(much, [&] {
      EXPECT_NEAR(compiled(vt::tensor(0.5)).item<double>(), at_half(name, 600), 1e-9);
    });
    const auto refused = [&](const auto& use) {
      try {
        use();
        ADD_FAILURE() << "600 levels on a small stack";
      } catch (const vt::Error& e) {
        EXPECT_NE(std::string(e.what()).find("deeper than the stack of this thread holds"),
                  std::string::npos)
            << e.what();
      }
    };
    on_stack(192, [&] {
      refused([&] { compiled(vt::tensor(0.5)).eval(); });
      refused([&] { vt::jit([&](Tensor x) { return f(x); })(vt::tensor(0.5)).eval(); });
      refused([&] { f(vt::tensor(0.5)).eval(); });
      refused([&] { vt::make_graph([&](Tensor x) { return f(x); })(vt::tensor(0.5)).str(); });
      EXPECT_EQ((vt::tensor(1.0) + 1.0).item<double>(), 2.0);
    });
  }
}

// Each of them compiled a program of its own, which nobody ran.
TEST(Nesting, FunctionsJittedInsideOfOthersAreNotCompiledAlone) {
  auto inner = vt::jit([](Tensor x) { return vt::sin(x) + 1.0; });
  auto outer = vt::jit([&](Tensor x) { return inner(x) * 2.0; });
  const Tensor x = vt::tensor(0.5);
  const auto before = vt::stats().programs;
  const double whole = outer(x).item<double>();
  const auto after = vt::stats().programs;
  EXPECT_LE(after, before + 1);
  EXPECT_EQ(inner(x).item<double>() * 2.0, whole) << "called from outside it is compiled";
}

TEST(Nesting, LongChainsTakeNoStack) {
  on_stack(1024, [] {
    Tensor x = vt::tensor(0.5);
    for (int i = 0; i < 100'000; ++i) x = x + 1.0;
    EXPECT_EQ(x.item<double>(), 100'000.5);
    Tensor never = vt::tensor(0.5);
    for (int i = 0; i < 4000; ++i) never = vt::sin(never);
  });
}

}  // namespace
