// Rewrite rules of windows and of convolutions: windows of one element are slices, convolutions
// with them are products.
#include <algorithm>

#include "../ir/axis_map.hpp"
#include "simplify.hpp"

namespace vt::detail::simplification {

namespace sliding {

bool all_are(const Shape& numbers, std::int64_t value) {
  return all_of(numbers, [&](std::int64_t n) { return n == value; });
}

/// A convolution whose windows are of one element each, over elements without gaps: a product at
/// every place.
Var product_of_places(Pass& p, const Candidate& c) {
  ConvParams v = c.as<ConvParams>();
  if (!all_are(picked(p.shape(c.in(1)), v.rhs_window), 1) || !all_are(v.low, 0) ||
      !all_are(v.high, 0) || !all_are(v.lhs_dilation, 1))
    return Pass::none;
  Var a = c.in(0), b = c.in(1);
  if (!all_are(v.strides, 1)) {
    const Shape shape = p.shape(a);
    Shape stride = Shape::filled(shape.size(), 1);
    for (std::size_t k = 0; k < v.lhs_window.size(); ++k) stride[v.lhs_window[k]] = v.strides[k];
    a = p.slice(a, Shape::filled(shape.size(), 0), shape, stride);
  }
  // b without the windows' axes.
  Shape kept;
  Axes place;
  for (int axis = 0; axis < p.shape(b).rank(); ++axis) {
    place.push_back(static_cast<int>(kept.size()));
    if (!v.rhs_window.contains(axis)) kept.push_back(p.shape(b)[axis]);
  }
  for (Axes* axes : {&v.dot.rhs_contract, &v.dot.rhs_batch})
    for (int& axis : *axes) axis = place[axis];
  // The product has all free axes of a in their order, windows or not; the convolution windows
  // after the others.
  const Axes free = free_axes(p.shape(a).rank(), v.dot.lhs_contract, v.dot.lhs_batch);
  const int batches = static_cast<int>(v.dot.lhs_batch.size());
  Axes order = Axes::first(batches);
  for (std::size_t i = 0; i < free.size(); ++i)
    if (!v.lhs_window.contains(free[i])) order.push_back(batches + static_cast<int>(i));
  for (int axis : v.lhs_window)
    order.push_back(batches +
                    static_cast<int>(std::find(free.begin(), free.end(), axis) - free.begin()));
  for (int axis = static_cast<int>(order.size()); axis < c.aval.shape.rank(); ++axis)
    order.push_back(axis);
  if (!v.order.empty()) order = composed(order, v.order);
  const Var product =
      p.emit(Op::dot_general, make_params(std::move(v.dot)), {a, p.reshape(b, kept)});
  return is_identity(order) ? product : p.transpose(product, order);
}

}  // namespace sliding

Var simplify_conv(Pass& p, const Candidate& c) {
  const auto& v = c.as<ConvParams>();
  if (c.aval.elements() == 0) return Pass::none;
  if (picked(p.shape(c.in(0)), v.dot.lhs_contract).elements() == 0 ||
      picked(p.shape(c.in(0)), v.lhs_window).elements() == 0 ||
      picked(p.shape(c.in(1)), v.rhs_window).elements() == 0)
    return p.full_like(0, c.aval);
  return sliding::product_of_places(p, c);
}

Var simplify_windows(Pass& p, const Candidate& c) {
  const auto& w = c.as<WindowParams>();
  const Var x = c.in();
  if (c.op == Op::overlap_add)
    return p.aval(x).elements() == 0 ? p.full_like(0, c.aval) : Pass::none;
  if (const Equation* e = p.def(x, Op::full)) return p.full(e->as<FullParams>().value, c.aval);
  if (!sliding::all_are(w.sizes, 1)) return Pass::none;
  const Shape shape = p.shape(x);
  Shape stride = Shape::filled(shape.size(), 1);
  for (std::size_t k = 0; k < w.axes.size(); ++k) stride[w.axes[k]] = w.strides[k];
  return p.reshape(p.slice(x, Shape::filled(shape.size(), 0), shape, stride), c.aval.shape);
}

}  // namespace vt::detail::simplification
