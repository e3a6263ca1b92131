// Named axes: which exist on this thread.
#pragma once

#include <string>
#include <string_view>

#include "../ir/collectives.hpp"

namespace vt::detail {

/// The innermost axis of that name whose lanes are being recorded, with the index of the lane: a
/// tracer of its scope. Of processes there is no such tracer, but an op, Op::axis_index.
/// Throws: Error that names the axes there are. `function` is who asks, without "vt::".
struct LiveAxis {
  AxisRef axis;
  Tensor index;
  /// The axis of a mesh that these lanes extend, of the same name: process p has the lanes from
  /// p · axis->size on. None: `axis` is all.
  AxisRef mesh;
  std::int64_t size() const { return mesh ? mesh->size * axis->size : axis->size; }
};
LiveAxis live_axis(std::string_view name, std::string_view function, CallSite);

/// The level of the deepest scope whose lanes the equation works over, itself or in a sub-graph: it
/// cannot be recorded further out, whatever its operands are. Throws if a collective's axis is not
/// alive.
int level_of_axes(Op, const ParamsRef&, CallSite);

/// The axes of processes that are alive, as text: what is recorded under one mesh is good for equal
/// ones. Lanes inside would not extend those that have lanes already.
std::string mesh_key();

/// Tells whether what is recorded while it lives used an axis from outside.
class OuterAxes {
 public:
  OuterAxes();
  ~OuterAxes();
  OuterAxes(const OuterAxes&) = delete;
  OuterAxes& operator=(const OuterAxes&) = delete;
  bool used() const;
  /// One of lanes: then it is good for these lanes only.
  bool used_lanes() const;

 private:
  int before_, before_lanes_;
};

}  // namespace vt::detail
