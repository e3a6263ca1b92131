// What is minimised, as minimize sees it: a function of one vector with its value, gradient and
// second derivative at a point.
#pragma once

#include <vt/minimize.hpp>

#include "../../trace/record/scope.hpp"
#include "solver_numbers.hpp"

namespace vt::detail::minimizing {

class Objective {
 public:
  /// Records the function. Throws for what does not fit.
  Objective(const FlatFunction& f, std::span<const Tensor> guess, const MinimizeOptions& options,
            const FitCall& fit);
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;

  const MinimizeOptions& options;
  const ControlCall& call;
  DType dtype;      ///< in which all is computed
  DType precision;  ///< f32 where a parameter or the value is no more
  std::int64_t n;   ///< how many parameters
  double ftol, xtol, gtol;

  /// [n]
  Tensor point_of(std::span<const Tensor> leaves) const;
  std::vector<Tensor> leaves_of(const Tensor& point) const;
  Tensor value(const Tensor& point) const;
  struct WithGradient {
    Tensor value;     ///< []
    Tensor gradient;  ///< [n]
  };
  WithGradient with_gradient(const Tensor& point) const;
  /// The second derivative: [n, n].
  Tensor hessian(const Tensor& point) const;

  Tensor number(double value) const { return grad_build::scalar(dtype, value); }
  Tensor zeros(std::int64_t size) const { return grad_build::zeros(Aval(dtype, Shape{size})); }
  double epsilon() const;

 private:
  std::vector<Tensor> guess_;
  Recorded recorded_;
};

/// All steps from a point: the last point, then iterations, evaluations and the number of the
/// StopReason.
std::vector<Tensor> l_bfgs(const Objective&, const Tensor& start);
std::vector<Tensor> newton(const Objective&, const Tensor& start);

}  // namespace vt::detail::minimizing
