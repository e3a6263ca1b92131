// Reads, writes, checks and evicts cache entries; POSIX calls relative to one checked folder descriptor.
#include "disk_cache.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <vt/small_vec.hpp>

#include "../trace/warnings.hpp"

namespace vt::detail {

namespace disk_entries {

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t key_high, key_low;
  std::uint64_t size, checksum;
};
static_assert(sizeof(Header) == 48);
constexpr char magic[8] = {'v', 't', 'k', 'e', 'r', 'n', 'e', 'l'};
constexpr std::string_view suffix = ".vtk", temporary_prefix = ".new.";
constexpr std::size_t most_asked = 1024;  // entries that an estimate of the folder's size looks at, or few more
constexpr std::uint64_t block = 4096;     // what file systems give out, most of them

/// Owns a file descriptor.
struct File {
  int fd;
  explicit File(int f) : fd(f) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd >= 0; }
};

std::uint64_t mixed(std::uint64_t x) {  // every input bit reaches every output bit
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

std::uint64_t hashed(const char* data, std::size_t size, std::uint64_t seed) {
  std::uint64_t h = mixed(seed ^ (size * 0x9e3779b97f4a7c15u));
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    h = mixed(h ^ word) + 0x9e3779b97f4a7c15u;
  }
  std::uint64_t last = 0;
  if (size > 0) std::memcpy(&last, data, size);
  return mixed(h ^ last ^ (std::uint64_t{size} << 56));
}

std::string file_name(CacheKey key) {
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (const std::uint64_t half : {key.high, key.low})
    for (int shift = 60; shift >= 0; shift -= 4) s += digits[(half >> shift) & 15];
  return s.append(suffix);
}

std::uint64_t in_blocks(std::uint64_t length) { return (length + block - 1) / block * block; }

/// What the disk loses to a file. Its blocks may not be given out yet, and some file systems count
/// none for a short file.
std::uint64_t cost(const struct stat& s) {
  const auto given = static_cast<std::uint64_t>(s.st_blocks) * 512;
  return std::max(given, in_blocks(static_cast<std::uint64_t>(s.st_size)));
}

/// 1: all read; 0: the file ended before; -1: the system refused.
int read_all(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? 0 : -1;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return 1;
}

bool write_all(int fd, const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, from, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Makes the folder and those above it; others' modes follow the umask, the last is for the user alone.
void make_folders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) ::mkdir(path.substr(0, at).c_str(), 0755);
  ::mkdir(path.c_str(), 0700);
}

std::string default_folder() {
  if (const char* chosen = std::getenv("VT_CACHE_DIR")) return chosen;
  // The specification of XDG_CACHE_HOME says that relative paths are to be ignored.
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && xdg[0] == '/') return std::string(xdg) + "/vt";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/') return std::string(home) + "/.cache/vt";
  return {};
}

}  // namespace disk_entries

CacheKey cache_key(std::string_view text) {
  return {disk_entries::hashed(text.data(), text.size(), 0x243f6a8885a308d3u), disk_entries::hashed(text.data(), text.size(), 0x13198a2e03707344u)};
}

const std::string& program_identity() {
  static const std::string identity = [] {
    Dl_info info{};
    struct stat s{};
    const bool known = ::dladdr(reinterpret_cast<void*>(&cache_key), &info) != 0 && info.dli_fname && ::stat(info.dli_fname, &s) == 0;
    if (!known && ::stat("/proc/self/exe", &s) != 0) return std::string();
    return std::to_string(s.st_size) + "." + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
  }();
  return identity;
}

DiskCache::DiskCache(const std::string& folder, std::uint64_t limit_bytes)
    : name_(folder), limit_{limit_bytes, limit_bytes / bytes_a_file} {
  while (name_.size() > 1 && name_.back() == '/') name_.pop_back();
  const std::string why = open_folder();
  if (why.empty()) return;
  reason_ = "no kernel cache on disk: " + why;
  if (folder_ >= 0) ::close(folder_);
  folder_ = -1;
}

std::string DiskCache::open_folder() {
  if (name_.empty()) return "no folder given (VT_CACHE_DIR, XDG_CACHE_HOME or HOME)";
  disk_entries::make_folders(name_);
  folder_ = ::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat s{};
  if (folder_ < 0 || ::fstat(folder_, &s) != 0) return name_ + ": " + std::strerror(errno);
  if (s.st_uid != ::geteuid()) return name_ + " belongs to another user";
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) return name_ + " may be written by others (chmod 700 would make it usable)";
  return {};
}

DiskCache::~DiskCache() {
  if (folder_ >= 0) ::close(folder_);
}

DiskCache& DiskCache::process() {
  static DiskCache& cache = []() -> DiskCache& {
    auto* const made = new DiskCache(disk_entries::default_folder());  // never closed: kernels may still be made at exit
    const char* const chosen = std::getenv("VT_CACHE_DIR");
    if (chosen && *chosen && !made->usable()) warn_once("VT_CACHE_DIR is ignored, " + made->unusable_reason());
    return *made;
  }();
  return cache;
}

