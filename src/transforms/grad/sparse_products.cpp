// Matrix products of tangents of which some elements are reached by nothing: terms with those are
// left out, whatever the factor is.
#include <algorithm>
#include <memory>

#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

/// Products of so many terms are written with all of them, larger ones with the plain product
/// beside: see SparseProduct.
constexpr std::int64_t most_terms = std::int64_t{1} << 18;

namespace product_parts {

inline Axes free_axes(const Shape& shape, const Axes& batch, const Axes& contract) {
  Axes free;
  for (int d = 0; d < shape.rank(); ++d)
    if (!batch.contains(d) && !contract.contains(d)) free.push_back(d);
  return free;
}

inline Axes moved_by(Axes axes, int by) {
  for (int& d : axes) d += by;
  return axes;
}

/// A mask whose axes come to lie at `to`, in an array of such a shape.
inline Var placed(Writer& w, Var mask, Axes to, const Shape& shape) {
  Axes order = Axes::first(static_cast<int>(to.size()));
  std::sort(order.begin(), order.end(), [&](int a, int b) { return to[a] < to[b]; });
  if (!std::is_sorted(to.begin(), to.end())) {
    Shape moved;
    for (int d : order) moved.push_back(w.aval(mask).shape[d]);
    mask = w.make(Op::transpose, make_params(PermutationParams{order}), {mask},
                  Aval(DType::bool_, moved));
    std::sort(to.begin(), to.end());
  }
  return w.aval(mask).shape == shape ? mask : w.broadcast(mask, shape, to);
}

/// A mask of several elements without the axes that it does not vary along.
inline Var without_uniform(Writer& w, Var mask, const Axes& varied) {
  const Shape whole = w.aval(mask).shape;
  SliceParams first{Shape::filled(whole.size(), 0), whole, Shape::filled(whole.size(), 1)};
  Shape part = whole, kept;
  for (int d = 0; d < whole.rank(); ++d) {
    if (varied.contains(d)) kept.push_back(whole[d]);
    else part[d] = first.limit[d] = 1;
  }
  if (kept == whole) return mask;
  mask = w.make(Op::slice, make_params(std::move(first)), {mask}, Aval(DType::bool_, part));
  return w.make(Op::reshape, make_params(ShapeParams{kept}), {mask}, Aval(DType::bool_, kept));
}

inline int place_of(const Axes& axes, int d) {
  return static_cast<int>(std::find(axes.begin(), axes.end(), d) - axes.begin());
}

}  // namespace product_parts
using namespace product_parts;

Var SparseProduct::plain(Writer& w, Var t, Var f, const DotParams& p, const Shape& out) const {
  return on_the_left
             ? w.make(Op::dot_general, make_params(DotParams(p)), {t, f}, Aval(p.dtype, out))
             : w.make(Op::dot_general, make_params(DotParams(p)), {f, t}, Aval(p.dtype, out));
}

