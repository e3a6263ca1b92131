// The emulated CUDA driver, by kernels written by hand: right results in every order, wrong programs caught, injected faults, streams, graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/jit/cuda/cuda_library.hpp"
#include "support/cuda_emulator.hpp"
#include "support/message.hpp"

namespace {

namespace cuda = vt::detail::cuda;
using cuda::Constant;
using cuda::DevicePtr;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();

// What every source of vt begins with: checked accesses where emulated, plain ones on a device.
const char* const accesses = R"(
#ifndef VT_EMULATED
#define VT_LOAD(pointer, index) ((pointer)[index])
#define VT_STORE(pointer, index, value) ((pointer)[index] = (value))
#define VT_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
)";

struct Source {
  const char *name, *text;
};
const Source saxpy = {"saxpy", R"(
extern "C" __global__ void __launch_bounds__(256) saxpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) VT_STORE(y, i, a * VT_LOAD(x, i) + VT_LOAD(y, i));
}
)"};
const Source block_sum = {"block_sum", R"(
extern "C" __global__ void block_sum(const float* x, float* y, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += VT_LOAD(x, i);
  VT_STORE(part, threadIdx.x, sum);
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) VT_STORE(part, threadIdx.x, VT_LOAD(part, threadIdx.x) + VT_LOAD(part, threadIdx.x + half));
    __syncthreads();
  }
  if (threadIdx.x == 0) VT_STORE(y, blockIdx.x, VT_LOAD(part, 0));
}
)"};
const Source warp_sum = {"warp_sum", R"(
extern "C" __global__ void warp_sum(const double* x, double* y, int rows, int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0;
  for (int j = lane; j < columns; j += 32) sum += VT_LOAD(x, (long long)row * columns + j);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  const double first = __shfl_sync(0xffffffffu, sum, 0);
  if (lane == 31) VT_STORE(y, row, first);
}
)"};
const Source warp_scan = {"warp_scan", R"(
extern "C" __global__ void warp_scan(const int* x, int* sums, unsigned* votes, int* below) {
  const int i = threadIdx.x, lane = i % 32;
  int value = VT_LOAD(x, i);
  const unsigned odd = __ballot_sync(0xffffffffu, value & 1);
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, d);
    if (lane >= d) value += other;
  }
  VT_STORE(sums, i, value);
  VT_STORE(votes, i, odd);
  VT_STORE(below, i, __shfl_down_sync(0xffffffffu, value, 1, 8) + __popc(odd & ((1u << lane) - 1)) + (__any_sync(0xffffffffu, lane == 5) ? 1000 : 0) +
                         (__all_sync(0xffffffffu, lane < 31) ? 5000 : 0));
}
)"};
const Source histogram = {"histogram", R"(
extern "C" __global__ void histogram(const unsigned char* x, int* bins, int n, float* total, unsigned long long* largest) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[VT_LOAD(x, i) % 16], 1);
    atomicAdd(total, 1.0f);
    atomicMax(largest, (unsigned long long)VT_LOAD(x, i) * 1000000007ull);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, local[threadIdx.x]);
}
)"};
const Source transpose = {"transpose", R"(
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
  VT_DYNAMIC_SHARED(memory);
  float* tile = (float*)memory;
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (c < columns && r + k < rows) VT_STORE(tile, (threadIdx.y + k) * 33 + threadIdx.x, VT_LOAD(x, (r + k) * columns + c));
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (c < rows && r + k < columns) VT_STORE(y, (r + k) * rows + c, VT_LOAD(tile, threadIdx.x * 33 + threadIdx.y + k));
}
)"};
const Source divergent = {"divergent", R"(
struct Pair { int add; long long times; };
extern "C" __global__ void divergent(int* x, Pair p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (i >= n) return;
  int value = i;
  if (lane < 16) value += __shfl_xor_sync(0x0000ffffu, value, 8);
  else value -= __shfl_xor_sync(0xffff0000u, value, 4);
  __syncwarp();
  VT_STORE(x, i, (value + p.add) * (int)p.times);
}
)"};
const Source vectors = {"vectors", R"(
extern "C" __global__ void vectors(const float4* x, float4* y, const double2* u, double* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 a = VT_LOAD(x, i);
  VT_STORE(y, i, make_float4(a.w, a.z, a.y, a.x));
  const double2 b = VT_LOAD(u, i);
  VT_STORE(v, i, __fma_rn(b.x, b.y, 1.0));
}
)"};
const Source functions = {"functions", R"(
extern "C" __global__ void functions(const double* x, double* y, float* z, unsigned* w) {
  const int i = threadIdx.x;
  const double a = VT_LOAD(x, i);
  double s, c;
  sincospi(a, &s, &c);
  const double results[] = {erfinv(a), erfcinv(a + 0.5), normcdf(a), rcbrt(a + 2.0), s, c, cyl_bessel_i0(a), cyl_bessel_i1(a), rsqrt(a + 1.5), exp10(a), erfcx(a), normcdfinv(a * 0.5 + 0.5)};
  const float b = (float)a;
  const float narrow[] = {erfinvf(b), erfcinvf(b + 0.5f), rsqrtf(b + 1.5f), exp10f(b), __fmaf_rn(b, b, 1.0f), fmaxf(b, 0.25f), tgammaf(b + 2.0f)};
  for (int k = 0; k < 12; ++k) VT_STORE(y, i * 12 + k, results[k]);
  for (int k = 0; k < 7; ++k) VT_STORE(z, i * 7 + k, narrow[k]);
  VT_STORE(w, i * 8, __float_as_uint(b));
  VT_STORE(w, i * 8 + 1, (unsigned)__float2int_rz(b * 1e20f));
  VT_STORE(w, i * 8 + 2, (unsigned)(__double_as_longlong(a) >> 32));
  VT_STORE(w, i * 8 + 3, __umulhi(0x80000001u + i, 6u));
  VT_STORE(w, i * 8 + 4, (unsigned)(__clz(i + 1) * 100 + __ffs(i + 8) * 10000 + __popcll(0xffffffffffull + i)));
  VT_STORE(w, i * 8 + 5, (unsigned)__double2ll_rn(a * 1000.5));
  VT_STORE(w, i * 8 + 6, __brev(i + 1));
  VT_STORE(w, i * 8 + 7, (unsigned)min(i, 3) + max(i, 2));
}
)"};
const Source missing_barrier = {"missing_barrier", R"(
extern "C" __global__ void missing_barrier(int* x) {
  __shared__ int line[64];
  VT_STORE(line, threadIdx.x, (int)threadIdx.x);
  VT_STORE(x, threadIdx.x, VT_LOAD(line, 63 - threadIdx.x));
}
)"};
const Source out_of_bounds = {"out_of_bounds", R"(
extern "C" __global__ void out_of_bounds(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) VT_STORE(x, i, 1.0f);
}
)"};
const Source shared_out_of_bounds = {"shared_out_of_bounds", R"(
extern "C" __global__ void shared_out_of_bounds(float* x, int index) {
  __shared__ float one[8];
  __shared__ float two[8];
  VT_STORE(one, threadIdx.x % 8, 1.0f);
  VT_STORE(two, threadIdx.x % 8, 2.0f);
  __syncthreads();
  VT_STORE(x, threadIdx.x, VT_LOAD(one, index) + VT_LOAD(two, 0));
}
)"};
const Source dynamic_out_of_bounds = {"dynamic_out_of_bounds", R"(
extern "C" __global__ void dynamic_out_of_bounds(float* x, int index) {
  VT_DYNAMIC_SHARED(memory);
  VT_STORE((float*)memory, index, 3.0f);
  VT_STORE(x, 0, VT_LOAD((float*)memory, index));
}
)"};
const Source half_barrier = {"half_barrier", R"(
extern "C" __global__ void half_barrier(int* x) {
  if (threadIdx.x < 16) __syncthreads();
  VT_STORE(x, threadIdx.x, 1);
}
)"};
const Source mixed_wait = {"mixed_wait", R"(
extern "C" __global__ void mixed_wait(int* x) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) __syncthreads();
  else v = __shfl_xor_sync(0xffffffffu, v, 1);
  VT_STORE(x, threadIdx.x, v);
}
)"};
const Source reads_plainly = {"reads_plainly", R"(
extern "C" __global__ void reads_plainly(int* x) { x[threadIdx.x] = 1; }
)"};

