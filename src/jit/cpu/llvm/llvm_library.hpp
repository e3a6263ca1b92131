// Owns the table of LLVM C functions that vt uses,
// loaded from libLLVM at run time and never linked.
#pragma once

#include <string>

// Header-only users may not have the llvm-c headers: what needs them asks for VT_HAS_LLVM_HEADERS.
#define VT_HAS_LLVM_HEADERS 0
#if defined(__has_include)
#if __has_include(<llvm-c/Core.h>) && __has_include(<llvm/Config/llvm-config.h>)
#include <llvm/Config/llvm-config.h>
#if LLVM_VERSION_MAJOR < 18 || LLVM_VERSION_MAJOR > 20
// Nothing of these headers is read then, so that this is the only error.
#error "vt supports LLVM 18 to 20; put the headers of one of these first on the include path"
#else
#undef VT_HAS_LLVM_HEADERS
#define VT_HAS_LLVM_HEADERS 1
#endif
#endif
#endif

#if VT_HAS_LLVM_HEADERS
#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

// The target is the machine that this is compiled for, which LLVM's headers need not be made for.
#if defined(__x86_64__) || defined(__i386__)
#define VT_LLVM_TARGET "X86"
#elif defined(__aarch64__)
#define VT_LLVM_TARGET "AArch64"
#elif defined(LLVM_NATIVE_ARCH)
#define VT_LLVM_TEXT(x) #x
#define VT_LLVM_EXPANDED_TEXT(x) VT_LLVM_TEXT(x)
#define VT_LLVM_TARGET VT_LLVM_EXPANDED_TEXT(LLVM_NATIVE_ARCH)
#else
#error "vt does not know which target of LLVM this machine is"
#endif
#endif

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

// The one list of functions: members of `Llvm` and the names to look up are both made from it.
// clang-format off
#define VT_LLVM_FUNCTIONS(X)                                                                       \
  X(GetVersion) X(DisposeMessage) X(InstallFatalErrorHandler) X(ContextCreate) X(ContextDispose)   \
  X(ContextSetDiagnosticHandler) X(GetDiagInfoDescription) X(GetDiagInfoSeverity)                  \
  X(ModuleCreateWithNameInContext) X(DisposeModule) X(SetTarget) X(SetModuleDataLayout)            \
  X(PrintModuleToString) X(VerifyModule) X(CloneModule) X(WriteBitcodeToMemoryBuffer)              \
  /* types */                                                                                      \
  X(IntTypeInContext) X(FloatTypeInContext) X(DoubleTypeInContext) X(HalfTypeInContext)            \
  X(BFloatTypeInContext) X(VoidTypeInContext) X(PointerTypeInContext) X(VectorType) X(ArrayType2)  \
  X(FunctionType) X(StructTypeInContext) X(TypeOf) X(GlobalGetValueType)                           \
  /* constants and globals */                                                                      \
  X(ConstInt) X(ConstReal) X(ConstNull) X(ConstVector) X(ConstBitCast) X(ConstArray2) X(GetPoison) \
  X(IsConstant) X(IsNull) X(AddGlobal) X(GetNamedGlobal) X(SetInitializer) X(SetGlobalConstant)    \
  X(SetLinkage) X(SetUnnamedAddress) X(SetAlignment)                                               \
  /* functions and attributes */                                                                   \
  X(AddFunction) X(GetNamedFunction) X(GetParam) X(CreateEnumAttribute) X(CreateStringAttribute)   \
  X(GetEnumAttributeKindForName) X(AddAttributeAtIndex) X(LookupIntrinsicID)                       \
  X(GetIntrinsicDeclaration) X(SetFunctionCallConv) X(SetInstructionCallConv)                      \
  /* blocks */                                                                                     \
  X(AppendBasicBlockInContext) X(GetInsertBlock) X(GetBasicBlockParent) X(GetEntryBasicBlock)      \
  X(GetFirstInstruction) X(CreateBuilderInContext) X(DisposeBuilder) X(PositionBuilderAtEnd)       \
  X(PositionBuilderBefore) X(BuildBr) X(BuildCondBr) X(BuildRetVoid) X(BuildRet) X(BuildPhi)       \
  X(AddIncoming) X(BuildUnreachable) X(BuildAggregateRet) X(BuildExtractValue)                     \
  /* arithmetic */                                                                                 \
  X(BuildAdd) X(BuildNSWAdd) X(BuildSub) X(BuildMul) X(BuildNSWMul) X(BuildSDiv) X(BuildUDiv)      \
  X(BuildSRem) X(BuildURem) X(BuildNeg) X(BuildAnd) X(BuildOr) X(BuildXor) X(BuildNot) X(BuildShl) \
  X(BuildLShr) X(BuildAShr) X(BuildFAdd) X(BuildFSub) X(BuildFMul) X(BuildFDiv) X(BuildFNeg)       \
  X(BuildICmp) X(BuildFCmp) X(BuildSelect) X(BuildFreeze)                                          \
  /* conversions */                                                                                \
  X(BuildTrunc) X(BuildZExt) X(BuildSExt) X(BuildFPTrunc) X(BuildFPExt) X(BuildSIToFP)             \
  X(BuildUIToFP) X(BuildFPToSI) X(BuildFPToUI) X(BuildBitCast)                                     \
  /* vectors and memory */                                                                         \
  X(BuildExtractElement) X(BuildInsertElement) X(BuildShuffleVector) X(BuildLoad2) X(BuildStore)   \
  X(BuildGEP2) X(BuildInBoundsGEP2) X(BuildAlloca) X(BuildCall2) X(BuildMemCpy)                   \
  X(MDStringInContext2) X(MDNodeInContext2) X(MetadataAsValue) X(SetMetadata)                      \
  X(GetMDKindIDInContext) X(ValueAsMetadata) X(BuildFence)                                         \
  /* lines */                                                                                      \
  X(GetModuleContext) X(AddModuleFlag) X(CreateDIBuilder) X(DisposeDIBuilder) X(DIBuilderFinalize) \
  X(DIBuilderCreateFile) X(DIBuilderCreateCompileUnit) X(DIBuilderCreateSubroutineType)            \
  X(DIBuilderCreateFunction) X(DIBuilderCreateLexicalBlockFile) X(DIBuilderCreateDebugLocation)    \
  X(SetSubprogram) X(SetCurrentDebugLocation2) X(GetCurrentDebugLocation2)                         \
  /* target and object code */                                                                     \
  X(GetDefaultTargetTriple) X(GetTargetFromTriple) X(GetHostCPUName) X(GetHostCPUFeatures)         \
  X(CreateTargetMachine) X(DisposeTargetMachine) X(CreateTargetDataLayout) X(DisposeTargetData)    \
  X(TargetMachineEmitToMemoryBuffer) X(GetBufferStart) X(GetBufferSize) X(DisposeMemoryBuffer)     \
  X(CreateMemoryBufferWithMemoryRangeCopy) X(CreatePassBuilderOptions)                             \
  X(DisposePassBuilderOptions) X(RunPasses) X(GetErrorMessage) X(DisposeErrorMessage)              \
  X(ConsumeError)                                                                                  \
  /* just-in-time linking */                                                                       \
  X(OrcCreateLLJIT) X(OrcCreateLLJITBuilder) X(OrcLLJITGetExecutionSession)                        \
  X(OrcLLJITMangleAndIntern) X(OrcLLJITAddObjectFileWithRT)                                        \
  X(OrcExecutionSessionCreateBareJITDylib) X(OrcExecutionSessionSetErrorReporter)                  \
  X(OrcJITDylibCreateResourceTracker) X(OrcResourceTrackerRemove) X(OrcReleaseResourceTracker)     \
  X(OrcExecutionSessionLookup) X(OrcAbsoluteSymbols) X(OrcJITDylibDefine)                          \
  X(OrcDisposeMaterializationUnit) X(OrcReleaseSymbolStringPoolEntry)
