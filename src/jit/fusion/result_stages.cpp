// Stages for what is made of the results of row sums.
#include "result_stages.hpp"

#include <algorithm>

#include "../nest/nest_transform.hpp"
#include "../nest/schedule.hpp"

namespace vt::detail {

namespace result_stages {

/// Rows of a block.
constexpr std::int64_t block_rows = 256;
/// Less, in operations for each row, is not worth the array.
constexpr double least_weight = 8;
/// … nor is what the sum itself takes so many times as long as.
constexpr double longest_sum = 16;

double weight_of(const Nest& nest, const Vec<int>& values) {
  double weight = 0;
  for (int v : values)
    if (const NestValue& value = nest.values[v]; value.kind == NestValue::Kind::op)
      weight += op_weight(value.op, value.dtype);
  return weight;
}

/// The loop over rows, which are next to each other in all that is stored; −1: there is none.
int loop_of_rows(const Nest& nest) {
  int rows = -1;
  for (int l : nest.stages[0].loops) {
    const NestLoop& loop = nest.loops[l];
    if (loop.block_of >= 0) return -1;
    if (!loop.reduce) rows = l;
  }
  if (rows < 0 || nest.loops[rows].extent < 2 * block_rows) return -1;
  const bool in_order = all_of(nest.stores, [&](const NestStore& s) {
    return s.after && s.update == Op::input && nest.indices.factor_of_loop(s.index, rows) == 1 &&
           !nest.indices.loop_inside_division(s.index, rows);
  });
  return in_order ? rows : -1;
}

bool is_worth_it(const Nest& nest, int vector_bytes) {
  const Schedule schedule = choose_schedule(nest, vector_bytes);
  const StageSchedule& stage = schedule.stages[0];
  if (stage.mode != StageSchedule::Mode::horizontal || stage.vector_loop < 0) return false;
  Vec<int> inside, after;
  for (const NestReduction& r : nest.reductions) add_roots(r, inside);
  for (const NestStore& s : nest.stores) add_roots(nest, s, after);
  double length = 1;
  for (int l : nest.stages[0].loops)
    if (nest.loops[l].reduce) length *= static_cast<double>(nest.loops[l].extent);
  const double weight = weight_of(nest, needed_values(nest, after)),
               sum = (1 + weight_of(nest, needed_values(nest, inside))) * length /
                     schedule.simd_lanes;
  return weight >= least_weight && sum < longest_sum * weight;
}

void split(FusedStep& step, int rows) {
  Nest& nest = step.nest;
  const int blocks = cut_loop(nest, rows, block_rows);
  SmallVec<int, 6>& first = nest.stages[0].loops;
  const int* const place = std::find(first.begin(), first.end(), rows);
  // Loops around that over rows are shared, and so are blocks of rows.
  for (const int* l = first.begin(); l != place; ++l)
    if (*l != blocks && !nest.loops[*l].reduce) nest.shared.push_back(*l);
  nest.shared.push_back(blocks);
  erase_if(first, [&](int l) {
    return std::find(nest.shared.begin(), nest.shared.end(), l) != nest.shared.end();
  });
  NestStage second;
  second.loops.push_back(rows);
  nest.stages.push_back(second);
  for (NestStore& s : nest.stores) s.stage = 1, s.after = false;
  // Each result becomes what the second stage reads, and a new value what the first one stores.
  const IndexId row = nest.indices.loop(rows, block_rows);
  for (std::size_t v = 0, count = nest.values.size(); v < count; ++v) {
    if (nest.values[v].kind != NestValue::Kind::reduced) continue;
    NestStore store;
    store.buffer = static_cast<int>(nest.buffers.size());
    store.index = row;
    store.value = static_cast<int>(nest.values.size());
    store.after = true;
    NestBuffer array;
    array.dtype = nest.values[v].dtype;
    array.written = true;
    array.alias = store.buffer;
    array.local = block_rows;
    nest.buffers.push_back(array);
    nest.values.push_back(nest.values[v]);
    NestValue load;
    load.kind = NestValue::Kind::load;
    load.dtype = array.dtype;
    load.buffer = store.buffer;
    load.index = row;
    load.where = nest.values[v].where;
    nest.values[v] = load;
    nest.stores.push_back(store);
  }
  for (NestReduction& r : nest.reductions) {
    Vec<IndexId> without(nest.loops.size(), -1);
    for (int l : nest.shared) without[l] = nest.indices.constant(0);
    if (r.kept >= 0) r.kept = nest.indices.substitute(r.kept, without);
  }
}

}  // namespace result_stages

void give_results_stages(Fusion& fusion, int vector_bytes) {
  using namespace result_stages;
  for (FusedStep& step : fusion.steps) {
    const Nest& nest = step.nest;
    if (step.equation >= 0 || step.partial || nest.stages.size() != 1 || !nest.shared.empty() ||
        nest.reductions.empty() || any_of(nest.reductions, [](const NestReduction& r) {
          return r.running || r.op == Op::reduce;
        }))
      continue;
    const int rows = loop_of_rows(nest);
    if (rows >= 0 && is_worth_it(nest, vector_bytes)) split(step, rows);
  }
}

}  // namespace vt::detail
