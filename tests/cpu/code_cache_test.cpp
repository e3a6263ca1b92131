// Machine code by key across processes: one compiles, the next loads from disk; damage on disk
// costs a compilation, nothing more.
#include <gtest/gtest.h>

#include "src/jit/cpu/llvm/code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <vt/execution.hpp>
#include "src/jit/services/background.hpp"
#include "src/jit/services/counters.hpp"

namespace {

namespace fs = std::filesystem;
using vt::detail::counters;
using namespace vt::detail::cpu;

/// Runs `body` in a process of its own with its own cache folder settings; true if it returned
/// true.
template <class F>
bool in_child(const fs::path& folder, F&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("VT_CACHE_DIR", folder.c_str(), 1);
    bool ok = false;
    try {
      ok = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

int answer(const std::string& key, int value, bool hurry = false) {
  const auto code = cached_code(
      key, "answer",
      [value](IrBuilder& b) {
        b.begin_function("answer", {Param::ptr()});
        b.store(b.arg(0), b.integer(vt::i32, value));
        b.end_function();
      },
      hurry);
  int out = -1;
  code->function<void(int*)>()(&out);
  return out;
}

TEST(CodeCache, LivesOnDiskBetweenProcesses) {
  // Not in this process: it must not have touched LLVM or its cache folder before it forks.
  std::string pattern = (fs::temp_directory_path() / "vt_code_cache.XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern, folder = root / "cache";
  if (in_child(folder, [] { return !llvm_unavailable_reason().empty(); }))
    GTEST_SKIP() << "no LLVM";

  EXPECT_TRUE(in_child(folder, [] {
    return answer("a", 42) == 42 && answer("a", 0) == 42 && vt::stats().kernels_compiled == 1 &&
           vt::stats().kernel_memory_hits == 1;
  }));
  EXPECT_TRUE(in_child(folder, [] {  // the second process's emitter would say 0: it is not asked
    return answer("a", 0) == 42 && vt::stats().kernel_disk_hits == 1 &&
           vt::stats().kernels_compiled == 0 && answer("b", 7) == 7;
  }));
  for (const auto& e : fs::directory_iterator(folder)) {  // damage everything
    std::fstream f(e.path(), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(200);
    f.put('!');
    f.put('?');
  }
  EXPECT_TRUE(in_child(folder, [] {
    return answer("a", 43) == 43 && vt::stats().kernels_compiled == 1 &&
           vt::stats().kernel_disk_hits == 0;
  }));
  EXPECT_TRUE(in_child(folder, [] { return answer("a", 0) == 43; })) << "and stored anew";
  EXPECT_TRUE(in_child(folder, [] {
    return ::setenv("VT_CPU_ISA", "sse2", 1) == 0 && answer("a", 44) == 44;
  })) << "another target, another entry";
  EXPECT_TRUE(in_child("", [] { return answer("a", 45) == 45; }))
      << "no folder, no cache, no error";
  EXPECT_TRUE(in_child("/proc/no/such", [] { return answer("a", 46) == 46; }));
  fs::remove_all(root);
}

TEST(CodeCache, CodeMadeInAHurryIsReplacedInMemoryAndOnDisk) {
  std::string pattern = (fs::temp_directory_path() / "vt_code_cache.XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern, folder = root / "cache";
  if (in_child(folder, [] { return !llvm_unavailable_reason().empty(); }))
    GTEST_SKIP() << "no LLVM";
  ::unsetenv("VT_CPU_LEVEL");
  const auto made = [](std::uint64_t unoptimised, std::uint64_t compiled, std::uint64_t from_disk) {
    return vt::stats().kernels_unoptimised == unoptimised &&
           vt::stats().kernels_compiled == compiled && vt::stats().kernel_disk_hits == from_disk;
  };
  EXPECT_TRUE(in_child(folder, [&] {
    // the process ends before better code is made
    static const auto* const pause = new vt::detail::BackgroundPause;
    static_cast<void>(pause);
    return answer("a", 42, true) == 42 && made(1, 1, 0);
  }));
  EXPECT_TRUE(in_child(folder, [&] {
    if (answer("a", 42, true) != 42 || !made(1, 0, 1)) return false;
    vt::wait_compiled();
    return answer("a", 0, true) == 42 && vt::stats().kernels_optimised == 1;
  }));
  EXPECT_TRUE(in_child(folder, [&] { return answer("a", 0, true) == 42 && made(0, 0, 1); }))
      << "the optimised code";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2)
      << "the module that the key leads to, and its code; the other code is gone";
  EXPECT_TRUE(in_child(folder, [&] {
    return ::setenv("VT_TIERS", "off", 1) == 0 && answer("b", 43, true) == 43 && made(0, 1, 0);
  }));
  EXPECT_TRUE(in_child(folder, [&] {
    return ::setenv("VT_CPU_LEVEL", "0", 1) == 0 && answer("c", 44, true) == 44 && made(0, 1, 0);
  }));
  fs::remove_all(root);
}

// What the next test runs as a program of its own: VT_TEST_ANSWER is what this build emits.
TEST(CodeCache, DISABLED_OfThisBuild) {
  const char* const emitted = std::getenv("VT_TEST_ANSWER");
  ASSERT_TRUE(emitted);
  const int said = answer("a", std::atoi(emitted));
  const vt::Stats s = vt::stats();
  std::printf("says %d: %d compiled, %d from disk\n", said, static_cast<int>(s.kernels_compiled),
              static_cast<int>(s.kernel_disk_hits));
}

TEST(CodeCache, ProgramsShareWhatTheyEmitAlike) {
  std::string pattern = (fs::temp_directory_path() / "vt_code_cache.XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern, folder = root / "cache";
  if (in_child(folder, [] { return !llvm_unavailable_reason().empty(); }))
    GTEST_SKIP() << "no LLVM";
  // A program that was linked again, as its file tells: the same code in other bytes.
  const fs::path first = root / "first", again = root / "again", last = root / "last";
  for (const fs::path& program : {first, again, last}) {
    fs::copy_file("/proc/self/exe", program);
    std::ofstream(program, std::ios::app | std::ios::binary) << program.string();
  }
  const auto says = [&](const fs::path& program, int emitted) {
    const std::string command = "VT_TEST_ANSWER=" + std::to_string(emitted) +
                                " VT_CACHE_DIR=" + folder.string() + " " + program.string() +
                                " --gtest_also_run_disabled_tests "
                                "--gtest_filter=CodeCache.DISABLED_OfThisBuild 2>&1";
    std::string text;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    if (pipe) ::pclose(pipe);
    const std::size_t at = text.find("says ");
    return at == text.npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(says(first, 42), "says 42: 1 compiled, 0 from disk");
  EXPECT_EQ(says(first, 42), "says 42: 0 compiled, 1 from disk");
  EXPECT_EQ(says(again, 42), "says 42: 0 compiled, 1 from disk") << "linked again";
  // Where vt is a shared library the copies have the same one: then there is no other emitter.
  Dl_info file{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&vt::wait_compiled), &file), 0);
  if (fs::equivalent(file.dli_fname, "/proc/self/exe")) {
    EXPECT_EQ(says(last, 43), "says 43: 1 compiled, 0 from disk") << "another emitter";
    EXPECT_EQ(says(last, 43), "says 43: 0 compiled, 1 from disk");
  }
  EXPECT_EQ(says(first, 42), "says 42: 0 compiled, 1 from disk");
  EXPECT_EQ(says(again, 42), "says 42: 0 compiled, 1 from disk");
  fs::remove_all(root);
}

TEST(CodeCache, ProcessesEndAndForkWhileCodeIsOptimised) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a child that goes on with the job starts a thread, which ThreadSanitizer does "
                  "not allow after a fork";
#endif
  if (in_child("", [] { return !llvm_unavailable_reason().empty(); })) GTEST_SKIP() << "no LLVM";
  ::unsetenv("VT_CPU_LEVEL");
  const auto many = [](int first) {
    for (int i = first; i < first + 12; ++i)
      if (answer(std::to_string(i), i, true) != i) return false;
    return true;
  };
  EXPECT_TRUE(in_child("", [&] {
    if (!many(0)) return false;
    std::exit(0);  // runs what was left to be done at exit, LLVM's too
  }));
  EXPECT_TRUE(in_child("", [&] {
    if (!many(0)) return false;
    const bool child = in_child("", [&] {
      if (!many(100)) return false;
      vt::wait_compiled();  // for what the parent had begun, too
      return many(0) && vt::stats().kernels_optimised == 24;
    });
    if (!child || !many(200)) return false;
    vt::wait_compiled();
    return vt::stats().kernels_optimised == 24;
  }));
}

}  // namespace

#endif
