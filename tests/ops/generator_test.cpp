// Generators: a sequence of draws is the same as it is, compiled, in loops and on any number of
// threads; lanes have streams of their own.
#include <set>
#include <thread>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Generator;
using vt::Tensor;
using vt_test::message;

using Words = std::vector<std::uint64_t>;

Words words(const Tensor& t) { return t.to_vector<std::uint64_t>(); }
Tensor key_of(const Tensor& key, std::int64_t c) { return vt::random::fold_in(key, c); }
Tensor draw(const Generator& g) { return g.bits({}, vt::u64); }

/// The first number of key number c of a generator with this key.
std::uint64_t number(const Tensor& key, std::int64_t c) {
  return vt::random::bits(key_of(key, c), {}, vt::u64).item<std::uint64_t>();
}
std::uint64_t lane_number(const Tensor& key, std::int64_t c, std::int64_t lane,
                          std::int64_t of_lane) {
  return number(key_of(key_of(key, c), lane), of_lane);
}

const Tensor seven = vt::random::key(7);

TEST(Generator, GivesTheKeysOfACount) {
  const Generator g(7);
  for (int c = 0; c < 5; ++c)
    EXPECT_EQ(g.next().item<std::uint64_t>(), key_of(seven, c).item<std::uint64_t>());
  const Generator same = g;
  EXPECT_EQ(same.next().item<std::uint64_t>(), key_of(seven, 5).item<std::uint64_t>());
  EXPECT_EQ(words(g.state()), (Words{7, 6}));
  EXPECT_EQ(words(Generator(vt::random::fold_in(seven, 3)).next()),
            words(key_of(key_of(seven, 3), 0)));
}

TEST(Generator, IsSeededSavedAndRestored) {
  const Generator g(3);
  const Tensor first = g.normal({4});
  const Tensor saved = g.state();
  const std::vector<float> second = g.normal({4}).to_vector<float>();
  g.seed(3);
  EXPECT_EQ(g.normal({4}).to_vector<float>(), first.to_vector<float>());
  const Generator other;
  other.set_state(saved);
  EXPECT_EQ(other.normal({4}).to_vector<float>(), second);
  EXPECT_NE(message([&] {
              other.set_state(vt::ones({2}));
            }).find("vt::Generator::set_state: a state is u64[2]"),
            std::string::npos);
  EXPECT_NE(message([&] { other.set_state(Tensor()); }), "no error");
  EXPECT_NE(message([&] { Generator(vt::ones({2})); }).find("vt::Generator: a key is one u64"),
            std::string::npos);
  EXPECT_EQ(words(other.state()), (Words{3, 2}));
}

TEST(Generator, HasTheDistributions) {
  const Tensor x = vt::arange(6, vt::f32);
  auto key = [c = std::int64_t{0}]() mutable { return key_of(seven, c++); };
  const Generator g(7);
  const auto same = [](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(a.astype(vt::f64).to_vector<double>(), b.astype(vt::f64).to_vector<double>());
  };
  namespace r = vt::random;
  same(g.bits({3}, vt::u16), r::bits(key(), {3}, vt::u16));
  same(g.uniform({3}), r::uniform(key(), {3}));
  same(g.uniform({3}, -1.0, 2.0, vt::f64), r::uniform(key(), {3}, -1.0, 2.0, vt::f64));
  same(g.randint({3}, 0, 9), r::randint(key(), {3}, 0, 9));
  same(g.bernoulli({3}, 0.3), r::bernoulli(key(), {3}, 0.3));
  same(g.categorical(x), r::categorical(key(), x));
  same(g.normal({3}, vt::f64), r::normal(key(), {3}, vt::f64));
  same(g.truncated_normal({3}, -1.0, 1.0), r::truncated_normal(key(), {3}, -1.0, 1.0));
  same(g.exponential({3}), r::exponential(key(), {3}));
  same(g.gumbel({3}), r::gumbel(key(), {3}));
  same(g.gamma({3}, 2.0), r::gamma(key(), {3}, 2.0));
  same(g.beta({3}, 2.0, 3.0), r::beta(key(), {3}, 2.0, 3.0));
  same(g.dirichlet({2}, vt::ones({3})), r::dirichlet(key(), {2}, vt::ones({3})));
  same(g.poisson({3}, 4.0), r::poisson(key(), {3}, 4.0));
  same(g.binomial({3}, 10, 0.5), r::binomial(key(), {3}, 10, 0.5));
  same(g.permutation(5), r::permutation(key(), 5));
  same(g.permutation(x), r::permutation(key(), x));
  same(g.choice(5, {2}), r::choice(key(), 5, {2}));
  same(g.choice(x, {2}, {.replace = false}), r::choice(key(), x, {2}, {.replace = false}));
}

