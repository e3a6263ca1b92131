// UpdatePlan: how the updates of a nest are made, which may meet at one element.
#include "update_plan.hpp"

#include <vt/detail/loops.hpp>

#include "mapping.hpp"

namespace vt::detail::cuda {

namespace update_plans {

constexpr double few_iterations = 32;  // that a thread makes sooner than others are put in order

// Do the values of an index tell the values of all that it is made of? So they do where each term's
// steps are larger than all that smaller terms together can make.
bool is_injective(const Nest& nest, IndexId index) {
  struct Digit {
    std::int64_t factor, extent;
  };
  Vec<Digit> digits;
  for (const IndexTerm& t : nest.indices[index].terms) {
    const IndexAtom& a = nest.indices.atom(t.atom);
    if (t.factor <= 0) return false;
    if (a.kind == IndexAtom::Kind::loop) {
      const NestLoop& l = nest.loops[a.id];
      if (l.block_of >= 0) return false;
      digits.push_back({t.factor, l.extent});
    } else if (a.kind == IndexAtom::Kind::value) {
      digits.push_back({t.factor, nest.indices.limit_of_value(a.id)});
    } else {
      return false;
    }
  }
  insertion_sort(digits, [](const Digit& a, const Digit& b) { return a.factor < b.factor; });
  std::int64_t reach = 0;
  for (const Digit& d : digits) {
    if (d.factor <= reach) return false;
    reach += d.factor * (d.extent - 1);
  }
  return true;
}

// Is there one instruction for it whose result does not depend on the order?
bool has_atomic(Op update, DType d) {
  if (!is_int(d) || size_of(d) < 4) return false;
  return update == Op::add || update == Op::min || update == Op::max;
}

}  // namespace update_plans

UpdatePlan plan_updates(const Nest& nest, bool unique) {
  using namespace update_plans;
  UpdatePlan plan;
  if (none_of(nest.stores, [](const NestStore& s) { return s.update != Op::input; })) return plan;
  const NestStore& store = nest.stores[0];
  if (nest.stores.size() != 1 || nest.stages.size() != 1 || !nest.shared.empty() ||
      !nest.reductions.empty()) {
    plan.way = UpdatePlan::Way::in_order;
    return plan;
  }
  const Vec<std::uint64_t> dependences = loop_dependences(nest);
  std::uint64_t keys = store.mask >= 0 ? dependences[store.mask] : 0;
  nest.indices.each_value(store.index, [&](int v) { keys |= dependences[v]; });
  const bool injective = is_injective(nest, store.index);
  for (int l : nest.stages[0].loops) {
    const bool window =
        injective && !(keys >> l & 1u) && nest.indices.factor_of_loop(store.index, l) > 0;
    (window ? plan.window_loops : plan.key_loops).push_back(l);
  }
  const DType d = nest.buffers[store.buffer].dtype;
  if (unique || plan.key_loops.empty()) plan.way = UpdatePlan::Way::apart;
  else if (has_atomic(store.update, d)) plan.way = UpdatePlan::Way::atomic;
  else if (iterations_of(nest, plan.key_loops) <= few_iterations)
    plan.way = UpdatePlan::Way::in_order;
  else plan.way = UpdatePlan::Way::sorted;
  return plan;
}

}  // namespace vt::detail::cuda
