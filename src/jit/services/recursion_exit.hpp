// The way out of a kernel whose functions call themselves too deep.
#pragma once

#include <cstdint>
#include <optional>

#include <vt/detail/function.hpp>

namespace vt::detail {

/// Which call was one too many.
struct TooDeep {
  std::int64_t function;  ///< by its number in the kernel
  std::int64_t depth;     ///< calls around it
  bool of_stack;          ///< it is the thread's stack that holds no more
};

/// Runs `kernel`, on this thread, until it returns or calls leave_recursion(): what it says, then.
/// Nothing on the stack between the two is destroyed.
std::optional<TooDeep> run_recursion(FunctionRef<void()> kernel);
/// For generated code.
extern "C" [[noreturn]] void vt_leave_recursion(std::int64_t function, std::int64_t depth,
                                                std::int64_t of_stack);

}  // namespace vt::detail
