// Functions of matrices composed of the decompositions: determinants, norms, rank, matrix
// exponential, chains of products.
#include <algorithm>
#include <cmath>

#include <vt/control.hpp>
#include <vt/detail/entry_points.hpp>
#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../support/contract.hpp"
#include "matrices.hpp"

namespace vt::detail::linalg {

inline Tensor diagonals(const Tensor& a, CallSite where) {
  return diagonal_of(a, 0, a.rank() - 2, a.rank() - 1, where);
}
inline Tensor traces(const Tensor& a, CallSite where) { return sum(diagonals(a, where), -1); }

/// The sign of a permutation that was made by exchanges.
inline Tensor parity(const Factors& f, DType d, CallSite where) {
  const Tensor moved = f.pivots != counted(i32, f.pivots.shape(), f.pivots.rank() - 1, where);
  const Tensor odd = sum(cast(moved, i32, where), -1) % 2;
  return cast(1 - 2 * odd, d, where);
}

/// The reciprocal of the power of two that has such an exponent.
inline Tensor reciprocal_power_of(const Tensor& exponent) {
  return power_of((exponent.dtype() == i64 ? 2046 : 254) - exponent);
}

/// x times a real number, part by part: what overflows becomes infinite, not NaN.
inline Tensor scaled(const Tensor& x, const Tensor& by) {
  return is_complex(x.dtype()) ? complex(real(x) * by, imag(x) * by) : x * by;
}

/// The product of the last axis: of numbers near 1, times what was taken out of them, so that
/// nothing overflows on the way.
inline Tensor product_of(const Tensor& x, CallSite where) {
  const Tensor exponent = exponents(x, where);
  const DType d = real_dtype(x.dtype());
  // Every second one is halved: then they are about 1 together.
  const Tensor odd = counted(exponent.dtype(), x.shape(), x.rank() - 1, where) % 2;
  const Tensor near = scaled(x, reciprocal_power_of(exponent) * (0.5 - 0.25 * cast(odd, d, where)));
  const double most = d == f64 ? 1000 : 125;
  const Tensor total = clip(cast(sum(exponent - (d == f64 ? 1022 : 126) + odd, -1), d, where),
                            -4 * most, 4 * most),
               part = floor(total / 4.0);
  const Tensor by = exp2(part);
  return scaled(scaled(scaled(scaled(prod(near, -1), by), by), by), exp2(total - 3.0 * part));
}

/// Row by row: the elements of each matrix of 1 to 3 rows.
inline Vec<Tensor> elements_of(const Tensor& x, CallSite where) {
  const std::int64_t n = x.dim(-1);
  const int rank = x.rank();
  Vec<Tensor> all;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      all.push_back(
          reshaped(sliced(sliced(x, rank - 2, i, i + 1, 1, where), rank - 1, j, j + 1, 1, where),
                   batch_of(x), where));
  return all;
}
/// The determinants of matrices of 1 to 3 rows by their formula, of elements over a power of two
/// near the largest, so that products do not overflow where their difference need not; NaN for what
/// is not finite.
inline Tensor small_determinant(const Tensor& x, CallSite where) {
  const std::int64_t n = x.dim(-1);
  Vec<Tensor> elements = elements_of(x, where);
  Tensor most;
  for (const Tensor& e : elements) {
    const Tensor own = stop_gradient(e);
    for (const Tensor& part : is_complex(x.dtype()) ? Vec<Tensor>{abs(real(own)), abs(imag(own))}
                                                    : Vec<Tensor>{abs(own)})
      most = most.defined() ? vt::where(part > most, part, most) : part;
  }
  const Tensor exponent = exponents(most, where), power = power_of(exponent),
               inverse = reciprocal_power_of(exponent);
  for (Tensor& e : elements) e = scaled(e, inverse);
  const auto at = [&](std::int64_t i, std::int64_t j) { return elements[i * n + j]; };
  Tensor result = at(0, 0);
  if (n == 2) result = at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0);
  if (n == 3)
    result = at(0, 0) * (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)) -
             at(0, 1) * (at(1, 0) * at(2, 2) - at(1, 2) * at(2, 0)) +
             at(0, 2) * (at(1, 0) * at(2, 1) - at(1, 1) * at(2, 0));
  for (std::int64_t i = 0; i < n; ++i) result = scaled(result, power);
  return result;
}

