// Follows an element that is not finite from equation to equation, backward: of element-wise ops to
// the operand's own element, of others by trying which elements matter, into sub-graphs through the
// lane and the iteration that it belongs to.
#include "nan_origin.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include <vt/detail/message.hpp>

#include "../base/convert.hpp"
#include "../ir/collectives.hpp"
#include "../ir/effects.hpp"
#include "../ir/sub_graph.hpp"
#include "../record/devices.hpp"
#include "../record/node.hpp"
#include "../record/recursion.hpp"
#include "../record/without_effects.hpp"
#include "interpreter.hpp"

namespace vt::detail {

namespace nan_search {

bool is_bad(double x, NotFinite what) { return what.infinities ? !std::isfinite(x) : x != x; }
bool is_bad(const Scalar& s, NotFinite what) {
  return is_inexact(s.dtype) && (is_bad(s.real, what) || is_bad(s.imaginary, what));
}
Scalar element_of(const Buffer& value, DType dtype, std::int64_t i) {
  return load_scalar(dtype,
                     value.as<const std::byte>() + static_cast<std::size_t>(i) * size_of(dtype));
}

/// Of floats: without a branch an element, block by block.
template <class T>
std::int64_t first_of(const T* x, std::int64_t n, NotFinite what) {
  constexpr std::int64_t block = 1024;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    bool any = false;
    // x − x is 0, but NaN for what is not finite.
    if (what.infinities)
      for (std::int64_t i = begin; i < end; ++i) any |= x[i] - x[i] != 0;
    else
      for (std::int64_t i = begin; i < end; ++i) any |= x[i] != x[i];
    if (!any) continue;
    for (std::int64_t i = begin; i < end; ++i)
      if (is_bad(static_cast<double>(x[i]), what)) return i;
  }
  return -1;
}

/// Where a search goes on: an element of input `input`, or an end.
struct Found {
  std::optional<NanOrigin> origin;
  std::size_t input = 0;
  std::int64_t element = 0;
};

/// In six digits, unless they look round and it is not: acos takes 1 and refuses 1.0000001.
std::string number_text(double x, DType dtype) {
  std::string text = formatted("{:.6g}", x);
  const auto digits =
      std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!std::isfinite(x) || digits > 4) return text;
  const bool is_short = size_of(real_dtype(dtype)) <= 4;
  for (int precision = 7; precision <= (is_short ? 9 : 17); ++precision) {
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    if (read == x) break;
    text = formatted("{:." + std::to_string(precision) + "g}", x);
  }
  return text;
}
std::string number_text(const Scalar& s) {
  if (is_complex(s.dtype))
    return "(" + number_text(s.real, s.dtype) + ", " + number_text(s.imaginary, s.dtype) + ")";
  if (is_inexact(s.dtype)) return number_text(s.real, s.dtype);
  return s.dtype == DType::bool_ ? s.integer != 0 ? "true" : "false"
                                 : formatted("{:.0f}", s.to_double());
}
/// The one element of an operand that matters, or what it holds.
std::string operand_text(const Buffer& value, const Aval& aval, std::int64_t element) {
  if (aval.elements() == 1) return number_text(element_of(value, aval.dtype, 0));
  if (element >= 0) return number_text(element_of(value, aval.dtype, element));
  if (!is_inexact(aval.dtype) || is_complex(aval.dtype) || aval.elements() == 0) return aval.str();
  double low = INFINITY, high = -INFINITY;
  for (std::int64_t i = 0; i < aval.elements(); ++i) {
    const double x = element_of(value, aval.dtype, i).real;
    low = std::min(low, x), high = std::max(high, x);
  }
  return formatted("{} of {:.6g} to {:.6g}", aval.str(), low, high);
}

/// The operands of a loop's body, asked for from the last iteration back. Few are kept; others are
/// made again from those.
class LoopStates {
 public:
  /// next(state, i): of iteration i + 1. Its first `carries` are changed.
  using Next = FunctionRef<Vec<BufferRef>(const Vec<BufferRef>&, std::int64_t)>;
  LoopStates(Vec<BufferRef> first, int carries, Next next) : next_(next) {
    for (int i = 0; i < carries; ++i) bytes_ += first[i]->bytes;
    kept_.push_back({0, std::move(first)});
  }

