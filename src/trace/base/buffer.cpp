// The caching pool behind Buffer: size classes for small blocks, best fit for large ones, one lock,
// a memory limit.
#include "buffer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>

#include <vt/detail/small_vec.hpp>
#endif

#include "environment.hpp"
#include "locks.hpp"
#include "recycled.hpp"

namespace vt::detail {
namespace pool {

constexpr std::size_t alignment = 64;
constexpr std::size_t small_limit = std::size_t{1} << 20;   // up to here blocks come in classes
constexpr std::size_t large_grain = std::size_t{64} << 10;  // above, sizes are multiples of this
constexpr std::size_t huge_page = std::size_t{2} << 20;
// cached bytes that are never worth giving back
constexpr std::size_t cache_floor = std::size_t{64} << 20;
constexpr int class_count = 64;

/// Classes are 64, 128, 192, 256, then four per doubling: at most a fifth of a block is wasted.
int class_of(std::size_t bytes) {
  if (bytes <= 256) return static_cast<int>((bytes + 63) / 64) - 1;
  const int log = static_cast<int>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes ≤ 2^(log+1)
  const std::size_t quarter = std::size_t{1} << (log - 2);
  const std::size_t steps = (bytes - (std::size_t{1} << log) + quarter - 1) / quarter;  // 1 … 4
  return 3 + (log - 8) * 4 + static_cast<int>(steps);
}

std::size_t class_size(int c) {
  if (c < 4) return static_cast<std::size_t>(c + 1) * 64;
  const int log = 8 + (c - 4) / 4, steps = (c - 4) % 4 + 1;
  return (std::size_t{1} << log) + (static_cast<std::size_t>(steps) << (log - 2));
}

// Under AddressSanitizer cached blocks and the slack behind a block are poisoned, so that stale or
// overrunning kernels are seen.
void hide([[maybe_unused]] void* p, [[maybe_unused]] std::size_t n) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(p, n);
#endif
}
void show([[maybe_unused]] void* p, [[maybe_unused]] std::size_t n) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(p, n);
#endif
}

void* system_allocate(std::size_t capacity) {
  const bool huge = capacity >= huge_page;
  // Whole pages only where little is lost by it.
  const std::size_t taken =
      capacity >= 2 * huge_page ? (capacity + huge_page - 1) / huge_page * huge_page : capacity;
  // Unlike aligned_alloc it takes sizes that are no multiple of the alignment.
  void* block = nullptr;
  if (::posix_memalign(&block, huge ? huge_page : alignment, taken) != 0) return nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // advice only: failure costs speed, nothing else
  if (huge) madvise(block, capacity, MADV_HUGEPAGE);
#endif
  return block;
}

void system_free(void* block, std::size_t capacity) {
  show(block, capacity);
  std::free(block);
}

class Pool {
 public:
  void* take(std::size_t bytes, std::size_t& capacity, const char* what) {
    constexpr std::size_t most = std::size_t{1} << 62;
    const bool small = bytes <= small_limit;
    capacity = bytes > most ? bytes
               : small      ? class_size(class_of(bytes))
                            : (bytes + large_grain - 1) / large_grain * large_grain;
    const std::lock_guard lock(mutex_);
    if (bytes > most) refuse(bytes, what);
    if (small) {
      auto& blocks = classes_[class_of(bytes)];
      if (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        cached_ -= capacity;
        return hand_out(block, capacity, bytes);
      }
    } else {
      // The smallest that fits without much waste; of equals the one that was used last.
      std::size_t best = large_.size();
      for (std::size_t i = large_.size(); i-- > 0;)
        if (large_[i].capacity >= capacity && large_[i].capacity <= capacity + capacity / 4 &&
            (best == large_.size() || large_[i].capacity < large_[best].capacity))
          best = i;
      if (best < large_.size()) {
        capacity = large_[best].capacity;
        void* block = large_[best].data;
        large_.erase(large_.begin() + static_cast<std::ptrdiff_t>(best));
        cached_ -= capacity;
        return hand_out(block, capacity, bytes);
      }
    }
    if (limit_ && in_use_ + cached_ + capacity > limit_) drop_cache();
    if (limit_ && in_use_ + capacity > limit_) refuse(bytes, what);
    void* block = system_allocate(capacity);
    if (!block) {
      drop_cache();
      block = system_allocate(capacity);
    }
    if (!block) refuse(bytes, what);
    return hand_out(block, capacity, bytes);
  }

