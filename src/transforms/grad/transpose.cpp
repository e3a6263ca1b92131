// The transpose walk over a linear Graph, and the table of transpose rules with the element-wise ones.
#include "transpose.hpp"

#include <algorithm>
#include <string>

#include <vt/small_vec.hpp>

#include "../../trace/dependence.hpp"
#include "../../trace/thread_state.hpp"
#include "../../trace/timeline.hpp"
#include "build.hpp"
#include "call_rules.hpp"
#include "linear_call.hpp"

namespace vt::detail {

namespace transpose_rules {

using namespace grad_build;

void refuse(const TransposeCall& c) {
  fail(ErrorKind::transform,
       "vt::" + std::string(name_of(c.equation.op)) +
           " is used on a tangent or cotangent in a way that is not linear, so it cannot be transposed; what custom rules make of tangents "
           "and cotangents must be linear in them",
       c.equation.where);
}

/// Sums what was spread: a cotangent of the result's shape brought to operand i, which may be a scalar.
inline Tensor onto(const TransposeCall& c, std::size_t i, Tensor ct) { return c.shape(i).rank() == 0 ? sum_all(ct) : std::move(ct); }

/// An operand that does not depend on a tangent should be zero here, and is: zeros that custom rules were given in place of
/// symbolic ones, times something.
inline void add(const TransposeCall& c) {
  for (std::size_t i : {0u, 1u})
    if (c.linear(i)) c.cotangents[i] = onto(c, i, c.ct());
}
inline void sub(const TransposeCall& c) {
  add(c);
  if (c.linear(1)) c.cotangents[1] = unary(Op::neg, c.cotangents[1]);
}
inline void mul(const TransposeCall& c) {
  if (c.linear(0) && c.linear(1)) refuse(c);
  const std::size_t i = c.linear(0) ? 0 : 1;
  const Tensor& factor = c.x[1 - i];
  // A scalar factor is applied after the sum, to one number.
  const bool late = c.shape(i).rank() == 0 && factor.rank() == 0;
  c.cotangents[i] = late ? binary(Op::mul, onto(c, i, c.ct()), factor) : onto(c, i, binary(Op::mul, c.ct(), factor));
}
inline void div(const TransposeCall& c) {
  if (c.linear(1)) refuse(c);
  c.cotangents[0] = onto(c, 0, binary(Op::div, c.ct(), c.x[1]));
}
inline void select(const TransposeCall& c) {
  const Tensor zero = scalar(c.ct().dtype(), 0);
  if (c.linear(1)) c.cotangents[1] = onto(c, 1, choose(c.x[0], c.ct(), zero));
  if (c.linear(2)) c.cotangents[2] = onto(c, 2, choose(c.x[0], zero, c.ct()));
}
inline void integer_pow(const TransposeCall& c) {
  if (c.as<IntegerPowParams>().exponent != 1) refuse(c);
  c.cotangents[0] = c.ct();
}
/// Real numbers that became complex ones see the real part of the cotangent.
inline void convert(const TransposeCall& c) {
  const DType own = c.operand(0).dtype;
  const bool dropped = is_complex(c.ct().dtype()) && !is_complex(own);
  c.cotangents[0] = convert_to(dropped ? unary(Op::real, c.ct()) : c.ct(), own);
}

// Cotangents go with tangents by the real part of the plain product, without conjugation: the cotangent of z stands for
// ∂/∂re z − i·∂/∂im z, and linear maps of complex numbers are transposed as they are.
inline void real(const TransposeCall& c) { c.cotangents[0] = binary(Op::complex, c.ct(), scalar(c.ct().dtype(), 0)); }
inline void imag(const TransposeCall& c) { c.cotangents[0] = binary(Op::complex, scalar(c.ct().dtype(), 0), unary(Op::neg, c.ct())); }
inline void conj(const TransposeCall& c) { c.cotangents[0] = unary(Op::conj, c.ct()); }
inline void complex(const TransposeCall& c) {
  if (c.linear(0)) c.cotangents[0] = onto(c, 0, unary(Op::real, c.ct()));
  if (c.linear(1)) c.cotangents[1] = onto(c, 1, unary(Op::neg, unary(Op::imag, c.ct())));
}
inline void reduce_precision(const TransposeCall& c) { c.cotangents[0] = emit(Op::reduce_precision, c.equation.params, {c.ct()}, {}); }

/// Of the sum of what all lanes make of it: psum and all_to_all are their own transposes.
inline void psum(const TransposeCall& c) { c.cotangents[0] = emit(c.equation.op, c.equation.params, {c.ct()}, {}); }
inline void all_gather(const TransposeCall& c) { c.cotangents[0] = sum_over(emit(Op::all_to_all, c.equation.params, {c.ct()}, {}), Axes{0}); }
inline void ppermute(const TransposeCall& c) {
  const auto& p = c.as<CollectiveParams>();
  CollectiveParams back{p.axis, Vec<std::int64_t>(p.sources.size(), -1)};
  for (std::size_t i = 0; i < p.sources.size(); ++i)
    if (p.sources[i] >= 0) back.sources[static_cast<std::size_t>(p.sources[i])] = static_cast<std::int64_t>(i);
  c.cotangents[0] = emit(Op::ppermute, make_params(std::move(back)), {c.ct()}, {});
}

// A call is transposed as if its equations stood here. Rules of custom functions do not apply: they speak of the function, and
// what is transposed here is a derivative of which that function is a part.
inline void inlined(const TransposeCall& c) {
  const GraphBody& body = *c.as<CallParams>().body;
  // transpose_graph wants the linear inputs first.
  GraphBody ordered = body;
  ordered.inputs.clear();
  std::vector<Tensor> rest;
  Vec<std::size_t> linear;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    if (!c.linear(i)) continue;
    linear.push_back(i);
    ordered.inputs.push_back(body.inputs[i]);
  }
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    if (c.linear(i)) continue;
    ordered.inputs.push_back(body.inputs[i]);
    rest.push_back(c.x[i]);
  }
  const std::vector<Tensor> cts = transpose_graph(ordered, linear.size(), rest, c.results);
  for (std::size_t k = 0; k < linear.size(); ++k) c.cotangents[linear[k]] = cts[k];
}
inline void custom_jvp(const TransposeCall& c) {
  const auto& p = c.as<CallParams>();
  if (!p.rule->transpose) return inlined(c);
  const auto linear = static_cast<std::size_t>(p.rule->linear);
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < c.results.size(); ++i)
    arguments.push_back(c.results[i].defined() ? c.results[i] : zeros(c.graph.aval(c.equation.outputs[i])));
  for (std::size_t i = linear; i < c.x.size(); ++i) {
    if (c.linear(i)) refuse(c);
    arguments.push_back(c.x[i]);
  }
  const std::vector<Tensor> cts = p.rule->transpose(arguments);
  for (std::size_t i = 0; i < linear; ++i)
    if (c.linear(i)) c.cotangents[i] = cts[i];
}
inline void custom_vjp(const TransposeCall& c) {
  const auto& p = c.as<CallParams>();
  const std::shared_ptr<const OwnDerivative>& own = p.rule->own;
  const auto count = static_cast<std::size_t>(p.explicit_operands);
  bool known = own && own->transpose;
  for (std::size_t i = 0; known && i < c.x.size(); ++i) known = (i >= own->first_linear && i < count) || !c.linear(i);
  if (!known) return inlined(c);
  const std::vector<Tensor> cts = own->transpose(c.x.first(count), c.results);
  for (std::size_t i = 0; i < cts.size(); ++i)
    if (c.linear(i)) c.cotangents[i] = cts[i];
}
inline void call(const TransposeCall& c) {
  if (!is_linear_call(c.equation)) return called(c);
  std::vector<Tensor> results(c.results.begin(), c.results.end());
  const std::vector<Tensor> cts = pull_linear_call(c.equation, c.x, results);
  for (std::size_t i = 0; i < cts.size(); ++i) c.cotangents[i] = cts[i];
}

