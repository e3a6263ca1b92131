// Program: building from a Graph, and the short path that runs it.
#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include <vt/small_vec.hpp>

#include "../trace/node.hpp"
#include "../trace/thread_state.hpp"
#include "../trace/timeline.hpp"
#include "background.hpp"
#include "counters.hpp"
#include "epilogue.hpp"
#include "lane_regions.hpp"
#include "scan_motion.hpp"
#include "threads.hpp"

namespace vt::detail {

namespace program_cost {

// Of what wakes another thread, this much is worth sharing with one that is awake.
constexpr double worth_threads = 0.25;
constexpr std::uint64_t worth_a_range = 4096;

std::uint64_t rounds_of(const Nest& nest, const SmallVec<int, 6>& loops) {
  std::uint64_t n = 1;
  for (int l : loops) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(l)];
    n *= static_cast<std::uint64_t>(std::max<std::int64_t>(loop.extent, 0));
  }
  return n;
}

}  // namespace program_cost

Program::Program(const GraphBody& graph, const Backend& backend, const OwnedInputs& owned)
    : vector_bytes_(backend.vector_bytes()), costs_(backend.costs()), planned_(Planning::now()) {
  const Span span("compile", "compile program");
  {
    const Span fusing("compile", "fuse");
    fusion_ = fuse(form_lane_regions(move_out_of_scans(graph)), {.matrix_products = true, .vector_bytes = backend.vector_bytes()});
    prefer_owned(fusion_, owned);
  }
  compile_steps(backend);
  plan_ = plan_buffers(fusion_, owned);
  const GraphBody& g = fusion_.graph;
  fixed_.assign(g.avals.size(), nullptr);
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == BufferPlan::Slot::Kind::constant) fixed_[v] = g.equations[static_cast<std::size_t>(s.index)].as<ConstantParams>().buffer->data;
    if (s.kind == BufferPlan::Slot::Kind::input && g.inputs[static_cast<std::size_t>(s.index)] != static_cast<Var>(v)) {
      over_inputs_.emplace_back(static_cast<Var>(v), static_cast<std::size_t>(s.index));
      overwritten_.push_back(static_cast<std::size_t>(s.index));
    }
    if (s.kind == BufferPlan::Slot::Kind::arena) placed_.push_back({static_cast<Var>(v), -1, s.offset});
    if (s.kind == BufferPlan::Slot::Kind::in_output) placed_.push_back({static_cast<Var>(v), s.index, s.offset});
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const Var v = fusion_.storage[static_cast<std::size_t>(g.outputs[i])];
    const BufferPlan::Slot& s = plan_.slots[static_cast<std::size_t>(v)];
    outputs_.push_back({v, s.kind == BufferPlan::Slot::Kind::output && s.index == static_cast<int>(i) ? static_cast<int>(i) : -1});
  }
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    steps_[k].released = plan_.released[k];
    steps_[k].handed_over = plan_.handed_over[k];
    launches_ += steps_[k].kind == Step::Kind::kernel;
    products_ += steps_[k].kind == Step::Kind::product;
    epilogues_ += steps_[k].has_epilogue();
    interpreted_ += steps_[k].kind == Step::Kind::equation;
    loops_ += steps_[k].kind == Step::Kind::control;
    bytes_ += steps_[k].bytes;
  }
  makes_buffers_ = interpreted_ > 0 || loops_ > 0;
  if (timeline_wanted()) name_steps();
  if (planned_) return;
  count(counters().programs);
  backend.measure_costs();
  if (!dump_folder().empty()) {
    const std::string text = to_text(g);
    dump_text(short_name(text) + ".program.txt", text + "\n" + explain());
  }
}

