// Stand-ins for libraries of the CUDA toolkit: a cuBLAS whose products are kernels of the emulated driver, with the argument checks of the real one.
// Loaded by tests through VT_CUBLAS_LIBRARY, never linked. A product is as wrong as its arguments: columns first, distances in elements.
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "libraries.hpp"
#include "src/jit/cuda/blas_library.hpp"
#include "src/jit/cuda/prelude.hpp"

namespace {

using namespace vt::detail::cuda;

constexpr int not_initialized = 1, invalid_value = 7, not_supported = 15, execution_failed = 13;

struct State {
  std::mutex mutex;
  std::map<std::string, std::pair<int, int>> failures;  // calls until then, status
  std::map<std::string, long long> calls;
  std::map<std::string, Function> kernels;
};
State& state() {
  static State* const s = new State;
  return *s;
}

// The status that this call was asked to fail with; 0: none.
int entered(const char* function) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.calls[function];
  const auto f = s.failures.find(function);
  if (f == s.failures.end() || f->second.first-- > 0) return 0;
  const int status = f->second.second;
  s.failures.erase(f);
  return status;
}

template <class F>
F found(const char* variable, const char* name) {
  const char* path = std::getenv(variable);
  void* library = path ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  return library ? reinterpret_cast<F>(::dlsym(library, name)) : nullptr;
}
#define VT_DRIVER(name) found<decltype(Driver::name)>("VT_CUDA_LIBRARY", #name)
#define VT_NVRTC(name) found<decltype(Nvrtc::name)>("VT_NVRTC_LIBRARY", #name)

struct Type {
  const char *memory, *number, *from, *to;
};
const Type* type_of(int type) {
  static const std::map<int, Type> types = {{BlasConstant::CUDA_R_32F, {"f32", "f32", "", ""}},
                                            {BlasConstant::CUDA_R_64F, {"f64", "f64", "", ""}},
                                            {BlasConstant::CUDA_R_16F, {"u16", "f32", "vt_f16", "vt_f16_bits"}},
                                            {BlasConstant::CUDA_R_16BF, {"u16", "f32", "vt_bf16", "vt_bf16_bits"}}};
  const auto at = types.find(type);
  return at == types.end() ? nullptr : &at->second;
}

Function kernel_for(const Type& operand, const Type& result) {
  const std::string key = std::string(operand.from) + operand.memory + result.to + result.memory;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  Function& kernel = s.kernels[key];
  if (kernel) return kernel;
  std::string source(prelude);
  source += std::string("typedef ") + operand.memory + " in; typedef " + result.memory + " out; typedef " + operand.number + " num;\n";
  source += std::string("#define FROM(x) ") + operand.from + "(x)\n#define TO(x) " + result.to + "(x)\n";
  source += R"(
extern "C" __global__ void __launch_bounds__(64) gemm(const in* a, const in* b, out* c, int ta, int tb, int m, int n, int k, i64 lda, i64 ldb, i64 ldc, i64 sa,
                                                      i64 sb, i64 sc, int batch) {
  const i64 at = (i64)blockIdx.x * 64 + threadIdx.x;
  if (at >= (i64)m * n * batch) return;
  const i64 i = at % m, j = at / m % n, p = at / m / n;
  num sum = 0;
  for (i64 l = 0; l < k; ++l)
    sum += FROM(VT_LOAD(a, p * sa + (ta ? l + i * lda : i + l * lda))) * FROM(VT_LOAD(b, p * sb + (tb ? j + l * ldb : l + j * ldb)));
  VT_STORE(c, p * sc + i + j * ldc, TO(sum));
}
)";
  RtcProgram program = nullptr;
  int major = 0, minor = 0;
  if (VT_DRIVER(cuDeviceGetAttribute)(&major, Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) ||
      VT_DRIVER(cuDeviceGetAttribute)(&minor, Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
    return nullptr;
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(10 * major + minor);
  const char* options[] = {architecture.c_str()};
  std::size_t size = 0;
  if (VT_NVRTC(nvrtcCreateProgram)(&program, source.c_str(), "gemm.cu", 0, nullptr, nullptr) || VT_NVRTC(nvrtcCompileProgram)(program, 1, options) ||
      VT_NVRTC(nvrtcGetCUBINSize)(program, &size))
    return nullptr;
  std::vector<char> image(size);
  Module module = nullptr;
  if (VT_NVRTC(nvrtcGetCUBIN)(program, image.data()) || VT_DRIVER(cuModuleLoadData)(&module, image.data()) ||
      VT_DRIVER(cuModuleGetFunction)(&kernel, module, "gemm"))
    return nullptr;
  static_cast<void>(VT_NVRTC(nvrtcDestroyProgram)(&program));
  return kernel;
}

}  // namespace

