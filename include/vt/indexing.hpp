// Writing elements as values: vt::at(x, i, j).set(v) and its like, and put_along_axis.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <vt/detail/tree_function.hpp>
#include <vt/ops.hpp>

namespace vt {

/// How values meet the elements that they are written to: they replace them, are added, multiply
/// them, or leave the lesser or the greater one.
enum class Combine { set, add, mul, min, max };

// Declared also where a header of the system has macros of these names; there a program writes
// (selection.max)(x).
#pragma push_macro("max")
#pragma push_macro("min")
#undef max
#undef min

/// What vt::at gives: some elements of a Tensor, to read them, or to make a Tensor in which they
/// are others.
class Selection {
 public:
  Selection(Operand x, std::span<const Index> indices);
  Selection(const Selection&);
  Selection& operator=(const Selection&);
  ~Selection();

  /// The elements, as `x(…)` gives them.
  /// Throws: as x(…) does; Error (dtype) for a mask.
  [[nodiscard]] Tensor get() const;
  /// x with `values` in their place. Of elements that are selected several times any one stays.
  [[nodiscard]] Tensor set(Operand values) const { return combined(Combine::set, values); }
  /// x with the elements plus, times, and at most or at least `values`. Elements that are selected
  /// several times count as often.
  [[nodiscard]] Tensor add(Operand values) const { return combined(Combine::add, values); }
  [[nodiscard]] Tensor mul(Operand values) const { return combined(Combine::mul, values); }
  [[nodiscard]] Tensor min(Operand values) const { return combined(Combine::min, values); }
  [[nodiscard]] Tensor max(Operand values) const { return combined(Combine::max, values); }
  /// x with `f(the elements)` in their place. With a mask f is called with all of x, and should be
  /// element-wise.
  template <class F>
  [[nodiscard]] Tensor apply(F f) const {
    using Check = detail::CallCheck<F, Tensor>;
    VT_ASSERT_CALL("vt::at(…).apply", Check);
    if constexpr (!Check::holds) return x_.tensor;
    else return set(Operand(detail::call(f, selected()), x_.where.file, x_.where.line));
  }

 private:
  /// The elements; of a mask all of them.
  Tensor selected() const;
  Tensor combined(Combine, const Operand& values) const;

  Operand x_;
  std::vector<Index> indices_;
};
#pragma pop_macro("max")
#pragma pop_macro("min")

/// The elements of x at indices as of `x(i, j, …)`, to be read or written: `vt::at(x, i, j).set(v)`
/// is a new Tensor of x's shape and dtype. Values broadcast to the shape of `x(i, j, …)`. Where an
/// integer Tensor is out of range nothing is written; negative numbers count from the end, and a
/// window is moved inside, as in reading. A bool Tensor may be the only index: a mask of x's shape,
/// or of that of its first axes. Values then broadcast to x, and count where the mask is true.
/// Throws: Error (dtype) if x's dtype does not hold the values (convert them with astype), or where
/// a mask stands beside other indices; (shape) if values do not broadcast, or a mask does not fit;
/// and as `x(i, j, …)` does.
/// Source: JAX `x.at[i, j].set(v)`.
template <std::convertible_to<Index>... More>
[[nodiscard]] Selection at(Operand x, const Index& first, const More&... more) {
  const Index all[] = {first, more...};
  return Selection(std::move(x), all);
}
/// The same where the number of indices is known when the program runs.
[[nodiscard]] inline Selection at(Operand x, std::span<const Index> indices) {
  return Selection(std::move(x), indices);
}

/// x with `values` at indices[i, j, …] along `axis`, at [i, j, …] along the other axes: what
/// take_along_axis reads is written. x and indices are of the same rank and broadcast along the
/// other axes, and values to the indices. Negative indices count from the end, others beyond the
/// axis are dropped. With another `combine` than Combine::set equal indices all count.
/// Throws: Error (shape) if ranks or shapes do not fit, (dtype) if x's dtype does not hold the
/// values.
/// Source: NumPy `put_along_axis`; ONNX `ScatterElements`.
[[nodiscard]] Tensor put_along_axis(Operand x, Operand indices, Operand values, Param<int> axis,
                                    Combine combine = Combine::set);

}  // namespace vt
