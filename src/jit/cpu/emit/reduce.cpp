// The reductions of a kernel: horizontal ones with several accumulators, vertical ones with
// accumulators in a local array.
#include "kernel_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

Vec<DType> KernelEmitter::carried_dtypes() const {
  Vec<DType> dtypes;
  for (int r : reductions_) {
    const NestReduction& reduction = reduction_of(r);
    if (reduction.position >= 0) dtypes.push_back(nest_.values[reduction.value].dtype);
    dtypes.push_back(reduction.dtype);
  }
  return dtypes;
}

Values KernelEmitter::initial(int simd_lanes) {
  Values init;
  for (int r : reductions_) {
    const NestReduction& reduction = reduction_of(r);
    if (reduction.position >= 0) {
      const DType d = nest_.values[reduction.value].dtype;
      init.push_back(b_.identity(reduction.op == Op::argmax ? Op::max : Op::min, d, simd_lanes));
      // none yet: loses against every element
      init.push_back(b_.integer(reduction.dtype, -1, simd_lanes));
    } else if (reduction.op == Op::reduce) {
      init.push_back(values_.get_simd_lanes(reduction.init));
    } else {
      init.push_back(
          b_.identity(reduction_facts[reduction.op].combine, reduction.dtype, simd_lanes));
    }
  }
  return init;
}

void KernelEmitter::bind_states(const Values& carried, std::size_t first) {
  for (int r : reductions_) {
    if (reduction_of(r).op == Op::reduce) values_.bind(reduction_of(r).state, carried[first]);
    first += reduction_of(r).position >= 0 ? 2 : 1;
  }
}

// Does element (x, at) win over (y, where)? NaN beats numbers, earlier beats later; `where` −1 is
// no element.
Value KernelEmitter::wins(Op op, Value x, Value at, Value y, Value where) {
  const Value none = b_.compare(Compare::eq, where, b_.integer(where.dtype, -1, where.simd_lanes));
  const Value some = b_.compare(Compare::ne, at, b_.integer(at.dtype, -1, at.simd_lanes));
  const Value earlier = b_.compare(Compare::lt, at, where);
  Value better = b_.compare(op == Op::argmax ? Compare::gt : Compare::lt, x, y);
  Value equal = b_.compare(Compare::eq, x, y);
  if (is_float(x.dtype)) {
    const Value x_nan = b_.is_nan(x), y_nan = b_.is_nan(y);
    better = b_.select(x_nan, b_.bit_not(y_nan), better);
    equal = b_.bit_or(equal, b_.bit_and(x_nan, y_nan));
  }
  const Value won = b_.bit_or(none, b_.bit_or(better, b_.bit_and(equal, earlier)));
  return b_.bit_and(some, won);
}

// The results so far for each SIMD lane of x, given that of the SIMD lane before the first;
// `carried` becomes that of the last lane. `before`: where the results without the own x go.
Value KernelEmitter::running(Op op, Value x, Value& carried, Value* before) {
  const int simd_lanes = x.simd_lanes;
  const auto moved = [&](Value last, Value by_lane, int step) {
    Vec<int> back;  // `step` SIMD lanes of `last`, then those of the other
    for (int i = 0; i < simd_lanes; ++i) back.push_back(i < step ? i : simd_lanes + i - step);
    return b_.shuffle(last, by_lane, back);
  };
  const Value so_far = carried;
  if (simd_lanes > 1) {
    const Value none = b_.identity(op, x.dtype, simd_lanes);
    for (int step = 1; step < simd_lanes; step *= 2) x = b_.combine(op, moved(none, x, step), x);
  }
  x = b_.combine(op, carried, x);
  if (before) *before = simd_lanes > 1 ? moved(so_far, x, 1) : so_far;
  if (simd_lanes > 1) {
    const Vec<int> last(simd_lanes, simd_lanes - 1);
    carried = b_.shuffle(x, x, last);
  } else {
    carried = x;
  }
  return x;
}

