// The emulated CUDA driver: wrong kernels are caught, and told what is wrong; refused launches,
// images and sources; injected faults.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/emulator_fixture.hpp"

namespace {

using namespace vt_test;

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
      {"shared", "__shared__ int s[64]; VT_STORE(s, i, i); VT_STORE(x, i, VT_LOAD(s, i ^ 1));", 1,
       64, "of shared memory"},
      {"ordered",
       "__shared__ int s[64]; VT_STORE(s, i, i); __syncthreads(); VT_STORE(x, i, VT_LOAD(s, i ^ "
       "1));",
       1, 64, nullptr},
      {"twice",
       "__shared__ int s[64]; VT_STORE(s, i, i); __syncthreads(); const int v = VT_LOAD(s, 63 - "
       "i); VT_STORE(s, i, v);",
       1, 64, "of shared memory"},
      {"warp",
       "__shared__ int s[32]; VT_STORE(s, i, i); __syncwarp(); VT_STORE(x, i, VT_LOAD(s, i ^ 1));",
       1, 32, nullptr},
      {"warps",
       "__shared__ int s[64]; VT_STORE(s, i, i); __syncwarp(); VT_STORE(x, i, VT_LOAD(s, 63 - i));",
       1, 64, "of shared memory"},
      {"read", "VT_STORE(x, i + 64 * b, VT_LOAD(x, 64 + i));", 2, 64, "a race: "},
      {"same", "VT_STORE(x, 0, 7);", 2, 64, nullptr},
      {"other", "VT_STORE(x, 0, b);", 2, 64, "writes 4 bytes at byte 0"},
      {"bytes", "VT_STORE((char*)x, i, 1); VT_STORE((char*)x, 200 + i + b * 64, 2);", 1, 64,
       nullptr},
      {"bytes2", "VT_STORE((char*)x, i, (char)(i + b));", 2, 64, "writes 1 bytes"},
      {"atomic", "atomicAdd(x + i % 3, 1);", 2, 64, nullptr},
      {"mixed", "atomicAdd(x, 1); if (b == 1) VT_STORE(x, 100, VT_LOAD(x, 0));", 2, 64, "a race: "},
      {"inplace",
       "VT_STORE(x, i + 64 * b, VT_LOAD(x, i + 64 * b) + 1); VT_STORE(x, i + 64 * b, VT_LOAD(x, i "
       "+ 64 * b) * 2);",
       2, 64, nullptr},
      {"readers", "const int v = VT_LOAD(x, 0); __syncthreads(); if (i == 3) VT_STORE(x, 0, v);", 1,
       64, nullptr},
      {"readers2",
       "const int v = VT_LOAD(x, 0); __syncthreads(); if (i == 3) VT_STORE(x, 0, v + 1);", 2, 64,
       "a race: "},
      // Shared memory as any other array.
      {"plain", "__shared__ int s[64]; s[i] = i; VT_STORE(x, i, s[i ^ 1]);", 1, 64,
       "of shared memory"},
      {"plain2", "__shared__ int s[64]; s[i] = i; __syncthreads(); VT_STORE(x, i, s[i ^ 1]);", 1,
       64, nullptr},
      {"plain3",
       "__shared__ int s[64]; int* p = s + 63 - i; *p = i; __syncthreads(); const int v = s[i]; *p "
       "= v + 1;",
       1, 64, "of shared memory"},
  };
  const DevicePtr dx = upload(std::vector<int>(256));
  for (const Case& c : cases) {
    const std::string text = std::string(
                                 "extern \"C\" __global__ void k(int* x) { const int i = "
                                 "threadIdx.x, b = blockIdx.x; (void)b; ") +
                             c.body + " }";
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

TEST_F(CudaEmulator, AnAccessOutOfBoundsEndsAllWork) {
  const cuda::Function f = load(out_of_bounds);
  const DevicePtr dx = allocate(100 * sizeof(float)), next = allocate(100 * sizeof(float));
  ASSERT_EQ(launch(f, {4}, {32}, 0, dx, 100), 0);  // not noticed yet
  EXPECT_EQ(driver_->cuStreamSynchronize(stream_), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"kernel out_of_bounds, block (3, 0, 0), thread (4, 0, 0)",
                 "writes 4 bytes at byte 400 of allocation",
                 "(400 bytes on device 0, live): out of bounds"});
  // nothing runs any more
  EXPECT_EQ(launch(f, {1}, {32}, 0, next, 10), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  DevicePtr p = 0;
  EXPECT_EQ(driver_->cuMemAlloc_v2(&p, 16), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string text =
      message([&] { cuda::check(driver_->cuStreamSynchronize(stream_), "cuStreamSynchronize"); });
  for (const char* part :
       {"cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
        "encountered); the driver's log: ",
        "kernel out_of_bounds, block (3, 0, 0), thread (4, 0, 0)", "; cuda(0) is lost"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(message([] { cuda::require_device(0); }).find("is lost since cuStreamSynchronize"),
            std::string::npos);
}

TEST_F(CudaEmulator, AnIndexBeyondItsOwnArrayIsNoticedInsideOfAnother) {
  const cuda::Function f = load({"far",
                                 R"(extern "C" __global__ void far(float* x, long long index) {
  VT_STORE(x, index, 1.0f);
})"});
  const DevicePtr dx = allocate(400), other = allocate(400);
  EXPECT_EQ(run(f, {1}, {1}, 0, dx, static_cast<long long>(other - dx) / 4),
            Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
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

TEST_F(CudaEmulator, PlainAccessesOfSharedMemoryHaveBounds) {
  const cuda::Function f =
      load({"plain_shared", R"(extern "C" __global__ void plain_shared(float* x, int index) {
  VT_DYNAMIC_SHARED(memory);
  float* const rows = (float*)memory;
  rows[threadIdx.x] = threadIdx.x;
  __syncthreads();
  VT_STORE(x, threadIdx.x, rows[(threadIdx.x + index) % 64]);
})"});
  const DevicePtr dx = allocate(32 * sizeof(float));
  ASSERT_EQ(run(f, {1}, {32}, 128, dx, 0), 0) << emulator->report();
  EXPECT_EQ(download<float>(dx, 32)[5], 5.0f);
  EXPECT_EQ(run(f, {1}, {32}, 128, dx, 1), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"thread (31, 0, 0)",
                 "reads 4 bytes at byte 128 of 128 of dynamic shared memory: out of bounds"});
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

TEST_F(CudaEmulator, AccessesThatAreNotCheckedAreNoticed) {
  const DevicePtr dx = allocate(32 * sizeof(int));
  EXPECT_EQ(run(load(reads_plainly), {1}, {32}, 0, dx), Constant::CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_report({"writes 4 bytes at byte 0 of allocation", "without VT_LOAD or VT_STORE"});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(CudaEmulator, DivisionsByZeroAreNoticed) {
  const DevicePtr dx = allocate(32 * sizeof(int));
  const cuda::Function f =
      load({"divides",
            R"(extern "C" __global__ void divides(int* x, int by) { VT_STORE(x, 0, 7 / by); })"});
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
  // __launch_bounds__(256)
  EXPECT_EQ(run(f, {1}, {512}, 0, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(run(f, {1}, {32}, 64 << 10, dx, dy, 1.0f, 4), Constant::CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(driver_->cuFuncSetAttribute(
                f, Constant::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10),
            0);
  EXPECT_EQ(run(f, {1}, {32}, 64 << 10, dx, dy, 1.0f, 4), 0);
  EXPECT_EQ(run(nullptr, {1}, {32}, 0, dx), Constant::CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaEmulator, ErrorsOfTheSourceAreInTheLog) {
  std::string log;
  cuda::Result result = 0;
  EXPECT_EQ(compile("extern \"C\" __global__ void f(float* x) {\n  y[0] = 1;\n}", &log,
                    "--gpu-architecture=sm_90", &result),
            "");
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
  EXPECT_EQ(driver_->cuModuleLoadData(&module, other.data()),
            Constant::CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(driver_->cuModuleLoadData(&module, "no image at all, whatever it is"),
            Constant::CUDA_ERROR_INVALID_IMAGE);
  cuda::Function function = nullptr;
  EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, "f"),
            Constant::CUDA_ERROR_INVALID_HANDLE);
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
  const std::string text =
      message([] { cuda::check(Constant::CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocAsync"); });
  EXPECT_NE(text.find(" MiB are free"), std::string::npos) << text;
}

}  // namespace
