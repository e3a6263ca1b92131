// Arithmetic of axis numbers: permutations, and which axes a reshape by unit axes keeps.
#pragma once

#include <optional>

#include <vt/detail/loops.hpp>
#include <vt/shape.hpp>

namespace vt::detail {

inline bool is_identity(const Axes& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int>(i)) return false;
  return true;
}

/// result[permutation[i]] = i
inline Axes inverse(const Axes& permutation) {
  Axes result;
  result.resize(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) result[permutation[i]] = static_cast<int>(i);
  return result;
}

/// The permutation that does `first`, then `then`.
inline Axes composed(const Axes& first, const Axes& then) {
  Axes both;
  for (int axis : then) both.push_back(first[axis]);
  return both;
}

/// The permutation that sorts `keys` (all different): keys[result[0]] < keys[result[1]] < …
inline Axes sorting_permutation(const Axes& keys) {
  Axes order = Axes::first(static_cast<int>(keys.size()));
  insertion_sort(order, [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}

/// shape[axes[0]], shape[axes[1]], …
inline Shape picked(const Shape& shape, const Axes& axes) {
  Shape result;
  for (int axis : axes) result.push_back(shape[axis]);
  return result;
}

/// The axes of a product's operand that are neither contracted nor batched.
inline Axes free_axes(int rank, const Axes& contract, const Axes& batch) {
  Axes free;
  for (int i = 0; i < rank; ++i)
    if (!contract.contains(i) && !batch.contains(i)) free.push_back(i);
  return free;
}

inline bool is_increasing(const Axes& axes) {
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (axes[i] <= axes[i - 1]) return false;
  return true;
}

/// If the two shapes differ in axes of size 1 only: for each axis of `from` its axis in `to`, or −1
/// where it is gone.
inline std::optional<Axes> unit_axis_map(const Shape& from, const Shape& to) {
  Axes map;
  std::size_t t = 0;
  for (std::size_t f = 0; f < from.size(); ++f) {
    if (from[f] == 1) {
      // Keeps a unit axis where one stands at the same place.
      if (t < to.size() && to[t] == 1) map.push_back(static_cast<int>(t++));
      else map.push_back(-1);
      continue;
    }
    while (t < to.size() && to[t] == 1) ++t;
    if (t == to.size() || to[t] != from[f]) return std::nullopt;
    map.push_back(static_cast<int>(t++));
  }
  while (t < to.size() && to[t] == 1) ++t;
  if (t != to.size()) return std::nullopt;
  return map;
}

}  // namespace vt::detail
