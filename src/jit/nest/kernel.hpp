// Kernel: the machine code of a loop nest or of a register kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <vt/detail/small_vec.hpp>

namespace vt::detail {

/// A compiled nest. `buffers` in the nest's order; `arguments`: the runtime loops' extents in loop
/// order, then the nest's scalars, then `numbers`; [begin, end): the range of the parallel loop.
struct Kernel {
  using Function = void(void* const* buffers, const std::int64_t* arguments, std::int64_t begin,
                        std::int64_t end);
  /// another from one run to the next, once better code was made
  void** entry = nullptr;
  bool* unoptimised = nullptr;       ///< is it to be replaced?
  std::shared_ptr<const void> keep;  ///< owns the code and both
  /// extents and distances of this nest, which its code does not know
  Vec<std::int64_t> numbers;
  explicit operator bool() const { return entry != nullptr; }
  void operator()(void* const* buffers, const std::int64_t* arguments, std::int64_t begin,
                  std::int64_t end) const {
    void* const function = std::atomic_ref(*entry).load(std::memory_order_acquire);
    reinterpret_cast<Function*>(function)(buffers, arguments, begin, end);
  }
  bool optimised() const { return !std::atomic_ref(*unoptimised).load(std::memory_order_relaxed); }
};

}  // namespace vt::detail
