// Values of a nest in registers: index arithmetic, loads by kind of access, masks, stores.
#include "nest.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <bit>

namespace vt::detail::cpu {

namespace nest_values {

Value literal(IrBuilder& b, const Scalar& s) {
  if (is_float(s.dtype)) return b.real(s.dtype, s.real);
  return b.integer(s.dtype,
                   is_unsigned(s.dtype) ? static_cast<std::int64_t>(s.natural) : s.integer);
}

// Steps of a window, or parts of a vector.
constexpr std::int64_t least_number = 8;

}  // namespace nest_values

ValueEmitter::ValueEmitter(IrBuilder& builder, const Nest& nest, const Schedule& schedule)
    : b_(builder), nest_(nest), schedule_(schedule), dependences_(loop_dependences(nest)) {
  known_.resize(nest.values.size());
  positions_.resize(nest.loops.size());
  ready_stage_.assign(nest.values.size(), 0);
  in_iteration_.assign(nest.values.size(), 0);
  for (std::size_t v = 0; v < nest.values.size(); ++v) {
    const NestValue& value = nest.values[v];
    int& ready = ready_stage_[v];
    const auto use = [&](int o) {
      ready = std::max(ready, ready_stage_[o]);
      if (in_iteration_[o]) in_iteration_[v] = 1;
    };
    for (int o : value.operands) use(o);
    if (value.mask >= 0) use(value.mask);
    if (value.index >= 0) nest.indices.each_value(value.index, use);
    if (value.kind == NestValue::Kind::state) in_iteration_[v] = 1;
    if (value.kind == NestValue::Kind::reduced) ready = nest.reductions[value.argument].stage + 1;
  }
}

void ValueEmitter::load_arguments() {
  const Value numbers = b_.arg(1);
  std::int64_t next = 0;
  const auto take = [&](DType d) {
    return b_.load(b_.offset(numbers, DType::i64, b_.index(next++)), d);
  };
  extents_.resize(nest_.loops.size());
  for (std::size_t l = 0; l < nest_.loops.size(); ++l)
    if (nest_.loops[l].runtime) extents_[l] = take(DType::i64);
  scalars_.resize(nest_.arguments);
  Vec<DType> dtypes(scalars_.size(), DType::i64);
  for (const NestValue& v : nest_.values)
    if (v.kind == NestValue::Kind::argument) dtypes[v.argument] = v.dtype;
  for (std::size_t a = 0; a < scalars_.size(); ++a) {
    const DType d = dtypes[a];
    // 16-bit floats come as the f32 of the same value; integers as 64 bits.
    if (d == DType::f16 || d == DType::bf16) scalars_[a] = b_.convert(take(DType::f32), d);
    else if (is_float(d)) scalars_[a] = take(d);
    else scalars_[a] = b_.convert(take(DType::i64), d);
  }
  if (schedule_.any_sizes) b_.take_numbers(numbers, next);
  b_.declare_buffers(static_cast<int>(nest_.buffers.size()));
  for (std::size_t k = 0; k < nest_.buffers.size(); ++k) {
    const NestBuffer& buffer = nest_.buffers[k];
    if (buffer.local)
      pointers_.push_back(b_.with_buffer(b_.stack_array(buffer.dtype, buffer.local), buffer.alias));
    else
      pointers_.push_back(b_.load_pointer(b_.arg(0), static_cast<std::int64_t>(k), buffer.alias));
  }
}

Value ValueEmitter::number(std::int64_t x) {
  return schedule_.any_sizes && (x >= nest_values::least_number || x <= -nest_values::least_number)
             ? b_.number(x)
             : b_.index(x);
}

// Equal extents of two loops are two numbers, as they may differ for other sizes.
Value ValueEmitter::iterations(std::int64_t x, int loop) {
  return schedule_.any_sizes && x > 1 ? b_.number(x, 1 + loop) : b_.index(x);
}

Value ValueEmitter::extent(int loop) {
  const std::size_t k = loop;
  const NestLoop& l = nest_.loops[k];
  if (l.block_of < 0) return l.runtime ? extents_[k] : iterations(l.extent, loop);
  const Value total = l.runtime ? extents_[k] : iterations(l.total, loop);
  const Value block = iterations(l.block, l.block_of);
  const Value done = b_.mul(positions_[l.block_of], block);
  return b_.min(block, b_.sub(total, done));
}

void ValueEmitter::set_vector_loop(int loop) { vector_loop_ = loop; }

void ValueEmitter::enter(int loop, Value position) {
  positions_[loop] = position;
  open_ |= std::uint64_t{1} << loop;
}
void ValueEmitter::leave(int loop) { open_ &= ~(std::uint64_t{1} << loop); }

void ValueEmitter::bind_result(int reduction, Value v) {
  for (std::size_t k = 0; k < nest_.values.size(); ++k)
    if (nest_.values[k].kind == NestValue::Kind::reduced && nest_.values[k].argument == reduction)
      known_[k] = v;
}

void ValueEmitter::hoist(const Vec<int>& values) {
  for (int id : values) {
    const std::size_t k = id;
    const NestValue::Kind kind = nest_.values[k].kind;
    if (known_[k] || in_iteration_[k] || (dependences_[k] & ~open_) != 0 ||
        ready_stage_[k] > stages_done_)
      continue;
    if (kind == NestValue::Kind::literal || kind == NestValue::Kind::reduced) continue;
    get(id);
  }
}

Value ValueEmitter::get(int value) {
  const std::size_t k = value;
  if (known_[k]) return known_[k];
  const Value v = emit(value);
  return known_[k] = v;
}

Value ValueEmitter::get_simd_lanes(int value) { return widen(get(value)); }

Value ValueEmitter::emit(int id) {
  const NestValue& v = nest_.values[id];
  b_.at(v.where);
  switch (v.kind) {
    case NestValue::Kind::literal: return nest_values::literal(b_, v.literal);
    case NestValue::Kind::argument: return scalars_[v.argument];
    case NestValue::Kind::index: return emit_index_value(v);
    case NestValue::Kind::in_range: return emit_in_range(v);
    case NestValue::Kind::load: return emit_load(v);
    case NestValue::Kind::reduced:
    case NestValue::Kind::state:
      throw Error(ErrorKind::backend,
                  "vt: internal fault: a reduction's result is used before it is known");
    default: break;
  }
  Vec<Value> operands;
  for (int o : v.operands) operands.push_back(varies(id) ? get_simd_lanes(o) : get(o));
  b_.at(v.where);
  return emit_op(b_, v.op, v.dtype, v.params, operands, uses_of(v.op, v.dtype));
}

int ValueEmitter::uses_of(Op op, DType dtype) const {
  return static_cast<int>(
      std::count_if(nest_.values.begin(), nest_.values.end(), [&](const NestValue& v) {
        return v.kind == NestValue::Kind::op && v.op == op && v.dtype == dtype;
      }));
}

// ---- indices ------------------------------------------------------------------------------------

bool ValueEmitter::term_varies(const IndexTerm& t) const {
  if (vector_loop_ < 0) return false;
  const IndexAtom& a = nest_.indices.atom(t.atom);
  switch (a.kind) {
    case IndexAtom::Kind::loop: return a.id == vector_loop_;
    case IndexAtom::Kind::value: return varies(a.id);
    default: {
      for (const IndexTerm& inner : nest_.indices[a.of].terms)
        if (term_varies(inner)) return true;
      return false;
    }
  }
}

Value ValueEmitter::floor_divide(Value x, std::int64_t by, bool may_be_negative) {
  const Value divisor = b_.integer(x.dtype, by, x.simd_lanes);
  if (!may_be_negative) {
    if ((by & (by - 1)) == 0)
      return b_.shift_right_logical(x, std::countr_zero(static_cast<std::uint64_t>(by)));
    return b_.div(x, divisor);
  }
  if ((by & (by - 1)) == 0)
    return b_.shift_right_arithmetic(x, std::countr_zero(static_cast<std::uint64_t>(by)));
  const Value zero = b_.zero_like(x);
  const Value quotient = b_.div(x, divisor);
  const Value rest = b_.sub(x, b_.mul(quotient, divisor));
  return b_.select(b_.compare(Compare::lt, rest, zero),
                   b_.sub(quotient, b_.integer(x.dtype, 1, x.simd_lanes)), quotient);
}

Value ValueEmitter::scalar_index(IndexId e, bool skip_varying) {
  const IndexExpr& expr = nest_.indices[e];
  Value sum{};
  const auto add = [&](Value v) { sum = sum ? b_.add(sum, v) : v; };
  for (const IndexTerm& t : expr.terms) {
    if (skip_varying && term_varies(t)) continue;
    const IndexAtom& a = nest_.indices.atom(t.atom);
    Value x{};
    switch (a.kind) {
      case IndexAtom::Kind::loop: x = positions_[a.id]; break;
      case IndexAtom::Kind::value: x = b_.convert(get(a.id), DType::i64); break;
      default: {
        const Value inner = scalar_index(a.of, false);
        const Value quotient = floor_divide(inner, a.by, nest_.indices.bounds(a.of).low < 0);
        x = a.kind == IndexAtom::Kind::quotient ? quotient
                                                : b_.sub(inner, b_.mul(quotient, b_.index(a.by)));
      }
    }
    add(t.factor == 1 ? x : b_.mul(x, number(t.factor)));
  }
  if (expr.constant != 0 || !sum) add(number(expr.constant));
  return sum;
}

Value ValueEmitter::full_simd_lanes(IndexId e) {
  Value base{};
  const Value simd_lanes = simd_lane_indices(e, &base);
  return b_.add(simd_lanes, b_.splat(b_.convert(base, simd_lanes.dtype), simd_lanes.simd_lanes));
}

// The terms that differ between SIMD lanes as a vector, the rest as a scalar. 32-bit SIMD lanes
// where the bounds allow it.
Value ValueEmitter::simd_lane_indices(IndexId e, Value* base) {
  *base = scalar_index(e, true);
  const IndexExpr& expr = nest_.indices[e];
  constexpr std::int64_t short_range = (std::int64_t{1} << 31) - 1;
  const IndexBounds all = nest_.indices.bounds(e);
  bool narrow = all.low > -short_range && all.high < short_range;
  for (const IndexTerm& t : expr.terms) {
    const IndexAtom& a = nest_.indices.atom(t.atom);
    if (!term_varies(t) || a.kind == IndexAtom::Kind::loop) continue;
    const std::int64_t magnitude = t.factor < 0 ? -t.factor : t.factor;
    narrow = narrow && magnitude < short_range;
  }
  const DType d = narrow ? DType::i32 : DType::i64;
  const int simd_lanes = this->simd_lanes();
  Value sum{};
  for (const IndexTerm& t : expr.terms) {
    if (!term_varies(t)) continue;
    const IndexAtom& a = nest_.indices.atom(t.atom);
    Value x{};
    switch (a.kind) {
      case IndexAtom::Kind::loop:
        *base = b_.add(*base, b_.mul(positions_[a.id], number(t.factor)));
        x = b_.iota(d, simd_lanes);
        break;
      case IndexAtom::Kind::value: x = b_.convert(get_simd_lanes(a.id), d); break;
      default: {
        const Value inner = full_simd_lanes(a.of);
        const Value quotient = floor_divide(inner, a.by, nest_.indices.bounds(a.of).low < 0);
        x = a.kind == IndexAtom::Kind::quotient
                ? quotient
                : b_.sub(inner, b_.mul(quotient, b_.integer(inner.dtype, a.by, simd_lanes)));
        x = b_.convert(x, d);
      }
    }
    if (t.factor != 1) x = b_.mul(x, b_.integer(d, t.factor, simd_lanes));
    sum = sum ? b_.add(sum, x) : x;
  }
  return sum ? sum : b_.integer(d, 0, simd_lanes);
}

Value ValueEmitter::emit_index_value(const NestValue& v) {
  const SimdStep step = vector_loop_ < 0
                            ? SimdStep{true, 0}
                            : simd_step(nest_, v.index, vector_loop_, simd_lanes(), dependences_);
  if (step.regular && step.step == 0) return b_.convert(scalar_index(v.index, false), v.dtype);
  const Value at = full_simd_lanes(v.index);
  return b_.convert(at, v.dtype);
}

Value ValueEmitter::emit_in_range(const NestValue& v) {
  const IndexBounds known = nest_.indices.bounds(v.index);
  const bool test_low = known.low < v.low;
  const bool test_high = known.high >= v.high;
  const SimdStep step = vector_loop_ < 0
                            ? SimdStep{true, 0}
                            : simd_step(nest_, v.index, vector_loop_, simd_lanes(), dependences_);
  Value result{};
  const auto bound = [&](std::int64_t x) { return iterations(x, -1); };
  const auto both = [&](Value c) { result = result ? b_.bit_and(result, c) : c; };
  if (step.regular && step.step == 1) {
    // Lanes below the border: a mask as for a tail.
    const Value base = scalar_index(v.index, false);
    if (test_high) both(b_.tail_mask(simd_lanes(), b_.sub(bound(v.high), base)));
    if (test_low) both(b_.bit_not(b_.tail_mask(simd_lanes(), b_.sub(bound(v.low), base))));
    return result ? result : b_.boolean(true, simd_lanes());
  }
  const Value x =
      step.regular && step.step == 0 ? scalar_index(v.index, false) : full_simd_lanes(v.index);
  if (test_low)
    both(b_.compare(Compare::ge, x,
                    x.simd_lanes == 1 ? bound(v.low) : b_.integer(x.dtype, v.low, x.simd_lanes)));
  if (test_high)
    both(b_.compare(Compare::lt, x,
                    x.simd_lanes == 1 ? bound(v.high) : b_.integer(x.dtype, v.high, x.simd_lanes)));
  return result ? result : b_.boolean(true, x.simd_lanes);
}

// ---- memory -------------------------------------------------------------------------------------

Value ValueEmitter::pointer(int buffer) { return pointers_[buffer]; }

Value ValueEmitter::with_tail(Value mask) {
  if (!mask_) return mask ? widen(mask) : mask;
  return mask ? b_.bit_and(widen(mask), mask_) : mask_;
}

/// What must hold of `mask` so that a vector lies no more than a page beside what is wanted of the
/// load; none if all do. Vectors that nothing is wanted of may lie far outside of the buffer
/// otherwise, where no memory is: processors take hundreds of cycles, or a fault in silence, to
/// find out that no SIMD lane asks for it. `fixed` stays true if it is the same for all vectors of
/// a row.
Value ValueEmitter::keeps_near(const NestValue& load, int mask, bool& fixed) {
  const NestValue& m = nest_.values[mask];
  if (m.kind == NestValue::Kind::op && m.op == Op::and_) {
    const Value a = keeps_near(load, m.operands[0], fixed),
                b = keeps_near(load, m.operands[1], fixed);
    return a && b ? b_.bit_and(a, b) : a ? a : b;
  }
  const IndexExpr* e = m.kind == NestValue::Kind::in_range ? &nest_.indices[m.index] : nullptr;
  if (e && !e->terms.empty() &&
      nest_.indices.atom(e->terms[0].atom).kind == IndexAtom::Kind::loop) {
    const IndexBounds known = nest_.indices.bounds(m.index);
    const bool bounded = known.low > -IndexTable::unbounded && known.high < IndexTable::unbounded;
    const std::int64_t stride =
        std::abs(nest_.indices.factor_of_loop(load.index, nest_.indices.atom(e->terms[0].atom).id) /
                 e->terms[0].factor);
    const std::int64_t outside = std::max(m.low - known.low, known.high - m.high + 1);
    constexpr std::int64_t page = 4096;
    if (bounded && outside * stride * static_cast<std::int64_t>(size_of(load.dtype)) <= page)
      return {};
  }
  fixed = fixed && !varies(mask);
  return b_.any(get(mask));
}

Value ValueEmitter::emit_load(const NestValue& v) {
  const SimdStep step = vector_loop_ < 0
                            ? SimdStep{true, 0}
                            : simd_step(nest_, v.index, vector_loop_, simd_lanes(), dependences_);
  const Value mask = v.mask >= 0 ? get(v.mask) : Value{};
  if (step.regular && step.step == 0) {
    const Value at = b_.offset(pointer(v.buffer), v.dtype, scalar_index(v.index, false));
    if (!mask) return b_.load(at, v.dtype);
    if (mask.simd_lanes == 1) return b_.load_masked(at, v.dtype, mask);
    // One address for all SIMD lanes, but not all want it: read it if any does.
    const Value wanted = with_tail(mask);
    const Value one = b_.load_masked(at, v.dtype, b_.any(wanted));
    return b_.select(wanted, widen(one), b_.integer(v.dtype, 0, simd_lanes()));
  }
  const Value wanted = with_tail(mask);
  if (step.regular) {
    bool fixed = true;
    const Value near =
        mask && (step.step == 1 || step.step == -1) ? keeps_near(v, v.mask, fixed) : Value{};
    const Value base = pointer(v.buffer);
    const bool along = step.step == 1 && nest_.indices.factor_of_loop(v.index, vector_loop_) == 1 &&
                       !nest_.indices.loop_inside_division(v.index, vector_loop_);
    if (near && fixed && along) {  // chosen before the loop over the row begins
      const Value row =
          b_.select(near, b_.offset(base, v.dtype, scalar_index(v.index, true)), base);
      return b_.load_masked(b_.offset(row, v.dtype, positions_[vector_loop_]), v.dtype, wanted);
    }
    Value at = b_.offset(base, v.dtype, scalar_index(v.index, false));
    if (near) at = b_.select(near, at, base);
    if (step.step == 1)
      return wanted ? b_.load_masked(at, v.dtype, wanted) : b_.load(at, v.dtype, simd_lanes());
    return b_.load_strided(at, v.dtype, simd_lanes(), step.step, wanted);
  }
  Value base{};
  const Value indices = simd_lane_indices(v.index, &base);
  return b_.gather(b_.offset(pointer(v.buffer), v.dtype, base), v.dtype, indices, wanted);
}

Value ValueEmitter::row_pointer(int value, int simd_lane, std::int64_t further) {
  const NestValue& v = nest_.values[value];
  const std::int64_t step = nest_.indices.factor_of_loop(v.index, vector_loop_);
  return b_.offset(pointer(v.buffer), v.dtype,
                   b_.add(scalar_index(v.index, false), b_.index(step * simd_lane + further)));
}

Value ValueEmitter::load_row(int value, int simd_lane, DType d) {
  return b_.load(row_pointer(value, simd_lane, 0), d, simd_lanes());
}

// A load without SIMD lanes still costs a page fault that is suppressed, every time, where nothing
// is mapped.
Value ValueEmitter::load_row(int value, int simd_lane, DType d, Value mask, Value rows) {
  const Value first = row_pointer(value, 0, 0);
  return b_.load_masked(simd_lane == 0
                            ? first
                            : b_.select(b_.compare(Compare::lt, b_.index(simd_lane), rows),
                                        row_pointer(value, simd_lane, 0), first),
                        d, mask);
}

Value ValueEmitter::row_of(const NestStore& s, int simd_lane) {
  const std::int64_t step = nest_.indices.factor_of_loop(s.index, vector_loop_);
  return b_.offset(pointer(s.buffer), nest_.buffers[s.buffer].dtype,
                   b_.add(scalar_index(s.index, false), b_.index(step * simd_lane)));
}

void ValueEmitter::fetch_row(int value, int simd_lane, std::int64_t further, bool near) {
  b_.fetch_ahead(row_pointer(value, simd_lane, further), {.near = near});
}

void ValueEmitter::fetch_iteration(int value, int loop) {
  const NestValue& v = nest_.values[value];
  if (v.kind != NestValue::Kind::load || v.mask >= 0 ||
      nest_.indices.loop_inside_division(v.index, loop))
    return;
  const std::int64_t further = nest_.indices.factor_of_loop(v.index, loop);
  const SimdStep step = simd_step(nest_, v.index, vector_loop_, simd_lanes(), dependences_);
  if (further == 0 || !step.regular || step.step != 1) return;
  b_.fetch_ahead(b_.offset(pointer(v.buffer), v.dtype,
                           b_.add(scalar_index(v.index, false), b_.index(further))),
                 {.near = false});
}

// Buffers start at multiples of 64 bytes and vectors at multiples of their length, so only the
// other terms count.
int ValueEmitter::store_alignment(const NestStore& s, DType d) const {
  const std::int64_t size = static_cast<std::int64_t>(size_of(d)),
                     whole = std::min<std::int64_t>(simd_lanes() * size, 64);
  const IndexExpr& e = nest_.indices[s.index];
  bool aligned = e.constant * size % whole == 0;
  for (const IndexTerm& t : e.terms) {
    const IndexAtom& a = nest_.indices.atom(t.atom);
    aligned = aligned && a.kind == IndexAtom::Kind::loop &&
              (a.id == vector_loop_ || t.factor * size % whole == 0);
  }
  return aligned ? static_cast<int>(whole) : 0;
}

void ValueEmitter::store(const NestStore& s, bool stream) {
  if (s.update != Op::input) return update(s);
  const DType d = nest_.buffers[s.buffer].dtype;
  const SimdStep step = vector_loop_ < 0
                            ? SimdStep{true, 0}
                            : simd_step(nest_, s.index, vector_loop_, simd_lanes(), dependences_);
  if (step.regular && step.step == 0) {
    b_.store(b_.offset(pointer(s.buffer), d, scalar_index(s.index, false)), get(s.value));
    return;
  }
  const Value x = get_simd_lanes(s.value);
  if (!step.regular) {
    Value base{};
    const Value indices = simd_lane_indices(s.index, &base);
    b_.scatter(b_.offset(pointer(s.buffer), d, base), x, indices, mask_);
    return;
  }
  const Value at = b_.offset(pointer(s.buffer), d, scalar_index(s.index, false));
  if (step.step != 1) b_.store_strided(at, x, step.step, mask_);
  else if (mask_) b_.store_masked(at, x, mask_);
  else if (const int align = stream ? store_alignment(s, d) : 0; align > 0)
    b_.store_streaming(at, x, align);
  else b_.store(at, x);
}

bool ValueEmitter::store_interleaved(const NestStore& s) {
  const SmallVec<const NestStore*, 4> all =
      interleaved_with(nest_, s, vector_loop_, simd_lanes(), dependences_);
  if (all.empty()) return false;
  if (all[0] != &s) return true;
  Vec<Value> xs;
  for (const NestStore* part : all) xs.push_back(get_simd_lanes(part->value));
  b_.store_interleaved(
      b_.offset(pointer(s.buffer), nest_.buffers[s.buffer].dtype, scalar_index(s.index, false)), xs,
      mask_);
  return true;
}

// Runs `body` with scalars, for the SIMD lane's iteration of the vector loop.
void ValueEmitter::at_simd_lane(int simd_lane, FunctionRef<void()> body) {
  const Vec<Value> vectors = known_;
  const int loop = vector_loop_;
  const Value position = positions_[loop], mask = mask_;
  for (std::size_t v = 0; v < known_.size(); ++v)
    if (dependences_[v] >> loop & 1) known_[v] = {};
  vector_loop_ = -1;
  mask_ = {};
  positions_[loop] = b_.add(position, b_.index(simd_lane));
  body();
  positions_[loop] = position;
  mask_ = mask;
  vector_loop_ = loop;
  known_ = vectors;
}

// SIMD lanes may meet: one after the other. Mostly all of them write, which one jump finds out for
// all; LLVM is told what follows from it for each.
void ValueEmitter::update_one_by_one(const NestStore& s, FunctionRef<void()> write) {
  const int lanes = simd_lanes();
  const Value mask = with_tail(s.mask >= 0 ? get(s.mask) : Value{});
  const auto write_all = [&] {
    for (int lane = 0; lane < lanes; ++lane)
      at_simd_lane(lane, [&] {
        if (s.mask >= 0) b_.assume(get(s.mask));
        write();
      });
  };
  if (!mask) return write_all();
  const Value all = b_.all(mask);
  b_.if_then(all, write_all);
  b_.if_then(b_.bit_not(all), [&] {
    for (int lane = 0; lane < lanes; ++lane)
      b_.if_then(b_.extract(mask, lane), [&] { at_simd_lane(lane, write); });
  });
}

void ValueEmitter::update(const NestStore& s) {
  const DType d = nest_.buffers[s.buffer].dtype;
  const auto combined = [&](Value old, Value x) {
    if (s.update == Op::select) return x;
    const Value operands[] = {old, x};
    return emit_op(b_, s.update, d, {}, operands);
  };
  const auto write_one = [&] {
    const Value x = get(s.value),
                at = b_.offset(pointer(s.buffer), d, scalar_index(s.index, false));
    b_.store(at, combined(s.update == Op::select ? x : b_.load(at, d), x));
  };
  if (vector_loop_ < 0) {
    if (s.mask < 0) return write_one();
    return b_.if_then(get(s.mask), write_one);
  }
  const SimdStep by = simd_step(nest_, s.index, vector_loop_, simd_lanes(), dependences_);
  if (!by.regular) return update_one_by_one(s, write_one);
  const Value x = get_simd_lanes(s.value), wanted = s.mask >= 0 ? get(s.mask) : Value{};
  const Value at = b_.offset(pointer(s.buffer), d, scalar_index(s.index, false));
  const auto write = [&](Value mask) {
    if (by.step == 1) {
      const Value old = s.update == Op::select ? x
                        : mask                 ? b_.load_masked(at, d, mask)
                                               : b_.load(at, d, simd_lanes());
      if (mask) b_.store_masked(at, combined(old, x), mask);
      else b_.store(at, combined(old, x));
      return;
    }
    const Value old =
        s.update == Op::select ? x : b_.load_strided(at, d, simd_lanes(), by.step, mask);
    b_.store_strided(at, combined(old, x), by.step, mask);
  };
  // What is asked of a whole row is a jump, mostly the same one: without a mask, what the next row
  // of this place reads comes from the store itself.
  if (wanted && wanted.simd_lanes == 1) b_.if_then(wanted, [&] { write(mask_); });
  else write(with_tail(wanted));
}

AccessCounts count_accesses(const Nest& nest, const Schedule& schedule) {
  AccessCounts counts;
  const Vec<std::uint64_t> dependences = loop_dependences(nest);
  const auto look = [&](IndexId index, int loop, DType d, bool transposed) {
    if (transposed) {
      ++counts.contiguous;
      return;
    }
    const SimdStep step = simd_step(nest, index, loop, schedule.simd_lanes, dependences);
    if (!step.regular) {
      ++counts.gathers;
      if (size_of(d) < 4) ++counts.scalarised;  // no gather instruction for narrow elements
    } else if (step.step == 1) {
      ++counts.contiguous;
    } else if (step.step != 0) {
      ++counts.strided;
    }
  };
  for (std::size_t k = 0; k < schedule.stages.size(); ++k) {
    const int loop = schedule.stages[k].vector_loop;
    if (loop < 0) continue;
    Vec<int> roots;
    for (const NestStore& s : nest.stores)
      if (s.stage == static_cast<int>(k)) {
        add_roots(nest, s, roots);
        look(s.index, loop, nest.buffers[s.buffer].dtype,
             !interleaved_with(nest, s, loop, schedule.simd_lanes, dependences).empty() ||
                 (schedule.stages[k].mode == StageSchedule::Mode::vertical && !s.after &&
                  lies_transposed(nest, s.index, schedule.stages[k], schedule.simd_lanes,
                                  dependences)));
      }
    for (const NestReduction& r : nest.reductions)
      if (r.stage == static_cast<int>(k)) add_roots(r, roots);
    for (int v : needed_values(nest, roots))
      if (nest.values[v].kind == NestValue::Kind::load)
        look(nest.values[v].index, loop, nest.values[v].dtype,
             vt::detail::reads_transposed(nest, nest.values[v], schedule.stages[k],
                                          schedule.simd_lanes, dependences));
  }
  return counts;
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
