// Where the values of a flow graph lie: which of them blocks hand on, and which a call must save;
// and the bodies of the blocks.
#include <memory>

#include "../../trace/ir/lane_work.hpp"
#include "flow_draft.hpp"

namespace vt::detail {

namespace flow_storage {

using Exit = FlowGraph::Exit;
using Storage = FlowGraph::Storage;
using Flags = Vec<bool>;

constexpr std::size_t alignment = 16;

class Finisher {
 public:
  explicit Finisher(FlowDraft draft) : d_(std::move(draft)) {}
  FlowGraph run() {
    find_live();
    find_saved();
    share_memory();
    find_updates();
    slot_of_.assign(d_.values.size(), -1);
    for (const FlowDraft::Function& f : d_.functions) {
      FlowGraph::Function made;
      made.name = f.name;
      made.recursion = f.recursion;
      made.entry = f.entry;
      g_.functions.push_back(std::move(made));
    }
    for (int b = 0; b < static_cast<int>(d_.blocks.size()); ++b) make_block(b);
    for (std::size_t f = 0; f < d_.functions.size(); ++f) {
      for (int v : d_.functions[f].parameters)
        g_.functions[f].parameters.push_back(v < 0 ? -1 : slot_of_[memory(v)]);
      for (int v : d_.functions[f].results) g_.functions[f].results.push_back(slot_of_[memory(v)]);
    }
    for (int v : d_.functions[0].results) g_.results.push_back(slot(v));
    lay_out_frames();
    keep_of_prologue();
    skip_empty_blocks();
    return std::move(g_);
  }

 private:
  bool is_kept(int v) const { return !d_.values[v].shared && d_.values[v].constant < 0; }
  const FlowDraft::Function& function_of(const FlowDraft::Block& b) const {
    return d_.functions[b.function];
  }

  // --- liveness ----------------------------------------------------------------------------------

  /// What is alive behind a block. Results of a function are if some caller wants them.
  Flags live_behind(const FlowDraft::Block& b) const {
    Flags live(d_.values.size());
    const auto add = [&](int block) {
      for (std::size_t v = 0; v < live.size(); ++v)
        if (live_[block][v]) live[v] = true;
    };
    if (b.exit == Exit::leave) {
      for (int v : function_of(b).results) live[v] = wanted_[v];
      return live;
    }
    if (b.tail) {
      add(d_.functions[b.callee].entry);
      return live;
    }
    for (int t : b.targets) add(t);
    if (b.exit == Exit::call)
      for (int v : d_.functions[b.callee].results) live[v] = false;
    return live;
  }
  bool wants_argument(const FlowDraft::Block& b, int parameter) const {
    return live_[d_.functions[b.callee].entry][parameter];
  }

  /// Which values a block needs from before, and which of its equations and loads, for what is
  /// alive behind.
  struct Needs {
    Flags before, equations, loads;
  };
  Needs needs_of(const FlowDraft::Block& b) const {
    Flags need = live_behind(b);
    Needs n;
    n.equations.resize(b.equations.size());
    Flags sources(need.size());
    for (const FlowDraft::Copy& c : b.copies)
      if (need[c.to]) sources[c.from] = true;
    for (const FlowDraft::Copy& c : b.arguments)
      if (wants_argument(b, c.to)) sources[c.from] = true;
    for (const FlowDraft::Store& s : b.stores)
      if (need[s.array]) sources[s.value] = sources[s.index] = true;
    for (const FlowDraft::Copy& c : b.copies) need[c.to] = false;
    if (b.tail)
      for (const FlowDraft::Copy& c : b.arguments) need[c.to] = false;
    for (std::size_t v = 0; v < need.size(); ++v) need[v] = need[v] || sources[v];
    if (b.decides >= 0) need[b.decides] = true;
    for (std::size_t k = b.equations.size(); k-- > 0;) {
      const Equation& e = b.equations[k];
      if (!any_of(e.outputs, [&](Var v) { return need[v]; })) continue;
      n.equations[k] = true;
      for (Var v : e.outputs) need[v] = false;
      for (Var v : e.inputs) need[v] = true;
      for (const FlowDraft::Update& u : b.updates)
        if (u.equation == static_cast<int>(k)) need[u.positions] = true;
    }
    for (const FlowDraft::Load& l : b.loads) {
      n.loads.push_back(need[l.value]);
      if (!need[l.value]) continue;
      need[l.value] = false;
      need[l.array] = true;
      if (l.index >= 0) need[l.index] = true;
    }
    n.before = std::move(need);
    return n;
  }
  /// Are there results of what the block calls that nobody wanted yet?
  bool want_results(const FlowDraft::Block& b) {
    if (b.exit != Exit::call || b.tail) return false;
    bool grew = false;
    for (int v : d_.functions[b.callee].results)
      if (!wanted_[v] && live_[b.targets[0]][v]) grew = wanted_[v] = true;
    return grew;
  }
  void find_live() {
    live_.assign(d_.blocks.size(), Flags(d_.values.size()));
    wanted_.resize(d_.values.size());
    for (int v : d_.functions[0].results) wanted_[v] = true;
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t b = d_.blocks.size(); b-- > 0;) {
        grew = want_results(d_.blocks[b]) || grew;
        Flags before = needs_of(d_.blocks[b]).before;
        for (std::size_t v = 0; v < before.size(); ++v)
          if (!is_kept(static_cast<int>(v))) before[v] = false;
        if (before == live_[b]) continue;
        live_[b] = std::move(before);
        grew = true;
      }
    }
  }

