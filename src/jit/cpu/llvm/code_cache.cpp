// Machine code by key: made once in a process, and (through the disk cache) once on a machine.
#include "code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>

#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

#include "../../../trace/base/environment.hpp"
#include "../../../trace/base/locks.hpp"
#include "../../../trace/base/recent_map.hpp"
#include "../../../trace/base/timeline.hpp"
#include "../../../trace/base/warnings.hpp"
#include "../../report/dump.hpp"
#include "../../services/background.hpp"
#include "../../services/code_label.hpp"
#include "../../services/counters.hpp"
#include "../../services/disk_cache.hpp"
#include "../../services/executables.hpp"
#include "../../services/planning.hpp"

namespace vt::detail::cpu {

namespace code_store {

/// What is emitted for a key: which module, and its numbers.
struct ModuleForm {
  CacheKey module;
  Vec<std::int64_t> numbers;
};

using Made = std::shared_future<std::shared_ptr<const Code>>;

struct Store {
  Mutex mutex;
  RecentMap<std::string, Made> made{most_kernels};
  RecentMap<std::string, ModuleForm> forms{most_kernels};
};
Store& store() {
  // never destroyed: threads may still run kernels while the process ends
  static Store* s = new Store;
  return *s;
}

// ---- on disk ------------------------------------------------------------------------------------

// Which module a key stands for is as this emitter says, for the machine that it looks at. Not as
// the loaded LLVM says: what is on disk can run without it.
CacheKey form_key(const std::string& key) {
  static const std::string& common =
      *new std::string("form|" + program_identity() + "|LLVM " LLVM_VERSION_STRING "|");
  return cache_key(common + host_target().key() + "|" + key);
}

// What LLVM makes of a module depends on nothing else.
CacheKey object_key(CacheKey module, int level) {
  return cache_key("object|" + module.text() + "|" + std::to_string(level));
}

// Entries: the module's key, then the numbers.
Vec<char> to_bytes(const ModuleForm& form) {
  Vec<char> bytes(sizeof(CacheKey) + form.numbers.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), &form.module, sizeof(CacheKey));
  if (!form.numbers.empty())
    std::memcpy(bytes.data() + sizeof(CacheKey), form.numbers.data(),
                bytes.size() - sizeof(CacheKey));
  return bytes;
}

bool from_bytes(const Vec<char>& bytes, ModuleForm& form) {
  if (bytes.size() < sizeof(CacheKey) ||
      (bytes.size() - sizeof(CacheKey)) % sizeof(std::int64_t) != 0)
    return false;
  std::memcpy(&form.module, bytes.data(), sizeof(CacheKey));
  form.numbers.resize((bytes.size() - sizeof(CacheKey)) / sizeof(std::int64_t));
  if (!form.numbers.empty())
    std::memcpy(form.numbers.data(), bytes.data() + sizeof(CacheKey),
                bytes.size() - sizeof(CacheKey));
  return true;
}

std::shared_ptr<const Code> from_disk(CacheKey key, std::span<const std::string> names) {
  const std::optional<Vec<char>> object = DiskCache::process().load(key);
  if (!object) return nullptr;
  try {
    return std::make_shared<const Code>(*object, names);
  } catch (const Error&) {  // sound bytes that do not link: made anew, not fatal
    DiskCache::process().remove(key);
    return nullptr;
  }
}

// ---- made here ----------------------------------------------------------------------------------

// VT_DUMP: what the key says, and the code, under the name that explain uses.
void dump(const std::string& key, const IrBuilder& builder) {
  const std::string name = short_name(key);
  dump_text(name + ".txt", key);
  dump_text(name + ".ll", builder.text());
  dump_text(name + ".s", compile_assembly(builder));
}

std::unique_ptr<IrBuilder> emitted_by(FunctionRef<void(IrBuilder&)> emit) {
  const Span span("compile", "emit");
  auto builder = std::make_unique<IrBuilder>();
  CompilerUse::watch([&] { emit(*builder); });
  return builder;
}

/// Of processes that MPI has started on this host, and that need the same code, one makes it.
DiskCache::Turn turn_to_make(CacheKey key, bool in_background) {
  static const bool alone = processes_of_host() == 1;
  if (alone) return {};
  const auto rest = [&] {
    if (in_background) background_rest();
  };
  return DiskCache::process().turn(key, in_background ? "later" : "now", rest);
}

std::shared_ptr<const Code> compiled(CacheKey module, std::span<const std::string> names,
                                     IrBuilder& builder, int level) {
  background_rest();
  const Vec<char> object = compile_object(builder, {.level = level});
  auto code = std::make_shared<const Code>(object, names);
  DiskCache::process().store(object_key(module, level), object);
  return code;
}

/// What is asked for.
struct Wanted {
  const std::string& key;
  std::span<const std::string> names;
  FunctionRef<void(IrBuilder&)> emit;
  const Function<void(IrBuilder&)>* later = nullptr;  ///< where one is in a hurry
  bool wait = true;                                   ///< … for another thread that makes the same
};

// On the background thread.
void optimise(CacheKey module, const std::string& shown, const std::string& name,
              const CodeLabel& label, const Function<void(IrBuilder&)>& emit, const Code& quick) {
  try {
    const CodeLabelScope seen(label);
    const std::string title = timeline_wanted() ? "code " + shown + ", optimised" : "";
    const Span span("compile", title);
    const int level = host_target().level;
    const CacheKey key = object_key(module, level);
    const DiskCache::Turn turn = turn_to_make(key, true);
    const std::string symbol = name;
    std::shared_ptr<const Code> code = from_disk(key, {&symbol, 1});
    if (!code) {
      code = compiled(module, {&name, 1}, *emitted_by(emit), level);
      count(counters().kernels_optimised);
    }
    quick.replace(std::move(code));
    DiskCache::process().remove(object_key(module, 0));
  } catch (const ProcessEnds&) {
  } catch (const std::exception& e) {
    warn_once(std::string("a kernel stays unoptimised: ") + e.what());
  }
}

// `emitted` becomes the module, if it had to be built.
ModuleForm form_of(const Wanted& wanted, std::unique_ptr<IrBuilder>& emitted) {
  std::string own = wanted.key;
  if (const CodeLabel* label = gdb_wanted() ? CodeLabelScope::innermost() : nullptr)
    own += "\n" + label->text() + label->lines;
  Store& s = store();
  {
    std::lock_guard lock(s.mutex);
    if (const ModuleForm* known = s.forms.find(own)) return *known;
  }
  if (!dump_folder().empty()) dump(wanted.key, *(emitted = emitted_by(wanted.emit)));
  const CacheKey on_disk = form_key(own);
  ModuleForm form;
  const std::optional<Vec<char>> kept = DiskCache::process().load(on_disk);
  if (!kept || !from_bytes(*kept, form)) {
    if (!emitted) emitted = emitted_by(wanted.emit);
    form = {object_identity(*emitted), emitted->numbers()};
    DiskCache::process().store(on_disk, to_bytes(form));
  }
  Vec<ModuleForm> gone;
  std::lock_guard lock(s.mutex);
  s.forms.emplace(own, form, gone);
  return form;
}

FormedCode cached(const Wanted& wanted) {
  std::unique_ptr<IrBuilder> emitted;
  ModuleForm form = form_of(wanted, emitted);
  const CacheKey module = form.module;
  // What a label is for has a name of its own.
  const CodeLabel* label = CodeLabelScope::innermost();
  const std::string own = module.text() + (label ? "\n" + label->text() : "");
  Store& s = store();
  std::promise<std::shared_ptr<const Code>> promise;
  Made there;
  Vec<Made> gone;
  {
    std::lock_guard lock(s.mutex);
    if (const Made* known = s.made.find(own)) there = *known;
    else s.made.emplace(own, promise.get_future().share(), gone);
  }
  gone.clear();
  if (there.valid()) {
    if (!wanted.wait && there.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return {};
    count(counters().kernel_memory_hits, 1);
    return {there.get(), std::move(form.numbers)};
  }
  try {
    // the name that explain and VT_DUMP give it
    const std::string shown = timeline_wanted() ? short_name(wanted.key) : "";
    const std::string title = timeline_wanted() ? "code " + shown : "";
    const Span span("compile", title);
    Vec<std::string> symbols;
    for (const std::string& name : wanted.names) symbols.push_back(code_symbol(name));
    const int level = host_target().level;
    std::shared_ptr<const Code> code = from_disk(object_key(module, level), symbols);
    const bool quick = !code && wanted.later && level > 0 && background_open();
    if (quick) code = from_disk(object_key(module, 0), symbols);
    DiskCache::Turn turn;
    if (!code) {
      const CacheKey key = object_key(module, quick ? 0 : level);
      turn = turn_to_make(key, false);
      if (turn.is_taken()) code = from_disk(key, symbols);
    }
    count(code ? counters().kernel_disk_hits : counters().kernels_compiled);
    if (!code) {
      if (!emitted) emitted = emitted_by(wanted.emit);
      code = compiled(module, symbols, *emitted, quick ? 0 : level);
    }
    if (quick) {
      count(counters().kernels_unoptimised);
      code->set_unoptimised(true);
      // Not for code that nobody has any more.
      const std::weak_ptr<const Code> quick_code = code;
      in_background(
          [module, shown, symbol = symbols[0], label = label ? *label : CodeLabel(),
           emit = *wanted.later, quick_code] {
            if (const auto used = quick_code.lock())
              optimise(module, shown, symbol, label, emit, *used);
          },
          quick_code);
    }
    promise.set_value(code);
    return {std::move(code), std::move(form.numbers)};
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard lock(s.mutex);
    s.made.erase(own);
    throw;
  }
}

}  // namespace code_store

std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names,
                                        FunctionRef<void(IrBuilder&)> emit) {
  if (Planning::now()) return nullptr;
  return code_store::cached({.key = key, .names = names, .emit = emit}).code;
}

std::shared_ptr<const Code> cached_code(const std::string& key, const std::string& name,
                                        const Function<void(IrBuilder&)>& emit, bool hurry) {
  return formed_code(key, name, emit, hurry, true).code;
}

FormedCode formed_code(const std::string& key, const std::string& name,
                       const Function<void(IrBuilder&)>& emit, bool hurry, bool wait) {
  if (Planning::now()) return {};
  return code_store::cached({.key = key,
                             .names = {&name, 1},
                             .emit = emit,
                             .later = hurry ? &emit : nullptr,
                             .wait = wait});
}

void drop_unused_code() {
  code_store::Store& s = code_store::store();
  Vec<code_store::Made> gone;
  {
    const std::lock_guard lock(s.mutex);
    gone = s.made.take_all();
  }
  gone.clear();
  drop_lazy_programs();
}

void set_most_kernels(std::size_t most) {
  code_store::Store& s = code_store::store();
  Vec<code_store::Made> gone;
  Vec<code_store::ModuleForm> forms_gone;
  const std::lock_guard lock(s.mutex);
  s.made.set_most(most, gone);
  s.forms.set_most(most, forms_gone);
}

}  // namespace vt::detail::cpu

#endif
