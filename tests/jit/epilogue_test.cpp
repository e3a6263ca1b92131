// Kernels that run inside matrix products: which are taken in, their values against the
// interpreter, memory, threads.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;
using Flat = vt::detail::FlatFunction;

struct Ran {
  Stats stats;
  Tensors results;
  std::string text;
};

// Compiled as one program and run once; the values must be the interpreter's.
Ran run(const Flat& f, const Tensors& arguments,
        const vt_test::Tolerance& tolerance = vt_test::exact, const std::string& what = {}) {
  std::vector<Aval> avals;
  vt::Vec<BufferRef> inputs;
  for (const Tensor& t : arguments) {
    avals.push_back(Aval(t.dtype(), t.shape()));
    inputs.push_back(value_of(t, {}));
  }
  const GraphBody g = simplify(record(f, avals, {}).graph, SimplifyFor::running);
  reset_stats();
  Ran ran;
  const std::shared_ptr<Executable> program = compile_graph(g);
  const vt::Vec<BufferRef> made = program->run(inputs), expected = interpret(g, inputs);
  ran.stats = stats();
  ran.text = program->explain_steps();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Aval& aval = g.aval(g.outputs[i]);
    ran.results.push_back(from_buffer(made[i], aval));
    vt_test::expect_close(ran.results.back(), from_buffer(expected[i], aval), tolerance,
                          what + "\n" + ran.text);
  }
  return ran;
}

// What a device takes into its products is another matter (cuda_epilogue_test.cpp).
bool on_host(const Ran& ran) { return ran.text.find("program on cuda") == std::string::npos; }

void expect_fused(const Ran& ran, std::uint64_t products = 1) {
  if (!on_host(ran)) return;
  EXPECT_EQ(ran.stats.launches, 0u) << ran.text;
  EXPECT_EQ(ran.stats.matrix_products, products) << ran.text;
  EXPECT_EQ(ran.stats.product_epilogues, products) << ran.text;
  EXPECT_NE(ran.text.find("on its rows as they are done"), std::string::npos) << ran.text;
}
void expect_apart(const Ran& ran, std::uint64_t kernels = 1) {
  if (!on_host(ran)) return;
  EXPECT_EQ(ran.stats.launches, kernels) << ran.text;
  EXPECT_EQ(ran.stats.product_epilogues, 0u) << ran.text;
}

class Epilogues : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<Aval> avals = {Aval(f32, {3})};
    const std::shared_ptr<Executable> program =
        compile_graph(record([](S t) -> Tensors { return {t[0] + 1}; }, avals, {}).graph);
    if (program->explain_steps().rfind("interpreter", 0) == 0) GTEST_SKIP() << "no LLVM";
  }
};

Tensor quarters(DType d, const Shape& shape, std::uint64_t seed) {
  return vt_test::random_quarters(d, shape, seed);
}

// Sums of quarters are exact, so both executors must agree to the last bit whatever the kernel, the
// blocks and the tails.
TEST_F(Epilogues, EveryDtypeAndShape) {
  for (DType d : {f16, bf16, f32, f64, i32})
    for (const auto& [m, n, k] :
         {std::array{5, 9, 7}, {14, 32, 16}, {33, 47, 300}, {150, 130, 270}, {61, 257, 520}}) {
      const Tensor x = quarters(d, {m, k}, 1), w = quarters(d, {k, n}, 2), b = quarters(d, {n}, 3),
                   c = quarters(d, {m, n}, 4);
      const std::string what = std::string(name_of(d)) + " " + std::to_string(m) + "x" +
                               std::to_string(n) + "x" + std::to_string(k);
      expect_fused(run([](S t) -> Tensors { return {relu(matmul(t[0], t[1]) + t[2]) + t[3]}; },
                       {x, w, b, c}, vt_test::exact, what));
      expect_fused(run([](S t) -> Tensors { return {2 * matmul(t[0], t[1]) + t[2]}; }, {x, w, c},
                       vt_test::exact, what));
    }
}