/// Their derivative along da: polynomials of one degree less, however the value is computed.
inline Tensor small_determinant_along(const Tensor& a, const Tensor& da, CallSite where) {
  const Vec<Tensor> e = elements_of(a, where), change = elements_of(da, where);
  if (e.size() == 1) return change[0];
  if (e.size() == 4)
    return e[3] * change[0] - e[2] * change[1] - e[1] * change[2] + e[0] * change[3];
  Tensor total;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const auto at = [&](std::size_t down, std::size_t right) {
        return e[(i + down) % 3 * 3 + (j + right) % 3];
      };
      const Tensor term = (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)) * change[3 * i + j];
      total = total.defined() ? total + term : term;
    }
  return total;
}

/// A function of a that is made of its LU, and its derivative along da, given the value.
struct OfFactors {
  std::vector<Tensor> (*values)(const Tensor& a, const Factors&, CallSite);
  std::vector<Tensor> (*derivatives)(const std::vector<Tensor>& values, const Tensor& a,
                                     const Factors&, const Tensor& da, CallSite);
};
/// One LU serves values and all derivatives.
inline std::vector<Tensor> of_factors(const OfFactors& function, const Tensor& a, const Factors& f,
                                      CallSite where) {
  where = user_line(where);
  const auto in = [](std::span<const Tensor> x) { return Factors{x[1], x[2], x[3]}; };
  const FlatFunction values = [=](std::span<const Tensor> x) {
    const UserLine line(where);
    return function.values(x[0], in(x), where);
  };
  const FlatFunction rule = [=](std::span<const Tensor> x) {
    const UserLine line(where);
    std::vector<Tensor> all = of_factors(function, x[0], in(x), where);
    for (Tensor& change : function.derivatives(all, x[0], in(x), x[4], where))
      all.push_back(std::move(change));
    return all;
  };
  const Tensor operands[] = {a, f.lu, f.pivots, f.permutation};
  return custom_jvp_flat(values, rule, operands, where);
}

inline std::vector<Tensor> sign_and_logarithm(const Tensor&, const Factors& f, CallSite where) {
  const Tensor d = diagonals(f.lu, where);
  return {prod(sign(d), -1) * parity(f, f.lu.dtype(), where), sum(log(abs(d)), -1)};
}
inline std::vector<Tensor> sign_and_logarithm_along(const std::vector<Tensor>& values,
                                                    const Tensor& a, const Factors& f,
                                                    const Tensor& da, CallSite where) {
  const Tensor change = traces(solved(a, f, da, where), where), none = zeros_like(values[1]);
  if (!is_complex(change.dtype())) return {none, change};
  // a sign of 0 stays
  return {values[0] * complex(none, vt::where(values[0] == 0, none, imag(change))), real(change)};
}

inline Tensor determinant(const Factors& f, CallSite where) {
  return scaled(product_of(diagonals(f.lu, where), where),
                parity(f, real_dtype(f.lu.dtype()), where));
}

/// For any k places the product of all elements of s but those there: [..., n] → [..., n, …, n].
/// 0 where two places are the same.
inline Tensor products_of_others(const Tensor& s, int k, CallSite where) {
  const int batch = s.rank() - 1;
  const std::int64_t n = s.dim(-1);
  Tensor rest = s;  // for any k − 1 places s with ones there
  for (int i = 1; i < k; ++i) {
    Shape shape = rest.shape();
    shape.push_back(n);
    const int last = rest.rank();
    const Tensor here = counted(i32, shape, last - 1, where) == counted(i32, shape, last, where);
    rest = vt::where(here, 1.0, expand_dims(rest, -2));
  }
  const int last = rest.rank() - 1;
  const Tensor one = ones_like(sliced(rest, last, 0, 1, 1, where));
  const Tensor before = sliced(cumprod(rest, last), last, 0, n - 1, 1, where),
               behind = sliced(cumprod(rest, last, {.reverse = true}), last, 1, n, 1, where);
  Tensor product =
      concatenate({one, before}, last, where) * concatenate({behind, one}, last, where);
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < i; ++j)
      product = vt::where(counted(i32, product.shape(), batch + i, where) ==
                              counted(i32, product.shape(), batch + j, where),
                          0.0, product);
  return product;
}

