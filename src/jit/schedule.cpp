// Chooses loop order, vector loop and parallel loop by a cost model over accesses and ops.
#include "schedule.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <vt/small_vec.hpp>

namespace vt::detail {

namespace scheduling {

const NestLoop& loop_of(const Nest& nest, int l) { return nest.loops[static_cast<std::size_t>(l)]; }

// Bytes per lane that the registers are sized for: the widest dtype, but 4 where only some values are 8 bytes wide.
int lane_bytes(const Nest& nest) {
  int most = 1, wide = 0, all = 0;
  for (const NestValue& v : nest.values) {
    if (v.kind == NestValue::Kind::literal || v.kind == NestValue::Kind::argument) continue;
    int bytes = static_cast<int>(size_of(v.dtype));
    if (v.dtype == DType::f16 || v.dtype == DType::bf16 || v.kind == NestValue::Kind::index) bytes = std::max(bytes, 4);
    most = std::max(most, bytes);
    wide += bytes == 8;
    ++all;
  }
  return most == 8 && wide * 2 < all ? 4 : most;
}

// The share of rounds in which a load under this mask, the same for all lanes of `loop`, reads at all: where sections of another loop decide
// it, it is not even asked.
double share_read(const Nest& nest, int mask, std::uint64_t lanes_of, const Vec<std::uint64_t>& dependences) {
  if (mask < 0 || (dependences[static_cast<std::size_t>(mask)] & lanes_of) != 0) return 1;
  const NestValue& v = nest.values[static_cast<std::size_t>(mask)];
  if (v.kind == NestValue::Kind::op && v.op == Op::and_) {
    double share = 1;
    for (int o : v.operands) share *= share_read(nest, o, lanes_of, dependences);
    return share;
  }
  if (v.kind != NestValue::Kind::in_range) return 1;
  const IndexBounds all = nest.indices.bounds(v.index);
  const double from = static_cast<double>(std::max(v.low, all.low)), to = static_cast<double>(std::min(v.high, all.high + 1));
  return std::clamp((to - from) / static_cast<double>(std::max<std::int64_t>(all.high + 1 - all.low, 1)), 0.0, 1.0);
}

struct Body {
  Vec<int> values;
  Vec<const NestStore*> stores;
};

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

// About the time of one element with lanes along `loop`, in units of a vector addition.
double cost_along(const Nest& nest, const Body& body, int loop, int lanes, const Vec<std::uint64_t>& dependences, bool horizontal,
                  int tile_loop = -1) {
  const std::uint64_t bit = std::uint64_t{1} << loop;
  double work = 1;  // the loop itself
  const auto access = [&](IndexId index) { return access_cost(lane_step(nest, index, loop, lanes, dependences), lanes, tile_loop >= 0); };
  for (int id : body.values) {
    const NestValue& v = nest.values[static_cast<std::size_t>(id)];
    if (v.kind == NestValue::Kind::load) work += access(v.index) * share_read(nest, v.mask, bit, dependences);
    else if (!(dependences[static_cast<std::size_t>(id)] & bit)) continue;
    else if (v.kind == NestValue::Kind::op) work += op_weight(v.op, v.dtype);
    else if (v.kind == NestValue::Kind::index || v.kind == NestValue::Kind::in_range) work += 1;
  }
  for (const NestStore* s : body.stores) work += 1.5 * access(s->index);
  const std::int64_t extent = std::max<std::int64_t>(loop_of(nest, loop).extent, 1);
  const std::int64_t vectors = (extent + lanes - 1) / lanes;
  if (horizontal) work += combining_lanes / static_cast<double>(vectors);  // combining the lanes
  return work * static_cast<double>(vectors) / static_cast<double>(extent);
}

// Do all accesses step from lane to lane of `loop` by one element or none?
bool all_contiguous(const Nest& nest, const Body& body, int loop, int lanes, const Vec<std::uint64_t>& dependences) {
  const auto good = [&](IndexId index) {
    const LaneStep s = lane_step(nest, index, loop, lanes, dependences);
    return s.regular && s.step >= -1 && s.step <= 1;
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[static_cast<std::size_t>(id)];
    if (v.kind == NestValue::Kind::load && !good(v.index)) return false;
  }
  return all_of(body.stores, [&](const NestStore* w) { return good(w->index); });
}

// Rounds that build on each other along rows of memory, lanes along `loop`: the reduce loop for whose squares every access is turned that is not
// contiguous; −1: there is none.
int find_fold_tile(const Nest& nest, const Body& body, const NestStage& stage, int loop, int lanes, const Vec<std::uint64_t>& dependences) {
  StageSchedule s;
  s.vector_loop = loop;
  for (int l : stage.loops) {
    if (!loop_of(nest, l).reduce) continue;
    if (s.tile_loop >= 0 || loop_of(nest, l).block_of >= 0) return -1;
    s.tile_loop = l;
  }
  if (s.tile_loop < 0 || loop_of(nest, s.tile_loop).extent < lanes || loop_of(nest, loop).extent < lanes / 2) return -1;
  bool any = false;
  const auto good = [&](IndexId index, bool turned) {
    any = any || turned;
    const LaneStep step = lane_step(nest, index, loop, lanes, dependences);
    return turned || (step.regular && step.step >= -1 && step.step <= 1);
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[static_cast<std::size_t>(id)];
    if (v.kind == NestValue::Kind::load && !good(v.index, reads_turned(nest, v, s, lanes, dependences))) return -1;
  }
  for (const NestStore* w : body.stores)
    if (w->update != Op::input || !good(w->index, lies_turned(nest, w->index, s, lanes, dependences))) return -1;
  return any ? s.tile_loop : -1;
}

// The loop along which most of the operands lie that jump along the vector loop; −1: there are none, or it is too short.
int find_tile_loop(const Nest& nest, const Body& body, StageSchedule s, int lanes, const Vec<std::uint64_t>& dependences) {
  int best = -1;
  double most = 0;
  for (int l : s.order) {
    const NestLoop& loop = loop_of(nest, l);
    if (l == s.vector_loop || loop.block_of >= 0 || loop.extent < lanes / 2) continue;
    s.tile_loop = l;
    double loads = 0;
    const std::uint64_t both = std::uint64_t{1} << l | std::uint64_t{1} << s.vector_loop;
    for (int id : body.values) {
      const NestValue& v = nest.values[static_cast<std::size_t>(id)];
      if (reads_turned(nest, v, s, lanes, dependences)) loads += share_read(nest, v.mask, both, dependences);
    }
    if (loads > most) {
      most = loads;
      best = l;
    }
  }
  // Tiles are as high as vectors are long, and lie on the stack.
  return most <= 4 && loop_of(nest, s.vector_loop).extent >= lanes / 2 ? best : -1;
}

// About the bytes that the stage reads and writes; arrays that are read along some of the loops only count for those.
std::int64_t bytes_of(const Nest& nest, const Body& body, const NestStage& stage, const Vec<std::uint64_t>& dependences) {
  double total = 0;
  const auto add = [&](IndexId index, DType d) {
    double n = static_cast<double>(size_of(d));
    const auto count = [&](const SmallVec<int, 6>& loops) {
      for (int l : loops) {
        bool used = nest.indices.uses_loop(index, l);
        nest.indices.each_value(index, [&](int v) { used = used || ((dependences[static_cast<std::size_t>(v)] >> l) & 1u) != 0; });
        if (used)
          n *= static_cast<double>(std::max<std::int64_t>(loop_of(nest, l).block_of >= 0 ? loop_of(nest, l).block : loop_of(nest, l).extent, 1));
      }
    };
    count(nest.shared);
    count(stage.loops);
    total += n;
  };
  for (int id : body.values) {
    const NestValue& v = nest.values[static_cast<std::size_t>(id)];
    if (v.kind == NestValue::Kind::load) add(v.index, v.dtype);
  }
  for (const NestStore* s : body.stores) add(s->index, nest.buffers[static_cast<std::size_t>(s->buffer)].dtype);
  return static_cast<std::int64_t>(std::min(total, 1e18));
}

// Updates must come in the loops' order, and no two lanes may update one element: lanes can only go along the innermost loop,
// and only where the index moves with it in a known way.
bool keeps_update_order(const Nest& nest, const Body& body, const NestStage& stage, int loop, int lanes, const Vec<std::uint64_t>& dependences) {
  for (const NestStore* s : body.stores) {
    if (s->update == Op::input) continue;
    const LaneStep step = lane_step(nest, s->index, loop, lanes, dependences);
    if (loop != stage.loops.back() || !step.regular || step.step == 0) return false;
  }
  return true;
}

int choose_parallel(const Nest& nest, const Schedule& schedule) {
  // Blocks of rows: each thread reads whole rows on end, which the processor's prefetcher follows better than parts of all rows.
  if (nest.stages.size() == 1 && schedule.stages[0].mode == StageSchedule::Mode::vertical)
    for (int l : nest.stages[0].loops)
      if (const int blocks = loop_of(nest, l).block_of; blocks >= 0 && loop_of(nest, blocks).extent >= worth_sharing) return blocks;
  SmallVec<int, 6> candidates = nest.shared;
  if (nest.stages.size() == 1) {
    for (int l : schedule.stages[0].order)
      if (!loop_of(nest, l).reduce) candidates.push_back(l);
    const StageSchedule& s = schedule.stages[0];
    if (s.mode == StageSchedule::Mode::vertical) candidates.push_back(s.vector_loop);
  }
  int best = -1;
  for (int l : candidates) {
    const std::int64_t extent = loop_of(nest, l).extent;
    if (loop_of(nest, l).block_of >= 0) continue;
    if (best < 0 || (loop_of(nest, best).extent < 64 && extent > loop_of(nest, best).extent * (nest.stages.size() == 1 ? 4 : 1))) best = l;
  }
  return best;
}

// Do updates in different rounds of `loop` always go to different elements? Then threads can share its rounds, each of them
// doing all its updates in order. So it is along the rows of an embedding: index = row length · row + column.
bool updates_apart(const Nest& nest, int loop, const Vec<std::uint64_t>& dependences) {
  const std::int64_t extent = loop_of(nest, loop).extent;
  for (const NestStore& s : nest.stores) {
    const std::int64_t step = nest.indices.factor_of_loop(s.index, loop);
    if (s.update == Op::input || step <= 0 || nest.indices.loop_inside_division(s.index, loop)) return false;
    bool apart = true;
    nest.indices.each_value(s.index, [&](int v) { apart = apart && !((dependences[static_cast<std::size_t>(v)] >> loop) & 1u); });
    std::int64_t within = 0;  // how far the smaller terms reach from one round's place
    for (const IndexTerm& t : nest.indices[s.index].terms) {
      const IndexAtom& a = nest.indices.atom(t.atom);
      if (a.kind == IndexAtom::Kind::loop && a.id == loop) continue;
      if (t.factor % (step * extent) == 0) continue;
      apart = apart && a.kind == IndexAtom::Kind::loop && !loop_of(nest, a.id).runtime;
      if (apart) within += std::abs(t.factor) * (loop_of(nest, a.id).extent - 1);
    }
    if (!apart || within >= step) return false;
  }
  return true;
}

// The loop that threads share: of updates one whose rounds are apart, the longest.
int choose_parallel_updates(const Nest& nest, const Vec<std::uint64_t>& dependences) {
  int best = -1;
  for (int l : nest.stages[0].loops) {
    const NestLoop& loop = loop_of(nest, l);
    if (loop.reduce || loop.block_of >= 0 || loop.extent < 2 || !updates_apart(nest, l, dependences)) continue;
    if (best < 0 || loop.extent > loop_of(nest, best).extent) best = l;
  }
  return best;
}

}  // namespace scheduling

Schedule choose_schedule(const Nest& nest, int vector_bytes) {
  using namespace scheduling;
  using Mode = StageSchedule::Mode;
  Schedule schedule;
  const Vec<std::uint64_t> dependences = loop_dependences(nest);
  schedule.lanes = std::max(vector_bytes / lane_bytes(nest), 1);
  bool any_vector = false, two_registers = false;
  for (std::size_t k = 0; k < nest.stages.size(); ++k) {
    StageSchedule s;
    const Body body = body_of(nest, static_cast<int>(k), false);
    const NestStage& stage = nest.stages[k];
    bool reduces = false, finds_position = false, extreme = false, running = false, folds = false, in_order = true;
    for (const NestReduction& r : nest.reductions) {
      if (r.stage != static_cast<int>(k)) continue;
      reduces = true;
      finds_position = finds_position || r.position >= 0;
      extreme = extreme || r.op == ReduceOp::maximum || r.op == ReduceOp::minimum;
      running = running || r.running;
      folds = folds || r.op == ReduceOp::fold;
      // Lanes pass on integers and extremes in steps of a cycle each; sums of floats in steps of four, which squares are worth.
      in_order = in_order && (r.op == ReduceOp::fold || (r.running && r.op == ReduceOp::sum && is_float(r.dtype)));
    }
    int weight = 0;
    for (int id : body.values) {
      const NestValue& v = nest.values[static_cast<std::size_t>(id)];
      weight += v.kind == NestValue::Kind::op ? op_weight(v.op, v.dtype) : 1;
    }
    int innermost_reduce = -1;
    for (int l : stage.loops)
      if (loop_of(nest, l).reduce) innermost_reduce = l;
    double best = 0;
    for (int l : stage.loops) {
      const NestLoop& loop = loop_of(nest, l);
      if (loop.extent == 1 && !loop.runtime) continue;
      // Rounds that build on each other keep their order; those of a fold one by one.
      if (loop.reduce && (folds || (running && l != innermost_reduce))) continue;
      const bool vertical = reduces && !loop.reduce;
      if (vertical && (nest.stages.size() > 1 || loop.block_of >= 0)) continue;
      // Where lanes jump, each vector of a scan touches as many cache lines as it has lanes, in every round: heavy rounds only.
      const int tile = vertical && in_order ? find_fold_tile(nest, body, stage, l, schedule.lanes, dependences) : -1;
      if (vertical && (running || folds) && tile < 0 && weight <= worth_jumping && !all_contiguous(nest, body, l, schedule.lanes, dependences))
        continue;
      if (!keeps_update_order(nest, body, stage, l, schedule.lanes, dependences)) continue;
      double cost = cost_along(nest, body, l, schedule.lanes, dependences, reduces && loop.reduce, tile) + (vertical ? 0.05 : 0);
      if (running && loop.reduce) cost += combining_lanes / schedule.lanes;  // lanes pass on what they have in several steps
      // Of equals the innermost: it comes last.
      if (s.vector_loop < 0 || cost <= best) {
        s.vector_loop = l;
        best = cost;
      }
    }
    // One lane at a time where vectors would be no faster: all accesses irregular, or the loop is tiny.
    if (s.vector_loop >= 0) {
      double one = 1;
      for (int id : body.values) {
        const NestValue& v = nest.values[static_cast<std::size_t>(id)];
        if (v.kind == NestValue::Kind::load) one += 1;
        else if (v.kind == NestValue::Kind::op) one += op_weight(v.op, v.dtype);
      }
      if (best > one * 1.5) s.vector_loop = -1;
    }
    s.mode = !reduces ? Mode::elementwise : s.vector_loop >= 0 && !loop_of(nest, s.vector_loop).reduce ? Mode::vertical : Mode::horizontal;
    for (bool reduce : {false, true})
      for (int l : stage.loops)
        if (loop_of(nest, l).reduce == reduce && l != s.vector_loop) s.order.push_back(l);
    const bool updates = any_of(body.stores, [](const NestStore* w) { return w->update != Op::input; });
    if (s.vector_loop >= 0 && s.mode == Mode::elementwise && nest.stages.size() == 1 && !updates)
      s.tile_loop = find_tile_loop(nest, body, s, schedule.lanes, dependences);
    if (s.mode == Mode::vertical && reduces && in_order) s.tile_loop = find_fold_tile(nest, body, stage, s.vector_loop, schedule.lanes, dependences);
    if (s.tile_loop >= 0) {
      s.order.erase(std::find(s.order.begin(), s.order.end(), s.tile_loop));
      s.order.push_back(s.tile_loop);
    }
    if (s.vector_loop >= 0 && s.mode != Mode::vertical) s.order.push_back(s.vector_loop);
    s.masked = weight > masked_body_weight;
    const bool one_by_one = running || folds;
    if (s.mode == Mode::horizontal && s.vector_loop >= 0 && !one_by_one) {
      // Additions take about four cycles and two run at a time; rows must be long enough to fill the accumulators.
      int count = finds_position ? 4 : weight <= 6 ? 8 : weight <= 20 ? 4 : weight <= masked_body_weight ? 2 : 1;
      while (count > 1 && !loop_of(nest, s.vector_loop).runtime && loop_of(nest, s.vector_loop).extent < std::int64_t{2} * count * schedule.lanes)
        count /= 2;
      s.accumulators = count;
    }
    const std::int64_t bytes = bytes_of(nest, body, stage, dependences);
    if (s.mode == Mode::vertical) {
      // Two streams of rows are as many as the processor follows at full speed once they come from far.
      s.narrow = one_by_one && s.tile_loop < 0 && !all_contiguous(nest, body, s.vector_loop, schedule.lanes, dependences);
      s.fetch_ahead = bytes > beyond_near_caches;
      if (s.fetch_ahead) s.accumulators = weight > 20 || s.narrow || extreme ? 1 : 2;
      else s.accumulators = one_by_one || finds_position || weight > 20 ? 1 : weight > 6 ? 2 : 4;
    }
    if (s.tile_loop >= 0 && s.mode == Mode::elementwise && bytes > beyond_near_caches) {
      s.fetch_ahead = true;
      s.tiles_in_a_row = std::max(rows_in_flight / schedule.lanes, 4);
    }
    s.stream = s.tile_loop >= 0 && s.mode == Mode::elementwise && bytes > beyond_all_caches;
    // Long chains of operations: two vectors side by side are two chains.
    two_registers = nest.stages.size() == 1 && vector_bytes >= registers_for_two && s.vector_loop >= 0 && s.tile_loop < 0 &&
                    loop_of(nest, s.vector_loop).extent >= std::int64_t{8} * schedule.lanes &&
                    ((s.mode == Mode::elementwise && weight > worth_two_registers &&
                      all_contiguous(nest, body, s.vector_loop, 2 * schedule.lanes, dependences)) ||
                     (s.mode == Mode::vertical && folds && weight > worth_jumping));
    any_vector = any_vector || s.vector_loop >= 0;
    schedule.stages.push_back(std::move(s));
  }
  if (!any_vector) schedule.lanes = 1;
  if (two_registers) schedule.registers = 2;
  schedule.lanes *= schedule.registers;
  const bool updates = any_of(nest.stores, [](const NestStore& s) { return s.update != Op::input; });
  schedule.parallel_loop = updates ? choose_parallel_updates(nest, dependences) : choose_parallel(nest, schedule);
  return schedule;
}

ReductionCut find_reduction_cut(const Nest& nest, const Schedule& schedule) {
  using namespace scheduling;
  if (nest.stages.size() != 1 || !nest.shared.empty() || nest.reductions.empty()) return {};
  for (const NestReduction& r : nest.reductions)
    if (r.position >= 0 || r.running || r.op == ReduceOp::fold) return {};
  std::int64_t inner = 1;  // elements per round of the outermost reduce loop
  ReductionCut cut;
  for (int l : nest.stages[0].loops) {
    const NestLoop& loop = loop_of(nest, l);
    if (!loop.reduce) continue;
    if (loop.block_of >= 0) return {};
    if (cut.loop < 0) cut.loop = l;
    else inner *= loop.extent;
  }
  if (cut.loop < 0) return {};
  const bool vertical = schedule.stages[0].mode == StageSchedule::Mode::vertical;
  if (vertical) {
    const std::int64_t columns = loop_of(nest, schedule.stages[0].vector_loop).extent;
    cut.block = std::max(block_rows, block_elements / std::max<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns * inner)), 1));
  } else {
    cut.block = std::max<std::int64_t>(block_elements / std::max<std::int64_t>(inner, 1), 1);
  }
  if (loop_of(nest, cut.loop).extent < 2 * cut.block) return {};
  return cut;
}

