// Interpreter rule of sort: a stable sort of each row's positions, which compares as the op
// defines.
#include <numeric>

#include <vt/detail/small_vec.hpp>

#include "../base/stable_sort.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_order {

/// The order of one dtype: NaN behind all numbers, equal to itself; −0 equal to +0.
template <class W>
[[gnu::always_inline]] inline bool before(W a, W b) {
  if constexpr (std::is_floating_point_v<W>)
    return a < b || (__builtin_isnan(b) && !__builtin_isnan(a));
  else return a < b;
}

/// Of two elements of an operand, widened to W: negative if the first one comes first, 0 if they
/// are equal.
template <class W>
int compare(const void* elements, std::int64_t i, std::int64_t j) {
  const W a = static_cast<const W*>(elements)[i], b = static_cast<const W*>(elements)[j];
  return before(a, b) ? -1 : before(b, a) ? 1 : 0;
}

struct Key {
  const void* elements;  ///< of the wide dtype of their kind
  int (*compare)(const void*, std::int64_t, std::int64_t);
};

/// Is element i of the row that starts at `row` before element j? The innermost loop of a sort,
/// also where nothing is inlined: plain pointers.
struct RowOrder {
  const Key *first, *last;
  bool descending;
  std::int64_t row, stride;

  bool operator()(std::int64_t i, std::int64_t j) const {
    const std::int64_t a = row + i * stride, b = row + j * stride;
    for (const Key* key = first; key != last; ++key)
      if (const int sign = key->compare(key->elements, a, b); sign != 0)
        return (sign < 0) != descending;
    return false;
  }
};

void sort(Frame& frame) {
  const auto& p = frame.params<SortParams>();
  const Shape& shape = frame.in().shape;
  const std::size_t axis = p.axis;
  const std::int64_t n = shape[axis], taken = p.limit - p.start,
                     inner = row_major_strides(shape)[axis];
  const std::int64_t rows = n == 0 ? 0 : shape.elements() / n;
  const std::size_t keys = p.keys;
  Vec<BufferRef> widened;
  const BufferRef table = frame.scratch(keys * sizeof(Key));
  for (std::size_t k = 0; k < keys; ++k) {
    widened.push_back(frame.widened(k));
    with_wide_type(frame.in(k).dtype, [&](auto tag) {
      table->as<Key>()[k] = {widened[k]->data, compare<decltype(tag)>};
    });
  }
  for (std::size_t k = 0; k < frame.inputs.size(); ++k) frame.make_bytes(k);
  Vec<std::int64_t> places(n);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t from = r / inner * (n * inner) + r % inner,
                       to = r / inner * (taken * inner) + r % inner;
    std::iota(places.begin(), places.end(), 0);
    stable_sort(places,
                RowOrder{table->as<Key>(), table->as<Key>() + keys, p.descending, from, inner});
    for (std::size_t k = 0; k < frame.inputs.size(); ++k)
      with_size(frame.in(k).dtype, [&](auto tag) {
        using T = decltype(tag);
        T* out = frame.outputs[k]->as<T>() + to;
        for (std::int64_t i = 0; i < taken; ++i)
          out[i * inner] = frame.read<T>(k)[from + places[p.start + i] * inner];
      });
  }
}

}  // namespace vt::detail::interp_order
