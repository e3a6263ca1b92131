// Flow graphs as text.
#include <algorithm>
#include <utility>

#include <vt/detail/message.hpp>

#include "../../trace/ir/lane_work.hpp"
#include "flow_graph.hpp"

namespace vt::detail {

namespace flow_text {

std::string name_of_slot(const FlowGraph& g, int slot) {
  const FlowGraph::Slot& s = g.slots[slot];
  const char* const kind = s.storage == FlowGraph::Storage::shared     ? "shared"
                           : s.storage == FlowGraph::Storage::argument ? "arg"
                           : s.storage == FlowGraph::Storage::saved    ? "saved"
                                                                       : "state";
  return formatted("{}{}", kind, slot);
}
std::string name_of_place(const FlowGraph& g, const FlowGraph::Place& p) {
  std::string name = name_of_slot(g, p.slot);
  if (p.index >= 0) name += "[" + name_of_slot(g, p.index) + "]";
  return name;
}

}  // namespace flow_text

std::string FlowGraph::operations_of(const Block& b) const {
  if (!b.body) return b.meeting ? "meeting" : "moves";
  Vec<std::pair<double, Op>> ops;
  LaneWork works;
  for (const Equation& e : b.body->equations) {
    const double work = works.of(*b.body, e);
    const auto known =
        std::find_if(ops.begin(), ops.end(), [&](const auto& o) { return o.second == e.op; });
    if (known == ops.end()) ops.push_back({work, e.op});
    else known->first += work;
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < ops.size() && i < shown; ++i)
    text += (i ? ", " : "") + std::string(vt::detail::name_of(ops[i].second));
  if (ops.size() > shown) text += formatted(", {} more", ops.size() - shown);
  return text.empty() ? "moves" : text;
}

std::string FlowGraph::str() const {
  using namespace flow_text;
  std::string text;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const Function& function = functions[f];
    text += f == 0 ? std::string("lanes") : "function " + function.name;
    text += formatted(", begins at block {}", function.entry);
    if (function.frame_bytes) text += formatted(", saves {} bytes", function.frame_bytes);
    text += "\n";
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& b = blocks[i];
      if (static_cast<std::size_t>(b.function) != f) continue;
      text += formatted("  {}:{}", i, b.meeting ? " meeting," : "");
      std::string reads;
      for (std::size_t k = 0; k < b.reads.size(); ++k)
        if (b.in_body[k]) reads += (reads.empty() ? "" : ", ") + name_of_place(*this, b.reads[k]);
      const auto source = [&](const Source& s) {
        return s.result >= 0 ? formatted("r{}", s.result) : name_of_place(*this, b.reads[s.read]);
      };
      if (b.body) text += formatted(" [{}]({})", operations_of(b), reads);
      for (const Write& w : b.writes)
        text += (w.callee ? " push " : " ") + name_of_place(*this, w.to) +
                (w.to.elements ? "[" + source(w.positions) + "]" : "") + (w.adds ? " += " : " = ") +
                source(w.from) + ";";
      const std::string target = b.targets.empty() ? "" : formatted("{}", b.targets[0]);
      switch (b.exit) {
        case Exit::jump: text += " jump " + target; break;
        case Exit::branch:
          text += " branch " + source(b.decides) + " → ";
          for (std::size_t t = 0; t < b.targets.size(); ++t)
            text += (t ? ", " : "") + formatted("{}", b.targets[t]);
          break;
        case Exit::call:
          text += b.tail ? formatted(" jump to {}", functions[b.callee].name)
                         : formatted(" push {}, jump to {}", target, functions[b.callee].name);
          break;
        case Exit::leave: text += " return"; break;
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace vt::detail
