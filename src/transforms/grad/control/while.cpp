// Reverse mode of while loops, whose number of iterations is not known. Forward keeps every s-th
// state in a fixed number of slots; when they are full, every other one is dropped and s doubles.
// Backward runs the iterations between two kept states again; if there are more of them than slots,
// into a second set, and from that into a third. So up to `slots` iterations run once, up to slots²
// twice, up to slots³ three times, in memory for 3·slots states. All of it is while loops again and
// can be vectorized. Its own derivatives: while_rules.cpp.
#include <algorithm>

#include <vt/control.hpp>
#include <vt/small_vec.hpp>

#include "../../../trace/ir/effects.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../build.hpp"
#include "../linearize.hpp"
#include "while.hpp"

namespace vt::detail::control_linear {

namespace while_parts {

using grad_build::binary;
using grad_build::choose;
using grad_build::Val;

/// Runs `f` for each lane, or once where there are none. `lanes.mapped`: per operand.
std::vector<Tensor> on_lanes(const Lanes& lanes, std::span<const Tensor> operands,
                             const FlatFunction& f, CallSite where) {
  if (!lanes) return f(operands);
  Vec<Aval> avals;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Aval a(operands[i].dtype(), operands[i].shape());
    if (lanes.mapped[i]) a.shape.erase(a.shape.begin());
    avals.push_back(std::move(a));
  }
  Recorded body = record(f, avals, {.kind = ScopeKind::branch, .transform = "vt::grad"});
  std::vector<Tensor> all{grad_build::scalar(DType::i32, 0)};
  all.insert(all.end(), operands.begin(), operands.end());
  all.insert(all.end(), body.captured.begin(), body.captured.end());
  CondParams p;  // a choice among one: every lane takes it
  p.lanes.count = lanes.count;
  p.lanes.extents = lanes.extents;
  p.lanes.mapped.push_back(false);
  for (std::size_t i = 0; i < operands.size(); ++i) p.lanes.mapped.push_back(lanes.mapped[i]);
  p.lanes.mapped.resize(all.size(), false);
  if (body.graph.outputs.empty()) return {};
  p.branches.push_back(shared(std::move(body.graph)));
  return emitted(Op::cond, make_params(std::move(p)), all, where);
}

constexpr DType counter = DType::i64;
Tensor number(std::int64_t n) { return grad_build::scalar(counter, static_cast<double>(n)); }
Tensor less(const Tensor& a, const Tensor& b) { return binary(Op::lt, a, b); }

/// Row `row` of an array of states.
Tensor read(const Tensor& states, const Tensor& row) {
  Shape size = states.shape(), element = size;
  size[0] = 1;
  element.erase(element.begin());
  std::vector<Tensor> operands{states, row};
  operands.resize(1 + states.shape().size(), number(0));
  return grad_build::with_shape(
      emit(Op::dynamic_slice, make_params(ShapeParams{size}), operands, {}), element);
}
Tensor write(const Tensor& states, const Tensor& row, const Tensor& state) {
  Shape size = states.shape();
  size[0] = 1;
  std::vector<Tensor> operands{states, grad_build::with_shape(state, size), row};
  operands.resize(2 + states.shape().size(), number(0));
  return emit(Op::dynamic_update_slice, {}, operands, {});
}
/// Memory for `slots` states, and one more for those that are not kept.
std::vector<Tensor> empty_states(std::span<const Tensor> state, std::int64_t slots) {
  std::vector<Tensor> all;
  for (const Tensor& t : state) {
    Shape shape{slots + 1};
    shape.append(t.shape().begin(), t.shape().end());
    all.push_back(grad_build::zeros(Aval(t.dtype(), shape)));
  }
  return all;
}
std::vector<Tensor> written(std::span<const Tensor> states, const Tensor& row,
                            std::span<const Tensor> state) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < states.size(); ++i) all.push_back(write(states[i], row, state[i]));
  return all;
}
std::vector<Tensor> state_at(std::span<const Tensor> states, const Tensor& row) {
  std::vector<Tensor> all;
  for (const Tensor& t : states) all.push_back(read(t, row));
  return all;
}
std::vector<Tensor> joined(std::initializer_list<std::span<const Tensor>> lists) {
  std::vector<Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}
