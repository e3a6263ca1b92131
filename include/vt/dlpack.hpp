// Interop through DLPack: memory shared with NumPy, PyTorch, JAX and whatever else speaks it,
// without a copy.
#pragma once

#include <vt/tensor.hpp>

struct DLManagedTensor;  // of dlpack.h (version 0.x), which only the caller needs

namespace vt {

/// Takes over `managed` (its deleter is called once the last Tensor that uses the memory is gone,
/// also when this throws). Contiguous elements are not copied, and must then not change while they
/// are used; others are copied at once.
/// Throws: Error(value) for memory that is not the host's, DLPack's vector types, and dtypes that
/// vt does not have.
[[nodiscard]] Tensor from_dlpack(DLManagedTensor* managed, CallSite where = CallSite::here());

/// A DLPack view of the value, which keeps the memory alive until its consumer calls the deleter.
/// Forces evaluation. The consumer must not write to it: vt's values never change.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& t, CallSite where = CallSite::here());

}  // namespace vt
