// Chooses a kernel's schedule, one decision after the other. Each decision can say what it chose
// over what.
#include "schedule.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <vt/detail/small_vec.hpp>

#include "schedule_costs.hpp"

namespace vt::detail {

namespace scheduling {

// Bytes per SIMD lane that the registers are sized for: the widest dtype, but 4 where only some
// values are 8 bytes wide.
int simd_lane_bytes(const Nest& nest) {
  int most = 1, wide = 0, all = 0;
  for (const NestValue& v : nest.values) {
    if (v.kind == NestValue::Kind::literal || v.kind == NestValue::Kind::argument) continue;
    int bytes = static_cast<int>(size_of(v.dtype));
    if (v.dtype == DType::f16 || v.dtype == DType::bf16 || v.kind == NestValue::Kind::index)
      bytes = std::max(bytes, 4);
    most = std::max(most, bytes);
    wide += bytes == 8;
    ++all;
  }
  return most == 8 && wide * 2 < all ? 4 : most;
}

// Do updates in different iterations of `loop` always go to different elements? Then threads can
// share its iterations, each of them doing all its updates in order. So it is along the rows of an
// embedding: index = row length · row + column.
bool updates_apart(const Nest& nest, int loop, const Vec<std::uint64_t>& dependences) {
  const std::int64_t extent = loop_of(nest, loop).extent;
  for (const NestStore& s : nest.stores) {
    const std::int64_t step = nest.indices.factor_of_loop(s.index, loop);
    if (s.update == Op::input || step <= 0 || nest.indices.loop_inside_division(s.index, loop))
      return false;
    bool apart = true;
    nest.indices.each_value(s.index,
                            [&](int v) { apart = apart && !((dependences[v] >> loop) & 1u); });
    std::int64_t within = 0;  // how far the smaller terms reach from one iteration's place
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

std::string counted(std::int64_t n, const char* thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}
std::string loop_name(int l) { return "d" + std::to_string(l); }
std::string iterations_text(const Nest& nest, int l) {
  const NestLoop& loop = loop_of(nest, l);
  return loop.runtime ? "n" + std::to_string(l) + " iterations" : counted(loop.extent, "iteration");
}

// How long the blocks of a reduction are that is cut, and along which loop; {} for those that are
// never cut.
ReductionCut block_of_reduction(const Nest& nest, const Schedule& schedule) {
  if (nest.stages.size() != 1 || !nest.shared.empty() || nest.reductions.empty()) return {};
  for (const NestReduction& r : nest.reductions)
    if (r.running || r.op == Op::reduce) return {};
  std::int64_t inner = 1;  // elements per iteration of the outermost reduce loop
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
    cut.block = std::max(
        block_rows,
        block_elements /
            std::max<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns * inner)), 1));
  } else {
    cut.block = std::max<std::int64_t>(block_elements / std::max<std::int64_t>(inner, 1), 1);
  }
  return cut;
}

// One decision after the other, in the order in which explain prints them.
class Scheduler {
 public:
  Scheduler(const Nest& nest, int vector_bytes, const MachineCosts& costs, std::string* log)
      : nest_(nest),
        dependences_(loop_dependences(nest)),
        vector_bytes_(vector_bytes),
        costs_(costs),
        log_(log) {}

  Schedule run() {
    const int bytes = simd_lane_bytes(nest_);
    schedule_.simd_lanes = std::max(vector_bytes_ / bytes, 1);
    tell_fusion();
    bool any_vector = false;
    for (std::size_t k = 0; k < nest_.stages.size(); ++k) {
      stage_ = static_cast<int>(k);
      facts_ = facts_of(nest_, stage_, dependences_);
      StageSchedule s;
      choose_vector_loop(s);
      choose_order(s);
      choose_tile(s);
      choose_unroll(s);
      choose_memory(s);
      any_vector = any_vector || s.vector_loop >= 0;
      schedule_.stages.push_back(std::move(s));
    }
    stage_ = -1;
    choose_width(any_vector, bytes);
    tell_split();
    choose_parallel_loop();
    choose_sizes();
    return std::move(schedule_);
  }

