// The loop nests of a group of fused equations: loops over its domain, stages, reductions, scans
// and stores.
#include <algorithm>

#include "../nest/nest_transform.hpp"
#include "../nest/schedule.hpp"
#include "fusion_groups.hpp"
#include "nest_scans.hpp"

namespace vt::detail {

namespace group_nests {

// Sums and products of 16-bit floats are carried in f32.
DType accumulator_of(Op op, DType d) {
  const bool small = d == DType::f16 || d == DType::bf16;
  return small && accumulates_wide(op) ? DType::f32 : d;
}

// Where the second half of a cut reduction finds the partial results: partial[k] holds reduction k,
// blocks first.
struct Partials {
  Vec<Var> vars;
  std::int64_t blocks = 0;
  bool runtime = false;
};

class GroupBuilder {
 public:
  GroupBuilder(const FusionPlanner& planner, const FusionGroup& group, const GraphBody& graph,
               const NestSource& source, FusedStep& step)
      : planner_(planner), group_(group), graph_(graph), step_(step), builder_(source, step) {}

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
      insertion_sort(loops, [&](int x, int y) { return axis_of(x) < axis_of(y); });
      nest.stages.back().loops = loops;
      build_stage(stage, index, partials);
    }
  }

 private:
  void make_loop(int axis, bool reduce, IndexVector& index, SmallVec<int, 6>& loops) {
    const std::int64_t extent = group_.domain[axis];
    if (extent == 1) return;
    // The outermost axis is most often the batch; its size is an argument, so that one kernel
    // serves all batches.
    const int l = builder_.add_loop(extent, reduce, axis == 0);
    if (axes_.size() <= static_cast<std::size_t>(l))
      axes_.resize(static_cast<std::size_t>(l) + 1, -1);
    axes_[l] = axis;
    IndexId& at = index[axis];
    at = builder_.variable(l);
    if (group_.direction < 0 && group_.reduced.contains(axis))
      at = builder_.indices().add(builder_.indices().scale(at, -1), extent - 1);
    loops.push_back(l);
  }
  int axis_of(int loop) const {
    return static_cast<std::size_t>(loop) < axes_.size() ? axes_[loop] : -1;
  }

  IndexVector kept_index(const IndexVector& index) const {
    IndexVector kept;
    for (std::size_t a = 0; a < index.size(); ++a)
      if (!group_.reduced.contains(static_cast<int>(a))) kept.push_back(index[a]);
    return kept;
  }

  void store(const FusionRoot& root, const IndexVector& index, bool after) {
    if (root.axis < 0 && !planner_.kept[root.value]) return;
    NestStore s;
    s.value = builder_.value_at(root.value, index);
    IndexVector at = index;
    if (root.axis == static_cast<int>(at.size())) {
      at.push_back(offset_of(root));
    } else if (root.axis >= 0) {
      auto& i = at[root.axis];
      i = builder_.indices().add(i, offset_of(root));
    }
    s.index = linear_index(builder_.indices(), at, graph_.aval(root.target).shape);
    s.buffer = builder_.buffer_of(root.target, true);
    s.stage = stage_;
    s.after = after;
    step_.nest.stores.push_back(s);
  }

  // Kernels of many parts are told the place of their first one, so that those which do the same
  // share their code.
  IndexId offset_of(const FusionRoot& root) {
    IndexTable& t = builder_.indices();
    if (!root.of_many) return t.constant(root.offset);
    const std::int64_t first = first_parts_.emplace(root.target, root.offset).entry->second;
    const std::int64_t extent = graph_.aval(root.target).shape[root.axis];
    return t.add(t.value(builder_.argument(DType::i64, first), extent), root.offset - first);
  }

