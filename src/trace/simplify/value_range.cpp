// What the simplifier knows of integer values without computing them: bounds, and which are
// index · step + start.
#include "value_range.hpp"

#include <algorithm>
#include <limits>

namespace vt::detail::simplification {

namespace ranges {

/// All values of the dtype; u64 beyond i64's are not followed.
std::optional<Range> of_dtype(DType d) {
  if (is_bool(d)) return Range{0, 1};
  const int bits = static_cast<int>(8 * size_of(d));
  if (is_signed_int(d)) {
    const std::int64_t high = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    return Range{-high - 1, high};
  }
  if (d == DType::u64) return std::nullopt;
  return Range{0, (std::int64_t{1} << bits) - 1};
}

bool fits(Range r, DType d) {
  if (d == DType::u64) return r.low >= 0;
  const auto all = of_dtype(d);
  return all && r.low >= all->low && r.high <= all->high;
}

std::optional<std::int64_t> value(const Scalar& s) {
  if (is_inexact(s.dtype)) return std::nullopt;
  if (is_unsigned(s.dtype) &&
      s.natural > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return s.integer;
}

std::optional<Range> sum(Range a, Range b) {
  Range r{};
  if (__builtin_add_overflow(a.low, b.low, &r.low) ||
      __builtin_add_overflow(a.high, b.high, &r.high))
    return std::nullopt;
  return r;
}
std::optional<Range> difference(Range a, Range b) {
  Range r{};
  if (__builtin_sub_overflow(a.low, b.high, &r.low) ||
      __builtin_sub_overflow(a.high, b.low, &r.high))
    return std::nullopt;
  return r;
}
std::optional<Range> product(Range a, Range b) {
  std::int64_t corners[4];
  if (__builtin_mul_overflow(a.low, b.low, &corners[0]) ||
      __builtin_mul_overflow(a.low, b.high, &corners[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corners[2]) ||
      __builtin_mul_overflow(a.high, b.high, &corners[3]))
    return std::nullopt;
  return Range{*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}
Range hull(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

/// Bounds by the defining equation; nothing if they may leave the dtype.
std::optional<Range> by_equation(const Pass& p, Var v, const Equation& e, int depth) {
  const auto of = [&](std::size_t i) { return range_of(p, e.inputs[i], depth - 1); };
  const auto both = [&](auto combine) -> std::optional<Range> {
    const auto a = of(0), b = of(1);
    return a && b ? combine(*a, *b) : std::nullopt;
  };
  switch (e.op) {
    case Op::full:
      if (const auto x = value(e.as<FullParams>().value)) return Range{*x, *x};
      return std::nullopt;
    case Op::iota: {
      const auto& iota = e.as<IotaParams>();
      return Range{0, std::max<std::int64_t>(0, iota.aval.shape[iota.axis] - 1)};
    }
    case Op::argmax:
    case Op::argmin:
      return Range{0, std::max<std::int64_t>(0, p.shape(e.inputs[0])[e.as<ArgParams>().axis] - 1)};
    case Op::add: return both([](Range a, Range b) { return sum(a, b); });
    case Op::sub: return both([](Range a, Range b) { return difference(a, b); });
    case Op::mul: return both([](Range a, Range b) { return product(a, b); });
    case Op::max:
      return both([](Range a, Range b) {
        return std::optional(Range{std::max(a.low, b.low), std::max(a.high, b.high)});
      });
    case Op::min:
      return both([](Range a, Range b) {
        return std::optional(Range{std::min(a.low, b.low), std::min(a.high, b.high)});
      });
    case Op::rem:
      return both([](Range a, Range b) -> std::optional<Range> {
        if (a.low < 0 || b.low < 1) return std::nullopt;
        return Range{0, std::min(a.high, b.high - 1)};
      });
    case Op::div:
      return both([](Range a, Range b) -> std::optional<Range> {
        if (a.low < 0 || b.low < 1) return std::nullopt;
        return Range{a.low / b.high, a.high / b.low};
      });
    case Op::neg:
      if (const auto a = of(0)) return difference(Range{0, 0}, *a);
      return std::nullopt;
    case Op::select: {
      const auto a = of(1), b = of(2);
      if (a && b) return hull(*a, *b);
      return std::nullopt;
    }
    case Op::concatenate: {
      auto all = of(0);
      for (std::size_t i = 1; i < e.inputs.size() && all; ++i) {
        const auto next = of(i);
        all = next ? std::optional(hull(*all, *next)) : std::nullopt;
      }
      return all;
    }
    case Op::sort:
      for (std::size_t i = 0; i < e.outputs.size(); ++i)
        if (e.outputs[i] == v) return of(i);
      return std::nullopt;
    case Op::convert: return is_inexact(p.dtype(e.inputs[0])) ? of_dtype(p.dtype(v)) : of(0);
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast_in_dim:
    case Op::slice:
    case Op::rev:
    case Op::dynamic_slice:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::cummax:
    case Op::cummin: return of(0);
    default: return std::nullopt;
  }
}

}  // namespace ranges

std::optional<Range> range_of(const Pass& p, Var v, int depth) {
  const DType d = p.dtype(v);
  if (is_inexact(d)) return std::nullopt;
  if (depth > 0)
    if (const Equation* e = p.def(v))
      if (const auto r = ranges::by_equation(p, v, *e, depth); r && ranges::fits(*r, d)) return r;
  return ranges::of_dtype(d);
}

std::optional<Affine> affine_of(const Pass& p, Var v, int depth) {
  if (is_inexact(p.dtype(v)) || is_bool(p.dtype(v)) || depth == 0) return std::nullopt;
  const Equation* e = p.def(v);
  if (!e) return std::nullopt;
  const auto of = [&](std::size_t i) { return affine_of(p, e->inputs[i], depth - 1); };
  // The result must not have wrapped around: its exact values fit in the dtype.
  const auto checked = [&](std::int64_t start, std::int64_t step,
                           int axis) -> std::optional<Affine> {
    const std::int64_t steps = axis < 0 ? 0 : std::max<std::int64_t>(0, p.shape(v)[axis] - 1);
    std::int64_t last = 0;
    if (__builtin_mul_overflow(step, steps, &last) || __builtin_add_overflow(last, start, &last))
      return std::nullopt;
    if (!ranges::fits({std::min(start, last), std::max(start, last)}, p.dtype(v)))
      return std::nullopt;
    return Affine{start, step, step == 0 ? -1 : axis};
  };
  switch (e->op) {
    case Op::full:
      if (const auto x = ranges::value(e->as<FullParams>().value)) return Affine{*x, 0, -1};
      return std::nullopt;
    case Op::iota: return checked(0, 1, e->as<IotaParams>().axis);
    case Op::convert:
      if (const auto a = of(0)) return checked(a->start, a->step, a->axis);
      return std::nullopt;
    case Op::add:
    case Op::sub: {
      const auto a = of(0), b = of(1);
      if (!a || !b || (a->step != 0 && b->step != 0 && a->axis != b->axis)) return std::nullopt;
      const std::int64_t sign = e->op == Op::add ? 1 : -1;
      std::int64_t start = 0, step = 0, b_start = 0, b_step = 0;
      if (__builtin_mul_overflow(sign, b->start, &b_start) ||
          __builtin_mul_overflow(sign, b->step, &b_step) ||
          __builtin_add_overflow(a->start, b_start, &start) ||
          __builtin_add_overflow(a->step, b_step, &step))
        return std::nullopt;
      return checked(start, step, a->step != 0 ? a->axis : b->axis);
    }
    case Op::mul: {
      const auto a = of(0), b = of(1);
      if (!a || !b || (a->step != 0 && b->step != 0)) return std::nullopt;
      const Affine &x = a->step != 0 ? *a : *b, &factor = a->step != 0 ? *b : *a;
      std::int64_t start = 0, step = 0;
      if (__builtin_mul_overflow(x.start, factor.start, &start) ||
          __builtin_mul_overflow(x.step, factor.start, &step))
        return std::nullopt;
      return checked(start, step, x.axis);
    }
    case Op::broadcast_in_dim: {
      auto a = of(0);
      if (!a || a->step == 0) return a;
      const auto& params = e->as<BroadcastParams>();
      const std::int64_t extent = p.shape(e->inputs[0])[a->axis];
      a->axis = params.axes[a->axis];
      if (extent == 1) *a = {a->start, 0, -1};
      return a;
    }
    case Op::reshape: {
      // Only where the axis is seen to be the same one: equal extents and as many elements before
      // it.
      auto a = of(0);
      if (!a || a->step == 0) return a;
      const Shape &from = p.shape(e->inputs[0]), &to = p.shape(v);
      if (from.elements() == 0) return std::nullopt;
      std::int64_t before = 1, seen = 1;
      for (int i = 0; i < a->axis; ++i) before *= from[i];
      for (int i = 0; i < to.rank(); seen *= to[i], ++i)
        if (seen == before && to[i] == from[a->axis]) return Affine{a->start, a->step, i};
      return std::nullopt;
    }
    case Op::transpose: {
      auto a = of(0);
      if (!a || a->step == 0) return a;
      const Axes& permutation = e->as<PermutationParams>().permutation;
      for (std::size_t i = 0; i < permutation.size(); ++i)
        if (permutation[i] == a->axis) return Affine{a->start, a->step, static_cast<int>(i)};
      return std::nullopt;
    }
    case Op::slice: {
      const auto a = of(0);
      if (!a || a->step == 0) return a;
      const auto& params = e->as<SliceParams>();
      return checked(a->start + a->step * params.start[a->axis], a->step * params.stride[a->axis],
                     a->axis);
    }
    case Op::rev: {
      const auto a = of(0);
      if (!a || a->step == 0 || !e->as<AxesParams>().axes.contains(a->axis)) return a;
      const std::int64_t extent = p.shape(v)[a->axis];
      return checked(a->start + a->step * (extent - 1), -a->step, a->axis);
    }
    default: return std::nullopt;
  }
}

}  // namespace vt::detail::simplification
