// The functions that call themselves of a register kernel.
#pragma once

#include <optional>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/ir/recursive_function.hpp"

namespace vt::detail {

/// One of them as it runs. `function` only tells which it is: it may be gone while code is made.
struct RecursiveBody {
  const RecursiveFunction* function = nullptr;
  GraphRef body;
  std::string users_name;
  int max_depth = 0;
};

/// All that the Graph calls, directly or not, in the order in which it first does; nothing if one
/// has effects, complex numbers without a real form, or to remember what others give, which only
/// the host does.
std::optional<Vec<RecursiveBody>> recursive_bodies(const GraphBody&);
/// Which of the functions an equation calls; −1: none of them.
int number_of(const Vec<RecursiveBody>&, const Equation& recursive_call);
/// The constants of the Graph and of the functions whose elements are no part of the code, and
/// which of them a value is; −1: none.
Vec<BufferRef> constants_in_memory(const GraphBody&, const Vec<RecursiveBody>&);
int number_of(const Vec<BufferRef>&, const Equation& constant);
/// How many calls stand in a Graph and its sub-graphs.
std::int64_t count_recursions(const GraphBody&);
/// Text that differs where they do.
std::string text_of(const GraphBody&, const Vec<RecursiveBody>&, const Vec<BufferRef>& constants);

}  // namespace vt::detail
