// Functions on images: contrast, saturation, hue, conversion to HSV and back, resizing, window
// filters.
#include <algorithm>
#include <numbers>

#include <vt/detail/message.hpp>
#include <vt/special.hpp>

#include "support/operands.hpp"

namespace vt {

namespace detail::images {

/// The operand as floats; throws unless its last axis holds red, green and blue.
inline Tensor checked(std::string_view name, const Operand& x) {
  need(name, x.tensor, x.where);
  if (x.tensor.rank() < 1 || x.tensor.dim(-1) != 3)
    refuse(ErrorKind::shape, name, "needs images whose last axis has 3 channels", x.tensor,
           x.where);
  return to_float(x.tensor, x.where);
}
inline Tensor scalar_factor(std::string_view name, const Operand& factor, const Tensor& x,
                            CallSite where) {
  need(name, factor.tensor, where);
  if (factor.tensor.rank() != 0)
    refuse(ErrorKind::shape, name, "the amount must be a scalar", x, factor.tensor, where);
  return cast(factor.tensor, x.dtype(), where);
}
inline Tensor channel(const Tensor& x, int i, CallSite where) {
  Shape rest = x.shape();
  rest.pop_back();
  return reshaped(sliced(x, x.rank() - 1, i, i + 1, 1, where), rest, where);
}

struct Hsv {
  Tensor hue, saturation, value;
};
/// Hue in circles from red. Grey has hue 0, black saturation 0; the quotients there get a harmless
/// divisor.
inline Hsv to_hsv(const Tensor& x, CallSite where) {
  const Tensor r = channel(x, 0, where), g = channel(x, 1, where), b = channel(x, 2, where);
  const Tensor most = maximum(maximum(r, g), b), least = minimum(minimum(r, g), b),
               range = most - least;
  const Tensor grey = range == 0, divisor = vt::where(grey, 1.0, range);
  const Tensor sector =
      vt::where(most == r, (g - b) / divisor,
                vt::where(most == g, (b - r) / divisor + 2.0, (r - g) / divisor + 4.0));
  Hsv hsv;
  hsv.hue = vt::where(grey, 0.0, mod(sector / 6.0, 1.0));
  hsv.saturation = vt::where(most > 0, range / vt::where(most > 0, most, 1.0), 0.0);
  hsv.value = most;
  return hsv;
}
inline Tensor to_rgb(const Hsv& hsv, CallSite where) {
  const Tensor chroma = hsv.value * hsv.saturation;
  auto component = [&](double offset) {
    const Tensor k = mod(hsv.hue * 6.0 + offset, 6.0);
    return hsv.value - chroma * maximum(minimum(minimum(k, 4.0 - k), 1.0), 0.0);
  };
  return stack({component(5.0), component(3.0), component(1.0)}, -1, where);
}

/// How much a pixel at distance |x| counts.
inline Tensor kernel(Resize method, const Tensor& x) {
  switch (method) {
    case Resize::linear: return maximum(1.0 - x, 0.0);
    case Resize::cubic: {  // Keys 1981, with a = −1/2
      const Tensor near = ((1.5 * x - 2.5) * x) * x + 1.0,
                   far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0;
      return vt::where(x >= 2.0, 0.0, vt::where(x >= 1.0, far, near));
    }
    default: {
      const double radius = method == Resize::lanczos3 ? 3 : 5;
      return vt::where(x > radius, 0.0, sinc(x) * sinc(x / radius));
    }
  }
}
/// [n, m]: how much of old pixel i the new pixel j has.
inline Tensor resize_weights(std::int64_t n, std::int64_t m, Resize method, bool antialias,
                             CallSite where) {
  const double ratio = static_cast<double>(n) / static_cast<double>(m),
               wide = antialias ? std::max(ratio, 1.0) : 1.0;
  const Tensor at = (counted(f64, Shape{1, m}, 1, where) + 0.5) * ratio - 0.5;
  const Tensor weight = kernel(method, abs(at - counted(f64, Shape{n, 1}, 0, where)) / wide);
  return weight / sum(weight, 0, true);
}
inline Tensor nearest_places(std::int64_t n, std::int64_t m, CallSite where) {
  // One quotient, so that what falls on the border of two pixels is whole.
  return cast(floor((counted(f64, Shape{m}, 0, where) + 0.5) * static_cast<double>(n) /
                    static_cast<double>(m)),
              i64, where);
}

}  // namespace detail::images

Tensor adjust_contrast(Operand images, Operand factor) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_contrast", images);
  if (x.rank() < 3)
    detail::refuse(ErrorKind::shape, "adjust_contrast", "needs images [..., H, W, 3]", x, w);
  const Tensor middle = mean(x, {-3, -2}, true);
  return (x - middle) * detail::images::scalar_factor("adjust_contrast", factor, x, w) + middle;
}
Tensor adjust_saturation(Operand images, Operand factor) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_saturation", images);
  detail::images::Hsv hsv = detail::images::to_hsv(x, w);
  hsv.saturation = clip(
      hsv.saturation * detail::images::scalar_factor("adjust_saturation", factor, x, w), 0.0, 1.0);
  return detail::images::to_rgb(hsv, w);
}
Tensor adjust_hue(Operand images, Operand delta) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_hue", images);
  detail::images::Hsv hsv = detail::images::to_hsv(x, w);
  hsv.hue = hsv.hue + detail::images::scalar_factor("adjust_hue", delta, x, w);
  return detail::images::to_rgb(hsv, w);
}
Tensor rgb_to_hsv(Operand images) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const detail::images::Hsv hsv =
      detail::images::to_hsv(detail::images::checked("rgb_to_hsv", images), w);
  return stack({hsv.hue, hsv.saturation, hsv.value}, -1, w);
}
Tensor hsv_to_rgb(Operand images) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("hsv_to_rgb", images);
  return detail::images::to_rgb({detail::images::channel(x, 0, w), detail::images::channel(x, 1, w),
                                 detail::images::channel(x, 2, w)},
                                w);
}

