// Sums over many rows as scans: which equations belong to each row, and the scan's body.
#include "sum_scans.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../nest/cost_model.hpp"
#include "lane_form.hpp"

namespace vt::detail {

namespace sum_scans {

/// A reshape that makes one axis of several: of `count` blocks, which are its operand's elements
/// along an axis.
struct Merge {
  int axis;
  std::int64_t count;
};
std::optional<Merge> merge_at(const GraphBody& g, const Equation& e, int axis_of_result) {
  if (e.op != Op::reshape) return std::nullopt;
  const Shape &from = g.aval(e.inputs[0]).shape, &to = g.aval(e.outputs[0]).shape;
  for (int first = 0; first < from.rank(); ++first) {
    if (from[first] < 2 || extent_before(from, first) != extent_before(to, axis_of_result))
      continue;
    std::int64_t all = 1;
    for (int d = first; d < from.rank() && all < to[axis_of_result]; ++d) all *= from[d];
    if (all == to[axis_of_result] && from[first] < all) return Merge{first, from[first]};
  }
  return std::nullopt;
}

/// A sum over rows: of `x`, or of products of `x` and `y`.
struct Sum {
  int equation = -1;
  Var x = -1, y = -1;  ///< y −1: there is none
};

bool is_sum(const GraphBody& g, const Equation& e) {
  const DType d = g.aval(e.outputs[0]).dtype;
  if ((d != DType::f32 && d != DType::f64) || g.aval(e.inputs[0]).dtype != d) return false;
  if (e.op == Op::reduce_sum) return true;
  return e.op == Op::dot_general && g.aval(e.inputs[1]).dtype == d && e.as<DotParams>().dtype == d;
}

class SumScan {
 public:
  /// `least_elements`: of what is summed.
  SumScan(const GraphBody& g, std::int64_t least_rows, std::int64_t least_elements)
      : g_(g),
        least_rows_(least_rows),
        least_elements_(least_elements),
        axes_(g),
        outer_(g),
        makers_(makers_of(g)),
        reads_(reads_of(g)) {}

  /// The Graph with the sums over one axis as a scan; nothing if there are none.
  std::optional<GraphBody> run() {
    Vec<int> classes;
    for (const Equation& e : g_.equations) {
      if (e.outputs.size() != 1 || e.inputs.empty() || !is_sum(g_, e)) continue;
      if (e.op == Op::dot_general) {
        const auto& p = e.as<DotParams>();
        for (std::size_t i = 0; i < p.lhs_contract.size(); ++i)
          axes_.join(e.inputs[0], p.lhs_contract[i], e.inputs[1], p.rhs_contract[i]);
      }
    }
    for (const Equation& e : g_.equations) {
      if (e.outputs.size() != 1 || e.inputs.empty() || !is_sum(g_, e)) continue;
      const Axes& summed =
          e.op == Op::dot_general ? e.as<DotParams>().lhs_contract : e.as<AxesParams>().axes;
      for (const int a : summed) {
        if (g_.aval(e.inputs[0]).shape[a] < least_rows_ ||
            g_.aval(e.inputs[0]).elements() < least_elements_)
          continue;
        const int number = axes_.class_of(e.inputs[0], a);
        if (std::find(classes.begin(), classes.end(), number) == classes.end())
          classes.push_back(number);
      }
    }
    for (const int number : classes)
      if (std::optional<GraphBody> with = over(number)) return with;
    return std::nullopt;
  }

  /// Of the Graph that run() gave: is a sum one of products whose factors are computed in it?
  bool computes_factors() const {
    return any_of(sums_, [&](const Sum& s) {
      const auto computed = [&](Var v) { return makers_[v] >= 0 && members_[makers_[v]]; };
      return s.y >= 0 && computed(s.x) && computed(s.y);
    });
  }

