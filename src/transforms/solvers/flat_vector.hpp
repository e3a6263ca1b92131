// Trees of unknowns as one vector, and back: what the solvers compute with.
#pragma once

#include <span>
#include <vector>

#include "../../trace/ops/support/operands.hpp"
#include "../grad/build.hpp"

namespace vt::detail::solver_parts {

inline std::vector<Tensor> joined(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// The dtype that they promote to.
inline DType raveled_dtype(std::span<const Tensor> leaves) {
  DType dtype = leaves[0].dtype();
  for (const Tensor& t : leaves) dtype = promote(dtype, t.dtype());
  return dtype;
}
/// The leaves as one vector of that dtype, and back.
inline Tensor raveled(std::span<const Tensor> leaves) {
  std::vector<Tensor> flat;
  const DType dtype = raveled_dtype(leaves);
  for (const Tensor& t : leaves)
    flat.push_back(grad_build::convert_to(grad_build::with_shape(t, Shape{t.size()}), dtype));
  return flat.size() == 1 ? flat[0] : emit(Op::concatenate, make_params(AxisParams{0}), flat, {});
}
/// Leaves of these shapes and dtypes.
inline std::vector<Tensor> unraveled(const Tensor& flat, std::span<const Aval> like) {
  std::vector<Tensor> leaves;
  std::int64_t start = 0;
  for (const Aval& a : like) {
    const std::int64_t size = a.elements();
    const Tensor part =
        like.size() == 1 ? flat : grad_build::slice_axis(flat, 0, start, start + size);
    leaves.push_back(grad_build::convert_to(grad_build::with_shape(part, a.shape), a.dtype));
    start += size;
  }
  return leaves;
}
inline std::vector<Tensor> unraveled(const Tensor& flat, std::span<const Tensor> like) {
  Vec<Aval> avals;
  for (const Tensor& t : like) avals.push_back(aval_of(t));
  return unraveled(flat, std::span<const Aval>(avals));
}

}  // namespace vt::detail::solver_parts
