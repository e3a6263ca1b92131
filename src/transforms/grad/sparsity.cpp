// The walk over a linear Graph that follows which elements of tangents are reached, and keeps the
// others 0.
#include "sparsity.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "../../trace/base/stack.hpp"
#include "../../trace/elements/element_maps.hpp"
#include "../../trace/record/scope.hpp"
#include "sparsity_walk.hpp"

namespace vt::detail {

namespace sparsity {

/// Products of so many terms are written with all of them, larger ones with the plain product
/// beside: see SparseProduct.
constexpr std::int64_t most_terms = std::int64_t{1} << 18;

/// A box of one array, copied into another; from nothing ones.
inline void copy_box(const char* from, const Shape& whole, const Shape& first, char* to,
                     const Shape& result, const Shape& place, const Shape& sizes) {
  const std::size_t rank = sizes.size();
  const std::int64_t run = rank == 0 ? 1 : sizes.back(),
                     runs = run == 0 ? 0 : sizes.elements() / run;
  Vec<std::int64_t> index(rank, 0);
  for (std::int64_t k = 0; k < runs; ++k) {
    std::int64_t a = 0, b = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      a = a * whole[d] + first[d] + index[d];
      b = b * result[d] + place[d] + index[d];
    }
    if (from) std::copy_n(from + a, run, to + b);
    else std::fill_n(to + b, run, char{1});
    for (std::size_t d = rank; d-- > 1;) {
      if (++index[d - 1] < sizes[d - 1]) break;
      index[d - 1] = 0;
    }
  }
}

Walk::Walk(const GraphBody& from, Masks& masks)
    : from_(from), masks_(masks), reach_(from.avals.size()) {
  to_.avals = from.avals;
  to_.inputs = from.inputs;
  to_.outputs = from.outputs;
  to_.equations.reserve(from.equations.size());
}

void Walk::run(const Vec<Reach>& inputs) {
  need_stack({});
  for (std::size_t i = 0; i < inputs.size(); ++i) reach_[at(from_.inputs[i])] = inputs[i];
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
    if (!r.linear || !(r.pattern || masks_.leaks())) continue;
    const Aval a(aval(v).dtype, aval(v).shape);
    if (masks_.leaks()) {
      v = writer_.make(Op::add, {}, {v, writer_.number(a.dtype, 0)}, a);
      changed_ = true;
    }
    if (!r.pattern) continue;
    const Var here = mask(r.pattern, a.shape), zero = writer_.number(a.dtype, 0);
    v = writer_.make(Op::select, {}, {here, v, zero}, a);
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

Var Walk::factor(const SparsityPattern& pattern, Var x, Shape shape) {
  for (const auto& [known, of, to, v] : factors_)
    if (known == pattern && of == x && to == shape) return v;
  const DType d = aval(x).dtype;
  const Var here = mask(pattern, shape), one = writer_.number(d, 1);
  const bool scalar = aval(here).shape.empty() && aval(x).shape.empty();
  const Var v = writer_.make(Op::select, {}, {here, x, one}, Aval(d, scalar ? Shape{} : shape));
  factors_.push_back({pattern, x, shape, v});
  return v;
}

void Walk::append(Equation e) { to_.equations.push_back(std::move(e)); }

void Walk::append_masked(Equation e) {
  Vec<std::pair<Var, Var>> results;  // as it is, as it shall be
  for (Var& v : e.outputs) {
    if (!reach(v).linear || !reach(v).pattern) continue;
    const Aval own = aval(v);
    const Var raw = to_.fresh(own);
    results.push_back({raw, v});
    v = raw;
  }
  append(std::move(e));
  for (const auto& [raw, v] : results) {
    const Var here = mask(reach(v).pattern, aval(v).shape),
              zero = writer_.number(aval(v).dtype, -0.0);
    writer_.append(Op::select, {}, {here, raw, zero}, v);
  }
}

// ---- patterns -----------------------------------------------------------------------------------

SparsityPattern Walk::operand(Equation& e, std::size_t i) {
  Var& v = e.inputs[i];
  if (reach(v).linear) return reach(v).pattern;
  if (!reach(v).zero) return {};  // a user's rule has made it of numbers
  const std::int64_t n = aval(v).elements();
  v = minus_zero(aval(v));
  return shared(none(n));
}

SparsityPattern Walk::moved(const SparsityPattern& p, std::int64_t from,
                            const Vec<std::int64_t>& sources) const {
  const auto to = static_cast<std::int64_t>(sources.size());
  if (!p && std::find(sources.begin(), sources.end(), -1) == sources.end()) return {};
  Bits bits(at(directions() * to));
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t k = 0; k < to; ++k) {
      const std::int64_t s = sources[at(k)];
      bits[at(d * to + k)] = s >= 0 && (!p || (*p)[at(d * from + s)]);
    }
  return shared(std::move(bits));
}

SparsityPattern Walk::spread(const SparsityPattern& p, std::int64_t from, std::int64_t to) const {
  return !p || from == to ? p : moved(p, from, Vec<std::int64_t>(at(to), 0));
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
  Bits any(at(directions()), 1);
  for (std::int64_t d = 0; p && d < directions(); ++d) {
    const auto first = p->begin() + d * elements;
    any[at(d)] = std::find(first, first + elements, 1) != first + elements;
  }
  return any;
}

void Walk::give(const Equation& e, SparsityPattern p, std::size_t result) {
  const Var v = e.outputs[result];
  reach_[at(v)] = {.linear = is_inexact(aval(v).dtype), .pattern = std::move(p)};
}

// ---- equations ----------------------------------------------------------------------------------

void Walk::equation(const Equation& original) {
  Equation e = original;
  writer_.where = e.where;
  writer_.assume_finite = e.assume_finite;
  if (none_of(e.inputs, [&](Var v) { return reach(v).linear; })) {
    note(e);
    return append(std::move(e));
  }
  switch (e.op) {
    case Op::reshape: give(e, reach(e.inputs[0]).pattern); return append(std::move(e));
    case Op::transpose:
    case Op::broadcast_in_dim:
    case Op::rev: {
      const SparsityPattern& p = reach(e.inputs[0]).pattern;
      give(e, p ? moved(p, aval(e.inputs[0]).elements(), source_elements(to_, e)) : p);
      return append(std::move(e));
    }
    case Op::slice: return slice(std::move(e));
    case Op::pad: return pad(std::move(e));
    case Op::concatenate: return concatenate(std::move(e));
    case Op::reduce_sum: return sum(std::move(e));
    case Op::cumsum: return running(std::move(e));
    case Op::dot_general: return product(std::move(e));
    case Op::scatter:
    case Op::scatter_add:
    case Op::dynamic_update_slice: return write(std::move(e));
    case Op::call:
    case Op::checkpoint:
      if (!e.as<CallParams>().rule) return call(std::move(e));
      break;
    case Op::custom_vjp:  // what vt differentiates in its own way
      if (e.as<CallParams>().rule->own) return call(std::move(e));
      break;
    case Op::cond:
      if (!lanes_of(e)) return cond(std::move(e));
      break;
    case Op::while_:
      if (!lanes_of(e)) return loop_while(std::move(e));
      break;
    case Op::scan: return scan(std::move(e));
    default:
      if (is_elementwise(e.op)) return elementwise(std::move(e));
  }
  whole(std::move(e));
}

/// What does not depend on a tangent: is it a number of the function's own?
void Walk::note(const Equation& e) {
  if (e.outputs.size() != 1) return;
  const Var v = e.outputs[0];
  Reach& r = reach_[at(v)];
  if (e.op == Op::full) {
    const Scalar& x = e.as<FullParams>().value;
    r.zero = x.is_value(0);
    r.positive = is_float(x.dtype) && x.real > 0 && std::isfinite(x.real);
  } else if (op_table[e.op].linearity == Linearity::linear && e.inputs.size() == 1) {
    r.zero = reach(e.inputs[0]).zero;
    r.positive = reach(e.inputs[0]).positive && family_of(e.op) == Family::shape;
  }
}

void Walk::elementwise(Equation e) {
  const Aval out = aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  const Var right = e.inputs.back();
  SparsityPattern p;
  const Linearity linearity = op_table[e.op].linearity;
  if (linearity == Linearity::linear) {
    const std::size_t first = e.op == Op::select ? 1 : 0;
    for (std::size_t i = first; i < e.inputs.size(); ++i) {
      SparsityPattern own = operand(e, i);
      own = spread(own, aval(e.inputs[i]).elements(), n);
      if (i > first && own != p && e.op != Op::add && e.op != Op::sub) masks_.leak();
      p = i == first ? own : united(p, own);
    }
  } else if (linearity == Linearity::bilinear || linearity == Linearity::first) {
    const std::size_t i = reach(e.inputs[0]).linear ? 0 : 1;
    if (!reach(e.inputs[1 - i]).linear)
      p = spread(reach(e.inputs[i]).pattern, aval(e.inputs[i]).elements(), n);
    if (p && !reach(e.inputs[1 - i]).positive)
      e.inputs[1 - i] = factor(p, e.inputs[1 - i], out.shape);
  }
  give(e, p);
  // −(−0) is +0, and x − (−0) may be: a factor of −1 is 1 there instead.
  const auto minus_one = [&](Var v) {
    return factor(reach(v).pattern, writer_.number(aval(v).dtype, -1), aval(v).shape);
  };
  if (e.op == Op::neg && p) {
    e.op = Op::mul;
    e.inputs.push_back(minus_one(e.inputs[0]));
  } else if (e.op == Op::sub && e.inputs[1] != right) {  // 0, which has become −0
    e.op = Op::add;
  } else if (e.op == Op::sub && reach(right).pattern) {
    e.op = Op::add;
    e.inputs[1] = writer_.make(Op::mul, {}, {right, minus_one(right)},
                               Aval(aval(right).dtype, aval(right).shape));
  }
  append(std::move(e));
}

void Walk::slice(Equation e) {
  const auto& params = e.as<SliceParams>();
  const SparsityPattern& p = reach(e.inputs[0]).pattern;
  const Shape &whole = aval(e.inputs[0]).shape, &part = aval(e.outputs[0]).shape;
  const auto is_one = [](std::int64_t step) { return step == 1; };
  if (!p) {
    give(e, {});
  } else if (std::all_of(params.stride.begin(), params.stride.end(), is_one)) {
    Bits bits(at(directions() * part.elements()));
    for (std::int64_t d = 0; d < directions(); ++d)
      copy_box(p->data() + d * whole.elements(), whole, params.start,
               bits.data() + d * part.elements(), part, Shape::filled(part.size(), 0), part);
    give(e, shared(std::move(bits)));
  } else {
    give(e, moved(p, whole.elements(), source_elements(to_, e)));
  }
  append(std::move(e));
}

void Walk::pad(Equation e) {
  const SparsityPattern p = operand(e, 0), edge = operand(e, 1);
  const auto& params = e.as<PadParams>();
  const Shape whole = aval(e.inputs[0]).shape, padded = aval(e.outputs[0]).shape;
  const Bits around = any_of_direction(edge, 1);
  const auto is_zero = [](std::int64_t n) { return n == 0; };
  if (std::all_of(params.interior.begin(), params.interior.end(), is_zero)) {
    Shape first = whole, place = whole, sizes = whole;
    for (std::size_t d = 0; d < whole.size(); ++d) {
      first[d] = std::max<std::int64_t>(-params.low[d], 0);
      place[d] = std::max<std::int64_t>(params.low[d], 0);
      sizes[d] = std::max<std::int64_t>(std::min(whole[d] - first[d], padded[d] - place[d]), 0);
    }
    Bits bits(at(directions() * padded.elements()), 0);
    for (std::int64_t d = 0; d < directions(); ++d) {
      char* const own = bits.data() + d * padded.elements();
      if (around[at(d)]) std::fill_n(own, padded.elements(), char{1});
      copy_box(p ? p->data() + d * whole.elements() : nullptr, whole, first, own, padded, place,
               sizes);
    }
    give(e, shared(std::move(bits)));
    return append(std::move(e));
  }
  const Vec<std::int64_t> sources = source_elements(to_, e);
  const std::int64_t from = aval(e.inputs[0]).elements();
  const auto n = static_cast<std::int64_t>(sources.size());
  Bits bits(at(directions() * n));
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t s = sources[at(k)];
      bits[at(d * n + k)] = s < 0 ? around[at(d)] : p ? (*p)[at(d * from + s)] : 1;
    }
  give(e, shared(std::move(bits)));
  append(std::move(e));
}

