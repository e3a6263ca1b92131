// jvp and transpose rules of products: dot_general, and the jvp rule of convolutions.
#include <utility>

#include "../../../trace/ir/axis_map.hpp"
#include "../build.hpp"
#include "../jvp.hpp"
#include "../transpose.hpp"

namespace vt::detail::jvp_rules {

/// The op of either operand's tangent with the other operand.
Tensor bilinear(const JvpCall& c) {
  Tensor sum;
  if (c.has(0)) sum = emit(c.equation.op, c.equation.params, {c.t[0], c.x[1]}, {});
  if (c.has(1))
    sum = grad_build::sum_of(sum, emit(c.equation.op, c.equation.params, {c.x[0], c.t[1]}, {}));
  return sum;
}

}  // namespace vt::detail::jvp_rules

namespace vt::detail::transpose_rules {

using namespace grad_build;

// The cotangent has axes [batch, lhs free, rhs free]. Contracted with the other operand over that
// operand's free axes it leaves the operand's batch, free and contracting axes; the two factors
// stand in the order that needs no transpose, if one of them does.
void dot_general(const TransposeCall& c) {
  const auto& p = c.as<DotParams>();
  if (c.linear(0) && c.linear(1)) refuse(c);
  const bool left = c.linear(0);
  const std::size_t own = left ? 0 : 1, other = 1 - own;
  const Axes &own_contract = left ? p.lhs_contract : p.rhs_contract,
             &own_batch = left ? p.lhs_batch : p.rhs_batch;
  const Axes &other_contract = left ? p.rhs_contract : p.lhs_contract,
             &other_batch = left ? p.rhs_batch : p.lhs_batch;
  const Axes own_free = free_axes(c.shape(own).rank(), own_contract, own_batch);
  const Axes other_free = free_axes(c.shape(other).rank(), other_contract, other_batch);
  const int batches = static_cast<int>(own_batch.size());

  // Where the operand's axes are in the product: free ones from `first_free`, contracting ones, in
  // the order in which the other operand has them, from `first_contract`.
  auto places = [&](int first_free, int first_contract) {
    Axes order = Axes::first(c.shape(own).rank());
    for (std::size_t k = 0; k < own_batch.size(); ++k) order[own_batch[k]] = static_cast<int>(k);
    for (std::size_t k = 0; k < own_free.size(); ++k)
      order[own_free[k]] = first_free + static_cast<int>(k);
    for (std::size_t k = 0; k < own_contract.size(); ++k) {
      int place = 0;
      for (int axis : other_contract) place += axis < other_contract[k];
      order[own_contract[k]] = first_contract + place;
    }
    return order;
  };
  const Axes ct_first = places(batches, batches + static_cast<int>(own_free.size()));
  const Axes ct_second = places(batches + static_cast<int>(own_contract.size()), batches);
  const bool swap = ct_second == Axes::first(c.shape(own).rank());

  DotParams d;
  d.dtype = p.dtype;
  d.lhs_batch = Axes::first(batches);
  d.rhs_batch = other_batch;
  const int skipped = batches + (left ? static_cast<int>(own_free.size()) : 0);
  for (std::size_t k = 0; k < other_free.size(); ++k)
    d.lhs_contract.push_back(skipped + static_cast<int>(k));
  d.rhs_contract = other_free;
  Tensor first = c.ct(), second = convert_to(c.x[other], p.dtype);
  if (swap) {
    std::swap(d.lhs_batch, d.rhs_batch);
    std::swap(d.lhs_contract, d.rhs_contract);
    std::swap(first, second);
  }
  const Tensor product = emit(Op::dot_general, make_params(d), {first, second}, {});
  c.cotangents[own] =
      convert_to(permuted(product, swap ? ct_second : ct_first), c.operand(own).dtype);
}

}  // namespace vt::detail::transpose_rules
