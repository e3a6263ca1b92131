// Programs of one device that another one asks for: of a CUDA device for execution, of the host for what that device has no code for.
#pragma once

#include <memory>

#include "../trace/executable.hpp"

namespace vt::detail {

/// A program for the device; `donated` as in compile_graph. Throws: Error(backend), Error(memory).
std::shared_ptr<Executable> cuda_executable(const GraphBody&, int device, std::span<const char> donated = {});
/// The same Graph on the host: for what the device has no code for.
std::shared_ptr<Executable> host_executable(const GraphBody&);

}  // namespace vt::detail
