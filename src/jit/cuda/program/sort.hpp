// Sorts on the device: which kernels a sort takes.
#pragma once

#include <span>

#include "../../fusion/sort_spec.hpp"
#include "launch.hpp"

namespace vt::detail::cuda {

/// A result that nobody wants, as a pointer.
constexpr Launch::Pointer unwanted{-2, 0};

/// Adds the launches of a sort. Rows that fit into a block's shared memory are ordered there,
/// several by a block where they are short. Of long rows, the first few elements are found digit by
/// digit and ordered in shared memory (two launches at most); all of them by a stable radix sort, 8
/// bits a pass, which cuts each row in tiles. Operands and results as the equation has them;
/// pointers to operands that are places are not used. The order, and so the results, are those of
/// any other way of sorting. `multiprocessors`: of the device.
void add_sort(const SortSpec&, std::span<const Launch::Pointer> operands,
              std::span<const Launch::Pointer> results, int multiprocessors, ScratchLayout& scratch,
              Vec<Launch>& launches);

}  // namespace vt::detail::cuda
