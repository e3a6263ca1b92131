// cuBLAS, where it is found: its functions, loaded at run time,
// and large matrix products through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "../../fusion/matmul_spec.hpp"
#include "library_call.hpp"

namespace vt::detail::cuda {

using BlasHandle = struct BlasTag*;

// The values of cuBLAS's enumerations that vt uses, by their names there (cuda_libraries_test.cpp
// compares them with cublas_v2.h).
// clang-format off
#define VT_CUBLAS_CONSTANTS(X)                                                                     \
  X(CUBLAS_STATUS_SUCCESS, 0) X(CUBLAS_STATUS_ALLOC_FAILED, 3) X(CUBLAS_OP_N, 0) X(CUBLAS_OP_T, 1) \
  X(CUBLAS_DEFAULT_MATH, 0) X(CUBLAS_TF32_TENSOR_OP_MATH, 3)                                       \
  X(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16) X(CUBLAS_SIDE_RIGHT, 1)                  \
  X(CUBLAS_FILL_MODE_LOWER, 0) X(CUBLAS_FILL_MODE_UPPER, 1) X(CUBLAS_DIAG_NON_UNIT, 0)             \
  X(CUBLAS_DIAG_UNIT, 1) X(CUBLAS_COMPUTE_32F, 68) X(CUBLAS_COMPUTE_64F, 70)                       \
  X(CUBLAS_GEMM_DEFAULT, -1) X(CUDA_R_32F, 0) X(CUDA_R_64F, 1) X(CUDA_R_16F, 2) X(CUDA_R_16BF, 14)
#define VT_CUBLAS_FUNCTIONS(X)                                                                     \
  X(cublasCreate_v2, (BlasHandle*)) X(cublasDestroy_v2, (BlasHandle))                              \
  X(cublasGetVersion_v2, (BlasHandle, int*)) X(cublasSetStream_v2, (BlasHandle, Stream))           \
  X(cublasSetWorkspace_v2, (BlasHandle, void*, std::size_t))                                       \
  X(cublasSetMathMode, (BlasHandle, int))                                                          \
  X(cublasGemmStridedBatchedEx, (BlasHandle, int, int, int, int, int, const void*, const void*,    \
    int, int, long long, const void*, int, int, long long, const void*, void*, int, int,           \
    long long, int, int, int))                                                                     \
  X(cublasStrsm_v2, (BlasHandle, int, int, int, int, int, int, const float*, const float*, int,    \
    float*, int))                                                                                  \
  X(cublasDtrsm_v2, (BlasHandle, int, int, int, int, int, int, const double*, const double*,       \
    int, double*, int))
// clang-format on

struct BlasConstant {
#define VT_CUDA_CONSTANT(name, value) static constexpr int name = value;
  VT_CUBLAS_CONSTANTS(VT_CUDA_CONSTANT)
#undef VT_CUDA_CONSTANT
};

/// One pointer per function of the library in use.
struct Blas {
#define VT_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  VT_CUBLAS_FUNCTIONS(VT_CUDA_MEMBER)
#undef VT_CUDA_MEMBER
  const char* (*cublasGetStatusString)(Result) = nullptr;
};

/// cuBLAS, loaded on the first call; any thread. Null where there is none: then `*reason` (unless
/// null) says why. VT_CUBLAS_LIBRARY names a file, or "none".
const Blas* blas(std::string* reason);

/// The product c = a · b by cuBLAS, for addresses of a, b and c. Taken are floats with sums in f32
/// or f64, operands that are dense along rows or columns, and products large enough to win; all
/// others, and all where there is no cuBLAS, are vt's own kernels: then null, and `*reason` says
/// why where the product would have suited. A handle of the device is made, if there is none yet.
std::shared_ptr<const LibraryCall> blas_call(const CudaDevice&, const MatmulSpec&,
                                             std::string* reason);

/// Triangles of a batch of n × n matrices, and as many right sides of each; f32 or f64.
struct TriangleSpec {
  DType dtype = DType::f64;
  bool lower = true, transposed = false, unit_diagonal = false;
  std::int64_t batch = 0, n = 0, columns = 0;
};
/// x with t x = b (or tᵀ x = b) in b's place by cuBLAS, for addresses of the matrices and of b,
/// both dense with rows one after the other; of a matrix only the triangle is read. Null where
/// there is no cuBLAS or it does not count so far: then `*reason` says why.
std::shared_ptr<const LibraryCall> triangle_call(const CudaDevice&, const TriangleSpec&,
                                                 std::string* reason);

}  // namespace vt::detail::cuda
