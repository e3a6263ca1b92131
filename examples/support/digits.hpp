// The digits that several examples learn: reading them, and what is done with gradients of one
// example each.
#pragma once

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "csv.hpp"

namespace support {

inline constexpr int pixels = 64, classes = 10;

struct Images {
  vt::Tensor pixels;  // f32[n,64], 0 to 1
  vt::Tensor labels;  // i32[n]
  std::vector<int> label;
  int count() const { return static_cast<int>(label.size()); }
};

struct Data {
  Images train, held_out;
};

inline Data read_digits(const std::string& path) {
  const Table table = read_csv(path, pixels + 1);
  std::vector<float> values[2];
  std::vector<int> labels[2];
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int part = row % 5 == 0;  // every fifth image is held out
    for (int i = 0; i < pixels; ++i) {
      const double value = table.at(row, i);
      if (value < 0 || value > 16)
        throw InputError(path, table.lines[row], "pixel outside 0 to 16");
      values[part].push_back(static_cast<float>(value / 16));
    }
    const double label = table.at(row, pixels);
    if (label < 0 || label >= classes || label != std::floor(label))
      throw InputError(path, table.lines[row], "label is not a digit");
    labels[part].push_back(static_cast<int>(label));
  }
  const auto images = [&](int part) {
    const std::size_t n = labels[part].size();
    return Images{vt::tensor(values[part], {n, pixels}), vt::tensor(labels[part], {n}),
                  labels[part]};
  };
  if (labels[0].size() < 256)
    throw InputError(path, table.lines.back(), "the example needs at least 320 images");
  return {images(0), images(1)};
}

template <class Tree>
const Tree& evaluated(const Tree& tree) {
  for (const vt::Tensor& leaf : vt::tree_leaves(tree)) leaf.eval();
  return tree;
}

/// Euclidean norm of each example's gradient: leaves [n, …] → [n].
template <class Params>
vt::Tensor norms(const Params& gradients) {
  vt::Tensor squares = 0.0;
  for (const vt::Tensor& leaf : vt::tree_leaves(gradients)) {
    std::vector<int> inner(leaf.rank() - 1);
    std::iota(inner.begin(), inner.end(), 1);
    squares = squares + vt::sum(vt::square(leaf), inner);
  }
  return vt::sqrt(squares);
}

}  // namespace support
