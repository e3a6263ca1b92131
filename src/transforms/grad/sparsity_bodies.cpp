// The walk over equations that have bodies: calls, branches and loops.
#include <algorithm>
#include <memory>

#include "../../trace/ir/effects.hpp"
#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

namespace body_parts {

/// Each group, and behind it the masks of those of it that have one (not −1).
inline void push_groups(const Vec<Var>& own, const Vec<Var>& masks,
                        std::initializer_list<std::size_t> ends, Vec<Var>& to) {
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    for (std::size_t i = begin; i < end; ++i) to.push_back(own[i]);
    for (std::size_t i = begin; i < end; ++i)
      if (masks[i] >= 0) to.push_back(masks[i]);
    begin = end;
  }
}

/// A pattern of no element.
inline SparsityPattern nothing(const Masks& masks, std::int64_t elements) {
  return shared(Bits(masks.directions() * elements, 0));
}

inline int count(const Vec<Reach>& all, std::size_t begin, std::size_t end) {
  return static_cast<int>(std::count_if(all.begin() + begin, all.begin() + end,
                                        [](const Reach& r) { return r.computed; }));
}

}  // namespace body_parts
using namespace body_parts;

void Walk::give_masks(const Vec<Reach>& results) {
  for (std::size_t k = 0; k < results.size(); ++k)
    result_masks_.push_back(results[k].computed ? whole_mask(to_.outputs[k]) : -1);
}

GraphBody Walk::take_body(GroupEnds inputs, GroupEnds results, const Vec<int>& masks) {
  const Vec<Var> made = to_.outputs;
  to_.inputs.clear();
  to_.outputs.clear();
  push_groups(from_.inputs, input_masks_, inputs, to_.inputs);
  push_groups(made, result_masks_, results, to_.outputs);
  for (int m : masks) {
    const auto* known = inputs_.find(m);
    to_.inputs.push_back(known != inputs_.end() ? known->second
                                                : to_.fresh(Aval(DType::bool_, masks_[m].shape)));
  }
  return std::move(to_);
}

void Walk::add_masks(Equation& e, std::size_t first, GroupEnds ends, const Vec<Reach>& inputs,
                     const Masks& of_body, const Vec<int>& masks, Lanes* lanes) {
  Vec<Var> own, computed, all;
  Vec<int> mapped, mask_mapped, all_mapped;
  for (std::size_t i = first; i < e.inputs.size(); ++i) {
    const bool has_mask = inputs[i - first].computed;
    own.push_back(e.inputs[i]);
    computed.push_back(has_mask ? whole_mask(e.inputs[i]) : -1);
    if (!lanes) continue;
    mapped.push_back(lanes->mapped[i]);  // as its mask
    mask_mapped.push_back(has_mask ? mapped.back() : -1);
  }
  push_groups(own, computed, ends, all);
  for (int m : masks) all.push_back(input(&of_body == &masks_ ? m : masks_.number_of(of_body[m])));
  if (lanes) {
    push_groups(mapped, mask_mapped, ends, all_mapped);
    all_mapped.resize(all.size(), 0);
    lanes->mapped.resize(first);
    for (int m : all_mapped) lanes->mapped.push_back(m != 0);
  }
  e.inputs.resize(first);
  for (Var v : all) e.inputs.push_back(v);
}

void Walk::give_results(Equation& e, const Vec<Reach>& results, GroupEnds ends) {
  Vec<Var> own, masks, all;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Var v = e.outputs[k];
    own.push_back(v);
    masks.push_back(results[k].computed ? to_.fresh(Aval(DType::bool_, aval(v).shape)) : -1);
    set_reach(v, results[k]);
    if (masks.back() >= 0) computed_[v] = masks.back();
  }
  push_groups(own, masks, ends, all);
  e.outputs.resize(0);
  for (Var v : all) e.outputs.push_back(v);
}

// ---- lanes --------------------------------------------------------------------------------------

// A body that runs for lanes knows nothing of them: all that is not reached in one of them, or in
// one direction, is a computed mask for it, and its own patterns are those of one direction.

Masks& Walk::masks_for(const Lanes* lanes) { return lanes ? masks_.of_lanes() : masks_; }

/// What a body knows of an operand.
Reach Walk::as_operand(Var v, const Lanes* lanes, std::size_t operand) {
  Reach r = reach(v);
  if (!lanes) return r;
  if (lanes->mapped[operand]) r.elements = {};
  if (!r.linear || !has_holes(v)) return r;
  const int rank = aval(v).shape.rank() - (lanes->mapped[operand] ? 1 : 0);
  return {.linear = true, .computed = true, .varied = Axes::first(rank)};
}

