// Which equations of a function become lane calls under vmap.
#include "lane_calls.hpp"

#include "../../trace/base/stack.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/recursive_function.hpp"
#include "../../trace/ir/sub_graph.hpp"

namespace vt::detail {

namespace lane_outline {

using Flags = Dependence::Flags;

/// Where lanes go different ways.
class Divergence {
 public:
  explicit Divergence(const NamedAxis* axis) : axis_(axis), dependence_(axis) {}

  /// Which values of the Graph differ between lanes.
  Flags values(const GraphBody& g, const Flags& inputs) {
    Flags flags(g.avals.size());
    for (std::size_t i = 0; i < g.inputs.size(); ++i) flags[g.inputs[i]] = inputs[i];
    for (const Equation& e : g.equations) {
      const Flags own = operands(e, flags);
      // A call that no lane differs in is none of lanes. Elsewhere the question is left open: lanes
      // that go the same way run in registers, too, which is faster than all of them at once.
      const bool calls = e.op == Op::call || e.op == Op::batched_call || e.op == Op::recursive_call;
      if (calls && none_of(own, [](bool differs) { return differs; }) &&
          !(axis_ && works_over(e.op, e.params, *axis_)))
        continue;
      const Flags made = dependence_.results(g, e, own);
      for (std::size_t i = 0; i < made.size(); ++i) flags[e.outputs[i]] = made[i];
    }
    return flags;
  }
  static Flags operands(const Equation& e, const Flags& values) {
    Flags own;
    for (Var v : e.inputs) own.push_back(values[v]);
    return own;
  }

  /// Do lanes go different ways in the equation?
  bool anywhere(const Equation& e, const Flags& own) {
    return decides(e, own) ||
           inside(for_any, e, own, [this](const GraphBody&, const Equation& i, const Flags& f) {
             return anywhere(i, f);
           });
  }
  /// In a recursion, or in a loop inside of a loop with something heavy in it: where groups, which
  /// wait at the end of each call and of each inner loop, keep lanes from running together.
  bool apart(const GraphBody& g, const Equation& e, const Flags& own) {
    if (e.op == Op::recursive_call) return anywhere(e, own);
    const bool loop = e.op == Op::while_ || e.op == Op::scan;
    return inside(for_apart, e, own, [&](const GraphBody& body, const Equation& i, const Flags& f) {
      return (loop && work_.is_heavy(g, e) && ends_apart(i, f)) || apart(body, i, f);
    });
  }

 private:
  /// By its own predicate.
  bool decides(const Equation& e, const Flags& own) {
    if (e.op == Op::cond) return own[0];
    return e.op == Op::while_ &&
           dependence_.condition(e.as<WhileParams>(), dependence_.loop_operands(e, own));
  }
  /// Is it, or has it inside, a loop or recursion in which lanes end at different times?
  bool ends_apart(const Equation& e, const Flags& own) {
    if (e.op == Op::recursive_call) return anywhere(e, own);
    if (e.op == Op::while_ && decides(e, own)) return true;
    return inside(for_ends, e, own, [this](const GraphBody&, const Equation& i, const Flags& f) {
      return ends_apart(i, f);
    });
  }
  /// `search`: which of them `found` is.
  enum Search { for_any, for_apart, for_ends };
  template <class Found>
  bool inside(Search search, const Equation& e, const Flags& own, const Found& found) {
    need_stack(e.where);
    const auto in_body = [&](const GraphBody& body, const Flags& inputs) {
      const Flags flags = values(body, inputs);
      return any_of(body.equations,
                    [&](const Equation& i) { return found(body, i, operands(i, flags)); });
    };
    switch (e.op) {
      case Op::recursive_call: {
        const RecursiveFunction* f = e.as<RecursionParams>().function;
        for (const auto& [known, flags] : entered_)
          if (known == f && flags == own) return false;
        if (!f->body) return false;
        entered_.push_back({f, own});
        return in_body(*f->body, own);
      }
      case Op::cond: {
        const Flags rest(own.begin() + 1, own.end());
        return any_of(e.as<CondParams>().branches,
                      [&](const GraphRef& branch) { return in_body(*branch, rest); });
      }
      case Op::while_:
      case Op::scan: {
        const Flags looped = dependence_.loop_operands(e, own);
        return any_of(bodies_of(e.params),
                      [&](const GraphRef& body) { return in_body(*body, looped); });
      }
      case Op::call:
      case Op::checkpoint:
      case Op::custom_jvp:
      case Op::custom_vjp:
      case Op::custom_vmap: {
        FlagsOfGraph called{e.as<CallParams>().body.get(), own};
        const auto known = known_[search].find(called);
        if (known != known_[search].end()) return known->second;
        const bool is_found = in_body(*e.as<CallParams>().body, own);
        known_[search].emplace(std::move(called), is_found);
        return is_found;
      }
      default: return false;
    }
  }

