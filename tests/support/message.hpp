// The text of the Error that a call throws.
#pragma once

#include <functional>
#include <string>
#include <vt/vt.hpp>

namespace vt_test {

inline std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const vt::Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace vt_test