inline constexpr auto table = rule_table<TransposeRule>({
    {Op::input, not_linear},
    {Op::constant, not_linear},
    {Op::full, not_linear},
    {Op::iota, not_linear},

    {Op::neg, [](const TransposeCall& c) { c.cotangents[0] = unary(Op::neg, c.ct()); }},
    {Op::abs, not_linear},
    {Op::sign, not_linear},
    {Op::floor, not_linear},
    {Op::ceil, not_linear},
    {Op::round, not_linear},
    {Op::trunc, not_linear},
    {Op::exp, not_linear},
    {Op::exp2, not_linear},
    {Op::expm1, not_linear},
    {Op::log, not_linear},
    {Op::log1p, not_linear},
    {Op::log2, not_linear},
    {Op::sqrt, not_linear},
    {Op::rsqrt, not_linear},
    {Op::cbrt, not_linear},
    {Op::sin, not_linear},
    {Op::cos, not_linear},
    {Op::tan, not_linear},
    {Op::asin, not_linear},
    {Op::acos, not_linear},
    {Op::atan, not_linear},
    {Op::sinh, not_linear},
    {Op::cosh, not_linear},
    {Op::tanh, not_linear},
    {Op::asinh, not_linear},
    {Op::acosh, not_linear},
    {Op::atanh, not_linear},
    {Op::sigmoid, not_linear},
    {Op::erf, not_linear},
    {Op::erfc, not_linear},
    {Op::erf_inv, not_linear},
    {Op::lgamma, not_linear},
    {Op::digamma, not_linear},
    {Op::gamma, not_linear},
    {Op::erfcx, not_linear},
    {Op::erfc_inv, not_linear},
    {Op::ndtr, not_linear},
    {Op::log_ndtr, not_linear},
    {Op::dawsn, not_linear},
    {Op::expi, not_linear},
    {Op::spence, not_linear},
    {Op::fresnel_sin, not_linear},
    {Op::fresnel_cos, not_linear},
    {Op::bessel_i0e, not_linear},
    {Op::bessel_i1e, not_linear},
    {Op::bessel_k0e, not_linear},
    {Op::bessel_k1e, not_linear},
    {Op::bessel_j0, not_linear},
    {Op::bessel_j1, not_linear},
    {Op::bessel_y0, not_linear},
    {Op::bessel_y1, not_linear},
    {Op::real, real},
    {Op::imag, imag},
    {Op::conj, conj},
    {Op::is_finite, not_linear},
    {Op::is_nan, not_linear},
    {Op::is_inf, not_linear},
    {Op::integer_pow, integer_pow},
    {Op::not_, not_linear},
    {Op::popcount, not_linear},
    {Op::clz, not_linear},
    {Op::convert, convert},
    {Op::bitcast, not_linear},
    {Op::reduce_precision, reduce_precision},
    {Op::stop_gradient, [](const TransposeCall&) {}},

    {Op::add, add},
    {Op::sub, sub},
    {Op::mul, mul},
    {Op::div, div},
    {Op::rem, not_linear},
    {Op::pow, not_linear},
    {Op::max, not_linear},
    {Op::min, not_linear},
    {Op::atan2, not_linear},
    {Op::nextafter, not_linear},
    {Op::zeta, not_linear},
    {Op::eq, not_linear},
    {Op::ne, not_linear},
    {Op::lt, not_linear},
    {Op::le, not_linear},
    {Op::gt, not_linear},
    {Op::ge, not_linear},
    {Op::and_, not_linear},
    {Op::or_, not_linear},
    {Op::xor_, not_linear},
    {Op::shift_left, not_linear},
    {Op::shift_right_logical, not_linear},
    {Op::shift_right_arithmetic, not_linear},
    {Op::threefry, not_linear},
    {Op::complex, complex},
    {Op::select, select},

    {Op::reduce_sum, reduce_sum},
    {Op::reduce_prod, not_linear},
    {Op::reduce_max, not_linear},
    {Op::reduce_min, not_linear},
    {Op::reduce_any, not_linear},
    {Op::reduce_all, not_linear},
    {Op::argmax, not_linear},
    {Op::argmin, not_linear},
    {Op::reduce, not_linear},
    {Op::cumsum, cumsum},
    {Op::cumprod, not_linear},
    {Op::cummax, not_linear},
    {Op::cummin, not_linear},
    {Op::cumlogsumexp, not_linear},

    {Op::sort, not_linear},

    {Op::reshape, reshape},
    {Op::transpose, transpose},
    {Op::broadcast_in_dim, broadcast_in_dim},
    {Op::concatenate, concatenate},
    {Op::pad, pad},
    {Op::rev, rev},
    {Op::slice, slice},
    {Op::dynamic_slice, dynamic_slice},
    {Op::dynamic_update_slice, dynamic_update_slice},
    {Op::gather, gather},
    {Op::scatter, scatter},
    {Op::scatter_add, scatter_add},
    {Op::scatter_mul, scatter_mul},
    {Op::scatter_min, not_linear},
    {Op::scatter_max, not_linear},
    {Op::windows, windows},
    {Op::overlap_add, overlap_add},
    {Op::dot_general, dot_general},
    {Op::conv_general, conv_general},

    {Op::fft, fft},
    {Op::cholesky, not_linear},
    {Op::triangular_solve, triangular_solve},
    {Op::lu, not_linear},
    {Op::solve, solve},
    {Op::qr, not_linear},
    {Op::eigh, not_linear},
    {Op::svd, not_linear},
    {Op::eig, not_linear},
    {Op::tridiagonal_solve, tridiagonal_solve},
    {Op::psum, psum},
    {Op::pmax, not_linear},
    {Op::pmin, not_linear},
    {Op::all_gather, all_gather},
    {Op::all_to_all, psum},
    {Op::ppermute, ppermute},

    {Op::call, call},
    {Op::recursive_call, recursive_call},
    {Op::custom_jvp, custom_jvp},
    {Op::custom_vjp, custom_vjp},
    {Op::custom_vmap, inlined},
    {Op::checkpoint, inlined},
    {Op::cond, control},
    {Op::while_, control},
    {Op::scan, control},
    {Op::debug_print, not_linear},
    {Op::check, not_linear},
    {Op::callback, not_linear},
});
static_assert(RuleMissingFor<first_without_rule(table)>::ok);

}  // namespace transpose_rules

