// Finds the groups of equations that become one kernel: what is stored, what is computed again on the spot, and which groups
// can run as one.
#include "fusion_groups.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace vt::detail {

namespace fusion_costs {

constexpr int most_weight = 400;       // of one kernel; compile time grows faster than its gain
constexpr int most_buffers = 40;
constexpr int worth_storing = 4;       // work that is not done twice
constexpr int worth_storing_scalar = 12;
constexpr int worth_storing_before_growth = 8;

int of(Op op, DType d) {
  switch (op) {
    case Op::exp: case Op::exp2: case Op::expm1: case Op::log: case Op::log1p: case Op::log2: case Op::cbrt: case Op::sin: case Op::cos:
    case Op::tan: case Op::asin: case Op::acos: case Op::atan: case Op::sinh: case Op::cosh: case Op::tanh: case Op::asinh: case Op::acosh:
    case Op::atanh: case Op::sigmoid: case Op::erf: case Op::erfc: case Op::erf_inv: case Op::pow: case Op::atan2:
      return 12;
    case Op::lgamma: case Op::digamma: return 40;
    case Op::div: case Op::sqrt: case Op::rsqrt: case Op::nextafter: return 4;
    case Op::rem: return 8;
    case Op::reshape: case Op::transpose: case Op::broadcast_in_dim: case Op::slice: case Op::rev: case Op::full: case Op::stop_gradient:
      return 0;
    case Op::gather: case Op::dynamic_slice: case Op::pad: case Op::dynamic_update_slice: case Op::concatenate: return 2;
    default: return d == DType::f16 || d == DType::bf16 ? 2 : 1;
  }
}

}  // namespace fusion_costs

// Loop nests hold these; everything else is a step of its own.
bool can_fuse(const GraphBody& graph, const Equation& e) {
  switch (family_of(e.op)) {
    case Family::unary: case Family::binary: case Family::select: case Family::leaf: return true;
    case Family::reduce: return e.op != Op::reduce && graph.aval(e.inputs[0]).shape.rank() <= 8;
    case Family::shape: return true;
    case Family::index: return e.op == Op::slice || e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice || e.op == Op::gather;
    case Family::contract: return true;
    default: return false;
  }
}

FusionPlanner::FusionPlanner(const GraphBody& graph, const FuseOptions& options) : graph_(graph), options_(options) {
  const std::size_t vars = graph.avals.size();
  source.graph = &graph;
  source.definition.assign(vars, -1);
  source.stored.assign(vars, 0);
  source.storage.resize(vars);
  std::iota(source.storage.begin(), source.storage.end(), 0);
  uses_.resize(vars);
  is_output_.assign(vars, 0);
  cost_.assign(vars, -1);
  kept.assign(vars, 0);
  place_.resize(vars);
  definers_.resize(vars);
}

void FusionPlanner::run() {
  classify();
  mark_stored();
  make_groups();
  merge_all();
  mark_kept();
  sort_groups();
}

void FusionPlanner::classify() {
  const std::size_t count = graph_.equations.size();
  inlined_.assign(count, 0);
  reduction_.assign(count, 0);
  pieces_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Equation& e = graph_.equations[i];
    for (Var v : e.outputs) source.definition[static_cast<std::size_t>(v)] = static_cast<int>(i);
    for (Var v : e.inputs) {
      auto& list = uses_[static_cast<std::size_t>(v)];
      if (list.empty() || list.back() != static_cast<int>(i)) list.push_back(static_cast<int>(i));
    }
    if (!can_fuse(graph_, e) || (e.op == Op::dot_general && options_.matrix_products)) continue;
    const bool reduces = family_of(e.op) == Family::reduce || e.op == Op::dot_general;
    (reduces ? reduction_ : inlined_)[i] = 1;
  }
  for (Var v : graph_.inputs) source.stored[static_cast<std::size_t>(v)] = 1;
}

