// The random bits of all of vt: Threefry, a function of a key and a counter.
#pragma once

#include <bit>
#include <cstdint>

namespace vt::detail::random_bits {

/// Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy
/// as 1, 2, 3"): key and counter hold two words each, the first in the upper half; so does the
/// result.
inline constexpr std::uint32_t parity = 0x1bd11bda;
inline constexpr int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr std::uint64_t threefry(std::uint64_t key, std::uint64_t counter) {
  const auto k0 = static_cast<std::uint32_t>(key >> 32), k1 = static_cast<std::uint32_t>(key);
  const std::uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ parity};
  std::uint32_t x = static_cast<std::uint32_t>(counter >> 32) + k0,
                y = static_cast<std::uint32_t>(counter) + k1;
  for (std::uint32_t block = 0; block < 5; ++block) {
    for (const int turn : turns[block % 2]) {
      x += y;
      y = std::rotl(y, turn) ^ x;
    }
    x += keys[(block + 1) % 3];
    y += keys[(block + 2) % 3] + block + 1;
  }
  return std::uint64_t{x} << 32 | y;
}
// The vectors that come with the paper's code.
static_assert(threefry(0, 0) == 0x6b20015999ba4efe);
static_assert(threefry(~std::uint64_t{0}, ~std::uint64_t{0}) == 0x1cb996fcbb002be7);
static_assert(threefry(0x13198a2e03707344, 0x243f6a8885a308d3) == 0xc4923a9c483df7a0);

}  // namespace vt::detail::random_bits
