// Linearization and the entry points built on it: jvp, linearize, vjp, value_and_grad on flat lists
// of Tensors.
#include "linearize.hpp"

#include <memory>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/record/state.hpp"
#include "build.hpp"
#include "jvp.hpp"
#include "sparsity.hpp"
#include "transpose.hpp"

namespace vt::detail {

// Products of a tangent and a primal value need no care here: the primal factor has no operand in
// the linear scope, so it is recorded outside and becomes a residual; only what depends on tangents
// is recorded inside.
LinearPart linearize_graph(const GraphBody& graph, std::span<const Tensor> primals,
                           const Vec<bool>& wanted) {
  LinearPart part;
  RecordingScope scope({.kind = ScopeKind::linear, .transform = "vt::linearize"});
  std::vector<Tensor> tangents(graph.inputs.size()), varying;
  for (std::size_t i = 0; i < graph.inputs.size() && i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const Aval& a = graph.aval(graph.inputs[i]);
    part.wanted.emplace_back(a.dtype, a.shape);
    tangents[i] = scope.input(part.wanted.back());
  }
  {
    JvpResult r = jvp_graph(graph, primals, tangents, JvpMode::linearize);
    part.outputs = std::move(r.primals);
    for (Tensor& t : r.tangents) {
      part.tangent_of.push_back(t.defined() ? static_cast<int>(varying.size()) : -1);
      if (t.defined()) varying.push_back(std::move(t));
    }
  }
  tangents.clear();
  Recorded recorded = scope.finish(varying);
  part.graph = std::move(recorded.graph);
  part.residuals = std::move(recorded.captured);
  return part;
}

std::vector<Tensor> push_linear(const LinearPart& part, std::span<const Tensor> tangents) {
  const std::vector<Tensor> pushed = push_graph(part.graph, tangents, part.residuals);
  std::vector<Tensor> all;
  for (int i : part.tangent_of) all.push_back(i < 0 ? Tensor() : pushed[i]);
  return all;
}

std::vector<Tensor> pull_linear(const LinearPart& part, std::span<const Tensor> cotangents,
                                std::span<const Tensor> sums) {
  std::vector<Tensor> varying(part.graph.outputs.size());
  for (std::size_t i = 0; i < part.tangent_of.size(); ++i)
    if (part.tangent_of[i] >= 0) varying[part.tangent_of[i]] = cotangents[i];
  return transpose_graph(part.graph, part.wanted.size(), part.residuals, varying, sums);
}

namespace grad_entry {

inline std::string leaf_name(const LeafName& name, std::size_t i, const char* kind) {
  return name ? name(i) : std::string(kind) + " " + std::to_string(i);
}
inline std::string argument(const GradCall& call, std::size_t i) {
  return leaf_name(call.argument_name, i, "argument");
}
inline std::string result(const GradCall& call, std::size_t i) {
  return leaf_name(call.result_name, i, "result");
}

enum class Integers {
  refused,  ///< a gradient with respect to them is a mistake
  /// where all arguments have a tangent, theirs is not looked at and their cotangent is zero; but
  /// one of them must be a float
  zero,
};

/// Indices of the wanted arguments.
inline Vec<std::size_t> wanted_arguments(const GradCall& call, Integers integers) {
  Vec<std::size_t> wanted;
  if (std::none_of(call.arguments.begin(), call.arguments.end(),
                   [](const Tensor& t) { return !t.defined() || is_inexact(t.dtype()); }))
    integers = Integers::refused;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (!call.arguments[i].defined())
      fail(ErrorKind::value,
           std::string(call.transform) + ": " + argument(call, i) + " is an empty Tensor",
           call.where);
    if (i >= call.wanted.size() || !call.wanted[i]) continue;
    const Aval& a = aval_of(call.arguments[i]);
    if (integers == Integers::refused && !is_inexact(a.dtype))
      fail(ErrorKind::dtype,
           std::string(call.transform) + ": " + argument(call, i) + " is " + a.str() +
               ", and only float and complex Tensors have derivatives; convert it with "
               "astype(vt::f32), or do not differentiate with respect to it",
           call.where);
    wanted.push_back(i);
  }
  return wanted;
}

/// The function as a Graph of its arguments, recorded where their values may be looked at.
/// `updates`: of variables, whose values are its last results.
inline Recorded recorded(const FlatFunction& f, const GradCall& call, Vec<StateUpdate>& updates) {
  Vec<Aval> avals;
  for (const Tensor& t : call.arguments) avals.push_back(aval_of(t));
  return record(with_updates(f, updates), avals,
                {.kind = ScopeKind::grad,
                 .transform = call.transform,
                 .concrete = call.arguments,
                 .where = call.where});
}
/// Applies the updates, and takes their values off the results.
inline void settle(std::span<const StateUpdate> updates, std::vector<Tensor>& outputs) {
  const std::size_t own = outputs.size() - updates.size();
  apply_updates(updates, std::span<const Tensor>(outputs).subspan(own));
  outputs.resize(own);
}

inline std::vector<Tensor> primals_of(const GradCall& call, const Recorded& r) {
  std::vector<Tensor> all(call.arguments.begin(), call.arguments.end());
  all.insert(all.end(), r.captured.begin(), r.captured.end());
  return all;
}

/// A (co)tangent that the user gave, in the dtype and shape of what it goes with. Weak scalars take
/// the dtype; nothing else is bent.
inline Tensor like(const Tensor& t, const Aval& wanted, const char* transform, const char* what,
                   const std::string& leaf, CallSite where) {
  if (!t.defined())
    fail(ErrorKind::value,
         std::string(transform) + ": the " + what + " of " + leaf + " is an empty Tensor", where);
  const Aval& a = aval_of(t);
  if (a.shape != wanted.shape || (a.dtype != wanted.dtype && !a.weak))
    fail(a.shape != wanted.shape ? ErrorKind::shape : ErrorKind::dtype,
         std::string(transform) + ": the " + what + " of " + leaf + " is " + a.str() + ", but " +
             leaf + " is " + wanted.str(),
         where);
  return grad_build::convert_to(t, wanted.dtype);
}

/// A linear function on those of `given` that are defined, with zeros kept where there may be some.
template <class Linear>
std::vector<Tensor> kept(const Linear& f, bool sparse, std::span<const Tensor> given,
                         const char* transform) {
  if (!sparse) return f(given);
  std::vector<Tensor> defined;
  for (const Tensor& t : given)
    if (t.defined()) defined.push_back(t);
  Vec<bool> made;
  const auto dense = [&](std::span<const Tensor> arguments) {
    std::vector<Tensor> all, results;
    std::size_t next = 0;
    for (const Tensor& t : given) all.push_back(t.defined() ? arguments[next++] : Tensor());
    for (Tensor& t : f(all)) {
      made.push_back(t.defined());
      if (t.defined()) results.push_back(std::move(t));
    }
    return results;
  };
  const std::vector<Tensor> results = with_zeros_kept(dense, defined, transform);
  std::vector<Tensor> all;
  std::size_t next = 0;
  for (const bool is_made : made) all.push_back(is_made ? results[next++] : Tensor());
  return all;
}
inline std::vector<Tensor> push_kept(const LinearPart& part, std::span<const Tensor> tangents,
                                     const char* transform) {
  const auto push = [&](std::span<const Tensor> given) { return push_linear(part, given); };
  return kept(push, may_be_sparse(part.graph, LinearDirection::push), tangents, transform);
}
inline std::vector<Tensor> pull_kept(const LinearPart& part, std::span<const Tensor> cotangents,
                                     const char* transform) {
  const auto pull = [&](std::span<const Tensor> given) { return pull_linear(part, given); };
  return kept(pull, may_be_sparse(part.graph, LinearDirection::pull), cotangents, transform);
}

inline Tensor or_zeros(const Tensor& t, const Aval& a) {
  return t.defined() ? t : grad_build::zeros(Aval(a.dtype, a.shape));
}

}  // namespace grad_entry

