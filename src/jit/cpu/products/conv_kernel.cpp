// How a convolution is cut into register tiles: their heights, the cost of a choice, and the loops
// over them.
#include "conv_kernel.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

namespace conv_tiling {

std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// One call of ConvKernel::run.
class Loops {
 public:
  Loops(const ConvKernel& k, const void* a, const void* b, void* c, std::int64_t begin,
        std::int64_t end, bool adding, std::int64_t first, std::int64_t last)
      : k_(k),
        a_(static_cast<const char*>(a)),
        b_(static_cast<const char*>(b)),
        c_(static_cast<char*>(c)),
        begin_(begin),
        end_(end) {
    size_ = static_cast<std::int64_t>(size_of(k.accumulate));
    const std::int64_t width = k.tile.columns(), whole = k.n / width;
    apart_ = k.code_of_rest != k.code && last > whole;
    panels_ = last - first - apart_;
    number(ConvNumbers::panels) = panels_;
    number(ConvNumbers::columns) = k.n - first * width;
    number(ConvNumbers::adding) = adding;
    // Where the rows of a tile are: those of the last axis that it covers are the inner ones.
    for (std::size_t r = 0, seen = 0; r < k.rows.size(); ++r) {
      if (!k.tiled(r)) continue;
      if (++seen == 2) {
        number(ConvNumbers::a_outer) = number(ConvNumbers::a_inner);
        number(ConvNumbers::c_outer) = number(ConvNumbers::c_inner);
      }
      number(ConvNumbers::a_inner) = k.rows[r].a;
      number(ConvNumbers::c_inner) = k.rows[r].c;
    }
    std::int64_t step = width;
    for (std::size_t d = k.depth.size(); d-- > 0; step *= k.depth[d].extent)
      set_level(d, k.depth[d].extent, k.depth[d].a, step);
    if (k.depth.empty()) set_level(0, 1, 0, width);
    number(ConvNumbers::panel) = step;
    from_.resize(k.ranges.size(), 0), to_.resize(k.ranges.size(), 0),
        first_.resize(k.ranges.size(), 0);
    const std::int64_t column = k.by_simd_lanes ? first * width : 0;
    rows(0, column, first * width);
  }

 private:
  std::int64_t& number(int i) { return numbers_[i]; }
  void set_level(std::size_t level, std::int64_t iterations, std::int64_t a, std::int64_t panel) {
    const std::size_t at = ConvNumbers::levels + 3 * level;
    if (numbers_.size() < at + 3) numbers_.resize(at + 3, 0);
    numbers_[at] = iterations, numbers_[at + 1] = a, numbers_[at + 2] = panel;
  }

  void rows(std::size_t level, std::int64_t a, std::int64_t c) {
    if (level == k_.rows.size()) return tile(a, c);
    const ConvLoops::Row& r = k_.rows[level];
    const bool outermost = level == 0;
    if (outermost && k_.side_by_side) {
      number(ConvNumbers::skipped) = begin_;
      return rows(1, a, c);
    }
    const std::int64_t from = outermost ? begin_ : 0;
    if (!k_.tiled(level)) {
      const std::int64_t to = outermost ? end_ : r.extent;
      for (std::int64_t i = from; i < to; ++i) {
        if (r.window >= 0) enter(static_cast<std::size_t>(r.window), i);
        rows(level + 1, r.window >= 0 ? a : a + i * r.a, c + i * r.c);
      }
      return;
    }
    // The last tile is as high as the others: it begins among the rows of the one before, and
    // leaves them as they are.
    const std::int64_t height = k_.heights[level], all = pieces(r.extent, height),
                       to = outermost ? std::min(end_, all) : all;
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t start = std::min(i * height, r.extent - height);
      // of two axes of a tile the inner one is covered whole
      number(ConvNumbers::skipped) += i * height - start;
      rows(level + 1, a + start * r.a, c + start * r.c);
      number(ConvNumbers::skipped) -= i * height - start;
    }
  }

  // The places of a window that o sees.
  void enter(std::size_t window, std::int64_t o) {
    const ConvLoops::Range& r = k_.ranges[window];
    from_[window] = r.from(o);
    to_[window] = std::max(r.to(o), from_[window]);
    first_[window] = (r.stride * o - r.first + from_[window] * r.dilation) * r.distance;
  }

  void tile(std::int64_t a, std::int64_t c) {
    std::int64_t panel = 0;
    for (std::size_t d = 0; d < k_.depth.size(); ++d) {
      const ConvLoops::Depth& level = k_.depth[d];
      if (level.window < 0) continue;
      const std::size_t w = level.window;
      const std::size_t at = ConvNumbers::levels + 3 * d;
      numbers_[at] = (to_[w] - from_[w]) * level.scale;
      a += first_[w];
      panel += from_[w] * level.scale * numbers_[at + 2];
    }
    const std::int64_t width = k_.tile.columns();
    if (panels_ > 0)
      k_.code->function<ConvFunction>()(a_ + a * size_, b_ + panel * size_, c_ + c * size_,
                                        numbers_.data());
    if (!apart_) return;
    const std::int64_t before = panels_ * width, columns = number(ConvNumbers::columns);
    number(ConvNumbers::panels) = 1, number(ConvNumbers::columns) = columns - before;
    k_.code_of_rest->function<ConvFunction>()(
        a_ + (a + (k_.by_simd_lanes ? before : 0)) * size_,
        b_ + (panel + panels_ * number(ConvNumbers::panel)) * size_, c_ + (c + before) * size_,
        numbers_.data());
    number(ConvNumbers::panels) = panels_, number(ConvNumbers::columns) = columns;
  }

