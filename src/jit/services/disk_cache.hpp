// Owns the cache of compiled kernels on disk: one folder of checked entries by key, shared by all
// processes of a user.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/locks.hpp"

namespace vt::detail {

/// 128 bits that stand for everything a kernel depends on.
struct CacheKey {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  std::string text() const;  ///< 32 hexadecimal digits
};

/// Key of a text. Not for adversaries: the folder is the user's own.
CacheKey cache_key(std::string_view text);

/// Differs between two files that hold vt, each time a program is linked with the library in it.
/// For keys of what vt's own code says: that is not asked of another build of it. What is made of a
/// text or module that is all there needs no more than that in its key.
const std::string& program_identity();

/// One cache folder. Nothing here throws for a trouble with files: what cannot be read is absent,
/// what cannot be written is not kept. Safe for any number of threads and processes: what is read
/// is checked.
///
/// A large entry is a file of its own, which appears whole, by rename. A file takes whole blocks,
/// so small entries share files, the packs; the key says which. Every process appends to them and
/// reads one whole to find an entry. A pack that has grown too long loses its older half.
class DiskCache {
 public:
  static constexpr std::uint64_t default_limit = std::uint64_t{512} << 20;
  /// For so many bytes of the limit there may be one file.
  static constexpr std::uint64_t bytes_a_file = 8192;
  /// Entries up to this size, header included, go to packs. Larger ones fill half their blocks.
  static constexpr std::uint64_t most_packed = 2048;
  /// More of them take more blocks while there are few entries, fewer are longer to read.
  static constexpr std::uint64_t packs = 512;

  /// Uses (and makes, with mode 0700) `folder`; only if it belongs to the user and nobody else may
  /// write in it. The limit is on what the disk loses to the entries, in whole blocks; from it
  /// follows the limit on their number.
  explicit DiskCache(const std::string& folder, std::uint64_t limit_bytes = default_limit);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// The process's cache: VT_CACHE_DIR, else $XDG_CACHE_HOME/vt, else ~/.cache/vt. VT_CACHE_DIR set
  /// but empty: no cache.
  static DiskCache& process();

  /// The entry's bytes. A damaged entry (magic, version, key, size, checksum) counts as absent; a
  /// file of its own is deleted.
  std::optional<Vec<char>> load(CacheKey key);
  /// Keeps `bytes`, unless they take more than a quarter of the limit; then, beyond the limits,
  /// deletes the files used longest ago until an eighth is free.
  void store(CacheKey key, std::span<const char> bytes);
  /// Deletes an entry that passed the checks but turned out unusable.
  void remove(CacheKey key);

  /// While one exists no other process makes the entry: those that ask for a turn wait, 10 s at
  /// most, and then find it made. The system ends the turn of a process that dies. For processes
  /// that start together and need the same code.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    ~Turn() {
      if (file_ >= 0) ::close(file_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(file_, other.file_);
      return *this;
    }
    bool is_taken() const { return file_ >= 0; }

   private:
    friend class DiskCache;
    int file_ = -1;
  };
  /// `between`: called while it waits. Turns of one `kind` wait for each other only: a thread that
  /// rests while it has one must not hold up those that do not.
  Turn turn(CacheKey key, const char* kind, FunctionRef<void()> between);

  bool usable() const { return folder_ >= 0; }
  const std::string& unusable_reason() const { return reason_; }  ///< one line; empty when usable

 private:
  struct Use {
    std::uint64_t bytes = 0, files = 0;
    Use& operator+=(Use more) { return bytes += more.bytes, files += more.files, *this; }
    Use& operator-=(Use less) { return bytes -= less.bytes, files -= less.files, *this; }
    Use eighth() const { return {bytes / 8, files / 8}; }
    bool beyond(Use limit) const { return bytes > limit.bytes || files > limit.files; }
  };

  std::string open_folder();  // what is wrong with it, or nothing
  void delete_file(const std::string& name) { ::unlinkat(folder_, name.c_str(), 0); }
  // Empty if it cannot be read; deleted if it is not to be trusted or has less than `least` bytes.
  std::string contents(const std::string& name, std::uint64_t least = 0);
  // Whether all is written, and what the disk loses to it.
  bool replace(const std::string& name, const std::string& bytes, Use& added);
  bool append(const std::string& name, const std::string& bytes, Use& added);
  void shorten(const std::string& pack, const CacheKey* without = nullptr);
  Use scan(bool evict);  // of all files (after eviction)

  std::string name_, reason_;
  // all accesses are relative to this descriptor: the folder that was checked is the one that is
  // used
  int folder_ = -1;
  Use limit_;
  std::uint64_t pack_limit_;  // bytes; all packs may take a quarter of the whole limit
  Mutex lock_;                // of what is below
  Use used_;                  // estimate: other processes write too
  Use own_;                   // what was stored here since all was counted
  bool scanned_ = false;
};

}  // namespace vt::detail
