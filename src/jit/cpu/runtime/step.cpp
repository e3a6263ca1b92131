// Step: what all kinds have in common, above all how they are shown.
#include "step.hpp"

#include <cstring>

#include <vt/detail/loops.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/ir/printer.hpp"
#include "../../report/dump.hpp"
#include "../../services/control_memory.hpp"

namespace vt::detail {

bool ProgramPlan::stays(Var v, std::size_t same_from) const {
  const BufferPlan::Slot& s = slot(v);
  return s.kind == BufferPlan::Slot::Kind::constant ||
         (s.kind == BufferPlan::Slot::Kind::input && fusion.graph.inputs[s.index] == v &&
          static_cast<std::size_t>(s.index) >= same_from);
}

// Of what wakes another thread, a quarter is worth sharing with one that is awake.
StepThreads::StepThreads(double time, const MachineCosts& costs)
    : alone(time),
      parallel(time >= 0.25 * costs.worth_waking()),
      wakes(time >= costs.worth_waking()) {}

void StepCounts::add(const StepCounts& more) {
  for (auto count :
       {&StepCounts::kernels, &StepCounts::products, &StepCounts::epilogues, &StepCounts::chains,
        &StepCounts::loops, &StepCounts::regions, &StepCounts::interpreted, &StepCounts::bytes})
    this->*count += more.*count;
}

Step::Step(const ProgramPlan& plan, std::size_t number, const char* how)
    : plan_(plan), fused_(plan.fusion.steps[number]), number_(number), how_(how) {
  if (fused_.equation < 0) return;
  for (Var v : equation().inputs) counts_.bytes += bytes_of(v);
  for (Var v : equation().outputs) counts_.bytes += bytes_of(v);
}

Vec<Var> Step::buffers() const {
  Vec<Var> all(fused_.buffers.begin(), fused_.buffers.end());
  for (int e : fused_.equations()) {
    for (Var v : graph().equations[e].inputs) all.push_back(storage(v));
    for (Var v : graph().equations[e].outputs) all.push_back(storage(v));
  }
  return all;
}

Vec<CallSite> Step::lines() const {
  Vec<CallSite> lines;
  const auto add_line = [&](CallSite w) {
    const bool known = any_of(
        lines, [&](CallSite l) { return l.line == w.line && std::strcmp(l.file, w.file) == 0; });
    if (w.file && !known) lines.push_back(w);
  };
  const auto add = [&](int equation) {
    const Equation& e = graph().equations[equation];
    if (e.op != Op::fused_region) return add_line(e.where);
    for (const Equation& inside : e.as<RegionParams>().body->equations) add_line(inside.where);
  };
  for (int e : fused_.equations()) add(e);
  for (int e : fused_.fused) add(e);
  insertion_sort(lines, [](CallSite x, CallSite y) {
    const int files = std::strcmp(x.file, y.file);
    return files != 0 ? files < 0 : x.line < y.line;
  });
  return lines;
}

std::string Step::equation_text() const {
  return describe(equation().op, equation().params) + ", " + std::to_string(counts_.bytes) +
         " bytes";
}

CodeLabel Step::label() const {
  if (!perf_wanted() && !gdb_wanted()) return {};
  return {std::string(name_of(equation().op)), "", equation().where, ""};
}

ReportStep Step::report(const printer::Names& names) const {
  ReportStep r;
  r.number = static_cast<int>(number_);
  r.name = operations();
  r.how = how_;
  r.title = title();
  r.nest = nest_text() + nest_details(names);
  r.lines = lines();
  r.bytes = counts_.bytes;
  r.work = work_;
  r.seconds = time_.seconds();
  r.runs = time_.count;
  r.wide =
      shown() && !shown()->outputs.empty() && size_of(graph().aval(shown()->outputs[0]).dtype) == 8;
  return r;
}

void Step::take_name() {
  name_ = operations();
  const auto member = [&](const std::string& text) {
    details_ += (details_.empty() || text.empty() ? "" : ",") + text;
  };
  if (shown()) member(json_line(shown()->where));
  if (const std::string nest = nest_text(); !nest.empty())
    member(json_member("kernel", short_name(nest)));
  if (fused_.equation >= 0)
    member(json_member("equation", describe(equation().op, equation().params)));
  member("\"bytes\":" + std::to_string(counts_.bytes));
  if (work_) member("\"operations\":" + std::to_string(work_));
}

// --- BufferStep ----------------------------------------------------------------------------------

bool BufferStep::is_handed_over(Var v) const {
  const Vec<Var>& all = plan_.buffers.handed_over[number_];
  return std::find(all.begin(), all.end(), v) != all.end();
}

// Calls of functions that call themselves come by here, so that little lies on the stack meanwhile.
bool BufferStep::run(ProgramRun& run) const {
  keep(results(taken(run)), run);
  return false;
}

// What ends here becomes the loop's own, which may write over it.
Vec<BufferRef> BufferStep::taken(ProgramRun& run) const {
  Vec<BufferRef> operands;
  for (Var o : equation().inputs) {
    const Var v = storage(o);
    const BufferPlan::Slot& s = plan_.slot(v);
    const bool own_now = is_handed_over(v);
    if (s.kind == BufferPlan::Slot::Kind::input)
      operands.push_back(own_now && !run.own.empty() ? std::move(run.own[s.index])
                                                     : run.inputs[s.index]);
    else if (s.kind == BufferPlan::Slot::Kind::produced)
      operands.push_back(own_now ? std::move(run.produced[v]) : run.produced[v]);
    else operands.push_back(borrow_memory(run.pointers[v], bytes_of(o)));
  }
  return operands;
}

// A loop of no iterations hands on its operand, which may lie in memory that is written again.
void BufferStep::keep(Vec<BufferRef> made, ProgramRun& run) const {
  const auto is_planned = [&](Var o) {
    const BufferPlan::Slot::Kind kind = plan_.slot(storage(o)).kind;
    return kind != BufferPlan::Slot::Kind::input && kind != BufferPlan::Slot::Kind::produced;
  };
  const Equation& e = equation();
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i]->capacity == 0 && any_of(e.inputs, [&](Var o) {
          return is_planned(o) && run.pointers[storage(o)] == made[i]->data;
        }))
      made[i] = control_memory::copied(made[i]);
    run.pointers[e.outputs[i]] = made[i]->data;
    run.produced[e.outputs[i]] = std::move(made[i]);
  }
}

}  // namespace vt::detail
