// Owns the loading of compiled kernels without LLVM: maps an x86-64 ELF object file, links it, and
// finds its functions. A kernel that is in the disk cache thereby runs without libLLVM, whose
// loading takes longer than anything else at the start.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <vt/detail/small_vec.hpp>

#include "code_memory.hpp"

namespace vt::detail::cpu {

/// Code mapped into this process until destroyed. Writable while it is linked, executable or
/// read-only after.
class LoadedObject {
 public:
  /// a C function's address, or null
  using Resolver = std::function<void*(std::string_view name)>;

  LoadedObject() = default;
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  /// Maps and links, in place of what there was. Returns what is wrong with the object, or nothing;
  /// it is never read outside its bytes, whatever they are.
  std::string load(std::span<const char> object, const Resolver& resolve);
  /// Did load() find no memory for it?
  bool starved() const { return starved_; }
  /// Address of an exported function; null if there is none of that name.
  void* find(std::string_view name) const;

 private:
  struct Export {
    std::string name;
    void* address;
  };
  Vec<Export> exports_;
  CodeMemory memory_;
  std::shared_ptr<void> shown_;  ///< to perf and gdb; goes before the memory
  bool starved_ = false;
};

/// Whether this build can load its own objects: x86-64 with ELF. Elsewhere LLVM's linker does it.
bool can_load_objects();

}  // namespace vt::detail::cpu
