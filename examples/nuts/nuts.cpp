// The No-U-Turn Sampler (nuts.hpp, as in the paper, recursive, for one chain) run for many
// chains at once by vmap: their trees grow to different depths, so that each chain goes its own
// way. Samples the posterior of two models, of which the user writes the log density: a logistic
// regression on synthetic data, and a hierarchical model of measurements in a file.
// Usage: nuts FILE.csv [FOLDER] [--points N] [--regressors N] [--chains N] [--draws N] [--step
// SIZE]
//        nuts --write-data FILE.csv
// FILE.csv: rows of laboratory,dose,subjects,reactions. Pictures are written to FOLDER. The options
// are for the regression.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../support/check.hpp"
#include "../support/csv.hpp"
#include "chains.hpp"
#include "nuts.hpp"
#include "reactions.hpp"

namespace {

using nuts::Reactions, nuts::read_reactions, nuts::true_mean, nuts::true_slope, nuts::true_spread;
using vt::Tensor;

struct Options {
  std::string data, folder = ".";
  bool write = false;
  std::int64_t points = 1000, regressors = 8, chains = 32, draws = 300;
  double step_size = 0.02;
};

// --- the models ----------------------------------------------------------------------------------

/// Bayesian logistic regression: labels are −1 or 1; weights are normal.
struct Regression {
  Tensor x, labels;  ///< [points, regressors], [points]

