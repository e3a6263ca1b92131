// Program: how its steps are cut by rows, so that they work on any number of them.
#include "program.hpp"

namespace vt::detail {

// Per buffer: are its first elements those of its first rows? Not so where something lies around
// the rows, as in a transposed array, or in one that has been made of such by reshape.
Vec<bool> Program::rows_first() const {
  const GraphBody& g = fusion_.graph;
  Vec<bool> first(g.avals.size(), true);
  for (std::size_t v = 0; v < first.size(); ++v) {
    std::int64_t around = 1;
    for (std::int64_t extent : g.avals[v].shape) {
      if (extent > 0 && extent % most_rows_ == 0) {
        first[v] = around == 1;
        break;
      }
      around *= extent;
    }
  }
  for (const Equation& e : g.equations)
    if (e.op == Op::reshape && !first[e.inputs[0]]) first[e.outputs[0]] = false;
  for (std::size_t v = 0; v < first.size(); ++v)
    if (!first[v]) first[fusion_.storage[v]] = false;
  return first;
}

// Per buffer: is there as much of it as there are rows? Others are as large for any number of rows,
// and need more memory than results of few rows have.
Vec<bool> Program::led_by_rows() const {
  Vec<bool> led = rows_first();
  for (std::size_t v = 0; v < led.size(); ++v)
    led[v] = led[v] && any_of(fusion_.graph.avals[v].shape, [&](std::int64_t extent) {
               return extent > 0 && extent % most_rows_ == 0;
             });
  return led;
}

// A loop whose extent is a multiple of the number of rows is one over rows, as that is prime and
// divides nothing else. One over more than rows goes along memory.
bool Program::cut_kernel_by_rows(Step& step, const FusedStep& fused, bool all_rows_first) const {
  int argument = 0;
  for (std::size_t l = 0; l < fused.nest.loops.size(); ++l) {
    const NestLoop& loop = fused.nest.loops[l];
    const int own = loop.runtime ? argument++ : -1;
    const std::int64_t extent = loop.block_of >= 0 ? loop.total : loop.extent;
    if (extent % most_rows_ != 0) continue;
    const bool parallel = fused.schedule.parallel_loop == static_cast<int>(l);
    if (loop.reduce || loop.block_of >= 0 || (own < 0 && !parallel)) return false;
    if (extent != most_rows_ && !all_rows_first) return false;
    if (own >= 0) step.row_arguments.push_back({own, extent / most_rows_});
    if (parallel) step.of_row = extent / most_rows_;
  }
  return !fused.partial;
}

bool Program::cut_by_rows() {
  const auto has_rows = [this](std::int64_t n) { return n > 0 && n % most_rows_ == 0; };
  for (const Aval& a : fusion_.graph.avals)
    if (count_if(a.shape, has_rows) > 1) return false;
  const Vec<bool> first = rows_first();
  const auto all_first = [&](const auto& buffers) {
    return !any_of(buffers, [&](Var v) { return !first[v]; });
  };
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    Step& step = steps_[k];
    const FusedStep& fused = fusion_.steps[k];
    if (!step.slots.empty() && step.kind != Step::Kind::linalg &&
        !cut_kernel_by_rows(step, fused, all_first(step.slots)))
      return false;
    // Many at a time are counted along memory.
    const auto can_be_cut = [&](std::int64_t many) {
      return !has_rows(many) || many == most_rows_ || all_first(step.operands);
    };
    switch (step.kind) {
      case Step::Kind::kernel: break;
      case Step::Kind::product: {
        if (!fused.product) return false;  // a convolution
        const MatmulSpec& p = *fused.product;
        if (has_rows(p.n) || has_rows(p.k)) return false;
        if (p.batch > 1 && !has_rows(p.batch) && has_rows(p.m)) return false;
        if (!can_be_cut(p.batch * (p.batch == most_rows_ ? 1 : p.m))) return false;
        const std::int64_t rows = p.batch * p.m;
        step.of_row = has_rows(rows) ? rows / most_rows_ : 0;
        if (step.kernel && (step.of_row == 0 || step.of_row % step.row_group != 0)) return false;
        break;
      }
      case Step::Kind::sort:
        if (has_rows(step.sort.length) || has_rows(step.sort.inner) || !can_be_cut(step.sort.outer))
          return false;
        step.of_row = has_rows(step.sort.outer) ? step.sort.outer / most_rows_ : 0;
        break;
      case Step::Kind::linalg:
        if (!can_be_cut(step.linalg.batch)) return false;
        step.of_row = has_rows(step.linalg.batch) ? step.linalg.batch / most_rows_ : 0;
        break;
      case Step::Kind::fft:
        if (!can_be_cut(step.fft.batch)) return false;
        step.of_row = has_rows(step.fft.batch) ? step.fft.batch / most_rows_ : 0;
        break;
      case Step::Kind::rows:
        if (!has_rows(step.iterations) || !all_first(step.operands)) return false;
        step.of_row = step.iterations / most_rows_;
        break;
      case Step::Kind::control:
      case Step::Kind::equation: return false;
    }
    // Rows that the step knows nothing of, as columns of the right sides of a system.
    const auto any_rows = [&](const auto& buffers) {
      return any_of(buffers, [&](Var v) { return any_of(fusion_.graph.aval(v).shape, has_rows); });
    };
    if (step.of_row == 0 && step.row_arguments.empty() &&
        (any_rows(step.operands) || any_rows(step.slots)))
      return false;
  }
  return true;
}

}  // namespace vt::detail
