// Staging: pinned host memory for copies between host and device, so that the host does not wait.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/locks.hpp"
#include "cuda_library.hpp"

namespace vt::detail::cuda {

class CudaDevice;

/// Any thread. Never more than 80 MiB; who asks for more waits for earlier copies.
class Staging {
 public:
  explicit Staging(const CudaDevice& device) : device_(device) {}
  /// Puts a copy of `bytes` from the host's memory, which may change at once, into the device's
  /// stream. False where no pinned memory can be had: then nothing, or only a first part, has been
  /// done.
  bool upload(DevicePtr to, const void* from, std::size_t bytes);
  /// Waits until `bytes` of the device are in the host's memory. False as above.
  bool download(void* to, DevicePtr from, std::size_t bytes);

 private:
  struct Block {
    char* data = nullptr;
    std::size_t bytes = 0;
    Event done = nullptr;
    std::uint64_t turn = 0;  ///< when it was given to the stream last
    bool busy = false;       ///< somebody holds it
    bool pending = false;    ///< the stream may not be done with it
  };
  Block* take(std::size_t bytes);
  void give_back(Block* block, bool pending);
  /// Records the event behind what was given to the stream last.
  Result mark(const Block& block) const;
  Block* make(std::size_t bytes) const;

  const CudaDevice& device_;
  Mutex mutex_;
  Vec<Block*> blocks_;  // kept as long as the process lives
  std::uint64_t turns_ = 0;
};

}  // namespace vt::detail::cuda
