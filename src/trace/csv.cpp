// load_csv: tables of numbers from text.
#include <charconv>
#include <cstdio>
#include <cstring>

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

double number(std::string_view field, const std::string& path, std::int64_t line, std::int64_t column, Where where) {
  std::string_view digits = without_quotes(field);
  if (digits.size() > 1 && digits[0] == '+') digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  double value = 0;
  auto read = std::from_chars(digits.data(), end, value);
  if (read.ec == std::errc::result_out_of_range) {  // an infinity or 0 is the nearest, which the standard leaves to its reader
    long double wide = 0;
    read = std::from_chars(digits.data(), end, wide);
    value = static_cast<double>(wide);
  }
  if (read.ec == std::errc::result_out_of_range) refuse(path, line, worded("column {} is \"{}\", which no f64 is near", column, field), where);
  if (read.ec != std::errc() || read.ptr != end) refuse(path, line, worded("column {} is \"{}\", which is not a number", column, field), where);
  return value;
}

}  // namespace detail::csv_reader

Tensor load_csv(const std::string& path, CsvOptions options, Where where) {
  using namespace detail::csv_reader;
  const std::string text = content_of(path, where);
  Vec<double> values;
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
      values.push_back(number(trimmed(row.substr(0, separator)), path, line, ++count, where));
      if (more) row.remove_prefix(separator + 1);
    }
    if (columns == 0) columns = count;
    if (count != columns) refuse(path, line, detail::worded("has {} columns where {} are needed", count, columns), where);
    ++rows;
  }
  if (rows == 0) refuse(path, 0, "has no rows", where);
  detail::BufferRef buffer = detail::allocate(values.size() * size_of(options.dtype), "load_csv");
  detail::convert_elements(values.data(), f64, buffer->data, options.dtype, values.size());
  return detail::from_buffer(std::move(buffer), detail::Aval(options.dtype, Shape{rows, columns}));
}

}  // namespace vt
