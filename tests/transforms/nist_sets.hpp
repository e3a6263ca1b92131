// NIST's nonlinear regression sets: the models, and what perf/data/nist has.
#pragma once

#include <fstream>
#include <numbers>
#include <string>
#include <vector>
#include <vt/vt.hpp>

#include "support/data.hpp"

namespace vt_test::nist {

using vt::Tensor;

struct Set {
  std::string name;
  Tensor starts;                              ///< [2, n]
  std::vector<double> certified, deviations;  ///< [n]
  double sum_of_squares = 0;
  Tensor x, y;  ///< [m], of Nelson x [m, 2]
};

inline std::vector<Set> sets() {
  std::ifstream file(data_folder() + "nist/sets.txt");
  std::vector<Set> all;
  std::string word;
  std::int64_t n = 0, m = 0, predictors = 0;
  while (file >> word >> word >> n >> m >> predictors) {
    Set s;
    s.name = word;
    std::vector<double> starts(static_cast<std::size_t>(2 * n)), x, y;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      s.certified.emplace_back();
      s.deviations.emplace_back();
      file >> starts[i] >> starts[i + static_cast<std::size_t>(n)] >> s.certified[i] >>
          s.deviations[i];
    }
    file >> s.sum_of_squares;
    for (std::int64_t i = 0; i < m; ++i) {
      file >> y.emplace_back();
      for (std::int64_t k = 0; k < predictors; ++k) file >> x.emplace_back();
    }
    s.starts = vt::tensor(starts, {2, n});
    s.x = predictors == 1 ? vt::tensor(x) : vt::tensor(x, {m, predictors});
    s.y = vt::tensor(y);
    if (s.name == "Nelson") s.y = vt::log(s.y);
    all.push_back(s);
  }
  return all;
}

/// What y should be at one point.
inline Tensor model(const std::string& name, const Tensor& b, const Tensor& x) {
  const auto is = [&](const char* prefix) { return name.starts_with(prefix); };
  const auto exp = [](const Tensor& t) { return vt::exp(t); };
  const double pi = std::numbers::pi;
  if (is("Bennett5")) return b[0] * vt::pow(b[1] + x, -1.0 / b[2]);
  if (is("BoxBOD") || is("Misra1a")) return b[0] * (1.0 - exp(-b[1] * x));
  if (is("Misra1b")) return b[0] * (1.0 - 1.0 / vt::square(1.0 + b[1] * x / 2.0));
  if (is("Misra1c")) return b[0] * (1.0 - 1.0 / vt::sqrt(1.0 + 2.0 * b[1] * x));
  if (is("Misra1d")) return b[0] * b[1] * x / (1.0 + b[1] * x);
  if (is("Chwirut")) return exp(-b[0] * x) / (b[1] + b[2] * x);
  if (is("DanWood")) return b[0] * vt::pow(x, b[1]);
  if (is("ENSO")) {
    const auto wave = [&](const Tensor& period, const Tensor& c, const Tensor& s) {
      const Tensor angle = 2.0 * pi * x / period;
      return c * vt::cos(angle) + s * vt::sin(angle);
    };
    return b[0] + wave(vt::full_like(x, 12.0), b[1], b[2]) + wave(b[3], b[4], b[5]) +
           wave(b[6], b[7], b[8]);
  }
  if (is("Eckerle4")) return b[0] / b[1] * exp(-0.5 * vt::square((x - b[2]) / b[1]));
  if (is("Gauss"))
    return b[0] * exp(-b[1] * x) + b[2] * exp(-vt::square((x - b[3]) / b[4])) +
           b[5] * exp(-vt::square((x - b[6]) / b[7]));
  if (is("Hahn1") || is("Thurber"))
    return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1.0 + x * (b[4] + x * (b[5] + x * b[6])));
  if (is("Kirby2")) return (b[0] + x * (b[1] + x * b[2])) / (1.0 + x * (b[3] + x * b[4]));
  if (is("Lanczos")) return b[0] * exp(-b[1] * x) + b[2] * exp(-b[3] * x) + b[4] * exp(-b[5] * x);
  if (is("MGH09")) return b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3]);
  if (is("MGH10")) return b[0] * exp(b[1] / (x + b[2]));
  if (is("MGH17")) return b[0] + b[1] * exp(-x * b[3]) + b[2] * exp(-x * b[4]);
  if (is("Nelson")) return b[0] - b[1] * x[0] * exp(-b[2] * x[1]);
  if (is("Rat42")) return b[0] / (1.0 + exp(b[1] - b[2] * x));
  if (is("Rat43")) return b[0] / vt::pow(1.0 + exp(b[1] - b[2] * x), 1.0 / b[3]);
  if (is("Roszman1")) return b[0] - b[1] * x - vt::atan(b[2] / (x - b[3])) / pi;
  throw std::runtime_error("no model of " + name);
}

/// How many digits are right: the fewest of all numbers, at most the 11 that are certified.
inline double digits(const double* found, const std::vector<double>& certified) {
  double least = 11;
  for (std::size_t i = 0; i < certified.size(); ++i) {
    const double error = std::abs(found[i] - certified[i]) / std::abs(certified[i]);
    if (!(error <= 1)) return 0;
    if (error > 0) least = std::min(least, -std::log10(error));
  }
  return least;
}

}  // namespace vt_test::nist
