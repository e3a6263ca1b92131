// What programs are made of: the text of loop nests, how much is fused, how accesses are done,
// memory, threads.
#include <gtest/gtest.h>

#include <cstring>

#include <vt/vt.hpp>

#include "src/jit/nest/schedule.hpp"
#include "src/trace/base/buffer.hpp"
#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/compare_executors.hpp"
#include "support/fused.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

GraphBody graph_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  const Recorded recorded = record(f, avals, {});
  EXPECT_TRUE(recorded.captured.empty());
  return simplify(recorded.graph, SimplifyFor::running);
}

vt::Vec<FusedStep> steps_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  return vt_test::fused(graph_of(f, avals)).steps;
}

// Nest and schedule of a function that becomes one kernel, for AVX-512.
std::string kernel_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  const vt::Vec<FusedStep> steps = steps_of(f, avals);
  EXPECT_EQ(steps.size(), 1u);
  return steps[0].nest.str() + choose_schedule(steps[0].nest, 64).str(steps[0].nest);
}

bool has_compiler() {
  return compile_graph(graph_of([](S t) -> Tensors { return {t[0] + 1}; }, {Aval(f32, {3})}))
             ->explain_steps()
             .rfind("interpreter", 0) != 0;
}

TEST(JitNests, ChainIsOneJoinedLoop) {
  EXPECT_EQ(kernel_of([](S t) -> Tensors { return {(t[0] * t[1] + 2.5f) * t[0]}; },
                      {Aval(f32, {37, 37}), Aval(f32, {37, 37})}),
            "buffers b0: f32 in, b1: f32 in, b2: f32 out like b0, arguments n0 n1 a0\n"
            "for d1 < n1\n"
            "  v0 = load b0[d1] : f32\n"
            "  v1 = load b1[d1] : f32\n"
            "  v2 = mul v0 v1 : f32\n"
            "  v3 = argument a0 : f32\n"
            "  v4 = add v2 v3 : f32\n"
            "  v5 = mul v4 v0 : f32\n"
            "  store b2[d1] = v5\n"
            "schedule SIMD lanes 16, threads along d1\n"
            "  element-wise, loops d1, vector d1\n");
}

// A loop over a few parts is unrolled, and of each round it is known which part it is: also of the
// last one.
TEST(JitNests, PartsOfShortRowsAreKnown) {
  const std::string text = kernel_of([](S t) -> Tensors { return {cross(t[0], t[1])}; },
                                     {Aval(f32, {1000, 3}), Aval(f32, {1000, 3})});
  EXPECT_EQ(text.find("in_range"), std::string::npos) << text;
  EXPECT_EQ(text.find(" if "), std::string::npos) << text;
}

TEST(JitNests, RowSumIsHorizontalAndColumnSumVertical) {
  EXPECT_EQ(kernel_of([](S t) -> Tensors { return {sum(t[0] * t[0], 1)}; }, {Aval(f32, {100, 64})}),
            "buffers b0: f32 in, b1: f32 out, arguments n0\n"
            "for d0 < n0\n"
            "  reduce d1 < 64\n"
            "    v0 = load b0[64*d0 + d1] : f32\n"
            "    v1 = mul v0 v0 : f32\n"
            "    r0 = sum v1 : f32\n"
            "  then\n"
            "  v2 = result r0 : f32\n"
            "  store b1[d0] = v2\n"
            "schedule SIMD lanes 16, threads along d0\n"
            "  horizontal, loops d0 d1, vector d1, accumulators 2\n");
  const std::string columns =
      kernel_of([](S t) -> Tensors { return {sum(t[0], 0)}; }, {Aval(f32, {100, 64})});
  EXPECT_NE(columns.find("vertical, loops d1, vector d0, rows 8"), std::string::npos) << columns;
}

