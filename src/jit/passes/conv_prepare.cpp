// Rewrites the convolutions of a Graph for compiled programs: operands in the order that kernels
// read, convolutions of few columns as loop nests.
#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../fusion/conv_spec.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace conv_planning {

// With fewer columns most SIMD lanes of a register tile are idle; a loop nest is better, unless it
// has more to do at each place than few of them.
bool too_few_columns(const ConvSpec& s) {
  constexpr std::int64_t enough = 4, least = 3, many_channels = 16;
  return s.columns.extent < (count_of(s.inner_contract) >= many_channels ? least : enough);
}

class Preparation {
 public:
  Preparation(GraphBody graph, ConvTarget target)
      : old_(std::move(graph)), graph_(old_), target_(target) {
    graph_.equations.clear();
  }

  GraphBody run() {
    for (const Equation& e : old_.equations) {
      if (e.op != Op::conv_general || old_.aval(e.outputs[0]).elements() == 0)
        graph_.equations.push_back(e);
      else prepare(e);
    }
    drop_unused();
    return std::move(graph_);
  }

 private:
  Var add(Op op, ParamsRef params, std::initializer_list<Var> inputs) {
    return add_equation(graph_, op, std::move(params), inputs, where_);
  }
  const Equation* maker_of(Var v, Op op) const {
    for (const Equation& e : old_.equations)
      if (e.op == op && e.outputs[0] == v) return &e;
    return nullptr;
  }
  // The filter itself in the place of one that is flipped, which the kernel reads from
  // its end.
  Var filter_of(Var b, ConvParams& p) const {
    const Equation* e = maker_of(b, Op::rev);
    if (!e) return b;
    const Axes& axes = e->as<AxesParams>().axes;
    if (!all_of(axes, [&](int axis) { return p.rhs_window.contains(axis); })) return b;
    for (int axis : axes) p.flipped.push_back(static_cast<int>(position(p.rhs_window, axis)));
    return e->inputs[0];
  }
  // An operand's axis i is places[i] from now on; the result's axes stay where they are, though its
  // free ones come in the operand's order.
  static void relabel(ConvParams& p, bool left, const Axes& places, int result_rank) {
    Axes &contract = left ? p.dot.lhs_contract : p.dot.rhs_contract,
         &batch = left ? p.dot.lhs_batch : p.dot.rhs_batch,
         &window = left ? p.lhs_window : p.rhs_window;
    Axes moved = free_axes(static_cast<int>(places.size()), joined(contract, window), batch);
    for (Axes* axes : {&contract, &batch, &window, &moved})
      for (int& axis : *axes) axis = places[axis];
    const Axes sorted = sorting_permutation(moved);
    const int first =
        left ? static_cast<int>(batch.size()) : result_rank - static_cast<int>(moved.size());
    Axes back = Axes::first(result_rank);
    for (std::size_t i = 0; i < sorted.size(); ++i)
      back[first + sorted[i]] = first + static_cast<int>(i);
    p.order = p.order.empty() ? back : composed(back, p.order);
  }
  void drop_unused() {
    const Vec<int> reads = reads_of(graph_);
    erase_if(graph_.equations, [&](const Equation& e) {
      return (e.op == Op::rev || e.op == Op::transpose) && reads[e.outputs[0]] == 0;
    });
  }
  Var transposed(Var x, const Axes& permutation) {
    return is_identity(permutation)
               ? x
               : add(Op::transpose, make_params(PermutationParams{permutation}), {x});
  }

  void prepare(const Equation& e) {
    where_ = e.where;
    ConvParams p = e.as<ConvParams>();
    Var a = e.inputs[0], b = e.inputs[1];
    for (Var* operand : {&a, &b}) {
      const Equation* t = maker_of(*operand, Op::transpose);
      if (!t) continue;
      ConvParams read = p;  // in place, if it need not be copied in another order then
      const Var given = *operand;
      relabel(read, operand == &a, t->as<PermutationParams>().permutation,
              old_.aval(e.outputs[0]).shape.rank());
      *operand = t->inputs[0];
      const std::optional<ConvPlan> plan =
          plan_conv(read, old_.aval(a).shape, old_.aval(b).shape, old_.aval(a).dtype, target_);
      if (plan && !plan->lhs_permutation) p = read;
      else *operand = given;
    }
    const Axes order = p.order;
    const Shape &lhs = old_.aval(a).shape, &rhs = old_.aval(b).shape;
    const DType d = old_.aval(a).dtype;
    std::optional<ConvPlan> plan = plan_conv(p, lhs, rhs, d, target_);
    const bool ordered_after = !plan;
    if (!plan) {
      p.order = {};
      plan = plan_conv(p, lhs, rhs, d);
    }
    Var result;
    if (target_ == ConvTarget::host && is_product(p, plan->spec, lhs, rhs)) {
      result = as_product(a, b, p, order);
    } else if (target_ == ConvTarget::host && too_few_columns(plan->spec)) {
      result = as_sum(a, b, p, order);
    } else {
      if (plan->lhs_permutation) {
        a = transposed(a, *plan->lhs_permutation);
        relabel(p, true, inverse(*plan->lhs_permutation), old_.aval(e.outputs[0]).shape.rank());
      }
      b = filter_of(b, p);
      result = add(Op::conv_general, make_params(p), {a, b});
      if (ordered_after && !order.empty()) transposed(result, order);
    }
    // The last equation made the result.
    graph_.equations.back().outputs[0] = e.outputs[0];
  }