namespace transpose_walk {

inline std::size_t index(Var v) { return static_cast<std::size_t>(v); }

/// Values by Var, and which Vars depend on the linear inputs.
struct Values {
  RecycledVec<Tensor> x;
  Vec<bool> linear;

  Values(const GraphBody& graph, std::size_t linear_inputs, std::span<const Tensor> rest) : x(graph.avals.size()), linear(graph.avals.size()) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (i < linear_inputs) linear[index(graph.inputs[i])] = true;
      else x[index(graph.inputs[i])] = rest[i - linear_inputs];
    }
  }
  auto take() {
    return [this](Var v, Tensor t) { x[index(v)] = std::move(t); };
  }
  /// A loop that carries tangents beside values has results that depend on no tangent: they are the same when these are zero.
  void keep_independent(const GraphBody& graph, const Equation& e) {
    Dependence::Flags operands;
    for (Var v : e.inputs) operands.push_back(linear[index(v)]);
    const Dependence::Flags made = Dependence().results(graph, e, operands);
    if (std::find(made.begin(), made.end(), false) == made.end()) return;
    std::vector<Tensor> at_zero;
    for (Var v : e.inputs) at_zero.push_back(linear[index(v)] ? grad_build::zeros(graph.aval(v)) : x[index(v)]);
    repeat(graph, e, at_zero, [&](Var v, Tensor t) {
      const auto i = static_cast<std::size_t>(std::find(e.outputs.begin(), e.outputs.end(), v) - e.outputs.begin());
      if (made[i]) return;
      linear[index(v)] = false;
      x[index(v)] = std::move(t);
    });
  }
  bool depends(const Equation& e) const {
    for (Var v : e.inputs)
      if (linear[index(v)]) return true;
    return false;
  }
};

