// vt::random: keys, random bits, and the distributions made of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "../support/ordering.hpp"
#include "random_draw.hpp"

namespace vt::detail::randoms {

Tensor hashed(const Tensor& key, const Tensor& counter, CallSite where) {
  return emit(Op::threefry, {}, {key, counter}, where);
}

Tensor words(const Draw& d, const Shape& shape) {
  d.want_shape(shape);
  const Tensor number =
      shape.rank() == 0
          ? full_tensor(Scalar(std::uint64_t{0}), Aval(u64, Shape{}))
          : reshaped(counted(u64, Shape{shape.elements()}, 0, d.where), shape, d.where);
  return hashed(d.key, number, d.where);
}

Tensor bits(const Draw& d, const Shape& shape, DType dtype) {
  const Tensor w = words(d, shape);
  if (dtype == u64) return w;
  // narrowing keeps the low bits
  return cast(bitwise_xor(w, shift_right_logical(w, 32)), dtype, d.where);
}

/// [0, 1): random significands of numbers in [1, 2), less 1.
Tensor unit(const Draw& d, const Shape& shape, DType dtype) {
  struct Format {
    DType word;
    int unused_bits;
    std::int64_t one;
  };
  const Format f = dtype == f64   ? Format{u64, 12, 0x3ff0000000000000}
                   : dtype == f32 ? Format{u32, 9, 0x3f800000}
                   : dtype == f16 ? Format{u16, 6, 0x3c00}
                                  : Format{u16, 9, 0x3f80};
  return bitcast(bitwise_or(shift_right_logical(bits(d, shape, f.word), f.unused_bits), f.one),
                 dtype) -
         1.0;
}

/// May rounding carry unit · (high − low) + low to `high`? Not if there is a number between it and
/// the greatest draw.
bool reaches(double low, double high, DType dtype) {
  const auto rounded = [dtype](double x) { return Scalar(x).converted(dtype).to_double(); };
  const double most = rounded(rounded((1 - step_at(dtype, 1)) * rounded(high - low)) + low),
               between = rounded(most / 2 + high / 2);
  return !(most < between && between < high);
}

/// A number of the real interval [low, high), rounded to the nearest number of the dtype that is in
/// it; `low` where it is empty.
Tensor between(const Draw& d, const Shape& shape, const Tensor& low, const Tensor& high,
               DType dtype) {
  const Tensor u = unit(d, shape, dtype), width = high - low,
               last = nextafter(high, -std::numeric_limits<double>::infinity());
  const std::optional<double> a = known_number(low), b = known_number(high);
  if (a && b && __builtin_isfinite(Scalar(*b - *a).converted(dtype).to_double())) {
    const Tensor x = u * width + low;
    return *a >= *b ? maximum(x, low) : reaches(*a, *b, dtype) ? minimum(x, last) : x;
  }
  // A width beyond the dtype is that of half the interval, twice.
  const Tensor wide = isinf(width), part = vt::where(wide, 0.5, 1.0),
               whole = vt::where(wide, 2.0, 1.0);
  const Tensor x = (u * (high * part - low * part) + low * part) * whole;
  // What is taken from `high` is no function of the ends: the derivative stays that of x.
  return vt::where(low >= high, low, x - stop_gradient(maximum(x - last, 0.0)));
}
Tensor between(const Draw& d, const Shape& shape, double low, double high, DType dtype) {
  return between(d, shape, full_tensor(Scalar(low).converted(dtype), Aval(dtype, Shape{})),
                 full_tensor(Scalar(high).converted(dtype), Aval(dtype, Shape{})), dtype);
}

/// floor(r · span / 2^64) of random 64-bit r: an integer in [0, span). span, u64, is below 2^32.
Tensor below(const Draw& d, const Shape& shape, const Tensor& span) {
  const Tensor r = words(d, shape);
  const Tensor low = shift_right_logical(bitwise_and(r, 0xffffffff) * span, 32);
  return shift_right_logical(shift_right_logical(r, 32) * span + low, 32);
}

/// Integers, or a number known to be whole: 1e6 is as good as 1000000, 2.5 would silently be 2.
void want_whole(const Draw& d, const Operand& bound) {
  if (!bound.tensor.defined() || !is_inexact(bound.tensor.dtype())) return;
  const Node* node = node_of(bound.tensor);
  const bool known = node->op == Op::full && !is_complex(bound.tensor.dtype());
  if (known && std::trunc(node->params->as<FullParams>().value.to_double()) ==
                   node->params->as<FullParams>().value.to_double())
    return;
  refuse(ErrorKind::dtype, d.name, "the ends of the range must be integers", bound.tensor, d.where);
}

/// The upper half of a 128-bit product.
Tensor high_product(const Tensor& a, const Tensor& b) {
  const auto low = [](const Tensor& t) { return bitwise_and(t, 0xffffffff); };
  const auto high = [](const Tensor& t) { return shift_right_logical(t, 32); };
  const Tensor p = low(a) * low(b), q = low(a) * high(b), r = high(a) * low(b);
  return high(a) * high(b) + high(q) + high(r) + high(high(p) + low(q) + low(r));
}

/// The same of 128-bit r and any span.
Tensor below_wide(const Draw& d, const Shape& shape, const Tensor& span) {
  const auto half = [&](std::uint64_t which) {
    const Tensor key = hashed(d.key, full_tensor(Scalar(which), Aval(u64, Shape{})), d.where);
    return words(Draw{"randint", Operand(key)}, shape);
  };
  const Tensor upper = half(0), low = upper * span, sum = low + high_product(half(1), span);
  return high_product(upper, span) + cast(less(sum, low), u64, d.where);
}

double least_normal(DType d) {
  return d == f64 ? std::numeric_limits<double>::min()
                  : static_cast<double>(std::numeric_limits<float>::min());
}

Tensor open_unit(const Draw& d, const Shape& shape, DType dtype) {
  return between(d, shape, least_normal(dtype), 1.0, dtype);
}

Tensor exponential(const Draw& d, const Shape& shape, DType dtype) {
  return cast(-log1p_of(-unit(d, shape, dtype), dtype), dtype, d.where);
}
Tensor gumbel(const Draw& d, const Shape& shape, DType dtype) {
  return cast(-log_of(-log_of(open_unit(d, shape, dtype), dtype), dtype), dtype, d.where);
}
void want_classes(const Draw& d, const Tensor& logits, int axis) {
  if (logits.dim(axis) == 0)
    refuse(ErrorKind::shape, d.name, formatted("there are no classes along axis {}", axis), logits,
           d.where);
}
Tensor normal_at(const Tensor& u, CallSite where) {
  return (u.dtype() == f64 ? exact::erf_inv(u) : cast(erf_inv(wide(u)), u.dtype(), where)) *
         std::numbers::sqrt2;
}
Tensor normal(const Draw& d, const Shape& shape, DType dtype) {
  const double low =
      dtype == f64 ? std::nextafter(-1.0, 0.0) : static_cast<double>(std::nextafter(-1.0f, 0.0f));
  return normal_at(between(d, shape, low, 1.0, dtype), d.where);
}

/// x sorted along an axis by random bits, several times: each time, 32 bits may be equal for two
/// elements, whose order then is that of the time before. With 3 log(size) / log(2^32) rounds all
/// of them are equal for some pair with probability below 1 / size.
Tensor shuffled(const Draw& d, Tensor x, int axis) {
  constexpr double most_bits = 4294967295.0, exponent = 3;
  const int rounds = static_cast<int>(
      std::ceil(exponent * std::log(static_cast<double>(std::max<std::int64_t>(x.size(), 1))) /
                std::log(most_bits)));
  Tensor key = d.key;
  for (int i = 0; i < rounds; ++i) {
    const Tensor keys = words(Draw{"permutation", Operand(key)}, Shape{2});
    key = keys[0];
    const Tensor order = bits(Draw{"permutation", Operand(keys[1])}, x.shape(), u32);
    x = ordering::sorted({order, x}, {axis, 1, false, 0, x.dim(axis)}, d.where)[1];
  }
  return x;
}

/// Indices of `shape` below n.
Tensor chosen(const Draw& d, std::int64_t n, const Shape& shape,
              const random::ChoiceOptions& options) {
  d.want_shape(shape);
  if (!options.replace) d.want_shape(Shape{std::max<std::int64_t>(n, 0)});
  const std::int64_t draws = shape.elements();
  if (draws > 0 && n <= 0)
    refuse(ErrorKind::value, d.name, "there is nothing to draw from", d.key, d.where);
  if (!options.replace && draws > n)
    refuse(ErrorKind::value, d.name,
           formatted("cannot draw {} of {} without replacement", draws, n), d.key, d.where);
  const DType dtype = count_dtype(n);
  if (!options.p) {
    if (options.replace) return random::randint(Operand(d.key), shape, 0, n, dtype);
    return reshaped(
        sliced(shuffled(d, counted(dtype, Shape{n}, 0, d.where), 0), 0, 0, draws, 1, d.where),
        shape, d.where);
  }
  need(d.name, options.p->tensor, d.where);
  const Tensor p = widened(to_float(options.p->tensor, d.where), d.where);
  if (p.shape() != Shape{n})
    refuse(ErrorKind::shape, d.name, formatted("the probabilities must have shape [{}]", n),
           options.p->tensor, d.where);
  if (options.replace) {
    const Tensor total = cumsum(p);
    // In (0, total], also of totals near the least number: what has no share is never met.
    const double least = step_at(p.dtype(), 0);
    const Tensor at = maximum(total[-1] * (1.0 - unit(d, shape, p.dtype())), least);
    return cast(minimum(searchsorted(total, at), n - 1), dtype, d.where);
  }
  const Tensor noise = gumbel(d, Shape{n}, p.dtype());
  return cast(reshaped(top_k(wide(noise) + log_of(p, p.dtype()), draws).second, shape, d.where),
              dtype, d.where);
}

}  // namespace vt::detail::randoms

