// CalledFunction: the function of a call equation, with what transforms have made of it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "params.hpp"

namespace vt::detail {

struct DerivedFunction;

/// The function that a call names. One object for all calls of one body.
struct CalledFunction {
  std::string name;
  mutable std::mutex mutex;
  /// by what was asked for
  mutable Vec<std::pair<std::string, std::shared_ptr<const DerivedFunction>>> derived;
};
inline CalledRef called_function(std::string name) {
  auto f = std::make_shared<CalledFunction>();
  f->name = std::move(name);
  return f;
}

}  // namespace vt::detail
