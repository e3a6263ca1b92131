// The derivatives of flat functions as tests ask for them: jvp, pullbacks, and what takes only the
// float arguments.
#pragma once

#include <memory>

#include <vt/detail/entry_points.hpp>

#include "property.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"

namespace vt_test::derivatives {

using vt::DType;
using vt::Shape;
using vt::Tensor;
using vt_test::Tolerance;
using namespace vt::detail;

using Flat = vt::detail::FlatFunction;
using Tensors = std::vector<Tensor>;

/// A GradCall with respect to all float arguments.
struct Point {
  Tensors x;
  std::unique_ptr<bool[]> wanted;
  explicit Point(std::span<const Tensor> arguments)
      : x(arguments.begin(), arguments.end()), wanted(new bool[arguments.size() + 1]) {
    for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = vt::is_float(x[i].dtype());
  }
  GradCall call(vt::CallSite where = vt::CallSite::here()) const {
    GradCall c;
    c.arguments = x;
    c.wanted = {wanted.get(), x.size()};
    c.where = where;
    return c;
  }
};

inline Tensors jvp_of(const Flat& f, std::span<const Tensor> x, std::span<const Tensor> t) {
  const Point p(x);
  return jvp_flat(f, p.call(), t).tangents;
}
inline Tensors only_floats(const Tensors& x) {
  Tensors kept;
  for (const Tensor& t : x)
    if (vt::is_float(t.dtype())) kept.push_back(t);
  return kept;
}
/// The float arguments of a function, the others held fixed.
inline Flat of_floats(const Flat& f, const Tensors& x) {
  return [f, x](std::span<const Tensor> given) {
    Tensors all = x;
    std::size_t next = 0;
    for (Tensor& t : all)
      if (vt::is_float(t.dtype())) t = given[next++];
    return f(all);
  };
}
inline vt_test::FlatFunction for_differences(const Flat& f) {
  return [f](const Tensors& x) { return f(x); };
}
inline Tensors pulled(const Flat& f, const Tensors& x, const Tensors& w) {
  const Point p(x);
  return linearize_flat(f, p.call()).map.pull(w, {});
}
/// Random tangents or cotangents, one like each tensor.
inline Tensors directions(const Tensors& like, std::uint64_t seed) {
  Tensors d;
  for (const Tensor& t : like)
    d.push_back(vt_test::random_tensor(t.dtype(), t.shape(), -1, 1, ++seed));
  return d;
}

inline Tensor ints(const std::vector<double>& values, const Shape& shape) {
  return vt_test::make_tensor(vt::i32, shape, values);
}

}  // namespace vt_test::derivatives
