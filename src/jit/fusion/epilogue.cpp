// Epilogues: kernels that run inside a matrix product, on rows of its result that were just
// finished.
//
// Any kernel qualifies that reads one row of the result per iteration of an ordinary loop:
// element-wise chains with broadcast operands, but also softmax over a row. The rows are then still
// in the cache of the thread that made them.
#include "epilogue.hpp"

#include <algorithm>

#include "../nest/nest_transform.hpp"
#include "conv_spec.hpp"
#include "matmul_spec.hpp"

namespace vt::detail {

bool stays_in_rows(Nest& nest, int row_loop, const Vec<IndexId>& accesses, std::int64_t columns) {
  Vec<IndexId> first(nest.loops.size(), -1);
  first[row_loop] = nest.indices.constant(0);
  for (IndexId e : accesses) {
    if (nest.indices.factor_of_loop(e, row_loop) != columns ||
        nest.indices.loop_inside_division(e, row_loop))
      return false;
    const IndexBounds rest = nest.indices.bounds(nest.indices.substitute(e, first));
    if (rest.low < 0 || rest.high >= columns) return false;
  }
  return true;
}

namespace epilogue_fusion {

const NestLoop& loop_of(const Nest& nest, int l) { return nest.loops[l]; }

// The loops that may be cut into ranges: those around all stages, or the ordinary ones of the only
// stage.
SmallVec<int, 6> free_loops(const Nest& nest) {
  if (nest.stages.size() > 1) return nest.shared;
  SmallVec<int, 6> loops = nest.shared;
  for (int l : nest.stages[0].loops)
    if (!loop_of(nest, l).reduce) loops.push_back(l);
  return loops;
}

Vec<IndexId> reads_of(const Nest& nest, int buffer) {
  Vec<IndexId> reads;
  for (const NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::load && v.buffer == buffer) reads.push_back(v.index);
  return reads;
}

// Rewrites the nest so that one loop counts the rows of `buffer`, an array of rows × columns; −1 if
// it cannot be done.
int make_row_loop(Nest& nest, int buffer, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t least_columns = 8;  // shorter rows would leave most SIMD lanes idle
  const Vec<IndexId> reads = reads_of(nest, buffer);
  if (reads.empty() || columns < least_columns) return -1;
  // Rows that lie inside a longer loop become one of their own.
  for (int l : free_loops(nest)) {
    const std::int64_t factor = nest.indices.factor_of_loop(reads[0], l),
                       extent = loop_of(nest, l).extent;
    if (factor <= 0 || factor >= columns || factor * extent <= columns) continue;
    if (columns % factor != 0 || extent % (columns / factor) != 0) return -1;
    split_loop(nest, l, columns / factor);
    break;
  }
  // The loops that step over rows, outermost first, become one.
  IndexId read = reads_of(nest, buffer)[0];
  Vec<int> over_rows;
  for (int l : free_loops(nest))
    if (nest.indices.factor_of_loop(read, l) >= columns) over_rows.push_back(l);
  insertion_sort(over_rows, [&](int a, int b) {
    return nest.indices.factor_of_loop(read, a) > nest.indices.factor_of_loop(read, b);
  });
  if (over_rows.empty()) return -1;
  for (std::size_t i = 0; i + 1 < over_rows.size(); ++i) {
    const int outer = over_rows[i], inner = over_rows[i + 1];
    if (loop_of(nest, inner).runtime) return -1;
    if (nest.indices.factor_of_loop(read, outer) !=
        nest.indices.factor_of_loop(read, inner) * loop_of(nest, inner).extent)
      return -1;
    join_by_division(nest, outer, inner);
    read = reads_of(nest, buffer)[0];
  }
  const int row = over_rows.back();
  if (loop_of(nest, row).extent != rows) return -1;
  return stays_in_rows(nest, row, reads_of(nest, buffer), columns) ? row : -1;
}

bool in_order(const Nest& nest) {
  for (const NestStore& s : nest.stores)
    if (s.update != Op::input) return true;
  for (const NestLoop& l : nest.loops)
    if (l.block_of >= 0) return true;
  return false;
}

class Attacher {
 public:
  Attacher(Fusion& fusion, int vector_bytes) : fusion_(fusion), vector_bytes_(vector_bytes) {}

  void run(FunctionRef<bool(FusedStep&, const FusedStep&, bool)> attach) {
    Vec<FusedStep>& steps = fusion_.steps;
    Vec<char> moved(steps.size(), 0);
    const std::size_t vars = fusion_.graph.avals.size();
    Vec<int> first_reader(vars, -1), last_reader(vars, -1), product_of(vars, -1);
    Vec<char> is_result(vars, 0);
    for (Var o : fusion_.graph.outputs) is_result[storage(o)] = 1;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (Var v : reads(steps[k])) {
        if (first_reader[v] < 0) first_reader[v] = static_cast<int>(k);
        last_reader[v] = static_cast<int>(k);
      }
      if (is_product(steps[k])) product_of[result_of(steps[k])] = static_cast<int>(k);
    }
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (steps[k].equation >= 0 || steps[k].partial || steps[k].nest.stages.empty() ||
          in_order(steps[k].nest))
        continue;
      // The product nearest to it; nobody reads its result before, so it can wait until here.
      int best = -1;
      for (Var v : steps[k].buffers)
        if (first_reader[v] == static_cast<int>(k)) best = std::max(best, product_of[v]);
      if (best < 0) continue;
      const FusedStep& product = steps[best];
      // Nothing but this step reads the product's result?
      const std::size_t made = result_of(product);
      const bool alone = !is_result[made] && last_reader[made] == static_cast<int>(k);
      if (!attach(steps[k], product, alone)) continue;
      moved[best] = 1;
    }
    Vec<FusedStep> kept;
    for (std::size_t k = 0; k < steps.size(); ++k)
      if (!moved[k]) kept.push_back(std::move(steps[k]));
    steps = std::move(kept);
  }