/// The axis along which a slice takes a run of elements, all of the others; −1: it is no such slice.
inline int axis_of_run(const SliceParams& p, const Shape& from) {
  int axis = -1;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (p.stride[d] != 1) return -1;
    if (p.start[d] == 0 && p.limit[d] == from[d]) continue;
    if (axis >= 0) return -1;
    axis = static_cast<int>(d);
  }
  return axis;
}

/// The cotangents of a Graph's values as they come in.
class Cotangents {
 public:
  explicit Cotangents(const GraphBody& graph) : graph_(graph), sums_(graph.avals.size()), last_(graph.avals.size(), -1) {}

  void add(Var v, Tensor more) {
    if (!more.defined()) return;  // a result that is given twice, once without a cotangent
    Tensor& sum = sums_[index(v)];
    sum = sum.defined() ? grad_build::binary(Op::add, sum, more) : std::move(more);
  }
  /// What a slice along one axis sends back: a cotangent of the elements from `start` on, the others get none.
  void add_piece(Var v, int axis, std::int64_t start, Tensor ct) {
    pieces_.push_back({axis, start, std::move(ct), last_[index(v)]});
    last_[index(v)] = static_cast<int>(pieces_.size()) - 1;
  }
  /// All of it, when nothing more can come.
  Tensor take(Var v) {
    Vec<int> here;  // slices come from the last one on, mostly: this is the order in which they lie
    for (int k = last_[index(v)]; k >= 0; k = piece(k).before) here.push_back(k);
    if (here.size() < 2 || !add_side_by_side(v, here))
      for (int k : here) add(v, padded_out(piece(k), graph_.aval(v).shape));
    return std::move(sums_[index(v)]);
  }

