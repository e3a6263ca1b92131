// InstanceRun: functions that are recorded into one scope in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/fiber/coroutine.hpp"
#include "looks.hpp"

namespace vt::detail::autobatching {

/// An instance that has not ended after so many batches of looks has an error. Tests lower it.
std::uint64_t& most_looks();

class InstanceRun {
 public:
  InstanceRun(BatchLooks& looks, FunctionRef<void(std::size_t)> body);
  ~InstanceRun();
  InstanceRun(const InstanceRun&) = delete;
  InstanceRun& operator=(const InstanceRun&) = delete;

  /// Runs the body for numbers below `count`; computes what they wait for until all have ended.
  /// Throws what the first one threw.
  void run(std::size_t count);
  /// Is the caller one of the instances?
  bool is_running() const;
  /// Waits for values.
  std::vector<Tensor> wait(std::span<const Tensor> tracers, CallSite where);

 private:
  struct Instance;
  void go_on(Instance&);
  void compute();
  void unwind();

  BatchLooks& looks_;
  FunctionRef<void(std::size_t)> body_;
  Vec<std::unique_ptr<Instance>> waiting_;  ///< in the order of the items
  Instance* running_ = nullptr;
  std::uint64_t looks_so_far_ = 0;
  std::exception_ptr thrown_;
};

}  // namespace vt::detail::autobatching
