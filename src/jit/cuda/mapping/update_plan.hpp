// UpdatePlan: how the updates of a nest are made, which may meet at one element.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../nest/loop_nest.hpp"

namespace vt::detail::cuda {

/// How the updates of a nest are made, which may meet at one element.
struct UpdatePlan {
  enum class Way : std::uint8_t {
    apart,     ///< they never meet, or there are none
    atomic,    ///< at once, each by one instruction: the result does not depend on the order
    in_order,  ///< one after the other
    sorted,    ///< by element; see scatter.hpp
  } way = Way::apart;
  /// Iterations of the window loops never meet; those of the key loops may, and go in the order of
  /// these loops where they do.
  SmallVec<int, 6> key_loops, window_loops;
};

/// The plan for a nest. `unique`: the user promises that no element is updated
/// twice.
UpdatePlan plan_updates(const Nest&, bool unique);

}  // namespace vt::detail::cuda