  bool attach(FusedStep& kernel, const FusedStep& product, bool alone) {
    const Equation& e = equation_of(product);
    const std::optional<Matrix> result = matrix_of(product);
    if (!result) return false;
    const auto at = std::find(kernel.buffers.begin(), kernel.buffers.end(), result_of(product));
    const int buffer = static_cast<int>(at - kernel.buffers.begin());
    Nest nest;
    int row = -1;
    std::int64_t group = 1;
    for (std::int64_t width : widths(kernel.nest, buffer, *result)) {
      nest = kernel.nest;
      group = width / result->columns;
      row = make_row_loop(nest, buffer, result->rows / group, width);
      if (row >= 0) break;
    }
    if (row < 0) return false;
    // Lanes that go along the rows would need ranges of whole vectors of them.
    for (const StageSchedule& s : schedule_epilogue(nest, row, vector_bytes_).stages)
      if (s.vector_loop == row || s.tile_loop == row) return false;
    kernel.nest = std::move(nest);
    kernel.join(product);
    kernel.row_loop = row;
    kernel.row_group = group;
    const DType d = fusion_.graph.aval(e.outputs[0]).dtype;
    kernel.rows_alone = e.op == Op::conv_general && d != DType::f16 && d != DType::bf16 && alone;
    return true;
  }

 private:
  const Equation& equation_of(const FusedStep& s) const {
    return fusion_.graph.equations[s.equation];
  }
  Var storage(Var v) const { return fusion_.storage[v]; }
  bool is_product(const FusedStep& s) const {
    return s.equation >= 0 && family_of(equation_of(s).op) == Family::contract;
  }
  Var result_of(const FusedStep& s) const { return storage(equation_of(s).outputs[0]); }
  Vec<Var> reads(const FusedStep& s) const {
    Vec<Var> all(s.buffers.begin(), s.buffers.end());
    if (s.equation >= 0)
      for (Var v : equation_of(s).inputs) all.push_back(storage(v));
    return all;
  }

  // What a product makes, as rows that are finished one after the other.
  struct Matrix {
    std::int64_t rows, columns;
    /// rows that are finished together at the latest: groups of them must divide it
    std::int64_t image = 1;
  };
  std::optional<Matrix> matrix_of(const FusedStep& step) const {
    if (const MatmulSpec* p = step.product.get()) {
      if (p->batch * p->m * p->n * p->k == 0) return std::nullopt;
      return Matrix{p->batch * p->m, p->n};
    }
    const ConvSpec* c = step.convolution.get();
    if (!c || !c->rows_in_order || c->multiply_adds() == 0) return std::nullopt;
    std::int64_t image = 1;
    for (const ConvWindow& w : c->windows) image *= w.out;
    const Aval& out = fusion_.graph.aval(equation_of(step).outputs[0]);
    return Matrix{out.elements() / c->columns.extent, c->columns.extent, image};
  }

  // As wide as a row, or as several of them that the kernel reads in one iteration of a loop, as
  // those under a pool: the fewest first.
  SmallVec<std::int64_t, 4> widths(const Nest& nest, int buffer, const Matrix& m) const {
    SmallVec<std::int64_t, 4> found{m.columns};
    const Vec<IndexId> reads = reads_of(nest, buffer);
    if (reads.empty() || m.image == 1) return found;
    for (int l : free_loops(nest)) {
      const std::int64_t factor = nest.indices.factor_of_loop(reads[0], l);
      if (factor > m.columns && factor % m.columns == 0 && m.image % (factor / m.columns) == 0)
        found.push_back(factor);
    }
    insertion_sort(found);
    return found;
  }

  Fusion& fusion_;
  int vector_bytes_;
};

}  // namespace epilogue_fusion

void attach_epilogues(Fusion& fusion, int vector_bytes) {
  epilogue_fusion::Attacher attacher(fusion, vector_bytes);
  attacher.run([&](FusedStep& kernel, const FusedStep& product, bool alone) {
    return attacher.attach(kernel, product, alone);
  });
}

void attach_to_products(Fusion& fusion,
                        FunctionRef<bool(FusedStep&, const FusedStep&, bool)> attach) {
  epilogue_fusion::Attacher(fusion, 0).run(attach);
}

Schedule schedule_epilogue(const Nest& nest, int row_loop, int vector_bytes, std::string* log) {
  Schedule s = choose_schedule(nest, vector_bytes, {}, log);
  s.parallel_loop = row_loop;
  return s;
}

}  // namespace vt::detail
