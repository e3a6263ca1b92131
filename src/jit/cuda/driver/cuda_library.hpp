// Owns the tables of CUDA driver and NVRTC functions that vt uses: declared here, loaded at run
// time, never linked.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

namespace vt::detail::cuda {

using Result = int;
using Device_ = int;
using DevicePtr = unsigned long long;
// Handles are pointers to what nobody but the driver knows.
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using GraphNode = struct GraphNodeTag*;
using MemPool = struct MemPoolTag*;
using RtcProgram = struct RtcProgramTag*;

/// What cuGraphExecUpdate_v2 tells about an update that failed.
struct GraphExecUpdateInfo {
  int result;
  void* error_node;
  void* error_from_node;
};

/// CUDA_KERNEL_NODE_PARAMS_v2: a launch, as a node of a graph.
struct KernelNodeParams {
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};

/// CUDA_MEMCPY3D_v2: one side of a copy, and both.
struct CopySide {
  std::size_t x, y, z, level;
  int memory_type;
  const void* host;
  DevicePtr device;
  void *array, *reserved;
  std::size_t pitch, height;
};
struct CopyParams {
  CopySide from, to;
  std::size_t bytes, height, depth;
};

/// CUgraphNodeParams of a conditional node.
struct ConditionalNodeParams {
  int node_type, reserved[3];
  unsigned long long handle;
  int kind;
  unsigned size;
  Graph* bodies;  ///< set by the driver
  Context context;
  long long padding[25], reserved_too;
};

// The values of CUDA's enumerations that vt uses, by their names there (cuda_library_test.cpp
// compares them with cuda.h).
// clang-format off
#define VT_CUDA_CONSTANTS(X)                                                                       \
  X(CUDA_SUCCESS, 0) X(CUDA_ERROR_INVALID_VALUE, 1) X(CUDA_ERROR_OUT_OF_MEMORY, 2)                 \
  X(CUDA_ERROR_NOT_INITIALIZED, 3) X(CUDA_ERROR_DEINITIALIZED, 4) X(CUDA_ERROR_STUB_LIBRARY, 34)   \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46) X(CUDA_ERROR_NO_DEVICE, 100)                                \
  X(CUDA_ERROR_INVALID_DEVICE, 101) X(CUDA_ERROR_INVALID_IMAGE, 200)                               \
  X(CUDA_ERROR_INVALID_CONTEXT, 201) X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                          \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214) X(CUDA_ERROR_INVALID_PTX, 218)                              \
  X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220) X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)               \
  X(CUDA_ERROR_CONTAINED, 226) X(CUDA_ERROR_INVALID_HANDLE, 400) X(CUDA_ERROR_NOT_FOUND, 500)      \
  X(CUDA_ERROR_NOT_READY, 600) X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                  \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                     \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) X(CUDA_ERROR_ASSERT, 710)                                \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714) X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                   \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716) X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                   \
  X(CUDA_ERROR_INVALID_PC, 718) X(CUDA_ERROR_LAUNCH_FAILED, 719) X(CUDA_ERROR_NOT_SUPPORTED, 801)  \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802) X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                    \
  X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)  \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)        \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)          \
  X(CUDA_ERROR_UNKNOWN, 999) X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                       \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5) X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)       \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)            \
  X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18) X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)               \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37) X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)      \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                        \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                              \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                     \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                                        \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115) X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)       \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5) X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                \
  X(CU_STREAM_DEFAULT, 0) X(CU_STREAM_NON_BLOCKING, 1) X(CU_EVENT_DEFAULT, 0)                      \
  X(CU_EVENT_DISABLE_TIMING, 2) X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                   \
  X(CU_MEMORYTYPE_DEVICE, 2) X(CU_GRAPH_NODE_TYPE_CONDITIONAL, 13) X(CU_GRAPH_COND_TYPE_IF, 0)     \
  X(CU_GRAPH_COND_TYPE_WHILE, 1) X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                     \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)               \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                        \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                            \
  X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)
#define VT_NVRTC_CONSTANTS(X)                                                                      \
  X(NVRTC_SUCCESS, 0) X(NVRTC_ERROR_OUT_OF_MEMORY, 1) X(NVRTC_ERROR_INVALID_INPUT, 3)              \
  X(NVRTC_ERROR_INVALID_PROGRAM, 4) X(NVRTC_ERROR_INVALID_OPTION, 5) X(NVRTC_ERROR_COMPILATION, 6) \
  X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) X(NVRTC_ERROR_INTERNAL_ERROR, 11)
// clang-format on

/// `Constant::CUDA_SUCCESS` and so on. In a scope of their own: a user's file may include cuda.h
/// beside the whole of vt.
struct Constant {
#define VT_CUDA_CONSTANT(name, value) static constexpr int name = value;
  VT_CUDA_CONSTANTS(VT_CUDA_CONSTANT)
  VT_NVRTC_CONSTANTS(VT_CUDA_CONSTANT)
#undef VT_CUDA_CONSTANT
};

