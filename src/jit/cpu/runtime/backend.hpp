// Backend: what a device must offer to programs: kernels from loop nests,
// matrix products and convolutions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "../../../trace/ir/graph.hpp"
#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../fusion/conv_spec.hpp"
#include "../../fusion/matmul_spec.hpp"
#include "../../nest/loop_nest.hpp"
#include "../../nest/schedule.hpp"
#include "../../regions/lane_form.hpp"

namespace vt::detail {

/// A compiled nest. `buffers` in the nest's order; `arguments`: the runtime loops' extents in loop
/// order, then the nest's scalars, then `numbers`; [begin, end): the range of the parallel loop.
struct Kernel {
  using Function = void(void* const* buffers, const std::int64_t* arguments, std::int64_t begin,
                        std::int64_t end);
  /// another from one run to the next, once better code was made
  void* const* entry = nullptr;
  const bool* hasty = nullptr;       ///< is it to be replaced?
  std::shared_ptr<const void> keep;  ///< owns the code and both
  /// extents and distances of this nest, which its code does not know
  Vec<std::int64_t> numbers;
  explicit operator bool() const { return entry != nullptr; }
  void operator()(void* const* buffers, const std::int64_t* arguments, std::int64_t begin,
                  std::int64_t end) const {
    reinterpret_cast<Function*>(__atomic_load_n(entry, __ATOMIC_ACQUIRE))(buffers, arguments, begin,
                                                                          end);
  }
  bool optimised() const { return !__atomic_load_n(hasty, __ATOMIC_RELAXED); }
};

/// While one exists programs of this thread are planned only: nothing is compiled, and they cannot
/// run.
class Planning {
 public:
  Planning();
  ~Planning();
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
  static bool now();
};

/// The most that the device does a second, with all threads.
struct MachineLimits {
  static constexpr std::uint64_t sizes[] = {std::uint64_t{64} << 10, std::uint64_t{1} << 20,
                                            std::uint64_t{8} << 20, std::uint64_t{64} << 20,
                                            std::uint64_t{256} << 20};
  double operations = 0;  ///< in f32, a multiply-add as two; 0: not known
  double bandwidth[5]{};  ///< bytes read where so many are read again and again
};
/// Of the backend that runs programs.
/// `again`: measured anew, and the better of both kept.
MachineLimits machine_limits(bool again);

class Backend {
 public:
  virtual ~Backend() = default;
  virtual int vector_bytes() const = 0;
  /// Any thread. `hurry`: it may run unoptimised at first. No `wait`: no function while another
  /// thread makes the same code; to be asked for again when there is nothing else to do. Throws:
  /// Error(backend).
  virtual Kernel compile(const Nest&, const Schedule&, bool hurry, bool wait) const = 0;
  /// An equation that fits_registers as one function; see register_loop.hpp. Buffers: operands,
  /// then results.
  virtual Kernel compile_register_loop(const LaneForm& form, bool hurry) const = 0;
  /// Code for batches of small matrices, a block of `lanes` of them at a time; no function where
  /// there is none for this spec. Buffers: operands, then results; [begin, end): matrices, whole
  /// blocks.
  virtual Kernel compile_matrices(const LinalgSpec& spec, int& lanes, bool hurry) const = 0;
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

/// The folder that VT_DUMP names, or empty.
const std::string& dump_folder();
/// Writes `text` to a file of the dump folder; failures become warnings.
void dump_text(const std::string& name, const std::string& text);
/// A short name for a kernel: the hash of its text.
std::string short_name(const std::string& text);

}  // namespace vt::detail
