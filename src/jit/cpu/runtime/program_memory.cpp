// How much memory a program takes, by its buffer plan: jit(f).memory(…).
#include <algorithm>
#include <vector>

#include "../../../trace/ir/sub_graph.hpp"
#include "../../services/threads.hpp"
#include "program.hpp"

namespace vt::detail {

namespace memory_use {

std::string text_of(const Equation* e, const Aval& aval) {
  return (e ? std::string(name_of(e->op)) + " " : "") + aval.str();
}

// Merges runs of equal lengths: a standard sort of these would be twenty functions more in the one
// unit.
void largest_first(Memory& m) {
  const std::size_t n = m.values.size();
  Vec<std::size_t> from(n), to(n);
  for (std::size_t i = 0; i < n; ++i) from[i] = i;
  for (std::size_t run = 1; run < n; run *= 2) {
    for (std::size_t begin = 0, at = 0; begin < n; begin += 2 * run) {
      const std::size_t half = std::min(begin + run, n), end = std::min(begin + 2 * run, n);
      for (std::size_t a = begin, b = half; at < end; ++at)
        to[at] = b == end || (a < half && m.values[from[a]].bytes >= m.values[from[b]].bytes)
                     ? from[a++]
                     : from[b++];
    }
    std::swap(from, to);
  }
  std::vector<Memory::Value> sorted;
  for (std::size_t i : from) sorted.push_back(std::move(m.values[i]));
  m.values = std::move(sorted);
}

}  // namespace memory_use

// What a step reads and writes, by storage.
Vec<Var> Program::buffers_of(std::size_t step) const {
  const Step& s = steps_[step];
  Vec<Var> all(s.slots.begin(), s.slots.end());
  for (int equation : fusion_.steps[step].equations()) {
    const Equation& e = fusion_.graph.equations[equation];
    for (Var v : e.inputs) all.push_back(fusion_.storage[v]);
    for (Var v : e.outputs) all.push_back(fusion_.storage[v]);
  }
  return all;
}

Vec<std::uint64_t> Program::made_by_steps() const {
  Vec<std::uint64_t> made(steps_.size(), 0);
  const Lives lives = this->lives();
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    if (plan_.slots[v].kind != BufferPlan::Slot::Kind::produced) continue;
    for (int k = lives.from[v]; k <= lives.until[v] && k < static_cast<int>(steps_.size()); ++k)
      made[k] += fusion_.graph.avals[v].bytes();
  }
  return made;
}

Program::Lives Program::lives() const {
  Lives l{Vec<int>(fusion_.graph.avals.size(), static_cast<int>(steps_.size())),
          Vec<int>(fusion_.graph.avals.size(), -1)};
  for (std::size_t k = 0; k < steps_.size(); ++k)
    for (Var v : buffers_of(k)) {
      l.from[v] = std::min(l.from[v], static_cast<int>(k));
      l.until[v] = static_cast<int>(k);
    }
  for (const Output& o : outputs_) l.until[o.var] = static_cast<int>(steps_.size());
  return l;
}

// Is an operand of a product the same in every run of a frame?
bool Program::stays(Var v, std::size_t same_from) const {
  const BufferPlan::Slot& s = plan_.slots[v];
  return s.kind == BufferPlan::Slot::Kind::constant ||
         (s.kind == BufferPlan::Slot::Kind::input && fusion_.graph.inputs[s.index] == v &&
          static_cast<std::size_t>(s.index) >= same_from);
}

std::uint64_t Program::packed_bytes(std::size_t same_from) const {
  std::uint64_t bytes = 0;
  for (const Step& s : steps_)
    if (s.product)
      bytes +=
          s.product->packed_bytes(stays(s.operands[0], same_from), stays(s.operands[1], same_from));
  return bytes;
}

