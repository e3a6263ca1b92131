// Program: running it, on the shortest path.
#include <algorithm>
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/record/node.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../services/counters.hpp"
#include "../../services/threads.hpp"
#include "program.hpp"

namespace vt::detail {

Vec<BufferRef> Program::run(std::span<const BufferRef> inputs, std::span<void* const> into,
                            std::span<BufferRef> own) {
  const Span span("run", "run program");
  SmallVec<void*, 96> pointers(fixed_.begin(), fixed_.end());
  Vec<BufferRef> results(outputs_.size());
  const GraphBody& g = fusion_.graph;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) pointers[g.inputs[i]] = inputs[i]->data;
  for (const auto& [v, i] : over_inputs_) pointers[v] = inputs[i]->data;
  BufferRef arena;
  try {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].slot_output >= 0) {
        const std::size_t bytes = plan_.slots[outputs_[i].var].bytes;
        results[i] =
            !into.empty() && into[i] ? borrow_memory(into[i], bytes) : allocate(bytes, "a result");
        pointers[outputs_[i].var] = results[i]->data;
      }
    if (plan_.arena_bytes) arena = allocate(plan_.arena_bytes, "intermediate results");
  } catch (const Error& error) {
    fail(error.kind(), error.what(), line_of_largest(fusion_.graph));
  }
  place_in(pointers.data(), arena ? arena->data : nullptr);
  Vec<BufferRef> produced;
  if (makes_buffers_) produced.resize(pointers.size());

  std::uint64_t parallel = 0;
  const std::uint64_t measured = measured_run();
  for (const Step& step : steps_) {
    const StepClock clock(measured, step.time);
    try {
      if (step.kind == Step::Kind::control || step.kind == Step::Kind::equation) {
        const Span of_step("run", step.name, step.details);
        run_equation(step, pointers.data(), produced, inputs, own);
        if (step.kernel) run_kernel(step, pointers.data(), 0, step.iterations);
      } else {
        parallel += run_step(step, pointers.data(), {});
      }
    } catch (const Error& error) {
      fail_in(step, error);
    }
    for (Var v : step.released) produced[v] = {};
  }

  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (results[i]) continue;
    const std::size_t v = outputs_[i].var;
    const BufferPlan::Slot& s = plan_.slots[v];
    using Kind = BufferPlan::Slot::Kind;
    if (s.kind == Kind::input) results[i] = inputs[s.index];
    else if (s.kind == Kind::constant)
      results[i] = g.equations[s.index].as<ConstantParams>().buffer;
    else if (s.kind == Kind::produced) results[i] = produced[v];
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
  return !makes_buffers_ && !planned_ && over_inputs_.empty() &&
         !any_of(outputs_, [](const Output& o) { return o.slot_output < 0; });
}

