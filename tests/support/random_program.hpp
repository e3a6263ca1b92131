// Random programs over f64 Tensors for fuzzing: a seed decides ops, shapes, nested transforms;
// calling one again repeats it.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace vt_test {

/// A function of two Tensors. Every op keeps values moderate, so that differences of formulations
/// stay rounding errors.
class RandomProgram {
 public:
  struct Features {
    bool smooth = true;  ///< finite differences make sense: no kinks, no jumps
    int nested = 0;      ///< inner transforms
  };

  explicit RandomProgram(std::uint64_t seed, int steps, int depth = 0)
      : seed_(seed), steps_(steps), depth_(depth) {}

  /// With collectives over these axes, which are alive where it is called.
  RandomProgram& over(std::vector<std::string> axes) {
    axes_ = std::move(axes);
    return *this;
  }

  /// The result: some Tensor that depends on what the seed says.
  vt::Tensor operator()(const vt::Tensor& x, const vt::Tensor& y) const {
    engine_.seed(seed_ * 0x9e3779b97f4a7c15u + 7);
    features_ = {};
    pool_ = {x, y};
    for (int i = 0; i < steps_; ++i) {
      T t = step();
      // Crops may leave nothing, of which means and extremes are undefined; zero sizes have tests
      // of their own.
      pool_.push_back(t.size() > 0 ? t : vt::sin(x));
    }
    vt::Tensor result = pool_.back();
    if (pool_.size() > 3) result = vt::tanh(result + vt::mean(pick()) + vt::mean(pool_[2]));
    pool_.clear();
    return result;
  }
  vt::Tensor scalar(const vt::Tensor& x, const vt::Tensor& y) const {
    return vt::sum((*this)(x, y));
  }
  /// Of the last call.
  const Features& features() const { return features_; }

 private:
  using T = vt::Tensor;

