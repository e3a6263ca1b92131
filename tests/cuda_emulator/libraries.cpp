// Stand-ins for libraries of the CUDA toolkit: a cuBLAS whose products and a cuFFT whose transforms
// are kernels of the emulated driver, with the argument checks of the real ones. Loaded by tests
// through VT_CUBLAS_LIBRARY and VT_CUFFT_LIBRARY, never linked. A product is as wrong as its
// arguments: columns first, distances in elements.
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "libraries.hpp"
#include "library_state.hpp"
#include "src/jit/cuda/libraries/blas_library.hpp"
#include "src/jit/cuda/libraries/fft_library.hpp"
#include "src/jit/cuda/source/prelude.hpp"

namespace {

using namespace vt::detail::cuda;
using vt_library::entered, vt_library::found;

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

#define VT_NVRTC(name) found<decltype(Nvrtc::name)>("VT_NVRTC_LIBRARY", #name)

struct Type {
  const char *memory, *number, *from, *to;
};
const Type* type_of(int type) {
  static const std::map<int, Type> types = {
      {BlasConstant::CUDA_R_32F, {"f32", "f32", "", ""}},
      {BlasConstant::CUDA_R_64F, {"f64", "f64", "", ""}},
      {BlasConstant::CUDA_R_16F, {"u16", "f32", "vt_f16", "vt_f16_bits"}},
      {BlasConstant::CUDA_R_16BF, {"u16", "f32", "vt_bf16", "vt_bf16_bits"}}};
  const auto at = types.find(type);
  return at == types.end() ? nullptr : &at->second;
}

// The kernel `name` of this source, behind vt's prelude; null where that fails.
Function compiled(const std::string& source, const char* name) {
  const std::string text = std::string(prelude) + source;
  RtcProgram program = nullptr;
  int major = 0, minor = 0;
  if (VT_DRIVER(cuDeviceGetAttribute)(&major,
                                      Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) ||
      VT_DRIVER(cuDeviceGetAttribute)(&minor,
                                      Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
    return nullptr;
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(10 * major + minor);
  const char* options[] = {architecture.c_str()};
  std::size_t size = 0;
  if (VT_NVRTC(nvrtcCreateProgram)(&program, text.c_str(), "library.cu", 0, nullptr, nullptr) ||
      VT_NVRTC(nvrtcCompileProgram)(program, 1, options) ||
      VT_NVRTC(nvrtcGetCUBINSize)(program, &size))
    return nullptr;
  std::vector<char> image(size);
  Module module = nullptr;
  Function kernel = nullptr;
  if (VT_NVRTC(nvrtcGetCUBIN)(program, image.data()) ||
      VT_DRIVER(cuModuleLoadData)(&module, image.data()) ||
      VT_DRIVER(cuModuleGetFunction)(&kernel, module, name))
    return nullptr;
  static_cast<void>(VT_NVRTC(nvrtcDestroyProgram)(&program));
  return kernel;
}

// Code belongs to the device that it was loaded on.
std::string of_device(const std::string& kernel) {
  Context context = nullptr;
  static_cast<void>(VT_DRIVER(cuCtxGetCurrent)(&context));
  return kernel + " " + std::to_string(reinterpret_cast<std::uintptr_t>(context));
}

Function kernel_for(const Type& operand, const Type& result) {
  const std::string key =
      of_device(std::string(operand.from) + operand.memory + result.to + result.memory);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  Function& kernel = s.kernels[key];
  if (kernel) return kernel;
  std::string source = std::string("typedef ") + operand.memory + " in; typedef " + result.memory +
                       " out; typedef " + operand.number + " num;\n";
  source +=
      std::string("#define FROM(x) ") + operand.from + "(x)\n#define TO(x) " + result.to + "(x)\n";
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
  return kernel = compiled(source, "gemm");
}

}  // namespace

int vt_library::entered(const char* function) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.calls[function];
  const auto f = s.failures.find(function);
  if (f == s.failures.end() || f->second.first-- > 0) return 0;
  const int status = f->second.second;
  s.failures.erase(f);
  return status;
}

namespace vt::detail::cuda {
struct BlasTag {
  Stream stream = nullptr;
  std::size_t workspace = 0;
};
}  // namespace vt::detail::cuda

namespace {

// x in b's place, of op(t) on the right: x · op(t) = b, columns first. A thread for each row of b.
template <class T>
int triangle(const char* function, BlasHandle handle, int side, int uplo, int op, int diagonal,
             int m, int n, const T* one, const T* t, int ldt, T* b, int ldb) {
  if (const int status = entered(function)) return status;
  if (m < 0 || n < 0 || ldt < n || ldb < m || handle->workspace == 0) return invalid_value;
  if (side != BlasConstant::CUBLAS_SIDE_RIGHT || *one != 1) return not_supported;
  State& s = state();
  Function kernel = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    Function& known = s.kernels[of_device(function)];
    if (!known)
      known = compiled(std::string("typedef ") + (sizeof(T) == 8 ? "f64" : "f32") + " num;" + R"(
extern "C" __global__ void __launch_bounds__(64) trsm(const num* t, num* b, int upper, int turned, int unit, int m, int n, int ldt, int ldb) {
  const int r = (int)blockIdx.x * 64 + threadIdx.x;
  if (r >= m) return;
  const bool up = (upper != 0) != (turned != 0);  // the triangle that b is multiplied with
  for (int s = 0; s < n; ++s) {
    const int j = up ? s : n - 1 - s;
    num x = VT_LOAD(b, (i64)j * ldb + r);
    for (int k = up ? 0 : j + 1; k < (up ? j : n); ++k) x -= VT_LOAD(b, (i64)k * ldb + r) * VT_LOAD(t, turned ? (i64)k * ldt + j : (i64)j * ldt + k);
    VT_STORE(b, (i64)j * ldb + r, unit ? x : x / VT_LOAD(t, (i64)j * ldt + j));
  }
}
)",
                       "trsm");
    kernel = known;
  }
  if (!kernel) return execution_failed;
  int upper = uplo == BlasConstant::CUBLAS_FILL_MODE_UPPER,
      transposed = op == BlasConstant::CUBLAS_OP_T,
      unit = diagonal == BlasConstant::CUBLAS_DIAG_UNIT;
  void* parameters[] = {&t, &b, &upper, &transposed, &unit, &m, &n, &ldt, &ldb};
  return VT_DRIVER(cuLaunchKernel)(kernel, static_cast<unsigned>((m + 63) / 64), 1, 1, 64, 1, 1, 0,
                                   handle->stream, parameters, nullptr)
             ? execution_failed
             : 0;
}

}  // namespace

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

