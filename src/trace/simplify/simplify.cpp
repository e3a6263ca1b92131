// simplify: the walk that drops dead equations, merges equal ones and asks the rewrite rules; run
// to a fixpoint.
#include "simplify.hpp"

#include <algorithm>
#include <memory>

#include "../base/stack.hpp"
#include "../base/timeline.hpp"
#include "../ir/sub_graph.hpp"
#include "../record/called.hpp"
#include "../record/recursion.hpp"
#include "control.hpp"

namespace vt::detail {

namespace simplification {

namespace walk_details {

// A rule that rewrites its own results for ever would be a bug; this keeps it from being an endless
// loop.
constexpr int deepest_rewrite = 200;
constexpr int most_walks = 16;
/// Functions of up to so many equations are not worth a call.
constexpr std::size_t small_body = 8;
/// Counts the equations that take the place of a call, as far as `count` stays small.
void count_equations(const GraphBody& g, std::size_t& count) {
  for (const Equation& e : g.equations) {
    if (++count > small_body) return;
    if (e.op == Op::call) count_equations(*e.as<CallParams>().body, count);
  }
}
bool is_small(const GraphBody& g) {
  std::size_t count = 0;
  count_equations(g, count);
  return count <= small_body;
}

}  // namespace walk_details

bool commutes(Op op) {
  switch (op) {
    case Op::add:
    case Op::mul:
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::eq:
    case Op::ne: return true;
    default: return false;
  }
}

std::size_t hash_equation(Op op, const ParamsRef& params, std::span<const Var> inputs) {
  std::uint64_t h = static_cast<std::uint64_t>(op) * 0x9e3779b97f4a7c15ull;
  const auto mix = [&](std::uint64_t word) {
    h = (h ^ word) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  };
  if (commutes(op)) {
    mix(static_cast<std::uint64_t>(std::min(inputs[0], inputs[1])));
    mix(static_cast<std::uint64_t>(std::max(inputs[0], inputs[1])));
  } else {
    for (Var v : inputs) mix(static_cast<std::uint64_t>(v));
  }
  if (params) mix(hash_of(params));
  return h;
}

// --- adding equations ----------------------------------------------------------------------------

Var Pass::fresh(Aval a) {
  avals_.push_back(std::move(a));
  makers_.push_back(-1);
  uses_.push_back(0);
  return static_cast<Var>(avals_.size() - 1);
}

std::int32_t Pass::find_equal(Op op, const ParamsRef& params, std::span<const Var> inputs,
                              std::size_t hash) const {
  if (table_.empty()) return -1;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash & mask; table_[slot] >= 0; slot = (slot + 1) & mask) {
    const std::size_t i = table_[slot];
    if (hashes_[i] != hash) continue;
    const Equation& e = equations_[i];
    if (e.op != op || e.inputs.size() != inputs.size()) continue;
    if (e.assume_finite != assume_finite_) continue;
    const bool same = std::equal(inputs.begin(), inputs.end(), e.inputs.begin()) ||
                      (commutes(op) && inputs[0] == e.inputs[1] && inputs[1] == e.inputs[0]);
    if (same && equal(e.params, params)) return table_[slot];
  }
  return -1;
}

void Pass::remember(std::int32_t equation, std::size_t hash) {
  hashes_.push_back(hash);
  if ((equations_.size() + 1) * 2 > table_.size()) {
    table_.assign(std::max<std::size_t>(64, table_.size() * 2), -1);
    for (std::size_t i = 0; i + 1 < hashes_.size(); ++i) {
      std::size_t slot = hashes_[i] & (table_.size() - 1);
      while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = static_cast<std::int32_t>(i);
    }
  }
  std::size_t slot = hash & (table_.size() - 1);
  while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = equation;
}

const Equation& Pass::place_all(Op op, const ParamsRef& params, std::span<const Var> inputs,
                                std::span<const Aval* const> avals) {
  const std::size_t hash = hash_equation(op, params, inputs);
  if (!keeps_order(op, params) && !is_unset(op, params))
    if (const std::int32_t same = find_equal(op, params, inputs, hash); same >= 0)
      return equations_[same];
  const auto index = static_cast<std::int32_t>(equations_.size());
  Equation e;
  e.op = op;
  e.assume_finite = assume_finite_;
  e.where = where_;
  e.params = params;
  e.inputs.append(inputs.begin(), inputs.end());
  for (const Aval* a : avals) {
    e.outputs.push_back(fresh(*a));
    makers_.back() = index;
  }
  const Equation& placed = equations_.push_back(std::move(e));
  remember(index, hash);
  return placed;
}

Var Pass::place(const Candidate& c) {
  const Aval* aval = &c.aval;
  return place_all(c.op, c.params, c.inputs, {&aval, 1}).outputs[0];
}

Var Pass::simplified(const Candidate& c) {
  if (depth_ >= walk_details::deepest_rewrite) return place(c);
  ++depth_;
  Var v = none;
  switch (family_of(c.op)) {
    case Family::leaf: break;
    case Family::unary:
    case Family::binary:
    case Family::select:
      v = fold_constants(*this, c);
      if (v == none) v = simplify_arithmetic(*this, c);
      if (v == none) v = simplify_elementwise(*this, c);
      break;
    case Family::shape:
      v = simplify_shape(*this, c);
      if (v == none) v = fold_constants(*this, c);
      break;
    case Family::index:
      v = simplify_index(*this, c);
      if (v == none) v = fold_constants(*this, c);
      break;
    case Family::reduce:
    case Family::cumulative:
      v = simplify_reduction(*this, c);
      if (v == none) v = fold_constants(*this, c);
      break;
    case Family::order: break;  // see copied_sort
    case Family::rows: break;
    case Family::spectral: break;
    case Family::linalg: break;  // see copied_matrices
    case Family::window: v = simplify_windows(*this, c); break;
    case Family::contract:
      v = c.op == Op::dot_general ? simplify_dot(*this, c) : simplify_conv(*this, c);
      if (v == none) v = fold_constants(*this, c);
      break;
    case Family::collective:
      if (c.op == Op::spread && for_running()) v = c.in();
      break;
    case Family::structure:
    case Family::effect: break;
  }
  --depth_;
  if (v == none) return place(c);
  ++rewrites_;
  return shape(v) == c.aval.shape ? v : broadcast(v, c.aval.shape, Axes{});
}

Var Pass::emit(Op op, ParamsRef params, std::span<const Var> inputs) {
  SmallVec<const Aval*, 4> operands;
  for (Var v : inputs) operands.push_back(&aval(v));
  const SmallVec<Aval, 1> avals = infer(op, params, {operands.data(), operands.size()}, where_);
  return simplified(Candidate{op, params, inputs, avals[0]});
}

SmallVec<Var, 1> Pass::emit_all(Op op, ParamsRef params, std::span<const Var> inputs) {
  SmallVec<const Aval*, 4> operands, results;
  for (Var v : inputs) operands.push_back(&aval(v));
  const SmallVec<Aval, 1> avals = infer(op, params, {operands.data(), operands.size()}, where_);
  for (const Aval& a : avals) results.push_back(&a);
  return place_all(op, params, inputs, {results.data(), results.size()}).outputs;
}

Var Pass::full(const Scalar& value, const Aval& a) {
  return emit(Op::full, make_params(FullParams{value, a}), {});
}
Var Pass::full(const Equation& of_another_type, const Aval& a) {
  FullParams p = of_another_type.as<FullParams>();
  p.aval = a;
  return emit(Op::full, make_params(std::move(p)), {});
}
Var Pass::full_like(double value, const Aval& a) {
  return full(Scalar(value).converted(a.dtype), a);
}
Var Pass::reshape(Var v, const Shape& shape) {
  return emit(Op::reshape, make_params(ShapeParams{shape}), {v});
}
Var Pass::transpose(Var v, const Axes& permutation) {
  return emit(Op::transpose, make_params(PermutationParams{permutation}), {v});
}
Var Pass::broadcast(Var v, const Shape& shape, const Axes& axes) {
  return emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {v});
}
Var Pass::slice(Var v, const Shape& start, const Shape& limit, const Shape& stride) {
  return emit(Op::slice, make_params(SliceParams{start, limit, stride}), {v});
}