// The factors are made 1 where the tangent is 0. What the mask says along free axes of the tangent
// goes for the factors of that row alone, so these axes become a batch.
Var SparseProduct::write(Writer& w, Var t, Var f, Var mask) const {
  Axes rows;  // of the tangent: free, and varied
  for (int d : free_axes(tangent, batch(true), contract(true)))
    if (varied.contains(d)) rows.push_back(d);
  const int count = static_cast<int>(rows.size());
  Shape shape;
  for (int d : rows) shape.push_back(tangent[d]);
  shape.append(factors.begin(), factors.end());
  if (count > 0) f = w.broadcast(f, shape, moved_by(Axes::first(factors.rank()), count));

  // Where the axes of the mask come to lie there, and the mask with these in order.
  Axes to;
  for (int d : varied)
    to.push_back(rows.contains(d)          ? place_of(rows, d)
                 : batch(true).contains(d) ? count + batch(false)[place_of(batch(true), d)]
                                           : count + contract(false)[place_of(contract(true), d)]);
  mask = placed(w, mask, to, shape);
  const Var one = w.number(w.aval(f).dtype, 1);
  f = w.select(mask, f, one, Aval(w.aval(f).dtype, shape));

  DotParams p = params;
  Axes &of_tangent = on_the_left ? p.lhs_batch : p.rhs_batch,
       &of_factors = on_the_left ? p.rhs_batch : p.lhs_batch,
       &terms = on_the_left ? p.rhs_contract : p.lhs_contract;
  of_factors = moved_by(of_factors, count);
  terms = moved_by(terms, count);
  for (int k = 0; k < count; ++k) {
    of_tangent.push_back(rows[k]);
    of_factors.push_back(k);
  }
  // [batch, rows, the rest of the left, the rest of the right], and from there to the axes of the
  // product without rows.
  Shape made;
  Axes names;  // of the axes made: tangent's axes, or those of the factors behind them
  const auto add = [&](bool is_tangent, int d) {
    made.push_back(is_tangent ? tangent[d] : factors[d]);
    names.push_back(is_tangent ? d : tangent.rank() + d);
  };
  const Axes of_t = free_axes(tangent, batch(true), contract(true)),
             of_f = free_axes(factors, batch(false), contract(false));
  Axes wanted;
  for (int d : batch(true)) add(true, d), wanted.push_back(d);
  for (int d : rows) add(true, d);
  for (const bool is_tangent : {on_the_left, !on_the_left})
    for (int d : is_tangent ? of_t : of_f) {
      if (!is_tangent || !rows.contains(d)) add(is_tangent, d);
      wanted.push_back(is_tangent ? d : tangent.rank() + d);
    }
  const Var product = plain(w, t, f, p, made);
  if (names == wanted) return product;
  Axes permutation;
  Shape out;
  for (int name : wanted) {
    permutation.push_back(place_of(names, name));
    out.push_back(made[permutation.back()]);
  }
  return w.make(Op::transpose, make_params(PermutationParams{permutation}), {product},
                Aval(p.dtype, out));
}

Shape SparseProduct::shape() const {
  Shape out;
  for (int d : batch(true)) out.push_back(tangent[d]);
  for (const bool is_tangent : {on_the_left, !on_the_left}) {
    const Shape& own = is_tangent ? tangent : factors;
    for (int d : free_axes(own, batch(is_tangent), contract(is_tangent))) out.push_back(own[d]);
  }
  return out;
}

Axes SparseProduct::places_reached() const {
  Axes to;
  const Axes free = free_axes(tangent, batch(true), contract(true));
  const std::size_t others = factors.size() - batch(false).size() - contract(false).size();
  const int first_free = static_cast<int>(batch(true).size() + (on_the_left ? 0 : others));
  for (int d : varied)
    if (!contract(true).contains(d))
      to.push_back(batch(true).contains(d) ? place_of(batch(true), d)
                                           : first_free + place_of(free, d));
  return to;
}

Var SparseProduct::reached(Writer& w, Var mask) const {
  Shape kept;
  Axes terms;
  for (std::size_t k = 0; k < varied.size(); ++k) {
    if (contract(true).contains(varied[k])) terms.push_back(static_cast<int>(k));
    else kept.push_back(tangent[varied[k]]);
  }
  if (!terms.empty())
    mask = w.make(Op::reduce_any, make_params(AxesParams{terms}), {mask}, Aval(DType::bool_, kept));
  return placed(w, mask, places_reached(), shape());
}

Var SparseProduct::write_checked(Writer& w, Var t, Var f, Var mask) const {
  const Shape out = shape();
  Vec<GraphRef> branches;
  for (const bool all_finite : {false, true}) {
    auto body = std::make_shared<GraphBody>();
    Writer inside{*body, w.where, w.assume_finite};
    for (Var v : {t, f, mask}) body->inputs.push_back(body->fresh(w.aval(v)));
    const Vec<Var>& in = body->inputs;
    body->outputs.push_back(all_finite ? plain(inside, in[0], in[1], params, out)
                                       : write(inside, in[0], in[1], in[2]));
    branches.push_back(std::move(body));
  }
  const Var finite = w.make(Op::is_finite, {}, {f}, Aval(DType::bool_, factors)),
            all = w.make(Op::reduce_all, make_params(AxesParams{Axes::first(factors.rank())}),
                         {finite}, Aval(DType::bool_, Shape{})),
            index = w.make(Op::convert, make_params(ConvertParams{DType::i32}), {all},
                           Aval(DType::i32, Shape{}));
  return w.make(Op::cond, make_params(CondParams{std::move(branches), {}}), {index, t, f, mask},
                Aval(params.dtype, out));
}

