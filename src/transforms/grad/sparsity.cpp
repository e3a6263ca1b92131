// The walk over a linear Graph that follows which elements of tangents are reached, and keeps the
// others 0.
#include "sparsity.hpp"

#include <algorithm>
#include <cmath>

#include "../../trace/base/stack.hpp"
#include "../../trace/elements/element_maps.hpp"
#include "../../trace/record/scope.hpp"
#include "sparsity_walk.hpp"

namespace vt::detail {

namespace sparsity {

Walk::Walk(const GraphBody& from, Masks& masks)
    : from_(from), masks_(masks), reach_(from.avals.size()) {
  to_.avals = from.avals;
  to_.inputs = from.inputs;
  to_.outputs = from.outputs;
  to_.equations.reserve(from.equations.size());
}

void Walk::run(const Vec<Reach>& inputs) {
  need_stack({});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Var v = from_.inputs[i];
    set_reach(v, inputs[i]);
    input_masks_.push_back(-1);
    if (!inputs[i].computed) continue;
    computed_[v] = input_masks_.back() = to_.fresh(Aval(DType::bool_, aval(v).shape));
    changed_ = true;
  }
  for (const Equation& e : from_.equations) equation(e);
}

void Walk::make_linear(std::size_t k) {
  Var& v = to_.outputs[k];
  if (reach(v).linear || !reach(v).zero) return;
  v = minus_zero(aval(v));
}

void Walk::finish_results() {
  for (Var& v : to_.outputs) {
    const Reach r = reach(v);
    if (!r.linear || !(r.pattern || r.computed || masks_.leaks())) continue;
    const Aval a(aval(v).dtype, aval(v).shape);
    if (r.computed || masks_.leaks()) {
      v = writer_.make(Op::add, {}, {v, writer_.number(a.dtype, 0)}, a);
      changed_ = true;
    }
    if (!r.pattern || r.plus) continue;
    const Var here = mask(r.pattern, a.shape), zero = writer_.number(a.dtype, 0);
    v = writer_.select(here, v, zero, a);
    changed_ = true;
  }
}

// ---- what is written ----------------------------------------------------------------------------

Var Walk::minus_zero(const Aval& a) {
  changed_ = true;
  return writer_.filled(a, -0.0);
}

Var Walk::input(int number) {
  const auto found = inputs_.emplace(number, -1);
  if (found.fresh) {
    const Var v = to_.fresh(Aval(DType::bool_, masks_[number].shape));
    inputs_[number] = v;
    to_.inputs.push_back(v);
    numbers_.push_back(number);
    changed_ = true;
  }
  return inputs_[number];
}

Var Walk::mask(const SparsityPattern& pattern, Shape shape) {
  const int number = masks_.number(pattern, shape);
  const Var own = input(number);
  const Masks::Mask& m = masks_[number];
  if (m.shape.empty() || m.shape.size() == shape.size()) return own;
  for (const auto& [known, to, v] : broadcast_)
    if (known == number && to == shape) return v;
  const Var v = writer_.broadcast(own, shape, m.axes);
  broadcast_.push_back({number, shape, v});
  return v;
}

Var Walk::computed(Var v) const {
  const auto* const found = computed_.find(v);
  return found != computed_.end() ? found->second : -1;
}

Var Walk::reached(Var v) {
  const Reach& r = reach(v);
  if (!r.linear) return -1;
  if (r.computed) return computed(v);
  return r.pattern ? mask(r.pattern, aval(v).shape) : -1;
}

Var Walk::whole_mask(Var v) {
  const Var own = reached(v);
  const Aval a(DType::bool_, aval(v).shape);
  if (own < 0) return writer_.filled(a, 1);
  return aval(own).shape == a.shape ? own : writer_.broadcast(own, a.shape, {});
}

Var Walk::like(const Equation& e, std::initializer_list<Var> masks, Op op) {
  Equation own = e;
  own.op = op;
  std::size_t i = 0;
  for (Var m : masks) {
    if (m >= 0) own.inputs[i] = m;
    ++i;
  }
  const Var v = to_.fresh(Aval(DType::bool_, aval(e.outputs[0]).shape));
  own.outputs[0] = v;
  append(std::move(own));
  return v;
}

Var Walk::factor(Var here, Var x, Shape shape) {
  for (const auto& [known, of, to, v] : factors_)
    if (known == here && of == x && to == shape) return v;
  const DType d = aval(x).dtype;
  const Var one = writer_.number(d, 1);
  const bool scalar = aval(here).shape.empty() && aval(x).shape.empty();
  const Var v = writer_.select(here, x, one, Aval(d, scalar ? Shape{} : shape));
  factors_.push_back({here, x, shape, v});
  return v;
}

void Walk::append(Equation e) { to_.equations.push_back(std::move(e)); }

void Walk::append_masked(Equation e) {
  Vec<std::pair<Var, Var>> results;  // as it is, as it shall be
  for (Var& v : e.outputs) {
    if (!has_holes(v)) continue;
    const Aval own = aval(v);
    const Var raw = to_.fresh(own);
    results.push_back({raw, v});
    v = raw;
  }
  append(std::move(e));
  for (const auto& [raw, v] : results) {
    const Var here = reached(v), zero = writer_.number(aval(v).dtype, -0.0);
    writer_.select(here, raw, zero, v);
  }
}

// ---- patterns -----------------------------------------------------------------------------------

SparsityPattern Walk::operand(Equation& e, std::size_t i) {
  Var& v = e.inputs[i];
  if (reach(v).linear) return reach(v).pattern;
  if (!reach(v).zero) return {};  // a user's rule has made it of numbers
  v = minus_zero(aval(v));
  set_reach(v, {.linear = true, .pattern = shared(none(aval(v).elements()))});
  return reach(v).pattern;
}

SparsityPattern Walk::moved(const SparsityPattern& p, std::int64_t from,
                            const Vec<std::int64_t>& sources) const {
  const auto to = static_cast<std::int64_t>(sources.size());
  if (!p && std::find(sources.begin(), sources.end(), -1) == sources.end()) return {};
  Bits bits(directions() * to);
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t k = 0; k < to; ++k) {
      const std::int64_t s = sources[k];
      bits[d * to + k] = s >= 0 && (!p || (*p)[d * from + s]);
    }
  return shared(std::move(bits));
}

