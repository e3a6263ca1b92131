// Which equations go together lane by lane, and the equation that stands for them.
#include "lane_regions.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../trace/axis_map.hpp"
#include "../trace/effects.hpp"
#include "control.hpp"
#include "lane_form.hpp"
#include "merge_axes.hpp"
#include "register_loop.hpp"
#include "schedule.hpp"

namespace vt::detail {

namespace lane_regions {

constexpr std::int64_t fewest_lanes = 8;
const std::int64_t usual_elements = LaneForm().most_in_registers;

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

bool has_own_lanes(const Equation& e) { return (e.op == Op::cond && e.as<CondParams>().lanes) || (e.op == Op::while_ && e.as<WhileParams>().lanes); }
/// A step of its own, if it is not in a region.
bool stands_alone(const Equation& e) { return has_own_lanes(e) || e.op == Op::dot_general; }
/// Puts elements of rows together: what a nest does with lanes along a row, of which a short one fills few.
bool is_of_rows(const Equation& e) { return !reduced_axes(e).empty() || family_of(e.op) == Family::cumulative || e.op == Op::dot_general; }
/// What regions are looked for around.
bool is_seed(const Equation& e) { return stands_alone(e) || e.op == Op::concatenate || is_of_rows(e); }

constexpr std::int64_t fewest_short_rows = 64;

class Former {
 public:
  Former(GraphBody graph, const RegisterLimits& limits)
      : limits_(limits), graph_(std::move(graph)), zero_(graph_.fresh(Aval(DType::i32, {}))), lanes_(graph_) {}

  GraphBody run() {
    find_makers();
    struct Seed {
      std::int64_t lanes;
      Var value;
      int axis;
      const Equation* equation;
      bool of_rows;
    };
    Vec<Seed> seeds;
    for (const Equation& e : graph_.equations) {
      if (!is_seed(e)) continue;
      const Shape& shape = graph_.aval(e.outputs[0]).shape;
      if (const int k = operand_of_short_rows(e); k >= 0) {
        const Var rows = e.inputs[axis_index(k)];
        seeds.push_back({graph_.aval(rows).shape[0], rows, 0, &e, true});
        continue;
      }
      if (!stands_alone(e) && e.op != Op::concatenate) continue;
      const int axes = has_own_lanes(e) ? std::min(shape.rank(), 1) : shape.rank();
      for (int d = 0; d < axes; ++d)
        if (shape[axis_index(d)] >= fewest_lanes && !(e.op == Op::concatenate && e.as<AxisParams>().axis == d))
          seeds.push_back({shape[axis_index(d)], e.outputs[0], d, &e, false});
    }
    // Each class once, by one of its values: classes have other numbers when a region has been formed. One with a single product that fits has none
    // that meet; unrolled layers have as many such classes as layers.
    const auto number_of = [&](const Seed& s) { return static_cast<std::size_t>(lanes_.class_of(s.value, s.axis)); };
    Vec<int> steps(lanes_.axes());  // of a class; all but a product count for two
    Vec<bool> only_rows(lanes_.axes(), true);
    for (const Seed& s : seeds) {
      const Equation& e = *s.equation;
      if (!small_enough(e, static_cast<int>(number_of(s)), s.lanes)) continue;
      steps[number_of(s)] += e.op == Op::dot_general && !s.of_rows ? 1 : 2;
      only_rows[number_of(s)] = only_rows[number_of(s)] && s.of_rows && e.op != Op::dot_general;
    }
    Vec<Seed> classes;
    for (Seed& s : seeds) {
      s.of_rows = only_rows[number_of(s)];
      if (std::exchange(steps[number_of(s)], 0) >= 2) classes.push_back(s);
    }
    insertion_sort(classes, [](const Seed& x, const Seed& y) { return x.lanes > y.lanes; });  // most lanes first
    // With larger values; or, where those do not suit a common loop, without them.
    for (const Seed& s : classes)
      for (const std::int64_t most : {limits_.of_a_lane, usual_elements}) {
        if (most > usual_elements && s.of_rows) continue;
        most_elements_ = most;
        if (form(lanes_.class_of(s.value, s.axis))) break;
      }
    if (formed_) make_zero();
    return std::move(graph_);
  }
  bool formed() const { return formed_; }

