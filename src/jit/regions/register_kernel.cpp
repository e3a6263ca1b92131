// Register kernels: which values fit in registers, and where the elements of moved values come
// from.
#include "register_kernel.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../nest/schedule.hpp"
#include "fused_regions.hpp"
#include "known_elements.hpp"

namespace vt::detail {

namespace register_kernels {

constexpr int deepest = 12;

// A while inside a loop is taken to have so many iterations where work is compared.
constexpr double usual_iterations = 100;

/// Of loops that are inside one another, all their iterations.
double most_iterations(const GraphBody& g) {
  double most = 1;
  for (const Equation& e : g.equations) {
    const double own = e.op == Op::while_ || e.op == Op::recursive_call ? 1e15
                       : e.op == Op::scan ? static_cast<double>(e.as<ScanParams>().length)
                                          : 1;
    most = std::max(most, own);
    for (const GraphRef& body : bodies_of(e.params))
      most = std::max(most, own * most_iterations(*body));
  }
  return most;
}
bool loops(const GraphBody& g) { return most_iterations(g) > 1; }

/// Which memory a large value is. It is readable as long as the object has the version that it had
/// when the value was made.
struct ValuePlace {
  int object = -1;  // −1: in registers
  int version = 0;
  bool whole = true;    ///< all of the object, not a part
  bool number = false;  ///< it depends on nothing, and is a number in the code
};

class FitCheck {
 public:
  FitCheck(const LaneForm& form, std::int64_t frame, const RegisterLimits& limits)
      : form_(form),
        limits_(limits),
        frame_(form.side_by_side() ? 0 : frame),
        unused_(frame_),
        unused_by_unset_(limits.of_unset) {}

  bool run() {
    const GraphBody& g = form_.lane;
    const Equation& e = g.equations[0];
    Vec<ValuePlace> operands, results;
    for (Var v : e.inputs)
      operands.push_back(place_for(g.aval(v), operands.size() < carries_of(e)));
    if (!control(g, e, operands, results, true) || row_elements() > limits_.of_rows) return false;
    const bool sparse = e.op == Op::fused_region && choices_ <= limits_.instructions &&
                        (form_.count < 0 ? keeps_zeros(g) : 2 * cost_ <= dense_cost_);
    if (cost_ > (sparse ? limits_.instructions_of_sparse
                 : form_.count >= (loops(g) ? limits_.fewest_lanes : limits_.many_lanes)
                     ? limits_.instructions_of_many
                     : limits_.instructions))
      return false;
    // Only loops, and what is around loops, have results that lie in memory; not those of lanes
    // side by side, whose arrays in the frame lie otherwise.
    if ((is_called(e.op) || (form_.side_by_side() && e.op != Op::while_ && e.op != Op::scan)) &&
        any_of(results, [](const ValuePlace& p) { return p.object >= 0; }))
      return false;
    // Arrays go op by op: where they are most of the work, programs, which fuse, are better.
    return unused_ == frame_ || array_work_ <= scalar_work_;
  }
  std::int64_t cost() const { return cost_; }

 private:
  struct Object {
    bool writable = false;  ///< by the loop that is being looked at
    bool written = false;
    int version = 0;
  };

  static bool is_called(Op op) { return op == Op::recursive_call || op == Op::batched_call; }
  bool in_registers(const Aval& a) const { return form_.in_registers(a); }
  /// RegisterLimits::of_rows.
  std::int64_t row_elements() const {
    const Equation& e = form_.lane.equations[0];
    std::int64_t all = 0;
    for (std::size_t i = 0; i < form_.axes.size(); ++i) {
      const Aval& a =
          form_.lane.aval(i < e.inputs.size() ? e.inputs[i] : e.outputs[i - e.inputs.size()]);
      if (form_.axes[i] >= 0 && in_registers(a)) all += a.elements();
    }
    return all;
  }
  ValuePlace place_for(const Aval& a, bool writable) {
    if (in_registers(a)) return {};
    objects_.push_back({writable, false, 0});
    return {static_cast<int>(objects_.size()) - 1, 0, true};
  }
  Object& object(ValuePlace p) { return objects_[p.object]; }
  bool stale(ValuePlace p) { return p.object >= 0 && p.version != object(p).version; }
  void overwrite(ValuePlace p) {
    object(p).written = true;
    ++object(p).version;
  }

