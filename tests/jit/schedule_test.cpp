// Schedules say what they chose over what, and what the machine was measured to take changes no bit
// of a result.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cpu/llvm/llvm_library.hpp"
#include "src/jit/cpu/machine_costs.hpp"
#include "src/jit/cpu/runtime/program.hpp"
#include "src/jit/nest/schedule.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/fused.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using S = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

GraphBody graph_of(const FlatFunction& f, const std::vector<Aval>& avals) {
  return simplify(record(f, avals, {}).graph, SimplifyFor::running);
}

// The decisions about the only kernel of a function, for AVX-512 or shorter vectors.
std::string decisions_of(const FlatFunction& f, const std::vector<Aval>& avals,
                         const MachineCosts& costs = {}, int vector_bytes = 64) {
  const Fusion fusion = vt_test::fused(graph_of(f, avals));
  EXPECT_EQ(fusion.steps.size(), 1u);
  std::string log;
  static_cast<void>(choose_schedule(fusion.steps[0].nest, vector_bytes, costs, &log));
  return log;
}

bool compiles() {
  const char* chosen = std::getenv("VT_BACKEND");
  return !(chosen && std::string(chosen) == "interpreter") && cpu::llvm_missing_reason().empty();
}

TEST(Schedule, TellsOfAChain) {
  EXPECT_EQ(decisions_of([](S t) -> Tensors { return {t[0] * t[1] + 2.5f}; },
                         {Aval(f32, {100, 70}), Aval(f32, {70})}),
            "  fusion: 4 equations in 1 stage\n"
            "  vector level: d1 (0.46 an element) over d0 (2.5 an element)\n"
            "  loop order: d0 d1, as arrays lie\n"
            "  width: 16 SIMD lanes of 4 bytes\n"
            "  parallel depth: d0 (n0 iterations) over d1 (70 iterations)\n"
            "  sizes: read at run time, for 7000 iterations, over code of their own\n");
}

TEST(Schedule, TellsOfRowsAndColumns) {
  EXPECT_EQ(
      decisions_of([](S t) -> Tensors { return {sum(t[0] * t[0], 1)}; }, {Aval(f32, {100, 4000})}),
      "  fusion: 2 equations in 1 stage\n"
      "  vector level: d1 (0.19 an element, horizontal) over d0 (1.1 an element, vertical)\n"
      "  loop order: d0 d1, as arrays lie, reductions inside\n"
      "  unroll: 8 accumulators for a body of work 2 over 4, which would wait for each other's "
      "additions\n"
      "  width: 16 SIMD lanes of 4 bytes\n"
      "  split: none over blocks of 32768, of which d1 has less than two\n"
      "  parallel depth: d0 (n0 iterations)\n"
      "  sizes: read at run time, for 400000 iterations, over code of their own\n");
  EXPECT_EQ(decisions_of([](S t) -> Tensors { return {sum(t[0], 0)}; }, {Aval(f64, {100, 64})}),
            "  fusion: 1 equation in 1 stage\n"
            "  vector level: d0 (0.3 an element, vertical) over d1 (1.2 an element, horizontal)\n"
            "  loop order: d1 around d0, as arrays lie, reductions inside\n"
            "  unroll: 8 rows at a time for a body of work 1\n"
            "  width: 8 SIMD lanes of 8 bytes\n"
            "  split: none over blocks of 512, of which d1 has less than two\n"
            "  parallel depth: d0 (64 iterations)\n"
            "  sizes: read at run time, for 6400 iterations, over code of their own\n");
}

TEST(Schedule, TellsOfStages) {
  EXPECT_EQ(
      decisions_of([](S t) -> Tensors { return {softmax(t[0], 1)}; }, {Aval(f32, {100, 300})}),
      "  fusion: 7 equations in 3 stages that share d0 over 3 kernels (240000 bytes of rows "
      "written and read again)\n"
      "  vector level of stage 0: d1 (0.17 an element, horizontal) over one SIMD lane (3)\n"
      "  loop order of stage 0: d1, as arrays lie, reductions inside\n"
      "  unroll of stage 0: 8 accumulators for a body of work 1 over 4, which would wait for each "
      "other's additions\n"
      "  vector level of stage 1: d2 (1.3 an element, horizontal) over one SIMD lane (27)\n"
      "  loop order of stage 1: d2, as arrays lie, reductions inside\n"
      "  unroll of stage 1: 4 accumulators for a body of work 18 over 2, which would wait for each "
      "other's additions\n"
      "  vector level of stage 2: d3 (0.47 an element) over one SIMD lane (9)\n"
      "  loop order of stage 2: d3, as arrays lie\n"
      "  width: 16 SIMD lanes of 4 bytes\n"
      "  parallel depth: d0 (n0 iterations)\n"
      "  sizes: read at run time, for 30000 iterations, over code of their own\n");
}

