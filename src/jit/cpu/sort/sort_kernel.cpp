// sort_rows: makes a record of each element, its key as an unsigned integer and its place in the
// row, sorts the records and writes the operands in that order. Neighbouring columns go together.
// If only the first few elements of a long row are wanted, only candidates are kept. Short rows are
// sorted one per SIMD lane.
#include "sort_kernel.hpp"

#include <algorithm>
#include <atomic>

#include <vt/detail/function.hpp>

#include "../../fusion/fuse.hpp"

// The one loop of vt that is neither emitted nor rare: also a prototype built without optimisation
// should not wait for it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

#include "sort_strips.hpp"

namespace vt::detail {

namespace sorting {

// sorted beside each other where rows are no rows of memory: a cache line's worth
constexpr std::int64_t most_columns = 16;
constexpr std::int64_t block = 64;  // elements whose keys are made at a time
// elements that are looked at one by one where few are kept and one is a candidate
constexpr std::int64_t line = 16;
// elements that are passed by at once if none is a candidate
constexpr std::int64_t extend = 512;
constexpr std::int64_t worth_a_range = 1 << 13;  // elements
constexpr std::int64_t worth_threads_inside = 1 << 16;

// --- rows beside each other ----------------------------------------------------------------------

/// Keys from the first one on that are sorted by at once, and their bits: as many as fit into
/// `most_bits`, from the last one back.
struct KeyGroup {
  int first, end, bits;
};
SmallVec<KeyGroup, 2> key_groups(const SortSpec& s, int most_bits) {
  SmallVec<KeyGroup, 2> groups;
  for (int k = s.keys; k-- > 0;) {
    const int bits = key_bits(s.dtypes[k]);
    if (groups.empty() || groups.back().bits + bits > most_bits) groups.push_back({k, k + 1, bits});
    else {
      groups.back().first = k;
      groups.back().bits += bits;
    }
  }
  return groups;
}

/// Is only the one key wanted, in order?
bool wants_values_alone(const SortSpec& s, void* const* results) {
  bool alone = results[0] && s.keys == 1 && !s.is_place[0] && !keeps_candidates(s);
  for (std::size_t k = 1; k < s.dtypes.size(); ++k) alone = alone && !results[k];
  return alone;
}

class Sorter {
 public:
  Sorter(const SortSpec& spec, const void* const* operands, void* const* results)
      : s_(spec), operands_(operands), results_(results) {
    values_alone_ = wants_values_alone(s_, results);
    strips_ = in_strips(s_, values_alone_);
    columns_ = std::max<std::int64_t>(std::min(s_.inner, most_columns), 1);
    while (columns_ > 1 && tiles() < 4 * thread_count()) columns_ /= 2;
    if (!strips_ && tiles() < thread_count() && s_.length >= worth_threads_inside)
      blocks_ = thread_count();
  }

  std::size_t scratch_bytes() const {
    if (nothing()) return 0;
    const bool candidates = s_.keys == 1 && keeps_candidates(s_) && !s_.is_place[0];
    const std::int64_t records = candidates ? most_candidates() * blocks_ : s_.length,
                       columns = strips_ ? 1 : columns_;
    std::int64_t record =
        one_word() && !strips_ ? sizeof(NarrowPlaced::Record) : sizeof(WidePlaced::Record);
    // Whether keys say all of the values shows when they are read.
    if (values_alone_ && is_int(s_.dtypes[0]))
      record = size_of(s_.dtypes[0]) <= 4 ? sizeof(std::uint32_t) : sizeof(Word);
    if (strips_ && (is_int(s_.dtypes[0]) ? values_alone_ : has_room_for_places(s_))) return 0;
    return static_cast<std::size_t>(blocks_ > 1 ? 1 : threads_for(iterations(), grain())) *
           room_for(static_cast<std::size_t>((columns + 1) * records * record));
  }

