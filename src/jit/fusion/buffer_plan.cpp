// The buffer plan: liveness and placement of intermediate results: in outputs that are not yet
// written, over operands that end here, or in one scratch block.
#include "buffer_plan.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/thread_state.hpp"
#include "../nest/nest_transform.hpp"

namespace vt::detail {

namespace buffer_planning {

using Kind = BufferPlan::Slot::Kind;

using Life = BufferPlan::Life;

/// What is free of the scratch block, which has no end.
class Gaps {
 public:
  std::size_t take(std::size_t size) {
    Gap* fits = gaps_.begin();
    while (fits->end - fits->begin < size) ++fits;
    const std::size_t offset = fits->begin;
    fits->begin += size;
    if (fits->begin == fits->end) gaps_.erase(fits);
    return offset;
  }
  void give(std::size_t offset, std::size_t size) {
    if (size == 0) return;
    Gap* next = std::partition_point(gaps_.begin(), gaps_.end(),
                                     [&](const Gap& g) { return g.begin < offset; });
    const bool joins_next = next->begin == offset + size;
    if (next != gaps_.begin() && next[-1].end == offset) {
      next[-1].end = joins_next ? next->end : offset + size;
      if (joins_next) gaps_.erase(next);
    } else if (joins_next) {
      next->begin = offset;
    } else {
      gaps_.insert(next, {offset, offset + size});
    }
  }

 private:
  struct Gap {
    std::size_t begin, end;
  };
  Vec<Gap> gaps_{{0, std::numeric_limits<std::size_t>::max()}};  // in order; the last has no end
};

/// The outputs that are not written yet, in order.
class OpenOutputs {
 public:
  void resize(std::size_t count) { links_.resize(count + 1); }
  /// In ascending order.
  void add(int o) {
    link(links_[0].before, o);
    link(o, -1);
  }
  void remove(int o) { link(at(o).before, at(o).after); }
  int first() const { return links_[0].after; }
  int after(int o) const { return links_[static_cast<std::size_t>(o) + 1].after; }

 private:
  struct Link {
    int before = -1, after = -1;
  };
  Link& at(int o) { return links_[o + 1]; }
  void link(int before, int after) {
    at(before).after = after;
    at(after).before = before;
  }
  Vec<Link> links_;  // of −1, which stands before all and behind all, and of each output
};

class Planner {
 public:
  Planner(const Fusion& fusion, const OwnedInputs& owned, std::span<const bool> within_results)
      : fusion_(fusion),
        owned_(owned),
        within_results_(within_results),
        lives_(fusion.graph.avals.size()) {
    plan_.slots.resize(fusion.graph.avals.size());
  }

  BufferPlan run() {
    taken_.assign(owned_.inputs.size(), false);
    const GraphBody& g = fusion_.graph;
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      slot(g.inputs[i]) = {Kind::input, static_cast<int>(i), 0, bytes(g.inputs[i])};
    for (std::size_t i = 0; i < g.equations.size(); ++i)
      if (g.equations[i].op == Op::constant)
        slot(g.equations[i].outputs[0]) = {Kind::constant, static_cast<int>(i), 0,
                                           bytes(g.equations[i].outputs[0])};
    find_lives();
    for (const FusedStep& step : fusion_.steps)
      if (step.equation >= 0 && !step.writes_given_memory)
        for (Var v : g.equations[step.equation].outputs)
          slot(v) = {Kind::produced, -1, 0, bytes(v)};
    place_over_owned();
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const Var v = fusion_.storage[g.outputs[i]];
      if (slot(v).kind == Kind::unused) slot(v) = {Kind::output, static_cast<int>(i), 0, bytes(v)};
    }
    begin_placing();
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
      begin_step(static_cast<int>(s));
      place_results(static_cast<int>(s));
    }
    keep_regions_apart();
    hand_over();
    plan_.released.resize(fusion_.steps.size());
    for (std::size_t v = 0; v < lives_.size(); ++v)
      if (plan_.slots[v].kind == Kind::produced && lives_[v].last >= 0 &&
          !is_output(static_cast<Var>(v)))
        plan_.released[lives_[v].last].push_back(static_cast<Var>(v));
    plan_.lives = std::move(lives_);
    for (std::size_t v = 0; v < plan_.lives.size(); ++v)
      if (is_output_[v]) plan_.lives[v].last = static_cast<int>(fusion_.steps.size());
    return std::move(plan_);
  }

