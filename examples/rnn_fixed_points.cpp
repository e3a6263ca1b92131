// Fixed points of a recurrent network: h with h = tanh(W h + b), found from many starting points at
// once by Newton's method on the Jacobian, all lanes of one vmap. How stable each is, the Jacobian
// there tells; how it moves with the bias, its derivative.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <vt/vt.hpp>

using vt::Tensor;

int main() {
  constexpr int n = 8, starts = 256;
  // Two memories: patterns that the network holds once it is near them.
  const Tensor p = vt::tensor({1.0, 1, 1, 1, -1, -1, -1, -1}),
               q = vt::tensor({1.0, -1, 1, -1, 1, -1, 1, -1});
  const Tensor w = (vt::outer(p, p) + vt::outer(q, q)) * (1.6 / n),
               b = vt::full({n}, 0.02, vt::f64);
  const auto cell = [&](Tensor h, Tensor bias) { return vt::tanh(vt::matmul(w, h) + bias); };
  const auto find = [&](Tensor start, Tensor bias) {
    return vt::newton([&](Tensor h) { return cell(h, bias) - h; }, start,
                      {.tolerance = 1e-12, .max_iterations = 100});
  };

  const Tensor from = vt::random::uniform(vt::random::key(5), {starts, n}, -1.0, 1.0, vt::f64);
  const Tensor found = vt::jit(vt::vmap(find, {.in_axes = {0, vt::unmapped}}))(from, b);
  const Tensor error = vt::vmap([&](Tensor h) { return vt::max(vt::abs(cell(h, b) - h)); })(found);
  // The spectral radius of a symmetric matrix times a positive diagonal: that of √D W √D.
  const auto radius = [&](Tensor h) {
    const Tensor d = vt::sqrt(1.0 - vt::square(cell(h, b)));
    return vt::max(vt::abs(vt::linalg::eigvalsh(vt::reshape(d, {n, 1}) * w * d)));
  };
  const Tensor radii = vt::vmap(radius)(found);
  // ∂h/∂b, [starts, n, n]
  const Tensor shift = vt::vmap(vt::jacobian<1>(find), {.in_axes = {0, vt::unmapped}})(found, b);

  std::vector<std::vector<double>> points;
  int converged = 0, stable = 0;
  double worst = 0;
  for (int i = 0; i < starts; ++i) {
    if (!(error[i].item<double>() < 1e-9)) continue;
    ++converged;
    const std::vector<double> h = found[i].to_vector<double>();
    const bool known = std::any_of(points.begin(), points.end(), [&](const auto& other) {
      double distance = 0;
      for (int k = 0; k < n; ++k) distance = std::max(distance, std::fabs(h[k] - other[k]));
      return distance < 1e-6;
    });
    if (known) continue;
    points.push_back(h);
    // By the implicit function theorem ∂h/∂b = (I − J)⁻¹ D, with J = D W.
    const Tensor d = 1.0 - vt::square(found[i]);
    const Tensor wanted =
        vt::linalg::solve(vt::eye(n, vt::f64) - vt::reshape(d, {n, 1}) * w, vt::diag(d));
    worst = std::max(worst, vt::max(vt::abs(shift[i] - wanted)).item<double>() /
                                (1 + vt::max(vt::abs(wanted)).item<double>()));
    const double r = radii[i].item<double>();
    stable += r < 1;
    std::printf("h·p/n %+.3f  h·q/n %+.3f  spectral radius %.3f  %s\n",
                vt::mean(found[i] * p).item<double>(), vt::mean(found[i] * q).item<double>(), r,
                r < 1 ? "stable" : "unstable");
  }
  std::printf(
      "%zu fixed points, %d of them stable, from %d of %d starts; derivatives by the bias are "
      "right to %.0e\n",
      points.size(), stable, converged, starts, worst);
  return converged > starts / 2 && stable >= 2 &&
                 points.size() > static_cast<std::size_t>(stable) && worst < 1e-8
             ? 0
             : 1;
}
