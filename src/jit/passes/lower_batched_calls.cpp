// Replaces batched calls, rows and rows_add by equations that kernels are made of: the function for
// all lanes at once, and gathers of rows.
#include <memory>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/ops.hpp>

#include "../../trace/ir/sub_graph.hpp"
#include "../../trace/record/batching.hpp"
#include "../../trace/record/scope.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace batched_lowering {

constexpr auto is_lane_call = [](const Equation& e) {
  return e.op == Op::batched_call && e.as<BatchedCallParams>().parts_lanes();
};
constexpr auto is_batched = [](const Equation& e) {
  return (e.op == Op::batched_call && !is_lane_call(e)) || e.op == Op::rows || e.op == Op::rows_add;
};
bool has_sums(const Equation& e) {
  return any_of(e.as<BatchedCallParams>().summed, [](bool s) { return s; });
}
using Which = FunctionRef<bool(const Equation&)>;

Tensor indices_of(const Vec<std::int64_t>& indices) {
  return tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
}
Tensor no_rows(const Aval& a) { return full_tensor(Scalar(false).converted(a.dtype), a); }

// Runs are few and long: they are cut out and laid side by side. Else the rows are gathered.
constexpr std::size_t few_runs = 8;

Tensor rows(const RowsParams& p, std::span<const Tensor> operands, const Aval& result) {
  const Aval none(result.dtype, result.shape);
  if (p.count() == 0) return no_rows(none);
  std::vector<Tensor> parts;
  if (p.runs.size() <= few_runs) {
    for (const RowRun& run : p.runs) {
      Aval zeros = none;
      zeros.shape[0] = run.count;
      parts.push_back(run.operand < 0 ? no_rows(zeros)
                                      : slice_in_dim(operands[run.operand], run.first,
                                                     run.first + run.count, 0));
    }
    return concatenate(parts, 0);
  }
  Vec<std::int64_t> starts, indices;
  std::int64_t all = 0;
  for (const Tensor& t : operands) {
    starts.push_back(all);
    all += t.dim(0);
    parts.push_back(t);
  }
  if (any_of(p.runs, [](const RowRun& run) { return run.operand < 0; })) {
    Aval zero = none;
    zero.shape[0] = 1;
    parts.push_back(no_rows(zero));
  }
  for (const RowRun& run : p.runs)
    for (std::int64_t k = 0; k < run.count; ++k)
      indices.push_back(run.operand < 0 ? all : starts[run.operand] + run.first + k);
  return take(parts.size() == 1 ? parts[0] : concatenate(parts, 0), indices_of(indices), 0);
}

std::vector<Tensor> rows_add(const RowsParams& p, const Tensor& x) {
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < p.extents.size(); ++i) {
    Aval a(aval_of(x).dtype, aval_of(x).shape);
    a.shape[0] = p.extents[i];
    Vec<std::int64_t> from, to;
    std::int64_t next = 0;
    for (const RowRun& run : p.runs) {
      for (std::int64_t k = 0; k < run.count && run.operand == static_cast<int>(i); ++k) {
        from.push_back(next + k);
        to.push_back(run.first + k);
      }
      next += run.count;
    }
    Tensor sum = no_rows(a);
    if (!from.empty()) sum = index_add(sum, indices_of(to), take(x, indices_of(from), 0));
    sums.push_back(std::move(sum));
  }
  return sums;
}

GraphBody lowered(GraphBody graph, Which which);

std::vector<Tensor> batched_call(const BatchedCallParams& p, std::span<const Tensor> operands) {
  Vec<bool> mapped;
  for (bool m : p.lanes.mapped) mapped.push_back(m);
  std::vector<Tensor> results =
      replay(lowered(batch_body(*p.body, mapped, p.lanes.count), is_batched), operands);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (p.summed[i])
      results[i] = emit(Op::reduce_sum, make_params(AxesParams{Axes{0}}), {results[i]}, {});
  return results;
}

GraphBody lowered(GraphBody graph, Which which) {
  if (!has_equation(graph, which)) return graph;
  Vec<Aval> avals;
  for (Var v : graph.inputs) avals.push_back(graph.aval(v));
  return closed(record(
      [&](std::span<const Tensor> inputs) {
        RecycledVec<Tensor> values(graph.avals.size());
        const auto value = [&](Var v) -> Tensor& { return values[v]; };
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) value(graph.inputs[i]) = inputs[i];
        for (const Equation& e : graph.equations) {
          std::vector<Tensor> operands, results;
          for (Var v : e.inputs) operands.push_back(value(v));
          const LikeEquation like(e);
          if (!which(e)) {
            Equation copy = e;
            Vec<GraphRef> bodies = bodies_of(e.params);
            for (GraphRef& body : bodies)
              if (has_equation(*body, which))
                body = std::make_shared<const GraphBody>(lowered(*body, which));
            if (!bodies.empty()) copy.params = with_bodies(e.params, bodies);
            repeat(graph, copy, operands, [&](Var v, Tensor t) { value(v) = std::move(t); });
            continue;
          }
          if (e.op == Op::batched_call) results = batched_call(e.as<BatchedCallParams>(), operands);
          else if (e.op == Op::rows_add) results = rows_add(e.as<RowsParams>(), operands[0]);
          else results = {rows(e.as<RowsParams>(), operands, graph.aval(e.outputs[0]))};
          for (std::size_t i = 0; i < results.size(); ++i)
            value(e.outputs[i]) = std::move(results[i]);
        }
        std::vector<Tensor> outputs;
        for (Var v : graph.outputs) outputs.push_back(value(v));
        return outputs;
      },
      {avals.data(), avals.size()}, {.kind = ScopeKind::branch, .transform = "vt::vmap"}));
}

}  // namespace batched_lowering

bool has_batched_calls(const GraphBody& g) { return has_equation(g, batched_lowering::is_batched); }
GraphBody lower_batched_calls(GraphBody graph) {
  return batched_lowering::lowered(std::move(graph), batched_lowering::is_batched);
}
GraphBody group_lanes(GraphBody graph, FunctionRef<bool(const Equation&)> part) {
  const auto grouped = [&](const Equation& e) {
    return batched_lowering::is_lane_call(e) && (batched_lowering::has_sums(e) || !part(e));
  };
  if (!has_equation(graph, grouped)) return graph;
  return simplify(batched_lowering::lowered(std::move(graph), grouped), SimplifyFor::running);
}
GraphBody group_lanes(GraphBody graph) {
  return group_lanes(std::move(graph), [](const Equation&) { return false; });
}

}  // namespace vt::detail