 private:
  const NestLoop& loop(int l) const { return loop_of(nest_, l); }
  const NestStage& stage() const { return nest_.stages[stage_]; }
  bool contiguous(int l, int simd_lanes) const {
    return all_contiguous(nest_, facts_.body, l, simd_lanes, dependences_);
  }
  // What shapes reductions must be the same on every machine.
  const MachineCosts& costs() const {
    static constexpr MachineCosts usual;
    return facts_.reduces ? usual : costs_;
  }
  void tell(const char* step, const std::string& what) {
    *log_ += "  " + std::string(step) +
             (stage_ >= 0 && nest_.stages.size() > 1 ? " of stage " + std::to_string(stage_) : "") +
             ": " + what + "\n";
  }

  void tell_fusion() {
    if (!log_) return;
    stage_ = -1;
    std::string text = counted(nest_.fused_ops, "equation") + " in " +
                       counted(static_cast<std::int64_t>(nest_.stages.size()), "stage");
    double saved = 0;
    for (const NestBuffer& b : nest_.buffers) {
      double bytes = 2.0 * static_cast<double>(b.local) * static_cast<double>(size_of(b.dtype));
      for (int l : nest_.shared) bytes *= static_cast<double>(loop(l).extent);
      saved += bytes;
    }
    if (nest_.stages.size() > 1) {
      text += " that share";
      for (int l : nest_.shared) text += " " + loop_name(l);
      if (nest_.shared.empty()) text += " nothing but the launch";
      text += " over " + std::to_string(nest_.stages.size()) + " kernels";
      if (saved > 0) text += " (" + cost_text(saved) + " bytes of rows written and read again)";
    }
    tell("fusion", text);
  }

  void choose_vector_loop(StageSchedule& s) {
    double best = 0, next = 0;
    int second = -1;
    for (int l : stage().loops) {
      const double cost = cost_of_simd_lanes_along(l);
      if (cost < 0) continue;
      // Of equals the innermost: it comes last.
      const bool better = s.vector_loop < 0 || cost <= best;
      if (better || second < 0 || cost < next) {
        second = better ? s.vector_loop : l;
        next = better ? best : cost;
      }
      if (better) {
        s.vector_loop = l;
        best = cost;
      }
    }
    // One SIMD lane at a time where vectors would be no faster: all accesses irregular, or the loop
    // is tiny.
    double one = 1;
    for (int id : facts_.body.values) {
      const NestValue& v = nest_.values[id];
      if (v.kind == NestValue::Kind::load) one += 1;
      else if (v.kind == NestValue::Kind::op) one += op_cost(v.op, v.dtype, costs());
    }
    one *= 1.5;
    const int fastest = s.vector_loop;
    if (best > one) s.vector_loop = -1;
    s.mode = !facts_.reduces                                     ? Mode::elementwise
             : s.vector_loop >= 0 && !loop(s.vector_loop).reduce ? Mode::vertical
                                                                 : Mode::horizontal;
    if (!log_) return;
    const auto along = [&](int l, double cost) {
      const char* way = !facts_.reduces ? "" : loop(l).reduce ? ", horizontal" : ", vertical";
      return loop_name(l) + " (" + cost_text(cost) + " an element" + way + ")";
    };
    const std::string alone = "one SIMD lane (" + cost_text(one) + ")";
    if (fastest < 0) return tell("vector level", alone + ", as no loop can have SIMD lanes");
    if (s.vector_loop < 0) return tell("vector level", alone + " over " + along(fastest, best));
    tell("vector level", along(s.vector_loop, best) + " over " +
                             (second >= 0 && next < one ? along(second, next) : alone));
  }

