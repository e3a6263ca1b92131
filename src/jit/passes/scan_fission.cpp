// Moves work out of scans. A product with a sequence moves in front, as one product for all
// iterations; a sum over iterations of products moves behind, also out of other sums in the same
// carry. For a recurrent cell the first is the product of inputs and weights, the second the
// gradient of the weights: few large matrix products instead of many small ones.
#include "scan_fission.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../../trace/record/batching.hpp"
#include "../regions/register_kernel.hpp"

namespace vt::detail {

namespace scan_motion {

// A product of fewer multiply-adds is not worth a sequence of its own.
constexpr std::int64_t worth_moving = 4096;
constexpr std::size_t largest_sequence = std::size_t{1} << 30;  // bytes

std::int64_t multiply_adds(const GraphBody& g, const Equation& e) {
  std::int64_t n = g.aval(e.outputs[0]).elements();
  for (int axis : e.as<DotParams>().lhs_contract) n *= g.aval(e.inputs[0]).shape[axis];
  return n;
}

Aval stacked(const Aval& a, std::int64_t length) {
  Aval all(a.dtype, Shape{length});
  all.shape.append(a.shape.begin(), a.shape.end());
  return all;
}

/// One scan being taken apart, and the Graph around it being written.
class Mover {
 public:
  Mover(GraphBody& outer, const Equation& e)
      : outer_(outer), e_(e), p_(e.as<ScanParams>()), body_(*p_.body) {
    const std::size_t carries = p_.carries, looped = carries + p_.sequences;
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
      (i < carries  ? carried_
       : i < looped ? sequences_
                    : rest_)
          .push_back({body_.inputs[i], e.inputs[i]});
  }

  /// Writes the scan and what goes in front and behind. Is there any? Else it is the scan that was
  /// there.
  bool run() {
    const bool in_front = move_products_in_front();
    find_makers();
    const Vec<Behind> behind = find_sums();
    if (!in_front && behind.empty()) outer_.equations.push_back(e_);
    else write(behind);
    return in_front || !behind.empty();
  }

 private:
  struct Pair {
    Var inner, outer;
  };
  /// A product of the body, or a sum, that is added to a carry: over all iterations at once it can
  /// be added to the last one.
  struct Behind {
    std::size_t carry;
    Equation product;
    ParamsRef transposed;  ///< a transposition of its result, or null
    CallSite where;
  };

  void find_makers() {
    made_by_ = makers_of(body_);
    uses_ = reads_of(body_);
    is_rest_.assign(body_.avals.size(), 0);
    for (const Pair& r : rest_) is_rest_[r.inner] = 1;
    becomes_sequence_.assign(body_.avals.size(), 0);
    for (const Equation& e : body_.equations)
      if (e.op == Op::dot_general && worth_it(e) && uses(e.outputs[0]) == 1)
        for (Var v : e.inputs) becomes_sequence_[v] = 1;
  }
  int maker(Var v) const { return made_by_[v]; }
  int uses(Var v) const { return uses_[v]; }

  // ---- in front ---------------------------------------------------------------------------------
  bool move_products_in_front() {
    Vec<bool> from_carry(body_.avals.size()), from_sequence(body_.avals.size());
    for (const Pair& c : carried_) from_carry[c.inner] = true;
    for (const Pair& s : sequences_) from_sequence[s.inner] = true;
    Vec<Var> moved;
    for (const Equation& e : body_.equations) {
      bool carry = is_control(e.op), sequence = false;
      for (Var v : e.inputs) {
        carry = carry || from_carry[v];
        sequence = sequence || from_sequence[v];
      }
      for (Var v : e.outputs) {
        from_carry[v] = carry;
        from_sequence[v] = sequence;
      }
      if (e.op != Op::dot_general || carry || !sequence || multiply_adds(body_, e) < worth_moving)
        continue;
      if (stacked(body_.aval(e.outputs[0]), p_.length).bytes() <= largest_sequence)
        moved.push_back(e.outputs[0]);
    }
    if (moved.empty()) return false;
    // What they are made of, as a function of the sequences' elements and the rest.
    GraphBody front = body_;
    front.inputs.clear();
    front.outputs = moved;
    drop_unread(front);
    Vec<bool> mapped;
    Vec<Var> operands;
    for (const Pair& s : sequences_) {
      front.inputs.push_back(s.inner);
      operands.push_back(s.outer);
      mapped.push_back(true);
    }
    for (const Pair& r : rest_) {
      front.inputs.push_back(r.inner);
      operands.push_back(r.outer);
      mapped.push_back(false);
    }
    const Vec<Var> made = copied(
        simplify(batch_body(front, mapped, p_.length), SimplifyFor::running), operands, outer_);
    // In the loop they are elements of sequences.
    erase_if(body_.equations, [&](const Equation& e) {
      return std::find(moved.begin(), moved.end(), e.outputs[0]) != moved.end();
    });
    for (std::size_t k = 0; k < moved.size(); ++k) sequences_.push_back({moved[k], made[k]});
    return true;
  }