std::vector<Tensor> one(const Tensor& t) { return {t}; }

std::vector<Tensor> loop(const ReversedLoop& l, const FlatFunction& condition,
                         const FlatFunction& body, std::span<const Tensor> init) {
  return while_flat(condition, body, init, {.checkpoint = l.params().checkpoints},
                    {.name = "vt::while_loop", .where = l.equation.where});
}
Tensor goes_on(const ReversedLoop& l, std::span<const Tensor> carry, std::span<const Tensor> rest) {
  return replay(*l.params().condition, joined({carry, rest}))[0];
}
std::vector<Tensor> step(const ReversedLoop& l, std::span<const Tensor> carry,
                         std::span<const Tensor> rest) {
  return replay(*l.params().body, joined({carry, rest}));
}

/// (carry…, rest…) → (last carry…, kept states…, number of iterations, iterations between kept
/// states).
std::vector<Tensor> forward(const ReversedLoop& l, std::span<const Tensor> x) {
  const std::size_t n = l.carries();
  const std::span<const Tensor> init = x.first(n), rest = x.subspan(n);
  const std::vector<Tensor> kept = empty_states(init, l.slots);
  const Tensor all_slots = number(l.slots);
  // A condition with effects is asked once per state, and its answer carried; others are rather
  // asked twice.
  const bool asks = has_effects(*l.condition);
  const auto answer = [&](std::span<const Tensor> state) {
    return asks ? replay(*l.condition, joined({state, rest})) : std::vector<Tensor>();
  };
  // Until the slots are full; then room is made.
  const FlatFunction outer_condition = [&](std::span<const Tensor> c) {
    return one(asks ? c[2 * n + 2] : goes_on(l, c.first(n), rest));
  };
  const FlatFunction outer_body = [&](std::span<const Tensor> c) {
    const Tensor stride = c[2 * n + 1], full = Val(stride) * Val(all_slots);
    std::vector<Tensor> inner = loop(
        l,
        [&](std::span<const Tensor> i) {
          return one(binary(Op::and_, less(i[2 * n], full),
                            asks ? i[2 * n + 1] : goes_on(l, i.first(n), rest)));
        },
        [&](std::span<const Tensor> i) {
          const Val k = i[2 * n];
          const Val slot = k / Val(stride);
          const Tensor row = choose(binary(Op::eq, slot * Val(stride), k), slot, all_slots);
          const std::vector<Tensor> next = replay(*l.body, joined({i.first(n), rest}));
          return joined({next, written(i.subspan(n, n), row, i.first(n)), one(k + Val(number(1))),
                         answer(next)});
        },
        joined({c.first(2 * n + 1), c.subspan(2 * n + 2)}));
    const Tensor is_full = binary(Op::eq, inner[2 * n], full);
    for (std::size_t i = n; i < 2 * n; ++i) {
      // Slots 0, 2, 4 … become 0, 1, 2 …; what lies behind them is written before it is read.
      const Tensor half = grad_build::slice_axis(inner[i], 0, 0, l.slots, 2),
                   behind = grad_build::slice_axis(inner[i], 0, l.slots / 2, l.slots + 1);
      const Tensor parts[2] = {half, behind};
      const Tensor thinned = emit(Op::concatenate, make_params(AxisParams{0}), parts, {});
      inner[i] = choose(grad_build::in_dim(is_full, inner[i].shape(), {}), thinned, inner[i]);
    }
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(2 * n + 1),
                 choose(is_full, Val(stride) * Val(number(2)), stride));
    return inner;
  };
  std::vector<Tensor> out =
      loop(l, outer_condition, outer_body,
           joined({init, kept, one(number(0)), one(number(1)), answer(init)}));
  out.resize(2 * n + 2);
  return out;
}