int cublasGemmStridedBatchedEx(BlasHandle handle, int ta, int tb, int m, int n, int k,
                               const void* alpha, const void* a, int a_type, int lda,
                               long long a_batch, const void* b, int b_type, int ldb,
                               long long b_batch, const void* beta, void* c, int c_type, int ldc,
                               long long c_batch, int batch, int compute, int /*algorithm*/) {
  if (const int status = entered("cublasGemmStridedBatchedEx")) return status;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m ||
      handle->workspace == 0)
    return invalid_value;
  const Type *operand = type_of(a_type), *result = type_of(c_type);
  const bool wide = compute == BlasConstant::CUBLAS_COMPUTE_64F;
  if (!operand || !result || a_type != b_type || wide != (a_type == BlasConstant::CUDA_R_64F) ||
      wide != (c_type == BlasConstant::CUDA_R_64F) ||
      (!wide && compute != BlasConstant::CUBLAS_COMPUTE_32F))
    return not_supported;
  // What scales is read from the host, of the type of the sums.
  const double scale =
                   wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha),
               kept = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (scale != 1 || kept != 0) return not_supported;
  const Function kernel = kernel_for(*operand, *result);
  if (!kernel) return execution_failed;
  long long leading[] = {lda, ldb, ldc, a_batch, b_batch, c_batch};
  void* parameters[] = {&a,          &b,          &c,          &ta,         &tb,
                        &m,          &n,          &k,          leading,     leading + 1,
                        leading + 2, leading + 3, leading + 4, leading + 5, &batch};
  const auto blocks = static_cast<unsigned>((static_cast<long long>(m) * n * batch + 63) / 64);
  return VT_DRIVER(cuLaunchKernel)(kernel, blocks, 1, 1, 64, 1, 1, 0, handle->stream, parameters,
                                   nullptr)
             ? execution_failed
             : 0;
}

