// The CPU's compiler: nests, register kernels and matrices through their emitters and the code
// cache.
#include "runtime/compiler.hpp"

#include "../services/counters.hpp"
#include "../services/planning.hpp"
#include "emit/matrices.hpp"
#include "emit/nest.hpp"
#include "emit/register_kernel.hpp"
#include "llvm/code_cache.hpp"

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

int vector_bytes() { return host_target().vector_bytes; }
std::string target_key() { return host_target().key() + "|" + make_target(Isa::host).key(); }

Kernel compile_nest(const Nest& nest, const Schedule& schedule, bool hurry, bool wait) {
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

Kernel compile_register_kernel(const LaneForm& form, bool hurry) {
  const std::string key = register_kernel_key(form);
  const auto emit = [=](IrBuilder& b) { emit_register_kernel(b, "loop", form); };
  return Code::as_kernel(cached_code(key, "loop", emit, hurry));
}

Kernel compile_matrices(const LinalgSpec& spec, int& simd_lanes, bool hurry) {
  simd_lanes = matrix_lanes(spec, host_target());
  if (simd_lanes == 0 || Planning::now()) return {};
  const std::string key = matrices_key(spec, simd_lanes);
  const auto emit = [=](IrBuilder& b) { emit_matrices(b, "matrices", spec); };
  return Code::as_kernel(cached_code(key, "matrices", emit, hurry));
}

#else

// Without LLVM's headers llvm_missing_reason() is not empty.
int vector_bytes() { return 0; }
std::string target_key() { return {}; }
Kernel compile_nest(const Nest&, const Schedule&, bool, bool) { return {}; }
Kernel compile_register_kernel(const LaneForm&, bool) { return {}; }
Kernel compile_matrices(const LinalgSpec&, int&, bool) { return {}; }
MachineCosts machine_costs() { return {}; }
void measure_machine_costs() {}
MachineLimits machine_limits(bool) { return {}; }

#endif

}  // namespace vt::detail::cpu
