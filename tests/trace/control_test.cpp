// Values of cond, switch_, while_loop, fori_loop, scan, map and associative_scan against C++ loops:
// trees of every kind as carries, numbers that become Tensors, captured Tensors, loops of no
// iterations, and all of it under jit.
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::random_quarters;

struct State {
  Tensor position;
  std::array<Tensor, 2> momenta;
  std::map<std::string, Tensor> more;
};

State start() {
  return {vt::tensor({1.0, 2.0}),
          {vt::tensor(3.0), vt::tensor({{4.0}})},
          {{"energy", vt::tensor(5.0)}, {"age", vt::tensor(0)}}};
}
State stepped(const State& s) {
  State next = s;
  next.position = s.position + s.momenta[0];
  next.momenta[0] = 0.5 * s.momenta[0];
  next.momenta[1] = s.momenta[1] - vt::sum(s.position);
  next.more["energy"] = s.more.at("energy") * 2.0;
  next.more["age"] = s.more.at("age") + 1;
  return next;
}
void expect_same(const State& actual, const State& expected) {
  const std::vector<Tensor> a = vt::tree_leaves(actual), b = vt::tree_leaves(expected);
  expect_close(a, b);
}

// --- cond and switch_ ----------------------------------------------------------------------------

TEST(Cond, TakesOneOfTwoTrees) {
  const auto f = [](Tensor p, State s) {
    return vt::cond(p, stepped, [](const State& own) { return own; }, s);
  };
  expect_same(f(vt::tensor(true), start()), stepped(start()));
  expect_same(f(vt::tensor(false), start()), start());
  expect_same(vt::jit(f)(vt::tensor(true), start()), stepped(start()));
  expect_same(vt::jit(f)(vt::tensor(false), start()), start());
}

TEST(Cond, PredicatesOfEveryKind) {
  const auto f = [](auto p) {
    return vt::cond(
               p, [] { return vt::tensor(1.0); }, [] { return vt::tensor(2.0); })
        .template item<double>();
  };
  for (double v : {0.0, 1.0, -0.5})
    for (vt::DType t : vt_test::all_dtypes) {
      if (v != std::floor(v) && !vt::is_float(t)) continue;
      if (v < 0 && vt::is_unsigned(t)) continue;
      EXPECT_EQ(f(vt_test::make_tensor(t, {}, {v})), v != 0 ? 1.0 : 2.0)
          << v << " " << vt::name_of(t);
    }
  EXPECT_EQ(f(true), 1.0);
  EXPECT_EQ(f(0), 2.0);
}

TEST(Cond, NumbersAdoptTheOtherDtype) {
  const auto f = [](Tensor p, Tensor x) {
    return vt::cond(p, [](Tensor v) { return v; }, [](Tensor) { return 0; }, x);
  };
  for (vt::DType t : {vt::f16, vt::f32, vt::f64, vt::i8, vt::u64}) {
    const Tensor x = vt_test::make_tensor(t, {}, {3});
    expect_close(f(vt::tensor(true), x), x);
    expect_close(f(vt::tensor(false), x), vt_test::make_tensor(t, {}, {0}));
  }
  // Two numbers stay a number, which widens nothing.
  const Tensor both = vt::cond(true, [] { return 2.5; }, [] { return 1; });
  EXPECT_EQ((both * vt::ones({2}, vt::f16)).dtype(), vt::f16);
  const auto [a, b] = vt::cond(
      false, [] { return std::pair(1, vt::tensor(2.0f)); },
      [] { return std::pair(vt::tensor(3.0), 4.0); });
  expect_close(a, vt::tensor(3.0));
  expect_close(b, vt::tensor(4.0f));
}

TEST(Cond, OperandsAreTreesOfTensorsAndStaticValues) {
  const std::vector<Tensor> xs = {vt::tensor(1.0), vt::tensor(2.0)};
  const std::optional<Tensor> none, some = vt::tensor(10.0);
  const auto f = [](const std::vector<Tensor>& v, int times, const std::optional<Tensor>& more) {
    Tensor sum = v[0] * static_cast<double>(times) + v[1];
    return more ? sum + *more : sum;
  };
  const auto g = [](const std::vector<Tensor>& v, int, const std::optional<Tensor>&) {
    return v[1];
  };
  expect_close(vt::cond(true, f, g, xs, 3, none), vt::tensor(5.0));
  expect_close(vt::cond(true, f, g, xs, 3, some), vt::tensor(15.0));
  expect_close(vt::cond(false, f, g, xs, 3, some), vt::tensor(2.0));
}

