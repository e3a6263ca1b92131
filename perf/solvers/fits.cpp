// Fits and minima: peaks, normal equations, Rosenbrock's function.
#include <vt/minimize.hpp>
#include <vt/optim.hpp>

#include "problems.hpp"
#include "solvers.hpp"

namespace solvers {
namespace {

// --- peaks, as in examples/solvers/peaks.cpp -----------------------------------------------------

struct Peak {
  Tensor height, x, y, width, background;
};
Tensor brightness(const Peak& p, const Tensor& x, const Tensor& y) {
  const Tensor squared = vt::square(x - p.x) + vt::square(y - p.y);
  return p.height * vt::exp(-squared / (2.0 * vt::square(p.width))) + p.background;
}
Tensor image_of(const Peak& p) {
  const Tensor places = vt::arange(problems::Peaks::side, vt::f64);
  return brightness(p, places, vt::expand_dims(places, {1}));
}
constexpr vt::LeastSquaresOptions peak_options() {
  constexpr double tolerance = problems::Peaks::tolerance;
  return {.ftol = tolerance, .xtol = tolerance, .gtol = 0.0};
}
Peak guess(const Tensor& image) {
  return {vt::max(image) - vt::min(image), 7.0, 7.0, 2.0, vt::min(image)};
}

void peaks(const std::string& name, std::int64_t count) {
  constexpr int side = problems::Peaks::side;
  const auto n = static_cast<std::size_t>(count);
  const auto draw = [&](double low, double high, std::uint64_t seed) {
    return vt::tensor(uniform(n, low, high, seed));
  };
  const Peak truth{draw(5, 10, 1), draw(6, 8, 2), draw(6, 8, 3), draw(1.5, 2.5, 4), draw(0, 1, 5)};
  std::mt19937_64 bits(6);
  std::normal_distribution<double> normal(0, 0.05);
  Numbers noise(n * problems::Peaks::pixels);
  for (double& v : noise) v = normal(bits);
  const Tensor images = (vt::vmap(image_of)(truth) + vt::tensor(noise, {count, side, side})).eval();
  report::write(name, "images", images.to_vector<double>());

  const auto fit_row = [&](const std::string& below, const auto& fitted, const Tensor& given) {
    const auto fit = vt::jit(vt::vmap([=](Tensor image) {
      const vt::Solution<Peak> s = fitted(image);
      return std::tuple(vt::stack(vt::tree_leaves(s.x)), s.evaluations, s.converged);
    }));
    report::Row row = timed(below, "vt", static_cast<double>(count), [&] { vt::eval(fit(given)); });
    const auto [x, evaluations, converged] = fit(given);
    const Tensor off = x - vt::stack(vt::tree_leaves(truth), 1);
    // Noise moves the fit by so much, and no more.
    row.error = vt::all(converged).template item<bool>()
                    ? vt::max(vt::abs(off)).template item<double>()
                    : INFINITY;
    row.allowed = 0.4;
    row.work = vt::sum(evaluations.astype(vt::f64)).template item<double>();
    report::print(row);
    return x;
  };
  const auto square = [](const Tensor& image) {
    return vt::least_squares([&](const Peak& p) { return image_of(p) - image; }, guess(image),
                             peak_options());
  };
  report::write(name, "answers", fit_row(name, square, images).template to_vector<double>());
  // Pixels in one row, each with its place.
  const Tensor places = vt::arange(side, vt::f64);
  const Tensor x = vt::tile(places, {side}).eval(), y = vt::repeat(places, side).eval();
  const auto flat = [=](const Tensor& image) {
    return vt::least_squares([&](const Peak& p) { return brightness(p, x, y) - image; },
                             guess(image), peak_options());
  };
  fit_row(name + "/flat", flat, vt::reshape(images, {count, problems::Peaks::pixels}).eval());
}

// --- normal equations ----------------------------------------------------------------------------

void normal_equations(const std::string& name) {
  constexpr std::int64_t points = 1'000'000;
  const Numbers xs = uniform(points, 0, 1, 1), ys = uniform(points, 0, 1, 2);
  const Tensor x = vt::tensor(xs), y = vt::tensor(ys);
  const Tensor at =
      vt::tensor(Numbers(std::begin(problems::normal_at), std::end(problems::normal_at)));
  const bool polynomial = report::last_part(name) == "polynomial";
  const auto model = [=](const Tensor& p, const Tensor& x) {
    if (polynomial) return p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * (p[4] + x * p[5]))));
    return p[0] * vt::exp(-p[1] * x) + p[2] * vt::exp(-p[3] * x) + p[4] + p[5] * x;
  };
  const auto residuals = [=](Tensor p) { return model(p, x) - y; };
  // JᵀJ, Jᵀr, rᵀr
  const auto normal = vt::jit([=](Tensor p) {
    const Tensor j = vt::jacfwd(residuals)(p), r = residuals(p), t = vt::transpose(j);
    return std::tuple(vt::matmul(t, j), vt::matmul(t, r), vt::sum(r * r));
  });
  const auto squares = vt::jit([=](Tensor p) { return vt::sum(vt::square(residuals(p))); });
  report::print(timed(name, "vt", 1, [&] { vt::eval(normal(at)); }));
  report::print(timed(name, "vt_squares", 1, [&] { vt::eval(squares(at)); }));
  const auto [jj, jr, rr] = normal(at);
  Numbers answers = jj.to_vector<double>();
  for (const double v : jr.to_vector<double>()) answers.push_back(v);
  answers.push_back(rr.item<double>());
  report::write(name, "x", xs);
  report::write(name, "y", ys);
  report::write(name, "answers", answers);
}

