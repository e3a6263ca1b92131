// Records the functions given to control flow as sub-graphs.
#include "control_recording.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <vt/detail/message.hpp>

#include "../../ir/effects.hpp"
#include "../../record/thread_state.hpp"
#include "operands.hpp"

namespace vt::detail {

/// What the numbers in a loop's carry became, and in those of the loops inside it. A body that is
/// recorded again begins its loops with the types that they found before; else each level of
/// nesting would double the number of recordings.
struct LoopTypes {
  Vec<Aval> given, found;
  /// of this recording of the body and of the last one, in their order
  Vec<LoopTypes> inner, before;
};
namespace control_ops {

void refuse(ErrorKind kind, const ControlCall& call, const std::string& what) {
  fail(kind, std::string(call.name) + ": " + what, user_line(call.where));
}

std::string leaf_name(const LeafName& name, std::size_t i, const char* kind) {
  return name ? name(i) : kind + (" " + std::to_string(i));
}
std::string carry_name(const ControlCall& call, std::size_t i) {
  return leaf_name(call.carry_name, i, "carry");
}

void need_all(const ControlCall& call, std::span<const Tensor> tensors, const LeafName& name,
              const char* kind) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined())
      refuse(ErrorKind::value, call, leaf_name(name, i, kind) + " is an empty Tensor");
}

Vec<Aval> avals_of(std::span<const Tensor> tensors) {
  Vec<Aval> avals;
  for (const Tensor& t : tensors) avals.push_back(aval_of(t));
  return avals;
}

Recorded record_body(const FlatFunction& f, std::span<const Aval> avals, const ControlCall& call,
                     bool stateful) {
  const FlatFunction checked = [&](std::span<const Tensor> leaves) {
    std::vector<Tensor> out = f(leaves);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!out[i].defined())
        refuse(ErrorKind::tree, call,
               (call.result_name ? call.result_name(i) : formatted("result {} of the body", i)) +
                   " is an empty Tensor");
    return out;
  };
  return record(checked, avals,
                {.kind = ScopeKind::branch,
                 .transform = call.name,
                 .stateful = stateful,
                 .where = user_line(call.where)});
}

[[noreturn]] void refuse_literal(const ControlCall& call, const Scalar& number,
                                 const std::string& what, DType dtype) {
  refuse(ErrorKind::dtype, call,
         formatted("{}, {}, does not fit the {} that it meets; convert that one first, as with "
                   ".astype(vt::i64)",
                   what, integer_text(number), name_of(dtype)));
}

/// Output `i`, called `what`, as another dtype, or no longer weak. Throws if it is a C++ integer
/// that the dtype cannot hold.
void convert_output(GraphBody& g, std::size_t i, DType dtype, bool weak, const ControlCall& call,
                    const std::string& what) {
  if (is_int(dtype) && dtype != g.aval(g.outputs[i]).dtype)
    for (const Equation& made : g.equations)
      if (made.op == Op::full && made.outputs[0] == g.outputs[i] &&
          !integer_fits(made.params->as<FullParams>().value, dtype, Literal::value))
        refuse_literal(call, made.params->as<FullParams>().value, what, dtype);
  Equation e;
  e.op = Op::convert;
  e.params = make_params(ConvertParams{dtype, weak});
  e.inputs.push_back(g.outputs[i]);
  e.outputs.push_back(g.fresh(Aval(dtype, g.aval(g.outputs[i]).shape, weak)));
  g.outputs[i] = e.outputs[0];
  g.equations.push_back(std::move(e));
}

GraphRef finished(Recorded&& part) {
  return std::make_shared<const GraphBody>(std::move(part.graph));
}

std::vector<Tensor> emit_control(Op op, ParamsRef params, std::span<const Tensor> operands,
                                 const ControlCall& call) {
  const SmallVec<Tensor, 1> out = emit_all(op, std::move(params), operands, user_line(call.where));
  return {out.begin(), out.end()};
}

