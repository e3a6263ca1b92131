// Tests that run on several ranks: on threads of this process, or as the processes that mpirun
// started it as.
#pragma once

#include <functional>
#include <vector>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

namespace vt_test {

/// Is this one of several processes?
inline bool is_process() { return vt::distributed::size() > 1; }

/// Runs `program` on `ranks` threads; among processes, once in each if there are so many. False:
/// there are not.
inline bool on_ranks(int ranks, const std::function<void()>& program) {
  if (is_process()) {
    if (vt::distributed::size() != ranks) return false;
    program();
    return true;
  }
  vt::distributed::simulate(ranks, program);
  return true;
}

/// Block number `index` of `count` along axis 0.
inline vt::Tensor block(const vt::Tensor& whole, std::int64_t index, std::int64_t count) {
  const std::int64_t n = whole.dim(0) / count;
  return vt::slice_in_dim(whole, index * n, (index + 1) * n, 0);
}

}  // namespace vt_test
