// How vt runs things: the number of threads, and counters of what was compiled, reused and run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <vt/dtype.hpp>
#include <vt/error.hpp>
#include <vt/param.hpp>

namespace vt {

/// Threads that kernels may use, the calling one included. Results do not depend on it. Default:
/// VT_NUM_THREADS, or the number of processors. At most four for each processor are used, or 16 if
/// that is more; `warnings()` tells of a count that was cut. Throws: Error(value) if `count` is not
/// between 1 and 1024.
void set_num_threads(Param<int> count, CallSite where = CallSite::here());
/// How many there are.
[[nodiscard]] int num_threads();

/// While one lives, what this thread records, or runs at once, is compiled as if no number in it
/// were infinite or NaN: elements that are known to be 0 when code is made (literals, captured
/// arrays of a jitted function, zeros of derivatives) vanish from sums and products, as in
/// expressions written out by hand. Where a number is infinite or NaN after all, results are
/// unspecified: one may be finite that is not, or the other way round, and zeros may have either
/// sign. JitOptions::assume_finite does it for one function. They nest: the innermost counts.
class AssumeFinite {
 public:
  explicit AssumeFinite(bool assumed = true);
  ~AssumeFinite();
  AssumeFinite(const AssumeFinite&) = delete;
  AssumeFinite& operator=(const AssumeFinite&) = delete;

 private:
  bool before_;
};

/// While one lives, `default_dtype()` of this thread is f32 or f64: the dtype of zeros, ones, eye,
/// linspace, arange of floats, one_hot, draws, lists and files that say none, and of integers and
/// bools where a function gives floats (mean of an integer Tensor, an integer Tensor times 0.5).
/// Data keeps its dtype, and so do numbers that meet it. It is part of a jitted function's
/// signature. They nest: the innermost counts. Throws: Error(dtype) for other dtypes.
class DefaultDType {
 public:
  [[nodiscard]] explicit DefaultDType(DType dtype, CallSite where = CallSite::here());
  ~DefaultDType();
  DefaultDType(const DefaultDType&) = delete;
  DefaultDType& operator=(const DefaultDType&) = delete;

 private:
  DType before_;
};

/// Options of DebugNans.
struct DebugNansOptions {
  bool infinities = false;  ///< they are looked for as NaN is
};
/// While one lives, a NaN that is looked at on this thread (by item, to_vector, data, if, as_eigen,
/// …) is an error that tells where it came from: the op that made it of operands without one, its
/// operands there and the user's line, the iteration and the lane, or the argument that brought it.
/// The program itself looks at what a predicate compares (of cond, while_loop, check, or a bool
/// that C++ asks for) and at what a print or a callback gets, which is told when it has run. A NaN
/// that nobody looks at (`where(x > 0, log(x), 0)`) is silent, and so is asking for it (isnan,
/// isfinite, x != x). What gave a NaN is run again from what it read, on the interpreter, and
/// nothing with effects. For that its inputs are kept, also those that are donated.
/// `VT_DEBUG_NANS=1` does it for all threads from the beginning. They nest: the innermost counts.
class DebugNans {
 public:
  explicit DebugNans(DebugNansOptions options = {});
  ~DebugNans();
  DebugNans(const DebugNans&) = delete;
  DebugNans& operator=(const DebugNans&) = delete;

