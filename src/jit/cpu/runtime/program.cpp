// Program: building one from a Graph. program_run.cpp runs it, program_report.cpp describes it.
#include "program.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/record/node.hpp"
#include "../../fusion/epilogue.hpp"
#include "../../fusion/sort_spec.hpp"
#include "../../passes/pipeline.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../report/dump.hpp"
#include "../../services/background.hpp"
#include "../../services/counters.hpp"
#include "../../services/planning.hpp"
#include "../../services/threads.hpp"

namespace vt::detail {

namespace program_cost {

// Of what wakes another thread, this much is worth sharing with one that is awake.
constexpr double worth_threads = 0.25;
constexpr std::uint64_t worth_a_range = 4096;

std::uint64_t iterations_of(const Nest& nest, const SmallVec<int, 6>& loops) {
  std::uint64_t n = 1;
  for (int l : loops) {
    const NestLoop& loop = nest.loops[l];
    n *= static_cast<std::uint64_t>(std::max<std::int64_t>(loop.extent, 0));
  }
  return n;
}

}  // namespace program_cost

/// The host, as the passes see it.
class HostTarget : public PipelineTarget {
 public:
  HostTarget(const Backend& backend, const MachineCosts& now, bool rows)
      : backend_(backend), rows_(rows) {
    costs = now;
    fuse.vector_bytes = backend.vector_bytes();
    frame = most_in_frame;
  }
  bool chains(const MatmulSpec& first, const MatmulSpec& second) const override {
    return backend_.chains(first, second);
  }

  // What these make has no number of rows.
  bool wants(PassName pass) const override {
    using enum PassName;
    return !rows_ || (pass != form_sparse_regions && pass != form_fused_regions &&
                      pass != form_single_regions && pass != chain_products &&
                      pass != give_results_stages && pass != pair_kernels);
  }

 private:
  const Backend& backend_;
  const bool rows_;
};

Program::Program(const GraphBody& graph, const Backend& backend, const OwnedInputs& owned,
                 std::int64_t most_rows)
    : vector_bytes_(backend.vector_bytes()),
      costs_(backend.costs()),
      most_rows_(most_rows),
      planned_(Planning::now()) {
  const Span span("compile", "compile program");
  {
    const Span fusing("compile", "fuse");
    PipelineResult result = run_pipeline(graph, HostTarget(backend, costs_, most_rows > 0), owned);
    fusion_ = std::move(result.fusion);
    passes_ = std::move(result.notes);
  }
  compile_steps(backend);
  const Vec<bool> within_results = most_rows_ > 0 ? led_by_rows() : Vec<bool>();
  plan_ = plan_buffers(fusion_, owned, {within_results.begin(), within_results.size()});
  const GraphBody& g = fusion_.graph;
  fixed_.assign(g.avals.size(), nullptr);
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == BufferPlan::Slot::Kind::constant)
      fixed_[v] = g.equations[s.index].as<ConstantParams>().buffer->data;
    if (s.kind == BufferPlan::Slot::Kind::input && g.inputs[s.index] != static_cast<Var>(v)) {
      over_inputs_.emplace_back(static_cast<Var>(v), static_cast<std::size_t>(s.index));
      overwritten_.push_back(static_cast<std::size_t>(s.index));
    }
    if (s.kind == BufferPlan::Slot::Kind::arena)
      placed_.push_back({static_cast<Var>(v), -1, s.offset});
    if (s.kind == BufferPlan::Slot::Kind::in_output)
      placed_.push_back({static_cast<Var>(v), s.index, s.offset});
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const Var v = fusion_.storage[g.outputs[i]];
    const BufferPlan::Slot& s = plan_.slots[v];
    outputs_.push_back(
        {v, s.kind == BufferPlan::Slot::Kind::output && s.index == static_cast<int>(i)
                ? static_cast<int>(i)
                : -1});
  }
  for (std::size_t k = 0; k + 1 < steps_.size(); ++k)
    if (fusion_.steps[k].pair_rows > 0) pair(k);
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    steps_[k].released = plan_.released[k];
    steps_[k].handed_over = plan_.handed_over[k];
    launches_ += steps_[k].kind == Step::Kind::kernel;
    products_ += steps_[k].kind == Step::Kind::product;
    products_ += steps_[k].chain != nullptr;
    chains_ += steps_[k].chain != nullptr;
    epilogues_ += steps_[k].has_epilogue();
    interpreted_ +=
        steps_[k].kind == Step::Kind::equation && !is_unset(g.equations[steps_[k].equation]);
    const bool makes_buffers =
        steps_[k].kind == Step::Kind::control || steps_[k].kind == Step::Kind::equation;
    makes_buffers_ = makes_buffers_ || makes_buffers;
    const bool region = steps_[k].control && g.equations[steps_[k].equation].op == Op::fused_region;
    regions_ += region;
    loops_ += steps_[k].control && !region;
    bytes_ += steps_[k].bytes;
  }
  by_rows_ = most_rows_ > 0 && plain() && cut_by_rows();
  if (timeline_wanted()) name_steps();
  if (planned_) return;
  count(counters().programs);
  backend.measure_costs();
  if (!dump_folder().empty()) {
    const std::string text = to_text(g);
    dump_text(short_name(text) + ".program.txt", text + "\n" + explain_steps());
  }
}

