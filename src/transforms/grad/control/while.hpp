// Reverse mode of while loops, whose number of iterations is not known.
#pragma once

#include "linear.hpp"

namespace vt::detail::control_linear {

struct ReversedLoop {
  Equation equation;                          ///< without its effects, which happen going forward
  GraphRef condition, body;                   ///< with them
  Flags operands;                             ///< with a cotangent
  Vec<std::size_t> varying, shared_operands;  ///< those among the carries, and among the rest
  std::int64_t slots = 0;                     ///< for kept states; even

  const WhileParams& params() const { return equation.as<WhileParams>(); }
  std::size_t carries() const { return params().carries; }
};

/// How many states to keep of a loop with these operands.
std::int64_t slots_for(const WhileParams&, std::span<const Tensor> x);
/// In the bodies of scans what forward keeps would be copied for each of their iterations, room for
/// states and all: there backward runs the loop once more instead.
bool inside_scan();
/// (carry…, rest…) → (last carry…, kept states…, how many they are, the iterations from one to the
/// next, number of iterations).
std::vector<Tensor> run_keeping(const ReversedLoop&, std::span<const Tensor> x);
/// (carry…, rest…, what run_keeping gives behind the carry, cotangents of varying carries…) →
/// cotangents of those and of the shared operands.
std::vector<Tensor> run_back(const ReversedLoop&, std::span<const Tensor> operands);

}  // namespace vt::detail::control_linear
