// cuSOLVER, where it is found: its functions, loaded at run time, and decompositions of large
// matrices through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "library_call.hpp"

namespace vt::detail::cuda {

using SolverHandle = struct SolverTag*;
using SolverParams = struct SolverParamsTag*;

// The values of cuSOLVER's enumerations that vt uses, by their names there (cuda_solver_test.cpp
// compares them with cusolverDn.h).
// clang-format off
#define VT_CUSOLVER_CONSTANTS(X)                                                                   \
  X(CUSOLVER_STATUS_SUCCESS, 0) X(CUSOLVER_STATUS_ALLOC_FAILED, 2)                                 \
  X(CUSOLVER_EIG_MODE_NOVECTOR, 0) X(CUSOLVER_EIG_MODE_VECTOR, 1) X(CUBLAS_FILL_MODE_LOWER, 0)     \
  X(CUBLAS_FILL_MODE_UPPER, 1) X(CUBLAS_OP_N, 0) X(CUBLAS_OP_T, 1) X(CUDA_R_32F, 0)                \
  X(CUDA_R_64F, 1)
#define VT_CUSOLVER_FUNCTIONS(X)                                                                   \
  X(cusolverDnCreate, (SolverHandle*)) X(cusolverDnDestroy, (SolverHandle))                        \
  X(cusolverDnSetStream, (SolverHandle, Stream)) X(cusolverDnCreateParams, (SolverParams*))        \
  X(cusolverDnDestroyParams, (SolverParams))                                                       \
  X(cusolverDnXpotrf_bufferSize, (SolverHandle, SolverParams, int, std::int64_t, int,              \
    const void*, std::int64_t, int, std::size_t*, std::size_t*))                                   \
  X(cusolverDnXpotrf, (SolverHandle, SolverParams, int, std::int64_t, int, void*, std::int64_t,    \
    int, void*, std::size_t, void*, std::size_t, int*))                                            \
  X(cusolverDnXgetrf_bufferSize, (SolverHandle, SolverParams, std::int64_t, std::int64_t, int,     \
    const void*, std::int64_t, int, std::size_t*, std::size_t*))                                   \
  X(cusolverDnXgetrf, (SolverHandle, SolverParams, std::int64_t, std::int64_t, int, void*,         \
    std::int64_t, std::int64_t*, int, void*, std::size_t, void*, std::size_t, int*))               \
  X(cusolverDnXgetrs, (SolverHandle, SolverParams, int, std::int64_t, std::int64_t, int,           \
    const void*, std::int64_t, const std::int64_t*, int, void*, std::int64_t, int*))               \
  X(cusolverDnXgeqrf_bufferSize, (SolverHandle, SolverParams, std::int64_t, std::int64_t, int,     \
    const void*, std::int64_t, int, const void*, int, std::size_t*, std::size_t*))                 \
  X(cusolverDnXgeqrf, (SolverHandle, SolverParams, std::int64_t, std::int64_t, int, void*,         \
    std::int64_t, int, void*, int, void*, std::size_t, void*, std::size_t, int*))                  \
  X(cusolverDnSorgqr_bufferSize, (SolverHandle, int, int, int, const float*, int, const float*,    \
    int*))                                                                                         \
  X(cusolverDnSorgqr, (SolverHandle, int, int, int, float*, int, const float*, float*, int, int*)) \
  X(cusolverDnDorgqr_bufferSize, (SolverHandle, int, int, int, const double*, int,                 \
    const double*, int*))                                                                          \
  X(cusolverDnDorgqr, (SolverHandle, int, int, int, double*, int, const double*, double*, int,     \
    int*))                                                                                         \
  X(cusolverDnXsyevd_bufferSize, (SolverHandle, SolverParams, int, int, std::int64_t, int,         \
    const void*, std::int64_t, int, const void*, int, std::size_t*, std::size_t*))                 \
  X(cusolverDnXsyevd, (SolverHandle, SolverParams, int, int, std::int64_t, int, void*,             \
    std::int64_t, int, void*, int, void*, std::size_t, void*, std::size_t, int*))                  \
  X(cusolverDnXgesvd_bufferSize, (SolverHandle, SolverParams, signed char, signed char,            \
    std::int64_t, std::int64_t, int, const void*, std::int64_t, int, const void*, int,             \
    const void*, std::int64_t, int, const void*, std::int64_t, int, std::size_t*, std::size_t*))   \
  X(cusolverDnXgesvd, (SolverHandle, SolverParams, signed char, signed char, std::int64_t,         \
    std::int64_t, int, void*, std::int64_t, int, void*, int, void*, std::int64_t, int, void*,      \
    std::int64_t, int, void*, std::size_t, void*, std::size_t, int*))
// clang-format on

struct SolverConstant {
#define VT_CUDA_CONSTANT(name, value) static constexpr int name = value;
  VT_CUSOLVER_CONSTANTS(VT_CUDA_CONSTANT)
#undef VT_CUDA_CONSTANT
};

/// One pointer per function of the library in use.
struct Solver {
#define VT_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  VT_CUSOLVER_FUNCTIONS(VT_CUDA_MEMBER)
#undef VT_CUDA_MEMBER
};

/// One routine for each matrix of a batch, all of them columns first and dense, one after the
/// other; and what it is given (`info`: an i32 for each matrix, 0 where all went well; last of all
/// comes memory to work in).
struct SolverTask {
  enum class Routine : std::uint8_t {
    potrf,  ///< a (m × m, its upper triangle), info
    getrf,  ///< a (m × n), pivots (i64, from 1 on), info
    getrs,  ///< a and pivots by getrf, b (m × k), info
    geqrf,  ///< a (m × n of `a_columns`), tau, info
    orgqr,  ///< a and tau by geqrf with k reflections, info: the first n columns of q in a's place
    syevd,  ///< a (m × m), values, info: the vectors in a's place
    gesvd,  ///< a (m × n, m ≥ n), values, u (m × `k`), vᵀ (n × n), info
  } routine = Routine::potrf;
  DType dtype = DType::f64;
  std::int64_t batch = 0, m = 0, n = 0, k = 0, a_columns = 0;
  bool vectors = true, transposed = false;
};
struct SolverCall {
  std::shared_ptr<const LibraryCall> call;
  std::int64_t work_bytes = 0;
};

/// The task by cuSOLVER. No call where there is no cuSOLVER (VT_CUSOLVER_LIBRARY names a file, or
/// "none") or it refuses: then `*reason` says why. A handle of the device is made, if there is none
/// yet.
SolverCall solver_call(const CudaDevice&, const SolverTask&, std::string* reason);

}  // namespace vt::detail::cuda