/// The matrix C with Σ C ∘ X = the derivative of det, of order k, along X and k − 1 directions, at
/// the a with left a right = diag(s). x: the directions, then left, s, right, and
/// factor = det(a) / Π s. With Y = left X right of all k matrices that derivative is
/// factor · Σ (Π_{j not in i} s_j) det [Y_p at (i_p, i_q)]_{p, q ≤ k} over all i₁ … i_k:
/// sums and products alone, so that nothing is divided by where a is singular.
inline Tensor cofactors(std::span<const Tensor> x, CallSite where) {
  const std::span<const Tensor> directions = x.first(x.size() - 4), given = x.last(4);
  const Tensor &left = given[0], &s = given[1], &right = given[2], &factor = given[3];
  const int k = static_cast<int>(directions.size()) + 1, batch = s.rank() - 1;
  std::vector<Tensor> y;  // of all but X
  for (const Tensor& direction : directions) y.push_back(matmul(matmul(left, direction), right));
  const Tensor others = products_of_others(s, k, where);
  Vec<int> order;
  for (int i = 0; i < k; ++i) order.push_back(i);
  Tensor on, off;  // the diagonal, and matrices
  do {
    Tensor term = others;
    int exchanges = 0;
    for (int p = 0; p < k; ++p) {
      const int q = order[p];
      for (int i = 0; i < p; ++i) exchanges += order[i] > q;
      if (p == 0) continue;
      const Tensor& m = y[p - 1];
      Axes missing;
      for (int i = 0; i < k; ++i)
        if (i != p && i != q) missing.push_back(batch + i);
      term = term * expand_dims(p == q  ? diagonals(m, where)
                                : p < q ? m
                                        : matrix_transpose(m),
                                missing);
    }
    if (exchanges % 2 != 0) term = -term;
    Axes summed;
    for (int i = 1; i < k; ++i)
      if (i != order[0]) summed.push_back(batch + i);
    Tensor& total = order[0] == 0 ? on : off;
    if (!summed.empty()) term = sum(term, summed);
    total = total.defined() ? total + term : term;
  } while (std::next_permutation(order.begin(), order.end()));
  const Tensor inner = cast(matrix_diag(on), left.dtype(), where);
  return matmul(matmul(matrix_transpose(left), off.defined() ? inner + off : inner),
                matrix_transpose(right)) *
         expand_dims(factor, {-1, -2});
}

/// It as a function of the directions and a, which stands behind them in x: its derivative along da
/// is that of one order more. In X and the directions it is symmetric, and so its own transpose:
/// with X in place of a direction. A rule puts the direction that is linear first.
inline Tensor differentiable_cofactors(const std::vector<Tensor>& x, CallSite where) {
  where = user_line(where);
  constexpr std::size_t given = 5;
  const FlatFunction value = [where](std::span<const Tensor> x) {
    const UserLine line(where);
    std::vector<Tensor> all(x.begin(), x.end());
    all.erase(all.end() - given);
    return std::vector<Tensor>{cofactors(all, where)};
  };
  const FlatFunction rule = [where](std::span<const Tensor> both) {
    const UserLine line(where);
    const std::span<const Tensor> x = both.first(both.size() / 2), dx = both.subspan(x.size());
    const std::size_t directions = x.size() - given;
    std::vector<Tensor> all(x.begin(), x.end());
    const Tensor here = differentiable_cofactors(all, where);
    all.insert(all.begin(), dx[directions]);
    Tensor change = differentiable_cofactors(all, where);
    for (std::size_t i = 0; i < directions; ++i) {
      all.assign(x.begin(), x.end());
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      all.insert(all.begin(), dx[i]);
      change = change + differentiable_cofactors(all, where);
    }
    return std::vector<Tensor>{here, change};
  };
  if (x.size() == given) return custom_jvp_flat(value, rule, x, where)[0];
  const FlatFunction transpose = [where](std::span<const Tensor> x) {
    const UserLine line(where);
    return std::vector<Tensor>{differentiable_cofactors({x.begin(), x.end()}, where)};
  };
  return custom_jvp_flat(value, rule, x, where, false, transpose, 1)[0];
}

