// How vt runs things: the number of threads, and counters that say what was compiled, reused and run.
#pragma once

#include <cstdint>
#include <string>

#include <vt/error.hpp>

namespace vt {

/// Threads that kernels may use, the calling one included. Results do not depend on it. Default: VT_NUM_THREADS, or the
/// number of processors. Throws: Error(value) if `count` is not between 1 and 1024.
void set_num_threads(int count, Where where = Where::here());
int num_threads();

/// What happened since the process began (or since `reset_stats`), over all threads.
struct Stats {
  std::uint64_t programs = 0;             ///< Graphs fused and planned
  std::uint64_t program_hits = 0;         ///< runs that found their program in memory
  std::uint64_t kernels_compiled = 0;     ///< by LLVM, in this process
  std::uint64_t kernels_unoptimised = 0;  ///< … of these, to run unoptimised at first (also where such code came from disk)
  std::uint64_t kernels_optimised = 0;    ///< … and replaced since
  std::uint64_t kernel_memory_hits = 0;   ///< kernels that another program had compiled
  std::uint64_t kernel_disk_hits = 0;     ///< kernels loaded from the disk cache
  std::uint64_t vector_kernels = 0;       ///< compiled or loaded with a vector loop
  std::uint64_t fused_ops = 0;            ///< equations inside all compiled programs' kernels
  std::uint64_t stages = 0;               ///< loops in sequence inside kernels: softmax is one kernel of three
  std::uint64_t row_buffers = 0;          ///< intermediate rows inside such kernels that need no memory of their own
  std::uint64_t contiguous_accesses = 0;  ///< vector loads and stores of neighbours, in the kernels made
  std::uint64_t strided_accesses = 0;     ///< vector accesses with another stride
  std::uint64_t gathers = 0;              ///< vector accesses at computed indices
  std::uint64_t scalarised_accesses = 0;  ///< accesses of a vector loop done one lane at a time
  std::uint64_t parallel_reductions = 0;  ///< reductions cut into partial ones
  std::uint64_t programs_run = 0;
  std::uint64_t launches = 0;           ///< kernels run
  std::uint64_t parallel_launches = 0;  ///< … by more than one thread
  std::uint64_t matrix_products = 0;    ///< run
  std::uint64_t product_epilogues = 0;  ///< kernels that ran inside a matrix product, on its rows as they were done
  std::uint64_t interpreter_steps = 0;  ///< equations run by the interpreter
  std::uint64_t bytes = 0;              ///< read and written by launched kernels, as their shapes say
  std::uint64_t llvm_unavailable = 0;   ///< runs that fell back to the interpreter because there is no LLVM
  /// One line per counter that is not zero.
  std::string str() const;
};
Stats stats();
void reset_stats();
/// Waits until all kernels run that were compiled without optimisation at first have been replaced by optimised ones, for example before
/// something is timed. Results are the same before and after. Returns at once where nothing is left to do.
void wait_compiled();
/// Things worth telling that no exception carried: "LLVM cannot be used: …", once each; empty when there are none.
std::string warnings();

}  // namespace vt