SparsityPattern Walk::spread(const SparsityPattern& p, std::int64_t from, std::int64_t to) const {
  return !p || from == to ? p : moved(p, from, Vec<std::int64_t>(to, 0));
}

SparsityPattern Walk::united(const SparsityPattern& a, const SparsityPattern& b) const {
  if (!a || !b || a == b) return a ? b : a;
  Bits bits = *a;
  bool grows = false, is_other = true;
  for (std::size_t k = 0; k < bits.size(); ++k) {
    grows = grows || bits[k] < (*b)[k];
    bits[k] = static_cast<char>(bits[k] | (*b)[k]);
    is_other = is_other && bits[k] == (*b)[k];
  }
  return !grows ? a : is_other ? b : shared(std::move(bits));
}

Bits Walk::any_of_direction(const SparsityPattern& p, std::int64_t elements) const {
  Bits any(directions(), 1);
  for (std::int64_t d = 0; p && d < directions(); ++d) {
    const auto first = p->begin() + d * elements;
    any[d] = std::find(first, first + elements, 1) != first + elements;
  }
  return any;
}

SparsityPattern Walk::spread_any(Var v, const Aval& to) const {
  Bits any = any_of_direction(reach(v).pattern, aval(v).elements());
  return spread(shared(std::move(any)), 1, to.elements());
}

void Walk::set_reach(Var v, Reach r) {
  if (static_cast<std::size_t>(v) >= reach_.size()) reach_.resize(v + 1);
  reach_[v] = std::move(r);
}

void Walk::give(const Equation& e, SparsityPattern p, std::size_t result) {
  const Var v = e.outputs[result];
  set_reach(v, {.linear = is_inexact(aval(v).dtype), .pattern = std::move(p)});
}