  Tensor operator()(const Tensor& weights) const {
    const Tensor fits = vt::sum(vt::softplus(-labels * vt::matmul(x, weights)));
    return -fits - 0.5 * vt::sum(vt::square(weights));
  }
};
Regression make_regression(std::int64_t points, std::int64_t regressors) {
  const auto [for_x, for_weights, for_labels] = vt::random::split<3>(vt::random::key(1));
  const Tensor x = vt::random::normal(for_x, {points, regressors});
  const Tensor weights = vt::random::normal(for_weights, {regressors});
  const Tensor right =
      vt::random::bernoulli(for_labels, {points}, vt::sigmoid(vt::matmul(x, weights)));
  return {x.eval(), vt::where(right, 1.0f, -1.0f).eval()};
}

void write_reactions(const std::string& path) {
  std::ofstream file(path);
  file << "laboratory,dose,subjects,reactions\n";
  const vt::Generator random(7);
  for (int lab = 1; lab <= 12; ++lab) {
    const Tensor a = true_mean + true_spread * random.normal();
    for (const int dose : {1, 2, 4, 8, 16}) {
      const Tensor p = vt::sigmoid(a + true_slope * std::log(dose));
      const int reactions = random.binomial({}, 20, p).item<int>();
      file << lab << "," << dose << ",20," << reactions << "\n";
    }
  }
}

// --- sampling ------------------------------------------------------------------------------------

struct Schedule {
  const char* name;
  vt::LaneSchedule schedule;
};
constexpr std::array<Schedule, 2> schedules{
    {{"groups", vt::LaneSchedule::groups}, {"program_counter", vt::LaneSchedule::program_counter}}};

struct Run {
  const char* name;
  std::int64_t parameters, chains, draws;
  nuts::Settings settings;
};

/// How many chains are at work, batch by batch of gradients, where the chains wait for each other
/// at each draw, and where they do so only at the end.
void draw_utilisation(const Tensor& gradients, const std::string& path) {
  const auto chains = gradients.shape()[0], draws = gradients.shape()[1];
  const std::vector<int> all = vt::transpose(gradients).to_vector<int>();
  std::vector<std::vector<int>> waits(static_cast<std::size_t>(draws));
  std::vector<int> sums(static_cast<std::size_t>(chains));
  int longest = 0;
  for (std::size_t d = 0; d < waits.size(); ++d) {
    const int* of_draw = &all[d * sums.size()];
    waits[d].assign(of_draw, of_draw + chains);
    longest += *std::ranges::max_element(waits[d]);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += of_draw[c];
  }
  constexpr int left = 20, width = 800, height = 100;
  support::Picture picture(width + 2 * left, 2 * height + 100);
  const auto panel = [&](int top, const std::string& title,
                         const std::vector<std::vector<int>>& of) {
    double work = 0, before = 0;
    std::vector<double> active(width);  // of each column of the picture
    for (const std::vector<int>& counts : of) {
      for (const int count : counts) {
        work += count;
        const double end = (before + count) * width / longest;
        for (int x = static_cast<int>(before * width / longest); x < end && x < width; ++x)
          active[x] += std::min(end, x + 1.0) - std::max(before * width / longest, double(x));
      }
      before += *std::ranges::max_element(counts);
    }
    const double share = work / (before * static_cast<double>(chains));
    const std::string percent = std::to_string(static_cast<int>(100 * share + 0.5)) + " percent";
    picture.caption(left, top, title + " > " + percent);
    picture.block(left, top + 16, width, height, {235, 235, 235});
    for (int x = 0; x < width; ++x) {
      const double part = active[x] / static_cast<double>(chains);
      const int bar = static_cast<int>(part * height);
      picture.block(left + x, top + 16 + height - bar, 1, bar, support::chain_colours[0]);
    }
    std::printf("gradients that %s: %.0f %% of those computed\n", title.c_str(), 100 * share);
  };
  panel(10, "count where chains wait at each draw", waits);
  panel(height + 50, "count where chains wait at the end", {sums});
  picture.write_png(path);
}

template <class LogDensity>
support::Chains sample(const Run& run, const LogDensity& log_density, const std::string& path,
                       int& failures) {
  const nuts::Sampler sampler(log_density, run.settings);
  const auto chain = [&](Tensor key, Tensor start) { return sampler.chain(key, start, run.draws); };
  const auto [for_chains, for_starts] = vt::random::split<2>(vt::random::key(3));
  const Tensor keys = vt::random::split(for_chains, run.chains).eval();
  const Tensor starts = 0.3 * vt::random::normal(for_starts, {run.chains, run.parameters});

  std::printf("\n%s: %lld parameters, %lld chains, %lld draws, step size %g\n", run.name,
              static_cast<long long>(run.parameters), static_cast<long long>(run.chains),
              static_cast<long long>(run.draws), run.settings.step_size);
  std::vector<nuts::Draw> results;
  double seconds = 0;
  for (const Schedule& s : schedules) {
    const auto chains = vt::jit(vt::vmap(chain, {.schedule = s.schedule}));
    vt::eval(chains(keys, starts));  // records and compiles
    vt::wait_compiled();
    vt::reset_lane_stats();
    const auto begin = std::chrono::steady_clock::now();
    results.push_back(chains(keys, starts));
    vt::eval(results.back());
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto gradients = vt::sum(results.back().gradients).item<double>();
    std::printf("%-16s %.2f s, %.0f gradients/s", s.name, seconds, gradients / seconds);
    if (const auto used = vt::lane_stats(); !used.blocks.empty())
      std::printf(", utilisation %.2f", used.utilisation());
    std::printf("\n");
  }
  const nuts::Draw& draws = results[0];
  // Sums may be rounded differently, which takes some draws to become visible.
  const auto first = [](const nuts::Draw& d) { return d.theta[vt::slice(0, 4)]; };
  failures += support::check("draws of both", first(results[1]), first(draws), 1e-2);
  draw_utilisation(draws.gradients, path + "_utilisation.png");

  const support::Chains all(draws.theta, run.draws / 4);
  double r_hat = 0, effective = 1e9;
  for (std::size_t p = 0; p < all.parameters(); ++p) {
    const support::Mixing mixing = support::mixing(all, p);
    r_hat = std::max(r_hat, mixing.r_hat), effective = std::min(effective, mixing.effective);
  }
  std::printf(
      "depth %.2f, divergences %lld, R-hat at most %.4f, effective draws at least %.0f "
      "of %zu, %.0f/s\n",
      vt::mean(draws.depth.astype(vt::f32)).item<double>(),
      static_cast<long long>(vt::sum(draws.divergent).item<int>()), r_hat, effective,
      all.chains() * all.length(), effective / seconds);
  if (!(r_hat < 1.05)) {
    std::printf("FAILED: the chains do not agree\n");
    ++failures;
  }
  return all;
}

void draw(const support::Chains& all, const std::vector<std::string>& names,
          const std::string& path) {
  support::draw_traces(path + "_traces.png", all, names);
  support::draw_corner(path + "_posterior.png", all, names);
  std::printf("pictures: %s_*.png\n", path.c_str());
}

/// The posterior is nearly normal: it must be that at its greatest density.
int compare_with_normal(const Regression& log_density, const support::Chains& all) {
  const auto improbable = [&](Tensor weights) { return -log_density(weights); };
  const Tensor start = vt::zeros({static_cast<std::int64_t>(all.parameters())});
  const Tensor weights = vt::minimize(improbable, start, {.method = vt::MinimizeMethod::newton}).x;
  const Tensor covariance = -vt::inv(vt::hessian(log_density)(weights));
  double off = 0, wider = 0;
  for (std::size_t p = 0; p < all.parameters(); ++p) {
    const int i = static_cast<int>(p);
    const double deviation = std::sqrt(covariance[i][i].item<double>());
    off = std::max(off, std::abs(all.mean(p) - weights[i].item<double>()) / deviation);
    wider = std::max(wider, std::abs(all.deviation(p) / deviation - 1));
  }
  std::printf(
      "beside the normal distribution there: means are off by %.2f deviations at most, "
      "deviations by %.0f %%\n",
      off, 100 * wider);
  if (off < 0.3 && wider < 0.15) return 0;
  std::printf("FAILED: that is too much\n");
  return 1;
}

int compare_with_truth(const support::Chains& all) {
  const std::array<double, 3> truth{true_mean, true_slope, std::log(true_spread)};
  const std::array<const char*, 3> names{"mean", "slope", "log of the spread"};
  int failures = 0;
  for (std::size_t p = 0; p < truth.size(); ++p) {
    const double mean = all.mean(p), deviation = all.deviation(p);
    std::printf("%-17s %6.3f ± %.3f; the data was made with %.3f\n", names[p], mean, deviation,
                truth[p]);
    failures += !(std::abs(mean - truth[p]) < 3 * deviation);
  }
  return failures;
}

int run(const Options& options) {
  int failures = 0;
  const Reactions reactions = read_reactions(options.data);
  std::filesystem::create_directories(options.folder);
  const Regression regression = make_regression(options.points, options.regressors);
  const std::string first = options.folder + "/nuts_regression",
                    second = options.folder + "/nuts_reactions";
  const support::Chains weights = sample({"logistic regression",
                                          options.regressors,
                                          options.chains,
                                          options.draws,
                                          {.step_size = options.step_size}},
                                         regression, first, failures);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(options.regressors, 4); ++i)
    names.push_back("w" + std::to_string(i));
  draw(weights, names, first);
  failures += compare_with_normal(regression, weights);

