// Batch rules of equations that own a sub-graph: the body is batched and stays a body, and custom
// derivative rules are batched with it, so that differentiating afterwards still uses them.
#include <memory>
#include <mutex>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/ir/dependence.hpp"
#include "../../../trace/record/recursion.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../active_lanes.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace structure_batch {

using MappedAxes = Vec<MappedAxis>;

/// What the body becomes depends on it.
std::int64_t schedule_key() { return static_cast<std::int64_t>(thread_state().schedule); }

struct BatchedBody {
  Recorded recorded;
  MappedAxes axes;  // of the results
};

// The lanes that a rule of the user's, or of an equation that knows its derivatives, is called for.
// Rules run when the function is differentiated. So what tells which lanes run, if not all do, is
// an explicit operand more, the last one.
struct RuleLanes {
  std::int64_t lanes;
  AxisRef name;
  bool some;  // not all of them run
  CallSite where;

  explicit RuleLanes(const BatchCall& c)
      : lanes(c.lanes), name(c.axis.name), some(c.axis.active), where(c.where()) {}

  LaneAxis of(const Tensor& count) const {
    return {name, some ? active_lanes(count, 0, lanes, where) : nullptr};
  }
  // Takes the operand at `place` out of the arguments of a rule.
  Tensor taken(std::vector<Tensor>& arguments, std::size_t place) const {
    if (!some) return {};
    const Tensor count = arguments[place];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(place));
    return count;
  }
};

// Do the equation's rules need that operand?
bool counts_lanes(const BatchCall& c) { return c.axis.active && c.as<CallParams>().rule; }

