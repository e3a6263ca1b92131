// HashMap: keys to values, with the few operations of std::unordered_map that vt uses. Iterated in
// the order of insertion, whatever the addresses of the keys are; a tenth of the standard one's
// functions for a header-only program to compile.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <vt/detail/small_vec.hpp>

namespace vt::detail {

template <std::integral T>
std::size_t key_hash(T key) {
  return key;
}
inline std::size_t key_hash(const void* key) { return std::bit_cast<std::size_t>(key) >> 4; }
inline std::size_t key_hash(const std::string& key) { return std::hash<std::string_view>()(key); }

/// K needs == and key_hash. Inserting moves the entries: no reference to one outlives it.
template <class K, class V>
class HashMap {
 public:
  struct Entry {
    K first;
    V second;
  };
  struct Inserted {
    Entry* entry;
    bool fresh;
  };

  Entry* begin() { return entries_.begin(); }
  Entry* end() { return entries_.end(); }
  const Entry* begin() const { return entries_.begin(); }
  const Entry* end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() {
    entries_.clear();
    slots_.clear();
  }

  /// end() if it is not there.
  const Entry* find(const K& key) const {
    if (slots_.empty()) {
      const Entry* at = entries_.begin();
      while (at != entries_.end() && !(at->first == key)) ++at;
      return at;
    }
    const std::uint32_t holds = slots_[slot_of(key)];
    return holds ? entries_.begin() + (holds - 1) : entries_.end();
  }
  Entry* find(const K& key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }
  bool contains(const K& key) const { return find(key) != end(); }
  /// The value of a key that is there.
  const V& at(const K& key) const { return find(key)->second; }

  /// Leaves the value of a key that is there already.
  Inserted emplace(K key, V value) {
    if (Entry* there = find(key); there != end()) return {there, false};
    entries_.push_back({static_cast<K&&>(key), static_cast<V&&>(value)});
    if (!slots_.empty() && entries_.size() * 2 <= slots_.size())
      slots_[slot_of(entries_.back().first)] = static_cast<std::uint32_t>(entries_.size());
    else if (entries_.size() > searched_in_line) lay_out();
    return {&entries_.back(), true};
  }
  V& operator[](const K& key) {
    Entry* there = find(key);
    return (there != end() ? there : emplace(key, V()).entry)->second;
  }
  void erase(const K& key) {
    Entry* there = find(key);
    if (there == end()) return;
    entries_.erase(there);
    if (!slots_.empty()) lay_out();
  }

 private:
  static constexpr std::size_t searched_in_line = 8;

  std::size_t slot_of(const K& key) const {
    const std::size_t mask = slots_.size() - 1;
    // Multiplied by 2⁶⁴ / golden ratio, so that keys that differ in few bits land apart; its upper
    // half is the better one.
    std::size_t at = (key_hash(key) * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (slots_[at] && !(entries_[slots_[at] - 1].first == key)) at = (at + 1) & mask;
    return at;
  }
  void lay_out() {
    slots_.assign(std::bit_ceil(entries_.size() * 4), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i)
      slots_[slot_of(entries_[i].first)] = static_cast<std::uint32_t>(i + 1);
  }

  Vec<Entry> entries_;
  /// the entry's number + 1, or 0; none while there are so few entries that a search in line is as
  /// fast
  Vec<std::uint32_t> slots_;
};

}  // namespace vt::detail