TEST(Generator, CompiledSequencesAreTheSame) {
  const Generator g(7);
  const auto two = vt::jit([&](Tensor x) { return vt::stack({draw(g) + x, draw(g) + x}); });
  const Tensor zero = vt::tensor(std::uint64_t{0});
  for (int call = 0; call < 3; ++call) {
    const std::int64_t c = 3 * call;
    EXPECT_EQ(words(two(zero)), (Words{number(seven, c), number(seven, c + 1)}));
    EXPECT_EQ(words(draw(g)), Words{number(seven, c + 2)});
  }
  const auto outer = vt::jit(
      [&](Tensor x) { return vt::concatenate({two(x), vt::reshape(draw(g), {1}), two(x)}, 0); });
  EXPECT_EQ(words(outer(zero)), (Words{number(seven, 9), number(seven, 10), number(seven, 11),
                                       number(seven, 12), number(seven, 13)}));
  (void)vt::eval_shape(two, zero);
  EXPECT_EQ(words(g.state()), (Words{7, 14}));
}

TEST(Generator, InLoopsAndBranches) {
  const auto run = [](const Generator& g) {
    const Tensor a = vt::fori_loop(
        0, 3, [&](Tensor, Tensor sum) { return sum + draw(g); }, vt::tensor(std::uint64_t{0}));
    const auto [last, each] = vt::scan(
        [&](Tensor c, Tensor x) { return std::pair(c, x + draw(g)); }, 0, vt::zeros({2}, vt::u64));
    const Tensor b = vt::cond(
        vt::less(last, 1), [&] { return draw(g); }, [] { return vt::tensor(std::uint64_t{5}); });
    const Tensor w = std::get<1>(
        vt::while_loop([](Tensor i, Tensor) { return i < 2; },
                       [&](Tensor i, Tensor s) { return std::pair(i + 1, s + draw(g)); },
                       std::pair(vt::tensor(0), vt::tensor(std::uint64_t{0}))));
    return vt::stack({a, each[0], each[1], b, w, draw(g)});
  };
  const auto n = [](std::int64_t c) { return number(seven, c); };
  const Words wanted{n(0) + n(1) + n(2), n(3), n(4), n(5), n(6) + n(7), n(8)};
  const Generator g(7);
  EXPECT_EQ(words(run(g)), wanted);
  const auto compiled = vt::jit([&](Tensor x) { return run(g) + x; });
  for (int call = 0; call < 2; ++call) {
    g.seed(7);
    EXPECT_EQ(words(compiled(vt::tensor(std::uint64_t{0}))), wanted);
    EXPECT_EQ(words(g.state()), (Words{7, 9}));
  }
}

TEST(Generator, LanesHaveStreamsOfTheirOwn) {
  const auto run = [](const Generator& g, int chunk) {
    draw(g);
    const Tensor lanes = vt::pfor(
        [&](Tensor i) {
          return vt::stack({draw(g), draw(g) + i.astype(vt::u64) * std::uint64_t{0}});
        },
        5, {.chunk = chunk});
    const Tensor unmapped = vt::vmap([&] { return draw(g); }, {.axis_size = 2})();
    return vt::concatenate({vt::reshape(lanes, {10}), unmapped, vt::reshape(draw(g), {1})}, 0);
  };
  Words wanted;
  for (int lane = 0; lane < 5; ++lane)
    for (int c = 0; c < 2; ++c) wanted.push_back(lane_number(seven, 1, lane, c));
  for (int lane = 0; lane < 2; ++lane) wanted.push_back(lane_number(seven, 2, lane, 0));
  wanted.push_back(number(seven, 3));
  EXPECT_EQ(std::set<std::uint64_t>(wanted.begin(), wanted.end()).size(), wanted.size());
  for (int chunk : {0, 1, 2, 5, 7}) {
    SCOPED_TRACE(chunk);
    const Generator g(7);
    EXPECT_EQ(words(run(g, chunk)), wanted);
    g.seed(7);
    const auto compiled = vt::jit([&](Tensor x) { return run(g, chunk) + x; });
    EXPECT_EQ(words(compiled(vt::tensor(std::uint64_t{0}))), wanted);
  }
}

