// Batch rules of products: lanes of both operands become a batch axis; lanes of one become a free
// axis of one larger product. In a convolution these are groups, more images or more features, and
// nothing has to be moved for it.
#include <algorithm>
#include <utility>

#include "../../../trace/ir/axis_map.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace dot_batch {

/// A product for all lanes: its parameters, and where the lanes of its result lie.
struct Product {
  ConvParams params;
  int axis = 0;
};

Product of(const BatchCall& c, const ConvParams& lane) {
  Product all{lane};
  ConvParams& p = all.params;
  const Batched &lhs = c.operands[0], &rhs = c.operands[1];
  const auto shift = [](int axis, std::initializer_list<Axes*> lists) {
    for (Axes* axes : lists) *axes = lanes::shifted(*axes, axis);
  };
  if (lhs.axis) shift(*lhs.axis, {&p.dot.lhs_contract, &p.dot.lhs_batch, &p.lhs_window});
  if (rhs.axis) shift(*rhs.axis, {&p.dot.rhs_contract, &p.dot.rhs_batch, &p.rhs_window});
  if (lhs.axis && rhs.axis) {
    p.dot.lhs_batch.insert(p.dot.lhs_batch.begin(), *lhs.axis);
    p.dot.rhs_batch.insert(p.dot.rhs_batch.begin(), *rhs.axis);
    return all;
  }
  const auto free = [](int rank, Axes contract, const Axes& window, const Axes& batch) {
    contract.append(window.begin(), window.end());
    return free_axes(rank, contract, batch);
  };
  const auto before = [](const Axes& axes, int axis) {
    return static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
  };
  const Axes left = free(lhs.value.rank(), p.dot.lhs_contract, p.lhs_window, p.dot.lhs_batch);
  all.axis = static_cast<int>(p.dot.lhs_batch.size());
  if (lhs.axis) all.axis += before(left, *lhs.axis);
  else
    all.axis += static_cast<int>(left.size() + p.lhs_window.size()) +
                before(free(rhs.value.rank(), p.dot.rhs_contract, p.rhs_window, p.dot.rhs_batch),
                       *rhs.axis);
  return all;
}

BatchedList emitted(const BatchCall& c, ParamsRef params, int axis) {
  BatchedList results;
  results.push_back({emit(c.equation.op, std::move(params),
                          {c.operands[0].value, c.operands[1].value}, c.where()),
                     axis});
  return results;
}

}  // namespace dot_batch

BatchedList dot_general(const BatchCall& c) {
  dot_batch::Product all = dot_batch::of(c, ConvParams{.dot = c.as<DotParams>()});
  return dot_batch::emitted(c, make_params(std::move(all.params.dot)), all.axis);
}

BatchedList conv_general(const BatchCall& c) {
  dot_batch::Product all = dot_batch::of(c, c.as<ConvParams>());
  if (Axes& order = all.params.order; !order.empty()) {
    order = lanes::shifted(order, all.axis);
    order.insert(order.begin(), std::exchange(all.axis, 0));
  }
  return dot_batch::emitted(c, make_params(std::move(all.params)), all.axis);
}

}  // namespace vt::detail::batch_rules
