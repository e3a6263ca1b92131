// Sorting rows in host memory: the step that a program runs for a sort equation.
#pragma once

#include <cstdint>
#include <string>

#include "../../../trace/ir/graph.hpp"

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

/// Sorts on up to thread_count() threads. A null result is not wanted. The results do not depend on
/// the number of threads.
/// Throws: Error if there is no memory to work in.
void sort_rows(const SortSpec&, const void* const* operands, void* const* results);

/// Bytes that it takes at most beside operands and results. `wanted`: per operand, whether its
/// result is.
std::size_t sort_scratch_bytes(const SortSpec&, const SmallVec<char, 4>& wanted);

/// How it is done, for explain.
std::string describe(const SortSpec&);

}  // namespace vt::detail
