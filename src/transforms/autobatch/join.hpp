// Joining: operations that always follow one another as one node.
#pragma once

#include <cstdint>

#include <vt/detail/function.hpp>

#include "nodes.hpp"

namespace vt::detail::autobatching {

/// Joins nodes of one equation each where all nodes from one line of the program can: an operation
/// joins the one that gives its latest operand if those of their lines are equally many, so that
/// no loop and no branch can be between them. What runs less often than what it reads begins a node
/// of its own, so that nodes differ in what they do as little as the lines of the program.
/// `kind`: per node, what it does (equal numbers: the same); becomes that of the joined nodes, with
/// numbers from `kinds` on for several equations. `program`: what goes apart in one minibatch of it
/// is joined in none that follows, so that the same nodes are made of all; 0: of this one alone.
/// `may_join`: of nodes; the op's answer is below.
void join_nodes(NodeGraph&, Vec<std::int32_t>& kind, std::int32_t& kinds, std::uint64_t program,
                FunctionRef<bool(std::int32_t)> may_join);

/// May equations of this op be joined with others?
bool may_join(Op op);

}  // namespace vt::detail::autobatching
