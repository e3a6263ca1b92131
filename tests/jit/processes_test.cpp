// The end of a process, and fork, while other threads run and compile.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/services/disk_cache.hpp"
#include "src/trace/base/locks.hpp"

extern char** environ;

namespace {

using namespace std::chrono_literals;
using vt::Tensor;

/// 1, by kernels of its own for each k; `lanes` are a loop that is compiled when it first runs.
double one(int k, bool jit, double n) {
  const auto f = [k](Tensor x) {
    Tensor y = x;
    for (int i = 0; i <= k % 7; ++i)
      y = vt::sin(y) * (x + static_cast<double>(k % 5)) + vt::tanh(-y * (1.0 + i + k));
    return vt::sum(vt::softmax(y));
  };
  const Tensor x = vt::arange(n + k) / 1e5;
  return jit ? vt::jit(f)(x).item<double>() : f(x).item<double>();
}
double lanes(int k, bool jit) {
  const auto f = vt::vmap([k](Tensor x) {
    return vt::while_loop([](Tensor c) { return c < 100.0; },
                          [k](Tensor c) { return c * (2.0 + k); }, x);
  });
  const Tensor x = vt::arange(200.0 + k) + 1.0;
  return jit ? vt::jit([&](Tensor t) { return vt::sum(f(t)); })(x).item<double>()
             : vt::sum(f(x)).item<double>();
}
bool all_is_right(int first, int count, bool jit) {
  bool right = true;
  for (int k = first; k < first + count; ++k) {
    const double value = one(k, jit, 2000 + 50000 * (k % 2));
    right = right && value > 1 - 1e-4 && value < 1 + 1e-4 && lanes(k, jit) >= 200 * 100;
  }
  return right;
}

// ---- a process of its own -----------------------------------------------------------------------

/// What it is to do, from its environment: the kind of its end, eager or jit, milliseconds.
struct Task {
  std::string kind;
  bool jit = false;
  int delay = 0;
};
Task task() {
  const char* const text = std::getenv("VT_TEST_PROCESS");
  if (!text) return {};
  const std::string all = text;
  const auto space = all.find(' '), next = all.find(' ', space + 1);
  return {all.substr(0, space), all.substr(space + 1, next - space - 1) == "jit",
          std::stoi(all.substr(next + 1))};
}

// Made before vt is first used, so it goes after all that vt and LLVM have made.
struct UsesVtAtTheEnd {
  ~UsesVtAtTheEnd() {
    const Task t = task();
    if (t.kind != "static") return;
    if (!all_is_right(50, 3, t.jit)) ::_exit(3);
    if (t.delay % 2 && !all_is_right(1, 1, t.jit)) ::_exit(4);  // what is compiled runs
    std::istringstream told(vt::warnings());
    for (std::string line; std::getline(told, line);)
      if (line.find(" equations took ") == std::string::npos) {  // on a busy machine
        std::fprintf(stderr, "%s\n", line.c_str());
        ::_exit(5);
      }
  }
} uses_vt_at_the_end;

[[noreturn]] void compile_for_ever(bool jit) {
  for (int k = 0;; ++k)
    if (!all_is_right(k % 1000, 1, jit)) ::_exit(6);
}
void exit_after(int delay) {
  std::this_thread::sleep_for(std::chrono::milliseconds(delay));
  std::exit(0);
}

TEST(Processes, DISABLED_InAProcessOfItsOwn) {
  const Task t = task();
  if (t.kind == "static") {
    if (t.delay % 2) all_is_right(1, 1, t.jit);
    return;
  }
  if (t.kind != "unused") all_is_right(0, 1, t.jit);
  if (t.kind == "first" || t.kind == "unused") {
    std::thread(compile_for_ever, t.jit).detach();
    exit_after(t.delay);
  } else if (t.kind == "other") {
    std::thread(compile_for_ever, t.jit).detach();
    std::thread(exit_after, t.delay).detach();
    compile_for_ever(t.jit);
  } else if (t.kind == "goes_on") {
    std::thread([jit = t.jit] {
      std::this_thread::sleep_for(20ms);
      const auto before = vt::stats().kernels_compiled;
      if (!all_is_right(100, 2, jit)) ::_exit(7);
      if (vt::stats().kernels_compiled == before) ::_exit(8);
      std::exit(0);
    }).detach();
    ::pthread_exit(nullptr);
  }
}

/// The exit status; −1: it did not end within half a minute.
int status_of(pid_t child) {
  for (const auto until = std::chrono::steady_clock::now() + 30s;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(2ms)) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

int status_of_process(const std::string& what, const char* backend) {
  std::vector<std::string> settings{"VT_TEST_PROCESS=" + what, "VT_CACHE_DIR="};
  // Threads that are at work when a process ends free nothing.
  const char* const options = std::getenv("ASAN_OPTIONS");
  settings.push_back(std::string("ASAN_OPTIONS=") + (options ? options : "") + ":detect_leaks=0");
  if (backend) settings.push_back(std::string("VT_BACKEND=") + backend);
  std::vector<char*> environment;
  for (std::string& s : settings) environment.push_back(s.data());
  for (char** e = environ; *e; ++e)
    if (!std::string_view(*e).starts_with("VT_BACKEND=") &&
        !std::string_view(*e).starts_with("ASAN_OPTIONS="))
      environment.push_back(*e);
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe", only = "--gtest_filter=Processes.DISABLED_InAProcess*",
              too = "--gtest_also_run_disabled_tests", brief = "--gtest_brief=1",
              uncaught = "--gtest_catch_exceptions=0";  // pthread_exit is one
  char* const arguments[] = {program.data(), only.data(),     too.data(),
                             brief.data(),   uncaught.data(), nullptr};
  pid_t child = 0;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  const int wrong =
      ::posix_spawn(&child, program.c_str(), &quiet, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&quiet);
  return wrong ? 2000 + wrong : status_of(child);
}

/// Of each kind; the environment may ask for more.
int count_of_processes() {
  const char* const text = std::getenv("VT_PROCESSES");
  return text ? std::stoi(text) : 2;
}

void expect_good_ends(const std::string& kind) {
  for (const char* backend : {static_cast<const char*>(nullptr), "cpu"})
    for (const char* way : {"eager", "jit"}) {
      std::map<int, int> ends;
      for (int i = 0; i < count_of_processes(); ++i) {
        const std::string what = kind + " " + way + " " + std::to_string(5 + 47 * i % 301);
        ++ends[status_of_process(what, backend)];
      }
      EXPECT_EQ(ends[0], count_of_processes())
          << kind << ", " << way << ", " << (backend ? backend : "default") << ": "
          << ::testing::PrintToString(ends);
    }
}

TEST(Processes, VtIsUsedBehindTheEndOfTheCompiler) { expect_good_ends("static"); }
TEST(Processes, ExitByTheFirstThreadWhileAnotherCompiles) { expect_good_ends("first"); }
TEST(Processes, ExitByTheFirstThreadThatHasNotUsedVt) { expect_good_ends("unused"); }
TEST(Processes, ExitByAnotherThreadWhileTwoCompile) { expect_good_ends("other"); }
TEST(Processes, TheProcessGoesOnWithoutItsFirstThread) { expect_good_ends("goes_on"); }

// ---- limits -------------------------------------------------------------------------------------

/// The exit status of a child with a limit, that does `f`.
template <class F>
int status_within(int resource, rlim_t limit, const F& f) {
  const pid_t child = ::fork();
  if (child != 0) return status_of(child);
  const rlimit most{limit, RLIM_INFINITY};
  ::setrlimit(resource, &most);
  f();
  ::_exit(0);
}

// What cannot be written is not kept, and ends nothing.
TEST(Processes, FilesMayBeLimited) {
  const std::string folder = ::testing::TempDir() + "vt_processes_" + std::to_string(::getpid());
  for (rlim_t bytes : {rlim_t{0}, rlim_t{100}, rlim_t{5000}})
    EXPECT_EQ(status_within(RLIMIT_FSIZE, bytes,
                            [&] {
                              vt::detail::DiskCache cache(folder);
                              for (int i = 0; i < 40; ++i) {
                                const std::string text(static_cast<std::size_t>(100 << i % 8), 'x');
                                cache.store(vt::detail::cache_key(std::to_string(i)), text);
                              }
                              const std::string path = folder + "/a.npy";
                              try {
                                vt::save_npy(path, vt::ones({10000}));
                                ::_exit(3);
                              } catch (const vt::Error& e) {
                                if (e.kind() != vt::ErrorKind::io) ::_exit(4);
                              }
                            }),
              0)
        << bytes;
  std::filesystem::remove_all(folder);
}

// Memory may end anywhere, also inside of LLVM: an Error, and what needs none goes on.
TEST(Processes, MemoryMayBeLimited) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers take address space for themselves";
#endif
  const auto mapped = [] {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<rlim_t>(::getpagesize());
  };
  for (const int threads : {2, 1000})
    for (rlim_t mebibytes : {2, 8, 20, 40, 80, 150})
      EXPECT_EQ(status_within(RLIMIT_AS, mapped() + (mebibytes << 20),
                              [&] {
                                vt::set_num_threads(threads);
                                for (int k = 0; k < 12; ++k) {
                                  try {
                                    all_is_right(500 + k, 1, k % 2);
                                  } catch (const vt::Error& e) {
                                    if (e.kind() != vt::ErrorKind::memory) ::_exit(3);
                                  }
                                }
                              }),
                0)
          << threads << " threads, " << mebibytes << " MiB";
}

TEST(Processes, NotMoreThreadsThanAMachineCanUse) {
  const int before = vt::num_threads();
  vt::set_num_threads(1000);
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(vt::num_threads(), std::max(16, 4 * processors));
  EXPECT_NE(vt::warnings().find("1000 threads are asked for"), std::string::npos);
  vt::set_num_threads(before);
}

// ---- fork ---------------------------------------------------------------------------------------

/// Threads that do something again and again, as long as this lives.
class Threads {
 public:
  template <class F>
  explicit Threads(const F& f) {
    for (int t = 0; t < 2; ++t)
      threads_.emplace_back([this, f, t] {
        for (int k = 0; !stop_; ++k) f(t, k), ++done_;
      });
    while (done_ < 2) std::this_thread::sleep_for(1ms);
  }
  ~Threads() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> done_{0};
  std::vector<std::thread> threads_;
};

/// 0: all is right; 7: the Error that says that it was forked.
int status_of_fork(int k) {
  const pid_t child = ::fork();
  if (child != 0) return status_of(child);
  try {
    const bool right = all_is_right(300 + k % 4, 1, k % 2) && all_is_right(1, 1, !(k % 2));
    vt::set_num_threads(3);
    vt::wait_compiled();
    ::_exit(right && all_is_right(2, 1, true) ? 0 : 3);
  } catch (const vt::Error& e) {
    ::_exit(std::string_view(e.what()).find("was forked") != std::string_view::npos ? 7 : 8);
  }
}

void expect_good_children(int status) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  std::map<int, int> ends;
  const int count = 2 * count_of_processes();
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200 + 977 * (i * 13 % 17)));
    ++ends[status_of_fork(i)];
  }
  EXPECT_EQ(ends[status], count) << ::testing::PrintToString(ends);
}

