// Which Graphs are worth compiling: estimates of what they take.
#include "worth_compiling.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>

#include "../trace/base/environment.hpp"
#include "../trace/ir/collectives.hpp"
#include "../trace/ir/executable.hpp"
#include "../trace/numerics/fft_kernels.hpp"
#include "../trace/numerics/linalg_kernels.hpp"
#include "../trace/record/batching.hpp"
#include "../trace/record/node.hpp"
#include "call_list.hpp"
#include "cpu/runtime/host_program.hpp"
#include "passes/passes.hpp"

namespace vt::detail {

namespace work_estimate {

// A Graph of so many equations may be one of many small ones that are alike.
constexpr std::size_t many_equations = 1024;
// About the seconds that an equation takes the interpreter, beside its work.
constexpr double seconds_to_interpret = 1.5e-6, seconds_of_work = 1e-9;
// … and the compiler, which takes longer for each in a longer Graph: 2,700 took 0.27 s, 8,400 took
// 3.4 s.
double seconds_to_compile(double equations) { return 50e-6 * equations * (1 + equations / 1500); }
// A program of one Graph moves small values in registers, where batches have them in memory; but
// one of more equations takes seconds to compile.
constexpr std::size_t small_bytes = 256, most_worth_compiling = 4096;

// Products for one element of a convolution's result.
std::int64_t places_of(const Equation& e, const Shape& filter) {
  const ConvParams& p = e.as<ConvParams>();
  std::int64_t n = 1;
  for (const Axes* axes : {&p.rhs_window, &p.dot.rhs_contract})
    for (int axis : *axes) n *= filter[axis];
  return n;
}

// About the number of element operations, to tell what is worth compiling at first sight.
std::uint64_t work_of(const GraphBody& graph) {
  std::uint64_t work = 0;
  for (const Equation& e : graph.equations) {
    std::uint64_t n = 0;
    for (Var v : e.outputs) n = std::max(n, static_cast<std::uint64_t>(graph.aval(v).elements()));
    for (Var v : e.inputs) n = std::max(n, static_cast<std::uint64_t>(graph.aval(v).elements()));
    if (e.op == Op::dot_general)
      for (int axis : e.as<DotParams>().lhs_contract)
        n *= static_cast<std::uint64_t>(graph.aval(e.inputs[0]).shape[axis]);
    if (e.op == Op::conv_general)
      n = static_cast<std::uint64_t>(graph.aval(e.outputs[0]).elements()) *
          static_cast<std::uint64_t>(
              std::max<std::int64_t>(places_of(e, graph.aval(e.inputs[1]).shape), 1));
    if (family_of(e.op) == Family::linalg)
      n = static_cast<std::uint64_t>(linalg_spec(graph, e).operations() *
                                     std::max<std::int64_t>(linalg_spec(graph, e).batch, 1));
    if (e.op == Op::fft)
      n = static_cast<std::uint64_t>(
          fft_spec(e.as<FftParams>(), graph.aval(e.inputs[0])).operations());
    if (e.op == Op::sort) n *= 64;  // the interpreter compares, the program counts digits
    work += n;
  }
  return work;
}

}  // namespace work_estimate

bool is_little_work(const GraphBody& graph) { return work_estimate::work_of(graph) < 1 << 18; }

// Both move, compare and choose alike, compute with integers, and round single operations as IEEE
// 754 says.
bool rounds_in_its_own_way(const GraphBody& graph) {
  constexpr Op exact[] = {Op::real,    Op::imag, Op::conj, Op::complex, Op::neg,
                          Op::convert, Op::max,  Op::min,  Op::bitcast, Op::stop_gradient};
  constexpr Op rounded_alike[] = {Op::add,   Op::sub,  Op::mul,   Op::div,   Op::abs, Op::sign,
                                  Op::floor, Op::ceil, Op::round, Op::trunc, Op::sqrt};
  const auto among = [](auto& list, Op op) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  return any_of(graph.equations, [&](const Equation& e) {
    if (any_of(bodies_of(e.params), [](const GraphRef& b) { return rounds_in_its_own_way(*b); }))
      return true;
    if (e.inputs.empty() || e.outputs.empty()) return false;
    const DType in = graph.aval(e.inputs[0]).dtype, out = graph.aval(e.outputs[0]).dtype;
    if (!is_float(out) && !is_complex(out)) return false;
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
        return !among(exact, e.op) &&
               !((in == DType::f32 || in == DType::f64) && among(rounded_alike, e.op));
      case Family::reduce: return e.op == Op::reduce_sum || e.op == Op::reduce_prod;
      case Family::window:
      case Family::contract:
      case Family::spectral:
      case Family::linalg: return true;
      default: return false;
    }
  });
}

std::optional<GraphBody> as_batched_calls(const GraphBody& graph, bool interpreted) {
  using namespace work_estimate;
  static const bool wanted = autobatch_from_environment() != "off";
  if (graph.equations.size() < many_equations || !wanted) return std::nullopt;
  const auto count = static_cast<double>(graph.equations.size());
  const double seconds = interpreted ? count * seconds_to_interpret +
                                           static_cast<double>(work_of(graph)) * seconds_of_work
                                     : seconds_to_compile(count);
  std::optional<GraphBody> calls = batch_alike(graph, seconds);
  if (!calls || !suits_call_list(*calls)) return std::nullopt;
  return simplify(std::move(*calls), SimplifyFor::running);
}

std::optional<Vec<BufferRef>> interpreted_soon(const GraphBody& graph,
                                               std::span<const BufferRef> inputs) {
  constexpr std::int64_t steps_worth_compiling = 1 << 17;  // some tens of milliseconds
  if (keeps_order(graph)) return interpreted(graph, inputs);
  const InterpreterBudget budget(steps_worth_compiling);
  try {
    return interpreted(graph, inputs);
  } catch (const InterpreterBudget::Exceeded&) {
    return std::nullopt;
  }
}

bool is_worth_compiling(const GraphBody& graph) {
  if (graph.equations.size() > work_estimate::most_worth_compiling) return false;
  std::size_t bytes = 0;
  for (const Equation& e : graph.equations)
    for (Var v : e.outputs) bytes += graph.aval(v).bytes();
  return bytes < work_estimate::small_bytes * graph.equations.size();
}

}  // namespace vt::detail