 private:
  void find_makers() {
    maker_.assign(graph_.avals.size(), -1);
    for (std::size_t i = 0; i < graph_.equations.size(); ++i)
      for (Var v : graph_.equations[i].outputs) maker_[at(v)] = static_cast<int>(i);
  }

  /// The operand behind whose axis 0, which the result has too, short rows are put together; −1: none.
  int operand_of_short_rows(const Equation& e) const {
    for (std::size_t k = 0; k < e.inputs.size() && is_of_rows(e); ++k)
      if (has_short_rows(e, k)) return static_cast<int>(k);
    return -1;
  }
  bool has_short_rows(const Equation& e, std::size_t k) const {
    const Aval& from = graph_.aval(e.inputs[k]);
    if (from.shape.rank() < 2 || from.shape[0] < fewest_short_rows || from.elements() == 0) return false;
    const std::int64_t rows = from.shape[0], row = from.elements() / rows;
    if (row < 2 || row > limits_.short_row) return false;
    if (e.op != Op::dot_general)
      return !reduced_axes(e).contains(0) && !(family_of(e.op) == Family::cumulative && e.as<CumulativeParams>().axis == 0);
    // Of products, those of each row with the same few vectors, or of rows in pairs; the tiles of others are filled.
    const auto& p = e.as<DotParams>();
    const std::int64_t sums = graph_.aval(e.outputs[0]).elements() / rows, other = graph_.aval(e.inputs[1 - k]).elements();
    const Axes& contract = k == 0 ? p.lhs_contract : p.rhs_contract;
    if (contract.contains(0) || static_cast<int>(contract.size()) != from.shape.rank() - 1) return false;
    return row <= limits_.short_row / 2 && sums < limits_.short_row / 2 && sums * row <= 2 * limits_.short_row &&
           (other == sums * row || (sums == 1 && other == rows * row));
  }

  // Could each of an equation's values be a lane's? Asked before a class is chosen, which takes a pass over the Graph.
  bool small_enough(const Equation& e, int number, std::int64_t lanes) {
    const auto small = [&](Var v) {
      const Aval& a = graph_.aval(v);
      bool has_lanes = false;
      for (int d = 0; d < a.shape.rank(); ++d) has_lanes = has_lanes || lanes_.class_of(v, d) == number;
      return a.elements() <= (e.op == Op::concatenate ? limits_.moved : limits_.of_a_lane) * (has_lanes ? lanes : 1);
    };
    return none_of(e.inputs, [&](Var v) { return !small(v); }) && none_of(e.outputs, [&](Var v) { return !small(v); });
  }

  bool fits(const Aval& a) const { return a.elements() <= most_elements_; }
  /// Small values that are the same for all lanes and known when code is made (a unit matrix): made again inside, they become part of it.
  void find_numbers() {
    numbers_.assign(graph_.avals.size(), false);
    for (const Equation& e : graph_.equations) {
      if (e.outputs.size() != 1 || graph_.aval(e.outputs[0]).elements() > limits_.moved) continue;
      const bool is_cheap =
          is_elementwise(e.op) ? op_weight(e.op, graph_.aval(e.outputs[0]).dtype) <= 1 : family_of(e.op) == Family::shape || e.op == Op::slice;
      const bool of_numbers = is_cheap && none_of(e.inputs, [&](Var v) { return !numbers_[at(v)]; });
      numbers_[at(e.outputs[0])] = e.op == Op::full || (lanes_.axis(e.outputs[0]) < 0 && (e.op == Op::iota || of_numbers));
    }
  }
  /// Writes the equations that make a number, each once.
  void add_number(Var v, GraphBody& lane, Vec<bool>& known) const {
    const Equation& e = graph_.equations[at(maker_[at(v)])];
    for (Var from : e.inputs)
      if (!std::exchange(known[at(from)], true)) add_number(from, lane, known);
    lane.equations.push_back(lanes_.axis(v) >= 0 ? *lanes_.equation(e) : e);
  }