void unify_results(std::span<Recorded> branches, std::size_t changes, const ControlCall& call) {
  const auto refuse_pair = [&](ErrorKind kind, const char* what, std::size_t result, std::size_t a,
                               std::size_t b) {
    const auto type = [&](std::size_t k) {
      return branches[k].graph.aval(branches[k].graph.outputs[result]).str();
    };
    const auto name = [&](std::size_t k) { return leaf_name(call.branch_name, k, "function"); };
    refuse(kind, call,
           formatted("the functions must give the same {}: {} is {} in {} and {} in {}", what,
                     leaf_name(call.result_name, result, "result"), type(a), name(a), type(b),
                     name(b)));
  };
  for (std::size_t i = 0; i + changes < branches[0].graph.outputs.size(); ++i) {
    const auto aval = [&](std::size_t k) -> const Aval& {
      return branches[k].graph.aval(branches[k].graph.outputs[i]);
    };
    std::size_t strong = 0;  // the first that is not weak, which the weak ones join
    while (strong + 1 < branches.size() && aval(strong).weak) ++strong;
    Aval common = aval(0);
    for (std::size_t k = 1; k < branches.size(); ++k) {
      if (aval(k).shape != aval(0).shape) refuse_pair(ErrorKind::shape, "shapes", i, 0, k);
      if (!aval(k).weak && aval(k).dtype != aval(strong).dtype)
        refuse_pair(ErrorKind::dtype, "dtypes", i, strong, k);
      const Common met = common_dtype(common, aval(k));
      common.dtype = met.dtype;
      common.weak = met.weak;
    }
    if (!common.weak && common.dtype != aval(strong).dtype)  // a number that the dtype cannot hold
      for (std::size_t k = 0; k < branches.size(); ++k)
        if (category(aval(k).dtype) > category(aval(strong).dtype))
          refuse_pair(ErrorKind::dtype, "dtypes", i, strong, k);
    for (Recorded& b : branches) {
      const Aval& a = b.graph.aval(b.graph.outputs[i]);
      if (a.dtype != common.dtype || a.weak != common.weak)
        convert_output(b.graph, i, common.dtype, common.weak, call,
                       leaf_name(call.result_name, i, "result"));
    }
  }
}

// --- variables -----------------------------------------------------------------------------------

std::vector<Tensor> without_changes(std::vector<Tensor> out, std::span<const StateUpdate> changes) {
  const std::size_t own = out.size() - changes.size();
  apply_updates(changes, std::span<const Tensor>(out).subspan(own));
  out.resize(own);
  return out;
}

Vec<StateUpdate> unify_updates(Vec<Recorded>& branches, const Vec<Vec<StateUpdate>>& updates) {
  Vec<StateUpdate> all;
  const auto of = [](const auto& list, const VariableRef& variable) {
    return std::find_if(list.begin(), list.end(),
                        [&](const StateUpdate& u) { return u.variable == variable; });
  };
  for (const auto& list : updates)
    for (const StateUpdate& u : list) {
      const auto known = of(all, u.variable);
      if (known == all.end()) all.push_back({u.variable, u.kind, {}, u.where});
      else if (known->kind != u.kind) all[known - all.begin()].kind = Update::assign;
    }
  for (std::size_t b = 0; b < branches.size(); ++b) {
    GraphBody& g = branches[b].graph;
    const std::size_t own = g.outputs.size() - updates[b].size();
    const Vec<Var> given(g.outputs.begin() + static_cast<std::ptrdiff_t>(own), g.outputs.end());
    g.outputs.resize(own);
    for (const StateUpdate& change : all) {
      const auto mine = of(updates[b], change.variable);
      const auto captured = [&](const Tensor& t) {
        branches[b].captured.push_back(t);
        g.inputs.push_back(g.fresh(aval_of(t)));
        return g.inputs.back();
      };
      if (mine == updates[b].end()) {
        g.outputs.push_back(captured(accumulates(change.kind)
                                         ? neutral(change.kind, change.variable->aval)
                                         : read_state(change.variable, change.where)));
        continue;
      }
      Var value = given[mine - updates[b].begin()];
      if (mine->kind != change.kind) {
        Equation e;
        e.op = op_of(mine->kind);
        e.where = mine->where;
        e.inputs.push_back(captured(read_state(change.variable, change.where)));
        e.inputs.push_back(value);
        e.outputs.push_back(value = g.fresh(change.variable->aval));
        g.equations.push_back(std::move(e));
      }
      g.outputs.push_back(value);
    }
  }
  return all;
}

LoopStates::LoopStates(std::span<const OwnState> body, std::span<const OwnState> condition) {
  for (const OwnState& s : body) {
    if (!s.updated) continue;
    const bool looked_at =
        any_of(condition, [&](const OwnState& c) { return c.variable == s.variable; });
    const Update kind = looked_at ? Update::assign : s.kind;
    changes.push_back({s.variable, kind, {}, s.where});
    init.push_back(accumulates(kind) ? neutral(kind, s.variable->aval)
                                     : read_state(s.variable, s.where));
  }
}

