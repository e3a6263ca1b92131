// Keys of elements, rows of records made of them, and sorting one row. Internal to sort_kernel.cpp.
#pragma once

#include <cstdint>
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/graph.hpp"
#include "../../services/threads.hpp"

namespace vt::detail::sorting {

using Word = std::uint64_t;

constexpr std::size_t short_row = 48;            // insertion wins up to here
constexpr std::size_t worth_wide_digits = 1024;  // 2048 counters pay from here …
// … up to rows of so many bytes, whose digits go to as many places in the cache
constexpr std::size_t far_away = 4 << 20;

// --- keys ----------------------------------------------------------------------------------------

inline int key_bits(DType d) { return static_cast<int>(8 * size_of(d)); }

/// How a dtype's bits, read as an unsigned T, become a number that orders as the op does, and back.
/// One form for all dtypes of a
/// size: where there is no such thing as a NaN or a minus zero, their values are chosen so that
/// nothing changes.
template <class T>
struct KeyForm {
  static constexpr T all = static_cast<T>(~T{0});
  T sign = 0;        ///< the highest bit, where it is a sign
  T negative = 0;    ///< the bits of negative elements that are transposed over
  T infinity = all;  ///< magnitudes above it are NaN
  T minus_zero = 0;  ///< has the key of zero
  T flip = 0;        ///< descending: all bits
  bool is_lossy_at_zero = false;

  KeyForm(DType d, bool descending) {
    if (descending) flip = all;
    if (is_bool(d) || is_unsigned(d)) return;
    sign = negative = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
    if (!is_float(d)) return;
    negative = all;
    minus_zero = sign;
    is_lossy_at_zero = true;
    infinity = static_cast<T>(d == DType::f16    ? 0x7c00
                              : d == DType::bf16 ? 0x7f80
                              : d == DType::f32  ? 0x7f800000
                                                 : 0x7ff0000000000000);
  }
  bool is_nan(T element) const {
    return static_cast<T>(element & static_cast<T>(~sign)) > infinity;
  }
  T key(T element) const {
    T k = element ^ (element & sign ? negative : sign);
    k = is_nan(element) ? all : element == minus_zero ? sign : k;
    return k ^ flip;
  }
  /// Have elements of other bits the same key? NaN and −0 do.
  bool is_lossy(T element) const {
    return is_nan(element) | (is_lossy_at_zero & (element == minus_zero));
  }
  T element(T key) const {
    key ^= flip;
    return key ^ (key & sign ? sign : negative);
  }
};

/// One operand's part in the order. Keys are as wide as the records want them, and no narrower than
/// the elements.
template <class Key>
class Keys {
 public:
  Keys(DType dtype, bool descending) : dtype_(dtype), descending_(descending) {}

  /// Keys of the elements [begin, end) of a column whose neighbours are `stride` apart. Is one of
  /// them lossy?
  bool read(const void* column, std::int64_t stride, std::int64_t begin, std::int64_t end,
            Key* keys) const {
    unsigned lossy = 0;
    with_form([&](auto form, auto word) {
      using T = decltype(word);
      const T* in = static_cast<const T*>(column) + begin * stride;
      const std::int64_t n = end - begin;
      const auto read_one = [form, &lossy](T x) {
        lossy |= static_cast<unsigned>(form.is_lossy(x));
        return static_cast<Key>(form.key(x));
      };
      if (stride == 1)
        for (std::int64_t i = 0; i < n; ++i) keys[i] = read_one(in[i]);
      else
        for (std::int64_t i = 0; i < n; ++i) keys[i] = read_one(in[i * stride]);
    });
    return lossy != 0;
  }
  /// Keys of the elements at `places`; without a column, of the places themselves.
  void gather(const void* column, std::int64_t stride, const Word* places, std::int64_t n,
              Key* keys) const {
    with_form([&](auto form, auto word) {
      using T = decltype(word);
      const T* in = static_cast<const T*>(column);
      for (std::int64_t i = 0; i < n; ++i)
        keys[i] = static_cast<Key>(form.key(in ? in[static_cast<std::int64_t>(places[i]) * stride]
                                               : static_cast<T>(places[i])));
    });
  }
  /// Elements from their keys, none of which may be lossy.
  void write(const Key* keys, std::int64_t n, void* column, std::int64_t stride) const {
    with_form([&](auto form, auto word) {
      using T = decltype(word);
      T* out = static_cast<T*>(column);
      if (stride == 1)
        for (std::int64_t i = 0; i < n; ++i) out[i] = form.element(static_cast<T>(keys[i]));
      else
        for (std::int64_t i = 0; i < n; ++i)
          out[i * stride] = form.element(static_cast<T>(keys[i]));
    });
  }

 private:
  template <class F>
  void with_form(const F& f) const {
    switch (size_of(dtype_)) {
      case 1: return f(KeyForm<std::uint8_t>(dtype_, descending_), std::uint8_t{});
      case 2: return f(KeyForm<std::uint16_t>(dtype_, descending_), std::uint16_t{});
      case 4: return f(KeyForm<std::uint32_t>(dtype_, descending_), std::uint32_t{});
      default:
        if constexpr (sizeof(Key) == 8)
          f(KeyForm<std::uint64_t>(dtype_, descending_), std::uint64_t{});
    }
  }