void Program::run_into(std::span<const void* const> inputs, std::span<void* const> results) {
  const Span span("run", "run program");
  SmallVec<void*, 96> pointers(fixed_.begin(), fixed_.end());
  const GraphBody& g = fusion_.graph;
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    pointers[g.inputs[i]] = const_cast<void*>(inputs[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) pointers[outputs_[i].var] = results[i];
  alignas(64) std::byte small[1024];
  BufferRef arena;
  try {
    if (plan_.arena_bytes > sizeof small)
      arena = allocate(plan_.arena_bytes, "intermediate results");
  } catch (const Error& error) {
    fail(error.kind(), error.what(), line_of_largest(fusion_.graph));
  }
  place_in(pointers.data(), arena ? arena->data : small);
  std::uint64_t parallel = 0;
  for (const Step& step : steps_) {
    try {
      parallel += run_step(step, pointers.data(), {});
    } catch (const Error& error) {
      fail_in(step, error);
    }
  }
  count_runs(1, parallel);
}

// Memory for what a step works in could not be had: its line, unless a step inside has told one.
void Program::fail_in(const Step& step, const Error& error) const {
  const Vec<CallSite> lines = lines_of(step);
  if (error.kind() != ErrorKind::memory || lines.empty() || std::strstr(error.what(), "; at "))
    throw;
  fail(error.kind(), error.what(), lines.back());
}

// Where results begin in others' memory and in the arena, once those have addresses.
void Program::place_in(void** pointers, void* arena) const {
  for (const Placed& p : placed_) {
    void* const block = p.output >= 0 ? pointers[outputs_[p.output].var] : arena;
    // none where all that lies there is empty
    if (block) pointers[p.var] = static_cast<char*>(block) + p.offset;
  }
}

// A kernel leaves out matrices that are near overflow or underflow or not finite. What is left of a
// batch over whole blocks of lanes is copied into a block of its own, and filled up with copies of
// its last matrix.
void Program::run_matrices(const Step& step, void* const* pointers, std::int64_t batch) {
  const std::int64_t block = std::max(step.lanes, 1), whole = batch / block * block;
  SmallVec<void*, 8> buffers;
  for (Var v : step.operands) buffers.push_back(pointers[v]);
  const std::size_t operands = step.linalg.operands();
  const auto run_kernel = [&](void* const* own, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t together = 4096;
    bool left_out[together];
    SmallVec<void*, 8> with(own, own + buffers.size());
    with.push_back(left_out);
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t count = std::min(together, end - first);
      std::memset(left_out, 0, count);
      step.kernel(with.data(), nullptr, first, first + count);
      const auto next = [&](const bool* at) {
        return static_cast<const bool*>(
            std::memchr(at, 1, static_cast<std::size_t>(left_out + count - at)));
      };
      for (const bool* at = next(left_out); at; at = next(at + 1))
        run_linalg(step.linalg, own, own + operands, first + (at - left_out),
                   first + (at - left_out) + 1);
    }
  };
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    if (step.kernel) run_kernel(buffers.data(), begin, end);
    else run_linalg(step.linalg, buffers.data(), buffers.data() + operands, begin, end);
  };
  if (step.parallel && thread_count() > 1 && (step.wakes || others_ready()))
    parallel_ranges(whole, step.grain, run, step.ranges);
  else run(0, whole);
  const std::int64_t left = batch - whole;
  if (left == 0) return;
  std::size_t bytes = 0;
  for (std::int64_t each : step.arguments) bytes += static_cast<std::size_t>(each * step.lanes);
  const BufferRef rest = allocate(bytes, "matrices beyond whole blocks");
  SmallVec<void*, 8> own;
  char* at = static_cast<char*>(rest->data);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::size_t each = step.arguments[i];
    own.push_back(at);
    for (std::int64_t l = 0; i < operands && l < step.lanes; ++l)
      std::memcpy(at + static_cast<std::size_t>(l) * each,
                  static_cast<char*>(buffers[i]) +
                      static_cast<std::size_t>(whole + std::min(l, left - 1)) * each,
                  each);
    at += each * static_cast<std::size_t>(step.lanes);
  }
  run_kernel(own.data(), 0, step.lanes);
  for (std::size_t i = operands; i < buffers.size(); ++i) {
    const std::size_t each = step.arguments[i];
    std::memcpy(static_cast<char*>(buffers[i]) + static_cast<std::size_t>(whole) * each, own[i],
                static_cast<std::size_t>(left) * each);
  }
}

void Program::run_transform(const Step& step, const FftSpec& spec, void* const* pointers) {
  const bool all_threads = step.parallel && thread_count() > 1 && (step.wakes || others_ready());
  run_fft(spec, pointers[step.operands[0]], pointers[step.operands[1]],
          all_threads ? FftRanges([](std::int64_t total, RangeBody body, void* context) {
            parallel_ranges(total, 1, body, context);
          })
                      : FftRanges([](std::int64_t total, RangeBody body, void* context) {
                          body(context, 0, total);
                        }));
}

