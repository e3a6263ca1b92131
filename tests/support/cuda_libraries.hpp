// The stand-ins for the CUDA toolkit's libraries (cuda_emulator/libraries.cpp), which lie beside
// the emulator's library: found by what is linked with this before a device is asked for.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "cuda_emulator/libraries.hpp"

namespace vt_test {

/// The stand-in's controls.
struct LibraryControls {
  decltype(&::vt_library_fail) fail;
  decltype(&::vt_library_calls) calls;
};

inline const bool libraries_are_named = [] {
  const char* chosen = std::getenv("VT_CUDA_LIBRARY");
  // a real device has real libraries
  if (chosen && std::string(chosen) != VT_EMULATOR_LIBRARY) return false;
  std::string libraries = VT_EMULATOR_LIBRARY;
  libraries.replace(libraries.rfind("emulator"), 8, "libraries");
  for (const char* library : {"VT_CUBLAS_LIBRARY", "VT_CUFFT_LIBRARY", "VT_CUSOLVER_LIBRARY"})
    ::setenv(library, libraries.c_str(), 0);
  ::setenv("VT_EMULATOR_DEVICES", "4", 0);
  return true;
}();

/// Null where the real libraries are used.
inline const LibraryControls* library_controls() {
  static const LibraryControls* const made = []() -> const LibraryControls* {
    void* library = libraries_are_named
                        ? ::dlopen(std::getenv("VT_CUBLAS_LIBRARY"), RTLD_NOW | RTLD_LOCAL)
                        : nullptr;
    void *fail = library ? ::dlsym(library, "vt_library_fail") : nullptr,
         *calls = library ? ::dlsym(library, "vt_library_calls") : nullptr;
    if (!fail || !calls) return nullptr;
    return new LibraryControls{reinterpret_cast<decltype(&::vt_library_fail)>(fail),
                               reinterpret_cast<decltype(&::vt_library_calls)>(calls)};
  }();
  return made;
}

}  // namespace vt_test
