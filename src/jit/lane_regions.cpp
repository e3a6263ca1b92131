// Which equations go together lane by lane, and the equation that stands for them.
#include "lane_regions.hpp"

#include <algorithm>
#include <cstring>

#include "../trace/effects.hpp"
#include "control.hpp"
#include "lane_form.hpp"
#include "register_loop.hpp"

namespace vt::detail {

namespace lane_regions {

constexpr std::int64_t fewest_lanes = 8;

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

bool has_own_lanes(const Equation& e) { return (e.op == Op::cond && e.as<CondParams>().lanes) || (e.op == Op::while_ && e.as<WhileParams>().lanes); }
/// A step of its own, if it is not in a region.
bool stands_alone(const Equation& e) { return has_own_lanes(e) || e.op == Op::dot_general; }

/// Small values that are the same for all lanes and cost nothing to make again.
bool is_number(const GraphBody& g, const Equation& e) { return e.op == Op::full && in_registers(g.aval(e.outputs[0])); }

class Former {
 public:
  explicit Former(GraphBody graph) : graph_(std::move(graph)), zero_(graph_.fresh(Aval(DType::i32, {}))), lanes_(graph_) {}

  GraphBody run() {
    maker_.assign(graph_.avals.size(), -1);
    for (std::size_t i = 0; i < graph_.equations.size(); ++i)
      for (Var v : graph_.equations[i].outputs) maker_[at(v)] = static_cast<int>(i);
    Vec<int> classes;
    for (const Equation& e : graph_.equations) {
      if (!stands_alone(e)) continue;
      const Shape& shape = graph_.aval(e.outputs[0]).shape;
      if (shape.rank() == 0 || shape[0] < fewest_lanes) continue;
      const int number = lanes_.class_of(e.outputs[0], 0);
      if (std::find(classes.begin(), classes.end(), number) == classes.end()) classes.push_back(number);
    }
    for (int number : classes) form(number);
    if (formed_) make_zero();
    return std::move(graph_);
  }

 private:
  bool fits(const Equation& e) const {
    if (e.outputs.empty() || !(is_elementwise(e.op) || stands_alone(e) || family_of(e.op) == Family::leaf || family_of(e.op) == Family::shape ||
                               family_of(e.op) == Family::reduce || e.op == Op::slice || e.op == Op::gather))
      return false;
    for (Var v : e.outputs)
      if (lanes_.axis(v) != 0 || !in_registers(lanes_.aval(v))) return false;
    for (Var v : e.inputs)
      if (lanes_.axis(v) > 0 || (!in_registers(lanes_.aval(v)) && e.op != Op::gather)) return false;
    return lanes_.equation(e).has_value();
  }

  // Equations of the class in stages: those of one stage have nothing from outside between them.
  void form(int number) {
    lanes_.choose(number);
    const std::size_t count = graph_.equations.size();
    Vec<bool> inside(count);
    Vec<int> stage(count, 0);
    int last = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Equation& e = graph_.equations[i];
      inside[i] = fits(e);
      for (Var v : e.inputs) {
        if (maker_[at(v)] < 0) continue;
        const auto m = static_cast<std::size_t>(maker_[at(v)]);
        stage[i] = std::max(stage[i], stage[m] + (inside[m] && !inside[i]));
      }
      last = std::max(last, stage[i]);
    }
    RecycledVec<Equation> ordered;
    bool found = false;
    for (int s = 0; s <= last; ++s) {
      Vec<int> members;
      for (std::size_t i = 0; i < count; ++i) {
        if (stage[i] != s) continue;
        if (inside[i]) members.push_back(static_cast<int>(i));
        else ordered.push_back(graph_.equations[i]);
      }
      if (region(members, ordered)) found = true;
      else
        for (int i : members) ordered.push_back(graph_.equations[static_cast<std::size_t>(i)]);
    }
    if (!found) return;
    formed_ = true;
    graph_.equations = std::move(ordered);
    for (std::size_t i = 0; i < graph_.equations.size(); ++i)
      for (Var v : graph_.equations[i].outputs) maker_[at(v)] = static_cast<int>(i);
    lanes_ = LaneAxes(graph_);
  }

