// The peaks by Ceres Solver with its own derivatives, one problem after the other.
#include <ceres/ceres.h>

#include "../../solvers/problems.hpp"
#include "../../solvers/report.hpp"

namespace {

using problems::Peaks;

struct Residuals {
  const double* image;
  template <class T>
  bool operator()(const T* x, T* f) const {
    using std::exp;
    const T scale = 1.0 / (2.0 * x[3] * x[3]);
    for (int j = 0; j < Peaks::side; ++j)
      for (int i = 0; i < Peaks::side; ++i) {
        const T dx = static_cast<double>(i) - x[1], dy = static_cast<double>(j) - x[2];
        const int k = j * Peaks::side + i;
        f[k] = x[0] * exp(-(dx * dx + dy * dy) * scale) + x[4] - image[k];
      }
    return true;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv);
  if (report::first_part(row) != "peaks") return 0;
  constexpr int m = Peaks::pixels, n = Peaks::parameters;
  const report::Numbers images = report::read(row, "images");
  report::Numbers answers;
  double evaluations = 0;
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.function_tolerance = options.parameter_tolerance = Peaks::tolerance;
  options.gradient_tolerance = 0;
  options.logging_type = ceres::SILENT;
  options.num_threads = 1;
  const auto run = [&] {
    answers.clear();
    evaluations = 0;
    for (std::size_t i = 0; i < images.size(); i += m) {
      auto x = Peaks::guess(&images[i]);
      ceres::Problem problem;
      problem.AddResidualBlock(
          new ceres::AutoDiffCostFunction<Residuals, m, n>(new Residuals{&images[i]}), nullptr,
          x.data());
      ceres::Solver::Summary summary;
      ceres::Solve(options, &problem, &summary);
      x[3] = std::abs(x[3]);  // a width has no sign
      answers.insert(answers.end(), x.begin(), x.end());
      evaluations += summary.num_residual_evaluations;
    }
  };
  report::Row out{row, "ceres", report::median_seconds(run)};
  out.lanes = static_cast<double>(images.size() / m);
  out.error = report::error_of(answers, report::read(row, "answers"), n);
  out.allowed = 1e-5;
  out.work = evaluations;
  report::print(out);
}
