// shard_map: each collective, derivative and loop as under vmap, for one example a rank; what
// processes share; random programs over meshes; the messages of wrong uses.
#include "distributed/ranks.hpp"
#include "src/trace/processes/world.hpp"
#include "support/collective_cases.hpp"
#include "support/message.hpp"
#include "support/property.hpp"
#include "support/random_program.hpp"

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
const auto& collectives = vt_test::collective_cases;
constexpr int lanes = vt_test::lanes_of_cases;

const Tensor xs = vt_test::random_tensor(vt::f64, {lanes, 4, 2}, 0.2, 1.2, 7);

/// f, a function of one example, on this rank's block of one.
Function of_block(Function f) {
  return [f](Tensor x) { return vt::expand_dims(f(x[0]), 0); };
}
Function mapped(const Mesh& m, Function f) {
  return vt::shard_map(of_block(std::move(f)),
                       {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")});
}
/// Runs `check(mesh, this rank's block of xs)` on four ranks along "i".
void on_four(const std::function<void(const Mesh&, Tensor)>& check) {
  on_ranks(lanes, [&] { check(mesh({{"i", lanes}}), block(xs, rank(), lanes)); });
}

TEST(ShardMap, CollectivesAreTheFormulaOnWholeArrays) {
  on_four([](const Mesh& m, Tensor x) {
    for (const Collective& c : collectives) {
      SCOPED_TRACE(c.name);
      const Tensor wanted = block(c.whole(xs), rank(), lanes);
      expect_close(mapped(m, c.lane)(x), wanted, same);
      expect_close(mapped(m, c.lane)(x), wanted, same, "again");
      const auto jitted = vt::jit(mapped(m, c.lane));
      expect_close(jitted(x), wanted, same, "compiled");
      expect_close(jitted(x), wanted, same, "compiled, again");
      expect_close(mapped(m, vt::jit(c.lane))(x), wanted, same, "jit inside");
      expect_close(mapped(m, vt::checkpoint(c.lane))(x), wanted, same, "checkpoint");
      expect_close(mapped(m,
                          [&](Tensor v) {
                            return vt::cond(
                                vt::tensor(true), c.lane, [&](Tensor w) { return c.lane(w) * 2.0; },
                                v);
                          })(x),
                   wanted, same, "in a branch");
      const Function by_lanes = [&](Tensor v) { return vt::vmap(c.lane)(v); };
      const Tensor two = vt::stack({x[0], x[0] * 0.5});
      const Tensor both = vt::concatenate({wanted, block(c.whole(xs * 0.5), rank(), lanes)}, 0);
      expect_close(mapped(m, by_lanes)(vt::expand_dims(two, 0))[0], both, same, "lanes inside");
      expect_close(vt::vmap(mapped(m, c.lane))(vt::expand_dims(two, 1)), vt::expand_dims(both, 1),
                   same, "lanes outside");
    }
  });
}

/// What one rank returns, and the sum of it over all ranks by whole arrays; neither linear nor
/// symmetric between ranks.
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

TEST(ShardMap, DerivativesInsideAndOutside) {
  on_four([](const Mesh& m, Tensor x) {
    for (const Collective& c : collectives) {
      SCOPED_TRACE(c.name);
      const Function f = of_lane(c);
      const Tensor slopes = vt_test::numeric_gradient([&](Tensor v) { return of_all(c, v); }, xs);
      const Tensor slope = block(slopes, rank(), lanes);
      expect_close(mapped(m, vt::grad(f))(x), slope, near, "inside");
      expect_close(vt::jit(mapped(m, vt::grad(f)))(x), slope, near, "inside, compiled");
      // Every rank differentiates its own result, all at once: that of the sum over all ranks.
      const auto own = [&](Tensor v) { return vt::sum(mapped(m, f)(v)); };
      expect_close(vt::grad(own)(x), slope, near, "outside");
      // One number that all share.
      const auto total = vt::shard_map([&](Tensor v) { return vt::psum(f(v[0]), "i"); },
                                       {.mesh = m, .in_specs = sharded("i")});
      expect_close(total(x), of_all(c, xs), same);
      expect_close(vt::grad(total)(x), slope, near, "of what all share");
      expect_close(vt::jit(vt::grad(total))(x), slope, near, "of what all share, compiled");
      const Tensor d = block(vt_test::random_tensor(vt::f64, xs.shape(), 9), rank(), lanes);
      const auto along =
          vt::shard_map([](Tensor s, Tensor t) { return vt::psum(vt::sum(s * t), "i"); },
                        {.mesh = m, .in_specs = sharded("i")});
      expect_close(vt::jvp(total, std::tuple(x), std::tuple(d)).second, along(slope, d), near,
                   "jvp outside");
      // Second derivatives: a number of the inside's gradient, and of the outside's.
      const Tensor ds = vt_test::random_tensor(vt::f64, xs.shape(), 9);
      const Tensor curvature =
          block(vt_test::numeric_gradient(
                    [&](Tensor v) {
                      return vt::sum(vt::grad([&](Tensor w) { return of_all(c, w); })(v) * ds);
                    },
                    xs),
                rank(), lanes);
      const auto by_inside = [&](Tensor v) { return along(mapped(m, vt::grad(f))(v), d); };
      expect_close(vt::grad(by_inside)(x), curvature, near, "outside of inside");
      const auto by_outside = [&](Tensor v) { return along(vt::grad(total)(v), d); };
      expect_close(vt::grad(by_outside)(x), curvature, near, "outside of outside");
    }
  });
}

TEST(ShardMap, CollectivesStayWhatTheyAreInsideLoops) {
  on_four([](const Mesh& m, Tensor x) {
    for (const Collective& c : collectives) {
      SCOPED_TRACE(c.name);
      const auto step = [&](Tensor v) { return v + 0.1 * vt::sin(vt::sum(c.lane(v))); };
      const Function by_scan = [&](Tensor v) {
        return vt::fori_loop(0, 3, [&](Tensor, Tensor w) { return step(w); }, v);
      };
      const Function by_while = [&](Tensor v) {
        return vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                              [&](Tensor i, Tensor w) { return std::pair(i + 1, step(w)); },
                              std::pair(0, v))
            .second;
      };
      const auto oracle = vt::vmap(by_scan, {.axis_name = "i"});
      const auto sum_of = [](auto f) { return [f](Tensor v) { return vt::sum(f(v)); }; };
      const Tensor wanted = block(oracle(xs), rank(), lanes),
                   slope = block(vt::grad(sum_of(oracle))(xs), rank(), lanes);
      for (const Function& f : {by_scan, by_while}) {
        expect_close(mapped(m, f)(x), wanted, same);
        expect_close(vt::jit(mapped(m, f))(x), wanted, same, "compiled");
        expect_close(vt::grad(sum_of(mapped(m, f)))(x), slope, near, "gradient outside");
        expect_close(mapped(m, vt::grad(sum_of(f)))(x), slope, near, "gradient inside");
      }
    }
  });
}

TEST(ShardMap, EveryDtype) {
  on_ranks(3, [] {
    const Mesh m = mesh({{"i", 3}});
    for (vt::DType d : vt_test::all_dtypes) {
      SCOPED_TRACE(vt::name_of(d));
      const Tensor all = vt::is_float(d) ? vt_test::random_quarters(d, {3, 5}, 11)
                                         : vt_test::random_tensor(d, {3, 5}, -3, 3, 11);
      const auto f = [](Tensor x) {
        const Tensor v = x[0];
        return std::tuple(vt::psum(v, "i"), vt::pmax(v, "i"), vt::pmin(v, "i"),
                          vt::all_gather(v, "i"), vt::pmean(v, "i"));
      };
      const auto g = [](Tensor x) {
        return std::tuple(vt::pshuffle(x, "i", {2, 0, 1}), vt::ppermute(x, "i", {{0, 2}, {2, 1}}),
                          vt::psum_scatter(vt::concatenate({x, x, x}, 0), "i"));
      };
      const auto wanted = vt::vmap([&](Tensor x) { return f(vt::expand_dims(x, 0)); },
                                   {.out_axes = vt::unmapped, .axis_name = "i"})(all);
      const auto exchanged =
          vt::vmap([&](Tensor x) { return g(vt::expand_dims(x, 0)); }, {.axis_name = "i"})(all);
      const auto got =
          vt::shard_map(f, {.mesh = m, .in_specs = sharded("i")})(block(all, rank(), 3));
      const auto moved = vt::jit(
          vt::shard_map(g, {.mesh = m, .in_specs = sharded("i"), .out_specs = sharded("i")}))(
          block(all, rank(), 3));
      expect_close(std::get<0>(got), std::get<0>(wanted));
      expect_close(std::get<1>(got), std::get<1>(wanted));
      expect_close(std::get<2>(got), std::get<2>(wanted));
      expect_close(std::get<3>(got), std::get<3>(wanted));
      expect_close(std::get<4>(got), std::get<4>(wanted), {.ulps = 1});
      expect_close(std::get<0>(moved), std::get<0>(exchanged)[rank()]);
      expect_close(std::get<1>(moved), std::get<1>(exchanged)[rank()]);
      expect_close(std::get<2>(moved), std::get<2>(exchanged)[rank()]);
    }
  });
}

TEST(ShardMap, ComplexNumbers) {
  on_ranks(2, [] {
    const Mesh m = mesh({{"i", 2}});
    const Tensor all = vt::complex(vt_test::random_quarters(vt::f64, {2, 3}, 3),
                                   vt_test::random_quarters(vt::f64, {2, 3}, 4));
    const auto f = [](Tensor x) {
      return std::tuple(vt::psum(x[0], "i"), vt::pmean(x[0] * x[0], "i"), vt::all_gather(x[0], "i"),
                        vt::psum(vt::real(x[0]), "i"));
    };
    const auto g = vt::shard_map(f, {.mesh = m, .in_specs = sharded("i")});
    for (const auto& [sum, mean, gathered, reals] :
         {g(block(all, rank(), 2)), vt::jit(g)(block(all, rank(), 2))}) {
      expect_close(sum, vt::sum(all, 0));
      expect_close(mean, vt::mean(all * all, 0));
      expect_close(gathered, all);
      expect_close(reals, vt::sum(vt::real(all), 0));
    }
  });
}

/// A mesh, how many lanes each process has along each axis (0: it is no axis of lanes), and how
/// many random programs over it.
struct MeshCase {
  std::vector<vt::distributed::MeshAxis> axes;
  std::vector<int> lanes;
  int share;
  bool mixed = false;  ///< ranks count as such that may round differently
};

TEST(ShardMap, RandomPrograms) {
  const std::vector<MeshCase> meshes = {{{{"i", 1}}, {0}, 10},
                                        {{{"i", 2}}, {0}, 15},
                                        {{{"i", 4}}, {0}, 15},
                                        {{{"i", 2}, {"j", 2}}, {0, 0}, 15},
                                        {{{"i", 3}}, {0}, 10},
                                        {{{"i", 2}}, {2}, 10},
                                        {{{"i", 3}}, {1}, 5},
                                        {{{"i", 1}}, {3}, 5},
                                        {{{"i", 2}, {"j", 2}}, {3, 0}, 10},
                                        {{{"i", 2}, {"j", 2}}, {1, 2}, 5},
                                        {{{"i", 3}}, {0}, 5, true},
                                        {{{"i", 2}, {"j", 2}}, {2, 0}, 5, true}};
  using Binary = std::function<Tensor(Tensor, Tensor)>;
  const auto count = static_cast<int>(vt_test::environment("VT_FUZZ_COUNT", 1000));
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1);
  for (const MeshCase& c : meshes) {
    int ranks = 1;
    std::vector<std::string> names;
    vt::Shape all;
    std::string lanes_text;
    for (std::size_t k = 0; k < c.axes.size(); ++k) {
      ranks *= static_cast<int>(c.axes[k].size);
      names.push_back(c.axes[k].name);
      all.push_back(c.axes[k].size * std::max(c.lanes[k], 1));
      lanes_text += " " + std::to_string(c.lanes[k]);
    }
    all.push_back(3);
    on_ranks(ranks, [&] {
      if (c.mixed) vt::detail::World::current().count_as_mixed();
      const Mesh m = mesh(c.axes);
      std::vector<vt::Sharding::Cut> cuts;
      for (std::size_t k = 0; k < names.size(); ++k)
        cuts.push_back({names[k], static_cast<int>(k)});
      const auto by_lanes = [&](Binary f, vt::AxisSpec out) {
        for (std::size_t k = names.size(); k-- > 0;)
          f = vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = out, .axis_name = names[k]});
        return f;
      };
      // Of what is this process's: of one example, or of lanes.
      const auto of_part = [&](Binary f, bool result_is_shared) {
        for (std::size_t k = names.size(); k-- > 0;) {
          const vt::AxisSpec out = result_is_shared ? vt::AxisSpec(vt::unmapped) : vt::AxisSpec(0);
          if (c.lanes[k] > 0)
            f = vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = out, .axis_name = names[k]});
          else
            f = [f, result_is_shared](Tensor t, Tensor u) {
              const Tensor one = f(t[0], u);
              return result_is_shared ? one : vt::expand_dims(one, 0);
            };
        }
        return f;
      };
      const auto by_ranks = [&](Binary f) {
        return vt::shard_map(
            of_part(std::move(f), false),
            {.mesh = m, .in_specs = {sharded(cuts), replicated}, .out_specs = sharded(cuts)});
      };
      const auto part_of = [&](Tensor t) {
        for (std::size_t k = 0; k < names.size(); ++k)
          t = vt::moveaxis(
              block(vt::moveaxis(t, static_cast<int>(k), 0), m.index(names[k]), m.size(names[k])),
              0, static_cast<int>(k));
        return t;
      };
      for (int n = 0; n < std::max(1, count * c.share / 100); ++n) {
        const std::uint64_t seed = first + static_cast<std::uint64_t>(n);
        SCOPED_TRACE("seed " + std::to_string(seed) + " on " + m.str() + " with lanes" +
                     lanes_text);
        vt_test::RandomProgram program(seed, 6);
        program.over(names);
        const Tensor x = vt_test::random_tensor(vt::f64, all, -1, 1, seed),
                     w = vt_test::random_tensor(vt::f64, {3}, -1, 1, seed + 1), part = part_of(x);
        const Binary value = [&](Tensor t, Tensor u) { return program(t, u); };
        const auto scalar = [&](Tensor t, Tensor u) { return program.scalar(t, u); };
        constexpr Tolerance close{.relative = 1e-9, .absolute = 1e-10},
            close_slope{.relative = 1e-7, .absolute = 1e-8};
        expect_close(by_ranks(value)(part, w), part_of(by_lanes(value, 0)(x, w)), close);
        // Gradients inside, and outside of what all share.
        const Binary inside = vt::grad(scalar);
        expect_close(by_ranks(inside)(part, w), part_of(by_lanes(inside, 0)(x, w)), close_slope,
                     "gradient inside");
        const Binary shared = [&](Tensor t, Tensor u) {
          return vt::psum(program.scalar(t, u), vt::AxisNames(names));
        };
        const auto total = vt::shard_map(of_part(shared, true),
                                         {.mesh = m, .in_specs = {sharded(cuts), replicated}});
        const auto lanes_total = by_lanes(shared, vt::unmapped);
        const auto [by_x, by_w] = vt::jit(vt::grad<0, 1>(total))(part, w);
        const auto [lanes_by_x, lanes_by_w] = vt::grad<0, 1>(lanes_total)(x, w);
        expect_close(by_x, part_of(lanes_by_x), close_slope, "gradient outside");
        expect_close(by_w, lanes_by_w, close_slope, "gradient outside by what all share");
      }
    });
  }
}

}  // namespace
