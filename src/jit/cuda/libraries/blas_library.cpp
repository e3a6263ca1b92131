// cuBLAS, where it is found.
#include "blas_library.hpp"

#include <limits>
#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/environment.hpp"
#include "../../../trace/base/locks.hpp"
#include "../../../trace/record/thread_state.hpp"

namespace vt::detail::cuda {

namespace blas_loading {

#define VT_CUDA_NAME(name, parameters) #name,
constexpr const char* names[] = {VT_CUBLAS_FUNCTIONS(VT_CUDA_NAME) "cublasGetStatusString"};
#undef VT_CUDA_NAME

const LoadedLibrary<Blas>& loaded() {
  static const auto* const result =
      new LoadedLibrary<Blas>("cublas", {"13", "12"}, "VT_CUBLAS_LIBRARY", names);
  return *result;
}

// One for each device; its lock is held while a product is handed over.
struct Handle {
  LongMutex<> mutex;
  BlasHandle handle = nullptr;
  Stream stream = nullptr;  // that it gives its work to
  BufferRef workspace;
  std::string reason;
  bool tried = false;
};
Handle& handle_of(const CudaDevice& device) {
  static Handle* const all = new Handle[64];  // never destroyed: as many as there can be devices
  return all[device.index()];
}

std::string status_text(Result r) {
  const auto* text =
      loaded().table.cublasGetStatusString ? loaded().table.cublasGetStatusString(r) : nullptr;
  return text ? std::string(text) : formatted("error {}", r);
}

// Of several ways to add up a long sum cuBLAS takes the same for the same sizes, device, version
// and workspace: so a run repeats bit for bit.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

// What is captured runs in the device's stream, too, one after the other with all else: so there is
// one workspace. Another stream makes cuBLAS forget it, and it would allocate one.
Result give_to(Handle& h, Stream stream) {
  if (h.stream == stream) return BlasConstant::CUBLAS_STATUS_SUCCESS;
  const Blas& b = loaded().table;
  h.stream = nullptr;
  if (const Result r = b.cublasSetStream_v2(h.handle, stream)) return r;
  if (const Result r = b.cublasSetWorkspace_v2(
          h.handle, reinterpret_cast<void*>(address(*h.workspace)), workspace_bytes))
    return r;
  h.stream = stream;
  return BlasConstant::CUBLAS_STATUS_SUCCESS;
}

void make(const CudaDevice& device, Handle& h) {
  const Blas* const b = blas(&h.reason);
  if (!b) return;
  device.enter();
  const auto failed = [&](Result r, const char* what) {
    if (r == BlasConstant::CUBLAS_STATUS_SUCCESS) return false;
    h.reason = formatted("{}: {}", what, status_text(r));
    if (h.handle) static_cast<void>(b->cublasDestroy_v2(h.handle));
    h.handle = nullptr;
    h.workspace = {};
    return true;
  };
  if (failed(b->cublasCreate_v2(&h.handle), "cublasCreate")) return;
  h.workspace = device.allocate(workspace_bytes, "the workspace of cuBLAS");
  if (failed(give_to(h, device.stream()), "cublasSetStream and cublasSetWorkspace")) return;
  // Sums of 16-bit floats stay in f32; f32 is f32, unless tf32 was asked for.
  const int mode = (tf32_from_environment() ? BlasConstant::CUBLAS_TF32_TENSOR_OP_MATH
                                            : BlasConstant::CUBLAS_DEFAULT_MATH) |
                   BlasConstant::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  static_cast<void>(failed(b->cublasSetMathMode(h.handle, mode), "cublasSetMathMode"));
}

// A product as cuBLAS takes it, which counts columns first: so it is asked for cᵀ = bᵀ · aᵀ.
struct Product {
  int operation_b = 0, operation_a = 0, n = 0, m = 0, k = 0, b_columns = 0, a_columns = 0,
      batch = 1;
  long long b_batch = 0, a_batch = 0, c_batch = 0;
  int operand_type = 0, result_type = 0, compute_type = 0;
};

int type_of(DType d) {
  switch (d) {
    case DType::f16: return BlasConstant::CUDA_R_16F;
    case DType::bf16: return BlasConstant::CUDA_R_16BF;
    case DType::f32: return BlasConstant::CUDA_R_32F;
    case DType::f64: return BlasConstant::CUDA_R_64F;
    default: return -1;
  }
}

// An operand as cuBLAS sees it, which takes rows that lie one after the other for columns.
bool place(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column,
           int* operation, int* distance) {
  const bool by_rows = column == 1 && row >= columns, by_columns = row == 1 && column >= rows;
  const std::int64_t between = by_rows ? row : column;
  if ((!by_rows && !by_columns) || between > std::numeric_limits<int>::max()) return false;
  *operation = by_rows ? BlasConstant::CUBLAS_OP_N : BlasConstant::CUBLAS_OP_T;
  *distance = static_cast<int>(between);
  return true;
}

// Which products go to cuBLAS.
bool suits(const MatmulSpec& s, Product* p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max(), least_side = 32, least_depth = 16,
                         least_products = std::int64_t{1} << 21;
  if (s.a_dtype != s.b_dtype || type_of(s.a_dtype) < 0 || type_of(s.result) < 0) return false;
  if (s.result != s.a_dtype && !(s.result == DType::f32 && size_of(s.a_dtype) == 2)) return false;
  // Small ones of a batch are sooner done than asked for.
  if (s.m < least_side || s.n < least_side || s.k < least_depth || s.m * s.n * s.k < least_products)
    return false;
  if (s.m > most || s.n > most || s.k > most || s.batch > most) return false;
  if (!place(s.m, s.k, s.a_row, s.a_column, &p->operation_a, &p->a_columns) ||
      !place(s.k, s.n, s.b_row, s.b_column, &p->operation_b, &p->b_columns))
    return false;
  p->n = static_cast<int>(s.n), p->m = static_cast<int>(s.m), p->k = static_cast<int>(s.k),
  p->batch = static_cast<int>(s.batch);
  p->a_batch = s.a_batch, p->b_batch = s.b_batch, p->c_batch = s.m * s.n;
  p->operand_type = type_of(s.a_dtype), p->result_type = type_of(s.result);
  p->compute_type = s.accumulate == DType::f64 ? BlasConstant::CUBLAS_COMPUTE_64F
                                               : BlasConstant::CUBLAS_COMPUTE_32F;
  return true;
}

// Empty if products of the device can go through its handle, else why not.
std::string prepare(const CudaDevice& device) {
  Handle& h = handle_of(device);
  const std::lock_guard lock(h.mutex);
  if (!h.tried) {
    h.tried = true;
    h.reason = {};
    try {
      make(device, h);
    } catch (const Error& e) {
      // no room for the workspace: vt's own kernels need none; another program may find some
      h.reason = e.what();
      h.tried = false;
      if (h.handle) static_cast<void>(loaded().table.cublasDestroy_v2(h.handle));
      h.handle = nullptr;
    }
  }
  return h.reason;
}

void need(Result r, const char* what) {
  if (r == BlasConstant::CUBLAS_STATUS_SUCCESS) return;
  fail(r == BlasConstant::CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::backend,
       formatted("vt: {}: {}; VT_CUBLAS_LIBRARY=none does without cuBLAS", what, status_text(r)),
       thread_state().where);
}

class BlasCall : public LibraryCall {
 public:
  explicit BlasCall(const Product& p) : p_(p) {}
  const char* library() const override { return "cuBLAS"; }
  void run(const CudaDevice& device, Stream stream,
           std::span<const DevicePtr> addresses) const override {
    Handle& h = handle_of(device);
    const std::lock_guard lock(h.mutex);
    need(give_to(h, stream), "cublasSetStream and cublasSetWorkspace");
    const float one = 1, none = 0;
    const double wide_one = 1, wide_none = 0;
    const bool wide = p_.compute_type == BlasConstant::CUBLAS_COMPUTE_64F;
    const void *alpha = wide ? static_cast<const void*>(&wide_one) : &one,
               *beta = wide ? static_cast<const void*>(&wide_none) : &none;
    need(loaded().table.cublasGemmStridedBatchedEx(
             h.handle, p_.operation_b, p_.operation_a, p_.n, p_.m, p_.k, alpha,
             reinterpret_cast<const void*>(addresses[1]), p_.operand_type, p_.b_columns, p_.b_batch,
             reinterpret_cast<const void*>(addresses[0]), p_.operand_type, p_.a_columns, p_.a_batch,
             beta, reinterpret_cast<void*>(addresses[2]), p_.result_type, p_.n, p_.c_batch,
             p_.batch, p_.compute_type, BlasConstant::CUBLAS_GEMM_DEFAULT),
         "cublasGemmStridedBatchedEx");
  }

