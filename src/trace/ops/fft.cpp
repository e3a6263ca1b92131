// The functions of vt::fft: lengths, axes and scales around the primitive.
#include <vt/fft.hpp>

#include <algorithm>
#include <cmath>

#include <vt/detail/message.hpp>

#include "support/operands.hpp"

namespace vt::detail::fourier {

constexpr std::size_t most_axes = 3;  // of one equation

/// `t` with `n` elements along an axis: cropped, or with zeros behind.
inline Tensor with_length(const Tensor& t, int axis, std::int64_t n, CallSite where) {
  const std::int64_t own = extent(t.shape(), axis);
  if (own == n) return t;
  if (n < own) return sliced(t, axis, 0, n, 1, where);
  PadParams p;
  p.low = p.high = p.interior = Shape::filled(t.shape().size(), 0);
  p.high[axis] = n - own;
  return emit(Op::pad, make_params(std::move(p)),
              {t, full_tensor(Scalar(0).converted(t.dtype()), Aval(t.dtype(), Shape{}))}, where);
}

/// The primitive on `axes` (at most three), whichever they are.
inline Tensor along(FftKind kind, const Tensor& t, const Axes& axes, const Shape& lengths,
                    CallSite where) {
  Axes order = other_axes(axes, t.rank()), back = Axes::first(t.rank());
  for (int axis : axes) order.push_back(axis);
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int>(i);
  return permuted(emit(Op::fft, make_params(FftParams{kind, lengths, false}),
                       {permuted(t, order, where)}, where),
                  back, where);
}

inline Tensor transform(std::string_view name, FftKind kind, Operand x, const vt::fft::Lengths& s,
                        const vt::fft::TransformAxes& wanted, vt::fft::Norm norm) {
  const CallSite w = x.where;
  const UserLine line(w);
  need(name, x.tensor, w);
  const int rank = x.tensor.rank();
  Axes axes;
  if (wanted) {
    axes = normal_axes(name, *wanted, rank, x.tensor, w);
  } else {
    const int count = s ? static_cast<int>(s->size()) : rank;
    if (count > rank)
      refuse(ErrorKind::shape, name, formatted("{} lengths for {} axes", count, rank), x.tensor, w);
    for (int i = rank - count; i < rank; ++i) axes.push_back(i);
  }
  if (s && s->size() != axes.size())
    refuse(ErrorKind::shape, name, formatted("lengths {} for axes {}", s->str(), axes.str()),
           x.tensor, w);
  if (axes.empty()) refuse(ErrorKind::shape, name, "needs at least one axis", x.tensor, w);
  if (kind == FftKind::rfft && is_complex(x.tensor.dtype()))
    refuse(ErrorKind::dtype, name, "needs real numbers; complex ones have fft", x.tensor, w);

  Tensor t = widened(to_float(x.tensor, w), w);
  const bool weak = aval_of(t).weak;
  t = cast(t, kind == FftKind::rfft ? t.dtype() : complex_dtype(t.dtype()), w);
  Shape lengths;
  double elements = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool half = kind == FftKind::irfft && i + 1 == axes.size();
    const std::int64_t own = extent(t.shape(), axes[i]), n = s      ? (*s)[i]
                                                             : half ? 2 * (own - 1)
                                                                    : own;
    if (n < 1)
      refuse(ErrorKind::shape, name,
             formatted("a transform of {} points along axis {}", n, axes[i]), x.tensor, w);
    t = with_length(t, axes[i], half ? n / 2 + 1 : n, w);
    lengths.push_back(n);
    elements *= static_cast<double>(n);
  }

  // Three axes at a time: those with the real transform first going forward, and last coming back.
  const bool backward = kind == FftKind::ifft || kind == FftKind::irfft;
  const FftKind plain = backward ? FftKind::ifft : FftKind::fft;
  const auto part = [&](std::size_t begin, std::size_t end, FftKind k) {
    const std::span<const int> own(axes.begin() + begin, end - begin);
    const std::span<const std::int64_t> sizes(lengths.begin() + begin, end - begin);
    Axes group;
    for (int axis : own) group.push_back(axis);
    t = along(k, t, group, Shape(sizes), w);
  };
  const std::size_t first = axes.size() > most_axes ? axes.size() - most_axes : 0;
  if (kind != FftKind::irfft) part(first, axes.size(), kind);
  for (std::size_t end = first; end > 0; end -= std::min(end, most_axes))
    part(end - std::min(end, most_axes), end, plain);
  if (kind == FftKind::irfft) part(first, axes.size(), kind);

  const double root = std::sqrt(elements);
  if (norm == vt::fft::Norm::ortho) t = t * (backward ? root : 1 / root);
  if (norm == vt::fft::Norm::forward) t = t * (backward ? elements : 1 / elements);
  return weak ? cast(t, t.dtype(), true, w) : t;
}

