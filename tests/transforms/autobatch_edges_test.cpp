// autobatch where batching goes wrong most easily: what other libraries got wrong, any number of
// rows, threads, memory, and the texts of errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "src/trace/base/buffer.hpp"
#include "src/trace/ir/called_function.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Batching;
using vt::Tensor;
using Tensors = std::vector<Tensor>;
using vt_test::message;

constexpr Batching strategies[] = {Batching::none, Batching::by_depth, Batching::agenda};
constexpr vt_test::Tolerance near{.relative = 1e-12, .absolute = 1e-12};

Tensor random_of(const vt::Shape& shape, std::uint64_t seed, vt::DType dtype = vt::f64) {
  return vt_test::random_tensor(dtype, shape, -1, 1, seed);
}

/// Value and gradient of f, a function of (x, w) with a list of results, are the same with and
/// without autobatch.
template <class F>
void expect_alike(const F& f, const Tensor& x, const Tensor& w) {
  const auto loss = [](const auto& g) {
    return [&g](const Tensor& a, const Tensor& b) {
      Tensor sum = vt::zeros({}, vt::f64);
      double weight = 1;
      for (const Tensor& t : g(a, b)) sum += vt::sum(t.astype(vt::f64)) * (weight += 0.25);
      return sum;
    };
  };
  const Tensors wanted = f(x, w);
  const auto [dx, dw] = vt::grad<0, 1>(loss(f))(x, w);
  for (const Batching strategy : strategies) {
    SCOPED_TRACE("strategy " + std::to_string(static_cast<int>(strategy)));
    const auto batched = vt::autobatch(f, {.strategy = strategy});
    vt_test::expect_close(batched(x, w), wanted, near);
    const auto [gx, gw] = vt::grad<0, 1>(loss(batched))(x, w);
    vt_test::expect_close(gx, dx, near, "by x");
    vt_test::expect_close(gw, dw, near, "by w");
  }
}
constexpr std::int64_t many = 12;  // more than are computed as shared values

TEST(AutobatchEdges, ASharedOperandMadeInside) {
  const auto cell = vt::function(
      "edges_dense", [](const Tensor& x, const Tensor& w) { return vt::tanh(vt::matmul(x, w)); });
  expect_alike(
      [&](const Tensor& x, const Tensor& w) {
        const Tensor made = vt::tanh(w * 0.5);  // one for all
        Tensors all;
        for (std::int64_t i = 0; i < many; ++i) {
          const Tensor own = made * x[i][0];  // one for each
          all.push_back(cell(cell(x[i], made), own));
        }
        return all;
      },
      random_of({many, 4}, 1), random_of({4, 4}, 2));
}

TEST(AutobatchEdges, ElementsOfRowsByNumbersThatDiffer) {
  expect_alike(
      [&](const Tensor& x, const Tensor& w) {
        Tensors all;
        for (std::int64_t i = 0; i < 3 * many; ++i) {
          const Tensor scores = vt::matmul(x[i % many], w);
          all.push_back(vt::logsumexp(scores) - scores[(i * 5 + 1) % 4]);
        }
        return all;
      },
      random_of({many, 4}, 1), random_of({4, 4}, 2));
}

TEST(AutobatchEdges, OperationsOfOneKindWhoseParametersDiffer) {
  expect_alike(
      [&](const Tensor& x, const Tensor& w) {
        Tensors all;
        for (std::int64_t i = 0; i < 2 * many; ++i) {
          const auto k = static_cast<int>(i % 3);
          const Tensor square = vt::matmul(vt::reshape(x[i % many], {2, 2}), w);
          all.push_back(vt::sum(square, k % 2));
          all.push_back(
              vt::cumsum(k % 2 ? vt::transpose(square) : square, k % 2, {.reverse = k == 2}));
          all.push_back(vt::integer_pow(square, 2 + k));
          all.push_back(vt::roll(square, 1, k % 2) * (0.5 + k));
          all.push_back(vt::flip(square, {k % 2}) + vt::full({2, 2}, static_cast<double>(k)));
          all.push_back(vt::concatenate({square, square}, k % 2)[k % 2]);
          all.push_back(vt::softmax(square, k % 2) - vt::clip(square, -0.1 * k, 0.2));
        }
        return all;
      },
      random_of({many, 4}, 1), random_of({2, 2}, 2));
}