 private:
  /// The sums over the rows of this class.
  std::optional<GraphBody> over(int number) {
    axes_.choose(number);
    find_sums();
    find_members();
    if (sums_.empty()) return std::nullopt;
    Vec<bool> inside = members_;
    for (const Sum& s : sums_) inside[s.equation] = true;
    const Vec<Vec<int>> stages = stages_of(g_, makers_, inside);
    // Sums that others wait for would need a second reading of the rows.
    if (count_if(stages, [&](const Vec<int>& stage) {
          return any_of(stage, [&](int i) { return inside[i]; });
        }) != 1)
      return std::nullopt;
    GraphBody with = g_;
    with.equations.clear();
    for (const Vec<int>& stage : stages) {
      for (const int i : stage)
        if (!inside[i]) with.equations.push_back(g_.equations[i]);
      if (any_of(stage, [&](int i) { return inside[i]; }) && !add_scan(with)) return std::nullopt;
    }
    return with;
  }

  /// Where rows are blocks, sums are those of a block, whatever they are.
  void find_sums() {
    sums_.clear();
    blocks_ = 0;
    first_merged_ = -1;
    for (std::size_t i = 0; i < g_.equations.size(); ++i) {
      const Equation& e = g_.equations[i];
      if (e.outputs.size() != 1 || e.inputs.empty() || !is_sum(g_, e) ||
          axes_.axis(e.outputs[0]) >= 0)
        continue;
      const Var x = e.inputs[0];
      const int a = axes_.axis(x);
      if (a < 0 || axes_.ambiguous(x)) continue;
      if (e.op == Op::reduce_sum) {
        if (e.as<AxesParams>().axes.contains(a)) sums_.push_back({static_cast<int>(i), x, -1});
        continue;
      }
      // Of each row the product of all elements of both factors.
      const auto& p = e.as<DotParams>();
      const Var y = e.inputs[1];
      if (p.lhs_contract.size() == 1 && p.lhs_batch.empty() && p.lhs_contract[0] == a &&
          p.rhs_contract[0] == axes_.axis(y) && !axes_.ambiguous(y))
        sums_.push_back({static_cast<int>(i), x, y});
    }
  }