TEST_F(Epilogues, TransposedOperands) {
  for (DType d : {f32, f64, bf16})
    for (const auto& [m, n, k] : {std::array{6, 21, 40}, {64, 300, 290}}) {
      const Tensor b = quarters(d, {n}, 3);
      expect_fused(run([](S t) -> Tensors { return {matmul(transpose(t[0]), t[1]) - t[2]}; },
                       {quarters(d, {k, m}, 1), quarters(d, {k, n}, 2), b}));
      expect_fused(run([](S t) -> Tensors { return {matmul(t[0], transpose(t[1])) - t[2]}; },
                       {quarters(d, {m, k}, 1), quarters(d, {n, k}, 2), b}));
      expect_fused(
          run([](S t) -> Tensors { return {matmul(transpose(t[0]), transpose(t[1])) - t[2]}; },
              {quarters(d, {k, m}, 1), quarters(d, {n, k}, 2), b}));
    }
}

TEST_F(Epilogues, BatchesAndBroadcastOperands) {
  for (const auto& [batch, m, n, k] : {std::array{7, 5, 19, 6}, {3, 40, 130, 200}, {40, 8, 8, 8}}) {
    const Tensor x = quarters(f32, {batch, m, k}, 1), w = quarters(f32, {batch, k, n}, 2),
                 one = quarters(f32, {k, n}, 5);
    // Operands of every broadcast: per batch, per row, per column, a scalar, and rows of a batch.
    for (const Shape& shape : {Shape{batch, 1, n}, Shape{batch, m, 1}, Shape{n}, Shape{},
                               Shape{m, n}, Shape{batch, m, n}, Shape{batch, 1, 1}}) {
      const Tensor b = quarters(f32, shape, 3);
      expect_fused(
          run([](S t) -> Tensors { return {maximum(matmul(t[0], t[1]) * 0.5f + t[2], 0.25f)}; },
              {x, w, b}, vt_test::exact, shape.str()));
      expect_fused(run([](S t) -> Tensors { return {matmul(t[0], t[1]) + t[2]}; }, {x, one, b},
                       vt_test::exact, shape.str()));
    }
  }
}

TEST_F(Epilogues, ConversionsAndOtherDtypes) {
  const Tensor x = quarters(f32, {40, 70}, 1), w = quarters(f32, {70, 33}, 2);
  for (DType to : {bf16, f16, f64, i32, i8})
    expect_fused(run([&](S t) -> Tensors { return {matmul(t[0], t[1]).astype(to)}; }, {x, w}));
  expect_fused(run([](S t) -> Tensors { return {matmul(t[0], t[1]) > 3}; }, {x, w}));
}

TEST_F(Epilogues, CostlyFunctionsAndRowReductions) {
  const vt_test::Tolerance few{.ulps = 16};
  const Tensor x = vt_test::random_tensor(f32, {130, 140}, -0.1, 0.1, 1),
               w = vt_test::random_tensor(f32, {140, 150}, -1, 1, 2),
               b = vt_test::random_tensor(f32, {150}, 3);
  const vt_test::Tolerance sums{.relative = 1e-5, .absolute = 1e-5};
  expect_fused(
      run([](S t) -> Tensors { return {tanh(matmul(t[0], t[1]) + t[2])}; }, {x, w, b}, sums));
  expect_fused(
      run([](S t) -> Tensors { return {softmax(matmul(t[0], t[1]) + t[2])}; }, {x, w, b}, sums));
  const Tensor y = quarters(f32, {130, 140}, 1), v = quarters(f32, {140, 150}, 2);
  expect_fused(run([](S t) -> Tensors { return {max(matmul(t[0], t[1]), 1)}; }, {y, v}, few));
  expect_fused(run([](S t) -> Tensors { return {sum(abs(matmul(t[0], t[1])), -1)}; }, {y, v}, few));
}

