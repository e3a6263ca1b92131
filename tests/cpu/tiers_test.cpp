// Kernels that run unoptimised at first: the same bits before and after they are replaced, whoever
// runs them meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/primitive_cases.hpp"
#include "support/property.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;

// Read once, when the first Graph is compiled: what other tests keep on disk is optimised already.
const bool fresh = [] {
  ::setenv("VT_CACHE_DIR", "", 1);
  ::unsetenv("VT_CPU_LEVEL");
  ::unsetenv("VT_TIERS");
  return true;
}();

bool compiles() {
  vt::jit([](Tensor x) { return x + 1.0; })(vt::ones({3})).eval();
  return vt::stats().launches > 0;
}

struct Prepared {
  std::string name;
  std::shared_ptr<Executable> program;
  vt::Vec<BufferRef> inputs, before;
  std::vector<Aval> avals;
};

Prepared prepared(const FlatFunction& f, const std::vector<Tensor>& arguments,
                  const std::string& name) {
  Prepared p;
  p.name = name;
  std::vector<Aval> avals;
  for (const Tensor& t : arguments) {
    avals.push_back(Aval(t.dtype(), t.shape()));
    p.inputs.push_back(value_of(t, {}));
  }
  const Recorded recorded = record(f, avals, {});
  for (const Tensor& t : recorded.captured) p.inputs.push_back(value_of(t, {}));
  p.program = compile_graph(recorded.graph);
  p.before = p.program->run(p.inputs);
  for (Var v : recorded.graph.outputs) p.avals.push_back(recorded.graph.aval(v));
  return p;
}

void expect_same_bits(const Prepared& p) {
  const vt::Vec<BufferRef> after = p.program->run(p.inputs);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i]->bytes == 0 ||
        std::memcmp(after[i]->data, p.before[i]->data, after[i]->bytes) == 0)
      continue;
    // Which of two NaN an addition hands on is nobody's promise; that it is one is.
    vt_test::expect_close(from_buffer(after[i], p.avals[i]), from_buffer(p.before[i], p.avals[i]),
                          {}, p.name + " result " + std::to_string(i));
  }
}

TEST(Tiers, EveryPrimitiveHasTheSameBitsInBoth) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  std::uint64_t seed = 1;
  std::vector<Prepared> all;
  for (const vt_test::PrimitiveCase& c : vt_test::primitive_cases()) {
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(c.operand(i, seed++));
    all.push_back(
        prepared([&](std::span<const Tensor> a) { return c.run(a); }, operands, c.name()));
  }
  const std::uint64_t quick = vt::stats().kernels_unoptimised;
  EXPECT_GT(quick, 200u);
  vt::wait_compiled();
  EXPECT_EQ(vt::stats().kernels_optimised, quick);
  EXPECT_EQ(vt::warnings().find("stays unoptimised"), std::string::npos) << vt::warnings();
  for (const Prepared& p : all) {
    EXPECT_EQ(p.program->explain_steps().find("not optimised yet"), std::string::npos) << p.name;
    expect_same_bits(p);
  }
}

/// Reductions both ways, a softmax, special functions, a loop and a branch in registers, matrices:
/// long enough for vectors and tails.
std::vector<Tensor> mixture(const Tensor& x) {
  const Tensor rows = vt::reshape(x, {7, 19}), e = vt::exp(rows - vt::max(rows, 1, true));
  const Tensor loop = vt::vmap([](Tensor v) {
    return vt::fori_loop(
        0, 9,
        [](Tensor i, Tensor y) {
          return vt::sin(y) * 1.25 + y * y / (1.5 + y * y) + i.astype(vt::f32) * 0.01;
        },
        v);
  })(x);
  const Tensor branch = vt::vmap([](Tensor v) {
    return vt::cond(
        v > 0.0, [](Tensor u) { return vt::log1p(u); }, [](Tensor u) { return vt::erf(u) * u; }, v);
  })(x);
  const Tensor square = vt::matmul(vt::transpose(rows), rows) + vt::eye(19, vt::f32) * 20.0f;
  return {e / vt::sum(e, 1, true),
          vt::sum(rows, 0),
          vt::cumsum(x),
          loop,
          branch,
          vt::linalg::solve(vt::slice(square, {0, 0}, {4, 4}), vt::ones({4, 2}, vt::f32)),
          vt::lgamma(vt::abs(x) + 0.5f),
          square};
}