void Program::compile_steps(const Backend& backend) {
  const BackgroundPause pause;
  const std::size_t count_of_steps = fusion_.steps.size();
  steps_.resize(count_of_steps);
  // What the backend makes does not depend on each other: with several to make, threads share the
  // work. Products first, which take longest.
  Vec<Function<void()>> makes, kernels;
  // Of little work in all, for which no other thread is woken, code runs unoptimised until the
  // background thread has made better. Where there is more, that thread would take a processor from
  // the first calls, and they would lose more than the first one gains.
  std::uint64_t work = 0;
  bool hurry = false;
  const auto lanes_of = [&](DType d) {
    return static_cast<std::uint64_t>(backend.vector_bytes()) / size_of(d);
  };
  // Asked before anything is compiled: the product of a step with an epilogue sets its work anew.
  std::vector<char> in_hurry(count_of_steps);
  const auto take_kernel = [this, &backend, &hurry, &in_hurry](std::size_t k, bool wait) {
    const CodeLabelScope label(label_of(steps_[k], true));
    Step& step = steps_[k];
    const FusedStep& fused = fusion_.steps[k];
    step.kernel = backend.compile(fused.nest, fused.schedule, hurry || in_hurry[k], wait);
    step.arguments.append(step.kernel.numbers.begin(), step.kernel.numbers.end());
  };
  const auto make_kernel = [&](std::size_t k) {
    const std::uint64_t vector_work =
        steps_[k].work / static_cast<std::uint64_t>(fusion_.steps[k].schedule.simd_lanes);
    work += vector_work;
    in_hurry[k] = is_long_for_its_work(static_cast<double>(fusion_.steps[k].nest.values.size()),
                                       static_cast<double>(vector_work));
    kernels.push_back([take_kernel, k] { take_kernel(k, false); });
  };
  for (std::size_t k = 0; k < count_of_steps; ++k) {
    const FusedStep& fused = fusion_.steps[k];
    Step& step = steps_[k];
    if (fused.equation < 0) {
      prepare_kernel(step, fused);
      make_kernel(k);
      continue;
    }
    const Equation& e = fusion_.graph.equations[fused.equation];
    const GraphBody& g = fusion_.graph;
    step.kind = Step::Kind::equation;
    step.equation = fused.equation;
    if (fused.row_loop >= 0) {
      prepare_kernel(step, fused);
      make_kernel(k);
      step.bytes -= g.aval(e.outputs[0]).bytes();  // read while it is in the cache
    }
    for (Var v : e.outputs) step.bytes += g.aval(v).bytes();
    for (Var v : e.inputs) step.bytes += g.aval(v).bytes();
    if (fused.then >= 0) {
      make_chain(step, fused, backend, makes);
      work += least_waking_work;
      continue;
    }
    if (may_be_register_kernel(e.op) || e.op == Op::recursive_call || e.op == Op::batched_call) {
      step.kind = Step::Kind::control;
      const CodeLabelScope label(label_of(step, false));
      step.control = std::make_shared<const ControlRunner>(fusion_, e, backend);
      const auto is_read = [&](Var v) {
        const auto among = [v](const auto& list) {
          return std::find(list.begin(), list.end(), v) != list.end();
        };
        return among(fusion_.graph.outputs) ||
               any_of(fusion_.graph.equations,
                      [&](const Equation& other) { return among(other.inputs); });
      };
      const Kernel* kernel = most_rows_ > 0 || step.control->lane_count() < 0
                                 ? step.control->kernel_of_rows()
                                 : nullptr;
      if (kernel && !any_of(e.outputs, [&](Var v) { return !is_read(v); })) {
        step.kind = Step::Kind::rows;
        step.kernel = *kernel;
        step.iterations = std::max<std::int64_t>(step.control->lane_count(), 1);
        for (const auto& list : {std::span<const Var>(e.inputs.begin(), e.inputs.size()),
                                 std::span<const Var>(e.outputs.begin(), e.outputs.size())})
          for (Var v : list) step.operands.push_back(fusion_.storage[v]);
        fusion_.steps[k].writes_given_memory = true;
      }
      continue;
    }
    if (e.op == Op::sort) {
      prepare_sort(step, e);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (e.op == Op::fft) {
      step.kind = Step::Kind::fft;
      step.fft = fft_spec(e.as<FftParams>(), g.aval(e.inputs[0]));
      step.operands.push_back(fusion_.storage[e.inputs[0]]);
      step.operands.push_back(e.outputs[0]);
      step.work = static_cast<std::uint64_t>(step.fft.operations());
      step.alone = costs_.nanoseconds(step.work, 0);
      share(step);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (family_of(e.op) == Family::linalg) {
      makes.push_back(
          [this, &step, &e, &backend, &hurry] { prepare_linalg(step, e, backend, hurry); });
      const LinalgSpec spec = linalg_spec(g, e);
      work += static_cast<std::uint64_t>(spec.operations() * spec.batch) / lanes_of(spec.dtype);
      fusion_.steps[k].writes_given_memory = true;
    }
    if (e.op == Op::conv_general) {
      work += least_waking_work;
      makes.push_back([this, &step, &fused, &backend] {
        const CodeLabelScope label(label_of(step, false));
        const ConvSpec* conv = fused.convolution.get();
        if (!conv || conv->multiply_adds() == 0) return;
        step.product = backend.convolution(*conv);
        if (!step.product) return;
        step.work = static_cast<std::uint64_t>(2 * conv->multiply_adds());
        step.row_bytes = conv->columns.extent * static_cast<std::int64_t>(size_of(conv->result));
      });
    }
    if (e.op != Op::dot_general) continue;
    if (!fused.product) continue;
    MatmulSpec spec = *fused.product;
    if (spec.batch * spec.m * spec.n * spec.k == 0) continue;
    spec.any_rows = most_rows_ > 0 && (spec.batch * spec.m) % most_rows_ == 0;
    // A vector's worth of element-wise work is about one of multiply-adds.
    if (fused.row_loop >= 0)
      spec.work_after = static_cast<std::int64_t>(step.work) / (spec.batch * spec.m * spec.n);
    work += static_cast<std::uint64_t>(spec.batch * spec.m * spec.n * spec.k) /
            lanes_of(spec.accumulate);
    makes.push_back([this, &step, spec, &backend, &hurry] {
      const CodeLabelScope label(label_of(step, false));
      step.product = backend.product(spec, hurry);
      if (step.product)
        step.work = static_cast<std::uint64_t>(2 * spec.batch * spec.m * spec.n * spec.k);
    });
  }

  hurry = work < least_waking_work;
  for (Function<void()>& make : kernels)
    if (!planned_) makes.push_back(std::move(make));
  if (planned_) {  // nothing is compiled, and other threads do not know that
    for (const Function<void()>& make : makes) make();
    makes.clear();
  }
  parallel_ranges(
      static_cast<std::int64_t>(makes.size()), 1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) makes[i]();
      },
      static_cast<int>(makes.size()));
  // Those for which another thread was making the code.
  for (std::size_t k = 0; k < count_of_steps && !planned_; ++k)
    if (!steps_[k].slots.empty() && !steps_[k].kernel) take_kernel(k, true);

  for (std::size_t k = 0; k < count_of_steps; ++k) {
    Step& step = steps_[k];
    if (!step.product && !step.chain) continue;  // not one that the backend has a kernel for
    step.kind = Step::Kind::product;
    step.row_group = fusion_.steps[k].row_group;
    step.rows_alone = fusion_.steps[k].rows_alone;
    for (int equation : fusion_.steps[k].equations()) {
      const Equation& e = fusion_.graph.equations[equation];
      for (Var v : {e.inputs[0], e.inputs[1], e.outputs[0]})
        step.operands.push_back(fusion_.storage[v]);
    }
    fusion_.steps[k].writes_given_memory = true;
  }
}