 private:
  struct Piece {
    int axis;
    std::int64_t start;
    Tensor ct;
    int before;  ///< the last piece of the same value before it
    std::int64_t limit() const { return start + ct.shape()[grad_build::at(axis)]; }
  };
  const Piece& piece(int k) const { return pieces_[static_cast<std::size_t>(k)]; }

  /// Pieces that do not overlap, as those of a split: laid side by side, each element is written once; padding each of them and adding up
  /// would touch all elements once for each piece. False if they do overlap, or lie along different axes.
  bool add_side_by_side(Var v, Vec<int>& pieces) {
    const Aval& whole = graph_.aval(v);
    const int axis = piece(pieces[0]).axis;
    insertion_sort(pieces, [&](int a, int b) { return piece(a).start < piece(b).start; });
    std::int64_t next = 0;
    for (int k : pieces) {
      if (piece(k).axis != axis || piece(k).start < next) return false;
      next = piece(k).limit();
    }
    std::vector<Tensor> parts;
    next = 0;
    const auto fill_until = [&](std::int64_t until) {
      if (next == until) return;
      Aval nothing(whole.dtype, whole.shape);
      nothing.shape[grad_build::at(axis)] = until - next;
      parts.push_back(grad_build::zeros(nothing));
    };
    for (int k : pieces) {
      fill_until(piece(k).start);
      parts.push_back(piece(k).ct);
      next = piece(k).limit();
    }
    fill_until(whole.shape[grad_build::at(axis)]);
    add(v, emit(Op::concatenate, make_params(AxisParams{axis}), parts, {}));
    return true;
  }
  static Tensor padded_out(const Piece& p, const Shape& whole) {
    const std::size_t rank = whole.size(), axis = grad_build::at(p.axis);
    PadParams around{Shape::filled(rank, 0), Shape::filled(rank, 0), Shape::filled(rank, 0)};
    around.low[axis] = p.start;
    around.high[axis] = whole[axis] - p.limit();
    return grad_build::padded(p.ct, grad_build::scalar(p.ct.dtype(), 0), std::move(around));
  }

  const GraphBody& graph_;
  RecycledVec<Tensor> sums_;
  Vec<int> last_;  ///< per Var: its last piece, −1: none
  Vec<Piece> pieces_;
};

}  // namespace transpose_walk

