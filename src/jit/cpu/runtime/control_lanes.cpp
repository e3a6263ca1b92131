// ControlStep's lanes: equations in which each lane has a predicate of its own. Lanes that go the
// same way are gathered and run as one batch.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "../../../trace/ir/effects.hpp"
#include "../../../trace/record/lane_scope.hpp"
#include "../../services/control_memory.hpp"
#include "control.hpp"
#include "loop_iterations.hpp"
#include "program.hpp"

namespace vt::detail {

namespace lane_queues {

// An iteration of a group should be some microseconds of work: more lanes side by side make no
// product faster, and leave more places empty at the end.
constexpr std::int64_t work_of_group = 1 << 19;
constexpr std::int64_t least_places = 8;
// Lanes that one place runs, one after the other: few places are empty then while the last lanes of
// a queue run.
constexpr std::int64_t lanes_of_place = 4;
// So many groups at once where there is one queue only: the threads share each step of them.
constexpr std::int64_t groups_of_threads = 4;

/// Groups of lanes come in few sizes, so that few programs are compiled: powers of two, or all
/// lanes.
std::int64_t group_size(std::int64_t live, std::int64_t lanes) {
  return std::min(lanes,
                  static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(live))));
}

}  // namespace lane_queues

// Lane after lane, as effects must happen: for each lane that goes there once, and in the order of
// a loop over them.
Vec<BufferRef> ControlStep::run_one_by_one(const Buffers& operands) const {
  const std::size_t lanes = lanes_.count;
  Buffers results;
  for (Var v : alone_.outputs)
    results.push_back(allocate(alone_.aval(v).bytes(), "the results of lanes"));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const LaneScope here(lanes_, static_cast<std::int64_t>(lane));
    Buffers own = operands;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (lanes_.mapped[i]) {
        const std::size_t row = own[i]->bytes / lanes;
        own[i] = borrow_memory(control_memory::bytes_of(operands[i]) + lane * row, row);
      }
    const Buffers made = equation().op == Op::cond ? run_cond(own) : run_while(std::move(own));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t row = results[k]->bytes / lanes;
      if (row) std::memcpy(control_memory::bytes_of(results[k]) + lane * row, made[k]->data, row);
    }
  }
  return results;
}

// Each branch runs once, on the lanes that take it, filled up with copies of one of them.
Vec<BufferRef> ControlStep::run_lane_cond(std::span<const BufferRef> operands) const {
  const std::int64_t lanes = lanes_.count;
  const GraphBody& graph = *bodies_[0]->graph;
  Buffers results;
  for (Var v : graph.outputs)
    results.push_back(allocate(graph.aval(v).bytes() * lanes, "the results of vt::cond"));
  const std::int32_t* index = operands[0]->as<const std::int32_t>();
  const auto last = static_cast<std::int64_t>(bodies_.size()) - 1;
  Vec<Vec<std::int64_t>> takes(bodies_.size());
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    takes[std::clamp<std::int64_t>(index[lanes_.mapped[0] ? lane : 0], 0, last)].push_back(lane);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const Vec<std::int64_t>& own = takes[b];
    if (own.empty()) continue;
    const auto count = static_cast<std::int64_t>(own.size()),
               size = lane_queues::group_size(count, lanes);
    const bool all = count == lanes;
    Buffers inputs(operands.begin() + 1, operands.end());
    for (std::size_t i = 0; i < inputs.size() && !all; ++i) {
      if (!mapped_[i]) continue;
      const control_memory::Rows from(inputs[i]->data,
                                      inputs[i]->bytes / static_cast<std::size_t>(lanes));
      BufferRef group = allocate(from.bytes * static_cast<std::size_t>(size), "lanes of vt::cond");
      const control_memory::Rows to(group->data, from.bytes);
      for (std::int64_t r = 0; r < size; ++r)
        control_memory::copy_row(to, r, from, own[r < count ? r : 0]);
      inputs[i] = std::move(group);
    }
    const Buffers made = program(b, size).run(inputs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t row = results[k]->bytes / static_cast<std::size_t>(lanes);
      const control_memory::Rows to(results[k]->data, row), from(made[k]->data, row);
      for (std::int64_t r = 0; r < count; ++r) control_memory::copy_row(to, own[r], from, r);
    }
  }
  return results;
}

