// Program: a Graph made ready for a device: kernels, matrix products and interpreted equations in
// order, over planned buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/executable.hpp"
#include "../../../trace/numerics/fft_kernels.hpp"
#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../fusion/buffer_plan.hpp"
#include "../../passes/pipeline.hpp"
#include "../../services/code_label.hpp"
#include "../../services/step_time.hpp"
#include "backend.hpp"
#include "control.hpp"
#include "sort_kernel.hpp"

namespace vt::detail {

namespace printer {
class Names;
}

/// From this much work on, in vector operations, waking another thread usually costs less than it
/// saves.
inline constexpr std::uint64_t least_waking_work = 131072;

/// Whether code of so many `operations`, which do so much `work` in all, is so long for how often
/// it runs that it is better run unoptimised at first: optimising an operation of long code takes
/// about 100 us, and what it spares of the operation about 6 ns each time.
inline bool is_long_for_its_work(double operations, double work) {
  return operations >= 200 && work < 2000 * operations;
}

class Program : public Executable {
 public:
  /// Fuses, plans and compiles. Throws: Error(backend).
  /// `owned`: inputs which results may overwrite; see overwritten().
  /// `most_rows`: a prime number that is an extent of axis 0 only, and of no more than one axis
  /// each: then run_rows may work on fewer rows, if by_rows().
  Program(const GraphBody& graph, const Backend& backend, const OwnedInputs& owned = {},
          std::int64_t most_rows = 0);
  bool runs_into() const override;
  void run_into(std::span<const void* const> inputs, std::span<void* const> results) override;
  std::span<const std::size_t> overwritten() const override {
    return {overwritten_.begin(), overwritten_.size()};
  }
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override { return run(inputs, {}, {}); }
  /// `into`: memory for the results, or null where there is none to put one in; what is written
  /// there is left out of the list. `own`: the inputs once more, if the caller gives its hold on
  /// carries away to loops inside: those come back null.
  Vec<BufferRef> run(std::span<const BufferRef> inputs, std::span<void* const> into,
                     std::span<BufferRef> own);

