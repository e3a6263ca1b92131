// Takes sums over rows or columns of a matrix product of its operand instead: Σ over m of (a · b) =
// (Σ over m of a) · b.
//
// Derivatives by what is shared between the rows of a batch (a bias, a mean) come out as such sums,
// and the product is never needed. In floats the terms are added in another order, as in every
// product and every cut reduction; 16-bit floats, whose sums would be rounded before they are
// multiplied, and products of a wider dtype than their operands stay as they are.
#include <algorithm>
#include <memory>
#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace product_sums {

// A sum, the product it is taken of, and what lies between them: other sums, transposes and an odd
// or even number of negations.
struct Match {
  int product = -1;
  Vec<int> between;  // equations, from the sum to the product
  Axes axes;         // summed, of the product's result
  Axes kept;         // the product's axes along those of the sum's result
  bool negated = false;
};

class Rewriter {
 public:
  explicit Rewriter(const GraphBody& graph)
      : graph_(graph), maker_(makers_of(graph)), uses_(reads_of(graph)) {}

  std::optional<GraphBody> run() {
    Vec<std::optional<Match>> matches(graph_.equations.size());
    Vec<char> gone(graph_.equations.size(), 0);
    bool any = false;
    for (std::size_t i = 0; i < graph_.equations.size(); ++i) {
      matches[i] = match(graph_.equations[i]);
      if (!matches[i]) continue;
      any = true;
      gone[matches[i]->product] = 1;
      for (int e : matches[i]->between) gone[e] = 1;
    }
    if (!any) return std::nullopt;
    result_ = graph_;
    result_.equations.clear();
    for (std::size_t i = 0; i < graph_.equations.size(); ++i) {
      if (gone[i]) continue;
      if (matches[i]) rewrite(graph_.equations[i], *matches[i]);
      else result_.equations.push_back(graph_.equations[i]);
    }
    return std::move(result_);
  }

 private:
  const Equation* maker(Var v, int* index) const {
    *index = uses_[v] == 1 ? maker_[v] : -1;
    return *index < 0 ? nullptr : &graph_.equations[*index];
  }

  // Is it a sum that `checked` has written?
  bool is_checked(Var sum) const {
    return any_of(graph_.equations, [&](const Equation& e) {
      if (e.op != Op::select || e.inputs[2] != sum || maker_[e.inputs[0]] < 0) return false;
      const Equation& p = graph_.equations[maker_[e.inputs[0]]];
      return p.op == Op::is_finite && p.inputs[0] == e.inputs[1];
    });
  }

  std::optional<Match> match(const Equation& sum) const {
    if (sum.op != Op::reduce_sum) return std::nullopt;
    Match m;
    m.axes = sum.as<AxesParams>().axes;
    for (int i = 0; i < graph_.aval(sum.inputs[0]).shape.rank(); ++i)
      if (!m.axes.contains(i)) m.kept.push_back(i);
    const Equation* e = maker(sum.inputs[0], &m.product);
    for (; e && (e->op == Op::neg || e->op == Op::transpose || e->op == Op::reduce_sum);
         e = maker(e->inputs[0], &m.product)) {
      m.between.push_back(m.product);
      if (e->op == Op::neg) {
        m.negated = !m.negated;
        continue;
      }
      for (Axes* axes : {&m.axes, &m.kept})
        for (int& axis : *axes) axis = axis_of_operand(graph_, *e, 0, axis);
      if (e->op == Op::reduce_sum)
        for (int axis : e->as<AxesParams>().axes) m.axes.push_back(axis);
    }
    if (!e || e->op != Op::dot_general) return std::nullopt;
    const DotParams& p = e->as<DotParams>();
    const Aval &lhs = graph_.aval(e->inputs[0]), &rhs = graph_.aval(e->inputs[1]);
    if (p.dtype == DType::f16 || p.dtype == DType::bf16 || lhs.dtype != p.dtype ||
        rhs.dtype != p.dtype)
      return std::nullopt;
    const bool own =
        all_of(m.axes, [&](int axis) { return axis >= static_cast<int>(p.lhs_batch.size()); });
    if (!own || m.axes.empty() || is_checked(sum.outputs[0])) return std::nullopt;
    return m;
  }

  Var add(Op op, ParamsRef params, std::initializer_list<Var> inputs, CallSite where) {
    return add_equation(result_, op, std::move(params), inputs, where);
  }