class CudaEmulator : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulator) GTEST_SKIP() << "another driver is set";
    std::string reason;
    driver_ = cuda::driver(&reason);
    ASSERT_NE(driver_, nullptr) << reason;
    nvrtc_ = cuda::nvrtc(&reason);
    ASSERT_NE(nvrtc_, nullptr) << reason;
    emulator->reset();
    emulator->set_seed(0);
    emulator->set_streams(0);
    emulator->set_races(1);
    cuda::forget_lost_devices();
    cuda::Context context = nullptr;
    ASSERT_EQ(driver_->cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(driver_->cuCtxSetCurrent(context), 0);
    ASSERT_EQ(driver_->cuStreamCreate(&stream_, Constant::CU_STREAM_NON_BLOCKING), 0);
  }
  void TearDown() override {
    if (!stream_) return;
    emulator->reset();
    for (DevicePtr p : allocations_) EXPECT_EQ(driver_->cuMemFree_v2(p), 0);
    for (cuda::Module m : modules_) EXPECT_EQ(driver_->cuModuleUnload(m), 0);
    EXPECT_EQ(driver_->cuStreamDestroy_v2(stream_), 0);
    for (const char* what : {"allocations", "pinned", "streams", "events", "modules", "graphs", "graph_execs", "programs"})
      EXPECT_EQ(emulator->count(what), 0) << what;
  }

  std::string compile(const char* source, std::string* log, const char* architecture = "--gpu-architecture=sm_90", cuda::Result* result = nullptr) {
    cuda::RtcProgram program = nullptr;
    const std::string text = std::string(accesses) + source;
    EXPECT_EQ(nvrtc_->nvrtcCreateProgram(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr), 0);
    const char* options[] = {architecture, "--fmad=false"};
    const cuda::Result compiled = nvrtc_->nvrtcCompileProgram(program, 2, options);
    if (result) *result = compiled;
    std::size_t size = 0;
    EXPECT_EQ(nvrtc_->nvrtcGetProgramLogSize(program, &size), 0);
    log->resize(size);
    EXPECT_EQ(nvrtc_->nvrtcGetProgramLog(program, log->data()), 0);
    std::string cubin;
    if (compiled == 0) {
      EXPECT_EQ(nvrtc_->nvrtcGetCUBINSize(program, &size), 0);
      cubin.resize(size);
      EXPECT_EQ(nvrtc_->nvrtcGetCUBIN(program, cubin.data()), 0);
    }
    EXPECT_EQ(nvrtc_->nvrtcDestroyProgram(&program), 0);
    return cubin;
  }
  cuda::Function load(const Source& source) {
    std::string log;
    const std::string cubin = compile(source.text, &log);
    cuda::Function function = nullptr;
    EXPECT_FALSE(cubin.empty()) << log;
    if (cubin.empty()) return function;
    cuda::Module module = nullptr;
    EXPECT_EQ(driver_->cuModuleLoadData(&module, cubin.data()), 0) << emulator->report();
    modules_.push_back(module);
    EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, source.name), 0);
    return function;
  }
  DevicePtr allocate(std::size_t bytes) {
    DevicePtr p = 0;
    EXPECT_EQ(driver_->cuMemAlloc_v2(&p, bytes), 0);
    allocations_.push_back(p);
    return p;
  }
  template <class T>
  DevicePtr upload(const std::vector<T>& values) {
    const DevicePtr p = allocate(values.size() * sizeof(T));
    EXPECT_EQ(driver_->cuMemcpyHtoDAsync_v2(p, values.data(), values.size() * sizeof(T), stream_), 0);
    return p;
  }
  template <class T>
  std::vector<T> download(DevicePtr p, std::size_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(driver_->cuMemcpyDtoHAsync_v2(values.data(), p, n * sizeof(T), stream_), 0) << emulator->report();
    EXPECT_EQ(driver_->cuStreamSynchronize(stream_), 0);
    return values;
  }
  struct Size {
    unsigned x = 1, y = 1;
  };
  template <class... T>
  cuda::Result launch(cuda::Function f, Size grid, Size block, unsigned shared, T... parameters) {
    void* pointers[] = {&parameters..., nullptr};
    return driver_->cuLaunchKernel(f, grid.x, grid.y, 1, block.x, block.y, 1, shared, stream_, pointers, nullptr);
  }
  // What a wrong kernel ends with: the result of waiting for it. The report says why.
  template <class... T>
  cuda::Result run(cuda::Function f, Size grid, Size block, unsigned shared, T... parameters) {
    const cuda::Result launched = launch(f, grid, block, shared, parameters...);
    return launched ? launched : driver_->cuStreamSynchronize(stream_);
  }
  void expect_report(std::initializer_list<const char*> parts) {
    const std::string report = emulator->report();
    for (const char* part : parts) EXPECT_NE(report.find(part), std::string::npos) << report;
  }

  const cuda::Driver* driver_ = nullptr;
  const cuda::Nvrtc* nvrtc_ = nullptr;
  cuda::Stream stream_ = nullptr;
  std::vector<DevicePtr> allocations_;
  std::vector<cuda::Module> modules_;
};

