// The bytes of new zip archives around the contents of their members.
#include <algorithm>

#include "zip.hpp"

namespace vt::detail::zip {

constexpr std::uint64_t least_in_8_bytes = 0xffffffff, least_in_more_than_2 = 0xffff;

/// Numbers, lowest byte first.
struct Bytes {
  std::string text;
  Bytes& number(std::uint64_t n, int size) {
    for (; size > 0; --size, n >>= 8) text += static_cast<char>(n & 0xff);
    return *this;
  }
  Bytes& two(std::uint64_t n) { return number(n, 2); }
  Bytes& four(std::uint64_t n) { return number(n, 4); }
  Bytes& eight(std::uint64_t n) { return number(n, 8); }
  /// In 4 bytes; those that do not fit stand in an extra field.
  Bytes& four_at_most(std::uint64_t n) { return four(std::min(n, least_in_8_bytes)); }
};

/// What an entry and the member's own header have in common: versions, flags, method, time.
void add_common(Bytes& to, std::string_view name, bool wide) {
  const bool ascii = std::all_of(name.begin(), name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  to.two(wide ? 45 : 20).two(ascii ? 0 : 1 << 11).two(0);
  to.two(0).two(1 << 5 | 1);  // 0:00 on 1 January 1980, the first day there is
}

std::string NewArchive::front_of(std::string_view name, std::uint64_t size, std::uint32_t crc) {
  const bool wide = size >= least_in_8_bytes;
  Bytes extra;
  if (wide) extra.two(1).two(16).eight(size).eight(size);
  // An extra field of zeros that Android has for this purpose, of 6 bytes or more.
  const std::uint64_t start = at_ + 30 + name.size() + extra.text.size();
  if (start % 64 != 0) {
    const std::uint64_t padding = 6 + (64 - (start + 6) % 64) % 64;
    extra.two(0xd935).two(padding - 4).two(64);
    extra.text.append(padding - 6, '\0');
  }
  Bytes front;
  front.four(0x04034b50);
  add_common(front, name, wide);
  front.four(crc).four_at_most(size).four_at_most(size);
  front.two(name.size()).two(extra.text.size());
  front.text += name;
  front.text += extra.text;

  Bytes entry, numbers;
  if (wide) numbers.eight(size).eight(size);
  if (at_ >= least_in_8_bytes) numbers.eight(at_);
  const bool has_numbers = !numbers.text.empty();
  entry.four(0x02014b50).two(3 << 8 | 45);  // Unix, which has the mode of a file below
  add_common(entry, name, has_numbers);
  entry.four(crc).four_at_most(size).four_at_most(size);
  entry.two(name.size()).two(has_numbers ? 4 + numbers.text.size() : 0);
  entry.two(0).two(0).two(0).four(std::uint64_t{0100644} << 16).four_at_most(at_);
  entry.text += name;
  if (has_numbers) entry.two(1).two(numbers.text.size()).text += numbers.text;
  entries_ += entry.text;

  at_ += front.text.size() + size;
  ++members_;
  return std::move(front.text);
}

std::string NewArchive::directory() const {
  const bool wide = members_ >= least_in_more_than_2 || at_ >= least_in_8_bytes ||
                    entries_.size() >= least_in_8_bytes;
  Bytes end;
  if (wide) {
    end.four(0x06064b50).eight(44).two(3 << 8 | 45).two(45).four(0).four(0);
    end.eight(members_).eight(members_).eight(entries_.size()).eight(at_);
    end.four(0x07064b50).four(0).eight(at_ + entries_.size()).four(1);
  }
  const std::uint64_t members = std::min(members_, least_in_more_than_2);
  end.four(0x06054b50).two(0).two(0).two(members).two(members);
  end.four_at_most(entries_.size()).four_at_most(at_).two(0);
  return entries_ + end.text;
}

}  // namespace vt::detail::zip
