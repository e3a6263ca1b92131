// Interpreter rule of dot_general: packs both operands as [batch, free, contracted] in a wider type, then sums plain products.
#include "interpreter.hpp"

namespace vt::detail::interp_dot {

/// An operand's elements as W, row-major over the batch axes, then the free ones, then the contracted ones.
template <class W>
struct Packed {
  BufferRef buffer;
  std::int64_t batch = 1, free = 1, contracted = 1;
  const W* row(std::int64_t b, std::int64_t i) const { return buffer->as<const W>() + (b * free + i) * contracted; }
};

template <class W>
Packed<W> pack(const Frame& frame, std::size_t operand, const Axes& batch, const Axes& contracted) {
  const Shape& shape = frame.in(operand).shape;
  const Shape own = row_major_strides(shape);
  Packed<W> packed;
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
  packed.buffer = allocate(static_cast<std::size_t>(shape.elements()) * sizeof(W), "dot_general's operand");
  with_type(frame.in(operand).dtype, [&](auto tag) {
    const auto* in = frame.read<decltype(tag)>(operand);
    W* out = packed.buffer->template as<W>();
    walk(dims, 0, strides, [&](std::int64_t p) { *out++ = static_cast<W>(in[p]); });
  });
  return packed;
}

/// W: as which type the elements are multiplied; Sum: as which the products are added.
template <class W, class Sum, class Round>
void run(Frame& frame, Round round) {
  const auto& params = frame.params<DotParams>();
  const Packed<W> lhs = pack<W>(frame, 0, params.lhs_batch, params.lhs_contract);
  const Packed<W> rhs = pack<W>(frame, 1, params.rhs_batch, params.rhs_contract);
  auto* out = frame.make<decltype(round(Sum{}))>();
  for (std::int64_t b = 0; b < lhs.batch; ++b)
    for (std::int64_t i = 0; i < lhs.free; ++i)
      for (std::int64_t j = 0; j < rhs.free; ++j) {
        const W *x = lhs.row(b, i), *y = rhs.row(b, j);
        Sum sum = 0;
        for (std::int64_t k = 0; k < lhs.contracted; ++k) sum += static_cast<Sum>(x[k]) * static_cast<Sum>(y[k]);
        *out++ = round(sum);
      }
}

void dot_general(Frame& frame) {
  with_type(frame.out().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bool>) refuse_dtype(frame);
    else if constexpr (std::is_same_v<T, double>) run<double, long double>(frame, [](long double sum) { return static_cast<double>(sum); });
    else if constexpr (is_real_type<T>) run<double, double>(frame, [](double sum) { return from_double<T>(sum); });
    // Sums modulo 2⁶⁴ have the right low bits for every narrower integer.
    else run<std::uint64_t, std::uint64_t>(frame, [](std::uint64_t sum) { return static_cast<T>(sum); });
  });
}

}  // namespace vt::detail::interp_dot
