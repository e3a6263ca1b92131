// shard_map with reproducible: the same bits on any number of processes, of every collective, loop,
// draw and derivative; sums are a tree of neighbours; what it refuses.
#include "distributed/ranks.hpp"
#include "support/collective_cases.hpp"
#include "support/message.hpp"
#include "support/property.hpp"
#include "support/random_program.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::block;
using vt_test::exact;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::on_ranks;
using Function = std::function<Tensor(Tensor)>;

/// f, a function of one shard, as a function of this process's part.
Function in_shards(Function f, int shards) {
  return vt::shard_map(std::move(f), {.mesh = mesh({{"i", -1}}),
                                      .in_specs = sharded("i"),
                                      .out_specs = sharded("i"),
                                      .reproducible = shards});
}
/// What all processes, or ranks, give together.
Tensor of_all(const Function& f, int shards, const Tensor& whole) {
  const auto m = mesh({{"i", -1}});
  return vt::distributed::gather(
      in_shards(f, shards)(vt::distributed::part(whole, m, sharded("i"))), m, sharded("i"));
}
Tensor of_threads(int ranks, const Function& f, int shards, const Tensor& whole) {
  Tensor all;
  vt::distributed::simulate(ranks, [&] {
    const Tensor got = of_all(f, shards, whole);
    if (rank() == 0) all = got;
  });
  return all;
}
/// Do as many processes as there are do that? Else threads alone are looked at.
bool fits(int shards) {
  const int n = vt::distributed::size();
  return n > 1 && n <= shards && (n & (n - 1)) == 0;
}
/// What one rank gives, after a check that it is what others give together, bit for bit.
Tensor of_any(const Function& f, int shards, const Tensor& whole) {
  const Tensor one = of_threads(1, f, shards, whole);
  for (int ranks = 2; ranks <= std::min(shards, 8); ranks *= 2)
    expect_close(of_threads(ranks, f, shards, whole), one, exact, "threads");
  if (fits(shards)) expect_close(of_all(f, shards, whole), one, exact, "processes");
  return one;
}

/// Of neighbours, then of what these give.
Tensor tree_sum(const Tensor& parts) {
  std::vector<Tensor> sums;
  for (std::int64_t k = 0; k < parts.dim(0); ++k) sums.push_back(parts[k]);
  while (sums.size() > 1) {
    std::vector<Tensor> next;
    for (std::size_t k = 0; k < sums.size(); k += 2) next.push_back(sums[k] + sums[k + 1]);
    sums = next;
  }
  return sums[0];
}

