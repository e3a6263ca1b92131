// Memory of compiled kernels. Pages are writable until their first use and executable after that.
// Used pages follow each other, and the system keeps neighbours of one protection as one mapping;
// so a region counts as two or three mappings, however many kernels are in it.
#include "code_memory.hpp"

#if defined(__x86_64__) && defined(__ELF__)

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/locks.hpp"

namespace vt::detail::cpu {

namespace code_memory {

constexpr std::size_t pages_in_region = 256;
// what needs more pages has a mapping of its own
constexpr std::size_t most_shared = pages_in_region / 4;

struct Region {
  char* base = nullptr;
  std::size_t left = pages_in_region;  // free pages
  std::size_t fresh = 0;               // from here on no page has been used yet
  bool taken[pages_in_region] = {};
};

struct State {
  Mutex mutex;
  Vec<Region> regions;
  CodeUse use;
  std::size_t limit = SIZE_MAX;
};
State& state() {
  static State* const s = new State;  // never destroyed: kernels may go while the process ends
  return *s;
}

std::size_t page() {
  static const std::size_t size = ::sysconf(_SC_PAGESIZE);
  return size;
}

// With the lock held.
char* map(State& s, std::size_t bytes) {
  if (bytes > s.limit || s.use.mapped > s.limit - bytes) return nullptr;
  void* const made =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  s.use.mapped += bytes;
  ++s.use.mappings;
  return static_cast<char*>(made);
}
void unmap(State& s, char* at, std::size_t bytes) {
  ::munmap(at, bytes);
  s.use.mapped -= bytes;
  --s.use.mappings;
}

// The first free pages in a row; null if there are none, or they cannot be made writable again.
char* pages_of(Region& r, std::size_t count) {
  if (r.left < count) return nullptr;
  std::size_t free = 0;
  for (std::size_t i = 0; i < pages_in_region; ++i) {
    free = r.taken[i] ? 0 : free + 1;
    if (free < count) continue;
    const std::size_t first = i + 1 - count;
    char* const at = r.base + first * page();
    if (first < r.fresh && ::mprotect(at, count * page(), PROT_READ | PROT_WRITE) != 0)
      return nullptr;
    for (std::size_t k = first; k <= i; ++k) r.taken[k] = true;
    r.left -= count;
    if (r.fresh <= i) r.fresh = i + 1;
    return at;
  }
  return nullptr;
}

}  // namespace code_memory

bool CodeMemory::take(std::size_t bytes, bool alone) {
  using namespace code_memory;
  release();
  const std::size_t count = (bytes + page() - 1) / page();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  alone_ = alone || count > most_shared;
  if (alone_) {
    data_ = map(s, count * page());
  } else {
    for (std::size_t i = 0; i < s.regions.size() && !data_; ++i)
      data_ = pages_of(s.regions[i], count);
    if (!data_) {
      char* const base = map(s, pages_in_region * page());
      if (!base) return false;
      s.regions.push_back({});
      s.regions.back().base = base;
      data_ = pages_of(s.regions.back(), count);
    }
  }
  if (!data_) return false;
  size_ = count * page();
  s.use.bytes += size_;
  ++s.use.kernels;
  return true;
}

bool CodeMemory::seal(std::size_t bytes) {
  const std::size_t size = code_memory::page();
  return ::mprotect(data_, (bytes + size - 1) / size * size, PROT_READ | PROT_EXEC) == 0;
}

void CodeMemory::release() {
  using namespace code_memory;
  if (!data_) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.use.bytes -= size_;
  --s.use.kernels;
  if (alone_) {
    unmap(s, data_, size_);
  } else {
    for (std::size_t i = 0; i < s.regions.size(); ++i) {
      Region& r = s.regions[i];
      if (data_ < r.base || data_ >= r.base + pages_in_region * page()) continue;
      const auto first = static_cast<std::size_t>(data_ - r.base) / page(), count = size_ / page();
      for (std::size_t k = first; k < first + count; ++k) r.taken[k] = false;
      r.left += count;
      // One stays, so that a program that makes and drops a kernel does not map each time.
      if (r.left == pages_in_region && s.regions.size() > 1) {
        unmap(s, r.base, pages_in_region * page());
        s.regions.erase(s.regions.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ::madvise(data_, size_, MADV_DONTNEED);  // back to the system, as zeros
      }
      break;
    }
  }
  data_ = nullptr;
  size_ = 0;
}

CodeUse code_use() {
  code_memory::State& s = code_memory::state();
  const std::lock_guard lock(s.mutex);
  return s.use;
}

void set_code_limit(std::size_t mapped_bytes) {
  code_memory::State& s = code_memory::state();
  const std::lock_guard lock(s.mutex);
  s.limit = mapped_bytes;
}

}  // namespace vt::detail::cpu

#else

namespace vt::detail::cpu {

bool CodeMemory::take(std::size_t, bool) { return false; }
bool CodeMemory::seal(std::size_t) { return false; }
void CodeMemory::release() {}
CodeUse code_use() { return {}; }
void set_code_limit(std::size_t) {}

}  // namespace vt::detail::cpu

#endif
