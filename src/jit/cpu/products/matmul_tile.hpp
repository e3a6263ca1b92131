// Register tiles of matrix products: the sums that stay in registers while k runs, and the tile
// function of packed operands.
#pragma once

#include <vt/detail/function.hpp>
#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include "matmul.hpp"

namespace vt::detail::cpu {

/// Rows of c per register tile and vectors per row for a target: as many accumulators as leave room
/// for the operands.
struct TileShape {
  int rows, vectors, simd_lanes;
  /// elements of k in each 32-bit SIMD lane of the operands, multiplied by IrBuilder::dot_groups;
  /// of bytes a has its top bits flipped
  int group = 1;
  int columns() const { return vectors * simd_lanes; }
  /// of a packed a: whole vectors
  int padded_rows() const { return (rows + simd_lanes - 1) / simd_lanes * simd_lanes; }
};
TileShape best_tile(const Target&, DType accumulate);

namespace matmul_tiles {

using LoadA = FunctionRef<Value(int row, Value k)>;     // scalar, any dtype
using LoadB = FunctionRef<Value(int vector, Value k)>;  // vector, any dtype

/// Σ over k in [0, depth) for a whole tile, rows × vectors values; `constant_depth` ≥ 0 when it is
/// known. `start`: what is added to, zeros if it is empty.
Vec<Value> sum_tile(IrBuilder&, const TileShape&, DType accumulate, Value depth,
                    std::int64_t constant_depth, const LoadA&, const LoadB&, Vec<Value> start = {});

}  // namespace matmul_tiles

/// Tile of packed operands: a is [k][padded rows], b is [k][columns()]. Its first `columns` columns
/// are stored. `sums`: where earlier passes over k left theirs, and where this one does; it is c
/// itself where the dtypes agree. `soon`: what later tiles read, fetched meanwhile, `soon_step`
/// bytes on with each k.
using TileFunction = void(std::int64_t k, const void* a, const void* b, void* c, std::int64_t c_row,
                          std::int64_t columns, void* sums, std::int64_t sums_row,
                          std::int64_t passes, const void* soon, std::int64_t soon_step);
inline constexpr std::int64_t add_earlier_pass = 1, last_pass = 2;  ///< bits of `passes`
void emit_packed_tile(IrBuilder&, const std::string& name, DType accumulate, DType result, int rows,
                      const TileShape&, bool whole = false, bool one_pass = false);

}  // namespace vt::detail::cpu

#endif