TEST(AutobatchEdges, OneHugeSum) {
  constexpr std::int64_t terms = 4000;
  const auto sum = [](const Tensor& x, const Tensor& w) {
    Tensor all = 0.0;
    for (std::int64_t i = 0; i < terms; ++i) all += vt::sin(x[i]) * w;
    return all;
  };
  const Tensor x = random_of({terms}, 1), w = random_of({}, 2);
  for (const Batching strategy : {Batching::by_depth, Batching::agenda}) {
    const auto batched = vt::autobatch(sum, {.strategy = strategy});
    EXPECT_NEAR(batched(x, w).item<double>(), (vt::sum(vt::sin(x)) * w).item<double>(), 1e-10);
    EXPECT_LE(vt::batch_stats().groups, 3u);
    const auto [gx, gw] = vt::grad<0, 1>(batched)(x, w);
    vt_test::expect_close(gx, vt::cos(x) * w, near);
    EXPECT_NEAR(gw.item<double>(), vt::sum(vt::sin(x)).item<double>(), 1e-10);
  }
}

TEST(AutobatchEdges, ValuesThatAreReadEarly) {
  expect_alike(
      [&](const Tensor& x, const Tensor& w) {
        Tensors all;
        for (std::int64_t i = 0; i < many; ++i) {
          const Tensor y = vt::matmul(x[i], w);
          // Read in the middle, one of them twice, and used once more behind that.
          if (i % 3 == 0) all.push_back(y * (y[0].item<double>() > 0 ? 2.0 : 3.0));
          if (i % 4 == 0) all.push_back(all.back() - y * std::round(y[0].item<double>()));
          all.push_back(vt::tanh(y));
        }
        return all;
      },
      random_of({many, 4}, 1), random_of({4, 4}, 2));
}

TEST(AutobatchEdges, NoWordsOneWordNoSentences) {
  const auto cell =
      vt::function("edges_rnn", [](const Tensor& h, const Tensor& x, const Tensor& w) {
        return vt::tanh(vt::matmul(h, w) + x);
      });
  for (const std::vector<int>& lengths :
       {std::vector<int>{}, {0}, {1}, {0, 0, 0}, {0, 1}, {1, 0, 3, 0, 1, 2}}) {
    const auto f = [&](const Tensor& x, const Tensor& w) {
      Tensors all;
      for (int n : lengths) {
        Tensor h = vt::zeros({4}, vt::f64);
        for (int t = 0; t < n; ++t) h = cell(h, x[t], w);
        all.push_back(h);
      }
      return all;
    };
    expect_alike(f, random_of({many, 4}, 1), random_of({4, 4}, 2));
  }
}

TEST(AutobatchEdges, ResultsThatAreParametersOrUnused) {
  expect_alike(
      [&](const Tensor& x, const Tensor& w) {
        Tensors all;
        for (std::int64_t i = 0; i < many; ++i) {
          const Tensor unused = vt::exp(vt::matmul(x[i], w));
          if (i % 4 == 0) all.push_back(w);
          else if (i % 4 == 1) all.push_back(x[i]);
          else if (i % 4 == 2) all.push_back(vt::full({2}, 3.0));
          else all.push_back(unused);
        }
        return all;
      },
      random_of({many, 4}, 1), random_of({4, 4}, 2));
}

// --- Figure 1 of the paper -----------------------------------------------------------------------

