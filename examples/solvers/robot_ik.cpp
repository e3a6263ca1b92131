// least_squares with bounds: the joint angles that bring an arm's hand to a target, for a thousand
// targets at once; and how the angles follow the target.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <utility>

#include "../support/check.hpp"

namespace {

constexpr int joints = 6;

/// A turn about z by an angle, then about x by a known one, as a 3 × 3 matrix.
vt::Tensor turn(const vt::Tensor& angle, double twist) {
  const vt::Tensor c = vt::cos(angle), s = vt::sin(angle);
  const double ct = std::cos(twist), st = std::sin(twist);
  return vt::stack({vt::stack({c, -s * ct, s * st}), vt::stack({s, c * ct, -c * st}),
                    vt::stack({0.0 * c, st + 0.0 * c, ct + 0.0 * c})});
}

/// Where the hand is, in metres: six links, each turned against the one before.
vt::Tensor hand(const vt::Tensor& angles) {
  constexpr double twists[joints] = {M_PI / 2, 0, M_PI / 2, -M_PI / 2, M_PI / 2, 0};
  constexpr double lengths[joints] = {0, 0.45, 0.05, 0, 0, 0},
                   offsets[joints] = {0.4, 0, 0, 0.4, 0, 0.1};
  vt::Tensor place = vt::zeros({3}, vt::f64), frame = vt::eye(3, vt::f64);
  for (int i = 0; i < joints; ++i) {
    const vt::Tensor c = vt::cos(angles[i]), s = vt::sin(angles[i]);
    const vt::Tensor link = vt::stack({lengths[i] * c, lengths[i] * s, offsets[i] + 0.0 * c});
    place = place + vt::matmul(frame, link);
    frame = vt::matmul(frame, turn(angles[i], twists[i]));
  }
  return place;
}

/// The angles whose hand is at the target, from a guess; of many that are, those nearer to zero.
vt::Solution<vt::Tensor> searched(const vt::Tensor& target, const vt::Tensor& guess) {
  const auto residuals = [&](const vt::Tensor& q) {
    return vt::concatenate({hand(q) - target, 1e-3 * q});
  };
  return vt::least_squares(residuals, guess, {.lower = -2.5, .upper = 2.5});
}

/// The best of searches from several guesses, which may end at bounds far from the target.
std::pair<vt::Tensor, vt::Tensor> reached(const vt::Tensor& target) {
  const vt::Tensor guesses = vt::stack(
      {vt::full({joints}, 0.3, vt::f64), vt::full({joints}, -0.3, vt::f64),
       vt::tensor({1.5, -0.5, 0.8, 0.3, 0.3, 0.3}), vt::tensor({-1.5, 0.5, -0.8, 0.3, 0.3, 0.3})});
  const auto all = vt::vmap(searched, {.in_axes = {vt::unmapped, 0}})(target, guesses);
  const vt::Tensor best = vt::argmin(all.value);
  return {all.x[best], all.iterations[best]};
}

}  // namespace

int main() {
  // Targets that can be reached, as they are where some angles lead.
  const vt::Tensor some =
      2.0 * vt::random::uniform(vt::random::key(1), {1000, joints}, vt::f64) - 1.0;
  const vt::Tensor targets = vt::vmap(hand)(some).eval();

  const auto reach_all = vt::jit(vt::vmap(reached));
  const auto [angles, iterations] = reach_all(targets);
  const double ms = support::median_ms([&] { reach_all(targets).first.eval(); });
  const vt::Tensor distance =
      vt::sqrt(vt::sum(vt::square(vt::vmap(hand)(angles) - targets), -1)).eval();
  const double there = vt::mean((distance < 2e-3).astype(vt::f64)).item<double>();
  std::printf(
      "1000 targets, four searches each, in %.1f ms; %.0f iterations of the best, %.1f %% "
      "of the targets reached\n",
      ms, vt::mean(iterations.astype(vt::f64)).item<double>(), 100 * there);
  int failures = there > 0.98 ? 0 : 1;
  failures += vt::all(vt::abs(angles) <= 2.5).item<bool>() ? 0 : 1;

  // A target that moves: the angles' derivative by it, against a second search.
  const vt::Tensor target = targets[3].eval();
  const vt::Tensor slope = vt::jacobian([](vt::Tensor t) { return reached(t).first; })(target);
  const vt::Tensor step = vt::tensor({1e-4, 0.0, 0.0});
  failures +=
      support::check("derivative and two searches", vt::take(slope, 0, 1),
                     (reached(target + step).first - reached(target - step).first) / 2e-4, 1e-3);
  return failures;
}