std::optional<Vec<char>> DiskCache::load(CacheKey key) {
  using namespace disk_entries;
  if (!usable()) return std::nullopt;
  const std::string name = file_name(key);
  const File file(::openat(folder_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno == ELOOP) ::unlinkat(folder_, name.c_str(), 0);  // a link is none of ours
    return std::nullopt;
  }
  struct stat s{};
  if (::fstat(file.fd, &s) != 0) return std::nullopt;
  const auto bad = [&]() -> std::optional<Vec<char>> {
    ::unlinkat(folder_, name.c_str(), 0);
    return std::nullopt;
  };
  if (!S_ISREG(s.st_mode) || s.st_uid != ::geteuid()) return bad();
  Header h{};
  if (s.st_size < static_cast<off_t>(sizeof(h))) return bad();
  int got = read_all(file.fd, reinterpret_cast<char*>(&h), sizeof(h));
  if (got < 0) return std::nullopt;
  const std::uint64_t payload = static_cast<std::uint64_t>(s.st_size) - sizeof(h);
  if (got == 0 || std::memcmp(h.magic, magic, sizeof(magic)) != 0 || h.version != emitter_version || h.key_high != key.high || h.key_low != key.low ||
      h.size != payload)
    return bad();
  Vec<char> bytes(payload);
  got = read_all(file.fd, bytes.data(), bytes.size());
  if (got < 0) return std::nullopt;
  if (got == 0 || hashed(bytes.data(), bytes.size(), key.low) != h.checksum) return bad();
  // The time of last use, for eviction; not more often than needed to order entries by age.
  if (std::time(nullptr) - s.st_mtim.tv_sec > 600) ::futimens(file.fd, nullptr);
  return bytes;
}

void DiskCache::store(CacheKey key, std::span<const char> bytes) {
  using namespace disk_entries;
  Use added{in_blocks(bytes.size() + sizeof(Header)), 1};
  if (!usable() || added.bytes > limit_.bytes / 4) return;  // one entry must not push out all others
  Header h{};
  std::memcpy(h.magic, magic, sizeof(magic));
  h.version = emitter_version;
  h.key_high = key.high, h.key_low = key.low;
  h.size = bytes.size();
  h.checksum = hashed(bytes.data(), bytes.size(), key.low);
  static std::atomic<std::uint64_t> serial{0};
  const std::string temporary = std::string(temporary_prefix) + std::to_string(::getpid()) + "." + std::to_string(serial.fetch_add(1));
  {
    const File file(::openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
      if (errno == EEXIST) ::unlinkat(folder_, temporary.c_str(), 0);  // left by a process of our number that was killed
      return;
    }
    if (!write_all(file.fd, reinterpret_cast<const char*>(&h), sizeof(h)) || !write_all(file.fd, bytes.data(), bytes.size())) {
      ::unlinkat(folder_, temporary.c_str(), 0);
      return;
    }
    if (struct stat s{}; ::fstat(file.fd, &s) == 0) added.bytes = cost(s);
  }
  if (::renameat(folder_, temporary.c_str(), folder_, file_name(key).c_str()) != 0) {
    ::unlinkat(folder_, temporary.c_str(), 0);
    return;
  }
  const std::lock_guard hold(lock_);
  if (scanned_) used_ += added, own_ += added;
  else used_ = scan(false), scanned_ = true;
  // Counted anew from time to time: the first estimate may have been too low, and others write too.
  if (used_.beyond(limit_) || own_.beyond(limit_.eighth())) used_ = scan(true), own_ = {};
}

void DiskCache::remove(CacheKey key) {
  if (usable()) ::unlinkat(folder_, disk_entries::file_name(key).c_str(), 0);
}

DiskCache::Use DiskCache::scan(bool evict) {
  using namespace disk_entries;
  struct Entry {
    std::string name;
    std::uint64_t bytes;
    timespec used;
  };
  Vec<Entry> entries;
  Use total;
  const int copy = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (!list) {
    if (copy >= 0) ::close(copy);
    return total;
  }
  while (const dirent* one = ::readdir(list)) {
    const std::string_view name = one->d_name;
    struct stat s{};
    if (name.substr(0, temporary_prefix.size()) == temporary_prefix) {
      // Its writer was killed, or is at work: then it is an entry, and as the newest goes last.
      if (::fstatat(folder_, one->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(s.st_mode) && std::time(nullptr) - s.st_mtim.tv_sec > 3600) {
        ::unlinkat(folder_, one->d_name, 0);
        continue;
      }
    } else if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
      continue;  // not ours: leave it
    }
    entries.push_back({std::string(name), 0, {}});
  }
  ::closedir(list);
  // Asking for the sizes of tens of thousands of files takes up to seconds, which every process that stores something would pay: where only
  // the sum is wanted, some stand for all. Another process asks for others, and so does not repeat an
  // estimate that is too low.
  const std::size_t step = evict ? 1 : 1 + entries.size() / most_asked;
  for (std::size_t i = static_cast<std::size_t>(::getpid()) % step; i < entries.size(); i += step) {
    Entry& e = entries[i];
    struct stat s{};
    if (::fstatat(folder_, e.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) {
      e.name.clear();  // not ours, or gone
      continue;
    }
    e.bytes = cost(s);
    e.used = s.st_mtim;
    total += {e.bytes * step, step};
  }
  if (!evict || !total.beyond(limit_)) return total;
  // Some room at once, or every later store would scan again.
  Use aim = limit_;
  aim -= limit_.eighth();
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Entry& e : entries) {
    if (!total.beyond(aim)) break;
    if (e.name.empty()) continue;
    ::unlinkat(folder_, e.name.c_str(), 0);
    total -= {e.bytes, 1};
  }
  return total;
}

}  // namespace vt::detail
