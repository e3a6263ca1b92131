// Settings of the environment: what is taken, and that what is not understood is named
// and left out.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/vt.hpp>

#include "src/trace/base/environment.hpp"

namespace {

using vt::detail::number_from_environment, vt::detail::switch_from_environment,
    vt::detail::word_from_environment;

const char* const name = "VT_TEST_SETTING";
void set(const char* text) { ::setenv(name, text, 1); }
bool warned(const std::string& line) {
  return ("\n" + vt::warnings()).find("\n" + line + "\n") != std::string::npos;
}

TEST(Environment, Words) {
  ::unsetenv(name);
  EXPECT_EQ(word_from_environment(name, {"fast", "slow"}), "");
  set("");
  EXPECT_EQ(word_from_environment(name, {"fast", "slow"}), "");
  set("slow");
  EXPECT_EQ(word_from_environment(name, {"fast", "slow"}), "slow");
  const std::string before = vt::warnings();
  EXPECT_EQ(before.find(name), std::string::npos);
  set("slower");
  EXPECT_EQ(word_from_environment(name, {"fast", "slow"}), "");
  EXPECT_TRUE(
      warned("VT_TEST_SETTING=slower is not fast or slow (did you mean \"slow\"?): ignored"))
      << vt::warnings();
  EXPECT_EQ(word_from_environment(name, {"fast"}), "");
  EXPECT_TRUE(warned("VT_TEST_SETTING=slower is not fast: ignored")) << vt::warnings();
  set("Fast");
  EXPECT_EQ(word_from_environment(name, {"fast", "slow", "usual"}), "");
  EXPECT_TRUE(
      warned("VT_TEST_SETTING=Fast is not fast, slow or usual (did you mean \"fast\"?): ignored"))
      << vt::warnings();
}

TEST(Environment, TheWordThatWasMeant) {
  constexpr std::string_view known[] = {"batch", "rows", "i", "interpreter"};
  const auto meant = [&](std::string_view word) { return vt::detail::nearest_word(word, known); };
  // Letters swapped, left out, put in, replaced; case.
  EXPECT_EQ(meant("bacth"), "batch");
  EXPECT_EQ(meant("batc"), "batch");
  EXPECT_EQ(meant("bbatchh"), "batch");
  EXPECT_EQ(meant("raws"), "rows");
  EXPECT_EQ(meant("I"), "i");
  EXPECT_EQ(meant("INTERPRETER"), "interpreter");
  EXPECT_EQ(meant("interpretor"), "interpreter");
  // Too far, or too much of a short word.
  EXPECT_EQ(meant("btc"), "");
  EXPECT_EQ(meant("rwso"), "");
  EXPECT_EQ(meant("row"), "");
  EXPECT_EQ(meant("j"), "");
  EXPECT_EQ(meant("ii"), "");
  EXPECT_EQ(meant("intrptr"), "");
  EXPECT_EQ(meant(""), "");
  EXPECT_EQ(vt::detail::nearest_word("batch", {}), "");
  constexpr std::string_view backends[] = {"interpreter", "cpu", "cuda"};
  EXPECT_EQ(vt::detail::did_you_mean("gpu", backends), "");
  EXPECT_EQ(vt::detail::did_you_mean("cude", backends), " (did you mean \"cuda\"?)");
  // The nearer one, not the first.
  constexpr std::string_view near[] = {"batches", "batch"};
  EXPECT_EQ(vt::detail::nearest_word("batchs", near), "batches");
  EXPECT_EQ(vt::detail::nearest_word("batxh", near), "batch");
  EXPECT_EQ(vt::detail::did_you_mean("batxh", near), " (did you mean \"batch\"?)");
  EXPECT_EQ(vt::detail::did_you_mean("I", known, '\''), " (did you mean 'i'?)");
  EXPECT_EQ(vt::detail::did_you_mean("columns", known), "");
}

TEST(Environment, NamesThatAreNearlyKnown) {
  const auto line = [](const std::string& name, const std::string& meant) {
    return name + " is no variable of vt (did you mean " + meant + "?): ignored";
  };
  for (const auto& [wrong, meant] : {std::pair{"VT_BACKND", "VT_BACKEND"},
                                     {"VT_NUM_THREAD", "VT_NUM_THREADS"},
                                     {"VT_cache_dir", "VT_CACHE_DIR"},
                                     {"VT_DUPM", "VT_DUMP"}}) {
    ::setenv(wrong, "cpu", 1);
    EXPECT_TRUE(warned(line(wrong, meant))) << vt::warnings();
    ::unsetenv(wrong);
  }
  // vt's own, those of tests and scripts, and those of others.
  const std::string before = vt::warnings();
  const char* const fine[] = {"VT_TEST_SETTING",
                              "VT_FUZZ_SEED",
                              "VT_FUZZ_COUNT",
                              "VT_TEST_CACHE",
                              "VT_TEST_DATA",
                              "VT_PROCESSES",
                              "VT_EMULATOR_CXX",
                              "VT_EMULATOR_KEEP",
                              "VT_MATH_SAMPLES",
                              "VT_SHOW_ERRORS",
                              "VT_SORT_MACHINE",
                              "VT_BENCH_REFERENCE",
                              "VT_",
                              "VT",
                              "VTK_BACKEND",
                              "XVT_BACKND",
                              "BACKND"};
  for (const char* name : fine) vt::detail::check_name(name);
  EXPECT_EQ(vt::warnings(), before);
}

TEST(Environment, Switches) {
  ::unsetenv(name);
  EXPECT_TRUE(switch_from_environment(name, true));
  EXPECT_FALSE(switch_from_environment(name, false));
  set("0");
  EXPECT_FALSE(switch_from_environment(name, true));
  set("1");
  EXPECT_TRUE(switch_from_environment(name, false));
  set("yes");
  EXPECT_FALSE(switch_from_environment(name, false));
  EXPECT_TRUE(warned("VT_TEST_SETTING=yes is not 0 or 1: ignored")) << vt::warnings();
}

TEST(Environment, Numbers) {
  ::unsetenv(name);
  EXPECT_EQ(number_from_environment(name, 1, 8, 5), 5);
  for (const auto& [text, value] : {std::pair{"1", 1}, {"8", 8}, {"007", 7}}) {
    set(text);
    EXPECT_EQ(number_from_environment(name, 1, 8, 5), value) << text;
  }
  for (const char* text :
       {"0", "9", "-1", "two", "2x", "2 ", " 2", "2.0", "0x2", "99999999999999999999", "2K"}) {
    set(text);
    EXPECT_EQ(number_from_environment(name, 1, 8, 5), 5) << text;
    EXPECT_TRUE(
        warned("VT_TEST_SETTING=" + std::string(text) + " is not a number from 1 to 8: ignored"))
        << vt::warnings();
  }
}

TEST(Environment, SettingsThatNothingHasAskedForAreChecked) {
  for (const char* setting :
       {"VT_BACKEND", "VT_CPU_ISA", "VT_LANES", "VT_AUTOBATCH", "VT_TIERS", "VT_MACHINE", "VT_PERF",
        "VT_GDB", "VT_TF32", "VT_CUDA_LOOPS", "VT_CUDA_GRAPHS"}) {
    const char* const old = std::getenv(setting);
    const std::string before = old ? old : "";
    ::setenv(setting, "zz", 1);
    EXPECT_NE(vt::warnings().find(std::string(setting) + "=zz is not "), std::string::npos)
        << vt::warnings();
    old ? ::setenv(setting, before.c_str(), 1) : ::unsetenv(setting);
  }
}

TEST(Environment, Bytes) {
  constexpr std::int64_t most = INT64_MAX;
  const std::int64_t k = 1024;
  for (const auto& [text, value] : {std::pair<const char*, std::int64_t>{"17", 17},
                                    {"3K", 3 * k},
                                    {"3k", 3 * k},
                                    {"2M", 2 * k * k},
                                    {"1g", k * k * k},
                                    {"4T", 4 * k * k * k * k},
                                    {"0", 0},
                                    {"8388607T", 8388607 * k * k * k * k},
                                    {"9223372036854775807", most}}) {
    set(text);
    EXPECT_EQ(number_from_environment(name, 0, most, -5, true), value) << text;
  }
  for (const char* text :
       {"K", "2KB", "2P", "-1K", "8388608T", "2 G", "abc", "9223372036854775808"}) {
    set(text);
    EXPECT_EQ(number_from_environment(name, 0, most, -5, true), -5) << text;
    EXPECT_TRUE(warned("VT_TEST_SETTING=" + std::string(text) +
                       " is not a number of bytes, which may end in K, M, G or T: ignored"))
        << vt::warnings();
  }
}

}  // namespace
