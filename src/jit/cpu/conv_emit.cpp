// The code of a convolution of one image: register tiles over rows of the result, which read the image where it is.
//
// The elements of a that one step of a tile multiplies lie at constant distances, so that they are operands of the multiply-adds and
// nothing is packed; patches are never laid out.
#include "conv_emit.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/small_vec.hpp>

namespace vt::detail::cpu {

namespace conv_code {

std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

class Emitter {
 public:
  Emitter(IrBuilder& b, const ConvKernel& k) : b_(b), k_(k) {
    for (const ConvLoops::Depth& d : k.depth) depth_ *= d.extent;
    ranges_.resize(k.ranges.size());
  }

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true}, Param::of(i64), Param::of(i64), Param::of(i64),
                             Param::of(i64), Param::of(i64)});
    panels_ = b_.arg(1);
    adding_ = b_.compare(Compare::ne, b_.arg(5), b_.index(0));
    rows(0, b_.arg(0), b_.arg(2), {});
    b_.end_function();
  }

 private:
  Value moved(Value p, Value i, std::int64_t step) { return b_.offset(p, k_.accumulate, b_.mul(i, b_.index(step))); }

  // The places of a window that o sees, and the place in a of its place 0, which may lie beyond the edge.
  struct Places {
    Value from, to, first;
  };
  void enter_range(int window, Value o) {
    const ConvLoops::Range& r = k_.ranges[static_cast<std::size_t>(window)];
    const Value shift = b_.mul(o, b_.index(r.stride)), zero = b_.index(0), step = b_.index(r.dilation);
    ranges_[static_cast<std::size_t>(window)] = {
        b_.div(b_.max(b_.sub(b_.index(r.low + r.dilation - 1), shift), zero), step),
        b_.min(b_.index(r.size), b_.div(b_.max(b_.sub(b_.index(r.reach - 1 + r.low + r.dilation), shift), zero), step)),
        b_.sub(shift, b_.index(r.first))};
  }

  void rows(std::size_t level, Value a, Value c, SmallVec<int, 6> heights) {
    if (level == k_.rows.size()) return columns(a, c, heights);
    const ConvLoops::Row& r = k_.rows[level];
    const bool outermost = level == 0;
    const Value from = outermost ? b_.arg(3) : b_.index(0);
    const auto with = [&](int h) {
      SmallVec<int, 6> longer = heights;
      longer.push_back(h);
      return longer;
    };
    if (!k_.tiled(level)) {
      b_.for_range(from, outermost ? b_.arg(4) : b_.index(r.extent), 1, [&](Value i) {
        if (r.window >= 0) enter_range(r.window, i);
        rows(level + 1, r.window >= 0 ? a : moved(a, i, r.a), moved(c, i, r.c), with(0));
      });
      return;
    }
    const int height = k_.heights[level];
    const std::int64_t whole = r.extent / height;
    const auto rest = static_cast<int>(r.extent % height);
    if (outermost && k_.side_by_side) {
      const auto next = [&](int h) {
        rows(1, a, c, with(h));
        return Vec<Value>{};
      };
      if (rest == 0) next(height);
      else
        b_.if_else(b_.compare(Compare::eq, b_.sub(b_.arg(4), b_.arg(3)), b_.index(height)), [&] { return next(height); }, [&] { return next(rest); });
      return;
    }
    const Value to = outermost ? b_.min(b_.arg(4), b_.index(whole)) : b_.index(whole);
    b_.for_range(from, to, 1, [&](Value i) { rows(level + 1, moved(a, i, r.a * height), moved(c, i, r.c * height), with(height)); });
    if (rest == 0) return;
    const auto last = [&] { rows(level + 1, moved(a, b_.index(whole), r.a * height), moved(c, b_.index(whole), r.c * height), with(rest)); };
    if (outermost) b_.if_then(b_.compare(Compare::gt, b_.arg(4), b_.index(whole)), last);
    else last();
  }

  void columns(Value a, Value c, const SmallVec<int, 6>& heights) {
    const std::int64_t width = k_.tile.columns(), whole = k_.n / width;
    const Value from = b_.arg(6), to = b_.arg(7);
    const auto panel = [&](Value i, std::int64_t wide) {
      tile(a, moved(panels_, b_.sub(i, from), depth_ * width), moved(c, i, width), heights, wide);
    };
    if (whole > 0) b_.for_range(from, b_.min(to, b_.index(whole)), 1, [&](Value i) { panel(i, width); });
    const std::int64_t rest = k_.n - whole * width;
    if (rest == 0) return;
    if (whole == 0) panel(b_.index(0), rest);
    else b_.if_then(b_.compare(Compare::gt, to, b_.index(whole)), [&] { panel(b_.index(whole), rest); });
  }

  void tile(Value a, Value panel, Value c, const SmallVec<int, 6>& heights, std::int64_t wide) {
    const int lanes = k_.tile.lanes, vectors = static_cast<int>(pieces(wide, lanes));
    // Where the rows of the tile lie.
    Vec<std::int64_t> a_at{0}, c_at{0};
    for (std::size_t t = 0; t < heights.size(); ++t) {
      const ConvLoops::Row& r = k_.rows[t];
      if (heights[t] == 0) continue;
      Vec<std::int64_t> a_next, c_next;
      for (std::size_t i = 0; i < a_at.size(); ++i)
        for (int h = 0; h < heights[t]; ++h) {
          a_next.push_back(a_at[i] + h * r.a);
          c_next.push_back(c_at[i] + h * r.c);
        }
      a_at = std::move(a_next), c_at = std::move(c_next);
    }
    const TileShape shape{static_cast<int>(a_at.size()), vectors, lanes};
    const Vec<Value> sums = sum(0, shape, a_at, a, panel, {});
    const std::int64_t rest = wide - std::int64_t{vectors - 1} * lanes;
    const Value mask = rest < lanes ? b_.tail_mask(lanes, b_.index(rest)) : Value{};
    const auto write = [&](bool add) {
      for (int r = 0; r < shape.rows; ++r)
        for (int v = 0; v < vectors; ++v) {
          const Value at = b_.offset(c, k_.accumulate, b_.index(c_at[static_cast<std::size_t>(r)] + v * lanes));
          const bool masked = mask && v == vectors - 1;
          Value x = sums[static_cast<std::size_t>(r * vectors + v)];
          if (add) x = b_.add(masked ? b_.load_masked(at, k_.accumulate, mask) : b_.load(at, k_.accumulate, lanes), x);
          if (masked) b_.store_masked(at, x, mask);
          else b_.store(at, x);
        }
      return Vec<Value>{};
    };
    b_.if_else(adding_, [&] { return write(true); }, [&] { return write(false); });
  }

  Vec<Value> sum(std::size_t level, const TileShape& shape, const Vec<std::int64_t>& a_at, Value a, Value panel, Vec<Value> start) {
    const std::int64_t width = k_.tile.columns();
    if (start.empty()) start.assign(static_cast<std::size_t>(shape.rows * shape.vectors), b_.integer(k_.accumulate, 0, shape.lanes));
    const ConvLoops::Depth d = k_.depth.empty() ? ConvLoops::Depth{1, 0} : k_.depth[level];
    // Where place i of a ranged window is: counted from the edge, as place 0 may be beyond it.
    const auto at = [&](Value i) {
      if (d.window < 0) return moved(a, i, d.a);
      const ConvLoops::Range& r = k_.ranges[static_cast<std::size_t>(d.window)];
      return moved(a, b_.add(ranges_[static_cast<std::size_t>(d.window)].first, b_.mul(i, b_.index(r.dilation))), r.distance);
    };
    const Places places = d.window < 0 ? Places{b_.index(0), b_.index(d.extent), {}} : ranges_[static_cast<std::size_t>(d.window)];
    if (level + 1 < k_.depth.size()) {
      std::int64_t inner = 1;
      for (std::size_t next = level + 1; next < k_.depth.size(); ++next) inner *= k_.depth[next].extent;
      return b_.loop(
          places.from, places.to, 1, start,
          [&](Value i, const Vec<Value>& sums) { return sum(level + 1, shape, a_at, at(i), moved(panel, i, inner * width), sums); }, d.window < 0);
    }
    const int bytes = static_cast<int>(static_cast<std::size_t>(shape.lanes) * size_of(k_.accumulate));
    Value depth = b_.index(d.extent);
    if (d.window >= 0) {
      a = at(places.from);
      panel = moved(panel, places.from, d.scale * width);
      depth = b_.mul(b_.max(b_.sub(places.to, places.from), b_.index(0)), b_.index(d.scale));
    }
    return matmul_tiles::sum_tile(
        b_, shape, k_.accumulate, depth, d.window < 0 ? d.extent : -1,
        [&](int r, Value k) {
          return b_.load(b_.offset(moved(a, k, d.a), k_.accumulate, b_.index(a_at[static_cast<std::size_t>(r)])), k_.accumulate);
        },
        [&](int v, Value k) {
          return b_.load(b_.offset(moved(panel, k, width), k_.accumulate, b_.index(v * shape.lanes)), k_.accumulate, shape.lanes, bytes);
        },
        std::move(start));
  }

  IrBuilder& b_;
  const ConvKernel& k_;
  Value panels_, adding_;
  std::int64_t depth_ = 1;
  Vec<Places> ranges_;  // by window
};

}  // namespace conv_code

