// The networks that several benchmarks run: the convolutional one of 28×28 images, and VGG16.
#pragma once

#include <cmath>

#include "data.hpp"

namespace perf {

/// The network of 28×28 images: two convolutions with pools, a dense layer with dropout, logits of
/// 10 classes.
struct Network {
  vt::Tensor filter1, bias1, filter2, bias2, weights3, bias3, weights4, bias4;
};

/// One image [28,28,1]; `kept`: the dropout's factors.
inline vt::Tensor logits(const Network& p, const vt::Tensor& image, const vt::Tensor& kept) {
  vt::Tensor h = vt::max_pool(vt::relu(vt::conv2d(image, p.filter1, {.padding = "SAME"}) + p.bias1),
                              {.window = {2, 2}});
  h = vt::max_pool(vt::relu(vt::conv2d(h, p.filter2, {.padding = "SAME"}) + p.bias2),
                   {.window = {2, 2}});
  h = vt::relu(vt::matmul(vt::ravel(h), p.weights3) + p.bias3) * kept;
  return vt::matmul(h, p.weights4) + p.bias4;
}
inline vt::Tensor loss(const Network& p, const vt::Tensor& image, const vt::Tensor& kept,
                       const vt::Tensor& label) {
  return vt::sparse_cross_entropy(logits(p, image, kept), label);
}
/// The mean loss of a batch.
inline vt::Tensor mean_loss(const Network& p, const vt::Tensor& x, const vt::Tensor& kept,
                            const vt::Tensor& y) {
  return vt::mean(vt::vmap(loss, {.in_axes = {vt::unmapped, 0, 0, 0}})(p, x, kept, y));
}

using Weights = std::vector<vt::Tensor>;  // filter or matrix, bias, filter or matrix, bias …

/// Configuration D of Simonyan and Zisserman, "Very deep convolutional networks" (2015): 13 layers
/// of 3×3 filters in five blocks, each followed by a pool; three dense layers. 48×48 pixels leave
/// one place of 512 features.
// layers, features
inline constexpr int vgg16_blocks[5][2] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};

/// The shapes of its filters and matrices; each is followed by a bias of its last extent.
inline std::vector<vt::Shape> vgg16_shapes(int outputs) {
  std::vector<vt::Shape> shapes;
  int channels = 3;
  for (const auto& [layers, features] : vgg16_blocks)
    for (int l = 0; l < layers; ++l, channels = features)
      shapes.push_back({3, 3, channels, features});
  for (const int features : {4096, 4096, outputs}) {
    shapes.push_back({channels, features});
    channels = features;
  }
  return shapes;
}
/// The greatest weight with which relu keeps the variance of what goes through it.
inline double weight_scale(const vt::Shape& shape) {
  return std::sqrt(6.0 * static_cast<double>(shape.back()) / static_cast<double>(shape.elements()));
}

/// An image [48, 48, 3].
inline vt::Tensor vgg16_logits(const Weights& p, vt::Tensor x) {
  std::size_t at = 0;
  for (const auto& [layers, features] : vgg16_blocks) {
    for (int l = 0; l < layers; ++l, at += 2)
      x = vt::relu(vt::conv2d(x, p[at], {.padding = "SAME"}) + p[at + 1]);
    x = vt::max_pool(x, {.window = {2, 2}});
  }
  x = vt::ravel(x);
  for (; at < p.size(); at += 2) {
    x = vt::matmul(x, p[at]) + p[at + 1];
    if (at + 2 < p.size()) x = vt::relu(x);
  }
  return x;
}

}  // namespace perf