/// (carry…, rest…, kept states…, iterations, stride, cotangents of varying carries…) → cotangents
/// of those and of the shared operands.
std::vector<Tensor> backward(const ReversedLoop& l, std::span<const Tensor> given) {
  const std::size_t n = l.carries(), inputs = l.operands.size(), v = l.varying.size();
  const std::span<const Tensor> rest = given.subspan(n, inputs - n),
                                kept = given.subspan(inputs, n);
  const Tensor iterations = given[inputs + n], stride = given[inputs + n + 1];
  std::vector<Tensor> cts(given.begin() + static_cast<std::ptrdiff_t>(inputs + n + 2), given.end());
  for (std::size_t i : l.shared_operands) cts.push_back(grad_build::zeros(aval_of(given[i])));
  const Val one_more = number(1);
  const Tensor all_slots = number(l.slots);

  // The cotangents before an iteration, from those after it and the state it began with.
  const auto pulled = [&](std::span<const Tensor> state, std::span<const Tensor> after) {
    const LinearPart linear = linearize_graph(*l.params().body, joined({state, rest}), l.operands);
    std::vector<Tensor> of_results(n), before;
    for (std::size_t k = 0; k < v; ++k) of_results[l.varying[k]] = after[k];
    const std::vector<Tensor> all = pull_linear(linear, of_results);
    for (std::size_t k = 0; k < v; ++k) before.push_back(or_zeros(all[k], linear.wanted[k]));
    for (std::size_t k = v; k < all.size(); ++k)
      before.push_back(grad_build::sum_of(after[k], all[k]));
    return before;
  };
  // How many iterations lie between the states of a set that has room for `count` iterations'
  // worth.
  const auto gap_of = [&](const Tensor& count) {
    return (Val(count) + Val(all_slots) - one_more) / Val(all_slots);
  };
  // Of `count` iterations from `start` on those up to the last multiple of the gap, run again:
  // every gap-th state goes into `states`.
  const auto refilled = [&](std::span<const Tensor> start, const Val& count, const Val& gap,
                            std::span<const Tensor> states) {
    const Val last = (count - one_more) / gap * gap;
    const std::vector<Tensor> filled = loop(
        l, [&](std::span<const Tensor> i) { return one(less(i[0], last)); },
        [&](std::span<const Tensor> i) {
          const Val t = Val(i[0]) + one_more;
          const std::vector<Tensor> state = step(l, i.subspan(1, n), rest);
          const Val slot = t / gap;
          const Tensor into = choose(binary(Op::eq, slot * gap, t), slot, all_slots);
          return joined({one(t), state, written(i.subspan(1 + n), into, state)});
        },
        joined({one(number(0)), start, written(states, number(0), start)}));
    return std::vector<Tensor>(filled.begin() + static_cast<std::ptrdiff_t>(1 + n), filled.end());
  };
  const FlatFunction some_left = [&](std::span<const Tensor> c) {
    return one(less(number(0), c[0]));
  };
  const std::size_t ct = cts.size();

  // A short stretch, carried: (cotangents…, third set…); the states between those of the set are
  // run to from the one before.
  const auto extend = [&](std::span<const Tensor> start, const Val& count, const Tensor& most,
                          std::span<const Tensor> c) {
    const Val gap = gap_of(most);
    const std::vector<Tensor> states = refilled(start, count, gap, c.subspan(ct));
    const std::vector<Tensor> back = loop(
        l, some_left,
        [&](std::span<const Tensor> i) {
          const Val t = Val(i[0]) - one_more;
          const Val slot = t / gap;
          const std::vector<Tensor> state = loop(
              l, some_left,
              [&](std::span<const Tensor> s) {
                return joined({one(Val(s[0]) - one_more), step(l, s.subspan(1), rest)});
              },
              joined({one(t - slot * gap), state_at(states, slot)}));
          return joined({one(t), pulled(std::span<const Tensor>(state).subspan(1), i.subspan(1))});
        },
        joined({one(count), c.first(ct)}));
    return joined({std::span<const Tensor>(back).subspan(1), states});
  };
  // What lies between two kept states, carried: (iterations left, cotangents…, third set…, second
  // set…): in broadcasts that fill the third set, so that what is no longer than that runs but once
  // more.
  const Val gap = binary(Op::max, gap_of(stride), binary(Op::min, stride, all_slots));
  const FlatFunction segment = [&](std::span<const Tensor> c) {
    const Val left = c[0], row = (left - one_more) / Val(stride), first = row * Val(stride);
    const std::vector<Tensor> states =
        refilled(state_at(kept, row), left - first, gap, c.subspan(1 + ct + n));
    const std::vector<Tensor> back = loop(
        l, some_left,
        [&](std::span<const Tensor> i) {
          const Val before = Val(i[0]), part = (before - one_more) / gap, begin = part * gap;
          return joined(
              {one(begin), extend(state_at(states, part), before - begin, gap, i.subspan(1))});
        },
        joined({one(left - first), c.subspan(1, ct + n)}));
    return joined({one(first), std::span<const Tensor>(back).subspan(1), states});
  };
  const std::vector<Tensor> empty = empty_states(given.first(n), l.slots);
  std::vector<Tensor> out =
      loop(l, some_left, segment, joined({one(iterations), cts, empty, empty}));
  out.resize(1 + ct);
  out.erase(out.begin());
  return out;
}