// Reshapes and gradient stops share the buffer of what they reshape.
Var FusionPlanner::base_of(Var v) const {
  for (;;) {
    const int d = source.definition[static_cast<std::size_t>(v)];
    if (d < 0) return v;
    const Equation& e = graph_.equations[static_cast<std::size_t>(d)];
    if (e.op != Op::reshape && e.op != Op::stop_gradient) return v;
    v = e.inputs[0];
  }
}

void FusionPlanner::mark(Var v) {
  const Var base = base_of(v);
  source.storage[static_cast<std::size_t>(v)] = base;
  source.stored[static_cast<std::size_t>(v)] = source.stored[static_cast<std::size_t>(base)] = 1;
}

int FusionPlanner::cost(Var v) {
  int& known = cost_[static_cast<std::size_t>(v)];
  if (known >= 0) return known;
  // Equations come in order, so operands have their cost when this is asked for in order.
  const int d = source.definition[static_cast<std::size_t>(v)];
  if (d < 0 || source.stored[static_cast<std::size_t>(v)] || !inlined_[static_cast<std::size_t>(d)]) return known = 1;
  const Equation& e = graph_.equations[static_cast<std::size_t>(d)];
  int sum = fusion_costs::of(e.op, graph_.aval(v).dtype);
  for (Var o : e.inputs) sum += cost(o);
  return known = std::min(sum, 1 << 20);
}

void FusionPlanner::mark_stored() {
  for (Var v : graph_.outputs) {
    is_output_[static_cast<std::size_t>(base_of(v))] = 1;
    mark(v);
  }
  for (std::size_t i = 0; i < graph_.equations.size(); ++i) {
    const Equation& e = graph_.equations[i];
    const bool own_step = !inlined_[i] && !reduction_[i];
    if (own_step || reduction_[i])
      for (Var v : e.outputs) source.stored[static_cast<std::size_t>(v)] = 1;
    if (own_step) {
      for (std::size_t k = 0; k < e.inputs.size(); ++k) {
        // What a scatter starts from is copied anyway: a constant need not be laid out before.
        const int d = source.definition[static_cast<std::size_t>(e.inputs[k])];
        const bool constant = k == 0 && family_of(e.op) == Family::index && d >= 0 && graph_.equations[static_cast<std::size_t>(d)].op == Op::full;
        if (!constant) mark(e.inputs[k]);
      }
    }
    if (e.op == Op::constant && graph_.aval(e.outputs[0]).elements() != 1) source.stored[static_cast<std::size_t>(e.outputs[0])] = 1;
    if (own_step) continue;
    // Operands that are read more often than they have elements are not computed again each time.
    for (std::size_t k = 0; k < e.inputs.size(); ++k) {
      const Var o = e.inputs[k];
      if (source.stored[static_cast<std::size_t>(o)] || source.definition[static_cast<std::size_t>(o)] < 0) continue;
      const int c = cost(o);
      bool store = c > fusion_costs::most_weight;
      if (e.op == Op::dot_general || (e.op == Op::gather && k == 0)) store = store || c > 2;
      if (e.op == Op::gather && k == 1) store = store || c > fusion_costs::worth_storing_before_growth;
      if (e.op == Op::broadcast_in_dim && graph_.aval(o).elements() > 1 && graph_.aval(e.outputs[0]).elements() > graph_.aval(o).elements()) {
        const Axes& axes = e.as<BroadcastParams>().axes;
        bool leading = true;  // its value stays the same in the inner loops, so it is computed outside them
        for (std::size_t a = 0; a < axes.size(); ++a)
          leading = leading && (axes[a] == static_cast<int>(a) || graph_.aval(o).shape[a] == 1);
        store = store || (!leading && c >= fusion_costs::worth_storing_before_growth);
      }
      if (store) {
        mark(o);
        cost_[static_cast<std::size_t>(o)] = 1;
      }
    }
    if (e.op == Op::concatenate) {
      int sum = 0;
      for (Var o : e.inputs) sum += cost(o);
      const bool in_parts = e.inputs.size() > 4 || (sum > 8 && graph_.aval(e.outputs[0]).elements() >= 256);
      if (in_parts) {
        pieces_[i] = 1;
        source.stored[static_cast<std::size_t>(e.outputs[0])] = 1;
      }
    }
    for (Var v : e.outputs) {
      if (source.stored[static_cast<std::size_t>(v)]) continue;
      const int limit = graph_.aval(v).elements() == 1 ? fusion_costs::worth_storing_scalar : fusion_costs::worth_storing;
      const bool view = e.op == Op::reshape || e.op == Op::stop_gradient;
      if (!view && uses_[static_cast<std::size_t>(v)].size() > 1 && cost(v) > limit) {
        source.stored[static_cast<std::size_t>(v)] = 1;
        cost_[static_cast<std::size_t>(v)] = 1;
      }
    }
  }
  // What was marked through a reshape after its consumers were looked at.
  for (std::size_t v = 0; v < source.stored.size(); ++v)
    if (source.stored[v] && base_of(static_cast<Var>(v)) != static_cast<Var>(v)) mark(static_cast<Var>(v));
}