TEST(AutobatchEdges, UnequalSequencesAreLikePaddedOnes) {
  const auto step = [](const Tensor& h, const Tensor& x, const Tensor& w) {
    return vt::tanh(vt::matmul(h, w) + x);
  };
  const auto cost_of = [](const Tensor& h) { return vt::sum(h * h); };
  const auto cell = vt::function("edges_step", step);
  const auto cost = vt::function("edges_cost", cost_of);
  const std::vector<std::int64_t> lengths{4, 2, 3};
  const auto plain = [&](const Tensor& x, const Tensor& w) {
    Tensor sum = 0.0;
    for (std::size_t k = 0; k < 3; ++k) {
      Tensor h = vt::zeros({4}, vt::f64);
      for (std::int64_t t = 0; t < lengths[k]; ++t)
        h = cell(h, x[static_cast<std::int64_t>(k)][t], w);
      sum += cost(h);
    }
    return sum;
  };
  const auto padded = [&](const Tensor& x, const Tensor& w) {
    return vt::sum(vt::vmap([&](const Tensor& words, const Tensor& length) {
      const auto masked = [&](const Tensor& h, const std::pair<Tensor, Tensor>& at) {
        return std::pair(vt::where(at.second < length, step(h, at.first, w), h), std::nullopt);
      };
      return cost_of(
          vt::scan(masked, vt::zeros({4}, vt::f64), std::pair(words, vt::arange(4))).first);
    })(x, vt::tensor({4, 2, 3})));
  };
  const Tensor x = random_of({3, 4, 4}, 1), w = random_of({4, 4}, 2);
  const auto [dx, dw] = vt::grad<0, 1>(padded)(x, w);
  const std::uint64_t groups[] = {9 + 3 + 1, 4 + 3 + 1, 4 + 1 + 1};
  for (const Batching strategy : strategies) {
    const auto batched = vt::autobatch(plain, {.strategy = strategy});
    EXPECT_NEAR(batched(x, w).item<double>(), padded(x, w).item<double>(), 1e-13);
    EXPECT_EQ(vt::batch_stats().groups, groups[static_cast<int>(strategy)]);
    const auto [gx, gw] = vt::grad<0, 1>(batched)(x, w);
    vt_test::expect_close(gx, dx, near);
    vt_test::expect_close(gw, dw, near);
  }
}

// --- numbers of rows -----------------------------------------------------------------------------

/// f of one row of x, which shares w, as a batched call of so many rows.
struct Cell {
  std::string name;
  std::function<Tensor(const Tensor&, const Tensor&)> f;
  Tensors operator()(const Tensor& x, const Tensor& w) const {
    using namespace vt::detail;
    const std::int64_t count = x.dim(0);
    if (!body) {
      const vt::Shape row = x[0].shape();
      const std::vector<Aval> avals{Aval(x.dtype(), row), Aval(w.dtype(), w.shape())};
      body = std::make_shared<const GraphBody>(closed(
          record([&](std::span<const Tensor> a) { return std::vector<Tensor>{f(a[0], a[1])}; },
                 avals, {})));
      function = called_function(std::string(name));
    }
    BatchedCallParams p;
    p.body = body;
    p.function = function;
    p.lanes.count = count;
    p.lanes.mapped.push_back(true);
    p.lanes.mapped.push_back(false);
    p.summed.push_back(false);
    const auto out = emit_all(Op::batched_call, make_params(std::move(p)), Tensors{x, w}, {});
    return {out.begin(), out.end()};
  }
  mutable vt::detail::GraphRef body;
  mutable vt::detail::CalledRef function;
};
std::vector<Cell> cells_of_rows() {
  return {
      {"product",
       [](const Tensor& x, const Tensor& w) { return vt::tanh(vt::matmul(x, w)); },
       {},
       {}},
      {"softmax", [](const Tensor& x, const Tensor& w) { return vt::softmax(x) * w[0]; }, {}, {}},
      {"norm",
       [](const Tensor& x, const Tensor& w) { return vt::layer_norm(x, w[0], w[1]); },
       {},
       {}},
      {"reductions",
       [](const Tensor& x, const Tensor& w) {
         return vt::stack({vt::sum(x * w[1]), vt::max(x), vt::prod(x), vt::logsumexp(x)});
       },
       {},
       {}},
      {"integers",
       [](const Tensor& x, const Tensor& w) {
         const Tensor n = vt::argmax(x) + vt::argmin(w[0]);
         return vt::sort(vt::floor(x * 8.0f).astype(vt::i32) % (n + 3));
       },
       {},
       {}},
      {"attention",
       [](const Tensor& x, const Tensor& w) {
         const Tensor m = vt::outer(x, w[0]);
         return vt::matmul(vt::softmax(vt::matmul(m, vt::transpose(m))), w);
       },
       {},
       {}},
  };
}

