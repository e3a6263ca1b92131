// Coroutine: its stack, from a pool, and what is exchanged when it goes on.
#include "coroutine.hpp"

#include <cxxabi.h>

#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/locks.hpp"

namespace vt::detail {

namespace coroutines {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_size = 4 << 20;
#else
constexpr std::size_t stack_size = 1 << 20;
#endif
// So many stacks wait for the next ones; each keeps the pages that were touched.
constexpr std::size_t most_kept = 4096;

struct Pool {
  Mutex mutex;
  Vec<Fiber*> free;
};
Pool& pool() {
  static Pool* const made = new Pool;  // a thread may end after the process's objects
  return *made;
}

Fiber* take(void (*body)(void*), void* argument) {
  {
    Pool& p = pool();
    const std::lock_guard lock(p.mutex);
    if (!p.free.empty()) {
      Fiber* const fiber = p.free.back();
      p.free.pop_back();
      restart_fiber(fiber, argument);
      return fiber;
    }
  }
  Fiber* const fiber = make_fiber(stack_size, body, argument);
  if (!fiber) throw std::bad_alloc();
  return fiber;
}
void give(Fiber* fiber) {
  {
    Pool& p = pool();
    const std::lock_guard lock(p.mutex);
    if (p.free.size() < most_kept) return p.free.push_back(fiber);
  }
  drop_fiber(fiber);
}

struct OfThread {
  Fiber* fiber = adopt_thread();
  ~OfThread() { drop_adopted(fiber); }
};
Fiber* thread_fiber() {
  static thread_local OfThread own;
  return own.fiber;
}

constinit thread_local Coroutine* current = nullptr;

}  // namespace coroutines

Coroutine::Coroutine(FunctionRef<void()> body, std::size_t number)
    : fiber_(coroutines::take(&Coroutine::run, this)),
      body_(body),
      stack_{lowest_of_stack(fiber_), coroutines::stack_size, number} {}
Coroutine::~Coroutine() { coroutines::give(fiber_); }

Coroutine* Coroutine::running() { return coroutines::current; }

void Coroutine::exchange() {
  void* const globals = abi::__cxa_get_globals();
  Running::Exceptions before;
  std::memcpy(&before, globals, sizeof before);
  std::memcpy(globals, &running_.exceptions, sizeof before);
  running_.exceptions = before;
  running_.label = Span::exchange_innermost(running_.label);
}

void Coroutine::run(void* coroutine) {
  auto* const self = static_cast<Coroutine*>(coroutine);
  self->body_();
  self->ended_ = true;
  leave_fiber(self->fiber_, coroutines::thread_fiber());
}

void Coroutine::resume() {
  using namespace coroutines;
  Fiber* const thread = thread_fiber();
  if (!std::exchange(begun_, true)) running_.label = Span::innermost();
  for (;;) {
    current = this;
    coroutine_stack = &stack_;
    exchange();
    switch_fiber(thread, fiber_);
    exchange();
    current = nullptr;
    coroutine_stack = nullptr;
    if (!request_) return;
    (*std::exchange(request_, nullptr))();
  }
}

void Coroutine::wait() { switch_fiber(coroutines::current->fiber_, coroutines::thread_fiber()); }

void Coroutine::on_thread_stack(FunctionRef<void()> f) {
  Coroutine* const self = coroutines::current;
  if (!self) return f();
  std::exception_ptr thrown;
  const auto guarded = [&] {
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  const FunctionRef<void()> request = guarded;
  self->request_ = &request;
  wait();
  if (thrown) std::rethrow_exception(std::move(thrown));
}

}  // namespace vt::detail
