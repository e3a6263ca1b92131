// Finds lanes in plain equations, the inverse of vmap: an axis along which all elements are
// computed alike and independently, and the equations as one of these lanes sees them.
#pragma once

#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "recursive_bodies.hpp"

namespace vt::detail {

struct RegisterLimits;

/// A control-flow equation as one of its lanes sees it.
struct LaneForm {
  GraphBody lane;           ///< the (only) equation, all types as one lane has them
  std::int64_t count = -1;  ///< lanes; −1: none
  /// per operand, then per result: where its lanes are in memory; −1: it is the same for all
  Vec<int> axes = {};
  /// Per operand: the integer that all its elements are, if that is known; empty: none is. What
  /// bounds a loop's counter is often that.
  Vec<std::optional<std::int64_t>> known = {};
  /// Values of at most so many elements are taken apart into registers. Larger ones stay in memory,
  /// where single elements are read (dynamic_slice, slice, gather) and, in what a loop carries,
  /// overwritten (dynamic_update_slice, scatter).
  std::int64_t most_in_registers = 32;
  /// What it calls that calls itself. Then lanes run one after the other, each by scalars.
  Vec<RecursiveBody> functions = {};
  Vec<BufferRef> constants = {};  ///< that lie in memory; see constants_in_memory
  /// The results are sums over all lanes, without what the first operands, as many, give to them;
  /// those of integers are not made.
  bool sums = false;
  bool side_by_side() const { return count >= 0 && functions.empty(); }
  bool in_registers(const Aval& a) const { return a.elements() <= most_in_registers; }
  /// Is a sequence of a loop inside brought from registers into the frame, where its rows are read
  /// by their number?
  bool lays_out(const Aval& sequence) const {
    return functions.empty() && sequence.shape[0] > (count < 0 ? 2 : 3);
  }
  explicit operator bool() const { return count >= 0; }
};

/// Which axes of a Graph's values run in step. Two belong to one class if elements of one value are
/// made of those elements of the other that have the same index there.
class LaneAxes {
 public:
  explicit LaneAxes(const GraphBody&);
  /// Takes two axes for one class besides; nothing where their extents differ.
  void join(Var a, int axis, Var b, int other);
  int class_of(Var v, int axis);
  /// Of all values; classes have numbers below.
  std::size_t axes() const { return parent_.size(); }

  /// From now on, the lanes are this class.
  void choose(int of_class);
  /// Where the lanes are in a value; −1: nowhere, as it is the same for all.
  int axis(Var v) const { return axis_[v]; }
  /// Has the value several axes of the class?
  bool ambiguous(Var v) const { return ambiguous_[v]; }
  Aval aval(Var v) const;
  RecycledVec<Aval> avals() const;
  /// An equation of the Graph for one lane, if lanes do not meet in it.
  std::optional<Equation> equation(const Equation&) const;
  /// All of the Graph for one lane.
  std::optional<GraphBody> one_lane() const;

 private:
  std::size_t node(Var v, int axis) const { return first_[v] + axis; }

  const GraphBody* graph_;
  Vec<int> first_, parent_, axis_;
  Vec<bool> ambiguous_;
};

/// The axes over which a reduction goes whose elements can be put together one by one; none of
/// other equations.
Axes reduced_axes(const Equation&);

/// A scan whose iterations do the same along one axis of all that it carries, takes and gives,
/// without lanes meeting.
std::optional<LaneForm> lanes_of_scan(const GraphBody& alone, const RegisterLimits& limits);

}  // namespace vt::detail