void Program::compile_steps(const Backend& backend) {
  const BackgroundPause pause;
  const std::size_t count_of_steps = fusion_.steps.size();
  steps_.resize(count_of_steps);
  Vec<Schedule> schedules(count_of_steps);
  // What the backend makes does not depend on each other: with several to make, threads share the work.
  // Products first, which take longest.
  Vec<Function<void()>> makes, kernels;
  // Of little work in all, for which no other thread is woken, code runs unoptimised until the background thread has made better. Where there is
  // more, that thread would take a processor from the first calls, and they would lose more than the first one gains.
  std::uint64_t work = 0;
  bool hurry = false;
  const auto lanes_of = [&](DType d) { return static_cast<std::uint64_t>(backend.vector_bytes()) / size_of(d); };
  const auto make_kernel = [&](std::size_t k) {
    work += steps_[k].work / static_cast<std::uint64_t>(schedules[k].lanes);
    kernels.push_back([this, k, &backend, &schedules, &hurry] {
      const CodeLabelScope label(label_of(steps_[k], true));
      steps_[k].kernel = backend.compile(fusion_.steps[k].nest, schedules[k], hurry);
    });
  };
  for (std::size_t k = 0; k < count_of_steps; ++k) {
    const FusedStep& fused = fusion_.steps[k];
    Step& step = steps_[k];
    if (fused.equation < 0) {
      schedules[k] = choose_schedule(fused.nest, vector_bytes_, costs_);
      prepare_kernel(step, fused, schedules[k]);
      make_kernel(k);
      continue;
    }
    const Equation& e = fusion_.graph.equations[static_cast<std::size_t>(fused.equation)];
    const GraphBody& g = fusion_.graph;
    step.kind = Step::Kind::equation;
    step.equation = fused.equation;
    if (fused.row_loop >= 0) {
      schedules[k] = schedule_epilogue(fused.nest, fused.row_loop, backend.vector_bytes());
      prepare_kernel(step, fused, schedules[k]);
      make_kernel(k);
      step.bytes -= g.aval(e.outputs[0]).bytes();  // read while it is in the cache
    }
    for (Var v : e.outputs) step.bytes += g.aval(v).bytes();
    for (Var v : e.inputs) step.bytes += g.aval(v).bytes();
    if (is_control(e.op) || e.op == Op::recursive_call) {
      step.kind = Step::Kind::control;
      const CodeLabelScope label(label_of(step, false));
      step.control = new_shared<const ControlRunner>(g, e, backend);
      continue;
    }
    if (e.op == Op::sort) {
      prepare_sort(step, e);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (e.op == Op::fft) {
      step.kind = Step::Kind::fft;
      step.fft = fft_spec(e.as<FftParams>(), g.aval(e.inputs[0]));
      step.operands.push_back(fusion_.storage[static_cast<std::size_t>(e.inputs[0])]);
      step.operands.push_back(e.outputs[0]);
      step.work = static_cast<std::uint64_t>(step.fft.operations());
      step.alone = costs_.nanoseconds(step.work, 0);
      share(step);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (family_of(e.op) == Family::linalg) {
      makes.push_back([this, &step, &e, &backend, &hurry] { prepare_linalg(step, e, backend, hurry); });
      const LinalgSpec spec = linalg_spec(g, e);
      work += static_cast<std::uint64_t>(spec.operations() * spec.batch) / lanes_of(spec.dtype);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (e.op == Op::conv_general) {
      work += least_waking_work;
      makes.push_back([this, &step, &e, &backend] {
        const std::optional<ConvPlan> conv = plan_conv(e.as<ConvParams>(), fusion_.graph.aval(e.inputs[0]).shape,
                                                       fusion_.graph.aval(e.inputs[1]).shape, fusion_.graph.aval(e.inputs[0]).dtype);
        const CodeLabelScope label(label_of(step, false));
        if (!conv || conv->lhs_permutation || conv->spec.multiply_adds() == 0) return;
        step.product = backend.convolution(conv->spec);
        if (!step.product) return;
        step.work = static_cast<std::uint64_t>(2 * conv->spec.multiply_adds());
        step.row_bytes = conv->spec.columns.extent * static_cast<std::int64_t>(size_of(conv->spec.result));
      });
    }
    if (e.op != Op::dot_general) continue;
    MatmulPlan plan = plan_matmul(e.as<DotParams>(), g.aval(e.inputs[0]), g.aval(e.inputs[1]));
    MatmulSpec& spec = plan.spec;
    const bool empty = spec.batch * spec.m * spec.n * spec.k == 0;
    // A vector's worth of element-wise work is about one of multiply-adds.
    if (!empty && fused.row_loop >= 0) spec.work_after = static_cast<std::int64_t>(step.work) / (spec.batch * spec.m * spec.n);
    if (empty || plan.lhs_permutation || plan.rhs_permutation) continue;
    work += static_cast<std::uint64_t>(spec.batch * spec.m * spec.n * spec.k) / lanes_of(spec.accumulate);
    makes.push_back([this, &step, spec, &backend, &hurry] {
      const CodeLabelScope label(label_of(step, false));
      step.product = backend.product(spec, hurry);
      if (step.product) step.work = static_cast<std::uint64_t>(2 * spec.batch * spec.m * spec.n * spec.k);
    });
  }

  hurry = work < least_waking_work;
  for (Function<void()>& make : kernels)
    if (!planned_) makes.push_back(std::move(make));
  if (planned_) {  // nothing is compiled, and other threads do not know that
    for (const Function<void()>& make : makes) make();
    makes.clear();
  }
  Vec<std::exception_ptr> errors(makes.size());
  parallel_ranges(
      static_cast<std::int64_t>(makes.size()), 1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          try {
            makes[static_cast<std::size_t>(i)]();
          } catch (...) {
            errors[static_cast<std::size_t>(i)] = std::current_exception();
          }
        }
      },
      static_cast<int>(makes.size()));
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);

  for (std::size_t k = 0; k < count_of_steps; ++k) {
    Step& step = steps_[k];
    if (!step.product) continue;  // not one that the backend has a kernel for
    const Equation& e = fusion_.graph.equations[static_cast<std::size_t>(step.equation)];
    step.kind = Step::Kind::product;
    step.row_group = fusion_.steps[k].row_group;
    step.rows_alone = fusion_.steps[k].rows_alone;
    for (Var v : {e.inputs[0], e.inputs[1], e.outputs[0]}) step.operands.push_back(fusion_.storage[static_cast<std::size_t>(v)]);
    fusion_.steps[k].writes_given_memory = true;
  }
}

