// From a mapped loop nest to the text of a CUDA kernel.
#pragma once

#include <cstdint>
#include <string>

#include "../mapping/mapping.hpp"

namespace vt::detail::cuda {

/// A kernel `extern "C" __global__ void name(buffers…, runtime extents…, arguments…)`, behind the
/// prelude. Pointers to the buffers that are not local in the nest's order, then `long long` each.
std::string nest_source(const Nest&, const Mapping&, const std::string& name);

/// Updates whose elements' numbers were sorted.
struct SortedUpdates {
  /// so many of them, sorted, are combined one after the other
  static constexpr std::int64_t piece = 256;
  const UpdatePlan& plan;
  DType key, place;
};
/// The kernel that combines them with the elements, or with `join` that adds to an element what its
/// later pieces gave. Parameters: those of the nest's kernel, with pointers to sorted keys, to the
/// key loops' iterations that they come from, and to the pieces' results behind the nest's, and the
/// number of keys at the end.
std::string sorted_updates_source(const Nest&, const SortedUpdates&, bool join,
                                  const std::string& name);

}  // namespace vt::detail::cuda
