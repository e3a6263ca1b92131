// Linear algebra by what it promises: factors multiply to the matrix, systems are solved,
// derivatives are differences, lanes are a loop, compiled is interpreted; singular and empty
// matrices; wrong uses.
#include <vt/vt.hpp>

#include "support/compare_executors.hpp"
#include "support/message.hpp"

namespace {

namespace la = vt::linalg;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using Tensors = std::vector<Tensor>;

constexpr double inf = std::numeric_limits<double>::infinity();

Tensor general(const Shape& shape, std::uint64_t seed, DType d = vt::f64) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
Tensor transposed(const Tensor& x) { return vt::swapaxes(x, -1, -2); }
Tensor positive(const Shape& shape, std::uint64_t seed, DType d = vt::f64) {
  const Tensor x = general(shape, seed, d);
  return vt::matmul(x, transposed(x)) + vt::eye(shape.back(), d);
}
Tensor in_row(const Tensor& v) { return vt::expand_dims(v, -2); }

/// |a − b| ≤ c · size · epsilon · the largest element
void expect_near(const Tensor& a, const Tensor& b, double c, const std::string& what) {
  const double eps = a.dtype() == vt::f64 ? 0x1p-52 : 0x1p-23;
  double most = 1;
  for (double x : b.to_vector<double>()) most = std::max(most, std::fabs(x));
  vt_test::expect_close(a, b, {.absolute = c * eps * most}, what);
}
void expect_orthonormal(const Tensor& q, double c, const std::string& what) {
  const Tensor product = vt::matmul(transposed(q), q);
  expect_near(product, vt::broadcast_to(vt::eye(q.dim(-1), q.dtype()), product.shape()), c, what);
}

const std::vector<std::int64_t> sizes = {0, 1, 2, 3, 4, 5, 8, 13, 16, 17, 40};

TEST(Linalg, SquareFactorsMultiplyToTheMatrix) {
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : sizes)
      for (const Shape& batch : {Shape{}, Shape{3}, Shape{2, 19}}) {
        Shape shape = batch;
        shape.push_back(n);
        shape.push_back(n);
        const std::string what = std::string(vt::name_of(d)) + shape.str();
        const double c = 10.0 * static_cast<double>(n + 1);
        const Tensor a = positive(shape, 1, d), x = general(shape, 2, d);
        const Tensor l = la::cholesky(a);
        expect_near(vt::matmul(l, transposed(l)), a, c, "cholesky " + what);
        vt_test::expect_close(vt::tril(l), l, {}, "cholesky " + what);
        vt_test::expect_close(transposed(la::cholesky(a, true)), l);
        const la::EighResult e = la::eigh(x + transposed(x));
        expect_near(vt::matmul(x + transposed(x), e.eigenvectors),
                    e.eigenvectors * in_row(e.eigenvalues), c, "eigh " + what);
        expect_orthonormal(e.eigenvectors, c, "eigh " + what);
        expect_near(la::eigvalsh(x + transposed(x)), e.eigenvalues, c, "eigvalsh " + what);
        if (n > 1) {
          EXPECT_TRUE(vt::all(vt::diff(e.eigenvalues, 1, -1) >= 0).item<bool>()) << what;
        }
        if (n == 0) continue;
        const Tensor y = x + 2.0 * static_cast<double>(n) * vt::eye(n, d), b = general(shape, 3, d);
        expect_near(vt::matmul(y, la::solve(y, b)), b, 4 * c, "solve " + what);
        expect_near(vt::matmul(y, la::inv(y)), vt::broadcast_to(vt::eye(n, d), shape), 4 * c,
                    "inv " + what);
      }
}

