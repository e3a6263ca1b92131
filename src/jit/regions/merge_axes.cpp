// Which equations treat two neighbouring axes alike, and the same equations with one axis.
#include "merge_axes.hpp"

#include <optional>

#include "../../trace/ir/axis_map.hpp"
#include "lane_form.hpp"

namespace vt::detail {

namespace axis_merging {

class Merger {
 public:
  Merger(const GraphBody& graph, Var v, int first) : from_(graph), outer_(graph), inner_(graph) {
    const int outer = outer_.class_of(v, first), inner = inner_.class_of(v, first + 1);
    apart_ = outer != inner;
    outer_.choose(outer);
    inner_.choose(inner);
    extent_ = graph.aval(v).shape[first + 1];
  }

  /// What `wanted` is in the Graph that result() gives.
  Var run(Var wanted) {
    if (!apart_) return -1;
    to_ = from_;
    to_.equations.clear();
    merged_.assign(from_.avals.size(), -1);
    original_.assign(from_.avals.size(), true);
    for (const Equation& e : from_.equations) {
      where_ = e.where;
      if (std::optional<Equation> one = merged(e)) {
        for (Var& v : one->inputs)
          if (has_both(v)) v = merged_value(v);
        for (Var& v : one->outputs) {
          original_[v] = false;
          v = merged_[v] = to_.fresh(merged_aval(v));
        }
        to_.equations.push_back(*std::move(one));
        continue;
      }
      for (Var v : e.inputs) need_original(v);
      to_.equations.push_back(e);
    }
    for (Var v : from_.outputs) need_original(v);
    return merged_[wanted];
  }
  GraphBody& result() { return to_; }

 private:
  // One behind the other, in that order.
  bool has_both(Var v) const {
    return outer_.axis(v) >= 0 && inner_.axis(v) == outer_.axis(v) + 1 && !outer_.ambiguous(v) &&
           !inner_.ambiguous(v);
  }
  bool has_none(Var v) const { return outer_.axis(v) < 0 && inner_.axis(v) < 0; }

  Aval merged_aval(Var v) const {
    Aval a = inner_.aval(v);
    a.shape[outer_.axis(v)] *= extent_;
    return a;
  }

  // The equation without the inner axis, the outer one being longer.
  std::optional<Equation> merged(const Equation& e) const {
    if (e.outputs.empty() || may_be_register_kernel(e.op) || e.op == Op::gather)
      return std::nullopt;
    for (Var v : e.outputs)
      if (!has_both(v)) return std::nullopt;
    for (Var v : e.inputs)
      if (!has_both(v) && !has_none(v)) return std::nullopt;
    std::optional<Equation> one = inner_.equation(e);
    if (!one || !outer_.equation(e)) return std::nullopt;
    const int axis = outer_.axis(e.outputs[0]);
    one->params = with_extent(one->params, axis, merged_aval(e.outputs[0]).shape[axis]);
    return one;
  }

  void reshape(Var from, Var to) {
    Equation e;
    e.op = Op::reshape;
    e.params = make_params(ShapeParams{to_.aval(to).shape});
    e.inputs.push_back(from);
    e.outputs.push_back(to);
    e.where = where_;
    to_.equations.push_back(std::move(e));
  }
  Var merged_value(Var v) {
    Var& one = merged_[v];
    if (one < 0) {
      one = to_.fresh(merged_aval(v));
      reshape(v, one);
    }
    return merged_[v];
  }
  void need_original(Var v) {
    if (original_[v]) return;
    original_[v] = true;
    reshape(merged_[v], v);
  }

  const GraphBody& from_;
  GraphBody to_;
  LaneAxes outer_, inner_;
  bool apart_ = false;
  CallSite where_;           ///< of the equation that is looked at
  std::int64_t extent_ = 1;  ///< of the inner axis
  Vec<Var> merged_;          ///< a value with both axes as one; −1: there is none
  Vec<bool> original_;       ///< is there the value as it was?
};

}  // namespace axis_merging

Var merge_axes(GraphBody& graph, Var v, int first) {
  axis_merging::Merger merger(graph, v, first);
  const Var merged = merger.run(v);
  if (merged >= 0) graph = std::move(merger.result());
  return merged;
}

}  // namespace vt::detail
