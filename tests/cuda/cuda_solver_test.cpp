// Linear algebra on matrices that no block's shared memory holds, through a stand-in for cuSOLVER
// (cuda_emulator/solver.cpp) and cuBLAS: every op = the interpreter's results, signs and NaN
// included; what happens without it and when it fails; vt's declarations against NVIDIA's header.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "cuda_emulator/libraries.hpp"
#include "src/jit/cuda/program/large_matrices.hpp"
#include "support/cuda_libraries.hpp"
#include "support/cuda_program.hpp"
#include "support/message.hpp"
#include "support/passed_alike.hpp"

#if defined(__has_include)
#if __has_include(<cusolverDn.h>)
#define VT_TEST_HAS_CUSOLVER_HEADER 1
#include <cusolverDn.h>
#endif
#endif

namespace {

namespace cuda = vt::detail::cuda;
namespace la = vt::linalg;
using vt::Shape;
using vt::Tensor;
using vt_test::device, vt_test::emulator, vt_test::Tensors, vt_test::message;
using Function = vt_test::TensorFunction;

#ifdef VT_TEST_HAS_CUSOLVER_HEADER
#define VT_SAME_ROUTINE(name, parameters)                                               \
  static_assert(vt_test::Alike<decltype(cuda::Solver::name), decltype(&::name)>::value, \
                #name " is declared otherwise in cusolverDn.h");
VT_CUSOLVER_FUNCTIONS(VT_SAME_ROUTINE)
#define VT_SAME_CONSTANT(name, number)                                  \
  static_assert(static_cast<int>(::name) == cuda::SolverConstant::name, \
                #name " has another value in NVIDIA's header");
VT_CUSOLVER_CONSTANTS(VT_SAME_CONSTANT)
#endif

const vt_test::LibraryControls* controls() { return vt_test::library_controls(); }

Tensor general(const Shape& shape, std::uint64_t seed, vt::DType d = vt::f64) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
Tensor transposed(const Tensor& x) { return vt::swapaxes(x, -1, -2); }
Tensor positive(const Shape& shape, std::uint64_t seed, vt::DType d = vt::f64) {
  const Tensor x = general(shape, seed, d);
  return (vt::matmul(x, transposed(x)) / static_cast<double>(shape.back()) +
          vt::eye(shape.back(), d))
      .eval();
}

/// f on the device and on the host; no step on the host, and explain tells `way`.
void expect_same(const Function& f, const Tensors& arguments, double tolerance,
                 const std::string& what, const std::string& way = "by cuSOLVER") {
  const auto [actual, expected, text] = vt_test::on_both(f, arguments, what);
  for (std::size_t i = 0; i < expected.size(); ++i)
    vt_test::expect_close(actual[i], expected[i], {.relative = tolerance, .absolute = tolerance},
                          what + " result " + std::to_string(i));
  EXPECT_EQ(vt::stats().host_steps, 0u) << what << "\n" << text;
  EXPECT_NE(text.find(way), std::string::npos) << what << " is not " << way << "\n" << text;
}
double tolerance_of(vt::DType d) { return d == vt::f64 ? 1e-10 : 3e-4; }

class CudaSolver : public ::testing::Test {
  void SetUp() override {
    std::string reason;
    cuda::solver_call(cuda::CudaDevice::get(0),
                      {.routine = cuda::SolverTask::Routine::potrf, .batch = 1, .m = 2, .n = 2},
                      &reason);
    if (!reason.empty() && !controls()) GTEST_SKIP() << reason;
    EXPECT_EQ(reason, "");
  }
};

TEST_F(CudaSolver, FactorsAndSystems) {
  for (vt::DType d : {vt::f32, vt::f64}) {
    const std::int64_t n = d == vt::f32 ? 131 : 97;  // no block's room holds them
    if (emulator) emulator->set_seed(static_cast<unsigned long>(n));
    // rows are exchanged
    const Tensor a = (general({2, n, n}, 2, d) + 9 * vt::rev(vt::eye(n, d), {0})).eval();
    expect_same(
        [](const Tensors& x) {
          const la::LuResult lu = la::lu(x[1]);
          return Tensors{la::cholesky(x[0]), lu.lu, lu.pivots, lu.permutation,
                         la::solve(x[1], x[2])};
        },
        {positive({2, n, n}, 1, d), a, general({2, n, 3}, 3, d)}, tolerance_of(d),
        std::string(vt::name_of(d)));
  }
  if (emulator) emulator->set_seed(0);
}

TEST_F(CudaSolver, TrianglesAreCuBlass) {
  const Tensor t = positive({2, 100, 100}, 1), b = general({2, 100, 3}, 2);
  const Function f = [](const Tensors& x) {
    Tensors all;
    for (bool lower : {false, true})
      for (int transposed : {0, 1})
        for (bool unit : {false, true})
          all.push_back(
              la::solve_triangular(unit ? 0.02 * x[0] : x[0], x[1], transposed, lower, unit));
    return all;
  };
  expect_same(f, {t, b}, 1e-9, "triangles", "by cuBLAS");
  // They are captured as part of a graph.
  const auto there = vt::jit(f);
  const Tensors on_device = {t.to(device), b.to(device)}, first = there(on_device);
  for (const Tensor& x : first) x.eval();
  vt::reset_stats();
  const Tensors second = there(on_device), expected = f({t, b});
  for (const Tensor& x : second) x.eval();
  EXPECT_EQ(vt::stats().graph_launches, 1u);
  for (std::size_t i = 0; i < expected.size(); ++i)
    vt_test::expect_close(second[i], expected[i], {.relative = 1e-9, .absolute = 1e-9}, "replayed");
}

TEST_F(CudaSolver, FactorsThatAreNotSquare) {
  for (const auto& [m, n] : {std::pair{140, 90}, {90, 140}})
    expect_same(
        [](const Tensors& a) {
          const la::LuResult lu = la::lu(a[0]);
          const la::QrResult reduced = la::qr(a[0]), complete = la::qr(a[0], "complete");
          return Tensors{lu.lu,     lu.pivots,  lu.permutation, reduced.q,
                         reduced.r, complete.q, complete.r};
        },
        {general({2, m, n}, 5)}, 1e-10, std::to_string(m) + " x " + std::to_string(n));
}

TEST_F(CudaSolver, Spectra) {
  const Tensor x = general({2, 95, 95}, 7);
  expect_same(
      [](const Tensors& a) {
        return Tensors{la::eigh(a[0]).eigenvalues, la::eigh(a[0]).eigenvectors,
                       la::eigvalsh(a[0] * 2.0)};
      },
      {(x + transposed(x)).eval()}, 1e-8, "eigh");
  for (const auto& [m, n] : {std::pair{100, 70}, {70, 100}, {90, 90}}) {
    const Tensor y = general({2, m, n}, 9);
    const std::string what = std::to_string(m) + " x " + std::to_string(n);
    expect_same(
        [](const Tensors& a) {
          const la::SvdResult svd = la::svd(a[0], false);
          return Tensors{svd.u, svd.s, svd.vh, la::svdvals(a[0] * 3.0)};
        },
        {y}, 1e-8, what);
    // All vectors: those of no value are any that stand at right angles on the others.
    const la::SvdResult full = la::svd(y.to(device));
    const std::int64_t least = std::min(m, n);
    const Tensor u = full.u.to(vt::cpu()), s = full.s.to(vt::cpu()), vh = full.vh.to(vt::cpu());
    const Tensor product =
        vt::matmul(vt::slice(u, {0, 0, 0}, {2, m, least}) * vt::expand_dims(s, -2),
                   vt::slice(vh, {0, 0, 0}, {2, least, n}));
    vt_test::expect_close(product, y, {.absolute = 1e-11}, what);
    vt_test::expect_close(vt::matmul(transposed(u), u),
                          vt::broadcast_to(vt::eye(m, vt::f64), {2, m, m}), {.absolute = 1e-11},
                          what);
    vt_test::expect_close(vt::matmul(vh, transposed(vh)),
                          vt::broadcast_to(vt::eye(n, vt::f64), {2, n, n}), {.absolute = 1e-11},
                          what);
  }
}

TEST_F(CudaSolver, WhatHasNoDecompositionIsNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // The second one is not positive definite, the third no matrix of numbers; the first is what it
  // would be alone.
  const Tensor good = positive({1, 100, 100}, 1),
               mark = vt::expand_dims(vt::expand_dims(vt::arange(100), 0) == 40, -1);
  const Tensor all =
      vt::concatenate({good, -good, vt::where(mark, vt::full({1, 100, 100}, nan), good)}, 0).eval();
  expect_same(
      [](const Tensors& a) {
        return Tensors{la::cholesky(a[0]), la::eigvalsh(a[0]), la::svdvals(a[0])};
      },
      {all}, 1e-9, "faults");
  expect_same(
      [](const Tensors& a) {
        const la::LuResult lu = la::lu(a[0]);
        const la::QrResult qr = la::qr(a[0]);
        return Tensors{lu.lu, lu.pivots, qr.q, qr.r,
                       la::solve(a[0], vt::ones({3, 100, 2}, vt::f64))};
      },
      {all}, 1e-9, "factors of faults");
  // Singular: what is divided by nothing is not finite on either side.
  const Tensor singular = vt::zeros({100, 100}, vt::f64), b = vt::ones({100, 2}, vt::f64);
  const Tensor there = la::solve(singular.to(device), b.to(device)).to(vt::cpu());
  EXPECT_FALSE(vt::any(vt::isfinite(there)).item<bool>());
}

TEST_F(CudaSolver, Derivatives) {
  const auto loss = [](Tensor a, Tensor b) {
    const Tensor s = vt::matmul(a, transposed(a)) / 90.0 + vt::eye(90, vt::f64);
    return vt::sum(la::solve(s, b)) + vt::sum(la::cholesky(s)) +
           vt::sum(vt::square(la::eigh(s).eigenvalues)) + la::slogdet(s).logabsdet;
  };
  expect_same(
      [&](const Tensors& a) {
        const auto [da, db] = vt::grad<0, 1>(loss)(a[0], a[1]);
        return Tensors{da, db};
      },
      {general({90, 90}, 1), general({90, 2}, 2)}, 1e-8, "derivatives");
}

// A loop whose body has such a step is steered by the host.
TEST_F(CudaSolver, InALoop) {
  const Function f = [](const Tensors& a) {
    return Tensors{vt::fori_loop(
        0, 3,
        [](Tensor, Tensor x) {
          return la::cholesky(vt::matmul(x, transposed(x)) / 100.0 + vt::eye(100, vt::f64));
        },
        a[0])};
  };
  expect_same(f, {positive({100, 100}, 4)}, 1e-9, "loop");
}

TEST_F(CudaSolver, WhereItFails) {
  if (!controls()) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor x = positive({100, 100}, 1), there = x.to(device);
  const auto f = vt::jit([](Tensor x) { return la::cholesky(x); });
  f(there).eval();
  controls()->fail("cusolverDnXpotrf", 0, 6);
  const std::string text = message([&] { f(there).eval(); });
  EXPECT_NE(
      text.find(
          "cusolverDnXpotrf: error 6 of cuSOLVER; VT_CUSOLVER_LIBRARY=none does without cuSOLVER"),
      std::string::npos)
      << text;
  vt_test::expect_close(f(there), la::cholesky(x), {.relative = 1e-10, .absolute = 1e-10},
                        "nothing was lost");
  // Without sizes, and on a device where it cannot be made, the host does it and explain says why.
  controls()->fail("cusolverDnXpotrf_bufferSize", 0, 3);
  const auto g = vt::jit([](Tensor x) { return la::cholesky(x) * 2.0; });
  vt_test::expect_close(g(there), la::cholesky(x) * 2.0, {.relative = 1e-10, .absolute = 1e-10},
                        "host");
  EXPECT_NE(vt::explain_steps(g)(there).find(
                "large matrices, and not by cuSOLVER: cusolverDnXpotrf_bufferSize: error 3"),
            std::string::npos)
      << vt::explain_steps(g)(there);
  for (const auto& [function, index] :
       {std::pair{"cusolverDnCreate", 1}, {"cusolverDnCreateParams", 2}}) {
    controls()->fail(function, 0, 2);
    const Tensor y = x.to(vt::cuda(index));
    vt_test::expect_close(f(y), la::cholesky(x), {.relative = 1e-10, .absolute = 1e-10}, function);
    EXPECT_NE(
        vt::explain_steps(f)(y).find(std::string("not by cuSOLVER: ") + function + ": error 2"),
        std::string::npos)
        << vt::explain_steps(f)(y);
  }
}

}  // namespace
