// On which device a Graph runs.
#include <optional>

#include <vt/detail/message.hpp>

#include "../trace/ir/executable.hpp"
#include "../trace/record/devices.hpp"
#include "../trace/record/thread_state.hpp"

namespace vt::detail {

Device device_of(const GraphBody& graph, std::span<const Device> given) {
  const Device fallback = default_device();
  const bool movable = fallback.kind == Device::Kind::cuda;  // then what is on the host follows
  Vec<std::pair<Device, Var>> places(graph.avals.size(), {Device{}, -1});
  std::optional<Device> found;
  bool several = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Device d = given[i];
    const Var v = graph.inputs[i];
    if (d.kind == Device::Kind::cpu && (movable || graph.aval(v).shape.empty())) continue;
    places[v] = {d, v};
    several = several || (found && !(*found == d));
    if (!found) found = d;
  }
  if (!several) return found.value_or(fallback);
  for (const Equation& e : graph.equations) {
    std::pair<Device, Var> first{Device{}, -1};
    for (Var in : e.inputs) {
      const auto& here = places[in];
      if (here.second < 0) continue;
      if (first.second >= 0 && !(first.first == here.first))
        fail(ErrorKind::backend,
             formatted("vt::{}: operands lie on different devices: {} on {}, {} on {}; bring them "
                       "together with .to(device)",
                       name_of(e.op), graph.aval(first.second).str(), text_of(first.first),
                       graph.aval(here.second).str(), text_of(here.first)),
             e.where);
      if (first.second < 0) first = here;
    }
    for (Var out : e.outputs) places[out] = {first.first, first.second < 0 ? -1 : out};
  }
  fail(ErrorKind::backend,
       "vt: values that are computed together lie on different devices; bring them together with "
       ".to(device)",
       thread_state().where);
}

Vec<BufferRef> brought(std::span<const BufferRef> inputs, Device device) {
  Vec<BufferRef> there;
  for (const BufferRef& b : inputs) there.push_back(moved(b, device));
  return there;
}

}  // namespace vt::detail