namespace vt::random {

namespace parts = vt::detail::randoms;
using parts::Draw;

Tensor key(Param<std::uint64_t> seed, CallSite where) {
  return detail::filled("random::key", detail::Scalar(std::uint64_t{seed}), u64, Shape{}, where);
}

Tensor split(Operand key, Param<std::int64_t> count) {
  const Draw d("split", key);
  const detail::UserLine line(d.where);
  if (count < 0)
    detail::refuse(ErrorKind::value, d.name, detail::formatted("cannot make {} keys", count), d.key,
                   d.where);
  return parts::words(d, Shape{count});
}

Tensor fold_in(Operand key, Operand data) {
  const Draw d("fold_in", key);
  const detail::UserLine line(d.where);
  detail::need(d.name, data.tensor, d.where);
  if (!is_int(data.tensor.dtype()) || data.tensor.rank() != 0)
    detail::refuse(ErrorKind::value, d.name, "the data must be one integer", data.tensor, d.where);
  return parts::hashed(d.key, detail::cast(data.tensor, u64, d.where), d.where);
}

Tensor bits(Operand key, const Shape& shape, DType dtype) {
  const Draw d("bits", key);
  const detail::UserLine line(d.where);
  if (!is_unsigned(dtype))
    detail::refuse(ErrorKind::dtype, d.name,
                   detail::formatted("{} is no unsigned integer dtype", name_of(dtype)), d.key,
                   d.where);
  return parts::bits(d, shape, dtype);
}

Tensor uniform(Operand key, const Shape& shape, DType dtype) {
  const Draw d("uniform", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  return parts::unit(d, shape, dtype);
}
Tensor uniform(Operand key, const Shape& shape, Operand low, Operand high, DType dtype) {
  const Draw d("uniform", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  return parts::between(d, shape, d.parameter(low, shape, dtype), d.parameter(high, shape, dtype),
                        dtype);
}

Tensor randint(Operand key, const Shape& shape, Operand low, Operand high, DType dtype) {
  const Draw d("randint", key);
  const detail::UserLine line(d.where);
  if (!is_int(dtype))
    detail::refuse(ErrorKind::dtype, d.name,
                   detail::formatted("{} is no integer dtype", name_of(dtype)), d.key, d.where);
  parts::want_whole(d, low);
  parts::want_whole(d, high);
  const DType same_size = size_of(dtype) == 8   ? u64
                          : size_of(dtype) == 4 ? u32
                          : size_of(dtype) == 2 ? u16
                                                : u8;
  const Operand* const given[2] = {&low, &high};
  Tensor ends[2], width;
  if (size_of(dtype) == 8) {
    for (int k = 0; k < 2; ++k) ends[k] = d.parameter(*given[k], shape, dtype);
    // wraps in the dtype, and is right as an unsigned number of the same size
    width = bitcast(ends[1] - ends[0], same_size);
  } else {
    // Ends beyond the dtype are its own, of which `high` may be one past the last.
    const std::int64_t values = std::int64_t{1} << (8 * size_of(dtype)),
                       least = is_unsigned(dtype) ? 0 : -values / 2;
    for (int k = 0; k < 2; ++k) {
      Operand within = *given[k];
      const std::int64_t most = least + values - 1 + k;
      if (within.tensor.defined() && within.tensor.dtype() == u64)
        within.tensor = minimum(within.tensor, most);
      ends[k] = clip(d.parameter(within, shape, i64), least, most);
    }
    width = ends[1] - ends[0];
  }
  const Tensor span = where(less_equal(ends[1], ends[0]), detail::cast(Tensor(1), u64, d.where),
                            detail::cast(width, u64, d.where));
  const Tensor offset =
      size_of(dtype) == 8 ? parts::below_wide(d, shape, span) : parts::below(d, shape, span);
  return detail::cast(ends[0], dtype, d.where) +
         bitcast(detail::cast(offset, same_size, d.where), dtype);
}

Tensor bernoulli(Operand key, const Shape& shape, Operand p) {
  const Draw d("bernoulli", key);
  const detail::UserLine line(d.where);
  const DType dtype =
      p.tensor.defined() && p.tensor.dtype() == f64 && !detail::aval_of(p.tensor).weak ? f64 : f32;
  return less(parts::unit(d, shape, dtype), d.parameter(p, shape, dtype));
}

Tensor rademacher(Operand key, const Shape& shape, DType dtype) {
  const Draw d("rademacher", key);
  const detail::UserLine line(d.where);
  if (!is_float(dtype) && !is_signed_int(dtype))
    detail::refuse(ErrorKind::dtype, d.name, detail::formatted("{} cannot hold -1", name_of(dtype)),
                   d.key, d.where);
  return where(equal(bitwise_and(parts::bits(d, shape, u32), 1), 0),
               detail::cast(Tensor(-1), dtype, d.where), detail::cast(Tensor(1), dtype, d.where));
}

Tensor categorical(Operand key, Operand logits, Param<int> axis) {
  const Draw d("categorical", key);
  const detail::UserLine line(d.where);
  detail::need(d.name, logits.tensor, d.where);
  const Tensor l = detail::widened(detail::to_float(logits.tensor, d.where), d.where);
  const int at = detail::normal_axis(d.name, axis, l, d.where);
  parts::want_classes(d, l, at);
  return argmax(l + parts::gumbel(d, l.shape(), l.dtype()), at);
}

Tensor normal(Operand key, const Shape& shape, DType dtype) {
  const Draw d("normal", key);
  const detail::UserLine line(d.where);
  if (is_complex(dtype)) {
    const Tensor keys = random::split(key, 2);
    const DType part = real_dtype(dtype);
    return complex(normal(keys[0], shape, part), normal(keys[1], shape, part)) /
           std::numbers::sqrt2;
  }
  d.want_float(dtype);
  return detail::cast(parts::normal(d, shape, parts::working(dtype)), dtype, d.where);
}

Tensor lognormal(Operand key, const Shape& shape, Operand sigma, DType dtype) {
  const Draw d("lognormal", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  return detail::cast(parts::exp_of(d.parameter(sigma, shape, w) * parts::normal(d, shape, w), w),
                      dtype, d.where);
}

Tensor exponential(Operand key, const Shape& shape, DType dtype) {
  const Draw d("exponential", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  return detail::cast(parts::exponential(d, shape, parts::working(dtype)), dtype, d.where);
}

Tensor gumbel(Operand key, const Shape& shape, DType dtype) {
  const Draw d("gumbel", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  return detail::cast(parts::gumbel(d, shape, parts::working(dtype)), dtype, d.where);
}

Tensor laplace(Operand key, const Shape& shape, DType dtype) {
  const Draw d("laplace", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  const Tensor u = parts::wide(parts::between(d, shape, -1.0 + detail::step_at(w, 1), 1.0, w));
  return detail::cast(-sign(u) * parts::log1p_of(-abs(u), w), dtype, d.where);
}

Tensor logistic(Operand key, const Shape& shape, DType dtype) {
  const Draw d("logistic", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  const Tensor u = parts::wide(parts::open_unit(d, shape, w));
  return detail::cast(parts::log_of(u, w) - parts::log1p_of(-u, w), dtype, d.where);
}

Tensor cauchy(Operand key, const Shape& shape, DType dtype) {
  const Draw d("cauchy", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const Tensor u = parts::wide(parts::open_unit(d, shape, parts::working(dtype)));
  return detail::cast(
      dtype == f64 ? detail::exact::tan_pi(u - 0.5) : tan((u - 0.5) * std::numbers::pi), dtype,
      d.where);
}

Tensor rayleigh(Operand key, const Shape& shape, Operand scale, DType dtype) {
  const Draw d("rayleigh", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  return detail::cast(d.parameter(scale, shape, w) * sqrt(2.0 * parts::exponential(d, shape, w)),
                      dtype, d.where);
}

Tensor weibull(Operand key, const Shape& shape, Operand scale, Operand concentration, DType dtype) {
  const Draw d("weibull", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  const Tensor power = 1.0 / parts::wide(d.parameter(concentration, shape, w));
  const Tensor e = parts::wide(parts::exponential(d, shape, w));
  const auto exact_power = [&] {
    return where(e > 0.0, parts::exp_of(power * parts::log_of(where(e > 0.0, e, 1.0), w), w), 0.0);
  };
  return detail::cast(
      parts::wide(d.parameter(scale, shape, w)) * (w == f64 ? exact_power() : pow(e, power)), dtype,
      d.where);
}

Tensor pareto(Operand key, const Shape& shape, Operand b, DType dtype) {
  const Draw d("pareto", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  return detail::cast(
      parts::exp_of(
          parts::wide(parts::exponential(d, shape, w)) / parts::wide(d.parameter(b, shape, w)), w),
      dtype, d.where);
}

Tensor triangular(Operand key, const Shape& shape, Operand left, Operand mode, Operand right,
                  DType dtype) {
  const Draw d("triangular", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = parts::working(dtype);
  const Tensor a = d.parameter(left, shape, w), c = d.parameter(mode, shape, w),
               b = d.parameter(right, shape, w);
  const Tensor u = parts::unit(d, shape, w), split_at = (c - a) / (b - a);
  const Tensor rising = a + sqrt(u * (b - a) * (c - a)),
               falling = b - sqrt((1.0 - u) * (b - a) * (b - c));
  return detail::cast(where(less(u, split_at), rising, falling), dtype, d.where);
}

Tensor permutation(Operand key, std::int64_t n) {
  const Draw d("permutation", key);
  const detail::UserLine line(d.where);
  if (n < 0)
    detail::refuse(ErrorKind::value, d.name, detail::formatted("cannot order {} numbers", n), d.key,
                   d.where);
  d.want_shape(Shape{n});
  return parts::shuffled(d, detail::counted(detail::count_dtype(n), Shape{n}, 0, d.where), 0);
}
Tensor permutation(Operand key, Operand x, Param<int> axis, bool independent) {
  const Draw d("permutation", key);
  const detail::UserLine line(d.where);
  detail::need(d.name, x.tensor, d.where);
  const int along = detail::normal_axis(d.name, axis, x.tensor, d.where);
  if (independent || x.tensor.rank() == 1) return parts::shuffled(d, x.tensor, along);
  const std::int64_t n = x.tensor.dim(along);
  if (n == 0) return x.tensor;
  return take(x.tensor,
              parts::shuffled(d, detail::counted(detail::count_dtype(n), Shape{n}, 0, d.where), 0),
              along);
}
Tensor shuffle(Operand key, Operand x, Param<int> axis) { return permutation(key, x, axis, true); }

Tensor choice(Operand key, std::int64_t n, const Shape& shape, const ChoiceOptions& options) {
  const Draw d("choice", key);
  const detail::UserLine line(d.where);
  return parts::chosen(d, n, shape, options);
}
Tensor choice(Operand key, Operand x, const Shape& shape, const ChoiceOptions& options) {
  const Draw d("choice", key);
  const detail::UserLine line(d.where);
  detail::need(d.name, x.tensor, d.where);
  const int along = detail::normal_axis(d.name, options.axis, x.tensor, d.where);
  return take(x.tensor, parts::chosen(d, x.tensor.dim(along), shape, options), along);
}

}  // namespace vt::random

namespace vt {

Tensor dropout(Operand key, Operand x, Operand rate) {
  const detail::randoms::Draw d("dropout", key);
  const detail::UserLine line(d.where);
  detail::need("dropout", x.tensor, d.where);
  detail::need("dropout", rate.tensor, d.where);
  const Tensor t = detail::to_float(x.tensor, d.where);
  const Tensor keep = 1.0 - stop_gradient(detail::cast(rate.tensor, f32, d.where));
  if (keep.rank() != 0)
    detail::refuse(ErrorKind::shape, "dropout", "the rate must be a scalar", x.tensor, rate.tensor,
                   d.where);
  const Tensor kept = detail::randoms::unit(d, t.shape(), f32) < keep;
  return where(kept,
               t / detail::cast(where(keep > 0.0, keep, 1.0),
                                is_complex(t.dtype()) ? real_dtype(t.dtype()) : t.dtype(), d.where),
               0.0);
}

}  // namespace vt
