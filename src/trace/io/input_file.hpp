// Files that are read in pieces: the file, its bytes one after the other, the messages about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vt/error.hpp>

namespace vt::detail {

/// What every message about a file names.
struct FileUse {
  const char* function;  ///< that the user has called, as "vt::load_npy"
  std::string path;
  CallSite where;
  std::string part = {};  ///< of the file that it is about, as `member "a.npy"`, if it is about one

  /// Throws: Error(io)
  [[noreturn]] void refuse(const std::string& why) const;
  FileUse of(std::string_view kind, std::string_view name) const;
};

/// A name as a message may hold it: in quotes, without control characters, not too long.
std::string in_quotes(std::string_view name);

/// A regular file, open to be read.
class InputFile {
 public:
  /// Throws: Error(io), as all that reads.
  explicit InputFile(const FileUse&);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::uint64_t size() const { return size_; }
  /// Reads `count` bytes from `offset` on, which lie within the size.
  void read(std::uint64_t offset, void* to, std::size_t count, const FileUse&) const;

 private:
  int number_ = -1;
  std::uint64_t size_ = 0;
};

/// Bytes that are read one after the other.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// As many as are said to follow: no more than the file can hold (compressed at most 1 : 1032),
  /// so that memory may be asked for them.
  virtual std::uint64_t left() const = 0;
  /// Reads `count` bytes, no more than left(). Throws: Error(io) where they cannot be had.
  virtual void read(void* to, std::size_t count) = 0;
};

/// Some bytes of a file that outlives it.
class FileBytes final : public ByteSource {
 public:
  FileBytes(const InputFile& file, std::uint64_t offset, std::uint64_t count, const FileUse& use)
      : file_(file), use_(use), offset_(offset), left_(count) {}
  std::uint64_t left() const override { return left_; }
  void read(void* to, std::size_t count) override;

 private:
  const InputFile& file_;
  const FileUse& use_;
  std::uint64_t offset_, left_;
};

}  // namespace vt::detail
