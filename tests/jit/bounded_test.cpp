// Processes that go on for long: kernels, programs and what is kept of signatures are bounded, and
// running out of memory for code is no end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cpu/llvm/code_cache.hpp"
#include "src/jit/cpu/llvm/code_memory.hpp"
#include "src/jit/services/background.hpp"
#include "src/trace/base/recent_map.hpp"

namespace {

using vt::Tensor;

const bool no_disk_cache = ::setenv("VT_CACHE_DIR", "", 1) == 0;

bool compiles() {
  vt::jit([](Tensor x) { return x + 1.0; })(vt::ones({3})).eval();
  return vt::stats().launches > 0;
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// A kernel of its own for each number.
Tensor chain(Tensor x, const Tensor& y, int number) {
  for (int bit = 0; bit < 12; ++bit) x = (number >> bit) & 1 ? vt::maximum(x, y) : x * y;
  return x;
}

TEST(RecentMap, DropsWhatWasUsedLongestAgo) {
  vt::detail::RecentMap<int, int> map(3);
  vt::Vec<int> gone;
  for (int i = 0; i < 3; ++i) map.emplace(i, 10 * i, gone);
  EXPECT_TRUE(gone.empty());
  ASSERT_NE(map.find(0), nullptr);
  map.emplace(3, 30, gone);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0], 10);
  EXPECT_NE(map.find(0), nullptr);
  EXPECT_EQ(map.find(1), nullptr);
  map.set_most(1, gone);
  EXPECT_EQ(map.size(), 1u);
}

#if VT_HAS_LLVM_HEADERS
using namespace vt::detail::cpu;

TEST(Bounded, KernelsShareMappingsAndAreUnloaded) {
  if (!compiles() || !can_load_objects()) GTEST_SKIP() << "no kernels of vt's own loader";
  const Tensor x = vt::full({5}, 0.5).eval(), y = vt::full({5}, 1.25).eval();
  set_most_kernels(64);
  [[maybe_unused]] const std::size_t before = mappings();
  for (int i = 0; i < 300; ++i) {
    const auto f = vt::jit([i](Tensor a, Tensor b) { return chain(a, b, i); });
    float wanted = 0.5f;
    for (int bit = 0; bit < 12; ++bit)
      wanted = (i >> bit) & 1 ? std::max(wanted, 1.25f) : wanted * 1.25f;
    EXPECT_EQ(f(x, y).to_vector<float>(), std::vector<float>(5, wanted)) << i;
  }
  // each may be there unoptimised and optimised, and what runs has some
  EXPECT_LE(code_use().kernels, 200u);
  EXPECT_LE(code_use().mappings, 8u);
#ifndef __SANITIZE_THREAD__  // which maps memory of its own all the time
  EXPECT_LE(mappings(), before + 40);
#endif
  set_most_kernels(most_kernels);
}

TEST(Bounded, KernelsGoAndComeOnManyThreads) {
  if (!compiles() || !can_load_objects()) GTEST_SKIP() << "no kernels of vt's own loader";
  const Tensor x = vt::full({5}, 0.5).eval(), y = vt::full({5}, 1.25).eval();
  set_most_kernels(4);
  std::vector<std::vector<float>> wanted;
  for (int i = 0; i < 12; ++i) wanted.push_back(chain(x, y, i).to_vector<float>());
  const auto f = vt::jit([](Tensor a, Tensor b, int n) { return chain(a, b, n); }, {.programs = 3});
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i)
        wrong[t] += f(x, y, (i * 5 + t) % 12).to_vector<float>() != wanted[(i * 5 + t) % 12];
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  set_most_kernels(most_kernels);
}

TEST(Bounded, RunsOutOfMemoryForCode) {
  if (!compiles() || !can_load_objects()) GTEST_SKIP() << "no kernels of vt's own loader";
  const Tensor x = vt::full({5}, 0.5).eval(), y = vt::full({5}, 1.25).eval();
  drop_unused_code();
  set_code_limit(std::size_t{1} << 20);
  // What is dropped makes room: 300 of these are more than fit.
  for (int i = 1000; i < 1400; ++i) chain(x, y, i).eval();
  for (int i = 1000; i < 1400; ++i)
    vt::jit([i](Tensor a, Tensor b) { return chain(a, b, i); })(x, y).eval();
  EXPECT_EQ(vt::warnings().find("could not be compiled"), std::string::npos) << vt::warnings();
  // Nothing may be dropped of a function that is kept.
  const auto f =
      vt::jit([](Tensor a, Tensor b, int n) { return chain(a, b, n); }, {.programs = 1000});
  const char* backend = std::getenv("VT_BACKEND");
  bool threw = false;
  try {
    for (int i = 2000; i < 2600; ++i) f(x, y, i).eval();
  } catch (const vt::Error& e) {
    threw = true;
    EXPECT_NE(std::string(e.what()).find("there is no memory for it"), std::string::npos)
        << e.what();
  }
  set_code_limit(SIZE_MAX);
  EXPECT_EQ(threw, backend && std::string(backend) == "cpu");
  const std::string said = vt::warnings();
  const auto first = said.find("could not be compiled");
  EXPECT_EQ(first != std::string::npos, !threw) << said;
  if (!threw) {
    EXPECT_EQ(said.find("could not be compiled", first + 1), std::string::npos) << said;
  }
  EXPECT_EQ(vt::jit([](Tensor a) { return a * 3.0; })(x).to_vector<float>()[0], 1.5f)
      << "and goes on";
}
#endif

