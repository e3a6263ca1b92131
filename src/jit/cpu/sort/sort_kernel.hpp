// Sorting rows in host memory: the step of a program for a sort equation.
#pragma once

#include <string>

#include "../../fusion/sort_spec.hpp"

namespace vt::detail {

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