TEST(AutobatchEdges, RowsDoNotDependOnTheRowsBesideThem) {
  constexpr std::int64_t most = 300;
  const Tensor x = random_of({most, 4}, 1, vt::f32).eval();
  const Tensor w = random_of({4, 4}, 2, vt::f32).eval();
  const std::vector<float> numbers = x.to_vector<float>();
  for (const Cell& cell : cells_of_rows()) {
    const std::vector<double> all = cell(x, w)[0].to_vector<double>();
    const std::size_t each = all.size() / most;
    std::vector<std::int64_t> counts;
    for (std::int64_t n = 1; n <= most; ++n) counts.push_back(n);
    std::mt19937 random(3);
    std::shuffle(counts.begin(), counts.end(), random);
    vt::wait_compiled();
    const auto compiled = vt::stats().kernels_compiled;
    for (const std::int64_t n : counts) {
      const auto first = static_cast<std::int64_t>(random() % static_cast<unsigned>(most - n + 1));
      // Made by hand: a slice would be compiled itself.
      const Tensor some = vt::tensor(
          std::vector<float>(numbers.begin() + first * 4, numbers.begin() + (first + n) * 4),
          {n, 4});
      const std::vector<double> got = cell(some, w)[0].to_vector<double>();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], all[static_cast<std::size_t>(first) * each + i])
            << cell.name << ", " << n << " rows, element " << i;
    }
    EXPECT_EQ(vt::stats().kernels_compiled, compiled) << cell.name;
  }
}

// --- threads and memory --------------------------------------------------------------------------

struct Model {
  Tensor w, rows;
};
Tensor sequences(const Model& m, const std::vector<int>& lengths) {
  static const auto cell =
      vt::function("edges_model", [](const Tensor& h, const Tensor& x, const Tensor& w) {
        return vt::tanh(vt::matmul(h, w) + x);
      });
  Tensor sum = vt::zeros({}, m.w.dtype());
  for (int n : lengths) {
    Tensor h = vt::zeros({m.w.dim(0)}, m.w.dtype());
    for (int t = 0; t < n; ++t) h = cell(h, m.rows[(n + t) % m.rows.dim(0)], m.w);
    sum += vt::sum(h * h);
  }
  return sum;
}
std::vector<int> lengths_of(int count, int most) {
  std::mt19937 random(5);
  std::vector<int> all;
  for (int k = 0; k < count; ++k)
    all.push_back(static_cast<int>(random() % static_cast<unsigned>(most)));
  return all;
}

TEST(AutobatchEdges, ThreadsDoNotChangeBits) {
  const Model m{random_of({32, 32}, 1, vt::f32) * 0.2f, random_of({7, 32}, 2, vt::f32)};
  const std::vector<int> lengths = lengths_of(700, 6);
  const int before = vt::num_threads();
  std::vector<std::vector<double>> first;
  // The first one is not compared: parts of it may be interpreted.
  for (const int threads : {1, 1, 2, 3}) {
    vt::set_num_threads(threads);
    const auto [v, g] =
        vt::value_and_grad(vt::autobatch([&](const Model& n) { return sequences(n, lengths); }))(m);
    std::vector<std::vector<double>> got{v.to_vector<double>(), g.w.to_vector<double>(),
                                         g.rows.to_vector<double>()};
    if (threads > 1) {
      EXPECT_EQ(got, first) << threads << " threads";
    }
    first = std::move(got);
  }
  vt::set_num_threads(before);
}

