// Rotations of QR steps: collected, and applied to the vectors many at a time; and the order of
// eigenvalues and singular values.
#pragma once

#include "../base/stable_sort.hpp"
#include "linalg_factors.hpp"

namespace vt::detail::linalg_kernels {

/// Rotations of neighbouring rows, kept until there are many: then a strip of columns after the
/// other goes through all of them in the cache.
template <class E>
class Rotations {
 public:
  /// `rows`: n rows of `width` numbers; null if nobody asks for them.
  Rotations(E* rows, Index width) : rows_(rows), width_(width) {}
  ~Rotations() { apply(); }
  Rotations(const Rotations&) = delete;
  Rotations& operator=(const Rotations&) = delete;
  /// (row i, row i + distance) ← (c x − s y, s x + c y)
  void add(Index i, Index j, double c, double s) {
    if (!rows_) return;
    list_.push_back({i, j, c, s});
    if (list_.size() >= most) apply();
  }
  void apply() {
    constexpr Index strip = 64;
    const Index count = static_cast<Index>(list_.size());
    for (Index from = 0; from < width_; from += strip)
      for (Index k = 0, next; k < count; k = next) {
        // As many as go the same way.
        next = k + 1;
        const bool down = next < count && list_[k].i == list_[next].j;
        while (next < count && follows(list_[next - 1], list_[next], down)) ++next;
        simd_rows::rotate(rows_ + from, width_, list_.data() + k, next - k, down,
                          std::min(strip, width_ - from));
      }
    list_.clear();
  }

 private:
  using One = simd_rows::Rotation;
  static bool follows(const One& a, const One& b, bool down) {
    return down ? a.i == b.j && b.i != a.j : a.j == b.i && b.j != a.i;
  }
  static constexpr std::size_t most = 8192;
  E* rows_;
  Index width_;
  RecycledVec<One> list_;
};
/// Rows of complex numbers are twice as many doubles.
template <class T>
Rotations<Real<T>> rotations_of(T* rows, Index n) {
  return {reinterpret_cast<Real<T>*>(rows), n * static_cast<Index>(sizeof(T) / sizeof(Real<T>))};
}

/// The places 0 … n − 1 in the order of their numbers.
inline Vec<Index> ordered(const RecycledVec<double>& x, Index n, bool descending) {
  Vec<Index> order(n);
  std::iota(order.begin(), order.end(), 0);
  stable_sort(order, [&](Index i, Index j) {
    const double a = x[i], b = x[j];
    return descending ? a > b : a < b;
  });
  return order;
}

}  // namespace vt::detail::linalg_kernels