 private:
  BufferPlan::Slot& slot(Var v) { return plan_.slots[v]; }
  std::size_t bytes(Var v) const { return fusion_.graph.aval(v).bytes(); }
  bool is_output(Var v) const { return is_output_[v]; }

  void use(Var v, int step) {
    Life& l = lives_[fusion_.storage[v]];
    if (l.first < 0) l.first = step;
    l.last = step;
  }

  void find_lives() {
    const auto storage = [&](Var v) { return fusion_.storage[v]; };
    is_output_.assign(lives_.size(), 0);
    for (Var o : fusion_.graph.outputs) is_output_[storage(o)] = 1;
    is_step_operand_.assign(lives_.size(), 0);
    for (const FusedStep& step : fusion_.steps)
      for (int equation : step.equations())
        for (Var v : fusion_.graph.equations[equation].inputs) is_step_operand_[storage(v)] = 1;
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
      const FusedStep& step = fusion_.steps[s];
      for (int equation : step.equations()) {
        const Equation& e = fusion_.graph.equations[equation];
        for (Var v : e.inputs) use(v, static_cast<int>(s));
        for (Var v : e.outputs) use(v, static_cast<int>(s));
      }
      for (Var v : step.buffers) use(v, static_cast<int>(s));
    }
  }

  // May the result w of this step be written over its operand r, which ends here?
  bool updates(const FusedStep& step, Var w, Var r) const {
    // A product's operands are read until its last row is done, long after a kernel on its rows has
    // begun to write.
    for (int equation : step.equations())
      for (Var v : fusion_.graph.equations[equation].inputs)
        if (fusion_.storage[v] == r) return false;
    int wi = -1, ri = -1;
    for (std::size_t b = 0; b < step.buffers.size(); ++b) {
      if (step.buffers[b] == w) wi = static_cast<int>(b);
      if (step.buffers[b] == r) ri = static_cast<int>(b);
    }
    return wi >= 0 && ri >= 0 && step.nest.buffers[wi].alias == ri && bytes(w) == bytes(r);
  }

  bool owned(std::size_t input) const {
    return input < owned_.inputs.size() && owned_.inputs[input];
  }

  // Results over owned inputs that end where they are written: first the input of the same place,
  // as states and parameters come back in order.
  void place_over_owned() {
    const GraphBody& g = fusion_.graph;
    for (std::size_t o = 0; o < std::min(owned_.results, g.outputs.size()); ++o) {
      const Var v = fusion_.storage[g.outputs[o]];
      if (slot(v).kind != Kind::unused || lives_[v].first < 0) continue;
      const int s = lives_[v].first;
      const FusedStep& step = fusion_.steps[s];
      if (owned(o)) place_over_input(v, s, step, o);
      if (slot(v).kind != Kind::unused) continue;
      Vec<int> inputs;  // that the step reads
      for (Var r : step.buffers)
        if (is_owned_input(r)) inputs.push_back(slot(r).index);
      std::sort(inputs.begin(), inputs.end());
      for (std::size_t k = 0; k < inputs.size() && slot(v).kind == Kind::unused; ++k)
        place_over_input(v, s, step, static_cast<std::size_t>(inputs[k]));
      if (slot(v).kind == Kind::unused) place_updates_over_input(v);
    }
  }

  // A result that updates what updates an owned input, and so on: an iteration may write its state
  // several times. All of them lie over the input.
  void place_updates_over_input(Var result) {
    Vec<Var> all;
    for (Var v = result;;) {
      all.push_back(v);
      const int s = lives_[v].first;
      if (s < 0) return;
      const FusedStep& step = fusion_.steps[s];
      const auto* const found = std::find_if(step.buffers.begin(), step.buffers.end(),
                                             [&](Var r) { return updates(step, v, r); });
      if (found == step.buffers.end()) return;
      const Var r = *found;
      if (is_owned_input(r)) {
        const BufferPlan::Slot at = slot(r);
        if (!place_over_input(v, s, step, static_cast<std::size_t>(at.index))) return;
        for (Var w : all) slot(w) = slot(v);
        return;
      }
      const bool made_before = lives_[r].first < s;
      if (slot(r).kind != Kind::unused || !made_before || !is_last_use(s, r)) return;
      v = r;
    }
  }

  bool place_over_input(Var v, int s, const FusedStep& step, std::size_t i) {
    const Var r = fusion_.graph.inputs[i];
    if (taken_[i] || is_output(r) || lives_[r].last != s || !updates(step, v, r) ||
        // of a loop or an interpreted equation, whose result may be the operand itself
        is_step_operand_[r])
      return false;
    taken_[i] = true;
    slot(v) = {Kind::input, static_cast<int>(i), 0, bytes(v)};
    return true;
  }

  // r is an owned input, rather than something that lies over it.
  bool is_owned_input(Var r) {
    const BufferPlan::Slot& s = slot(r);
    return s.kind == Kind::input && owned(static_cast<std::size_t>(s.index)) &&
           fusion_.graph.inputs[s.index] == r;
  }

  // A region writes its results one after the other, and what they are made of is still read then.
  void keep_regions_apart() {
    for (const FusedStep& step : fusion_.steps)
      for (int equation : step.equations()) {
        const Equation& e = fusion_.graph.equations[equation];
        if (e.op != Op::fused_region) continue;
        for (Var w : e.outputs)
          for (Var r : e.inputs)
            if (overlap(slot_of(w), slot_of(r)))
              fail(ErrorKind::backend, "vt: internal: a region's result lies over its operand",
                   e.where);
      }
  }
  static bool overlap(const BufferPlan::Slot& a, const BufferPlan::Slot& b) {
    const auto memory = [](const BufferPlan::Slot& s) {
      return s.kind == Kind::in_output ? Kind::output : s.kind;
    };
    const bool shared =
        memory(a) == Kind::arena ||
        ((memory(a) == Kind::input || memory(a) == Kind::output) && a.index == b.index);
    return shared && memory(a) == memory(b) && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
  }
  const BufferPlan::Slot& slot_of(Var v) { return slot(fusion_.storage[v]); }

  void hand_over() {
    const GraphBody& g = fusion_.graph;
    plan_.handed_over.resize(fusion_.steps.size());
    // Per input: the last step that reads what lies over it, or more than all where that is an
    // output.
    Vec<int> input_ends(g.inputs.size(), -1);
    for (std::size_t w = 0; w < plan_.slots.size(); ++w) {
      const BufferPlan::Slot& at = plan_.slots[w];
      if (at.kind != Kind::input) continue;
      int& end = input_ends[at.index];
      end = std::max(end, is_output_[w] ? static_cast<int>(fusion_.steps.size()) : lives_[w].last);
    }
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
      const FusedStep& step = fusion_.steps[s];
      if (step.equation < 0 || step.writes_given_memory) continue;
      const Equation& e = g.equations[step.equation];
      HashMap<Var, int> uses;  // of one memory, by the first Var that lies there
      for (Var o : e.inputs) ++uses[memory_of(o)];
      for (Var o : e.inputs) {
        const Var v = fusion_.storage[o];
        if (uses.at(memory_of(o)) != 1) continue;
        const bool carried = slot(v).kind == Kind::input && is_control(e.op) &&
                             owned(static_cast<std::size_t>(slot(v).index));
        const bool ends = slot(v).kind == Kind::produced
                              ? is_last_use(static_cast<int>(s), v)
                              : carried && input_ends[slot(v).index] <= static_cast<int>(s);
        if (ends) plan_.handed_over[s].push_back(v);
      }
    }
  }

  // The same for all that shares memory for good, or lies over the same input.
  Var memory_of(Var v) {
    const Var stored = fusion_.storage[v];
    const BufferPlan::Slot& at = slot(stored);
    return at.kind == Kind::input ? fusion_.graph.inputs[at.index] : stored;
  }
  bool is_last_use(int step, Var v) const { return lives_[v].last <= step && !is_output(v); }

  void place_results(int s) {
    const FusedStep& step = fusion_.steps[s];
    for (int equation : step.equations()) {
      const Equation& e = fusion_.graph.equations[equation];
      for (Var v : e.outputs) {
        if (step.then >= 0 && equation == step.equation) continue;  // its rows are handed on
        const bool read = e.op != Op::sort || lives_[v].last > s || is_output(v);
        if (read && slot(v).kind == Kind::unused && !(step.rows_alone && step.writes_given_memory))
          place(v, s, step);
      }
    }
    for (std::size_t b = 0; b < step.buffers.size(); ++b)
      if (step.nest.buffers[b].written && step.buffers[b] != step.handed_on &&
          slot(step.buffers[b]).kind == Kind::unused)
        place(step.buffers[b], s, step);
  }

  void place(Var v, int s, const FusedStep& step) {
    const Life life = lives_[v];
    // Over an operand of this step that ends here.
    for (Var r : step.buffers) {
      const BufferPlan::Slot& old = slot(r);
      if (is_owned_input(r) && place_over_input(v, s, step, static_cast<std::size_t>(old.index)))
        return;
      if ((old.kind != Kind::arena && old.kind != Kind::in_output) || !can_pass_on(r, s) ||
          !updates(step, v, r))
        continue;
      if (old.kind == Kind::in_output && !outlasts(old.index, life, v)) continue;
      passed_on_[r] = lies_over_[v] = 1;
      return take(v, {old.kind, old.index, old.offset, bytes(v)});
    }
    // In an output that is written later: the tightest one of the next few.
    int best = -1, looked_at = 0;
    for (int o = open_outputs_.first(); o >= 0 && looked_at < most_outputs_asked;
         o = open_outputs_.after(o), ++looked_at) {
      if (best >= 0 && bytes(output(o)) >= bytes(output(best))) continue;
      if (output_busy_until_[o] < s && outlasts(o, life, v)) best = o;
    }
    if (best >= 0) return take(v, {Kind::in_output, best, 0, bytes(v)});
    // In the scratch block, at the lowest offset that is free.
    take(v, {Kind::arena, -1, gaps_.take(rounded(v)), bytes(v)});
  }

  void take(Var v, BufferPlan::Slot at) {
    const int last = lives_[v].last;
    slot(v) = at;
    if (at.kind == Kind::in_output) output_busy_until_[at.index] = last;
    if (at.kind != Kind::arena) return;
    plan_.arena_bytes = std::max(plan_.arena_bytes, at.offset + rounded(v));
    ending_[last].push_back(v);
  }

  // What ended before step s leaves its memory; outputs written before it hold nothing else any
  // more.
  void begin_step(int s) {
    if (s == 0) return;
    for (Var v : ending_[static_cast<std::size_t>(s) - 1])
      if (!passed_on_[v]) gaps_.give(slot(v).offset, rounded(v));
    for (int o : written_[static_cast<std::size_t>(s) - 1]) open_outputs_.remove(o);
  }

  void begin_placing() {
    const std::size_t steps = fusion_.steps.size(), outputs = fusion_.graph.outputs.size();
    ending_.resize(steps);
    written_.resize(steps);
    passed_on_.assign(lives_.size(), 0);
    lies_over_.assign(lives_.size(), 0);
    output_busy_until_.assign(outputs, -1);
    open_outputs_.resize(outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      const auto number = static_cast<int>(o);
      const BufferPlan::Slot& at = slot(output(number));
      const int written = lives_[output(number)].first;
      if (at.kind != Kind::output || at.index != number || written < 0) continue;
      open_outputs_.add(number);
      written_[written].push_back(number);
    }
  }

  // r ends at step s, and no other value has the same memory at that step.
  bool can_pass_on(Var r, int s) const {
    const Life& life = lives_[r];
    return life.last == s && !passed_on_[r] && !(life.first == s && lies_over_[r]);
  }

  // Can v lie in the memory of output o until that is written?
  bool outlasts(int o, const Life& life, Var v) const {
    const Var w = output(o);
    const int written = lives_[w].first;
    if (bytes(w) < bytes(v) || life.last > written) return false;
    if (!within_results_.empty() && !within_results_[v]) return false;
    return life.last < written || updates(fusion_.steps[written], w, v);
  }

  Var output(int o) const { return fusion_.storage[fusion_.graph.outputs[o]]; }
  std::size_t rounded(Var v) const { return (bytes(v) + 63) / 64 * 64; }

  static constexpr int most_outputs_asked = 64;

  const Fusion& fusion_;
  const OwnedInputs& owned_;
  const std::span<const bool> within_results_;
  BufferPlan plan_;
  Vec<Life> lives_;
  Vec<bool> taken_;                        // per owned input: a result lies over it
  Vec<char> is_output_, is_step_operand_;  // per Var that stores
  // per Var: a later one has its memory; it has an earlier one's
  Vec<char> passed_on_, lies_over_;
  Vec<Vec<Var>> ending_;   // per step: what lies in the scratch block and ends there
  Vec<Vec<int>> written_;  // per step: outputs that it writes first
  // per output: the last step of what lies in it before it is written
  Vec<int> output_busy_until_;
  OpenOutputs open_outputs_;
  Gaps gaps_;
};

}  // namespace buffer_planning

