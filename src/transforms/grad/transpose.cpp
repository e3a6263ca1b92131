// The transpose walk over a linear Graph, and applying one forward.
#include "transpose.hpp"
#include "jvp.hpp"

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/timeline.hpp"
#include "../../trace/ir/dependence.hpp"
#include "../../trace/record/thread_state.hpp"
#include "build.hpp"
#include "call_rules.hpp"
#include "linear_call.hpp"
#include "pieces.hpp"

namespace vt::detail {

namespace transpose_walk {

/// Values by Var, and which Vars depend on the linear inputs.
struct Values {
  RecycledVec<Tensor> x;
  Vec<bool> linear;
  Dependence dependence;  ///< of the bodies of all equations

  Values(const GraphBody& graph, std::size_t linear_inputs, std::span<const Tensor> rest)
      : x(graph.avals.size()), linear(graph.avals.size()) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (i < linear_inputs) linear[graph.inputs[i]] = true;
      else x[graph.inputs[i]] = rest[i - linear_inputs];
    }
  }
  auto take() {
    return [this](Var v, Tensor t) { x[v] = std::move(t); };
  }
  /// A loop that carries tangents beside values, or a function that takes both, has results that
  /// depend on no tangent: they are the same when these are zero.
  void keep_independent(const GraphBody& graph, const Equation& e) {
    Dependence::Flags operands;
    operands.reserve(e.inputs.size());
    for (Var v : e.inputs) operands.push_back(linear[v]);
    const Dependence::Flags made = dependence.results(graph, e, operands);
    if (std::find(made.begin(), made.end(), false) == made.end()) return;
    std::vector<Tensor> at_zero;
    for (Var v : e.inputs) at_zero.push_back(linear[v] ? grad_build::zeros(graph.aval(v)) : x[v]);
    repeat(graph, e, at_zero, [&](Var v, Tensor t) {
      const std::size_t i = std::find(e.outputs.begin(), e.outputs.end(), v) - e.outputs.begin();
      if (made[i]) return;
      linear[v] = false;
      x[v] = std::move(t);
    });
  }
  bool depends(const Equation& e) const {
    for (Var v : e.inputs)
      if (linear[v]) return true;
    return false;
  }
};

/// Whether a slice takes elements without steps between them.
inline bool is_run(const SliceParams& p) {
  return std::all_of(p.stride.begin(), p.stride.end(), [](std::int64_t step) { return step == 1; });
}

/// The cotangents of a Graph's values as they come in.
class Cotangents {
 public:
  explicit Cotangents(const GraphBody& graph)
      : graph_(graph),
        sums_(graph.avals.size()),
        last_(graph.avals.size(), -1),
        picked_(graph.avals.size(), -1) {}

  void add(Var v, Tensor more) {
    if (!more.defined()) return;  // a result that is given twice, once without a cotangent
    Tensor& sum = sums_[v];
    sum = sum.defined() ? grad_build::binary(Op::add, sum, more) : std::move(more);
  }
  /// What a slice sends back.
  void add_piece(Var v, CotangentPiece piece) {
    pieces_.push_back({std::move(piece), last_[v]});
    last_[v] = static_cast<int>(pieces_.size()) - 1;
  }
  /// What elements that are picked by numbers send back. They are added to the others' in place
  /// where those are written anyway; on their own they would be a whole array of mostly zeros.
  void add_picked(const Equation& e, std::span<const Tensor> operands, Tensor ct) {
    const Var v = e.inputs[0];
    picks_.push_back({&e, {operands.begin() + 1, operands.end()}, std::move(ct), picked_[v]});
    picked_[v] = static_cast<int>(picks_.size()) - 1;
  }
  /// All of it, when nothing more can come.
  Tensor take(Var v) {
    add_pieces(v);
    for (int k = picked_[v]; k >= 0; k = picks_[k].before) add_pick(v, picks_[k]);
    return std::move(sums_[v]);
  }

