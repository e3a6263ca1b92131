// Batch rules of cond, while and scan. A predicate that all lanes share stays one branch or one
// loop, of bodies for all lanes; one that differs between lanes turns the equation into one with
// lanes, whose bodies stay those of a single lane.
#include <memory>
#include <string>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/ir/dependence.hpp"
#include "../../../trace/ir/effects.hpp"
#include "../../../trace/record/named_axes.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace control_batch {

using Flags = Dependence::Flags;

Flags mapped_flags(const BatchCall& c) {
  Flags flags;
  for (const Batched& x : c.operands) flags.push_back(x.axis.has_value());
  return flags;
}

/// A body for all lanes: inputs of the given types carry the lanes at `axes`, results that are
/// `wanted` at axis 0.
Recorded batched_body(const BatchCall& c, const GraphBody& body, std::span<const Aval> avals,
                      std::span<const MappedAxis> axes, const Flags& wanted) {
  return record(
      [&](std::span<const Tensor> tracers) {
        Vec<Batched> inputs;
        for (std::size_t i = 0; i < tracers.size(); ++i) inputs.push_back({tracers[i], axes[i]});
        std::vector<Tensor> outputs;
        for (const Batched& out : batch_graph(body, inputs, c.lanes, c.axis))
          outputs.push_back(wanted[outputs.size()] ? lanes::at_axis(out, 0, c.lanes, c.where())
                                                   : out.value);
        return outputs;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"});
}

/// The operands of an equation whose bodies become bodies for all lanes. Inside a body with lanes
/// of its own, which lie at axis 0, the new ones come next.
struct Operands {
  std::vector<Tensor> values;
  Vec<Aval> avals;       ///< as a body sees them
  Vec<MappedAxis> axes;  ///< of the lanes in those
};
Operands body_operands(const BatchCall& c, const Lanes& own, const Flags& mapped) {
  Operands o;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const int skip = own && own.mapped[i] ? 1 : 0;
    Batched x = c.operands[i];
    if (mapped[i]) x = {lanes::at_axis(x, skip, c.lanes, c.where()), skip};
    Aval seen(x.value.dtype(), skip ? lanes::removed(x.value.shape(), 0) : x.value.shape());
    o.axes.push_back(mapped[i] ? MappedAxis(0) : std::nullopt);
    o.values.push_back(std::move(x.value));
    o.avals.push_back(std::move(seen));
  }
  return o;
}

void append_captured(std::vector<Tensor>& operands, Lanes& own,
                     const std::vector<Tensor>& captured) {
  operands.insert(operands.end(), captured.begin(), captured.end());
  if (own)
    for (std::size_t i = 0; i < captured.size(); ++i) own.mapped.push_back(false);
}

GraphRef body_of(Recorded&& r) { return std::make_shared<const GraphBody>(std::move(r.graph)); }

BatchedList emit_batched(const BatchCall& c, ParamsRef params, std::span<const Tensor> operands,
                         const Flags& mapped, int axis) {
  BatchedList results;
  for (Tensor& t : emit_all(c.equation.op, std::move(params), operands, c.where())) {
    const bool m = mapped[results.size()];
    results.push_back({std::move(t), m ? MappedAxis(axis) : std::nullopt});
  }
  return results;
}

/// The operands of an equation that gets lanes: at axis 0 where they have any. `always`: that many
/// must have them. Lanes that the equation has already and the new ones become one axis, the new
/// ones slowest.
struct LaneOperands {
  std::vector<Tensor> values;
  Lanes lanes;
};
LaneOperands lane_operands(const BatchCall& c, const Lanes& own, std::size_t always) {
  LaneOperands o;
  o.lanes.count = own ? own.count * c.lanes : c.lanes;
  o.lanes.extents = own.extents;
  if (own && own.extents.empty()) o.lanes.extents.push_back(own.count);
  o.lanes.extents.insert(o.lanes.extents.begin(), c.lanes);
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Batched& x = c.operands[i];
    const bool inner = own && own.mapped[i], mapped = x.axis || inner || i < always;
    o.lanes.mapped.push_back(mapped);
    if (!mapped) {
      o.values.push_back(x.value);
      continue;
    }
    Tensor t = lanes::at_axis(x, 0, c.lanes, c.where());
    if (own) {
      if (!inner) t = lanes::broadcast(t, own.count, 1, c.where());
      Shape shape{o.lanes.count};
      shape.append(t.shape().begin() + 2, t.shape().end());
      t = emit(Op::reshape, make_params(ShapeParams{shape}), {t}, c.where());
    }
    o.values.push_back(std::move(t));
  }
  return o;
}
BatchedList emit_lanes(const BatchCall& c, const Lanes& own, ParamsRef params,
                       std::span<const Tensor> operands) {
  BatchedList results;
  for (Tensor& t : emit_all(c.equation.op, std::move(params), operands, c.where())) {
    if (own) {
      Shape shape{c.lanes, own.count};
      shape.append(t.shape().begin() + 1, t.shape().end());
      t = emit(Op::reshape, make_params(ShapeParams{shape}), {t}, c.where());
    }
    results.push_back({std::move(t), 0});
  }
  return results;
}