  /// What is computed of each row for the sums alone.
  void find_members() {
    members_.assign(g_.equations.size(), false);
    of_blocks_.assign(g_.avals.size(), false);
    Vec<Var> waiting, merged;
    for (const Sum& s : sums_) {
      waiting.push_back(s.x);
      if (s.y >= 0) waiting.push_back(s.y);
    }
    while (!waiting.empty()) {
      const Var v = waiting.back();
      waiting.pop_back();
      const int m = axes_.axis(v) < 0 ? -1 : makers_[v];
      if (m < 0 || members_[m]) continue;
      if (joins_blocks(g_.equations[m])) {
        members_[m] = true;
        merged.push_back(g_.equations[m].inputs[0]);
      } else if (is_of_a_row(g_.equations[m], axes_)) {
        members_[m] = true;
        for (const Var u : g_.equations[m].inputs) waiting.push_back(u);
      }
    }
    // What is in front of these reshapes has the blocks along an axis of its own.
    while (!merged.empty()) {
      const Var v = merged.back();
      merged.pop_back();
      of_blocks_[v] = outer_.axis(v) >= 0;
      const int m = of_blocks_[v] ? makers_[v] : -1;
      if (m < 0 || members_[m] || !is_of_a_row(g_.equations[m], outer_)) continue;
      members_[m] = true;
      for (const Var u : g_.equations[m].inputs) merged.push_back(u);
    }
    for (bool changed = true; changed;) {
      changed = false;
      HashMap<Var, int> inside;
      const auto read = [&](const Equation& e) {
        for (const Var v : e.inputs) ++inside[v];
      };
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (members_[i]) read(g_.equations[i]);
      for (const Sum& s : sums_) read(g_.equations[s.equation]);
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (members_[i] && inside[g_.equations[i].outputs[0]] != reads_[g_.equations[i].outputs[0]])
          members_[i] = false, changed = true;
    }
  }
  /// Does it make the axis of the rows of blocks? The first that does says how many there are.
  bool joins_blocks(const Equation& e) {
    const std::optional<Merge> merge = merge_at(g_, e, axes_.axis(e.outputs[0]));
    if (!merge || axes_.ambiguous(e.outputs[0])) return false;
    if (blocks_ == 0) blocks_ = merge->count;
    if (merge->count != blocks_) return false;
    // All of them go through their blocks together.
    if (first_merged_ < 0) first_merged_ = e.inputs[0], first_axis_ = merge->axis;
    outer_.join(e.inputs[0], merge->axis, first_merged_, first_axis_);
    outer_.choose(outer_.class_of(first_merged_, first_axis_));
    return outer_.axis(e.inputs[0]) == merge->axis && !outer_.ambiguous(e.inputs[0]);
  }
  const LaneAxes& axes_of(Var v) const { return of_blocks_[v] ? outer_ : axes_; }
  bool counts_rows(const Equation& e) const {
    return e.op == Op::iota && e.as<IotaParams>().axis == axes_of(e.outputs[0]).axis(e.outputs[0]);
  }
  bool is_of_a_row(const Equation& e, const LaneAxes& axes) const {
    if (e.outputs.size() != 1 || keeps_order(e) || axes.ambiguous(e.outputs[0])) return false;
    if (e.op == Op::iota && e.as<IotaParams>().axis == axes.axis(e.outputs[0])) return true;
    switch (family_of(e.op)) {
      case Family::leaf: return e.op == Op::full && axes.equation(e).has_value();
      case Family::unary:
      case Family::binary:
      case Family::select:
      case Family::reduce:
      case Family::shape:
      case Family::contract: return e.op != Op::conv_general && axes.equation(e).has_value();
      case Family::index: return e.op == Op::slice && axes.equation(e).has_value();
      default: return false;
    }
  }

  /// A value of one row, or of one block.
  Aval of_a_row(Var v) const {
    if (of_blocks_[v]) return outer_.aval(v);
    if (blocks_ == 0) return axes_.aval(v);
    Aval a = g_.aval(v);
    if (axes_.axis(v) >= 0) a.shape[axes_.axis(v)] /= blocks_;
    return a;
  }
  /// A member for one row, or one block.
  Equation of_a_row(const Equation& e) const {
    const Var v = e.outputs[0];
    if (of_blocks_[v]) return *outer_.equation(e);
    if (blocks_ == 0) return *axes_.equation(e);
    const int a = axes_.axis(v);
    Equation block = e;
    block.params = with_extent(e.params, a, g_.aval(v).shape[a] / blocks_);
    return block;
  }

  /// Rows with an axis for the blocks in front of theirs.
  Var in_blocks(GraphBody& to, Var v) const {
    Shape shape = g_.aval(v).shape;
    shape[0] /= blocks_;
    shape.insert(shape.begin(), blocks_);
    return add_equation(to, Op::reshape, make_params(ShapeParams{shape}), {v});
  }
  /// The value of which it is a transposition, or the same, in each row.
  Var same_row(Var v) const {
    for (int m = makers_[v]; m >= 0 && members_[m]; m = makers_[v]) {
      const Equation& e = g_.equations[m];
      if (e.op != Op::transpose || axes_.aval(v).shape.rank() > 1) break;
      v = e.inputs[0];
    }
    return v;
  }

