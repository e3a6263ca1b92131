// Axes through ops, over the whole op table: what is followed through an op may have any extent,
// and each element along it is computed by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/trace/ir/axis_map.hpp"
#include "src/trace/ir/graph.hpp"
#include "support/primitive_cases.hpp"
#include "support/property.hpp"

namespace {

using namespace vt_test;
using vt::Shape;
using vt::Tensor;
using vt::detail::Equation;
using vt::detail::GraphBody;
using vt::detail::Op;
using vt::detail::ParamsRef;
using vt::detail::Var;

/// One equation, as the Graph of a case.
GraphBody graph_of(const PrimitiveCase& c, const std::vector<Tensor>& results) {
  GraphBody g;
  Equation e;
  e.op = c.op;
  e.params = c.params;
  for (const OperandSpec& o : c.operands)
    e.inputs.push_back(g.fresh(vt::detail::Aval(o.dtype, o.shape)));
  for (const Tensor& t : results)
    e.outputs.push_back(g.fresh(vt::detail::Aval(t.dtype(), t.shape())));
  g.inputs.assign(e.inputs.begin(), e.inputs.end());
  g.outputs.assign(e.outputs.begin(), e.outputs.end());
  g.equations.push_back(std::move(e));
  return g;
}

/// Elements first … last − 1 along an axis; −1: all of it.
Tensor part(const Tensor& x, int axis, std::int64_t first, std::int64_t last) {
  if (axis < 0) return x;
  Shape begin = Shape::filled(x.shape().size(), 0), end = x.shape();
  begin[axis] = first;
  end[axis] = last;
  return vt::slice(x, begin, end);
}
Tensor element(const Tensor& x, int axis, std::int64_t i) {
  if (axis < 0) return x;
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return vt::reshape(part(x, axis, i, i + 1), shape);
}

std::vector<Tensor> run(Op op, const ParamsRef& params, const std::vector<Tensor>& operands) {
  const auto results = vt::detail::emit_all(op, params, operands, vt::CallSite{});
  return {results.begin(), results.end()};
}

/// Does the case follow the axis of its results? Checks that it may.
bool check_axis(const PrimitiveCase& c, const GraphBody& g, int axis,
                const std::vector<Tensor>& operands, const std::vector<Tensor>& whole) {
  const Equation& e = g.equations[0];
  std::vector<int> of_operands;
  for (std::size_t k = 0; k < operands.size(); ++k)
    of_operands.push_back(vt::detail::axis_of_operand(g, e, k, axis));
  const std::optional<ParamsRef> one =
      vt::detail::without_axis(g, e, axis, {of_operands.data(), of_operands.size()});
  if (!one) return false;
  const std::int64_t extent = whole[0].shape()[axis];
  const std::string what = c.name() + ", axis " + std::to_string(axis);
  // The last element by itself, and the last ones as a whole.
  for (std::int64_t count : std::set<std::int64_t>{0, std::min<std::int64_t>(extent, 2)}) {
    if (extent == 0) continue;
    const auto taken = [&](const Tensor& x, int at) {
      return count == 0 ? element(x, at, extent - 1) : part(x, at, extent - count, extent);
    };
    std::vector<Tensor> given;
    for (std::size_t k = 0; k < operands.size(); ++k)
      given.push_back(taken(operands[k], of_operands[k]));
    const ParamsRef params = count == 0 ? *one : vt::detail::with_extent(c.params, axis, count);
    const std::vector<Tensor> made = run(c.op, params, given);
    for (std::size_t r = 0; r < made.size(); ++r)
      expect_close(made[r], taken(whole[r], axis), c.tolerance(),
                   what + ", elements " + std::to_string(count));
  }
  return true;
}

TEST(Axes, WhatIsFollowedIsComputedElementByElement) {
  std::set<Op> followed;
  std::vector<PrimitiveCase> cases = primitive_cases();
  using vt::detail::Aval, vt::detail::make_params;
  cases.push_back({Op::pad,
                   make_params(vt::detail::PadParams{{0, 1}, {0, 2}, {0, 0}}),
                   {{vt::f32, {2, 3}}, {vt::f32, {}}}});
  cases.push_back({Op::full,
                   make_params(vt::detail::FullParams{vt::detail::Scalar(2).converted(vt::f32),
                                                      Aval(vt::f32, {2, 3})}),
                   {}});
  cases.push_back({Op::iota, make_params(vt::detail::IotaParams{Aval(vt::i32, {2, 3}), 1}), {}});
  for (const PrimitiveCase& c : cases) {
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(c.operand(i, 7 + i));
    const std::vector<Tensor> whole = c.run(operands);
    if (whole.empty()) continue;
    const GraphBody g = graph_of(c, whole);
    for (int axis = 0; axis < whole[0].shape().rank(); ++axis)
      if (check_axis(c, g, axis, operands, whole)) followed.insert(c.op);
    if (HasFatalFailure()) return;
  }
  for (Op op : {Op::add, Op::select, Op::reduce_max, Op::argmin, Op::cumsum, Op::sort, Op::reshape,
                Op::transpose, Op::broadcast_in_dim, Op::concatenate, Op::pad, Op::rev, Op::slice,
                Op::gather, Op::dot_general, Op::full, Op::iota, Op::cond, Op::while_})
    EXPECT_TRUE(followed.count(op)) << vt::detail::name_of(op);
}

}  // namespace
