// Many Kalman filters at once: written for one filter as a scan over time, mapped over filters;
// each step solves a small linear system. Checked against plain loops of doubles.
#include <vt/vt.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr int filters = 2000, steps = 100;

// A point that moves in the plane: position and velocity, of which the position is measured.
struct Model {
  vt::Tensor move, noise, seen, seen_noise;
};

Model make_model(double dt) {
  Model m;
  m.move = vt::tensor(
      {{1.0, 0.0, dt, 0.0}, {0.0, 1.0, 0.0, dt}, {0.0, 0.0, 1.0, 0.0}, {0.0, 0.0, 0.0, 1.0}});
  m.noise = 0.01 * vt::eye(4, vt::f64);
  m.seen = vt::tensor({{1.0, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0}});
  m.seen_noise = vt::tensor({{0.5, 0.1}, {0.1, 0.3}});
  return m;
}

/// One filter: measurements [steps, 2] → the last state [4] and the log-likelihood of them.
std::pair<vt::Tensor, vt::Tensor> filter(const Model& m, const vt::Tensor& measurements) {
  const auto step = [&](std::tuple<vt::Tensor, vt::Tensor> state, vt::Tensor measured) {
    const auto& [mean, spread] = state;
    const vt::Tensor x = vt::matmul(m.move, mean),
                     p = vt::matmul(vt::matmul(m.move, spread), vt::transpose(m.move)) + m.noise;
    const vt::Tensor surprise = measured - vt::matmul(m.seen, x);
    const vt::Tensor s = vt::matmul(vt::matmul(m.seen, p), vt::transpose(m.seen)) + m.seen_noise;
    const vt::Tensor gain = vt::transpose(vt::linalg::solve(s, vt::matmul(m.seen, p)));
    const vt::Tensor likelihood = -0.5 * (vt::sum(surprise * vt::linalg::solve(s, surprise)) +
                                          vt::linalg::slogdet(s).logabsdet);
    return std::pair(
        std::tuple(x + vt::matmul(gain, surprise), p - vt::matmul(vt::matmul(gain, m.seen), p)),
        likelihood);
  };
  const auto [last, likelihoods] =
      vt::scan(step, std::tuple(vt::zeros({4}, vt::f64), vt::eye(4, vt::f64)), measurements);
  return {std::get<0>(last), vt::sum(likelihoods)};
}

/// The same by hand: the systems are 2 × 2, so Cramer's rule solves them.
std::array<double, 4> plain_filter(const double* z, double dt) {
  using Square = std::array<std::array<double, 4>, 4>;
  std::array<double, 4> x{};
  Square p{};
  for (std::size_t i = 0; i < 4; ++i) p[i][i] = 1;
  for (int t = 0; t < steps; ++t, z += 2) {
    for (std::size_t i = 0; i < 2; ++i) x[i] += dt * x[i + 2];
    for (std::size_t i = 0; i < 2; ++i)  // p ← F p Fᵀ + Q
      for (std::size_t j = 0; j < 4; ++j) p[i][j] += dt * p[i + 2][j];
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 2; ++j) p[i][j] += dt * p[i][j + 2];
    for (std::size_t i = 0; i < 4; ++i) p[i][i] += 0.01;
    const double a = p[0][0] + 0.5, b = p[0][1] + 0.1, c = p[1][0] + 0.1, d = p[1][1] + 0.3,
                 det = a * d - b * c;
    const double u = z[0] - x[0], v = z[1] - x[1];
    Square next = p;
    for (std::size_t i = 0; i < 4; ++i) {
      const double k0 = (p[i][0] * d - p[i][1] * c) / det, k1 = (p[i][1] * a - p[i][0] * b) / det;
      x[i] += k0 * u + k1 * v;
      for (std::size_t j = 0; j < 4; ++j) next[i][j] = p[i][j] - k0 * p[0][j] - k1 * p[1][j];
    }
    p = next;
  }
  return x;
}

double seconds_of(const auto& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main() {
  const double dt = 0.1;
  std::mt19937 engine(1);
  std::normal_distribution<double> normal;
  std::vector<double> data;
  for (int f = 0; f < filters; ++f) {
    const double speed[2] = {normal(engine), normal(engine)};
    for (int t = 0; t < steps; ++t)
      for (double s : speed) data.push_back(s * dt * (t + 1) + 0.5 * normal(engine));
  }
  const vt::Tensor measurements = vt::tensor(data, {filters, steps, 2});

  const Model model = make_model(dt);
  const auto all = vt::jit([&](vt::Tensor z) {
    return vt::vmap([&](vt::Tensor one) { return filter(model, one); })(z);
  });
  std::vector<double> states;
  all(measurements).first.eval();  // compiles
  const double fast = seconds_of([&] { states = all(measurements).first.to_vector<double>(); });

  double worst = 0;
  const double slow = seconds_of([&] {
    for (int f = 0; f < filters; ++f) {
      const std::array<double, 4> x = plain_filter(data.data() + 2 * f * steps, dt);
      for (std::size_t i = 0; i < 4; ++i)
        worst = std::max(worst, std::fabs(x[i] - states[4 * static_cast<std::size_t>(f) + i]));
    }
  });
  std::printf(
      "%d filters of %d steps: %.1f ms mapped, %.1f ms one by one in plain loops; largest "
      "difference %.1e\n",
      filters, steps, 1e3 * fast, 1e3 * slow, worst);

  // How noisy are the measurements? The gradient of the likelihood by what the model says of them
  // points the way.
  const auto likelihood = [&](vt::Tensor noise) {
    Model m = model;
    m.seen_noise = noise;
    return vt::mean(vt::vmap([&](vt::Tensor one) { return filter(m, one).second; })(
        measurements[vt::slice(0, 50)]));
  };
  const vt::Tensor gradient = vt::grad(likelihood)(model.seen_noise);
  std::printf("gradient of the mean log-likelihood by the noise of x and y: %.2f, %.2f\n",
              gradient[0][0].item<double>(), gradient[1][1].item<double>());
  return worst < 1e-10 ? 0 : 1;
}
