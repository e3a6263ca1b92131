// Lanes of which only the first n run: cuts a Graph into branches that are taken by lanes which
// run, and what stands between them, where lanes meet.
#include "active_lanes.hpp"

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/dependence.hpp"
#include "../../trace/ir/effects.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "batch_rules.hpp"
#include "lanes.hpp"

namespace vt::detail {

namespace active_walk {

using Flags = Dependence::Flags;

/// Numbers, and what is laid out of them: made again in each branch that reads them, so that they
/// are known there.
bool is_literal(const Equation& e, const Vec<bool>& literal) {
  switch (e.op) {
    case Op::full:
    case Op::iota:
    case Op::constant: return true;
    case Op::broadcast_in_dim:
    case Op::reshape:
    case Op::convert: return literal[e.inputs[0]];
    default: return false;
  }
}

/// Where an equation runs.
enum class Place : std::uint8_t {
  literal,  ///< wherever it is read
  reading,  ///< for all lanes, before the branches
  shared,   ///< once, if any lane runs
  lanes,    ///< in each lane that runs
  meeting,  ///< for all lanes, between the branches
};

/// A Graph in stretches: the shared equations of one, those of its lanes, then a meeting.
struct Plan {
  Vec<Place> places;        ///< per equation
  Vec<int> stretches;       ///< per equation: which one it belongs to
  Vec<bool> differs;        ///< per value: between lanes
  Vec<std::size_t> makers;  ///< per value: the equation that makes it; as many as there are: none
  int count = 1;            ///< of stretches
};

/// Shared equations that only the lanes of their stretch read move in there.
void move_into_lanes(const GraphBody& g, Plan& p) {
  const std::size_t n = g.equations.size();
  Vec<bool> outside(g.avals.size());
  Vec<int> read_in(g.avals.size(), -1);  // the stretch whose lanes read it
  for (Var v : g.outputs) outside[v] = true;
  for (std::size_t k = n; k-- > 0;) {
    const Equation& e = g.equations[k];
    if (p.places[k] == Place::shared && !has_effect(e)) {
      const bool moves = none_of(e.outputs, [&](Var v) {
        return outside[v] || (read_in[v] >= 0 && read_in[v] != p.stretches[k]);
      });
      if (moves) p.places[k] = Place::lanes;
    }
    for (Var v : e.inputs) {
      const bool inside =
          p.places[k] == Place::lanes && (read_in[v] < 0 || read_in[v] == p.stretches[k]);
      if (inside) read_in[v] = p.stretches[k];
      else if (p.places[k] != Place::literal && p.places[k] != Place::reading) outside[v] = true;
    }
  }
}

class Walk {
 public:
  Walk(const GraphBody& g, std::span<const Batched> inputs, std::int64_t lanes,
       const LaneAxis& axis)
      : g_(g), lanes_(lanes), axis_(axis), values_(g.avals.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[g.inputs[i]] = inputs[i];
    make_plan(inputs);
    move_into_lanes(g, plan_);
    find_readers();
  }

  Vec<Batched> run() {
    Vec<Members> members(plan_.count);
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      Members& m = members[plan_.stretches[k]];
      if (plan_.places[k] == Place::shared) m.shared.push_back(k);
      if (plan_.places[k] == Place::lanes) m.lanes.push_back(k);
      if (plan_.places[k] == Place::meeting) m.meeting.push_back(k);
    }
    for (const Members& m : members) {
      branch(m.shared, false);
      branch(m.lanes, true);
      for (std::size_t k : m.meeting) for_all_lanes(g_.equations[k]);
    }
    Vec<Batched> results;
    results.reserve(g_.outputs.size());
    for (Var v : g_.outputs) results.push_back(value(v));
    return results;
  }
  /// Does the value come out of the lanes' branches?
  bool is_zero_beyond(Var v) const {
    const std::size_t k = plan_.makers[v];
    return k < g_.equations.size() && plan_.places[k] == Place::lanes && plan_.differs[v];
  }

