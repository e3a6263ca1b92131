// The derivative of scan, and the forward derivatives of cond and while.
#include "linear.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/effects.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../../trace/record/without_effects.hpp"
#include "../build.hpp"
#include "../jvp.hpp"
#include "../linearize.hpp"
#include "../transpose.hpp"
#include "residuals.hpp"

namespace vt::detail::control_linear {

using grad_build::zeros;

GraphRef shared(GraphBody&& g) { return std::make_shared<const GraphBody>(std::move(g)); }
Tensor or_zeros(const Tensor& t, const Aval& a) {
  return t.defined() ? t : zeros(Aval(a.dtype, a.shape));
}
Vec<Aval> input_avals(const GraphBody& g) {
  Vec<Aval> avals;
  for (Var v : g.inputs) avals.push_back(g.aval(v));
  return avals;
}
Aval with_lanes(const Lanes& lanes, const Aval& lane) {
  Aval a(lane.dtype, lane.shape);
  if (lanes) a.shape.insert(a.shape.begin(), lanes.count);
  return a;
}
std::vector<Tensor> emitted(Op op, ParamsRef params, std::span<const Tensor> operands,
                            CallSite where) {
  const SmallVec<Tensor, 1> out = emit_all(op, std::move(params), operands, where);
  return {out.begin(), out.end()};
}
Tensor summed_lanes(const Tensor& t) { return grad_build::sum_over(t, Axes{0}); }

Dependence differentiable() {
  return Dependence([](const Equation& e, const Aval& result) {
    if (!is_inexact(result.dtype)) return false;
    const JvpRule& rule = jvp_rules::rule_of(e.op);
    return rule.tangent || rule.whole;
  });
}

// --- forward -------------------------------------------------------------------------------------

namespace forward_parts {

/// Operands with their tangents behind them, in one group of the equation's operands (carries,
/// sequences or the rest).
struct Group {
  std::size_t first, count;
};

/// Takes a body's inputs apart: each group holds values, then the tangents of those with `flags`.
struct Split {
  std::vector<Tensor> x, t;
};
Split split(std::span<const Tensor> given, std::span<const Group> groups, const Flags& flags) {
  Split s;
  s.t.resize(flags.size());
  std::size_t next = 0;
  for (const Group& g : groups) {
    for (std::size_t i = 0; i < g.count; ++i) s.x.push_back(given[next++]);
    for (std::size_t i = g.first; i < g.first + g.count; ++i)
      if (flags[i]) s.t[i] = given[next++];
  }
  return s;
}
template <class T, class OfValue, class OfTangent>
Vec<T> interleaved(std::span<const Group> groups, const Flags& flags, const OfValue& of_value,
                   const OfTangent& of_tangent) {
  Vec<T> all;
  for (const Group& g : groups) {
    for (std::size_t i = g.first; i < g.first + g.count; ++i) all.push_back(of_value(i));
    for (std::size_t i = g.first; i < g.first + g.count; ++i)
      if (flags[i]) all.push_back(of_tangent(i));
  }
  return all;
}

struct Bodies {
  Vec<Recorded> recorded;
  std::vector<Tensor> captured;
};

std::size_t count_of(const Flags& flags, std::size_t first, std::size_t count) {
  std::size_t n = 0;
  for (std::size_t i = first; i < first + count; ++i) n += flags[i];
  return n;
}

}  // namespace forward_parts

TangentForm with_tangents(const Equation& e, std::span<const Tensor> x, std::span<const Tensor> t) {
  using namespace forward_parts;
  Flags flags;
  for (const Tensor& tangent : t) flags.push_back(tangent.defined());
  Dependence dependence = differentiable();
  const Vec<GraphRef> bodies = bodies_of(e.params);
  const std::size_t skip = e.op == Op::cond ? 1 : 0;  // the index goes to no body
  const std::size_t carries = carries_of(e), sequences = sequences_of(e);
  if (e.op != Op::cond) flags = dependence.loop_operands(e, std::move(flags));
  const Flags inner(flags.begin() + static_cast<std::ptrdiff_t>(skip), flags.end());
  const std::size_t inputs = inner.size();
  const Group groups[3] = {
      {0, carries}, {carries, sequences}, {carries + sequences, inputs - carries - sequences}};
  const Lanes lanes = e.op == Op::cond     ? e.as<CondParams>().lanes
                      : e.op == Op::while_ ? e.as<WhileParams>().lanes
                                           : Lanes{};

  // Which results get a tangent: the same in all branches.
  const GraphBody& last = *bodies.back();
  Flags out(last.outputs.size());
  const std::size_t first_run = e.op == Op::while_ ? 1 : 0;  // a condition has no derivative
  for (std::size_t b = first_run; b < bodies.size(); ++b) {
    const Flags of_body = dependence.outputs(*bodies[b], inner);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || of_body[i];
  }
  for (std::size_t i = 0; i < carries; ++i) out[i] = flags[i];

  const Vec<Aval> values = input_avals(last);
  const auto avals = interleaved<Aval>(
      groups, inner, [&](std::size_t i) { return values[i]; },
      [&](std::size_t i) { return Aval(values[i].dtype, values[i].shape); });
  Bodies made;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const GraphBody& body = *bodies[b];
    made.recorded.push_back(record(
        [&](std::span<const Tensor> given) {
          const Split s = split(given, groups, inner);
          if (b < first_run) return replay(body, s.x);
          const JvpResult r = jvp_graph(body, s.x, s.t);
          // Carries with their tangents, then the other results with theirs.
          std::vector<Tensor> all;
          const std::size_t cuts[3] = {0, carries, out.size()};
          for (int part = 0; part < 2; ++part) {
            for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) all.push_back(r.primals[i]);
            for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i)
              if (out[i]) all.push_back(or_zeros(r.tangents[i], body.aval(body.outputs[i])));
          }
          return all;
        },
        avals, {.kind = ScopeKind::branch, .transform = "vt::jvp"}));
  }
  Vec<Recorded*> parts;
  for (Recorded& r : made.recorded) parts.push_back(&r);
  made.captured = share_captures(parts);
  Vec<GraphRef> fresh;
  for (Recorded& r : made.recorded) fresh.push_back(shared(std::move(r.graph)));

  TangentForm form;
  form.value_at.resize(x.size(), -1);
  form.tangent_at.resize(x.size(), -1);
  std::vector<Tensor>& operands = form.operands;
  if (skip) {
    form.value_at[0] = 0;
    operands.push_back(x[0]);
  }
  int place = static_cast<int>(skip);
  const auto more = interleaved<Tensor>(
      groups, inner,
      [&](std::size_t i) {
        form.value_at[skip + i] = place++;
        return x[skip + i];
      },
      [&](std::size_t i) {
        form.tangent_at[skip + i] = place++;
        return or_zeros(t[skip + i], aval_of(x[skip + i]));
      });
  operands.insert(operands.end(), more.begin(), more.end());
  operands.insert(operands.end(), made.captured.begin(), made.captured.end());
  const auto lanes_with_tangents = [&](Lanes& own) {
    if (!own) return;
    const auto flags_of = [&](std::size_t i) { return static_cast<bool>(lanes.mapped[skip + i]); };
    own.mapped.clear();
    if (skip) own.mapped.push_back(lanes.mapped[0]);
    for (bool m : interleaved<bool>(groups, inner, flags_of, flags_of)) own.mapped.push_back(m);
    for (std::size_t i = 0; i < made.captured.size(); ++i) own.mapped.push_back(false);
  };
  ParamsRef params = with_bodies(e.params, fresh);
  const int with_tangents = static_cast<int>(carries + count_of(inner, 0, carries));
  if (e.op == Op::cond) {
    CondParams p = params->as<CondParams>();
    lanes_with_tangents(p.lanes);
    params = make_params(std::move(p));
  } else if (e.op == Op::while_) {
    WhileParams p = params->as<WhileParams>();
    p.carries = with_tangents;
    lanes_with_tangents(p.lanes);
    params = make_params(std::move(p));
  } else {
    ScanParams p = params->as<ScanParams>();
    p.carries = with_tangents;
    p.sequences = static_cast<int>(sequences + count_of(inner, carries, sequences));
    params = make_params(std::move(p));
  }
  form.params = std::move(params);
  place = 0;
  const std::size_t cuts[3] = {0, carries, out.size()};
  form.result_tangent_at.resize(out.size(), -1);
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) form.result_at.push_back(place++);
    for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i)
      if (out[i]) form.result_tangent_at[i] = place++;
  }
  return form;
}

