// Linear algebra of complex matrices, eigenvalues of matrices without symmetry, and the order of
// complex numbers: against the factors' definitions, real matrices twice as large, differences and
// loops over lanes.
#include <complex>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using C = std::complex<double>;
namespace la = vt::linalg;

constexpr vt_test::Tolerance close{.relative = 1e-11, .absolute = 1e-11};

Tensor random(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
Tensor adjoint(const Tensor& x) { return vt::conj(vt::swapaxes(x, -1, -2)); }
Tensor hermitian(const Tensor& x) { return x + adjoint(x); }
Tensor definite(const Tensor& x) {
  return vt::matmul(x, adjoint(x)) + vt::eye(x.dim(-1), x.dtype());
}
/// [[re, −im], [im, re]]: products of these are those of the complex matrices.
Tensor embedded(const Tensor& z) {
  const Tensor re = vt::real(z), im = vt::imag(z);
  return vt::concatenate({vt::concatenate({re, -im}, -1), vt::concatenate({im, re}, -1)}, -2);
}

// --- values --------------------------------------------------------------------------------------

TEST(ComplexLinalg, FactorsMultiplyToTheMatrix) {
  for (const std::int64_t n : {1, 2, 5, 17, 40}) {
    SCOPED_TRACE(n);
    const Tensor a = random(vt::c128, {2, n, n}, 1), p = definite(a), h = hermitian(a),
                 one = vt::broadcast_to(vt::eye(n, vt::c128), {2, n, n});
    const Tensor l = la::cholesky(p);
    expect_close(vt::matmul(l, adjoint(l)), p, close);
    expect_close(la::cholesky(p, true), adjoint(l), close);
    const auto [w, v] = la::eigh(h);
    EXPECT_EQ(w.dtype(), vt::f64);
    expect_close(vt::matmul(h, v), v * vt::expand_dims(w, -2), close);
    expect_close(vt::matmul(adjoint(v), v), one, close);
    // Each eigenvalue of the real matrix is there twice.
    expect_close(vt::repeat(w, 2, -1), la::eigvalsh(embedded(h)), close);
    expect_close(vt::repeat(la::svdvals(a), 2, -1), la::svdvals(embedded(a)), close);
    const la::LuResult f = la::lu(a);
    const Tensor lower = vt::tril(f.lu, -1) + one, upper = vt::triu(f.lu);
    expect_close(
        vt::matmul(lower, upper),
        vt::take_along_axis(a, vt::broadcast_to(vt::expand_dims(f.permutation, -1), a.shape()), -2),
        close);
  }
  for (const vt::Shape& s :
       {vt::Shape{4, 4}, vt::Shape{7, 3}, vt::Shape{3, 6}, vt::Shape{30, 20}}) {
    const Tensor a = random(vt::c128, s, 2);
    for (const bool full : {false, true}) {
      const auto [q, r] = la::qr(a, full ? "complete" : "reduced");
      expect_close(vt::matmul(q, r), a, close);
      expect_close(vt::matmul(adjoint(q), q), vt::eye(q.dim(-1), vt::c128), close);
      expect_close(vt::tril(r, -1), vt::zeros_like(r));
      const auto [u, sv, vh] = la::svd(a, full);
      const std::int64_t k = sv.dim(0);
      EXPECT_EQ(sv.dtype(), vt::f64);
      const Tensor uk = vt::slice_in_dim(u, 0, k, 1), vk = vt::slice_in_dim(vh, 0, k, 0);
      expect_close(vt::matmul(uk * sv, vk), a, close);
      expect_close(vt::matmul(adjoint(u), u), vt::eye(u.dim(1), vt::c128), close);
      expect_close(vt::matmul(vh, adjoint(vh)), vt::eye(vh.dim(0), vt::c128), close);
    }
  }
  EXPECT_TRUE(std::isnan(la::cholesky(hermitian(random(vt::c128, {3, 3}, 3)) - 9.0 * vt::eye(3))
                             .to_vector<C>()[0]
                             .real()));
  EXPECT_EQ(la::cholesky(definite(random(vt::c64, {3, 3}, 3))).dtype(), vt::c64);
  EXPECT_EQ(la::svdvals(random(vt::c64, {3, 2}, 3)).dtype(), vt::f32);
  EXPECT_EQ(la::eigh(vt::zeros({0, 0}, vt::c128)).eigenvectors.shape(), (vt::Shape{0, 0}));
}

TEST(ComplexLinalg, SystemsAreThoseOfTheRealMatrix) {
  for (const std::int64_t n : {1, 3, 20, 50}) {
    SCOPED_TRACE(n);
    const Tensor a = random(vt::c128, {n, n}, 4) + static_cast<double>(n) * vt::eye(n),
                 b = random(vt::c128, {n, 2}, 5);
    const auto halves = [&](const Tensor& x) {
      return vt::complex(vt::slice_in_dim(x, 0, n, 0), vt::slice_in_dim(x, n, 2 * n, 0));
    };
    const Tensor both = vt::concatenate({vt::real(b), vt::imag(b)}, 0);
    expect_close(la::solve(a, b), halves(la::solve(embedded(a), both)), close);
    expect_close(vt::matmul(a, la::inv(a)), vt::eye(n, vt::c128), close);
    for (const bool lower : {true, false})
      for (const int trans : {0, 1, 2}) {
        const Tensor t = lower ? vt::tril(a) : vt::triu(a);
        const Tensor op = trans == 0 ? t : trans == 1 ? vt::matrix_transpose(t) : adjoint(t);
        expect_close(vt::matmul(op, la::solve_triangular(a, b, trans, lower)), b, close);
      }
    expect_close(vt::matmul(definite(a), la::cho_solve(la::cho_factor(definite(a)), b)), b,
                 {.relative = 1e-9, .absolute = 1e-9});
    expect_close(vt::matmul(definite(a), la::cho_solve(la::cho_factor(definite(a), true), b)), b,
                 {.relative = 1e-9, .absolute = 1e-9});
    expect_close(vt::matmul(a, la::lu_solve(la::lu_factor(a), b)), b, close);
    // |det| squared is that of the real matrix.
    if (n < 10)
      expect_close(vt::square(vt::abs(la::det(a))), la::det(embedded(a)),
                   {.relative = 1e-10, .absolute = 1e-10});
    const auto [sign, size] = la::slogdet(a);
    EXPECT_EQ(size.dtype(), vt::f64);
    expect_close(vt::abs(sign), vt::tensor(1.0), close);
    expect_close(2.0 * size, la::slogdet(embedded(a)).logabsdet, close);
    if (n < 10)
      expect_close(sign * vt::exp(size), la::det(a), {.relative = 1e-10, .absolute = 1e-10});
  }
  const Tensor tall = random(vt::c128, {6, 3}, 6), wide = adjoint(tall),
               b = random(vt::c128, {6, 2}, 7);
  const Tensor p = la::pinv(tall);
  expect_close(vt::matmul(p, tall), vt::eye(3, vt::c128), close);
  expect_close(vt::matmul(wide, la::pinv(wide)), vt::eye(3, vt::c128), close);
  const la::LstsqResult fit = la::lstsq(tall, b);
  expect_close(vt::matmul(adjoint(tall), vt::matmul(tall, fit.x) - b), vt::zeros({3, 2}, vt::c128),
               close);
  EXPECT_EQ(fit.residuals.dtype(), vt::f64);
  // e^(ix) of a Hermitian matrix is unitary.
  const Tensor turn = la::expm(hermitian(random(vt::c128, {4, 4}, 8)) * C(0, 1));
  expect_close(vt::matmul(turn, adjoint(turn)), vt::eye(4, vt::c128), close);
}

TEST(Eig, OfRealAndComplexMatrices) {
  for (const vt::DType d : {vt::f64, vt::c128, vt::f32, vt::c64})
    for (const std::int64_t n : {1, 2, 3, 9, 40}) {
      SCOPED_TRACE(std::string(vt::name_of(d)) + " " + std::to_string(n));
      const vt_test::Tolerance near = vt::real_dtype(d) == vt::f64
                                          ? vt_test::Tolerance{.relative = 1e-10, .absolute = 1e-10}
                                          : vt_test::Tolerance{.relative = 1e-3, .absolute = 1e-4};
      const Tensor a = random(d, {n, n}, 9 + static_cast<std::uint64_t>(n)),
                   z = a.astype(vt::complex_dtype(vt::real_dtype(d)));
      const auto [w, v] = la::eig(a);
      EXPECT_EQ(w.dtype(), z.dtype());
      expect_close(vt::matmul(z, v), v * w, near);
      expect_close(vt::sum(vt::square(vt::abs(v)), 0), vt::ones({n}, vt::real_dtype(d)), near);
      expect_close(vt::sum(w), vt::trace(z), near);
      expect_close(vt::sort(la::eigvals(a)), vt::sort(w), near);
      if (vt::is_complex(d)) continue;
      // What is not real comes in pairs, exactly.
      const std::vector<C> values = w.astype(vt::c128).to_vector<C>();
      for (const C& x : values)
        EXPECT_NE(std::find(values.begin(), values.end(), std::conj(x)), values.end()) << x;
    }
  // A rotation and a matrix with a known spectrum, badly scaled.
  const std::vector<C> transposed =
      vt::sort(la::eigvals(vt::tensor({{0.0, -1.0}, {1.0, 0.0}}))).to_vector<C>();
  EXPECT_NEAR(std::abs(transposed[0] - C(0, -1)), 0, 1e-15);
  const Tensor scales = vt::tensor({1e-8, 1.0, 1e9});
  const Tensor m = vt::tensor({{2.0, 1.0, 0.5}, {0.0, 3.0, 1.0}, {0.0, 0.0, 5.0}});
  expect_close(vt::real(vt::sort(la::eigvals(vt::expand_dims(scales, 1) * m / scales))),
               vt::tensor({2.0, 3.0, 5.0}), close);
  const Tensor jordan = vt::tensor({{1.0, 1.0}, {0.0, 1.0}});
  expect_close(la::eigvals(jordan), vt::ones({2}, vt::c128), {.relative = 1e-7, .absolute = 1e-7});
  EXPECT_TRUE(
      std::isnan(la::eigvals(vt::tensor({{1.0, NAN}, {0.0, 1.0}})).to_vector<C>()[0].real()));
  EXPECT_EQ(la::eig(vt::zeros({3, 0, 0})).eigenvalues.shape(), (vt::Shape{3, 0}));
}

// --- lanes ---------------------------------------------------------------------------------------

TEST(ComplexLinalg, LanesAreAsAlone) {
  const auto each = [](Tensor a) {
    const auto [w, v] = la::eig(a);
    const auto [l, u] = la::eigh(a);
    const auto [q, r] = la::qr(a);
    return vt::concatenate(
        {vt::reshape(w, {1, 3}), v, vt::reshape(l.astype(vt::c128), {1, 3}), u, q, r, la::inv(a),
         la::cholesky(definite(a)), vt::reshape(la::svdvals(a).astype(vt::c128), {1, 3})},
        0);
  };
  const Tensor a = random(vt::c128, {2, 3, 4, 3}, 10);  // lanes at axis 2
  const Tensor all = vt::vmap(vt::vmap(each, {.in_axes = {1}}), {.in_axes = {0}})(a);
  const Tensor compiled = vt::jit(vt::vmap(vt::vmap(each, {.in_axes = {1}}), {.in_axes = {0}}))(a);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      expect_close(all[i][j], each(vt::take(a[i], vt::tensor(j), 1)), close);
  expect_close(compiled, all, close);
}

// Matrices are steps of a program whose other equations are compiled, and so they are under every
// transform.
TEST(ComplexLinalg, ProgramsAreCompiled) {
  const auto f = [](const Tensor& a) {
    const std::int64_t n = a.dim(-1);
    const Tensor d = la::cholesky(definite(a)), b = vt::sin(vt::slice_in_dim(a, 0, 2, 1)),
                 x = la::solve(a, b);
    const Tensor t = la::solve_triangular(a, x, 2), diagonal = 4.0 + vt::diagonal(a),
                 off = vt::abs(vt::diagonal(a)).astype(a.dtype());
    const auto [q, r] = la::qr(a + 1.0);
    const auto [w, v] = la::eigh(definite(a));
    const auto [u, s, vh] = la::svd(a, false);
    const auto [l, z] = la::eig(a);
    const Tensor real_eig = la::eigvals(vt::real(a));
    const Tensor all = vt::concatenate(
        {d, x, t, la::tridiagonal_solve(off, diagonal, off, b), r, vt::abs(q).astype(a.dtype()),
         vt::matmul(u * s, vh), vt::abs(z).astype(a.dtype()), la::lu(a).lu, la::inv(a)},
        1);
    const Tensor numbers = la::det(a) + vt::sum(vt::square(w)) + vt::sum(vt::abs(v)) +
                           vt::sum(vt::sqrt(l * l + 2.0)) + vt::sum(real_eig * real_eig);
    return vt::reshape(vt::tanh(0.1 * all), {n * all.dim(1)}) + numbers;
  };
  const auto expect_compiled = [](const auto& g, const auto&... arguments) {
    const auto compiled = vt::jit(g);
    vt_test::expect_close(compiled(arguments...), g(arguments...), close);
    vt::reset_stats();
    compiled(arguments...).eval();
    EXPECT_EQ(vt::stats().interpreter_steps, 0u);
    const std::string text = vt::explain_steps(compiled)(arguments...);
    EXPECT_NE(text.find(" 0 interpreted equations"), std::string::npos) << text;
  };
  if (vt::explain_steps(vt::jit(f))(vt::eye(4, vt::c128)).find("interpreter:") == 0)
    GTEST_SKIP() << "no compiler";
  const Tensor a = random(vt::c128, {3, 4, 4}, 31) + 3.0 * vt::eye(4),
               along = random(vt::c128, {3, 4, 4}, 32);
  const auto slope = [&](Tensor x, Tensor dx) {
    return vt::jvp(f, std::tuple(x), std::tuple(dx)).second;
  };
  const auto pulled = [&](Tensor x, Tensor bar) { return vt::vjp(f, x).second(bar); };
  expect_compiled(f, a[0]);
  expect_compiled(vt::vmap(f), a);
  expect_compiled(slope, a[0], along[0]);
  expect_compiled(vt::vmap(slope), a, along);
  const Tensor bars = random(vt::c128, {3, f(a[0]).dim(0)}, 33);
  expect_compiled(pulled, a[0], bars[0]);
  expect_compiled(vt::vmap(pulled), a, bars);
  // In a loop; more matrices than a vector has lanes, which real ones of this size share; none at
  // all; narrow numbers.
  const auto steps = [](Tensor x) {
    return vt::fori_loop(0, 3, [](Tensor, Tensor y) { return la::cholesky(definite(y)); }, x);
  };
  expect_compiled(steps, a);
  const auto factor = [](Tensor x) { return vt::abs(la::cholesky(definite(x))); };
  expect_compiled(factor, random(vt::c128, {40, 3, 3}, 34));
  expect_compiled([](Tensor x) { return vt::abs(la::cholesky(x)); },
                  random(vt::c128, {0, 3, 3}, 34));
  vt_test::expect_close(vt::jit(factor)(a.astype(vt::c64)), factor(a).astype(vt::f32),
                        {.relative = 1e-5, .absolute = 1e-5});
}

// --- derivatives ---------------------------------------------------------------------------------

using Function = std::function<Tensor(const Tensor&)>;

/// f, which does not depend on phases that factors leave open, along a direction: both modes
/// against a difference.
void check_derivative(const char* name, const Function& f, const Tensor& at,
                      double tolerance = 1e-6) {
  SCOPED_TRACE(name);
  const Tensor along = random(at.dtype(), at.shape(), 77);
  const auto [y, slope] =
      vt::jvp([&](Tensor x) { return f(x); }, std::tuple(at), std::tuple(along));
  const double h = 1e-6;
  expect_close(slope, (f(at + h * along) - f(at - h * along)) / (2 * h),
               {.relative = tolerance, .absolute = tolerance});
  // Transposed without conjugation: the pairing is bilinear.
  const Tensor bar = random(y.dtype(), y.shape(), 78);
  const auto [same, pull] = vt::vjp([&](Tensor x) { return f(x); }, at);
  const auto paired = [](const Tensor& a, const Tensor& b) {
    return vt::real(vt::sum(a * b).astype(vt::c128));
  };
  expect_close(paired(pull(bar), along), paired(bar, slope), {.relative = 1e-9, .absolute = 1e-9});
}

TEST(ComplexLinalg, DerivativesAgainstDifferences) {
  const Tensor a = random(vt::c128, {4, 4}, 11) + 2.0 * vt::eye(4),
               tall = random(vt::c128, {5, 3}, 12), wide = random(vt::c128, {3, 5}, 13);
  const Tensor b = random(vt::c128, {4, 2}, 14), weights = random(vt::c128, {4, 4}, 15);
  const auto projectors = [&](const Tensor& v) {  // of each column: no phase is left
    return vt::einsum("ij,kj,ik->j",
                      {v, vt::conj(v), vt::slice(weights, {0, 0}, {v.dim(0), v.dim(0)})});
  };
  check_derivative("cholesky", [](const Tensor& x) { return la::cholesky(definite(x)); }, a);
  check_derivative("solve", [&](const Tensor& x) { return la::solve(x, b); }, a);
  check_derivative("solve by b", [&](const Tensor& x) { return la::solve(a, x); }, b);
  check_derivative("inv", [](const Tensor& x) { return la::inv(x); }, a);
  check_derivative("det", [](const Tensor& x) { return la::det(x); }, a, 1e-5);
  check_derivative("slogdet", [](const Tensor& x) { return la::slogdet(x).logabsdet; }, a);
  check_derivative("slogdet's sign", [](const Tensor& x) { return la::slogdet(x).sign; }, a);
  check_derivative("lu", [](const Tensor& x) { return la::lu(x).lu; }, a);
  check_derivative(
      "triangular", [&](const Tensor& x) { return la::solve_triangular(x, b, 2, true); }, a);
  check_derivative(
      "cho_solve", [&](const Tensor& x) { return la::cho_solve(la::cho_factor(definite(x)), b); },
      a);
  for (const Tensor& m : {a, tall, wide}) {
    check_derivative("q", [](const Tensor& x) { return la::qr(x).q; }, m);
    check_derivative("r", [](const Tensor& x) { return la::qr(x).r; }, m);
    check_derivative("singular values", [](const Tensor& x) { return la::svdvals(x); }, m);
    check_derivative("pinv", [](const Tensor& x) { return la::pinv(x); }, m);
    check_derivative(
        "svd",
        [](const Tensor& x) {
          const auto [u, s, vh] = la::svd(x, false);
          return vt::matmul(u * (s * s), vh);
        },
        m, 1e-5);
  }
  check_derivative("eigh's values", [](const Tensor& x) { return la::eigvalsh(x); }, a);
  check_derivative(
      "eigh's vectors", [&](const Tensor& x) { return projectors(la::eigh(x).eigenvectors); }, a);
  check_derivative(
      "svd's u", [&](const Tensor& x) { return projectors(la::svd(x, false).u); }, a, 1e-5);
  check_derivative(
      "svd's vh", [&](const Tensor& x) { return projectors(adjoint(la::svd(x, false).vh)); }, a,
      1e-5);
}

TEST(Eig, DerivativesAgainstDifferences) {
  for (const vt::DType d : {vt::f64, vt::c128}) {
    const Tensor a = random(d, {4, 4}, 16) + vt::matrix_diag(vt::tensor({1.0, 3.0, 5.0, 7.0}));
    // The vectors themselves: their length and phase are fixed.
    check_derivative("eigvals", [](const Tensor& x) { return la::eigvals(x); }, a);
    check_derivative(
        "eig's vectors", [](const Tensor& x) { return la::eig(x).eigenvectors; }, a, 1e-5);
    check_derivative(
        "a function of the matrix",
        [](const Tensor& x) {
          const auto [w, v] = la::eig(x);
          return vt::matmul(v * vt::exp(0.3 * w), la::inv(v));
        },
        a, 1e-5);
  }
  // A real matrix's gradient is real, and of the second order too; the trace of x² is the sum of
  // the squared eigenvalues.
  const Tensor a = random(vt::f64, {3, 3}, 17);
  const auto squares = [](Tensor x) {
    const Tensor w = la::eigvals(x);
    return vt::sum(vt::real(w * w));
  };
  expect_close(vt::grad(squares)(a), 2.0 * vt::matrix_transpose(a), close);
  const Tensor v = random(vt::f64, {3, 3}, 18);
  expect_close(vt::jvp(vt::grad(squares), std::tuple(a), std::tuple(v)).second,
               2.0 * vt::matrix_transpose(v), {.relative = 1e-9, .absolute = 1e-9});
  const Tensor rows = vt::stack({a, 2.0 * a});
  expect_close(vt::jit(vt::vmap(vt::grad(squares)))(rows), 2.0 * vt::matrix_transpose(rows), close);
}

TEST(ComplexLinalg, Refusals) {
  const auto refused = [](const std::string& what, const std::function<void()>& f) {
    const std::string text = vt_test::message(f);
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find("; at linalg_complex_test.cpp:"), std::string::npos) << text;
  };
  refused("vt::eig: needs square matrices: f32[2,3]", [] { (void)la::eig(vt::ones({2, 3})); });
  refused("vt::eigvals: needs at least two axes", [] { (void)la::eigvals(vt::ones({2})); });
  refused("vt::eig: needs f32, f64, c64 or c128, not f16",
          [] { (void)la::eig(vt::ones({2, 2}, vt::f16)); });
  refused("vt::svd: full factors of a matrix that is not square have no derivative", [] {
    vt::grad([](Tensor x) { return vt::sum(vt::abs(la::svd(x).u)); })(random(vt::c128, {3, 2}, 1));
  });
}