  void give(void* block, std::size_t capacity, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    in_use_ -= capacity;
    asked_ -= bytes;
    // Never keep more idle memory than was ever needed at once: what has been idle for long goes
    // first, as a program that runs again and again wants the block that it gave back last.
    const std::size_t most = std::max(cache_floor, peak_);
    std::size_t old = 0;
    for (; cached_ + capacity > most && old < large_.size(); ++old) {
      system_free(large_[old].data, large_[old].capacity);
      cached_ -= large_[old].capacity;
    }
    large_.erase(large_.begin(), large_.begin() + static_cast<std::ptrdiff_t>(old));
    if (cached_ + capacity > most) drop_cache();
    if (capacity > most) return system_free(block, capacity);
    try {
      if (capacity <= small_limit) classes_[class_of(capacity)].push_back(block);
      else large_.push_back({capacity, block});
    } catch (const std::bad_alloc&) {
      return system_free(block, capacity);
    }
    hide(block, capacity);
    cached_ += capacity;
  }

  PoolUse use() {
    const std::lock_guard lock(mutex_);
    return {in_use_, peak_, cached_, asked_, asked_peak_};
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = in_use_;
    asked_peak_ = asked_;
  }
  void trim() {
    const std::lock_guard lock(mutex_);
    drop_cache();
  }
  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  void* hand_out(void* block, std::size_t capacity, std::size_t bytes) {
    in_use_ += capacity;
    peak_ = std::max(peak_, in_use_);
    asked_ += bytes;
    asked_peak_ = std::max(asked_peak_, asked_);
    show(block, bytes);
    hide(static_cast<char*>(block) + (bytes + 7) / 8 * 8,
         capacity - std::min(capacity, (bytes + 7) / 8 * 8));
    return block;
  }
  void drop_cache() {
    for (int c = 0; c < class_count; ++c) {
      auto& blocks = classes_[c];
      for (void* block : blocks) system_free(block, class_size(c));
      blocks = {};
    }
    for (const Idle& idle : large_) system_free(idle.data, idle.capacity);
    large_ = {};
    cached_ = 0;
  }
  [[noreturn]] void refuse(std::size_t bytes, const char* what) const {
    std::string message = std::string("vt: out of memory: ") + what + " needs " +
                          readable_bytes(bytes) + ", " + readable_bytes(in_use_) + " are in use";
    if (limit_) message += ", the limit (VT_MEMORY_LIMIT) is " + readable_bytes(limit_);
    throw Error(ErrorKind::memory, message);
  }

  struct Idle {
    std::size_t capacity;
    void* data;
  };
  Mutex mutex_;
  std::array<Vec<void*>, class_count> classes_;
  Vec<Idle> large_;  ///< the longest idle first
  std::size_t in_use_ = 0, peak_ = 0, cached_ = 0, asked_ = 0, asked_peak_ = 0;
  /// 0: none
  std::size_t limit_ = static_cast<std::size_t>(number_from_environment(
      "VT_MEMORY_LIMIT", 0, std::numeric_limits<std::int64_t>::max(), 0, true));
};

/// Never destroyed: Tensors in static storage give their blocks back after main.
Pool& instance() {
  static Pool& pool = *new Pool;
  return pool;
}

alignas(alignment) inline constinit unsigned char empty_block[alignment] = {};

}  // namespace pool

std::string readable_bytes(std::size_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  std::string text = std::to_string(unit == 0 ? bytes : static_cast<std::size_t>(value * 10));
  if (unit > 0) text.insert(text.size() - 1, ".");
  return text + " " + units[unit];
}

namespace pool {
constinit thread_local FreeList objects(1 << 10);
}
void* Buffer::operator new(std::size_t bytes) { return pool::objects.take(bytes); }
void Buffer::operator delete(void* memory) noexcept { pool::objects.give(memory); }

Buffer::~Buffer() {
  if (capacity) pool::instance().give(data, capacity, bytes);
  if (let_go) let_go(owner);
}

BufferRef allocate(std::size_t bytes, const char* what) {
  BufferRef buffer(new Buffer);
  buffer->bytes = bytes;
  if (bytes == 0) buffer->data = pool::empty_block;
  else {
    std::size_t capacity = 0;
    buffer->data = pool::instance().take(bytes, capacity, what);
    buffer->capacity = capacity;
  }
  return buffer;
}

BufferRef borrow_memory(const void* data, std::size_t bytes) {
  BufferRef buffer(new Buffer);
  buffer->data = const_cast<void*>(data);
  buffer->bytes = bytes;
  return buffer;
}

PoolUse pool_use() { return pool::instance().use(); }
void reset_pool_peak() { pool::instance().reset_peak(); }
void trim_pool() { pool::instance().trim(); }
void set_memory_limit(std::size_t bytes) { pool::instance().set_limit(bytes); }

}  // namespace vt::detail