  const ConvKernel& k_;
  const char *a_, *b_;
  char* c_;
  std::int64_t begin_, end_, size_ = 1, panels_ = 0;
  bool apart_ = false;  ///< the last panel is another code's
  SmallVec<std::int64_t, 32> numbers_ =
      SmallVec<std::int64_t, 32>(std::size_t{ConvNumbers::levels}, 0);
  /// by window: places, and where in a the first of them is
  SmallVec<std::int64_t, 3> from_, to_, first_;
};

}  // namespace conv_tiling

void ConvKernel::make_code(bool adds) {
  ConvTile t;
  t.accumulate = accumulate;
  t.simd_lanes = tile.simd_lanes, t.vectors = tile.vectors;
  t.panel = tile.columns();
  t.by_simd_lanes = by_simd_lanes;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!tiled(r)) continue;
    t.outer *= t.inner;
    t.inner = heights[r];
    t.rows_adjacent = rows[r].a == 1;
  }
  t.adds = adds;
  t.levels = std::max(static_cast<int>(depth.size()), 1);
  t.depth_adjacent = !depth.empty() && depth.back().a == 1;
  // The last panel is another code's where it needs fewer vectors.
  const std::int64_t rest = n % tile.columns(),
                     vectors_of_rest = conv_tiling::pieces(rest, tile.simd_lanes);
  const bool one_code = rest == 0 || vectors_of_rest == tile.vectors;
  t.whole = rest == 0 || !one_code;
  code = code_of_rest = n < tile.columns() && !one_code ? nullptr : conv_tile_code(t);
  if (one_code) return;
  t.vectors = static_cast<int>(vectors_of_rest);
  t.whole = rest % tile.simd_lanes == 0;
  code_of_rest = conv_tile_code(t);
}

void ConvKernel::run(const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
                     bool adding, std::int64_t first, std::int64_t last) const {
  conv_tiling::Loops(*this, a, b, c, begin, end, adding, first, last);
}

std::int64_t ConvKernel::units() const {
  if (rows.empty()) return 1;
  return tiled(0) ? conv_tiling::pieces(rows[0].extent, heights[0]) : rows[0].extent;
}

std::int64_t ConvKernel::rows_before(std::int64_t unit) const {
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < rows.size(); ++i) inner *= rows[i].extent;
  if (rows.empty()) return unit;
  return std::min(unit * (tiled(0) ? heights[0] : 1), rows[0].extent) * inner;
}

double ConvKernel::cost() const {
  // A step multiplies the elements of a tile two vectors at a time, and loads each of a's and b's,
  // also two at a time; sums wait four cycles for each other. What it takes to write a tile, and to
  // start a loop inside of one.
  constexpr double of_start = 8;
  double tiles = 1, images = 1, height = 1, each = 1, starts = 1;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto extent = static_cast<double>(rows[r].extent);
    if (r == 0 && side_by_side) images = extent;
    if (!tiled(r)) {
      tiles *= extent;
      continue;
    }
    tiles *= static_cast<double>(conv_tiling::pieces(rows[r].extent, heights[r]));
    height *= heights[r];
  }
  for (std::size_t d = 0; d < depth.size(); ++d) {
    double places = static_cast<double>(depth[d].extent);
    if (depth[d].window >= 0) {
      const ConvLoops::Range& r = ranges[depth[d].window];
      double sum = 0;
      for (std::int64_t o = 0; o < r.out; ++o)
        sum += static_cast<double>(std::max<std::int64_t>(r.to(o) - r.from(o), 0));
      places = sum / static_cast<double>(r.out) * static_cast<double>(depth[d].scale);
    }
    if (d + 1 < depth.size()) starts *= places;
    each *= places;
  }
  const double vectors = tile.vectors, sums = height * vectors;
  const double step = std::max({sums / 2, (height + vectors) / 2, 4.0});
  return tiles * static_cast<double>(conv_tiling::pieces(n, tile.columns())) *
         (each * step + starts * of_start + sums + of_start) / images;
}

