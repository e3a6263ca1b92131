// The buffer plan of a program: where every Var in memory lives.
#pragma once

#include <cstdint>

#include <vt/small_vec.hpp>

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
  Vec<Slot> slots;  ///< per Var of the Fusion's graph (those that share storage are unused but for one)
  std::size_t arena_bytes = 0;
  /// Per step: the produced buffers that nobody needs after it.
  Vec<Vec<Var>> released;
  /// Per step that is a loop or branch: the carries (inputs, or what lies over them) that end there, so that it may have their memory.
  Vec<Vec<Var>> handed_over;
};

/// `carries`: so many inputs may be overwritten by as many outputs (any of them by any): a loop that owns them hands them in.
BufferPlan plan_buffers(const Fusion&, std::size_t carries = 0);

}  // namespace vt::detail