TEST(Cond, CapturedTensorsOfEitherBranch) {
  const Tensor a = vt::tensor({1.0, 2.0}), b = vt::tensor(3.0);
  const auto f = [&](Tensor p, Tensor x) {
    const Tensor inside = x * 2.0;  // a tracer of the outer function
    return vt::cond(p, [&] { return a + inside; }, [&] { return a * b - inside; });
  };
  expect_close(vt::jit(f)(vt::tensor(true), vt::tensor(1.0)), vt::tensor({3.0, 4.0}));
  expect_close(vt::jit(f)(vt::tensor(false), vt::tensor(1.0)), vt::tensor({1.0, 4.0}));
}

TEST(Switch, IndexIsClampedWhateverItsDtype) {
  const auto f = [](Tensor i, Tensor x) {
    return vt::switch_(i,
                       std::tuple([](Tensor v) { return v; }, [](Tensor v) { return v + 1.0; },
                                  [](Tensor v) { return v * v; }),
                       x);
  };
  const Tensor x = vt::tensor(3.0);
  const double expected[] = {3, 4, 9};
  for (vt::DType t : vt_test::int_dtypes)
    for (int i : {0, 1, 2, 3, 100})
      expect_close(f(vt_test::make_tensor(t, {}, {double(i)}), x),
                   vt::tensor(expected[std::min(i, 2)]));
  for (vt::DType t : {vt::i8, vt::i16, vt::i32, vt::i64})
    expect_close(f(vt_test::make_tensor(t, {}, {-7}), x), x);
  // Numbers that wrap to 1 when cut to 32 bits.
  expect_close(f(vt::tensor((std::int64_t{1} << 32) + 1), x), vt::tensor(9.0));
  expect_close(f(vt::tensor(-(std::int64_t{1} << 32) + 1), x), x);
  expect_close(f(vt::tensor(~std::uint64_t{0}), x), vt::tensor(9.0));
  expect_close(vt::switch_(5, std::tuple([] { return vt::tensor(1.0); })), vt::tensor(1.0));
}

// --- while_loop and fori_loop --------------------------------------------------------------------