std::int64_t ConvKernel::units() const {
  if (rows.empty()) return 1;
  return tiled(0) ? conv_code::pieces(rows[0].extent, heights[0]) : rows[0].extent;
}

std::int64_t ConvKernel::rows_before(std::int64_t unit) const {
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < rows.size(); ++i) inner *= rows[i].extent;
  if (rows.empty()) return unit;
  return std::min(unit * (tiled(0) ? heights[0] : 1), rows[0].extent) * inner;
}

double ConvKernel::cost() const {
  // A step multiplies the elements of a tile two vectors at a time, and loads each of a's and b's, also two at a time; sums wait four
  // cycles for each other. What it takes to write a tile, and to start a loop inside of one.
  constexpr double of_start = 8;
  double tiles = 1, images = 1, height = 1, each = 1, starts = 1;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto extent = static_cast<double>(rows[r].extent);
    if (r == 0 && side_by_side) images = extent;
    if (!tiled(r)) {
      tiles *= extent;
      continue;
    }
    const auto whole = static_cast<double>(conv_code::pieces(rows[r].extent, heights[r]));
    tiles *= whole;
    height *= extent / whole;
  }
  for (std::size_t d = 0; d < depth.size(); ++d) {
    double places = static_cast<double>(depth[d].extent);
    if (depth[d].window >= 0) {
      const ConvLoops::Range& r = ranges[static_cast<std::size_t>(depth[d].window)];
      double sum = 0;
      for (std::int64_t o = 0; o < r.out; ++o) sum += static_cast<double>(std::max<std::int64_t>(r.to(o) - r.from(o), 0));
      places = sum / static_cast<double>(r.out) * static_cast<double>(depth[d].scale);
    }
    if (d + 1 < depth.size()) starts *= places;
    each *= places;
  }
  const double vectors = tile.vectors, sums = height * vectors;
  const double step = std::max({sums / 2, (height + vectors) / 2, 4.0});
  return tiles * static_cast<double>(conv_code::pieces(n, tile.columns())) * (each * step + starts * of_start + sums + of_start) / images;
}

