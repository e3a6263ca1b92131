// What vt::autobatch records of a loss and how many batches it runs, over the size of the
// minibatch: counted, printed and drawn.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "png.hpp"

namespace support {

/// Draws counts over the sizes of minibatches, both logarithmic, as one line for each name.
inline void draw_batches(const std::string& path, const std::vector<int>& sizes,
                         const std::array<std::vector<double>, 3>& counts,
                         const std::string& instances) {
  constexpr int left = 110, right = 600, top = 50, bottom = 380;
  constexpr Colour black{0, 0, 0}, light{225, 225, 225};
  constexpr std::array<Colour, 3> colours{{{120, 120, 120}, {230, 150, 30}, {30, 90, 200}}};
  constexpr std::array<const char*, 3> names{"nodes", "batches by depth", "batches by agenda"};
  constexpr std::array<int, 3> sizes_of_lines{3, 7, 3};
  Picture picture(right + 40, bottom + 80);
  const auto x_of = [&](double size) {
    return left + static_cast<int>((right - left) * std::log2(size / sizes[0]) /
                                   std::log2(sizes.back() / sizes[0]));
  };
  const auto y_of = [&](double count) {  // from 10 to 100000
    return bottom - static_cast<int>((bottom - top) * (std::log10(count) - 1) / 4);
  };
  for (int decade = 1; decade <= 5; ++decade) {
    const std::string text = "1" + std::string(static_cast<std::size_t>(decade), '0');
    const int y = y_of(std::pow(10, decade));
    picture.line(left, y, right, y, 1, decade == 1 ? black : light);
    picture.caption(left - 10 - 8 * static_cast<int>(text.size()), y - 5, text);
  }
  for (const int size : sizes) {
    const int x = x_of(size);
    picture.line(x, top, x, bottom, 1, size == sizes[0] ? black : light);
    picture.caption(x - 4 * static_cast<int>(std::to_string(size).size()), bottom + 10,
                    std::to_string(size));
  }
  picture.caption((left + right) / 2 - 100, bottom + 35, instances + " in a minibatch");
  picture.caption(left - 80, top - 30, "recorded nodes and batches that run");
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto point = [&](std::size_t i) { return std::pair(x_of(sizes[i]), y_of(counts[k][i])); };
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto [x, y] = point(i);
      picture.block(x - 5, y - 5, 11, 11, colours[k]);
      if (i == 0) continue;
      const auto [x0, y0] = point(i - 1);
      picture.line(x0, y0, x, y, sizes_of_lines[k], colours[k]);
    }
    const int y = top + 25 + 20 * static_cast<int>(k);
    picture.line(left + 20, y, left + 50, y, sizes_of_lines[k], colours[k]);
    picture.caption(left + 60, y - 5, names[k]);
  }
  picture.write_png(path);
}

/// Counts nodes and batches of the loss of minibatches of several sizes, and draws them. Returns
/// whether the batches of the largest one are too many.
template <class Loss, class Params, class Instance>
int count_batches(const Loss& loss, const Params& p, const std::vector<Instance>& instances,
                  const std::string& path, const char* name) {
  std::array<std::vector<double>, 3> counts;
  const std::vector<int> sizes{2, 4, 8, 16, 32, 64, 128};
  std::printf("\n%s, nodes, batches by depth, by agenda\n", name);
  for (const int size : sizes) {
    const std::vector<Instance> some(instances.begin(), instances.begin() + size);
    vt::autobatch(loss, {.strategy = vt::Batching::by_depth})(p, some);
    counts[0].push_back(static_cast<double>(vt::batch_stats().nodes));
    counts[1].push_back(static_cast<double>(vt::batch_stats().groups));
    vt::autobatch(loss)(p, some);
    counts[2].push_back(static_cast<double>(vt::batch_stats().groups));
    std::printf("%9d %6.0f %17.0f %10.0f\n", size, counts[0].back(), counts[1].back(),
                counts[2].back());
  }
  draw_batches(path, sizes, counts, name);
  std::printf("%s shows these\n", path.c_str());
  return counts[2].back() * 20 > counts[0].back();
}

}  // namespace support