void forward(const Equation& e, std::span<const Tensor> x, std::span<const Tensor> t,
             std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const TangentForm form = with_tangents(e, x, t);
  const std::vector<Tensor> all = emitted(e.op, form.params, form.operands, e.where);
  results.clear();
  tangents.clear();
  for (int i : form.result_at) results.push_back(all[i]);
  for (int i : form.result_tangent_at) tangents.push_back(i < 0 ? Tensor() : all[i]);
}

LinearRule forward_push(const Equation& equation, const Flags& wanted) {
  return [e = without_effects(equation), wanted](std::span<const Tensor> x,
                                                 std::span<const Tensor> in) {
    std::vector<Tensor> results, tangents;
    forward(e, x.first(wanted.size()), in, results, tangents);
    return tangents;
  };
}

ControlLinear linearize(const Equation& e, std::span<const Tensor> x, const Flags& wanted) {
  if (e.op == Op::cond) return linearize_cond(e, x, wanted);
  return e.op == Op::while_ ? linearize_while(e, x, wanted) : linearize_scan(e, x, wanted);
}

// --- scan ----------------------------------------------------------------------------------------

namespace scan_parts {

struct Linear {
  Equation equation;
  Flags operands;  // with a tangent
  LinearPart part;
  Vec<Residual> residuals;
  GraphBody derived;  // residuals made of those that are stacked
  std::size_t carries = 0, looped = 0;

