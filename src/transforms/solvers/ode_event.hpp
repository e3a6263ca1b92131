// Events of odeint: the step in which one lies, and where in it.
#pragma once

#include <span>
#include <vector>

#include "ode_steps.hpp"

namespace vt::detail::ode {

struct EventSearch {
  Recorded function;  ///< (t, y) → a number; no Graph: there are no events
  OdeEventOptions options;
  bool is_there = false;
};
/// What is known of events.
struct Events {
  Tensor value;  ///< of the function at the end of the last accepted step, without derivatives
  Tensor count, t, y;  ///< how many there were, and where the last one was

  static constexpr std::size_t leaf_count = 4;
  std::vector<Tensor> leaves() const { return {value, count, t, y}; }
};
Events begin(const Problem&, const EventSearch&, const State&);
/// Those after a step, whose end is moved to the event that ends the integration.
Events after(const Problem&, const EventSearch&, const Events& before, Step& made,
             const ControlCall&);

}  // namespace vt::detail::ode