  // --- storage -----------------------------------------------------------------------------------

  void find_saved() {
    const std::size_t n = d_.functions.size();
    Vec<Flags> reaches(n, Flags(n));
    for (const FlowDraft::Block& b : d_.blocks)
      if (b.exit == Exit::call) reaches[b.function][b.callee] = true;
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
    saved_.resize(d_.values.size());
    for (const FlowDraft::Block& b : d_.blocks) {
      if (b.exit != Exit::call || b.tail) continue;
      const bool comes_back = b.callee == b.function || reaches[b.callee][b.function];
      if (!comes_back) continue;
      const Flags live = live_behind(b);
      for (std::size_t v = 0; v < live.size(); ++v)
        if (live[v] && d_.values[v].function == b.function) saved_[v] = true;
    }
    for (std::size_t f = 0; f < n; ++f)
      for (int p : d_.functions[f].parameters)
        if (p >= 0 && stays_the_same(static_cast<int>(f), p, reaches)) saved_[p] = false;
  }
  /// Do all calls of the function from inside of it hand on the parameter as it is?
  bool stays_the_same(int function, int parameter, const Vec<Flags>& reaches) const {
    return !any_of(d_.blocks, [&](const FlowDraft::Block& b) {
      return b.exit == Exit::call && b.callee == function && reaches[function][b.function] &&
             any_of(b.arguments, [&](const FlowDraft::Copy& c) {
               return c.to == parameter && c.from != parameter;
             });
    });
  }

  // --- large arrays that lie in one place --------------------------------------------------------

  /// Values that have the memory of this one: those that blocks hand it on as, or update it to,
  /// which are never alive together.
  int memory(int v) const {
    while (memory_[v] != v) v = memory_[v];
    return v;
  }
  bool is_state(int v) const { return is_kept(v) && d_.values[v].operand < 0 && !saved_[v]; }
  void share_memory() {
    for (std::size_t v = 0; v < d_.values.size(); ++v) memory_.push_back(static_cast<int>(v));
    Vec<std::pair<int, int>> wanted;
    const auto want = [&](int to, int from) {
      const FlowDraft::Value &a = d_.values[to], &b = d_.values[from];
      if (is_state(to) && is_state(from) && a.aval == b.aval && a.function == b.function)
        wanted.push_back({to, from});
    };
    bool updates = false;
    for (const FlowDraft::Block& b : d_.blocks)
      for (const FlowDraft::Update& u : b.updates) {
        const Equation& e = b.equations[u.equation];
        want(e.outputs[0], e.inputs[0]);
        updates = true;
      }
    if (!updates) return;
    // Only what updates are made of: all else is small, or written as a whole.
    for (bool grew = true; grew;) {
      grew = false;
      for (const FlowDraft::Block& b : d_.blocks)
        for (const FlowDraft::Copy& c : b.copies) {
          const auto is_part = [&](int v) {
            return any_of(wanted, [&](const auto& w) { return w.first == v || w.second == v; });
          };
          const std::size_t before = wanted.size();
          const bool known =
              any_of(wanted, [&](const auto& w) { return w.first == c.to && w.second == c.from; });
          if (!known && (is_part(c.to) || is_part(c.from))) want(c.to, c.from);
          grew = grew || wanted.size() > before;
        }
    }
    Vec<Flags> alive = live_;
    for (const FlowDraft::Block& b : d_.blocks) alive.push_back(live_behind(b));
    for (const auto& [to, from] : wanted)
      if (memory(to) != memory(from) && !are_alive_together(memory(to), memory(from), alive))
        memory_[memory(to)] = memory(from);
  }
  /// Is there a time at which a value of the one memory and one of the other are both wanted?
  bool are_alive_together(int a, int b, const Vec<Flags>& alive) const {
    return any_of(alive, [&](const Flags& live) {
      bool of_a = false, of_b = false;
      for (std::size_t v = 0; v < live.size(); ++v) {
        if (!live[v]) continue;
        of_a = of_a || memory(static_cast<int>(v)) == a;
        of_b = of_b || memory(static_cast<int>(v)) == b;
      }
      return of_a && of_b;
    });
  }