void Program::prepare_sort(Step& step, const Equation& e) const {
  const GraphBody& g = fusion_.graph;
  step.kind = Step::Kind::sort;
  SmallVec<DType, 4> dtypes;
  SmallVec<char, 4> is_place;
  for (Var v : e.inputs) {
    int definition = -1;
    for (std::size_t i = 0; i < g.equations.size(); ++i)
      if (!g.equations[i].outputs.empty() && g.equations[i].outputs[0] == v) definition = static_cast<int>(i);
    dtypes.push_back(g.aval(v).dtype);
    is_place.push_back(is_sorted_place(g, e, definition));
    step.operands.push_back(fusion_.storage[static_cast<std::size_t>(v)]);
  }
  for (Var v : e.outputs) step.operands.push_back(v);
  step.sort = sort_spec(e.as<SortParams>(), g.aval(e.inputs[0]).shape, std::move(dtypes), std::move(is_place));
}

void Program::prepare_linalg(Step& step, const Equation& e, const Backend& backend, bool hurry) const {
  using namespace program_cost;
  const GraphBody& g = fusion_.graph;
  step.kind = Step::Kind::linalg;
  step.linalg = linalg_spec(g, e);
  for (Var v : e.inputs) step.operands.push_back(fusion_.storage[static_cast<std::size_t>(v)]);
  for (Var v : e.outputs) step.operands.push_back(v);
  for (Var v : step.operands) {
    const std::int64_t batch = std::max<std::int64_t>(step.linalg.batch, 1);
    step.arguments.push_back(static_cast<std::int64_t>(g.aval(v).bytes()) / batch);
  }
  const CodeLabelScope label(label_of(step, false));
  step.kernel = backend.compile_matrices(step.linalg, step.lanes, hurry);
  const std::int64_t block = std::max(step.lanes, 1), each = std::max<std::int64_t>(step.linalg.operations() / block, 1);
  step.work = static_cast<std::uint64_t>(each * step.linalg.batch);
  step.rounds = step.linalg.batch / block * block;
  step.grain = (std::max<std::int64_t>(static_cast<std::int64_t>(worth_a_range) / each, 1) + block - 1) / block * block;
  step.alone = costs_.nanoseconds(step.work, 0);
  share(step);
}

