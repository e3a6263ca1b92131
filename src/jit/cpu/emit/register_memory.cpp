// The memory accesses of a register kernel: elements of neighbouring lanes, rows of lanes that are
// transposed in registers, and single elements anywhere.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <limits>

#include <vt/detail/message.hpp>

#include "../../nest/schedule.hpp"
#include "simd_matrices.hpp"

namespace vt::detail::cpu::register_emission {

Value RegisterEmitter::read(const Object& o, Value linear, std::int64_t by) {
  if (o.by_element) return at_element(o, linear, by, {});
  linear = placed(o, further(linear, by));
  if (linear.simd_lanes == 1) return b_.load(b_.offset(o.pointer, o.dtype, linear), o.dtype);
  return b_.gather(o.pointer, o.dtype, linear, mask_);
}

void RegisterEmitter::write(const Object& o, Value linear, std::int64_t by, Value x) {
  if (o.by_element) {
    at_element(o, linear, by, wide(x));
    return;
  }
  linear = placed(o, further(linear, by));
  if (linear.simd_lanes == 1 && x.simd_lanes == 1) {
    b_.store(b_.offset(o.pointer, o.dtype, linear), x);
    return;
  }
  b_.scatter(o.pointer, wide(x), wide(linear), mask_);
}

// Lanes that run in step take the same element, and are neighbours there. Whether they do is asked
// of `linear` alone, so that LLVM asks once for all elements of a window.
Value RegisterEmitter::at_element(const Object& o, Value linear, std::int64_t by, Value x) {
  if (o.start) linear = sum(linear, o.start);
  const auto together = [&](Value element) {
    const Value first =
        b_.offset(o.pointer, o.dtype, b_.mul(further(element, by), index_number(width_)));
    if (!x) return b_.load(first, o.dtype, width_);
    b_.store_masked(first, x, mask_);
    return Value();
  };
  if (linear.simd_lanes == 1) return together(linear);
  // Places are few: in half the bits they are compared in half as many instructions.
  const Value places = linear;
  if (o.shape.elements() <= std::numeric_limits<std::int32_t>::max())
    linear = b_.convert(linear, DType::i32);
  Value largest = b_.select(mask_, linear, b_.zero_like(linear));
  for (int half = width_ / 2; half > 0; half /= 2) {
    Vec<int> low, high;
    for (int l = 0; l < half; ++l) low.push_back(l), high.push_back(half + l);
    largest = b_.max(b_.shuffle(largest, largest, low), b_.shuffle(largest, largest, high));
  }
  const Value element = largest.simd_lanes == 1 ? largest : b_.extract(largest, 0);
  const Value apart =
      b_.any(b_.bit_and(mask_, b_.compare(Compare::ne, linear, b_.splat(element, width_))));
  const auto list = [&](Value v) { return x ? Elements{} : Elements{v}; };
  const Elements read = b_.if_else(
      apart,
      [&] {
        const Value all =
            b_.add(b_.mul(further(places, by), b_.integer(DType::i64, width_, width_)),
                   b_.iota(DType::i64, width_));
        if (!x) return list(b_.gather(o.pointer, o.dtype, all, mask_));
        b_.scatter(o.pointer, x, all, mask_);
        return list({});
      },
      [&] { return list(together(b_.convert(element, DType::i64))); });
  return x ? Value() : read[0];
}

Value RegisterEmitter::placed(const Object& o, Value linear) {
  if (o.start) linear = sum(linear, o.start);
  if (o.row > 0)
    linear = sum(linear, b_.mul(lane_numbers(), b_.integer(DType::i64, o.row, width_)));
  return linear;
}

Val RegisterEmitter::wide(const Val& v) {
  if (v.is_array()) return v;
  Elements all;
  for (const Value& x : v.elements()) all.push_back(wide(x));
  return all;
}

std::optional<Value> RegisterEmitter::neighbours(const Object& o, std::int64_t n) {
  if (places_ || o.row != 1 || (o.start && o.start.simd_lanes != 1)) return std::nullopt;
  Value first = further(lane_, place(o, n));
  if (o.start) first = b_.add(first, o.start);
  return b_.offset(o.pointer, o.dtype, first);
}

Val RegisterEmitter::elements_of(const Object& o) {
  if (whole_rows(o)) return load_rows(o);
  Elements all;
  for (std::int64_t i = 0; i < o.shape.elements(); ++i) {
    if (const std::optional<Value> first = neighbours(o, i))
      all.push_back(b_.load_masked(*first, o.dtype, mask_));
    else all.push_back(read(o, index_number(place(o, i)), 0));
  }
  return all;
}

void RegisterEmitter::store_elements(const Object& o, const Val& v) {
  if (whole_rows(o)) return store_rows(o, v);
  const auto count = static_cast<std::int64_t>(v.elements().size());
  for (std::int64_t n = 0; n < count; ++n) {
    if (const std::optional<Value> first = neighbours(o, n))
      b_.store_masked(*first, wide(v[n]), mask_);
    else write(o, index_number(place(o, n)), 0, v[n]);
  }
}

// Where a lane's row begins.
Value RegisterEmitter::row_of(const Object& o, Value lane) {
  const Value first = b_.mul(lane, index_number(o.row));
  return o.start ? b_.add(first, o.start) : first;
}

// In the rows of this iteration's lanes from `first` on.
Value RegisterEmitter::elements_left(const Object& o, std::int64_t first) {
  return b_.mul(b_.sub(b_.arg(3), further(lane_, first)), index_number(o.row));
}

// Rows of few elements are one run of memory, whose elements are picked apart.
Val RegisterEmitter::load_rows(const Object& o) {
  Elements all(static_cast<std::size_t>(o.row));
  const Value last = b_.sub(b_.arg(3), index_number(1));
  const auto append = [&](std::int64_t n, Value x) {
    Value& e = all[n];
    e = e ? b_.concat_simd_lanes(e, x) : x;
  };
  const int lanes = lanes_of_rows(o);
  for (int first = 0; first < width_; first += lanes) {
    if (rows_go_apart(b_.target(), o.row, lanes)) {
      const Value start = row_of(o, further(lane_, first)), left = elements_left(o, first);
      Vec<Value> run;
      for (std::int64_t n = 0; n < o.row; ++n)
        run.push_back(b_.load_masked(b_.offset(o.pointer, o.dtype, further(start, n * lanes)),
                                     o.dtype, b_.tail_mask(lanes, further(left, -n * lanes))));
      run = rows_apart(b_, std::move(run));
      for (std::int64_t n = 0; n < o.row; ++n) append(n, run[n]);
      continue;
    }
    for (std::int64_t from = 0; from < o.row; from += lanes) {
      const std::int64_t count = std::min<std::int64_t>(lanes, o.row - from);
      Vec<Value> rows;
      for (int l = 0; l < lanes; ++l) {
        // behind the end the last one again
        const Value lane = b_.min(further(lane_, first + l), last);
        const Value at = b_.offset(o.pointer, o.dtype, further(row_of(o, lane), from));
        rows.push_back(count == lanes
                           ? b_.load(at, o.dtype, lanes)
                           : b_.load_masked(at, o.dtype, b_.tail_mask(lanes, index_number(count))));
      }
      rows = transposed(b_, std::move(rows), count);
      for (std::int64_t n = 0; n < count; ++n) append(from + n, rows[n]);
    }
  }
  return all;
}

void RegisterEmitter::store_rows(const Object& o, const Val& v) {
  // All lanes up to the last one are written, whichever have taken a branch.
  if (mask_.ref != tail_.ref)
    fail(ErrorKind::backend, "vt: internal: a register kernel stores rows of some lanes", {});
  const int lanes = lanes_of_rows(o);
  // Whole blocks of lanes are whole cache lines (those of an iteration may begin anywhere): of
  // results that would fill a cache these go past the caches, which need not read them first.
  const bool far = !o.start && far_ && o.dtype != DType::bool_ &&
                   lanes * static_cast<int>(size_of(o.dtype)) == b_.target().vector_bytes;
  for (int first = 0; first < width_; first += lanes) {
    if (!far) {
      store_block(o, v, first, false);
      continue;
    }
    streams_ = true;
    const Value whole = b_.compare(Compare::le, further(lane_, first + lanes), b_.arg(3));
    const auto store = [&](bool past) {
      store_block(o, v, first, past);
      return Elements{};
    };
    b_.if_else(whole, [&] { return store(true); }, [&] { return store(false); });
  }
}

void RegisterEmitter::store_block(const Object& o, const Val& v, int first, bool past) {
  const int lanes = lanes_of_rows(o), align = lanes * static_cast<int>(size_of(o.dtype));
  const Value start = b_.offset(o.pointer, o.dtype, row_of(o, further(lane_, first)));
  Vec<int> part;
  for (int l = 0; l < lanes; ++l) part.push_back(first + l);
  const auto element = [&](std::int64_t n) {
    const Value x = wide(v[n]);
    return lanes == width_ ? x : b_.shuffle(x, x, part);
  };
  if (rows_go_apart(b_.target(), o.row, lanes)) {
    Vec<Value> run;
    for (std::int64_t n = 0; n < o.row; ++n) run.push_back(element(n));
    run = rows_together(b_, std::move(run));
    const Value left = elements_left(o, first);
    for (std::int64_t n = 0; n < o.row; ++n) {
      const Value at = b_.offset(start, o.dtype, index_number(n * lanes)), x = run[n];
      if (past) b_.store_streaming(at, x, align);
      else b_.store_masked(at, x, b_.tail_mask(lanes, further(left, -n * lanes)));
    }
    return;
  }
  // Rows are of any length: what goes past the caches is put together in the function's frame
  // first.
  const Value block = past ? b_.stack_array(o.dtype, o.row * lanes) : start;
  for (std::int64_t from = 0; from < o.row; from += lanes) {
    const std::int64_t count = std::min<std::int64_t>(lanes, o.row - from);
    Vec<Value> rows;
    // the rest is never stored
    for (std::int64_t n = 0; n < lanes; ++n)
      rows.push_back(n < count ? element(from + n) : rows[0]);
    rows = transposed(b_, std::move(rows), lanes);
    for (int l = 0; l < lanes; ++l) {
      const Value at = b_.offset(block, o.dtype, index_number(l * o.row + from));
      const Value inside =
          past ? Value() : b_.compare(Compare::lt, further(lane_, first + l), b_.arg(3));
      b_.store_masked(
          at, rows[l],
          b_.tail_mask(lanes, past ? index_number(count)
                                   : b_.select(inside, index_number(count), index_number(0))));
    }
  }
  for (std::int64_t n = 0; past && n < o.row; ++n) {
    const Value line =
        b_.load(b_.offset(block, o.dtype, index_number(n * lanes)), o.dtype, lanes, align);
    b_.store_streaming(b_.offset(start, o.dtype, index_number(n * lanes)), line, align);
  }
}

Object RegisterEmitter::object_for(std::size_t buffer, const Aval& aval) {
  Object o;
  o.pointer = pointers_[buffer];
  o.dtype = aval.dtype;
  o.shape = aval.shape;
  if (!form_ || form_.axes[buffer] < 0) return o;
  o.row = 1;
  for (int d = form_.axes[buffer]; d < aval.shape.rank(); ++d) o.row *= aval.shape[d];
  if (form_.axes[buffer] > 0) o.block = o.row;
  if (!form_.side_by_side()) {
    o.pointer = b_.offset(o.pointer, o.dtype, b_.mul(lane_, b_.index(o.row)));
    o.row = 0;
  }
  return o;
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