// What the second kernel writes must not lie where the first one still reads or writes.
void Program::pair(std::size_t k) {
  const auto slot = [&](Var v) { return plan_.slots[v]; };
  const auto overlap = [&](Var v, Var w) {
    using Kind = BufferPlan::Slot::Kind;
    const BufferPlan::Slot a = slot(v), b = slot(w);
    if (v == w) return true;
    if (a.kind == Kind::arena && b.kind == Kind::arena)
      return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    const auto is_output = [](Kind kind) {
      return kind == Kind::output || kind == Kind::in_output;
    };
    return a.index == b.index && ((is_output(a.kind) && is_output(b.kind)) ||
                                  (a.kind == Kind::input && b.kind == a.kind));
  };
  Step &first = steps_[k], &second = steps_[k + 1];
  const FusedStep& fused = fusion_.steps[k + 1];
  for (std::size_t b = 0; b < second.slots.size(); ++b)
    if (fused.nest.buffers[b].written &&
        any_of(first.slots, [&](Var v) { return overlap(v, second.slots[b]); }))
      return;
  first.pair = &second;
  first.pair_rows = fusion_.steps[k].pair_rows;
  second.is_paired = true;
}

void Program::make_chain(Step& step, const FusedStep& fused, const Backend& backend,
                         Vec<Function<void()>>& makes) const {
  const GraphBody& g = fusion_.graph;
  const MatmulSpec first = *fused.product, second = *fused.product_then;
  const Equation& then = g.equations[fused.then];
  step.then = fused.then;
  // What lies between the products stays in caches.
  step.bytes -=
      g.aval(g.equations[fused.equation].outputs[0]).bytes() + g.aval(fused.handed_on).bytes();
  step.bytes += g.aval(then.inputs[1]).bytes() + g.aval(then.outputs[0]).bytes();
  makes.push_back([this, &step, &backend, first, second] {
    const CodeLabelScope label(label_of(step, false));
    step.chain = backend.chain(first, second);
    step.work = static_cast<std::uint64_t>(2 * first.batch * first.m *
                                           (first.n * first.k + second.n * second.k));
  });
}

