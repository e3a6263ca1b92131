// What a solver reports beside the solution: how long it took, and why it stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vt/detail/control.hpp>

namespace vt {

/// Why a solver stopped. Those above max_iterations mean that it converged.
enum class StopReason : std::int32_t {
  tolerance,       ///< the residual, the interval or the change is within the tolerance
  ftol,            ///< the value no longer falls by more than ftol allows
  xtol,            ///< x no longer moves by more than xtol allows
  gtol,            ///< the gradient is within gtol
  end,             ///< odeint reached t1
  event,           ///< odeint reached the event that ends the integration
  max_iterations,  ///< as many iterations as are allowed
  small_step,      ///< even the smallest step was rejected
  not_finite,      ///< the function is not finite at the start
  singular,        ///< a matrix is singular, or numbers became infinite or NaN on the way
  no_bracket,      ///< the function has the same sign at both ends
};
/// Its name as it stands in the enum: "ftol".
[[nodiscard]] constexpr const char* name_of(StopReason r) {
  switch (r) {
    case StopReason::tolerance: return "tolerance";
    case StopReason::ftol: return "ftol";
    case StopReason::xtol: return "xtol";
    case StopReason::gtol: return "gtol";
    case StopReason::end: return "end";
    case StopReason::event: return "event";
    case StopReason::max_iterations: return "max_iterations";
    case StopReason::small_step: return "small_step";
    case StopReason::not_finite: return "not_finite";
    case StopReason::singular: return "singular";
    case StopReason::no_bracket: return "no_bracket";
  }
  return "unknown";
}

/// The result of a solver. Only x and value have derivatives. Under vmap each lane has its own of
/// everything.
template <class X>
struct Solution {
  X x;                 ///< the solution; if it did not converge, the best x that was found
  Tensor value;        ///< the minimised value, or the norm of the residual: float[]
  Tensor iterations;   ///< what counts as one, the solver says: i64[]
  Tensor evaluations;  ///< of the function: i64[]
  Tensor converged;    ///< bool[]
  Tensor reason;       ///< number of the StopReason: i32[]
};

/// The type of vt::with_report.
struct WithReport {
  constexpr explicit WithReport(int) {}
};
/// As an argument of cg, bicgstab, newton or fixed_point, in front of the options: they give a
/// Solution, not x alone.
inline constexpr WithReport with_report{0};

namespace detail {

/// What a solver on flat leaves is told besides: how the unknowns are called.
struct FitCall {
  ControlCall call;
  std::vector<std::string> paths;
};
struct SolutionFlat {
  std::vector<Tensor> x;
  Tensor value, iterations, evaluations, converged, reason;
};
/// A std::vector or std::array of numbers, which is a tree of so many Tensors.
template <class T>
constexpr bool holds_numbers() {
  if constexpr (is_vector<T> || is_array<T>) return Number<typename T::value_type>;
  else return false;
}
/// As Check, of a function; but if it does not hold where one of T… is a container of numbers, that
/// is likely to be the fault.
template <class Check, class... T>
struct UnlessNumbers : std::conditional_t<(Check::fault == CallFault::parameters ||
                                           Check::fault == CallFault::type) &&
                                              (holds_numbers<T>() || ...),
                                          CallFaultOf<CallFault::numbers>, Check> {};
// clang-format off
#define VT_ASSERT_NO_NUMBERS(name, what, Check)                                                    \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::numbers>,                       \
                name ": " what " is a container of numbers, a tree of scalars: write "             \
                     "vt::tensor({1.0, 2.0}) or vt::tensor(values) for one vt::Tensor")
// clang-format on
/// Of what a solver gives behind its x: value, iterations, evaluations and the number of the
/// StopReason.
SolutionFlat report_of(std::vector<Tensor> found, std::size_t leaves);
template <class T>
Solution<T> solution_of(const T& like, const SolutionFlat& flat) {
  return {with_leaves(like, flat.x), flat.value,     flat.iterations,
          flat.evaluations,          flat.converged, flat.reason};
}

}  // namespace detail

}  // namespace vt
