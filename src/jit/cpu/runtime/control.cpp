// ControlStep: its code, its bodies' programs, and how they run where there are no lanes.
#include "control.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/environment.hpp"
#include "../../../trace/base/stack.hpp"
#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/ir/lane_work.hpp"
#include "../../../trace/ir/printer.hpp"
#include "../../../trace/ir/recursive_function.hpp"
#include "../../../trace/ir/sub_graph.hpp"
#include "../../../trace/record/batching.hpp"
#include "../../../trace/record/node.hpp"
#include "../../../trace/record/recursion.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../regions/fused_regions.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../services/control_memory.hpp"
#include "../../services/planning.hpp"
#include "../../services/recursion_exit.hpp"
#include "../../services/threads.hpp"
#include "compiler.hpp"
#include "lane_machine.hpp"
#include "loop_iterations.hpp"
#include "program.hpp"
#include "program_rows.hpp"
#include "recursion_memory.hpp"

namespace vt::detail {

ControlStep::ControlStep(const ProgramPlan& plan, std::size_t number, bool region)
    : BufferStep(plan, number, region ? "region" : "loop or branch"),
      alone_(alone(graph(), equation())) {
  const Equation& e = equation();
  need_stack(e.where);
  ++(region ? counts_.regions : counts_.loops);
  if (lanes_of(e)) lanes_ = *lanes_of(e);
  if (lanes_)
    mapped_.assign(lanes_.mapped.begin() + (e.op == Op::cond ? 1 : 0), lanes_.mapped.end());
  for (const GraphRef& body : bodies_of(e.params)) {
    bodies_.push_back(std::make_unique<Body>());
    bodies_.back()->graph = body;
  }
  carries_ = carries_of(e);
  form_ = in_register_form();
  if (form_ ? form_->side_by_side() &&
                  has_equation(alone_, [](const Equation& x) { return x.op == Op::while_; })
            : e.op == Op::while_ && lanes_.count > 1) {
    LaneBlock loop;
    loop.operations = "while";
    loop.where = e.where;
    loop.queue = false;
    loop.operations_of_lane = form_ ? static_cast<double>(register_cost(*form_))
                                    : LaneWork().of(graph(), e) / static_cast<double>(lanes_.count);
    counters_ = lane_counters({loop});
  }
  if (!form_) return;
  form_->known = known_integers(graph(), plan.fusion.maker, e);
  lanes_first_ = (form_->count >= 0 || region) && form_->functions.empty() &&
                 !any_of(form_->axes, [](int axis) { return axis > 0; });
  for (std::size_t i = 0; i < carries_; ++i)
    if (!form_->in_registers(form_->lane.aval(form_->lane.equations[0].inputs[i])))
      in_place_.push_back(i);
  if (!kernel_of_rows() || (lane_count() >= 0 && plan.most_rows == 0)) return;
  const Vec<int> reads = reads_of(graph());
  only_code_ = all_of(e.outputs, [&](Var v) { return reads[v] > 0; });
}
ControlStep::~ControlStep() = default;

void ControlStep::compile(CompileJobs&) {
  const CodeLabelScope scope(label());
  const Equation& e = equation();
  need_stack(e.where);
  if (form_) {
    if (Planning::now()) return;
    const double work = register_work(*form_);
    const bool hurry = work < least_waking_work ||
                       is_long_for_its_work(static_cast<double>(register_cost(*form_)), work);
    in_registers_ = cpu::compile_register_kernel(*form_, hurry);
    return;
  }
  // compiled when it first runs, as its program has such steps itself
  if (e.op == Op::recursive_call) return;
  if (e.op == Op::batched_call) {
    const auto& p = e.as<BatchedCallParams>();
    bodies_.clear();
    machine_ = std::make_unique<LaneMachine>(p.body, p.lanes, e.where);
    return;
  }
  if (e.op == Op::fused_region)
    fail(ErrorKind::backend, "vt: internal: a fused region that no register kernel holds", e.where);
  // arrays of one lane are arrays of that lane
  if (lanes_.count == 1 && !keeps_order(e)) lanes_ = {};
  if (lanes_) return;
  if (e.op == Op::scan) {
    cut_ = cut_rows(*bodies_[0]->graph, carries_);
    if (cut_ && !program(0, cut_.rows / cut_.parts).plain()) cut_ = {};
  }
  for (std::size_t b = 0; b < bodies_.size() && !cut_; ++b) program(b);
}

std::optional<LaneForm> ControlStep::in_register_form() const {
  const Equation& e = equation();
  if (e.op == Op::batched_call && !lanes_in_registers(e, most_in_frame)) return std::nullopt;
  if (lanes_ && lanes_in_groups() && e.op != Op::fused_region) return std::nullopt;
  return register_form(alone_, most_in_frame);
}

GraphBody ControlStep::graph_for(std::size_t body, std::int64_t lanes) const {
  const GraphBody& g = *bodies_[body]->graph;
  if (!lanes) return simplify(g, SimplifyFor::running);
  return simplify(cut_ ? body_of_rows(g, cut_, lanes) : batch_body(g, mapped_, lanes),
                  SimplifyFor::running);
}

Program& ControlStep::program(std::size_t body, std::int64_t lanes) const {
  const Body& b = *bodies_[body];
  const std::lock_guard lock(b.mutex);
  std::shared_ptr<Program>& made = b.programs[lanes];
  if (!made) {
    // The body of a loop may write its next state over the last.
    const bool loops = (equation().op == Op::while_ && body == 1) || equation().op == Op::scan;
    made = std::make_shared<Program>(graph_for(body, lanes),
                                     loops ? OwnedInputs::carries(carries_) : OwnedInputs());
  }
  return *made;
}

// Deep inside of a derivative that asks again what each call gave, a chain of calls would be run
// anew from each of its places. In a tree, whose depth is the logarithm of its size, that is less
// than what the host takes for a call.
bool ControlStep::is_to_be_remembered() const {
  constexpr int deep = 64;
  return form_ && !form_->functions.empty() && equation().op != Op::batched_call &&
         RecursionMemory::is_wanted() && thread_state().recursion >= deep;
}

bool ControlStep::cut_by_rows(const ProgramRows& rows) {
  of_row_ = rows.of_row(lane_count());
  return of_row_ > 0 && all_of(buffers_, [&](Var v) { return rows.come_first(v); });
}

bool ControlStep::run(ProgramRun& run) const {
  if (!only_code_) return BufferStep::run(run);
  SmallVec<void*, 8> places;
  for (Var v : buffers_) places.push_back(run.pointers[v]);
  const std::int64_t lanes = count_of(run, std::max<std::int64_t>(lane_count(), 1));
  if (lanes > 0) call_kernel(places.data(), 0, lanes);
  return false;
}

void ControlStep::call_kernel(void* const* buffers, std::int64_t begin, std::int64_t end) const {
  if (!counters_) return static_cast<void>(in_registers_(buffers, nullptr, begin, end));
  CountedIterations counted;
  in_registers_(buffers, &counted.executions, begin, end);
  counters_->count(0, counted.lanes, counted.places, 0, counted.executions);
}

Vec<BufferRef> ControlStep::results(Buffers operands) const {
  need_stack(equation().where);
  if (machine_) return machine_->run(operands);
  if (form_ && !is_to_be_remembered()) return run_in_registers(std::move(operands));
  if (equation().op == Op::recursive_call) return run_recursive(operands);
  if (lanes_ && keeps_order(equation())) return run_one_by_one(operands);
  switch (equation().op) {
    case Op::cond: return lanes_ ? run_lane_cond(operands) : run_cond(operands);
    case Op::while_:
      return lanes_ ? run_lane_while(std::move(operands)) : run_while(std::move(operands));
    default: return run_scan(std::move(operands));
  }
}

Vec<BufferRef> ControlStep::run_recursive(std::span<const BufferRef> operands) const {
  const RecursiveFunction& f = *equation().as<RecursionParams>().function;
  const RecursionGuard deeper(f, operands, equation().where);
  std::shared_ptr<Executable> program;
  {
    const std::lock_guard lock(f.mutex);
    if (!f.compiled) f.compiled = compile_graph(*f.body, vt::cpu());
    program = f.compiled;
  }
  return RecursionMemory::results_of(f, operands, [&] { return program->run(operands); });
}

Vec<BufferRef> ControlStep::run_in_registers(Buffers operands) const {
  Buffers results(alone_.outputs.size());
  for (std::size_t i : in_place_) {
    BufferRef& value = operands[i];  // written over
    if (value->capacity == 0 || value->references.load(std::memory_order_acquire) != 1)
      value = control_memory::copied(value);
    results[i] = operands[i];
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i])
      results[i] = allocate(alone_.aval(alone_.outputs[i]).bytes(), "the results of a loop");
  SmallVec<void*, 32> buffers;
  for (const BufferRef& b : operands) buffers.push_back(b->data);
  for (const BufferRef& b : results) buffers.push_back(b->data);
  if (!form_->functions.empty()) {
    run_recursions(buffers.data());
  } else if (form_->sums) {
    run_sums(buffers);
  } else if (form_->count < 0) {
    call_kernel(buffers.data(), 0, 1);
  } else {
    constexpr std::int64_t grain = 64;  // whole vectors, whole cache lines
    parallel_ranges(
        form_->count, grain,
        [&](std::int64_t begin, std::int64_t end) {
          if (begin < end) call_kernel(buffers.data(), begin, end);
        },
        4, Wake::when_long);
  }
  return results;
}

