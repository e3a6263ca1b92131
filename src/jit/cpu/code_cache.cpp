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
#include "../backend.hpp"
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
CacheKey disk_key(const std::string& key) {
  static const std::string common =
      "vt " + std::to_string(emitter_version) + "|" + program_identity() + "|LLVM " LLVM_VERSION_STRING "|" + host_target().key() + "|";
  return cache_key(common + key);
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

}  // namespace code_store

std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names, FunctionRef<void(IrBuilder&)> emit) {
  code_store::Store& s = code_store::store();
  std::promise<std::shared_ptr<const Code>> promise;
  std::shared_future<std::shared_ptr<const Code>> there;
  {
    std::lock_guard lock(s.mutex);
    const auto [at, fresh] = s.made.emplace(key, {});
    if (fresh) at->second = promise.get_future().share();
    else there = at->second;
  }
  if (there.valid()) {
    count(counters().kernel_memory_hits, 1);
    return there.get();
  }
  try {
    const std::string name = timeline_wanted() ? "code " + short_name(key) : "";  // the name that explain and VT_DUMP give it
    const Span span("compile", name);
    const CacheKey on_disk = code_store::disk_key(key);
    std::shared_ptr<const Code> code = code_store::from_disk(on_disk, names);
    if (code) {
      count(counters().kernel_disk_hits, 1);
    } else {
      IrBuilder builder;
      emit(builder);
      const Vec<char> object = compile_object(builder);
      code = new_shared<const Code>(object, names);
      count(counters().kernels_compiled, 1);
      DiskCache::process().store(on_disk, object);
    }
    promise.set_value(code);
    return code;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard lock(s.mutex);
    s.made.erase(key);
    throw;
  }
}

}  // namespace vt::detail::cpu

#endif
