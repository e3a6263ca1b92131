// with_rows: follows the axis of rows through a Graph, and gives it another extent.
#include "any_rows.hpp"

#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/sub_graph.hpp"

namespace vt::detail {

namespace row_axes {

constexpr int none = -1;

/// Which axis of each value counts rows. A rule says nothing (false) where rows would meet.
class Follower {
 public:
  Follower(const GraphBody& g, const Vec<bool>& mapped)
      : g_(g), axis_(g.avals.size(), none), fixed_(g.avals.size(), false), maker_(makers_of(g)) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      if (mapped[i]) axis(g.inputs[i]) = 0;
  }

  bool run() {
    for (const Equation& e : g_.equations) {
      if (!follow(e)) return false;
      for (Var v : e.inputs) fixed_[v] = fixed_[v] || axis(v) == none;
    }
    for (Var v : g_.outputs)
      if (!has_rows_along(v, 0)) return false;
    return true;
  }
  const Vec<int>& axes() const { return axis_; }

 private:
  int& axis(Var v) { return axis_[v]; }
  const Shape& shape(Var v) const { return g_.aval(v).shape; }

  /// Makes rows of an axis along which a value repeats itself.
  bool has_rows_along(Var v, int wanted) {
    if (axis(v) != none) return axis(v) == wanted;
    if (wanted >= shape(v).rank() || maker_[v] < 0 || fixed_[v]) return false;
    const Equation& e = g_.equations[maker_[v]];
    bool can = false;
    if (e.op == Op::full) {
      can = true;
    } else if (e.op == Op::iota) {
      can = e.as<IotaParams>().axis != wanted;
    } else if (e.op == Op::broadcast_in_dim) {
      can = true;
      const Axes& axes = e.as<BroadcastParams>().axes;
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i] == wanted) can = shape(e.inputs[0])[i] == 1 && shape(v)[wanted] != 1;
    }
    if (can) axis(v) = wanted;
    return can;
  }
  /// Operands have rows along what becomes one axis of the results; or none has.
  bool follow(const Equation& e) {
    // A body would have to be followed as well.
    if (e.outputs.empty() || !bodies_of(e.params).empty()) return false;
    int rows = none;
    for (std::size_t k = 0; k < e.inputs.size(); ++k) {
      const int own = axis(e.inputs[k]);
      if (own == none) continue;
      const int there = axis_in_result(g_, e, k, own);
      if (there == none || (rows != none && there != rows)) return false;
      // Of one row nobody could tell it from other axes of one element, unless it is the outermost.
      if (e.op == Op::reshape && (own != 0 || there != 0)) return false;
      rows = there;
    }
    // What is computed without rows is the same for any number of them.
    if (rows == none) return true;
    for (std::size_t k = 0; k < e.inputs.size(); ++k) {
      if (axis(e.inputs[k]) != none) continue;
      const int own = axis_of_operand(g_, e, k, rows);
      if (own != none && !has_rows_along(e.inputs[k], own)) return false;
    }
    for (Var v : e.outputs) axis(v) = rows;
    return true;
  }

  const GraphBody& g_;
  Vec<int> axis_;
  Vec<bool> fixed_;  ///< has been read as what has no rows
  const Vec<int> maker_;
};

}  // namespace row_axes

std::optional<GraphBody> with_rows(const GraphBody& g, const Vec<bool>& mapped, std::int64_t rows) {
  row_axes::Follower follower(g, mapped);
  if (!follower.run()) return std::nullopt;
  return with_extent(g, follower.axes(), rows);
}

}  // namespace vt::detail
