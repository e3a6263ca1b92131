// Distributions that are drawn by rejection, or composed of such: the gamma family and counts.
#include <cmath>
#include <limits>
#include <numbers>

#include <vt/special.hpp>

#include "../special/formulas.hpp"
#include "../support/element_functions.hpp"
#include "random_draw.hpp"

namespace vt::detail::random_families {

using namespace element_functions;
using element_functions::Leaves;  // not the one around
using namespace formulas;
using randoms::Draw, randoms::part, randoms::wide, randoms::working, randoms::exp_of,
    randoms::log_of;
inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

Tensor counter(std::uint64_t n) { return full_tensor(Scalar(n), Aval(u64, Shape{})); }

/// (0, 1), symmetrical around one half: the upper bits of a word, or for f32 those of either half.
Tensor fraction(const Tensor& word, DType dtype, bool lower_half = false) {
  if (dtype == f64)
    return bitcast(bitwise_or(shift_right_logical(word, 12), 0x3ff0000000000000), f64) -
           (1.0 - 0x1p-53);
  const Tensor half = cast(lower_half ? word : shift_right_logical(word, 32), u32, {});
  return bitcast(bitwise_or(shift_right_logical(half, 9), 0x3f800000), f32) - (1.0 - 0x1p-24);
}
/// Two independent numbers in (0, 1) of an element's key and the number of the attempt.
std::pair<Tensor, Tensor> fractions(const Tensor& key, const Tensor& attempt, DType dtype,
                                    CallSite where) {
  const Tensor word = randoms::hashed(key, dtype == f64 ? attempt + attempt : attempt, where);
  if (dtype == f32) return {fraction(word, f32), fraction(word, f32, true)};
  return {fraction(word, f64),
          fraction(randoms::hashed(key, attempt + attempt + counter(1), where), f64)};
}

/// (key, number of the attempt, parameters…) → value, accepted.
using Attempt = std::pair<Tensor, Tensor> (*)(const Tensor& key, const Tensor& number,
                                              Leaves parameters, CallSite);

/// Attempts until one is accepted. The first is made for all elements at once, as most need no
/// other; `exempt` elements need none.
Tensor accepted(const char* name, const Tensor& keys, Leaves parameters, const Tensor& exempt,
                Attempt attempt, CallSite where) {
  const auto [first, good] = attempt(keys, counter(0), parameters, where);
  const FlatFunction loop = [attempt, name, where](Leaves in) -> Tensors {
    const Leaves own = in.subspan(3);
    const Tensors init = {counter(1), in[1], in[2]};
    const auto going = [](Leaves s) -> Tensors { return {logical_not(s[2])}; };
    const auto body = [&](Leaves s) -> Tensors {
      auto [value, good] = attempt(in[0], s[0], own, where);
      return {s[0] + counter(1), value, good};
    };
    return {run_while(name, going, body, init, where)[1]};
  };
  Tensors operands = {keys, first, logical_or(good, exempt)};
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  return for_each_element(loop, operands, where)[0];
}

// --- gamma ---------------------------------------------------------------------------------------

/// a ≥ 1; the value is d·v with d = a − 1/3, v = (1 + x/√(9d))³ and a normal x.
std::pair<Tensor, Tensor> gamma_attempt(const Tensor& key, const Tensor& number, Leaves parameters,
                                        CallSite where) {
  const Tensor d = parameters[0] - 1.0 / 3, width = 1.0 / sqrt(9.0 * d);
  const auto [u, w] = fractions(key, number, d.dtype(), where);
  const Tensor x = randoms::normal_at(2.0 * u - 1.0, where), t = 1.0 + x * width,
               positive = t > 0.0;
  const Tensor v = vt::where(positive, t * t * t, 1.0);
  // no value, only whether it is accepted, hangs on their logarithms' last digits
  const Tensor X = wide(x), V = wide(v);
  return {d * v,
          logical_and(positive, log(wide(w)) < 0.5 * (X * X) + wide(d) * (1.0 - V + log(V)))};
}

/// The least number of a float dtype, below which −∞ is.
double least_number(DType d) {
  if (d == f16) return -65504;
  return d == f64    ? std::numeric_limits<double>::lowest()
         : d == bf16 ? -0x1.fep127
                     : static_cast<double>(std::numeric_limits<float>::lowest());
}

/// A gamma variable and its logarithm, without derivatives.
std::pair<Tensor, Tensor> gamma_pair(const Draw& draw, const Shape& shape, const Tensor& given) {
  const Tensor a = stop_gradient(given), valid = logical_and(a > 0.0, a < infinity),
               A = vt::where(valid, a, 1.0), low = A < 1.0;
  const Tensor keys = randoms::words(draw, shape);
  const Tensor parameters[] = {vt::where(low, A + 1.0, A)};
  const Tensor value = accepted("vt::random::gamma", keys, parameters, logical_not(valid),
                                gamma_attempt, draw.where);
  // To a < 1 by a power of a uniform number, which is 1 elsewhere.
  const Tensor u =
      fraction(randoms::hashed(keys, counter(~std::uint64_t{0}), draw.where), a.dtype());
  const Tensor power = vt::where(low, log_of(u, a.dtype()) / wide(A), 0.0), size = wide(value);
  const Tensor edge = vt::where(equal(a, 0.0), 0.0, vt::where(equal(a, infinity), infinity, nan));
  return {vt::where(valid, cast(size * exp_of(power, a.dtype()), a.dtype(), draw.where), edge),
          vt::where(valid,
                    cast(maximum(log_of(size, a.dtype()) + power, least_number(a.dtype())),
                         a.dtype(), draw.where),
                    log(edge))};
}

Tensor gamma(const Draw& draw, const Shape& shape, const Tensor& a, bool logarithm) {
  const FlatFunction f = [draw, shape, logarithm](Leaves in) -> Tensors {
    const auto [value, log_value] = gamma_pair(draw, shape, in[0]);
    return {logarithm ? log_value : value};
  };
  const auto slope = [logarithm](std::size_t, Leaves in, const Tensor& value) {
    const Tensor& a = in[0];
    if (!logarithm) return random_gamma_grad(a, value);
    // What is left of it for small numbers has no number to divide by.
    const Tensor tiny = value < -45.0, x = exp(vt::where(tiny, 0.0, value));
    return vt::where(tiny, (digamma(a + 1.0) - value) / a, random_gamma_grad(a, x) / x);
  };
  return with_slopes(f, slope, std::span<const Tensor>(&a, 1), draw.where);
}
Tensor log_gamma(const Draw& d, const Shape& shape, const Tensor& a) {
  return gamma(d, shape, a, true);
}

/// ±x^(1/p) for x of the gamma distribution with 1/p.
Tensor signed_power(const Draw& d, const Shape& shape, const Tensor& p, DType w) {
  const Tensor x =
      cast(exp_of(wide(log_gamma(part(d, 0), shape, 1.0 / p)) / wide(p), w), w, d.where);
  return x * random::rademacher(part(d, 1).key, shape, w);
}

// --- counts --------------------------------------------------------------------------------------

/// Searches a distribution from 0 on, where `needed`: at k it has mass p, and at k + 1 p · ratio(k,
/// parameters).
Tensor searched(const char* name, const Tensor& u, const Tensor& at_zero, Leaves parameters,
                const Tensor& needed, Tensor (*ratio)(const Tensor& k, Leaves parameters),
                CallSite where) {
  const FlatFunction loop = [ratio, name, where](Leaves in) -> Tensors {
    const Leaves own = in.subspan(3);
    const Tensor zero = full_tensor(Scalar(0.0), Aval(f64, Shape{}));
    const Tensors init = {zero, in[0], in[1]};
    const auto going = [&](Leaves s) -> Tensors {
      return {logical_and(in[2], logical_and(s[1] > s[2], s[2] > 0.0))};
    };
    const auto body = [&](Leaves s) -> Tensors {
      return {s[0] + 1.0, s[1] - s[2], s[2] * ratio(s[0], own)};
    };
    return {run_while(name, going, body, init, where)[0]};
  };
  Tensors operands = {u, at_zero, needed};
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  return for_each_element(loop, operands, where)[0];
}

/// Of a count k ≥ 0 that is `off` from the mean: exponent and factor such that its Poisson mass is
/// exponential · factor / √(2π). Both are made of `off`, as far out k and the mean agree in nearly
/// all digits. Source: Loader 2000, Fast and accurate computation of binomial probabilities; a
/// count below 9 by way of k + 9.
struct Mass {
  Tensor exponent, factor;
  Mass(const Tensor& k, const Tensor& off, const Tensor& mean) {
    constexpr int steps = 9;
    const Tensor few = k < static_cast<double>(steps), shift = vt::where(few, 1.0 * steps, 0.0),
                 at = k + shift;
    Tensor product = 1.0 / sqrt(at);
    for (int i = 1; i <= steps; ++i)
      product = product * vt::where(few, (k + static_cast<double>(i)) / mean, 1.0);
    factor = product;
    const Tensor r = 1.0 / at, square = r * r;
    exponent = -at * log1p_excess(-(off + shift) / at, mean / at) -
               r * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680.0)));
  }
};

