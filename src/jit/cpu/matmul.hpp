// Matrix products on the CPU: which kernel a product uses, how it is blocked and cut over threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <vt/dtype.hpp>

namespace vt::detail::cpu {

/// c[i][m,n] = Σ_k a[i][m,k] · b[i][k,n] for i < batch. Strides in elements; c is dense and row-major.
struct MatmulSpec {
  DType a_dtype = DType::f32, b_dtype = DType::f32;  ///< of the operands in memory
  DType accumulate = DType::f32;                     ///< of the sums
  DType result = DType::f32;                         ///< of c
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t a_batch = 0, a_row = 0, a_column = 1;
  std::int64_t b_batch = 0, b_row = 0, b_column = 1;
};

/// A product made ready to run. Any thread may run it; the work is cut by the shape alone, so the bits never depend on threads.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void run(const void* a, const void* b, void* c) const = 0;
  /// "direct 14x32 f32", "packed …": for vt::explain.
  virtual std::string describe() const = 0;
};

/// The kernel for `spec`, compiled or from a cache. Null when there is no LLVM.
std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& spec);

}  // namespace vt::detail::cpu