int cublasStrsm_v2(BlasHandle h, int side, int uplo, int op, int diagonal, int m, int n,
                   const float* one, const float* t, int ldt, float* b, int ldb) {
  return triangle("cublasStrsm_v2", h, side, uplo, op, diagonal, m, n, one, t, ldt, b, ldb);
}
int cublasDtrsm_v2(BlasHandle h, int side, int uplo, int op, int diagonal, int m, int n,
                   const double* one, const double* t, int ldt, double* b, int ldb) {
  return triangle("cublasDtrsm_v2", h, side, uplo, op, diagonal, m, n, one, t, ldt, b, ldb);
}

// --- cuFFT: every result as the sum that it is.

namespace {

struct Plan {
  Stream stream = nullptr;
  void* work = nullptr;
  int type = 0, rank = 0;
  bool ready = false, allocates = true;
  long long lengths[3] = {1, 1, 1}, batch = 0;
};
std::map<FftHandle, Plan>& plans() {
  static auto* const all = new std::map<FftHandle, Plan>;
  return *all;
}
constexpr int invalid_plan = 1, invalid_argument = 4, failed = 6;
constexpr std::size_t work_size = 512;

int transform(const char* function, FftHandle handle, int type, void* from, void* to,
              int direction) {
  if (const int status = entered(function)) return status;
  const auto at = plans().find(handle);
  if (at == plans().end() || !at->second.ready || at->second.type != type) return invalid_plan;
  Plan& p = at->second;
  const bool wide = (type & 0x40) != 0, to_real = (type & 0xf) == 0xc,
             from_real = (type & 0xf) == 0xa && type != FftConstant::CUFFT_Z2Z;
  // Whatever the transform, its operand and its result begin where complex numbers may.
  const auto element = static_cast<unsigned long>(wide ? 16 : 8);
  if (p.allocates || !p.work || from == to || reinterpret_cast<unsigned long>(from) % element ||
      reinterpret_cast<unsigned long>(to) % element)
    return invalid_argument;
  State& s = state();
  Function kernel = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    Function& known = s.kernels[of_device("fft " + std::to_string(type))];
    if (!known) {
      std::string source = std::string("typedef ") + (wide ? "f64" : "f32") +
                           " num;\n#define TO_REAL " + (to_real ? "1" : "0") +
                           "\n#define FROM_REAL " + (from_real ? "1" : "0") + R"(
struct __align__(2 * sizeof(num)) pair {
  num re, im;
};
// A thread makes up to eight neighbours of a row: what it loads costs more than what it does with it.
extern "C" __global__ void __launch_bounds__(64) fft(num* x, num* y, i64 n0, i64 n1, i64 n2, i64 batch, i64 sign) {
  const i64 half = n2 / 2 + 1, across = FROM_REAL ? half : n2, parts = (across + 7) / 8, at = (i64)blockIdx.x * 64 + threadIdx.x;
  if (at >= batch * n0 * n1 * parts) return;
  const i64 b = at / (n0 * n1 * parts), k0 = at / (n1 * parts) % n0, k1 = at / parts % n1, first = at % parts * 8;
  const f64 turn = (f64)sign * 6.283185307179586476925;
  const pair* z = (const pair*)x;
  f64 re[8], im[8], u[8], v[8], du[8], dv[8];
  for (int r = 0; r < 8; ++r) {
    const f64 step = turn * (f64)(first + r) / (f64)n2;
    re[r] = im[r] = 0, du[r] = cos(step), dv[r] = sin(step);
  }
  for (i64 j0 = 0; j0 < n0; ++j0)
    for (i64 j1 = 0; j1 < n1; ++j1)
      for (i64 j2 = 0; j2 < n2; ++j2) {
        const i64 row = (b * n0 + j0) * n1 + j1;
        // The angle turns by one step; computed anew every 64 steps, before roundings add up.
        for (int r = 0; r < 8 && j2 % 64 == 0; ++r) {
          const f64 angle = turn * ((f64)(j0 * k0 % n0) / (f64)n0 + (f64)(j1 * k1 % n1) / (f64)n1 + (f64)(j2 * (first + r) % n2) / (f64)n2);
          u[r] = cos(angle), v[r] = sin(angle);
        }
        f64 a, c = 0;
        if (FROM_REAL) {
          a = VT_LOAD(x, row * n2 + j2);
        } else {
          const pair p = VT_LOAD(z, TO_REAL ? row * half + (j2 < half ? j2 : n2 - j2) : row * n2 + j2);
          a = p.re, c = TO_REAL && j2 >= half ? -p.im : p.im;
        }
        for (int r = 0; r < 8; ++r) {
          re[r] += a * u[r] - c * v[r], im[r] += a * v[r] + c * u[r];
          const f64 turned = u[r] * du[r] - v[r] * dv[r];
          v[r] = u[r] * dv[r] + v[r] * du[r], u[r] = turned;
        }
      }
  for (int r = 0; r < 8 && first + r < across; ++r) {
    const i64 to = ((b * n0 + k0) * n1 + k1) * across + first + r;
    if (TO_REAL) {
      VT_STORE(y, to, (num)re[r]);
    } else {
      VT_STORE(y, to * 2, (num)re[r]);
      VT_STORE(y, to * 2 + 1, (num)im[r]);
    }
  }
}
)";
      known = compiled(source, "fft");
    }
    kernel = known;
  }
  if (!kernel) return failed;
  long long n0 = 1, n1 = 1, n2 = p.lengths[p.rank - 1], sign = direction;
  if (p.rank > 1) n1 = p.lengths[p.rank - 2];
  if (p.rank > 2) n0 = p.lengths[0];
  void* parameters[] = {&from, &to, &n0, &n1, &n2, &p.batch, &sign};
  const long long threads = p.batch * n0 * n1 * (((from_real ? n2 / 2 + 1 : n2) + 7) / 8);
  if (VT_DRIVER(cuLaunchKernel)(kernel, static_cast<unsigned>((threads + 63) / 64), 1, 1, 64, 1, 1,
                                0, p.stream, parameters, nullptr))
    return failed;
  // It may write over what it was given on the way to real numbers.
  if (to_real)
    static_cast<void>(
        VT_DRIVER(cuMemsetD8Async)(reinterpret_cast<DevicePtr>(from), 0xff, element, p.stream));
  return 0;
}

}  // namespace

