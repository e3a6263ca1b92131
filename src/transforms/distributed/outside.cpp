// Bases, norms and products of what processes have: of the whole, or of each one's part.
#include "outside.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "../../trace/processes/world.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"
#include "../../trace/record/thread_state.hpp"

namespace vt::detail {

OutsideUse outside_use(const FlatFunction& f, const GradCall& call) {
  if (!World::has_several()) return {};
  for (const ScopeState& scope : thread_state().scopes)
    if (!scope.mesh.empty()) return {};
  Vec<Aval> avals;
  for (const Tensor& t : call.arguments) avals.push_back(aval_of(t));
  const std::size_t arguments = avals.size();
  for (std::size_t i = 0; i < arguments && i < call.wanted.size(); ++i)
    if (call.wanted[i]) avals.push_back(Aval(avals[i].dtype, avals[i].shape));
  const std::size_t tangents = avals.size() - arguments;
  const FlatFunction moved = [&](std::span<const Tensor> in) {
    GradCall inner = call;
    inner.arguments = in.first(arguments);
    return jvp_flat(f, inner, in.subspan(arguments)).tangents;
  };
  Vec<StateUpdate> updates;  // none of which happens
  Recorded recorded = record(with_updates(moved, updates), avals,
                             {.kind = ScopeKind::branch,
                              .transform = call.transform,
                              .stateful = true,
                              .where = call.where});
  // Captured values come behind the tangents.
  GraphBody& g = recorded.graph;
  g.outputs.resize(g.outputs.size() - updates.size());
  std::rotate(g.inputs.begin() + arguments, g.inputs.begin() + arguments + tangents,
              g.inputs.end());
  return outside_use(g, tangents);
}

void need_whole(const FlatFunction& f, std::span<const Tensor> unknowns, const char* function,
                CallSite where) {
  const auto wanted = std::make_unique<bool[]>(unknowns.size());
  for (std::size_t i = 0; i < unknowns.size(); ++i)
    wanted[i] = is_inexact(aval_of(unknowns[i]).dtype);
  GradCall call;
  call.arguments = unknowns;
  call.wanted = {wanted.get(), unknowns.size()};
  call.transform = function;
  call.where = where;
  const OutsideUse use = outside_use(f, call);
  const std::string name = function;
  if (use.has_own_inputs)
    fail(ErrorKind::transform,
         name + ": the unknown is this process's part, which a collective" + in_passing(use.where) +
             " combines with those of others, and the solver would take norms of the part. Solve "
             "for the whole, of which vt::distributed::part takes the part",
         where);
  if (use.has_own_outputs)
    fail(ErrorKind::transform,
         name +
             ": the function gives this process's part, and the solver would take norms of it. "
             "Combine it inside of vt::shard_map: vt::psum, or vt::all_gather with out_specs "
             "vt::replicated",
         where);
}

}  // namespace vt::detail
