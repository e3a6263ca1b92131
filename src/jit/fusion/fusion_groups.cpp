// Forms the groups of equations that become one kernel each: which values are stored, and which are
// computed again where they are used.
#include "fusion_groups.hpp"

#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../nest/cost_model.hpp"
#include "../nest/schedule.hpp"
#include "matmul_spec.hpp"
#include "sort_spec.hpp"

#include <algorithm>
#include <numeric>

#include <vt/detail/small_vec.hpp>

namespace vt::detail {

namespace fusion_costs {

// In op_weight's units.
constexpr int worth_storing = 5;  // work that is not done twice
constexpr int worth_storing_scalar = 15;
constexpr int worth_storing_before_growth = 10;
constexpr std::int64_t worth_a_kernel = 128;  // thousands of operations that storing saves
constexpr int worth_vectors = 36;
constexpr std::int64_t enough_for_vectors = 64;
constexpr std::int64_t few_elements = 4;
// of a concatenation: more are not worth code of their own each
constexpr std::size_t many_parts = 16;
// a part of this many is read by single elements rather than made whole, in vectors
constexpr std::int64_t few_of = 4;

}  // namespace fusion_costs

constexpr int most_reduced_rank = 20;  // loops of a nest are few, also after they are split

// Bodies of user reductions become part of the loop: scalar operations only.
bool is_scalar_body(const GraphBody& body) {
  for (const Aval& a : body.avals)
    if (a.shape.rank() != 0) return false;
  for (const Equation& e : body.equations)
    if (!is_elementwise(e.op) && e.op != Op::full && e.op != Op::constant) return false;
  return body.equations.size() <= static_cast<std::size_t>(most_fused_weight / 4);
}

// Scans that are carried SIMD lane by SIMD lane instead of iteration by iteration; see
// nest_scans.cpp.
bool runs_one_by_one(const GraphBody& graph, const Equation& e) {
  if (e.op == Op::reduce || e.op == Op::cumlogsumexp) return true;
  const DType d = graph.aval(e.inputs[0]).dtype;
  return (e.op == Op::cumprod && is_float(d)) || (e.op == Op::cumsum && d == DType::f64);
}

// Updates that write a small part of their operand.
bool writes_window(const GraphBody& graph, const Equation& e) {
  if (is_scatter(e.op)) return true;
  constexpr std::int64_t few = 4;  // one in so many
  return e.op == Op::dynamic_update_slice &&
         graph.aval(e.inputs[0]).elements() >=
             few * std::max<std::int64_t>(graph.aval(e.inputs[1]).elements(), 1);
}

// Loop nests hold these; everything else is a step of its own.
bool can_fuse(const GraphBody& graph, const Equation& e) {
  switch (family_of(e.op)) {
    case Family::unary:
    case Family::binary:
    case Family::select: return true;
    case Family::leaf: return !is_unset(e);
    case Family::reduce:
      return graph.aval(e.inputs[0]).shape.rank() <= most_reduced_rank &&
             (e.op != Op::reduce || is_scalar_body(*e.as<ReduceParams>().body));
    case Family::cumulative: return graph.aval(e.inputs[0]).shape.rank() <= most_reduced_rank;
    case Family::shape: return true;
    case Family::window: return graph.aval(e.inputs[0]).shape.rank() <= most_reduced_rank;
    case Family::index:
      return !writes_window(graph, e) && (e.op == Op::slice || e.op == Op::dynamic_slice ||
                                          e.op == Op::dynamic_update_slice || e.op == Op::gather);
    case Family::contract: return e.op == Op::dot_general;
    default: return false;
  }
}

bool is_sorted_place(const GraphBody& graph, const Equation& sort, int definition) {
  if (sort.op != Op::sort || definition < 0) return false;
  const Equation& e = graph.equations[definition];
  return e.op == Op::iota && e.as<IotaParams>().axis == sort.as<SortParams>().axis &&
         can_be_place(graph.aval(e.outputs[0]).dtype);
}

FusionPlanner::FusionPlanner(const GraphBody& graph, const FuseOptions& options)
    : graph_(graph), options_(options) {
  const std::size_t vars = graph.avals.size();
  source.graph = &graph;
  source.definition = makers_of(graph);
  source.stored.assign(vars, 0);
  source.storage.resize(vars);
  std::iota(source.storage.begin(), source.storage.end(), 0);
  uses_.resize(vars);
  is_output_.assign(vars, 0);
  cost_.assign(vars, -1);
  reads_windows_.assign(vars, -1);
  kept.assign(vars, 0);
  place_.resize(vars);
  definer_.assign(vars, -1);
}

void FusionPlanner::run() {
  classify();
  mark_stored();
  make_groups();
  merge_all();
  mark_kept();
  sort_groups();
  put_updates_last();
}

void FusionPlanner::classify() {
  const std::size_t count = graph_.equations.size();
  inlined_.assign(count, 0);
  reduction_.assign(count, 0);
  pieces_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Equation& e = graph_.equations[i];
    for (Var v : e.inputs) {
      auto& list = uses_[v];
      if (list.empty() || list.back() != static_cast<int>(i)) list.push_back(static_cast<int>(i));
    }
    if (!can_fuse(graph_, e) || !has_code(e) ||
        (e.op == Op::dot_general && options_.matrix_products && !is_reduction_of_nest(graph_, e)))
      continue;
    const bool reduces =
        family_of(e.op) == Family::reduce || family_of(e.op) == Family::cumulative ||
        e.op == Op::dot_general ||
        (e.op == Op::overlap_add && overlap_iterations(e.as<WindowParams>()).elements() > 1);
    (reduces ? reduction_ : inlined_)[i] = 1;
  }
  for (Var v : graph_.inputs) source.stored[v] = 1;
}