// Backward errors that Eigen's decompositions of the same matrices have too: a few epsilons of the
// largest sum of a row of |L| |U|, for sizes beyond one panel, one block of panels, and rows that
// meet in the cache.
TEST(Linalg, LargeFactorsAreAsExactAsTheirDtype) {
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {67, 150, 256, 301}) {
      const std::string what = std::string(vt::name_of(d)) + " " + std::to_string(n);
      const Tensor x = general({n, n}, 7, d), a = positive({n, n}, 8, d),
                   b = general({n, 37}, 9, d);
      const Tensor wide_x = x.astype(vt::f64), wide_a = a.astype(vt::f64);
      const auto wide = [](const Tensor& t) { return t.astype(vt::f64); };
      const double eps = d == vt::f64 ? 0x1p-52 : 0x1p-23, root = std::sqrt(static_cast<double>(n));
      const auto expect_within = [&](const Tensor& error, const Tensor& bound, const char* of) {
        EXPECT_LE(vt::max(vt::abs(error)).item<double>(),
                  2 * eps * root * vt::max(bound).item<double>() + 1e-13 * (d == vt::f64))
            << of << " " << what;
      };
      const Tensor l = wide(la::cholesky(a));
      expect_within(vt::matmul(l, transposed(l)) - wide_a,
                    vt::matmul(vt::abs(l), transposed(vt::abs(l))), "cholesky");
      const la::LuResult f = la::lu(x);
      const Tensor lower = vt::tril(wide(f.lu), -1) + vt::eye(n, vt::f64),
                   upper = vt::triu(wide(f.lu)), bound = vt::matmul(vt::abs(lower), vt::abs(upper));
      EXPECT_LE(vt::max(vt::abs(lower)).item<double>(), 1) << what;
      expect_within(vt::matmul(lower, upper) - vt::take(wide_x, f.permutation, 0), bound, "lu");
      const Tensor solution = wide(la::solve(x, b));
      expect_within(vt::matmul(wide_x, solution) - wide(b),
                    3.0 * vt::matmul(bound, vt::abs(solution)), "solve");
      for (const bool low : {false, true})
        for (const bool across : {false, true}) {
          const Tensor t = low ? vt::tril(a) : vt::triu(a);
          const Tensor y = wide(
              la::triangular_solve(t, b, {.left_side = true, .lower = low, .transpose_a = across}));
          const Tensor one =
              wide(la::triangular_solve(t, vt::take(b, vt::tensor({0}), 1),
                                        {.left_side = true, .lower = low, .transpose_a = across}));
          const Tensor op = across ? transposed(wide(t)) : wide(t);
          expect_within(vt::matmul(op, y) - wide(b), vt::matmul(vt::abs(op), vt::abs(y)),
                        "triangular");
          expect_within(vt::matmul(op, one) - vt::take(wide(b), vt::tensor({0}), 1),
                        vt::matmul(vt::abs(op), vt::abs(one)), "triangular of one");
        }
      const DType numbers = d == vt::f64 ? vt::c128 : vt::c64;
      const la::EigResult e = la::eig(x);
      const Tensor beside = vt::matmul(x.astype(numbers), e.eigenvectors) -
                            e.eigenvectors * vt::expand_dims(e.eigenvalues, 0);
      expect_within(vt::abs(beside).astype(vt::f64), vt::full({1}, 2 * root, vt::f64), "eig");
      expect_within(vt::sum(vt::square(vt::abs(e.eigenvectors)), 0).astype(vt::f64) - 1.0,
                    vt::full({1}, 1.0, vt::f64), "lengths of eig");
      // They are those of x + e; |trace(e)| ≤ √n |e|, the norm of Frobenius, and that is a few
      // epsilons of x's.
      expect_within(vt::sum(vt::real(la::eigvals(x)).astype(vt::f64)) - vt::trace(wide_x),
                    vt::norm(wide_x), "eigvals");
      const la::QrResult qr = la::qr(x);
      expect_within(vt::matmul(wide(qr.q), wide(qr.r)) - wide_x, vt::full({1}, root, vt::f64),
                    "qr");
      expect_within(vt::matmul(transposed(wide(qr.q)), wide(qr.q)) - vt::eye(n, vt::f64),
                    vt::full({1}, 4.0, vt::f64), "q of qr");
    }
}

TEST(Linalg, FactorsOfAnyShapeMultiplyToTheMatrix) {
  for (DType d : {vt::f32, vt::f64})
    for (const Shape& shape : {Shape{4, 2}, Shape{2, 4}, Shape{3, 5, 5}, Shape{2, 30, 7},
                               Shape{7, 30}, Shape{0, 3}, Shape{3, 0}, Shape{1, 1}}) {
      const std::string what = std::string(vt::name_of(d)) + shape.str();
      const Tensor a = general(shape, 5, d);
      const std::int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
      const double c = 20.0 * static_cast<double>(std::max(m, n));
      for (const char* mode : {"reduced", "complete"}) {
        const la::QrResult f = la::qr(a, mode);
        EXPECT_EQ(f.q.dim(-1), mode[0] == 'r' ? k : m) << what;
        expect_near(vt::matmul(f.q, f.r), a, c, "qr " + what);
        expect_orthonormal(f.q, c, "qr " + what);
        vt_test::expect_close(vt::triu(f.r), f.r, {}, "qr " + what);
      }
      for (bool full : {false, true}) {
        const la::SvdResult f = la::svd(a, full);
        EXPECT_EQ(f.u.dim(-1), full ? m : k) << what;
        EXPECT_EQ(f.vh.dim(-2), full ? n : k) << what;
        expect_orthonormal(f.u, c, "svd " + what);
        expect_orthonormal(transposed(f.vh), c, "svd " + what);
        const Tensor u = vt::slice_in_dim(f.u, 0, k, -1), vh = vt::slice_in_dim(f.vh, 0, k, -2);
        expect_near(vt::matmul(u * in_row(f.s), vh), a, c, "svd " + what);
        expect_near(la::svdvals(a), f.s, c, "svdvals " + what);
      }
      const la::LuResult f = la::lu(a);
      Shape square = a.shape();
      square[square.size() - 1] = m;
      const Tensor l = vt::tril(vt::slice_in_dim(f.lu, 0, k, -1), -1),
                   u = vt::triu(vt::slice_in_dim(f.lu, 0, k, -2));
      const Tensor rows = vt::take_along_axis(
          a, vt::broadcast_to(vt::expand_dims(f.permutation, -1), a.shape()), -2);
      expect_near(vt::matmul(l + vt::broadcast_to(vt::eye(m, k, 0, d), l.shape()), u), rows, c,
                  "lu " + what);
    }
}

