// NodeGraph: a recorded Graph as nodes to be batched. Which equations are alike, which values all
// of them share, and which are rows of an array.
#pragma once

#include <cstdint>

#include <vt/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail::autobatching {

/// Where a value comes from.
struct Source {
  enum class Kind : std::uint8_t {
    shared,  ///< computed once: an input, or made of such
    given,   ///< a value of one instance that is known already
    node     ///< result `output` of node `node`
  } kind = Kind::shared;
  Var var = -1;  ///< shared: the first of those that are the same; given: the input
  std::int32_t node = -1, output = 0;
};

/// A shared value that is row `row` of the shared value `array`.
struct RowRead {
  Var array = -1;
  std::int64_t row = 0;
};

/// What nodes that may run together have in common.
struct Signature {
  enum class Kind : std::uint8_t {
    op,    ///< one equation, or a call
    sum,   ///< all operands added up, however many
    alone  ///< has effects: in the order of recording, never batched
  } kind = Kind::op;
  std::int32_t equation = -1;  ///< one that has it
  Vec<Var> shared;             ///< per operand: what all nodes share; −1: each has its own
  bool heavy = false;          ///< more than an element-wise op
};

struct Node {
  std::int32_t equation = -1, signature = -1;
  std::int32_t after = -1;  ///< the last node with effects before this one, if it has some itself
};

struct NodeGraph {
  Vec<Source> sources;       ///< per Var
  Vec<RowRead> row_reads;    ///< per Var; array −1: it is no such row
  Vec<std::int32_t> makers;  ///< per Var: the equation that makes it; −1: an input
  Vec<Node> nodes;           ///< in the order of recording
  Vec<std::int32_t> first;   ///< per node, and one more: where its operands begin
  Vec<Var> operands;         ///< of all nodes, one after the other
  Vec<Signature> signatures;

  std::span<const Var> operands_of(std::int32_t node) const {
    const auto n = static_cast<std::size_t>(node);
    return {operands.data() + first[n], static_cast<std::size_t>(first[n + 1] - first[n])};
  }
};

/// The last `given` inputs are values of single instances.
NodeGraph find_nodes(const GraphBody&, std::size_t given = 0);

}  // namespace vt::detail::autobatching
