// Scans along few long rows, each cut into blocks that run in parallel.
#pragma once

#include <span>

#include "../mapping/mapping.hpp"
#include "launch.hpp"

namespace vt::detail::cuda {

/// Into how many iterations of its reduce loop a block of a nest of running sums, products or
/// extremes is to be cut, as its rows are too few to keep a device busy; 0: not at all. From the
/// nest's shapes alone, as it decides over the last bits.
std::int64_t scan_block(const Nest&);

/// Adds the launches of such a nest: what each block comes to, what all blocks before each come to,
/// and the nest itself from there. `buffers`, `numbers`: of the nest, as its kernel takes them.
void add_long_scan(const Nest&, std::int64_t block, std::span<const Launch::Pointer> buffers,
                   const Vec<std::int64_t>& numbers, const DeviceShape& device,
                   ScratchLayout& scratch, Vec<Launch>& launches);

}  // namespace vt::detail::cuda
