// Collectives over named axes: against the same formula on whole arrays, with its derivatives by
// differences, in nested vmaps, control flow, jit, checkpoint and custom rules; and the messages of
// wrong uses.
#include <functional>

#include "support/collective_cases.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::Collective;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::message;
using vt_test::Tolerance;
using Function = vt_test::Collective::Function;

constexpr Tolerance near{.relative = 1e-7, .absolute = 1e-8},
    same{.relative = 1e-12, .absolute = 1e-13};
const auto& collectives = vt_test::collective_cases;
constexpr int lanes = vt_test::lanes_of_cases;
const Tensor xs = vt_test::random_tensor(vt::f64, {lanes, 4, 2}, 0.2, 1.2, 7);

/// What one lane returns, and the sum of it over all lanes by whole arrays; neither linear nor
/// symmetric between lanes.
Function of_lane(const Collective& c) {
  return [&c](Tensor x) {
    return vt::sum(vt::sin(c.lane(x * x))) * (1.0 + vt::axis_index("i")) + vt::sum(x * x * x);
  };
}
Function of_all(const Collective& c) {
  return [&c](Tensor x) {
    const Tensor y = vt::sin(c.whole(x * x));
    Tensor sum = vt::sum(x * x * x);
    for (int i = 0; i < lanes; ++i) sum = sum + (1.0 + i) * vt::sum(y[i]);
    return sum;
  };
}
Function mapped(Function f, int axis = 0) {
  return vt::vmap(std::move(f), {.in_axes = axis, .axis_name = "i"});
}

TEST(Collectives, AreTheFormulaOnWholeArrays) {
  for (const Collective& c : collectives) {
    SCOPED_TRACE(c.name);
    const Tensor wanted = c.whole(xs);
    expect_close(mapped(c.lane)(xs), wanted, same);
    expect_close(vt::jit(mapped(c.lane))(xs), wanted, same, "compiled");
    expect_close(mapped(c.lane, 1)(vt::moveaxis(xs, {0}, {1})), wanted, same, "lanes at axis 1");
    expect_close(mapped(c.lane, -1)(vt::moveaxis(xs, {0}, {2})), wanted, same,
                 "lanes at the last axis");
    expect_close(mapped(vt::jit(c.lane))(xs), wanted, same, "jit inside");
    expect_close(mapped(vt::checkpoint(c.lane))(xs), wanted, same, "checkpoint");
    expect_close(mapped([&](Tensor x) {
                   return vt::cond(
                       vt::tensor(true), c.lane, [&](Tensor v) { return c.lane(v) * 2.0; }, x);
                 })(xs),
                 wanted, same, "in a branch");
    expect_close(vt::pfor([&](Tensor i) { return c.lane(xs[i]); }, lanes, {.axis_name = "i"}),
                 wanted, same, "pfor");
  }
}

TEST(Collectives, DerivativesAreThoseOfTheSumOverAllLanes) {
  for (const Collective& c : collectives) {
    SCOPED_TRACE(c.name);
    const Function f = of_lane(c), all = [&](Tensor x) { return vt::sum(mapped(of_lane(c))(x)); };
    expect_close(all(xs), of_all(c)(xs), same);
    const Tensor slope = vt_test::numeric_gradient(of_all(c), xs);
    expect_close(mapped(vt::grad(f))(xs), slope, near, "vmap of grad");
    expect_close(vt::grad(all)(xs), slope, near, "grad of vmap");
    expect_close(vt::jit(mapped(vt::grad(f)))(xs), slope, near, "compiled");
    expect_close(mapped(vt::grad(vt::checkpoint(f)))(xs), slope, near, "checkpoint");
    expect_close(mapped(vt::grad(vt::jit(f)))(xs), slope, near, "jit inside grad");
    const Function by_linearize = [&](Tensor x) {
      return std::get<1>(vt::vjp(f, x))(vt::tensor(1.0));
    };
    expect_close(mapped(by_linearize)(xs), slope, near, "vjp inside");
    const Tensor d = vt_test::random_tensor(vt::f64, xs.shape(), 9);
    const auto push = vt::vmap(
        [&](Tensor x, Tensor t) { return vt::jvp(f, std::tuple(x), std::tuple(t)).second; },
        {.axis_name = "i"});
    expect_close(vt::sum(push(xs, d)), vt::sum(slope * d), near, "jvp inside");
    const Function second = [&](Tensor x) { return vt::sum(mapped(vt::grad(f))(x) * d); };
    expect_close(vt::grad(second)(xs), vt_test::numeric_gradient(second, xs), near,
                 "grad of vmap of grad");
  }
}

