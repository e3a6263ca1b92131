// Shared libraries loaded at run time.
#pragma once

#include <string>

namespace vt::detail {

/// Is the program linked with -static, so that it can load no library?
bool linked_statically();

/// The library, or null with the reason in `why`: also in a program linked with -static, where the
/// C library's dlopen would crash. `global`: libraries that it loads itself find its symbols.
void* open_library(const std::string& path, std::string& why, bool global = false);

/// The library that vt is in is not unloaded any more: its threads do not end, and each thread of
/// the program ends in its code. For a plugin that is closed while they are there.
void stay_loaded();

}  // namespace vt::detail
