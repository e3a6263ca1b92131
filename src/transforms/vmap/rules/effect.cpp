// Batch rules of effects: a print shows all lanes or each one; checks and callbacks get all lanes
// and go through them when they run.
#include <string>

#include <vt/detail/message.hpp>

#include "../../../trace/record/thread_state.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace effect_batch {

/// The operands, with the new lanes in front of what they carry already. `all`: also of those that
/// are the same for every lane.
std::vector<Tensor> operands_of(const BatchCall& c, bool all) {
  std::vector<Tensor> operands;
  for (const Batched& x : c.operands)
    operands.push_back(x.axis || all ? lanes::at_axis(x, 0, c.lanes, c.where()) : x.value);
  return operands;
}

/// The new lanes are outside of those that there are.
void add_lanes(const BatchCall& c, EffectLanes& own) {
  constexpr std::size_t most = 32;
  if (own.extents.size() >= most)
    fail(ErrorKind::transform,
         "vt::vmap: more than 32 vmaps around " + std::string(name_of(c.equation.op)), c.where());
  own.extents.insert(own.extents.begin(), c.lanes);
  own.carried.resize(c.operands.size(), 0u);
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    own.carried[i] = own.carried[i] << 1 | (c.mapped(i) ? 1u : 0u);
}

}  // namespace effect_batch

BatchedList debug_print(const BatchCall& c) {
  PrintParams p = c.as<PrintParams>();
  if (p.per_lane) effect_batch::add_lanes(c, p.lanes);
  emit_all(Op::debug_print, make_params(std::move(p)), effect_batch::operands_of(c, false),
           c.where());
  return {};
}

BatchedList check(const BatchCall& c) {
  CheckParams p = c.as<CheckParams>();
  effect_batch::add_lanes(c, p.lanes);
  emit_all(Op::check, make_params(std::move(p)), effect_batch::operands_of(c, false), c.where());
  return {};
}

BatchedList callback(const BatchCall& c) {
  CallbackParams p = c.as<CallbackParams>();
  effect_batch::add_lanes(c, p.lanes);
  if (!p.takes_lanes)
    cannot_vectorize(c, p.function->name,
                     "it takes one lane at a time; with {.takes_lanes = true} one call gets all "
                     "lanes, along axis 0");
  const bool whole = p.takes_lanes;
  BatchedList results;
  for (Tensor& t : emit_all(Op::callback, make_params(std::move(p)),
                            effect_batch::operands_of(c, whole), c.where()))
    results.push_back({std::move(t), 0});
  return results;
}

}  // namespace vt::detail::batch_rules