void Walk::give(const Equation& e, SparsityPattern p, Var mask, Axes varied, std::size_t result) {
  give(e, std::move(p), result);
  if (mask < 0) return;
  const Var v = e.outputs[result];
  reach_[v].computed = true;
  std::sort(varied.begin(), varied.end());
  reach_[v].varied = std::move(varied);
  computed_[v] = mask;
  changed_ = true;
}

Axes Walk::varied(Var v) {
  const Reach& r = reach(v);
  if (r.computed) return r.varied;
  return r.pattern ? masks_[masks_.number(r.pattern, aval(v).shape)].axes : Axes();
}

// ---- equations ----------------------------------------------------------------------------------

/// Where every number is finite no mask has to be computed to keep zeros: what is not known when
/// the Graph is written counts as reached.
inline bool needs_computed_mask(const Equation& e) {
  return e.op == Op::gather || e.op == Op::dynamic_slice || e.op == Op::scatter ||
         e.op == Op::scatter_add || e.op == Op::dynamic_update_slice || lanes_of(e);
}

void Walk::equation(const Equation& original) {
  Equation e = original;
  writer_.where = e.where;
  writer_.assume_finite = e.assume_finite;
  if (none_of(e.inputs, [&](Var v) { return reach(v).linear; })) {
    note(e);
    return append(std::move(e));
  }
  if (e.assume_finite && needs_computed_mask(e)) return whole(std::move(e));
  switch (e.op) {
    case Op::reshape: return move(std::move(e), reach(e.inputs[0]).pattern);
    case Op::transpose:
    case Op::broadcast_in_dim:
    case Op::rev: {
      SparsityPattern p = reach(e.inputs[0]).pattern;
      if (p) p = moved(p, aval(e.inputs[0]).elements(), source_elements(to_, e));
      return move(std::move(e), std::move(p));
    }
    case Op::slice: return slice(std::move(e));
    case Op::pad: return pad(std::move(e));
    case Op::concatenate: return concatenate(std::move(e));
    case Op::reduce_sum: return sum(std::move(e));
    case Op::cumsum: return running(std::move(e));
    case Op::dot_general: return product(std::move(e));
    case Op::gather:
    case Op::dynamic_slice: return read_at(std::move(e));
    case Op::scatter:
    case Op::scatter_add:
    case Op::dynamic_update_slice: return write_at(std::move(e));
    case Op::rows:
    case Op::rows_add:
    case Op::windows:
    case Op::overlap_add: return counted(std::move(e));
    case Op::call:
    case Op::checkpoint:
      if (!e.as<CallParams>().rule) return call(std::move(e));
      break;
    case Op::custom_vjp:  // what vt differentiates in its own way
      if (e.as<CallParams>().rule->own) return call(std::move(e));
      break;
    case Op::cond: return cond(std::move(e));
    case Op::while_: return loop_while(std::move(e));
    case Op::scan: return scan(std::move(e));
    case Op::select:
      if (e.params && e.params->is<StructuralParams>()) return structural_select(std::move(e));
      return elementwise(std::move(e));
    default:
      if (is_elementwise(e.op)) return elementwise(std::move(e));
  }
  whole(std::move(e));
}

inline bool is_move(Op op) {
  return op == Op::reshape || op == Op::transpose || op == Op::broadcast_in_dim || op == Op::rev ||
         op == Op::slice;
}
inline SparsityPattern moved_elements(const Bits& from, const Vec<std::int64_t>& sources) {
  Bits to;
  for (std::int64_t s : sources) to.push_back(from[s]);
  return std::make_shared<const Bits>(std::move(to));
}

