// Fusion: which equations of a Graph go into one kernel, and the loop nest of each.
#pragma once

#include "fused_step.hpp"

namespace vt::detail {

struct FuseOptions {
  bool matrix_products = false;  ///< leave every dot_general to a step of its own
  int vector_bytes = 64;         ///< of the target; decides how reductions are cut
  /// runs the target on the host? Then products take kernels on their rows
  bool on_host = true;
  /// for which element-wise ops the target has code, others are steps of their own; null: for all
  bool (*has_code)(Op) = nullptr;
};

/// Is the equation compiled into loop nests (as opposed to a step of its own)?
bool can_fuse(const GraphBody&, const Equation&);

/// Is what equation `definition` makes (−1: an input) the place of each element in the rows that
/// `sort` sorts? It is not laid out.
bool is_sorted_place(const GraphBody&, const Equation& sort, int definition);
/// Does the equation write a few elements over a copy of its operand? Such are steps of their own:
/// where the operand is not needed any more, nothing is copied.
bool writes_window(const GraphBody&, const Equation&);

/// The steps of a Graph without calls; passes/pipeline.hpp has what goes before and behind.
Fusion fuse(GraphBody graph, const FuseOptions& = {});

}  // namespace vt::detail
