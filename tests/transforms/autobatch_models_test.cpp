// autobatch on taggers and trees: every strategy gives what the same code gives by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace {

using vt::Batching;
using vt::Tensor;

constexpr Batching strategies[] = {Batching::none, Batching::by_depth, Batching::agenda};

struct Lstm {
  Tensor input, hidden, bias;
};
struct State {
  Tensor h, c;
};
State lstm_step(const Tensor& x, const State& before, const Lstm& p) {
  const Tensor gates = vt::matmul(x, p.input) + vt::matmul(before.h, p.hidden) + p.bias;
  const std::vector<Tensor> g = vt::split(gates, 4);
  const Tensor c = vt::sigmoid(g[0]) * before.c + vt::sigmoid(g[1]) * vt::tanh(g[2]);
  return {vt::sigmoid(g[3]) * vt::tanh(c), c};
}
struct Parameters {
  Tensor words;
  Lstm forward, backward;
  Tensor out;
};
using Sentence = std::vector<int>;

Tensor random_of(const vt::Shape& shape, std::uint64_t seed, vt::DType dtype) {
  return (vt::random::uniform(vt::random::key(seed), shape, dtype) - 0.5).eval();
}
Parameters parameters(int width, vt::DType dtype) {
  const auto lstm = [&](std::uint64_t seed) {
    return Lstm{random_of({width, 4 * width}, seed, dtype),
                random_of({width, 4 * width}, seed + 1, dtype),
                random_of({4 * width}, seed + 2, dtype)};
  };
  return {random_of({11, width}, 1, dtype), lstm(10), lstm(20),
          random_of({2 * width, 3}, 30, dtype)};
}

template <class Cell>
Tensor sentence_loss(const Parameters& p, const Sentence& s, Cell& cell) {
  const Tensor zero = vt::zeros({p.words.dim(1)}, p.words.dtype());
  std::vector<Tensor> f(s.size());
  State a{zero, zero}, b{zero, zero};
  for (std::size_t t = 0; t < s.size(); ++t) {
    a = cell(p.words[s[t]], a, p.forward);
    f[t] = a.h;
  }
  Tensor loss = vt::zeros({}, p.words.dtype());
  for (std::size_t t = s.size(); t-- > 0;) {
    b = cell(p.words[s[t]], b, p.backward);
    const Tensor scores = vt::matmul(vt::concatenate({f[t], b.h}), p.out);
    loss += vt::logsumexp(scores) - scores[s[t] % 3];
  }
  return loss;
}
template <class Cell>
Tensor batch_loss(const Parameters& p, const std::vector<Sentence>& batch, Cell& cell) {
  Tensor sum = vt::zeros({}, p.words.dtype());
  for (const Sentence& s : batch) sum += sentence_loss(p, s, cell);
  return sum;
}
std::vector<Sentence> sentences(std::initializer_list<int> lengths) {
  std::mt19937 random(7);
  std::vector<Sentence> all;
  for (int n : lengths) {
    all.emplace_back();
    for (int i = 0; i < n; ++i) all.back().push_back(static_cast<int>(random() % 11));
  }
  return all;
}

std::vector<std::vector<double>> numbers(const Parameters& p) {
  std::vector<std::vector<double>> all;
  vt::detail::for_each_leaf(p, [&](const Tensor& t) { all.push_back(t.to_vector<double>()); });
  return all;
}
void expect_close(const Parameters& got, const Parameters& wanted, double tolerance) {
  const auto a = numbers(got), b = numbers(wanted);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].size(); ++k)
      ASSERT_NEAR(a[i][k], b[i][k], tolerance) << "leaf " << i << " element " << k;
}

