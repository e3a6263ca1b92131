// Machine code by key: made once in a process, and (through the disk cache) once on a machine.
#include "code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <future>
#include <mutex>

#include <vt/detail/shared.hpp>
#include <vt/error.hpp>
#include <vt/small_vec.hpp>

#include "../../trace/hash_map.hpp"
#include "../../trace/timeline.hpp"
#include "../../trace/warnings.hpp"
#include "../backend.hpp"
#include "../background.hpp"
#include "../code_label.hpp"
#include "../counters.hpp"
#include "../disk_cache.hpp"

namespace vt::detail::cpu {

namespace code_store {

struct Store {
  std::mutex mutex;
  HashMap<std::string, std::shared_future<std::shared_ptr<const Code>>> made;
};
Store& store() {
  static Store* s = new Store;  // never destroyed: threads may still run kernels while the process ends
  return *s;
}

// What an object file depends on besides `key`: this build of vt, the LLVM it was built for, the machine. Not the loaded
// library itself: what is on disk can run without it.
CacheKey disk_key(const std::string& key, int level) {
  static const std::string common = "vt " + std::to_string(emitter_version) + "|" + program_identity() + "|LLVM " LLVM_VERSION_STRING "|";
  Target target = host_target();
  target.level = level;
  return cache_key(common + target.key() + "|" + key);
}

std::shared_ptr<const Code> from_disk(CacheKey key, std::span<const std::string> names) {
  const std::optional<Vec<char>> object = DiskCache::process().load(key);
  if (!object) return nullptr;
  try {
    return new_shared<const Code>(*object, names);
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

std::shared_ptr<const Code> compiled(CacheKey on_disk, std::span<const std::string> names, FunctionRef<void(IrBuilder&)> emit, int level) {
  IrBuilder builder;
  emit(builder);
  background_rest();
  const Vec<char> object = compile_object(builder, {.level = level});
  auto code = new_shared<const Code>(object, names);
  DiskCache::process().store(on_disk, object);
  return code;
}

// On the background thread.
void optimise(const std::string& key, const std::string& name, const CodeLabel& label, const Function<void(IrBuilder&)>& emit, const Code& quick) {
  try {
    const CodeLabelScope seen(label);
    static_cast<void>(llvm());
    background_ends_first();
    const std::string shown = timeline_wanted() ? "code " + short_name(key) + ", optimised" : "";
    const Span span("compile", shown);
    quick.replace(compiled(disk_key(key, host_target().level), {&name, 1}, emit, host_target().level));
    background_ends_first();
    count(counters().kernels_optimised);
    DiskCache::process().remove(disk_key(key, 0));
  } catch (const std::exception& e) {
    warn_once(std::string("a kernel stays unoptimised: ") + e.what());
  }
}

// `later`: where one is in a hurry.
std::shared_ptr<const Code> cached(const std::string& key, std::span<const std::string> names, FunctionRef<void(IrBuilder&)> emit,
                                   const Function<void(IrBuilder&)>* later) {
  if (Planning::now()) return nullptr;
  // What a label is for has a name of its own, and where lines are kept, code of its own.
  const CodeLabel* label = CodeLabelScope::innermost();
  std::string own = key, stored = key;
  Vec<std::string> symbols;
  for (const std::string& name : names) symbols.push_back(code_symbol(name));
  if (label) own += "\n" + label->text();
  if (label && gdb_wanted()) stored = own += label->lines;
  Store& s = store();
  std::promise<std::shared_ptr<const Code>> promise;
  std::shared_future<std::shared_ptr<const Code>> there;
  {
    std::lock_guard lock(s.mutex);
    const auto [at, fresh] = s.made.emplace(own, {});
    if (fresh) at->second = promise.get_future().share();
    else there = at->second;
  }
  if (there.valid()) {
    count(counters().kernel_memory_hits, 1);
    return there.get();
  }
  try {
    if (!dump_folder().empty()) dump(key, emit);
    const std::string name = timeline_wanted() ? "code " + short_name(key) : "";  // the name that explain and VT_DUMP give it
    const Span span("compile", name);
    const int level = host_target().level;
    CacheKey on_disk = disk_key(stored, level);
    std::shared_ptr<const Code> code = from_disk(on_disk, symbols);
    const bool quick = !code && later && level > 0 && background_open();
    if (quick) {
      on_disk = disk_key(stored, 0);
      code = from_disk(on_disk, symbols);
    }
    count(code ? counters().kernel_disk_hits : counters().kernels_compiled);
    if (!code) code = compiled(on_disk, symbols, emit, quick ? 0 : level);
    if (quick) {
      count(counters().kernels_unoptimised);
      code->set_hasty(true);
      in_background(
          [stored, symbol = symbols[0], label = label ? *label : CodeLabel(), emit = *later, code] { optimise(stored, symbol, label, emit, *code); });
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

}  // namespace code_store

std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names, FunctionRef<void(IrBuilder&)> emit) {
  return code_store::cached(key, names, emit, nullptr);
}

std::shared_ptr<const Code> cached_code(const std::string& key, const std::string& name, const Function<void(IrBuilder&)>& emit, bool hurry) {
  return code_store::cached(key, {&name, 1}, emit, hurry ? &emit : nullptr);
}

}  // namespace vt::detail::cpu

#endif
