// Interop through DLPack: memory shared with NumPy, PyTorch, JAX and whatever else speaks it,
// without a copy.
#pragma once

#include <vt/tensor.hpp>

// of dlpack.h, which only the caller needs
struct DLManagedTensor;           // versions 0.x
struct DLManagedTensorVersioned;  // versions 1.x

namespace vt {

/// Takes over `managed` (its deleter is called once the last Tensor that uses the memory is gone,
/// also when this throws). Contiguous elements are not copied, and must then not change while they
/// are used; others are copied at once.
/// Throws: Error(value) for memory that is not the host's, DLPack's vector types, and dtypes that
/// vt does not have.
[[nodiscard]] Tensor from_dlpack(DLManagedTensor* managed, CallSite where = CallSite::here());
/// The same for DLPack 1.x. Its flags (memory that is read-only, or copied) make no difference.
/// Throws: also Error(value) for another major version, of which nothing but the deleter is used.
[[nodiscard]] Tensor from_dlpack(DLManagedTensorVersioned* managed,
                                 CallSite where = CallSite::here());

/// A DLPack view of the value, which keeps the memory alive until its consumer calls the deleter.
/// Forces evaluation. The consumer must not write to it: vt's values never change.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& t, CallSite where = CallSite::here());

/// The same for DLPack 1.x, marked as read-only: `np.from_dlpack` makes of it an array that cannot
/// be written to, unless `t` is a temporary and nothing else has its elements. Its capsule has the
/// name "dltensor_versioned".
[[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t,
                                                            CallSite where = CallSite::here());
[[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(Tensor&& t,
                                                            CallSite where = CallSite::here());

}  // namespace vt