void Walk::concatenate(Equation e) {
  const auto axis = at(e.as<AxisParams>().axis);
  const Shape shape = aval(e.outputs[0]).shape;
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
  const std::int64_t n = shape.elements(), row = n / std::max<std::int64_t>(outer, 1);
  Bits bits(at(directions() * n), 1);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const SparsityPattern p = operand(e, i);
    const std::int64_t own = aval(e.inputs[i]).elements(),
                       run = own / std::max<std::int64_t>(outer, 1);
    for (std::int64_t d = 0; p && d < directions(); ++d)
      for (std::int64_t o = 0; o < outer; ++o)
        std::copy_n(p->begin() + d * own + o * run, run, bits.begin() + d * n + o * row + first);
    first += run;
  }
  give(e, shared(std::move(bits)));
  append(std::move(e));
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
        if ((*p)[at(d * n + k)]) bits[at(d * results + places[at(k)])] = 1;
    to = shared(std::move(bits));
  }
  give(e, std::move(to));
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
          if (bits[at(d * n + runs.at(r, before))]) bits[at(d * n + runs.at(r, here))] = 1;
        }
    to = shared(std::move(bits));
  }
  give(e, std::move(to));
  append_masked(std::move(e));
}

/// All elements are reached in a direction that reaches any.
void Walk::whole(Equation e) {
  Bits any(at(directions()), 0);
  const bool jointly = op_table[e.op].linearity == Linearity::linear;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    if (!is_inexact(aval(e.inputs[i]).dtype) || !(jointly || reach(e.inputs[i]).linear)) continue;
    const SparsityPattern p = operand(e, i);
    if (p) masks_.leak();
    const Bits own = any_of_direction(p, aval(e.inputs[i]).elements());
    for (std::size_t d = 0; d < any.size(); ++d) any[d] = static_cast<char>(any[d] | own[d]);
  }
  const SparsityPattern one = shared(std::move(any));
  for (std::size_t k = 0; k < e.outputs.size(); ++k)
    give(e, spread(one, 1, aval(e.outputs[k]).elements()), k);
  append_masked(std::move(e));
}