TEST(Reproducible, SumsAreATreeOfNeighbours) {
  for (const int n : {40, 5000, 100'000})
    for (const vt::DType d : {vt::f32, vt::f64, vt::f16, vt::bf16, vt::c64}) {
      const Tensor x =
          vt_test::random_tensor(vt::f32, {16, n}, -1, 1, static_cast<std::uint64_t>(n)).astype(d);
      const Tensor wide = d == vt::f16 || d == vt::bf16 ? x.astype(vt::f32) : x;
      const Tensor got = of_any([](Tensor v) { return vt::psum(v, "i"); }, 16, x);
      expect_close(got[0], tree_sum(wide)[0].astype(d) * 0.0 + tree_sum(wide).astype(d), exact);
      expect_close(got[15], got[0], exact);
    }
}

// Without it bits depend on the number of processes: the data of these tests can tell.
TEST(Reproducible, WithoutItBitsDiffer) {
  const Tensor x = vt_test::random_tensor(vt::f32, {16, 1000}, -1, 1, 3);
  const auto plain = [&](int ranks) {
    Tensor sum;
    vt::distributed::simulate(ranks, [&] {
      const auto m = mesh({{"i", -1}});
      const auto total = vt::shard_map([](Tensor v) { return vt::psum(vt::sum(v), "i"); },
                                       {.mesh = m, .in_specs = sharded("i")});
      const Tensor got = total(vt::distributed::part(x, m, sharded("i")));
      if (rank() == 0) sum = got;
    });
    return sum.item<float>();
  };
  EXPECT_TRUE(plain(1) != plain(2) || plain(1) != plain(4));
}

TEST(Reproducible, CollectivesAreTheFormulaOnWholeArrays) {
  const int n = vt_test::lanes_of_cases;
  const Tensor xs = vt_test::random_tensor(vt::f64, {n, 4, 2}, 0.2, 1.2, 7);
  constexpr vt_test::Tolerance near{.relative = 1e-12, .absolute = 1e-13};
  for (const vt_test::Collective& c : vt_test::collective_cases) {
    SCOPED_TRACE(c.name);
    const auto f = [&](Tensor x) { return vt::expand_dims(c.lane(x[0]), 0); };
    expect_close(of_any(f, n, xs), c.whole(xs), near);
    expect_close(of_any(vt::jit(f), n, xs), c.whole(xs), near, "compiled inside");
  }
}

TEST(Reproducible, ExchangesOfMoreShardsThanProcesses) {
  constexpr int n = 16;
  const Tensor x = vt_test::random_tensor(vt::f32, {n, n, 3}, -1, 1, 5);
  const auto one = [](auto f) { return [f](Tensor v) { return vt::expand_dims(f(v[0]), 0); }; };
  std::vector<std::pair<std::int64_t, std::int64_t>> shift, scattered;
  for (int k = 0; k < n; ++k) {
    shift.push_back({k, (k + 3) % n});
    if (k % 3 != 0) scattered.push_back({k, (k * 5) % n});
  }
  std::vector<Tensor> wanted(n, x[0] * 0.0F);
  for (const auto& [from, to] : scattered) wanted[static_cast<std::size_t>(to)] = x[from];
  expect_close(of_any(one([&](Tensor v) { return vt::ppermute(v, "i", shift); }), n, x),
               vt::roll(x, 3, 0), exact);
  expect_close(of_any(one([&](Tensor v) { return vt::ppermute(v, "i", scattered); }), n, x),
               vt::stack(wanted), exact);
  expect_close(of_any(one([](Tensor v) { return vt::all_to_all(v, "i", 0, 0); }), n, x),
               vt::moveaxis(x, {0}, {1}), exact);
  expect_close(of_any(one([](Tensor v) { return vt::all_gather(v, "i")[5]; }), n, x),
               vt::broadcast_to(x[5], x.shape()), exact);
  expect_close(of_any(one([](Tensor v) { return v * 0.0F + vt::axis_index("i"); }), n, x),
               vt::broadcast_to(vt::arange(n).reshape({n, 1, 1}), x.shape()).astype(vt::f32),
               exact);
  for (const vt::DType d : vt_test::all_dtypes) {
    const Tensor y = vt_test::random_tensor(d, {n, 3}, 0, 3, 9);
    const auto both = [](Tensor v) { return vt::stack({vt::pmax(v, "i"), vt::pmin(v, "i")}, 1); };
    expect_close(of_any(both, n, y)[0], vt::stack({vt::max(y, 0), vt::min(y, 0)}), exact);
  }
}

TEST(Reproducible, AStepOfTraining) {
  constexpr int n = 32;
  const Tensor w = vt_test::random_tensor(vt::f32, {20, 10}, -1, 1, 1),
               x = vt_test::random_tensor(vt::f32, {4 * n, 20}, -1, 1, 2);
  const auto step = [&](Tensor own) {
    const auto loss = [&](Tensor v) {
      return vt::mean(vt::logsumexp(vt::tanh(vt::matmul(own, v)), 1));
    };
    Tensor v = w;
    for (int k = 0; k < 3; ++k) v = v - 0.1 * vt::pmean(vt::grad(loss)(v), "i");
    return vt::expand_dims(v, 0);
  };
  const Tensor got = of_any(step, n, x);
  const auto whole = [&](Tensor v) {
    return vt::mean(vt::logsumexp(vt::tanh(vt::matmul(x, v)), 1));
  };
  Tensor v = w;
  for (int k = 0; k < 3; ++k) v = v - 0.1 * vt::grad(whole)(v);
  expect_close(got[0], v, {.relative = 1e-5, .absolute = 1e-6});
}

TEST(Reproducible, Loops) {
  constexpr int n = 8;
  const Tensor x = vt_test::random_tensor(vt::f32, {n, 6}, 0.5, 1.5, 4);
  const auto balance = [](Tensor v) {  // until the mean of all is small
    return vt::while_loop(
        [](Tensor u) { return vt::pmean(vt::mean(u), "i") > 0.01F; },
        [](Tensor u) { return u * 0.7F - 0.01F * vt::psum(vt::sum(vt::sin(u)), "i") / 48.0F; }, v);
  };
  of_any(balance, n, x);
  const auto scanned = [](Tensor v) {
    return vt::fori_loop(
        0, 5, [](Tensor, Tensor u) { return u - 0.1F * vt::pmean(vt::cos(u), "i"); }, v);
  };
  const Tensor got = of_any(scanned, n, x);
  Tensor wanted = x;
  for (int k = 0; k < 5; ++k)
    wanted = wanted - 0.1F * vt::broadcast_to(vt::mean(vt::cos(wanted), 0), wanted.shape());
  expect_close(got, wanted, {.relative = 1e-5, .absolute = 1e-6});
}

TEST(Reproducible, DrawsAreThoseOfTheShard) {
  const Tensor x = vt::zeros({8, 3});
  const auto noisy = [](const vt::Generator& g) {
    return [&g](Tensor v) { return v + g.normal(v.shape()) + 2.0 * g.uniform(v.shape()); };
  };
  const auto twice = [&](const vt::Generator& g, const auto& run) {
    const Tensor first = run(noisy(g));
    return vt::stack({first, run(noisy(g))}).eval();
  };
  const Tensor lanes = twice(vt::Generator(5), [&](auto f) { return vt::vmap(f)(x); });
  for (const int ranks : {1, 2, 8})
    vt::distributed::simulate(ranks, [&] {
      const Tensor got = twice(vt::Generator(5), [&](auto f) {
        return of_all([f](Tensor v) { return vt::expand_dims(f(v[0]), 0); }, 8, x);
      });
      expect_close(got, lanes, exact);
    });
}

TEST(Reproducible, RandomPrograms) {
  const auto count = static_cast<int>(vt_test::environment("VT_FUZZ_COUNT", 1000)) / 10;
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1);
  constexpr int n = 4;
  for (int k = 0; k < std::max(1, count); ++k) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(k);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto program = [seed] {
      vt_test::RandomProgram one(seed, 6);
      one.over({"i"});
      return one;
    };
    const Tensor x = vt_test::random_tensor(vt::f64, {n, 3}, -1, 1, seed),
                 w = vt_test::random_tensor(vt::f64, {3}, -1, 1, seed + 1);
    const auto value = [&](Tensor t) { return program()(t, w); };
    const auto slope = [&](Tensor t) {
      return vt::grad([&](Tensor u) { return program().scalar(u, w); })(t);
    };
    for (const Function& f : {Function(value), Function(slope)}) {
      const Tensor got = of_any([&](Tensor t) { return vt::expand_dims(f(t[0]), 0); }, n, x);
      expect_close(got, vt::vmap(f, {.axis_name = "i"})(x), {.relative = 1e-7, .absolute = 1e-8});
    }
  }
}

