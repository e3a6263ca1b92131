// Warnings that are kept for vt::warnings() instead of being printed.
#include "warnings.hpp"

#include <mutex>

#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "environment.hpp"
#include "locks.hpp"

namespace vt::detail {

namespace warning_list {

struct List {
  Mutex mutex;
  Vec<std::string> lines;
};
List& all() {
  static List* const list = new List;  // never destroyed: warnings come while the process ends
  return *list;
}

// Start-up code of a program linked with -ffast-math sets this for all its threads; the compiled
// code and the interpreter run under it, as the processor does.
bool flushes_subnormals() {
#if defined(__x86_64__)
  return (__builtin_ia32_stmxcsr() & 0x8040u) != 0;  // flush to zero, denormals are zero
#elif defined(__aarch64__) && defined(__GNUC__)
  std::uint64_t control = 0;
  __asm__("mrs %0, fpcr" : "=r"(control));
  return (control & (std::uint64_t{1} << 24)) != 0;
#else
  return false;
#endif
}

}  // namespace warning_list

void warn_once(const std::string& line) {
  auto& list = warning_list::all();
  std::lock_guard lock(list.mutex);
  for (const std::string& known : list.lines)
    if (known == line) return;
  // Lines that name shapes or files may be without end.
  constexpr std::size_t most = 1000;
  if (list.lines.size() < most) list.lines.push_back(line);
  else if (list.lines.size() == most) list.lines.push_back("more warnings than these are not kept");
}

void warn_of_flushed_subnormals() {
  if (warning_list::flushes_subnormals())
    warn_once(
        "a thread that uses vt flushes subnormal numbers to zero (a program linked with "
        "-ffast-math or -Ofast does so from its start): results below the least normal number "
        "become 0; link without it");
}

}  // namespace vt::detail

namespace vt {

std::string warnings() {
  detail::check_settings();
  auto& list = detail::warning_list::all();
  std::lock_guard lock(list.mutex);
  std::string text;
  for (const std::string& line : list.lines) text += line + "\n";
  return text;
}

}  // namespace vt
