// Which step runs what (below), and the steps that are one equation: sorts, transforms, matrices,
// loops, and what the interpreter runs.
#include "steps.hpp"

#include <algorithm>
#include <cstring>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../../../trace/numerics/fft_kernels.hpp"
#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../../trace/processes/collective.hpp"
#include "../../../trace/record/node.hpp"
#include "../../fusion/sort_spec.hpp"
#include "../sort/sort_kernel.hpp"
#include "compiler.hpp"
#include "control.hpp"
#include "program_rows.hpp"

namespace vt::detail {

// --- operands and results where the plan says ----------------------------------------------------

class PlacedStep : public Step {
 public:
  /// `batch`: it does the same so many times.
  PlacedStep(const ProgramPlan& plan, std::size_t number, const char* how, std::int64_t batch)
      : Step(plan, number, how), batch_(batch) {}
  // Many at a time are counted along memory. There may be rows that the step knows nothing of, as
  // columns of the right sides of a system.
  bool cut_by_rows(const ProgramRows& rows) override {
    of_row_ = rows.of_row(batch_);
    if (of_row_ == 0) return none_of(buffers_, [&](Var v) { return rows.has_rows(v); });
    return batch_ == rows.most() || all_of(buffers_, [&](Var v) { return rows.come_first(v); });
  }

 protected:
  using Places = SmallVec<void*, 8>;
  /// Of operands, then results.
  Places places_in(const ProgramRun& run) const {
    Places places;
    for (Var v : buffers_) places.push_back(run.pointers[v]);
    return places;
  }
  std::int64_t batch_in(const ProgramRun& run) const { return count_of(run, batch_); }

  const Vec<Var> buffers_ = buffers();
  const std::int64_t batch_;
};

class SortStep : public PlacedStep {
 public:
  SortStep(const ProgramPlan& plan, std::size_t number, const SortSpec& spec)
      : PlacedStep(plan, number, "sort", spec.outer), spec_(spec) {}
  bool cut_by_rows(const ProgramRows& rows) override {
    return !rows.are_in(spec_.length) && !rows.are_in(spec_.inner) && PlacedStep::cut_by_rows(rows);
  }
  bool run(ProgramRun& run) const override {
    const Places places = places_in(run);
    SortSpec some = spec_;
    some.outer = batch_in(run);
    sort_rows(some, places.data(), places.data() + places.size() / 2);
    return false;
  }
  std::int64_t scratch(const RunMemory&) const override {
    SmallVec<char, 4> wanted;
    for (std::size_t i = buffers_.size() / 2; i < buffers_.size(); ++i)
      wanted.push_back(plan_.slot(buffers_[i]).kind != BufferPlan::Slot::Kind::unused);
    return static_cast<std::int64_t>(sort_scratch_bytes(spec_, wanted));
  }

 private:
  std::string title() const override {
    return "sort of " + describe(spec_) + ", " + equation_text();
  }

  const SortSpec spec_;
};

class TransformStep : public PlacedStep {
 public:
  TransformStep(const ProgramPlan& plan, std::size_t number, const FftSpec& spec)
      : PlacedStep(plan, number, "transform", spec.batch), spec_(spec) {
    work_ = static_cast<std::uint64_t>(spec.operations());
    threads_ = StepThreads(plan.costs.nanoseconds(work_, 0), plan.costs);
  }
  bool run(ProgramRun& run) const override {
    const FftRanges alone = [](std::int64_t total, RangeBody body, void* context) {
      body(context, 0, total);
    };
    const FftRanges shared = [](std::int64_t total, RangeBody body, void* context) {
      parallel_ranges(total, 1, body, context);
    };
    FftSpec some = spec_;
    some.batch = batch_in(run);
    run_fft(some, run.pointers[buffers_[0]], run.pointers[buffers_[1]],
            threads_.share_now() ? shared : alone);
    return false;
  }
  std::int64_t scratch(const RunMemory&) const override {
    const std::int64_t threads = threads_.parallel ? thread_count() : 1;
    return static_cast<std::int64_t>(fft_scratch_bytes(spec_, threads));
  }

