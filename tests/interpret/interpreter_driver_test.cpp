// dot_general, equations with bodies, the driver's freeing of buffers, the buffer pool, and the
// text of Tensors.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "src/trace/base/buffer.hpp"
#include "src/trace/record/scope.hpp"
#include "support/run_op.hpp"

namespace {

using vt::Axes;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using vt_test::make_tensor;
using vt_test::run_op;
using namespace vt::detail;

// --- dot_general ---------------------------------------------------------------------------------

using Index = std::vector<std::int64_t>;

std::size_t ravel(const Index& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<std::size_t>(flat);
}
Index unravel(std::int64_t flat, const Shape& shape) {
  Index index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

/// Sums over every pair of elements of the two operands whose batch and contracted indices agree.
template <class T, class Sum>
std::vector<Sum> brute_dot(const Tensor& a, const Tensor& b, const DotParams& p,
                           const Shape& result) {
  std::vector<Sum> sums(static_cast<std::size_t>(result.elements()), Sum{0});
  const auto x = a.to_vector<T>(), y = b.to_vector<T>();
  for (std::size_t f = 0; f < x.size(); ++f)
    for (std::size_t g = 0; g < y.size(); ++g) {
      const Index i = unravel(static_cast<std::int64_t>(f), a.shape()),
                  j = unravel(static_cast<std::int64_t>(g), b.shape());
      bool meet = true;
      Index out;
      for (std::size_t k = 0; k < p.lhs_batch.size(); ++k) {
        meet = meet && i[p.lhs_batch[k]] == j[p.rhs_batch[k]];
        out.push_back(i[p.lhs_batch[k]]);
      }
      for (std::size_t k = 0; k < p.lhs_contract.size(); ++k)
        meet = meet && i[p.lhs_contract[k]] == j[p.rhs_contract[k]];
      if (!meet) continue;
      for (int k = 0; k < a.rank(); ++k)
        if (!p.lhs_batch.contains(k) && !p.lhs_contract.contains(k)) out.push_back(i[k]);
      for (int k = 0; k < b.rank(); ++k)
        if (!p.rhs_batch.contains(k) && !p.rhs_contract.contains(k)) out.push_back(j[k]);
      sums[ravel(out, result)] += static_cast<Sum>(x[f]) * static_cast<Sum>(y[g]);
    }
  return sums;
}

struct DotCase {
  Shape lhs, rhs;
  DotParams params;
};
const std::vector<DotCase>& dot_cases() {
  static const std::vector<DotCase> all = {
      {{}, {}, {}},
      {{3}, {3}, {{0}, {0}, {}, {}}},
      {{3}, {4}, {}},
      {{3, 4}, {4, 5}, {{1}, {0}, {}, {}}},
      {{3, 4}, {5, 4}, {{1}, {1}, {}, {}}},
      {{4, 3}, {4, 5}, {{0}, {0}, {}, {}}},
      {{2, 3, 4}, {2, 4, 5}, {{2}, {1}, {0}, {0}}},
      {{3, 2, 4}, {4, 5, 2}, {{2}, {0}, {1}, {2}}},
      {{2, 3, 4, 2}, {3, 4, 2, 2}, {{1, 2}, {0, 1}, {0, 3}, {3, 2}}},
      {{2, 3, 4}, {4, 3, 5}, {{1, 2}, {1, 0}, {}, {}}},
      {{17, 3}, {3, 1}, {{1}, {0}, {}, {}}},
      {{3, 0}, {0, 4}, {{1}, {0}, {}, {}}},
      {{0, 3}, {3, 4}, {{1}, {0}, {}, {}}},
      {{0, 2, 3}, {0, 3, 2}, {{2}, {1}, {0}, {0}}},
  };
  return all;
}

TEST(InterpreterDot, EveryFormAndDtype) {
  for (const DotCase& c : dot_cases())
    for (DType dtype : vt_test::all_dtypes) {
      if (vt::is_bool(dtype)) continue;
      const Tensor a = vt_test::random_tensor(dtype, c.lhs, -100, 100, 1),
                   b = vt_test::random_tensor(dtype, c.rhs, -100, 100, 2);
      DotParams params = c.params;
      params.dtype = dtype;
      const Tensor y = run_op(Op::dot_general, params, {a, b});
      ASSERT_EQ(y.dtype(), dtype);
      if (vt::is_float(dtype)) {
        const auto expected = brute_dot<double, long double>(a, b, params, y.shape());
        const auto out = y.to_vector<double>();
        for (std::size_t i = 0; i < out.size(); ++i) {
          // f16 overflows where the true sum does.
          const double nearest =
              make_tensor(dtype, {}, {static_cast<double>(expected[i])}).item<double>();
          if (std::isinf(nearest)) EXPECT_EQ(out[i], nearest);
          else
            EXPECT_LE(std::fabs(out[i] - expected[i]),
                      0.501 * vt_test::ulp_of(nearest, dtype) + 1e-11 * (dtype == vt::f32));
        }
      } else {
        const auto expected = brute_dot<std::int64_t, std::uint64_t>(a, b, params, y.shape());
        with_type(dtype, [&](auto tag) {
          using T = decltype(tag);
          if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            const auto out = y.to_vector<T>();
            // wraps
            for (std::size_t i = 0; i < out.size(); ++i)
              EXPECT_EQ(out[i], static_cast<T>(expected[i]));
          }
        });
      }
    }
}

TEST(InterpreterDot, WiderResults) {
  const DotParams to_f32{Axes(0), Axes(0), {}, {}, vt::f32};
  // 300² overflows f16, its sum does not overflow f32.
  EXPECT_EQ(run_op(Op::dot_general, to_f32,
                   {make_tensor(vt::f16, {2}, {300, 1}), make_tensor(vt::f16, {2}, {300, 1})})
                .item<float>(),
            90001.0f);
  const DotParams to_i32{Axes(0), Axes(0), {}, {}, vt::i32};
  EXPECT_EQ(run_op(Op::dot_general, to_i32,
                   {make_tensor(vt::i8, {3}, {-128, -128, 127}),
                    make_tensor(vt::i8, {3}, {-128, -128, -128})})
                .item<int>(),
            2 * 16384 - 127 * 128);
  const DotParams to_f64{Axes(0), Axes(0), {}, {}, vt::f64};
  EXPECT_EQ(run_op(Op::dot_general, to_f64, {vt::tensor({1e30f, 1.0f}), vt::tensor({1e30f, 1.0f})})
                .item<double>(),
            static_cast<double>(1e30f) * 1e30f + 1);
  const DotParams plain{Axes(0), Axes(0), {}, {}, vt::f64};
  EXPECT_EQ(run_op(Op::dot_general, plain,
                   {vt::tensor({0x1p27 + 1, 1.0}), vt::tensor({0x1p27 + 1, -0x1p54})})
                .item<double>(),
            0x1p28 + 1);  // the square needs 55 bits
}

// --- bodies and the driver -----------------------------------------------------------------------

/// (x, y) → (x + y, (x + y) · x)
GraphRef two_results(const Aval& aval) {
  auto body = std::make_shared<GraphBody>();
  const Var x = body->fresh(aval), y = body->fresh(aval), s = body->fresh(aval),
            p = body->fresh(aval);
  body->inputs = {x, y};
  Equation add, mul;
  add.op = Op::add, add.inputs = {x, y}, add.outputs = {s};
  mul.op = Op::mul, mul.inputs = {s, x}, mul.outputs = {p};
  body->equations = {add, mul};
  body->outputs = {s, p};
  return body;
}

TEST(InterpreterDriver, EquationsWithABodyRunIt) {
  const Tensor x = vt::tensor({1.0f, 2.0f, 3.0f}), y = vt::tensor({10.0f, 20.0f, 30.0f});
  auto rule = std::make_shared<CustomRule>();
  rule->jvp = rule->forward = rule->backward = [](std::span<const Tensor>) -> std::vector<Tensor> {
    throw std::logic_error("a rule was called");
  };
  rule->batch = [](std::int64_t, const vt::Vec<bool>&, std::span<const Tensor>,
                   vt::Vec<bool>&) -> std::vector<Tensor> {
    throw std::logic_error("a rule was called");
  };
  for (Op op : {Op::call, Op::checkpoint, Op::custom_jvp, Op::custom_vjp, Op::custom_vmap}) {
    const auto out = vt_test::run_op_all(
        op, make_params(CallParams{two_results(Aval(vt::f32, {3})), rule, 2}), {x, y});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{11, 22, 33}));
    EXPECT_EQ(out[1].to_vector<float>(), (std::vector<float>{11, 44, 99}));
  }
}