template <class Cell>
void expect_like_unbatched(Cell& cell, vt::DType dtype, double tolerance) {
  const Parameters p = parameters(5, dtype);
  const std::vector<Sentence> batch = sentences({3, 0, 7, 1, 7, 2, 12});
  const auto plain = [&](const Parameters& q) { return batch_loss(q, batch, cell); };
  const auto [value, gradient] = vt::value_and_grad(plain)(p);
  for (Batching strategy : strategies) {
    const auto loss = vt::autobatch(
        [&](const Parameters& q, const std::vector<Sentence>& b) { return batch_loss(q, b, cell); },
        {.strategy = strategy});
    EXPECT_NEAR(loss(p, batch).template item<double>(), value.template item<double>(), tolerance);
    const auto [v, g] = vt::value_and_grad([&](const Parameters& q) { return loss(q, batch); })(p);
    EXPECT_NEAR(v.template item<double>(), value.template item<double>(), tolerance);
    expect_close(g, gradient, tolerance);
    const auto compiled = vt::jit(vt::grad([&](const Parameters& q) { return loss(q, batch); }));
    expect_close(compiled(p), gradient, tolerance);
  }
}

TEST(AutobatchModels, TaggersOfCellsAreLikeUnbatchedOnes) {
  auto cell = vt::function("lstm", lstm_step);
  expect_like_unbatched(cell, vt::f64, 1e-10);
  expect_like_unbatched(cell, vt::f32, 1e-3);
}
TEST(AutobatchModels, TaggersOfPlainOperationsAreLikeUnbatchedOnes) {
  auto cell = lstm_step;
  expect_like_unbatched(cell, vt::f64, 1e-10);
  expect_like_unbatched(cell, vt::f32, 1e-3);
}

TEST(AutobatchModels, SecondDerivativesAreThoseOfTheSum) {
  auto cell = vt::function("lstm", lstm_step);
  const Parameters p = parameters(3, vt::f64);
  const std::vector<Sentence> batch = sentences({2, 4, 1});
  const auto loss = vt::autobatch(
      [&](const Parameters& q, const std::vector<Sentence>& b) { return batch_loss(q, b, cell); });
  const auto squares = [](const Parameters& g) {
    Tensor sum = vt::zeros({}, vt::f64);
    vt::detail::for_each_leaf(g, [&](const Tensor& t) { sum += vt::sum(t * t); });
    return sum;
  };
  const auto of = [&](const auto& f) {
    return vt::grad([&](const Parameters& q) { return squares(vt::grad(f)(q)); })(p);
  };
  expect_close(of([&](const Parameters& q) { return loss(q, batch); }),
               of([&](const Parameters& q) { return batch_loss(q, batch, cell); }), 1e-9);
}

