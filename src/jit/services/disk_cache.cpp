// Reads, writes, checks and evicts cache entries;
// POSIX calls relative to one checked folder descriptor.
#include "disk_cache.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/warnings.hpp"
#include "../../trace/base/written_file.hpp"

namespace vt::detail {

namespace disk_entries {

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  CacheKey key;
  std::uint64_t size, checksum;
};
static_assert(sizeof(Header) == 48);
constexpr std::string_view magic = "vtkernel";
constexpr std::uint32_t form_of_entries = 17;
constexpr std::string_view suffix = ".vtk", temporary_prefix = ".new.";
// entries that an estimate of the folder's size looks at, or few more
constexpr std::size_t most_asked = 1024;
constexpr std::uint64_t block = 4096;  // what file systems give out, most of them

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

/// An entry as it lies in a file.
std::string record(CacheKey key, std::span<const char> bytes) {
  Header h{};
  std::memcpy(h.magic, magic.data(), sizeof h.magic);
  h.version = form_of_entries;
  h.key = key;
  h.size = bytes.size();
  h.checksum = hashed(bytes.data(), bytes.size(), key.low);
  return std::string(reinterpret_cast<const char*>(&h), sizeof h)
      .append(bytes.data(), bytes.size());
}

/// The newest sound record of a key; empty if there is none. What lies around it does not matter: a
/// process may have been killed while it appended to the file.
std::string_view find_record(std::string_view file, CacheKey key) {
  const std::string_view wanted(reinterpret_cast<const char*>(&key), sizeof key);
  std::string_view newest;
  for (auto at = file.find(wanted); at != file.npos; at = file.find(wanted, at + 1)) {
    if (at < offsetof(Header, key)) continue;
    const std::string_view from = file.substr(at - offsetof(Header, key));
    Header h{};
    if (from.size() < sizeof h) break;
    std::memcpy(&h, from.data(), sizeof h);
    if (from.starts_with(magic) && h.version == form_of_entries &&
        h.size <= from.size() - sizeof h &&
        h.checksum == hashed(from.data() + sizeof h, h.size, key.low))
      newest = from.substr(0, sizeof h + h.size);
  }
  return newest;
}

std::string own_file(CacheKey key) { return key.text().append(suffix); }

std::string pack_file(CacheKey key) {
  return std::to_string(key.low % DiskCache::packs).append(suffix);
}

/// Not a link, a folder, or something that another user put there.
bool trusted(const struct stat& s) { return S_ISREG(s.st_mode) && s.st_uid == ::geteuid(); }

std::uint64_t in_blocks(std::uint64_t length) { return (length + block - 1) / block * block; }

/// What the disk loses to a file. Its blocks may not be given out yet, and some file systems count
/// none for a short file.
std::uint64_t cost(const struct stat& s) {
  const auto given = static_cast<std::uint64_t>(s.st_blocks) * 512;
  return std::max(given, in_blocks(static_cast<std::uint64_t>(s.st_size)));
}

bool read_all(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Makes the folder and those above it; others' modes follow the umask, the last is for the user
/// alone.
void make_folders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    ::mkdir(path.substr(0, at).c_str(), 0755);
  ::mkdir(path.c_str(), 0700);
}

std::string default_folder() {
  if (const char* chosen = std::getenv("VT_CACHE_DIR")) return chosen;
  // The specification of XDG_CACHE_HOME says that relative paths are to be ignored.
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && xdg[0] == '/')
    return std::string(xdg) + "/vt";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/')
    return std::string(home) + "/.cache/vt";
  return {};
}

}  // namespace disk_entries

std::string CacheKey::text() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (const std::uint64_t half : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) s += digits[(half >> shift) & 15];
  return s;
}

CacheKey cache_key(std::string_view text) {
  return {disk_entries::hashed(text.data(), text.size(), 0x243f6a8885a308d3u),
          disk_entries::hashed(text.data(), text.size(), 0x13198a2e03707344u)};
}

