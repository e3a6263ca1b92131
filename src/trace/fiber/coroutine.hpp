// Coroutine: a function on a stack of its own, where it can wait while others go on.
#pragma once

#include <cstddef>

#include <vt/detail/function.hpp>

#include "../base/stack.hpp"
#include "../base/timeline.hpp"
#include "fiber.hpp"

namespace vt::detail {

class Coroutine {
 public:
  /// `body` may not throw, and lives as long as this. `number`: which of several it is, for
  /// messages. Throws: std::bad_alloc.
  Coroutine(FunctionRef<void()> body, std::size_t number);
  /// It has ended, or has not begun.
  ~Coroutine();
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  /// Runs it until it waits or ends. To be called on the stack of the thread, always the same one.
  void resume();
  bool ended() const { return ended_; }
  std::size_t number() const { return stack_.number; }

  /// The one whose stack the caller is on, or null.
  static Coroutine* running();
  /// Goes back to where the running one was resumed.
  static void wait();
  /// Runs `f` on the stack of the thread, which is larger, and comes back. Outside of coroutines a
  /// plain call.
  static void on_thread_stack(FunctionRef<void()> f);

 private:
  /// What belongs to the code that runs: exceptions, and names in the timeline.
  struct Running {
    struct Exceptions {  // __cxa_eh_globals
      void* caught = nullptr;
      unsigned int uncaught = 0;
    } exceptions;
    Span::Label label = {};
  };
  void exchange();
  static void run(void* coroutine);

  Fiber* fiber_;
  FunctionRef<void()> body_;
  CoroutineStack stack_;
  bool begun_ = false, ended_ = false;
  Running running_;
  const FunctionRef<void()>* request_ = nullptr;  ///< to be run on the thread's stack
};

}  // namespace vt::detail
