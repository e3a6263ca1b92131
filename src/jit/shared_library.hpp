// Shared libraries loaded at run time.
#pragma once

#include <string>

namespace vt::detail {

/// Is the program linked with -static, so that it can load no library?
bool linked_statically();

/// The library, or null with the reason in `why`: also in a program linked with -static, where the C
/// library's dlopen would crash.
void* open_library(const std::string& path, std::string& why);

}  // namespace vt::detail
