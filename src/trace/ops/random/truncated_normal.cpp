// The normal distribution between two bounds, by its inverse: near 0 that of erf, in the tails that
// of erfc from the bound nearer to 0 on.
#include <limits>
#include <numbers>

#include <vt/special.hpp>

#include "../special/formulas.hpp"
#include "../support/element_functions.hpp"
#include "random_draw.hpp"

namespace vt::detail::truncated {

using namespace element_functions;
using namespace formulas;
using randoms::Draw;
inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN(),
                        inv_sqrt2 = 0.5 * std::numbers::sqrt2;

/// Functions of numbers that are rounded to dtype d, see randoms::log_of.
Tensor erfcx_of(const Tensor& x, DType d) {
  return d == f64 ? exact::erfcx(x) : vt::special::erfcx(x);
}

/// An interval of one tail, reflected to the right: 1 … 2 where the bounds are of no tail.
struct Tail {
  Tensor inside, left;  ///< is it of a tail; of the left one
  Tensor near, far;
  Tail(const Tensor& a, const Tensor& b)
      : inside(logical_or(a > 0.5, b < -0.5)),
        left(b < -0.5),
        near(where(inside, where(left, -b, a), 1.0)),
        far(where(inside, where(left, -a, b), 2.0)) {}

  /// φ(far) / φ(near) of the density.
  Tensor densities(DType d) const {
    const Tensor finite = far < infinity, end = where(finite, far, near + 1.0);
    return where(finite, randoms::exp_of(-0.5 * (end - near) * (end + near), d), 0.0);
  }
  /// The mass beyond the draw that u gives, over the mass beyond `near`. `ratio` is that of the
  /// densities; density over mass beyond is √(2/π) / erfcx(x/√2), given of both ends.
  static Tensor beyond(const Tensor& u, const Tensor& ratio, const Tensor& at_near,
                       const Tensor& at_far) {
    return 1.0 - u * (1.0 - ratio * (at_far / at_near));
  }
};

/// x with Q(x) = v Q(near), near ≥ 30, for the mass Q beyond: two steps of Newton's method for
/// x − near, on the logarithm with Q(x) ~ φ(x)/x (1 − 1/x² + 3/x⁴ − …).
Tensor far_out(const Tensor& near, const Tensor& v, DType d) {
  const auto series = [](const Tensor& x) {
    const Tensor y = 1.0 / x / x;
    Tensor sum = 1.0 - 11.0 * y;
    for (double k = 9; k > 0; k -= 2) sum = 1.0 - k * (y * sum);
    return sum;
  };
  const Tensor e = -randoms::log_of(v, d), at_near = series(near);
  Tensor t = 2.0 * e / (near + sqrt(near * near + 2.0 * e));
  for (int step = 0; step < 2; ++step) {
    const Tensor x = near + t, at_x = series(x), change = at_x - at_near;
    const Tensor z = 0.5 * t / (near + 0.5 * t), square = z * z;
    const Tensor log_quotient =
        2.0 * z * (1.0 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7))));
    const Tensor log_series = 2.0 * change / (at_x + at_near);
    const Tensor excess = t * (near + 0.5 * t) + log_quotient - log_series - e;
    t = t - excess * (at_x / x);
  }
  return near + t;
}

/// erf(x/√2), given exp(−x²/2) and erfcx(|x|/√2). Up to 1 by x √(2/π) exp(−x²/2) Σ x²ⁿ/(2n + 1)!!,
/// whose terms are all positive.
Tensor mass_around_0(const Tensor& x, const Tensor& density, const Tensor& scaled_rest) {
  constexpr int terms = 12;
  const Tensor size = abs(x), near = where(size < 1.0, x, 0.0), square = near * near;
  Tensor sum = number(1);
  for (int n = terms; n > 0; --n) sum = 1.0 + sum * square / (2.0 * n + 1);
  const Tensor far = 1.0 - scaled_rest * density;
  return where(size < 1.0, near * sum * density * (2 * std::numbers::inv_sqrtpi * inv_sqrt2),
               where(x < 0.0, -far, far));
}

