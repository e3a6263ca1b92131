// batch_body: turns a function of one lane into one of many. Called by src/jit, which runs lanes in
// groups of any size; defined by src/transforms/vmap.
#pragma once

#include <vt/small_vec.hpp>

#include "../ir/graph.hpp"

namespace vt::detail {

/// `body` for `lanes` lanes: inputs that are `mapped` and all results hold them along axis 0.
GraphBody batch_body(const GraphBody& body, const Vec<bool>& mapped, std::int64_t lanes);

}  // namespace vt::detail
