// Looks: who computes values of a scope's tracers while its function runs.
#pragma once

#include <span>
#include <vector>

#include <vt/tensor.hpp>

namespace vt::detail {

/// Defined by src/transforms/autobatch.
class Looks {
 public:
  /// The values of tracers of the scope.
  virtual std::vector<Tensor> values(std::span<const Tensor> tracers, CallSite where) = 0;

 protected:
  ~Looks() = default;
};

}  // namespace vt::detail
