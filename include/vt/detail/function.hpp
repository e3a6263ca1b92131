// Function, which keeps a callable, and FunctionRef, which only refers to one. With std::function
// each of vt's some two hundred lambdas would cost a header-only program several times as many
// functions to compile.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace vt {
class Tensor;
}

namespace vt::detail {

/// Is F a function of such arguments, and one that gives R? A Tensor is none: x(i, j) reads its
/// elements.
template <class F, class... Arguments>
inline constexpr bool is_callable =
    !std::is_same_v<std::remove_cvref_t<F>, Tensor> && std::is_invocable_v<F, Arguments...>;
template <class R, class F, class... Arguments>
inline constexpr bool gives =
    !std::is_same_v<std::remove_cvref_t<F>, Tensor> && std::is_invocable_r_v<R, F, Arguments...>;

/// Ends a callable that has no destructor: one function for all of them.
inline void drop_plain(void* target) { ::operator delete(target); }

template <class Signature>
class Function;
template <class Signature>
class FunctionRef;

/// Keeps a callable, or nothing. Copies share it.
template <class R, class... Arguments>
class Function<R(Arguments...)> {
 public:
  Function() = default;
  Function(std::nullptr_t) {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Function> &&
             gives<R, std::remove_cvref_t<F>&, Arguments...>)
  [[gnu::always_inline]]  // one allocation; also where nothing else is inlined
  Function(F&& f)
      : target_(new Target<std::decay_t<F>>{
            {1, Target<std::decay_t<F>>::run, drop_of<std::decay_t<F>>()}, static_cast<F&&>(f)}) {}
  Function(const Function& other) noexcept : target_(other.target_) {
    if (target_) target_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Function(Function&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  Function& operator=(Function other) noexcept {
    std::swap(target_, other.target_);
    return *this;
  }
  ~Function() {
    if (target_ && target_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
      target_->destroy(target_);
  }

  explicit operator bool() const { return target_ != nullptr; }
  R operator()(Arguments... arguments) const {
    return target_->call(target_, static_cast<Arguments&&>(arguments)...);
  }

 private:
  struct Head {
    std::atomic<int> owners{1};
    R (*call)(Head*, Arguments...);
    void (*destroy)(void*);
  };
  template <class F>
  struct Target : Head {
    F f;
    static R run(Head* head, Arguments... arguments) {
      if constexpr (std::is_void_v<R>)
        static_cast<Target*>(head)->f(static_cast<Arguments&&>(arguments)...);
      else return static_cast<Target*>(head)->f(static_cast<Arguments&&>(arguments)...);
    }
    static void drop(void* head) { delete static_cast<Target*>(static_cast<Head*>(head)); }
  };
  template <class F>
  [[gnu::always_inline]] static constexpr auto drop_of() -> void (*)(void*) {
    if constexpr (std::is_trivially_destructible_v<F> &&
                  alignof(Target<F>) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      return drop_plain;
    else return Target<F>::drop;
  }

  Head* target_ = nullptr;
};

/// Refers to a callable that outlives it: for parameters only.
template <class R, class... Arguments>
class FunctionRef<R(Arguments...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  [[gnu::always_inline]]  // two stores; also where nothing else is inlined
  FunctionRef(F&& f)
      : target_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_(run<std::remove_reference_t<F>>) {}

  R operator()(Arguments... arguments) const {
    return call_(target_, static_cast<Arguments&&>(arguments)...);
  }

 private:
  template <class F>
  static R run(void* target, Arguments... arguments) {
    if constexpr (std::is_void_v<R>)
      (*static_cast<F*>(target))(static_cast<Arguments&&>(arguments)...);
    else return (*static_cast<F*>(target))(static_cast<Arguments&&>(arguments)...);
  }

  void* target_;
  R (*call_)(void*, Arguments...);
};

}  // namespace vt::detail
