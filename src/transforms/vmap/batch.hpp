// batch_graph: walks a Graph with some inputs carrying an extra axis of lanes, and emits the equations for all lanes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../../trace/graph.hpp"
#include "../../trace/node.hpp"
#include "../../trace/scope.hpp"

namespace vt::detail {

/// A value of all lanes: `axis` is where the lanes lie in it, or nothing when every lane has the same value.
struct Batched {
  Tensor value;
  std::optional<int> axis;
};
using BatchedList = SmallVec<Batched, 1>;

/// The results of `graph` for `lanes` lanes. `inputs`: one per Graph input. Equations are recorded in the current scope; those
/// that see no mapped operand are recorded once, as they are.
std::vector<Batched> batch_graph(const GraphBody& graph, std::span<const Batched> inputs, std::int64_t lanes);

/// Records `f` for one lane of `arguments`. Only the mapped ones become inputs: the others are handed to `f` as they are, so that
/// what depends on them alone is recorded outside, once.
Recorded record_lane(const FlatFunction& f, std::span<const Batched> arguments, const char* transform);
/// Walks what record_lane recorded, for these arguments (or a block of their lanes).
std::vector<Batched> batch_recorded(const Recorded& lane, std::span<const Batched> arguments, std::int64_t lanes);
/// Both. The results lie wherever the rules put the lanes.
std::vector<Batched> batch_function(const FlatFunction& f, std::span<const Batched> arguments, std::int64_t lanes, const char* transform);

}  // namespace vt::detail