namespace grad_entry {
inline LinearPart linearized(const FlatFunction& f, const GradCall& call, Integers integers) {
  Vec<bool> wanted(call.arguments.size());
  for (std::size_t i : wanted_arguments(call, integers)) wanted[i] = true;
  Vec<StateUpdate> updates;
  Recorded r = recorded(f, call, updates);
  r.graph = without_repeats(std::move(r.graph));
  LinearPart part = linearize_graph(r.graph, primals_of(call, r), wanted);
  settle(updates, part.outputs);
  part.tangent_of.resize(part.outputs.size());
  return part;
}
}  // namespace grad_entry

void need_holomorphic(const GradCall& call, const LinearPart& part, const Aval& result) {
  for (const Aval& a : part.wanted)
    if (!is_complex(a.dtype))
      fail(ErrorKind::dtype,
           std::string(call.transform) + ": holomorphic functions have complex arguments, not " +
               a.str(),
           call.where);
  if (!is_complex(result.dtype))
    fail(ErrorKind::dtype,
         std::string(call.transform) + ": holomorphic functions have complex results, not " +
             result.str(),
         call.where);
}

LinearPart linearize_call(const FlatFunction& f, const GradCall& call) {
  return grad_entry::linearized(f, call, grad_entry::Integers::refused);
}