TEST(Processes, ForkWhileThreadsRun) {
  const auto f = vt::jit([](Tensor x) { return vt::sum(vt::sin(x) * x); });
  const auto run = [&](int t, int k) { f(vt::arange(50000.0 + 8 * t + k % 8)).eval(); };
  // A fork waits half a second; under a sanitizer on a busy machine compilation may take longer.
  for (int k = 0; k < 8; ++k) run(0, k), run(1, k);
  vt::wait_compiled();
  const Threads threads(run);
  expect_good_children(0);
}

TEST(Processes, ForkWhileThreadsRecordAndCompile) {
  const Threads threads([](int t, int k) {
    all_is_right(400 + 2 * (k % 100) + t, 1, k % 2);
    vt::grad([](Tensor x) { return vt::sum(x * x); })(vt::ones({100 + k % 5})).eval();
  });
  expect_good_children(0);
}

// A call that goes on for longer than a fork waits: the child says so, and can end.
TEST(Processes, ForkWhileAThreadStaysInsideOfVt) {
  std::atomic<bool> release{false}, inside{false};
  std::thread stays([&] {
    vt::jit([&](Tensor x) {
      inside = true;
      while (!release) std::this_thread::sleep_for(1ms);
      return x + 1.0;
    })(vt::ones({3}));
  });
  while (!inside) std::this_thread::sleep_for(1ms);
  const auto begin = std::chrono::steady_clock::now();
  expect_good_children(7);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, count_of_processes() * 3s);
  release = true;
  stays.join();
  EXPECT_TRUE(all_is_right(1, 1, true));  // here all goes on
}