  /// An array in the function's frame, if there is room.
  bool own_array(const Aval& a, ValuePlace& place) {
    unused_ -= static_cast<std::int64_t>(a.bytes());
    objects_.push_back({true, false, 0});
    place = {static_cast<int>(objects_.size()) - 1, 0, true};
    return unused_ >= 0;
  }
  bool unset_array(const Aval& a, ValuePlace& place) {
    unused_by_unset_ -= static_cast<std::int64_t>(a.bytes());
    objects_.push_back({true, false, 0});
    place = {static_cast<int>(objects_.size()) - 1, 0, true};
    return unused_by_unset_ >= 0;
  }
  /// `dense`: more, if nothing were known of the operands.
  void spend(std::int64_t instructions, std::int64_t dense = 0) {
    cost_ += instructions;
    dense_cost_ += std::max(instructions, dense);
    scalar_work_ += iterations_ * static_cast<double>(instructions);
  }
  /// Choices among all elements, on which LLVM works long.
  void choose(std::int64_t instructions) {
    spend(instructions);
    choices_ += instructions;
  }
  /// On every element of an array, vector by vector.
  void spend_on_array(const Aval& a, int weight) {
    cost_ += 12 + 2 * weight;
    array_work_ += iterations_ * static_cast<double>(a.elements() * weight) / 8;
  }

  struct Scope {
    Scope(const GraphBody& g, std::int64_t most)
        : graph(g), places(g.avals.size()), held(g.avals.size()), known(g, most) {
      for (std::size_t v = 0; v < held.size(); ++v) held[v] = g.avals[v].elements();
    }
    const GraphBody& graph;
    Vec<ValuePlace> places;
    /// Of a small value: its elements that are neither known nor those of another value.
    Vec<std::int64_t> held;
    KnownElements known;
  };

  bool body(const GraphBody& g, const Vec<ValuePlace>& inputs, Vec<ValuePlace>& outputs) {
    Scope s(g, form_.most_in_registers);
    for (std::size_t i = 0; i < inputs.size(); ++i) s.places[g.inputs[i]] = inputs[i];
    for (const Equation& e : g.equations)
      if (!equation(s, e)) return false;
    for (Var v : g.outputs) {
      outputs.push_back(s.places[v]);
      if (stale(outputs.back())) return false;
    }
    return true;
  }

  bool equation(Scope& s, const Equation& e) {
    const GraphBody& g = s.graph;
    const bool recurs = e.op == Op::recursive_call;
    if ((!recurs && keeps_order(e)) || family_of(e.op) == Family::effect) return false;
    if (limits_.has_code && is_elementwise(e.op) && !limits_.has_code(e.op)) return false;
    Vec<ValuePlace> operands;
    int large = 0;
    for (Var v : e.inputs) {
      operands.push_back(s.places[v]);
      if (stale(operands.back())) return false;  // overwritten meanwhile
      large += operands.back().object >= 0;
    }
    if (may_be_register_kernel(e.op) || recurs) {
      Vec<ValuePlace> results;
      if (!control(g, e, operands, results, false)) return false;
      for (std::size_t i = 0; i < results.size(); ++i) s.places[e.outputs[i]] = results[i];
      return true;
    }
    const std::int64_t operations = s.known.add(e);
    const Aval& out = g.aval(e.outputs[0]);
    ValuePlace& result = s.places[e.outputs[0]];
    if (e.op == Op::constant && number_of(form_.constants, e) >= 0) {
      result = place_for(out, false);
      spend(in_registers(out) ? out.elements() : 1);
      return true;
    }
    if (is_unset(e) && limits_.of_unset > 0) return unset_array(out, result);
    if (large == 0 && in_registers(out)) {
      const bool is_cheap = is_elementwise(e.op)
                                ? op_weight(e.op, out.dtype) <= 1
                                : family_of(e.op) == Family::shape || e.op == Op::slice;
      result.number =
          e.op == Op::full || e.op == Op::iota ||
          (is_cheap && none_of(operands, [](const ValuePlace& p) { return !p.number; }));
      std::int64_t read = 0;
      for (Var v : e.inputs) read += s.held[v];
      std::int64_t& held = s.held[e.outputs[0]];
      if (operations == 0) held = std::min(held, read);
      return result.number || small(s, e, operations, s.known.knows_places(e));
    }
    const bool first_only = large == 1 && operands[0].object >= 0;
    const bool scatters = is_scatter(e.op);
    if (first_only && (e.op == Op::dynamic_update_slice || scatters)) {
      if (!object(operands[0]).writable || (scatters && !plain_scatter(g, e))) return false;
      overwrite(operands[0]);
      result = {operands[0].object, object(operands[0]).version, operands[0].whole};
      spend(6 * g.aval(e.inputs[scatters ? 2 : 1]).elements());
      return true;
    }
    if (first_only && in_registers(out) &&
        (e.op == Op::dynamic_slice || e.op == Op::slice || e.op == Op::gather)) {
      spend(4 * out.elements());
      return true;
    }
    if (first_only && e.op == Op::reshape && !in_registers(out)) {
      result = operands[0];
      return true;
    }
    return frame_ > 0 && !in_registers(out) && array(g, e, operands, result);
  }

