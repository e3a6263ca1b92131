// fuse: from a Graph to the steps of a program; builds the loop nest of every group of equations.
#include "fuse.hpp"

#include <algorithm>

#include "fusion_groups.hpp"
#include "matmul_spec.hpp"
#include "nest_transform.hpp"
#include "schedule.hpp"

namespace vt::detail {

namespace nest_assembly {

struct ReductionKind {
  ReduceOp op;
  DType accumulator;
};

// Sums and products of 16-bit floats are carried in f32.
DType accumulator_of(ReduceOp op, DType d) {
  const bool small = d == DType::f16 || d == DType::bf16;
  return small && (op == ReduceOp::sum || op == ReduceOp::product) ? DType::f32 : d;
}

ReduceOp reduce_op(Op op) {
  switch (op) {
    case Op::reduce_prod: return ReduceOp::product;
    case Op::reduce_max: return ReduceOp::maximum;
    case Op::reduce_min: return ReduceOp::minimum;
    case Op::reduce_any: return ReduceOp::any;
    case Op::reduce_all: return ReduceOp::all;
    case Op::argmax: return ReduceOp::argmax;
    case Op::argmin: return ReduceOp::argmin;
    default: return ReduceOp::sum;
  }
}

// Where the second half of a cut reduction finds the partial results: partial[k] holds reduction k, blocks first.
struct Partials {
  std::vector<Var> vars;
  std::int64_t blocks = 0;
  bool runtime = false;
};

class GroupBuilder {
 public:
  GroupBuilder(const FusionPlanner& planner, const FusionGroup& group, const GraphBody& graph, const NestSource& source, FusedStep& step)
      : planner_(planner), group_(group), graph_(graph), step_(step), builder_(source, step) {
    builder_.prepare();
  }

  void build(const Partials* partials) {
    Nest& nest = step_.nest;
    const bool several = group_.stages.size() > 1;
    IndexVector kept(static_cast<std::size_t>(group_.domain.rank()), nest.indices.constant(0));
    SmallVec<int, 6> kept_loops;
    for (int a = 0; a < group_.domain.rank(); ++a)
      if (!group_.reduced.contains(a)) make_loop(a, false, kept, kept_loops);
    if (several) nest.shared = kept_loops;
    for (std::size_t k = 0; k < group_.stages.size(); ++k) {
      stage_ = static_cast<int>(k);
      const FusionStage& stage = group_.stages[k];
      nest.stages.emplace_back();
      SmallVec<int, 6> loops;
      IndexVector index = kept;
      if (partials) {
        blocks_ = nest.indices.constant(0);
        if (partials->blocks > 1 || partials->runtime) {
          const int l = builder_.add_loop(partials->blocks, true, partials->runtime);
          blocks_ = builder_.variable(l);
          loops.push_back(l);
        }
      } else {
        for (int a = 0; a < group_.domain.rank(); ++a)
          if (group_.reduced.contains(a)) make_loop(a, !stage.reductions.empty(), index, loops);
      }
      // In the arrays' order, so that adjacent loops can be joined.
      if (!several) loops.append(kept_loops.begin(), kept_loops.end());
      std::sort(loops.begin(), loops.end(), [&](int x, int y) { return axis_of(x) < axis_of(y); });
      nest.stages.back().loops = loops;
      build_stage(stage, index, partials);
    }
  }

 private:
  void make_loop(int axis, bool reduce, IndexVector& index, SmallVec<int, 6>& loops) {
    const std::int64_t extent = group_.domain[static_cast<std::size_t>(axis)];
    if (extent == 1) return;
    // The outermost axis is most often the batch; its size is an argument, so that one kernel serves all batches.
    const int l = builder_.add_loop(extent, reduce, axis == 0);
    if (axes_.size() <= static_cast<std::size_t>(l)) axes_.resize(static_cast<std::size_t>(l) + 1, -1);
    axes_[static_cast<std::size_t>(l)] = axis;
    index[static_cast<std::size_t>(axis)] = builder_.variable(l);
    loops.push_back(l);
  }
  int axis_of(int loop) const { return static_cast<std::size_t>(loop) < axes_.size() ? axes_[static_cast<std::size_t>(loop)] : -1; }

  IndexVector kept_index(const IndexVector& index) const {
    IndexVector kept;
    for (std::size_t a = 0; a < index.size(); ++a)
      if (!group_.reduced.contains(static_cast<int>(a))) kept.push_back(index[a]);
    return kept;
  }