  /// Operands of the products, per step (see ProductKernel::pack).
  using Packed = Vec<PackedOperands>;
  /// Of what stays the same from run to run: constants, and inputs that are not null here.
  Packed pack(std::span<const void* const> inputs) const;
  /// What the runs of a loop's iterations have in common, made once: addresses and scratch memory.
  /// Of one thread.
  struct Frame {
    SmallVec<void*, 96> pointers;
    BufferRef arena;
    const Packed* packed = nullptr;
    std::uint64_t runs = 0, parallel = 0;
    Frame() = default;
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
  };
  /// Has no loops, branches or interpreted equations inside, which make memory of their own: it can
  /// run in a Frame.
  bool plain() const { return !makes_buffers_; }
  /// Is result i written to memory that the caller gives (rather than over an input, or another's)?
  bool writes_result(std::size_t i) const { return outputs_[i].slot_output >= 0; }
  std::size_t inputs() const { return fusion_.graph.inputs.size(); }
  std::size_t results() const { return outputs_.size(); }
  std::size_t input_bytes(std::size_t i) const {
    return fusion_.graph.aval(fusion_.graph.inputs[i]).bytes();
  }
  std::size_t result_bytes(std::size_t i) const {
    return fusion_.graph.aval(fusion_.graph.outputs[i]).bytes();
  }
  void open(Frame&) const;
  /// Plain programs only. `results`: memory for those that writes_result; afterwards where each
  /// lies.
  void run(Frame&, std::span<const void* const> inputs, std::span<void*> results) const;
  /// Can every step work on some of the rows?
  bool by_rows() const { return by_rows_; }
  /// The same as run, for the first `rows` rows of all arrays that have most_rows.
  void run_rows(Frame&, std::span<const void* const> inputs, std::span<void*> results,
                std::int64_t rows) const;
  /// In the counters: what ran in the frame.
  void count_runs(const Frame& frame) const { count_runs(frame.runs, frame.parallel); }
  void report(Report&, int depth) const override;
  Memory memory() const override;
  /// How a run gets its memory.
  struct RunMemory {
    /// it takes memory for so many of the first results; that of the others is given
    std::size_t own_results = ~std::size_t{0};
    bool frame = false;                       ///< in a Frame with packed operands: constants and …
    std::size_t same_from = ~std::size_t{0};  ///< … the inputs from here on
    bool gives_carries = false;               ///< loops inside may have the carries' memory
  };
  /// What a run takes at most beside its inputs.
  std::uint64_t run_bytes(const RunMemory&) const;
  /// What pack() takes if these inputs are given.
  std::uint64_t packed_bytes(std::size_t same_from) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t {
      kernel,
      product,
      sort,
      linalg,
      fft,
      rows,  // a loop or branch that runs each row by itself
      control,
      equation
    } kind = Kind::kernel;
    bool parallel = false;               // on several threads, if one is awake
    bool wakes = false;                  // work enough to wake one
    SmallVec<std::int32_t, 8> slots;     // the kernel's buffers
    SmallVec<std::int32_t, 3> operands;  // product: a, b, c; sort, linalg: operands, then results
    Vec<std::int64_t> arguments;
    std::int64_t iterations = 0, grain = 1;  // of the parallel loop
    int ranges = 4;                          // for each thread
    // product: rows of the result in an iteration of the kernel that runs on them
    std::int64_t row_group = 1, row_bytes = 0;
    bool rows_alone = false;  // … which alone reads them
    Kernel kernel;
    std::shared_ptr<const ProductKernel> product;
    // instead of it: with the operands of the second product behind its own
    std::shared_ptr<const ProductChain> chain;
    std::shared_ptr<const ControlRunner> control;
    SortSpec sort;
    FftSpec fft;
    LinalgSpec linalg;
    int lanes = 0;         // matrices that `kernel` works on side by side
    int equation = -1;     // a product, a sort, matrices or an interpreted equation
    int then = -1;         // a chain's second product
    Vec<Var> released;     // produced buffers that end here
    Vec<Var> handed_over;  // what ends here as one operand only, which may be written over
    std::uint64_t bytes = 0, work = 0;
    // a kernel's nanoseconds on one thread, as the cost model has it
    double alone = 0;
    // a plain copy, which is not run where the two are the same memory
    Var copied_from = -1, copied_to = -1;
    std::string nest_text;      // nest and schedule
    std::string name, details;  // in timelines, where one is wanted
    Vec<int> fused;
    bool partial = false;
    /// What there is for each of the program's rows: iterations of a kernel or its arguments, rows
    /// of a product, of a sort, transforms, matrices. 0: the step does not depend on rows.
    std::int64_t of_row = 0;
    SmallVec<std::pair<int, std::int64_t>, 2> row_arguments;
    /// The next step, whose iterations follow on so many of this one's each.
    const Step* pair = nullptr;
    std::int64_t pair_rows = 0;
    bool is_paired = false;  ///< it runs with the step before
    mutable StepTime time;

