// Machine code by key: made once in a process, and (through the disk cache) once on a machine.
#include "code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>

#include <vt/error.hpp>
#include <vt/small_vec.hpp>

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

/// Which module is emitted for a key, and its numbers.
struct ModuleForm {
  CacheKey module;
  Vec<std::int64_t> numbers;
};

using Made = std::shared_future<std::shared_ptr<const Code>>;

struct Store {
  std::mutex mutex;
  RecentMap<std::string, Made> made{most_kernels};
  RecentMap<std::string, ModuleForm> forms{most_kernels};
};
Store& store() {
  // never destroyed: threads may still run kernels while the process ends
  static Store* s = new Store;
  return *s;
}

// What an object file depends on besides `key`: this build of vt, the LLVM it was built for, the
// machine. Not the loaded
// library itself: what is on disk can run without it.
CacheKey disk_key(const std::string& key, int level) {
  static const std::string common = "vt " + std::to_string(emitter_version) + "|" +
                                    program_identity() + "|LLVM " LLVM_VERSION_STRING "|";
  Target target = host_target();
  target.level = level;
  return cache_key(common + target.key() + "|" + key);
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

// VT_DUMP: what the key says, and the code, under the name that explain uses.
void dump(const std::string& key, FunctionRef<void(IrBuilder&)> emit) {
  IrBuilder builder;
  emit(builder);
  const std::string name = short_name(key);
  dump_text(name + ".txt", key);
  dump_text(name + ".ll", builder.text());
  dump_text(name + ".s", compile_assembly(builder));
}

std::shared_ptr<const Code> compiled(CacheKey on_disk, std::span<const std::string> names,
                                     IrBuilder& builder, int level) {
  background_rest();
  const Vec<char> object = compile_object(builder, {.level = level});
  auto code = std::make_shared<const Code>(object, names);
  DiskCache::process().store(on_disk, object);
  return code;
}

std::shared_ptr<const Code> compiled(CacheKey on_disk, std::span<const std::string> names,
                                     FunctionRef<void(IrBuilder&)> emit, int level) {
  IrBuilder builder;
  emit(builder);
  return compiled(on_disk, names, builder, level);
}

// On the background thread.
void optimise(const std::string& key, const std::string& name, const CodeLabel& label,
              const Function<void(IrBuilder&)>& emit, const Code& quick) {
  try {
    const CodeLabelScope seen(label);
    static_cast<void>(llvm());
    background_ends_first();
    const std::string shown = timeline_wanted() ? "code " + short_name(key) + ", optimised" : "";
    const Span span("compile", shown);
    quick.replace(
        compiled(disk_key(key, host_target().level), {&name, 1}, emit, host_target().level));
    background_ends_first();
    count(counters().kernels_optimised);
    DiskCache::process().remove(disk_key(key, 0));
  } catch (const std::exception& e) {
    warn_once(std::string("a kernel stays unoptimised: ") + e.what());
  }
}

// What is asked for.
struct Wanted {
  const std::string& key;
  const std::string& shown;  ///< the key that explain and VT_DUMP name it after
  std::span<const std::string> names;
  FunctionRef<void(IrBuilder&)> emit;
  IrBuilder* emitted = nullptr;  ///< what `emit` builds, if it is there already
  const Function<void(IrBuilder&)>* later = nullptr;  ///< where one is in a hurry
  bool wait = true;                                   ///< … for another thread that makes the same
  bool dumps = true;                                  ///< where VT_DUMP asks for it
};

std::shared_ptr<const Code> cached(const Wanted& wanted) {
  // What a label is for has a name of its own, and where lines are kept, code of its own.
  const CodeLabel* label = CodeLabelScope::innermost();
  std::string own = wanted.key, stored = wanted.key;
  Vec<std::string> symbols;
  for (const std::string& name : wanted.names) symbols.push_back(code_symbol(name));
  if (label) own += "\n" + label->text();
  if (label && gdb_wanted()) stored = own += label->lines;
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
      return nullptr;
    count(counters().kernel_memory_hits, 1);
    return there.get();
  }
  try {
    if (wanted.dumps && !dump_folder().empty()) dump(wanted.shown, wanted.emit);
    // the name that explain and VT_DUMP give it
    const std::string name = timeline_wanted() ? "code " + short_name(wanted.shown) : "";
    const Span span("compile", name);
    const int level = host_target().level;
    CacheKey on_disk = disk_key(stored, level);
    std::shared_ptr<const Code> code = from_disk(on_disk, symbols);
    const bool quick = !code && wanted.later && level > 0 && background_open();
    if (quick) {
      on_disk = disk_key(stored, 0);
      code = from_disk(on_disk, symbols);
    }
    count(code ? counters().kernel_disk_hits : counters().kernels_compiled);
    if (!code)
      code = wanted.emitted ? compiled(on_disk, symbols, *wanted.emitted, quick ? 0 : level)
                            : compiled(on_disk, symbols, wanted.emit, quick ? 0 : level);
    if (quick) {
      count(counters().kernels_unoptimised);
      code->set_unoptimised(true);
      // Not for code that nobody has any more.
      const std::weak_ptr<const Code> quick_code = code;
      in_background(
          [stored, symbol = symbols[0], label = label ? *label : CodeLabel(), emit = *wanted.later,
           quick_code] {
            if (const auto used = quick_code.lock()) optimise(stored, symbol, label, emit, *used);
          },
          quick_code);
    }
    promise.set_value(code);
    return code;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard lock(s.mutex);
    s.made.erase(own);
    throw;
  }
}

