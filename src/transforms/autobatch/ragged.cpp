// Ragged lists: which there are, and the rule of each op for values that have a ragged axis. What
// has none is computed of the list as one value, of a kind for each length.
#include "ragged.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "experience.hpp"

namespace vt::detail::autobatching {

namespace ragged {

// A larger operand that rows do not share is not copied for each of them.
constexpr std::size_t worth_repeating = 8 << 10;

Shape with_extent(Shape shape, int axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

class Rewriter {
 public:
  Rewriter(GraphBody graph, std::uint64_t program, std::span<const GivenValue> given)
      : g_(std::move(graph)), program_(program), given_(given) {}

  RaggedGraph run() {
    if (!find_lists() && none_of(given_, [](const GivenValue& v) { return v.axis >= 0; }))
      return {std::move(g_), {}, {}};
    list_.resize(g_.equations.size(), None);
    forms_.resize(g_.avals.size());
    makers_.resize(g_.avals.size(), -1);
    stopped_.resize(g_.avals.size(), true);
    for (const Equation& e : g_.equations)
      for (Var v : e.inputs)
        if (e.op != Op::stop_gradient) stopped_[v] = false;
    for (Var v : g_.outputs) stopped_[v] = false;
    out_.graph.avals = g_.avals;
    out_.graph.inputs = g_.inputs;
    out_.graph.outputs = g_.outputs;
    out_.rows.resize(g_.avals.size(), -1);
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i].axis < 0) continue;
      Var& in = out_.graph.inputs[g_.inputs.size() - given_.size() + i];
      const Var whole = in;
      in = fresh(row_of(whole, given_[i].axis), given_[i].rows);
      const Equation at_no_line;
      now_ = &at_no_line;
      give(whole, in, given_[i].axis);
    }
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      Equation e = std::move(g_.equations[k]);
      now_ = &e;
      if (list_[k] != None) add_list(e, list_[k]);
      else add(std::move(e));
    }
    drop_unread(out_.graph);
    for (Form& f : forms_) out_.forms.push_back(f.for_sums ? RaggedGraph::Form() : f);
    return std::move(out_);
  }

 private:
  enum Listed : std::uint8_t {
    None,
    Counted,  ///< of many operands: moved as one value, and added up as rows
    Varied
  };
  struct Form : RaggedGraph::Form {
    bool for_sums = false;  ///< for nothing else
  };

  const Shape& shape(Var v) const { return g_.aval(v).shape; }
  int rank(Var v) const { return static_cast<int>(shape(v).size()); }
  bool is_ragged(Var v) const { return out_.rows[v] >= 0; }

  // --- which lists
  // --------------------------------------------------------------------------------

  bool find_lists() {
    constexpr std::size_t many = 16;
    Vec<std::pair<std::size_t, std::uint64_t>> found;  // equations, and their lines
    own_.resize(g_.avals.size(), false);
    for (std::size_t i = g_.inputs.size() - given_.size(); i < g_.inputs.size(); ++i)
      own_[g_.inputs[i]] = true;
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      const bool reads = e.op == Op::slice || e.op == Op::gather || keeps_order(e) ||
                         any_of(e.inputs, [&](Var v) { return own_[v]; });
      for (Var v : e.outputs) own_[v] = reads;
      if (e.op != Op::concatenate || !is_list(e)) continue;
      const std::uint64_t line = line_of(e);
      found.emplace_back(k, line);
      if (program_ != 0)
        Experience::all().add(line, std::uint64_t{1} << (mixed(0, e.inputs.size()) >> 58));
    }
    bool any = false;
    for (const auto& [k, line] : found) {
      const Equation& e = g_.equations[k];
      const bool varied = program_ != 0 && std::popcount(Experience::all().add(line, 0)) > 1;
      if (!varied && (e.inputs.size() <= many || !own_[e.outputs[0]])) continue;
      list_.resize(g_.equations.size(), None);
      list_[k] = varied ? Varied : Counted;
      any = true;
    }
    return any;
  }
  // Each operand is rows that lie side by side.
  bool is_list(const Equation& e) const {
    const int axis = e.as<AxisParams>().axis;
    const Shape& first = shape(e.inputs[0]);
    return first.elements() > 0 && (first[axis] == 1 || extent_before(first, axis) == 1) &&
           none_of(e.inputs, [&](Var v) { return shape(v) != first; });
  }
  std::uint64_t line_of(const Equation& e) const {
    std::uint64_t line = mixed(mixed(program_, reinterpret_cast<std::uintptr_t>(e.where.file)),
                               static_cast<std::uint64_t>(e.where.line));
    const Aval& a = g_.aval(e.inputs[0]);
    line = mixed(mixed(line, static_cast<std::uint64_t>(a.dtype)), e.as<AxisParams>().axis);
    for (std::int64_t extent : a.shape) line = mixed(line, extent);
    return line;
  }

  // --- equations
  // ----------------------------------------------------------------------------------

  void add(Equation e) {
    now_ = &e;
    if (rewrite(e)) return;
    for (Var v : e.outputs) makers_[v] = static_cast<std::int32_t>(out_.graph.equations.size());
    out_.graph.equations.push_back(std::move(e));
  }
  Var fresh(Aval a, std::int64_t rows) {
    out_.rows.push_back(rows);
    return out_.graph.fresh(a);
  }
  void push(Op op, ParamsRef params, std::initializer_list<Var> inputs, Var output) {
    Equation& e = out_.graph.equations.emplace_back();
    e.op = op;
    e.where = now_->where;
    e.assume_finite = now_->assume_finite;
    e.params = std::move(params);
    for (Var v : inputs) e.inputs.push_back(v);
    e.outputs.push_back(output);
  }
  Var made(Op op, ParamsRef params, std::initializer_list<Var> inputs, const Aval& result,
           std::int64_t rows) {
    const Var v = fresh(result, rows);
    push(op, std::move(params), inputs, v);
    return v;
  }
  template <class P>
  Var made(Op op, P params, std::initializer_list<Var> inputs, const Aval& result,
           std::int64_t rows) {
    return made(op, make_params(std::move(params)), inputs, result, rows);
  }
  Var number(Scalar value, DType d) {
    const Aval a(d, Shape{});
    return made(Op::full, FullParams{value.converted(d), a}, {}, a, -1);
  }

  // v, which is computed as rows, and as one value for those who cannot read it so.
  bool give(Var v, Var rows, int axis, bool for_sums = false) {
    forms_[v] = {{rows, axis}, for_sums};
    const Shape& whole = shape(v);
    const ParamsRef all = make_params(RowsParams{});
    if (extent_before(whole, axis) == 1) {
      push(Op::rows, all, {rows}, v);
      return true;
    }
    if (family_of(now_->op) == Family::shape) {  // moved as a whole as well as from rows
      out_.graph.equations.push_back(*now_);
      return true;
    }
    Aval lying = g_.aval(v);
    lying.shape = Shape{whole[axis]};
    Axes back;
    for (int d = 0; d < rank(v); ++d) {
      if (d != axis) lying.shape.push_back(whole[d]);
      back.push_back(d == axis ? 0 : d < axis ? d + 1 : d);
    }
    push(Op::transpose, make_params(PermutationParams{back}),
         {made(Op::rows, all, {rows}, lying, -1)}, v);
    return true;
  }
  Aval row_of(Var v, int axis) const {
    Aval row = g_.aval(v);
    row.shape[axis] = 1;
    return row;
  }

  bool add_list(const Equation& e, Listed listed) {
    const int axis = e.as<AxisParams>().axis;
    const Var v = e.outputs[0];
    const Var rows = fresh(row_of(v, axis), shape(v)[axis]);
    Equation& list = out_.graph.equations.emplace_back(e);
    list.op = Op::rows;
    list.params = make_params(RowsParams{});
    list.outputs[0] = rows;
    for (Var& in : list.inputs) {
      if (const Form& f = forms_[in]; f.rows >= 0 && !f.for_sums && f.axis == axis) {
        in = f.rows;
        continue;
      }
      // Rows with one more axis of extent 1 have the same elements.
      const std::int32_t k = makers_[in];
      if (k < 0) continue;
      const Equation& maker = out_.graph.equations[k];
      if ((maker.op == Op::reshape || maker.op == Op::broadcast_in_dim) &&
          g_.aval(maker.inputs[0]).elements() == g_.aval(in).elements())
        in = maker.inputs[0];
    }
    return give(v, rows, axis, listed == Counted);
  }

  // --- operands
  // -----------------------------------------------------------------------------------

  const Form* form_of(Var v) const {
    const Form& f = forms_[v];
    return f.rows >= 0 && !f.for_sums ? &f : nullptr;
  }
  /// The operand for each row along `axis`: ragged, or the same for all of them; −1: it has none.
  Var rows_along(Var v, int axis) {
    if (const Form* f = form_of(v)) return f->axis == axis ? f->rows : -1;
    if (rank(v) == 0) return v;
    const std::uint64_t key = std::uint64_t{static_cast<std::size_t>(v)} << 8 | axis;
    if (const auto known = repeated_.find(key); known != repeated_.end()) return known->second;
    constexpr int deepest = 64;
    if (depth_ == deepest) return -1;
    ++depth_;
    const Var rows = repeated(v, axis);
    --depth_;
    repeated_.emplace(key, rows);
    return rows;
  }
  /// Of a value that repeats itself along the axis, or counts along it.
  Var repeated(Var v, int axis) {
    const std::int32_t k = makers_[v];
    if (k < 0) return -1;
    const Equation e = out_.graph.equations[k];
    const Aval row = row_of(v, axis);
    const std::int64_t n = shape(v)[axis];
    switch (e.op) {
      case Op::iota:
        if (e.as<IotaParams>().axis == axis) return counted(row, n);
        [[fallthrough]];
      case Op::full: return made(e.op, detail::with_extent(e.params, axis, 1), {}, row, -1);
      case Op::broadcast_in_dim: {
        BroadcastParams p = e.as<BroadcastParams>();
        Var in = e.inputs[0];
        for (std::size_t i = 0; i < p.axes.size(); ++i) {
          if (p.axes[i] != axis || (shape(in)[i] == 1 && n != 1)) continue;
          in = rows_along(in, static_cast<int>(i));
          if (in < 0) return -1;
          break;
        }
        p.shape = row.shape;
        return made(Op::broadcast_in_dim, std::move(p), {in}, row, n);
      }
      default: break;
    }
    return is_elementwise(e.op) ? elementwise(e, axis) : -1;
  }
  Var counted(const Aval& row, std::int64_t n) {
    Aval one(row.dtype, Shape::filled(row.shape.size(), 1));
    const Var numbers = made(Op::iota, IotaParams{one, 0}, {}, one, n);
    if (one.shape == row.shape) return numbers;
    return made(Op::broadcast_in_dim,
                BroadcastParams{row.shape, Axes::first(static_cast<int>(row.shape.size()))},
                {numbers}, row, n);
  }
  /// The same of each row; −1: an operand has none.
  Var elementwise(const Equation& e, int axis) {
    Equation own = e;
    bool any = false;
    for (Var& v : own.inputs) {
      v = rows_along(v, axis);
      if (v < 0) return -1;
      any = any || is_ragged(v);
    }
    const Var out = e.outputs[0];
    own.outputs[0] = fresh(row_of(out, axis), any ? shape(out)[axis] : -1);
    out_.graph.equations.push_back(std::move(own));
    return out_.graph.equations.back().outputs[0];
  }

  // --- rules
  // --------------------------------------------------------------------------------------

  /// Has it been done to rows? Else it is done to whole values.
  bool rewrite(const Equation& e) {
    if (e.op == Op::call) return inlined(e);
    if (e.outputs.size() != 1) return false;
    const Var out = e.outputs[0];
    const Form* const f = e.inputs.empty() ? nullptr : form_of(e.inputs[0]);
    if (is_elementwise(e.op)) {
      for (Var v : e.inputs)
        if (const Form* of = form_of(v)) {
          const int axis = of->axis;
          const Var rows = elementwise(e, axis);
          return rows >= 0 && give(out, rows, axis);
        }
      return false;
    }
    if (e.op == Op::dot_general) return product(e);
    if (e.op == Op::concatenate) return joined(e);
    if (e.op == Op::reduce_sum && !f && forms_[e.inputs[0]].for_sums &&
        e.as<AxesParams>().axes == Axes(forms_[e.inputs[0]].axis))
      return reduction(e, forms_[e.inputs[0]]);
    if (!f) return false;
    const Form form = *f;
    if (e.op == Op::slice) return part(e, form);
    if (is_reduction(e.op) && e.as<AxesParams>().axes.contains(form.axis))
      return reduction(e, form);
    if ((e.op == Op::argmax || e.op == Op::argmin) && e.as<ArgParams>().axis == form.axis)
      return place_of_extreme(e, form);
    if (e.inputs.size() != 1 || family_of(e.op) == Family::structure) return false;
    const int axis = axis_in_result(g_, e, 0, form.axis);
    if (axis < 0) return false;
    // One equation for each row, whose parameters may have its shape.
    return give(out,
                made(e.op, detail::with_extent(e.params, axis, 1), {form.rows}, row_of(out, axis),
                     shape(out)[axis]),
                axis);
  }
  // A function of lists: what it does to them.
  bool inlined(const Equation& e) {
    const auto& p = e.as<CallParams>();
    if (p.rule || none_of(e.inputs, [&](Var v) { return form_of(v); }) || keeps_order(e))
      return false;
    const GraphRef body = p.body;
    Vec<Var> names(body->avals.size(), -1);
    Vec<bool> read(body->avals.size(), false);
    for (std::size_t i = 0; i < body->inputs.size(); ++i) names[body->inputs[i]] = e.inputs[i];
    for (std::size_t i = 0; i < body->outputs.size(); ++i) {
      Var& name = names[body->outputs[i]];
      if (name >= 0) return false;  // an operand, or twice the same
      name = e.outputs[i];
    }
    for (const Equation& own : body->equations)
      for (Var v : own.inputs) read[v] = read[v] || own.op != Op::stop_gradient;
    const std::size_t known = out_.graph.avals.size();
    for (const Equation& own : body->equations)
      for (Var v : own.outputs)
        if (names[v] < 0) names[v] = fresh(body->aval(v), -1);
    g_.avals.resize(out_.graph.avals.size());
    for (std::size_t v = known; v < g_.avals.size(); ++v) g_.avals[v] = out_.graph.avals[v];
    forms_.resize(g_.avals.size());
    makers_.resize(g_.avals.size(), -1);
    stopped_.resize(g_.avals.size(), true);
    own_.resize(g_.avals.size(), true);
    for (const Equation& own : body->equations) {
      Equation renamed = own;
      for (Var& v : renamed.inputs) v = names[v];
      for (Var& v : renamed.outputs) {
        const bool through = read[v];
        v = names[v];
        stopped_[v] = stopped_[v] && !through;
      }
      add(std::move(renamed));
    }
    return true;
  }

  bool joined(const Equation& e) {
    const int along = e.as<AxisParams>().axis;
    const Var out = e.outputs[0];
    for (Var v : e.inputs) {
      const Form* const f = form_of(v);
      if (!f) continue;
      if (f->axis == along) {
        const bool side_by_side = none_of(e.inputs, [&](Var in) {
          const Form* const of = form_of(in);
          return of ? of->axis != along
                    : shape(in)[along] != 1 && extent_before(shape(in), along) != 1;
        });
        return side_by_side && shape(out).elements() > 0 && add_list(e, Varied);
      }
      const int axis = f->axis;
      Equation own = e;
      for (Var& in : own.inputs)
        if ((in = rows_along(in, axis)) < 0) return false;
      own.outputs[0] = fresh(row_of(out, axis), shape(out)[axis]);
      const Var rows = own.outputs[0];
      out_.graph.equations.push_back(std::move(own));
      return give(out, rows, axis);
    }
    return false;
  }

  bool part(const Equation& e, const Form& form) {
    SliceParams p = e.as<SliceParams>();
    const Var out = e.outputs[0];
    const std::int64_t start = p.start[form.axis], count = shape(out)[form.axis];
    if (p.stride[form.axis] != 1 || count == 0) return false;
    p.start[form.axis] = 0;
    p.limit[form.axis] = 1;
    const Aval row = row_of(out, form.axis);
    Var rows = form.rows;
    if (count != out_.rows[rows])
      rows = made(Op::rows, RowsParams{{{0, start, count}}}, {rows}, out_.graph.aval(rows), count);
    if (row.shape != out_.graph.aval(rows).shape)
      rows = made(e.op, std::move(p), {rows}, row, count);
    return give(out, rows, form.axis);
  }

  bool product(const Equation& e) {
    const auto& p = e.as<DotParams>();
    const Var a = e.inputs[0], b = e.inputs[1], out = e.outputs[0];
    const auto index = [](const Axes& axes, int axis) {
      return std::find(axes.begin(), axes.end(), axis) - axes.begin();
    };
    for (const bool left : {true, false}) {
      const Form* const known = form_of(left ? a : b);
      if (!known) continue;
      const Form f = *known;
      const Axes &contract = left ? p.lhs_contract : p.rhs_contract,
                 &others_contract = left ? p.rhs_contract : p.lhs_contract,
                 &batch = left ? p.lhs_batch : p.rhs_batch,
                 &others_batch = left ? p.rhs_batch : p.lhs_batch;
      const std::size_t in_contract = index(contract, f.axis), in_batch = index(batch, f.axis);
      Var own = f.rows, other = left ? b : a;
      int axis = -1;
      if (in_contract < contract.size()) {
        other =
            size_of(g_.aval(out).dtype) < 4 ? -1 : rows_along(other, others_contract[in_contract]);
      } else if (in_batch < batch.size()) {
        axis = static_cast<int>(in_batch);
        other = rows_along(other, others_batch[in_batch]);
      } else if (form_of(other) || (own_[other] && g_.aval(other).bytes() > worth_repeating)) {
        continue;  // it would be copied for each row
      } else {
        axis = static_cast<int>(batch.size());
        if (!left) axis += rank(a) - static_cast<int>(batch.size() + p.lhs_contract.size());
        for (int d = 0; d < f.axis; ++d) axis += !batch.contains(d) && !contract.contains(d);
      }
      if (other < 0) continue;
      if (!left) std::swap(own, other);
      const std::int64_t n = out_.rows[f.rows];
      if (axis < 0) {
        push(Op::add, {}, {made(e.op, e.params, {own, other}, g_.aval(out), n)}, out);
        return true;
      }
      return give(out, made(e.op, e.params, {own, other}, row_of(out, axis), n), axis);
    }
    return false;
  }

  // --- reductions along the rows
  // ------------------------------------------------------------------

  bool reduction(const Equation& e, const Form& form) {
    const Var out = e.outputs[0];
    const Aval& result = g_.aval(out);
    const Op op = reduction_facts[e.op].combine;
    const std::int64_t n = out_.rows[form.rows];
    if (op == Op::mul || (op == Op::add && size_of(result.dtype) < 4)) return false;
    Axes others;
    for (int a : e.as<AxesParams>().axes)
      if (a != form.axis) others.push_back(a);
    const Aval row = out_.graph.aval(form.rows);
    const auto within_rows = [&](Op reduces, Var v) {
      if (others.empty()) return v;
      Aval less = row;
      less.shape = {};
      for (int d = 0; d < static_cast<int>(row.shape.size()); ++d)
        if (!others.contains(d)) less.shape.push_back(row.shape[d]);
      return made(reduces, AxesParams{others}, {v}, less, n);
    };
    const bool extreme = op == Op::max || op == Op::min;
    if (!extreme || !is_float(row.dtype) || stopped_[out]) {
      push(op, {}, {within_rows(e.op, form.rows)}, out);
      return true;
    }
    // The derivative is that of the extreme elements, which share it: they are found by their
    // value, and a difference is added that is 0 and has their derivative. (Their neighbours
    // towards zero are finite.)
    const auto each = [&](Op does, std::initializer_list<Var> inputs) {
      return made(does, ParamsRef{}, inputs, row, n);
    };
    const auto spread = [&](Var v) {
      BroadcastParams p{row.shape, {}};
      for (int d = 0; d < static_cast<int>(row.shape.size()); ++d)
        if (!e.as<AxesParams>().axes.contains(d)) p.axes.push_back(d);
      return made(Op::broadcast_in_dim, std::move(p), {v}, row, n);
    };
    const auto summed = [&](Var v) {
      return made(Op::add, ParamsRef{}, {within_rows(Op::reduce_sum, v)}, result, -1);
    };
    const Var value = each(Op::stop_gradient, {form.rows});
    const Var most = made(op, ParamsRef{}, {within_rows(e.op, value)}, result, -1);
    const Var is_most =
        made(Op::eq, ParamsRef{}, {value, spread(most)}, Aval(DType::bool_, row.shape), n);
    const Var one = made(Op::convert, ConvertParams{row.dtype}, {is_most}, row, n);
    const Var weight = each(Op::div, {one, spread(summed(one))});
    const Var finite = each(Op::nextafter, {form.rows, number(Scalar(0), row.dtype)});
    const Var none = each(Op::sub, {each(Op::stop_gradient, {finite}), finite});
    push(Op::sub, {}, {most, summed(each(Op::mul, {none, weight}))}, out);
    return true;
  }
  // The first row that has the extreme element, or NaN.
  bool place_of_extreme(const Equation& e, const Form& form) {
    const auto& p = e.as<ArgParams>();
    const Var out = e.outputs[0];
    const std::int64_t n = out_.rows[form.rows];
    const Aval row = out_.graph.aval(form.rows), truth(DType::bool_, row.shape),
               place(p.dtype, row.shape);
    Aval result = g_.aval(out);
    result.dtype = row.dtype;
    const Var most =
        made(e.op == Op::argmax ? Op::max : Op::min, ParamsRef{}, {form.rows}, result, -1);
    BroadcastParams over{row.shape, {}};
    for (int d = 0; d < static_cast<int>(row.shape.size()); ++d)
      if (d != form.axis) over.axes.push_back(d);
    const Var all = made(Op::broadcast_in_dim, std::move(over), {most}, row, n);
    const Var is_most = made(Op::or_, ParamsRef{},
                             {made(Op::eq, ParamsRef{}, {form.rows, all}, truth, n),
                              made(Op::ne, ParamsRef{}, {form.rows, form.rows}, truth, n)},
                             truth, n);
    const Var beyond = number(Scalar(std::numeric_limits<std::int32_t>::max()), p.dtype);
    const Var found = made(Op::select, ParamsRef{}, {is_most, counted(place, n), beyond}, place, n);
    push(Op::min, {}, {found}, out);
    return true;
  }

  GraphBody g_;
  std::uint64_t program_;
  std::span<const GivenValue> given_;
  RaggedGraph out_;
  const Equation* now_ = nullptr;
  Vec<Listed> list_;  ///< per equation
  Vec<Form> forms_;   ///< per Var of g_
  /// Per Var of g_: the equation of the new Graph that it has kept; −1: none.
  Vec<std::int32_t> makers_;
  Vec<bool> stopped_;  ///< per Var of g_: no derivative goes through it
  Vec<bool> own_;      ///< per Var of g_: of an instance, not of parameters alone
  HashMap<std::uint64_t, Var> repeated_;
  int depth_ = 0;
};

}  // namespace ragged

RaggedGraph with_ragged_lists(GraphBody graph, std::uint64_t program,
                              std::span<const GivenValue> given) {
  return ragged::Rewriter(std::move(graph), program, given).run();
}

}  // namespace vt::detail::autobatching