void Program::prepare_sort(Step& step, const Equation& e) const {
  step.kind = Step::Kind::sort;
  step.sort = sort_spec(fusion_, e);
  for (Var v : e.inputs) step.operands.push_back(fusion_.storage[v]);
  for (Var v : e.outputs) step.operands.push_back(v);
}

void Program::prepare_linalg(Step& step, const Equation& e, const Backend& backend,
                             bool hurry) const {
  using namespace program_cost;
  const GraphBody& g = fusion_.graph;
  step.kind = Step::Kind::linalg;
  step.linalg = linalg_spec(g, e);
  for (Var v : e.inputs) step.operands.push_back(fusion_.storage[v]);
  for (Var v : e.outputs) step.operands.push_back(v);
  for (Var v : step.operands) {
    const std::int64_t batch = std::max<std::int64_t>(step.linalg.batch, 1);
    step.arguments.push_back(static_cast<std::int64_t>(g.aval(v).bytes()) / batch);
  }
  const CodeLabelScope label(label_of(step, false));
  step.kernel = backend.compile_matrices(step.linalg, step.lanes, hurry);
  const std::int64_t block = std::max(step.lanes, 1),
                     each = std::max<std::int64_t>(step.linalg.operations() / block, 1);
  step.work = static_cast<std::uint64_t>(each * step.linalg.batch);
  step.iterations = step.linalg.batch / block * block;
  step.grain =
      (std::max<std::int64_t>(static_cast<std::int64_t>(worth_a_range) / each, 1) + block - 1) /
      block * block;
  step.alone = costs_.nanoseconds(step.work, 0);
  share(step);
}

void Program::share(Step& step) const {
  step.parallel = step.alone >= program_cost::worth_threads * costs_.worth_waking();
  step.wakes = step.alone >= costs_.worth_waking();
}