std::vector<Tensor> transpose_graph(const GraphBody& graph, std::size_t linear, std::span<const Tensor> rest, std::span<const Tensor> cotangents) {
  using namespace transpose_walk;
  const Span span("transform", "transpose");
  Values values(graph, linear, rest);
  Borrowed operands;
  for (const Equation& e : graph.equations) {
    if (values.depends(e)) {
      // An integer made from a tangent (a comparison, say) has no derivative; it is not linear either, and refused below only
      // if a cotangent reaches it.
      for (Var v : e.outputs) values.linear[index(v)] = true;
      if (is_control(e.op) || (e.op == Op::call && !is_linear_call(e))) values.keep_independent(graph, e);
      continue;
    }
    operands.clear();
    for (Var v : e.inputs) operands.add(values.x[index(v)]);
    repeat(graph, e, operands, values.take());
  }

  Cotangents ct(graph);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (values.linear[index(graph.outputs[i])] && is_inexact(graph.aval(graph.outputs[i]).dtype)) ct.add(graph.outputs[i], cotangents[i]);

  const Tensor none;
  std::vector<Tensor> results, operand_cts;
  for (auto e = graph.equations.rbegin(); e != graph.equations.rend(); ++e) {
    results.clear();
    bool reached = false;
    for (Var v : e->outputs) {
      results.push_back(ct.take(v));
      reached = reached || results.back().defined();
    }
    if (!reached || !values.depends(*e)) continue;
    operands.clear();
    for (Var v : e->inputs) operands.add(values.linear[index(v)] ? none : values.x[index(v)]);
    operand_cts.assign(e->inputs.size(), Tensor());
    WhereScope line(e->where);
    if (e->op == Op::slice)
      if (const int axis = axis_of_run(e->as<SliceParams>(), graph.aval(e->inputs[0]).shape); axis >= 0) {
        ct.add_piece(e->inputs[0], axis, e->as<SliceParams>().start[grad_build::at(axis)], std::move(results[0]));
        continue;
      }
    const TransposeCall call{*e, graph, operands, results, operand_cts};
    const TransposeRule& rule = transpose_rules::table[e->op];
    for (Var v : e->inputs)  // a predicate or an index made from a tangent
      if (values.linear[index(v)] && !is_inexact(graph.aval(v).dtype)) transpose_rules::refuse(call);
    if (!rule.rule) transpose_rules::refuse(call);
    rule.rule(call);
    for (std::size_t i = 0; i < operand_cts.size(); ++i) {
      const Var v = e->inputs[i];
      Tensor& t = operand_cts[i];
      if (!t.defined() || !values.linear[index(v)]) continue;
      const Aval& wanted = graph.aval(v);
      if (t.shape() != wanted.shape || t.dtype() != wanted.dtype)
        fail(ErrorKind::transform, "internal: the transpose of " + describe(e->op, e->params) + " gives " + aval_of(t).str() + " for " + wanted.str(),
             e->where);
      ct.add(v, std::move(t));
    }
  }
  std::vector<Tensor> pulled;
  for (std::size_t i = 0; i < linear; ++i) pulled.push_back(ct.take(graph.inputs[i]));
  return pulled;
}

std::vector<Tensor> push_graph(const GraphBody& graph, std::span<const Tensor> tangents, std::span<const Tensor> rest) {
  using namespace transpose_walk;
  Values values(graph, tangents.size(), rest);
  for (std::size_t i = 0; i < tangents.size(); ++i) values.x[index(graph.inputs[i])] = tangents[i];
  SmallVec<Tensor, 4> operands;
  for (const Equation& e : graph.equations) {
    const bool depends = values.depends(e);
    operands.clear();
    bool some_zero = false, all_zero = true;
    for (Var v : e.inputs) {
      operands.push_back(values.x[index(v)]);
      if (!values.linear[index(v)]) continue;
      (operands.back().defined() ? all_zero : some_zero) = operands.back().defined() ? false : true;
    }
    for (Var v : e.outputs) values.linear[index(v)] = depends;
    if (depends && all_zero) continue;
    WhereScope line(e.where);
    if (is_linear_call(e)) {
      std::vector<Tensor> results = push_linear_call(e, {operands.data(), operands.size()});
      for (std::size_t i = 0; i < e.outputs.size(); ++i) values.x[index(e.outputs[i])] = std::move(results[i]);
      continue;
    }
    if (depends && e.op == Op::call) {
      Vec<bool> linear;
      for (std::size_t i = 0; i < e.inputs.size(); ++i) linear.push_back(values.linear[index(e.inputs[i])]);
      std::vector<Tensor> results = push_call(e, {operands.data(), operands.size()}, linear);
      for (std::size_t i = 0; i < e.outputs.size(); ++i) values.x[index(e.outputs[i])] = std::move(results[i]);
      continue;
    }
    if (depends && some_zero) {
      const Tensor& kept = operands[operands[0].defined() ? 0 : 1];
      if (e.op == Op::add || e.op == Op::sub) {
        const bool negated = e.op == Op::sub && !operands[0].defined();
        const Tensor t = grad_build::spread(kept, graph.aval(e.outputs[0]).shape);
        values.x[index(e.outputs[0])] = negated ? grad_build::unary(Op::neg, t) : t;
        continue;
      }
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (!operands[i].defined()) operands[i] = grad_build::zeros(graph.aval(e.inputs[i]));
    }
    repeat(graph, e, {operands.data(), operands.size()}, values.take());
  }
  std::vector<Tensor> pushed;
  for (Var v : graph.outputs) pushed.push_back(values.x[index(v)]);
  return pushed;
}

}  // namespace vt::detail