// How many lanes run side by side, and in how many queues; chosen from the body alone, so that
// results do not depend on the number of threads.
ControlStep::LaneQueues ControlStep::lane_queues() const {
  using namespace lane_queues;
  const std::int64_t lanes = lanes_.count;
  LaneQueues q{lanes, 1};
  if (lanes < 2 * least_places) return q;
  const std::int64_t work = std::max<std::int64_t>(work_of_iteration(*bodies_[1]->graph), 1);
  const auto wanted =
      std::max(least_places, static_cast<std::int64_t>(std::bit_ceil(
                                 static_cast<std::uint64_t>((work_of_group + work - 1) / work))));
  q.places = std::min(
      wanted, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(lanes / 2))));
  // Less work than threads are woken for. Bodies with loops and callbacks are not run on several
  // threads at once: one queue.
  if (lanes * work < work_of_group) return {lanes, 1};
  if (!program(0, q.places).plain() || !program(1, q.places).plain())
    return {std::min(lanes, q.places * groups_of_threads), 1};
  q.queues = std::max<std::int64_t>(lanes / (q.places * lanes_of_place), 2);
  return q;
}

Vec<BufferRef> ControlStep::run_lane_while(Buffers values) const {
  const std::int64_t lanes = lanes_.count;
  const LaneQueues q = lane_queues();
  if (q.queues > 1) {
    // No lane may have an iteration, as where a loop runs back to a state that is at hand.
    const BufferRef answers = program(0, lanes).run(values)[0];
    const auto* goes_on = answers->as<const std::uint8_t>();
    if (std::none_of(goes_on, goes_on + lanes, [](std::uint8_t on) { return on; })) {
      values.resize(carries_);
      for (BufferRef& v : values)
        if (v->capacity == 0 || v->references.load(std::memory_order_acquire) != 1)
          v = control_memory::copied(v);
      return values;
    }
  }
  Buffers results;
  for (std::size_t i = 0; i < carries_; ++i)
    results.push_back(allocate(values[i]->bytes, "the results of vt::while_loop"));
  if (lanes == 0) return results;
  Vec<PackedOperands> packed;
  if (q.queues > 1) {
    Vec<const void*> same(values.size(), nullptr);
    for (std::size_t i = carries_; i < values.size(); ++i)
      if (!mapped_[i]) same[i] = values[i]->data;
    packed = program(1, q.places).pack(same);
  }
  control_memory::run_parts(q.queues, [&](std::int64_t k) {
    run_queue({lanes * k / q.queues, lanes * (k + 1) / q.queues, q.places,
               q.queues > 1 ? &packed : nullptr},
              values, results);
  });
  return results;
}

