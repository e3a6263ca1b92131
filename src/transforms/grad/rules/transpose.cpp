// The table of transpose rules, with the element-wise ones and those of functions.
#include "../transpose.hpp"

#include <algorithm>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../build.hpp"
#include "../linear_call.hpp"

namespace vt::detail {

namespace transpose_rules {

using namespace grad_build;

void refuse(const TransposeCall& c) {
  fail(ErrorKind::transform,
       "vt::" + std::string(name_of(c.equation.op)) +
           " is used on a tangent or cotangent in a way that is not linear, so it cannot be "
           "transposed; what custom rules make of tangents "
           "and cotangents must be linear in them",
       c.equation.where);
}

/// Sums what was broadcast: a cotangent of the result's shape brought to operand i, which may be a
/// scalar.
inline Tensor onto(const TransposeCall& c, std::size_t i, Tensor ct) {
  return c.shape(i).rank() == 0 ? sum_all(ct) : std::move(ct);
}

/// An operand that does not depend on a tangent should be zero here, and is: zeros that custom
/// rules were given in place of symbolic ones, times something.
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
  c.cotangents[i] = late ? binary(Op::mul, onto(c, i, c.ct()), factor)
                         : onto(c, i, binary(Op::mul, c.ct(), factor));
}
inline void div(const TransposeCall& c) {
  if (c.linear(1)) refuse(c);
  c.cotangents[0] = onto(c, 0, binary(Op::div, c.ct(), c.x[1]));
}
inline void select(const TransposeCall& c) {
  const Tensor zero = scalar(c.ct().dtype(), 0);
  const auto chosen = [&](const Tensor& if_true, const Tensor& if_false) {
    return emit(Op::select, c.equation.params, {c.x[0], if_true, if_false}, {});
  };
  if (c.linear(1)) c.cotangents[1] = onto(c, 1, chosen(c.ct(), zero));
  if (c.linear(2)) c.cotangents[2] = onto(c, 2, chosen(zero, c.ct()));
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

// Cotangents go with tangents by the real part of the plain product, without conjugation: the
// cotangent of z stands for ∂/∂re z − i·∂/∂im z, and linear maps of complex numbers are transposed
// as they are.
inline void real(const TransposeCall& c) {
  c.cotangents[0] = binary(Op::complex, c.ct(), scalar(c.ct().dtype(), 0));
}
inline void imag(const TransposeCall& c) {
  c.cotangents[0] = binary(Op::complex, scalar(c.ct().dtype(), 0), unary(Op::neg, c.ct()));
}
inline void meeting(const TransposeCall& c) { c.cotangents[0] = unary(Op::meeting, c.ct()); }
inline void conj(const TransposeCall& c) { c.cotangents[0] = unary(Op::conj, c.ct()); }
inline void complex(const TransposeCall& c) {
  if (c.linear(0)) c.cotangents[0] = onto(c, 0, unary(Op::real, c.ct()));
  if (c.linear(1)) c.cotangents[1] = onto(c, 1, unary(Op::neg, unary(Op::imag, c.ct())));
}
inline void reduce_precision(const TransposeCall& c) {
  c.cotangents[0] = emit(Op::reduce_precision, c.equation.params, {c.ct()}, {});
}

inline void reduce_sum(const TransposeCall& c) {
  c.cotangents[0] = unreduced(c.ct(), c.shape(0), c.as<AxesParams>().axes);
}

inline void cumsum(const TransposeCall& c) {
  const auto& p = c.as<CumulativeParams>();
  c.cotangents[0] = cumulate(Op::cumsum, c.ct(), p.axis, !p.reverse);
}

/// Of the sum of what all lanes make of it: psum and all_to_all are their own transposes.
inline void as_it_is(const TransposeCall& c) {
  c.cotangents[0] = emit(c.equation.op, c.equation.params, {c.ct()}, {});
}
/// Outside of a shard_map, a value that processes share counts once: psum and spread are each
/// other's transposes, as are a sum over an axis and a broadcast along it.
inline void psum(const TransposeCall& c) {
  if (!c.as<CollectiveParams>().shared) return as_it_is(c);
  c.cotangents[0] = emit(Op::spread, c.equation.params, {c.ct()}, {});
}
inline void spread(const TransposeCall& c) {
  c.cotangents[0] = emit(Op::psum, c.equation.params, {c.ct()}, {});
}
inline void all_gather(const TransposeCall& c) {
  if (!c.as<CollectiveParams>().shared) {
    c.cotangents[0] = sum_over(emit(Op::all_to_all, c.equation.params, {c.ct()}, {}), Axes{0});
    return;
  }
  // What this process gave to all: its row.
  Shape row = c.ct().shape();
  row[0] = 1;
  std::vector<Tensor> operands{emit(Op::spread, c.equation.params, {c.ct()}, {}),
                               emit(Op::axis_index, c.equation.params, {}, {})};
  const Tensor first = full_tensor(Scalar(0).converted(DType::i32), Aval(DType::i32, Shape{}));
  operands.resize(row.size() + 1, first);
  c.cotangents[0] =
      with_shape(emit(Op::dynamic_slice, make_params(ShapeParams{row}), operands, {}), c.shape(0));
}
inline void ppermute(const TransposeCall& c) {
  const auto& p = c.as<CollectiveParams>();
  CollectiveParams back{p.axis, Vec<std::int64_t>(p.sources.size(), -1), p.shared};
  for (std::size_t i = 0; i < p.sources.size(); ++i)
    if (p.sources[i] >= 0) back.sources[p.sources[i]] = static_cast<std::int64_t>(i);
  c.cotangents[0] = emit(Op::ppermute, make_params(std::move(back)), {c.ct()}, {});
}

// A call is transposed as if its equations stood here. Rules of custom functions do not apply: they
// speak of the function, and what is transposed here is a derivative of which that function is a
// part.
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
  const std::size_t linear = p.rule->linear;
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < c.results.size(); ++i)
    arguments.push_back(c.results[i].defined() ? c.results[i]
                                               : zeros(c.graph.aval(c.equation.outputs[i])));
  for (std::size_t i = linear; i < c.x.size(); ++i) {
    if (c.linear(i)) refuse(c);
    if (i < static_cast<std::size_t>(p.explicit_operands)) arguments.push_back(c.x[i]);
  }
  const std::vector<Tensor> cts = p.rule->transpose(arguments);
  for (std::size_t i = 0; i < linear; ++i)
    if (c.linear(i)) c.cotangents[i] = cts[i];
}
inline void custom_vjp(const TransposeCall& c) {
  const auto& p = c.as<CallParams>();
  const std::shared_ptr<const OwnDerivative>& own = p.rule->own;
  const std::size_t count = p.explicit_operands;
  bool known = own && own->transpose;
  for (std::size_t i = 0; known && i < c.x.size(); ++i)
    known = (i >= own->first_linear && i < count) || !c.linear(i);
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

constexpr std::optional<TransposeRule> of_what_is_not_linear(const OpInfo& op) {
  const bool is_linear = op.linearity != Linearity::none && op.linearity != Linearity::zero;
  return is_linear ? std::nullopt : std::optional(not_linear);
}
inline constexpr auto own_rules = rule_table<TransposeRule>({
    {Op::neg, [](const TransposeCall& c) { c.cotangents[0] = unary(Op::neg, c.ct()); }},
    {Op::real, real},
    {Op::imag, imag},
    {Op::conj, conj},
    {Op::meeting, meeting},
    {Op::integer_pow, integer_pow},
    {Op::convert, convert},
    {Op::reduce_precision, reduce_precision},
    {Op::stop_gradient, [](const TransposeCall&) {}},
    {Op::add, add},
    {Op::sub, sub},
    {Op::mul, mul},
    {Op::div, div},
    {Op::complex, complex},
    {Op::select, select},
    {Op::reduce_sum, reduce_sum},
    {Op::cumsum, cumsum},
    {Op::reshape, reshape},
    {Op::transpose, transpose},
    {Op::broadcast_in_dim, broadcast_in_dim},
    {Op::concatenate, concatenate},
    {Op::pad, pad},
    {Op::rev, rev},
    {Op::slice, slice},
    {Op::dynamic_slice, not_linear},  // see transpose_graph
    {Op::dynamic_update_slice, dynamic_update_slice},
    {Op::gather, not_linear},  // see transpose_graph
    {Op::scatter, scatter},
    {Op::scatter_add, scatter_add},
    {Op::scatter_mul, scatter_mul},
    {Op::rows, rows},
    {Op::rows_add, rows_add},
    {Op::windows, windows},
    {Op::overlap_add, overlap_add},
    {Op::dot_general, dot_general},
    {Op::conv_general, conv_general},
    {Op::fft, fft},
    {Op::triangular_solve, triangular_solve},
    {Op::solve, solve},
    {Op::tridiagonal_solve, tridiagonal_solve},
    {Op::psum, psum},
    {Op::all_gather, all_gather},
    {Op::all_to_all, as_it_is},
    {Op::spread, spread},
    {Op::ppermute, ppermute},
    {Op::call, call},
    {Op::batched_call, batched_call},
    {Op::recursive_call, recursive_call},
    {Op::custom_jvp, custom_jvp},
    {Op::custom_vjp, custom_vjp},
    {Op::custom_vmap, inlined},
    {Op::checkpoint, inlined},
    {Op::cond, control},
    {Op::while_, control},
    {Op::scan, control},
});
inline constexpr auto table = with_defaults(own_rules, of_what_is_not_linear);
static_assert(RuleMissingFor<first_without_rule(table)>::ok);

}  // namespace transpose_rules

const TransposeRule& transpose_rule(Op op) { return transpose_rules::table[op]; }

}  // namespace vt::detail