/// What does not depend on a tangent: is it a number of the function's own, or a mask?
void Walk::note(const Equation& e) {
  if (e.outputs.size() != 1) return;
  Reach& r = reach_[e.outputs[0]];
  const Reach in = e.inputs.empty() ? Reach() : reach(e.inputs[0]);
  if (in.elements && is_move(e.op)) {
    r.elements = moved_elements(*in.elements, source_elements(to_, e));
  } else if (e.op == Op::full) {
    const Scalar& x = e.as<FullParams>().value;
    r.zero = x.is_value(0) && !is_unset(e);
    r.positive = is_float(x.dtype) && x.real > 0 && std::isfinite(x.real);
  } else if (op_table[e.op].linearity == Linearity::linear && e.inputs.size() == 1) {
    r.zero = in.zero;
    r.positive = in.positive && family_of(e.op) == Family::shape;
  }
}

void Walk::elementwise(Equation e) {
  const Aval out = aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  const Var right = e.inputs.back();
  SparsityPattern p;
  Vec<Var> tangents;
  const Linearity linearity = op_table[e.op].linearity;
  if (linearity == Linearity::linear) {
    const std::size_t first = e.op == Op::select ? 1 : 0;
    for (std::size_t i = first; i < e.inputs.size(); ++i) {
      SparsityPattern own = operand(e, i);
      own = spread(own, aval(e.inputs[i]).elements(), n);
      if (i > first && own != p && e.op != Op::add && e.op != Op::sub) masks_.leak();
      p = i == first ? own : united(p, own);
      tangents.push_back(e.inputs[i]);
    }
  } else if (linearity == Linearity::bilinear || linearity == Linearity::first) {
    const std::size_t i = reach(e.inputs[0]).linear ? 0 : 1;
    if (!reach(e.inputs[1 - i]).linear) {
      p = spread(reach(e.inputs[i]).pattern, aval(e.inputs[i]).elements(), n);
      tangents.push_back(e.inputs[i]);
    }
  }
  const Var any = union_of(tangents, out.shape);
  Axes axes;
  if (any >= 0)
    for (Var v : tangents) axes = sparsity::united(axes, varied(v));
  give(e, p, any, std::move(axes));
  reach_[e.outputs[0]].plus =
      e.op == Op::add && any_of(tangents, [&](Var v) { return reach(v).plus; });
  const bool holes = has_holes(e.outputs[0]);
  if (holes && linearity != Linearity::linear) {
    Var& other = e.inputs[reach(e.inputs[0]).linear ? 1 : 0];
    if (!reach(other).positive) other = factor(reached(e.outputs[0]), other, out.shape);
  }
  // −(−0) is +0, and x − (−0) may be: a factor of −1 is 1 there instead.
  const auto minus_one = [&](Var v) {
    return factor(reached(v), writer_.number(aval(v).dtype, -1), aval(v).shape);
  };
  if (e.op == Op::neg && holes) {
    e.op = Op::mul;
    e.inputs.push_back(minus_one(e.inputs[0]));
  } else if (e.op == Op::sub && e.inputs[1] != right) {  // 0, which has become −0
    e.op = Op::add;
  } else if (e.op == Op::sub && has_holes(right)) {
    e.op = Op::add;
    e.inputs[1] = writer_.make(Op::mul, {}, {right, minus_one(right)},
                               Aval(aval(right).dtype, aval(right).shape));
  }
  append(std::move(e));
}

/// Of a choice that is made by a mask nothing comes from the operand that is not chosen.
void Walk::structural_select(Equation e) {
  const Aval out = aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  const auto operand_pattern = [&](std::size_t i) {
    const SparsityPattern own = operand(e, i);
    return spread(own, aval(e.inputs[i]).elements(), n);
  };
  const SparsityPattern a = operand_pattern(1), b = operand_pattern(2),
                        known = reach(e.inputs[0]).elements;
  const bool computed = !known || reach(e.inputs[1]).computed || reach(e.inputs[2]).computed;
  SparsityPattern p;
  if (!known) {
    p = united(a, b);
  } else if (a || b) {
    Bits bits(directions() * n);
    for (std::int64_t k = 0; k < n; ++k) {
      const SparsityPattern& from = (*known)[known->size() == 1 ? 0 : k] ? a : b;
      for (std::int64_t d = 0; d < directions(); ++d)
        bits[d * n + k] = from ? (*from)[d * n + k] : 1;
    }
    p = shared(std::move(bits));
  }
  Var m = -1;
  const bool holes = has_holes(e.inputs[1]) || has_holes(e.inputs[2]);
  if (computed && holes && e.assume_finite) masks_.leak();
  else if (computed && holes) {
    Equation own = e;
    own.params = {};
    own.inputs[1] = whole_mask(e.inputs[1]);
    own.inputs[2] = whole_mask(e.inputs[2]);
    m = like(own, {});
  }
  give(e, std::move(p), m, Axes::first(out.shape.rank()));
  append(std::move(e));
}

