// Passes, code generation and linking: one target machine per thread, one LLJIT per process.
#include "compile.hpp"

#include "../../../trace/base/hash_map.hpp"

#if VT_HAS_LLVM_HEADERS

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include <vt/error.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../services/background.hpp"
#include "code_cache.hpp"

namespace vt::detail::cpu {

namespace cpu_compile {

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw Error(ErrorKind::backend,
              "vt: " + what + ": " + (why.empty() ? "LLVM gave no reason" : why));
}

std::string take_error(LLVMErrorRef error) {
  const Llvm& L = llvm();
  char* message = L.GetErrorMessage(error);
  std::string text = message;
  L.DisposeErrorMessage(message);
  return text;
}

// A TargetMachine is not safe to share and costs 0.3 ms, so every thread keeps its own, one per
// target and level.
struct Machines {
  HashMap<std::string, LLVMTargetMachineRef> all;  ///< by processor, features and level
  ~Machines() {
    for (auto& [key, machine] : all) llvm().DisposeTargetMachine(machine);
  }
};

// They go with the thread; what is compiled after that, as the process ends, gets some that stay.
constinit thread_local Machines* machines = nullptr;

LLVMTargetMachineRef machine_for(const LlvmTarget& target, int level) {
  struct End {
    ~End() {
      try {
        const CompilerUse use;
        delete machines;
      } catch (const ProcessEnds&) {
      }
      machines = nullptr;
    }
  };
  if (!machines) {
    machines = new Machines;
    static thread_local End end;
    static_cast<void>(end);
  }
  LLVMTargetMachineRef& slot = machines->all[target.cpu + target.features + std::to_string(level)];
  if (slot) return slot;
  const Llvm& L = llvm();
  LLVMTargetRef found = nullptr;
  char* message = nullptr;
  if (L.GetTargetFromTriple(target.triple.c_str(), &found, &message)) {
    const std::string why = message ? message : "";
    L.DisposeMessage(message);
    fail("no LLVM target for " + target.triple, why);
  }
  // Position independent: the code may lie further than 2 GB from the C library that it calls.
  slot = L.CreateTargetMachine(found, target.triple.c_str(), target.cpu.c_str(),
                               target.features.c_str(), static_cast<LLVMCodeGenOptLevel>(level),
                               LLVMRelocPIC, LLVMCodeModelDefault);
  if (!slot) fail("no LLVM target machine for " + target.cpu, "");
  return slot;
}

// early-cse first: what sin and cos of one value share is not the same any more once instcombine
// has been there. no-verify-fixpoint: the default ends the process when one iteration was not
// enough.
constexpr const char *plain_passes =
                         "function(early-cse,instcombine<no-verify-fixpoint>,early-cse<memssa>,"
                         "loop-mssa(licm),simplifycfg)",
                     *counting_passes =
                         "function(simplifycfg,early-cse,instcombine<no-verify-fixpoint>,"
                         "early-cse<memssa>,"
                         "loop-mssa(licm),simplifycfg,loop(indvars),correlated-propagation,"
                         "loop-load-elim,instcombine<no-verify-fixpoint>,simplifycfg)",
                     // At level 0, of code with many choices: each splits its block, and moves all
                     // that follows. So an index_max of 8 rows of 20 took 1.1 s, and takes 45 ms.
                         *quick_passes = "function(early-cse,instcombine<no-verify-fixpoint>)",
                     // what one call has compared, those inside of it need not
                             *recursion_passes =
                                 "globaldce,function(simplifycfg,instcombine<no-verify-fixpoint>,"
                                 "early-cse<memssa>,jump-threading,tailcallelim),";

std::string passes_for(const IrBuilder& builder, int level) {
  constexpr int many_choices = 256;
  if (level == 0) return builder.choices() > many_choices ? quick_passes : "";
  return std::string(builder.has_locals() ? recursion_passes : "") +
         (builder.counting_loops() ? counting_passes : plain_passes);
}

// Level 2 orders instructions once more when they have registers, which takes the square of the
// number of accesses in a block: half of the time for 360 of them, and nothing runs faster for it.
int code_level(const IrBuilder& builder, int level) {
  constexpr int many_accesses = 128;
  return level == 2 && builder.accesses() > many_accesses ? 1 : level;
}

void run_passes(LLVMModuleRef module, LLVMTargetMachineRef machine, const CompileOptions& options,
                const IrBuilder& builder) {
  const Llvm& L = llvm();
  LLVMTargetDataRef layout = L.CreateTargetDataLayout(machine);
  L.SetModuleDataLayout(module, layout);
  L.DisposeTargetData(layout);
  const std::string passes = passes_for(builder, options.level);
  if (!options.passes || passes.empty()) return;
  LLVMPassBuilderOptionsRef settings = L.CreatePassBuilderOptions();
  LLVMErrorRef error = L.RunPasses(module, passes.c_str(), machine, settings);
  L.DisposePassBuilderOptions(settings);
  if (error) fail("LLVM's passes failed", take_error(error));
}

LLVMMemoryBufferRef emit(LLVMModuleRef module, const IrBuilder& builder,
                         const CompileOptions& options, LLVMCodeGenFileType type) {
  const Llvm& L = llvm();
  LLVMTargetMachineRef machine =
      machine_for(builder.llvm_names(), code_level(builder, options.level));
  run_passes(module, machine, options, builder);
  background_rest();
  LLVMMemoryBufferRef buffer = nullptr;
  char* message = nullptr;
  if (L.TargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer)) {
    const std::string why = message ? message : "";
    L.DisposeMessage(message);
    fail("LLVM could not generate code", why);
  }
  return buffer;
}