void prefer_owned(Fusion& fusion, const OwnedInputs& owned) {
  if (owned.inputs.empty()) return;
  const GraphBody& g = fusion.graph;
  const auto storage = [&](Var v) { return fusion.storage[v]; };
  // Per Var: the owned input that it is, and the last step that reads it.
  Vec<int> input_of(g.avals.size(), -1), last(g.avals.size(), -1);
  for (std::size_t i = 0; i < owned.inputs.size() && i < g.inputs.size(); ++i)
    if (owned.inputs[i]) input_of[g.inputs[i]] = static_cast<int>(i);
  for (Var o : g.outputs) input_of[storage(o)] = -1;
  for (std::size_t k = 0; k < fusion.steps.size(); ++k) {
    const FusedStep& step = fusion.steps[k];
    for (Var v : step.buffers) last[v] = static_cast<int>(k);
    for (int equation : step.equations())  // read as long as its rows are made
      for (Var v : g.equations[equation].inputs) input_of[storage(v)] = -1;
  }
  for (std::size_t k = 0; k < fusion.steps.size(); ++k) {
    FusedStep& step = fusion.steps[k];
    const std::size_t count = std::min(step.nest.buffers.size(), step.buffers.size());
    Vec<int> wanted(count, -1);
    Vec<char> taken(count, 0);
    bool any = false;
    // The input in the result's own place first: states and parameters come back in order.
    for (const bool own_place : {true, false})
      for (std::size_t w = 0; w < count; ++w) {
        if (!step.nest.buffers[w].written || step.nest.buffers[w].local > 0 || wanted[w] >= 0)
          continue;
        for (std::size_t r = 0; r < count && wanted[w] < 0; ++r) {
          const Var v = step.buffers[r];
          const int input = step.nest.buffers[r].local > 0 ? -1 : input_of[v];
          if (input < 0 || taken[r] || last[v] != static_cast<int>(k) ||
              g.aval(v).bytes() != g.aval(step.buffers[w]).bytes())
            continue;
          const std::size_t place = input;
          if (own_place &&
              (place >= g.outputs.size() || storage(g.outputs[place]) != step.buffers[w]))
            continue;
          wanted[w] = static_cast<int>(r);
          taken[r] = 1;
          any = true;
        }
      }
    if (any) find_updates_in_place(step.nest, {wanted.begin(), wanted.size()});
  }
}