TEST(Generator, VmapsInVmapsWithNamesAndWithoutLanes) {
  const Generator g(7);
  const Tensor m = vt::zeros({2, 3}, vt::u64);
  const Tensor got = vt::vmap(
      [&](Tensor row) {
        const Tensor own = draw(g);
        const Tensor inner =
            vt::vmap([&](Tensor x) { return draw(g) + x + vt::axis_index("rows").astype(vt::u64); },
                     {.axis_name = "columns"})(row);
        return vt::concatenate({vt::reshape(own, {1}), inner, vt::reshape(draw(g), {1})}, 0);
      },
      {.axis_name = "rows"})(m);
  Words wanted;
  for (int i = 0; i < 2; ++i) {
    const Tensor row = key_of(key_of(seven, 0), i);
    wanted.push_back(number(row, 0));
    for (int j = 0; j < 3; ++j)
      wanted.push_back(lane_number(row, 1, j, 0) + static_cast<std::uint64_t>(i));
    wanted.push_back(number(row, 2));
  }
  EXPECT_EQ(words(got), wanted);
  EXPECT_EQ(words(g.state()), (Words{7, 1}));
  EXPECT_EQ(vt::pfor([&](Tensor) { return g.normal({2}); }, 0).shape(), (vt::Shape{0, 2}));
  EXPECT_EQ(words(draw(g)), Words{number(seven, 2)});
}

TEST(Generator, LanesThatPart) {
  // Each lane draws as often as it goes iteration, in a branch only where it goes.
  const auto run = [](const Generator& g, Tensor n) {
    return vt::vmap([&](Tensor n) {
      const Tensor sum = vt::fori_loop(
          0, n, [&](Tensor, Tensor s) { return s + draw(g); }, vt::tensor(std::uint64_t{0}));
      const Tensor extra =
          vt::cond(n > 1, [&] { return draw(g); }, [] { return vt::tensor(std::uint64_t{0}); });
      return vt::stack({sum, extra, draw(g)});
    })(n);
  };
  const std::vector<int> counts{3, 0, 1, 2};
  Words wanted;
  for (std::size_t lane = 0; lane < counts.size(); ++lane) {
    std::int64_t c = 0;
    const auto next = [&] { return lane_number(seven, 0, static_cast<std::int64_t>(lane), c++); };
    std::uint64_t sum = 0;
    for (int k = 0; k < counts[lane]; ++k) sum += next();
    wanted.push_back(sum);
    wanted.push_back(counts[lane] > 1 ? next() : 0);
    wanted.push_back(next());
  }
  const Tensor n = vt::tensor(counts, {4});
  const Generator g(7);
  EXPECT_EQ(words(run(g, n)), wanted);
  g.seed(7);
  EXPECT_EQ(words(vt::jit([&](Tensor n) { return run(g, n); })(n)), wanted);
  EXPECT_EQ(words(g.state()), (Words{7, 1}));
}

TEST(Generator, UnderDerivatives) {
  const Generator g(7);
  const auto noisy = [&](Tensor x) { return vt::sum(x * g.normal({3}, vt::f64)); };
  const Tensor x = vt::ones({3}, vt::f64);
  const auto factor = [](std::int64_t c) {
    return vt::random::normal(key_of(seven, c), {3}, vt::f64).to_vector<double>();
  };
  EXPECT_EQ(vt::grad(noisy)(x).to_vector<double>(), factor(0));
  EXPECT_EQ(vt::jit(vt::grad(noisy))(x).to_vector<double>(), factor(1));
  EXPECT_EQ(vt::jacfwd(noisy)(x).to_vector<double>(), factor(2));
  const auto again = vt::checkpoint([&](Tensor x) { return vt::sin(x * g.normal({3}, vt::f64)); });
  // computed twice, with one draw
  const Tensor slope = vt::grad([&](Tensor x) { return vt::sum(again(x)); })(x);
  const std::vector<double> f = factor(3);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(slope.to_vector<double>()[i], f[i] * std::cos(f[i]), 1e-14);
  const Tensor rows = vt::vmap(vt::grad(noisy))(vt::ones({2, 3}, vt::f64));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(rows[i].to_vector<double>(),
              vt::random::normal(key_of(key_of(key_of(seven, 4), i), 0), {3}, vt::f64)
                  .to_vector<double>());
  EXPECT_EQ(words(g.state()), (Words{7, 5}));
}

