// What the stand-ins for the toolkit's libraries share: failures that were asked for, and the
// emulated driver.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "src/jit/cuda/driver/cuda_library.hpp"

namespace vt_library {

/// Counts the call. The status that it was asked to fail with; 0: none.
int entered(const char* function);

template <class F>
F found(const char* variable, const char* name) {
  const char* path = std::getenv(variable);
  void* library = path ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  return library ? reinterpret_cast<F>(::dlsym(library, name)) : nullptr;
}

}  // namespace vt_library

#define VT_DRIVER(name) \
  vt_library::found<decltype(vt::detail::cuda::Driver::name)>("VT_CUDA_LIBRARY", #name)
