// Stacks to switch between: a thread of a kernel that waits keeps its own.
#pragma once

#include <cstddef>

namespace emulator {

struct Fiber;

/// A stack that will run `body(argument)`, which must not return: it switches away for the last
/// time instead.
Fiber* make_fiber(std::size_t stack_bytes, void (*body)(void*), void* argument);
/// Begins the body from the start again, whatever it was doing.
void restart_fiber(Fiber* fiber);
/// The stack that the calling thread of the system runs on.
Fiber* adopt_thread();
void drop_adopted(Fiber* fiber);
/// Goes on in `to`, from `from`, which is running.
void switch_fiber(Fiber* from, Fiber* to);
/// To be called where a fiber goes on: at the begin of its body and after each switch back.
bool on_stack(const Fiber* fiber, const void* address);

}  // namespace emulator