TEST(Collectives, StayWhatTheyAreInsideLoops) {
  for (const Collective& c : collectives) {
    SCOPED_TRACE(c.name);
    // v ← v + sin(Σ of the collective) as often as all lanes agree on.
    const auto step = [&](Tensor v) { return v + 0.1 * vt::sin(vt::sum(c.lane(v))); };
    const auto whole_step = [&](Tensor v) {
      Tensor all = c.whole(v);
      return v +
             0.1 * vt::sin(vt::reshape(vt::sum(vt::reshape(all, {lanes, all.size() / lanes}), 1),
                                       {lanes, 1, 1}));
    };
    const Function wanted = [&](Tensor v) { return whole_step(whole_step(whole_step(v))); };
    const Function by_scan = mapped([&](Tensor x) {
      return vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return step(v); }, x);
    });
    const Function by_while = mapped([&](Tensor x) {
      return vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                            [&](Tensor i, Tensor v) { return std::pair(i + 1, step(v)); },
                            std::pair(0, x))
          .second;
    });
    const Tensor slope =
        vt_test::numeric_gradient([&](Tensor x) { return vt::sum(wanted(x)); }, xs);
    for (const Function& f : {by_scan, by_while}) {
      expect_close(f(xs), wanted(xs), same);
      expect_close(vt::jit(f)(xs), wanted(xs), same, "compiled");
      expect_close(vt::grad([&](Tensor x) { return vt::sum(f(x)); })(xs), slope, near, "gradient");
    }
    const Function inside = mapped(vt::grad([&](Tensor x) {
      return vt::sum(vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return step(v); }, x));
    }));
    expect_close(inside(xs), slope, near, "gradient inside");
    const Function while_inside = mapped(vt::grad([&](Tensor x) {
      return vt::sum(vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                                    [&](Tensor i, Tensor v) { return std::pair(i + 1, step(v)); },
                                    std::pair(0, x))
                         .second);
    }));
    expect_close(while_inside(xs), slope, near, "gradient of while inside");
  }
}

TEST(Collectives, OtherLanesAreCarriedAlong) {
  const Tensor all = vt_test::random_tensor(vt::f64, {3, lanes, 4, 2}, 0.2, 1.2, 8);
  for (const Collective& c : collectives) {
    SCOPED_TRACE(c.name);
    const Function inner = [&](Tensor x) { return vt::vmap(mapped(c.lane))(x); };
    const Tensor wanted = vt_test::stack_loop([&](Tensor x) { return c.whole(x); }, 0, all);
    expect_close(inner(all), wanted, same, "named inside");
    const Tensor transposed = vt::moveaxis(all, {0}, {1});
    const Function outer = mapped([&](Tensor x) { return vt::vmap(c.lane)(x); });
    expect_close(outer(transposed), vt::moveaxis(wanted, {0}, {1}), same, "named outside");
    const Function last =
        mapped([&](Tensor x) { return vt::vmap(c.lane, {.in_axes = -1, .out_axes = -1})(x); });
    expect_close(last(vt::moveaxis(all, {0}, {3})), vt::moveaxis(wanted, {0}, {wanted.rank() - 1}),
                 same, "named outside, lanes inside last");
    const Function slope = [&](Tensor x) { return vt::grad(of_all(c))(x); };
    expect_close(mapped([&](Tensor x) { return vt::vmap(vt::grad(of_lane(c)))(x); })(transposed),
                 vt::moveaxis(vt_test::stack_loop(slope, 0, all), {0}, {1}), near,
                 "gradients in lanes inside");
  }
}

