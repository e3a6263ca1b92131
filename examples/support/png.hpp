// Pictures: an RGB canvas with blocks and small text, written as PNG.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace support {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

/// 0 is black, 1 is white.
inline Colour grey(double brightness) {
  const auto level = static_cast<std::uint8_t>(std::clamp(brightness, 0.0, 1.0) * 255.0 + 0.5);
  return {level, level, level};
}

/// −1 is blue, 0 is white, 1 is red.
inline Colour diverging(double value) {
  const double v = std::clamp(value, -1.0, 1.0);
  const auto fade = static_cast<std::uint8_t>(255.0 * (1.0 - std::abs(v)) + 0.5);
  return v >= 0 ? Colour{255, fade, fade} : Colour{fade, fade, 255};
}

namespace detail {

/// Deflate with the fixed Huffman code; matches are looked for one pixel to the left and one row
/// above only, which is where pictures made of blocks repeat themselves.
class Deflate {
 public:
  static std::vector<std::uint8_t> zlib(const std::vector<std::uint8_t>& data, std::size_t pixel,
                                        std::size_t stride) {
    Deflate writer;
    writer.bytes_ = {0x78, 0x01};
    writer.bits(1, 1);  // the last block …
    writer.bits(1, 2);  // … in the fixed code
    for (std::size_t at = 0; at < data.size();) {
      std::size_t length = 0, distance = 0;
      for (const std::size_t candidate : {pixel, stride}) {
        const std::size_t found = match_length(data, at, candidate);
        if (found > length) length = found, distance = candidate;
      }
      if (length >= 3) {
        writer.match(length, distance);
        at += length;
      } else {
        writer.symbol(data[at++]);
      }
    }
    writer.symbol(256);
    writer.flush();
    std::uint32_t a = 1, b = 0;  // Adler-32
    for (const std::uint8_t byte : data) {
      a = (a + byte) % 65521;
      b = (b + a) % 65521;
    }
    for (const std::uint32_t part : {b >> 8, b, a >> 8, a})
      writer.bytes_.push_back(static_cast<std::uint8_t>(part));
    return writer.bytes_;
  }

 private:
  static std::size_t match_length(const std::vector<std::uint8_t>& data, std::size_t at,
                                  std::size_t distance) {
    if (distance > at || distance > 32768) return 0;
    std::size_t length = 0;
    while (length < 258 && at + length < data.size() &&
           data[at + length] == data[at + length - distance])
      ++length;
    return length;
  }
  void bits(std::uint32_t value, int count) {
    pending_ |= static_cast<std::uint64_t>(value) << held_;
    held_ += count;
    while (held_ >= 8) {
      bytes_.push_back(static_cast<std::uint8_t>(pending_));
      pending_ >>= 8;
      held_ -= 8;
    }
  }
  void flush() {
    if (held_ > 0) bits(0, 8 - held_);
  }
  /// Huffman codes go out with their highest bit first.
  void code(std::uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) bits((value >> i) & 1u, 1);
  }
  void symbol(std::uint32_t s) {
    if (s < 144) code(0x30 + s, 8);
    else if (s < 256) code(0x190 + s - 144, 9);
    else if (s < 280) code(s - 256, 7);
    else code(0xC0 + s - 280, 8);
  }
  void match(std::size_t length, std::size_t distance) {
    static constexpr std::array<std::uint16_t, 29> lengths = {
        3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    std::size_t row = lengths.size() - 1;
    while (lengths[row] > length) --row;
    symbol(static_cast<std::uint32_t>(257 + row));
    if (row >= 8 && row < 28)
      bits(static_cast<std::uint32_t>(length - lengths[row]), static_cast<int>(row / 4 - 1));
    // Distances: two codes for every power of two.
    std::uint32_t base = 1, distance_code = 0;
    int extra = 0;
    while (distance >= base + (1u << extra)) {
      base += 1u << extra;
      ++distance_code;
      extra = distance_code < 2 ? 0 : static_cast<int>(distance_code / 2 - 1);
    }
    code(distance_code, 5);
    bits(static_cast<std::uint32_t>(distance) - base, extra);
  }

  std::vector<std::uint8_t> bytes_;
  std::uint64_t pending_ = 0;
  int held_ = 0;
};

inline std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = 0xffffffffu;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? 0xedb88320u : 0u);
  }
  return ~crc;
}

