// Owners of objects on the heap: new_shared and Box, std::make_shared and std::unique_ptr at a
// fifth of their functions, for which a header-only program waits.
#pragma once

#include <memory>
#include <type_traits>

namespace vt::detail {

/// Owns `object`, which `drop` deletes.
inline std::shared_ptr<void> shared_of(void* object, void (*drop)(void*)) {
  return std::shared_ptr<void>(object, drop);
}

/// A new T in a shared_ptr. (The count of owners is a second allocation.)
template <class T, class... Arguments>
std::shared_ptr<T> new_shared(Arguments&&... arguments) {
  using Plain = std::remove_const_t<T>;
  Plain* object = new Plain(static_cast<Arguments&&>(arguments)...);
  return std::shared_ptr<T>(shared_of(object, [](void* p) { delete static_cast<Plain*>(p); }),
                            object);
}

/// Owns one object, or none.
template <class T>
class Box {
 public:
  Box() = default;
  explicit Box(T* object) : object_(object) {}
  Box(Box&& other) noexcept : object_(other.release()) {}
  template <class U>
  Box(Box<U>&& other) noexcept : object_(other.release()) {}
  Box& operator=(Box&& other) noexcept {
    T* object = other.release();
    delete object_;
    object_ = object;
    return *this;
  }
  ~Box() { delete object_; }

  T* release() {
    T* object = object_;
    object_ = nullptr;
    return object;
  }
  [[gnu::always_inline]] T* get() const { return object_; }
  [[gnu::always_inline]] T* operator->() const { return object_; }
  [[gnu::always_inline]] T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Arguments>
Box<T> new_box(Arguments&&... arguments) {
  return Box<T>(new T(static_cast<Arguments&&>(arguments)...));
}

}  // namespace vt::detail