/// differentiable_cofactors of a, from singular values: right at every rank and to every order, but
/// slow.
inline Tensor cofactors_by_singular_values(const Tensor& a, std::vector<Tensor> directions,
                                           CallSite where) {
  // Of rows and columns of like sizes, as elimination does not mind sizes either.
  const Tensor m = stop_gradient(a);
  const auto inverse_sizes = [&](const Tensor& x, int axis) {
    const Tensor size = max(abs(x), axis, true);
    return 1.0 / vt::where(size == 0, 1.0, size);
  };
  const Tensor by_row = inverse_sizes(m, -1), by_column = inverse_sizes(m * by_row, -2);
  const std::vector<Tensor> parts = decomposed(Op::svd, m * by_row * by_column, {}, where);
  // rounding errors
  const Tensor &s = parts[1],
               none = s <= epsilon(a.dtype()) * static_cast<double>(a.dim(-1)) * max(s, -1, true);
  const Tensor unitary = matmul(parts[0], parts[2]),
               turn = sign(determinant(factors(unitary, where), where));
  const Tensor left = adjoint(parts[0]) * matrix_transpose(by_row),
               right = adjoint(parts[2]) * matrix_transpose(by_column);
  const Tensor factor = turn / (prod(by_row, {-2, -1}) * prod(by_column, {-2, -1}));
  directions.insert(directions.end(), {a, left, vt::where(none, 0.0, s), right, factor});
  return differentiable_cofactors(directions, where);
}

/// f of each matrix of a batch, so that each goes its own way. x: [..., n, n] and [..., n], the
/// first one matrices.
inline Tensor for_each_matrix(const FlatFunction& f, std::span<const Tensor> x, CallSite where) {
  const Shape batch = batch_of(x[0]);
  if (batch.rank() == 0) return f(x)[0];
  const auto own = [&](const Tensor& t, std::size_t skipped, Shape shape) {
    shape.append(t.shape().begin() + static_cast<std::ptrdiff_t>(skipped), t.shape().end());
    return shape;
  };
  std::vector<Tensor> flat;
  for (const Tensor& t : x)
    flat.push_back(reshaped(t, own(t, batch.size(), Shape{batch.elements()}), where));
  const Vec<MappedAxis> axes(x.size(), MappedAxis(0));
  VmapCall call;
  call.arguments = flat;
  call.in_axes = axes;
  call.where = where;
  const Tensor result = vmap_flat(f, call)[0];
  return reshaped(result, own(result, 1, batch), where);
}

/// Is the inverse of a of use? Not if pivots are small beside others, or the determinant is 0 or no
/// number of its dtype.
inline Tensor is_regular(const Factors& f, double tolerance, CallSite where) {
  const Tensor sizes = abs(diagonals(f.lu, where)), size = abs(determinant(f, where));
  return (min(sizes, -1) > tolerance * max(sizes, -1)) & (size > 0) & isfinite(size);
}
inline Tensor inverse(const Tensor& a, const Factors& f, CallSite where) {
  return solved(a, f, broadcast(eye(a.dim(-1), a.dtype(), where), a.shape(), where), where);
}

inline std::vector<Tensor> determinant_value(const Tensor&, const Factors& f, CallSite where) {
  return {determinant(f, where)};
}
inline std::vector<Tensor> determinant_along(const std::vector<Tensor>&, const Tensor&,
                                             const Factors&, const Tensor&, CallSite);
