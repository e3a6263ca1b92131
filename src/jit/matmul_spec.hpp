// A dot_general as one batched, strided matrix product: what both backends' kernels take.
#pragma once

#include <cstdint>
#include <optional>

#include <vt/dtype.hpp>

#include "../trace/graph.hpp"

namespace vt::detail {

/// c[i][m,n] = Σ_k a[i][m,k] · b[i][k,n] for i < batch. Strides in elements; c is dense and row-major.
struct MatmulSpec {
  DType a_dtype = DType::f32, b_dtype = DType::f32;  ///< of the operands in memory
  DType accumulate = DType::f32;                     ///< of the sums
  DType result = DType::f32;                         ///< of c
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t a_batch = 0, a_row = 0, a_column = 1;
  std::int64_t b_batch = 0, b_row = 0, b_column = 1;
  std::int64_t work_after = 0;  ///< what else is done with every element of c, in multiply-adds: decides how it is cut for threads
};

/// Told of finished rows of c, counted over the whole batch, by the thread that finished them, while they are in its cache.
/// All calls together cover every row once. Does not own what it calls.
class RowsDone {
 public:
  RowsDone() = default;
  template <class F>
  explicit RowsDone(const F& f)
      : context_(&f), call_([](const void* g, std::int64_t begin, std::int64_t end) { (*static_cast<const F*>(g))(begin, end); }) {}
  void operator()(std::int64_t begin, std::int64_t end) const {
    if (call_) call_(context_, begin, end);
  }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  const void* context_ = nullptr;
  void (*call_)(const void*, std::int64_t, std::int64_t) = nullptr;
};

/// How a dot_general becomes a matrix product. An operand whose axes do not collapse into (batch, rows, columns) must be copied
/// in the order of its permutation first; the spec holds for the copy.
struct MatmulPlan {
  MatmulSpec spec;
  std::optional<Axes> lhs_permutation, rhs_permutation;
};
MatmulPlan plan_matmul(const DotParams&, const Aval& lhs, const Aval& rhs);

}  // namespace vt::detail