// The one list of functions: members of `Driver` and the names to look up are both made from it.
// clang-format off
#define VT_CUDA_FUNCTIONS(X)                                                                       \
  X(cuDriverGetVersion, (int*)) X(cuInit, (unsigned)) X(cuGetErrorName, (Result, const char**))    \
  X(cuGetErrorString, (Result, const char**)) X(cuDeviceGetCount, (int*))                          \
  X(cuDeviceGet, (Device_*, int)) X(cuDeviceGetName, (char*, int, Device_))                        \
  X(cuDeviceGetAttribute, (int*, int, Device_)) X(cuDeviceTotalMem_v2, (std::size_t*, Device_))    \
  X(cuDevicePrimaryCtxRetain, (Context*, Device_)) X(cuDevicePrimaryCtxRelease_v2, (Device_))      \
  X(cuCtxSetCurrent, (Context)) X(cuCtxGetCurrent, (Context*)) X(cuCtxSynchronize, ())             \
  /* memory */                                                                                     \
  X(cuMemGetInfo_v2, (std::size_t*, std::size_t*)) X(cuMemAlloc_v2, (DevicePtr*, std::size_t))     \
  X(cuMemFree_v2, (DevicePtr)) X(cuMemAllocAsync, (DevicePtr*, std::size_t, Stream))               \
  X(cuMemFreeAsync, (DevicePtr, Stream)) X(cuDeviceGetDefaultMemPool, (MemPool*, Device_))         \
  X(cuMemPoolSetAttribute, (MemPool, int, void*)) X(cuMemPoolTrimTo, (MemPool, std::size_t))       \
  X(cuMemAllocHost_v2, (void**, std::size_t)) X(cuMemFreeHost, (void*))                            \
  X(cuMemcpyHtoDAsync_v2, (DevicePtr, const void*, std::size_t, Stream))                           \
  X(cuMemcpyDtoHAsync_v2, (void*, DevicePtr, std::size_t, Stream))                                 \
  X(cuMemcpyDtoDAsync_v2, (DevicePtr, DevicePtr, std::size_t, Stream))                             \
  X(cuMemcpyPeerAsync, (DevicePtr, Context, DevicePtr, Context, std::size_t, Stream))              \
  X(cuMemsetD8Async, (DevicePtr, unsigned char, std::size_t, Stream))                              \
  /* streams and events */                                                                         \
  X(cuStreamCreate, (Stream*, unsigned)) X(cuStreamDestroy_v2, (Stream))                           \
  X(cuStreamSynchronize, (Stream)) X(cuStreamQuery, (Stream))                                      \
  X(cuStreamWaitEvent, (Stream, Event, unsigned)) X(cuEventCreate, (Event*, unsigned))             \
  X(cuEventDestroy_v2, (Event)) X(cuEventRecord, (Event, Stream)) X(cuEventSynchronize, (Event))   \
  X(cuEventQuery, (Event)) X(cuEventElapsedTime, (float*, Event, Event))                           \
  /* code */                                                                                       \
  X(cuModuleLoadData, (Module*, const void*)) X(cuModuleUnload, (Module))                          \
  X(cuModuleGetFunction, (Function*, Module, const char*))                                         \
  X(cuFuncGetAttribute, (int*, int, Function)) X(cuFuncSetAttribute, (Function, int, int))         \
  X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
    unsigned, Stream, void**, void**))                                                             \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, Function, int, std::size_t))               \
  /* graphs */                                                                                     \
  X(cuStreamBeginCapture_v2, (Stream, int)) X(cuStreamEndCapture, (Stream, Graph*))                \
  X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                          \
  X(cuGraphLaunch, (GraphExec, Stream)) X(cuGraphExecDestroy, (GraphExec))                         \
  X(cuGraphDestroy, (Graph)) X(cuGraphExecUpdate_v2, (GraphExec, Graph, GraphExecUpdateInfo*))     \
  X(cuGraphCreate, (Graph*, unsigned))                                                             \
  X(cuGraphAddKernelNode_v2, (GraphNode*, Graph, const GraphNode*, std::size_t,                    \
    const KernelNodeParams*))                                                                      \
  X(cuGraphAddMemcpyNode, (GraphNode*, Graph, const GraphNode*, std::size_t, const CopyParams*,    \
    Context))                                                                                      \
  X(cuGraphAddChildGraphNode, (GraphNode*, Graph, const GraphNode*, std::size_t, Graph))           \
  X(cuGraphExecChildGraphNodeSetParams, (GraphExec, GraphNode, Graph))                             \
  X(cuGraphExecKernelNodeSetParams_v2, (GraphExec, GraphNode, const KernelNodeParams*))            \
  X(cuGraphExecMemcpyNodeSetParams, (GraphExec, GraphNode, const CopyParams*, Context))