TEST(AutobatchModels, StrategiesGiveTheSameBits) {
  auto cell = vt::function("lstm", lstm_step);
  const Parameters p = parameters(8, vt::f32);
  const std::vector<Sentence> batch = sentences({9, 4, 1, 17, 3, 3});
  std::vector<std::vector<float>> all;
  for (Batching strategy : strategies) {
    const auto losses = vt::autobatch(
        [&](const Parameters& q) {
          std::vector<Tensor> each;
          for (const Sentence& s : batch) each.push_back(sentence_loss(q, s, cell));
          return vt::stack(each);
        },
        {.strategy = strategy});
    all.push_back(losses(p).to_vector<float>());
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

/// When the thread that optimises kernels has nothing to do.
std::uint64_t kernels_compiled() {
  std::uint64_t last = vt::stats().kernels_compiled;
  for (int quiet = 0; quiet < 20; ++quiet) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (vt::stats().kernels_compiled != std::exchange(last, vt::stats().kernels_compiled))
      quiet = 0;
  }
  return last;
}

TEST(AutobatchModels, OtherMinibatchesCompileNothing) {
  auto cell = vt::function("lstm", lstm_step);
  const Parameters p = parameters(6, vt::f32);
  const auto loss = vt::autobatch(
      [&](const Parameters& q, const std::vector<Sentence>& b) { return batch_loss(q, b, cell); });
  const auto train = [&](const std::vector<Sentence>& batch) {
    auto [l, g] = vt::value_and_grad([&](const Parameters& q) { return loss(q, batch); })(p);
    vt::eval(l, g);
  };
  for (int i = 0; i < 3; ++i) train(sentences({9, 4, 1, 17, 3, 3}));
  train(sentences({1}));  // words that are the first and the last of all have other derivatives
  const auto before = kernels_compiled();
  train(sentences({8, 5, 2, 31, 3, 3, 1}));
  train(sentences({1, 1}));
  train(sentences({2}));
  if (p.words.device() == vt::cpu()) {  // elsewhere code is made for each number of rows
    EXPECT_EQ(kernels_compiled(), before);
  }
}

// Operations that always follow one another run as one, as those of a vt::function do.
TEST(AutobatchModels, PlainOperationsBecomeCells) {
  const Parameters p = parameters(6, vt::f32);
  const std::vector<Sentence> batch = sentences({9, 4, 7, 17, 5, 3});
  const auto groups = [&](auto cell, Batching strategy) {
    vt::autobatch([&] { return batch_loss(p, batch, cell); }, {.strategy = strategy})().eval();
    return vt::batch_stats();
  };
  const auto cell = vt::function("lstm", lstm_step);
  for (Batching strategy : {Batching::agenda, Batching::by_depth}) {
    const vt::BatchStats plain = groups(lstm_step, strategy), called = groups(cell, strategy);
    EXPECT_GT(plain.nodes, 2 * called.nodes);
    EXPECT_LT(plain.cells, called.nodes);
    // x·W of all words runs first; words without a state before them are of a kind of their own.
    EXPECT_LE(plain.groups, called.groups + 8);
  }
}

// Loops of different lengths, with an operation before and behind: what runs together does not
// depend on how long they are, and other lengths compile nothing.
TEST(AutobatchModels, CellsOfLoopsHaveOneTurn) {
  const Tensor x = random_of({5}, 1, vt::f32);
  const auto run = [&](const std::vector<int>& lengths) {
    const auto loss = [&](const Tensor& of) {
      Tensor sum = 0.0f;
      for (std::size_t k = 0; k < lengths.size(); ++k) {
        Tensor y = vt::exp(of * (1.0f / static_cast<float>(k + 1)));
        for (int i = 0; i < lengths[k]; ++i) {
          y = vt::sin(y) * of;
          y = y + 0.5f;
        }
        sum += vt::sum(vt::log(y * y + 1.0f));
      }
      return sum;
    };
    const auto [value, gradient] = vt::value_and_grad(vt::autobatch(loss))(x);
    const auto [v, g] = vt::value_and_grad(loss)(x);
    EXPECT_NEAR(value.item<float>(), v.item<float>(), 1e-4f);
    const auto a = gradient.to_vector<float>(), b = g.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3f);
    return vt::batch_stats();
  };
  const vt::BatchStats stats = run({3, 9, 1, 0, 6, 6, 2, 5});
  EXPECT_GT(stats.nodes, 3u * 32);
  EXPECT_LE(stats.groups, 2u * 9 + 6);
  EXPECT_LE(stats.signatures, 8u);
}

// Without autobatch: a value of many small equations, and a gradient whose terms are large.
TEST(AutobatchModels, LargeGraphsRunInBatchesByThemselves) {
  const Parameters p = parameters(6, vt::f32);
  const auto loss = [&](const std::vector<Sentence>& batch) {
    auto cell = lstm_step;
    return batch_loss(p, batch, cell);
  };
  const std::vector<Sentence> batch = sentences({9, 4, 7, 17, 5, 3, 12, 8, 8, 2});
  const double value = loss(batch).item<double>();
  double wanted = 0;
  for (const Sentence& s : batch) wanted += loss({s}).item<double>();
  EXPECT_NEAR(value, wanted, 1e-3);
  if (kernels_compiled() > 0 && p.words.device() == vt::cpu()) {
    const auto before = vt::stats();
    loss(sentences({3, 14, 7, 16, 5, 10, 11, 9, 6, 1})).eval();  // of another structure
    EXPECT_EQ(kernels_compiled(), before.kernels_compiled);
    EXPECT_EQ(vt::stats().interpreter_steps, before.interpreter_steps);
  }
}
TEST(AutobatchModels, GradientsOfLargeGraphsAddUpWhatTheyCompute) {
  const Tensor w = random_of({48, 48}, 1, vt::f32), x = random_of({48}, 2, vt::f32);
  const auto one = [&](const Tensor& of, int k) {
    Tensor h = x * static_cast<float>(k + 1);
    for (int i = 0; i < 4 + k % 7; ++i) {
      h = vt::tanh(vt::matmul(h, of));
      h = h * 0.5f + x;
      h = vt::sin(h) * vt::cos(x);
    }
    return vt::sum(h * h);
  };
  constexpr int count = 60;
  const Tensor together = vt::grad([&](const Tensor& of) {
    Tensor sum = 0.0f;
    for (int k = 0; k < count; ++k) sum += one(of, k);
    return sum;
  })(w);
  Tensor wanted = vt::zeros({48, 48});
  for (int k = 0; k < count; ++k)
    wanted = (wanted + vt::grad([&](const Tensor& of) { return one(of, k); })(w)).eval();
  const auto a = together.to_vector<float>(), b = wanted.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 2e-5f * (1 + std::abs(b[i]))) << i;
}

