// Writing files in parts.
#include "part_file.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../trace/base/written_file.hpp"

namespace vt::detail {

namespace part_files {

/// Some file systems know no fsync; what they say then is not that writing failed.
inline int force(int file) {
  return ::fsync(file) == 0 || errno == EINVAL || errno == EROFS || errno == ENOSYS ? 0 : errno;
}

}  // namespace part_files

PartFile::~PartFile() {
  if (number_ >= 0) ::close(number_);
}

int PartFile::create(const std::string& path, int mode) {
  number_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (number_ < 0) return errno;
  return mode >= 0 && ::fchmod(number_, static_cast<::mode_t>(mode)) != 0 ? errno : 0;
}

int PartFile::open(const std::string& path) {
  number_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  return number_ < 0 ? errno : 0;
}

int PartFile::write(std::uint64_t offset, std::string_view bytes) {
  if (::lseek(number_, static_cast<::off_t>(offset), SEEK_SET) < 0) return errno;
  return write_all(number_, bytes);
}

int PartFile::resize(std::uint64_t bytes) {
  if (bytes == 0) return ::ftruncate(number_, 0) == 0 ? 0 : errno;
  // By its last byte: of a limit to the size ftruncate tells by a signal.
  return write(bytes - 1, std::string_view("\0", 1));
}

int PartFile::close() {
  const int wrong = part_files::force(number_);
  return ::close(std::exchange(number_, -1)) != 0 && !wrong ? errno : wrong;
}

int replace_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return errno;
  const std::size_t slash = to.rfind('/');
  force_folder(slash == std::string::npos ? "." : to.substr(0, slash + 1));
  return 0;
}

void force_folder(const std::string& folder) {
  const int number = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (number < 0) return;
  static_cast<void>(::fsync(number));
  ::close(number);
}

int mode_to_keep(const std::string& path, int& wrong) {
  struct stat old{};
  wrong = 0;
  if (::stat(path.c_str(), &old) != 0) return -1;
  if (S_ISDIR(old.st_mode)) wrong = EISDIR;
  else if (!S_ISREG(old.st_mode)) wrong = EINVAL;
  else if (::access(path.c_str(), W_OK) != 0) wrong = errno;
  return static_cast<int>(old.st_mode & 07777);
}

std::string new_file_id() {
  static std::atomic<std::uint64_t> serial{0};
  const auto clock = [](auto now) {
    return static_cast<std::uint64_t>(now.time_since_epoch().count());
  };
  std::uint64_t id = clock(std::chrono::system_clock::now());
  for (const std::uint64_t part : {clock(std::chrono::steady_clock::now()),
                                   static_cast<std::uint64_t>(::getpid()), serial.fetch_add(1)}) {
    id = (id ^ part) * 0x9e3779b97f4a7c15ull;
    id ^= id >> 32;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return text;
}

}  // namespace vt::detail
