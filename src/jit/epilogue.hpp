// Epilogues: kernels that run inside a matrix product, on rows of its result that were just finished.
#pragma once

#include "fuse.hpp"
#include "schedule.hpp"

namespace vt::detail {

/// Finds the kernels that can work on a product's result row by row, and makes each one step with its product.
void attach_epilogues(Fusion&, int vector_bytes);

/// The schedule of an epilogue: its parallel loop is the one over rows.
Schedule schedule_epilogue(const Nest&, int row_loop, int vector_bytes, std::string* told = nullptr);

}  // namespace vt::detail
