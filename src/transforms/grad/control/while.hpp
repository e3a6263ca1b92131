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
  std::size_t carries() const { return static_cast<std::size_t>(params().carries); }
};

/// How many states to keep of a loop with these operands.
std::int64_t slots_for(const WhileParams&, std::span<const Tensor> x);
/// In the bodies of scans states would be kept for each of their iterations: is that too much?
bool too_many_states(const ReversedLoop&, std::span<const Tensor> x);
/// (carry…, rest…) → (last carry…, kept states…, number of iterations, iterations between kept
/// states).
std::vector<Tensor> run_keeping(const ReversedLoop&, std::span<const Tensor> x);
/// (carry…, rest…, kept states…, iterations, stride, cotangents of varying carries…) → cotangents
/// of those and of the shared operands.
std::vector<Tensor> run_back(const ReversedLoop&, std::span<const Tensor> operands);

}  // namespace vt::detail::control_linear
