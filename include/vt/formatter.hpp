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

namespace vt {
struct LaneStats;
struct Stats;
}  // namespace vt

namespace vt::detail {
struct Refused;  // vt/tree.hpp
std::string text_of(const Stats&);
std::string text_of(const LaneStats&);
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

/// A specification is that of each element: {:.3f}.
template <>
struct fmt::formatter<vt::Tensor> {
  constexpr auto parse(fmt::format_parse_context& context) {
    begin_ = end_ = context.begin();
    while (end_ != context.end() && *end_ != '}') ++end_;
    return end_;
  }
  template <class Context>
  auto format(const vt::Tensor& value, Context& context) const {
    auto out = context.out();
    for (const char c : vt::detail::text_of(value, std::string_view(begin_, end_))) *out++ = c;
    return out;
  }

 private:
  const char *begin_ = nullptr, *end_ = nullptr;
};
template <>
struct fmt::formatter<vt::Device> : vt::detail::TextFormatter<vt::Device> {};
template <>
struct fmt::formatter<vt::Stats> : vt::detail::TextFormatter<vt::Stats> {};
template <>
struct fmt::formatter<vt::LaneStats> : vt::detail::TextFormatter<vt::LaneStats> {};
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
