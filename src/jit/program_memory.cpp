// What a program takes of memory, by its plan: jit(f).memory(…).
#include <algorithm>

#include "program.hpp"

namespace vt::detail {

namespace memory_use {

std::string text_of(const Equation* e, const Aval& aval) { return (e ? std::string(name_of(e->op)) + " " : "") + aval.str(); }

// Per Var the equation that makes it; null for inputs.
Vec<const Equation*> makers(const GraphBody& g) {
  Vec<const Equation*> made(g.avals.size(), nullptr);
  for (const Equation& e : g.equations)
    for (Var v : e.outputs) made[static_cast<std::size_t>(v)] = &e;
  return made;
}

void largest_first(Memory& m) {
  std::stable_sort(m.values.begin(), m.values.end(), [](const Memory::Value& a, const Memory::Value& b) { return a.bytes > b.bytes; });
}

}  // namespace memory_use

// What a step reads and writes, by storage.
Vec<Var> Program::buffers_of(std::size_t step) const {
  const Step& s = steps_[step];
  Vec<Var> all(s.slots.begin(), s.slots.end());
  if (s.equation >= 0) {
    const Equation& e = fusion_.graph.equations[static_cast<std::size_t>(s.equation)];
    for (Var v : e.inputs) all.push_back(fusion_.storage[static_cast<std::size_t>(v)]);
    for (Var v : e.outputs) all.push_back(fusion_.storage[static_cast<std::size_t>(v)]);
  }
  return all;
}

Memory Program::memory() const {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion_.graph;
  const int steps = static_cast<int>(steps_.size());
  Vec<int> from(g.avals.size(), steps), until(g.avals.size(), -1);
  for (int k = 0; k < steps; ++k)
    for (Var v : buffers_of(static_cast<std::size_t>(k))) {
      from[static_cast<std::size_t>(v)] = std::min(from[static_cast<std::size_t>(v)], k);
      until[static_cast<std::size_t>(v)] = k;
    }
  for (const Output& o : outputs_) until[static_cast<std::size_t>(o.var)] = steps;
  Memory m;
  Vec<std::uint64_t> made(steps_.size(), 0);  // per step: what steps have made for themselves, is still there and no result
  const Vec<const Equation*> makers = memory_use::makers(g);
  for (std::size_t v = 0; v < g.avals.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == Kind::unused || (s.bytes == 0 && g.avals[v].bytes() == 0) || (s.kind != Kind::input && until[v] < 0)) continue;
    const std::uint64_t bytes = s.bytes ? s.bytes : g.avals[v].bytes();
    const bool over_input = s.kind == Kind::input && makers[v];
    const char* place = "";
    switch (s.kind) {
      case Kind::unused: break;
      case Kind::input: place = over_input ? "over an input" : "input"; break;
      case Kind::constant: place = "constant"; break;
      case Kind::output: place = "result"; break;
      case Kind::arena: place = "scratch"; break;
      case Kind::in_output: place = "within a result"; break;
      case Kind::produced: place = "own"; break;
    }
    if (s.kind == Kind::input && !over_input) m.inputs += bytes;
    if (s.kind == Kind::constant) m.constants += bytes;
    const bool result = until[v] == steps;
    if (s.kind == Kind::output || (s.kind == Kind::produced && result)) m.results += bytes;
    else if (s.kind == Kind::produced)
      for (int k = from[v]; k <= until[v]; ++k) made[static_cast<std::size_t>(k)] += bytes;
    m.values.push_back({memory_use::text_of(makers[v], g.avals[v]), place, bytes, std::min(from[v], steps), std::max(until[v], 0),
                        makers[v] ? makers[v]->where : Where{}});
  }
  for (std::size_t k = 0; k < steps_.size(); ++k) m.scratch = std::max(m.scratch, made[k] + (steps_[k].control ? steps_[k].control->memory() : 0));
  m.scratch += plan_.arena_bytes;
  memory_use::largest_first(m);
  return m;
}

Memory interpreted_memory(const GraphBody& g) {
  const int steps = static_cast<int>(g.equations.size());
  Vec<int> until(g.avals.size(), -1);
  for (int k = 0; k < steps; ++k) {
    for (Var v : g.equations[static_cast<std::size_t>(k)].inputs) until[static_cast<std::size_t>(v)] = k;
    for (Var v : g.equations[static_cast<std::size_t>(k)].outputs) until[static_cast<std::size_t>(v)] = k;
  }
  for (Var v : g.outputs) until[static_cast<std::size_t>(v)] = steps;
  Memory m;
  for (Var v : g.inputs) {
    m.inputs += g.aval(v).bytes();
    m.values.push_back({memory_use::text_of(nullptr, g.aval(v)), "input", g.aval(v).bytes(), 0, std::max(until[static_cast<std::size_t>(v)], 0), {}});
  }
  Vec<std::uint64_t> live(static_cast<std::size_t>(steps) + 1, 0);
  for (int k = 0; k < steps; ++k) {
    const Equation& e = g.equations[static_cast<std::size_t>(k)];
    for (Var v : e.outputs) {
      const std::uint64_t bytes = g.aval(v).bytes();
      const int last = until[static_cast<std::size_t>(v)];
      const bool constant = e.op == Op::constant, result = last == steps;
      (constant ? m.constants : result ? m.results : live[static_cast<std::size_t>(k)]) += bytes;
      if (!constant && !result)
        for (int later = k + 1; later <= last; ++later) live[static_cast<std::size_t>(later)] += bytes;
      if (bytes) m.values.push_back({memory_use::text_of(&e, g.aval(v)), constant ? "constant" : result ? "result" : "own", bytes, k, last, e.where});
    }
  }
  for (std::uint64_t bytes : live) m.scratch = std::max(m.scratch, bytes);
  memory_use::largest_first(m);
  return m;
}

}  // namespace vt::detail

namespace vt {

std::string Memory::str() const {
  constexpr std::size_t most_lines = 20;
  std::string text = std::to_string(peak()) + " bytes at most: inputs " + std::to_string(inputs) + ", constants " + std::to_string(constants) +
                     ", results " + std::to_string(results) + ", scratch " + std::to_string(scratch) + "\n";
  for (std::size_t i = 0; i < values.size() && i < most_lines; ++i) {
    const Value& v = values[i];
    text += "  " + std::to_string(v.bytes) + "  " + v.what + ", " + v.place + ", steps " + std::to_string(v.from) + " to " + std::to_string(v.until);
    if (v.where.file) text += ", " + std::string(v.where.file) + ":" + std::to_string(v.where.line);
    text += "\n";
  }
  if (values.size() > most_lines) text += "  … and " + std::to_string(values.size() - most_lines) + " smaller ones\n";
  return text;
}

}  // namespace vt