/// Lanes that go different ways do not meet.
void refuse_collectives(const BatchCall& c, const char* what) {
  if (c.axis.name && works_over(c.equation.op, c.equation.params, *c.axis.name))
    fail(ErrorKind::transform,
         std::string("vt::vmap: a collective over \"") + c.axis.name->name +
             "\" stands inside a vt::" + what + " whose predicate differs between those lanes" +
             (c.equation.op == Op::cond ? ", or a vt::pfor whose n does" : "") +
             "; only lanes that all go the same way can meet, so compute it outside",
         c.where());
}

}  // namespace control_batch

BatchedList cond(const BatchCall& c) {
  using namespace control_batch;
  CondParams p = c.as<CondParams>();
  const Lanes own = p.lanes;
  // Effects in lanes happen lane after lane; more lanes, also of one predicate, come around those.
  if (c.mapped(0) || (own && has_effect(c.equation))) {
    refuse_collectives(c, "cond");
    LaneOperands o = lane_operands(c, own, 1);
    p.lanes = std::move(o.lanes);
    return emit_lanes(c, own, make_params(std::move(p)), o.values);
  }
  const Flags mapped = mapped_flags(c), inner(mapped.begin() + 1, mapped.end());
  Flags out(c.equation.outputs.size());
  Dependence dependence(c.axis.name.get());
  for (const GraphRef& branch : p.branches) {
    const Flags of_branch = dependence.outputs(*branch, inner);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || of_branch[i];
  }
  Operands o = body_operands(c, own, mapped);
  Vec<Recorded> bodies;
  Vec<Recorded*> parts;
  for (const GraphRef& branch : p.branches)
    bodies.push_back(batched_body(c, *branch, std::span<const Aval>(o.avals).subspan(1),
                                  std::span<const MappedAxis>(o.axes).subspan(1), out));
  for (Recorded& b : bodies) parts.push_back(&b);
  append_captured(o.values, p.lanes, share_captures(parts));
  for (std::size_t k = 0; k < bodies.size(); ++k) p.branches[k] = body_of(std::move(bodies[k]));
  return emit_batched(c, make_params(std::move(p)), o.values, out, own ? 1 : 0);
}

BatchedList fused_region(const BatchCall& c) {
  using namespace control_batch;
  RegionParams p = c.as<RegionParams>();
  const Lanes own = p.lanes;
  LaneOperands o = lane_operands(c, own, 0);
  p.lanes = std::move(o.lanes);
  return emit_lanes(c, own, make_params(std::move(p)), o.values);
}

