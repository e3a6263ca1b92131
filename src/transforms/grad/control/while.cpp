// Reverse mode of while loops, whose number of iterations is not known. Forward keeps every s-th
// state in the first rows of arrays; when these are full, every other one is dropped and s doubles.
// Backward runs from the last kept state to the iteration that is next, and keeps states on the way
// in the rows behind it: all of them if there is room, else every g-th. A loop of its own undoes
// the iterations whose states lie in rows one behind the other. With n rows for forward and 2 n
// more, up to n iterations run once, up to n² twice, up to n³ four times at most. Rows are not
// touched before they are written. All of it is while loops again and can be vectorized. Its own
// derivatives: while_rules.cpp.
#include <algorithm>
#include <limits>

#include <vt/control.hpp>
#include <vt/detail/small_vec.hpp>

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

Tensor number(DType d, std::int64_t n) { return grad_build::scalar(d, static_cast<double>(n)); }
/// Of iterations.
constexpr DType counter = DType::i64;
Tensor number(std::int64_t n) { return number(counter, n); }
Tensor less(const Tensor& a, const Tensor& b) { return binary(Op::lt, a, b); }
Tensor equal(const Tensor& a, const Tensor& b) { return binary(Op::eq, a, b); }

/// Row `row` of an array of states.
Tensor read(const Tensor& states, const Tensor& row) {
  Shape size = states.shape(), element = size;
  size[0] = 1;
  element.erase(element.begin());
  std::vector<Tensor> operands{states, row};
  operands.resize(1 + states.shape().size(), number(row.dtype(), 0));
  return grad_build::with_shape(
      emit(Op::dynamic_slice, make_params(ShapeParams{size}), operands, {}), element);
}
Tensor write(const Tensor& states, const Tensor& row, const Tensor& state) {
  Shape size = states.shape();
  size[0] = 1;
  std::vector<Tensor> operands{states, grad_build::with_shape(state, size), row};
  operands.resize(2 + states.shape().size(), number(row.dtype(), 0));
  return emit(Op::dynamic_update_slice, {}, operands, {});
}
/// Memory for the states of `slots_for`, for as many twice again that are run to backward, and one
/// row that is written before it is known whether its state is kept.
std::int64_t rows_for(const ReversedLoop& l) { return 3 * l.slots + 1; }
/// Of the numbers of rows: a vector holds twice as many of them as of `counter`.
DType row_number(const ReversedLoop& l) {
  return rows_for(l) < std::numeric_limits<std::int32_t>::max() ? DType::i32 : counter;
}
Tensor unset_rows(const ReversedLoop& l, const Aval& state) {
  Shape shape{rows_for(l)};
  shape.append(state.shape.begin(), state.shape.end());
  return grad_build::unset(Aval(state.dtype, shape));
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

std::vector<Tensor> forward(const ReversedLoop& l, std::span<const Tensor> x) {
  const std::size_t n = l.carries();
  const std::span<const Tensor> init = x.first(n), rest = x.subspan(n);
  const auto row = [d = row_number(l)](std::int64_t i) { return number(d, i); };
  const Tensor slots = row(l.slots), half = row(l.slots / 2);
  std::vector<Tensor> kept;
  for (const Tensor& t : init) kept.push_back(unset_rows(l, aval_of(t)));
  // A condition with effects is asked once per state, and its answer carried; others are rather
  // asked twice.
  const bool asks = has_effects(*l.condition);
  const auto answer = [&](std::span<const Tensor> state) {
    return asks ? replay(*l.condition, joined({state, rest})) : std::vector<Tensor>();
  };
  // Carried: the state, all rows, how many are kept, the iterations until the next state is kept,
  // and between the loops how many lie between two of those.
  const std::size_t states = n, rows = 2 * n, until = rows + 1, stride_at = rows + 2;
  const auto goes = [&](std::span<const Tensor> c) {
    return asks ? c.back() : goes_on(l, c.first(n), rest);
  };
  // Until the slots are full; then room is made: rows 0, 2, 4 … become 0, 1, 2 …
  const FlatFunction outer_body = [&](std::span<const Tensor> c) {
    const Tensor is_full = equal(c[rows], slots);
    const Val stride = choose(is_full, Val(c[stride_at]) + Val(c[stride_at]), c[stride_at]);
    const std::vector<Tensor> thinned = loop(
        l, [&](std::span<const Tensor> i) { return one(less(i[0], i[1])); },
        [&](std::span<const Tensor> i) {
          const Val to = i[0];
          const std::vector<Tensor> states_kept = state_at(i.subspan(2), to + to);
          return joined({one(to + row(1)), one(i[1]), written(i.subspan(2), to, states_kept)});
        },
        joined({one(row(0)), one(choose(is_full, half, row(0))), c.subspan(states, n)}));
    std::vector<Tensor> inner =
        joined({c.first(n), std::span<const Tensor>(thinned).subspan(2),
                one(choose(is_full, half, c[rows])), one(c[until]), c.subspan(stride_at + 1)});
    inner = loop(
        l,
        [&](std::span<const Tensor> i) {
          return one(binary(Op::and_, less(i[rows], slots), goes(i)));
        },
        [&](std::span<const Tensor> i) {
          const Tensor is_next = equal(i[until], number(0));
          const std::vector<Tensor> after = replay(*l.body, joined({i.first(n), rest}));
          return joined({after, written(i.subspan(states, n), i[rows], i.first(n)),
                         one(choose(is_next, Val(i[rows]) + row(1), i[rows])),
                         one(Val(choose(is_next, stride, i[until])) - number(1)), answer(after)});
        },
        inner);
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(stride_at), stride);
    return inner;
  };
  std::vector<Tensor> out = loop(
      l, [&](std::span<const Tensor> c) { return one(goes(c)); }, outer_body,
      joined({init, kept, one(row(0)), one(number(0)), one(number(1)), answer(init)}));
  const Val next = Val(grad_build::convert_to(out[rows], counter)) * Val(out[stride_at]),
            iterations = next - Val(out[until]);
  out[until] = out[stride_at];
  out[stride_at] = iterations;
  out.resize(stride_at + 1);
  return out;
}