  /// What has an array as its result: part of another one, or one in the frame.
  bool array(const GraphBody& g, const Equation& e, const Vec<ValuePlace>& operands,
             ValuePlace& result) {
    const Aval& out = g.aval(e.outputs[0]);
    const auto shape_of = [&](std::size_t i) -> const Shape& { return g.aval(e.inputs[i]).shape; };
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select:
        spend_on_array(out, std::max(1, op_weight(e.op, out.dtype)));
        return own_array(out, result);
      default: break;
    }
    bool fits = false;
    switch (e.op) {
      case Op::full: fits = true; break;
      case Op::iota: fits = out.shape.rank() == 1; break;
      case Op::broadcast_in_dim: fits = shape_of(0).elements() == 1; break;
      case Op::concatenate: {
        Shape part = out.shape;
        ++part[e.as<AxisParams>().axis];
        fits = is_run(out.shape, part);  // one part after the other
        break;
      }
      case Op::slice:
      case Op::dynamic_slice:
        if (operands[0].object < 0 || !is_run(shape_of(0), out.shape)) return false;
        if (e.op == Op::slice &&
            any_of(e.as<SliceParams>().stride, [](std::int64_t by) { return by != 1; }))
          return false;
        result = operands[0];
        result.whole = result.whole && shape_of(0).elements() == out.elements();
        spend(4);
        return true;
      case Op::dynamic_update_slice:  // with an array, into another
        if (!object(operands[0]).writable || operands[0].object == operands[1].object ||
            !is_run(shape_of(0), shape_of(1)))
          return false;
        overwrite(operands[0]);
        result = {operands[0].object, object(operands[0]).version, operands[0].whole};
        spend_on_array(g.aval(e.inputs[1]), 1);
        return true;
      default: break;
    }
    if (fits) spend_on_array(out, 1);
    return fits && own_array(out, result);
  }

  // 16-bit sums and products are rounded once, at the end; not so here.
  static bool plain_scatter(const GraphBody& g, const Equation& e) {
    const DType d = g.aval(e.outputs[0]).dtype;
    return !((d == DType::f16 || d == DType::bf16) &&
             (e.op == Op::scatter_add || e.op == Op::scatter_mul));
  }

  /// `left`: see KnownElements::add. `places_known`: of the elements that it picks.
  bool small(const Scope& s, const Equation& e, std::int64_t left, bool places_known) {
    const GraphBody& g = s.graph;
    const std::int64_t n = g.aval(e.outputs[0]).elements();
    std::int64_t operands = 0, largest = s.held[e.outputs[0]];
    for (Var v : e.inputs) {
      operands += g.aval(v).elements();
      largest = std::max(largest, s.held[v]);
    }
    if (largest > limits_.of_a_lane && family_of(e.op) != Family::shape && e.op != Op::slice)
      return false;
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select:
        spend(left * std::max(1, op_weight(e.op, g.aval(e.outputs[0]).dtype)),
              n * std::max(1, op_weight(e.op, g.aval(e.outputs[0]).dtype)));
        return true;
      case Family::leaf: return e.op == Op::full || e.op == Op::iota || e.op == Op::constant;
      case Family::shape: return true;
      case Family::reduce: {
        const bool places = e.op == Op::argmax || e.op == Op::argmin;
        spend(places ? 4 * operands : left, operands);
        return places || is_reduction(e.op);
      }
      case Family::cumulative: {
        const DType d = g.aval(e.outputs[0]).dtype;
        const std::int64_t length = g.aval(e.outputs[0]).shape[e.as<CumulativeParams>().axis];
        const RunningOp step(e.op, d, length);
        spend(operands * (step.compensated ? 10 : step.dtype == d ? 1 : 5));
        return RunningOp::has_code(e.op, d);
      }
      case Family::contract: {
        if (e.op != Op::dot_general) return false;  // convolutions have kernels of their own
        spend(2 * left, 2 * n * SmallProduct(g, e).terms());
        return true;
      }
      case Family::linalg: {
        const std::optional<SmallMatrixSizes> sizes = small_matrix_sizes(g, e);
        if (sizes) spend(small_matrix_operations(e, *sizes));
        return sizes.has_value();
      }
      case Family::index:
        if (e.op == Op::slice) return true;
        if (places_known) {
          spend(n);
          return !is_scatter(e.op) || plain_scatter(g, e);
        }
        choose(operations_of_choices(g, e));
        if (is_scatter(e.op)) return plain_scatter(g, e);
        return e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice || e.op == Op::gather;
      default: return false;
    }
  }

