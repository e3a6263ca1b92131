// Sums of cotangents that slices send back to the value that they were taken from.
#pragma once

#include <vector>

#include "../../trace/record/node.hpp"

namespace vt::detail {

/// A cotangent of the elements from `start` on, a number for each axis; the others get none.
struct CotangentPiece {
  Shape start;
  Tensor ct;
  std::int64_t begin(std::size_t axis) const { return start[axis]; }
  std::int64_t end(std::size_t axis) const { return start[axis] + ct.shape()[axis]; }
};

/// The sum of one or more pieces, with zeros where there are none. Each element is written once and
/// added only where pieces meet; padding each piece and adding them up would touch all elements
/// once for each piece. Pieces that are long and overlap are padded all the same.
Tensor sum_of_pieces(std::vector<CotangentPiece> pieces, const Aval& whole);

}  // namespace vt::detail
