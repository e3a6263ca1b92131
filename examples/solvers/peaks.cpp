// least_squares in lanes: ten thousand Gaussian peaks, each fitted to an image of its own. The fit
// is written for one peak; vmap makes one compiled loop of it, in which peaks end one by one.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>

#include "../support/check.hpp"

namespace {

constexpr std::int64_t peaks = 10'000, side = 15;

struct Peak {
  vt::Tensor height, x, y, width, background;
};

/// The brightness at a place.
vt::Tensor brightness(const Peak& p, const vt::Tensor& x, const vt::Tensor& y) {
  const vt::Tensor squared = vt::square(x - p.x) + vt::square(y - p.y);
  return p.height * vt::exp(-squared / (2.0 * vt::square(p.width))) + p.background;
}

/// All pixels of an image, [side, side].
vt::Tensor image_of(const Peak& p) {
  const vt::Tensor places = vt::arange(side, vt::f64);
  return brightness(p, places, vt::expand_dims(places, {1}));
}

vt::Solution<Peak> fitted(const vt::Tensor& image) {
  const Peak guess{vt::max(image) - vt::min(image), 7.0, 7.0, 2.0, vt::min(image)};
  return vt::least_squares([&](const Peak& p) { return image_of(p) - image; }, guess);
}

vt::Tensor uniform(int stream, double low, double high) {
  return low + (high - low) * vt::random::uniform(vt::random::key(stream), {peaks}, vt::f64);
}

}  // namespace

int main() {
  const Peak truth{uniform(1, 5, 10), uniform(2, 6, 8), uniform(3, 6, 8), uniform(4, 1.5, 2.5),
                   uniform(5, 0, 1)};
  const double noise = 0.05;
  const vt::Tensor images =
      (vt::vmap(image_of)(truth) +
       noise * vt::random::normal(vt::random::key(6), {peaks, side, side}, vt::f64))
          .eval();

  const auto fit_all = vt::jit(vt::vmap(fitted));
  const vt::Solution<Peak> s = fit_all(images);
  const double ms = support::median_ms([&] { fit_all(images).x.height.eval(); });
  std::printf("%lld peaks: %.1f ms, %.1f us each; %.2f iterations\n", static_cast<long long>(peaks),
              ms, 1e3 * ms / static_cast<double>(peaks),
              vt::mean(s.iterations.astype(vt::f64)).item<double>());
  int failures = vt::all(s.converged).item<bool>() ? 0 : 1;

  // Places are found to a small part of a pixel, as the noise allows.
  const double off = std::sqrt(vt::mean(vt::square(s.x.x - truth.x)).item<double>());
  std::printf("places are off by %.4f pixels (root of the mean square)\n", off);
  failures += off > 0.007;

  // The same one at a time.
  for (const std::int64_t i : {0, 4321, 9999}) {
    const vt::Solution<Peak> alone = fitted(images[i]);
    failures += support::check(
        "one peak and its lane", vt::stack(vt::tree_leaves(alone.x)),
        vt::stack(vt::tree_leaves(vt::tree_map([&](const vt::Tensor& t) { return t[i]; }, s.x))),
        1e-7);
  }
  // How the place follows each pixel, from the condition that holds at the best fit.
  const vt::Tensor slope = vt::grad([](vt::Tensor image) { return fitted(image).x.x; })(images[0]);
  const auto place = [&](double by) {
    return fitted(vt::at(images[0], 7, 9).add(by)).x.x.item<double>();
  };
  failures += support::check("slope and differences", slope[7][9],
                             vt::tensor((place(1e-3) - place(-1e-3)) / 2e-3), 1e-5);
  return failures;
}