void Program::run_rows_alone(const Step& step, void* const* pointers, std::int64_t rows) {
  SmallVec<void*, 8> buffers;
  for (Var v : step.operands) buffers.push_back(pointers[v]);
  if (rows > 0) step.kernel(buffers.data(), nullptr, 0, rows);
}

bool Program::run_pair(const Step& step, void* const* pointers) {
  const Step& second = *step.pair;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t row = p * step.pair_rows;
      run_kernel(step, pointers, row, std::min(row + step.pair_rows, step.iterations));
      run_kernel(second, pointers, p, p + 1);
    }
  };
  const bool all_threads = (step.parallel || second.parallel) && thread_count() > 1 &&
                           (step.wakes || second.wakes || others_ready());
  if (all_threads) parallel_ranges(second.iterations, 1, run, step.ranges);
  else run(0, second.iterations);
  return all_threads;
}

bool Program::run_step(const Step& step, void* const* pointers, const PackedOperands& packed) {
  if (step.is_paired) return false;
  const Span span("run", step.name, step.details);
  if (step.pair) return run_pair(step, pointers);
  switch (step.kind) {
    case Step::Kind::kernel:
      if (step.copied_to >= 0 && pointers[step.copied_from] == pointers[step.copied_to]) break;
      if (step.parallel && thread_count() > 1 && (step.wakes || others_ready())) {
        parallel_ranges(
            step.iterations, step.grain,
            [&](std::int64_t begin, std::int64_t end) { run_kernel(step, pointers, begin, end); },
            step.ranges);
        return true;
      }
      run_kernel(step, pointers, 0, step.iterations);
      break;
    case Step::Kind::product:
      if (step.chain) run_chain(step, pointers);
      else run_product(step, pointers, packed, -1, nullptr);
      break;
    case Step::Kind::sort: {
      SmallVec<void*, 8> buffers;
      for (Var v : step.operands) buffers.push_back(pointers[v]);
      sort_rows(step.sort, buffers.data(), buffers.data() + buffers.size() / 2);
      break;
    }
    case Step::Kind::linalg: run_matrices(step, pointers, step.linalg.batch); break;
    case Step::Kind::fft: run_transform(step, step.fft, pointers); break;
    case Step::Kind::rows: run_rows_alone(step, pointers, step.iterations); break;
    case Step::Kind::control:
    case Step::Kind::equation: break;  // these make buffers
  }
  return false;
}

void Program::run_product(const Step& step, void* const* pointers, const PackedOperands& packed,
                          std::int64_t rows, const std::int64_t* arguments) {
  const auto on_rows = [&](std::int64_t begin, std::int64_t end, const void* elsewhere) {
    const Elsewhere of_rows{
        step.operands[2],
        elsewhere ? static_cast<char*>(const_cast<void*>(elsewhere)) - begin * step.row_bytes
                  : nullptr};
    run_kernel(step, pointers, begin / step.row_group, end / step.row_group,
               {&of_rows, elsewhere ? 1u : 0u}, arguments);
  };
  const auto at = [&](std::size_t operand) { return pointers[step.operands[operand]]; };
  const RowsDone done =
      step.kernel ? RowsDone(on_rows, step.row_group, step.rows_alone) : RowsDone();
  if (rows < 0) step.product->run(at(0), at(1), at(2), done, packed);
  else step.product->run_rows(at(0), at(1), at(2), rows, done, packed);
}

