// Program: how its steps are cut by rows, so that they work on any number of them.
#include "program.hpp"

namespace vt::detail {

// A loop whose extent is a multiple of the number of rows is one over rows, as that is prime and
// divides nothing else.
bool Program::cut_kernel_by_rows(Step& step, const FusedStep& fused) const {
  int argument = 0;
  for (std::size_t l = 0; l < fused.nest.loops.size(); ++l) {
    const NestLoop& loop = fused.nest.loops[l];
    const int own = loop.runtime ? argument++ : -1;
    const std::int64_t extent = loop.block_of >= 0 ? loop.total : loop.extent;
    if (extent % most_rows_ != 0) continue;
    const bool parallel = fused.schedule.parallel_loop == static_cast<int>(l);
    if (loop.reduce || loop.block_of >= 0 || (own < 0 && !parallel)) return false;
    if (own >= 0) step.row_arguments.push_back({own, extent / most_rows_});
    if (parallel) step.of_row = extent / most_rows_;
  }
  return !fused.partial;
}

bool Program::cut_by_rows() {
  const auto has_rows = [this](std::int64_t n) { return n > 0 && n % most_rows_ == 0; };
  for (const Aval& a : fusion_.graph.avals)
    if (count_if(a.shape, has_rows) > 1) return false;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    Step& step = steps_[k];
    const FusedStep& fused = fusion_.steps[k];
    if (!step.slots.empty() && step.kind != Step::Kind::linalg && !cut_kernel_by_rows(step, fused))
      return false;
    switch (step.kind) {
      case Step::Kind::kernel: break;
      case Step::Kind::product: {
        if (!fused.product) return false;  // a convolution
        const MatmulSpec& p = *fused.product;
        if (has_rows(p.n) || has_rows(p.k)) return false;
        if (p.batch > 1 && !has_rows(p.batch) && has_rows(p.m)) return false;
        const std::int64_t rows = p.batch * p.m;
        step.of_row = has_rows(rows) ? rows / most_rows_ : 0;
        if (step.kernel && (step.of_row == 0 || step.of_row % step.row_group != 0)) return false;
        break;
      }
      case Step::Kind::sort:
        if (has_rows(step.sort.length) || has_rows(step.sort.inner)) return false;
        step.of_row = has_rows(step.sort.outer) ? step.sort.outer / most_rows_ : 0;
        break;
      case Step::Kind::linalg:
        step.of_row = has_rows(step.linalg.batch) ? step.linalg.batch / most_rows_ : 0;
        break;
      case Step::Kind::fft:
        step.of_row = has_rows(step.fft.batch) ? step.fft.batch / most_rows_ : 0;
        break;
      case Step::Kind::control:
      case Step::Kind::equation: return false;
    }
  }
  return true;
}

}  // namespace vt::detail