// Lanes first … last − 1 in a number of places. Where one has stopped the next begins, so that all
// places are busy until no lane is left; then the group shrinks as they finish. A place that is
// left over holds a copy of a lane that still runs: no body ever sees a state that its condition
// refused.
void ControlStep::run_queue(const LaneQueue& queue, Buffers& values, Buffers& results) const {
  const std::int64_t first = queue.first, last = queue.last;
  const std::size_t lanes = lanes_.count;
  const bool only = first == 0 && last == lanes_.count;  // then operands are the loop's own
  Vec<std::size_t> row(values.size(), 0);                // bytes of a mapped operand's lane
  for (std::size_t i = 0; i < values.size(); ++i)
    if (mapped_[i]) row[i] = values[i]->bytes / lanes;
  std::int64_t size = std::min(queue.places, last - first);
  Vec<std::int64_t> lane_of(size);  // per place; −1: a copy
  for (std::size_t r = 0; r < lane_of.size(); ++r)
    lane_of[r] = first + static_cast<std::int64_t>(r);
  std::int64_t next = first + size;
  std::unique_ptr<LoopIterations> iterations;
  // mapped operands beside the carries, in the order of the places; none: they lie so in the
  // operand
  Buffers rest(values.size());
  const auto prepare = [&] {
    iterations = std::make_unique<LoopIterations>(program(1, size), carries_, &program(0, size),
                                                  size == queue.places ? queue.packed : nullptr);
    for (std::size_t i = carries_; i < values.size(); ++i)
      if (!mapped_[i]) iterations->same(i, values[i]->data);
  };
  prepare();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!mapped_[i]) continue;
    const void* const own = control_memory::Rows(values[i]->data, row[i]).at(first);
    if (i >= carries_) iterations->input(i, own);
    else if (only && next == last) iterations->begin(i, std::move(values[i]));
    else iterations->begin(i, own);
  }
  const auto state = [&](std::size_t i) {
    return control_memory::Rows(iterations->state(i), row[i]);
  };
  const auto to_write = [&](std::size_t i) {
    if (i < carries_) return control_memory::Rows(iterations->own_state(i)->data, row[i]);
    if (!rest[i]) {
      rest[i] = allocate(row[i] * static_cast<std::size_t>(size), "lanes of vt::while_loop");
      if (rest[i]->bytes) std::memcpy(rest[i]->data, iterations->state(i), rest[i]->bytes);
      iterations->input(i, rest[i]->data);
    }
    return control_memory::Rows(rest[i]->data, row[i]);
  };
  Vec<std::int64_t> running, stopped;    // places
  bool together = only && next == last;  // no lane has stopped
  for (;;) {
    const std::uint8_t* const goes_on = iterations->ask();
    if (together && std::all_of(goes_on, goes_on + size, [](std::uint8_t on) { return !on; })) {
      for (std::size_t i = 0; i < carries_; ++i) results[i] = iterations->own_state(i);
      return;
    }
    running.clear();
    stopped.clear();
    bool begun = false;
    for (std::int64_t r = 0; r < size; ++r) {
      std::int64_t& lane = lane_of[r];
      if (goes_on[r]) {
        if (lane >= 0) running.push_back(r);
        continue;
      }
      together = false;
      for (std::size_t i = 0; i < carries_ && lane >= 0; ++i)
        control_memory::copy_row(control_memory::Rows(results[i]->data, row[i]), lane, state(i), r);
      lane = next < last ? next++ : -1;
      if (lane < 0) stopped.push_back(r);
      else begun = true;
      for (std::size_t i = 0; i < values.size() && lane >= 0; ++i)
        if (mapped_[i])
          control_memory::copy_row(to_write(i), r, control_memory::Rows(values[i]->data, row[i]),
                                   lane);
    }
    if (begun) continue;  // it may stop before its first iteration
    if (running.empty()) return;
    const auto live = static_cast<std::int64_t>(running.size()),
               smaller = lane_queues::group_size(live, size);
    if (smaller == size) {
      // The places of those that stopped are few: only they are written.
      for (std::size_t i = 0; i < values.size() && !stopped.empty(); ++i) {
        if (!mapped_[i]) continue;
        const control_memory::Rows to = to_write(i);
        for (const std::int64_t r : stopped) control_memory::copy_row(to, r, to, running[0]);
      }
    } else {
      Buffers groups(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!mapped_[i]) continue;
        groups[i] = allocate(row[i] * static_cast<std::size_t>(smaller), "lanes of vt::while_loop");
        const control_memory::Rows to(groups[i]->data, row[i]);
        for (std::int64_t r = 0; r < smaller; ++r)
          control_memory::copy_row(to, r, state(i), running[r < live ? r : 0]);
      }
      for (std::int64_t r = 0; r < smaller; ++r) lane_of[r] = r < live ? lane_of[running[r]] : -1;
      size = smaller;
      prepare();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!mapped_[i]) continue;
        if (i < carries_) {
          iterations->begin(i, std::move(groups[i]));
        } else {
          rest[i] = std::move(groups[i]);
          iterations->input(i, rest[i]->data);
        }
      }
    }
    counters_->count(0, running.size(), static_cast<std::uint64_t>(size), 0);
    iterations->round();
  }
}

}  // namespace vt::detail
