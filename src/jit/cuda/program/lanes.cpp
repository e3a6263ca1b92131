// DeviceLanes: programs of blocks, and the queues that they are taken from.
#include "lanes.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/ops.hpp>

#include "../../../trace/record/batching.hpp"
#include "../../../trace/record/devices.hpp"
#include "../../../trace/record/node.hpp"
#include "../../../trace/record/scope.hpp"
#include "../../passes/passes.hpp"
#include "../../services/executables.hpp"

namespace vt::detail::cuda {

namespace device_lanes {

using Storage = FlowGraph::Storage;
using Tensors = std::vector<Tensor>;

constexpr std::size_t bytes_of_places = std::size_t{1} << 30;
constexpr std::int64_t most_places = 65536, first_frames = 16;

Shape with_rows(std::int64_t rows, const Shape& of_one) {
  Shape shape{rows};
  shape.append(of_one.begin(), of_one.end());
  return shape;
}

/// Rows `index` of `array`; what lies outside of it is the row at its edge.
Tensor rows_of(const Tensor& array, const Tensor& index) { return take(array, index, 0); }

/// `array` with rows `index` replaced; indices outside of it are left out.
Tensor with_rows_set(const Tensor& array, const Tensor& index, const Tensor& rows) {
  ScatterParams p;
  for (int a = 1; a < array.rank(); ++a) p.update_window_dims.push_back(a);
  p.inserted_window_dims.push_back(0);
  p.scatter_dims_to_operand_dims.push_back(0);
  p.mode = IndexMode::fill;
  p.unique = true;
  return emit(Op::scatter, make_params(std::move(p)),
              {array, reshape(index, Shape{index.dim(0), 1}), rows}, {});
}

GraphBody recorded(const FlatFunction& f, const Vec<Aval>& avals) {
  return closed(record(f, {avals.data(), avals.size()},
                       {.kind = ScopeKind::branch, .transform = "vt::vmap"}));
}

}  // namespace device_lanes

DeviceLanes::DeviceLanes(const BatchedCallParams& call, CallSite, const CudaDevice& device)
    : body_(call.body), lanes_(call.lanes), device_(device) {
  using namespace device_lanes;
  Vec<bool> mapped;
  for (bool m : lanes_.mapped) mapped.push_back(m);
  flow_ = flow_graph(body_, mapped, false);
  std::size_t bytes = 1;
  for (const FlowGraph::Slot& s : flow_.slots)
    if (s.storage == Storage::state) bytes += s.aval.bytes();
    else if (s.storage == Storage::saved) bytes += s.aval.bytes() * first_frames;
  places_ = lane_options().places;
  if (places_ <= 0)
    places_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes_of_places / bytes), 8,
                                       most_places);
  places_ = std::min(places_, lanes_.count);
  counters_ = lane_counters(counted_blocks(flow_));
}

Aval DeviceLanes::array_of(int slot, std::int64_t frames) const {
  using namespace device_lanes;
  const FlowGraph::Slot& s = flow_.slots[slot];
  switch (s.storage) {
    case Storage::shared: return s.aval;
    case Storage::argument: return {s.aval.dtype, with_rows(lanes_.count, s.aval.shape)};
    case Storage::state: return {s.aval.dtype, with_rows(places_, s.aval.shape)};
    case Storage::saved: break;
  }
  return {s.aval.dtype, with_rows(places_ * frames, s.aval.shape)};
}

Vec<int> DeviceLanes::slots_of(const FlowGraph::Block& b) const {
  Vec<int> slots;
  const auto add = [&](int slot) {
    if (slot >= 0 && std::find(slots.begin(), slots.end(), slot) == slots.end())
      slots.push_back(slot);
  };
  for (const FlowGraph::Place& r : b.reads) add(r.slot), add(r.index);
  for (const FlowGraph::Write& w : b.writes) add(w.to.slot), add(w.to.index);
  return slots;
}
Vec<int> DeviceLanes::slots_written(const FlowGraph::Block& b) const {
  Vec<int> slots;
  for (const FlowGraph::Write& w : b.writes)
    if (std::find(slots.begin(), slots.end(), w.to.slot) == slots.end()) slots.push_back(w.to.slot);
  return slots;
}