// Entries on disk: the module's key, then the numbers.
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

// `emitted` becomes the module, if it had to be built.
ModuleForm form_of(const std::string& key, FunctionRef<void(IrBuilder&)> emit,
                   std::unique_ptr<IrBuilder>& emitted) {
  std::string own = key;
  if (const CodeLabel* label = gdb_wanted() ? CodeLabelScope::innermost() : nullptr)
    own += "\n" + label->text() + label->lines;
  Store& s = store();
  {
    std::lock_guard lock(s.mutex);
    if (const ModuleForm* known = s.forms.find(own)) return *known;
  }
  if (!dump_folder().empty()) dump(key, emit);
  const CacheKey on_disk = disk_key("form\n" + own, host_target().level);
  ModuleForm form;
  const std::optional<Vec<char>> kept = DiskCache::process().load(on_disk);
  if (!kept || !from_bytes(*kept, form)) {
    const Span span("compile", "emit");
    emitted = std::make_unique<IrBuilder>();
    emit(*emitted);
    form = {emitted->identity(), emitted->numbers()};
    DiskCache::process().store(on_disk, to_bytes(form));
  }
  Vec<ModuleForm> gone;
  std::lock_guard lock(s.mutex);
  s.forms.emplace(own, form, gone);
  return form;
}

}  // namespace code_store

std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names,
                                        FunctionRef<void(IrBuilder&)> emit) {
  if (Planning::now()) return nullptr;
  return code_store::cached({.key = key, .shown = key, .names = names, .emit = emit});
}

std::shared_ptr<const Code> cached_code(const std::string& key, const std::string& name,
                                        const Function<void(IrBuilder&)>& emit, bool hurry) {
  if (Planning::now()) return nullptr;
  return code_store::cached({.key = key,
                             .shown = key,
                             .names = {&name, 1},
                             .emit = emit,
                             .later = hurry ? &emit : nullptr});
}

FormedCode formed_code(const std::string& key, const std::string& name,
                       const Function<void(IrBuilder&)>& emit, bool hurry, bool wait) {
  if (Planning::now()) return {};
  std::unique_ptr<IrBuilder> emitted;
  code_store::ModuleForm form = code_store::form_of(key, emit, emitted);
  const std::string module =
      "module " + std::to_string(form.module.high) + " " + std::to_string(form.module.low);
  auto code = code_store::cached({.key = module,
                                  .shown = key,
                                  .names = {&name, 1},
                                  .emit = emit,
                                  .emitted = emitted.get(),
                                  .later = hurry ? &emit : nullptr,
                                  .wait = wait,
                                  .dumps = false});
  return {std::move(code), std::move(form.numbers)};
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
