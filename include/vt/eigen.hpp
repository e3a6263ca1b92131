// Interop with Eigen: `from_eigen` copies a matrix into a Tensor, `as_eigen` looks at a Tensor as
// an Eigen matrix.
#pragma once

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif

#include <vt/tensor.hpp>

namespace vt {

namespace detail {
[[noreturn]] inline void not_a_matrix(const Tensor& t, CallSite where) {
  throw Error(ErrorKind::shape, std::string("vt::as_eigen: rank 0 to 2 wanted, not ") +
                                    name_of(t.dtype()) + t.shape().str() + "; at " +
                                    (where.file ? where.file : "?") + ":" +
                                    std::to_string(where.line));
}
}  // namespace detail

/// Copies `m`. Shapes: a vector (row or column) gives [n], a matrix [rows,columns]. dtype: that of
/// its scalar.
template <class Derived>
  requires Element<typename Derived::Scalar>
[[nodiscard]] Tensor from_eigen(const Eigen::DenseBase<Derived>& m,
                                CallSite where = CallSite::here()) {
  using Scalar = typename Derived::Scalar;
  using RowMajor = Eigen::Array<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  // Named as an array so that both matrices and arrays convert.
  RowMajor copy(m.rows(), m.cols());
  if constexpr (std::is_base_of_v<Eigen::MatrixBase<Derived>, Derived>) copy = m.derived().array();
  else copy = m.derived();
  const std::span<const Scalar> values(copy.data(), static_cast<std::size_t>(copy.size()));
  if constexpr (Derived::IsVectorAtCompileTime) return tensor(values, Shape{m.size()}, where);
  else return tensor(values, Shape{m.rows(), m.cols()}, where);
}

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
  if (t.rank() > 2) detail::not_a_matrix(t, where);
  const Eigen::Index rows = t.rank() > 0 ? t.dim(0) : 1, columns = t.rank() > 1 ? t.dim(1) : 1;
  return EigenView<T>(t, rows, columns, where);
}

}  // namespace vt
