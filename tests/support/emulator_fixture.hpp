// The fixture of the emulator's tests: a driver, a compiler, a stream,
// and that nothing is left behind.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda_emulator.hpp"
#include "emulator_kernels.hpp"
#include "message.hpp"
#include "src/jit/cuda/driver/cuda_library.hpp"

namespace vt_test {

namespace cuda = vt::detail::cuda;
using cuda::Constant;
using cuda::DevicePtr;

inline const Emulator* const emulator = use_cuda_emulator();

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
    for (const char* what : {"allocations", "pinned", "streams", "events", "modules", "graphs",
                             "graph_execs", "programs"})
      EXPECT_EQ(emulator->count(what), 0) << what;
  }

  std::string compile(const char* source, std::string* log,
                      const char* architecture = "--gpu-architecture=sm_90",
                      cuda::Result* result = nullptr) {
    cuda::RtcProgram program = nullptr;
    const std::string text = std::string(accesses) + source;
    EXPECT_EQ(nvrtc_->nvrtcCreateProgram(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr),
              0);
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
    EXPECT_EQ(driver_->cuMemcpyHtoDAsync_v2(p, values.data(), values.size() * sizeof(T), stream_),
              0);
    return p;
  }
  template <class T>
  std::vector<T> download(DevicePtr p, std::size_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(driver_->cuMemcpyDtoHAsync_v2(values.data(), p, n * sizeof(T), stream_), 0)
        << emulator->report();
    EXPECT_EQ(driver_->cuStreamSynchronize(stream_), 0);
    return values;
  }
  struct Size {
    unsigned x = 1, y = 1;
  };
  template <class... T>
  cuda::Result launch(cuda::Function f, Size grid, Size block, unsigned shared, T... parameters) {
    void* pointers[] = {&parameters..., nullptr};
    return driver_->cuLaunchKernel(f, grid.x, grid.y, 1, block.x, block.y, 1, shared, stream_,
                                   pointers, nullptr);
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

inline std::vector<float> ramp(std::size_t n, float first = 1, float step = 0.5f) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + step * static_cast<float>(i % 1000);
  return v;
}

inline const unsigned long seeds[] = {0, 1, 2, 3, 12345};

// Sanitizers take their time for each switch between stacks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

}  // namespace vt_test
