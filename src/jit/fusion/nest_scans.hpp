// Scans and user reductions as values that the loops of a nest carry.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "nest_builder.hpp"

namespace vt::detail {

/// Adds a cumulative op to a stage whose reduce loop walks its axis: the value of the result at the
/// current point. `operand`: the element there. `rows`: how many scans there are side by side.
int add_scan(NestBuilder&, Op op, int operand, DType dtype, int stage, std::int64_t rows);

/// Adds a user's reduction: state k starts as inits[k] and becomes output k of body(states…,
/// elements…) in each iteration. Returns the number of the first of its reductions; state k is
/// reduction first + k.
int add_fold(NestBuilder&, const GraphBody& body, const Vec<int>& elements, const Vec<int>& inits,
             int stage);

}  // namespace vt::detail