// The paper's Figure 1: a loss at the end of each of three sequences of different lengths.
TEST(AutobatchModels, AnAgendaBatchesLossesOfUnequalSequences) {
  auto cell = vt::function("cell", [](const Tensor& x, const Tensor& h, const Tensor& w) {
    return vt::tanh(vt::matmul(h, w) + x);
  });
  auto cost = vt::function("cost", [](const Tensor& h) { return vt::sum(h * h); });
  const Tensor w = random_of({4, 4}, 1, vt::f32), words = random_of({11, 4}, 2, vt::f32);
  const std::vector<Sentence> batch = sentences({2, 3, 4});
  const auto groups = [&](Batching strategy) {
    vt::autobatch(
        [&] {
          std::vector<Tensor> losses;
          for (const Sentence& s : batch) {
            Tensor h = vt::zeros({4});
            for (int word : s) h = cell(words[word], h, w);
            losses.push_back(cost(h));
          }
          return losses;
        },
        {.strategy = strategy})();
    return vt::batch_stats().groups;
  };
  EXPECT_EQ(groups(Batching::agenda), 4u + 1u);
  EXPECT_EQ(groups(Batching::by_depth), 4u + 3u);
  EXPECT_EQ(groups(Batching::none), 9u + 3u);
}

struct Tree {
  std::unique_ptr<Tree> left, right;
  int word = 0;
};
std::unique_ptr<Tree> random_tree(int leaves, std::mt19937& random) {
  auto tree = std::make_unique<Tree>();
  tree->word = static_cast<int>(random() % 11);
  if (leaves < 2) return tree;
  const int left = 1 + static_cast<int>(random() % static_cast<unsigned>(leaves - 1));
  tree->left = random_tree(left, random);
  tree->right = random_tree(leaves - left, random);
  return tree;
}
Tensor embed(const Tree& t, const Tensor& words, const Tensor& w) {
  if (!t.left) return words[t.word];
  const Tensor l = embed(*t.left, words, w), r = embed(*t.right, words, w);
  return vt::tanh(vt::matmul(vt::concatenate({l, r}), w));
}

TEST(AutobatchModels, TreesOfAnyTypeAreWalkedByReference) {
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Tree>> trees;
  for (int n : {1, 2, 5, 9, 14, 1, 6}) trees.push_back(random_tree(n, random));
  const Tensor words = random_of({11, 4}, 1, vt::f64), w = random_of({8, 4}, 2, vt::f64);
  const auto of = [](const Tensor& e, const Tensor& m,
                     const std::vector<std::unique_ptr<Tree>>& all) {
    Tensor sum = vt::zeros({}, vt::f64);
    for (const auto& t : all) sum += vt::sum(vt::sin(embed(*t, e, m)));
    return sum;
  };
  const auto [a, b] =
      vt::grad<0, 1>([&](const Tensor& e, const Tensor& m) { return of(e, m, trees); })(words, w);
  for (Batching strategy : strategies) {
    const auto batched = vt::autobatch(of, {.strategy = strategy});
    const auto [x, y] = vt::grad<0, 1>(
        [&](const Tensor& e, const Tensor& m) { return batched(e, m, trees); })(words, w);
    EXPECT_LT(vt::max(vt::abs(x - a)).item<double>(), 1e-12);
    EXPECT_LT(vt::max(vt::abs(y - b)).item<double>(), 1e-12);
  }
}

