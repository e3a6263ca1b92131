// Program: running it, on the shortest path.
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/processes/collective.hpp"
#include "../../../trace/record/node.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../services/counters.hpp"
#include "program.hpp"

namespace vt::detail {

template <class Input, class Result>
void Program::bind(void** pointers, const Input& input, const Result& result, void* arena) const {
  const GraphBody& g = graph();
  // Inputs are read only, but for those that overwritten() names.
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    pointers[g.inputs[i]] = const_cast<void*>(input(i));
  for (const auto& [v, i] : over_inputs_) pointers[v] = const_cast<void*>(input(i));
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].slot_output >= 0) pointers[outputs_[i].var] = result(i);
  for (const Placed& p : placed_) {
    void* const block = p.output >= 0 ? pointers[outputs_[p.output].var] : arena;
    // none where all that lies there is empty
    if (block) pointers[p.var] = static_cast<char*>(block) + p.offset;
  }
}

Vec<BufferRef> Program::run(std::span<const BufferRef> inputs, std::span<void* const> into,
                            std::span<BufferRef> own) {
  const Span span("run", "run program");
  SmallVec<void*, 96> pointers(fixed_.begin(), fixed_.end());
  Vec<BufferRef> results(outputs_.size());
  const GraphBody& g = graph();
  BufferRef scratch;
  try {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].slot_output >= 0) {
        const std::size_t bytes = plan_.slot(outputs_[i].var).bytes;
        results[i] =
            !into.empty() && into[i] ? borrow_memory(into[i], bytes) : allocate(bytes, "a result");
      }
    if (plan_.buffers.arena_bytes)
      scratch = allocate(plan_.buffers.arena_bytes, "intermediate results");
  } catch (const Error& error) {
    fail(error.kind(), error.what(), line_of_largest(g));
  }
  bind(
      pointers.data(), [&](std::size_t i) { return inputs[i]->data; },
      [&](std::size_t i) { return results[i]->data; }, scratch ? scratch->data : nullptr);
  ProgramRun run{.pointers = pointers.data(), .inputs = inputs, .own = own};
  if (makes_buffers_) run.produced.resize(pointers.size());
  const std::uint64_t parallel = run_steps(run, measured_run());

  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (results[i]) continue;
    const Var v = outputs_[i].var;
    const BufferPlan::Slot& s = plan_.slot(v);
    using Kind = BufferPlan::Slot::Kind;
    if (s.kind == Kind::input) results[i] = inputs[s.index];
    else if (s.kind == Kind::constant)
      results[i] = g.equations[s.index].as<ConstantParams>().buffer;
    else if (s.kind == Kind::produced) results[i] = run.produced[v];
    else results[i] = results[s.index];
  }
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (!into[i]) continue;
    if (results[i]->data != into[i] && results[i]->bytes)
      std::memcpy(into[i], results[i]->data, results[i]->bytes);
    results[i] = {};
  }
  count_runs(1, parallel);
  return results;
}

bool Program::runs_into() const {
  return !makes_buffers_ && !plan_.only && over_inputs_.empty() &&
         !any_of(outputs_, [](const Output& o) { return o.slot_output < 0; });
}

void Program::run_into(std::span<const void* const> inputs, std::span<void* const> results) {
  const Span span("run", "run program");
  SmallVec<void*, 96> pointers(fixed_.begin(), fixed_.end());
  alignas(64) std::byte small[1024];
  BufferRef scratch;
  try {
    if (plan_.buffers.arena_bytes > sizeof small)
      scratch = allocate(plan_.buffers.arena_bytes, "intermediate results");
  } catch (const Error& error) {
    fail(error.kind(), error.what(), line_of_largest(graph()));
  }
  bind(
      pointers.data(), [&](std::size_t i) { return inputs[i]; },
      [&](std::size_t i) { return results[i]; }, scratch ? scratch->data : small);
  ProgramRun run{.pointers = pointers.data()};
  count_runs(1, run_steps(run, 0));
}

std::uint64_t Program::run_steps(ProgramRun& run, std::uint64_t measured) const {
  if (!begins_exchanges_) return run_each(run, measured);
  try {
    return run_each(run, measured);
  } catch (...) {
    end_collectives();  // what was begun: its memory goes with the run
    throw;
  }
}

std::uint64_t Program::run_each(ProgramRun& run, std::uint64_t measured) const {
  std::uint64_t parallel = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step* step = steps_[k].get();
    if (!step->is_paired()) {
      const StepClock clock(measured, step->time());
      const Span span("run", step->name(), step->details());
      try {
        parallel += step->run(run);
      } catch (const Error& error) {
        fail_in(*step, error);
      }
    }
    if (makes_buffers_)
      for (Var v : plan_.buffers.released[k]) run.produced[v] = {};
  }
  return parallel;
}

// Memory for what a step works in could not be had: its line, unless a step inside has told one.
void Program::fail_in(const Step& step, const Error& error) const {
  const Vec<CallSite> lines = step.lines();
  if (error.kind() != ErrorKind::memory || lines.empty() || std::strstr(error.what(), "; at "))
    throw;
  fail(error.kind(), error.what(), lines.back());
}

Program::Packed Program::pack(std::span<const void* const> inputs) const {
  const auto place = [&](Var v) -> const void* {
    const BufferPlan::Slot& s = plan_.slot(v);
    if (s.kind == BufferPlan::Slot::Kind::constant) return fixed_[v];
    return s.kind == BufferPlan::Slot::Kind::input ? inputs[s.index] : nullptr;
  };
  Packed packed;
  for (const auto& step : steps_) packed.push_back(step->pack(place));
  return packed;
}

void Program::open(Frame& frame) const {
  frame.pointers.assign(fixed_.begin(), fixed_.end());
  if (plan_.buffers.arena_bytes)
    frame.arena = allocate(plan_.buffers.arena_bytes, "intermediate results of a loop");
}

void Program::run(Frame& frame, std::span<const void* const> inputs, std::span<void*> results,
                  std::int64_t rows) const {
  void** const pointers = frame.pointers.data();
  bind(
      pointers, [&](std::size_t i) { return inputs[i]; }, [&](std::size_t i) { return results[i]; },
      frame.arena ? frame.arena->data : nullptr);
  ProgramRun run{.pointers = pointers, .rows = rows, .packed = frame.packed};
  frame.parallel += run_steps(run, rows < 0 ? measured_run() : 0);
  for (std::size_t i = 0; i < outputs_.size(); ++i) results[i] = pointers[outputs_[i].var];
  ++frame.runs;
}

void Program::count_runs(std::uint64_t runs, std::uint64_t parallel) const {
  Counters& c = counters();
  count(c.programs_run, runs);
  count(c.launches, runs * counts_.kernels);
  count(c.bytes, runs * counts_.bytes);
  if (parallel) count(c.parallel_launches, parallel);
  if (counts_.products) count(c.matrix_products, runs * counts_.products);
  if (counts_.epilogues) count(c.product_epilogues, runs * counts_.epilogues);
  if (counts_.chains) count(c.product_chains, runs * counts_.chains);
  if (counts_.interpreted) count(c.interpreter_steps, runs * counts_.interpreted);
}

}  // namespace vt::detail
