// How what shard_map has recorded runs: once on each process, or for each of its shards.
#pragma once

#include <span>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/distributed.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/state.hpp"

namespace vt::detail {

/// A recorded function, and what this process gives it.
struct RecordedCall {
  const GraphBody& graph;
  std::span<const AxisRef> mesh;
  // in the order of the Graph's inputs
  std::span<const Tensor> arguments;
  std::span<const LaneStream> streams;
  std::span<const Tensor> captured;
  CallSite where;
};

/// The axis along which a value of that rank is cut over a mesh of one axis; −1: none.
int cut_axis(const Sharding&, int rank);

std::vector<Tensor> run_recorded(const RecordedCall&);
/// For each of the shards of this process, with sums in an order that does not depend on how many
/// processes there are. Of a mesh of one axis; outside of all scopes.
std::vector<Tensor> run_in_shards(const RecordedCall&, int shards,
                                  std::span<const Sharding> in_specs,
                                  std::span<const Sharding> out_specs);

}  // namespace vt::detail
