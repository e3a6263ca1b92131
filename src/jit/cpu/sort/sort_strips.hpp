// Short rows sorted by networks, one row per SIMD lane, wherever the rows lie in memory. Internal
// to sort_kernel.cpp.
#pragma once

#include <algorithm>

#include "sort_kernel.hpp"
#include "sort_simd.hpp"

namespace vt::detail::sorting {

constexpr int place_bits = 6;  // of a short row

/// Is it cheaper to keep the best of a row than to sort it?
inline bool keeps_candidates(const SortSpec& s) {
  return s.length >= 512 && s.limit * 8 <= s.length;
}

/// Does one word hold an element's keys and its place in a short row?
inline bool has_room_for_places(const SortSpec& s) {
  int bits = place_bits;
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.keys); ++k) bits += key_bits(s.dtypes[k]);
  return bits <= 64;
}

/// Short rows, as many as vectors have SIMD lanes, go through a network if no places are asked for
/// or find room in a word.
inline bool in_strips(const SortSpec& s, bool values_alone) {
  static_assert(short_row < std::size_t{1} << place_bits &&
                short_row <= static_cast<std::size_t>(strip));
  if (s.length < 2 || s.length > static_cast<std::int64_t>(short_row) || s.outer * s.inner < 4)
    return false;
  return values_alone || has_room_for_places(s);
}

/// f of an unsigned word of so many bytes.
template <class F>
void with_word(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

struct Strip {
  /// rows, and their first elements among the operands and among the results
  std::int64_t simd_lanes = 0, from[strip], to[strip];
  /// SIMD lanes without a row are compared, too
  alignas(64) Word memory[2][static_cast<std::size_t>(strip) * short_row] = {};
};

class StripSorter {
 public:
  StripSorter(const SortSpec& spec, const void* const* operands, void* const* results,
              bool values_alone)
      : s_(spec), operands_(operands), results_(results), values_alone_(values_alone) {}

  /// The rows from strip · t on. False if they cannot be sorted here: their keys are as wide as a
  /// word, and places are needed.
  bool sort(std::int64_t t, Strip& all) const {
    all.simd_lanes = std::min(strip, s_.outer * s_.inner - t * strip);
    for (std::int64_t c = 0; c < all.simd_lanes; ++c) {
      const std::int64_t plane = (t * strip + c) / s_.inner, first = (t * strip + c) % s_.inner;
      all.from[c] = plane * s_.length * s_.inner + first;
      all.to[c] = plane * (s_.limit - s_.start) * s_.inner + first;
    }
    if (values_alone_ &&
        (size_of(s_.dtypes[0]) <= 4 ? values<std::uint32_t>(all, machine().network32)
                                    : values<Word>(all, machine().network64)))
      return true;
    if (!has_room_for_places(s_)) return false;
    places(all);
    return true;
  }

 private:
  static std::int64_t whole_vectors(std::int64_t simd_lanes) { return (simd_lanes + 15) / 16 * 16; }

  /// Operand k of all rows, SIMD lane by SIMD lane, in `memory[0]`.
  void gather(Strip& all, std::size_t k) const {
    with_word(size_of(s_.dtypes[k]), [&](auto word) {
      using T = decltype(word);
      T* to = reinterpret_cast<T*>(all.memory[0]);
      for (std::int64_t i = 0; i < s_.length; ++i, to += strip) {
        const T* in = static_cast<const T*>(operands_[k]) + i * s_.inner;
        for (std::int64_t c = 0; c < all.simd_lanes; ++c) to[c] = in[all.from[c]];
      }
    });
  }

  /// False if elements cannot be made from their keys again.
  template <class Key>
  bool values(Strip& all, void (*network)(Key*, std::int64_t, std::int64_t)) const {
    const Keys<Key> keys(s_.dtypes[0], s_.descending);
    Key* rows = reinterpret_cast<Key*>(all.memory[1]);
    gather(all, 0);
    if (keys.read(all.memory[0], 1, 0, s_.length * strip, rows)) return false;
    network(rows, s_.length, whole_vectors(all.simd_lanes));
    const std::int64_t count = s_.limit - s_.start;
    keys.write(rows + s_.start * strip, count * strip, all.memory[0], 1);
    with_word(size_of(s_.dtypes[0]), [&](auto word) {
      using T = decltype(word);
      const T* from = reinterpret_cast<const T*>(all.memory[0]);
      for (std::int64_t i = 0; i < count; ++i, from += strip) {
        T* out = static_cast<T*>(results_[0]) + i * s_.inner;
        for (std::int64_t c = 0; c < all.simd_lanes; ++c) out[all.to[c]] = from[c];
      }
    });
    return true;
  }

  /// Keys, one behind the other, and in the lowest bits the place.
  void places(Strip& all) const {
    Word *const rows = all.memory[1], keys[strip], places[strip];
    const std::int64_t count = s_.limit - s_.start;
    for (int key = 0; key < s_.keys; ++key) {
      const std::size_t k = key;
      const Keys<Word> reader(s_.dtypes[k], s_.descending);
      if (!s_.is_place[k]) gather(all, k);
      for (std::int64_t i = 0; i < s_.length; ++i) {
        for (std::int64_t c = 0; c < strip; ++c) places[c] = static_cast<Word>(i);
        if (s_.is_place[k]) reader.gather(nullptr, 1, places, strip, keys);
        else reader.read(all.memory[0], 1, i * strip, (i + 1) * strip, keys);
        for (std::int64_t c = 0; c < strip; ++c)
          rows[i * strip + c] =
              (key ? rows[i * strip + c] << key_bits(s_.dtypes[k]) : Word{0}) | keys[c];
      }
    }
    for (std::int64_t i = 0; i < s_.length; ++i)
      for (std::int64_t c = 0; c < strip; ++c)
        rows[i * strip + c] = rows[i * strip + c] << place_bits | static_cast<Word>(i);
    machine().network64(rows, s_.length, whole_vectors(all.simd_lanes));
    for (std::size_t k = 0; k < s_.dtypes.size(); ++k) {
      if (!results_[k]) continue;
      with_word(size_of(s_.dtypes[k]), [&](auto word) {
        using T = decltype(word);
        const T* in = s_.is_place[k] ? nullptr : static_cast<const T*>(operands_[k]);
        for (std::int64_t i = 0; i < count; ++i) {
          T* out = static_cast<T*>(results_[k]) + i * s_.inner;
          for (std::int64_t c = 0; c < all.simd_lanes; ++c) {
            const auto place = static_cast<std::int64_t>(rows[(s_.start + i) * strip + c] &
                                                         ((Word{1} << place_bits) - 1));
            out[all.to[c]] = in ? in[all.from[c] + place * s_.inner] : static_cast<T>(place);
          }
        }
      });
    }
  }

  const SortSpec& s_;
  const void* const* operands_;
  void* const* results_;
  bool values_alone_;
};

}  // namespace vt::detail::sorting
