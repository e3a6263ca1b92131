// Whether a fused region is worth it: which equations would be steps of their own or work on short
// rows, and what one kernel saves.
#pragma once

#include <cstdint>
#include <span>

#include "../../trace/ir/graph.hpp"
#include "lane_form.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

/// A step of its own, if it is not in a region.
bool stands_alone(const Equation&);
/// Puts elements of rows together: what a nest does with SIMD lanes along a row, of which a short
/// one fills few.
bool is_of_rows(const Equation&);

constexpr std::int64_t fewest_short_rows = 64;
/// The operand behind whose axis 0, which the result has too, an equation puts short rows together;
/// −1: none.
int operand_of_short_rows(const GraphBody&, const Equation&, const RegisterLimits&);

/// A Graph with one class of axes as its lanes.
struct LaneView {
  const GraphBody& graph;
  const LaneAxes& lanes;
  const Vec<int>& maker;  ///< the equation that makes a value; −1: none
  /// of values: are they small, the same for all lanes and known when code is made?
  const Vec<bool>& numbers;
  const Vec<bool>& in_region;  ///< of equations: are they in a region already?
  const RegisterLimits& limits;
  std::int64_t most_elements;  ///< of a value, for each lane
};

/// Do these equations of a Graph, in order, gain from one loop over the lanes? They do where
/// several steps become one: products that meet, or a branch or loop and what is around it; where
/// rows are too short for SIMD lanes along them; and where different parts are computed for one
/// array.
bool worth_a_region(const LaneView&, std::span<const int> members);

}  // namespace vt::detail
