// What fits in registers, and where the elements of moved values come from.
#include "register_loop.hpp"

#include <algorithm>
#include <optional>

#include <vt/small_vec.hpp>

#include "../trace/effects.hpp"
#include "../trace/hash_map.hpp"
#include "schedule.hpp"

namespace vt::detail {

namespace register_loops {

// Register-wide instructions in one function, about; more would take long to compile and spill what they keep.
constexpr std::int64_t largest_function = 6000;
constexpr int deepest = 12;

/// Which memory a large value is, and whether the loop being looked at may overwrite it.
struct Place {
  int object = -1;  // −1: in registers
};

class FitCheck {
 public:
  bool run(const GraphBody& g) {
    const Equation& e = g.equations[0];
    Vec<Place> operands, results;
    for (Var v : e.inputs) operands.push_back(place_for(g.aval(v), operands.size() < carries_of(e)));
    return control(g, e, operands, results, true) && cost_ <= largest_function;
  }
  std::int64_t cost() const { return cost_; }

 private:
  struct Object {
    bool writable = false;
    bool written = false;
  };

  static std::size_t carries_of(const Equation& e) {
    if (e.op == Op::while_) return static_cast<std::size_t>(e.as<WhileParams>().carries);
    return e.op == Op::scan ? static_cast<std::size_t>(e.as<ScanParams>().carries) : 0;
  }
  Place place_for(const Aval& a, bool writable) {
    if (in_registers(a)) return {};
    objects_.push_back({writable, false});
    return {static_cast<int>(objects_.size()) - 1};
  }
  Object& object(Place p) { return objects_[static_cast<std::size_t>(p.object)]; }

  /// `latest`: per object, the Var that holds its present contents.
  struct Scope {
    const GraphBody& graph;
    Vec<Place> places;
    HashMap<int, Var> latest;
  };
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }

  bool body(const GraphBody& g, const Vec<Place>& inputs, Vec<Place>& outputs) {
    Scope s{g, Vec<Place>(g.avals.size()), {}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      s.places[at(g.inputs[i])] = inputs[i];
      if (inputs[i].object >= 0) s.latest[inputs[i].object] = g.inputs[i];
    }
    for (const Equation& e : g.equations)
      if (!equation(s, e)) return false;
    for (Var v : g.outputs) {
      const Place p = s.places[at(v)];
      if (p.object >= 0 && s.latest[p.object] != v) return false;
      outputs.push_back(p);
    }
    return true;
  }

  bool equation(Scope& s, const Equation& e) {
    const GraphBody& g = s.graph;
    if (has_effect(e) || family_of(e.op) == Family::effect) return false;
    Vec<Place> operands;
    bool large = false;
    for (Var v : e.inputs) {
      operands.push_back(s.places[at(v)]);
      const Place p = operands.back();
      if (p.object < 0) continue;
      large = true;
      if (s.latest[p.object] != v) return false;  // overwritten meanwhile
    }
    if (is_control(e.op)) {
      Vec<Place> results;
      if (!control(g, e, operands, results, false)) return false;
      for (std::size_t i = 0; i < results.size(); ++i) {
        s.places[at(e.outputs[i])] = results[i];
        if (results[i].object >= 0) s.latest[results[i].object] = e.outputs[i];
      }
      return true;
    }
    const Aval& out = g.aval(e.outputs[0]);
    if (large) {
      if (operands[0].object < 0) return false;
      for (std::size_t i = 1; i < operands.size(); ++i)
        if (operands[i].object >= 0) return false;
      const bool scatters = e.op >= Op::scatter && e.op <= Op::scatter_max;
      if (e.op == Op::dynamic_update_slice || scatters) {
        if (!object(operands[0]).writable || (scatters && !plain_scatter(g, e))) return false;
        object(operands[0]).written = true;
        s.places[at(e.outputs[0])] = operands[0];
        s.latest[operands[0].object] = e.outputs[0];
        cost_ += 6 * g.aval(e.inputs[scatters ? 2 : 1]).elements();
        return true;
      }
      if (e.op != Op::dynamic_slice && e.op != Op::slice && e.op != Op::gather) return false;
      cost_ += 4 * out.elements();
      return in_registers(out);
    }
    return in_registers(out) && small(g, e);
  }

  // 16-bit sums and products are rounded once, at the end; not so here.
  static bool plain_scatter(const GraphBody& g, const Equation& e) {
    const DType d = g.aval(e.outputs[0]).dtype;
    return !((d == DType::f16 || d == DType::bf16) && (e.op == Op::scatter_add || e.op == Op::scatter_mul));
  }

