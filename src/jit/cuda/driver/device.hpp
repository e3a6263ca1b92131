// Devices: contexts, the stream that all work of a device goes through, its memory, and copies to
// and from the host.
#pragma once

#include <string>

#include "../../../trace/base/buffer.hpp"
#include "../../../trace/record/devices.hpp"
#include "cuda_library.hpp"
#include "staging.hpp"

namespace vt::detail {
struct GraphBody;
}

namespace vt::detail::cuda {

/// What is known of a device for good.
struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 1;
  int threads = 2048;           ///< that a multiprocessor holds
  int shared_bytes = 48 << 10;  ///< the most that a block may ask for
  std::size_t memory_bytes = 0;
};

/// One CUDA device. All kernels and copies go through one stream, in the order in which they were
/// given: so memory that is let go may be handed out again at once, and nothing waits but who looks
/// at a value. Lives as long as the process.
class CudaDevice {
 public:
  /// Throws: Error(backend) without a driver, without such a device, or if an earlier error has
  /// ended all work on it. `who` asks.
  static CudaDevice& get(int index, const char* who = asks_by_default, CallSite where = {});

  const Driver& driver() const { return driver_; }
  const DeviceFacts& facts() const { return facts_; }
  int index() const { return index_; }
  Stream stream() const { return stream_; }
  Context context() const { return context_; }

  /// Makes this the calling thread's context.
  void enter() const;
  void enter_quietly() const;  ///< whatever comes of it
  /// Throws: Error(memory), with the line of `asking` that makes the largest array, or the running
  /// call's; Error(backend).
  BufferRef allocate(std::size_t bytes, const char* what, const GraphBody* asking = nullptr) const;
  /// Does not wait for the device, and is done with the host's memory when it returns.
  BufferRef upload(const Buffer& host) const;
  BufferRef download(const Buffer& device) const;
  void copy(DevicePtr to, DevicePtr from, std::size_t bytes) const;
  /// Waits for all that was given to the device.
  void synchronise() const;
  void check(Result result, const char* what) const { cuda::check(result, what, {}, index_); }

 private:
  CudaDevice(const Driver& driver, int index, CallSite where);

  const Driver& driver_;
  int index_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  bool pools_ = false;  // memory is allocated and freed in the stream's order
  DeviceFacts facts_;
  mutable Staging staging_{*this};
};

/// Where a buffer of a device begins.
inline DevicePtr address(const Buffer& b) { return reinterpret_cast<DevicePtr>(b.data); }

}  // namespace vt::detail::cuda
