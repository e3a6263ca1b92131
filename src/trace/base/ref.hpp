// Ref<T>: intrusive shared ownership for the small immutable objects of the IR: one pointer and one
// allocation, where a shared_ptr has two words to copy for each operand of each equation.
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
    // The last holder needs no atomic update: nobody else can take a reference.
    if (p_ && (p_->references.load(std::memory_order_acquire) == 1 ||
               p_->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      delete p_;
  }
  /// Owns what nobody else has seen yet.
  static Ref of_new(T* p) noexcept {
    Ref r;
    r.p_ = p;
    p->references.store(1, std::memory_order_relaxed);
    return r;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

}  // namespace vt::detail
