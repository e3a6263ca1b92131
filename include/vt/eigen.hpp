// Interop with Eigen: vectors, matrices, arrays and expressions as Tensors, and Tensors as those.
#pragma once

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#include <Eigen/SparseCore>
#else
#include <eigen3/Eigen/Core>
#include <eigen3/Eigen/SparseCore>
#endif

#include <vt/tensor.hpp>

namespace vt {

namespace detail {
/// Throws: Error(shape) as `t` is no Eigen object of these extents; −1 stands for any.
[[noreturn]] void not_of_eigen(const Tensor& t, std::int64_t rows, std::int64_t columns,
                               const char* function, CallSite where);
/// Throws: Error(tracer) inside of a transform, where what becomes of a matrix is a constant.
void refuse_tracer(const Tensor& t, CallSite where);
/// The numbers of `indices`, which are checked: see to_eigen_sparse.
std::vector<std::int64_t> coordinates(const Tensor& indices, const Tensor& values,
                                      std::int64_t rows, std::int64_t columns, CallSite where);

/// See the primary template, in vt/tensor.hpp.
template <class M>
struct EigenAccess<M, true> {
  static constexpr bool is_included = true;
  using Scalar = typename M::Scalar;
  using Plain = typename M::PlainObject;
  using RowMajor = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  static constexpr bool is_vector = M::IsVectorAtCompileTime;

  static Shape shape(const M& m) {
    if constexpr (is_vector) return Shape{m.size()};
    else return Shape{m.rows(), m.cols()};
  }
  static Tensor copied(const M& m, CallSite where) {
    if (const Scalar* data = in_order(m)) return from(data, m, true, where);
    RowMajor copy(m.rows(), m.cols());
    // An array is assigned to a matrix, and a matrix to it, as such.
    if constexpr (std::is_base_of_v<Eigen::MatrixBase<M>, M>) copy = m;
    else copy = m.matrix();
    return from(copy.data(), m, true, where);
  }
  /// Without a copy if the elements lie in memory in the order of a Tensor's.
  static Tensor borrowed(const M& m, CallSite where) {
    const Scalar* data = in_order(m);
    return data ? from(data, m, false, where) : copied(m, where);
  }
  /// An M, which is a matrix or an array, with the elements of `t`.
  static M made(const Tensor& t) {
    constexpr auto rows = static_cast<std::int64_t>(M::RowsAtCompileTime),
                   columns = static_cast<std::int64_t>(M::ColsAtCompileTime);
    const CallSite where = line_of(t);
    refuse_tracer(t, where);
    if (t.rank(where) > 2) not_of_eigen(t, rows, columns, "vt::Tensor to Eigen", where);
    // A list of numbers is a row where the type is one.
    const bool is_row = M::RowsAtCompileTime == 1 && t.rank() == 1;
    const Eigen::Index r = is_row || t.rank() == 0 ? 1 : t.dim(0),
                       c = is_row || t.rank() == 2 ? t.dim(-1) : 1;
    if ((rows >= 0 && r != rows) || (columns >= 0 && c != columns) ||
        (M::MaxRowsAtCompileTime >= 0 && r > M::MaxRowsAtCompileTime) ||
        (M::MaxColsAtCompileTime >= 0 && c > M::MaxColsAtCompileTime))
      not_of_eigen(t, rows, columns, "vt::Tensor to Eigen", where);
    const Tensor own = t.dtype() == dtype_of<Scalar>() ? t : t.astype(dtype_of<Scalar>(), where);
    const auto* data = static_cast<const Scalar*>(
        host_data(own, dtype_of<Scalar>(), where, "vt::Tensor to Eigen"));
    const Eigen::Map<const RowMajor> all(data, r, c);
    if constexpr (std::is_base_of_v<Eigen::MatrixBase<M>, M>) return all;
    else return all.array();
  }

 private:
  static constexpr bool is_direct =
      (Eigen::internal::traits<M>::Flags & Eigen::DirectAccessBit) != 0;
  static const Scalar* in_order(const M& m) {
    if constexpr (!is_direct) {
      return nullptr;
    } else {
      const bool dense = m.innerStride() == 1 || m.size() <= 1;
      if constexpr (is_vector) return dense ? m.data() : nullptr;
      else if constexpr (!M::IsRowMajor) return nullptr;
      else return dense && (m.outerStride() == m.cols() || m.rows() <= 1) ? m.data() : nullptr;
    }
  }
  static Tensor from(const Scalar* data, const M& m, bool copy, CallSite where) {
    return from_host(data, dtype_of<Scalar>(), shape(m), copy, where);
  }
};
}  // namespace detail

/// A constant Eigen::Map that keeps its Tensor alive.
template <class T>
class EigenView
    : public Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> {
 public:
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const Matrix>;
  EigenView(const Tensor& t, Eigen::Index rows, Eigen::Index columns, CallSite where)
      : Map(static_cast<const T*>(detail::host_data(t, dtype_of<T>(), where, "vt::as_eigen")), rows,
            columns),
        tensor_(t) {}

 private:
  Tensor tensor_;
};

/// A view of the elements, without a copy; forces evaluation. T must be the dtype's own type.
/// Shapes: [rows,columns]; [n] is a column; a scalar is 1×1. Throws: Error for other ranks.
template <Element T>
[[nodiscard]] const EigenView<T> as_eigen(const Tensor& t, CallSite where = CallSite::here()) {
  if (t.rank() > 2) detail::not_of_eigen(t, -1, -1, "vt::as_eigen", where);
  const Eigen::Index rows = t.rank() > 0 ? t.dim(0) : 1, columns = t.rank() > 1 ? t.dim(1) : 1;
  return EigenView<T>(t, rows, columns, where);
}

/// The sparse matrix with `values` at `indices`, pairs of a row and a column; values at one place
/// are added. T: the type of its elements, to which the values are converted. Forces evaluation.
/// Shapes: indices: integers [n,2]; values: [n].
/// Throws: Error(shape), Error(dtype) for others, Error(value) for a place outside of the matrix.
template <Element T>
[[nodiscard]] Eigen::SparseMatrix<T> to_eigen_sparse(const Tensor& indices, const Tensor& values,
                                                     Eigen::Index rows, Eigen::Index columns,
                                                     CallSite where = CallSite::here()) {
  const std::vector<std::int64_t> at = detail::coordinates(indices, values, rows, columns, where);
  const std::vector<T> numbers = values.to_vector<T>(where);
  std::vector<Eigen::Triplet<T>> triplets;
  triplets.reserve(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    triplets.emplace_back(static_cast<int>(at[2 * i]), static_cast<int>(at[2 * i + 1]), numbers[i]);
  Eigen::SparseMatrix<T> matrix(rows, columns);
  matrix.setFromTriplets(triplets.begin(), triplets.end());
  return matrix;
}

}  // namespace vt
