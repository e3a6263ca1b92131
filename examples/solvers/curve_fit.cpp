// curve_fit: a decaying oscillation is fitted to a CSV of t,y pairs, from several starts at once.
// Usage: curve_fit FILE.csv
#include <cmath>
#include <cstdio>

#include <vt/vt.hpp>

#include "../support/csv.hpp"

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

  // Several starting frequencies, since the sum of squares has more than one valley.
  const double length = (vt::max(t) - vt::min(t)).item<double>();
  if (!(length > 0)) throw support::InputError(path, table.lines.back(), "all times are the same");
  const auto from = [&](const vt::Tensor& waves) {
    const vt::Tensor guess = vt::stack({2.0 * vt::std(y), vt::tensor(1.0 / length),
                                        waves * (M_PI / length), vt::tensor(0.0), vt::mean(y)});
    return vt::curve_fit(curve, t, y, guess);
  };
  const auto fits = vt::vmap(from)(vt::arange(1.0, 9.0));
  const vt::Tensor least = vt::argmin(fits.value);
  const auto best = vt::tree_map([&](const vt::Tensor& each) { return each[least]; }, fits);
  if (!best.converged.item<bool>()) throw std::runtime_error("no fit was found");

  std::printf("%s: %zu rows, %d steps, residual %.4f\n", path, table.rows(),
              vt::sum(fits.iterations).item<int>(),
              std::sqrt(2 * best.value.item<double>() / static_cast<double>(table.rows() - count)));
  for (int i = 0; i < count; ++i)
    std::printf("  %-9s %9.4f ± %.4f\n", names[i], best.x[i].item<double>(),
                best.standard_errors[i].item<double>());
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
