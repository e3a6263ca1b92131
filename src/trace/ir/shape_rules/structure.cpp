// Shape rules of the equations that own a sub-graph, of reduce, of collectives and of effects.

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../recursive_function.hpp"
#include "rules.hpp"

namespace vt::detail::shape_rules {

namespace structure_rules {
/// Weak or not makes no difference to a body: its equations were promoted when it was recorded.
inline bool fits(const Aval& given, const Aval& wanted) {
  return given.dtype == wanted.dtype && given.shape == wanted.shape;
}
}  // namespace structure_rules

Avals reduce(const Call& c) {
  const auto& p = c.as<ReduceParams>();
  if (!p.body) c.refuse(ErrorKind::value, "internal: no body");
  const std::size_t n = c.operands.size() / 2;
  if (n == 0 || c.operands.size() != 2 * n)
    c.refuse_shape("needs as many initial values as operands, and at least one");
  const GraphBody& body = *p.body;
  if (body.inputs.size() != 2 * n || body.outputs.size() != n)
    c.refuse(ErrorKind::tree,
             formatted("the function must take {} scalars and give {}; it takes {} and gives {}",
                       2 * n, n, body.inputs.size(), body.outputs.size()));
  const Shape& shape = c.operand(0).shape;
  check_axes(c, p.axes, shape.rank(), "axes", true);
  Shape left;
  for (int d = 0; d < shape.rank(); ++d)
    if (!p.axes.contains(d)) left.push_back(shape[d]);
  Avals avals;
  for (std::size_t i = 0; i < n; ++i) {
    const Aval &x = c.operand(i), &init = c.operand(n + i);
    if (x.shape != shape) c.refuse_shape("operands differ in shape");
    if (!init.shape.empty()) c.refuse_shape("initial values must be scalars");
    if (init.dtype != x.dtype)
      c.refuse_dtype("an initial value has another dtype than its operand");
    const Aval scalar(x.dtype, Shape{});
    if (!structure_rules::fits(body.aval(body.inputs[i]), scalar) ||
        !structure_rules::fits(body.aval(body.inputs[n + i]), scalar) ||
        !structure_rules::fits(body.aval(body.outputs[i]), scalar))
      c.refuse(ErrorKind::shape,
               formatted("the function must map {} and {} to {}; it maps {} and {} to {}",
                         scalar.str(), scalar.str(), scalar.str(), body.aval(body.inputs[i]).str(),
                         body.aval(body.inputs[n + i]).str(), body.aval(body.outputs[i]).str()));
    avals.emplace_back(x.dtype, left);
  }
  return avals;
}

namespace structure_rules {
inline const NamedAxis& axis_of(const Call& c) {
  const AxisRef& axis = c.as<CollectiveParams>().axis;
  if (!axis) c.refuse(ErrorKind::value, "internal: no axis");
  c.need_dtype();
  return *axis;
}
}  // namespace structure_rules

Avals lanes_combined(const Call& c) {
  structure_rules::axis_of(c);
  return result(c.operand(0).dtype, c.operand(0).shape, c.operand(0).weak);
}

Avals lanes_gathered(const Call& c) {
  Shape shape{structure_rules::axis_of(c).size};
  shape.append(c.operand(0).shape.begin(), c.operand(0).shape.end());
  return result(c.operand(0).dtype, std::move(shape));
}

Avals lanes_exchanged(const Call& c) {
  const NamedAxis& axis = structure_rules::axis_of(c);
  const Shape& shape = c.operand(0).shape;
  if (shape.empty() || shape[0] != axis.size)
    c.refuse_shape(formatted("axis 0 must have an element for each of the {} lanes of \"{}\"",
                             axis.size, axis.name));
  return result(c.operand(0).dtype, shape);
}

Avals lanes_permuted(const Call& c) {
  const NamedAxis& axis = structure_rules::axis_of(c);
  const auto& sources = c.as<CollectiveParams>().sources;
  if (static_cast<std::int64_t>(sources.size()) != axis.size)
    c.refuse(ErrorKind::value, formatted("{} sources for the {} lanes of \"{}\"", sources.size(),
                                         axis.size, axis.name));
  Vec<bool> taken(sources.size());
  for (std::int64_t s : sources) {
    if (s < -1 || s >= axis.size)
      c.refuse(ErrorKind::value,
               formatted("there is no lane {} among the {} of \"{}\"", s, axis.size, axis.name));
    if (s < 0) continue;
    if (taken[s]) c.refuse(ErrorKind::value, formatted("lane {} is a source twice", s));
    taken[s] = true;
  }
  return result(c.operand(0).dtype, c.operand(0).shape);
}

Avals process_index(const Call& c) {
  if (!c.as<CollectiveParams>().axis || !c.as<CollectiveParams>().axis->is_of_mesh())
    c.refuse(ErrorKind::value, "internal: no axis of a mesh");
  return result(DType::i32, Shape{});
}

Avals structure(const Call& c) {
  const auto& p = c.as<CallParams>();
  if (!p.body) c.refuse(ErrorKind::value, "internal: no body");
  const GraphBody& body = *p.body;
  if (body.inputs.size() != c.operands.size())
    c.refuse(ErrorKind::tree, formatted("the body takes {} operands, not {}", body.inputs.size(),
                                        c.operands.size()));
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    if (!structure_rules::fits(c.operand(i), body.aval(body.inputs[i])))
      c.refuse(ErrorKind::shape,
               formatted("operand {} must be {}", i, body.aval(body.inputs[i]).str()));
  if (p.explicit_operands < 0 || static_cast<std::size_t>(p.explicit_operands) > c.operands.size())
    c.refuse(ErrorKind::value, formatted("internal: {} explicit operands of {}",
                                         p.explicit_operands, c.operands.size()));
  const bool has_rule = c.op == Op::custom_jvp ? p.rule && p.rule->jvp
                        : c.op == Op::custom_vjp
                            ? p.rule && (p.rule->own || (p.rule->forward && p.rule->backward))
                        : c.op == Op::custom_vmap ? p.rule && p.rule->batch
                                                  : true;
  if (!has_rule) c.refuse(ErrorKind::value, "the custom rule is empty");
  Avals avals;
  for (Var v : body.outputs) avals.push_back(body.aval(v));
  return avals;
}

Avals recursive_call(const Call& c) {
  const RecursiveFunction& f = *c.as<RecursionParams>().function;
  // while it is recorded, its operands are not all known
  for (std::size_t i = 0; i < c.operands.size() && f.body; ++i)
    if (f.inputs.size() != c.operands.size() || !structure_rules::fits(c.operand(i), f.inputs[i]))
      c.refuse(ErrorKind::shape, formatted("operand {} does not fit {}", i, f.name));
  Avals avals;
  for (const Aval& a : f.outputs) avals.push_back(a);
  return avals;
}

namespace structure_rules {

/// Operands that carry lanes have them in front.
inline void check_lanes(const Call& c, const EffectLanes& lanes) {
  if (lanes.extents.empty()) return;
  if (lanes.carried.size() != c.operands.size())
    c.refuse(ErrorKind::value, formatted("internal: lanes of {} operands, not {}",
                                         lanes.carried.size(), c.operands.size()));
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    std::size_t axis = 0;
    const Shape& shape = c.operand(i).shape;
    for (std::size_t k = 0; k < lanes.extents.size(); ++k) {
      if (!(lanes.carried[i] >> k & 1u)) continue;
      if (axis >= shape.size() || shape[axis] != lanes.extents[k])
        c.refuse_shape(
            formatted("operand {} must hold {} lanes along axis {}", i, lanes.extents[k], axis));
      ++axis;
    }
  }
}

}  // namespace structure_rules

Avals debug_print(const Call& c) {
  structure_rules::check_lanes(c, c.as<PrintParams>().lanes);
  return {};
}

Avals check(const Call& c) {
  if (c.operands.empty() || c.operand(0).dtype != DType::bool_)
    c.refuse_dtype("the condition must be bool");
  structure_rules::check_lanes(c, c.as<CheckParams>().lanes);
  return {};
}

Avals callback(const Call& c) {
  const auto& p = c.as<CallbackParams>();
  if (!p.function) c.refuse(ErrorKind::value, "internal: no function");
  if (!p.takes_lanes) structure_rules::check_lanes(c, p.lanes);
  Avals avals;
  for (const Aval& lane : p.results) {
    Shape shape;
    shape.append(p.lanes.extents.begin(), p.lanes.extents.end());
    shape.append(lane.shape.begin(), lane.shape.end());
    avals.emplace_back(lane.dtype, std::move(shape));
  }
  return avals;
}

}  // namespace vt::detail::shape_rules
