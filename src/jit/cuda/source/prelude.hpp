// The text that every CUDA kernel begins with: element types, their conversions, arithmetic as the
// interpreter defines it, and functions that a thread group calls together. Self-contained,
// so that NVRTC needs no headers.
#pragma once

#include <string_view>

namespace vt::detail::cuda {

/// Where VT_EMULATED is defined, the text is compiled as C++ for the host (tests/cuda_emulator).
extern const std::string_view prelude;

}  // namespace vt::detail::cuda