// What is left of a batch over whole blocks of lanes is copied into a block of its own, and filled up with copies of its last matrix.
void Program::run_matrices(const Step& step, void* const* pointers) {
  SmallVec<void*, 8> buffers;
  for (Var v : step.operands) buffers.push_back(pointers[static_cast<std::size_t>(v)]);
  const std::size_t operands = step.linalg.operands();
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    if (step.kernel) step.kernel(buffers.data(), nullptr, begin, end);
    else run_linalg(step.linalg, buffers.data(), buffers.data() + operands, begin, end);
  };
  if (step.parallel && thread_count() > 1 && (step.wakes || others_ready())) parallel_ranges(step.rounds, step.grain, run, step.ranges);
  else run(0, step.rounds);
  const std::int64_t left = step.linalg.batch - step.rounds;
  if (left == 0) return;
  std::size_t bytes = 0;
  for (std::int64_t each : step.arguments) bytes += static_cast<std::size_t>(each * step.lanes);
  const BufferRef block = allocate(bytes, "matrices beyond whole blocks");
  SmallVec<void*, 8> own;
  char* at = static_cast<char*>(block->data);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto each = static_cast<std::size_t>(step.arguments[i]);
    own.push_back(at);
    for (std::int64_t l = 0; i < operands && l < step.lanes; ++l)
      std::memcpy(at + static_cast<std::size_t>(l) * each,
                  static_cast<char*>(buffers[i]) + static_cast<std::size_t>(step.rounds + std::min(l, left - 1)) * each, each);
    at += each * static_cast<std::size_t>(step.lanes);
  }
  step.kernel(own.data(), nullptr, 0, step.lanes);
  for (std::size_t i = operands; i < buffers.size(); ++i) {
    const auto each = static_cast<std::size_t>(step.arguments[i]);
    std::memcpy(static_cast<char*>(buffers[i]) + static_cast<std::size_t>(step.rounds) * each, own[i], static_cast<std::size_t>(left) * each);
  }
}

void Program::run_transform(const Step& step, void* const* pointers) {
  const bool all_threads = step.parallel && thread_count() > 1 && (step.wakes || others_ready());
  run_fft(step.fft, pointers[static_cast<std::size_t>(step.operands[0])], pointers[static_cast<std::size_t>(step.operands[1])],
          all_threads ? FftRanges([](std::int64_t total, RangeBody body, void* context) { parallel_ranges(total, 1, body, context); })
                      : FftRanges([](std::int64_t total, RangeBody body, void* context) { body(context, 0, total); }));
}

void Program::share(Step& step) const {
  step.parallel = step.alone >= program_cost::worth_threads * costs_.worth_waking();
  step.wakes = step.alone >= costs_.worth_waking();
}

