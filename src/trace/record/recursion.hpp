// Recursive functions: what a recursive_call refers to, and what transforms have made of it. A
// function and all that is derived from it belong to one family, which owns them; equations in the
// bodies refer to members without owning them, so that there is no cycle of ownership.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vt/detail/function.hpp>

#include "../base/stack.hpp"
#include "../ir/aval.hpp"
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

/// " in lane 3, which began with 70, f32[5]": arguments of one lane, `data(i)` of the i-th one.
std::string lane_text(std::int64_t lane, std::span<const Aval> arguments,
                      FunctionRef<const void*(std::size_t)> data);
/// What a call says that is one too many; `lane`: "" or lane_text.
[[noreturn]] void fail_too_deep(const std::string& name, std::int64_t depth,
                                const std::string& lane, CallSite);
[[noreturn]] void fail_stack_too_small(const std::string& name, std::int64_t depth,
                                       const std::string& lane, CallSite);
/// While it lives, a recursive function runs. Throws: Error if it is too deep inside of others.
class RecursionGuard {
 public:
  RecursionGuard(const RecursiveFunction&, CallSite);
  ~RecursionGuard();
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
};

}  // namespace vt::detail
