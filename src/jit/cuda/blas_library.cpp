// cuBLAS, where it is found.
#include "blas_library.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../trace/thread_state.hpp"

namespace vt::detail::cuda {

namespace blas_loading {

#define VT_CUDA_NAME(name, parameters) #name,
constexpr const char* names[] = {VT_CUBLAS_FUNCTIONS(VT_CUDA_NAME) "cublasGetStatusString"};
#undef VT_CUDA_NAME
constexpr std::size_t count = sizeof(names) / sizeof(*names);
static_assert(sizeof(Blas) == sizeof(names), "one name per member of Blas, in the same order");

struct Loaded {
  Blas table;
  std::string reason;  // empty: the table is good
};
const Loaded& loaded() {
  static const Loaded* const result = [] {
    auto* made = new Loaded;  // leaked on purpose, as the driver's
    const char* chosen = std::getenv("VT_CUBLAS_LIBRARY");
    if (chosen && std::strcmp(chosen, "none") == 0) {
      made->reason = "VT_CUBLAS_LIBRARY says none";
      return made;
    }
    for (const std::string& path : toolkit_libraries("cublas", {"13", "12"}, "VT_CUBLAS_LIBRARY")) {
      void* pointers[count] = {};
      std::string why = load_functions(path, names, count, pointers);
      if (why.empty()) {
        Blas table;
        std::memcpy(static_cast<void*>(&table), pointers, sizeof table);
        made->table = table;
        made->reason.clear();
        return made;
      }
      if (made->reason.empty() || why.find("cannot open shared object") == std::string::npos) made->reason = std::move(why);
    }
    if (made->reason.empty()) made->reason = "no libcublas.so is found";
    return made;
  }();
  return *result;
}

// One for each device; its lock is held while a product is handed over.
struct Handle {
  std::mutex mutex;
  BlasHandle handle = nullptr;
  BufferRef workspace;
  std::string reason;
  bool tried = false;
};
Handle& handle_of(const CudaDevice& device) {
  static Handle* const all = new Handle[64];  // never destroyed: as many as there can be devices
  return all[device.index()];
}

std::string status_text(Result r) {
  const auto* text = loaded().table.cublasGetStatusString ? loaded().table.cublasGetStatusString(r) : nullptr;
  return text ? std::string(text) : worded("error {}", r);
}

// Of several ways to add up a long sum cuBLAS takes the same for the same sizes, device, version and workspace: so a run repeats bit for bit.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

void make(const CudaDevice& device, Handle& h) {
  const Blas* const b = blas(&h.reason);
  if (!b) return;
  device.enter();
  const auto failed = [&](Result r, const char* what) {
    if (r == BlasConstant::CUBLAS_STATUS_SUCCESS) return false;
    h.reason = worded("{}: {}", what, status_text(r));
    if (h.handle) static_cast<void>(b->cublasDestroy_v2(h.handle));
    h.handle = nullptr;
    h.workspace = {};
    return true;
  };
  if (failed(b->cublasCreate_v2(&h.handle), "cublasCreate")) return;
  if (failed(b->cublasSetStream_v2(h.handle, device.stream()), "cublasSetStream")) return;
  h.workspace = device.allocate(workspace_bytes, "the workspace of cuBLAS");
  if (failed(b->cublasSetWorkspace_v2(h.handle, reinterpret_cast<void*>(address(*h.workspace)), workspace_bytes), "cublasSetWorkspace")) return;
  // Sums of 16-bit floats stay in f32; f32 is f32, unless tf32 was asked for.
  const char* tf32 = std::getenv("VT_TF32");
  const int mode = (tf32 && *tf32 && *tf32 != '0' ? BlasConstant::CUBLAS_TF32_TENSOR_OP_MATH : BlasConstant::CUBLAS_DEFAULT_MATH) |
                   BlasConstant::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  static_cast<void>(failed(b->cublasSetMathMode(h.handle, mode), "cublasSetMathMode"));
}

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
bool place(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, int* operation, int* distance) {
  const bool by_rows = column == 1 && row >= columns, by_columns = row == 1 && column >= rows;
  const std::int64_t between = by_rows ? row : column;
  if ((!by_rows && !by_columns) || between > std::numeric_limits<int>::max()) return false;
  *operation = by_rows ? BlasConstant::CUBLAS_OP_N : BlasConstant::CUBLAS_OP_T;
  *distance = static_cast<int>(between);
  return true;
}

}  // namespace blas_loading

const Blas* blas(std::string* reason) {
  const blas_loading::Loaded& l = blas_loading::loaded();
  if (l.reason.empty()) return &l.table;
  if (reason) *reason = l.reason;
  return nullptr;
}

bool suits_blas(const MatmulSpec& s, BlasProduct* p) {
  using namespace blas_loading;
  constexpr std::int64_t most = std::numeric_limits<int>::max(), least_side = 32, least_depth = 16, least_products = std::int64_t{1} << 21;
  if (s.a_dtype != s.b_dtype || type_of(s.a_dtype) < 0 || type_of(s.result) < 0) return false;
  if (s.result != s.a_dtype && !(s.result == DType::f32 && size_of(s.a_dtype) == 2)) return false;
  // Small ones of a batch are sooner done than asked for.
  if (s.m < least_side || s.n < least_side || s.k < least_depth || s.m * s.n * s.k < least_products) return false;
  if (s.m > most || s.n > most || s.k > most || s.batch > most) return false;
  if (!place(s.m, s.k, s.a_row, s.a_column, &p->operation_a, &p->a_columns) || !place(s.k, s.n, s.b_row, s.b_column, &p->operation_b, &p->b_columns))
    return false;
  p->n = static_cast<int>(s.n), p->m = static_cast<int>(s.m), p->k = static_cast<int>(s.k), p->batch = static_cast<int>(s.batch);
  p->a_batch = s.a_batch, p->b_batch = s.b_batch, p->c_batch = s.m * s.n;
  p->operand_type = type_of(s.a_dtype), p->result_type = type_of(s.result);
  p->compute_type = s.accumulate == DType::f64 ? BlasConstant::CUBLAS_COMPUTE_64F : BlasConstant::CUBLAS_COMPUTE_32F;
  return true;
}

std::string prepare_blas(const CudaDevice& device) {
  blas_loading::Handle& h = blas_loading::handle_of(device);
  const std::lock_guard lock(h.mutex);
  if (!h.tried) {
    h.tried = true;
    try {
      blas_loading::make(device, h);
    } catch (const Error& e) {  // no room for the workspace: vt's own kernels need none
      h.reason = e.what();
      if (h.handle) static_cast<void>(blas_loading::loaded().table.cublasDestroy_v2(h.handle));
      h.handle = nullptr;
    }
  }
  return h.reason;
}

void run_blas(const CudaDevice& device, const BlasProduct& p, DevicePtr a, DevicePtr b, DevicePtr c) {
  using namespace blas_loading;
  Handle& h = handle_of(device);
  const std::lock_guard lock(h.mutex);
  const float one = 1, none = 0;
  const double wide_one = 1, wide_none = 0;
  const bool wide = p.compute_type == BlasConstant::CUBLAS_COMPUTE_64F;
  const void *alpha = wide ? static_cast<const void*>(&wide_one) : &one, *beta = wide ? static_cast<const void*>(&wide_none) : &none;
  const Result r = loaded().table.cublasGemmStridedBatchedEx(
      h.handle, p.operation_b, p.operation_a, p.n, p.m, p.k, alpha, reinterpret_cast<const void*>(b), p.operand_type, p.b_columns, p.b_batch,
      reinterpret_cast<const void*>(a), p.operand_type, p.a_columns, p.a_batch, beta, reinterpret_cast<void*>(c), p.result_type, p.n, p.c_batch,
      p.batch, p.compute_type, BlasConstant::CUBLAS_GEMM_DEFAULT);
  if (r == BlasConstant::CUBLAS_STATUS_SUCCESS) return;
  fail(r == BlasConstant::CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::backend,
       worded("vt: cublasGemmStridedBatchedEx: {}; VT_CUBLAS_LIBRARY=none does without cuBLAS", status_text(r)), thread_state().where);
}

}  // namespace vt::detail::cuda
