// The special functions of the interface: the primitives among them, and what is composed of those.
#include <vt/special.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "../../numerics/special_math.hpp"
#include "../../numerics/special_tables.hpp"
#include "../support/composed.hpp"
#include "../support/element_functions.hpp"
#include "formulas.hpp"

namespace vt::detail::special_ops {

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

/// e^|x| · scaled(x): in two steps, of which the first does not overflow before the product does.
Tensor unscaled(Tensor (*scaled)(Operand), const Tensor& x) {
  const Tensor t = clip(x, -2000.0, 2000.0), half = exp(abs(t) * 0.5);
  return half * (scaled(t) * half);
}

/// I₁(x)/x, at 0 by its series Σ (x²/4)ᵏ / (2 k! (k + 1)!).
Tensor bessel_i1_quotient(const Tensor& x, const Tensor& value) {
  const Tensor near = abs(x) < 0.5, z = square(where(near, x, 0.0)) * 0.25;
  Tensor series = 1.0;
  for (int k = 9; k >= 1; --k) series = 1.0 + z / static_cast<double>(k * (k + 1)) * series;
  return where(near, 0.5 * series, value / where(near, 1.0, x));
}

/// log(a / b) of positive numbers: near 1 of what the quotient differs by.
Tensor log_of_quotient(const Tensor& a, const Tensor& b) {
  const Tensor near = logical_and(a < 2.0 * b, b < 2.0 * a);
  const Tensor ratio = a / b, fits = logical_and(ratio > 1e-300, ratio < 1e300);
  const Tensor far = where(fits, log(where(fits, ratio, 1.0)), log(a) - log(b));
  return where(near, log1p(where(near, (a - b) / b, 0.0)), far);
}

/// y; something else where x and y are 0, so that slopes x/y are 0 there.
Tensor nonzero(const Tensor& x, const Tensor& y) {
  return where(logical_and(equal(x, 0.0), equal(y, 0.0)), 1.0, y);
}

/// A function of numbers of f64 and one shape with known partial derivatives:
/// slope(i, operands, value).
template <class Function, class Slope>
Tensor with_slopes(const char* name, Function function, Slope slope,
                   std::initializer_list<Tensor> operands, CallSite user) {
  const Shape shape = broadcast_shape(name, operands, user);
  std::vector<Tensor> all;
  for (const Tensor& t : operands) all.push_back(broadcast(t, shape, user));
  const FlatFunction f = [function](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {function(in)};
  };
  return element_functions::with_slopes(f, slope, all, user);
}
using Leaves = std::span<const Tensor>;

/// A table's polynomial.
Tensor polynomial(const Tensor& x, std::span<const double> table) {
  const Tensor u = (x - table[0]) * table[1];
  Tensor sum = table.back();
  for (std::size_t i = table.size() - 1; i-- > 2;) sum = sum * u + table[i];
  return sum;
}
/// The sine integral, or the cosine integral of |x|.
Tensor trigonometric_integral(const Tensor& x, bool sine) {
  namespace tables = special_tables;
  const Tensor a = abs(x), near = a < 4.0, s = where(near, a, 1.0), z = s * s,
               b = clip(where(near, 4.0, a), 4.0, 1e300), r = 1.0 / (b * b);
  const Tensor small = sine ? s * polynomial(z, tables::si_small)
                            : std::numbers::egamma + log(s) + z * polynomial(z, tables::ci_small);
  const Tensor far = b > 10.0, low = where(far, 0.01, r), high = where(far, r, 0.01);
  const Tensor f =
      where(far, polynomial(high, tables::sici_f_10), polynomial(low, tables::sici_f_4)) / b;
  const Tensor g =
      where(far, polynomial(high, tables::sici_g_10), polynomial(low, tables::sici_g_4)) * r;
  const Tensor large =
      sine ? std::numbers::pi / 2 - (f * cos(b) + g * sin(b)) : f * sin(b) - g * cos(b);
  const Tensor value =
      where(near, small, where(isinf(x), sine ? std::numbers::pi / 2 : 0.0, large));
  return where(isnan(x), x, sine ? where(less(x, 0.0), -value, value) : value);
}
/// The same with its derivative, sin(x)/x or cos(x)/x.
Tensor trigonometric_integral(const Tensor& x, bool sine, CallSite user) {
  namespace ef = element_functions;
  const FlatFunction f = [sine](ef::Leaves in) -> ef::Tensors {
    return {trigonometric_integral(in[0], sine)};
  };
  const auto slope = [sine](std::size_t, ef::Leaves at, const Tensor&) {
    const Tensor far = isinf(at[0]), t = where(far, 1.0, at[0]);
    return where(far, 0.0, sine ? sinc(t * (1 / std::numbers::pi)) : cos(t) / t);
  };
  return ef::with_slopes(f, slope, {&x, 1}, user);
}

Tensor is_whole(const Tensor& x) { return equal(x, floor(x)); }

/// ζ(s) for −1 ≤ s < 1: (½ + s P(s)) / (s − 1).
Tensor zeta_left_of_pole(const Tensor& s) {
  const auto& table = special_tables::zeta_low;
  const Tensor u = (s - table[0]) * table[1];
  Tensor sum = Operand(table[std::size(table) - 1]).tensor;
  for (std::size_t k = std::size(table) - 1; k-- > 2;) sum = sum * u + table[k];
  return (0.5 + s * sum) / (s - 1.0);
}
/// Γ(x) π⁻ˣ.
Tensor gamma_over_power(const Tensor& x, CallSite where) {
  namespace ef = element_functions;
  const FlatFunction f = [](ef::Leaves in) -> ef::Tensors {
    return {vt::special::gamma(in[0]) * pow(Operand(std::numbers::pi), -in[0])};
  };
  const auto slope = [](std::size_t, ef::Leaves in, const Tensor& value) {
    return value * (digamma(in[0]) - std::log(std::numbers::pi));
  };
  return ef::with_slopes(f, slope, {&x, 1}, where);
}
/// ζ(s) for s < −1 by ζ(1 − s): Γ(t) in two factors that are numbers as long as ζ is, and what is
/// lost of arguments and of π given back, as Γ and powers magnify it.
Tensor zeta_reflected(const Tensor& s, CallSite where_called) {
  constexpr double pi = std::numbers::pi, lost_of_pi = 1.2246467991473532e-16;
  const Tensor t = 1.0 - s, next = 0.5 * t + 0.5;
  const Tensor off = (1.0 - t) - s, next_off = 0.5 * t - (next - 0.5);
  const Tensor change =
      off * log(t / (2 * pi)) + next_off * log(t / (2 * pi)) - (t + 0.5) * (lost_of_pi / pi);
  // sin(π s/2) of what s differs from a multiple of 4 by, or of 4 and 2.
  const Tensor turn = s - 4.0 * round(0.25 * s);
  const Tensor sine = sin(0.5 * pi * where(greater(abs(turn), 1.0), 2.0 * sign(turn) - turn, turn));
  const Tensor value = sine * gamma_over_power(0.5 * t, where_called) *
                       gamma_over_power(next, where_called) *
                       (zeta(t, 1.0) * (1.0 + stop_gradient(change)));
  // Where the factors are no numbers any more the zeros of the sine still are zeros.
  return where(logical_and(equal(sine, 0.0), greater(t, 300.0)), 0.0, value);
}

}  // namespace vt::detail::special_ops