TEST(JitNests, TransposeAndReshapeBecomeIndices) {
  const std::string text = kernel_of(
      [](S t) -> Tensors { return {reshape(transpose(t[0]), {8, 6}) + 1}; }, {Aval(f32, {6, 8})});
  EXPECT_NE(text.find("load b0[d0 + 8*d1]"), std::string::npos) << text;
  EXPECT_EQ(text.find("/"), std::string::npos) << text;
  // A reshape that cuts through rows: the loop is split, so no division is left.
  const std::string cut = kernel_of(
      [](S t) -> Tensors { return {reshape(transpose(t[0]), {16, 3}) + 1}; }, {Aval(f32, {6, 8})});
  EXPECT_EQ(cut.find("%"), std::string::npos) << cut;
}

// A matrix that no near cache holds and a vector: a reduction, into which goes what the matrix is
// made of.
TEST(JitNests, LargeMatricesTimesVectorsAreReductions) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  const Aval matrix(f32, {700, 900}), vector(f32, {900}), other(f32, {700});
  const std::string rows =
      kernel_of([](S t) -> Tensors { return {tanh(matmul(t[0] * 2, t[1]))}; }, {matrix, vector});
  EXPECT_NE(rows.find("horizontal, loops d0 d1, vector d1"), std::string::npos) << rows;
  EXPECT_NE(rows.find("tanh"), std::string::npos) << rows;
  const std::string columns =
      compile_graph(graph_of([](S t) -> Tensors { return {matmul(t[1], t[0])}; }, {matrix, other}))
          ->explain_steps();
  EXPECT_NE(columns.find("0 matrix products"), std::string::npos) << columns;
  EXPECT_NE(columns.find("vertical"), std::string::npos) << columns;
  for (const Aval& small : {Aval(f32, {70, 900}), Aval(f16, {700, 900}), Aval(i32, {700, 900})}) {
    const std::string text =
        compile_graph(graph_of([](S t) -> Tensors { return {matmul(t[0], t[1])}; },
                               {small, Aval(small.dtype, {900})}))
            ->explain_steps();
    EXPECT_NE(text.find("1 matrix product,"), std::string::npos) << text;
  }
  for (DType d : {f32, f64}) {
    const std::int64_t m = d == f32 ? 700 : 350;
    const Tensor a = vt_test::random_tensor(d, {m, 900}, -1, 1, 1),
                 row = vt_test::random_tensor(d, {900}, -1, 1, 2),
                 column = vt_test::random_tensor(d, {m}, -1, 1, 3);
    const auto f = [m](S t) -> Tensors {
      return {
          matmul(t[0], t[1]),
          matmul(t[2], t[0]),
          matmul(transpose(t[0]), t[2]) * 2,
          matmul(t[1], transpose(t[0])),
          exp(matmul(t[0] + 1, t[1] * 0.01f)),
          einsum("ij,jk->k", t[0], reshape(t[1], {900, 1})) + matmul(reshape(t[2], {1, m}), t[0])};
    };
    vt_test::expect_same(f, {a, row, column},
                         {.relative = d == f32 ? 1e-4 : 1e-12, .absolute = d == f32 ? 1e-4 : 1e-12},
                         vt::name_of(d));
  }
}

TEST(JitNests, ConstantsAreArgumentsUnlessTheyFold) {
  const std::string half =
      kernel_of([](S t) -> Tensors { return {t[0] * 0.5f}; }, {Aval(f32, {9})});
  const std::string rate =
      kernel_of([](S t) -> Tensors { return {t[0] * 0.01f}; }, {Aval(f32, {9})});
  const std::string other =
      kernel_of([](S t) -> Tensors { return {t[0] * 0.02f}; }, {Aval(f32, {9})});
  EXPECT_NE(half.find("literal 0.5"), std::string::npos);
  EXPECT_EQ(rate, other);  // a changing learning rate needs no new kernel
  // nor does another size
  EXPECT_EQ(rate, kernel_of([](S t) -> Tensors { return {t[0] * 0.01f}; }, {Aval(f32, {1000})}));
}