int cufftCreate(FftHandle* handle) {
  if (const int status = entered("cufftCreate")) return status;
  static int next = 0;
  plans()[*handle = ++next] = {};
  return 0;
}
int cufftDestroy(FftHandle handle) {
  if (const int status = entered("cufftDestroy")) return status;
  return plans().erase(handle) ? 0 : invalid_plan;
}
int cufftSetAutoAllocation(FftHandle handle, int on) {
  if (const int status = entered("cufftSetAutoAllocation")) return status;
  plans().at(handle).allocates = on != 0;
  return 0;
}
int cufftMakePlanMany64(FftHandle handle, int rank, long long* lengths, long long* in, long long,
                        long long, long long* out, long long, long long, int type, long long batch,
                        std::size_t* work) {
  if (const int status = entered("cufftMakePlanMany64")) return status;
  if (rank < 1 || rank > 3 || in || out || batch < 1) return invalid_argument;
  Plan& p = plans().at(handle);
  p.type = type, p.rank = rank, p.batch = batch, p.ready = true;
  for (int i = 0; i < rank; ++i) p.lengths[i] = lengths[i];
  *work = work_size;
  return 0;
}
int cufftSetStream(FftHandle handle, Stream stream) {
  if (const int status = entered("cufftSetStream")) return status;
  plans().at(handle).stream = stream;
  return 0;
}
int cufftSetWorkArea(FftHandle handle, void* work) {
  if (const int status = entered("cufftSetWorkArea")) return status;
  plans().at(handle).work = work;
  return 0;
}
int cufftExecC2C(FftHandle h, void* x, void* y, int d) {
  return transform("cufftExecC2C", h, FftConstant::CUFFT_C2C, x, y, d);
}
int cufftExecR2C(FftHandle h, float* x, void* y) {
  return transform("cufftExecR2C", h, FftConstant::CUFFT_R2C, x, y, -1);
}
int cufftExecC2R(FftHandle h, void* x, float* y) {
  return transform("cufftExecC2R", h, FftConstant::CUFFT_C2R, x, y, 1);
}
int cufftExecZ2Z(FftHandle h, void* x, void* y, int d) {
  return transform("cufftExecZ2Z", h, FftConstant::CUFFT_Z2Z, x, y, d);
}
int cufftExecD2Z(FftHandle h, double* x, void* y) {
  return transform("cufftExecD2Z", h, FftConstant::CUFFT_D2Z, x, y, -1);
}
int cufftExecZ2D(FftHandle h, void* x, double* y) {
  return transform("cufftExecZ2D", h, FftConstant::CUFFT_Z2D, x, y, 1);
}
}
