// The code of one register tile of a convolution, which reads the image where it is.
//
// The elements of the image that one step of a tile multiplies lie at equal distances from a few
// pointers. So they are operands of the multiply-adds, and no patches are copied out or packed.
#include "conv_tile.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../llvm/code_cache.hpp"

namespace vt::detail::cpu {

namespace conv_code {

// Rows that share a pointer: their distances are 0 … 3 times one, for which three registers do.
constexpr int rows_per_pointer = 4;

class ConvTileEmitter {
 public:
  ConvTileEmitter(IrBuilder& b, const ConvTile& t) : b_(b), t_(t) {}

  void emit(const std::string& name) {
    b_.begin_function(
        name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true}, Param::ptr()});
    a_outer_ = number(ConvNumbers::a_outer);
    a_inner_ = t_.rows_adjacent ? b_.index(1) : number(ConvNumbers::a_inner);
    for (int l = 0; l < t_.levels; ++l) {
      const int at = ConvNumbers::levels + 3 * l;
      const bool last = l + 1 == t_.levels;
      levels_.push_back({number(at), last && t_.depth_adjacent ? b_.index(1) : number(at + 1),
                         last ? b_.index(t_.panel) : number(at + 2)});
    }
    per_pointer_ = t_.rows_adjacent ? t_.inner : std::min(t_.inner, rows_per_pointer);
    for (int o = 0; o < t_.outer; ++o)
      for (int i = 0; i < t_.inner; i += per_pointer_)
        starts_.push_back(
            moved(moved(b_.arg(0), b_.mul(a_outer_, b_.index(o))), b_.mul(a_inner_, b_.index(i))));
    for (int i = 0; i < per_pointer_; ++i) rows_.push_back(b_.mul(a_inner_, b_.index(i)));

    const Value columns = number(ConvNumbers::columns), step = number(ConvNumbers::panel),
                width = b_.index(t_.columns());
    b_.for_range(
        b_.index(0), number(ConvNumbers::panels), 1,
        [&](Value p) {
          const Value column = b_.mul(p, width);
          const Vec<Value> sums = sum(0, t_.by_simd_lanes ? column : b_.index(0),
                                      moved(b_.arg(1), b_.mul(p, step)), zeros());
          write(moved(b_.arg(2), column), b_.sub(columns, column), sums);
        },
        true);
    b_.end_function();
  }

 private:
  struct Level {
    Value iterations, a, panel;
  };

  Value number(int i) { return b_.load(b_.offset(b_.arg(3), i64, b_.index(i)), i64); }
  Value moved(Value p, Value i) { return b_.offset(p, t_.accumulate, i); }
  Vec<Value> zeros() {
    return Vec<Value>(t_.outer * t_.inner * t_.vectors,
                      b_.integer(t_.accumulate, 0, t_.simd_lanes));
  }

  // `at`: elements of a from each row's start.
  Vec<Value> sum(std::size_t level, Value at, Value panel, const Vec<Value>& start) {
    const Level& l = levels_[level];
    if (level + 1 == levels_.size()) return innermost(l, at, panel, start);
    return b_.loop(b_.index(0), l.iterations, 1, start, [&](Value i, const Vec<Value>& sums) {
      return sum(level + 1, b_.add(at, b_.mul(i, l.a)), moved(panel, b_.mul(i, l.panel)), sums);
    });
  }

  // Carried: the sums, then the pointers, that of the panel last.
  Vec<Value> innermost(const Level& l, Value at, Value panel, const Vec<Value>& start) {
    Vec<Value> state = start;
    for (Value p : starts_) state.push_back(moved(p, at));
    state.push_back(panel);
    const auto steps = [&](const Vec<Value>& from, int count) {
      Vec<Value> next = from;
      for (int k = 0; k < count; ++k) step(next, l, k);
      for (std::size_t i = start.size(); i < next.size(); ++i)
        next[i] = moved(from[i], b_.mul(i + 1 == next.size() ? l.panel : l.a, b_.index(count)));
      return next;
    };
    // Several steps per iteration, unless the scheduler would bring their loads forward until it
    // runs out of registers. With both adjacent there are no channels, and no more iterations than
    // a window is wide.
    const bool full = 4 * static_cast<int>(start.size()) >= 3 * b_.target().vector_registers;
    const int unroll = (t_.rows_adjacent ? 2 : 1) * (full ? 1 : 2) /
                       (full && t_.rows_adjacent && t_.depth_adjacent ? 2 : 1);
    const Value whole = unroll > 1 ? b_.bit_and(l.iterations, b_.index(-unroll)) : l.iterations;
    state = b_.loop(b_.index(0), whole, unroll, state,
                    [&](Value, const Vec<Value>& s) { return steps(s, unroll); });
    if (unroll > 1)
      state = b_.loop(whole, l.iterations, 1, state,
                      [&](Value, const Vec<Value>& s) { return steps(s, 1); });
    state.resize(start.size());
    return state;
  }

