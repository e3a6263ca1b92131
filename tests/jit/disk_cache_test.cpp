// The kernel cache on disk: iteration trips, damage of every kind, folders that are not to be
// trusted, the size limit, many users at once.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <vt/execution.hpp>

#include "src/jit/services/disk_cache.hpp"

namespace {

namespace fs = std::filesystem;
using vt::detail::cache_key;
using vt::detail::CacheKey;
using vt::detail::DiskCache;

vt::Vec<char> payload(std::size_t n, int seed = 1) {
  vt::Vec<char> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<char>((i * 131 + static_cast<std::size_t>(seed) * 29) >> 3);
  return v;
}

constexpr std::size_t large = 2048;  // with its header too much for a pack

std::string text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "vt_cache_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    ::chmod(root_.c_str(), 0700);
    std::error_code ignored;
    fs::permissions(folder(), fs::perms::owner_all, ignored);
    fs::remove_all(root_, ignored);
  }
  fs::path folder() const { return root_ / "a" / "vt"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& e : fs::directory_iterator(folder())) all.push_back(e.path());
    return all;
  }
  void expect_within(std::uint64_t limit) const {
    std::uint64_t lost = 0, number = 0;
    for (const fs::path& f : files()) {
      struct stat st{};
      ASSERT_EQ(::lstat(f.c_str(), &st), 0) << f;
      lost += std::max<std::uint64_t>(static_cast<std::uint64_t>(st.st_blocks) * 512, 4096);
      ++number;
    }
    EXPECT_LE(lost, limit);
    EXPECT_LE(number, limit / DiskCache::bytes_a_file);
  }
  fs::path root_;
};

TEST_F(DiskCacheTest, IterationTripsAndMakesItsFolderPrivate) {
  DiskCache cache(folder().string());
  ASSERT_TRUE(cache.usable()) << cache.unusable_reason();
  EXPECT_EQ(fs::status(folder()).permissions() & fs::perms::all, fs::perms::owner_all);
  const CacheKey key = cache_key("a kernel");
  EXPECT_FALSE(cache.load(key));
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096},
                        std::size_t{100001}, std::size_t{9}}) {
    cache.store(key, payload(n));
    const auto back = cache.load(key);
    ASSERT_TRUE(back) << n;
    EXPECT_EQ(*back, payload(n));
  }
  EXPECT_FALSE(cache.load(cache_key("another")));
  EXPECT_EQ(files().size(), 1u) << "nothing but the entry is left";
  EXPECT_TRUE(DiskCache(folder().string()).load(key)) << "a second process finds it";
  cache.remove(key);
  EXPECT_FALSE(cache.load(key));
}

TEST_F(DiskCacheTest, KeysDependOnEveryByte) {
  const std::string text = "some text of more than eight bytes";
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_NE(cache_key(text), cache_key(other));
    EXPECT_NE(cache_key(text), cache_key(text.substr(0, i)));
  }
  EXPECT_NE(cache_key(std::string(1, '\0')), cache_key(std::string(2, '\0')));
  EXPECT_FALSE(vt::detail::program_identity().empty());
}

TEST_F(DiskCacheTest, EveryFlippedByteIsFoundAndTheEntryDeleted) {
  DiskCache cache(folder().string());
  const CacheKey key = cache_key("k");
  cache.store(key, payload(large));
  const fs::path file = files().at(0);
  const std::string good = text(file);
  ASSERT_EQ(good.size(), 48u + large);
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i >= 12 && i < 16) continue;  // the reserved field says nothing
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    EXPECT_FALSE(cache.load(key)) << "byte " << i;
    EXPECT_FALSE(fs::exists(file)) << "byte " << i;
  }
  for (std::size_t length :
       {std::size_t{0}, std::size_t{10}, std::size_t{47}, std::size_t{48}, good.size() - 1}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << good.substr(0, length);
    EXPECT_FALSE(cache.load(key)) << length;
    EXPECT_FALSE(fs::exists(file)) << length;
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << good + "x";
  EXPECT_FALSE(cache.load(key)) << "trailing bytes";
  std::ofstream(file, std::ios::binary | std::ios::trunc) << good;
  EXPECT_TRUE(cache.load(key)) << "the original is fine";
  fs::rename(file, file.parent_path() / "0123456789abcdef0123456789abcdef.vtk");
  EXPECT_FALSE(cache.load({0x0123456789abcdef, 0x0123456789abcdef}))
      << "an entry under another key's name";
  cache.store(key, payload(large));
  EXPECT_TRUE(cache.load(key)) << "rebuilt";
}

