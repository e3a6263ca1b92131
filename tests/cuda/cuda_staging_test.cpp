// Copies to and from a CUDA device through pinned memory: nobody waits, the memory is bounded,
// without it copies are slower but right.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "support/cuda_emulator.hpp"
#include "support/message.hpp"

namespace {

using vt::Tensor;
using vt::detail::cuda::Constant;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt::Device device = vt::cuda(0);

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}

TEST(CudaStaging, CopiesOfAllSizes) {
  for (std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{16384}, std::size_t{16385},
                        std::size_t{1} << 20, std::size_t{2500000}}) {
    const std::vector<float> v = ramp(n);
    EXPECT_EQ(vt::tensor(v).to(device).to_vector<float>(), v) << n;
  }
}

TEST(CudaStaging, UploadsDoNotWaitForTheDevice) {
  if (!emulator) GTEST_SKIP() << "only the emulator counts";
  vt::tensor(1.0f).to(device).to_vector<float>();  // the device, its first pinned memory
  emulator->reset();
  std::vector<Tensor> there;
  for (int i = 0; i < 100; ++i)
    there.push_back(vt::tensor(ramp(100)).to(device) * static_cast<float>(i));
  for (Tensor& t : there) t.eval();
  EXPECT_EQ(emulator->count("synchronisations"), 0);
  for (std::size_t i = 0; i < there.size(); ++i)
    EXPECT_EQ(there[i][99].item<float>(), 100.0f * static_cast<float>(i));
}

TEST(CudaStaging, TheMemoryIsBounded) {
  if (!emulator) GTEST_SKIP() << "only the emulator counts";
  const std::vector<float> v = ramp(5 << 20);  // five pieces
  std::vector<Tensor> there;
  for (int i = 0; i < 6; ++i) there.push_back(vt::tensor(v).to(device));
  EXPECT_LE(emulator->count("pinned"), 256 + 16);
  EXPECT_GT(emulator->count("synchronisations"), 0);
  for (const Tensor& t : there) EXPECT_EQ(t.to_vector<float>(), v);
}

TEST(CudaStaging, WithoutPinnedMemory) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  emulator->fail("cuMemAllocHost_v2", -1, Constant::CUDA_ERROR_OUT_OF_MEMORY);
  std::vector<Tensor> there;
  for (int i = 0; i < 300; ++i)
    there.push_back(vt::tensor(ramp(static_cast<std::size_t>(i + 1))).to(device));
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(there[i].to_vector<float>(), ramp(static_cast<std::size_t>(i + 1)));
  emulator->reset();
}

TEST(CudaStaging, CopiesThatFail) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  const Tensor x = vt::tensor(ramp(3 << 20)), there = x.to(device);
  const auto pinned = emulator->count("pinned");
  for (int after : {0, 1, 2}) {
    emulator->fail("cuMemcpyDtoHAsync_v2", after, Constant::CUDA_ERROR_INVALID_VALUE);
    EXPECT_NE(vt_test::message([&] {
                (there + 0.0f).to_vector<float>();
              }).find("cuMemcpyDtoHAsync: CUDA_ERROR_INVALID_VALUE"),
              std::string::npos);
    emulator->reset();
    emulator->fail("cuMemcpyHtoDAsync_v2", after, Constant::CUDA_ERROR_INVALID_VALUE);
    EXPECT_NE(vt_test::message([&] {
                (void)x.to(device);
              }).find("cuMemcpyHtoDAsync: CUDA_ERROR_INVALID_VALUE"),
              std::string::npos);
    emulator->reset();
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(x.to(device).to_vector<float>(), x.to_vector<float>());
  EXPECT_LE(emulator->count("pinned"), pinned + 16);  // blocks came back
}

}  // namespace
