// Convolutions: conv and its relatives, which bring layouts and groups to the axes of conv_general.
#include <vt/detail/message.hpp>

#include "../ir/axis_map.hpp"
#include "support/window_options.hpp"

namespace vt::detail::convolutions {

/// The operands of a convolution with what its options say of them.
struct Setting {
  std::string_view name;
  Tensor given_x, given_filter;  ///< as messages show them
  /// [N, spatial…, C] and [spatial…, I, O], the layout in which they are multiplied
  Tensor x, filter;
  Layout in, kernel, out;
  bool one_image = false;
  CallSite where;

  [[noreturn]] void refuse_shape(const std::string& what) const {
    refuse(ErrorKind::shape, name, what, given_x, given_filter, where);
  }
  std::size_t axes() const { return in.spatial.size(); }
};

/// "NHWC", "HWIO": the letters of the spatial axes, between `before` and `after`.
std::string default_layout(const char* before, int spatial, const char* after) {
  std::string text = before;
  const std::string names = "DHW";
  for (int i = 0; i < spatial; ++i)
    text += spatial <= 3 ? names[3 - spatial + i] : static_cast<char>('0' + i);
  return text += after;
}

Setting prepared(std::string_view name, const Operand& x, const Operand& filter,
                 const ConvOptions& o, int spatial) {
  Setting s{.name = name,
            .given_x = x.tensor,
            .given_filter = filter.tensor,
            .x = x.tensor,
            .filter = filter.tensor,
            .in = {},
            .kernel = {},
            .out = {},
            .where = x.where};
  need(name, s.x, s.where);
  need(name, s.filter, s.where);
  Common c = common_dtype(aval_of(s.x), aval_of(s.filter));
  if (is_bool(c.dtype)) c.dtype = i32;
  if (o.dtype && category(*o.dtype) > category(c.dtype)) c = {*o.dtype, false};
  s.x = cast(s.x, c.dtype, c.weak, s.where);
  s.filter = cast(s.filter, c.dtype, c.weak, s.where);
  if (spatial >= 0 && s.filter.rank() != spatial + 2)
    s.refuse_shape(formatted("needs a filter of {} axes", spatial + 2));
  if (s.filter.rank() < 2) s.refuse_shape("needs a filter of two or more axes");
  const int n = s.filter.rank() - 2;
  if (n > 9) s.refuse_shape("has more than 9 spatial axes");
  const bool image =
      o.layout.empty() ? s.x.rank() == n + 1 : o.layout.find('N') == std::string::npos;
  if (o.layout.empty() && s.x.rank() != n + 1 && s.x.rank() != n + 2)
    s.refuse_shape(
        formatted("needs {} axes, or {} for one image, to go with the filter", n + 2, n + 1));
  s.one_image = image;
  const std::string layout = o.layout.empty() ? default_layout(image ? "" : "N", n, "C") : o.layout;
  s.in = parse_layout(name, layout, 'N', 'C', s.x, s.where);
  if (s.in.spatial.size() != static_cast<std::size_t>(n))
    s.refuse_shape("the layout and the filter differ in their number of spatial axes");
  s.kernel = parse_layout(name, o.filter_layout.empty() ? s.in.letters + "IO" : o.filter_layout,
                          'I', 'O', s.filter, s.where);
  s.out = parse_layout(name, o.out_layout.empty() ? layout : o.out_layout, 'N', 'C', s.x, s.where);
  if (s.kernel.first < 0)
    refuse(ErrorKind::value, name,
           formatted("the layout \"{}\" lacks the letter I{}", o.filter_layout,
                     meant_letter(s.kernel.letters, 'I')),
           s.filter, s.where);
  if ((s.out.first < 0) != image)
    refuse(ErrorKind::value, name,
           formatted("the layouts \"{}\" and \"{}\" differ in their letters", layout, o.out_layout),
           s.x, s.where);
  // The other layouts' spatial axes in the order of x's.
  const auto in_order = [&](Layout& other, const std::string& text) {
    Axes order;
    for (char letter : s.in.letters) {
      const std::size_t at = other.letters.find(letter);
      if (at == std::string::npos)
        refuse(ErrorKind::value, name,
               formatted("the layouts \"{}\" and \"{}\" differ in their letters", layout, text),
               s.x, s.filter, s.where);
      order.push_back(other.spatial[at]);
    }
    other.spatial = order;
  };
  in_order(s.kernel, o.filter_layout);
  in_order(s.out, o.out_layout);
  const auto moved = [&](Tensor& t, Layout& l, Axes axes) {
    axes.append(l.spatial.begin(), l.spatial.end());
    if (&l == &s.kernel) axes.push_back(l.first);
    axes.push_back(l.second);
    t = permuted(t, axes, s.where);
    for (int k = 0; k < n; ++k) l.spatial[k] = t.rank() - n - (&l == &s.kernel ? 2 : 1) + k;
    l.second = t.rank() - 1;
    l.first = &l == &s.kernel ? t.rank() - 2 : image ? -1 : 0;
  };
  moved(s.x, s.in, image ? Axes{} : Axes(s.in.first));
  moved(s.filter, s.kernel, {});
  return s;
}

/// An axis as (parts, rest); axis numbers in `others` move on.
Tensor split_axis(const Tensor& x, int axis, std::int64_t parts, std::initializer_list<Axes*> lists,
                  CallSite where) {
  Shape shape = x.shape();
  shape[axis] /= parts;
  shape.insert(shape.begin() + axis, parts);
  for (Axes* axes : lists)
    for (int& a : *axes) a += a >= axis;
  return reshaped(x, shape, where);
}

/// The numbers of a convolution along its spatial axes.
struct Sliding {
  Shape strides, lhs_dilation, rhs_dilation;
  Edges edges;
};

/// The convolution itself; `groups` of features or of images have been checked to divide what they
/// must.
Tensor emitted(const Setting& s, const Sliding& slide, std::int64_t feature_groups,
               std::int64_t batch_groups, DType dtype) {
  ConvParams p;
  p.strides = slide.strides, p.low = slide.edges.low, p.high = slide.edges.high;
  p.lhs_dilation = slide.lhs_dilation, p.rhs_dilation = slide.rhs_dilation;
  p.lhs_window = s.in.spatial, p.rhs_window = s.kernel.spatial;
  p.dot.lhs_contract = Axes(s.in.second), p.dot.rhs_contract = Axes(s.kernel.first);
  p.dot.dtype = dtype;
  Tensor x = s.x, filter = s.filter;
  const std::int64_t groups = feature_groups * batch_groups;
  if (groups > 1) {
    // Groups are a batch axis of both operands: of x in front of its channels or images, of the
    // filter in front of its output features.
    const int split = feature_groups > 1 ? s.in.second : s.in.first;
    x = split_axis(x, split, groups, {&p.lhs_window, &p.dot.lhs_contract}, s.where);
    if (feature_groups > 1) p.dot.lhs_contract = Axes(split + 1);
    p.dot.lhs_batch = Axes(split);
    filter =
        split_axis(filter, s.kernel.second, groups, {&p.rhs_window, &p.dot.rhs_contract}, s.where);
    p.dot.rhs_batch = Axes(s.kernel.second);
  }
  const Tensor y = emit(Op::conv_general, make_params(std::move(p)), {x, filter}, s.where);
  // y has axes [groups] [images] spatial… features; the groups belong in front of the features.
  const int group = groups > 1 ? 1 : 0, image = s.one_image ? 0 : 1;
  const auto spatial = static_cast<int>(s.axes());
  Axes order;
  Shape shape;
  for (int axis = 0; axis < s.x.rank(); ++axis) {
    if (axis == s.out.second) {
      if (group) order.push_back(0);
      order.push_back(group + image + spatial);
      shape.push_back(y.shape().back() * groups);
      continue;
    }
    int from = group;
    for (int k = 0; k < spatial; ++k)
      if (s.out.spatial[k] == axis) from = group + image + k;
    order.push_back(from);
    shape.push_back(y.dim(from));
  }
  return reshaped(permuted(y, order, s.where), shape, s.where);
}

Sliding sliding(const Setting& s, const ConvOptions& o) {
  const std::size_t n = s.axes();
  Sliding slide;
  slide.strides = numbers_per_axis(s.name, "strides", o.strides, n, 1, s.x, s.where);
  slide.lhs_dilation = numbers_per_axis(s.name, "lhs_dilation", o.lhs_dilation, n, 1, s.x, s.where);
  slide.rhs_dilation = numbers_per_axis(s.name, "rhs_dilation", o.rhs_dilation, n, 1, s.x, s.where);
  Shape extents, windows;
  for (std::size_t k = 0; k < n; ++k) {
    extents.push_back(dilated(s.x.dim(s.in.spatial[k]), slide.lhs_dilation[k]));
    windows.push_back(dilated(s.filter.dim(s.kernel.spatial[k]), slide.rhs_dilation[k]));
  }
  slide.edges = edges_of(s.name, o.padding, extents, windows, slide.strides, s.x, s.where);
  return slide;
}

Tensor convolve(std::string_view name, const Operand& x, const Operand& filter,
                const ConvOptions& o, int spatial) {
  const UserLine line(x.where);
  const Setting s = prepared(name, x, filter, o, spatial);
  const std::int64_t g = o.feature_group_count, b = o.batch_group_count;
  if (g < 1 || b < 1)
    refuse(ErrorKind::value, name, formatted("groups must be at least 1, not {} and {}", g, b), s.x,
           s.filter, s.where);
  if (g > 1 && b > 1)
    refuse(ErrorKind::value, name, "takes groups of features or of images, not both", s.x, s.filter,
           s.where);
  const std::int64_t channels = s.x.dim(s.in.second), features = s.filter.dim(s.kernel.second);
  if (channels != s.filter.dim(s.kernel.first) * g)
    s.refuse_shape(g == 1 ? formatted("x has {} channels, the filter {}", channels,
                                      s.filter.dim(s.kernel.first))
                          : formatted("x has {} channels, the filter {} in each of {} groups",
                                      channels, s.filter.dim(s.kernel.first), g));
  if (features % (g * b) != 0)
    s.refuse_shape(formatted("{} groups do not divide the {} output features", g * b, features));
  if (b > 1 && (s.one_image || s.x.dim(s.in.first) % b != 0))
    s.refuse_shape(formatted("{} groups do not divide the images", b));
  return emitted(s, sliding(s, o), g, b, o.dtype.value_or(s.x.dtype()));
}

Tensor depthwise(std::string_view name, const Operand& x, const Operand& filter,
                 const ConvOptions& o, int spatial) {
  const UserLine line(x.where);
  if (o.feature_group_count != 1 || o.batch_group_count != 1)
    refuse(ErrorKind::value, name, "has a group for each channel and takes no others", x.tensor,
           filter.tensor, x.where);
  Setting s = prepared(name, x, filter, o, spatial);
  const std::int64_t channels = s.x.dim(s.in.second), given = s.filter.dim(s.kernel.first),
                     multiplier = s.filter.dim(s.kernel.second);
  if (channels != given)
    s.refuse_shape(formatted("x has {} channels, the filter {}", channels, given));
  // [spatial…, C, m] → [spatial…, 1, C · m]
  Shape shape = picked(s.filter.shape(), s.kernel.spatial);
  shape.push_back(1);
  shape.push_back(channels * multiplier);
  const Sliding slide = sliding(s, o);
  s.filter = reshaped(s.filter, shape, s.where);
  return emitted(s, slide, std::max<std::int64_t>(channels, 1), 1, o.dtype.value_or(s.x.dtype()));
}

}  // namespace vt::detail::convolutions