TEST(Collectives, OverSeveralAxes) {
  const Tensor x = vt_test::random_tensor(vt::f64, {3, 4, 2}, 5);
  const auto both = [](auto f) {
    return vt::vmap(vt::vmap(std::move(f), {.axis_name = "j"}), {.axis_name = "i"});
  };
  expect_close(both([](Tensor v) { return vt::psum(v, {"i", "j"}); })(x)[1][2], vt::sum(x, {0, 1}),
               same);
  expect_close(both([](Tensor v) { return vt::pmean(v, {"i", "j"}); })(x)[1][2],
               vt::mean(x, {0, 1}), same);
  expect_close(both([](Tensor v) { return vt::psum(v, "i"); })(x)[1][2], vt::sum(x, 0)[2], same);
  expect_close(both([](Tensor v) { return vt::pmax(v, "j"); })(x)[1][2], vt::max(x, 1)[1], same);
  expect_close(both([](Tensor v) { return vt::all_gather(v, {"i", "j"}); })(x)[1][2],
               vt::reshape(x, {12, 2}), same);
  expect_close(both([](Tensor v) { return vt::all_gather(v, {"j", "i"}); })(x)[1][2],
               vt::reshape(vt::swapaxes(x, 0, 1), {12, 2}), same);
  EXPECT_EQ(
      both([](Tensor v) { return vt::axis_index({"i", "j"}) + 0 * vt::sum(v).astype(vt::i32); })(x)
          .shape(),
      vt::Shape({3, 4}));
  expect_close(both([](Tensor) { return vt::axis_index({"i", "j"}); })(x),
               vt::reshape(vt::arange(12), {3, 4}));
  expect_close(both([](Tensor) { return vt::axis_index({"j", "i"}); })(x),
               vt::transpose(vt::reshape(vt::arange(12), {4, 3})));
  both([](Tensor v) {
    EXPECT_EQ(vt::axis_size("i"), 3);
    EXPECT_EQ(vt::axis_size("j"), 4);
    EXPECT_EQ(vt::axis_size({"i", "j"}), 12);
    return v;
  })(x);
  const auto total = [&](Tensor v) { return vt::sum(vt::sin(vt::sum(v * v, {0, 1}))) * 12.0; };
  expect_close(
      both(vt::grad([](Tensor v) { return vt::sum(vt::sin(vt::psum(v * v, {"i", "j"}))); }))(x),
      vt_test::numeric_gradient(total, x), near);
}

TEST(Collectives, AnInnerNameHidesAnOuterOne) {
  const Tensor x = vt_test::random_tensor(vt::f64, {3, 4}, 6);
  const auto f = vt::vmap(
      [](Tensor row) {
        const Tensor outer = vt::psum(row, "i");
        // of the outer lanes
        const auto push =
            std::get<1>(vt::linearize([](Tensor r) { return vt::psum(r, "i"); }, row));
        return vt::vmap(
                   [&](Tensor e) {
                     return vt::psum(e, "i") + vt::sum(push(vt::ones({4}, vt::f64) * e));
                   },
                   {.axis_name = "i"})(row) +
               0.0 * outer;
      },
      {.axis_name = "i"});
  const Tensor wanted = vt::sum(x, 1, true) + 4.0 * vt::sum(x, 0);
  expect_close(f(x), wanted, same);
}

TEST(Collectives, TakeTreesAndNumbersAndGiveWhatIsShared) {
  struct Gradients {
    Tensor w;
    std::vector<Tensor> b;
  };
  const auto f = [](Tensor x) { return vt::pmean(Gradients{x * x, {x, vt::sum(x)}}, "batch"); };
  const Gradients g = vt::vmap(
      f, {.out_axes = vt::unmapped, .axis_name = "batch"})(vt::tensor({{1.0, 2.0}, {3.0, 6.0}}));
  EXPECT_EQ(g.w.to_vector<double>(), (std::vector<double>{5, 20}));
  EXPECT_EQ(g.b[0].to_vector<double>(), (std::vector<double>{2, 4}));
  EXPECT_EQ(g.b[1].item<double>(), 6);
  const auto count = [](Tensor x) {
    const Tensor n = vt::psum(1, "batch");
    EXPECT_EQ(n.item<int>(), 5);  // known while it is recorded
    return x * n;
  };
  EXPECT_EQ(vt::vmap(count, {.axis_name = "batch"})(vt::ones({5}))[2].item<float>(), 5);
  // A loop that all lanes leave together, when the last of them is done.
  const auto settle = [](Tensor x) {
    return vt::while_loop([](Tensor v, Tensor) { return vt::pmax(vt::abs(v), "i") > 1.0; },
                          [](Tensor v, Tensor n) { return std::pair(v * 0.5, n + 1); },
                          std::pair(x, 0));
  };
  const auto [v, n] = vt::vmap(
      settle, {.out_axes = {0, vt::unmapped}, .axis_name = "i"})(vt::tensor({0.5, 8.0, -3.0}));
  EXPECT_EQ(v.to_vector<double>(), (std::vector<double>{0.0625, 1, -0.375}));
  EXPECT_EQ(n.item<int>(), 3);
}

