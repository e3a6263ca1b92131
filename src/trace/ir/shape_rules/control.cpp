// Shape rules of cond, while, scan and batched calls: that the sub-graphs fit the operands, each
// other and, where they loop, themselves.

#include <vt/detail/message.hpp>

#include "rules.hpp"

namespace vt::detail::shape_rules {

namespace control_rules {

/// Weak or not makes no difference to a body: its equations were promoted when it was recorded. To
/// what uses a result it does: a number that goes through a branch or a loop is still one that
/// widens nothing.
inline bool same_type(const Aval& a, const Aval& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

inline const GraphBody& body_of(const Call& c, const GraphRef& body) {
  if (!body) c.refuse(ErrorKind::value, "internal: no body");
  return *body;
}

/// What one lane sees of operand `i`.
inline Aval lane_operand(const Call& c, const Lanes& lanes, std::size_t i) {
  const Aval& a = c.operand(i);
  if (!lanes || !lanes.mapped[i]) return a;
  if (a.shape.empty() || a.shape[0] != lanes.count)
    c.refuse_shape(formatted("operand {} must hold {} lanes along axis 0", i, lanes.count));
  Aval lane(a.dtype, a.shape);
  lane.shape.erase(lane.shape.begin());
  return lane;
}
inline Aval with_lanes(const Lanes& lanes, const Aval& lane, bool weak) {
  if (!lanes) return Aval(lane.dtype, lane.shape, weak);
  Aval all(lane.dtype, Shape{lanes.count});
  all.shape.append(lane.shape.begin(), lane.shape.end());
  return all;
}
inline void check_lanes(const Call& c, const Lanes& lanes) {
  if (lanes && lanes.mapped.size() != c.operands.size())
    c.refuse(ErrorKind::value, formatted("internal: {} lane flags for {} operands",
                                         lanes.mapped.size(), c.operands.size()));
}

inline void check_input(const Call& c, const char* what, const GraphBody& body, std::size_t input,
                        const Aval& given) {
  const Aval& wanted = body.aval(body.inputs[input]);
  if (!same_type(given, wanted))
    c.refuse_shape(
        formatted("input {} of the {} is {}, but gets {}", input, what, wanted.str(), given.str()));
}
inline void check_count(const Call& c, const char* what, std::size_t got, std::size_t wanted) {
  if (got != wanted) c.refuse(ErrorKind::tree, formatted("{}: {}, not {}", what, got, wanted));
}
inline bool is_predicate(const Aval& a) { return a.dtype == DType::bool_ && a.shape.empty(); }

}  // namespace control_rules

Avals cond(const Call& c) {
  using namespace control_rules;
  const auto& p = c.as<CondParams>();
  if (p.branches.empty() || c.operands.empty())
    c.refuse(ErrorKind::value, "needs an index and at least one branch");
  check_lanes(c, p.lanes);
  const Aval index = lane_operand(c, p.lanes, 0);
  if (index.dtype != DType::i32 || !index.shape.empty())
    c.refuse_dtype("the index of the branch must be i32[]");
  const GraphBody& first = body_of(c, p.branches[0]);
  for (const GraphRef& ref : p.branches) {
    const GraphBody& branch = body_of(c, ref);
    check_count(c, "operands of a branch", branch.inputs.size(), c.operands.size() - 1);
    for (std::size_t i = 0; i < branch.inputs.size(); ++i)
      check_input(c, "branch", branch, i, lane_operand(c, p.lanes, i + 1));
    check_count(c, "results of a branch", branch.outputs.size(), first.outputs.size());
    for (std::size_t i = 0; i < branch.outputs.size(); ++i)
      if (!same_type(branch.aval(branch.outputs[i]), first.aval(first.outputs[i])))
        c.refuse_shape(formatted("branches differ: result {} is {} and {}", i,
                                 first.aval(first.outputs[i]).str(),
                                 branch.aval(branch.outputs[i]).str()));
  }
  Avals avals;
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    bool weak = true;
    for (const GraphRef& branch : p.branches) weak = weak && branch->aval(branch->outputs[i]).weak;
    avals.push_back(with_lanes(p.lanes, first.aval(first.outputs[i]), weak));
  }
  return avals;
}

Avals batched_call(const Call& c) {
  using namespace control_rules;
  const auto& p = c.as<BatchedCallParams>();
  const GraphBody& body = body_of(c, p.body);
  if (!p.lanes) c.refuse(ErrorKind::value, "internal: no lanes");
  check_lanes(c, p.lanes);
  check_count(c, "operands of the function", body.inputs.size(), c.operands.size());
  check_count(c, "flags of the results", p.summed.size(), body.outputs.size());
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    check_input(c, "function", body, i, lane_operand(c, p.lanes, i));
  Avals avals;
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const Aval& lane = body.aval(body.outputs[i]);
    if (p.summed[i] && is_bool(lane.dtype)) c.refuse_dtype("bools cannot be summed");
    avals.push_back(p.summed[i] ? lane : with_lanes(p.lanes, lane, lane.weak));
  }
  return avals;
}

