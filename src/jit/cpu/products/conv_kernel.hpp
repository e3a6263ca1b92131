// How a convolution is cut into register tiles: their heights, the cost of a choice, and the loops
// over them.
#pragma once

#include "../../fusion/conv_spec.hpp"
#include "conv_tile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// A tile has heights[r] rows along loop r over rows; 0: it has one.
struct ConvKernel {
  DType accumulate = DType::f32;
  decltype(ConvLoops::rows) rows;
  decltype(ConvLoops::depth) depth;
  decltype(ConvLoops::ranges) ranges;
  std::int64_t n = 1;
  bool side_by_side = false, by_simd_lanes = false;
  TileShape tile;
  SmallVec<int, 6> heights;
  /// of whole panels and of the last one, which may have fewer vectors
  std::shared_ptr<const Code> code, code_of_rest;

  bool tiled(std::size_t row) const { return heights[row] > 0; }
  /// Iterations of the outermost loop over rows, in which callers may cut the work.
  std::int64_t units() const;
  /// Rows of the result that the first `unit` of them make.
  std::int64_t rows_before(std::int64_t unit) const;
  /// About the time of one image, in cycles.
  double cost() const;

  void make_code(bool adds);  ///< will run() be asked to add?
  /// Units begin … end − 1 and panels first … last − 1 of an image. Of images side by side, those
  /// of one tile, of which the first `begin` are left as they are; then a and c point to its first
  /// one. `b`: from panel `first` on, packed as [panel][depth][tile.columns()] in the dtype of the
  /// sums, which c has as well. `adding`: to what c holds.
  void run(const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end, bool adding,
           std::int64_t first, std::int64_t last) const;
};
ConvKernel conv_kernel(const ConvSpec&, const ConvLoops&, const Target&);
/// Is each panel of the filters packed, and taken to all images, by one thread? So are large
/// filters of few or small images, of which nothing is read twice from far then.
bool by_panels(const ConvSpec&, const ConvLoops&, const ConvKernel&);
/// What costs less: each image by itself, or several side by side, where none of them needs edges.
ConvLoops best_loops(const ConvSpec&, const Target&);

}  // namespace vt::detail::cpu

#endif
