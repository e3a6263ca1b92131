// Sorts on the device.
#include "sort.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../source/sort_source.hpp"

namespace vt::detail::cuda {

namespace device_sort {

// of a block that orders rows in shared memory: several blocks fit on a multiprocessor
constexpr std::int64_t shared_bytes = 32 << 10;
constexpr std::int64_t most_selected = 1024;
// a selection pays where it leaves so many elements for each that it takes
constexpr std::int64_t least_share = 8;
constexpr std::int64_t least_part = 4096;

bool is_wanted(const Launch::Pointer& p) { return p.var != unwanted.var; }

/// What a sort is made of, while its launches are added.
struct Sort {
  const SortSpec& s;
  std::span<const Launch::Pointer> operands, results;
  int multiprocessors;
  ScratchLayout& scratch;
  Vec<Launch>& launches;
  std::int64_t rows = 0;
  SmallVec<char, 4> wanted;

  void add(std::string name, std::string source, std::int64_t blocks, int threads,
           SmallVec<Launch::Pointer, 8> pointers, Vec<std::int64_t> numbers) const {
    Launch l;
    l.name = std::move(name);
    l.source = std::move(source);
    l.grid = {blocks, threads, 0};
    l.pointers = std::move(pointers);
    l.numbers = std::move(numbers);
    launches.push_back(std::move(l));
  }
  void add_operands(SmallVec<Launch::Pointer, 8>& pointers, const SmallVec<char, 4>& which) const {
    for (std::size_t k = 0; k < which.size(); ++k)
      if (which[k] && !s.is_place[k]) pointers.push_back(operands[k]);
  }
  void add_results(SmallVec<Launch::Pointer, 8>& pointers) const {
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (wanted[k]) pointers.push_back(results[k]);
  }
  /// Blocks of a kernel whose threads take one element after the other.
  std::int64_t blocks_for(std::int64_t elements) const {
    return std::min<std::int64_t>((elements + sort_threads - 1) / sort_threads,
                                  std::int64_t{16} * multiprocessors);
  }

  void in_shared_memory(const RowWords& words) const {
    SmallVec<Launch::Pointer, 8> pointers;
    SmallVec<char, 4> read = wanted;
    for (int k = 0; k < s.keys; ++k) read[k] = 1;
    add_operands(pointers, read);
    add_results(pointers);
    const std::string name = formatted("kernel_sort_rows_{}", words.padded);
    add(name, sort_rows_source(s, words, wanted, name), (rows + words.rows - 1) / words.rows,
        std::min(sort_threads, words.padded * words.rows / 2), std::move(pointers),
        {rows, s.length, s.inner, s.start, s.limit});
  }

  Record record(bool places) const {
    Record r;
    r.wide_place = s.length >= (std::int64_t{1} << 32) - 1;
    r.places = places;
    return r;
  }

  void by_selection() const {
    Record r = record(true);
    r.wide_key = size_of(s.dtypes[0]) == 8;
    int capacity = 512;
    while (capacity < 2 * s.limit) capacity *= 2;
    // Parts of rows that keep all multiprocessors busy, no more than lets the second launch be
    // short, too.
    std::int64_t parts = std::min((4 * multiprocessors + rows - 1) / rows,
                                  s.length / std::max(least_share * s.limit, least_part));
    while (parts > 1 && parts * parts > s.length / s.limit) --parts;
    if (parts < 1) parts = 1;
    const std::int64_t kept = parts * s.limit;
    const auto launch = [&](bool of_records, bool last, Launch::Pointer keys,
                            Launch::Pointer places, std::int64_t cut) {
      SmallVec<Launch::Pointer, 8> pointers;
      SmallVec<char, 4> read = wanted;
      if (!last) std::fill(read.begin(), read.end(), 0);
      if (!of_records) read[0] = 1;
      add_operands(pointers, read);
      for (const Launch::Pointer& p : {keys, places})
        if (of_records || !last) pointers.push_back(p);
      if (last) add_results(pointers);
      const std::string name =
          formatted("kernel_select{}{}", of_records ? "_again" : "", last ? "" : "_parts");
      add(name, select_source(s, r, capacity, of_records, last, wanted, name), rows * cut,
          sort_threads, std::move(pointers),
          {rows, s.length, s.inner, s.start, s.limit, cut, of_records ? kept : 0});
    };
    if (parts == 1) return launch(false, true, {}, {}, 1);
    const Launch::Pointer keys = scratch.take(rows * kept * r.key_bytes()),
                          places = scratch.take(rows * kept * r.place_bytes());
    launch(false, false, keys, places, parts);
    launch(true, true, keys, places, 1);
  }

