// Faults of a CUDA device, here the emulated one, injected into each call that a program makes: a
// clear error or the right result, nothing leaked, and both the device (unless it is lost) and the
// CPU usable afterwards.
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "src/jit/services/disk_cache.hpp"
#include "support/cuda_program.hpp"
#include "support/message.hpp"

namespace {

namespace cuda = vt::detail::cuda;
using cuda::Constant;
using vt::Tensor;
using vt_test::emulator, vt_test::message;

/// A cache of compiled code that begins empty; gone when the process ends.
const std::string& folder() {
  static const std::string made = [] {
    char name[] = "/tmp/vt_faults.XXXXXX";
    return std::string(::mkdtemp(name) ? name : "");
  }();
  return made;
}
[[maybe_unused]] const int own_cache = ::setenv("VT_CACHE_DIR", folder().c_str(), 1);
[[maybe_unused]] const int removed = std::atexit([] { std::filesystem::remove_all(folder()); });
// What the host runs is compiled once: code of a second tier would come to the folder whenever the
// background is done with it.
[[maybe_unused]] const int one_tier = ::setenv("VT_TIERS", "off", 1);
[[maybe_unused]] const int several_devices = ::setenv("VT_EMULATOR_DEVICES", "8", 1);

class CudaFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
    emulator->reset();
  }
  void TearDown() override {
    if (emulator) emulator->reset();
    cuda::forget_lost_devices();
  }
};

std::vector<long long> alive() {
  cuda::driver(nullptr)->cuCtxSynchronize();
  std::vector<long long> counts;
  for (const char* what :
       {"allocations", "streams", "modules", "graphs", "graph_execs", "programs"})
    counts.push_back(emulator->count(what));
  return counts;
}

// Several kernels, which the second run gives to the device as one graph.
Tensor many_kernels(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 3; ++i)
    y = y - vt::tanh(vt::sum(y, 0) * 0.1f) + vt::reshape(vt::sum(y, 1), {y.shape()[0], 1}) * 0.01f;
  return y;
}

TEST_F(CudaFaults, EachCallOfARun) {
  const Tensor x = vt_test::random_tensor(vt::f32, {6, 5}, -1, 1, 1);
  const std::vector<float> expected = many_kernels(x).to_vector<float>();
  const auto f = vt::jit(many_kernels);
  const auto run = [&] { return f(x.to(vt::cuda(0))).to_vector<float>(); };
  const auto expect_right = [&](const std::vector<float>& actual, const std::string& what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-5) << what;
  };
  for (int i = 0; i < 3; ++i) expect_right(run(), "before");
  const std::vector<long long> before = alive();
  int failed = 0;
  for (const char* call :
       {"cuCtxSetCurrent", "cuMemAllocAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuGraphLaunch",
        "cuStreamSynchronize", "cuMemAllocHost_v2", "cuEventCreate"})
    for (int after = 0; after < 6; ++after) {
      const std::string what = std::string(call) + " " + std::to_string(after);
      emulator->fail(call, after, Constant::CUDA_ERROR_NOT_SUPPORTED);
      std::vector<float> actual;
      const std::string text = message([&] { actual = run(); });
      emulator->reset();
      if (text == "no error") {
        expect_right(actual, what);
      } else {
        ++failed;
        std::string name = call;
        if (name.ends_with("_v2")) name.resize(name.size() - 3);
        EXPECT_NE(text.find(name), std::string::npos) << what << ": " << text;
        EXPECT_NE(text.find("CUDA_ERROR_NOT_SUPPORTED"), std::string::npos) << text;
      }
      for (int i = 0; i < 2; ++i) expect_right(run(), "after " + what);
      EXPECT_EQ(alive(), before) << what;
    }
  EXPECT_GT(failed, 5);
}

TEST_F(CudaFaults, ADeviceThatDoesNotStartIsTriedAgain) {
  int index = 0;
  vt::ones({2}).to(vt::cuda(0)).eval();
  for (const char* call :
       {"cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuStreamCreate",
        "cuDeviceGetDefaultMemPool", "cuMemPoolSetAttribute"}) {
    ++index;
    const auto streams = emulator->count("streams");
    emulator->fail(call, 0, Constant::CUDA_ERROR_NOT_SUPPORTED);
    const std::string text = message([&] { (void)vt::ones({2}).to(vt::cuda(index)); });
    EXPECT_NE(text.find(std::string("vt: ") + call + ": CUDA_ERROR_NOT_SUPPORTED"),
              std::string::npos)
        << text;
    EXPECT_EQ(emulator->count("streams"), streams) << call;
    EXPECT_EQ((vt::ones({2}).to(vt::cuda(index)) + 1)[1].item<float>(), 2);
    EXPECT_EQ(emulator->count("streams"), streams + 1) << call;
  }
}

