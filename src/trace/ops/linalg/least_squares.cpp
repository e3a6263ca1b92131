// Least squares by QR with exchanged columns, and pseudo-inverses.
#include <algorithm>
#include <cmath>
#include <utility>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/message.hpp>

#include "../support/contract.hpp"
#include "matrices.hpp"

namespace vt::detail::linalg {

/// Singular values up to `tolerance` · the largest are 0.
inline std::vector<Tensor> pseudo_inverse(const Tensor& a, double tolerance, CallSite where) {
  where = user_line(where);
  const FlatFunction f = [tolerance, where](std::span<const Tensor> x) {
    const UserLine line(where);
    const std::vector<Tensor> parts = decomposed(Op::svd, x[0], {}, where);
    const Tensor& s = parts[1];
    if (s.dim(-1) == 0) return std::vector<Tensor>{matrix_transpose(zeros_like(x[0]))};
    const Tensor kept = s > tolerance * max(s, -1, true);
    const Tensor inverse = vt::where(kept, 1.0 / vt::where(kept, s, 1.0), 0.0);
    return std::vector<Tensor>{
        matmul(adjoint(parts[2]) * expand_dims(inverse, -2), adjoint(parts[0]))};
  };
  const FlatFunction rule = [tolerance, where](std::span<const Tensor> x) {
    const UserLine line(where);
    const Tensor &m = x[0], &dm = x[1], p = pseudo_inverse(m, tolerance, where)[0], pt = adjoint(p),
                 dt = adjoint(dm);
    const Tensor left = matmul(p, matmul(pt, dt)), right = matmul(matmul(dt, pt), p);
    return std::vector<Tensor>{p, left - matmul(matmul(left, m), p) + right -
                                      matmul(p, matmul(m, right)) - matmul(matmul(p, dm), p)};
  };
  return custom_jvp_flat(f, rule, std::span<const Tensor>(&a, 1), where);
}

/// a = u r sᴴ vᴴ: a complete orthogonal factorisation (Golub and Van Loan 2013, section 5.4.7), as
/// constants. From the rank on columns of u and v are zero, and r and s are as unit matrices.
struct CompleteFactors {
  Tensor u;     ///< [..., m, k] with k = min(m, n): orthonormal columns that span those of a
  Tensor r, s;  ///< [..., k, k]: upper triangles
  Tensor v;     ///< [..., n, k]: orthonormal columns that span those of aᴴ
  Tensor rank;  ///< i32[...]
};

/// x with t x = b for an upper triangle t, or with tᴴ x = b.
inline Tensor triangle_solved(const Tensor& t, const Tensor& b, bool adjoint, CallSite where) {
  const bool conjugate = adjoint && is_complex(b.dtype());
  const Tensor x = emit(Op::triangular_solve, make_params(TriangularParams{false, adjoint, false}),
                        {t, conjugate ? conj(b) : b}, where);
  return conjugate ? conj(x) : x;
}

/// a Π = q t with exchanged columns. From the first diagonal element of t on that is no larger than
/// `tolerance` times the first of all, rows of t count as 0. Of full column rank that is all, r is
/// t: then sizes of columns do not matter, as they do not to QR. Else tᴴ = z s, r is 1, and so the
/// shortest solution lies in the columns of v = Π z.
inline CompleteFactors complete_factors(const Tensor& a, double tolerance, CallSite where) {
  const std::vector<Tensor> parts = decomposed(Op::qr, stop_gradient(a), {.pivoted = true}, where);
  const Tensor &q = parts[0], &t = parts[1], &order = parts[2];
  const std::int64_t k = q.dim(-1);
  const int last = a.rank() - 1;
  const auto square = [&](const Tensor& x) { return sliced(x, last, 0, k, 1, where); };
  const Tensor sizes = abs(diagonal_of(square(t), 0, last - 1, last, where));
  // A matrix that is not finite has NaN here, and all it gives is NaN.
  const Tensor small = sizes <= tolerance * sliced(sizes, last - 1, 0, 1, 1, where);
  const Tensor kept = cumsum(cast(small, i32, where), -1) == 0;
  const Tensor rows = expand_dims(kept, -1), columns = expand_dims(kept, -2);
  CompleteFactors f;
  f.rank = sum(cast(kept & (sizes == sizes), i32, where), -1);
  const Tensor unit =
      cast(counted(i32, t.shape(), last - 1, where) == counted(i32, t.shape(), last, where),
           a.dtype(), where);
  const Tensor full = expand_dims(f.rank == t.dim(-1), {-1, -2});
  f.r = vt::where(full, square(t), square(unit));
  const Tensor basis = vt::where(full, unit, vt::where(rows, t, 0.0));
  const std::vector<Tensor> turned = decomposed(Op::qr, adjoint(basis), {}, where);
  f.s = vt::where(rows & columns, turned[1], square(unit));
  f.u = vt::where(columns, q, 0.0);
  const Tensor z = vt::where(columns, turned[0], 0.0), places = expand_dims(argsort(order, -1), -1);
  f.v = take_along_axis(z, broadcast(places, z.shape(), where), -2);
  return f;
}

/// x as its leading `bits` bits below 4 `power`, which is more than |x|, and the rest.
struct Apart {
  Tensor head, rest;
};
inline Apart apart(const Tensor& x, const Tensor& power, int bits) {
  // Of numbers of this size the last bit is the last one that is wanted.
  const Tensor above = power * std::ldexp(6.0, 52 - bits);
  const auto head = [&](const Tensor& t) { return (t + above) - above; };
  const Tensor h = is_complex(x.dtype()) ? complex(head(real(x)), head(imag(x))) : head(x);
  return {h, x - h};
}
/// b − r − a x and −aᴴ r for a of columns near 1, with more digits than their dtype has. In f64 the
/// products of leading bits are exact, in whatever order they are summed (Ozaki, Ogita, Oishi and
/// Rump 2012), so that what is rounded is smaller by as many bits.
inline std::pair<Tensor, Tensor> residuals(const Tensor& a, const Tensor& x, const Tensor& b,
                                           const Tensor& r, CallSite where) {
  const DType d = a.dtype();
  if (real_dtype(d) == f32) {
    const auto wide = [&](const Tensor& t) { return cast(t, is_complex(d) ? c128 : f64, where); };
    const Tensor f = wide(b) - wide(r) - matmul(wide(a), wide(x)),
                 g = matmul(adjoint(wide(a)), wide(r));
    return {cast(f, d, where), cast(-g, d, where)};
  }
  int bits = 53;
  for (std::int64_t terms = 4 * std::max(a.dim(-1), a.dim(-2)); terms > 1; terms = (terms + 1) / 2)
    --bits;
  bits /= 2;
  const auto vectors = [&](const Tensor& t) {
    return apart(t, power_of(max(exponents(t, where), -2, true)), bits);
  };
  const Apart m = apart(a, vt::ones({}, f64, where), bits), y = vectors(x), z = vectors(r);
  const Tensor f_head = matmul(m.head, y.head), f_rest = matmul(m.head, y.rest) + matmul(m.rest, x);
  const Tensor g_head = matmul(adjoint(m.head), z.head),
               g_rest = matmul(adjoint(m.head), z.rest) + matmul(adjoint(m.rest), r);
  // p − q, and what is rounded off (Knuth)
  const auto difference = [](const Tensor& p, const Tensor& q) {
    const Tensor s = p - q, t = s - p;
    return std::pair(s, (p - (s - t)) - (q + t));
  };
  const auto [once, lost] = difference(b, f_head);
  const auto [twice, lost_more] = difference(once, r);
  return {twice + (lost + lost_more - f_rest), -(g_head + g_rest)};
}

/// A linear map that belongs to a: its pseudo-inverse a⁺, or the projection 1 − a⁺ a onto what a
/// does not see. `adjoint`: that of aᴴ. `refined`, of a⁺: all digits that y and a determine.
struct MapOf {
  bool inverse = true, adjoint = false, refined = false;
};
inline Tensor image(MapOf map, std::span<const Tensor> x, CallSite where);
/// A step of refinement of x = a⁺ y together with the residual r = y − a x (Björck 1967), where a
/// has full column rank: the error of x has the square of a's condition times |r| in it, which r
/// rounded to its dtype does not determine. A step that is not small, as it is if the condition is
/// beyond the dtype, is not taken.
inline Tensor refined(const Tensor& x, std::span<const Tensor> given, CallSite where) {
  const Tensor &y = given[0], &a = given[1], &u = given[2], &t = given[3], &v = given[5];
  if (a.dim(-2) < a.dim(-1)) return x;
  const Tensor sizes = power_of(max(exponents(a, where), -2, true)),
               size_rows = matrix_transpose(sizes);
  const Tensor r = image({false, true}, given, where), grown = x * size_rows;
  const auto [f, g] = residuals(a / sizes, grown, y, r, where);
  const Tensor back = triangle_solved(t, matmul(adjoint(v), g * size_rows), true, where);
  const Tensor step = matmul(v, triangle_solved(t, matmul(adjoint(u), f) - back, false, where));
  const Tensor small = max(abs(step * size_rows), -2, true) < 0.1 * max(abs(grown), -2, true);
  const Tensor full = expand_dims(given[6] == a.dim(-1), {-1, -2});
  return vt::where(full & small, x + step, x);
}

/// The image of x[0]; behind it in x stand a and its CompleteFactors.
inline Tensor image(MapOf map, std::span<const Tensor> x, CallSite where) {
  const Tensor &y = x[0], &a = x[1], &r = x[3], &s = x[4], &rank = x[6];
  const Tensor &u = x[map.adjoint ? 5 : 2], &v = x[map.adjoint ? 2 : 5];
  if (!map.inverse) {
    const Tensor full = rank == a.dim(map.adjoint ? -2 : -1);
    return vt::where(expand_dims(full, {-1, -2}), 0.0, y - matmul(v, matmul(adjoint(v), y)));
  }
  const Tensor in = matmul(adjoint(u), y);
  const Tensor result = matmul(
      v, map.adjoint ? triangle_solved(r, triangle_solved(s, in, false, where), true, where)
                     : triangle_solved(s, triangle_solved(r, in, false, where), true, where));
  return map.refined ? refined(result, x, where) : result;
}
/// The same with derivatives of all orders by y and a, at a constant rank (Golub and Pereyra 1973).
/// With P = 1 − a⁺ a and Q = 1 − a a⁺:
///   da⁺ = − a⁺ da a⁺ + a⁺ a⁺ᴴ daᴴ Q + P daᴴ a⁺ᴴ,  dP = − a⁺ da P − P daᴴ a⁺ᴴ.
inline Tensor differentiable_image(MapOf map, const std::vector<Tensor>& x, CallSite where) {
  where = user_line(where);
  const FlatFunction value = [map, where](std::span<const Tensor> x) {
    const UserLine line(where);
    return std::vector<Tensor>{image(map, x, where)};
  };
  const FlatFunction rule = [map, where](std::span<const Tensor> both) {
    const UserLine line(where);
    const std::span<const Tensor> x = both.first(both.size() / 2), dx = both.subspan(x.size());
    // The maps of a, or of aᴴ where this one is.
    const auto of = [&](MapOf m, const Tensor& y) {
      std::vector<Tensor> all(x.begin(), x.end());
      all[0] = y;
      return differentiable_image({m.inverse, m.adjoint != map.adjoint, m.refined}, all, where);
    };
    constexpr MapOf inverse{true, false}, inverse_adjoint{true, true}, unseen{false, false},
        unseen_adjoint{false, true};
    const Tensor &y = x[0], &dy = dx[0];
    const Tensor da = map.adjoint ? adjoint(dx[1]) : dx[1], back = adjoint(da);
    const Tensor here = of({map.inverse, false, map.refined}, y);
    if (!map.inverse)
      return std::vector<Tensor>{here, of(unseen, dy - matmul(back, of(inverse_adjoint, y))) -
                                           of(inverse, matmul(da, here))};
    const Tensor change =
        of(inverse,
           dy - matmul(da, here) + of(inverse_adjoint, matmul(back, of(unseen_adjoint, y)))) +
        of(unseen, matmul(back, of(inverse_adjoint, here)));
    return std::vector<Tensor>{here, change};
  };
  const FlatFunction transpose = [map, where](std::span<const Tensor> x) {
    const UserLine line(where);
    const bool complex = is_complex(x[0].dtype());
    std::vector<Tensor> all(x.begin(), x.end());
    if (complex) all[0] = conj(all[0]);
    const Tensor back = differentiable_image({map.inverse, map.inverse != map.adjoint}, all, where);
    return std::vector<Tensor>{complex ? conj(back) : back};
  };
  return custom_jvp_flat(value, rule, x, where, false, transpose, 1)[0];
}

}  // namespace vt::detail::linalg

