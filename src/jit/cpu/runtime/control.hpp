// ControlStep: a cond, while or scan, as one function or with bodies that are compiled programs,
// iteration by iteration; and calls of recursive functions. Where each lane has a predicate of its
// own, lanes that go the same way are gathered and run as one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/hash_map.hpp"
#include "../../../trace/base/locks.hpp"
#include "../../../trace/ir/graph.hpp"
#include "../../nest/kernel.hpp"
#include "../../passes/scan_tiling.hpp"
#include "../../regions/lane_form.hpp"
#include "../../services/lane_counters.hpp"
#include "step.hpp"

namespace vt::detail {

class LaneMachine;
class Program;

class ControlStep : public BufferStep {
 public:
  ControlStep(const ProgramPlan& plan, std::size_t number, bool region);
  ~ControlStep() override;
  bool makes_buffers() const override { return !only_code_; }
  void compile(CompileJobs&) override;
  bool cut_by_rows(const ProgramRows&) override;
  bool run(ProgramRun&) const override;
  std::int64_t scratch(const RunMemory&) const override;
  void report_bodies(Report& report, int depth) const override;

 private:
  using Buffers = Vec<BufferRef>;
  Buffers results(Buffers operands) const override;
  std::string title() const override;

  /// A body, and its programs for groups of lanes, or parts of its rows, by their number (0: the
  /// body itself).
  struct Body {
    GraphRef graph;
    mutable LongMutex<> mutex;
    mutable HashMap<std::int64_t, std::shared_ptr<Program>> programs;
  };
  /// The equation as a function that runs each of its lanes by itself, with the lanes along axis 0
  /// of what they differ in, or as a fused region without lanes; no function if it is neither, or
  /// writes over operands.
  const Kernel* kernel_of_rows() const {
    return form_ && lanes_first_ && in_place_.empty() && !form_->sums ? &in_registers_ : nullptr;
  }
  /// Of that function; −1: it has none.
  std::int64_t lane_count() const { return form_ ? form_->count : -1; }
  Program& program(std::size_t body, std::int64_t lanes = 0) const;
  GraphBody graph_for(std::size_t body, std::int64_t lanes) const;
  std::int64_t scratch_of_iterations(const Vec<bool>& owned) const;
  std::int64_t scratch_of_parts() const;
  std::int64_t scratch_of_branches() const;
  std::int64_t scratch_of_queues() const;

  Buffers run_recursive(std::span<const BufferRef> operands) const;
  std::optional<LaneForm> in_register_form() const;
  bool is_to_be_remembered() const;
  Buffers run_in_registers(Buffers operands) const;
  void run_sums(SmallVec<void*, 32>& buffers) const;
  /// Sums of rows are made in parts of so many, which depends on nothing: then bits do not depend
  /// on threads.
  static constexpr std::int64_t rows_of_a_part = 2048;
  std::int64_t parts_of_sums() const {
    return (form_->count + rows_of_a_part - 1) / rows_of_a_part;
  }
  /// Lanes begin … end − 1, or the equation as it is.
  void call_kernel(void* const* buffers, std::int64_t begin, std::int64_t end) const;
  void run_recursions(void* const* buffers) const;
  std::string start_of_recursion(const void* const* buffers) const;
  std::string lane_that_runs(std::int64_t lane, const void* const* buffers) const;
  Buffers run_cond(std::span<const BufferRef> operands) const;
  Buffers run_while(Buffers values) const;
  Buffers run_scan(Buffers values) const;
  Buffers run_one_by_one(const Buffers& operands) const;
  Buffers run_lane_cond(std::span<const BufferRef> operands) const;
  Buffers run_lane_while(Buffers values) const;
  struct LaneQueue {
    std::int64_t first, last, places;
    /// for groups of so many lanes; null: each packs for itself
    const Vec<PackedOperands>* packed;
  };
  void run_queue(const LaneQueue& queue, Buffers& values, Buffers& results) const;
  struct LaneQueues {
    std::int64_t places, queues;
  };
  LaneQueues lane_queues() const;

  GraphBody alone_;                         ///< the equation by itself
  std::optional<LaneForm> form_;            ///< all of it as one function, where it fits …
  Kernel in_registers_;                     ///< … and its code
  bool lanes_first_ = false;                ///< with lanes along axis 0 of what they differ in
  std::shared_ptr<LaneCounters> counters_;  ///< of its loop of lanes, if it has one
  Vec<std::size_t> in_place_;               ///< carries that are updated in the result's memory
  std::unique_ptr<LaneMachine> machine_;    ///< of a lane call
  Lanes lanes_;
  RowCut cut_;  ///< of a scan
  std::size_t carries_ = 0;
  Vec<bool> mapped_;  ///< per input of the bodies
  Vec<std::unique_ptr<Body>> bodies_;
  const Vec<Var> buffers_ = buffers();
  /// Nothing but kernel_of_rows() runs, which writes all results where the plan says.
  bool only_code_ = false;
};

}  // namespace vt::detail