void Program::run_step_rows(const Step& step, void* const* pointers, const PackedOperands& packed,
                            std::int64_t rows) {
  const Span span("run", step.name, step.details);
  if (step.of_row == 0 && step.row_arguments.empty()) {
    run_step(step, pointers, packed);
    return;
  }
  Vec<std::int64_t> arguments = step.arguments;
  for (const auto& [argument, of_row] : step.row_arguments) arguments[argument] = rows * of_row;
  const std::int64_t count = rows * step.of_row;
  switch (step.kind) {
    case Step::Kind::kernel: {
      if (step.copied_to >= 0 && pointers[step.copied_from] == pointers[step.copied_to]) break;
      const std::int64_t iterations = step.of_row ? count : step.iterations;
      const auto run = [&](std::int64_t begin, std::int64_t end) {
        run_kernel(step, pointers, begin, end, {}, arguments.data());
      };
      if (step.parallel && thread_count() > 1 && (step.wakes || others_ready()))
        parallel_ranges(iterations, step.grain, run, step.ranges);
      else run(0, iterations);
      break;
    }
    case Step::Kind::product: run_product(step, pointers, packed, count, arguments.data()); break;
    case Step::Kind::sort: {
      SmallVec<void*, 8> buffers;
      for (Var v : step.operands) buffers.push_back(pointers[v]);
      SortSpec some = step.sort;
      some.outer = count;
      sort_rows(some, buffers.data(), buffers.data() + buffers.size() / 2);
      break;
    }
    case Step::Kind::linalg: run_matrices(step, pointers, count); break;
    case Step::Kind::fft: {
      FftSpec some = step.fft;
      some.batch = count;
      run_transform(step, some, pointers);
      break;
    }
    case Step::Kind::rows: run_rows_alone(step, pointers, count); break;
    case Step::Kind::control:
    case Step::Kind::equation: break;  // programs by rows have none
  }
}

void Program::run_chain(const Step& step, void* const* pointers) {
  const auto at = [&](std::size_t operand) { return pointers[step.operands[operand]]; };
  const auto between = [&](std::int64_t begin, std::int64_t end, void* made, void* taken) {
    const Elsewhere rows[] = {{step.operands[2], made}, {step.operands[3], taken}};
    run_kernel(step, pointers, begin, end, rows);
  };
  step.chain->run(at(0), at(1), at(4), at(5), between);
}

Program::Packed Program::pack(std::span<const void* const> inputs) const {
  Packed packed;
  const auto address = [&](Var v) -> const void* {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == BufferPlan::Slot::Kind::constant) return fixed_[v];
    return s.kind == BufferPlan::Slot::Kind::input ? inputs[s.index] : nullptr;
  };
  for (const Step& step : steps_) {
    packed.emplace_back();
    if (!step.product) continue;
    const void *a = address(step.operands[0]), *b = address(step.operands[1]);
    if (a || b) packed.back() = step.product->pack(a, b);
  }
  return packed;
}

void Program::open(Frame& frame) const {
  frame.pointers.assign(fixed_.begin(), fixed_.end());
  if (plan_.arena_bytes)
    frame.arena = allocate(plan_.arena_bytes, "intermediate results of a loop");
}

void Program::bind(Frame& frame, std::span<const void* const> inputs,
                   std::span<void*> results) const {
  const GraphBody& g = fusion_.graph;
  void** const pointers = frame.pointers.data();
  // Inputs are read only, but for those that overwritten() names.
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    pointers[g.inputs[i]] = const_cast<void*>(inputs[i]);
  for (const auto& [v, i] : over_inputs_) pointers[v] = const_cast<void*>(inputs[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].slot_output >= 0) pointers[outputs_[i].var] = results[i];
  place_in(pointers, frame.arena ? frame.arena->data : nullptr);
}

void Program::run(Frame& frame, std::span<const void* const> inputs,
                  std::span<void*> results) const {
  bind(frame, inputs, results);
  void** const pointers = frame.pointers.data();
  const PackedOperands none;
  const std::uint64_t measured = measured_run();
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const StepClock clock(measured, steps_[k].time);
    frame.parallel += run_step(steps_[k], pointers, frame.packed ? (*frame.packed)[k] : none);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) results[i] = pointers[outputs_[i].var];
  ++frame.runs;
}

