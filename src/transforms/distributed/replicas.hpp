// What processes call the same on all of them: is it?
#pragma once

#include <span>
#include <string>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/distributed.hpp>
#include <vt/error.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/processes/world.hpp"
#include "../../trace/record/scope.hpp"
#include "shared_values.hpp"

namespace vt::detail {

/// Not that of an argument while a function is recorded, as under vt::jit.
inline bool has_value(const Tensor& t) { return t.defined() && !is_tracer(t); }

/// The fastest one first.
Vec<AxisRef> axes_of(const distributed::Mesh&);

/// The first of `values` that differs between two processes that should have the same.
struct UnequalReplica {
  std::int64_t index = -1;
  int rank = 0, other = 0;  ///< rank < other
};

/// Compares what a function gets on all processes; a collective. `differs`: of each value, along
/// which axes of the mesh it may. Floats may differ by rounding. Only what has a value is
/// compared. The answer, of `index` −1 if none differs, is the same on all processes.
UnequalReplica unequal_replica(std::span<const Tensor> values, const Vec<Differs>& differs,
                               std::span<const AxisRef> mesh, const CollectiveSite&);

}  // namespace vt::detail