  bool fits(const Equation& e) const {
    if (e.outputs.empty() || !(is_elementwise(e.op) || stands_alone(e) || family_of(e.op) == Family::leaf || family_of(e.op) == Family::shape ||
                               is_of_rows(e) || e.op == Op::slice || e.op == Op::gather))
      return false;
    const std::int64_t most = family_of(e.op) == Family::shape || e.op == Op::slice ? std::max(most_elements_, limits_.moved) : most_elements_;
    for (Var v : e.outputs)
      if (lanes_.axis(v) < 0 || lanes_.aval(v).elements() > most) return false;
    for (Var v : e.inputs) {
      const bool shared = e.op == Op::dot_general && lanes_.axis(v) < 0;
      if (lanes_.aval(v).elements() > (shared ? limits_.of_a_lane : most) && e.op != Op::gather) return false;
    }
    return lanes_.equation(e).has_value();
  }

  // Puts equations of the class together in stages: those of one stage have nothing from outside between them. Has any become a region?
  bool form(int number) {
    lanes_.choose(number);
    find_numbers();
    in_front_.assign(graph_.avals.size(), -1);
    const std::size_t count = graph_.equations.size();
    Vec<bool> inside(count);
    const auto made_inside = [&](Var v) { return maker_[at(v)] >= 0 && inside[at(maker_[at(v)])]; };
    Vec<int> stage(count, 0);
    int last = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Equation& e = graph_.equations[i];
      inside[i] = fits(e) && none_of(e.inputs, [&](Var v) { return lanes_.axis(v) > 0 && !made_inside(v); });
      for (Var v : e.inputs) {
        if (maker_[at(v)] < 0) continue;
        const auto m = static_cast<std::size_t>(maker_[at(v)]);
        stage[i] = std::max(stage[i], stage[m] + (inside[m] && !inside[i]));
      }
      last = std::max(last, stage[i]);
    }
    RecycledVec<Equation> ordered;
    bool found = false;
    for (int s = 0; s <= last; ++s) {
      Vec<int> members;
      for (std::size_t i = 0; i < count; ++i) {
        if (stage[i] != s) continue;
        if (inside[i]) members.push_back(static_cast<int>(i));
        else ordered.push_back(graph_.equations[i]);
      }
      const std::span<const int> all{members.data(), members.size()};
      if (worth_it(all) && region(all, ordered)) found = true;
      else
        for (int i : members) ordered.push_back(graph_.equations[at(i)]);
    }
    if (!found) return false;
    formed_ = true;
    graph_.equations = std::move(ordered);
    drop_unread();
    find_makers();
    lanes_ = LaneAxes(graph_);
    return true;
  }

  // Worth it where several steps become one: products that meet, or a branch or loop and what is around it; where rows are too short for lanes along
  // them; and where different parts are computed for one array.
  bool worth_it(std::span<const int> members) const {
    const bool branches = any_of(members, [&](int i) { return has_own_lanes(graph_.equations[at(i)]); });
    return (products_meet(members) && !plain_products(members)) || (branches && members.size() >= 2) || in_short_rows(members) ||
           computes_parts(members);
  }

  // Where nothing else is computed, a product has tiles, and rows that fill a vector go as fast with lanes along them.
  bool in_short_rows(std::span<const int> members) const {
    if (most_elements_ > usual_elements || reads_what_nests_compute(members)) return false;
    int work = 0;
    for (int i : members) {
      const Equation& e = graph_.equations[at(i)];
      if (is_elementwise(e.op)) work += op_weight(e.op, graph_.aval(e.outputs[0]).dtype);
    }
    for (int i : members) {
      const Equation& e = graph_.equations[at(i)];
      const int k = operand_of_short_rows(e);
      if (k < 0) continue;
      const std::int64_t row = lanes_.aval(e.inputs[axis_index(k)]).elements();
      const bool worth = e.op == Op::dot_general ? work > 0 || (lanes_.aval(e.outputs[0]).elements() == 1 && row < limits_.short_row / 2)
                                                 : row <= limits_.short_row / 2 || work >= 8;
      if (worth) return true;
    }
    return false;
  }