TEST(Linalg, ManyMatricesEqualOneByOne) {
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {1, 2, 3, 4, 7, 8, 16, 20}) {
      const std::int64_t lanes = 67;
      const Tensor a = positive({lanes, n, n}, 7, d), b = general({lanes, n, 2}, 8, d);
      const auto all = vt::jit([](Tensor x, Tensor y) {
        const la::EighResult e = la::eigh(x);
        return std::vector<Tensor>{la::cholesky(x), la::solve(x, y), e.eigenvalues, e.eigenvectors,
                                   la::inv(x)};
      });
      const Tensors together = all(a, b);
      for (std::int64_t i : {std::int64_t{0}, lanes / 2, lanes - 1}) {
        const Tensors one = all(a[i], b[i]);
        for (std::size_t k = 0; k < one.size(); ++k)
          expect_near(together[k][i], one[k], 40.0 * static_cast<double>(n) * (k == 3 ? 20 : 1),
                      std::to_string(n) + " result " + std::to_string(k));
      }
    }
}

// Results beyond all caches are stored past them: the same bits as those of a few matrices, also of
// the last ones, which fill no vector.
TEST(Linalg, VeryManyMatricesEqualFew) {
  const auto small = vt::jit([](Tensor x) { return la::cholesky(x); });
  if (vt::explain_steps(small)(positive({64, 8, 8}, 1)).rfind("interpreter", 0) == 0)
    GTEST_SKIP() << "no compiler here";
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {8, 16}) {
      const std::int64_t bytes = n * n * static_cast<std::int64_t>(vt::size_of(d)),
                         count = (std::int64_t{33} << 20) / bytes + 3, few = 101;
      const Tensor some = positive({few, n, n}, 7, d);
      const Tensor a = vt::take(some, vt::arange(count) % static_cast<int>(few), 0).eval();
      const auto cholesky = vt::jit([](Tensor x) { return la::cholesky(x); });
      const auto eigh = vt::jit([](Tensor x) { return la::eigh(x).eigenvectors; });
      const Tensor index = vt::arange(count) % static_cast<int>(few);
      for (const auto& f :
           {std::function<Tensor(Tensor)>(cholesky), std::function<Tensor(Tensor)>(eigh)}) {
        EXPECT_TRUE(vt::all(f(a) == vt::take(f(some), index, 0)).item<bool>())
            << vt::name_of(d) << " " << n;
        if (n == 16) break;
      }
    }
}

TEST(Linalg, LanesAreALoopAtAnyAxis) {
  const Tensor a = positive({3, 4, 4}, 9), b = general({3, 4}, 10);
  const auto f = [](Tensor x, Tensor y) { return la::solve(x, y); };
  Tensors rows;
  for (int i = 0; i < 3; ++i) rows.push_back(f(a[i], b[i]));
  const Tensor loop = vt::stack(rows);
  for (int axis : {0, 1, 2})
    expect_near(vt::vmap(f, {.in_axes = {axis, -1}})(vt::moveaxis(a, 0, axis), transposed(b)), loop,
                50, "solve");
  // A matrix for all lanes: one system with more columns.
  const auto graph = vt::make_graph(
      [&](Tensor y) { return vt::vmap([&](Tensor v) { return f(a[0], v); })(y); })(b);
  EXPECT_EQ(graph.str().find("f64[3,4,4] = solve"), std::string::npos) << graph.str();
  const Tensor nested = vt::vmap([&](Tensor x) {
    return vt::vmap([&](Tensor y) { return f(x, y); },
                    {.in_axes = 1, .out_axes = 1})(transposed(b));
  })(a);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) expect_near(transposed(nested[i])[j], f(a[i], b[j]), 50, "nested");
}

/// jvp against differences, the transpose by the inner product, and the same for the gradient.
void check_derivative(const std::string& what, const std::function<Tensor(Tensor)>& f,
                      const Tensor& x, double tolerance = 1e-7) {
  SCOPED_TRACE(what);
  const Tensor t = general(x.shape(), 91), u = general(x.shape(), 92);
  const auto difference = [&](const auto& g, const Tensor& d) {
    const double h = 1e-3;
    return (8.0 * (g(x + h * d) - g(x - h * d)) - (g(x + 2 * h * d) - g(x - 2 * h * d))) / (12 * h);
  };
  const auto [y, dy] = vt::jvp(f, std::tuple(x), std::tuple(t));
  vt_test::expect_close(dy, difference(f, t), {.relative = tolerance, .absolute = tolerance}, what);
  const Tensor w = general(y.shape(), 93);
  const auto gradient = vt::grad([&](Tensor z) { return vt::sum(f(z) * w); });
  const double left = vt::sum(w * dy).item<double>(),
               right = vt::sum(gradient(x) * t).item<double>();
  EXPECT_NEAR(left, right, 1e-9 * (1 + std::fabs(left)));
  const auto [g, dg] = vt::jvp(gradient, std::tuple(x), std::tuple(u));
  vt_test::expect_close(dg, difference(gradient, u),
                        {.relative = 20 * tolerance, .absolute = 20 * tolerance},
                        what + ", second");
}

