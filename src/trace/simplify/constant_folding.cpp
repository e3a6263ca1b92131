// Constant folding: equations whose operands are all known and small are run by the interpreter
// once and for all.
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../base/convert.hpp"
#include "../record/node.hpp"
#include "simplify.hpp"

namespace vt::detail::simplification {

namespace folding {

constexpr std::size_t largest_result = 64 * 1024;     // bytes
constexpr std::size_t largest_operands = 256 * 1024;  // bytes, all together
constexpr std::size_t largest_growth = 16;            // result ÷ operands

/// `full` and `iota` are smaller as they are than as numbers in memory; only constants are numbers
/// already.
bool is_symbolic(const Equation& e) { return e.op == Op::full || e.op == Op::iota; }

/// The equation with operands and result as the only Vars of a Graph of its own, as the interpreter
/// wants it.
struct Alone {
  GraphBody graph;
  Equation equation;
  Vec<BufferRef> operands;

  Alone(Op op, const ParamsRef& params) {
    equation.op = op;
    equation.params = params;
  }
  void operand(BufferRef buffer, const Aval& a) {
    equation.inputs.push_back(graph.fresh(a));
    operands.push_back(std::move(buffer));
  }
  BufferRef run(const Aval& result) {
    equation.outputs.push_back(graph.fresh(result));
    return interpret_equation(equation, graph, operands)[0];
  }
};

/// A broadcast takes no memory as it is, and is the same for all lanes where it has some: it is
/// folded into what reads it only.
bool is_grown_constant(const Pass& pass, const Equation& e) {
  return e.op == Op::broadcast_in_dim && pass.def(e.inputs[0], Op::constant);
}

BufferRef buffer_of(const Pass& pass, const Equation& e, const Aval& a) {
  if (e.op == Op::constant) return e.as<ConstantParams>().buffer;
  Alone alone(e.op, e.params);
  for (Var v : e.inputs) alone.operand(buffer_of(pass, *pass.def(v), pass.aval(v)), pass.aval(v));
  return alone.run(a);
}

/// One number: an element-wise op on operands that are each one number everywhere.
Var fold_numbers(Pass& pass, const Candidate& c) {
  Alone alone(c.op, c.params);
  for (Var v : c.inputs) {
    const Scalar& value = *pass.full_value(v);
    BufferRef buffer = allocate(size_of(value.dtype));
    store_scalar(value, buffer->data);
    alone.operand(std::move(buffer), Aval(value.dtype, Shape{}));
  }
  const BufferRef result = alone.run(Aval(c.aval.dtype, Shape{}));
  return pass.full(load_scalar(c.aval.dtype, result->data), c.aval);
}

/// Are all elements the same, bit for bit?
bool uniform(const char* data, std::size_t bytes, std::size_t element) {
  return bytes <= element || std::memcmp(data, data + element, bytes - element) == 0;
}

}  // namespace folding

Var fold_constants(Pass& pass, const Candidate& c) {
  if (c.inputs.empty()) return Pass::none;
  bool all_numbers = true, any_constant = false;
  for (Var v : c.inputs) {
    const Equation* e = pass.def(v);
    const bool is_constant = e && (e->op == Op::constant || folding::is_grown_constant(pass, *e));
    if (!e || !(is_constant || folding::is_symbolic(*e))) return Pass::none;
    all_numbers = all_numbers && e->op == Op::full;
    any_constant = any_constant || is_constant;
  }
  if (is_elementwise(c.op) && all_numbers) return folding::fold_numbers(pass, c);

  const std::int64_t elements = c.aval.elements();
  if (c.op == Op::broadcast_in_dim && pass.aval(c.inputs[0]).elements() > 1 &&
      elements > pass.aval(c.inputs[0]).elements())
    return Pass::none;
  std::size_t given = 0;
  for (Var v : c.inputs) given += pass.aval(v).bytes();
  if (given > folding::largest_operands || c.aval.bytes() > folding::largest_result ||
      elements == 0)
    return Pass::none;
  if (elements != 1 && (!any_constant || c.aval.bytes() > folding::largest_growth * given))
    return Pass::none;

  folding::Alone alone(c.op, c.params);
  for (Var v : c.inputs)
    alone.operand(folding::buffer_of(pass, *pass.def(v), pass.aval(v)), pass.aval(v));
  BufferRef result = alone.run(c.aval);
  if (folding::uniform(result->as<const char>(), c.aval.bytes(), size_of(c.aval.dtype)))
    return pass.full(load_scalar(c.aval.dtype, result->data), c.aval);
  return pass.emit(Op::constant, make_params(ConstantParams{std::move(result), c.aval}), {});
}

}  // namespace vt::detail::simplification
