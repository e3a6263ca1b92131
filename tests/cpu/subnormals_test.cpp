// A thread whose start-up code flushes subnormal numbers is told so.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>

#include <vt/vt.hpp>

namespace {

#ifdef __x86_64__
TEST(Subnormals, AThreadThatFlushesThemIsTold) {
  EXPECT_EQ(vt::sum(vt::ones({2})).item<float>(), 2);
  EXPECT_EQ(vt::warnings().find("flushes subnormal"), std::string::npos);
  std::thread([] {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
    EXPECT_EQ(vt::sum(vt::ones({2})).item<float>(), 2);
  }).join();
  EXPECT_NE(vt::warnings().find("flushes subnormal"), std::string::npos) << vt::warnings();
}
#endif

}  // namespace