  // Step k from where the pointers of the state are, which stay.
  void step(Vec<Value>& state, const Level& l, int k) {
    const std::size_t sums = static_cast<std::size_t>(t_.outer * t_.inner * t_.vectors);
    const int bytes = static_cast<int>(t_.simd_lanes * size_of(t_.accumulate));
    const Value panel = moved(state.back(), b_.index(k * t_.panel));
    Vec<Value> factors;
    for (int v = 0; v < t_.vectors; ++v)
      factors.push_back(
          b_.load(moved(panel, b_.index(v * t_.simd_lanes)), t_.accumulate, t_.simd_lanes, bytes));
    std::size_t pointer = sums, i = 0;
    for (int o = 0; o < t_.outer; ++o)
      for (int r = 0; r < t_.inner; ++r) {
        const Value row =
            moved(moved(state[pointer], rows_[r % per_pointer_]), b_.mul(l.a, b_.index(k)));
        if ((r + 1) % per_pointer_ == 0 || r + 1 == t_.inner) ++pointer;
        const Value x =
            t_.by_simd_lanes ? Value{} : b_.splat(b_.load(row, t_.accumulate), t_.simd_lanes);
        for (int v = 0; v < t_.vectors; ++v, ++i) {
          const Value mine = t_.by_simd_lanes ? b_.load(moved(row, b_.index(v * t_.simd_lanes)),
                                                        t_.accumulate, t_.simd_lanes)
                                              : x;
          state[i] = b_.mul_add(mine, factors[v], state[i]);
        }
      }
  }

  void write(Value c, Value columns, const Vec<Value>& sums) {
    // What is skipped goes where the first row that is not will be written after it.
    const Value skipped = number(ConvNumbers::skipped), outer = number(ConvNumbers::c_outer),
                inner = number(ConvNumbers::c_inner);
    Vec<Value> at;
    for (int o = 0; o < t_.outer; ++o)
      for (int i = 0; i < t_.inner; ++i) {
        const Value row = t_.outer > 1 ? b_.max(skipped, b_.index(o)) : b_.index(o),
                    column = t_.outer > 1 ? b_.index(i) : b_.max(skipped, b_.index(i));
        at.push_back(moved(moved(c, b_.mul(row, outer)), b_.mul(column, inner)));
      }
    const auto each = [&](bool whole, bool add) {
      Vec<Value> masks, results = sums;
      for (int v = 0; v < t_.vectors && !whole; ++v)
        masks.push_back(b_.tail_mask(t_.simd_lanes, b_.sub(columns, b_.index(v * t_.simd_lanes))));
      const auto place = [&](std::size_t r, int v) {
        return moved(at[r], b_.index(v * t_.simd_lanes));
      };
      for (std::size_t i = 0; add && i < sums.size(); ++i) {
        const int v = static_cast<int>(i) % t_.vectors;
        const Value from = place(i / static_cast<std::size_t>(t_.vectors), v);
        const Value earlier = whole ? b_.load(from, t_.accumulate, t_.simd_lanes)
                                    : b_.load_masked(from, t_.accumulate, masks[v]);
        results[i] = b_.add(earlier, sums[i]);
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const int v = static_cast<int>(i) % t_.vectors;
        const Value to = place(i / static_cast<std::size_t>(t_.vectors), v);
        if (whole) b_.store(to, results[i]);
        else b_.store_masked(to, results[i], masks[v]);
      }
      return Vec<Value>{};
    };
    const auto either = [&](bool whole) {
      if (!t_.adds) return each(whole, false);
      const Value adding = b_.compare(Compare::ne, number(ConvNumbers::adding), b_.index(0));
      return b_.if_else(
          adding, [&] { return each(whole, true); }, [&] { return each(whole, false); });
    };
    if (t_.whole) either(true);
    else
      b_.if_else(
          b_.compare(Compare::ge, columns, b_.index(t_.columns())), [&] { return either(true); },
          [&] { return either(false); });
  }

  IrBuilder& b_;
  const ConvTile& t_;
  Value a_outer_, a_inner_;
  Vec<Level> levels_;
  int per_pointer_ = 1;
  Vec<Value> starts_;  ///< of each pointer's first row
  Vec<Value> rows_;    ///< distances of a pointer's rows
};

}  // namespace conv_code

std::string ConvTile::key() const {
  std::string text = std::string("conv ") + vt::name_of(accumulate);
  for (const std::int64_t v : {std::int64_t{outer}, std::int64_t{inner}, std::int64_t{vectors},
                               std::int64_t{simd_lanes}, std::int64_t{panel}, std::int64_t{levels}})
    text += ' ' + std::to_string(v);
  return text + (rows_adjacent ? " rows" : "") + (depth_adjacent ? " depth" : "") +
         (by_simd_lanes ? " lanes" : "") + (whole ? " whole" : "") + (adds ? " adds" : "");
}

void emit_conv_tile(IrBuilder& b, const std::string& name, const ConvTile& t) {
  conv_code::ConvTileEmitter(b, t).emit(name);
}

std::shared_ptr<const Code> conv_tile_code(const ConvTile& t) {
  const std::string name = "vt_conv";
  return cached_code(t.key(), {&name, 1}, [&](IrBuilder& b) { emit_conv_tile(b, name, t); });
}

}  // namespace vt::detail::cpu

#endif