// (the arrays of its slots…, place, lane, frame) → (the arrays that it writes…, what decides). Rows
// that no lane has stand at places behind the last.
GraphBody DeviceLanes::graph_of(const FlowGraph::Block& b, std::int64_t rows,
                                std::int64_t frames) const {
  using namespace device_lanes;
  const Vec<int> slots = slots_of(b), written = slots_written(b);
  Vec<Aval> avals;
  for (int slot : slots) avals.push_back(array_of(slot, frames));
  for (int i = 0; i < 3; ++i) avals.emplace_back(DType::i32, Shape{rows});
  return recorded(
      [&](std::span<const Tensor> in) {
        Tensors arrays(flow_.slots.size());
        for (std::size_t i = 0; i < slots.size(); ++i) arrays[slots[i]] = in[i];
        const Tensor place = in[slots.size()], lane = in[slots.size() + 1],
                     frame = in[slots.size() + 2];
        const auto index_of = [&](int slot, bool callee) {
          switch (flow_.slots[slot].storage) {
            case Storage::argument: return lane;
            case Storage::saved: return callee ? frame + 1 : frame;
            default: return place;
          }
        };
        // An array and the rows of it that a place stands for.
        const auto addressed = [&](const FlowGraph::Place& p, bool callee) {
          const FlowGraph::Slot& s = flow_.slots[p.slot];
          Tensor array = arrays[p.slot];
          if (p.index < 0) return std::pair(array, index_of(p.slot, callee));
          const Tensor row = rows_of(arrays[p.index], index_of(p.index, false));
          if (s.storage == Storage::shared) return std::pair(array, row);
          const std::int64_t length = s.aval.shape[0];
          Shape flat = s.aval.shape;
          flat[0] = array.dim(0) * length;
          return std::pair(reshape(array, flat), index_of(p.slot, callee) * length + row);
        };
        Tensors read, inputs;
        Vec<bool> mapped, per_lane;
        for (std::size_t i = 0; i < b.reads.size(); ++i) {
          const FlowGraph::Place& r = b.reads[i];
          const bool own = r.index >= 0 || flow_.slots[r.slot].storage != Storage::shared;
          per_lane.push_back(own);
          if (own) {
            const auto [array, index] = addressed(r, false);
            read.push_back(rows_of(array, index));
          } else {
            read.push_back(arrays[r.slot]);
          }
          if (!b.in_body[i]) continue;
          inputs.push_back(read.back());
          mapped.push_back(own);
        }
        const Tensors made = b.body ? replay(batch_body(*b.body, mapped, rows), inputs) : Tensors();
        const auto value = [&](const FlowGraph::Source& s) {
          if (s.result >= 0) return made[s.result];
          if (per_lane[s.read]) return read[s.read];
          return broadcast_to(read[s.read], with_rows(rows, read[s.read].shape()));
        };
        Tensors next = arrays;
        for (const FlowGraph::Write& w : b.writes) {
          const auto [array, index] = addressed(w.to, w.callee);
          Tensor now = next[w.to.slot];
          now = with_rows_set(reshape(now, array.shape()), index, value(w.from));
          next[w.to.slot] = reshape(now, arrays[w.to.slot].shape());
        }
        Tensors results;
        for (int slot : written) results.push_back(next[slot]);
        if (b.exit == FlowGraph::Exit::branch) results.push_back(value(b.decides));
        return results;
      },
      avals);
}

