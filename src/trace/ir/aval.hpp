// Aval: what is known of a value before it is computed: dtype, shape, and whether it is weak.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include <vt/detail/small_vec.hpp>
#include <vt/dtype.hpp>
#include <vt/shape.hpp>

#include "../base/ref.hpp"

namespace vt::detail {

/// Products and sums of extents, which are held at the ends of i64 where they would leave it: what
/// does not fit is still too large (or negative) when the shape made of them is checked.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}
inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}
/// Extent of an axis whose elements are moved to a distance of `step`.
inline std::int64_t dilated(std::int64_t extent, std::int64_t step) {
  return extent == 0 ? 0 : plus(times(extent - 1, step), 1);
}

/// How many axes a Tensor has at most; as NumPy's.
inline constexpr std::size_t most_axes = 64;

/// Are there few enough axes, is no extent negative, and do the bytes fit in 62 bits? Zeros do not
/// hide the others: strides are products of extents too.
inline bool addressable(DType dtype, const Shape& shape) {
  if (shape.size() > most_axes) return false;
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (std::int64_t extent : shape)
    if (extent < 0 || (extent > 0 && (__builtin_mul_overflow(bytes, extent, &bytes) ||
                                      bytes > std::int64_t{1} << 62)))
      return false;
  return true;
}
/// Says why a shape is not addressable.
std::string size_fault(DType, const Shape&);

/// What is known of a value before it is computed.
struct Aval {
  DType dtype = DType::f32;
  bool weak = false;  ///< a weak scalar, which takes the other operand's dtype
  Shape shape;
  Aval() = default;
  Aval(DType d, Shape s, bool w = false) : dtype(d), weak(w), shape(std::move(s)) {}
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return shape.elements() * size_of(dtype); }
  std::string str() const;  ///< "f32[2,3]"
  friend bool operator==(const Aval&, const Aval&) = default;
};

/// A list that several owners share.
struct SharedAvals : RefCounted {
  Vec<Aval> list;
};
using SharedAvalsRef = Ref<const SharedAvals>;

/// The types of a node's results: one, or several, which the nodes of all calls of a function
/// share.
class ResultAvals {
 public:
  ResultAvals() = default;
  ResultAvals(SharedAvalsRef several) : several_(std::move(several)) {}
  ResultAvals(SmallVec<Aval, 1>&& list) : has_one_(list.size() == 1) {
    if (has_one_) one_ = std::move(list[0]);
    else if (!list.empty()) several_ = shared({list.begin(), list.end()});
  }
  static SharedAvalsRef shared(Vec<Aval> list) {
    auto* const made = new SharedAvals;
    made->list = std::move(list);
    return SharedAvalsRef::of_new(made);
  }
  /// The only one.
  template <class... Parts>
  void emplace(Parts&&... parts) {
    one_ = Aval(static_cast<Parts&&>(parts)...);
    has_one_ = true;
  }
  std::size_t size() const { return several_ ? several_->list.size() : has_one_; }
  const Aval* begin() const { return several_ ? several_->list.begin() : &one_; }
  const Aval* end() const { return begin() + size(); }
  const Aval& operator[](std::size_t i) const { return begin()[i]; }
  Aval& the_one() { return one_; }

 private:
  SharedAvalsRef several_;
  Aval one_;
  bool has_one_ = false;
};

}  // namespace vt::detail