/// The draw at u in [0, 1), in f64: the mass from a to it, or where the interval is one of the left
/// tail from it to b, is that part of the whole.
Tensor quantile(const Tensor& u, const Tensor& a, const Tensor& b, DType d) {
  const Tail tail(a, b);
  const auto scaled_rest = [d](const Tensor& x) { return erfcx_of(inv_sqrt2 * abs(x), d); };
  const auto density = [d](const Tensor& x) { return randoms::exp_of(-0.5 * x * x, d); };
  const Tensor rest_a = scaled_rest(a), rest_b = scaled_rest(b), density_a = density(a),
               density_b = density(b);
  const Tensor rest_near = where(tail.left, rest_b, rest_a);
  const Tensor v =
      where(tail.inside,
            Tail::beyond(u, tail.densities(d), rest_near, where(tail.left, rest_a, rest_b)), 1.0);
  // Twice the mass beyond the draw, and that from 0 to it, which rounds to ±1 far out.
  constexpr double last = 1 - 0x1p-53;
  const Tensor very_far = tail.near > 30.0,
               in_table = logical_and(tail.inside, logical_not(very_far));
  const Tensor p = where(in_table, rest_near * where(tail.left, density_b, density_a) * v, 0.5);
  const Tensor from = mass_around_0(a, density_a, rest_a), to = mass_around_0(b, density_b, rest_b);
  const Tensor y = clip(from + u * (to - from), -last, last);
  const Tensor x =
      std::numbers::sqrt2 *
      (d == f64 ? exact::erf_inv(where(tail.inside, 1.0 - p, y),
                                 where(tail.inside, p * (2.0 - p), (1.0 - y) * (1.0 + y)))
                : where(tail.inside, vt::special::erfcinv(p), erf_inv(y)));
  const Tensor right = where(very_far, far_out(where(very_far, tail.near, 30.0), v, d), x);
  return where(a < b, where(tail.left, -right, right), nan);
}

/// The derivative of the draw x by a bound: the part of the mass that moves with the bound, times
/// the quotient of the densities at both. In a tail that is got without the densities themselves.
Tensor slope(std::size_t i, const Tensor& u, const Tensor& a, const Tensor& b, const Tensor& x) {
  const Tail tail(a, b);
  // not the exact functions: what rounds alike everywhere is the draw
  const auto scaled_rest = [](const Tensor& t) { return vt::special::erfcx(inv_sqrt2 * t); };
  const Tensor densities = tail.densities(f32), at_near = scaled_rest(tail.near),
               v = Tail::beyond(u, densities, at_near, scaled_rest(tail.far));
  const Tensor is_near = i == 0 ? logical_not(tail.left) : tail.left,
               at = where(tail.inside, where(tail.left, -x, x), 1.0);
  const Tensor in_tail = where(is_near, 1.0 - u, u * densities) * (scaled_rest(at) / at_near / v);
  const Tensor bound = i == 0 ? a : b,
               around_0 = logical_and(logical_not(tail.inside), abs(bound) < infinity),
               own = where(around_0, bound, 0.0), middle = where(around_0, x, 0.0);
  const Tensor direct = (i == 0 ? 1.0 - u : u) * exp(0.5 * (middle - own) * (middle + own));
  return where(tail.inside, in_tail, where(around_0, direct, 0.0));
}

}  // namespace vt::detail::truncated

namespace vt::random {

Tensor truncated_normal(Operand key, const Shape& shape, Operand lower, Operand upper,
                        DType dtype) {
  namespace parts = vt::detail::truncated;
  using vt::detail::randoms::wide;
  const parts::Draw d("truncated_normal", key);
  const detail::UserLine line(d.where);
  d.want_float(dtype);
  const DType w = detail::randoms::working(dtype);
  const Tensor bounds[] = {wide(d.parameter(lower, shape, w)), wide(d.parameter(upper, shape, w))},
               u = wide(detail::randoms::unit(d, shape, w));
  const detail::FlatFunction f = [u, dtype, w](parts::Leaves in) -> parts::Tensors {
    const auto rounded = [dtype](const Tensor& t) { return detail::cast(t, dtype, {}); };
    // Between the bounds also when rounded to the dtype of the result.
    const Tensor least = nextafter(rounded(in[0]), parts::infinity),
                 most = nextafter(rounded(in[1]), -parts::infinity);
    return {wide(clip(rounded(parts::quantile(u, in[0], in[1], w)), least, most))};
  };
  const auto slope = [u](std::size_t i, parts::Leaves in, const Tensor& x) {
    return parts::slope(i, u, in[0], in[1], x);
  };
  return detail::cast(detail::element_functions::with_slopes(f, slope, bounds, d.where), dtype,
                      d.where);
}

}  // namespace vt::random