 private:
  const FftSpec spec_;
  StepThreads threads_;
};

class MatrixStep : public PlacedStep {
 public:
  MatrixStep(const ProgramPlan& plan, std::size_t number, const LinalgSpec& spec)
      : PlacedStep(plan, number, "matrices", spec.batch), spec_(spec) {
    for (Var v : buffers_) each_.push_back(bytes_of(v) / std::max<std::int64_t>(batch_, 1));
  }

  std::uint64_t vector_work() const override {
    return static_cast<std::uint64_t>(spec_.operations() * batch_) /
           (cpu::vector_bytes() / size_of(spec_.dtype));
  }

  void compile(CompileJobs& jobs) override {
    jobs.first.push_back([this, hurry = jobs.hurry] {
      constexpr std::int64_t worth_a_range = 4096;
      const CodeLabelScope scope(label());
      kernel_ = cpu::compile_matrices(spec_, side_by_side_, hurry);
      const std::int64_t block = std::max(side_by_side_, 1),
                         each = std::max<std::int64_t>(spec_.operations() / block, 1);
      work_ = static_cast<std::uint64_t>(each * batch_);
      grain_ = (std::max<std::int64_t>(worth_a_range / each, 1) + block - 1) / block * block;
      threads_ = StepThreads(plan_.costs.nanoseconds(work_, 0), plan_.costs);
    });
  }

  bool run(ProgramRun& run) const override {
    const Places places = places_in(run);
    const std::int64_t batch = batch_in(run), whole = whole_blocks(batch);
    const auto matrices = [&](std::int64_t begin, std::int64_t end) {
      if (kernel_) run_code(places.data(), begin, end);
      else run_linalg(spec_, places.data(), places.data() + spec_.operands(), begin, end);
    };
    if (threads_.share_now()) parallel_ranges(whole, grain_, matrices);
    else matrices(0, whole);
    if (whole < batch) run_rest(places, whole, batch - whole);
    return false;
  }

  std::int64_t scratch(const RunMemory&) const override {
    const std::int64_t whole = whole_blocks(batch_);
    if (side_by_side_ == 0)
      return static_cast<std::int64_t>(spec_.scratch_bytes()) *
             (threads_.parallel ? threads_for(whole, grain_) : 1);
    return whole < batch_ ? static_cast<std::int64_t>(block_bytes()) : 0;
  }

 private:
  std::string title() const override {
    return side_by_side_ > 1
               ? formatted("matrices, {} side by side: {}", side_by_side_, equation_text())
               : Step::title();
  }
  std::int64_t whole_blocks(std::int64_t batch) const {
    const std::int64_t block = std::max(side_by_side_, 1);
    return batch / block * block;
  }
  std::size_t block_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t each : each_) bytes += each * side_by_side_;
    return bytes;
  }

  // The code leaves out matrices that are near overflow or underflow or not finite.
  void run_code(void* const* places, std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t together = 4096;
    bool left_out[together];
    Places with(places, places + buffers_.size());
    with.push_back(left_out);
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t count = std::min(together, end - first);
      std::memset(left_out, 0, count);
      kernel_(with.data(), nullptr, first, first + count);
      const auto next = [&](const bool* at) {
        return static_cast<const bool*>(
            std::memchr(at, 1, static_cast<std::size_t>(left_out + count - at)));
      };
      for (const bool* at = next(left_out); at; at = next(at + 1))
        run_linalg(spec_, places, places + spec_.operands(), first + (at - left_out),
                   first + (at - left_out) + 1);
    }
  }

  // What is left of a batch over whole blocks is copied into a block of its own, and filled up with
  // copies of its last matrix.
  void run_rest(const Places& places, std::int64_t whole, std::int64_t left) const {
    const BufferRef rest = allocate(block_bytes(), "matrices beyond whole blocks");
    Places own;
    char* at = static_cast<char*>(rest->data);
    const auto matrix = [&](std::size_t i, std::int64_t k) {
      return static_cast<char*>(places[i]) + static_cast<std::size_t>(k) * each_[i];
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
      own.push_back(at);
      for (std::int64_t l = 0; i < spec_.operands() && l < side_by_side_; ++l)
        std::memcpy(at + static_cast<std::size_t>(l) * each_[i],
                    matrix(i, whole + std::min(l, left - 1)), each_[i]);
      at += each_[i] * side_by_side_;
    }
    run_code(own.data(), 0, side_by_side_);
    for (std::size_t i = spec_.operands(); i < places.size(); ++i)
      std::memcpy(matrix(i, whole), own[i], static_cast<std::size_t>(left) * each_[i]);
  }

  const LinalgSpec spec_;
  Kernel kernel_;
  int side_by_side_ = 0;           ///< matrices that it works on at a time
  SmallVec<std::size_t, 4> each_;  ///< bytes of a matrix, per operand and result
  StepThreads threads_;
  std::int64_t grain_ = 1;
};

