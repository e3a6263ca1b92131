// The options of convolutions and pools in one form: numbers per axis, padding, layouts.
#pragma once

#include <string>
#include <string_view>

#include <vt/conv.hpp>

#include "operands.hpp"

namespace vt::detail {

/// One number for each of `count` axes: `given`, one number repeated, or `otherwise`. Throws if
/// there is another number of them or one is less than 1.
Shape numbers_per_axis(std::string_view name, const char* what, const Shape& given,
                       std::size_t count, std::int64_t otherwise, const Tensor& x, CallSite where);

/// Low and high padding along the axes of a window.
struct Edges {
  Shape low, high;
};
/// `extents`, `windows`: with their dilations.
Edges edges_of(std::string_view name, const Padding& padding, const Shape& extents,
               const Shape& windows, const Shape& strides, const Tensor& x, CallSite where);

/// Where a layout has its letters: the axis of `first` (N or I), −1 if that may be missing and is,
/// of `second`, and the others in order.
struct Layout {
  int first = -1, second = -1;
  Axes spatial;
  std::string letters;  ///< of the spatial axes
};
/// ` (did you mean 'C'?)` where letters have `wanted` in the other case, or nothing.
std::string meant_letter(std::string_view letters, char wanted);
/// Throws unless the layout has a letter for each axis of x, none twice.
Layout parse_layout(std::string_view name, std::string_view layout, char first, char second,
                    const Tensor& x, CallSite where);

}  // namespace vt::detail
