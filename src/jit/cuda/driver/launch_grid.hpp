// LaunchGrid: how many blocks and threads a kernel is launched with.
#pragma once

#include <cstdint>

namespace vt::detail::cuda {

struct LaunchGrid {
  std::int64_t blocks = 1;
  int threads = 1;
  std::int64_t shared_bytes = 0;
};

}  // namespace vt::detail::cuda