 private:
  struct Members {
    Vec<std::size_t> shared, lanes, meeting;
  };

  void make_plan(std::span<const Batched> inputs) {
    Plan& p = plan_;
    const NamedAxis* axis = axis_.name.get();
    Dependence dependence(axis);
    const std::size_t n = g_.equations.size();
    p.places.resize(n);
    p.stretches.resize(n);
    p.differs.resize(g_.avals.size());
    p.makers.resize(g_.avals.size(), n);
    Vec<bool> literal(g_.avals.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      p.differs[g_.inputs[i]] = inputs[i].axis.has_value();
    bool lanes_act = false;  // has an equation of this stretch's lanes an effect?
    int stretch = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const Equation& e = g_.equations[k];
      Flags own;
      for (Var v : e.inputs) own.push_back(p.differs[v]);
      const bool apart = any_of(own, [](bool differs) { return differs; });
      const bool between = axis && works_over(e.op, e.params, *axis);
      const Flags made =
          apart || between ? dependence.results(g_, e, own) : Flags(e.outputs.size());
      for (std::size_t i = 0; i < made.size(); ++i) {
        p.differs[e.outputs[i]] = made[i];
        p.makers[e.outputs[i]] = k;
      }
      p.stretches[k] = stretch;
      if (is_literal(e, literal)) {
        p.places[k] = Place::literal;
        literal[e.outputs[0]] = true;
        continue;
      }
      if (apart && is_read(e)) {
        p.places[k] = Place::reading;
        for_all_lanes(e);
        continue;
      }
      // Of a lane's equation a result may be the same for all: what reads that comes behind.
      const bool behind = !apart && any_of(e.inputs, [&](Var v) {
        const std::size_t maker = p.makers[v];
        return maker < n && p.places[maker] == Place::lanes && p.stretches[maker] == stretch;
      });
      // The shared equations of a stretch come first.
      if (behind || (!apart && lanes_act && has_effect(e))) {
        ++stretch;
        lanes_act = false;
      }
      p.stretches[k] = stretch;
      // A check of all lanes at once says which lane it is that failed.
      if (between || (apart && e.op == Op::check)) {
        p.places[k] = Place::meeting;
        ++stretch;
        lanes_act = false;
        continue;
      }
      p.places[k] = apart ? Place::lanes : Place::shared;
      lanes_act = lanes_act || (apart && has_effect(e));
    }
    p.count = stretch + 1;
  }

  /// Is the value there before any branch?
  bool is_there(Var v) const {
    const std::size_t k = plan_.makers[v];
    return k >= g_.equations.size() || plan_.places[k] == Place::literal ||
           plan_.places[k] == Place::reading;
  }
  /// A few integers made of the lane's index, or elements that these pick of what is there: for all
  /// lanes at once they are slices mostly. In branches each lane would give its derivative by the
  /// whole array.
  bool is_read(const Equation& e) const {
    constexpr std::int64_t few = 16;
    if (e.outputs.size() != 1) return false;
    for (Var v : e.inputs)
      if (!is_there(v)) return false;
    const Aval& result = g_.aval(e.outputs[0]);
    const Family family = family_of(e.op);
    const bool moves = family == Family::shape || e.op == Op::slice;
    if (e.op == Op::gather || e.op == Op::dynamic_slice) return !plan_.differs[e.inputs[0]];
    if (moves && result.elements() <= g_.aval(e.inputs[0]).elements()) return true;
    return (moves || family == Family::unary || family == Family::binary ||
            family == Family::select) &&
           (is_int(result.dtype) || is_bool(result.dtype)) && result.elements() <= few;
  }
  const Equation* maker(Var v) const {
    const std::size_t k = plan_.makers[v];
    return k < g_.equations.size() ? &g_.equations[k] : nullptr;
  }
  bool is_literal_value(Var v) const {
    const std::size_t k = plan_.makers[v];
    return k < g_.equations.size() && plan_.places[k] == Place::literal;
  }
  /// Readers in one branch are known by its stretch and by whether it is that of lanes.
  static int branch_key(int stretch, bool of_lanes) { return 2 * stretch + (of_lanes ? 1 : 0); }
  void find_readers() {
    readers_.resize(g_.avals.size(), nobody);
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Place place = plan_.places[k];
      if (place == Place::literal || place == Place::reading) continue;
      const int key =
          place == Place::meeting ? several : branch_key(plan_.stretches[k], place == Place::lanes);
      for (Var v : g_.equations[k].inputs) {
        int& known = readers_[v];
        known = known == nobody || known == key ? key : several;
      }
    }
    for (Var v : g_.outputs) readers_[v] = several;
  }
  const Batched& value(Var v) {
    Batched& x = values_[v];
    if (!x.value.defined()) {  // a literal that is read outside of branches
      const Equation& e = *maker(v);
      std::vector<Tensor> operands;
      for (Var in : e.inputs) operands.push_back(value(in).value);
      repeat(g_, e, operands, [&](Var, Tensor t) { values_[v] = {std::move(t), std::nullopt}; });
    }
    return x;
  }

