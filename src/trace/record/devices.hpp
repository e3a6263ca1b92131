// The device that a value is on, copies between devices, and the device for ops without operands.
// The copies are defined by src/jit/cuda.
#pragma once

#include <string>

#include "../base/buffer.hpp"

namespace vt::detail {

/// The same bytes on that device: itself, if it is there. Throws: Error(backend), Error(memory).
BufferRef moved(const BufferRef& buffer, Device to);
/// A device's memory that may be written over: itself, if it is a block that nobody else holds,
/// else a copy there. Throws as `moved`.
BufferRef sole_on_device(BufferRef buffer);
/// The bytes where the host can read them. A copy of a device's memory is made once and kept beside
/// it.
BufferRef on_host(const BufferRef& buffer);
/// Who asks for a device where no function of the user's names one.
inline constexpr const char* asks_by_default = "vt::default_device";
/// "WHO: cuda(0) cannot be used", and that the environment asks for it where it does.
std::string unusable(Device device, const char* who);
/// Throws Error(backend), in the name of `who`, if nothing can run there.
void require_usable(Device device, const char* who, CallSite where);

}  // namespace vt::detail