std::vector<float> ramp(std::size_t n, float first = 1, float step = 0.5f) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + step * static_cast<float>(i % 1000);
  return v;
}

const unsigned long seeds[] = {0, 1, 2, 3, 12345};

// Sanitizers take their time for each switch between stacks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

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
      EXPECT_NEAR(sums[static_cast<std::size_t>(r)], std::accumulate(x.begin() + r * columns, x.begin() + (r + 1) * columns, 0.0), 1e-12);
  }
}

TEST_F(CudaEmulator, ScansAndVotesOfAWarp) {
  const cuda::Function f = load(warp_scan);
  std::vector<int> x(64);
  for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] = (i * 7) % 11;
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dsums = allocate(256), dvotes = allocate(256), dbelow = allocate(256);
    ASSERT_EQ(run(f, {1}, {64}, 0, dx, dsums, dvotes, dbelow), 0) << emulator->report();
    const auto sums = download<int>(dsums, 64), below = download<int>(dbelow, 64);
    const auto votes = download<unsigned>(dvotes, 64);
    for (int i = 0; i < 64; ++i) {
      const int first = i / 32 * 32;
      const auto sum_to = [&](int last) { return std::accumulate(x.begin() + first, x.begin() + last + 1, 0); };
      unsigned odd = 0;
      for (int k = 0; k < 32; ++k) odd |= static_cast<unsigned>(x[static_cast<std::size_t>(first + k)] & 1) << k;
      ASSERT_EQ(sums[static_cast<std::size_t>(i)], sum_to(i));
      ASSERT_EQ(votes[static_cast<std::size_t>(i)], odd);
      const int next = i % 8 == 7 ? i : i + 1;
      ASSERT_EQ(below[static_cast<std::size_t>(i)], sum_to(next) + __builtin_popcount(odd & ((1u << (i - first)) - 1)) + 1000) << i;
    }
  }
}

TEST_F(CudaEmulator, CountsWithAtomics) {
  const cuda::Function f = load(histogram);
  std::vector<unsigned char> x(3000);
  std::vector<int> expected(16);
  for (std::size_t i = 0; i < x.size(); ++i) ++expected[(x[i] = static_cast<unsigned char>(i * i % 251)) % 16u];
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dbins = upload(std::vector<int>(16)), dtotal = upload(std::vector<float>(1)),
                    dlargest = upload(std::vector<unsigned long long>(1));
    ASSERT_EQ(run(f, {3}, {64}, 0, dx, dbins, 3000, dtotal, dlargest), 0) << emulator->report();
    EXPECT_EQ(download<int>(dbins, 16), expected);
    EXPECT_EQ(download<float>(dtotal, 1)[0], 3000.0f);
    EXPECT_EQ(download<unsigned long long>(dlargest, 1)[0], *std::max_element(x.begin(), x.end()) * 1000000007ull);
  }
}

TEST_F(CudaEmulator, TransposesThroughDynamicSharedMemory) {
  const cuda::Function f = load(transpose);
  const int rows = 70, columns = 45;
  const auto x = ramp(static_cast<std::size_t>(rows * columns));
  for (unsigned long seed : seeds) {
    emulator->set_seed(seed);
    const DevicePtr dx = upload(x), dy = allocate(x.size() * sizeof(float));
    ASSERT_EQ(run(f, {2, 3}, {32, 8}, 32 * 33 * sizeof(float), dx, dy, rows, columns), 0) << emulator->report();
    const auto y = download<float>(dy, x.size());
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) ASSERT_EQ(y[static_cast<std::size_t>(c * rows + r)], x[static_cast<std::size_t>(r * columns + c)]);
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
    for (int i = 0; i < 96; ++i) ASSERT_EQ(x[static_cast<std::size_t>(i)], ((i % 32 < 16 ? i + (i ^ 8) : i - (i ^ 4)) + 5) * 3);
  }
}

