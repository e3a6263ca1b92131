// The values of a register kernel: each op on elements in registers. An index known only at run
// time selects by comparisons, or reads and writes memory.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include "../../nest/two_sum.hpp"
#include "nest.hpp"

namespace vt::detail::cpu::register_emission {

Value RegisterEmitter::chosen(const Elements& all, Value index) {
  Value x = all[0];
  for (std::size_t i = 1; i < all.size(); ++i)
    x = either(equals(index, static_cast<std::int64_t>(i)), all[i], x);
  return x;
}

Value RegisterEmitter::either(Value mask, Value a, Value b) {
  if (mask.simd_lanes == 1 && b_.is_constant(mask)) return b_.is_zero(mask) ? b : a;
  const int lanes = std::max({mask.simd_lanes, a.simd_lanes, b.simd_lanes});
  const auto splatted = [&](Value v) { return v.simd_lanes == lanes ? v : b_.splat(v, lanes); };
  return b_.select(splatted(mask), splatted(a), splatted(b));
}

Value RegisterEmitter::apply(Op op, DType dtype, const ParamsRef& params, Elements operands,
                             std::int64_t uses) {
  int lanes = 1;
  for (const Value& v : operands) lanes = std::max(lanes, v.simd_lanes);
  for (Value& v : operands)
    if (v.simd_lanes != lanes) v = b_.splat(v, lanes);
  return emit_op(b_, op, dtype, params, operands, uses);
}

// Factors of 1, and zeros that change nothing: −0 in a sum. Where the equation allows it, all
// zeros.
Value RegisterEmitter::without_operation(const Equation& e, const Elements& x) {
  if (!is_float(x[0].dtype)) return {};
  const auto is = [&](std::size_t k, double number) { return b_.is_number(x[k], number); };
  const auto is_zero = [&](std::size_t k) {
    return e.assume_finite && (is(k, 0.0) || is(k, -0.0));
  };
  switch (e.op) {
    case Op::add:
      return is(0, -0.0) || is_zero(0) ? x[1] : is(1, -0.0) || is_zero(1) ? x[0] : Value();
    case Op::sub:
      return is(1, 0.0) || is_zero(1) ? x[0] : is(0, -0.0) || is_zero(0) ? b_.neg(x[1]) : Value();
    case Op::mul: return is(0, 1) || is_zero(1) ? x[1] : is(1, 1) || is_zero(0) ? x[0] : Value();
    case Op::div: return is(1, 1) || is_zero(0) ? x[0] : Value();
    default: return {};
  }
}

Value RegisterEmitter::number(const Scalar& s, DType d) {
  const Scalar c = s.converted(d);
  if (is_float(d)) return b_.real(d, c.real);
  return b_.integer(d, is_unsigned(d) ? static_cast<std::int64_t>(c.natural) : c.integer);
}

Val RegisterEmitter::value(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Aval& out = g.aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  Elements all;
  switch (family_of(e.op)) {
    case Family::unary:
    case Family::binary:
    case Family::select: {
      // exp and its like are not called: a softmax of rows took a fifth longer.
      const std::int64_t uses = op_weight(e.op, out.dtype) > op_weight(Op::exp, DType::f32) ? n : 1;
      for (std::int64_t i = 0; i < n; ++i) {
        Elements operands;
        for (const Val& x : in) operands.push_back(x[x.elements().size() == 1 ? 0 : i]);
        const Value known = without_operation(e, operands);
        all.push_back(known ? known : apply(e.op, out.dtype, e.params, std::move(operands), uses));
      }
      return all;
    }
    case Family::leaf: return leaf(e, out);
    case Family::reduce:
      return e.op == Op::argmax || e.op == Op::argmin ? position(g, e, in[0])
                                                      : reduced(g, e, in[0]);
    case Family::cumulative: return running(g, e, in[0]);
    case Family::contract: return product(g, e, in);
    case Family::index:
      if (e.op == Op::dynamic_slice) return dynamic_slice(g, e, in);
      if (e.op == Op::dynamic_update_slice) return dynamic_update_slice(g, e, in);
      if (e.op == Op::gather) return gathered(g, e, in);
      if (is_scatter(e.op)) return scattered(g, e, in);
      break;
    default: break;
  }
  if (e.op == Op::concatenate) return concatenated(g, e, in);
  // What only moves elements.
  for (const std::int64_t source : source_elements(g, e)) {
    if (source < 0) all.push_back(in[1][0]);  // pad's value
    else if (in[0].is_array()) all.push_back(read(object(in[0]), index_number(source)));
    else all.push_back(in[0][source]);
  }
  return all;
}

Val RegisterEmitter::leaf(const Equation& e, const Aval& out) {
  Elements all;
  const std::int64_t n = out.elements();
  for (std::int64_t i = 0; i < n; ++i) {
    if (e.op == Op::full) {
      all.push_back(number(e.as<FullParams>().value, out.dtype));
    } else if (e.op == Op::iota) {
      std::int64_t left = i, inner = 1;
      const int axis = e.as<IotaParams>().axis;
      for (int d = axis + 1; d < out.shape.rank(); ++d) inner *= out.shape[d];
      left = left / inner % out.shape[axis];
      all.push_back(number(Scalar(left), out.dtype));
    } else {
      with_type(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        all.push_back(number(Scalar(e.as<ConstantParams>().buffer->as<const T>()[i]), out.dtype));
      });
    }
  }
  return all;
}

