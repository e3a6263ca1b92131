// Element-wise functions that run a loop for every element, some with derivative rules of their
// own.
#pragma once

#include <vector>

#include <vt/control.hpp>
#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "operands.hpp"

namespace vt::detail::element_functions {

using Tensors = std::vector<Tensor>;
using Leaves = std::span<const Tensor>;

// --- derivatives ---------------------------------------------------------------------------------

inline bool is_zero(const Tensor& t) {
  const Node* n = node_of(t);
  return n->op == Op::full && n->params->as<FullParams>().value.to_double() == 0;
}

/// f, which vt has made, with its ops attributed to `where` wherever it is recorded.
inline FlatFunction at_line(const FlatFunction& f, CallSite call) {
  return [f, where = user_line(call)](Leaves x) {
    const UserLine line(where);
    return f(x);
  };
}

/// f as one equation with known partial derivatives: slope(i, operands, value) is that by operand
/// i.
template <class Slope>
Tensor with_slopes(const FlatFunction& f, Slope slope, Leaves operands, CallSite where) {
  where = user_line(where);
  const FlatFunction rule = [f, slope, where](Leaves both) -> Tensors {
    const UserLine line(where);
    const std::size_t n = both.size() / 2;
    const Leaves x = both.first(n), t = both.subspan(n);
    const Tensor value = with_slopes(f, slope, x, where);
    Tensor sum = zeros_like(value);
    for (std::size_t i = 0; i < n; ++i)
      if (!is_zero(t[i])) sum = sum + t[i] * slope(i, x, value);
    return {value, sum};
  };
  return custom_jvp_flat(at_line(f, where), rule, operands, where)[0];
}

/// The derivative of f by operand i, by forward mode.
inline FlatFunction partial(const FlatFunction& f, std::size_t i, CallSite where) {
  return [f, i, where](Leaves at) -> Tensors {
    bool wanted[4] = {};
    wanted[i] = true;
    GradCall call;
    call.arguments = at;
    call.wanted = std::span<const bool>(wanted, at.size());
    call.where = where;
    const Tensor one = ones_like(at[i]);
    return jvp_flat(f, call, std::span<const Tensor>(&one, 1)).tangents;
  };
}

/// An element-wise f whose derivatives are all made by forward mode, of whatever order and by
/// whatever mode they are asked for: its loops then carry a few numbers more, where reverse mode
/// would have to go back through their iterations.
inline Tensor by_forward_mode(const FlatFunction& f, Leaves operands, CallSite where) {
  const auto slope = [f, where](std::size_t i, Leaves x, const Tensor&) {
    return by_forward_mode(partial(f, i, where), x, where);
  };
  return with_slopes(f, slope, operands, where);
}

// --- loops ---------------------------------------------------------------------------------------

/// A loop on scalars, run for every element of the operands, which are scalars or of one shape:
/// each element stops by itself.
inline Tensors for_each_element(const FlatFunction& loop, Leaves operands, CallSite where) {
  Shape shape;
  for (const Tensor& t : operands)
    if (t.rank() > 0) shape = t.shape();
  if (shape.rank() == 0) return loop(operands);
  Tensors flat;
  Vec<MappedAxis> axes;
  for (const Tensor& t : operands) {
    flat.push_back(t.rank() == 0 ? t : reshaped(t, Shape{shape.elements()}, where));
    axes.push_back(t.rank() == 0 ? MappedAxis() : MappedAxis(0));
  }
  VmapCall call;
  call.arguments = flat;
  call.in_axes = axes;
  call.where = where;
  Tensors out = vmap_flat(at_line(loop, where), call);
  for (Tensor& t : out) t = reshaped(t, shape, where);
  return out;
}

inline Tensors run_while(const char* name, const FlatFunction& going, const FlatFunction& body,
                         Leaves init, CallSite where) {
  return while_flat(at_line(going, where), at_line(body, where), init, WhileOptions{},
                    ControlCall{name, where});
}
inline Tensor number(double x) { return full_tensor(Scalar(x), Aval(f64, Shape{})); }

}  // namespace vt::detail::element_functions