TEST(Linalg, DerivativesOfComposedFunctions) {
  const Tensor x = general({3, 3}, 11) + 3.0 * vt::eye(3, vt::f64), b = general({3, 2}, 12),
               tall = general({5, 3}, 13);
  const Tensor big = general({2, 5, 5}, 14) + 4.0 * vt::eye(5, vt::f64);
  check_derivative("solve", [&](Tensor a) { return la::solve(a, b); }, x);
  check_derivative("solve for b", [&](Tensor y) { return la::solve(x, y); }, b);
  check_derivative("inv", [](Tensor a) { return la::inv(a); }, big);
  check_derivative("det 2", [](Tensor a) { return la::det(a); }, general({2, 2, 2}, 16));
  check_derivative("det 3", [](Tensor a) { return la::det(a); }, x);
  check_derivative("det 5", [](Tensor a) { return la::det(a); }, big, 1e-6);
  check_derivative("slogdet", [](Tensor a) { return la::slogdet(a).logabsdet; }, big);
  check_derivative("pinv tall", [](Tensor a) { return la::pinv(a); }, tall, 1e-6);
  check_derivative("pinv wide", [](Tensor a) { return la::pinv(a); }, transposed(tall), 1e-6);
  check_derivative("lstsq", [&](Tensor a) { return la::lstsq(a, general({5}, 15)).x; }, tall, 1e-6);
  check_derivative("expm", [](Tensor a) { return la::expm(a); }, x);
  check_derivative("expm without squaring", [](Tensor a) { return la::expm(0.1 * a); }, x);
  check_derivative("matrix_power", [](Tensor a) { return la::matrix_power(a, -3); }, x);
  check_derivative("nuclear norm", [](Tensor a) { return la::norm(a, "nuc"); }, tall);
  check_derivative("spectral norm", [](Tensor a) { return la::norm(a, 2); }, tall);
  check_derivative("cond", [](Tensor a) { return la::cond(a); }, x);
  check_derivative("lu_solve", [&](Tensor a) { return la::lu_solve(la::lu_factor(a), b); }, x);
  check_derivative(
      "cho_solve",
      [&](Tensor a) { return la::cho_solve(la::cho_factor(vt::matmul(a, transposed(a))), b); }, x);
  check_derivative("complete qr", [](Tensor a) { return la::qr(a, "complete").r; }, x);
}

TEST(Linalg, OneFactorisationServesValueAndDerivatives) {
  const Tensor a = general({4, 4}, 21) + 4.0 * vt::eye(4, vt::f64), b = general({4}, 22);
  const auto loss = [](Tensor x, Tensor y) { return vt::sum(vt::square(la::solve(x, y))); };
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(count(vt::make_graph(vt::value_and_grad<0, 1>(loss))(a, b).str(), "= lu "), 1u);
  EXPECT_EQ(
      count(vt::make_graph(vt::value_and_grad([](Tensor x) { return la::slogdet(x).logabsdet; }))(a)
                .str(),
            "= lu "),
      1u);
}

TEST(Linalg, SystemsByOtherFactors) {
  for (std::int64_t n : {0, 1, 3, 6}) {
    const Tensor a = positive({2, n, n}, 31), b = general({2, n, 2}, 32), one = general({n}, 33);
    const Tensor x = la::solve(a, b);
    for (bool lower : {false, true})
      expect_near(la::cho_solve(la::cho_factor(a, lower), b), x, 300, "cho_solve");
    const Tensor g = general({2, n, n}, 34) + 3.0 * vt::eye(n, vt::f64);
    expect_near(la::lu_solve(la::lu_factor(g), b), la::solve(g, b), 300, "lu_solve");
    expect_near(la::lu_solve(la::lu_factor(g), b, true), la::solve(transposed(g), b), 300,
                "lu_solve, transposed");
    for (bool lower : {false, true}) {
      const Tensor t = lower ? vt::tril(g) : vt::triu(g);
      expect_near(vt::matmul(t, la::solve_triangular(g, b, 0, lower)), b, 300, "solve_triangular");
      expect_near(vt::matmul(transposed(t), la::solve_triangular(g, b, 1, lower)), b, 300,
                  "solve_triangular, transposed");
      expect_near(vt::matmul(vt::triangular_solve(g, transposed(b), {.lower = lower}), t),
                  transposed(b), 300, "triangular_solve from the right");
      expect_near(vt::matmul(transposed(t),
                             vt::triangular_solve(
                                 g, b, {.left_side = true, .lower = lower, .transpose_a = true})),
                  b, 300, "triangular_solve");
    }
    const Tensor repeated = vt::broadcast_to(vt::reshape(one, {n, 1}), {2, n, 1});
    expect_near(la::solve(a, one), vt::squeeze(la::solve(a, repeated), {-1}), 300,
                "a vector for all");
  }
  const Tensor dl = general({6}, 35), d = general({6}, 36) * 0.1, du = general({6}, 37),
               b = general({6, 2}, 38);
  Tensor t = vt::diag(d) + vt::diag(dl[vt::slice(1, 6)], -1) + vt::diag(du[vt::slice(0, 5)], 1);
  expect_near(vt::matmul(t, la::tridiagonal_solve(dl, d, du, b)), b, 300,
              "tridiagonal_solve with exchanges");
  const Tensor one = general({6}, 39), several = vt::stack({d, 2.0 * d});
  expect_near(vt::matmul(t, la::tridiagonal_solve(dl, d, du, one)), one, 300,
              "tridiagonal_solve of a vector");
  expect_near(la::tridiagonal_solve(dl, several, du, one)[1],
              la::tridiagonal_solve(dl, 2.0 * d, du, one), 300, "a vector for all");
}