void Program::prepare_kernel(Step& step, const FusedStep& fused, const Schedule& schedule) const {
  using namespace program_cost;
  const Nest& nest = fused.nest;
  for (Var v : fused.buffers) step.slots.push_back(v);
  for (const NestLoop& l : nest.loops)
    if (l.runtime) step.arguments.push_back(l.block_of >= 0 ? l.total : l.extent);
  step.arguments.append(fused.arguments.begin(), fused.arguments.end());
  step.nest_text = nest.str() + schedule.str(nest);
  step.fused = fused.fused;
  step.partial = fused.partial;
  for (Var v : fused.buffers) step.bytes += fusion_.graph.aval(v).bytes();
  if (nest.stages.size() == 1 && nest.stores.size() == 1 && nest.reductions.empty()) {
    const NestStore& s = nest.stores[0];
    const NestValue& v = nest.values[static_cast<std::size_t>(s.value)];
    if (v.kind == NestValue::Kind::load && v.index == s.index && s.mask < 0 && v.mask < 0 &&
        v.dtype == nest.buffers[static_cast<std::size_t>(s.buffer)].dtype) {
      step.copied_from = fused.buffers[static_cast<std::size_t>(v.buffer)];
      step.copied_to = fused.buffers[static_cast<std::size_t>(s.buffer)];
    }
  }
  const std::uint64_t shared = rounds_of(nest, nest.shared);
  std::uint64_t most = 1;
  for (const NestStage& s : nest.stages) most = std::max(most, rounds_of(nest, s.loops));
  std::uint64_t weight = 1;
  double cost = 1;  // the same by this machine's numbers
  for (const NestValue& v : nest.values) {
    if (v.kind != NestValue::Kind::op && v.kind != NestValue::Kind::load) continue;
    weight += v.kind == NestValue::Kind::op ? static_cast<std::uint64_t>(op_weight(v.op, v.dtype)) : 1;
    cost += v.kind == NestValue::Kind::op ? op_cost(v.op, v.dtype, costs_) : 1;
  }
  step.work = shared * most * weight;
  const std::uint64_t vectors = step.work * static_cast<std::uint64_t>(schedule.registers) / static_cast<std::uint64_t>(schedule.lanes);
  // Of large tables from which few elements are taken, what is taken counts.
  std::uint64_t bytes = 0;
  for (std::size_t b = 0; b < fused.buffers.size(); ++b) {
    if (b < nest.buffers.size() && nest.buffers[b].local > 0) continue;
    const Aval& a = fusion_.graph.aval(fused.buffers[b]);
    bytes += std::min(static_cast<std::uint64_t>(a.bytes()), shared * most * nest.values.size() * size_of(a.dtype));
  }
  step.alone = costs_.nanoseconds(static_cast<std::uint64_t>(static_cast<double>(vectors) * cost / static_cast<double>(weight)), bytes);
  if (!planned_) {
    Counters& c = counters();
    count(c.fused_ops, fused.fused.size());
    count(c.stages, nest.stages.size());
    for (const NestBuffer& b : nest.buffers) count(c.row_buffers, b.local > 0);
    count(c.parallel_reductions, fused.partial);
  }
  if (schedule.parallel_loop < 0) {
    step.rounds = 1;
    return;
  }
  step.rounds = nest.loops[static_cast<std::size_t>(schedule.parallel_loop)].extent;
  share(step);
  const std::uint64_t per_round = std::max<std::uint64_t>(vectors / static_cast<std::uint64_t>(std::max<std::int64_t>(step.rounds, 1)), 1);
  std::int64_t grain = std::max<std::int64_t>(static_cast<std::int64_t>(worth_a_range / per_round), 1);
  for (const StageSchedule& s : schedule.stages)
    if (s.vector_loop == schedule.parallel_loop || s.tile_loop == schedule.parallel_loop) {
      // Vectors start at multiples of their length, which the emitter counts on; whole cache lines for each thread besides.
      std::int64_t lanes = schedule.lanes;
      for (const NestStore& w : nest.stores)
        lanes = std::max(lanes, 64 / static_cast<std::int64_t>(size_of(nest.buffers[static_cast<std::size_t>(w.buffer)].dtype)));
      // In double: sizes that no memory holds are refused later, and must not overflow here.
      const double rounds_per_vector = static_cast<double>(step.rounds) / std::max(static_cast<double>(vectors), 1.0);
      grain = std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(worth_a_range) * rounds_per_vector), 1);
      grain = (grain + lanes - 1) / lanes * lanes;
      // Parts of rows that come from far are read the faster the longer they are.
      if (s.mode == StageSchedule::Mode::vertical && s.fetch_ahead) step.ranges = 1;
    }
  step.grain = grain;
}

Vec<BufferRef> Program::run(std::span<const BufferRef> inputs, std::span<void* const> into, std::span<BufferRef> own) {
  const Span span("run", "run program");
  SmallVec<void*, 96> pointers(fixed_.begin(), fixed_.end());
  Vec<BufferRef> results(outputs_.size());
  const GraphBody& g = fusion_.graph;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) pointers[static_cast<std::size_t>(g.inputs[i])] = inputs[i]->data;
  for (const auto& [v, i] : over_inputs_) pointers[static_cast<std::size_t>(v)] = inputs[i]->data;
  BufferRef arena;
  try {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].slot_output >= 0) {
        const std::size_t bytes = plan_.slots[static_cast<std::size_t>(outputs_[i].var)].bytes;
        results[i] = !into.empty() && into[i] ? borrow_memory(into[i], bytes) : allocate(bytes, "a result");
        pointers[static_cast<std::size_t>(outputs_[i].var)] = results[i]->data;
      }
    if (plan_.arena_bytes) arena = allocate(plan_.arena_bytes, "intermediate results");
  } catch (const Error& error) {
    fail(error.kind(), error.what(), line_of_largest());
  }
  place_in(pointers.data(), arena);
  Vec<BufferRef> produced;
  if (makes_buffers_) produced.resize(pointers.size());

  std::uint64_t parallel = 0;
  const std::uint64_t measured = measured_run();
  for (const Step& step : steps_) {
    const StepClock clock(measured, step.time);
    if (step.kind == Step::Kind::control || step.kind == Step::Kind::equation) {
      const Span of_step("run", step.name, step.details);
      run_equation(step, pointers.data(), produced, inputs, own);
      if (step.kernel) run_kernel(step, pointers.data(), 0, step.rounds);
    } else {
      parallel += run_step(step, pointers.data(), {});
    }
    for (Var v : step.released) produced[static_cast<std::size_t>(v)] = {};
  }

  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (results[i]) continue;
    const auto v = static_cast<std::size_t>(outputs_[i].var);
    const BufferPlan::Slot& s = plan_.slots[v];
    using Kind = BufferPlan::Slot::Kind;
    if (s.kind == Kind::input) results[i] = inputs[static_cast<std::size_t>(s.index)];
    else if (s.kind == Kind::constant) results[i] = g.equations[static_cast<std::size_t>(s.index)].as<ConstantParams>().buffer;
    else if (s.kind == Kind::produced) results[i] = produced[v];
    else results[i] = results[static_cast<std::size_t>(s.index)];
  }
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (!into[i]) continue;
    if (results[i]->data != into[i] && results[i]->bytes) std::memcpy(into[i], results[i]->data, results[i]->bytes);
    results[i] = {};
  }
  count_runs(1, parallel);
  return results;
}