TEST_F(Epilogues, ResultIsKeptForOthers) {
  const Tensor x = quarters(f32, {50, 60}, 1), w = quarters(f32, {60, 70}, 2),
               v = quarters(f32, {70, 30}, 3);
  // The product itself is a result, too.
  expect_fused(run(
      [](S t) -> Tensors {
        const Tensor p = matmul(t[0], t[1]);
        return {p, p + 1};
      },
      {x, w}));
  // … or is multiplied again.
  const Ran again = run(
      [](S t) -> Tensors {
        const Tensor p = matmul(t[0], t[1]);
        return {relu(p), matmul(p, t[2])};
      },
      {x, w, v});
  if (on_host(again)) {
    EXPECT_EQ(again.stats.launches, 0u) << again.text;
    EXPECT_EQ(again.stats.matrix_products, 2u);
  }
  EXPECT_EQ(again.stats.product_epilogues, 1u);
}

TEST_F(Epilogues, ChainsOfLayers) {
  const Tensor x = quarters(f32, {64, 40}, 1), w = quarters(f32, {40, 48}, 2),
               b = quarters(f32, {48}, 3), v = quarters(f32, {48, 10}, 4),
               c = quarters(f32, {10}, 5);
  expect_fused(
      run([](S t) -> Tensors { return {matmul(relu(matmul(t[0], t[1]) + t[2]), t[3]) + t[4]}; },
          {x, w, b, v, c}),
      2);
  // A kernel that reads two products belongs to the later one.
  const Ran two =
      run([](S t) -> Tensors { return {matmul(t[0], t[1]) + matmul(t[0] + 1, t[1])}; }, {x, w});
  if (on_host(two)) {
    EXPECT_EQ(two.stats.matrix_products, 2u) << two.text;
  }
  EXPECT_EQ(two.stats.product_epilogues, 1u) << two.text;
}

// An epilogue may write over the product's result, but never over an operand that other rows still
// need.
TEST_F(Epilogues, OperandsAreNotWrittenOver) {
  for (int n : {12, 40, 200}) {
    const Tensor x = quarters(f32, {n, n}, 1);
    run(
        [](S t) -> Tensors {
          const Tensor y = t[0] * 0.5f + 1;
          return {relu(matmul(y, y) + y)};
        },
        {x});
    run(
        [](S t) -> Tensors {
          const Tensor y = cumsum(t[0], 0);
          return {matmul(y, y) * 0.25f - y};
        },
        {x});
    run(
        [](S t) -> Tensors {
          Tensor y = t[0];
          for (int i = 0; i < 4; ++i) y = relu(matmul(y, transpose(y)) * 0.0078125f) + y;
          return {y};
        },
        {x}, {.relative = 1e-5, .absolute = 1e-5});
  }
}

TEST_F(Epilogues, WhatCannotGoByRowsStaysApart) {
  const Tensor x = quarters(f32, {40, 50}, 1), w = quarters(f32, {50, 60}, 2);
  expect_apart(run([](S t) -> Tensors { return {rev(matmul(t[0], t[1]), {0}) + 1}; }, {x, w}));
  expect_apart(run([](S t) -> Tensors { return {sum(abs(matmul(t[0], t[1])), 0)}; }, {x, w}));
  // a column: lanes go along it
  expect_apart(
      run([](S t) -> Tensors { return {matmul(t[0], t[1]) * 2}; }, {x, quarters(f32, {50}, 3)}));
}

TEST_F(Epilogues, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const auto& [m, n, k] : {std::array{300, 200, 100}, {20, 900, 300}, {1000, 40, 60}}) {
    const Tensors arguments = {vt_test::random_tensor(f32, {m, k}, 1),
                               vt_test::random_tensor(f32, {k, n}, 2),
                               vt_test::random_tensor(f32, {n}, 3)};
    const Flat f = [](S t) -> Tensors { return {tanh(matmul(t[0], t[1]) * 0.01f + t[2])}; };
    set_num_threads(1);
    const Tensor one = run(f, arguments, {.relative = 1e-4, .absolute = 1e-5}).results[0];
    for (int threads : {2, 3, 7}) {
      set_num_threads(threads);
      const Ran ran = run(f, arguments, {.relative = 1e-4, .absolute = 1e-5});
      expect_fused(ran);
      vt_test::expect_close(ran.results[0], one, vt_test::exact,
                            std::to_string(threads) + " threads");
    }
  }
  set_num_threads(before);
}