/// det(a) a⁻¹ transposed: its elements times those of da sum to the derivative of det(a) along da.
/// By singular values only where it must be.
inline std::vector<Tensor> cofactors_value(const Tensor& a, const Factors& f, CallSite where) {
  const FlatFunction each = [where](std::span<const Tensor> x) {
    const Tensor& a = x[0];
    const Factors f{x[1], x[2], x[3]};
    const auto by_factors = [&] {
      return determinant(f, where) * matrix_transpose(inverse(a, f, where));
    };
    const double tolerance = std::sqrt(epsilon(a.dtype()));
    return std::vector<Tensor>{cond(is_regular(f, tolerance, where), by_factors,
                                    [&] { return cofactors_by_singular_values(a, {}, where); })};
  };
  return {for_each_matrix(each, std::vector<Tensor>{a, f.lu, f.pivots, f.permutation}, where)};
}
/// Two terms cancel where a is nearly singular, so that more matrices need singular values than
/// above.
inline std::vector<Tensor> cofactors_along(const std::vector<Tensor>&, const Tensor& a,
                                           const Factors& f, const Tensor& da, CallSite where) {
  const FlatFunction each = [where](std::span<const Tensor> x) {
    const Tensor &a = x[0], &da = x[4];
    const Factors f{x[1], x[2], x[3]};
    const auto by_factors = [&] {
      const Tensor det = of_factors({determinant_value, determinant_along}, a, f, where)[0],
                   before = inverse(a, f, where);
      const Tensor change = solved(a, f, da, where);
      return det * matrix_transpose(traces(change, where) * before - matmul(change, before));
    };
    const double tolerance = real_dtype(a.dtype()) == f64 ? 1e-3 : 1e-2;
    return std::vector<Tensor>{cond(is_regular(f, tolerance, where), by_factors,
                                    [&] { return cofactors_by_singular_values(a, {da}, where); })};
  };
  return {for_each_matrix(each, std::vector<Tensor>{a, f.lu, f.pivots, f.permutation, da}, where)};
}
inline std::vector<Tensor> determinant_along(const std::vector<Tensor>&, const Tensor& a,
                                             const Factors& f, const Tensor& da, CallSite where) {
  return {sum(of_factors({cofactors_value, cofactors_along}, a, f, where)[0] * da, {-2, -1})};
}

inline void need_known(std::string_view function, const std::optional<vt::linalg::NormOrd>& ord,
                       const Tensor& x, CallSite where) {
  constexpr std::string_view known[] = {"fro", "nuc"};
  if (ord && ord->kind == vt::linalg::NormOrd::Kind::unknown)
    refuse(ErrorKind::value, function,
           formatted("there is no norm \"{}\"{}; \"fro\" and \"nuc\" are all that have a name",
                     ord->name, did_you_mean(ord->name, known)),
           x, where);
}

inline Tensor matrix_norm(const Tensor& x, const vt::linalg::NormOrd& ord, CallSite where) {
  using Kind = vt::linalg::NormOrd::Kind;
  if (ord.kind == Kind::frobenius) return vt::linalg::vector_norm(x, 2, Axes{-2, -1});
  const double size = std::fabs(ord.p);
  const auto extreme = [&](const Tensor& t) {
    if (t.dim(-1) == 0)
      refuse(ErrorKind::shape, "linalg::norm", "no elements to choose from", x, where);
    return ord.p > 0 ? max(t, -1) : min(t, -1);
  };
  if (ord.kind == Kind::number && (size == 1 || __builtin_isinf(size)))
    return extreme(sum(abs(x), size == 1 ? -2 : -1));
  if (ord.kind == Kind::number && size != 2)
    refuse(ErrorKind::value, "linalg::norm", formatted("there is no norm {} of matrices", ord.p), x,
           where);
  // At the zero matrix all derivatives are 0; a matrix with singular values that differ stands in
  // for it.
  const Tensor none = all(x == 0, Axes{-2, -1}, true),
               row = counted(i32, x.shape(), x.rank() - 2, where);
  const Tensor apart = vt::where(row == counted(i32, x.shape(), x.rank() - 1, where), row + 1, 0);
  const Tensor s =
      vt::where(squeeze(none, {-1}), 0.0,
                vt::linalg::svdvals(Operand(vt::where(none, cast(apart, x.dtype(), where), x))));
  if (ord.kind != Kind::nuclear || s.dim(-1) == 0)
    return ord.kind == Kind::nuclear ? sum(s, -1) : extreme(s);
  // What is no more than a rounding error is a length of 0.
  const double tolerance = epsilon(x.dtype()) * static_cast<double>(std::max(x.dim(-1), x.dim(-2)));
  return sum(vt::where(s <= tolerance * max(s, -1, true), 0.0, s), -1);
}

