// Derivatives of linear algebra are those of the very thing returned: of each function, real and
// complex, both modes and the second order against differences; and those of determinants against
// minors, at every rank.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using vt_test::expect_close;
using C = std::complex<double>;
namespace la = vt::linalg;
using Function = std::function<Tensor(Tensor)>;

Tensor random(vt::DType d, const Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
Tensor adjoint(const Tensor& x) { return vt::conj(vt::swapaxes(x, -1, -2)); }
Tensor definite(const Tensor& x) {
  return vt::matmul(x, adjoint(x)) + vt::eye(x.dim(-1), x.dtype());
}

struct Row {
  const char* name;
  Function f;
  std::vector<Shape> shapes;
};

/// Everything in vt/linalg.hpp that has a derivative, whole: vectors with their signs and phases,
/// factors with those of their diagonals.
std::vector<Row> rows() {
  const Shape square{4, 4}, tall{5, 3}, wide{3, 5};
  const std::vector<Shape> any{square, tall, wide};
  const auto right = [](const Tensor& x, std::int64_t n) { return random(x.dtype(), {n, 2}, 5); };
  const auto triangular = [=](bool lower, int trans, bool unit) {
    return [=](Tensor x) { return la::solve_triangular(x, right(x, 4), trans, lower, unit); };
  };
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<Row> all = {
      {"cholesky", [](Tensor x) { return la::cholesky(definite(x)); }, {square}},
      {"cholesky, upper, of what is not symmetric",
       [](Tensor x) { return la::cholesky(x + 6.0 * vt::eye(4), true); },
       {square}},
      {"cho_solve",
       [=](Tensor x) { return la::cho_solve(la::cho_factor(definite(x)), right(x, 4)); },
       {square}},
      {"lu", [](Tensor x) { return la::lu(x).lu; }, any},
      {"lu_solve", [=](Tensor x) { return la::lu_solve(la::lu_factor(x), right(x, 4)); }, {square}},
      {"lu_solve, transposed",
       [=](Tensor x) { return la::lu_solve(la::lu_factor(x), right(x, 4), true); },
       {square}},
      {"q", [](Tensor x) { return la::qr(x).q; }, any},
      {"r", [](Tensor x) { return la::qr(x).r; }, any},
      {"complete q", [](Tensor x) { return la::qr(x, "complete").q; }, {square, wide}},
      {"eigh's values", [](Tensor x) { return la::eigvalsh(x); }, {square}},
      {"eigh's vectors", [](Tensor x) { return la::eigh(x).eigenvectors; }, {square}},
      {"eig's values", [](Tensor x) { return la::eigvals(x); }, {square}},
      {"eig's vectors", [](Tensor x) { return la::eig(x).eigenvectors; }, {square}},
      {"u", [](Tensor x) { return la::svd(x, false).u; }, any},
      {"vh", [](Tensor x) { return la::svd(x, false).vh; }, any},
      {"u of a full svd", [](Tensor x) { return la::svd(x).u; }, {square}},
      {"vh of a full svd", [](Tensor x) { return la::svd(x).vh; }, {square}},
      {"singular values", [](Tensor x) { return la::svdvals(x); }, any},
      {"solve", [=](Tensor x) { return la::solve(x, right(x, 4)); }, {square}},
      {"solve for the matrix",
       [](Tensor x) { return la::solve(x + 3.0 * vt::eye(4), x); },
       {square}},
      {"inv", [](Tensor x) { return la::inv(x); }, {square}},
      {"triangular_solve of a row",
       [](Tensor x) {
         return la::triangular_solve(x + 2.0 * vt::eye(4), x,
                                     {.lower = true, .transpose_a = true, .unit_diagonal = true});
       },
       {square}},
      {"tridiagonal_solve",
       [=](Tensor x) { return la::tridiagonal_solve(x[0], x[1] + 3.0, x[2], right(x, 4)); },
       {square}},
      {"lstsq", [=](Tensor x) { return la::lstsq(x, right(x, x.dim(0))).x; }, any},
      {"lstsq's residuals", [=](Tensor x) { return la::lstsq(x, right(x, x.dim(0))).residuals; },
       any},
      {"lstsq of a smaller rank",
       [=](Tensor x) {
         const Tensor a = vt::matmul(x, vt::matrix_transpose(x[vt::slice(0, 2)]));
         return la::lstsq(a, vt::matmul(x, right(x, x.dim(1)))).x;
       },
       any},
      {"lstsq of a smaller rank, wide",
       [=](Tensor x) {
         const Tensor a =
             vt::matmul(vt::slice_in_dim(x[vt::slice(0, 3)], 0, 2, -1), x[vt::slice(0, 2)]);
         return la::lstsq(a, right(x, 3)).x;
       },
       any},
      {"lstsq's right side", [=](Tensor x) { return la::lstsq(right(x, x.dim(0)), x).x; }, any},
      {"pinv", [](Tensor x) { return la::pinv(x); }, any},
      {"pinv of a smaller rank",
       [](Tensor x) { return la::pinv(vt::matmul(x, vt::matrix_transpose(x[vt::slice(0, 2)]))); },
       any},
      {"tensorinv", [](Tensor x) { return la::tensorinv(vt::reshape(x, {2, 2, 4}), 2); }, {square}},
      {"det", [](Tensor x) { return la::det(x); }, {square, {1, 1}, {2, 2}, {3, 3}, {6, 6}}},
      {"slogdet's sign", [](Tensor x) { return la::slogdet(x).sign; }, {square}},
      {"slogdet's logarithm", [](Tensor x) { return la::slogdet(x).logabsdet; }, {square}},
      {"expm", [](Tensor x) { return la::expm(x); }, {square}},
      {"expm with squarings", [](Tensor x) { return la::expm(6.0 * x); }, {{2, 2}}},
      {"matrix_power 0", [](Tensor x) { return la::matrix_power(x, 0) + 0.0 * x; }, {square}},
      {"matrix_power 3", [](Tensor x) { return la::matrix_power(x, 3); }, {square}},
      {"matrix_power −2", [](Tensor x) { return la::matrix_power(x, -2); }, {square}},
      {"multi_dot",
       [](Tensor x) { return la::multi_dot({x, vt::matrix_transpose(x), x[0]}); },
       {square}},
      {"cond", [](Tensor x) { return la::cond(x); }, any},
      {"cond by columns", [](Tensor x) { return la::cond(x, 1); }, {square}},
      {"norm of columns", [](Tensor x) { return la::norm(x, 1); }, any},
      {"norm of rows", [=](Tensor x) { return la::norm(x, -inf); }, any},
      {"Frobenius norm", [](Tensor x) { return la::norm(x, "fro"); }, any},
      {"nuclear norm", [](Tensor x) { return la::norm(x, "nuc", {0, 1}, true); }, any},
      {"spectral norm", [](Tensor x) { return la::norm(x, 2); }, any},
      {"least singular value", [](Tensor x) { return la::norm(x, -2); }, any},
  };
  for (const double p : {1.0, 1.5, 2.0, 3.0, 4.0, -1.0, inf, -inf})
    all.push_back({"norm of vectors", [p](Tensor x) { return la::norm(x, p, 1); }, any});
  for (const bool lower : {false, true})
    for (const bool unit : {false, true})
      for (const int trans : {0, 1, 2})
        all.push_back({"solve_triangular", triangular(lower, trans, unit), {square}});
  return all;
}

/// Re Σ a b: transposed maps are not conjugated.
Tensor paired(const Tensor& a, const Tensor& b) {
  return vt::real(vt::sum(a * b).astype(vt::c128));
}

TEST(LinalgDerivatives, AreThoseOfTheResults) {
  const double h = 1e-5;
  for (const Row& row : rows())
    for (const Shape& shape : row.shapes)
      for (const vt::DType d : {vt::f64, vt::c128}) {
        // compiling takes longer
        if (vt_test::forced_backend() == "cpu" && !vt::is_complex(d)) continue;
        SCOPED_TRACE(std::string(row.name) + " of " + std::string(vt::name_of(d)) + shape.str());
        const Tensor at = random(d, shape, 11), along = random(d, shape, 12),
                     across = random(d, shape, 13);
        const auto slope = [&](Tensor x, Tensor dx) {
          return vt::jvp(row.f, std::tuple(x), std::tuple(dx)).second;
        };
        const auto difference = [&](const Function& g, const Tensor& dx) {
          return (g(at + h * dx) - g(at - h * dx)) / (2 * h);
        };
        const Tensor first = slope(at, along), size = 1.0 + vt::max(vt::abs(first));
        expect_close(first / size, difference(row.f, along) / size, {.absolute = 1e-6});
        const Tensor bar = random(row.f(at).dtype(), row.f(at).shape(), 14);
        const auto pulled = [&](Tensor x) { return vt::vjp(row.f, x).second(bar); };
        const Tensor back = pulled(at);
        EXPECT_EQ(back.dtype(), d);
        expect_close(paired(back, along), paired(bar, first),
                     {.relative = 1e-9, .absolute = 1e-9 * size.item<double>()});
        // The values that come with derivatives have them, too.
        const auto beside = [&](Tensor x) {
          return vt::jvp(row.f, std::tuple(x), std::tuple(across)).first;
        };
        expect_close(vt::jvp(beside, std::tuple(at), std::tuple(along)).second, first,
                     {.relative = 1e-12, .absolute = 1e-12});
        // Forward over forward and over reverse.
        const Tensor second =
            vt::jvp([&](Tensor x) { return slope(x, along); }, std::tuple(at), std::tuple(across))
                .second;
        const Tensor far = 1.0 + vt::max(vt::abs(second));
        expect_close(second / far,
                     difference([&](Tensor x) { return slope(x, along); }, across) / far,
                     {.absolute = 1e-6});
        const Tensor bent = vt::jvp(pulled, std::tuple(at), std::tuple(across)).second;
        expect_close(paired(bent, along), paired(bar, second),
                     {.relative = 1e-8, .absolute = 1e-8 * far.item<double>()});
        // Second derivatives do not mind the order: reverse over reverse.
        expect_close(paired(vt::vjp(pulled, at).second(along), across), paired(bent, along),
                     {.relative = 1e-8, .absolute = 1e-8 * far.item<double>()});
      }
}

// The first element of a vector that is no smaller than 0.37 of its largest is positive, and stays
// so along any curve: whichever row that is, in each dtype, compiled and in lanes.
TEST(LinalgDerivatives, VectorsKeepTheirPhase) {
  for (const vt::DType d : {vt::c64, vt::c128})
    for (const auto& [m, n] :
         {std::pair(3, 3), std::pair(5, 3), std::pair(3, 5), std::pair(1, 4), std::pair(4, 1)}) {
      SCOPED_TRACE(std::string(vt::name_of(d)) + " " + std::to_string(m) + " × " +
                   std::to_string(n));
      const std::int64_t k = std::min(m, n);
      // Beside a diagonal the vectors are near those of the basis, each with its own row; or of all
      // rows alike.
      const Tensor apart = vt::diag(vt::arange(1, k + 1).astype(d) * C(0, 1)),
                   padded = vt::pad(apart, {{0, m - k}, {0, n - k}});
      const Tensor a = vt::stack({random(d, {m, n}, 21), padded + 0.1 * random(d, {m, n}, 22),
                                  random(d, {m, n}, 23), 3.0 * padded.astype(d)});
      const Tensor along = random(d, {4, m, n}, 24);
      const auto vectors = [=](Tensor x) -> std::vector<Tensor> {
        const la::SvdResult s = la::svd(x, false);
        std::vector<Tensor> all{m < n ? adjoint(s.vh) : s.u};
        if (m == n)
          all.push_back(
              la::eigh(vt::real(x) + C(0, 1) * vt::imag(x) + vt::diag(vt::arange(m).astype(d)))
                  .eigenvectors);
        return all;
      };
      const auto moved = [=](Tensor x, Tensor dx) {
        return vt::jvp(vectors, std::tuple(x), std::tuple(dx));
      };
      const auto together = vt::vmap(moved);
      for (const auto& [v, dv] :
           {together(a, along), vt::jit(together)(a, along), vt::jit(together)(a, along)})
        for (std::size_t i = 0; i < v.size(); ++i) {
          const Tensor size = vt::abs(v[i]),
                       large = (size >= 0.37 * vt::max(size, 1, true)).astype(vt::i32);
          const Tensor first = vt::argmax(large, 1, true),
                       fixed = vt::take_along_axis(v[i], first, 1);
          const vt_test::Tolerance near = {.absolute = d == vt::c128 ? 1e-13 : 1e-5};
          expect_close(vt::imag(fixed), vt::zeros_like(vt::imag(fixed)), near);
          EXPECT_TRUE(vt::all(vt::real(fixed) > 0).item<bool>());
          const Tensor transposed =
              vt::imag(vt::take_along_axis(dv[i], first, 1)) / (1.0 + vt::max(vt::abs(dv[i])));
          expect_close(transposed, vt::zeros_like(transposed), near);
          // Their length stays as well.
          const Tensor grown =
              vt::real(vt::sum(vt::conj(v[i]) * dv[i], 1)) / (1.0 + vt::max(vt::abs(dv[i])));
          expect_close(grown, vt::zeros_like(grown), near);
        }
    }
  // A curve of Hermitian matrices.
  const auto curve = [](Tensor t) {
    const Tensor phase = vt::complex(vt::cos(t), vt::sin(t)), one = vt::ones_like(phase);
    return la::eigh(vt::reshape(vt::stack({one, phase, vt::conj(phase), 3.0 * one}), {2, 2}))
        .eigenvectors;
  };
  const Tensor at = vt::tensor(0.4),
               slope = vt::jvp(curve, std::tuple(at), std::tuple(vt::tensor(1.0))).second;
  // It is D(t) A D(t)ᴴ with D = diag(1, exp(−it)).
  expect_close(slope, curve(at) * vt::tensor({{C(0)}, {C(0, -1)}}), {.absolute = 1e-14});
  expect_close(vt::jacobian(curve)(at), slope, {.absolute = 1e-12});
}

// All elements of a circulant matrix's eigenvectors are of one size, so that rounding decides which
// one is real: the derivative keeps that one.
TEST(LinalgDerivatives, EigenvectorsOfElementsOfOneSize) {
  for (const vt::DType d : {vt::f32, vt::f64, vt::c64, vt::c128})
    for (const std::int64_t n : {2, 3, 4, 6}) {
      const vt::DType part = vt::real_dtype(d);
      std::vector<Tensor> all;
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const Tensor row = random(d, {n}, seed);
        std::vector<Tensor> rows;
        for (std::int64_t i = 0; i < n; ++i) rows.push_back(vt::roll(row, i));
        all.push_back(vt::stack(rows));
      }
      const Tensor a = vt::stack(all), along = random(d, a.shape(), 51);
      const auto [v, dv] = vt::jvp([](Tensor x) { return la::eig(x).eigenvectors; }, std::tuple(a),
                                   std::tuple(along));
      const Tensor w = la::eigvals(a),
                   gaps = vt::abs(vt::expand_dims(w, -1) - vt::expand_dims(w, -2)) +
                          1e3 * vt::eye(n, part);
      const Tensor sizes = vt::max(vt::abs(dv), {1, 2}) * vt::min(gaps, {1, 2});
      EXPECT_TRUE(vt::all((sizes < 30.0) | (vt::min(gaps, {1, 2}) < 1e-3)).item<bool>())
          << vt::name_of(d) << " " << n << " " << sizes;
      const Tensor fixed = vt::argmax(vt::real(v), 1, true),
                   transposed = vt::imag(vt::take_along_axis(dv, fixed, 1));
      EXPECT_TRUE(vt::all(vt::abs(transposed) * vt::expand_dims(vt::min(gaps, {1, 2}), {1, 2}) <
                          (part == vt::f64 ? 1e-11 : 1e-3))
                      .item<bool>());
    }
}

