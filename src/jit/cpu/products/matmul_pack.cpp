// Packing: code that copies operands of matrix products into the order in which their kernels read
// them.
#include "matmul_pack.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../llvm/code_cache.hpp"

namespace vt::detail::cpu {

namespace matmul_packing {

constexpr int most_simd_lanes = 16;  // a square of more is mostly shuffles
// few columns of long rows: each is in a page of its own, so it is asked for early
constexpr int rows_ahead = 16;

// Rows become columns in log2(rows) iterations; each swaps blocks of `half` SIMD lanes between rows
// `half` apart.
Vec<Value> transposed(IrBuilder& b, Vec<Value> rows) {
  const int n = static_cast<int>(rows.size());
  for (int half = n / 2; half >= 1; half /= 2) {
    Vec<int> low, high;
    for (int i = 0; i < n; ++i) {
      const bool upper = (i / half) % 2 != 0;
      low.push_back(upper ? n + i - half : i);
      high.push_back(upper ? n + i : i + half);
    }
    for (int i = 0; i < n; ++i) {
      if ((i / half) % 2) continue;
      Value &p = rows[i], &q = rows[i + half];
      const Value first = b.shuffle(p, q, low);
      q = b.shuffle(p, q, high);
      p = first;
    }
  }
  return rows;
}

class Packer {
 public:
  Packer(IrBuilder& b, const PackSpec& s)
      : b_(b),
        s_(s),
        simd_lanes_(std::min(b.target().simd_lanes(size_of(s.to)), most_simd_lanes)) {}

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param{.pointer = true, .noalias = true}, Param::of(i64),
                             Param::of(i64), Param::of(i64), Param::of(i64), Param::of(i64)});
    from_ = b_.arg(0), to_ = b_.arg(1), to_row_ = b_.arg(4), lines_ = b_.arg(5), depth_ = b_.arg(6);
    line_step_ = s_.lines_adjacent ? b_.index(1) : b_.arg(2);
    k_step_ = s_.k_adjacent ? b_.index(s_.group) : b_.arg(3);
    if (s_.k_adjacent && !s_.lines_adjacent && simd_lanes_ > 1) pack_transposed();
    else
      b_.if_else(
          b_.compare(Compare::ge, lines_, b_.index(s_.lines)), [&] { return all(true); },
          [&] { return all(false); });
    b_.end_function();
  }

 private:
  Vec<Value> all(bool full) {
    b_.for_range(b_.index(0), depth_, 1, [&](Value k) {
      for (int line = 0; line < s_.lines; line += simd_lanes_)
        s_.group > 1 ? one_group(line, k, full) : one_k(line, k, full);
    });
    return {};
  }

  // Lines along k: squares of them are transposed in registers. The last square begins inside of
  // the one before; where lines are missing, the last one stands for them.
  void pack_transposed() {
    b_.if_else(
        b_.compare(Compare::ge, depth_, b_.index(simd_lanes_)), [&] { return squares(); },
        [&] { return single(); });
  }
  Vec<Value> squares() {
    const Value last = b_.sub(depth_, b_.index(simd_lanes_));
    b_.for_range(b_.index(0), lines_, simd_lanes_, [&](Value line) {
      const Value mask =
          s_.whole_vectors ? Value{} : b_.tail_mask(simd_lanes_, b_.sub(lines_, line));
      Vec<Value> starts;
      for (int i = 0; i < simd_lanes_; ++i)
        starts.push_back(b_.offset(
            from_, s_.from,
            b_.mul(line_step_, b_.min(b_.add(line, b_.index(i)), b_.sub(lines_, b_.index(1))))));
      b_.for_range(b_.index(0), depth_, simd_lanes_, [&](Value iteration) {
        const Value k = b_.min(iteration, last);
        Vec<Value> rows;
        for (Value start : starts) rows.push_back(along_k(start, k, simd_lanes_));
        rows = transposed(b_, std::move(rows));
        for (int i = 0; i < simd_lanes_; ++i) {
          const Value at = place(line, b_.add(k, b_.index(i)));
          if (mask) b_.store_masked(at, rows[i], mask);
          else b_.store(at, rows[i]);
        }
      });
    });
    return {};
  }
  Vec<Value> single() {
    b_.for_range(b_.index(0), lines_, 1, [&](Value line) {
      b_.for_range(b_.index(0), depth_, 1, [&](Value k) {
        b_.store(place(line, k),
                 along_k(b_.offset(from_, s_.from, b_.mul(line_step_, line)), k, 1));
      });
    });
    return {};
  }
  // Of a line, from k on; a group is loaded as one number.
  Value along_k(Value start, Value k, int simd_lanes) {
    const Value at = b_.offset(start, s_.from, b_.mul(k, k_step_));
    if (s_.group == 1) return b_.convert(b_.load(at, s_.from, simd_lanes), s_.to);
    const Value groups = b_.load(at, s_.to, simd_lanes);
    return s_.flipped ? b_.bit_xor(groups, b_.integer(s_.to, -0x7f7f7f80, simd_lanes)) : groups;
  }
  // Neighbouring lines of one group, whose elements come from as many rows.
  void one_group(int line, Value k, bool full) {
    const Value mask = mask_of(line, full), at = source(line, k),
                step = b_.div(k_step_, b_.index(s_.group));
    const DType bits = s_.group == 4 ? DType::u8 : DType::u16;
    Vec<Value> rows;
    for (int i = 0; i < s_.group; ++i) {
      const Value row = b_.offset(at, s_.from, b_.mul(step, b_.index(i)));
      rows.push_back(mask ? b_.load_masked(row, bits, mask) : b_.load(row, bits, simd_lanes_));
      b_.fetch_ahead(b_.offset(row, s_.from, b_.mul(k_step_, b_.index(rows_ahead / s_.group))), {});
    }
    if (s_.group == 4)
      rows = {b_.concat_simd_lanes(rows[0], rows[1]), b_.concat_simd_lanes(rows[2], rows[3])};
    Vec<int> simd_lanes;
    for (int l = 0; l < simd_lanes_; ++l)
      for (int i = 0; i < s_.group; ++i) simd_lanes.push_back(i * simd_lanes_ + l);
    Value all = b_.shuffle(rows[0], rows[1], simd_lanes);
    if (s_.flipped) all = b_.bit_xor(all, b_.integer(bits, 0x80, all.simd_lanes));
    b_.store(place(b_.index(line), k), all);
  }
  Value place(Value line, Value k) {
    return b_.offset(b_.offset(to_, s_.to, b_.mul(k, to_row_)), s_.to, line);
  }

  int count_from(int line) const { return std::min(simd_lanes_, s_.lines - line); }
  Value mask_of(int line, bool full) {
    if (!full) return b_.tail_mask(simd_lanes_, b_.sub(lines_, b_.index(line)));
    return count_from(line) == simd_lanes_ ? Value{}
                                           : b_.tail_mask(simd_lanes_, b_.index(count_from(line)));
  }
  Value source(int line, Value k) {
    return b_.offset(b_.offset(from_, s_.from, b_.mul(k, k_step_)), s_.from,
                     b_.mul(line_step_, b_.index(line)));
  }
  void put(int line, Value k, Value x, bool full) {
    const Value at = place(b_.index(line), k),
                mask = s_.whole_vectors ? Value{} : mask_of(line, full);
    if (mask) b_.store_masked(at, x, mask);
    else b_.store(at, x);
  }

  void one_k(int line, Value k, bool full) {
    const Value mask = mask_of(line, full), at = source(line, k);
    if (s_.lines_adjacent && !s_.k_adjacent)
      b_.fetch_ahead(source(line, b_.add(k, b_.index(rows_ahead))), {});
    const Value x = s_.lines_adjacent ? b_.load_strided(at, s_.from, simd_lanes_, 1, mask)
                                      : b_.load_strided(at, s_.from, simd_lanes_, line_step_, mask);
    put(line, k, b_.convert(x, s_.to), full);
  }

  IrBuilder& b_;
  const PackSpec& s_;
  int simd_lanes_;
  Value from_, to_, line_step_, k_step_, to_row_, lines_, depth_;
};

}  // namespace matmul_packing

std::string PackSpec::key() const {
  return std::string("pack ") + name_of(from) + " " + name_of(to) + " " + std::to_string(lines) +
         (lines_adjacent ? " lines" : "") + (k_adjacent ? " k" : "") +
         (whole_vectors ? " whole" : "") + (group > 1 ? " groups " + std::to_string(group) : "") +
         (flipped ? " flipped" : "");
}

void emit_pack(IrBuilder& b, const std::string& name, const PackSpec& spec) {
  matmul_packing::Packer(b, spec).emit(name);
}

std::shared_ptr<const Code> pack_code(const PackSpec& spec, bool hurry) {
  return cached_code(
      spec.key(), "vt_pack", [spec](IrBuilder& b) { emit_pack(b, "vt_pack", spec); }, hurry);
}

}  // namespace vt::detail::cpu

#endif