  // Would an array be written for these that a nest makes as it reads: a window's elements, a row that is the same for many lanes?
  bool reads_what_nests_compute(std::span<const int> members) const {
    for (int i : members)
      for (Var v : graph_.equations[at(i)].inputs) {
        if (lanes_.axis(v) < 0 || numbers_[at(v)]) continue;
        int m = maker_[at(v)];
        while (m >= 0 && graph_.equations[at(m)].op == Op::reshape) m = maker_[at(graph_.equations[at(m)].inputs[0])];
        if (m < 0 || std::find(members.begin(), members.end(), m) != members.end()) continue;
        const Op op = graph_.equations[at(m)].op;
        if (is_elementwise(op) || family_of(op) == Family::shape || op == Op::iota || op == Op::slice || op == Op::gather || op == Op::windows)
          return true;
      }
    return false;
  }

  // Are arrays put together of small parts that are computed in different ways? A nest asks of each element which part it is, computes expensive ones
  // for all of them, and does not keep such an array for a sum over it: normalised products of quaternions took a hundred times as long.
  bool computes_parts(std::span<const int> members) const {
    constexpr std::int64_t longest_part = 6;  // longer ones are rows of their own
    constexpr int least_work = 24, fewest_parts = 3;
    enum : char { given, computed, joined };  // joined: of such parts
    Vec<char> kind(graph_.equations.size());
    const auto kind_of = [&](Var v) { return maker_[at(v)] < 0 ? char{given} : kind[at(maker_[at(v)])]; };
    double work = 0, products = 0;
    int parts = 0;
    bool reduced = false;
    for (int m : members) {
      const Equation& e = graph_.equations[at(m)];
      char& own = kind[at(m)];
      for (Var v : e.inputs) own = std::max(own, kind_of(v));
      if (is_elementwise(e.op)) {
        work += op_weight(e.op, graph_.aval(e.outputs[0]).dtype);
        own = std::max(own, char{computed});
      }
      if (e.op == Op::dot_general) products += terms(e);
      reduced = reduced || (family_of(e.op) == Family::reduce && own == joined);
      if (e.op != Op::concatenate) continue;
      const auto small =
          std::count_if(e.inputs.begin(), e.inputs.end(), [&](Var v) { return kind_of(v) != given && lanes_.aval(v).elements() <= longest_part; });
      parts += static_cast<int>(small);
      if (small > 1) own = joined;
    }
    return parts >= fewest_parts && products <= work && (work >= least_work || reduced);
  }

  // Of a product, for one lane.
  double terms(const Equation& e) const {
    const Aval& a = graph_.aval(e.inputs[0]);
    double all = static_cast<double>(lanes_.aval(e.outputs[0]).elements());
    for (int axis : e.as<DotParams>().lhs_contract) all *= static_cast<double>(a.shape[axis_index(axis)]);
    return all;
  }

  // Are they mostly products of larger matrices as they lie? For those bringing the lanes side by side costs more than a pass through memory between
  // products (three of 6 × 6: twice the time), but not for those of transposed ones or ones with more axes.
  bool plain_products(std::span<const int> members) const {
    double plain = 0, all = 0;
    for (int i : members) {
      const Equation& e = graph_.equations[at(i)];
      if (e.op != Op::dot_general) continue;
      const auto& p = e.as<DotParams>();
      const Aval &a = graph_.aval(e.inputs[0]), &b = graph_.aval(e.inputs[1]);
      const Axes first{0}, second{1}, third{2};
      const double work = terms(e);
      const bool large = lanes_.aval(e.inputs[0]).elements() > usual_elements || lanes_.aval(e.inputs[1]).elements() > usual_elements;
      const bool as_they_lie = a.shape.rank() == 3 && b.shape.rank() == 3 && p.lhs_batch == first && p.rhs_batch == first &&
                               p.lhs_contract == third && p.rhs_contract == second && lanes_.axis(e.inputs[0]) == 0;
      all += work;
      if (large && as_they_lie) plain += work;
    }
    return plain * 2 > all;
  }