BufferPlan plan_buffers(const Fusion& fusion, const OwnedInputs& owned,
                        std::span<const bool> within_results) {
  return buffer_planning::Planner(fusion, owned, within_results).run();
}

Memory planned_memory(const Fusion& fusion, const BufferPlan& plan) {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion.graph;
  const int steps = static_cast<int>(fusion.steps.size());
  Vec<const Equation*> makers(g.avals.size(), nullptr);  // none of inputs
  for (const Equation& e : g.equations)
    for (Var v : e.outputs) makers[v] = &e;
  Memory m;
  for (std::size_t v = 0; v < g.avals.size(); ++v) {
    const BufferPlan::Slot& s = plan.slots[v];
    const BufferPlan::Life life = plan.lives[v];
    const Equation* const maker = makers[v];
    const std::uint64_t bytes = s.bytes ? s.bytes : g.avals[v].bytes();
    if (s.kind == Kind::unused || bytes == 0 || (s.kind != Kind::input && life.last < 0)) continue;
    const bool over_input = s.kind == Kind::input && maker;
    constexpr const char* places[] = {"",        "input",           "constant", "result",
                                      "scratch", "within a result", "own"};
    if (s.kind == Kind::input && !over_input) m.inputs += bytes;
    if (s.kind == Kind::constant) m.constants += bytes;
    if (s.kind == Kind::output || (s.kind == Kind::produced && life.last == steps))
      m.results += bytes;
    m.values.push_back({(maker ? std::string(name_of(maker->op)) + " " : "") + g.avals[v].str(),
                        over_input ? "over an input" : places[static_cast<int>(s.kind)], bytes,
                        life.first < 0 ? steps : life.first, std::max(life.last, 0),
                        maker ? maker->where : CallSite{}});
  }
  return m;
}

