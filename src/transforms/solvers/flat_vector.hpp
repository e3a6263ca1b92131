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

/// The leaves as one vector of the dtype that they promote to, and back.
inline Tensor raveled(std::span<const Tensor> leaves) {
  std::vector<Tensor> flat;
  DType dtype = leaves[0].dtype();
  for (const Tensor& t : leaves) dtype = promote(dtype, t.dtype());
  for (const Tensor& t : leaves)
    flat.push_back(grad_build::convert_to(grad_build::with_shape(t, Shape{t.size()}), dtype));
  return flat.size() == 1 ? flat[0] : emit(Op::concatenate, make_params(AxisParams{0}), flat, {});
}
inline std::vector<Tensor> unraveled(const Tensor& flat, std::span<const Tensor> like) {
  std::vector<Tensor> leaves;
  std::int64_t start = 0;
  for (const Tensor& t : like) {
    const Tensor part =
        like.size() == 1 ? flat : grad_build::slice_axis(flat, 0, start, start + t.size());
    leaves.push_back(grad_build::convert_to(grad_build::with_shape(part, t.shape()), t.dtype()));
    start += t.size();
  }
  return leaves;
}

}  // namespace vt::detail::solver_parts