// --- another product of the rows -----------------------------------------------------------------

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return matmul(softmax(matmul(q, matrix_transpose(k)) * 0.25f), v);
}

void expect_chained(const Ran& ran, std::uint64_t kernels = 0) {
  if (!on_host(ran)) return;
  EXPECT_EQ(ran.stats.product_chains, 1u) << ran.text;
  EXPECT_EQ(ran.stats.matrix_products, 2u) << ran.text;
  EXPECT_EQ(ran.stats.product_epilogues, 1u) << ran.text;
  EXPECT_EQ(ran.stats.launches, kernels) << ran.text;
  EXPECT_NE(ran.text.find("; of those, "), std::string::npos) << ran.text;
}
const vt_test::Tolerance of_sums{.relative = 1e-5, .absolute = 1e-5};

TEST_F(Epilogues, AttentionKeepsNoScores) {
  // Heads × positions × positions of scores are more than a megabyte; rows that are no multiple of
  // a tile or block.
  for (const auto& [heads, rows, others, width, values] : {std::array{1, 1000, 300, 24, 20},
                                                           {3, 331, 500, 33, 64},
                                                           {8, 64, 1025, 16, 8},
                                                           {2, 517, 517, 64, 17}})
    for (DType d : {f32, f64, bf16}) {
      const Tensors x = {vt_test::random_tensor(d, {heads, rows, width}, 1),
                         vt_test::random_tensor(d, {heads, others, width}, 2),
                         vt_test::random_tensor(d, {heads, others, values}, 3)};
      const vt_test::Tolerance tolerance =
          d == bf16 ? vt_test::Tolerance{.relative = 0.02, .absolute = 0.02} : of_sums;
      const Ran ran = run([](S t) -> Tensors { return {attention(t[0], t[1], t[2])}; }, x,
                          tolerance, x[0].dtype() == bf16 ? "bf16" : "");
      if (d != bf16 || heads * rows * others * 2 > 1 << 20) expect_chained(ran);
      if (heads > 1) continue;
      const auto alone = [](S t) -> Tensors { return {attention(t[0][0], t[1][0], t[2][0])}; };
      if (d == f32) expect_chained(run(alone, x, tolerance));
    }
  // What lies between is in no plan.
  const Tensor q = vt_test::random_tensor(f32, {4, 1024, 32}, 1),
               k = vt_test::random_tensor(f32, {4, 1024, 32}, 2);
  const auto f = jit(attention);
  const Memory m = f.memory(q, k, q);
  if (m.values.empty() ||
      !on_host(run([](S t) -> Tensors { return {attention(t[0], t[1], t[0])}; }, {q, k}, of_sums)))
    return;
  for (const Memory::Value& v : m.values)
    EXPECT_EQ(v.what.find("[4,1024,1024]"), std::string::npos) << m.str();
  EXPECT_LT(m.scratch, 4u << 20) << m.str();
}

