// Pieces of HTML pages: one file without scripts, also well-formed XML.
#pragma once

#include <string>
#include <string_view>

#include <vt/error.hpp>

namespace vt::detail::html {

extern const char style[];

std::string escaped(std::string_view text);
std::string time_text(double seconds);  ///< "1.5 µs"
std::string percent(double share);      ///< "15 %"
/// A bar that is filled so far; `kind` is its class.
std::string bar(const char* kind, double share);
/// The line as it stands in the user's file, if that can be read.
std::string source_of(CallSite);
std::string tile(const std::string& value, const std::string& meaning);

}  // namespace vt::detail::html
