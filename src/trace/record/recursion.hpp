// Recursive functions: what a recursive_call refers to, and what transforms have made of it. A
// function and all that is derived from it belong to one family, which owns them; equations in the
// bodies refer to members without owning them, so that there is no cycle of ownership.
#pragma once

#include <span>
#include <vector>

#include "../base/stack.hpp"
#include "../ir/recursive_function.hpp"
#include "called.hpp"

namespace vt::detail {

/// What is recorded refers to a function whose results are not known yet. Thrown while a function
/// is recorded for the first time; branches that do not call it tell its types.
struct UnknownResult {
  std::size_t recording;  ///< whose, from the outermost
  CallSite where;
};

/// The function that `make` records, or has recorded before, with results like `outputs`. Its body
/// may refer to it.
/// Throws: Error if the function is transformed while it is recorded itself.
RecursionParams derive_recursive(const RecursionParams&, const DerivedKey&, Vec<Aval> outputs,
                                 bool effects, FunctionRef<Recorded()> make);
std::vector<Tensor> emit_recursive(const RecursionParams&, std::span<const Tensor> operands,
                                   CallSite);
/// The same function without its effects.
RecursionParams without_effects(const RecursionParams&);
/// Gives a body that has been recorded to its function.
void finish_recursive(RecursiveFunction&, GraphBody&&);

/// While it lives, a recursive function runs. Throws: Error if it is too deep inside of others.
class RecursionGuard {
 public:
  RecursionGuard(const RecursiveFunction&, std::span<const BufferRef> operands, CallSite);
  ~RecursionGuard();
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;

 private:
  friend std::string recursion_start(const RecursiveFunction*,
                                     FunctionRef<const void*(std::size_t)>);
  const RecursiveFunction& function_;
  SmallVec<BufferRef, 4> numbers_;  ///< of the outermost: its first operands that are scalars
};
/// Where the recursion that runs now has begun, as printer::lane_text says it. If nothing of it
/// runs yet: with this function, `data(i)` its i-th operand; null: it is not known.
std::string recursion_start(const RecursiveFunction*, FunctionRef<const void*(std::size_t)> data);

}  // namespace vt::detail