/// The computed mask of what is reached by any of these; −1: none is computed, or all is reached.
Var Walk::union_of(const Vec<Var>& tangents, const Shape& shape) {
  if (none_of(tangents, [&](Var v) { return reach(v).computed; })) return -1;
  Var all = -1;
  for (Var v : tangents) {
    const Var own = reached(v);
    if (own < 0) return -1;
    if (all < 0 || own == all) {
      all = own;
      continue;
    }
    Shape joined = aval(all).shape.empty() ? aval(own).shape : aval(all).shape;
    all = writer_.make(Op::or_, {}, {all, own}, Aval(DType::bool_, std::move(joined)));
  }
  return aval(all).shape == shape ? all : writer_.broadcast(all, shape, {});
}

/// A sum of nothing but −0 is +0.
void Walk::sum(Equation e) {
  SparsityPattern to;
  if (const SparsityPattern p = reach(e.inputs[0]).pattern) {
    const Shape shape = aval(e.inputs[0]).shape;
    const std::int64_t n = shape.elements(), results = aval(e.outputs[0]).elements();
    Bits bits = none(results);
    const Vec<std::int64_t> places = reduced_elements(shape, e.as<AxesParams>().axes);
    for (std::int64_t d = 0; d < directions(); ++d)
      for (std::int64_t k = 0; k < n; ++k)
        if ((*p)[d * n + k]) bits[d * results + places[k]] = 1;
    to = shared(std::move(bits));
  }
  if (const Var m = computed(e.inputs[0]); m >= 0) {
    Axes axes;
    int place = 0;
    for (int d = 0; d < aval(m).shape.rank(); ++d) {
      if (e.as<AxesParams>().axes.contains(d)) continue;
      if (varied(e.inputs[0]).contains(d)) axes.push_back(place);
      ++place;
    }
    give(e, std::move(to), like(e, {m}, Op::reduce_any), std::move(axes));
  } else {
    give(e, std::move(to));
  }
  append_masked(std::move(e));
}

void Walk::running(Equation e) {
  SparsityPattern to;
  if (const SparsityPattern p = reach(e.inputs[0]).pattern) {
    const auto& params = e.as<CumulativeParams>();
    const Shape& shape = aval(e.inputs[0]).shape;
    const AxisRuns runs(shape, params.axis);
    const std::int64_t n = shape.elements();
    Bits bits = *p;
    for (std::int64_t d = 0; d < directions(); ++d)
      for (std::int64_t r = 0; r < runs.count; ++r)
        for (std::int64_t k = 1; k < runs.length; ++k) {
          const std::int64_t here = params.reverse ? runs.length - 1 - k : k,
                             before = params.reverse ? here + 1 : here - 1;
          if (bits[d * n + runs.at(r, before)]) bits[d * n + runs.at(r, here)] = 1;
        }
    to = shared(std::move(bits));
  }
  if (const Var m = computed(e.inputs[0]); m < 0) give(e, std::move(to));
  else give(e, std::move(to), like(e, {m}, Op::cummax), varied(e.inputs[0]));
  append_masked(std::move(e));
}

