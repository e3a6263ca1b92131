// The lines that debug_print writes while a function runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace vt_test {

using Lines = std::vector<std::string>;

/// What `f` prints, line by line; also of one that throws, if `f` catches.
inline Lines printed(const std::function<void()>& f) {
  Lines lines;
  vt::set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  struct Restore {
    ~Restore() { vt::set_print_sink(nullptr); }
  } restore;
  f();
  return lines;
}

}  // namespace vt_test