// --- the walk ------------------------------------------------------------------------------------

namespace walk_details {
std::atomic<bool>& simple(const GraphBody& g, SimplifyFor purpose) {
  return purpose == SimplifyFor::running ? g.facts.simple_to_run : g.facts.simple_to_transform;
}
}  // namespace walk_details

bool is_simple(const GraphBody& g, SimplifyFor purpose) {
  return walk_details::simple(g, purpose).load(std::memory_order_relaxed);
}

GraphRef Pass::remembered(GraphRef simple) {
  walk_details::simple(*simple, purpose_).store(true, std::memory_order_relaxed);
  memo_.bodies[simple.get()] = {simple, simple};
  memo_.checked.push_back(simple.get());
  return simple;
}

GraphRef Pass::simplified_body(const GraphRef& body) {
  if (!body) return body;
  if (const auto done = memo_.bodies.find(body.get()); done != memo_.bodies.end())
    return done->second.simple;
  if (is_simple(*body, purpose_)) return remembered(body);
  GraphBody simple = simplify_body(*body, memo_, purpose_);
  GraphRef result = remembered(
      equal(simple, *body) ? body : std::make_shared<const GraphBody>(std::move(simple)));
  memo_.bodies[body.get()] = {body, result};
  return result;
}

GraphRef Pass::simplified_body(GraphBody&& body) {
  return remembered(std::make_shared<const GraphBody>(simplify_body(body, memo_, purpose_)));
}