  bool small(const GraphBody& g, const Equation& e) {
    const std::int64_t n = g.aval(e.outputs[0]).elements();
    std::int64_t operands = 0;
    for (Var v : e.inputs) operands += g.aval(v).elements();
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select: cost_ += n * std::max(1, op_weight(e.op, g.aval(e.outputs[0]).dtype)); return true;
      case Family::leaf:
        // The constant's text, which is the kernel's identity, shows eight elements.
        return e.op == Op::full || e.op == Op::iota || (e.op == Op::constant && n <= 8);
      case Family::shape: return true;
      case Family::reduce: cost_ += operands; return e.op >= Op::reduce_sum && e.op <= Op::reduce_all;
      case Family::contract: {
        std::int64_t terms = n;
        for (int axis : e.as<DotParams>().lhs_contract) terms *= g.aval(e.inputs[0]).shape[static_cast<std::size_t>(axis)];
        cost_ += 2 * terms;
        return true;
      }
      case Family::index:
        if (e.op == Op::slice) return true;
        if (e.op >= Op::scatter && e.op <= Op::scatter_max) {
          cost_ += 4 * n * g.aval(e.inputs[2]).elements();
          return plain_scatter(g, e);
        }
        cost_ += 2 * n * g.aval(e.inputs[0]).elements();  // a choice among all elements
        return e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice || e.op == Op::gather;
      default: return false;
    }
  }

  bool control(const GraphBody& g, const Equation& e, const Vec<Place>& operands, Vec<Place>& results, bool outermost) {
    if (++depth_ > deepest) return false;
    if (!outermost && bodies_have_lanes(e)) return false;
    const bool fits = e.op == Op::cond ? branches(e, operands, results) : loop(g, e, operands, results, outermost);
    --depth_;
    return fits;
  }
  static bool bodies_have_lanes(const Equation& e) {
    return (e.op == Op::cond && e.as<CondParams>().lanes) || (e.op == Op::while_ && e.as<WhileParams>().lanes);
  }

  // What a branch overwrites is what every branch hands on, in the same place.
  bool branches(const Equation& e, const Vec<Place>& operands, Vec<Place>& results) {
    const Vec<Place> inputs(operands.begin() + 1, operands.end());
    Vec<int> written;
    std::optional<Vec<Place>> first;
    for (const GraphRef& branch : e.as<CondParams>().branches) {
      const Vec<Object> before = objects_;
      for (Object& o : objects_) o.written = false;
      Vec<Place> out;
      if (!body(*branch, inputs, out)) return false;
      for (std::size_t k = 0; k < before.size(); ++k) {
        if (objects_[k].written) written.push_back(static_cast<int>(k));
        objects_[k].written = objects_[k].written || before[k].written;
      }
      if (first)
        for (std::size_t i = 0; i < out.size(); ++i)
          if ((*first)[i].object != out[i].object) return false;
      if (!first) first = out;
    }
    results = *first;
    for (int k : written)
      if (none_of(results, [&](const Place& p) { return p.object == k; })) return false;
    return !handed_on_twice(results);
  }

  static bool handed_on_twice(const Vec<Place>& places) {
    for (const Place& p : places)
      for (const Place* q = places.begin(); q != &p; ++q)
        if (p.object >= 0 && p.object == q->object) return true;
    return false;
  }

  bool loop(const GraphBody& g, const Equation& e, const Vec<Place>& operands, Vec<Place>& results, bool outermost) {
    const std::size_t carries = carries_of(e);
    const std::size_t sequences = e.op == Op::scan ? static_cast<std::size_t>(e.as<ScanParams>().sequences) : 0;
    const GraphBody& step = e.op == Op::scan ? *e.as<ScanParams>().body : *e.as<WhileParams>().body;
    const Vec<Place> carried(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carries));
    if (handed_on_twice(carried)) return false;
    Vec<Place> inputs = operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i < carries) {
        if (operands[i].object >= 0 && !object(operands[i]).writable) return false;
        continue;
      }
      for (const Place& p : carried)
        if (p.object >= 0 && p.object == operands[i].object) return false;  // read as it was before the loop
      if (i >= carries + sequences) continue;
      const Aval& element = step.aval(step.inputs[i]);
      if (operands[i].object < 0) cost_ += 2 * g.aval(e.inputs[i]).elements();
      inputs[i] = place_for(element, false);
      if (inputs[i].object >= 0 && operands[i].object < 0) return false;
    }
    // Only what is carried may be overwritten inside.
    Vec<bool> was(objects_.size());
    for (std::size_t k = 0; k < objects_.size(); ++k) was[k] = objects_[k].writable;
    for (Object& o : objects_) o.writable = false;
    for (const Place& p : carried)
      if (p.object >= 0) object(p).writable = true;
    if (e.op == Op::while_) {
      Vec<Place> ignored;
      Vec<Object> before = objects_;
      for (Object& o : objects_) o.writable = false;
      if (!body(*e.as<WhileParams>().condition, inputs, ignored)) return false;
      for (std::size_t k = 0; k < before.size(); ++k) objects_[k].writable = before[k].writable;
    }
    Vec<Place> out;
    if (!body(step, inputs, out)) return false;
    for (std::size_t k = 0; k < was.size(); ++k) objects_[k].writable = was[k];
    for (std::size_t i = 0; i < carries; ++i)
      if (out[i].object != operands[i].object) return false;
    for (std::size_t i = carries; i < out.size(); ++i)
      if (out[i].object >= 0 || !outermost) return false;  // only the outermost loop has memory for ys
    results = carried;
    results.resize(out.size());
    return true;
  }

  Vec<Object> objects_;
  std::int64_t cost_ = 0;
  int depth_ = 0;
};

