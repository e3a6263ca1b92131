// The emulated CUDA driver: kernels written by hand give right results in every order
// of blocks and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "support/emulator_fixture.hpp"

namespace {

using namespace vt_test;

TEST_F(CudaEmulator, ElementwiseWithATail) {
  const cuda::Function f = load(saxpy);
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const auto x = ramp(1000), y = ramp(1000, -3);
    const DevicePtr dx = upload(x), dy = upload(y);
    ASSERT_EQ(run(f, {4}, {256}, 0, dx, dy, 2.0f, 1000), 0) << emulator->report();
    const auto result = download<float>(dy, 1000);
    for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(result[i], 2 * x[i] + y[i]) << i;
  }
  EXPECT_EQ(emulator->count("launches"), 5);
  EXPECT_EQ(emulator->count("threads"), 5 * 1024);
}

TEST_F(CudaEmulator, SumsThroughSharedMemory) {
  const cuda::Function f = load(block_sum);
  const auto x = ramp(5000);
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dy = allocate(3 * sizeof(float));
    ASSERT_EQ(run(f, {3}, {256}, 0, dx, dy, 5000), 0) << emulator->report();
    const auto sums = download<float>(dy, 3);
    EXPECT_NEAR(sums[0] + sums[1] + sums[2], std::accumulate(x.begin(), x.end(), 0.0), 1.0);
  }
}

TEST_F(CudaEmulator, SumsThroughShuffles) {
  const cuda::Function f = load(warp_sum);
  const int rows = 13, columns = 77;
  std::vector<double> x(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dy = allocate(rows * sizeof(double));
    ASSERT_EQ(run(f, {4}, {128}, 0, dx, dy, rows, columns), 0) << emulator->report();
    const auto sums = download<double>(dy, rows);
    for (int r = 0; r < rows; ++r)
      EXPECT_NEAR(sums[r],
                  std::accumulate(x.begin() + r * columns, x.begin() + (r + 1) * columns, 0.0),
                  1e-12);
  }
}

TEST_F(CudaEmulator, ScansAndVotesOfAWarp) {
  const cuda::Function f = load(warp_scan);
  std::vector<int> x(64);
  for (int i = 0; i < 64; ++i) x[i] = (i * 7) % 11;
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dsums = allocate(256), dvotes = allocate(256),
                    dbelow = allocate(256);
    ASSERT_EQ(run(f, {1}, {64}, 0, dx, dsums, dvotes, dbelow), 0) << emulator->report();
    const auto sums = download<int>(dsums, 64), below = download<int>(dbelow, 64);
    const auto votes = download<unsigned>(dvotes, 64);
    for (int i = 0; i < 64; ++i) {
      const int first = i / 32 * 32;
      const auto sum_to = [&](int last) {
        return std::accumulate(x.begin() + first, x.begin() + last + 1, 0);
      };
      unsigned odd = 0;
      for (int k = 0; k < 32; ++k) odd |= static_cast<unsigned>(x[first + k] & 1) << k;
      ASSERT_EQ(sums[i], sum_to(i));
      ASSERT_EQ(votes[i], odd);
      const int next = i % 8 == 7 ? i : i + 1;
      ASSERT_EQ(below[i], sum_to(next) + __builtin_popcount(odd & ((1u << (i - first)) - 1)) + 1000)
          << i;
    }
  }
}

TEST_F(CudaEmulator, CountsWithAtomics) {
  const cuda::Function f = load(histogram);
  std::vector<unsigned char> x(3000);
  std::vector<int> expected(16);
  for (std::size_t i = 0; i < x.size(); ++i)
    ++expected[(x[i] = static_cast<unsigned char>(i * i % 251)) % 16u];
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dbins = upload(std::vector<int>(16)),
                    dtotal = upload(std::vector<float>(1)),
                    dlargest = upload(std::vector<unsigned long long>(1));
    ASSERT_EQ(run(f, {3}, {64}, 0, dx, dbins, 3000, dtotal, dlargest), 0) << emulator->report();
    EXPECT_EQ(download<int>(dbins, 16), expected);
    EXPECT_EQ(download<float>(dtotal, 1)[0], 3000.0f);
    EXPECT_EQ(download<unsigned long long>(dlargest, 1)[0],
              *std::max_element(x.begin(), x.end()) * 1000000007ull);
  }
}

TEST_F(CudaEmulator, TransposesThroughDynamicSharedMemory) {
  const cuda::Function f = load(transpose);
  const int rows = 70, columns = 45;
  const auto x = ramp(static_cast<std::size_t>(rows * columns));
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dy = allocate(x.size() * sizeof(float));
    ASSERT_EQ(run(f, {2, 3}, {32, 8}, 32 * 33 * sizeof(float), dx, dy, rows, columns), 0)
        << emulator->report();
    const auto y = download<float>(dy, x.size());
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) ASSERT_EQ(y[c * rows + r], x[r * columns + c]);
  }
}