// --- order ---------------------------------------------------------------------------------------

TEST(ComplexOrder, IsThatOfTheRealPartsAndThenTheImaginaryOnes) {
  const double nan = NAN, inf = INFINITY;
  const std::vector<C> x = {{2, 1},    {1, nan},   {1, 5},  {nan, 1}, {2, -1},
                            {-inf, 3}, {nan, nan}, {1, -5}, {0, nan}, {nan, 0}};
  const Tensor z = vt::tensor(x, {10});
  // NumPy: numbers, then those with a NaN in the imaginary part, then in the real one.
  EXPECT_EQ(vt::argsort(z).to_vector<int>(), (std::vector<int>{5, 7, 2, 4, 0, 8, 1, 9, 3, 6}));
  EXPECT_EQ(vt::sort(z)[3].item<C>(), C(2, -1));
  EXPECT_EQ(vt::argsort(z, 0, {.descending = true})[0].item<int>(), 6);
  const Tensor m = random(vt::c64, {3, 5}, 20);
  const Tensor sorted = vt::jit(vt::vmap([](Tensor r) { return vt::sort(r); }))(m);
  for (int i = 0; i < 3; ++i) {
    std::vector<std::complex<float>> row = m[i].to_vector<std::complex<float>>();
    std::sort(row.begin(), row.end(), [](auto a, auto b) {
      return std::pair(a.real(), a.imag()) < std::pair(b.real(), b.imag());
    });
    EXPECT_EQ(sorted[i].to_vector<std::complex<float>>(), row);
  }
  const Tensor w = random(vt::c128, {10}, 21), order = vt::argsort(m[0]);
  const Tensor slope =
      vt::grad([&](Tensor t) { return vt::real(vt::sum(vt::sort(t) * vt::arange(5))); })(m[0]);
  for (int k = 0; k < 5; ++k)
    EXPECT_EQ(slope[order[k]].item<std::complex<float>>(),
              std::complex<float>(static_cast<float>(k), 0));
  EXPECT_EQ(vt::unique(vt::tensor({C(1, 1), C(0, 2), C(1, 1)})).to_vector<C>(),
            (std::vector<C>{{0, 2}, {1, 1}}));
  EXPECT_EQ(vt::lexsort({vt::tensor({C(0, 1), C(0, 0)}), vt::tensor({1, 1})}).to_vector<int>(),
            (std::vector<int>{1, 0}));
}

}  // namespace