TEST(JitFusion, KernelsOfCommonFunctions) {
  const Aval matrix(f32, {128, 100}), row(f32, {100});
  EXPECT_EQ(steps_of(
                [](S t) -> Tensors {
                  Tensor x = t[0];
                  for (int i = 0; i < 50; ++i) x = x * 1.5f + t[0];
                  return {x};
                },
                {matrix})
                .size(),
            1u);
  EXPECT_EQ(steps_of(
                [](S t) -> Tensors {
                  const Tensor y = exp(t[0]);
                  return {y, y * 2, sum(y, 1)};
                },
                {matrix})
                .size(),
            1u);
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {sum(t[0], 1), max(t[0], 1), sum(t[0] * t[0], 1)}; },
               {matrix})
          .size(),
      1u);
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {sqrt(sum(t[0] * t[0], 1)) * 2 + 1}; }, {matrix}).size(),
      1u);
  const vt::Vec<FusedStep> softmax_steps =
      steps_of([](S t) -> Tensors { return {softmax(t[0])}; }, {matrix});
  ASSERT_EQ(softmax_steps.size(), 1u);
  EXPECT_EQ(softmax_steps[0].nest.stages.size(), 3u);  // max; exp and sum; quotient
  const vt::Vec<FusedStep> norm =
      steps_of([](S t) -> Tensors { return {layer_norm(t[0], t[1], t[1])}; }, {matrix, row});
  EXPECT_EQ(norm.size(), 1u);
  // A long reduction is cut in two, by its shape alone.
  const vt::Vec<FusedStep> cut =
      steps_of([](S t) -> Tensors { return {sum(t[0]) * 2}; }, {Aval(f32, {1 << 20})});
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_TRUE(cut[0].partial);
}

TEST(JitNests, RowsBetweenStagesAreLocal) {
  const std::string text =
      kernel_of([](S t) -> Tensors { return {softmax(t[0])}; }, {Aval(f32, {100, 64})});
  EXPECT_EQ(text.substr(0, text.find("stage 0")),
            "buffers b0: f32 in, b1: f32 out, b2: f32 row of 64, arguments n0\n"
            "for d0 < n0\n"
            "  ");
  EXPECT_NE(text.find("store b2[d2] = "), std::string::npos) << text;
  // Not where somebody else reads them, nor where a row is larger than the near caches.
  const auto buffers = [](const vt::detail::FlatFunction& f, const Aval& a) {
    int local = 0;
    for (const FusedStep& s : steps_of(f, {a}))
      for (const NestBuffer& b : s.nest.buffers) local += b.local > 0;
    return local;
  };
  const auto softmax_and_its_numerator = [](S t) -> Tensors {
    const Tensor e = exp(t[0] - max(t[0], 1, true));
    return {e / sum(e, 1, true), e};
  };
  EXPECT_EQ(buffers(softmax_and_its_numerator, Aval(f32, {100, 64})), 0);
  EXPECT_EQ(buffers([](S t) -> Tensors { return {softmax(t[0])}; }, Aval(f32, {100, 1 << 16})), 0);
  EXPECT_EQ(buffers([](S t) -> Tensors { return {softmax(tanh(t[0]))}; }, Aval(f32, {100, 1000})),
            2);
}

