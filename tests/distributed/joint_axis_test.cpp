// One axis of a mesh and of lanes: a vmap inside of a shard_map that names its axis as the mesh
// does. Each collective, derivative and loop as under one vmap of all lanes.
#include "distributed/ranks.hpp"
#include "support/collective_cases.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::Mesh;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::block;
using vt_test::Collective;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::on_ranks;
using vt_test::Tolerance;
using Function = Collective::Function;

constexpr Tolerance near{.relative = 1e-7, .absolute = 1e-8},
    same{.relative = 1e-12, .absolute = 1e-13};
constexpr int lanes = vt_test::lanes_of_cases;

const Tensor xs = vt_test::random_tensor(vt::f64, {lanes, 4, 2}, 0.2, 1.2, 7);

Function by_lanes(Function f) { return vt::vmap(std::move(f), {.axis_name = "i"}); }
Function mapped(const Mesh& m, Function f) {
  return vt::shard_map(by_lanes(std::move(f)),
                       {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")});
}
/// Runs `check(mesh, this rank's block of xs)` with the lanes of xs on 1, 2 and 4 processes.
void on_each(const std::function<void(const Mesh&, Tensor)>& check) {
  for (const int ranks : {1, 2, 4})
    on_ranks(ranks, [&] {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      check(mesh({{"i", ranks}}), block(xs, rank(), ranks));
    });
}
Tensor own(const Tensor& whole) { return block(whole, rank(), vt::distributed::size()); }

TEST(JointAxis, CollectivesAreTheFormulaOnWholeArrays) {
  on_each([](const Mesh& m, Tensor x) {
    for (const Collective& c : vt_test::collective_cases) {
      SCOPED_TRACE(c.name);
      const Tensor wanted = own(c.whole(xs));
      expect_close(mapped(m, c.lane)(x), wanted, same);
      const auto jitted = vt::jit(mapped(m, c.lane));
      expect_close(jitted(x), wanted, same, "compiled");
      expect_close(jitted(x), wanted, same, "compiled, again");
      expect_close(mapped(m, vt::jit(c.lane))(x), wanted, same, "jit inside");
      expect_close(mapped(m, vt::checkpoint(c.lane))(x), wanted, same, "checkpoint");
      const auto in_branch = [&](Tensor v) {
        return vt::cond(
            vt::psum(vt::sum(v), "i") > 0, c.lane, [&](Tensor w) { return c.lane(w) * 2.0; }, v);
      };
      expect_close(mapped(m, in_branch)(x), wanted, same, "in a branch");
      const Function inner = [&](Tensor v) { return vt::vmap(c.lane)(v); };
      const Tensor both = vt::stack({wanted, own(c.whole(xs * 0.5))}, 1),
                   two = vt::stack({x, x * 0.5}, 1);
      expect_close(mapped(m, inner)(two), both, same, "lanes inside");
      const auto mapped_two = vt::vmap(mapped(m, c.lane), {.in_axes = 1, .out_axes = 1});
      expect_close(mapped_two(two), both, same, "lanes outside");
    }
  });
}

/// What one lane returns; neither linear nor symmetric between lanes.
Function of_lane(const Collective& c) {
  return [&c](Tensor x) {
    return vt::sum(vt::sin(c.lane(x * x))) * (1.0 + vt::axis_index("i")) + vt::sum(x * x * x);
  };
}
Tensor of_all(const Collective& c, Tensor x) {
  const Tensor y = vt::sin(c.whole(x * x));
  Tensor sum = vt::sum(x * x * x);
  for (int i = 0; i < lanes; ++i) sum = sum + (1.0 + i) * vt::sum(y[i]);
  return sum;
}

TEST(JointAxis, DerivativesInsideAndOutside) {
  on_each([](const Mesh& m, Tensor x) {
    for (const Collective& c : vt_test::collective_cases) {
      SCOPED_TRACE(c.name);
      const Function f = of_lane(c);
      const Tensor slopes = vt_test::numeric_gradient([&](Tensor v) { return of_all(c, v); }, xs);
      const Tensor slope = own(slopes);
      expect_close(mapped(m, vt::grad(f))(x), slope, near, "inside");
      expect_close(vt::jit(mapped(m, vt::grad(f)))(x), slope, near, "inside, compiled");
      expect_close(vt::grad([&](Tensor v) { return vt::sum(mapped(m, f)(v)); })(x), slope, near,
                   "outside");
      const auto shared = [&](Tensor v) { return vt::psum(f(v), "i"); };
      const auto total =
          vt::shard_map(vt::vmap(shared, {.out_axes = vt::unmapped, .axis_name = "i"}),
                        {.mesh = m, .in_specs = sharded("i")});
      expect_close(total(x), of_all(c, xs), same);
      expect_close(vt::jit(vt::grad(total))(x), slope, near, "of what all share");
      const Tensor ds = vt_test::random_tensor(vt::f64, xs.shape(), 9), d = own(ds);
      const Tensor curvature = own(vt_test::numeric_gradient(
          [&](Tensor v) {
            return vt::sum(vt::grad([&](Tensor w) { return of_all(c, w); })(v) * ds);
          },
          xs));
      const auto along =
          vt::shard_map([](Tensor s, Tensor t) { return vt::psum(vt::sum(s * t), "i"); },
                        {.mesh = m, .in_specs = sharded("i")});
      expect_close(vt::jvp(total, std::tuple(x), std::tuple(d)).second, along(slope, d), near,
                   "jvp outside");
      expect_close(vt::grad([&](Tensor v) { return along(mapped(m, vt::grad(f))(v), d); })(x),
                   curvature, near, "outside of inside");
      expect_close(vt::grad([&](Tensor v) { return along(vt::grad(total)(v), d); })(x), curvature,
                   near, "outside of outside");
    }
  });
}

TEST(JointAxis, Loops) {
  on_each([](const Mesh& m, Tensor x) {
    for (const Collective& c : vt_test::collective_cases) {
      SCOPED_TRACE(c.name);
      const auto step = [&](Tensor v) { return v + 0.1 * vt::sin(vt::sum(c.lane(v))); };
      const Function by_scan = [&](Tensor v) {
        return vt::fori_loop(0, 3, [&](Tensor, Tensor w) { return step(w); }, v);
      };
      const Function by_while = [&](Tensor v) {
        const auto more = [](Tensor i, Tensor w) {
          return (i < 3) & (vt::pmax(vt::sum(w), "i") < 1e6);
        };
        return vt::while_loop(
                   more, [&](Tensor i, Tensor w) { return std::pair(i + 1, step(w)); },
                   std::pair(0, v))
            .second;
      };
      const auto sum_of = [](Function f) { return [f](Tensor v) { return vt::sum(f(v)); }; };
      const Tensor wanted = own(by_lanes(by_scan)(xs)),
                   slope = own(vt::grad(sum_of(by_lanes(by_scan)))(xs));
      for (const Function& f : {by_scan, by_while}) {
        expect_close(mapped(m, f)(x), wanted, same);
        expect_close(vt::jit(mapped(m, f))(x), wanted, same, "compiled");
        expect_close(vt::grad(sum_of(mapped(m, f)))(x), slope, near, "gradient outside");
        expect_close(mapped(m, vt::grad(sum_of(f)))(x), slope, near, "gradient inside");
      }
    }
  });
}

// Six lanes on three, two and one processes, in each dtype and along each axis.
TEST(JointAxis, EveryDtypeAndAxis) {
  for (const int ranks : {1, 2, 3})
    on_ranks(ranks, [&] {
      const Mesh m = mesh({{"i", ranks}});
      for (vt::DType d : vt_test::all_dtypes) {
        SCOPED_TRACE(std::string(vt::name_of(d)) + " on " + std::to_string(ranks));
        const Tensor all = vt::is_float(d) ? vt_test::random_quarters(d, {6, 6, 12}, 11)
                                           : vt_test::random_tensor(d, {6, 6, 12}, -3, 3, 11);
        const auto f = [](Tensor x) {
          return std::vector<Tensor>{vt::psum(x, "i"),
                                     vt::pmean(x, "i"),
                                     vt::pmax(x, "i"),
                                     vt::pmin(x, "i"),
                                     vt::all_gather(x, "i", {.axis = 1}),
                                     vt::all_gather(x, "i", {.axis = -1, .tiled = true}),
                                     vt::all_to_all(x, "i", 0, 1),
                                     vt::all_to_all(x, "i", 1, 0, {.tiled = true}),
                                     vt::psum_scatter(x, "i"),
                                     vt::psum_scatter(x, "i", {.axis = 1, .tiled = true}),
                                     vt::ppermute(x, "i", {{0, 5}, {2, 1}, {5, 3}, {3, 2}}),
                                     vt::ppermute(x, "i", {{1, 0}}),
                                     vt::ppermute(x, "i", {}),
                                     vt::pshuffle(x, "i", {3, 0, 1, 5, 2, 4}),
                                     vt::axis_index("i"),
                                     vt::tensor(vt::axis_size("i"))};
        };
        const auto g = vt::vmap(f, {.axis_name = "i"});
        const std::vector<Tensor> wanted = g(all);
        const auto parts =
            vt::shard_map(g, {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")});
        for (const std::vector<Tensor>& got : {parts(own(all)), vt::jit(parts)(own(all))}) {
          ASSERT_EQ(got.size(), wanted.size());
          for (std::size_t k = 0; k < got.size(); ++k) {
            EXPECT_EQ(got[k].dtype(), wanted[k].dtype()) << k;
            expect_close(got[k], own(wanted[k]), {.ulps = 1}, std::to_string(k).c_str());
          }
        }
      }
    });
}

TEST(JointAxis, SeveralNamesAndMeshes) {
  on_ranks(4, [] {
    const Mesh m = mesh({{"i", 2}, {"j", 2}});
    const Tensor all = vt_test::random_tensor(vt::f64, {6, 4, 3}, -1, 1, 5);
    const Tensor part = block(vt::swapaxes(block(vt::swapaxes(all, 0, 1), m.index("j"), 2), 0, 1),
                              m.index("i"), 2);  // [3, 2, 3]
    const auto own_part = [&](Tensor t) {
      return block(vt::swapaxes(block(vt::swapaxes(t, 0, 1), m.index("j"), 2), 0, 1), m.index("i"),
                   2);
    };
    const auto f = [](Tensor x) {
      return std::tuple(vt::psum(x, {"i", "j"}), vt::all_gather(x, {"j", "i"}), vt::pmax(x, "j"),
                        vt::axis_index({"j", "i"}), vt::psum(x, {"j", "k"}), vt::psum(1, "i"));
    };
    const auto over = [&](auto g) {
      return vt::vmap(vt::vmap(vt::vmap(g, {.axis_name = "k"}), {.axis_name = "j"}),
                      {.axis_name = "i"});
    };
    const auto wanted = over(f)(all);
    const std::vector<vt::Sharding::Cut> cuts = {{"i", 0}, {"j", 1}};
    const auto got = vt::shard_map(
        over(f), {.mesh = m, .in_specs = sharded(cuts), .out_specs = sharded(cuts)})(part);
    expect_close(std::get<0>(got), own_part(std::get<0>(wanted)), same);
    expect_close(std::get<1>(got), own_part(std::get<1>(wanted)), same);
    expect_close(std::get<2>(got), own_part(std::get<2>(wanted)), same);
    expect_close(std::get<3>(got), own_part(std::get<3>(wanted)));
    expect_close(std::get<4>(got), own_part(std::get<4>(wanted)), same);
    expect_close(std::get<5>(got), own_part(std::get<5>(wanted)));
  });
}

// The second vmap of the name hides the axis that the first one is a part of.
TEST(JointAxis, LanesInsideOfItHideIt) {
  on_ranks(2, [] {
    const Mesh m = mesh({{"i", 2}});
    const Tensor x = vt::arange(6.0).reshape({2, 3}) + 6.0 * rank();
    const auto sum = [](Tensor v) { return vt::psum(v, "i"); };
    const auto rows = vt::vmap(sum, {.out_axes = vt::unmapped, .axis_name = "i"});
    const auto specs = [&](vt::ShardSpec out) {
      return vt::ShardMapOptions{.mesh = m, .in_specs = sharded("i"), .out_specs = out};
    };
    expect_close(vt::shard_map(vt::vmap(rows, {.axis_name = "i"}), specs(sharded("i")))(x),
                 vt::sum(x, 1));
    expect_close(vt::shard_map(vt::vmap(rows, {.axis_name = "other"}), specs(replicated))(x),
                 vt::sum(vt::arange(12.0).reshape({2, 2, 3}), {0, 2}));
    // What was recorded in one place is not taken for the other, or for a place without a mesh.
    const auto in_each_place = [&](const Function& f) {
      for (int i = 0; i < 2; ++i) {
        expect_close(vt::vmap(f)(x), vt::sum(x, 1));
        expect_close(vt::shard_map(vt::vmap(f, {.axis_name = "i"}), specs(sharded("i")))(x),
                     vt::sum(x, 1));
        expect_close(vt::shard_map(vt::vmap(f), specs(replicated))(x),
                     vt::sum(vt::arange(12.0).reshape({2, 2, 3}), {0, 2}));
      }
    };
    in_each_place(vt::jit(rows));
    in_each_place(vt::function("rows", rows));
  });
}

// Lanes of a pfor of which some do not run count nowhere.
TEST(JointAxis, LanesThatDoNotRun) {
  on_ranks(2, [] {
    const Mesh m = mesh({{"i", 2}});
    const auto f = [](Tensor x, Tensor n) {
      return vt::pfor(
          [&](Tensor k) {
            return vt::stack({vt::psum(x[k], "i"), vt::pmean(x[k], "i"), vt::pmax(x[k], "i"),
                              vt::psum(1.0, "i")});
          },
          n, {.at_most = 4, .axis_name = "i"});
    };
    const auto g = vt::shard_map(
        f, {.mesh = m, .in_specs = {sharded("i"), replicated}, .out_specs = sharded("i")});
    const Tensor x = vt::tensor({1.0, 2.0, 6.0, 90.0}) + 10.0 * rank();
    const Tensor row = vt::tensor({48.0, 8.0, 16.0, 6.0}), none = vt::zeros({4});
    expect_close(g(x, vt::tensor(3)), vt::stack({row, row, row, none}));
  });
}

TEST(JointAxis, KeysFoldInTheIndex) {
  on_ranks(2, [] {
    const auto draw = [](Tensor x) {
      return x *
             vt::random::normal(vt::random::fold_in(vt::random::key(3), vt::axis_index("i")), {3});
    };
    const Tensor all = vt::ones({6, 3});
    expect_close(mapped(mesh({{"i", 2}}), draw)(own(all)), own(by_lanes(draw)(all)));
  });
}

TEST(JointAxis, Refused) {
  on_ranks(2, [] {
    const Mesh m = mesh({{"i", 2}});
    const Tensor x = vt::ones({3, 4});
    const auto refused = [&](Function f, ErrorKind kind, const std::vector<std::string>& parts) {
      expect_error([&] { static_cast<void>(mapped(m, std::move(f))(x)); }, kind, parts);
    };
    refused([](Tensor v) { return vt::all_to_all(v, "i", 0, 0); }, ErrorKind::shape,
            {"vt::all_to_all", "each of the 6 lanes of \"i\"", "f32[4]"});
    refused([](Tensor v) { return vt::ppermute(v, "i", {{0, 6}}); }, ErrorKind::value,
            {"vt::ppermute: there is no lane 6 among the 6 of \"i\""});
    refused([](Tensor v) { return vt::ppermute(v, "i", {{4, 0}, {4, 1}}); }, ErrorKind::value,
            {"vt::ppermute", "lane 4", "source twice"});
    refused([](Tensor v) { return vt::psum(v, {"i", "i"}); }, ErrorKind::value,
            {"axis \"i\" is given twice"});
    const auto parted = [](Tensor v) {
      return vt::cond(
          vt::sum(v) > 0, [](Tensor w) { return vt::psum(w, "i"); }, [](Tensor w) { return w; }, v);
    };
    refused(parted, ErrorKind::transform, {"vt::cond", "\"i\""});
    // Lanes of a pfor must run on all processes or on none.
    const auto some = [](Tensor v, Tensor n) {
      const auto f = [&](Tensor k) { return vt::psum(v[k], "i"); };
      return vt::pfor(f, n[0], {.at_most = 3, .axis_name = "i"});
    };
    const auto by_number =
        vt::shard_map(some, {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")});
    expect_error([&] { static_cast<void>(by_number(x, vt::tensor({rank()}))); },
                 ErrorKind::transform, {"predicate differs between processes"});
    const auto chunked = vt::shard_map(
        vt::vmap([](Tensor v) { return vt::psum(v, "i"); }, {.axis_name = "i", .chunk = 2}),
        {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")});
    expect_error([&] { static_cast<void>(chunked(x)); }, ErrorKind::transform,
                 {"chunk", "\"i\"", "needs all"});
  });
}

// What lanes do to variables is the same on any number of processes, with lanes of their own or
// not.
TEST(JointAxis, Variables) {
  const Tensor x = vt::tensor({0.5, 1.5, 2.0, 0.25});
  struct All {
    vt::Variable count{vt::tensor(0.0)}, sum{vt::tensor(1.0)}, product{vt::tensor(3.0)},
        greatest{vt::tensor(1.0)}, least{vt::tensor(1.0)}, last{vt::tensor(0.0)};
    Tensor update(Tensor v) const {
      count.assign_add(1.0);
      sum.assign_sub(v);
      product.assign_mul(v * 2.0);
      greatest.assign_max(v);
      least.assign_min(v);
      last.assign(vt::pmean(v, "i"));
      return v;
    }
    Tensor values() const {
      return vt::stack({count.value(), sum.value(), product.value(), greatest.value(),
                        least.value(), last.value()});
    }
  };
  const auto lane = [](const All& all) { return [&all](Tensor v) { return all.update(v); }; };
  const All one;
  vt::vmap(lane(one), {.axis_name = "i"})(x).eval();
  expect_close(one.values(), vt::tensor({4.0, -3.25, 3.0 * 16.0 * 0.375, 2.0, 0.25, 1.0625}));
  for (const int ranks : {1, 2, 4})
    on_ranks(ranks, [&] {
      for (const int shards : {0, 4}) {
        const All own;
        const auto f =
            vt::shard_map(vt::vmap(lane(own), {.axis_name = "i"}), {.mesh = mesh({{"i", ranks}}),
                                                                    .in_specs = sharded("i"),
                                                                    .out_specs = sharded("i"),
                                                                    .reproducible = shards});
        f(vt_test::block(x, rank(), ranks)).eval();
        expect_close(own.values(), one.values(), {.relative = 1e-12}, "lanes of processes");
      }
      if (ranks < 4) return;
      const All own;
      const auto parts = vt::jit(vt::shard_map(
          [&](Tensor v) { return vt::expand_dims(own.update(v[0]), 0); },
          {.mesh = mesh({{"i", 4}}), .in_specs = sharded("i"), .out_specs = sharded("i")}));
      parts(vt_test::block(x, rank(), 4)).eval();
      expect_close(own.values(), one.values(), {.relative = 1e-12}, "processes");
    });
}

}  // namespace
