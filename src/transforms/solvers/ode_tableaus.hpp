// The coefficients of the methods of odeint.
#pragma once

#include <array>
#include <vector>

namespace vt::detail::ode {

/// An explicit Runge–Kutta method whose last stage is f at the new point: that is the first stage
/// of the next step.
struct RungeKutta {
  /// Row i: stage i is f(t + c[i] h, y + h Σ a[i][j] k[j]). The last row makes the new y.
  std::vector<std::vector<double>> a;
  std::vector<double> c;
  std::vector<double> error;  ///< h Σ error[j] k[j]; empty: steps are not judged
  /// Between the ends lies the cubic polynomial that has their values and slopes, plus
  /// θ² (1 − θ)² h Σ between[j] k[j]; empty: only that.
  std::vector<double> between;
};
const RungeKutta& classical();
const RungeKutta& dormand_prince();
const RungeKutta& tsitouras();

/// A Rosenbrock method in the form that needs no products with the Jacobian J (Hairer and Wanner
/// IV.7): stage i solves
/// (1/(h γ) − J) k[i] = f(t + α[i] h, y + Σ a[i][j] k[j]) + Σ c[i][j] k[j] / h + h γ[i] ∂f/∂t,
/// the new y is y + Σ b[j] k[j], its error k[7], and between the ends lies
/// (1 − θ) y + θ (y_new + (1 − θ) (r₀ + θ (r₁ + θ r₂))), rᵢ = Σ between[i][j] k[j].
struct Rosenbrock {
  double gamma;
  std::array<double, 8> alpha, gamma_sum, b;
  std::array<std::array<double, 7>, 8> a, c;
  std::array<std::array<double, 8>, 3> between;
};
const Rosenbrock& rodas5p();

}  // namespace vt::detail::ode