TEST_F(CudaEmulator, AccessesOfSixteenBytesMustBeAligned) {
  const cuda::Function f = load(vectors);
  const DevicePtr dx = upload(ramp(44)), dy = allocate(160), du = upload(std::vector<double>(20, 1.5)), dv = allocate(80);
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
  const DevicePtr dx = upload(x), dy = allocate(n * 12 * 8), dz = allocate(n * 7 * 4), dw = allocate(n * 8 * 4);
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
    EXPECT_EQ(w[i * 8 + 4], static_cast<unsigned>(__builtin_clz(static_cast<unsigned>(i + 1)) * 100 + __builtin_ffs(static_cast<int>(i + 8)) * 10000 +
                                                  __builtin_popcountll(0xffffffffffull + i)));
    EXPECT_EQ(w[i * 8 + 7], static_cast<unsigned>(std::min<std::size_t>(i, 3) + std::max<std::size_t>(i, 2)));
  }
  EXPECT_EQ(w[6], 0x80000000u);
}

TEST_F(CudaEmulator, ResultsThatHangOnTheOrderOfThreadsDiffer) {
  emulator->set_races(0);
  const cuda::Function f = load(missing_barrier);
  std::set<std::vector<int>> results;
  for (unsigned long seed = 0; seed < 4; ++seed) {
    emulator->set_seed(seed);
    const DevicePtr dx = allocate(64 * sizeof(int));
    ASSERT_EQ(run(f, {1}, {64}, 0, dx), 0) << emulator->report();
    results.insert(download<int>(dx, 64));
  }
  EXPECT_GE(results.size(), 3u);
}

TEST_F(CudaEmulator, RacesAreFoundInAnyOrder) {
  struct Case {
    const char *name, *body;
    unsigned grid, block;
    const char* report;  // null: no race
  };
  const Case cases[] = {
      {"shared", "__shared__ int s[64]; VT_STORE(s, i, i); VT_STORE(x, i, VT_LOAD(s, i ^ 1));", 1, 64, "of shared memory"},
      {"ordered", "__shared__ int s[64]; VT_STORE(s, i, i); __syncthreads(); VT_STORE(x, i, VT_LOAD(s, i ^ 1));", 1, 64, nullptr},
      {"twice", "__shared__ int s[64]; VT_STORE(s, i, i); __syncthreads(); const int v = VT_LOAD(s, 63 - i); VT_STORE(s, i, v);", 1, 64,
       "of shared memory"},
      {"warp", "__shared__ int s[32]; VT_STORE(s, i, i); __syncwarp(); VT_STORE(x, i, VT_LOAD(s, i ^ 1));", 1, 32, nullptr},
      {"warps", "__shared__ int s[64]; VT_STORE(s, i, i); __syncwarp(); VT_STORE(x, i, VT_LOAD(s, 63 - i));", 1, 64, "of shared memory"},
      {"read", "VT_STORE(x, i + 64 * b, VT_LOAD(x, 64 + i));", 2, 64, "a race: "},
      {"same", "VT_STORE(x, 0, 7);", 2, 64, nullptr},
      {"other", "VT_STORE(x, 0, b);", 2, 64, "writes 4 bytes at byte 0"},
      {"bytes", "VT_STORE((char*)x, i, 1); VT_STORE((char*)x, 200 + i + b * 64, 2);", 1, 64, nullptr},
      {"bytes2", "VT_STORE((char*)x, i, (char)(i + b));", 2, 64, "writes 1 bytes"},
      {"atomic", "atomicAdd(x + i % 3, 1);", 2, 64, nullptr},
      {"mixed", "atomicAdd(x, 1); if (b == 1) VT_STORE(x, 100, VT_LOAD(x, 0));", 2, 64, "a race: "},
      {"inplace", "VT_STORE(x, i + 64 * b, VT_LOAD(x, i + 64 * b) + 1); VT_STORE(x, i + 64 * b, VT_LOAD(x, i + 64 * b) * 2);", 2, 64, nullptr},
      {"readers", "const int v = VT_LOAD(x, 0); __syncthreads(); if (i == 3) VT_STORE(x, 0, v);", 1, 64, nullptr},
      {"readers2", "const int v = VT_LOAD(x, 0); __syncthreads(); if (i == 3) VT_STORE(x, 0, v + 1);", 2, 64, "a race: "},
  };
  const DevicePtr dx = upload(std::vector<int>(256));
  for (const Case& c : cases) {
    const std::string text =
        std::string("extern \"C\" __global__ void k(int* x) { const int i = threadIdx.x, b = blockIdx.x; (void)b; ") + c.body + " }";
    const cuda::Function f = load({"k", text.c_str()});
    for (unsigned long seed : seeds) {
      emulator->set_seed(seed);
      const cuda::Result result = run(f, {c.grid}, {c.block}, 0, dx);
      if (!c.report) {
        EXPECT_EQ(result, 0) << c.name << emulator->report();
      } else {
        EXPECT_EQ(result, Constant::CUDA_ERROR_LAUNCH_FAILED) << c.name << seed;
        if (seed == 0) expect_report({c.report});
      }
      emulator->reset();
    }
  }
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
template <class T> static __device__ T first_garbage() { __shared__ T unset[2]; return VT_LOAD(unset, 1); }
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

TEST_F(CudaEmulator, AnAccessOutOfBoundsEndsAllWork) {
  const cuda::Function f = load(out_of_bounds);
  const DevicePtr dx = allocate(100 * sizeof(float)), next = allocate(100 * sizeof(float));
  ASSERT_EQ(launch(f, {4}, {32}, 0, dx, 100), 0);  // not noticed yet
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"kernel out_of_bounds, block (3, 0, 0), thread (4, 0, 0)", "writes 4 bytes at byte 400 of allocation",
                 "(400 bytes on device 0, live): out of bounds"});
  EXPECT_EQ(launch(f, {1}, {32}, 0, next, 10), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);  // nothing runs any more
  DevicePtr p = 0;
  EXPECT_EQ(driver_->cuMemAlloc_v2(&p, 16), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string text = vt_test::message([&] { cuda::check(driver_->cuStreamSynchronize(stream_), "cuStreamSynchronize"); });
  EXPECT_NE(text.find("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); cuda(0) is lost"),
            std::string::npos)
      << text;
  EXPECT_NE(vt_test::message([] { cuda::require_device(0); }).find("is lost since cuStreamSynchronize"), std::string::npos);
}