Val RegisterEmitter::reduced(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
  const Axes& axes = e.as<AxesParams>().axes;
  const Op op = reduction_facts[e.op].combine;
  // 16-bit sums and products are made in f32.
  const bool through_f32 =
      accumulates_wide(e.op) && (to.dtype == DType::f16 || to.dtype == DType::bf16);
  const DType carried = through_f32 ? DType::f32 : to.dtype;
  Elements sums(static_cast<std::size_t>(to.elements()));
  std::size_t k = 0;
  for (const std::int64_t place : reduced_elements(from.shape, axes)) {
    Value& sum = sums[place];
    Value next = x[k++];
    // Sums start at +0, which no zero changes.
    if (e.op == Op::reduce_sum && (b_.is_number(next, 0.0) || b_.is_number(next, -0.0))) continue;
    if (through_f32) next = b_.convert(next, DType::f32);
    // A sum of nothing but −0 is +0.
    if (op == Op::add && !sum && is_float(carried) && !e.assume_finite)
      sum = b_.integer(carried, 0);
    sum = sum ? apply(op, carried, {}, {sum, next}) : next;
  }
  for (Value& sum : sums) {
    if (!sum) {
      const Reduce neutral = op == Op::add   ? Reduce::add
                             : op == Op::mul ? Reduce::mul
                             : op == Op::max ? Reduce::max
                             : op == Op::min ? Reduce::min
                             : op == Op::or_ ? Reduce::bit_or
                                             : Reduce::bit_and;
      sum = b_.identity(neutral, carried);
    }
    if (through_f32) sum = b_.convert(sum, to.dtype);
  }
  return sums;
}

// The first place of the greatest or least element of each run; NaN wins.
Val RegisterEmitter::position(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval& from = g.aval(e.inputs[0]);
  const auto& p = e.as<ArgParams>();
  const AxisRuns runs(from.shape, p.axis);
  Elements places;
  for (std::int64_t n = 0; n < runs.count; ++n) {
    Value best = x[runs.at(n, 0)], where = b_.integer(p.dtype, 0);
    for (std::int64_t k = 1; k < runs.length; ++k) {
      const Value next = x[runs.at(n, k)];
      Value better = apply(e.op == Op::argmax ? Op::gt : Op::lt, DType::bool_, {}, {next, best});
      if (is_float(from.dtype)) {
        const Value no_better =
            apply(e.op == Op::argmax ? Op::le : Op::ge, DType::bool_, {}, {next, best});
        better = b_.bit_and(b_.bit_not(no_better), b_.bit_not(b_.is_nan(best)));
      }
      best = either(better, next, best);
      where = either(better, b_.integer(p.dtype, k), where);
    }
    places.push_back(where);
  }
  return places;
}

