// The code of one register tile of a convolution, which reads the image where it is.
#pragma once

#include "matmul_tile.hpp"

#if VT_HAS_LLVM_HEADERS

#include "../llvm/compile.hpp"

namespace vt::detail::cpu {

/// What the code depends on. Extents and distances are arguments, so that the layers of a network
/// share it.
struct ConvTile {
  DType accumulate = DType::f32;
  int outer = 1, inner = 1;  ///< rows: so many times so many, at two distances
  int vectors = 1, simd_lanes = 1;
  int panel = 1;                ///< columns of a packed panel, which may have more vectors
  int levels = 1;               ///< nested loops over what is added up
  bool rows_adjacent = false;   ///< the inner rows' elements of a are neighbours
  bool depth_adjacent = false;  ///< so are those of the innermost loop
  /// a has the columns as well: each is multiplied with its own elements, as channels of depthwise
  /// filters are
  bool by_simd_lanes = false;
  bool whole = false;  ///< no panel has fewer columns than its vectors hold
  bool adds = true;    ///< asked to add to what c holds

  int columns() const { return vectors * simd_lanes; }
  std::string key() const;
};

/// The arguments beside the pointers, in elements; then levels × (iterations, distance in a,
/// distance in the panel), outermost first.
struct ConvNumbers {
  enum Place {
    panels,
    columns,
    panel,
    adding,
    skipped,
    a_outer,
    a_inner,
    c_outer,
    c_inner,
    levels
  };
};
/// c's rows of one tile, from the column on where c points, in panels [iterations in
/// order][columns()] that lie `panel` apart; of the last one only what is left of `columns` is
/// stored. `adding`: to what c holds, if it is not 0 and the tile `adds`. The first `skipped` rows
/// (of the outer ones, if there are several) are left as they are.
using ConvFunction = void(const void* a, const void* panels, void* c, const std::int64_t* numbers);
void emit_conv_tile(IrBuilder&, const std::string& name, const ConvTile&);

/// The compiled function, from the cache.
std::shared_ptr<const Code> conv_tile_code(const ConvTile&);

}  // namespace vt::detail::cpu

#endif