inline Tensor transform_one(std::string_view name, FftKind kind, Operand x, vt::fft::Length n,
                            int axis, vt::fft::Norm norm) {
  return transform(name, kind, std::move(x), n ? vt::fft::Lengths(Shape{*n}) : std::nullopt,
                   Axes(axis), norm);
}

inline vt::fft::Norm other_way(vt::fft::Norm norm) {
  return norm == vt::fft::Norm::backward  ? vt::fft::Norm::forward
         : norm == vt::fft::Norm::forward ? vt::fft::Norm::backward
                                          : norm;
}

inline Tensor frequencies(std::string_view name, const Tensor& counts, std::int64_t n, double d,
                          DType dtype, CallSite where) {
  if (!is_float(dtype))
    refuse(ErrorKind::dtype, name, formatted("{} is no float dtype", name_of(dtype)),
           std::span<const Tensor>(), where);
  return cast(counts.astype(f64) / (static_cast<double>(n) * d), dtype, where);
}
inline void need_points(std::string_view name, std::int64_t n, CallSite where) {
  if (n < 1)
    refuse(ErrorKind::value, name, formatted("a transform of {} points", n),
           std::span<const Tensor>(), where);
}

}  // namespace vt::detail::fourier

namespace vt::fft {

namespace fr = detail::fourier;
using detail::FftKind;

Tensor fft(Operand x, Length n, Param<int> axis, Norm norm) {
  return fr::transform_one("fft::fft", FftKind::fft, std::move(x), n, axis, norm);
}
Tensor ifft(Operand x, Length n, Param<int> axis, Norm norm) {
  return fr::transform_one("fft::ifft", FftKind::ifft, std::move(x), n, axis, norm);
}
Tensor rfft(Operand x, Length n, Param<int> axis, Norm norm) {
  return fr::transform_one("fft::rfft", FftKind::rfft, std::move(x), n, axis, norm);
}
Tensor irfft(Operand x, Length n, Param<int> axis, Norm norm) {
  return fr::transform_one("fft::irfft", FftKind::irfft, std::move(x), n, axis, norm);
}
Tensor hfft(Operand x, Length n, Param<int> axis, Norm norm) {
  const detail::UserLine line(x.where);
  detail::need("fft::hfft", x.tensor, x.where);
  x.tensor = conj(x);
  return fr::transform_one("fft::hfft", FftKind::irfft, std::move(x), n, axis, fr::other_way(norm));
}
Tensor ihfft(Operand x, Length n, Param<int> axis, Norm norm) {
  const detail::UserLine line(x.where);
  return conj(
      fr::transform_one("fft::ihfft", FftKind::rfft, std::move(x), n, axis, fr::other_way(norm)));
}

Tensor fftn(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::fftn", FftKind::fft, std::move(x), s, axes, norm);
}
Tensor ifftn(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::ifftn", FftKind::ifft, std::move(x), s, axes, norm);
}
Tensor rfftn(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::rfftn", FftKind::rfft, std::move(x), s, axes, norm);
}
Tensor irfftn(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::irfftn", FftKind::irfft, std::move(x), s, axes, norm);
}
Tensor fft2(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::fft2", FftKind::fft, std::move(x), s, axes ? *axes : Axes{-2, -1},
                       norm);
}
Tensor ifft2(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::ifft2", FftKind::ifft, std::move(x), s, axes ? *axes : Axes{-2, -1},
                       norm);
}
Tensor rfft2(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::rfft2", FftKind::rfft, std::move(x), s, axes ? *axes : Axes{-2, -1},
                       norm);
}
Tensor irfft2(Operand x, const Lengths& s, const TransformAxes& axes, Norm norm) {
  return fr::transform("fft::irfft2", FftKind::irfft, std::move(x), s, axes ? *axes : Axes{-2, -1},
                       norm);
}

Tensor fftfreq(Param<std::int64_t> n, Param<double> d, DType dtype, CallSite where) {
  const detail::UserLine line(where);
  fr::need_points("fft::fftfreq", n, where);
  const Tensor i = arange(n, i64, where);
  return fr::frequencies("fft::fftfreq", vt::where(i < (n + 1) / 2, i, i - std::int64_t{n}), n, d,
                         dtype, where);
}
Tensor rfftfreq(Param<std::int64_t> n, Param<double> d, DType dtype, CallSite where) {
  const detail::UserLine line(where);
  fr::need_points("fft::rfftfreq", n, where);
  return fr::frequencies("fft::rfftfreq", arange(n / 2 + 1, i64, where), n, d, dtype, where);
}

}  // namespace vt::fft