  // −1: it cannot have lanes.
  double cost_of_simd_lanes_along(int l) const {
    const int simd_lanes = schedule_.simd_lanes;
    const NestLoop& at = loop(l);
    if (at.extent == 1 && !at.runtime) return -1;
    // How far a loop over a block goes depends on the block: SIMD lanes would end at different
    // places.
    for (int inner : stage().loops)
      if (loop(inner).block_of == l) return -1;
    // Iterations that build on each other keep their order; those of a fold one by one.
    if (at.reduce && (facts_.folds || (facts_.running > 0 && l != facts_.innermost_reduce)))
      return -1;
    const bool vertical = facts_.reduces && !at.reduce;
    if (vertical && (nest_.stages.size() > 1 || at.block_of >= 0)) return -1;
    // Where SIMD lanes jump, each vector of a scan touches as many cache lines as it has SIMD
    // lanes, in every
    // iteration: heavy iterations only.
    const int tile = vertical && facts_.in_order
                         ? find_fold_tile(nest_, facts_.body, stage(), l, simd_lanes, dependences_)
                         : -1;
    if (vertical && facts_.one_by_one() && tile < 0 && facts_.weight <= worth_jumping &&
        !contiguous(l, simd_lanes))
      return -1;
    if (!keeps_update_order(nest_, facts_.body, stage(), l, simd_lanes, dependences_)) return -1;
    double cost = cost_along(nest_, facts_.body, l, simd_lanes, dependences_,
                             facts_.reduces && at.reduce, tile >= 0, costs()) +
                  (vertical ? 0.05 : 0);
    // SIMD lanes pass on what they have in several steps
    if (at.reduce) cost += facts_.running * combining_simd_lanes / simd_lanes;
    return cost;
  }

  void choose_order(StageSchedule& s) {
    for (bool reduce : {false, true})
      for (int l : stage().loops)
        if (loop(l).reduce == reduce && l != s.vector_loop) s.order.push_back(l);
  }

  void choose_tile(StageSchedule& s) {
    const int simd_lanes = schedule_.simd_lanes;
    if (s.vector_loop >= 0 && s.mode == Mode::elementwise && nest_.stages.size() == 1 &&
        !facts_.updates)
      s.tile_loop = find_tile_loop(nest_, facts_.body, s, simd_lanes, dependences_);
    if (s.mode == Mode::vertical && facts_.in_order)
      s.tile_loop =
          find_fold_tile(nest_, facts_.body, stage(), s.vector_loop, simd_lanes, dependences_);
    if (s.tile_loop >= 0) {
      s.order.erase(std::find(s.order.begin(), s.order.end(), s.tile_loop));
      s.order.push_back(s.tile_loop);
    }
    if (s.vector_loop >= 0 && s.mode != Mode::vertical) s.order.push_back(s.vector_loop);
    if (!log_) return;
    std::string text;
    for (int l : s.order) text += (text.empty() ? "" : " ") + loop_name(l);
    if (s.mode == Mode::vertical) text += " around " + loop_name(s.vector_loop);
    tell("loop order",
         (text.empty() ? "none" : text) +
             (facts_.reduces ? ", as arrays lie, reductions inside" : ", as arrays lie"));
    if (s.tile_loop < 0) return;
    const auto cost = [&](bool transposed) {
      return cost_text(cost_along(nest_, facts_.body, s.vector_loop, simd_lanes, dependences_,
                                  false, transposed, costs()));
    };
    tell("tile", "squares of " + std::to_string(simd_lanes) + " along " + loop_name(s.vector_loop) +
                     " and " + loop_name(s.tile_loop) + ", transposed in registers (" + cost(true) +
                     " an element) over jumps from SIMD lane to SIMD lane (" + cost(false) + ")");
  }