  /// Which updates write into the memory of what they update: those of whose results nothing in
  /// the block needs more than that they lie there at its end.
  void find_updates() {
    for (const FlowDraft::Block& b : d_.blocks) {
      Flags in_place(b.equations.size());
      for (const FlowDraft::Update& u : b.updates) {
        const Equation& e = b.equations[u.equation];
        in_place[u.equation] = memory(e.outputs[0]) == memory(e.inputs[0]);
      }
      for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t k = 0; k < in_place.size(); ++k) {
          if (!in_place[k] || stays_in_memory(b, static_cast<int>(k), in_place)) continue;
          in_place[k] = false;
          changed = true;
        }
      }
      in_place_.push_back(std::move(in_place));
    }
  }
  bool stays_in_memory(const FlowDraft::Block& b, int equation, const Flags& in_place) const {
    const Equation& e = b.equations[equation];
    const int result = e.outputs[0], array = e.inputs[0];
    const auto is_result = [&](Var v) { return v == result; };
    if (b.decides == result) return false;
    for (std::size_t k = 0; k < b.equations.size(); ++k) {
      const Equation& other = b.equations[k];
      // What the array is made of must not be computed here, unless it lies there as well.
      if (!in_place[k] && any_of(other.outputs, [array](Var v) { return v == array; }))
        return false;
      const bool updates = in_place[k] && other.inputs[0] == result;
      const auto uses = count_if(other.inputs, is_result);
      if (uses > (updates ? 1 : 0)) return false;
    }
    if (any_of(b.loads, [&](const FlowDraft::Load& l) { return l.value == array; })) return false;
    const auto moves = [&](const FlowDraft::Copy& c) {
      return c.from == result && memory(c.to) != memory(result);
    };
    return none_of(b.copies, moves) && none_of(b.arguments, moves) &&
           none_of(b.stores, [&](const FlowDraft::Store& s) { return s.value == result; });
  }

  int slot(int value_of_memory) {
    const int v = memory(value_of_memory);
    int& known = slot_of_[v];
    if (known >= 0) return known;
    const FlowDraft::Value& value = d_.values[v];
    FlowGraph::Slot s;
    s.aval = value.aval;
    s.function = value.function;
    s.operand = value.operand;
    s.storage = value.shared         ? Storage::shared
                : value.operand >= 0 ? Storage::argument
                : saved_[v]          ? Storage::saved
                                     : Storage::state;
    known = static_cast<int>(g_.slots.size());
    g_.slots.push_back(std::move(s));
    return known;
  }
  void lay_out_frames() {
    for (FlowGraph::Slot& s : g_.slots) {
      if (s.storage != Storage::saved) continue;
      std::size_t& bytes = g_.functions[s.function].frame_bytes;
      s.offset = bytes;
      bytes += (s.aval.bytes() + alignment - 1) / alignment * alignment;
    }
  }

  // --- bodies ------------------------------------------------------------------------------------

  /// The parts of the block that is being made.
  struct Making {
    FlowGraph::Block block;
    GraphBody body;
    Vec<Var> var;       ///< per value; −1: not in the body
    Vec<int> read_of;   ///< per value: a load's
    Vec<int> input_of;  ///< per read: input of the body; −1: none yet
  };

  FlowGraph::Place place(int array, int index, std::size_t bytes, bool elements = false) {
    return {slot(array), index < 0 ? -1 : slot(index), bytes, elements};
  }
  int read(Making& m, const FlowGraph::Place& from) {
    for (std::size_t i = 0; i < m.block.reads.size(); ++i)
      if (m.block.reads[i].slot == from.slot && m.block.reads[i].index == from.index)
        return static_cast<int>(i);
    m.block.reads.push_back(from);
    m.input_of.push_back(-1);
    return static_cast<int>(m.block.reads.size()) - 1;
  }
  int read(Making& m, int v) {
    if (m.read_of[v] < 0) m.read_of[v] = read(m, place(v, -1, d_.values[v].aval.bytes()));
    return m.read_of[v];
  }
  Var in_body(Making& m, int v) {
    Var& known = m.var[v];
    if (known >= 0) return known;
    const FlowDraft::Value& value = d_.values[v];
    if (value.constant >= 0) {
      Equation e = d_.constants[value.constant];
      known = m.body.fresh(value.aval);
      e.outputs.clear();
      e.outputs.push_back(known);
      m.body.equations.push_back(std::move(e));
      return known;
    }
    int& input = m.input_of[read(m, v)];
    if (input < 0) {
      input = m.body.fresh(value.aval);
      m.body.inputs.push_back(input);
    }
    return known = input;
  }
  FlowGraph::Source source(Making& m, int v) {
    FlowGraph::Source s;
    if (m.var[v] < 0 && d_.values[v].constant < 0) {
      s.read = read(m, v);
      return s;
    }
    const Var var = in_body(m, v);
    for (std::size_t i = 0; i < m.input_of.size(); ++i)
      if (m.input_of[i] == var) {
        s.read = static_cast<int>(i);
        return s;
      }
    for (std::size_t i = 0; i < m.body.outputs.size() && s.result < 0; ++i)
      if (m.body.outputs[i] == var) s.result = static_cast<int>(i);
    if (s.result < 0) {
      s.result = static_cast<int>(m.body.outputs.size());
      m.body.outputs.push_back(var);
    }
    return s;
  }

  void make_block(int number) {
    const FlowDraft::Block& b = d_.blocks[number];
    const Needs needs = needs_of(b);
    const Flags behind = live_behind(b);
    Making m;
    m.var.assign(d_.values.size(), -1);
    m.read_of.assign(d_.values.size(), -1);
    for (std::size_t k = 0; k < b.loads.size(); ++k) {
      const FlowDraft::Load& l = b.loads[k];
      if (!needs.loads[k]) continue;
      m.read_of[l.value] =
          read(m, place(l.array, l.index, d_.values[l.value].aval.bytes(), l.elements));
    }
    Vec<bool> made(d_.values.size()), loaded(d_.values.size());
    for (const FlowDraft::Load& l : b.loads) loaded[l.value] = true;
    for (std::size_t k = 0; k < b.equations.size(); ++k) {
      if (!needs.equations[k]) continue;
      Equation e = b.equations[k];
      if (in_place_[number][k]) {
        const Aval& written = d_.values[e.inputs[written_operand(e.op)]].aval;
        m.block.work += static_cast<double>(written.elements());
        continue;
      }
      for (Var& v : e.inputs) v = in_body(m, v);
      for (Var& v : e.outputs) {
        made[v] = true;
        v = m.var[v] = m.body.fresh(d_.values[v].aval);
      }
      m.block.work += work_.of(m.body, e);
      m.body.equations.push_back(std::move(e));
    }
    const auto write = [&](const FlowGraph::Place& to, int from, bool callee = false) {
      // It lies there already, whole or updated.
      if (to.index < 0 && !made[from] && !loaded[from] && is_state(from) && slot(from) == to.slot)
        return;
      const FlowGraph::Source s = source(m, from);
      const bool stays = s.read >= 0 && to.index < 0 && m.block.reads[s.read].slot == to.slot &&
                         m.block.reads[s.read].index < 0 &&
                         g_.slots[to.slot].storage != Storage::saved;
      if (!stays) m.block.writes.push_back({to, s, callee, {}, false});
    };
    for (const FlowDraft::Update& u : b.updates) {
      if (!needs.equations[u.equation] || !in_place_[number][u.equation]) continue;
      const Equation& e = b.equations[u.equation];
      const int written = e.inputs[written_operand(e.op)];
      FlowGraph::Write w;
      w.to = place(e.outputs[0], -1, d_.values[written].aval.bytes(), true);
      w.from = source(m, written);
      w.positions = source(m, u.positions);
      w.adds = e.op == Op::scatter_add;
      m.block.writes.push_back(w);
    }
    // Rows go first, as their numbers may be written as well.
    for (const FlowDraft::Store& s : b.stores)
      if (behind[s.array]) write(place(s.array, s.index, d_.values[s.value].aval.bytes()), s.value);
    const auto whole = [&](int v) { return place(v, -1, d_.values[v].aval.bytes()); };
    for (const FlowDraft::Load& l : b.loads)
      if (behind[l.value]) write(whole(l.value), l.value);
    for (std::size_t v = 0; v < made.size(); ++v)
      if (made[v] && behind[v]) write(whole(static_cast<int>(v)), static_cast<int>(v));
    for (const FlowDraft::Copy& c : b.copies)
      if (behind[c.to]) write(whole(c.to), c.from);
    for (const FlowDraft::Copy& c : b.arguments)
      if (wants_argument(b, c.to)) write(whole(c.to), c.from, !b.tail);
    if (b.decides >= 0) m.block.decides = source(m, b.decides);
    for (int input : m.input_of) m.block.in_body.push_back(input >= 0);
    // Inputs in the order of the reads.
    m.body.inputs.clear();
    for (int input : m.input_of)
      if (input >= 0) m.body.inputs.push_back(input);
    m.block.function = b.function;
    m.block.exit = b.exit;
    m.block.targets = b.targets;
    m.block.callee = b.callee;
    m.block.tail = b.tail;
    m.block.meeting = b.meeting;
    m.block.where = b.where;
    m.block.called_at = b.called_at;
    if (!m.body.outputs.empty())
      m.block.body = std::make_shared<const GraphBody>(std::move(m.body));
    g_.blocks.push_back(std::move(m.block));
  }

  // --- the whole ---------------------------------------------------------------------------------

  /// Only what blocks read of what is made in front.
  void keep_of_prologue() {
    if (!d_.prologue) return;
    GraphBody all = *d_.prologue;
    const Vec<Var> results = std::move(all.outputs);
    all.outputs.clear();
    for (FlowGraph::Slot& s : g_.slots) {
      if (s.storage != Storage::shared || s.operand < d_.operands) continue;
      const Var made = results[s.operand - d_.operands];
      s.operand = d_.operands + static_cast<int>(all.outputs.size());
      all.outputs.push_back(made);
    }
    if (all.outputs.empty()) return;
    g_.prologue = std::make_shared<const GraphBody>(std::move(all));
    g_.prologue_operands = d_.prologue_operands;
  }

  void skip_empty_blocks() {
    const auto behind = [&](int b) {
      for (int steps = 0; steps < static_cast<int>(g_.blocks.size()); ++steps) {
        const FlowGraph::Block& block = g_.blocks[b];
        if (block.exit != Exit::jump || block.body || !block.writes.empty() || block.meeting)
          return b;
        b = block.targets[0];
      }
      return b;
    };
    for (FlowGraph::Block& b : g_.blocks)
      for (int& t : b.targets) t = behind(t);
    for (FlowGraph::Function& f : g_.functions) f.entry = behind(f.entry);
  }

  FlowDraft d_;
  FlowGraph g_;
  LaneWork work_;
  Vec<Flags> live_;  ///< per block: values that it needs from before
  Flags wanted_;     ///< results that some caller needs
  Flags saved_;
  Vec<int> memory_;      ///< see memory()
  Vec<Flags> in_place_;  ///< per block and equation: does it write into its operand's memory?
  Vec<int> slot_of_;
};

}  // namespace flow_storage

FlowGraph finished(FlowDraft draft) { return flow_storage::Finisher(std::move(draft)).run(); }

}  // namespace vt::detail
