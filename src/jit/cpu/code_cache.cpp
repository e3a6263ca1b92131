// Machine code by key: made once in a process, and (through the disk cache) once on a machine.
#include "code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <future>
#include <mutex>
#include <unordered_map>

#include "../counters.hpp"

namespace vt::detail::cpu {

namespace code_store {

struct Store {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_future<std::shared_ptr<const Code>>> made;
};
Store& store() {
  static Store* s = new Store;  // never destroyed: threads may still run kernels while the process ends
  return *s;
}

}  // namespace code_store

std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names, const std::function<void(IrBuilder&)>& emit) {
  code_store::Store& s = code_store::store();
  std::promise<std::shared_ptr<const Code>> promise;
  std::shared_future<std::shared_ptr<const Code>> there;
  {
    std::lock_guard lock(s.mutex);
    const auto [at, fresh] = s.made.try_emplace(key);
    if (fresh) at->second = promise.get_future().share();
    else there = at->second;
  }
  if (there.valid()) {
    count(counters().kernel_memory_hits, 1);
    return there.get();
  }
  try {
    IrBuilder builder;
    emit(builder);
    const std::vector<char> object = compile_object(builder);
    auto code = std::make_shared<const Code>(object, names);
    count(counters().kernels_compiled, 1);
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
