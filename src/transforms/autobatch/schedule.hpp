// Schedules: in which order nodes run, and which of them together.
#pragma once

#include <vt/autobatch.hpp>
#include <vt/detail/small_vec.hpp>

#include "nodes.hpp"

namespace vt::detail::autobatching {

/// Groups of nodes of one signature, none of which needs another of the group.
struct NodeSchedule {
  Vec<std::int32_t> order;  ///< all nodes, group after group
  Vec<std::int32_t> first;  ///< per group, and one more: where its nodes begin
  std::size_t groups() const { return first.size() - 1; }
  std::span<std::int32_t> group(std::size_t k) {
    return {order.data() + first[k], static_cast<std::size_t>(first[k + 1] - first[k])};
  }
  std::span<const std::int32_t> group(std::size_t k) const {
    return {order.data() + first[k], static_cast<std::size_t>(first[k + 1] - first[k])};
  }
};

/// Time: linear in nodes and operands, and logarithmic in signatures for each group.
NodeSchedule schedule_nodes(const NodeGraph&, Batching);

/// No schedule has fewer groups: for each signature the most of its nodes on one path, added up.
/// Time: nodes × signatures.
std::size_t least_groups(const NodeGraph&);

}  // namespace vt::detail::autobatching