  // Does anything depend on several products? Others gain nothing from a common loop, as those of a dense layer's derivatives.
  bool products_meet(std::span<const int> members) const {
    constexpr int none = -1, several = -2;
    Vec<int> product(graph_.equations.size(), none);  // that an equation depends on
    for (int m : members) {
      int mine = graph_.equations[at(m)].op == Op::dot_general ? m : none;
      for (Var v : graph_.equations[at(m)].inputs) {
        const int theirs = maker_[at(v)] < 0 ? none : product[at(maker_[at(v)])];
        if (theirs == none || theirs == mine) continue;
        mine = mine == none ? theirs : several;
      }
      if (mine == several) return true;
      product[at(m)] = mine;
    }
    return false;
  }

  bool region(std::span<const int> members, RecycledVec<Equation>& out) {
    Vec<bool> made(graph_.avals.size()), read_outside(graph_.avals.size());
    for (int i : members)
      for (Var v : graph_.equations[static_cast<std::size_t>(i)].outputs) made[at(v)] = true;
    for (std::size_t i = 0; i < graph_.equations.size(); ++i)
      if (std::find(members.begin(), members.end(), static_cast<int>(i)) == members.end())
        for (Var v : graph_.equations[i].inputs) read_outside[at(v)] = true;
    for (Var v : graph_.outputs) read_outside[at(v)] = true;

    auto lane = new_shared<GraphBody>();
    for (std::size_t v = 0; v < maker_.size(); ++v) lane->avals.push_back(lanes_.aval(static_cast<Var>(v)));
    Equation e;
    CondParams p;
    e.op = Op::cond;
    e.inputs.push_back(zero_);
    p.lanes.mapped.push_back(false);
    Vec<bool> known(graph_.avals.size());
    for (int i : members)
      for (Var v : graph_.equations[static_cast<std::size_t>(i)].inputs) {
        if (made[at(v)] || known[at(v)]) continue;
        known[at(v)] = true;
        if (numbers_[at(v)]) {
          add_number(v, *lane, known);
          continue;
        }
        if (lanes_.axis(v) > 0 && in_front_[at(v)] < 0) return false;
        lane->inputs.push_back(v);
        e.inputs.push_back(lanes_.axis(v) > 0 ? in_front_[at(v)] : v);
        p.lanes.mapped.push_back(lanes_.axis(v) >= 0);
      }
    RecycledVec<Equation> moved;  // results whose lanes lie elsewhere
    const Vec<Var> in_front_before = in_front_;
    const std::size_t values_before = graph_.avals.size();
    for (int i : members) {
      const Equation& member = graph_.equations[static_cast<std::size_t>(i)];
      lane->equations.push_back(*lanes_.equation(member));
      for (Var v : member.outputs)
        if (read_outside[at(v)]) {
          lane->outputs.push_back(v);
          e.outputs.push_back(lanes_.axis(v) == 0 ? v : with_lanes_in_front(v, moved));
        }
      e.where = member.where;
    }
    if (e.outputs.empty()) return false;  // nobody asks
    p.lanes.count = graph_.aval(e.outputs[0]).shape[0];
    p.branches.push_back(std::move(lane));
    e.params = make_params(std::move(p));
    if (!register_form(alone(graph_, e), 0, limits_)) {
      in_front_ = in_front_before;
      graph_.avals.resize(values_before);  // as the classes know it
      return false;
    }
    out.push_back(std::move(e));
    for (Equation& m : moved) out.push_back(std::move(m));
    return true;
  }

  // A new value like v with the lanes along axis 0, from which `moved` makes v.
  Var with_lanes_in_front(Var v, RecycledVec<Equation>& moved) {
    const Aval aval = graph_.aval(v);
    const int lanes = lanes_.axis(v);
    Shape shape{};
    shape.push_back(aval.shape[axis_index(lanes)]);
    Axes back;
    for (int d = 0; d < aval.shape.rank(); ++d) {
      back.push_back(d == lanes ? 0 : d + (d < lanes));
      if (d != lanes) shape.push_back(aval.shape[axis_index(d)]);
    }
    Equation e;
    e.op = Op::transpose;
    e.params = make_params(PermutationParams{back});
    in_front_[at(v)] = graph_.fresh(Aval(aval.dtype, shape));
    e.inputs.push_back(in_front_[at(v)]);
    e.outputs.push_back(v);
    moved.push_back(std::move(e));
    return in_front_[at(v)];
  }

