// Fused regions: which equations join one, and the equation that stands for it.
#include "fused_regions.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../../trace/base/environment.hpp"
#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../nest/cost_model.hpp"
#include "lane_form.hpp"
#include "merge_axes.hpp"
#include "region_gain.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

namespace fused_regions {

constexpr std::int64_t fewest_lanes = 8;
const std::int64_t usual_elements = LaneForm().most_in_registers;

/// What regions are looked for around.
bool is_seed(const Equation& e) {
  return stands_alone(e) || e.op == Op::concatenate || is_of_rows(e);
}

class LaneRegions {
 public:
  LaneRegions(GraphBody graph, const RegisterLimits& limits)
      : limits_(limits), graph_(std::move(graph)), lanes_(graph_) {}

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
      if (const int k = operand_of_short_rows(graph_, e, limits_); k >= 0) {
        const Var rows = e.inputs[k];
        seeds.push_back({graph_.aval(rows).shape[0], rows, 0, &e, true});
        continue;
      }
      if (!stands_alone(e) && e.op != Op::concatenate) continue;
      const int axes = lanes_of(e) ? std::min(shape.rank(), 1) : shape.rank();
      for (int d = 0; d < axes; ++d)
        if (shape[d] >= fewest_lanes && !(e.op == Op::concatenate && e.as<AxisParams>().axis == d))
          seeds.push_back({shape[d], e.outputs[0], d, &e, false});
    }
    // Each class once, by one of its values: classes have other numbers when a region has been
    // formed. One with a single product that fits has none that meet; unrolled layers have as many
    // such classes as layers.
    const auto number_of = [&](const Seed& s) { return lanes_.class_of(s.value, s.axis); };
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
    // most lanes first
    insertion_sort(classes, [](const Seed& x, const Seed& y) { return x.lanes > y.lanes; });
    // With larger values; or, where those do not suit a common loop, without them.
    for (const Seed& s : classes) {
      most_elements_ = 0;
      for (const std::int64_t most :
           {limits_.computed(s.lanes), limits_.of_a_lane, usual_elements}) {
        if (most == most_elements_ || (most > usual_elements && s.of_rows)) continue;
        most_elements_ = most;
        if (form(lanes_.class_of(s.value, s.axis))) break;
      }
    }
    return std::move(graph_);
  }
  bool formed() const { return formed_; }

 private:
  void find_makers() {
    maker_ = makers_of(graph_);
    in_frame_ = limits_.of_unset > 0 ? unset_arrays(graph_) : Vec<bool>(graph_.avals.size());
  }

  // Could each of an equation's values be a lane's? Asked before a class is chosen, which takes a
  // pass over the Graph.
  bool small_enough(const Equation& e, int number, std::int64_t lanes) {
    const auto small = [&](Var v) {
      const Aval& a = graph_.aval(v);
      bool has_lanes = false;
      for (int d = 0; d < a.shape.rank(); ++d)
        has_lanes = has_lanes || lanes_.class_of(v, d) == number;
      return in_frame_[v] ||
             a.elements() <= (e.op == Op::concatenate ? limits_.moved : limits_.computed(lanes)) *
                                 (has_lanes ? lanes : 1);
    };
    return none_of(e.inputs, [&](Var v) { return !small(v); }) &&
           none_of(e.outputs, [&](Var v) { return !small(v); });
  }

  bool fits(const Aval& a) const { return a.elements() <= most_elements_; }
  /// Small values that are the same for all lanes and known when code is made (a unit matrix): made
  /// again inside, they become part of it.
  void find_numbers() {
    numbers_.assign(graph_.avals.size(), false);
    for (const Equation& e : graph_.equations) {
      if (e.outputs.size() != 1 || graph_.aval(e.outputs[0]).elements() > limits_.moved) continue;
      const bool is_cheap = is_elementwise(e.op)
                                ? op_weight(e.op, graph_.aval(e.outputs[0]).dtype) <= 1
                                : family_of(e.op) == Family::shape || e.op == Op::slice;
      const bool of_numbers = is_cheap && none_of(e.inputs, [&](Var v) { return !numbers_[v]; });
      numbers_[e.outputs[0]] =
          e.op == Op::full || (lanes_.axis(e.outputs[0]) < 0 &&
                               (e.op == Op::iota || e.op == Op::constant || of_numbers));
    }
  }
  /// Makes a number once more inside.
  void add_number(Var v, Copier& inside) const {
    const Equation& e = graph_.equations[maker_[v]];
    for (Var from : e.inputs)
      if (!inside.contains(from)) add_number(from, inside);
    inside.add(lanes_.axis(v) >= 0 ? *lanes_.equation(e) : e);
  }

  /// Factors of a product, one for each row of the other, may be twice as many as what is moved.
  std::int64_t most_moved() const {
    return std::min(2 * limits_.moved, limits_.moved_without_loops);
  }
  /// Are its results elements of its operands, known when code is made?
  bool only_moves(const Equation& e) const {
    return family_of(e.op) == Family::shape || e.op == Op::slice ||
           (e.op == Op::select && is_known(e.inputs[0]));
  }
  /// A number, or what moves make of one.
  bool is_known(Var v) const {
    if (numbers_[v]) return true;
    const int i = maker_[v];
    return i >= 0 && family_of(graph_.equations[i].op) == Family::shape &&
           is_known(graph_.equations[i].inputs[0]);
  }
  bool fits(const Equation& e) const {
    if (e.outputs.empty() ||
        !(is_elementwise(e.op) || stands_alone(e) || family_of(e.op) == Family::leaf ||
          family_of(e.op) == Family::shape || is_of_rows(e) || e.op == Op::slice ||
          e.op == Op::gather))
      return false;
    const std::int64_t most =
        only_moves(e) ? std::max(most_elements_, most_moved()) : most_elements_;
    for (Var v : e.outputs)
      if (lanes_.axis(v) < 0 || (!in_frame_[v] && lanes_.aval(v).elements() > most)) return false;
    for (Var v : e.inputs) {
      if (in_frame_[v]) continue;
      const bool shared = e.op == Op::dot_general && lanes_.axis(v) < 0;
      const std::int64_t at_most = shared ? limits_.of_a_lane
                                   : maker_[v] >= 0 && only_moves(graph_.equations[maker_[v]])
                                       ? limits_.moved_without_loops
                                       : most;
      if (lanes_.aval(v).elements() > at_most && e.op != Op::gather) return false;
    }
    return lanes_.equation(e).has_value();
  }

  // A broadcast that nothing inside reads: a nest makes it as it reads, and a region would write it
  // to memory.
  void leave_copies_outside(Vec<bool>& inside) const {
    Vec<bool> read(graph_.avals.size());
    for (std::size_t i = inside.size(); i-- > 0;) {
      const Equation& e = graph_.equations[i];
      if (e.op == Op::broadcast_in_dim && !read[e.outputs[0]]) inside[i] = false;
      for (Var v : e.inputs) read[v] = read[v] || inside[i];
    }
  }

  // Puts equations of the class together in stages: those of one stage have nothing from outside
  // between them. Has any become a region?
  bool form(int number) {
    lanes_.choose(number);
    find_numbers();
    in_front_.assign(graph_.avals.size(), -1);
    const std::size_t count = graph_.equations.size();
    reads_ = reads_of(graph_);
    of_lane_ = lanes_.avals();
    Vec<bool> inside(count);
    const auto made_inside = [&](Var v) { return maker_[v] >= 0 && inside[maker_[v]]; };
    for (std::size_t i = 0; i < count; ++i) {
      const Equation& e = graph_.equations[i];
      inside[i] = fits(e) &&
                  none_of(e.inputs, [&](Var v) { return lanes_.axis(v) > 0 && !made_inside(v); });
    }
    leave_copies_outside(inside);
    RecycledVec<Equation> ordered;
    Vec<bool> in_region(count);
    bool found = false;
    for (const Vec<int>& equations : stages_of(graph_, maker_, inside)) {
      Vec<int> members;
      for (int i : equations) {
        if (inside[i]) members.push_back(i);
        else ordered.push_back(graph_.equations[i]);
      }
      const std::span<const int> all{members.data(), members.size()};
      const bool forms =
          worth_a_region({graph_, lanes_, maker_, numbers_, in_region, limits_, most_elements_},
                         all) &&
          region(all, ordered);
      found = found || forms;
      for (int i : members) {
        in_region[i] = forms;
        if (!forms) ordered.push_back(graph_.equations[i]);
      }
    }
    if (!found) return false;
    formed_ = true;
    graph_.equations = std::move(ordered);
    // What only regions read that take it in another way: transposes of other regions' results, and
    // numbers.
    drop_unread(graph_);
    find_makers();
    lanes_ = LaneAxes(graph_);
    return true;
  }

  bool region(std::span<const int> members, RecycledVec<Equation>& out) {
    Outline lane(of_lane_);
    for (int i : members) {
      const Equation& member = graph_.equations[i];
      for (Var v : member.inputs)
        if (numbers_[v] && !lane.inside.contains(v)) add_number(v, lane.inside);
      lane.add(*lanes_.equation(member));
    }
    lane.output_what_is_read(reads_);
    if (lane.outputs.empty()) return false;  // nobody asks
    RegionParams p;
    for (Var& v : lane.inputs) {
      p.lanes.mapped.push_back(lanes_.axis(v) >= 0);
      if (lanes_.axis(v) <= 0) continue;
      if (in_front_[v] < 0) return false;
      v = in_front_[v];
    }
    RecycledVec<Equation> moved;  // results whose lanes lie elsewhere
    const std::size_t values_before = graph_.avals.size();
    for (Var& v : lane.outputs)
      if (lanes_.axis(v) != 0) v = with_lanes_in_front(v, moved);
    p.lanes.count = graph_.aval(lane.outputs[0]).shape[0];
    p.body = lane.body;
    Equation e = lane.equation(Op::fused_region, make_params(std::move(p)),
                               graph_.equations[members.back()].where);
    if (!register_form(alone(graph_, e), 0, limits_)) {
      for (int i : members)
        for (Var v : graph_.equations[i].outputs) in_front_[v] = -1;
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
    shape.push_back(aval.shape[lanes]);
    Axes back;
    for (int d = 0; d < aval.shape.rank(); ++d) {
      back.push_back(d == lanes ? 0 : d + (d < lanes));
      if (d != lanes) shape.push_back(aval.shape[d]);
    }
    Equation e;
    e.op = Op::transpose;
    e.params = make_params(PermutationParams{back});
    in_front_[v] = graph_.fresh(Aval(aval.dtype, shape));
    e.inputs.push_back(in_front_[v]);
    e.outputs.push_back(v);
    moved.push_back(std::move(e));
    return in_front_[v];
  }

  const RegisterLimits& limits_;
  GraphBody graph_;
  LaneAxes lanes_;
  RecycledVec<Aval> of_lane_;  ///< values as one lane has them
  Vec<bool> numbers_;
  Vec<int> reads_, maker_;  ///< reads_of, makers_of the Graph
  /// what a region may keep in its frame: arrays that are unset at first, and what loops make of
  /// them
  Vec<bool> in_frame_;
  /// a value that a region gives with its lanes along axis 0, where they lie along another one; −1:
  /// there is none
  Vec<Var> in_front_;
  std::int64_t most_elements_ = 0;  ///< of a value, for each lane
  bool formed_ = false;
};