  void build_stage(const FusionStage& stage, const IndexVector& index, const Partials* partials) {
    Nest& nest = step_.nest;
    // Roots of this stage are computed; those of earlier ones are read back, unless they are
    // scalars of the row.
    for (const FusionRoot& r : stage.full)
      if (r.axis < 0) builder_.compute_here(r.value, true);
    for (const FusionRoot& r : stage.after)
      if (r.axis < 0) builder_.compute_here(r.value, true);
    const IndexVector kept = kept_index(index);
    // Scans first, in the Graph's order: what they have at a point is known to all others there.
    Vec<int> reductions = stage.reductions;
    insertion_sort(reductions);
    if (!partials)
      for (int equation : reductions)
        if (is_scan(equation)) scan(equation, index);
    if (!partials)
      for (const FusionRoot& r : stage.full) store(r, index, false);
    // Partial results are numbered as the first half's reductions.
    std::size_t number = 0;
    for (int equation : reductions) {
      const Equation& e = graph_.equations[equation];
      if (is_scan(equation)) continue;
      if (!partials) count(equation);
      if (e.op == Op::reduce) {
        fold(e, index);
        continue;
      }
      const Var out = e.outputs[0];
      NestReduction r;
      r.op = family_of(e.op) == Family::reduce ? e.op : Op::reduce_sum;  // of products
      r.stage = stage_;
      r.where = e.where;
      if (partials) {
        IndexVector at{blocks_};
        at.append(kept.begin(), kept.end());
        r.value = builder_.load(partials->vars[number++], at, -1);
        r.dtype = nest.values[r.value].dtype;
        // the blocks' places; their elements are looked up again
        if (e.op == Op::argmax || e.op == Op::argmin) {
          r.position = r.value;
          const std::size_t axis = e.as<ArgParams>().axis;
          IndexVector element = index;
          element[axis] = builder_.clipped(r.position, group_.domain[axis] - 1, nullptr);
          r.value = builder_.value_at(e.inputs[0], element);
        }
      } else {
        operand(e, index, r);
      }
      r.kept = linear_index(nest.indices, kept, planner_.kept_shape(group_));
      nest.reductions.push_back(r);
      bind_result(out, static_cast<int>(nest.reductions.size() - 1));
    }
    for (int equation : reductions)
      for (Var out : graph_.equations[equation].outputs)
        if (!is_scan(equation) && planner_.kept[out]) store({out, out, -1, 0}, kept, true);
    for (const FusionRoot& r : stage.after) store(r, kept, true);
    for (const FusionRoot& r : stage.full)
      if (r.axis < 0) builder_.compute_here(r.value, false);
    // What a scan has at a point is known in its own loops only; later stages read it back.
    for (int equation : reductions)
      if (is_scan(equation)) builder_.unbind(graph_.equations[equation].outputs[0]);
  }

  bool is_scan(int equation) const {
    return family_of(graph_.equations[equation].op) == Family::cumulative;
  }

  void count(int equation) {
    step_.fused.push_back(equation);
    ++step_.nest.fused_ops;
  }

  void bind_result(Var out, int reduction) {
    NestValue result;
    result.kind = NestValue::Kind::reduced;
    result.argument = reduction;
    result.dtype = step_.nest.reductions[reduction].dtype;
    builder_.bind(out, builder_.convert(builder_.add_value(result), graph_.aval(out).dtype));
  }

  void scan(int equation, const IndexVector& index) {
    const Equation& e = graph_.equations[equation];
    const Var out = e.outputs[0];
    count(equation);
    const Aval& of = graph_.aval(out);
    const std::int64_t extent = of.shape[e.as<CumulativeParams>().axis];
    builder_.bind(out, add_scan(builder_, e.op, builder_.value_at(e.inputs[0], index), of.dtype,
                                stage_, of.elements() / std::max<std::int64_t>(extent, 1)));
    if (planner_.kept[out]) store({out, out, -1, 0}, index, false);
  }

  void fold(const Equation& e, const IndexVector& index) {
    const ReduceParams& p = e.as<ReduceParams>();
    const std::size_t n = e.inputs.size() / 2;
    Vec<int> elements, inits;
    for (std::size_t k = 0; k < n; ++k) {
      elements.push_back(builder_.value_at(e.inputs[k], index));
      inits.push_back(builder_.value_at(e.inputs[n + k], {}));
    }
    const int first = add_fold(builder_, *p.body, elements, inits, stage_);
    for (std::size_t k = 0; k < n; ++k) bind_result(e.outputs[k], first + static_cast<int>(k));
  }