  void run() {
    if (nothing()) return;
    const std::int64_t n = iterations();
    if (blocks_ > 1) {
      sort_tiles(0, n);
      return;
    }
    parallel_ranges(n, grain(), [&](std::int64_t begin, std::int64_t end) {
      if (strips_) sort_strips(begin, end);
      else sort_tiles(begin, end);
    });
  }

 private:
  std::int64_t tiles_per_row() const { return (s_.inner + columns_ - 1) / columns_; }
  std::int64_t tiles() const { return s_.outer * tiles_per_row(); }
  std::int64_t iterations() const {
    return strips_ ? (s_.outer * s_.inner + strip - 1) / strip : tiles();
  }
  std::int64_t grain() const {
    return std::max<std::int64_t>(worth_a_range / (s_.length * (strips_ ? strip : columns_)), 1);
  }
  bool nothing() const { return s_.outer * s_.inner == 0 || s_.limit == s_.start; }
  std::int64_t most_candidates() const { return std::max<std::int64_t>(2 * s_.limit, 256); }
  bool one_word() const {
    const SmallVec<KeyGroup, 2> narrow = key_groups(s_, NarrowPlaced::most_bits);
    return narrow.size() == 1 && narrow[0].bits <= 32 &&
           static_cast<Word>(s_.length) <= Word{1} << 32;
  }
  static std::size_t room_for(std::size_t bytes) {
    constexpr std::size_t large = 1 << 18, huge_page = 2 << 20;
    return bytes < large ? bytes : (bytes + huge_page - 1) / huge_page * huge_page;
  }

  /// Neighbouring columns of one [length, inner] plane, and memory to work in.
  struct Tile {
    std::int64_t from = 0, to = 0, columns = 1;  // elements of the operands and of the results
    BufferRef memory;
    void* room(std::size_t bytes) {
      if (memory && memory->bytes >= bytes) return memory->data;
      memory = {};  // not both at a time
      memory = allocate(room_for(bytes), "sorting");
      return memory->data;
    }
  };

  void sort_tiles(std::int64_t begin, std::int64_t end) const {
    Tile tile;
    const SmallVec<KeyGroup, 2> narrow = key_groups(s_, NarrowPlaced::most_bits);
    const bool one_word = this->one_word();
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t plane = t / tiles_per_row(), first = t % tiles_per_row() * columns_;
      tile.from = plane * s_.length * s_.inner + first;
      tile.to = plane * (s_.limit - s_.start) * s_.inner + first;
      tile.columns = std::min(columns_, s_.inner - first);
      if (values_alone_ &&
          (size_of(s_.dtypes[0]) <= 4 ? sort_values<std::uint32_t>(tile) : sort_values<Word>(tile)))
        continue;
      if (one_word) sort_places<NarrowPlaced>(tile, narrow);
      else sort_places<WidePlaced>(tile, key_groups(s_, WidePlaced::most_bits));
    }
  }

  void sort_strips(std::int64_t begin, std::int64_t end) const {
    const StripSorter sorter(s_, operands_, results_, values_alone_);
    Strip rows;
    for (std::int64_t t = begin; t < end; ++t) {
      if (sorter.sort(t, rows)) continue;
      // minus zeros and NaN among numbers as wide as a word
      for (std::int64_t c = 0; c < rows.simd_lanes; ++c) {
        Tile tile;
        tile.from = rows.from[c];
        tile.to = rows.to[c];
        sort_places<WidePlaced>(tile, key_groups(s_, WidePlaced::most_bits));
      }
    }
  }

  /// Records of each column, and one more row to work in.
  template <class Record>
  struct Bench {
    Record *rows[most_columns], *spare;
    Bench(Tile& tile, std::size_t n)
        : spare(static_cast<Record*>(
              tile.room(static_cast<std::size_t>(tile.columns + 1) * n * sizeof(Record)))) {
      for (std::int64_t c = 0; c < tile.columns; ++c)
        rows[c] = spare + static_cast<std::size_t>(c + 1) * n;
    }
  };

