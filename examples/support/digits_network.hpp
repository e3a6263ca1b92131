// The network that digits.cpp and distributed/digits_mpi.cpp train, written for one image.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include <vt/vt.hpp>

#include "digits.hpp"

namespace support {

inline constexpr int hidden = 64;

struct Params {
  vt::Tensor w1, b1, w2, b2;
};

inline vt::Tensor logits(const Params& p, const vt::Tensor& image) {
  const vt::Tensor h = vt::tanh(vt::matmul(image, p.w1) + p.b1);
  return vt::matmul(h, p.w2) + p.b2;
}

inline vt::Tensor loss(const Params& p, const vt::Tensor& image, const vt::Tensor& label) {
  return vt::sparse_cross_entropy(logits(p, image), label);
}

/// Which part of the images it names right.
inline double accuracy(const Params& p, const Images& images) {
  const vt::Tensor best =
      vt::argmax(vt::vmap(logits, {.in_axes = {vt::unmapped, 0}})(p, images.pixels), 1);
  return vt::mean((best == images.labels).astype(vt::f64)).item<double>();
}

inline Params random_start() {
  std::mt19937 random(2);
  const auto normal = [&](int rows, int columns) {
    std::normal_distribution<float> draw(0.0f, 1.0f / std::sqrt(static_cast<float>(rows)));
    std::vector<float> values(static_cast<std::size_t>(rows) * columns);
    for (float& v : values) v = draw(random);
    return vt::tensor(values, {rows, columns});
  };
  return {normal(pixels, hidden), vt::zeros({hidden}), normal(hidden, classes),
          vt::zeros({classes})};
}

}  // namespace support
