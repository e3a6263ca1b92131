// The passes from Graph to Graph that need no more than the Graph. pipeline.hpp has their order.
#pragma once

#include <vt/detail/function.hpp>

#include "../../trace/ir/graph.hpp"
#include "../fusion/conv_spec.hpp"

namespace vt::detail {

/// Replaces equations that own a sub-graph they merely run (call, checkpoint, custom_*) by its
/// equations.
GraphBody inline_calls(GraphBody);
/// Replaces batched calls and what gathers rows for them by equations for all lanes at once, in
/// sub-graphs as well.
GraphBody lower_batched_calls(GraphBody);
bool has_batched_calls(const GraphBody&);
/// Replaces lane calls, batched calls whose lanes go different ways, by loops, branches and
/// recursion that run lanes in groups.
GraphBody group_lanes(GraphBody);
/// … but for those that `part`.
GraphBody group_lanes(GraphBody, FunctionRef<bool(const Equation&)> part);
/// Turns products of what is `mapped` with what is not, so that rows of the mapped come first.
GraphBody lead_with_rows(GraphBody, const Vec<bool>& mapped);
/// Rewrites the convolutions of a Graph for compiled programs: those with few columns as sums over
/// windows, which become loop nests; operands of the others in an order that plan_conv takes,
/// filters that are flipped are read from their ends. For a device all stay convolutions,
/// and operands that were transposed for them are read as they were.
GraphBody prepare_convolutions(GraphBody, ConvTarget target = ConvTarget::host);
/// Sums (and extremes) over the same processes that do not wait for each other become one, of all
/// their elements in a row, up to 4 MiB together.
GraphBody bundle_sums(GraphBody);
/// Takes sums over rows or columns of matrix products before the products.
GraphBody sum_before_products(GraphBody);
/// Matrix products take operands whose axes collapse to (batch, rows, columns); others get a
/// transposition in front.
GraphBody order_product_operands(const GraphBody&);
/// Reductions and broadcasts over long axes and short last ones with others between them, in two.
GraphBody split_short_axes(GraphBody);

}  // namespace vt::detail