  int random(int n) const { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  double uniform(double low, double high) const {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  const T& pick() const { return pool_[random(static_cast<int>(pool_.size()))]; }
  /// A Tensor of rank ≥ 1; its size stays small.
  T ranked() const {
    for (int i = 0; i < 8; ++i)
      if (const T& t = pick(); t.rank() >= 1 && t.rank() <= 3 && t.size() > 0 && t.size() <= 64)
        return t;
    return vt::broadcast_to(vt::mean(pick()), {3});
  }
  int axis_of(const T& t) const { return random(t.rank()) - (random(2) ? t.rank() : 0); }
  T constant(const vt::Shape& shape) const {
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (double& v : values) v = uniform(-1, 1);
    return vt::tensor(values, shape);
  }
  /// Something that broadcasts with `t`.
  T partner(const T& t) const {
    switch (random(4)) {
      case 0: return vt::mean(pick());
      case 1: return t.rank() > 0 ? vt::mean(t, {axis_of(t)}, true) : t;
      case 2: return constant(t.rank() > 0 ? vt::Shape{t.dim(-1)} : vt::Shape{});
      default:
        for (int i = 0; i < 6; ++i)
          if (const T& other = pick(); other.shape() == t.shape()) return other;
        return vt::cos(t);
    }
  }

  T step() const {
    if (!axes_.empty() && random(4) == 0) return met(pick());
    switch (random(7)) {
      case 0: return unary(pick());
      case 1:
      case 2: return binary(pick());
      case 3: return reduction(ranked());
      case 4: return shaped(ranked());
      case 5: return indexed(ranked());
      default: return depth_ < 2 && random(2) ? nested(ranked()) : contracted(ranked());
    }
  }

  T unary(const T& t) const {
    switch (random(16)) {
      case 0: return vt::sin(t);
      case 1: return vt::cos(t * 1.5);
      case 2: return vt::tanh(t);
      case 3: return vt::sigmoid(t);
      case 4: return vt::erf(t);
      case 5: return vt::atan(t);
      case 6: return vt::log1p(vt::square(t));
      case 7: return vt::sqrt(1.0 + t * t);
      case 8: return vt::exp(-vt::square(t));
      case 9: return -t;
      case 10: return vt::integer_pow(vt::tanh(t), 3);
      case 11: return vt::softplus(t) * 0.5;
      case 12: return vt::asinh(t);
      case 13: return vt::expm1(vt::tanh(t));
      case 14: return vt::rsqrt(0.5 + vt::square(t));
      default: return vt::gelu(t);
    }
  }

  T binary(const T& t) const {
    const T u = partner(t);
    switch (random(9)) {
      case 0: return t + u;
      case 1: return t - u;
      case 2: return vt::sin(t) * u;
      case 3: return t / (1.5 + vt::sin(u));
      case 4: return vt::pow(1.5 + vt::sin(t), vt::tanh(u));
      case 5: return vt::atan2(t, 2.0 + vt::cos(u));
      case 6: return vt::logaddexp(vt::tanh(t), vt::tanh(u));
      case 7: features_.smooth = false; return vt::maximum(t, u * 0.5) - vt::minimum(t, 0.25);
      default: features_.smooth = false; return vt::where(t > u, vt::tanh(t), vt::sin(u));
    }
  }

  T reduction(const T& t) const {
    const int axis = axis_of(t);
    const bool keep = random(2) == 0;
    switch (random(11)) {
      case 0: return vt::sum(vt::tanh(t), {axis}, keep) * 0.5;
      case 1: return vt::mean(t);
      case 2: return vt::logsumexp(vt::tanh(t), {axis}, keep);
      case 3: return vt::softmax(t, axis);
      case 4:
        return vt::cumsum(vt::tanh(t), axis,
                          {.reverse = random(2) == 0, .exclusive = random(2) == 0}) *
               0.3;
      case 5:
        return vt::cumprod(vt::tanh(t), axis,
                           {.reverse = random(2) == 0, .exclusive = random(2) == 0});
      case 6: return vt::prod(vt::tanh(t), {axis}, keep);
      case 7: return vt::var(vt::tanh(t), {axis}, 0, keep);
      case 8:
        features_.smooth = false;
        return random(2) ? vt::max(t, {axis}, keep) : vt::min(t, {axis}, keep);
      case 9: return vt::cumlogsumexp(vt::tanh(t), axis);
      default: features_.smooth = false; return vt::cummax(t, axis);
    }
  }

  T shaped(const T& t) const {
    const int axis = axis_of(t);
    switch (random(11)) {
      case 0: return vt::reshape(t, {-1});
      case 1: return vt::transpose(t);
      case 2: return vt::flip(t, {axis});
      case 3: return vt::roll(t, 1 + random(2), axis);
      case 4: return vt::concatenate({t, vt::cos(t)}, axis);
      case 5: return vt::stack({t, vt::sin(t)}, random(t.rank() + 1));
      case 6:
        return vt::pad(t,
                       std::vector<std::pair<std::int64_t, std::int64_t>>(
                           static_cast<std::size_t>(t.rank()), {random(3) - 1, random(3)}),
                       0.5);
      case 7: return vt::expand_dims(t, random(t.rank() + 1));
      case 8: return vt::moveaxis(t, axis, 0);
      case 9: return vt::tile(t, vt::Shape::filled(t.rank(), 1 + random(2)));
      default: {
        vt::Shape wider{2};
        wider.append(t.shape().begin(), t.shape().end());
        return vt::broadcast_to(t, wider) * constant({});
      }
    }
  }

  T indexed(const T& t) const {
    const int axis = random(t.rank());
    const std::int64_t extent = t.dim(axis);
    if (extent == 0) return t;
    auto index = [&](int count) {
      std::vector<std::int32_t> values(static_cast<std::size_t>(count));
      for (auto& v : values) v = random(static_cast<int>(2 * extent)) - static_cast<int>(extent);
      return vt::tensor(values);
    };
    switch (random(12)) {
      case 0: return t.dim(0) > 0 ? t[random(static_cast<int>(t.dim(0)))] : t;
      case 1: return vt::take(t, index(3), axis);
      case 2: return t[vt::slice(std::nullopt, std::nullopt, random(2) ? -1 : 2)];
      case 3: {
        features_.smooth = false;
        const T best = vt::argmax(t, axis, true);
        return vt::take_along_axis(t, best, axis);
      }
      case 4: return t.dim(0) > 0 ? vt::index_add(t, index(2), vt::mean(pick())) : t;
      case 5: return vt::slice_in_dim(t, 0, (extent + 1) / 2, axis);
      case 6: {
        features_.smooth = false;
        const T start = vt::argmin(vt::ravel(t));
        return vt::dynamic_slice_in_dim(t, start, (extent + 1) / 2, axis);
      }
      case 7: {
        features_.smooth = false;
        const T start = vt::argmax(vt::ravel(t)) % static_cast<int>(extent);
        return vt::dynamic_update_slice_in_dim(t, vt::sin(vt::slice_in_dim(t, 0, 1, axis)), start,
                                               axis);
      }
      case 8: return vt::index_update(t, index(1), vt::tanh(vt::mean(pick())));
      case 9: return vt::at(t, selection(t)).get();
      case 10: {
        const vt::Selection chosen = vt::at(t, selection(t));
        const T value = vt::tanh(vt::mean(pick()));
        switch (random(5)) {
          case 0: return chosen.set(value);
          case 1: return chosen.add(value);
          case 2: return chosen.mul(value);
          case 3: return chosen.apply([](const T& some) { return vt::sin(some) * 0.7; });
          default: features_.smooth = false; return (chosen.max)(value);
        }
      }
      default: {
        const vt::Shape one = vt::Shape::filled(t.rank(), 1);
        return vt::put_along_axis(t, index(1).reshape(one), vt::tanh(vt::mean(pick())), axis,
                                  random(2) ? vt::Combine::add : vt::Combine::set);
      }
    }
  }

  /// An index for each axis, in any mixture.
  std::vector<vt::Index> selection(const T& t) const {
    std::vector<vt::Index> all;
    for (int axis = 0; axis < t.rank(); ++axis) {
      const int n = static_cast<int>(t.dim(axis));
      const auto place = [&] { return random(2 * n) - n; };
      const auto computed = [&] {
        features_.smooth = false;
        return vt::argmax(vt::ravel(t)) % n;
      };
      if (random(8) == 0) all.emplace_back(vt::newaxis);
      switch (random(8)) {
        case 0: all.emplace_back(place()); break;
        case 1: all.emplace_back(vt::tensor({place(), place()})); break;
        case 2: all.emplace_back(vt::tensor({place(), place() - 1}).reshape({2, 1})); break;
        case 3: all.emplace_back(computed()); break;
        case 4: all.emplace_back(vt::window(computed() - 1, (n + 1) / 2)); break;
        case 5: all.emplace_back(vt::slice(std::nullopt, std::nullopt, random(2) ? -1 : 2)); break;
        case 6: all.emplace_back(vt::slice(0, (n + 1) / 2)); break;
        default: all.emplace_back(vt::slice()); break;
      }
    }
    return all;
  }

  /// What the lanes or processes of an axis make of it together.
  T met(const T& t) const {
    const std::string& axis = axes_[random(static_cast<int>(axes_.size()))];
    const std::int64_t n = vt::axis_size(axis);
    const auto for_all = [&] {  // something for each of them
      vt::Shape weights = vt::Shape::filled(t.rank() + 1, 1);
      weights[0] = n;
      return t * constant(weights);
    };
    const auto meeting = [axis](T v) { return 0.5 * (v - vt::sin(vt::pmean(v, axis))); };
    switch (random(depth_ > 0 ? 11 : 14)) {  // inside of lanes no predicate is shared
      case 0: return vt::psum(vt::tanh(t), axis) * 0.3;
      case 1: return vt::pmean(t, axis);
      case 2: features_.smooth = false; return random(2) ? vt::pmax(t, axis) : vt::pmin(t, axis);
      case 3:
        return vt::tensordot(constant({n}), vt::all_gather(t, axis), vt::Axes{0}, vt::Axes{0});
      case 4: {
        std::vector<std::pair<std::int64_t, std::int64_t>> to_next;
        for (std::int64_t i = 0; i + random(2) < n; ++i) to_next.emplace_back(i, (i + 1) % n);
        return vt::ppermute(t, axis, to_next);
      }
      case 5: {
        std::vector<std::int64_t> sources;
        for (std::int64_t i = 0; i < n; ++i) sources.push_back((i * (n > 2 ? n - 1 : 1) + 1) % n);
        return vt::pshuffle(t, axis, sources);
      }
      case 6: return vt::psum_scatter(for_all(), axis);
      case 7: return vt::sum(vt::all_to_all(for_all(), axis, 0, 0), 0) * 0.5;
      case 8: return t * vt::cos(0.3 * vt::axis_index(axis));
      case 9: return vt::psum(t, vt::AxisNames(axes_)) * 0.2;
      case 10: return vt::fori_loop(0, 2, [&](T, T v) { return meeting(v); }, t);
      case 11: {
        features_.smooth = false;
        const auto go_on = [axis](T i, T v) {
          return (i < 3) & (vt::pmax(vt::mean(v), axis) > -0.2);
        };
        return vt::while_loop(
                   go_on, [&](T i, T v) { return std::pair(i + 1, meeting(v)); },
                   std::pair(T(0), t))
            .second;
      }
      case 12: {
        features_.smooth = false;
        const T other = vt::mean(pick());
        return vt::cond(
            vt::psum(vt::mean(t), axis) > 0.1, [&](T v) { return meeting(v) * other; },
            [](T v) { return vt::sin(v); }, t);
      }
      default: {
        features_.smooth = false;
        const T other = vt::mean(pick());
        return vt::cond(
            vt::mean(t) > 0.1, [&](T v) { return vt::cos(v) * other; },
            [](T v) { return vt::sin(v); }, t);
      }
    }
  }

  T contracted(const T& t) const {
    const T m = t.rank() >= 2 ? t : vt::outer(t, t) * 0.5;
    switch (random(4)) {
      case 0: return vt::matmul(m, vt::swapaxes(vt::tanh(m), -1, -2)) * 0.3;
      case 1: return vt::matmul(m, constant({m.dim(-1), 2}));
      case 2: return vt::einsum("...i,i->...", m, constant({m.dim(-1)}));
      default:
        return vt::tensordot(vt::tanh(m), m, vt::Axes{-1}, vt::Axes{-1}) *
               (m.rank() > 2 ? 0.1 : 0.3);
    }
  }

  T nested(const T& t) const {
    ++features_.nested;
    const std::uint64_t inner_seed = engine_();
    const T other = vt::mean(pick());
    bool all_meet = true;
    auto inner = [inner_seed, depth = depth_ + 1, parent = this, &all_meet](const T& a,
                                                                            const T& b) {
      RandomProgram p(inner_seed, 3, depth);
      if (all_meet) p.over(parent->axes_);
      const T result = p(a, b);
      parent->features_.smooth = parent->features_.smooth && p.features().smooth;
      return result;
    };
    auto total = [inner](const T& a, const T& b) { return vt::sum(inner(a, b)); };
    switch (random(9)) {
      case 0: return vt::vmap(inner, {.in_axes = {random(t.rank()), vt::unmapped}})(t, other);
      case 1: return vt::vmap([&](const T& a) { return inner(a, other); }, {.out_axes = -1})(t);
      case 2: return vt::tanh(vt::grad(total)(t, other));
      case 3:
        return vt::tanh(vt::jvp(inner, std::tuple(t, other), std::tuple(vt::cos(t), other)).second);
      case 4: {
        auto [value, pull] = vt::vjp(inner, t, other);
        return vt::tanh(std::get<0>(pull(vt::sin(value))));
      }
      case 5: return vt::jit(inner)(t, other);
      case 6: return vt::checkpoint(inner)(t, other);
      case 7: return vt::vmap(vt::grad(total), {.in_axes = {0, vt::unmapped}})(t, other);
      default: {
        const T& mapped = t;
        const std::int64_t rows = t.dim(0);
        if (random(2)) return vt::pfor([&](T i) { return inner(mapped[i], other); }, rows);
        // The first so many rows, by a number or by what the elements are.
        T n = vt::tensor(random(static_cast<int>(rows) + 1));
        if (random(2)) {
          features_.smooth = false;
          n = vt::argmax(vt::ravel(t)) % static_cast<int>(rows + 1);
        }
        all_meet = false;  // lanes that do not run would not come
        const bool meet = random(2);
        const auto of_row = [&](T i) {
          const T row = mapped[i];
          return inner(meet ? row - 0.5 * vt::pmean(row, "row") : row, other);
        };
        return vt::pfor(of_row, n, {.at_most = rows, .axis_name = "row"});
      }
    }
  }

  std::uint64_t seed_;
  int steps_, depth_;
  std::vector<std::string> axes_;
  mutable std::mt19937_64 engine_;
  mutable std::vector<T> pool_;
  mutable Features features_;
};

}  // namespace vt_test
