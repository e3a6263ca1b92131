// Scatters whose updates may write the same element: which of them run in parallel, and the kernels
// that put the others in order.
#pragma once

#include <span>

#include "../mapping/mapping.hpp"
#include "launch.hpp"

namespace vt::detail::cuda {

/// Adds the launches of a nest whose updates are sorted: each index (an iteration of the key loops)
/// becomes a number, these are sorted with their iterations, and the updates of each element are
/// combined in the iterations' order. So the result is the interpreter's, bit by bit, but where
/// more than `piece` updates of one element meet: then each piece of the sorted updates is combined
/// by itself, and the pieces in their order. Either way it is the same in every run. `buffers`,
/// `numbers`: of the nest, as its kernel takes them.
void add_sorted_updates(const Nest&, const UpdatePlan&, std::span<const Launch::Pointer> buffers,
                        const Vec<std::int64_t>& numbers, int multiprocessors,
                        ScratchLayout& scratch, Vec<Launch>& launches);

}  // namespace vt::detail::cuda
