// memory_limit: lanes at a time are chosen so that the most that is asked of the allocator stays
// below it; results are those of all at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>

#include <vt/vt.hpp>

#include "src/trace/base/buffer.hpp"

namespace {

using vt::Tensor;

// The most that was asked of the allocator while f ran, with what was there before for it.
template <class F>
std::uint64_t measured(std::uint64_t arguments, const F& f) {
  const std::uint64_t before = vt::detail::pool_use().asked;
  vt::detail::reset_pool_peak();
  const auto kept = f();
  return vt::detail::pool_use().asked_peak - before + arguments;
}

void expect_same(Tensor a, Tensor b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_LE(vt::max(vt::abs(a - b)).item<float>(),
            1e-5f * std::max(1.0f, vt::max(vt::abs(b)).item<float>()))
      << what;
}

// make(limit) gives a function of no arguments; limits between what one lane and what all lanes
// need.
template <class Make>
void check(const char* what, std::uint64_t arguments, const Make& make,
           std::initializer_list<std::int64_t> limits) {
  const Tensor wanted = make(0)().eval();
  const std::uint64_t all = measured(arguments, [&] { return make(0)().eval(); });
  for (std::int64_t limit : limits) {
    ASSERT_LT(static_cast<std::uint64_t>(limit), all)
        << what << ": all lanes at once stay below this limit";
    Tensor got;
    const std::uint64_t used = measured(arguments, [&] { return got = make(limit)().eval(); });
    EXPECT_LE(used, static_cast<std::uint64_t>(limit)) << what;
    EXPECT_GE(used, static_cast<std::uint64_t>(limit) / 3) << what << ": too few lanes at a time";
    expect_same(got, wanted, what);
  }
}

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

const Tensor& weights() {
  static const Tensor w = (vt::random::normal(vt::random::key(1), {300, 300}) * 0.05).eval();
  return w;
}

TEST(MemoryLimit, Jacobians) {
  if (!has_compiler()) GTEST_SKIP() << "large arrays; the interpreter keeps each value";
  const Tensor x = vt::random::normal(vt::random::key(2), {300}).eval();
  const Tensor& w = weights();
  const auto f = [&](Tensor v) {
    return vt::tanh(vt::matmul(w, vt::sin(vt::matmul(w, vt::tanh(vt::matmul(w, v))))));
  };
  const std::uint64_t given = 300 * 300 * 4 + 300 * 4;
  // Results are 360 kB, and so are the arguments.
  check(
      "jacrev", given,
      [&](std::int64_t limit) { return [=] { return vt::jacrev(f, {.memory_limit = limit})(x); }; },
      {1000000, 1200000});
  check(
      "jacfwd", given,
      [&](std::int64_t limit) { return [=] { return vt::jacfwd(f, {.memory_limit = limit})(x); }; },
      {1000000, 1200000});
  check("jacobian", given,
        [&](std::int64_t limit) {
          return [=] { return vt::jacobian(f, {.memory_limit = limit})(x); };
        },
        {1000000, 1200000});
  const auto g = [&](Tensor v) { return vt::sum(vt::square(f(v))); };
  check("hessian", given,
        [&](std::int64_t limit) {
          return [=] { return vt::hessian(g, {.memory_limit = limit})(x); };
        },
        {1200000, 1600000});
}

TEST(MemoryLimit, Lanes) {
  if (!has_compiler()) GTEST_SKIP() << "large arrays; the interpreter keeps each value";
  const Tensor xs = vt::random::normal(vt::random::key(3), {200, 300}).eval();
  const Tensor& w = weights();
  const auto f = [&](Tensor v) {
    return vt::sum(vt::cumsum(vt::sin(vt::outer(v, vt::cumsum(vt::matmul(w, v)))), 0), 1);
  };
  const std::uint64_t given = 300 * 300 * 4 + 200 * 300 * 4;
  check(
      "vmap", given,
      [&](std::int64_t limit) { return [=] { return vt::vmap(f, {.memory_limit = limit})(xs); }; },
      {8000000, 20000000});
  check("vmap to axis 1", given,
        [&](std::int64_t limit) {
          return [=] { return vt::vmap(f, {.out_axes = 1, .memory_limit = limit})(xs); };
        },
        {8000000, 20000000});
  check("pfor", given,
        [&](std::int64_t limit) {
          return [=] {
            return vt::pfor([&](Tensor i) { return f(xs[i]); }, 200, {.memory_limit = limit});
          };
        },
        {8000000, 20000000});
  // Chunks that are asked for are not made larger.
  const Tensor few = vt::vmap(f, {.chunk = 3, .memory_limit = 20000000})(xs);
  expect_same(few, vt::vmap(f)(xs), "chunk and limit");
}

TEST(MemoryLimit, EnoughForAllIsOneProgram) {
  const Tensor xs = vt::ones({50, 20}).eval();
  const auto f = [](Tensor v) { return vt::tanh(v) * 2.0; };
  vt::vmap(f)(xs).eval();
  vt::vmap(f)(xs).eval();
  vt::reset_stats();
  vt::vmap(f, {.memory_limit = 1 << 20})(xs).eval();
  EXPECT_LE(vt::stats().programs, 1u);  // nothing planned is counted, nothing is cut
  EXPECT_LE(vt::stats().programs_run, 1u);
}

TEST(MemoryLimit, InsideJit) {
  if (!has_compiler()) GTEST_SKIP() << "large arrays; the interpreter keeps each value";
  const Tensor x = vt::random::normal(vt::random::key(2), {300}).eval();
  const Tensor& w = weights();
  const auto f = [&](Tensor v) { return vt::tanh(vt::matmul(w, vt::sin(vt::matmul(w, v)))); };
  const auto jacobian = vt::jit(vt::jacrev(f, {.memory_limit = 1000000}));
  expect_same(jacobian(x), vt::jacrev(f)(x), "jit");
}

TEST(MemoryLimit, TooLittleIsAnError) {
  if (!has_compiler()) GTEST_SKIP() << "large arrays; the interpreter keeps each value";
  const Tensor x = vt::ones({300}).eval();
  const Tensor& w = weights();
  const auto f = [&](Tensor v) { return vt::tanh(vt::matmul(w, vt::sin(vt::matmul(w, v)))); };
  try {
    vt::jacrev(f, {.memory_limit = 500000})(x);
    FAIL() << "nothing was thrown";
  } catch (const vt::Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.kind(), vt::ErrorKind::memory);
    for (const char* part :
         {"vt::jacrev: one lane at a time needs ", "more than the memory_limit of 488.2 KiB",
          "all results 352.7 KiB, a lane ", "f32[300,300]", "memory_limit_test.cpp:"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  // Of a small program whose first run is interpreted, the values of that run.
  try {
    vt::vmap([](Tensor v) { return vt::sum(vt::tanh(vt::outer(v, v))); },
             {.memory_limit = 100})(vt::ones({3, 100}));
    FAIL() << "nothing was thrown";
  } catch (const vt::Error& e) {
    const bool log =
        std::string(e.what()).find("[1,100,100] (39.0 KiB, own; at memory_limit_test.cpp:") !=
        std::string::npos;
    EXPECT_TRUE(log || std::getenv("VT_BACKEND")) << e.what();
  }
  try {
    vt::vmap([](Tensor v) { return v; }, {.memory_limit = -1})(x);
    FAIL() << "nothing was thrown";
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("vt::vmap: memory_limit -1 must not be negative"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
