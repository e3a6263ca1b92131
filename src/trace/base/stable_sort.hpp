// A stable sort of short lists.
#pragma once

#include <algorithm>
#include <cstddef>

namespace vt::detail {

/// Sorts `list` by `before`; equal elements keep their order. It calls nothing that is deprecated:
/// std::stable_sort of GCC 12's library does, and clang 19 warns of it. Any `before` is safe, also
/// one that knows no order of NaN.
template <class List, class Before>
void stable_sort(List& list, const Before& before) {
  const std::size_t n = list.size();
  constexpr std::size_t shortest = 8;
  for (std::size_t begin = 0; begin < n; begin += shortest)
    for (std::size_t i = begin + 1; i < std::min(begin + shortest, n); ++i) {
      const auto moved = list[i];
      std::size_t at = i;
      for (; at > begin && before(moved, list[at - 1]); --at) list[at] = list[at - 1];
      list[at] = moved;
    }
  if (n <= shortest) return;
  List merged = list;
  for (std::size_t half = shortest; half < n; half *= 2, std::swap(list, merged))
    for (std::size_t begin = 0; begin < n; begin += 2 * half) {
      const std::size_t middle = std::min(begin + half, n), end = std::min(begin + 2 * half, n);
      std::size_t i = begin, j = middle;
      for (std::size_t to = begin; to < end; ++to)
        merged[to] = i < middle && (j == end || !before(list[j], list[i])) ? list[i++] : list[j++];
    }
}

}  // namespace vt::detail