std::pair<Tensor, Tensor> poisson_attempt(const Tensor& key, const Tensor& number,
                                          Leaves parameters, CallSite where) {
  const Tensor &mean = parameters[0], b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  const auto [first, v] = fractions(key, number, f64, where);
  const Tensor u = first - 0.5, us = 0.5 - abs(u), base = floor(mean), rest = mean - base;
  const Tensor steps = floor((2.0 * a / us + b) * u + rest + 0.43), k = base + steps;
  const Tensor quick = logical_and(us >= 0.07, v <= 0.9277 - 3.6224 / (b - 2.0));
  const Tensor impossible = logical_or(k < 0.0, logical_and(us<0.013, v> us));
  const Mass mass(vt::where(impossible, base, k), vt::where(impossible, 0.0, steps) - rest, mean);
  const Tensor size = log(v * std::sqrt(2 * std::numbers::pi) * (1.1239 + 1.1328 / (b - 3.4)) /
                          (a / (us * us) + b) / mass.factor);
  return {k, logical_or(quick, logical_and(logical_not(impossible), size <= mass.exponent))};
}

/// In f64; NaN for an invalid mean.
Tensor poisson(const Draw& d, const Shape& shape, const Tensor& mean) {
  const Tensor valid = logical_and(mean >= 0.0, mean < infinity), low = mean < 10.0,
               keys = randoms::words(d, shape);
  const Tensor small = vt::where(logical_and(valid, low), mean, 1.0);
  const Tensor large[] = {vt::where(logical_and(valid, logical_not(low)), mean, 10.0)};
  const auto ratio = [](const Tensor& k, Leaves p) { return p[0] / (k + 1.0); };
  const Tensor parameters[] = {small};
  const Tensor u = fraction(randoms::hashed(keys, counter(~std::uint64_t{0}), d.where), f64);
  const Tensor few = searched("vt::random::poisson", u, exp(-small), parameters,
                              logical_and(valid, low), ratio, d.where);
  const Tensor many = accepted("vt::random::poisson", keys, large,
                               logical_or(low, logical_not(valid)), poisson_attempt, d.where);
  return vt::where(valid, vt::where(low, few, many), nan);
}

