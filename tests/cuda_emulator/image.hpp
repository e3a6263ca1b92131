// The "cubin" of the emulator: a header and the bytes of a shared library.
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

struct ImageHeader {
  char magic[8] = {'v', 't', 'c', 'u', 'b', 'i', 'n', 0};
  std::uint32_t architecture = 0;  // 90 for sm_90
  std::uint32_t portable = 0;      // PTX: newer devices take it as well
  // what the code was compiled with: of another one it does not load
  std::uint64_t emulation = 0;
  std::uint64_t bytes = 0;  // that follow
};
/// A number for the text in front of every kernel.
std::uint64_t emulation_number();

/// A name in the folder for temporary files that nobody else uses.
std::string unique_path(const char* suffix);
bool write_file(const std::string& path, const std::string& bytes);
bool read_file(const std::string& path, std::string* bytes);

}  // namespace emulator
