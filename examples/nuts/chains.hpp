// What there is to say of many Markov chains: effective sample size, R-hat, and pictures of traces
// and of the posterior.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../support/png.hpp"

namespace support {

/// Draws of several chains; those of one parameter of one chain lie one behind the other.
class Chains {
 public:
  /// draws: [chains, draws, parameters], of which the first `skipped` of each chain are left out.
  Chains(const vt::Tensor& draws, std::int64_t skipped)
      : chains_(count(draws, 0)),
        length_(count(draws, 1) - static_cast<std::size_t>(skipped)),
        parameters_(count(draws, 2)) {
    const vt::Shape& all = draws.shape();
    const vt::Tensor kept = vt::slice(draws, {0, skipped, 0}, all);
    values_ = vt::transpose(kept, {2, 0, 1}).to_vector<double>();
  }

  std::size_t chains() const { return chains_; }
  std::size_t length() const { return length_; }
  std::size_t parameters() const { return parameters_; }
  /// The draws of a parameter in a chain; those of the next chain follow.
  const double* of(std::size_t parameter, std::size_t chain = 0) const {
    return &values_[(parameter * chains_ + chain) * length_];
  }
  double mean(std::size_t parameter) const {
    double sum = 0;
    for (std::size_t i = 0; i < chains_ * length_; ++i) sum += of(parameter)[i];
    return sum / static_cast<double>(chains_ * length_);
  }
  double deviation(std::size_t parameter) const {
    const double middle = mean(parameter);
    double sum = 0;
    for (std::size_t i = 0; i < chains_ * length_; ++i)
      sum += (of(parameter)[i] - middle) * (of(parameter)[i] - middle);
    return std::sqrt(sum / static_cast<double>(chains_ * length_));
  }

 private:
  static std::size_t count(const vt::Tensor& draws, int axis) {
    return static_cast<std::size_t>(draws.shape()[axis]);
  }

  std::size_t chains_, length_, parameters_;
  std::vector<double> values_;
};

/// How well chains of one parameter agree, and of how many independent draws they are worth. After
/// Gelman et al. 2013, Bayesian Data Analysis, 11.4 and 11.5: each half of a chain is a chain; the
/// correlations are added up by pairs of lags, as long as a pair's sum is positive (Geyer 1992).
struct Mixing {
  double r_hat, effective;
};
inline Mixing mixing(const Chains& all, std::size_t parameter) {
  const std::size_t n = all.length() / 2;
  std::vector<const double*> halves;
  for (std::size_t c = 0; c < all.chains(); ++c)
    for (const std::size_t start : {std::size_t(0), all.length() - n})
      halves.push_back(all.of(parameter, c) + start);
  const auto m = static_cast<double>(halves.size()), length = static_cast<double>(n);
  std::vector<double> means;
  double grand = 0, between = 0;
  for (const double* x : halves) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i];
    means.push_back(sum / length);
    grand += means.back() / m;
  }
  for (const double mean : means) between += (mean - grand) * (mean - grand) * length / (m - 1);
  const auto covariance = [&](std::size_t lag) {  // mean over chains
    double sum = 0;
    for (std::size_t c = 0; c < halves.size(); ++c)
      for (std::size_t i = 0; i + lag < n; ++i)
        sum += (halves[c][i] - means[c]) * (halves[c][i + lag] - means[c]);
    return sum / (m * length);
  };
  const double within = covariance(0) * length / (length - 1);
  const double variance = (within * (length - 1) + between) / length;
  const auto correlation = [&](std::size_t lag) {
    return 1 - (within - covariance(lag)) / variance;
  };
  double sum = 0, before = 2;
  for (std::size_t lag = 1; lag + 1 < n; lag += 2) {
    const double pair = std::min(before, correlation(lag) + correlation(lag + 1));
    if (pair < 0) break;
    sum += before = pair;
  }
  return {std::sqrt(variance / within), std::min(m * length / (1 + 2 * sum), 1e9)};
}

constexpr std::array<Colour, 4> chain_colours{
    {{30, 90, 200}, {230, 150, 30}, {40, 150, 70}, {170, 60, 150}}};

/// The values of a few chains, one below the other for each parameter.
inline void draw_traces(const std::string& path, const Chains& all,
                        const std::vector<std::string>& names) {
  constexpr int left = 90, width = 700, height = 110, top = 20;
  const int rows = static_cast<int>(names.size());
  Picture picture(left + width + 20, top + rows * (height + 20) + 10);
  for (int row = 0; row < rows; ++row) {
    const auto p = static_cast<std::size_t>(row);
    const double middle = all.mean(p), range = 4 * all.deviation(p);
    const int centre = top + row * (height + 20) + height / 2;
    picture.line(left, centre, left + width, centre, 1, {225, 225, 225});
    picture.caption(10, centre - 5, names[p]);
    for (std::size_t c = 0; c < std::min(chain_colours.size(), all.chains()); ++c) {
      const auto y = [&](std::size_t i) {
        const double off = std::clamp((all.of(p, c)[i] - middle) / range, -1.0, 1.0);
        return centre - static_cast<int>(off * height / 2);
      };
      const auto x = [&](std::size_t i) {
        return left + static_cast<int>(static_cast<std::size_t>(width) * i / all.length());
      };
      for (std::size_t i = 1; i < all.length(); ++i)
        picture.line(x(i - 1), y(i - 1), x(i), y(i), 1, chain_colours[c]);
    }
  }
  picture.write_png(path);
}

/// Histograms of each parameter on the diagonal, and of each pair below it: darker is denser. Each
/// reaches four deviations to both sides.
inline void draw_corner(const std::string& path, const Chains& all,
                        const std::vector<std::string>& names) {
  constexpr int bins = 32, scale = 5, panel = bins * scale, gap = 12, left = 20;
  const std::size_t k = names.size();
  Picture picture(left + static_cast<int>(k) * (panel + gap),
                  left + static_cast<int>(k) * (panel + gap));
  std::vector<std::vector<int>> at(k);
  for (std::size_t p = 0; p < k; ++p) {
    const double middle = all.mean(p), range = 4 * all.deviation(p);
    for (std::size_t i = 0; i < all.chains() * all.length(); ++i) {
      const double off = std::clamp((all.of(p)[i] - middle) / range, -1.0, 1.0);
      at[p].push_back(std::min(static_cast<int>((off + 1) / 2 * bins), bins - 1));
    }
  }
  for (std::size_t row = 0; row < k; ++row)
    for (std::size_t column = 0; column <= row; ++column) {
      std::array<std::array<double, bins>, bins> counts{};
      for (std::size_t i = 0; i < at[row].size(); ++i)
        counts[row == column ? 0 : at[row][i]][at[column][i]] += 1;
      double most = 1;
      for (const auto& line : counts) most = std::max(most, *std::ranges::max_element(line));
      const int x = left + static_cast<int>(column) * (panel + gap),
                y = left + static_cast<int>(row) * (panel + gap);
      picture.block(x - 1, y - 1, panel + 2, panel + 2, {200, 200, 200});
      if (row != column) {
        picture.cells(x, y, bins, bins, scale, [&](int r, int c) {
          return grey(1 - std::sqrt(counts[bins - 1 - r][c] / most));
        });
        continue;
      }
      picture.block(x, y, panel, panel, {255, 255, 255});
      for (int c = 0; c < bins; ++c) {
        const int bar = static_cast<int>(counts[0][c] / most * (panel - 24));
        picture.block(x + c * scale, y + panel - bar, scale, bar, chain_colours[0]);
      }
      picture.caption(x + 6, y + 6, names[row]);
    }
  picture.write_png(path);
}

}  // namespace support
