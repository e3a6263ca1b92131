// What rounding takes from a sum, for any emitter.
#pragma once

#include "../../trace/ir/op.hpp"

namespace vt::detail {

/// What rounding took from `sum` = a + b (Knuth's TwoSum): exact, whichever is larger; not finite
/// where the sum is not. `apply(op, x, y)` computes.
template <class V, class Apply>
V taken_by_rounding(const V& a, const V& b, const V& sum, const Apply& apply) {
  const V rise = apply(Op::sub, sum, a);
  return apply(Op::add, apply(Op::sub, a, apply(Op::sub, sum, rise)), apply(Op::sub, b, rise));
}

}  // namespace vt::detail