// --- determinants --------------------------------------------------------------------------------

using Matrix = std::vector<std::vector<C>>;

C determinant(Matrix m) {
  C product = 1;
  for (std::size_t k = 0; k < m.size(); ++k) {
    std::size_t p = k;
    for (std::size_t i = k; i < m.size(); ++i)
      if (std::abs(m[i][k]) > std::abs(m[p][k])) p = i;
    if (m[p][k] == 0.0) return 0;
    if (p != k) std::swap(m[p], m[k]), product = -product;
    product *= m[k][k];
    for (std::size_t i = k + 1; i < m.size(); ++i)
      for (std::size_t j = m.size(); j-- > k;) m[i][j] -= m[i][k] / m[k][k] * m[k][j];
  }
  return product;
}

/// The derivative of the determinant by the elements at these places: a minor with its sign, 0
/// where two are of one row or column.
C by_elements(Matrix m, const std::vector<std::pair<int, int>>& places) {
  for (std::size_t a = 0; a < places.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (places[a].first == places[b].first || places[a].second == places[b].second) return 0;
  for (const auto& [i, j] : places) {
    for (std::size_t k = 0; k < m.size(); ++k) m[i][k] = m[k][j] = 0;
  }
  for (const auto& [i, j] : places) m[i][j] = 1;
  return determinant(m);
}

Tensor tensor_of(const Matrix& m, vt::DType d) {
  std::vector<C> all;
  for (const auto& row : m) all.insert(all.end(), row.begin(), row.end());
  const auto n = static_cast<std::int64_t>(m.size());
  const Tensor t = vt::tensor(all, {n, n});
  return vt::is_complex(d) ? t.astype(d) : vt::real(t).astype(d);
}

/// n × n matrices of small whole numbers: of every rank, with zero pivots at all places, and some
/// that have none.
std::vector<Matrix> matrices(int n, bool complex) {
  std::mt19937 random(static_cast<unsigned>(n));
  const auto number = [&] { return static_cast<double>(static_cast<int>(random() % 5) - 2); };
  const Matrix zero(static_cast<std::size_t>(n), std::vector<C>(static_cast<std::size_t>(n), 0));
  std::vector<Matrix> all;
  for (int rank = 0; rank <= n; ++rank) {
    Matrix sum = zero;
    for (int k = 0; k < rank; ++k) {
      std::vector<C> u, v;
      for (int i = 0; i < n; ++i)
        u.emplace_back(number(), complex ? number() : 0),
            v.emplace_back(number(), complex ? number() : 0);
      for (std::size_t i = 0; i < sum.size(); ++i)
        for (std::size_t j = 0; j < sum.size(); ++j) sum[i][j] += u[i] * v[j];
    }
    all.push_back(sum);
  }
  // ones above the diagonal, some left out; and with the corner, a permutation
  for (int gap = 0; gap <= 2; ++gap) {
    Matrix shift = zero;
    for (std::size_t i = 0; i + 1 < shift.size(); ++i)
      if (gap == 0 || static_cast<int>(i) % (gap + 1) != 0) shift[i][i + 1] = 1;
    all.push_back(shift);
    shift.back()[0] = complex ? C(0, 2) : C(2);
    all.push_back(shift);
  }
  Matrix diagonal = zero;
  // of unlike sizes, regular and not
  for (std::size_t i = 0; i < diagonal.size(); ++i)
    diagonal[i][i] = std::pow(8.0, static_cast<double>(i));
  all.push_back(diagonal);
  diagonal[0][0] = 0;
  all.push_back(diagonal);
  return all;
}

TEST(Determinants, DerivativesAreMinorsAtEveryRank) {
  const bool thorough = vt_test::forced_backend() == "interpreter";  // compiling takes longer
  for (const vt::DType d : {vt::f64, vt::c128})
    for (const int n : thorough ? std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
                                : std::vector<int>{2, 3, 4, 6}) {
      const std::vector<Matrix> all = matrices(n, vt::is_complex(d));
      std::vector<Tensor> lanes;
      for (const Matrix& m : all) lanes.push_back(tensor_of(m, d));
      const Tensor batch = vt::stack(lanes);
      std::vector<std::pair<int, int>> places;
      Function f = [](Tensor x) {
        const auto det = [](Tensor y) { return la::det(y); };
        return vt::is_complex(x.dtype()) ? vt::grad(det, {.holomorphic = true})(x)
                                         : vt::grad(det)(x);
      };
      for (int order = 1; order <= 3; ++order) {
        const Tensor together = vt::vmap(f)(batch), compiled = vt::jit(vt::vmap(f))(batch);
        for (std::size_t lane = 0; lane < all.size(); ++lane) {
          SCOPED_TRACE(std::string(vt::name_of(d)) + ", n = " + std::to_string(n) + ", order " +
                       std::to_string(order) + ", matrix " + std::to_string(lane));
          std::vector<C> minors;
          double size = 1;  // of the products that are summed
          for (const auto& row : all[lane]) {
            double length = 1;
            for (const C& x : row) length = std::max(length, std::abs(x));
            size *= std::max(1.0, length);
          }
          for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
              std::vector<std::pair<int, int>> by = places;
              by.emplace_back(i, j);
              minors.push_back(by_elements(all[lane], by));
            }
          const Tensor expected =
              vt::is_complex(d) ? vt::tensor(minors, {n, n}) : vt::real(vt::tensor(minors, {n, n}));
          const vt_test::Tolerance near = {.relative = 1e-11, .absolute = 1e-13 * size};
          expect_close(together[static_cast<std::int64_t>(lane)], expected, near);
          expect_close(compiled[static_cast<std::int64_t>(lane)], expected, near);
          if (thorough || lane % 4 == 0) expect_close(f(lanes[lane]), expected, near);
        }
        places.emplace_back(order % n, (order + 1) % n);
        Matrix unit(static_cast<std::size_t>(n), std::vector<C>(static_cast<std::size_t>(n), 0));
        unit[places.back().first][places.back().second] = 1;
        f = [f, along = tensor_of(unit, d)](Tensor x) {
          return vt::jvp(f, std::tuple(x), std::tuple(along)).second;
        };
      }
    }
}