  // What only regions read that take it in another way: transposes of other regions' results, and numbers.
  void drop_unread() {
    Vec<bool> read(graph_.avals.size());
    for (Var v : graph_.outputs) read[at(v)] = true;
    Vec<bool> kept(graph_.equations.size());
    for (std::size_t i = graph_.equations.size(); i-- > 0;) {
      const Equation& e = graph_.equations[i];
      kept[i] = e.outputs.empty() || any_of(e.outputs, [&](Var v) { return read[at(v)]; });
      for (Var v : e.inputs) read[at(v)] = read[at(v)] || kept[i];
    }
    RecycledVec<Equation> left;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) left.push_back(std::move(graph_.equations[i]));
    graph_.equations = std::move(left);
  }

  void make_zero() {
    const Aval& aval = graph_.aval(zero_);
    Equation constant;
    constant.op = Op::constant;
    BufferRef buffer = allocate(aval.bytes(), "an index");
    std::memset(buffer->data, 0, aval.bytes());
    constant.params = make_params(ConstantParams{std::move(buffer), aval});
    constant.outputs.push_back(zero_);
    graph_.equations.insert(graph_.equations.begin(), std::move(constant));
  }

  const RegisterLimits& limits_;
  GraphBody graph_;
  Var zero_;  ///< the index of the only branch
  LaneAxes lanes_;
  Vec<bool> numbers_;
  Vec<int> maker_;                  ///< the equation that makes a value; −1: none
  Vec<Var> in_front_;               ///< a value that a region gives with its lanes along axis 0, where they lie along another one; −1: there is none
  std::int64_t most_elements_ = 0;  ///< of a value, for each lane
  bool formed_ = false;
};

/// The value behind whose first several axes an equation puts short rows or parts together, and how many these are.
struct LeadingAxes {
  Var value = -1;
  int count = 0;
};
LeadingAxes leading_axes(const GraphBody& g, const Equation& e, const RegisterLimits& limits) {
  LeadingAxes a;
  if (e.op == Op::concatenate) {
    a = {e.outputs[0], e.as<AxisParams>().axis};
  } else if (is_of_rows(e) && e.op != Op::dot_general) {  // a product of several axes has kernels of its own
    a.value = e.inputs[0];
    const Axes over = reduced_axes(e);
    a.count = family_of(e.op) == Family::cumulative ? e.as<CumulativeParams>().axis : g.aval(a.value).shape.rank();
    for (int axis : over) a.count = std::min(a.count, axis);
  }
  if (a.count < 2) return {};
  std::int64_t rows = 1;
  for (int d = 0; d < a.count; ++d) rows *= g.aval(a.value).shape[axis_index(d)];
  const std::int64_t row = rows == 0 ? 0 : g.aval(a.value).elements() / rows;
  return rows >= fewest_short_rows && row >= 2 && row <= limits.short_row ? a : LeadingAxes{};
}

/// Regions whose lanes are several axes, taken as one for that.
GraphBody form_over_leading_axes(GraphBody graph, const RegisterLimits& limits) {
  int tries = 4;  // each takes passes over the Graph
  for (std::size_t i = 0; i < graph.equations.size() && tries > 0; ++i) {
    const LeadingAxes leading = leading_axes(graph, graph.equations[i], limits);
    if (leading.count == 0) continue;
    --tries;
    GraphBody merged = graph;
    Var value = leading.value;
    for (int left = leading.count - 1; value >= 0 && left > 0; --left) value = merge_axes(merged, value, 0);
    if (value < 0) continue;
    Former former(std::move(merged), limits);
    GraphBody with_regions = former.run();
    if (!former.formed()) continue;
    graph = std::move(with_regions);
    i = 0;
  }
  return graph;
}

}  // namespace lane_regions

GraphBody form_lane_regions(GraphBody graph, const RegisterLimits& limits) {
  if (lanes_in_groups()) return graph;
  for (const Equation& e : graph.equations)
    if (has_effect(e)) return graph;  // which would have to keep their order
  if (none_of(graph.equations, lane_regions::is_seed)) return graph;
  return lane_regions::form_over_leading_axes(lane_regions::Former(std::move(graph), limits).run(), limits);
}

}  // namespace vt::detail