  bool add_scan(GraphBody& with) {
    // What the rows are made of.
    Vec<Var> sequences, shared;
    bool counts = false;
    // What is made anew in each iteration; what others read as well.
    Vec<bool> numbers(g_.equations.size()), copied = numbers;
    const Function<void(Var)> give = [&](Var v) {
      if (makers_[v] >= 0 && members_[makers_[v]]) return;
      const bool is_row = axes_of(v).axis(v) >= 0;
      if (!is_row && is_number_[v]) return mark_numbers(v, numbers);
      if (!is_row && is_made_anew(v)) {
        if (std::exchange(numbers[makers_[v]], true)) return;
        for (const Var u : g_.equations[makers_[v]].inputs) give(u);
        return;
      }
      if (is_row && is_copied(v)) {
        if (std::exchange(copied[makers_[v]], true)) return;
        for (const Var u : g_.equations[makers_[v]].inputs) give(u);
        return;
      }
      Vec<Var>& list = is_row ? sequences : shared;
      if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
    };
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i]) continue;
      const Equation& e = g_.equations[i];
      if (blocks_ > 0 && counts_rows(e) && !of_blocks_[e.outputs[0]]) return false;
      counts = counts || counts_rows(e);
      for (const Var v : e.inputs) give(v);
    }
    std::int64_t rows = 0;
    for (const Sum& s : sums_) {
      give(s.x);
      if (s.y >= 0) give(s.y);
      rows = g_.aval(s.x).shape[axes_.axis(s.x)];
    }
    // Rows of another place would have to be brought together.
    if (any_of(sequences,
               [&](Var v) { return axes_of(v).axis(v) != 0 || axes_of(v).ambiguous(v); }))
      return false;
    if (blocks_ > 0) rows = blocks_;

