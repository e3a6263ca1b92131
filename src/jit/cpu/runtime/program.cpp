// Program: from a Graph to compiled steps. steps.hpp has the kinds of steps, program_run.cpp runs
// them.
#include "program.hpp"

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/ir/printer.hpp"
#include "../../../trace/record/node.hpp"
#include "../../passes/pipeline.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../report/dump.hpp"
#include "../../services/background.hpp"
#include "../../services/counters.hpp"
#include "../../services/planning.hpp"
#include "../../services/threads.hpp"
#include "../products/matmul.hpp"
#include "program_rows.hpp"
#include "steps.hpp"

namespace vt::detail {

/// The host, as the passes see it.
class HostTarget : public PipelineTarget {
 public:
  HostTarget(const MachineCosts& now, bool rows) : rows_(rows) {
    costs = now;
    fuse.vector_bytes = cpu::vector_bytes();
    frame = most_in_frame;
  }
  bool chains(const MatmulSpec& first, const MatmulSpec& second) const override {
    return cpu::chains(first, second);
  }

  // What these make has no number of rows.
  bool wants(PassName pass) const override {
    using enum PassName;
    return !rows_ || (pass != form_sparse_regions && pass != form_fused_regions &&
                      pass != form_single_regions && pass != chain_products &&
                      pass != give_results_stages && pass != pair_kernels);
  }

 private:
  const bool rows_;
};

Program::Program(const GraphBody& graph, const OwnedInputs& owned, std::int64_t most_rows,
                 const MachineCosts& costs)
    : plan_{costs, most_rows, Planning::now(), {}, {}} {
  const Span span("compile", "compile program");
  {
    const Span fusing("compile", "fuse");
    PipelineResult result = run_pipeline(graph, HostTarget(costs, most_rows > 0), owned);
    plan_.fusion = std::move(result.fusion);
    passes_ = std::move(result.notes);
  }
  for (std::size_t k = 0; k < plan_.fusion.steps.size(); ++k) {
    steps_.push_back(make_step(plan_, k));
    const Step& step = *steps_.back();
    plan_.fusion.steps[k].writes_given_memory = !step.makes_buffers();
    makes_buffers_ = makes_buffers_ || step.makes_buffers();
    begins_exchanges_ = begins_exchanges_ || plan_.fusion.steps[k].part == FusedStep::Part::begin;
    counts_.add(step.counts());
  }
  Vec<bool> within_results;
  if (most_rows > 0) {
    // What is as large for any number of rows takes more memory than results of few rows have.
    const ProgramRows rows(plan_.fusion, most_rows);
    for (std::size_t v = 0; v < this->graph().avals.size(); ++v)
      within_results.push_back(rows.come_first(static_cast<Var>(v)) &&
                               rows.has_rows(static_cast<Var>(v)));
  }
  plan_.buffers =
      plan_buffers(plan_.fusion, owned, {within_results.begin(), within_results.size()});
  place_values();
  compile();
  by_rows_ = most_rows > 0 && plain() && cut_by_rows();
  if (timeline_wanted())
    for (const auto& step : steps_) step->take_name();
  if (plan_.only) return;
  count(counters().programs);
  cpu::measure_machine_costs();
  if (!dump_folder().empty()) {
    const std::string text = to_text(this->graph());
    dump_text(short_name(text) + ".program.txt", text + "\n" + explain_steps());
  }
}

void Program::place_values() {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = graph();
  fixed_.assign(g.avals.size(), nullptr);
  for (std::size_t v = 0; v < plan_.buffers.slots.size(); ++v) {
    const Var var = static_cast<Var>(v);
    const BufferPlan::Slot& s = plan_.slot(var);
    if (s.kind == Kind::constant)
      fixed_[v] = g.equations[s.index].as<ConstantParams>().buffer->data;
    if (s.kind == Kind::input && g.inputs[s.index] != var) {
      over_inputs_.emplace_back(var, static_cast<std::size_t>(s.index));
      overwritten_.push_back(static_cast<std::size_t>(s.index));
    }
    if (s.kind == Kind::arena) placed_.push_back({var, -1, s.offset});
    if (s.kind == Kind::in_output) placed_.push_back({var, s.index, s.offset});
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const Var v = plan_.fusion.storage[g.outputs[i]];
    const BufferPlan::Slot& s = plan_.slot(v);
    const bool own = s.kind == Kind::output && s.index == static_cast<int>(i);
    outputs_.push_back({v, own ? static_cast<int>(i) : -1});
  }
  for (std::size_t k = 0; k + 1 < steps_.size(); ++k)
    if (plan_.fusion.steps[k].pair_rows > 0) steps_[k]->pair_with(*steps_[k + 1]);
}

// With several things to compile, threads share the work. While Planning little is made, and other
// threads do not know of it.
void Program::compile() {
  const BackgroundPause pause;
  // Of little work in all, for which no other thread is woken, code runs unoptimised until the
  // background thread has made better. Where there is more, that thread would take a processor from
  // the first calls, and they would lose more than the first one gains.
  std::uint64_t work = 0;
  for (const auto& step : steps_) work += step->vector_work();
  CompileJobs jobs{work < least_waking_work, {}, {}};
  for (const auto& step : steps_) step->compile(jobs);
  for (Function<void()>& job : jobs.then) jobs.first.push_back(std::move(job));
  const auto make = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) jobs.first[i]();
  };
  const auto count = static_cast<std::int64_t>(jobs.first.size());
  if (plan_.only) make(0, count);
  else parallel_ranges(count, 1, make, static_cast<int>(count));
  for (const auto& step : steps_) step->finish_code(jobs.hurry);
}

bool Program::cut_by_rows() {
  const ProgramRows rows(plan_.fusion, plan_.most_rows);
  return rows.along_one_axis() &&
         all_of(steps_, [&](const auto& step) { return step->cut_by_rows(rows); });
}

void Program::report(Report& report, int depth) const {
  const printer::Names names(graph());
  const auto counted = [](std::uint64_t n, const char* one, const char* many) {
    return formatted("{} {}, ", n, n == 1 ? one : many);
  };
  const StepCounts& c = counts_;
  ReportStep head;
  head.depth = depth;
  head.title = "program: " + counted(c.kernels, "kernel", "kernels") +
               counted(c.products, "matrix product", "matrix products") +
               (c.loops ? counted(c.loops, "loop or branch", "loops or branches") : "") +
               (c.regions ? counted(c.regions, "fused region", "fused regions") : "") +
               counted(c.interpreted, "interpreted equation", "interpreted equations") +
               formatted("{} bytes of scratch memory", plan_.buffers.arena_bytes);
  head.graph = &graph();
  head.nest = "passes: " + text_of(passes_) + "\n" + (depth == 0 ? plan_.costs.str() : "");
  report.push_back(std::move(head));
  for (const auto& step : steps_) {
    report.push_back(step->report(names));
    report.back().depth = depth;
    step->report_bodies(report, depth + 1);
  }
}

}  // namespace vt::detail