TEST(Schedule, TellsOfSquares) {
  EXPECT_EQ(
      decisions_of([](S t) -> Tensors { return {transpose(t[0], {1, 0})}; },
                   {Aval(f32, {1000, 2000})}),
      "  fusion: 1 equation in 1 stage\n"
      "  vector level: d1 (0.99 an element) over d0 (1.4 an element)\n"
      "  loop order: d0 d1, as arrays lie\n"
      "  tile: squares of 16 along d1 and d0, transposed in registers (0.44 an element) over jumps "
      "from SIMD lane to SIMD lane (0.99)\n"
      "  memory: 16 squares in a row, fetched ahead, stored in the caches, for 16000000 bytes\n"
      "  width: 16 SIMD lanes of 4 bytes\n"
      "  parallel depth: d0 (n0 iterations) over d1 (1000 iterations)\n"
      "  sizes: code of their own, for squares\n");
}

// Where the rows of squares are parts of cache lines, squares are gathered: to whole lines, and to
// long runs of what comes from far.
TEST(Schedule, SquaresOfShortRowsAreGathered) {
  const auto transposed = [](S t) -> Tensors { return {transpose(t[0])}; };
  const auto memory_of = [&](const FlatFunction& f, const std::vector<Aval>& avals,
                             int vector_bytes) {
    const std::string log = decisions_of(f, avals, {}, vector_bytes);
    const std::size_t at = log.find("  memory: ");
    return at == std::string::npos ? log : log.substr(at, log.find('\n', at) - at);
  };
  const std::string over = " squares over single ones, whose rows are parts of cache lines, ";
  EXPECT_EQ(memory_of(transposed, {Aval(f32, {1000, 2000})}, 32),
            "  memory: blocks of 16 by 16" + over +
                "fetched ahead, stored in the caches, for 16000000 bytes");
  EXPECT_EQ(memory_of(transposed, {Aval(f64, {4096, 2048})}, 32),
            "  memory: blocks of 16 by 16" + over +
                "fetched ahead, stored past the caches, for 134217728 bytes");
  EXPECT_EQ(memory_of(transposed, {Aval(f32, {100, 200})}, 32),
            "  memory: blocks of 2 by 2" + over + "stored in the caches, for 160000 bytes");
  // No longer than what there is, and no larger than a part of the second-level cache.
  EXPECT_EQ(memory_of(transposed, {Aval(f32, {20, 100000})}, 32),
            "  memory: blocks of 2 by 16" + over +
                "fetched ahead, stored in the caches, for 16000000 bytes");
  EXPECT_EQ(memory_of(transposed, {Aval(u8, {4096, 4096})}, 32),
            "  memory: blocks of 8 by 8" + over +
                "fetched ahead, stored in the caches, for 33554432 bytes");
  EXPECT_EQ(memory_of(transposed, {Aval(bf16, {100, 200})}, 64),
            "  memory: blocks of 2 by 2" + over + "stored in the caches, for 80000 bytes");
  const auto both = [](S t) -> Tensors { return {(transpose(t[0]) + transpose(t[1])) * t[2]}; };
  EXPECT_EQ(
      memory_of(both, {Aval(f32, {1000, 2000}), Aval(f32, {1000, 2000}), Aval(f32, {2000, 1000})},
                32),
      "  memory: blocks of 8 by 16" + over +
          "fetched ahead, stored in the caches, for 32000000 bytes");
}

