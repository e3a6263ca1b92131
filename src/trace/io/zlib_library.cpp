// Finds zlib with dlopen and fills the table of its functions.
#include "zlib_library.hpp"

#include <cstdlib>

#include <dlfcn.h>

#include <vt/detail/small_vec.hpp>

#include "../base/shared_library.hpp"

namespace vt::detail {

namespace zlib_loading {

std::string fill(const std::string& path, Zlib& table) {
  std::string why;
  void* const handle = open_library(path, why);
  if (!handle) return why;
#define VT_ZLIB_LOOK_UP(name, result, parameters)                              \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(handle, #name)); \
  if (!table.name && why.empty()) why = path + " lacks the function " #name;
  VT_ZLIB_FUNCTIONS(VT_ZLIB_LOOK_UP)
#undef VT_ZLIB_LOOK_UP
  if (!why.empty()) ::dlclose(handle);
  return why;
}

struct Loaded {
  Zlib table;
  std::string reason;  // empty: the table is good
};

Loaded load() {
  Loaded made;
  const char* chosen = std::getenv("VT_ZLIB_LIBRARY");
  if (chosen && std::string(chosen) == "none") {
    made.reason = "VT_ZLIB_LIBRARY is none";
    return made;
  }
  Vec<std::string> names{"libz.so.1", "libz.so", "libz.dylib"};
  if (chosen && *chosen) names = {chosen};
  for (const std::string& name : names) {
    const std::string why = fill(name, made.table);
    if (why.empty()) {
      made.reason.clear();
      return made;
    }
    if (made.reason.empty()) made.reason = why;
  }
  return made;
}

}  // namespace zlib_loading

const Zlib* zlib(std::string& why) {
  // never destroyed: the end of the program may still read files
  static const auto* const loaded = new zlib_loading::Loaded(zlib_loading::load());
  why = loaded->reason;
  return why.empty() ? &loaded->table : nullptr;
}

std::string zlib_try_library(const std::string& path) {
  Zlib table;
  return zlib_loading::fill(path, table);
}

}  // namespace vt::detail
