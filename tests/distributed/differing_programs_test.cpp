// Programs around shard_map that are not the same on all ranks: what one alone uses, prints or
// checks is right everywhere; what would mix up collectives is an error.
#include <cmath>

#include "distributed/ranks.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::on_ranks;

constexpr vt_test::Tolerance close{.relative = 1e-12};

/// psum of x, and of its square, over `ranks` ranks of which number r has r + 1.
auto sums(int ranks) {
  const auto m = mesh({{"d", ranks}});
  return std::pair(vt::shard_map([](Tensor x) { return vt::psum(vt::sum(x), "d"); },
                                 {.mesh = m, .in_specs = sharded("d")}),
                   vt::shard_map([](Tensor x) { return vt::psum(vt::sum(x * x), "d"); },
                                 {.mesh = m, .in_specs = sharded("d")}));
}

TEST(DifferingPrograms, OneRankUsesWhatOthersDoNot) {
  for (const int ranks : {2, 3})
    on_ranks(ranks, [&] {
      const auto both = sums(ranks);
      const auto sum = both.first;
      const auto squares = both.second;
      const auto f = [&](Tensor x) {
        const Tensor a = sum(x), b = squares(x);
        return rank() == 0 ? a : b;
      };
      const double first = ranks * (ranks + 1) / 2, second = first * (2 * ranks + 1) / 3;
      const Tensor own = vt::tensor({1.0 + rank()}), wanted = vt::tensor(rank() ? second : first);
      expect_close(f(own), wanted, close);
      expect_close(vt::jit(f)(own), wanted, close);
      expect_close(vt::vmap(f)(vt::expand_dims(own, 0))[0], wanted, close);
      expect_close(vt::jit(vt::vmap(f))(vt::expand_dims(own, 0))[0], wanted, close);
      const auto in_loop = [&](Tensor x) {
        return vt::fori_loop(
            0, 2, [&](Tensor, Tensor c) { return f(x) + 0.0 * c; }, vt::tensor(0.0));
      };
      expect_close(in_loop(own), wanted, close);
      expect_close(vt::jit(in_loop)(own), wanted, close);
      const auto in_branch = [&](Tensor x) {
        return vt::cond(vt::tensor(true), [&] { return f(x); }, [&] { return vt::tensor(0.0); });
      };
      expect_close(in_branch(own), wanted, close);
      expect_close(vt::jit(in_branch)(own), wanted, close);
      expect_close(vt::checkpoint(f)(own), wanted, close);
      expect_close(vt::jit(vt::grad(f))(own), rank() == 0 ? vt::tensor({1.0}) : 2.0 * own, close);
    });
}

// A step of training in which one rank checks, or shows, the loss.
TEST(DifferingPrograms, OneRankHasEffects) {
  for (const int ranks : {2, 3})
    on_ranks(ranks, [&] {
      const auto loss = vt::shard_map(
          [](Tensor w, Tensor b, Tensor x) { return vt::psum(vt::sum(vt::sin(w * x) + b), "d"); },
          {.mesh = mesh({{"d", ranks}}), .in_specs = {replicated, replicated, sharded("d")}});
      double slope = 0;
      for (int k = 1; k <= ranks; ++k) slope += 3 * k * std::cos(0.5 * k);
      const Tensor own = vt::tensor({1.0 + rank()}), w = vt::tensor(0.5), b = vt::ones({3});
      for (const bool shows : {false, true}) {
        const auto step = [&](Tensor v, Tensor c, Tensor x) {
          auto [value, slopes] = vt::value_and_grad<0, 1>(loss)(v, c, x);
          if (rank() == 0 && shows) vt::check(value > -100.0, "the loss");
          const auto& [of_v, of_c] = slopes;
          if (rank() == ranks - 1) vt::check(vt::all(of_c > -100.0), "the slope");
          return std::pair(v - of_v, c - of_c);
        };
        for (int k = 0; k < 2; ++k) {
          const auto [v, c] = k == 0 ? vt::jit(step)(w, b, own) : step(w, b, own);
          expect_close(v, vt::tensor(0.5 - slope), close);
          expect_close(c, vt::ones({3}) * (1.0 - ranks), close);
        }
      }
    });
}

// Which of two lines that do the same is run depends on the rank.
TEST(DifferingPrograms, OneFunctionAtSeveralLines) {
  on_ranks(2, [] {
    const auto m = mesh({{"d", 2}});
    const Tensor own = vt::tensor({1.0 + rank()}), all = vt::tensor({1.0, 2.0});
    const auto f = [&](Tensor x) {
      if (rank() == 0) return vt::distributed::gather(x, m, sharded("d"));
      const Tensor whole = vt::distributed::gather(x, m, sharded("d"));
      return whole;
    };
    expect_close(f(own), all, close);
    expect_close(vt::jit(f)(own), all, close);
    // The first one comes before the others.
    if (rank() != 0) vt::distributed::barrier();
    Tensor first;
    if (rank() == 0) {
      vt::distributed::barrier();
      first = vt::distributed::broadcast(own);
    } else {
      first = vt::distributed::broadcast(own);
    }
    expect_close(first, vt::tensor({1.0}), close);
  });
}

// Sums go in one message by what waits for what; here that is not the same on all ranks.
TEST(DifferingPrograms, OtherValuesInOneMessageAreErrors) {
  vt::distributed::simulate(2, [] {  // its world ends
    const auto sum = sums(2).first;
    const auto f = [&](Tensor x) {
      const Tensor a = sum(x);
      const Tensor b = sum(rank() == 0 ? x * a : x);
      return vt::stack({a, b, sum(rank() == 0 ? x : x * a)});
    };
    const Tensor own = vt::tensor({1.0 + rank()});
    expect_close(f(own), vt::tensor({3.0, 5.0, 7.0}), close);
    expect_error([&] { vt::jit(f)(own).eval(); }, ErrorKind::backend,
                 {"ranks differ: rank 0 is at vt::psum over \"d\" of f64[2]",
                  "; these take other values: what is computed outside of vt::shard_map between "
                  "collectives must not differ; at differing_programs_test.cpp:"});
  });
}

// Of two functions that all ranks know, each calls another one first.
TEST(DifferingPrograms, KnownFunctionsInAnotherOrderAreErrors) {
  vt::distributed::simulate(2, [] {  // its world ends
    const auto one = vt::jit(sums(2).first);
    const auto other = vt::jit(sums(2).second);
    const Tensor own = vt::tensor({1.0 + rank()});
    EXPECT_EQ(one(own).item<double>(), 3.0);
    EXPECT_EQ(other(own).item<double>(), 5.0);
    expect_error([&] { (rank() == 0 ? one(own) : other(own)).eval(); }, ErrorKind::backend,
                 {"ranks differ: rank 0 is at vt::psum over \"d\" of f64[] "});
  });
}

}  // namespace
