// Shape rules of dot_general and conv_general.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "../axis_map.hpp"
#include "rules.hpp"

namespace vt::detail::shape_rules {

void check_products(const Call& c, const DotParams& p) {
  const Aval &a = c.operand(0), &b = c.operand(1);
  if (a.dtype != b.dtype) c.refuse_dtype("dtypes differ");
  c.need_dtype();
  const bool widens = is_complex(p.dtype) == is_complex(a.dtype) &&
                      is_float(p.dtype) == is_float(a.dtype) &&
                      is_unsigned(p.dtype) == is_unsigned(a.dtype) && !is_bool(p.dtype) &&
                      size_of(p.dtype) > size_of(a.dtype);
  if (p.dtype != a.dtype && !widens)
    c.refuse_dtype(
        formatted("{} cannot hold the products of {}", name_of(p.dtype), name_of(a.dtype)));

  check_axes(c, p.lhs_contract, a.shape.rank(), "lhs_contract", false);
  check_axes(c, p.rhs_contract, b.shape.rank(), "rhs_contract", false);
  check_axes(c, p.lhs_batch, a.shape.rank(), "lhs_batch", false);
  check_axes(c, p.rhs_batch, b.shape.rank(), "rhs_batch", false);
  check_disjoint(c, p.lhs_batch, p.lhs_contract, "lhs_batch", "lhs_contract");
  check_disjoint(c, p.rhs_batch, p.rhs_contract, "rhs_batch", "rhs_contract");
  auto match = [&](const Axes& l, const Axes& r, const char* what) {
    if (l.size() != r.size())
      c.refuse_shape(formatted("numbers of {} axes differ, {} and {}", what, l.str(), r.str()));
    for (std::size_t i = 0; i < l.size(); ++i) {
      const std::int64_t m = a.shape[l[i]], n = b.shape[r[i]];
      if (m != n)
        c.refuse_shape(
            formatted("{} axes {} and {} differ in size ({} and {})", what, l[i], r[i], m, n));
    }
  };
  match(p.lhs_contract, p.rhs_contract, "contracting");
  match(p.lhs_batch, p.rhs_batch, "batch");
}

Avals dot_general(const Call& c) {
  const auto& p = c.as<DotParams>();
  check_products(c, p);
  const Aval &a = c.operand(0), &b = c.operand(1);
  Shape shape;
  for (int d : p.lhs_batch) shape.push_back(a.shape[d]);
  for (int d = 0; d < a.shape.rank(); ++d)
    if (!p.lhs_batch.contains(d) && !p.lhs_contract.contains(d)) shape.push_back(a.shape[d]);
  for (int d = 0; d < b.shape.rank(); ++d)
    if (!p.rhs_batch.contains(d) && !p.rhs_contract.contains(d)) shape.push_back(b.shape[d]);
  return result(p.dtype, std::move(shape), a.weak && b.weak);
}

Avals conv_general(const Call& c) {
  const auto& p = c.as<ConvParams>();
  check_products(c, p.dot);
  const Aval &a = c.operand(0), &b = c.operand(1);
  check_axes(c, p.lhs_window, a.shape.rank(), "lhs_window", false);
  check_axes(c, p.rhs_window, b.shape.rank(), "rhs_window", false);
  check_disjoint(c, p.lhs_window, p.dot.lhs_batch, "lhs_window", "lhs_batch");
  check_disjoint(c, p.lhs_window, p.dot.lhs_contract, "lhs_window", "lhs_contract");
  check_disjoint(c, p.rhs_window, p.dot.rhs_batch, "rhs_window", "rhs_batch");
  check_disjoint(c, p.rhs_window, p.dot.rhs_contract, "rhs_window", "rhs_contract");
  const std::size_t n = p.lhs_window.size();
  if (p.rhs_window.size() != n)
    c.refuse_shape(formatted("numbers of window axes differ, {} and {}", p.lhs_window.str(),
                             p.rhs_window.str()));
  constexpr std::int64_t any = -(std::int64_t{1} << 40);
  check_numbers(c, p.strides, n, 1, "strides");
  check_numbers(c, p.low, n, any, "low padding");
  check_numbers(c, p.high, n, any, "high padding");
  check_numbers(c, p.lhs_dilation, n, 1, "lhs_dilation");
  check_numbers(c, p.rhs_dilation, n, 1, "rhs_dilation");

  const auto joined = [](Axes axes, const Axes& more) {
    axes.append(more.begin(), more.end());
    return axes;
  };
  Shape shape = picked(a.shape, p.dot.lhs_batch);
  for (int d : free_axes(a.shape.rank(), joined(p.dot.lhs_contract, p.lhs_window), p.dot.lhs_batch))
    shape.push_back(a.shape[d]);
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t room = plus(dilated(a.shape[p.lhs_window[k]], p.lhs_dilation[k]),
                                   p.low[k] + p.high[k]),
                       window = dilated(b.shape[p.rhs_window[k]], p.rhs_dilation[k]);
    if (std::max(room, window) > std::int64_t{1} << 61)
      c.refuse_shape(formatted("window axis {} is too large with its dilation", k));
    shape.push_back(room < window ? 0 : (room - window) / p.strides[k] + 1);
  }
  for (int d : free_axes(b.shape.rank(), joined(p.dot.rhs_contract, p.rhs_window), p.dot.rhs_batch))
    shape.push_back(b.shape[d]);
  if (!p.order.empty()) {
    check_axes(c, p.order, shape.rank(), "order", false);
    if (p.order.size() != shape.size())
      c.refuse_shape(formatted("order needs {} axes, not {}", shape.size(), p.order.size()));
    shape = picked(shape, p.order);
  }
  return result(p.dot.dtype, std::move(shape), a.weak && b.weak);
}

}  // namespace vt::detail::shape_rules
