// Loops of lanes whose numbers of iterations differ: where a lane of a vector has ended, the next
// lane takes its place, so that no lane waits for the slowest one beside it.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../nest/cost_model.hpp"

namespace vt::detail::cpu::register_emission {

namespace register_places {

/// What a lane does: a loop, and equations before and behind it.
struct LoopOfLanes {
  const GraphBody& graph;
  std::span<const Var> inputs, outputs;
  std::size_t place = 0;  ///< of the loop among the equations

  const Equation& loop() const { return graph.equations[place]; }
};
/// The loop that the kernel is made of, or the only one of a fused region.
std::optional<LoopOfLanes> loop_of(const GraphBody& alone) {
  const Equation& e = alone.equations[0];
  if (e.op == Op::while_) return LoopOfLanes{alone, e.inputs, e.outputs};
  if (e.op != Op::fused_region) return std::nullopt;
  const GraphBody& g = *e.as<RegionParams>().body;
  const auto is_loop = [](const Equation& x) { return x.op == Op::while_; };
  if (count_if(g.equations, is_loop) != 1) return std::nullopt;
  const auto loop = std::find_if(g.equations.begin(), g.equations.end(), is_loop);
  return LoopOfLanes{g, g.inputs, g.outputs, static_cast<std::size_t>(loop - g.equations.begin())};
}

/// About the instructions that a lane takes before and behind its loop: an element that is brought
/// from anywhere, or goes there, counts as several.
std::int64_t cost_of_exchange(const LaneForm& form, const LoopOfLanes& of) {
  constexpr std::int64_t cost_of_element = 12;
  std::int64_t cost = 0;
  const Equation& e = form.lane.equations[0];
  for (std::size_t i = 0; i < form.axes.size(); ++i) {
    const Aval& a =
        form.lane.aval(i < e.inputs.size() ? e.inputs[i] : e.outputs[i - e.inputs.size()]);
    if (form.axes[i] >= 0 && form.in_registers(a)) cost += cost_of_element * a.elements();
  }
  for (const Equation& x : of.graph.equations)
    if (&x != &of.loop() && may_be_register_kernel(x.op)) cost += 1000;
    else if (&x != &of.loop())
      for (const Var v : x.outputs)
        cost += of.graph.aval(v).elements() * op_weight(x.op, of.graph.aval(v).dtype);
  return cost;
}
/// More would add too much code.
constexpr std::int64_t most_of_exchange = 3000;

/// The places of a vector.
struct Places {
  Elements own;            ///< what the loop carries, and what else differs between lanes
  Value lane;              ///< at each place
  Value held;              ///< places whose lane has no results in memory yet
  Value next;              ///< the first lane that has had no place
  Value waited;            ///< iterations, summed over places whose lane has ended
  Value scattered;         ///< are the lanes no longer neighbours?
  Value iterations, busy;  ///< so far; lanes in all of them together

