// Axes through ops: which axis of a result each axis of an operand becomes, and the op with another
// extent along it or without it. Where several ops name axes in one struct of parameters, they do
// so in the same way.
#include "axis_map.hpp"

#include <algorithm>
#include <concepts>

#include "graph.hpp"

namespace vt::detail {

namespace axis_rules {

/// Axis `a` of operand `k`, which has the shape `from`.
struct Along {
  const Equation& e;
  const Shape &from, &to;
  std::size_t k;
  int a;
  /// That axis of the result, if it is as long.
  int as_long(int b) const { return b >= 0 && b < to.rank() && to[b] == from[a] ? b : -1; }
};

int place(const Axes& axes, int a) {
  return static_cast<int>(std::find(axes.begin(), axes.end(), a) - axes.begin());
}

/// −1: elements that differ along it meet, or their index there is changed.
using InResult = int (*)(const Along&);

int nowhere(const Along&) { return -1; }
int alike(const Along& x) { return x.from == x.to ? x.a : -1; }
template <class P>
int beside_axis(const Along& x) {
  return x.e.as<P>().axis == x.a ? -1 : x.a;
}
int past(const Axes& gone, int a) {
  return gone.contains(a) ? -1
                          : a - static_cast<int>(std::count_if(gone.begin(), gone.end(),
                                                               [&](int r) { return r < a; }));
}
int beside_reduced(const Along& x) { return past(x.e.as<AxesParams>().axes, x.a); }
int beside_extreme(const Along& x) { return past(Axes(x.e.as<ArgParams>().axis), x.a); }
int reshaped(const Along& x) { return axis_after_reshape(x.from, x.a, x.to); }
int transposed(const Along& x) { return place(x.e.as<PermutationParams>().permutation, x.a); }
int broadcast(const Along& x) { return x.as_long(x.e.as<BroadcastParams>().axes[x.a]); }
int not_turned(const Along& x) { return x.e.as<AxesParams>().axes.contains(x.a) ? -1 : x.a; }
int whole(const Along& x) { return x.e.as<SliceParams>().stride[x.a] == 1 ? x.as_long(x.a) : -1; }
int not_padded(const Along& x) {
  const auto& p = x.e.as<PadParams>();
  return p.low[x.a] == 0 && p.high[x.a] == 0 && p.interior[x.a] == 0 ? x.a : -1;
}
int in_product(const Along& x) {
  const auto& p = x.e.as<DotParams>();
  const Axes &contract = x.k == 0 ? p.lhs_contract : p.rhs_contract,
             &batch = x.k == 0 ? p.lhs_batch : p.rhs_batch;
  if (contract.contains(x.a)) return -1;
  if (batch.contains(x.a)) return place(batch, x.a);
  const Axes free = free_axes(x.from.rank(), contract, batch);
  const auto first = x.k == 0 ? batch.size() : x.to.size() - free.size();
  return static_cast<int>(first) + place(free, x.a);
}
/// Of the indices: the table is the same for all.
int in_gathered(const Along& x) {
  const auto& p = x.e.as<GatherParams>();
  if (x.k == 0 || x.a == x.from.rank() - 1 || p.indices_batching_dims.contains(x.a)) return -1;
  int leading = -1;
  for (int b = 0; b < x.to.rank(); ++b)
    if (!p.offset_dims.contains(b) && ++leading == x.a) return b;
  return -1;
}
int of_lanes(const Along& x) {
  const Lanes* lanes = lanes_of(x.e);
  return lanes && lanes->mapped[x.k] && x.a == 0 ? 0 : -1;
}

struct Rule {
  InResult in_result = nowhere;
  bool adds_axes = false;  ///< elements are the same along some axes that no operand has
};

constexpr std::optional<Rule> rule_of_family(const OpInfo& op) {
  switch (op.family) {
    case Family::unary:
    case Family::binary:
    case Family::select: return Rule{alike};
    case Family::reduce: return Rule{beside_reduced};
    case Family::cumulative: return Rule{beside_axis<CumulativeParams>};
    case Family::shape: return std::nullopt;
    default: return Rule{};
  }
}
inline constexpr auto own_rules = rule_table<Rule>({
    {Op::full, {nowhere, true}},
    {Op::iota, {nowhere, true}},
    {Op::argmax, {beside_extreme}},
    {Op::argmin, {beside_extreme}},
    {Op::reduce, {}},
    {Op::sort, {beside_axis<SortParams>}},
    {Op::reshape, {reshaped}},
    {Op::transpose, {transposed}},
    {Op::broadcast_in_dim, {broadcast, true}},
    {Op::concatenate, {beside_axis<AxisParams>}},
    {Op::pad, {not_padded}},
    {Op::rev, {not_turned}},
    {Op::slice, {whole}},
    {Op::gather, {in_gathered}},
    {Op::dot_general, {in_product}},
    {Op::cond, {of_lanes}},
    {Op::while_, {of_lanes}},
    {Op::fused_region, {of_lanes}},
});
inline constexpr auto rules = with_defaults(own_rules, rule_of_family);
static_assert(RuleMissingFor<first_without_rule(rules)>::ok);

/// Tells `v` how parameters name axes: `extents` and `each` have an entry for each axis of the
/// results, `numbers` and `number` are axes of an operand, or of the results. Are there any?
constexpr int results = -1;
template <class P, class V>
bool name_axes(P& p, const V& v) {
  if constexpr (std::same_as<P, FullParams>) {
    v.extents(p.aval.shape);
  } else if constexpr (std::same_as<P, IotaParams>) {
    v.extents(p.aval.shape);
    v.number(p.axis, results);
  } else if constexpr (std::same_as<P, ShapeParams>) {
    v.extents(p.shape);
  } else if constexpr (std::same_as<P, PermutationParams>) {
    v.numbers(p.permutation, 0);
  } else if constexpr (std::same_as<P, BroadcastParams>) {
    v.extents(p.shape);
    v.numbers(p.axes, results);
  } else if constexpr (std::same_as<P, AxesParams>) {
    v.numbers(p.axes, 0);
  } else if constexpr (std::same_as<P, AxisParams> || std::same_as<P, ArgParams> ||
                       std::same_as<P, CumulativeParams> || std::same_as<P, SortParams>) {
    v.number(p.axis, 0);
  } else if constexpr (std::same_as<P, PadParams>) {
    for (Shape* list : {&p.low, &p.high, &p.interior}) v.each(*list);
  } else if constexpr (std::same_as<P, SliceParams>) {
    v.extents(p.limit);
    for (Shape* list : {&p.start, &p.stride}) v.each(*list);
  } else if constexpr (std::same_as<P, DotParams>) {
    for (Axes* list : {&p.lhs_contract, &p.lhs_batch}) v.numbers(*list, 0);
    for (Axes* list : {&p.rhs_contract, &p.rhs_batch}) v.numbers(*list, 1);
  } else if constexpr (std::same_as<P, GatherParams>) {
    v.numbers(p.offset_dims, results);
    v.numbers(p.indices_batching_dims, 1);
  } else if constexpr (std::same_as<P, CondParams> || std::same_as<P, WhileParams> ||
                       std::same_as<P, RegionParams>) {
    v.lanes(p.lanes);
  } else {
    return false;
  }
  return true;
}
template <class V>
ParamsRef changed(const ParamsRef& params, const V& v) {
  if (!params) return params;
  return visit(
      [&]<class P>(const P& p) {
        P copy = p;
        return name_axes(copy, v) ? make_params(std::move(copy)) : params;
      },
      *params);
}

struct Resized {
  int axis;
  std::int64_t extent;
  void extents(Shape& all) const { all[axis] = extent; }
  void each(Shape&) const {}
  void numbers(Axes&, int) const {}
  void number(int&, int) const {}
  void lanes(Lanes& l) const { l.count = extent; }
};
struct Removed {
  int of_results;
  std::span<const int> of_operands;
  int axis(int of) const { return of == results ? of_results : of_operands[of]; }
  void extents(Shape& all) const { each(all); }
  void each(Shape& all) const { all.erase(all.begin() + of_results); }
  void numbers(Axes& all, int of) const {
    Axes left;
    for (int a : all)
      if (a != axis(of)) left.push_back(a - (axis(of) >= 0 && a > axis(of)));
    all = std::move(left);
  }
  void number(int& a, int of) const { a -= axis(of) >= 0 && a > axis(of); }
  void lanes(Lanes& l) const { l = {}; }
};

}  // namespace axis_rules

int axis_in_result(const GraphBody& g, const Equation& e, std::size_t operand, int axis) {
  return axis_rules::rules[e.op].in_result(
      {e, g.aval(e.inputs[operand]).shape, g.aval(e.outputs[0]).shape, operand, axis});
}

int axis_of_operand(const GraphBody& g, const Equation& e, std::size_t operand, int axis) {
  for (int a = 0; a < g.aval(e.inputs[operand]).shape.rank(); ++a)
    if (axis_in_result(g, e, operand, a) == axis) return a;
  return -1;
}

ParamsRef with_extent(const ParamsRef& params, int axis, std::int64_t extent) {
  return axis_rules::changed(params, axis_rules::Resized{axis, extent});
}

GraphBody with_extent(GraphBody g, const Vec<int>& axes, std::int64_t extent) {
  for (std::size_t v = 0; v < g.avals.size(); ++v)
    if (axes[v] >= 0) g.avals[v].shape[axes[v]] = extent;
  for (Equation& e : g.equations)
    if (!e.outputs.empty() && axes[e.outputs[0]] >= 0)
      e.params = with_extent(e.params, axes[e.outputs[0]], extent);
  return g;
}

std::optional<ParamsRef> without_axis(const GraphBody& g, const Equation& e, int axis,
                                      std::span<const int> of_operands) {
  bool from_operands = false;
  for (std::size_t k = 0; k < e.inputs.size(); ++k) {
    if (of_operands[k] != axis_of_operand(g, e, k, axis)) return std::nullopt;
    from_operands = from_operands || of_operands[k] >= 0;
  }
  if (!from_operands) {
    if (!axis_rules::rules[e.op].adds_axes) return std::nullopt;
    // counted, or an axis of one element
    if ((e.op == Op::iota && e.as<IotaParams>().axis == axis) ||
        (e.op == Op::broadcast_in_dim && e.as<BroadcastParams>().axes.contains(axis)))
      return std::nullopt;
  }
  return axis_rules::changed(e.params, axis_rules::Removed{axis, of_operands});
}

}  // namespace vt::detail
