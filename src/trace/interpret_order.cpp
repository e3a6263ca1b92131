// Interpreter rule of sort: rows of places, put in order by a stable sort that compares as the op defines.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <vt/small_vec.hpp>

#include "interpreter.hpp"

namespace vt::detail::interp_order {

/// The order of one dtype: NaN behind all numbers, equal to itself; −0 equal to +0.
template <class W>
bool before(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a < b || (std::isnan(b) && !std::isnan(a));
  else return a < b;
}

/// Is element i of the row that starts at `row` before element j? `keys`: operands as elements of the wide dtype of their kind.
struct RowOrder {
  const Frame& frame;
  std::span<const BufferRef> keys;
  std::int64_t row, stride;

  bool operator()(std::int64_t i, std::int64_t j) const {
    if (frame.params<SortParams>().descending) std::swap(i, j);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      int sign = 0;
      with_wide_type(frame.in(k).dtype, [&](auto tag) {
        using W = decltype(tag);
        const W a = keys[k]->as<const W>()[row + i * stride], b = keys[k]->as<const W>()[row + j * stride];
        sign = before(a, b) ? -1 : before(b, a) ? 1 : 0;
      });
      if (sign != 0) return sign < 0;
    }
    return false;
  }
};

void sort(Frame& frame) {
  const auto& p = frame.params<SortParams>();
  const Shape& shape = frame.in().shape;
  const auto axis = static_cast<std::size_t>(p.axis);
  const std::int64_t n = shape[axis], taken = p.limit - p.start, inner = row_major_strides(shape)[axis];
  const std::int64_t rows = n == 0 ? 0 : shape.elements() / n;
  Vec<BufferRef> keys;
  for (std::size_t k = 0; k < static_cast<std::size_t>(p.keys); ++k) keys.push_back(frame.widened(k));
  for (std::size_t k = 0; k < frame.inputs.size(); ++k) frame.make_bytes(k);
  Vec<std::int64_t> places(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t from = r / inner * (n * inner) + r % inner, to = r / inner * (taken * inner) + r % inner;
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), RowOrder{frame, keys, from, inner});
    for (std::size_t k = 0; k < frame.inputs.size(); ++k)
      with_size(frame.in(k).dtype, [&](auto tag) {
        using T = decltype(tag);
        T* out = frame.outputs[k]->as<T>() + to;
        for (std::int64_t i = 0; i < taken; ++i) out[i * inner] = frame.read<T>(k)[from + places[static_cast<std::size_t>(p.start + i)] * inner];
      });
  }
}

}  // namespace vt::detail::interp_order