  /// These equations as the branch that is taken; the other one gives zeros.
  void branch(const Vec<std::size_t>& members, bool of_lanes) {
    if (members.empty()) return;
    const int key = branch_key(plan_.stretches[members[0]], of_lanes);
    const CallSite where = g_.equations[members[0]].where;
    Outline taken(g_.avals);
    const auto read = [&](auto& self, Var v) -> void {
      if (taken.inside.contains(v) || !is_literal_value(v)) return;
      for (Var in : maker(v)->inputs) self(self, in);
      taken.inside.add(*maker(v));
    };
    for (std::size_t k : members) {
      for (Var v : g_.equations[k].inputs) read(read, v);
      taken.add(g_.equations[k]);
    }
    for (std::size_t k : members)
      for (Var v : g_.equations[k].outputs)
        if (const int reader = readers_[v]; reader != nobody && reader != key) taken.output(v);
    if (taken.outputs.empty() && !has_effects(*taken.body)) return;
    auto zeros = std::make_shared<GraphBody>();
    GraphBody mini;
    std::vector<Batched> operands{{of_lanes ? axis_.active->lane_index : axis_.active->any_index,
                                   of_lanes ? MappedAxis(0) : std::nullopt}};
    mini.inputs.push_back(mini.fresh(Aval(DType::i32, Shape{})));
    for (Var v : taken.inputs) {
      zeros->inputs.push_back(zeros->fresh(g_.aval(v)));
      mini.inputs.push_back(mini.fresh(g_.aval(v)));
      operands.push_back(value(v));
    }
    for (Var v : taken.outputs) {
      const Aval& aval = g_.aval(v);
      zeros->outputs.push_back(add_equation(
          *zeros, Op::full, make_params(FullParams{Scalar(false).converted(aval.dtype), aval}), {},
          where));
      mini.outputs.push_back(mini.fresh(aval));
    }
    Equation e;
    e.op = Op::cond;
    e.where = where;
    e.inputs.assign(mini.inputs.begin(), mini.inputs.end());
    e.outputs.assign(mini.outputs.begin(), mini.outputs.end());
    CondParams p;
    p.branches = {std::move(zeros), taken.body};
    e.params = make_params(std::move(p));
    mini.equations.push_back(std::move(e));
    // The lanes of this axis do not meet in it.
    Vec<Batched> made = batch_graph(mini, operands, lanes_);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Var v = taken.outputs[i];
      values_[v] = plan_.differs[v] ? made[i] : shared_by_all(made[i], where);
    }
  }
  /// What is the same for all lanes that run is that of the first.
  static Batched shared_by_all(const Batched& x, CallSite where) {
    if (!x.axis) return x;
    const Shape& shape = x.value.shape();
    SliceParams first{Shape::filled(shape.size(), 0), shape, Shape::filled(shape.size(), 1)};
    first.limit[*x.axis] = 1;
    const Tensor row = emit(Op::slice, make_params(std::move(first)), {x.value}, where);
    return {
        emit(Op::reshape, make_params(ShapeParams{lanes::removed(shape, *x.axis)}), {row}, where),
        std::nullopt};
  }
  /// The equation for all lanes at once.
  void for_all_lanes(const Equation& e) {
    const LikeEquation like(e);
    SmallVec<Batched, 4> operands;
    for (Var v : e.inputs) operands.push_back(value(v));
    if (e.op == Op::check)  // holds for lanes that do not run
      operands[0] = {where_active(*axis_.active, operands[0], Scalar(true), lanes_, e.where), 0};
    const bool between = axis_.name && works_over(e.op, e.params, *axis_.name);
    if (!between && none_of(operands, [](const Batched& x) { return x.axis.has_value(); })) {
      // Of the index it may be known that it is the same for all: that it is not negative.
      std::vector<Tensor> plain;
      for (const Batched& x : operands) plain.push_back(x.value);
      repeat(g_, e, plain, [&](Var v, Tensor t) { values_[v] = {std::move(t), std::nullopt}; });
      return;
    }
    Broadcasts broadcasts;
    BatchedList results =
        batch_rules::table[e.op]({g_, e, std::span<const Batched>(operands.data(), operands.size()),
                                  lanes_, broadcasts, axis_});
    for (std::size_t i = 0; i < e.outputs.size(); ++i)
      values_[e.outputs[i]] = std::move(results[i]);
  }

  const GraphBody& g_;
  std::int64_t lanes_;
  const LaneAxis& axis_;
  Plan plan_;
  Vec<Batched> values_;
  static constexpr int nobody = -1, several = -2;
  Vec<int> readers_;  ///< per value: nobody, one branch, or others as well
};

}  // namespace active_walk