 private:
  void add_pieces(Var v) {
    if (last_[v] < 0) return;
    std::vector<CotangentPiece> here;  // slices come from the last one on, mostly: now in order
    for (int k = last_[v]; k >= 0; k = pieces_[k].before)
      here.push_back(std::move(pieces_[k].piece));
    add(v, sum_of_pieces(std::move(here), graph_.aval(v)));
  }

  struct Pick {
    const Equation* equation;
    std::vector<Tensor> places;  ///< indices, or where the slice starts
    Tensor ct;
    int before;  ///< the last one of the same value before it
  };
  void add_pick(Var v, Pick& pick) {
    Tensor& sum = sums_[v];
    const bool first = !sum.defined();
    const LikeEquation like(*pick.equation);
    if (first) sum = grad_build::zeros(graph_.aval(v));
    if (pick.equation->op == Op::gather) {
      sum = emit(Op::scatter_add, make_params(scatter_of(pick.equation->as<GatherParams>())),
                 {sum, pick.places[0], pick.ct}, {});
      return;
    }
    std::vector<Tensor> operands{sum};
    operands.insert(operands.end(), pick.places.begin(), pick.places.end());
    if (!first)
      pick.ct = grad_build::binary(
          Op::add, emit(Op::dynamic_slice, pick.equation->params, operands, {}), pick.ct);
    operands.insert(operands.begin() + 1, pick.ct);
    sum = emit(Op::dynamic_update_slice, {}, operands, {});
  }

  struct Piece {
    CotangentPiece piece;
    int before;  ///< the last one of the same value before it
  };

  const GraphBody& graph_;
  RecycledVec<Tensor> sums_;
  Vec<int> last_;    ///< per Var: its last piece, −1: none
  Vec<int> picked_;  ///< … pick
  Vec<Piece> pieces_;
  Vec<Pick> picks_;
};

}  // namespace transpose_walk

std::vector<Tensor> transpose_graph(const GraphBody& graph, std::size_t linear,
                                    std::span<const Tensor> rest,
                                    std::span<const Tensor> cotangents,
                                    std::span<const Tensor> sums) {
  using namespace transpose_walk;
  const Span span("transform", "transpose");
  Values values(graph, linear, rest);
  Borrowed operands;
  for (const Equation& e : graph.equations) {
    if (values.depends(e)) {
      // An integer made from a tangent (a comparison, say) has no derivative; it is not linear
      // either, and refused below only if a cotangent reaches it.
      for (Var v : e.outputs) values.linear[v] = true;
      if (family_of(e.op) == Family::structure && !is_linear_call(e))
        values.keep_independent(graph, e);
      continue;
    }
    operands.clear();
    for (Var v : e.inputs) operands.add(values.x[v]);
    repeat(graph, e, operands, values.take());
  }

  Cotangents ct(graph);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (values.linear[graph.outputs[i]] && is_inexact(graph.aval(graph.outputs[i]).dtype))
      ct.add(graph.outputs[i], cotangents[i]);
  for (std::size_t i = 0; i < sums.size(); ++i) ct.add(graph.inputs[i], sums[i]);

  const Tensor none;
  std::vector<Tensor> results, operand_cts;
  for (auto e = graph.equations.rbegin(); e != graph.equations.rend(); ++e) {
    results.clear();
    bool reached = false;
    for (Var v : e->outputs) {
      results.push_back(ct.take(v));
      reached = reached || results.back().defined();
    }
    if (!reached || !values.depends(*e)) continue;
    operands.clear();
    for (Var v : e->inputs) operands.add(values.linear[v] ? none : values.x[v]);
    operand_cts.assign(e->inputs.size(), Tensor());
    const LikeEquation like(*e);
    if (e->op == Op::slice && is_run(e->as<SliceParams>())) {
      ct.add_piece(e->inputs[0], {e->as<SliceParams>().start, std::move(results[0])});
      continue;
    }
    const TransposeCall call{*e, graph, operands, results, operand_cts};
    const TransposeRule& rule = transpose_rule(e->op);
    for (Var v : e->inputs)  // a predicate or an index made from a tangent
      if (values.linear[v] && !is_inexact(graph.aval(v).dtype)) transpose_rules::refuse(call);
    if (e->op == Op::gather || e->op == Op::dynamic_slice) {
      ct.add_picked(*e, operands, std::move(results[0]));
      continue;
    }
    if (!rule.rule) transpose_rules::refuse(call);
    rule.rule(call);
    for (std::size_t i = 0; i < operand_cts.size(); ++i) {
      const Var v = e->inputs[i];
      Tensor& t = operand_cts[i];
      if (!t.defined() || !values.linear[v]) continue;
      const Aval& wanted = graph.aval(v);
      if (t.shape() != wanted.shape || t.dtype() != wanted.dtype)
        fail(ErrorKind::transform,
             "internal: the transpose of " + describe(e->op, e->params) + " gives " +
                 aval_of(t).str() + " for " + wanted.str(),
             e->where);
      ct.add(v, std::move(t));
    }
  }
  std::vector<Tensor> pulled;
  for (std::size_t i = 0; i < linear; ++i) pulled.push_back(ct.take(graph.inputs[i]));
  return pulled;
}

