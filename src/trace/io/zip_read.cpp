// Reads zip archives: where the directory is and what it says, compared with what is in the file.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <vt/detail/message.hpp>

#include "crc32.hpp"
#include "inflated_bytes.hpp"
#include "zip.hpp"

namespace vt::detail::zip {

/// Numbers of a record, lowest byte first; `at` lies within.
struct Record {
  std::string_view bytes;
  std::uint64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t n = 0;
    for (std::size_t i = size; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
    return n;
  }
  std::uint16_t two(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t four(std::size_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t eight(std::size_t at) const { return number(at, 8); }
};

constexpr std::uint32_t in_8_bytes = 0xffffffff;  // where a number of 4 bytes does not fit
constexpr std::uint16_t also_elsewhere = 0xffff;  // the same of 2 bytes

std::string text_of(const InputFile& file, std::uint64_t offset, std::size_t count,
                    const FileUse& use) {
  std::string text(count, '\0');
  file.read(offset, text.data(), count, use);
  return text;
}

/// Where the directory is. Its numbers of 8 bytes, if it has some, stand in a record of their own,
/// which is found by a third one.
struct Place {
  std::uint64_t offset = 0, size = 0, members = 0;
};

Place place_of_directory(const InputFile& file, const FileUse& use) {
  constexpr std::size_t end_size = 22, locator_size = 20, wide_size = 56;
  const std::size_t tail_size = std::min<std::uint64_t>(file.size(), end_size + 65535);
  const std::uint64_t tail_at = file.size() - tail_size;
  const std::string tail = text_of(file, tail_at, tail_size, use);
  // The record ends with a comment, which reaches to the end of the file.
  std::size_t found = std::string::npos;
  for (std::size_t at = tail_size < end_size ? 0 : tail_size - end_size + 1; at-- > 0;)
    if (const Record end{std::string_view(tail).substr(at)};
        end.four(0) == 0x06054b50 && end.two(20) == tail_size - end_size - at) {
      found = at;
      break;
    }
  if (found == std::string::npos) {
    const bool is_npy = file.size() >= 6 && text_of(file, 0, 6, use) == "\x93NUMPY";
    use.refuse(is_npy ? "a .npy file, which vt::load_npy reads"
                      : "not a .npz file, or cut off: it does not end as a zip archive does");
  }
  const Record end{std::string_view(tail).substr(found)};
  std::uint64_t records_at = tail_at + found;
  Place place{end.four(16), end.four(12), end.two(10)};
  std::uint64_t disk = end.two(4), its_disk = end.two(6), on_disk = end.two(8);
  if (records_at >= locator_size) {
    const std::string locator_text = text_of(file, records_at - locator_size, locator_size, use);
    const Record locator{locator_text};
    if (locator.four(0) == 0x07064b50) {
      const std::uint64_t locator_at = records_at - locator_size;
      records_at = locator.eight(8);
      if (records_at > locator_at || locator_at - records_at < wide_size)
        use.refuse("the record of 8-byte numbers lies outside of the file");
      const std::string wide_text = text_of(file, records_at, wide_size, use);
      const Record wide{wide_text};
      if (wide.four(0) != 0x06064b50 || wide.eight(4) != locator_at - records_at - 12)
        use.refuse("the record of 8-byte numbers is damaged");
      const auto take = [&](std::uint64_t& number, std::uint64_t stands_for, std::uint64_t given) {
        if (number != stands_for && number != given)
          use.refuse("the two records at the end of the archive disagree");
        number = given;
      };
      take(disk, also_elsewhere, wide.four(16));
      take(its_disk, also_elsewhere, wide.four(20));
      take(on_disk, also_elsewhere, wide.eight(24));
      take(place.members, also_elsewhere, wide.eight(32));
      take(place.size, in_8_bytes, wide.eight(40));
      take(place.offset, in_8_bytes, wide.eight(48));
      if (locator.four(4) != 0 || locator.four(16) > 1) disk = 1;
    }
  }
  if (disk != 0 || its_disk != 0 || on_disk != place.members)
    use.refuse("a part of an archive of several files");
  if (place.offset > records_at || records_at - place.offset != place.size)
    use.refuse("the directory is not where it is said to be");
  return place;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80   ? 0
                     : lead < 0xc2 ? -1
                     : lead < 0xe0 ? 1
                     : lead < 0xf0 ? 2
                     : lead < 0xf5 ? 3
                                   : -1;
    if (more < 0) return false;
    for (int k = 0; k < more; ++k, ++i) {
      const auto c = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
      // the first of them also rules out what has a shorter form, surrogates, and too large ones
      const int least = k > 0 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
      const int most = k > 0 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
      if (c < least || c > most) return false;
    }
  }
  return true;
}

/// The numbers of 8 bytes in an extra field, for those that are not given in 4: in their order.
void take_wide_numbers(Record extra, std::initializer_list<std::uint64_t*> numbers,
                       const FileUse& use) {
  for (std::size_t at = 0; at + 4 <= extra.bytes.size();) {
    const std::size_t id = extra.two(at), size = extra.two(at + 2);
    at += 4;
    if (size > extra.bytes.size() - at) use.refuse("an extra field is cut off");
    if (id == 1) {
      std::size_t used = 0;
      for (std::uint64_t* number : numbers) {
        if (*number != in_8_bytes) continue;
        if (size - used < 8) use.refuse("a size or offset of 8 bytes is missing");
        *number = extra.eight(at + used);
        used += 8;
      }
      return;
    }
    at += size;
  }
}

/// The next entry of the directory, which reaches from `at` to `end`; `at` is moved behind it.
Member entry_of(const InputFile& file, std::uint64_t& at, std::uint64_t end, const FileUse& use) {
  constexpr std::size_t fixed = 46;
  if (end - at < fixed) use.refuse("the directory is damaged");
  const std::string text = text_of(file, at, fixed, use);
  const Record entry{text};
  const std::size_t name = entry.two(28), extra = entry.two(30), comment = entry.two(32);
  if (entry.four(0) != 0x02014b50 || name + extra + comment > end - at - fixed)
    use.refuse("the directory is damaged");
  const std::string rest = text_of(file, at + fixed, name + extra, use);
  at += fixed + name + extra + comment;
  Member m;
  m.name = rest.substr(0, name);
  m.flags = entry.two(8);
  m.method = entry.two(10);
  m.crc = entry.four(16);
  m.stored = entry.four(20);
  m.size = entry.four(24);
  m.offset = entry.four(42);
  const FileUse its = use.of("member", m.name);
  if (m.name.empty() || m.name.find('\0') != std::string::npos || !is_utf8(m.name))
    its.refuse("the name is empty, or no UTF-8, or holds a NUL");
  take_wide_numbers({std::string_view(rest).substr(name)}, {&m.size, &m.stored, &m.offset}, its);
  if (entry.two(34) != 0) its.refuse("it is said to be in another file of several");
  return m;
}

Vec<Member> read_directory(const InputFile& file, const FileUse& use) {
  const Place place = place_of_directory(file, use);
  Vec<Member> members;
  std::uint64_t at = place.offset;
  const std::uint64_t end = at + place.size;
  for (std::uint64_t i = 0; i < place.members; ++i) members.push_back(entry_of(file, at, end, use));
  if (at != end) use.refuse("the directory holds more than its members");

  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by_name = [&](std::size_t a, std::size_t b) {
    return members[a].name < members[b].name;
  };
  std::sort(order.begin(), order.end(), by_name);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (!by_name(order[i - 1], order[i]))
      use.refuse("two members have the name " + in_quotes(members[order[i]].name));
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return members[a].offset < members[b].offset; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    Member& m = members[order[i]];
    m.limit = i + 1 < order.size() ? members[order[i + 1]].offset : place.offset;
    m.limit = std::min(m.limit, place.offset);
    const std::uint64_t front = 30 + m.name.size();
    if (m.offset > m.limit || m.limit - m.offset < front || m.limit - m.offset - front < m.stored)
      use.of("member", m.name)
          .refuse("its " + std::to_string(m.stored) + " bytes from " + std::to_string(m.offset) +
                  " on reach into what begins at " + std::to_string(m.limit));
  }
  return members;
}

/// Where the contents of a member begin, whose own header says the same as the directory.
std::uint64_t contents_of(const InputFile& file, const Member& m, const FileUse& use) {
  constexpr std::size_t fixed = 30;
  const std::string text = text_of(file, m.offset, fixed, use);
  const Record front{text};
  if (front.four(0) != 0x04034b50) use.refuse("it does not begin where the directory says");
  const std::size_t name = front.two(26), extra = front.two(28);
  const std::uint64_t room = m.limit - m.offset - fixed - m.stored;
  if (name != m.name.size() || name + extra > room)
    use.refuse("its own header and the directory disagree");
  const std::string rest = text_of(file, m.offset + fixed, name + extra, use);
  std::uint64_t stored = front.four(18), size = front.four(22);
  take_wide_numbers({std::string_view(rest).substr(name)}, {&size, &stored}, use);
  // What is written without seeking has the sizes behind the contents.
  const bool streamed = m.flags & 8;
  const auto same = [&](std::uint64_t own, std::uint64_t wanted) {
    return own == wanted || (streamed && own == 0);
  };
  if (rest.substr(0, name) != m.name || front.two(6) != m.flags || front.two(8) != m.method ||
      !same(front.four(14), m.crc) || !same(stored, m.stored) || !same(size, m.size))
    use.refuse("its own header and the directory disagree");
  const std::uint64_t at = m.offset + fixed + name + extra;
  if (!streamed) return at;
  // A signature may stand in front of them, and they have 4 or 8 bytes.
  const std::string behind =
      text_of(file, at + m.stored, std::min<std::uint64_t>(24, room - name - extra), use);
  for (const std::size_t from : {0u, 4u})
    for (const std::size_t width : {4u, 8u}) {
      const Record sizes{std::string_view(behind).substr(std::min(from, behind.size()))};
      if (sizes.bytes.size() >= 4 + 2 * width && sizes.four(0) == m.crc &&
          sizes.number(4, width) == m.stored && sizes.number(4 + width, width) == m.size &&
          (from == 0 || Record{behind}.four(0) == 0x08074b50))
        return at;
    }
  use.refuse("the sizes behind it and the directory disagree");
}

MemberBytes::MemberBytes(const InputFile& file, const Member& m, const FileUse& use)
    : use_(use), wanted_(m.crc) {
  if (m.name.back() == '/') use.refuse("a folder");
  constexpr int encrypted = 1 | 1 << 6 | 1 << 13, patch = 1 << 5;
  if (m.flags & encrypted) use.refuse("it is encrypted");
  if (m.flags & patch || (m.method != 0 && m.method != 8))
    use.refuse("it is compressed by method " + std::to_string(m.method) +
               "; of zip's methods only 0 (stored) and 8 (deflate) are read");
  if (m.method == 0 && m.stored != m.size)
    use.refuse("it is not compressed, and yet has two sizes, " + std::to_string(m.stored) +
               " and " + std::to_string(m.size));
  const FileBytes stored(file, contents_of(file, m, use), m.stored, use);
  if (m.method == 0) {
    bytes_ = std::make_unique<FileBytes>(stored);
  } else {
    auto inflated = std::make_unique<InflatedBytes>(stored, m.size, use);
    inflated_ = inflated.get();
    bytes_ = std::move(inflated);
  }
}

void MemberBytes::read(void* to, std::size_t count) {
  // in pieces that are still in the cache when their checksum is taken
  constexpr std::size_t piece = 1 << 18;
  for (auto* at = static_cast<char*>(to); count > 0;) {
    const std::size_t n = std::min(count, piece);
    bytes_->read(at, n);
    crc_ = crc32(at, n, crc_);
    at += n;
    count -= n;
  }
}

void MemberBytes::finish() {
  if (inflated_) inflated_->finish();
  if (crc_ != wanted_)
    use_.refuse(formatted("its contents are damaged: their CRC-32 is {}, not {}", crc_, wanted_));
}

}  // namespace vt::detail::zip
