// The No-U-Turn Sampler for any log density, written for one chain: Algorithm 3 of Hoffman and
// Gelman 2014, The No-U-Turn Sampler: Adaptively Setting Path Lengths in Hamiltonian Monte Carlo.
// Many chains are vt::vmap of one. Names are the paper's: θ, r, u, v, j, ε, n, s.
#pragma once

#include <utility>

#include <vt/vt.hpp>

namespace nuts {

using vt::Tensor;

/// The mass matrix is the identity.
struct Settings {
  double step_size = 0.1;     ///< ε
  int max_depth = 10;         ///< doublings of a trajectory at most
  int leapfrogs = 4;          ///< steps from one leaf of the tree to the next; 1 in the paper
  double max_error = 1000;    ///< Δmax: where the energy is so much off, a trajectory ends
  vt::DType dtype = vt::f32;  ///< of places, momenta and random numbers
};

/// A place, with what is known of the density there.
struct Place {
  Tensor theta, log_density, gradient;
};
/// A place and a momentum.
struct Phase {
  Place at;
  Tensor r;
};
/// A stretch of a trajectory: its ends; one place within the slice, drawn from the n that there
/// are; and whether to go on.
struct Tree {
  Phase minus, plus;
  Place proposal;
  Tensor n, s;
  Tensor gradients;  ///< leapfrog steps that it took, each of which takes a gradient
  Tensor divergent;  ///< its energy is off by Δmax somewhere
};
/// A state of a chain, and how the chain came there.
struct Draw {
  Tensor theta, log_density;
  Tensor gradients, depth, divergent;
};

/// log p(θ, r) = L(θ) − r·r/2
inline Tensor joint(const Phase& z) { return z.at.log_density - 0.5 * vt::dot(z.r, z.r); }

/// Whether the ends of a trajectory still move apart.
inline Tensor apart(const Tree& t) {
  const Tensor across = t.plus.at.theta - t.minus.at.theta;
  return (vt::dot(across, t.minus.r) >= 0) & (vt::dot(across, t.plus.r) >= 0);
}

inline Place choose(const Tensor& first, const Place& a, const Place& b) {
  return vt::tree_map([&](Tensor x, Tensor y) { return vt::where(first, x, y); }, a, b);
}

template <class LogDensity>
class Sampler {
 public:
  /// `log_density`: of a vector θ, up to a constant.
  Sampler(LogDensity log_density, const Settings& settings)
      : log_density_(std::move(log_density)), settings_(settings) {
    build_tree_ = [this](Phase z, Tensor log_u, Tensor v, Tensor j, Tensor key) {
      return vt::cond(
          j == 0, [&] { return leaf(z, log_u, v); }, [&] { return node(z, log_u, v, j, key); });
    };
  }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  Place place(const Tensor& theta) const {
    const auto [value, gradient] = vt::value_and_grad(log_density_)(theta);
    return {theta, value, gradient};
  }

  /// One trajectory from a place on: the next place, and what there is to tell of it.
  std::pair<Place, Draw> step(const Place& from, const Tensor& key) const {
    const auto [for_r, for_u, for_tree] = vt::random::split<3>(key);
    const Phase z{from, vt::random::normal(for_r, from.theta.shape(), settings_.dtype)};
    const Tensor log_u = joint(z) - vt::random::exponential(for_u, {}, settings_.dtype);
    const Tensor none = vt::tensor(0), no = vt::tensor(false);
    const auto [t, depth] = vt::while_loop(
        [&](const Tree& t, Tensor j) { return t.s & (j < settings_.max_depth); },
        [&](const Tree& t, Tensor j) {
          const auto [for_v, for_half, for_choice] =
              vt::random::split<3>(vt::random::fold_in(for_tree, j));
          const Tensor v = vt::random::rademacher(for_v, {}, settings_.dtype);
          Tree both = extend(t, log_u, v, j, for_half);
          const Tensor take = both.s & (uniform(for_choice) * t.n < both.n);
          both.proposal = choose(take, both.proposal, t.proposal);
          return std::pair(join(t, both), j + 1);
        },
        std::pair(Tree{z, z, from, vt::tensor(1), vt::tensor(true), none, no}, none));
    const Place& next = t.proposal;
    return {next, {next.theta, next.log_density, t.gradients, depth, t.divergent}};
  }

  /// A chain: so many draws, stacked.
  Draw chain(const Tensor& key, const Tensor& theta, std::int64_t draws) const {
    return vt::scan(
               [&](const Place& at, Tensor i) { return step(at, vt::random::fold_in(key, i)); },
               place(theta), vt::arange(draws))
        .second;
  }

 private:
  Tensor uniform(const Tensor& key) const { return vt::random::uniform(key, {}, settings_.dtype); }

  /// Leapfrog(θ, r, ε), several times.
  Phase leapfrog(const Phase& start, const Tensor& epsilon) const {
    const auto once = [&](Tensor, const Phase& z) {
      const Tensor r = z.r + 0.5 * epsilon * z.at.gradient;
      const Place next = place(z.at.theta + epsilon * r);
      return Phase{next, r + 0.5 * epsilon * next.gradient};
    };
    return vt::fori_loop(0, settings_.leapfrogs, once, start);
  }

  Tree leaf(const Phase& z, const Tensor& log_u, const Tensor& v) const {
    const Phase next = leapfrog(z, v * settings_.step_size);
    const Tensor energy = joint(next), s = log_u < energy + settings_.max_error;
    return {
        next, next, next.at, (log_u <= energy).astype(vt::i32), s, vt::tensor(settings_.leapfrogs),
        !s};
  }

  /// 2ʲ leaves from one end of a trajectory on, forwards (v = 1) or back in time (v = −1).
  Tree node(const Phase& z, const Tensor& log_u, const Tensor& v, const Tensor& j,
            const Tensor& key) const {
    const Tree half = build_tree_(z, log_u, v, j - 1, vt::random::fold_in(key, 0));
    const auto other_half = [&] {
      Tree both = extend(half, log_u, v, j - 1, vt::random::fold_in(key, 1));
      const Tensor take = uniform(vt::random::fold_in(key, 2)) * (half.n + both.n) < both.n;
      both.proposal = choose(take, both.proposal, half.proposal);
      return join(half, both);
    };
    return vt::cond(half.s, other_half, [&] { return half; });
  }

  /// What build_tree finds beyond one end of t; but the ends are those of both together.
  Tree extend(const Tree& t, const Tensor& log_u, const Tensor& v, const Tensor& j,
              const Tensor& key) const {
    return vt::cond(
        v < 0,
        [&] {
          Tree more = build_tree_(t.minus, log_u, v, j, key);
          more.plus = t.plus;
          return more;
        },
        [&] {
          Tree more = build_tree_(t.plus, log_u, v, j, key);
          more.minus = t.minus;
          return more;
        });
  }

  /// t and what extend found beyond it are one.
  static Tree join(const Tree& t, Tree both) {
    both.s = both.s & apart(both);
    both.n = t.n + both.n;
    both.gradients = t.gradients + both.gradients;
    both.divergent = t.divergent | both.divergent;
    return both;
  }

  LogDensity log_density_;
  Settings settings_;
  vt::Recursive<Tree(Phase, Tensor, Tensor, Tensor, Tensor)> build_tree_{"build_tree"};
};

}  // namespace nuts
