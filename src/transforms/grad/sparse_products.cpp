// Matrix products of tangents of which some elements are reached by nothing: terms with those are
// left out, whatever the factor is.
#include <algorithm>
#include <memory>

#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

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
  for (int d : rows) shape.push_back(tangent[at(d)]);
  shape.append(factors.begin(), factors.end());
  if (count > 0) f = w.broadcast(f, shape, moved_by(Axes::first(factors.rank()), count));

  // Where the axes of the mask come to lie there, and the mask with these in order.
  Axes to;
  for (int d : varied)
    to.push_back(rows.contains(d) ? place_of(rows, d)
                 : batch(true).contains(d)
                     ? count + batch(false)[at(place_of(batch(true), d))]
                     : count + contract(false)[at(place_of(contract(true), d))]);
  Axes order = Axes::first(static_cast<int>(to.size()));
  std::sort(order.begin(), order.end(), [&](int a, int b) { return to[at(a)] < to[at(b)]; });
  if (!std::is_sorted(to.begin(), to.end())) {
    Shape moved;
    for (int d : order) moved.push_back(w.aval(mask).shape[at(d)]);
    mask = w.make(Op::transpose, make_params(PermutationParams{order}), {mask},
                  Aval(DType::bool_, moved));
    std::sort(to.begin(), to.end());
  }
  if (w.aval(mask).shape != shape) mask = w.broadcast(mask, shape, to);
  const Var one = w.number(w.aval(f).dtype, 1);
  f = w.make(Op::select, {}, {mask, f, one}, Aval(w.aval(f).dtype, shape));

  DotParams p = params;
  Axes &of_tangent = on_the_left ? p.lhs_batch : p.rhs_batch,
       &of_factors = on_the_left ? p.rhs_batch : p.lhs_batch,
       &terms = on_the_left ? p.rhs_contract : p.lhs_contract;
  of_factors = moved_by(of_factors, count);
  terms = moved_by(terms, count);
  for (int k = 0; k < count; ++k) {
    of_tangent.push_back(rows[at(k)]);
    of_factors.push_back(k);
  }
  // [batch, rows, the rest of the left, the rest of the right], and from there to the axes of the
  // product without rows.
  Shape made;
  Axes names;  // of the axes made: tangent's axes, or those of the factors behind them
  const auto add = [&](bool is_tangent, int d) {
    made.push_back(is_tangent ? tangent[at(d)] : factors[at(d)]);
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
    out.push_back(made[at(permutation.back())]);
  }
  return w.make(Op::transpose, make_params(PermutationParams{permutation}), {product},
                Aval(p.dtype, out));
}

Var SparseProduct::write_checked(Writer& w, Var t, Var f, Var mask) const {
  Shape out;
  for (int d : batch(true)) out.push_back(tangent[at(d)]);
  for (const bool is_tangent : {on_the_left, !on_the_left}) {
    const Shape& own = is_tangent ? tangent : factors;
    for (int d : free_axes(own, batch(is_tangent), contract(is_tangent))) out.push_back(own[at(d)]);
  }
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

}  // namespace vt::detail::sparsity