    /// Does `kernel` run on the rows of `equation`, rather than being the step itself?
    bool has_epilogue() const {
      return kernel && kind != Kind::kernel && kind != Kind::linalg && kind != Kind::rows;
    }
  };
  void compile_steps(const Backend& backend);
  /// Two products and the kernel between them.
  void make_chain(Step& step, const FusedStep& fused, const Backend& backend,
                  Vec<Function<void()>>& makes) const;
  /// Steps k and k + 1, if their memory allows it.
  void pair(std::size_t k);
  void prepare_sort(Step& step, const Equation& e) const;
  void prepare_linalg(Step& step, const Equation& e, const Backend& backend, bool hurry) const;
  /// Of `batch` matrices.
  static void run_matrices(const Step& step, void* const* pointers, std::int64_t batch);
  /// What of each step there is for a row; false: not all of it can be cut by rows.
  bool cut_by_rows();
  bool cut_kernel_by_rows(Step& step, const FusedStep& fused, bool all_rows_first) const;
  Vec<bool> rows_first() const;
  Vec<bool> led_by_rows() const;
  static void run_rows_alone(const Step& step, void* const* pointers, std::int64_t rows);
  static void run_step_rows(const Step& step, void* const* pointers, const PackedOperands& packed,
                            std::int64_t rows);
  /// Where inputs and results lie, and all that is placed relative to them.
  void bind(Frame&, std::span<const void* const> inputs, std::span<void*> results) const;
  void prepare_kernel(Step& step, const FusedStep& fused) const;
  /// Whether waking threads pays.
  void share(Step& step) const;
  static void run_transform(const Step& step, const FftSpec& spec, void* const* pointers);
  [[noreturn]] void fail_in(const Step& step, const Error& error) const;
  void place_in(void** pointers, void* arena) const;
  /// A step of plain programs; true: on several threads.
  static bool run_step(const Step& step, void* const* pointers, const PackedOperands& packed);
  void count_runs(std::uint64_t runs, std::uint64_t parallel) const;
  /// `elsewhere`: where arrays would begin of which only some rows are in memory.
  struct Elsewhere {
    Var var;
    void* begin;
  };
  /// `arguments`: in place of the step's own.
  static void run_kernel(const Step& step, void* const* pointers, std::int64_t begin,
                         std::int64_t end, std::span<const Elsewhere> elsewhere = {},
                         const std::int64_t* arguments = nullptr);
  static void run_product(const Step& step, void* const* pointers, const PackedOperands& packed,
                          std::int64_t rows, const std::int64_t* arguments);
  static void run_chain(const Step& step, void* const* pointers);
  static bool run_pair(const Step& step, void* const* pointers);
  std::string kernel_text(const Step& step) const;
  std::string operations_of(const Step& step) const;
  std::string decisions_of(const Step& step) const;
  std::string bindings_of(const Step& step, const printer::Names& names) const;
  std::string step_name(const Step& step) const;
  Vec<CallSite> lines_of(const Step& step) const;
  /// Of one line: without what only gives shapes.
  std::string short_operations_of(const Step& step) const;
  /// Whose line is shown, of the kernel or of the step's equation: what a kernel stores comes from
  /// its last equation. Null: of nothing.
  const Equation* shown_equation(const Step& step, bool kernel) const;
  void name_steps();
  /// Of the kernel, or of the equation.
  CodeLabel label_of(const Step& step, bool kernel) const;
  Vec<Var> buffers_of(std::size_t step) const;
  struct Lives {
    Vec<int> from, until;  // per Var: steps; results live until behind the last
  };
  Lives lives() const;
  /// Per step: bytes that this one and steps before have made for their results.
  Vec<std::uint64_t> made_by_steps() const;
  bool stays(Var v, std::size_t same_from) const;
  /// What a step takes beside what it reads and its results; less than nothing where results take
  /// operands' memory.
  std::int64_t scratch_of(std::size_t step, const RunMemory& use) const;
  void run_equation(const Step& step, void** pointers, Vec<BufferRef>& produced,
                    std::span<const BufferRef> inputs, std::span<BufferRef> own) const;

  const int vector_bytes_;
  const MachineCosts costs_;  // those that this program was scheduled by
  Fusion fusion_;
  Vec<PassNote> passes_;  ///< for explain
  BufferPlan plan_;
  Vec<Step> steps_;
  // What run() needs, in flat lists.
  struct Output {
    Var var;          // its storage
    int slot_output;  // ≥ 0: a fresh buffer of that number; −1: somebody else's
  };
  Vec<Output> outputs_;
  Vec<void*> fixed_;  // per Var: constants' addresses
  struct Placed {
    Var var;
    int output;  // −1: arena
    std::size_t offset;
  };
  Vec<Placed> placed_;
  // results and the inputs that they are written over
  Vec<std::pair<Var, std::size_t>> over_inputs_;
  Vec<std::size_t> overwritten_;
  const std::int64_t most_rows_;
  bool by_rows_ = false;
  const bool planned_;          // while Planning: it cannot run
  bool makes_buffers_ = false;  // has equations that are loops or interpreted
  std::uint64_t launches_ = 0, loops_ = 0, regions_ = 0, products_ = 0, epilogues_ = 0, chains_ = 0,
                bytes_ = 0, interpreted_ = 0;
};

/// What the interpreter takes for a Graph: each value lives from the equation that makes it to the
/// last that reads it.
Memory interpreted_memory(const GraphBody&);

}  // namespace vt::detail
