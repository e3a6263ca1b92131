// Operands that are contiguous along another loop than the vector loop: read in square tiles that
// are transposed in registers.
#include <vt/detail/small_vec.hpp>

#include "kernel_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

namespace vt::detail::cpu {

// Rows of 2^k vectors become columns in k iterations: inside of 16 bytes rows are interleaved, for
// which there is one instruction whatever the elements' size (taking turns with the neighbour's
// elements would shift and blend), further apart pairs of rows exchange blocks.
Values KernelEmitter::transposed(Values rows) {
  const int n = static_cast<int>(rows.size()),
            near = std::min(n, 16 / static_cast<int>(size_of(rows[0].dtype)));
  Vec<int> first_half, second_half;
  for (int i = 0; i < n; ++i) {
    const int element = (i % 2) * n + i / near * near + i % near / 2;
    first_half.push_back(element);
    second_half.push_back(element + near / 2);
  }
  for (int iteration = 1; iteration < near; iteration *= 2) {
    Values next;
    for (int r = 0; r < n; r += 2) {
      const std::size_t from = r / near * near + r % near / 2;
      next.push_back(
          b_.shuffle(rows[from], rows[from + static_cast<std::size_t>(near / 2)], first_half));
      next.push_back(
          b_.shuffle(rows[from], rows[from + static_cast<std::size_t>(near / 2)], second_half));
    }
    rows = std::move(next);
  }
  for (int width = near; width < n; width *= 2) {
    Vec<int> low, high;
    for (int i = 0; i < n; ++i) {
      // Lane i of a pair's first result: from the first row where bit `width` of i is clear, else
      // from the second, shifted.
      low.push_back(i & width ? n + (i ^ width) : i);
      high.push_back(i & width ? n + i : i | width);
    }
    for (int r = 0; r < n; ++r) {
      if (r & width) continue;
      const Value a = rows[r], c = rows[r | width];
      rows[r] = b_.shuffle(a, c, low);
      rows[r | width] = b_.shuffle(a, c, high);
    }
  }
  return rows;
}

// Squares of SIMD lanes × SIMD lanes: operands that lie along the tile loop are read by rows,
// transposed in registers and laid on the stack; then the body runs along the vector loop for each
// line of the square.
void KernelEmitter::tiles() {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  Vec<int> tiled;
  for (int v : body_.needed)
    if (values_.reads_transposed(v, *stage_)) tiled.push_back(v);
  if (stage_->block_along > 1 || stage_->block_across > 1) return blocks(tiled);
  Values arrays;
  for (int v : tiled)
    arrays.push_back(b_.stack_array(nest_.values[v].dtype, std::int64_t{simd_lanes} * simd_lanes));
  const Value across_end = upper(across), along_end = upper(along);
  // Blocks of a few tiles: every row that is read and every line that is written is on a page of
  // its own, and the pages in use must stay in the translation buffer; but a line must be long
  // enough to be written at full speed.
  const std::int64_t block = std::int64_t{simd_lanes} * stage_->tiles_in_a_row;
  b_.for_range(
      lower(along), along_end, block,
      [&](Value first) {
        const Value last = b_.min(b_.add(first, b_.index(block)), along_end);
        b_.for_range(
            lower(across), across_end, simd_lanes,
            [&](Value u) {
              b_.for_range(
                  first, last, simd_lanes,
                  [&](Value v) { tile(tiled, arrays, u, v, across_end, along_end); }, true);
            },
            nonempty(across));
      },
      nonempty(along));
}

void KernelEmitter::tile(const Vec<int>& tiled, const Values& arrays, Value u, Value v,
                         Value across_end, Value along_end) {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  const Values before = values_.known();
  values_.enter(across, u);
  values_.enter(along, v);
  const bool always_whole = whole_groups(along, simd_lanes) && whole_groups(across, simd_lanes);
  const Value lines = b_.min(b_.index(simd_lanes), b_.sub(across_end, u)),
              columns = b_.min(b_.index(simd_lanes), b_.sub(along_end, v));
  const Value whole =
      always_whole ? Value{}
                   : b_.compare(Compare::eq, b_.add(lines, columns), b_.index(2 * simd_lanes));
  for (std::size_t k = 0; k < tiled.size(); ++k)
    fill_tile(tiled[k], alone(arrays[k]), whole, lines, columns);
  const auto body = [&](Value from, Value to, Value mask) {
    b_.for_range(from, to, 1, [&](Value c) {
      const Values outside = values_.known();
      values_.enter(across, b_.add(u, c));
      values_.set_mask(mask);
      for (std::size_t k = 0; k < tiled.size(); ++k) {
        const DType d = nest_.values[tiled[k]].dtype;
        values_.bind(tiled[k], b_.load(b_.offset(arrays[k], d, b_.mul(c, b_.index(simd_lanes))), d,
                                       simd_lanes));
      }
      store_all(body_);
      values_.set_mask({});
      values_.restore(outside);
    });
  };
  // Whole tiles need no mask, which stores past the caches cannot have.
  if (always_whole) {
    body(b_.index(0), b_.index(simd_lanes), {});
  } else if (stage_->masked) {
    body(b_.index(0), lines, b_.tail_mask(simd_lanes, columns));
  } else {
    b_.if_else(
        whole, [&] { return body(b_.index(0), b_.index(simd_lanes), {}), Values{}; },
        [&] { return body(b_.index(0), lines, b_.tail_mask(simd_lanes, columns)), Values{}; });
  }
  values_.leave(along);
  values_.leave(across);
  values_.restore(before);
}

// Iterations that build on each other along rows of memory: every SIMD lane follows a row of its
// own. Squares are read by rows and transposed, the iterations run through their lines with the
// states in registers, and what they store is laid on the stack, transposed back and written by
// rows.
void KernelEmitter::transposed_fold() {
  const int along = stage_->vector_loop, across = stage_->tile_loop,
            simd_lanes = values_.simd_lanes();
  const auto place = [&](Value array, DType d, Value line) {
    return b_.offset(array, d, b_.mul(line, b_.index(simd_lanes)));
  };
  const auto dtype_of = [&](const NestStore& s) { return nest_.buffers[s.buffer].dtype; };
  Vec<int> tiled;
  Values arrays, results;
  for (int v : body_.needed) {
    if (!values_.reads_transposed(v, *stage_)) continue;
    tiled.push_back(v);
    arrays.push_back(b_.stack_array(nest_.values[v].dtype, std::int64_t{simd_lanes} * simd_lanes));
  }
  for (int s : body_.stores) {
    const NestStore& store = nest_.stores[s];
    results.push_back(values_.writes_transposed(store, *stage_)
                          ? b_.stack_array(dtype_of(store), std::int64_t{simd_lanes} * simd_lanes)
                          : Value{});
  }
  const auto each_store = [&](FunctionRef<void(const NestStore&, Value)> f) {
    for (std::size_t k = 0; k < results.size(); ++k) f(nest_.stores[body_.stores[k]], results[k]);
  };
  const Value rows_end = upper(along), end = values_.extent(across);
  b_.for_range(
      lower(along), rows_end, simd_lanes,
      [&](Value v) {
        const Values before = values_.known();
        values_.enter(along, v);
        const Value columns = b_.min(b_.index(simd_lanes), b_.sub(rows_end, v));
        if (!whole_groups(along, simd_lanes)) values_.set_mask(b_.tail_mask(simd_lanes, columns));
        values_.hoist(body_.needed);
        const auto line = [&](Value u, Value c, Values states) {
          const Values outside = values_.known();
          values_.enter(across, b_.add(u, c));
          for (std::size_t k = 0; k < tiled.size(); ++k) {
            const DType d = nest_.values[tiled[k]].dtype;
            values_.bind(tiled[k], b_.load(place(arrays[k], d, c), d, simd_lanes));
          }
          accumulate(states, 0, {});
          each_store([&](const NestStore& s, Value) { values_.get_simd_lanes(s.value); });
          each_store([&](const NestStore& s, Value array) {
            if (array) b_.store(place(array, dtype_of(s), c), values_.get_simd_lanes(s.value));
            else values_.store(s, false);
          });
          values_.restore(outside);
          return states;
        };
        const Values last = b_.loop(
            b_.index(0), end, simd_lanes, initial(simd_lanes),
            [&](Value u, const Values& states) {
              const Values outside = values_.known();
              values_.enter(across, u);
              const Value lines = b_.min(b_.index(simd_lanes), b_.sub(end, u));
              const Value whole =
                  whole_groups(along, simd_lanes) && whole_groups(across, simd_lanes)
                      ? Value{}
                      : b_.compare(Compare::eq, b_.add(lines, columns), b_.index(2 * simd_lanes));
              for (std::size_t k = 0; k < tiled.size(); ++k)
                fill_tile(tiled[k], alone(arrays[k]), whole, lines, columns);
              const Values next = b_.loop(
                  b_.index(0), lines, 1, states,
                  [&](Value c, const Values& inner) { return line(u, c, inner); }, true);
              values_.enter(across, u);
              each_store([&](const NestStore& s, Value array) {
                if (array) write_tile(s, array, whole, lines, columns);
              });
              values_.leave(across);
              values_.restore(outside);
              return next;
            },
            nonempty(across));
        for (std::size_t k = 0; k < reductions_.size(); ++k)
          values_.bind_result(reductions_[k], last[k]);
        store_all(after_);
        values_.set_mask({});
        values_.leave(along);
        values_.restore(before);
      },
      nonempty(along));
}

void KernelEmitter::write_tile(const NestStore& store, Value array, Value whole, Value lines,
                               Value columns) {
  const int simd_lanes = values_.simd_lanes();
  const DType d = moved_as(nest_.buffers[store.buffer].dtype);
  Values all;
  for (int c = 0; c < simd_lanes; ++c)
    all.push_back(
        b_.load(b_.offset(array, d, b_.index(std::int64_t{c} * simd_lanes)), d, simd_lanes));
  const Values rows = transposed(std::move(all));
  const auto row = [&](int r) { return rows[r]; };
  const auto whole_rows = [&] {
    for (int r = 0; r < simd_lanes; ++r) b_.store(values_.row_of(store, r), row(r));
    return Values{};
  };
  if (!whole) return static_cast<void>(whole_rows());
  b_.if_else(whole, whole_rows, [&] {
    const Value mask = b_.tail_mask(simd_lanes, lines);
    for (int r = 0; r < simd_lanes; ++r)
      b_.if_then(b_.compare(Compare::lt, b_.index(r), columns),
                 [&] { b_.store_masked(values_.row_of(store, r), row(r), mask); });
    return Values{};
  });
}

void KernelEmitter::fill_tile(int tiled, const Laid& to, Value whole, Value lines, Value columns) {
  const int simd_lanes = values_.simd_lanes();
  const DType d = moved(tiled);
  const auto whole_rows = [&] {
    Values all;
    for (int r = 0; r < simd_lanes; ++r) {
      all.push_back(values_.load_row(tiled, r, d));
      if (to.ahead > 0) values_.fetch_row(tiled, r, to.ahead, to.ahead == simd_lanes);
    }
    return all;
  };
  const auto cut_rows = [&] {
    Values all;
    const Value mask = b_.tail_mask(simd_lanes, lines);
    for (int r = 0; r < simd_lanes; ++r)
      all.push_back(values_.load_row(tiled, r, d, mask, columns));
    return all;
  };
  values_.prepare_index(tiled);
  const auto rows = [&] { return whole ? b_.if_else(whole, whole_rows, cut_rows) : whole_rows(); };
  const int mask = nest_.values[tiled].mask;
  const auto no_rows = [&] {
    return Values(static_cast<std::size_t>(simd_lanes), b_.integer(d, 0, simd_lanes));
  };
  const Values columns_of =
      transposed(mask < 0 ? rows() : b_.if_else(values_.get(mask), rows, no_rows));
  for (int c = 0; c < simd_lanes; ++c)
    b_.store(b_.offset(to.array, d, b_.index(c * to.pitch)), columns_of[c]);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
