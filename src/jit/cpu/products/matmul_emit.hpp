// The code of matrix products that read their operands where they are:
// in tiles over rows and columns.
#pragma once

#include <optional>

#include "matmul_tile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// The direct product: void(a, b, c, begin, end), without packing, b contiguous along n. batch > 1:
/// products begin … end − 1; batch == 1: rows begin … end − 1, so that the code serves every m, or
/// columns begin … end − 1 of all rows.
void emit_direct(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape,
                 bool by_columns);

/// The same for a single product whose b lies in panels, [panel][k][a tile's columns]: b_row is a
/// tile's columns.
void emit_panels(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape,
                 bool by_columns);

/// void(a, b, c, begin, end): rows begin … end − 1 of a single product, however many; b lies in
/// panels as for emit_panels.
void emit_any_rows(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape);

/// Products that fit into vectors as a whole: c, a and b each in one of `simd_lanes` SIMD lanes,
/// `products` of the batch at a time.
struct RegisterPlan {
  int simd_lanes = 0, products = 0;
};
std::optional<RegisterPlan> plan_register_products(const MatmulSpec&, const Target&);
/// Same signature; products begin … end − 1.
void emit_register_products(IrBuilder&, const std::string& name, const MatmulSpec&,
                            const RegisterPlan&);

}  // namespace vt::detail::cpu

#endif
