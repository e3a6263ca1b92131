// Rows of keys, with or without their elements' places, and sorting one of them. Internal to sort_kernel.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "../trace/graph.hpp"
#include "threads.hpp"

namespace vt::detail::sorting {

using Word = std::uint64_t;

constexpr std::size_t short_row = 48;            // insertion wins up to here
constexpr std::size_t worth_wide_digits = 1024;  // 2048 counters pay from here …
constexpr std::size_t far_away = 4 << 20;        // … up to rows of so many bytes, whose digits go to as many places in the cache

/// How a dtype's bits, read as an unsigned T, become a number that orders as the op does, and back.
template <class T, bool real>
struct KeyForm {
  T sign = 0, infinity = 0, flip = 0;  ///< flip, descending: all bits
  static constexpr T all = static_cast<T>(~T{0});

  KeyForm(DType d, bool descending) {
    if (!is_bool(d) && !is_unsigned(d)) sign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
    if (d == DType::f16) infinity = static_cast<T>(0x7c00);
    if (d == DType::bf16) infinity = static_cast<T>(0x7f80);
    if (d == DType::f32) infinity = static_cast<T>(0x7f800000);
    if (d == DType::f64) infinity = static_cast<T>(0x7ff0000000000000);
    if (descending) flip = all;
  }
  T key(T element) const {
    if constexpr (!real) return element ^ sign ^ flip;
    else {
      const T magnitude = element & static_cast<T>(~sign);
      T k = element ^ (element & sign ? all : sign);
      k = magnitude > infinity ? all : magnitude == 0 ? sign : k;
      return k ^ flip;
    }
  }
  /// Have elements of other bits the same key? NaN and −0 do.
  bool is_lossy(T element) const {
    if constexpr (!real) return false;
    else return (static_cast<T>(element & static_cast<T>(~sign)) > infinity) | (element == sign);
  }
  T element(T key) const {
    key ^= flip;
    if constexpr (!real) return key ^ sign;
    else return key ^ (key & sign ? sign : all);
  }
};
/// Calls f with the form of a dtype's keys and a zero of the type it takes.
template <class F>
void with_form(DType d, bool descending, const F& f) {
  switch (d) {
    case DType::f16:
    case DType::bf16: return f(KeyForm<std::uint16_t, true>(d, descending), std::uint16_t{});
    case DType::f32: return f(KeyForm<std::uint32_t, true>(d, descending), std::uint32_t{});
    case DType::f64: return f(KeyForm<std::uint64_t, true>(d, descending), std::uint64_t{});
    default: break;
  }
  switch (size_of(d)) {
    case 1: return f(KeyForm<std::uint8_t, false>(d, descending), std::uint8_t{});
    case 2: return f(KeyForm<std::uint16_t, false>(d, descending), std::uint16_t{});
    case 4: return f(KeyForm<std::uint32_t, false>(d, descending), std::uint32_t{});
    default: return f(KeyForm<std::uint64_t, false>(d, descending), std::uint64_t{});
  }
}
inline int key_bits(DType d) { return static_cast<int>(8 * size_of(d)); }

// What is sorted: keys alone, or keys with the place their element has in its row.
struct Narrow {
  using Record = std::uint32_t;
  static Word key(Record r) { return r; }
  static Word place(Record) { return 0; }
  static Record make(Word key, Word) { return static_cast<Record>(key); }
};
struct Wide {
  using Record = Word;
  static Word key(Record r) { return r; }
  static Word place(Record) { return 0; }
  static Record make(Word key, Word) { return key; }
};
struct NarrowPlaced {  // keys of at most 32 bits, rows of at most 2^32 elements
  using Record = Word;
  static constexpr int most_bits = 32;
  static Word key(Record r) { return r >> 32; }
  static Word place(Record r) { return r & 0xffffffff; }
  static Record make(Word key, Word place) { return key << 32 | place; }
};
struct WidePlaced {
  struct Record {
    Word key, place;
  };
  static constexpr int most_bits = 64;
  static Word key(const Record& r) { return r.key; }
  static Word place(const Record& r) { return r.place; }
  static Record make(Word key, Word place) { return {key, place}; }
};

// --- one row ---------------------------------------------------------------------------------------------------------

template <class P>
void insert(typename P::Record* a, std::size_t n) {
  for (std::size_t i = 1; i < n; ++i) {
    const auto r = a[i];
    const Word key = P::key(r);
    std::size_t j = i;
    for (; j > 0 && key < P::key(a[j - 1]); --j) a[j] = a[j - 1];
    a[j] = r;
  }
}

template <int width>
Word digit(Word key, int d) {
  return key >> (width * d) & ((Word{1} << width) - 1);
}

/// Stable, from the lowest digit to the highest; the result is in `a`, which may have changed places with `b`.
template <class P, int width, int digits>
void sort_digits(typename P::Record*& a, typename P::Record*& b, std::size_t n) {
  constexpr std::size_t buckets = std::size_t{1} << width;
  std::size_t counts[digits][buckets];
  std::memset(counts, 0, sizeof counts);
  for (std::size_t i = 0; i < n; ++i) {
    const Word key = P::key(a[i]);
    for (int d = 0; d < digits; ++d) ++counts[d][digit<width>(key, d)];
  }
  for (int d = 0; d < digits; ++d) {
    std::size_t* next = counts[d];
    if (next[digit<width>(P::key(a[0]), d)] == n) continue;  // all alike
    std::size_t sum = 0;
    for (std::size_t k = 0; k < buckets; ++k) {
      const std::size_t count = next[k];
      next[k] = sum;
      sum += count;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto r = a[i];
      b[next[digit<width>(P::key(r), d)]++] = r;
    }
    auto* const other = a;
    a = b;
    b = other;
  }
}

/// The same with the row cut in blocks that threads share: within a digit's places, blocks follow each other.
template <class P, int width>
void sort_digits_together(typename P::Record*& a, typename P::Record*& b, std::size_t n, int bits, std::int64_t blocks) {
  constexpr std::size_t buckets = std::size_t{1} << width;
  std::vector<std::size_t> counts(static_cast<std::size_t>(blocks) * buckets);
  const auto bound = [&](std::int64_t block) { return static_cast<std::size_t>(block) * n / static_cast<std::size_t>(blocks); };
  for (int d = 0; d * width < bits; ++d) {
    auto *from = a, *to = b;
    const auto each_block = [&](auto f) {
      parallel_ranges(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = begin; block < end; ++block)
          f(counts.data() + static_cast<std::size_t>(block) * buckets, bound(block), bound(block + 1));
      });
    };
    each_block([from, d](std::size_t* own, std::size_t begin, std::size_t end) {
      std::memset(own, 0, buckets * sizeof(std::size_t));
      for (std::size_t i = begin; i < end; ++i) ++own[digit<width>(P::key(from[i]), d)];
    });
    std::size_t sum = 0;
    bool alike = false;
    for (std::size_t k = 0; k < buckets; ++k) {
      const std::size_t before = sum;
      for (std::int64_t block = 0; block < blocks; ++block) {
        std::size_t& next = counts[static_cast<std::size_t>(block) * buckets + k];
        const std::size_t count = next;
        next = sum;
        sum += count;
      }
      alike = alike || sum - before == n;
    }
    if (alike) continue;
    each_block([from, to, d](std::size_t* own, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto r = from[i];
        to[own[digit<width>(P::key(r), d)]++] = r;
      }
    });
    a = to;
    b = from;
  }
}

/// `bits`: those that keys have. `blocks`: more than one if the calling thread has the others at its service.
template <class P>
void sort_row(typename P::Record*& a, typename P::Record*& b, std::size_t n, int bits, std::int64_t blocks = 1) {
  if (n <= short_row) return insert<P>(a, n);
  const bool wide = n >= worth_wide_digits && n * sizeof(typename P::Record) <= far_away;
  if (blocks > 1) return wide ? sort_digits_together<P, 11>(a, b, n, bits, blocks) : sort_digits_together<P, 8>(a, b, n, bits, blocks);
  if (bits <= 8) sort_digits<P, 8, 1>(a, b, n);
  else if (bits <= 16) sort_digits<P, 8, 2>(a, b, n);
  else if (bits <= 32) wide ? sort_digits<P, 11, 3>(a, b, n) : sort_digits<P, 8, 4>(a, b, n);
  else wide ? sort_digits<P, 11, 6>(a, b, n) : sort_digits<P, 8, 8>(a, b, n);
}

}  // namespace vt::detail::sorting
