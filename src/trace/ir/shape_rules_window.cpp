// Shape rules of windows, of their sum and of conv_general.
#include <algorithm>
#include <string>

#include <vt/detail/message.hpp>

#include "axis_map.hpp"
#include "shape_rules.hpp"

namespace vt::detail::shape_rules {

namespace window_rules {

/// Throws unless there are `count` numbers of at least `least`.
void check_numbers(const Call& c, const Shape& numbers, std::size_t count, std::int64_t least,
                   const char* what) {
  if (numbers.size() != count)
    c.refuse_shape(
        formatted("needs {} {} for as many window axes, not {}", count, what, numbers.size()));
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (std::int64_t n : numbers)
    if (n < least || n > most)
      c.refuse(ErrorKind::value,
               formatted("{} must be between {} and {}, not {}", what, least, most, n));
}

/// The axes are those of `whole`, the shape before windows were taken.
void check_windows(const Call& c, const WindowParams& p, int rank) {
  check_axes(c, p.axes, rank, "axes", true);
  check_numbers(c, p.sizes, p.axes.size(), 1, "sizes");
  check_numbers(c, p.strides, p.axes.size(), 1, "strides");
  check_numbers(c, p.dilations, p.axes.size(), 1, "dilations");
  check_numbers(c, p.extents, p.axes.size(), 0, "extents");
}

}  // namespace window_rules

Avals windows(const Call& c) {
  const auto& p = c.as<WindowParams>();
  const Aval& x = c.operand(0);
  window_rules::check_windows(c, p, x.shape.rank());
  Shape shape = x.shape;
  for (std::size_t k = 0; k < p.axes.size(); ++k) {
    std::int64_t& extent = shape[p.axes[k]];
    if (extent != p.extents[k])
      c.refuse_shape(formatted("axis {} has {} elements, not {}", p.axes[k], extent, p.extents[k]));
    extent = p.count(k);
  }
  shape.append(p.sizes.begin(), p.sizes.end());
  return result(x.dtype, std::move(shape), x.weak);
}

Avals overlap_add(const Call& c) {
  const auto& p = c.as<WindowParams>();
  const Aval& x = c.operand(0);
  c.need_dtype();
  const int rank = x.shape.rank() - static_cast<int>(p.axes.size());
  window_rules::check_windows(c, p, rank);
  Shape shape = x.shape;
  for (std::size_t k = 0; k < p.axes.size(); ++k) {
    std::int64_t& extent = shape[p.axes[k]];
    const int place = rank + static_cast<int>(k);
    if (extent != p.count(k) || shape[place] != p.sizes[k])
      c.refuse_shape(formatted("axes {} and {} must be {} windows of size {}", p.axes[k], place,
                               p.count(k), p.sizes[k]));
    extent = p.extents[k];
  }
  shape.resize(rank);
  return result(x.dtype, std::move(shape), x.weak);
}

Avals conv_general(const Call& c) {
  using namespace window_rules;
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
