// Control flow under vmap equals an explicit loop over the lanes: mapped and shared predicates,
// nested in every way, lanes that stop at different times, and branches that no lane takes.
#include <bit>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::random_quarters;

/// f under vmap is f for one lane after the other, for every choice of mapped arguments, plain and
/// compiled. To the bit.
template <class F, class... Ts>
void expect_lanes(F f, const std::string& what, const Ts&... lanes) {
  const std::vector<Tensor> arguments{lanes...};
  const std::size_t n = sizeof...(Ts);
  const vt_test::FlatFunction flat = [&](const std::vector<Tensor>& a) -> std::vector<Tensor> {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::vector<Tensor>{f(a[I]...)};
    }(std::index_sequence_for<Ts...>{});
  };
  for (std::size_t mapped = 1; mapped < (std::size_t{1} << n); ++mapped) {
    std::vector<Tensor> own;
    vt::Vec<std::optional<int>> axes;
    std::vector<vt::AxisSpec> in_axes;
    for (std::size_t i = 0; i < n; ++i) {
      const bool m = mapped >> i & 1;
      own.push_back(m ? arguments[i] : vt_test::take_lane(arguments[i], 0, 1));
      axes.push_back(m ? std::optional<int>(0) : std::nullopt);
      in_axes.push_back(m ? vt::AxisSpec(0) : vt::AxisSpec(vt::unmapped));
    }
    const std::string name = what + ", mapped " + std::to_string(mapped);
    SCOPED_TRACE(name);
    const Tensor expected = vt_test::stack_loop(flat, own, axes)[0];
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto lanes_of_f = vt::vmap(f, {.in_axes = in_axes});
      expect_close(lanes_of_f(own[I]...), expected, vt_test::exact, name);
      expect_close(vt::jit(lanes_of_f)(own[I]...), expected, vt_test::exact, name + ", compiled");
    }(std::index_sequence_for<Ts...>{});
  }
}

const Tensor y = vt::tensor({4.0, -1.0, 2.0, -2.0, 2.0});
const Tensor x = vt::tensor({1.0, 2.0, -3.0, 0.5, -1.0});

// --- one level -----------------------------------------------------------------------------------

TEST(ControlVmap, Cond) {
  expect_lanes(
      [](Tensor p, Tensor a, Tensor b) {
        return vt::cond(
            p > 0, [&](Tensor v) { return v * b; }, [](Tensor v) { return v - 1.0; }, a);
      },
      "cond", y, x, vt::tensor({1.0, 2.0, 3.0, 4.0, 5.0}));
  // Results that depend on nothing mapped but the predicate.
  expect_lanes(
      [](Tensor p) {
        return vt::cond(p > 0, [] { return vt::arange(3); }, [] { return vt::arange(3) * 2; });
      },
      "constants", y);
}

TEST(ControlVmap, CondOfTreesWhereOneResultIsShared) {
  const auto f = [](Tensor p, Tensor a, Tensor s) {
    return vt::cond(
        p, [](Tensor v, Tensor w) { return std::pair(v, w); },
        [](Tensor v, Tensor w) { return std::pair(-v, w + 1.0); }, a, s);
  };
  const auto [mapped, same] = vt::vmap(f, {.in_axes = {vt::unmapped, 0, vt::unmapped}})(
      vt::tensor(false), x, vt::tensor(5.0));
  expect_close(mapped, -x);
  expect_close(same, vt::full({5}, 6.0, vt::f64));
}

TEST(ControlVmap, Switch) {
  const Tensor i = vt::tensor({0, 2, 1, 7, -3});
  expect_lanes(
      [](Tensor k, Tensor a) {
        return vt::switch_(k,
                           std::tuple([](Tensor v) { return v; }, [](Tensor v) { return v * v; },
                                      [](Tensor v) { return 1.0 / v; }),
                           a);
      },
      "switch_", i, x);
}

TEST(ControlVmap, WhileOfDifferentLengths) {
  const Tensor lengths = vt::tensor({4, 0, 2});
  const auto f = [](Tensor n, Tensor a, Tensor step) {
    return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                          [&](Tensor i, Tensor v) { return std::pair(i + 1, v * 2.0 + step); },
                          std::pair(0, a))
        .second;
  };
  expect_lanes(f, "while", lengths, vt::tensor({1.0, 2.0, 3.0}), vt::tensor({0.5, 0.25, -1.0}));
  expect_lanes(
      [](Tensor n, Tensor a) {
        return vt::fori_loop(
            0, n, [&](Tensor i, Tensor v) { return v + a * i.astype(vt::f64); }, 0.0);
      },
      "fori", lengths, vt::tensor({1.0, 2.0, 3.0}));
  expect_lanes(
      [](Tensor a, Tensor b) {
        return vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return v * b; }, a);
      },
      "counted", x, y);
}

