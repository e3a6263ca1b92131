// Single regions: which equations join one, and where they are cut.
#include "single_regions.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/effects.hpp"
#include "../nest/schedule.hpp"
#include "known_elements.hpp"
#include "lane_form.hpp"
#include "one_lane.hpp"

namespace vt::detail {

namespace single_regions {

/// What the emitter has once for each element. A step takes as long as so many of them, about: it
/// is found, called and goes through memory.
constexpr std::int64_t operations_of_a_step = 300;
/// Longer functions take more than their share to compile.
constexpr std::int64_t most_operations = 8000;
/// Of derivatives, which are worth it; of sparse ones: a region's, and all.
constexpr std::int64_t most_of_derivatives = 20000, most_of_sparse = 70000, most_sparse = 280000;
/// Of a region: an address each.
constexpr std::size_t most_buffers = 1000;

GraphBody compacted(const GraphBody&);

class Former {
 public:
  Former(const GraphBody& graph, const RegisterLimits& limits, std::int64_t frame)
      : graph_(graph), limits_(limits), frame_(frame), moved_(limits.moved) {}

  /// Nothing where no two equations go together.
  std::optional<GraphBody> run(FunctionRef<std::size_t(const GraphBody&)> steps_of) {
    find_members();
    if (count_if(inside_, [](bool in) { return in; }) < 2) return std::nullopt;
    const std::int64_t most = keeps_zeros(graph_) ? most_of_derivatives : most_operations;
    GraphBody with = graph_;
    with.equations.clear();
    Vec<Piece> formed;
    for (const Vec<int>& stage : stages()) {
      for (int i : stage)
        if (!inside_[i]) with.equations.push_back(graph_.equations[i]);
      Piece piece;
      const auto close = [&] {
        if (std::optional<Equation> region = region_of(piece, &steps_of)) {
          with.equations.push_back(std::move(*region));
          formed.push_back(std::move(piece));
        } else {
          for (int i : piece.members) with.equations.push_back(graph_.equations[i]);
        }
        piece = {};
      };
      for (int i : stage) {
        if (!inside_[i]) continue;
        if (piece.operations + operations_[i] > most) close();
        piece.members.push_back(i);
        piece.operations += operations_[i];
      }
      if (!piece.members.empty()) close();
    }
    if (formed.empty()) return std::nullopt;
    // What is around them may have made parts of them as it read them, at no cost.
    const bool all_of_it = formed.size() == 1 && all_inside();
    if (!all_of_it && !saves_steps(formed, steps_of(graph_), steps_of(with))) return std::nullopt;
    return compacted(with);
  }

  /// All of it as regions, if no more than `share` of its elements are left to compute: the others
  /// are zeros of Jacobians.
  std::optional<GraphBody> sparse(double share) {
    if (none_of(graph_.equations, [](const Equation& e) { return may_be_register_kernel(e.op); }))
      moved_ = limits_.moved_without_loops;
    find_members(false);
    std::int64_t left = 0, dense = 0;
    KnownElements nothing_known(graph_, 0);
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if (family_of(graph_.equations[i].op) == Family::leaf) continue;
      if (!inside_[i]) return std::nullopt;
      left += operations_[i];
      const Equation& e = graph_.equations[i];
      dense += std::max(
          operations_[i],
          nothing_known.add(e) * std::max(1, op_weight(e.op, graph_.aval(e.outputs[0]).dtype)));
    }
    if (left > most_sparse || static_cast<double>(left) > share * static_cast<double>(dense))
      return std::nullopt;
    // None is the rest of the others: it would save less than they.
    const std::int64_t of_a_piece = left / (left / most_of_sparse + 1) + 1;
    GraphBody with = graph_;
    with.equations.clear();
    Piece piece;
    const auto close = [&] {
      std::optional<Equation> region = region_of(piece, nullptr);
      if (region) with.equations.push_back(std::move(*region));
      piece = {};
      return region.has_value();
    };
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if (family_of(graph_.equations[i].op) == Family::leaf) {
        with.equations.push_back(graph_.equations[i]);
        continue;
      }
      if (piece.operations > 0 && piece.operations + operations_[i] > of_a_piece && !close())
        return std::nullopt;
      piece.members.push_back(static_cast<int>(i));
      piece.operations += operations_[i];
    }
    if (!close()) return std::nullopt;
    return compacted(with);
  }

