// Interpreter rule of the linalg family: matrix after matrix.
#include "../numerics/linalg_kernels.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_linalg {

void matrices(Frame& frame) {
  const LinalgSpec spec = linalg_spec(frame.graph, frame.equation);
  SmallVec<const void*, 4> operands;
  SmallVec<void*, 4> results;
  for (const BufferRef& b : frame.inputs) operands.push_back(b->data);
  for (std::size_t i = 0; i < frame.outputs.size(); ++i) results.push_back(frame.make_bytes(i));
  run_linalg(spec, operands.data(), results.data(), 0, spec.batch);
}

}  // namespace vt::detail::interp_linalg
