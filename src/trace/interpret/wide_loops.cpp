// What the interpreter does per element: pieces of element-wise rules (widening operands, running
// the loop, rounding results), and copies between strided regions.
#include "wide_loops.hpp"

#include <algorithm>

namespace vt::detail {

void copy_region(DType dtype, const Shape& dims, const void* source, std::int64_t source_start,
                 const Shape& source_strides, void* target, std::int64_t target_start,
                 const Shape& target_strides) {
  with_size(dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* in = static_cast<const T*>(source);
    auto* out = static_cast<T*>(target);
    // A call for each element otherwise, with sanitizers.
    const auto copy = [in, out](std::int64_t p, std::int64_t q)
                          __attribute__((always_inline)) { out[q] = in[p]; };
    walk(dims, source_start, source_strides, target_start, target_strides, copy);
  });
}

namespace wide_loops {

constexpr std::size_t piece = 512;  // elements: three such arrays stay in the nearest cache

/// An operand, piece by piece.
struct Operand {
  const std::byte* data;
  DType dtype, wide;
  bool is_scalar;
  alignas(8) std::byte numbers[8 * piece];

  Operand(const Frame& frame, std::size_t i, DType seen_as)
      : data(frame.bytes(i)),
        dtype(seen_as),
        wide(wide_of(seen_as)),
        is_scalar(frame.in(i).shape.empty()) {
    if (!is_scalar) return;
    convert_elements(data, dtype, numbers, wide, 1);
    for (std::size_t i = 1; i < piece; ++i) std::memcpy(numbers + 8 * i, numbers, 8);
  }
  const void* at(std::size_t begin, std::size_t n) {
    if (is_scalar) return numbers;
    const std::byte* from = data + begin * size_of(dtype);
    if (dtype == wide) return from;
    convert_elements(from, dtype, numbers, wide, n);
    return numbers;
  }
};

void run(Frame& frame, DType seen_as, DType result, Loop loop, const void* f) {
  const std::size_t total = frame.out().elements();
  auto* out = static_cast<std::byte*>(frame.make_bytes());
  if (total == 0) return;
  const DType written = result == DType::bool_ ? result : seen_as;
  Operand a(frame, 0, seen_as), b(frame, frame.inputs.size() - 1, seen_as);
  alignas(8) std::byte results[8 * piece];
  for (std::size_t begin = 0; begin < total; begin += piece) {
    const std::size_t n = std::min(piece, total - begin);
    std::byte* to = out + begin * size_of(written);
    const void *x = a.at(begin, n), *y = frame.inputs.size() == 1 ? x : b.at(begin, n);
    loop(f, x, y, written == result ? to : results, n);
    if (written != result) convert_elements(results, result, to, written, n);
  }
}

}  // namespace wide_loops
}  // namespace vt::detail
