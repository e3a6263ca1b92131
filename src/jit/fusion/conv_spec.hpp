// ConvSpec: a convolution in the form that kernels take: its axes by kind, with their distances in
// both operands and the result.
#pragma once

#include <cstdint>
#include <optional>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Distances are in elements; 0 where an operand or the result does not have the axis.
struct ConvAxis {
  std::int64_t extent = 1, a = 0, b = 0, c = 0;
};
using ConvAxes = SmallVec<ConvAxis, 4>;

/// A pair of axes that slide along each other: c's `out` places o see a's elements
/// (stride · o + rhs_dilation · p − low) / lhs_dilation through b's `size` places p.
struct ConvWindow {
  std::int64_t extent = 1, size = 1, out = 1, stride = 1, low = 0, lhs_dilation = 1,
               rhs_dilation = 1;
  std::int64_t a = 0, b = 0, c = 0;
};

/// c[batch, free, o, b_free, column] = Σ a · b. In a's memory come first the outer axes, then the
/// windows', then the inner ones, which end it: what belongs to one index of the outer axes is
/// called an image.
struct ConvSpec {
  DType a_dtype = DType::f32, b_dtype = DType::f32;  ///< of the operands in memory
  DType accumulate = DType::f32, result = DType::f32;
  ConvAxes outer_batch, outer_free, outer_contract, inner_batch, inner_free, inner_contract, b_free;
  /// neighbours in c; in a as well (each has an image of its own), or not in a at all
  ConvAxis columns;
  SmallVec<ConvWindow, 3> windows;
  std::int64_t inner = 1;  ///< elements of a at one place of the windows' axes
  /// where b's first window place lies: windows may be read from their end
  std::int64_t b_start = 0;
  std::int64_t c_start = 0;    ///< where c's first element lies, of a phase
  bool rows_in_order = false;  ///< c is a matrix of rows that are made one after the other

  std::int64_t multiply_adds() const;
  std::int64_t results() const;
};
std::int64_t count_of(const ConvAxes&);

namespace conv_planning {
Axes joined(Axes, const Axes& more);
std::size_t position(const Axes&, int axis);
}  // namespace conv_planning

struct ConvPlan {
  ConvSpec spec;
  /// a must be copied in this order of its axes first; the spec is that of the copy.
  std::optional<Axes> lhs_permutation;
};
/// A dilated image as convolutions of the image itself, one for each place of a result between
/// two elements, without the zeros that dilation puts there: each has a part of c and of the
/// filter. Empty if it is not dilated, or too much; phases of nothing have windows of size 0.
Vec<ConvSpec> phases_of(const ConvSpec&);
/// Whose kernels take it: rows of the host's read an image from one end to the other and write
/// features side by side; a device's go by distances alone.
enum class ConvTarget : std::uint8_t { host, device };
/// Nothing if the features do not lie side by side in the result; for a device there always is a
/// plan, and nothing to copy.
std::optional<ConvPlan> plan_conv(const ConvParams&, const Shape& lhs, const Shape& rhs,
                                  DType operands, ConvTarget target = ConvTarget::host);

/// What one call of a kernel computes: loops over rows of c, outermost first, and for each of its
/// elements loops over what is added up, in the order in which b is packed. Either of one image,
/// which may have been edged with zeros, or of images side by side: then the first loop over rows
/// counts them, and places of the windows beyond an edge are left out.
struct ConvLoops {
  struct Row {
    std::int64_t extent, a, c;
    int window = -1;  ///< its iterations are o of this one, which reaches beyond an edge
  };
  struct Depth {
    std::int64_t extent, a;
    /// its iterations are places of this one, which reaches beyond an edge
    int window = -1;
    std::int64_t scale = 1;  ///< times so many: what steps on evenly inside of each of them
  };
  /// Places p of a window with 0 ≤ stride · o + dilation · p − low < reach are worth adding up.
  struct Range {
    std::int64_t out = 1, size = 1, stride = 1, dilation = 1, low = 0, reach = 1;
    std::int64_t first = 0;     ///< stride · o + dilation · p of a's first element
    std::int64_t distance = 0;  ///< in a, of one step
    std::int64_t from(std::int64_t o) const;
    std::int64_t to(std::int64_t o) const;
  };
  SmallVec<Row, 6> rows;
  SmallVec<Depth, 6> depth;
  SmallVec<Range, 3> ranges;  ///< by window
  std::int64_t n = 1;         ///< columns of c
  bool side_by_side = false;

  /// a is copied, in the dtype of the sums, to an image of these extents and distances
  bool padded = false;
  SmallVec<std::int64_t, 3> extents, distances;
  std::int64_t start = 0;     ///< not padded: where the first element that is read lies
  std::int64_t elements = 0;  ///< of the image
  std::int64_t depth_count() const {
    std::int64_t k = 1;
    for (const Depth& d : depth) k *= d.extent;
    return k;
  }
  std::int64_t row_count() const {
    std::int64_t m = 1;
    for (const Row& r : rows) m *= r.extent;
    return m;
  }
};
ConvLoops loops_of(const ConvSpec&);
/// The same for images side by side, `between` elements apart (0: as they lie). Nothing where they
/// do not lie evenly or are broadcast.
std::optional<ConvLoops> loops_side_by_side(const ConvSpec&, std::int64_t between);

}  // namespace vt::detail