std::string Schedule::str(const Nest& nest) const {
  std::string text = "schedule lanes " + std::to_string(lanes);
  if (parallel_loop >= 0) text += ", threads along d" + std::to_string(parallel_loop);
  text += "\n";
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const StageSchedule& s = stages[k];
    constexpr const char* modes[] = {"element-wise", "horizontal", "vertical"};
    if (nest.stages.size() > 1) text += "  stage " + std::to_string(k) + ":";
    else text += " ";
    text += std::string(" ") + modes[static_cast<int>(s.mode)] + ", loops";
    for (int l : s.order) text += " d" + std::to_string(l);
    if (s.vector_loop >= 0) text += ", vector d" + std::to_string(s.vector_loop);
    if (s.accumulators > 1) text += (s.mode == StageSchedule::Mode::vertical ? ", rows " : ", accumulators ") + std::to_string(s.accumulators);
    if (s.tile_loop >= 0) text += ", tiles with d" + std::to_string(s.tile_loop);
    if (s.tile_loop >= 0 && s.mode == StageSchedule::Mode::elementwise) text += " by " + std::to_string(s.tiles_in_a_row);
    if (s.narrow) text += ", a vector at a time";
    if (s.fetch_ahead) text += ", fetched ahead";
    if (s.stream) text += ", past the caches";
    if (s.masked) text += ", masked";
    text += "\n";
  }
  return text;
}

}  // namespace vt::detail
