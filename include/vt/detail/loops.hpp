// Algorithms over a whole range, each one loop: std::any_of and its like cost a header-only program
// eight functions a use, std::sort forty.
#pragma once

#include <cstddef>

namespace vt::detail {

template <class Range, class Predicate>
bool any_of(const Range& range, const Predicate& holds) {
  for (const auto& item : range)
    if (holds(item)) return true;
  return false;
}
template <class Range, class Predicate>
bool all_of(const Range& range, const Predicate& holds) {
  for (const auto& item : range)
    if (!holds(item)) return false;
  return true;
}
template <class Range, class Predicate>
bool none_of(const Range& range, const Predicate& holds) {
  return !any_of(range, holds);
}
template <class Range, class Predicate>
std::ptrdiff_t count_if(const Range& range, const Predicate& holds) {
  std::ptrdiff_t count = 0;
  for (const auto& item : range) count += holds(item) ? 1 : 0;
  return count;
}

/// Stable; for lists as short as a Tensor's axes.
template <class List, class Less>
void insertion_sort(List& list, const Less& less) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    const auto item = list[i];
    std::size_t at = i;
    for (; at > 0 && less(item, list[at - 1]); --at) list[at] = list[at - 1];
    list[at] = item;
  }
}
template <class List>
void insertion_sort(List& list) {
  insertion_sort(list, [](const auto& a, const auto& b) { return a < b; });
}

}  // namespace vt::detail