/// The value behind whose first several axes an equation puts short rows or parts together, and how
/// many these are.
struct LeadingAxes {
  Var value = -1;
  int count = 0;
};
LeadingAxes leading_axes(const GraphBody& g, const Equation& e, const RegisterLimits& limits) {
  LeadingAxes a;
  if (e.op == Op::concatenate) {
    a = {e.outputs[0], e.as<AxisParams>().axis};
  } else if (is_of_rows(e) && e.op != Op::dot_general) {
    // a product of several axes has kernels of its own
    a.value = e.inputs[0];
    const Axes over = reduced_axes(e);
    a.count = family_of(e.op) == Family::cumulative ? e.as<CumulativeParams>().axis
                                                    : g.aval(a.value).shape.rank();
    for (int axis : over) a.count = std::min(a.count, axis);
  }
  if (a.count < 2) return {};
  std::int64_t rows = 1;
  for (int d = 0; d < a.count; ++d) rows *= g.aval(a.value).shape[d];
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
    for (int left = leading.count - 1; value >= 0 && left > 0; --left)
      value = merge_axes(merged, value, 0);
    if (value < 0) continue;
    LaneRegions regions(std::move(merged), limits);
    GraphBody with_regions = regions.run();
    if (!regions.formed()) continue;
    graph = std::move(with_regions);
    i = 0;
  }
  return graph;
}

}  // namespace fused_regions

bool lanes_in_groups() {
  static const bool groups = lanes_from_environment() == "groups";
  return groups;
}

GraphBody form_fused_regions(GraphBody graph, const RegisterLimits& limits) {
  if (lanes_in_groups()) return graph;
  if (any_of(graph.equations, [](const Equation& e) { return has_effect(e); }))
    return graph;  // they would have to keep their order
  if (none_of(graph.equations, fused_regions::is_seed)) return graph;
  return with_same_exchanges(std::move(graph), [&](GraphBody g) {
    return fused_regions::form_over_leading_axes(
        fused_regions::LaneRegions(std::move(g), limits).run(), limits);
  });
}

}  // namespace vt::detail