/// (carry…, rest…, what forward gives behind the carry, cotangents of varying carries…) →
/// cotangents of those and of the shared operands.
std::vector<Tensor> backward(const ReversedLoop& l, std::span<const Tensor> given) {
  const std::size_t n = l.carries(), inputs = l.operands.size(), v = l.varying.size();
  const std::span<const Tensor> rest = given.subspan(n, inputs - n),
                                kept = given.subspan(inputs, n);
  const Tensor rows = given[inputs + n];
  const Val stride = given[inputs + n + 1];
  const Tensor iterations = given[inputs + n + 2];
  std::vector<Tensor> cts(given.begin() + static_cast<std::ptrdiff_t>(inputs + n + 3), given.end());
  for (std::size_t i : l.shared_operands) cts.push_back(grad_build::zeros(aval_of(given[i])));
  const std::size_t ct = cts.size();
  const DType row_type = row_number(l);
  const auto as_row = [&](const Tensor& t) { return Val(grad_build::convert_to(t, row_type)); };
  const auto as_count = [](const Tensor& t) { return Val(grad_build::convert_to(t, counter)); };
  const Val one_more = number(1), next_row = number(row_type, 1),
            all_rows = number(rows_for(l) - 1);

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
  // Carried: iterations left, cotangents, rows that are kept, those of them that forward kept, the
  // rows, and the iterations that the others precede. States on the way to the last iteration left
  // are kept in the rows that are free, all of them if there is room. Then all are undone whose
  // states lie in rows one behind the other.
  const FlatFunction iterations_undone = [&](std::span<const Tensor> c) {
    const Val target = Val(c[0]) - one_more, used = c[1 + ct], of_forward = c[2 + ct];
    const std::span<const Tensor> states = c.subspan(3 + ct);
    const Val last_row = used - next_row;
    const std::vector<Tensor> last = state_at(states, last_row);
    const Val from = choose(equal(used, of_forward), as_count(last_row) * stride, last[n]),
              distance = target - from, free = all_rows - as_count(used);
    const Tensor fits = binary(Op::le, distance, free);
    const Val room = choose(fits, free, (free + one_more) / Val(number(2)));
    const Val gap = loop(
        l,
        [&](std::span<const Tensor> g) {
          return one(binary(Op::and_, less(g[0], distance), less(Val(g[0]) * room, distance)));
        },
        [&](std::span<const Tensor> g) { return one(Val(g[0]) + Val(g[0])); }, one(one_more))[0];
    // Carried: the iteration, its state, the next one whose state is kept, rows that are kept, the
    // rows.
    const std::vector<Tensor> there = loop(
        l, [&](std::span<const Tensor> i) { return one(less(i[0], target)); },
        [&](std::span<const Tensor> i) {
          const Val k = Val(i[0]) + one_more;
          const std::vector<Tensor> state = step(l, i.subspan(1, n), rest);
          const Tensor is_next = equal(k, i[1 + n]);
          return joined({one(k), state, one(choose(is_next, k + gap, i[1 + n])),
                         one(choose(is_next, Val(i[2 + n]) + next_row, i[2 + n])),
                         written(i.subspan(3 + n), i[2 + n], joined({state, one(k)}))});
        },
        joined({one(from), std::span<const Tensor>(last).first(n), one(from + gap), one(used),
                states}));
    // A state that is not kept lies in the next row.
    const Tensor is_last = equal(Val(there[1 + n]) - gap, target);
    const Val end = choose(is_last, there[2 + n], Val(there[2 + n]) + next_row),
              run = choose(equal(stride, one_more), used,
                           choose(equal(gap, one_more), as_row(distance + one_more), next_row)),
              begin = end - run;
    const std::span<const Tensor> found = std::span<const Tensor>(there).subspan(3 + n);
    const std::vector<Tensor> undone = loop(
        l, [&](std::span<const Tensor> i) { return one(less(begin, i[0])); },
        [&](std::span<const Tensor> i) {
          const Val row = Val(i[0]) - next_row;
          return joined({one(row), pulled(state_at(found.first(n), row), i.subspan(1))});
        },
        joined({one(end), c.subspan(1, ct)}));
    return joined({one(Val(c[0]) - as_count(run)), std::span<const Tensor>(undone).subspan(1),
                   one(begin), one(binary(Op::min, of_forward, begin)), found});
  };
  std::vector<Tensor> out = loop(
      l, [&](std::span<const Tensor> c) { return one(less(number(0), c[0])); }, iterations_undone,
      joined({one(iterations), cts, one(rows), one(rows), kept,
              one(unset_rows(l, Aval(counter, Shape{})))}));
  out.resize(1 + ct);
  out.erase(out.begin());
  return out;
}

// Of states that are few bytes, as many as a register kernel keeps in its frame for a lane, loops
// inside of loops and second derivatives included.
constexpr std::int64_t frame_budget = std::int64_t{1} << 14;
constexpr std::int64_t fewest_slots = 16, most_slots = 64;
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
    const auto bytes = static_cast<std::int64_t>(sizeof(std::int64_t) + carry_bytes(p, x));
    slots = std::min(most_slots, frame_budget / (3 * bytes));
    if (slots < fewest_slots)
      slots = std::clamp(static_cast<std::int64_t>(slot_budget) / bytes, fewest_slots, most_slots);
  }
  return std::max<std::int64_t>(slots + slots % 2, 2);
}

bool inside_scan() { return thread_state().stacked > 1; }

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
