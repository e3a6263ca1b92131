// fmt formatters for vt's printable types; needs only fmt's small header, so that including vt
// stays cheap.
#pragma once

#include <string>

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

#include <vt/tensor.hpp>

namespace vt::detail {
struct Refused;  // vt/tree.hpp
/// Formats through the type's own text; takes no format specification.
template <class T>
struct TextFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const T& value, Context& context) const {
    auto out = context.out();
    for (const char c : text_of(value)) *out++ = c;
    return out;
  }
};
}  // namespace vt::detail

template <>
struct fmt::formatter<vt::Tensor> : vt::detail::TextFormatter<vt::Tensor> {};
template <>
struct fmt::formatter<vt::detail::Refused> : vt::detail::TextFormatter<vt::Tensor> {};
template <>
struct fmt::formatter<vt::Shape> : vt::detail::TextFormatter<vt::Shape> {};
template <>
struct fmt::formatter<vt::Axes> : vt::detail::TextFormatter<vt::Axes> {};
template <>
struct fmt::formatter<vt::Graph> : vt::detail::TextFormatter<vt::Graph> {};
template <>
struct fmt::formatter<vt::DType> : vt::detail::TextFormatter<vt::DType> {};
