// A whole Graph as one of its lanes sees it, and back.
#pragma once

#include <cstdint>
#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

struct OneLane {
  GraphBody graph;  ///< Vars as in the whole Graph, but for these axes
  std::int64_t lanes;
  Vec<bool> mapped;  ///< per Var: axis 0 of it, in the whole Graph, are the lanes
};

/// The Graph for one of at least `fewest` lanes that never meet and are axis 0 of all results, and
/// of the inputs that have them. Nothing where there are none.
std::optional<OneLane> one_lane(const GraphBody&, std::int64_t fewest);

/// `regions` for all lanes again: the lane's Graph as fused regions and leaves.
GraphBody for_all_lanes(const OneLane&, const GraphBody& regions);

}  // namespace vt::detail
