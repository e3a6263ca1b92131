// Interpreter rule of dot_general: packs both widened operands as [batch, free, contracted], then sums plain products.
#include <utility>

#include "interpreter.hpp"

namespace vt::detail::interp_dot {

Packed pack(const Frame& frame, std::size_t operand, const Axes& batch, const Axes& contracted) {
  const Shape& shape = frame.in(operand).shape;
  const Shape own = row_major_strides(shape);
  Packed packed;
  Shape dims, strides;
  auto take = [&](int axis, std::int64_t& size) {
    dims.push_back(shape[static_cast<std::size_t>(axis)]);
    strides.push_back(own[static_cast<std::size_t>(axis)]);
    size *= dims.back();
  };
  for (int axis : batch) take(axis, packed.batch);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!batch.contains(axis) && !contracted.contains(axis)) take(axis, packed.free);
  for (int axis : contracted) take(axis, packed.contracted);
  const BufferRef wide = frame.widened(operand);
  packed.buffer = frame.scratch(static_cast<std::size_t>(shape.elements()) * size_of(wide_of(frame.in(operand).dtype)));
  copy_region(wide_of(frame.in(operand).dtype), dims, wide->data, 0, strides, packed.buffer->data, 0, row_major_strides(dims));
  return packed;
}

/// W: as which type the elements are stored; Sum: as which they are multiplied and added.
template <class W, class Sum>
void run(const Packed& lhs, const Packed& rhs, W* out) {
  for (std::int64_t b = 0; b < lhs.batch; ++b)
    for (std::int64_t i = 0; i < lhs.free; ++i)
      for (std::int64_t j = 0; j < rhs.free; ++j) {
        const W *x = lhs.row<W>(b, i), *y = rhs.row<W>(b, j);
        Sum sum = 0;
        for (std::int64_t k = 0; k < lhs.contracted; ++k) sum += static_cast<Sum>(x[k]) * static_cast<Sum>(y[k]);
        *out++ = static_cast<W>(sum);
      }
}

void dot_general(Frame& frame) {
  const auto& params = frame.params<DotParams>();
  const DType dtype = frame.out().dtype;
  if (is_bool(frame.in().dtype)) refuse_dtype(frame);
  const Packed lhs = pack(frame, 0, params.lhs_batch, params.lhs_contract), rhs = pack(frame, 1, params.rhs_batch, params.rhs_contract);
  BufferRef results = frame.scratch(static_cast<std::size_t>(frame.out().elements()) * 8);
  if (dtype == DType::f64) run<double, long double>(lhs, rhs, results->as<double>());
  else if (is_float(dtype)) run<double, double>(lhs, rhs, results->as<double>());
  // Sums modulo 2⁶⁴ have the right low bits for every integer dtype, signed or not.
  else run<std::uint64_t, std::uint64_t>(lhs, rhs, results->as<std::uint64_t>());
  frame.narrow(std::move(results));
}

}  // namespace vt::detail::interp_dot
