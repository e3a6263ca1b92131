// load_csv: tables of numbers from text.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include <vt/dataset.hpp>
#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/buffer.hpp"
#include "../base/convert.hpp"
#include "../record/node.hpp"

namespace vt {

namespace detail::csv_reader {

[[noreturn]] void refuse(const std::string& path, std::int64_t line, const std::string& what,
                         CallSite where) {
  fail(ErrorKind::io,
       "vt::load_csv: " + path + (line > 0 ? ":" + std::to_string(line) : std::string()) + ": " +
           what,
       where);
}

std::string content_of(const std::string& path, CallSite where) {
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

constexpr const char* spaces = " \t\r";

/// Without the spaces around it; a tab that separates fields is none.
std::string_view trimmed(std::string_view text, const char* blank = spaces) {
  const auto first = text.find_first_not_of(blank);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// What some programs write around every field.
std::string_view without_quotes(std::string_view field) {
  const bool quoted = field.size() > 1 && field.front() == '"' && field.back() == '"';
  return quoted ? trimmed(field.substr(1, field.size() - 2)) : field;
}

/// The start of a field, as a message may hold it.
std::string quotable(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string shown(text.substr(0, most));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() > most ? shown + "…" : shown;
}

/// A field of the file, for messages.
struct Field {
  std::string_view text;
  const std::string& path;
  std::int64_t line, column;
  CallSite where;
  [[noreturn]] void refuse(const std::string& why) const {
    csv_reader::refuse(
        path, line, formatted("column {} is \"{}\", which {}", column, quotable(text), why), where);
  }
};

/// ± 0.digits · 10^point: what the text of a number says, without zeros at either end. Infinities
/// and NaNs have no digits.
struct Decimal {
  std::string digits;
  std::int64_t point = 0;

  Decimal(const char* begin, const char* end) {
    bool fraction = false;
    const char* p = begin + (begin != end && *begin == '-');
    for (; p != end && *p != 'e' && *p != 'E'; ++p) {
      if (*p == '.') fraction = true;
      if (*p < '0' || *p > '9') continue;
      if (*p != '0' || !digits.empty()) digits += *p;
      if (fraction ? digits.empty() : !digits.empty()) point += fraction ? -1 : 1;
    }
    if (p != end) point += exponent(p + 1, end);
    digits.resize(digits.find_last_not_of('0') + 1);
  }

 private:
  static std::int64_t exponent(const char* p, const char* end) {
    const bool negative = p != end && *p == '-';
    std::int64_t value = 0;
    for (p += p != end && (*p == '-' || *p == '+'); p != end; ++p)
      if (value < std::int64_t{1} << 40) value = value * 10 + (*p - '0');
    return negative ? -value : value;
  }
};

double real(const char* begin, const char* end, const Field& field) {
  double value = 0;
  const auto read = std::from_chars(begin, end, value);
  // from_chars takes nan(123), too.
  if (read.ec == std::errc::invalid_argument || read.ptr != end || end[-1] == ')')
    field.refuse("is not a number");
  // an infinity or 0 is the nearest, which the standard leaves to its reader
  if (read.ec == std::errc::result_out_of_range) {
    value = Decimal(begin, end).point > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    if (*begin == '-') value = -value;
  }
  return value;
}

/// What integers are read as, before they become narrower ones; numbers of other dtypes are read as
/// f64.
DType wide_dtype(DType dtype) {
  return is_unsigned(dtype) ? u64 : is_signed_int(dtype) ? i64 : f64;
}

/// The bits of an integer that `dtype` holds, all digits of it; 1e3 and 2.0 are integers too.
std::uint64_t integer(const char* begin, const char* end, DType dtype, const Field& field) {
  const bool has_sign = is_signed_int(dtype), negative = begin != end && *begin == '-';
  const int bits = 8 * static_cast<int>(size_of(dtype)) - has_sign;
  const std::uint64_t positive = ~std::uint64_t{0} >> (64 - bits), most = !negative  ? positive
                                                                          : has_sign ? positive + 1
                                                                                     : 0;
  const bool finite = std::isfinite(real(begin, end, field)) ||
                      std::any_of(begin, end, [](char c) { return c >= '0' && c <= '9'; });
  const Decimal number(begin, end);
  const auto length = static_cast<std::int64_t>(number.digits.size());
  bool fits = finite && (length == 0 || (number.point >= length && number.point <= 20));
  std::uint64_t size = 0;
  for (std::int64_t i = 0; fits && length > 0 && i < number.point; ++i) {
    const std::uint64_t digit = i < length ? static_cast<std::uint64_t>(number.digits[i] - '0') : 0;
    fits = digit <= most && size <= (most - digit) / 10;
    size = size * 10 + digit;
  }
  if (!fits) field.refuse("does not fit " + std::string(name_of(dtype)));
  return negative ? 0 - size : size;
}

/// The bits of the number, in the wide dtype.
std::uint64_t number(const Field& field, DType dtype) {
  std::string_view digits = without_quotes(field.text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  const char *const begin = digits.data(), *const end = begin + digits.size();
  switch (wide_dtype(dtype)) {
    case i64:
    case u64: return integer(begin, end, dtype, field);
    default: return std::bit_cast<std::uint64_t>(real(begin, end, field));
  }
}

}  // namespace detail::csv_reader

Tensor load_csv(const std::string& path, CsvOptions options, CallSite where) {
  using namespace detail::csv_reader;
  const std::string text = content_of(path, where);
  const char* const blank = options.separator == '\t' ? " \r" : spaces;
  Vec<std::uint64_t> values;  // bits
  std::int64_t rows = 0, columns = options.columns, line = 0;
  bool header = options.header;
  std::string_view rest = text;
  // the byte order mark of UTF-8, which spreadsheets write
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    std::string_view row = trimmed(rest.substr(0, end), blank);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line;
    if (row.empty()) continue;
    if (std::exchange(header, false)) continue;
    std::int64_t count = 0;
    for (bool more = true; more;) {
      const auto separator = row.find(options.separator);
      more = separator != std::string_view::npos;
      values.push_back(
          number({trimmed(row.substr(0, separator)), path, line, ++count, where}, options.dtype));
      if (more) row.remove_prefix(separator + 1);
    }
    if (columns == 0) columns = count;
    if (count != columns)
      refuse(path, line, detail::formatted("has {} columns where {} are needed", count, columns),
             where);
    ++rows;
  }
  if (rows == 0) refuse(path, 0, "has no rows", where);
  detail::BufferRef buffer = detail::allocate(values.size() * size_of(options.dtype), "load_csv");
  detail::convert_elements(values.data(), wide_dtype(options.dtype), buffer->data, options.dtype,
                           values.size());
  return detail::from_buffer(std::move(buffer), detail::Aval(options.dtype, Shape{rows, columns}));
}

}  // namespace vt