GraphBody DeviceLanes::graph_of_results(std::int64_t rows) const {
  using namespace device_lanes;
  Vec<Aval> avals;
  const std::size_t count = flow_.results.size();
  for (int slot : flow_.results) {
    const Aval& one = flow_.slots[slot].aval;
    avals.emplace_back(one.dtype, with_rows(lanes_.count, one.shape));
  }
  for (int slot : flow_.results) avals.push_back(array_of(slot, 1));
  for (int i = 0; i < 2; ++i) avals.emplace_back(DType::i32, Shape{rows});
  return recorded(
      [&](std::span<const Tensor> in) {
        Tensors results;
        for (std::size_t k = 0; k < count; ++k)
          results.push_back(
              with_rows_set(in[k], in[2 * count + 1], rows_of(in[count + k], in[2 * count])));
        return results;
      },
      avals);
}

std::shared_ptr<Executable> DeviceLanes::program_of(int block, std::int64_t rows,
                                                    std::int64_t frames) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, program] : programs_)
    if (key.block == block && key.rows == rows && key.frames == frames) return program;
  GraphBody graph =
      block < 0 ? graph_of_results(rows) : graph_of(flow_.blocks[block], rows, frames);
  graph = simplify(group_lanes(lower_batched_calls(std::move(graph))), SimplifyFor::running);
  // Arrays that it changes are its own.
  Vec<char> donated(graph.inputs.size(), false);
  if (block < 0) {
    for (std::size_t k = 0; k < flow_.results.size(); ++k) donated[k] = true;
  } else {
    const FlowGraph::Block& b = flow_.blocks[block];
    const Vec<int> slots = slots_of(b), written = slots_written(b);
    for (std::size_t i = 0; i < slots.size(); ++i)
      donated[i] = std::find(written.begin(), written.end(), slots[i]) != written.end();
  }
  programs_.push_back({{block, rows, frames},
                       cuda_executable(graph, device_.index(), {donated.data(), donated.size()})});
  return programs_.back().second;
}

class DeviceLanes::Run : public LaneRun {
 public:
  Run(DeviceLanes& lanes, std::span<const BufferRef> operands)
      : LaneRun(lanes.flow_, lanes.lanes_, *lanes.counters_), d_(lanes), operands_(operands) {}

  Vec<BufferRef> all() {
    arrays_.resize(g_.slots.size());
    for (std::size_t s = 0; s < g_.slots.size(); ++s) {
      const FlowGraph::Slot& slot = g_.slots[s];
      arrays_[s] = slot.operand >= 0 ? operands_[slot.operand] : array(static_cast<int>(s));
    }
    for (int slot : g_.results)
      results_.push_back(d_.device_.allocate(g_.slots[slot].aval.bytes() * d_.lanes_.count,
                                             "the results of lanes"));
    run_lanes(0, d_.lanes_.count, d_.places_);
    store_results();
    return std::move(results_);
  }

