// RecursiveFunction: what a recursive_call refers to. A function and all that is derived from it
// belong to one family, which owns them; equations in the bodies refer to members without owning
// them, so that there is no cycle of ownership.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/error.hpp>

#include "../base/locks.hpp"
#include "called_function.hpp"
#include "executable.hpp"
#include "graph.hpp"
#include "sub_graph.hpp"

namespace vt::detail {

struct RecursiveFamily;

/// One function at one signature.
struct RecursiveFunction {
  std::string name;
  const RecursiveFunction* users = nullptr;  ///< the user's function that it is derived from
  Vec<Aval> inputs, outputs;                 ///< known before the body is
  GraphRef body;                             ///< null while it is being recorded
  bool effects = false;
  /// It is a derivative that computes again, from its arguments, what calls inside gave: while it
  /// runs, executors remember what other recursive functions give, so that each is asked once.
  bool remembers = false;
  int max_depth = 1000;
  RecursiveFamily* family = nullptr;
  /// by DerivedKey; guarded by one mutex of all families
  Vec<std::pair<DerivedKey, RecursiveFunction*>> derived;
  mutable LongMutex<> mutex;
  mutable std::shared_ptr<Executable> compiled;  ///< guarded by the mutex
};
struct RecursiveFamily {
  Vec<std::unique_ptr<RecursiveFunction>> functions;
  RecursiveFunction& add(std::string name) {
    functions.push_back(std::make_unique<RecursiveFunction>());
    functions.back()->name = std::move(name);
    functions.back()->users = functions.back().get();
    functions.back()->family = this;
    return *functions.back();
  }
};

/// Does an equation of the Graph, or one inside, call such a function?
inline bool calls_recursion(const GraphBody& g) {
  return has_equation(g, [](const Equation& e) { return e.op == Op::recursive_call; });
}
/// What a call says that is one too many; `start`: "" or printer::lane_text.
[[noreturn]] inline void fail_too_deep(const std::string& name, std::int64_t depth,
                                       const std::string& start, CallSite where) {
  fail(ErrorKind::value,
       formatted("vt::Recursive: {} calls itself more than {} deep{}; if that is no mistake, give "
                 "it a greater max_depth",
                 name, depth, start),
       where);
}
[[noreturn]] inline void fail_stack_too_small(const std::string& name, std::int64_t depth,
                                              const std::string& start, CallSite where) {
  fail(ErrorKind::value,
       formatted("vt::Recursive: {} calls itself {} deep{}, and the stack of the thread holds no "
                 "more",
                 name, depth, start),
       where);
}

}  // namespace vt::detail