/* What only a driver for CUDA 12.4 or newer can do: null in an older one. */
#define VT_CUDA_NEWER_FUNCTIONS(X)                                                                 \
  X(cuGraphAddNode_v2, (GraphNode*, Graph, const GraphNode*, const void*, std::size_t,             \
    ConditionalNodeParams*))                                                                       \
  X(cuGraphConditionalHandleCreate, (unsigned long long*, Graph, Context, unsigned, unsigned))
/* The driver's own account of what went wrong, from CUDA 12.9: null before. */
#define VT_CUDA_LOG_FUNCTIONS(X)                                                                   \
  X(cuLogsCurrent, (unsigned*, unsigned))                                                          \
  X(cuLogsDumpToMemory, (unsigned*, char*, std::size_t*, unsigned))
#define VT_NVRTC_FUNCTIONS(X)                                                                      \
  X(nvrtcVersion, (int*, int*)) X(nvrtcGetNumSupportedArchs, (int*))                               \
  X(nvrtcGetSupportedArchs, (int*))                                                                \
  X(nvrtcCreateProgram, (RtcProgram*, const char*, const char*, int, const char* const*,           \
    const char* const*))                                                                           \
  X(nvrtcDestroyProgram, (RtcProgram*))                                                            \
  X(nvrtcCompileProgram, (RtcProgram, int, const char* const*))                                    \
  X(nvrtcGetCUBINSize, (RtcProgram, std::size_t*)) X(nvrtcGetCUBIN, (RtcProgram, char*))           \
  X(nvrtcGetPTXSize, (RtcProgram, std::size_t*)) X(nvrtcGetPTX, (RtcProgram, char*))               \
  X(nvrtcGetProgramLogSize, (RtcProgram, std::size_t*)) X(nvrtcGetProgramLog, (RtcProgram, char*))
// clang-format on

#define VT_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
/// One pointer per function of the driver in use, by the name that the library exports.
struct Driver {
  VT_CUDA_FUNCTIONS(VT_CUDA_MEMBER)
  VT_CUDA_NEWER_FUNCTIONS(VT_CUDA_MEMBER)
  VT_CUDA_LOG_FUNCTIONS(VT_CUDA_MEMBER)
};
/// One pointer per function of NVRTC in use.
struct Nvrtc {
  VT_NVRTC_FUNCTIONS(VT_CUDA_MEMBER)
  const char* (*nvrtcGetErrorString)(Result) = nullptr;
};
#undef VT_CUDA_MEMBER

/// The driver, loaded and initialised on the first call; any thread. Null where there is none that
/// can be used or no device: then `*reason` (unless null) is one line that says why.
const Driver* driver(std::string* reason);
/// NVRTC, loaded on the first call; any thread. Null where there is none: then `*reason` (unless
/// null) says why. Of several the newest that is no newer than the driver, whose devices could not
/// load its code.
const Nvrtc* nvrtc(std::string* reason);

/// The outcome of one attempt, for tests of the refusals: `path` as given to dlopen, no fallbacks,
/// nothing kept. Empty when the library has every function and, for the driver, starts and finds a
/// device.
std::string driver_try_library(const std::string& path);
std::string nvrtc_try_library(const std::string& path);

/// Where a library of the CUDA toolkit may be, the best first: `$variable` alone if it is set; the
/// dynamic loader's own paths; $VT_CUDA_HOME; the usual folders; pip's wheels in $VIRTUAL_ENV,
/// $CONDA_PREFIX and the usual site-packages. Also cuBLAS and the like. `versions`: what may stand
/// behind ".so.", newest first.
Vec<std::string> toolkit_libraries(const char* stem, std::initializer_list<const char*> versions,
                                   const char* variable);

/// Loads `path` and looks `count` names up. Empty when it has all of them; else what is wrong, and
/// `*missing` (unless null) names the function that it lacks. Of a library that lacks one it stays
/// loaded, and the functions found before stand in `pointers`.
std::string load_functions(const std::string& path, const char* const* names, std::size_t count,
                           void** pointers, const char** missing = nullptr);

/// Throws where `result` is an error of the driver: Error(memory) for lack of memory, else
/// Error(backend), with the call `what`, CUDA's name and text for it, what the driver (12.9 or
/// newer) has logged since the last error, and what to do. After an error that ends all work on a
/// device (an illegal address and the like) the device counts as lost, and `require_device` refuses
/// it.
inline void check(Result result, const char* what, CallSite where = {}, int device = 0);
/// The same for a result of NVRTC.
void check_nvrtc(Result result, const char* what, CallSite where = {});
/// Throws Error(backend) if an earlier error has ended all work on `device`; says which one.
void require_device(int device, CallSite where = {});
/// What has ended all work on `device`; empty while it can be used.
std::string lost_device_reason(int device);
/// Forgets what was lost: for tests, whose devices are emulated.
void forget_lost_devices();

/// Throws what `check` throws.
[[noreturn]] void fail_driver_call(Result result, const char* what, CallSite where, int device);
inline void check(Result result, const char* what, CallSite where, int device) {
  if (result != Constant::CUDA_SUCCESS) fail_driver_call(result, what, where, device);
}

}  // namespace vt::detail::cuda
