// CudaProgram: building from a Graph, and running.
#include "program.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/message.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/ir/sub_graph.hpp"
#include "../../../trace/record/devices.hpp"
#include "../../../trace/record/node.hpp"
#include "../../passes/pipeline.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../services/counters.hpp"
#include "../../services/executables.hpp"
#include "../../services/threads.hpp"
#include "../libraries/blas_library.hpp"
#include "../source/element_source.hpp"
#include "../source/supported_ops.hpp"

namespace vt::detail::cuda {

/// A device, as the passes see it.
class DeviceTarget : public PipelineTarget {
 public:
  explicit DeviceTarget(const CudaDevice& device) : device_(device) {
    fuse = {.matrix_products = true,
            .vector_bytes = 64,
            .on_host = false,
            .has_code = has_element_source};
    registers = device_limits();
  }
  // Kernels of libraries take none.
  bool takes_epilogue(const FusedStep& s) const override {
    std::string reason;
    return s.convolution || (s.product && !blas_call(device_, *s.product, &reason));
  }

 private:
  const CudaDevice& device_;
};

CudaProgram::CudaProgram(const GraphBody& graph, const CudaDevice& device, bool keep_texts,
                         const OwnedInputs& owned)
    : device_(device) {
  const Span span("compile", "compile program for CUDA");
  PipelineResult result = run_pipeline(graph, DeviceTarget(device), owned);
  fusion_ = std::move(result.fusion);
  passes_ = std::move(result.notes);
  for (FusedStep& fused : fusion_.steps) {
    steps_.push_back(make_step(fused));
    fused.writes_given_memory = steps_.back().kind == DeviceStep::Kind::kernel;
  }
  plan_ = plan_buffers(fusion_, owned);
  place_values();
  compile(keep_texts);
  replay_ = new_replay();
  count(counters().programs);
}

// Which step runs what.
CudaProgram::DeviceStep CudaProgram::make_step(const FusedStep& fused) const {
  DeviceStep step;
  if (fused.equation < 0) {
    prepare_kernel(step, fused);
    return step;
  }
  const GraphBody& g = fusion_.graph;
  const Equation& e = g.equations[fused.equation];
  step.equation = fused.equation;
  step.name = name_of(e.op);
  if (e.where.file) step.lines.push_back(e.where);
  for (Var v : e.inputs) step.bytes += g.aval(v).bytes();
  for (Var v : e.outputs) step.bytes += g.aval(v).bytes();
  const Family family = family_of(e.op);
  const bool kernel = (family == Family::contract && prepare_product(step, fused)) ||
                      (family == Family::linalg && prepare_matrices(step, e)) ||
                      (family == Family::spectral && prepare_transform(step, e)) ||
                      e.op == Op::sort || is_unset(e) ||
                      (may_be_register_kernel(e.op) && prepare_in_registers(step, e));
  step.kind = kernel                     ? DeviceStep::Kind::kernel
              : e.op == Op::batched_call ? DeviceStep::Kind::lanes
              : runs_on_device(g, e)     ? DeviceStep::Kind::control
                                         : DeviceStep::Kind::host;
  if (step.kind == DeviceStep::Kind::host && step.text.empty())
    step.text = communicates(e) ? device_ways[Op::psum].on_host : device_ways[e.op].on_host;
  return step;
}

void CudaProgram::place_values() {
  const GraphBody& g = fusion_.graph;
  constants_.resize(g.avals.size());
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    if (lies_over_input(static_cast<Var>(v)))
      overwritten_.push_back(static_cast<std::size_t>(plan_.slots[v].index));
    if (plan_.slots[v].kind == BufferPlan::Slot::Kind::constant)
      constants_[v] = moved(g.equations[plan_.slots[v].index].as<ConstantParams>().buffer,
                            vt::cuda(device_.index()));
  }
}

// Kernels on all threads, as they do not depend on each other.
void CudaProgram::compile(bool keep_texts) {
  const GraphBody& g = fusion_.graph;
  for (DeviceStep& step : steps_) {
    if (step.equation < 0) continue;
    const Equation& e = g.equations[step.equation];
    if (step.kind == DeviceStep::Kind::lanes)
      step.lanes = std::make_shared<DeviceLanes>(e.as<BatchedCallParams>(), e.where, device_);
    if (step.kind == DeviceStep::Kind::control)
      step.control = std::make_shared<const DeviceControl>(g, e, device_, keep_texts);
    if (step.kind == DeviceStep::Kind::host) step.host = host_executable(alone(g, e));
    if (e.op == Op::sort) prepare_sort(step, e);
  }
  Vec<Launch*> all;
  for (DeviceStep& step : steps_)
    for (Launch& launch : step.launches)
      if (!launch.library) all.push_back(&launch);
  parallel_ranges(
      static_cast<std::int64_t>(all.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          Launch& launch = *all[i];
          launch.code = device_code(device_, launch.source, launch.name);
          launch.code->allow_shared(launch.grid.shared_bytes);
          // The driver knows how many blocks of this code fit on a multiprocessor, by its registers
          // and shared memory.
          if (launch.useful_blocks > 0)
            launch.grid.blocks = std::min(launch.useful_blocks,
                                          Mapping::times_over * device_.facts().multiprocessors *
                                              launch.code->resident_blocks(launch.grid));
          if (!keep_texts) launch.source.clear();
        }
      });
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    launches_ += steps_[k].launches.size();
    epilogues_ += fusion_.steps[k].row_loop >= 0;
    scratch_bytes_ = std::max(scratch_bytes_, static_cast<std::size_t>(steps_[k].scratch_bytes));
    host_steps_ += steps_[k].kind == DeviceStep::Kind::host;
    bytes_ += steps_[k].bytes;
  }
}