  void store(const FusionRoot& root, const IndexVector& index, bool after) {
    if (root.axis < 0 && !planner_.kept[static_cast<std::size_t>(root.value)]) return;
    NestStore s;
    s.value = builder_.value_at(root.value, index);
    IndexVector at = index;
    if (root.axis >= 0) {
      auto& i = at[static_cast<std::size_t>(root.axis)];
      i = builder_.indices().add(i, root.offset);
    }
    s.index = linear_index(builder_.indices(), at, graph_.aval(root.target).shape);
    s.buffer = builder_.buffer_of(root.target, true);
    s.stage = stage_;
    s.after = after;
    step_.nest.stores.push_back(s);
  }

  void build_stage(const FusionStage& stage, const IndexVector& index, const Partials* partials) {
    Nest& nest = step_.nest;
    // Roots of this stage are computed; those of earlier ones are read back, unless they are scalars of the row.
    for (const FusionRoot& r : stage.full)
      if (r.axis < 0) builder_.compute_here(r.value, true);
    for (const FusionRoot& r : stage.after)
      if (r.axis < 0) builder_.compute_here(r.value, true);
    if (!partials)
      for (const FusionRoot& r : stage.full) store(r, index, false);
    const IndexVector kept = kept_index(index);
    for (std::size_t k = 0; k < stage.reductions.size(); ++k) {
      const int equation = stage.reductions[k];
      const Equation& e = graph_.equations[static_cast<std::size_t>(equation)];
      const Var out = e.outputs[0];
      NestReduction r;
      r.op = reduce_op(e.op);
      r.stage = stage_;
      if (partials) {
        IndexVector at{blocks_};
        at.append(kept.begin(), kept.end());
        r.value = builder_.load(partials->vars[k], at, -1);
        r.dtype = nest.values[static_cast<std::size_t>(r.value)].dtype;
      } else {
        step_.fused.push_back(equation);
        ++nest.fused_ops;
        operand(e, index, r);
      }
      r.kept = linear_index(nest.indices, kept, planner_.kept_shape(group_));
      nest.reductions.push_back(r);
      NestValue result;
      result.kind = NestValue::Kind::reduced;
      result.argument = static_cast<int>(nest.reductions.size() - 1);
      result.dtype = r.dtype;
      builder_.bind(out, builder_.convert(builder_.add_value(result), graph_.aval(out).dtype));
    }
    for (const int equation : stage.reductions) {
      const Var out = graph_.equations[static_cast<std::size_t>(equation)].outputs[0];
      if (planner_.kept[static_cast<std::size_t>(out)]) store({out, out, -1, 0}, kept, true);
    }
    for (const FusionRoot& r : stage.after) store(r, kept, true);
    for (const FusionRoot& r : stage.full)
      if (r.axis < 0) builder_.compute_here(r.value, false);
  }

  void operand(const Equation& e, const IndexVector& index, NestReduction& r) {
    if (e.op == Op::dot_general) {
      const DotParams& p = e.as<DotParams>();
      r.dtype = accumulator_of(ReduceOp::sum, p.dtype);
      const Shape& lhs = graph_.aval(e.inputs[0]).shape;
      const Shape& rhs = graph_.aval(e.inputs[1]).shape;
      IndexVector a(static_cast<std::size_t>(lhs.rank()), 0), b(static_cast<std::size_t>(rhs.rank()), 0);
      std::size_t next = 0;
      for (std::size_t k = 0; k < p.lhs_batch.size(); ++k, ++next) {
        a[static_cast<std::size_t>(p.lhs_batch[k])] = index[next];
        b[static_cast<std::size_t>(p.rhs_batch[k])] = index[next];
      }
      for (int axis = 0; axis < lhs.rank(); ++axis)
        if (!p.lhs_batch.contains(axis) && !p.lhs_contract.contains(axis)) a[static_cast<std::size_t>(axis)] = index[next++];
      for (int axis = 0; axis < rhs.rank(); ++axis)
        if (!p.rhs_batch.contains(axis) && !p.rhs_contract.contains(axis)) b[static_cast<std::size_t>(axis)] = index[next++];
      for (std::size_t k = 0; k < p.lhs_contract.size(); ++k, ++next) {
        a[static_cast<std::size_t>(p.lhs_contract[k])] = index[next];
        b[static_cast<std::size_t>(p.rhs_contract[k])] = index[next];
      }
      const int x = builder_.convert(builder_.value_at(e.inputs[0], a), r.dtype);
      const int y = builder_.convert(builder_.value_at(e.inputs[1], b), r.dtype);
      r.value = builder_.op(Op::mul, r.dtype, {x, y});
      return;
    }
    const int value = builder_.value_at(e.inputs[0], index);
    if (r.op == ReduceOp::argmax || r.op == ReduceOp::argmin) {
      r.value = value;
      r.dtype = graph_.aval(e.outputs[0]).dtype;
      NestValue position;
      position.kind = NestValue::Kind::index;
      position.dtype = r.dtype;
      position.index = index[static_cast<std::size_t>(e.as<ArgParams>().axis)];
      r.position = builder_.add_value(position);
      return;
    }
    r.dtype = accumulator_of(r.op, graph_.aval(e.inputs[0]).dtype);
    r.value = builder_.convert(value, r.dtype);
  }

