// What src/jit asks of the transforms: a function of one lane as one of many, as it runs lanes in
// groups of any size, and a Graph of many small equations as one of batched calls.
#pragma once

#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../ir/graph.hpp"

namespace vt::detail {

/// `body` for `lanes` lanes: inputs that are `mapped` and all results hold them along axis 0.
GraphBody batch_body(const GraphBody& body, const Vec<bool>& mapped, std::int64_t lanes);

/// `graph` with equations that are alike run together, as autobatch does; nothing where that would
/// not make few batches of many equations. `seconds`: what it would take as it is.
std::optional<GraphBody> batch_alike(const GraphBody& graph, double seconds);

}  // namespace vt::detail