  bool control(const GraphBody& g, const Equation& e, const Vec<ValuePlace>& operands,
               Vec<ValuePlace>& results, bool outermost) {
    if (++depth_ > deepest) return false;
    if (!outermost && lanes_of(e)) return false;
    const bool fits = e.op == Op::while_ || e.op == Op::scan
                          ? loop(g, e, operands, results, outermost)
                      : e.op == Op::recursive_call ? called(e, results)
                                                   : branches(e, operands, results);
    --depth_;
    return fits;
  }

  // Each function is looked at once. It may have no arrays of its own, as it has many frames.
  bool called(const Equation& e, Vec<ValuePlace>& results) {
    const int number = number_of(form_.functions, e);
    if (number < 0) return false;
    const GraphBody& g = *form_.functions[number].body;
    if (any_of(g.outputs, [&](Var v) { return !in_registers(g.aval(v)); })) return false;
    results.resize(e.outputs.size());
    spend(static_cast<std::int64_t>(g.inputs.size() + g.outputs.size()));
    if (std::find(entered_.begin(), entered_.end(), number) != entered_.end()) return true;
    entered_.push_back(number);
    Vec<ValuePlace> inputs, outputs;
    for (Var v : g.inputs) inputs.push_back(place_for(g.aval(v), false));
    const std::int64_t unused = unused_ + unused_by_unset_;
    const int depth = std::exchange(depth_, 0);
    const bool fits = body(g, inputs, outputs);
    depth_ = depth;
    return fits && unused_ + unused_by_unset_ == unused &&
           none_of(outputs, [](const ValuePlace& p) { return p.object >= 0; });
  }

  // Of a cond or, as its only branch, the body of a fused region. What a branch overwrites is what
  // every branch hands on, in the same place.
  bool branches(const Equation& e, const Vec<ValuePlace>& operands, Vec<ValuePlace>& results) {
    const Vec<ValuePlace> inputs(operands.begin() + (e.op == Op::cond ? 1 : 0), operands.end());
    Vec<int> written;
    std::optional<Vec<ValuePlace>> first;
    for (const GraphRef& branch : bodies_of(e.params)) {
      const Vec<Object> before = objects_;
      for (Object& o : objects_) o.written = false;
      Vec<ValuePlace> out;
      if (!body(*branch, inputs, out)) return false;
      for (std::size_t k = 0; k < before.size(); ++k) {
        if (objects_[k].written) written.push_back(static_cast<int>(k));
        objects_[k].written = objects_[k].written || before[k].written;
        objects_[k].version = before[k].version;
      }
      for (std::size_t i = 0; i < out.size(); ++i)
        if ((first && (*first)[i].object != out[i].object) || !out[i].whole) return false;
      if (!first) first = out;
    }
    results = *first;
    for (int k : written) {
      if (none_of(results, [&](const ValuePlace& p) { return p.object == k; })) return false;
      ++objects_[k].version;
    }
    for (ValuePlace& p : results)
      if (p.object >= 0) p.version = object(p).version;
    return !handed_on_twice(results);
  }

  static bool handed_on_twice(const Vec<ValuePlace>& places) {
    for (const ValuePlace& p : places)
      for (const ValuePlace* q = places.begin(); q != &p; ++q)
        if (p.object >= 0 && p.object == q->object) return true;
    return false;
  }