/// All elements are reached in a direction that reaches any.
void Walk::whole(Equation e) {
  Bits any(directions(), 0);
  const bool jointly = op_table[e.op].linearity == Linearity::linear;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    if (!is_inexact(aval(e.inputs[i]).dtype) || !(jointly || reach(e.inputs[i]).linear)) continue;
    const SparsityPattern p = operand(e, i);
    if (has_holes(e.inputs[i])) masks_.leak();
    const Bits own = any_of_direction(p, aval(e.inputs[i]).elements());
    for (std::size_t d = 0; d < any.size(); ++d) any[d] = static_cast<char>(any[d] | own[d]);
  }
  const SparsityPattern one = shared(std::move(any));
  for (std::size_t k = 0; k < e.outputs.size(); ++k)
    give(e, spread(one, 1, aval(e.outputs[k]).elements()), k);
  append_masked(std::move(e));
}

}  // namespace sparsity

SparsityPattern identity_pattern(std::int64_t start, std::int64_t rows, std::int64_t elements) {
  using namespace sparsity;
  Bits bits(rows * elements, 0);
  for (std::int64_t r = 0; r < rows; ++r) bits[r * elements + start + r] = 1;
  return shared(std::move(bits));
}

std::optional<MaskedGraph> keep_zeros(const GraphBody& graph, const Vec<SparsityPattern>& linear,
                                      std::span<const Tensor> captured, std::int64_t directions) {
  using namespace sparsity;
  Masks masks(directions);
  Walk walk(graph, masks);
  Vec<Reach> inputs(graph.inputs.size());
  for (std::size_t i = 0; i < linear.size(); ++i)
    inputs[i] = {.linear = is_inexact(graph.aval(graph.inputs[i]).dtype), .pattern = linear[i]};
  for (std::size_t i = 0; i < captured.size(); ++i)
    inputs[linear.size() + i].elements = elements_of(captured[i]);
  walk.run(inputs);
  walk.finish_results();
  if (!walk.changed()) return std::nullopt;
  MaskedGraph result;
  for (int m : walk.masks()) result.masks.push_back({masks.value(m), masks[m].by_direction});
  result.graph = walk.take();
  debug_check(result.graph, "keep_zeros");
  return result;
}

std::vector<Tensor> with_zeros_kept(const FlatFunction& f, std::span<const Tensor> arguments,
                                    const char* transform) {
  // Rules of the user's may look at values, where there are some.
  RecordingScope scope({.kind = ScopeKind::grad, .transform = transform, .concrete = arguments});
  std::vector<Tensor> tracers;
  for (const Tensor& t : arguments) tracers.push_back(scope.input(aval_of(t)));
  const std::vector<Tensor> results = f(tracers);
  tracers.clear();
  Recorded linear = scope.finish(results);
  std::vector<Tensor> all(arguments.begin(), arguments.end());
  all.insert(all.end(), linear.captured.begin(), linear.captured.end());
  if (std::optional<MaskedGraph> sparse =
          keep_zeros(linear.graph, Vec<SparsityPattern>(arguments.size()), linear.captured, 1)) {
    linear.graph = std::move(sparse->graph);
    for (SparsityMask& m : sparse->masks) all.push_back(std::move(m.value));
  }
  return replay(linear.graph, all);
}

bool may_be_sparse(const GraphBody& linear, LinearDirection direction) {
  // Of what is made of inputs by moves alone nothing but moves is pulled back further.
  Vec<bool> moves(linear.avals.size(), false);
  for (Var v : linear.inputs) moves[v] = true;
  return any_of(linear.equations, [&](const Equation& e) {
    const bool pulls = direction == LinearDirection::pull;
    switch (e.op) {
      case Op::select: return e.params && e.params->is<StructuralParams>();
      case Op::pad:
      case Op::concatenate: return !pulls;
      case Op::slice:
      case Op::gather:
      case Op::dynamic_slice:
        moves[e.outputs[0]] = moves[e.inputs[0]];
        return pulls && !moves[e.inputs[0]];
      case Op::reshape:
      case Op::transpose:
      case Op::rev: moves[e.outputs[0]] = moves[e.inputs[0]]; return false;
      default: return family_of(e.op) == Family::index || family_of(e.op) == Family::structure;
    }
  });
}

}  // namespace vt::detail