const std::string& program_identity() {
  // never destroyed, as all such texts: threads may still compile while the process ends
  static const std::string& identity = *new std::string([] {
    Dl_info info{};
    struct stat s{};
    const bool known = ::dladdr(reinterpret_cast<void*>(&cache_key), &info) != 0 &&
                       info.dli_fname && ::stat(info.dli_fname, &s) == 0;
    if (!known && ::stat("/proc/self/exe", &s) != 0) return std::string();
    // The time of the last change of any kind: that of the last writing may be set, and is one and
    // the same for all files where builds are to be reproducible.
    return std::to_string(s.st_size) + "." + std::to_string(s.st_ctim.tv_sec) + "." +
           std::to_string(s.st_ctim.tv_nsec);
  }());
  return identity;
}

DiskCache::DiskCache(const std::string& folder, std::uint64_t limit_bytes)
    : name_(folder),
      limit_{limit_bytes, limit_bytes / bytes_a_file},
      pack_limit_(std::max(limit_bytes / 4 / packs, 4 * disk_entries::block)) {
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
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return name_ + " may be written by others (chmod 700 would make it usable)";
  return {};
}

DiskCache::~DiskCache() {
  if (folder_ >= 0) ::close(folder_);
}

DiskCache& DiskCache::process() {
  static DiskCache& cache = []() -> DiskCache& {
    // never closed: kernels may still be made at exit
    auto* const made = new DiskCache(disk_entries::default_folder());
    const char* const chosen = std::getenv("VT_CACHE_DIR");
    if (chosen && *chosen && !made->usable())
      warn_once("VT_CACHE_DIR is ignored, " + made->unusable_reason());
    return *made;
  }();
  return cache;
}

