// Planning: while one exists, this thread's programs are planned but not compiled, to see what
// memory they take.
#pragma once

namespace vt::detail {

/// While one exists programs of this thread are planned only: nothing is compiled, and they cannot
/// run.
class Planning {
 public:
  Planning() { ++depth(); }
  ~Planning() { --depth(); }
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
  static bool now() { return depth() > 0; }

 private:
  static int& depth() {
    static thread_local int count = 0;
    return count;
  }
};

}  // namespace vt::detail