// carried[first…] after one more vector of inputs, which come in the order of their positions.
void KernelEmitter::accumulate(Values& carried, std::size_t first, Value mask) {
  const int simd_lanes = values_.simd_lanes();
  bind_states(carried, first);
  Values next = carried;
  for (int r : reductions_) {
    const NestReduction& reduction = reduction_of(r);
    const Op op = reduction_facts[reduction.op].combine;
    if (reduction.position >= 0) {
      const Value x = values_.get_simd_lanes(reduction.value),
                  at = values_.get_simd_lanes(reduction.position);
      const Value best = carried[first], where = carried[first + 1];
      // Of floats one comparison that NaN passes too. An element that is no better than the neutral
      // one is found at the end, by found_place.
      Value better;
      if (is_float(x.dtype))
        better = b_.bit_and(
            b_.bit_not(b_.compare(reduction.op == Op::argmax ? Compare::le : Compare::ge, x, best)),
            b_.bit_not(b_.is_nan(best)));
      else better = b_.compare(reduction.op == Op::argmax ? Compare::gt : Compare::lt, x, best);
      if (mask) better = b_.bit_and(better, mask);
      next[first] = b_.select(better, x, best);
      next[first + 1] = b_.select(better, at, where);
      first += 2;
      continue;
    }
    if (reduction.op == Op::reduce) {
      next[first] = values_.get_simd_lanes(reduction.value);
    } else {
      Value x = values_.get_simd_lanes(reduction.value);
      b_.at(reduction.where);
      if (mask) x = b_.select(mask, x, b_.identity(op, reduction.dtype, simd_lanes));
      Value before = carried[first];
      if (reduction.running && stage_->mode == Mode::horizontal)
        values_.bind(reduction.state,
                     running(op, x, next[first], reduction.before >= 0 ? &before : nullptr));
      else next[first] = b_.combine(op, carried[first], x);
      if (reduction.running && stage_->mode == Mode::vertical)
        values_.bind(reduction.state, next[first]);
      if (reduction.before >= 0) values_.bind(reduction.before, before);
    }
    ++first;
  }
  carried = std::move(next);
}

void KernelEmitter::combine_into(Values& a, std::size_t first, const Values& other,
                                 std::size_t from) {
  for (int r : reductions_) {
    const NestReduction& reduction = reduction_of(r);
    if (reduction.position >= 0) {
      const Value better = wins(reduction.op, other[from], other[from + 1], a[first], a[first + 1]);
      a[first] = b_.select(better, other[from], a[first]);
      a[first + 1] = b_.select(better, other[from + 1], a[first + 1]);
      first += 2;
      from += 2;
    } else {
      a[first] = b_.combine(reduction_facts[reduction.op].combine, a[first], other[from]);
      ++first;
      ++from;
    }
  }
}

// The place of the extreme of all SIMD lanes: the first of those that have it.
Value KernelEmitter::best_position(Op op, Value x, Value at) {
  if (x.simd_lanes > 1) {
    const Value best =
        b_.splat(b_.reduce_simd_lanes(op == Op::argmax ? Op::max : Op::min, x), x.simd_lanes);
    Value has = b_.compare(Compare::eq, x, best);
    if (is_float(x.dtype)) has = b_.bit_or(has, b_.bit_and(b_.is_nan(x), b_.is_nan(best)));
    // As an unsigned number the place of no element, -1, comes after all others.
    const std::size_t bytes = size_of(at.dtype);
    const DType places = bytes == 8   ? DType::u64
                         : bytes == 4 ? DType::u32
                         : bytes == 2 ? DType::u16
                                      : DType::u8;
    at = b_.bitcast(
        b_.reduce_simd_lanes(
            Op::min,
            b_.bitcast(b_.select(has, at, b_.integer(at.dtype, -1, at.simd_lanes)), places)),
        at.dtype);
  }
  return found_place(at);
}

// Where no element was better than the neutral one, all of them equal it: the first place.
Value KernelEmitter::found_place(Value at) {
  return b_.select(b_.compare(Compare::eq, at, b_.integer(at.dtype, -1, at.simd_lanes)),
                   b_.integer(at.dtype, 0, at.simd_lanes), at);
}

// ---- pieces -------------------------------------------------------------------------------------

