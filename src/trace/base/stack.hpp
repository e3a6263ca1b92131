// How much is left of this thread's stack, for recursive walks.
#pragma once

#include <cstddef>

#include <vt/error.hpp>

namespace vt::detail {

struct CoroutineStack {
  const char* lowest;
  std::size_t bytes, number;  ///< number: which instance runs on it
};
/// The stack that runs, if it is a Coroutine's and not the thread's.
inline constinit thread_local const CoroutineStack* coroutine_stack = nullptr;
/// The lowest address of the stack that runs; null where that is not known.
const char* stack_end();
/// Bytes left on the stack that runs; very many where that is not known.
std::size_t stack_left();
/// What recording one more function, and an error on top of it, may take of the stack.
inline constexpr std::size_t stack_to_record = 512 * 1024;
/// For walks over bodies of bodies, by recursion. Throws: Error if this thread's stack holds no
/// more levels of them: the thread may not be the one that recorded them.
void need_stack(CallSite);

}  // namespace vt::detail