TEST(JitCounters, AccessesOfCommonKernels) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  const auto run = [](const vt::detail::FlatFunction& f, const Tensors& arguments) {
    std::vector<Aval> avals;
    vt::Vec<BufferRef> inputs;
    for (const Tensor& t : arguments) {
      avals.push_back(Aval(t.dtype(), t.shape()));
      inputs.push_back(value_of(t, {}));
    }
    const GraphBody g = graph_of(f, avals);
    reset_stats();
    compile_graph(g)->run(inputs);
    return stats();
  };
  const Tensor a = vt_test::random_tensor(f32, {37, 37}, 1),
               b = vt_test::random_tensor(f32, {37, 37}, 2);
  Stats s = run([](S t) -> Tensors { return {where(t[0] > t[1], t[0], exp(t[1]))}; }, {a, b});
  EXPECT_EQ(s.programs, 1u);
  EXPECT_EQ(s.launches, 1u);
  EXPECT_EQ(s.vector_kernels, 1u);
  EXPECT_EQ(s.contiguous_accesses, 3u);
  EXPECT_EQ(s.scalarised_accesses + s.gathers + s.strided_accesses, 0u);
  EXPECT_EQ(s.interpreter_steps, 0u);
  EXPECT_EQ(s.bytes, 3u * 37 * 37 * 4);
  s = run([](S t) -> Tensors { return {sum(t[0], 0)}; }, {a});
  EXPECT_EQ(s.scalarised_accesses + s.gathers + s.strided_accesses, 0u);
  const Tensor images = vt_test::random_tensor(f32, {2, 4, 4, 90}, 3),
               scale = vt_test::random_tensor(f32, {90}, 4);
  s = run([](S t) -> Tensors { return {group_norm(t[0], 3, t[1], t[1])}; }, {images, scale});
  EXPECT_EQ(s.gathers, 0u);
  // whole rows: contiguous
  s = run([](S t) -> Tensors { return {take(t[0], arange(5) * 2, 0)}; }, {images});
  EXPECT_EQ(s.gathers, 0u);
  EXPECT_GT(s.contiguous_accesses, 0u);
  const Tensor flat = vt_test::random_tensor(f32, {1000}, 5);
  s = run([](S t) -> Tensors { return {take(t[0], t[1].astype(i32), 0)}; },
          {flat, vt_test::random_tensor(f32, {500}, 0, 999, 6)});
  EXPECT_EQ(s.gathers, 1u);
}

TEST(JitCounters, ExplainNamesKernelsAndProducts) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  const std::string text =
      compile_graph(
          graph_of([](S t) -> Tensors { return {exp(matmul(t[0], t[0]) + 1), sum(t[0])}; },
                   {Aval(f32, {20, 20})}))
          ->explain_steps();
  EXPECT_NE(text.find("1 kernel, 1 matrix product, 0 interpreted"), std::string::npos) << text;
  EXPECT_NE(text.find("on its rows as they are done: kernel"), std::string::npos) << text;
  EXPECT_NE(text.find("matrix product"), std::string::npos);
  EXPECT_NE(text.find("schedule SIMD lanes"), std::string::npos);
}

// Bodies that the processor cannot look beyond get two registers for each value where there are 32:
// every kind of tail, dtype and mixture.
TEST(JitNests, LongBodiesAreTwoVectorsWide) {
  const auto long_body = [](S t) -> Tensors {
    return {vt::tanh(t[0]) * vt::exp(t[1]), vt::where(t[0] > 0, vt::pow(abs(t[0]), t[1]), t[1])};
  };
  EXPECT_NE(kernel_of(long_body, {Aval(f32, {1000, 3}), Aval(f32, {1000, 3})})
                .find("schedule SIMD lanes 32, "),
            std::string::npos);
  EXPECT_NE(
      kernel_of(long_body, {Aval(f32, {100}), Aval(f32, {100})}).find("schedule SIMD lanes 16, "),
      std::string::npos);
  const auto scan = [](S t) -> Tensors { return {cumlogsumexp(t[0], 0)}; };
  EXPECT_NE(kernel_of(scan, {Aval(f64, {30, 100})}).find("schedule SIMD lanes 16, "),
            std::string::npos);
  for (DType d : {f32, f64, bf16, f16})
    for (std::int64_t n : {129, 1000, 1024, 4096 + 31, 100003}) {
      const Tensor x = vt_test::random_tensor(d, {n}, 1), y = vt_test::random_tensor(d, {n}, 2);
      const vt_test::Tolerance close{.ulps = 8, .absolute = 1e-6};
      const std::string what = std::string(vt::name_of(d)) + " of " + std::to_string(n);
      vt_test::expect_same(long_body, {x, y}, close, what);
      vt_test::expect_same(
          [](S t) -> Tensors {
            return {(sin(t[0]) + t[0].astype(f64)).astype(t[0].dtype()), exp(t[0]) > t[1],
                    (tanh(t[0]) * 9).astype(i8)};
          },
          {x, y}, close, "mixture with " + what);
      vt_test::expect_same(
          [](S t) -> Tensors { return {cumlogsumexp(t[0], 0), cumlogsumexp(t[0], 1)}; },
          {reshape(x[vt::Slice(0, n / 3 * 3)], {3, n / 3})}, close, "running " + what);
    }
}