// `unit` iterations of the innermost loop are one addition to each accumulator.
KernelEmitter::Pieces KernelEmitter::pieces(std::int64_t unit) const {
  const bool sums = any_of(reductions_, [&](int r) {
    return reduction_of(r).op == Op::reduce_sum && is_float(reduction_of(r).dtype);
  });
  if (!sums || any_of(reductions_, [&](int r) {
        return reduction_of(r).running || reduction_of(r).op == Op::reduce;
      }))
    return {};
  SmallVec<int, 6> loops = reduces_;
  if (stage_->mode == Mode::horizontal && stage_->vector_loop >= 0)
    loops.push_back(stage_->vector_loop);
  std::int64_t inner = 1;  // additions in an iteration
  for (std::size_t depth = loops.size(); depth-- > 0; unit = 1) {
    const NestLoop& l = loop_of(loops[depth]);
    const std::int64_t additions = (l.extent + unit - 1) / unit * inner;
    if (l.runtime || additions > 2 * most_additions) {
      Pieces pieces{static_cast<int>(depth),
                    {std::max<std::int64_t>(most_additions / inner, 1) * unit}};
      if (nest_.stages.size() > 1 &&
          (l.runtime ||
           additions > 2 * most_additions * most_additions))  // such loops are not cut in blocks
        pieces.iterations.insert(pieces.iterations.begin(), pieces.iterations[0] * most_additions);
      return pieces;
    }
    inner = std::max<std::int64_t>(additions, 1);
  }
  return {};
}

// `totals` and the sums of all pieces of lo … hi, copy by copy: so that no piece waits for the one
// before.
Values KernelEmitter::in_pieces(Value lo, Value hi, std::size_t level, const Values& totals,
                                FunctionRef<Values(Value, Value)> piece) {
  const std::int64_t iterations = pieces_.iterations[level];
  return b_.loop(lo, hi, iterations, totals, [&](Value start, Values sums) {
    const Value end = b_.min(b_.add(start, b_.index(iterations)), hi);
    const bool last = level + 1 == pieces_.iterations.size();
    const Values more =
        last ? piece(start, end) : in_pieces(start, end, level + 1, initial_copies(), piece);
    for (std::size_t at = 0; at < sums.size(); at += carried_per_copy())
      combine_into(sums, at, more, at);
    return sums;
  });
}

// ---- horizontal ---------------------------------------------------------------------------------

Values KernelEmitter::initial_copies() {
  Values carried;
  for (int c = 0; c < (stage_->vector_loop < 0 ? 1 : stage_->accumulators); ++c)
    for (const Value& v : initial(values_.simd_lanes())) carried.push_back(v);
  return carried;
}

Values KernelEmitter::reduce_loops(std::size_t depth, const Values& carried) {
  const int loop = depth < reduces_.size() ? reduces_[depth] : stage_->vector_loop;
  if (loop < 0) return reduce_range(depth, {}, {}, true, carried);
  if (static_cast<int>(depth) != pieces_.depth)
    return reduce_range(depth, lower(loop), upper(loop), nonempty(loop), carried);
  return in_pieces(lower(loop), upper(loop), 0, carried, [&](Value lo, Value hi) {
    return reduce_range(depth, lo, hi, true, initial_copies());
  });
}

Values KernelEmitter::reduce_range(std::size_t depth, Value lo, Value hi, bool known_nonempty,
                                   const Values& carried) {
  if (depth < reduces_.size())
    return open_loop(reduces_[depth], lo, hi, known_nonempty, body_.needed, carried,
                     [&](const Values& inner) { return reduce_loops(depth + 1, inner); });
  const std::size_t per_copy = carried_per_copy();
  const auto body = [&](Values inner, int copy) {
    const Value mask = values_.mask();
    accumulate(inner, static_cast<std::size_t>(copy) * per_copy, mask);
    store_all(body_);
    if (stage_->fetch_ahead)
      for (int v : body_.needed) values_.fetch_iteration(v, nest_.shared.back());
    return inner;
  };
  if (stage_->vector_loop < 0) return body(carried, 0);
  return vector_loop(lo, hi, carried, stage_->accumulators, stage_->masked, known_nonempty, body);
}