// ---- products -----------------------------------------------------------------------------------

void Walk::product(Equation e) {
  const std::size_t i = reach(e.inputs[0]).linear ? 0 : 1;
  const Var t = e.inputs[i], f = e.inputs[1 - i];
  const SparsityPattern p = reach(t).pattern;
  if (!p || reach(f).linear) {
    give(e, {});
    return append(std::move(e));
  }
  SparseProduct s{e.as<DotParams>(), i == 0, aval(t).shape, aval(f).shape, {}};
  // Each row of the tangent ([batch, free]) has so many terms.
  const Axes &batch = s.batch(true), &contract = s.contract(true);
  Axes free_axes;
  for (int d = 0; d < s.tangent.rank(); ++d)
    if (!batch.contains(d) && !contract.contains(d)) free_axes.push_back(d);
  Vec<std::int64_t> row_step(s.tangent.size(), 0), term_step(s.tangent.size(), 0);
  const auto extents = [&](const Axes& axes, Vec<std::int64_t>& steps, std::int64_t step) {
    std::int64_t all = 1;
    for (std::size_t k = axes.size(); k-- > 0;) {
      steps[at(axes[k])] = step * all;
      all *= s.tangent[at(axes[k])];
    }
    return all;
  };
  const std::int64_t terms = extents(contract, term_step, 1),
                     free = extents(free_axes, row_step, 1),
                     batches = extents(batch, row_step, free), n = s.tangent.elements(),
                     rows = batches * free, results = aval(e.outputs[0]).elements(),
                     others = results / std::max<std::int64_t>(rows, 1);
  Vec<std::int64_t> count(at(directions() * rows), 0);  // of the terms that are reached
  Bits of_term(at(terms), 0);                           // … in any row
  Vec<std::int64_t> index(s.tangent.size(), 0);
  std::int64_t row = 0, term = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t d = 0; d < directions(); ++d)
      if ((*p)[at(d * n + k)]) ++count[at(d * rows + row)], of_term[at(term)] = 1;
    for (std::size_t d = index.size(); d-- > 0;) {
      row += row_step[d];
      term += term_step[d];
      if (++index[d] < s.tangent[d]) break;
      row -= row_step[d] * s.tangent[d];
      term -= term_step[d] * s.tangent[d];
      index[d] = 0;
    }
  }
  Bits bits;
  bits.reserve(at(directions() * results));
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t b = 0; b < batches; ++b)
      for (std::int64_t l = 0; l < (i == 0 ? free : others); ++l)
        for (std::int64_t r = 0; r < (i == 0 ? others : free); ++r)
          bits.push_back(count[at((d * batches + b) * free + (i == 0 ? l : r))] > 0);
  give(e, shared(std::move(bits)));

  const auto first = std::find(of_term.begin(), of_term.end(), 1);
  const auto used = std::count(of_term.begin(), of_term.end(), 1);
  const auto partial = [&](std::int64_t all) {
    return any_of(count, [&](std::int64_t c) { return c > 0 && c < all; });
  };
  if (!partial(terms)) return append_masked(std::move(e));
  // Rows that have the same run of terms: the others are left out of both operands.
  if (contract.size() == 1 && !partial(used) &&
      std::all_of(first, first + used, [](char c) { return c; })) {
    const auto cut = [&](Var v, int axis) {
      const Aval a = aval(v);
      const auto d = at(axis);
      SliceParams run{Shape::filled(a.shape.size(), 0), a.shape, Shape::filled(a.shape.size(), 1)};
      run.start[d] = first - of_term.begin();
      run.limit[d] = run.start[d] + used;
      Aval part(a.dtype, a.shape);
      part.shape[d] = used;
      return writer_.make(Op::slice, make_params(std::move(run)), {v}, part);
    };
    e.inputs[i] = cut(t, contract[0]);
    e.inputs[1 - i] = cut(f, s.contract(false)[0]);
    changed_ = true;
    return append_masked(std::move(e));
  }
  const int number = masks_.number(p, s.tangent);
  s.varied = masks_[number].axes;
  const Var own = input(number), v = e.outputs[0];
  const bool all_terms = directions() * results * terms <= most_terms;
  const Var made = all_terms ? s.write(writer_, t, f, own) : s.write_checked(writer_, t, f, own);
  const Var here = reach(v).pattern ? mask(reach(v).pattern, aval(v).shape) : -1;
  if (here >= 0) {
    writer_.append(Op::select, {}, {here, made, writer_.number(aval(v).dtype, -0.0)}, v);
  } else {
    to_.equations.back().outputs[0] = v;
  }
}

