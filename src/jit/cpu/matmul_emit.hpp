// The code of matrix products: register tiles, and the functions made of them.
#pragma once

#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include "compile.hpp"
#include "matmul.hpp"

namespace vt::detail::cpu {

/// Rows of c per register tile and vectors per row for a target: as many accumulators as leave room for the operands.
struct TileShape {
  int rows, vectors, lanes;
  int columns() const { return vectors * lanes; }
};
TileShape best_tile(const Target&, DType accumulate);

/// Element strides inside the packed blocks of the blocked product.
inline constexpr std::int64_t packed_depth = 256;              ///< most of k per pass: a b panel and an a tile share L1
inline constexpr std::int64_t packed_row = packed_depth + 16;  ///< between rows of a packed a; no power of two, or they share cache sets

/// Tile function of the blocked product: void(k, a, b, c, c_row, columns, add). a: rows packed_row apart; b: [k][columns()].
/// `columns`: how many are stored; `add`: c already holds the sums of earlier passes.
using TileFunction = void(std::int64_t k, const void* a, const void* b, void* c, std::int64_t c_row, std::int64_t columns, std::int64_t add);
void emit_packed_tile(IrBuilder&, const std::string& name, const MatmulSpec& types, int rows, TileShape);

/// The direct product: void(a, b, c, begin, end), without packing, b contiguous along n. batch > 1: products begin … end − 1;
/// batch == 1: rows begin … end − 1, so that the code serves every m.
using DirectFunction = void(const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end);
void emit_direct(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape);

/// Both operands contiguous along k: sums run along vectors. Same signature; c rows begin … end − 1 or products begin … end − 1.
void emit_dots(IrBuilder&, const std::string& name, const MatmulSpec&, const Target&);

/// void(from, to, from_row, to_row, rows): to[j][i] = from[i][j] for `rows` i and one vector of j; f32 and f64 and i32, i64.
using TransposeFunction = void(const void* from, void* to, std::int64_t from_row, std::int64_t to_row);
void emit_transpose_tile(IrBuilder&, const std::string& name, DType, int lanes);

}  // namespace vt::detail::cpu

#endif
