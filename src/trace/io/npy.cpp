// Reading and writing NumPy's .npy files. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <vt/npy.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include <vt/ops.hpp>

#include "../base/written_file.hpp"
#include "../record/node.hpp"

namespace vt::detail::npy {

constexpr std::string_view magic = "\x93NUMPY";

[[noreturn]] void refuse(const char* function, const std::string& path, const std::string& why,
                         CallSite where) {
  fail(ErrorKind::io, std::string(function) + ": " + path + ": " + why, where);
}

struct Kind {
  char letter;
  DType dtype;
};
constexpr Kind kinds[] = {
    {'b', DType::bool_}, {'i', DType::i8},  {'i', DType::i16}, {'i', DType::i32}, {'i', DType::i64},
    {'u', DType::u8},    {'u', DType::u16}, {'u', DType::u32}, {'u', DType::u64}, {'f', DType::f16},
    {'f', DType::f32},   {'f', DType::f64}, {'c', DType::c64}, {'c', DType::c128}};

// The header is a Python dict literal in one line: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }.
struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : left_(text) {}

  std::optional<Header> header() {
    Header h;
    bool descr = false, order = false, shape = false;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return std::nullopt;
      if (*key == "descr") {
        const auto value = quoted();
        if (!value) return std::nullopt;
        h.descr = *value;
        descr = true;
      } else if (*key == "fortran_order") {
        if (word("True")) h.fortran = true;
        else if (!word("False")) return std::nullopt;
        order = true;
      } else if (*key == "shape") {
        if (!tuple(h.shape)) return std::nullopt;
        shape = true;
      } else {
        return std::nullopt;
      }
      take(',');
    }
    if (!descr || !order || !shape) return std::nullopt;
    return h;
  }

 private:
  void skip() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  bool take(char c) {
    skip();
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (!left_.starts_with(w)) return false;
    left_.remove_prefix(w.size());
    return true;
  }
  std::optional<std::string> quoted() {
    skip();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return std::nullopt;
    const std::size_t end = left_.find(left_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }
  bool tuple(Shape& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip();
      std::int64_t extent = 0;
      std::size_t digits = 0;
      for (; digits < left_.size() && left_[digits] >= '0' && left_[digits] <= '9'; ++digits) {
        if (extent > (std::int64_t{1} << 56)) return false;
        extent = extent * 10 + (left_[digits] - '0');
      }
      if (digits == 0) return false;
      left_.remove_prefix(digits);
      shape.push_back(extent);
      take(',');
    }
    return true;
  }

  std::string_view left_;
};

/// Of elements of real dtypes, or parts of complex ones.
void swap_bytes(std::byte* data, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

}  // namespace vt::detail::npy

namespace vt {

Tensor load_npy(const std::string& path, CallSite where) {
  using namespace detail::npy;
  const auto refuse_it = [&](const std::string& why) { refuse("vt::load_npy", path, why, where); };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_it(errno ? std::strerror(errno) : "cannot be opened");
  std::array<char, 8> start{};
  file.read(start.data(), start.size());
  if (!file || std::string_view(start.data(), magic.size()) != magic) refuse_it("not a .npy file");
  const int version = start[6];
  if (version < 1 || version > 3)
    refuse_it("format version " + std::to_string(version) + " is not known");
  std::array<unsigned char, 4> length_bytes{};
  file.read(reinterpret_cast<char*>(length_bytes.data()), version == 1 ? 2 : 4);
  std::size_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length * 256 + length_bytes[i];
  if (!file || length > (std::size_t{1} << 20)) refuse_it("the header is cut off");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) refuse_it("the header is cut off");
  const auto header = Parser(text).header();
  if (!header)
    refuse_it("the header cannot be read: " +
              text.substr(0, std::min<std::size_t>(200, text.find_last_not_of(" \n") + 1)));

  const std::string& descr = header->descr;
  const Kind* kind = nullptr;
  if (descr.size() >= 3)
    for (const Kind& k : kinds)
      if (k.letter == descr[1] && std::to_string(size_of(k.dtype)) == descr.substr(2)) kind = &k;
  if (!kind) refuse_it("dtype " + descr + " is none of vt's");
  const std::size_t size = size_of(kind->dtype);

  if (!detail::addressable(kind->dtype, header->shape))
    refuse_it(detail::size_fault(kind->dtype, header->shape));
  const std::size_t bytes = static_cast<std::size_t>(header->shape.elements()) * size;
  const std::streamoff here = file.tellg();
  file.seekg(0, std::ios::end);
  const std::streamoff there = file.tellg();
  if (static_cast<std::uint64_t>(there - here) < bytes)
    refuse_it(std::to_string(there - here) + " bytes of data, " + std::to_string(bytes) +
              " wanted for " + name_of(kind->dtype) + header->shape.str());
  file.seekg(here);
  detail::BufferRef buffer = detail::allocate(bytes, "load_npy");
  file.read(buffer->as<char>(), static_cast<std::streamsize>(bytes));
  if (!file) refuse_it("reading failed");
  const bool little = descr[0] != '>';
  if (size > 1 && little != (std::endian::native == std::endian::little)) {
    const std::size_t part = size_of(real_dtype(kind->dtype));
    swap_bytes(buffer->as<std::byte>(), bytes / part, part);
  }
  if (kind->dtype == DType::bool_)
    for (std::size_t i = 0; i < bytes; ++i)
      buffer->as<std::uint8_t>()[i] = buffer->as<std::uint8_t>()[i] != 0;

  if (!header->fortran)
    return detail::from_buffer(std::move(buffer), detail::Aval(kind->dtype, header->shape));
  Shape reversed = header->shape;
  std::reverse(reversed.begin(), reversed.end());
  return transpose(detail::from_buffer(std::move(buffer), detail::Aval(kind->dtype, reversed)))
      .eval(where);
}

void save_npy(const std::string& path, const Tensor& t, CallSite where) {
  using namespace detail::npy;
  const auto refuse_it = [&](const std::string& why) { refuse("vt::save_npy", path, why, where); };
  const detail::BufferRef buffer = detail::value_of(t, where, "vt::save_npy");
  const Kind* kind = nullptr;
  for (const Kind& k : kinds)
    if (k.dtype == t.dtype()) kind = &k;
  if (!kind)
    refuse_it(std::string("NumPy has no ") + name_of(t.dtype()) + "; convert to f32 first");
  const std::size_t size = size_of(kind->dtype);
  std::string text = "{'descr': '";
  text += size == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  text += kind->letter + std::to_string(size) + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < t.rank(); ++axis)
    text += std::to_string(t.dim(axis)) + (t.rank() == 1 ? "," : axis + 1 < t.rank() ? ", " : "");
  text += "), }";
  // The data begin at a multiple of 64 bytes.
  const bool long_header = text.size() + 74 > 65535;
  const std::size_t fixed = magic.size() + 2 + (long_header ? 4 : 2);
  text.append(63 - (fixed + text.size()) % 64, ' ');
  text += '\n';
  std::string front(magic);
  front += long_header ? '\2' : '\1';
  front += '\0';
  for (std::size_t i = 0, n = text.size(); i < (long_header ? 4u : 2u); ++i, n >>= 8)
    front += static_cast<char>(n & 0xff);

  const std::string_view data(buffer->as<char>(), static_cast<std::size_t>(t.size()) * size);
  if (const int wrong = detail::write_file(path, {front, text, data}))
    refuse_it(std::strerror(wrong));
}

}  // namespace vt