TEST(Linalg, LeastSquaresAndPseudoInverses) {
  for (const Shape& shape : {Shape{6, 3}, Shape{3, 6}, Shape{4, 4}, Shape{2, 5, 2}}) {
    const Tensor a = general(shape, 41), p = la::pinv(a);
    const std::string what = shape.str();
    expect_near(vt::matmul(vt::matmul(a, p), a), a, 200, what);
    expect_near(vt::matmul(vt::matmul(p, a), p), p, 500, what);
    expect_near(vt::matmul(a, p), transposed(vt::matmul(a, p)), 200, what);
    Shape right = shape;
    right.back() = 2;
    const Tensor b = general(right, 42);
    const la::LstsqResult r = la::lstsq(a, b);
    expect_near(vt::matmul(transposed(a), vt::matmul(a, r.x) - b), vt::zeros_like(r.x), 300,
                "normal equations " + what);
    expect_near(r.residuals, vt::sum(vt::square(b - vt::matmul(a, r.x)), -2), 10, what);
  }
  const Tensor a = vt::tensor({{1.0, 2.0}, {2.0, 4.0}, {3.0, 6.0}});
  EXPECT_EQ(la::lstsq(a, vt::tensor({1.0, 2.0, 3.0})).rank.item<int>(), 1);
  vt_test::expect_close(la::lstsq(a, vt::tensor({1.0, 2.0, 3.0})).x, vt::tensor({0.2, 0.4}),
                        {.absolute = 1e-14});
  EXPECT_EQ(la::matrix_rank(a).item<int>(), 1);
  EXPECT_EQ(la::matrix_rank(vt::zeros({3, 3})).item<int>(), 0);
  EXPECT_EQ(la::matrix_rank(vt::zeros({3, 0})).item<int>(), 0);
}

TEST(Linalg, NumbersOfMatrices) {
  const Tensor a = vt::tensor({{4.0, 1.0, -2.0}, {1.0, 2.0, 0.0}, {3.0, 0.0, 1.0}});
  vt_test::expect_close(la::det(a), vt::tensor(19.0), {.ulps = 4});
  const la::SlogdetResult s = la::slogdet(a);
  vt_test::expect_close(s.sign, vt::tensor(1.0));
  vt_test::expect_close(s.logabsdet, vt::tensor(std::log(19.0)), {.ulps = 8});
  for (std::int64_t n : {0, 1, 2, 3, 4, 7}) {
    const Tensor x = general({3, n, n}, 51);
    const la::SlogdetResult r = la::slogdet(x);
    expect_near(r.sign * vt::exp(r.logabsdet), la::det(x), 100, "det " + std::to_string(n));
    Tensor product = vt::ones({3}, vt::f64);
    const Tensor w = la::eigvalsh(x);
    for (std::int64_t i = 0; i < n; ++i) product = product * vt::take(w, i, 1);
    expect_near(la::det(0.5 * (x + transposed(x))), product, 100, "det by eigenvalues");
  }
  // Singular: det's derivative is the adjugate, and of a matrix whose rank is lower still it is 0.
  const Tensor singular = vt::tensor(
      {{1.0, 2.0, 0.0, 0.0}, {2.0, 4.0, 0.0, 1.0}, {0.0, 1.0, 1.0, 0.0}, {3.0, 7.0, 1.0, 1.0}});
  vt_test::expect_close(la::det(singular), vt::tensor(0.0), {.absolute = 1e-15});
  const Tensor g = vt::grad([](Tensor x) { return la::det(x); })(singular);
  const double h = 1e-3;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const auto moved = [&](double by) {
        std::vector<double> v = singular.to_vector<double>();
        v[4 * i + j] += by;
        return la::det(vt::tensor(v, {4, 4})).item<double>();
      };
      EXPECT_NEAR(g[i][j].item<double>(), (moved(h) - moved(-h)) / (2 * h), 1e-9);
    }
  vt_test::expect_close(la::norm(a, "fro"), vt::tensor(6.0), {.ulps = 2});
  vt_test::expect_close(la::norm(a, 1), vt::tensor(8.0));
  vt_test::expect_close(la::norm(a, inf), vt::tensor(7.0));
  vt_test::expect_close(la::norm(a, -1), vt::tensor(3.0));
  vt_test::expect_close(la::norm(a, 3, 1), vt::cbrt(vt::tensor({73.0, 9.0, 28.0})), {.ulps = 4});
  EXPECT_EQ(la::norm(a, "nuc", {0, 1}, true).shape(), (Shape{1, 1}));
  vt_test::expect_close(la::norm(vt::tensor({3, 4})), vt::tensor(5.0f));
  vt_test::expect_close(la::cond(vt::diag(vt::tensor({4.0, 2.0, 0.5}))), vt::tensor(8.0),
                        {.ulps = 4});
  vt_test::expect_close(la::cond(vt::diag(vt::tensor({4.0, 2.0, 0.5})), 1), vt::tensor(8.0),
                        {.ulps = 4});
}

