// Interpreter rules of the leaves (constant, full, iota) and of equations that own a sub-graph:
// they run its body.
#include <algorithm>

#include "../record/recursion.hpp"
#include "interpreter.hpp"

namespace vt::detail {

namespace interp_leaf {

void input(Frame& frame) {
  fail(ErrorKind::tracer,
       "vt: an argument of a trace has no value of its own; it cannot be run as an equation",
       frame.equation.where);
}

void constant(Frame& frame) { frame.outputs[0] = frame.params<ConstantParams>().buffer; }

void full(Frame& frame) {
  fill_elements(frame.params<FullParams>().value.converted(frame.out().dtype), frame.make_bytes(),
                static_cast<std::size_t>(frame.out().elements()));
}

void iota(Frame& frame) {
  const Shape& shape = frame.out().shape;
  const int axis = frame.params<IotaParams>().axis;
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  const std::int64_t n = shape[axis];
  const BufferRef indices =
      frame.scratch(static_cast<std::size_t>(shape.elements()) * sizeof(std::int64_t));
  auto* next = indices->as<std::int64_t>();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < n; ++i) next = std::fill_n(next, inner, i);
  void* out = frame.make_bytes();
  convert_elements(indices->data, DType::i64, out, frame.out().dtype, shape.elements());
}

}  // namespace interp_leaf

namespace interp_structure {

void call(Frame& frame) {
  const auto results = interpret(*frame.params<CallParams>().body, frame.inputs);
  for (std::size_t i = 0; i < results.size(); ++i) frame.outputs[i] = results[i];
}

void recursive_call(Frame& frame) {
  const RecursiveFunction& f = *frame.params<RecursionParams>().function;
  const RecursionGuard deeper(f, frame.inputs, frame.equation.where);
  const auto results = interpret(*f.body, frame.inputs);
  for (std::size_t i = 0; i < results.size(); ++i) frame.outputs[i] = results[i];
}

}  // namespace interp_structure
}  // namespace vt::detail