// Results past the caches: new ones that are not read in the kernel. Rows that another stage has
// read are asked for while there is much to compute.
TEST(Schedule, TellsOfMemory) {
  const auto softmaxes = [](S t) -> Tensors { return {softmax(t[0])}; };
  for (const int bytes : {32, 64}) {
    const std::string large = decisions_of(softmaxes, {Aval(f32, {4096, 4096})}, {}, bytes);
    EXPECT_NE(large.find("  memory of stage 1: next rows fetched ahead, for 67125248 bytes and a "
                         "body of work 18\n"),
              std::string::npos)
        << large;
    EXPECT_NE(large.find("  memory of stage 2: stored past the caches, for 67125248 bytes\n"),
              std::string::npos)
        << large;
    const std::string small = decisions_of(softmaxes, {Aval(f32, {16, 4096})}, {}, bytes),
                      long_rows = decisions_of(softmaxes, {Aval(f32, {32, 100000})}, {}, bytes);
    EXPECT_EQ(small.find("memory of"), std::string::npos) << small;
    EXPECT_EQ(long_rows.find("memory of"), std::string::npos) << long_rows;
    const std::string sums = decisions_of([](S t) -> Tensors { return {t[0] + t[1]}; },
                                          {Aval(f32, {5000, 1}), Aval(f32, {4000})}, {}, bytes);
    EXPECT_NE(sums.find("  memory: stored past the caches, for 80036000 bytes\n"),
              std::string::npos)
        << sums;
    const std::string over = decisions_of([](S t) -> Tensors { return {t[0] * 2}; },
                                          {Aval(f32, {5000, 4000})}, {}, bytes);
    EXPECT_EQ(over.find("memory:"), std::string::npos) << over;
  }
}

TEST(Schedule, TellsOfWidths) {
  const std::string deep = decisions_of(
      [](S t) -> Tensors { return {exp(tanh(t[0])) + exp(t[0])}; }, {Aval(f32, {1000, 200})});
  EXPECT_NE(
      deep.find(
          "  width: 32 SIMD lanes of 4 bytes in two registers, for a body of work 47, over one\n"),
      std::string::npos)
      << deep;
  const std::string mixed =
      decisions_of([](S t) -> Tensors { return {(t[0] * t[1] + t[2]).astype(f64)}; },
                   {Aval(f32, {500}), Aval(f32, {500}), Aval(f32, {500})});
  EXPECT_NE(
      mixed.find("  width: 16 SIMD lanes of 4 bytes over 8, as few of its values are wider (1)\n"),
      std::string::npos)
      << mixed;
  const std::string tiny = decisions_of([](S t) -> Tensors { return {take(t[0], t[1], 0)}; },
                                        {Aval(f32, {500}), Aval(i32, {2})});
  EXPECT_NE(tiny.find("  vector level: "), std::string::npos) << tiny;
}

TEST(Schedule, VectorsAreNoLongerThanShortRowsNeed) {
  const auto rows = [](std::int64_t columns, int vector_bytes) {
    return decisions_of([](S t) -> Tensors { return {take(t[0], t[1], 0)}; },
                        {Aval(f32, {5000, columns}), Aval(i32, {3000})}, {}, vector_bytes);
  };
  EXPECT_NE(
      rows(3, 64).find("  width: 4 SIMD lanes of 4 bytes over 16, which rows of 3 do not fill\n"),
      std::string::npos)
      << rows(3, 64);
  EXPECT_NE(
      rows(8, 64).find("  width: 8 SIMD lanes of 4 bytes over 16, which rows of 8 do not fill\n"),
      std::string::npos)
      << rows(8, 64);
  EXPECT_NE(
      rows(3, 32).find("  width: 4 SIMD lanes of 4 bytes over 8, which rows of 3 do not fill\n"),
      std::string::npos)
      << rows(3, 32);
  EXPECT_NE(rows(3, 16).find("  width: 4 SIMD lanes of 4 bytes\n"), std::string::npos)
      << rows(3, 16);
  EXPECT_NE(rows(9, 64).find("  width: 16 SIMD lanes of 4 bytes\n"), std::string::npos)
      << rows(9, 64);
}

TEST(Schedule, NumbersOfTheMachineDecideWhereNothingIsReduced) {
  MachineCosts other;
  other.exp = 5;
  other.gather = 0.2;
  const auto gathered = [](S t) -> Tensors { return {take(t[0], t[1], 0)}; };
  const std::vector<Aval> avals{Aval(f32, {5000}), Aval(i32, {3000})};
  EXPECT_NE(decisions_of(gathered, avals).find("d0 (1.7 an element)"), std::string::npos)
      << decisions_of(gathered, avals);
  EXPECT_NE(decisions_of(gathered, avals, other).find("d0 (1.1 an element)"), std::string::npos)
      << decisions_of(gathered, avals, other);
  const auto exps = [](S t) -> Tensors { return {exp(t[0])}; };
  const auto sums = [](S t) -> Tensors { return {sum(exp(t[0]), 1)}; };
  const std::vector<Aval> matrix{Aval(f32, {300, 500})};
  EXPECT_NE(decisions_of(exps, matrix), decisions_of(exps, matrix, other));
  EXPECT_EQ(decisions_of(sums, matrix), decisions_of(sums, matrix, other));
}

