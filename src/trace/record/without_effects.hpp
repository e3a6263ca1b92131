// Graphs with the same values but without effects.
#pragma once

#include "../ir/graph.hpp"

namespace vt::detail {

/// The same values once more, for passes that compute something again: what happens has happened.
/// Throws Error(transform) where values come from a callback with an effect.
GraphRef without_effects(const GraphRef&);
Equation without_effects(const Equation&);

}  // namespace vt::detail