Shape FusionPlanner::kept_shape(const FusionGroup& g) const {
  Shape s;
  for (int a = 0; a < g.domain.rank(); ++a)
    if (!g.reduced.contains(a)) s.push_back(g.domain[static_cast<std::size_t>(a)]);
  return s;
}

void FusionPlanner::walk(Var v, bool regular, const SmallVec<int, 6>& axes, std::vector<FusionRead>& reads, bool root) {
  const auto k = static_cast<std::size_t>(v);
  const int d = source.definition[k];
  SmallVec<int, 6> key = axes;
  key.push_back(regular ? -2 : -3);
  for (const auto& [var, seen] : walked_)
    if (var == v && seen == key) return;
  walked_.push_back({v, key});
  if (!root && source.stored[k]) {
    // A reshape of a stored Var reads that Var's buffer; its own axes say nothing about the other's, unless it is the same shape.
    const Var base = source.storage[k];
    reads.push_back({base, regular && graph_.aval(base).shape == graph_.aval(v).shape, axes});
    return;
  }
  if (d < 0) return;
  const Equation& e = graph_.equations[static_cast<std::size_t>(d)];
  if (is_elementwise(e.op)) {
    for (Var o : e.inputs) walk(o, regular, graph_.aval(o).shape.rank() == 0 ? SmallVec<int, 6>{} : axes, reads, false);
    return;
  }
  SmallVec<int, 6> inner;
  if (regular && e.op == Op::transpose) {
    const Axes& permutation = e.as<PermutationParams>().permutation;
    inner.resize(axes.size(), -1);
    for (std::size_t i = 0; i < axes.size(); ++i) inner[static_cast<std::size_t>(permutation[i])] = axes[i];
    walk(e.inputs[0], true, inner, reads, false);
    return;
  }
  if (regular && e.op == Op::broadcast_in_dim) {
    const BroadcastParams& p = e.as<BroadcastParams>();
    for (std::size_t i = 0; i < p.axes.size(); ++i)
      inner.push_back(graph_.aval(e.inputs[0]).shape[i] == 1 ? -1 : axes[static_cast<std::size_t>(p.axes[i])]);
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

void FusionPlanner::make_groups() {
  const auto all_axes = [](int rank) {
    SmallVec<int, 6> axes;
    for (int a = 0; a < rank; ++a) axes.push_back(a);
    return axes;
  };
  const auto add_elementwise = [&](FusionRoot root, const Shape& domain) {
    FusionGroup g;
    g.domain = domain;
    FusionStage stage;
    stage.full.push_back(root);
    walked_.clear();
    // A part of a concatenation that is stored itself is read; anything else is computed by this group.
    const bool copies = root.axis >= 0 && source.stored[static_cast<std::size_t>(root.value)];
    walk(root.value, true, all_axes(domain.rank()), stage.full_reads, !copies);
    g.stages.push_back(std::move(stage));
    g.weight = std::max(cost_[static_cast<std::size_t>(root.value)], 1);
    const int d = source.definition[static_cast<std::size_t>(root.value)];
    if (d >= 0 && !copies) {
      g.weight = fusion_costs::of(graph_.equations[static_cast<std::size_t>(d)].op, graph_.aval(root.value).dtype);
      for (Var o : graph_.equations[static_cast<std::size_t>(d)].inputs) g.weight += cost(o);
    }
    g.defines.push_back(root.target);
    groups.push_back(std::move(g));
    const int id = static_cast<int>(groups.size() - 1);
    definers_[static_cast<std::size_t>(root.target)].push_back(id);
    if (root.axis < 0) place_[static_cast<std::size_t>(root.value)] = {id, 0, Place::Kind::full};
  };
  for (std::size_t i = 0; i < graph_.equations.size(); ++i) {
    const Equation& e = graph_.equations[i];
    if (!inlined_[i] && !reduction_[i]) {
      FusionGroup g;
      g.equation = static_cast<int>(i);
      FusionStage stage;
      for (Var o : e.inputs) stage.full_reads.push_back({source.storage[static_cast<std::size_t>(o)], false, {}});
      g.stages.push_back(std::move(stage));
      for (Var v : e.outputs) g.defines.push_back(v);
      groups.push_back(std::move(g));
      for (Var v : e.outputs) definers_[static_cast<std::size_t>(v)].push_back(static_cast<int>(groups.size() - 1));
      continue;
    }
    const Var out = e.outputs[0];
    if (reduction_[i]) {
      FusionGroup g;
      FusionStage stage;
      g.has_reductions = true;
      stage.reductions.push_back(static_cast<int>(i));
      walked_.clear();
      if (e.op == Op::dot_general) {
        const DotParams& p = e.as<DotParams>();
        const Shape& lhs = graph_.aval(e.inputs[0]).shape;
        g.domain = graph_.aval(out).shape;
        for (std::size_t k = 0; k < p.lhs_contract.size(); ++k) {
          g.reduced.push_back(g.domain.rank());
          g.domain.push_back(lhs[static_cast<std::size_t>(p.lhs_contract[k])]);
        }
        for (Var o : e.inputs) walk(o, false, {}, stage.full_reads, false);
        g.weight = 2 + cost(e.inputs[0]) + cost(e.inputs[1]);
      } else {
        g.domain = graph_.aval(e.inputs[0]).shape;
        if (e.op == Op::argmax || e.op == Op::argmin) g.reduced = Axes(e.as<ArgParams>().axis);
        else g.reduced = e.as<AxesParams>().axes;
        walk(e.inputs[0], true, all_axes(g.domain.rank()), stage.full_reads, false);
        g.weight = 2 + cost(e.inputs[0]);
      }
      g.stages.push_back(std::move(stage));
      g.defines.push_back(out);
      groups.push_back(std::move(g));
      const int id = static_cast<int>(groups.size() - 1);
      definers_[static_cast<std::size_t>(out)].push_back(id);
      place_[static_cast<std::size_t>(out)] = {id, 0, Place::Kind::reduction};
      continue;
    }
    if (!source.stored[static_cast<std::size_t>(out)] || base_of(out) != out || graph_.aval(out).elements() == 0) continue;
    if (e.op == Op::constant) continue;
    if (pieces_[i]) {
      const int axis = e.as<AxisParams>().axis;
      std::int64_t offset = 0;
      for (Var o : e.inputs) {
        if (graph_.aval(o).elements() > 0) add_elementwise({o, out, axis, offset}, graph_.aval(o).shape);
        offset += graph_.aval(o).shape[static_cast<std::size_t>(axis)];
      }
      continue;
    }
    add_elementwise({out, out, -1, 0}, graph_.aval(out).shape);
  }
  leader_.resize(groups.size());
  std::iota(leader_.begin(), leader_.end(), 0);
  first_ = last_ = leader_;
}

int FusionPlanner::find(int g) const {
  while (leader_[static_cast<std::size_t>(g)] != g) {
    int& up = leader_[static_cast<std::size_t>(g)];
    up = leader_[static_cast<std::size_t>(up)];
    g = up;
  }
  return g;
}

std::vector<int> FusionPlanner::inputs_of(int group) const {
  std::vector<int> result;
  for (const FusionStage& s : groups[static_cast<std::size_t>(group)].stages)
    for (const auto* reads : {&s.full_reads, &s.after_reads})
      for (const FusionRead& r : *reads)
        for (int d : definers_[static_cast<std::size_t>(r.var)]) {
          const int g = find(d);
          if (g != group && std::find(result.begin(), result.end(), g) == result.end()) result.push_back(g);
        }
  return result;
}

// Does `from` depend on `to`, other than by reading it directly (if skip_direct)?
bool FusionPlanner::reaches(int from, int to, int skip_direct) const {
  std::vector<int> pending;
  std::vector<char> seen(groups.size(), 0);
  // Groups are made in the Graph's order: one whose last part comes before all of `to` cannot depend on it.
  const int earliest = first_[static_cast<std::size_t>(to)];
  for (int g : inputs_of(from))
    if (!(skip_direct && g == to) && last_[static_cast<std::size_t>(g)] >= earliest) pending.push_back(g);
  while (!pending.empty()) {
    const int g = pending.back();
    pending.pop_back();
    if (g == to) return true;
    if (seen[static_cast<std::size_t>(g)]) continue;
    seen[static_cast<std::size_t>(g)] = 1;
    for (int i : inputs_of(g))
      if (last_[static_cast<std::size_t>(i)] >= earliest) pending.push_back(i);
  }
  return false;
}

namespace fusion_relations {

bool is_identity(const FusionRead& r, const Shape& domain, const Shape& shape) {
  if (!r.regular || static_cast<int>(r.axes.size()) != domain.rank() || shape != domain) return false;
  for (std::size_t i = 0; i < r.axes.size(); ++i)
    if (r.axes[i] != static_cast<int>(i) && domain[i] != 1) return false;
  return true;
}

// Axis i of the Var runs along the i-th kept axis.
bool is_row(const FusionRead& r, const FusionGroup& g, const Shape& shape) {
  if (!r.regular) return false;
  SmallVec<int, 6> kept;
  for (int a = 0; a < g.domain.rank(); ++a)
    if (!g.reduced.contains(a)) kept.push_back(a);
  if (r.axes.size() != kept.size() || r.axes.size() != shape.size()) return false;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (r.axes[i] != kept[i] && shape[i] != 1) return false;
  return true;
}

bool trailing(const FusionGroup& g) {
  for (std::size_t i = 0; i < g.reduced.size(); ++i)
    if (g.reduced[i] != g.domain.rank() - static_cast<int>(g.reduced.size()) + static_cast<int>(i)) return false;
  return true;
}

}  // namespace fusion_relations

// Where `stage` of group b can go in group a: at the earliest stage at which what it reads of a is known. `as_after`: its
// stores become epilogues of that stage.
bool FusionPlanner::place_stage(const FusionGroup& a, int a_id, const FusionStage& stage, const FusionGroup& b, int first_stage, int* at,
                                bool* as_after) const {
  using namespace fusion_relations;
  const bool same_domain = a.domain == b.domain && (!a.has_reductions || !b.has_reductions || a.reduced == b.reduced);
  const Shape kept_of_a = kept_shape(a);
  *as_after = !same_domain && a.has_reductions && !b.has_reductions && b.domain == kept_of_a;
  if (!same_domain && !*as_after) return false;
  FusionGroup frame;  // the axes by which reads are judged
  frame.domain = a.domain;
  frame.reduced = a.has_reductions ? a.reduced : b.reduced;
  int earliest = first_stage;
  const auto check = [&](const std::vector<FusionRead>& reads, bool after) {
    for (const FusionRead& r : reads) {
      bool mine = false;
      for (int d : definers_[static_cast<std::size_t>(r.var)]) mine = mine || find(d) == a_id;
      if (!mine) continue;
      const Place& p = place_[static_cast<std::size_t>(r.var)];
      if (p.group < 0 || find(p.group) != a_id) return false;  // a part of a concatenation
      const Shape& shape = graph_.aval(r.var).shape;
      if (after) {
        if (p.kind == Place::Kind::full || !is_identity(r, kept_shape(frame), shape)) return false;
        earliest = std::max(earliest, p.stage);
      } else if (p.kind == Place::Kind::full) {
        if (!is_identity(r, frame.domain, shape)) return false;
        earliest = std::max(earliest, p.stage);
      } else {
        if (!is_row(r, frame, shape)) return false;
        earliest = std::max(earliest, p.stage + 1);
      }
    }
    return true;
  };
  if (*as_after) {
    if (!check(stage.full_reads, true)) return false;
  } else if (!check(stage.full_reads, false) || !check(stage.after_reads, true)) {
    return false;
  }
  if (earliest >= static_cast<int>(a.stages.size())) {
    // A new stage: rows must be whole in the inner loops, and there must be enough of them to run in parallel.
    if (*as_after || !trailing(frame)) return false;
    const std::int64_t rows = kept_shape(frame).elements();
    if (rows < 16 && frame.domain.elements() > 65536) return false;
  }
  *at = earliest;
  return true;
}

bool FusionPlanner::try_merge(int producer, int consumer) {
  FusionGroup& a = groups[static_cast<std::size_t>(producer)];
  FusionGroup& b = groups[static_cast<std::size_t>(consumer)];
  if (a.equation >= 0 || b.equation >= 0 || a.weight + b.weight > fusion_costs::most_weight) return false;
  std::vector<Var> buffers;
  for (const FusionGroup* g : {&a, &b}) {
    for (const FusionStage& s : g->stages)
      for (const auto* reads : {&s.full_reads, &s.after_reads})
        for (const FusionRead& r : *reads)
          if (std::find(buffers.begin(), buffers.end(), r.var) == buffers.end()) buffers.push_back(r.var);
    for (Var v : g->defines)
      if (std::find(buffers.begin(), buffers.end(), v) == buffers.end()) buffers.push_back(v);
  }
  if (static_cast<int>(buffers.size()) > fusion_costs::most_buffers) return false;
  // Dot products pair badly with others: their loops are ordered for them alone. Epilogues are fine.
  const auto has_dot = [&](const FusionGroup& g) {
    for (const FusionStage& s : g.stages)
      for (int r : s.reductions)
        if (graph_.equations[static_cast<std::size_t>(r)].op == Op::dot_general) return true;
    return false;
  };
  std::vector<std::pair<int, bool>> places;
  int at = 0;
  for (const FusionStage& s : b.stages) {
    bool after = false;
    if (!place_stage(a, producer, s, b, at, &at, &after)) return false;
    if (!after && (has_dot(a) || has_dot(b))) return false;
    // A later stage of b that would have to join an existing one may read b's earlier stages: keep their order apart.
    places.push_back({at, after});
    if (b.stages.size() > 1) {
      if (at < static_cast<int>(a.stages.size())) return false;
      ++at;
    }
  }
  if (reaches(consumer, producer, true) || reaches(producer, consumer, false)) return false;
  for (std::size_t k = 0; k < b.stages.size(); ++k) {
    FusionStage& from = b.stages[k];
    const auto [stage, after] = places[k];
    if (stage >= static_cast<int>(a.stages.size())) a.stages.resize(static_cast<std::size_t>(stage) + 1);
    FusionStage& to = a.stages[static_cast<std::size_t>(stage)];
    const auto move = [&](std::vector<FusionRoot>& roots, std::vector<FusionRoot>& into, Place::Kind kind) {
      for (const FusionRoot& r : roots) {
        into.push_back(r);
        if (r.axis < 0) place_[static_cast<std::size_t>(r.value)] = {producer, stage, kind};
      }
    };
    if (after) {
      move(from.full, to.after, Place::Kind::after);
      to.after_reads.insert(to.after_reads.end(), from.full_reads.begin(), from.full_reads.end());
    } else {
      move(from.full, to.full, Place::Kind::full);
      move(from.after, to.after, Place::Kind::after);
      for (int r : from.reductions) {
        to.reductions.push_back(r);
        place_[static_cast<std::size_t>(graph_.equations[static_cast<std::size_t>(r)].outputs[0])] = {producer, stage, Place::Kind::reduction};
      }
      to.full_reads.insert(to.full_reads.end(), from.full_reads.begin(), from.full_reads.end());
      to.after_reads.insert(to.after_reads.end(), from.after_reads.begin(), from.after_reads.end());
    }
  }
  if (b.has_reductions) {
    a.has_reductions = true;
    a.reduced = b.reduced;
  }
  a.weight += b.weight;
  a.defines.insert(a.defines.end(), b.defines.begin(), b.defines.end());
  b.alive = false;
  leader_[static_cast<std::size_t>(consumer)] = producer;
  first_[static_cast<std::size_t>(producer)] = std::min(first_[static_cast<std::size_t>(producer)], first_[static_cast<std::size_t>(consumer)]);
  last_[static_cast<std::size_t>(producer)] = std::max(last_[static_cast<std::size_t>(producer)], last_[static_cast<std::size_t>(consumer)]);
  return true;
}

void FusionPlanner::merge_all() {
  // Producers into consumers, in order; a merged group may be merged further with the next consumer.
  for (int b = 0; b < static_cast<int>(groups.size()); ++b) {
    for (bool again = true; again;) {
      again = false;
      const int consumer = find(b);
      for (int a : inputs_of(consumer))
        if (try_merge(a, consumer)) {
          again = true;
          break;
        }
    }
  }
  // Neighbours that read the same: each large array is then read once.
  std::vector<int> last_reader(graph_.avals.size(), -1);
  for (int b = 0; b < static_cast<int>(groups.size()); ++b) {
    if (!groups[static_cast<std::size_t>(b)].alive || groups[static_cast<std::size_t>(b)].equation >= 0) continue;
    std::vector<Var> read;
    for (const FusionStage& s : groups[static_cast<std::size_t>(b)].stages)
      for (const FusionRead& r : s.full_reads)
        if (graph_.aval(r.var).elements() > 1 || groups[static_cast<std::size_t>(b)].domain.elements() <= 1) read.push_back(r.var);
    int here = b;
    for (Var v : read) {
      const int other = last_reader[static_cast<std::size_t>(v)] < 0 ? -1 : find(last_reader[static_cast<std::size_t>(v)]);
      if (other >= 0 && other != here && groups[static_cast<std::size_t>(other)].alive && try_merge(other, here)) {
        here = other;
        break;
      }
    }
    for (Var v : read) last_reader[static_cast<std::size_t>(v)] = here;
  }
}

void FusionPlanner::mark_kept() {
  for (std::size_t v = 0; v < kept.size(); ++v) kept[v] = is_output_[v];
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    if (!groups[static_cast<std::size_t>(g)].alive) continue;
    const auto& stages = groups[static_cast<std::size_t>(g)].stages;
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (const auto* reads : {&stages[s].full_reads, &stages[s].after_reads})
        for (const FusionRead& r : *reads) {
          const Place& p = place_[static_cast<std::size_t>(r.var)];
          const bool in_register = p.group >= 0 && find(p.group) == g && (p.kind != Place::Kind::full || p.stage == static_cast<int>(s));
          if (!in_register) kept[static_cast<std::size_t>(r.var)] = 1;
        }
  }
}

void FusionPlanner::sort_groups() {
  const std::size_t count = groups.size();
  std::vector<char> state(count, 0);
  // Depth first from each group in turn; recursion is replaced by a stack, as Graphs may be deep.
  for (std::size_t start = 0; start < count; ++start) {
    if (!groups[start].alive || state[start]) continue;
    std::vector<std::pair<int, std::vector<int>>> path;
    path.push_back({static_cast<int>(start), inputs_of(static_cast<int>(start))});
    state[start] = 1;
    while (!path.empty()) {
      auto& [g, inputs] = path.back();
      if (inputs.empty()) {
        order.push_back(g);
        path.pop_back();
        continue;
      }
      const int next = inputs.back();
      inputs.pop_back();
      if (state[static_cast<std::size_t>(next)]) continue;
      state[static_cast<std::size_t>(next)] = 1;
      path.push_back({next, inputs_of(next)});
    }
  }
}

}  // namespace vt::detail