JvpFlat jvp_flat(const FlatFunction& f, const GradCall& call, std::span<const Tensor> tangents) {
  using namespace grad_entry;
  const Vec<std::size_t> wanted = wanted_arguments(call, Integers::zero);
  if (tangents.size() != wanted.size())
    fail(ErrorKind::tree,
         std::string(call.transform) + ": " + std::to_string(tangents.size()) + " tangents for " +
             std::to_string(wanted.size()) + " arguments",
         call.where);
  std::vector<Tensor> given(call.arguments.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const Aval& a = aval_of(call.arguments[wanted[k]]);
    if (is_inexact(a.dtype))
      given[wanted[k]] =
          like(tangents[k], a, call.transform, "tangent", argument(call, wanted[k]), call.where);
  }
  Vec<StateUpdate> updates;
  const Recorded r = recorded(f, call, updates);
  given.resize(r.graph.inputs.size());
  const std::vector<Tensor> primals = primals_of(call, r);
  // Loops make both in one equation.
  const auto both = [&](std::span<const Tensor> given_tangents) {
    JvpResult made = jvp_graph(r.graph, primals, given_tangents);
    made.primals.insert(made.primals.end(), made.tangents.begin(), made.tangents.end());
    return std::move(made.primals);
  };
  JvpResult result;
  result.primals = kept(both, may_be_sparse(r.graph, LinearDirection::push), given, call.transform);
  const auto half = result.primals.begin() + static_cast<std::ptrdiff_t>(result.primals.size() / 2);
  result.tangents.assign(half, result.primals.end());
  result.primals.erase(half, result.primals.end());
  settle(updates, result.primals);
  result.tangents.resize(result.primals.size());
  for (std::size_t i = 0; i < result.tangents.size(); ++i)
    result.tangents[i] = or_zeros(result.tangents[i], aval_of(result.primals[i]));
  return {std::move(result.primals), std::move(result.tangents)};
}

struct LinearMap::State {
  LinearPart part;
  Vec<Aval> outputs;
  Vec<std::string> arguments, results;  // names, for messages
  const char* transform;
};

