// Matrix products on the CPU: which kernel a product uses, how it is blocked and cut over threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "../matmul_spec.hpp"

namespace vt::detail::cpu {

/// A product made ready to run. Any thread may run it; the work is cut by the shape alone, so the bits never depend on threads.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void run(const void* a, const void* b, void* c, const RowsDone& done = {}, const PackedOperands& packed = {}) const = 0;
  /// What every run would do again to operands that stay the same; null: an operand that does not.
  virtual PackedOperands pack(const void*, const void*) const { return {}; }
  /// "direct 14x32 f32", "packed …": for vt::explain.
  virtual std::string describe() const = 0;
};

/// The kernel for `spec`, compiled or from a cache (in a `hurry`: see cached_code). Null when there is no LLVM.
std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& spec, bool hurry = false);

}  // namespace vt::detail::cpu
