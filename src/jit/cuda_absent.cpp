// What stands in for src/jit/cuda in a header-only program that does not ask for it with VT_CUDA:
// errors that say so.
#ifndef VT_CUDA
#include <vt/detail/message.hpp>
#include <vt/error.hpp>

#include "../trace/record/devices.hpp"
#include "services/executables.hpp"

namespace vt::detail {

namespace cuda_absent {

[[noreturn]] void fail(Device device, const char* who, CallSite where) {
  detail::fail(ErrorKind::backend,
               unusable(device, who) +
                   ", as this program was compiled without vt's sources for "
                   "CUDA: define VT_CUDA beside VT_IMPLEMENTATION",
               where);
}

}  // namespace cuda_absent

std::shared_ptr<Executable> cuda_executable(const GraphBody&, int device, std::span<const char>) {
  cuda_absent::fail(vt::cuda(device), asks_by_default, {});
}

BufferRef moved(const BufferRef& buffer, Device to) {
  if (buffer->device == to) return buffer;
  cuda_absent::fail(to, asks_by_default, {});
}

BufferRef sole_on_device(BufferRef buffer) {
  cuda_absent::fail(buffer->device, asks_by_default, {});
}

void require_usable(Device device, const char* who, CallSite where) {
  if (device.kind == Device::Kind::cuda) cuda_absent::fail(device, who, where);
}

}  // namespace vt::detail
#endif