struct Hyper {
  double rate;
  int epoch;
};

TEST(Bounded, ProgramsOfAJittedFunction) {
  int recorded = 0;
  const auto f =
      vt::jit([&recorded](Tensor x, int n) { return ++recorded, x * n; }, {.programs = 4});
  const Tensor x = vt::ones({3});
  for (int n = 0; n < 6; ++n) EXPECT_EQ(f(x, n).to_vector<float>()[0], static_cast<float>(n));
  EXPECT_EQ(recorded, 6);
  for (int n = 5; n >= 2; --n) f(x, n);
  EXPECT_EQ(recorded, 6) << "the four used last are there";
  for (int n = 6; n < 20; ++n) f(x, 2), f(x, n);
  EXPECT_EQ(recorded, 20) << "2 stays";
  f(x, 3);
  EXPECT_EQ(recorded, 21) << "3 does not";
  EXPECT_THROW((void)vt::jit([](Tensor a) { return a; }, {.programs = 0}), vt::Error);
}

TEST(Bounded, WarnsOfWhatKeepsChanging) {
  const auto step = vt::jit([](Tensor w, Hyper h) { return w * (h.rate * h.epoch); });
  const auto text =
      vt::jit([](std::string name, Tensor w) { return w * static_cast<double>(name.size()); });
  const auto sizes = vt::jit([](std::pair<Tensor, Tensor> p) { return p.first + p.second; });
  const auto named = vt::function("halved", [](Tensor w, int n) { return w * (0.5 * n); });
  const Tensor w = vt::ones({3, 1});
  const auto count = [](const std::string& what) {
    const std::string all = vt::warnings();
    std::size_t n = 0;
    for (std::size_t at = all.find(what); at != std::string::npos; at = all.find(what, at + 1)) ++n;
    return n;
  };
  for (int i = 1; i <= 70; ++i) {
    if (i == 31) {
      EXPECT_EQ(count("vt::jit: argument 1 ."), 0u) << vt::warnings();
    }
    step(w, Hyper{0.5, i});
    text("run " + std::to_string(i), w);
    sizes(std::pair(w, vt::ones({3, i})));
    named(w, i);
  }
  EXPECT_EQ(count("vt::jit: argument 1 ."), 1u) << vt::warnings();
  EXPECT_EQ(count("vt::jit: argument 0 has had 32 different values"), 1u) << vt::warnings();
  EXPECT_EQ(count("vt::jit: axis 1 of argument 0 [1] has had 32 different lengths"), 1u)
      << vt::warnings();
  EXPECT_EQ(count("vt::function halved: argument 1 has had 32"), 1u) << vt::warnings();
  EXPECT_GE(count("bounded_test.cpp:"), 3u) << vt::warnings();
}

Tensor scaled(Tensor x, const Tensor& by) { return x * by; }

TEST(Bounded, BareNumbersForTensorsAreNotStatic) {
  int recorded = 0;
  const auto f = vt::jit([&recorded](Tensor x, Tensor s) { return ++recorded, x * s; });
  const auto g = vt::jit(scaled);
  const auto n =
      vt::function("scaled", [&recorded](Tensor x, Tensor s) { return ++recorded, x * s; });
  const Tensor x = vt::ones({2}, vt::f32);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(f(x, i * 0.5).to_vector<float>()[1], static_cast<float>(i) * 0.5f);
    EXPECT_EQ(g(x, i).to_vector<float>()[1], static_cast<float>(i));
  }
  EXPECT_EQ(recorded, 1);
  EXPECT_EQ(f(x, 3.0).dtype(), vt::f32) << "a weak number, as in x * 3.0";
  for (int i = 0; i < 5; ++i) n(x, i * 0.5).eval();
  EXPECT_EQ(recorded, 2);
  EXPECT_EQ(f.explain_steps(x, 9.0), f.explain_steps(x, 1.0));
  const auto generic = vt::jit([&recorded](auto a, int k) { return ++recorded, a * k; });
  generic(x, 1), generic(x, 2);
  EXPECT_EQ(recorded, 4) << "other numbers are static";
}

}  // namespace