TEST_F(CudaFaults, CodeThatIsNotMade) {
  const Tensor x = vt::ones({7}).to(vt::cuda(0));
  int depth = 1;
  const auto f = [&](Tensor y) {  // of each call its own kernel
    for (int i = 0; i < depth; ++i) y = vt::sin(vt::exp(y));
    return y;
  };
  for (const char* call : {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize",
                           "nvrtcGetCUBIN", "cuModuleLoadData", "cuModuleGetFunction"}) {
    ++depth;
    const std::vector<long long> before = alive();
    const bool of_compiler = std::string(call).starts_with("nvrtc");
    emulator->fail(call, 0,
                   of_compiler ? int{Constant::NVRTC_ERROR_INTERNAL_ERROR}
                               : int{Constant::CUDA_ERROR_INVALID_IMAGE});
    const std::string text = message([&] { f(x).eval(); });
    emulator->reset();
    EXPECT_NE(text.find(of_compiler ? "NVRTC_ERROR_INTERNAL_ERROR" : call), std::string::npos)
        << call << ": " << text;
    if (std::string(call) == "nvrtcCompileProgram") {
      // the compiler's own words
      EXPECT_NE(text.find("the failure that was asked for"), std::string::npos) << text;
    }
    EXPECT_EQ(alive(), before) << call;
    EXPECT_NEAR(f(x)[3].item<float>(), f(vt::ones({7}))[3].item<float>(), 1e-5) << call;
  }
}

// What is on disk is of another device, say: it is made anew.
TEST_F(CudaFaults, KeptCodeThatDoesNotLoad) {
  const auto f = [](const Tensor& x) { return vt::exp(x) * 7.0625f + 0.375f; };
  EXPECT_NEAR(f(vt::ones({5}).to(vt::cuda(0)))[1].item<float>(), std::exp(1.0f) * 7.0625f + 0.375f,
              1e-4);
  const Tensor there = vt::ones({5}).to(vt::cuda(6));
  emulator->fail("cuModuleLoadData", 0, Constant::CUDA_ERROR_NO_BINARY_FOR_GPU);
  const auto compiled = emulator->count("compilations");
  EXPECT_NEAR(f(there)[1].item<float>(), std::exp(1.0f) * 7.0625f + 0.375f, 1e-4);
  EXPECT_GT(emulator->count("compilations"), compiled);
}

// Each device has its code from what the one before left on disk, and only what is damaged there is
// made anew.
TEST_F(CudaFaults, DamagedAndMissingFilesOfTheCache) {
  using vt::detail::CacheKey, vt::detail::DiskCache;
  ASSERT_FALSE(folder().empty());
  int device = 0;
  const auto compilations = [&](const char* what) {
    const auto before = emulator->count("compilations");
    const Tensor x = vt::tensor({0.25f, 1.0f, 2.0f}).to(vt::cuda(device++));
    EXPECT_NEAR(vt::erf(x * 0.5f + 0.125f).to_vector<float>()[1], std::erf(0.625f), 1e-5) << what;
    return emulator->count("compilations") - before;
  };
  const auto files = [] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == ".vtk") names.push_back(entry.path());
    return names;
  };
  for (const std::string& name : files()) std::filesystem::remove(name);
  EXPECT_EQ(compilations("none"), 1);
  EXPECT_EQ(compilations("kept"), 0);
  ASSERT_EQ(files().size(), 1u);
  const std::string name = files()[0];
  const auto whole = std::filesystem::file_size(name);
  CacheKey key;  // behind the entry's magic and version
  {
    std::ifstream file(name, std::ios::binary);
    file.seekg(16);
    file.read(reinterpret_cast<char*>(&key), sizeof key);
  }
  ASSERT_TRUE(DiskCache(folder()).load(key));
  std::filesystem::resize_file(name, whole / 2);
  EXPECT_EQ(compilations("cut off"), 1);
  {
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-7, std::ios::end);  // in the entry that was kept last
    file.write("garbled", 7);
  }
  EXPECT_EQ(compilations("garbled"), 1);
  // With all checks right, and yet no code.
  DiskCache(folder()).store(key, vt::Vec<char>(5000, 'x'));
  EXPECT_EQ(compilations("nonsense"), 1);
  EXPECT_EQ(compilations("kept again"), 0);
  // A disk without room: nothing is kept, nothing is left lying about.
  for (const std::string& file : files()) std::filesystem::remove(file);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  // the emulator writes a smaller file when it loads the code
  const rlimit little{whole - 1, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_EQ(compilations("full"), 1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
  // A folder in which nothing can be made any more.
  std::filesystem::remove_all(folder());
  EXPECT_EQ(compilations("gone"), 1);
}

TEST_F(CudaFaults, AfterAnErrorThatEndsAllWorkTheCpuGoesOn) {
  const Tensor x = vt::ones({100}).to(vt::cuda(7)), here = vt::ones({100});
  (x + 1).eval();
  emulator->fail("kernel", 0, Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  const Tensor y = (x + 1).eval();  // nobody has looked yet
  const std::string first = message([&] { y.to_vector<float>(); });
  EXPECT_NE(first.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << first;
  EXPECT_NE(first.find("cuda(7) is lost"), std::string::npos) << first;
  EXPECT_NE(first.find("; the driver's log: the failure that was asked for"), std::string::npos)
      << first;
  emulator->fail("kernel", 0, 0);
  const std::string later = message([&] { (x * 2).eval(); });
  EXPECT_NE(later.find("cuda(7) is lost since"), std::string::npos) << later;
  EXPECT_EQ(vt::sum(here * 2 + 1).item<float>(), 300);
  // nor has another device noticed
  EXPECT_EQ((vt::ones({3}).to(vt::cuda(0)) + 1)[2].item<float>(), 2);
}

}  // namespace