namespace vt::linalg {

namespace la = detail::linalg;
using detail::Op;

Tensor pinv(Operand a, std::optional<Param<double>> rtol) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor x = la::matrices("pinv", a, w);
  const double tolerance = rtol.value_or(10 * la::epsilon(x.dtype()) *
                                         static_cast<double>(std::max(x.dim(-1), x.dim(-2))));
  const Tensor power = la::power_of_matrices(x, w);
  return la::pseudo_inverse(x / power, tolerance, w)[0] / power;
}

LstsqResult lstsq(Operand a, Operand b, std::optional<Param<double>> rcond) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  Tensor x = la::matrices("lstsq", a, w), right = la::matrix("lstsq", b, w);
  la::meet(x, right, w);
  const double tolerance =
      rcond.value_or(la::epsilon(x.dtype()) * static_cast<double>(std::max(x.dim(-1), x.dim(-2))));
  LstsqResult result;
  // Of matrices near 1: then neither singular values nor what they divide lose digits.
  const Tensor power = la::power_of_matrices(x, w), near = x / power,
               s = la::decomposed(Op::svd, near, {}, w)[1];
  const bool none = s.dim(-1) == 0;
  result.s = none || power.rank() == 0 ? s : s * squeeze(power, {-1});
  la::CompleteFactors f;
  if (none) result.rank = zeros(la::batch_of(x), i32, w);
  else {
    f = la::complete_factors(near, tolerance, w);
    result.rank = f.rank;
  }
  result.x = la::for_right_sides("lstsq", x, right, w, [&](const Tensor& m, const Tensor& y) {
    const Shape batch = la::batch_of(m);
    if (none) return matmul(la::with_batch(la::matrix_transpose(zeros_like(x)), batch, w), y);
    std::vector<Tensor> operands{y / maximum(power, 1.0)};
    for (const Tensor& part : {near, f.u, f.r, f.s, f.v})
      operands.push_back(la::with_batch(part, batch, w));
    operands.push_back(detail::broadcast(f.rank, batch, w));
    return la::differentiable_image({.refined = true}, operands, w) / minimum(power, 1.0);
  });
  const bool vector = right.rank() == 1;
  const Tensor image =
      vector ? squeeze(matmul(x, expand_dims(result.x, -1)), {-1}) : matmul(x, result.x);
  result.residuals = sum(detail::squared_magnitude(right - image, w), vector ? -1 : -2);
  return result;
}

}  // namespace vt::linalg