/// Parameters: n and p ≤ ½.
std::pair<Tensor, Tensor> binomial_attempt(const Tensor& key, const Tensor& number,
                                           Leaves parameters, CallSite where) {
  const Tensor &n = parameters[0], &p = parameters[1], mean = n * p, base = floor(mean),
               rest = mean - base;
  const Tensor deviation = sqrt(mean * (1.0 - p)), b = 1.15 + 2.53 * deviation,
               a = -0.0873 + 0.0248 * b + 0.01 * p;
  const auto [first, v] = fractions(key, number, f64, where);
  const Tensor u = first - 0.5, us = 0.5 - abs(u),
               steps = floor((2.0 * a / us + b) * u + rest + 0.5), k = base + steps;
  const Tensor quick = logical_and(us >= 0.07, v <= 0.92 - 4.2 / b),
               possible = logical_and(k >= 0.0, k <= n);
  // The mass at k beside that at the mode: a binomial mass is the product of those of successes and
  // failures, but for a factor that n makes.
  const auto mass = [&](const Tensor& from_base) {
    const Tensor m = base + from_base, off = from_base - rest;
    return std::pair(Mass(m, off, mean), Mass(n - m, -off, n - mean));
  };
  const Tensor to_mode = floor(rest + p);
  const auto [successes, failures] = mass(vt::where(possible, steps, to_mode));
  const auto [most, least] = mass(to_mode);
  const Tensor size = log(v * ((2.83 + 5.1 / b) * deviation) / (a / (us * us) + b) *
                          (most.factor / successes.factor) * (least.factor / failures.factor));
  const Tensor exponent =
      (successes.exponent + failures.exponent) - (most.exponent + least.exponent);
  return {k, logical_and(possible, logical_or(quick, size <= exponent))};
}