void arrange_states(Recorded& part, std::size_t carries, std::size_t arguments,
                    std::span<const OwnState> own, const LoopStates& states) {
  GraphBody& g = part.graph;
  const Vec<Var> old = g.inputs;
  const auto append = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) g.inputs.push_back(old[i]);
  };
  Vec<bool> carried(own.size());
  g.inputs.clear();
  append(0, carries);
  for (const StateUpdate& change : states.changes) {
    Var v = -1;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].variable != change.variable) continue;
      v = old[arguments + i];
      carried[i] = true;
    }
    g.inputs.push_back(v < 0 ? g.fresh(change.variable->aval) : v);
  }
  append(carries, arguments);
  append(arguments + own.size(), old.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (carried[i]) continue;
    part.captured.push_back(read_state(own[i].variable, own[i].where));
    g.inputs.push_back(old[arguments + i]);
  }
}

std::vector<Tensor> settled(std::vector<Tensor> out, std::size_t carries,
                            const LoopStates& states) {
  const auto first = static_cast<std::ptrdiff_t>(carries),
             count = static_cast<std::ptrdiff_t>(states.changes.size());
  apply_updates(states.changes,
                std::span<const Tensor>(out).subspan(carries, states.changes.size()));
  out.erase(out.begin() + first, out.begin() + first + count);
  return out;
}

class InsideLoop {
 public:
  explicit InsideLoop(LoopTypes& loop) : outer_(std::exchange(thread_state().loop, &loop)) {
    loop.inner.clear();
  }
  ~InsideLoop() { thread_state().loop = outer_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  LoopTypes* outer_;
};

/// Types of the inputs of a loop's body.
Vec<Aval> input_types(std::span<const Tensor> init, std::span<const Aval> more) {
  Vec<Aval> avals = avals_of(init);
  avals.append(more.begin(), more.end());
  return avals;
}

Recorded record_loop(const FlatFunction& body, std::vector<Tensor>& init,
                     std::span<const Aval> more, const ControlCall& call) {
  const CallSite line = user_line(call.where);
  LoopTypes* const outer = thread_state().loop;
  LoopTypes own;
  own.given = input_types(init, more);
  const std::vector<Tensor> as_given = init;
  bool foreseen = outer && outer->inner.size() < outer->before.size() &&
                  outer->before[outer->inner.size()].given == own.given;
  if (foreseen) {
    LoopTypes& before = outer->before[outer->inner.size()];
    for (std::size_t i = 0; i < init.size(); ++i)
      init[i] = cast(init[i], before.found[i].dtype, before.found[i].weak, line);
    own.before = std::move(before.inner);
  }
  // Each iteration makes one carry strong at least.
  for (std::size_t iteration = 0;; ++iteration) {
    const Vec<Aval> avals = input_types(init, more);
    Recorded r = [&] {
      const InsideLoop inside(own);
      return record_body(body, avals, call, true);
    }();
    GraphBody& g = r.graph;
    bool again = false;
    for (std::size_t i = 0; i < init.size(); ++i) {
      const Aval before = avals[i], after = g.aval(g.outputs[i]);
      if (before.shape != after.shape)
        refuse(ErrorKind::shape, call,
               formatted("the body must keep the carry's shapes, but makes {} of {}, which is {}",
                         after.str(), carry_name(call, i), before.str()));
      if (before.dtype == after.dtype && before.weak == after.weak) continue;
      if (foreseen) {  // what the body captures has changed: once more from the start
        foreseen = false;
        again = true;
        init = as_given;
        break;
      }
      if (before.weak && iteration <= init.size() + 1) {
        const Common met = common_dtype(before, after);
        if (met.dtype != before.dtype || met.weak != before.weak) {
          if (const Scalar* number = misfit(init[i], met.dtype, Literal::value))
            refuse_literal(call, *number, carry_name(call, i), met.dtype);
          init[i] = cast(init[i], met.dtype, met.weak, line);
          again = true;
          continue;
        }
      }
      if (!after.weak || category(after.dtype) > category(before.dtype))
        refuse(ErrorKind::dtype, call,
               formatted("the body must keep the carry's dtypes, but makes {} of {}, which is {}; "
                         "convert one of them with astype",
                         after.str(), carry_name(call, i), before.str()));
      convert_output(g, i, before.dtype, before.weak, call, carry_name(call, i));
    }
    if (again) {
      own.before = std::move(own.inner);
      continue;
    }
    own.found = avals;
    if (outer) outer->inner.push_back(std::move(own));
    return r;
  }
}

}  // namespace control_ops

}  // namespace vt::detail
