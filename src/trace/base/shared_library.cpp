// Shared libraries loaded at run time.
#include "shared_library.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>
#ifdef __linux__
#include <link.h>
#include <sys/stat.h>
#endif

namespace vt::detail {

// A dynamic linker is at work where any object names one: not in a static program,
// position-independent or not.
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

namespace shared_library {

// The files that dlopen may take for `name`: a path itself; a bare name in the folders that come
// before all others, and in the usual ones.
std::string found(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::string folders;
  if (const char* own = std::getenv("LD_LIBRARY_PATH")) folders = own;
  folders +=
      ":/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:/usr/local/lib";
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string path = folders.substr(at, end - at) + "/" + name;
    if (path.size() > name.size() + 1 && ::access(path.c_str(), R_OK) == 0) return path;
    at = end + 1;
  }
  return {};
}

// A file that ends before its segments do (a download that broke off, a full disk) is loaded all
// the same, and ends the process where a page is touched that is not there.
bool is_cut_off(const std::string& name, std::string& why) {
#ifdef __linux__
  const std::string path = found(name);
  std::FILE* file = path.empty() ? nullptr : std::fopen(path.c_str(), "rb");
  if (!file) return false;  // dlopen says why
  struct Close {
    std::FILE* file;
    ~Close() { std::fclose(file); }
  } const close{file};
  struct stat status{};
  ElfW(Ehdr) header;
  if (::fstat(::fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (std::fread(&header, sizeof header, 1, file) != 1 ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  const bool of_this_machine =
      header.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
      header.e_phentsize == sizeof(ElfW(Phdr));
  if (!of_this_machine) return false;  // dlopen passes over it, or says so
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto cut = [&] {
    why = path + ": the file is cut off after " + std::to_string(size) + " bytes";
    return true;
  };
  const auto ends_within = [&](std::uint64_t from, std::uint64_t length) {
    return from <= size && length <= size - from;
  };
  // The table of sections, where there is one, is the last thing in a file as linkers write it.
  if (!ends_within(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize))
    return cut();
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (std::fseek(file,
                   static_cast<long>(header.e_phoff + static_cast<std::uint64_t>(i) * sizeof part),
                   SEEK_SET) != 0 ||
        std::fread(&part, sizeof part, 1, file) != 1)
      return cut();
    if (part.p_type == PT_LOAD && !ends_within(part.p_offset, part.p_filesz)) return cut();
  }
#else
  static_cast<void>(name), static_cast<void>(why);
#endif
  return false;
}

}  // namespace shared_library

void* open_library(const std::string& path, std::string& why, bool global) {
  if (linked_statically()) {
    why = "this program is linked with -static, where no library can be loaded";
    return nullptr;
  }
  if (shared_library::is_cut_off(path, why)) return nullptr;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle) return handle;
  const char* said = ::dlerror();
  why = said ? said : path + ": cannot be loaded";
  return nullptr;
}

void stay_loaded() {
#ifdef __GLIBC__
  if (linked_statically()) return;
  Dl_info info;
  void* own = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(&stay_loaded), &info, &own, RTLD_DL_LINKMAP) == 0) return;
  const char* const name = static_cast<link_map*>(own)->l_name;
  if (!*name) return;  // the program itself
  static_cast<void>(::dlopen(name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
#endif
}

}  // namespace vt::detail