Vec<BufferRef> CudaProgram::run(std::span<const BufferRef> given) {
  const Span span("run", "run program on CUDA");
  const GraphBody& g = fusion_.graph;
  require_device(device_.index());
  device_.enter();
  const Vec<BufferRef> inputs = brought(given, vt::cuda(device_.index()));
  Vec<BufferRef> results(g.outputs.size());
  if (!replay(inputs, results)) run_steps(inputs, results);
  Counters& c = counters();
  count(c.programs_run);
  count(c.launches, launches_);
  count(c.bytes, bytes_);
  if (epilogues_) count(c.product_epilogues, epilogues_);
  if (host_steps_) count(c.host_steps, host_steps_);
  return results;
}

void CudaProgram::run_steps(std::span<const BufferRef> inputs, Vec<BufferRef>& results) {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion_.graph;
  Vec<DevicePtr> pointers(g.avals.size(), 0);
  Vec<BufferRef> produced(g.avals.size());
  for (std::size_t v = 0; v < constants_.size(); ++v)
    if (constants_[v]) pointers[v] = address(*constants_[v]);
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const std::size_t v = fusion_.storage[g.outputs[i]];
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind != Kind::output || s.index != static_cast<int>(i)) continue;
    results[i] = device_.allocate(s.bytes, "a result", &fusion_.graph);
    pointers[v] = address(*results[i]);
  }
  const std::size_t arena_bytes = (plan_.arena_bytes + 255) / 256 * 256;
  const BufferRef arena =
      arena_bytes + scratch_bytes_
          ? device_.allocate(arena_bytes + scratch_bytes_, "intermediate results", &fusion_.graph)
          : BufferRef();
  const DevicePtr scratch = scratch_bytes_ ? address(*arena) + arena_bytes : 0;
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == Kind::input) pointers[v] = address(*inputs[s.index]);
    if (s.kind == Kind::arena && arena) pointers[v] = address(*arena) + s.offset;
    if (s.kind == Kind::in_output)
      pointers[v] = pointers[fusion_.storage[g.outputs[s.index]]] + s.offset;
  }
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    if (steps_[k].kind == DeviceStep::Kind::kernel) run_kernels(steps_[k], pointers, scratch);
    else run_equation(steps_[k], pointers, produced, inputs);
    for (Var v : plan_.released[k]) produced[v] = {};
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    if (results[i]) continue;
    const std::size_t v = fusion_.storage[g.outputs[i]];
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == Kind::input) results[i] = inputs[s.index];
    else if (s.kind == Kind::constant) results[i] = constants_[v];
    else if (s.kind == Kind::produced) results[i] = produced[v];
    else results[i] = results[s.index];
  }
}

void CudaProgram::run_kernels(const DeviceStep& step, const Vec<DevicePtr>& pointers,
                              DevicePtr scratch) const {
  for (const Launch& launch : step.launches) {
    const Span span("launch", launch.name);
    SmallVec<DevicePtr, 16> addresses;
    for (const Launch::Pointer& p : launch.pointers)
      addresses.push_back((p.var < 0 ? scratch : pointers[p.var]) +
                          static_cast<DevicePtr>(p.offset));
    if (launch.library) {
      launch.library->run(device_, device_.stream(), {addresses.data(), addresses.size()});
      continue;
    }
    SmallVec<void*, 24> parameters;
    for (DevicePtr& a : addresses) parameters.push_back(&a);
    for (const std::int64_t& n : launch.numbers)
      parameters.push_back(const_cast<std::int64_t*>(&n));
    launch.code->launch(launch.grid, parameters.data());
  }
}

BufferRef CudaProgram::at(Var v, const Vec<DevicePtr>& pointers, const Vec<BufferRef>& produced,
                          std::span<const BufferRef> inputs) const {
  const std::size_t storage = fusion_.storage[v];
  const BufferPlan::Slot& s = plan_.slots[storage];
  if (s.kind == BufferPlan::Slot::Kind::input) return inputs[s.index];
  if (s.kind == BufferPlan::Slot::Kind::constant) return constants_[storage];
  if (s.kind == BufferPlan::Slot::Kind::produced) return produced[storage];
  BufferRef view =
      borrow_memory(reinterpret_cast<void*>(pointers[storage]), fusion_.graph.aval(v).bytes());
  view->device = vt::cuda(device_.index());
  return view;
}

