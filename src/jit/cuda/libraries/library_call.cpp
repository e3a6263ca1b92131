// Loading the toolkit's libraries, and capturing the work that they put on a stream.
#include "library_call.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/locks.hpp"

namespace vt::detail::cuda {

namespace library_capture {

// A stream of its own for each device: what other threads give to the device's stream meanwhile is
// no part of the graph.
struct CaptureStream {
  LongMutex<> mutex;
  Stream stream = nullptr;
};
CaptureStream& stream_of(const CudaDevice& device) {
  // never destroyed: as many as there can be devices
  static CaptureStream* const all = new CaptureStream[64];
  return all[device.index()];
}

}  // namespace library_capture

std::string load_toolkit(const char* stem, std::initializer_list<const char*> versions,
                         const char* variable, const char* const* names, std::size_t count,
                         void* table) {
  const char* chosen = std::getenv(variable);
  if (chosen && std::strcmp(chosen, "none") == 0) return formatted("{} says none", variable);
  std::string reason;
  for (const std::string& path : toolkit_libraries(stem, versions, variable)) {
    Vec<void*> pointers(count, nullptr);
    std::string why = load_functions(path, names, count, pointers.data());
    if (why.empty()) {
      std::memcpy(table, pointers.data(), count * sizeof(void*));
      return {};
    }
    if (reason.empty() || why.find("cannot open shared object") == std::string::npos)
      reason = std::move(why);
  }
  return reason.empty() ? formatted("no lib{}.so is found", stem) : reason;
}

Graph captured(const CudaDevice& device, const LibraryCall& call,
               std::span<const DevicePtr> addresses) {
  const Driver& d = device.driver();
  library_capture::CaptureStream& s = library_capture::stream_of(device);
  const std::lock_guard lock(s.mutex);
  if (!s.stream)
    device.check(d.cuStreamCreate(&s.stream, Constant::CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  // Relaxed: a library may load a kernel when it is first asked for it, which is no work of the
  // stream.
  device.check(d.cuStreamBeginCapture_v2(s.stream, Constant::CU_STREAM_CAPTURE_MODE_RELAXED),
               "cuStreamBeginCapture");
  Graph graph = nullptr;
  try {
    call.run(device, s.stream, addresses);
  } catch (...) {
    if (d.cuStreamEndCapture(s.stream, &graph) == Constant::CUDA_SUCCESS && graph)
      static_cast<void>(d.cuGraphDestroy(graph));
    throw;
  }
  device.check(d.cuStreamEndCapture(s.stream, &graph), "cuStreamEndCapture");
  return graph;
}

}  // namespace vt::detail::cuda
