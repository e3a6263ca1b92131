// Liveness and placement of intermediate results: in the memory of outputs not yet written, over operands that end here, or in
// one scratch block.
#include "plan.hpp"

#include <algorithm>

#include <vt/small_vec.hpp>

#include "../trace/node.hpp"
#include "../trace/thread_state.hpp"
#include "nest_transform.hpp"

namespace vt::detail {

namespace buffer_planning {

using Kind = BufferPlan::Slot::Kind;

struct Life {
  int first = -1, last = -1;  // steps
  bool overlaps(const Life& o) const { return first <= o.last && o.first <= last; }
};

class Planner {
 public:
  Planner(const Fusion& fusion, const OwnedInputs& owned) : fusion_(fusion), owned_(owned), lives_(fusion.graph.avals.size()) {
    plan_.slots.resize(fusion.graph.avals.size());
  }

  BufferPlan run() {
    taken_.assign(owned_.inputs.size(), false);
    const GraphBody& g = fusion_.graph;
    for (std::size_t i = 0; i < g.inputs.size(); ++i) slot(g.inputs[i]) = {Kind::input, static_cast<int>(i), 0, bytes(g.inputs[i])};
    for (std::size_t i = 0; i < g.equations.size(); ++i)
      if (g.equations[i].op == Op::constant)
        slot(g.equations[i].outputs[0]) = {Kind::constant, static_cast<int>(i), 0, bytes(g.equations[i].outputs[0])};
    find_lives();
    for (const FusedStep& step : fusion_.steps)
      if (step.equation >= 0 && !step.writes_given_memory)
        for (Var v : g.equations[static_cast<std::size_t>(step.equation)].outputs) slot(v) = {Kind::produced, -1, 0, bytes(v)};
    place_over_owned();
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const Var v = fusion_.storage[static_cast<std::size_t>(g.outputs[i])];
      if (slot(v).kind == Kind::unused) slot(v) = {Kind::output, static_cast<int>(i), 0, bytes(v)};
    }
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) place_results(static_cast<int>(s));
    hand_over();
    plan_.released.resize(fusion_.steps.size());
    for (std::size_t v = 0; v < lives_.size(); ++v)
      if (plan_.slots[v].kind == Kind::produced && lives_[v].last >= 0 && !is_output(static_cast<Var>(v)))
        plan_.released[static_cast<std::size_t>(lives_[v].last)].push_back(static_cast<Var>(v));
    return std::move(plan_);
  }

 private:
  BufferPlan::Slot& slot(Var v) { return plan_.slots[static_cast<std::size_t>(v)]; }
  std::size_t bytes(Var v) const { return fusion_.graph.aval(v).bytes(); }
  bool is_output(Var v) const {
    for (Var o : fusion_.graph.outputs)
      if (fusion_.storage[static_cast<std::size_t>(o)] == v) return true;
    return false;
  }

  void use(Var v, int step) {
    Life& l = lives_[static_cast<std::size_t>(fusion_.storage[static_cast<std::size_t>(v)])];
    if (l.first < 0) l.first = step;
    l.last = step;
  }

