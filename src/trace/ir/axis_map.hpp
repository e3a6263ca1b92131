// Arithmetic of axis numbers: permutations, and which axes a reshape by unit axes keeps; axes of
// operands and results of an equation, along which elements are independent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <vt/detail/loops.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/shape.hpp>

#include "params.hpp"

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

/// How many elements there are in front of an axis.
inline std::int64_t extent_before(const Shape& shape, int axis) {
  std::int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= shape[d];
  return n;
}
/// Where an axis is behind a reshape: as long, with as many elements in front of it; the same one
/// if it can be. −1: nowhere.
inline int axis_after_reshape(const Shape& from, int axis, const Shape& to) {
  int found = -1;
  for (int d = 0; d < to.rank(); ++d)
    if (to[d] == from[axis] && extent_before(to, d) == extent_before(from, axis) &&
        (found < 0 || d == axis))
      found = d;
  return found;
}

struct Equation;

/// Where an axis of an operand is in the results: their elements are made of those of the operand
/// that have the same index there. −1: nowhere, as elements that differ along it meet, or as their
/// index there is changed.
int axis_in_result(const GraphBody&, const Equation&, std::size_t operand, int axis);
/// The axis of the operand that is there in the results; −1: none.
int axis_of_operand(const GraphBody&, const Equation&, std::size_t operand, int axis);
/// An equation's parameters for so many elements along an axis of the results and, in operands, the
/// axis that becomes it.
ParamsRef with_extent(const ParamsRef&, int axis, std::int64_t extent);
/// The Graph with another extent along `axes`, one for each Var; −1: none.
GraphBody with_extent(GraphBody, const Vec<int>& axes, std::int64_t extent);
/// An equation's parameters for one element along an axis of the results and those of operands (−1:
/// none) that become it; nothing where these are others, or it does not run along them.
std::optional<ParamsRef> without_axis(const GraphBody&, const Equation&, int axis,
                                      std::span<const int> of_operands);

}  // namespace vt::detail
