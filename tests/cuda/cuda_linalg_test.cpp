// Linear algebra on batches of small matrices on a CUDA device, here the emulated one: a thread, a
// warp or a block for each = the interpreter's results, signs included; singular, unbounded and
// empty matrices; what the host still does, and why.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

namespace la = vt::linalg;
using vt::Shape;
using vt::Tensor;
using vt_test::device, vt_test::emulator, vt_test::Tensors;
using Function = vt_test::TensorFunction;

Tensor general(const Shape& shape, std::uint64_t seed, vt::DType d = vt::f64) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
Tensor transposed(const Tensor& x) { return vt::swapaxes(x, -1, -2); }
Tensor positive(const Shape& shape, std::uint64_t seed, vt::DType d = vt::f64) {
  const Tensor x = general(shape, seed, d);
  return (vt::matmul(x, transposed(x)) + vt::eye(shape.back(), d)).eval();
}

/// f on the device and on the host; no step on the host, and explain tells `way`.
void expect_same(const Function& f, const Tensors& arguments, const std::string& way,
                 double tolerance, const std::string& what) {
  const auto [actual, expected, text] = vt_test::on_both(f, arguments, what);
  for (std::size_t i = 0; i < expected.size(); ++i)
    vt_test::expect_close(actual[i], expected[i], {.relative = tolerance, .absolute = tolerance},
                          what + " result " + std::to_string(i));
  EXPECT_EQ(vt::stats().host_steps, 0u) << what << "\n" << text;
  EXPECT_NE(text.find(way), std::string::npos) << what << " is not in " << way << "\n" << text;
}

struct Size {
  std::int64_t n;
  const char* way;
};
constexpr Size sizes[] = {{1, "a thread per matrix"}, {3, "a thread per matrix"},
                          {4, "a thread per matrix"}, {7, "a warp per matrix"},
                          {32, "a warp per matrix"},  {45, "a block per matrix"}};

/// Tests of several sizes have blocks and threads in another order each time.
struct Shuffled {
  explicit Shuffled(std::int64_t seed) {
    if (emulator) emulator->set_seed(static_cast<unsigned long>(seed));
  }
  ~Shuffled() {
    if (emulator) emulator->set_seed(0);
  }
};

TEST(CudaLinalg, FactorsAndSystems) {
  const auto f = [](const Tensors& a) {
    const la::LuResult lu = la::lu(a[1]);
    return Tensors{
        la::cholesky(a[0]), lu.lu, lu.pivots, lu.permutation, la::solve(a[1], a[2]),
        la::solve_triangular(a[0], a[2], 0, true),
        // With ones as its diagonal it would be singular but for the rest being small.
        la::solve_triangular(0.5 * a[0] / static_cast<double>(a[0].dim(-1)), a[2], 1, true, true),
        la::solve_triangular(a[0], a[2], 0, false), la::solve_triangular(a[0], a[2], 1, false)};
  };
  for (const Size& s : sizes) {
    const Shuffled order(s.n);
    for (vt::DType d : {vt::f32, vt::f64}) {
      const Shape shape{3, s.n, s.n};
      // rows are exchanged
      const Tensor a = (general(shape, 2, d) + 3 * vt::rev(vt::eye(s.n, d), {0})).eval();
      expect_same(f, {positive(shape, 1, d), a, general({3, s.n, 2}, 3, d)}, s.way,
                  d == vt::f64 ? 1e-11 : 1e-4, std::string(vt::name_of(d)) + shape.str());
    }
  }
}

TEST(CudaLinalg, FactorsThatAreNotSquare) {
  for (const auto& [m, n, way] : {std::tuple{4, 2, "a thread"},
                                  {2, 3, "a thread"},
                                  {9, 30, "a warp"},
                                  {30, 9, "a warp"},
                                  {40, 20, "a block"}}) {
    const Shuffled order(m);
    expect_same(
        [](const Tensors& a) {
          const la::LuResult lu = la::lu(a[0]);
          const la::QrResult reduced = la::qr(a[0]), complete = la::qr(a[0], "complete");
          return Tensors{lu.lu, lu.permutation, reduced.q, reduced.r, complete.q, complete.r};
        },
        {general({2, m, n}, 5)}, way, 1e-11, std::to_string(m) + " x " + std::to_string(n));
  }
}