// --- the walk ------------------------------------------------------------------------------------

void Walk::product(Equation e) {
  const std::size_t i = reach(e.inputs[0]).linear ? 0 : 1;
  const Var t = e.inputs[i], f = e.inputs[1 - i];
  const SparsityPattern p = reach(t).pattern;
  if (!has_holes(t) || reach(f).linear || aval(t).elements() == 0) {
    give(e, {});
    return append(std::move(e));
  }
  SparseProduct s{e.as<DotParams>(), i == 0, aval(t).shape, aval(f).shape, {}};
  if (const Var own = computed(t); own >= 0) {
    s.varied = varied(t);
    const Var compact = without_uniform(writer_, own, s.varied);
    give(e, spread_any(t, aval(e.outputs[0])), s.reached(writer_, compact), s.places_reached());
    const bool partial = any_of(s.varied, [&](int d) { return s.contract(true).contains(d); });
    return partial ? masked_product(e.outputs[0], s, t, f, compact) : append_masked(std::move(e));
  }
  // Each row of the tangent ([batch, free]) has so many terms.
  const Axes &batch = s.batch(true), &contract = s.contract(true);
  Axes free_axes;
  for (int d = 0; d < s.tangent.rank(); ++d)
    if (!batch.contains(d) && !contract.contains(d)) free_axes.push_back(d);
  Vec<std::int64_t> row_step(s.tangent.size(), 0), term_step(s.tangent.size(), 0);
  const auto extents = [&](const Axes& axes, Vec<std::int64_t>& steps, std::int64_t step) {
    std::int64_t all = 1;
    for (std::size_t k = axes.size(); k-- > 0;) {
      steps[axes[k]] = step * all;
      all *= s.tangent[axes[k]];
    }
    return all;
  };
  const std::int64_t terms = extents(contract, term_step, 1),
                     free = extents(free_axes, row_step, 1),
                     batches = extents(batch, row_step, free), n = s.tangent.elements(),
                     rows = batches * free, results = aval(e.outputs[0]).elements(),
                     others = results / std::max<std::int64_t>(rows, 1);
  Vec<std::int64_t> count(directions() * rows, 0);  // of the terms that are reached
  Bits of_term(terms, 0);                           // … in any row
  Vec<std::int64_t> index(s.tangent.size(), 0);
  std::int64_t row = 0, term = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t d = 0; d < directions(); ++d)
      if ((*p)[d * n + k]) ++count[d * rows + row], of_term[term] = 1;
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
  bits.reserve(directions() * results);
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t b = 0; b < batches; ++b)
      for (std::int64_t l = 0; l < (i == 0 ? free : others); ++l)
        for (std::int64_t r = 0; r < (i == 0 ? others : free); ++r)
          bits.push_back(count[(d * batches + b) * free + (i == 0 ? l : r)] > 0);
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
      const std::size_t d = axis;
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
  masked_product(e.outputs[0], s, t, f, input(number));
}

/// The product `v` without the terms that the mask leaves out.
void Walk::masked_product(Var v, const SparseProduct& s, Var t, Var f, Var mask) {
  std::int64_t terms = 1;
  for (int d : s.contract(true)) terms *= s.tangent[d];
  const bool all_terms = directions() * aval(v).elements() * terms <= most_terms;
  const Var made = all_terms ? s.write(writer_, t, f, mask) : s.write_checked(writer_, t, f, mask);
  if (has_holes(v)) {
    writer_.select(reached(v), made, writer_.number(aval(v).dtype, -0.0), v);
  } else {
    to_.equations.back().outputs[0] = v;
  }
}

}  // namespace vt::detail::sparsity
