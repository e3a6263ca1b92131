// Compiles code with another libLLVM than vt's own in the same process: loaded before or after that
// one, with its symbols open to all or not. Ends with 77 where the system has no other.
#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace {

#ifdef __aarch64__
#define TARGET "AArch64"
#else
#define TARGET "X86"
#endif

bool expect(bool holds, const char* what) {
  if (!holds) std::printf("  wrong: %s\n", what);
  return holds;
}

// The function `name` of LLVM's C API: R(arguments…), where pointers are to what only LLVM knows.
template <class R = void*, class... A>
R call(void* library, const char* name, A... arguments) {
  void* const f = ::dlsym(library, name);
  if (!f) std::printf("  %s is missing\n", name), std::_Exit(1);
  return reinterpret_cast<R (*)(A...)>(f)(arguments...);
}

bool compiles_a_sum(void* library) {
  for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"})
    call<void>(library, ("LLVMInitialize" TARGET + std::string(part)).c_str());
  const char text[] = "define i32 @sum(i32 %a, i32 %b) {\n  %s = add i32 %a, %b\n  ret i32 %s\n}\n";
  void* const safe_context = call(library, "LLVMOrcCreateNewThreadSafeContext");
  void* const context = call(library, "LLVMOrcThreadSafeContextGetContext", safe_context);
  void* const buffer =
      call(library, "LLVMCreateMemoryBufferWithMemoryRangeCopy", text, std::strlen(text), "sum");
  void *module = nullptr, *jit = nullptr;
  char* message = nullptr;
  if (call<int>(library, "LLVMParseIRInContext", context, buffer, &module, &message) != 0)
    return expect(false, message);
  void* const safe_module = call(library, "LLVMOrcCreateNewThreadSafeModule", module, safe_context);
  std::uint64_t address = 0;
  if (call(library, "LLVMOrcCreateLLJIT", &jit, static_cast<void*>(nullptr)) ||
      call(library, "LLVMOrcLLJITAddLLVMIRModule", jit,
           call(library, "LLVMOrcLLJITGetMainJITDylib", jit), safe_module) ||
      call(library, "LLVMOrcLLJITLookup", jit, &address, "sum"))
    return expect(false, "the other LLVM's JIT");
  const bool right = reinterpret_cast<int (*)(int, int)>(address)(40, 2) == 42;
  call(library, "LLVMOrcDisposeLLJIT", jit);
  call<void>(library, "LLVMOrcDisposeThreadSafeContext", safe_context);
  return expect(right, "the other LLVM's sum");
}

// `times`: others in each call, as each needs code of its own.
bool vt_compiles(int times) {
  const auto before = vt::stats().kernels_compiled;
  const auto f = vt::jit([times](vt::Tensor x) {
    for (int i = 0; i < times; ++i) x = vt::sin(x) + x;
    return vt::sum(x);
  });
  const double sum = f(vt::arange(100).astype(vt::f64)).item<double>();
  double wanted = 0;
  for (int number = 0; number < 100; ++number) {
    double x = number;
    for (int i = 0; i < times; ++i) x += std::sin(x);
    wanted += x;
  }
  return expect(std::abs(sum - wanted) < 1e-9, "vt's sum") &
         expect(vt::stats().kernels_compiled > before, "vt has compiled nothing");
}

int libraries() {
  int count = 0;
  const auto is_llvm = [](dl_phdr_info* object, std::size_t, void* found) {
    *static_cast<int*>(found) += std::strstr(object->dlpi_name, "libLLVM") != nullptr;
    return 0;
  };
  ::dl_iterate_phdr(is_llvm, &count);
  return count;
}

enum Outcome { right, wrong, not_there };

Outcome with(const std::string& name, bool first, int flags) {
  if (!first && !vt_compiles(1)) return wrong;
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | flags);
  if (!library) return not_there;
  if (!compiles_a_sum(library) || !vt_compiles(2) || !compiles_a_sum(library) || !vt_compiles(3))
    return wrong;
  return libraries() == 2 ? right : not_there;  // one: it is vt's own
}

// In a process of its own, which must also end well.
Outcome in_child(const std::string& name, bool first, int flags) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Outcome outcome = with(name, first, flags);
    std::exit(outcome);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : wrong;
}

}  // namespace

int main(int count, char** arguments) {
  ::setvbuf(stdout, nullptr, _IOLBF, 0);  // a child prints nothing of its parent's
  ::setenv("VT_BACKEND", "cpu", 1);
  ::setenv("VT_CACHE_DIR", "", 1);  // so that LLVM is needed
  std::vector<std::string> names(arguments + 1, arguments + count);
  if (names.empty())
    for (int version = 14; version <= 22; ++version)
      for (const auto& [before, after] : {std::pair("libLLVM-", ".so.1"), {"libLLVM.so.", ".1"}})
        names.push_back(before + std::to_string(version) + after);
  bool any = false;
  for (const std::string& name : names)
    for (const bool first : {true, false})
      for (const int flags : {RTLD_LOCAL, RTLD_GLOBAL}) {
        const Outcome outcome = in_child(name, first, flags);
        if (outcome == not_there) continue;
        any = true;
        std::printf("%s loaded %s vt's LLVM, %s: %s\n", name.c_str(), first ? "before" : "after",
                    flags == RTLD_GLOBAL ? "RTLD_GLOBAL" : "RTLD_LOCAL",
                    outcome == right ? "right" : "wrong");
        if (outcome != right) return 1;
      }
  if (!any) std::printf("skipped: no other libLLVM than vt's own is installed\n");
  return any ? 0 : 77;
}
