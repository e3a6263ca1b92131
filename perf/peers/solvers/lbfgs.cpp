// Rosenbrock's function by liblbfgs with its defaults, the gradient written by hand, one start
// after the other.
#include <lbfgs.h>

#include "../../solvers/report.hpp"

namespace {

double value_and_gradient(void* calls, const double* x, double* g, int n, double) {
  ++*static_cast<double*>(calls);
  double f = 0;
  std::fill(g, g + n, 0.0);
  for (int i = 0; i + 1 < n; ++i) {
    const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
    f += 100 * a * a + b * b;
    g[i] += -400 * a * x[i] - 2 * b;
    g[i + 1] += 200 * a;
  }
  return f;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv);
  if (report::first_part(row) != "rosenbrock") return 0;
  const int n = std::stoi(row.substr(row.find('/') + 1));
  const report::Numbers starts = report::read(row, "starts");
  const std::size_t lanes = starts.size() / static_cast<std::size_t>(n);
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.epsilon = 1e-12;  // the length of the gradient, relative to that of x
  double* x = lbfgs_malloc(n);
  double calls = 0, slope = 0;
  const auto run = [&] {
    calls = slope = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
      std::copy_n(&starts[i * static_cast<std::size_t>(n)], n, x);
      double f;
      lbfgs(n, x, &f, value_and_gradient, nullptr, &calls, &parameters);
      std::vector<double> g(static_cast<std::size_t>(n));
      double last;
      value_and_gradient(&last, x, g.data(), n, 0);
      for (const double v : g) slope = std::max(slope, std::abs(v));
    }
  };
  report::Row out{row, "lbfgs", report::median_seconds(run)};
  out.lanes = static_cast<double>(lanes);
  out.error = slope;
  out.allowed = 1e-4;
  out.work = calls;
  report::print(out);
  lbfgs_free(x);
}