// One element is in order; and what is no key need not be carried along if nobody reads it.
SmallVec<Var, 2> Pass::copied_sort(const GraphBody& g, const Equation& e,
                                   std::span<const Var> inputs, const Vec<std::int32_t>& uses) {
  const auto& p = e.as<SortParams>();
  SmallVec<Var, 2> results(inputs.begin(), inputs.end());
  if (g.aval(e.outputs[0]).shape == shape(inputs[0]) && p.limit <= 1) {
    ++rewrites_;
    return results;
  }
  SmallVec<Var, 4> carried;
  const auto is_carried = [&](std::size_t i) {
    return i < static_cast<std::size_t>(p.keys) || uses[e.outputs[i]] > 0;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_carried(i)) carried.push_back(inputs[i]);
  if (carried.size() < inputs.size()) ++rewrites_;
  const SmallVec<Var, 1> sorted = emit_all(Op::sort, e.params, {carried.data(), carried.size()});
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_carried(i)) results[i] = sorted[next++];
  return results;
}

// Vectors that nobody reads are not computed; and where nothing but one system reads a matrix's LU,
// the two are solved together.
SmallVec<Var, 1> Pass::copied_matrices(const Equation& e, std::span<const Var> inputs,
                                       const Vec<std::int32_t>& uses) {
  if (((e.op == Op::eigh || e.op == Op::eig) && e.outputs.size() == 2 && uses[e.outputs[1]] == 0) ||
      (e.op == Op::svd && e.outputs.size() == 3 && uses[e.outputs[0]] == 0 &&
       uses[e.outputs[2]] == 0)) {
    ++rewrites_;
    ParamsRef p = make_params(DecompositionParams{false, false});
    if (const auto* parts = e.params->get_if<PartsParams>())
      p = make_params(PartsParams{p, parts->operands});
    const Var values = emit_all(e.op, std::move(p), inputs)[0];
    return e.op != Op::svd ? SmallVec<Var, 1>{values, none} : SmallVec<Var, 1>{none, values, none};
  }
  if (e.op == Op::solve && for_running() && inputs.size() == 4) {
    const Equation* lu = def(inputs[1], Op::lu);
    const bool alone = lu && lu == def(inputs[2]) && lu->inputs[0] == inputs[0] &&
                       used_once(inputs[1]) && used_once(inputs[2]) && unused(lu->outputs[1]);
    if (alone && inputs[1] == lu->outputs[0] && inputs[2] == lu->outputs[2]) {
      ++rewrites_;
      const Var own[2] = {inputs[0], inputs[3]};
      return emit_all(Op::solve, e.params, own);
    }
  }
  return emit_all(e.op, e.params, inputs);
}

