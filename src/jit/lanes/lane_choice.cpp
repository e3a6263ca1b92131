// How the lanes of a lane call run on the host.
#include "lane_choice.hpp"

#include "../../trace/base/environment.hpp"
#include "../../trace/ir/effects.hpp"

namespace vt::detail {

// Effects happen lane by lane, as groups have it.
bool lanes_part(const Equation& e) {
  return lanes_from_environment() != "groups" && !has_effect(e) &&
         e.as<BatchedCallParams>().lanes.count > 0;
}

}  // namespace vt::detail
