// Writes to files, and writes a file beside the one that it then replaces.
#include "written_file.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vt::detail {

namespace written {

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  /// The errno of a write that was put off until now.
  int close() { return ::close(std::exchange(number, -1)) == 0 ? 0 : errno; }
};

/// While one exists, what this thread writes raises no SIGXFSZ, which ends processes: a write
/// beyond the limit fails in any case.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigemptyset(&only_);
    sigaddset(&only_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
    was_pending_ = is_pending();
  }
  ~NoSizeSignal() {
    int taken = 0;
    if (!was_pending_ && is_pending()) sigwait(&only_, &taken);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
  }
  sigset_t only_, before_;
  bool was_pending_ = false;
};

int write_parts(int file, std::span<const std::string_view> parts) {
  for (std::string_view part : parts)
    if (const int wrong = write_all(file, part)) return wrong;
  return 0;
}

// Another writer, on this machine or on one that shares the folder, may have chosen the same name:
// then the next one.
std::string name_beside(const std::string& path) {
  static std::atomic<std::uint64_t> serial{0};
  const auto time =
      static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count());
  char name[80];
  std::snprintf(name, sizeof name, ".vt-%d-%llu-%llx", static_cast<int>(::getpid()),
                static_cast<unsigned long long>(serial.fetch_add(1)), time);
  return path.substr(0, path.rfind('/') + 1) + name;  // without a slash: in the current folder
}

int write_in_place(const std::string& path, std::span<const std::string_view> parts) {
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.number < 0) return errno;
  const int wrong = write_parts(file.number, parts);
  return wrong ? wrong : file.close();
}

int write_new(Descriptor& file, std::span<const std::string_view> parts, const struct stat* old,
              Lasting lasting) {
  if (old && ::fchmod(file.number, old->st_mode & 07777) != 0) return errno;
  if (const int wrong = write_parts(file.number, parts)) return wrong;
  // Some file systems know no fsync; what they say then is not that writing failed.
  if (lasting == Lasting::yes && ::fsync(file.number) != 0 && errno != EINVAL && errno != EROFS &&
      errno != ENOSYS)
    return errno;
  return file.close();
}

}  // namespace written

int write_all(int file, std::string_view bytes) {
  const written::NoSizeSignal quiet;
  while (!bytes.empty()) {
    const ::ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

int write_file(const std::string& path, std::span<const std::string_view> parts, Lasting lasting) {
  using namespace written;
  struct stat old{};
  const bool there = ::stat(path.c_str(), &old) == 0;
  if (there && S_ISDIR(old.st_mode)) return EISDIR;
  if (there && !S_ISREG(old.st_mode)) return write_in_place(path, parts);
  if (there && ::access(path.c_str(), W_OK) != 0) return errno;  // a file that is protected stays
  std::string name;
  Descriptor file;
  for (int tries = 0; file.number < 0; ++tries) {
    name = name_beside(path);
    file.number = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         there ? 0600 : 0666);
    if (file.number < 0 && (errno != EEXIST || tries == 100)) return errno;
  }
  int wrong = write_new(file, parts, there ? &old : nullptr, lasting);
  if (!wrong && ::rename(name.c_str(), path.c_str()) != 0) wrong = errno;
  if (wrong) ::unlink(name.c_str());
  return wrong;
}

}  // namespace vt::detail
