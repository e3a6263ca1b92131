// Transpose rules of windows, of their sum and of convolutions: a convolution with respect to
// either operand is a convolution of the cotangent with the other one.
#include <algorithm>

#include "../../../trace/ir/axis_map.hpp"
#include "../build.hpp"
#include "../transpose.hpp"

namespace vt::detail::transpose_rules {

using namespace grad_build;

void windows(const TransposeCall& c) {
  c.cotangents[0] = emit(Op::overlap_add, c.equation.params, {c.ct()}, {});
}

void overlap_add(const TransposeCall& c) {
  c.cotangents[0] = emit(Op::windows, c.equation.params, {c.ct()}, {});
}

namespace conv_transpose {

inline Axes joined(Axes axes, const Axes& more) {
  axes.append(more.begin(), more.end());
  return axes;
}
/// How many of `axes` come before `axis`.
inline int rank_among(const Axes& axes, int axis) {
  return static_cast<int>(count_if(axes, [&](int a) { return a < axis; }));
}

/// One operand's axes by what they are.
struct Roles {
  Axes batch, contract, window, free;
  Roles(const Axes& b, const Axes& c, const Axes& w, int rank)
      : batch(b), contract(c), window(w), free(free_axes(rank, joined(c, w), b)) {}
};

/// The product of a transposed convolution has axes [batch, contracted ones of `other` in order,
/// window, free] or, with `free_first`, [batch, free, window, contracted ones in order]; this
/// brings them to where the operand has them.
inline Tensor placed(const Tensor& product, const Roles& own, const Axes& other_contract,
                     bool free_first) {
  Axes order = Axes::first(product.rank());
  int next = 0;
  for (int axis : own.batch) order[axis] = next++;
  const auto free = [&] {
    for (int axis : own.free) order[axis] = next++;
  };
  const auto contract = [&] {
    for (std::size_t k = 0; k < own.contract.size(); ++k)
      order[own.contract[k]] = next + rank_among(other_contract, other_contract[k]);
    next += static_cast<int>(own.contract.size());
  };
  if (free_first) free();
  else contract();
  for (int axis : own.window) order[axis] = next++;
  if (free_first) contract();
  else free();
  return permuted(product, order);
}

inline Axes range(int first, std::size_t count) {
  Axes axes;
  for (std::size_t k = 0; k < count; ++k) axes.push_back(first + static_cast<int>(k));
  return axes;
}

}  // namespace conv_transpose

// y[o] = Σ x[s·o + r·p − low] w[p], x broadcast by l. With q = l·n the place of x[n]: x̄[n] = Σ
// ȳ[(q + low − r·p) / s] w[p], a convolution of ȳ dilated by s with w flipped; and w̄[p] =
// Σ x[r·p + s·o − low] ȳ[o], one of x with the window ȳ, whose dilation is s and whose stride is r.
// The high padding is what gives the operand's extents.
void conv_general(const TransposeCall& c) {
  using namespace conv_transpose;
  const auto& p = c.as<ConvParams>();
  if (c.linear(0) && c.linear(1)) refuse(c);
  const Roles lhs(p.dot.lhs_batch, p.dot.lhs_contract, p.lhs_window, c.shape(0).rank());
  const Roles rhs(p.dot.rhs_batch, p.dot.rhs_contract, p.rhs_window, c.shape(1).rank());
  const int batches = static_cast<int>(lhs.batch.size()),
            windows_at = batches + static_cast<int>(lhs.free.size()),
            rhs_free_at = windows_at + static_cast<int>(lhs.window.size());
  const std::size_t n = lhs.window.size();
  const bool left = c.linear(0);
  ConvParams t = p;
  t.order = {};
  const Tensor ct = p.order.empty() ? c.ct() : permuted(c.ct(), inverse(p.order));
  const Shape& out = ct.shape();
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t extent = c.shape(0)[lhs.window[k]], size = c.shape(1)[rhs.window[k]];
    const std::int64_t places = out[windows_at + k], window = dilated(size, p.rhs_dilation[k]);
    if (left) {
      t.strides[k] = p.lhs_dilation[k];
      t.lhs_dilation[k] = p.strides[k];
      t.low[k] = window - 1 - p.low[k];
      t.high[k] =
          window + (extent - 1) * p.lhs_dilation[k] - dilated(places, p.strides[k]) - t.low[k];
    } else {
      t.strides[k] = p.rhs_dilation[k];
      t.rhs_dilation[k] = p.strides[k];
      t.high[k] = dilated(places, p.strides[k]) + (size - 1) * p.rhs_dilation[k] -
                  dilated(extent, p.lhs_dilation[k]) - p.low[k];
    }
  }
  if (left) {
    t.dot.lhs_batch = Axes::first(batches);
    t.dot.lhs_contract = range(rhs_free_at, rhs.free.size());
    t.dot.rhs_contract = rhs.free;
    t.lhs_window = range(windows_at, n);
    Tensor transposed = convert_to(c.x[1], p.dot.dtype);
    Axes windows = rhs.window;
    insertion_sort(windows);
    if (n > 0) transposed = emit(Op::rev, make_params(AxesParams{windows}), {transposed}, {});
    const Tensor product = emit(Op::conv_general, make_params(std::move(t)), {ct, transposed}, {});
    c.cotangents[0] = convert_to(placed(product, lhs, rhs.contract, true), c.operand(0).dtype);
  } else {
    t.dot.rhs_batch = Axes::first(batches);
    t.dot.lhs_contract = lhs.free;
    t.dot.rhs_contract = range(batches, lhs.free.size());
    t.rhs_window = range(windows_at, n);
    const Tensor product = emit(Op::conv_general, make_params(std::move(t)),
                                {convert_to(c.x[0], p.dot.dtype), ct}, {});
    c.cotangents[1] = convert_to(placed(product, rhs, lhs.contract, false), c.operand(1).dtype);
  }
}

}  // namespace vt::detail::transpose_rules