namespace vt {

Tensor vander(Operand x, std::optional<Param<std::int64_t>> count, bool increasing) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("vander", x.tensor, w);
  if (x.tensor.rank() != 1)
    detail::refuse(ErrorKind::shape, "vander", "needs a vector", x.tensor, w);
  const std::int64_t n = x.tensor.dim(0), columns = count ? std::int64_t{*count} : n;
  if (columns < 0)
    detail::refuse(ErrorKind::value, "vander", detail::formatted("cannot give {} columns", columns),
                   x.tensor, w);
  const Tensor t = detail::to_number(x.tensor, w);
  if (columns == 0) return zeros({n, 0}, t.dtype(), w);
  const Tensor powers =
      cumprod(broadcast_to(expand_dims(t, 1), {n, columns}), 1, {.exclusive = true});
  return increasing ? powers : flip(powers, 1);
}

Tensor polyfit(Operand x, Operand y, Param<int> degree) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("polyfit", x.tensor, w);
  detail::need("polyfit", y.tensor, w);
  if (degree < 0)
    detail::refuse(ErrorKind::value, "polyfit", detail::formatted("no degree is {}", degree),
                   x.tensor, w);
  if (x.tensor.rank() != 1 || x.tensor.dim(0) == 0 || y.tensor.rank() < 1 || y.tensor.rank() > 2 ||
      y.tensor.dim(0) != x.tensor.dim(0))
    detail::refuse(ErrorKind::shape, "polyfit",
                   "needs the points' x as a vector, with one y or one row of y for each", x.tensor,
                   y.tensor, w);
  const Tensor both[2] = {x.tensor, y.tensor};
  detail::Common c = detail::common_dtype(both);
  if (!is_inexact(c.dtype)) c.dtype = default_dtype();
  const Tensor columns = vander(detail::cast(x.tensor, c.dtype, w), degree + 1);
  const Tensor size = linalg::vector_norm(columns, 2, 0), scale = where(size == 0, 1.0, size);
  const Tensor fitted = linalg::lstsq(columns / scale, detail::cast(y.tensor, c.dtype, w)).x;
  return fitted / (y.tensor.rank() == 2 ? expand_dims(scale, 1) : scale);
}

}  // namespace vt
