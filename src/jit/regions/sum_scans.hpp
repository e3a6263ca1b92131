// Sums over many rows of what is computed of each row, as JᵀJ and Jᵀr of a fit: all from one
// reading of the rows, of which nothing is stored.
#pragma once

#include <cstdint>

#include "../../trace/ir/graph.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

/// Loops and branches of lanes that fit no register kernel, but do where sums over rows in their
/// bodies are scans over these rows: those in that form.
GraphBody scan_sums_of_lanes(GraphBody, std::int64_t frame, const RegisterLimits&);
/// The Graph's own products of matrices that have many rows and few columns, and are computed row
/// by row, as such scans.
GraphBody scan_sums_of_rows(GraphBody, const RegisterLimits&);

}  // namespace vt::detail
