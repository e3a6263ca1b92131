// Boost's integrators on the problems of odeint.cpp, one lane after the other.
#include "native_odeint.hpp"

#include <array>
#include <utility>

#if __has_include(<boost/numeric/odeint.hpp>)
#include <boost/numeric/odeint.hpp>
#include <boost/numeric/ublas/matrix.hpp>
#include <boost/numeric/ublas/vector.hpp>
#define VT_PERF_BOOST 1
#endif

namespace perf::odeint {

long boost_lorenz([[maybe_unused]] std::vector<double>& y,
                  [[maybe_unused]] const std::vector<double>& t1,
                  [[maybe_unused]] double tolerance) {
  long steps = 0;
#ifdef VT_PERF_BOOST
  using State = std::array<double, 3>;
  const auto f = [](const State& y, State& d, double) {
    d[0] = 10 * (y[1] - y[0]);
    d[1] = 28 * y[0] - y[1] - y[0] * y[2];
    d[2] = y[0] * y[1] - 8.0 / 3 * y[2];
  };
  namespace ode = boost::numeric::odeint;
  for (std::size_t i = 0; i < t1.size(); ++i) {
    State now{y[3 * i], y[3 * i + 1], y[3 * i + 2]};
    auto stepper = ode::make_controlled(tolerance, tolerance, ode::runge_kutta_dopri5<State>());
    steps += static_cast<long>(ode::integrate_adaptive(stepper, f, now, 0.0, t1[i], 1e-3));
    for (std::size_t k = 0; k < 3; ++k) y[3 * i + k] = now[k];
  }
#endif
  return steps;
}

long boost_robertson([[maybe_unused]] const std::vector<double>& rates,
                     [[maybe_unused]] std::vector<double>& y0, [[maybe_unused]] double t1,
                     [[maybe_unused]] double rtol, [[maybe_unused]] double atol) {
  long steps = 0;
#ifdef VT_PERF_BOOST
  namespace ode = boost::numeric::odeint;
  using Vector = boost::numeric::ublas::vector<double>;
  using Matrix = boost::numeric::ublas::matrix<double>;
  for (std::size_t i = 0; i < y0.size(); ++i) {
    const double slow = rates[3 * i], back = rates[3 * i + 1], fast = rates[3 * i + 2];
    const auto f = [=](const Vector& y, Vector& d, double) {
      const double a = slow * y[0], b = back * y[1] * y[2], c = fast * y[1] * y[1];
      d[0] = b - a;
      d[1] = a - b - c;
      d[2] = c;
    };
    const auto jacobian = [=](const Vector& y, Matrix& j, double, Vector& by_t) {
      j(0, 0) = -slow;
      j(0, 1) = back * y[2];
      j(0, 2) = back * y[1];
      j(1, 0) = slow;
      j(1, 1) = -back * y[2] - 2 * fast * y[1];
      j(1, 2) = -back * y[1];
      j(2, 0) = 0;
      j(2, 1) = 2 * fast * y[1];
      j(2, 2) = 0;
      by_t[0] = by_t[1] = by_t[2] = 0;
    };
    Vector y(3);
    y[0] = 1;
    y[1] = y[2] = 0;
    steps += static_cast<long>(
        ode::integrate_adaptive(ode::make_controlled<ode::rosenbrock4<double>>(atol, rtol),
                                std::make_pair(f, jacobian), y, 0.0, t1, 1e-4));
    y0[i] = y[0];
  }
#endif
  return steps;
}

}  // namespace perf::odeint