std::string ConvKernel::key() const {
  std::string text = std::string(side_by_side ? "conv of images " : "conv ") + vt::name_of(accumulate);
  const auto add = [&](std::int64_t v) { text += ' ' + std::to_string(v); };
  for (const auto& r : rows) add(r.extent), add(r.a), add(r.c), add(r.window);
  text += " |";
  for (const auto& d : depth) {
    add(d.extent), add(d.a), add(d.window), add(d.scale);
    if (d.window < 0) continue;
    const ConvLoops::Range& r = ranges[static_cast<std::size_t>(d.window)];
    add(r.size), add(r.stride), add(r.dilation), add(r.low), add(r.reach), add(r.first), add(r.distance);
  }
  text += " |";
  add(n), add(tile.vectors), add(tile.lanes);
  for (int h : heights) add(h);
  return text;
}

ConvKernel conv_kernel(const ConvSpec& s, const ConvLoops& l, const Target& target) {
  ConvKernel k;
  k.accumulate = s.accumulate;
  k.rows = l.rows, k.ranges = l.ranges, k.n = l.n, k.side_by_side = l.side_by_side;
  k.tile = best_tile(target, s.accumulate);
  // Few columns: one vector, no longer than it must be, and more rows.
  if (k.n <= k.tile.lanes) {
    k.tile.rows *= k.tile.vectors;
    k.tile.vectors = 1;
    while (k.tile.lanes > 1 && k.n <= k.tile.lanes / 2) k.tile.lanes /= 2;
  }
  const auto even = [](std::int64_t n, std::int64_t most) { return static_cast<int>(conv_code::pieces(n, conv_code::pieces(n, most))); };
  k.heights.resize(k.rows.size(), 0);
  if (k.side_by_side) {
    // Few blocks of images are an even number, for threads to share.
    std::int64_t blocks = conv_code::pieces(k.rows[0].extent, k.tile.rows);
    if (blocks > 1 && blocks < 16) blocks = (blocks + 1) / 2 * 2;
    k.heights[0] = static_cast<int>(conv_code::pieces(k.rows[0].extent, blocks));
  } else if (!k.rows.empty()) {
    const std::size_t last = k.rows.size() - 1;
    const std::int64_t extent = k.rows[last].extent, most = k.tile.rows;
    if (extent < most && last > 0 && most / extent > 1) k.heights[last - 1] = even(k.rows[last - 1].extent, most / extent);
    k.heights[last] = even(extent, most);
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
  const std::int64_t panels = conv_code::pieces(k.n, k.tile.columns()), batches = count_of(s.outer_batch);
  const std::int64_t images = l.side_by_side ? l.rows[0].extent * l.rows[0].a : count_of(s.outer_free) * l.elements;
  return count_of(s.outer_contract) == 1 && batches < least_panels &&
         panels * count_of(s.inner_batch) * count_of(s.b_free) * batches >= least_panels && panels * k.tile.columns() * l.depth_count() > images;
}

ConvLoops best_loops(const ConvSpec& s, const Target& target) {
  // The images of a tile stay in the second-level cache, and their lines in the first, where those at equal distances meet.
  constexpr std::int64_t most_bytes = 512 << 10, line = 64, page = 4096, least_blocks = 4;
  constexpr double of_copy = 0.3;  // cycles, of an element
  const ConvLoops alone = loops_of(s);
  std::optional<ConvLoops> together = loops_side_by_side(s, 0);
  if (!together) return alone;
  const auto size = static_cast<std::int64_t>(size_of(s.accumulate));
  const std::int64_t step = together->rows[0].a * size % page;
  if (s.a_dtype != s.accumulate || std::min(step, page - step) < 4 * line) {
    const std::int64_t bytes = (together->elements * size + line - 1) / line * line, odd = bytes % page;
    together = loops_side_by_side(s, (bytes + (std::min(odd, page - odd) < 5 * line ? 5 * line : 0)) / size);
  }
  const ConvKernel one = conv_kernel(s, alone, target), several = conv_kernel(s, *together, target);
  if ((several.units() < least_blocks && !by_panels(s, *together, several)) || several.heights[0] * together->rows[0].a * size > most_bytes)
    return alone;
  const auto copied = [&](const ConvLoops& l) { return l.padded ? static_cast<double>(l.elements) * of_copy : 0; };
  return several.cost() + copied(*together) < 0.97 * (one.cost() + copied(alone)) ? *together : alone;
}

void emit_conv(IrBuilder& b, const std::string& name, const ConvKernel& k) { conv_code::Emitter(b, k).emit(name); }

}  // namespace vt::detail::cpu

#endif