TEST_F(CudaEmulator, AnIndexBeyondItsOwnArrayIsNoticedInsideOfAnother) {
  const cuda::Function f = load({"far", R"(extern "C" __global__ void far(float* x, long long index) { VT_STORE(x, index, 1.0f); })"});
  const DevicePtr dx = allocate(400), other = allocate(400);
  EXPECT_EQ(run(f, {1}, {1}, 0, dx, static_cast<long long>(other - dx) / 4), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"beyond the array that it indexes"});
}

TEST_F(CudaEmulator, FreedMemoryIsNotUsed) {
  const cuda::Function f = load(out_of_bounds);
  DevicePtr p = 0;
  ASSERT_EQ(driver_->cuMemAllocAsync(&p, 400, stream_), 0);
  ASSERT_EQ(run(f, {1}, {32}, 0, p, 50), 0) << emulator->report();
  ASSERT_EQ(driver_->cuMemFreeAsync(p, stream_), 0);
  EXPECT_EQ(run(f, {1}, {32}, 0, p, 50), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"freed memory"});
}

TEST_F(CudaEmulator, MemoryOfAStreamIsNotThereBeforeItsStreamComesToIt) {
  const cuda::Function f = load(out_of_bounds);
  cuda::Stream other = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, Constant::CU_STREAM_NON_BLOCKING), 0);
  bool ended_well = false, ended_badly = false;
  for (unsigned long seed = 0; seed < 8; ++seed) {
    emulator->reset();
    emulator->set_seed(seed);
    DevicePtr p = 0;
    ASSERT_EQ(driver_->cuMemAllocAsync(&p, 400, other), 0);
    const cuda::Result result = run(f, {1}, {32}, 0, p, 50);  // in stream_, without waiting
    (result ? ended_badly : ended_well) = true;
    emulator->reset();
    ASSERT_EQ(driver_->cuMemFree_v2(p), 0);
  }
  EXPECT_TRUE(ended_badly);
  EXPECT_TRUE(ended_well);  // so only trying several orders shows it
  EXPECT_EQ(driver_->cuStreamDestroy_v2(other), 0);
}

TEST_F(CudaEmulator, SharedVariablesHaveBounds) {
  const cuda::Function f = load(shared_out_of_bounds);
  const DevicePtr dx = allocate(32 * sizeof(float));
  ASSERT_EQ(run(f, {1}, {32}, 0, dx, 7), 0) << emulator->report();
  EXPECT_EQ(download<float>(dx, 32)[5], 3.0f);
  for (int index : {8, -1}) {
    EXPECT_EQ(run(f, {1}, {32}, 0, dx, index), Constant::CUDA_ERROR_ILLEGAL_ADDRESS) << index;
    expect_report({"reads 4 bytes", "shared variable", "out of bounds"});
    emulator->reset();
  }
  const cuda::Function g = load(dynamic_out_of_bounds);
  ASSERT_EQ(run(g, {1}, {1}, 40, dx, 9), 0) << emulator->report();
  EXPECT_EQ(run(g, {1}, {1}, 40, dx, 10), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"of dynamic shared memory: out of bounds"});
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