void KernelEmitter::horizontal() {
  const int simd_lanes = values_.simd_lanes(),
            copies = stage_->vector_loop < 0 ? 1 : stage_->accumulators;
  pieces_ = pieces(
      stage_->vector_loop < 0 ? 1 : std::int64_t{simd_lanes} * (stage_->masked ? 1 : copies));
  Values carried = reduce_loops(0, initial_copies());
  // Neighbours first: the same tree whatever the number of elements.
  const std::size_t per_copy = carried_per_copy();
  for (int step = 1; step < copies; step *= 2)
    for (int c = 0; c + step < copies; c += 2 * step)
      combine_into(carried, static_cast<std::size_t>(c) * per_copy, carried,
                   static_cast<std::size_t>(c + step) * per_copy);
  std::size_t at = 0;
  for (int r : reductions_) {
    const NestReduction& reduction = reduction_of(r);
    if (reduction.position >= 0) {
      values_.bind_result(r, best_position(reduction.op, carried[at], carried[at + 1]));
      at += 2;
    } else if (reduction.op == Op::reduce) {
      values_.bind_result(r, carried[at++]);  // one SIMD lane
    } else if (reduction.running) {
      ++at;
    } else {
      values_.bind_result(r,
                          b_.reduce_simd_lanes(reduction_facts[reduction.op].combine, carried[at]));
      ++at;
    }
  }
  values_.stage_done(current_);
  const int loop = stage_->vector_loop;
  values_.set_vector_loop(-1);
  store_all(after_);
  values_.set_vector_loop(loop);
}

// ---- vertical -----------------------------------------------------------------------------------

// Tiles of the vector loop have their accumulators in a local array that stays in the first-level
// cache while the rows stream by.
void KernelEmitter::vertical() {
  if (stage_->tile_loop >= 0) return transposed_fold();
  constexpr std::int64_t tile_bytes = 16384;
  const int loop = stage_->vector_loop, simd_lanes = values_.simd_lanes();
  const NestLoop& l = loop_of(loop);
  const Vec<DType> dtypes = carried_dtypes();
  std::int64_t bytes = 0;
  for (DType d : dtypes) bytes += static_cast<std::int64_t>(size_of(d));
  std::int64_t tile =
      std::max<std::int64_t>(tile_bytes / std::max<std::int64_t>(bytes, 1) / simd_lanes, 1) *
      simd_lanes;
  if (stage_->narrow) tile = simd_lanes;
  // Where one code does for many extents, a longer array than some need.
  if (!l.runtime && (!schedule_.any_sizes || l.extent <= 2 * simd_lanes))
    tile = std::min(tile, (l.extent + simd_lanes - 1) / simd_lanes * simd_lanes);
  pieces_ = pieces(stage_->accumulators);
  Values arrays, totals;
  for (DType d : dtypes) arrays.push_back(b_.stack_array(d, tile));
  if (pieces_.depth >= 0)
    for (DType d : dtypes) totals.push_back(b_.stack_array(d, tile));
  const Value lo = lower(loop), hi = upper(loop);
  b_.for_range(
      lo, hi, tile,
      [&](Value start) {
        const Value end = b_.min(b_.add(start, b_.index(tile)), hi);
        const auto slot = [&](std::size_t k, Value i) {
          return b_.offset(arrays[k], dtypes[k], b_.sub(i, start));
        };
        const auto total = [&](std::size_t k, Value i) {
          return b_.offset(totals[k], dtypes[k], b_.sub(i, start));
        };
        // The arrays are whole vectors, so accumulators need no mask.
        const Values init = initial(simd_lanes);
        const auto begin = [&](const Slot& at) {
          b_.for_range(start, end, simd_lanes, [&](Value i) {
            for (std::size_t k = 0; k < init.size(); ++k) b_.store(at(k, i), init[k]);
          });
        };
        // Adds the sums of a piece to those before, and begins the next one.
        const auto finish = [&] {
          b_.for_range(start, end, simd_lanes, [&](Value i) {
            Values sums, piece;
            for (std::size_t k = 0; k < init.size(); ++k) {
              sums.push_back(b_.load(total(k, i), dtypes[k], simd_lanes));
              piece.push_back(b_.load(slot(k, i), dtypes[k], simd_lanes));
            }
            combine_into(sums, 0, piece, 0);
            for (std::size_t k = 0; k < init.size(); ++k) {
              b_.store(total(k, i), sums[k]);
              b_.store(slot(k, i), init[k]);
            }
          });
        };
        begin(slot);
        if (pieces_.depth >= 0) begin(total);
        rows(0, start, end, slot, finish);
        const Values before = values_.known();
        values_.hoist(after_.needed);
        vector_loop(start, end, {}, 1, false, true, [&](const Values&, int) {
          const Value i = values_.position(loop);
          std::size_t k = 0;
          for (int r : reductions_) {
            const bool position = reduction_of(r).position >= 0;
            if (position) ++k;
            const Value result =
                b_.load(pieces_.depth < 0 ? slot(k, i) : total(k, i), dtypes[k], simd_lanes);
            values_.bind_result(r, position ? found_place(result) : result);
            ++k;
          }
          store_all(after_);
          return Values{};
        });
        values_.restore(before);
      },
      nonempty(loop));
}

