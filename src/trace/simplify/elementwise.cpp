// Rewrite rules of every element-wise op: scalars are used as scalars, and ops move in front of
// broadcasts.
#include "simplify.hpp"

namespace vt::detail::simplification {

namespace elementwise {

/// The scalar that `v` repeats everywhere, or none. What is a scalar already does not count.
Var repeated_scalar(Pass& p, Var v) {
  if (p.shape(v).empty()) return Pass::none;
  const Equation* e = p.def(v);
  if (!e) return Pass::none;
  if (e->op == Op::full)
    return p.full(e->as<FullParams>().value, Aval(p.dtype(v), Shape{}, p.aval(v).weak));
  if (e->op == Op::broadcast_in_dim && p.shape(e->inputs[0]).empty()) return e->inputs[0];
  return Pass::none;
}

/// f(broadcast(x), broadcast(y), s) = broadcast(f(x, y, s)); the same with one transpose of all
/// operands.
Var before_spreading(Pass& p, const Candidate& c) {
  const Equation* first = nullptr;
  int broadcasts = 0;
  for (Var v : c.inputs) {
    if (p.shape(v).empty()) continue;
    const Equation* e = p.def(v);
    if (!e || (e->op != Op::broadcast_in_dim && e->op != Op::transpose)) return Pass::none;
    if (!first) first = e;
    if (e->op != first->op || !equal(e->params, first->params) ||
        p.shape(e->inputs[0]) != p.shape(first->inputs[0]))
      return Pass::none;
    // Moving a transpose gains something only if it leaves fewer of them.
    if (e->op == Op::transpose && !p.used_once(v)) return Pass::none;
    ++broadcasts;
  }
  if (!first || (first->op == Op::transpose && broadcasts < 2)) return Pass::none;
  if (first->op == Op::broadcast_in_dim && p.aval(first->inputs[0]).elements() >= c.aval.elements())
    return Pass::none;
  SmallVec<Var, 3> inner;
  for (Var v : c.inputs) inner.push_back(p.shape(v).empty() ? v : p.def(v)->inputs[0]);
  const Var result = p.emit(c.op, c.params, inner);
  return p.emit(first->op, first->params, {result});
}

}  // namespace elementwise

Var simplify_elementwise(Pass& p, const Candidate& c) {
  SmallVec<Var, 3> inputs;
  bool changed = false;
  for (Var v : c.inputs) {
    const Var scalar = elementwise::repeated_scalar(p, v);
    changed = changed || scalar != Pass::none;
    inputs.push_back(scalar != Pass::none ? scalar : v);
  }
  // If only scalars are left the result is one as well: the walk broadcasts it.
  if (changed) return p.emit(c.op, c.params, inputs);
  return elementwise::before_spreading(p, c);
}

}  // namespace vt::detail::simplification
