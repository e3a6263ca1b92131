// Failures of ranks that are threads: what the others are told. The same cases run between
// processes in mpi_cases.cpp.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "processes/failure_cases.hpp"
#include "src/trace/processes/shards.hpp"

namespace {

using vt::detail::World;

class FailuresOfThreads : public ::testing::TestWithParam<failure_cases::Case> {};

TEST_P(FailuresOfThreads, AreErrorsThatNameThem) {
  for (const int ranks : {2, 5}) {
    SCOPED_TRACE(ranks);
    std::string first;
    const double begin = failure_cases::now();
    try {
      vt::detail::run_ranks(ranks, GetParam().run, 10, vt::CallSite::here());
    } catch (const std::exception& e) {
      first = e.what();
    }
    EXPECT_LT(failure_cases::now() - begin, 8);
    const bool throws = std::string(GetParam().name).find("throws") != std::string::npos;
    EXPECT_EQ(first, throws ? "boom" : "");
    for (const std::string& line : failure_cases::wrong().lines) ADD_FAILURE() << line;
    failure_cases::wrong().lines.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailuresOfThreads, ::testing::ValuesIn(failure_cases::all),
                         [](const auto& c) { return std::string(c.param.name); });

// A rank may have other threads: one of them fails while another is at a collective.
TEST(RunThreads, FailFromAnyThread) {
  const auto run = [] {
    World& world = World::current();
    if (failure_cases::is_last()) return failure_cases::sleep(1);
    const bool fails = world.rank() == 0;
    std::thread other([&world, fails] {
      failure_cases::sleep(0.2);
      if (fails) world.fail_all("boom");
    });
    const std::string message =
        fails ? "vt: this rank failed before: boom"
              : failure_cases::psum_text + ": rank 0 failed: boom" + failure_cases::place;
    failure_cases::expect_failure(message, failure_cases::forever);
    other.join();
  };
  vt::detail::run_ranks(3, run, 10, vt::CallSite::here());
  for (const std::string& line : failure_cases::wrong().lines) ADD_FAILURE() << line;
  failure_cases::wrong().lines.clear();
}

// Of two shards one comes to a collective, and the other one ends, before it or behind it.
TEST(RunShards, ThatPartEndTheCall) {
  using namespace vt::detail;
  for (const int first : {0, 1}) {
    std::string message;
    try {
      run_shards(
          World::current(), 2,
          [&](int shard) {
            if (shard != first) failure_cases::sleep(0.2);
            if (shard == 0) return;
            const auto text = [] { return std::string("a sum"); };
            double x = 1;
            Shard::current()->all_reduce({0, 1, 2, shard}, RankReduction::sum, vt::f64, &x, &x, 1,
                                         {text, vt::CallSite::here()});
          },
          vt::CallSite::here());
    } catch (const std::exception& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "vt::shard_map: shards of one process came to different collectives");
  }
}

TEST(RunThreads, ThrowWhatCameFirst) {
  const auto run = [](int ranks, const vt::detail::Function<void()>& f) {
    try {
      vt::detail::run_ranks(ranks, f, 10, {"model.cpp", 3});
      return std::string();
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(run(0, [] {}), "vt: 0 ranks: there must be one at least; at model.cpp:3");
  EXPECT_EQ(run(3, [] {}), "");
  EXPECT_EQ(run(3, [] { failure_cases::psum(); }), "");
  // a rank that ends too early makes the others throw
  EXPECT_EQ(run(2,
                [] {
                  if (!failure_cases::is_last()) failure_cases::psum();
                }),
            "vt::psum over \"data\" of f64[3]: rank 1 has ended; at model.cpp:12");
  // this thread is no rank any more
  EXPECT_EQ(vt::detail::World::current().size(), 1);
}

}  // namespace
