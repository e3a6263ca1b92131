// Counters behind vt::stats().
#pragma once

#include <atomic>
#include <cstdint>

namespace vt::detail {

struct Counters {
  std::atomic<std::uint64_t> programs{0}, program_hits{0}, kernels_compiled{0},
      kernels_unoptimised{0}, kernels_optimised{0}, kernel_memory_hits{0}, kernel_disk_hits{0},
      vector_kernels{0}, fused_ops{0}, stages{0}, row_buffers{0}, contiguous_accesses{0},
      strided_accesses{0}, gathers{0}, scalarised_accesses{0}, parallel_reductions{0},
      programs_run{0}, launches{0}, parallel_launches{0}, matrix_products{0}, product_epilogues{0},
      product_chains{0}, interpreter_steps{0}, host_steps{0}, graph_launches{0}, bytes{0},
      llvm_unavailable{0};
};
/// Of this thread, which alone adds to them: calls of small programs count more than they compute.
/// vt::stats() tells the sums.
Counters& counters();

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace vt::detail
