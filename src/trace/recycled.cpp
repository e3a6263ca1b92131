// The per-thread stores behind recycled.hpp.
#include "recycled.hpp"

#include <bit>
#include <utility>

#include <vt/small_vec.hpp>

namespace vt::detail {

namespace recycled_memory {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kept = false;  // the sanitizers must see every life of a block
#else
constexpr bool kept = true;
#endif

// Blocks by the power of two that holds them. Shorter ones are malloc's business, longer ones are rare.
constexpr int least_class = 12, classes = 12;  // 4 KB to 8 MB
constexpr std::size_t most_bytes = std::size_t{16} << 20;

struct Blocks {
  void* heads[classes] = {};
  std::size_t bytes = 0;
  bool closed = false;
  constexpr Blocks() = default;
  ~Blocks() {
    closed = true;
    for (void*& head : heads)
      while (head) ::operator delete(std::exchange(head, *static_cast<void**>(head)));
  }
};

constinit thread_local Blocks blocks;

int class_of(std::size_t bytes) { return static_cast<int>(std::bit_width(bytes - 1)) - least_class; }

}  // namespace recycled_memory

struct FreeListsOfThread {
  Vec<FreeList*> lists;
  ~FreeListsOfThread() {
    for (FreeList* list : lists) {
      list->open_ = false;
      list->closed_ = true;
      while (list->head_) ::operator delete(std::exchange(list->head_, *static_cast<void**>(list->head_)));
    }
  }
};

void FreeList::give_elsewhere(void* memory) noexcept {
  if (recycled_memory::kept && !open_ && !closed_) {
    static thread_local FreeListsOfThread all;
    all.lists.push_back(this);
    open_ = true;
    return give(memory);
  }
  ::operator delete(memory);
}

void* take_block(std::size_t bytes) {
  using namespace recycled_memory;
  if (!kept || bytes < (std::size_t{1} << least_class)) return ::operator new(bytes);
  const int k = class_of(bytes);
  if (k >= classes) return ::operator new(bytes);
  const std::size_t size = std::size_t{1} << (k + least_class);
  if (void*& head = blocks.heads[k]) {
    blocks.bytes -= size;
    return std::exchange(head, *static_cast<void**>(head));
  }
  return ::operator new(size);
}

void give_block(void* memory, std::size_t bytes) noexcept {
  using namespace recycled_memory;
  const int k = kept && bytes >= (std::size_t{1} << least_class) ? class_of(bytes) : classes;
  const std::size_t size = k < classes ? std::size_t{1} << (k + least_class) : bytes;
  if (k >= classes || blocks.closed || blocks.bytes + size > most_bytes) {
    ::operator delete(memory);
    return;
  }
  *static_cast<void**>(memory) = blocks.heads[k];
  blocks.heads[k] = memory;
  blocks.bytes += size;
}

}  // namespace vt::detail
