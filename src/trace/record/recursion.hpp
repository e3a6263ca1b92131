// Recursive functions: what a recursive_call refers to, and what transforms have made of it. A
// function, those derived from it and all their bodies belong to one family; inside of the bodies
// equations refer to members without owning them, so that nothing owns itself.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../ir/executable.hpp"
#include "called.hpp"

namespace vt::detail {

struct RecursiveFamily;

/// One function at one signature.
struct RecursiveFunction {
  std::string name;
  Vec<Aval> inputs, outputs;  ///< known before the body is
  GraphRef body;              ///< null while it is being recorded
  bool effects = false;
  int max_depth = 1000;
  RecursiveFamily* family = nullptr;
  /// by DerivedKey; guarded by one mutex of all families
  Vec<std::pair<std::string, RecursiveFunction*>> derived;
  mutable std::mutex mutex;
  mutable std::shared_ptr<Executable> compiled;  ///< guarded by the mutex
};
struct RecursiveFamily {
  Vec<Box<RecursiveFunction>> functions;
  RecursiveFunction& add(std::string name);
};

/// What is recorded refers to a function whose results are not known yet. Thrown while a function
/// is recorded for the first time; branches that do not call it tell its types.
struct UnknownResult {
  std::size_t recording;  ///< whose, from the outermost
  Where where;
};

/// The function that `make` records, or has recorded before, with results like `outputs`. Its body
/// may refer to it.
/// Throws: Error if the function is transformed while it is recorded itself.
RecursionParams derive_recursive(const RecursionParams&, const DerivedKey&, Vec<Aval> outputs,
                                 bool effects, FunctionRef<Recorded()> make);
std::vector<Tensor> emit_recursive(const RecursionParams&, std::span<const Tensor> operands, Where);
/// The same function without its effects.
RecursionParams without_effects(const RecursionParams&);
/// Gives a body that has been recorded to its function.
void finish_recursive(RecursiveFunction&, GraphBody&&);

/// While it lives, a recursive function runs. Throws: Error if it is too deep inside of others.
class RecursionGuard {
 public:
  RecursionGuard(const RecursiveFunction&, Where);
  ~RecursionGuard();
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
};
/// Bytes left on this thread's stack; very many where that is not known.
std::size_t stack_left();
/// What recording one more function, and an error on top of it, may take of the stack.
inline constexpr std::size_t stack_to_record = 512 * 1024;
/// For walks over bodies of bodies, by recursion. Throws: Error if this thread's stack holds no
/// more levels of them: the thread may not be the one that recorded them.
void need_stack(Where);

}  // namespace vt::detail