  const ScanParams& params() const { return equation.as<ScanParams>(); }
  /// The body's derivative with its residuals as one iteration sees them.
  LinearPart at(std::span<const Tensor> round_residuals) const {
    LinearPart p;
    p.graph = part.graph;
    p.tangent_of = part.tangent_of;
    p.wanted = part.wanted;
    p.residuals.assign(round_residuals.begin(), round_residuals.end());
    return p;
  }
};

/// One scan over the derivative of the body, with residuals as sequences and as the rest.
/// `saved`: the equation's operands, the stacked residuals, then what the body captured.
struct ResidualOperands {
  std::vector<Tensor> sequences, rest;
  Vec<std::pair<bool, std::size_t>> place;  // per residual: among the sequences?, index
};
ResidualOperands residual_operands(const Linear& l, std::span<const Tensor> saved) {
  ResidualOperands o;
  const std::size_t count = l.operands.size();
  for (const Residual& r : l.residuals) {
    if (r.from == Residual::From::derived) continue;
    const bool rest = r.from == Residual::From::operand;
    o.place.emplace_back(!rest, rest ? o.rest.size() : o.sequences.size());
    (rest ? o.rest : o.sequences)
        .push_back(saved[r.from == Residual::From::kept ? count + r.index : r.index]);
  }
  return o;
}
std::vector<Tensor> round_residuals(const Linear& l, const ResidualOperands& o,
                                    std::span<const Tensor> sequences,
                                    std::span<const Tensor> rest) {
  std::vector<Tensor> all, stacked(l.derived.inputs.size()), derived;
  std::size_t next = 0;
  for (const Residual& r : l.residuals) {
    all.emplace_back();
    if (r.from == Residual::From::derived) continue;
    const auto& [sequence, i] = o.place[next++];
    all.back() = sequence ? sequences[i] : rest[i];
    if (r.from == Residual::From::kept) stacked[r.index] = all.back();
  }
  if (!l.derived.outputs.empty()) derived = replay(l.derived, stacked);
  for (std::size_t k = 0; k < all.size(); ++k)
    if (l.residuals[k].from == Residual::From::derived) all[k] = derived[l.residuals[k].index];
  return all;
}

Aval element_of(const Tensor& xs) {
  Aval a(xs.dtype(), xs.shape());
  a.shape.erase(a.shape.begin());
  return a;
}

/// Cotangents of the results → cotangents of the operands: the loop in the other direction.
std::vector<Tensor> pull(const Linear& l, std::span<const Tensor> saved,
                         std::span<const Tensor> cts) {
  const ScanParams& p = l.params();
  const GraphBody& body = *p.body;
  const ResidualOperands res = residual_operands(l, saved);
  // Carried: cotangents of the carries that vary, and the sums for the operands that all iterations
  // share.
  Vec<std::size_t> carried, elements, shared_operands, given;
  for (std::size_t i = 0; i < l.operands.size(); ++i)
    if (l.operands[i])
      (i < l.carries ? carried : i < l.looped ? elements : shared_operands).push_back(i);
  for (std::size_t i = l.carries; i < cts.size(); ++i)
    if (cts[i].defined()) given.push_back(i);

  std::vector<Tensor> operands;
  for (std::size_t i : carried) operands.push_back(or_zeros(cts[i], aval_of(saved[i])));
  for (std::size_t i : shared_operands) operands.push_back(zeros(aval_of(saved[i])));
  Vec<Aval> avals;
  for (const Tensor& t : operands) avals.push_back(aval_of(t));
  const std::size_t carries = operands.size();
  for (std::size_t i : given) {
    operands.push_back(cts[i]);
    avals.push_back(element_of(cts[i]));
  }
  for (const Tensor& t : res.sequences) {
    operands.push_back(t);
    avals.push_back(element_of(t));
  }
  for (const Tensor& t : res.rest) {
    operands.push_back(t);
    avals.push_back(aval_of(t));
  }
  const std::size_t first_given = carries, first_residual = first_given + given.size(),
                    first_rest = first_residual + res.sequences.size();
  Recorded step = record(
      [&](std::span<const Tensor> in) {
        std::vector<Tensor> of_results(body.outputs.size());
        for (std::size_t k = 0; k < carried.size(); ++k) of_results[carried[k]] = in[k];
        for (std::size_t k = 0; k < given.size(); ++k) of_results[given[k]] = in[first_given + k];
        const LinearPart part = l.at(round_residuals(
            l, res, in.subspan(first_residual, res.sequences.size()), in.subspan(first_rest)));
        std::vector<Tensor> sums(l.part.wanted.size());
        for (std::size_t k = 0; k < shared_operands.size(); ++k)
          sums[carried.size() + elements.size() + k] = in[carried.size() + k];
        const std::vector<Tensor> pulled = pull_linear(part, of_results, sums);
        std::vector<Tensor> out;
        std::size_t next = 0;
        for (std::size_t k = 0; k < carried.size(); ++k, ++next)
          out.push_back(or_zeros(pulled[next], part.wanted[next]));
        std::vector<Tensor> ys;
        for (std::size_t k = 0; k < elements.size(); ++k, ++next)
          ys.push_back(or_zeros(pulled[next], part.wanted[next]));
        for (std::size_t k = 0; k < shared_operands.size(); ++k, ++next)
          out.push_back(pulled[next]);
        out.insert(out.end(), ys.begin(), ys.end());
        return out;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::grad"});
  std::vector<Tensor> all(l.operands.size());
  if (step.graph.outputs.empty()) return all;
  operands.insert(operands.end(), step.captured.begin(), step.captured.end());
  ScanParams q;
  q.carries = static_cast<int>(carries);
  q.sequences = static_cast<int>(given.size() + res.sequences.size());
  q.length = p.length;
  q.reverse = !p.reverse;
  q.body = shared(std::move(step.graph));
  const std::vector<Tensor> out =
      emitted(Op::scan, make_params(std::move(q)), operands, l.equation.where);
  std::size_t next = 0;
  for (std::size_t i : carried) all[i] = out[next++];
  for (std::size_t i : shared_operands) all[i] = out[next++];
  for (std::size_t i : elements) all[i] = out[next++];
  return all;
}

/// Tangents of the operands → tangents of the results.
std::vector<Tensor> push(const Linear& l, std::span<const Tensor> saved,
                         std::span<const Tensor> ts) {
  const ScanParams& p = l.params();
  const GraphBody& body = *p.body;
  const ResidualOperands res = residual_operands(l, saved);
  Vec<std::size_t> of_group[3];
  for (std::size_t i = 0; i < l.operands.size(); ++i)
    if (l.operands[i]) of_group[i < l.carries ? 0 : i < l.looped ? 1 : 2].push_back(i);
  std::vector<Tensor> operands;
  Vec<Aval> avals;
  const auto add = [&](const Tensor& t, bool element) {
    operands.push_back(t);
    avals.push_back(element ? element_of(t) : Aval(t.dtype(), t.shape()));
  };
  const auto tangent = [&](std::size_t i) {
    return or_zeros(i < ts.size() ? ts[i] : Tensor(), aval_of(saved[i]));
  };
  for (std::size_t i : of_group[0]) add(tangent(i), false);
  for (std::size_t i : of_group[1]) add(tangent(i), true);
  for (const Tensor& t : res.sequences) add(t, true);
  for (std::size_t i : of_group[2]) add(tangent(i), false);
  for (const Tensor& t : res.rest) add(t, false);
  const std::size_t c = of_group[0].size(), s = of_group[1].size(), r = of_group[2].size(),
                    rs = res.sequences.size();
  Flags varies(body.outputs.size());
  for (std::size_t i = 0; i < varies.size(); ++i)
    varies[i] = i < l.carries ? l.operands[i] : l.part.tangent_of[i] >= 0;
  Recorded step = record(
      [&](std::span<const Tensor> in) {
        const LinearPart part =
            l.at(round_residuals(l, res, in.subspan(c + s, rs), in.subspan(c + s + rs + r)));
        std::vector<Tensor> given(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(c + s));
        given.insert(given.end(), in.begin() + static_cast<std::ptrdiff_t>(c + s + rs),
                     in.begin() + static_cast<std::ptrdiff_t>(c + s + rs + r));
        const std::vector<Tensor> pushed = push_linear(part, given);
        std::vector<Tensor> out;
        for (std::size_t i = 0; i < varies.size(); ++i)
          if (varies[i]) out.push_back(or_zeros(pushed[i], body.aval(body.outputs[i])));
        return out;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::jvp"});
  std::vector<Tensor> all(body.outputs.size());
  if (step.graph.outputs.empty()) return all;
  operands.insert(operands.end(), step.captured.begin(), step.captured.end());
  ScanParams q;
  q.carries = static_cast<int>(c);
  q.sequences = static_cast<int>(s + rs);
  q.length = p.length;
  q.reverse = p.reverse;
  q.body = shared(std::move(step.graph));
  const std::vector<Tensor> out =
      emitted(Op::scan, make_params(std::move(q)), operands, l.equation.where);
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (varies[i]) all[i] = out[next++];
  return all;
}

/// While it lives, residuals are kept for each iteration of a scan.
class Stacking {
 public:
  explicit Stacking(std::int64_t iterations) : before_(thread_state().stacked) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    thread_state().stacked =
        std::min(most, before_ * std::clamp<std::int64_t>(iterations, 1, most));
  }
  ~Stacking() { thread_state().stacked = before_; }
  Stacking(const Stacking&) = delete;
  Stacking& operator=(const Stacking&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace scan_parts

// Each iteration's residuals become a sequence; those that are elements of the sequences or shared
// by all iterations are not copied.
ControlLinear linearize_scan(const Equation& e, std::span<const Tensor> x, const Flags& wanted) {
  using namespace scan_parts;
  const auto& p = e.as<ScanParams>();
  // What is computed once only is kept once only. A choice between a table and what an iteration
  // makes of it becomes one of few elements, and so does its derivative.
  const GraphBody body = simplify(*p.body);
  auto l = std::make_shared<Linear>();
  l->equation = e;
  l->carries = static_cast<std::size_t>(p.carries);
  l->looped = l->carries + static_cast<std::size_t>(p.sequences);
  Dependence dependence = differentiable();
  l->operands = dependence.loop_operands(e, wanted);
  for (std::size_t i = 0; i < l->operands.size(); ++i)
    l->operands[i] = l->operands[i] && has_derivative(aval_of(x[i]));

  const std::size_t results = body.outputs.size();
  Recorded step = record(
      [&](std::span<const Tensor> in) {
        {
          const Stacking stacking(p.length);
          l->part = linearize_graph(body, in, l->operands);
        }
        std::vector<Tensor> out = std::move(l->part.outputs), stacked;
        for (const Tensor& r : l->part.residuals) {
          std::size_t at = in.size();
          for (std::size_t i = l->carries; i < in.size(); ++i)
            if (same_value(in[i], r)) at = i;
          if (at < in.size()) {
            l->residuals.push_back(
                {at < l->looped ? Residual::From::sequence : Residual::From::operand, at});
            continue;
          }
          std::size_t k = 0;
          while (k < stacked.size() && !same_value(stacked[k], r)) ++k;
          if (k == stacked.size()) stacked.push_back(r);
          l->residuals.push_back({Residual::From::kept, k});
        }
        l->part.outputs.clear();
        l->part.residuals.clear();
        out.insert(out.end(), stacked.begin(), stacked.end());
        return out;
      },
      input_avals(body), {.kind = ScopeKind::branch, .transform = "vt::grad"});
  const Derived derived =
      derive(step.graph, std::span<const Var>(step.graph.outputs).subspan(results));
  for (Residual& r : l->residuals) {
    if (r.from != Residual::From::kept) continue;
    const int place = derived.place[r.index];
    if (place >= 0) r = {Residual::From::derived, static_cast<std::size_t>(place)};
    else
      r.index = static_cast<std::size_t>(
          std::find(derived.kept.begin(), derived.kept.end(), r.index) - derived.kept.begin());
  }
  step.graph.outputs.resize(results);
  step.graph.outputs.append(derived.graph.inputs.begin(), derived.graph.inputs.end());
  l->derived = derived.graph;
  std::vector<Tensor> operands(x.begin(), x.end());
  operands.insert(operands.end(), step.captured.begin(), step.captured.end());
  ScanParams q = p;
  q.body = shared(std::move(step.graph));
  std::vector<Tensor> out = emitted(Op::scan, make_params(std::move(q)), operands, e.where);
  return control_linear_of("vt::scan", l, {x.begin(), x.end()}, out, results);
}

}  // namespace vt::detail::control_linear