TEST_F(Epilogues, WhatLiesBetweenTwoProducts) {
  const Tensor q = vt_test::random_tensor(f32, {2, 400, 30}, 1),
               k = vt_test::random_tensor(f32, {2, 420, 30}, 2),
               v = vt_test::random_tensor(f32, {2, 420, 40}, 3),
               r = vt_test::random_tensor(f32, {2, 400, 40}, 4);
  const auto scores = [](S t) { return matmul(t[0], matrix_transpose(t[1])); };
  // A mask by position, one of every element, no sum over rows at all, two rows of results.
  expect_chained(run(
      [&](S t) -> Tensors {
        return {matmul(
            softmax(where(expand_dims(arange(400), {1}) >= arange(420), scores(t), -1e30f)), t[2])};
      },
      {q, k, v}, of_sums));
  expect_chained(run([&](S t) -> Tensors { return {matmul(softmax(scores(t) + t[3]), t[2])}; },
                     {q, k, v, vt_test::random_tensor(f32, {400, 420}, 5)}, of_sums));
  expect_chained(
      // sums of 420
      run([&](S t) -> Tensors { return {matmul(tanh(scores(t)), t[2])}; }, {q, k, v},
          {.relative = 1e-5, .absolute = 1e-4}));
  expect_chained(run(
      [&](S t) -> Tensors {
        const Tensor s = scores(t), e = exp(s - max(s, -1, true));
        return {matmul(e / sum(e, -1, true), t[2]), sum(e, -1)};
      },
      {q, k, v}, of_sums));
  // What is done with the second product's rows is a kernel of its own.
  expect_chained(
      run([&](S t) -> Tensors { return {tanh(matmul(softmax(scores(t)), t[2]) + t[3])}; },
          {q, k, v, r}, of_sums),
      1);
  // The same operand twice, one that is made before, a whole layer of heads.
  expect_chained(
      run([&](S t) -> Tensors { return {matmul(softmax(scores(t)), t[1])}; }, {q, k}, of_sums));
  expect_chained(run([&](S t) -> Tensors { return {attention(sin(t[0]), t[1], cumsum(t[2], 1))}; },
                     {q, k, v}, of_sums),
                 2);
}

TEST_F(Epilogues, NotWhereTheRowsAreWantedElsewhere) {
  const Tensor q = vt_test::random_tensor(f32, {600, 30}, 1),
               k = vt_test::random_tensor(f32, {600, 30}, 2);
  const auto expect_none = [&](const Flat& f) {
    const Ran ran = run(f, {q, k}, {.relative = 1e-4, .absolute = 1e-3});
    EXPECT_EQ(ran.stats.product_chains, 0u) << ran.text;
  };
  expect_none([](S t) -> Tensors {
    const Tensor p = softmax(matmul(t[0], transpose(t[1])));
    return {matmul(p, t[1]), p};
  });
  expect_none([](S t) -> Tensors {
    const Tensor s = matmul(t[0], transpose(t[1]));
    return {matmul(softmax(s), t[1]), s};
  });
  expect_none([](S t) -> Tensors {
    const Tensor p = softmax(matmul(t[0], transpose(t[1])));
    return {matmul(p, p)};
  });
  // The second one's right operand needs the first one's rows.
  expect_none([](S t) -> Tensors {
    const Tensor s = matmul(t[0], transpose(t[1]));
    return {matmul(softmax(s), expand_dims(mean(s, 0), {1}) * t[1])};
  });
}

TEST_F(Epilogues, ChainsHaveTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const Tensors arguments = {vt_test::random_tensor(f32, {3, 450, 40}, 1),
                             vt_test::random_tensor(f32, {3, 450, 40}, 2),
                             vt_test::random_tensor(f32, {3, 450, 50}, 3)};
  std::vector<Tensor> results;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const Ran ran =
        run([](S t) -> Tensors { return {attention(t[0], t[1], t[2])}; }, arguments, of_sums);
    expect_chained(ran);
    results.push_back(ran.results[0]);
    vt_test::expect_close(results.back(), results[0], vt_test::exact,
                          std::to_string(threads) + " threads");
  }
  set_num_threads(before);
}

TEST_F(Epilogues, ChainsInLoopsAndGradients) {
  const Tensor x = vt_test::random_tensor(f64, {2, 530, 16}, 1),
               w = vt_test::random_tensor(f64, {3, 16, 16}, 2);
  const auto layers = [](const Tensor& x, const Tensor& w) {
    return scan([](Tensor h,
                   Tensor m) { return std::pair(h + attention(h, matmul(h, m), h), sum(h)); },
                x, w)
        .first;
  };
  run([&](S t) -> Tensors { return {layers(t[0], t[1])}; }, {x, w},
      {.relative = 1e-10, .absolute = 1e-10});
  run([&](S t) -> Tensors { return {grad([&](Tensor w) { return sum(layers(t[0], w)); })(t[1])}; },
      {x, w}, {.relative = 1e-9, .absolute = 1e-9});
}

}  // namespace
