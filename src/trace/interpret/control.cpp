// Interpreter rules of cond, while, scan and batched calls: the loops as they are defined,
// one lane after the other.
#include <algorithm>
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../ir/effects.hpp"
#include "../record/lane_scope.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_control {

/// The operands as lane `lane` sees them. `first`: leave out that many operands.
inline Vec<BufferRef> lane_operands(const Frame& frame, const Lanes& lanes, std::int64_t lane,
                                    std::size_t first) {
  Vec<BufferRef> own;
  for (std::size_t i = first; i < frame.inputs.size(); ++i) {
    if (!lanes.mapped[i]) {
      own.push_back(frame.inputs[i]);
      continue;
    }
    const std::size_t bytes = frame.in(i).bytes() / static_cast<std::size_t>(lanes.count);
    own.push_back(borrow_memory(frame.bytes(i) + static_cast<std::size_t>(lane) * bytes, bytes));
  }
  return own;
}

/// Puts one lane's (or one iteration's) results into the outputs from `first` on.
inline void store_results(Frame& frame, std::size_t first, std::int64_t at, std::int64_t count,
                          std::span<const BufferRef> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t bytes = frame.out(first + i).bytes() / static_cast<std::size_t>(count);
    if (bytes)
      std::memcpy(frame.outputs[first + i]->as<std::byte>() + static_cast<std::size_t>(at) * bytes,
                  results[i]->data, bytes);
  }
}

inline std::size_t chosen(const CondParams& p, std::int32_t index) {
  return std::clamp<std::int64_t>(index, 0, static_cast<std::int64_t>(p.branches.size()) - 1);
}

void cond(Frame& frame) {
  const auto& p = frame.params<CondParams>();
  if (!p.lanes) {
    const auto results =
        interpret(*p.branches[chosen(p, *frame.read<std::int32_t>(0))], frame.inputs.subspan(1));
    for (std::size_t i = 0; i < results.size(); ++i) frame.outputs[i] = results[i];
    return;
  }
  for (std::size_t i = 0; i < frame.outputs.size(); ++i) frame.make_bytes(i);
  for (std::int64_t lane = 0; lane < p.lanes.count; ++lane) {
    const LaneScope here(p.lanes, lane);
    const std::int32_t index = frame.read<std::int32_t>(0)[p.lanes.mapped[0] ? lane : 0];
    store_results(frame, 0, lane, p.lanes.count,
                  interpret(*p.branches[chosen(p, index)], lane_operands(frame, p.lanes, lane, 1)));
  }
}

void batched_call(Frame& frame) {
  const auto& p = frame.params<BatchedCallParams>();
  const std::size_t lanes = p.lanes.count;
  // The results of all lanes; sums are those of arrays over their first axis.
  GraphBody sums;
  Vec<BufferRef> all;
  Vec<std::size_t> bytes;
  for (Var v : p.body->outputs) {
    const Aval& lane = p.body->aval(v);
    Aval stacked(lane.dtype, Shape{p.lanes.count});
    stacked.shape.append(lane.shape.begin(), lane.shape.end());
    sums.fresh(stacked);
    bytes.push_back(lane.bytes());
    all.push_back(frame.scratch(lanes * lane.bytes()));
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const LaneScope here(p.lanes, static_cast<std::int64_t>(lane));
    const Vec<BufferRef> results =
        interpret(*p.body, lane_operands(frame, p.lanes, static_cast<std::int64_t>(lane), 0));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (bytes[i])
        std::memcpy(all[i]->as<std::byte>() + lane * bytes[i], results[i]->data, bytes[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!p.summed[i]) {
      frame.outputs[i] = std::move(all[i]);
      continue;
    }
    Equation sum;
    sum.op = Op::reduce_sum;
    sum.params = make_params(AxesParams{Axes{0}});
    sum.inputs.push_back(static_cast<Var>(i));
    sum.outputs.push_back(sums.fresh(p.body->aval(p.body->outputs[i])));
    frame.outputs[i] = std::move(interpret_equation(sum, sums, {&all[i], 1})[0]);
  }
}

void fused_region(Frame& frame) {
  const auto& p = frame.params<RegionParams>();
  if (!p.lanes) {
    const auto results = interpret(*p.body, frame.inputs);
    std::copy(results.begin(), results.end(), frame.outputs.begin());
    return;
  }
  for (std::size_t i = 0; i < frame.outputs.size(); ++i) frame.make_bytes(i);
  for (std::int64_t lane = 0; lane < p.lanes.count; ++lane)
    store_results(frame, 0, lane, p.lanes.count,
                  interpret(*p.body, lane_operands(frame, p.lanes, lane, 0)));
}

/// Runs the loop on `values` (carries, then the rest); leaves the carries there.
inline void run_while(const WhileParams& p, Vec<BufferRef>& values) {
  while (*interpret(*p.condition, values)[0]->as<const std::uint8_t>()) {
    Vec<BufferRef> next = interpret(*p.body, values);
    std::move(next.begin(), next.end(), values.begin());
  }
}

void while_loop(Frame& frame) {
  const auto& p = frame.params<WhileParams>();
  const std::size_t carries = p.carries;
  if (!p.lanes) {
    Vec<BufferRef> values(frame.inputs.begin(), frame.inputs.end());
    run_while(p, values);
    for (std::size_t i = 0; i < carries; ++i) frame.outputs[i] = values[i];
    return;
  }
  for (std::size_t i = 0; i < carries; ++i) frame.make_bytes(i);
  for (std::int64_t lane = 0; lane < p.lanes.count; ++lane) {
    const LaneScope here(p.lanes, lane);
    Vec<BufferRef> values = lane_operands(frame, p.lanes, lane, 0);
    run_while(p, values);
    store_results(frame, 0, lane, p.lanes.count,
                  std::span<const BufferRef>(values.data(), carries));
  }
}

void scan(Frame& frame) {
  const auto& p = frame.params<ScanParams>();
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  Vec<BufferRef> values(frame.inputs.begin(), frame.inputs.end());
  for (std::size_t i = carries; i < frame.outputs.size(); ++i) frame.make_bytes(i);
  for (std::int64_t iteration = 0; iteration < p.length; ++iteration) {
    const std::int64_t at = p.reverse ? p.length - 1 - iteration : iteration;
    for (std::size_t i = carries; i < looped; ++i) {
      const std::size_t bytes = frame.in(i).bytes() / static_cast<std::size_t>(p.length);
      values[i] = borrow_memory(frame.bytes(i) + static_cast<std::size_t>(at) * bytes, bytes);
    }
    Vec<BufferRef> results = interpret(*p.body, values);
    // An element of xs that the body hands on as a carry is a view of it; what outlives the
    // iteration must own its memory.
    for (std::size_t i = 0; i < carries; ++i) {
      if (results[i]->capacity == 0 && results[i]->bytes > 0) {
        BufferRef own = frame.scratch(results[i]->bytes);
        std::memcpy(own->data, results[i]->data, results[i]->bytes);
        results[i] = std::move(own);
      }
    }
    store_results(frame, carries, at, p.length,
                  std::span<const BufferRef>(results).subspan(carries));
    std::move(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carries),
              values.begin());
  }
  for (std::size_t i = 0; i < carries; ++i) frame.outputs[i] = values[i];
}

}  // namespace vt::detail::interp_control
