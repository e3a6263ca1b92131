// A flow graph on the way: blocks of equations on values, of which it is not known yet which of
// them other blocks read.
#pragma once

#include "flow_graph.hpp"

namespace vt::detail {

struct FlowDraft {
  struct Value {
    Aval aval;
    int function = 0;
    bool shared = false;
    int operand = -1;   ///< of the lane call, or of the prologue's results behind them
    int constant = -1;  ///< the equation that makes it, of nothing, wherever it is wanted
  };
  struct Copy {
    int to, from;
  };
  /// value ← array[index], or array itself, or the elements at these positions; array[index] ←
  /// value
  struct Load {
    int value, array, index;
    bool elements = false;
  };
  struct Store {
    int array, value, index;
  };
  /// An equation of a block that gives a large array with some elements overwritten. If nothing
  /// reads that array afterwards, its memory is the result's.
  struct Update {
    int equation, positions;
  };
  struct Block {
    int function = 0;
    Vec<Load> loads;          ///< first
    Vec<Equation> equations;  ///< on values
    Vec<Update> updates;      ///< in the order of the equations
    Vec<Copy> copies;         ///< after them, all at once
    Vec<Copy> arguments;      ///< … to the callee's parameters
    Vec<Store> stores;        ///< likewise
    FlowGraph::Exit exit = FlowGraph::Exit::leave;
    int decides = -1;
    Vec<int> targets;
    int callee = -1;
    bool tail = false, meeting = false;
    CallSite where, called_at;
  };
  struct Function {
    std::string name;
    const RecursiveFunction* recursion = nullptr;
    int entry = 0;
    Vec<int> parameters, results;  ///< values; −1: shared
  };
  Vec<Value> values;
  Vec<Equation> constants;
  Vec<Block> blocks;
  Vec<Function> functions;
  int operands = 0;  ///< of the lane call; what the prologue makes comes behind them
  GraphRef prologue;
  Vec<int> prologue_operands;
};

/// Finds where values lie, and makes the bodies of the blocks.
FlowGraph finished(FlowDraft);

}  // namespace vt::detail
