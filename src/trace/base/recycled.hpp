// Memory of the passes, which each thread keeps for its next use: nodes and parameters one by one,
// long vectors as blocks.
//
// A transform makes some thousand nodes and a few vectors of some hundred KB, and drops them all at
// its end. Given back to the C library they would go back to the kernel, and the next transform
// would begin with page faults (a fifth of its time in a profile).
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include <vt/detail/small_vec.hpp>

namespace vt::detail {

/// Blocks of one size, of one thread. (Without a destructor, so that thread_local ones are reached
/// without a check.)
class FreeList {
 public:
  constexpr FreeList(int most = 1 << 16) : most_(most) {}
  void* take(std::size_t bytes) {
    if (!head_) return take_elsewhere(bytes);
    --count_;
    return std::exchange(head_, *static_cast<void**>(head_));
  }
  void give(void* memory) noexcept {
    if (!open_ || count_ >= most_) return give_elsewhere(memory);
    *static_cast<void**>(memory) = head_;
    head_ = memory;
    ++count_;
  }

 private:
  friend struct EndOfThread;
  void* take_elsewhere(std::size_t bytes);
  void give_elsewhere(void* memory) noexcept;

  void* head_ = nullptr;
  int count_ = 0, most_;
  // takes memory; not before the end of the thread is seen to, and not after it
  bool open_ = false;
};

/// At least `bytes` bytes, aligned as operator new; for vectors of any length.
void* take_block(std::size_t bytes);
void give_block(void* memory, std::size_t bytes) noexcept;

struct RecycledMemory {
  static void* take(std::size_t bytes) { return take_block(bytes); }
  static void give(void* memory, std::size_t bytes) noexcept { give_block(memory, bytes); }
};

/// Lists of more operands than a node has room for, as those of calls; short, and many of them.
struct ListMemory {
  static void* take(std::size_t bytes);
  static void give(void* memory, std::size_t bytes) noexcept;
};

/// For what grows with a Graph and lives no longer than a pass or a Graph.
template <class T>
using RecycledVec = SmallVec<T, 0, RecycledMemory>;

}  // namespace vt::detail
