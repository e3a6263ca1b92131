// Zip archives: the directory and the members of one, checked, as they are read; and the bytes
// around the members of a new one. Format: APPNOTE.TXT,
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <vt/detail/small_vec.hpp>

#include "input_file.hpp"

namespace vt::detail {
class InflatedBytes;
}

namespace vt::detail::zip {

/// A member as the directory has it.
struct Member {
  std::string name;
  std::uint64_t offset = 0;  ///< of its own header
  std::uint64_t stored = 0;  ///< bytes in the file
  std::uint64_t size = 0;    ///< bytes when they are read
  std::uint64_t limit = 0;   ///< where in the file the next one or the directory begins
  std::uint32_t crc = 0;
  std::uint16_t method = 0, flags = 0;
};

/// All members, in the directory's order. Their names are UTF-8, not empty, and differ. No two of
/// them share bytes of the file.
/// Throws: Error(io) for what is no archive of one file or damaged.
Vec<Member> read_directory(const InputFile&, const FileUse&);

/// Is it text in UTF-8, as names of members are?
bool is_utf8(std::string_view);

/// The contents of a member.
class MemberBytes final : public ByteSource {
 public:
  /// Compares the member's own header with the directory. `file` and `use` outlive this.
  /// Throws: Error(io), also for encrypted members and for compression other than by deflate.
  MemberBytes(const InputFile& file, const Member&, const FileUse& use);
  std::uint64_t left() const override { return bytes_->left(); }
  void read(void* to, std::size_t count) override;
  /// To be called when all is read. Throws: Error(io) where more follows, or the CRC-32 is wrong.
  void finish();

 private:
  const FileUse& use_;
  std::uint32_t wanted_, crc_ = 0;
  InflatedBytes* inflated_ = nullptr;
  std::unique_ptr<ByteSource> bytes_;
};

/// The bytes of a new archive but for the members' contents, which are stored as they are. Equal
/// members give equal bytes.
class NewArchive {
 public:
  /// What stands in front of the next member's contents, which then begin at a multiple of 64.
  std::string front_of(std::string_view name, std::uint64_t size, std::uint32_t crc);
  /// What stands behind the last one's.
  std::string directory() const;

 private:
  std::uint64_t at_ = 0, members_ = 0;
  std::string entries_;
};

}  // namespace vt::detail::zip
