// Differential equations by Boost.odeint, one lane after the other: dopri5, and rosenbrock4 with
// Jacobians written by hand. In C++17, as its matrices need.
#include <boost/numeric/odeint.hpp>
#include <boost/numeric/ublas/matrix.hpp>
#include <boost/numeric/ublas/vector.hpp>
#include <utility>

#include "../../solvers/problems.hpp"
#include "../../solvers/report.hpp"

namespace {

namespace ode = boost::numeric::odeint;
using report::Numbers;

/// Steps tried, and the end in y.
template <class P>
double solve(const double* rates, std::array<double, P::size>& y, double t1, double rtol,
             double atol) {
  double tried = 0;
  if constexpr (P::rates == 0) {
    using State = std::array<double, P::size>;
    const auto f = [&](const State& y, State& d, double) {
      P::slope(rates, y, d);
      ++tried;
    };
    ode::integrate_adaptive(ode::make_controlled(atol, rtol, ode::runge_kutta_dopri5<State>()), f,
                            y, 0.0, t1, 1e-3);
    tried /= 6;
  } else {
    using Vector = boost::numeric::ublas::vector<double>;
    using Matrix = boost::numeric::ublas::matrix<double>;
    const auto f = [=](const Vector& y, Vector& d, double) { P::slope(rates, y, d); };
    const auto jacobian = [&, rates](const Vector& y, Matrix& j, double, Vector& by_t) {
      j.clear();
      P::jacobian(rates, y, j);
      by_t.clear();
      ++tried;
    };
    Vector state(P::size);
    std::copy(y.begin(), y.end(), state.begin());
    ode::integrate_adaptive(ode::make_controlled<ode::rosenbrock4<double>>(atol, rtol),
                            std::make_pair(f, jacobian), state, 0.0, t1, 1e-4);
    std::copy(state.begin(), state.end(), y.begin());
  }
  return tried;
}

template <class P>
void lanes(const std::string& row) {
  using L = problems::Lanes<P>;
  const Numbers x = report::read(row, "x"), ends = report::read(row, "t1");
  Numbers answers;
  double tried = 0;
  const auto run = [&] {
    answers.clear();
    tried = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      std::array<double, P::size> y;
      if constexpr (P::rates > 0) std::copy_n(P::start, P::size, y.begin());
      else std::copy_n(&x[3 * i], P::size, y.begin());
      tried += solve<P>(&x[3 * i], y, P::rates > 0 ? L::t1 : ends[i], L::rtol, L::atol);
      answers.insert(answers.end(), y.begin(), y.end());
    }
  };
  report::Row out{row, "boost", report::median_seconds(run)};
  out.lanes = static_cast<double>(ends.size());
  out.error = report::error_of(answers, report::read(row, "answers"), P::rates > 0 ? 1 : P::size);
  out.allowed = P::rates > 0 ? 1e-3 : 0.3;
  out.work = tried;
  report::print(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv), name = report::first_part(row);
  if (name == "lorenz") lanes<problems::Lorenz>(row);
  if (name == "robertson") lanes<problems::Robertson>(row);
  if (name == "hires") lanes<problems::Hires>(row);
}