TEST(AutobatchEdges, StrategiesDifferByRoundingInSumsOverInstances) {
  const Model m{random_of({16, 16}, 1) * 0.2, random_of({7, 16}, 2)};
  const std::vector<int> lengths = lengths_of(60, 9);
  const auto f = [&](const Model& n) { return sequences(n, lengths); };
  const Model wanted = vt::grad(f)(m);
  for (const Batching strategy : strategies) {
    const Model got = vt::grad(vt::autobatch(f, {.strategy = strategy}))(m);
    vt_test::expect_close(got.w, wanted.w, {.relative = 1e-13, .absolute = 1e-13});
    vt_test::expect_close(got.rows, wanted.rows, {.relative = 1e-13, .absolute = 1e-13});
  }
}

TEST(AutobatchEdges, AGradientTakesNoMoreThanTwiceTheMemory) {
  const Model m{random_of({64, 64}, 1, vt::f32).eval(), random_of({7, 64}, 2, vt::f32).eval()};
  const std::vector<int> lengths = lengths_of(200, 20);
  const auto f = [&](const Model& n) { return sequences(n, lengths); };
  const auto most = [&](const auto& g) {
    std::uint64_t bytes = 0;
    for (int k = 0; k < 2; ++k) {  // compiled, then measured
      vt::detail::reset_pool_peak();
      const std::uint64_t before = vt::detail::pool_use().asked;
      const Model d = vt::grad(g)(m);
      vt::eval(d.w, d.rows);
      bytes = vt::detail::pool_use().asked_peak - before;
    }
    return bytes;
  };
  const std::uint64_t batched = most(vt::autobatch(f)), plain = most(f);
  EXPECT_LE(batched, 2 * plain);
}

// --- errors --------------------------------------------------------------------------------------

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  if (std::getenv("VT_SHOW_ERRORS")) std::printf("%s\n\n", text.c_str());
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

TEST(AutobatchErrors, ShapesThatDoNotFitNameTheLineOfTheOperation) {
  expect_parts(message([] {
                 vt::autobatch([](const Tensor& x) {
                   return vt::instances(std::vector<int>{0, 1, 2}, [&](int i) {
                     return vt::matmul(x, vt::ones({3 + i, 2}, vt::f64));
                   });
                 })(vt::ones({3}, vt::f64));
               }),
               {"matmul", "autobatch_edges_test.cpp"});
}

TEST(AutobatchErrors, ATracerKeptBeyondItsBatch) {
  Tensor kept;
  vt::autobatch([&](const Tensor& x) {
    kept = vt::sin(x);
    return x;
  })(vt::ones({2}, vt::f64));
  expect_parts(message([&] { static_cast<void>(kept.to_vector<double>()); }),
               {"vt::sin at ", "after its trace ended", "autobatch_edges_test.cpp"});
  expect_parts(message([&] {
                 vt::autobatch([&](const Tensor& x) { return x + kept; })(vt::ones({2}, vt::f64));
               }),
               {"vt::sin at ", "after its trace ended", "autobatch_edges_test.cpp"});
}

TEST(AutobatchErrors, AValueOfAnInnerTransformAtALook) {
  // The value of a Tensor that vmap maps inside of an instance is not known there.
  expect_parts(
      message([] {
        vt::autobatch([](const Tensor& x) {
          return vt::instances(std::vector<int>{0, 1}, [&](int) {
            return vt::vmap([](const Tensor& a) { return a.item<double>() > 0 ? a : -a; })(x * 2.0);
          });
        })(vt::ones({2}, vt::f64));
      }),
      {"vt::vmap", "autobatch_edges_test.cpp"});
}

TEST(AutobatchErrors, LooksUnderJitAndVmap) {
  const auto looks =
      vt::autobatch([](const Tensor& x) { return vt::sum(x).item<double>() > 0 ? vt::sin(x) : x; });
  expect_parts(message([&] { vt::jit(looks)(vt::ones({2}, vt::f64)); }),
               {"vt::jit", "autobatch_edges_test.cpp"});
  expect_parts(message([&] { vt::vmap(looks)(vt::ones({2, 2}, vt::f64)); }),
               {"vt::vmap", "autobatch_edges_test.cpp"});
  expect_parts(message([&] {
                 vt::vmap(vt::grad([&](const Tensor& x) { return vt::sum(looks(x)); }))(
                     vt::ones({2, 2}, vt::f64));
               }),
               {"vt::vmap", "autobatch_edges_test.cpp"});
}

