// Fibers: stacks to switch between. Also compiled into the emulated CUDA driver of the tests, so
// that nothing else of vt is needed here.
#pragma once

#include <cstddef>

namespace vt::detail {

struct Fiber;

/// A stack that will run `body(argument)`, which must not return: it leaves for the last time
/// instead. Memory that no stack has touched costs address space only. Null: the system gives no
/// more memory.
Fiber* make_fiber(std::size_t stack_bytes, void (*body)(void*), void* argument);
/// Begins a body from the start again, whatever the fiber was doing.
void restart_fiber(Fiber* fiber, void* argument);
/// Of a fiber that does not run.
void drop_fiber(Fiber* fiber);
/// The stack that the calling thread of the system runs on.
Fiber* adopt_thread();
void drop_adopted(Fiber* fiber);
/// Goes on in `to`, from `from`, which is running. A fiber may go on on another thread, if nothing
/// in it is the first one's.
void switch_fiber(Fiber* from, Fiber* to);
/// The same for the last time before `from` is restarted or dropped.
void leave_fiber(Fiber* from, Fiber* to);

bool on_stack(const Fiber* fiber, const void* address);
/// The lowest address of a made fiber's stack; below it lies a page that cannot be touched.
const char* lowest_of_stack(const Fiber* fiber);

}  // namespace vt::detail
