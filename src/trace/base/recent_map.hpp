// RecentMap: a HashMap of bounded size, for caches whose entries can be made again: the entry
// unused for longest is dropped first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "hash_map.hpp"

namespace vt::detail {

/// Keeps `most` entries. find() may run on several threads at once; whatever changes the map needs
/// a lock of the caller's.
template <class K, class V>
class RecentMap {
 public:
  explicit RecentMap(std::size_t most) : most_(std::max<std::size_t>(most, 1)) {}

  std::size_t size() const { return entries_.size(); }
  std::size_t most() const { return most_; }
  /// Null if it is not there. It counts as used.
  V* find(const K& key) {
    Kept* const kept = found(key);
    return kept ? &kept->value : nullptr;
  }
  /// Leaves the value of a key that is there already. What has to go for it is added to `gone`, so
  /// that the caller can destroy it without its lock.
  V* emplace(K key, V value, Vec<V>& gone) {
    if (V* const there = find(key)) return there;
    if (entries_.size() >= most_) drop(gone);
    return &entries_.emplace(static_cast<K&&>(key), {static_cast<V&&>(value), ++now_})
                .entry->second.value;
  }
  void erase(const K& key) { entries_.erase(key); }
  void set_most(std::size_t most, Vec<V>& gone) {
    most_ = std::max<std::size_t>(most, 1);
    while (entries_.size() > most_) drop(gone);
  }
  /// Everything, for the caller to destroy.
  Vec<V> take_all() {
    Vec<V> all;
    for (auto& [key, kept] : entries_) all.push_back(static_cast<V&&>(kept.value));
    entries_.clear();
    return all;
  }

 private:
  struct Kept {
    V value;
    std::uint64_t used;  ///< of now_; atomically
  };

  Kept* found(const K& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    const std::atomic_ref used(at->second.used), now(now_);
    // What is asked for again and again writes nothing.
    if (used.load(std::memory_order_relaxed) != now.load(std::memory_order_relaxed))
      used.store(now.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return &at->second;
  }
  // One from a small map. From a large one several at once, as all entries are moved for that.
  void drop(Vec<V>& gone) {
    std::size_t count = most_ < 1024 ? 1 : most_ / 8;
    if (entries_.size() > most_) count = std::max(count, entries_.size() - most_);
    Vec<std::uint64_t> ages;
    for (const auto& [key, kept] : entries_) ages.push_back(kept.used);
    std::nth_element(ages.begin(), ages.begin() + (count - 1), ages.end());
    const std::uint64_t oldest = ages[count - 1];
    HashMap<K, Kept> left;
    for (auto& [key, kept] : entries_) {
      if (count > 0 && kept.used <= oldest) {
        gone.push_back(static_cast<V&&>(kept.value));
        --count;
      } else {
        left.emplace(static_cast<K&&>(key), static_cast<Kept&&>(kept));
      }
    }
    entries_ = static_cast<HashMap<K, Kept>&&>(left);
  }

  std::size_t most_;
  std::uint64_t now_ = 0;  // goes on when another entry than the last is used
  HashMap<K, Kept> entries_;
};

}  // namespace vt::detail