TEST(Schedule, StandsInExplain) {
  if (!compiles()) GTEST_SKIP() << "no LLVM";
  const auto f = vt::jit([](Tensor x) { return softmax(tanh(x), 1); });
  const std::string text = vt::explain_steps(f)(vt::ones({40, 30}));
  EXPECT_NE(text.find("\nmachine, "), std::string::npos) << text;
  EXPECT_NE(text.find("\ndecisions\n  fusion: "), std::string::npos) << text;
  EXPECT_NE(text.find("  threads: one, about "), std::string::npos) << text;
  const std::string stored = vt::explain_steps([](Tensor x) {
    const Tensor e = exp(x);
    return std::pair(sum(e, 0), sum(e, 1));
  })(vt::ones({400, 300}));
  EXPECT_NE(
      stored.find(" stored over computed again by its readers (about 16 operations an element)\n"),
      std::string::npos)
      << stored;
  // Four megabytes take their time, however little is done with them.
  const std::string read =
      vt::explain_steps([](Tensor x) { return prod(x, 1); })(vt::ones({1000, 1000}));
  EXPECT_NE(read.find("  threads: all, about "), std::string::npos) << read;
  const std::string large = vt::explain_steps(f)(vt::ones({4000, 300}));
  EXPECT_NE(large.find("  threads: all, about "), std::string::npos) << large;
}

struct Case {
  const char* what;
  FlatFunction f;
  std::vector<Tensor> arguments;
};

std::vector<Case> cases() {
  const auto random = [](DType d, const Shape& s, int seed) {
    return vt_test::random_tensor(d, s, seed);
  };
  const Tensor places = vt_test::random_tensor(f32, {600}, 0, 299, 7).astype(i32);
  std::vector<Case> all;
  for (const DType d : {f32, f64, bf16}) {
    const Tensor x = random(d, {300, 211}, 1), y = random(d, {211}, 2),
                 wide = random(d, {7, 9001}, 3);
    all.push_back(
        {"chain", [](S t) -> Tensors { return {exp(t[0]) * tanh(t[1]) + erf(t[0])}; }, {x, y}});
    all.push_back(
        {"turned",
         [](S t) -> Tensors { return {transpose(sin(t[0]), {1, 0}) + transpose(t[0], {1, 0})}; },
         {x}});
    all.push_back(
        {"gathered",
         [](S t) -> Tensors { return {exp(take(t[0], t[1], 0)), take(t[2], t[1] % 211, 0) * 2.0}; },
         {x, places, y}});
    all.push_back(
        {"strided",
         [](S t) -> Tensors { return {reshape(exp(t[0]), {211, 300}) - transpose(t[0], {1, 0})}; },
         {x}});
    all.push_back(
        {"sums",
         [](S t) -> Tensors { return {sum(exp(t[0]), 0), sum(t[0] * t[1], 1), sum(sin(t[0]))}; },
         {x, y}});
    all.push_back(
        {"long rows",
         [](S t) -> Tensors { return {var(t[0], 1), softmax(t[0], 1), logsumexp(t[0], 1)}; },
         {wide}});
    all.push_back({"scan",
                   [](S t) -> Tensors { return {cumsum(exp(t[0]), 1), cumlogsumexp(t[0], 0)}; },
                   {x}});
    all.push_back({"product",
                   [](S t) -> Tensors {
                     return {softmax(matmul(transpose(t[0], {1, 0}), t[0]), 1),
                             tanh(matmul(t[0], t[1]))};
                   },
                   {x, y}});
  }
  return all;
}