// Merges runs of equal lengths: a standard sort of these would be twenty functions more in the one
// unit.
void largest_first(std::vector<Memory::Value>& values) {
  const std::size_t n = values.size();
  Vec<std::size_t> from(n), to(n);
  for (std::size_t i = 0; i < n; ++i) from[i] = i;
  for (std::size_t run = 1; run < n; run *= 2) {
    for (std::size_t begin = 0, at = 0; begin < n; begin += 2 * run) {
      const std::size_t half = std::min(begin + run, n), end = std::min(begin + 2 * run, n);
      for (std::size_t a = begin, b = half; at < end; ++at)
        to[at] = b == end || (a < half && values[from[a]].bytes >= values[from[b]].bytes)
                     ? from[a++]
                     : from[b++];
    }
    std::swap(from, to);
  }
  std::vector<Memory::Value> sorted;
  for (std::size_t i : from) sorted.push_back(std::move(values[i]));
  values = std::move(sorted);
}

CallSite line_of_largest(const GraphBody& g) {
  CallSite line = thread_state().where;
  double most = -1;  // sizes that no memory holds must not overflow
  for (const Equation& e : g.equations)
    for (Var v : e.outputs) {
      double bytes = static_cast<double>(size_of(g.aval(v).dtype));
      for (std::int64_t extent : g.aval(v).shape) bytes *= static_cast<double>(extent);
      if (!e.where.file || bytes <= most) continue;
      most = bytes;
      line = e.where;
    }
  return line;
}

}  // namespace vt::detail
