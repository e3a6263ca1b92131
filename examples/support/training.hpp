// What the examples that train share: uniform weights, and what vt::autobatch does for a loss:
// sentences or trees a second, and a check of the gradient.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include <vt/vt.hpp>

#include "check.hpp"

namespace support {

/// Weights between −1/√rows and 1/√rows; each call continues one sequence of random numbers.
inline vt::Tensor weights(const vt::Shape& shape, vt::DType dtype = vt::f32) {
  static int calls = 0;
  const double most = 1.0 / std::sqrt(static_cast<double>(shape[0]));
  return (most * (2.0 * vt::random::uniform(vt::random::key(++calls), shape, dtype) - 1.0)).eval();
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Strategy {
  const char* name;
  vt::Batching batching;
};
constexpr std::array<Strategy, 3> strategies{{{"by agenda", vt::Batching::agenda},
                                              {"by depth", vt::Batching::by_depth},
                                              {"unbatched", vt::Batching::none}}};

/// Prints of how many instances a second each strategy gives the gradient, in minibatches that it
/// has not seen; there are six or more. Returns the number of strategies whose gradient is not the
/// unbatched one.
template <class Loss, class Params, class Minibatch>
int compare_strategies(const Loss& loss, const Params& p, const std::vector<Minibatch>& minibatches,
                       const char* instances) {
  int failures = 0;
  const auto gradient = [&](vt::Batching batching, const Minibatch& some) {
    const auto batched = vt::autobatch(loss, {.strategy = batching});
    const Params result = vt::grad([&](const Params& q) { return batched(q, some); })(p);
    vt::eval(result);
    return result;
  };
  const auto unbatched = vt::tree_leaves(gradient(vt::Batching::none, minibatches[0]));
  for (const Strategy& strategy : strategies) {
    const auto own = vt::tree_leaves(gradient(strategy.batching, minibatches[0]));
    double worst = 0;
    for (std::size_t i = 0; i < own.size(); ++i)
      worst = std::max(worst, difference(own[i], unbatched[i]));
    // Half of them first, until most of what the others need is compiled; unbatched is slow.
    const bool batches = strategy.batching != vt::Batching::none;
    const std::size_t half = minibatches.size() / 2;
    for (std::size_t i = 1; batches && i < half; ++i) gradient(strategy.batching, minibatches[i]);
    std::size_t count = 0, nodes = 0, groups = 0;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = half; i < (batches ? minibatches.size() : half + 3); ++i) {
      gradient(strategy.batching, minibatches[i]);
      count += minibatches[i].size();
      nodes += vt::batch_stats().nodes, groups += vt::batch_stats().groups;
    }
    const double seconds = seconds_since(start);
    std::printf("%-10s %7.0f %s/s; %zu nodes ran as %zu; gradient differs by %.1e\n", strategy.name,
                static_cast<double>(count) / seconds, instances, nodes, groups, worst);
    failures += !(worst < 1e-4);
  }
  return failures;
}

}  // namespace support