TEST(CudaLinalg, EigenvaluesAndVectors) {
  for (const Size& s : sizes) {
    const Shuffled order(s.n);
    const Tensor x = general({3, s.n, s.n}, 7);
    expect_same(
        [](const Tensors& a) {
          return Tensors{la::eigh(a[0]).eigenvalues, la::eigh(a[0]).eigenvectors,
                         la::eigvalsh(a[0] * 1e-200) * 1e200};
        },
        {(x + transposed(x)).eval()}, s.way, 1e-9, std::to_string(s.n));
  }
}

TEST(CudaLinalg, SingularValuesAndVectors) {
  for (const auto& [m, n, way] : {std::tuple{1, 1, "a thread"},
                                  {3, 3, "a thread"},
                                  {4, 2, "a thread"},
                                  {2, 4, "a thread"},
                                  {12, 12, "a warp"},
                                  {9, 20, "a warp"},
                                  {20, 9, "a warp"},
                                  {34, 20, "a block"}}) {
    const Shuffled order(m + n);
    const Tensor x = general({2, m, n}, 9);
    expect_same(
        [](const Tensors& a) {
          const la::SvdResult reduced = la::svd(a[0], false);
          return Tensors{reduced.u, reduced.s, reduced.vh, la::svdvals(a[0])};
        },
        {x}, way, 1e-9, std::to_string(m) + " x " + std::to_string(n));
    if (std::max(m, n) > 20) continue;
    expect_same(
        [](const Tensors& a) {
          const la::SvdResult full = la::svd(a[0]);
          return Tensors{full.u, full.s, full.vh};
        },
        {x}, way, 1e-9, "full " + std::to_string(m) + " x " + std::to_string(n));
  }
}

// The rank is full, short, and short in a wide matrix; columns are exchanged.
TEST(CudaLinalg, LeastSquares) {
  for (const auto& [m, n, rank, way] : {std::tuple{4, 2, 2, "a thread"},
                                        {4, 4, 2, "a thread"},
                                        {2, 4, 2, "a thread"},
                                        {20, 9, 9, "a warp"},
                                        {9, 20, 4, "a warp"},
                                        {36, 12, 5, "a block"}}) {
    const Shuffled order(m + n);
    const std::string what = std::to_string(m) + " x " + std::to_string(n);
    for (const vt::DType d : {vt::f32, vt::f64}) {
      const Tensor a = vt::matmul(general({3, m, rank}, 1, d), general({3, rank, n}, 2, d)).eval();
      const auto fit = [](const Tensors& a) {
        const la::LstsqResult fit = la::lstsq(a[0], a[1], a[0].dtype() == vt::f64 ? 1e-12 : 1e-4);
        return Tensors{fit.x, fit.rank, fit.residuals};
      };
      expect_same(fit, {a, general({3, m, 2}, 3, d)}, way, d == vt::f64 ? 1e-10 : 1e-2, what);
    }
  }
}

