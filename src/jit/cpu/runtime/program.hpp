// Program: a Graph made ready for the host: steps in order, over planned buffers.
#pragma once

#include <cstdint>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/executable.hpp"
#include "../../passes/pipeline.hpp"
#include "compiler.hpp"
#include "step.hpp"

namespace vt::detail {

class Program : public Executable {
 public:
  /// Fuses, plans and compiles. Throws: Error(backend).
  /// `owned`: inputs which results may overwrite; see overwritten().
  /// `most_rows`: a prime number that is an extent of axis 0 only, and of no more than one axis
  /// each: then run may work on fewer rows, if by_rows().
  explicit Program(const GraphBody& graph, const OwnedInputs& owned = {},
                   std::int64_t most_rows = 0, const MachineCosts& costs = cpu::machine_costs());
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
  std::size_t inputs() const { return graph().inputs.size(); }
  std::size_t results() const { return outputs_.size(); }
  std::size_t input_bytes(std::size_t i) const { return graph().aval(graph().inputs[i]).bytes(); }
  std::size_t result_bytes(std::size_t i) const { return graph().aval(graph().outputs[i]).bytes(); }
  void open(Frame&) const;
  /// Plain programs only. `results`: memory for those that writes_result; afterwards where each
  /// lies. `rows`: the first so many of all arrays that have most_rows; −1: all.
  void run(Frame&, std::span<const void* const> inputs, std::span<void*> results,
           std::int64_t rows = -1) const;
  /// Can every step work on some of the rows?
  bool by_rows() const { return by_rows_; }
  /// In the counters: what ran in the frame.
  void count_runs(const Frame& frame) const { count_runs(frame.runs, frame.parallel); }
  void report(Report&, int depth) const override;
  Memory memory() const override;
  /// What a run takes at most beside its inputs.
  std::uint64_t run_bytes(const RunMemory&) const;
  /// What pack() takes if these inputs are given.
  std::uint64_t packed_bytes(std::size_t same_from) const;

 private:
  const GraphBody& graph() const { return plan_.fusion.graph; }
  void place_values();
  void compile();
  bool cut_by_rows();
  /// How many steps ran on several threads.
  std::uint64_t run_steps(ProgramRun&, std::uint64_t measured) const;
  std::uint64_t run_each(ProgramRun&, std::uint64_t measured) const;
  [[noreturn]] void fail_in(const Step& step, const Error& error) const;
  /// Gives inputs, results, and all that is placed relative to them, their addresses: what `input`
  /// and `result` say of a number.
  template <class Input, class Result>
  void bind(void** pointers, const Input& input, const Result& result, void* arena) const;
  void count_runs(std::uint64_t runs, std::uint64_t parallel) const;

  ProgramPlan plan_;
  Vec<PassNote> passes_;  ///< for explain
  Vec<std::unique_ptr<Step>> steps_;
  // What a run needs, in flat lists.
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
  bool by_rows_ = false;
  bool makes_buffers_ = false;  // has equations that are loops or interpreted
  bool begins_exchanges_ = false;
  StepCounts counts_;
};

/// What the interpreter takes for a Graph: each value lives from the equation that makes it to the
/// last that reads it.
Memory interpreted_memory(const GraphBody&);

}  // namespace vt::detail