  const NamedAxis* axis_;
  Dependence dependence_;
  LaneWork work_;
  HashMap<FlagsOfGraph, bool> known_[3];  ///< what searches found in functions that are called
  Vec<std::pair<const RecursiveFunction*, Flags>> entered_;
};

/// Equations as one batched call, without lanes yet, of what they read.
Equation call_of(const GraphBody& g, const Vec<std::size_t>& members, LaneSchedule schedule,
                 const Vec<int>& reads) {
  Outline call(g.avals);
  for (std::size_t k : members) call.add(g.equations[k]);
  call.output_what_is_read(reads);
  BatchedCallParams p;
  p.summed.resize(call.outputs.size(), false);
  p.lanes.mapped.resize(call.inputs.size(), false);
  p.body = call.body;
  p.function = called_function("lanes");
  p.schedule = schedule;
  return call.equation(Op::batched_call, make_params(std::move(p)), g.equations[members[0]].where);
}

}  // namespace lane_outline

std::optional<GraphBody> outline_lane_calls(const GraphBody& g, const Dependence::Flags& mapped,
                                            LaneSchedule schedule, const AxisRef& axis) {
  using namespace lane_outline;
  const auto has_bodies = [](const Equation& e) {
    return family_of(e.op) == Family::structure && e.op != Op::batched_call;
  };
  if (!any_of(g.equations, has_bodies)) return std::nullopt;
  Divergence divergence(axis.get());
  const Flags values = divergence.values(g, mapped);
  const std::size_t count = g.equations.size();
  Vec<bool> parts(count);
  bool any = false;
  for (std::size_t k = 0; k < count; ++k) {
    const Equation& e = g.equations[k];
    if (!has_bodies(e) || (axis && works_over(e.op, e.params, *axis))) continue;
    const Flags own = Divergence::operands(e, values);
    parts[k] = schedule == LaneSchedule::automatic ? divergence.apart(g, e, own)
                                                   : divergence.anywhere(e, own);
    any = any || parts[k];
  }
  if (!any) return std::nullopt;
  // What both follows such an equation and leads to one comes along; but effects stay in their
  // order, and collectives outside: then each is a call of its own.
  const bool together = !keeps_order(g) && !any_of(g.equations, [&](const Equation& e) {
    return axis && works_over(e.op, e.params, *axis);
  });
  Vec<bool> follows(g.avals.size()), leads(g.avals.size()), member = parts, after(count);
  for (std::size_t k = 0; k < count && together; ++k) {
    const Equation& e = g.equations[k];
    after[k] = any_of(e.inputs, [&](Var v) { return follows[v]; });
    if (parts[k] || after[k])
      for (Var v : e.outputs) follows[v] = true;
  }
  for (std::size_t k = count; k-- > 0 && together;) {
    const Equation& e = g.equations[k];
    const bool before = any_of(e.outputs, [&](Var v) { return leads[v]; });
    if (after[k] && before) member[k] = true;
    if (parts[k] || before)
      for (Var v : e.inputs) leads[v] = true;
  }
  const Vec<int> reads = reads_of(g);
  GraphBody result = g;
  result.equations.clear();
  Vec<std::size_t> members;
  for (std::size_t k = 0; k < count; ++k) {
    if (!member[k]) {
      if (!after[k]) result.equations.push_back(g.equations[k]);
    } else if (together) {
      members.push_back(k);
    } else {
      result.equations.push_back(call_of(g, {k}, schedule, reads));
    }
  }
  if (!together) return result;
  result.equations.push_back(call_of(g, members, schedule, reads));
  for (std::size_t k = 0; k < count; ++k)
    if (!member[k] && after[k]) result.equations.push_back(g.equations[k]);
  return result;
}

}  // namespace vt::detail
