// Schedules as text: a part of the key of a kernel in the caches.
#include "schedule.hpp"

namespace vt::detail {

std::string Schedule::str(const Nest& nest) const {
  std::string text = "schedule SIMD lanes " + std::to_string(simd_lanes);
  if (parallel_loop >= 0) text += ", threads along d" + std::to_string(parallel_loop);
  if (!any_sizes) text += ", for these sizes";
  text += "\n";
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const StageSchedule& s = stages[k];
    constexpr const char* modes[] = {"element-wise", "horizontal", "vertical"};
    if (nest.stages.size() > 1) text += "  stage " + std::to_string(k) + ":";
    else text += " ";
    text += std::string(" ") + modes[static_cast<int>(s.mode)] + ", loops";
    for (int l : s.order) text += " d" + std::to_string(l);
    if (s.vector_loop >= 0) text += ", vector d" + std::to_string(s.vector_loop);
    if (s.accumulators > 1)
      text += (s.mode == StageSchedule::Mode::vertical ? ", rows " : ", accumulators ") +
              std::to_string(s.accumulators);
    if (s.tile_loop >= 0) text += ", tiles with d" + std::to_string(s.tile_loop);
    if (s.block_along > 1 || s.block_across > 1)
      text += " in blocks of " + std::to_string(s.block_along) + " by " +
              std::to_string(s.block_across);
    else if (s.tile_loop >= 0 && s.mode == StageSchedule::Mode::elementwise)
      text += " by " + std::to_string(s.tiles_in_a_row);
    if (s.narrow) text += ", a vector at a time";
    if (s.fetch_ahead) text += ", fetched ahead";
    if (s.stream) text += ", past the caches";
    if (s.masked) text += ", masked";
    text += "\n";
  }
  return text;
}

}  // namespace vt::detail