TEST(Generator, RefusesWhereVariablesDo) {
  const Generator g(7);
  const Tensor x = vt::tensor(1.0);
  const auto noisy = [&](Tensor x) { return x + g.normal({}, vt::f64); };
  const std::string rule = message([&] {
    vt::grad(vt::custom_jvp(noisy, [](Tensor x, Tensor dx) { return std::pair(x, dx); }))(x);
  });
  EXPECT_NE(rule.find("a generator"), std::string::npos) << rule;
  const std::string condition = message([&] {
    vt::while_loop([&](Tensor x) { return noisy(x) < 0; }, [](Tensor x) { return x; }, x);
  });
  EXPECT_NE(condition.find("a generator"), std::string::npos) << condition;
  EXPECT_NE(message([&] { vt::make_graph(noisy)(x); }).find("generator_test.cpp:"),
            std::string::npos);
  const std::string lanes = message([&] {
    vt::vmap([&](Tensor x) {
      return vt::custom_vmap(noisy, [](int, auto, Tensor x) { return std::pair(x, true); })(x);
    })(vt::ones({2}));
  });
  EXPECT_NE(lanes.find("a generator"), std::string::npos) << lanes;
  EXPECT_NE(message([&] { vt::jit([](Tensor k) { return Generator(k).next(); })(seven); }),
            "no error");
  EXPECT_EQ(words(g.state()), (Words{7, 0}));
}

TEST(Generator, ThreadsTakeDifferentKeys) {
  const Generator g(7);
  constexpr int draws = 200, threads = 4;
  std::vector<Words> taken(threads);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      for (int i = 0; i < draws; ++i) taken[t].push_back(g.next().item<std::uint64_t>());
    });
  for (std::thread& t : pool) t.join();
  std::set<std::uint64_t> all;
  for (const Words& w : taken) all.insert(w.begin(), w.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(draws * threads));
  EXPECT_EQ(words(g.state()), (Words{7, draws * threads}));
  // Nor do they change the numbers themselves.
  const auto program = vt::jit([&](Tensor x) { return g.normal({100000}) + x; });
  std::vector<std::vector<float>> made;
  for (const int count : {1, 4}) {
    vt::set_num_threads(count);
    g.seed(1);
    made.push_back(program(vt::tensor(0.0f)).to_vector<float>());
  }
  EXPECT_EQ(made[0], made[1]);
}

TEST(Generator, ThreadsTakeDifferentKeysInCompiledFunctions) {
  const Generator g(7);
  const auto program = vt::jit([&](Tensor) { return vt::stack({draw(g), draw(g)}); });
  program(vt::tensor(0.0f)).eval();
  vt::Variable sum(vt::tensor(0.0), "sum");
  const auto add = vt::jit([&](Tensor x) { return sum.assign_add(x), x; });
  constexpr int draws = 100, threads = 4;
  std::vector<Words> taken(threads);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      Words& mine = taken[t];
      for (int i = 0; i < draws; ++i) {
        for (const std::uint64_t w : words(program(vt::tensor(0.0f)))) mine.push_back(w);
        mine.push_back(draw(g).item<std::uint64_t>());  // beside those that run compiled
        add(vt::tensor(1.0)).eval();
        sum.assign_add(1.0);
      }
    });
  for (std::thread& t : pool) t.join();
  std::set<std::uint64_t> all;
  for (const Words& w : taken) all.insert(w.begin(), w.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(3 * draws * threads));
  EXPECT_EQ(words(g.state()), (Words{7, 2 + 3 * draws * threads}));
  EXPECT_EQ(sum.read().item<double>(), 2 * draws * threads);
}

}  // namespace