/// Beyond, n · p is too coarse beside the deviation.
inline constexpr double most_trials = 0x1p64;

/// In f64; NaN for invalid parameters.
Tensor binomial(const Draw& d, const Shape& shape, const Tensor& trials,
                const Tensor& probability) {
  const Tensor valid = logical_and(logical_and(trials >= 0.0, trials <= most_trials),
                                   logical_and(probability >= 0.0, probability <= 1.0));
  const Tensor n = vt::where(valid, floor(trials), 1.0), given = vt::where(valid, probability, 0.5),
               flipped = given > 0.5;
  const Tensor p = vt::where(flipped, 1.0 - given, given), low = n * p < 10.0,
               keys = randoms::words(d, shape);
  const auto ratio = [](const Tensor& k, Leaves q) { return (q[0] - k) / (k + 1.0) * q[1]; };
  const Tensor small[] = {n, p / (1.0 - p)};
  const Tensor u = fraction(randoms::hashed(keys, counter(~std::uint64_t{0}), d.where), f64);
  const Tensor none = vt::where(low, exp(n * log1p(-p)), 1.0);
  const Tensor few =
      searched("vt::random::binomial", u, none, small, logical_and(valid, low), ratio, d.where);
  const Tensor large[] = {vt::where(low, 100.0, n), vt::where(low, 0.5, p)};
  const Tensor many = accepted("vt::random::binomial", keys, large,
                               logical_or(low, logical_not(valid)), binomial_attempt, d.where);
  const Tensor successes = minimum(vt::where(low, few, many), n);
  return vt::where(valid, vt::where(flipped, n - successes, successes), nan);
}

/// Counts in the dtype asked for: −1 for NaN, and no more than the dtype holds.
Tensor as_counts(const Tensor& counts, DType dtype, CallSite where) {
  if (is_float(dtype)) return cast(counts, dtype, where);
  const int bits = static_cast<int>(size_of(dtype)) * 8 - (is_signed_int(dtype) ? 1 : 0);
  const double most =
      bits > 53 ? std::ldexp(1.0, bits) - std::ldexp(1.0, bits - 53) : std::ldexp(1.0, bits) - 1;
  return cast(vt::where(isnan(counts), is_signed_int(dtype) ? -1.0 : 0.0, minimum(counts, most)),
              dtype, where);
}
void want_counts(const Draw& d, DType dtype) {
  if (!is_float(dtype) && !is_int(dtype))
    refuse(ErrorKind::dtype, d.name, formatted("{} is no dtype of counts", name_of(dtype)), d.key,
           d.where);
}

Shape with_last(Shape shape, std::int64_t n) {
  shape.push_back(n);
  return shape;
}
/// The last axis of a parameter that has one.
std::int64_t last_axis(const Draw& d, const char* what, const Tensor& t) {
  need(d.name, t, d.where);
  if (t.rank() == 0)
    refuse(ErrorKind::shape, d.name, std::string(what) + " needs an axis of classes", t, d.where);
  return t.dim(-1);
}

}  // namespace vt::detail::random_families