TEST(Linalg, Exponentials) {
  const Tensor turn = vt::tensor({{0.0, -1.0}, {1.0, 0.0}});
  for (double angle : {0.0, 1e-9, 0.3, 2.0, 30.0, 700.0}) {
    const double c = std::cos(angle), s = std::sin(angle);
    vt_test::expect_close(la::expm(angle * turn), vt::tensor({{c, -s}, {s, c}}),
                          {.absolute = 1e-15 * (4 + 2 * angle)});
  }
  const Tensor x = general({2, 6, 6}, 61);
  expect_near(vt::matmul(la::expm(3.0 * x), la::expm(-3.0 * x)),
              vt::broadcast_to(vt::eye(6, vt::f64), {2, 6, 6}), 2e5, "eˣ e⁻ˣ");
  vt_test::expect_close(la::expm(vt::diag(vt::tensor({1.0f, -2.0f, 5.0f}))),
                        vt::diag(vt::exp(vt::tensor({1.0f, -2.0f, 5.0f}))), {.relative = 2e-6});
  // Each matrix is squared as often as it needs, alone or with others.
  const Tensor two = vt::stack({0.01 * x[0], 40.0 * x[1]});
  vt_test::expect_close(la::expm(two)[0], la::expm(two[0]), {.relative = 1e-14, .absolute = 1e-15});
  vt_test::expect_close(vt::vmap([](Tensor a) { return la::expm(a); })(two), la::expm(two),
                        {.relative = 1e-13, .absolute = 1e-15});
  EXPECT_TRUE(std::isnan(la::expm(vt::full({2, 2}, std::nan(""), vt::f64))[0][0].item<double>()));
}

TEST(Linalg, ProductsOfSeveral) {
  const Tensor a = general({3, 40}, 71), b = general({40, 2}, 72), c = general({2, 5}, 73),
               v = general({5}, 74);
  expect_near(la::multi_dot({a, b, c, v}), vt::matmul(vt::matmul(vt::matmul(a, b), c), v), 100,
              "multi_dot");
  EXPECT_EQ(la::multi_dot({v, vt::reshape(v, {5, 1}), vt::tensor({2.0})}).rank(), 0);
  const Tensor t = general({2, 3, 6}, 75);
  expect_near(vt::tensordot(t, la::tensorsolve(t, vt::ones({2, 3}, vt::f64)), 1),
              vt::ones({2, 3}, vt::f64), 500, "tensorsolve");
  expect_near(
      vt::tensordot(la::tensorinv(vt::reshape(t, {6, 2, 3}), 1), vt::reshape(t, {6, 2, 3}), 1),
      vt::reshape(vt::eye(6, vt::f64), {2, 3, 2, 3}), 1000, "tensorinv");
}

