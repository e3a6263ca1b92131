// The code of a convolution of one image: register tiles over rows of the result, which read the image where it is.
#pragma once

#include "../conv_spec.hpp"
#include "matmul_tile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// What the code depends on. A tile has heights[r] rows along loop r over rows; 0: it has one.
struct ConvKernel {
  DType accumulate = DType::f32;
  decltype(ConvLoops::rows) rows;
  decltype(ConvLoops::depth) depth;
  decltype(ConvLoops::ranges) ranges;
  std::int64_t n = 1;
  bool side_by_side = false;
  TileShape tile;
  SmallVec<int, 6> heights;

  bool tiled(std::size_t row) const { return heights[row] > 0; }
  /// Rounds of the outermost loop over rows, in which callers may cut the work.
  std::int64_t units() const;
  /// Rows of the result that the first `unit` of them make.
  std::int64_t rows_before(std::int64_t unit) const;
  /// About the time of one image, in cycles.
  double cost() const;
  std::string key() const;
};
ConvKernel conv_kernel(const ConvSpec&, const ConvLoops&, const Target&);
/// Is each panel of the filters packed, and taken to all images, by one thread? So are large filters of few or small images, of which
/// nothing is read twice from far then.
bool by_panels(const ConvSpec&, const ConvLoops&, const ConvKernel&);
/// What costs less: each image by itself, or several side by side, where none of them needs edges.
ConvLoops best_loops(const ConvSpec&, const Target&);

/// Units begin … end − 1; of images side by side, the first end − begin of one unit, where a and c begin. `b`: from panel first_panel on,
/// packed as [panel][depth][tile.columns()] in the dtype of the sums, which c has as well. `adding`: to what c holds, if it is not 0.
using ConvFunction = void(const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end, std::int64_t adding, std::int64_t first_panel,
                          std::int64_t last_panel);
void emit_conv(IrBuilder&, const std::string& name, const ConvKernel&);

}  // namespace vt::detail::cpu

#endif
