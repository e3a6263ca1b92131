// The per-thread stores behind recycled.hpp.
#include "recycled.hpp"

#include <bit>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "shared_library.hpp"

namespace vt::detail {

namespace recycled_memory {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kept = false;  // the sanitizers must see every life of a block
#else
constexpr bool kept = true;
#endif

// Blocks by the power of two that holds them. Shorter ones are malloc's business, longer ones are
// rare.
constexpr int least_class = 12, classes = 12;  // 4 KB to 8 MB
constexpr std::size_t most_bytes = std::size_t{16} << 20;

// Without a destructor, like FreeList: Tensors that live as long as the process give memory back
// after its first thread has ended.
struct Blocks {
  void* heads[classes] = {};
  std::size_t bytes = 0;
  bool open = false;  ///< the end of the thread is seen to
};
constinit thread_local Blocks blocks;
constinit thread_local bool ended = false;  ///< memory goes back at once from here on

int class_of(std::size_t bytes) {
  return static_cast<int>(std::bit_width(bytes - 1)) - least_class;
}

}  // namespace recycled_memory

struct EndOfThread {
  Vec<FreeList*> lists;
  ~EndOfThread() {
    using namespace recycled_memory;
    const auto drop = [](void*& head) {
      while (head) ::operator delete(std::exchange(head, *static_cast<void**>(head)));
    };
    ended = true;
    for (FreeList* list : lists) {
      list->open_ = false;
      drop(list->head_);
    }
    for (void*& head : blocks.heads) drop(head);
  }
  static EndOfThread& of_this() {
    static thread_local EndOfThread end;
    return end;
  }
};

// The first use of vt comes by here.
void* FreeList::take_elsewhere(std::size_t bytes) {
  static const bool stays = (stay_loaded(), true);
  static_cast<void>(stays);
  return ::operator new(bytes);
}

void FreeList::give_elsewhere(void* memory) noexcept {
  if (recycled_memory::kept && !open_ && !recycled_memory::ended) {
    EndOfThread::of_this().lists.push_back(this);
    open_ = true;
    return give(memory);
  }
  ::operator delete(memory);
}

namespace recycled_memory {
constexpr std::size_t list_step = 64, list_classes = 8;
constinit thread_local FreeList lists[list_classes] = {1 << 14, 1 << 14, 1 << 14, 1 << 14,
                                                       1 << 14, 1 << 14, 1 << 14, 1 << 14};
}  // namespace recycled_memory

void* ListMemory::take(std::size_t bytes) {
  using namespace recycled_memory;
  const std::size_t k = (bytes - 1) / list_step;
  return k < list_classes ? lists[k].take((k + 1) * list_step) : ::operator new(bytes);
}

void ListMemory::give(void* memory, std::size_t bytes) noexcept {
  using namespace recycled_memory;
  const std::size_t k = (bytes - 1) / list_step;
  if (k < list_classes) lists[k].give(memory);
  else ::operator delete(memory);
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
  if (k >= classes || ended || blocks.bytes + size > most_bytes) {
    ::operator delete(memory);
    return;
  }
  if (!blocks.open) {
    EndOfThread::of_this();
    blocks.open = true;
  }
  *static_cast<void**>(memory) = blocks.heads[k];
  blocks.heads[k] = memory;
  blocks.bytes += size;
}

}  // namespace vt::detail