TEST(AutobatchModels, ALongSumIsOneGroup) {
  const auto batched = vt::autobatch([](const Tensor& x) {
    Tensor sum = 0.0f;
    for (int i = 0; i < 1000; ++i) sum += vt::sin(x[i]);
    return sum;
  });
  const Tensor x = vt::arange(1000).astype(vt::f32);
  EXPECT_NEAR(batched(x).item<double>(), vt::sum(vt::sin(x)).item<double>(), 1e-3);
  EXPECT_LE(vt::batch_stats().groups, 3u);
}

// Stacks of any number of rows are moved, and their sums added up; the statistics name what runs.
TEST(AutobatchModels, ListsOfAnyLengthAndWhatTheStatisticsSayOfThem) {
  const Tensor x = random_of({40, 5}, 1, vt::f64), w = random_of({5}, 2, vt::f64);
  const auto of = [&](const Tensor& p, const std::vector<int>& lengths) {
    std::vector<Tensor> all;
    for (const int n : lengths) {
      std::vector<Tensor> rows;
      for (int k = 0; k < n; ++k) rows.push_back(vt::tanh(x[k] * p));
      all.push_back(vt::sum(vt::sum(vt::stack(rows), 0) * p));
      all.push_back(vt::logsumexp(vt::concatenate(rows)));
    }
    return vt::sum(vt::stack(all));
  };
  const auto batched = vt::autobatch(of);
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{{3, 1, 7, 2}, {1}, {4, 4, 30}, {5, 6, 8, 9, 10}}) {
    const auto [a, b] = vt::value_and_grad(of)(w, lengths);
    const auto [v, g] = vt::value_and_grad(batched)(w, lengths);
    EXPECT_NEAR(v.item<double>(), a.item<double>(), 1e-12);
    EXPECT_LT(vt::max(vt::abs(g - b)).item<double>(), 1e-12);
  }
  const std::vector<int> last{5, 6, 8};
  batched(w, last).eval();
  const vt::BatchStats stats = vt::batch_stats();
  std::uint64_t nodes = 0, groups = 0;
  for (const vt::BatchKind& k : stats.kinds) nodes += k.nodes, groups += k.groups;
  EXPECT_EQ(nodes, stats.cells);
  EXPECT_EQ(groups, stats.groups);
  const auto kind = [&](std::string_view what, std::string_view operands) {
    return std::find_if(stats.kinds.begin(), stats.kinds.end(), [&](const vt::BatchKind& k) {
      return k.what.rfind(what, 0) == 0 && k.operands.rfind(operands, 0) == 0;
    });
  };
  const auto sums = kind("sum", "f64[5]"), rows = kind("mul … ", "f64[5] f64[5]");
  ASSERT_NE(sums, stats.kinds.end());
  EXPECT_EQ(sums->nodes, 3u);
  EXPECT_EQ(sums->line.rfind("autobatch_models_test.cpp:", 0), 0u) << sums->line;
  ASSERT_NE(rows, stats.kinds.end());
  EXPECT_EQ(rows->nodes, 8u);  // equal ones are computed once
  for (const double x : {0.25, 0.5}) batched((w * x).eval(), last).eval();
  EXPECT_EQ(vt::batch_stats().kernels_compiled, 0u);
}

TEST(AutobatchModels, DrawsAreOfOneKindInF64Too) {
  const auto of = [](const Tensor& w) {
    Tensor sum = vt::zeros({}, vt::f64);
    for (int i = 0; i < 24; ++i) {
      const Tensor key = vt::random::fold_in(vt::random::key(3), i),
                   x = vt::random::normal(key, {4}, vt::f64) * w;
      sum += vt::sum(x * x) + vt::sum(vt::random::exponential(key, {4}, vt::f64));
      sum += vt::random::categorical(key, x).astype(vt::f64);
    }
    return sum;
  };
  const Tensor w = random_of({4}, 1, vt::f64);
  const auto [a, b] = vt::value_and_grad(of)(w);
  const auto [v, g] = vt::value_and_grad(vt::autobatch(of))(w);
  EXPECT_NEAR(v.item<double>(), a.item<double>(), 1e-10);
  EXPECT_LT(vt::max(vt::abs(g - b)).item<double>(), 1e-10);
  EXPECT_LE(vt::batch_stats().groups, 30u);  // not one for each draw
}

