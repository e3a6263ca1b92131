// Where a program itself looks at values: finds the comparisons behind its predicates and what its
// effects get, and adds a result to the Graph for each.
#include <memory>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/stack.hpp"
#include "../ir/dependence.hpp"
#include "../ir/effects.hpp"
#include "../ir/sub_graph.hpp"
#include "../record/nan_watch.hpp"
#include "../record/thread_state.hpp"

namespace vt::detail {

namespace nan_sinks {

using Flags = Vec<bool>;

/// A Graph with a result, f32[], for each of its sinks, behind its own.
struct Extended {
  GraphRef graph;
  Vec<NanSink> sinks;
  Flags deciding;  ///< inputs, no floats, that decide where it goes, or what was asked for
};
using ExtendedRef = std::shared_ptr<const Extended>;

/// Adds an equation, with results behind those that it has already where it has more.
const Equation& place(GraphBody& g, Equation e) {
  SmallVec<const Aval*, 4> operands;
  for (Var v : e.inputs) operands.push_back(&g.aval(v));
  const SmallVec<Aval, 1> avals =
      infer(e.op, e.params, {operands.data(), operands.size()}, e.where);
  for (std::size_t i = e.outputs.size(); i < avals.size(); ++i)
    e.outputs.push_back(g.fresh(avals[i]));
  g.equations.push_back(std::move(e));
  return g.equations.back();
}
Var full(GraphBody& g, double value, const Aval& aval) {
  return add_equation(g, Op::full,
                      make_params(FullParams{Scalar(value).converted(aval.dtype), aval}), {}, {});
}
Var summed(GraphBody& g, Var x, CallSite where) {
  AxesParams p;
  for (int d = 0; d < g.aval(x).shape.rank(); ++d) p.axes.push_back(d);
  return p.axes.empty() ? x
                        : add_equation(g, Op::reduce_sum, make_params(std::move(p)), {x}, where);
}

/// The operands that decide what a result of integers or bools is, if they are floats.
Vec<Var> floats_of(const GraphBody& g, const Equation& e) {
  // Behind the keys come what is put into their order.
  const std::size_t count =
      e.op == Op::sort ? static_cast<std::size_t>(e.as<SortParams>().keys) : e.inputs.size();
  Vec<Var> floats;
  for (std::size_t i = 0; i < count; ++i)
    if (is_inexact(g.aval(e.inputs[i]).dtype)) floats.push_back(e.inputs[i]);
  return floats;
}

/// NaN, as an f32[], if one of these has an element that is not finite; else 0.
Var probe_of(GraphBody& g, const Equation& e) {
  Var sum = -1;
  const auto take = [&](Var x) {
    const DType dtype = g.aval(x).dtype;
    const auto scalar = [&](double value) { return full(g, value, Aval(dtype, Shape{})); };
    if (!thread_state().nan_watch.infinities) {
      x = add_equation(g, Op::max, {}, {x, scalar(-1)}, e.where);
      x = add_equation(g, Op::min, {}, {x, scalar(1)}, e.where);
    }
    x = add_equation(g, Op::mul, {}, {x, scalar(0)}, e.where);
    if (dtype != f32)
      x = add_equation(g, Op::convert, make_params(ConvertParams{f32}), {x}, e.where);
    x = summed(g, x, e.where);
    sum = sum < 0 ? x : add_equation(g, Op::add, {}, {sum, x}, e.where);
  };
  for (Var x : floats_of(g, e)) {
    if (!is_complex(g.aval(x).dtype)) {
      take(x);
      continue;
    }
    take(add_equation(g, Op::real, {}, {x}, e.where));
    take(add_equation(g, Op::imag, {}, {x}, e.where));
  }
  return sum;
}

/// Extends a Graph and those inside of it, each once.
class Extension {
 public:
  /// `inside`: also what decides inside of the Graph, and its effects.
  explicit Extension(bool inside) : inside_(inside) {}

  /// `asked`: one flag per result; those that decide something outside.
  ExtendedRef extended(const GraphRef& graph, const Flags& asked) {
    const FlagsOfGraph key{graph.get(), asked};
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    need_stack({});
    ExtendedRef made = Body(*this, graph, asked).extended();
    known_.emplace(key, made);
    return made;
  }

