// See plain_recursion.hpp.
#include "plain_recursion.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace plain {

int fibonacci(int n) { return n <= 1 ? 1 : fibonacci(n - 1) + fibonacci(n - 2); }

namespace {

using Point = std::array<float, 3>;

void order(std::vector<Point>& points, int low, int high, int axis) {
  if (low >= high) return;
  const int middle = (low + high) / 2;
  std::nth_element(points.begin() + low, points.begin() + middle, points.begin() + high,
                   [&](const Point& a, const Point& b) { return a[axis] < b[axis]; });
  order(points, low, middle, (axis + 1) % 3);
  order(points, middle + 1, high, (axis + 1) % 3);
}

struct Search {
  const float* points;
  const float* query;
  float distance = 1e9f;
  int best = -1;

  void run(int low, int high, int axis) {
    if (low >= high) return;
    const int middle = (low + high) / 2;
    const float* point = points + 3 * middle;
    float squares = 0;
    for (int k = 0; k < 3; ++k) squares += (point[k] - query[k]) * (point[k] - query[k]);
    if (squares < distance) distance = squares, best = middle;
    const float across = query[axis] - point[axis];
    std::pair<int, int> near(low, middle), far(middle + 1, high);
    if (across >= 0) std::swap(near, far);
    run(near.first, near.second, (axis + 1) % 3);
    if (across * across < distance) run(far.first, far.second, (axis + 1) % 3);
  }
};

}  // namespace

KdTree::KdTree(std::vector<float> points) {
  std::vector<Point> all(points.size() / 3);
  for (std::size_t i = 0; i < points.size(); ++i) all[i / 3][i % 3] = points[i];
  order(all, 0, static_cast<int>(all.size()), 0);
  for (const Point& p : all) points_.insert(points_.end(), p.begin(), p.end());
}

int KdTree::nearest(const float* query) const {
  Search search{points_.data(), query};
  search.run(0, static_cast<int>(points_.size() / 3), 0);
  return search.best;
}

}  // namespace plain
