// LibraryCall: a step of a program that a library of the CUDA toolkit does: run at once on a
// stream, or captured for a CUDA graph.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "../driver/device.hpp"

namespace vt::detail::cuda {

/// One call with all but its addresses. It neither waits nor allocates, so that a stream that is
/// captured can take it, unless it says otherwise.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// "cuBLAS"
  virtual const char* library() const = 0;
  virtual bool may_be_captured() const { return true; }
  /// Any thread, one after the other. Throws: Error(backend), Error(memory).
  virtual void run(const CudaDevice&, Stream, std::span<const DevicePtr> addresses) const = 0;
};

/// Looks `count` names up in the first library lib`stem` of the toolkit that has them all, and
/// writes their addresses to `table`, a pointer for each name in that order. Empty, or why there is
/// none: then the table stays as it was. The environment's `variable` names a file, or "none".
std::string load_toolkit(const char* stem, std::initializer_list<const char*> versions,
                         const char* variable, const char* const* names, std::size_t count,
                         void* table);

/// A library as one finds it: its functions, or why there are none. Made once for each and never
/// let go, as the driver.
template <class Table>
struct LoadedLibrary {
  template <std::size_t count>
  LoadedLibrary(const char* stem, std::initializer_list<const char*> versions, const char* variable,
                const char* const (&names)[count])
      : reason(load_toolkit(stem, versions, variable, names, count, &table)) {
    static_assert(sizeof(Table) == sizeof(names),
                  "one name per member of the table, in the same order");
  }
  Table table;
  std::string reason;  ///< empty: the table is good
};

/// What the call gives to a stream, as a graph that the caller ends. Throws: Error(backend),
/// Error(memory).
Graph captured(const CudaDevice&, const LibraryCall&, std::span<const DevicePtr> addresses);

}  // namespace vt::detail::cuda