  void find_lives() {
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
      const FusedStep& step = fusion_.steps[s];
      for (int equation : step.equations()) {
        const Equation& e = fusion_.graph.equations[static_cast<std::size_t>(equation)];
        for (Var v : e.inputs) use(v, static_cast<int>(s));
        for (Var v : e.outputs) use(v, static_cast<int>(s));
      }
      for (Var v : step.buffers) use(v, static_cast<int>(s));
    }
  }

  // May the result w of this step be written over its operand r, which ends here?
  bool updates(const FusedStep& step, Var w, Var r) const {
    // A product's operands are read until its last row is done, long after a kernel on its rows has begun to write.
    for (int equation : step.equations())
      for (Var v : fusion_.graph.equations[static_cast<std::size_t>(equation)].inputs)
        if (fusion_.storage[static_cast<std::size_t>(v)] == r) return false;
    int wi = -1, ri = -1;
    for (std::size_t b = 0; b < step.buffers.size(); ++b) {
      if (step.buffers[b] == w) wi = static_cast<int>(b);
      if (step.buffers[b] == r) ri = static_cast<int>(b);
    }
    return wi >= 0 && ri >= 0 && step.nest.buffers[static_cast<std::size_t>(wi)].alias == ri && bytes(w) == bytes(r);
  }

  bool owned(std::size_t input) const { return input < owned_.inputs.size() && owned_.inputs[input]; }

  // Results over owned inputs that end where they are written: first the input of the same place, as states and parameters come back in order.
  void place_over_owned() {
    const GraphBody& g = fusion_.graph;
    for (std::size_t o = 0; o < std::min(owned_.results, g.outputs.size()); ++o) {
      const Var v = fusion_.storage[static_cast<std::size_t>(g.outputs[o])];
      if (slot(v).kind != Kind::unused || lives_[static_cast<std::size_t>(v)].first < 0) continue;
      const int s = lives_[static_cast<std::size_t>(v)].first;
      const FusedStep& step = fusion_.steps[static_cast<std::size_t>(s)];
      if (owned(o)) place_over_input(v, s, step, o);
      for (std::size_t i = 0; i < owned_.inputs.size() && slot(v).kind == Kind::unused; ++i)
        if (owned(i)) place_over_input(v, s, step, i);
    }
  }

  bool place_over_input(Var v, int s, const FusedStep& step, std::size_t i) {
    const Var r = fusion_.graph.inputs[i];
    if (taken_[i] || is_output(r) || lives_[static_cast<std::size_t>(r)].last != s || !updates(step, v, r) || is_step_operand(r)) return false;
    taken_[i] = true;
    slot(v) = {Kind::input, static_cast<int>(i), 0, bytes(v)};
    return true;
  }

  // Of a loop or an interpreted equation, whose result may be the operand itself.
  bool is_step_operand(Var r) const {
    for (const FusedStep& step : fusion_.steps)
      for (int equation : step.equations())
        for (Var v : fusion_.graph.equations[static_cast<std::size_t>(equation)].inputs)
          if (fusion_.storage[static_cast<std::size_t>(v)] == r) return true;
    return false;
  }

  void hand_over() {
    const GraphBody& g = fusion_.graph;
    plan_.handed_over.resize(fusion_.steps.size());
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
      const FusedStep& step = fusion_.steps[s];
      if (step.equation < 0 || step.writes_given_memory) continue;
      const Equation& e = g.equations[static_cast<std::size_t>(step.equation)];
      for (Var o : e.inputs) {
        const Var v = fusion_.storage[static_cast<std::size_t>(o)];
        if (!is_only_operand(e, v)) continue;
        const bool carried = slot(v).kind == Kind::input && is_control(e.op) &&
                             owned(static_cast<std::size_t>(slot(v).index));
        const bool ends = slot(v).kind == Kind::produced ? is_last_use(static_cast<int>(s), v)
                                                         : carried && input_ends(static_cast<int>(s), v);
        if (ends) plan_.handed_over[s].push_back(v);
      }
    }
  }

  // Do `v` and `w` lie in the same memory for good, or over the same input?
  bool lie_together(Var v, Var w) const {
    const BufferPlan::Slot &a = plan_.slots[static_cast<std::size_t>(v)],
                           &b = plan_.slots[static_cast<std::size_t>(w)];
    return v == w || (a.kind == Kind::input && b.kind == Kind::input && a.index == b.index);
  }
  bool is_only_operand(const Equation& e, Var v) const {
    int uses = 0;
    for (Var o : e.inputs) uses += lie_together(fusion_.storage[static_cast<std::size_t>(o)], v);
    return uses == 1;
  }
  bool is_last_use(int step, Var v) const {
    return lives_[static_cast<std::size_t>(v)].last <= step && !is_output(v);
  }
  // The same for all that lies over the input where `v` lies.
  bool input_ends(int step, Var v) const {
    for (std::size_t w = 0; w < plan_.slots.size(); ++w)
      if (lie_together(static_cast<Var>(w), v) && !is_last_use(step, static_cast<Var>(w))) return false;
    return true;
  }

  void place_results(int s) {
    const FusedStep& step = fusion_.steps[static_cast<std::size_t>(s)];
    for (int equation : step.equations()) {
      const Equation& e = fusion_.graph.equations[static_cast<std::size_t>(equation)];
      for (Var v : e.outputs) {
        if (step.then >= 0 && equation == step.equation) continue;  // its rows are handed on
        const bool read = e.op != Op::sort || lives_[static_cast<std::size_t>(v)].last > s || is_output(v);
        if (read && slot(v).kind == Kind::unused && !(step.rows_alone && step.writes_given_memory)) place(v, s, step);
      }
    }
    for (std::size_t b = 0; b < step.buffers.size(); ++b)
      if (step.nest.buffers[b].written && step.buffers[b] != step.handed_on && slot(step.buffers[b]).kind == Kind::unused)
        place(step.buffers[b], s, step);
  }

  void place(Var v, int s, const FusedStep& step) {
    const Life life = lives_[static_cast<std::size_t>(v)];
    const std::size_t size = (bytes(v) + 63) / 64 * 64;
    // Over an operand of this step that ends here.
    for (Var r : step.buffers) {
      const BufferPlan::Slot& old = slot(r);
      if (old.kind == Kind::input && owned(static_cast<std::size_t>(old.index)) && fusion_.graph.inputs[static_cast<std::size_t>(old.index)] == r &&
          place_over_input(v, s, step, static_cast<std::size_t>(old.index)))
        return;
      if ((old.kind != Kind::arena && old.kind != Kind::in_output) || lives_[static_cast<std::size_t>(r)].last != s || !updates(step, v, r)) continue;
      if (old.kind == Kind::in_output && !free_until(old.index, life, v, r)) continue;
      if (old.kind == Kind::arena && !free_in_arena(old.offset, size, life, r)) continue;
      slot(v) = {old.kind, old.index, old.offset, bytes(v)};
      placed_.push_back(v);
      return;
    }
    // In an output that is written later: the tightest one.
    int best = -1;
    for (std::size_t o = 0; o < fusion_.graph.outputs.size(); ++o) {
      const Var w = fusion_.storage[static_cast<std::size_t>(fusion_.graph.outputs[o])];
      if (slot(w).kind != Kind::output || slot(w).index != static_cast<int>(o) || bytes(w) < bytes(v)) continue;
      if (best >= 0 && bytes(w) >= bytes(fusion_.storage[static_cast<std::size_t>(fusion_.graph.outputs[static_cast<std::size_t>(best)])])) continue;
      if (free_until(static_cast<int>(o), life, v, -1)) best = static_cast<int>(o);
    }
    if (best >= 0) {
      slot(v) = {Kind::in_output, best, 0, bytes(v)};
      placed_.push_back(v);
      return;
    }
    // In the scratch block, at the lowest offset that is free all the time.
    Vec<const BufferPlan::Slot*> busy;
    for (Var other : placed_)
      if (slot(other).kind == Kind::arena && lives_[static_cast<std::size_t>(other)].overlaps(life)) busy.push_back(&slot(other));
    std::sort(busy.begin(), busy.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
    std::size_t offset = 0;
    for (const BufferPlan::Slot* b : busy) {
      if (offset + size <= b->offset) break;
      offset = std::max(offset, (b->offset + b->bytes + 63) / 64 * 64);
    }
    slot(v) = {Kind::arena, -1, offset, bytes(v)};
    plan_.arena_bytes = std::max(plan_.arena_bytes, offset + size);
    placed_.push_back(v);
  }

  bool free_in_arena(std::size_t offset, std::size_t size, const Life& life, Var except) {
    for (Var other : placed_) {
      const BufferPlan::Slot& s = slot(other);
      if (other == except || s.kind != Kind::arena || !lives_[static_cast<std::size_t>(other)].overlaps(life)) continue;
      if (offset < s.offset + s.bytes && s.offset < offset + size) return false;
    }
    return true;
  }

  // Is output `index`'s memory unused during `life` of v, so that v can lie there?
  bool free_until(int index, const Life& life, Var v, Var except) {
    const Var w = fusion_.storage[static_cast<std::size_t>(fusion_.graph.outputs[static_cast<std::size_t>(index)])];
    const int written = lives_[static_cast<std::size_t>(w)].first;
    if (written < 0 || bytes(w) < bytes(v)) return false;
    if (life.last > written) return false;
    if (life.last == written && !updates(fusion_.steps[static_cast<std::size_t>(written)], w, v)) return false;
    for (Var other : placed_)
      if (other != except && slot(other).kind == Kind::in_output && slot(other).index == index &&
          lives_[static_cast<std::size_t>(other)].overlaps(life))
        return false;
    return true;
  }

  const Fusion& fusion_;
  const OwnedInputs& owned_;
  BufferPlan plan_;
  Vec<Life> lives_;
  Vec<Var> placed_;
  Vec<bool> taken_;  // per owned input: a result lies over it
};

}  // namespace buffer_planning