  // ---- behind -----------------------------------------------------------------------------------
  /// Those of one carry follow each other; `left_` becomes what an iteration makes of the carries
  /// without them.
  Vec<Behind> find_sums() {
    Vec<Behind> found;
    left_ = body_.outputs;
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      const Var in = carried_[k].inner, out = body_.outputs[k];
      const int sum = maker(out);
      const DType d = body_.aval(out).dtype;
      // 16-bit sums are rounded iteration by iteration; sums behind would not be.
      if (sum < 0 || uses(in) != 1 || uses(out) != 1 || !is_float(d) || d == DType::f16 ||
          d == DType::bf16)
        continue;
      Vec<Var> added, others;
      find_added(out, added);
      if (std::find(added.begin(), added.end(), in) == added.end()) continue;
      const CallSite where = body_.equations[sum].where;
      const std::size_t before = found.size();
      for (Var v : added)
        if (v != in && !find_term(v, k, where, found)) others.push_back(v);
      if (found.size() == before) continue;
      left_[k] = in;
      for (Var v : others) left_[k] = add_equation(body_, Op::add, {}, {left_[k], v}, where);
    }
    return found;
  }
  /// What is added up to `v`, which nobody else uses.
  void find_added(Var out, Vec<Var>& added) const {
    const Shape& shape = body_.aval(out).shape;
    const auto same_shape = [&](Var v) { return body_.aval(v).shape == shape; };
    Vec<Var> pending{out};  // the next one last: chains may be long
    while (!pending.empty()) {
      const Var v = pending.back();
      pending.pop_back();
      const Equation* e = maker(v) < 0 ? nullptr : &body_.equations[maker(v)];
      if (e && uses(v) == 1 && e->op == Op::add && same_shape(e->inputs[0]) &&
          same_shape(e->inputs[1])) {
        pending.push_back(e->inputs[1]);
        pending.push_back(e->inputs[0]);
      } else {
        added.push_back(v);
      }
    }
  }
  /// Notes `v`, which is added to carry k, where it is better added up behind the loop.
  bool find_term(Var v, std::size_t k, CallSite where, Vec<Behind>& found) const {
    ParamsRef transposed;
    int made = maker(v);
    if (made >= 0 && uses(v) == 1 && body_.equations[made].op == Op::transpose) {
      transposed = body_.equations[made].params;
      v = body_.equations[made].inputs[0];
      made = maker(v);
    }
    if (made < 0 || uses(v) != 1) return false;
    const Equation& product = body_.equations[made];
    // A sum of what another product behind needs as a sequence anyway costs nothing more in the
    // loop.
    const bool is_cheap_sum = product.op == Op::reduce_sum && becomes_sequence_[product.inputs[0]];
    if (product.op == Op::dot_general ? !worth_it(product) : !is_cheap_sum) return false;
    found.push_back({k, product, transposed, where});
    return true;
  }
  bool worth_it(const Equation& e) const {
    if (is_rest_[e.inputs[0]] || is_rest_[e.inputs[1]]) return false;
    const std::int64_t operands =
        body_.aval(e.inputs[0]).elements() + body_.aval(e.inputs[1]).elements();
    const std::size_t bytes = body_.aval(e.inputs[0]).bytes() + body_.aval(e.inputs[1]).bytes();
    return operands <= 2 * body_.aval(e.outputs[0]).elements() &&
           bytes * static_cast<std::size_t>(p_.length) <= largest_sequence &&
           multiply_adds(body_, e) >= worth_moving;
  }