  bool loop(const GraphBody& g, const Equation& e, const Vec<ValuePlace>& operands,
            Vec<ValuePlace>& results, bool outermost) {
    const std::size_t carries = carries_of(e);
    const std::size_t sequences = sequences_of(e);
    const GraphBody& step = *loop_body(e);
    for (std::size_t i = 0; i < carries; ++i)
      if (operands[i].object < 0 && g.aval(e.inputs[i]).elements() > limits_.of_a_lane)
        return false;
    Vec<ValuePlace> inputs = operands, carried;
    // What is carried is updated where it lies, if nothing else reads it there; else in a copy.
    for (std::size_t i = 0; i < carries; ++i) {
      const ValuePlace p = operands[i];
      int users = 0;
      for (const ValuePlace& q : operands) users += q.object == p.object;
      if (p.object >= 0 && !(object(p).writable && p.whole && users == 1)) {
        spend_on_array(g.aval(e.inputs[i]), 1);
        if (!own_array(g.aval(e.inputs[i]), inputs[i])) return false;
      }
      carried.push_back(inputs[i]);
    }
    const double iterations_outside = iterations_;
    iterations_ *=
        e.op == Op::scan ? static_cast<double>(e.as<ScanParams>().length) : usual_iterations;
    for (std::size_t i = carries; i < carries + sequences; ++i) {
      const Aval& element = step.aval(step.inputs[i]);
      const Aval& all = g.aval(e.inputs[i]);
      if (operands[i].object < 0 && frame_ > 0 && form_.lays_out(all)) {
        spend(all.elements());
        if (!own_array(all, inputs[i])) return false;
      } else if (operands[i].object < 0) {
        cost_ += 2 * all.elements();
      }
      scalar_work_ +=
          iterations_ * static_cast<double>(std::min(element.elements(), form_.most_in_registers));
      if (in_registers(element)) inputs[i] = {};
      else inputs[i].whole = false;
    }
    // Only what is carried may be overwritten inside.
    Vec<bool> was(objects_.size());
    for (std::size_t k = 0; k < objects_.size(); ++k) was[k] = objects_[k].writable;
    for (Object& o : objects_) o.writable = false;
    if (e.op == Op::while_) {
      Vec<ValuePlace> ignored;
      if (!body(*e.as<WhileParams>().condition, inputs, ignored)) return false;
    }
    for (const ValuePlace& p : carried)
      if (p.object >= 0) object(p).writable = true;
    Vec<ValuePlace> out;
    if (!body(step, inputs, out)) return false;
    for (std::size_t k = 0; k < was.size(); ++k) objects_[k].writable = was[k];
    results.resize(out.size());
    for (std::size_t i = carries; i < out.size(); ++i) {
      const Aval& all = g.aval(e.outputs[i]);
      if ((out[i].object >= 0 || !outermost) && frame_ <= 0) return false;
      if (out[i].object >= 0) spend_on_array(step.aval(step.outputs[i]), 1);
      if (outermost) continue;  // what it gives has memory
      if (!own_array(all, results[i])) return false;
      if (in_registers(all)) results[i] = {};  // read back at the end
    }
    Vec<int> to, from;
    for (std::size_t i = 0; i < carries; ++i) {
      if (out[i].object == carried[i].object && out[i].whole) continue;
      if (frame_ <= 0) return false;
      to.push_back(carried[i].object);
      from.push_back(out[i].object);
      spend_on_array(g.aval(e.inputs[i]), 1);
      overwrite(carried[i]);
    }
    if (!copy_order(to, from)) return false;
    iterations_ = iterations_outside;
    for (std::size_t i = 0; i < carries; ++i) {
      results[i] = carried[i];
      if (carried[i].object >= 0) results[i].version = object(carried[i]).version;
    }
    return true;
  }

  Vec<Object> objects_;
  std::int64_t cost_ = 0, dense_cost_ = 0, choices_ = 0;
  const LaneForm& form_;
  const RegisterLimits& limits_;
  const std::int64_t frame_;      ///< bytes for arrays of its own
  std::int64_t unused_;           ///< of these
  std::int64_t unused_by_unset_;  ///< of those for unset ones
  double iterations_ = 1, scalar_work_ = 0, array_work_ = 0;
  int depth_ = 0;
  Vec<int> entered_;  ///< of the form's functions
};

