// Collectives between threads: every dtype, group and size against a plain loop. The same cases
// run between processes in mpi_cases.cpp.
#include <gtest/gtest.h>

#include <thread>

#include "processes/collective_cases.hpp"

namespace {

class ExchangesOfThreads : public ::testing::TestWithParam<int> {};

TEST_P(ExchangesOfThreads, AreThoseOfAPlainLoop) {
  for (const collective_cases::Case& c : collective_cases::all) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(vt::detail::run_ranks(GetParam(), c.run, 60, vt::CallSite::here()));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangesOfThreads, ::testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