// Results as bytes, and what explain says of the program.
std::pair<std::vector<std::string>, std::string> run_on(const MachineCosts& costs, const Case& c) {
  std::vector<Aval> avals;
  Vec<BufferRef> inputs;
  for (const Tensor& t : c.arguments) {
    avals.push_back(Aval(t.dtype(), t.shape()));
    inputs.push_back(value_of(t, {}));
  }
  Program program(graph_of(c.f, avals), {}, 0, costs);
  std::vector<std::string> bytes;
  for (const BufferRef& b : program.run({inputs.begin(), inputs.size()}))
    bytes.emplace_back(b->as<char>(), b->bytes);
  const std::string text = program.explain_steps();
  return {bytes, text.substr(text.find("step 0"))};  // without the head, which tells the numbers
}

TEST(Machine, NumbersChangeNoBit) {
  if (!compiles()) GTEST_SKIP() << "no LLVM";
  std::vector<MachineCosts> machines;
  for (const double factor : {1e-3, 1e3}) {
    const MachineCosts usual;
    MachineCosts m;
    m.exp *= factor;
    machines.push_back(m.bounded());
    m.gather *= factor;
    machines.push_back(m.bounded());
    m.wake_ns *= factor;
    m.vector_ns /= factor;
    for (double& b : m.bytes_per_ns) b *= factor;
    machines.push_back(m.bounded());
  }
  int differ = 0;
  for (const Case& c : cases()) {
    const auto [expected, log] = run_on({}, c);
    for (const MachineCosts& m : machines) {
      const auto [actual, tells] = run_on(m, c);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(actual[i] == expected[i]) << c.what << " result " << i << "\n"
                                              << log << "\nagainst\n"
                                              << tells;
      differ += tells != log;
    }
  }
  EXPECT_GT(differ, 20);  // they do decide something
}

TEST(Machine, NumbersAreBounded) {
  const MachineCosts usual;
  MachineCosts m;
  m.vector_ns = 1e9;
  m.gather = 0;
  m.wake_ns = -3;
  m.bytes_per_ns[2] = 1e-9;
  m = m.bounded();
  EXPECT_EQ(m.vector_ns, 4 * usual.vector_ns);
  EXPECT_EQ(m.gather, usual.gather);
  EXPECT_EQ(m.wake_ns, usual.wake_ns);
  EXPECT_EQ(m.bytes_per_ns[2], usual.bytes_per_ns[2] / 4);
  EXPECT_EQ(m.exp, usual.exp);
  // Numbers that were only assumed are not compared with measured ones; of two measurements the
  // better of each number counts.
  MachineCosts idle, busy;
  idle.measured = busy.measured = 1;
  busy.wake_ns = 2 * idle.wake_ns;
  busy.exp = 0.5 * idle.exp;
  busy.bytes_per_ns[3] = 0.5 * idle.bytes_per_ns[3];
  EXPECT_EQ(usual.better(busy).wake_ns, busy.wake_ns);
  m = busy.better(idle);
  EXPECT_EQ(m.measured, 2);
  EXPECT_EQ(m.wake_ns, idle.wake_ns);
  EXPECT_EQ(m.exp, busy.exp);
  EXPECT_EQ(m.bytes_per_ns[3], idle.bytes_per_ns[3]);
}

TEST(Machine, MemoryAndArithmeticBothTakeTime) {
  const MachineCosts m;
  EXPECT_EQ(m.nanoseconds(1000, 0), 250);
  EXPECT_EQ(m.nanoseconds(10, 1 << 20), (1 << 20) / m.bytes_per_ns[2]);
  EXPECT_EQ(m.nanoseconds(1 << 20, 4), (1 << 20) * m.vector_ns);
}

#if VT_HAS_LLVM_HEADERS
TEST(Machine, IsMeasuredInAMoment) {
  if (!compiles()) GTEST_SKIP() << "no LLVM";
  const MachineCosts m = cpu::measured_costs();
  EXPECT_EQ(m.measured, 1);
  EXPECT_NE(m.str().find("machine, measured: vector operation "), std::string::npos) << m.str();
  for (double x : {m.vector_ns, m.exp, m.gather, m.wake_ns, m.bytes_per_ns[0], m.bytes_per_ns[1],
                   m.bytes_per_ns[2], m.bytes_per_ns[3]})
    EXPECT_GT(x, 0) << m.str();
  EXPECT_GT(m.exp, 2) << m.str();        // it is not one operation
  EXPECT_GT(m.wake_ns, 100) << m.str();  // nor is a thread awake at once
  EXPECT_LT(m.bytes_per_ns[3], 1000) << m.str();
  std::cout << m.str();
}
#endif

}  // namespace
