// Derivatives of calls, also of batched and recursive ones: each derivative of a called function is
// made once, as a function that is called in its turn.
#include "call_rules.hpp"

#include <algorithm>
#include <memory>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/effects.hpp"
#include "../../trace/record/recursion.hpp"
#include "../../trace/record/thread_state.hpp"
#include "../../trace/record/without_effects.hpp"
#include "build.hpp"
#include "jvp.hpp"
#include "linear_call.hpp"
#include "linearize.hpp"
#include "transpose.hpp"

namespace vt::detail {

namespace call_parts {

using Flags = Vec<bool>;

/// The defined ones among `tensors`, and where each of them went.
inline Vec<int> append_defined(std::vector<Tensor>& to, std::span<const Tensor> tensors) {
  Vec<int> places;
  places.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    places.push_back(t.defined() ? static_cast<int>(to.size()) : -1);
    if (t.defined()) to.push_back(t);
  }
  return places;
}
/// The results at `places`, empty Tensors elsewhere.
inline std::vector<Tensor> placed(const CallResults& results, const Vec<int>& places) {
  std::vector<Tensor> all;
  all.reserve(places.size());
  for (int i : places) all.push_back(i < 0 ? Tensor() : results[i]);
  return all;
}
/// Tensors of which those with flags are `given`, in order.
inline std::vector<Tensor> restored(const Flags& flags, std::span<const Tensor> given) {
  std::vector<Tensor> all;
  std::size_t next = 0;
  for (bool f : flags) all.push_back(f ? given[next++] : Tensor());
  return all;
}
inline Flags defined_flags(std::span<const Tensor> tensors) {
  Flags flags;
  flags.reserve(tensors.size());
  for (const Tensor& t : tensors) flags.push_back(t.defined());
  return flags;
}

inline Vec<Aval> input_avals(const GraphBody& g) {
  Vec<Aval> avals;
  for (Var v : g.inputs) avals.push_back(g.aval(v));
  return avals;
}
/// Types of (co)tangents of those of `vars` with flags.
inline void append_tangent_avals(Vec<Aval>& to, const GraphBody& g, std::span<const Var> vars,
                                 const Flags& flags) {
  for (std::size_t i = 0; i < vars.size(); ++i)
    if (flags[i]) to.emplace_back(g.aval(vars[i]).dtype, g.aval(vars[i]).shape);
}

inline RecordOptions body_of(const char* transform) {
  return {.kind = ScopeKind::branch, .transform = transform};
}

/// A call, or a batched call, whose lanes each of its derivatives keeps.
class Caller {
 public:
  explicit Caller(const Equation& e)
      : batched_(e.op == Op::batched_call ? &e.as<BatchedCallParams>() : nullptr),
        call_(batched_ ? nullptr : &e.as<CallParams>()),
        where_(e.where) {
    if (batched_) own_ = CallParams{batched_->body, nullptr, 0, batched_->function};
    operands_.reserve(2 * e.inputs.size());
  }

  const CallParams& function() const { return call_ ? *call_ : own_; }
  /// Does each lane have an operand i of its own?
  bool mapped(std::size_t i) const { return batched_ && batched_->lanes.mapped[i]; }
  /// Which results are sums over lanes; empty: none.
  Flags summed_flags() const {
    Flags flags;
    if (batched_)
      for (bool s : batched_->summed) flags.push_back(s);
    return flags;
  }