class CollectiveStep : public PlacedStep {
 public:
  CollectiveStep(const ProgramPlan& plan, std::size_t number)
      : PlacedStep(plan, number, how(plan.fusion.steps[number].part), 1) {}
  bool run(ProgramRun& run) const override {
    const Places places = places_in(run);
    const void* const given = places.size() > 1 ? places[0] : nullptr;
    switch (fused_.part) {
      case Part::whole: run_collective(equation(), graph(), given, places.back()); break;
      case Part::begin: begin_collective(equation(), graph(), given, places.back()); break;
      case Part::finish: finish_collective(equation(), graph(), places.back()); break;
    }
    return false;
  }

 private:
  using Part = FusedStep::Part;
  static const char* how(Part part) {
    return part == Part::begin    ? "processes, begun"
           : part == Part::finish ? "processes, waited for"
                                  : "processes";
  }
};

class InterpretedStep : public BufferStep {
 public:
  InterpretedStep(const ProgramPlan& plan, std::size_t number, bool unset)
      : BufferStep(plan, number, unset ? "memory for what a loop keeps" : "interpreter") {
    counts_.interpreted = !unset;
  }

 private:
  Vec<BufferRef> results(Vec<BufferRef> operands) const override {
    Vec<BufferRef> made;
    if (is_unset(equation()))
      made.push_back(allocate(bytes_of(equation().outputs[0]), "what a loop keeps"));
    else
      for (BufferRef& b : interpret_equation(equation(), graph(), operands))
        made.push_back(std::move(b));
    return made;
  }
};

// --- which is which ------------------------------------------------------------------------------

StepPointer make_step(const ProgramPlan& plan, std::size_t number) {
  const FusedStep& fused = plan.fusion.steps[number];
  if (fused.equation < 0) return kernel_step(plan, number);
  if (fused.then >= 0) return chain_step(plan, number);
  const MatmulSpec* p = fused.product.get();
  if ((p && p->batch * p->m * p->n * p->k != 0) ||
      (fused.convolution && fused.convolution->multiply_adds() != 0))
    return product_step(plan, number);
  const GraphBody& g = plan.fusion.graph;
  const Equation& e = g.equations[fused.equation];
  if (is_collective(e.op)) return std::make_unique<CollectiveStep>(plan, number);
  if (e.op == Op::sort) return std::make_unique<SortStep>(plan, number, sort_spec(plan.fusion, e));
  if (e.op == Op::fft)
    return std::make_unique<TransformStep>(plan, number,
                                           fft_spec(e.as<FftParams>(), g.aval(e.inputs[0])));
  if (family_of(e.op) == Family::linalg)
    return std::make_unique<MatrixStep>(plan, number, linalg_spec(g, e));
  if (may_be_register_kernel(e.op) || e.op == Op::recursive_call || e.op == Op::batched_call)
    return std::make_unique<ControlStep>(plan, number, e.op == Op::fused_region);
  return std::make_unique<InterpretedStep>(plan, number, is_unset(e));
}

}  // namespace vt::detail