/// Coefficients of the diagonal Padé approximant of degree m, and up to which norm it needs no
/// scaling (Higham 2005, table 2.3; f32: 2.2).
struct Pade {
  int degree;
  double theta;
};
inline Pade pade_for(DType d) {
  return real_dtype(d) == f64 ? Pade{13, 5.371920351148152} : Pade{7, 3.925724783138660};
}

/// Numerator (odd powers in u, even ones in v): e^x ≈ (v − u)⁻¹ (v + u).
inline Tensor pade(const Tensor& x, int m, CallSite where) {
  Vec<double> c{1};
  for (int j = 1; j <= m; ++j)
    c.push_back(c.back() * (m - j + 1) / (static_cast<double>(2 * m - j + 1) * j));
  const Tensor one = broadcast(eye(x.dim(-1), x.dtype(), where), x.shape(), where);
  std::vector<Tensor> even{one, matmul(x, x)};
  while (static_cast<int>(even.size()) <= std::min(m / 2, 3))
    even.push_back(matmul(even.back(), even[1]));
  // Σ c[first + 2 i] x^(2 (i − from)), from ≤ i ≤ to
  const auto series = [&](int first, int from, int to) {
    Tensor total;
    for (int i = from; i <= to; ++i) {
      const Tensor term = even[i - from] * c[first + 2 * i];
      total = total.defined() ? total + term : term;
    }
    return total;
  };
  const int top = m / 2;
  Tensor odd = series(1, 0, std::min(top, 3)), v = series(0, 0, std::min(top, 3));
  if (top > 3) {
    const auto high = [&](int first) {  // times x⁶, so that powers up to it suffice
      Tensor total;
      for (int i = 4; i <= top; ++i) {
        const Tensor term = even[i - 3] * c[first + 2 * i];
        total = total.defined() ? total + term : term;
      }
      return matmul(even[3], total);
    };
    odd = odd + high(1);
    v = v + high(0);
  }
  const Tensor u = matmul(x, odd), below = v - u;
  return solved(below, factors(below, where), v + u, where);
}

}  // namespace vt::detail::linalg

namespace vt::linalg {

namespace la = detail::linalg;
using detail::Op;

Tensor det(Operand a) {
  const CallSite w = detail::user_line(a.where);
  const detail::UserLine line(w);
  const Tensor x = la::square("det", a, w);
  const std::int64_t n = x.dim(-1);
  if (n == 0)
    return detail::full_tensor(detail::Scalar(1.0).converted(x.dtype()),
                               detail::Aval(x.dtype(), la::batch_of(x)));
  if (n > 3)
    return la::of_factors({la::determinant_value, la::determinant_along}, x, la::factors(x, w),
                          w)[0];
  return detail::custom_jvp_flat(
      [w](std::span<const Tensor> m) {
        const detail::UserLine of_call(w);
        return std::vector<Tensor>{la::small_determinant(m[0], w)};
      },
      [w](std::span<const Tensor> m) {
        const detail::UserLine of_call(w);
        return std::vector<Tensor>{det(Operand(m[0], w.file, w.line)),
                                   la::small_determinant_along(m[0], m[1], w)};
      },
      std::span<const Tensor>(&x, 1), w)[0];
}

SlogdetResult slogdet(Operand a) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor x = la::square("slogdet", a, w);
  const std::vector<Tensor> results = la::of_factors(
      {la::sign_and_logarithm, la::sign_and_logarithm_along}, x, la::factors(x, w), w);
  return {results[0], results[1]};
}