  void choose_unroll(StageSchedule& s) {
    // Under masks what is interleaved goes SIMD lane by SIMD lane, which outweighs more code.
    const bool interleaved =
        s.mode == Mode::elementwise && s.vector_loop >= 0 &&
        any_of(facts_.body.stores, [&](const NestStore* store) {
          return !interleaved_with(nest_, *store, s.vector_loop, schedule_.simd_lanes, dependences_)
                      .empty();
        });
    s.masked = facts_.weight > (interleaved ? 2 * masked_body_weight : masked_body_weight);
    if (s.mode == Mode::horizontal && s.vector_loop >= 0 && !facts_.one_by_one()) {
      // Additions take about four cycles and two run at a time; rows must be long enough to fill
      // the accumulators.
      const int wanted = facts_.finds_position                 ? 4
                         : facts_.weight <= 6                  ? 8
                         : facts_.weight <= 20                 ? 4
                         : facts_.weight <= masked_body_weight ? 2
                                                               : 1;
      const NestLoop& along = loop(s.vector_loop);
      s.accumulators = wanted;
      while (s.accumulators > 1 && !along.runtime &&
             along.extent < std::int64_t{2} * s.accumulators * schedule_.simd_lanes)
        s.accumulators /= 2;
      if (log_) {
        std::string text = counted(s.accumulators, "accumulator") + " for a body of work " +
                           std::to_string(facts_.weight);
        if (s.accumulators < wanted)
          text += " over " + std::to_string(wanted) + ", which " +
                  iterations_text(nest_, s.vector_loop) + " do not fill";
        else if (wanted > 1)
          text += " over " + std::to_string(wanted / 2) +
                  ", which would wait for each other's additions";
        tell("unroll", text);
      }
    }
    if (s.mode != Mode::vertical) return;
    s.narrow =
        facts_.one_by_one() && s.tile_loop < 0 && !contiguous(s.vector_loop, schedule_.simd_lanes);
    const bool far = facts_.bytes > beyond_near_caches;
    // Rows taken together share the accumulators' loads and stores, and the processor follows as
    // many streams of them at full speed, better than rows are fetched ahead by instructions. Scans
    // also store each row, and heavy bodies are bound by their operations.
    const bool stores = facts_.one_by_one(), heavy = facts_.weight > 20;
    if (heavy || s.narrow || ((stores || facts_.finds_position) && !far)) s.accumulators = 1;
    else s.accumulators = stores || facts_.weight > 6 ? 4 : 8;
    if (facts_.innermost_reduce >= 0 && !loop(facts_.innermost_reduce).runtime)
      while (s.accumulators > std::max<std::int64_t>(loop(facts_.innermost_reduce).extent, 1))
        s.accumulators /= 2;
    s.fetch_ahead = far && s.tile_loop >= 0;
    if (log_)
      tell("unroll", counted(s.accumulators, "row") + " at a time for a body of work " +
                         std::to_string(facts_.weight) +
                         (far ? ", as " + cost_text(static_cast<double>(facts_.bytes)) +
                                    " bytes come from far"
                              : ""));
  }

  void choose_memory(StageSchedule& s) {
    if (s.vector_loop < 0 || s.mode == Mode::vertical) return;
    if (s.mode == Mode::horizontal) {
      // A stage that computes for long on a row that an earlier one has brought into the cache lets
      // memory rest.
      double rows = 1;
      for (int l : nest_.shared)
        rows *= static_cast<double>(std::max<std::int64_t>(loop(l).extent, 1));
      s.fetch_ahead = stage_ > 0 && rows > 1 && facts_.weight >= worth_fetching &&
                      facts_.bytes > beyond_near_caches &&
                      static_cast<double>(facts_.bytes) <= rows * row_bytes_ahead;
      if (s.fetch_ahead && log_)
        tell("memory", "next rows fetched ahead, for " +
                           cost_text(static_cast<double>(facts_.bytes)) +
                           " bytes and a body of work " + std::to_string(facts_.weight));
      return;
    }
    s.stream = facts_.bytes > beyond_all_caches &&
               (s.tile_loop >= 0 || stores_on_end(nest_, facts_.body, s.vector_loop,
                                                  schedule_.simd_lanes, dependences_));
    if (s.tile_loop < 0) {
      if (s.stream && log_)
        tell("memory", "stored past the caches, for " +
                           cost_text(static_cast<double>(facts_.bytes)) + " bytes");
      return;
    }
    s.fetch_ahead = facts_.bytes > beyond_near_caches;
    choose_block(nest_, facts_.body, s, schedule_.simd_lanes, dependences_);
    const bool block = s.block_along > 1 || s.block_across > 1;
    if (s.fetch_ahead && !block)
      s.tiles_in_a_row = std::max(rows_in_flight / schedule_.simd_lanes, 4);
    if (!log_) return;
    const std::string squares =
        block ? "blocks of " + std::to_string(s.block_along) + " by " +
                    std::to_string(s.block_across) +
                    " squares over single ones, whose rows are parts of cache lines"
              : std::to_string(s.tiles_in_a_row) + " squares in a row";
    tell("memory", squares + ", " + (s.fetch_ahead ? "fetched ahead, " : "") + "stored " +
                       (s.stream ? "past the caches" : "in the caches") + ", for " +
                       cost_text(static_cast<double>(facts_.bytes)) + " bytes");
  }

