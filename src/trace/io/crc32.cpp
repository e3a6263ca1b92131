// CRC-32: eight bytes a step by tables, in four lanes side by side, since each step waits for the
// one before it.
#include "crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace vt::detail {

namespace crc {

using Table = std::array<std::uint32_t, 256>;

/// [k][b]: what byte b, followed by k zeros, makes of a remainder of 0.
constexpr std::array<Table, 8> steps = [] {
  std::array<Table, 8> made{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t rest = b;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? 0xedb88320u : 0u);
    made[0][b] = rest;
  }
  for (std::size_t k = 1; k < made.size(); ++k)
    for (std::size_t b = 0; b < 256; ++b)
      made[k][b] = (made[k - 1][b] >> 8) ^ made[0][made[k - 1][b] & 255];
  return made;
}();

inline std::uint32_t after_byte(std::uint32_t rest, std::uint8_t byte) {
  return (rest >> 8) ^ steps[0][(rest ^ byte) & 255];
}

inline std::uint32_t after_eight(std::uint32_t rest, const std::uint8_t* at) {
  std::uint64_t w;
  std::memcpy(&w, at, sizeof w);
  if constexpr (std::endian::native == std::endian::big) w = __builtin_bswap64(w);
  w ^= rest;
  return steps[7][w & 255] ^ steps[6][w >> 8 & 255] ^ steps[5][w >> 16 & 255] ^
         steps[4][w >> 24 & 255] ^ steps[3][w >> 32 & 255] ^ steps[2][w >> 40 & 255] ^
         steps[1][w >> 48 & 255] ^ steps[0][w >> 56];
}

constexpr std::size_t lane = 2048;  // bytes

/// What `lane` zeros make of a remainder, by its bytes.
struct ZeroLane {
  std::array<Table, 4> of_byte{};
  ZeroLane() {
    for (int place = 0; place < 4; ++place)
      for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t rest = b << 8 * place;
        for (std::size_t i = 0; i < lane; ++i) rest = after_byte(rest, 0);
        of_byte[place][b] = rest;
      }
  }
  std::uint32_t operator()(std::uint32_t rest) const {
    return of_byte[0][rest & 255] ^ of_byte[1][rest >> 8 & 255] ^ of_byte[2][rest >> 16 & 255] ^
           of_byte[3][rest >> 24];
  }
};

}  // namespace crc

std::uint32_t crc32(const void* bytes, std::size_t count, std::uint32_t so_far) {
  using namespace crc;
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint32_t rest = ~so_far;
  if (count >= 4 * lane) {
    static const ZeroLane past_lane;
    for (; count >= 4 * lane; at += 4 * lane, count -= 4 * lane) {
      std::uint32_t second = 0, third = 0, fourth = 0;
      for (std::size_t i = 0; i < lane; i += 8) {
        rest = after_eight(rest, at + i);
        second = after_eight(second, at + lane + i);
        third = after_eight(third, at + 2 * lane + i);
        fourth = after_eight(fourth, at + 3 * lane + i);
      }
      rest = past_lane(past_lane(past_lane(rest) ^ second) ^ third) ^ fourth;
    }
  }
  for (; count >= 8; at += 8, count -= 8) rest = after_eight(rest, at);
  for (; count > 0; ++at, --count) rest = after_byte(rest, *at);
  return ~rest;
}

}  // namespace vt::detail