namespace vt::random {

namespace families = vt::detail::random_families;
using vt::detail::randoms::Draw;

Tensor gamma(Operand key, const Shape& shape, Operand a, DType dtype) {
  const Draw d("gamma", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  return detail::cast(families::gamma(d, shape, d.parameter(a, shape, w), false), dtype, d.where);
}
Tensor loggamma(Operand key, const Shape& shape, Operand a, DType dtype) {
  const Draw d("loggamma", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const Tensor x = families::log_gamma(d, shape, d.parameter(a, shape, families::working(dtype)));
  if (size_of(dtype) != 2) return x;
  return detail::cast(vt::where(isinf(x), x, maximum(x, families::least_number(dtype))), dtype,
                      d.where);
}

Tensor beta(Operand key, const Shape& shape, Operand a, Operand b, DType dtype) {
  const Draw d("beta", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  // By logarithms, as both may be too small for a number.
  const Tensor x = families::log_gamma(families::part(d, 0), shape, d.parameter(a, shape, w));
  const Tensor z = families::wide(x) - families::wide(families::log_gamma(
                                           families::part(d, 1), shape, d.parameter(b, shape, w)));
  if (w != f64) return detail::cast(sigmoid(z), dtype, d.where);
  const Tensor e = families::exp_of(-abs(z), w);
  return vt::where(z < 0.0, e, 1.0) / (1.0 + e);
}

Tensor dirichlet(Operand key, const Shape& shape, Operand alpha, DType dtype) {
  const Draw d("dirichlet", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const Shape whole = families::with_last(shape, families::last_axis(d, "alpha", alpha.tensor));
  return detail::cast(softmax(families::wide(families::log_gamma(
                          d, whole, d.parameter(alpha, whole, families::working(dtype))))),
                      dtype, d.where);
}

Tensor chisquare(Operand key, const Shape& shape, Operand df, DType dtype) {
  const Draw d("chisquare", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  return detail::cast(
      2.0 *
          families::gamma(d, shape, 0.5 * d.parameter(df, shape, families::working(dtype)), false),
      dtype, d.where);
}

Tensor t(Operand key, const Shape& shape, Operand df, DType dtype) {
  const Draw d("t", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  const Tensor half = 0.5 * d.parameter(df, shape, w),
               n = detail::randoms::normal(families::part(d, 0), shape, w);
  const Tensor y = families::wide(families::log_gamma(families::part(d, 1), shape, half));
  return detail::cast(
      families::wide(n) * families::exp_of(0.5 * (families::log_of(half, w) - y), w), dtype,
      d.where);
}

Tensor f(Operand key, const Shape& shape, Operand dfnum, Operand dfden, DType dtype) {
  const Draw d("f", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  const Tensor above = 0.5 * d.parameter(dfnum, shape, w),
               below = 0.5 * d.parameter(dfden, shape, w);
  const Tensor x = families::log_gamma(families::part(d, 0), shape, above),
               y = families::log_gamma(families::part(d, 1), shape, below);
  return detail::cast(
      families::exp_of(families::wide(x) - families::wide(y), w) * families::wide(below / above),
      dtype, d.where);
}

Tensor generalized_normal(Operand key, const Shape& shape, Operand p, DType dtype) {
  const Draw d("generalized_normal", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  return detail::cast(families::signed_power(d, shape, d.parameter(p, shape, w), w), dtype,
                      d.where);
}

Tensor ball(Operand key, const Shape& shape, Param<std::int64_t> dimensions, Operand p,
            DType dtype) {
  const Draw d("ball", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  if (dimensions < 1)
    detail::refuse(ErrorKind::value, d.name,
                   detail::formatted("there is no ball in {} dimensions", dimensions), d.key,
                   d.where);
  const DType w = families::working(dtype);
  const Shape whole = families::with_last(shape, dimensions);
  const Tensor power = d.parameter(p, Shape{}, w);
  const Tensor x = families::signed_power(families::part(d, 0), whole, power, w),
               e = detail::randoms::exponential(families::part(d, 1), shape, w);
  const Tensor of = families::wide(power), X = families::wide(x);
  const Tensor size = pow(sum(pow(abs(X), of), -1) + families::wide(e), 1.0 / of);
  const Tensor inside = X / expand_dims(size, -1), rounded = detail::cast(inside, dtype, d.where);
  // Rounded towards the middle, as what is rounded away from it may lie outside; the derivative
  // stays that of the number.
  const Tensor away = abs(families::wide(rounded)) > abs(inside);
  return rounded + stop_gradient(vt::where(away, nextafter(rounded, 0.0) - rounded, 0.0));
}

Tensor maxwell(Operand key, const Shape& shape, DType dtype) {
  const Draw d("maxwell", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const Tensor x = families::wide(
      detail::randoms::normal(d, families::with_last(shape, 3), families::working(dtype)));
  return detail::cast(sqrt(sum(x * x, -1)), dtype, d.where);
}
Tensor double_sided_maxwell(Operand key, const Shape& shape, Operand loc, Operand scale,
                            DType dtype) {
  const Draw d("double_sided_maxwell", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  const Tensor size =
      maxwell(families::part(d, 0).key, shape, w) * rademacher(families::part(d, 1).key, shape, w);
  return detail::cast(d.parameter(loc, shape, w) + d.parameter(scale, shape, w) * size, dtype,
                      d.where);
}

Tensor wald(Operand key, const Shape& shape, Operand mean, DType dtype) {
  const Draw d("wald", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = families::working(dtype);
  const Tensor m = d.parameter(mean, shape, w),
               z = detail::randoms::normal(families::part(d, 0), shape, w),
               u = detail::randoms::unit(families::part(d, 1), shape, w);
  // The smaller root of (x − m)²/(m² x) = z², or m² over it: Michael, Schucany, Haas 1976,
  // Generating random variates using transformations with multiple roots.
  const detail::FlatFunction f = [z, u](families::Leaves in) -> families::Tensors {
    const Tensor &m = in[0], half = 0.5 * m * (z * z),
                 root = m / (1.0 + half + sqrt(half * (half + 2.0)));
    return {vt::where(u * (m + root) <= m, root, m * (m / root))};
  };
  // Which root it is depends on the mean, so the derivative is −(∂P/∂m)/(∂P/∂x), in which the
  // density cancels.
  const auto slope = [](std::size_t, families::Leaves in, const Tensor& x) {
    const Tensor &m = in[0], root = sqrt(x);
    return std::sqrt(2 * std::numbers::pi) * ((x / m) * (root / m)) *
           vt::special::erfcx((root / m + 1.0 / root) / std::numbers::sqrt2);
  };
  return detail::cast(families::with_slopes(f, slope, std::span<const Tensor>(&m, 1), d.where),
                      dtype, d.where);
}

Tensor weibull_min(Operand key, const Shape& shape, Operand scale, Operand concentration,
                   DType dtype) {
  return weibull(std::move(key), shape, std::move(scale), std::move(concentration), dtype);
}

Tensor poisson(Operand key, const Shape& shape, Operand mean, DType dtype) {
  const Draw d("poisson", key);
  const detail::UserLine line(d.where);
  families::want_counts(d, dtype);
  return families::as_counts(
      families::poisson(d, shape, stop_gradient(d.parameter(mean, shape, f64))), dtype, d.where);
}

Tensor binomial(Operand key, const Shape& shape, Operand n, Operand p, DType dtype) {
  const Draw d("binomial", key);
  const detail::UserLine line(d.where);
  families::want_counts(d, dtype);
  const Tensor counts = families::binomial(d, shape, stop_gradient(d.parameter(n, shape, f64)),
                                           stop_gradient(d.parameter(p, shape, f64)));
  return families::as_counts(counts, dtype, d.where);
}

Tensor geometric(Operand key, const Shape& shape, Operand p, DType dtype) {
  const Draw d("geometric", key);
  const detail::UserLine line(d.where);
  families::want_counts(d, dtype);
  const Tensor q = stop_gradient(d.parameter(p, shape, f64)),
               valid = logical_and(q > 0.0, q <= 1.0);
  const Tensor u = families::fraction(detail::randoms::words(d, shape), f64);
  return families::as_counts(
      vt::where(valid, maximum(ceil(log(u) / log1p(-vt::where(valid, q, 0.5))), 1.0),
                families::nan),
      dtype, d.where);
}

Tensor multinomial(Operand key, const Shape& shape, Operand n, Operand p, DType dtype) {
  const Draw d("multinomial", key);
  const detail::UserLine line(d.where);
  families::want_counts(d, dtype);
  const std::int64_t classes = families::last_axis(d, "p", p.tensor);
  const Shape whole = families::with_last(shape, classes);
  if (classes == 0)
    detail::refuse(ErrorKind::shape, d.name, "there are no classes", p.tensor, d.where);
  const Tensor mass =
      moveaxis(detail::broadcast(stop_gradient(d.parameter(p, whole, f64)), whole, d.where), -1, 0);
  // Class by class: a binomial number of the trials that are left, with the class's part of the
  // mass that is left.
  const Tensor left = cumsum(mass, 0, {.reverse = true}),
               share = minimum(vt::where(left > 0.0, mass / left, 0.0), 1.0);
  const Tensor keys = detail::randoms::words(d, Shape{classes});
  const Tensor trials =
      detail::broadcast(stop_gradient(d.parameter(n, shape, f64)), shape, d.where);
  const detail::FlatFunction step = [&](families::Leaves s) -> families::Tensors {
    const detail::UserLine of_call(d.where);
    Draw one = d;
    one.key = s[1];
    const Tensor counts = families::binomial(one, shape, s[0], s[2]);
    return {s[0] - counts, counts};
  };
  const Tensor sequences[] = {keys, share};
  const auto out =
      detail::scan_flat(step, std::span<const Tensor>(&trials, 1), sequences, ScanOptions{},
                        detail::ControlCall{"vt::random::multinomial", d.where});
  return families::as_counts(moveaxis(out[1], 0, -1), dtype, d.where);
}

}  // namespace vt::random
