// Line tables through LLVM's builder of debug information: one compile unit for each function,
// nothing but lines.
#include "line_table.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cstring>

namespace vt::detail::cpu {

LineTable::LineTable(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef function,
                     const std::string& name, CallSite where)
    : context_(llvm().GetModuleContext(module)), builder_(builder), start_(where) {
  const Llvm& L = llvm();
  lines_ = L.CreateDIBuilder(module);
  const auto flag = [&](const char* key, unsigned value) {
    LLVMValueRef number = L.ConstInt(L.IntTypeInContext(context_, 32), value, 0);
    L.AddModuleFlag(module, LLVMModuleFlagBehaviorWarning, key, std::strlen(key),
                    L.ValueAsMetadata(number));
  };
  flag("Debug Info Version", 3);
  flag("Dwarf Version", 4);
  LLVMMetadataRef own = file(where.file ? where.file : "vt");
  constexpr char producer[] = "vt";
  L.DIBuilderCreateCompileUnit(lines_, LLVMDWARFSourceLanguageC_plus_plus, own, producer,
                               sizeof producer - 1, 1, "", 0, 0, "", 0,
                               LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
  LLVMMetadataRef type = L.DIBuilderCreateSubroutineType(lines_, own, nullptr, 0, LLVMDIFlagZero);
  const auto line = static_cast<unsigned>(where.line);
  function_ =
      L.DIBuilderCreateFunction(lines_, own, name.c_str(), name.size(), name.c_str(), name.size(),
                                own, line, type, 0, 1, line, LLVMDIFlagZero, 1);
  L.SetSubprogram(function, function_);
  resume(L.DIBuilderCreateDebugLocation(context_, line, 0, function_, nullptr));
}

LineTable::~LineTable() {
  suspend();
  llvm().DIBuilderFinalize(lines_);
  llvm().DisposeDIBuilder(lines_);
}

LLVMMetadataRef LineTable::file(const char* path) {
  return llvm().DIBuilderCreateFile(lines_, path, std::strlen(path), "", 0);
}

void LineTable::at(CallSite where) {
  if (!where.file) return;
  LLVMMetadataRef scope = function_;
  if (!start_.file || std::strcmp(where.file, start_.file) != 0) {
    if (!other_file_ || std::strcmp(where.file, other_file_) != 0) {
      other_file_ = where.file;
      other_scope_ = llvm().DIBuilderCreateLexicalBlockFile(lines_, function_, file(where.file), 0);
    }
    scope = other_scope_;
  }
  resume(llvm().DIBuilderCreateDebugLocation(context_, static_cast<unsigned>(where.line), 0, scope,
                                             nullptr));
}

LLVMMetadataRef LineTable::suspend() {
  LLVMMetadataRef place = llvm().GetCurrentDebugLocation2(builder_);
  resume(nullptr);
  return place;
}

}  // namespace vt::detail::cpu

#endif