bool FusionPlanner::has_code(const Equation& e) const {
  if (!options_.has_code) return true;
  if (e.op == Op::reduce)
    return all_of(e.as<ReduceParams>().body->equations,
                  [&](const Equation& inner) { return has_code(inner); });
  return !is_elementwise(e.op) || options_.has_code(e.op);
}

// Reshapes and gradient stops share the buffer of what they reshape.
Var FusionPlanner::base_of(Var v) const {
  for (;;) {
    const int d = source.definition[v];
    if (d < 0) return v;
    const Equation& e = graph_.equations[d];
    if (e.op != Op::reshape && e.op != Op::stop_gradient) return v;
    v = e.inputs[0];
  }
}

void FusionPlanner::mark(Var v) {
  const Var base = base_of(v);
  source.storage[v] = base;
  source.stored[v] = source.stored[base] = 1;
}

int FusionPlanner::cost(Var v) {
  int& known = cost_[v];
  if (known >= 0) return known;
  // Equations come in order, so operands have their cost when this is asked for in order.
  const int d = source.definition[v];
  if (d < 0 || source.stored[v] || !inlined_[d]) return known = 1;
  const Equation& e = graph_.equations[d];
  int sum = op_weight(e.op, graph_.aval(v).dtype);
  for (Var o : e.inputs) sum += cost(o);
  return known = std::min(sum, 1 << 20);
}

/// Whether v, perhaps after some element-wise operations, is reduced along an axis of which `own`
/// has more than one element.
bool FusionPlanner::is_reduced_along(Var v, const Shape& own, int depth) const {
  constexpr int deepest = 4;
  return any_of(uses_[v], [&](int i) {
    const Equation& e = graph_.equations[i];
    if (is_reduction(e.op))
      return any_of(e.as<AxesParams>().axes, [&](int a) { return own[a] > 1; });
    return is_elementwise(e.op) && depth < deepest &&
           is_reduced_along(e.outputs[0], own, depth + 1);
  });
}