// Files of one entry and packs alike.
TEST_F(DiskCacheTest, WhatLiesInPlaceOfAFileIsNotFollowed) {
  DiskCache cache(folder().string());
  const CacheKey key = cache_key("k");
  for (const std::size_t size : {std::size_t{10}, large}) {
    cache.store(key, payload(size));
    const fs::path file = files().at(0), elsewhere = root_ / "elsewhere";
    fs::rename(file, elsewhere);
    const std::string before = text(elsewhere);
    fs::create_symlink(elsewhere, file);
    cache.store(key, payload(size, 2));
    EXPECT_EQ(text(elsewhere), before);
    fs::remove(file);
    fs::create_symlink(elsewhere, file);
    EXPECT_FALSE(cache.load(key)) << size;
    EXPECT_TRUE(fs::exists(elsewhere));
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_FALSE(cache.load(key)) << size;
    cache.store(key, payload(size));
    EXPECT_TRUE(cache.load(key)) << size;
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_FALSE(cache.load(key)) << size;
    cache.store(key, payload(size));  // cannot replace the folder; must not fail
    EXPECT_FALSE(cache.load(key)) << size;
    fs::remove(file);
  }
}

TEST_F(DiskCacheTest, FoldersOfOthersOrWritableByOthersAreNotUsed) {
  fs::create_directories(folder());
  ::chmod(folder().c_str(), 0777);
  DiskCache open_to_all(folder().string());
  EXPECT_FALSE(open_to_all.usable());
  EXPECT_NE(open_to_all.unusable_reason().find("may be written by others"), std::string::npos)
      << open_to_all.unusable_reason();
  EXPECT_NE(open_to_all.unusable_reason().find(folder().string()), std::string::npos);
  open_to_all.store(cache_key("k"), payload(3));
  EXPECT_FALSE(open_to_all.load(cache_key("k")));
  EXPECT_TRUE(files().empty());
  ::chmod(folder().c_str(), 0770);
  EXPECT_FALSE(DiskCache(folder().string()).usable());
  ::chmod(folder().c_str(), 0755);
  EXPECT_TRUE(DiskCache(folder().string()).usable()) << "others may look";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder().c_str(), 12345, 12345), 0);
    DiskCache foreign(folder().string());
    EXPECT_FALSE(foreign.usable());
    EXPECT_NE(foreign.unusable_reason().find("another user"), std::string::npos)
        << foreign.unusable_reason();
  }
  std::ofstream(root_ / "file") << "x";
  DiskCache not_a_folder((root_ / "file").string());
  EXPECT_FALSE(not_a_folder.usable());
  DiskCache none("");
  EXPECT_FALSE(none.usable());
  EXPECT_NE(none.unusable_reason().find("VT_CACHE_DIR"), std::string::npos);
}