TEST_F(CudaEmulator, PartsOfAWarpGoTheirWays) {
  const cuda::Function f = load(divergent);
  struct Pair {
    int add;
    long long times;
  };
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = allocate(96 * sizeof(int));
    ASSERT_EQ(run(f, {1}, {128}, 0, dx, Pair{5, 3}, 96), 0) << emulator->report();
    const auto x = download<int>(dx, 96);
    for (int i = 0; i < 96; ++i)
      ASSERT_EQ(x[i], ((i % 32 < 16 ? i + (i ^ 8) : i - (i ^ 4)) + 5) * 3);
  }
}

TEST_F(CudaEmulator, AccessesOfSixteenBytesMustBeAligned) {
  const cuda::Function f = load(vectors);
  const DevicePtr dx = upload(ramp(44)), dy = allocate(160),
                  du = upload(std::vector<double>(20, 1.5)), dv = allocate(80);
  ASSERT_EQ(run(f, {1}, {32}, 0, dx, dy, du, dv, 10), 0) << emulator->report();
  const auto x = ramp(44), y = download<float>(dy, 40);
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(y[i], x[i / 4 * 4 + 3 - i % 4]);
  for (double v : download<double>(dv, 10)) EXPECT_EQ(v, 3.25);
  EXPECT_EQ(run(f, {1}, {32}, 0, dx + 4, dy, du, dv, 10), Constant::CUDA_ERROR_MISALIGNED_ADDRESS);
  expect_report({"not aligned to 16"});
}

TEST_F(CudaEmulator, FunctionsOfCudasLibrary) {
  const cuda::Function f = load(functions);
  const std::vector<double> x = {-0.9, -0.3, 0.0, 0.2, 0.7, 0.999};
  const auto n = x.size();
  const DevicePtr dx = upload(x), dy = allocate(n * 12 * 8), dz = allocate(n * 7 * 4),
                  dw = allocate(n * 8 * 4);
  ASSERT_EQ(run(f, {1}, {static_cast<unsigned>(n)}, 0, dx, dy, dz, dw), 0) << emulator->report();
  const auto y = download<double>(dy, n * 12);
  const auto z = download<float>(dz, n * 7);
  const auto w = download<unsigned>(dw, n * 8);
  for (std::size_t i = 0; i < n; ++i) {
    const double a = x[i], *r = &y[i * 12];
    EXPECT_NEAR(std::erf(r[0]), a, 1e-15);
    if (a + 0.5 > 0) {
      EXPECT_NEAR(std::erfc(r[1]), a + 0.5, 1e-15);
    } else {
      EXPECT_TRUE(std::isnan(r[1]));
    }
    EXPECT_NEAR(r[2], 0.5 * std::erfc(-a / std::sqrt(2.0)), 1e-16);
    EXPECT_NEAR(r[3] * r[3] * r[3] * (a + 2), 1.0, 1e-14);
    EXPECT_NEAR(r[4], std::sin(M_PI * a), 1e-15);
    EXPECT_NEAR(r[5], std::cos(M_PI * a), 1e-15);
    EXPECT_NEAR(r[6], std::cyl_bessel_i(0.0, std::fabs(a)), 1e-14);
    EXPECT_NEAR(std::fabs(r[7]), std::cyl_bessel_i(1.0, std::fabs(a)), 1e-14);
    EXPECT_NEAR(r[8] * r[8] * (a + 1.5), 1.0, 1e-14);
    EXPECT_NEAR(r[9], std::pow(10.0, a), 1e-14);
    EXPECT_NEAR(r[10] * std::exp(-a * a), std::erfc(a), 1e-14);
    EXPECT_NEAR(0.5 * std::erfc(-r[11] / std::sqrt(2.0)), a * 0.5 + 0.5, 1e-14);
    const float b = static_cast<float>(a);
    EXPECT_NEAR(std::erf(z[i * 7]), b, 1e-6);
    EXPECT_EQ(z[i * 7 + 4], std::fma(b, b, 1.0f));
    EXPECT_EQ(z[i * 7 + 5], std::max(b, 0.25f));
    unsigned bits;
    std::memcpy(&bits, &b, 4);
    EXPECT_EQ(w[i * 8], bits);
    EXPECT_EQ(static_cast<int>(w[i * 8 + 1]), b == 0 ? 0 : b > 0 ? 2147483647 : -2147483647 - 1);
    EXPECT_EQ(w[i * 8 + 5], static_cast<unsigned>(std::llrint(a * 1000.5)));
    EXPECT_EQ(w[i * 8 + 3], static_cast<unsigned>(((0x80000001ull + i) * 6) >> 32));
    EXPECT_EQ(w[i * 8 + 4],
              static_cast<unsigned>(__builtin_clz(static_cast<unsigned>(i + 1)) * 100 +
                                    __builtin_ffs(static_cast<int>(i + 8)) * 10000 +
                                    __builtin_popcountll(0xffffffffffull + i)));
    EXPECT_EQ(w[i * 8 + 7],
              static_cast<unsigned>(std::min<std::size_t>(i, 3) + std::max<std::size_t>(i, 2)));
  }
  EXPECT_EQ(w[6], 0x80000000u);
}

