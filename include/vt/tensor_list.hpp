// TensorList: a stack and array of Tensors of one shape and dtype, as a value: it can be carried by
// loops, mapped and differentiated.
#pragma once

#include <array>
#include <optional>

#include <vt/tensor.hpp>

namespace vt {

/// A stack and array of Tensors of one shape and dtype. It is a plain tree of two Tensors, so that
/// loops can carry it: copies are lists of their own, and the functions below change the one they
/// are called on. Under vmap its lanes live inside its elements: of a list that goes in or out
/// along axis a, each element has the lanes at a, and the number of elements is that of all lanes
/// (where lanes push different numbers of elements, return `elements` and `count` in place of the
/// list). An index out of range,
/// a push on a full list, a pop of an empty one are a vt::check that fails.
struct TensorList {
  Tensor elements;  ///< [capacity, shape of an element…]; zeros behind the last
  Tensor count;     ///< i32[]: how many there are
  /// the capacity follows the count, which is known; cannot be carried by a loop that changes it
  bool growing = false;
  /// without checks, which keep loops from running in registers, indices out of range are clamped
  bool checked = true;

  /// Room for `capacity` elements, and none there yet. Throws: Error if the capacity is negative.
  static TensorList fixed(Param<std::int64_t> capacity, const Shape& element,
                          DType dtype = default_dtype(), CallSite where = CallSite::here());
  /// Empty, with room for whatever is pushed.
  static TensorList growable(const Shape& element, DType dtype = default_dtype(),
                             CallSite where = CallSite::here());
  /// The elements of `values` along axis 0, which is full then.
  static TensorList from(Operand values);

  std::int64_t capacity() const { return elements.dim(0); }
  /// How many elements there are, i32[].
  Tensor size() const { return count; }

  /// Shapes: x: that of an element, or one that broadcasts to it; numbers adopt the dtype.
  void push(Operand x);
  /// The last element, which is taken off.
  Tensor pop(CallSite where = CallSite::here());
  /// Element i of 0 … size − 1: any integer scalar.
  [[nodiscard]] Tensor read(Operand i) const;
  /// Puts x at place i of 0 … capacity − 1 (growing: size − 1). Elements up to i exist then; those
  /// that nobody wrote are zeros.
  void write(Operand i, Operand x);
  /// The elements at `indices` (1-d), stacked.
  [[nodiscard]] Tensor gather(Operand indices) const;
  /// Writes values[k] at indices[k]; of equal indices any one stays.
  void scatter(Operand indices, Operand values);
  /// All places, [capacity, shape…].
  [[nodiscard]] Tensor stack() const { return elements; }
  /// All places one behind the other along their axis 0, [capacity · n, …].
  [[nodiscard]] Tensor concat(CallSite where = CallSite::here()) const;

  // Internal: for in_axes and out_axes, where lanes lie in the two Tensors.
  std::array<std::optional<int>, 2> axes_of_lanes(std::optional<int> axis) const {
    if (axis && *axis >= 0) ++*axis;
    return {axis, std::nullopt};
  }
};

}  // namespace vt