void prefer_owned(Fusion& fusion, const OwnedInputs& owned) {
  if (owned.inputs.empty()) return;
  const GraphBody& g = fusion.graph;
  const auto storage = [&](Var v) { return fusion.storage[static_cast<std::size_t>(v)]; };
  // Per Var: the owned input that it is, and the last step that reads it.
  Vec<int> input_of(g.avals.size(), -1), last(g.avals.size(), -1);
  for (std::size_t i = 0; i < owned.inputs.size() && i < g.inputs.size(); ++i)
    if (owned.inputs[i]) input_of[static_cast<std::size_t>(g.inputs[i])] = static_cast<int>(i);
  for (Var o : g.outputs) input_of[static_cast<std::size_t>(storage(o))] = -1;
  for (std::size_t k = 0; k < fusion.steps.size(); ++k) {
    const FusedStep& step = fusion.steps[k];
    for (Var v : step.buffers) last[static_cast<std::size_t>(v)] = static_cast<int>(k);
    for (int equation : step.equations())  // read as long as its rows are made
      for (Var v : g.equations[static_cast<std::size_t>(equation)].inputs) input_of[static_cast<std::size_t>(storage(v))] = -1;
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
        if (!step.nest.buffers[w].written || step.nest.buffers[w].local > 0 || wanted[w] >= 0) continue;
        for (std::size_t r = 0; r < count && wanted[w] < 0; ++r) {
          const Var v = step.buffers[r];
          const int input = step.nest.buffers[r].local > 0 ? -1 : input_of[static_cast<std::size_t>(v)];
          if (input < 0 || taken[r] || last[static_cast<std::size_t>(v)] != static_cast<int>(k) ||
              g.aval(v).bytes() != g.aval(step.buffers[w]).bytes())
            continue;
          const auto place = static_cast<std::size_t>(input);
          if (own_place && (place >= g.outputs.size() || storage(g.outputs[place]) != step.buffers[w])) continue;
          wanted[w] = static_cast<int>(r);
          taken[r] = 1;
          any = true;
        }
      }
    if (any) find_updates_in_place(step.nest, {wanted.begin(), wanted.size()});
  }
}

BufferPlan plan_buffers(const Fusion& fusion, const OwnedInputs& owned) { return buffer_planning::Planner(fusion, owned).run(); }

Where line_of_largest(const GraphBody& g) {
  Where line = thread_state().where;
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