TEST(Determinants, DerivativesOfAllModes) {
  const auto det = [](Tensor x) { return la::det(x); };
  const Tensor shift = vt::diag(vt::ones({3}, vt::f64), 1),
               corner = vt::reshape(vt::one_hot(vt::tensor(12), 16, vt::f64), {4, 4});
  expect_close(vt::grad(det)(shift), -corner);
  expect_close(vt::grad(det)(shift.astype(vt::f32)), -corner.astype(vt::f32));
  for (const vt::DType d : {vt::f32, vt::f64})
    expect_close(vt::grad(det)(vt::zeros({5, 5}, d)), vt::zeros({5, 5}, d));
  // Matrices of one batch.
  const auto total = [](Tensor x) { return vt::sum(la::det(x)); };
  const Tensor batch = vt::stack({shift, random(vt::f64, {4, 4}, 30), vt::ones({4, 4}, vt::f64)});
  for (const Tensor& g : {vt::grad(total)(batch), vt::jit(vt::grad(total))(batch)})
    for (int i = 0; i < 3; ++i) expect_close(g[i], vt::grad(det)(batch[i]), {.absolute = 1e-14});
  // The Hessian in each way, and at the zero matrix the fourth derivative alone is there.
  const Tensor h = vt::hessian(det)(shift);
  expect_close(vt::jacrev(vt::jacrev(det))(shift), h, {.absolute = 1e-14});
  expect_close(vt::jacfwd(vt::jacfwd(det))(shift), h, {.absolute = 1e-14});
  expect_close(vt::jacrev(vt::jacfwd(det))(shift), h, {.absolute = 1e-14});
  const auto reverse = vt::jacrev(vt::jacrev(vt::jacrev(det)));
  const auto forward = vt::jacrev(vt::jacfwd(vt::jacfwd(det)));
  for (const Tensor& x :
       {shift, vt::zeros({4, 4}, vt::f64), vt::ones({4, 4}, vt::f64), vt::eye(4, vt::f64) + shift})
    expect_close(reverse(x), forward(x), {.absolute = 1e-13});
  EXPECT_NEAR(h[0][1][3][0].item<double>(), -1.0, 1e-14);
  EXPECT_NEAR(h[0][0][3][1].item<double>(), 1.0, 1e-14);
  const auto along = [](Function f, Tensor dx) {
    return [=](Tensor x) { return vt::jvp(f, std::tuple(x), std::tuple(dx)).second; };
  };
  Function f = det;
  for (int i = 0; i < 4; ++i) f = along(f, vt::diag(vt::one_hot(vt::tensor(i), 4, vt::f64)));
  EXPECT_NEAR(f(vt::zeros({4, 4}, vt::f64)).item<double>(), 1, 1e-14);
  EXPECT_NEAR(f(random(vt::f64, {4, 4}, 31)).item<double>(), 1, 1e-13);
  // Of sizes far apart, nearly singular, or with a determinant that vanishes.
  const Tensor scale = vt::tensor({1e20, 1.0, 1e-15, 3.0}),
               far = vt::expand_dims(scale, 1) * (random(vt::f64, {4, 4}, 32) + vt::eye(4));
  expect_close(vt::grad(det)(far) * far, la::det(far) * vt::matrix_transpose(la::inv(far)) * far,
               {.relative = 1e-11});
  expect_close(vt::grad(det)(1e-90 * vt::eye(5, vt::f64)), vt::zeros({5, 5}, vt::f64),
               {.absolute = 1e-300});
  const auto gradient_of = [](Tensor x) {
    return vt::grad([](Tensor y) { return la::det(y); })(x);
  };
  EXPECT_TRUE(vt::all(vt::isnan(vt::vmap(gradient_of)(
                          vt::stack({shift, vt::full({4, 4}, std::nan(""), vt::f64)}))[1]))
                  .item<bool>());
}

// A sign of a singular matrix stays 0, its logarithm has no derivative; regular lanes beside it do
// not notice.
TEST(Determinants, LogarithmsInMixedLanes) {
  for (const vt::DType d : {vt::f64, vt::c128}) {
    const Tensor a = random(d, {5, 5}, 41),
                 singular = vt::where(vt::arange(5) == 1, vt::zeros_like(a), a),
                 lanes = vt::stack({a, singular, 2.0 * a});
    const auto change = [=](Tensor x) {
      return vt::jvp([](Tensor y) { return la::slogdet(y); }, std::tuple(x), std::tuple(a)).second;
    };
    for (const la::SlogdetResult& all : {vt::vmap(change)(lanes), vt::jit(vt::vmap(change))(lanes)})
      for (const int lane : {0, 2}) {
        expect_close(all.sign[lane], change(lanes[lane]).sign, {.absolute = 1e-13});
        expect_close(all.logabsdet[lane], vt::tensor(lane == 0 ? 5.0 : 2.5), {.relative = 1e-13});
        EXPECT_EQ(vt::abs(all.sign[1]).item<double>(), 0);
      }
    EXPECT_FALSE(vt::isfinite(change(singular).logabsdet).item<bool>());
  }
}

}  // namespace