TEST(ControlVmap, CarriesThatBecomeMappedOneAfterTheOther) {
  // d depends on c, c on b, b on a: only after three iterations do all vary.
  const auto f = [](Tensor v, Tensor n) {
    const auto out = vt::while_loop(
        [&](Tensor i, auto...) { return i < n; },
        [](Tensor i, Tensor a, Tensor b, Tensor c, Tensor d) {
          return std::tuple(i + 1, a, a, b, c + d);
        },
        std::tuple(vt::tensor(0), v, vt::tensor(1.0), vt::tensor(2.0), vt::tensor(3.0)));
    return std::get<2>(out) + 10.0 * std::get<3>(out) + 100.0 * std::get<4>(out);
  };
  expect_lanes(f, "shift register", x, vt::tensor({0, 4, 1, 2, 3}));
  expect_lanes(
      [](Tensor v, Tensor u) {
        return std::get<3>(
            vt::scan([](Tensor a, Tensor b, Tensor c, Tensor d,
                        Tensor e) { return std::pair(std::tuple(a, a + e, b, c), d); },
                     std::tuple(v, vt::tensor(0.0), vt::tensor(0.0), vt::tensor(0.0)),
                     vt::arange(4).astype(vt::f64) * u)
                .first);
      },
      "scanned register", x, y);
}

