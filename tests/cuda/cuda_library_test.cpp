// The tables of CUDA functions: agreement with NVIDIA's headers where they are installed, refusals
// of what cannot be used, the wording of errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "support/message.hpp"
#include "support/passed_alike.hpp"

#if defined(__has_include)
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#define VT_TEST_HAS_CUDA_HEADERS 1
// declares each function under the name that the library exports
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <nvrtc.h>
#endif
#endif

namespace {

namespace cuda = vt::detail::cuda;
using cuda::Constant;
using vt::detail::fail;
using vt_test::message;

#ifdef VT_TEST_HAS_CUDA_HEADERS

using vt_test::Alike;
#define VT_SAME_FUNCTION(name, parameters)                                     \
  static_assert(Alike<decltype(cuda::Driver::name), decltype(&::name)>::value, \
                #name " is declared otherwise in cuda.h");
VT_CUDA_FUNCTIONS(VT_SAME_FUNCTION)
VT_CUDA_NEWER_FUNCTIONS(VT_SAME_FUNCTION)
#if CUDA_VERSION >= 12090
VT_CUDA_LOG_FUNCTIONS(VT_SAME_FUNCTION)
#endif
#undef VT_SAME_FUNCTION
#define VT_SAME_FUNCTION(name, parameters)                                    \
  static_assert(Alike<decltype(cuda::Nvrtc::name), decltype(&::name)>::value, \
                #name " is declared otherwise in nvrtc.h");
VT_NVRTC_FUNCTIONS(VT_SAME_FUNCTION)
static_assert(
    Alike<decltype(cuda::Nvrtc::nvrtcGetErrorString), decltype(&::nvrtcGetErrorString)>::value);
#define VT_SAME_CONSTANT(name, number)                      \
  static_assert(static_cast<int>(::name) == Constant::name, \
                #name " has another value in NVIDIA's header");
VT_CUDA_CONSTANTS(VT_SAME_CONSTANT)
VT_NVRTC_CONSTANTS(VT_SAME_CONSTANT)
static_assert(sizeof(cuda::GraphExecUpdateInfo) == sizeof(CUgraphExecUpdateResultInfo) &&
              offsetof(cuda::GraphExecUpdateInfo, error_from_node) ==
                  offsetof(CUgraphExecUpdateResultInfo, errorFromNode));
#define VT_SAME_MEMBER(ours, ourMember, theirs, theirMember)                      \
  static_assert(offsetof(cuda::ours, ourMember) == offsetof(theirs, theirMember), \
                #ours "::" #ourMember " lies elsewhere in cuda.h");
static_assert(sizeof(cuda::KernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) &&
              sizeof(cuda::CopyParams) == sizeof(CUDA_MEMCPY3D_v2) &&
              sizeof(cuda::ConditionalNodeParams) == sizeof(CUgraphNodeParams));
VT_SAME_MEMBER(KernelNodeParams, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes)
VT_SAME_MEMBER(KernelNodeParams, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams)
VT_SAME_MEMBER(CopyParams, from.device, CUDA_MEMCPY3D_v2, srcDevice)
VT_SAME_MEMBER(CopyParams, from.memory_type, CUDA_MEMCPY3D_v2, srcMemoryType)
VT_SAME_MEMBER(CopyParams, to.memory_type, CUDA_MEMCPY3D_v2, dstMemoryType)
VT_SAME_MEMBER(CopyParams, to.device, CUDA_MEMCPY3D_v2, dstDevice)
VT_SAME_MEMBER(CopyParams, bytes, CUDA_MEMCPY3D_v2, WidthInBytes)
VT_SAME_MEMBER(ConditionalNodeParams, handle, CUgraphNodeParams, conditional.handle)
VT_SAME_MEMBER(ConditionalNodeParams, kind, CUgraphNodeParams, conditional.type)
VT_SAME_MEMBER(ConditionalNodeParams, bodies, CUgraphNodeParams, conditional.phGraph_out)
#undef VT_SAME_MEMBER
static_assert(sizeof(cuda::DevicePtr) == sizeof(CUdeviceptr) &&
              std::is_same_v<cuda::Device_, CUdevice>);

#endif

TEST(CudaLibrary, RefusesWhatIsNotThere) {
  EXPECT_NE(cuda::driver_try_library("/nowhere/libcuda.so.1").find("cannot open shared object"),
            std::string::npos);
  EXPECT_NE(cuda::nvrtc_try_library("/nowhere/libnvrtc.so").find("cannot open shared object"),
            std::string::npos);
}

TEST(CudaLibrary, NamesTheFunctionThatALibraryLacks) {
  EXPECT_EQ(cuda::driver_try_library("libm.so.6"),
            "libm.so.6 lacks the function cuDriverGetVersion");
  EXPECT_EQ(cuda::nvrtc_try_library("libm.so.6"), "libm.so.6 lacks the function nvrtcVersion");
}

TEST(CudaLibrary, RefusesADriverThatIsTooOld) {
  EXPECT_EQ(cuda::driver_try_library(VT_OLD_DRIVER_LIBRARY),
            "the driver is for CUDA 11.4, vt needs one for 12.0 or newer: it lacks cuDeviceGet: "
            "update the NVIDIA driver");
  ::setenv("VT_EMULATOR_VERSION", "11080", 1);  // one that has all functions
  EXPECT_EQ(
      cuda::driver_try_library(VT_EMULATOR_LIBRARY),
      "the driver is for CUDA 11.8, vt needs one for 12.0 or newer: update the NVIDIA driver");
  ::unsetenv("VT_EMULATOR_VERSION");
  EXPECT_EQ(cuda::driver_try_library(VT_EMULATOR_LIBRARY), "");
}

TEST(CudaLibrary, SaysWhyADriverDoesNotStart) {
  ::setenv("VT_EMULATOR_INIT_ERROR", "803", 1);
  EXPECT_EQ(cuda::driver_try_library(VT_EMULATOR_LIBRARY),
            "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (system has unsupported display driver / "
            "cuda driver combination): the driver was updated while "
            "loaded: restart the machine");
  ::unsetenv("VT_EMULATOR_INIT_ERROR");
  ::setenv("VT_EMULATOR_DEVICES", "0", 1);
  const std::string none = cuda::driver_try_library(VT_EMULATOR_LIBRARY);
  EXPECT_EQ(none.find("cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected): see "
                      "whether nvidia-smi lists a device"),
            0u)
      << none;
  ::unsetenv("VT_EMULATOR_DEVICES");
  EXPECT_EQ(cuda::nvrtc_try_library(VT_EMULATOR_LIBRARY), "");
}

TEST(CudaLibrary, AnswersTheSameOnEveryThread) {
  const cuda::Driver* drivers[4] = {};
  const cuda::Nvrtc* compilers[4] = {};
  std::string reasons[4];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      drivers[i] = cuda::driver(&reasons[i]);
      compilers[i] = cuda::nvrtc(nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(drivers[i], drivers[0]);
    EXPECT_EQ(compilers[i], compilers[0]);
    EXPECT_EQ(reasons[i], reasons[0]);
  }
  EXPECT_EQ(drivers[0] == nullptr, !reasons[0].empty()) << reasons[0];
}

TEST(CudaLibrary, ThePathOfAVariableIsUsedAlone) {
  ::setenv("VT_TEST_LIBRARY", "/some/where/libx.so", 1);
  const vt::Vec<std::string> chosen = cuda::toolkit_libraries("cublas", {"12"}, "VT_TEST_LIBRARY");
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_EQ(chosen[0], "/some/where/libx.so");
  ::unsetenv("VT_TEST_LIBRARY");
  const vt::Vec<std::string> usual =
      cuda::toolkit_libraries("cublas", {"13", "12"}, "VT_TEST_LIBRARY");
  ASSERT_GE(usual.size(), 2u);
  EXPECT_EQ(usual[0], "libcublas.so.13");
  EXPECT_EQ(usual[1], "libcublas.so.12");
}

TEST(CudaLibrary, OneErrorOfManyEndsAllWorkOnADevice) {
  cuda::forget_lost_devices();
  EXPECT_NO_THROW(cuda::check(Constant::CUDA_SUCCESS, "cuInit"));
  const std::string memory = message([] {
    cuda::check(Constant::CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocAsync", vt::CallSite{"user.cpp", 7});
  });
  EXPECT_NE(memory.find("vt: cuMemAllocAsync: "), std::string::npos) << memory;
  EXPECT_NE(memory.find("use smaller batches"), std::string::npos) << memory;
  EXPECT_NE(memory.find("; at user.cpp:7"), std::string::npos) << memory;
  EXPECT_NO_THROW(cuda::require_device(0));

  const std::string first =
      message([] { cuda::check(Constant::CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamSynchronize"); });
  EXPECT_NE(first.find("cuda(0) is lost"), std::string::npos) << first;
  const std::string second =
      message([] { cuda::check(Constant::CUDA_ERROR_LAUNCH_FAILED, "cuEventSynchronize"); });
  const std::string later = message([] { cuda::require_device(0); });
  EXPECT_NE(later.find("lost since cuStreamSynchronize"), std::string::npos) << later;
  EXPECT_NE(later.find("the CPU stays usable"), std::string::npos) << later;
  EXPECT_NO_THROW(cuda::require_device(1));
  cuda::forget_lost_devices();
  EXPECT_NO_THROW(cuda::require_device(0));
}

TEST(CudaLibrary, LackOfMemoryIsAnErrorOfItsOwnKind) {
  const auto kind = [](cuda::Result result) {
    try {
      cuda::check(result, "call");
    } catch (const vt::Error& e) {
      return e.kind();
    }
    return vt::ErrorKind::check;
  };
  EXPECT_EQ(kind(Constant::CUDA_ERROR_OUT_OF_MEMORY), vt::ErrorKind::memory);
  EXPECT_EQ(kind(Constant::CUDA_ERROR_INVALID_VALUE), vt::ErrorKind::backend);
}

TEST(CudaLibrary, CompilesWithNvrtcWhereThereIsOne) {
  std::string reason;
  const cuda::Nvrtc* nvrtc = cuda::nvrtc(&reason);
  if (!nvrtc) GTEST_SKIP() << reason;
  const auto compile = [&](const char* source) {
    cuda::RtcProgram program = nullptr;
    cuda::check_nvrtc(nvrtc->nvrtcCreateProgram(&program, source, "kernel.cu", 0, nullptr, nullptr),
                      "nvrtcCreateProgram");
    const char* options[] = {"--gpu-architecture=sm_90"};
    const cuda::Result result = nvrtc->nvrtcCompileProgram(program, 1, options);
    std::size_t size = 0;
    std::string log;
    cuda::check_nvrtc(nvrtc->nvrtcGetProgramLogSize(program, &size), "nvrtcGetProgramLogSize");
    log.resize(size);
    cuda::check_nvrtc(nvrtc->nvrtcGetProgramLog(program, log.data()), "nvrtcGetProgramLog");
    if (result == Constant::NVRTC_SUCCESS) {
      cuda::check_nvrtc(nvrtc->nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
      EXPECT_GT(size, 100u);
    }
    nvrtc->nvrtcDestroyProgram(&program);
    if (result != Constant::NVRTC_SUCCESS)
      log += message([&] { cuda::check_nvrtc(result, "nvrtcCompileProgram"); });
    return log;
  };
  EXPECT_EQ(
      compile("extern \"C\" __global__ void f(float* x) { x[threadIdx.x] *= 2; }").find("error"),
      std::string::npos);
  const std::string wrong = compile("extern \"C\" __global__ void f(float* x) { y[0] = 1; }");
  EXPECT_NE(wrong.find("\"y\" is undefined"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("vt: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION"), std::string::npos)
      << wrong;
}

}  // namespace