/// A scatter, which adds to its operand or writes over it where the numbers of its indices say,
/// which are not looked at: from any element of the update to all.
void Walk::write(Equation e) {
  const std::size_t update = e.op == Op::dynamic_update_slice ? 1 : 2;
  const SparsityPattern into = operand(e, 0), p = operand(e, update);
  if (into || p) masks_.leak();
  Bits any = any_of_direction(p, aval(e.inputs[update]).elements());
  give(e, united(into, spread(shared(std::move(any)), 1, aval(e.outputs[0]).elements())));
  append(std::move(e));
}

// ---- bodies -------------------------------------------------------------------------------------

void Walk::add_masks(Equation& e, const Vec<int>& masks) {
  for (int m : masks) e.inputs.push_back(input(m));
}

/// What a body makes of such inputs. Remembered, so that nested loops, each of which goes to a
/// fixpoint, stay linear.
Vec<Reach> Walk::outcome(const GraphBody& body, const Vec<Reach>& inputs) {
  if (const Vec<Reach>* known = masks_.outcome(&body, inputs)) return *known;
  Walk inside(body, masks_);
  inside.writes_ = false;
  inside.run(inputs);
  Vec<Reach> results;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) results.push_back(inside.result(k));
  masks_.remember(&body, inputs, results);
  return results;
}