TEST(Linalg, SingularAndNotFiniteGiveNoCrash) {
  const double nan = std::nan("");
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {1, 2, 3, 8, 20}) {
      const Tensor zero = vt::zeros({2, n, n}, d), bad = vt::full({n, n}, nan, d),
                   endless = vt::full({n, n}, inf, d);
      for (const Tensor& x :
           {zero, -vt::broadcast_to(vt::eye(n, d), {2, n, n}), vt::broadcast_to(bad, {2, n, n})}) {
        const Tensor l = la::cholesky(x);
        vt_test::expect_close(l, vt::tril(vt::full({2, n, n}, nan, d)), {}, "cholesky");
      }
      EXPECT_FALSE(vt::any(vt::isfinite(la::inv(zero))).item<bool>());
      EXPECT_EQ(la::slogdet(zero[0]).logabsdet.item<double>(), -inf);
      EXPECT_EQ(la::slogdet(zero[0]).sign.item<double>(), 0);
      for (const Tensor& x : {bad, endless}) {
        EXPECT_FALSE(vt::any(vt::isfinite(la::eigh(x).eigenvalues)).item<bool>());
        EXPECT_FALSE(vt::any(vt::isfinite(la::svdvals(x))).item<bool>());
        la::qr(x).q.to_vector<double>();
        la::pinv(x).to_vector<double>();
      }
      EXPECT_FALSE(vt::any(vt::isfinite(la::solve(bad, vt::ones({n}, d)))).item<bool>());
      // Equal eigenvalues; a scale far from 1.
      const double far = d == vt::f64 ? 1e200 : 1e30;
      for (double scale : {1.0, far, 1 / far}) {
        const Tensor same = scale * vt::eye(n, d);
        vt_test::expect_close(la::eigh(same).eigenvalues, vt::full({n}, scale, d), {.ulps = 4});
        vt_test::expect_close(la::svdvals(same), vt::full({n}, scale, d), {.ulps = 4});
        expect_orthonormal(la::eigh(same).eigenvectors, 10, "unit matrix");
        vt_test::expect_close(la::eigh(vt::full({n, n}, scale, d)).eigenvalues[-1],
                              vt::full({}, scale * static_cast<double>(n), d), {.ulps = 16});
      }
    }
  // One bad matrix leaves its neighbours alone.
  const Tensor a = vt::stack({vt::eye(3), -vt::eye(3), 4.0f * vt::eye(3)});
  vt_test::expect_close(la::cholesky(a)[2], 2.0f * vt::eye(3));
  vt_test::expect_close(la::cholesky(a)[0], vt::eye(3));
}

// Matrices side by side that need different numbers of steps at different places.
TEST(Linalg, SpectraOfUnlikeMatricesInOneVector) {
  for (DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {4, 5, 6, 9, 16}) {
      const Tensor i = vt::eye(n, d), x = general({n, n}, 61, d), s = x + transposed(x);
      const Tensor place = vt::arange(n).astype(d), low = vt::expand_dims(place, 1),
                   apart = vt::abs(low - place);
      const double far = d == vt::f64 ? 1e150 : 1e15;
      const Tensor graded = s * vt::exp(-2.0 * (low + place)),
                   blocks = vt::where(vt::floor(low / 2) == vt::floor(place / 2), s, 0.0);
      const Tensors all = {
          s, vt::zeros({n, n}, d), far * i, i * place, vt::ones({n, n}, d), graded, blocks,
          // zeros on the diagonal
          vt::where(apart == 1, vt::full({n, n}, 1.0, d), 0.0),
          // Wilkinson's
          vt::where(apart == 1, vt::full({n, n}, 1.0, d),
                    vt::abs(low - (static_cast<double>(n) - 1) / 2) * i),
          i + vt::where(apart == 1, vt::full({n, n}, 1 / far / far, d), 0.0), s / far,
          vt::full({n, n}, std::nan(""), d), s + 1e3 * i, vt::rev(graded, {0, 1}),
          vt::where(low + place == static_cast<double>(n) - 1, vt::full({n, n}, 1.0, d), 0.0)};
      const auto eigh = vt::jit([](Tensor a) { return la::eigh(a); });
      const la::EighResult together = eigh(vt::concatenate({vt::stack(all), vt::stack(all)}));
      for (std::size_t k = 0; k < all.size(); ++k) {
        const std::string what =
            std::string(vt::name_of(d)) + " " + std::to_string(n) + ", matrix " + std::to_string(k);
        const Tensor w = together.eigenvalues[k], v = together.eigenvectors[k];
        if (k == 11) {
          EXPECT_FALSE(vt::any(vt::isfinite(w) | vt::isfinite(v[0])).item<bool>()) << what;
          continue;
        }
        const double norm = std::max(vt::max(vt::abs(all[k])).item<double>(), 1e-300),
                     c = 10.0 * static_cast<double>(n);
        expect_near(vt::matmul(all[k] / norm, v), v * in_row(w / norm), c, what);
        expect_near(w / norm, la::eigh(all[k] / norm).eigenvalues, c, what);
        expect_orthonormal(v, c, what);
      }
    }
}

TEST(Linalg, IntegersBecomeFloats) {
  const Tensor a = vt::tensor({{2, 0}, {0, 4}});
  EXPECT_EQ(la::inv(a).dtype(), vt::f32);
  vt_test::expect_close(la::solve(a, vt::tensor({2, 4})), vt::tensor({1.0f, 1.0f}));
  EXPECT_EQ(la::solve(a, vt::tensor({2.0, 4.0})).dtype(), vt::f64);
  EXPECT_EQ(la::eigh(a).eigenvalues.dtype(), vt::f32);
}