// The body for all lanes, as a Graph of the equation's operands. `all_mapped`: every result gets a
// lane axis.
BatchedBody batch_body(const BatchCall& c, bool all_mapped) {
  Vec<Aval> avals;
  for (const Batched& x : c.operands) avals.push_back(aval_of(x.value));
  const std::size_t place = c.as<CallParams>().explicit_operands;
  if (counts_lanes(c))
    avals.insert(avals.begin() + static_cast<std::ptrdiff_t>(place), aval_of(c.axis.active->count));
  BatchedBody result;
  result.recorded = record(
      [&](std::span<const Tensor> tracers) {
        std::vector<Tensor> all(tracers.begin(), tracers.end());
        LaneAxis axis = c.axis;
        if (counts_lanes(c)) axis = RuleLanes(c).of(RuleLanes(c).taken(all, place));
        Vec<Batched> inputs;
        for (std::size_t i = 0; i < all.size(); ++i) inputs.push_back({all[i], c.operands[i].axis});
        std::vector<Tensor> outputs;
        for (Batched& out : batch_graph(*c.as<CallParams>().body, inputs, c.lanes, axis)) {
          if (all_mapped && !out.axis)
            out = {lanes::broadcast(out.value, c.lanes, 0, c.where()), 0};
          result.axes.push_back(out.axis);
          outputs.push_back(std::move(out.value));
        }
        return outputs;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"});
  return result;
}

BatchedList emit_body(const BatchCall& c, BatchedBody body,
                      std::shared_ptr<const CustomRule> rule) {
  std::vector<Tensor> operands;
  for (const Batched& x : c.operands) operands.push_back(x.value);
  operands.insert(operands.end(), body.recorded.captured.begin(), body.recorded.captured.end());
  CallParams p = c.as<CallParams>();
  if (counts_lanes(c))
    operands.insert(operands.begin() + p.explicit_operands++, c.axis.active->count);
  p.body = std::make_shared<const GraphBody>(std::move(body.recorded.graph));
  p.rule = std::move(rule);
  BatchedList results;
  std::size_t k = 0;
  for (Tensor& t : emit_all(c.equation.op, make_params(std::move(p)), operands, c.where()))
    results.push_back({std::move(t), body.axes[k++]});
  return results;
}

MappedAxes explicit_axes(const BatchCall& c) {
  MappedAxes axes;
  for (int i = 0; i < c.as<CallParams>().explicit_operands; ++i) axes.push_back(c.operands[i].axis);
  return axes;
}

// A cotangent as its operand needs it: lanes at the operand's axis, or summed when all lanes share
// the operand.
Tensor cotangent_for(const Batched& cotangent, const MappedAxis& axis, std::int64_t lanes,
                     CallSite where) {
  if (axis) return lanes::at_axis(cotangent, *axis, lanes, where);
  if (!is_inexact(cotangent.value.dtype()))
    return full_tensor(Scalar(false).converted(cotangent.value.dtype()),
                       lanes::lane_aval(cotangent));
  if (cotangent.axis)
    return emit(Op::reduce_sum, make_params(AxesParams{Axes{*cotangent.axis}}), {cotangent.value},
                where);
  const DType dtype = cotangent.value.dtype();  // every lane gives the same
  return emit(Op::mul, {},
              {cotangent.value, full_tensor(Scalar(static_cast<double>(lanes)).converted(dtype),
                                            Aval(dtype, Shape{}))},
              where);
}

// A derivative rule has run on the wrong number of values: the user's, or of the transform that
// calls it.
void check_count(const CustomRule& rule, const char* part, std::size_t got, std::size_t wanted,
                 CallSite where) {
  if (got == wanted) return;
  fail(ErrorKind::tree,
       "vt::vmap: the " + std::string(part) + " rule of " +
           (rule.name.empty() ? "a custom function" : rule.name) + " gave " + std::to_string(got) +
           " values, not " + std::to_string(wanted),
       where);
}

}  // namespace structure_batch

BatchedList call(const BatchCall& c) {
  using namespace structure_batch;
  const auto& p = c.as<CallParams>();
  // With a name the lanes are those of one vmap only.
  if (!p.function || c.axis.name) return emit_body(c, batch_body(c, false), p.rule);
  DerivedKey key("vmap");
  Borrowed operands;
  key.add(c.lanes).add(thread_state().must_vectorize).add(structure_batch::schedule_key());
  for (const Batched& x : c.operands) {
    key.add(x.axis.value_or(-1));
    operands.add(x.value);
  }
  const DerivedRef d = derive(p, key, [&] {
    BatchedBody body = batch_body(c, false);
    DerivedFunction made = derived_of(std::move(body.recorded));
    for (const MappedAxis& axis : body.axes) made.places.push_back(axis.value_or(-1));
    return made;
  });
  BatchedList results;
  const CallResults made = emit_call(*d, operands, c.where());
  for (std::size_t i = 0; i < made.size(); ++i)
    results.push_back({made[i], d->places[i] < 0 ? std::nullopt : MappedAxis(d->places[i])});
  return results;
}

// The body of one lane of the call is batched; the lanes of this vmap come behind those of the
// call.
BatchedList batched_call(const BatchCall& c) {
  const auto& p = c.as<BatchedCallParams>();
  if (p.parts_lanes()) return lane_call(c);
  DerivedKey key("vmap lanes");
  key.add(c.lanes).add(thread_state().must_vectorize).add(structure_batch::schedule_key());
  std::vector<Tensor> operands;
  Vec<bool> mapped;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    mapped.push_back(c.mapped(i));
    operands.push_back(
        c.mapped(i) ? lanes::at_axis(c.operands[i], p.lanes.mapped[i] ? 1 : 0, c.lanes, c.where())
                    : c.operands[i].value);
  }
  key.add_all(mapped);
  const auto make = [&] {
    Vec<Aval> avals;
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      const Aval& lane = p.body->aval(p.body->inputs[i]);
      avals.emplace_back(lane.dtype,
                         mapped[i] ? lanes::inserted(lane.shape, 0, c.lanes) : lane.shape);
    }
    return derived_of(record(
        [&](std::span<const Tensor> tracers) {
          Vec<Batched> inputs;
          for (std::size_t i = 0; i < tracers.size(); ++i)
            inputs.push_back({tracers[i], mapped[i] ? MappedAxis(0) : std::nullopt});
          std::vector<Tensor> outputs;
          for (const Batched& out : batch_graph(*p.body, inputs, c.lanes, c.axis))
            outputs.push_back(lanes::at_axis(out, 0, c.lanes, c.where()));
          return outputs;
        },
        avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"}));
  };
  // With a name the lanes are those of one vmap only.
  const CallParams function{p.body, nullptr, 0, c.axis.name ? CalledRef() : p.function};
  const DerivedRef d = derive(function, key, make);
  BatchedCallParams all = p;
  all.body = d->body;
  all.function = d->function;
  operands.insert(operands.end(), d->captured.begin(), d->captured.end());
  all.lanes.mapped.resize(operands.size(), false);
  BatchedList results;
  for (Tensor& t : emit_all(Op::batched_call, make_params(std::move(all)), operands, c.where()))
    results.push_back({std::move(t), p.summed[results.size()] ? 0 : 1});
  return results;
}

// The body for all lanes, which lie at axis 0 of what they differ in. Where they part inside,
// vt::cond sends each its own way: to calls of the function for one lane, which the executor brings
// together again.
BatchedList recursive_call(const BatchCall& c) {
  const auto& p = c.as<RecursionParams>();
  const RecursiveFunction& f = *p.function;
  Dependence::Flags mapped;
  std::vector<Tensor> operands;
  for (const Batched& x : c.operands) {
    mapped.push_back(x.axis.has_value());
    operands.push_back(x.axis ? lanes::at_axis(x, 0, c.lanes, c.where()) : x.value);
  }
  const Dependence::Flags out = Dependence().results(c.graph, c.equation, mapped);
  const auto of_lanes = [&](const Vec<Aval>& avals, const Dependence::Flags& flags) {
    Vec<Aval> all;
    for (std::size_t i = 0; i < avals.size(); ++i)
      all.push_back(flags[i] ? Aval(avals[i].dtype, lanes::inserted(avals[i].shape, 0, c.lanes))
                             : avals[i]);
    return all;
  };
  const DerivedKey key = DerivedKey("vmap")
                             .add(c.lanes)
                             .add(thread_state().must_vectorize)
                             .add(structure_batch::schedule_key())
                             .add_all(mapped);
  const RecursionParams d = derive_recursive(p, key, of_lanes(f.outputs, out), f.effects, [&] {
    return record(
        [&](std::span<const Tensor> in) {
          Vec<Batched> inputs;
          for (std::size_t i = 0; i < in.size(); ++i)
            inputs.push_back({in[i], mapped[i] ? MappedAxis(0) : std::nullopt});
          std::vector<Tensor> results;
          for (const Batched& b : batch_graph(*f.body, inputs, c.lanes))
            results.push_back(out[results.size()] ? lanes::at_axis(b, 0, c.lanes, c.where())
                                                  : b.value);
          return results;
        },
        of_lanes(f.inputs, mapped), {.kind = ScopeKind::branch, .transform = "vt::vmap"});
  });
  BatchedList results;
  for (Tensor& t : emit_recursive(d, operands, c.where())) {
    const bool own = out[results.size()];
    results.push_back({std::move(t), own ? MappedAxis(0) : std::nullopt});
  }
  return results;
}

BatchedList custom_jvp(const BatchCall& c) {
  using namespace structure_batch;
  BatchedBody body = batch_body(c, true);
  auto batched = std::make_shared<CustomRule>(*c.as<CallParams>().rule);
  batched->jvp = [rule = c.as<CallParams>().rule, in_axes = explicit_axes(c), out_axes = body.axes,
                  own = RuleLanes(c)](std::span<const Tensor> given) {
    std::vector<Tensor> arguments(given.begin(), given.end());
    const std::size_t count = in_axes.size();
    own.taken(arguments, arguments.size() - 1);  // it has no tangent
    const LaneAxis axis = own.of(own.taken(arguments, count));
    // A tangent has its primal's lanes.
    Vec<Batched> inputs;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      inputs.push_back({arguments[i], in_axes[i % count]});
    std::vector<Tensor> results;
    for (const Batched& out : batch_function(rule->jvp, inputs, own.lanes, "vt::vmap", axis))
      results.push_back(
          lanes::at_axis(out, *out_axes[results.size() % out_axes.size()], own.lanes, own.where));
    check_count(*rule, "jvp", results.size(), 2 * out_axes.size(), own.where);
    return results;
  };
  if (batched->transpose)
    batched->transpose = [rule = c.as<CallParams>().rule, in_axes = explicit_axes(c),
                          out_axes = body.axes, own = RuleLanes(c)](std::span<const Tensor> given) {
      std::vector<Tensor> arguments(given.begin(), given.end());
      const LaneAxis axis = own.of(own.taken(arguments, arguments.size() - 1));
      const std::size_t linear = rule->linear;
      Vec<Batched> inputs;
      for (std::size_t i = 0; i < arguments.size(); ++i)
        inputs.push_back({arguments[i], i < out_axes.size()
                                            ? out_axes[i]
                                            : in_axes[linear + i - out_axes.size()]});
      std::vector<Tensor> results;
      for (const Batched& out :
           batch_function(rule->transpose, inputs, own.lanes, "vt::vmap", axis))
        results.push_back(cotangent_for(out, in_axes[results.size()], own.lanes, own.where));
      return results;
    };
  return emit_body(c, std::move(body), std::move(batched));
}

namespace structure_batch {

// The rules of an equation that knows its derivatives itself, for all lanes. Tensors that are zero
// (undefined) stay so.
struct OwnLanes {
  std::shared_ptr<const OwnDerivative> own;
  MappedAxes in, out;
  RuleLanes of;

  /// Operands, residuals or tangents without what tells which lanes run, the last of them if it is
  /// there.
  std::span<const Tensor> of_lane(std::span<const Tensor> all) const {
    return all.first(all.size() - of.some);
  }
  LaneAxis axis(std::span<const Tensor> all) const {
    return of.of(of.some ? all.back() : Tensor());
  }
  /// rule(a, b) for all lanes: `a` and `b` have theirs at those axes. Results that are zero are
  /// empty.
  Vec<Batched> run(const LinearRule& rule, const LaneAxis& axis, std::span<const Tensor> a,
                   const MappedAxes& a_axes, std::span<const Tensor> b,
                   const MappedAxes& b_axes) const {
    Vec<Batched> inputs;
    Vec<bool> given, made;
    const auto add = [&](std::span<const Tensor> tensors, const MappedAxes& axes) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        given.push_back(tensors[i].defined());
        if (given.back()) inputs.push_back({tensors[i], axes[i]});
      }
    };
    add(a, a_axes);
    add(b, b_axes);
    const FlatFunction one = [&](std::span<const Tensor> in) {
      std::vector<Tensor> all, kept;
      std::size_t next = 0;
      for (bool g : given) all.push_back(g ? in[next++] : Tensor());
      made.clear();
      for (Tensor& t : rule(std::span<const Tensor>(all).first(a.size()),
                            std::span<const Tensor>(all).subspan(a.size()))) {
        made.push_back(t.defined());
        if (t.defined()) kept.push_back(std::move(t));
      }
      return kept;
    };
    const Vec<Batched> results = batch_function(one, inputs, of.lanes, "vt::vmap", axis);
    Vec<Batched> all;
    std::size_t next = 0;
    for (bool m : made) all.push_back(m ? results[next++] : Batched());
    return all;
  }
  /// A result or its tangent with lanes where they belong.
  Tensor placed(const Batched& x, const MappedAxis& at) const {
    if (!x.value.defined()) return {};
    if (at) return lanes::at_axis(x, *at, of.lanes, of.where);
    if (x.axis)
      fail(ErrorKind::transform,
           "internal: a value that lanes share has a derivative that they do not", of.where);
    return x.value;
  }
  std::vector<Tensor> placed(const Vec<Batched>& all) const {
    std::vector<Tensor> values;
    for (const Batched& x : all) values.push_back(placed(x, out[values.size() % out.size()]));
    return values;
  }
  std::vector<Tensor> cotangents(const Vec<Batched>& all) const {
    std::vector<Tensor> values;
    for (const Batched& x : all)
      values.push_back(x.value.defined() ? cotangent_for(x, in[values.size()], of.lanes, of.where)
                                         : Tensor());
    if (of.some) values.emplace_back();
    return values;
  }
  /// The cotangents of results, of which those that lanes share are given to the first lane alone:
  /// what the lanes make of them is summed.
  std::vector<Tensor> of_one_lane(std::span<const Tensor> cts, MappedAxes& axes) const {
    std::vector<Tensor> values(cts.begin(), cts.end());
    axes = out;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (axes[i] || !values[i].defined()) continue;
      const Aval one(values[i].dtype(), lanes::inserted(values[i].shape(), 0, 1));
      PadParams p{Shape::filled(one.shape.size(), 0), Shape::filled(one.shape.size(), 0),
                  Shape::filled(one.shape.size(), 0)};
      p.high[0] = of.lanes - 1;
      const Tensor zero = full_tensor(Scalar(0.0).converted(one.dtype), Aval(one.dtype, Shape{}));
      values[i] = emit(
          Op::pad, make_params(std::move(p)),
          {emit(Op::reshape, make_params(ShapeParams{one.shape}), {values[i]}, of.where), zero},
          of.where);
      axes[i] = 0;
    }
    return values;
  }

  Linearization linearized(std::span<const Tensor> x, Vec<bool> wanted) const {
    if (of.some) wanted.pop_back();
    auto lane = std::make_shared<Linearization>();
    const LinearRule at_point = [&](std::span<const Tensor> primals, std::span<const Tensor>) {
      *lane = own->linearize(primals, wanted);
      std::vector<Tensor> all = std::move(lane->results);
      all.insert(all.end(), lane->residuals.begin(), lane->residuals.end());
      lane->residuals.clear();
      return all;
    };
    const Vec<Batched> made = run(at_point, axis(x), of_lane(x), in, {}, {});
    Linearization l;
    MappedAxes saved;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (i < out.size()) {
        l.results.push_back(placed(made[i], out[i]));
        continue;
      }
      l.residuals.push_back(made[i].value);
      saved.push_back(made[i].axis);
    }
    if (of.some) l.residuals.push_back(x.back());
    l.tangents = lane->tangents;
    l.push = [self = *this, lane, saved](std::span<const Tensor> residuals,
                                         std::span<const Tensor> t) {
      return self.placed(self.run(lane->push, self.axis(residuals), self.of_lane(residuals), saved,
                                  self.of_lane(t), self.in));
    };
    l.pull = [self = *this, lane, saved](std::span<const Tensor> residuals,
                                         std::span<const Tensor> cts) {
      MappedAxes axes;
      const std::vector<Tensor> given = self.of_one_lane(cts, axes);
      return self.cotangents(
          self.run(lane->pull, self.axis(residuals), self.of_lane(residuals), saved, given, axes));
    };
    return l;
  }
};