  /// Operands of a derivative, each as one of the call's operands or results is.
  void add_like_operand(const Tensor& t, std::size_t i) { add(t, mapped(i)); }
  void add_like_result(const Tensor& t, std::size_t i) { add(t, batched_ && !batched_->summed[i]); }
  void add_per_lane(const Tensor& t) { add(t, true); }
  /// Calls a derivative on what was added. Its first results are `summed`, and those at `places` as
  /// `placed` (or again `summed`) tells.
  CallResults emit(const DerivedFunction& d, const Flags& summed, const Vec<int>& places,
                   const Flags& placed) {
    if (!batched_) {
      const CallResults results = emit_call(d, operands_, where_);
      operands_.clear();
      return results;
    }
    for (const Tensor& t : d.captured) add(t, false);
    BatchedCallParams p;
    p.body = d.body;
    p.function = d.function;
    p.schedule = batched_->schedule;
    p.lanes = {batched_->lanes.count, std::exchange(mapped_, {}), batched_->lanes.extents};
    p.summed.resize(d.body->outputs.size(), false);
    for (std::size_t i = 0; i < summed.size(); ++i) p.summed[i] = summed[i];
    for (std::size_t i = 0; i < places.size() && i < placed.size(); ++i)
      if (places[i] >= 0) p.summed[places[i]] = placed[i];
    SmallVec<Tensor, 1> results;
    if (!d.body->outputs.empty() || has_effects(*d.body))
      results = emit_all(Op::batched_call, make_params(std::move(p)), operands_, where_);
    operands_.clear();
    return results.empty() ? CallResults() : CallResults(tensor_of(node_of(results[0]), 0));
  }
  CallResults emit(const DerivedFunction& d, const Flags& summed, const Vec<int>& places) {
    return emit(d, summed, places, summed);
  }

 private:
  void add(const Tensor& t, bool mapped) {
    operands_.add(t);
    if (batched_) mapped_.push_back(mapped);
  }

  const BatchedCallParams* batched_;
  const CallParams* call_;
  CallParams own_;
  CallSite where_;
  Borrowed operands_;
  SmallVec<bool, 8> mapped_;
};

}  // namespace call_parts

namespace jvp_rules {

using namespace call_parts;

namespace call_jvp {

/// (x…, the tangents that there are…) → (y…, the tangents that there are…)
inline DerivedFunction forward(const GraphBody& body, const Flags& flags) {
  Vec<Aval> avals = input_avals(body);
  const std::size_t n = avals.size();
  append_tangent_avals(avals, body, body.inputs, flags);
  Vec<int> places;
  DerivedFunction d = derived_of(record(
      [&](std::span<const Tensor> in) {
        JvpResult r = jvp_graph(body, in.first(n), restored(flags, in.subspan(n)));
        places = append_defined(r.primals, r.tangents);
        return std::move(r.primals);
      },
      avals, body_of("vt::jvp")));
  d.places = std::move(places);
  return d;
}

/// (x…) → (y…, what the derivative needs…), and the derivative. Of a `summed` y it needs that of
/// one lane, which is no result of the call.
inline DerivedFunction linearized(const CallParams& p, const Flags& flags, const Flags& summed) {
  const GraphBody& body = *p.body;
  DerivedFunction linear;
  Vec<int> sources;
  DerivedFunction d = derived_of(record(
      [&](std::span<const Tensor> in) {
        LinearPart part = linearize_graph(body, in, flags);
        std::vector<Tensor> out = std::move(part.outputs);
        HashMap<ValueOfNode, int> known;
        for (std::size_t i = 0; i < in.size(); ++i)
          known.emplace(value_of_node(in[i]), -1 - static_cast<int>(i));
        for (std::size_t i = 0; i < out.size(); ++i)
          if (i >= summed.size() || !summed[i])
            known.emplace(value_of_node(out[i]), static_cast<int>(i));
        for (const Tensor& r : part.residuals) {
          const auto at = known.emplace(value_of_node(r), static_cast<int>(out.size()));
          if (at.fresh) out.push_back(r);
          sources.push_back(at.entry->second);
        }
        linear.body = std::make_shared<const GraphBody>(std::move(part.graph));
        linear.places = std::move(part.tangent_of);
        linear.function =
            called_function((p.function ? p.function->name : std::string("call")) + ".linear");
        prepare_calls(linear);
        return out;
      },
      input_avals(body), body_of("vt::linearize")));
  d.sources = std::move(sources);
  d.linear = std::make_shared<const DerivedFunction>(std::move(linear));
  return d;
}

}  // namespace call_jvp

void call(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  Caller caller(c.equation);
  const CallParams& p = caller.function();
  const Flags flags = defined_flags(c.t);
  const std::size_t count = c.equation.outputs.size();
  const Flags summed = caller.summed_flags();
  const auto take = [&](const CallResults& out) {
    results.reserve(count);
    for (std::size_t i = 0; i < count; ++i) results.push_back(out[i]);
  };
  const auto add_tangents = [&] {
    for (std::size_t i = 0; i < c.t.size(); ++i)
      if (c.t[i].defined()) caller.add_like_operand(c.t[i], i);
  };
  for (std::size_t i = 0; i < c.x.size(); ++i) caller.add_like_operand(c.x[i], i);
  if (c.mode == JvpMode::forward) {
    const DerivedRef d = derive(p, DerivedKey("jvp").add_all(flags),
                                [&] { return call_jvp::forward(*p.body, flags); });
    add_tangents();
    const CallResults out = caller.emit(*d, summed, d->places);
    take(out);
    tangents = placed(out, d->places);
    return;
  }
  const DerivedRef d =
      derive(p, DerivedKey("linearize").add(thread_state().stacked).add_all(flags).add_all(summed),
             [&] { return call_jvp::linearized(p, flags, summed); });
  const CallResults out = caller.emit(*d, summed, {});
  take(out);
  add_tangents();
  for (int s : d->sources) {
    const std::size_t at = s < 0 ? -1 - s : s;
    if (s < 0) caller.add_like_operand(c.x[at], at);
    else caller.add_per_lane(out[at]);
  }
  const CallResults pushed = caller.emit(*d->linear, {}, d->linear->places, summed);
  tangents = placed(pushed, d->linear->places);
}
void batched_call(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  call(c, results, tangents);
}

}  // namespace jvp_rules

