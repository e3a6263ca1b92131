// The jvp walk over a Graph; its rules are in rules/.
#include "jvp.hpp"

#include <utility>

#include "../../trace/base/timeline.hpp"
#include "../../trace/record/thread_state.hpp"
#include "build.hpp"

namespace vt::detail {

namespace jvp_walk {

class Walk {
 public:
  Walk(const GraphBody& graph, JvpMode mode, JvpShapes shapes)
      : graph_(graph),
        mode_(mode),
        shapes_(shapes),
        x_(graph.avals.size()),
        t_(graph.avals.size()) {}

  JvpResult run(std::span<const Tensor> primals, std::span<const Tensor> tangents) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      x_[graph_.inputs[i]] = primals[i];
      if (is_inexact(graph_.aval(graph_.inputs[i]).dtype)) t_[graph_.inputs[i]] = tangents[i];
    }
    for (const Equation& e : graph_.equations) equation(e);
    JvpResult result;
    for (Var v : graph_.outputs) {
      result.primals.push_back(x_[v]);
      result.tangents.push_back(t_[v]);
    }
    return result;
  }

 private:
  void equation(const Equation& e) {
    operands_.clear();
    tangents_.clear();
    bool varies = false;
    for (Var v : e.inputs) {
      operands_.add(x_[v]);
      tangents_.add(t_[v]);
      varies = varies || t_[v].defined();
    }
    const JvpRule& rule = jvp_rules::rule_of(e.op);
    const LikeEquation like(e);
    // a body of scalars cannot be called with arrays
    if (shapes_ == JvpShapes::lifted && e.op == Op::call) {
      const JvpResult r = jvp_graph(*e.as<CallParams>().body, operands_, tangents_, mode_, shapes_);
      for (std::size_t i = 0; i < e.outputs.size(); ++i) {
        x_[e.outputs[i]] = r.primals[i];
        if (r.tangents[i].defined()) set_tangent(e, i, r.tangents[i]);
      }
      return;
    }
    if (varies && rule.whole) {
      std::vector<Tensor> results, result_tangents(e.outputs.size());
      rule.whole(call(e, {}), results, result_tangents);
      for (std::size_t i = 0; i < e.outputs.size(); ++i) {
        x_[e.outputs[i]] = std::move(results[i]);
        if (result_tangents[i].defined()) set_tangent(e, i, std::move(result_tangents[i]));
      }
      return;
    }
    emit_primal(e);
    if (!varies || !rule.tangent) return;
    const Tensor& y = x_[e.outputs[0]];
    if (!is_inexact(y.dtype())) return;
    const WhereScope line(differentiated(e));
    Tensor t = rule.tangent(call(e, y));
    if (t.defined()) set_tangent(e, 0, std::move(t));
  }

  /// The line of what the derivative of `e` computes.
  static CallSite differentiated(const Equation& e) {
    CallSite where = e.where;
    if (where.derivatives == 0) where.differentiated = static_cast<std::uint8_t>(e.op);
    if (where.derivatives < 255) ++where.derivatives;
    return where;
  }

  JvpCall call(const Equation& e, Tensor y) const {
    return {e, operands_, tangents_, std::move(y), mode_};
  }

  void emit_primal(const Equation& e) {
    if (shapes_ == JvpShapes::lifted) {
      const SmallVec<Tensor, 1> results = emit_all(e.op, e.params, operands_, e.where);
      for (std::size_t i = 0; i < e.outputs.size(); ++i) x_[e.outputs[i]] = results[i];
      return;
    }
    repeat(graph_, e, operands_, [&](Var v, Tensor t) { x_[v] = std::move(t); });
  }

  void set_tangent(const Equation& e, std::size_t i, Tensor t) {
    const Tensor& y = x_[e.outputs[i]];
    if (!is_inexact(y.dtype())) return;
    if (t.shape() != y.shape()) t = grad_build::broadcast_along(t, y.shape());
    if (t.shape() != y.shape() || t.dtype() != y.dtype())
      fail(ErrorKind::transform,
           "internal: the jvp rule of " + describe(e.op, e.params) + " gives " + aval_of(t).str() +
               " for " + aval_of(y).str(),
           e.where);
    t_[e.outputs[i]] = std::move(t);
  }

  const GraphBody& graph_;
  JvpMode mode_;
  JvpShapes shapes_;
  RecycledVec<Tensor> x_, t_;  // by Var
  Borrowed operands_, tangents_;
};

}  // namespace jvp_walk

JvpResult jvp_graph(const GraphBody& graph, std::span<const Tensor> primals,
                    std::span<const Tensor> tangents, JvpMode mode, JvpShapes shapes) {
  const Span span("transform", mode == JvpMode::linearize ? "linearize" : "jvp");
  return jvp_walk::Walk(graph, mode, shapes).run(primals, tangents);
}

}  // namespace vt::detail
