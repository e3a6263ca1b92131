// The emulated CUDA driver: what runs when. Streams, events, graphs, modules that go while their
// kernels wait, threads of the host.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/emulator_fixture.hpp"

namespace {

using namespace vt_test;

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
  const DevicePtr dx = upload(ramp(4, 1, 0)), dy = upload(ramp(4, 0, 0)),
                  dz = upload(ramp(4, 0, 0));
  const auto capture = [&](float a) {
    EXPECT_EQ(
        driver_->cuStreamBeginCapture_v2(stream_, Constant::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        0);
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
  EXPECT_EQ(driver_->cuStreamEndCapture(stream_, &none),
            Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
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
        for (int iteration = 0; iteration < 10; ++iteration) {
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

}  // namespace
