// The plan of a dataset, step by step: made by dataset.cpp, run by streams.cpp.
#pragma once

#include <vt/dataset.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/buffer.hpp"

namespace vt::detail {

/// Steps that only choose rows come first, then maps, which are moved behind them, and behind
/// batches; see the functions that make plans.
struct DatasetPlan {
  enum class Kind : std::uint8_t {
    rows,
    shuffle,
    part,
    shard,
    repeat,
    map,
    batch,
    prefetch,
    progress
  } kind;
  PlanRef from;
  /// part: first, how many (−1: the rest); shard: which one, of how many; repeat, batch, prefetch:
  /// how many
  std::int64_t count = 0, skip = 0;
  bool drop_remainder = false;
  bool vectorized = false;  ///< map: of every example of a batch
  ElementLeaves arrays;     ///< rows
  Vec<BufferRef> values;
  Tensor key;                                   ///< shuffle
  FlatFunction f;                               ///< map, compiled
  std::shared_ptr<const FlatFunction> element;  ///< map, as it was given, or for a batch
  std::string label;
  double interval = 0;
  CallSite where;  ///< batch, shuffle: the user's line
};

namespace dataset_parts {

using Kind = DatasetPlan::Kind;

inline bool chooses_rows(const DatasetPlan& p) {
  return p.kind == Kind::rows || p.kind == Kind::shuffle || p.kind == Kind::part ||
         p.kind == Kind::shard || p.kind == Kind::repeat;
}
inline bool all_choose_rows(const PlanRef& p) {
  return chooses_rows(*p) && (!p->from || all_choose_rows(p->from));
}

}  // namespace dataset_parts

}  // namespace vt::detail