 private:
  /// One Graph being extended.
  class Body {
   public:
    Body(Extension& all, const GraphRef& graph, const Flags& asked)
        : all_(all),
          source_(*graph),
          deciding_(graph->avals.size(), false),
          asking_(graph->avals.size(), false),
          wanting_(graph->avals.size(), false) {
      for (std::size_t i = 0; i < asked.size(); ++i)
        if (asked[i]) decides(source_.outputs[i]);
      for (const Equation& e : source_.equations)
        if (asks(e))
          for (Var v : e.outputs) asking_[v] = true;
      for (std::size_t i = source_.equations.size(); i-- > 0;) find_deciding(source_.equations[i]);
    }

    ExtendedRef extended() {
      auto made = std::make_shared<Extended>();
      auto graph = std::make_shared<GraphBody>(source_);
      graph->equations.clear();
      out_ = graph.get();
      for (const Equation& e : source_.equations) extend(e);
      for (Var probe : probes_) graph->outputs.push_back(probe);
      for (Var v : source_.inputs) made->deciding.push_back(deciding_[v]);
      made->sinks = std::move(sinks_);
      made->graph = std::move(graph);
      return made;
    }

   private:
    bool is_inexact_var(Var v) const { return is_inexact(source_.aval(v).dtype); }
    void decides(Var v) {
      if (!is_inexact_var(v)) deciding_[v] = true;
    }
    Flags asked_of(const Equation& e) const {
      Flags asked;
      for (Var v : e.outputs) asked.push_back(deciding_[v]);
      return asked;
    }
    bool is_asked(const Equation& e) const {
      return any_of(e.outputs, [&](Var v) { return deciding_[v]; });
    }

    /// Does it ask whether something is finite, or follow from that?
    bool asks(const Equation& e) const {
      switch (e.op) {
        case Op::is_nan:
        case Op::is_inf:
        case Op::is_finite:
        case Op::bitcast: return true;
        case Op::eq:
        case Op::ne:
          if (e.inputs[0] == e.inputs[1]) return true;
          break;
        default: break;
      }
      return family_of(e.op) != Family::structure &&
             any_of(e.inputs, [&](Var v) { return asking_[v]; });
    }
    /// Who combines a comparison with such a question has thought of it: isnan(x) | (x > 0).
    bool is_guarded(const Equation& e) const {
      return (e.op == Op::and_ || e.op == Op::or_ || e.op == Op::xor_ || e.op == Op::select) &&
             any_of(e.inputs, [&](Var v) { return asking_[v]; });
    }

    // --- which values decide, from the results back ----------------------------------------------

    void find_deciding(const Equation& e) {
      switch (e.op) {
        case Op::cond: {
          if (all_.inside_) decides(e.inputs[0]);
          for (const GraphRef& branch : e.as<CondParams>().branches)
            mark(e, 1, all_.extended(branch, asked_of(e))->deciding);
          if (is_asked(e)) decides(e.inputs[0]);
          return;
        }
        case Op::while_: return mark(e, 0, deciding_of_loop(e, asked_of(e)));
        case Op::scan: return mark(e, 0, deciding_of_loop(e, asked_of(e)));
        case Op::check:
          if (all_.inside_) decides(e.inputs[0]);
          if (all_.inside_ && e.as<CheckParams>().function == "vt::check_finite")
            wanting_[e.inputs[0]] = true;
          return;
        case Op::recursive_call: return;
        default: break;
      }
      if (const GraphRef body = body_of(e))
        return mark(e, 0, all_.extended(body, asked_of(e))->deciding);
      for (Var out : e.outputs)
        if (wanting_[out])
          for (Var v : e.inputs) wanting_[v] = true;
      if (is_asked(e) && !is_guarded(e))
        for (Var v : e.inputs) decides(v);
    }
    void mark(const Equation& e, std::size_t first, const Flags& flags) {
      for (std::size_t i = 0; i < flags.size(); ++i)
        if (flags[i]) decides(e.inputs[first + i]);
    }
    /// The body of calls of every kind; null of others.
    static GraphRef body_of(const Equation& e) {
      if (!e.params) return {};
      if (const auto* p = e.params->get_if<CallParams>()) return p->body;
      if (const auto* p = e.params->get_if<BatchedCallParams>()) return p->body;
      return {};
    }

