// The text of the kernels that sort rows; program/sort.cpp chooses among them.
#pragma once

#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../fusion/sort_spec.hpp"

namespace vt::detail::cuda {

constexpr int sort_threads = 256;  ///< of a block; also as many as a digit has values

/// How rows lie in shared memory while one block orders some of them: each element as words that
/// compare as the elements do, its place in the row in the lowest bits of the last word, so that no
/// two are equal.
struct RowWords {
  int padded = 2;                ///< elements of a row, a power of two
  int rows = 1;                  ///< of a block
  SmallVec<char, 4> first_keys;  ///< per word: its first key
  bool narrow = false;           ///< one word of 32 bits, otherwise all have 64
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(first_keys.size()) * (narrow ? 4 : 8) * padded * rows;
  }
};
RowWords row_words(const SortSpec&);

/// Rows ordered in shared memory, `words.rows` by a block. Parameters: operands that are no places,
/// results that are wanted; then rows, length, inner, start, limit.
std::string sort_rows_source(const SortSpec&, const RowWords& words,
                             const SmallVec<char, 4>& wanted, const std::string& name);

/// What the passes of a sort over long rows keep of each element: its key, and its place.
struct Record {
  bool wide_key = false, wide_place = false;  ///< 64 bits instead of 32
  bool places = true;                         ///< is it more than the key?
  std::int64_t key_bytes() const { return wide_key ? 8 : 4; }
  std::int64_t place_bytes() const { return wide_place ? 8 : 4; }
  /// elements that a block moves
  int tile() const { return sort_threads * (wide_key || wide_place ? 8 : 16); }
};

/// Keys [first, end) as one number. Parameters: the operands of these keys that are no places,
/// places so far, keys; then rows, length, inner, begun (are there places so far?).
std::string sort_keys_source(const SortSpec&, const Record&, int first, int end,
                             const std::string& name);
/// How often each digit is in each tile. Parameters: keys, counts; then length, tiles, shift. A
/// block for each tile of each row.
std::string sort_count_source(const Record&, const std::string& name);
/// For each row and digit how often it is in the tiles before each, and in all. Parameters: counts,
/// totals; then tiles. A warp for each.
std::string sort_offsets_source(const Record&, const std::string& name);
/// Elements in the order of one digit. Parameters: keys, places, counts, totals, keys and places
/// there; then length, tiles, shift, begun.
std::string sort_move_source(const Record&, const std::string& name);
/// Results from places, and that of operand 0 from its keys if `from_key`. Parameters: operands
/// that are needed for it, keys, places, results; then rows, length, inner, start, limit.
std::string sort_results_source(const SortSpec&, const Record&, const SmallVec<char, 4>& wanted,
                                bool from_key, const std::string& name);

/// The first `limit` elements of parts of rows by one key, in order: found digit by digit, then
/// ordered in shared memory. Of operand 0, or `of_records`; as results of the sort if `last`,
/// otherwise as records.
/// Parameters: operand 0, or keys and places; the other operands and the results of those wanted
/// (last), or keys and places there; then rows, length, inner, start, limit, parts, records of a
/// row.
std::string select_source(const SortSpec&, const Record&, int capacity, bool of_records, bool last,
                          const SmallVec<char, 4>& wanted, const std::string& name);

}  // namespace vt::detail::cuda