  // What sums of d are made in.
  static DType widest(DType d) { return d == DType::f16 || d == DType::bf16 ? DType::f32 : d; }
  Var narrowed(Var v, DType d) {
    return graph_.aval(v).dtype == d ? v
                                     : add(Op::convert, make_params(ConvertParams{d, false}), {v});
  }
  Var padded(Var v, const PadParams& p) {
    const auto none = [](std::int64_t n) { return n == 0; };
    if (all_of(p.low, none) && all_of(p.high, none) && all_of(p.interior, none)) return v;
    const DType d = graph_.aval(v).dtype;
    return add(
        Op::pad, make_params(p),
        {v, add(Op::full, make_params(FullParams{Scalar(0).converted(d), Aval(d, Shape{})}), {})});
  }

  // A dilated image with more phases than are worth a convolution each, or with few columns, as
  // most elements of the windows that are summed would be zeros. (Measured: with 16 phases as fast
  // as convolutions of 96 features, three times as fast with few; of four phases sums take three to
  // ten times as long with two channels or more, and half as long with one.) What lies over each
  // other is stored before it is added up.
  static bool is_product(const ConvParams& p, const ConvSpec& s, const Shape& lhs,
                         const Shape& rhs) {
    constexpr std::int64_t most_added = 8, many = 16, few = 4, worth_storing = 8;
    std::int64_t phases = 1, added = 1;
    for (std::size_t k = 0; k < p.lhs_window.size(); ++k) {
      if (p.strides[k] != 1 || lhs[p.lhs_window[k]] == 0) return false;
      const std::int64_t reach = (rhs[p.rhs_window[k]] - 1) * p.rhs_dilation[k] + 1;
      phases *= p.lhs_dilation[k];
      added *= (reach + p.lhs_dilation[k] - 1) / p.lhs_dilation[k];
    }
    if (added > most_added) return false;
    if (too_few_columns(s))
      return phases >= few && phases * count_of(s.inner_contract) >= worth_storing;
    return phases >= many && (added == 1 || phases_of(s).empty());
  }

  // Each element times the whole filter from its end, and these parts of the result added up where
  // they lie over each other.
  Var as_product(Var a, Var b, const ConvParams& p, const Axes& order) {
    const Shape lhs = graph_.aval(a).shape, rhs = graph_.aval(b).shape;
    const Axes lhs_free = free_axes(lhs.rank(), p.dot.lhs_contract, p.dot.lhs_batch),
               rhs_free = free_axes(rhs.rank(), p.dot.rhs_contract, p.dot.rhs_batch);
    const auto batches = static_cast<int>(p.dot.lhs_batch.size()),
               before = batches + static_cast<int>(lhs_free.size());
    const Equation* flipped = maker_of(b, Op::rev);
    const bool both = flipped && flipped->as<AxesParams>().axes == p.rhs_window;
    DotParams dot = p.dot;
    dot.dtype = widest(p.dot.dtype);
    const Var product = add(
        Op::dot_general, make_params(dot),
        {a, both ? flipped->inputs[0] : add(Op::rev, make_params(AxesParams{p.rhs_window}), {b})});
    // The order: batch, free, elements, free of b, places in the windows.
    Axes places = Axes::first(batches);
    for (std::size_t i = 0; i < lhs_free.size(); ++i)
      if (!p.lhs_window.contains(lhs_free[i])) places.push_back(batches + static_cast<int>(i));
    const auto first = static_cast<int>(places.size());
    for (int axis : p.lhs_window)
      places.push_back(batches + static_cast<int>(position(lhs_free, axis)));
    for (std::size_t i = 0; i < rhs_free.size(); ++i)
      if (!p.rhs_window.contains(rhs_free[i])) places.push_back(before + static_cast<int>(i));
    const auto rank = places.size();
    for (int axis : p.rhs_window)
      places.push_back(before + static_cast<int>(position(rhs_free, axis)));
    WindowParams w;
    PadParams ends{Shape::filled(rank, 0), Shape::filled(rank, 0), Shape::filled(rank, 0)};
    for (std::size_t k = 0; k < p.lhs_window.size(); ++k) {
      const std::int64_t size = rhs[p.rhs_window[k]],
                         extent = (lhs[p.lhs_window[k]] - 1) * p.lhs_dilation[k] + 1;
      const std::int64_t reach = (size - 1) * p.rhs_dilation[k];
      const std::size_t axis = first + k;
      w.axes.push_back(static_cast<int>(axis));
      w.sizes.push_back(size);
      w.strides.push_back(p.lhs_dilation[k]);
      w.dilations.push_back(p.rhs_dilation[k]);
      w.extents.push_back(extent + reach);
      // The first place of the filter's end is that of the first element.
      ends.low[axis] = p.low[k] - reach;
      ends.high[axis] = p.high[k] - reach;
    }
    const Var sums = add(Op::overlap_add, make_params(w), {transposed(product, places)});
    const Var result =
        transposed(padded(sums, ends), order.empty() ? Axes::first(static_cast<int>(rank)) : order);
    return narrowed(result, p.dot.dtype);
  }