/// Rows of 3×5 points for the characters that captions need.
inline std::array<std::uint8_t, 5> glyph(char c) {
  static constexpr std::string_view known = "0123456789.>-abcdefghijklmnopqrstuvwxyz";
  static constexpr std::array<std::array<std::uint8_t, 5>, 39> shapes = {
      {{7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7}, {5, 5, 7, 1, 1},
       {7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 1, 2, 2}, {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7},
       {0, 0, 0, 0, 2}, {4, 2, 1, 2, 4}, {0, 0, 7, 0, 0}, {2, 5, 7, 5, 5}, {6, 5, 6, 5, 6},
       {3, 4, 4, 4, 3}, {6, 5, 5, 5, 6}, {7, 4, 6, 4, 7}, {7, 4, 6, 4, 4}, {3, 4, 5, 5, 3},
       {5, 5, 7, 5, 5}, {7, 2, 2, 2, 7}, {1, 1, 1, 5, 2}, {5, 5, 6, 5, 5}, {4, 4, 4, 4, 7},
       {5, 7, 7, 5, 5}, {6, 5, 5, 5, 5}, {2, 5, 5, 5, 2}, {6, 5, 6, 4, 4}, {2, 5, 5, 6, 3},
       {6, 5, 6, 5, 5}, {3, 4, 2, 1, 6}, {7, 2, 2, 2, 2}, {5, 5, 5, 5, 7}, {5, 5, 5, 2, 2},
       {5, 5, 7, 7, 5}, {5, 5, 2, 5, 5}, {5, 5, 2, 2, 2}, {7, 1, 2, 4, 7}}};
  const auto at = known.find(c);
  return at == std::string_view::npos ? std::array<std::uint8_t, 5>{} : shapes[at];
}

}  // namespace detail

class Picture {
 public:
  Picture(int width, int height, Colour background = {255, 255, 255})
      : width_(width),
        height_(height),
        pixels_(static_cast<std::size_t>(width) * height, background) {}

  int width() const { return width_; }
  int height() const { return height_; }

  void block(int left, int top, int width, int height, Colour colour) {
    for (int y = std::max(top, 0); y < std::min(top + height, height_); ++y)
      for (int x = std::max(left, 0); x < std::min(left + width, width_); ++x)
        pixels_[static_cast<std::size_t>(y) * width_ + x] = colour;
  }
  /// A line of squares of `size` points between the middles of two points.
  void line(int x0, int y0, int x1, int y1, int size, Colour colour) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i)
      block(x0 + (x1 - x0) * i / steps - size / 2, y0 + (y1 - y0) * i / steps - size / 2, size,
            size, colour);
  }
  /// `rows`×`columns` cells of `scale` points each; `colour(row, column)` gives a cell's colour.
  template <class ColourOf>
  void cells(int left, int top, int rows, int columns, int scale, ColourOf colour) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        block(left + c * scale, top + r * scale, scale, scale, colour(r, c));
  }
  /// Numerals, small letters, '.', '-' and '>' (an arrow) in points of `scale`.
  void caption(int left, int top, std::string_view text, int scale = 2, Colour colour = {0, 0, 0}) {
    for (const char c : text) {
      const auto rows = detail::glyph(c);
      for (int r = 0; r < 5; ++r)
        for (int x = 0; x < 3; ++x)
          if (rows[r] & (4 >> x)) block(left + x * scale, top + r * scale, scale, scale, colour);
      left += 4 * scale;
    }
  }

  void write_png(const std::string& path) const {
    std::vector<std::uint8_t> raw;  // per row: filter 0, then the points
    for (int y = 0; y < height_; ++y) {
      raw.push_back(0);
      for (int x = 0; x < width_; ++x) {
        const Colour c = pixels_[static_cast<std::size_t>(y) * width_ + x];
        raw.insert(raw.end(), {c.red, c.green, c.blue});
      }
    }
    std::vector<std::uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    std::vector<std::uint8_t> header;
    for (const int extent : {width_, height_})
      for (int shift = 24; shift >= 0; shift -= 8)
        header.push_back(static_cast<std::uint8_t>(extent >> shift));
    header.insert(header.end(), {8, 2, 0, 0, 0});  // 8 bits, RGB
    append_chunk(file, "IHDR", header);
    append_chunk(file, "IDAT",
                 detail::Deflate::zlib(raw, 3, static_cast<std::size_t>(width_) * 3 + 1));
    append_chunk(file, "IEND", {});
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
    out.close();
    if (!out) throw std::runtime_error(path + ": cannot be written");
  }

 private:
  static void append_chunk(std::vector<std::uint8_t>& file, std::string_view type,
                           const std::vector<std::uint8_t>& body) {
    const auto number = [&](std::uint32_t value) {
      for (int shift = 24; shift >= 0; shift -= 8)
        file.push_back(static_cast<std::uint8_t>(value >> shift));
    };
    number(static_cast<std::uint32_t>(body.size()));
    const std::size_t start = file.size();
    file.insert(file.end(), type.begin(), type.end());
    file.insert(file.end(), body.begin(), body.end());
    number(detail::crc32(file.data() + start, file.size() - start));
  }

  int width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace support
