// Owns the way from a finished IR module to callable machine code: passes, object bytes,
// linking, unloading.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../nest/kernel.hpp"
#include "ir_builder.hpp"
#include "object_loader.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

struct CompileOptions {
  int level = host_target().level;  ///< LLVM's code generation level
  /// The short IR pipeline, at levels above 0: combine, common subexpressions, loop-invariant
  /// motion, clean the blocks; of modules with counting loops also bounds of counters, and values
  /// handed from iteration to iteration. At level 0 the first two, where there are many choices.
  bool passes = true;
};

/// Stands for all that an object file is made of, but for the options: the module, LLVM's version,
/// target and passes. Two builds of vt for which it is the same make the same code.
CacheKey object_identity(const IrBuilder& builder);

/// Runs the passes on the builder's module and makes an object file of it. The module is used up:
/// build no more into it.
/// Throws: Error(backend) when LLVM refuses the module. Any thread; target machines are kept per
/// thread.
Vec<char> compile_object(IrBuilder& builder, const CompileOptions& options = {});

/// The same as assembly text, from a copy: the module stays as it is. For dumps.
std::string compile_assembly(const IrBuilder& builder, const CompileOptions& options = {});

/// Who links: vt itself where it can (needs no libLLVM then), else LLVM.
enum class Linker { vt, llvm };

/// Machine code loaded into this process; unloaded when destroyed, so it must outlive every call
/// into it.
class Code {
 public:
  /// Links the object file and looks up `names`, the functions that it exports.
  /// Throws: Error(backend) when the bytes are no object file for this machine, or a name is
  /// missing.
  Code(std::span<const char> object, std::span<const std::string> names,
       Linker linker = can_load_objects() ? Linker::vt : Linker::llvm);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// Address of names[i].
  void* address(std::size_t i) const {
    return std::atomic_ref(addresses_[i]).load(std::memory_order_acquire);
  }
  template <class Function>
  Function* function(std::size_t i = 0) const {
    return reinterpret_cast<Function*>(address(i));
  }

  /// From now on the addresses are those of `better`, the same functions. Whoever runs the old ones
  /// may finish.
  void replace(std::shared_ptr<const Code> better) const;
  /// Is it to be replaced?
  void set_unoptimised(bool unoptimised) const {
    std::atomic_ref(unoptimised_).store(unoptimised, std::memory_order_relaxed);
  }
  /// Function 0, for programs.
  static Kernel as_kernel(std::shared_ptr<const Code> code) {
    return {&code->addresses_[0], &code->unoptimised_, code, {}};
  }

 private:
  void link(std::span<const char> object, std::span<const std::string> names);
  void link_with_llvm(std::span<const char> object, std::span<const std::string> names);

  LoadedObject object_;
  LLVMOrcJITDylibRef library_ = nullptr;  // where LLVM's linker is used
  LLVMOrcResourceTrackerRef tracker_ = nullptr;
  // These two are read and written atomically, once the object is made.
  mutable Vec<void*> addresses_;
  mutable bool unoptimised_ = false;
  mutable std::shared_ptr<const Code> better_;
};

/// A C function that generated code may call by name.
struct RuntimeSymbol {
  const char* name;
  void* address;
};

/// All of them; the one place to add one.
std::span<const RuntimeSymbol> runtime_symbols();

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