TEST(Processes, AForkFromInsideOfVt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  int status = -2;
  const auto forks = vt::callback(
      [&](Tensor x) {
        status = status_of_fork(1);
        return x;
      },
      vt::ones({3}));
  vt::jit([&](Tensor x) { return forks(x + 1.0) * 2.0; })(vt::ones({3})).eval();
  EXPECT_EQ(status, 0);
}

TEST(Processes, AnIterationThatRunsAheadStaysInItsProcess) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with several";
#endif
  auto data = vt::Dataset(vt::arange(100.0)).prefetch(2);
  auto iteration = data.begin();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      for (int i = 0; i < 10; ++i) ++iteration;
      ::_exit(3);
    } catch (const vt::Error& e) {
      double sum = 0;
      for (const Tensor& t : data) sum += t.item<double>();
      ::_exit(sum == 4950 ? 0 : 4);
    }
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(Processes, LocksAreCountedByThread) {
  using namespace vt::detail;
  Mutex a, b;
  {
    const std::lock_guard hold_a(a);
    const std::lock_guard hold_b(b);
    EXPECT_EQ(forks::record().locks, 2);
    std::thread([] { EXPECT_EQ(forks::record().locks, 0); }).join();
  }
  EXPECT_EQ(forks::record().locks, 0);
  EXPECT_EQ(forks::record().busy, 0);
}

}  // namespace
