// ControlStep: how much memory a loop or branch takes while it runs.
#include <algorithm>

#include "../../../trace/ir/collectives.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../services/planning.hpp"
#include "../../services/threads.hpp"
#include "control.hpp"
#include "lane_machine.hpp"
#include "program.hpp"

namespace vt::detail {

// Of recursive calls only results count: how deep they go is not known.
std::int64_t ControlStep::scratch(const RunMemory& use) const {
  if (only_code_) return 0;
  Vec<bool> owned;
  for (Var o : equation().inputs) {
    const Var v = storage(o);
    const bool produced = plan_.slot(v).kind == BufferPlan::Slot::Kind::produced;
    owned.push_back(is_handed_over(v) && (produced || use.gives_carries));
  }
  if (machine_) return machine_->scratch_bytes();
  if (form_) {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; form_->sums && k < alone_.outputs.size(); ++k)
      bytes += parts_of_sums() * static_cast<std::int64_t>(alone_.aval(alone_.outputs[k]).bytes());
    for (std::size_t i : in_place_)
      if (owned[i]) bytes -= static_cast<std::int64_t>(alone_.aval(alone_.inputs[i]).bytes());
    return bytes;
  }
  if (equation().op == Op::recursive_call) return 0;
  const bool together = lanes_ && !keeps_order(equation());
  if (equation().op == Op::cond) return scratch_of_branches();
  if (together) return scratch_of_queues();
  return cut_ ? scratch_of_parts()
              : scratch_of_iterations(lanes_ ? Vec<bool>(owned.size(), false) : owned);
}

// See LoopRounds: a state is kept beside the next one, unless that is written over it; at the end
// it is the result.
std::int64_t ControlStep::scratch_of_iterations(const Vec<bool>& owned) const {
  const bool scan = equation().op == Op::scan;
  const Program& body = program(scan ? 0 : 1);
  const std::size_t same_from = carries_ + sequences_of(equation());
  const auto& over = body.overwritten();
  std::int64_t bytes = 0;
  if (body.plain()) {
    bytes += static_cast<std::int64_t>(
        body.run_bytes({.own_results = 0, .frame = true, .same_from = same_from}) +
        body.packed_bytes(same_from));
    for (std::size_t i = 0; i < carries_; ++i)
      if (std::find(over.begin(), over.end(), i) == over.end())
        bytes += static_cast<std::int64_t>(body.input_bytes(i));
  } else {
    bytes +=
        static_cast<std::int64_t>(body.run_bytes({.own_results = carries_, .gives_carries = true}));
  }
  for (std::size_t i = 0; i < carries_; ++i)
    if (owned[i]) bytes -= static_cast<std::int64_t>(body.input_bytes(i));
  return bytes + (scan ? 0 : static_cast<std::int64_t>(program(0).run_bytes({})));
}

// All parts at a time that there are threads for; each has states of its own.
std::int64_t ControlStep::scratch_of_parts() const {
  const GraphBody& graph = *bodies_[0]->graph;
  const std::size_t same_from = carries_ + sequences_of(equation());
  const std::int64_t fewest = cut_.rows / cut_.parts;
  std::int64_t packed = 0, part = 0;
  for (std::int64_t rows : {fewest, fewest + 1}) {
    if (rows > fewest && cut_.rows % cut_.parts == 0) continue;
    const Program& body = program(0, rows);
    packed += static_cast<std::int64_t>(body.packed_bytes(same_from));
    std::int64_t own = static_cast<std::int64_t>(
        body.run_bytes({.own_results = 0, .frame = true, .same_from = same_from}));
    for (std::size_t i = 0; i < carries_; ++i)
      own += static_cast<std::int64_t>(body.input_bytes(i)) * (body.writes_result(i) ? 2 : 1);
    part = std::max(part, own);
  }
  std::int64_t ignored = 0;
  for (std::size_t i = carries_; i < graph.outputs.size(); ++i)
    if (cut_.axis[graph.outputs[i]] < 0)
      ignored += static_cast<std::int64_t>(graph.aval(graph.outputs[i]).bytes());
  return packed + (part + ignored) * threads_for(cut_.parts, 1);
}

// The branch that takes most; of lanes, all of them may take it but for one.
std::int64_t ControlStep::scratch_of_branches() const {
  const bool groups = lanes_ && !keeps_order(equation());
  const std::int64_t count = std::max<std::int64_t>(lanes_.count, 1);
  std::int64_t results = 0, most = 0;
  for (Var v : bodies_[0]->graph->outputs)
    results += static_cast<std::int64_t>(bodies_[0]->graph->aval(v).bytes());
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    if (!groups) {
      most = std::max(most, static_cast<std::int64_t>(program(b).run_bytes({})));
      continue;
    }
    const GraphBody& g = *bodies_[b]->graph;
    std::int64_t gathered = 0;
    for (std::size_t i = 0; i < mapped_.size(); ++i)
      if (mapped_[i]) gathered += static_cast<std::int64_t>(g.aval(g.inputs[i]).bytes()) * count;
    const Planning only;
    most = std::max(
        most, gathered + static_cast<std::int64_t>(Program(graph_for(b, count)).run_bytes({})));
  }
  return groups || lanes_ ? most : most - results;
}

// Every queue has its places' states and operands; where it shrinks, the next smaller places are
// made beside them.
std::int64_t ControlStep::scratch_of_queues() const {
  if (lanes_.count == 0) return 0;
  const LaneQueues q = lane_queues();
  const Program& body = program(1, q.places);
  const GraphBody& lane = *bodies_[1]->graph;
  std::int64_t bytes =
      static_cast<std::int64_t>(body.run_bytes({.own_results = body.plain() ? 0 : carries_,
                                                .frame = body.plain(),
                                                .same_from = carries_}) +
                                program(0, q.places).run_bytes({}));
  for (std::size_t i = 0; i < lane.inputs.size(); ++i)
    if (mapped_[i])
      bytes += static_cast<std::int64_t>(lane.aval(lane.inputs[i]).bytes()) * q.places *
               (i < carries_ ? 2 : 1);
  return (bytes + bytes / 2) * threads_for(q.queues, 1) +
         static_cast<std::int64_t>(body.packed_bytes(carries_));
}

}  // namespace vt::detail
