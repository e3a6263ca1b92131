// How much is left of this thread's stack.
#include "stack.hpp"

#include <limits>
#include <string>
#if defined(__linux__)
#include <pthread.h>
#endif

#include "buffer.hpp"

namespace vt::detail {

const char* stack_end() {
  if (coroutine_stack) return coroutine_stack->lowest;
#if defined(__linux__)
  static thread_local const char* lowest = [] {
    pthread_attr_t attributes;
    void* begin = nullptr;
    std::size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &begin, &size);
      pthread_attr_destroy(&attributes);
    }
    return static_cast<const char*>(begin);
  }();
  return lowest;
#else
  return nullptr;
#endif
}

std::size_t stack_left() {
  const char* const end = stack_end();
  if (!end) return std::numeric_limits<std::size_t>::max();
  // Not the address of a variable: AddressSanitizer keeps those elsewhere.
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  return here < end ? 0 : static_cast<std::size_t>(here - end);
}

void need_stack(CallSite where) {
  // An op at the innermost level, or an error.
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::size_t needed = 128 * 1024;
#else
  constexpr std::size_t needed = 48 * 1024;
#endif
  if (stack_left() >= needed) return;
  if (coroutine_stack)
    fail(ErrorKind::transform,
         "vt::instances: instance " + std::to_string(coroutine_stack->number) +
             " recurses deeper than the " + readable_bytes(coroutine_stack->bytes) +
             " of stack that an instance has; write a loop in place of the recursion, or build the "
             "deep part outside of vt::instances",
         where);
  fail(ErrorKind::transform,
       "vt: bodies and transforms are nested deeper than the stack of this thread holds; write "
       "a loop (vt::fori_loop, vt::while_loop, vt::scan) in place of the nesting, or call from a "
       "thread with a larger stack",
       where);
}

}  // namespace vt::detail
