// Ragged: what is computed of lists (stack, concatenate) whose length differs from instance to
// instance, as what is done to each of their rows, so that it is of one kind for all lengths.
#pragma once

#include <cstdint>
#include <span>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail::autobatching {

/// A Graph in which some Vars are ragged: they stand for any number of rows, each of the Var's
/// type, which has extent 1 along the axis of the rows. An equation with a ragged result is done to
/// each row; operands that are not ragged are the same for all rows. But for equations that move
/// or combine rows:
/// - rows with a ragged result: the rows of all operands, one behind the other; or those of its run
/// - rows with a ragged operand: its rows as one value
/// - iota with a ragged result: 0, 1, 2 …
/// - add, max, min, and, or with a single operand: its rows combined, whose elements are those
///   of the result
struct RaggedGraph {
  /// The rows that a value consists of, along one of its axes.
  struct Form {
    Var rows = -1;
    int axis = -1;
  };
  GraphBody graph;
  Vec<std::int64_t> rows;  ///< per Var: how many; −1: it is not ragged; empty: none is
  Vec<Form> forms;         ///< per Var of the Graph before; rows −1: it has none
};
/// A value of a single instance that is known: with an axis it lies there as rows.
struct GivenValue {
  std::int64_t rows = 1;
  int axis = -1;
};

/// Vars keep their numbers, and what they are; ragged ones are new. Lists whose counts have
/// differed at a line of the program are ragged, now and from then on. `given`: the last inputs,
/// of which those that lie as rows become ragged ones.
RaggedGraph with_ragged_lists(GraphBody graph, std::uint64_t program,
                              std::span<const GivenValue> given);

}  // namespace vt::detail::autobatching