/// Are there values of more elements of which some are read or overwritten whose place is not known
/// before? In registers that would be a choice among all of them. `in_frame`: the inputs that lie
/// there.
bool picks_elements(const GraphBody& g, std::int64_t more_than, const Vec<bool>& in_frame = {}) {
  Vec<bool> known(g.avals.size());
  const Vec<bool> unset = unset_arrays(g, in_frame);
  return any_of(g.equations, [&](const Equation& e) {
    if (family_of(e.op) == Family::leaf) known[e.outputs[0]] = true;
    const bool by_indices = e.op == Op::gather || is_scatter(e.op);
    const bool picks = e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice ||
                       (by_indices && !known[e.inputs[1]]);
    if (picks && !unset[e.inputs[0]] && g.aval(e.inputs[0]).elements() > more_than) return true;
    Vec<bool> given;
    if (e.op == Op::while_)
      for (Var v : e.inputs) given.push_back(unset[v]);
    return any_of(bodies_of(e.params),
                  [&](const GraphRef& body) { return picks_elements(*body, more_than, given); });
  });
}

/// `most` elements, or fewer: what sums of rows inside go through stays in memory, where each of
/// their iterations reads a row.
std::int64_t below_summed_rows(const GraphBody& g, std::int64_t most) {
  for (const Equation& e : g.equations) {
    for (std::size_t k = 0; e.op == Op::scan && e.as<ScanParams>().sums && k < e.inputs.size(); ++k)
      if (const std::int64_t n = g.aval(e.inputs[k]).elements();
          is_sequence(e, k) && n > LaneForm().most_in_registers)
        most = std::min(most, n - 1);
    for (const GraphRef& body : bodies_of(e.params)) most = below_summed_rows(*body, most);
  }
  return most;
}

/// About the steps of a program of these equations: matrix products and decompositions are steps of
/// their own, others are fused.
double steps_of(const GraphBody& g) {
  constexpr double equations_of_a_step = 16;
  double steps = 0;
  for (const Equation& e : g.equations) {
    const bool alone = e.op == Op::dot_general || family_of(e.op) == Family::linalg;
    steps += alone ? 1 : 1 / equations_of_a_step;
    for (const GraphRef& body : bodies_of(e.params)) steps += steps_of(*body);
  }
  return steps;
}

/// The equation without its lanes: a lane knows nothing of the others.
ParamsRef of_one_lane(const Equation& e) {
  const auto without_lanes = [](auto p) {
    p.lanes = {};
    return make_params(std::move(p));
  };
  switch (e.op) {
    case Op::cond: return without_lanes(e.as<CondParams>());
    case Op::while_: return without_lanes(e.as<WhileParams>());
    case Op::fused_region: return without_lanes(e.as<RegionParams>());
    default: {
      BatchedCallParams p = e.as<BatchedCallParams>();
      p.body = std::make_shared<const GraphBody>(simplify(*p.body, SimplifyFor::running));
      return without_lanes(std::move(p));
    }
  }
}

/// Has a call of all lanes a form to compile?
bool lanes_fit(const Equation& lane_call, std::int64_t frame, const RegisterLimits& limits) {
  const auto& p = lane_call.as<BatchedCallParams>();
  if (LaneWork().equations_in(lane_call) > static_cast<double>(limits.instructions_of_many))
    return false;
  GraphBody one;
  Equation e = lane_call;
  e.inputs.clear();
  e.outputs.clear();
  const auto all = [&](Var of_lane, bool mapped) {
    Aval a = p.body->aval(of_lane);
    if (mapped) a.shape.insert(a.shape.begin(), p.lanes.count);
    return one.fresh(a);
  };
  for (std::size_t i = 0; i < p.body->inputs.size(); ++i)
    e.inputs.push_back(all(p.body->inputs[i], p.lanes.mapped[i]));
  for (Var v : p.body->outputs) e.outputs.push_back(all(v, true));
  one.equations.push_back(std::move(e));
  return register_form(one, frame, limits).has_value();
}

/// A scan that sums over many rows, with these as lanes.
std::optional<LaneForm> rows_of_sums(const GraphBody& alone, const RegisterLimits& limits) {
  const auto& p = alone.equations[0].as<ScanParams>();
  if (!p.sums || p.length < least_summed_rows) return std::nullopt;
  LaneForm form{alone};
  form.sums = true;
  form.count = p.length;
  Equation& e = form.lane.equations[0];
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const bool is_row = is_sequence(e, i);
    form.axes.push_back(is_row ? 0 : -1);
    if (is_row) form.lane.avals[e.inputs[i]].shape = p.body->aval(p.body->inputs[i]).shape;
  }
  for (std::size_t k = 0; k < e.outputs.size(); ++k) form.axes.push_back(-1);
  form.most_in_registers = limits.moved;
  const GraphRef body = p.body;
  e.op = Op::fused_region;
  e.params = make_params(RegionParams{body, {}});
  if (!fits_registers(form, 0, limits)) return std::nullopt;
  return form;
}