TEST(Collectives, EveryDtype) {
  for (vt::DType d : vt_test::all_dtypes) {
    SCOPED_TRACE(vt::name_of(d));
    // exact sums
    const Tensor x = vt::is_float(d) ? vt_test::random_quarters(d, {5, 3}, 11)
                                     : vt_test::random_tensor(d, {5, 3}, -3, 3, 11);
    const auto f = [](Tensor v) {
      return std::tuple(vt::psum(v, "i"), vt::pmax(v, "i"), vt::pmin(v, "i"),
                        vt::all_gather(v, "i"), vt::pmean(v, "i"));
    };
    const auto [s, most, least, all, mean] =
        vt::vmap(f, {.out_axes = vt::unmapped, .axis_name = "i"})(x);
    expect_close(s, vt::sum(x, 0));
    expect_close(most, vt::max(x, 0));
    expect_close(least, vt::min(x, 0));
    expect_close(all, x);
    expect_close(mean, vt::mean(x, 0), {.ulps = 1});
    expect_close(vt::vmap([](Tensor v) { return vt::pshuffle(v, "i", {4, 2, 0, 3, 1}); },
                          {.axis_name = "i"})(x),
                 vt::take(x, vt::tensor({4, 2, 0, 3, 1}), 0));
    expect_close(
        vt::vmap([](Tensor v) { return vt::ppermute(v, "i", {{0, 4}, {4, 1}, {2, 0}, {3, 3}}); },
                 {.axis_name = "i"})(x),
        vt::stack({x[2], x[4], vt::zeros_like(x[0]), x[3], x[0]}));
    if (vt::is_float(d))
      expect_close(vt::vmap([&](Tensor v) { return v + vt::psum(vt::ones({3}, d), "i"); },
                            {.axis_name = "i"})(x),
                   x + vt::full({3}, 5, d));
  }
}

TEST(Collectives, ComplexNumbers) {
  const Tensor re = vt_test::random_quarters(vt::f64, {5, 3}, 3),
               im = vt_test::random_quarters(vt::f64, {5, 3}, 4), z = vt::complex(re, im);
  const auto f = [](Tensor v) {
    return std::tuple{vt::psum(v, "i"), vt::pmean(v, "i"), vt::all_gather(v, "i"),
                      vt::psum(vt::conj(v) * v, "i")};
  };
  const auto [s, mean, all, square] = vt::vmap(f, {.out_axes = vt::unmapped, .axis_name = "i"})(z);
  expect_close(vt::real(s), vt::sum(re, 0));
  expect_close(vt::imag(s), vt::sum(im, 0));
  expect_close(vt::imag(mean), vt::mean(im, 0), {.ulps = 1});
  expect_close(vt::imag(all), im);
  expect_close(vt::real(square), vt::sum(re * re + im * im, 0));
  const auto power = [](Tensor v, Tensor w) {
    return vt::sum(vt::square(vt::real(vt::psum(vt::complex(v, w), "i"))));
  };
  expect_close(vt::vmap(vt::grad(power), {.axis_name = "i"})(re, im),
               vt::broadcast_to(10.0 * vt::sum(re, 0), {5, 3}), same);
  expect_error([&] { vt::vmap([](Tensor v) { return vt::pmax(v, "i"); }, {.axis_name = "i"})(z); },
               ErrorKind::dtype, {"complex numbers have no order"});
}