// A function that is called stays one, without the results that nobody reads here and the operands
// that are not read once what gave those results is gone.
SmallVec<Var, 1> Pass::copied_call(const Equation& e, std::span<const Var> inputs,
                                   const Vec<std::int32_t>& uses) {
  const auto* batched = e.params->get_if<BatchedCallParams>();
  const CallParams p =
      batched ? CallParams{batched->body, nullptr, 0, batched->function} : e.as<CallParams>();
  Vec<bool> wanted;
  for (Var v : e.outputs) wanted.push_back(uses[v] > 0);
  // Flows of control in a lane call go from one function to the next.
  const SimplifyFor purpose =
      batched && batched->parts_lanes() ? SimplifyFor::transforming : purpose_;
  const bool runs = purpose == SimplifyFor::running;
  const DerivedRef d = derive(p, DerivedKey("").add(runs).add_all(wanted), [&] {
    GraphBody g = *p.body;
    g.outputs.clear();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) g.outputs.push_back(p.body->outputs[i]);
    BodyMemo memo;
    g = simplify_body(g, memo, purpose);
    DerivedFunction made;
    const Vec<int> reads = reads_of(g);
    const Vec<Var> all = std::move(g.inputs);
    g.inputs.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (reads[all[i]] == 0) continue;
      g.inputs.push_back(all[i]);
      made.places.push_back(static_cast<int>(i));
    }
    made.body = equal(g, *p.body) ? p.body : std::make_shared<const GraphBody>(std::move(g));
    return made;
  });
  SmallVec<Var, 8> operands;
  SmallVec<Var, 1> results;
  for (int i : d->places) operands.push_back(inputs[i]);
  if (d->body != p.body) ++rewrites_;
  const std::span<const Var> view(operands.data(), operands.size());
  const CalledRef function = d->body == p.body ? p.function : d->function;
  ParamsRef params;
  if (batched) {
    BatchedCallParams called{d->body, {batched->lanes.count, {}, batched->lanes.extents}, {}};
    called.function = function;
    called.schedule = batched->schedule;
    for (int i : d->places) called.lanes.mapped.push_back(batched->lanes.mapped[i]);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) called.summed.push_back(batched->summed[i]);
    params = make_params(std::move(called));
  } else {
    params = make_params(CallParams{d->body, nullptr, static_cast<int>(operands.size()), function});
  }
  const SmallVec<Var, 1> made = emit_all(e.op, std::move(params), view);
  std::size_t next = 0;
  for (bool w : wanted) results.push_back(w ? made[next++] : none);
  return results;
}

void Pass::copy_equation(const GraphBody& g, const Equation& e, Vec<Var>& map,
                         const Vec<std::int32_t>& uses) {
  SmallVec<Var, 8> inputs;
  for (Var v : e.inputs) inputs.push_back(map[v]);
  const std::span<const Var> view(inputs.data(), inputs.size());
  const auto bind = [&](Var old, Var now) {
    map[old] = now;
    uses_[now] += uses[old];
  };

  if (e.op == Op::sort) {
    const SmallVec<Var, 2> sorted = copied_sort(g, e, view, uses);
    for (std::size_t i = 0; i < e.outputs.size(); ++i) bind(e.outputs[i], sorted[i]);
    return;
  }
  if (e.op == Op::check && is_full_of(inputs[0], 1)) {  // cannot fail
    ++rewrites_;
    return;
  }
  if (family_of(e.op) == Family::linalg) {
    const SmallVec<Var, 1> results = copied_matrices(e, view, uses);
    for (std::size_t i = 0; i < e.outputs.size(); ++i)
      if (results[i] != none) bind(e.outputs[i], results[i]);
    return;
  }
  if (family_of(e.op) != Family::structure && family_of(e.op) != Family::effect &&
      family_of(e.op) != Family::rows && e.op != Op::reduce) {
    bind(e.outputs[0], simplified(Candidate{e.op, e.params, view, g.aval(e.outputs[0])}));
    return;
  }
  if (e.op == Op::batched_call ||
      (e.op == Op::call && !for_running() && e.as<CallParams>().function &&
       !walk_details::is_small(*e.as<CallParams>().body))) {
    const SmallVec<Var, 1> results = copied_call(e, view, uses);
    for (std::size_t i = 0; i < e.outputs.size(); ++i)
      if (results[i] != none) bind(e.outputs[i], results[i]);
    return;
  }
  if (e.op == Op::call ||
      (for_running() && family_of(e.op) == Family::structure && e.op != Op::checkpoint &&
       e.op != Op::recursive_call && !may_be_register_kernel(e.op))) {
    // A plain call is nothing but its body, and so are custom rules' ones once no transform will
    // ask for them.
    const Vec<Var> results = inlined(*e.as<CallParams>().body, view);
    for (std::size_t i = 0; i < results.size(); ++i) bind(e.outputs[i], results[i]);
    ++rewrites_;
    return;
  }
  if (is_control(e.op) || e.op == Op::checkpoint) {
    Vec<bool> wanted;
    for (Var v : e.outputs) wanted.push_back(uses[v] > 0);
    const SmallVec<Var, 2> results = ControlRewrite(*this, e, view, std::move(wanted)).run();
    for (std::size_t i = 0; i < e.outputs.size(); ++i)
      if (results[i] != none) bind(e.outputs[i], results[i]);
    return;
  }
  ParamsRef params = e.params;
  Vec<GraphRef> bodies = bodies_of(params);
  bool changed = false;
  for (GraphRef& body : bodies) {
    GraphRef simple = simplified_body(body);
    changed = changed || simple != body;
    body = std::move(simple);
  }
  if (changed) params = with_bodies(params, bodies);
  SmallVec<const Aval*, 4> avals;
  for (Var v : e.outputs) avals.push_back(&g.aval(v));
  const Equation& placed = place_all(e.op, params, view, {avals.data(), avals.size()});
  for (std::size_t i = 0; i < e.outputs.size(); ++i) bind(e.outputs[i], placed.outputs[i]);
}

