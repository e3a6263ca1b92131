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
