// Warnings that are kept for vt::warnings() instead of being printed.
#pragma once

#include <string>

namespace vt::detail {

/// Remembers a line for vt::warnings(); the same line is kept once.
void warn_once(const std::string& line);
/// Where this thread's processor mode does it.
void warn_of_flushed_subnormals();

}  // namespace vt::detail
