// The buffer plan of a program: where every Var lies in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "fuse.hpp"

namespace vt::detail {

struct BufferPlan {
  struct Slot {
    enum class Kind : std::uint8_t {
      unused,     ///< shares storage with another, or nobody reads it
      input,      ///< inputs[index]; also a result that is written over it
      constant,   ///< the buffer of equation `index`
      output,     ///< a fresh buffer, the program's output `index`
      arena,      ///< the program's scratch memory at `offset`
      in_output,  ///< inside the buffer of output `index`, before that is written
      produced,   ///< a buffer that its step makes
    } kind = Kind::unused;
    int index = -1;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// The steps that read and write a value: the first and the last of them; of results the last is
  /// behind all steps. −1: none.
  struct Life {
    int first = -1, last = -1;
  };
  /// per Var of the Fusion's graph (those that share storage are unused but for one)
  Vec<Slot> slots;
  Vec<Life> lives;
  std::size_t arena_bytes = 0;
  /// Per step: the produced buffers that nobody needs after it.
  Vec<Vec<Var>> released;
  /// Per step that makes buffers: what ends there and is one of its operands only, so that it may
  /// have the memory. Produced buffers and, for loops and branches, carries (owned inputs, or what
  /// lies over them).
  Vec<Vec<Var>> handed_over;
};

/// Inputs that nobody else holds, so that results may be written over them: the states of a loop,
/// donated arguments.
struct OwnedInputs {
  Vec<char> inputs;         ///< per input, as far as there are owned ones
  std::size_t results = 0;  ///< any of the first so many may lie over any of them
  /// The first so many of both.
  static OwnedInputs carries(std::size_t count) { return {Vec<char>(count, 1), count}; }
};

/// Has results share memory with the owned inputs that end where they are written, rather than with
/// other operands. Before kernels are compiled.
void prefer_owned(Fusion&, const OwnedInputs& owned);

/// What lies where, and for how long. Not counted: what steps take while they work.
Memory planned_memory(const Fusion&, const BufferPlan&);
/// The order in which they are shown.
void largest_first(std::vector<Memory::Value>&);

/// `within_results`: per Var, may its buffer lie in that of a result? Empty: all may.
BufferPlan plan_buffers(const Fusion&, const OwnedInputs& owned = {},
                        std::span<const bool> within_results = {});

/// The user's line that makes the largest array: what to name when memory is short. Any thread; the
/// running call's line where no equation has one.
CallSite line_of_largest(const GraphBody&);

}  // namespace vt::detail
