// The derivative of checkpoint: what is inside runs again on the way back.
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/record/without_effects.hpp"
#include "../build.hpp"
#include "../jvp.hpp"
#include "../linear_call.hpp"
#include "../linearize.hpp"
#include "../transpose.hpp"

namespace vt::detail::jvp_rules {

namespace checkpoints {

/// A checkpoint equation around `f` of `arguments`, so that later passes keep its inside apart.
/// Undefined results stay so.
inline std::vector<Tensor> checkpointed(const FlatFunction& f, std::span<const Tensor> arguments,
                                        CallSite where) {
  Vec<bool> defined;
  Vec<Aval> avals;
  for (const Tensor& t : arguments) avals.push_back(aval_of(t));
  const Recorded r = record(
      [&](std::span<const Tensor> tracers) {
        std::vector<Tensor> kept;
        for (const Tensor& t : f(tracers)) {
          defined.push_back(t.defined());
          if (t.defined()) kept.push_back(t);
        }
        return kept;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::checkpoint"});
  std::vector<Tensor> all(defined.size());
  if (r.graph.outputs.empty()) return all;
  CallParams p;
  p.body = std::make_shared<GraphBody>(r.graph);
  p.explicit_operands = static_cast<int>(arguments.size());
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), r.captured.begin(), r.captured.end());
  const SmallVec<Tensor, 1> out =
      emit_all(Op::checkpoint, make_params(std::move(p)), operands, where);
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (defined[i]) all[i] = out[next++];
  return all;
}

/// A list with holes as a list without, and back.
struct Holes {
  Vec<bool> filled;
  explicit Holes(std::span<const Tensor> tensors) {
    for (const Tensor& t : tensors) filled.push_back(t.defined());
  }
  static void append_filled(std::vector<Tensor>& to, std::span<const Tensor> tensors) {
    for (const Tensor& t : tensors)
      if (t.defined()) to.push_back(t);
  }
  std::vector<Tensor> restored(std::span<const Tensor> given) const {
    std::vector<Tensor> all;
    std::size_t next = 0;
    for (bool f : filled) all.push_back(f ? given[next++] : Tensor());
    return all;
  }
};

/// Tangents of a checkpoint, from its operands alone.
inline std::vector<Tensor> push_checkpoint(const GraphBody& body, std::span<const Tensor> primals,
                                           std::span<const Tensor> tangents, CallSite where) {
  const Holes holes(tangents);
  std::vector<Tensor> arguments(primals.begin(), primals.end());
  Holes::append_filled(arguments, tangents);
  return checkpointed(
      [&](std::span<const Tensor> a) {
        return jvp_graph(body, a.first(primals.size()), holes.restored(a.subspan(primals.size())))
            .tangents;
      },
      arguments, where);
}

/// Cotangents of the operands with `wanted`: the body is run again and transposed, inside one
/// equation.
inline std::vector<Tensor> pull_checkpoint(const GraphBody& body, const Vec<bool>& wanted,
                                           std::span<const Tensor> primals,
                                           std::span<const Tensor> cotangents, CallSite where) {
  const Holes holes(cotangents);
  std::vector<Tensor> arguments(primals.begin(), primals.end());
  Holes::append_filled(arguments, cotangents);
  return checkpointed(
      [&](std::span<const Tensor> a) {
        const LinearPart linear = linearize_graph(body, a.first(primals.size()), wanted);
        return pull_linear(linear, holes.restored(a.subspan(primals.size())));
      },
      arguments, where);
}

}  // namespace checkpoints

// Nothing inside is saved for the backward pass: it is computed again from the operands, in an
// equation of its own, which common sub-expression elimination cannot merge with the first
// computation.
void checkpoint(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const auto& p = c.as<CallParams>();
  const CallSite where = c.equation.where;
  const SmallVec<Tensor, 1> out = emit_all(Op::checkpoint, c.equation.params, c.x, where);
  results.assign(out.begin(), out.end());
  if (c.mode == JvpMode::forward) {
    tangents = checkpoints::push_checkpoint(*without_effects(p.body), c.x, c.t, where);
    return;
  }
  Vec<bool> wanted;
  for (const Tensor& t : c.t) wanted.push_back(t.defined());
  Vec<Aval> outputs;
  for (Var v : p.body->outputs) outputs.push_back(p.body->aval(v));
  const GraphRef again = without_effects(p.body);  // what happens has happened by then
  auto push = [body = again, where](std::span<const Tensor> primals, std::span<const Tensor> in) {
    return checkpoints::push_checkpoint(*body, primals, in, where);
  };
  auto pull = [body = again, wanted, where](std::span<const Tensor> primals,
                                            std::span<const Tensor> in) {
    // One cotangent per operand, undefined where it was not wanted.
    std::vector<Tensor> given = checkpoints::pull_checkpoint(*body, wanted, primals, in, where),
                        all;
    std::size_t next = 0;
    for (bool w : wanted) all.push_back(w ? given[next++] : Tensor());
    return all;
  };
  tangents =
      emit_linear_call({"vt::checkpoint", push, pull, std::vector<Tensor>(c.x.begin(), c.x.end())},
                       c.t, outputs, where);
}

}  // namespace vt::detail::jvp_rules
