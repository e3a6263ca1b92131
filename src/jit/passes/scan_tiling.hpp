// Scans whose rows are independent: each iteration computes a row of the state (along axis 0) from
// the same row of the last state and of the sequences, as the batch of a recurrent network does.
// Such a scan is cut into scans over a few rows each: threads run all iterations of their rows
// without waiting for each other, and a state of few rows stays in the nearest cache.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

struct RowCut {
  std::int64_t rows = 0;  ///< of the whole loop; 0: not to be cut
  /// chosen from the body alone, so that results do not depend on the number of threads
  std::int64_t parts = 1;
  Vec<int> axis;  ///< per Var of the body: the axis of rows, or −1 if all rows share it
  explicit operator bool() const { return rows > 0; }
  std::int64_t first(std::int64_t part) const { return rows * part / parts; }
};

/// About how many multiply-adds the equations of a loop's body are worth.
std::int64_t work_of_iteration(const GraphBody& body);
/// How to cut the loop that `body` is one iteration of, if it can be and is worth it. `carries`: of
/// its inputs and outputs, the first.
RowCut cut_rows(const GraphBody& body, std::size_t carries);
/// The same iteration for so many rows.
GraphBody body_of_rows(const GraphBody& body, const RowCut& cut, std::int64_t rows);

}  // namespace vt::detail
