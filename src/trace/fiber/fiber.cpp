// Switching of stacks: a few instructions on x86-64 and AArch64, ucontext elsewhere; told to the
// sanitizers.
#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__ELF__) || (!defined(__x86_64__) && !defined(__aarch64__))
#define VT_FIBER_UCONTEXT 1
#endif
#ifdef VT_FIBER_UCONTEXT
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace vt::detail {

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  std::size_t bytes = 0, guard_bytes = 0;
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  bool begun = false;
#ifdef VT_FIBER_UCONTEXT
  ucontext_t context;
#endif
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* tsan = nullptr;
};

namespace fiber_switch {

constinit thread_local Fiber* starting = nullptr;

#if defined(__SANITIZE_ADDRESS__)
constinit thread_local Fiber* came_from = nullptr;
// From an adopted stack, which is known from now on.
void arrive_from_adopted(Fiber* self) {
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &size);
  came_from->stack = static_cast<char*>(const_cast<void*>(bottom));
  came_from->bytes = size;
}
#endif

// The first thing that a fiber does after somebody switched to it. No part of its caller: the
// thread may be another one than before.
[[gnu::noinline]] void arrive([[maybe_unused]] Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  if (!came_from->body) return arrive_from_adopted(self);
  __sanitizer_finish_switch_fiber(self->fake_stack, nullptr, nullptr);
#endif
}

[[noreturn]] void begin() {
  Fiber* self = starting;
  arrive(self);
  self->body(self->argument);
  std::abort();
}

}  // namespace fiber_switch

#ifndef VT_FIBER_UCONTEXT
extern "C" void vt_switch_stack(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl vt_switch_stack
.hidden vt_switch_stack
.type vt_switch_stack,@function
vt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size vt_switch_stack,.-vt_switch_stack
.popsection
)");
#else
asm(R"(
.pushsection .text
.globl vt_switch_stack
.hidden vt_switch_stack
.type vt_switch_stack,%function
vt_switch_stack:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size vt_switch_stack,.-vt_switch_stack
.popsection
)");
#endif
#endif

void restart_fiber(Fiber* fiber, void* argument) {
  fiber->argument = argument;
  fiber->begun = false;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(fiber->stack, fiber->bytes);  // what an abandoned body had marked
#endif
#ifdef VT_FIBER_UCONTEXT
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = fiber->bytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, fiber_switch::begin, 0);
#elif defined(__x86_64__)
  // Six registers and the address to return to; at a function's first instruction the stack is 8
  // bytes off a multiple of 16.
  auto* top = reinterpret_cast<std::uint64_t*>(fiber->stack + fiber->bytes) - 2;
  top[1] = 0;
  top[0] = reinterpret_cast<std::uint64_t>(&fiber_switch::begin);
  for (int i = 1; i <= 6; ++i) top[-i] = 0;
  fiber->stack_pointer = top - 6;
#else
  auto* top = reinterpret_cast<std::uint64_t*>(fiber->stack + fiber->bytes) - 22;
  for (int i = 0; i < 22; ++i) top[i] = 0;
  top[11] = reinterpret_cast<std::uint64_t>(&fiber_switch::begin);  // x30
  fiber->stack_pointer = top;
#endif
  fiber->fake_stack = nullptr;
}

Fiber* make_fiber(std::size_t stack_bytes, void (*body)(void*), void* argument) {
  const std::size_t page = ::sysconf(_SC_PAGESIZE);
  stack_bytes = (stack_bytes + page - 1) / page * page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void* memory = ::mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* fiber = new (std::nothrow) Fiber;
  // A stack that overflows ends the process, not its neighbour.
  if (!fiber || ::mprotect(memory, page, PROT_NONE) != 0) {
    ::munmap(memory, stack_bytes + page);
    delete fiber;
    return nullptr;
  }
  fiber->guard_bytes = page;
  fiber->stack = static_cast<char*>(memory) + page;
  fiber->bytes = stack_bytes;
  fiber->body = body;
#if defined(__SANITIZE_THREAD__)
  fiber->tsan = __tsan_create_fiber(0);
#endif
  restart_fiber(fiber, argument);
  return fiber;
}

void drop_fiber(Fiber* fiber) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(fiber->stack, fiber->bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fiber->tsan);
#endif
  ::munmap(fiber->stack - fiber->guard_bytes, fiber->bytes + fiber->guard_bytes);
  delete fiber;
}

Fiber* adopt_thread() {
  auto* fiber = new Fiber;
#if defined(__SANITIZE_THREAD__)
  fiber->tsan = __tsan_get_current_fiber();
#endif
  return fiber;
}

void drop_adopted(Fiber* fiber) { delete fiber; }

namespace fiber_switch {

// `fake_stack`: where AddressSanitizer keeps what it has of `from`; null: it is not needed again.
void go(Fiber* from, Fiber* to, [[maybe_unused]] void** fake_stack) {
  if (to->body && !to->begun) {
    to->begun = true;
    starting = to;
  }
#if defined(__SANITIZE_ADDRESS__)
  came_from = from;
  __sanitizer_start_switch_fiber(fake_stack, to->stack, to->bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
#ifdef VT_FIBER_UCONTEXT
  swapcontext(&from->context, &to->context);
#else
  vt_switch_stack(&from->stack_pointer, to->stack_pointer);
#endif
  arrive(from);
}

}  // namespace fiber_switch

void switch_fiber(Fiber* from, Fiber* to) { fiber_switch::go(from, to, &from->fake_stack); }
void leave_fiber(Fiber* from, Fiber* to) { fiber_switch::go(from, to, nullptr); }

bool on_stack(const Fiber* fiber, const void* address) {
  const auto* p = static_cast<const char*>(address);
  return p >= fiber->stack && p < fiber->stack + fiber->bytes;
}
const char* lowest_of_stack(const Fiber* fiber) { return fiber->stack; }

}  // namespace vt::detail