/// What is known of a result, from what its body gives.
Reach Walk::of_all(Reach r, const Aval& result, const Lanes* lanes) const {
  if (!lanes || !r.linear) return r;
  if (r.computed) r.varied = Axes::first(result.shape.rank());
  if (!r.pattern) return r;
  const std::int64_t n = static_cast<std::int64_t>(r.pattern->size());
  Bits bits;
  for (std::int64_t k = 0; k < directions() * lanes->count; ++k)
    bits.insert(bits.end(), r.pattern->begin(), r.pattern->begin() + n);
  r.pattern = shared(std::move(bits));
  return r;
}

// ---- calls and branches -------------------------------------------------------------------------

/// What a body makes of such inputs. Remembered, so that nested loops, each of which goes to a
/// fixpoint, stay linear.
Vec<Reach> Walk::outcome(Masks& masks, const GraphBody& body, const Vec<Reach>& inputs) {
  if (const Masks::Outcome* known = masks.outcome(&body, inputs)) return known->results;
  Walk inside(body, masks);
  inside.writes_ = false;
  inside.run(inputs);
  Vec<Reach> results;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) results.push_back(inside.result(k));
  masks.remember(&body, inputs, results);
  if (masks.leaks()) masks_.leak();
  return results;
}

/// The body of a call, written once for all calls that reach it alike; one with a rule has results
/// of its own.
Masks::Written Walk::body_of_call(const GraphBody& body, bool has_rule, const Vec<Reach>& inputs,
                                  const Vec<Reach>& results) {
  const auto known = [&] { return has_rule ? nullptr : masks_.outcome(&body, inputs); };
  if (const Masks::Outcome* o = known(); o && o->written) return *o->written;
  Walk inside(body, masks_);
  inside.run(inputs);
  inside.give_masks(results);
  Masks::Written written;
  if (inside.changed()) {
    written.masks = inside.masks();
    written.body = std::make_shared<const GraphBody>(
        inside.take_body({inputs.size()}, {results.size()}, written.masks));
  }
  if (Masks::Outcome* o = known()) o->written = written;
  return written;
}

