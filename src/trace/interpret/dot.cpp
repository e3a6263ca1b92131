// Interpreter rules of products, dot_general and conv_general: both widened operands are packed as
// [batch, free, contracted], then plain products are summed.
#include <complex>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../ir/axis_map.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_dot {

/// An operand's elements in the wide dtype, row-major over the batch axes, then the free ones, then
/// the contracted ones.
struct Packed {
  BufferRef buffer;
  std::int64_t batch = 1, free = 1, contracted = 1;
  template <class W>
  const W* row(std::int64_t b, std::int64_t i) const {
    return buffer->as<const W>() + (b * free + i) * contracted;
  }
};

Packed pack(const Frame& frame, std::size_t operand, const Axes& batch, const Axes& contracted) {
  const Shape& shape = frame.in(operand).shape;
  const Shape own = row_major_strides(shape);
  Packed packed;
  Shape dims, strides;
  auto take = [&](int axis, std::int64_t& size) {
    dims.push_back(shape[axis]);
    strides.push_back(own[axis]);
    size *= dims.back();
  };
  for (int axis : batch) take(axis, packed.batch);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!batch.contains(axis) && !contracted.contains(axis)) take(axis, packed.free);
  for (int axis : contracted) take(axis, packed.contracted);
  const BufferRef wide = frame.widened(operand);
  packed.buffer = frame.scratch(static_cast<std::size_t>(shape.elements()) *
                                size_of(wide_of(frame.in(operand).dtype)));
  copy_region(wide_of(frame.in(operand).dtype), dims, wide->data, 0, strides, packed.buffer->data,
              0, row_major_strides(dims));
  return packed;
}

/// Elements of two contracted rows that are multiplied: `left` and `right` are where the first of
/// them lie.
struct Meeting {
  std::int64_t left, right;
};

/// What window place p of each axis meets at result place o, in row-major order of p. Places beside
/// the operand and between its elements hold zeros and are left out.
Vec<Meeting> meetings(const ConvParams& p, const Shape& left, const Shape& right, const Shape& out,
                      std::int64_t o, std::int64_t contracted) {
  Vec<Meeting> all{{0, 0}};
  std::int64_t outer = out.elements();
  for (std::size_t d = 0; d < left.size(); ++d) {
    outer /= out[d];
    const std::int64_t start = o / outer % out[d] * p.strides[d] - p.low[d];
    const bool flipped = p.flipped.contains(static_cast<int>(d));
    Vec<Meeting> longer;
    for (const Meeting& m : all)
      for (std::int64_t k = 0; k < right[d]; ++k) {
        const std::int64_t at = start + k * p.rhs_dilation[d];
        if (at < 0 || at % p.lhs_dilation[d] != 0 || at / p.lhs_dilation[d] >= left[d]) continue;
        longer.push_back({m.left * left[d] + at / p.lhs_dilation[d],
                          m.right * right[d] + (flipped ? right[d] - 1 - k : k)});
      }
    all = std::move(longer);
  }
  for (Meeting& m : all) m = {m.left * contracted, m.right * contracted};
  return all;
}

/// A sum of products of elements that are stored as W, multiplied and added as S. In a register,
/// also where little is optimised: `add` is the interpreter's innermost loop.
template <class W, class S>
class Sum {
 public:
  [[gnu::always_inline]] void add(W x, W y) { sum_ += static_cast<S>(x) * static_cast<S>(y); }
  [[gnu::always_inline]] W value() const { return static_cast<W>(sum_); }

 private:
  S sum_ = 0;
};
using C = std::complex<double>;
template <>
class Sum<C, long double> {
 public:
  [[gnu::always_inline]] void add(C x, C y) {
    const long double xr = x.real(), xi = x.imag(), yr = y.real(), yi = y.imag();
    re_ += xr * yr - xi * yi;
    im_ += xr * yi + xi * yr;
  }
  [[gnu::always_inline]] C value() const {
    return {static_cast<double>(re_), static_cast<double>(im_)};
  }

 private:
  long double re_ = 0, im_ = 0;
};

template <class W, class S>
void run(const Packed& lhs, const Packed& rhs, const Vec<Meeting>& meetings,
         std::int64_t contracted, W* out, std::int64_t places) {
  for (std::int64_t b = 0; b < lhs.batch; ++b)
    for (std::int64_t i = 0; i < lhs.free; ++i)
      for (std::int64_t j = 0; j < rhs.free; ++j) {
        const W *x = lhs.row<W>(b, i), *y = rhs.row<W>(b, j);
        Sum<W, S> sum;
        for (const Meeting& m : meetings) {
          const W *left = x + m.left, *right = y + m.right;
          for (std::int64_t k = 0; k < contracted; ++k) sum.add(left[k], right[k]);
        }
        out[(b * lhs.free + i) * places * rhs.free + j] = sum.value();
      }
}

/// A product of both operands at every place of the windows.
void product(Frame& frame, const ConvParams& p) {
  const Shape &a = frame.in(0).shape, &b = frame.in(1).shape;
  const DType dtype = frame.out().dtype;
  if (is_bool(frame.in().dtype)) refuse_dtype(frame);
  const auto joined = [](Axes first, const Axes& then) {
    first.append(then.begin(), then.end());
    return first;
  };
  const Packed lhs = pack(frame, 0, p.dot.lhs_batch, joined(p.lhs_window, p.dot.lhs_contract)),
               rhs = pack(frame, 1, p.dot.rhs_batch, joined(p.rhs_window, p.dot.rhs_contract));
  const std::size_t first =
      p.dot.lhs_batch.size() +
      free_axes(a.rank(), joined(p.lhs_window, p.dot.lhs_contract), p.dot.lhs_batch).size();
  const Shape left = picked(a, p.lhs_window), right = picked(b, p.rhs_window);
  // before it is put in order
  const Shape result =
      p.order.empty() ? frame.out().shape : picked(frame.out().shape, inverse(p.order));
  Shape out;
  for (std::size_t d = 0; d < left.size(); ++d) out.push_back(result[first + d]);
  const std::int64_t contracted = picked(a, p.dot.lhs_contract).elements(), places = out.elements();
  BufferRef results = frame.scratch(frame.out().elements() * size_of(wide_of(dtype)));
  for (std::int64_t o = 0; o < places; ++o) {
    const Vec<Meeting> at = meetings(p, left, right, out, o, contracted);
    const std::int64_t start = o * rhs.free;
    if (is_complex(dtype))
      run<C, long double>(lhs, rhs, at, contracted, results->as<C>() + start, places);
    else if (dtype == DType::f64)
      run<double, long double>(lhs, rhs, at, contracted, results->as<double>() + start, places);
    else if (is_float(dtype))
      run<double, double>(lhs, rhs, at, contracted, results->as<double>() + start, places);
    // Sums modulo 2⁶⁴ have the right low bits for every integer dtype, signed or not.
    else
      run<std::uint64_t, std::uint64_t>(lhs, rhs, at, contracted,
                                        results->as<std::uint64_t>() + start, places);
  }
  if (!p.order.empty()) {
    const BufferRef unordered = std::exchange(results, frame.scratch(results->bytes));
    copy_region(wide_of(dtype), frame.out().shape, unordered->data, 0,
                picked(row_major_strides(result), p.order), results->data, 0,
                row_major_strides(frame.out().shape));
  }
  frame.narrow(std::move(results));
}

void conv_general(Frame& frame) { product(frame, frame.params<ConvParams>()); }
void dot_general(Frame& frame) { product(frame, ConvParams{.dot = frame.params<DotParams>()}); }

}  // namespace vt::detail::interp_dot
