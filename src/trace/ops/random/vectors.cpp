// Random vectors and matrices, and several draws of classes at a time.
#include <vt/linalg.hpp>

#include "random_draw.hpp"

namespace vt::detail::random_vectors {

using randoms::Draw, randoms::working;

Shape joined(Shape a, const Shape& b, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) a.push_back(b[i]);
  return a;
}

/// The extent of the last axis; throws if there is none.
std::int64_t dimensions(const Draw& d, const char* what, const Tensor& t) {
  need(d.name, t, d.where);
  if (t.rank() == 0)
    refuse(ErrorKind::shape, d.name, std::string(what) + " must have an axis", t, d.where);
  return t.dim(-1);
}

}  // namespace vt::detail::random_vectors

namespace vt::random {

namespace vectors = vt::detail::random_vectors;

Tensor multivariate_normal(Operand key, const Shape& shape, Operand mean, Operand covariance,
                           DType dtype) {
  const detail::randoms::Draw d("multivariate_normal", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = vectors::working(dtype);
  const std::int64_t n = vectors::dimensions(d, "the mean", mean.tensor);
  Shape vector = shape, matrix = shape;
  vector.push_back(n);
  matrix.push_back(n);
  matrix.push_back(n);
  detail::need(d.name, covariance.tensor, d.where);
  if (covariance.tensor.rank() < 2 || covariance.tensor.dim(-1) != n ||
      covariance.tensor.dim(-2) != n)
    detail::refuse(ErrorKind::shape, d.name,
                   detail::formatted("the covariance must be [..., {}, {}]", n, n), mean.tensor,
                   covariance.tensor, d.where);
  if (!detail::broadcasts_to(covariance.tensor.shape(), matrix))
    detail::refuse(ErrorKind::shape, d.name,
                   detail::formatted("the covariance does not broadcast to {}", matrix.str()),
                   covariance.tensor, d.where);
  const Tensor centre = d.parameter(mean, vector, w),
               root = linalg::cholesky(detail::cast(covariance.tensor, w, d.where));
  const Tensor z = detail::randoms::normal(d, vector, w);
  // One factor for all draws is one product.
  const Tensor deviation = root.rank() == 2 ? matmul(z, swapaxes(root, 0, 1))
                                            : squeeze(matmul(root, expand_dims(z, -1)), -1);
  return detail::cast(centre + deviation, dtype, d.where);
}

Tensor orthogonal(Operand key, const Shape& shape, Param<std::int64_t> n, DType dtype) {
  const detail::randoms::Draw d("orthogonal", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  if (n < 0)
    detail::refuse(ErrorKind::value, d.name, detail::formatted("there is no matrix of {} rows", n),
                   d.key, d.where);
  Shape whole = shape;
  whole.push_back(n);
  whole.push_back(n);
  const auto factors = linalg::qr(detail::randoms::normal(d, whole, vectors::working(dtype)));
  // The factorisation chooses signs; with those of R's diagonal no matrix is preferred.
  const Tensor signs = diagonal(factors.r, 0, -2, -1) < 0.0;
  return detail::cast(factors.q * expand_dims(where(signs, -1.0, 1.0), -2), dtype, d.where);
}

Tensor categorical(Operand key, Operand logits, const Shape& shape,
                   const CategoricalOptions& options) {
  const detail::randoms::Draw d("categorical", key);
  const detail::UserLine line(d.where);
  detail::need(d.name, logits.tensor, d.where);
  d.want_shape(shape);
  const int at = detail::normal_axis(d.name, options.axis, logits.tensor, d.where);
  detail::randoms::want_classes(d, logits.tensor, at);
  const Tensor l =
      moveaxis(detail::widened(detail::to_float(logits.tensor, d.where), d.where), at, -1);
  const std::int64_t draws = shape.elements(), classes = l.dim(-1);
  const Shape whole = vectors::joined(shape, l.shape(), 0, l.shape().size());
  if (options.replace) return argmax(l + detail::randoms::gumbel(d, whole, l.dtype()), -1);
  if (draws > classes)
    detail::refuse(ErrorKind::value, d.name,
                   detail::formatted("cannot draw {} of {} without replacement", draws, classes),
                   logits.tensor, d.where);
  const Tensor order = top_k(l + detail::randoms::gumbel(d, l.shape(), l.dtype()), draws).second;
  return detail::reshaped(moveaxis(order, -1, 0),
                          vectors::joined(shape, l.shape(), 0, l.shape().size() - 1), d.where);
}

}  // namespace vt::random
