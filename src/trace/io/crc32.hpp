// CRC-32 as zip archives have it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vt::detail {

/// The checksum of bytes that follow those of which `so_far` is the checksum; 0 of none.
std::uint32_t crc32(const void* bytes, std::size_t count, std::uint32_t so_far = 0);

}  // namespace vt::detail