LLVMMemoryBufferRef watched_emit(LLVMModuleRef module, const IrBuilder& builder,
                                 const CompileOptions& options, LLVMCodeGenFileType type) {
  LLVMMemoryBufferRef buffer = nullptr;
  try {
    CompilerUse::watch([&] { buffer = emit(module, builder, options, type); });
  } catch (...) {
    if (CompilerUse::is_broken_off()) machines = nullptr;  // this thread gets others
    throw;
  }
  return buffer;
}

// ---- linking ------------------------------------------------------------------------------------

// LLVM reports link failures here as well as to the caller; its default prints them.
Mutex& session_errors_lock() {
  static auto* const lock = new Mutex;
  return *lock;
}

std::string& session_errors() {
  static auto* const text = new std::string;
  return *text;
}

void keep_session_error(void*, LLVMErrorRef error) {
  const std::string text = take_error(error);
  const std::lock_guard hold(session_errors_lock());
  session_errors() = text;
}

// The process's LLJIT and its pool of empty symbol tables. Leaked on purpose: code may run until
// the process ends. Each loaded object gets a table (JITDylib) of its own, so that equal names
// never clash; LLVM's C interface cannot remove a table, so an emptied one is used again.
struct Session {
  Mutex lock;
  LLVMOrcLLJITRef jit = nullptr;
  LLVMOrcExecutionSessionRef session = nullptr;
  Vec<LLVMOrcJITDylibRef> free;
  int made = 0;

  LLVMOrcJITDylibRef take_library() {
    if (!free.empty()) {
      LLVMOrcJITDylibRef library = free.back();
      free.pop_back();
      return library;
    }
    const Llvm& L = llvm();
    LLVMOrcJITDylibRef library =
        L.OrcExecutionSessionCreateBareJITDylib(session, ("vt." + std::to_string(made++)).c_str());
    Vec<LLVMOrcCSymbolMapPair> pairs;
    for (const RuntimeSymbol& s : runtime_symbols())
      pairs.push_back({L.OrcLLJITMangleAndIntern(jit, s.name),
                       {reinterpret_cast<LLVMOrcExecutorAddress>(s.address),
                        {static_cast<std::uint8_t>(LLVMJITSymbolGenericFlagsExported |
                                                   LLVMJITSymbolGenericFlagsCallable),
                         0}}});
    LLVMOrcMaterializationUnitRef unit = L.OrcAbsoluteSymbols(pairs.data(), pairs.size());
    if (LLVMErrorRef error = L.OrcJITDylibDefine(library, unit)) {
      L.OrcDisposeMaterializationUnit(unit);
      fail("the runtime functions could not be defined", take_error(error));
    }
    return library;
  }
};

Session& session() {
  static Session* const one = [] {
    auto* made = new Session;
    const Llvm& L = llvm();
    if (LLVMErrorRef error = L.OrcCreateLLJIT(&made->jit, nullptr))
      fail("LLVM's linker could not be started", take_error(error));
    made->session = L.OrcLLJITGetExecutionSession(made->jit);
    L.OrcExecutionSessionSetErrorReporter(made->session, keep_session_error, nullptr);
    return made;
  }();
  return *one;
}

// The lookup answers through a callback, possibly on another thread.
struct Answer {
  Mutex lock;
  std::condition_variable_any ready;
  bool done = false;
  std::string error;
  Vec<std::pair<LLVMOrcSymbolStringPoolEntryRef, std::uint64_t>> found;
};

void take_answer(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, std::size_t count,
                 void* context) {
  auto* answer = static_cast<Answer*>(context);
  const std::lock_guard hold(answer->lock);
  if (error) {
    answer->error = take_error(error);
    if (answer->error.empty()) answer->error = "unknown error";
  } else {
    for (std::size_t i = 0; i < count; ++i)
      answer->found.push_back({pairs[i].Name, pairs[i].Sym.Address});
  }
  answer->done = true;
  answer->ready.notify_all();
}

}  // namespace cpu_compile

CacheKey object_identity(const IrBuilder& builder) {
  const LlvmTarget target = builder.llvm_names();
  // Bitcode begins with the version of the LLVM that wrote it, and names the triple.
  std::string all = target.cpu + "|" + target.features;
  for (int level : {0, 1}) all += "|" + cpu_compile::passes_for(builder, level);
  CompilerUse::watch([&] { all += "|" + builder.bitcode(); });
  return cache_key(all);
}