void CudaProgram::run_equation(const DeviceStep& step, Vec<DevicePtr>& pointers,
                               Vec<BufferRef>& produced, std::span<const BufferRef> inputs) const {
  const Span span("run", step.name);
  const GraphBody& g = fusion_.graph;
  const Equation& e = g.equations[step.equation];
  Vec<BufferRef> operands;
  for (Var v : e.inputs) operands.push_back(at(v, pointers, produced, inputs));
  Vec<BufferRef> made;
  if (step.control) {
    made = step.control->run(operands);
    // What a branch or a loop hands on may lie in memory that is written again.
    for (BufferRef& b : made)
      if (any_of(operands, [&](const BufferRef& o) {
            return address(*b) >= address(*o) &&
                   address(*b) < address(*o) + std::max<std::size_t>(o->bytes, 1);
          })) {
        BufferRef copy = device_.allocate(b->bytes, "a result", &fusion_.graph);
        device_.copy(address(*copy), address(*b), b->bytes);
        b = std::move(copy);
      }
  } else if (step.lanes) {
    made = step.lanes->run(operands);
  } else {
    for (BufferRef& b : operands) b = moved(b, vt::cpu());
    made = step.host->run(operands);
    for (BufferRef& b : made) b = moved(b, vt::cuda(device_.index()));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::size_t v = e.outputs[i];
    pointers[v] = address(*made[i]);
    produced[v] = std::move(made[i]);
  }
}

void CudaProgram::report(Report& report, int depth) const {
  const DeviceFacts& f = device_.facts();
  ReportStep head;
  head.depth = depth;
  head.title = formatted(
      "program on cuda({}), {}: {} kernels, {} steps on the host, {} bytes of scratch memory",
      device_.index(), f.name, launches_, host_steps_, plan_.arena_bytes + scratch_bytes_);
  if (is_replayed()) head.title += "; replayed as one CUDA graph";
  head.graph = &fusion_.graph;
  head.nest = "passes: " + text_of(passes_) + "\n";
  report.push_back(std::move(head));
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const DeviceStep& step = steps_[k];
    ReportStep r;
    r.depth = depth;
    r.number = static_cast<int>(k);
    r.name = step.name;
    r.lines = step.lines;
    r.bytes = step.bytes;
    if (step.kind != DeviceStep::Kind::host) r.nest = step.text;
    r.how = step.kind == DeviceStep::Kind::host                     ? "host"
            : step.kind == DeviceStep::Kind::lanes                  ? "lanes"
            : step.kind == DeviceStep::Kind::control                ? "loop or branch"
            : step.launches.size() == 1 && step.launches[0].library ? "library"
                                                                    : "kernel";
    if (step.kind == DeviceStep::Kind::kernel && step.launches.size() != 1)
      r.title = formatted("{}, {} kernels, {} bytes", step.name, step.launches.size(), step.bytes);
    else if (step.kind == DeviceStep::Kind::kernel && step.launches[0].library)
      r.title = formatted("{} by {}, {} bytes", step.name, step.launches[0].library->library(),
                          step.bytes);
    else if (step.kind == DeviceStep::Kind::kernel)
      r.title = formatted("{}, {} blocks of {} threads, {} bytes", step.name,
                          step.launches[0].grid.blocks, step.launches[0].grid.threads, step.bytes);
    else if (step.kind == DeviceStep::Kind::control)
      r.title = formatted("{}, {}", step.name, step.control->describe());
    else if (step.kind == DeviceStep::Kind::lanes)
      r.title = "lanes that part, steered from the host";
    else
      r.title =
          formatted("{} on the host ({}), its operands copied there and its results back, {} bytes",
                    step.name, step.text, step.bytes);
    report.push_back(std::move(r));
    if (step.control) step.control->report(report, depth + 1);
    if (step.lanes) step.lanes->report(report, depth + 1);
  }
}

// A result in the place of an input, which is not that input itself.
bool CudaProgram::lies_over_input(Var v) const {
  const BufferPlan::Slot& s = plan_.slots[v];
  return s.kind == BufferPlan::Slot::Kind::input && fusion_.graph.inputs[s.index] != v;
}

Memory CudaProgram::memory() const {
  Memory m = planned_memory(fusion_, plan_);
  m.scratch = plan_.arena_bytes + scratch_bytes_;
  for (std::size_t v = 0; v < plan_.slots.size(); ++v)
    if (plan_.slots[v].kind == BufferPlan::Slot::Kind::produced &&
        plan_.lives[v].last < static_cast<int>(steps_.size()))
      m.scratch += plan_.slots[v].bytes;
  largest_first(m.values);
  return m;
}

}  // namespace vt::detail::cuda
