// What the examples that train share: Adam for a struct of Tensors, and uniform weights.
#pragma once

#include <cmath>
#include <cstdint>

#include <vt/vt.hpp>

namespace support {

/// Weights between −1/√rows and 1/√rows; each call continues one sequence of random numbers.
inline vt::Tensor weights(const vt::Shape& shape, vt::DType dtype = vt::f32) {
  static int calls = 0;
  const double most = 1.0 / std::sqrt(static_cast<double>(shape[0]));
  return (most * (2.0 * vt::random::uniform(vt::random::key(++calls), shape, dtype) - 1.0)).eval();
}

/// Adam (Kingma, Ba 2015): a running mean of gradients over the root of one of their squares.
template <class Params>
class Adam {
 public:
  Adam(const Params& p, double rate) : mean_(zeros_like(p)), square_(zeros_like(p)), rate_(rate) {}

  void step(Params& p, const Params& gradient) {
    ++steps_;
    const vt::Tensor rate = rate_ * std::sqrt(1.0 - std::pow(0.999, steps_)) /
                            (1.0 - std::pow(0.9, steps_));
    State s = update_(p, gradient, mean_, square_, rate);
    p = std::move(s.p), mean_ = std::move(s.mean), square_ = std::move(s.square);
  }

 private:
  struct State {
    Params p, mean, square;
  };
  static Params zeros_like(const Params& p) {
    return vt::tree_map([](const vt::Tensor& leaf) { return vt::zeros_like(leaf); }, p);
  }
  static State update(const Params& p, const Params& gradient, const Params& mean,
                      const Params& square, const vt::Tensor& rate) {
    State s;
    s.mean = vt::tree_map(
        [](const vt::Tensor& m, const vt::Tensor& g) { return 0.9 * m + 0.1 * g; }, mean, gradient);
    s.square = vt::tree_map(
        [](const vt::Tensor& v, const vt::Tensor& g) { return 0.999 * v + 0.001 * vt::square(g); },
        square, gradient);
    s.p = vt::tree_map(
        [&](const vt::Tensor& w, const vt::Tensor& m, const vt::Tensor& v) {
          return w - (rate * m / (vt::sqrt(v) + 1e-8)).astype(w.dtype());
        },
        p, s.mean, s.square);
    return s;
  }

  Params mean_, square_;
  double rate_;
  int steps_ = 0;
  const vt::Jitted<State (*)(const Params&, const Params&, const Params&, const Params&,
                             const vt::Tensor&)>
      update_ = vt::jit(&Adam::update);
};

}  // namespace support