  void by_digits() const {
    // Keys that are sorted by at once: as many as fit into a word, from the last one back.
    struct Group {
      int first, end, bits;
    };
    SmallVec<Group, 2> groups;
    for (int k = s.keys; k-- > 0;) {
      const int bits = static_cast<int>(8 * size_of(s.dtypes[k]));
      if (groups.empty() || groups.back().bits + bits > 64) groups.push_back({k, k + 1, bits});
      else {
        groups.back().first = k;
        groups.back().bits += bits;
      }
    }
    // Keys of integers are all of them.
    const bool from_key = groups.back().end == 1 && !is_float(s.dtypes[0]);
    const bool places =
        !from_key || groups.size() > 1 ||
        any_of(std::span(wanted.data() + 1, wanted.size() - 1), [](char w) { return w != 0; });
    Record r = record(places);
    for (const Group& g : groups) r.wide_key = r.wide_key || g.bits > 32;
    const std::int64_t tiles = (s.length + r.tile() - 1) / r.tile(), records = rows * s.length;
    Launch::Pointer keys[2], places_[2];
    for (int i = 0; i < 2; ++i) {
      keys[i] = scratch.take(records * r.key_bytes());
      places_[i] = places ? scratch.take(records * r.place_bytes()) : keys[i];
    }
    const Launch::Pointer counts = scratch.take(rows * tiles * sort_threads * r.place_bytes());
    const Launch::Pointer totals = scratch.take(rows * sort_threads * r.place_bytes());
    const std::string suffix = formatted("_{}", r.wide_key ? 64 : 32),
                      move = "kernel_sort_move" + suffix;
    int now = 0;
    bool begun = false;
    for (const Group& g : groups) {
      SmallVec<Launch::Pointer, 8> pointers;
      for (int k = g.first; k < g.end; ++k)
        if (!s.is_place[k]) pointers.push_back(operands[k]);
      pointers.push_back(places_[now]);
      pointers.push_back(keys[now]);
      add("kernel_sort_keys", sort_keys_source(s, r, g.first, g.end, "kernel_sort_keys"),
          blocks_for(records), sort_threads, std::move(pointers), {rows, s.length, s.inner, begun});
      for (int shift = 0; shift < g.bits; shift += 8) {
        add("kernel_sort_count", sort_count_source(r, "kernel_sort_count"), rows * tiles,
            sort_threads, {keys[now], counts}, {s.length, tiles, shift});
        add("kernel_sort_offsets", sort_offsets_source(r, "kernel_sort_offsets"), rows * 32,
            sort_threads, {counts, totals}, {tiles});
        SmallVec<Launch::Pointer, 8> moved = {keys[now]};
        if (places) moved.push_back(places_[now]);
        for (const Launch::Pointer& p : {counts, totals, keys[1 - now]}) moved.push_back(p);
        if (places) moved.push_back(places_[1 - now]);
        add(move, sort_move_source(r, move), rows * tiles, sort_threads, std::move(moved),
            {s.length, tiles, shift, begun});
        now = 1 - now;
        begun = true;
      }
    }
    SmallVec<Launch::Pointer, 8> pointers;
    SmallVec<char, 4> read = wanted;
    if (from_key) read[0] = 0;
    add_operands(pointers, read);
    pointers.push_back(keys[now]);
    if (places) pointers.push_back(places_[now]);
    add_results(pointers);
    add("kernel_sort_results", sort_results_source(s, r, wanted, from_key, "kernel_sort_results"),
        blocks_for(rows * (s.limit - s.start)), sort_threads, std::move(pointers),
        {rows, s.length, s.inner, s.start, s.limit});
  }
};

}  // namespace device_sort

void add_sort(const SortSpec& s, std::span<const Launch::Pointer> operands,
              std::span<const Launch::Pointer> results, int multiprocessors, ScratchLayout& scratch,
              Vec<Launch>& launches) {
  using namespace device_sort;
  Sort sort{s, operands, results, multiprocessors, scratch, launches, s.outer * s.inner, {}};
  for (const Launch::Pointer& p : results) sort.wanted.push_back(is_wanted(p));
  if (sort.rows == 0 || s.limit == s.start || none_of(sort.wanted, [](char w) { return w != 0; }))
    return;
  if (s.length <= shared_bytes) {
    const RowWords words = row_words(s);
    if (words.bytes() <= shared_bytes) return sort.in_shared_memory(words);
  }
  if (s.keys == 1 && !s.is_place[0] && s.limit <= most_selected &&
      s.length >= least_share * s.limit)
    return sort.by_selection();
  sort.by_digits();
}

}  // namespace vt::detail::cuda