std::shared_ptr<const CustomRule> own_rule(const CustomRule& rule, const OwnLanes& lanes) {
  auto batched = std::make_shared<CustomRule>(rule);
  auto own = std::make_shared<OwnDerivative>(*rule.own);
  OwnLanes self = lanes;
  self.own = rule.own;
  own->forward = [self](std::span<const Tensor> x, std::span<const Tensor> t) {
    return self.placed(self.run(self.own->forward, self.axis(x), self.of_lane(x), self.in,
                                self.of_lane(t), self.in));
  };
  own->linearize = [self](std::span<const Tensor> x, const Vec<bool>& wanted) {
    return self.linearized(x, wanted);
  };
  if (own->transpose)
    own->transpose = [self](std::span<const Tensor> x, std::span<const Tensor> cts) {
      MappedAxes axes;
      const std::vector<Tensor> given = self.of_one_lane(cts, axes);
      return self.cotangents(
          self.run(self.own->transpose, self.axis(x), self.of_lane(x), self.in, given, axes));
    };
  batched->own = std::move(own);
  if (rule.quiet) batched->quiet = own_rule(*rule.quiet, lanes);
  return batched;
}

}  // namespace structure_batch

BatchedList custom_vjp(const BatchCall& c) {
  using namespace structure_batch;
  if (const auto& rule = c.as<CallParams>().rule; rule->own) {
    BatchedBody body = batch_body(c, false);
    const OwnLanes lanes{rule->own, explicit_axes(c), body.axes, RuleLanes(c)};
    return emit_body(c, std::move(body), own_rule(*rule, lanes));
  }
  BatchedBody body = batch_body(c, true);
  // Where the lanes of the residuals lie, found when the forward rule runs. The same on every run,
  // so any of them may tell.
  struct Residuals {
    Mutex mutex;
    MappedAxes axes;
  };
  auto residuals = std::make_shared<Residuals>();
  auto batched = std::make_shared<CustomRule>(*c.as<CallParams>().rule);
  const auto rule = c.as<CallParams>().rule;
  batched->forward = [rule, residuals, in_axes = explicit_axes(c), out_axes = body.axes,
                      own = RuleLanes(c)](std::span<const Tensor> given) {
    std::vector<Tensor> primals(given.begin(), given.end());
    const Tensor count = own.taken(primals, primals.size() - 1);
    Vec<Batched> inputs;
    for (std::size_t i = 0; i < primals.size(); ++i) inputs.push_back({primals[i], in_axes[i]});
    std::vector<Tensor> results;
    MappedAxes axes;
    for (Batched& out :
         batch_function(rule->forward, inputs, own.lanes, "vt::vmap", own.of(count))) {
      if (results.size() < out_axes.size()) {
        results.push_back(lanes::at_axis(out, *out_axes[results.size()], own.lanes, own.where));
      } else {
        axes.push_back(out.axis);
        results.push_back(std::move(out.value));
      }
    }
    if (own.some) results.push_back(count);
    std::lock_guard lock(residuals->mutex);
    residuals->axes = std::move(axes);
    return results;
  };
  batched->backward = [rule, residuals, in_axes = explicit_axes(c), out_axes = body.axes,
                       own = RuleLanes(c)](std::span<const Tensor> given) {
    std::vector<Tensor> arguments(given.begin(), given.end());
    MappedAxes axes;
    {
      std::lock_guard lock(residuals->mutex);
      axes = residuals->axes;
    }
    const LaneAxis axis = own.of(own.taken(arguments, axes.size()));
    axes.append(out_axes.begin(), out_axes.end());
    check_count(*rule, "forward", axes.size(), arguments.size(), own.where);
    Vec<Batched> inputs;
    for (std::size_t i = 0; i < arguments.size(); ++i) inputs.push_back({arguments[i], axes[i]});
    const Vec<Batched> cotangents =
        batch_function(rule->backward, inputs, own.lanes, "vt::vmap", axis);
    check_count(*rule, "backward", cotangents.size(), in_axes.size(), own.where);
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < cotangents.size(); ++i)
      results.push_back(cotangent_for(cotangents[i], in_axes[i], own.lanes, own.where));
    if (own.some)  // as of any integer, it is not looked at
      results.push_back(
          full_tensor(Scalar(false).converted(DType::i32), Aval(DType::i32, Shape{})));
    return results;
  };
  return emit_body(c, std::move(body), std::move(batched));
}