    auto body = std::make_shared<GraphBody>();
    RecycledVec<Aval> types;
    for (std::size_t v = 0; v < g_.avals.size(); ++v)
      types.push_back(of_a_row(static_cast<Var>(v)));
    Copier inside(types, *body);
    // Carries: the row's number, then the sums. A symmetric product is summed once.
    struct Carry {
      Var in = -1;
      Aval aval;
      bool symmetric = false;
    };
    Vec<Carry> carries;
    const auto carry = [&](const Aval& a, bool symmetric) {
      carries.push_back({body->fresh(a), a, symmetric});
      body->inputs.push_back(carries.back().in);
      return carries.back().in;
    };
    Var number = -1;
    if (counts) number = carry(Aval(DType::i32, Shape{}), false);
    for (const Sum& s : sums_) {
      const Aval& out = g_.aval(g_.equations[s.equation].outputs[0]);
      const Aval& row = types[s.x];
      const bool symmetric = blocks_ == 0 && s.y >= 0 && row.shape.rank() == 1 &&
                             row.shape == types[s.y].shape && row.elements() > 1 &&
                             same_row(s.x) == same_row(s.y);
      const std::int64_t n = row.elements();
      carry(symmetric ? Aval(out.dtype, Shape{n * (n + 1) / 2}) : Aval(out.dtype, out.shape),
            symmetric);
    }
    for (const Vec<Var>* list : {&sequences, &shared})
      for (const Var v : *list) body->inputs.push_back(inside[v]);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (numbers[i]) inside.add(g_.equations[i]);
      if (copied[i]) inside.add(of_a_row(g_.equations[i]));
      if (!members_[i]) continue;
      const Equation& e = g_.equations[i];
      if (!counts_rows(e)) {
        inside.add(of_a_row(e));
        continue;
      }
      const Aval& row = types[e.outputs[0]];
      const Var one = add_equation(*body, Op::convert, make_params(ConvertParams{row.dtype}),
                                   {number}, e.where);
      inside.bind(e.outputs[0], broadcast(*body, one, row.shape, {}, e.where));
    }
    Vec<Var> next;
    if (counts) {
      const Aval one(DType::i32, Shape{});
      const Var step = add_full(*body, one, 1);
      next.push_back(add_equation(*body, Op::add, {}, {number, step}));
    }
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const Carry& c = carries[k + (counts ? 1 : 0)];
      const Var term = term_of(*body, inside, sums_[k], c.symmetric);
      next.push_back(
          add_equation(*body, Op::add, {}, {c.in, term}, g_.equations[sums_[k].equation].where));
    }
    body->outputs = next;

    Equation scan;
    scan.op = Op::scan;
    scan.where = g_.equations[sums_[0].equation].where;
    ScanParams p;
    p.body = body;
    p.carries = static_cast<int>(carries.size());
    p.sequences = static_cast<int>(sequences.size());
    p.length = rows;
    p.sums = true;
    scan.params = make_params(std::move(p));
    for (const Carry& c : carries) {
      scan.inputs.push_back(add_full(with, c.aval, 0));
      scan.outputs.push_back(with.fresh(c.aval));
    }
    for (const Var v : sequences)
      scan.inputs.push_back(blocks_ == 0 || of_blocks_[v] ? v : in_blocks(with, v));
    scan.inputs.append(shared.begin(), shared.end());
    const Vec<Var> results(scan.outputs.begin(), scan.outputs.end());
    // Sums that are as they were keep their names.
    for (std::size_t k = 0; k < sums_.size(); ++k)
      if (!carries[k + (counts ? 1 : 0)].symmetric)
        scan.outputs[k + (counts ? 1 : 0)] = g_.equations[sums_[k].equation].outputs[0];
    with.equations.push_back(std::move(scan));
    for (std::size_t k = 0; k < sums_.size(); ++k)
      if (carries[k + (counts ? 1 : 0)].symmetric)
        add_whole(with, results[k + (counts ? 1 : 0)], g_.equations[sums_[k].equation].outputs[0]);
    return true;
  }

  /// The equations that make a value of numbers alone.
  void mark_numbers(Var v, Vec<bool>& marked) const {
    if (marked[makers_[v]]) return;
    marked[makers_[v]] = true;
    for (const Var u : g_.equations[makers_[v]].inputs) mark_numbers(u, marked);
  }
  /// Is it an array that all rows share, and cheaper to compute anew of each than to keep? It is if
  /// a scan inside makes it element by element.
  bool is_made_anew(Var v) const {
    const int m = makers_[v];
    if (m < 0 || g_.aval(v).elements() <= least_elements_ || keeps_order(g_.equations[m]))
      return false;
    switch (family_of(g_.equations[m].op)) {
      case Family::leaf:
      case Family::unary:
      case Family::binary:
      case Family::select:
      case Family::shape: return true;
      default: return false;
    }
  }
  /// Is it made of what all rows share, or of one row of another value, by copies alone?
  bool is_copied(Var v) const {
    const int m = makers_[v];
    return m >= 0 && (blocks_ == 0 || of_blocks_[v]) && !axes_of(v).ambiguous(v) &&
           (g_.equations[m].op == Op::broadcast_in_dim || g_.equations[m].op == Op::full) &&
           axes_of(v).equation(g_.equations[m]).has_value();
  }
  /// Is it made of numbers alone, as a unit matrix? Code that knows them leaves out its zeros.
  Vec<bool> made_of_numbers() const {
    constexpr std::int64_t most = 288;
    Vec<bool> is(g_.avals.size());
    for (const Equation& e : g_.equations) {
      if (e.outputs.size() != 1 || keeps_order(e) || g_.aval(e.outputs[0]).elements() > most)
        continue;
      const Family f = family_of(e.op);
      const bool plain = f == Family::leaf || f == Family::unary || f == Family::binary ||
                         f == Family::select || f == Family::shape || e.op == Op::slice;
      is[e.outputs[0]] =
          plain && e.op != Op::input && all_of(e.inputs, [&](Var v) { return bool{is[v]}; });
    }
    return is;
  }

  static Var add_full(GraphBody& to, const Aval& a, double value) {
    return add_equation(to, Op::full, make_params(FullParams{Scalar(value).converted(a.dtype), a}),
                        {});
  }
  static Var broadcast(GraphBody& to, Var v, const Shape& shape, const Axes& axes, CallSite where) {
    if (to.aval(v).shape == shape) return v;
    return add_equation(to, Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {v},
                        where);
  }
  /// Elements of a vector, in the order of `places`.
  static Var picked(GraphBody& to, Var v, const Vec<std::int32_t>& places, CallSite where) {
    const auto n = static_cast<std::int64_t>(places.size());
    const Aval indices(DType::i32, Shape{n, 1});
    BufferRef numbers = allocate(indices.bytes());
    std::copy(places.begin(), places.end(), numbers->as<std::int32_t>());
    const Var at = add_equation(to, Op::constant,
                                make_params(ConstantParams{std::move(numbers), indices}), {});
    GatherParams p;
    p.collapsed_slice_dims = p.start_index_map = Axes(0);
    p.slice_sizes = Shape{1};
    return add_equation(to, Op::gather, make_params(std::move(p)), {v, at}, where);
  }

  /// What a row adds to the sum.
  Var term_of(GraphBody& body, Copier& inside, const Sum& s, bool symmetric) const {
    const Equation& e = g_.equations[s.equation];
    const Var x = inside[s.x];
    if (blocks_ > 0) {
      if (s.y < 0) return add_equation(body, e.op, e.params, {x}, e.where);
      return add_equation(body, e.op, e.params, {x, inside[s.y]}, e.where);
    }
    if (s.y < 0) {
      Axes others;
      const int a = axes_.axis(s.x);
      for (const int r : e.as<AxesParams>().axes)
        if (r != a) others.push_back(r - (r > a));
      if (others.empty()) return x;
      return add_equation(body, Op::reduce_sum, make_params(AxesParams{others}), {x}, e.where);
    }
    const Var y = inside[s.y];
    const Shape &of_x = body.aval(x).shape, &of_y = body.aval(y).shape;
    if (symmetric) {
      Vec<std::int32_t> left, right;
      const auto n = static_cast<std::int32_t>(of_x[0]);
      for (std::int32_t i = 0; i < n; ++i)
        for (std::int32_t j = i; j < n; ++j) left.push_back(i), right.push_back(j);
      const Var row = inside[same_row(s.x)];
      return add_equation(body, Op::mul, {},
                          {picked(body, row, left, e.where), picked(body, row, right, e.where)},
                          e.where);
    }
    Shape all = of_x;
    Axes first, last;
    for (int d = 0; d < of_x.rank(); ++d) first.push_back(d);
    for (int d = 0; d < of_y.rank(); ++d) {
      last.push_back(of_x.rank() + d);
      all.push_back(of_y[d]);
    }
    return add_equation(
        body, Op::mul, {},
        {broadcast(body, x, all, first, e.where), broadcast(body, y, all, last, e.where)}, e.where);
  }
  /// The matrix of the elements on and right of its diagonal.
  void add_whole(GraphBody& to, Var half, Var whole) const {
    const auto n = static_cast<std::int32_t>(g_.aval(whole).shape[0]);
    const auto place = [&](std::int32_t i, std::int32_t j) {
      return i * n - i * (i - 1) / 2 + j - i;
    };
    Vec<std::int32_t> places;
    for (std::int32_t i = 0; i < n; ++i)
      for (std::int32_t j = 0; j < n; ++j) places.push_back(place(std::min(i, j), std::max(i, j)));
    Equation shaped;
    shaped.op = Op::reshape;
    shaped.params = make_params(ShapeParams{g_.aval(whole).shape});
    shaped.inputs.push_back(picked(to, half, places, {}));
    shaped.outputs.push_back(whole);
    to.equations.push_back(std::move(shaped));
  }

  const GraphBody& g_;
  const std::int64_t least_rows_, least_elements_;
  LaneAxes axes_;
  /// The rows may be elements of one axis that a reshape makes of blocks and what is in them: then
  /// the scan goes over the blocks.
  LaneAxes outer_;
  std::int64_t blocks_ = 0;  ///< 0: rows are no blocks
  Var first_merged_ = -1;    ///< what the first such reshape reads …
  int first_axis_ = -1;      ///< … and where it has the blocks
  Vec<bool> of_blocks_;      ///< per Var: is it in front of such a reshape?
  const Vec<int> makers_, reads_;
  const Vec<bool> is_number_ = made_of_numbers();
  Vec<Sum> sums_;
  Vec<bool> members_;
};

