// The code of matrix products that read their operands where they are: tiles over rows and columns, and dots along k.
#pragma once

#include <optional>

#include "matmul_tile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// The direct product: void(a, b, c, begin, end), without packing, b contiguous along n. batch > 1: products begin … end − 1;
/// batch == 1: rows begin … end − 1, so that the code serves every m.
using DirectFunction = void(const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end);
void emit_direct(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape);

/// The same for rows begin … end − 1 of a single product whose b lies in panels, [panel][k][a tile's columns]: b_row is a tile's columns.
void emit_panels(IrBuilder&, const std::string& name, const MatmulSpec&, TileShape);

/// Both operands contiguous along k: sums run along vectors. Same signature; c rows begin … end − 1 or products begin … end − 1.
void emit_dots(IrBuilder&, const std::string& name, const MatmulSpec&, const Target&);

/// Products that fit into vectors as a whole: c, a and b each in one of `lanes` lanes, `products` of the batch at a time.
struct RegisterPlan {
  int lanes = 0, products = 0;
};
std::optional<RegisterPlan> plan_register_products(const MatmulSpec&, const Target&);
/// Same signature; products begin … end − 1.
void emit_register_products(IrBuilder&, const std::string& name, const MatmulSpec&, const RegisterPlan&);

}  // namespace vt::detail::cpu

#endif
