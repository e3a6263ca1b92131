// A dot_general as one batched, strided matrix product: what both backends' kernels take.
#include "matmul_spec.hpp"

#include <numeric>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/axis_map.hpp"

namespace vt::detail {

namespace matmul_plan {

// Several axes as one: their joint extent and stride, if stepping through them in this order is one
// arithmetic progression.
struct Group {
  std::int64_t extent = 1, stride = 0;
};
std::optional<Group> collapse(const Shape& shape, const Axes& axes) {
  Shape strides = Shape::filled(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  Group g;
  bool first = true;
  // From the innermost axis outwards; axes of size 1 have no say.
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t extent = shape[*axis], stride = strides[*axis];
    if (extent == 1) continue;
    if (first) g = {extent, stride};
    else if (stride == g.stride * g.extent) g.extent *= extent;
    else return std::nullopt;
    first = false;
  }
  return g;
}

Axes joined(const Axes& a, const Axes& b, const Axes& c) {
  Axes all = a;
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

std::int64_t product(const Shape& shape, const Axes& axes) {
  std::int64_t n = 1;
  for (int a : axes) n *= shape[a];
  return n;
}

// An operand as (batch, outer, inner) groups, or nothing if it has to be copied.
struct View {
  Group batch, outer, inner;
};
std::optional<View> view(const Shape& shape, const Axes& batch, const Axes& outer,
                         const Axes& inner) {
  const auto b = collapse(shape, batch), o = collapse(shape, outer), i = collapse(shape, inner);
  if (!b || !o || !i) return std::nullopt;
  return View{*b, *o, *i};
}
View dense(std::int64_t batch, std::int64_t outer, std::int64_t inner) {
  return {{batch, outer * inner}, {outer, inner}, {inner, 1}};
}

// Products of a matrix that no cache near a core holds and a vector: what counts is to read the
// matrix once, at full speed, which is what a nest's reductions are made for; and what the matrix
// is computed from is fused with it.
bool streams_matrix(const GraphBody& graph, const Equation& e) {
  constexpr std::int64_t worth_streaming = std::int64_t{2} << 20;  // bytes
  const DType d = e.as<DotParams>().dtype;
  const Aval &lhs = graph.aval(e.inputs[0]), &rhs = graph.aval(e.inputs[1]);
  if ((d != DType::f32 && d != DType::f64) || lhs.dtype != d || rhs.dtype != d) return false;
  const std::int64_t results = graph.aval(e.outputs[0]).elements();
  const auto beside = [&](const Aval& vector, const Aval& matrix) {
    return matrix.elements() == vector.elements() * results &&
           matrix.elements() * static_cast<std::int64_t>(size_of(d)) >= worth_streaming;
  };
  return results > 0 && (beside(lhs, rhs) || beside(rhs, lhs));
}

}  // namespace matmul_plan

void ProductKernel::run_rows(const void*, const void*, void*, std::int64_t, const RowsDone&,
                             const PackedOperands&) const {
  fail(ErrorKind::backend, "vt: internal: a product for one number of rows", {});
}

MatmulPlan plan_matmul(const DotParams& p, const Aval& lhs, const Aval& rhs) {
  using namespace matmul_plan;
  const Axes lhs_free = free_axes(lhs.shape.rank(), p.lhs_contract, p.lhs_batch),
             rhs_free = free_axes(rhs.shape.rank(), p.rhs_contract, p.rhs_batch);
  // The order in which the contracted axes are summed is ours: try that of either operand's memory.
  Vec<std::size_t> by_lhs(p.lhs_contract.size()), by_rhs;
  std::iota(by_lhs.begin(), by_lhs.end(), std::size_t{0});
  by_rhs = by_lhs;
  insertion_sort(
      by_lhs, [&](std::size_t a, std::size_t b) { return p.lhs_contract[a] < p.lhs_contract[b]; });
  insertion_sort(
      by_rhs, [&](std::size_t a, std::size_t b) { return p.rhs_contract[a] < p.rhs_contract[b]; });
  std::optional<View> a, b;
  Axes lhs_contract, rhs_contract;
  int best = -1;
  for (const auto& order : {by_lhs, by_rhs}) {
    Axes l, r;
    for (std::size_t i : order) l.push_back(p.lhs_contract[i]), r.push_back(p.rhs_contract[i]);
    auto left = view(lhs.shape, p.lhs_batch, lhs_free, l),
         right = view(rhs.shape, p.rhs_batch, r, rhs_free);
    const int fit = (left ? 1 : 0) + (right ? 1 : 0);
    if (fit <= best) continue;
    best = fit;
    a = left, b = right;
    lhs_contract = l, rhs_contract = r;
  }

  MatmulPlan plan;
  MatmulSpec& s = plan.spec;
  s.batch = product(lhs.shape, p.lhs_batch);
  s.m = product(lhs.shape, lhs_free);
  s.n = product(rhs.shape, rhs_free);
  s.k = product(lhs.shape, lhs_contract);
  if (!a) {
    plan.lhs_permutation = joined(p.lhs_batch, lhs_free, lhs_contract);
    a = dense(s.batch, s.m, s.k);
  }
  if (!b) {
    plan.rhs_permutation = joined(p.rhs_batch, rhs_contract, rhs_free);
    b = dense(s.batch, s.k, s.n);
  }
  s.a_dtype = lhs.dtype;
  s.b_dtype = rhs.dtype;
  s.result = p.dtype;
  s.accumulate = p.dtype == f16 || p.dtype == bf16 ? f32 : p.dtype;
  s.a_batch = a->batch.stride, s.a_row = a->outer.stride, s.a_column = a->inner.stride;
  s.b_batch = b->batch.stride, s.b_row = b->outer.stride, s.b_column = b->inner.stride;
  return plan;
}

bool is_inner_product(const GraphBody& graph, const Equation& e) {
  const DotParams& p = e.as<DotParams>();
  const Aval &lhs = graph.aval(e.inputs[0]), &rhs = graph.aval(e.inputs[1]);
  const int axes = static_cast<int>(p.lhs_batch.size() + p.lhs_contract.size());
  return (p.dtype == DType::f32 || p.dtype == DType::f64) && lhs.dtype == p.dtype &&
         rhs.dtype == p.dtype && lhs.shape.rank() == axes && rhs.shape.rank() == axes &&
         !p.lhs_batch.empty();
}

bool is_reduction_of_nest(const GraphBody& graph, const Equation& e) {
  return matmul_plan::streams_matrix(graph, e) || is_inner_product(graph, e);
}

}  // namespace vt::detail
