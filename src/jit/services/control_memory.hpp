// Memory and threads of loops and branches that run: rows of lanes, copies, and parts of the work
// on all threads.
#pragma once

#include <cstring>

#include <vt/detail/function.hpp>

#include "../../trace/base/buffer.hpp"
#include "threads.hpp"

namespace vt::detail::control_memory {

inline std::byte* bytes_of(const BufferRef& b) { return b->as<std::byte>(); }

inline BufferRef copied(const BufferRef& b) {
  BufferRef own = allocate(b->bytes, "a loop's carry");
  if (b->bytes) std::memcpy(own->data, b->data, b->bytes);
  return own;
}

/// Rows of an array of lanes.
struct Rows {
  std::byte* data;
  std::size_t bytes;  // of one
  Rows(const void* at, std::size_t row_bytes)
      : data(static_cast<std::byte*>(const_cast<void*>(at))), bytes(row_bytes) {}
  std::byte* at(std::int64_t row) const { return data + static_cast<std::size_t>(row) * bytes; }
};
inline void copy_row(const Rows& to, std::int64_t i, const Rows& from, std::int64_t j) {
  if (to.bytes) std::memcpy(to.at(i), from.at(j), to.bytes);
}

/// Parts of the work on all threads.
inline void run_parts(std::int64_t parts, FunctionRef<void(std::int64_t)> f) {
  if (parts == 1) return f(0);
  parallel_ranges(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) f(part);
  });
}

}  // namespace vt::detail::control_memory