std::int64_t Program::scratch_of(std::size_t k, const RunMemory& use) const {
  const Step& step = steps_[k];
  switch (step.kind) {
    case Step::Kind::kernel:
    case Step::Kind::rows:
    case Step::Kind::equation: return 0;
    case Step::Kind::product: {
      if (step.chain) return static_cast<std::int64_t>(step.chain->scratch_bytes());
      const auto ignore = [](std::int64_t, std::int64_t) {};
      const bool rows = fusion_.steps[k].row_loop >= 0;
      return static_cast<std::int64_t>(step.product->scratch_bytes(
          rows ? RowsDone(ignore, step.row_group, step.rows_alone) : RowsDone(),
          use.frame && stays(step.operands[0], use.same_from),
          use.frame && stays(step.operands[1], use.same_from)));
    }
    case Step::Kind::sort: {
      SmallVec<char, 4> wanted;
      for (std::size_t i = step.operands.size() / 2; i < step.operands.size(); ++i)
        wanted.push_back(plan_.slots[step.operands[i]].kind != BufferPlan::Slot::Kind::unused);
      return static_cast<std::int64_t>(sort_scratch_bytes(step.sort, wanted));
    }
    case Step::Kind::fft:
      return static_cast<std::int64_t>(
          fft_scratch_bytes(step.fft, step.parallel ? thread_count() : 1));
    case Step::Kind::linalg: {
      std::int64_t block = 0;
      for (std::int64_t each : step.arguments) block += each * step.lanes;
      if (step.lanes > 0) return step.iterations < step.linalg.batch ? block : 0;
      return static_cast<std::int64_t>(step.linalg.scratch_bytes()) *
             (step.parallel ? threads_for(step.iterations, step.grain) : 1);
    }
    case Step::Kind::control: {
      const Equation& e = fusion_.graph.equations[step.equation];
      Vec<bool> owned;
      for (Var o : e.inputs) {
        const Var v = fusion_.storage[o];
        const bool produced = plan_.slots[v].kind == BufferPlan::Slot::Kind::produced;
        const bool given = std::find(step.handed_over.begin(), step.handed_over.end(), v) !=
                           step.handed_over.end();
        owned.push_back(given && (produced || use.gives_carries));
      }
      return step.control->scratch_bytes(owned);
    }
  }
  return 0;
}

std::uint64_t Program::run_bytes(const RunMemory& use) const {
  std::uint64_t fresh = plan_.arena_bytes;
  for (std::size_t i = 0; i < outputs_.size() && i < use.own_results; ++i)
    if (outputs_[i].slot_output >= 0) fresh += plan_.slots[outputs_[i].var].bytes;
  const Vec<std::uint64_t> made = made_by_steps();
  std::int64_t most = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k)
    most = std::max(most, static_cast<std::int64_t>(made[k]) + scratch_of(k, use));
  return fresh + static_cast<std::uint64_t>(most);
}

Memory Program::memory() const {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion_.graph;
  const int steps = static_cast<int>(steps_.size());
  const Lives lives = this->lives();
  Memory m;
  const Vec<int> makers = makers_of(g);
  for (std::size_t v = 0; v < g.avals.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    const int from = lives.from[v], until = lives.until[v];
    if (s.kind == Kind::unused || (s.bytes == 0 && g.avals[v].bytes() == 0) ||
        (s.kind != Kind::input && until < 0))
      continue;
    const std::uint64_t bytes = s.bytes ? s.bytes : g.avals[v].bytes();
    const Equation* const maker = makers[v] < 0 ? nullptr : &g.equations[makers[v]];
    const bool over_input = s.kind == Kind::input && maker;
    constexpr const char* places[] = {"",        "input",           "constant", "result",
                                      "scratch", "within a result", "own"};
    if (s.kind == Kind::input && !over_input) m.inputs += bytes;
    if (s.kind == Kind::constant) m.constants += bytes;
    if (s.kind == Kind::output || (s.kind == Kind::produced && until == steps)) m.results += bytes;
    m.values.push_back({memory_use::text_of(maker, g.avals[v]),
                        over_input ? "over an input" : places[static_cast<int>(s.kind)], bytes,
                        std::min(from, steps), std::max(until, 0),
                        maker ? maker->where : CallSite{}});
  }
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const std::int64_t bytes = scratch_of(k, {});
    if (bytes <= 0) continue;
    const Equation& e = g.equations[steps_[k].equation];
    m.values.push_back({std::string(name_of(e.op)) + " at work", "scratch",
                        static_cast<std::uint64_t>(bytes), static_cast<int>(k), static_cast<int>(k),
                        e.where});
  }
  m.scratch = std::max(run_bytes({}), m.results) - m.results;
  memory_use::largest_first(m);
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
    m.values.push_back({memory_use::text_of(nullptr, g.aval(v)),
                        "input",
                        g.aval(v).bytes(),
                        0,
                        std::max(until[v], 0),
                        {}});
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
        m.values.push_back({memory_use::text_of(&e, g.aval(v)),
                            constant ? "constant"
                            : result ? "result"
                                     : "own",
                            bytes, k, last, e.where});
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