std::optional<Vec<char>> DiskCache::load(CacheKey key) {
  using namespace disk_entries;
  if (!usable()) return std::nullopt;
  const std::string own = own_file(key);
  std::string file = contents(own, sizeof(Header));
  std::string_view found = find_record(file, key);
  if (file.empty()) {
    file = contents(pack_file(key));
    found = find_record(file, key);
  } else if (found.empty() || found.size() != file.size()) {
    delete_file(own);
    return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  found.remove_prefix(sizeof(Header));
  return Vec<char>(found.begin(), found.end());
}

void DiskCache::store(CacheKey key, std::span<const char> bytes) {
  using namespace disk_entries;
  // One entry must not push out all others.
  if (!usable() || in_blocks(bytes.size() + sizeof(Header)) > limit_.bytes / 4) return;
  const std::string made = record(key, bytes);
  const bool small = made.size() <= most_packed;
  if (small && find_record(contents(pack_file(key)), key) == made) return;  // by another process
  Use added;
  if (!(small ? append(pack_file(key), made, added) : replace(own_file(key), made, added))) return;
  // What was kept of this key with another size.
  if (small) delete_file(own_file(key));
  else shorten(pack_file(key), &key);
  const std::lock_guard hold(lock_);
  if (scanned_) used_ += added, own_ += added;
  else used_ = scan(false), scanned_ = true;
  // Counted anew from time to time: the first estimate may have been too low, and others write too.
  if (used_.beyond(limit_) || own_.beyond(limit_.eighth())) used_ = scan(true), own_ = {};
}

void DiskCache::remove(CacheKey key) {
  if (!usable()) return;
  delete_file(disk_entries::own_file(key));
  shorten(disk_entries::pack_file(key), &key);
}

std::string DiskCache::contents(const std::string& name, std::uint64_t least) {
  using namespace disk_entries;
  const File file(::openat(folder_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno == ELOOP) delete_file(name);  // a link is none of ours
    return {};
  }
  struct stat s{};
  if (::fstat(file.fd, &s) != 0) return {};
  const auto size = static_cast<std::uint64_t>(s.st_size);
  if (!trusted(s) || size < least || size > limit_.bytes / 4) {
    delete_file(name);
    return {};
  }
  std::string bytes(size, 0);
  if (!read_all(file.fd, bytes.data(), bytes.size())) return {};
  // The time of last use, for eviction; not more often than needed to order files by age.
  if (std::time(nullptr) - s.st_mtim.tv_sec > 600) ::futimens(file.fd, nullptr);
  return bytes;
}

bool DiskCache::replace(const std::string& name, const std::string& bytes, Use& added) {
  using namespace disk_entries;
  static std::atomic<std::uint64_t> serial{0};
  const std::string temporary = std::string(temporary_prefix) + std::to_string(::getpid()) + "." +
                                std::to_string(serial.fetch_add(1));
  added = {in_blocks(bytes.size()), 1};
  {
    const File file(::openat(folder_, temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
      if (errno == EEXIST) delete_file(temporary);  // left by a killed process of our number
      return false;
    }
    if (write_all(file.fd, bytes) != 0) {
      delete_file(temporary);
      return false;
    }
    if (struct stat s{}; ::fstat(file.fd, &s) == 0) added.bytes = cost(s);
  }
  if (::renameat(folder_, temporary.c_str(), folder_, name.c_str()) == 0) return true;
  delete_file(temporary);
  return false;
}

bool DiskCache::append(const std::string& name, const std::string& bytes, Use& added) {
  using namespace disk_entries;
  const File file(::openat(folder_, name.c_str(),
                           O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           0600));
  struct stat s{};
  if (!file || ::fstat(file.fd, &s) != 0 || !trusted(s)) return false;
  // In one piece: others append at the same time.
  if (write_all(file.fd, bytes) != 0) {
    if (s.st_size == 0) delete_file(name);
    return false;
  }
  const auto before = static_cast<std::uint64_t>(s.st_size), after = before + bytes.size();
  if (after > pack_limit_) shorten(name);
  added = {in_blocks(after) - in_blocks(before), before == 0};
  return true;
}

void DiskCache::shorten(const std::string& pack, const CacheKey* without) {
  using namespace disk_entries;
  std::string all = contents(pack);
  const std::size_t before = all.size();
  if (before > pack_limit_) all.erase(0, all.find(magic, before - pack_limit_ / 2));
  if (without)
    for (auto r = find_record(all, *without); !r.empty(); r = find_record(all, *without))
      all.erase(static_cast<std::size_t>(r.data() - all.data()), r.size());
  if (all.size() == before) return;
  Use added;
  if (all.empty()) delete_file(pack);
  else replace(pack, all, added);
}

DiskCache::Turn DiskCache::turn(CacheKey key, const char* kind, FunctionRef<void()> between) {
  Turn turn;
  if (!usable()) return turn;
  constexpr std::uint64_t files = 64;
  const std::string name = std::string("turn.") + kind + "." + std::to_string(key.low % files);
  turn.file_ = ::openat(folder_, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  constexpr int most_waits = 10'000;
  const timespec wait = {0, 1'000'000};
  for (int k = 0; turn.file_ >= 0 && k < most_waits; ++k) {
    if (::flock(turn.file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    ::nanosleep(&wait, nullptr);
    between();
  }
  return turn;
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
        delete_file(one->d_name);
        continue;
      }
    } else if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
      continue;  // not ours: leave it
    }
    entries.push_back({std::string(name), 0, {}});
  }
  ::closedir(list);
  // Asking for the sizes of tens of thousands of files takes up to seconds, which every process
  // that stores something would pay: where only the sum is wanted, some stand for all. Another
  // process asks for others, and so does not repeat an estimate that is too low.
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
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Entry& e : entries) {
    if (!total.beyond(aim)) break;
    if (e.name.empty()) continue;
    delete_file(e.name);
    total -= {e.bytes, 1};
  }
  return total;
}

}  // namespace vt::detail
