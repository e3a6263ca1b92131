// Numbering: numbers for keys that are long, or that are compared in another way than by ==.
#pragma once

#include <cstdint>
#include <utility>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::autobatching {

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

/// Numbers for keys, equal ones for equal keys. A key is known by one that has it; hashes only tell
/// where to look.
class Numbering {
 public:
  Numbering() : slots_(64, {0, -1}) {}
  /// `same(k)`: has what number k was given to first the same key? A new key gets the next number.
  template <class Same>
  std::int32_t number(std::uint64_t hash, const Same& same) {
    hash ^= hash >> 29;
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      Slot& s = slots_[i];
      if (s.number < 0) {
        s = {hash, count_++};
        if (2 * static_cast<std::size_t>(count_) > slots_.size()) grow();
        return count_ - 1;
      }
      if (s.hash == hash && same(s.number)) return s.number;
    }
  }
  std::int32_t count() const { return count_; }

 private:
  struct Slot {
    std::uint64_t hash;
    std::int32_t number;
  };
  std::size_t mask() const { return slots_.size() - 1; }
  void grow() {
    const Vec<Slot> old = std::move(slots_);
    slots_ = Vec<Slot>(4 * old.size(), {0, -1});
    for (const Slot& s : old) {
      if (s.number < 0) continue;
      std::size_t i = s.hash & mask();
      while (slots_[i].number >= 0) i = (i + 1) & mask();
      slots_[i] = s;
    }
  }
  Vec<Slot> slots_;
  std::int32_t count_ = 0;
};

}  // namespace vt::detail::autobatching
