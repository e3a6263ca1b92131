// What the loops of solvers are written with: counts, flags and reasons as Tensors, choices between
// states, and checks of numbers among the options.
#pragma once

#include <limits>
#include <string>

#include <vt/detail/control.hpp>
#include <vt/detail/message.hpp>
#include <vt/solution.hpp>

#include "flat_vector.hpp"

namespace vt::detail::solver_parts {

constexpr std::int64_t going_on = -1;  ///< in place of a StopReason

inline Tensor count(std::int64_t n) { return full_tensor(Scalar(n), Aval(i64, Shape{})); }
inline Tensor flag(bool b) { return full_tensor(Scalar(b), Aval(bool_, Shape{})); }
inline Tensor reason_number(std::int64_t r) {
  return full_tensor(Scalar(r).converted(i32), Aval(i32, Shape{}));
}
inline Tensor number_of(StopReason r) { return reason_number(static_cast<std::int64_t>(r)); }
inline Tensor dot(const Tensor& a, const Tensor& b) { return vt::sum(a * b); }
inline std::vector<Tensor> chosen(const Tensor& which, std::span<const Tensor> a,
                                  std::span<const Tensor> b) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(vt::where(which, a[i], b[i]));
  return out;
}
/// The reason, or `why` where it goes on and `when` is true.
inline Tensor ended(const Tensor& reason, const Tensor& when, StopReason why) {
  return vt::where((reason < 0) & when, number_of(why), reason);
}
/// Is the reason before `limit`?
inline Tensor below(const Tensor& reason, StopReason limit) {
  return reason < static_cast<std::int64_t>(limit);
}

/// Why a solver without steps to reject stopped. `began`: the residual was finite at the start.
inline Tensor outcome(const Tensor& converged, const Tensor& finite, const Tensor& began) {
  const Tensor unfinished = vt::where(
      finite, number_of(StopReason::max_iterations),
      vt::where(began, number_of(StopReason::singular), number_of(StopReason::not_finite)));
  return vt::where(converged, number_of(StopReason::tolerance), unfinished);
}

[[noreturn]] inline void refuse(ErrorKind kind, const ControlCall& call, const std::string& what) {
  fail(kind, std::string(call.name) + ": " + what, call.where);
}
/// What to write for a number that is no f32 or f64 where one of these is needed.
inline const char* instead_of(DType given) {
  if (is_complex(given)) return "give vt::real and vt::imag of it";
  return is_float(given) ? "convert it with astype(vt::f32)" : "write 1.0, not 1";
}
inline void check_number(const ControlCall& call, const char* name, double value, double least,
                         const char* must) {
  if (!(value >= least))
    refuse(ErrorKind::value, call, formatted("{} is {}; it must be {}", name, value, must));
}

}  // namespace vt::detail::solver_parts
