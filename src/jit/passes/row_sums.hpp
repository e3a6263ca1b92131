// Row sums: sums over the rows of a batched call, taken apart from what is made for each row.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// A result that is summed over all rows: of arrays, one a row, or of products aᵀ b of matrices of
/// each row, which are one product for all rows: [rows · depth, m]ᵀ [rows · depth, n].
struct RowSum {
  int a = 0, b = -1;  ///< outputs of RowSums::body; b −1: the sum of a
  std::int64_t depth = 1, m = 0, n = 0;
  friend bool operator==(const RowSum&, const RowSum&) = default;
};
/// A function of one row without sums in it.
struct RowSums {
  GraphRef body;        ///< gives the results that are not summed, in order, then what sums need
  std::size_t own = 0;  ///< how many are not summed
  Vec<RowSum> sums;     ///< of the summed results, in order
};
RowSums split_row_sums(const GraphRef& body, const SmallVec<bool, 4>& summed);

}  // namespace vt::detail
