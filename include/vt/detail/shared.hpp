// new_shared: std::make_shared at a fifth of its functions, for which a header-only program waits.
#pragma once

#include <memory>

namespace vt::detail {

/// Owns `object`, which `drop` deletes.
inline std::shared_ptr<void> shared_of(void* object, void (*drop)(void*)) { return std::shared_ptr<void>(object, drop); }

/// A new T in a shared_ptr. (The count of owners is a second allocation.)
template <class T, class... Arguments>
std::shared_ptr<T> new_shared(Arguments&&... arguments) {
  using Plain = std::remove_const_t<T>;
  Plain* object = new Plain(static_cast<Arguments&&>(arguments)...);
  return std::shared_ptr<T>(shared_of(object, [](void* p) { delete static_cast<Plain*>(p); }), object);
}

}  // namespace vt::detail
