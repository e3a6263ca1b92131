// fuse: from a Graph to the steps of a program: kernels of groups, scatters, and equations that are
// no loop nest.
#include "fuse.hpp"

#include <algorithm>
#include <memory>

#include "../nest/nest_transform.hpp"
#include "conv_spec.hpp"
#include "fusion_groups.hpp"
#include "matmul_spec.hpp"

namespace vt::detail {

namespace nest_assembly {

// scatter and dynamic_update_slice: a copy of the operand (which the buffer plan may place over the
// operand itself), then the updates in row-major order. Sums and products of 16-bit floats are made
// in f32 and rounded at the end.
void build_update(NestSource& source, GraphBody& graph, int equation, Vec<FusedStep>& steps) {
  const Equation& e = graph.equations[equation];
  const Var out = e.outputs[0];
  const DType dtype = graph.aval(out).dtype;
  const bool wide = (dtype == DType::f16 || dtype == DType::bf16) &&
                    (e.op == Op::scatter_add || e.op == Op::scatter_mul);
  Var target = out;
  if (wide) {
    target = graph.fresh(Aval(DType::f32, graph.aval(out).shape));
    source.definition.push_back(-1);
    source.stored.push_back(1);
    source.storage.push_back(target);
  }
  const DType carried = graph.aval(target).dtype;
  const auto index_of = [](NestBuilder& builder, const Shape& shape, SmallVec<int, 6>& loops) {
    IndexVector index;
    for (std::size_t a = 0; a < shape.size(); ++a) {
      if (shape[a] == 1) {
        index.push_back(builder.indices().constant(0));
        continue;
      }
      const int l = builder.add_loop(shape[a], false, a == 0);
      index.push_back(builder.variable(l));
      loops.push_back(l);
    }
    return index;
  };
  const auto add_step = [&](Var domain, Var into, const auto& fill) {
    FusedStep step;
    NestBuilder builder(source, step);
    step.nest.stages.emplace_back();
    const IndexVector index =
        index_of(builder, graph.aval(domain).shape, step.nest.stages[0].loops);
    NestStore store;
    fill(builder, index, store);
    store.buffer = builder.buffer_of(into, true);
    step.nest.stores.push_back(store);
    step.fused.push_back(equation);
    normalise_loops(step.nest);
    steps.push_back(std::move(step));
  };
  if (graph.aval(out).elements() == 0) return;
  add_step(out, target, [&](NestBuilder& builder, const IndexVector& index, NestStore& store) {
    store.value = builder.convert(builder.value_at(e.inputs[0], index), carried);
    store.index = linear_index(builder.indices(), index, graph.aval(out).shape);
  });
  find_updates_in_place(steps.back().nest);
  const auto combination = [&] {
    switch (e.op) {
      case Op::scatter_add: return Op::add;
      case Op::scatter_mul: return Op::mul;
      case Op::scatter_min: return Op::min;
      case Op::scatter_max: return Op::max;
      default: return Op::select;
    }
  };
  const bool window = e.op == Op::dynamic_update_slice;
  const Var updates = e.inputs[window ? 1 : 2];
  if (graph.aval(updates).elements() > 0) {
    add_step(updates, target,
             [&](NestBuilder& builder, const IndexVector& index, NestStore& store) {
               store.value = builder.convert(builder.value_at(updates, index), carried);
               const IndexVector at = window ? builder.window_index(e, index)
                                             : builder.scatter_index(e, index, &store.mask);
               store.index = linear_index(builder.indices(), at, graph.aval(out).shape);
               if (!window) store.update = combination();
             });
  }
  if (!wide) return;
  add_step(out, out, [&](NestBuilder& builder, const IndexVector& index, NestStore& store) {
    store.value = builder.convert(builder.load(target, index, -1), dtype);
    store.index = linear_index(builder.indices(), index, graph.aval(out).shape);
  });
}

// What kernels of products take of it: once, for all that ask.
void plan_product(FusedStep& step, const GraphBody& g, const Equation& e,
                  const FuseOptions& options) {
  if (family_of(e.op) != Family::contract) return;
  const Aval &lhs = g.aval(e.inputs[0]), &rhs = g.aval(e.inputs[1]);
  if (e.op == Op::dot_general) {
    MatmulPlan plan = plan_matmul(e.as<DotParams>(), lhs, rhs);
    if (!plan.lhs_permutation && !plan.rhs_permutation)
      step.product = std::make_shared<const MatmulSpec>(std::move(plan.spec));
    return;
  }
  std::optional<ConvPlan> plan = plan_conv(e.as<ConvParams>(), lhs.shape, rhs.shape, lhs.dtype,
                                           options.on_host ? ConvTarget::host : ConvTarget::device);
  if (plan && !plan->lhs_permutation)
    step.convolution = std::make_shared<const ConvSpec>(std::move(plan->spec));
}

}  // namespace nest_assembly

Fusion fuse(GraphBody graph, const FuseOptions& options) {
  Fusion fusion;
  fusion.graph = std::move(graph);
  FusionPlanner planner(fusion.graph, options);
  planner.run();
  NestSource source = planner.source;
  for (int g : planner.order) {
    const FusionGroup& group = planner.groups[g];
    if (group.joins) continue;
    if (group.equation < 0) {
      build_steps(planner, group, fusion.graph, source, options, fusion.steps);
      continue;
    }
    const Equation& e = fusion.graph.equations[group.equation];
    if (writes_window(fusion.graph, e)) {
      nest_assembly::build_update(source, fusion.graph, group.equation, fusion.steps);
      continue;
    }
    FusedStep step;
    step.equation = group.equation;
    nest_assembly::plan_product(step, fusion.graph, e, options);
    fusion.steps.push_back(std::move(step));
  }
  fusion.storage = std::move(source.storage);
  fusion.maker = std::move(source.definition);
  fusion.again = std::move(planner.again);
  return fusion;
}

}  // namespace vt::detail