  Elements all() const {
    Elements values = own;
    for (const Value& x : {lane, held, next, waited, scattered, iterations, busy})
      values.push_back(x);
    return values;
  }
  static Places of(const Elements& values) {
    const Value* x = values.end() - 7;
    return {Elements(values.begin(), x), x[0], x[1], x[2], x[3], x[4], x[5], x[6]};
  }
};

}  // namespace register_places

using namespace register_places;

bool RegisterEmitter::gives_places_away() const {
  if (!form_.side_by_side()) return false;
  const std::optional<LoopOfLanes> of = loop_of(graph_);
  return of && cost_of_exchange(form_, *of) <= most_of_exchange;
}

void RegisterEmitter::loop_with_places() {
  const Elements last = b_.while_loop(
      {b_.arg(2), index_number(0), index_number(0)},
      [&](const Elements& c) { return b_.compare(Compare::lt, c[0], b_.arg(3)); },
      [&](const Elements& c) {
        lane_ = c[0];
        mask_ = tail_ = b_.tail_mask(width_, b_.sub(b_.arg(3), lane_));
        places_ = {};
        objects_.clear();
        return run_in_places(c[1], c[2]);
      });
  const Value counted[] = {last[1], last[2], b_.mul(last[1], index_number(width_))};
  for (std::int64_t i = 0; i < 3; ++i)
    b_.store(b_.offset(b_.arg(1), DType::i64, index_number(i)), counted[i]);
}

Elements RegisterEmitter::run_in_places(Value iterations, Value busy) {
  const LoopOfLanes of = *loop_of(graph_);
  const Equation& loop = of.loop();
  const auto& p = loop.as<WhileParams>();
  const std::size_t carries = p.carries;

  // Up to the loop, of the lanes that `places_` and `mask_` say.
  const auto before_loop = [&](const Vec<Val>& given) {
    Env env(of.graph.avals.size());
    for (std::size_t i = 0; i < given.size(); ++i) env[of.inputs[i]] = given[i];
    run_equations(of.graph, env, 0, of.place);
    return env;
  };
  const Vec<Val> given = operands();
  const Env first = before_loop(given);
  Vec<Val> loop_operands;
  for (const Var v : loop.inputs) loop_operands.push_back(first[v]);
  Vec<Val> carried = begin_carries(loop_operands, carries);
  for (Val& v : carried) v = wide(v);
  // Values of each place's own beside what is carried: those that the loop reads, or what is behind
  // it.
  Vec<Var> own;
  const auto keep_own = [&](Var v) {
    if (!first[v].is_array() && is_wide(first[v]) &&
        std::find(own.begin(), own.end(), v) == own.end())
      own.push_back(v);
  };
  for (std::size_t i = carries; i < loop.inputs.size(); ++i) keep_own(loop.inputs[i]);
  for (std::size_t i = of.place + 1; i < of.graph.equations.size(); ++i)
    for (const Var v : of.graph.equations[i].inputs) keep_own(v);
  for (const Var v : of.outputs) keep_own(v);

  const auto elements_of_places = [&](const Vec<Val>& carry, const Env& env) {
    Elements all = flat(carry, carries);
    for (const Var v : own)
      for (const Value& x : env[v].elements()) all.push_back(wide(x));
    return all;
  };
  // What is carried goes into `carry`, else as it is at the places.
  const auto env_of = [&](const Places& now, Vec<Val>& carry) {
    carry = unflat(now.own, carried, carries);
    Env env = first;
    const Value* next = now.own.begin() + flat(carried, carries).size();
    for (const Var v : own) {
      const std::size_t n = first[v].elements().size();
      env[v] = Elements(next, next + n);
      next += n;
    }
    return env;
  };
  const auto inputs_of = [&](const Places& now) {
    Vec<Val> inputs;
    const Env env = env_of(now, inputs);
    for (std::size_t i = carries; i < loop.inputs.size(); ++i)
      inputs.push_back(env[loop.inputs[i]]);
    return inputs;
  };
  const auto behind_loop = [&](const Places& now) {
    Vec<Val> carry;
    Env env = env_of(now, carry);
    for (std::size_t i = 0; i < carries; ++i) env[loop.outputs[i]] = carry[i];
    run_equations(of.graph, env, of.place + 1, of.graph.equations.size());
    Vec<Val> results;
    for (const Var v : of.outputs) results.push_back(env[v]);
    store_results(std::move(results));
  };

  Value goes, any_goes;  // as the loop's condition found last
  const auto condition = [&](const Elements& values) {
    const Places now = Places::of(values);
    places_ = now.lane;
    mask_ = now.held;
    const Flags outside = restrict_writes({});
    goes = b_.bit_and(now.held, wide(run(*p.condition, inputs_of(now))[0][0]));
    restore_writes(outside);
    any_goes = b_.any(goes);
    return b_.bit_or(any_goes, b_.bit_and(b_.any(now.held), now.scattered));
  };
  const auto iteration = [&](Places now) {
    places_ = now.lane;
    mask_ = goes;
    const Flags outside = restrict_writes(carried);
    Vec<Val> next = run(*p.body, inputs_of(now));
    restore_writes(outside);
    hand_on(carried, next);
    const Elements after = flat(next, carries);
    for (std::size_t k = 0; k < after.size(); ++k)
      now.own[k] = b_.select(goes, wide(after[k]), now.own[k]);
    const Value waiting = b_.bit_and(now.held, b_.bit_not(goes));
    now.waited = b_.add(now.waited, b_.popcount(b_.mask_bits(waiting)));
    now.iterations = b_.add(now.iterations, index_number(1));
    now.busy = b_.add(now.busy, b_.popcount(b_.mask_bits(goes)));
    return now.all();
  };
  // Lanes that have ended make room; the n-th of their places gets the n-th of the next lanes.
  const auto exchange = [&](Places now) {
    const Value ended = b_.bit_and(now.held, b_.bit_not(goes)), bits = b_.mask_bits(ended),
                one = b_.integer(DType::i64, 1, width_),
                lower = b_.sub(b_.shift_left(one, b_.iota(DType::i64, width_)), one),
                rank = b_.popcount(b_.bit_and(b_.splat(bits, width_), lower));
    places_ = now.lane;
    mask_ = ended;
    behind_loop(now);
    now.lane = places_ = b_.select(ended, b_.add(b_.splat(now.next, width_), rank), now.lane);
    const Value taken =
        b_.bit_and(ended, b_.compare(Compare::lt, now.lane, b_.splat(b_.arg(3), width_)));
    mask_ = taken;
    Vec<Val> theirs = given;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Object o = object_for(i, graph_.aval(equation_.inputs[i]));
      if (!given[i].is_array() && o.row > 0) theirs[i] = elements_of(o);
    }
    const Env env = before_loop(theirs);
    Vec<Val> carry;
    for (std::size_t i = 0; i < carries; ++i)
      carry.push_back(carried[i].is_array() ? carried[i] : wide(env[loop.inputs[i]]));
    now.own = selected(taken, elements_of_places(carry, env), now.own);
    now.held = b_.bit_or(goes, taken);
    now.next = b_.add(now.next, b_.popcount(bits));
    now.waited = index_number(0);
    now.scattered = b_.boolean(true);
    return now.all();
  };
  const std::int64_t cost = cost_of_exchange(form_, of),
                     wait = std::max<std::int64_t>(1, width_ * cost / cost_);
  const Places start{elements_of_places(carried, first),
                     lane_numbers(),
                     mask_,
                     further(lane_, width_),
                     index_number(0),
                     b_.boolean(false),
                     iterations,
                     busy};
  const Places last = Places::of(b_.while_loop(start.all(), condition, [&](const Elements& values) {
    const Places now = Places::of(values);
    const Value pays = b_.bit_and(b_.compare(Compare::lt, now.next, b_.arg(3)),
                                  b_.compare(Compare::ge, now.waited, index_number(wait)));
    return b_.if_else(
        b_.bit_or(b_.bit_not(any_goes), pays), [&] { return exchange(now); },
        [&] { return iteration(now); });
  }));
  places_ = {};
  mask_ = tail_;
  b_.if_then(b_.bit_not(last.scattered), [&] { behind_loop(last); });
  return {last.next, last.iterations, last.busy};
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
