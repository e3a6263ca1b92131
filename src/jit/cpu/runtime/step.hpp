// Step: what a program of the host does at once, and what a step knows of its program. steps.hpp
// has the kinds.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/executable.hpp"
#include "../../fusion/buffer_plan.hpp"
#include "../../services/code_label.hpp"
#include "../../services/step_time.hpp"
#include "../../services/threads.hpp"

namespace vt::detail {

namespace printer {
class Names;
}
class ProgramRows;

/// From this much work on, in vector operations, waking another thread usually costs less than it
/// saves.
inline constexpr std::uint64_t least_waking_work = 131072;

/// Whether code of so many `operations`, which do so much `work` in all, is so long for how often
/// it runs that it is better run unoptimised at first: optimising an operation of long code takes
/// about 100 us, and what it spares of the operation about 6 ns each time.
inline bool is_long_for_its_work(double operations, double work) {
  return operations >= 200 && work < 2000 * operations;
}

/// A program before it is compiled: its steps, and where values lie.
struct ProgramPlan {
  MachineCosts costs;  ///< those that it was scheduled by
  std::int64_t most_rows = 0;
  bool only = false;  ///< while Planning: nothing is compiled, and it cannot run
  Fusion fusion;
  BufferPlan buffers;

  const BufferPlan::Slot& slot(Var v) const { return buffers.slots[v]; }
  /// Does it hold the same in every run of a Frame? `same_from`: inputs from there on do.
  bool stays(Var v, std::size_t same_from) const;
};

/// A run of a program, as its steps see it.
struct ProgramRun {
  void** pointers;                              ///< per Var
  std::int64_t rows = -1;                       ///< of all arrays that have most_rows; −1: all
  const Vec<PackedOperands>* packed = nullptr;  ///< per step
  // for steps that make buffers
  std::span<const BufferRef> inputs = {};
  std::span<BufferRef> own = {};  ///< the inputs once more, if loops may have the carries
  Vec<BufferRef> produced = {};   ///< per Var
};

/// How a run gets its memory.
struct RunMemory {
  /// it takes memory for so many of the first results; that of the others is given
  std::size_t own_results = ~std::size_t{0};
  bool frame = false;                       ///< in a Frame with packed operands: constants and …
  std::size_t same_from = ~std::size_t{0};  ///< … the inputs from here on
  bool gives_carries = false;               ///< loops inside may have the carries' memory
};

/// What a run adds to the counters.
struct StepCounts {
  std::uint64_t kernels = 0, products = 0, epilogues = 0, chains = 0, loops = 0, regions = 0,
                interpreted = 0, bytes = 0;
  void add(const StepCounts&);
};

/// What there is to compile. Jobs do not depend on each other; the `first` take longest.
struct CompileJobs {
  bool hurry;  ///< code may run unoptimised at first
  Vec<Function<void()>> first, then;
};

/// How threads share a step's work.
struct StepThreads {
  StepThreads() = default;
  /// `alone`: nanoseconds on one thread, as the cost model has it.
  StepThreads(double alone, const MachineCosts& costs);
  bool share_now() const { return parallel && thread_count() > 1 && (wakes || others_ready()); }

  double alone = 0;
  bool parallel = false;  ///< on several threads, if one is awake
  bool wakes = false;     ///< work enough to wake one
};

/// Made when a Graph is fused; then buffers are planned, and then it is compiled.
class Step {
 public:
  /// `how`: what runs it, for explain.
  Step(const ProgramPlan& plan, std::size_t number, const char* how);
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// Of its own, rather than where the plan says? Then it cannot run in a Frame.
  virtual bool makes_buffers() const { return false; }
  /// About how many vector operations its code does in a run.
  virtual std::uint64_t vector_work() const { return 0; }
  /// Has it run in turns with the next one, if their memory allows it: FusedStep::pair_rows.
  virtual void pair_with(Step& /*next*/) {}
  /// Throws: Error(backend).
  virtual void compile(CompileJobs&) {}
  /// What another thread was making when it was asked for.
  virtual void finish_code(bool /*hurry*/) {}
  /// Can it work on some of the rows?
  virtual bool cut_by_rows(const ProgramRows&) { return false; }

  /// True: on several threads.
  virtual bool run(ProgramRun&) const = 0;
  /// Does it run with the step before?
  bool is_paired() const { return is_paired_; }
  /// What every run would do again to operands that stay; `place`: where they lie, or null.
  virtual PackedOperands pack(FunctionRef<const void*(Var)> /*place*/) const { return {}; }
  /// What that takes.
  virtual std::uint64_t packed_bytes(std::size_t /*same_from*/) const { return 0; }
  /// What a run takes beside what it reads and its results; less than nothing where results take
  /// operands' memory.
  virtual std::int64_t scratch(const RunMemory&) const { return 0; }

  /// For explain: itself, then what is inside.
  ReportStep report(const printer::Names&) const;
  virtual void report_bodies(Report&, int /*depth*/) const {}
  /// For timelines.
  void take_name();
  const std::string& name() const { return name_; }
  const std::string& details() const { return details_; }
  /// The user's, none twice.
  Vec<CallSite> lines() const;
  /// Whose line is shown; null: of nothing.
  virtual const Equation* shown() const { return &equation(); }
  const StepCounts& counts() const { return counts_; }
  /// What it reads and writes, by storage.
  Vec<Var> buffers() const;
  StepTime& time() const { return time_; }

 protected:
  const GraphBody& graph() const { return plan_.fusion.graph; }
  const Equation& equation() const { return graph().equations[fused_.equation]; }
  Var storage(Var v) const { return plan_.fusion.storage[v]; }
  std::uint64_t bytes_of(Var v) const { return graph().aval(v).bytes(); }
  /// `all` iterations, or those of the run's rows.
  std::int64_t count_of(const ProgramRun& run, std::int64_t all) const {
    return run.rows >= 0 && of_row_ > 0 ? run.rows * of_row_ : all;
  }
  /// Of code for the equation.
  CodeLabel label() const;
  /// "exp mul"
  virtual std::string operations() const { return std::string(name_of(equation().op)); }
  /// For explain, in a line.
  virtual std::string title() const { return how_ + ": " + equation_text(); }
  /// The equation, and how many bytes.
  std::string equation_text() const;
  /// The loop nest and its schedule.
  virtual std::string nest_text() const { return {}; }
  /// … and what they are for this step.
  virtual std::string nest_details(const printer::Names&) const { return {}; }

  const ProgramPlan& plan_;
  const FusedStep& fused_;
  const std::size_t number_;
  const std::string how_;
  StepCounts counts_;
  std::uint64_t work_ = 0;  ///< of a run
  /// What there is for each of the program's rows: iterations of a kernel, rows of a product, of a
  /// sort, transforms, matrices. 0: the step does not depend on rows.
  std::int64_t of_row_ = 0;
  bool is_paired_ = false;

 private:
  std::string name_, details_;
  mutable StepTime time_;
};

/// A step whose results lie in buffers of their own.
class BufferStep : public Step {
 public:
  using Step::Step;
  bool makes_buffers() const override { return true; }
  bool run(ProgramRun&) const override;

 protected:
  /// They own their memory, or are operands. Operands that nobody else holds may be written over.
  virtual Vec<BufferRef> results(Vec<BufferRef> operands) const = 0;
  /// Does v end here, as one operand only? Then its memory may be written over.
  bool is_handed_over(Var v) const;

 private:
  Vec<BufferRef> taken(ProgramRun&) const;
  void keep(Vec<BufferRef> made, ProgramRun&) const;
};

}  // namespace vt::detail