 private:
  Product p_;
};

class TriangleCall : public LibraryCall {
 public:
  explicit TriangleCall(const TriangleSpec& s) : s_(s) {}
  const char* library() const override { return "cuBLAS"; }
  // Rows count as columns there: t is tᵀ and x is xᵀ, so the triangle stands on the right, the
  // other way up.
  void run(const CudaDevice& device, Stream stream,
           std::span<const DevicePtr> addresses) const override {
    Handle& h = handle_of(device);
    const std::lock_guard lock(h.mutex);
    need(give_to(h, stream), "cublasSetStream and cublasSetWorkspace");
    const int uplo = s_.lower ? BlasConstant::CUBLAS_FILL_MODE_UPPER
                              : BlasConstant::CUBLAS_FILL_MODE_LOWER,
              operation = s_.transposed ? BlasConstant::CUBLAS_OP_T : BlasConstant::CUBLAS_OP_N,
              diagonal = s_.unit_diagonal ? BlasConstant::CUBLAS_DIAG_UNIT
                                          : BlasConstant::CUBLAS_DIAG_NON_UNIT;
    const auto n = static_cast<int>(s_.n), columns = static_cast<int>(s_.columns);
    const auto solve = [&](auto one, auto* function, const char* name) {
      using Number = decltype(one);
      for (std::int64_t i = 0; i < s_.batch; ++i)
        need(function(h.handle, BlasConstant::CUBLAS_SIDE_RIGHT, uplo, operation, diagonal, columns,
                      n, &one, reinterpret_cast<const Number*>(addresses[0]) + i * s_.n * s_.n, n,
                      reinterpret_cast<Number*>(addresses[1]) + i * s_.n * s_.columns, columns),
             name);
    };
    if (s_.dtype == DType::f64) solve(1.0, loaded().table.cublasDtrsm_v2, "cublasDtrsm");
    else solve(1.0f, loaded().table.cublasStrsm_v2, "cublasStrsm");
  }

 private:
  TriangleSpec s_;
};

}  // namespace blas_loading

const Blas* blas(std::string* reason) {
  const auto& l = blas_loading::loaded();
  if (l.reason.empty()) return &l.table;
  if (reason) *reason = l.reason;
  return nullptr;
}

std::shared_ptr<const LibraryCall> blas_call(const CudaDevice& device, const MatmulSpec& s,
                                             std::string* reason) {
  blas_loading::Product p;
  if (!blas_loading::suits(s, &p)) return nullptr;
  *reason = blas_loading::prepare(device);
  return reason->empty() ? std::make_shared<const blas_loading::BlasCall>(p) : nullptr;
}

std::shared_ptr<const LibraryCall> triangle_call(const CudaDevice& device, const TriangleSpec& s,
                                                 std::string* reason) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  *reason = s.n > most || s.columns > most ? "trsm counts to 2³¹" : blas_loading::prepare(device);
  return reason->empty() ? std::make_shared<const blas_loading::TriangleCall>(s) : nullptr;
}

}  // namespace vt::detail::cuda
