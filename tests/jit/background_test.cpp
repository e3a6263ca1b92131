// The background thread: signals do not run on it, and what forks or ends waits for no more than
// the part of a job that it is in.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <vt/vt.hpp>

#include "src/jit/services/background.hpp"
#include "src/jit/services/threads.hpp"

namespace {

using namespace vt::detail;
using namespace std::chrono_literals;
using vt::Tensor;

// Read once: what other tests keep on disk is optimised already.
const bool fresh = [] {
  ::setenv("VT_CACHE_DIR", "", 1);
  ::unsetenv("VT_CPU_LEVEL");
  ::unsetenv("VT_TIERS");
  return true;
}();

std::atomic<bool> begun{false}, release{false};
std::atomic<int> iterations{0};

// A job that goes on until it is released, in many parts.
void long_job() {
  begun = true;
  while (!release) {
    background_rest();
    std::this_thread::sleep_for(1ms);
  }
  ++iterations;
}
void start_long_job() {
  begun = release = false;
  iterations = 0;
  {
    const BackgroundPause first_thread_comes_by;
  }
  in_background(long_job);
  while (!begun) std::this_thread::sleep_for(1ms);
}
void finish_long_job() {
  release = true;
  vt::wait_compiled();
}

/// The exit status, or −1 if the process does not end within ten seconds.
int status_of(pid_t child) {
  for (int i = 0; i < 1000; ++i) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

std::atomic<int> handled{0};
std::atomic<pid_t> handled_by{0};
void handler(int) {
  ++handled;
  handled_by = ::gettid();
}

TEST(Background, SignalsReachTheProgramsOwnThreads) {
  vt::set_num_threads(3);
  // the pool's threads are there
  parallel_ranges(64, 1, [](std::int64_t, std::int64_t) { std::this_thread::sleep_for(100us); });
  start_long_job();
  struct sigaction mine = {}, before = {};
  mine.sa_handler = handler;
  ::sigaction(SIGUSR1, &mine, &before);
  sigset_t only, old;
  sigemptyset(&only);
  sigaddset(&only, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &only, &old);
  ::kill(::getpid(), SIGUSR1);  // to whichever thread takes it
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(handled, 0);  // pending
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::this_thread::sleep_for(1ms);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(handled_by, ::gettid());
  ::raise(SIGUSR1);
  EXPECT_EQ(handled, 2);
  ::sigaction(SIGUSR1, &before, nullptr);
  finish_long_job();
}

TEST(Background, AForkWaitsUntilTheJobRestsAndTheChildBeginsItAnew) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  start_long_job();
  const pid_t child = ::fork();
  if (child == 0) {
    release = true;
    vt::wait_compiled();
    ::_exit(iterations == 1 ? 7 : 8);
  }
  EXPECT_EQ(status_of(child), 7);
  EXPECT_EQ(iterations, 0);  // here it still goes on
  finish_long_job();
  EXPECT_EQ(iterations, 1);
}

TEST(Background, AChildCompilesAndEnds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  start_long_job();
  const pid_t child = ::fork();
  if (child == 0) {
    release = true;
    const float x =
        vt::jit([](Tensor t) { return vt::tanh(t) + 1.0; })(vt::zeros({5}))[3].item<float>();
    vt::wait_compiled();
    ::_exit(x == 1.0f ? 7 : 8);
  }
  EXPECT_EQ(status_of(child), 7);
  finish_long_job();
}

// The background thread gives way to all others: on a machine that is busy, who waits would wait
// for ever.
TEST(Background, WhoWaitsTakesJobs) {
  start_long_job();
  std::atomic<pid_t> ran_by{0};
  in_background([&] { ran_by = ::gettid(); });
  std::thread releases([&] {
    while (ran_by == 0) std::this_thread::sleep_for(1ms);
    release = true;
  });
  vt::wait_compiled();
  releases.join();
  EXPECT_EQ(ran_by, ::gettid());
  EXPECT_EQ(iterations, 1);
}

TEST(Background, AForkWaitsForWhoWaitsAndTheChildBeginsBothAnew) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  start_long_job();
  std::atomic<bool> second_begun{false};
  in_background([&] {
    second_begun = true;
    long_job();
  });
  std::thread waits([] { vt::wait_compiled(); });
  while (!second_begun) std::this_thread::sleep_for(1ms);
  const pid_t child = ::fork();
  if (child == 0) {
    release = true;
    vt::wait_compiled();
    ::_exit(iterations == 2 ? 7 : 8);
  }
  EXPECT_EQ(status_of(child), 7);
  EXPECT_EQ(iterations, 0);  // here both go on
  release = true;
  waits.join();
  EXPECT_EQ(iterations, 2);
}

TEST(Background, LongOptimisingIsTold) {
  const auto told = [] {
    return vt::warnings().find("kept a processor busy") != std::string::npos;
  };
  EXPECT_FALSE(told());
  in_background([] {
    timespec t = {};
    while (t.tv_sec < 4) ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  });
  std::this_thread::sleep_for(20ms);  // it has begun on its own thread
  vt::wait_compiled();
  EXPECT_TRUE(told()) << vt::warnings();
}

TEST(BackgroundDeathTest, TheEndWaitsForTheRestOnly) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        start_long_job();
        std::exit(0);  // the job would go on for ever
      },
      ::testing::ExitedWithCode(0), "");
}

// In a process of its own, whose first thread only starts others and ends while kernels are being
// optimised.
TEST(BackgroundDeathTest, TheFirstThreadNeedNotCompile) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (int programs : {1, 2, 5})
    EXPECT_EXIT(
        {
          std::thread([programs] {
            for (int k = 0; k < programs; ++k)
              vt::jit([k](Tensor x) {
                Tensor y = x;
                for (int i = 0; i <= k; ++i) y = vt::sin(y) * x + vt::exp(-y * (1.0 + i));
                return vt::softmax(y);
              })(vt::ones({7, 13}))
                  .eval();
          }).join();
          std::exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