  /// f(column, begin, end) over the places 0 … n − 1 of every column of a tile, `block` at a time,
  /// on all threads if they are at hand.
  void each_block(const Tile& tile, std::int64_t n, std::int64_t block,
                  FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> f) const {
    const auto run = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; i += block)
        for (std::int64_t c = 0; c < tile.columns; ++c) f(c, i, std::min(i + block, last));
    };
    if (blocks_ > 1) parallel_ranges(n, worth_a_range, run);
    else run(0, n);
  }
  /// Columns beside each other share cache lines: some rows at a time.
  std::int64_t block_of(const Tile& tile) const {
    return tile.columns > 1 ? block : std::max<std::int64_t>(s_.length, 1);
  }

  const std::byte* operand(const Tile& tile, std::size_t k, std::int64_t c) const {
    return static_cast<const std::byte*>(operands_[k]) +
           static_cast<std::size_t>(tile.from + c) * size_of(s_.dtypes[k]);
  }
  std::byte* result(const Tile& tile, std::size_t k, std::int64_t c) const {
    return static_cast<std::byte*>(results_[k]) +
           static_cast<std::size_t>(tile.to + c) * size_of(s_.dtypes[k]);
  }

  template <class Key>
  bool sort_values(Tile& tile) const {
    const DType dtype = s_.dtypes[0];
    const Keys<Key> keys(dtype, s_.descending);
    Bench<Key> bench(tile, static_cast<std::size_t>(s_.length));
    std::atomic<bool> lossy{false};
    each_block(tile, s_.length, block_of(tile),
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 if (keys.read(operand(tile, 0, c), s_.inner, begin, end, bench.rows[c] + begin))
                   lossy.store(true, std::memory_order_relaxed);
               });
    if (lossy) return false;
    for (std::int64_t c = 0; c < tile.columns; ++c)
      sort_row(bench.rows[c], bench.spare, static_cast<std::size_t>(s_.length), key_bits(dtype),
               blocks_);
    each_block(tile, s_.limit - s_.start, block_of(tile),
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 keys.write(bench.rows[c] + s_.start + begin, end - begin,
                            result(tile, 0, c) +
                                static_cast<std::size_t>(begin * s_.inner) * size_of(dtype),
                            s_.inner);
               });
    return true;
  }

  template <class P>
  void sort_places(Tile& tile, const SmallVec<KeyGroup, 2>& groups) const {
    if (s_.keys == 1 && keeps_candidates(s_) && !s_.is_place[0]) {
      const std::size_t most = most_candidates();
      Bench<typename P::Record> bench(tile, most * static_cast<std::size_t>(blocks_));
      keep_candidates<P>(tile, bench, most);
      return write<P>(tile, bench);
    }
    Bench<typename P::Record> bench(tile, static_cast<std::size_t>(s_.length));
    bool loaded = false;
    for (const KeyGroup& g : groups) {
      for (int k = g.first; k < g.end; ++k) {
        load<P>(tile, bench, static_cast<std::size_t>(k), loaded, k > g.first);
        loaded = true;
      }
      for (std::int64_t c = 0; c < tile.columns; ++c)
        sort_row(bench.rows[c], bench.spare, static_cast<std::size_t>(s_.length), g.bits, blocks_);
    }
    write<P>(tile, bench);
  }

  /// Key k of every element, in the order of the records so far; `joins`: behind the key that is
  /// there.
  template <class P>
  void load(const Tile& tile, Bench<typename P::Record>& bench, std::size_t k, bool loaded,
            bool joins) const {
    const Keys<typename P::Key> reader(s_.dtypes[k], s_.descending);
    const int shift = key_bits(s_.dtypes[k]);
    each_block(tile, s_.length, block, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
      typename P::Record* row = bench.rows[c];
      typename P::Key keys[block];
      if (!loaded && !s_.is_place[k]) {
        reader.read(operand(tile, k, c), s_.inner, begin, end, keys);
        for (std::int64_t i = begin; i < end; ++i)
          row[i] = P::make(keys[i - begin], static_cast<Word>(i));
        return;
      }
      Word places[block];
      for (std::int64_t i = begin; i < end; ++i)
        places[i - begin] = loaded ? P::place(row[i]) : static_cast<Word>(i);
      reader.gather(s_.is_place[k] ? nullptr : operand(tile, k, c), s_.inner, places, end - begin,
                    keys);
      if (joins)
        for (std::int64_t i = begin; i < end; ++i)
          row[i] = P::make(P::key(row[i]) << shift | keys[i - begin], places[i - begin]);
      else
        for (std::int64_t i = begin; i < end; ++i)
          row[i] = P::make(keys[i - begin], places[i - begin]);
    });
  }

  /// Threads that share a row find candidates in a part of it each; the best of these are those of
  /// the row, as places decide between equals.
  template <class P>
  void keep_candidates(const Tile& tile, Bench<typename P::Record>& bench, std::size_t most) const {
    const std::size_t kept = s_.limit;
    Vec<std::size_t> counts(blocks_);
    for (std::int64_t c = 0; c < tile.columns; ++c) {
      auto*& best = bench.rows[c];
      const auto part = [&](std::int64_t p) {
        typename P::Record *own = best + static_cast<std::size_t>(p) * most,
                           *spare = bench.spare + static_cast<std::size_t>(p) * most;
        auto* const place = own;
        counts[p] = find_candidates<P>(tile, c, p * s_.length / blocks_,
                                       (p + 1) * s_.length / blocks_, own, spare, most);
        if (own != place) std::memcpy(place, own, std::min(counts[p], kept) * sizeof *own);
      };
      parallel_ranges(blocks_, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) part(p);
      });
      std::size_t count = 0;
      for (std::int64_t p = 0; p < blocks_; ++p) {
        const std::size_t more = std::min(counts[p], kept);
        if (p > 0)
          std::memmove(best + count, best + static_cast<std::size_t>(p) * most,
                       more * sizeof *best);
        count += more;
      }
      if (blocks_ > 1) sort_row(best, bench.spare, count, key_bits(s_.dtypes[0]));
    }
  }

  /// Walks a part of a row with the best `limit` elements so far and some more at hand: what is not
  /// before all of these is passed by. Gives how many there are, sorted.
  template <class P>
  std::size_t find_candidates(const Tile& tile, std::int64_t c, std::int64_t begin,
                              std::int64_t end, typename P::Record*& best,
                              typename P::Record*& spare, std::size_t most) const {
    const std::size_t kept = s_.limit;
    const Keys<typename P::Key> reader(s_.dtypes[0], s_.descending);
    const int bits = key_bits(s_.dtypes[0]);
    const bool skips = s_.inner == 1 && bits == 8 * static_cast<int>(sizeof(typename P::Key));
    const KeyForm<typename P::Key> form(s_.dtypes[0], s_.descending);
    const bool few = kept <= short_row;  // kept in order all the time
    std::size_t count = 0;
    typename P::Key bar = 0;
    bool full = false;
    const auto passes_by = [&](std::int64_t i, std::int64_t n) {
      if (!full || !skips || end - i < n) return false;
      const auto* in = reinterpret_cast<const typename P::Key*>(operand(tile, 0, c)) + i;
      if constexpr (sizeof *in == 4) return !machine().before32(in, n, form, bar);
      else return !machine().before64(in, n, form, bar);
    };
    for (std::int64_t i = begin; i < end;) {
      if (passes_by(i, extend)) {
        i += extend;
        continue;
      }
      const std::int64_t stop = std::min(i + extend, end),
                         step = few && full && skips ? line : block;
      for (; i < stop; i += step) {
        const std::int64_t size = std::min(step, stop - i);
        if (passes_by(i, step)) continue;
        typename P::Key keys[block];
        reader.read(operand(tile, 0, c), s_.inner, i, i + size, keys);
        unsigned hit = !full || skips || size < block;
        if (!hit)
          for (std::int64_t j = 0; j < block; ++j) hit |= static_cast<unsigned>(keys[j] < bar);
        if (!hit) continue;
        for (std::int64_t j = 0; j < size; ++j) {
          if (full && keys[j] >= bar) continue;  // equals of the last one come after it
          if (few) {
            count += count < kept;
            put_in_order<P>(best, count, P::make(keys[j], static_cast<Word>(i + j)));
            full = count == kept;
            if (full) bar = static_cast<typename P::Key>(P::key(best[kept - 1]));
            continue;
          }
          best[count++] = P::make(keys[j], static_cast<Word>(i + j));
          if (count < most) continue;
          sort_row(best, spare, most, bits);
          bar = static_cast<typename P::Key>(P::key(best[kept - 1]));
          full = true;
          count = kept;
        }
      }
      i = std::min(i, end);
    }
    if (!few) sort_row(best, spare, count, bits);
    return count;
  }

  /// A record among `count` − 1 that are in order, behind its equals; what was last of `count`
  /// goes.
  template <class P>
  static void put_in_order(typename P::Record* best, std::size_t count,
                           const typename P::Record& record) {
    std::size_t at = count - 1;
    for (; at > 0 && P::key(record) < P::key(best[at - 1]); --at) best[at] = best[at - 1];
    best[at] = record;
  }

  template <class P>
  void write(const Tile& tile, const Bench<typename P::Record>& bench) const {
    for (std::size_t k = 0; k < s_.dtypes.size(); ++k) {
      if (!results_[k]) continue;
      const auto copy = [&](auto word) {
        using T = decltype(word);
        each_block(tile, s_.limit - s_.start, block_of(tile),
                   [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                     const T* in =
                         s_.is_place[k] ? nullptr : reinterpret_cast<const T*>(operand(tile, k, c));
                     T* out = reinterpret_cast<T*>(result(tile, k, c));
                     for (std::int64_t i = begin; i < end; ++i) {
                       const auto place =
                           static_cast<std::int64_t>(P::place(bench.rows[c][s_.start + i]));
                       out[i * s_.inner] = in ? in[place * s_.inner] : static_cast<T>(place);
                     }
                   });
      };
      with_word(size_of(s_.dtypes[k]), copy);
    }
  }

  const SortSpec& s_;
  const void* const* operands_;
  void* const* results_;
  bool values_alone_ = false, strips_ = false;
  std::int64_t columns_ = 1;
  std::int64_t blocks_ = 1;  // > 1: rows are so few that threads share each
};

}  // namespace sorting

