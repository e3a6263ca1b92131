// CudaProgram: a Graph compiled for a CUDA device: kernels, products, loops launched by the host,
// and equations that the host runs.
#pragma once

#include <memory>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/executable.hpp"
#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../fusion/buffer_plan.hpp"
#include "../../fusion/fuse.hpp"
#include "../../passes/pipeline.hpp"
#include "../source/nest_source.hpp"
#include "compile.hpp"
#include "control.hpp"
#include "lanes.hpp"
#include "launch.hpp"
#include "replay_list.hpp"

namespace vt::detail::cuda {

class CudaProgram : public Executable {
 public:
  /// Real dtypes only (lower_complex.hpp puts two numbers in the place of a complex one). Fuses,
  /// plans and compiles. Throws: Error(backend), Error(memory).
  /// `keep_texts`: of kernels, so that they may become parts of another one. `owned`: inputs which
  /// results may overwrite; see overwritten().
  CudaProgram(const GraphBody& graph, const CudaDevice& device, bool keep_texts = false,
              const OwnedInputs& owned = {});
  /// Returns when the work is given to the device, not when it is done.
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override;
  std::span<const std::size_t> overwritten() const override {
    return {overwritten_.begin(), overwritten_.size()};
  }
  void report(Report&, int depth) const override;
  /// Of the device's memory, by the plan; what steps that are loops or run on the host take
  /// meanwhile is not counted.
  Memory memory() const override;
  /// Adds what `run` does, with results where they are wanted (`nowhere`: none asks for it). False
  /// where something takes the host.
  bool list(ReplayList&, std::span<const Place> inputs, std::span<const Place> outputs) const;

 private:
  struct DeviceStep {
    enum class Kind : std::uint8_t { kernel, control, lanes, host } kind = Kind::kernel;
    Vec<Launch> launches;            // of kernels, one after the other
    std::int64_t scratch_bytes = 0;  // that they share
    std::shared_ptr<const DeviceControl> control;
    std::shared_ptr<DeviceLanes> lanes;
    std::shared_ptr<Executable> host;  // the equation alone, on the host
    int equation = -1;
    std::string name, text;  // for explain; of a step on the host why it is there
    Vec<CallSite> lines;     // the user's
    std::uint64_t bytes = 0;
  };
  DeviceStep make_step(const FusedStep& fused) const;
  void place_values();
  void compile(bool keep_texts);
  bool lies_over_input(Var v) const;
  void prepare_kernel(DeviceStep& step, const FusedStep& fused) const;
  /// Is there a kernel of vt's own for this product, and none of a library's?
  bool prepare_product(DeviceStep& step, const FusedStep& fused) const;
  static void add_lines(DeviceStep& step, const FusedStep& fused, const GraphBody& g);
  bool prepare_matrices(DeviceStep& step, const Equation& e) const;
  bool prepare_large_matrices(DeviceStep& step, const Equation& e, const LinalgSpec& spec) const;
  bool prepare_transform(DeviceStep& step, const Equation& e) const;
  bool prepare_in_registers(DeviceStep& step, const Equation& e) const;
  void prepare_sort(DeviceStep& step, const Equation& e) const;
  void run_kernels(const DeviceStep& step, const Vec<DevicePtr>& pointers, DevicePtr scratch) const;
  void run_steps(std::span<const BufferRef> inputs, Vec<BufferRef>& results);
  void run_equation(const DeviceStep& step, Vec<DevicePtr>& pointers, Vec<BufferRef>& produced,
                    std::span<const BufferRef> inputs) const;
  BufferRef at(Var v, const Vec<DevicePtr>& pointers, const Vec<BufferRef>& produced,
               std::span<const BufferRef> inputs) const;

  // Programs that run again do so by one launch of a CUDA graph, where it saves time.
  struct Replay;
  std::shared_ptr<Replay> new_replay() const;
  /// False where it has to run kernel by kernel.
  bool replay(std::span<const BufferRef> inputs, Vec<BufferRef>& results);
  bool is_replayed() const;

  const CudaDevice& device_;
  Fusion fusion_;
  Vec<PassNote> passes_;  ///< for explain
  BufferPlan plan_;
  Vec<DeviceStep> steps_;
  Vec<BufferRef> constants_;       // per Var: on the device
  Vec<std::size_t> overwritten_;   // inputs
  std::size_t scratch_bytes_ = 0;  // the most that a step's kernels share
  std::shared_ptr<Replay> replay_;
  std::uint64_t launches_ = 0, epilogues_ = 0, host_steps_ = 0, bytes_ = 0;
};

}  // namespace vt::detail::cuda