// --- Rosenbrock's function -----------------------------------------------------------------------

void rosenbrock(const std::string& name, std::int64_t size, std::int64_t starts) {
  const auto f = [size](const Tensor& x) {
    const Tensor a = x[vt::slice(0, size - 1)], b = x[vt::slice(1, size)];
    return vt::sum(100.0 * vt::square(b - a * a) + vt::square(1.0 - a));
  };
  const auto lane = [=](Tensor start) {
    const auto s = vt::minimize(f, start);
    return std::tuple(s.x, s.evaluations, s.converged);
  };
  std::mt19937_64 bits(3);
  std::normal_distribution<double> normal(0, 0.3);
  Numbers at;
  for (std::int64_t i = 0; i < starts * size; ++i)
    at.push_back((i % size % 2 == 0 ? -1.2 : 1.0) + (starts > 1 ? normal(bits) : 0));
  const Tensor start = vt::tensor(at, {starts, size});
  const Tensor first = start[0].eval();
  report::write(name, "starts", at);

  const auto one = vt::jit(lane);
  const auto all = vt::jit(vt::vmap(lane));
  const auto solved = [&](std::int64_t lanes, const auto& solve) {
    report::Row row = timed(name, "vt", static_cast<double>(lanes), [&] { vt::eval(solve()); });
    const auto [x, evaluations, converged] = solve();
    // Some starts end in another minimum than that at 1: but the gradient is 0 there.
    const Tensor slopes = vt::vmap(vt::grad(f))(vt::reshape(x, {lanes, size}));
    const bool all_converged = vt::all(converged).template item<bool>();
    row.error = all_converged ? vt::max(vt::abs(slopes)).template item<double>() : INFINITY;
    row.allowed = 1e-4;
    row.work = vt::sum(evaluations.astype(vt::f64)).template item<double>();
    report::print(row);
  };
  if (starts == 1) return solved(1, [&] { return one(first); });
  solved(starts, [&] { return all(start); });
  // The loop over the starts that there would be without vmap.
  constexpr std::int64_t few = 100;
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < few; ++i) each.push_back(start[i].eval());
  report::print(timed(name, "vt_loop", few, [&] {
    for (const Tensor& s : each) vt::eval(one(s));
  }));
}

}  // namespace

bool fit_rows(const std::string& row) {
  const std::string first = report::first_part(row);
  if (first == "peaks") peaks(row, std::stoll(report::last_part(row)));
  else if (first == "normal") normal_equations(row);
  else if (first == "rosenbrock")
    rosenbrock(row, std::stoll(row.substr(row.find('/') + 1)), std::stoll(report::last_part(row)));
  else return false;
  return true;
}

}  // namespace solvers