TEST(Collectives, NoLanesAndOne) {
  const Tensor none = vt::zeros({0, 2}, vt::f64);
  const auto f = [](Tensor v) {
    return std::tuple(vt::psum(v, "i"), vt::pmax(v, "i"), vt::all_gather(v, "i"),
                      vt::psum(vt::ones({3}), "i"), vt::psum(1, "i"));
  };
  const auto [s, most, all, shared, count] =
      vt::vmap(f, {.out_axes = vt::unmapped, .axis_name = "i"})(none);
  EXPECT_EQ(s.to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_TRUE(std::isinf(most[0].item<double>()));
  EXPECT_EQ(all.shape(), vt::Shape({0, 2}));
  EXPECT_EQ(shared.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(count.item<int>(), 0);
  const auto kept = [](Tensor v) {
    return std::tuple(vt::ppermute(v, "i", {}), vt::all_to_all(vt::zeros({0, 3}), "i", 0, 1),
                      v * vt::axis_index("i"));
  };
  const auto [p, exchanged, index] = vt::vmap(kept, {.axis_name = "i"})(none);
  EXPECT_EQ(p.shape(), vt::Shape({0, 2}));
  EXPECT_EQ(exchanged.shape(), vt::Shape({0, 3, 0}));
  EXPECT_EQ(index.shape(), vt::Shape({0, 2}));
  EXPECT_EQ(vt::pfor([](Tensor i) { return vt::psum(i, "i"); }, 0, {.axis_name = "i"}).shape(),
            vt::Shape({0}));
  EXPECT_EQ(
      vt::pfor([](Tensor i) { return vt::psum(i + 3, "i"); }, 1, {.axis_name = "i"}).item<int>(),
      3);
}

TEST(Collectives, InCustomRules) {
  // Its rules say twice the derivative, and meet the other lanes themselves.
  const auto doubled =
      vt::custom_vjp([](Tensor x) { return vt::psum(x * x, "i"); },
                     [](Tensor x) { return std::pair(vt::psum(x * x, "i"), x); },
                     [](Tensor x, Tensor bar) { return 4.0 * x * vt::psum(bar, "i"); });
  const auto plain = [](Tensor x) { return vt::psum(x * x, "i"); };
  const auto loss = [](auto f) {
    return [=](Tensor x) { return vt::sum(vt::sin(f(x)) * (1.0 + vt::axis_index("i"))); };
  };
  const Tensor wanted = 2.0 * mapped(vt::grad(loss(plain)))(xs);
  expect_close(mapped(vt::grad(loss(doubled)))(xs), wanted, same, "inside");
  expect_close(vt::grad([&](Tensor x) { return vt::sum(mapped(loss(doubled))(x)); })(xs), wanted,
               same, "outside");
  const auto by_jvp = vt::custom_jvp(plain, [](Tensor x, Tensor dx) {
    return std::pair(vt::psum(x * x, "i"), vt::psum(4.0 * x * dx, "i"));
  });
  expect_close(mapped(vt::grad(loss(by_jvp)))(xs), wanted, same, "jvp inside");
  expect_close(vt::grad([&](Tensor x) { return vt::sum(mapped(loss(by_jvp))(x)); })(xs), wanted,
               same, "jvp outside");
  const Tensor all = vt::stack({xs, xs * 0.5});
  const auto inner = [&](Tensor x) { return vt::sum(vt::vmap(mapped(loss(doubled)))(x)); };
  expect_close(
      vt::grad(inner)(all),
      vt_test::stack_loop([&](Tensor x) { return 2.0 * mapped(vt::grad(loss(plain)))(x); }, 0, all),
      same, "in lanes");
}

TEST(Collectives, AJittedFunctionIsTracedForTheLanesItRunsIn) {
  const auto share =
      vt::jit([](Tensor x) { return x / vt::psum(x, "i") + 0.0 * vt::axis_size("i"); });
  for (int n : {2, 5, 3}) {
    const Tensor x = vt::ones({n}, vt::f64);
    EXPECT_EQ(vt::vmap(share, {.axis_name = "i"})(x)[0].item<double>(), 1.0 / n);
  }
  // Also of what is the same for all lanes.
  const auto all = vt::jit([](Tensor x) { return vt::psum(x, "i"); });
  for (int n : {2, 5})
    EXPECT_EQ(vt::vmap([&](Tensor x) { return x * all(vt::ones({})); },
                       {.axis_name = "i"})(vt::ones({n}))[0]
                  .item<float>(),
              static_cast<float>(n));
  // What names its own lanes is compiled once.
  int traced = 0;
  const auto own = vt::jit([&](Tensor x) {
    ++traced;
    return vt::vmap([](Tensor v) { return vt::psum(v, "i"); }, {.axis_name = "i"})(x);
  });
  for (int k = 0; k < 3; ++k) EXPECT_EQ(own(vt::ones({4}))[0].item<float>(), 4);
  EXPECT_EQ(traced, 1);
}

TEST(Collectives, Text) {
  std::string text;
  const auto f = [&](Tensor x) {
    text = vt::make_graph([](Tensor v) {
             return std::pair{vt::psum(v, "rows"), vt::ppermute(v, "rows", {{0, 1}})};
           })(x)
               .str();
    return x;
  };
  vt::vmap(f, {.axis_name = "rows"})(vt::ones({2, 3}));
  EXPECT_EQ(text,
            "{ lambda a:f32[3] .\n"
            "  let b:f32[3] = psum[axis=rows] a\n"
            "      c:f32[3] = ppermute[axis=rows, sources=(-1,0)] a\n"
            "  in (b, c) }");
  EXPECT_EQ(vt::make_graph(vt::vmap([](Tensor v) { return vt::psum(v, "rows"); },
                                    {.axis_name = "rows"}))(vt::ones({2, 3}))
                .str(),
            "{ lambda a:f32[2,3] .\n"
            "  let b:f32[3] = reduce_sum[axes=(0,)] a\n"
            "      c:f32[2,3] = broadcast_in_dim[shape=[2,3], axes=(1,)] b\n"
            "  in (c) }");
}

TEST(Collectives, WrongUses) {
  const auto in_lanes = [](auto f) {
    return [=] { vt::vmap(f, {.axis_name = "i"})(vt::ones({4, 3})); };
  };
  const auto refused = [](const std::function<void()>& f, ErrorKind kind, const std::string& part) {
    expect_error(f, kind, {part, "vmap_collectives_test.cpp"});
  };
  refused([] { (void)vt::psum(vt::ones({3}), "i"); }, ErrorKind::transform,
          "vt::psum: no axis is named \"i\" here; vt::vmap and vt::pfor name theirs by {.axis_name "
          "= …}");
  refused(in_lanes([](Tensor x) { return vt::pmax(x, "batch"); }), ErrorKind::transform,
          "vt::pmax: no axis is named \"batch\" here; there is \"i\" (4 lanes)");
  const auto misspelt = [](Tensor x) {
    return vt::vmap([](Tensor v) { return vt::psum(v, "bacth"); }, {.axis_name = "rows"})(x);
  };
  const auto in_batch = vt::vmap(misspelt, {.axis_name = "batch"});
  const char* const meant =
      "vt::psum: no axis is named \"bacth\" here (did you mean \"batch\"?); there is \"rows\" (3 "
      "lanes), \"batch\" (4 lanes)";
  refused([&] { (void)in_batch(vt::ones({4, 3})); }, ErrorKind::transform, meant);
  refused([&] { (void)vt::jit(in_batch)(vt::ones({4, 3})); }, ErrorKind::transform, meant);
  refused(in_lanes([](Tensor x) { return vt::axis_size("I") * x; }), ErrorKind::transform,
          "vt::axis_size: no axis is named \"I\" here (did you mean \"i\"?); there is \"i\"");
  refused(in_lanes([](Tensor x) {
            return vt::vmap([](Tensor v) { return vt::axis_index("k") + v; },
                            {.axis_name = "j"})(x);
          }),
          ErrorKind::transform,
          "vt::axis_index: no axis is named \"k\" here; there is \"j\" (3 lanes), \"i\" (4 lanes)");
  refused(in_lanes([](Tensor x) { return vt::psum(x, {"i", "i"}); }), ErrorKind::value,
          "vt::psum: axis \"i\" is given twice");
  refused(in_lanes([](Tensor x) { return vt::psum(x, std::vector<std::string>{}); }),
          ErrorKind::value, "vt::psum: no axis is given");
  refused(in_lanes([](Tensor) { return vt::psum(Tensor(), "i"); }), ErrorKind::value, "vt::psum");
  refused(in_lanes([](Tensor x) { return vt::all_to_all(x, "i", 0, 0); }), ErrorKind::shape,
          "vt::all_to_all: axis 0 must have an element for each of the 4 lanes of \"i\": f32[3]");
  refused(
      in_lanes([](Tensor x) { return vt::psum_scatter(x, "i", {.tiled = true}); }),
      ErrorKind::shape,
      "vt::psum_scatter: axis 0 cannot be cut in equal blocks for the 4 lanes of \"i\": f32[3]");
  refused(in_lanes([](Tensor x) { return vt::all_gather(x, "i", {.axis = 2}); }), ErrorKind::shape,
          "vt::all_gather");
  refused(in_lanes([](Tensor x) { return vt::ppermute(x, "i", {{0, 4}}); }), ErrorKind::value,
          "vt::ppermute: there is no lane 4 among the 4 of \"i\"");
  refused(in_lanes([](Tensor x) { return vt::ppermute(x, "i", {{0, 1}, {2, 1}}); }),
          ErrorKind::value, "vt::ppermute: lane 1 of \"i\" is sent to twice");
  refused(in_lanes([](Tensor x) { return vt::ppermute(x, "i", {{0, 1}, {0, 2}}); }),
          ErrorKind::value, "lane 0 is a source twice");
  refused(in_lanes([](Tensor x) { return vt::pshuffle(x, "i", {0, 1}); }), ErrorKind::value,
          "vt::pshuffle: 2 sources for the 4 lanes of \"i\"");
  refused(in_lanes([](Tensor x) { return vt::pshuffle(x, "i", {0, 1, 2, 4}); }), ErrorKind::value,
          "vt::pshuffle: there is no lane 4 among the 4 of \"i\"");
  refused(in_lanes([](Tensor x) { return vt::pshuffle(x, "i", {0, 1, 3, 1}); }), ErrorKind::value,
          "vt::pshuffle: lane 1 is a source twice");
  refused(in_lanes([](Tensor x) {
            return vt::cond(
                x[0] > 0, [](Tensor v) { return vt::psum(v, "i"); }, [](Tensor v) { return v; }, x);
          }),
          ErrorKind::transform,
          "a collective over \"i\" stands inside a vt::cond whose predicate differs between those "
          "lanes");
  refused(in_lanes([](Tensor x) {
            return vt::while_loop([](Tensor v) { return vt::sum(v) < 9; },
                                  [](Tensor v) { return v + vt::psum(v, "i"); }, x);
          }),
          ErrorKind::transform,
          "a collective over \"i\" stands inside a vt::while_loop whose predicate differs");
  refused(
      [] {
        vt::vmap([](Tensor x) { return vt::psum(x, "i"); },
                 {.axis_name = "i", .chunk = 2})(vt::ones({4, 3}));
      },
      ErrorKind::transform,
      "vt::vmap: chunk runs 2 lanes at a time, but a collective over \"i\" needs all 4 at once");
  EXPECT_EQ(vt::vmap([](Tensor x) { return x * vt::axis_index("i"); },
                     {.axis_name = "i", .chunk = 3})(vt::ones({4}))[3]
                .item<float>(),
            3);
  // Predicates that the lanes of "i" share may differ between other lanes.
  const auto choose = [](Tensor p, Tensor x) {
    return vt::cond(p, [](Tensor v) { return vt::psum(v, "i"); }, [](Tensor v) { return -v; }, x);
  };
  const Tensor picked =
      vt::vmap(vt::vmap(choose, {.in_axes = {vt::unmapped, 0}, .axis_name = "i"}))(
          vt::tensor({true, false}), vt::ones({2, 3}));
  EXPECT_EQ(picked.to_vector<float>(), (std::vector<float>{3, 3, 3, -1, -1, -1}));
  // A pull that outlives its lanes.
  std::function<Tensor(Tensor)> kept;
  vt::vmap(
      [&](Tensor x) {
        const auto [y, pull] = vt::vjp([](Tensor v) { return vt::psum(v, "i"); }, x);
        kept = pull;
        return y;
      },
      {.axis_name = "i"})(vt::ones({4, 3}));
  EXPECT_NE(message([&] {
              kept(vt::ones({3})).eval();
            }).find("vt::psum: the lanes of \"i\" are known only inside their vt::vmap"),
            std::string::npos)
      << message([&] { kept(vt::ones({3})).eval(); });
}

}  // namespace
