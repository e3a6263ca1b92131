// Bytes that zlib inflates while they are read.
#include "inflated_bytes.hpp"

#include <algorithm>
#include <new>

namespace vt::detail {

InflatedBytes::InflatedBytes(FileBytes packed, std::uint64_t size, const FileUse& use)
    : packed_(packed), use_(use), size_(size), left_(size) {
  // 258 bytes cost two bits at least.
  constexpr std::uint64_t most = 1032;
  if (size / most + (size % most != 0) > packed.left())
    use.refuse(std::to_string(packed.left()) + " bytes cannot hold " + std::to_string(size));
  std::string why;
  zlib_ = zlib(why);
  if (!zlib_)
    use.refuse("it is compressed, which needs zlib: " + why +
               " (set VT_ZLIB_LIBRARY to the path of libz.so.1, or write the file by np.savez, "
               "which does not compress)");
  // no header of zlib's around the data; of the version only the first number counts
  const int said = zlib_->inflateInit2_(&stream_, -15, "1", static_cast<int>(sizeof stream_));
  if (said == Zlib::out_of_memory) throw std::bad_alloc();
  if (said != Zlib::ok) use.refuse("zlib does not start: error " + std::to_string(said));
}

InflatedBytes::~InflatedBytes() { static_cast<void>(zlib_->inflateEnd(&stream_)); }

bool InflatedBytes::inflate_some() {
  if (ended_) return false;
  if (stream_.available_in == 0 && packed_.left() > 0) {
    const std::size_t count = std::min<std::uint64_t>(block_.size(), packed_.left());
    packed_.read(block_.data(), count);
    stream_.next_in = block_.data();
    stream_.available_in = static_cast<unsigned>(count);
  }
  const int said = zlib_->inflate(&stream_, Zlib::no_flush);
  if (said == Zlib::out_of_memory) throw std::bad_alloc();
  ended_ = said == Zlib::stream_end;
  if (said == Zlib::buffer_error) use_.refuse("the compressed data are cut off");
  if (said != Zlib::ok && !ended_)
    use_.refuse(std::string("the compressed data are damaged") +
                (stream_.message ? std::string(": ") + stream_.message : std::string()));
  return true;
}

void InflatedBytes::read(void* to, std::size_t count) {
  auto* at = static_cast<unsigned char*>(to);
  while (count > 0) {
    const auto wanted = static_cast<unsigned>(std::min(count, std::size_t{1} << 30));
    stream_.next_out = at;
    stream_.available_out = wanted;
    if (!inflate_some())
      use_.refuse("the compressed data hold " + std::to_string(size_ - left_) + " bytes, not " +
                  std::to_string(size_));
    const std::size_t given = wanted - stream_.available_out;
    at += given;
    count -= given;
    left_ -= given;
  }
}

void InflatedBytes::finish() {
  unsigned char more = 0;
  do {
    stream_.next_out = &more;
    stream_.available_out = 1;
  } while (inflate_some() && stream_.available_out == 1);
  if (stream_.available_out == 0)
    use_.refuse("the compressed data hold more than " + std::to_string(size_) + " bytes");
  if (const std::uint64_t rest = packed_.left() + stream_.available_in)
    use_.refuse(std::to_string(rest) + " bytes stand behind the compressed data");
}

}  // namespace vt::detail