namespace vt {

namespace cv = detail::convolutions;

Tensor conv(Operand x, Operand filter, const ConvOptions& options) {
  return cv::convolve("conv", x, filter, options, -1);
}
Tensor conv1d(Operand x, Operand filter, const ConvOptions& options) {
  return cv::convolve("conv1d", x, filter, options, 1);
}
Tensor conv2d(Operand x, Operand filter, const ConvOptions& options) {
  return cv::convolve("conv2d", x, filter, options, 2);
}
Tensor conv3d(Operand x, Operand filter, const ConvOptions& options) {
  return cv::convolve("conv3d", x, filter, options, 3);
}
Tensor convolve(Operand a, Operand v, ConvolveMode mode) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  for (const Tensor& t : {a.tensor, v.tensor}) {
    detail::need("convolve", t, w);
    if (t.rank() != 1 || t.size() == 0)
      detail::refuse(ErrorKind::shape, "convolve", "needs vectors with at least one element",
                     a.tensor, v.tensor, w);
  }
  const bool in_order = a.tensor.size() >= v.tensor.size();
  const Tensor &longer = in_order ? a.tensor : v.tensor, &shorter = in_order ? v.tensor : a.tensor;
  const std::int64_t n = longer.size(), m = shorter.size();
  const std::int64_t low = mode == ConvolveMode::full   ? m - 1
                           : mode == ConvolveMode::same ? (m - 1) - (m - 1) / 2
                                                        : 0;
  const std::int64_t high = mode == ConvolveMode::full   ? m - 1
                            : mode == ConvolveMode::same ? (m - 1) / 2
                                                         : 0;
  return reshape(conv1d(Operand(reshape(longer, {1, n, 1}), w.file, w.line),
                        reshape(flip(shorter), {m, 1, 1}), {.padding = {{low, high}}}),
                 {-1});
}
Tensor depthwise_conv(Operand x, Operand filter, const ConvOptions& options) {
  return cv::depthwise("depthwise_conv", x, filter, options, -1);
}
Tensor depthwise_conv2d(Operand x, Operand filter, const ConvOptions& options) {
  return cv::depthwise("depthwise_conv2d", x, filter, options, 2);
}