Avals fused_region(const Call& c) {
  using namespace control_rules;
  const auto& p = c.as<RegionParams>();
  const GraphBody& body = body_of(c, p.body);
  check_lanes(c, p.lanes);
  check_count(c, "operands of the region", body.inputs.size(), c.operands.size());
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    check_input(c, "region", body, i, lane_operand(c, p.lanes, i));
  Avals avals;
  for (Var v : body.outputs) avals.push_back(with_lanes(p.lanes, body.aval(v), body.aval(v).weak));
  return avals;
}

Avals while_loop(const Call& c) {
  using namespace control_rules;
  const auto& p = c.as<WhileParams>();
  const GraphBody &condition = body_of(c, p.condition), &body = body_of(c, p.body);
  check_lanes(c, p.lanes);
  const std::size_t carries = p.carries;
  if (p.carries < 0 || carries > c.operands.size())
    c.refuse(ErrorKind::value, formatted("internal: {} carries", p.carries));
  check_count(c, "operands of the condition", condition.inputs.size(), c.operands.size());
  check_count(c, "operands of the body", body.inputs.size(), c.operands.size());
  check_count(c, "results of the body", body.outputs.size(), carries);
  if (condition.outputs.size() != 1 || !is_predicate(condition.aval(condition.outputs[0])))
    c.refuse_dtype("the condition must give bool[]");
  Avals avals;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (p.lanes && i < carries && !p.lanes.mapped[i])
      c.refuse(ErrorKind::value, formatted("internal: carry {} has no lanes", i));
    const Aval lane = lane_operand(c, p.lanes, i);
    check_input(c, "condition", condition, i, lane);
    check_input(c, "body", body, i, lane);
    if (i >= carries) continue;
    const Aval& next = body.aval(body.outputs[i]);
    if (!same_type(next, lane))
      c.refuse_shape(
          formatted("the body makes carry {}, which is {}, {}", i, lane.str(), next.str()));
    avals.push_back(with_lanes(p.lanes, lane, lane.weak && next.weak));
  }
  return avals;
}

Avals scan(const Call& c) {
  using namespace control_rules;
  const auto& p = c.as<ScanParams>();
  const GraphBody& body = body_of(c, p.body);
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  if (p.carries < 0 || p.sequences < 0 || looped > c.operands.size() || p.length < 0)
    c.refuse(ErrorKind::value, formatted("internal: {} carries and {} sequences of length {}",
                                         p.carries, p.sequences, p.length));
  check_count(c, "operands of the body", body.inputs.size(), c.operands.size());
  if (body.outputs.size() < carries)
    c.refuse(ErrorKind::tree,
             formatted("the body gives {} results for {} carries", body.outputs.size(), carries));
  Avals avals;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    Aval one = c.operand(i);
    if (i >= carries && i < looped) {
      if (one.shape.empty() || one.shape[0] != p.length)
        c.refuse_shape(formatted("operand {} must have length {} along axis 0", i, p.length));
      one.shape.erase(one.shape.begin());
    }
    check_input(c, "body", body, i, one);
    if (i >= carries) continue;
    const Aval& next = body.aval(body.outputs[i]);
    if (!same_type(next, one))
      c.refuse_shape(
          formatted("the body makes carry {}, which is {}, {}", i, one.str(), next.str()));
    one.weak = one.weak && next.weak;
    avals.push_back(one);
  }
  for (std::size_t i = carries; i < body.outputs.size(); ++i) {
    Aval all(body.aval(body.outputs[i]).dtype, Shape{p.length});
    const Shape& one = body.aval(body.outputs[i]).shape;
    all.shape.append(one.begin(), one.end());
    avals.push_back(std::move(all));
  }
  return avals;
}

}  // namespace vt::detail::shape_rules