void Program::prepare_kernel(Step& step, const FusedStep& fused) const {
  const Schedule& schedule = fused.schedule;
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
    const NestValue& v = nest.values[s.value];
    if (v.kind == NestValue::Kind::load && v.index == s.index && s.mask < 0 && v.mask < 0 &&
        v.dtype == nest.buffers[s.buffer].dtype) {
      step.copied_from = fused.buffers[v.buffer];
      step.copied_to = fused.buffers[s.buffer];
    }
  }
  const std::uint64_t shared = iterations_of(nest, nest.shared);
  std::uint64_t most = 1;
  for (const NestStage& s : nest.stages) most = std::max(most, iterations_of(nest, s.loops));
  std::uint64_t weight = 1;
  double cost = 1;  // the same by this machine's numbers
  for (const NestValue& v : nest.values) {
    if (v.kind != NestValue::Kind::op && v.kind != NestValue::Kind::load) continue;
    weight +=
        v.kind == NestValue::Kind::op ? static_cast<std::uint64_t>(op_weight(v.op, v.dtype)) : 1;
    cost += v.kind == NestValue::Kind::op ? op_cost(v.op, v.dtype, costs_) : 1;
  }
  step.work = shared * most * weight;
  const std::uint64_t vectors = step.work * static_cast<std::uint64_t>(schedule.registers) /
                                static_cast<std::uint64_t>(schedule.simd_lanes);
  // Of large tables from which few elements are taken, what is taken counts.
  std::uint64_t bytes = 0;
  for (std::size_t b = 0; b < fused.buffers.size(); ++b) {
    if (b < nest.buffers.size() && nest.buffers[b].local > 0) continue;
    const Aval& a = fusion_.graph.aval(fused.buffers[b]);
    bytes += std::min(static_cast<std::uint64_t>(a.bytes()),
                      shared * most * nest.values.size() * size_of(a.dtype));
  }
  step.alone = costs_.nanoseconds(
      static_cast<std::uint64_t>(static_cast<double>(vectors) * cost / static_cast<double>(weight)),
      bytes);
  if (!planned_) {
    Counters& c = counters();
    count(c.fused_ops, fused.fused.size());
    count(c.stages, nest.stages.size());
    for (const NestBuffer& b : nest.buffers) count(c.row_buffers, b.local > 0);
    count(c.parallel_reductions, fused.partial);
  }
  if (schedule.parallel_loop < 0) {
    step.iterations = 1;
    return;
  }
  step.iterations = nest.loops[schedule.parallel_loop].extent;
  share(step);
  const std::uint64_t per_iteration = std::max<std::uint64_t>(
      vectors / static_cast<std::uint64_t>(std::max<std::int64_t>(step.iterations, 1)), 1);
  std::int64_t grain =
      std::max<std::int64_t>(static_cast<std::int64_t>(worth_a_range / per_iteration), 1);
  for (const StageSchedule& s : schedule.stages)
    if (s.vector_loop == schedule.parallel_loop || s.tile_loop == schedule.parallel_loop) {
      // Vectors start at multiples of their length, which the emitter counts on; whole cache lines
      // for each thread besides.
      std::int64_t lanes = schedule.simd_lanes;
      for (const NestStore& w : nest.stores)
        lanes =
            std::max(lanes, 64 / static_cast<std::int64_t>(size_of(nest.buffers[w.buffer].dtype)));
      // So do blocks read those of rows.
      for (const NestValue& v : nest.values)
        if (v.kind == NestValue::Kind::load && s.block_across > 1)
          lanes = std::max(lanes, 64 / static_cast<std::int64_t>(size_of(v.dtype)));
      // In double: sizes that no memory holds are refused later, and must not overflow here.
      const double iterations_per_vector =
          static_cast<double>(step.iterations) / std::max(static_cast<double>(vectors), 1.0);
      grain = std::max<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(worth_a_range) * iterations_per_vector), 1);
      grain = (grain + lanes - 1) / lanes * lanes;
      // Parts of rows that come from far are read the faster the longer they are.
      const bool parts_of_rows =
          s.mode == StageSchedule::Mode::vertical || (s.tile_loop < 0 && s.order.size() > 1);
      if (parts_of_rows && step.bytes > static_cast<std::uint64_t>(scheduling::beyond_near_caches))
        step.ranges = 1;
    }
  step.grain = grain;
}

}  // namespace vt::detail
