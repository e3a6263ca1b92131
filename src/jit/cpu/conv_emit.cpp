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
    first_tiled_ = k.rows.size() - k.heights.size();
  }

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true}, Param::of(i64), Param::of(i64), Param::of(i64)});
    panels_ = b_.arg(1);
    adding_ = b_.compare(Compare::ne, b_.arg(5), b_.index(0));
    rows(0, b_.arg(0), b_.arg(2), {});
    b_.end_function();
  }

 private:
  Value moved(Value p, Value i, std::int64_t step) { return b_.offset(p, k_.accumulate, b_.mul(i, b_.index(step))); }

  void rows(std::size_t level, Value a, Value c, SmallVec<int, 2> heights) {
    if (level == k_.rows.size()) return columns(a, c, heights);
    const ConvLoops::Row& r = k_.rows[level];
    const bool outermost = level == 0;
    const Value from = outermost ? b_.arg(3) : b_.index(0);
    if (level < first_tiled_) {
      b_.for_range(from, outermost ? b_.arg(4) : b_.index(r.extent), 1,
                   [&](Value i) { rows(level + 1, moved(a, i, r.a), moved(c, i, r.c), heights); });
      return;
    }
    const int height = k_.heights[level - first_tiled_];
    const auto with = [&](int h) {
      SmallVec<int, 2> longer = heights;
      longer.push_back(h);
      return longer;
    };
    const std::int64_t whole = r.extent / height;
    const Value to = outermost ? b_.min(b_.arg(4), b_.index(whole)) : b_.index(whole);
    b_.for_range(from, to, 1, [&](Value i) { rows(level + 1, moved(a, i, r.a * height), moved(c, i, r.c * height), with(height)); });
    const auto rest = static_cast<int>(r.extent % height);
    if (rest == 0) return;
    const auto last = [&] { rows(level + 1, moved(a, b_.index(whole), r.a * height), moved(c, b_.index(whole), r.c * height), with(rest)); };
    if (outermost) b_.if_then(b_.compare(Compare::gt, b_.arg(4), b_.index(whole)), last);
    else last();
  }

  void columns(Value a, Value c, const SmallVec<int, 2>& heights) {
    const std::int64_t width = k_.tile.columns(), whole = k_.n / width;
    const auto panel = [&](Value i, std::int64_t wide) { tile(a, moved(panels_, i, depth_ * width), moved(c, i, width), heights, wide); };
    if (whole > 0) b_.for_range(b_.index(0), b_.index(whole), 1, [&](Value i) { panel(i, width); }, true);
    if (const std::int64_t rest = k_.n - whole * width; rest > 0) panel(b_.index(whole), rest);
  }

  void tile(Value a, Value panel, Value c, const SmallVec<int, 2>& heights, std::int64_t wide) {
    const int lanes = k_.tile.lanes, vectors = static_cast<int>(pieces(wide, lanes));
    // Where the rows of the tile lie.
    Vec<std::int64_t> a_at{0}, c_at{0};
    for (std::size_t t = 0; t < heights.size(); ++t) {
      const ConvLoops::Row& r = k_.rows[first_tiled_ + t];
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
    if (level + 1 < k_.depth.size()) {
      std::int64_t inner = 1;
      for (std::size_t d = level + 1; d < k_.depth.size(); ++d) inner *= k_.depth[d].extent;
      return b_.loop(
          b_.index(0), b_.index(k_.depth[level].extent), 1, start,
          [&](Value i, const Vec<Value>& sums) {
            return sum(level + 1, shape, a_at, moved(a, i, k_.depth[level].a), moved(panel, i, inner * width), sums);
          },
          true);
    }
    const ConvLoops::Depth d = k_.depth.empty() ? ConvLoops::Depth{1, 0} : k_.depth[level];
    const int bytes = static_cast<int>(static_cast<std::size_t>(shape.lanes) * size_of(k_.accumulate));
    return matmul_tiles::sum_tile(
        b_, shape, k_.accumulate, b_.index(d.extent), d.extent,
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
  std::size_t first_tiled_ = 0;
};

}  // namespace conv_code

std::int64_t ConvKernel::units() const {
  if (rows.empty()) return 1;
  return rows.size() > heights.size() ? rows[0].extent : conv_code::pieces(rows[0].extent, heights[0]);
}

std::int64_t ConvKernel::rows_before(std::int64_t unit) const {
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < rows.size(); ++i) inner *= rows[i].extent;
  if (rows.empty()) return unit;
  return std::min(unit * (rows.size() > heights.size() ? 1 : heights[0]), rows[0].extent) * inner;
}

std::string ConvKernel::key() const {
  std::string text = std::string("conv ") + vt::name_of(accumulate);
  const auto add = [&](std::int64_t v) { text += ' ' + std::to_string(v); };
  for (const auto& r : rows) add(r.extent), add(r.a), add(r.c);
  text += " |";
  for (const auto& d : depth) add(d.extent), add(d.a);
  text += " |";
  add(n), add(tile.vectors), add(tile.lanes);
  for (int h : heights) add(h);
  return text;
}

ConvKernel conv_kernel(const ConvSpec& s, const ConvLoops& l, const Target& target) {
  ConvKernel k;
  k.accumulate = s.accumulate;
  k.rows = l.rows, k.depth = l.depth, k.n = l.n;
  k.tile = best_tile(target, s.accumulate);
  // Few columns: one vector, no longer than it must be, and more rows.
  if (k.n <= k.tile.lanes) {
    k.tile.rows *= k.tile.vectors;
    k.tile.vectors = 1;
    while (k.tile.lanes > 1 && k.n <= k.tile.lanes / 2) k.tile.lanes /= 2;
  }
  const auto even = [](std::int64_t n, std::int64_t most) { return static_cast<int>(conv_code::pieces(n, conv_code::pieces(n, most))); };
  if (!k.rows.empty()) {
    const std::int64_t last = k.rows.back().extent, most = k.tile.rows;
    if (last < most && k.rows.size() > 1 && most / last > 1) k.heights.push_back(even(k.rows[k.rows.size() - 2].extent, most / last));
    k.heights.push_back(even(last, most));
  }
  return k;
}

void emit_conv(IrBuilder& b, const std::string& name, const ConvKernel& k) { conv_code::Emitter(b, k).emit(name); }

}  // namespace vt::detail::cpu

#endif