/// Whether v is made of the Graph's inputs by a few element-wise operations, as negative indices
/// are, and without `written`: then it need not be laid out where a scatter into that reads it.
bool FusionPlanner::is_made_beside(Var v, Var written) {
  constexpr int few = 8;
  const int d = source.definition[v];
  if (d < 0) return base_of(v) != written;
  const Equation& e = graph_.equations[d];
  if (source.stored[v] || !inlined_[d] || cost(v) > few) return false;
  return (is_elementwise(e.op) || e.op == Op::full || e.op == Op::iota || e.op == Op::reshape ||
          e.op == Op::broadcast_in_dim) &&
         all_of(e.inputs, [&](Var o) { return is_made_beside(o, written); });
}

/// Is operand `k` of `e`, of this cost, laid out in memory, as it is computed again too often
/// otherwise?
bool FusionPlanner::is_stored_for(const Equation& e, bool is_reduction, std::size_t k,
                                  int cost) const {
  const Var o = e.inputs[k];
  if (cost > most_fused_weight) return true;
  switch (e.op) {
    case Op::dot_general:
      if (cost > 2 && !is_inner_product(graph_, e)) return true;
      break;
    case Op::gather:
      if (k == 0 && cost > 2 && !takes_parts(o)) return true;
      if (k == 1 && cost > fusion_costs::worth_storing_before_growth) return true;
      break;
    case Op::windows:
      // Windows that overlap, or are looked at twice, read the same elements again; they themselves
      // are never laid out.
      if (cost > fusion_costs::worth_storing &&
          (graph_.aval(e.outputs[0]).elements() > graph_.aval(o).elements() ||
           uses_[e.outputs[0]].size() > 1))
        return true;
      break;
    case Op::broadcast_in_dim:
      if (is_stored_for_broadcast(e, cost)) return true;
      break;
    default: break;
  }
  return is_reduction && cost > fusion_costs::worth_storing_before_growth &&
         runs_one_by_one(graph_, e);
}

bool FusionPlanner::is_stored_for_broadcast(const Equation& e, int cost) const {
  const Aval &from = graph_.aval(e.inputs[0]), &to = graph_.aval(e.outputs[0]);
  if (from.elements() <= 1 || to.elements() <= from.elements()) return false;
  const BroadcastParams& p = e.as<BroadcastParams>();
  // its value stays the same in the inner loops, so it is computed outside them
  bool leading = true, dilated = false;
  Shape own = Shape::filled(p.shape.rank(), 1);
  for (std::size_t a = 0; a < p.axes.size(); ++a) own[p.axes[a]] = from.shape[a];
  for (std::size_t a = 0; a < own.size(); ++a) {
    leading = leading && (own[a] == 1 || !dilated);
    dilated = dilated || own[a] != p.shape[a];
  }
  // … unless those inner loops are a few elements, and a sum goes along another axis.
  const std::int64_t times = to.elements() / from.elements();
  leading =
      leading && !(times <= fusion_costs::few_elements && is_reduced_along(e.outputs[0], own, 0));
  // A single number each time, next to few elements: what outweighs those goes faster in vectors of
  // its own.
  if (from.elements() >= fusion_costs::enough_for_vectors && cost >= fusion_costs::worth_vectors &&
      cost > 4 * times)
    return true;
  // Otherwise it is computed again for each element, or stored by a kernel of its own.
  return !leading && (cost >= fusion_costs::worth_storing_before_growth ||
                      (cost >= fusion_costs::worth_storing &&
                       cost * (to.elements() >> 10) >= fusion_costs::worth_a_kernel) ||
                      // What is laid out along short axes first (split_short_axes).
                      graph_.equations[source.definition[e.inputs[0]]].op == Op::broadcast_in_dim);
}