// Its first lanes, or more of them, as none waits for another; sums over those it had are made
// behind it. What is the same for all lanes is that of the first.
BatchedList lane_call(const BatchCall& c) {
  using namespace control_batch;
  const Flags differs = Dependence(c.axis.name.get()).results(c.graph, c.equation, mapped_flags(c));
  BatchedCallParams p = c.as<BatchedCallParams>();
  const Lanes own = p.lanes;
  const SmallVec<bool, 4> summed = std::exchange(p.summed, SmallVec<bool, 4>());
  p.summed.resize(summed.size(), false);
  refuse_collectives(c, "vmap");
  LaneOperands o = lane_operands(c, own, 0);
  p.lanes = std::move(o.lanes);
  BatchedList results = emit_lanes(c, own, make_params(std::move(p)), o.values);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Tensor& value = results[i].value;
    if (summed[i])
      value = emit(Op::reduce_sum, make_params(AxesParams{Axes{1}}), {value}, c.where());
    if (differs[i]) continue;
    SliceParams first{Shape::filled(value.shape().size(), 0), value.shape(),
                      Shape::filled(value.shape().size(), 1)};
    first.limit[0] = 1;
    value = emit(Op::slice, make_params(std::move(first)), {value}, c.where());
    value = emit(Op::reshape, make_params(ShapeParams{lanes::removed(value.shape(), 0)}), {value},
                 c.where());
    results[i].axis = std::nullopt;
  }
  return results;
}

BatchedList while_loop(const BatchCall& c) {
  using namespace control_batch;
  WhileParams p = c.as<WhileParams>();
  const Lanes own = p.lanes;
  Dependence dependence(c.axis.name.get());
  const Flags mapped = dependence.loop_operands(c.equation, mapped_flags(c));
  const std::size_t carries = p.carries;
  if (dependence.condition(p, mapped) || (own && has_effect(c.equation))) {
    refuse_collectives(c, "while_loop");
    LaneOperands o = lane_operands(c, own, carries);
    p.lanes = std::move(o.lanes);
    return emit_lanes(c, own, make_params(std::move(p)), o.values);
  }
  Operands o = body_operands(c, own, mapped);
  Recorded condition = batched_body(c, *p.condition, o.avals, o.axes, Flags(1, false)),
           body = batched_body(c, *p.body, o.avals, o.axes, mapped);
  Recorded* const parts[2] = {&condition, &body};
  append_captured(o.values, p.lanes, share_captures(parts));
  p.condition = body_of(std::move(condition));
  p.body = body_of(std::move(body));
  return emit_batched(c, make_params(std::move(p)), o.values, mapped, own ? 1 : 0);
}

BatchedList scan(const BatchCall& c) {
  using namespace control_batch;
  ScanParams p = c.as<ScanParams>();
  Dependence dependence(c.axis.name.get());
  const Flags mapped = dependence.loop_operands(c.equation, mapped_flags(c));
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  Flags out = dependence.outputs(*p.body, mapped);
  for (std::size_t i = 0; i < carries; ++i) out[i] = mapped[i];
  std::vector<Tensor> operands;
  Vec<Aval> avals;
  Vec<MappedAxis> axes;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    Batched x = c.operands[i];
    const bool element = i >= carries && i < looped;
    if (mapped[i] && i < carries) x = {lanes::at_axis(x, 0, c.lanes, c.where()), 0};
    // axis 0 is the loop's
    if (mapped[i] && element && *x.axis == 0) x = {lanes::moved(x.value, 0, 1, c.where()), 1};
    avals.emplace_back(x.value.dtype(),
                       element ? lanes::removed(x.value.shape(), 0) : x.value.shape());
    axes.push_back(!x.axis ? std::nullopt : MappedAxis(*x.axis - element));
    operands.push_back(std::move(x.value));
  }
  Recorded body = batched_body(c, *p.body, avals, axes, out);
  operands.insert(operands.end(), body.captured.begin(), body.captured.end());
  p.body = body_of(std::move(body));
  BatchedList results = emit_batched(c, make_params(std::move(p)), operands, out, 0);
  for (std::size_t i = carries; i < results.size(); ++i)
    if (results[i].axis) results[i].axis = 1;  // behind the axis of iterations
  return results;
}

}  // namespace vt::detail::batch_rules
