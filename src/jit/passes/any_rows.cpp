// with_rows: follows the axis of rows through a Graph, and gives it another extent.
#include "any_rows.hpp"

#include <algorithm>
#include <utility>

namespace vt::detail {

namespace row_axes {

constexpr int none = -1;

bool contains(const Axes& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}
/// Where an axis of an operand of a product comes to lie; `free_before`: axes in front of its own.
int place_in_product(const Axes& batch, const Axes& contract, int axis, int free_before) {
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (batch[i] == axis) return static_cast<int>(i);
  int at = free_before;
  for (int a = 0; a < axis; ++a)
    if (!contains(batch, a) && !contains(contract, a)) ++at;
  return at;
}

/// Which axis of each value counts rows. A rule says nothing (false) where rows would meet.
class Follower {
 public:
  Follower(const GraphBody& g, const Vec<bool>& mapped)
      : g_(g),
        axis_(g.avals.size(), none),
        fixed_(g.avals.size(), false),
        maker_(g.avals.size(), nullptr) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      if (mapped[i]) axis(g.inputs[i]) = 0;
  }

  bool run() {
    for (const Equation& e : g_.equations) {
      for (Var v : e.outputs) maker_[v] = &e;
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
  int rank(Var v) const { return static_cast<int>(shape(v).size()); }

  /// Makes rows of an axis along which a value repeats itself.
  bool has_rows_along(Var v, int wanted) {
    if (axis(v) != none) return axis(v) == wanted;
    if (wanted >= rank(v) || !maker_[v] || fixed_[v]) return false;
    const Equation& e = *maker_[v];
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
  /// All operands but numbers have rows along the same axis, and so has the result; or none has.
  bool alike(const Equation& e) {
    int common = none;
    for (Var v : e.inputs)
      if (axis(v) != none) common = axis(v);
    if (common == none) return true;
    for (Var v : e.inputs)
      if (rank(v) > 0 && !has_rows_along(v, common)) return false;
    for (Var v : e.outputs) axis(v) = common;
    return true;
  }

  bool follow(const Equation& e) {
    if (any_of(bodies_of(e.params), [](const GraphRef&) { return true; })) return false;
    if (is_elementwise(e.op)) return alike(e);
    switch (e.op) {
      case Op::constant:
      case Op::full:
      case Op::iota: return true;
      case Op::dot_general: return product(e);
      default: break;
    }
    const bool any = any_of(e.inputs, [&](Var v) { return axis(v) != none; });
    // What is computed without rows is the same for any number of them.
    if (!any) return !e.outputs.empty();
    const Var in = e.inputs[0], out = e.outputs[0];
    const int rows = axis(in);
    switch (e.op) {
      case Op::reduce_sum:
      case Op::reduce_prod:
      case Op::reduce_max:
      case Op::reduce_min:
      case Op::reduce_any:
      case Op::reduce_all: {
        const Axes& axes = e.as<AxesParams>().axes;
        if (contains(axes, rows)) return false;
        axis(out) = rows - static_cast<int>(count_if(axes, [&](int a) { return a < rows; }));
        return true;
      }
      case Op::argmax:
      case Op::argmin: {
        const int along = e.as<ArgParams>().axis;
        axis(out) = rows - (along < rows);
        return along != rows;
      }
      case Op::cumsum:
      case Op::cumprod:
      case Op::cummax:
      case Op::cummin:
      case Op::cumlogsumexp: return e.as<CumulativeParams>().axis != rows && alike(e);
      case Op::sort: return e.as<SortParams>().axis != rows && alike(e);
      case Op::rev: return !contains(e.as<AxesParams>().axes, rows) && alike(e);
      case Op::concatenate: return alike(e) && e.as<AxisParams>().axis != axis(out);
      case Op::transpose: {
        const Axes& p = e.as<PermutationParams>().permutation;
        axis(out) = static_cast<int>(std::find(p.begin(), p.end(), rows) - p.begin());
        return true;
      }
      case Op::broadcast_in_dim:
        axis(out) = e.as<BroadcastParams>().axes[rows];
        return shape(out)[axis(out)] == shape(in)[rows];
      case Op::reshape:  // rows stay the outermost axis
        axis(out) = 0;
        return rows == 0 && rank(out) > 0 && shape(out)[0] == shape(in)[0];
      case Op::slice: {
        const auto& p = e.as<SliceParams>();
        axis(out) = rows;
        return p.start[rows] == 0 && p.limit[rows] == shape(in)[rows] && p.stride[rows] == 1;
      }
      case Op::pad: {
        const auto& p = e.as<PadParams>();
        axis(out) = rows;
        return axis(e.inputs[1]) == none && rows != none && p.low[rows] == 0 && p.high[rows] == 0 &&
               p.interior[rows] == 0;
      }
      default: return false;
    }
  }
  bool product(const Equation& e) {
    const auto& p = e.as<DotParams>();
    const Var a = e.inputs[0], b = e.inputs[1], out = e.outputs[0];
    if (axis(a) == none && axis(b) == none) return true;
    const int batch = static_cast<int>(p.lhs_batch.size());
    const int of_a = rank(a) - batch - static_cast<int>(p.lhs_contract.size());
    int from_a = none, from_b = none;
    if (axis(a) != none) {
      if (contains(p.lhs_contract, axis(a))) return false;
      from_a = place_in_product(p.lhs_batch, p.lhs_contract, axis(a), batch);
    }
    if (axis(b) != none) {
      if (contains(p.rhs_contract, axis(b))) return false;
      from_b = place_in_product(p.rhs_batch, p.rhs_contract, axis(b), batch + of_a);
    }
    // Along an axis of the batch both have rows.
    if (from_a != none && from_a < batch && from_b == none) {
      if (!has_rows_along(b, p.rhs_batch[from_a])) return false;
      from_b = from_a;
    }
    if (from_b != none && from_b < batch && from_a == none) {
      if (!has_rows_along(a, p.lhs_batch[from_b])) return false;
      from_a = from_b;
    }
    if (from_a != none && from_b != none && from_a != from_b) return false;
    axis(out) = from_a != none ? from_a : from_b;
    return true;
  }

  const GraphBody& g_;
  Vec<int> axis_;
  Vec<bool> fixed_;  ///< has been read as what has no rows
  Vec<const Equation*> maker_;
};

}  // namespace row_axes

std::optional<GraphBody> with_rows(const GraphBody& g, const Vec<bool>& mapped, std::int64_t rows) {
  row_axes::Follower follower(g, mapped);
  if (!follower.run()) return std::nullopt;
  GraphBody all = g;
  const auto axis = [&](Var v) { return follower.axes()[v]; };
  const auto resize = [&](Var v, Shape& shape) {
    if (axis(v) >= 0) shape[axis(v)] = rows;
  };
  for (std::size_t v = 0; v < all.avals.size(); ++v)
    resize(static_cast<Var>(v), all.avals[v].shape);
  for (Equation& e : all.equations) {
    if (e.outputs.empty() || axis(e.outputs[0]) < 0) continue;
    const Var out = e.outputs[0];
    const auto change = [&]<class P>(const P& params, auto part) {
      P copy = params;
      resize(out, part(copy));
      e.params = make_params(std::move(copy));
    };
    const auto shape = [](auto& p) -> Shape& { return p.shape; };
    const auto of_aval = [](auto& p) -> Shape& { return p.aval.shape; };
    switch (e.op) {
      case Op::full: change(e.as<FullParams>(), of_aval); break;
      case Op::iota: change(e.as<IotaParams>(), of_aval); break;
      case Op::reshape: change(e.as<ShapeParams>(), shape); break;
      case Op::broadcast_in_dim: change(e.as<BroadcastParams>(), shape); break;
      case Op::slice:
        change(e.as<SliceParams>(), [](SliceParams& p) -> Shape& { return p.limit; });
        break;
      default: break;
    }
  }
  return all;
}

}  // namespace vt::detail