/// Of the loops and branches of one lane that call recursive functions, each as a call of all
/// lanes; or all that are inside of it.
bool recursions_fit(const GraphBody& g, std::int64_t lanes, const CalledRef& name,
                    std::int64_t frame) {
  return all_of(g.equations, [&](const Equation& e) {
    const GraphBody one = alone(g, e);
    if (!calls_recursion(one)) return true;
    if (e.op == Op::cond || e.op == Op::while_) {
      BatchedCallParams p;
      p.lanes.count = lanes;
      p.lanes.mapped.resize(one.inputs.size(), true);
      p.summed.resize(one.outputs.size(), false);
      p.function = name;
      p.body = std::make_shared<const GraphBody>(one);
      Equation call;
      call.op = Op::batched_call;
      call.params = make_params(std::move(p));
      if (lanes_fit(call, frame, {})) return true;
    }
    const Vec<GraphRef> bodies = bodies_of(e.params);
    return !bodies.empty() && all_of(bodies, [&](const GraphRef& body) {
      return recursions_fit(*body, lanes, name, frame);
    });
  });
}

}  // namespace register_kernels

Vec<bool> unset_arrays(const GraphBody& g, const Vec<bool>& given) {
  Vec<bool> unset(g.avals.size());
  for (std::size_t i = 0; i < given.size(); ++i) unset[g.inputs[i]] = given[i];
  for (const Equation& e : g.equations) {
    if (is_unset(e)) unset[e.outputs[0]] = true;
    if (e.op == Op::dynamic_update_slice) unset[e.outputs[0]] = unset[e.inputs[0]];
    if (e.op != Op::while_) continue;
    for (std::size_t k = 0; k < e.outputs.size(); ++k) unset[e.outputs[k]] = unset[e.inputs[k]];
  }
  return unset;
}

Vec<std::optional<std::int64_t>> known_integers(const GraphBody& g, const Vec<int>& maker,
                                                const Equation& e) {
  Vec<std::optional<std::int64_t>> known(e.inputs.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const int made = maker[e.inputs[i]];
    const DType d = g.aval(e.inputs[i]).dtype;
    if (made < 0 || g.equations[made].op != Op::full || !is_int(d)) continue;
    const Scalar value = g.equations[made].as<FullParams>().value.converted(d);
    known[i] = is_unsigned(d) ? static_cast<std::int64_t>(value.natural) : value.integer;
  }
  return known;
}

