// What the simplifier knows of integer values without computing them: bounds, and which are
// index · step + start.
#pragma once

#include <cstdint>
#include <optional>

#include "simplify.hpp"

namespace vt::detail::simplification {

/// Bounds of all elements of an integer or bool value, both included.
struct Range {
  std::int64_t low, high;
};
std::optional<Range> range_of(const Pass&, Var, int depth = 12);

/// An integer value whose element at index i is start + step · i[axis]; step 0: the same everywhere
/// (axis −1).
struct Affine {
  std::int64_t start = 0, step = 0;
  int axis = -1;
};
std::optional<Affine> affine_of(const Pass&, Var, int depth = 12);

}  // namespace vt::detail::simplification
