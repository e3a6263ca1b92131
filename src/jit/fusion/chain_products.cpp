// Chains: two matrix products and the kernel between them as one step.
#include "chain_products.hpp"

#include "epilogue.hpp"
#include "matmul_spec.hpp"

namespace vt::detail {

namespace product_chains {

class Chainer {
 public:
  using Chains = FunctionRef<bool(const MatmulSpec&, const MatmulSpec&)>;
  Chainer(Fusion& fusion, Chains chains) : fusion_(fusion), chains_(chains) {}

  void run() {
    Vec<FusedStep>& steps = fusion_.steps;
    Vec<char> moved(steps.size(), 0);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const int taker = steps[k].row_loop >= 0 && steps[k].row_group == 1 ? taker_of(k) : -1;
      if (taker < 0) continue;
      FusedStep& later = steps[taker];
      steps[k].then = later.equation;
      steps[k].product_then = later.product;
      steps[k].handed_on = storage(equation(later.equation).inputs[0]);
      // A kernel on the second product's rows runs by itself again.
      if (later.row_loop >= 0) {
        later.join({});
        later.row_loop = -1, later.row_group = 1;
      } else {
        moved[taker] = 1;
      }
    }
    Vec<FusedStep> kept;
    for (std::size_t k = 0; k < steps.size(); ++k)
      if (!moved[k]) kept.push_back(std::move(steps[k]));
    steps = std::move(kept);
  }

 private:
  const Equation& equation(int e) const { return fusion_.graph.equations[e]; }
  Var storage(Var v) const { return fusion_.storage[v]; }
  bool among(std::span<const Var> list, Var v) const {
    for (Var other : list)
      if (storage(other) == v) return true;
    return false;
  }

  // Does the step read or write v, other than as the operand of its product that `operand` is?
  bool touches(const FusedStep& step, Var v, int operand = -1) const {
    if (among(step.buffers, v)) return true;
    for (int e : step.equations()) {
      const Equation& of = equation(e);
      for (std::size_t i = 0; i < of.inputs.size(); ++i)
        if (storage(of.inputs[i]) == v && (e != step.equation || static_cast<int>(i) != operand))
          return true;
      if (among(of.outputs, v)) return true;
    }
    return false;
  }
  bool is_output(Var v) const { return among(fusion_.graph.outputs, v); }

  // The step whose product alone takes what the kernel of step k makes of its product's rows, if
  // both can run together; else −1.
  int taker_of(std::size_t k) const {
    const FusedStep& step = fusion_.steps[k];
    const Equation& first = equation(step.equation);
    if (first.op != Op::dot_general) return -1;
    const Var made = storage(first.outputs[0]);
    if (is_output(made) || used_elsewhere(made, k, k)) return -1;
    for (std::size_t b = 0; b < step.buffers.size(); ++b) {
      const Var rows = step.buffers[b];
      if (!step.nest.buffers[b].written || step.nest.buffers[b].local > 0 || is_output(rows))
        continue;
      for (std::size_t t = k + 1; t < fusion_.steps.size(); ++t) {
        const FusedStep& later = fusion_.steps[t];
        if (later.equation < 0 || later.then >= 0 || equation(later.equation).op != Op::dot_general)
          continue;
        const Equation& second = equation(later.equation);
        if (storage(second.inputs[0]) != rows || touches(later, rows, 0) ||
            used_elsewhere(rows, k, t))
          continue;
        if (fits(step, static_cast<int>(b), later) && known_before(storage(second.inputs[1]), k))
          return static_cast<int>(t);
      }
    }
    return -1;
  }

  bool used_elsewhere(Var v, std::size_t here, std::size_t there) const {
    for (std::size_t s = 0; s < fusion_.steps.size(); ++s)
      if (s != here && s != there && touches(fusion_.steps[s], v)) return true;
    return false;
  }

  // Has no step from k on to make it?
  bool known_before(Var v, std::size_t k) const {
    for (std::size_t s = k; s < fusion_.steps.size(); ++s) {
      const FusedStep& step = fusion_.steps[s];
      for (std::size_t b = 0; b < step.buffers.size(); ++b)
        if (step.buffers[b] == v && step.nest.buffers[b].written) return false;
      for (int e : step.equations())
        if (among(equation(e).outputs, v)) return false;
    }
    return true;
  }

  bool fits(const FusedStep& step, int buffer, const FusedStep& later) const {
    return step.product && later.product &&
           whole_rows(step.nest, step.row_loop, buffer, later.product->k) &&
           chains_(*step.product, *later.product);
  }

  // Does each iteration of the row loop write its own row of `columns` elements, and read no other?
  bool whole_rows(Nest nest, int row, int buffer, std::int64_t columns) const {
    Vec<IndexId> accesses;
    for (const NestStore& s : nest.stores)
      if (s.buffer == buffer) accesses.push_back(s.index);
    for (const NestValue& v : nest.values)
      if (v.kind == NestValue::Kind::load && v.buffer == buffer) accesses.push_back(v.index);
    return stays_in_rows(nest, row, accesses, columns);
  }

  Fusion& fusion_;
  Chains chains_;
};

}  // namespace product_chains

void chain_products(Fusion& fusion,
                    FunctionRef<bool(const MatmulSpec&, const MatmulSpec&)> chains) {
  product_chains::Chainer(fusion, chains).run();
}

}  // namespace vt::detail