 private:
  BufferRef array(int slot) const {
    return d_.device_.allocate(d_.array_of(slot, frames_).bytes(), "the states of lanes");
  }
  /// Numbers of rows, filled up.
  BufferRef numbers(std::int64_t rows, std::int32_t fill, const Vec<std::int32_t>& values) const {
    const BufferRef host = vt::detail::allocate(rows * sizeof(std::int32_t), "rows of lanes");
    auto* to = host->as<std::int32_t>();
    std::fill(std::copy(values.begin(), values.end(), to), to + rows, fill);
    return moved(host, vt::cuda(d_.device_.index()));
  }
  static std::int64_t bucket(std::size_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(count));
  }

  void lane_ends(std::int64_t place) override {
    ended_places_.push_back(static_cast<std::int32_t>(place));
    ended_lanes_.push_back(static_cast<std::int32_t>(lane_[place]));
  }
  BufferRef operand(int i) const override { return moved(operands_[i], vt::cpu()); }
  // Before others write where the results of lanes lie that have ended.
  void store_results() {
    if (ended_places_.empty()) return;
    const std::int64_t rows = bucket(ended_places_.size());
    Vec<BufferRef> in = std::move(results_);
    for (int slot : g_.results) in.push_back(arrays_[slot]);
    in.push_back(numbers(rows, 0, ended_places_));
    in.push_back(numbers(rows, static_cast<std::int32_t>(d_.lanes_.count), ended_lanes_));
    results_ = d_.program_of(-1, rows, 1)->run(in);
    ended_places_.clear();
    ended_lanes_.clear();
  }

  // Twice as many frames at each place.
  void grow() {
    const std::int64_t before = frames_;
    frames_ *= 2;
    for (std::size_t s = 0; s < g_.slots.size(); ++s) {
      if (g_.slots[s].storage != FlowGraph::Storage::saved) continue;
      const BufferRef larger = array(static_cast<int>(s));
      const std::size_t bytes = g_.slots[s].aval.bytes() * before;
      for (std::int64_t p = 0; p < count_ && bytes; ++p)
        d_.device_.copy(address(*larger) + 2 * bytes * p, address(*arrays_[s]) + bytes * p, bytes);
      arrays_[s] = larger;
    }
  }

  void run_block(int number, const Places& places, Vec<std::int32_t>& decisions) override {
    store_results();
    const FlowGraph::Block& b = g_.blocks[number];
    for (std::int32_t p : places)
      while (static_cast<std::int64_t>(returns_[p]) + 2 > frames_) grow();
    const std::int64_t rows = bucket(places.size());
    const Vec<int> slots = d_.slots_of(b), written = d_.slots_written(b);
    Vec<std::int32_t> place, lane, frame;
    for (std::int32_t p : places) {
      place.push_back(p);
      lane.push_back(static_cast<std::int32_t>(lane_[p]));
      frame.push_back(static_cast<std::int32_t>(p * frames_) +
                      static_cast<std::int32_t>(returns_[p]));
    }
    const auto none = static_cast<std::int32_t>(d_.places_);
    Vec<BufferRef> in;
    for (int slot : slots) in.push_back(arrays_[slot]);
    in.push_back(numbers(rows, none, place));
    in.push_back(numbers(rows, 0, lane));
    in.push_back(numbers(rows, static_cast<std::int32_t>(none * frames_), frame));
    const std::shared_ptr<Executable> program = d_.program_of(number, rows, frames_);
    for (int slot : written) arrays_[slot] = {};
    Vec<BufferRef> made = program->run(in);
    for (std::size_t i = 0; i < written.size(); ++i) arrays_[written[i]] = made[i];
    if (b.exit != FlowGraph::Exit::branch) return;
    const BufferRef chosen = moved(made[written.size()], vt::cpu());
    decisions.assign(chosen->as<std::int32_t>(), chosen->as<std::int32_t>() + places.size());
  }

  DeviceLanes& d_;
  const std::span<const BufferRef> operands_;
  std::int64_t frames_ = device_lanes::first_frames;
  Vec<BufferRef> arrays_, results_;  ///< of each slot; of the lane call
  Places ended_places_, ended_lanes_;
};

Vec<BufferRef> DeviceLanes::run(std::span<const BufferRef> operands) {
  Vec<BufferRef> all(operands.begin(), operands.end());
  if (flow_.prologue) {
    {
      const std::lock_guard lock(mutex_);
      if (!prologue_)
        prologue_ =
            cuda_executable(simplify(*flow_.prologue, SimplifyFor::running), device_.index());
    }
    Vec<BufferRef> shared;
    for (int i : flow_.prologue_operands) shared.push_back(operands[i]);
    for (BufferRef& made : prologue_->run(shared)) all.push_back(std::move(made));
  }
  return Run(*this, all).all();
}

void DeviceLanes::report(Report& report, int depth) const {
  ReportStep head;
  head.depth = depth;
  head.title = formatted("{} lanes, each at its own place of {} blocks; {} of them at a time",
                         lanes_.count, flow_.blocks.size(), places_);
  head.nest = flow_.str();
  report.push_back(std::move(head));
}

}  // namespace vt::detail::cuda