namespace call_parts {

/// The body with the inputs that have flags in front.
inline GraphBody in_front(const GraphBody& body, const Flags& flags) {
  GraphBody ordered = body;
  ordered.inputs.clear();
  for (bool front : {true, false})
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (flags[i] == front) ordered.inputs.push_back(body.inputs[i]);
  return ordered;
}
inline std::size_t count_of(const Flags& flags) {
  return std::count(flags.begin(), flags.end(), true);
}

/// (the tangents that there are…, the other operands…) → the results that there are
inline DerivedFunction pushed(const GraphBody& body, const Flags& linear, const Flags& given) {
  const GraphBody ordered = in_front(body, linear);
  Vec<Aval> avals;
  Flags defined;
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (linear[i]) defined.push_back(given[i]);
  const std::size_t tangents = defined.size(), filled = count_of(defined);
  for (std::size_t i = 0; i < ordered.inputs.size(); ++i)
    if (i >= tangents || defined[i]) avals.push_back(ordered.aval(ordered.inputs[i]));
  Vec<int> places;
  DerivedFunction d = derived_of(record(
      [&](std::span<const Tensor> in) {
        std::vector<Tensor> out;
        places = append_defined(
            out, push_graph(ordered, restored(defined, in.first(filled)), in.subspan(filled)));
        return out;
      },
      avals, body_of("vt::linearize")));
  d.places = std::move(places);
  return d;
}

/// (the cotangents that there are…, the operands that are not linear…) → the cotangents that there
/// are
inline DerivedFunction transposed(const GraphBody& body, const Flags& linear, const Flags& given) {
  const GraphBody ordered = in_front(body, linear);
  const std::size_t tangents = count_of(linear), filled = count_of(given);
  Vec<Aval> avals;
  append_tangent_avals(avals, body, body.outputs, given);
  for (std::size_t i = tangents; i < ordered.inputs.size(); ++i)
    avals.push_back(ordered.aval(ordered.inputs[i]));
  Vec<int> places;
  DerivedFunction d = derived_of(record(
      [&](std::span<const Tensor> in) {
        std::vector<Tensor> out;
        places = append_defined(out, transpose_graph(ordered, tangents, in.subspan(filled),
                                                     restored(given, in.first(filled))));
        return out;
      },
      avals, body_of("vt::grad")));
  d.places = std::move(places);
  return d;
}

}  // namespace call_parts