/// Of loops that are inside one another, all their rounds.
double most_rounds(const GraphBody& g) {
  double most = 1;
  for (const Equation& e : g.equations) {
    const double own = e.op == Op::while_ ? 1e15 : e.op == Op::scan ? static_cast<double>(e.as<ScanParams>().length) : 1;
    for (const GraphRef& body : bodies_of(e.params)) most = std::max(most, own * most_rounds(*body));
  }
  return most;
}

/// Row-major position of an index.
std::int64_t position(const Shape& shape, const Vec<std::int64_t>& index) {
  std::int64_t p = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) p = p * shape[i] + index[i];
  return p;
}

}  // namespace register_loops

GraphBody alone(const GraphBody& g, const Equation& e) {
  GraphBody one;
  Equation copy = e;
  for (Var& v : copy.inputs) {
    const Aval& a = g.aval(v);
    one.inputs.push_back(one.fresh(Aval(a.dtype, a.shape)));
    v = one.inputs.back();
  }
  for (Var& v : copy.outputs) {
    const Aval& a = g.aval(v);
    v = one.fresh(Aval(a.dtype, a.shape));
    one.outputs.push_back(v);
  }
  one.equations.push_back(std::move(copy));
  return one;
}

std::optional<LaneForm> register_form(const GraphBody& alone) {
  const Equation& e = alone.equations[0];
  if (e.op == Op::scan)
    if (std::optional<LaneForm> form = lanes_of_scan(alone)) return form;
  LaneForm form{alone};
  const Lanes lanes = e.op == Op::cond ? e.as<CondParams>().lanes : e.op == Op::while_ ? e.as<WhileParams>().lanes : Lanes{};
  if (lanes) {
    form.count = lanes.count;
    const auto first_axis = [&](Var v) {
      Shape& shape = form.lane.avals[static_cast<std::size_t>(v)].shape;
      shape.erase(shape.begin());
      return 0;
    };
    for (std::size_t i = 0; i < e.inputs.size(); ++i) form.axes.push_back(lanes.mapped[i] ? first_axis(e.inputs[i]) : -1);
    for (Var v : e.outputs) form.axes.push_back(first_axis(v));
  }
  if (!fits_registers(form)) return std::nullopt;
  return form;
}

bool fits_registers(const LaneForm& form) { return register_loops::FitCheck().run(form.lane); }
std::int64_t register_cost(const LaneForm& form) {
  register_loops::FitCheck check;
  check.run(form.lane);
  return check.cost();
}

double register_work(const LaneForm& form) {
  return static_cast<double>(register_cost(form)) * register_loops::most_rounds(form.lane) * (form ? static_cast<double>(form.count / 8 + 1) : 1.0);
}

Vec<std::int64_t> index_of_element(const Shape& shape, std::int64_t n) {
  Vec<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = n % shape[d];
    n /= shape[d];
  }
  return index;
}

Vec<std::int64_t> source_elements(const GraphBody& g, const Equation& e) {
  using register_loops::position;
  const Shape &to = g.aval(e.outputs[0]).shape, &from = g.aval(e.inputs[0]).shape;
  const std::int64_t count = to.elements();
  Vec<std::int64_t> sources, source(from.size());
  for (std::int64_t n = 0; n < count; ++n) {
    const Vec<std::int64_t> index = index_of_element(to, n);
    bool inside = true;
    switch (e.op) {
      case Op::transpose:
        for (std::size_t d = 0; d < to.size(); ++d) source[static_cast<std::size_t>(e.as<PermutationParams>().permutation[d])] = index[d];
        break;
      case Op::broadcast_in_dim:
        for (std::size_t d = 0; d < from.size(); ++d) {
          const std::int64_t i = index[static_cast<std::size_t>(e.as<BroadcastParams>().axes[d])];
          source[d] = from[d] == 1 ? 0 : i;
        }
        break;
      case Op::slice: {
        const auto& p = e.as<SliceParams>();
        for (std::size_t d = 0; d < from.size(); ++d) source[d] = p.start[d] + index[d] * p.stride[d];
        break;
      }
      case Op::rev:
        for (std::size_t d = 0; d < from.size(); ++d)
          source[d] = e.as<AxesParams>().axes.contains(static_cast<int>(d)) ? from[d] - 1 - index[d] : index[d];
        break;
      case Op::pad: {
        const auto& p = e.as<PadParams>();
        for (std::size_t d = 0; d < from.size(); ++d) {
          const std::int64_t moved = index[d] - p.low[d], step = p.interior[d] + 1;
          source[d] = moved / step;
          inside = inside && moved >= 0 && moved % step == 0 && source[d] < from[d];
        }
        break;
      }
      default: break;
    }
    if (e.op == Op::reshape) sources.push_back(n);
    else sources.push_back(inside ? position(from, source) : -1);
  }
  return sources;
}

}  // namespace vt::detail
