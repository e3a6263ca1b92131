// Ref<T>: intrusive shared ownership for the small immutable objects of the IR.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace vt::detail {

struct RefCounted {
  mutable std::atomic<std::uint32_t> references{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_) p_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

}  // namespace vt::detail
