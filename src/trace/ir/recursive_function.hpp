// RecursiveFunction: what a recursive_call refers to. A function and all that is derived from it
// belong to one family, which owns them; equations in the bodies refer to members without owning
// them, so that there is no cycle of ownership.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "called_function.hpp"
#include "executable.hpp"
#include "graph.hpp"

namespace vt::detail {

struct RecursiveFamily;

/// One function at one signature.
struct RecursiveFunction {
  std::string name;
  Vec<Aval> inputs, outputs;  ///< known before the body is
  GraphRef body;              ///< null while it is being recorded
  bool effects = false;
  /// It is a derivative that computes again, from its arguments, what calls inside gave: while it
  /// runs, executors remember what other recursive functions give, so that each is asked once.
  bool remembers = false;
  int max_depth = 1000;
  RecursiveFamily* family = nullptr;
  /// by DerivedKey; guarded by one mutex of all families
  Vec<std::pair<DerivedKey, RecursiveFunction*>> derived;
  mutable std::mutex mutex;
  mutable std::shared_ptr<Executable> compiled;  ///< guarded by the mutex
};
struct RecursiveFamily {
  Vec<std::unique_ptr<RecursiveFunction>> functions;
  RecursiveFunction& add(std::string name) {
    functions.push_back(std::make_unique<RecursiveFunction>());
    functions.back()->name = std::move(name);
    functions.back()->family = this;
    return *functions.back();
  }
};

}  // namespace vt::detail