TEST(ControlVmap, FinishedLanesKeepTheirBits) {
  // A further iteration would turn −0 into +0, the NaN's payload into another and ∞ into NaN.
  const std::uint64_t nan_bits = 0x7ff8000000abcdefu;
  const Tensor start = vt::tensor({-0.0, std::bit_cast<double>(nan_bits), 1e308, 3.0, 1.0});
  const Tensor n = vt::tensor({0, 0, 1, 0, 3});
  const auto f = [](Tensor count, Tensor v) {
    return vt::while_loop(
               [&](Tensor i, Tensor) { return i < count; },
               [](Tensor i, Tensor w) { return std::pair(i + 1, (w + w) * 10.0 - w * 0.0); },
               std::pair(0, v))
        .second;
  };
  const std::vector<std::uint64_t> bits =
      vt::bitcast(vt::vmap(f)(n, start), vt::u64).to_vector<std::uint64_t>();
  EXPECT_EQ(bits[0], std::bit_cast<std::uint64_t>(-0.0));
  EXPECT_EQ(bits[1], nan_bits);
  EXPECT_EQ(bits[2], std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(bits[3], std::bit_cast<std::uint64_t>(3.0));
  EXPECT_EQ(bits[4], std::bit_cast<std::uint64_t>(8000.0));
}

TEST(ControlVmap, ScanMapAndAssociativeScan) {
  const Tensor xs = random_quarters(vt::f64, {3, 5, 2}, 1),
               init = random_quarters(vt::f64, {3, 2}, 2), w = random_quarters(vt::f64, {3, 2}, 3);
  for (bool reverse : {false, true})
    for (std::int64_t unroll : {1, 2}) {
      const auto run = [=](Tensor a, Tensor b, Tensor s) {
        return vt::scan(
            [&](Tensor c, Tensor e) { return std::pair(c * 0.5 + e * s, vt::sum(c * e)); }, a, b,
            {.reverse = reverse, .unroll = unroll});
      };
      expect_lanes([=](Tensor a, Tensor b, Tensor s) { return run(a, b, s).first; }, "last carry",
                   init, xs, w);
      expect_lanes([=](Tensor a, Tensor b, Tensor s) { return run(a, b, s).second; }, "results",
                   init, xs, w);
    }
  expect_lanes(
      [](Tensor a, Tensor s) {
        return vt::map([&](Tensor e) { return e * s; }, a, {.batch_size = 2});
      },
      "map", xs, w);
  const Tensor m = random_quarters(vt::f64, {2, 5, 2, 2}, 4);
  expect_lanes(
      [](Tensor a) {
        return vt::associative_scan([](Tensor p, Tensor q) { return vt::matmul(p, q); }, a);
      },
      "associative_scan", m);
}

TEST(ControlVmap, LanesOnOddAxes) {
  const Tensor xs = random_quarters(vt::f64, {4, 2, 3}, 1), n = vt::tensor({2, 0, 3});
  const auto f = [](Tensor a, Tensor count) {
    return vt::fori_loop(0, count, [](Tensor, Tensor v) { return v + vt::flip(v, 0); }, a);
  };
  const Tensor expected = vt_test::stack_loop(
      [&](const std::vector<Tensor>& a) { return std::vector<Tensor>{f(a[0], a[1])}; }, {xs, n},
      {2, 0}, 1)[0];
  expect_close(vt::vmap(f, {.in_axes = {-1, 0}, .out_axes = 1})(xs, n), expected);
  const auto s = [](Tensor a) {
    return vt::scan([](Tensor c, Tensor e) { return std::pair(c + e, c); }, vt::zeros({2}, vt::f64),
                    a)
        .second;
  };
  expect_close(
      vt::vmap(s, {.in_axes = {2}, .out_axes = -1})(xs),
      vt_test::stack_lanes({s(vt_test::take_lane(xs, 2, 0)), s(vt_test::take_lane(xs, 2, 1)),
                            s(vt_test::take_lane(xs, 2, 2))},
                           -1));
}

// --- nested --------------------------------------------------------------------------------------

/// Of each level's predicate: does it depend on the lane?
Tensor nested(unsigned mapped, Tensor lane, Tensor shared) {
  const auto level = [&](unsigned k) { return mapped >> k & 1 ? lane : shared; };
  const auto innermost = [&](Tensor v) {
    return vt::while_loop([&](Tensor, Tensor j) { return j < level(3); },
                          [&](Tensor u, Tensor j) { return std::pair(u * 0.5 + lane, j + 1.0); },
                          std::pair(v, 0.0))
        .first;
  };
  const auto scanned = [&](Tensor v) {
    return vt::scan(
        [&](Tensor c, Tensor e) {
          return std::pair(vt::cond(
                               level(2) > e, [&](Tensor u) { return innermost(u) + e; },
                               [](Tensor u) { return -u; }, c),
                           c);
        },
        v, vt::tensor({1.0, -1.5, 3.0}));
  };
  const auto chosen = [&](Tensor v) {
    return vt::cond(
        level(1) > 0.0,
        [&](Tensor u) {
          const auto [c, ys] = scanned(u);
          return c + vt::sum(ys);
        },
        [&](Tensor u) { return u + shared; }, v);
  };
  return vt::while_loop([&](Tensor, Tensor i) { return i < level(0); },
                        [&](Tensor u, Tensor i) { return std::pair(chosen(u), i + 1.5); },
                        std::pair(lane, 0.0))
      .first;
}

TEST(ControlVmap, WhileOfCondOfScanOfWhileInEveryMixOfPredicates) {
  for (unsigned mapped = 0; mapped < 16; ++mapped)
    expect_lanes([=](Tensor lane, Tensor shared) { return nested(mapped, lane, shared); },
                 "predicates " + std::to_string(mapped), y, y + 1.0);
}

TEST(ControlVmap, CondInCondAndLoopsInBranches) {
  const auto loop = [](Tensor v, Tensor n) {
    return vt::fori_loop(0, n.astype(vt::i32), [](Tensor, Tensor u) { return u * 2.0 + 1.0; }, v);
  };
  expect_lanes(
      [=](Tensor p, Tensor q) {
        return vt::cond(
            p > 0,
            [&] { return vt::cond(q > 0, [&] { return loop(p, q); }, [&] { return loop(q, p); }); },
            [&] { return vt::cond(q > p, [&] { return q; }, [&] { return loop(p, -p); }); });
      },
      "four ways", y, x);
}

TEST(ControlVmap, NestedVmapsOfLoops) {
  const Tensor n = vt::tensor({{0, 3}, {2, 1}, {5, 0}}), a = random_quarters(vt::f64, {3, 2}, 5);
  const auto f = [](Tensor count, Tensor v) {
    return vt::while_loop([&](Tensor i, Tensor) { return i < count; },
                          [](Tensor i, Tensor u) { return std::pair(i + 1, u * u - 1.0); },
                          std::pair(0, v))
        .second;
  };
  std::vector<Tensor> rows;
  for (int i = 0; i < 3; ++i)
    rows.push_back(
        vt_test::stack_loop(f, 0, vt_test::take_lane(n, 0, i), vt_test::take_lane(a, 0, i)));
  const Tensor expected = vt_test::stack_lanes(rows, 0);
  expect_close(vt::vmap(vt::vmap(f))(n, a), expected);
  expect_close(vt::vmap(vt::vmap(f), {.in_axes = 1, .out_axes = 1})(n, a), expected);
  // The inner axis alone decides; the outer one only varies the values; and the other way round.
  const Tensor counts = vt::tensor({2, 3});
  for (int i = 0; i < 3; ++i)
    rows[i] = vt_test::stack_loop(f, 0, counts, vt_test::take_lane(a, 0, i));
  expect_close(vt::vmap(vt::vmap(f), {.in_axes = {vt::unmapped, 0}})(counts, a),
               vt_test::stack_lanes(rows, 0));
  expect_close(vt::vmap([&](Tensor r) { return vt::vmap(f)(counts, r); })(a),
               vt_test::stack_lanes(rows, 0));
  expect_close(vt::vmap(vt::vmap(f, {.in_axes = {vt::unmapped, 0}}))(vt::tensor({2, 0, 1}), a),
               vt_test::stack_loop(
                   [&](Tensor c, Tensor r) {
                     return vt_test::stack_loop([&](Tensor v) { return f(c, v); }, 0, r);
                   },
                   0, vt::tensor({2, 0, 1}), a));
}

// --- what is not taken ---------------------------------------------------------------------------

TEST(ControlVmap, BranchesThatNoLaneTakesDoNotRun) {
  // Lanes whose predicate does not hold would never leave the loop.
  const auto f = [](Tensor p, Tensor v) {
    return vt::cond(
        p > 0,
        [&](Tensor u) {
          return vt::while_loop([](Tensor w) { return w < 3.0; }, [&](Tensor w) { return w + p; },
                                u);
        },
        [](Tensor u) { return u; }, v);
  };
  expect_lanes(f, "loop in a branch", vt::tensor({-1.0, 3.0, 2.0}), vt::tensor({1.0, 0.0, -2.0}));
  expect_close(vt::vmap(f)(vt::tensor({-1.0, -2.0}), vt::tensor({1.0, 2.0})),
               vt::tensor({1.0, 2.0}));
}

TEST(ControlVmap, EndlessLoopInTheOtherBranchJax2947) {
  const auto shrink = [](auto goes_on) {
    return [=](Tensor v) { return vt::while_loop(goes_on, [](Tensor u) { return u * 0.1; }, v); };
  };
  const auto f = [&](Tensor v) {
    return vt::cond(v >= 0, shrink([](Tensor u) { return (u <= 0) | (u > 1e-6); }),
                    shrink([](Tensor u) { return u < -1e-6; }), v);
  };
  expect_lanes(f, "#2947", vt::tensor({0.5, -0.25, 3.0, -7.0}));
}

TEST(ControlVmap, DearBranchesRunForTheirLanesOnlyJax8409) {
  // A million iterations for each of the 200 lanes that do not ask for them would be noticed.
  const auto f = [](Tensor p, Tensor v) {
    return vt::cond(
        p,
        [](Tensor u) {
          return vt::fori_loop(0, 1000000, [](Tensor, Tensor w) { return w + 1.0; }, u);
        },
        [](Tensor u) { return u; }, v);
  };
  const Tensor none = vt::zeros({200}, vt::bool_), v = vt::ones({200}, vt::f64);
  expect_close(vt::vmap(f)(none, v), v);
}

TEST(ControlVmap, NanOfTheOtherBranchStaysThereJax9159And20601) {
  const auto norm = [](Tensor v) {
    return vt::cond(
        vt::all(v == 0.0), [](Tensor) { return 0.0; },
        [](Tensor u) { return vt::sqrt(vt::sum(u * u)); }, v);
  };
  const auto normalized = [&](Tensor v) {
    return vt::sum(vt::cond(
        vt::all(v == 0.0), [](Tensor u) { return vt::zeros_like(u); },
        [&](Tensor u) { return u / norm(u); }, v));
  };
  const Tensor vs = vt::tensor({{0.0, 0.0}, {3.0, 4.0}, {0.0, 0.0}});
  expect_close(vt::vmap(norm)(vs), vt::tensor({0.0, 5.0, 0.0}));
  expect_lanes(vt::grad(norm), "#9159, norm", vs);
  expect_lanes(vt::grad(normalized), "#9159, normalized", vs);
  expect_close(vt::vmap(vt::grad(norm))(vs), vt::tensor({{0.0, 0.0}, {0.6, 0.8}, {0.0, 0.0}}),
               {.ulps = 2});
  expect_close(vt::grad([&](Tensor v) { return vt::sum(vt::vmap(norm)(v)); })(vs),
               vt::tensor({{0.0, 0.0}, {0.6, 0.8}, {0.0, 0.0}}), {.ulps = 2});

  const auto product = [](Tensor beta, Tensor v) {
    return vt::cond(
        v == v, [](Tensor b, Tensor u) { return b * u; }, [](Tensor, Tensor) { return 1.0; }, beta,
        v);
  };
  const Tensor betas = vt::tensor({2.3, 2.3, 2.3}), values = vt::tensor({std::nan(""), -2.0, 2.0});
  expect_close(vt::vmap(product)(betas, values), vt::tensor({1.0, -4.6, 4.6}));
  expect_close(vt::vmap(vt::grad(product))(betas, values), vt::tensor({0.0, -2.0, 2.0}));
}

TEST(ControlVmap, IndicesAndDivisionsOfTheOtherBranch) {
  const Tensor table = vt::tensor({10, 20, 30});
  expect_lanes(
      [&](Tensor i) {
        return vt::cond((i >= 0) & (i < 3), [&] { return table[i]; }, [&] { return -1 / (i - i); });
      },
      "guarded", vt::tensor({0, 7, 2, -9}));
}

TEST(ControlVmap, NoLanesAtAll) {
  const Tensor none = vt::zeros({0}, vt::f64), no_counts = vt::zeros({0}, vt::i32);
  const auto endless = [](Tensor v) {
    return vt::while_loop([](Tensor) { return true; }, [](Tensor u) { return u; }, v);
  };
  EXPECT_EQ(vt::vmap([&](Tensor p) { return vt::cond(p > 0, endless, endless, p); })(none).shape(),
            (vt::Shape{0}));
  EXPECT_EQ(vt::vmap([&](Tensor n, Tensor v) {
              return vt::fori_loop(
                  0, n, [](Tensor, Tensor u) { return vt::concatenate({u, u})[vt::slice(0, 2)]; },
                  vt::stack({v, v}));
            })(no_counts, none)
                .shape(),
            (vt::Shape{0, 2}));
  EXPECT_EQ(vt::vmap([](Tensor v) {
              return vt::scan([](Tensor c, Tensor e) { return std::pair(c + e, c); }, v,
                              vt::arange(3).astype(vt::f64))
                  .second;
            })(none)
                .shape(),
            (vt::Shape{0, 3}));
  EXPECT_EQ(vt::vmap(vt::grad([](Tensor v) {
              return vt::while_loop([](Tensor u) { return u < 3.0; },
                                    [](Tensor u) { return u + 1.0; }, v);
            }))(none)
                .shape(),
            (vt::Shape{0}));
  // Lanes of arrays without elements.
  EXPECT_EQ(vt::vmap([](Tensor n, Tensor v) {
              return vt::fori_loop(0, n, [](Tensor, Tensor u) { return u + 1.0; }, v);
            })(vt::tensor({2, 1}), vt::zeros({2, 0}))
                .shape(),
            (vt::Shape{2, 0}));
}

// --- updates in place ----------------------------------------------------------------------------

TEST(ControlVmap, UpdatesInMappedLoopsStayUpdatesJax13522) {
  const auto fill = [](Tensor first, Tensor array) {
    return vt::while_loop([&](Tensor i, Tensor) { return i < array.dim(0); },
                          [](Tensor i, Tensor a) {
                            return std::pair(i + 1,
                                             vt::dynamic_update_slice(
                                                 a, vt::reshape(i.astype(a.dtype()), {1}), {i}));
                          },
                          std::pair(first, array))
        .second;
  };
  expect_lanes(fill, "#13522", vt::tensor({0, 4, 2, 6}), random_quarters(vt::f32, {4, 6}, 8));
  const std::string lanes =
      vt::make_graph(vt::vmap(fill))(vt::tensor({0, 4}), vt::zeros({2, 6})).str();
  EXPECT_NE(lanes.find("dynamic_update_slice"), std::string::npos) << lanes;
  for (const char* whole_array : {"select", "scatter", "gather"})
    EXPECT_EQ(lanes.find(whole_array), std::string::npos) << lanes;
  // A position that all lanes share.
  const auto counted = [](Tensor array) {
    return vt::fori_loop(
        0, 6,
        [](Tensor i, Tensor a) {
          return vt::dynamic_update_slice(a, vt::reshape(vt::sum(a) + 1.0, {1}), {i});
        },
        array);
  };
  expect_lanes(counted, "counted", random_quarters(vt::f64, {4, 6}, 9));
}

}  // namespace
