// Files that are read in pieces.
#include "input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vt::detail {

void FileUse::refuse(const std::string& why) const {
  fail(ErrorKind::io,
       std::string(function) + ": " + path + ": " + (part.empty() ? part : part + ": ") + why,
       where);
}

FileUse FileUse::of(std::string_view kind, std::string_view name) const {
  return {function, path, where, std::string(kind) + " " + in_quotes(name)};
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t most = 100;
  std::string shown(name.substr(0, most));
  if (name.size() > most) {
    // not within a character of UTF-8
    while (!shown.empty() && (static_cast<unsigned char>(name[shown.size()]) & 0xc0) == 0x80)
      shown.pop_back();
    shown += "…";
  }
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return '"' + shown + '"';
}

InputFile::InputFile(const FileUse& use) : number_(::open(use.path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (number_ < 0) use.refuse(std::strerror(errno));
  struct stat status{};
  const int wrong = ::fstat(number_, &status) == 0 ? 0 : errno;
  if (!wrong && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(number_);
  use.refuse(wrong                     ? std::strerror(wrong)
             : S_ISDIR(status.st_mode) ? "is a directory"
                                       : "is no regular file");
}

InputFile::~InputFile() { ::close(number_); }

void InputFile::read(std::uint64_t offset, void* to, std::size_t count, const FileUse& use) const {
  auto* at = static_cast<char*>(to);
  while (count > 0) {
    // Of more Linux reads 2 GiB, and macOS none.
    const ::ssize_t n =
        ::pread(number_, at, std::min(count, std::size_t{1} << 30), static_cast<::off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) use.refuse(std::strerror(errno));
    if (n == 0) use.refuse("the file became shorter while it was read");
    at += n;
    offset += static_cast<std::uint64_t>(n);
    count -= static_cast<std::size_t>(n);
  }
}

void FileBytes::read(void* to, std::size_t count) {
  file_.read(offset_, to, count, use_);
  offset_ += count;
  left_ -= count;
}

}  // namespace vt::detail