  // Sums the operand over its free axes number `summed` and renumbers the others.
  Var summed_operand(Var operand, const Axes& summed, Axes& contract, Axes& batch, CallSite where) {
    if (summed.empty()) return operand;
    const int rank = graph_.aval(operand).shape.rank();
    const Axes free = free_axes(rank, contract, batch);
    Axes axes, kept;
    for (int i : summed) axes.push_back(free[i]);
    insertion_sort(axes);
    for (int i = 0; i < rank; ++i)
      if (!axes.contains(i)) kept.push_back(i);
    for (Axes* list : {&contract, &batch})
      for (int& axis : *list)
        axis = static_cast<int>(std::find(kept.begin(), kept.end(), axis) - kept.begin());
    return add(Op::reduce_sum, make_params(AxesParams{axes}), {operand}, where);
  }

  void rewrite(const Equation& sum, const Match& m) {
    const Equation& product = graph_.equations[m.product];
    DotParams p = product.as<DotParams>();
    const int batch = static_cast<int>(p.lhs_batch.size());
    const int left = graph_.aval(product.inputs[0]).shape.rank() - batch -
                     static_cast<int>(p.lhs_contract.size());
    Axes of_lhs, of_rhs;
    for (int axis : m.axes) {
      if (axis < batch + left) of_lhs.push_back(axis - batch);
      else of_rhs.push_back(axis - batch - left);
    }
    const Var a = summed_operand(product.inputs[0], of_lhs, p.lhs_contract, p.lhs_batch, sum.where);
    const Var b = summed_operand(product.inputs[1], of_rhs, p.rhs_contract, p.rhs_batch, sum.where);
    Axes kept = m.kept;
    insertion_sort(kept);
    Var x = add(Op::dot_general, make_params(std::move(p)), {a, b}, product.where);
    Axes permutation;
    for (int axis : m.kept)
      permutation.push_back(
          static_cast<int>(std::find(kept.begin(), kept.end(), axis) - kept.begin()));
    if (!is_identity(permutation))
      x = add(Op::transpose, make_params(PermutationParams{permutation}), {x}, sum.where);
    if (m.negated) x = add(Op::neg, {}, {x}, sum.where);
    if (is_inexact(graph_.aval(sum.outputs[0]).dtype) && !sum.assume_finite) x = checked(sum, m, x);
    // Whoever reads the sum reads this instead.
    result_.equations.back().outputs[0] = sum.outputs[0];
  }

  // 0 · ∞ in the product is NaN, which its factors' sum would lose: where the result is not finite,
  // the product is made after all.
  Var checked(const Equation& sum, const Match& m, Var x) {
    const Equation& product = graph_.equations[m.product];
    const auto body = [&] {
      auto made = std::make_shared<GraphBody>();
      for (Var v : {x, product.inputs[0], product.inputs[1]})
        made->inputs.push_back(made->fresh(result_.aval(v)));
      return made;
    };
    const auto as_it_was = body(), as_made = body();
    as_made->outputs.push_back(as_made->inputs[0]);
    Copier again(graph_.avals, *as_it_was);
    again.bind(product.inputs[0], as_it_was->inputs[1]);
    again.bind(product.inputs[1], as_it_was->inputs[2]);
    again.add(product);
    for (std::size_t i = m.between.size(); i-- > 0;) again.add(graph_.equations[m.between[i]]);
    again.add(sum);
    const Var given = as_it_was->inputs[0],
              kept = add_equation(*as_it_was, Op::is_finite, {}, {given}, sum.where);
    as_it_was->outputs.push_back(
        add_equation(*as_it_was, Op::select, {}, {kept, given, again[sum.outputs[0]]}, sum.where));
    const Axes every = Axes::first(graph_.aval(sum.outputs[0]).shape.rank());
    const Var finite = add(Op::is_finite, {}, {x}, sum.where),
              all = add(Op::reduce_all, make_params(AxesParams{every}), {finite}, sum.where),
              index = add(Op::convert, make_params(ConvertParams{DType::i32}), {all}, sum.where);
    CondParams p;
    p.branches = {as_it_was, as_made};
    return add(Op::cond, make_params(std::move(p)),
               {index, x, product.inputs[0], product.inputs[1]}, sum.where);
  }

  const GraphBody& graph_;
  Vec<int> maker_, uses_;
  GraphBody result_;
};

}  // namespace product_sums

GraphBody sum_before_products(GraphBody graph) {
  // Sums of sums of products: what one walk makes, the next may find.
  while (std::optional<GraphBody> better = product_sums::Rewriter(graph).run())
    graph = std::move(*better);
  return graph;
}

}  // namespace vt::detail
