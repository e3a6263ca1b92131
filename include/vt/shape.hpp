// Shape (the extents of a Tensor), Axes (a list of axis numbers) and ReduceAxes (some of them or
// all).
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/loops.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/param.hpp>

namespace vt {

/// One extent; braces hold `size_t` and `int` alike.
using Dim = Param<std::int64_t>;

/// The extents of a Tensor, outermost axis first. Made from braces: {2, 3}, {} for a scalar. It has
/// the members of a std::vector<std::int64_t> as well (size, [], begin, end, push_back, insert …).
class Shape : public SmallVec<std::int64_t, 6> {
 public:
  using Base = SmallVec<std::int64_t, 6>;
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) {
    reserve(dims.size());
    for (Dim d : dims) push_back(d);
  }
  Shape(const std::vector<std::int64_t>& dims) : Base(dims.begin(), dims.end()) {}
  explicit Shape(std::span<const std::int64_t> dims) : Base(dims.begin(), dims.end()) {}
  /// `rank` extents, each `extent`.
  static Shape filled(std::size_t rank, std::int64_t extent) {
    Shape s;
    s.resize(rank, extent);
    return s;
  }

  int rank() const { return static_cast<int>(size()); }
  /// Product of the extents (1 for a scalar); the largest number where it is larger.
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : *this)
      if (__builtin_mul_overflow(n, d, &n)) n = (std::numeric_limits<std::int64_t>::max)();
    return n;
  }
  /// "[2,3]"
  std::string str() const;
  friend bool operator==(const Shape& a, const Shape& b) {
    return static_cast<const Base&>(a) == static_cast<const Base&>(b);
  }
};

/// Prints str().
std::ostream& operator<<(std::ostream&, const Shape&);

/// A list of axes; a single integer is a list of one. Negative axes count from the end. It has the
/// members of a std::vector<int> as well.
class Axes : public SmallVec<int, 6> {
 public:
  using Base = SmallVec<int, 6>;
  Axes() = default;
  template <detail::ParamFor<int> T>
  Axes(T axis) {
    push_back(Param<int>(axis));
  }
  Axes(std::initializer_list<Param<int>> axes) : Base(axes.begin(), axes.end()) {}
  Axes(const std::vector<int>& axes) : Base(axes.begin(), axes.end()) {}
  /// 0, 1, …, n − 1
  static Axes first(int n) {
    Axes a;
    for (int i = 0; i < n; ++i) a.push_back(i);
    return a;
  }
  bool contains(int axis) const {
    return detail::any_of(*this, [&](int own) { return own == axis; });
  }
  /// "[0,1]"
  std::string str() const;
  friend bool operator==(const Axes& a, const Axes& b) {
    return static_cast<const Base&>(a) == static_cast<const Base&>(b);
  }
};

/// The axes of a reduction: none given means all of them.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  ReduceAxes(std::nullopt_t) {}
  template <detail::ParamFor<int> T>
  ReduceAxes(T axis) : axes_(axis), all_(false) {}
  /// {0, 1}. No std::initializer_list: GCC 12 would take {.ddof = 1} for one.
  template <detail::ParamFor<int>... T>
    requires(sizeof...(T) >= 2)
  ReduceAxes(T... axes) : axes_({Param<int>(axes)...}), all_(false) {}
  ReduceAxes(const Axes& axes) : axes_(axes), all_(false) {}
  ReduceAxes(const std::vector<int>& axes) : axes_(axes), all_(false) {}
  bool all() const { return all_; }
  const Axes& axes() const& { return axes_; }
  Axes axes() && { return std::move(axes_); }

 private:
  Axes axes_;
  bool all_ = true;
};

}  // namespace vt