    /// Of the operands, once the loop has passed on what its carries decide.
    Flags deciding_of_loop(const Equation& e, const Flags& asked) {
      const WhileParams* loop = e.params->get_if<WhileParams>();
      Flags operands(e.inputs.size(), false);
      const std::size_t carries = carries_of(e);
      for (std::size_t i = 0; i < carries; ++i) operands[i] = asked[i];
      if (loop && all_.inside_) add(operands, all_.extended(loop->condition, {true})->deciding);
      for (;;) {
        Flags next = operands;
        add(next, all_.extended(loop_body(e), asked_of_body(e, operands, asked))->deciding);
        if (next == operands) return operands;
        operands = std::move(next);
      }
    }
    static Flags asked_of_body(const Equation& e, const Flags& operands, const Flags& asked) {
      Flags of_body = asked;
      for (std::size_t i = 0; i < carries_of(e); ++i) of_body[i] = operands[i];
      return of_body;
    }
    static void add(Flags& to, const Flags& more) {
      for (std::size_t i = 0; i < more.size(); ++i) to[i] = to[i] || more[i];
    }

    // --- what is added ---------------------------------------------------------------------------

    void extend(const Equation& e) {
      if (e.op == Op::cond) return extend_cond(e);
      if (e.op == Op::while_) return extend_while(e);
      if (e.op == Op::scan) return extend_scan(e);
      if (const GraphRef body = body_of(e)) return extend_call(e, body);
      out_->equations.push_back(e);
      if (gets_values(e)) add_sink({.op = e.op, .where = e.where}, probe_of(*out_, e));
    }

    /// Does it make what decides something of floats, or is it an effect that gets some?
    bool gets_values(const Equation& e) const {
      if (floats_of(source_, e).empty()) return false;
      switch (e.op) {
        case Op::check: return false;  // what it prints if it fails
        case Op::debug_print: return all_.inside_;
        case Op::callback: return (all_.inside_ && has_effect(e)) || is_asked(e);
        case Op::is_finite: return wanting_[e.outputs[0]];
        default: return is_asked(e) && !asks(e);
      }
    }

    void add_sink(NanSink sink, Var probe) {
      sinks_.push_back(sink);
      probes_.push_back(probe);
    }
    /// The equation with these parameters and operands, and a further result for each sink.
    Vec<Var> with_results(const Equation& e, ParamsRef params, std::span<const Var> inputs,
                          std::size_t sinks) {
      Equation own = e;
      own.params = std::move(params);
      own.inputs.assign(inputs.begin(), inputs.end());
      const auto& outputs = place(*out_, std::move(own)).outputs;
      return {outputs.end() - sinks, outputs.end()};
    }
    /// Those inside of `e`. Of many it is only known that one of them got the value: sinks of
    /// deeply nested loops would be as many as the square of the depth.
    void add_sinks(const Equation& e, const Vec<NanSink>& sinks, const Vec<Var>& probes) {
      constexpr std::size_t most = 16;
      Var all = -1;
      for (std::size_t i = 0; i < sinks.size(); ++i) {
        const Var probe = summed(*out_, probes[i], e.where);
        if (sinks.size() <= most) add_sink(sinks[i], probe);
        else all = i == 0 ? probe : add_equation(*out_, Op::add, {}, {all, probe}, e.where);
      }
      if (all >= 0) add_sink({.op = e.op, .where = e.where}, all);
    }

    void extend_call(const Equation& e, const GraphRef& body) {
      const ExtendedRef inner = all_.extended(body, asked_of(e));
      const Vec<NanSink>& sinks = inner->sinks;
      if (sinks.empty()) return out_->equations.push_back(e);
      Equation own = e;
      ParamsRef params;
      if (const auto* p = e.params->get_if<BatchedCallParams>()) {
        BatchedCallParams longer = *p;
        longer.body = inner->graph;
        longer.function = {};
        longer.summed.resize(p->summed.size() + sinks.size(), false);
        params = make_params(std::move(longer));
      } else {
        // The program runs and is not transformed any more, for which there are rules.
        own.op = Op::call;
        params = make_params(CallParams{inner->graph, nullptr, static_cast<int>(e.inputs.size())});
      }
      add_sinks(e, sinks, with_results(own, std::move(params), e.inputs, sinks.size()));
    }