// more would make short loops inside loops dear
constexpr std::int64_t fewest_slots = 16, most_slots = 256;
constexpr std::size_t slot_budget = std::size_t{4} << 20;  // bytes

std::size_t carry_bytes(const WhileParams& p, std::span<const Tensor> x) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.carries); ++i)
    bytes += aval_of(x[i]).bytes();
  return bytes;
}

}  // namespace while_parts

std::int64_t slots_for(const WhileParams& p, std::span<const Tensor> x) {
  using namespace while_parts;
  std::int64_t slots = p.checkpoints;
  if (slots == 0) {
    const std::size_t bytes = 1 + carry_bytes(p, x);
    slots = std::clamp<std::int64_t>(static_cast<std::int64_t>(slot_budget / bytes), fewest_slots,
                                     most_slots);
  }
  return std::max<std::int64_t>(slots + slots % 2, 2);
}

bool too_many_states(const ReversedLoop& l, std::span<const Tensor> x) {
  const auto states =
      static_cast<double>(thread_state().stacked) * static_cast<double>(l.slots + 1);
  return thread_state().stacked > 1 &&
         states * static_cast<double>(while_parts::carry_bytes(l.params(), x)) >
             while_parts::slot_budget;
}

std::vector<Tensor> run_keeping(const ReversedLoop& l, std::span<const Tensor> x) {
  return while_parts::on_lanes(
      l.params().lanes, x,
      [&](std::span<const Tensor> own) { return while_parts::forward(l, own); }, l.equation.where);
}

std::vector<Tensor> run_back(const ReversedLoop& l, std::span<const Tensor> operands) {
  Lanes lanes = l.params().lanes;
  if (lanes) lanes.mapped.resize(operands.size(), true);
  std::vector<Tensor> cts = while_parts::on_lanes(
      lanes, operands, [&](std::span<const Tensor> own) { return while_parts::backward(l, own); },
      l.equation.where);
  if (lanes)
    for (std::size_t k = 0; k < l.shared_operands.size(); ++k)
      if (!lanes.mapped[l.shared_operands[k]])
        cts[l.varying.size() + k] = summed_lanes(cts[l.varying.size() + k]);
  return cts;
}

}  // namespace vt::detail::control_linear
