// The flow graph of a lane call: what one lane goes through, as blocks of straight code between
// which lanes part, and where its values lie meanwhile. Source: Radul et al. 2019, "Automatically
// Batching Control-Intensive Programs for Modern Accelerators".
#pragma once

#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

struct RecursiveFunction;

struct FlowGraph {
  enum class Storage : std::uint8_t {
    shared,    ///< one value for all lanes: an operand, or what is made of such
    argument,  ///< a row of an operand for each lane, which nothing writes
    state,     ///< a row for each place; a call that leads back here finds it dead, or as it is
    saved      ///< in the frame of the call: a row for each place and depth
  };
  /// A value that more than one block knows.
  struct Slot {
    Aval aval;
    Storage storage = Storage::state;
    int function = 0;
    std::size_t offset = 0;  ///< saved: in the frame
    int operand = -1;        ///< shared, argument: of the lane call, or of the prologue's results
  };
  /// A slot, or a row of one along axis 0: that which another slot has the number of. Or some
  /// elements: of which it has the positions, as i32, counted from 1; 0: none, which reads as zero
  /// and is not written.
  struct Place {
    int slot = -1;
    int index = -1;
    std::size_t bytes = 0;
    bool elements = false;
  };
  /// What a block hands on: a result of its body, or what it has read itself.
  struct Source {
    int result = -1, read = -1;
  };
  struct Write {
    Place to;
    Source from;
    bool callee = false;  ///< in the frame of the function that is called
    Source positions;     ///< to.elements: they are no slot's
    bool adds = false;    ///< … to what is there
  };
  enum class Exit : std::uint8_t {
    jump,    ///< to targets[0]
    branch,  ///< to targets[i]: i is what `decides`, an i32 that is clamped
    call,    ///< to the entry of `callee`; its return leads to targets[0]
    leave    ///< returns
  };
  struct Block {
    int function = 0;
    GraphRef body;  ///< straight code of one lane, what it reads → its results; null: none
    Vec<Place> reads;
    Vec<bool> in_body;  ///< per read: is it an input of the body, in this order?
    Vec<Write> writes;  ///< all reads come before them
    Exit exit = Exit::leave;
    Source decides;
    Vec<int> targets;
    int callee = -1;
    bool tail = false;     ///< a call whose results are the caller's: it is a jump that counts
    bool meeting = false;  ///< lanes wait here for all others
    double work = 0;       ///< of one lane
    CallSite where;        ///< of what it does first
    CallSite called_at;    ///< of its call
  };
  struct Function {
    std::string name;
    const RecursiveFunction* recursion = nullptr;
    int entry = 0;
    Vec<int> parameters, results;  ///< slots; −1: nothing reads it
    std::size_t frame_bytes = 0;
  };

  Vec<Slot> slots;
  Vec<Block> blocks;
  Vec<Function> functions;  ///< the lane call's body is the first
  /// What depends on no lane: computed once, of the shared operands. Its results are operands
  /// behind those of the lane call. Null: nothing is.
  GraphRef prologue;
  Vec<int> prologue_operands;
  Vec<int> results;  ///< of the lane call: slots of states

  /// "n", as users read it: names of ops, the heaviest first.
  std::string operations_of(const Block&) const;
  /// As a program: push, pop, jump, branch, call, return.
  std::string str() const;
};

/// `body`: of one lane; `mapped`: which inputs lanes have of their own. `in_place`: of large arrays
/// only those elements are read and written that are picked, so that no block moves all of them.
FlowGraph flow_graph(const GraphRef& body, const Vec<bool>& mapped, bool in_place = true);

}  // namespace vt::detail