LinearizedFlat linearize_flat(const FlatFunction& f, const GradCall& call) {
  using namespace grad_entry;
  auto state = std::make_shared<LinearMap::State>();
  state->part = linearized(f, call, Integers::zero);
  state->transform = call.transform;
  for (std::size_t i : wanted_arguments(call, Integers::zero))
    state->arguments.push_back(argument(call, i));
  std::vector<Tensor> outputs = std::move(state->part.outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    state->outputs.push_back(aval_of(outputs[i]));
    state->results.push_back(result(call, i));
  }
  state->part.outputs.clear();
  return {std::move(outputs), LinearMap(std::move(state))};
}

std::vector<Tensor> LinearMap::push(std::span<const Tensor> tangents, CallSite where) const {
  using namespace grad_entry;
  const State& s = *state_;
  if (tangents.size() != s.part.wanted.size())
    fail(ErrorKind::tree,
         std::string(s.transform) + ": " + std::to_string(tangents.size()) + " tangents for " +
             std::to_string(s.part.wanted.size()) + " arguments",
         where);
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < tangents.size(); ++i)
    given.push_back(
        is_inexact(s.part.wanted[i].dtype)
            ? like(tangents[i], s.part.wanted[i], s.transform, "tangent", s.arguments[i], where)
            : Tensor());
  std::vector<Tensor> pushed = push_kept(s.part, given, s.transform);
  for (std::size_t i = 0; i < pushed.size(); ++i) pushed[i] = or_zeros(pushed[i], s.outputs[i]);
  return pushed;
}

std::vector<Tensor> LinearMap::pull(std::span<const Tensor> cotangents, CallSite where) const {
  using namespace grad_entry;
  const State& s = *state_;
  if (cotangents.size() != s.outputs.size())
    fail(ErrorKind::tree,
         std::string(s.transform) + ": " + std::to_string(cotangents.size()) + " cotangents for " +
             std::to_string(s.outputs.size()) + " results",
         where);
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    // Integers have no cotangent; whatever is passed for them is not looked at.
    if (!is_inexact(s.outputs[i].dtype)) given.emplace_back();
    else
      given.push_back(
          like(cotangents[i], s.outputs[i], s.transform, "cotangent", s.results[i], where));
  }
  std::vector<Tensor> pulled = pull_kept(s.part, given, s.transform);
  for (std::size_t i = 0; i < pulled.size(); ++i) pulled[i] = or_zeros(pulled[i], s.part.wanted[i]);
  return pulled;
}

GradFlat value_and_grad_flat(const FlatFunction& f, const GradCall& call) {
  using namespace grad_entry;
  LinearPart part = linearize_call(f, call);
  if (part.outputs.empty())
    fail(ErrorKind::tree,
         std::string(call.transform) + ": the function returns nothing to differentiate",
         call.where);
  const Aval& value = aval_of(part.outputs[0]);
  if (!is_inexact(value.dtype))
    fail(ErrorKind::dtype,
         std::string(call.transform) + ": the function must return a float scalar, not " +
             value.str(),
         call.where);
  if (is_complex(value.dtype) && !call.holomorphic)
    fail(ErrorKind::dtype,
         std::string(call.transform) + ": the function must return a float scalar, not " +
             value.str() +
             "; take vt::real, vt::imag or vt::abs of it, or say {.holomorphic = true} if it has a "
             "complex derivative",
         call.where);
  if (call.holomorphic) need_holomorphic(call, part, value);
  if (value.shape.rank() != 0)
    fail(ErrorKind::shape,
         std::string(call.transform) + ": the function must return a scalar, not " + value.str() +
             "; reduce it (vt::sum, vt::mean), or use vt::jacobian",
         call.where);
  std::vector<Tensor> cotangents(part.outputs.size());
  cotangents[0] = grad_build::filled(Aval(value.dtype, Shape{}), 1);
  GradFlat result;
  result.gradients = pull_kept(part, cotangents, call.transform);
  for (std::size_t i = 0; i < result.gradients.size(); ++i)
    result.gradients[i] = or_zeros(result.gradients[i], part.wanted[i]);
  result.outputs = std::move(part.outputs);
  return result;
}

}  // namespace vt::detail
