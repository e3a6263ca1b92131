// DeviceLanes: a lane call on a CUDA device. The host keeps the queues of lanes; each block is a
// program of the device that gathers the rows of its lanes, computes, and scatters what it gives.
#pragma once

#include <memory>

#include "../../../trace/base/hash_map.hpp"
#include "../../../trace/base/locks.hpp"
#include "../../../trace/ir/executable.hpp"
#include "../../lanes/lane_run.hpp"
#include "../driver/device.hpp"

namespace vt::detail::cuda {

class DeviceLanes : public Executable {
 public:
  DeviceLanes(const BatchedCallParams& call, CallSite where, const CudaDevice& device);
  /// Operands and results on the device. Throws: Error(value) where a recursion is too deep.
  Vec<BufferRef> run(std::span<const BufferRef> operands) override;
  void report(Report&, int depth) const override;
  Memory memory() const override { return {}; }

 private:
  class Run;
  /// A block for a number of rows, with a number of frames at each place.
  struct Key {
    int block;
    std::int64_t rows, frames;
  };
  std::shared_ptr<Executable> program_of(int block, std::int64_t rows, std::int64_t frames);
  GraphBody graph_of(const FlowGraph::Block& b, std::int64_t rows, std::int64_t frames) const;
  /// The rows of `places` of the lane call's results, put where their lanes belong.
  GraphBody graph_of_results(std::int64_t rows) const;
  /// Slots that hold values at places: an array of all places, and of frames where they are saved.
  Aval array_of(int slot, std::int64_t frames) const;
  Vec<int> slots_of(const FlowGraph::Block& b) const;
  Vec<int> slots_written(const FlowGraph::Block& b) const;

  const GraphRef body_;
  const Lanes lanes_;
  const CudaDevice& device_;
  FlowGraph flow_;
  std::int64_t places_ = 0;
  std::shared_ptr<LaneCounters> counters_;
  LongMutex<> mutex_;
  Vec<std::pair<Key, std::shared_ptr<Executable>>> programs_;
  std::shared_ptr<Executable> prologue_;
};

}  // namespace vt::detail::cuda