  void choose_width(bool any_vector, int bytes) {
    // Long chains of operations: two vectors side by side are two chains.
    const StageSchedule& s = schedule_.stages.back();
    const int simd_lanes = schedule_.simd_lanes;
    const bool room = nest_.stages.size() == 1 && vector_bytes_ >= registers_for_two &&
                      s.vector_loop >= 0 && s.tile_loop < 0 &&
                      loop(s.vector_loop).extent >= std::int64_t{8} * simd_lanes;
    const int worth_two =
        vector_bytes_ > registers_for_two ? worth_two_registers : worth_two_short_registers;
    if (room && ((s.mode == Mode::elementwise && facts_.weight > worth_two &&
                  contiguous(s.vector_loop, 2 * simd_lanes)) ||
                 (s.mode == Mode::vertical && facts_.folds && facts_.weight > worth_jumping)))
      schedule_.registers = 2;
    schedule_.simd_lanes = any_vector ? simd_lanes * schedule_.registers : 1;
    narrow_to_rows(bytes);
    if (!log_) return;
    if (!any_vector) return tell("width", "one SIMD lane");
    int wider = 0;
    for (const NestValue& v : nest_.values)
      wider += v.kind != NestValue::Kind::literal && v.kind != NestValue::Kind::argument &&
               static_cast<int>(size_of(v.dtype)) > bytes;
    std::string text = counted(schedule_.simd_lanes, "SIMD lane") + " of " + counted(bytes, "byte");
    if (schedule_.registers == 2)
      text +=
          " in two registers, for a body of work " + std::to_string(facts_.weight) + ", over one";
    else if (schedule_.simd_lanes < simd_lanes)
      text += " over " + std::to_string(simd_lanes) + ", which rows of " +
              std::to_string(loop(s.vector_loop).extent) + " do not fill";
    else if (wider > 0)
      text += " over " + std::to_string(std::max(simd_lanes / 2, 1)) +
              ", as few of its values are wider (" + std::to_string(wider) + ")";
    tell("width", text);
  }

  // A row that fits in a shorter vector: a long one under a mask would lie across two cache lines
  // in most iterations, which counts also where SIMD lanes that nobody wants are on the second, and
  // would read what the last iteration stored in more than one piece.
  void narrow_to_rows(int bytes) {
    const StageSchedule& s = schedule_.stages.back();
    if (nest_.stages.size() != 1 || s.mode != Mode::elementwise || s.vector_loop < 0 ||
        s.tile_loop >= 0)
      return;
    const NestLoop& row = loop(s.vector_loop);
    if (row.runtime || row.block_of >= 0) return;
    while (row.extent <= schedule_.simd_lanes / 2 && schedule_.simd_lanes * bytes > shortest_vector)
      schedule_.simd_lanes /= 2;
  }

  void tell_split() {
    if (!log_) return;
    for (std::size_t l = 0; l < nest_.loops.size(); ++l)
      if (const NestLoop& at = nest_.loops[l]; at.block_of >= 0)
        tell("split", counted(loop(at.block_of).extent, "block") + " of " +
                          std::to_string(at.block) + " along " + loop_name(at.block_of) + " over " +
                          (at.runtime ? "n" + std::to_string(l) + " iterations"
                                      : counted(at.total, "iteration")) +
                          " in a row");
    const ReductionCut cut = block_of_reduction(nest_, schedule_);
    if (cut.loop >= 0)
      tell("split", "none over blocks of " + std::to_string(cut.block) + ", of which " +
                        loop_name(cut.loop) + " has less than two");
  }

  void choose_parallel_loop() {
    int best = -1, second = -1;
    const auto take = [&](int l) {
      second = best;
      best = l;
    };
    const bool updates =
        any_of(nest_.stores, [](const NestStore& s) { return s.update != Op::input; });
    if (updates) {
      // Of updates one whose iterations are apart, the longest.
      for (int l : nest_.stages[0].loops)
        if (shares_updates(l) && (best < 0 || loop(l).extent > loop(best).extent)) take(l);
        else if (shares_updates(l)) second = l;
    } else if (const int blocks = blocks_of_rows(); blocks >= 0) {
      best = blocks;
    } else {
      SmallVec<int, 6> candidates = nest_.shared;
      const bool single = nest_.stages.size() == 1;
      if (single) {
        const StageSchedule& s = schedule_.stages[0];
        for (int l : s.order)
          if (!loop(l).reduce) candidates.push_back(l);
        if (s.mode == Mode::vertical) candidates.push_back(s.vector_loop);
      }
      for (int l : candidates) {
        const std::int64_t extent = loop(l).extent;
        if (loop(l).block_of >= 0) continue;
        if (best < 0 || (loop(best).extent < 64 && extent > loop(best).extent * (single ? 4 : 1)))
          take(l);
        else if (second < 0) second = l;
      }
    }
    schedule_.parallel_loop = best;
    if (!log_) return;
    if (best < 0)
      return tell("parallel depth", updates ? "one thread, as updates may meet"
                                            : "one thread, as no loop can be shared");
    tell("parallel depth", loop_name(best) + " (" + iterations_text(nest_, best) + ")" +
                               (second >= 0 ? " over " + loop_name(second) + " (" +
                                                  iterations_text(nest_, second) + ")"
                                            : ""));
  }