// clang-format on

/// One pointer per LLVM C function in use; `llvm.BuildAdd` is `LLVMBuildAdd`.
struct Llvm {
#define VT_LLVM_MEMBER(name) decltype(&::LLVM##name) name = nullptr;
  VT_LLVM_FUNCTIONS(VT_LLVM_MEMBER)
#undef VT_LLVM_MEMBER
  // The target's initialisers have its name in theirs.
  void (*InitializeTarget)() = nullptr;
  void (*InitializeTargetInfo)() = nullptr;
  void (*InitializeTargetMC)() = nullptr;
  void (*InitializeAsmPrinter)() = nullptr;
};

namespace llvm_names {
#define VT_LLVM_NAME(name) "LLVM" #name,
#define VT_LLVM_INITIALIZE(part) "LLVMInitialize" VT_LLVM_TARGET #part
inline constexpr const char* all[] = {VT_LLVM_FUNCTIONS(VT_LLVM_NAME) VT_LLVM_INITIALIZE(Target),
                                      VT_LLVM_INITIALIZE(TargetInfo), VT_LLVM_INITIALIZE(TargetMC),
                                      VT_LLVM_INITIALIZE(AsmPrinter)};
#undef VT_LLVM_NAME
#undef VT_LLVM_INITIALIZE
}  // namespace llvm_names
#undef VT_LLVM_FUNCTIONS

static_assert(sizeof(Llvm) == sizeof(llvm_names::all),
              "one name per member of Llvm, in the same order");

/// The loaded table. Throws: Error(backend) with `llvm_unavailable_reason()` when there is none.
const Llvm& llvm();

#endif  // VT_HAS_LLVM_HEADERS

/// Empty when LLVM can be used; else one line that says why not. Loads the library on the first
/// call; any thread.
const std::string& llvm_unavailable_reason();

/// The same question for a program that may never need LLVM, because its kernels are on disk: looks
/// for the library's file and loads nothing when it is in a usual place. Loading may still fail
/// later, and then says why.
std::string llvm_missing_reason();

/// The outcome of one attempt to load, for tests of the refusals: `path` as given to dlopen, no
/// caching, no fallbacks. Returns an empty string when the library has the headers' major version
/// and every function.
std::string llvm_try_library(const std::string& path);

}  // namespace vt::detail::cpu