TEST(While, CollatzAsPairAndAsParameters) {
  const auto steps = [](Tensor n) {
    return std::get<1>(vt::while_loop([](Tensor v, Tensor) { return v != 1; },
                                      [](Tensor v, Tensor count) {
                                        return std::pair(vt::where(v % 2 == 0, v / 2, 3 * v + 1),
                                                         count + 1);
                                      },
                                      std::pair(n, 0)));
  };
  for (int n : {1, 2, 3, 27}) {
    int count = 0;
    for (long v = n; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++count;
    EXPECT_EQ(steps(vt::tensor(n)).item<int>(), count);
    EXPECT_EQ(vt::jit(steps)(vt::tensor(n)).item<int>(), count);
  }
}

TEST(While, StructsMapsAndArraysAsCarries) {
  const auto f = [](State s) {
    return vt::while_loop([](const State& c) { return c.more.at("age") < 5; }, stepped, s);
  };
  State expected = start();
  for (int i = 0; i < 5; ++i) expected = stepped(expected);
  expect_same(f(start()), expected);
  expect_same(vt::jit(f)(start()), expected);
}

TEST(While, NestedTuplesWithNumbers) {
  using Nested = std::tuple<int, std::tuple<double, std::vector<Tensor>>, std::array<float, 2>>;
  const Nested init{0, {1.0, {vt::tensor({1.0f, 2.0f}), vt::tensor(3.0)}}, {0.0f, 1.0f}};
  const auto out = vt::while_loop(
      [](Tensor i, auto...) { return i < 4; },
      [](Tensor i, auto inner, auto pair) {
        auto [d, v] = inner;
        return std::tuple(i + 1, std::tuple(d * 2.0, std::vector<Tensor>{v[0] + v[0], v[1] - 1.0}),
                          std::array<Tensor, 2>{pair[1], pair[0] + pair[1]});
      },
      init);
  EXPECT_EQ(std::get<0>(out).item<int>(), 4);
  EXPECT_EQ(std::get<0>(std::get<1>(out)).item<double>(), 16.0);
  expect_close(std::get<1>(std::get<1>(out)), {vt::tensor({16.0f, 32.0f}), vt::tensor(-1.0)});
  EXPECT_EQ(std::get<2>(out)[0].item<float>(), 3.0f);
}

TEST(While, NumbersAdoptWhatTheBodyMakesOfThem) {
  // b meets x's dtype one iteration after a did.
  const auto f = [](Tensor x) {
    return vt::while_loop(
        [](Tensor i, Tensor, Tensor) { return i < 3; },
        [&](Tensor i, Tensor a, Tensor b) { return std::tuple(i + 1, a + x, b + a); },
        std::tuple(0, 0, 0));
  };
  for (vt::DType t : {vt::f32, vt::f64, vt::f16, vt::i8, vt::u16, vt::i64}) {
    const auto [i, a, b] = f(vt_test::make_tensor(t, {}, {2}));
    EXPECT_EQ(i.item<int>(), 3);
    expect_close(a, vt_test::make_tensor(t, {}, {6}));
    expect_close(b, vt_test::make_tensor(t, {}, {6}));
  }
}

TEST(While, NoIterationsGiveTheInitialValues) {
  const Tensor x = random_quarters(vt::f32, {3}, 1), empty = vt::zeros({0, 4}, vt::f16);
  const auto [a, b] =
      vt::while_loop([](Tensor, Tensor) { return false; },
                     [](Tensor v, Tensor w) { return std::pair(v + 1.0, w); }, std::pair(x, empty));
  expect_close(a, x);
  expect_close(b, empty);
  // A number keeps the dtype that the body would have given it.
  EXPECT_EQ(
      vt::while_loop([](Tensor) { return false; }, [](Tensor v) { return v + vt::tensor(1.0f); }, 2)
          .dtype(),
      vt::f32);
}

TEST(While, StopsByACapturedValueOfAnOuterLoop) {
  const auto f = [](Tensor n) {
    return vt::fori_loop(
        0, n,
        [](Tensor i, Tensor sum) {
          return vt::while_loop([&](Tensor j, Tensor) { return j < i; },
                                [&](Tensor j, Tensor s) { return std::pair(j + 1, s + i * j); },
                                std::pair(0, sum))
              .second;
        },
        vt::tensor(0));
  };
  int expected = 0;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < i; ++j) expected += i * j;
  EXPECT_EQ(f(vt::tensor(6)).item<int>(), expected);
  EXPECT_EQ(vt::jit(f)(vt::tensor(6)).item<int>(), expected);
}

TEST(Fori, BoundsOfEveryKind) {
  const auto sum = [](auto lower, auto upper) {
    return vt::fori_loop(
               lower, upper, [](Tensor i, Tensor s) { return s + i.astype(vt::i64); },
               vt::tensor(std::int64_t{0}))
        .template item<std::int64_t>();
  };
  EXPECT_EQ(sum(0, 5), 10);
  EXPECT_EQ(sum(-3, 2), -5);
  EXPECT_EQ(sum(3, 3), 0);
  EXPECT_EQ(sum(5, 2), 0);
  EXPECT_EQ(sum(std::int64_t{1} << 40, (std::int64_t{1} << 40) + 2), (std::int64_t{2} << 40) + 1);
  EXPECT_EQ(sum(vt::tensor(-3), vt::tensor(2)), -5);
  EXPECT_EQ(sum(0, vt::tensor(std::uint8_t{5})), 10);
  EXPECT_EQ(sum(vt::tensor(std::uint64_t{2}), 4), 5);
  EXPECT_EQ(sum(vt::tensor(4), vt::tensor(std::int64_t{1})), 0);
}

TEST(Fori, TreesAndIndex) {
  const auto [even, parts] = vt::fori_loop(
      0, 4,
      [](Tensor i, Tensor e, std::array<Tensor, 2> p) {
        return std::pair(e + 2 * i, std::array<Tensor, 2>{p[1], p[0] + 1});
      },
      std::pair(0, std::array<int, 2>{10, 20}));
  EXPECT_EQ(even.item<int>(), 12);
  EXPECT_EQ(parts[0].item<int>(), 12);
  EXPECT_EQ(parts[1].item<int>(), 22);
}

// --- scan ----------------------------------------------------------------------------------------

/// c, y = c / 2 + x, c · x
std::pair<Tensor, Tensor> blended(Tensor c, Tensor x) { return {0.5 * c + x, c * x}; }

