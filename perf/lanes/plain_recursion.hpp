// The recursions of perf/lanes as one writes them in plain C++; compiled with -O2 for any machine,
// nothing of vt included.
#pragma once

#include <vector>

namespace plain {

/// 1, 1, 2, 3, 5, …; calls itself twice.
int fibonacci(int n);

/// Points of three numbers in the order of a balanced k-d tree: the middle one of a range parts the
/// others by a coordinate; that of the halves is the next one.
class KdTree {
 public:
  explicit KdTree(std::vector<float> points);
  const std::vector<float>& points() const { return points_; }
  /// The number of the point nearest to three numbers.
  int nearest(const float* query) const;

 private:
  std::vector<float> points_;
};

}  // namespace plain