  // Each distance that is no part of the code takes a register, which rows that lie beside each
  // other feel (a tenth of the time of sums of 128 columns). That is little where there are few
  // iterations, beside the milliseconds of a compilation.
  void choose_sizes() {
    constexpr double few_iterations = 1 << 20;
    constexpr std::size_t most_accesses = 12;  // whose places stay in registers while loops run
    double iterations = 0;
    bool tiles = false, streams = false;
    for (std::size_t k = 0; k < nest_.stages.size(); ++k) {
      double of_stage = 1;
      for (const auto* loops : {&nest_.shared, &nest_.stages[k].loops})
        for (int l : *loops)
          of_stage *= static_cast<double>(std::max<std::int64_t>(loop(l).extent, 1));
      iterations = std::max(iterations, of_stage);
      // the lines of a square are accesses of their own
      tiles = tiles || schedule_.stages[k].tile_loop >= 0;
      // which begin at multiples of their length for these sizes
      streams = streams || schedule_.stages[k].stream;
    }
    std::size_t accesses = nest_.stores.size();
    for (const NestValue& v : nest_.values) accesses += v.kind == NestValue::Kind::load;
    schedule_.any_sizes =
        iterations <= few_iterations && accesses <= most_accesses && !tiles && !streams;
    if (!log_) return;
    const std::string why = tiles                      ? "squares"
                            : streams                  ? "stores past the caches"
                            : accesses > most_accesses ? std::to_string(accesses) + " accesses"
                                                       : cost_text(iterations) + " iterations";
    tell("sizes", schedule_.any_sizes ? "read at run time, for " + why + ", over code of their own"
                                      : "code of their own, for " + why);
  }

  // Each thread reads whole rows on end, which the processor's prefetcher follows better than parts
  // of all rows.
  int blocks_of_rows() const {
    if (nest_.stages.size() == 1 && schedule_.stages[0].mode == Mode::vertical)
      for (int l : nest_.stages[0].loops)
        if (const int blocks = loop(l).block_of;
            blocks >= 0 && loop(blocks).extent >= worth_sharing)
          return blocks;
    return -1;
  }

  // Each thread goes through all the other loops, so rows of a single vector are no work that could
  // be shared.
  bool shares_updates(int l) const {
    const NestLoop& at = loop(l);
    if (l == schedule_.stages[0].vector_loop && at.extent <= schedule_.simd_lanes) return false;
    return !at.reduce && at.block_of < 0 && at.extent >= 2 && updates_apart(nest_, l, dependences_);
  }

  using Mode = StageSchedule::Mode;
  const Nest& nest_;
  const Vec<std::uint64_t> dependences_;
  const int vector_bytes_;
  const MachineCosts& costs_;
  std::string* const log_;
  Schedule schedule_;
  int stage_ = -1;  // the one that is decided about
  StageFacts facts_;
};

}  // namespace scheduling

Schedule choose_schedule(const Nest& nest, int vector_bytes, const MachineCosts& costs,
                         std::string* log) {
  return scheduling::Scheduler(nest, vector_bytes, costs, log).run();
}

ReductionCut find_reduction_cut(const Nest& nest, const Schedule& schedule) {
  const ReductionCut cut = scheduling::block_of_reduction(nest, schedule);
  if (cut.loop < 0 || scheduling::loop_of(nest, cut.loop).extent < 2 * cut.block) return {};
  return cut;
}

}  // namespace vt::detail
