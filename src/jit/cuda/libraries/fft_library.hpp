// cuFFT, where it is found: its functions, loaded at run time, and transforms of rows that do not
// fit in shared memory through them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "../../../trace/numerics/fft_kernels.hpp"
#include "library_call.hpp"

namespace vt::detail::cuda {

using FftHandle = int;

// The values of cuFFT's enumerations that vt uses, by their names there (cuda_libraries_test.cpp
// compares them with cufft.h).
// clang-format off
#define VT_CUFFT_CONSTANTS(X)                                                                      \
  X(CUFFT_SUCCESS, 0) X(CUFFT_ALLOC_FAILED, 2) X(CUFFT_R2C, 0x2a) X(CUFFT_C2R, 0x2c)               \
  X(CUFFT_C2C, 0x29) X(CUFFT_D2Z, 0x6a) X(CUFFT_Z2D, 0x6c) X(CUFFT_Z2Z, 0x69)
#define VT_CUFFT_FUNCTIONS(X)                                                                      \
  X(cufftCreate, (FftHandle*)) X(cufftDestroy, (FftHandle))                                        \
  X(cufftSetAutoAllocation, (FftHandle, int))                                                      \
  X(cufftMakePlanMany64, (FftHandle, int, long long*, long long*, long long, long long,            \
    long long*, long long, long long, int, long long, std::size_t*))                               \
  X(cufftSetStream, (FftHandle, Stream)) X(cufftSetWorkArea, (FftHandle, void*))                   \
  X(cufftExecC2C, (FftHandle, void*, void*, int)) X(cufftExecR2C, (FftHandle, float*, void*))      \
  X(cufftExecC2R, (FftHandle, void*, float*)) X(cufftExecZ2Z, (FftHandle, void*, void*, int))      \
  X(cufftExecD2Z, (FftHandle, double*, void*)) X(cufftExecZ2D, (FftHandle, void*, double*))
// clang-format on

struct FftConstant {
#define VT_CUDA_CONSTANT(name, value) static constexpr int name = value;
  VT_CUFFT_CONSTANTS(VT_CUDA_CONSTANT)
#undef VT_CUDA_CONSTANT
  /// CUFFT_FORWARD and CUFFT_INVERSE, which are macros there
  static constexpr int forward = -1, inverse = 1;
};

/// One pointer per function of the library in use.
struct Fft {
#define VT_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  VT_CUFFT_FUNCTIONS(VT_CUDA_MEMBER)
#undef VT_CUDA_MEMBER
};

struct FftCall {
  /// for addresses of the operand, the result, and two pieces of memory to work in
  std::shared_ptr<const LibraryCall> call;
  std::int64_t work_bytes = 0, copy_bytes = 0;
};

/// The transform by cuFFT, but for dividing by the number of elements. No call where there is no
/// cuFFT (VT_CUFFT_LIBRARY names a file, or "none") or it does not take the transform (more than
/// three axes; complex to real along several, of which it overwrites the operand): then `*reason`
/// says why.
FftCall fft_call(const CudaDevice&, const FftSpec&, std::string* reason);

}  // namespace vt::detail::cuda