/// Sums of parts of equal length, in pairs.
template <class T>
static void add_parts(const T* parts, std::int64_t count, std::int64_t n, double* sums) {
  if (count == 1) return static_cast<void>(std::copy_n(parts, n, sums));
  const std::int64_t half = count / 2;
  Vec<double> other(n);
  add_parts(parts, half, n, sums);
  add_parts(parts + half * n, count - half, n, other.data());
  for (std::int64_t i = 0; i < n; ++i) sums[i] += other[i];
}

void ControlStep::run_sums(SmallVec<void*, 32>& buffers) const {
  constexpr std::int64_t rows = rows_of_a_part;
  const std::int64_t parts = parts_of_sums();
  const std::size_t operands = equation().inputs.size(), sums = equation().outputs.size();
  Vec<BufferRef> partial;
  for (std::size_t k = 0; k < sums; ++k)
    partial.push_back(allocate(alone_.aval(alone_.outputs[k]).bytes() * parts, "parts of sums"));
  parallel_ranges(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    SmallVec<void*, 32> own = buffers;
    for (std::int64_t part = begin; part < end; ++part) {
      for (std::size_t k = 0; k < sums; ++k)
        own[operands + k] =
            partial[k]->as<std::byte>() + part * alone_.aval(alone_.outputs[k]).bytes();
      call_kernel(own.data(), part * rows, std::min((part + 1) * rows, form_->count));
    }
  });
  for (std::size_t k = 0; k < sums; ++k) {
    const Aval& a = alone_.aval(alone_.outputs[k]);
    const std::int64_t n = a.elements();
    Vec<double> all(n);
    const auto put = [&]<class T>(T) {
      add_parts(partial[k]->as<const T>(), parts, n, all.data());
      for (std::int64_t i = 0; i < n; ++i)
        static_cast<T*>(buffers[operands + k])[i] =
            static_cast<T>(all[i] + static_cast<const T*>(buffers[k])[i]);
    };
    if (a.dtype == DType::f64) put(double());
    else if (a.dtype == DType::f32) put(float());
    else std::memset(buffers[operands + k], 0, a.bytes());  // a counter, which nothing reads
  }
}

