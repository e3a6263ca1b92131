// The Gaussian mixture objective of the ADBench suite, written with vt: one point and one cluster,
// vmapped over both.
#pragma once

#include <cmath>
#include <fstream>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

struct Gmm {
  int dimensions = 0, clusters = 0, points = 0, wishart_m = 0;
  double wishart_gamma = 0;
  vt::Tensor alphas, means, factors, x;  // [k], [k,d], [k,d(d+1)/2], [n,d]
};

inline Gmm read_gmm(const std::string& path) {
  std::ifstream file(path);
  Gmm g;
  if (!(file >> g.dimensions >> g.clusters >> g.points))
    throw std::runtime_error(path + ": cannot be read");
  const auto block = [&](int rows, int columns) {
    std::vector<double> values(static_cast<std::size_t>(rows) * columns);
    for (double& v : values) file >> v;
    return vt::tensor(values, {rows, columns});
  };
  const int d = g.dimensions;
  g.alphas = vt::reshape(block(g.clusters, 1), {g.clusters}).eval();
  g.means = block(g.clusters, d);
  g.factors = block(g.clusters, d * (d + 1) / 2);
  g.x = block(g.points, d);
  if (!(file >> g.wishart_gamma >> g.wishart_m))
    throw std::runtime_error(path + ": ends too early");
  return g;
}

/// The logarithm of the posterior density (up to the data's constant), by alphas, means and inverse
/// covariance factors.
inline auto gmm_objective(const Gmm& g) {
  const int d = g.dimensions;
  // Where the entries of a strictly lower triangle, stored by columns behind the d diagonal ones,
  // go.
  std::vector<int> place(static_cast<std::size_t>(d) * d, 0);
  for (int column = 0, next = d; column < d; ++column)
    for (int row = column + 1; row < d; ++row) place[row * d + column] = next++;
  const vt::Tensor index = vt::tensor(place, {d, d}).eval();
  const double pi = std::numbers::pi, gamma = g.wishart_gamma, m = g.wishart_m, degrees = d + m + 1;
  double log_gamma = 0.25 * d * (d - 1) * std::log(pi);
  for (int j = 1; j <= d; ++j) log_gamma += std::lgamma(0.5 * degrees + 0.5 * (1 - j));
  const double prior_constant =
      g.clusters * (degrees * d * (std::log(gamma) - 0.5 * std::log(2.0)) - log_gamma);
  const double constant = -0.5 * g.points * d * std::log(2 * pi) - prior_constant;

  return [=, x = g.x, points = g.points](vt::Tensor alphas, vt::Tensor means, vt::Tensor factors) {
    const vt::Tensor log_diagonal = vt::take(factors, vt::arange(d), 1);
    const vt::Tensor log_determinant = vt::sum(log_diagonal, 1);
    const auto factor = [&](vt::Tensor row, vt::Tensor log_diagonal) {
      return vt::tril(vt::take(row, index), -1) + vt::diag(vt::exp(log_diagonal));
    };
    const vt::Tensor q = vt::vmap(factor)(factors, log_diagonal);
    const auto one = [](vt::Tensor x, vt::Tensor mean, vt::Tensor q) {
      return vt::sum(vt::square(vt::matmul(q, x - mean)));
    };
    const auto distances = vt::vmap(vt::vmap(one, {.in_axes = {vt::unmapped, 0, 0}}),
                                    {.in_axes = {0, vt::unmapped, vt::unmapped}});
    const vt::Tensor terms = alphas + log_determinant - 0.5 * distances(x, means, q);
    const vt::Tensor likelihood = vt::sum(vt::logsumexp(terms, 1)) - points * vt::logsumexp(alphas);
    const vt::Tensor squares =
        vt::sum(vt::square(vt::exp(log_diagonal))) +
        vt::sum(vt::square(vt::take(factors, vt::arange(d, d * (d + 1) / 2), 1)));
    return likelihood + 0.5 * gamma * gamma * squares - m * vt::sum(log_determinant) + constant;
  };
}

}  // namespace perf