void FusionPlanner::mark_stored() {
  again.assign(graph_.avals.size(), 0);
  for (Var v : graph_.outputs) {
    is_output_[base_of(v)] = 1;
    mark(v);
  }
  for (std::size_t i = 0; i < graph_.equations.size(); ++i) {
    const Equation& e = graph_.equations[i];
    const bool own_step = !inlined_[i] && !reduction_[i];
    if (own_step || reduction_[i])
      for (Var v : e.outputs) source.stored[v] = 1;
    if (own_step) {
      for (std::size_t k = 0; k < e.inputs.size(); ++k) {
        // What a scatter starts from is copied anyway: a constant need not be laid out before.
        const int d = source.definition[e.inputs[k]];
        const bool constant = k == 0 && family_of(e.op) == Family::index && d >= 0 &&
                              graph_.equations[d].op == Op::full;
        const bool places = k == 1 && is_scatter(e.op) && options_.on_host &&
                            is_made_beside(e.inputs[k], base_of(e.inputs[0]));
        if (!constant && !places && !is_sorted_place(graph_, e, d)) mark(e.inputs[k]);
      }
    }
    if (e.op == Op::constant && graph_.aval(e.outputs[0]).elements() != 1)
      source.stored[e.outputs[0]] = 1;
    if (own_step) continue;
    // Operands that are read more often than they have elements are not computed again each time.
    for (std::size_t k = 0; k < e.inputs.size(); ++k) {
      const Var o = e.inputs[k];
      if (source.stored[o] || source.definition[o] < 0) continue;
      const int c = cost(o);
      if (!is_stored_for(e, reduction_[i], k, c)) continue;
      again[base_of(o)] = c;
      mark(o);
      cost_[o] = 1;
    }
    if (e.op == Op::concatenate) {
      int sum = 0;
      for (Var o : e.inputs) sum += cost(o);
      const bool in_parts =
          interleaved(e)
              ? joins_its_parts(e)
              : e.inputs.size() > 4 || (sum > 10 && graph_.aval(e.outputs[0]).elements() >= 256);
      if (in_parts) {
        pieces_[i] = 1;
        source.stored[e.outputs[0]] = 1;
      }
    }
    for (Var v : e.outputs) {
      if (source.stored[v]) continue;
      const int limit = graph_.aval(v).elements() == 1 ? fusion_costs::worth_storing_scalar
                                                       : fusion_costs::worth_storing;
      const bool view = e.op == Op::reshape || e.op == Op::stop_gradient || e.op == Op::windows;
      if (!view && uses_[v].size() > 1 && cost(v) > limit && !takes_parts(v)) {
        again[v] = cost(v);
        source.stored[v] = 1;
        cost_[v] = 1;
      }
    }
  }
  // What was marked through a reshape after its consumers were looked at.
  for (std::size_t v = 0; v < source.stored.size(); ++v)
    if (source.stored[v] && base_of(static_cast<Var>(v)) != static_cast<Var>(v))
      mark(static_cast<Var>(v));
}

// Gathers that take few of its elements compute those alone: image[i][j] of many i and j lays out
// no rows. Slices that share out its elements compute each of them once, where each has one reader.
bool FusionPlanner::takes_parts(Var v) const {
  std::int64_t taken = 0;
  for (int i : uses_[v]) {
    const Equation& e = graph_.equations[i];
    // effects have no outputs
    const auto part = [&] { return graph_.aval(e.outputs[0]).elements(); };
    if (e.op == Op::gather && e.inputs[0] == v && e.inputs[1] != v) {
      taken += part() * fusion_costs::few_of;
    } else if (e.op == Op::slice) {
      Var read = e.outputs[0];
      for (;;) {
        const auto& readers = uses_[read];
        if (readers.size() != 1 || is_output_[read]) return false;
        const Equation& next = graph_.equations[readers[0]];
        if (next.op != Op::reshape) break;
        read = next.outputs[0];
      }
      taken += part();
    } else {
      return false;
    }
  }
  return taken <= graph_.aval(v).elements();
}