std::vector<Tensor> push_call(const Equation& e, std::span<const Tensor> x,
                              const Vec<bool>& linear) {
  using namespace call_parts;
  Caller caller(e);
  const CallParams& p = caller.function();
  Flags given;
  for (std::size_t i = 0; i < x.size(); ++i) {
    given.push_back(linear[i] && x[i].defined());
    if (given[i]) caller.add_like_operand(x[i], i);
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!linear[i]) caller.add_like_operand(x[i], i);
  const DerivedRef d = derive(p, DerivedKey("push").add_all(linear).add_all(given),
                              [&] { return pushed(*p.body, linear, given); });
  return placed(caller.emit(*d, {}, d->places, caller.summed_flags()), d->places);
}

namespace transpose_rules {

void called(const TransposeCall& c) {
  using namespace call_parts;
  Caller caller(c.equation);
  const CallParams& p = caller.function();
  Flags linear, given = defined_flags(c.results), shared;
  for (std::size_t i = 0; i < given.size(); ++i)
    given[i] = given[i] && is_inexact(p.body->aval(p.body->outputs[i]).dtype);
  linear.reserve(c.x.size());
  for (std::size_t i = 0; i < c.x.size(); ++i) linear.push_back(c.linear(i));
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i]) caller.add_like_result(c.results[i], i);
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    if (!linear[i]) caller.add_like_operand(c.x[i], i);
    else shared.push_back(!caller.mapped(i));
  }
  const DerivedRef d = derive(p, DerivedKey("transpose").add_all(linear).add_all(given),
                              [&] { return transposed(*p.body, linear, given); });
  const CallResults out = caller.emit(*d, {}, d->places, shared);
  std::size_t next = 0;
  for (std::size_t i = 0; i < linear.size(); ++i) {
    if (!linear[i]) continue;
    if (const int at = d->places[next++]; at >= 0) c.cotangents[i] = out[at];
  }
}
void batched_call(const TransposeCall& c) { called(c); }

}  // namespace transpose_rules

// --- recursion -----------------------------------------------------------------------------------