  Vec<BufferRef> at(std::int64_t iteration) {
    while (kept_.back().iteration > iteration) kept_.pop_back();
    State now = kept_.back();
    std::int64_t middle = halfway(now.iteration, iteration);
    while (now.iteration < iteration) {
      now.values = next_(now.values, now.iteration);
      ++now.iteration;
      const bool fits = static_cast<std::size_t>(iteration - now.iteration) * bytes_ <= most_bytes;
      if (now.iteration != middle && !fits) continue;
      kept_.push_back(now);
      middle = halfway(now.iteration, iteration);
    }
    return now.values;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 26;
  struct State {
    std::int64_t iteration;
    Vec<BufferRef> values;
  };
  static std::int64_t halfway(std::int64_t from, std::int64_t to) { return from + (to - from) / 2; }

  Next next_;
  std::size_t bytes_ = 1;  ///< of what changes, and a little
  Vec<State> kept_;
};

class Search {
 public:
  explicit Search(NotFinite what) : what_(what) {}

  /// `element` of variable `v` of a Graph that is run on `inputs`.
  Found follow(const GraphBody& g, std::span<const BufferRef> inputs, Var v, std::int64_t element) {
    Vec<BufferRef> values;
    if (const std::optional<Found> end = evaluate(g, inputs, v, values))
      return given_to_others(g, inputs).value_or(*end);
    const Vec<int> maker = makers_of(g);
    CallSite reader;  // of the value: numbers have no line of their own
    for (;;) {
      const std::size_t at = v;
      if (!is_bad(element_of(*values[at], g.aval(v).dtype, element), what_)) return lost();
      if (maker[at] < 0) {
        const auto place = std::find(g.inputs.begin(), g.inputs.end(), v);
        return {std::nullopt, static_cast<std::size_t>(place - g.inputs.begin()), element};
      }
      const Equation& e = g.equations[maker[at]];
      const std::size_t output =
          std::find(e.outputs.begin(), e.outputs.end(), v) - e.outputs.begin();
      Vec<BufferRef> operands;
      for (Var in : e.inputs) operands.push_back(values[in]);
      Found next = through(e, g, operands, output, element);
      if (next.origin) {
        if (!next.origin->where.file) next.origin->where = reader;
        return next;
      }
      if (e.where.file) reader = e.where;
      v = e.inputs[next.input];
      element = next.element;
    }
  }

 private:
  static Found lost() { return {NanOrigin(), 0, 0}; }

  /// What follows a collective is not made again, as the other processes are elsewhere; but perhaps
  /// this one gave it something that is not finite.
  std::optional<Found> given_to_others(const GraphBody& g, std::span<const BufferRef> inputs) {
    for (const Equation& e : g.equations) {
      if (!is_collective(e.op) || !communicates(e)) continue;
      const Var given = e.inputs[0];
      Vec<BufferRef> values;
      if (!is_inexact(g.aval(given).dtype) || evaluate(g, inputs, given, values)) continue;
      const std::int64_t element = first_not_finite(*values[given], g.aval(given), what_);
      if (element >= 0) return follow(g, inputs, given, element);
    }
    return std::nullopt;
  }

  /// Products of many elements run as programs do: plain loops take seconds for them.
  static SmallVec<BufferRef, 1> results_of(const Equation& e, const GraphBody& g,
                                           std::span<const BufferRef> operands) {
    constexpr double many = 1 << 20;
    if (family_of(e.op) != Family::contract ||
        static_cast<double>(g.aval(e.outputs[0]).elements()) *
                static_cast<double>(g.aval(e.inputs[1]).elements()) <
            many)
      return interpret_equation(e, g, operands);
    SmallVec<BufferRef, 1> results;
    for (const BufferRef& made : run_graph(alone(g, e), operands)) results.push_back(on_host(made));
    return results;
  }

  /// The values that `v` depends on. What is not to be run again ends the search.
  static std::optional<Found> evaluate(const GraphBody& g, std::span<const BufferRef> inputs, Var v,
                                       Vec<BufferRef>& values) {
    Vec<bool> needed(g.avals.size(), false);
    needed[v] = true;
    for (std::size_t i = g.equations.size(); i-- > 0;) {
      const Equation& e = g.equations[i];
      if (std::any_of(e.outputs.begin(), e.outputs.end(), [&](Var out) { return needed[out]; }))
        for (Var in : e.inputs) needed[in] = true;
    }
    values.assign(g.avals.size(), BufferRef());
    for (std::size_t i = 0; i < g.inputs.size(); ++i) values[g.inputs[i]] = inputs[i];
    Vec<BufferRef> operands;
    for (const Equation& e : g.equations) {
      if (std::none_of(e.outputs.begin(), e.outputs.end(), [&](Var out) { return needed[out]; }))
        continue;
      if (has_effect(e) || communicates(e)) return lost();
      operands.clear();
      for (Var in : e.inputs) operands.push_back(values[in]);
      const auto made = results_of(e, g, operands);
      for (std::size_t k = 0; k < e.outputs.size(); ++k) values[e.outputs[k]] = made[k];
    }
    return std::nullopt;
  }