ConvKernel conv_kernel(const ConvSpec& s, const ConvLoops& l, const Target& target) {
  ConvKernel k;
  k.accumulate = s.accumulate;
  k.rows = l.rows, k.ranges = l.ranges, k.n = l.n, k.side_by_side = l.side_by_side;
  k.by_simd_lanes = s.columns.a != 0;
  k.tile = best_tile(target, s.accumulate);
  // Few columns: one vector, no longer than it must be, and more rows.
  if (k.n <= k.tile.simd_lanes) {
    k.tile.rows *= k.tile.vectors;
    k.tile.vectors = 1;
    while (k.tile.simd_lanes > 1 && k.n <= k.tile.simd_lanes / 2) k.tile.simd_lanes /= 2;
  }
  const auto even = [](std::int64_t n, std::int64_t most) {
    return static_cast<int>(conv_tiling::pieces(n, conv_tiling::pieces(n, most)));
  };
  k.heights.resize(k.rows.size(), 0);
  if (k.side_by_side) {
    // Few blocks of images are an even number, for threads to share.
    std::int64_t blocks = conv_tiling::pieces(k.rows[0].extent, k.tile.rows);
    if (blocks > 1 && blocks < 16) blocks = (blocks + 1) / 2 * 2;
    k.heights[0] = static_cast<int>(conv_tiling::pieces(k.rows[0].extent, blocks));
  } else if (!k.rows.empty()) {
    const std::size_t last = k.rows.size() - 1;
    const std::int64_t extent = k.rows[last].extent, most = k.tile.rows;
    k.heights[last] = even(extent, most);
    // Rows of the axis before as well, if they do not fill more tiles than without: all are equally
    // high.
    if (extent < most && last > 0 && most / extent > 1) {
      const std::int64_t before = k.rows[last - 1].extent, width = extent * k.tile.vectors;
      std::int64_t best = 0, least = 0;
      for (std::int64_t h = 1; h <= most / extent; ++h) {
        const std::int64_t cycles =
            conv_tiling::pieces(before, h) * (std::max<std::int64_t>(h * width / 2, 4) + 1);
        if (h == 1 || cycles < least) best = h, least = cycles;
      }
      k.heights[last - 1] = static_cast<int>(best);
    }
  }
  // Places are left out where all rows of a tile agree on them. What steps evenly is one loop.
  SmallVec<int, 3> ranged;
  for (std::size_t r = 0; r < k.rows.size(); ++r) {
    if (k.tiled(r)) k.rows[r].window = -1;
    else if (k.rows[r].window >= 0) ranged.push_back(k.rows[r].window);
  }
  for (ConvLoops::Depth d : l.depth) {
    if (std::find(ranged.begin(), ranged.end(), d.window) == ranged.end()) d.window = -1;
    if (d.extent == 1 && d.window < 0) continue;
    if (!k.depth.empty() && d.window < 0 && k.depth.back().a == d.a * d.extent) {
      ConvLoops::Depth& back = k.depth.back();
      back = {back.extent * d.extent, d.a, back.window, back.scale * d.extent};
    } else {
      k.depth.push_back(d);
    }
  }
  return k;
}

bool by_panels(const ConvSpec& s, const ConvLoops& l, const ConvKernel& k) {
  constexpr std::int64_t least_panels = 8;  // for threads to share
  const std::int64_t panels = conv_tiling::pieces(k.n, k.tile.columns()),
                     batches = count_of(s.outer_batch);
  const std::int64_t images =
      l.side_by_side ? l.rows[0].extent * l.rows[0].a : count_of(s.outer_free) * l.elements;
  return count_of(s.outer_contract) == 1 && batches < least_panels &&
         panels * count_of(s.inner_batch) * count_of(s.b_free) * batches >= least_panels &&
         panels * k.tile.columns() * l.depth_count() > images;
}

ConvLoops best_loops(const ConvSpec& s, const Target& target) {
  // The images of a tile stay in the second-level cache, and their lines in the first, where those
  // at equal distances meet.
  constexpr std::int64_t most_bytes = 512 << 10, line = 64, page = 4096, least_blocks = 4;
  constexpr double of_copy = 0.3;  // cycles, of an element
  const ConvLoops alone = loops_of(s);
  std::optional<ConvLoops> together = loops_side_by_side(s, 0);
  if (!together) return alone;
  const auto size = static_cast<std::int64_t>(size_of(s.accumulate));
  const std::int64_t step = together->rows[0].a * size % page;
  if (s.a_dtype != s.accumulate || std::min(step, page - step) < 4 * line) {
    const std::int64_t bytes = (together->elements * size + line - 1) / line * line,
                       odd = bytes % page;
    together = loops_side_by_side(
        s, (bytes + (std::min(odd, page - odd) < 5 * line ? 5 * line : 0)) / size);
  }
  const ConvKernel one = conv_kernel(s, alone, target), several = conv_kernel(s, *together, target);
  if ((several.units() < least_blocks && !by_panels(s, *together, several)) ||
      several.heights[0] * together->rows[0].a * size > most_bytes)
    return alone;
  const auto copied = [&](const ConvLoops& l) {
    return l.padded ? static_cast<double>(l.elements) * of_copy : 0;
  };
  return several.cost() + copied(*together) < 0.97 * (one.cost() + copied(alone)) ? *together
                                                                                  : alone;
}

}  // namespace vt::detail::cpu

#endif