TEST(InterpreterDriver, InputsAndRepeatedResultsPassThrough) {
  GraphBody graph;
  const Aval aval(vt::i32, {2});
  const Var x = graph.fresh(aval), unused = graph.fresh(aval), y = graph.fresh(aval);
  graph.inputs = {x, unused};
  Equation e;
  e.op = Op::add, e.inputs = {x, x}, e.outputs = {y};
  graph.equations = {e};
  graph.outputs = {y, x, y};
  const auto out = vt_test::run_graph_alone(graph, {vt::tensor({1, 2}), vt::tensor({7, 7})});
  EXPECT_EQ(out[0].to_vector<int>(), (std::vector<int>{2, 4}));
  EXPECT_EQ(out[1].to_vector<int>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(out[2].to_vector<int>(), (std::vector<int>{2, 4}));
}

/// A chain of `length` negations of n f32 numbers.
GraphBody chain(int length, std::int64_t n) {
  GraphBody graph;
  Var v = graph.fresh(Aval(vt::f32, {n}));
  graph.inputs = {v};
  for (int i = 0; i < length; ++i) {
    Equation e;
    e.op = Op::neg, e.inputs = {v}, e.where = vt::CallSite{"/user/proto.cpp", 41};
    v = graph.fresh(Aval(vt::f32, {n}));
    e.outputs = {v};
    graph.equations.push_back(e);
  }
  graph.outputs = {v};
  return graph;
}

TEST(InterpreterDriver, BuffersAreFreedAtTheirLastUse) {
  constexpr std::int64_t n = 1 << 18;  // 1 MiB of f32
  const Tensor x = vt_test::random_tensor(vt::f32, {n}, 1);
  const BufferRef input = value_of(x, {});
  reset_pool_peak();
  const std::size_t before = pool_use().in_use;
  const auto out = interpret(chain(50, n), vt::Vec<BufferRef>{input});
  // one intermediate and its successor
  EXPECT_LE(pool_use().peak - before, std::size_t{2} * n * sizeof(float) + 65536);
  EXPECT_EQ(std::memcmp(out[0]->data, input->data, n * sizeof(float)), 0);
}

TEST(InterpreterDriver, AnInputCannotBeRun) {
  vt_test::expect_error([] { run_op(Op::input, {}); }, vt::ErrorKind::value, {"vt::input"});
  GraphBody graph;
  const Var v = graph.fresh(Aval(vt::f32, {}));
  Equation e;
  e.op = Op::input, e.outputs = {v};
  vt_test::expect_error([&] { interpret_equation(e, graph, {}); }, vt::ErrorKind::tracer,
                        {"argument of a trace"});
}

// --- the pool ------------------------------------------------------------------------------------

TEST(BufferPool, BlocksAreAlignedDistinctAndReused) {
  trim_pool();
  vt::Vec<BufferRef> held;
  std::set<void*> seen;
  for (std::size_t bytes : {1u, 63u, 64u, 65u, 255u, 256u, 257u, 320u, 321u, 1000u, 4096u, 5000u,
                            100000u, 1u << 20, (1u << 20) + 1, 3000000u, 9000000u}) {
    BufferRef b = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data) % 64, 0u) << bytes;
    EXPECT_GE(b->capacity, bytes);
    EXPECT_LE(b->capacity,
              bytes + std::max<std::size_t>(63, bytes / 4) + 65536 * (bytes > (1u << 20)))
        << bytes;
    EXPECT_EQ(b->bytes, bytes);
    EXPECT_TRUE(seen.insert(b->data).second);
    std::memset(b->data, 0xab, bytes);
    held.push_back(std::move(b));
  }
  const std::size_t in_use = pool_use().in_use;
  held.clear();
  EXPECT_GE(pool_use().cached, in_use / 2);
  for (std::size_t bytes : {64u, 5000u, 9000000u}) {
    BufferRef again = allocate(bytes);
    EXPECT_TRUE(seen.contains(again->data)) << bytes;
  }
  trim_pool();
  EXPECT_EQ(pool_use().cached, 0u);
}

