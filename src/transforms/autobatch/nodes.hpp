// NodeGraph: a recorded Graph as nodes to be batched. Which equations are alike, which values all
// of them share, and which are rows of an array.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "ragged.hpp"

namespace vt::detail::autobatching {

/// Where a value comes from.
struct Source {
  enum class Kind : std::uint8_t {
    shared,  ///< computed once: an input, or made of such
    given,   ///< a value of one instance that is known already
    node     ///< result `output` of node `node`, of those of its equations one after the other
  } kind = Kind::shared;
  Var var = -1;  ///< shared: the first of those that are the same; given: the input
  std::int32_t node = -1, output = 0;
};

/// A shared value that is row `row` of the shared value `array`, whose first `axes` axes count
/// rows.
struct RowRead {
  Var array = -1;
  std::int64_t row = 0;
  int axes = 1;
};

/// What nodes that may run together have in common.
struct Signature {
  enum class Kind : std::uint8_t {
    op,    ///< equations, of which none has effects
    sum,   ///< all operands added up, however many
    fold,  ///< the rows of a ragged operand combined by an op
    rows,  ///< rows of other values, and lists of them as one value
    alone  ///< has effects: in the order of recording, never batched
  } kind = Kind::op;
  std::int32_t node = -1;    ///< one that has it
  Vec<Var> shared;           ///< per operand: what all nodes share; −1: each has its own
  Vec<std::int32_t> result;  ///< per result of the equations: its number among those that others
                             ///< than these equations read; −1: none does
  bool heavy = false;        ///< more than an element-wise op
  std::uint64_t name = 0;    ///< for Experience: of program and equations; 0: there is none
};

/// An equation, or several that always follow one another.
struct Node {
  std::int32_t signature = -1;
  std::int32_t after = -1;  ///< the last node with effects before this one, if it has some itself
};

struct NodeGraph {
  GraphBody graph;         ///< whose equations they are
  Vec<std::int64_t> rows;  ///< per Var, as in RaggedGraph; so are
  Vec<RaggedGraph::Form> forms;
  Vec<Source> sources;       ///< per Var
  Vec<RowRead> row_reads;    ///< per Var; array −1: it is no such row
  Vec<std::int32_t> makers;  ///< per Var: the equation that makes it; −1: an input
  Vec<Node> nodes;           ///< each after those that it needs
  /// Of all nodes, one after the other; where those of each begin, and one number more.
  Vec<std::int32_t> equations, first_equation;
  Vec<Var> operands;
  Vec<std::int32_t> first_operand;
  /// Per operand of the equations of a node: which one of the node's it is; −1 − r: result r of its
  /// own equations. Those of nodes of one equation are that equation's.
  Vec<std::int32_t> wires, first_wire;
  Vec<Signature> signatures;
  std::size_t recorded = 0;  ///< so many nodes there were before some were joined

  const Equation& equation(std::int32_t k) const { return graph.equations[k]; }
  bool is_ragged(Var v) const { return !rows.empty() && rows[v] >= 0; }
  /// How many rows the value has; 1 if it is not ragged.
  std::int64_t rows_of(Var v) const { return is_ragged(v) ? rows[v] : 1; }
  /// … each result of the node.
  std::int64_t rows_of_node(std::int32_t node) const {
    const Equation& e = equation(equations_of(node)[0]);
    return e.outputs.empty() ? 1 : rows_of(e.outputs[0]);
  }

  std::span<const std::int32_t> equations_of(std::int32_t node) const {
    return part(equations, first_equation, node);
  }
  std::span<const Var> operands_of(std::int32_t node) const {
    return part(operands, first_operand, node);
  }
  std::span<const std::int32_t> wires_of(std::int32_t node) const {
    return part(wires, first_wire, node);
  }

 private:
  template <class T>
  static std::span<const T> part(const Vec<T>& all, const Vec<std::int32_t>& first,
                                 std::int32_t node) {
    const std::size_t n = node;
    return {all.data() + first[n], static_cast<std::size_t>(first[n + 1] - first[n])};
  }
};

/// Which equations become one node.
struct Joining {
  bool any = true;  ///< those that always follow one another; else each is one of its own
  /// Whose minibatch it is: what is alike in all of them is made alike; 0: of none
  std::uint64_t program = 0;
};
/// `given`: the last inputs, which are values of single instances. Vars of the Graph stay what they
/// are.
NodeGraph find_nodes(GraphBody, Joining, std::span<const GivenValue> given = {});

}  // namespace vt::detail::autobatching