namespace vt {

namespace parts = detail::special_ops;
namespace ew = detail::elementwise;
using detail::elementwise::Composed;

Tensor bessel_i0e(Operand x) { return ew::real(detail::Op::bessel_i0e, "bessel_i0e", x); }
Tensor bessel_i1e(Operand x) { return ew::real(detail::Op::bessel_i1e, "bessel_i1e", x); }
Tensor zeta(Operand s, Operand q) {
  return ew::binary(detail::Op::zeta, "zeta", ew::Takes::floats, s, q);
}

Tensor polygamma(Operand n, Operand x) {
  const Composed f("polygamma", n, x);
  const Tensor &given = n.tensor, &t = x.tensor, zero = equal(given, 0.0);
  const Tensor order =
      where(logical_and(greater_equal(given, 0.0), equal(given, floor(given))), given, parts::nan);
  const Tensor s = where(zero, 1.0, order) + 1.0,
               sign = where(equal(mod(order, 2.0), 0.0), -1.0, 1.0);
  // Far out ζ's power may vanish before Γ makes it large: there by the series of Euler and
  // Maclaurin without its first sum, in two halves.
  const Tensor far = logical_and(logical_not(zero), t > order + 16.0), at = where(far, t, 64.0),
               degree = where(far, order, 1.0), half = pow(at, -0.5 * degree);
  Tensor series = 1.0, term = degree / (at * 2.0);
  series = series + term;
  term = degree * (degree + 1.0) / (at * at);
  for (int k = 0; k < 10; ++k) {
    series = series + term * detail::special_math::bernoulli_over_factorial[k];
    term = term * ((degree + (2.0 * k + 2.0)) / at) * ((degree + (2.0 * k + 3.0)) / at);
  }
  const Tensor higher =
      sign * where(far, special::gamma(degree) * half * half * series,
                   special::gamma(s) * zeta(s, where(logical_or(far, zero), 1.0, t)));
  return f(where(zero, digamma(where(zero, t, 1.0)), higher));
}

Tensor sinc(Operand x) {
  const Composed f("sinc", x);
  const Tensor &t = x.tensor, near = abs(t) < 0.25;
  // Its series at 0, so that all derivatives exist there; else the sine of the distance to the
  // nearest integer.
  const Tensor inside = where(near, t, 0.0), outside = where(near, 1.0, t),
               z = square(inside * std::numbers::pi);
  Tensor series = 1.0;
  for (int k = 9; k >= 1; --k) series = 1.0 - z / (2.0 * k * (2.0 * k + 1)) * series;
  const Tensor nearest = round(outside), sign = where(equal(mod(nearest, 2.0), 0.0), 1.0, -1.0);
  const Tensor quotient =
      sign * sin(std::numbers::pi * (outside - nearest)) / (std::numbers::pi * outside);
  return f(where(near, series, quotient));
}

namespace special {

Tensor gamma(Operand x) { return ew::real(detail::Op::gamma, "special::gamma", x); }
Tensor erfcx(Operand x) { return ew::real(detail::Op::erfcx, "special::erfcx", x); }
Tensor erfcinv(Operand x) { return ew::real(detail::Op::erfc_inv, "special::erfcinv", x); }
Tensor ndtr(Operand x) { return ew::real(detail::Op::ndtr, "special::ndtr", x); }
Tensor log_ndtr(Operand x) { return ew::real(detail::Op::log_ndtr, "special::log_ndtr", x); }
Tensor dawsn(Operand x) { return ew::real(detail::Op::dawsn, "special::dawsn", x); }
Tensor expi(Operand x) { return ew::real(detail::Op::expi, "special::expi", x); }
Tensor spence(Operand x) { return ew::real(detail::Op::spence, "special::spence", x); }
Tensor k0e(Operand x) { return ew::real(detail::Op::bessel_k0e, "special::k0e", x); }
Tensor k1e(Operand x) { return ew::real(detail::Op::bessel_k1e, "special::k1e", x); }
Tensor j0(Operand x) { return ew::real(detail::Op::bessel_j0, "special::j0", x); }
Tensor j1(Operand x) { return ew::real(detail::Op::bessel_j1, "special::j1", x); }
Tensor y0(Operand x) { return ew::real(detail::Op::bessel_y0, "special::y0", x); }
Tensor y1(Operand x) { return ew::real(detail::Op::bessel_y1, "special::y1", x); }
Tensor zeta(Operand s) {
  const CallSite user = detail::user_line(s.where);
  const Composed f("special::zeta", s);
  const Tensor& x = s.tensor;
  const Tensor right = logical_not(less(x, 1.0)), left = less(x, -1.0),
               between = logical_not(logical_or(left, right));
  return f(where(right, zeta(where(right, x, 2.0), 1.0),
                 where(left, parts::zeta_reflected(where(left, x, -3.0), user),
                       parts::zeta_left_of_pole(where(between, x, 0.0)))));
}

Tensor multigammaln(Operand a, Param<int> d) {
  const Composed f("special::multigammaln", a);
  if (d < 1)
    detail::refuse(ErrorKind::value, "special::multigammaln", "the dimension must be at least 1",
                   a.tensor, a.where);
  Tensor sum = lgamma(a.tensor) + 0.25 * d * (d - 1) * std::log(std::numbers::pi);
  for (int j = 2; j <= d; ++j) sum = sum + lgamma(a.tensor + 0.5 * (1 - j));
  return f(sum);
}

Tensor factorial(Operand n) {
  const Composed f("special::factorial", n);
  const Tensor& t = n.tensor;
  // n Γ(n) for larger ones: what n + 1 is rounded by, Γ would magnify.
  const Tensor large = t > 1.0,
               value = where(large, t * gamma(where(large, t, 1.0)),
                             gamma(where(logical_or(large, t < 0.0), 0.0, t) + 1.0));
  // Products below 2^50, whose error is less than one half, are exact.
  const Tensor whole = logical_and(equal(t, floor(t)), t <= 17.0);
  return f(where(t < 0.0, 0.0, where(whole, value + stop_gradient(round(value) - value), value)));
}

Tensor gammasgn(Operand x) {
  const Composed f("special::gammasgn", x);
  const Tensor& t = x.tensor;
  const Tensor below = where(equal(mod(floor(t), 2.0), 0.0), 1.0, -1.0);
  return f(where(t > 0.0, 1.0,
                 where(equal(t, 0.0), copysign(1.0, t),
                       where(parts::is_whole(t) | isnan(t), parts::nan, below))));
}

Tensor ndtri(Operand p) {
  const Composed f("special::ndtri", p);
  return f(-std::numbers::sqrt2 * erfcinv(2.0 * p.tensor));
}

Tensor i0(Operand x) {
  const Composed f("special::i0", x);
  const auto value = [](parts::Leaves in) { return parts::unscaled(bessel_i0e, in[0]); };
  const auto slope = [](std::size_t, parts::Leaves in, const Tensor&) { return i1(in[0]); };
  return f(parts::with_slopes("special::i0", value, slope, {x.tensor}, detail::user_line(x.where)));
}
Tensor i1(Operand x) {
  const Composed f("special::i1", x);
  const auto value = [](parts::Leaves in) { return parts::unscaled(bessel_i1e, in[0]); };
  const auto slope = [](std::size_t, parts::Leaves in, const Tensor& i1) {
    return i0(in[0]) - parts::bessel_i1_quotient(in[0], i1);
  };
  return f(parts::with_slopes("special::i1", value, slope, {x.tensor}, detail::user_line(x.where)));
}
Tensor k0(Operand x) {
  const Composed f("special::k0", x);
  return f(exp(-x.tensor) * k0e(x.tensor));
}
Tensor k1(Operand x) {
  const Composed f("special::k1", x);
  return f(exp(-x.tensor) * k1e(x.tensor));
}

Tensor exp1(Operand x) {
  const Composed f("special::exp1", x);
  const auto value = [](parts::Leaves in) {
    return where(in[0] < 0.0, parts::nan, -expi(-abs(in[0])));
  };
  const auto slope = [](std::size_t, parts::Leaves in, const Tensor&) {
    return -exp(-in[0]) / in[0];
  };
  return f(
      parts::with_slopes("special::exp1", value, slope, {x.tensor}, detail::user_line(x.where)));
}
std::pair<Tensor, Tensor> fresnel(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("special::fresnel", x.tensor, x.where);
  return {ew::real(detail::Op::fresnel_sin, "special::fresnel", x),
          ew::real(detail::Op::fresnel_cos, "special::fresnel", x)};
}

std::pair<Tensor, Tensor> sici(Operand x) {
  const Composed f("special::sici", x);
  const CallSite user = detail::user_line(x.where);
  return {f(parts::trigonometric_integral(x.tensor, true, user)),
          f(parts::trigonometric_integral(x.tensor, false, user))};
}

Tensor entr(Operand x) {
  const Composed f("special::entr", x);
  const auto value = [](parts::Leaves in) {
    const Tensor &t = in[0], positive = logical_not(t <= 0.0);
    return where(positive, -t * log(where(positive, t, 1.0)),
                 where(equal(t, 0.0), 0.0, -parts::infinity));
  };
  const auto slope = [](std::size_t, parts::Leaves in, const Tensor&) {
    return where(in[0] < 0.0, 0.0, -log(in[0]) - 1.0);
  };
  return f(
      parts::with_slopes("special::entr", value, slope, {x.tensor}, detail::user_line(x.where)));
}
Tensor rel_entr(Operand x, Operand y) {
  const Composed f("special::rel_entr", x, y);
  const auto value = [](parts::Leaves in) {
    const Tensor &p = in[0], &q = in[1], positive = logical_and(p > 0.0, q > 0.0);
    const Tensor otherwise =
        where(isnan(p) | isnan(q), parts::nan,
              where(logical_and(equal(p, 0.0), q >= 0.0), 0.0, parts::infinity));
    const Tensor a = where(positive, p, 1.0), b = where(positive, q, 1.0);
    return where(positive, a * parts::log_of_quotient(a, b), otherwise);
  };
  const auto slope = [](std::size_t i, parts::Leaves in, const Tensor&) {
    const Tensor &p = in[0], q = parts::nonzero(p, in[1]), outside = logical_or(p < 0.0, q < 0.0);
    return where(outside, 0.0, i == 0 ? parts::log_of_quotient(p, q) + 1.0 : -p / q);
  };
  return f(parts::with_slopes("special::rel_entr", value, slope, {x.tensor, y.tensor},
                              detail::user_line(x.where)));
}
Tensor kl_div(Operand x, Operand y) {
  const Composed f("special::kl_div", x, y);
  // Near one another p log(p/q) − p + q is p (t − log(1 + t)) with t = (q − p)/p, of which nothing
  // cancels.
  const auto value = [](parts::Leaves in) {
    const Tensor &p = in[0], &q = in[1], positive = logical_and(p > 0.0, q > 0.0);
    const Tensor otherwise = where(isnan(p) | isnan(q), parts::nan,
                                   where(logical_and(equal(p, 0.0), q >= 0.0), q, parts::infinity));
    const Tensor a = where(positive, p, 1.0), b = where(positive, q, 1.0), t = (b - a) / a,
                 near = abs(t) < 0.5;
    const Tensor excess =
        detail::formulas::log1p_excess(where(near, t, 0.0), where(near, 1.0 + t, 1.0));
    return where(positive, where(near, a * excess, a * parts::log_of_quotient(a, b) - a + b),
                 otherwise);
  };
  const auto slope = [](std::size_t i, parts::Leaves in, const Tensor&) {
    const Tensor &p = in[0], q = parts::nonzero(p, in[1]), outside = logical_or(p < 0.0, q < 0.0);
    return where(outside, 0.0, i == 0 ? parts::log_of_quotient(p, q) : (q - p) / q);
  };
  return f(parts::with_slopes("special::kl_div", value, slope, {x.tensor, y.tensor},
                              detail::user_line(x.where)));
}

Tensor logit(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("special::logit", x.tensor, x.where);
  const Tensor t = detail::to_float(std::move(x.tensor), x.where);
  if (is_complex(t.dtype())) return log(t) - log1p(-t);
  // Around ½ from 2 t − 1, which is exact there.
  const Tensor near = (t >= 0.25) & (t <= 0.75),
               part = log1p(where(near, (2.0 * t - 1.0) / (1.0 - where(near, t, 0.5)), -t));
  return where(near, part, log(where(near, 1.0, t)) - part);
}
Tensor xlogy(Operand x, Operand y) {
  const detail::UserLine line(x.where);
  ew::meet("special::xlogy", ew::Takes::floats, x, y);
  // 0 · log(y) is 0 whatever number y is; where the logarithm is finite or NaN nothing needs
  // guarding, and d/dx stays log(y).
  const Tensor guarded = (y.tensor <= 0) | isinf(y.tensor);
  return x.tensor * log(where((x.tensor == 0) & guarded, 1.0, y.tensor));
}
Tensor xlog1py(Operand x, Operand y) {
  const detail::UserLine line(x.where);
  ew::meet("special::xlog1py", ew::Takes::floats, x, y);
  const Tensor guarded = (y.tensor <= -1) | isinf(y.tensor);
  return x.tensor * log1p(where((x.tensor == 0) & guarded, 0.0, y.tensor));
}

}  // namespace special
}  // namespace vt
