// How much memory a program takes, by its buffer plan: jit(f).memory(…).
#include <algorithm>

#include "../../../trace/numerics/fft_kernels.hpp"
#include "program.hpp"

namespace vt::detail {

std::uint64_t Program::packed_bytes(std::size_t same_from) const {
  std::uint64_t bytes = 0;
  for (const auto& step : steps_) bytes += step->packed_bytes(same_from);
  return bytes;
}

std::uint64_t Program::run_bytes(const RunMemory& use) const {
  std::uint64_t fresh = plan_.buffers.arena_bytes;
  for (std::size_t i = 0; i < outputs_.size() && i < use.own_results; ++i)
    if (outputs_[i].slot_output >= 0) fresh += plan_.slot(outputs_[i].var).bytes;
  // Per step: what it takes, and what steps have made for their results.
  Vec<std::int64_t> taken;
  for (const auto& step : steps_) taken.push_back(step->scratch(use));
  for (std::size_t v = 0; v < plan_.buffers.slots.size(); ++v) {
    if (plan_.buffers.slots[v].kind != BufferPlan::Slot::Kind::produced) continue;
    const BufferPlan::Life life = plan_.buffers.lives[v];
    for (int k = std::max(life.first, 0); k <= life.last && k < static_cast<int>(taken.size()); ++k)
      taken[k] += static_cast<std::int64_t>(graph().avals[v].bytes());
  }
  std::int64_t most = 0;
  for (std::int64_t bytes : taken) most = std::max(most, bytes);
  return fresh + static_cast<std::uint64_t>(most);
}

Memory Program::memory() const {
  Memory m = planned_memory(plan_.fusion, plan_.buffers);
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const std::int64_t bytes = steps_[k]->scratch({});
    if (bytes <= 0) continue;
    const Equation& e = *steps_[k]->shown();
    m.values.push_back({std::string(name_of(e.op)) + " at work", "scratch",
                        static_cast<std::uint64_t>(bytes), static_cast<int>(k), static_cast<int>(k),
                        e.where});
  }
  m.scratch = std::max(run_bytes({}), m.results) - m.results;
  largest_first(m.values);
  return m;
}

Memory interpreted_memory(const GraphBody& g) {
  const int steps = static_cast<int>(g.equations.size());
  Vec<int> until(g.avals.size(), -1);
  for (int k = 0; k < steps; ++k) {
    for (Var v : g.equations[k].inputs) until[v] = k;
    for (Var v : g.equations[k].outputs) until[v] = k;
  }
  for (Var v : g.outputs) until[v] = steps;
  Memory m;
  for (Var v : g.inputs) {
    m.inputs += g.aval(v).bytes();
    m.values.push_back({g.aval(v).str(), "input", g.aval(v).bytes(), 0, std::max(until[v], 0), {}});
  }
  Vec<std::uint64_t> live(static_cast<std::size_t>(steps) + 1, 0);
  for (int k = 0; k < steps; ++k) {
    const Equation& e = g.equations[k];
    // What is computed in f64 is copied; while a sub-graph runs, its results are there beside the
    // equation's.
    std::uint64_t own = e.op == Op::fft
                            ? fft_scratch_bytes(fft_spec(e.as<FftParams>(), g.aval(e.inputs[0])), 1)
                            : 0;
    if (e.op == Op::dot_general || e.op == Op::conv_general || e.op == Op::fft)
      for (std::size_t i = 0; i < e.inputs.size() + e.outputs.size(); ++i) {
        const Aval& a = g.aval(i < e.inputs.size() ? e.inputs[i] : e.outputs[i - e.inputs.size()]);
        own += static_cast<std::uint64_t>(a.elements()) * (is_complex(a.dtype) ? 2 : 1) *
               sizeof(double);
      }
    for (const GraphRef& body : bodies_of(e.params)) {
      const Memory inner = interpreted_memory(*body);
      own = std::max(own, inner.scratch + inner.results);
    }
    live[k] += own;
    for (Var v : e.outputs) {
      const std::uint64_t bytes = g.aval(v).bytes();
      const int last = until[v];
      const bool constant = e.op == Op::constant, result = last == steps;
      (constant ? m.constants : result ? m.results : live[k]) += bytes;
      if (!constant && !result)
        for (int later = k + 1; later <= last; ++later) live[later] += bytes;
      if (bytes)
        m.values.push_back({std::string(name_of(e.op)) + " " + g.aval(v).str(),
                            constant ? "constant"
                            : result ? "result"
                                     : "own",
                            bytes, k, last, e.where});
    }
  }
  for (std::uint64_t bytes : live) m.scratch = std::max(m.scratch, bytes);
  largest_first(m.values);
  return m;
}

}  // namespace vt::detail

namespace vt {

std::string Memory::str() const {
  constexpr std::size_t most_lines = 20;
  std::string text = std::to_string(peak()) + " bytes at most: inputs " + std::to_string(inputs) +
                     ", constants " + std::to_string(constants) + ", results " +
                     std::to_string(results) + ", scratch " + std::to_string(scratch) + "\n";
  for (std::size_t i = 0; i < values.size() && i < most_lines; ++i) {
    const Value& v = values[i];
    text += "  " + std::to_string(v.bytes) + "  " + v.what + ", " + v.place + ", steps " +
            std::to_string(v.from) + " to " + std::to_string(v.until);
    if (v.where.file) text += ", " + std::string(v.where.file) + ":" + std::to_string(v.where.line);
    text += "\n";
  }
  if (values.size() > most_lines)
    text += "  … and " + std::to_string(values.size() - most_lines) + " smaller ones\n";
  return text;
}

}  // namespace vt