// Emitted code for small matrices is the step itself, not a kernel on the rows of a product.
TEST(Linalg, EmittedMatricesAreNoEpilogue) {
  const auto solve = vt::jit([](Tensor a, Tensor b) { return la::solve(a, b); });
  const Tensor a = vt::ones({64, 3, 3}) + vt::eye(3), b = vt::ones({64, 3, 1});
  solve(a, b).eval();
  solve(a, b).eval();
  const auto before = vt::stats().product_epilogues;
  solve(a, b).eval();
  EXPECT_EQ(vt::stats().product_epilogues, before);
  EXPECT_EQ(vt::explain_steps(solve)(a, b).find("on its rows"), std::string::npos)
      << vt::explain_steps(solve)(a, b);
}

TEST(LinalgErrors, WrongUses) {
  const Tensor wide = vt::ones({2, 3}), square = vt::ones({3, 3}), v = vt::ones({4});
  using vt::ErrorKind;
  const auto expect = [](auto&& f, ErrorKind kind, const std::vector<std::string>& parts) {
    vt_test::expect_error(f, kind, parts);
  };
  const std::string here = "linalg_test.cpp";
  expect([&] { (void)la::cholesky(wide); }, ErrorKind::shape,
         {"vt::cholesky", "square", "f32[2,3]", here});
  expect([&] { (void)la::cholesky(v); }, ErrorKind::shape,
         {"vt::cholesky", "two axes", "f32[4]", here});
  expect([&] { (void)la::inv(wide); }, ErrorKind::shape, {"vt::inv", "square", here});
  expect([&] { (void)la::det(wide); }, ErrorKind::shape, {"vt::det", "square", here});
  expect([&] { (void)la::slogdet(wide); }, ErrorKind::shape, {"vt::slogdet", "square", here});
  expect([&] { (void)la::eigh(wide); }, ErrorKind::shape, {"vt::eigh", "square", here});
  expect([&] { (void)la::expm(wide); }, ErrorKind::shape, {"vt::expm", "square", here});
  expect([&] { (void)la::solve(square, v); }, ErrorKind::shape,
         {"vt::solve", "3 rows", "f32[3,3]", "f32[4]", here});
  expect([&] { (void)la::solve(vt::ones({2, 3, 3}), vt::ones({5, 3, 1})); }, ErrorKind::shape,
         {"vt::solve", "broadcast", here});
  expect([&] { (void)la::triangular_solve(square, v); }, ErrorKind::shape,
         {"vt::triangular_solve", "two axes", here});
  expect([&] { (void)la::triangular_solve(vt::eye(3), vt::ones({3, 2})); }, ErrorKind::shape,
         {"vt::triangular_solve", "3 columns", ".left_side", "f32[3,3]", "f32[3,2]", here});
  expect([&] { (void)la::solve_triangular(square, vt::ones({3}), 3); }, ErrorKind::value,
         {"trans", "3", here});
  expect([&] { (void)la::tridiagonal_solve(v, v, vt::ones({3}), vt::ones({4, 1})); },
         ErrorKind::shape, {"vt::tridiagonal_solve", here});
  expect([&] { (void)la::cholesky(square.astype(vt::f16)); }, ErrorKind::dtype,
         {"vt::cholesky", "f32, f64, c64 or c128", "f16", here});
  expect([&] { (void)la::svd(square.astype(vt::bf16)); }, ErrorKind::dtype,
         {"vt::svd", "f32, f64, c64 or c128", "bf16", here});
  expect([&] { (void)la::qr(square, "full"); }, ErrorKind::value, {"vt::qr", "mode", here});
  expect([&] { (void)la::norm(square, 3); }, ErrorKind::value, {"norm", "3", here});
  expect([&] { (void)la::norm(v, "nuc"); }, ErrorKind::value, {"norm", "matrices", here});
  expect([&] { (void)la::norm(vt::ones({2, 2, 2}), "fro"); }, ErrorKind::shape,
         {"norm", "one axis or two", here});
  expect([&] { (void)la::norm(square, "frob"); }, ErrorKind::value, {"frob"});
  expect([&] { (void)la::multi_dot({square}); }, ErrorKind::value,
         {"vt::multi_dot", "two factors", here});
  expect([&] { (void)la::multi_dot({square, wide}); }, ErrorKind::shape,
         {"vt::multi_dot", "do not fit", here});
  expect([&] { (void)la::tensorinv(vt::ones({2, 3}), 1); }, ErrorKind::shape,
         {"vt::tensorinv", here});
  expect([&] { (void)la::lu_solve({square, vt::ones({2})}, vt::ones({3})); }, ErrorKind::shape,
         {"vt::lu_solve", "pivots", here});
  expect(
      [&] {
        vt::grad([](Tensor x) { return vt::sum(la::qr(x, "complete").q); })(vt::ones({3, 2}));
      },
      ErrorKind::transform, {"vt::qr", "reduced", here});
  expect([&] { vt::grad([](Tensor x) { return vt::sum(la::svd(x).u); })(wide); },
         ErrorKind::transform, {"vt::svd", "reduced", here});
}

}  // namespace
