// Matrix products for any number of rows: one code for all of them, over panels of b.
#include "matmul_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <memory>

#include "../../../trace/base/buffer.hpp"
#include "../../services/threads.hpp"
#include "../llvm/code_cache.hpp"
#include "matmul_emit.hpp"
#include "matmul_pack.hpp"

namespace vt::detail::cpu {

namespace matmul_any_rows {

// Wide and low: few rows have as many sums in flight as the pipeline takes, and few are left over
// by whole tiles.
TileShape tile_of(const MatmulSpec& s) {
  TileShape tile = best_tile(host_target(), s.accumulate);
  if (host_target().vector_registers >= 32) tile = {6, 4, tile.simd_lanes};
  const auto vectors = static_cast<int>((s.n + tile.simd_lanes - 1) / tile.simd_lanes);
  tile.vectors = std::min(tile.vectors, vectors);
  return tile;
}

// Multiply-adds that are worth a range of their own.
constexpr std::int64_t least_work = 1 << 17;

}  // namespace matmul_any_rows

class AnyRows final : public Matmul {
 public:
  AnyRows(const MatmulSpec& s, bool hurry) : s_(s), tile_(matmul_any_rows::tile_of(s)) {
    MatmulSpec spec = s;
    spec.b_dtype = s.accumulate, spec.b_row = tile_.columns(), spec.b_column = 1;
    std::string key = "any rows";
    for (DType d : {s.a_dtype, s.accumulate, s.result}) (key += ' ') += vt::name_of(d);
    for (std::int64_t v : {s.n, s.k, s.a_row, s.a_column}) key += ' ' + std::to_string(v);
    code_ = cached_code(
        key, "vt_matmul",
        [spec, tile = tile_](IrBuilder& b) { emit_any_rows(b, "vt_matmul", spec, tile); }, hurry);
    pack_ = pack_code({.from = s.b_dtype,
                       .to = s.accumulate,
                       .lines = tile_.columns(),
                       .lines_adjacent = s.b_column == 1,
                       .k_adjacent = s.b_row == 1},
                      hurry);
  }

  PackedOperands pack(const void*, const void* b) const override {
    return b ? PackedOperands{{}, in_panels(b)} : PackedOperands{};
  }
  std::size_t packed_bytes(bool, bool b) const override { return b ? panel_bytes() : 0; }
  std::size_t scratch_bytes(const RowsDone&, bool, bool b_packed) const override {
    return b_packed ? 0 : panel_bytes();
  }
  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands& packed) const override {
    run_rows(a, b, c, s_.m, done, packed);
  }
  void run_rows(const void* a, const void* b, void* c, std::int64_t rows, const RowsDone& done,
                const PackedOperands& packed) const override {
    const BufferRef panels = packed.b ? packed.b : in_panels(b);
    auto* f = code_->function<DirectFunction>();
    MatmulSpec some = s_;
    some.m = rows;
    run_in_ranges(some, {false, tile_.rows}, done,
                  [&](std::int64_t begin, std::int64_t end) { f(a, panels->data, c, begin, end); });
  }
  std::string describe() const override {
    return "any rows " + std::to_string(tile_.rows) + "x" + std::to_string(tile_.columns());
  }

 private:
  std::int64_t panels() const { return (s_.n + tile_.columns() - 1) / tile_.columns(); }
  std::size_t panel_bytes() const {
    return panels() * tile_.columns() * s_.k * size_of(s_.accumulate);
  }
  BufferRef in_panels(const void* b) const {
    const std::int64_t width = tile_.columns();
    BufferRef made = allocate(panel_bytes(), "vt::matmul: packed operand");
    parallel_ranges(panels(),
                    std::max<std::int64_t>(1, matmul_any_rows::least_work / (width * s_.k)),
                    [&](std::int64_t from, std::int64_t to) {
                      for (std::int64_t p = from; p < to; ++p)
                        pack_->function<PackFunction>()(
                            at_element(b, p * width * s_.b_column, s_.b_dtype),
                            at_element(made->data, p * width * s_.k, s_.accumulate), s_.b_column,
                            s_.b_row, width, std::min(width, s_.n - p * width), s_.k);
                    });
    return made;
  }

  MatmulSpec s_;
  TileShape tile_;
  std::shared_ptr<const Code> code_, pack_;
};

std::shared_ptr<const Matmul> make_any_rows(const MatmulSpec& s, bool hurry) {
  return std::make_shared<AnyRows>(s, hurry);
}

}  // namespace vt::detail::cpu

#endif
