// ConvSpec: how the axes of a conv_general are planned, and which loops it becomes.
#include "conv_spec.hpp"

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/stable_sort.hpp"
#include "../../trace/ir/axis_map.hpp"

namespace vt::detail {

std::int64_t count_of(const ConvAxes& axes) {
  std::int64_t n = 1;
  for (const ConvAxis& a : axes) n *= a.extent;
  return n;
}

std::int64_t ConvSpec::multiply_adds() const {
  std::int64_t n = columns.extent;
  for (const ConvAxes* axes : {&outer_batch, &outer_free, &outer_contract, &inner_batch,
                               &inner_free, &inner_contract, &b_free})
    n *= count_of(*axes);
  for (const ConvWindow& w : windows) n *= w.out * w.size;
  return n;
}

std::int64_t ConvSpec::results() const {
  std::int64_t n = columns.extent;
  for (const ConvAxes* axes : {&outer_batch, &outer_free, &inner_batch, &inner_free, &b_free})
    n *= count_of(*axes);
  for (const ConvWindow& w : windows) n *= w.out;
  return n;
}

Vec<ConvSpec> phases_of(const ConvSpec& s) {
  constexpr std::int64_t most = 64;
  Vec<ConvSpec> phases{s};
  bool dilated = false;
  for (std::size_t k = 0; k < s.windows.size(); ++k) {
    const ConvWindow& w = s.windows[k];
    const std::int64_t d = w.lhs_dilation;
    if (d == 1 || w.extent == 1 || w.stride != 1 || w.rhs_dilation != 1) continue;
    if (static_cast<std::int64_t>(phases.size()) * d > most) return {};
    dilated = true;
    Vec<ConvSpec> finer;
    for (const ConvSpec& phase : phases)
      for (std::int64_t r = 0; r < std::min(d, w.out); ++r) {
        // Results o = d · q + r see places p = first + d · t, and there elements
        // q + t + (r + first − low) / d.
        const std::int64_t first = ((w.low - r) % d + d) % d;
        ConvSpec one = phase;
        ConvWindow& mine = one.windows[k];
        mine.lhs_dilation = 1;
        mine.size = first < w.size ? (w.size - first + d - 1) / d : 0;
        mine.out = (w.out - r + d - 1) / d;
        mine.low = (w.low - r - first) / d;
        mine.b *= d, mine.c *= d;
        one.b_start += first * w.b, one.c_start += r * w.c;
        one.rows_in_order = false;
        finer.push_back(one);
      }
    phases = std::move(finer);
  }
  if (!dilated) phases.clear();
  return phases;
}

namespace conv_planning {

Shape row_major(const Shape& shape) {
  Shape strides = Shape::filled(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}
Axes joined(Axes axes, const Axes& more) {
  axes.append(more.begin(), more.end());
  return axes;
}
std::size_t position(const Axes& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) - axes.begin();
}

// The place of each axis of c before its order, and their distances in c.
Shape result_strides(const ConvParams& p, const Shape& unordered) {
  if (p.order.empty()) return row_major(unordered);
  const Shape strides = row_major(picked(unordered, p.order));
  return picked(strides, inverse(p.order));
}

// The windows' axes stand together in their order (axes of one element do not count), and something
// is behind them or nothing before.
bool is_image(const ConvParams& p, const Shape& lhs) {
  int last = -1, before = 0, behind = 0;
  for (int axis : p.lhs_window) {
    if (lhs[axis] == 1) continue;
    if (axis < last) return false;
    for (int between = last + 1; last >= 0 && between < axis; ++between)
      if (lhs[between] != 1) return false;
    last = axis;
  }
  const int first =
      p.lhs_window.empty() ? 0 : *std::min_element(p.lhs_window.begin(), p.lhs_window.end());
  for (int axis = 0; axis < lhs.rank(); ++axis)
    if (!p.lhs_window.contains(axis) && lhs[axis] != 1) ++(axis < first ? before : behind);
  return behind > 0 || before <= 1;
}

}  // namespace conv_planning

std::optional<ConvPlan> plan_conv(const ConvParams& p, const Shape& lhs, const Shape& rhs,
                                  DType operands, ConvTarget target) {
  using namespace conv_planning;
  ConvPlan plan;
  ConvSpec& s = plan.spec;
  Axes lhs_order = Axes::first(lhs.rank());
  if (target == ConvTarget::host && !is_image(p, lhs)) {
    // All others in front, but for the last.
    Axes others, order;
    for (int axis = 0; axis < lhs.rank(); ++axis)
      if (!p.lhs_window.contains(axis)) others.push_back(axis);
    const int last = others.empty() ? -1 : others.back();
    for (int axis : others)
      if (axis != last) order.push_back(axis);
    order = joined(order, p.lhs_window);
    if (last >= 0) order.push_back(last);
    if (!is_identity(order)) plan.lhs_permutation = lhs_order = order;
  }
  const Shape a_strides = picked(row_major(picked(lhs, lhs_order)), inverse(lhs_order)),
              b_strides = row_major(rhs);
  const Axes lhs_free =
      free_axes(lhs.rank(), joined(p.dot.lhs_contract, p.lhs_window), p.dot.lhs_batch);
  const Axes rhs_free =
      free_axes(rhs.rank(), joined(p.dot.rhs_contract, p.rhs_window), p.dot.rhs_batch);
  const std::size_t batches = p.dot.lhs_batch.size(), windows_at = batches + lhs_free.size(),
                    rhs_free_at = windows_at + p.lhs_window.size();

  Shape unordered = picked(lhs, p.dot.lhs_batch);
  for (int axis : lhs_free) unordered.push_back(lhs[axis]);
  for (std::size_t k = 0; k < p.lhs_window.size(); ++k) {
    ConvWindow w;
    w.extent = lhs[p.lhs_window[k]];
    w.size = rhs[p.rhs_window[k]];
    w.stride = p.strides[k], w.low = p.low[k], w.lhs_dilation = p.lhs_dilation[k],
    w.rhs_dilation = p.rhs_dilation[k];
    w.a = a_strides[p.lhs_window[k]];
    w.b = b_strides[p.rhs_window[k]];
    if (p.flipped.contains(static_cast<int>(k))) {
      s.b_start += (w.size - 1) * w.b;
      w.b = -w.b;
    }
    const std::int64_t room =
        (w.extent == 0 ? 0 : (w.extent - 1) * w.lhs_dilation + 1) + p.low[k] + p.high[k];
    const std::int64_t reach = w.size == 0 ? 0 : (w.size - 1) * w.rhs_dilation + 1;
    w.out = room < reach ? 0 : (room - reach) / w.stride + 1;
    unordered.push_back(w.out);
    s.windows.push_back(w);
  }
  for (int axis : rhs_free) unordered.push_back(rhs[axis]);
  const Shape c_strides = result_strides(p, unordered);
  for (std::size_t k = 0; k < s.windows.size(); ++k) s.windows[k].c = c_strides[windows_at + k];

  // Axes of a in the order of its memory. Where the windows begin, if there are none: in front of
  // the last axis.
  std::size_t first_window = lhs_order.size();
  for (std::size_t i = 0; i < lhs_order.size(); ++i)
    if (p.lhs_window.contains(lhs_order[i]) && lhs[lhs_order[i]] != 1)
      first_window = std::min(first_window, i);
  if (first_window == lhs_order.size()) {
    for (std::size_t i = 0; i < lhs_order.size(); ++i)
      if (p.lhs_window.contains(lhs_order[i])) first_window = std::min(first_window, i);
  }
  for (std::size_t i = 0; i < lhs_order.size(); ++i) {
    const int axis = lhs_order[i];
    const bool outer = i < first_window;
    if (p.lhs_window.contains(axis)) continue;
    ConvAxis x{lhs[axis], a_strides[axis], 0, 0};
    if (!outer) s.inner *= x.extent;
    if (p.dot.lhs_batch.contains(axis)) {
      const std::size_t k = position(p.dot.lhs_batch, axis);
      x.b = b_strides[p.dot.rhs_batch[k]];
      x.c = c_strides[k];
      (outer ? s.outer_batch : s.inner_batch).push_back(x);
    } else if (p.dot.lhs_contract.contains(axis)) {
      x.b = b_strides[p.dot.rhs_contract[position(p.dot.lhs_contract, axis)]];
      (outer ? s.outer_contract : s.inner_contract).push_back(x);
    } else {
      x.c = c_strides[batches + position(lhs_free, axis)];
      (outer ? s.outer_free : s.inner_free).push_back(x);
    }
  }

  // The last free axes of b, as far as they are one in b and in c.
  s.columns = {1, 0, 1, 1};
  std::size_t taken = rhs_free.size();
  for (; target == ConvTarget::host && taken > 0; --taken) {
    const std::int64_t extent = rhs[rhs_free[taken - 1]], b = b_strides[rhs_free[taken - 1]],
                       c = c_strides[rhs_free_at + taken - 1];
    if (extent == 1) continue;
    if (s.columns.extent == 1) {
      if (c != 1) return std::nullopt;
      s.columns = {extent, 0, b, 1};
    } else if (b == s.columns.b * s.columns.extent && c == s.columns.extent) {
      s.columns.extent *= extent;
    } else {
      break;
    }
  }
  for (std::size_t k = 0; k < taken; ++k)
    if (rhs[rhs_free[k]] != 1)
      s.b_free.push_back({rhs[rhs_free[k]], 0, b_strides[rhs_free[k]], c_strides[rhs_free_at + k]});

  // Without any, channels that a, b and c have beside each other take their place.
  if (s.columns.extent == 1)
    for (std::size_t k = 0; k < s.inner_batch.size(); ++k)
      if (s.inner_batch[k].extent > 1 && s.inner_batch[k].a == 1 && s.inner_batch[k].c == 1) {
        s.columns = s.inner_batch[k];
        s.inner_batch.erase(s.inner_batch.begin() + k);
        break;
      }

  s.a_dtype = s.b_dtype = operands;
  s.result = p.dot.dtype;
  s.accumulate = p.dot.dtype == f16 || p.dot.dtype == bf16 ? f32 : p.dot.dtype;
  s.rows_in_order = (p.order.empty() || is_identity(p.order)) && count_of(s.inner_batch) == 1 &&
                    count_of(s.inner_free) == 1 && s.b_free.empty();
  return plan;
}

std::int64_t ConvLoops::Range::from(std::int64_t o) const {
  return std::max<std::int64_t>(low - stride * o + dilation - 1, 0) / dilation;
}
std::int64_t ConvLoops::Range::to(std::int64_t o) const {
  return std::min(size,
                  std::max<std::int64_t>(reach - 1 + low - stride * o + dilation, 0) / dilation);
}

namespace conv_planning {

// Rows of the windows and of what is inside of them, and all depths.
void add_loops(const ConvSpec& s, ConvLoops& l) {
  for (const ConvAxis& a : s.inner_free) l.rows.push_back({a.extent, a.a, a.c});
  for (std::size_t k = 0; k < s.windows.size(); ++k) {
    const ConvWindow& w = s.windows[k];
    const std::int64_t reach = (w.extent - 1) * w.lhs_dilation + 1;
    const bool open =
        w.low > 0 || (w.out - 1) * w.stride + (w.size - 1) * w.rhs_dilation - w.low >= reach;
    const int window = open ? static_cast<int>(k) : -1;
    l.rows.push_back({w.out, w.stride * l.distances[k], w.c, window});
    l.depth.push_back({w.size, w.rhs_dilation * l.distances[k], window});
    l.ranges.push_back({w.out, w.size, w.stride, w.rhs_dilation, w.low, reach,
                        l.side_by_side ? w.low : 0, l.distances[k]});
    if (l.side_by_side && !open) l.start -= w.low * l.distances[k];
  }
  for (const ConvAxis& a : s.inner_contract) l.depth.push_back({a.extent, a.a});
  // Rows in the order of the image; what steps evenly is one loop.
  stable_sort(l.rows, [](const ConvLoops::Row& x, const ConvLoops::Row& y) { return x.a > y.a; });
}

// One loop of those that step evenly. Then places beyond the edges are multiplied as well, which
// images side by side do not have.
void join_rows(ConvLoops& l) {
  decltype(l.rows) rows;
  for (const ConvLoops::Row& r : l.rows) {
    if (r.extent == 1 && r.window < 0) continue;
    const bool even =
        !rows.empty() && rows.back().a == r.a * r.extent && rows.back().c == r.c * r.extent;
    if (even && (!l.side_by_side || (rows.back().window < 0 && r.window < 0)))
      rows.back() = {rows.back().extent * r.extent, r.a, r.c};
    else rows.push_back(r);
  }
  l.rows = rows;
}

}  // namespace conv_planning

ConvLoops loops_of(const ConvSpec& s) {
  ConvLoops l;
  l.n = s.columns.extent;
  // What the windows reach, from the first element on.
  // Vectors of channels that are not whole read beyond them.
  const std::int64_t longest = 64 / static_cast<std::int64_t>(size_of(s.accumulate));
  bool inside = s.a_dtype == s.accumulate && (s.columns.a == 0 || s.columns.extent % longest == 0);
  for (const ConvWindow& w : s.windows) {
    l.extents.push_back((w.out - 1) * w.stride + (w.size - 1) * w.rhs_dilation + 1);
    inside = inside && w.low <= 0 && (w.lhs_dilation == 1 || w.extent == 1) &&
             l.extents.back() - w.low <= w.extent;
  }
  l.padded = !inside;
  l.elements = s.inner;
  l.distances.resize(s.windows.size());
  for (std::size_t k = s.windows.size(); k-- > 0;) {
    l.distances[k] = l.padded ? l.elements : s.windows[k].a;
    l.elements *= l.extents[k];
    if (!l.padded) l.start -= s.windows[k].low * s.windows[k].a;
  }
  conv_planning::add_loops(s, l);
  conv_planning::join_rows(l);
  return l;
}

std::optional<ConvLoops> loops_side_by_side(const ConvSpec& s, std::int64_t between) {
  ConvLoops l;
  if (s.columns.a != 0) return std::nullopt;
  l.n = s.columns.extent;
  l.side_by_side = true;
  l.padded = between > 0;
  l.elements = s.inner;
  l.distances.resize(s.windows.size());
  l.extents.resize(s.windows.size());
  for (std::size_t k = s.windows.size(); k-- > 0;) {
    const ConvWindow& w = s.windows[k];
    if (w.lhs_dilation != 1 && w.extent != 1) return std::nullopt;
    l.extents[k] = w.extent;
    l.distances[k] = w.extent == 1 ? l.elements : w.a;
    l.elements *= w.extent;
  }
  ConvLoops::Row images{1, 0, 0};
  for (const ConvAxis& a : s.outer_free) {
    if (a.extent == 1) continue;
    if (images.extent > 1 && (images.a != a.a * a.extent || images.c != a.c * a.extent))
      return std::nullopt;
    images = {images.extent * a.extent, a.a, a.c};
  }
  if (between > 0) images.a = between;
  conv_planning::add_loops(s, l);
  conv_planning::join_rows(l);
  decltype(l.rows) rows{images};
  rows.append(l.rows.begin(), l.rows.end());
  l.rows = rows;
  return l;
}

}  // namespace vt::detail
