// FusedStep: a step of a program, as fusion gives it; Fusion: all of them, and their Graph.
#pragma once

#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../nest/loop_nest.hpp"
#include "../nest/schedule.hpp"
#include "conv_spec.hpp"
#include "matmul_spec.hpp"

namespace vt::detail {

/// Values by their storage.
struct StepAccess {
  Vec<Var> read, written;
};

/// A step of a program: a kernel, or one equation that is run by other means (a matrix product with
/// or without a kernel on its rows, the interpreter).
struct FusedStep {
  int equation = -1;  ///< ≥ 0: that equation of Fusion::graph instead of a kernel
  /// Of a dot_general, or a conv_general: what kernels of products take; null: none can.
  std::shared_ptr<const MatmulSpec> product;
  std::shared_ptr<const ConvSpec> convolution;
  Nest nest;
  /// Of the nest, on the host.
  Schedule schedule;
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
  std::shared_ptr<const MatmulSpec> product_then;  ///< of `then`
  /// Of an exchange between processes: the step begins it, and a later one with the same equation
  /// waits until it is done; or one does both.
  enum class Part : std::uint8_t { whole, begin, finish };
  Part part = Part::whole;
  /// > 0: this kernel and that of the next step run in turns: so many iterations of this one's
  /// shared loop, then the iteration of the other's that reads the same rows of a large array.
  std::int64_t pair_rows = 0;
  /// Makes this kernel one step with the product of `other`.
  void join(const FusedStep& other) {
    equation = other.equation;
    product = other.product;
    convolution = other.convolution;
  }
  /// `equation` and `then`, as far as there are any.
  SmallVec<int, 2> equations() const {
    SmallVec<int, 2> all;
    for (int e : {equation, then})
      if (e >= 0) all.push_back(e);
    return all;
  }
};

struct Fusion {
  GraphBody graph;  ///< as given; with extra Vars for partial results
  /// per Var: the Var whose buffer holds its elements (reshapes share), itself mostly
  Vec<Var> storage;
  Vec<int> maker;  ///< per Var: the equation that makes it; −1: none
  Vec<FusedStep> steps;
  /// Per Var of the graph as given: what each reader would take to compute it again (in the cost
  /// model's operations an element), where it was stored for that reason; else 0.
  Vec<int> again;

  StepAccess access(const FusedStep& s) const {
    StepAccess all;
    for (std::size_t b = 0; b < s.buffers.size(); ++b)
      (s.nest.buffers[b].written ? all.written : all.read).push_back(storage[s.buffers[b]]);
    for (int e : s.equations()) {
      for (Var v : graph.equations[e].inputs) all.read.push_back(storage[v]);
      for (Var v : graph.equations[e].outputs) all.written.push_back(storage[v]);
    }
    return all;
  }
};

}  // namespace vt::detail