std::vector<Tensor> push_graph(const GraphBody& graph, std::span<const Tensor> tangents,
                               std::span<const Tensor> rest) {
  using namespace transpose_walk;
  Values values(graph, tangents.size(), rest);
  for (std::size_t i = 0; i < tangents.size(); ++i) values.x[graph.inputs[i]] = tangents[i];
  SmallVec<Tensor, 4> operands;
  for (const Equation& e : graph.equations) {
    const bool depends = values.depends(e);
    operands.clear();
    bool some_zero = false, all_zero = true;
    for (Var v : e.inputs) {
      operands.push_back(values.x[v]);
      if (!values.linear[v]) continue;
      (operands.back().defined() ? all_zero : some_zero) = operands.back().defined() ? false : true;
    }
    for (Var v : e.outputs) values.linear[v] = depends;
    if (depends && all_zero) continue;
    const LikeEquation like(e);
    if (is_linear_call(e)) {
      std::vector<Tensor> results = push_linear_call(e, {operands.data(), operands.size()});
      for (std::size_t i = 0; i < e.outputs.size(); ++i)
        values.x[e.outputs[i]] = std::move(results[i]);
      continue;
    }
    if (depends && (e.op == Op::call || e.op == Op::batched_call)) {
      Vec<bool> linear;
      for (std::size_t i = 0; i < e.inputs.size(); ++i)
        linear.push_back(values.linear[e.inputs[i]]);
      std::vector<Tensor> results = push_call(e, {operands.data(), operands.size()}, linear);
      for (std::size_t i = 0; i < e.outputs.size(); ++i)
        values.x[e.outputs[i]] = std::move(results[i]);
      continue;
    }
    if (depends && some_zero) {
      const Tensor& kept = operands[operands[0].defined() ? 0 : 1];
      if (e.op == Op::add || e.op == Op::sub) {
        const bool negated = e.op == Op::sub && !operands[0].defined();
        const Tensor t = grad_build::broadcast_along(kept, graph.aval(e.outputs[0]).shape);
        values.x[e.outputs[0]] = negated ? grad_build::unary(Op::neg, t) : t;
        continue;
      }
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (!operands[i].defined()) operands[i] = grad_build::zeros(graph.aval(e.inputs[i]));
    }
    repeat(graph, e, {operands.data(), operands.size()}, values.take());
  }
  std::vector<Tensor> pushed;
  for (Var v : graph.outputs) pushed.push_back(values.x[v]);
  return pushed;
}

}  // namespace vt::detail