// Single elements beside each other: stored together by one body.
bool FusionPlanner::interleaved(const Equation& e) const {
  const int last = graph_.aval(e.outputs[0]).shape.rank() - 1;
  return options_.on_host && e.as<AxisParams>().axis == last &&
         static_cast<std::int64_t>(e.inputs.size()) <= most_interleaved &&
         all_of(e.inputs, [&](Var v) { return graph_.aval(v).shape[last] == 1; });
}

// Whether what is interleaved has parts that each read a value which is stored over computed again:
// part by part, without the last axis, they are stored by the kernel that computes those.
bool FusionPlanner::joins_its_parts(const Equation& e) const {
  return all_of(e.inputs, [&](Var interleaved) {
    const Var part = without_last_axis(interleaved);
    Vec<Var> pending, seen;
    if (part != interleaved) pending.push_back(part);
    while (!pending.empty()) {
      const Var v = pending.back();
      pending.pop_back();
      if (std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
      seen.push_back(v);
      if (again[v] > 0 && graph_.aval(v).shape == graph_.aval(part).shape) return true;
      const int d = source.definition[v];
      if (d < 0 || source.stored[v] || !is_elementwise(graph_.equations[d].op)) continue;
      for (Var o : graph_.equations[d].inputs) pending.push_back(o);
    }
    return false;
  });
}

// What a last axis of one element was added to, or v.
Var FusionPlanner::without_last_axis(Var v) const {
  const int d = source.definition[v];
  if (d < 0 || graph_.equations[d].op != Op::reshape) return v;
  const Var o = graph_.equations[d].inputs[0];
  Shape shape = graph_.aval(o).shape;
  shape.push_back(1);
  return shape == graph_.aval(v).shape ? o : v;
}

bool FusionPlanner::reads_windows(Var v) {
  signed char& known = reads_windows_[v];
  if (known >= 0) return known != 0;
  const int d = source.definition[v];
  bool reads = false;
  if (d >= 0 && !source.stored[v]) {
    const Equation& e = graph_.equations[d];
    reads = e.op == Op::windows;
    for (Var o : e.inputs) reads = reads || reads_windows(o);
  }
  known = reads;
  return reads;
}

Shape FusionPlanner::kept_shape(const FusionGroup& g) const {
  Shape s;
  for (int a = 0; a < g.domain.rank(); ++a)
    if (!g.reduced.contains(a)) s.push_back(g.domain[a]);
  return s;
}

void FusionPlanner::walk(Var v, bool regular, const SmallVec<int, 6>& axes, Vec<FusionRead>& reads,
                         bool root) {
  const std::size_t k = v;
  const int d = source.definition[k];
  SmallVec<int, 6> key = axes;
  key.push_back(regular ? -2 : -3);
  for (const auto& [var, seen] : walked_)
    if (var == v && seen == key) return;
  walked_.push_back({v, key});
  if (!root && source.stored[k]) {
    // A reshape of a stored Var reads that Var's buffer; its own axes say nothing about the
    // other's, unless it is the same shape.
    const Var base = source.storage[k];
    reads.push_back({base, regular && graph_.aval(base).shape == graph_.aval(v).shape, axes});
    return;
  }
  if (d < 0) return;
  const Equation& e = graph_.equations[d];
  if (is_elementwise(e.op)) {
    for (Var o : e.inputs)
      walk(o, regular, graph_.aval(o).shape.rank() == 0 ? SmallVec<int, 6>{} : axes, reads, false);
    return;
  }
  SmallVec<int, 6> inner;
  if (regular && e.op == Op::transpose) {
    const Axes& permutation = e.as<PermutationParams>().permutation;
    inner.resize(axes.size(), -1);
    for (std::size_t i = 0; i < axes.size(); ++i) inner[permutation[i]] = axes[i];
    walk(e.inputs[0], true, inner, reads, false);
    return;
  }
  if (regular && e.op == Op::broadcast_in_dim) {
    const BroadcastParams& p = e.as<BroadcastParams>();
    for (std::size_t i = 0; i < p.axes.size(); ++i)
      inner.push_back(graph_.aval(e.inputs[0]).shape[i] == 1 ? -1 : axes[p.axes[i]]);
    walk(e.inputs[0], true, inner, reads, false);
    return;
  }
  if (regular && e.op == Op::reshape) {  // that only adds or drops axes of extent 1
    const Shape& from = graph_.aval(e.inputs[0]).shape;
    const Shape& to = graph_.aval(v).shape;
    std::size_t i = 0;
    bool units = true;
    for (std::size_t j = 0; j < from.size() && units; ++j) {
      if (from[j] == 1) {
        inner.push_back(-1);
        continue;
      }
      while (i < to.size() && to[i] == 1) ++i;
      units = i < to.size() && to[i] == from[j];
      if (units) inner.push_back(axes[i++]);
    }
    walk(e.inputs[0], units, units ? inner : SmallVec<int, 6>{}, reads, false);
    return;
  }
  for (Var o : e.inputs) walk(o, false, {}, reads, false);
}

namespace fusion_groups {

SmallVec<int, 6> all_axes(int rank) {
  SmallVec<int, 6> axes;
  for (int a = 0; a < rank; ++a) axes.push_back(a);
  return axes;
}

}  // namespace fusion_groups

int FusionPlanner::add_group(FusionGroup g) {
  const int id = static_cast<int>(groups.size());
  for (Var v : g.defines) definer_[v] = id;
  groups.push_back(std::move(g));
  return id;
}

/// A kernel that stores one value, or a part of a concatenation.
void FusionPlanner::add_elementwise(FusionRoot root) {
  FusionGroup g;
  g.domain = graph_.aval(root.value).shape;
  FusionStage stage;
  stage.full.push_back(root);
  walked_.clear();
  // A part of a concatenation that is stored itself is read; anything else is computed by this
  // group.
  const bool copies = root.axis >= 0 && source.stored[root.value];
  walk(root.value, true, fusion_groups::all_axes(g.domain.rank()), stage.full_reads, !copies);
  g.stages.push_back(std::move(stage));
  g.weight = std::max(cost_[root.value], 1);
  const int d = source.definition[root.value];
  if (d >= 0 && !copies) {
    g.weight = op_weight(graph_.equations[d].op, graph_.aval(root.value).dtype);
    for (Var o : graph_.equations[d].inputs) g.weight += cost(o);
  }
  (root.axis < 0 ? g.defines : g.parts_of).push_back(root.target);
  const int id = add_group(std::move(g));
  if (root.axis < 0) place_[root.value] = {id, 0, PlaceInGroup::Kind::full};
}

/// An equation that is a step of its own.
void FusionPlanner::add_step(int equation, int& last_effect) {
  const Equation& e = graph_.equations[equation];
  FusionGroup g;
  g.equation = equation;
  FusionStage stage;
  for (Var o : e.inputs) stage.full_reads.push_back({source.storage[o], false, {}});
  g.stages.push_back(std::move(stage));
  for (Var v : e.outputs) g.defines.push_back(v);
  const int id = add_group(std::move(g));
  if (!keeps_order(e)) return;
  groups[id].before = last_effect;
  if (last_effect >= 0) groups[last_effect].after = id;
  last_effect = id;
}

void FusionPlanner::add_reduction(int equation) {
  const Equation& e = graph_.equations[equation];
  const Var out = e.outputs[0];
  FusionGroup g;
  FusionStage stage;
  g.has_reductions = true;
  stage.reductions.push_back(equation);
  walked_.clear();
  const auto reduce = [&](std::int64_t extent) {
    g.reduced.push_back(g.domain.rank());
    g.domain.push_back(extent);
  };
  if (e.op == Op::dot_general) {
    const DotParams& p = e.as<DotParams>();
    g.domain = graph_.aval(out).shape;
    for (int axis : p.lhs_contract) reduce(graph_.aval(e.inputs[0]).shape[axis]);
    for (Var o : e.inputs) walk(o, false, {}, stage.full_reads, false);
    g.weight = 2 + cost(e.inputs[0]) + cost(e.inputs[1]);
  } else if (e.op == Op::overlap_add) {
    const WindowParams& p = e.as<WindowParams>();
    g.domain = graph_.aval(out).shape;
    for (std::int64_t iterations : overlap_iterations(p)) reduce(iterations);
    walk(e.inputs[0], false, {}, stage.full_reads, false);
    g.weight = 2 + 4 * static_cast<int>(p.axes.size()) + cost(e.inputs[0]);
    g.slides = true;
  } else {
    g.domain = graph_.aval(e.inputs[0]).shape;
    g.lone = runs_one_by_one(graph_, e);
    g.weight = 2;
    if (e.op == Op::argmax || e.op == Op::argmin) {
      g.reduced = Axes(e.as<ArgParams>().axis);
      g.direction = 1;  // the first of equals wins
    } else if (e.op == Op::reduce) {
      g.reduced = e.as<ReduceParams>().axes;
      g.direction = 1;
      g.weight += static_cast<int>(e.as<ReduceParams>().body->equations.size());
    } else if (family_of(e.op) == Family::cumulative) {
      g.reduced = Axes(e.as<CumulativeParams>().axis);
      g.direction = e.as<CumulativeParams>().reverse ? -1 : 1;
    } else {
      g.reduced = e.as<AxesParams>().axes;
    }
    for (Var o : e.inputs) {
      // Operands at every point; what a user's reduction starts from is one number.
      walk(o, true, fusion_groups::all_axes(graph_.aval(o).shape.rank()), stage.full_reads, false);
      g.slides = g.slides || reads_windows(o);
      g.weight += cost(o);
    }
  }
  g.stages.push_back(std::move(stage));
  for (Var v : e.outputs) g.defines.push_back(v);
  const int id = add_group(std::move(g));
  for (Var v : e.outputs) place_[v] = {id, 0, place_kind(e)};
}

/// A concatenation that is stored part by part.
void FusionPlanner::add_parts(int equation) {
  const Equation& e = graph_.equations[equation];
  const Var out = e.outputs[0];
  const int axis = e.as<AxisParams>().axis;
  const bool is_interleaved = interleaved(e), of_many = e.inputs.size() > fusion_costs::many_parts;
  std::int64_t offset = 0;
  FusionGroup join;
  join.equation = equation;
  join.joins = true;
  for (Var o : e.inputs) {
    if (graph_.aval(o).elements() > 0) {
      join.parts.push_back(static_cast<int>(groups.size()));
      add_elementwise({is_interleaved ? without_last_axis(o) : o, out, axis, offset, of_many});
    }
    offset += graph_.aval(o).shape[axis];
  }
  join.defines.push_back(out);
  add_group(std::move(join));
}

void FusionPlanner::make_groups() {
  int last_effect = -1;
  for (int i = 0; i < static_cast<int>(graph_.equations.size()); ++i) {
    const Equation& e = graph_.equations[i];
    if (reduction_[i]) {
      add_reduction(i);
    } else if (!inlined_[i]) {
      add_step(i, last_effect);
    } else if (const Var out = e.outputs[0]; source.stored[out] && base_of(out) == out &&
                                             graph_.aval(out).elements() != 0 &&
                                             e.op != Op::constant) {
      if (pieces_[i]) add_parts(i);
      else add_elementwise({out, out, -1, 0});
    }
  }
  leader_.resize(groups.size());
  std::iota(leader_.begin(), leader_.end(), 0);
  // groups are made in the Graph's order: each reads what earlier ones define
  first_ = latest_ = leader_;
  readers_.resize(graph_.avals.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const FusionStage& s : groups[g].stages)
      for (const FusionRead& r : s.full_reads) readers_[r.var].push_back(static_cast<int>(g));
}

}  // namespace vt::detail
