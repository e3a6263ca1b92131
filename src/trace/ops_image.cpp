// Functions on colour images: contrast, saturation, hue, and the way to HSV and back.
#include "promote.hpp"

namespace vt {

namespace detail::images {

/// The operand as floats; throws unless its last axis holds red, green and blue.
inline Tensor checked(std::string_view name, const Operand& x) {
  need(name, x.tensor, x.where);
  if (x.tensor.rank() < 1 || x.tensor.dim(-1) != 3) refuse(ErrorKind::shape, name, "needs images whose last axis has 3 channels", x.tensor, x.where);
  return to_float(x.tensor, x.where);
}
inline Tensor scalar_factor(std::string_view name, const Operand& factor, const Tensor& x, Where where) {
  need(name, factor.tensor, where);
  if (factor.tensor.rank() != 0) refuse(ErrorKind::shape, name, "the amount must be a scalar", x, factor.tensor, where);
  return cast(factor.tensor, x.dtype(), where);
}
inline Tensor channel(const Tensor& x, int i, Where where) {
  Shape rest = x.shape();
  rest.pop_back();
  return reshaped(sliced(x, x.rank() - 1, i, i + 1, 1, where), rest, where);
}

struct Hsv {
  Tensor hue, saturation, value;
};
/// Hue in circles from red. Grey has hue 0, black saturation 0; the quotients there get a harmless divisor.
inline Hsv to_hsv(const Tensor& x, Where where) {
  const Tensor r = channel(x, 0, where), g = channel(x, 1, where), b = channel(x, 2, where);
  const Tensor most = maximum(maximum(r, g), b), least = minimum(minimum(r, g), b), range = most - least;
  const Tensor grey = range == 0, divisor = vt::where(grey, 1.0, range);
  const Tensor sector = vt::where(most == r, (g - b) / divisor, vt::where(most == g, (b - r) / divisor + 2.0, (r - g) / divisor + 4.0));
  Hsv hsv;
  hsv.hue = vt::where(grey, 0.0, mod(sector / 6.0, 1.0));
  hsv.saturation = vt::where(most > 0, range / vt::where(most > 0, most, 1.0), 0.0);
  hsv.value = most;
  return hsv;
}
inline Tensor to_rgb(const Hsv& hsv, Where where) {
  const Tensor chroma = hsv.value * hsv.saturation;
  auto component = [&](double offset) {
    const Tensor k = mod(hsv.hue * 6.0 + offset, 6.0);
    return hsv.value - chroma * maximum(minimum(minimum(k, 4.0 - k), 1.0), 0.0);
  };
  return stack({component(5.0), component(3.0), component(1.0)}, -1, where);
}

}  // namespace detail::images

Tensor adjust_contrast(Operand images, Operand factor) {
  const Where w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_contrast", images);
  if (x.rank() < 3) detail::refuse(ErrorKind::shape, "adjust_contrast", "needs images [..., H, W, 3]", x, w);
  const Tensor middle = mean(x, {-3, -2}, true);
  return (x - middle) * detail::images::scalar_factor("adjust_contrast", factor, x, w) + middle;
}
Tensor adjust_saturation(Operand images, Operand factor) {
  const Where w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_saturation", images);
  detail::images::Hsv hsv = detail::images::to_hsv(x, w);
  hsv.saturation = clip(hsv.saturation * detail::images::scalar_factor("adjust_saturation", factor, x, w), 0.0, 1.0);
  return detail::images::to_rgb(hsv, w);
}
Tensor adjust_hue(Operand images, Operand delta) {
  const Where w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("adjust_hue", images);
  detail::images::Hsv hsv = detail::images::to_hsv(x, w);
  hsv.hue = hsv.hue + detail::images::scalar_factor("adjust_hue", delta, x, w);
  return detail::images::to_rgb(hsv, w);
}
Tensor rgb_to_hsv(Operand images) {
  const Where w = images.where;
  const detail::UserLine line(w);
  const detail::images::Hsv hsv = detail::images::to_hsv(detail::images::checked("rgb_to_hsv", images), w);
  return stack({hsv.hue, hsv.saturation, hsv.value}, -1, w);
}
Tensor hsv_to_rgb(Operand images) {
  const Where w = images.where;
  const detail::UserLine line(w);
  const Tensor x = detail::images::checked("hsv_to_rgb", images);
  return detail::images::to_rgb({detail::images::channel(x, 0, w), detail::images::channel(x, 1, w), detail::images::channel(x, 2, w)}, w);
}

}  // namespace vt
