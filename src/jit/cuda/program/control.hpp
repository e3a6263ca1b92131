// DeviceControl: a cond, while or scan on the device: one kernel if its values fit in registers,
// otherwise programs that the host launches iteration by iteration.
#pragma once

#include <memory>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/executable.hpp"
#include "../../regions/lane_form.hpp"
#include "../driver/device.hpp"
#include "../source/register_source.hpp"
#include "compile.hpp"
#include "loop_kernel.hpp"
#include "replay_list.hpp"

namespace vt::detail::cuda {

/// Can the device run it? Not what has effects. Lanes that decide for themselves with more than
/// fits in registers are masked before (mask_lanes).
bool runs_on_device(const GraphBody&, const Equation&);

class DeviceControl {
 public:
  /// `keep_texts`: of kernels, which are to become parts of another one.
  DeviceControl(const GraphBody&, const Equation&, const CudaDevice&, bool keep_texts);
  /// The equation's results; operands and results on the device. Only cond and while wait for it,
  /// to see which way they go.
  Vec<BufferRef> run(std::span<const BufferRef> operands) const;
  /// Adds what `run` does, with results where they are wanted. False where only the host can steer
  /// it.
  bool list(ReplayList&, std::span<const Place> operands, std::span<const Place> results) const;
  std::string describe() const;
  /// Of the bodies' programs.
  void report(Report&, int depth) const;

 private:
  bool list_iterations(ReplayList&, std::span<const Place> operands,
                       std::span<const Place> results) const;
  bool list_counted(ReplayList&, std::span<const Place> operands,
                    std::span<const Place> results) const;
  void join_into_kernel();
  Vec<BufferRef> run_in_one_kernel(std::span<const BufferRef> operands) const;
  Vec<BufferRef> run_in_registers(std::span<const BufferRef> operands) const;
  bool carried_in_memory(std::size_t result) const;
  DeviceCode::Grid grid_in_registers() const;
  Vec<BufferRef> run_scan(std::span<const BufferRef> operands) const;

  Equation equation_;
  GraphBody alone_;  ///< the equation by itself
  const CudaDevice& device_;
  std::shared_ptr<const DeviceCode> in_registers_;
  std::int64_t lanes_ = -1;             ///< of that kernel
  std::int64_t most_in_registers_ = 0;  ///< LaneForm::most_in_registers of it
  std::string register_text_;           ///< of that kernel, where it is kept
  double register_work_ = -1;
  std::shared_ptr<const DeviceCode> loop_code_;  ///< all of it as one kernel of one block
  LoopKernel loop_;
  std::size_t loop_scratch_bytes_ = 0;
  Vec<GraphRef> graphs_;
  Vec<std::shared_ptr<Executable>> bodies_;
};

/// What such a loop's counter and its rows take on the device (counted_loop.cpp): kernels behind
/// the prelude.
extern const char* const counting_source;

/// A part of a buffer on its device, which it keeps alive.
BufferRef part_of(const BufferRef& whole, std::size_t offset, std::size_t bytes);

}  // namespace vt::detail::cuda
