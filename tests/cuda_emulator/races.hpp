// Finds races of a launch whatever order it runs in: who touched each element last, and whether
// anything made the next one wait for it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace emulator {

/// A thread of a launch at a moment: between which barriers of its block and of its warp it is.
struct Who {
  std::uint32_t launch = 0, block = 0, phase = 0;
  std::uint16_t thread = 0, warp_phase = 0;
};

/// The last accesses of each element of a range of memory.
class Shadow {
 public:
  ~Shadow() { std::free(entries_); }
  /// Notes an access of `bytes` at `offset` of a range of `whole` bytes. `writes`: 1 a store, 2 an
  /// atomic. `own_block`: shared memory, where what other blocks did does not count. 0, or the
  /// number of the access that it collides with: `other()` is whose.
  enum Collision { none, with_write, with_read };
  Collision note(const Who& me, std::uint64_t whole, std::uint64_t offset, unsigned bytes,
                 int writes, bool own_block) {
    if (bytes & (granule() - 1) || whole > covered_ || !entries_) {
      if (!resize(whole, bytes)) return none;
    }
    Entry* entry = entries_ + (offset >> granule_bits_);
    Entry* const end = entries_ + ((offset + bytes + granule() - 1) >> granule_bits_);
    Collision found = none;
    for (; entry < end; ++entry)
      if (const Collision c = note_one(*entry, me, writes, own_block); c != none) found = c;
    return found;
  }
  const Who& other() const { return other_; }

 private:
  // the latter with the warp's number
  static constexpr std::uint16_t several = 0xffff, several_of_warp = 0x8000;
  static unsigned warp_of(std::uint16_t thread) {
    return (thread & several_of_warp ? thread & ~several_of_warp & 0xffffu : thread / 32u);
  }
  static constexpr std::uint32_t several_blocks = 0xffffffff;
  struct Entry {
    Who write, read;
    bool atomic;
  };
  static bool together(const Who& a, const Who& me) {
    if (a.block != me.block) return true;
    if (a.thread == me.thread || a.phase != me.phase) return false;
    return a.thread == several || warp_of(a.thread) != warp_of(me.thread) ||
           a.warp_phase == me.warp_phase;
  }
  Collision note_one(Entry& e, const Who& me, int writes, bool own_block) {
    const bool was_written =
        e.write.launch == me.launch && !(own_block && e.write.block != me.block);
    const bool was_read = e.read.launch == me.launch && !(own_block && e.read.block != me.block);
    Collision found = none;
    if (was_written && !(writes == 2 && e.atomic) && together(e.write, me)) {
      found = with_write;
      other_ = e.write;
    }
    if (writes) {
      if (was_read && together(e.read, me)) {
        found = with_read;
        other_ = e.read;
      }
      e.write = me;
      e.atomic = writes == 2;
    } else if (!was_read || !together(e.read, me)) {
      if (!was_read || e.read.phase != me.phase || !(e.read.thread & several_of_warp) ||
          (e.read.thread != several && warp_of(e.read.thread) == warp_of(me.thread)))
        e.read = me;
    } else if (e.read.block != me.block) {
      e.read.block = several_blocks;
    } else if (e.read.thread != several && warp_of(e.read.thread) == warp_of(me.thread) &&
               e.read.warp_phase == me.warp_phase) {
      e.read.thread = static_cast<std::uint16_t>(several_of_warp | warp_of(me.thread));
    } else {
      e.read.thread = several;
    }
    return found;
  }
  // Elements of the largest power of two that all sizes seen are multiples of; what was noted by
  // larger ones is forgotten. Very large ranges are not watched.
  bool resize(std::uint64_t whole, unsigned bytes) {
    std::free(entries_);
    granule_bits_ = std::min(granule_bits_, std::countr_zero(bytes));
    covered_ = whole;
    constexpr std::uint64_t most = 8ull << 20;
    const std::uint64_t count = ((whole + granule() - 1) >> granule_bits_) + 1;
    entries_ = count > most ? nullptr : static_cast<Entry*>(std::calloc(count, sizeof(Entry)));
    return entries_ != nullptr;
  }

  unsigned granule() const { return 1u << granule_bits_; }

  int granule_bits_ = 31;
  std::uint64_t covered_ = 0;  // bytes: a launch may have more shared memory than the last
  Entry* entries_ = nullptr;
  Who other_;
};

}  // namespace emulator