  /// From an element of a result of `e` to one of an operand, or to its origin.
  Found through(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                std::size_t output, std::int64_t element) {
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary: return element_wise(e, g, operands, output, element);
      case Family::select: return chosen(e, g, operands, output, element);
      case Family::structure: return inside(e, g, operands, output, element);
      case Family::contract:
        if (e.op == Op::dot_general) return in_products(e, g, operands, element);
        return by_trial(e, g, operands, output, element);
      default: return by_trial(e, g, operands, output, element);
    }
  }

  Found made(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
             std::size_t output, std::int64_t element, bool same_element) {
    NanOrigin o;
    o.kind = NanOrigin::Kind::made;
    o.op = e.op;
    o.where = e.where;
    o.call = std::string(name_of(e.op)) + "(";
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Aval& aval = g.aval(e.inputs[i]);
      o.call += (i ? ", " : "") + operand_text(*operands[i], aval, same_element ? element : -1);
    }
    o.call += ")";
    const Aval& result = g.aval(e.outputs[output]);
    o.place = result.elements() == 1
                  ? result.str()
                  : "element " + element_text(result, element) + " of " + result.str();
    return {std::move(o), 0, 0};
  }

  Found element_wise(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                     std::size_t output, std::int64_t element) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Aval& aval = g.aval(e.inputs[i]);
      const std::int64_t own = aval.elements() == 1 ? 0 : element;
      if (is_bad(element_of(*operands[i], aval.dtype, own), what_)) return {std::nullopt, i, own};
    }
    return made(e, g, operands, output, element, true);
  }

  Found chosen(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
               std::size_t output, std::int64_t element) {
    for (std::size_t i = 1; i < operands.size(); ++i) {
      Vec<BufferRef> only(operands.begin(), operands.end());
      for (std::size_t k = 1; k < operands.size(); ++k)
        if (k != i) only[k] = finite(*operands[k], g.aval(e.inputs[k]), {});
      if (!gives_bad(e, g, only, output, element)) continue;
      return {std::nullopt, i, g.aval(e.inputs[i]).elements() == 1 ? 0 : element};
    }
    return made(e, g, operands, output, element, true);
  }

  /// An element of a dot_general is a sum of products: the first that has a factor like it.
  Found in_products(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                    std::int64_t element) {
    const auto& p = e.as<DotParams>();
    const Axes* const batch[] = {&p.lhs_batch, &p.rhs_batch};
    const Axes* const contract[] = {&p.lhs_contract, &p.rhs_contract};
    Vec<std::int64_t> result, at[2];
    const Shape& shape = g.aval(e.outputs[0]).shape;
    append_index(result, {shape.begin(), shape.size()}, element);
    std::size_t next = p.lhs_batch.size();  // behind them the free axes of the left, then the right
    for (std::size_t side = 0; side < 2; ++side) {
      at[side].resize(g.aval(e.inputs[side]).shape.size(), 0);
      for (std::size_t i = 0; i < batch[side]->size(); ++i) at[side][(*batch[side])[i]] = result[i];
      for (int d = 0; d < g.aval(e.inputs[side]).shape.rank(); ++d)
        if (!batch[side]->contains(d) && !contract[side]->contains(d)) at[side][d] = result[next++];
    }
    Vec<std::int64_t> extents;
    std::int64_t terms = 1;
    for (int d : p.lhs_contract) {
      extents.push_back(g.aval(e.inputs[0]).shape[d]);
      terms *= extents.back();
    }
    for (std::int64_t term = 0; term < terms; ++term) {
      Vec<std::int64_t> along;
      append_index(along, {extents.data(), extents.size()}, term);
      for (std::size_t side = 0; side < 2; ++side) {
        const Aval& aval = g.aval(e.inputs[side]);
        for (std::size_t i = 0; i < along.size(); ++i) at[side][(*contract[side])[i]] = along[i];
        std::int64_t own = 0;
        for (std::size_t d = 0; d < at[side].size(); ++d) own = own * aval.shape[d] + at[side][d];
        if (is_bad(element_of(*operands[side], aval.dtype, own), what_))
          return {std::nullopt, side, own};
      }
    }
    return made(e, g, operands, 0, element, false);
  }

  /// Which element of which operand matters? Those that are not finite are put in groups by halves.
  Found by_trial(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                 std::size_t output, std::int64_t element) {
    Vec<BufferRef> clean(operands.begin(), operands.end());
    Vec<std::vector<std::int64_t>> bad(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Aval& aval = g.aval(e.inputs[i]);
      for (std::int64_t k = 0; is_inexact(aval.dtype) && k < aval.elements(); ++k)
        if (is_bad(element_of(*operands[i], aval.dtype, k), what_)) bad[i].push_back(k);
      if (!bad[i].empty()) clean[i] = finite(*operands[i], aval, {});
    }
    if (gives_bad(e, g, clean, output, element)) return made(e, g, clean, output, element, false);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (bad[i].empty()) continue;
      const auto with = [&](std::span<const std::int64_t> kept) {
        Vec<BufferRef> tried = clean;
        tried[i] = finite(*operands[i], g.aval(e.inputs[i]), kept);
        return gives_bad(e, g, tried, output, element);
      };
      std::span<const std::int64_t> left(bad[i].data(), bad[i].size());
      if (!with(left)) continue;
      while (left.size() > 1) {
        const auto first = left.first(left.size() / 2);
        left = with(first) ? first : left.subspan(left.size() / 2);
      }
      return {std::nullopt, i, left[0]};
    }
    return lost();
  }

  bool gives_bad(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                 std::size_t output, std::int64_t element) const {
    const auto results = results_of(e, g, operands);
    return is_bad(element_of(*results[output], g.aval(e.outputs[output]).dtype, element), what_);
  }
  /// A copy with 1 for all elements that are not finite, but for those `kept`, which are in order.
  BufferRef finite(const Buffer& value, const Aval& aval,
                   std::span<const std::int64_t> kept) const {
    const std::size_t size = size_of(aval.dtype);
    BufferRef copy = allocate(aval.bytes(), "vt::DebugNans");
    if (aval.bytes()) std::memcpy(copy->data, value.data, aval.bytes());
    if (!is_inexact(aval.dtype)) return copy;
    const Scalar one = Scalar(1.0).converted(aval.dtype);
    for (std::int64_t i = 0; i < aval.elements(); ++i) {
      if (!is_bad(element_of(value, aval.dtype, i), what_)) continue;
      if (std::binary_search(kept.begin(), kept.end(), i)) continue;
      store_scalar(one, copy->as<std::byte>() + static_cast<std::size_t>(i) * size);
    }
    return copy;
  }

  // --- sub-graphs --------------------------------------------------------------------------------

  Found inside(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
               std::size_t output, std::int64_t element) {
    switch (e.op) {
      case Op::cond: {
        const auto& p = e.as<CondParams>();
        return in_lane(p.lanes, e, g, operands, output, element, [&](auto own, std::int64_t at) {
          const auto last = static_cast<std::int64_t>(p.branches.size()) - 1;
          const std::int64_t index = *own[0]->template as<const std::int32_t>();
          const GraphBody& branch = *p.branches[std::clamp<std::int64_t>(index, 0, last)];
          Found f = follow(branch, own.subspan(1), branch.outputs[output], at);
          ++f.input;
          return f;
        });
      }
      case Op::while_: {
        const auto& p = e.as<WhileParams>();
        return in_lane(p.lanes, e, g, operands, output, element,
                       [&](auto own, std::int64_t at) { return in_while(e, p, own, output, at); });
      }
      case Op::scan: return in_scan(e, g, operands, output, element);
      case Op::fused_region: {
        const auto& p = e.as<RegionParams>();
        return in_lane(p.lanes, e, g, operands, output, element, [&](auto own, std::int64_t at) {
          return follow(*p.body, own, p.body->outputs[output], at);
        });
      }
      case Op::batched_call: return in_batched_call(e, g, operands, output, element);
      case Op::recursive_call: {
        const RecursiveFunction& f = *e.as<RecursionParams>().function;
        const RecursionGuard deeper(f, operands, e.where);
        return follow(*f.body, operands, f.body->outputs[output], element);
      }
      default: {
        const GraphBody& body = *e.as<CallParams>().body;
        return follow(body, operands, body.outputs[output], element);
      }
    }
  }

  /// The lane that an element of a result belongs to; `follow_in(operands, element)` in it.
  template <class FollowIn>
  Found in_lane(const Lanes& lanes, const Equation& e, const GraphBody& g,
                std::span<const BufferRef> operands, std::size_t output, std::int64_t element,
                const FollowIn& follow_in) {
    if (!lanes) return follow_in(operands, element);
    const std::int64_t each = g.aval(e.outputs[output]).elements() / lanes.count,
                       lane = element / each;
    Vec<BufferRef> own;
    for (std::size_t i = 0; i < operands.size(); ++i)
      own.push_back(lanes.mapped[i] ? part(operands[i], g.aval(e.inputs[i]), lanes.count, lane)
                                    : operands[i]);
    Found f = follow_in(std::span<const BufferRef>(own.data(), own.size()), element % each);
    if (f.origin) return noted(std::move(f), "lane " + lane_text(lanes, lane));
    if (lanes.mapped[f.input])
      f.element += lane * (g.aval(e.inputs[f.input]).elements() / lanes.count);
    return f;
  }
  static std::string lane_text(const Lanes& lanes, std::int64_t lane) {
    Vec<std::int64_t> at;
    if (lanes.extents.empty()) at.push_back(lane);
    else append_index(at, {lanes.extents.data(), lanes.extents.size()}, lane);
    std::string text;
    for (std::size_t i = 0; i < at.size(); ++i) text += (i ? "," : "") + std::to_string(at[i]);
    return at.size() > 1 ? "(" + text + ")" : text;
  }
  static Found noted(Found f, std::string place) {
    if (f.origin->kind == NanOrigin::Kind::made) f.origin->inside.push_back(std::move(place));
    return f;
  }
  static std::string iteration_text(const Equation& e, std::int64_t iteration) {
    const std::string line = at(e.where);
    return formatted("iteration {} of the loop{}", iteration, line.empty() ? line : line.substr(1));
  }
  /// Slice `at` of `count` along axis 0.
  static BufferRef part(const BufferRef& value, const Aval& aval, std::int64_t count,
                        std::int64_t at) {
    const std::size_t bytes = aval.bytes() / static_cast<std::size_t>(count);
    BufferRef own = allocate(bytes, "vt::DebugNans");
    if (bytes)
      std::memcpy(own->data, value->as<std::byte>() + static_cast<std::size_t>(at) * bytes, bytes);
    return own;
  }

  Found in_while(const Equation& e, const WhileParams& p, std::span<const BufferRef> operands,
                 std::size_t carry, std::int64_t element) {
    const auto next = [&](const Vec<BufferRef>& state, std::int64_t) {
      Vec<BufferRef> after = state;
      Vec<BufferRef> made = interpret(*p.body, state);
      std::move(made.begin(), made.end(), after.begin());
      return after;
    };
    Vec<BufferRef> state(operands.begin(), operands.end());
    LoopStates states(state, p.carries, next);
    std::int64_t iteration = 0;
    while (*interpret(*p.condition, state)[0]->as<const std::uint8_t>())
      state = next(state, iteration++);
    while (iteration-- > 0) {
      Found f = follow(*p.body, states.at(iteration), p.body->outputs[carry], element);
      if (f.origin) return noted(std::move(f), iteration_text(e, iteration));
      element = f.element;
      carry = f.input;
      if (carry >= static_cast<std::size_t>(p.carries)) break;
    }
    return {std::nullopt, carry, element};
  }

  Found in_scan(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                std::size_t output, std::int64_t element) {
    const auto& p = e.as<ScanParams>();
    const std::size_t carries = p.carries, looped = carries + p.sequences;
    const auto place = [&](std::int64_t i) { return p.reverse ? p.length - 1 - i : i; };
    std::int64_t iteration = p.length - 1;
    if (output >= carries) {  // of ys: the iteration that made it
      const std::int64_t each = g.aval(e.outputs[output]).elements() / p.length;
      iteration = place(element / each);
      element %= each;
    }
    const auto with_elements = [&](Vec<BufferRef> values, std::int64_t i) {
      for (std::size_t k = carries; k < looped; ++k)
        values[k] = part(operands[k], g.aval(e.inputs[k]), p.length, place(i));
      return values;
    };
    const auto next = [&](const Vec<BufferRef>& state, std::int64_t i) {
      Vec<BufferRef> after = state;
      Vec<BufferRef> made = interpret(*p.body, with_elements(state, i));
      std::move(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carries), after.begin());
      return after;
    };
    LoopStates states(Vec<BufferRef>(operands.begin(), operands.end()), p.carries, next);
    for (; iteration >= 0; --iteration) {
      Found f = follow(*p.body, with_elements(states.at(iteration), iteration),
                       p.body->outputs[output], element);
      if (f.origin) return noted(std::move(f), iteration_text(e, iteration));
      output = f.input;
      element = f.element;
      if (output < carries) continue;
      if (output < looped)
        element += place(iteration) * (g.aval(e.inputs[output]).elements() / p.length);
      break;
    }
    return {std::nullopt, output, element};
  }

  Found in_batched_call(const Equation& e, const GraphBody& g, std::span<const BufferRef> operands,
                        std::size_t output, std::int64_t element) {
    const auto& p = e.as<BatchedCallParams>();
    const auto follow_in = [&](auto own, std::int64_t at) {
      return follow(*p.body, own, p.body->outputs[output], at);
    };
    if (!p.summed[output]) return in_lane(p.lanes, e, g, operands, output, element, follow_in);
    // A sum over the lanes: of the first one that is not finite there.
    for (std::int64_t lane = 0; lane < p.lanes.count; ++lane) {
      Vec<BufferRef> own;
      for (std::size_t i = 0; i < operands.size(); ++i)
        own.push_back(p.lanes.mapped[i]
                          ? part(operands[i], g.aval(e.inputs[i]), p.lanes.count, lane)
                          : operands[i]);
      const Var v = p.body->outputs[output];
      const Vec<BufferRef> results = interpret(*p.body, own);
      if (!is_bad(element_of(*results[output], p.body->aval(v).dtype, element), what_)) continue;
      Found f = follow(*p.body, own, v, element);
      if (f.origin) return noted(std::move(f), "lane " + lane_text(p.lanes, lane));
      if (p.lanes.mapped[f.input])
        f.element += lane * (g.aval(e.inputs[f.input]).elements() / p.lanes.count);
      return f;
    }
    return made(e, g, operands, output, element, false);
  }

  NotFinite what_;
};

}  // namespace nan_search

