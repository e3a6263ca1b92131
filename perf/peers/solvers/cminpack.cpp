// The peaks by MINPACK's lmder, its Jacobian written by hand, an exponential a pixel.
#include <cminpack-1/cminpack.h>

#include "../../solvers/problems.hpp"
#include "../../solvers/report.hpp"

namespace {

using problems::Peaks;

int residuals(void* data, int, int, const double* x, double* f, double* jacobian, int ld,
              int wanted) {
  const double* image = static_cast<const double*>(data);
  const double scale = 1 / (2 * x[3] * x[3]);
  for (int j = 0; j < Peaks::side; ++j)
    for (int i = 0; i < Peaks::side; ++i) {
      const int k = j * Peaks::side + i;
      const double dx = i - x[1], dy = j - x[2], d = dx * dx + dy * dy, e = std::exp(-d * scale);
      if (wanted == 1) f[k] = x[0] * e + x[4] - image[k];
      else {
        double* column = jacobian + k;
        column[0] = e;
        column[ld] = x[0] * e * dx * 2 * scale;
        column[2 * ld] = x[0] * e * dy * 2 * scale;
        column[3 * ld] = x[0] * e * d / (x[3] * x[3] * x[3]);
        column[4 * ld] = 1;
      }
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv);
  if (report::first_part(row) != "peaks") return 0;
  constexpr int m = Peaks::pixels, n = Peaks::parameters;
  report::Numbers images = report::read(row, "images"), answers;
  double evaluations = 0;
  const auto run = [&] {
    answers.clear();
    evaluations = 0;
    double f[m], jacobian[m * n], diag[n], qtf[n], a[n], b[n], c[n], d[m];
    int pivots[n], calls = 0, jacobians = 0;
    for (std::size_t i = 0; i < images.size(); i += m) {
      auto x = Peaks::guess(&images[i]);
      lmder(residuals, &images[i], m, n, x.data(), f, jacobian, m, Peaks::tolerance,
            Peaks::tolerance, 0, 2000, diag, 1, 100, 0, &calls, &jacobians, pivots, qtf, a, b, c,
            d);
      x[3] = std::abs(x[3]);  // a width has no sign
      answers.insert(answers.end(), x.begin(), x.end());
      evaluations += calls;
    }
  };
  report::Row out{row, "cminpack", report::median_seconds(run)};
  out.lanes = static_cast<double>(images.size() / m);
  out.error = report::error_of(answers, report::read(row, "answers"), n);
  out.allowed = 1e-5;
  out.work = evaluations;
  report::print(out);
}
