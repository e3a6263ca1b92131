// Pieces of text that explain and its page share.
#pragma once

#include <string>

#include <vt/error.hpp>

namespace vt::detail::report_text {

/// Three digits and a unit: the last of `units`, each `step` times the one before, that is not
/// above x.
std::string quantity(double x, double step, const char* const* units, int count);
std::string bytes_text(double x);                    ///< "1.5 KiB"
std::string count_text(double x, const char* unit);  ///< "1.5 kop"
std::string place_of(CallSite);                      ///< "model.cpp:12"

}  // namespace vt::detail::report_text