std::size_t sort_scratch_bytes(const SortSpec& spec, const SmallVec<char, 4>& wanted) {
  SmallVec<void*, 8> results;
  // only asked whether they are there
  for (char w : wanted) results.push_back(w ? const_cast<char*>(&w) : nullptr);
  return sorting::Sorter(spec, nullptr, results.data()).scratch_bytes();
}

void sort_rows(const SortSpec& spec, const void* const* operands, void* const* results) {
  sorting::Sorter(spec, operands, results).run();
}

std::string describe(const SortSpec& s) {
  std::string text = std::to_string(s.outer * s.inner) + " rows of " + std::to_string(s.length);
  if (s.inner > 1) text += ", " + std::to_string(s.inner) + " beside each other";
  if (s.limit - s.start < s.length)
    text += ", places " + std::to_string(s.start) + " to " + std::to_string(s.limit);
  const bool one_group = sorting::key_groups(s, 64).size() == 1;
  if (sorting::in_strips(s, s.keys == 1 && s.dtypes.size() == 1))
    return text + ", by networks, a lane for each row";
  if (s.length <= static_cast<std::int64_t>(sorting::short_row)) return text + ", by insertion";
  return text + (one_group && s.keys == 1 && sorting::keeps_candidates(s) ? ", by keeping the best"
                                                                          : ", digit by digit");
}

}  // namespace vt::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
