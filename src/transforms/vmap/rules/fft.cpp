// Batch rule of fft: the lanes are one more axis in front.
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

BatchedList fft(const BatchCall& c) {
  const Batched& x = c.operands[0];
  return {Batched{
      emit(Op::fft, c.equation.params, {lanes::moved(x.value, *x.axis, 0, c.where())}, c.where()),
      0}};
}

}  // namespace vt::detail::batch_rules