Tensor rgb_to_grayscale(Operand images) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("rgb_to_grayscale", images);
  return sum(x * detail::cast(tensor({0.299, 0.587, 0.114}), x.dtype(), w), -1, true);
}

Tensor resize(Operand x, const Shape& shape, Resize method, bool antialias) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("resize", x.tensor, w);
  if (shape.size() != x.tensor.shape().size())
    detail::refuse(
        ErrorKind::shape, "resize",
        detail::formatted("needs a size for each of {} axes, not {}", x.tensor.rank(), shape.str()),
        x.tensor, w);
  detail::need_size("resize", f64, shape, {&x.tensor, 1}, w);
  const bool nearest = method == Resize::nearest;
  Tensor t = nearest ? x.tensor : detail::to_float(x.tensor, w);
  const DType own = t.dtype();
  if (!nearest) t = detail::widened(t, w);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t n = t.dim(axis), m = detail::extent(shape, axis);
    if (n == 0 && m > 0)
      detail::refuse(ErrorKind::shape, "resize",
                     detail::formatted("axis {} has no elements to make {} of", axis, m), x.tensor,
                     w);
    if (n == m) continue;
    if (nearest || m == 0)
      t = take(t, detail::images::nearest_places(std::max<std::int64_t>(n, 1), m, w), axis);
    else
      t = moveaxis(
          tensordot(t,
                    detail::cast(detail::images::resize_weights(n, m, method, antialias, w),
                                 t.dtype(), w),
                    Axes{axis}, Axes{0}),
          {-1}, {axis});
  }
  return nearest ? t : detail::cast(t, own, w);
}