void Walk::call(Equation e) {
  CallParams params = e.as<CallParams>();
  Vec<Reach> inputs;
  for (Var v : e.inputs) inputs.push_back(reach(v));
  Vec<Reach> results = outcome(masks_, *params.body, inputs);
  if (params.rule && has_effects(*params.body))  // which would happen twice
    for (Reach& r : results)
      if (std::exchange(r.computed, false)) masks_.leak();
  const std::size_t operands = e.inputs.size(), own = e.outputs.size();
  give_results(e, results, {own});
  if (!writes_) return;
  const Masks::Written written =
      body_of_call(*params.body, params.rule != nullptr, inputs, results);
  if (written.body) {
    changed_ = true;
    params.function = {};
    params.results = {};
    params.body = written.body;
    add_masks(e, 0, {operands}, inputs, masks_, written.masks);
    if (params.rule && e.outputs.size() > own) {
      // The rule knows of the results only: the masks are another call's.
      GraphBody body = *written.body, of_masks = body;
      Equation m = e;
      m.op = Op::call;
      of_masks.outputs.erase(of_masks.outputs.begin(), of_masks.outputs.begin() + own);
      m.outputs.erase(m.outputs.begin(), m.outputs.begin() + own);
      body.outputs.resize(own);
      e.outputs.resize(own);
      m.params = make_params(CallParams{std::make_shared<const GraphBody>(std::move(of_masks)),
                                        {},
                                        static_cast<int>(m.inputs.size())});
      append(std::move(m));
      params.body = std::make_shared<const GraphBody>(std::move(body));
    }
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

void Walk::cond(Equation e) {
  CondParams params = e.as<CondParams>();
  const Lanes* const lanes = lanes_of(e);
  Masks& of_bodies = masks_for(lanes);
  Vec<Reach> inputs;
  for (std::size_t i = 1; i < e.inputs.size(); ++i)
    inputs.push_back(as_operand(e.inputs[i], lanes, i));
  std::vector<Vec<Reach>> of_branches;
  for (const GraphRef& body : params.branches)
    of_branches.push_back(outcome(of_bodies, *body, inputs));
  Vec<Reach> results;
  for (std::size_t k = 0; k < e.outputs.size(); ++k) {
    const GraphBody& first = *params.branches[0];
    const Shape& shape = first.aval(first.outputs[k]).shape;
    Reach all = of_branches[0][k];
    for (std::size_t b = 1; b < of_branches.size(); ++b) {
      Reach own = of_branches[b][k];
      if (own.linear != all.linear) {
        Reach& other = own.linear ? all : own;
        other = {.linear = true,
                 .pattern = other.zero ? nothing(of_bodies, shape.elements()) : SparsityPattern()};
      }
      // Where branches reach different elements, it is what the branch that is taken reaches.
      const bool differ = all.linear && !Reach::same(all.pattern, own.pattern);
      if (differ && e.assume_finite) masks_.leak();
      all = {.linear = all.linear || own.linear,
             .zero = all.zero && own.zero,
             .pattern = united(all.pattern, own.pattern),
             .computed = all.computed || own.computed || (differ && !e.assume_finite)};
      if (all.computed) all.varied = Axes::first(shape.rank());
    }
    results.push_back(of_all(std::move(all), aval(e.outputs[k]), lanes));
  }
  const std::size_t operands = inputs.size(), own = e.outputs.size();
  give_results(e, results, {own});
  if (!writes_) return;
  std::vector<std::unique_ptr<Walk>> branches;
  for (const GraphRef& body : params.branches) {
    branches.push_back(std::make_unique<Walk>(*body, of_bodies));
    branches.back()->run(inputs);
    for (std::size_t k = 0; k < own; ++k)
      if (results[k].linear) branches.back()->make_linear(k);
    branches.back()->give_masks(results);
  }
  bool changed = false;
  for (const auto& b : branches) changed = changed || b->changed();
  if (changed) {
    changed_ = true;
    // All branches read the masks of all, in one order.
    Vec<int> masks;
    for (const auto& b : branches)
      for (int m : b->masks())
        if (std::find(masks.begin(), masks.end(), m) == masks.end()) masks.push_back(m);
    for (std::size_t b = 0; b < branches.size(); ++b)
      params.branches[b] =
          std::make_shared<const GraphBody>(branches[b]->take_body({operands}, {own}, masks));
    add_masks(e, 1, {operands}, inputs, of_bodies, masks, lanes ? &params.lanes : nullptr);
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

// ---- loops --------------------------------------------------------------------------------------

/// Raises what is known of a loop's operands to what its iterations make of the carries; what its
/// body gives then.
Vec<Reach> Walk::looped(Masks& masks, const GraphBody& body, std::size_t carries,
                        Vec<Reach>& inputs) {
  for (;;) {
    Vec<Reach> results = outcome(masks, body, inputs);
    bool grew = false;
    for (std::size_t i = 0; i < carries; ++i)
      grew = join(masks, inputs[i], results[i], body.aval(body.inputs[i]).shape) || grew;
    if (!grew) return results;
  }
}

/// What a carry is before an iteration, from what it is after one. Does that change it?
bool Walk::join(Masks& masks, Reach& carry, const Reach& next, const Shape& shape) const {
  const Reach before = carry;
  const auto pattern_of = [&](const Reach& r) {
    return r.linear ? r.pattern : r.zero ? nothing(masks, shape.elements()) : SparsityPattern();
  };
  if (next.linear && !carry.linear) carry = {.linear = true, .pattern = pattern_of(carry)};
  if (carry.linear) {
    const SparsityPattern all = united(carry.pattern, pattern_of(next));
    if (all != carry.pattern && (!all || !carry.pattern || *all != *carry.pattern)) {
      masks_.leak();
      carry.pattern = all;
    }
    carry.computed = carry.computed || next.computed;
    if (carry.computed) carry.varied = Axes::first(shape.rank());
  } else {
    carry.zero = carry.zero && next.zero;
    carry.positive = carry.positive && next.positive;
  }
  return carry.linear != before.linear || carry.zero != before.zero ||
         carry.positive != before.positive || carry.pattern != before.pattern ||
         carry.computed != before.computed || carry.varied != before.varied;
}

/// Writes a loop's body for such operands, and −0 for carries that begin as 0.
void Walk::begin_loop(Equation& e, Walk& body, std::size_t carries, const Vec<Reach>& inputs) {
  body.run(inputs);
  for (std::size_t i = 0; i < carries; ++i) {
    if (!inputs[i].linear) continue;
    body.make_linear(i);
    if (!reach(e.inputs[i]).linear) operand(e, i);
  }
}

void Walk::loop_while(Equation e) {
  WhileParams params = e.as<WhileParams>();
  const Lanes* const lanes = lanes_of(e);
  Masks& of_body = masks_for(lanes);
  const auto carries = static_cast<std::size_t>(params.carries), operands = e.inputs.size();
  Vec<Reach> inputs, results;
  for (std::size_t i = 0; i < operands; ++i) {
    inputs.push_back(as_operand(e.inputs[i], lanes, i));
    if (i < carries) inputs[i].elements = {};  // one iteration's
  }
  looped(of_body, *params.body, carries, inputs);
  for (std::size_t i = 0; i < carries; ++i)
    results.push_back(of_all(inputs[i], aval(e.outputs[i]), lanes));
  give_results(e, results, {carries});
  if (!writes_) return;
  Walk body(*params.body, of_body);
  begin_loop(e, body, carries, inputs);
  body.give_masks(results);
  if (body.changed()) {
    params.body = std::make_shared<const GraphBody>(
        body.take_body({carries, operands}, {carries}, body.masks()));
    // The condition reads no tangents.
    GraphBody condition = *params.condition;
    const Vec<Var> own = condition.inputs;
    Vec<Var> unread;
    for (std::size_t i = 0; i < operands; ++i)
      unread.push_back(inputs[i].computed
                           ? condition.fresh(Aval(DType::bool_, condition.aval(own[i]).shape))
                           : -1);
    condition.inputs.clear();
    push_groups(own, unread, {carries, operands}, condition.inputs);
    for (int m : body.masks())
      condition.inputs.push_back(condition.fresh(Aval(DType::bool_, of_body[m].shape)));
    params.condition = std::make_shared<const GraphBody>(std::move(condition));
    params.carries += count(inputs, 0, carries);
    add_masks(e, 0, {carries, operands}, inputs, of_body, body.masks(),
              lanes ? &params.lanes : nullptr);
    changed_ = true;
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

void Walk::scan(Equation e) {
  ScanParams params = e.as<ScanParams>();
  const std::size_t carries = params.carries, rest = carries + params.sequences,
                    operands = e.inputs.size(), own = e.outputs.size();
  const auto row = [&](std::size_t i) -> const Shape& {
    return params.body->aval(params.body->inputs[i]).shape;
  };
  const auto by_row = [&](std::size_t i, Reach& r) {
    r.computed = true;
    r.varied = Axes::first(row(i).rank());
  };
  Vec<Reach> inputs;
  Vec<std::size_t> uneven;  // sequences of which some rows are not reached as others
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    Reach r = reach(e.inputs[i]);
    if (i >= carries && i < rest && r.pattern) {
      const std::int64_t all = aval(e.inputs[i]).elements(), n = row(i).elements();
      Bits bits = none(n);  // of any row
      const auto any = [&](std::int64_t d, std::int64_t k) -> char& { return bits[d * n + k % n]; };
      for (std::int64_t d = 0; d < directions(); ++d)
        for (std::int64_t k = 0; k < all; ++k) any(d, k) |= (*r.pattern)[d * all + k];
      bool even = true;
      for (std::int64_t d = 0; d < directions() && even; ++d)
        for (std::int64_t k = 0; k < all && even; ++k)
          even = any(d, k) == (*r.pattern)[d * all + k];
      if (!even) uneven.push_back(i);
      r.pattern = shared(std::move(bits));
    }
    if (i < rest) r.elements = {};  // one iteration's
    if (r.computed && i >= carries && i < rest) by_row(i, r);
    inputs.push_back(std::move(r));
  }
  Vec<Reach> results = looped(masks_, *params.body, carries, inputs);
  const bool carried =
      any_of(std::span(inputs.begin(), carries), [](const Reach& r) { return r.linear; });
  if (!uneven.empty() && (carried || e.assume_finite)) {
    masks_.leak();
  } else if (!uneven.empty()) {
    // No row has to do with another, as in map: each has its own.
    for (std::size_t i : uneven) by_row(i, inputs[i]);
    results = looped(masks_, *params.body, carries, inputs);
  }
  for (std::size_t i = 0; i < carries; ++i) results[i] = inputs[i];
  for (std::size_t k = carries; k < own; ++k) {
    Reach& r = results[k];
    if (r.computed) r.varied = Axes::first(aval(e.outputs[k]).shape.rank());
    if (!r.pattern) continue;
    const std::int64_t all = aval(e.outputs[k]).elements();
    const auto n = static_cast<std::int64_t>(r.pattern->size()) / directions();
    Vec<std::int64_t> sources;
    for (std::int64_t i = 0; i < all; ++i) sources.push_back(i % n);
    r.pattern = moved(r.pattern, n, sources);
  }
  give_results(e, results, {carries, own});
  if (!writes_) return;
  Walk body(*params.body, masks_);
  begin_loop(e, body, carries, inputs);
  body.give_masks(results);
  if (body.changed()) {
    params.body = std::make_shared<const GraphBody>(
        body.take_body({carries, rest, operands}, {carries, own}, body.masks()));
    params.carries += count(inputs, 0, carries);
    params.sequences += count(inputs, carries, rest);
    add_masks(e, 0, {carries, rest, operands}, inputs, masks_, body.masks());
    changed_ = true;
    e.params = make_params(std::move(params));
  }
  append(std::move(e));
}

}  // namespace vt::detail::sparsity
