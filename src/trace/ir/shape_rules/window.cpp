// Shape rules of windows and of their sum.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "../axis_map.hpp"
#include "rules.hpp"

namespace vt::detail::shape_rules {

namespace window_rules {

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

}  // namespace vt::detail::shape_rules
