// Batch rule of dot_general: lanes of both operands become a batch axis; lanes of one become a free axis of one larger product.
#include <algorithm>

#include "lanes.hpp"

namespace vt::detail::batch_rules {

BatchedList dot_general(const BatchCall& c) {
  const auto& lane = c.as<DotParams>();
  const Batched& lhs = c.operands[0];
  const Batched& rhs = c.operands[1];
  DotParams p = lane;
  auto free_before = [](int axis, const Axes& contract, const Axes& batch) {
    int count = 0;
    for (int a = 0; a < axis; ++a) count += !contract.contains(a) && !batch.contains(a);
    return count;
  };
  if (lhs.axis) {
    p.lhs_contract = lanes::shifted(p.lhs_contract, *lhs.axis);
    p.lhs_batch = lanes::shifted(p.lhs_batch, *lhs.axis);
  }
  if (rhs.axis) {
    p.rhs_contract = lanes::shifted(p.rhs_contract, *rhs.axis);
    p.rhs_batch = lanes::shifted(p.rhs_batch, *rhs.axis);
  }
  int axis = 0;
  if (lhs.axis && rhs.axis) {
    p.lhs_batch.insert(p.lhs_batch.begin(), *lhs.axis);
    p.rhs_batch.insert(p.rhs_batch.begin(), *rhs.axis);
  } else if (lhs.axis) {
    axis = static_cast<int>(p.lhs_batch.size()) + free_before(*lhs.axis, p.lhs_contract, p.lhs_batch);
  } else {
    const int lhs_free = lhs.value.rank() - static_cast<int>(p.lhs_contract.size() + p.lhs_batch.size());
    axis = static_cast<int>(p.rhs_batch.size()) + lhs_free + free_before(*rhs.axis, p.rhs_contract, p.rhs_batch);
  }
  BatchedList results;
  results.push_back({emit(Op::dot_general, make_params(std::move(p)), {lhs.value, rhs.value}, c.where()), axis});
  return results;
}

}  // namespace vt::detail::batch_rules