// What others left behind must not keep out the block that a program gives back and takes with
// every run.
TEST(BufferPool, KeepsWhatWasUsedLast) {
  trim_pool();
  reset_pool_peak();
  const std::size_t mega = std::size_t{1} << 20;
  {
    const BufferRef one = allocate(40 * mega), two = allocate(90 * mega);
  }
  EXPECT_GE(pool_use().cached, 130 * mega);
  {
    const BufferRef own = allocate(20 * mega);
  }
  const std::size_t cached = pool_use().cached;
  EXPECT_LE(cached, std::max(pool_use().peak, 64 * mega));
  for (int run = 0; run < 3; ++run) {
    const BufferRef own = allocate(20 * mega);
    EXPECT_EQ(pool_use().cached, cached - own->capacity);
  }
  trim_pool();
}

TEST(BufferPool, ZeroBytesAndBorrowedMemoryCostNothing) {
  const std::size_t before = pool_use().in_use;
  const BufferRef none = allocate(0);
  EXPECT_NE(none->data, nullptr);
  double value = 5;
  {
    const BufferRef own = borrow_memory(&value, sizeof value);
    EXPECT_EQ(own->as<double>(), &value);
  }
  EXPECT_EQ(pool_use().in_use, before);
  EXPECT_EQ(value, 5);
}

