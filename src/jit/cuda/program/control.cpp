// DeviceControl: branches and loops on a device whose kernels the host launches.
#include "control.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <vt/detail/message.hpp>

#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/ir/sub_graph.hpp"
#include "../../services/control_memory.hpp"
#include "program.hpp"

namespace vt::detail::cuda {

bool runs_on_device(const GraphBody& graph, const Equation& e) {
  if (!may_be_register_kernel(e.op) || keeps_order(e)) return false;
  return !lanes_of(e) || form_in_registers(alone(graph, e));
}

BufferRef part_of(const BufferRef& whole, std::size_t offset, std::size_t bytes) {
  BufferRef part = borrow_memory(static_cast<char*>(whole->data) + offset, bytes);
  part->device = whole->device;
  part->owner = new BufferRef(whole);
  part->let_go = [](void* owner) { delete static_cast<BufferRef*>(owner); };
  return part;
}

DeviceControl::DeviceControl(const GraphBody& graph, const Equation& e, const CudaDevice& device,
                             bool keep_texts)
    : equation_(e), alone_(alone(graph, e)), device_(device) {
  if (const std::optional<LaneForm> form = form_in_registers(alone_)) {
    const std::string name = formatted("kernel_{}_in_registers", name_of(e.op));
    const std::string text = register_kernel_source(*form, name);
    in_registers_ = device_code(device, text, name);
    lanes_ = form->count;
    most_in_registers_ = form->most_in_registers;
    if (!keep_texts) return;
    register_text_ = text;
    register_work_ = register_work(*form) * static_cast<double>(std::max<std::int64_t>(lanes_, 1));
    return;
  }
  for (const GraphRef& body : bodies_of(e.params)) {
    graphs_.push_back(body);
    bodies_.push_back(
        std::make_shared<CudaProgram>(simplify(*body, SimplifyFor::running), device, true));
  }
  join_into_kernel();
}

// Bodies small enough that one block does them sooner than it would be asked to step by step.
void DeviceControl::join_into_kernel() {
  ReplayList l(false, true);
  Vec<Place> operands, results;
  int base = 0;
  for (std::size_t i = 0; i < alone_.inputs.size(); ++i) operands.push_back({base++, 0});
  for (std::size_t i = 0; i < alone_.outputs.size(); ++i) results.push_back({base++, 0});
  if (!list(l, operands, results)) return;
  const std::string name = formatted("kernel_{}_of_one_block", name_of(equation_.op));
  loop_ = loop_kernel(l, static_cast<std::size_t>(base), name);
  const std::int64_t iterations = equation_.op == Op::scan ? equation_.as<ScanParams>().length : 0;
  if (!is_worth_a_kernel(loop_, iterations, device_.driver().cuGraphAddNode_v2 != nullptr)) return;
  loop_scratch_bytes_ = l.scratch_bytes();
  loop_code_ = device_code(device_, loop_.source, name);
  loop_code_->allow_shared(loop_.grid.shared_bytes);
}

Vec<BufferRef> DeviceControl::run_in_one_kernel(std::span<const BufferRef> operands) const {
  Vec<BufferRef> results;
  for (Var v : alone_.outputs)
    results.push_back(device_.allocate(alone_.aval(v).bytes(), "the results of a loop", &alone_));
  const BufferRef scratch = device_.allocate(loop_scratch_bytes_, "intermediate results", &alone_);
  SmallVec<DevicePtr, 16> addresses;
  for (const BufferRef& b : operands) addresses.push_back(address(*b));
  for (const BufferRef& b : results) addresses.push_back(address(*b));
  addresses.push_back(address(*scratch));
  for (DevicePtr p : loop_.fixed) addresses.push_back(p);
  SmallVec<void*, 16> parameters;
  for (DevicePtr& a : addresses) parameters.push_back(&a);
  loop_code_->launch(loop_.grid, parameters.data());
  return results;
}

// Large carries are updated where the results lie.
bool DeviceControl::carried_in_memory(std::size_t result) const {
  const GraphBody& body = *bodies_of(equation_.params).back();
  return result < carries_of(equation_) &&
         body.aval(body.inputs[result]).elements() > most_in_registers_;
}

DeviceCode::Grid DeviceControl::grid_in_registers() const {
  return {lanes_ < 0 ? 1 : (lanes_ + register_kernel_threads - 1) / register_kernel_threads,
          register_kernel_threads, 0};
}

Vec<BufferRef> DeviceControl::run_in_registers(std::span<const BufferRef> operands) const {
  Vec<BufferRef> results;
  for (std::size_t i = 0; i < alone_.outputs.size(); ++i) {
    results.push_back(
        device_.allocate(alone_.aval(alone_.outputs[i]).bytes(), "the results of a loop", &alone_));
    if (carried_in_memory(i))
      device_.copy(address(*results[i]), address(*operands[i]), results[i]->bytes);
  }
  if (lanes_ == 0) return results;
  SmallVec<DevicePtr, 16> addresses;
  for (const BufferRef& b : operands) addresses.push_back(address(*b));
  for (const BufferRef& b : results) addresses.push_back(address(*b));
  SmallVec<void*, 16> parameters;
  for (DevicePtr& a : addresses) parameters.push_back(&a);
  in_registers_->launch(grid_in_registers(), parameters.data());
  return results;
}

Vec<BufferRef> DeviceControl::run(std::span<const BufferRef> operands) const {
  if (in_registers_) return run_in_registers(operands);
  if (loop_code_) return run_in_one_kernel(operands);
  if (equation_.op == Op::scan) return run_scan(operands);
  if (equation_.op == Op::cond) {
    const BufferRef index = device_.download(*operands[0]);
    const auto last = static_cast<std::int64_t>(bodies_.size()) - 1;
    return bodies_[std::clamp<std::int64_t>(*index->as<const std::int32_t>(), 0, last)]->run(
        operands.subspan(1));
  }
  const std::size_t carries = equation_.as<WhileParams>().carries;
  Vec<BufferRef> values(operands.begin(), operands.end());
  while (*device_.download(*bodies_[0]->run(values)[0])->as<const std::uint8_t>()) {
    Vec<BufferRef> next = bodies_[1]->run(values);
    for (std::size_t i = 0; i < carries; ++i) values[i] = std::move(next[i]);
  }
  values.resize(carries);
  return values;
}

Vec<BufferRef> DeviceControl::run_scan(std::span<const BufferRef> operands) const {
  const auto& p = equation_.as<ScanParams>();
  const GraphBody& graph = *graphs_[0];
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  const std::size_t length = p.length;
  const auto bytes = [&](Var v) { return graph.aval(v).bytes(); };
  Vec<BufferRef> values(operands.begin(), operands.end()), results(graph.outputs.size());
  for (std::size_t i = carries; i < results.size(); ++i)
    results[i] =
        device_.allocate(bytes(graph.outputs[i]) * length, "the results of a scan", &alone_);
  for (std::size_t iteration = 0; iteration < length; ++iteration) {
    const std::size_t at = p.reverse ? length - 1 - iteration : iteration;
    for (std::size_t i = carries; i < looped; ++i)
      values[i] = part_of(operands[i], at * bytes(graph.inputs[i]), bytes(graph.inputs[i]));
    Vec<BufferRef> next = bodies_[0]->run(values);
    for (std::size_t i = 0; i < carries; ++i) values[i] = std::move(next[i]);
    for (std::size_t i = carries; i < results.size(); ++i) {
      const std::size_t n = bytes(graph.outputs[i]);
      device_.copy(address(*results[i]) + at * n, address(*next[i]), n);
    }
  }
  for (std::size_t i = 0; i < carries; ++i) results[i] = values[i];
  return results;
}

std::string DeviceControl::describe() const {
  if (loop_code_) return formatted("one kernel of one block of {} threads", loop_.grid.threads);
  if (!in_registers_) return "steered from the host";
  return lanes_ < 0
             ? "one kernel of one thread, its values in registers"
             : formatted("one kernel, its values in registers, a thread for each of {} lanes",
                         lanes_);
}

void DeviceControl::report(Report& report, int depth) const {
  for (const std::shared_ptr<Executable>& body : bodies_) body->report(report, depth);
}

}  // namespace vt::detail::cuda
