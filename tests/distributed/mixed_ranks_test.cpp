// Ranks that may round differently: where they would take two ways at a predicate, and meet in a
// collective behind it, that of the first one counts.
#include "distributed/ranks.hpp"
#include "src/trace/processes/world.hpp"
#include "support/property.hpp"

namespace {

using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::expect_close;
using vt_test::on_ranks;

/// Runs it on so many ranks of a world that counts as mixed, or does not.
void on_mixed(int ranks, const std::function<void()>& program, bool mixed = true) {
  on_ranks(ranks, [&] {
    if (mixed) vt::detail::World::current().count_as_mixed();
    program();
  });
}

/// f of numbers that are the same on all ranks up to rounding.
template <class F>
auto of_numbers(F f) {
  return vt::shard_map(f, {.mesh = mesh({{"i", vt::distributed::size()}}), .in_specs = replicated});
}
/// `first` on rank 0; on the others less, or more, by rounding.
Tensor rounded(double first, double sign) {
  return vt::tensor(rank() == 0 ? first : first + 1e-9 * sign);
}

TEST(MixedRanks, ALoopTakesTheFirstOnesWay) {
  on_mixed(3, [] {
    const auto f = [](Tensor most, Tensor x) {
      return vt::while_loop(
                 [=](Tensor n, Tensor) { return n < most; },
                 [](Tensor n, Tensor v) { return std::pair(n + 1, vt::psum(v, "i") / 3.0 + 1.0); },
                 std::pair(vt::tensor(0), x))
          .second;
    };
    const Tensor most = rounded(4, 1), x = vt::tensor(1.0);
    for (int k = 0; k < 2; ++k) {
      expect_close(of_numbers(f)(most, x), vt::tensor(5.0), {.relative = 1e-6});
      expect_close(vt::jit(of_numbers(f))(most, x), vt::tensor(5.0), {.relative = 1e-6});
    }
    // Its derivative, and lanes around it and in it.
    const auto slope = vt::grad<1>(of_numbers(f));
    expect_close(slope(most, x), vt::tensor(1.0), {.relative = 1e-6});
    expect_close(vt::jit(slope)(most, x), vt::tensor(1.0), {.relative = 1e-6});
    const Tensor xs = vt::tensor({1.0, 2.0}), each = vt::stack({rounded(4, 1), rounded(1, 1)});
    expect_close(vt::vmap(of_numbers(f))(each, xs), vt::tensor({5.0, 3.0}), {.relative = 1e-6});
    expect_close(of_numbers(vt::vmap(f))(each, xs), vt::tensor({5.0, 3.0}), {.relative = 1e-6});
  });
}

TEST(MixedRanks, ABranchTakesTheFirstOnesWay) {
  on_mixed(2, [] {
    const auto f = [](Tensor which, Tensor x) {
      return vt::cond(
          which >= 1.0, [](Tensor v) { return vt::psum(v * v, "i"); },
          [](Tensor v) { return vt::psum(vt::psum(v, "i"), "i"); }, x);
    };
    const auto g = [](Tensor which, Tensor x) {
      return vt::switch_(
          which.astype(vt::DType::i32),
          std::tuple([](Tensor v) { return vt::psum(v, "i"); }, [](Tensor v) { return v; },
                     [](Tensor v) { return vt::pmax(vt::psum(v, "i"), "i"); }),
          x);
    };
    const Tensor x = vt::tensor({3.0, 4.0});
    for (const int first : {0, 1}) {
      const Tensor which = first ? rounded(1, -1) : rounded(1 - 1e-9, 1);
      const Tensor wanted = first ? 2.0 * x * x : 4.0 * x, slope = first ? 4.0 * x : x * 0.0 + 4.0;
      expect_close(of_numbers(f)(which, x), wanted);
      expect_close(vt::jit(of_numbers(f))(which, x), wanted);
      const auto total = [&](Tensor v) { return vt::sum(of_numbers(f)(which, v)); };
      expect_close(vt::grad(total)(x), slope);
      expect_close(vt::jit(vt::grad(total))(x), slope);
    }
    for (const int first : {0, 2}) {
      const Tensor which = first ? rounded(2, -1) : rounded(1 - 1e-9, 1);
      expect_close(of_numbers(g)(which, x), 2.0 * x);
    }
  });
}

// Those that meet take the same way: along one axis of two, the first one of each row.
TEST(MixedRanks, ThoseThatMeet) {
  on_mixed(4, [] {
    const auto m = mesh({{"i", 2}, {"j", 2}});
    const auto f = [](Tensor most, Tensor x) {
      const auto sum_of = [](Tensor v) { return vt::psum(v, "j"); };
      return vt::expand_dims(
          vt::while_loop([&](Tensor n, Tensor) { return n < most[0]; },
                         [&](Tensor n, Tensor v) { return std::pair(n + 1, sum_of(v)); },
                         std::pair(vt::tensor(0), x))
              .second,
          0);
    };
    const auto g = vt::shard_map(
        f, {.mesh = m, .in_specs = {sharded("i"), replicated}, .out_specs = sharded("i")});
    const auto i = static_cast<double>(m.index("i")), j = static_cast<double>(m.index("j"));
    const Tensor most = vt::tensor({2 + 2 * i + 1e-9 * j});
    expect_close(g(most, vt::tensor(1.0)), vt::tensor({m.index("i") == 0 ? 4.0 : 16.0}));
  });
}

TEST(MixedRanks, NothingIsSentWhereAllRoundAlike) {
  for (const bool mixed : {false, true}) {
    if (vt_test::is_process() && !mixed) continue;  // it stays as the tests before have made it
    on_mixed(
        2,
        [&] {
          const auto f = [](Tensor most, Tensor x) {
            return vt::while_loop(
                       [=](Tensor n, Tensor) { return n < most; },
                       [](Tensor n, Tensor v) { return std::pair(n + 1, vt::psum(v, "i")); },
                       std::pair(vt::tensor(0), x))
                .second;
          };
          const std::string text =
              vt::make_graph(of_numbers(f))(vt::tensor(3), vt::tensor(1.0)).str();
          EXPECT_EQ(text.find("axis_index") != std::string::npos, mixed) << text;
        },
        mixed);
  }
}

TEST(MixedRanks, RanksCompareWhatTheirCodeIsMadeFor) {
  on_ranks(3, [] {
    vt::detail::World& world = vt::detail::World::current();
    const auto name = [] { return std::string("here"); };
    int asked = 0;
    const auto code = [&] {
      ++asked;
      return std::string(rank() == 2 ? "avx512" : "avx2");
    };
    if (vt_test::is_process()) return;  // of the process's world it is known from then on
    EXPECT_TRUE(world.is_mixed(code, {name, {}}));
    EXPECT_TRUE(world.is_mixed(code, {name, {}}));
    EXPECT_EQ(asked, 1);
  });
  on_ranks(2, [] {
    if (vt_test::is_process()) return;
    const auto name = [] { return std::string("here"); };
    const auto code = [] { return std::string("avx2"); };
    EXPECT_FALSE(vt::detail::World::current().is_mixed(code, {name, {}}));
  });
}

}  // namespace