TEST(BufferPool, OutOfMemoryIsAnErrorThatNamesTheLine) {
  trim_pool();
  const std::size_t base = pool_use().in_use;
  set_memory_limit(base + (std::size_t{8} << 20));
  {
    BufferRef most = allocate(std::size_t{6} << 20);
    vt_test::expect_error([] { allocate(std::size_t{4} << 20, "test block"); },
                          vt::ErrorKind::memory,
                          {"test block needs 4.0 MiB", "VT_MEMORY_LIMIT", "8."});
    most = {};
    EXPECT_NO_THROW(allocate(std::size_t{7} << 20));  // the cached 6 MiB had to go first
  }
  trim_pool();
  vt::Vec<BufferRef> inputs{allocate(std::size_t{6} << 20)};
  std::memset(inputs[0]->data, 0, std::size_t{6} << 20);
  vt_test::expect_error([&] { interpret(chain(3, 6 << 18), inputs); }, vt::ErrorKind::memory,
                        {"neg needs 6.0 MiB", "for f32[1572864]", "at proto.cpp:41"});
  set_memory_limit(0);
  EXPECT_NO_THROW(interpret(chain(3, 6 << 18), inputs));
  vt_test::expect_error([] { allocate(std::numeric_limits<std::size_t>::max() / 2); },
                        vt::ErrorKind::memory, {"EiB"});
}

TEST(BufferPoolDeathTest, TheLimitComesFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, whose pool reads the variable
  setenv("VT_MEMORY_LIMIT", "3M", 1);
  EXPECT_EXIT(
      {
        try {
          allocate(std::size_t{4} << 20);
        } catch (const vt::Error& error) {
          std::exit(std::string(error.what()).find("limit (VT_MEMORY_LIMIT) is 3.0 MiB") !=
                            std::string::npos
                        ? 7
                        : 8);
        }
        std::exit(9);
      },
      testing::ExitedWithCode(7), "");
  unsetenv("VT_MEMORY_LIMIT");
}

