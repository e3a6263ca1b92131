// Owns the user's lines in generated code: DWARF line tables, for debuggers.
#pragma once

#include <string>

#include <vt/error.hpp>

#include "llvm_library.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// Of one function, from its first instruction to its last.
class LineTable {
 public:
  LineTable(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef function,
            const std::string& name, CallSite where);
  ~LineTable();
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;

  /// What is built from now on belongs to that line; where it is not known, to the last one.
  void at(CallSite where);
  /// What is built from now on belongs to no line, as that of another function; the result is what
  /// to give to `resume`.
  LLVMMetadataRef suspend();
  void resume(LLVMMetadataRef place) { llvm().SetCurrentDebugLocation2(builder_, place); }

 private:
  LLVMMetadataRef file(const char* path);

  LLVMContextRef context_;
  LLVMBuilderRef builder_;
  LLVMDIBuilderRef lines_;
  CallSite start_;
  LLVMMetadataRef function_;
  const char* other_file_ = nullptr;  ///< than the function's, last asked for
  LLVMMetadataRef other_scope_ = nullptr;
};

}  // namespace vt::detail::cpu

#endif
