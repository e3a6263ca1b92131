// Reads tables of numbers; every complaint is an InputError that names file and row.
#pragma once

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace support {

/// Bad input: one line, "file:row: what is wrong". Programs print it and exit with code 2.
struct InputError : std::runtime_error {
  InputError(const std::string& file, std::size_t row, const std::string& what)
      : std::runtime_error(file + ":" + std::to_string(row) + ": " + what) {}
};

/// Numbers in rows of one length, row-major, with the line of the file that each row came from.
struct Table {
  std::vector<double> values;
  std::vector<std::size_t> lines;
  std::size_t columns = 0;
  std::size_t rows() const { return lines.size(); }
  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

enum class Header { none, optional };

namespace detail {
inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

inline bool parse(std::string_view field, double& value) {
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc() && end == field.data() + field.size() && std::isfinite(value);
}

inline std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t start = 0;;) {
    const auto comma = line.find(',', start);
    fields.push_back(
        trimmed(line.substr(start, comma == std::string_view::npos ? comma : comma - start)));
    if (comma == std::string_view::npos) return fields;
    start = comma + 1;
  }
}
}  // namespace detail

/// Reads comma-separated numbers. `columns`: how many each row must have, 0 for as many as the
/// first one. With Header::optional a first row without a single number is skipped.
inline Table read_csv(const std::string& path, std::size_t columns = 0,
                      Header header = Header::none) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, 1, std::string("cannot be opened: ") + std::strerror(errno));
  Table table;
  table.columns = columns;
  std::string line;
  std::size_t blank_row = 0;
  for (std::size_t row = 1; std::getline(file, line); ++row) {
    if (row == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (detail::trimmed(line).empty()) {
      if (blank_row == 0) blank_row = row;
      continue;  // blank lines may end a file, not interrupt it
    }
    if (blank_row != 0) throw InputError(path, blank_row, "empty row");
    const auto fields = detail::fields_of(line);
    if (header == Header::optional && row == 1) {
      bool any_number = false;
      for (double ignored; const auto field : fields) any_number |= detail::parse(field, ignored);
      if (!any_number) {
        if (columns != 0 && fields.size() != columns)
          throw InputError(
              path, row,
              std::to_string(fields.size()) + " columns instead of " + std::to_string(columns));
        continue;
      }
    }
    if (table.columns == 0) table.columns = fields.size();
    if (fields.size() != table.columns)
      throw InputError(
          path, row,
          std::to_string(fields.size()) + " columns instead of " + std::to_string(table.columns));
    for (std::size_t column = 0; column < fields.size(); ++column) {
      double value = 0;
      if (!detail::parse(fields[column], value))
        throw InputError(path, row,
                         "column " + std::to_string(column + 1) + " is not a number: '" +
                             std::string(fields[column]) + "'");
      table.values.push_back(value);
    }
    table.lines.push_back(row);
  }
  if (file.bad() || table.rows() == 0)
    throw InputError(path, blank_row ? blank_row : 1,
                     file.bad() ? "cannot be read" : "no rows of numbers: the file is empty");
  return table;
}

/// Runs a program's body; bad input becomes one line on stderr and exit code 2, any other error
/// code 1.
template <class Body>
int run(const char* name, Body body) {
  try {
    return body();
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace support
