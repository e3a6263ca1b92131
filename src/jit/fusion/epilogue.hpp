// Epilogues: kernels that run inside a matrix product, on rows of its result that were just
// finished.
#pragma once

#include <vt/detail/function.hpp>

#include "../nest/schedule.hpp"
#include "fuse.hpp"

namespace vt::detail {

/// Finds the kernels that can work on a product's result row by row, and makes each one step with
/// its product.
void attach_epilogues(Fusion&, int vector_bytes);
/// Asks of each kernel that reads a product before all others whether it may be one step with it:
/// `attach(kernel, product, alone)` then makes it one.
/// alone: nothing else reads the product.
void attach_to_products(
    Fusion&, FunctionRef<bool(FusedStep& kernel, const FusedStep& product, bool alone)> attach);

/// Do these accesses of an array of `columns` columns stay, in each iteration of the loop, in the
/// row of its number?
bool stays_in_rows(Nest&, int row_loop, const Vec<IndexId>& accesses, std::int64_t columns);

/// The schedule of an epilogue: its parallel loop is the one over rows.
Schedule schedule_epilogue(const Nest&, int row_loop, int vector_bytes, std::string* log = nullptr);

}  // namespace vt::detail