  const support::Chains theta =
      sample({"reactions", reactions.parameters(), 32, 300, {.step_size = 0.02}}, reactions, second,
             failures);
  draw(theta, {"mean", "slope", "spread"}, second);
  failures += compare_with_truth(theta);
  return failures;
}

bool parse(int count, char** arguments, Options& options) {
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string a = arguments[i];
    if (a == "--write-data") {
      options.write = true;
    } else if (a.starts_with("--")) {
      if (++i == count) return false;
      const double value = std::atof(arguments[i]);
      const auto whole = static_cast<std::int64_t>(value);
      if (!(value > 0)) return false;
      if (a == "--points") options.points = whole;
      else if (a == "--regressors") options.regressors = whole;
      else if (a == "--chains") options.chains = whole;
      else if (a == "--draws") options.draws = whole;
      else if (a == "--step") options.step_size = value;
      else return false;
    } else {
      files.push_back(a);
    }
  }
  if (files.empty() || files.size() > 2) return false;
  options.data = files[0];
  if (files.size() == 2) options.folder = files[1];
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: nuts FILE.csv [FOLDER] [--points N] [--regressors N] [--chains N] "
                 "[--draws N] [--step SIZE]\n       nuts --write-data FILE.csv\n");
    return 2;
  }
  return support::run("nuts", [&] {
    if (!options.write) return run(options);
    write_reactions(options.data);
    return 0;
  });
}
