// batch_graph: walks a Graph with some inputs carrying an extra axis of lanes, and emits the
// equations for all lanes at once.
#include "batch.hpp"

#include <algorithm>
#include <limits>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/timeline.hpp"
#include "../../trace/base/warnings.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/effects.hpp"
#include "../../trace/record/batching.hpp"
#include "../../trace/record/named_axes.hpp"
#include "../../trace/record/thread_state.hpp"
#include "active_lanes.hpp"
#include "batch_rules.hpp"
#include "lane_calls.hpp"
#include "lanes.hpp"

namespace vt::detail {

namespace batch_walk {

// The operands of the equation at hand, without references of their own: the walk's values hold
// them.
struct Operands {
  SmallVec<Batched, 4> list;
  ~Operands() { clear(); }
  void clear() {
    for (Batched& x : list) forget(x.value);
    list.clear();
  }
  void add(const Batched& x) {
    list.push_back({adopted(node_of(x.value), output_of(x.value)), x.axis});
  }
};

/// Was it outlined for lanes that may go different ways? All may turn out to be the same.
bool waits_for_lanes(const Equation& e) {
  return e.op == Op::batched_call && !e.as<BatchedCallParams>().lanes;
}

}  // namespace batch_walk

Vec<Batched> batch_graph(const GraphBody& graph, std::span<const Batched> inputs,
                         std::int64_t lanes, const LaneAxis& axis) {
  if (axis.active) return batch_active(graph, inputs, lanes, axis);
  const Span span("transform", "batch");
  if (thread_state().schedule != LaneSchedule::groups && lanes > 0) {
    Dependence::Flags mapped;
    for (const Batched& x : inputs) mapped.push_back(x.axis.has_value());
    const std::optional<GraphBody> outlined =
        outline_lane_calls(graph, mapped, thread_state().schedule, axis.name);
    if (outlined) {
      const LaneScheduleScope inside(LaneSchedule::groups);
      return batch_graph(*outlined, inputs, lanes, axis);
    }
  }
  RecycledVec<Batched> values(graph.avals.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
  Broadcasts broadcasts;
  batch_walk::Operands operands;
  Borrowed plain;
  const auto give_zeros = [&](const Equation& e) {
    for (Var v : e.outputs) {
      const Aval& lane = graph.aval(v);
      values[v] = {full_tensor(Scalar(false).converted(lane.dtype),
                               Aval(lane.dtype, lanes::inserted(lane.shape, 0, 0))),
                   0};
    }
  };
  for (const Equation& e : graph.equations) {
    const bool any_mapped = any_of(e.inputs, [&](Var v) { return values[v].axis.has_value(); });
    const bool between_lanes = axis.name && works_over(e.op, e.params, *axis.name);
    if (!any_mapped && !between_lanes && (lanes > 0 || !has_effect(e))) {  // once for all lanes
      plain.clear();
      for (Var v : e.inputs) plain.add(values[v].value);
      const auto set = [&](Var v, Tensor t) { values[v] = {std::move(t), std::nullopt}; };
      if (batch_walk::waits_for_lanes(e)) {
        std::vector<Tensor> made = replay(*e.as<BatchedCallParams>().body, plain);
        for (std::size_t i = 0; i < made.size(); ++i) set(e.outputs[i], std::move(made[i]));
      } else {
        repeat(graph, e, plain, set);
      }
      continue;
    }
    if (lanes == 0 && !between_lanes) {  // nothing to compute, whatever the op
      give_zeros(e);
      continue;
    }
    operands.clear();
    for (Var v : e.inputs) operands.add(values[v]);
    const LikeEquation like(e);
    BatchedList results = batch_rules::table[e.op](
        {graph, e, std::span<const Batched>(operands.list.data(), operands.list.size()), lanes,
         broadcasts, axis});
    for (std::size_t i = 0; i < e.outputs.size(); ++i) values[e.outputs[i]] = std::move(results[i]);
  }
  Vec<Batched> results;
  results.reserve(graph.outputs.size());
  for (Var v : graph.outputs) results.push_back(values[v]);
  return results;
}

Vec<Batched> with_lane_index(std::span<const Batched> arguments, const AxisRef& axis) {
  Vec<Batched> all(arguments.begin(), arguments.end());
  if (!axis) return all;
  const DType dtype =
      axis->size > std::numeric_limits<std::int32_t>::max() ? DType::i64 : DType::i32;
  all.push_back(
      {emit(Op::iota, make_params(IotaParams{Aval(dtype, Shape{axis->size}), 0}), {}, {}), 0});
  return all;
}

Recorded record_lane(const FlatFunction& f, std::span<const Batched> arguments, const AxisRef& axis,
                     const char* transform, CallSite where, bool streams, bool closed) {
  Vec<Aval> avals;
  for (const Batched& a : arguments)
    if (a.axis) avals.push_back(lanes::lane_aval(a));
  return record(
      [&](std::span<const Tensor> tracers) {
        const std::span<const Batched> own = arguments.first(arguments.size() - (axis ? 1 : 0));
        std::vector<Tensor> all;
        all.reserve(own.size());
        std::size_t next = 0;
        for (const Batched& a : own) all.push_back(a.axis ? tracers[next++] : a.value);
        return f(all);
      },
      avals,
      {.kind = ScopeKind::vmap,
       .transform = transform,
       .closed = closed,
       .stateful = streams,
       .axis = axis,
       .where = where});
}

Vec<Batched> batch_recorded(const Recorded& lane, std::span<const Batched> arguments,
                            std::int64_t lanes, const LaneAxis& axis, Vec<bool>* zero) {
  Vec<Batched> inputs;
  inputs.reserve(lane.graph.inputs.size());
  for (const Batched& a : arguments)
    if (a.axis) inputs.push_back(a);
  for (const Tensor& t : lane.captured) inputs.push_back({t, std::nullopt});
  if (axis.active) return batch_active(lane.graph, inputs, lanes, axis, zero);
  return batch_graph(lane.graph, inputs, lanes, axis);
}

Vec<Batched> batch_function(const FlatFunction& f, std::span<const Batched> arguments,
                            std::int64_t lanes, const char* transform, const LaneAxis& axis) {
  const Vec<Batched> all = with_lane_index(arguments, axis.name);
  return batch_recorded(
      record_lane(f, all, axis.name, transform, {}, false, axis.active != nullptr), all, lanes,
      axis);
}

GraphBody batch_body(const GraphBody& body, const Vec<bool>& mapped, std::int64_t lanes) {
  const LaneScheduleScope groups(LaneSchedule::groups);
  Vec<Aval> avals;
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const Aval& lane = body.aval(body.inputs[i]);
    avals.emplace_back(lane.dtype, mapped[i] ? lanes::inserted(lane.shape, 0, lanes) : lane.shape);
  }
  Recorded all = record(
      [&](std::span<const Tensor> tracers) {
        Vec<Batched> inputs;
        for (std::size_t i = 0; i < tracers.size(); ++i)
          inputs.push_back({tracers[i], mapped[i] ? MappedAxis(0) : std::nullopt});
        std::vector<Tensor> results;
        for (const Batched& out : batch_graph(body, inputs, lanes))
          results.push_back(lanes::at_axis(out, 0, lanes, {}));
        return results;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"});
  return closed(std::move(all));  // a user's rule of custom_vmap may have brought values along
}

namespace batch_rules {

BatchedList never_mapped(const BatchCall& c) {
  fail(ErrorKind::transform,
       "vt::vmap: " + std::string(name_of(c.equation.op)) + " has no operand that could be mapped",
       c.where());
}

void cannot_vectorize(const BatchCall& c, const std::string& name, const std::string& why) {
  if (thread_state().must_vectorize)
    fail(ErrorKind::transform,
         "vt::vmap: " + name + " cannot be vectorized: " + why +
             ", and {.fallback = vt::Fallback::error} was asked for",
         c.where());
  warn_once("vt::vmap: " + name + " runs once per lane: " + why + at(c.where()));
}

}  // namespace batch_rules

}  // namespace vt::detail
