// Shared libraries loaded at run time.
#include "shared_library.hpp"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

namespace vt::detail {

// A dynamic linker is at work where any object names one: not in a static program, position-independent
// or not.
bool linked_statically() {
#ifdef __linux__
  const auto names_linker = [](dl_phdr_info* object, std::size_t, void*) {
    for (int i = 0; i < object->dlpi_phnum; ++i)
      if (object->dlpi_phdr[i].p_type == PT_INTERP) return 1;
    return 0;
  };
  static const bool is_static = ::dl_iterate_phdr(names_linker, nullptr) == 0;
  return is_static;
#else
  return false;
#endif
}

void* open_library(const std::string& path, std::string& why) {
  if (linked_statically()) {
    why = "this program is linked with -static, where no library can be loaded";
    return nullptr;
  }
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char* said = ::dlerror();
  why = said ? said : path + ": cannot be loaded";
  return nullptr;
}

}  // namespace vt::detail