Tensor crop_and_resize(Operand images, Operand boxes, Operand box_images,
                       Param<std::int64_t> height, Param<std::int64_t> width, Resize method,
                       Operand outside) {
  const CallSite w = images.where;
  const detail::UserLine line(w);
  const char* name = "crop_and_resize";
  detail::need(name, images.tensor, w);
  detail::need(name, boxes.tensor, w);
  detail::need(name, box_images.tensor, w);
  detail::need(name, outside.tensor, w);
  const Tensor x = detail::to_float(images.tensor, w);
  const DType wide = x.dtype() == f64 ? f64 : f32;
  const Tensor box = detail::cast(boxes.tensor, wide, w);
  if (x.rank() != 4 || box.rank() != 2 || box.dim(1) != 4 ||
      box_images.tensor.shape() != Shape{box.dim(0)} || !is_int(box_images.tensor.dtype()) ||
      height < 0 || width < 0 || (x.size() == 0 && box.dim(0) > 0 && height > 0 && width > 0))
    detail::refuse(
        ErrorKind::shape, name,
        detail::formatted("needs images [N,H,W,C], boxes [M,4] and integers [M] for {} x {}",
                          height, width),
        x, box, w);
  if (method != Resize::nearest && method != Resize::linear)
    detail::refuse(ErrorKind::value, name, "takes nearest or linear", x, w);
  const std::int64_t boxes_count = box.dim(0), rows = x.dim(1), columns = x.dim(2),
                     channels = x.dim(3);
  detail::need_size(name, f64, {boxes_count, height, width, channels}, {&x, 1}, w);
  // Places along one side of each box, in pixels: [M, count].
  const auto places = [&](int side, std::int64_t count, std::int64_t pixels) {
    const Tensor from = detail::sliced(box, 1, side, side + 1, 1, w),
                 to = detail::sliced(box, 1, side + 2, side + 3, 1, w);
    const double end = static_cast<double>(pixels - 1);
    if (count == 1) return 0.5 * (from + to) * end;
    const Tensor i = detail::cast(detail::counted(i64, Shape{1, count}, 1, w), wide, w) /
                     static_cast<double>(std::max<std::int64_t>(count - 1, 1));
    return (from * (1.0 - i) + to * i) *
           end;  // exactly the ends, one of which may be the last pixel
  };
  const Tensor y = reshape(places(0, height, rows), {boxes_count, height, 1, 1}),
               z = reshape(places(1, width, columns), {boxes_count, 1, width, 1});
  const auto inside = [](const Tensor& t, std::int64_t n) {
    return (t >= 0.0) & (t <= static_cast<double>(n - 1));
  };
  const Tensor image = reshape(detail::cast(box_images.tensor, i64, w), {boxes_count, 1, 1, 1});
  const Tensor pixels = detail::widened(reshape(x, {x.dim(0) * rows * columns, channels}), w);
  // indices beyond the edges are clamped, and their values not used
  const auto at = [&](const Tensor& r, const Tensor& c) {
    const auto clamped = [&](const Tensor& t, std::int64_t n) {
      return detail::cast(clip(t, 0.0, static_cast<double>(n - 1)), i64, w);
    };
    return take(pixels,
                squeeze((image * rows + clamped(r, rows)) * columns + clamped(c, columns), -1), 0);
  };
  Tensor value;
  if (method == Resize::nearest) {
    value = at(round(y), round(z));
  } else {
    const Tensor top = floor(stop_gradient(y)), left = floor(stop_gradient(z)), down = y - top,
                 right = z - left;
    const Tensor upper = at(top, left) * (1.0 - right) + at(top, left + 1.0) * right;
    const Tensor lower = at(top + 1.0, left) * (1.0 - right) + at(top + 1.0, left + 1.0) * right;
    value = upper * (1.0 - down) + lower * down;
  }
  const Tensor known = (image >= 0) & (image < x.dim(0)) & inside(y, rows) & inside(z, columns);
  return detail::cast(where(known, value, detail::cast(outside.tensor, value.dtype(), w)),
                      x.dtype(), w);
}

}  // namespace vt