 private:
  struct Piece {
    Vec<int> members;
    std::int64_t operations = 0;
  };

  bool all_inside() const {
    for (std::size_t i = 0; i < inside_.size(); ++i)
      if (!inside_[i] && family_of(graph_.equations[i].op) != Family::leaf) return false;
    return true;
  }
  static bool saves_steps(const Vec<Piece>& formed, std::size_t before, std::size_t after) {
    std::int64_t operations = 0;
    for (const Piece& p : formed) operations += p.operations;
    return after < before &&
           operations <= operations_of_a_step * static_cast<std::int64_t>(before - after);
  }

  void find_members(bool without_copies = true) {
    const std::size_t count = graph_.equations.size();
    maker_.assign(graph_.avals.size(), -1);
    reads_.assign(graph_.avals.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      for (Var v : graph_.equations[i].outputs) maker_[v] = static_cast<int>(i);
      for (Var v : graph_.equations[i].inputs) ++reads_[v];
    }
    for (Var v : graph_.outputs) ++reads_[v];
    inside_.assign(count, false);
    operations_.assign(count, 0);
    in_frame_ = limits_.of_unset > 0 ? unset_arrays(graph_) : Vec<bool>(graph_.avals.size());
    known_.emplace(graph_, moved_);
    for (std::size_t i = 0; i < count; ++i) inside_[i] = fits(i, known_->add(graph_.equations[i]));
    if (without_copies) leave_copies_outside();
  }

  bool is_small(Var v) const { return graph_.aval(v).elements() <= moved_; }