TEST(Tiers, MixturesAndTheirGradientsHaveTheSameBitsInBoth) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  std::vector<Prepared> all;
  for (const vt::DType d : {vt::f32, vt::f64, vt::bf16, vt::f16}) {
    const Tensor x = vt_test::random_tensor(d, {133}, -2, 2, 17);
    const auto total = [&](const Tensor& v) {
      Tensor sum = vt::tensor(0.0);
      for (const Tensor& t : mixture(v.astype(vt::f32)))
        sum = sum + vt::sum(t.astype(vt::f64) * 0.5);
      return sum;
    };
    all.push_back(prepared([&](std::span<const Tensor> a) { return mixture(a[0].astype(vt::f32)); },
                           {x}, "mixture"));
    all.push_back(prepared(
        [&](std::span<const Tensor> a) { return std::vector<Tensor>{vt::grad(total)(a[0])}; }, {x},
        "gradient"));
  }
  vt::wait_compiled();
  for (const Prepared& p : all) expect_same_bits(p);
}

TEST(Tiers, ThreadsRunWhatIsBeingReplaced) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  vt::wait_compiled();
  vt::reset_stats();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 8; ++n) {
        const Tensor x = (vt::arange(50 + n) * 0.125).eval();
        const auto f =
            vt::jit([n](Tensor x) { return vt::sum(vt::tanh(x * (1.0 + 0.25 * n)) * vt::cos(x)); });
        const double first = f(x).item<double>();
        for (int again = 0; again < 200; ++again) wrong += f(x).item<double>() != first;
        if (t == 0) vt::wait_compiled();
        wrong += f(x).item<double>() != first;
      }
    });
  for (std::thread& t : threads) t.join();
  vt::wait_compiled();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(vt::stats().kernels_unoptimised, 0u);
  EXPECT_EQ(vt::stats().kernels_optimised, vt::stats().kernels_unoptimised);
}

TEST(Tiers, FunctionsMayGoBeforeTheThreadOptimisesTheirKernels) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  for (int n = 0; n < 5; ++n) {
    const auto f = vt::jit([n](Tensor x) { return vt::sinh(x) * (0.5 + n) - vt::exp2(x); });
    f(vt::ones({20 + n})).eval();
  }
  vt::wait_compiled();
  EXPECT_EQ(vt::stats().kernels_optimised, vt::stats().kernels_unoptimised);
}

TEST(Tiers, MuchWorkIsOptimisedAtOnce) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  vt::wait_compiled();
  vt::reset_stats();
  vt::jit([](Tensor x) { return vt::sum(vt::sin(x) * 3.0 + 0.5); })(vt::ones({3'000'000})).eval();
  vt::jit([](Tensor a) { return vt::matmul(a, a) * 0.5; })(vt::ones({300, 300})).eval();
  EXPECT_EQ(vt::stats().kernels_unoptimised, 0u);
  EXPECT_GT(vt::stats().kernels_compiled, 1u);
  // How many rounds it takes is not known.
  const auto halve = vt::jit([](Tensor x) {
    return vt::while_loop([](Tensor v) { return v > 1.0; },
                          [](Tensor v) { return v * 0.5 + 0.0625; }, x);
  });
  halve(vt::tensor(100.0)).eval();
  EXPECT_EQ(vt::stats().kernels_unoptimised, 0u);
}

TEST(Tiers, ExplainTellsWhatRuns) {
  if (!compiles()) GTEST_SKIP() << "interpreted";
  const auto f = vt::jit([](Tensor x) { return vt::atan(x) * 2.0 + vt::sqrt(x); });
  const Tensor x = vt::ones({77});
  f(x).eval();
  vt::wait_compiled();
  const std::string text = vt::explain_steps(f)(x);
  EXPECT_NE(text.find("fuses"), std::string::npos) << text;
  EXPECT_EQ(text.find("not optimised yet"), std::string::npos) << text;
}

}  // namespace