TEST(JitPlan, LongChainNeedsNoScratchMemory) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  constexpr std::int64_t n = 1 << 20;
  // Costly ops, so that the chain is more than one kernel and has intermediate results.
  const auto chain = [](S t) -> Tensors {
    Tensor x = t[0];
    for (int i = 0; i < 50; ++i) x = i % 2 ? tanh(x) : x * 1.25f + t[1];
    for (int i = 0; i < 50; ++i) x = exp(x * 0.125f);
    return {x};
  };
  const GraphBody g = graph_of(chain, {Aval(f32, {n}), Aval(f32, {n})});
  const std::shared_ptr<Executable> program = compile_graph(g);
  const Tensor a = vt_test::random_tensor(f32, {n}, 1), b = vt_test::random_tensor(f32, {n}, 2);
  const vt::Vec<BufferRef> inputs = {value_of(a, {}), value_of(b, {})};
  program->run(inputs);
  reset_pool_peak();
  const std::size_t before = pool_use().in_use;
  const vt::Vec<BufferRef> result = program->run(inputs);
  EXPECT_LE(pool_use().peak - before, n * 4u + 65536u);
  const vt::Vec<BufferRef> expected = interpret(g, inputs);
  vt_test::expect_close(from_buffer(result[0], Aval(f32, {n})),
                        from_buffer(expected[0], Aval(f32, {n})), {.relative = 1e-4});
}

TEST(JitPlan, SoftmaxNeedsNoScratchMemory) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  const Aval aval(f32, {512, 1000});
  const GraphBody g = graph_of(
      [](S t) -> Tensors {
        return {softmax(tanh(t[0]) * 3), layer_norm(exp(t[0]), t[0][0], t[0][1])};
      },
      {aval});
  const std::shared_ptr<Executable> program = compile_graph(g);
  const vt::Vec<BufferRef> inputs = {value_of(vt_test::random_tensor(f32, {512, 1000}, 1), {})};
  program->run(inputs);
  const vt::Vec<BufferRef> result = program->run(inputs), expected = interpret(g, inputs);
  EXPECT_NE(program->explain_steps().find(" 0 bytes of scratch memory"), std::string::npos)
      << program->explain_steps();
  for (std::size_t i = 0; i < result.size(); ++i)
    vt_test::expect_close(from_buffer(result[i], aval), from_buffer(expected[i], aval),
                          {.relative = 1e-4, .absolute = 1e-5});
}

TEST(JitThreads, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  const Tensor a = vt_test::random_tensor(f32, {700, 901}, 1),
               b = vt_test::random_tensor(f32, {901, 300}, 2);
  const auto f = [](S t) -> Tensors {
    return {sum(t[0], 0),
            sum(t[0], 1),
            sum(t[0]),
            softmax(t[0]),
            exp(t[0]) * 2 - t[0],
            transpose(t[0]) + 1,
            var(t[0], 0),
            matmul(t[0], t[1]),
            max(t[0], 1),
            argmax(t[0], 0),
            matmul(t[0], slice(t[1], {0, 0}, {901, 1})),
            matmul(slice(transpose(t[1]), {0, 0}, {1, 700}), t[0])};
  };
  const GraphBody g = graph_of(f, {Aval(f32, {700, 901}), Aval(f32, {901, 300})});
  const vt::Vec<BufferRef> inputs = {value_of(a, {}), value_of(b, {})};
  vt::Vec<BufferRef> first;
  for (int threads : {1, 2, 3, 7, 16}) {
    set_num_threads(threads);
    const vt::Vec<BufferRef> results = compile_graph(g)->run(inputs);
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(std::memcmp(results[i]->data, first[i]->data, g.aval(g.outputs[i]).bytes()), 0)
          << "result " << i << " with " << threads << " threads";
  }
  set_num_threads(before);
}

TEST(JitThreads, NumberOfThreadsIsChecked) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(5000), Error);
}

