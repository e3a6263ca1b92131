// Fusion: which equations of a Graph go into one kernel, and the loop nest of each.
#pragma once

#include <string>

#include <vt/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../nest/loop_nest.hpp"

namespace vt::detail {

/// Replaces equations that own a sub-graph they merely run (call, checkpoint, custom_*) by its
/// equations.
GraphBody inline_calls(const GraphBody&);
/// Reductions and broadcasts over long axes and short last ones with others between them, in two.
GraphBody split_short_axes(GraphBody);
/// Takes sums over rows or columns of matrix products before the products.
GraphBody sum_before_products(GraphBody);

/// A step of a program: a kernel, or one equation that is run by other means (a matrix product with
/// or without a kernel on its rows, the interpreter).
struct FusedStep {
  int equation = -1;  ///< ≥ 0: that equation of Fusion::graph instead of a kernel
  Nest nest;
  /// the Var (of Fusion::graph) behind each of the nest's buffers
  Vec<Var> buffers;
  Vec<std::int64_t> arguments;  ///< the nest's scalar arguments, as bits
  Vec<int> fused;               ///< equations in the kernel, for explain
  bool partial = false;         ///< the first half of a reduction that was cut in two
  /// an equation whose result goes to planned memory (a matrix product)
  bool writes_given_memory = false;
  /// ≥ 0: `equation` is a matrix product, and the nest runs on its rows as they are finished; this
  /// loop of the nest counts them.
  int row_loop = -1;
  std::int64_t row_group = 1;  ///< rows that one iteration of it works on
  bool rows_alone = false;     ///< nothing else reads the product: its rows need not be kept
  /// ≥ 0: a second product, whose left operand `handed_on` is what the kernel makes of the rows.
  /// Neither is ever in memory as a whole.
  int then = -1;
  Var handed_on = -1;
  /// `equation` and `then`, as far as there are any.
  SmallVec<int, 2> equations() const {
    SmallVec<int, 2> all;
    for (int e : {equation, then})
      if (e >= 0) all.push_back(e);
    return all;
  }
};

struct Fusion {
  GraphBody graph;  ///< as given, without calls; with extra Vars for partial results
  /// per Var: the Var whose buffer holds its elements (reshapes share), itself mostly
  Vec<Var> storage;
  Vec<int> maker;  ///< per Var: the equation that makes it; −1: none
  Vec<FusedStep> steps;
  /// Per Var of the graph as given: what each reader would take to compute it again (in the cost
  /// model's operations an element), where it was stored for that reason; else 0.
  Vec<int> again;
};

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

Fusion fuse(GraphBody graph, const FuseOptions& = {});

}  // namespace vt::detail
