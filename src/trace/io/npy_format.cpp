// Reads and makes headers of .npy files, and reads their data.
#include "npy_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace vt::detail::npy {

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
      const auto key = text();
      if (!key || !take(':')) return std::nullopt;
      if (*key == "descr" && !std::exchange(descr, true)) {
        const auto value = text();
        if (!value) return std::nullopt;
        h.descr = *value;
      } else if (*key == "fortran_order" && !std::exchange(order, true)) {
        if (word("True")) h.fortran = true;
        else if (!word("False")) return std::nullopt;
      } else if (*key == "shape" && !std::exchange(shape, true)) {
        if (!tuple(h.shape)) return std::nullopt;
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
  std::optional<std::string> text() {
    skip();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return std::nullopt;
    const std::size_t end = left_.find(left_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string between(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return between;
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
      if (left_.starts_with('L')) left_.remove_prefix(1);  // as Python 2 wrote some
      shape.push_back(extent);
      take(',');
    }
    return true;
  }

  std::string_view left_;
};

template <class Word>
void swap_words(void* data, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  for (std::byte* const end = at + bytes; at != end; at += sizeof(Word)) {
    Word w;
    std::memcpy(&w, at, sizeof w);
    if constexpr (sizeof(Word) == 2) w = __builtin_bswap16(w);
    else if constexpr (sizeof(Word) == 4) w = __builtin_bswap32(w);
    else w = __builtin_bswap64(w);
    std::memcpy(at, &w, sizeof w);
  }
}

/// The byte order of real numbers, or of the parts of complex ones.
void swap_bytes(void* data, std::size_t bytes, std::size_t size) {
  if (size == 2) swap_words<std::uint16_t>(data, bytes);
  if (size == 4) swap_words<std::uint32_t>(data, bytes);
  if (size == 8) swap_words<std::uint64_t>(data, bytes);
}

/// Elements of `size` bytes in C order from those in Fortran's: planes of the first axis, which
/// lies dense there, and the last one, which lies dense here, tile by tile.
template <std::size_t size>
void to_rows(const std::byte* from, std::byte* to, const Shape& shape) {
  constexpr std::int64_t tile = 32;
  const std::size_t last = shape.size() - 1;
  const std::int64_t rows = shape[0], columns = shape[last], all = shape.elements();
  const std::int64_t from_step = all / columns, to_step = all / rows;
  const auto bytes = [](std::int64_t elements) {
    return static_cast<std::ptrdiff_t>(elements * static_cast<std::int64_t>(size));
  };
  Shape index = Shape::filled(shape.size(), 0);
  for (std::int64_t plane = all / rows / columns; plane > 0; --plane) {
    std::int64_t source = 0, target = 0, step = rows;
    for (std::size_t axis = 1; axis < last; ++axis) {
      source += index[axis] * step;
      target = target * shape[axis] + index[axis];
      step *= shape[axis];
    }
    const std::byte* const a = from + bytes(source);
    std::byte* const b = to + bytes(target * columns);
    for (std::int64_t top = 0; top < rows; top += tile)
      for (std::int64_t left = 0; left < columns; left += tile)
        for (std::int64_t i = top; i < std::min(top + tile, rows); ++i)
          for (std::int64_t j = left; j < std::min(left + tile, columns); ++j)
            std::memcpy(b + bytes(i * to_step + j), a + bytes(i + j * from_step), size);
    for (std::size_t axis = last; axis-- > 1 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
}

BufferRef rows_first(BufferRef columns, const Aval& aval) {
  const auto is_wide = [](std::int64_t extent) { return extent != 1; };
  if (aval.elements() == 0 || std::count_if(aval.shape.begin(), aval.shape.end(), is_wide) < 2)
    return columns;
  BufferRef rows = allocate(aval.bytes(), "array of a .npy file");
  const auto turn = [&](auto size) {
    to_rows<size()>(columns->as<std::byte>(), rows->as<std::byte>(), aval.shape);
  };
  switch (size_of(aval.dtype)) {
    case 1: turn(std::integral_constant<std::size_t, 1>()); break;
    case 2: turn(std::integral_constant<std::size_t, 2>()); break;
    case 4: turn(std::integral_constant<std::size_t, 4>()); break;
    case 8: turn(std::integral_constant<std::size_t, 8>()); break;
    default: turn(std::integral_constant<std::size_t, 16>()); break;
  }
  return rows;
}

ArrayHeader read_header(ByteSource& source, const FileUse& use) {
  std::array<char, 12> front{};
  const auto take = [&](void* to, std::size_t count) {
    if (source.left() < count) use.refuse("the header is cut off");
    source.read(to, count);
  };
  if (source.left() < 8) use.refuse("not a .npy file");
  source.read(front.data(), 8);
  if (std::string_view(front.data(), 4) == "PK\3\4")
    use.refuse("not a .npy file, but a zip archive: .npz files are read by vt::load_npz");
  if (std::string_view(front.data(), magic.size()) != magic) use.refuse("not a .npy file");
  const int version = static_cast<unsigned char>(front[6]);
  if (version < 1 || version > 3)
    use.refuse("format version " + std::to_string(version) + " is not known");
  std::array<unsigned char, 4> length_bytes{};
  take(length_bytes.data(), version == 1 ? 2 : 4);
  std::size_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length * 256 + length_bytes[i];
  if (length > (std::size_t{1} << 20))
    use.refuse("a header of " + std::to_string(length) + " bytes");
  std::string text(std::min<std::uint64_t>(length, source.left()), '\0');
  take(text.data(), length);
  const auto header = Parser(text).header();
  if (!header)
    use.refuse("the header cannot be read: " +
               text.substr(0, std::min<std::size_t>(200, text.find_last_not_of(" \n") + 1)));

  const std::string& descr = header->descr;
  const Kind* kind = nullptr;
  if (descr.size() >= 3)
    for (const Kind& k : kinds)
      if (k.letter == descr[1] && std::to_string(size_of(k.dtype)) == descr.substr(2)) kind = &k;
  if (!kind || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    use.refuse("dtype " + descr + " is none of vt's");
  if (!addressable(kind->dtype, header->shape)) use.refuse(size_fault(kind->dtype, header->shape));
  constexpr bool here_little = std::endian::native == std::endian::little;
  return {Aval(kind->dtype, header->shape), header->fortran, descr[0] == (here_little ? '>' : '<')};
}

void check_length(const ByteSource& source, const ArrayHeader& header, const FileUse& use) {
  if (source.left() < header.aval.bytes())
    use.refuse(std::to_string(source.left()) + " bytes of data, " +
               std::to_string(header.aval.bytes()) + " wanted for " + header.aval.str());
}

Tensor from_data(BufferRef buffer, const Aval& aval, const ArrayHeader& header) {
  const std::size_t bytes = aval.bytes();
  if (header.foreign_endian) swap_bytes(buffer->data, bytes, size_of(real_dtype(aval.dtype)));
  if (aval.dtype == DType::bool_)
    for (std::size_t i = 0; i < bytes; ++i)
      buffer->as<std::uint8_t>()[i] = buffer->as<std::uint8_t>()[i] != 0;
  if (header.columns_first) buffer = rows_first(std::move(buffer), aval);
  return from_buffer(std::move(buffer), aval);
}

Tensor read_data(ByteSource& source, const ArrayHeader& header, const FileUse& use) {
  check_length(source, header, use);
  BufferRef buffer = allocate(header.aval.bytes(), "array of a .npy file");
  source.read(buffer->data, header.aval.bytes());
  return from_data(std::move(buffer), header.aval, header);
}

std::string header_of(const Aval& aval, const FileUse& use) {
  const Kind* kind = nullptr;
  for (const Kind& k : kinds)
    if (k.dtype == aval.dtype) kind = &k;
  if (!kind)
    use.refuse(std::string("NumPy has no ") + name_of(aval.dtype) + "; convert to f32 first");
  const std::size_t size = size_of(kind->dtype);
  std::string text = "{'descr': '";
  text += size == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  text += kind->letter + std::to_string(size) + "', 'fortran_order': False, 'shape': (";
  const int rank = aval.shape.rank();
  for (int axis = 0; axis < rank; ++axis)
    text += std::to_string(aval.shape[axis]) + (rank == 1 ? "," : axis + 1 < rank ? ", " : "");
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
  return front + text;
}

std::string_view data_of(const BufferRef& buffer, const Aval& aval) {
  return {buffer->as<char>(), aval.bytes()};
}

}  // namespace vt::detail::npy
