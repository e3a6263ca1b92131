// One step of odeint: a trial by the method, its error, and the size of the next.
#pragma once

#include <span>
#include <vector>

#include <vt/ode.hpp>

#include "../../trace/record/scope.hpp"

namespace vt::detail::ode {

/// StopReason is not known yet.
inline constexpr std::int32_t running = -1;

/// What all steps of a call share. y is one vector, [n].
struct Problem {
  OdeMethod method;
  GraphRef graph;  ///< f: (t, y, captured…) → dy/dt
  std::vector<Tensor> captured;
  DType dtype;
  Tensor t0, t1;
  Tensor direction;   ///< 1, or −1 where time runs backward
  Tensor rtol, atol;  ///< that broadcast to y
  Tensor first_step;  ///< undefined: is chosen
  double h_min, h_max;
  std::int64_t max_steps;

  Tensor f(const Tensor& t, const Tensor& y) const;
  /// Does the method take f at the end of a step for the next one?
  bool carries_slope() const { return method != OdeMethod::rodas5p; }
};

/// Where the integration is.
struct State {
  Tensor t, y;
  Tensor slope;      ///< f(t, y); undefined where the method has no use for it
  Tensor h;          ///< of the next step, without its sign
  Tensor log_error;  ///< of the last accepted step
  Tensor growth;     ///< logarithm of what the next step may be longer than this one
  Tensor accepted, rejected, status;

  std::vector<Tensor> leaves() const;
  /// The number of leaves, and from those.
  static std::size_t count(const Problem& p) { return p.carries_slope() ? 9 : 8; }
  State(const Problem&, std::span<const Tensor> leaves);
  State() = default;
};
State begin(const Problem&, const Tensor& y0);

/// A step that was tried: the polynomial between its ends
/// y + θ (change + (1 − θ) (r₀ + θ (r₁ + θ r₂))), θ from 0 at t to 1 at t + h.
struct Between {
  Tensor t, h, y, change;
  std::vector<Tensor> r;  ///< two of them, or three
  Tensor at(const Tensor& theta) const;
  std::vector<Tensor> leaves() const;
  static Between from(std::span<const Tensor> leaves);
};
/// Before the first step: at t0, with the slope there.
Between before_steps(const Problem&, const Tensor& y0);
struct Step {
  Tensor accepted;
  State next;
  Between between;
};
Step step(const Problem&, const State&);
/// How often `begin` and each `step` call f.
std::int64_t calls_to_begin(const Problem&);
std::int64_t calls_of_step(const Problem&);

}  // namespace vt::detail::ode