  DType dtype_;
  bool descending_;
};

// --- records -------------------------------------------------------------------------------------

// Keys alone are records of their own. With the place that their element has in its row:
struct NarrowPlaced {  // keys of at most 32 bits, rows of at most 2^32 elements
  using Key = std::uint32_t;
  using Record = Word;
  static constexpr int most_bits = 32;
  static Word key(Record r) { return r & 0xffffffff; }
  static Word place(Record r) { return r >> 32; }
  static Record make(Word key, Word place) { return place << 32 | key; }
};
struct WideRecord {
  Word key, place;
};
struct WidePlaced {
  using Key = Word;
  using Record = WideRecord;
  static constexpr int most_bits = 64;
  static Word key(const Record& r) { return r.key; }
  static Word place(const Record& r) { return r.place; }
  static Record make(Word key, Word place) { return {key, place}; }
};

/// A record's key, which is in its lowest bits; `mask`: these bits.
inline Word key_of(Word record, Word mask) { return record & mask; }
inline Word key_of(const WideRecord& record, Word) { return record.key; }
inline Word mask_of(int bits) { return ~Word{0} >> (64 - bits); }

// --- one row -------------------------------------------------------------------------------------

template <class Record>
void insert(Record* a, std::size_t n, Word mask) {
  for (std::size_t i = 1; i < n; ++i) {
    const Record r = a[i];
    const Word key = key_of(r, mask);
    std::size_t j = i;
    for (; j > 0 && key < key_of(a[j - 1], mask); --j) a[j] = a[j - 1];
    a[j] = r;
  }
}

/// Stable, from the lowest digit to the highest; the result is in `a`, which may have changed
/// places with `b`.
template <int width, int digits, class Record>
void sort_digits(Record*& a, Record*& b, std::size_t n, Word mask) {
  constexpr std::size_t buckets = std::size_t{1} << width;
  const auto digit = [](Word key, int d) { return key >> (width * d) & (buckets - 1); };
  std::size_t counts[digits][buckets];
  std::memset(counts, 0, sizeof counts);
  for (std::size_t i = 0; i < n; ++i) {
    const Word key = key_of(a[i], mask);
    for (int d = 0; d < digits; ++d) ++counts[d][digit(key, d)];
  }
  for (int d = 0; d < digits; ++d) {
    std::size_t* next = counts[d];
    if (next[digit(key_of(a[0], mask), d)] == n) continue;  // all alike
    std::size_t sum = 0;
    for (std::size_t k = 0; k < buckets; ++k) {
      const std::size_t count = next[k];
      next[k] = sum;
      sum += count;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Record r = a[i];
      b[next[digit(key_of(r, mask), d)]++] = r;
    }
    Record* const other = a;
    a = b;
    b = other;
  }
}

/// The same with the row cut in blocks that threads share: within a digit's places, blocks follow
/// each other.
template <class Record>
void sort_digits_together(Record*& a, Record*& b, std::size_t n, int width, int bits,
                          std::int64_t blocks) {
  const std::size_t buckets = std::size_t{1} << width;
  Vec<std::size_t> counts(static_cast<std::size_t>(blocks) * buckets);
  const auto each_block = [&](const auto& f) {
    parallel_ranges(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t block = begin; block < static_cast<std::size_t>(end); ++block)
        f(counts.data() + block * buckets, block * n / static_cast<std::size_t>(blocks),
          (block + 1) * n / static_cast<std::size_t>(blocks));
    });
  };
  for (int low = 0; low < bits; low += width) {
    const Record* from = a;
    Record* to = b;
    const auto digit = [last = buckets - 1, mask = mask_of(bits), low](const Record& r) {
      return key_of(r, mask) >> low & last;
    };
    each_block([from, digit, buckets](std::size_t* own, std::size_t begin, std::size_t end) {
      std::memset(own, 0, buckets * sizeof(std::size_t));
      for (std::size_t i = begin; i < end; ++i) ++own[digit(from[i])];
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
    each_block([from, to, digit](std::size_t* own, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Record r = from[i];
        to[own[digit(r)]++] = r;
      }
    });
    b = a;
    a = to;
  }
}

/// `bits`: those that keys have. `blocks`: more than one if the calling thread has the others at
/// its service.
template <class Record>
void sort_row(Record*& a, Record*& b, std::size_t n, int bits, std::int64_t blocks = 1) {
  const Word mask = mask_of(bits);
  if (n <= short_row) return insert(a, n, mask);
  const bool wide = n >= worth_wide_digits && n * sizeof(Record) <= far_away;
  if (blocks > 1) return sort_digits_together(a, b, n, wide ? 11 : 8, bits, blocks);
  if (bits <= 16) return sort_digits<8, 2>(a, b, n, mask);
  if (sizeof(Record) == 4 || bits <= 32)
    return wide ? sort_digits<11, 3>(a, b, n, mask) : sort_digits<8, 4>(a, b, n, mask);
  if constexpr (sizeof(Record) > 4)
    wide ? sort_digits<11, 6>(a, b, n, mask) : sort_digits<8, 8>(a, b, n, mask);
}

}  // namespace vt::detail::sorting