Tensor conv_transpose(Operand x, Operand filter, const ConvOptions& options,
                      bool transpose_kernel) {
  constexpr const char* name = "conv_transpose";
  const CallSite where = x.where;
  const detail::UserLine line(where);
  if (!options.lhs_dilation.empty() || options.feature_group_count != 1 ||
      options.batch_group_count != 1)
    detail::refuse(ErrorKind::value, name, "takes neither lhs_dilation nor groups", x.tensor,
                   filter.tensor, where);
  cv::Setting s = cv::prepared(name, x, filter, options, -1);
  if (transpose_kernel) {
    Axes flipped = s.kernel.spatial;
    detail::insertion_sort(flipped);
    if (!flipped.empty()) s.filter = rev(s.filter, flipped);
    std::swap(s.kernel.first, s.kernel.second);
  }
  if (s.x.dim(s.in.second) != s.filter.dim(s.kernel.first))
    s.refuse_shape(detail::formatted("x has {} channels, the filter {}", s.x.dim(s.in.second),
                                     s.filter.dim(s.kernel.first)));
  ConvOptions plain = options;
  const bool scheme = !options.padding.scheme().empty();
  if (scheme) plain.padding = "VALID";
  cv::Sliding slide = cv::sliding(s, plain);
  const Shape strides = slide.strides;
  if (scheme) {
    const bool valid = options.padding.scheme() == "VALID";
    if (!valid && options.padding.scheme() != "SAME") {
      constexpr std::string_view known[] = {"VALID", "SAME"};
      detail::refuse(ErrorKind::value, name,
                     detail::formatted("padding must be \"VALID\", \"SAME\" or pairs, not \"{}\"{}",
                                       options.padding.scheme(),
                                       detail::did_you_mean(options.padding.scheme(), known)),
                     s.x, where);
    }
    for (std::size_t k = 0; k < s.axes(); ++k) {
      const std::int64_t window = detail::dilated(s.filter.dim(s.kernel.spatial[k]),
                                                  slide.rhs_dilation[k]),
                         stride = strides[k];
      const std::int64_t all =
          window + stride - 2 + (valid ? std::max<std::int64_t>(window - stride, 0) : 0);
      slide.edges.low[k] = valid || stride > window - 1 ? window - 1 : (all + 1) / 2;
      slide.edges.high[k] = all - slide.edges.low[k];
    }
  }
  slide.lhs_dilation = strides;
  slide.strides = Shape::filled(strides.size(), 1);
  return cv::emitted(s, slide, 1, 1, options.dtype.value_or(s.x.dtype()));
}

}  // namespace vt