std::optional<LaneForm> register_form(const GraphBody& alone, std::int64_t frame,
                                      const RegisterLimits& of_target) {
  RegisterLimits limits = of_target;
  const Equation& e = alone.equations[0];
  if (e.op == Op::scan) {
    if (std::optional<LaneForm> form = register_kernels::rows_of_sums(alone, limits)) return form;
    if (std::optional<LaneForm> form = lanes_of_scan(alone, limits)) return form;
  }
  LaneForm form{alone};
  if (e.op == Op::batched_call &&
      any_of(e.as<BatchedCallParams>().summed, [](bool s) { return s; }))
    return std::nullopt;
  const Lanes lanes = e.op == Op::batched_call ? e.as<BatchedCallParams>().lanes
                      : lanes_of(e)            ? *lanes_of(e)
                                               : Lanes{};
  if (lanes) {
    form.count = lanes.count;
    const auto first_axis = [&](Var v) {
      Shape& shape = form.lane.avals[v].shape;
      shape.erase(shape.begin());
      return 0;
    };
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
      form.axes.push_back(lanes.mapped[i] ? first_axis(e.inputs[i]) : -1);
    for (Var v : e.outputs) form.axes.push_back(first_axis(v));
    form.lane.equations[0].params = register_kernels::of_one_lane(e);
  }
  if (calls_recursion(form.lane)) {
    if (!limits.recursion || e.op == Op::fused_region) return std::nullopt;
    std::optional<Vec<RecursiveBody>> functions = recursive_bodies(form.lane);
    if (!functions) return std::nullopt;
    form.functions = std::move(*functions);
    form.constants = constants_in_memory(form.lane, form.functions);
  }
  if ((form.side_by_side() || e.op == Op::fused_region) &&
      !register_kernels::picks_elements(form.lane, form.most_in_registers))
    form.most_in_registers =
        register_kernels::loops(form.lane) ? limits.moved : limits.moved_without_loops;
  // Scalars that do not fit in registers lie in the frame, each in the space of one.
  const auto fits = [&](std::int64_t of_a_lane) {
    form.most_in_registers = register_kernels::below_summed_rows(form.lane, form.most_in_registers);
    limits.of_a_lane = of_a_lane;
    return fits_registers(form, frame, limits);
  };
  if (fits(form ? limits.computed(form.count) : form.most_in_registers)) return form;
  if (form && keeps_zeros(form.lane) && fits(limits.sparse(form.count))) return form;
  // Loops of few lanes, or without any: their instructions against what the steps of a program take
  // besides theirs.
  if (!register_kernels::loops(form.lane) || !form.functions.empty() ||
      form.count >= limits.several_lanes)
    return std::nullopt;
  if (!form) {
    if (e.op == Op::fused_region ||
        register_kernels::picks_elements(form.lane, form.most_in_registers))
      return std::nullopt;
    form.most_in_registers = limits.moved;
  }
  limits.instructions = limits.instructions_of_many = static_cast<std::int64_t>(
      register_kernels::steps_of(form.lane) * static_cast<double>(limits.operations_of_a_step));
  if (!fits(std::max(limits.moved, limits.of_several))) return std::nullopt;
  return form;
}

bool lanes_in_registers(const Equation& lane_call, std::int64_t frame,
                        const RegisterLimits& limits) {
  const auto& p = lane_call.as<BatchedCallParams>();
  if (p.schedule == LaneSchedule::hybrid || lanes_in_groups() || !calls_recursion(*p.body))
    return false;
  return register_kernels::lanes_fit(lane_call, frame, limits);
}

bool recursions_in_registers(const Equation& lane_call, std::int64_t frame) {
  const auto& p = lane_call.as<BatchedCallParams>();
  return !lanes_in_groups() &&
         register_kernels::recursions_fit(*p.body, p.lanes.count, p.function, frame);
}

std::int64_t operations_of_choices(const GraphBody& g, const Equation& e) {
  const Aval& out = g.aval(e.outputs[0]);
  if (!is_scatter(e.op)) return 2 * out.elements() * g.aval(e.inputs[0]).elements();
  // each update meets each element
  const int combine = e.op == Op::scatter ? 0 : op_weight(combination_of(e.op), out.dtype);
  return (4 + combine) * out.elements() * g.aval(e.inputs[2]).elements();
}

bool fits_registers(const LaneForm& form, std::int64_t frame, const RegisterLimits& limits) {
  return register_kernels::FitCheck(form, frame, limits).run();
}
std::int64_t register_cost(const LaneForm& form) {
  RegisterLimits any;
  any.of_a_lane = std::numeric_limits<std::int64_t>::max();
  register_kernels::FitCheck check(form, most_in_frame, any);
  check.run();
  return check.cost();
}

double register_work(const LaneForm& form) {
  return static_cast<double>(register_cost(form)) * register_kernels::most_iterations(form.lane) *
         (form ? static_cast<double>(form.count / 8 + 1) : 1.0);
}

bool is_run(const Shape& shape, const Shape& sizes) {
  std::size_t d = 0;
  while (d < shape.size() && sizes[d] == 1) ++d;
  for (++d; d < shape.size(); ++d)
    if (sizes[d] != shape[d]) return false;
  return true;
}

std::optional<Vec<std::size_t>> copy_order(const Vec<int>& to, const Vec<int>& from) {
  Vec<std::size_t> order;
  Vec<bool> done(to.size());
  while (order.size() < to.size()) {
    const std::size_t before = order.size();
    for (std::size_t k = 0; k < to.size(); ++k) {
      bool wanted = done[k];
      for (std::size_t other = 0; other < to.size(); ++other)
        wanted = wanted || (other != k && !done[other] && from[other] == to[k]);
      if (wanted) continue;
      done[k] = true;
      order.push_back(k);
    }
    if (order.size() == before) return std::nullopt;
  }
  return order;
}

}  // namespace vt::detail