ActiveRef active_lanes(const Tensor& n, std::int64_t first, std::int64_t lanes, CallSite where) {
  const auto number = [&](std::int64_t value) {
    return full_tensor(Scalar(value).converted(DType::i32), Aval(DType::i32, Shape{}));
  };
  const auto as_index = [&](const Tensor& holds) {
    return emit(Op::convert, make_params(ConvertParams{DType::i32}), {holds}, where);
  };
  Tensor index =
      emit(Op::iota, make_params(IotaParams{Aval(DType::i32, Shape{lanes}), 0}), {}, where);
  if (first > 0) index = emit(Op::add, {}, {index, number(first)}, where);
  ActiveLanes a;
  a.runs = emit(Op::lt, {}, {index, n}, where);
  a.any = emit(Op::lt, {}, {number(first), n}, where);
  a.lane_index = as_index(a.runs);
  a.any_index = as_index(a.any);
  a.count = n;
  return std::make_shared<const ActiveLanes>(std::move(a));
}

Tensor where_active(const ActiveLanes& active, const Batched& x, const Scalar& other,
                    std::int64_t lanes, CallSite where) {
  const Tensor all = lanes::at_axis(x, 0, lanes, where);
  const Shape& shape = all.shape();
  const Tensor runs = shape.size() == 1
                          ? active.runs
                          : emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, Axes{0}}),
                                 {active.runs}, where);
  return emit(Op::select, {},
              {runs, all, full_tensor(other.converted(all.dtype()), Aval(all.dtype(), shape))},
              where);
}

Vec<Batched> batch_active(const GraphBody& graph, std::span<const Batched> inputs,
                          std::int64_t lanes, const LaneAxis& axis, Vec<bool>* zero) {
  active_walk::Walk walk(graph, inputs, lanes, axis);
  Vec<Batched> results = walk.run();
  if (zero)
    for (Var v : graph.outputs) zero->push_back(walk.is_zero_beyond(v));
  return results;
}

}  // namespace vt::detail