Vec<char> compile_object(IrBuilder& builder, const CompileOptions& options) {
  const Llvm& L = llvm();
#ifndef NDEBUG
  if (const std::string wrong = builder.verify(); !wrong.empty())
    cpu_compile::fail("the generated module is malformed", wrong);
#endif
  LLVMMemoryBufferRef buffer =
      cpu_compile::watched_emit(builder.module(), builder, options, LLVMObjectFile);
  const char* start = L.GetBufferStart(buffer);
  Vec<char> bytes(start, start + L.GetBufferSize(buffer));
  L.DisposeMemoryBuffer(buffer);
  return bytes;
}

std::string compile_assembly(const IrBuilder& builder, const CompileOptions& options) {
  const Llvm& L = llvm();
  LLVMModuleRef copy = L.CloneModule(builder.module());
  LLVMMemoryBufferRef buffer = cpu_compile::watched_emit(copy, builder, options, LLVMAssemblyFile);
  const std::string text(L.GetBufferStart(buffer), L.GetBufferSize(buffer));
  L.DisposeMemoryBuffer(buffer);
  L.DisposeModule(copy);
  return text;
}

Code::Code(std::span<const char> object, std::span<const std::string> names, Linker linker) {
  if (linker == Linker::vt) link(object, names);
  else link_with_llvm(object, names);
}

void Code::link(std::span<const char> object, std::span<const std::string> names) {
  const auto resolve = [](std::string_view name) -> void* {
    for (const RuntimeSymbol& s : runtime_symbols())
      if (name == s.name) return s.address;
    return nullptr;
  };
  std::string wrong = object_.load(object, resolve);
  if (object_.starved()) {
    drop_unused_code();
    wrong = object_.load(object, resolve);
  }
  if (!wrong.empty()) cpu_compile::fail("compiled code could not be loaded", wrong);
  for (const std::string& name : names) {
    addresses_.push_back(object_.find(name));
    if (!addresses_.back())
      cpu_compile::fail("compiled code could not be loaded", "it has no function " + name);
  }
}

void Code::link_with_llvm(std::span<const char> object, std::span<const std::string> names) {
  using namespace cpu_compile;
  const Llvm& L = llvm();
  Session& s = session();
  const std::lock_guard hold(s.lock);
  library_ = s.take_library();
  tracker_ = L.OrcJITDylibCreateResourceTracker(library_);
  const auto give_up = [&](const std::string& why) {
    L.ConsumeError(L.OrcResourceTrackerRemove(tracker_));
    L.OrcReleaseResourceTracker(tracker_);
    s.free.push_back(library_);
    std::string more;
    {
      const std::lock_guard errors_hold(session_errors_lock());
      more.swap(session_errors());
    }
    fail("compiled code could not be loaded",
         more.empty() || more == why ? why : why + " (" + more + ")");
  };
  LLVMMemoryBufferRef buffer =
      L.CreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "vt");
  if (LLVMErrorRef error = L.OrcLLJITAddObjectFileWithRT(s.jit, tracker_, buffer))
    give_up(take_error(error));
  Vec<LLVMOrcCLookupSetElement> wanted;
  Vec<LLVMOrcSymbolStringPoolEntryRef> symbols;
  for (const std::string& name : names) {
    symbols.push_back(L.OrcLLJITMangleAndIntern(s.jit, name.c_str()));
    wanted.push_back({symbols.back(), LLVMOrcSymbolLookupFlagsRequiredSymbol});
  }
  LLVMOrcCJITDylibSearchOrderElement where{library_, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
  addresses_.assign(names.size(), nullptr);
  Answer answer;
  L.OrcExecutionSessionLookup(s.session, LLVMOrcLookupKindStatic, &where, 1, wanted.data(),
                              wanted.size(), take_answer, &answer);
  {
    std::unique_lock wait(answer.lock);
    answer.ready.wait(wait, [&] { return answer.done; });
  }
  if (!answer.error.empty()) give_up(answer.error);
  // Pool entries are unique, so a name is found again by address. The lookup took over our
  // references to them.
  for (const auto& [symbol, address] : answer.found)
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i] == symbol) addresses_[i] = reinterpret_cast<void*>(address);
}

void Code::replace(std::shared_ptr<const Code> better) const {
  for (std::size_t i = 0; i < addresses_.size(); ++i)
    std::atomic_ref(addresses_[i]).store(better->addresses_[i], std::memory_order_release);
  better_ = std::move(better);
  set_unoptimised(false);
}

Code::~Code() {
  if (!tracker_) return;
  const Llvm& L = llvm();
  cpu_compile::Session& s = cpu_compile::session();
  const std::lock_guard hold(s.lock);
  LLVMErrorRef error = L.OrcResourceTrackerRemove(tracker_);
  L.OrcReleaseResourceTracker(tracker_);
  if (error) L.ConsumeError(error);  // the table may still hold symbols: do not use it again
  else s.free.push_back(library_);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
