// Zip archives made by hand, right or wrong in any field, and files in a folder of their own.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace vt_test {

/// A checksum bit by bit, as the definition has it.
inline std::uint32_t slow_crc32(const std::string& bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const char c : bytes) {
    rest ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? 0xedb88320u : 0u);
  }
  return ~rest;
}

/// `size` bytes of a number, lowest first.
inline std::string number(std::uint64_t n, int size) {
  std::string text;
  for (; size > 0; --size, n >>= 8) text += static_cast<char>(n & 0xff);
  return text;
}

/// What one of a member's two headers says.
struct ZipHeader {
  std::string name, extra;
  std::uint64_t flags = 0, method = 0, crc = 0, stored = 0, size = 0;
  std::uint64_t disk = 0, offset = 0, comment = 0;  // in the directory only
};

struct ZipMember {
  ZipHeader own, listed;
  std::string contents;     // as they stand in the file
  std::string behind = {};  // them
  ZipMember(const std::string& name, const std::string& bytes) : contents(bytes) {
    own.name = name;
    own.crc = slow_crc32(bytes);
    own.stored = own.size = bytes.size();
    listed = own;
  }
};

/// The records at the end.
struct ZipEnd {
  std::uint64_t disk = 0, members = 0, size = 0, offset = 0;
  std::string comment = {};
  bool wide = false;        // with the records of 8-byte numbers, and none here
  std::uint64_t moved = 0;  // the offset of the first of them is wrong by so much
  std::uint64_t disks = 1;
};

/// The file of these members. `change` sees the headers and the end before they are written.
template <class Change>
std::string zip_bytes(std::vector<ZipMember> members, Change change) {
  std::string file, directory;
  ZipEnd end;
  for (ZipMember& m : members) {
    m.listed.offset = file.size();
    file += std::string(30 + m.own.name.size() + m.own.extra.size(), '\0') + m.contents + m.behind;
  }
  end.members = members.size();
  end.offset = file.size();
  for (const ZipMember& m : members)
    end.size += 46 + m.listed.name.size() + m.listed.extra.size() + m.listed.comment;
  std::vector<std::uint64_t> places;
  for (const ZipMember& m : members) places.push_back(m.listed.offset);
  change(members, end);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const ZipHeader& own = members[i].own;
    const std::string header =
        number(0x04034b50, 4) + number(20, 2) + number(own.flags, 2) + number(own.method, 2) +
        number(0x210000, 4) + number(own.crc, 4) + number(own.stored, 4) + number(own.size, 4) +
        number(own.name.size(), 2) + number(own.extra.size(), 2) + own.name + own.extra;
    file.replace(places[i], header.size(), header);
    const ZipHeader& h = members[i].listed;
    directory += number(0x02014b50, 4) + number(20, 2) + number(20, 2) + number(h.flags, 2) +
                 number(h.method, 2) + number(0x210000, 4) + number(h.crc, 4) +
                 number(h.stored, 4) + number(h.size, 4) + number(h.name.size(), 2) +
                 number(h.extra.size(), 2) + number(h.comment, 2) + number(h.disk, 2) +
                 number(0, 6) + number(h.offset, 4) + h.name + h.extra +
                 std::string(h.comment, 'c');
  }
  const std::uint64_t records = file.size() + directory.size();
  file += directory;
  if (end.wide) {
    file += number(0x06064b50, 4) + number(44, 8) + number(45, 2) + number(45, 2) +
            number(end.disk, 4) + number(0, 4) + number(end.members, 8) + number(end.members, 8) +
            number(end.size, 8) + number(end.offset, 8) + number(0x07064b50, 4) + number(0, 4) +
            number(records + end.moved, 8) + number(end.disks, 4);
    end.disk = 0;
    end.members = 0xffff;
    end.size = end.offset = 0xffffffff;
  }
  return file + number(0x06054b50, 4) + number(end.disk, 2) + number(0, 2) +
         number(end.members, 2) + number(end.members, 2) + number(end.size, 4) +
         number(end.offset, 4) + number(end.comment.size(), 2) + end.comment;
}
inline std::string zip_bytes(const std::vector<ZipMember>& members) {
  return zip_bytes(members, [](auto&, auto&) {});
}

/// A .npy file of this header and data.
inline std::string npy_bytes(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\1\0", 8) + number(header.size(), 2) + header + data;
}

/// A folder that is there as long as this; for many small files in memory, where there is such a
/// place.
class TestFolder {
 public:
  explicit TestFolder(const std::string& name, bool in_memory = false)
      : path_((in_memory && ::access("/dev/shm", W_OK) == 0
                   ? std::filesystem::path("/dev/shm")
                   : std::filesystem::temp_directory_path()) /
              ("vt-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string written(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  return bytes;
}

}  // namespace vt_test