std::int64_t first_not_finite(const Buffer& value, const Aval& aval, NotFinite what) {
  using namespace nan_search;
  const std::int64_t n = aval.elements();
  switch (aval.dtype) {
    case DType::f32: return first_of(value.as<const float>(), n, what);
    case DType::f64: return first_of(value.as<const double>(), n, what);
    case DType::c64: {
      const std::int64_t i = first_of(value.as<const float>(), 2 * n, what);
      return i < 0 ? i : i / 2;
    }
    case DType::c128: {
      const std::int64_t i = first_of(value.as<const double>(), 2 * n, what);
      return i < 0 ? i : i / 2;
    }
    default: break;
  }
  if (is_inexact(aval.dtype))
    for (std::int64_t i = 0; i < n; ++i)
      if (is_bad(element_of(value, aval.dtype, i), what)) return i;
  return -1;
}

std::string element_text(const Aval& aval, std::int64_t element) {
  if (aval.shape.rank() == 0) return "";
  Vec<std::int64_t> at;
  append_index(at, {aval.shape.begin(), aval.shape.size()}, element);
  std::string text = "[";
  for (std::size_t i = 0; i < at.size(); ++i) text += (i ? "," : "") + std::to_string(at[i]);
  return text + "]";
}

NanOrigin nan_origin(const GraphRef& graph, std::span<const BufferRef> inputs, std::size_t output,
                     std::int64_t element, NotFinite what) {
  GraphRef quiet = graph;
  try {
    quiet = without_effects(graph);
  } catch (const Error&) {
    // Values of a callback that must not be called again: the search ends there.
  }
  nan_search::Found f;
  try {
    f = nan_search::Search(what).follow(*quiet, inputs, quiet->outputs[output], element);
  } catch (const Error&) {  // of what cannot be made again, as a shard's index outside of its run
    return NanOrigin();
  }
  if (f.origin) return *f.origin;
  NanOrigin o;
  o.kind = NanOrigin::Kind::input;
  o.input = f.input;
  o.element = f.element;
  return o;
}

}  // namespace vt::detail