Tensor matrix_rank(Operand a, std::optional<Param<double>> rtol) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor x = la::matrices("matrix_rank", a, w);
  const Tensor s = svdvals(Operand(x));
  if (s.dim(-1) == 0) return zeros(la::batch_of(x), i32, w);
  const double tolerance =
      rtol.value_or(la::epsilon(x.dtype()) * static_cast<double>(std::max(x.dim(-1), x.dim(-2))));
  return sum(detail::cast(s > tolerance * max(s, -1, true), i32, w), -1);
}

NormOrd::NormOrd(const char* given) : name(given) {
  kind = name == "fro" ? Kind::frobenius : name == "nuc" ? Kind::nuclear : Kind::unknown;
}

Tensor norm(Operand x, std::optional<NormOrd> ord, const ReduceAxes& axes, bool keepdims) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("linalg::norm", x.tensor, w);
  la::need_known("linalg::norm", ord, x.tensor, w);
  if (!ord) return vector_norm(x, 2, axes, keepdims);
  const int rank = x.tensor.rank();
  Axes along;
  if (axes.all()) along = Axes::first(rank);
  else along = detail::normal_axes("linalg::norm", axes.axes(), rank, x.tensor, w);
  if (along.size() == 1) {
    if (ord->kind != NormOrd::Kind::number)
      detail::refuse(ErrorKind::value, "linalg::norm", "\"fro\" and \"nuc\" are norms of matrices",
                     x.tensor, w);
    return vector_norm(x, ord->p, along, keepdims);
  }
  if (along.size() != 2)
    detail::refuse(ErrorKind::shape, "linalg::norm",
                   detail::formatted("needs one axis or two, not {}", along.size()), x.tensor, w);
  const Tensor a = ord->kind == NormOrd::Kind::number && std::fabs(ord->p) != 2
                       ? detail::to_float(x.tensor, w)
                       : la::matrix("linalg::norm", x, w);
  const Tensor result = la::matrix_norm(moveaxis(a, along, Axes{-2, -1}), *ord, w);
  if (!keepdims) return result;
  Shape shape = x.tensor.shape();
  for (int axis : along) shape[axis] = 1;
  return detail::reshaped(result, shape, w);
}

Tensor cond(Operand a, std::optional<NormOrd> p) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const bool spectral = !p || (p->kind == NormOrd::Kind::number && std::fabs(p->p) == 2);
  if (!spectral) {
    const Tensor x = la::square("linalg::cond", a, w);
    return norm(Operand(x), p, {-2, -1}) * norm(Operand(inv(Operand(x))), p, {-2, -1});
  }
  const Tensor s = svdvals(a);
  if (s.dim(-1) == 0)
    detail::refuse(ErrorKind::shape, "linalg::cond", "the matrix is empty", a.tensor, w);
  const Tensor ratio = max(s, -1) / min(s, -1);
  return p && p->p < 0 ? 1.0 / ratio : ratio;
}

Tensor tensorsolve(Operand a, Operand b) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor x = la::matrix("tensorsolve", a, w), right = la::matrix("tensorsolve", b, w);
  if (x.rank() < right.rank())
    detail::refuse(ErrorKind::shape, "tensorsolve", "the right side has too many axes", x, right,
                   w);
  const Shape unknown(
      std::span<const std::int64_t>(x.shape().begin() + right.rank(), x.shape().end()));
  if (unknown.elements() != right.size())
    detail::refuse(ErrorKind::shape, "tensorsolve", "there are not as many unknowns as equations",
                   x, right, w);
  const std::int64_t n = right.size();
  return detail::reshaped(
      solve(detail::reshaped(x, Shape{n, n}, w), detail::reshaped(right, Shape{n}, w)), unknown, w);
}

