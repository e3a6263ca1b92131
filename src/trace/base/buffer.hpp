// Buffer: a block of memory of the host or of another device, 64-byte aligned, from a caching pool.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <vt/error.hpp>
#include <vt/tensor.hpp>

#include "ref.hpp"

namespace vt::detail {

struct NanSource;

struct Buffer : RefCounted {
  void* data = nullptr;
  std::size_t bytes = 0;     ///< wanted
  std::size_t capacity = 0;  ///< of the pool's block; 0 for borrowed memory
  Device device{};
  /// of a device's memory: the copy that was made to look at it; see on_host
  Ref<Buffer> host;
  /// a value that was given away, and to whom; there are no bytes then
  CallSite donated{};
  /// the run that made it, where DebugNans found that it is not finite
  std::shared_ptr<const NanSource> not_finite;
  void* owner = nullptr;            ///< of borrowed memory
  void (*let_go)(void*) = nullptr;  ///< called with `owner` at the end, if there is one
  ~Buffer();
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};
using BufferRef = Ref<Buffer>;

/// A fresh, uninitialised block of at least `bytes` (never null; zero bytes give a valid address).
/// Throws: Error(memory) with `what` and the size when the memory cannot be had.
BufferRef allocate(std::size_t bytes, const char* what = "buffer");
/// Wraps the caller's memory.
BufferRef borrow_memory(const void* data, std::size_t bytes);

/// Bytes handed out now, the most there ever were, and bytes cached for reuse; of the first two,
/// what was asked for before blocks were rounded up.
struct PoolUse {
  std::size_t in_use, peak, cached, asked, asked_peak;
};
PoolUse pool_use();
/// "1.5 GiB"
std::string readable_bytes(std::size_t bytes);
void reset_pool_peak();
/// Gives cached blocks back to the system.
void trim_pool();
/// No more than `bytes` are handed out from now on; 0: no limit. Starts as VT_MEMORY_LIMIT (bytes,
/// or with K, M, G).
void set_memory_limit(std::size_t bytes);

}  // namespace vt::detail
