// Linear algebra on matrices in memory: what an equation of the linalg family computes,
// matrix by matrix.
#pragma once

#include <cstdint>

#include "../ir/graph.hpp"

namespace vt::detail {

/// One equation of the linalg family, with its shapes. All matrices are row-major and dense.
struct LinalgSpec {
  Op op = Op::cholesky;
  DType dtype = DType::f64;
  bool lower = true, transposed = false, unit_diagonal = false, full = false, vectors = true,
       pivoted = false;
  bool factored = false;            ///< solve: operands are (a, lu, permutation, b)
  std::int64_t batch = 0;           ///< matrices
  std::int64_t m = 0, n = 0;        ///< of the first operand (tridiagonal: n)
  std::int64_t columns = 0;         ///< of the right sides
  std::int64_t operations() const;  ///< about how many, for each matrix
  std::size_t operands() const;
  std::size_t scratch_bytes() const;  ///< about what run_linalg takes beside operands and results
};

LinalgSpec linalg_spec(const GraphBody&, const Equation&);

/// Runs matrices begin … end − 1 of the batch, in their own dtype (c64 in f64, rounded once at the
/// end). Results that are null are not written.
void run_linalg(const LinalgSpec&, const void* const* operands, void* const* results,
                std::int64_t begin, std::int64_t end);

}  // namespace vt::detail