BatchedList custom_vmap(const BatchCall& c) {
  using namespace structure_batch;
  const auto& p = c.as<CallParams>();
  // The user's rule knows nothing of captured values; when lanes differ in one of those, the body
  // decides.
  for (std::size_t i = static_cast<std::size_t>(p.explicit_operands); i < c.operands.size(); ++i)
    if (c.mapped(i)) return call(c);
  Vec<bool> mapped, out_mapped;
  std::vector<Tensor> arguments;
  for (int i = 0; i < p.explicit_operands; ++i) {
    const Batched& x = c.operands[i];
    mapped.push_back(x.axis.has_value());
    arguments.push_back(x.axis ? lanes::moved(x.value, *x.axis, 0, c.where()) : x.value);
  }
  const std::string name =
      "the rule of " + (p.rule->name.empty() ? std::string("vt::custom_vmap") : p.rule->name);
  std::vector<Tensor> values;
  {
    const WhereScope own_lines(CallSite{});
    values = p.rule->batch(c.lanes, mapped, arguments, out_mapped);
  }
  const std::size_t count = c.equation.outputs.size();
  if (values.size() != count || out_mapped.size() != count)
    fail(ErrorKind::tree,
         "vt::vmap: " + name + " gave " + std::to_string(values.size()) + " results and " +
             std::to_string(out_mapped.size()) + " out_mapped flags; the function has " +
             std::to_string(count) + " results",
         c.where());
  BatchedList results;
  for (std::size_t k = 0; k < count; ++k) {
    const Aval& lane = c.result_aval(k);
    const Aval wanted =
        out_mapped[k] ? Aval(lane.dtype, lanes::inserted(lane.shape, 0, c.lanes)) : lane;
    if (!values[k].defined())
      fail(ErrorKind::tree,
           "vt::vmap: " + name + " gave an empty Tensor as result " + std::to_string(k), c.where());
    const Aval& got = aval_of(values[k]);
    if (got.dtype != wanted.dtype || got.shape != wanted.shape)
      fail(ErrorKind::shape,
           "vt::vmap: " + name + " gave result " + std::to_string(k) + " as " + got.str() + "; " +
               std::to_string(c.lanes) + " lanes of the function's " + lane.str() +
               (out_mapped[k] ? " are " : ", unmapped, are ") + wanted.str(),
           c.where());
    results.push_back({values[k], out_mapped[k] ? MappedAxis(0) : std::nullopt});
  }
  return results;
}

}  // namespace vt::detail::batch_rules