/// The same with axes of one element dropped before they are broadcast: a row that all rows share
/// has no axis then.
GraphBody without_unit_axes(const GraphBody& g) {
  GraphBody out = g;
  out.equations.clear();
  for (const Equation& e : g.equations) {
    Equation next = e;
    if (e.op == Op::broadcast_in_dim) {
      const auto& p = e.as<BroadcastParams>();
      const Shape& from = g.aval(e.inputs[0]).shape;
      Shape shape;
      Axes axes;
      for (int d = 0; d < from.rank(); ++d) {
        if (from[d] == 1 && p.shape[p.axes[d]] > 1) continue;
        shape.push_back(from[d]);
        axes.push_back(p.axes[d]);
      }
      if (shape.rank() < from.rank()) {
        next.inputs[0] =
            add_equation(out, Op::reshape, make_params(ShapeParams{shape}), {e.inputs[0]}, e.where);
        next.params = make_params(BroadcastParams{p.shape, axes});
      }
    }
    out.equations.push_back(std::move(next));
  }
  return out;
}

/// In bodies of one lane, at any depth; nothing if there are no such sums.
std::optional<Equation> with_scans(const Equation& e);
std::optional<GraphBody> with_scans(const GraphBody& g) {
  // Smaller ones fit registers as they are.
  constexpr std::int64_t least_rows = 6, least_elements = 48;
  GraphBody now = without_unit_axes(g);
  bool changed = false;
  while (std::optional<GraphBody> with = SumScan(now, least_rows, least_elements).run())
    now = std::move(*with), changed = true;
  for (Equation& e : now.equations)
    if (std::optional<Equation> with = with_scans(e)) e = std::move(*with), changed = true;
  if (!changed) return std::nullopt;
  drop_unread(now);
  return now;
}
std::optional<Equation> with_scans(const Equation& e) {
  if (e.op != Op::cond && e.op != Op::while_ && !(e.op == Op::scan && e.as<ScanParams>().sums))
    return std::nullopt;
  Vec<GraphRef> bodies;
  bool changed = false;
  for (const GraphRef& body : bodies_of(e.params)) {
    std::optional<GraphBody> with = with_scans(*body);
    changed = changed || with;
    bodies.push_back(with ? std::make_shared<const GraphBody>(std::move(*with)) : body);
  }
  if (!changed) return std::nullopt;
  Equation scanned = e;
  scanned.params = with_bodies(e.params, bodies);
  return scanned;
}

}  // namespace sum_scans

GraphBody scan_sums_of_rows(GraphBody g, const RegisterLimits& limits) {
  sum_scans::SumScan scans(g, least_summed_rows, least_summed_rows);
  std::optional<GraphBody> with = scans.run();
  if (!with) return g;
  for (const Equation& e : with->equations)
    if (e.op == Op::scan && e.as<ScanParams>().sums &&
        (!scans.computes_factors() || !register_form(alone(*with, e), 0, limits)))
      return g;
  drop_unread(*with);
  return std::move(*with);
}

GraphBody scan_sums_of_lanes(GraphBody g, std::int64_t frame, const RegisterLimits& limits) {
  const auto fits = [&](const Equation& e) {
    return register_form(alone(g, e), frame, limits).has_value();
  };
  for (Equation& e : g.equations) {
    if ((e.op != Op::cond && e.op != Op::while_) || !lanes_of(e) || fits(e)) continue;
    if (std::optional<Equation> with = sum_scans::with_scans(e); with && fits(*with))
      e = std::move(*with);
  }
  return g;
}

}  // namespace vt::detail