  // Does anything depend on several products? Others gain nothing from a common loop, as those of a dense layer's derivatives.
  bool products_meet(const Vec<int>& members) const {
    constexpr int none = -1, several = -2;
    Vec<int> product(graph_.equations.size(), none);  // that an equation depends on
    for (int m : members) {
      int mine = graph_.equations[at(m)].op == Op::dot_general ? m : none;
      for (Var v : graph_.equations[at(m)].inputs) {
        const int theirs = maker_[at(v)] < 0 ? none : product[at(maker_[at(v)])];
        if (theirs == none || theirs == mine) continue;
        mine = mine == none ? theirs : several;
      }
      if (mine == several) return true;
      product[at(m)] = mine;
    }
    return false;
  }

  bool region(const Vec<int>& members, RecycledVec<Equation>& out) {
    // Worth it where several steps become one: products that meet, or a branch or loop and what is around it.
    int branches = 0;
    for (int i : members) branches += has_own_lanes(graph_.equations[static_cast<std::size_t>(i)]);
    if (!products_meet(members) && (branches == 0 || members.size() < 2)) return false;
    Vec<bool> made(graph_.avals.size()), read_outside(graph_.avals.size());
    for (int i : members)
      for (Var v : graph_.equations[static_cast<std::size_t>(i)].outputs) made[at(v)] = true;
    for (std::size_t i = 0; i < graph_.equations.size(); ++i)
      if (std::find(members.begin(), members.end(), static_cast<int>(i)) == members.end())
        for (Var v : graph_.equations[i].inputs) read_outside[at(v)] = true;
    for (Var v : graph_.outputs) read_outside[at(v)] = true;

    auto lane = new_shared<GraphBody>();
    for (std::size_t v = 0; v < graph_.avals.size(); ++v) lane->avals.push_back(lanes_.aval(static_cast<Var>(v)));
    Equation e;
    CondParams p;
    e.op = Op::cond;
    e.inputs.push_back(zero_);
    p.lanes.mapped.push_back(false);
    Vec<bool> known(graph_.avals.size());
    for (int i : members)
      for (Var v : graph_.equations[static_cast<std::size_t>(i)].inputs) {
        if (made[at(v)] || known[at(v)]) continue;
        known[at(v)] = true;
        if (maker_[at(v)] >= 0 && is_number(graph_, graph_.equations[static_cast<std::size_t>(maker_[at(v)])])) {
          Equation number = graph_.equations[static_cast<std::size_t>(maker_[at(v)])];
          if (lanes_.axis(v) >= 0) number = *lanes_.equation(number);
          lane->equations.push_back(std::move(number));
          continue;
        }
        lane->inputs.push_back(v);
        e.inputs.push_back(v);
        p.lanes.mapped.push_back(lanes_.axis(v) == 0);
      }
    for (int i : members) {
      const Equation& member = graph_.equations[static_cast<std::size_t>(i)];
      lane->equations.push_back(*lanes_.equation(member));
      for (Var v : member.outputs)
        if (read_outside[at(v)]) {
          lane->outputs.push_back(v);
          e.outputs.push_back(v);
        }
      e.where = member.where;
    }
    if (e.outputs.empty()) return false;
    p.lanes.count = graph_.aval(e.outputs[0]).shape[0];
    p.branches.push_back(std::move(lane));
    e.params = make_params(std::move(p));
    if (!register_form(alone(graph_, e))) return false;
    out.push_back(std::move(e));
    return true;
  }

  void make_zero() {
    const Aval& aval = graph_.aval(zero_);
    Equation constant;
    constant.op = Op::constant;
    BufferRef buffer = allocate(aval.bytes(), "an index");
    std::memset(buffer->data, 0, aval.bytes());
    constant.params = make_params(ConstantParams{std::move(buffer), aval});
    constant.outputs.push_back(zero_);
    graph_.equations.insert(graph_.equations.begin(), std::move(constant));
  }

  GraphBody graph_;
  Var zero_;  ///< the index of the only branch
  LaneAxes lanes_;
  Vec<int> maker_;
  bool formed_ = false;
};

}  // namespace lane_regions

GraphBody form_lane_regions(GraphBody graph) {
  if (lanes_in_groups()) return graph;
  for (const Equation& e : graph.equations)
    if (has_effect(e)) return graph;  // which would have to keep their order
  if (none_of(graph.equations, lane_regions::stands_alone)) return graph;
  return lane_regions::Former(std::move(graph)).run();
}

}  // namespace vt::detail
