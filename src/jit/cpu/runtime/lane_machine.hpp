// LaneMachine: runs a lane call by its flow graph. Lanes wait in queues in front of blocks, and
// those that wait at one block run together, whatever iterations, depths and calls they are in.
#pragma once

#include <memory>
#include <span>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/ir/lane_work.hpp"
#include "../../lanes/lane_run.hpp"
#include "row_program.hpp"

namespace vt::detail {

class LaneMachine {
 public:
  LaneMachine(GraphRef body, Lanes lanes, CallSite where);
  ~LaneMachine();
  /// The results of all lanes, along axis 0. Throws: Error(value) where a recursion is too deep, of
  /// the first such lane.
  Vec<BufferRef> run(std::span<const BufferRef> operands) const;
  /// The blocks and their programs.
  void report(Report&, int depth) const;
  /// States of the lanes that are under way.
  std::int64_t scratch_bytes() const;
  const FlowGraph& flow() const { return flow_; }

 private:
  class Run;
  struct Code;  ///< of the blocks
  const Code& code() const;
  std::int64_t places() const;

  const Lanes lanes_;
  const GraphRef body_;
  const CallSite where_;
  FlowGraph flow_;
  std::size_t place_bytes_ = 0, row_bytes_ = 0;  ///< states; of these, of arrays written by rows
  std::size_t shared_bytes_ = 0;  ///< that a block reads of what lanes share, at most
  std::shared_ptr<LaneCounters> counters_;
  mutable LongMutex<> mutex_;
  mutable std::unique_ptr<const Code> code_;
};

}  // namespace vt::detail
