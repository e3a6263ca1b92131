// What the decisions of a schedule go by: the body of a stage, its cost with SIMD lanes along a
// given loop, tiles it could be read in, its bytes.
#include "schedule_costs.hpp"

#include <algorithm>

namespace vt::detail {

namespace scheduling {

// The share of iterations in which a load under this mask, the same for all SIMD lanes of `loop`,
// reads at
// all: where sections of another loop decide it, it is not even asked.
double share_read(const Nest& nest, int mask, std::uint64_t simd_lanes_of,
                  const Vec<std::uint64_t>& dependences) {
  if (mask < 0 || (dependences[mask] & simd_lanes_of) != 0) return 1;
  const NestValue& v = nest.values[mask];
  if (v.kind == NestValue::Kind::op && v.op == Op::and_) {
    double share = 1;
    for (int o : v.operands) share *= share_read(nest, o, simd_lanes_of, dependences);
    return share;
  }
  if (v.kind != NestValue::Kind::in_range) return 1;
  const IndexBounds all = nest.indices.bounds(v.index);
  const double from = static_cast<double>(std::max(v.low, all.low)),
               to = static_cast<double>(std::min(v.high, all.high + 1));
  return std::clamp(
      (to - from) / static_cast<double>(std::max<std::int64_t>(all.high + 1 - all.low, 1)), 0.0,
      1.0);
}

Body body_of(const Nest& nest, int stage, bool after) {
  Body body;
  Vec<int> roots;
  for (const NestStore& s : nest.stores)
    if (s.stage == stage && s.after == after) {
      body.stores.push_back(&s);
      add_roots(nest, s, roots);
    }
  if (!after)
    for (const NestReduction& r : nest.reductions)
      if (r.stage == stage) add_roots(r, roots);
  body.values = needed_values(nest, roots);
  return body;
}

double cost_along(const Nest& nest, const Body& body, int loop, int simd_lanes,
                  const Vec<std::uint64_t>& dependences, bool horizontal, bool transposed,
                  const MachineCosts& costs) {
  const std::uint64_t bit = std::uint64_t{1} << loop;
  double work = 1;  // the loop itself
  const auto access = [&](IndexId index) {
    return access_cost(simd_step(nest, index, loop, simd_lanes, dependences), simd_lanes,
                       transposed, costs);
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[id];
    if (v.kind == NestValue::Kind::load)
      work += access(v.index) * share_read(nest, v.mask, bit, dependences);
    else if (!(dependences[id] & bit)) continue;
    else if (v.kind == NestValue::Kind::op) work += op_cost(v.op, v.dtype, costs);
    else if (v.kind == NestValue::Kind::index || v.kind == NestValue::Kind::in_range) work += 1;
  }
  for (const NestStore* s : body.stores)
    work += interleaved_with(nest, *s, loop, simd_lanes, dependences).empty()
                ? 1.5 * access(s->index)
                : 1.5 + weaving;
  const std::int64_t extent = std::max<std::int64_t>(loop_of(nest, loop).extent, 1);
  const std::int64_t vectors = (extent + simd_lanes - 1) / simd_lanes;
  // combining the SIMD lanes
  if (horizontal) work += combining_simd_lanes / static_cast<double>(vectors);
  return work * static_cast<double>(vectors) / static_cast<double>(extent);
}

bool all_contiguous(const Nest& nest, const Body& body, int loop, int simd_lanes,
                    const Vec<std::uint64_t>& dependences) {
  const auto good = [&](IndexId index) {
    const SimdStep s = simd_step(nest, index, loop, simd_lanes, dependences);
    return s.regular && s.step >= -1 && s.step <= 1;
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[id];
    if (v.kind == NestValue::Kind::load && !good(v.index)) return false;
  }
  return all_of(body.stores, [&](const NestStore* w) { return good(w->index); });
}

int find_fold_tile(const Nest& nest, const Body& body, const NestStage& stage, int loop,
                   int simd_lanes, const Vec<std::uint64_t>& dependences) {
  StageSchedule s;
  s.vector_loop = loop;
  for (int l : stage.loops) {
    if (!loop_of(nest, l).reduce) continue;
    if (s.tile_loop >= 0 || loop_of(nest, l).block_of >= 0) return -1;
    s.tile_loop = l;
  }
  if (s.tile_loop < 0 || loop_of(nest, s.tile_loop).extent < simd_lanes ||
      loop_of(nest, loop).extent < simd_lanes / 2)
    return -1;
  bool any = false;
  const auto good = [&](IndexId index, bool transposed) {
    any = any || transposed;
    const SimdStep step = simd_step(nest, index, loop, simd_lanes, dependences);
    return transposed || (step.regular && step.step >= -1 && step.step <= 1);
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[id];
    if (v.kind == NestValue::Kind::load &&
        !good(v.index, reads_transposed(nest, v, s, simd_lanes, dependences)))
      return -1;
  }
  for (const NestStore* w : body.stores)
    if (w->update != Op::input ||
        !good(w->index, lies_transposed(nest, w->index, s, simd_lanes, dependences)))
      return -1;
  return any ? s.tile_loop : -1;
}

int find_tile_loop(const Nest& nest, const Body& body, StageSchedule s, int simd_lanes,
                   const Vec<std::uint64_t>& dependences) {
  int best = -1;
  double most = 0;
  for (int l : s.order) {
    const NestLoop& loop = loop_of(nest, l);
    if (l == s.vector_loop || loop.block_of >= 0 || loop.extent < simd_lanes / 2) continue;
    s.tile_loop = l;
    double loads = 0;
    const std::uint64_t both = std::uint64_t{1} << l | std::uint64_t{1} << s.vector_loop;
    for (int id : body.values) {
      const NestValue& v = nest.values[id];
      if (reads_transposed(nest, v, s, simd_lanes, dependences))
        loads += share_read(nest, v.mask, both, dependences);
    }
    if (loads > most) {
      most = loads;
      best = l;
    }
  }
  // Tiles are as high as vectors are long, and lie on the stack.
  return most <= 4 && loop_of(nest, s.vector_loop).extent >= simd_lanes / 2 ? best : -1;
}

// Rows of squares that are whole cache lines go from memory to memory. Of others each line would be
// fetched, and written, in parts, between which the rows of other squares push it out of the few
// places that caches have for lines a power of two apart. Those are gathered to whole lines, and
// where they come from far to so many on end that what fetches ahead follows them.
void choose_block(const Nest& nest, const Body& body, StageSchedule& s, int simd_lanes,
                  const Vec<std::uint64_t>& dependences) {
  // bytes of a square's row, and of an element of all arrays on the stack
  std::int64_t read = cache_line, written = cache_line, stack = 0;
  for (int id : body.values) {
    const NestValue& v = nest.values[id];
    if (!reads_transposed(nest, v, s, simd_lanes, dependences)) continue;
    const auto bytes = static_cast<std::int64_t>(size_of(v.dtype));
    read = std::min(read, simd_lanes * bytes);
    stack += bytes;
  }
  for (const NestStore* w : body.stores)
    written = std::min(
        written, simd_lanes * static_cast<std::int64_t>(size_of(nest.buffers[w->buffer].dtype)));
  if (read == cache_line && written == cache_line) return;
  const std::int64_t run = s.fetch_ahead ? run_from_far : cache_line;
  std::int64_t along = run / written, across = run / read;
  const auto fits = [&](int l, std::int64_t squares) {
    return loop_of(nest, l).runtime || loop_of(nest, l).extent >= squares * simd_lanes;
  };
  while (along > 1 && !fits(s.vector_loop, along)) along /= 2;
  while (across > 1 && !fits(s.tile_loop, across)) across /= 2;
  while (along * across > 1 && along * across * simd_lanes * simd_lanes * stack > transposed_bytes)
    (along >= across ? along : across) /= 2;
  s.block_along = static_cast<int>(along);
  s.block_across = static_cast<int>(across);
}

bool stores_on_end(const Nest& nest, const Body& body, int loop, int simd_lanes,
                   const Vec<std::uint64_t>& dependences) {
  return all_of(body.stores, [&](const NestStore* w) {
    const NestBuffer& buffer = nest.buffers[w->buffer];
    const SimdStep step = simd_step(nest, w->index, loop, simd_lanes, dependences);
    return w->update == Op::input && buffer.local == 0 && buffer.alias == w->buffer &&
           step.regular && step.step == 1 && none_of(nest.values, [&](const NestValue& v) {
             return v.kind == NestValue::Kind::load && nest.buffers[v.buffer].alias == w->buffer;
           });
  });
}

std::int64_t bytes_of(const Nest& nest, const Body& body, const NestStage& stage,
                      const Vec<std::uint64_t>& dependences) {
  double total = 0;
  const auto add = [&](IndexId index, DType d) {
    double n = static_cast<double>(size_of(d));
    const auto count = [&](const SmallVec<int, 6>& loops) {
      for (int l : loops) {
        bool used = nest.indices.uses_loop(index, l);
        nest.indices.each_value(index,
                                [&](int v) { used = used || ((dependences[v] >> l) & 1u) != 0; });
        if (used)
          n *= static_cast<double>(std::max<std::int64_t>(
              loop_of(nest, l).block_of >= 0 ? loop_of(nest, l).block : loop_of(nest, l).extent,
              1));
      }
    };
    count(nest.shared);
    count(stage.loops);
    total += n;
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[id];
    if (v.kind == NestValue::Kind::load) add(v.index, v.dtype);
  }
  for (const NestStore* s : body.stores) add(s->index, nest.buffers[s->buffer].dtype);
  return static_cast<std::int64_t>(std::min(total, 1e18));
}

bool keeps_update_order(const Nest& nest, const Body& body, const NestStage& stage, int loop,
                        int simd_lanes, const Vec<std::uint64_t>& dependences) {
  for (const NestStore* s : body.stores) {
    if (s->update == Op::input) continue;
    const SimdStep step = simd_step(nest, s->index, loop, simd_lanes, dependences);
    if (loop != stage.loops.back() || (step.regular && step.step == 0)) return false;
    if (!step.regular && body.stores.size() > 1) return false;
  }
  return true;
}

StageFacts facts_of(const Nest& nest, int k, const Vec<std::uint64_t>& dependences) {
  StageFacts f;
  f.body = body_of(nest, k, false);
  const NestStage& stage = nest.stages[k];
  for (const NestReduction& r : nest.reductions) {
    if (r.stage != k) continue;
    f.reduces = true;
    f.finds_position = f.finds_position || r.position >= 0;
    f.extreme = f.extreme || r.op == Op::reduce_max || r.op == Op::reduce_min;
    f.running += r.running;
    f.folds = f.folds || r.op == Op::reduce;
    // Lanes pass on integers and extremes in steps of a cycle each; sums of floats in steps of
    // four, which squares are worth.
    f.in_order = f.in_order &&
                 (r.op == Op::reduce || (r.running && r.op == Op::reduce_sum && is_float(r.dtype)));
  }
  for (int id : f.body.values) {
    const NestValue& v = nest.values[id];
    f.weight += v.kind == NestValue::Kind::op ? op_weight(v.op, v.dtype) : 1;
  }
  for (int l : stage.loops)
    if (loop_of(nest, l).reduce) f.innermost_reduce = l;
  f.updates = any_of(f.body.stores, [](const NestStore* w) { return w->update != Op::input; });
  f.bytes = bytes_of(nest, f.body, stage, dependences);
  return f;
}

}  // namespace scheduling

}  // namespace vt::detail