    void extend_cond(const Equation& e) {
      CondParams p = e.as<CondParams>();
      Vec<NanSink> sinks;
      Vec<ExtendedRef> branches;
      for (const GraphRef& branch : p.branches) {
        branches.push_back(all_.extended(branch, asked_of(e)));
        sinks.append(branches.back()->sinks.begin(), branches.back()->sinks.end());
      }
      if (sinks.empty()) return out_->equations.push_back(e);
      std::size_t before = 0;  // sinks of the branches before
      for (std::size_t b = 0; b < branches.size(); ++b) {
        auto branch = std::make_shared<GraphBody>(*branches[b]->graph);
        const std::size_t own = branches[b]->sinks.size();
        const Vec<Var> probes(branch->outputs.end() - own, branch->outputs.end());
        branch->outputs.resize(branch->outputs.size() - own);
        for (std::size_t i = 0; i < sinks.size(); ++i)
          branch->outputs.push_back(i >= before && i < before + own
                                        ? probes[i - before]
                                        : full(*branch, 0, Aval(f32, Shape{})));
        before += own;
        p.branches[b] = std::move(branch);
      }
      add_sinks(e, sinks, with_results(e, make_params(std::move(p)), e.inputs, sinks.size()));
    }

    void extend_scan(const Equation& e) {
      ScanParams p = e.as<ScanParams>();
      const Flags operands = deciding_of_loop(e, asked_of(e));
      const ExtendedRef inner = all_.extended(p.body, asked_of_body(e, operands, asked_of(e)));
      const Vec<NanSink>& sinks = inner->sinks;
      if (sinks.empty()) return out_->equations.push_back(e);
      p.body = inner->graph;
      add_sinks(e, sinks, with_results(e, make_params(std::move(p)), e.inputs, sinks.size()));
    }

    /// The probes of all iterations are added up in further carries. The condition is asked once
    /// more than the body runs: also behind the loop.
    void extend_while(const Equation& e) {
      WhileParams p = e.as<WhileParams>();
      const std::size_t carries = p.carries;
      const Flags asked = asked_of(e), operands = deciding_of_loop(e, asked);
      const ExtendedRef body = all_.extended(p.body, asked_of_body(e, operands, asked)),
                        condition = all_.extended(p.condition, {all_.inside_});
      Vec<NanSink> sinks = condition->sinks;
      sinks.append(body->sinks.begin(), body->sinks.end());
      if (sinks.empty()) return out_->equations.push_back(e);
      const std::size_t of_condition = condition->sinks.size();

      auto longer = std::make_shared<GraphBody>(*body->graph);
      Vec<Var> probes(longer->outputs.begin() + carries, longer->outputs.end());
      if (of_condition > 0) {
        const Vec<Var> asking(longer->inputs.begin(), longer->inputs.end());
        const Vec<Var> found = probes_of_condition(*longer, *condition, asking, Lanes(), e.where);
        probes.insert(probes.begin(), found.begin(), found.end());
      }
      longer->outputs.resize(carries);
      Vec<Var> sums;
      for (const Var probe : probes) {
        sums.push_back(longer->fresh(Aval(f32, Shape{})));
        longer->outputs.push_back(
            add_equation(*longer, Op::add, {}, {sums.back(), probe}, e.where));
      }
      longer->inputs.insert(longer->inputs.begin() + carries, sums.begin(), sums.end());
      // The condition takes the sums, too, and does nothing with them.
      auto same = std::make_shared<GraphBody>(*p.condition);
      Vec<Var> unused;
      for (std::size_t i = 0; i < sinks.size(); ++i)
        unused.push_back(same->fresh(Aval(f32, Shape{})));
      same->inputs.insert(same->inputs.begin() + carries, unused.begin(), unused.end());

      Vec<Var> inputs(e.inputs.begin(), e.inputs.end());
      Vec<Var> zeros;
      for (std::size_t i = 0; i < sinks.size(); ++i)
        zeros.push_back(full(*out_, 0, Aval(f32, p.lanes ? Shape{p.lanes.count} : Shape{})));
      inputs.insert(inputs.begin() + carries, zeros.begin(), zeros.end());
      const Lanes lanes = p.lanes;
      if (lanes) {
        const SmallVec<bool, 8> more(sinks.size(), true);
        p.lanes.mapped.insert(p.lanes.mapped.begin() + carries, more.begin(), more.end());
      }
      p.condition = std::move(same);
      p.body = std::move(longer);
      p.carries += static_cast<int>(sinks.size());
      Vec<Var> found = with_results(e, make_params(std::move(p)), inputs, sinks.size());
      if (of_condition > 0) {
        Vec<Var> asking(e.inputs.begin(), e.inputs.end());
        for (std::size_t i = 0; i < carries; ++i) asking[i] = e.outputs[i];
        const Vec<Var> last = probes_of_condition(*out_, *condition, asking, lanes, e.where);
        for (std::size_t i = 0; i < last.size(); ++i)
          found[i] = add_equation(*out_, Op::add, {}, {found[i], last[i]}, e.where);
      }
      add_sinks(e, sinks, found);
    }
    static Vec<Var> probes_of_condition(GraphBody& g, const Extended& condition,
                                        std::span<const Var> inputs, const Lanes& lanes,
                                        CallSite where) {
      Equation e;
      e.op = lanes ? Op::batched_call : Op::call;
      e.where = where;
      e.inputs.assign(inputs.begin(), inputs.end());
      if (lanes) {
        BatchedCallParams p;
        p.body = condition.graph;
        p.lanes = lanes;
        p.summed.resize(condition.graph->outputs.size(), false);
        e.params = make_params(std::move(p));
      } else {
        e.params =
            make_params(CallParams{condition.graph, nullptr, static_cast<int>(inputs.size())});
      }
      const auto& outputs = place(g, std::move(e)).outputs;
      return {outputs.begin() + 1, outputs.end()};
    }

