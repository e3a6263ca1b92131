// CudaProgram: the kernels and library calls of each step.
#include <algorithm>
#include <optional>

#include <vt/detail/message.hpp>

#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/ir/sub_graph.hpp"
#include "../../../trace/record/node.hpp"
#include "../../fusion/sort_spec.hpp"
#include "../../services/counters.hpp"
#include "../libraries/blas_library.hpp"
#include "../libraries/fft_library.hpp"
#include "../products/product_epilogue.hpp"
#include "../source/fft_source.hpp"
#include "../source/matrix_source.hpp"
#include "../source/register_source.hpp"
#include "large_matrices.hpp"
#include "long_scans.hpp"
#include "program.hpp"
#include "scatter.hpp"
#include "sort.hpp"

namespace vt::detail::cuda {

namespace cuda_program {

/// "kernel_exp_mul_add": what a kernel computes, as profilers show it.
std::string kernel_name(const Nest& nest) {
  std::string name = "kernel";
  Op last = Op::input;
  int parts = 0;
  const auto add = [&](Op op, std::string_view text) {
    if (op == last || parts >= 5) return;
    last = op;
    ++parts;
    name += "_";
    for (char c : text) name += c == '-' || c == ' ' ? '_' : c;
  };
  for (const NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::op && v.op != Op::convert && v.op != Op::select)
      add(v.op, name_of(v.op));
  for (const NestReduction& r : nest.reductions) add(Op::count_, name_of(r.op));
  if (parts == 0) name += "_copy";
  return name;
}

std::string kernels_text(const Vec<Launch>& launches) {
  std::string text;
  for (const Launch& l : launches)
    text += formatted("{}: {} blocks of {} threads\n", l.name, l.grid.blocks, l.grid.threads);
  return text;
}

}  // namespace cuda_program

void CudaProgram::prepare_kernel(DeviceStep& step, const FusedStep& fused) const {
  const Nest& nest = fused.nest;
  // Of updates: what the user promised.
  const bool unique = any_of(fused.fused, [&](int k) {
    const Equation& e = fusion_.graph.equations[k];
    return is_scatter(e.op) && e.as<ScatterParams>().unique;
  });
  const Mapping mapping =
      choose_mapping(nest, unique, {device_.facts().multiprocessors, device_.facts().threads});
  step.name = cuda_program::kernel_name(nest);
  step.text = nest.str() + mapping.str(nest);
  Launch launch;
  launch.name = step.name;
  for (std::size_t b = 0; b < fused.buffers.size(); ++b) {
    step.bytes += fusion_.graph.aval(fused.buffers[b]).bytes();
    if (!nest.buffers[b].local) launch.pointers.push_back({fused.buffers[b]});
  }
  for (const NestLoop& l : nest.loops)
    if (l.runtime) launch.numbers.push_back(l.block_of >= 0 ? l.total : l.extent);
  for (std::int64_t a : fused.arguments) launch.numbers.push_back(a);
  add_lines(step, fused, fusion_.graph);
  launch.grid = {mapping.blocks(), mapping.block, mapping.local_bytes};
  count(counters().fused_ops, fused.fused.size());
  count(counters().stages, nest.stages.size());
  if (mapping.thread_groups == 0) return;  // no iterations
  if (const std::int64_t block = scan_block(nest)) {
    ScratchLayout scratch;
    add_long_scan(nest, block, launch.pointers, launch.numbers,
                  {device_.facts().multiprocessors, device_.facts().threads}, scratch,
                  step.launches);
    step.scratch_bytes = scratch.bytes();
    step.text = nest.str() + formatted("rows are cut in blocks of {}\n", block) +
                cuda_program::kernels_text(step.launches);
    return;
  }
  if (mapping.updates == UpdatePlan::Way::sorted) {
    ScratchLayout scratch;
    add_sorted_updates(nest, plan_updates(nest, unique), launch.pointers, launch.numbers,
                       device_.facts().multiprocessors, scratch, step.launches);
    step.scratch_bytes = scratch.bytes();
    step.text =
        nest.str() + "updates are sorted by element\n" + cuda_program::kernels_text(step.launches);
    return;
  }
  launch.source = nest_source(nest, mapping, step.name);
  launch.useful_blocks = mapping.useful_blocks();
  launch.work = 0;
  for (const NestStage& stage : nest.stages) {
    SmallVec<int, 6> loops = nest.shared;
    loops.append(stage.loops.begin(), stage.loops.end());
    launch.work += iterations_of(nest, loops) * static_cast<double>(nest.values.size());
  }
  step.launches.push_back(std::move(launch));
}

void CudaProgram::add_lines(DeviceStep& step, const FusedStep& fused, const GraphBody& g) {
  for (int equation : fused.fused) {
    const CallSite w = g.equations[equation].where;
    if (w.file && none_of(step.lines, [&](const CallSite& known) {
          return known.line == w.line && known.file == w.file;
        }))
      step.lines.push_back(w);
  }
}

bool CudaProgram::prepare_product(DeviceStep& step, const FusedStep& fused) const {
  const GraphBody& g = fusion_.graph;
  const Equation& e = g.equations[fused.equation];
  const auto memory = [&](Var v) { return Launch::Pointer{fusion_.storage[v]}; };
  const Launch::Pointer a = memory(e.inputs[0]), b = memory(e.inputs[1]), c = memory(e.outputs[0]);
  ConvSpec spec;
  if (e.op == Op::conv_general) {
    spec = *fused.convolution;
    step.text = formatted("{} results, {} products\n", spec.results(), spec.multiply_adds());
  } else {
    if (!fused.product) return false;
    const MatmulSpec& s = *fused.product;
    step.text = formatted("{} matrices {} × {} × {}\n", s.batch, s.m, s.k, s.n);
    std::string reason;
    std::shared_ptr<const LibraryCall> call = blas_call(device_, s, &reason);
    // There may be room for its workspace now that was not when the product got an epilogue.
    if (call && fused.row_loop >= 0) reason = "there was no room for its workspace";
    if (call && fused.row_loop < 0) {
      step.text += "by cuBLAS\n";
      step.equation = -1;
      step.launches.push_back(
          {.name = "cublas_product", .pointers = {a, b, c}, .library = std::move(call)});
      return true;
    }
    if (!reason.empty()) step.text += "not by cuBLAS: " + reason + "\n";
    spec = as_convolution(s);
  }
  // The last kernel's parameters behind those that its operands are.
  Launch last;
  std::optional<ProductEpilogue> epilogue;
  if (fused.row_loop < 0 || !fused.rows_alone) last.pointers.push_back(c);
  if (fused.row_loop >= 0) {
    const std::size_t product =
        std::find(fused.buffers.begin(), fused.buffers.end(), c.var) - fused.buffers.begin();
    epilogue = product_epilogue(fused.nest, static_cast<int>(product), dense_columns(spec),
                                !fused.rows_alone);
    epilogue->name = cuda_program::kernel_name(fused.nest).substr(6);
    for (std::size_t i = 0; i < fused.buffers.size(); ++i)
      if (i != product) last.pointers.push_back({fused.buffers[i]});
    for (Var v : fused.buffers)
      if (v != c.var) step.bytes += g.aval(v).bytes();
    if (fused.rows_alone) step.bytes -= g.aval(c.var).bytes();
    for (std::int64_t argument : fused.arguments) last.numbers.push_back(argument);
    step.name += ", then " + epilogue->name.substr(1);
    add_lines(step, fused, g);
    count(counters().fused_ops, fused.fused.size());
  }
  ProductSource p =
      product_source(spec, device_.facts().major >= 8, epilogue ? &*epilogue : nullptr);
  step.text += p.way + "\n";
  if (epilogue) step.text += "on its elements as they are done:\n" + fused.nest.str();
  step.equation = -1;
  if (p.blocks == 0) return true;  // no results
  ScratchLayout scratch;
  const auto with_operands = [&](std::initializer_list<Launch::Pointer> operands) {
    last.pointers.insert(last.pointers.begin(), operands.begin(), operands.end());
  };
  last.work = 2 * static_cast<double>(spec.multiply_adds());
  if (epilogue)
    last.work +=
        static_cast<double>(spec.results()) * static_cast<double>(fused.nest.values.size());
  if (p.parts > 1) {
    last.work = -1;
    const Launch::Pointer parts = scratch.take(p.parts_bytes);
    step.launches.push_back({.name = std::move(p.name),
                             .source = std::move(p.source),
                             .grid = {p.blocks, p.threads, 0},
                             .pointers = {a, b, parts}});
    with_operands({parts});
    last.name = std::move(p.join_name), last.source = std::move(p.join_source),
    last.grid = {p.join_blocks, p.threads, 0};
  } else {
    with_operands({a, b});
    last.name = std::move(p.name), last.source = std::move(p.source),
    last.grid = {p.blocks, p.threads, 0};
  }
  step.launches.push_back(std::move(last));
  step.scratch_bytes = scratch.bytes();
  return true;
}

bool CudaProgram::prepare_matrices(DeviceStep& step, const Equation& e) const {
  const LinalgSpec spec = linalg_spec(fusion_.graph, e);
  MatrixSource m = matrix_source(spec);
  if (!m.refusal.empty()) {
    if (!m.too_large || !prepare_large_matrices(step, e, spec)) step.text = m.refusal + step.text;
    return step.equation < 0;
  }
  step.text = formatted("{} matrices of {} × {}: {}\n", spec.batch, spec.m, spec.n, m.way);
  step.equation = -1;
  if (m.blocks == 0) return true;
  Launch launch{.name = std::move(m.name),
                .source = std::move(m.source),
                .grid = {m.blocks, m.threads, m.shared_bytes}};
  for (Var v : e.inputs) launch.pointers.push_back({fusion_.storage[v]});
  for (Var v : e.outputs) launch.pointers.push_back({v});
  step.launches.push_back(std::move(launch));
  return true;
}

// Where there are none, `text` says why not.
bool CudaProgram::prepare_large_matrices(DeviceStep& step, const Equation& e,
                                         const LinalgSpec& spec) const {
  SmallVec<Launch::Pointer, 8> operands, results;
  for (Var v : e.inputs) operands.push_back({fusion_.storage[v]});
  for (Var v : e.outputs) results.push_back({v});
  ScratchLayout scratch;
  const std::string reason = add_large_matrices(
      spec, operands, results,
      {[&](const SolverTask& task, std::string* why) { return solver_call(device_, task, why); },
       [&](const TriangleSpec& triangle, std::string* why) {
         return triangle_call(device_, triangle, why);
       }},
      scratch, step.launches);
  if (!reason.empty()) {
    step.text = ", and not by cuSOLVER: " + reason;
    return false;
  }
  const bool solver = any_of(step.launches, [](const Launch& l) {
    return l.library && std::string_view(l.library->library()) == "cuSOLVER";
  });
  step.text = formatted("{} matrices of {} × {}: by {}\n", spec.batch, spec.m, spec.n,
                        solver ? "cuSOLVER" : "cuBLAS");
  step.scratch_bytes = scratch.bytes();
  step.equation = -1;
  return true;
}

// Which of the results are wanted shows in the plan.
bool CudaProgram::prepare_transform(DeviceStep& step, const Equation& e) const {
  const FftSpec spec = fft_spec(e.as<FftParams>(), fusion_.graph.aval(e.inputs[0]));
  FftSource f = fft_source(spec);
  const Launch::Pointer operand{fusion_.storage[e.inputs[0]]}, result{e.outputs[0]};
  ScratchLayout scratch;
  // Rows that do not fit in shared memory are the library's, if there is one.
  const std::int64_t elements = fusion_.graph.aval(e.outputs[0]).elements();
  if (elements > 0 && (!f.refusal.empty() || f.passes.size() > spec.lengths.size())) {
    std::string reason;
    FftCall by_library = fft_call(device_, spec, &reason);
    if (by_library.call) {
      step.text = "transform: " + describe(e.op, e.params) + "\nby cuFFT\n";
      step.equation = -1;
      step.launches.push_back({.name = "cufft_transform",
                               .pointers = {operand, result, scratch.take(by_library.work_bytes),
                                            scratch.take(by_library.copy_bytes)},
                               .library = std::move(by_library.call)});
      if (spec.kind == FftKind::ifft || spec.kind == FftKind::irfft) {
        FftPass divide = fft_division(spec);
        step.launches.push_back({.name = std::move(divide.name),
                                 .source = std::move(divide.source),
                                 .grid = {divide.blocks, divide.threads, 0},
                                 .pointers = {result}});
      }
      step.scratch_bytes = scratch.bytes();
      return true;
    }
    if (!f.refusal.empty()) f.refusal += ", and not by cuFFT: " + reason;
  }
  if (!f.refusal.empty()) {
    step.text = f.refusal;
    return false;
  }
  step.text = "transform: " + describe(e.op, e.params) + "\n";
  step.equation = -1;
  SmallVec<Launch::Pointer, 2> pieces;
  for (std::int64_t bytes : f.bytes) pieces.push_back(scratch.take(bytes));
  const auto memory = [&](int which) {
    return which == -1 ? operand : which == -2 ? result : pieces[which];
  };
  for (FftPass& p : f.passes) {
    step.text += formatted("{} blocks of {} threads\n", p.blocks, p.threads);
    step.launches.push_back({.name = std::move(p.name),
                             .source = std::move(p.source),
                             .grid = {p.blocks, p.threads, p.shared_bytes},
                             .pointers = {memory(p.from), memory(p.to)}});
  }
  step.scratch_bytes = scratch.bytes();
  return true;
}

// A loop or branch as one kernel like any other, unless it carries memory that has to be brought to
// where its results will be.
bool CudaProgram::prepare_in_registers(DeviceStep& step, const Equation& e) const {
  if (keeps_order(e)) return false;
  const GraphBody one = alone(fusion_.graph, e);
  const std::optional<LaneForm> form = form_in_registers(one);
  if (!form || carries_memory(*form)) return false;
  step.text =
      form->count < 0
          ? "one thread, its values in registers\n"
          : formatted("a thread for each of {} lanes, its values in registers\n", form->count);
  step.equation = -1;
  if (form->count == 0) return true;
  Launch launch{.name = formatted("kernel_{}_in_registers", name_of(e.op)),
                .grid = register_kernel_grid(*form),
                .work = register_work(*form)};
  launch.source = register_kernel_source(*form, launch.name);
  launch.work *= static_cast<double>(std::max<std::int64_t>(form->count, 1));
  for (Var v : e.inputs) launch.pointers.push_back({fusion_.storage[v]});
  for (Var v : e.outputs) launch.pointers.push_back({v});
  step.launches.push_back(std::move(launch));
  return true;
}

void CudaProgram::prepare_sort(DeviceStep& step, const Equation& e) const {
  SmallVec<Launch::Pointer, 8> operands, results;
  for (Var v : e.inputs) operands.push_back({fusion_.storage[v]});
  for (Var o : e.outputs) {
    const Var v = fusion_.storage[o];
    results.push_back(plan_.slots[v].kind == BufferPlan::Slot::Kind::unused ? unwanted
                                                                            : Launch::Pointer{v});
  }
  const SortSpec spec = sort_spec(fusion_, e);
  ScratchLayout scratch;
  add_sort(spec, operands, results, device_.facts().multiprocessors, scratch, step.launches);
  step.scratch_bytes = scratch.bytes();
  step.text = formatted("{} rows of {}, places {} to {}\n", spec.outer * spec.inner, spec.length,
                        spec.start, spec.limit);
  step.text += cuda_program::kernels_text(step.launches);
  step.equation = -1;
}

}  // namespace vt::detail::cuda