  void operand(const Equation& e, const IndexVector& index, NestReduction& r) {
    if (e.op == Op::dot_general) {
      const DotParams& p = e.as<DotParams>();
      r.dtype = accumulator_of(Op::reduce_sum, p.dtype);
      const Shape& lhs = graph_.aval(e.inputs[0]).shape;
      const Shape& rhs = graph_.aval(e.inputs[1]).shape;
      IndexVector a(static_cast<std::size_t>(lhs.rank()), 0),
          b(static_cast<std::size_t>(rhs.rank()), 0);
      std::size_t next = 0;
      for (std::size_t k = 0; k < p.lhs_batch.size(); ++k, ++next) {
        a[p.lhs_batch[k]] = index[next];
        b[p.rhs_batch[k]] = index[next];
      }
      for (int axis = 0; axis < lhs.rank(); ++axis)
        if (!p.lhs_batch.contains(axis) && !p.lhs_contract.contains(axis)) a[axis] = index[next++];
      for (int axis = 0; axis < rhs.rank(); ++axis)
        if (!p.rhs_batch.contains(axis) && !p.rhs_contract.contains(axis)) b[axis] = index[next++];
      for (std::size_t k = 0; k < p.lhs_contract.size(); ++k, ++next) {
        a[p.lhs_contract[k]] = index[next];
        b[p.rhs_contract[k]] = index[next];
      }
      const int x = builder_.convert(builder_.value_at(e.inputs[0], a), r.dtype);
      const int y = builder_.convert(builder_.value_at(e.inputs[1], b), r.dtype);
      r.value = builder_.op(Op::mul, r.dtype, {x, y});
      return;
    }
    const int value = e.op == Op::overlap_add ? builder_.overlapping(e, index)
                                              : builder_.value_at(e.inputs[0], index);
    if (r.op == Op::argmax || r.op == Op::argmin) {
      r.value = value;
      r.dtype = graph_.aval(e.outputs[0]).dtype;
      NestValue position;
      position.kind = NestValue::Kind::index;
      position.dtype = r.dtype;
      position.index = index[e.as<ArgParams>().axis];
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
  Vec<int> axes_;
  // of long concatenations: the offset of the part that is stored first
  HashMap<Var, std::int64_t> first_parts_;
  IndexId blocks_ = -1;
  int stage_ = 0;
};

// Buffers and arguments that nothing in the nest uses any more are taken off its lists.
void drop_unused(FusedStep& step) {
  Nest& nest = step.nest;
  Vec<int> roots;
  for (const NestStore& s : nest.stores) roots.push_back(s.value);
  for (const NestReduction& r : nest.reductions) add_roots(r, roots);
  Vec<char> used(nest.buffers.size(), 0);
  Vec<std::int64_t> arguments;
  Vec<int> renumbered(step.arguments.size(), -1);
  for (int v : needed_values(nest, roots)) {
    const NestValue& value = nest.values[v];
    if (value.kind == NestValue::Kind::load) used[value.buffer] = 1;
    if (value.kind != NestValue::Kind::argument) continue;
    renumbered[value.argument] = static_cast<int>(arguments.size());
    arguments.push_back(step.arguments[value.argument]);
  }
  for (NestValue& value : nest.values) {
    if (value.kind != NestValue::Kind::argument) continue;
    value.argument = renumbered[value.argument];
    if (value.argument >= 0) continue;
    value.kind = NestValue::Kind::literal;
    value.literal = Scalar(0).converted(value.dtype);
  }
  nest.arguments = static_cast<int>(arguments.size());
  step.arguments = std::move(arguments);
  for (const NestStore& s : nest.stores) used[s.buffer] = 1;
  Vec<int> order;
  for (std::size_t b = 0; b < used.size(); ++b)
    if (used[b]) order.push_back(static_cast<int>(b));
  keep_buffers(nest, step.buffers, order);
}

// Makes the step the first half of a cut reduction: block results go to fresh Vars; epilogues are
// left to the second half.
Partials store_partials(FusedStep& step, int block_loop, const Shape& kept, GraphBody& graph,
                        NestSource& source) {
  Nest& nest = step.nest;
  const NestLoop& blocks = nest.loops[block_loop];
  Partials partials;
  partials.blocks = blocks.extent;
  partials.runtime = blocks.runtime;
  erase_if(nest.stores, [](const NestStore& s) { return s.after; });
  const IndexId block =
      nest.indices.loop(block_loop, blocks.runtime ? IndexTable::unbounded : blocks.extent);
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
  drop_unused(step);
  step.partial = true;
  return partials;
}

}  // namespace group_nests

void build_steps(const FusionPlanner& planner, const FusionGroup& group, GraphBody& graph,
                 NestSource& source, const FuseOptions& options, Vec<FusedStep>& steps) {
  using namespace group_nests;
  Partials partials;
  for (bool first = true;; first = false) {
    FusedStep step;
    GroupBuilder(planner, group, graph, source, step).build(first ? nullptr : &partials);
    normalise_loops(step.nest);
    if (options.on_host) unroll_short_loop(step.nest);
    ReductionCut cut =
        find_reduction_cut(step.nest, choose_schedule(step.nest, options.vector_bytes));
    if (!options.on_host &&
        any_of(step.nest.reductions, [](const NestReduction& r) { return r.position >= 0; }))
      cut = {};
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

}  // namespace vt::detail