Val RegisterEmitter::running(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval& out = g.aval(e.outputs[0]);
  const auto& p = e.as<CumulativeParams>();
  const AxisRuns runs(out.shape, p.axis);
  const RunningOp step(e.op, out.dtype, runs.length);
  Elements all = x.elements();
  for (std::int64_t n = 0; n < runs.count; ++n) {
    // The sum starts at +0: a sum of nothing but -0 is +0.
    Value so_far = step.op == Op::add && is_float(out.dtype) ? b_.integer(step.dtype, 0) : Value();
    Value lost{};
    for (std::int64_t k = 0; k < runs.length; ++k) {
      Value& element = all[runs.at(n, p.reverse ? runs.length - 1 - k : k)];
      const Value next = b_.convert(element, step.dtype), before = so_far;
      so_far = so_far ? apply(step.op, step.dtype, {}, {so_far, next}) : next;
      element = b_.convert(so_far, out.dtype);
      if (!step.compensated || k == 0) continue;
      const auto in_double = [&](Op op, Value a, Value b) {
        return apply(op, DType::f64, {}, {a, b});
      };
      const Value taken = taken_by_rounding(before, next, so_far, in_double),
                  finite = apply(Op::is_finite, DType::bool_, {}, {taken}),
                  error = either(finite, taken, b_.integer(DType::f64, 0));
      lost = lost ? in_double(Op::add, lost, error) : error;
      element = in_double(Op::add, so_far, lost);
    }
  }
  return all;
}

Val RegisterEmitter::product(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const auto& p = e.as<DotParams>();
  const bool half = p.dtype == DType::f16 || p.dtype == DType::bf16;
  const DType carried = half ? DType::f32 : p.dtype;
  const SmallProduct product(g, e);
  Elements sums;
  for (std::int64_t i = 0, count = g.aval(e.outputs[0]).elements(); i < count; ++i) {
    Value sum{};
    for (std::int64_t t = 0; t < product.terms(); ++t) {
      const SmallProduct::Factors factors = product.at(i, t);
      Value x = b_.convert(in[0][factors.lhs], carried);
      Value y = b_.convert(in[1][factors.rhs], carried);
      const int lanes = std::max({x.simd_lanes, y.simd_lanes, sum ? sum.simd_lanes : 1});
      const auto splatted = [&](Value z) { return z.simd_lanes == lanes ? z : b_.splat(z, lanes); };
      const auto is_zero = [&](Value z) { return b_.is_number(z, 0.0) || b_.is_number(z, -0.0); };
      const bool known = b_.is_constant(x) && b_.is_constant(y);
      if (known ? is_zero(b_.mul(splatted(x), splatted(y)))
                : e.assume_finite && (is_zero(x) || is_zero(y)))
        continue;
      sum = !sum                ? b_.mul(splatted(x), splatted(y))
            : is_float(carried) ? b_.mul_add(splatted(x), splatted(y), splatted(sum))
                                : b_.add(splatted(sum), b_.mul(splatted(x), splatted(y)));
    }
    if (!sum) sum = b_.integer(carried, 0);
    sums.push_back(half ? b_.convert(sum, p.dtype) : sum);
  }
  return sums;
}

Val RegisterEmitter::concatenated(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const std::size_t axis = e.as<AxisParams>().axis;
  const Shape& shape = g.aval(e.outputs[0]).shape;
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
  Elements all;
  for (std::int64_t o = 0; o < outer; ++o)
    for (const Val& part : in) {
      const auto run = static_cast<std::int64_t>(part.elements().size()) / outer;
      for (std::int64_t i = 0; i < run; ++i) all.push_back(part[o * run + i]);
    }
  return all;
}

// ---- places that are known at run time ----------------------------------------------------------

Value RegisterEmitter::clamped(Value start, std::int64_t most) {
  // An unsigned or wide start is compared in its own type, before it is narrowed.
  const Value top = b_.integer(start.dtype, largest(start.dtype, most), start.simd_lanes);
  start = b_.min(start, top);
  if (!is_unsigned(start.dtype))
    start = b_.max(start, b_.integer(start.dtype, 0, start.simd_lanes));
  return b_.convert(start, DType::i64);
}

std::int64_t RegisterEmitter::largest(DType d, std::int64_t most) {
  const int bits = static_cast<int>(size_of(d)) * 8 - !is_unsigned(d);
  return bits >= 63 ? most : std::min(most, (std::int64_t{1} << bits) - 1);
}

Value RegisterEmitter::linear(const Shape& shape, const Vec<Value>& index) {
  Value p = index_number(0);
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (index[d])
      p = sum(p, stride == 1
                     ? index[d]
                     : b_.mul(index[d], b_.integer(DType::i64, stride, index[d].simd_lanes)));
    stride *= shape[d];
  }
  return p;
}

