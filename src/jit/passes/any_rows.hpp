// with_rows: a Graph whose arguments have one leading extent in common, for another such extent.
#pragma once

#include <optional>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// `g`, whose inputs that are `mapped` have rows along axis 0, for `rows` rows. Nothing where rows
/// meet (what a row's results are depends on others or on how many there are), where a result has
/// no rows along axis 0, or where an op is not known to keep rows apart.
std::optional<GraphBody> with_rows(const GraphBody& g, const Vec<bool>& mapped, std::int64_t rows);

}  // namespace vt::detail