TEST(JitExecution, AKernelMayReadAnyNumberOfTensors) {
  for (int n : {60, 64, 65, 100, 300}) {
    Tensors terms;
    double expected = 0;
    for (int i = 0; i < n; ++i) {
      terms.push_back(vt::tensor({1.0 * i, 2.0, -0.5}));
      expected = expected * 0.5 + i;
    }
    const Tensor total = jit([](Tensors t) {
      Tensor s = t[0];
      for (std::size_t i = 1; i < t.size(); ++i) s = s * 0.5 + t[i];
      return s;
    })(terms);
    EXPECT_NEAR(total[0].item<double>(), expected, 1e-9) << n;
  }
}

TEST(JitExecution, LazyGraphsAreCompiledTheSecondTime) {
  if (!has_compiler()) GTEST_SKIP() << "no LLVM";
  const Tensor x = vt_test::random_tensor(f32, {11}, 1);
  x.eval();
  const auto once = [&] { return (x * 3.7f + sin(x) * 2).to_vector<float>(); };
  const std::vector<float> cold = once();
  reset_stats();
  const std::vector<float> hot = once();
  const bool forced = std::getenv("VT_BACKEND") != nullptr;
  if (!forced) {
    EXPECT_EQ(stats().programs, 1u);
  }
  EXPECT_EQ(stats().programs_run, 1u);
  for (std::size_t i = 0; i < hot.size(); ++i) EXPECT_NEAR(hot[i], cold[i], 1e-6);
}

// Many shifted copies of few arrays: merged groups then depend on others through any of their
// parts.
TEST(JitExecution, KernelsOfNoRowsTouchNoMemory) {
  // Rows this long would be read far beyond whatever stands for empty memory.
  constexpr std::int64_t columns = 64 << 20;
  const auto normalised = [](vt::Tensor x) { return vt::sum(x / vt::sum(vt::exp(x), 1, true), 1); };
  for (DType d : {f16, f32, f64})
    EXPECT_EQ(vt::jit(normalised)(vt::zeros({0, columns}, d)).eval().shape(), (Shape{0}))
        << name_of(d);
}

TEST(JitProgram, MergedGroupsKeepTheirOrder) {
  const auto f = [](Tensor x) { return cumprod(x, 0); };
  const auto twice = [&](Tensor x, Tensor w, Tensor u) {
    return vjp([&](Tensor at) { return vjp(f, at).second(w); }, x).second(u);
  };
  for (int n : {7, 13, 40}) {
    const Tensor x = vt_test::random_tensor(f64, {n}, 0.5, 1.5, 1),
                 w = vt_test::random_tensor(f64, {n}, -1, 1, 2),
                 u = vt_test::random_tensor(f64, {n}, -1, 1, 3);
    const Graph graph = make_graph(twice)(x, w, u);
    vt::Vec<BufferRef> inputs;
    for (const Tensor& t : {x, w, u}) inputs.push_back(value_of(t, {}));
    const Aval& aval = graph.body().aval(graph.body().outputs[0]);
    const Tensor expected = from_buffer(interpret(graph.body(), inputs)[0], aval),
                 actual = from_buffer(compile_graph(graph.body())->run(inputs)[0], aval);
    vt_test::expect_close(actual, expected, {.relative = 1e-12, .absolute = 1e-12});
  }
}

TEST(JitProgram, LaterStagesReadScansBack) {
  const auto f = [](S t) -> Tensors {
    const Tensor a = exp(t[0] * 0.5), running = cummax(a, 0), total = cumsum(t[0], 0);
    return {tanh(running + sum(a) * 0.25), sum(running * total - sum(a), 0)};
  };
  for (int n : {4, 17, 100}) {
    const Tensor x = vt_test::random_tensor(f64, {n}, -1, 1, 4);
    const GraphBody graph = graph_of(f, {Aval(f64, {n})});
    const vt::Vec<BufferRef> inputs{value_of(x, {})}, expected = interpret(graph, inputs),
                                                      actual = compile_graph(graph)->run(inputs);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const Aval& aval = graph.aval(graph.outputs[i]);
      vt_test::expect_close(from_buffer(actual[i], aval), from_buffer(expected[i], aval),
                            {.relative = 1e-12, .absolute = 1e-12});
    }
  }
}

}  // namespace