  /// May the equation be part of a region? What it computes there, in operations. `left`: see
  /// KnownElements::add.
  bool fits(std::size_t i, std::int64_t left) {
    const Equation& e = graph_.equations[i];
    if (e.outputs.empty() || lanes_of(e) || family_of(e.op) == Family::leaf) return false;
    const Aval& out = graph_.aval(e.outputs[0]);
    const auto all_small = [&](const auto& list) {
      return !any_of(list, [&](Var v) { return !is_small(v); });
    };
    std::int64_t& operations = operations_[i];
    if (may_be_register_kernel(e.op)) {
      // Loops take as long in a function of their own, and better one with SIMD lanes.
      const GraphBody one = alone(graph_, e);
      if (calls_recursion(one)) return false;
      const std::optional<LaneForm> form = register_form(one, frame_, limits_);
      return form && !*form &&
             (fits_alone(e) || any_of(e.inputs, [&](Var v) { return bool{in_frame_[v]}; }));
    }
    if (!all_small(e.outputs)) return false;
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select:
        operations = left * std::max(1, op_weight(e.op, out.dtype));
        return all_small(e.inputs) && (!limits_.has_code || limits_.has_code(e.op));
      case Family::shape: return all_small(e.inputs);
      case Family::reduce:
        operations = left;
        return all_small(e.inputs) && !reduced_axes(e).empty();
      case Family::contract:
        if (e.op != Op::dot_general || !all_small(e.inputs)) return false;
        operations = left;
        return true;
      case Family::cumulative:
        operations = out.elements();
        return all_small(e.inputs) && fits_alone(e);
      case Family::index:
        operations =
            e.op == Op::slice || known_->knows_places(e) ? left : operations_of_choices(graph_, e);
        return (e.op == Op::slice || all_small(e.inputs)) && fits_alone(e);
      default: return false;
    }
  }

  bool fits_alone(const Equation& e) const {
    GraphBody body = alone(graph_, e);
    Equation whole = region(std::make_shared<const GraphBody>(body));
    whole.inputs.assign(body.inputs.begin(), body.inputs.end());
    whole.outputs.assign(body.outputs.begin(), body.outputs.end());
    body.equations.clear();
    body.equations.push_back(std::move(whole));
    const std::optional<LaneForm> form = register_form(body, frame_, limits_);
    // Where single elements are picked from arrays, those lie in memory: not in a region that
    // computes on values of that size.
    return form && form->most_in_registers >= limits_.moved;
  }

  static Equation region(GraphRef body) {
    Equation e;
    e.op = Op::fused_region;
    e.params = make_params(RegionParams{std::move(body), {}});
    return e;
  }

  /// The equations of a piece as one, if they go together and would be several steps.
  std::optional<Equation> region_of(
      const Piece& of, const FunctionRef<std::size_t(const GraphBody&)>* steps_of) const {
    const Vec<int>& piece = of.members;
    if (piece.size() < 2) return std::nullopt;
    auto body = std::make_shared<GraphBody>();
    HashMap<Var, Var> names;
    HashMap<Var, int> read_inside;
    Vec<Var> from_outside;
    const auto inner = [&](Var v) {
      const auto name = names.emplace(v, -1);
      if (name.fresh) {
        const Aval& a = graph_.aval(v);
        name.entry->second = body->fresh(Aval(a.dtype, a.shape));
      }
      return name.entry->second;
    };
    const auto add = [&](Equation e) {
      for (Var& v : e.inputs) v = inner(v);
      for (Var& v : e.outputs) v = inner(v);
      body->equations.push_back(std::move(e));
    };
    for (int i : piece)
      for (Var v : graph_.equations[i].inputs) ++read_inside[v];
    for (int i : piece) {
      const Equation& e = graph_.equations[i];
      for (Var v : e.inputs) {
        if (names.contains(v)) continue;
        const int made = maker_[v];
        if (made >= 0 && is_number(graph_.equations[made])) {
          add(graph_.equations[made]);
          continue;
        }
        from_outside.push_back(v);
        body->inputs.push_back(inner(v));
        if (const std::optional<KnownElements::Zeros> zeros = known_->zeros(v))
          names.find(v)->second = without_zeros(*body, inner(v), *zeros);
      }
      add(e);
    }
    Vec<Var> results;
    for (int i : piece)
      for (Var v : graph_.equations[i].outputs) {
        const auto* inside = read_inside.find(v);
        if (reads_[v] == (inside == read_inside.end() ? 0 : inside->second)) continue;
        results.push_back(v);
        body->outputs.push_back(inner(v));
      }
    if (any_of(results, [&](Var v) { return bool{in_frame_[v]}; })) return std::nullopt;
    // Nobody asks; or too many do.
    if (results.empty() || from_outside.size() + results.size() > most_buffers) return std::nullopt;
    if (steps_of && !saves_steps({of}, (*steps_of)(*body), 1)) return std::nullopt;
    Equation whole = region(std::move(body));
    whole.inputs.assign(from_outside.begin(), from_outside.end());
    whole.outputs.assign(results.begin(), results.end());
    for (int i : piece)
      if (graph_.equations[i].where.file) whole.where = graph_.equations[i].where;
    if (!register_form(alone(graph_, whole), frame_, limits_)) return std::nullopt;
    return whole;
  }

  /// The value where it is not known to be 0: what the regions before knew of it is not lost.
  static Var without_zeros(GraphBody& body, Var v, const KnownElements::Zeros& zeros) {
    const Aval a = body.aval(v);
    const auto make = [&](Op op, ParamsRef params, std::initializer_list<Var> inputs,
                          const Aval& out) {
      Equation& e = body.equations.emplace_back();
      e.op = op;
      e.params = std::move(params);
      for (Var x : inputs) e.inputs.push_back(x);
      const Var result = body.fresh(out);
      e.outputs.push_back(result);
      return result;
    };
    const auto constant = [&](const BufferRef& numbers, DType d) {
      const Aval of(d, a.shape);
      return make(Op::constant, make_params(ConstantParams{numbers, of}), {}, of);
    };
    return make(Op::select, {},
                {constant(zeros.elsewhere, DType::bool_), v, constant(zeros.numbers, a.dtype)}, a);
  }

  /// Made again in each region that reads it: no memory is read for it.
  bool is_number(const Equation& e) const {
    return family_of(e.op) == Family::leaf && e.op != Op::input &&
           (is_small(e.outputs[0]) || in_frame_[e.outputs[0]]);
  }

  // What only moves elements for a reader outside: a kernel does it as it reads.
  void leave_copies_outside() {
    Vec<bool> read(graph_.avals.size());
    for (Var v : graph_.outputs) read[v] = true;
    for (std::size_t i = inside_.size(); i-- > 0;) {
      const Equation& e = graph_.equations[i];
      const bool moves = family_of(e.op) == Family::shape || e.op == Op::slice;
      if (moves && !read[e.outputs[0]]) inside_[i] = false;
      for (Var v : e.inputs) read[v] = read[v] || inside_[i];
    }
  }

  /// Equations in an order in which those of a stage have nothing from outside between them.
  Vec<Vec<int>> stages() const {
    Vec<int> stage(graph_.equations.size(), 0);
    Vec<Vec<int>> all;
    for (std::size_t i = 0; i < stage.size(); ++i) {
      for (Var v : graph_.equations[i].inputs) {
        if (maker_[v] < 0) continue;
        const std::size_t m = maker_[v];
        stage[i] = std::max(stage[i], stage[m] + (inside_[m] && !inside_[i]));
      }
      if (static_cast<std::size_t>(stage[i]) >= all.size()) all.resize(stage[i] + 1);
      all[stage[i]].push_back(static_cast<int>(i));
    }
    return all;
  }

  const GraphBody& graph_;
  const RegisterLimits& limits_;
  const std::int64_t frame_;
  std::int64_t moved_;  ///< RegisterLimits::moved
  std::optional<KnownElements> known_;
  Vec<bool> in_frame_;            ///< per value: unset_arrays
  Vec<bool> inside_;              ///< per equation
  Vec<std::int64_t> operations_;  ///< per equation
  Vec<int> maker_;                ///< the equation that makes a value; −1: none
  Vec<int> reads_;                ///< how often a value is read, or given as a result
};