void KernelEmitter::rows(std::size_t depth, Value start, Value end, const Slot& slot,
                         FunctionRef<void()> finish) {
  // only axes of extent 1 are reduced
  if (reduces_.empty()) return row_vectors(-1, b_.index(0), 1, start, end, slot);
  const int loop = reduces_[depth];
  const Value hi = upper(loop);
  if (static_cast<int>(depth) != pieces_.depth)
    return rows_of(depth, lower(loop), hi, nonempty(loop), start, end, slot, finish);
  const std::int64_t iterations = pieces_.iterations.back();
  b_.for_range(lower(loop), hi, iterations, [&](Value from) {
    rows_of(depth, from, b_.min(b_.add(from, b_.index(iterations)), hi), true, start, end, slot,
            finish);
    finish();
  });
}

void KernelEmitter::rows_of(std::size_t depth, Value from, Value to, bool known_nonempty,
                            Value start, Value end, const Slot& slot, FunctionRef<void()> finish) {
  const int loop = reduces_[depth], together = stage_->accumulators;
  if (depth + 1 < reduces_.size()) {
    open_loop(loop, from, to, known_nonempty, body_.needed, {}, [&](const Values&) {
      rows(depth + 1, start, end, slot, finish);
      return Values{};
    });
    return;
  }
  const NestLoop& l = loop_of(loop);
  if (together > 1 && (l.runtime || l.block_of >= 0 || l.extent >= together)) {
    const Value whole = b_.add(from, b_.bit_and(b_.sub(to, from), b_.index(-together)));
    b_.for_range(from, whole, together,
                 [&](Value i) { row_vectors(loop, i, together, start, end, slot); });
    if (whole_groups(loop, together)) return;
    from = whole;
  }
  b_.for_range(
      from, to, 1, [&](Value i) { row_vectors(loop, i, 1, start, end, slot); },
      together == 1 && known_nonempty);
}

// `count` rows from `row` on: their inputs are combined with each other first, then with the
// accumulators, where order is free.
void KernelEmitter::row_vectors(int loop, Value row, int count, Value start, Value end,
                                const Slot& slot) {
  const Values before = values_.known();
  const Vec<DType> dtypes = carried_dtypes();
  // Positions and states go from row to row.
  const bool in_order = any_of(reductions_, [&](int r) {
    return reduction_of(r).position >= 0 || reduction_of(r).running ||
           reduction_of(r).op == Op::reduce;
  });
  Vec<Values> hoisted;
  Values positions;
  for (int c = 0; c < count; ++c) {
    values_.restore(before);
    positions.push_back(c ? b_.add(row, b_.index(c)) : row);
    if (loop >= 0) values_.enter(loop, positions.back());
    values_.hoist(body_.needed);
    hoisted.push_back(values_.known());
  }
  vector_loop(start, end, {}, 1, stage_->masked, true, [&](const Values&, int) {
    const Value i = values_.position(stage_->vector_loop), mask = values_.mask();
    Vec<Values> inputs;
    Values old;
    for (std::size_t k = 0; k < dtypes.size(); ++k)
      old.push_back(b_.load(slot(k, i), dtypes[k], values_.simd_lanes()));
    for (int c = 0; c < count; ++c) {
      values_.restore(hoisted[c]);
      if (loop >= 0) values_.enter(loop, positions[c]);
      if (count == 1 || in_order) {
        accumulate(old, 0, mask);
      } else {
        Values x;
        for (int r : reductions_) x.push_back(values_.get_simd_lanes(reduction_of(r).value));
        inputs.push_back(std::move(x));
      }
      store_all(body_);
    }
    if (!inputs.empty()) {
      for (int step = 1; step < count; step *= 2)
        for (int c = 0; c + step < count; c += 2 * step)
          combine_into(inputs[c], 0, inputs[c + step], 0);
      combine_into(old, 0, inputs[0], 0);
    }
    for (std::size_t k = 0; k < dtypes.size(); ++k) b_.store(slot(k, i), old[k]);
    return Values{};
  });
  if (loop >= 0) values_.leave(loop);
  values_.restore(before);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
