// What equations of one lane compute: whether it pays that lanes wait for each other in front of
// them.
#pragma once

#include "../base/hash_map.hpp"
#include "graph.hpp"

namespace vt::detail {

/// From this much work on, lanes are better brought together than run one by one.
inline constexpr double heavy_work = 2048;

/// What equations compute. It remembers bodies, which must not change meanwhile: a function may be
/// called from many places.
class LaneWork {
 public:
  /// About the element operations of an equation; of one with sub-graphs those of each, once for
  /// each lane of its own.
  double of(const GraphBody&, const Equation&);
  /// Equations of an equation's sub-graphs, those of functions wherever they are called.
  double equations_in(const Equation&);
  /// Is there an operation of heavy_work in the equation, or a recursion?
  bool is_heavy(const GraphBody&, const Equation&);
  /// Does a flow of control have to leave it, for other lanes to meet it there: is a heavy
  /// operation, a recursion, a meeting or a long function inside, or, under its control, a value
  /// that no registers hold? Equations without sub-graphs: are they one? Lanes of the equation's
  /// own go on together, so nothing leaves it.
  bool parts_flow(const GraphBody&, const Equation&);

 private:
  struct Body {
    double work = 0, equations = 0;  ///< those of functions wherever they are called
    bool is_heavy = false, parts = false, is_large = false;
  };
  const Body& inside(const GraphRef&);
  bool any(const Equation&, bool Body::* flag);
  bool is_large(const GraphBody&, const Equation&);

  HashMap<const GraphBody*, Body> bodies_;
};

}  // namespace vt::detail
