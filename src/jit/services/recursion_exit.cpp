// The way out of a kernel whose functions call themselves too deep: one jump over all its frames,
// so that they need not ask after each call whether they are to return.
#include "recursion_exit.hpp"

#include <csetjmp>

namespace vt::detail {

namespace recursion_exit {

struct Exit {
  std::jmp_buf place;
  TooDeep why;
};
constinit thread_local Exit* innermost = nullptr;

}  // namespace recursion_exit

std::optional<TooDeep> run_recursion(FunctionRef<void()> kernel) {
  using namespace recursion_exit;
  Exit exit;
  innermost = &exit;  // a kernel runs no other
  if (setjmp(exit.place) != 0) return exit.why;
  kernel();
  return std::nullopt;
}

void vt_leave_recursion(std::int64_t function, std::int64_t depth, std::int64_t of_stack) {
  recursion_exit::innermost->why = {function, depth, of_stack != 0};
  std::longjmp(recursion_exit::innermost->place, 1);
}

}  // namespace vt::detail
