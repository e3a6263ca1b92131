// What is fitted, as least_squares and curve_fit see it: residuals and their derivatives at a
// point, losses, bounds and fixed parameters.
#pragma once

#include <optional>
#include <string>

#include <vt/optim.hpp>

#include "../../trace/record/scope.hpp"
#include "flat_vector.hpp"

namespace vt::detail::fitting {

/// In a step each row of J counts at least so many times what ρ′ says. Else residuals far out,
/// where a loss hardly curves, would say nothing of how long the step should be.
inline constexpr double least_row = 0.25;

/// Residuals and their Jacobian, each row multiplied by what the loss makes of it: half the sum of
/// squares has the gradient of the value, and JᵀJ is near to its second derivative.
struct Linearized {
  Tensor value;      ///< []
  Tensor residuals;  ///< [m]
  Tensor jacobian;   ///< [m, n]
};

/// A problem while its function runs. A point is a list of Tensors: the parameters as one vector,
/// or, where the user moves them, their leaves.
class Problem {
 public:
  /// Throws for what does not fit.
  Problem(const FlatFunction& residuals, std::span<const Tensor> guess, const FlatFunction& plus,
          std::int64_t dimension, const LeastSquaresOptions& options, const FitCall& fit);

  const LeastSquaresOptions& options;
  const ControlCall& call;
  DType dtype;                         ///< in which all is computed
  DType precision;                     ///< f32 where a parameter or the residuals are no more
  std::int64_t n, m = 0;               ///< how many parameters that move, and residuals
  std::optional<Tensor> lower, upper;  ///< [n]
  std::optional<Tensor> free;          ///< bool[n]: what is not fixed

  bool moved_by_user() const { return plus_.has_value(); }
  bool bounded() const { return lower || upper; }
  const std::vector<Tensor>& guess() const { return guess_; }
  std::vector<Tensor> point_of(std::span<const Tensor> leaves) const;
  std::vector<Tensor> leaves_of(std::span<const Tensor> point) const;
  std::vector<Tensor> moved(std::span<const Tensor> point, const Tensor& delta) const;
  /// [m]
  Tensor residuals(std::span<const Tensor> point) const;
  Tensor value(const Tensor& residuals) const;
  /// The gradient of the value: [n], 0 for what is fixed.
  Tensor gradient(std::span<const Tensor> point) const;
  /// `least`: see least_row; 0 for the second derivative as it is.
  Linearized linearized(std::span<const Tensor> point, double least) const;
  /// Jᵀ times the second derivative of the residuals along a step: [n].
  Tensor curvature(std::span<const Tensor> point, const Tensor& step) const;
  /// Where a bound holds a parameter against its gradient: bool[n].
  std::optional<Tensor> held(const Tensor& x, const Tensor& gradient) const;

  Tensor number(double value) const { return grad_build::scalar(dtype, value); }
  Tensor zeros() const { return grad_build::zeros(Aval(dtype, Shape{n})); }

 private:
  /// z = (r / scale)², ρ(z), ρ′(z), ρ″(z).
  struct LossAt {
    Tensor z, value, first, second;
  };
  LossAt loss_of(const Tensor& residuals) const;
  /// The residuals as a function of what varies at this point, which is used while it lives.
  FlatFunction from(std::span<const Tensor> point) const;
  /// The derivative of a function of the residuals, or Jᵀ times weights, which must be the same.
  Tensor slope(std::span<const Tensor> point, FunctionRef<Tensor(const Tensor& residuals)> of,
               FunctionRef<Tensor(const Linearized&)> weights) const;
  /// By which a row of the Jacobian is multiplied.
  Tensor multiplier(const LossAt&, double least) const;
  Tensor per_parameter(const PerParameter&, DType, const char* name) const;
  void check_bounds(const FitCall&) const;

  const FitCall& fit_;
  std::vector<Tensor> guess_;
  Recorded residuals_;
  std::optional<Recorded> plus_;
};

/// All steps from a point: the last point, then iterations, evaluations and the number of the
/// StopReason.
std::vector<Tensor> steps(const Problem&, std::span<const Tensor> start);
/// The point at which the steps from the guess end, with its derivatives, and what steps() says.
struct Fitted {
  std::vector<Tensor> point;
  Tensor iterations, evaluations, reason;
};
Fitted fitted(const Problem&);

}  // namespace vt::detail::fitting
