// The one way vt includes fmt: header-only, so that prototypes link nothing; formatters for vt's printable types.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>

#include <vt/tensor.hpp>

namespace vt::detail {
/// Formats through the type's own text; takes no format specification.
template <class T>
struct TextFormatter : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    const std::string text = text_of(value);
    return fmt::formatter<fmt::string_view>::format(fmt::string_view(text), context);
  }
};
}  // namespace vt::detail

template <>
struct fmt::formatter<vt::Tensor> : vt::detail::TextFormatter<vt::Tensor> {};
template <>
struct fmt::formatter<vt::Shape> : vt::detail::TextFormatter<vt::Shape> {};
template <>
struct fmt::formatter<vt::Axes> : vt::detail::TextFormatter<vt::Axes> {};
template <>
struct fmt::formatter<vt::Graph> : vt::detail::TextFormatter<vt::Graph> {};
template <>
struct fmt::formatter<vt::DType> : vt::detail::TextFormatter<vt::DType> {};