  void write(const Vec<Behind>& behind) {
    const std::size_t carries = carried_.size();
    // it needs no loop any more
    const auto moves = [&](std::size_t k) {
      return left_[k] == carried_[k].inner && left_[k] != body_.outputs[k];
    };
    ScanParams q = p_;
    auto body = std::make_shared<GraphBody>(body_);
    Equation scan = e_;
    body->inputs.clear();
    body->outputs.clear();
    scan.inputs.clear();
    scan.outputs.clear();
    const auto add_inputs = [&](const Vec<Pair>& pairs, bool all) {
      for (std::size_t k = 0; k < pairs.size(); ++k) {
        if (!all && moves(k)) continue;
        body->inputs.push_back(pairs[k].inner);
        scan.inputs.push_back(pairs[k].outer);
      }
    };
    add_inputs(carried_, false);
    q.carries = static_cast<int>(body->inputs.size());
    add_inputs(sequences_, true);
    q.sequences = static_cast<int>(sequences_.size());
    add_inputs(rest_, true);
    Vec<Var> last;  // of the carries, without what moves behind
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      const bool whole = left_[i] == body_.outputs[i];
      if (i < carries)
        last.push_back(whole      ? e_.outputs[i]
                       : moves(i) ? carried_[i].outer
                                  : outer_.fresh(body_.aval(left_[i])));
      if (i < carries && moves(i)) continue;
      body->outputs.push_back(left_[i]);
      scan.outputs.push_back(i < carries ? last[i] : e_.outputs[i]);
    }
    // The operands of what moves behind, as sequences.
    HashMap<Var, Var> sequence_of;
    for (const Pair& s : sequences_) sequence_of.emplace(s.inner, s.outer);
    for (std::size_t i = carries; i < body_.outputs.size(); ++i)
      sequence_of.emplace(body_.outputs[i], e_.outputs[i]);
    for (const Behind& b : behind)
      for (Var v : b.product.inputs) {
        if (sequence_of.contains(v)) continue;
        const Var all = outer_.fresh(stacked(body_.aval(v), p_.length));
        sequence_of.emplace(v, all);
        body->outputs.push_back(v);
        scan.outputs.push_back(all);
      }
    q.body = std::make_shared<const GraphBody>(simplify(*body, SimplifyFor::running));
    scan.params = make_params(std::move(q));
    outer_.equations.push_back(std::move(scan));
    for (std::size_t i = 0; i < behind.size(); ++i) {
      const std::size_t k = behind[i].carry;
      last[k] =
          add_equation(outer_, Op::add, {}, {last[k], over_all_iterations(behind[i], sequence_of)},
                       behind[i].where);
      const bool ends = i + 1 == behind.size() || behind[i + 1].carry != k;
      if (ends) outer_.equations.back().outputs[0] = e_.outputs[k];
    }
  }

  Var over_all_iterations(const Behind& b, const HashMap<Var, Var>& sequence_of) {
    Equation all = b.product;
    all.where = b.where;
    for (Var& v : all.inputs) v = sequence_of.at(v);
    if (all.op == Op::dot_general) {
      DotParams d = b.product.as<DotParams>();
      for (Axes* axes : {&d.lhs_contract, &d.rhs_contract, &d.lhs_batch, &d.rhs_batch})
        for (int& a : *axes) ++a;
      d.lhs_contract.insert(d.lhs_contract.begin(), 0);
      d.rhs_contract.insert(d.rhs_contract.begin(), 0);
      all.params = make_params(std::move(d));
    } else {
      Axes axes{0};
      for (int a : b.product.as<AxesParams>().axes) axes.push_back(a + 1);
      all.params = make_params(AxesParams{axes});
    }
    const Var sum = outer_.fresh(body_.aval(b.product.outputs[0]));
    all.outputs[0] = sum;
    outer_.equations.push_back(std::move(all));
    if (!b.transposed) return sum;
    return add_equation(outer_, Op::transpose, b.transposed, {sum}, b.where);
  }

  GraphBody& outer_;
  const Equation& e_;
  const ScanParams& p_;
  GraphBody body_;
  Vec<Pair> carried_, sequences_, rest_;
  // Per Var of the body as it was found:
  Vec<int> made_by_, uses_;
  Vec<char> is_rest_;
  Vec<char> becomes_sequence_;  ///< a product that may move behind needs it in all iterations
  /// per result of the body: itself, or a carry after an iteration without what moves behind
  Vec<Var> left_;
};

}  // namespace scan_motion

GraphBody move_out_of_scans(const GraphBody& graph, std::int64_t frame) {
  const auto movable = [&](const Equation& e) {
    return e.op == Op::scan && e.as<ScanParams>().length > 1 && !keeps_order(e) &&
           !register_form(alone(graph, e), frame);
  };
  if (none_of(graph.equations, movable)) return graph;
  GraphBody moved = graph;
  moved.equations.clear();
  bool any = false;
  for (const Equation& e : graph.equations) {
    if (movable(e)) any = scan_motion::Mover(moved, e).run() || any;
    else moved.equations.push_back(e);
  }
  if (!any) return graph;
  return simplify(moved, SimplifyFor::running);
}

}  // namespace vt::detail