// The process's own cache is chosen once, so each case is a process of its own.
TEST_F(DiskCacheTest, WarningsNameAFolderThatIsAskedForAndNotUsed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto warns = [](const std::string& folder, const std::string& wanted) {
    ::setenv("VT_CACHE_DIR", folder.c_str(), 1);
    DiskCache::process();
    std::exit(vt::warnings() == wanted ? 0 : 1);
  };
  const std::string ignored = "VT_CACHE_DIR is ignored, no kernel cache on disk: ";
  EXPECT_EXIT(warns("/dev/null/cache", ignored + "/dev/null/cache: Not a directory\n"),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(warns("/dev/null", ignored + "/dev/null: Not a directory\n"),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(warns("", ""), testing::ExitedWithCode(0), "");
}

TEST_F(DiskCacheTest, AVanishedFolderIsNoError) {
  DiskCache cache(folder().string());
  cache.store(cache_key("k"), payload(10));
  fs::remove_all(folder());
  EXPECT_FALSE(cache.load(cache_key("k")));
  cache.store(cache_key("k"), payload(10));
  EXPECT_FALSE(cache.load(cache_key("k")));
}

TEST_F(DiskCacheTest, AnUnwritableFolderIsNoError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  DiskCache cache(folder().string());
  cache.store(cache_key("old"), payload(10));
  ::chmod(folder().c_str(), 0500);
  cache.store(cache_key("new"), payload(10));
  EXPECT_TRUE(cache.load(cache_key("old")));
  EXPECT_FALSE(cache.load(cache_key("new")));
}

TEST_F(DiskCacheTest, BeyondTheLimitTheOldestGo) {
  DiskCache cache(folder().string(), 10 * 8192);  // ten entries of two blocks
  const auto key = [](int i) { return cache_key("kernel " + std::to_string(i)); };
  for (int i = 0; i < 9; ++i) cache.store(key(i), payload(7000, i));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(DiskCache(folder().string()).load(key(i))) << i;
  for (const fs::path& f : files())
    fs::last_write_time(f, fs::file_time_type::clock::now() - std::chrono::hours(50));
  ASSERT_TRUE(cache.load(key(0)));  // used last
  for (int i = 9; i < 12; ++i) cache.store(key(i), payload(7000, i));
  expect_within(10 * 8192);
  EXPECT_TRUE(cache.load(key(0))) << "used a moment ago";
  for (int i = 9; i < 12; ++i) EXPECT_TRUE(cache.load(key(i))) << i << ", just stored";
  int left = 0;
  for (int i = 1; i < 9; ++i) left += cache.load(key(i)).has_value();
  EXPECT_LT(left, 8);
  EXPECT_GT(left, 2) << "not more than needed";
  cache.store(key(99), payload(30000));
  EXPECT_FALSE(cache.load(key(99))) << "one entry may not push out the rest";
}

// A file takes whole blocks, however short it is, and an entry of the folder.
TEST_F(DiskCacheTest, FilesCountByTheirBlocksAndTheirNumber) {
  const std::uint64_t limit = 4 << 20;
  DiskCache cache(folder().string(), limit);
  for (int i = 0; i < 5000; ++i)
    cache.store(cache_key("short " + std::to_string(i)), payload(large));
  expect_within(limit);
  EXPECT_GT(files().size(), limit / DiskCache::bytes_a_file / 2) << "not more than needed";
  EXPECT_TRUE(cache.load(cache_key("short 4999")));
}

// As a program without these limits left it.
TEST_F(DiskCacheTest, AFolderOfTooManyIsWithinTheLimitsAfterOneStore) {
  fs::create_directories(folder());
  for (int i = 0; i < 3000; ++i) {
    char name[40];
    std::snprintf(name, sizeof name, "%032x.vtk", static_cast<unsigned>(i));
    std::ofstream(folder() / name) << "some bytes of an entry";
  }
  ::chmod(folder().c_str(), 0700);
  const std::uint64_t limit = 1 << 20;
  DiskCache cache(folder().string(), limit);
  cache.store(cache_key("k"), payload(80));
  expect_within(limit);
  EXPECT_TRUE(cache.load(cache_key("k")));
}

// What other processes add is seen once this one has stored an eighth of the limit.
TEST_F(DiskCacheTest, EntriesOfOthersAreCountedFromTimeToTime) {
  const std::uint64_t limit = 4 << 20;
  DiskCache one(folder().string(), limit), other(folder().string());
  one.store(cache_key("first"), payload(80));
  for (int i = 0; i < 1000; ++i)
    other.store(cache_key("other " + std::to_string(i)), payload(large));
  const std::uint64_t eighth = limit / DiskCache::bytes_a_file / 8;
  for (std::uint64_t i = 0; i <= eighth; ++i)
    one.store(cache_key("own " + std::to_string(i)), payload(large));
  expect_within(limit);
}

// Where there are thousands of entries, the first store of a process estimates what they take, and
// counts before it evicts.
TEST_F(DiskCacheTest, FoldersOfManyEntriesKeepTheLimit) {
  const std::uint64_t count = 2500, each = 8192, all = each * count;
  {
    DiskCache cache(folder().string());
    for (std::uint64_t i = 0; i < count; ++i)
      cache.store(cache_key("entry " + std::to_string(i)), payload(5000));
  }
  DiskCache roomy(folder().string(), all * 2);
  roomy.store(cache_key("one more"), payload(100));
  EXPECT_EQ(files().size(), count + 1u);
  DiskCache tight(folder().string(), all / 2);
  tight.store(cache_key("another"), payload(100));
  expect_within(all / 2);
  EXPECT_GE(files().size() * each, all / 2 * 3 / 4);
}

TEST_F(DiskCacheTest, LeftoverTemporaryFilesAreSweptAndForeignFilesKept) {
  {
    DiskCache cache(folder().string());
    std::ofstream(folder() / ".new.1.1") << "half";
    std::ofstream(folder() / ".new.2.2") << "half";
    std::ofstream(folder() / "notes.txt") << "mine";
    fs::last_write_time(folder() / ".new.1.1",
                        fs::file_time_type::clock::now() - std::chrono::hours(2));
    cache.store(cache_key("k"), payload(10));
  }
  EXPECT_FALSE(fs::exists(folder() / ".new.1.1"));
  EXPECT_TRUE(fs::exists(folder() / ".new.2.2")) << "its writer may be alive";
  EXPECT_TRUE(fs::exists(folder() / "notes.txt"));
}

// Programs that are killed again and again may leave more of them than the limit allows.
TEST_F(DiskCacheTest, FreshTemporaryFilesCountToo) {
  const std::uint64_t limit = 1 << 20;
  DiskCache cache(folder().string(), limit);
  for (int i = 0; i < 400; ++i)
    std::ofstream(folder() / (".new.1." + std::to_string(i))) << std::string(5000, 'x');
  for (const fs::path& f : files())
    fs::last_write_time(f, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  cache.store(cache_key("k"), payload(80));
  expect_within(limit);
  EXPECT_TRUE(cache.load(cache_key("k")));
}

TEST_F(DiskCacheTest, ManySmallEntriesTakeAboutTheirLengths) {
  const auto key = [](int i) { return cache_key("small " + std::to_string(i)); };
  const int count = 30000, size = 80;
  {
    DiskCache cache(folder().string());
    for (int i = 0; i < count; ++i) cache.store(key(i), payload(size, i));
  }
  EXPECT_LE(files().size(), DiskCache::packs);
  std::uint64_t lost = 0;
  for (const fs::path& f : files()) {
    struct stat st{};
    ASSERT_EQ(::lstat(f.c_str(), &st), 0) << f;
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    lost += static_cast<std::uint64_t>(st.st_blocks) * 512;
  }
  EXPECT_LE(lost, std::uint64_t{count} * (48 + size) + DiskCache::packs * 4096);
  DiskCache later(folder().string());
  for (int i = 0; i < count; ++i) {
    const auto got = later.load(key(i));
    ASSERT_TRUE(got && *got == payload(size, i)) << i;
  }
}

// Keys of one pack.
CacheKey packed(std::uint64_t i) { return {i * 0x9e3779b97f4a7c15u, 7 + i * DiskCache::packs}; }

TEST_F(DiskCacheTest, DamageOfAPackCostsOnlyTheEntryThatItHits) {
  DiskCache cache(folder().string());
  const auto stored = [&](std::uint64_t i) {
    const auto got = cache.load(packed(i));
    EXPECT_TRUE(!got || *got == payload(40, static_cast<int>(i))) << i;
    return got.has_value();
  };
  const auto store = [&](std::uint64_t i) {
    cache.store(packed(i), payload(40, static_cast<int>(i)));
  };
  for (std::uint64_t i : {1, 2, 3}) store(i);
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files()[0];
  const std::string good = text(file);
  const std::size_t each = 48 + 40;
  ASSERT_EQ(good.size(), 3 * each);
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (std::size_t i = 0; i < each; ++i) {
    if (i >= 12 && i < 16) continue;  // the reserved field says nothing
    std::string bad = good;
    bad[each + i] = static_cast<char>(bad[each + i] ^ 0x10);
    write(bad);
    EXPECT_TRUE(stored(1) && !stored(2) && stored(3)) << "byte " << i;
    store(2);
    EXPECT_TRUE(stored(1) && stored(2) && stored(3)) << "byte " << i;
  }
  // Its writer was killed, or the disk was full; others append behind that.
  for (std::size_t length = 0; length < each; ++length) {
    write(good.substr(0, each + length));
    store(3);
    EXPECT_TRUE(stored(1) && !stored(2) && stored(3)) << length;
  }
  write(good + std::string(5000, '\0') + good.substr(0, 60) + good.substr(each, each));
  EXPECT_TRUE(stored(1) && stored(2) && stored(3));
  write(std::string(100, '\0'));
  EXPECT_FALSE(stored(1));
}

TEST_F(DiskCacheTest, EntriesOfAPackAreReplacedAndRemoved) {
  DiskCache cache(folder().string());
  for (std::uint64_t i : {1, 2, 3}) cache.store(packed(i), payload(40));
  const auto size = fs::file_size(files().at(0));
  cache.store(packed(2), payload(40));
  EXPECT_EQ(fs::file_size(files().at(0)), size) << "it is there already";
  cache.store(packed(2), payload(50));
  EXPECT_EQ(cache.load(packed(2)), payload(50)) << "the newest";
  cache.remove(packed(2));
  EXPECT_FALSE(cache.load(packed(2)));
  EXPECT_TRUE(cache.load(packed(1)) && cache.load(packed(3)));
  cache.remove(packed(1));
  cache.remove(packed(3));
  EXPECT_TRUE(files().empty());
}

TEST_F(DiskCacheTest, APackLosesWhatWasStoredLongestAgo) {
  DiskCache cache(folder().string(), 8 << 20);  // packs of 16 KiB
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    cache.store(packed(i), payload(80, static_cast<int>(i)));
    ASSERT_LE(fs::file_size(files().at(0)), 16384u + 128u);
    ASSERT_EQ(cache.load(packed(i)), payload(80, static_cast<int>(i)));
  }
  EXPECT_EQ(files().size(), 1u);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 1000; i > 0 && cache.load(packed(i)); --i) ++kept;
  EXPECT_GE(kept, 16384u / 2 / 128u);
  EXPECT_FALSE(cache.load(packed(1)));
}

TEST_F(DiskCacheTest, ProcessesAppendToOnePackWhileOneIsKilled) {
  const int writers = 4, count = 300;
  pid_t children[writers];
  for (int w = 0; w < writers; ++w) {
    children[w] = ::fork();
    ASSERT_GE(children[w], 0);
    if (children[w] != 0) continue;
    DiskCache cache(folder().string());
    for (int i = 0; i < count; ++i) {
      cache.store(packed(static_cast<std::uint64_t>(w * count + i)), payload(100, i));
      if (w == 0 && i == count / 2) ::raise(SIGKILL);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  DiskCache cache(folder().string());
  for (int i = count; i < writers * count; ++i)
    ASSERT_EQ(cache.load(packed(static_cast<std::uint64_t>(i))), payload(100, i % count)) << i;
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(DiskCacheTest, AFullDiskCostsOnlyTheNewEntry) {
  ::signal(SIGXFSZ, SIG_IGN);
  DiskCache cache(folder().string());
  cache.store(packed(1), payload(500));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{600, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &little);
  cache.store(packed(2), payload(500));  // its beginning fits
  cache.store(cache_key("large"), payload(large));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(cache.load(packed(1)));
  EXPECT_FALSE(cache.load(packed(2)) || cache.load(cache_key("large")));
  cache.store(packed(2), payload(500));
  EXPECT_TRUE(cache.load(packed(1)) && cache.load(packed(2)));
  EXPECT_EQ(files().size(), 1u) << "nothing else is left";
}

// Writers and readers of few keys: a reader sees a whole entry of some writer, or none.
void hammer(const std::string& folder, int seed, int* faults) {
  DiskCache cache(folder, 16 * 8192);
  for (int iteration = 0; iteration < 300; ++iteration) {
    const int k = (iteration * 7 + seed) % 5;
    const CacheKey key = cache_key("shared " + std::to_string(k));
    if ((iteration + seed) % 3 == 0)
      cache.store(key, payload(2000 + static_cast<std::size_t>(k) * 100, k));
    else if (const auto got = cache.load(key);
             got && *got != payload(2000 + static_cast<std::size_t>(k) * 100, k))
      ++*faults;
  }
}

TEST_F(DiskCacheTest, ManyThreadsOnOneCacheAndOneFolder) {
  int faults[4] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] { hammer(folder().string(), t, &faults[t]); });
  DiskCache shared(folder().string());
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        shared.store(cache_key("own"), payload(500));
        (void)shared.load(cache_key("own"));
      }
    });
  for (auto& t : threads) t.join();
  for (int f : faults) EXPECT_EQ(f, 0);
  EXPECT_TRUE(shared.load(cache_key("own")));
}

TEST_F(DiskCacheTest, TwoProcessesAtOnce) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  int faults = 0;
  hammer(folder().string(), child == 0 ? 1 : 2, &faults);
  if (child == 0) ::_exit(faults == 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(faults, 0);
  for (const fs::path& f : files()) EXPECT_EQ(f.extension(), ".vtk") << "no temporary file is left";
}

}  // namespace
