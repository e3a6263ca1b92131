// MachineLimits: the highest rates of a device: bytes and operations per second.
#pragma once

#include <cstdint>

namespace vt::detail {

/// The most that the device does a second, with all threads.
struct MachineLimits {
  static constexpr std::uint64_t sizes[] = {std::uint64_t{64} << 10, std::uint64_t{1} << 20,
                                            std::uint64_t{8} << 20, std::uint64_t{64} << 20,
                                            std::uint64_t{256} << 20};
  double operations = 0;  ///< in f32, a multiply-add as two; 0: not known
  double bandwidth[5]{};  ///< bytes read where so many are read again and again
};
/// Of the backend that runs programs.
/// `again`: measured anew, and the better of both kept.
MachineLimits machine_limits(bool again);

}  // namespace vt::detail
