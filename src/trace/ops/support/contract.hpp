// Contraction of two labelled operands, which matmul, tensordot and einsum are made of.
#pragma once

#include "operands.hpp"

namespace vt::detail {

/// One number per axis; equal numbers are the same index.
using Labels = SmallVec<int, 8>;

/// Products of a and b summed over every label that `out` lacks; result axes in the order of `out`.
/// A label occurs once per operand, with one size, and every label of `out` is in a or b. Dtypes
/// are equal. Transposes only where the order of `out` is none that dot_general gives.
Tensor contract(Tensor a, Labels la, Tensor b, Labels lb, const Labels& out, CallSite where);
/// Sums `t` over the labels that `keep` does not hold, which leave `labels` too.
Tensor summed_to(Tensor t, Labels& labels, const Labels& keep, CallSite where);
/// The axes of `t` in the order of `out`, which has the same labels.
Tensor ordered(const Tensor& t, const Labels& labels, const Labels& out, CallSite where);
/// The diagonal of axes `a` and `b`, as a new last axis.
Tensor diagonal_of(const Tensor& x, std::int64_t offset, int a, int b, CallSite where);

inline bool has_label(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
inline int label_axis(const Labels& labels, int label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

}  // namespace vt::detail