  const FusionPlanner& planner_;
  const FusionGroup& group_;
  const GraphBody& graph_;
  FusedStep& step_;
  NestBuilder builder_;
  std::vector<int> axes_;
  IndexId blocks_ = -1;
  int stage_ = 0;
};

bool is_scatter(Op op) { return op >= Op::scatter && op <= Op::scatter_max; }

// A copy of the operand (which the buffer plan may place over the operand itself), then the updates in row-major order.
void build_scatter(const NestSource& source, const GraphBody& graph, int equation, std::vector<FusedStep>& steps) {
  const Equation& e = graph.equations[static_cast<std::size_t>(equation)];
  const Var out = e.outputs[0];
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
  const auto add_step = [&](Var domain, const auto& fill) {
    FusedStep step;
    NestBuilder builder(source, step);
    builder.prepare();
    step.nest.stages.emplace_back();
    const IndexVector index = index_of(builder, graph.aval(domain).shape, step.nest.stages[0].loops);
    NestStore store;
    fill(builder, index, store);
    store.buffer = builder.buffer_of(out, true);
    step.nest.stores.push_back(store);
    step.fused.push_back(equation);
    normalise_loops(step.nest);
    steps.push_back(std::move(step));
  };
  if (graph.aval(out).elements() == 0) return;
  add_step(out, [&](NestBuilder& builder, const IndexVector& index, NestStore& store) {
    store.value = builder.value_at(e.inputs[0], index);
    store.index = linear_index(builder.indices(), index, graph.aval(out).shape);
  });
  find_updates_in_place(steps.back().nest);
  if (graph.aval(e.inputs[2]).elements() == 0) return;
  add_step(e.inputs[2], [&](NestBuilder& builder, const IndexVector& index, NestStore& store) {
    store.value = builder.value_at(e.inputs[2], index);
    const IndexVector at = builder.scatter_index(e, index, &store.mask);
    store.index = linear_index(builder.indices(), at, graph.aval(out).shape);
    store.update = e.op == Op::scatter_add ? Op::add : e.op == Op::scatter_mul ? Op::mul : e.op == Op::scatter_min ? Op::min : e.op == Op::scatter_max ? Op::max : Op::select;
  });
}

// Buffers that nothing in the nest uses any more are taken off its list.
void drop_unused_buffers(FusedStep& step) {
  Nest& nest = step.nest;
  std::vector<int> roots;
  for (const NestStore& s : nest.stores) roots.push_back(s.value);
  for (const NestReduction& r : nest.reductions) {
    roots.push_back(r.value);
    roots.push_back(r.position);
  }
  std::vector<char> used(nest.buffers.size(), 0);
  for (int v : needed_values(nest, roots))
    if (nest.values[static_cast<std::size_t>(v)].kind == NestValue::Kind::load) used[static_cast<std::size_t>(nest.values[static_cast<std::size_t>(v)].buffer)] = 1;
  for (const NestStore& s : nest.stores) used[static_cast<std::size_t>(s.buffer)] = 1;
  std::vector<int> renamed(used.size(), -1);
  std::vector<NestBuffer> buffers;
  std::vector<Var> vars;
  for (std::size_t b = 0; b < used.size(); ++b) {
    if (!used[b]) continue;
    renamed[b] = static_cast<int>(buffers.size());
    buffers.push_back({nest.buffers[b].dtype, nest.buffers[b].written, renamed[b]});
    vars.push_back(step.buffers[b]);
  }
  for (NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::load) v.buffer = renamed[static_cast<std::size_t>(v.buffer)];
  for (NestStore& s : nest.stores) s.buffer = renamed[static_cast<std::size_t>(s.buffer)];
  nest.buffers = std::move(buffers);
  step.buffers = std::move(vars);
}

// Makes the step the first half of a cut reduction: block results go to fresh Vars; epilogues are left to the second half.
Partials store_partials(FusedStep& step, int block_loop, const Shape& kept, GraphBody& graph, NestSource& source) {
  Nest& nest = step.nest;
  const NestLoop& blocks = nest.loops[static_cast<std::size_t>(block_loop)];
  Partials partials;
  partials.blocks = blocks.extent;
  partials.runtime = blocks.runtime;
  std::erase_if(nest.stores, [](const NestStore& s) { return s.after; });
  const IndexId block = nest.indices.loop(block_loop, blocks.runtime ? IndexTable::unbounded : blocks.extent);
  for (std::size_t k = 0; k < nest.reductions.size(); ++k) {
    Shape shape{blocks.extent};
    shape.append(kept.begin(), kept.end());
    const Var v = graph.fresh(Aval(nest.reductions[k].dtype, shape));
    source.definition.push_back(-1);
    source.stored.push_back(1);
    source.storage.push_back(v);
    partials.vars.push_back(v);
    NestValue result;
    result.kind = NestValue::Kind::reduced;
    result.argument = static_cast<int>(k);
    result.dtype = nest.reductions[k].dtype;
    nest.values.push_back(result);
    NestStore s;
    s.buffer = static_cast<int>(nest.buffers.size());
    s.index = nest.indices.add(nest.indices.scale(block, kept.elements()), nest.reductions[k].kept);
    s.value = static_cast<int>(nest.values.size() - 1);
    s.after = true;
    nest.buffers.push_back({result.dtype, true, s.buffer});
    step.buffers.push_back(v);
    nest.stores.push_back(s);
  }
  drop_unused_buffers(step);
  step.partial = true;
  return partials;
}

}  // namespace nest_assembly

void build_steps(const FusionPlanner& planner, const FusionGroup& group, GraphBody& graph, NestSource& source, const FuseOptions& options,
                 std::vector<FusedStep>& steps) {
  using namespace nest_assembly;
  Partials partials;
  for (bool first = true;; first = false) {
    FusedStep step;
    GroupBuilder(planner, group, graph, source, step).build(first ? nullptr : &partials);
    normalise_loops(step.nest);
    const ReductionCut cut = find_reduction_cut(step.nest, choose_schedule(step.nest, options.vector_bytes));
    if (cut.loop >= 0) {
      const int block_loop = cut_loop(step.nest, cut.loop, cut.block);
      partials = store_partials(step, block_loop, planner.kept_shape(group), graph, source);
      steps.push_back(std::move(step));
      continue;
    }
    if (!step.nest.stores.empty()) {
      find_updates_in_place(step.nest);
      steps.push_back(std::move(step));
    }
    return;
  }
}

namespace nest_assembly {

// Matrix products take operands whose axes collapse to (batch, rows, columns); others get a transposition in front.
GraphBody order_product_operands(const GraphBody& graph) {
  GraphBody result = graph;
  result.equations.clear();
  for (const Equation& e : graph.equations) {
    if (e.op != Op::dot_general) {
      result.equations.push_back(e);
      continue;
    }
    DotParams p = e.as<DotParams>();
    const MatmulPlan plan = plan_matmul(p, graph.aval(e.inputs[0]), graph.aval(e.inputs[1]));
    Equation product = e;
    const auto reorder = [&](std::size_t operand, const Axes& permutation, Axes& contract, Axes& batch) {
      const Aval& old = graph.aval(e.inputs[operand]);
      Aval fresh(old.dtype, {});
      for (int axis : permutation) fresh.shape.push_back(old.shape[static_cast<std::size_t>(axis)]);
      Equation t;
      t.op = Op::transpose;
      t.where = e.where;
      t.params = make_params(PermutationParams{permutation});
      t.inputs.push_back(e.inputs[operand]);
      t.outputs.push_back(result.fresh(fresh));
      product.inputs[operand] = t.outputs[0];
      result.equations.push_back(std::move(t));
      for (Axes* axes : {&contract, &batch})
        for (int& axis : *axes) axis = static_cast<int>(std::find(permutation.begin(), permutation.end(), axis) - permutation.begin());
    };
    if (plan.lhs_permutation) reorder(0, *plan.lhs_permutation, p.lhs_contract, p.lhs_batch);
    if (plan.rhs_permutation) reorder(1, *plan.rhs_permutation, p.rhs_contract, p.rhs_batch);
    if (plan.lhs_permutation || plan.rhs_permutation) product.params = make_params(std::move(p));
    result.equations.push_back(std::move(product));
  }
  return result;
}

}  // namespace nest_assembly

Fusion fuse(GraphBody graph, const FuseOptions& options) {
  Fusion fusion;
  fusion.graph = inline_calls(graph);
  if (options.matrix_products) fusion.graph = nest_assembly::order_product_operands(fusion.graph);
  FusionPlanner planner(fusion.graph, options);
  planner.run();
  NestSource source = planner.source;
  for (int g : planner.order) {
    const FusionGroup& group = planner.groups[static_cast<std::size_t>(g)];
    if (group.equation >= 0 && nest_assembly::is_scatter(fusion.graph.equations[static_cast<std::size_t>(group.equation)].op)) {
      nest_assembly::build_scatter(source, fusion.graph, group.equation, fusion.steps);
    } else if (group.equation >= 0) {
      FusedStep step;
      step.equation = group.equation;
      fusion.steps.push_back(std::move(step));
    } else {
      build_steps(planner, group, fusion.graph, source, options, fusion.steps);
    }
  }
  fusion.storage = std::move(source.storage);
  return fusion;
}

}  // namespace vt::detail