TEST_F(CudaEmulator, DivergentBarriersAreErrors) {
  const DevicePtr dx = allocate(32 * sizeof(int));
  for (unsigned long seed : {0, 1, 7}) {
    emulator->set_seed(seed);
    EXPECT_EQ(run(load(half_barrier), {1}, {32}, 0, dx), Constant::CUDA_ERROR_LAUNCH_FAILED);
    expect_report({"divergent: waits at __syncthreads in line", "has ended"});
    emulator->reset();
    EXPECT_EQ(run(load(mixed_wait), {1}, {32}, 0, dx), Constant::CUDA_ERROR_LAUNCH_FAILED);
    expect_report({"divergent: waits at __syncthreads in line", "waits at a shuffle"});
    emulator->reset();
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(CudaEmulator, AccessesThatAreNotCheckedAreNoticed) {
  const DevicePtr dx = allocate(32 * sizeof(int));
  EXPECT_EQ(run(load(reads_plainly), {1}, {32}, 0, dx), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"without VT_LOAD or VT_STORE"});
  emulator->reset();
  const cuda::Function f = load({"divides", R"(extern "C" __global__ void divides(int* x, int by) { VT_STORE(x, 0, 7 / by); })"});
  EXPECT_EQ(run(f, {1}, {1}, 0, dx, 0), Constant::CUDA_ERROR_LAUNCH_FAILED);
  expect_report({"integer division"});
  emulator->reset();
  EXPECT_EQ(run(f, {1}, {1}, 0, dx, 2), 0);
}
#endif

TEST_F(CudaEmulator, LaunchesThatADeviceRefuses) {
  const cuda::Function f = load(saxpy);
  const DevicePtr dx = upload(ramp(4)), dy = upload(ramp(4));
  EXPECT_EQ(run(f, {0}, {32}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(f, {1}, {2048}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(f, {1}, {512}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);  // __launch_bounds__(256)
  EXPECT_EQ(run(f, {1}, {32}, 64 << 10, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(driver_->cuFuncSetAttribute(f, Constant::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10), 0);
  EXPECT_EQ(run(f, {1}, {32}, 64 << 10, dx, dy, 1.0f, 4), 0);
  EXPECT_EQ(run(nullptr, {1}, {32}, 0, dx), Constant::CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaEmulator, ErrorsOfTheSourceAreInTheLog) {
  std::string log;
  cuda::Result result = 0;
  EXPECT_EQ(compile("extern \"C\" __global__ void f(float* x) {\n  y[0] = 1;\n}", &log, "--gpu-architecture=sm_90", &result), "");
  EXPECT_EQ(result, Constant::NVRTC_ERROR_COMPILATION);
  EXPECT_NE(log.find("kernel.cu:8:"), std::string::npos) << log;  // behind the lines in front
  EXPECT_NE(log.find("‘y’ was not declared"), std::string::npos) << log;
  compile("", &log, "--gpu-architecture=sm_12", &result);
  EXPECT_EQ(result, Constant::NVRTC_ERROR_INVALID_OPTION);
  compile("", &log, "--frobnicate", &result);
  EXPECT_EQ(result, Constant::NVRTC_ERROR_INVALID_OPTION);
  EXPECT_NE(log.find("unrecognized option --frobnicate"), std::string::npos) << log;
}

TEST_F(CudaEmulator, ImagesForOtherDevicesAreRefused) {
  std::string log;
  const std::string other = compile(saxpy.text, &log, "--gpu-architecture=sm_75");
  cuda::Module module = nullptr;
  EXPECT_EQ(driver_->cuModuleLoadData(&module, other.data()), Constant::CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(driver_->cuModuleLoadData(&module, "no image at all, whatever it is"), Constant::CUDA_ERROR_INVALID_IMAGE);
  cuda::Function function = nullptr;
  EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, "f"), Constant::CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaEmulator, InjectedFailuresComeOnce) {
  emulator->fail("cuMemAlloc_v2", 1, Constant::CUDA_ERROR_OUT_OF_MEMORY);
  DevicePtr p = 0;
  allocate(16);
  EXPECT_EQ(driver_->cuMemAlloc_v2(&p, 16), Constant::CUDA_ERROR_OUT_OF_MEMORY);
  allocate(16);
  emulator->fail("cuStreamSynchronize", -1, Constant::CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), Constant::CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), Constant::CUDA_ERROR_UNKNOWN);
  emulator->reset();
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), 0);
  const cuda::Function f = load(saxpy);
  const DevicePtr dx = upload(ramp(4)), dy = upload(ramp(4));
  emulator->fail("kernel", 1, Constant::CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(run(f, {1}, {32}, 0, dx, dy, 1.0f, 4), 0);
  EXPECT_EQ(run(f, {1}, {32}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(driver_->cuMemAlloc_v2(&p, 16), Constant::CUDA_ERROR_LAUNCH_FAILED);  // and so it stays
  emulator->reset();
  emulator->fail("nvrtcCompileProgram", 0, Constant::NVRTC_ERROR_INTERNAL_ERROR);
  std::string log;
  cuda::Result result = 0;
  compile(saxpy.text, &log, "--gpu-architecture=sm_90", &result);
  EXPECT_EQ(result, Constant::NVRTC_ERROR_INTERNAL_ERROR);
}

TEST_F(CudaEmulator, MemoryEnds) {
  DevicePtr p = 0;
  std::size_t free = 0, total = 0;
  ASSERT_EQ(driver_->cuMemGetInfo_v2(&free, &total), 0);
  EXPECT_EQ(driver_->cuMemAllocAsync(&p, free + 1, stream_), Constant::CUDA_ERROR_OUT_OF_MEMORY);
  const std::string text = vt_test::message([] { cuda::check(Constant::CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocAsync"); });
  EXPECT_NE(text.find(" MiB are free"), std::string::npos) << text;
}

TEST_F(CudaEmulator, WorkIsDoneWhenSomebodyWaits) {
  const cuda::Function f = load(saxpy);
  float* pinned = nullptr;
  ASSERT_EQ(driver_->cuMemAllocHost_v2(reinterpret_cast<void**>(&pinned), 16), 0);
  const DevicePtr dx = upload(ramp(4, 1, 0)), dy = upload(ramp(4, 0, 0));
  ASSERT_EQ(launch(f, {1}, {32}, 0, dx, dy, 3.0f, 4), 0);
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync_v2(pinned, dy, 16, stream_), 0);
  EXPECT_TRUE(std::isnan(pinned[0]));  // who looks too early sees garbage
  EXPECT_EQ(driver_->cuStreamQuery(stream_), Constant::CUDA_ERROR_NOT_READY);
  ASSERT_EQ(driver_->cuStreamSynchronize(stream_), 0);
  EXPECT_EQ(pinned[0], 3.0f);
  EXPECT_EQ(driver_->cuStreamQuery(stream_), 0);
  // A copy from pinned memory reads it when its turn comes, one from other memory at once.
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync_v2(dy, pinned, 16, stream_), 0);
  pinned[0] = 8;
  EXPECT_EQ(download<float>(dy, 1)[0], 8.0f);
  float plain = 5;
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync_v2(dy, &plain, 4, stream_), 0);
  plain = 6;
  EXPECT_EQ(download<float>(dy, 1)[0], 5.0f);
  ASSERT_EQ(driver_->cuMemFreeHost(pinned), 0);
}

TEST_F(CudaEmulator, StreamsWaitForEvents) {
  const cuda::Function f = load(saxpy);
  cuda::Stream other = nullptr;
  cuda::Event event = nullptr, later = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, Constant::CU_STREAM_NON_BLOCKING), 0);
  ASSERT_EQ(driver_->cuEventCreate(&event, Constant::CU_EVENT_DEFAULT), 0);
  ASSERT_EQ(driver_->cuEventCreate(&later, Constant::CU_EVENT_DEFAULT), 0);
  for (int mode : {0, 1, 2})
    for (bool waits : {true, false}) {
      std::set<float> results;
      for (unsigned long seed = 0; seed < 12; ++seed) {
        emulator->set_streams(mode);
        emulator->set_seed(seed);
        const DevicePtr dx = upload(ramp(4, 1, 0)), dy = upload(ramp(4, 0, 0));
        ASSERT_EQ(driver_->cuStreamSynchronize(stream_), 0);
        ASSERT_EQ(launch(f, {1}, {32}, 0, dx, dx, 1.0f, 4), 0);  // x = 2
        ASSERT_EQ(driver_->cuEventRecord(event, stream_), 0);
        if (waits) {
          EXPECT_EQ(driver_->cuStreamWaitEvent(other, event, 0), 0);
        }
        std::swap(stream_, other);
        ASSERT_EQ(launch(f, {1}, {32}, 0, dx, dy, 1.0f, 4), 0);  // y = x, in the other stream
        ASSERT_EQ(driver_->cuEventRecord(later, stream_), 0);
        std::swap(stream_, other);
        ASSERT_EQ(driver_->cuEventSynchronize(later), 0);
        ASSERT_EQ(driver_->cuCtxSynchronize(), 0);
        results.insert(download<float>(dy, 1)[0]);
        if (waits) {
          float milliseconds = -1;
          ASSERT_EQ(driver_->cuEventElapsedTime(&milliseconds, event, later), 0);
          EXPECT_GE(milliseconds, 0.0f);
        }
      }
      if (waits || mode == 2) {
        EXPECT_EQ(results, (std::set<float>{2})) << mode;
      } else if (mode == 0) {
        EXPECT_EQ(results, (std::set<float>{1, 2}));
      }
    }
  emulator->set_streams(0);
  EXPECT_EQ(driver_->cuEventDestroy_v2(event), 0);
  EXPECT_EQ(driver_->cuEventDestroy_v2(later), 0);
  EXPECT_EQ(driver_->cuStreamDestroy_v2(other), 0);
}

TEST_F(CudaEmulator, GraphsRepeatWhatWasCaptured) {
  const cuda::Function f = load(saxpy);
  cuda::Stream other = nullptr;
  cuda::Event event = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, Constant::CU_STREAM_NON_BLOCKING), 0);
  ASSERT_EQ(driver_->cuEventCreate(&event, Constant::CU_EVENT_DISABLE_TIMING), 0);
  const DevicePtr dx = upload(ramp(4, 1, 0)), dy = upload(ramp(4, 0, 0)), dz = upload(ramp(4, 0, 0));
  const auto capture = [&](float a) {
    EXPECT_EQ(driver_->cuStreamBeginCapture_v2(stream_, Constant::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    EXPECT_EQ(launch(f, {1}, {32}, 0, dx, dy, a, 4), 0);
    EXPECT_EQ(driver_->cuEventRecord(event, stream_), 0);
    EXPECT_EQ(driver_->cuStreamWaitEvent(other, event, 0), 0);
    std::swap(stream_, other);
    EXPECT_EQ(launch(f, {1}, {32}, 0, dy, dz, 1.0f, 4), 0);
    std::swap(stream_, other);
    EXPECT_EQ(driver_->cuEventRecord(event, other), 0);
    EXPECT_EQ(driver_->cuStreamWaitEvent(stream_, event, 0), 0);
    cuda::Graph graph = nullptr;
    EXPECT_EQ(driver_->cuStreamEndCapture(stream_, &graph), 0);
    return graph;
  };
  const cuda::Graph graph = capture(2);
  EXPECT_EQ(download<float>(dy, 1)[0], 0.0f);  // captured, not run
  cuda::GraphExec exec = nullptr;
  ASSERT_EQ(driver_->cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(driver_->cuGraphLaunch(exec, stream_), 0);
  EXPECT_EQ(download<float>(dy, 1)[0], 6.0f);
  EXPECT_EQ(download<float>(dz, 1)[0], 12.0f);
  const cuda::Graph changed = capture(10);
  cuda::GraphExecUpdateInfo info = {};
  ASSERT_EQ(driver_->cuGraphExecUpdate_v2(exec, changed, &info), 0);
  ASSERT_EQ(driver_->cuGraphLaunch(exec, stream_), 0);
  EXPECT_EQ(download<float>(dy, 1)[0], 16.0f);

  // What would wait breaks a capture, and so does a stream that does not come back.
  cuda::Graph none = nullptr;
  ASSERT_EQ(driver_->cuStreamBeginCapture_v2(stream_, Constant::CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver_->cuStreamEndCapture(stream_, &none), Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(driver_->cuStreamBeginCapture_v2(stream_, Constant::CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
  ASSERT_EQ(driver_->cuEventRecord(event, stream_), 0);
  ASSERT_EQ(driver_->cuStreamWaitEvent(other, event, 0), 0);
  std::swap(stream_, other);
  EXPECT_EQ(launch(f, {1}, {32}, 0, dy, dz, 1.0f, 4), 0);
  std::swap(stream_, other);
  EXPECT_EQ(driver_->cuStreamEndCapture(stream_, &none), 904);
  const cuda::GraphExec gone = exec;
  EXPECT_EQ(driver_->cuGraphExecDestroy(exec), 0);
  EXPECT_EQ(driver_->cuGraphLaunch(gone, stream_), Constant::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver_->cuGraphDestroy(graph), 0);
  EXPECT_EQ(driver_->cuGraphDestroy(changed), 0);
  EXPECT_EQ(driver_->cuEventDestroy_v2(event), 0);
  EXPECT_EQ(driver_->cuStreamDestroy_v2(other), 0);
}

TEST_F(CudaEmulator, ManyThreadsAreQuick) {
  const cuda::Function f = load(saxpy), g = load(block_sum);
  const std::size_t n = slow ? 1 << 14 : 1 << 20;
  const DevicePtr dx = upload(ramp(n)), dy = upload(ramp(n));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(f, {n / 256}, {256}, 0, dx, dy, 2.0f, static_cast<int>(n)), 0) << emulator->report();
  ASSERT_EQ(run(g, {n / 1024}, {256}, 0, dx, dy, static_cast<int>(n)), 0) << emulator->report();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 20.0);
}

const Source bitonic = {"bitonic", R"(
extern "C" __global__ void __launch_bounds__(1024) bitonic(int* x) {
  VT_DYNAMIC_SHARED(memory);
  int* keys = (int*)memory;
  const int i = threadIdx.x;
  VT_STORE(keys, i, VT_LOAD(x, blockIdx.x * 1024 + i));
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      const int j = i ^ step;
      if (j > i) {
        const int a = VT_LOAD(keys, i), b = VT_LOAD(keys, j);
        if ((a > b) == ((i & size) == 0)) {
          VT_STORE(keys, i, b);
          VT_STORE(keys, j, a);
        }
      }
    }
  __syncthreads();
  VT_STORE(x, blockIdx.x * 1024 + i, VT_LOAD(keys, i));
}
)"};

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
    for (int b = 0; b < blocks; ++b) std::sort(expected.begin() + 1024 * b, expected.begin() + 1024 * (b + 1));
    EXPECT_EQ(download<int>(dx, x.size()), expected);
  }
}

TEST_F(CudaEmulator, ModulesComeAndGo) {
  std::string log;
  const std::string cubin = compile(saxpy.text, &log);
  const DevicePtr dx = upload(ramp(4)), dy = upload(ramp(4));
  for (int i = 0; i < 300; ++i) {
    cuda::Module module = nullptr;
    cuda::Function f = nullptr;
    ASSERT_EQ(driver_->cuModuleLoadData(&module, cubin.data()), 0);
    ASSERT_EQ(driver_->cuModuleGetFunction(&f, module, "saxpy"), 0);
    ASSERT_EQ(launch(f, {1}, {32}, 0, dx, dy, 1.0f, 4), 0);
    ASSERT_EQ(driver_->cuModuleUnload(module), 0);  // what was launched still runs
    ASSERT_EQ(launch(f, {1}, {32}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_INVALID_HANDLE);
  }
  EXPECT_EQ(download<float>(dy, 1)[0], 301.0f);
}

TEST_F(CudaEmulator, ThreadsOfTheHostWorkSideBySide) {
  const cuda::Function f = load(block_sum), g = load(saxpy);
  cuda::Context context = nullptr;
  ASSERT_EQ(driver_->cuCtxGetCurrent(&context), 0);
  for (int mode : {0, 1, 2}) {
    emulator->set_streams(mode);
    emulator->set_seed(static_cast<unsigned long>(mode) + 4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        EXPECT_EQ(driver_->cuCtxSetCurrent(context), 0);
        cuda::Stream stream = nullptr;
        EXPECT_EQ(driver_->cuStreamCreate(&stream, Constant::CU_STREAM_NON_BLOCKING), 0);
        for (int round = 0; round < 10; ++round) {
          const int n = 500 + t;
          std::vector<float> x(static_cast<std::size_t>(n), static_cast<float>(t + 1)), y(1);
          DevicePtr dx = 0, dy = 0;
          EXPECT_EQ(driver_->cuMemAllocAsync(&dx, x.size() * 4, stream), 0);
          EXPECT_EQ(driver_->cuMemAllocAsync(&dy, 4, stream), 0);
          EXPECT_EQ(driver_->cuMemcpyHtoDAsync_v2(dx, x.data(), x.size() * 4, stream), 0);
          float a = 1;
          int count = n;
          void* scale[] = {&dx, &dx, &a, &count};
          EXPECT_EQ(driver_->cuLaunchKernel(g, 2, 1, 1, 256, 1, 1, 0, stream, scale, nullptr), 0);
          void* sum[] = {&dx, &dy, &count};
          EXPECT_EQ(driver_->cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, stream, sum, nullptr), 0);
          EXPECT_EQ(driver_->cuMemcpyDtoHAsync_v2(y.data(), dy, 4, stream), 0);
          EXPECT_EQ(driver_->cuMemFreeAsync(dx, stream), 0);
          EXPECT_EQ(driver_->cuMemFreeAsync(dy, stream), 0);
          EXPECT_EQ(driver_->cuStreamSynchronize(stream), 0) << emulator->report();
          EXPECT_EQ(y[0], 2.0f * static_cast<float>((t + 1) * n));
        }
        EXPECT_EQ(driver_->cuStreamDestroy_v2(stream), 0);
      });
    for (std::thread& thread : threads) thread.join();
  }
  emulator->set_streams(0);
}

// The same sources are what NVIDIA's compiler takes, without a warning. It is loaded beside the emulator.
TEST_F(CudaEmulator, NvidiasCompilerTakesTheSources) {
  std::string why;
  void* pointers[13] = {};
  const char* names[] = {"nvrtcVersion",           "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram", "nvrtcDestroyProgram",
                         "nvrtcCompileProgram",    "nvrtcGetCUBINSize",         "nvrtcGetCUBIN",          "nvrtcGetPTXSize",    "nvrtcGetPTX",
                         "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",        "nvrtcGetErrorString"};
  bool found = false;
  for (const std::string& path : cuda::toolkit_libraries("nvrtc", {"13", "12", "11.2"}, "VT_REAL_NVRTC_LIBRARY")) {
    why = cuda::load_functions(path, names, 13, pointers);
    if ((found = why.empty())) break;
  }
  if (!found) GTEST_SKIP() << why;
  cuda::Nvrtc real;
  std::memcpy(&real, pointers, sizeof(real));
  const cuda::Nvrtc* emulated = nvrtc_;
  nvrtc_ = &real;
  for (const Source& source : {saxpy, block_sum, warp_sum, warp_scan, histogram, transpose, divergent, vectors, functions, missing_barrier,
                               out_of_bounds, shared_out_of_bounds, dynamic_out_of_bounds, half_barrier, mixed_wait, reads_plainly, bitonic})
    for (const char* architecture : {"--gpu-architecture=sm_75", "--gpu-architecture=sm_90"}) {
      std::string log;
      EXPECT_FALSE(compile(source.text, &log, architecture).empty()) << source.name << log;
      EXPECT_EQ(log.find("warning"), std::string::npos) << source.name << log;
    }
  nvrtc_ = emulated;
}

}  // namespace