    Extension& all_;
    const GraphBody& source_;
    Flags deciding_;  ///< by Var
    Flags asking_;    ///< likewise: it says whether something is finite
    Flags wanting_;   ///< likewise: check_finite takes it
    GraphBody* out_ = nullptr;
    Vec<NanSink> sinks_;
    Vec<Var> probes_;  ///< of the sinks
  };

  bool inside_;
  HashMap<FlagsOfGraph, ExtendedRef> known_;
};

bool is_truth(const Aval& a) { return is_bool(a.dtype) && a.shape.empty(); }

/// Where bools come in that decide: those that other runs have made.
void add_inputs(const GraphBody& g, const Flags& deciding, std::size_t result,
                Vec<NanSink>& sinks) {
  for (std::size_t i = 0; i < deciding.size(); ++i)
    if (deciding[i] && is_bool(g.aval(g.inputs[i]).dtype))
      sinks.push_back({.input = i, .result = result});
}

}  // namespace nan_sinks

WatchedGraph watched(const GraphRef& graph) {
  using namespace nan_sinks;
  WatchedGraph made{graph, {}, {}};
  const std::size_t results = graph->outputs.size();
  const auto extend = [&](bool inside, const Flags& asked, std::size_t result) {
    const ExtendedRef more = Extension(inside).extended(made.graph, asked);
    for (NanSink sink : more->sinks) {
      sink.result = result;
      made.sinks.push_back(sink);
    }
    if (!more->sinks.empty()) made.graph = more->graph;
    add_inputs(*graph, more->deciding, result, made.of_inputs);
  };
  const bool goes_ways = any_of(graph->equations, [](const Equation& e) {
    return family_of(e.op) == Family::structure || family_of(e.op) == Family::effect;
  });
  if (goes_ways) extend(true, Flags(results, false), NanSink::inside);
  for (std::size_t i = 0; i < results; ++i) {
    if (!is_truth(graph->aval(graph->outputs[i]))) continue;
    Flags asked(made.graph->outputs.size(), false);
    asked[i] = true;
    extend(false, asked, i);
  }
  return made;
}

}  // namespace vt::detail
