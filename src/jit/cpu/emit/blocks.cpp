// Transposed tiles collected into blocks, so that rows are read and written in long contiguous
// runs.
#include <vt/detail/small_vec.hpp>

#include "../../nest/cost_model.hpp"
#include "kernel_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

namespace vt::detail::cpu {

// Block after block along the tile loop, so that each row of the operands is read from its
// beginning to its end.
void KernelEmitter::blocks(const Vec<int>& tiled) {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  const std::int64_t most_columns = std::int64_t{simd_lanes} * stage_->block_along,
                     most_lines = std::int64_t{simd_lanes} * stage_->block_across;
  Values arrays;
  for (int v : tiled)
    arrays.push_back(b_.stack_array(nest_.values[v].dtype, most_lines * pitch_of(v)));
  const Value across_end = upper(across), along_end = upper(along);
  b_.for_range(
      lower(along), along_end, most_columns,
      [&](Value v) {
        const Value columns = whole_groups(along, most_columns) && along != schedule_.parallel_loop
                                  ? b_.index(most_columns)
                                  : b_.min(b_.index(most_columns), b_.sub(along_end, v));
        b_.for_range(
            lower(across), across_end, most_lines,
            [&](Value u) {
              const Values before = values_.known();
              block(tiled, arrays, u, v, b_.min(b_.index(most_lines), b_.sub(across_end, u)),
                    columns);
              values_.restore(before);
            },
            nonempty(across));
      },
      nonempty(along));
}

void KernelEmitter::block(const Vec<int>& tiled, const Values& arrays, Value u, Value v,
                          Value lines, Value columns) {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  fill_block(tiled, arrays, u, v, lines, columns);
  const auto vector = [&](Value c, Value from, Value mask) {
    const Values outside = values_.known();
    values_.enter(along, b_.add(v, from));
    values_.set_mask(mask);
    for (std::size_t k = 0; k < tiled.size(); ++k) {
      const DType d = nest_.values[tiled[k]].dtype;
      const Value line = b_.mul(c, b_.index(pitch_of(tiled[k])));
      values_.bind(tiled[k], b_.load(b_.offset(arrays[k], d, b_.add(line, from)), d, simd_lanes));
    }
    store_all(body_);
    values_.set_mask({});
    values_.leave(along);
    values_.restore(outside);
  };
  const bool no_tail = whole_groups(along, simd_lanes);
  b_.for_range(
      b_.index(0), lines, 1,
      [&](Value c) {
        const Values outside = values_.known();
        values_.enter(across, b_.add(u, c));
        values_.hoist(body_.needed);
        // Stores past the caches have no mask, and those of a line follow each other.
        const bool masked = stage_->masked && !no_tail;
        const Value whole =
            no_tail || masked ? columns : b_.bit_and(columns, b_.index(-simd_lanes));
        b_.for_range(
            b_.index(0), whole, simd_lanes,
            [&](Value i) {
              vector(c, i, masked ? b_.tail_mask(simd_lanes, b_.sub(columns, i)) : Value{});
            },
            no_tail || masked);
        if (!no_tail && !masked)
          b_.if_then(b_.compare(Compare::lt, whole, columns),
                     [&] { vector(c, whole, b_.tail_mask(simd_lanes, b_.sub(columns, whole))); });
        values_.leave(across);
        values_.restore(outside);
      },
      true);
}

// Some rows at a time, square after square along them; squares whose rows are parts of the same
// cache lines together.
void KernelEmitter::fill_block(const Vec<int>& tiled, const Values& arrays, Value u, Value v,
                               Value lines, Value columns) {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  std::int64_t together = 1;
  for (int k : tiled)
    together = std::max(together, scheduling::cache_line /
                                      (simd_lanes * static_cast<std::int64_t>(size_of(moved(k)))));
  together = std::min<std::int64_t>(together, stage_->block_across);
  const std::int64_t step = together * simd_lanes;
  const bool all_whole = whole_groups(along, simd_lanes) && whole_groups(across, step);
  // The next block begins where these rows end.
  const std::int64_t ahead =
      stage_->fetch_ahead ? std::int64_t{simd_lanes} * stage_->block_across : 0;
  b_.for_range(
      b_.index(0), columns, simd_lanes,
      [&](Value i) {
        values_.enter(along, b_.add(v, i));
        const Value rows = b_.min(b_.index(simd_lanes), b_.sub(columns, i));
        b_.for_range(
            b_.index(0), lines, step,
            [&](Value j) {
              const Values before = values_.known();
              for (std::size_t k = 0; k < tiled.size(); ++k)
                for (std::int64_t part = 0; part < step; part += simd_lanes) {
                  const Value from = part ? b_.add(j, b_.index(part)) : j,
                              wide = b_.min(b_.index(simd_lanes), b_.sub(lines, from));
                  values_.enter(across, b_.add(u, from));
                  const Value place =
                      b_.offset(arrays[k], moved(tiled[k]),
                                b_.add(b_.mul(from, b_.index(pitch_of(tiled[k]))), i));
                  fill_tile(tiled[k], {place, pitch_of(tiled[k]), part ? 0 : ahead},
                            all_whole ? Value{}
                                      : b_.compare(Compare::eq, b_.add(rows, wide),
                                                   b_.index(2 * simd_lanes)),
                            wide, rows);
                  values_.restore(before);
                }
              values_.leave(across);
            },
            true);
        values_.leave(along);
      },
      true);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
