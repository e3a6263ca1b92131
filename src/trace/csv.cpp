// load_csv: tables of numbers from text.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include <vt/dataset.hpp>
#include <vt/detail/message.hpp>
#include <vt/small_vec.hpp>

#include "buffer.hpp"
#include "convert.hpp"
#include "node.hpp"

namespace vt {

namespace detail::csv_reader {

[[noreturn]] void refuse(const std::string& path, std::int64_t line, const std::string& what, Where where) {
  fail(ErrorKind::io, "vt::load_csv: " + path + (line > 0 ? ":" + std::to_string(line) : std::string()) + ": " + what, where);
}

std::string content_of(const std::string& path, Where where) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) refuse(path, 0, std::strerror(errno), where);
  std::string text;
  char block[1 << 16];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file)) text.append(block, n);
  const bool bad = std::ferror(file) != 0;
  std::fclose(file);
  if (bad) refuse(path, 0, "cannot be read", where);
  return text;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// What some programs write around every field.
std::string_view without_quotes(std::string_view field) {
  const bool quoted = field.size() > 1 && field.front() == '"' && field.back() == '"';
  return quoted ? trimmed(field.substr(1, field.size() - 2)) : field;
}

/// A field of the file, for messages.
struct Field {
  std::string_view text;
  const std::string& path;
  std::int64_t line, column;
  Where where;
  [[noreturn]] void refuse(const std::string& why) const {
    csv_reader::refuse(path, line, worded("column {} is \"{}\", which {}", column, text, why), where);
  }
};

double real(const char* begin, const char* end, const Field& field) {
  double value = 0;
  auto read = std::from_chars(begin, end, value);
  if (read.ec == std::errc::result_out_of_range) {  // an infinity or 0 is the nearest, which the standard leaves to its reader
    long double wide = 0;
    read = std::from_chars(begin, end, wide);
    value = static_cast<double>(wide);
  }
  if (read.ec == std::errc::result_out_of_range) field.refuse("no f64 is near");
  if (read.ec != std::errc() || read.ptr != end) field.refuse("is not a number");
  return value;
}

/// What integers are read as, before they become narrower ones; numbers of other dtypes are read as f64.
DType wide_dtype(DType dtype) { return is_unsigned(dtype) ? u64 : is_signed_int(dtype) ? i64 : f64; }

/// The bits of an integer that `dtype` holds, all digits of it; 1e3 and 2.0 are integers too.
std::uint64_t integer(const char* begin, const char* end, DType dtype, const Field& field) {
  const bool has_sign = is_signed_int(dtype), negative = begin != end && *begin == '-';
  const int bits = 8 * static_cast<int>(size_of(dtype)) - has_sign;
  const std::uint64_t positive = ~std::uint64_t{0} >> (64 - bits), most = !negative ? positive : has_sign ? positive + 1 : 0;
  std::uint64_t size = 0;
  const char* p = begin + negative;
  bool plain = p != end, fits = true;
  for (; p != end && plain; ++p) {
    const auto digit = static_cast<std::uint64_t>(*p - '0');
    plain = *p >= '0' && *p <= '9';
    fits = fits && digit <= most && size <= (most - digit) / 10;
    size = size * 10 + digit;
  }
  if (!plain) {
    const double value = real(begin, end, field), limit = std::ldexp(1.0, bits);
    fits = std::trunc(value) == value && value < limit && value >= (has_sign ? -limit : 0);
    if (fits) size = static_cast<std::uint64_t>(std::abs(value));
  }
  if (!fits) field.refuse("does not fit " + std::string(name_of(dtype)));
  return negative ? 0 - size : size;
}

/// The bits of the number, in the wide dtype.
std::uint64_t number(const Field& field, DType dtype) {
  std::string_view digits = without_quotes(field.text);
  if (digits.size() > 1 && digits[0] == '+') digits.remove_prefix(1);
  const char *const begin = digits.data(), *const end = begin + digits.size();
  switch (wide_dtype(dtype)) {
    case i64:
    case u64: return integer(begin, end, dtype, field);
    default: return std::bit_cast<std::uint64_t>(real(begin, end, field));
  }
}

}  // namespace detail::csv_reader

Tensor load_csv(const std::string& path, CsvOptions options, Where where) {
  using namespace detail::csv_reader;
  const std::string text = content_of(path, where);
  Vec<std::uint64_t> values;  // bits
  std::int64_t rows = 0, columns = options.columns, line = 0;
  bool header = options.header;
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // the byte order mark of UTF-8, which spreadsheets write
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    std::string_view row = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line;
    if (row.empty()) continue;
    if (std::exchange(header, false)) continue;
    std::int64_t count = 0;
    for (bool more = true; more;) {
      const auto separator = row.find(options.separator);
      more = separator != std::string_view::npos;
      values.push_back(number({trimmed(row.substr(0, separator)), path, line, ++count, where}, options.dtype));
      if (more) row.remove_prefix(separator + 1);
    }
    if (columns == 0) columns = count;
    if (count != columns) refuse(path, line, detail::worded("has {} columns where {} are needed", count, columns), where);
    ++rows;
  }
  if (rows == 0) refuse(path, 0, "has no rows", where);
  detail::BufferRef buffer = detail::allocate(values.size() * size_of(options.dtype), "load_csv");
  detail::convert_elements(values.data(), wide_dtype(options.dtype), buffer->data, options.dtype, values.size());
  return detail::from_buffer(std::move(buffer), detail::Aval(options.dtype, Shape{rows, columns}));
}

}  // namespace vt