void ControlStep::run_recursions(void* const* buffers) const {
  constexpr std::int64_t grain = 16, frame = 128 << 10;  // bytes that a call may take
  const std::int64_t depth = thread_state().recursion;
  const auto address = [](const void* p) { return reinterpret_cast<std::int64_t>(p); };
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    SmallVec<std::int64_t, 8> calls;
    calls.push_back(begin);
    calls.push_back(depth);
    calls.push_back(stack_end() ? address(stack_end() + frame) : 0);
    for (const BufferRef& c : form_->constants) calls.push_back(address(c->data));
    const std::optional<TooDeep> why =
        run_recursion([&] { in_registers_(buffers, calls.data(), begin, end); });
    if (!why) return;
    const std::string& name = form_->functions[why->function].users_name;
    const std::string start =
        form_->count < 0 ? start_of_recursion(buffers) : lane_that_runs(calls[0], buffers);
    if (why->of_stack) fail_stack_too_small(name, why->depth, start, equation().where);
    fail_too_deep(name, why->depth, start, equation().where);
  };
  if (form_->count < 0) run(0, 1);
  else parallel_ranges(form_->count, grain, run, 4, Wake::when_long);
}

std::string ControlStep::start_of_recursion(const void* const* buffers) const {
  const bool begins = equation().op == Op::recursive_call;
  return recursion_start(begins ? equation().as<RecursionParams>().function : nullptr,
                         [&](std::size_t i) { return buffers[i]; });
}