TEST(AutobatchErrors, ALookAtWhatHasEffects) {
  expect_parts(message([] {
                 vt::autobatch([](const Tensor& x) {
                   const Tensor y = vt::callback([](const Tensor& a) { return a; }, x)(x);
                   return y.to_vector<double>()[0] > 0 ? x : -x;
                 })(vt::ones({2}, vt::f64));
               }),
               {"vt::callback at ", "has effects", "; at ", "autobatch_edges_test.cpp"});
}

TEST(AutobatchErrors, AnExceptionOfAnInstanceComesOutAsItIs) {
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  int unwound = 0;
  struct Guard {
    int& n;
    ~Guard() { ++n; }
  };
  const auto f = vt::autobatch([&](const Tensor& x) {
    return vt::instances(std::vector<int>{0, 1, 2}, [&](int i) {
      const Guard guard{unwound};
      if ((x * static_cast<double>(i)).item<double>() > 0.5) throw Own("instance fails");
      static_cast<void>((x + static_cast<double>(i)).item<double>());
      return x;
    });
  });
  EXPECT_THROW(f(vt::ones({}, vt::f64)), Own);
  EXPECT_EQ(unwound, 3);
  // Nothing is left behind.
  EXPECT_EQ(vt::autobatch([](const Tensor& x) { return x + 1.0; })(Tensor(1.0)).item<double>(),
            2.0);
}

// A sum whose beginning is another sum, before or behind it.
TEST(AutobatchSums, SumsThatBeginAlike) {
  const Tensor w = vt::tensor({0.7, -0.4, 1.1});
  const auto f = [](const std::vector<int>& lengths) {
    return [lengths](const Tensor& x) {
      Tensor total = 0.0;
      for (const int n : lengths) {
        Tensor e = vt::sin(x);
        for (int k = 1; k < n; ++k) e = e + vt::sin(x * static_cast<double>(k + 1));
        total += vt::sum(vt::tanh(e));
      }
      return total;
    };
  };
  for (const std::vector<int>& lengths : {std::vector{12, 4},
                                          {9, 2},
                                          {12, 11},
                                          {4, 12},
                                          {12, 12},
                                          {30, 9, 20, 9, 30, 1, 29},
                                          {8, 16, 24, 12}})
    for (Batching strategy : {Batching::none, Batching::by_depth, Batching::agenda}) {
      const auto batched = vt::autobatch(f(lengths), {.strategy = strategy});
      EXPECT_NEAR(batched(w).item<double>(), f(lengths)(w).item<double>(), 1e-12);
      const auto got = vt::grad(batched)(w).to_vector<double>(),
                 wanted = vt::grad(f(lengths))(w).to_vector<double>();
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12);
    }
}

// Operands that all nodes share, and that are another operand of some.
TEST(AutobatchSums, ASharedOperandTwice) {
  const Tensor a = vt::tensor({1.0, 2.0, 3.0}), b = vt::tensor({4.0, 5.0, 6.0});
  const auto f = [](const Tensor& x, const Tensor& y) {
    Tensor total = 0.0;
    for (int k = 0; k < 12; ++k) {
      Tensor z = x * static_cast<double>(k + 1);
      for (int i = 0; i < k % 4; ++i) z = vt::sin(z);
      total += vt::sum((k % 4 == 2 ? y : x) + (x + z)) * vt::sum((k % 4 == 2 ? y : x) * x * z);
    }
    return total;
  };
  for (Batching strategy : strategies)
    EXPECT_NEAR(vt::autobatch(f, {.strategy = strategy})(a, b).item<double>(),
                f(a, b).item<double>(), 1e-9);
}

}  // namespace
