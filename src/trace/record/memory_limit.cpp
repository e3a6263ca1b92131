// vmap in blocks: how many lanes at a time a memory limit allows, and the blocks' results joined.
#include "memory_limit.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "../base/buffer.hpp"
#include "../ir/executable.hpp"
#include "node.hpp"
#include "scope.hpp"
#include "thread_state.hpp"

namespace vt::detail {

namespace lane_blocks {

// What a block of so many lanes takes.
struct Planned {
  std::int64_t lanes = 0;
  Memory memory;
  std::uint64_t whole = 0;  ///< with all results of all blocks
};

// One block as a Graph of its own. What it reads becomes values first, as it would when the first
// block runs.
Planned planned(const BlockCall& call, std::int64_t count,
                FunctionRef<std::vector<Tensor>(std::int64_t)> block) {
  const bool outside = thread_state().floor == 0;
  const FlatFunction f = [&](std::span<const Tensor>) { return block(count); };
  const Recorded recorded =
      record(f, {}, {.kind = ScopeKind::jit, .transform = call.transform, .where = call.where});
  std::vector<Tensor> read;
  for (const Tensor& t : recorded.captured)
    if (outside && !is_tracer(t) && node_of(t)->op != Op::full) read.push_back(t);
  if (!read.empty()) evaluate(read, call.where);
  Planned p{count, plan_graph(recorded.graph), 0};
  std::uint64_t results = 0;
  for (Var v : recorded.graph.outputs) results += recorded.graph.aval(v).bytes();
  for (const Tensor& t : call.held)
    if (none_of(recorded.captured, [&](const Tensor& c) {
          return node_of(c) == node_of(t) && output_of(c) == output_of(t);
        }))
      p.memory.inputs += aval_of(t).bytes();
  // Blocks are copied into the whole; without blocks the results are the whole.
  const std::uint64_t all =
      results / static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(call.lanes);
  p.whole = p.memory.peak() + (count < call.lanes ? all : 0) + call.other_results;
  return p;
}

[[noreturn]] void refuse(const BlockCall& call, const Planned& least) {
  constexpr std::size_t named = 4;
  std::string text =
      std::string(call.transform) + ": one lane at a time needs " + readable_bytes(least.whole) +
      ", more than the memory_limit of " + readable_bytes(static_cast<std::size_t>(call.limit)) +
      ": arguments and what was computed from them " +
      readable_bytes(least.memory.inputs + least.memory.constants) + ", all results " +
      readable_bytes(least.whole - least.memory.peak()) + ", a lane " +
      readable_bytes(least.memory.results + least.memory.scratch) + ". The largest values:";
  for (std::size_t i = 0; i < least.memory.values.size() && i < named; ++i) {
    const Memory::Value& v = least.memory.values[i];
    text += (i ? ", " : " ") + v.what + " (" + readable_bytes(v.bytes) + ", " + v.place +
            at(v.where) + ")";
  }
  fail(ErrorKind::memory, text, call.where);
}

}  // namespace lane_blocks

std::int64_t lanes_at_once(const BlockCall& call,
                           FunctionRef<std::vector<Tensor>(std::int64_t)> block) {
  using namespace lane_blocks;
  if (call.limit < 0)
    fail(ErrorKind::value,
         std::string(call.transform) + ": memory_limit " + std::to_string(call.limit) +
             " must not be negative",
         call.where);
  const std::int64_t most = call.chunk > 0 ? std::min(call.chunk, call.lanes) : call.lanes;
  if (call.limit == 0 || call.lanes == 0) return call.chunk;
  const auto fits = [&](const Planned& p) {
    return p.whole <= static_cast<std::uint64_t>(call.limit);
  };
  Planned above = planned(call, most, block);
  if (fits(above)) return most < call.lanes ? most : 0;
  Planned below = planned(call, 1, block);
  if (!fits(below)) refuse(call, below);
  // Memory grows about evenly with the lanes: a line through two plans tells the next guess.
  // Schedules bend it a little.
  constexpr int guesses = 4;
  for (int i = 0;
       i < guesses && above.lanes - below.lanes > std::max<std::int64_t>(below.lanes / 16, 1);
       ++i) {
    const double room = static_cast<double>(call.limit) - static_cast<double>(below.whole);
    const double slope = static_cast<double>(above.whole - below.whole) /
                         static_cast<double>(above.lanes - below.lanes);
    const std::int64_t guess = below.lanes + static_cast<std::int64_t>(room / std::max(slope, 1.0));
    Planned next = planned(call, std::clamp(guess, below.lanes + 1, above.lanes - 1), block);
    (fits(next) ? below : above) = std::move(next);
  }
  // Blocks of one size, as far as that goes, are one program.
  const std::int64_t blocks = (call.lanes + below.lanes - 1) / below.lanes;
  return (call.lanes + blocks - 1) / blocks;
}

void JoinedBlocks::add(Tensor block, int axis, std::int64_t lanes, bool evaluated, CallSite where) {
  const Aval& part = aval_of(block);
  const std::int64_t count = part.shape[axis];
  if (!evaluated || (first_ == 0 && count == lanes)) {
    parts_.push_back(std::move(block));
    first_ += count;
    return;
  }
  if (!all_.defined()) {
    Aval whole = part;
    whole.shape[axis] = lanes;
    all_ = from_buffer(allocate(whole.bytes(), "the results of all blocks"), whole);
  }
  std::size_t inner = size_of(part.dtype), outer = 1;
  for (std::size_t d = 0; d < part.shape.size(); ++d)
    if (d != static_cast<std::size_t>(axis))
      (d < static_cast<std::size_t>(axis) ? outer : inner) *=
          static_cast<std::size_t>(part.shape[d]);
  const BufferRef from = value_of(block, where), to = value_of(all_, where);
  const std::size_t row = static_cast<std::size_t>(count) * inner;
  for (std::size_t i = 0; i < outer && row > 0; ++i)
    std::memcpy(
        to->as<char>() +
            (i * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(first_)) * inner,
        from->as<const char>() + i * row, row);
  first_ += count;
}

Tensor JoinedBlocks::whole(int axis, CallSite where) {
  if (all_.defined()) return std::move(all_);
  return parts_.size() == 1 ? parts_[0]
                            : emit(Op::concatenate, make_params(AxisParams{axis}), parts_, where);
}

}  // namespace vt::detail
