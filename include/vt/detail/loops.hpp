// Tests over a whole range, each one loop: std::any_of and its like cost a header-only program eight functions a use.
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

}  // namespace vt::detail