TEST(CudaLinalg, SingularMatrices) {
  // Of rank 2: the other vectors are orthonormal all the same.
  const Tensor x = vt::matmul(general({2, 9, 2}, 1), general({2, 2, 6}, 2)).eval();
  const auto there = la::svd(x.to(device), false);
  EXPECT_EQ(there.u.device(), device);
  const Tensor u = there.u.to(vt::cpu()), s = there.s.to(vt::cpu()), vh = there.vh.to(vt::cpu());
  vt_test::expect_close(vt::matmul(u * vt::expand_dims(s, -2), vh), x, {.absolute = 1e-13});
  vt_test::expect_close(vt::matmul(transposed(u), u),
                        vt::broadcast_to(vt::eye(6, vt::f64), {2, 6, 6}), {.absolute = 1e-13});
  vt_test::expect_close(vt::matmul(vh, transposed(vh)),
                        vt::broadcast_to(vt::eye(6, vt::f64), {2, 6, 6}), {.absolute = 1e-13});
  // Not positive definite; no inverse; no numbers; nothing but zeros. Others of the batch are what
  // they would be alone.
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  const Tensor bad = vt::tensor(
      std::vector<double>{1, 2, 2, 1, 4, 2, 2, 3, nan, 0, 0, 1, 0, 0, 0, 0, inf, 1, 1, 2},
      {5, 2, 2});
  const auto all = [](const Tensors& a) {
    const la::QrResult qr = la::qr(a[0]);
    const la::SvdResult svd = la::svd(a[0]);
    const la::LuResult lu = la::lu(a[0]);
    return Tensors{la::cholesky(a[0]), la::eigvalsh(a[0]), qr.q, qr.r, svd.s, lu.lu,
                   lu.permutation};
  };
  expect_same(all, {bad}, "a thread", 1e-12, "faults");
  // Columns whose squares vanish: what is left of ones after a few steps, and ones of many sizes.
  for (const Tensor& a : {vt::ones({20, 20}, vt::f64),
                          general({20, 20}, 8) * vt::exp(-30.0 * vt::arange(20).astype(vt::f64))}) {
    const la::QrResult f = la::qr(a.to(device));
    const Tensor q = f.q.to(vt::cpu());
    vt_test::expect_close(vt::matmul(transposed(q), q), vt::eye(20, vt::f64), {.absolute = 1e-14});
    vt_test::expect_close(vt::matmul(q, f.r.to(vt::cpu())), a, {.absolute = 1e-13});
  }
  const auto twin = vt::eye(7, vt::f64) * 3.0;
  expect_same(
      [](const Tensors& a) {
        return Tensors{
            la::eigvalsh(a[0]), la::svdvals(a[0]),
            vt::matmul(transposed(la::eigh(a[0]).eigenvectors), la::eigh(a[0]).eigenvectors)};
      },
      {twin.eval()}, "a warp", 1e-13, "equal values");
}

TEST(CudaLinalg, ManyRightSidesAndTridiagonalSystems) {
  expect_same(
      [](const Tensors& a) {
        return Tensors{la::solve(a[0], a[1]), la::solve_triangular(a[0], a[1], 0, true)};
      },
      {positive({2, 6, 6}, 1), general({2, 6, 70}, 2)}, "a warp per matrix and 32 right sides",
      1e-11, "chunks");
  expect_same(
      [](const Tensors& a) { return Tensors{la::tridiagonal_solve(a[0], a[1], a[2], a[3])}; },
      {general({5, 40}, 1), general({5, 40}, 2), general({5, 40}, 3), general({5, 40, 3}, 4)},
      "a thread per matrix and 1 right side", 1e-8, "tridiagonal");
}

TEST(CudaLinalg, Derivatives) {
  const auto loss = [](Tensor a, Tensor b) {
    const Tensor s = vt::matmul(a, transposed(a)) + vt::eye(5, vt::f64);
    const la::EighResult e = la::eigh(s);
    return vt::sum(la::solve(s, b)) + vt::sum(la::cholesky(s)) +
           vt::sum(vt::square(e.eigenvalues)) + vt::sum(la::svdvals(a));
  };
  expect_same(
      [&](const Tensors& a) {
        const auto [da, db] = vt::vmap(vt::grad<0, 1>(loss))(a[0], a[1]);
        return Tensors{da, db};
      },
      {general({3, 5, 5}, 1), general({3, 5, 2}, 2)}, "a warp", 1e-8, "derivatives");
}

TEST(CudaLinalg, WhatTheHostDoes) {
  const auto refused = [](const Function& f, const Tensor& x, const std::string& reason) {
    const auto compiled = vt::jit(f);
    const std::string text = vt::explain_steps(compiled)(Tensors{x.to(device)});
    EXPECT_NE(text.find(reason), std::string::npos) << text;
    const Tensors there = compiled(Tensors{x.to(device)}), here = f({x});
    for (std::size_t i = 0; i < here.size(); ++i)
      vt_test::expect_close(there[i], here[i], {.relative = 1e-12, .absolute = 1e-12}, reason);
  };
  refused([](const Tensors& a) { return Tensors{la::eigvals(a[0])}; }, general({3, 3}, 1),
          "eigenvalues without symmetry");
  refused([](const Tensors& a) { return Tensors{la::cholesky(a[0])}; }, positive({100, 100}, 1),
          "large matrices");
  refused([](const Tensors& a) { return Tensors{la::qr(a[0], "complete").q}; },
          vt::ones({3, 0}, vt::f64), "matrices without elements");
}

}  // namespace