TEST_F(CudaEmulator, SharedVariablesOfTemplatesAreSharedVariables) {
  const cuda::Function f = load({"templates", R"(
template <int n, class T> static __device__ __forceinline__ T sum(T x) {
  __shared__ T parts[n];
  __syncthreads();
  parts[threadIdx.x] = x;
  __syncthreads();
  T all = 0;
  for (int i = 0; i < n; ++i) all += parts[i];
  return all;
}
template <class T>
static __device__ T first_garbage() {
  __shared__ T unset[2];
  return VT_LOAD(unset, 1);
}
extern "C" __global__ void templates(float* x, double* y) {
  const float a = sum<64>((float)threadIdx.x);
  const double b = sum<64>((double)a);
  VT_STORE(x, blockIdx.x * 64 + threadIdx.x, a);
  VT_STORE(y, blockIdx.x * 64 + threadIdx.x, threadIdx.x == 0 ? (double)first_garbage<float>() : b);
})"});
  const DevicePtr dx = allocate(2 * 64 * 4), dy = allocate(2 * 64 * 8);
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    ASSERT_EQ(run(f, {2}, {64}, 0, dx, dy), 0) << emulator->report();
    const auto y = download<double>(dy, 128);
    EXPECT_EQ(download<float>(dx, 128)[70], 2016.0f);
    EXPECT_EQ(y[1], 64 * 2016.0);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[64]));
  }
}

TEST_F(CudaEmulator, SharedMemoryAndNewMemoryAreGarbage) {
  const cuda::Function f = load({"unset", R"(extern "C" __global__ void unset(float* x, float* y) {
  __shared__ float s[4];
  VT_STORE(y, 0, VT_LOAD(s, 0));
  VT_STORE(y, 1, VT_LOAD(x, 0));
  VT_STORE(s, 0, 1.0f);
})"});
  const DevicePtr dx = allocate(4), dy = allocate(8);
  ASSERT_EQ(run(f, {3}, {1}, 0, dx, dy), 0) << emulator->report();
  for (float v : download<float>(dy, 2)) EXPECT_TRUE(std::isnan(v));
}

TEST_F(CudaEmulator, ManyThreadsAreQuick) {
  const cuda::Function f = load(saxpy), g = load(block_sum);
  const std::size_t n = slow ? 1 << 14 : 1 << 20;
  const DevicePtr dx = upload(ramp(n)), dy = upload(ramp(n));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(f, {n / 256}, {256}, 0, dx, dy, 2.0f, static_cast<int>(n)), 0)
      << emulator->report();
  ASSERT_EQ(run(g, {n / 1024}, {256}, 0, dx, dy, static_cast<int>(n)), 0) << emulator->report();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 20.0);
}

TEST_F(CudaEmulator, BlocksOfAThousandThreadsThatWaitOften) {
  const cuda::Function f = load(bitonic);
  constexpr int blocks = slow ? 1 : 4;
  std::vector<int> x(1024 * blocks);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i * 2654435761u >> 8);
  for (unsigned long seed : {99, 0, 1}) {
    if (slow && seed != 99) continue;
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x);
    ASSERT_EQ(run(f, {blocks}, {1024}, 4096, dx), 0) << emulator->report();
    auto expected = x;
    for (int b = 0; b < blocks; ++b)
      std::sort(expected.begin() + 1024 * b, expected.begin() + 1024 * (b + 1));
    EXPECT_EQ(download<int>(dx, x.size()), expected);
  }
}

// The same sources are what NVIDIA's compiler takes, without a warning. It is loaded beside the
// emulator.
TEST_F(CudaEmulator, NvidiasCompilerTakesTheSources) {
  std::string why;
  void* pointers[13] = {};
  const char* names[] = {"nvrtcVersion",           "nvrtcGetNumSupportedArchs",
                         "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
                         "nvrtcDestroyProgram",    "nvrtcCompileProgram",
                         "nvrtcGetCUBINSize",      "nvrtcGetCUBIN",
                         "nvrtcGetPTXSize",        "nvrtcGetPTX",
                         "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
                         "nvrtcGetErrorString"};
  bool found = false;
  for (const std::string& path :
       cuda::toolkit_libraries("nvrtc", {"13", "12", "11.2"}, "VT_REAL_NVRTC_LIBRARY")) {
    why = cuda::load_functions(path, names, 13, pointers);
    if ((found = why.empty())) break;
  }
  if (!found) GTEST_SKIP() << why;
  cuda::Nvrtc real;
  std::memcpy(&real, pointers, sizeof(real));
  const cuda::Nvrtc* emulated = nvrtc_;
  nvrtc_ = &real;
  for (const Source* source : emulator_kernels)
    for (const char* architecture : {"--gpu-architecture=sm_75", "--gpu-architecture=sm_90"}) {
      std::string log;
      EXPECT_FALSE(compile(source->text, &log, architecture).empty()) << source->name << log;
      EXPECT_EQ(log.find("warning"), std::string::npos) << source->name << log;
    }
  nvrtc_ = emulated;
}

}  // namespace