TEST(Reproducible, VariablesAndResultsThatAllShare) {
  on_ranks(2, [] {
    const vt::Variable sum(vt::tensor(0.0));
    const auto m = mesh({{"i", 2}});
    const auto f = vt::shard_map(
        [&](Tensor v) {
          const Tensor total = vt::psum(vt::sum(v), "i");
          sum.assign_add(vt::sum(v));
          return std::pair{total, v * 2.0};
        },
        {.mesh = m,
         .in_specs = sharded("i"),
         .out_specs = {replicated, sharded("i")},
         .reproducible = 8});
    const Tensor own = vt::arange(8.0).astype(vt::f64) + 8.0 * rank();
    for (int k = 1; k < 3; ++k) {
      const auto [total, twice] = f(own);
      EXPECT_EQ(total.item<double>(), 120.0);
      expect_close(twice, own * 2.0, exact);
      EXPECT_EQ(sum.value().item<double>(), 120.0 * k);
    }
  });
}

TEST(Reproducible, AShardThatThrowsEndsTheCall) {
  on_ranks(1, [] {
    const Function f = [](Tensor v) {
      vt::check(vt::all(v < 5.0), "too large");
      return vt::psum(v, "i");
    };
    const Tensor x = vt::arange(8.0).astype(vt::f64);
    for (int k = 0; k < 2; ++k) {
      expect_error([&] { in_shards(f, 8)(x); }, ErrorKind::check, {"too large"});
      EXPECT_EQ(in_shards(f, 8)(x * 0.5)[0].item<double>(), 14.0);
    }
  });
}

TEST(Reproducible, NaNsAreTraced) {
  on_ranks(1, [] {
    const vt::DebugNans watch;
    const Function f = [](Tensor v) { return vt::psum(vt::sqrt(v - 3.0), "i"); };
    const Tensor got = in_shards(f, 4)(vt::arange(4.0));
    expect_error([&] { static_cast<void>(got[0].item<double>()); }, ErrorKind::value,
                 {"vt::sqrt(-3", "made it"});
  });
}

TEST(Reproducible, WhatItRefuses) {
  const Function sum = [](Tensor v) { return vt::psum(v, "i"); };
  const Tensor x = vt::arange(8.0);
  on_ranks(2, [&] {
    expect_error([&] { in_shards(sum, 6)(x); }, ErrorKind::value,
                 {"reproducible is 6, and must be a power of two up to 1024"});
    expect_error([&] { in_shards(sum, 1)(x); }, ErrorKind::value,
                 {"reproducible is 1, and there are 2 processes"});
    expect_error(
        [&] { in_shards(sum, 32)(x); }, ErrorKind::shape,
        {"reproducible is 32, so that each process cuts its part in 16 along axis 0", "f32[8]"});
    expect_error([&] { vt::jit(in_shards(sum, 8))(x); }, ErrorKind::transform,
                 {"with reproducible it runs at the call", "vt::shard_map(vt::jit(f), …)"});
    expect_error([&] { vt::vmap(in_shards(sum, 8))(vt::stack({x, x})); }, ErrorKind::transform,
                 {"with reproducible it runs at the call"});
    const auto two_axes = vt::shard_map(
        sum, {.mesh = mesh({{"i", 2}, {"j", 1}}), .in_specs = replicated, .reproducible = 4});
    expect_error([&] { two_axes(x); }, ErrorKind::value,
                 {"reproducible is 4", "the mesh is {i: 2, j: 1}: it must have one axis"});
  });
  vt::distributed::simulate(3, [&] {
    expect_error([&] { in_shards(sum, 4)(x); }, ErrorKind::value,
                 {"there are 3 processes: they must be a power of two"});
  });
}

}  // namespace