void Program::run_rows(Frame& frame, std::span<const void* const> inputs, std::span<void*> results,
                       std::int64_t rows) const {
  bind(frame, inputs, results);
  void** const pointers = frame.pointers.data();
  const PackedOperands none;
  for (std::size_t k = 0; k < steps_.size(); ++k)
    run_step_rows(steps_[k], pointers, frame.packed ? (*frame.packed)[k] : none, rows);
  for (std::size_t i = 0; i < outputs_.size(); ++i) results[i] = pointers[outputs_[i].var];
  ++frame.runs;
}

void Program::count_runs(std::uint64_t runs, std::uint64_t parallel) const {
  Counters& c = counters();
  count(c.programs_run, runs);
  count(c.launches, runs * launches_);
  count(c.bytes, runs * bytes_);
  if (parallel) count(c.parallel_launches, parallel);
  if (products_) count(c.matrix_products, runs * products_);
  if (epilogues_) count(c.product_epilogues, runs * epilogues_);
  if (chains_) count(c.product_chains, runs * chains_);
  if (interpreted_) count(c.interpreter_steps, runs * interpreted_);
}

void Program::run_kernel(const Step& step, void* const* pointers, std::int64_t begin,
                         std::int64_t end, std::span<const Elsewhere> elsewhere,
                         const std::int64_t* arguments) {
  if (begin == end) return;  // kernels take it that there is an iteration
  SmallVec<void*, 64> buffers;
  buffers.reserve(step.slots.size());
  for (Var v : step.slots) buffers.push_back(pointers[v]);
  for (const Elsewhere& e : elsewhere)
    for (std::size_t b = 0; b < step.slots.size(); ++b)
      if (step.slots[b] == e.var) buffers[b] = e.begin;
  step.kernel(buffers.data(), arguments ? arguments : step.arguments.data(), begin, end);
}

void Program::run_equation(const Step& step, void** pointers, Vec<BufferRef>& produced,
                           std::span<const BufferRef> inputs, std::span<BufferRef> own) const {
  const GraphBody& g = fusion_.graph;
  const Equation& e = g.equations[step.equation];
  Vec<BufferRef> operands;
  for (Var o : e.inputs) {
    const std::size_t v = fusion_.storage[o];
    const BufferPlan::Slot& s = plan_.slots[v];
    const std::size_t index = s.index;
    // What ends here becomes the loop's own, which may write over it.
    const bool own_now = std::find(step.handed_over.begin(), step.handed_over.end(),
                                   static_cast<Var>(v)) != step.handed_over.end();
    if (s.kind == BufferPlan::Slot::Kind::input)
      operands.push_back(own_now && !own.empty() ? std::move(own[index]) : inputs[index]);
    else if (s.kind == BufferPlan::Slot::Kind::produced)
      operands.push_back(own_now ? std::move(produced[v]) : produced[v]);
    else operands.push_back(borrow_memory(pointers[v], g.aval(o).bytes()));
  }
  Vec<BufferRef> made;
  Vec<const Buffer*> planned(operands.size(), nullptr);  // operands in memory that is written again
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const BufferPlan::Slot::Kind kind = plan_.slots[fusion_.storage[e.inputs[k]]].kind;
    if (kind != BufferPlan::Slot::Kind::input && kind != BufferPlan::Slot::Kind::produced)
      planned[k] = operands[k].get();
  }
  if (step.control) {
    made = step.control->run(std::move(operands));
  } else if (is_unset(e)) {
    made.push_back(allocate(g.aval(e.outputs[0]).bytes(), "what a loop keeps"));
  } else {
    for (BufferRef& b : interpret_equation(e, g, operands)) made.push_back(std::move(b));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::size_t v = e.outputs[i];
    // A loop of no iterations hands on its operand.
    if (std::find(planned.begin(), planned.end(), made[i].get()) != planned.end()) {
      BufferRef copy = allocate(made[i]->bytes, name_of(e.op).data());
      if (copy->bytes) std::memcpy(copy->data, made[i]->data, copy->bytes);
      made[i] = std::move(copy);
    }
    pointers[v] = made[i]->data;
    produced[v] = std::move(made[i]);
  }
}

}  // namespace vt::detail