void Pass::walk(const GraphBody& g, Vec<Var>& map, bool outermost) {
  need_stack(where_);
  const Vec<std::int32_t> uses = needed_reads_of(g);
  if (outermost)
    for (Var v : g.inputs) uses_[map[v]] += uses[v];
  for (const Equation& e : g.equations) {
    if (!keeps_order(e) && none_of(e.outputs, [&](Var v) { return uses[v] > 0; })) continue;
    where_ = e.where;
    assume_finite_ = e.assume_finite;
    copy_equation(g, e, map, uses);
  }
}

GraphBody Pass::run(const GraphBody& g) {
  Vec<Var> map(g.avals.size(), none);
  Vec<Var> inputs, outputs;
  for (Var v : g.inputs) inputs.push_back(map[v] = fresh(g.aval(v)));
  walk(g, map, true);
  for (Var v : g.outputs) {
    Var now = map[v];
    // Callers see the results' types: also whether they are weak.
    if (aval(now).weak != g.aval(v).weak) {
      const ParamsRef same_dtype = make_params(ConvertParams{g.aval(v).dtype, g.aval(v).weak});
      now = place(Candidate{Op::convert, same_dtype, {&now, 1}, g.aval(v)});
    }
    outputs.push_back(now);
  }
  return compacted(inputs, outputs);
}

GraphBody Pass::compacted(std::span<const Var> inputs, std::span<const Var> outputs) {
  Vec<bool> live(avals_.size(), false);
  Vec<std::int32_t> kept;
  for (Var v : outputs) live[v] = true;
  for (std::size_t i = equations_.size(); i-- > 0;) {
    const Equation& e = equations_[i];
    if (!keeps_order(e) && none_of(e.outputs, [&](Var v) { return live[v]; })) continue;
    for (Var v : e.inputs) live[v] = true;
    kept.push_back(static_cast<std::int32_t>(i));
  }

  GraphBody g;
  g.avals.reserve(inputs.size() + kept.size());
  g.equations.reserve(kept.size());
  Vec<Var> map(avals_.size(), none);
  const auto renamed = [&](Var v) { return map[v] = g.fresh(std::move(avals_[v])); };
  for (Var v : inputs) g.inputs.push_back(renamed(v));
  for (std::size_t k = kept.size(); k-- > 0;) {
    Equation& e = equations_[kept[k]];
    for (Var& v : e.inputs) v = map[v];
    for (Var& v : e.outputs) v = renamed(v);
    g.equations.push_back(std::move(e));
  }
  for (Var v : outputs) g.outputs.push_back(map[v]);
  return g;
}

Vec<Var> Pass::inlined(const GraphBody& body, std::span<const Var> inputs) {
  Vec<Var> map(body.avals.size(), none), results;
  for (std::size_t i = 0; i < inputs.size(); ++i) map[body.inputs[i]] = inputs[i];
  walk(body, map, false);
  for (Var v : body.outputs) results.push_back(map[v]);
  return results;
}

GraphBody simplify_body(const GraphBody& graph, BodyMemo& memo, SimplifyFor purpose) {
  Pass first(memo, purpose);
  GraphBody g = first.run(graph);
  std::size_t rewrites = first.rewrites() + join_branches(g) + move_updates_out(g);
  for (int walks = 1; rewrites > 0 && walks < walk_details::most_walks; ++walks) {
    Pass next(memo, purpose);
    g = next.run(g);
    rewrites = next.rewrites() + join_branches(g) + move_updates_out(g);
  }
  debug_check(g, "vt::simplify", {memo.checked.data(), memo.checked.size()});
  return g;
}

}  // namespace simplification

GraphBody simplify(const GraphBody& graph, SimplifyFor purpose) {
  if (simplification::is_simple(graph, purpose)) return graph;
  const Span span("transform", "simplify");
  simplification::BodyMemo memo;
  return simplification::simplify_body(graph, memo, purpose);
}

}  // namespace vt::detail