 private:
  bool was_on_, had_infinities_;
};

/// What happened since the process began (or since `reset_stats`), over all threads.
struct Stats {
  std::uint64_t programs = 0;          ///< Graphs fused and planned
  std::uint64_t program_hits = 0;      ///< runs that found their program in memory
  std::uint64_t kernels_compiled = 0;  ///< by LLVM, in this process
  /// … of these, to run unoptimised at first (also where such code came from disk)
  std::uint64_t kernels_unoptimised = 0;
  std::uint64_t kernels_optimised = 0;  ///< … and replaced since
  /// kernels whose code was there, made for another program or for arrays of other sizes
  std::uint64_t kernel_memory_hits = 0;
  std::uint64_t kernel_disk_hits = 0;  ///< kernels loaded from the disk cache
  std::uint64_t vector_kernels = 0;    ///< compiled or loaded with a vector loop
  std::uint64_t fused_ops = 0;         ///< equations inside all compiled programs' kernels
  /// loops in sequence inside kernels: softmax is one kernel of three
  std::uint64_t stages = 0;
  /// intermediate rows inside such kernels that need no memory of their own
  std::uint64_t row_buffers = 0;
  /// vector loads and stores of neighbours, in the kernels made
  std::uint64_t contiguous_accesses = 0;
  std::uint64_t strided_accesses = 0;     ///< vector accesses with another stride
  std::uint64_t gathers = 0;              ///< vector accesses at computed indices
  std::uint64_t scalarised_accesses = 0;  ///< accesses of a vector loop done one element at a time
  std::uint64_t parallel_reductions = 0;  ///< reductions cut into partial ones
  std::uint64_t programs_run = 0;
  std::uint64_t launches = 0;           ///< kernels run
  std::uint64_t parallel_launches = 0;  ///< … by more than one thread
  std::uint64_t matrix_products = 0;    ///< run
  /// kernels that ran inside a matrix product, on its rows as they were done
  std::uint64_t product_epilogues = 0;
  /// … whose rows another product took at once, as in attention: what lies between is not in memory
  /// as a whole
  std::uint64_t product_chains = 0;
  std::uint64_t interpreter_steps = 0;  ///< equations run by the interpreter
  /// equations of a CUDA device's programs run by the host, with copies there and back
  std::uint64_t host_steps = 0;
  /// runs of programs on a CUDA device by one launch of a CUDA graph
  std::uint64_t graph_launches = 0;
  /// read and written by launched kernels, as their shapes say
  std::uint64_t bytes = 0;
  /// runs that fell back to the interpreter because there is no LLVM
  std::uint64_t llvm_unavailable = 0;
  /// One line per counter that is not zero.
  std::string str() const;
};
/// The memory that a compiled program needs: see `jit(f).memory(…)`. All in bytes.
struct Memory {
  std::uint64_t inputs = 0;     ///< arguments and what the function captured: they are there before
  std::uint64_t constants = 0;  ///< kept with the program
  /// fresh memory for results; one that is an argument, or shares another's memory, needs none
  std::uint64_t results = 0;
  /// at most, while it runs; loops and branches count by what their bodies need
  std::uint64_t scratch = 0;
  std::uint64_t peak() const { return inputs + constants + results + scratch; }
  struct Value {
    std::string what;  ///< op, dtype and shape
    /// input, constant, result, scratch, within a result, or own: memory that its step makes
    std::string place;
    std::uint64_t bytes = 0;
    /// the steps that write it first and read it last, as numbered by vt::explain
    int from = 0, until = 0;
    CallSite where;  ///< the user's line
  };
  /// What lies in memory at some time, the largest first. What is only in registers is left out.
  std::vector<Value> values;
  /// The sums, and a line for each of the largest values.
  std::string str() const;
};
/// The counters now.
[[nodiscard]] Stats stats();
std::ostream& operator<<(std::ostream&, const Stats&);  ///< its str()
namespace detail {
std::string text_of(const Stats&);
}
/// Sets all counters to 0.
void reset_stats();
/// Waits until all kernels run that were compiled without optimisation at first have been replaced
/// by optimised ones, for example before something is timed. Results are the same before and after.
/// Waits as well until the machine's costs have been measured, which the first processes on a
/// machine do in some tenths of a second. Returns at once where nothing is left to do.
void wait_compiled();
/// Things worth telling that no exception carried: "LLVM cannot be used: …", once each; empty when
/// there are none.
[[nodiscard]] std::string warnings();

}  // namespace vt