  // Σ over windows of a, their elements beside those of b; `order`: of the result's axes.
  Var as_sum(Var a, Var b, const ConvParams& p, const Axes& order) {
    const std::size_t n = p.lhs_window.size();
    const Shape lhs = graph_.aval(a).shape, rhs = graph_.aval(b).shape;
    const Axes lhs_free =
        free_axes(lhs.rank(), joined(p.dot.lhs_contract, p.lhs_window), p.dot.lhs_batch);
    const Axes rhs_free =
        free_axes(rhs.rank(), joined(p.dot.rhs_contract, p.rhs_window), p.dot.rhs_batch);
    a = transposed(
        a, joined(joined(joined(p.dot.lhs_batch, lhs_free), p.lhs_window), p.dot.lhs_contract));
    b = transposed(
        b, joined(joined(joined(p.dot.rhs_batch, rhs_free), p.dot.rhs_contract), p.rhs_window));
    const auto at = static_cast<int>(p.dot.lhs_batch.size() + lhs_free.size());
    WindowParams w;
    PadParams pad{Shape::filled(lhs.size(), 0), Shape::filled(lhs.size(), 0),
                  Shape::filled(lhs.size(), 0)};
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t axis = at + k;
      const std::int64_t extent = lhs[p.lhs_window[k]], size = rhs[p.rhs_window[k]];
      pad.low[axis] = p.low[k], pad.high[axis] = p.high[k],
      pad.interior[axis] = p.lhs_dilation[k] - 1;
      w.axes.push_back(static_cast<int>(axis));
      w.sizes.push_back(size);
      w.strides.push_back(p.strides[k]);
      w.dilations.push_back(p.rhs_dilation[k]);
      w.extents.push_back((extent - 1) * p.lhs_dilation[k] + 1 + p.low[k] + p.high[k]);
    }
    a = padded(a, pad);
    if (n > 0) a = add(Op::windows, make_params(w), {a});
    // The domain: batch, free, o, free of b, contracted, places.
    const Shape x = graph_.aval(a).shape, y = graph_.aval(b).shape;
    const int before = at + static_cast<int>(n), columns = static_cast<int>(rhs_free.size());
    Shape domain(Vec<std::int64_t>(x.begin(), x.begin() + before));
    const auto batches = static_cast<std::ptrdiff_t>(p.dot.rhs_batch.size());
    domain.append(y.begin() + batches, y.end());
    Axes a_axes = Axes::first(before), b_axes = Axes::first(static_cast<int>(batches)), reduced;
    for (int axis = before; axis < domain.rank(); ++axis) {
      b_axes.push_back(axis);
      if (axis < before + columns) continue;
      a_axes.push_back(axis);
      reduced.push_back(axis);
    }
    // The axes that are kept come in the result's order at once: its elements would else be stored
    // far apart and moved afterwards.
    const int kept = domain.rank() - static_cast<int>(reduced.size());
    const Axes in_order = joined(order.empty() ? Axes::first(kept) : order, reduced),
               places = inverse(in_order);
    Shape ordered;
    for (int axis : in_order) ordered.push_back(domain[axis]);
    const DType wide = widest(p.dot.dtype);
    const auto laid_out = [&](Var v, const Axes& axes) {
      if (graph_.aval(v).dtype != wide)
        v = add(Op::convert, make_params(ConvertParams{wide, false}), {v});
      Axes at_places, increasing;
      for (int axis : axes) at_places.push_back(places[axis]);
      const Axes sorted = sorting_permutation(at_places);
      for (int i : sorted) increasing.push_back(at_places[i]);
      return add(Op::broadcast_in_dim, make_params(BroadcastParams{ordered, increasing}),
                 {transposed(v, sorted)});
    };
    const Var left = laid_out(a, a_axes), right = laid_out(b, b_axes);
    const Var product = add(Op::mul, {}, {left, right});
    return narrowed(reduced.empty()
                        ? product
                        : add(Op::reduce_sum, make_params(AxesParams{reduced}), {product}),
                    p.dot.dtype);
  }

  GraphBody old_, graph_;
  ConvTarget target_;
  CallSite where_{};
};

}  // namespace conv_planning

GraphBody prepare_convolutions(GraphBody graph, ConvTarget target) {
  const bool any =
      any_of(graph.equations, [](const Equation& e) { return e.op == Op::conv_general; });
  return any ? conv_planning::Preparation(std::move(graph), target).run() : graph;
}

}  // namespace vt::detail
