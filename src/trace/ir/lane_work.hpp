// What equations of one lane compute: whether it pays that lanes wait for each other in front of
// them.
#pragma once

#include "graph.hpp"

namespace vt::detail {

/// About the element operations of an equation; of one with sub-graphs those of each, once.
double lane_work(const GraphBody&, const Equation&);

/// From this much work on, lanes are better brought together than run one by one.
inline constexpr double heavy_work = 2048;

/// Is there such an operation in the equation, or a recursion?
bool has_heavy_work(const GraphBody&, const Equation&);
/// Does a flow of control have to leave it, for other lanes to meet it there: is a heavy operation,
/// a recursion or a meeting inside, or, under its control, a value that no registers hold?
/// Equations without sub-graphs: are they one?
bool parts_flow(const GraphBody&, const Equation&);

}  // namespace vt::detail
