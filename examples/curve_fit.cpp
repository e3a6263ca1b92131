// Fits a decaying oscillation to a CSV of t,y pairs with Levenberg-Marquardt; residuals by vmap,
// their Jacobian by jacobian.
// Usage: curve_fit FILE.csv
#include <Eigen/Cholesky>
#include <cmath>
#include <cstdio>

#include <vt/eigen.hpp>
#include <vt/vt.hpp>

#include "support/csv.hpp"

namespace {

/// The curve at one time: amplitude·exp(−rate·t)·cos(frequency·t + phase) + offset.
vt::Tensor curve(const vt::Tensor& p, const vt::Tensor& t) {
  return p[0] * vt::exp(-p[1] * t) * vt::cos(p[2] * t + p[3]) + p[4];
}

int fit(const char* path) {
  constexpr int count = 5;
  constexpr const char* names[count] = {"amplitude", "rate", "frequency", "phase", "offset"};
  const support::Table table = support::read_csv(path, 2, support::Header::optional);
  if (table.rows() <= count)
    throw support::InputError(path, table.lines.back(),
                              "a fit of " + std::to_string(count) + " parameters needs more rows");
  const vt::Tensor data = vt::tensor(table.values, {table.rows(), 2});
  const vt::Tensor t = vt::take(data, 0, 1).eval(), y = vt::take(data, 1, 1).eval();

  const auto residuals = [&](const vt::Tensor& p) {
    return vt::vmap(curve, {.in_axes = {vt::unmapped, 0}})(p, t) - y;
  };
  const auto value = vt::jit(residuals);
  const auto slopes = vt::jit(vt::jacobian(residuals));  // [rows, 5]
  const auto squares = [&](const Eigen::VectorXd& p) {
    return Eigen::VectorXd(value(p)).squaredNorm();
  };

  // Several starting frequencies, since the sum of squares has more than one valley.
  const double length = (vt::max(t) - vt::min(t)).item<double>();
  if (!(length > 0)) throw support::InputError(path, table.lines.back(), "all times are the same");
  Eigen::VectorXd best;
  double least = INFINITY;
  int steps = 0;
  for (int waves = 1; waves <= 8; ++waves) {
    Eigen::VectorXd p(count);
    p << vt::std(y).item<double>() * 2, 1.0 / length, waves * 3.14159 / length, 0.0,
        vt::mean(y).item<double>();
    double error = squares(p), damping = 1e-2;
    for (int step = 0; step < 100 && damping < 1e10; ++step, ++steps) {
      const Eigen::MatrixXd j = slopes(p);
      const Eigen::VectorXd r = value(p);
      Eigen::MatrixXd normal = j.transpose() * j;
      normal.diagonal() *= 1 + damping;
      normal.diagonal().array() += 1e-12;
      const Eigen::VectorXd candidate = p - normal.ldlt().solve(j.transpose() * r);
      const double next = squares(candidate);
      if (!(next < error)) {
        damping *= 4;
        continue;
      }
      const bool settled = error - next < 1e-14 * error;
      p = candidate;
      error = next;
      damping /= 3;
      if (settled) break;
    }
    if (error < least) least = error, best = p;
  }
  if (!std::isfinite(least)) throw std::runtime_error("no fit was found");

  // Standard errors from the Jacobian at the end.
  const Eigen::MatrixXd j = slopes(best);
  const double variance = least / static_cast<double>(table.rows() - count);
  const Eigen::MatrixXd covariance =
      variance * (j.transpose() * j).ldlt().solve(Eigen::MatrixXd::Identity(count, count));
  std::printf("%s: %zu rows, %d steps, residual %.4f\n", path, table.rows(), steps,
              std::sqrt(variance));
  for (int i = 0; i < count; ++i)
    std::printf("  %-9s %9.4f ± %.4f\n", names[i], best[i], std::sqrt(covariance(i, i)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: curve_fit FILE.csv (rows: t,y)\n");
    return 2;
  }
  return support::run("curve_fit", [&] { return fit(argv[1]); });
}
