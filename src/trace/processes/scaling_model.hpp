// The model of a step on other numbers of processes: what the exchanges take by their algorithms.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <vt/distributed.hpp>

#include "link.hpp"
#include "world.hpp"

namespace vt::detail {

/// What is known of the links in a prediction.
struct ScalingLinks {
  std::vector<Link> within, between;
  /// Seconds that a byte of a sum takes: of a short one, and of one that is cut in blocks.
  double combine = 0, combine_long = 0;
  int of_host = 1;  ///< processes on a machine
};

/// A collective in a group of so many processes.
struct ModelledExchange {
  ExchangeKind kind = ExchangeKind::barrier;
  bool is_begun = false;  ///< and waited for later
  double bytes = 0;       ///< that a process gives
  double elements = 0;    ///< all_reduce
  double width = 1;       ///< of an element as it is combined
  int processes = 1;
  int stride = 1;   ///< from one of the group to the next
  double hide = 0;  ///< seconds of other work between its begin and its end
};
double exchange_seconds(const ModelledExchange&, const ScalingLinks&);

/// The expected maximum of so many numbers of the standard normal distribution.
double expected_maximum(double count);

/// One bar of the timeline, in seconds from the beginning of the step.
struct TimelineBar {
  enum class Kind : std::uint8_t { compute, wait, transfer } kind;
  double begin, end;
  int exchange = -1;  ///< in ScalingData::exchanges
};

struct ScalingData {
  int ranks = 1, steps = 0;
  bool is_given = false;  ///< the link between machines
  std::string transport;
  double seconds = 0;
  distributed::StepTime measured;
  double spread = 0;  ///< of the compute in front of collectives, in all
  std::vector<distributed::ScalingExchange> exchanges;
  std::vector<ModelledExchange> models;  ///< of each of them
  ScalingLinks links;
  std::vector<std::vector<TimelineBar>> timeline;  ///< by rank
  CallSite where;
};

/// The transfer of exchange k in a step on so many processes.
double transfer_seconds(const ScalingData&, std::size_t k, std::int64_t processes,
                        distributed::Scaling);

}  // namespace vt::detail
