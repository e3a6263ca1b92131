// The interpreter's driver: runs a Graph equation by equation through the rule table, and frees
// buffers at their last use.
#include "interpreter.hpp"

#include <cmath>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/stack.hpp"
#include "../ir/sub_graph.hpp"
#include "../numerics/special_functions.hpp"
#include "../numerics/special_math.hpp"
#include "../record/recursion.hpp"
#include "../record/thread_state.hpp"

namespace vt::detail {
namespace interp {

using interp_unary::real;

/// Ops of complex numbers alone.
void refuse_rule(Frame& frame) { refuse_dtype(frame); }

constexpr std::optional<InterpretRule> rule_of_family(const OpInfo& op) {
  switch (op.family) {
    case Family::linalg: return interp_linalg::matrices;
    case Family::collective: return interp_processes::collective;
    default: return std::nullopt;
  }
}
inline constexpr auto own_rules = rule_table<InterpretRule>({
    {Op::input, interp_leaf::input},
    {Op::constant, interp_leaf::constant},
    {Op::full, interp_leaf::full},
    {Op::iota, interp_leaf::iota},
    {Op::neg, interp_unary::neg},
    {Op::abs, interp_unary::abs},
    {Op::sign, interp_unary::sign},
    {Op::floor, interp_unary::floor},
    {Op::ceil, interp_unary::ceil},
    {Op::round, interp_unary::round},
    {Op::trunc, interp_unary::trunc},
    {Op::exp, real<std::exp>},
    {Op::exp2, real<std::exp2>},
    {Op::expm1, real<std::expm1>},
    {Op::log, real<std::log>},
    {Op::log1p, real<std::log1p>},
    {Op::log2, real<std::log2>},
    {Op::sqrt, interp_unary::sqrt},
    {Op::rsqrt, real<special::rsqrt>},
    {Op::cbrt, real<special::cbrt>},
    {Op::sin, real<std::sin>},
    {Op::cos, real<std::cos>},
    {Op::tan, real<std::tan>},
    {Op::asin, real<std::asin>},
    {Op::acos, real<std::acos>},
    {Op::atan, real<std::atan>},
    {Op::sinh, real<std::sinh>},
    {Op::cosh, real<std::cosh>},
    {Op::tanh, real<std::tanh>},
    {Op::asinh, real<std::asinh>},
    {Op::acosh, real<std::acosh>},
    {Op::atanh, real<std::atanh>},
    {Op::sigmoid, real<special::sigmoid>},
    {Op::erf, real<std::erf>},
    {Op::erfc, real<std::erfc>},
    {Op::erf_inv, real<special::erf_inv>},
    {Op::lgamma, real<special::lgamma>},
    {Op::digamma, real<special::digamma>},
    {Op::gamma, real<special_math::gamma<double>>},
    {Op::erfcx, real<special_math::erfcx<double>>},
    {Op::erfc_inv, real<special_math::erfc_inv<double>>},
    {Op::ndtr, real<special_math::ndtr<double>>},
    {Op::log_ndtr, real<special_math::log_ndtr<double>>},
    {Op::dawsn, real<special_math::dawsn<double>>},
    {Op::expi, real<special_math::expi<double>>},
    {Op::spence, real<special_math::spence<double>>},
    {Op::fresnel_sin, real<special_math::fresnel_sin<double>>},
    {Op::fresnel_cos, real<special_math::fresnel_cos<double>>},
    {Op::bessel_i0e, real<special_math::bessel_i0e<double>>},
    {Op::bessel_i1e, real<special_math::bessel_i1e<double>>},
    {Op::bessel_k0e, real<special_math::bessel_k0e<double>>},
    {Op::bessel_k1e, real<special_math::bessel_k1e<double>>},
    {Op::bessel_j0, real<special_math::bessel_j0<double>>},
    {Op::bessel_j1, real<special_math::bessel_j1<double>>},
    {Op::bessel_y0, real<special_math::bessel_y0<double>>},
    {Op::bessel_y1, real<special_math::bessel_y1<double>>},
    {Op::real, refuse_rule},
    {Op::imag, refuse_rule},
    {Op::conj, refuse_rule},
    {Op::is_finite, interp_unary::is_finite},
    {Op::is_nan, interp_unary::is_nan},
    {Op::is_inf, interp_unary::is_inf},
    {Op::integer_pow, interp_unary::integer_pow},
    {Op::not_, interp_unary::not_},
    {Op::popcount, interp_unary::popcount},
    {Op::clz, interp_unary::clz},
    {Op::convert, interp_unary::convert},
    {Op::bitcast, interp_unary::same},
    {Op::reduce_precision, interp_unary::reduce_precision},
    {Op::stop_gradient, interp_unary::same},
    {Op::meeting, interp_unary::same},
    {Op::add, interp_binary::add},
    {Op::sub, interp_binary::sub},
    {Op::mul, interp_binary::mul},
    {Op::div, interp_binary::div},
    {Op::rem, interp_binary::rem},
    {Op::pow, interp_binary::pow},
    {Op::max, interp_binary::max},
    {Op::min, interp_binary::min},
    {Op::atan2, interp_binary::atan2},
    {Op::nextafter, interp_binary::nextafter},
    {Op::zeta, interp_binary::zeta},
    {Op::eq, interp_binary::eq},
    {Op::ne, interp_binary::ne},
    {Op::lt, interp_binary::lt},
    {Op::le, interp_binary::le},
    {Op::gt, interp_binary::gt},
    {Op::ge, interp_binary::ge},
    {Op::and_, interp_binary::and_},
    {Op::or_, interp_binary::or_},
    {Op::xor_, interp_binary::xor_},
    {Op::shift_left, interp_binary::shift_left},
    {Op::shift_right_logical, interp_binary::shift_right_logical},
    {Op::shift_right_arithmetic, interp_binary::shift_right_arithmetic},
    {Op::threefry, interp_binary::threefry},
    {Op::complex, refuse_rule},
    {Op::select, interp_binary::select},
    {Op::reduce_sum, interp_reduce::sum},
    {Op::reduce_prod, interp_reduce::prod},
    {Op::reduce_max, interp_reduce::max},
    {Op::reduce_min, interp_reduce::min},
    {Op::reduce_any, interp_reduce::any},
    {Op::reduce_all, interp_reduce::all},
    {Op::argmax, interp_reduce::argmax},
    {Op::argmin, interp_reduce::argmin},
    {Op::reduce, interp_reduce::reduce},
    {Op::cumsum, interp_cumulative::sum},
    {Op::cumprod, interp_cumulative::prod},
    {Op::cummax, interp_cumulative::max},
    {Op::cummin, interp_cumulative::min},
    {Op::cumlogsumexp, interp_cumulative::logsumexp},
    {Op::sort, interp_order::sort},
    {Op::reshape, interp_unary::same},
    {Op::transpose, interp_shape::transpose},
    {Op::broadcast_in_dim, interp_shape::broadcast_in_dim},
    {Op::concatenate, interp_shape::concatenate},
    {Op::pad, interp_shape::pad},
    {Op::rev, interp_shape::rev},
    {Op::slice, interp_index::slice},
    {Op::dynamic_slice, interp_index::dynamic_slice},
    {Op::dynamic_update_slice, interp_index::dynamic_update_slice},
    {Op::gather, interp_index::gather},
    {Op::scatter, interp_index::scatter},
    {Op::scatter_add, interp_index::scatter_add},
    {Op::scatter_mul, interp_index::scatter_mul},
    {Op::scatter_min, interp_index::scatter_min},
    {Op::scatter_max, interp_index::scatter_max},
    {Op::rows, interp_index::rows},
    {Op::rows_add, interp_index::rows_add},
    {Op::windows, interp_shape::windows},
    {Op::overlap_add, interp_shape::overlap_add},
    {Op::dot_general, interp_dot::dot_general},
    {Op::conv_general, interp_dot::conv_general},
    {Op::fft, interp_fft::fft},
    {Op::call, interp_structure::call},
    {Op::recursive_call, interp_structure::recursive_call},
    {Op::custom_jvp, interp_structure::call},
    {Op::custom_vjp, interp_structure::call},
    {Op::custom_vmap, interp_structure::call},
    {Op::checkpoint, interp_structure::call},
    {Op::cond, interp_control::cond},
    {Op::batched_call, interp_control::batched_call},
    {Op::fused_region, interp_control::fused_region},
    {Op::while_, interp_control::while_loop},
    {Op::scan, interp_control::scan},
    {Op::debug_print, interp_effect::debug_print},
    {Op::check, interp_effect::check},
    {Op::callback, interp_effect::callback},
});
inline constexpr auto rules = with_defaults(own_rules, rule_of_family);
static_assert(RuleMissingFor<first_without_rule(rules)>::ok);

/// Of the user's call; of what asked for the value, where the equation knows none.
inline CallSite line_of(const Equation& e) { return e.where.file ? e.where : thread_state().where; }

/// The rule that the dtypes of an equation ask for.
void run(Frame& frame) {
  const Equation& e = frame.equation;
  if (family_of(e.op) == Family::structure) need_stack(line_of(e));
  bool any_complex = false;
  for (Var v : e.inputs) any_complex = any_complex || is_complex(frame.graph.aval(v).dtype);
  for (Var v : e.outputs) any_complex = any_complex || is_complex(frame.graph.aval(v).dtype);
  if (!any_complex) return rules[e.op](frame);
  // Other ops that take complex numbers move elements, or see for themselves what these are.
  if (const InterpretRule rule = interp_complex::rule_of(e.op)) return rule(frame);
  if ((op_table[e.op].dtypes & dtype_sets::complexes) == 0) refuse_dtype(frame);
  rules[e.op](frame);
}

}  // namespace interp

void* Frame::make_bytes(std::size_t i) {
  const std::size_t wanted = out(i).bytes();
  try {
    outputs[i] = allocate(wanted, name_of(equation.op).data());
  } catch (const Error& error) {
    fail(error.kind(), std::string(error.what()) + " for " + out(i).str(),
         interp::line_of(equation));
  }
  return outputs[i]->data;
}

BufferRef Frame::scratch(std::size_t bytes) const {
  try {
    return allocate(bytes, name_of(equation.op).data());
  } catch (const Error& error) {
    fail(error.kind(), std::string(error.what()) + " to work in", interp::line_of(equation));
  }
}

BufferRef Frame::widened(std::size_t i) const {
  const DType own = in(i).dtype, wide = wide_of(own);
  if (own == wide) return inputs[i];
  const std::size_t n = in(i).elements();
  BufferRef buffer = scratch(n * size_of(wide));
  convert_elements(inputs[i]->data, own, buffer->data, wide, n);
  return buffer;
}

void Frame::narrow(BufferRef wide, std::size_t i) {
  const DType own = out(i).dtype;
  if (own == wide_of(own)) {
    outputs[i] = std::move(wide);
    return;
  }
  void* target = make_bytes(i);
  convert_elements(wide->data, wide_of(own), target, own, out(i).elements());
}

void refuse_dtype(const Frame& frame) {
  std::string operands;
  for (std::size_t i = 0; i < frame.inputs.size(); ++i)
    operands += (i ? ", " : "") + frame.in(i).str();
  fail(ErrorKind::dtype,
       "vt::" + std::string(name_of(frame.equation.op)) + ": not defined for " + operands,
       frame.equation.where);
}

SmallVec<BufferRef, 1> interpret_equation(const Equation& equation, const GraphBody& graph,
                                          std::span<const BufferRef> inputs) {
  Frame frame(equation, graph, inputs);
  interp::run(frame);
  return std::move(frame.outputs);
}

InterpreterBudget::InterpreterBudget(std::int64_t steps)
    : before_(std::exchange(thread_state().steps_left, steps)),
      is_inside_(std::exchange(thread_state().has_budget, true)) {}
InterpreterBudget::~InterpreterBudget() {
  thread_state().steps_left = before_;
  thread_state().has_budget = is_inside_;
}
bool InterpreterBudget::exists() { return thread_state().has_budget; }

Vec<BufferRef> interpret(const GraphBody& graph, std::span<const BufferRef> inputs) {
  std::int64_t& steps_left = thread_state().steps_left;
  Vec<BufferRef> values(graph.avals.size());
  Vec<int> uses = reads_of(graph);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];

  SmallVec<BufferRef, 4> operands;
  for (const Equation& equation : graph.equations) {
    operands.clear();
    for (Var v : equation.inputs) operands.push_back(values[v]);
    Frame frame(equation, graph, {operands.data(), operands.size()});
    interp::run(frame);
    constexpr std::size_t bytes_of_a_step = 64;
    for (const BufferRef& made : frame.outputs)
      steps_left -= made ? static_cast<std::int64_t>(made->bytes / bytes_of_a_step) : 0;
    if (--steps_left < 0) throw InterpreterBudget::Exceeded();
    for (Var v : equation.inputs)
      if (--uses[v] == 0) values[v] = {};
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      const std::size_t v = equation.outputs[i];
      if (uses[v] != 0) values[v] = std::move(frame.outputs[i]);
    }
  }
  Vec<BufferRef> results;
  results.reserve(graph.outputs.size());
  for (Var v : graph.outputs) results.push_back(values[v]);
  return results;
}

}  // namespace vt::detail