TEST(Scan, AgainstALoopInBothDirectionsUnrolledOrNot) {
  for (std::int64_t n : {0, 1, 2, 3, 5, 8})
    for (bool reverse : {false, true}) {
      const Tensor xs = random_quarters(vt::f64, {n, 2}, 7), init = vt::tensor({1.0, -1.0});
      Tensor carry = init;
      std::vector<Tensor> ys(static_cast<std::size_t>(n));
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t at = reverse ? n - 1 - k : k;
        std::tie(carry, ys[at]) = blended(carry, vt_test::take_lane(xs, 0, at));
      }
      const Tensor expected = n ? vt_test::stack_lanes(ys, 0) : vt::zeros({0, 2}, vt::f64);
      for (std::int64_t unroll : {1, 2, 3, 4, 100}) {
        const auto f = [&](Tensor c, Tensor x) {
          return vt::scan(blended, c, x, {.reverse = reverse, .unroll = unroll});
        };
        const auto [last, all] = f(init, xs);
        expect_close(last, carry, {},
                     "carry of " + std::to_string(n) + " unrolled " + std::to_string(unroll));
        expect_close(all, expected, {},
                     "ys of " + std::to_string(n) + " unrolled " + std::to_string(unroll));
        expect_close(vt::jit(f)(init, xs).second, expected);
      }
    }
}

TEST(Scan, TreesOfSequencesAndResults) {
  struct Element {
    Tensor x;
    std::vector<Tensor> more;
  };
  const Element xs{vt::tensor({1.0, 2.0, 3.0}),
                   {vt::tensor({{1, 2}, {3, 4}, {5, 6}}), vt::tensor({true, false, true})}};
  const auto [carry, ys] = vt::scan(
      [](Tensor c, const Element& e) {
        return std::pair(c + e.x,
                         std::tuple(c, Element{e.x * 2.0, {vt::sum(e.more[0])}},
                                    std::map<int, Tensor>{{7, vt::where(e.more[1], c, -c)}}));
      },
      0, xs);
  expect_close(carry, vt::tensor(6.0));
  expect_close(std::get<0>(ys), vt::tensor({0.0, 1.0, 3.0}));
  expect_close(std::get<1>(ys).x, vt::tensor({2.0, 4.0, 6.0}));
  expect_close(std::get<1>(ys).more[0], vt::tensor({3, 7, 11}));
  expect_close(std::get<2>(ys).at(7), vt::tensor({0.0, -1.0, 3.0}));
}

TEST(Scan, WithoutSequencesWithoutResultsWithoutCarry) {
  const auto doubled = [](Tensor c) { return std::pair(c + c, c); };
  for (std::int64_t unroll : {1, 2, 3}) {
    const auto [last, powers] = vt::scan(doubled, 1, std::nullopt, {.length = 5, .unroll = unroll});
    EXPECT_EQ(last.item<int>(), 32);
    expect_close(powers, vt::tensor({1, 2, 4, 8, 16}));
  }
  const Tensor total = vt::scan([](Tensor c, Tensor x) { return std::pair(c + x, std::nullopt); },
                                0, vt::tensor({1.0, 2.5}))
                           .first;
  expect_close(total, vt::tensor(3.5));
  const auto squares =
      vt::scan([](std::tuple<>, Tensor x) { return std::pair(std::tuple<>(), x * x); },
               std::tuple<>(), vt::tensor({1, 2, 3}))
          .second;
  expect_close(squares, vt::tensor({1, 4, 9}));
}

TEST(Scan, ElementsHandedOnAndZeroSizes) {
  const Tensor xs = random_quarters(vt::f32, {4, 2, 3}, 3);
  const auto [last, before] =
      vt::scan([](Tensor c, Tensor x) { return std::pair(x, c); }, vt::zeros({2, 3}), xs);
  expect_close(last, vt_test::take_lane(xs, 0, 3));
  expect_close(vt_test::take_lane(before, 0, 0), vt::zeros({2, 3}));
  expect_close(vt_test::take_lane(before, 0, 3), vt_test::take_lane(xs, 0, 2));
  const auto [none, rows] = vt::scan(
      [](Tensor c, Tensor x) { return std::pair(c + vt::sum(x), x); }, 1, vt::zeros({3, 0}));
  expect_close(none, vt::tensor(1.0f));
  EXPECT_EQ(rows.shape(), (vt::Shape{3, 0}));
}

