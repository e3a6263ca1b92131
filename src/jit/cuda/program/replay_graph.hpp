// ReplayGraph: a ReplayList as a CUDA graph, launched by one call.
#pragma once

#include <mutex>
#include <span>

#include "../../../trace/base/locks.hpp"
#include "replay_list.hpp"

namespace vt::detail::cuda {

/// What a conditional node looks at is set by a kernel in front of it.
constexpr const char* condition_source = R"(
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
extern "C" __global__ void kernel_loop_goes_on(unsigned long long handle,
                                               const unsigned char* holds) {
  cudaGraphSetConditional(handle, VT_LOAD(holds, 0));
}
extern "C" __global__ void kernel_branch_is_taken(unsigned long long handle, const int* index,
                                                  long long branch, long long last) {
  const int i = VT_LOAD(index, 0);
  cudaGraphSetConditional(handle, (i < 0 ? 0 : i > last ? last : i) == branch);
}
)";

/// One thread at a time. A graph that runs goes on with the addresses that it began with; later
/// ones come behind it in the stream.
class ReplayGraph {
 public:
  /// Reads `list` as long as it lives.
  ReplayGraph(const CudaDevice& device, const ReplayList& list) : device_(device), list_(list) {}
  ~ReplayGraph() { drop(); }
  ReplayGraph(const ReplayGraph&) = delete;
  ReplayGraph& operator=(const ReplayGraph&) = delete;

  /// Makes the graph, or tells it of the addresses that changed. After an error it is made anew the
  /// next time. Throws: Error(backend), Error(memory).
  void prepare(std::span<const DevicePtr> bases, DevicePtr scratch);
  void launch() const;

 private:
  struct Movable {
    GraphNode node;
    const ReplayStep* step;
    bool stale;
  };
  void make();
  /// Tells a node of new addresses. False where another graph is needed.
  bool update(const Movable& node) const;
  void add_steps(Graph graph, const Vec<ReplayStep>& steps, const ReplayStep* loop,
                 unsigned long long again);
  /// A kernel behind `last`, which it becomes.
  void add_kernel(Graph graph, GraphNode& last, const KernelNodeParams& params) const;
  /// What a step's library gives to a stream, for its present addresses.
  Graph capture(const ReplayStep& step) const;
  void add_condition(Graph graph, GraphNode& last, const ReplayStep& step,
                     unsigned long long handle);
  DevicePtr resolve(Place place) const;
  struct Parameters {
    SmallVec<DevicePtr, 16> addresses;
    SmallVec<void*, 24> pointers;
  };
  /// Of a kernel step; `p` holds what they point to.
  KernelNodeParams parameters_of(const ReplayStep& step, Parameters& p) const;
  void drop();

  const CudaDevice& device_;
  const ReplayList& list_;
  Graph graph_ = nullptr;
  GraphExec exec_ = nullptr;
  Vec<std::shared_ptr<const DeviceCode>> conditions_;  // that the graph runs beside the list's code
  Vec<DevicePtr> bases_;
  DevicePtr scratch_ = 0;
  Vec<Movable> nodes_;     // of the outermost graph
  Vec<Vec<int>> used_by_;  // per base: nodes
  Vec<char> settled_;      // per base: a branch or a loop uses it
};

/// The memory that all replayed programs of a device share as scratch, as its stream runs them one
/// after the other; who holds `mutex` may use it for what it gives to the stream meanwhile.
struct ReplayScratch {
  LongMutex<> mutex;
  BufferRef memory;
};
ReplayScratch& replay_scratch(int device);

}  // namespace vt::detail::cuda
