// SortSpec: a sort in the form that kernels take: rows in memory, and which part of the order is
// wanted.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// One sort as memory sees it: row-major [outer, length, inner], sorted along the middle.
struct SortSpec {
  std::int64_t outer = 1, length = 0, inner = 1;
  std::int64_t start = 0, limit = 0;  ///< the places of the order that are wanted
  int keys = 1;
  bool descending = false;
  SmallVec<DType, 4> dtypes;   ///< of the operands
  SmallVec<char, 4> is_place;  ///< the operand is the element's place in its row, and not read
};

SortSpec sort_spec(const struct Fusion&, const Equation& sort);
/// May an iota of this dtype be left out of memory?
inline bool can_be_place(DType d) { return is_int(d) && size_of(d) >= 4; }

}  // namespace vt::detail
