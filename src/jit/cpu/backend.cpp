// The CPU as a Backend: nests through the emitter and the code cache, matrix products through their
// own kernels.
#include "runtime/backend.hpp"

#include "../services/counters.hpp"
#include "../services/planning.hpp"
#include "emit/matrices.hpp"
#include "emit/nest.hpp"
#include "emit/register_kernel.hpp"
#include "llvm/code_cache.hpp"
#include "machine_costs.hpp"
#include "machine_limits.hpp"
#include "products/conv.hpp"
#include "products/matmul.hpp"

namespace vt::detail {

namespace cpu {

#if VT_HAS_LLVM_HEADERS

namespace backend {

class CpuBackend : public Backend {
 public:
  int vector_bytes() const override { return host_target().vector_bytes; }

  Kernel compile(const Nest& nest, const Schedule& schedule, bool hurry, bool wait) const override {
    const std::string key = nest.str() + schedule.str(nest);
    FormedCode made = formed_code(
        key, "kernel", [=](IrBuilder& b) { emit_nest(b, "kernel", nest, schedule); }, hurry, wait);
    if (!made.code) return {};
    const AccessCounts accesses = count_accesses(nest, schedule);
    Counters& c = counters();
    count(c.vector_kernels, schedule.simd_lanes > 1);
    count(c.contiguous_accesses, static_cast<std::uint64_t>(accesses.contiguous));
    count(c.strided_accesses, static_cast<std::uint64_t>(accesses.strided));
    count(c.gathers, static_cast<std::uint64_t>(accesses.gathers));
    count(c.scalarised_accesses, static_cast<std::uint64_t>(accesses.scalarised));
    Kernel kernel = Code::as_kernel(made.code);
    kernel.numbers = std::move(made.numbers);
    return kernel;
  }

  Kernel compile_register_kernel(const LaneForm& form, bool hurry) const override {
    const std::string key = register_kernel_key(form);
    const auto emit = [=](IrBuilder& b) { emit_register_kernel(b, "loop", form); };
    return Code::as_kernel(cached_code(key, "loop", emit, hurry));
  }

  Kernel compile_matrices(const LinalgSpec& spec, int& simd_lanes, bool hurry) const override {
    simd_lanes = matrix_lanes(spec, host_target());
    if (simd_lanes == 0 || Planning::now()) return {};
    const std::string key = matrices_key(spec, simd_lanes);
    const auto emit = [=](IrBuilder& b) { emit_matrices(b, "matrices", spec); };
    return Code::as_kernel(cached_code(key, "matrices", emit, hurry));
  }

  std::shared_ptr<const ProductKernel> product(const MatmulSpec& spec, bool hurry) const override {
    return make_matmul(spec, hurry);
  }
  bool chains(const MatmulSpec& first, const MatmulSpec& second) const override {
    return cpu::chains(first, second);
  }
  std::shared_ptr<const ProductChain> chain(const MatmulSpec& first,
                                            const MatmulSpec& second) const override {
    return make_chain(first, second);
  }
  std::shared_ptr<const ProductKernel> convolution(const ConvSpec& spec) const override {
    return make_convolution(spec);
  }
  MachineCosts costs() const override { return machine_costs(); }
  void measure_costs() const override { measure_machine_costs(); }
  MachineLimits limits(bool again) const override { return cpu::machine_limits(again); }
};

}  // namespace backend

#endif

}  // namespace cpu

const Backend* cpu_backend(std::string* reason) {
  *reason = cpu::llvm_missing_reason();  // loads nothing: kernels may all come from the disk cache
  if (!reason->empty()) return nullptr;
#if VT_HAS_LLVM_HEADERS
  // what runs as the process ends may ask for it
  static const auto* const backend = new cpu::backend::CpuBackend;
  return backend;
#else
  return nullptr;
#endif
}

}  // namespace vt::detail