std::string ControlStep::lane_that_runs(std::int64_t lane, const void* const* buffers) const {
  Vec<Aval> of_lane;
  Vec<const std::byte*> begin;
  for (std::size_t i = equation().op == Op::cond ? 1 : 0; i < alone_.inputs.size(); ++i) {
    if (form_->axes[i] != 0) continue;
    Aval a = alone_.aval(alone_.inputs[i]);
    a.shape.erase(a.shape.begin());
    of_lane.push_back(a);
    begin.push_back(static_cast<const std::byte*>(buffers[i]));
  }
  const Lanes& lanes =
      equation().op == Op::batched_call ? equation().as<BatchedCallParams>().lanes : lanes_;
  return printer::lane_text(lanes, lane, of_lane, [&](std::size_t i) {
    return begin[i] + static_cast<std::size_t>(lane) * of_lane[i].bytes();
  });
}

Vec<BufferRef> ControlStep::run_cond(std::span<const BufferRef> operands) const {
  const auto last = static_cast<std::int64_t>(bodies_.size()) - 1;
  const auto index = std::clamp<std::int64_t>(*operands[0]->as<const std::int32_t>(), 0, last);
  return program(static_cast<std::size_t>(index)).run(operands.subspan(1));
}

Vec<BufferRef> ControlStep::run_while(Buffers values) const {
  LoopIterations iterations(program(1), carries_, &program(0));
  for (std::size_t i = 0; i < values.size(); ++i)
    i < carries_ ? iterations.begin(i, std::move(values[i])) : iterations.same(i, values[i]->data);
  while (*iterations.ask()) iterations.round();
  values.resize(carries_);
  for (std::size_t i = 0; i < carries_; ++i) values[i] = iterations.own_state(i);
  return values;
}

namespace control_scan {

/// What one element of each operand and result of a scan takes, in bytes.
struct Sizes {
  Vec<std::size_t> element;
  Vec<std::size_t> row;  ///< of a row of it; 0: it is the same for all parts of the rows
};
Sizes sizes_of(const GraphBody& graph, const Vec<Var>& values, const RowCut& cut) {
  Sizes s;
  for (Var v : values) {
    s.element.push_back(graph.aval(v).bytes());
    s.row.push_back(cut && cut.axis[v] >= 0 ? s.element.back() / static_cast<std::size_t>(cut.rows)
                                            : 0);
  }
  return s;
}

}  // namespace control_scan

