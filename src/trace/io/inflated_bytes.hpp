// Bytes that zlib inflates while they are read.
#pragma once

#include <array>
#include <cstdint>

#include "input_file.hpp"
#include "zlib_library.hpp"

namespace vt::detail {

/// What the deflated bytes of a source hold; they are said to be `size`.
class InflatedBytes final : public ByteSource {
 public:
  /// Throws: Error(io) where zlib cannot be loaded, and for a size that no such bytes can hold.
  InflatedBytes(FileBytes packed, std::uint64_t size, const FileUse& use);
  ~InflatedBytes() override;
  InflatedBytes(const InflatedBytes&) = delete;
  InflatedBytes& operator=(const InflatedBytes&) = delete;
  std::uint64_t left() const override { return left_; }
  void read(void* to, std::size_t count) override;
  /// To be called when all is read. Throws: Error(io) where more follows.
  void finish();

 private:
  /// Inflates some bytes; false: there are no more.
  bool inflate_some();

  FileBytes packed_;
  const FileUse& use_;
  std::uint64_t size_, left_;
  const Zlib* zlib_ = nullptr;
  ZStream stream_;
  bool ended_ = false;
  std::array<unsigned char, 1 << 16> block_;
};

}  // namespace vt::detail