TEST(Scan, NumbersInNestedCarriesCostOneRecordingPerLevel) {
  // Every level adds up in a number that its body makes an f64, and so records it again.
  int recordings = 0;
  const std::function<Tensor(int, Tensor)> nest = [&](int depth, Tensor x) -> Tensor {
    if (depth == 0) {
      ++recordings;
      return vt::sin(x);
    }
    const auto [sum, last] =
        vt::scan(
            [&](Tensor s, Tensor c, Tensor e) {
              return std::pair(std::pair(s + c, nest(depth - 1, c * e)), std::nullopt);
            },
            std::pair(0, x), vt::tensor({1.0, 2.0}))
            .first;
    return sum + last;
  };
  vt::make_graph([&](Tensor x) { return nest(8, x); })(vt::tensor(1.0));
  EXPECT_LE(recordings, 9);
  // What an inner loop found no longer fits where the outer carry is another number: it finds it
  // anew.
  const auto f = [](Tensor x) {
    return vt::fori_loop(
        0, 2,
        [&](Tensor, Tensor s, Tensor t) {
          const Tensor inner = vt::fori_loop(
              0, 2, [&](Tensor, Tensor v) { return v + s * vt::ones({}, vt::f32); }, 0);
          return std::pair(s + x, t + inner);
        },
        std::pair(0, vt::zeros({}, vt::f64)));
  };
  const auto [s, t] = f(vt::tensor(1.5));
  expect_close(s, vt::tensor(3.0));
  expect_close(t, vt::tensor(3.0));
}

// --- map and associative_scan --------------------------------------------------------------------

TEST(Map, BatchesWithRemainders) {
  const auto f = [](const std::pair<Tensor, Tensor>& p) {
    return std::tuple(vt::sum(p.first) * p.second, p.first);
  };
  for (std::int64_t n : {0, 1, 5, 6})
    for (std::int64_t batch : {0, 1, 2, 3, 4, 100}) {
      const std::pair xs(random_quarters(vt::f64, {n, 3}, 1), random_quarters(vt::f64, {n}, 2));
      const auto [products, same] = vt::map(f, xs, {.batch_size = batch});
      expect_close(products, vt::sum(xs.first, 1) * xs.second, {},
                   std::to_string(n) + " by " + std::to_string(batch));
      expect_close(same, xs.first);
    }
  expect_close(
      vt::map([](Tensor x) { return vt::cond(x > 0, [&] { return x; }, [] { return 0; }); },
              vt::tensor({1.0, -2.0, 3.0}), {.batch_size = 2}),
      vt::tensor({1.0, 0.0, 3.0}));
}

TEST(AssociativeScan, AgainstALoopInEveryDirection) {
  // 2×2 matrix products do not commute.
  const auto product = [](Tensor a, Tensor b) { return vt::matmul(a, b); };
  for (std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 13})
    for (bool reverse : {false, true})
      for (int axis : {0, 1, -1, -3}) {
        vt::Shape shape{2, 2};
        shape.insert(shape.begin() + (axis < 0 ? axis + 3 : axis), n);
        std::vector<double> values =
            vt_test::random_tensor(vt::i32, shape, -1, 1, 5).to_vector<double>();
        const Tensor xs = vt::tensor(values, shape);
        std::vector<Tensor> expected(static_cast<std::size_t>(n));
        for (std::int64_t k = 0; k < n; ++k) {
          const std::int64_t at = reverse ? n - 1 - k : k;
          const Tensor x = vt_test::take_lane(xs, axis, at);
          expected[at] = k == 0 ? x : product(expected[reverse ? at + 1 : at - 1], x);
        }
        const auto f = [&](Tensor x) {
          return vt::associative_scan(product, x, {.axis = axis, .reverse = reverse});
        };
        expect_close(f(xs), n ? vt_test::stack_lanes(expected, axis) : xs, {},
                     std::to_string(n) + " along " + std::to_string(axis));
      }
}

TEST(AssociativeScan, LinearRecurrenceOverTrees) {
  // hₜ = aₜ hₜ₋₁ + bₜ as affine maps.
  using Affine = std::pair<Tensor, Tensor>;
  const Affine xs(random_quarters(vt::f64, {9}, 1), random_quarters(vt::f64, {9}, 2));
  const auto hs = vt::associative_scan(
                      [](Affine f, Affine g) {
                        return Affine(f.first * g.first, g.first * f.second + g.second);
                      },
                      xs)
                      .second;
  const auto loop = vt::scan(
                        [](Tensor h, const Affine& x) {
                          const Tensor next = x.first * h + x.second;
                          return std::pair(next, next);
                        },
                        0.0, xs)
                        .second;
  expect_close(hs, loop, {.relative = 1e-12});
}

}  // namespace