// Where results begin in others' memory and in the arena, once those have addresses.
void Program::place_in(void** pointers, const BufferRef& arena) const {
  for (const Placed& p : placed_) {
    void* const block = p.output >= 0 ? pointers[static_cast<std::size_t>(outputs_[static_cast<std::size_t>(p.output)].var)]
                        : arena       ? arena->data
                                      : nullptr;
    if (block) pointers[static_cast<std::size_t>(p.var)] = static_cast<char*>(block) + p.offset;  // none where all that lies there is empty
  }
}

bool Program::run_step(const Step& step, void* const* pointers, const PackedOperands& packed) {
  const Span span("run", step.name, step.details);
  switch (step.kind) {
    case Step::Kind::kernel:
      if (step.copied_to >= 0 && pointers[static_cast<std::size_t>(step.copied_from)] == pointers[static_cast<std::size_t>(step.copied_to)]) break;
      if (step.parallel && thread_count() > 1 && (step.wakes || others_ready())) {
        parallel_ranges(step.rounds, step.grain, [&](std::int64_t begin, std::int64_t end) { run_kernel(step, pointers, begin, end); }, step.ranges);
        return true;
      }
      run_kernel(step, pointers, 0, step.rounds);
      break;
    case Step::Kind::product: {
      const auto on_rows = [&](std::int64_t begin, std::int64_t end, const void* rows) {
        if (rows) rows = static_cast<const char*>(rows) - begin * step.row_bytes;
        run_kernel(step, pointers, begin / step.row_group, end / step.row_group, rows);
      };
      step.product->run(pointers[static_cast<std::size_t>(step.operands[0])], pointers[static_cast<std::size_t>(step.operands[1])],
                        pointers[static_cast<std::size_t>(step.operands[2])],
                        step.kernel ? RowsDone(on_rows, step.row_group, step.rows_alone) : RowsDone(), packed);
      break;
    }
    case Step::Kind::sort: {
      SmallVec<void*, 8> buffers;
      for (Var v : step.operands) buffers.push_back(pointers[static_cast<std::size_t>(v)]);
      sort_rows(step.sort, buffers.data(), buffers.data() + buffers.size() / 2);
      break;
    }
    case Step::Kind::linalg: run_matrices(step, pointers); break;
    case Step::Kind::fft: run_transform(step, pointers); break;
    case Step::Kind::control:
    case Step::Kind::equation: break;  // these make buffers
  }
  return false;
}

Program::Packed Program::pack(std::span<const void* const> inputs) const {
  Packed packed;
  const auto address = [&](Var v) -> const void* {
    const BufferPlan::Slot& s = plan_.slots[static_cast<std::size_t>(v)];
    if (s.kind == BufferPlan::Slot::Kind::constant) return fixed_[static_cast<std::size_t>(v)];
    return s.kind == BufferPlan::Slot::Kind::input ? inputs[static_cast<std::size_t>(s.index)] : nullptr;
  };
  for (const Step& step : steps_) {
    packed.emplace_back();
    if (step.kind != Step::Kind::product) continue;
    const void *a = address(step.operands[0]), *b = address(step.operands[1]);
    if (a || b) packed.back() = step.product->pack(a, b);
  }
  return packed;
}

void Program::open(Frame& frame) const {
  frame.pointers.assign(fixed_.begin(), fixed_.end());
  if (plan_.arena_bytes) frame.arena = allocate(plan_.arena_bytes, "intermediate results of a loop");
}

