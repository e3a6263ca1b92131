// Single regions: which equations join one, and where they are cut.
#include "single_regions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../nest/schedule.hpp"
#include "known_elements.hpp"
#include "lane_form.hpp"
#include "one_lane.hpp"

namespace vt::detail {

namespace single_regions {

/// Longer functions take more than their share to compile.
constexpr std::int64_t most_operations = 8000;
/// Of derivatives, which are worth it; of sparse ones: a region's, and all.
constexpr std::int64_t most_of_derivatives = 20000, most_of_sparse = 70000, most_sparse = 280000;
/// Of a region: an address each.
constexpr std::size_t most_buffers = 1000;

class SingleRegions {
 public:
  SingleRegions(const GraphBody& graph, const RegisterLimits& limits, std::int64_t frame)
      : graph_(graph), limits_(limits), frame_(frame), moved_(limits.moved) {}

  /// Nothing where no two equations go together.
  std::optional<GraphBody> run(FunctionRef<std::size_t(const GraphBody&)> steps_of) {
    find_members();
    if (count_if(inside_, [](bool in) { return in; }) < 2) return std::nullopt;
    const std::int64_t most = keeps_zeros(graph_) ? most_of_derivatives : most_operations;
    GraphBody with = graph_;
    with.equations.clear();
    Vec<Piece> formed;
    for (const Vec<int>& stage : stages_of(graph_, maker_, inside_)) {
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
    drop_unread(with);
    return with;
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
    drop_unread(with);
    return with;
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
  bool saves_steps(const Vec<Piece>& formed, std::size_t before, std::size_t after) const {
    std::int64_t operations = 0;
    for (const Piece& p : formed) operations += p.operations;
    return after < before &&
           operations <= limits_.operations_of_a_step * static_cast<std::int64_t>(before - after);
  }

  void find_members(bool without_copies = true) {
    const std::size_t count = graph_.equations.size();
    maker_ = makers_of(graph_);
    reads_ = reads_of(graph_);
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
    Outline out(graph_.avals);
    out.add(e);
    for (Var v : e.outputs) out.output(v);
    const Equation whole =
        out.equation(Op::fused_region, make_params(RegionParams{out.body, {}}), {});
    const std::optional<LaneForm> form = register_form(alone(graph_, whole), frame_, limits_);
    // Where single elements are picked from arrays, those lie in memory: not in a region that
    // computes on values of that size.
    return form && form->most_in_registers >= limits_.moved;
  }

  /// The equations of a piece as one, if they go together and would be several steps.
  std::optional<Equation> region_of(
      const Piece& of, const FunctionRef<std::size_t(const GraphBody&)>* steps_of) const {
    const Vec<int>& piece = of.members;
    if (piece.size() < 2) return std::nullopt;
    Outline out(graph_.avals);
    for (int i : piece) {
      const Equation& e = graph_.equations[i];
      for (Var v : e.inputs) {
        if (out.inside.contains(v)) continue;
        const int made = maker_[v];
        if (made >= 0 && is_number(graph_.equations[made])) {
          out.inside.add(graph_.equations[made]);
          continue;
        }
        const Var given = out.input(v);
        if (const std::optional<KnownElements::Zeros> zeros = known_->zeros(v))
          out.inside.bind(v, without_zeros(*out.body, given, *zeros));
      }
      out.add(e);
    }
    out.output_what_is_read(reads_);
    if (any_of(out.outputs, [&](Var v) { return bool{in_frame_[v]}; })) return std::nullopt;
    // Nobody asks; or too many do.
    if (out.outputs.empty() || out.inputs.size() + out.outputs.size() > most_buffers)
      return std::nullopt;
    if (steps_of && !saves_steps({of}, (*steps_of)(*out.body), 1)) return std::nullopt;
    Equation whole = out.equation(Op::fused_region, make_params(RegionParams{out.body, {}}), {});
    for (int i : piece)
      if (graph_.equations[i].where.file) whole.where = graph_.equations[i].where;
    if (!register_form(alone(graph_, whole), frame_, limits_)) return std::nullopt;
    return whole;
  }

  /// The value where it is not known to be 0: what the regions before knew of it is not lost.
  static Var without_zeros(GraphBody& body, Var v, const KnownElements::Zeros& zeros) {
    const Aval a = body.aval(v);
    const auto constant = [&](const BufferRef& numbers, DType d) {
      return add_equation(body, Op::constant,
                          make_params(ConstantParams{numbers, Aval(d, a.shape)}), {});
    };
    return add_equation(
        body, Op::select, {},
        {constant(zeros.elsewhere, DType::bool_), v, constant(zeros.numbers, a.dtype)});
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

  const GraphBody& graph_;
  const RegisterLimits& limits_;
  const std::int64_t frame_;
  std::int64_t moved_;  ///< RegisterLimits::moved
  std::optional<KnownElements> known_;
  Vec<bool> in_frame_;            ///< per value: unset_arrays
  Vec<bool> inside_;              ///< per equation
  Vec<std::int64_t> operations_;  ///< per equation
  Vec<int> maker_, reads_;        ///< makers_of, reads_of the Graph
};

}  // namespace single_regions

GraphBody form_sparse_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame) {
  using single_regions::SingleRegions;
  if (!keeps_zeros(graph) ||
      any_of(graph.equations, [](const Equation& e) { return keeps_order(e); }))
    return graph;
  // Without lanes, SIMD lanes along a Jacobian's rows would compute all of them, but several at
  // once.
  if (std::optional<GraphBody> formed = SingleRegions(graph, limits, frame).sparse(0.5))
    return std::move(*formed);
  const std::optional<OneLane> one = one_lane(graph, limits.fewest_lanes);
  if (!one) return graph;
  const std::optional<GraphBody> formed = SingleRegions(one->graph, limits, frame).sparse(0.9);
  if (!formed) return graph;
  GraphBody all = for_all_lanes(*one, *formed);
  for (const Equation& e : all.equations)
    if (e.op == Op::fused_region && !register_form(alone(all, e), 0, limits)) return graph;
  return all;
}

GraphBody form_single_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame,
                              FunctionRef<std::size_t(const GraphBody&)> steps_of) {
  if (any_of(graph.equations, [](const Equation& e) { return has_effect(e); }))
    return graph;  // they would have to keep their order
  return with_same_exchanges(std::move(graph), [&](GraphBody g) {
    std::optional<GraphBody> formed = single_regions::SingleRegions(g, limits, frame).run(steps_of);
    return formed ? std::move(*formed) : std::move(g);
  });
}

}  // namespace vt::detail
