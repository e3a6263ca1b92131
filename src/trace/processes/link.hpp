// Links: how long messages between two ranks are under way, measured and as a model.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/distributed.hpp>

#include "world.hpp"

namespace vt::detail {

using distributed::Link;

/// What was measured of messages of one size: how long one is under way while another one comes
/// back, and how much of that the rank itself works.
struct LinkSample {
  double bytes, seconds, own_seconds;
};
/// Least squares of relative errors, in as few ranges of sizes as it takes (three at most).
std::vector<Link> fitted_link(std::span<const LinkSample>);

/// A message, of which `together` go over the link at once. `range`: the size that decides in which
/// range it is; 0: its own.
double message_seconds(std::span<const Link>, double bytes, double together = 1, double range = 0);
/// What of that the rank itself works.
double own_seconds(std::span<const Link>, double bytes);

struct MeasuredLinks {
  std::vector<Link> within;   ///< a machine; empty: no two ranks are on that of rank 0
  std::vector<Link> between;  ///< machines; empty: all ranks are on one
  /// Seconds that a byte of a sum takes: of one that stays in the caches, and of a long one.
  double combine = 0, combine_long = 0;
  Vec<double> ahead;  ///< of each rank: its clock less that of rank 0
};
/// All ranks make the call.
MeasuredLinks measure_links(World&, const CollectiveSite&);

}  // namespace vt::detail