Vec<BufferRef> ControlStep::run_scan(Buffers values) const {
  const auto& p = equation().as<ScanParams>();
  const GraphBody& graph = *bodies_[0]->graph;
  const std::size_t carries = carries_, looped = carries + p.sequences;
  const std::size_t length = p.length;
  const control_scan::Sizes in = control_scan::sizes_of(graph, graph.inputs, cut_),
                            out = control_scan::sizes_of(graph, graph.outputs, cut_);
  Buffers results(graph.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (i >= carries || cut_)
      results[i] = allocate(out.element[i] * (i < carries ? 1 : length), "the results of a scan");
  // Parts differ by a row at most, so there are two programs, whose products may read what stays
  // the same in different orders.
  Program::Packed packed[2];
  const std::int64_t fewest = cut_.rows / cut_.parts;
  for (std::int64_t more : {0, 1}) {
    if (!cut_ || (more == 1 && cut_.rows % cut_.parts == 0)) continue;
    Vec<const void*> same(values.size(), nullptr);
    for (std::size_t i = looped; i < values.size(); ++i)
      if (in.row[i] == 0) same[i] = values[i]->data;
    packed[more] = program(0, fewest + more).pack(same);
  }
  // All iterations of a part of the rows, or of all of them.
  control_memory::run_parts(cut_.parts, [&](std::int64_t part) {
    const std::size_t first = cut_.first(part);
    const std::int64_t rows = cut_.first(part + 1) - cut_.first(part);
    Program& body = program(0, rows);
    LoopIterations iterations(body, carries, nullptr, cut_ ? &packed[rows - fewest] : nullptr);
    const auto place = [&](const BufferRef& b, std::size_t row) {
      return control_memory::bytes_of(b) + first * row;
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i >= looped) iterations.same(i, place(values[i], in.row[i]));
      else if (i < carries && !cut_) iterations.begin(i, std::move(values[i]));
      else if (i < carries) iterations.begin(i, place(values[i], in.row[i]));
    }
    // What is the same for all parts is written by the first.
    Buffers ignored(results.size());
    for (std::size_t i = carries; i < results.size() && part > 0; ++i)
      if (out.row[i] == 0) ignored[i] = allocate(out.element[i], "the results of a scan");
    for (std::size_t iteration = 0; iteration < length; ++iteration) {
      const std::size_t at = p.reverse ? length - 1 - iteration : iteration;
      for (std::size_t i = carries; i < looped; ++i)
        iterations.input(i, place(values[i], in.row[i]) + at * in.element[i]);
      for (std::size_t i = carries; i < results.size(); ++i)
        iterations.result(
            i, ignored[i] ? ignored[i]->data : place(results[i], out.row[i]) + at * out.element[i]);
      iterations.round();
    }
    for (std::size_t i = 0; i < carries; ++i) {
      if (!cut_) results[i] = iterations.own_state(i);
      else if (part == 0 || out.row[i])
        std::memcpy(place(results[i], out.row[i]), iterations.state(i), body.result_bytes(i));
    }
  });
  return results;
}

std::string ControlStep::title() const {
  return equation().op == Op::fused_region ? equation_text() : Step::title();
}

void ControlStep::report_bodies(Report& report, int depth) const {
  ReportStep note;
  note.depth = depth;
  if (equation().op == Op::recursive_call && !form_)
    note.title = equation().as<RecursionParams>().function->name +
                 " calls itself; its body is a program of its own";
  if (form_)
    note.title = std::string("one function, its values in registers") +
                 (form_->functions.empty() ? "" : ", calls itself") +
                 (form_->count < 0 ? std::string()
                                   : ", " + std::to_string(form_->count) +
                                         (form_->sums                ? " rows summed side by side"
                                          : form_->functions.empty() ? " lanes side by side"
                                                                     : " lanes one by one")) +
                 (in_registers_.optimised() ? "" : ", not optimised yet");
  if (!note.title.empty()) report.push_back(std::move(note));
  if (machine_) machine_->report(report, depth);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const std::lock_guard lock(bodies_[b]->mutex);
    for (const auto& [lanes, program] : bodies_[b]->programs) {
      const std::size_t head = report.size();
      program->report(report, depth);
      report[head].title =
          "sub-graph " + std::to_string(b) +
          (lanes ? " for " + std::to_string(lanes) + (cut_ ? " rows" : " lanes") : "") + ", " +
          (program->overwritten().empty()
               ? ""
               : "carries written over the last state: " +
                     std::to_string(program->overwritten().size()) + ", ") +
          report[head].title;
    }
  }
}

}  // namespace vt::detail