TEST(BufferPool, ManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> faults{0};
  const std::size_t before = pool_use().in_use;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &faults] {
      std::mt19937 engine(static_cast<unsigned>(t));
      vt::Vec<BufferRef> held(16);
      for (int i = 0; i < 4000; ++i) {
        const std::size_t slot = engine() % held.size(), bytes = 64 + engine() % 20000;
        if (held[slot] &&
            held[slot]->as<unsigned char>()[held[slot]->bytes - 1] != static_cast<unsigned char>(t))
          ++faults;
        held[slot] = allocate(bytes);
        std::memset(held[slot]->data, t, bytes);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(pool_use().in_use, before);
}

// --- text ----------------------------------------------------------------------------------------

std::string text(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST(TensorText, NumbersStandBelowOneAnother) {
  EXPECT_EQ(text(vt::tensor(2.5f)), "2.5 f32[]");
  EXPECT_EQ(text(vt::tensor({1.0f, 2.0f})), "[1. 2.] f32[2]");
  EXPECT_EQ(text(vt::tensor({{1.0, -2.25}, {30.0, 0.5}})),
            "[[ 1.   -2.25]\n [30.    0.5 ]] f64[2,2]");
  EXPECT_EQ(text(vt::tensor({{1, -20}, {300, 4}})), "[[  1 -20]\n [300   4]] i32[2,2]");
  EXPECT_EQ(text(vt::tensor({true, false})), "[ true false] bool[2]");
  EXPECT_EQ(text(vt::tensor({std::numeric_limits<double>::quiet_NaN(),
                             -std::numeric_limits<double>::infinity(), 1.5})),
            "[ nan -inf  1.5] f64[3]");
  EXPECT_EQ(text(vt::tensor({1e-10, 1.0})), "[1e-10 1e+00] f64[2]");
  EXPECT_EQ(text(vt::tensor({0.1f, 0.25f})), "[0.1  0.25] f32[2]");
  EXPECT_EQ(text(make_tensor(vt::bf16, {2}, {0.1, 3})), "[0.1001 3.    ] bf16[2]");
  EXPECT_EQ(text(make_tensor(vt::f32, {0, 3}, {})), "[] f32[0,3]");
  EXPECT_EQ(text(make_tensor(vt::u8, {2, 1, 2}, {1, 2, 3, 4})), "[[[1 2]]\n\n [[3 4]]] u8[2,1,2]");
  EXPECT_EQ(text(vt::tensor(std::numeric_limits<std::uint64_t>::max())),
            "18446744073709551615 u64[]");
}

TEST(TensorText, LargeOnesAreSummarised) {
  std::vector<int> values(1001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  EXPECT_EQ(text(vt::tensor(values)), "[   0    1    2 ...  998  999 1000] i32[1001]");
  values.resize(1000);
  EXPECT_EQ(text(vt::tensor(values)).find("..."), std::string::npos);
  const std::string matrix = text(vt_test::random_tensor(vt::i32, {100, 100}, 10, 99, 1));
  EXPECT_EQ(std::count(matrix.begin(), matrix.end(), '\n'), 6);
  EXPECT_NE(matrix.find("\n ...\n"), std::string::npos);
}

TEST(TensorText, TracersShowWhatTheyAre) {
  EXPECT_EQ(text(Tensor()), "Tensor<empty>");
  Tensor kept;
  RecordOptions options;
  options.kind = ScopeKind::vmap;
  options.transform = "vt::vmap";
  {
    RecordingScope scope(options);
    kept = scope.input(Aval(vt::f32, {3}));
    EXPECT_EQ(text(kept), "Tracer<f32[3] under vt::vmap>");
  }
  EXPECT_EQ(text(kept), "Tracer<f32[3] under a transform that has ended>");
}

}  // namespace