namespace vt::detail::cuda {
struct BlasTag {
  Stream stream = nullptr;
  std::size_t workspace = 0;
};
}  // namespace vt::detail::cuda

extern "C" {

void vt_library_fail(const char* function, int after_calls, int status) {
  const std::lock_guard lock(state().mutex);
  state().failures[function] = {after_calls, status};
}
long long vt_library_calls(const char* function) {
  const std::lock_guard lock(state().mutex);
  return state().calls[function];
}

int cublasCreate_v2(BlasHandle* handle) {
  if (const int status = entered("cublasCreate_v2")) return status;
  *handle = new BlasTag;
  return 0;
}
int cublasDestroy_v2(BlasHandle handle) {
  if (const int status = entered("cublasDestroy_v2")) return status;
  delete handle;
  return 0;
}
int cublasGetVersion_v2(BlasHandle, int* version) {
  *version = 120000;
  return entered("cublasGetVersion_v2");
}
int cublasSetStream_v2(BlasHandle handle, Stream stream) {
  if (const int status = entered("cublasSetStream_v2")) return status;
  handle->stream = stream;
  handle->workspace = 0;
  return 0;
}
int cublasSetWorkspace_v2(BlasHandle handle, void* memory, std::size_t bytes) {
  if (const int status = entered("cublasSetWorkspace_v2")) return status;
  if (reinterpret_cast<unsigned long>(memory) % 256 != 0) return invalid_value;
  handle->workspace = bytes;
  return 0;
}
int cublasSetMathMode(BlasHandle, int) { return entered("cublasSetMathMode"); }
const char* cublasGetStatusString(int status) {
  switch (status) {
    case 0: return "CUBLAS_STATUS_SUCCESS";
    case not_initialized: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case invalid_value: return "CUBLAS_STATUS_INVALID_VALUE";
    case execution_failed: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case not_supported: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

int cublasGemmStridedBatchedEx(BlasHandle handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int a_type, int lda,
                               long long a_batch, const void* b, int b_type, int ldb, long long b_batch, const void* beta, void* c, int c_type,
                               int ldc, long long c_batch, int batch, int compute, int /*algorithm*/) {
  if (const int status = entered("cublasGemmStridedBatchedEx")) return status;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || handle->workspace == 0) return invalid_value;
  const Type *operand = type_of(a_type), *result = type_of(c_type);
  const bool wide = compute == BlasConstant::CUBLAS_COMPUTE_64F;
  if (!operand || !result || a_type != b_type || wide != (a_type == BlasConstant::CUDA_R_64F) || wide != (c_type == BlasConstant::CUDA_R_64F) ||
      (!wide && compute != BlasConstant::CUBLAS_COMPUTE_32F))
    return not_supported;
  // What scales is read from the host, of the type of the sums.
  const double scale = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha),
               kept = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (scale != 1 || kept != 0) return not_supported;
  const Function kernel = kernel_for(*operand, *result);
  if (!kernel) return execution_failed;
  long long leading[] = {lda, ldb, ldc, a_batch, b_batch, c_batch};
  void* parameters[] = {&a, &b, &c, &ta, &tb, &m, &n, &k, leading, leading + 1, leading + 2, leading + 3, leading + 4, leading + 5, &batch};
  const auto blocks = static_cast<unsigned>((static_cast<long long>(m) * n * batch + 63) / 64);
  return VT_DRIVER(cuLaunchKernel)(kernel, blocks, 1, 1, 64, 1, 1, 0, handle->stream, parameters, nullptr) ? execution_failed : 0;
}
}
