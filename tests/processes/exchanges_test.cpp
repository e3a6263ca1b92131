// Collectives between threads: every dtype, group and size against a plain loop. The same cases
// run between processes in mpi_cases.cpp.
#include <gtest/gtest.h>

#include <sched.h>

#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "processes/exchange_cases.hpp"
#include "src/trace/processes/exchanges.hpp"
#include "src/trace/processes/loopback.hpp"

namespace {

class ExchangesOfThreads : public ::testing::TestWithParam<int> {};

TEST_P(ExchangesOfThreads, AreThoseOfAPlainLoop) {
  for (const collective_cases::Case& c : collective_cases::all) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(vt::detail::run_ranks(GetParam(), c.run, 60, vt::CallSite::here()));
  }
}

struct Yields final : vt::detail::Patience {
  void look(std::span<vt::detail::Transfer>) override { ::sched_yield(); }
};

// Arrays beyond the longest message, and many pieces in each block.
TEST(ThreadExchanges, GoInPieces) {
  using namespace vt::detail;
  constexpr int ranks = 3;
  constexpr std::size_t n = 100'003;  // beyond what goes as a whole
  const auto transports = loopback_transports(ranks);
  const auto run = [&](int rank) {
    Yields yields;
    yields.polls_between = 0;
    ScratchMemory scratch;
    Channel channel{*transports[static_cast<std::size_t>(rank)], yields, scratch, 7, 1'000, 4'099};
    const RankGroup group = {0, 1, ranks, rank};
    std::vector<std::int32_t> x(n), got(n), all(ranks * n);
    const auto expect = [&](const std::vector<std::int32_t>& values, const char* what, auto&& is) {
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        wrong += values[i] != is(static_cast<int>(i % n), static_cast<int>(i / n));
      EXPECT_EQ(wrong, 0u) << what << " at rank " << rank;
    };
    std::iota(x.begin(), x.end(), rank);
    exchanges::all_reduce(channel, group, RankReduction::sum, vt::i32, x.data(), got.data(), n);
    expect(got, "a sum", [](int i, int) { return 3 * i + 3; });
    exchanges::all_gather(channel, group, x.data(), all.data(), 4 * n);
    expect(all, "what is gathered", [](int i, int part) { return i + part; });
    exchanges::all_to_all(channel, group, all.data(), all.data(), 4 * n);
    expect(all, "what is transposed", [&](int i, int) { return i + rank; });
    const std::int64_t sources[] = {2, 0, -1};
    exchanges::permute(channel, group, sources, x.data(), got.data(), 4 * n);
    expect(got, "what is permuted",
           [&](int i, int) { return rank == 2 ? 0 : i + (rank == 0 ? 2 : 0); });
    // Ranks 1 and 2 wait for each other, and rank 1 sends to rank 0 first.
    const std::int64_t pair_and_one[] = {1, 2, 1};
    exchanges::permute(channel, group, pair_and_one, x.data(), got.data(), 4 * n);
    expect(got, "what one sends to two", [&](int i, int) { return i + (rank == 1 ? 2 : 1); });
    exchanges::broadcast(channel, group, 1, x.data(), 4 * n);
    expect(x, "what is sent to all", [](int i, int) { return i + 1; });
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
}

// Where empty arrays lie may differ between ranks: no message depends on it.
TEST(ThreadExchanges, OfNothingInPlaceOnOneRank) {
  using namespace vt::detail;
  run_ranks(
      2,
      [] {
        World& world = World::current();
        const RankGroup both = {0, 1, 2, world.rank()};
        const std::int64_t sources[] = {1, 0};
        const char given = 0, other = 0;
        const void* const got = world.rank() == 0 ? &given : &other;
        const auto text = [] { return std::string("nothing"); };
        const CollectiveSite site{text, vt::CallSite::here()};
        world.begin_permute(both, sources, &given, const_cast<void*>(got), 0, site);
        world.finish(got, site);
      },
      10, vt::CallSite::here());
}

// So many that what each combines of a large array is short: no rings.
TEST(ThreadExchanges, OfManyRanks) {
  using namespace vt::detail;
  constexpr std::int64_t n = 20'001;  // 80 kB, and 40 kB of 16-bit floats, which are summed as f32
  for (const int ranks : {20, 32}) {
    ASSERT_TRUE(exchanges::is_short_part(4 * n, ranks));
    run_ranks(
        ranks,
        [&] {
          World& world = World::current();
          const RankGroup all = {0, 1, ranks, world.rank()};
          const auto text = [] { return std::string("many ranks"); };
          const CollectiveSite site{text, vt::CallSite::here()};
          std::vector<std::int32_t> x(n), got(n), gathered(static_cast<std::size_t>(ranks) * 1000);
          std::iota(x.begin(), x.end(), world.rank());
          const auto sum_of_ranks = ranks * (ranks - 1) / 2;
          world.all_reduce(all, RankReduction::sum, vt::i32, x.data(), got.data(), n, site);
          for (int i = 0; i < n; ++i)
            ASSERT_EQ(got[static_cast<std::size_t>(i)], ranks * i + sum_of_ranks);
          std::vector<std::uint16_t> halves(n, 0x3c00), sums(n);  // ones
          world.all_reduce(all, RankReduction::sum, vt::f16, halves.data(), sums.data(), n, site);
          for (const std::uint16_t h : sums) ASSERT_EQ(h, ranks == 20 ? 0x4d00 : 0x5000);
          world.all_gather(all, x.data(), gathered.data(), 4000, site);
          for (int i = 0; i < ranks * 1000; ++i)
            ASSERT_EQ(gathered[static_cast<std::size_t>(i)], i / 1000 + i % 1000);
        },
        60, vt::CallSite::here());
  }
}

// While receives look for theirs, messages come: none may get what an earlier one waits for. They
// look as long as there is any message, as that of the third rank here.
TEST(ThreadExchanges, MessagesOfOneSenderComeInOrder) {
  using namespace vt::detail;
  constexpr int rounds = 5'000, together = 4;
  const auto transports = loopback_transports(3);
  int other = 3, got = 0;
  Transfer last, last_received;
  transports[2]->begin_send(1, 9, &other, sizeof other, last);
  const auto wait = [](Transport& own, std::span<Transfer> all) {
    for (Transfer& t : all)
      for (int polls = 1; !own.is_done(t); ++polls)
        if (polls % 256 == 0) ::sched_yield();
  };
  std::thread sender([&] {
    for (int round = 0; round < rounds; ++round) {
      Transfer all[together];
      int values[together];
      for (int k = 0; k < together; ++k) {
        values[k] = round * together + k;
        transports[0]->begin_send(1, 5, &values[k], sizeof values[k], all[k]);
      }
      wait(*transports[0], all);
    }
  });
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    Transfer all[together];
    int values[together] = {};
    for (int k = 0; k < together; ++k)
      transports[1]->begin_receive(0, 5, &values[k], sizeof values[k], all[k]);
    wait(*transports[1], all);
    for (int k = 0; k < together; ++k) wrong += values[k] != round * together + k;
  }
  sender.join();
  EXPECT_EQ(wrong, 0);
  transports[1]->begin_receive(2, 9, &got, sizeof got, last_received);
  EXPECT_TRUE(transports[1]->is_done(last_received) && transports[2]->is_done(last));
  EXPECT_EQ(got, other);
}

#ifdef __SANITIZE_THREAD__  // twenty times as long
INSTANTIATE_TEST_SUITE_P(Ranks, ExchangesOfThreads, ::testing::Values(2, 3));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, ExchangesOfThreads, ::testing::Values(1, 2, 3, 4, 5, 8));
#endif

}  // namespace
