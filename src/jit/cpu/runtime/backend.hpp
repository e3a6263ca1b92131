// Backend: what a device must offer to programs: kernels from loop nests, matrix products,
// convolutions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "../../../trace/ir/graph.hpp"
#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../fusion/conv_spec.hpp"
#include "../../fusion/matmul_spec.hpp"
#include "../../nest/kernel.hpp"
#include "../../nest/loop_nest.hpp"
#include "../../nest/schedule.hpp"
#include "../../regions/lane_form.hpp"
#include "../../services/machine_limits.hpp"

namespace vt::detail {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual int vector_bytes() const = 0;
  /// Any thread. `hurry`: it may run unoptimised at first. No `wait`: no function while another
  /// thread makes the same code; to be asked for again when there is nothing else to do. Throws:
  /// Error(backend).
  virtual Kernel compile(const Nest&, const Schedule&, bool hurry, bool wait) const = 0;
  /// An equation that fits_registers as one function; see register_kernel.hpp. Buffers: operands,
  /// then results.
  virtual Kernel compile_register_kernel(const LaneForm& form, bool hurry) const = 0;
  /// Code for batches of small matrices, a block of `simd_lanes` of them at a time; no function
  /// where there is none for this spec. Buffers: operands, then results; [begin, end): matrices,
  /// whole blocks.
  virtual Kernel compile_matrices(const LinalgSpec& spec, int& simd_lanes, bool hurry) const = 0;
  virtual std::shared_ptr<const ProductKernel> product(const MatmulSpec&, bool hurry) const = 0;
  /// Does it pay to run both products as one, block of rows by block of rows? The second one's left
  /// operand has the first one's rows.
  virtual bool chains(const MatmulSpec& /*first*/, const MatmulSpec& /*second*/) const {
    return false;
  }
  /// Of two that it chains.
  virtual std::shared_ptr<const ProductChain> chain(const MatmulSpec&, const MatmulSpec&) const {
    return nullptr;
  }
  virtual std::shared_ptr<const ProductKernel> convolution(const ConvSpec&) const = 0;
  /// What its machine's parts take, as far as is known now.
  virtual MachineCosts costs() const { return {}; }
  /// A program is ready: those that nobody has measured may be, in the background, for programs to
  /// come.
  virtual void measure_costs() const {}
  virtual MachineLimits limits(bool /*again*/) const { return {}; }
};

/// The CPU's backend, or null when LLVM cannot be used; `reason` then says why.
const Backend* cpu_backend(std::string* reason);

}  // namespace vt::detail