/// Raises what is known of a loop's operands to what its iterations make of the carries; what its
/// body gives then.
Vec<Reach> Walk::looped(const Equation& e, const GraphBody& body, std::size_t carries,
                        Vec<Reach>& inputs) {
  for (;;) {
    Vec<Reach> results = outcome(body, inputs);
    bool grew = false;
    for (std::size_t i = 0; i < carries; ++i)
      grew = join(inputs[i], results[i], aval(e.inputs[i]).elements()) || grew;
    if (!grew) return results;
  }
}

void Walk::call(Equation e) {
  CallParams params = e.as<CallParams>();
  Vec<Reach> inputs;
  for (Var v : e.inputs) inputs.push_back(reach(v));
  const Vec<Reach> results = outcome(*params.body, inputs);
  for (std::size_t k = 0; k < e.outputs.size(); ++k) reach_[at(e.outputs[k])] = results[k];
  if (!writes_) return;
  Walk inside(*params.body, masks_);
  inside.run(inputs);
  if (inside.changed()) {
    add_masks(e, inside.masks());
    changed_ = true;
    params.function = {};
    params.body = std::make_shared<const GraphBody>(inside.take());
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

void Walk::cond(Equation e) {
  CondParams params = e.as<CondParams>();
  Vec<Reach> inputs;
  for (std::size_t i = 1; i < e.inputs.size(); ++i) inputs.push_back(reach(e.inputs[i]));
  std::vector<Vec<Reach>> results;
  for (const GraphRef& body : params.branches) results.push_back(outcome(*body, inputs));
  for (std::size_t k = 0; k < e.outputs.size(); ++k) {
    const std::int64_t n = aval(e.outputs[k]).elements();
    Reach all = results[0][k];
    for (std::size_t b = 1; b < results.size(); ++b) {
      Reach own = results[b][k];
      if (own.linear != all.linear) {
        Reach& other = own.linear ? all : own;
        other = {.linear = true, .pattern = other.zero ? shared(none(n)) : SparsityPattern()};
      }
      if (all.pattern != own.pattern) masks_.leak();
      all = {.linear = all.linear || own.linear,
             .zero = all.zero && own.zero,
             .pattern = united(all.pattern, own.pattern)};
    }
    reach_[at(e.outputs[k])] = all;
  }
  if (!writes_) return;
  std::vector<std::unique_ptr<Walk>> branches;
  for (const GraphRef& body : params.branches) {
    branches.push_back(std::make_unique<Walk>(*body, masks_));
    branches.back()->run(inputs);
    for (std::size_t k = 0; k < e.outputs.size(); ++k)
      if (reach(e.outputs[k]).linear) branches.back()->make_linear(k);
  }
  bool changed = false;
  for (const auto& b : branches) changed = changed || b->changed();
  if (changed) {
    changed_ = true;
    // All branches read the masks of all, in one order.
    Vec<int> masks;
    for (const auto& b : branches)
      for (int m : b->masks())
        if (std::find(masks.begin(), masks.end(), m) == masks.end()) masks.push_back(m);
    for (std::size_t b = 0; b < branches.size(); ++b)
      params.branches[b] = std::make_shared<const GraphBody>(branches[b]->take_with(masks));
    add_masks(e, masks);
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

/// What a carry is before an iteration, from what it is after one. Does that change it?
bool Walk::join(Reach& carry, const Reach& next, std::int64_t elements) const {
  const Reach before = carry;
  if (next.linear && !carry.linear)
    carry = {.linear = true, .pattern = carry.zero ? shared(none(elements)) : SparsityPattern()};
  if (carry.linear) {
    const SparsityPattern own = next.linear ? next.pattern
                                : next.zero ? shared(none(elements))
                                            : SparsityPattern();
    const SparsityPattern all = united(carry.pattern, own);
    if (all != carry.pattern && (!all || !carry.pattern || *all != *carry.pattern)) {
      masks_.leak();
      carry.pattern = all;
    }
  } else {
    carry.zero = carry.zero && next.zero;
    carry.positive = carry.positive && next.positive;
  }
  return carry.linear != before.linear || carry.zero != before.zero ||
         carry.positive != before.positive || carry.pattern != before.pattern;
}

/// Writes a loop's body for such operands, and −0 for carries that begin as 0.
void Walk::begin_loop(Equation& e, Walk& body, std::size_t carries, const Vec<Reach>& inputs) {
  body.run(inputs);
  for (std::size_t i = 0; i < carries; ++i) {
    if (!inputs[i].linear) continue;
    body.make_linear(i);
    if (!reach(e.inputs[i]).linear) operand(e, i);
  }
}

void Walk::loop_while(Equation e) {
  WhileParams params = e.as<WhileParams>();
  const auto carries = at(params.carries);
  Vec<Reach> inputs;
  for (Var v : e.inputs) inputs.push_back(reach(v));
  looped(e, *params.body, carries, inputs);
  for (std::size_t i = 0; i < carries; ++i) reach_[at(e.outputs[i])] = inputs[i];
  if (!writes_) return;
  Walk body(*params.body, masks_);
  begin_loop(e, body, carries, inputs);
  if (body.changed()) {
    const Vec<int> masks = body.masks();
    params.body = std::make_shared<const GraphBody>(body.take_with(masks));
    GraphBody condition = *params.condition;  // which reads no tangents
    for (int m : masks)
      condition.inputs.push_back(condition.fresh(Aval(DType::bool_, masks_[m].shape)));
    params.condition = std::make_shared<const GraphBody>(std::move(condition));
    add_masks(e, masks);
    changed_ = true;
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

void Walk::scan(Equation e) {
  ScanParams params = e.as<ScanParams>();
  const auto carries = at(params.carries), rest = carries + at(params.sequences);
  Vec<Reach> inputs;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    Reach r = reach(e.inputs[i]);
    if (i >= carries && i < rest && r.pattern) {
      // Of any iteration.
      masks_.leak();
      const std::int64_t all = aval(e.inputs[i]).elements(),
                         n = params.body->aval(params.body->inputs[i]).elements();
      Bits bits = none(n);
      for (std::int64_t d = 0; d < directions(); ++d)
        for (std::int64_t k = 0; k < all; ++k)
          if ((*r.pattern)[at(d * all + k)]) bits[at(d * n + k % n)] = 1;
      r.pattern = shared(std::move(bits));
    }
    inputs.push_back(std::move(r));
  }
  const Vec<Reach> results = looped(e, *params.body, carries, inputs);
  for (std::size_t i = 0; i < carries; ++i) reach_[at(e.outputs[i])] = inputs[i];
  for (std::size_t k = carries; k < e.outputs.size(); ++k) {
    Reach r = results[k];
    const std::int64_t all = aval(e.outputs[k]).elements();
    if (r.pattern) {
      const auto n = static_cast<std::int64_t>(r.pattern->size()) / directions();
      Vec<std::int64_t> sources;
      for (std::int64_t i = 0; i < all; ++i) sources.push_back(i % n);
      r.pattern = moved(r.pattern, n, sources);
    }
    reach_[at(e.outputs[k])] = std::move(r);
  }
  if (!writes_) return;
  Walk body(*params.body, masks_);
  begin_loop(e, body, carries, inputs);
  if (body.changed()) {
    const Vec<int> masks = body.masks();
    params.body = std::make_shared<const GraphBody>(body.take_with(masks));
    add_masks(e, masks);
    changed_ = true;
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

/// The Graph, which reads such masks behind its own inputs, in this order.
GraphBody Walk::take_with(const Vec<int>& masks) {
  to_.inputs.resize(from_.inputs.size());
  for (int m : masks) {
    const auto* known = inputs_.find(m);
    to_.inputs.push_back(known != inputs_.end() ? known->second
                                                : to_.fresh(Aval(DType::bool_, masks_[m].shape)));
  }
  return std::move(to_);
}

}  // namespace sparsity

SparsityPattern identity_pattern(std::int64_t start, std::int64_t rows, std::int64_t elements) {
  using namespace sparsity;
  Bits bits(at(rows * elements), 0);
  for (std::int64_t r = 0; r < rows; ++r) bits[at(r * elements + start + r)] = 1;
  return shared(std::move(bits));
}

std::optional<MaskedGraph> keep_zeros(const GraphBody& graph, const Vec<SparsityPattern>& linear,
                                      std::int64_t directions) {
  using namespace sparsity;
  Masks masks(directions);
  Walk walk(graph, masks);
  Vec<Reach> inputs(graph.inputs.size());
  for (std::size_t i = 0; i < linear.size(); ++i)
    inputs[i] = {.linear = is_inexact(graph.aval(graph.inputs[i]).dtype), .pattern = linear[i]};
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
          keep_zeros(linear.graph, Vec<SparsityPattern>(arguments.size()), 1)) {
    linear.graph = std::move(sparse->graph);
    for (SparsityMask& m : sparse->masks) all.push_back(std::move(m.value));
  }
  return replay(linear.graph, all);
}

bool may_be_sparse(const GraphBody& linear, LinearDirection direction) {
  // Of what is made of inputs by moves alone nothing but moves is pulled back further.
  Vec<bool> moves(linear.avals.size(), false);
  for (Var v : linear.inputs) moves[sparsity::at(v)] = true;
  return any_of(linear.equations, [&](const Equation& e) {
    const bool pulls = direction == LinearDirection::pull;
    switch (e.op) {
      case Op::pad:
      case Op::concatenate: return !pulls;
      case Op::slice:
      case Op::gather:
      case Op::dynamic_slice:
        moves[sparsity::at(e.outputs[0])] = moves[sparsity::at(e.inputs[0])];
        return pulls && !moves[sparsity::at(e.inputs[0])];
      case Op::reshape:
      case Op::transpose:
      case Op::rev:
        moves[sparsity::at(e.outputs[0])] = moves[sparsity::at(e.inputs[0])];
        return false;
      default: return family_of(e.op) == Family::index || family_of(e.op) == Family::structure;
    }
  });
}

}  // namespace vt::detail