/// Without equations and values that nothing reads.
GraphBody compacted(const GraphBody& g) {
  Vec<bool> read(g.avals.size());
  for (Var v : g.outputs) read[v] = true;
  Vec<bool> kept(g.equations.size());
  for (std::size_t i = g.equations.size(); i-- > 0;) {
    const Equation& e = g.equations[i];
    kept[i] = any_of(e.outputs, [&](Var v) { return read[v]; });
    for (Var v : e.inputs) read[v] = read[v] || kept[i];
  }
  GraphBody to;
  Vec<Var> names(g.avals.size(), -1);
  const auto renamed = [&](Var v) { return names[v] = to.fresh(g.aval(v)); };
  for (Var v : g.inputs) to.inputs.push_back(renamed(v));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    Equation e = g.equations[i];
    for (Var& v : e.inputs) v = names[v];
    for (Var& v : e.outputs) v = renamed(v);
    to.equations.push_back(std::move(e));
  }
  for (Var v : g.outputs) to.outputs.push_back(names[v]);
  return to;
}

}  // namespace single_regions

GraphBody form_sparse_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame) {
  using single_regions::Former;
  if (!keeps_zeros(graph) ||
      any_of(graph.equations, [](const Equation& e) { return has_effect(e); }))
    return graph;
  // Without lanes, SIMD lanes along a Jacobian's rows would compute all of them, but several at
  // once.
  if (std::optional<GraphBody> formed = Former(graph, limits, frame).sparse(0.5))
    return std::move(*formed);
  const std::optional<OneLane> one = one_lane(graph, limits.fewest_lanes);
  if (!one) return graph;
  const std::optional<GraphBody> formed = Former(one->graph, limits, frame).sparse(0.9);
  if (!formed) return graph;
  GraphBody all = for_all_lanes(*one, *formed);
  for (const Equation& e : all.equations)
    if (e.op == Op::fused_region && !register_form(alone(all, e), 0, limits)) return graph;
  return all;
}

GraphBody form_single_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame,
                              FunctionRef<std::size_t(const GraphBody&)> steps_of) {
  for (const Equation& e : graph.equations)
    if (has_effect(e)) return graph;  // which would have to keep their order
  std::optional<GraphBody> formed = single_regions::Former(graph, limits, frame).run(steps_of);
  return formed ? std::move(*formed) : std::move(graph);
}

}  // namespace vt::detail