Vec<std::int64_t> RegisterEmitter::window(const Shape& shape, const Shape& sizes) {
  Vec<std::int64_t> all;
  for (std::int64_t k = 0; k < sizes.elements(); ++k) {
    std::int64_t left = k, place = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += left % sizes[d] * stride;
      left /= sizes[d];
      stride *= shape[d];
    }
    all.push_back(place);
  }
  return all;
}

Value RegisterEmitter::start_of(const Shape& shape, const Shape& sizes,
                                std::span<const Val> starts) {
  Vec<Value> index;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index.push_back(clamped(starts[d][0], shape[d] - sizes[d]));
  return linear(shape, index);
}

Val RegisterEmitter::dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = e.as<ShapeParams>().shape;
  const Value start = start_of(shape, sizes, std::span<const Val>(in).subspan(1));
  Elements all;
  for (const std::int64_t by : window(shape, sizes)) all.push_back(element_at(in[0], start, by));
  return all;
}

Val RegisterEmitter::dynamic_update_slice(const GraphBody& g, const Equation& e,
                                          const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
  const Value start = start_of(shape, sizes, std::span<const Val>(in).subspan(2));
  const Vec<std::int64_t> places = window(shape, sizes);
  Elements all = in[0].elements();
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (in[0].is_array()) write(updated(in[0]), start, places[k], in[1][k]);
    const Value at_place = further(start, places[k]);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = either(equals(at_place, static_cast<std::int64_t>(i)), in[1][k], all[i]);
  }
  return in[0].is_array() ? in[0] : all;
}

// Where an element lies, and whether that is inside (none: it always is).
RegisterEmitter::Target RegisterEmitter::target(const Shape& shape, const IndexedElement& at,
                                                IndexMode mode, const Val& indices) {
  Vec<Value> place(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (at.fixed[d] >= 0) place[d] = index_number(at.fixed[d]);
  Target t{};
  for (std::size_t k = 0; k < at.moved.size(); ++k) {
    const std::size_t d = at.moved[k];
    const Value start = indices[static_cast<std::size_t>(at.first) + k],
                moved = clamped(start, at.at_most[k]);
    if (mode == IndexMode::fill) {
      // Unchanged by clamping: inside.
      const Value good = b_.compare(Compare::eq, b_.convert(moved, start.dtype), start);
      t.inside = t.inside ? both_of(t.inside, good) : good;
    }
    place[d] = place[d] ? sum(place[d], moved) : moved;
  }
  t.place = linear(shape, place);
  return t;
}

Val RegisterEmitter::gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  Elements all;
  for (std::int64_t n = 0, count = g.aval(e.outputs[0]).elements(); n < count; ++n) {
    const Target t = target(g.aval(e.inputs[0]).shape, gathered_element(g, e, n),
                            e.as<GatherParams>().mode, in[1]);
    Value x = element_at(in[0], t.place);
    if (t.inside) x = either(t.inside, x, b_.integer(x.dtype, 0, x.simd_lanes));
    all.push_back(x);
  }
  return all;
}

Val RegisterEmitter::scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Op combination = combination_of(e.op);
  Elements all = in[0].elements();
  for (std::int64_t n = 0, count = g.aval(e.inputs[2]).elements(); n < count; ++n) {
    const auto [to, inside] = target(g.aval(e.inputs[0]).shape, scattered_element(g, e, n),
                                     e.as<ScatterParams>().mode, in[1]);
    const Value update = in[2][n];
    const DType dtype = g.aval(e.outputs[0]).dtype;
    const auto combined = [&](Value old) {
      return e.op == Op::scatter ? update : apply(combination, dtype, {}, {old, update});
    };
    if (!in[0].is_array()) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        Value here = equals(to, static_cast<std::int64_t>(i));
        if (inside) here = both_of(here, inside);
        all[i] = either(here, combined(all[i]), all[i]);
      }
      continue;
    }
    // An update that is out of range writes back what is there.
    const Object& array = updated(in[0]);
    const Value old = read(array, to);
    const Value x = combined(old);
    write(array, to, 0, inside ? either(inside, x, old) : x);
  }
  return in[0].is_array() ? in[0] : all;
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