void Program::run(Frame& frame, std::span<const void* const> inputs, std::span<void*> results) const {
  const GraphBody& g = fusion_.graph;
  void** const pointers = frame.pointers.data();
  // Inputs are read only, but for those that overwritten() names.
  for (std::size_t i = 0; i < g.inputs.size(); ++i) pointers[g.inputs[i]] = const_cast<void*>(inputs[i]);
  for (const auto& [v, i] : over_inputs_) pointers[v] = const_cast<void*>(inputs[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].slot_output >= 0) pointers[outputs_[i].var] = results[i];
  place_in(pointers, frame.arena);
  const PackedOperands none;
  const std::uint64_t measured = measured_run();
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const StepClock clock(measured, steps_[k].time);
    frame.parallel += run_step(steps_[k], pointers, frame.packed ? (*frame.packed)[k] : none);
  }
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
  if (interpreted_) count(c.interpreter_steps, runs * interpreted_);
}

Where Program::line_of_largest() const {
  const GraphBody& g = fusion_.graph;
  Where line = thread_state().where;
  double most = -1;  // sizes that no memory holds must not overflow
  for (const Equation& e : g.equations)
    for (Var v : e.outputs) {
      double bytes = static_cast<double>(size_of(g.aval(v).dtype));
      for (std::int64_t extent : g.aval(v).shape) bytes *= static_cast<double>(extent);
      if (!e.where.file || bytes <= most) continue;
      most = bytes;
      line = e.where;
    }
  return line;
}

void Program::run_kernel(const Step& step, void* const* pointers, std::int64_t begin, std::int64_t end, const void* rows) {
  if (begin == end) return;  // kernels take it that there is a round
  SmallVec<void*, 64> buffers;
  buffers.reserve(step.slots.size());
  for (Var v : step.slots) buffers.push_back(rows && v == step.operands[2] ? const_cast<void*>(rows) : pointers[static_cast<std::size_t>(v)]);
  step.kernel(buffers.data(), step.arguments.data(), begin, end);
}

namespace program_cost {
// Is `v` an operand of `e` in one place only?
bool once(const Equation& e, Var v) { return std::count(e.inputs.begin(), e.inputs.end(), v) == 1; }
}  // namespace program_cost

void Program::run_equation(const Step& step, void** pointers, Vec<BufferRef>& produced, std::span<const BufferRef> inputs,
                           std::span<BufferRef> own) const {
  const GraphBody& g = fusion_.graph;
  const Equation& e = g.equations[static_cast<std::size_t>(step.equation)];
  Vec<BufferRef> operands;
  for (Var o : e.inputs) {
    const auto v = static_cast<std::size_t>(fusion_.storage[static_cast<std::size_t>(o)]);
    const BufferPlan::Slot& s = plan_.slots[v];
    const auto among = [&](const Vec<Var>& list) { return std::find(list.begin(), list.end(), static_cast<Var>(v)) != list.end(); };
    const auto index = static_cast<std::size_t>(s.index);
    // What ends here becomes the loop's own, which may write over it.
    if (s.kind == BufferPlan::Slot::Kind::input) operands.push_back(!own.empty() && among(step.handed_over) ? std::move(own[index]) : inputs[index]);
    else if (s.kind == BufferPlan::Slot::Kind::produced)
      operands.push_back(among(step.released) && program_cost::once(e, o) ? std::move(produced[v]) : produced[v]);
    else operands.push_back(borrow_memory(pointers[v], g.aval(o).bytes()));
  }
  Vec<BufferRef> made;
  Vec<const Buffer*> planned(operands.size(), nullptr);  // operands in memory that is written again
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const BufferPlan::Slot::Kind kind = plan_.slots[static_cast<std::size_t>(fusion_.storage[static_cast<std::size_t>(e.inputs[k])])].kind;
    if (kind != BufferPlan::Slot::Kind::input && kind != BufferPlan::Slot::Kind::produced) planned[k] = operands[k].get();
  }
  if (step.control) {
    made = step.control->run(std::move(operands));
  } else {
    for (BufferRef& b : interpret_equation(e, g, operands)) made.push_back(std::move(b));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto v = static_cast<std::size_t>(e.outputs[i]);
    // A loop of no rounds hands on its operand.
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