namespace recursion_parts {

using namespace call_parts;

/// Results or operands that may have a tangent.
inline Flags inexact_flags(std::span<const Aval> avals) {
  Flags flags;
  for (const Aval& a : avals) flags.push_back(is_inexact(a.dtype));
  return flags;
}
inline void append_with_flags(Vec<Aval>& to, std::span<const Aval> avals, const Flags& flags) {
  for (std::size_t i = 0; i < avals.size(); ++i)
    if (flags[i]) to.emplace_back(avals[i].dtype, avals[i].shape);
}
inline Tensor or_zeros(const Tensor& t, const Aval& a) {
  return t.defined() ? t : grad_build::zeros(Aval(a.dtype, a.shape));
}

/// (x…, the tangents that there are…) → (y…, a tangent of each y that may have one). So the calls
/// inside know what theirs give.
inline std::vector<Tensor> forward(const RecursionParams& p, std::span<const Tensor> x,
                                   std::span<const Tensor> t, CallSite where,
                                   std::vector<Tensor>& tangents) {
  const RecursiveFunction& f = *p.function;
  const Flags flags = defined_flags(t), made = inexact_flags(f.outputs);
  Vec<Aval> outputs = f.outputs;
  append_with_flags(outputs, f.outputs, made);
  const RecursionParams d =
      derive_recursive(p, DerivedKey("jvp").add_all(flags), outputs, f.effects, [&] {
        Vec<Aval> avals = f.inputs;
        append_with_flags(avals, f.inputs, flags);
        return record(
            [&](std::span<const Tensor> in) {
              JvpResult r =
                  jvp_graph(*f.body, in.first(x.size()), restored(flags, in.subspan(x.size())));
              for (std::size_t i = 0; i < made.size(); ++i)
                if (made[i]) r.primals.push_back(or_zeros(r.tangents[i], f.outputs[i]));
              return std::move(r.primals);
            },
            avals, body_of("vt::jvp"));
      });
  std::vector<Tensor> operands(x.begin(), x.end());
  append_defined(operands, t);
  std::vector<Tensor> out = emit_recursive(d, operands, where);
  tangents = restored(made, std::span<const Tensor>(out).subspan(made.size()));
  out.resize(made.size());
  return out;
}

/// (x…, the cotangents that there are…) → cotangents of the wanted operands. What the body computes
/// is computed again, from x.
inline std::vector<Tensor> backward(const RecursionParams& loud, const Flags& wanted,
                                    std::span<const Tensor> x, std::span<const Tensor> cts,
                                    CallSite where) {
  const RecursionParams p = without_effects(loud);
  const RecursiveFunction& f = *p.function;
  const Flags given = defined_flags(cts);
  Vec<Aval> outputs;
  append_with_flags(outputs, f.inputs, wanted);
  const RecursionParams d =
      derive_recursive(p, DerivedKey("pull").add_all(wanted).add_all(given), outputs, false, [&] {
        Vec<Aval> avals = f.inputs;
        append_with_flags(avals, f.outputs, given);
        return record(
            [&](std::span<const Tensor> in) {
              const LinearPart linear = linearize_graph(*f.body, in.first(x.size()), wanted);
              std::vector<Tensor> out = pull_linear(linear, restored(given, in.subspan(x.size())));
              for (std::size_t i = 0; i < out.size(); ++i)
                out[i] = or_zeros(out[i], linear.wanted[i]);
              return out;
            },
            avals, body_of("vt::grad"));
      });
  std::vector<Tensor> operands(x.begin(), x.end());
  append_defined(operands, cts);
  return restored(wanted, emit_recursive(d, operands, where));
}

}  // namespace recursion_parts

namespace jvp_rules {

void recursive_call(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace recursion_parts;
  const RecursionParams p = c.as<RecursionParams>();
  const CallSite where = c.equation.where;
  if (c.mode == JvpMode::forward) {
    results = forward(p, c.x, c.t, where, tangents);
    return;
  }
  results = emit_recursive(p, c.x, where);
  LinearCall call;
  call.name = p.function->name;
  call.residuals.assign(c.x.begin(), c.x.end());
  call.push = [p, where](std::span<const Tensor> x, std::span<const Tensor> t) {
    std::vector<Tensor> made;
    forward(without_effects(p), x, t, where, made);
    return made;
  };
  call.pull = [p, where, wanted = defined_flags(c.t)](std::span<const Tensor> x,
                                                      std::span<const Tensor> cts) {
    return backward(p, wanted, x, cts, where);
  };
  tangents = emit_linear_call(std::move(call), c.t, p.function->outputs, where);
}

}  // namespace jvp_rules

namespace transpose_rules {

// As of control flow: a function that is linear in some operands is its own derivative by them, at
// zero as anywhere.
void recursive_call(const TransposeCall& c) {
  using namespace recursion_parts;
  Flags wanted;
  std::vector<Tensor> x;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    wanted.push_back(c.linear(i));
    x.push_back(c.linear(i) ? grad_build::zeros(c.operand(i)) : c.x[i]);
  }
  const std::vector<Tensor> pulled =
      backward(c.as<RecursionParams>(), wanted, x, c.results, c.equation.where);
  for (std::size_t i = 0; i < pulled.size(); ++i)
    if (wanted[i]) c.cotangents[i] = pulled[i];
}

}  // namespace transpose_rules

}  // namespace vt::detail
