// Which elements of operands each element of a result is made of, for ops on small arrays: what all
// emitters of register kernels write out.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../ir/graph.hpp"

namespace vt::detail {

/// The index of element `n` in row-major order.
Vec<std::int64_t> index_of_element(const Shape&, std::int64_t n);

/// For every element of the result, in row-major order, the element of the operand that comes
/// there: what reshape, transpose, broadcast_in_dim, slice, pad and rev do with places. −1: none
/// (padding).
Vec<std::int64_t> source_elements(const GraphBody&, const Equation&);

/// For every element of the operand, the element of the result that a reduction over `axes` adds it
/// to.
Vec<std::int64_t> reduced_elements(const Shape&, const Axes& axes);

/// The elements of an array in runs along one axis, which come in the order of an array without
/// that axis.
struct AxisRuns {
  std::int64_t count, length, step;
  AxisRuns(const Shape&, int axis);
  /// Element `k` of run `n`.
  std::int64_t at(std::int64_t n, std::int64_t k) const {
    return (n / step * length + k) * step + n % step;
  }
};

/// What a cumulative op does with each further element, and the dtype in which it does: as the
/// interpreter, in double for sums and products of floats. Two elements give the same in their own
/// dtype: a wide result that is rounded again is as good as one rounded once (Figueroa 1995).
struct RunningOp {
  Op op;
  DType dtype;
  bool compensated;  ///< what rounding takes from the sums is added up beside them: f64's
  RunningOp(Op cumulative, DType, std::int64_t length);
  /// For those that a loop in registers has code for.
  static bool has_code(Op cumulative, DType);
};

/// A matrix product of small arrays: the elements of both operands that are multiplied.
class SmallProduct {
 public:
  SmallProduct(const GraphBody&, const Equation&);
  std::int64_t terms() const { return terms_; }  ///< of each sum
  struct Factors {
    std::int64_t lhs, rhs;
  };
  /// Of the term `t` of the result's element `n`.
  Factors at(std::int64_t n, std::int64_t t) const;

 private:
  struct Axis {
    std::int64_t extent, of_lhs, of_rhs;  ///< distances in both operands
  };
  static void add(const Vec<Axis>&, std::int64_t k, Factors&);
  Vec<Axis> outer_, inner_;  ///< of the result (batch, left, right) and of the sum
  std::int64_t terms_ = 1;
};

/// One element of a gather's result or of a scatter's updates: the element of the operand that it
/// stands for, up to what its index vector says.
struct IndexedElement {
  std::int64_t first = 0;     ///< where its index vector begins among the indices' elements
  Vec<std::int64_t> fixed;    ///< per axis of the operand: what is known now; −1: nothing
  SmallVec<int, 6> moved;     ///< the axes that the vector's elements move along, in their order
  Vec<std::int64_t> at_most;  ///< … and how far
};
IndexedElement gathered_element(const GraphBody&, const Equation&, std::int64_t n);
IndexedElement scattered_element(const GraphBody&, const Equation&, std::int64_t n);

}  // namespace vt::detail