Tensor tensorinv(Operand a, Param<int> ind) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor x = la::matrix("tensorinv", a, w);
  if (ind <= 0 || ind > x.rank())
    detail::refuse(ErrorKind::value, "tensorinv",
                   detail::formatted("ind must be between 1 and the rank, not {}", ind), x, w);
  const Shape &s = x.shape(),
              front(std::span<const std::int64_t>(s.begin(), static_cast<std::size_t>(ind))),
              back(std::span<const std::int64_t>(s.begin() + ind, s.end()));
  if (front.elements() != back.elements())
    detail::refuse(ErrorKind::shape, "tensorinv", "the axes before and after ind differ in size", x,
                   w);
  const std::int64_t n = front.elements();
  Shape transposed = back;
  transposed.append(front.begin(), front.end());
  return detail::reshaped(inv(detail::reshaped(x, Shape{n, n}, w)), transposed, w);
}

Tensor expm(Operand x) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const Tensor a = la::square("expm", x, w);
  if (a.size() == 0) return a;
  const la::Pade p = la::pade_for(a.dtype());
  // A number that is not finite is not scaled away; halving is exact.
  const Tensor size = stop_gradient(max(sum(abs(a), -2), -1));
  const Tensor wanted = clip(ceil(log2(size / p.theta)), 0.0, 1100.0);
  const Tensor halvings = detail::cast(vt::where(isfinite(size) & (size > 0), wanted, 0.0), i32, w);
  const Tensor each = expand_dims(halvings, {-1, -2});
  const Tensor half = a * exp2(-detail::cast(each, real_dtype(a.dtype()), w));
  const Tensor start = la::pade(half, p.degree, w);
  return fori_loop(
      Tensor(0), max(halvings),
      [&](Tensor i, Tensor r) { return vt::where(i < each, matmul(r, r), r); }, start);
}

Tensor multi_dot(TensorSpan factors, CallSite where) {
  const detail::UserLine line(where);
  const std::size_t n = factors.size();
  if (n < 2)
    detail::refuse(ErrorKind::value, "multi_dot", "needs at least two factors", factors, where);
  std::vector<Tensor> parts(factors.begin(), factors.end());
  for (std::size_t i = 0; i < n; ++i) {
    detail::need("multi_dot", parts[i], where);
    const int rank = parts[i].rank();
    if (rank != 2 && (rank != 1 || (i > 0 && i + 1 < n)))
      detail::refuse(
          ErrorKind::shape, "multi_dot",
          "factors must be matrices, but for the first and the last, which may be vectors",
          parts[i], where);
  }
  const bool row = parts[0].rank() == 1, column = parts[n - 1].rank() == 1;
  if (row) parts[0] = expand_dims(parts[0], 0);
  if (column) parts[n - 1] = expand_dims(parts[n - 1], -1);
  for (std::size_t i = 0; i + 1 < n; ++i)
    if (parts[i].dim(1) != parts[i + 1].dim(0))
      detail::refuse(ErrorKind::shape, "multi_dot", "neighbouring factors do not fit", parts[i],
                     parts[i + 1], where);
  // least[i][j]: what multiplying i … j costs; split: after which factor the last product is
  // (Godbole 1973).
  Vec<Vec<double>> least(n, Vec<double>(n, 0));
  Vec<Vec<std::size_t>> split(n, Vec<std::size_t>(n, 0));
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t j = i + length;
      for (std::size_t k = i; k < j; ++k) {
        const double cost = least[i][k] + least[k + 1][j] +
                            static_cast<double>(parts[i].dim(0)) *
                                static_cast<double>(parts[k].dim(1)) *
                                static_cast<double>(parts[j].dim(1));
        if (k > i && cost >= least[i][j]) continue;
        least[i][j] = cost;
        split[i][j] = k;
      }
    }
  const detail::Function<Tensor(std::size_t, std::size_t)> product = [&](std::size_t i,
                                                                         std::size_t j) {
    return i == j ? parts[i] : matmul(product(i, split[i][j]), product(split[i][j] + 1, j));
  };
  Tensor result = product(0, n - 1);
  if (column) result = squeeze(result, {-1});
  return row ? squeeze(result, {0}) : result;
}

}  // namespace vt::linalg
