// odeint inside curve_fit, in lanes: an epidemic in each of 200 regions, modelled by a differential
// equation that is fitted to counts of cases; with confidence intervals and a forecast.
// Usage: epidemic [FOLDER]; a picture is written to FOLDER.
#include <vt/vt.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/check.hpp"
#include "../support/png.hpp"

namespace {

constexpr std::int64_t regions = 200, days = 120, fitted_days = 42;
constexpr double population = 1e6, latent_days = 3, infectious_days = 5, measures_day = 30;

/// What is fitted.
struct Epidemic {
  vt::Tensor reproduction;  ///< how many people one infects, before measures are taken
  vt::Tensor effect;        ///< by which part measures lower that
  vt::Tensor first;         ///< infected people on day 0
};
/// Who can be infected, is infected but not yet infectious, is infectious; and all cases so far.
struct People {
  vt::Tensor susceptible, exposed, infectious, cases;
};

/// The expected number of new cases on each day, [days]: the equations of the SEIR model.
vt::Tensor expected_cases(const Epidemic& e) {
  const auto change = [&](const vt::Tensor& day, const People& now) {
    // Measures are taken within some days.
    const vt::Tensor reproduction =
        e.reproduction * (1.0 - e.effect * vt::sigmoid(day - measures_day));
    const vt::Tensor infected =
        reproduction / infectious_days * now.infectious * now.susceptible / population;
    const vt::Tensor ill = now.exposed / latent_days;
    return People{-infected, infected - ill, ill - now.infectious / infectious_days, ill};
  };
  const vt::Tensor none = vt::tensor(0.0), times = vt::arange(days + 1).astype(vt::f64);
  const People start{population - e.first, e.first, none, none};
  return vt::diff(
      vt::odeint(change, start, {.t1 = days * 1.0, .save_at = times, .rtol = 1e-8}).ys.cases);
}

/// Counts of mean m vary by √m; these values of them vary by 1, whatever m is (Anscombe 1948).
vt::Tensor stabilised(const vt::Tensor& cases) { return 2.0 * vt::sqrt(cases + 0.375); }

/// The fit to the cases of one region, [fitted_days]. The model is that of one day; what does not
/// depend on the day, the differential equation, is solved once for all of them.
vt::CurveFit<Epidemic> fitted(const vt::Tensor& cases) {
  const auto model = [](const Epidemic& e, const vt::Tensor& day) {
    return stabilised(expected_cases(e)[day]);
  };
  const Epidemic guess{vt::tensor(2.0), vt::tensor(0.5), vt::tensor(10.0)};
  return vt::curve_fit(model, vt::arange(fitted_days), stabilised(cases), guess,
                       {.absolute_sigma = true, .solver = {.lower = 0.0}});
}

/// The standard error of each day's expected cases: how they move with the parameters, and how
/// uncertain these are.
vt::Tensor forecast_error(const vt::CurveFit<Epidemic>& fit) {
  const Epidemic by = vt::jacfwd(expected_cases)(fit.x);
  const vt::Tensor slopes = vt::stack(vt::tree_leaves(by), 1);  // [days, 3]
  return vt::sqrt(vt::sum(vt::matmul(slopes, fit.covariance) * slopes, 1));
}

// --- the picture ---------------------------------------------------------------------------------

constexpr support::Colour black{0, 0, 0}, grey{150, 150, 150}, light{225, 225, 225},
    pale{190, 210, 245}, blue{30, 90, 200}, orange{230, 150, 30}, red{200, 40, 40};

/// A rectangle of the picture in which numbers are drawn.
struct Axes {
  support::Picture& picture;
  int left, right, top, bottom;
  double most_x, least_y, most_y;
  int x(double at) const { return left + static_cast<int>((right - left) * at / most_x); }
  int y(double at) const {
    return bottom - static_cast<int>((bottom - top) *
                                     std::clamp((at - least_y) / (most_y - least_y), 0.0, 1.0));
  }
  /// Lines and numbers so far apart, a title above and a name below.
  void frame(double step_x, double step_y, const std::string& title,
             const std::string& name) const {
    for (double at = least_y; at <= most_y; at += step_y) {
      const std::string text = std::to_string(static_cast<int>(at));
      picture.line(left, y(at), right, y(at), 1, at > least_y ? light : black);
      picture.caption(left - 8 - 8 * static_cast<int>(text.size()), y(at) - 5, text);
    }
    for (double at = 0; at <= most_x; at += step_x) {
      const std::string text = std::to_string(static_cast<int>(at));
      picture.caption(x(at) - 4 * static_cast<int>(text.size()), bottom + 10, text);
    }
    picture.caption(left, top - 40, title);
    picture.caption((left + right) / 2 - 4 * static_cast<int>(name.size()), bottom + 30, name);
  }
};

/// Cases of a region, the curve that fits the first days and the band that holds it with 95 %.
void draw_days(support::Picture& picture, const std::vector<double>& cases,
               const std::vector<double>& expected, const std::vector<double>& error,
               const std::vector<double>& truth) {
  const Axes axes{picture, 80, 680, 60, 360, days, 0, 1.2 * *std::ranges::max_element(cases)};
  const double step = std::pow(10, std::floor(std::log10(axes.most_y)));
  axes.frame(20, axes.most_y / step < 3 ? step / 2 : step, "new cases in region 0", "day");
  for (int px = axes.left; px < axes.right; ++px) {
    const double at = (px - axes.left) * double(days) / (axes.right - axes.left) - 0.5;
    const auto i = static_cast<std::size_t>(std::clamp(at, 0.0, days - 2.0));
    const auto between = [&](const std::vector<double>& each) {
      return each[i] + (at - static_cast<double>(i)) * (each[i + 1] - each[i]);
    };
    const double middle = between(expected), width = 1.96 * between(error);
    const int high = axes.y(middle + width);
    picture.block(px, high, 1, axes.y(middle - width) - high + 1, pale);
    picture.block(px, axes.y(middle) - 1, 1, 2, blue);
    if (px % 8 < 4) picture.block(px, axes.y(between(truth)) - 1, 1, 2, orange);
  }
  for (std::size_t day = 0; day < cases.size(); ++day)
    picture.block(axes.x(static_cast<double>(day) + 0.5) - 2, axes.y(cases[day]) - 2, 4, 4,
                  day < fitted_days ? black : grey);
  const int today = axes.x(fitted_days);
  picture.line(today, axes.top - 20, today, axes.bottom, 1, black);
  picture.caption(today - 60, axes.top - 20, "fitted");
  picture.caption(today + 12, axes.top - 20, "forecast");
  picture.caption(axes.right - 180, axes.top, "cases");
  picture.caption(axes.right - 180, axes.top + 20, "fit and 95 percent", 2, blue);
  picture.caption(axes.right - 180, axes.top + 40, "truth", 2, orange);
}

/// The intervals that hold the reproduction number with 95 %, and what it is.
void draw_intervals(support::Picture& picture, const std::vector<double>& found,
                    const std::vector<double>& error, const std::vector<double>& truth) {
  constexpr int shown = 50;
  const Axes axes{picture, 80, 680, 470, 670, shown, 1, 4};
  axes.frame(10, 1, "reproduction number - 95 percent intervals and truth", "region");
  for (std::size_t i = 0; i < shown; ++i) {
    const int x = axes.x(static_cast<double>(i) + 0.5), high = axes.y(found[i] + 1.96 * error[i]);
    const bool holds = std::abs(found[i] - truth[i]) < 1.96 * error[i];
    picture.block(x - 2, high, 4, axes.y(found[i] - 1.96 * error[i]) - high + 1,
                  holds ? blue : red);
    picture.block(x - 5, axes.y(truth[i]) - 1, 10, 2, orange);
  }
}

vt::Tensor uniform(int stream, double low, double high) {
  return vt::random::uniform(vt::random::key(stream), {regions}, low, high, vt::f64);
}

int run(const std::string& folder) {
  const Epidemic truth{uniform(1, 2.2, 3.2), uniform(2, 0.5, 0.75), uniform(3, 5, 20)};
  const vt::Tensor expected = vt::vmap(expected_cases)(truth).eval();
  const vt::Tensor cases =
      vt::random::poisson(vt::random::key(4), {regions, days}, expected).astype(vt::f64).eval();
  const vt::Tensor known = vt::take(cases, vt::arange(fitted_days), 1).eval();

  const auto fit_all = vt::jit(vt::vmap(fitted));
  const vt::CurveFit<Epidemic> fits = fit_all(known);
  const double ms = support::median_ms([&] { fit_all(known).covariance.eval(); }, 3);
  std::printf("%lld regions of %lld days: %.1f ms; %.1f iterations\n",
              static_cast<long long>(regions), static_cast<long long>(fitted_days), ms,
              vt::mean(fits.iterations.astype(vt::f64)).item<double>());
  int failures = vt::all(fits.converged).item<bool>() ? 0 : 1;

  // How many of the intervals hold what they should with 95 %?
  constexpr const char* names[] = {"reproduction number", "effect of measures", "first infected"};
  const auto found = vt::tree_leaves(fits.x), errors = vt::tree_leaves(fits.standard_errors),
             wanted = vt::tree_leaves(truth);
  double all = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double share =
        vt::mean((vt::abs(found[i] - wanted[i]) < 1.96 * errors[i]).astype(vt::f64)).item<double>();
    std::printf("%-20s region 0: %.4f ± %.4f, truth %.4f; %.1f %% of all intervals hold it\n",
                names[i], found[i][0].item<double>(), 1.96 * errors[i][0].item<double>(),
                wanted[i][0].item<double>(), 100 * share);
    all += share / static_cast<double>(found.size());
  }
  failures += !(all > 0.92 && all < 0.98);

  const vt::CurveFit<Epidemic> alone = fitted(known[7]);
  failures += support::check("one region and its lane", alone.covariance, fits.covariance[7], 1e-6);

  std::filesystem::create_directories(folder);
  const std::string path = folder + "/epidemic.png";
  const vt::CurveFit<Epidemic> first = fitted(known[0]);
  support::Picture picture(720, 720);
  draw_days(picture, cases[0].to_vector<double>(), expected_cases(first.x).to_vector<double>(),
            forecast_error(first).to_vector<double>(), expected[0].to_vector<double>());
  draw_intervals(picture, found[0].to_vector<double>(), errors[0].to_vector<double>(),
                 wanted[0].to_vector<double>());
  picture.write_png(path);
  std::printf("%s shows the fit, what it forecasts, and intervals\n", path.c_str());
  return failures;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 ? argv[1] : "pictures"); }
