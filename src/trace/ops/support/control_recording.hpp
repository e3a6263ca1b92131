// Records the functions given to control flow as sub-graphs: their types are unified, and the
// variables that they change become results.
#pragma once

#include <vt/control.hpp>
#include <vt/detail/small_vec.hpp>

#include <string>

#include "../../record/recursion.hpp"
#include "../../record/scope.hpp"
#include "../../record/state.hpp"

namespace vt::detail::control_ops {

[[noreturn]] void refuse(ErrorKind kind, const ControlCall& call, const std::string& what);
std::string leaf_name(const LeafName& name, std::size_t i, const char* kind);
std::string carry_name(const ControlCall& call, std::size_t i);
/// Refuses empty Tensors.
void need_all(const ControlCall& call, std::span<const Tensor> tensors, const LeafName& name,
              const char* kind);
Vec<Aval> avals_of(std::span<const Tensor> tensors);

Recorded record_body(const FlatFunction& f, std::span<const Aval> avals, const ControlCall& call,
                     bool stateful);
/// Records a loop's body until the carries that it gives are of the types that it takes: weak
/// numbers among `init` adopt what they become. `more`: types of the inputs behind the carries.
/// Converts `init`.
Recorded record_loop(const FlatFunction& body, std::vector<Tensor>& init,
                     std::span<const Aval> more, const ControlCall& call);
/// Results that differ only in that some are weak numbers meet in one dtype. The last `changes`
/// ones are variables'.
void unify_results(std::span<Recorded> branches, std::size_t changes, const ControlCall& call);

GraphRef finished(Recorded&& part);
std::vector<Tensor> emit_control(Op op, ParamsRef params, std::span<const Tensor> operands,
                                 const ControlCall& call);

// --- variables -----------------------------------------------------------------------------------

/// Makes branches give the same updates: of a variable that some assign, its new value; else what
/// they add and so on, or nothing. `updates`: of each branch, whose values are its last results.
Vec<StateUpdate> unify_updates(Vec<Recorded>& branches, const Vec<Vec<StateUpdate>>& updates);
/// Results without the last ones, which are applied to variables.
std::vector<Tensor> without_changes(std::vector<Tensor> out, std::span<const StateUpdate> changes);

/// The variables that a loop carries: how its results are applied, and what they begin with.
struct LoopStates {
  Vec<StateUpdate> changes;
  std::vector<Tensor> init;
  LoopStates(std::span<const OwnState> body, std::span<const OwnState> condition);
};
/// Puts the inputs of a loop's function in order: carries, carried variables, elements, and the
/// rest, to which variables belong that are only read. `arguments`: how many there are in front of
/// the `own` states.
void arrange_states(Recorded& part, std::size_t carries, std::size_t arguments,
                    std::span<const OwnState> own, const LoopStates& states);
/// The results of a loop without those of the variables, which come behind the carries.
std::vector<Tensor> settled(std::vector<Tensor> out, std::size_t carries, const LoopStates& states);

}  // namespace vt::detail::control_ops
