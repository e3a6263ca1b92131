// Finds libLLVM with dlopen, checks its version against the headers, and fills the function table.
#include "llvm_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

#include "../../../trace/base/shared_library.hpp"
#include "../../services/background.hpp"

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

namespace llvm_loading {

struct Loaded {
  Llvm table;
  std::string reason;  // empty: the table is good
};

std::string version_text(unsigned major) { return std::to_string(major); }

// What LLVM calls before it would end the process. It is compiled without exceptions, so what it
// holds is lost to it, and what belongs to the compilation leaks; but the program goes on. On
// threads of another user of the library all is as usual.
void give_up(const char* reason) {
  if (CompilerUse::on_this_thread()) {
    CompilerUse::break_off();
    throw Error(ErrorKind::backend, std::string("vt: LLVM gave up: ") + reason);
  }
  std::fprintf(stderr, "LLVM ERROR: %s\n", reason);
}
void out_of_memory(void*, const char* reason, bool) {
  if (CompilerUse::on_this_thread()) {
    CompilerUse::break_off();
    throw std::bad_alloc();
  }
  std::fprintf(stderr, "LLVM ERROR: out of memory\n%s\n", reason);
  std::abort();
}
void install_handlers(const Llvm& L, void* handle) {
  L.InstallFatalErrorHandler(give_up);
  // LLVM's C interface lacks this one.
  constexpr const char* name = "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_";
  using Install = void (*)(void (*)(void*, const char*, bool), void*);
  if (void* install = ::dlsym(handle, name))
    reinterpret_cast<Install>(install)(out_of_memory, nullptr);
}

// RTLD_LOCAL keeps our libLLVM's symbols away from another copy in the process (graphics drivers
// bring one). No RTLD_DEEPBIND: sanitizers refuse it, and distributions version LLVM's symbols
// anyway.
std::string fill(const std::string& path, Llvm& table) {
  std::string why;
  void* handle = nullptr;
  {
    // The end of the process then comes by here before it takes apart what the library has made.
    const CompilerUse until_loaded;
    handle = open_library(path, why);
  }
  if (!handle) return why;
  constexpr std::size_t count = std::size(llvm_names::all);
  void* pointers[count];
  // The version first: an old library also lacks functions, and "wrong version" is the useful
  // message.
  if (void* get_version = ::dlsym(handle, "LLVMGetVersion")) {
    unsigned major = 0, minor = 0, patch = 0;
    reinterpret_cast<decltype(&::LLVMGetVersion)>(get_version)(&major, &minor, &patch);
    if (major != LLVM_VERSION_MAJOR) {
      ::dlclose(handle);
      return path + " is LLVM " + version_text(major) +
             ", but vt was built with the headers of LLVM " + version_text(LLVM_VERSION_MAJOR);
    }
  } else {
    ::dlclose(handle);
    return path + " has no LLVMGetVersion: not a libLLVM of version 18 to 20";
  }
  for (std::size_t i = 0; i < count; ++i) {
    pointers[i] = ::dlsym(handle, llvm_names::all[i]);
    if (!pointers[i]) {
      ::dlclose(handle);
      return path + " lacks the function " + llvm_names::all[i];
    }
  }
  std::memcpy(&table, pointers, sizeof(table));
  install_handlers(table, handle);
  return {};
}

Vec<std::string> candidates() {
  // the user's word is final
  if (const char* chosen = std::getenv("VT_LLVM_LIBRARY"); chosen && *chosen) return {chosen};
  const std::string major = version_text(LLVM_VERSION_MAJOR);
  return {"libLLVM.so." + major + ".1",
          "libLLVM-" + major + ".so",
          "libLLVM-" + major + ".so.1",
          "/usr/lib/llvm-" + major + "/lib/libLLVM.so.1",
          "/usr/lib/llvm-" + major + "/lib/libLLVM.so",
          "/usr/lib/llvm" + major + "/lib/libLLVM.so",
          "/usr/local/lib/libLLVM.so",
          "libLLVM.dylib",
          "/opt/homebrew/opt/llvm@" + major + "/lib/libLLVM.dylib"};
}

// Leaked on purpose: compiled code and LLVM itself must outlive every static destructor.
const Loaded& loaded() {
  static const Loaded* const result = [] {
    const CompilerUse use;
    auto* made = new Loaded;
    std::string wrong;
    const Vec<std::string> paths = candidates();
    for (const std::string& path : paths) {
      std::string why = fill(path, made->table);
      if (why.empty()) {
        // Registers this machine's target only; safe beside another user of the same library.
        made->table.InitializeTargetInfo();
        made->table.InitializeTarget();
        made->table.InitializeTargetMC();
        made->table.InitializeAsmPrinter();
        return made;
      }
      // A library that exists but does not fit says more than the last path that does not exist.
      if (wrong.empty() || why.find("cannot open shared object") == std::string::npos)
        wrong = std::move(why);
    }
    if (linked_statically()) {
      made->reason = wrong;
      return made;
    }
    made->reason = "LLVM " + version_text(LLVM_VERSION_MAJOR) + " is not usable: " + wrong +
                   " (set VT_LLVM_LIBRARY to the path of libLLVM)";
    return made;
  }();
  return *result;
}

}  // namespace llvm_loading

const std::string& llvm_unavailable_reason() { return llvm_loading::loaded().reason; }

std::string llvm_missing_reason() {
  const char* chosen = std::getenv("VT_LLVM_LIBRARY");
  if ((!chosen || !*chosen) && !linked_statically()) {
    const std::string major = llvm_loading::version_text(LLVM_VERSION_MAJOR);
    const std::string soname = "libLLVM.so." + major + ".1", older = "libLLVM-" + major + ".so";
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/",
                               "/usr/lib64/", "/usr/lib/", "/usr/local/lib/"})
      for (const std::string& name : {soname, older})
        if (::access((folder + name).c_str(), R_OK) == 0) return {};
    if (::access(("/usr/lib/llvm-" + major + "/lib/libLLVM.so.1").c_str(), R_OK) == 0) return {};
  }
  return llvm_unavailable_reason();
}

const Llvm& llvm() {
  const llvm_loading::Loaded& loaded = llvm_loading::loaded();
  if (!loaded.reason.empty()) throw Error(ErrorKind::backend, "vt: " + loaded.reason);
  return loaded.table;
}

std::string llvm_try_library(const std::string& path) {
  Llvm table;
  return llvm_loading::fill(path, table);
}

#else

const std::string& llvm_unavailable_reason() {
  static const std::string reason =
      "built without LLVM headers (llvm-c/Core.h was not on the include path)";
  return reason;
}

std::string llvm_missing_reason() { return llvm_unavailable_reason(); }

std::string llvm_try_library(const std::string&) { return llvm_unavailable_reason(); }

#endif

}  // namespace vt::detail::cpu