// Trees of modules, large enough that their Graph is not interpreted.
struct Module {
  int kind = 0, word = 0;
  std::unique_ptr<Module> left, right;
};
std::unique_ptr<Module> random_modules(int count, std::mt19937& random) {
  auto m = std::make_unique<Module>();
  m->kind = static_cast<int>(random() % 3);
  m->word = static_cast<int>(random() % 11);
  if (count < 3) return m;
  const int left = 1 + static_cast<int>(random() % static_cast<unsigned>(count - 2));
  m->left = random_modules(left, random);
  m->right = random_modules(count - 1 - left, random);
  return m;
}
Tensor attention(const Module& m, const Parameters& p, const Tensor& memory) {
  const auto over = [&](const Tensor& query) {
    return vt::softmax(vt::matmul(memory, vt::tanh(vt::matmul(query, p.forward.input))));
  };
  if (!m.left) return over(p.words[m.word]);
  const Tensor a = attention(*m.left, p, memory), b = attention(*m.right, p, memory);
  if (m.kind == 0) return a * b;
  if (m.kind == 1) return vt::maximum(a, b);
  return over(vt::matmul(a, memory) + vt::matmul(b, memory) * p.words[m.word]);
}

TEST(AutobatchModels, GradientsOfLargeGraphsWithoutAutobatchAreBatchedToo) {
  constexpr int width = 32, rows = 12;
  Parameters p = parameters(width, vt::f32);
  p.forward.input = random_of({width, width}, 5, vt::f32);
  const Tensor memory = random_of({40, rows, width}, 6, vt::f32).eval();
  std::mt19937 random(7);
  std::uint64_t late = 0;
  for (int k = 0; k < 8; ++k) {
    std::vector<std::unique_ptr<Module>> all;
    for (int i = 0; i < 40; ++i)
      all.push_back(random_modules(3 + static_cast<int>(random() % 12), random));
    const auto of = [&](const Parameters& q) {
      Tensor sum = 0.0f;
      for (std::size_t i = 0; i < all.size(); ++i)
        sum += vt::sum(attention(*all[i], q, memory[static_cast<std::int64_t>(i)]));
      return sum;
    };
    const std::uint64_t before = kernels_compiled();
    const auto [v, g] = vt::value_and_grad(of)(p);
    vt::eval(v, g);
    if (k >= 4) late += kernels_compiled() - before;
    if (k % 4 != 0) continue;
    const auto [a, b] = vt::value_and_grad(vt::autobatch(of))(p);
    EXPECT_NEAR(v.item<double>(), a.item<double>(), 1e-3);
    expect_close(g, b, 1e-3);
  }
  if (p.words.device() == vt::cpu()) {
    EXPECT_LE(late, 8u) << "compiled by itself each has some 50 kernels";
  }
}

TEST(AutobatchModels, EffectsKeepTheirOrder) {
  std::string printed;
  vt::set_print_sink([&](std::string_view text) { printed += std::string(text) + "\n"; });
  vt::autobatch([](const Tensor& x) {
    std::vector<Tensor> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(vt::sin(x[i]) * 0.0f + static_cast<float>(i));
      vt::debug_print("{};", all.back());
    }
    return all;
  })(vt::ones({3}));
  vt::set_print_sink(nullptr);
  EXPECT_EQ(printed, "0.;\n1.;\n2.;\n") << printed;
  EXPECT_EQ(vt::batch_stats().unbatched.size(), 3u);
}

TEST(AutobatchModels, AValueInsideIsAnErrorThatNamesTheLine) {
  const auto looks =
      vt::autobatch([](const Tensor& x) { return vt::sin(x).item<float>() > 0 ? x : -x; });
  try {
    vt::jit(looks)(Tensor(1.0f));
    FAIL();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("autobatch_models_test.cpp"), std::string::npos)
        << e.what();
  }
}

}  // namespace
